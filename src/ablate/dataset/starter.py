"""A language in, the beginning of a dataset out: contract, annotation guide, and an example that is valid."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ablate.dataset import manifest
from ablate.dataset.write import replace
from ablate.errors import DatasetError

LANGUAGES = ("en", "ru")
TEMPLATES = ("contract.yaml", "GUIDE.md")
WRITTEN = "written"
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
        for name in (*TEMPLATES, *EXAMPLES):
            if (folder / name).exists():
                said[name] = "kept as it is"
            elif name in EXAMPLES and own:
                said[name] = f"not written, as the example would not fit the {own[0]} that is there"
            else:
                replace(folder / name, (source / name).read_bytes())
                said[name] = WRITTEN
    except DatasetError:  # a part of the example would be taken for somebody's own, when it is begun again
        for name in said:
            if said[name] == WRITTEN:
                (folder / name).unlink(missing_ok=True)
        raise
    return said
