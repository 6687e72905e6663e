"""A language in, the beginning of a dataset out: contract, annotation guide, and an example that is valid."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ablate.dataset import manifest
from ablate.errors import DatasetError

LANGUAGES = ("en", "ru")
TEMPLATES = ("contract.yaml", "GUIDE.md")
EXAMPLES = ("corpus.jsonl", "queries.jsonl", "ground_truth.jsonl")


def start(folder: Path, language: str) -> dict[str, str]:
    """What became of each file, by name: `written`, or why not. No file that exists is touched.

    The example is one whole: none of it is written where the folder has a corpus, queries, a ground truth or qrels.

    Raises:
        DatasetError: there is no such language, the folder is frozen, or it cannot be written to.

    """
    if language not in LANGUAGES:
        raise DatasetError(f"--lang: found {language}, expected one of {', '.join(LANGUAGES)}; choose one of them")
    if (folder / manifest.NAME).exists():
        raise DatasetError(f"{folder}: found a frozen dataset, expected a folder to begin in; name another one")
    source = files("ablate") / "data" / "templates" / language
    own = [name for name in EXAMPLES if (folder / name).exists()] + ["qrels"] * (folder / "qrels").exists()
    said: dict[str, str] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (*TEMPLATES, *EXAMPLES):
            if (folder / name).exists():
                said[name] = "kept as it is"
            elif name in EXAMPLES and own:
                said[name] = f"not written, as the example would not fit the {own[0]} that is there"
            else:
                with (folder / name).open("xb") as file:
                    file.write((source / name).read_bytes())
                said[name] = "written"
    except OSError as error:
        raise DatasetError(
            f"{error.filename or folder}: found {error.strerror}, expected a folder to write to; name another one"
        ) from error
    return said
