"""A folder of documents, queries and ground truth in, one checked `Dataset` out; nothing is half loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.resources import files
from os.path import expanduser
from pathlib import Path

from ablate.dataset import fingerprint, manifest, rules
from ablate.dataset.contract import contract, critical
from ablate.dataset.documents import Readers, documents, groups
from ablate.dataset.lines import entries, near
from ablate.dataset.qrels import Grades, qrels
from ablate.dataset.queries import queries
from ablate.dataset.truth import Reader, Remarks, evidence
from ablate.errors import ConfigError, DatasetError
from ablate.types import Dataset, Document, Query, Truth

__all__ = ["Folder"]

Rows = dict[str, tuple[Query, str]]
Truths = dict[str, tuple[Truth, str]]


@dataclass(frozen=True)
class Folder:
    """A folder in the layout of BEIR, or with this project's own ground truth beside it.

    `dir` is a path or `pkg://package/path`; `split` picks `qrels/<split>.tsv`; `evidence` says whether `any` or `all`
    of the documents graded `sufficient_grade` or more are enough where a query names no alternatives (`none`: unknown);
    `acl_default` says who reads a document without ACL where others have one: `nobody` or `public`; with `title` false
    titles are not read.

    `counts` of the data set: documents, documents_empty, documents_with_acl, queries, queries_unanswerable,
    queries_with_alternatives, queries_by_document (evidence without spans), queries_unjudged (left out).
    """

    dir: str
    split: str
    evidence: str
    sufficient_grade: int
    acl_default: str
    title: bool

    def __post_init__(self) -> None:
        choice("evidence", self.evidence, ("none", "any", "all"))
        choice("acl_default", self.acl_default, ("nobody", "public"))
        if self.sufficient_grade < 1:
            raise ConfigError(f"sufficient_grade: found {self.sufficient_grade}, expected 1 or more; 0 is not relevant")
        if not self.split or "/" in self.split or "\\" in self.split:
            raise ConfigError(f'split: found "{self.split}", expected the name of a file in qrels/; leave .tsv out')

    def read(self) -> Dataset:
        """The dataset, checked as a whole.

        Raises:
            DatasetError: the first broken rule, with file, line, key, what was found and what was expected.

        """
        folder = path(self.dir)
        content = complete(folder)
        by_id = documents(entries("corpus.jsonl", content["corpus.jsonl"]), self.title)
        asked = queries(entries("queries.jsonl", content["queries.jsonl"]))
        members = groups(entries("groups.jsonl", content.get("groups.jsonl", b"")))
        agreed = contract(content.get("contract.yaml", b""))
        grades = self.grades(content, asked, by_id)
        remarks = Remarks()
        lines = entries("ground_truth.jsonl", content.get("ground_truth.jsonl", b""))
        written = Reader(by_id, asked, remarks).truths(lines, grades)
        kept = asked if "ground_truth.jsonl" in content else judged(asked, grades or {})
        truths = self.completed(kept, written, grades, by_id)
        check(kept, truths, by_id, Readers(by_id, members, self.acl_default))
        named = critical(agreed, kept)
        chosen = tuple(replace(query, critical=query.critical or query.id in named) for query, _ in kept.values())
        known = {key: truth for key, (truth, _) in truths.items()}
        rest = {
            "groups": {group: sorted(names) for group, names in members.items()},
            "contract": agreed,
            "guide": manifest.digests(content).get("GUIDE.md"),
            "acl_default": self.acl_default,
        }
        return Dataset(
            name=folder.name,
            folder=str(folder),
            documents=tuple(by_id.values()),
            queries=chosen,
            truths=known,
            groups=members,
            acl_default=self.acl_default,
            contract=agreed,
            fingerprints={
                "corpus": fingerprint.corpus(by_id.values()),
                "ground_truth": fingerprint.ground_truth(chosen, known, rest),
            },
            counts=counts(by_id, chosen, known) | {"queries_unjudged": len(asked) - len(kept)},
            warnings=(*manifest.misspelt(folder), *remarks.sentences, *silent(by_id, self.acl_default)),
        )

    def grades(self, content: dict[str, bytes], asked: Rows, by_id: dict[str, Document]) -> Grades | None:
        """Document grades of the split, or None where the folder has no qrels at all."""
        name = f"qrels/{self.split}.tsv"
        if name in content:
            return qrels(name, content[name], asked, by_id)
        splits = [key.removeprefix("qrels/").removesuffix(".tsv") for key in content if key.startswith("qrels/")]
        if splits or "ground_truth.jsonl" not in content:
            found = ", ".join(splits) or "neither qrels nor ground_truth.jsonl"
            raise DatasetError(
                f"{name}: found no such file but {found}, expected the file of dataset.split; set it to one that exists"
            )
        return None

    def completed(self, kept: Rows, written: Truths, grades: Grades | None, by_id: dict[str, Document]) -> Truths:
        """A truth for every kept query: the written one or what the qrels say, with evidence as `evidence` declares."""
        found: Truths = {}
        for key, (query, _) in kept.items():
            fallback = Truth(key, documents=(grades or {}).get(key, {})), f"qrels/{self.split}.tsv"
            truth, where = written.get(key, fallback)
            if query.answerable and not truth.alternatives:
                truth = replace(truth, alternatives=evidence(truth, self.evidence, self.sufficient_grade))
            found[key] = truth, where
        return found


def choice(key: str, found: str, allowed: tuple[str, ...]) -> None:
    if found not in allowed:
        advice = near(found, allowed) or "correct the value"
        raise ConfigError(f'{key}: found "{found}", expected one of {", ".join(allowed)}; {advice}')


def path(dir: str) -> Path:
    """The folder that a setting names: a path with `~`, or a place inside an importable package (`pkg://`).

    Raises:
        DatasetError: there is no such folder.

    """
    if dir.startswith("pkg://"):
        package, _, inner = dir.removeprefix("pkg://").partition("/")
        try:
            found = Path(str(files(package).joinpath(inner)))
        except (ModuleNotFoundError, ValueError, TypeError) as error:
            raise DatasetError(
                f'{dir}: found no package "{package}", expected one that Python can import; check dataset.dir'
            ) from error
    else:
        found = Path(expanduser(dir)).resolve()
    if not dir or not found.is_dir():
        raise DatasetError(f"{dir or 'dataset.dir'}: found no such folder, expected a dataset; check dataset.dir")
    return found


def complete(folder: Path) -> dict[str, bytes]:
    """The bytes of the folder's files by name, unchanged since they were frozen if they were.

    Raises:
        DatasetError: corpus or queries are missing, or the manifest names another content.

    """
    content = manifest.contents(folder)
    frozen = folder / manifest.NAME
    if frozen.is_file():
        manifest.verified(frozen.read_bytes(), content)
    for name in ("corpus.jsonl", "queries.jsonl"):
        if name not in content:
            raise DatasetError(f"{folder}: found no {name}, expected one; check dataset.dir")
    return content


def judged(asked: Rows, grades: Grades) -> Rows:
    """The queries that the qrels judge.

    Raises:
        DatasetError: there is none.

    """
    found = {key: row for key, row in asked.items() if key in grades}
    if not found:
        raise DatasetError("qrels: found no judgment, expected at least one; fill the file or add ground_truth.jsonl")
    return found


def check(kept: Rows, truths: Truths, by_id: dict[str, Document], readers: Readers) -> None:
    """Evidence must be readable by who asks, valid when it is asked for, and about the subject of the query."""
    subjects = rules.Subjects(by_id)
    public = readers.public
    for key, (query, line) in kept.items():
        subjects.known(query, line)
        truth, where = truths[key]
        if not truth.alternatives:
            continue
        needed = rules.Evidence(query, where, rules.needed(truth, by_id))
        if not public:
            rules.readable(needed, truth, readers)
        rules.valid(needed)
        subjects.match(needed)


def silent(by_id: dict[str, Document], acl_default: str) -> tuple[str, ...]:
    """A warning where only some documents carry an ACL."""
    bare = [key for key, document in by_id.items() if document.acl is None]
    if not 0 < len(bare) < len(by_id):
        return ()
    return (f'documents without ACL, read by {acl_default} (dataset.acl_default): {len(bare)} (first "{bare[0]}")',)


def counts(by_id: dict[str, Document], chosen: tuple[Query, ...], truths: dict[str, Truth]) -> dict[str, int]:
    return {
        "documents": len(by_id),
        "documents_empty": sum(not document.text.strip() for document in by_id.values()),
        "documents_with_acl": sum(document.acl is not None for document in by_id.values()),
        "queries": len(chosen),
        "queries_unanswerable": sum(not query.answerable for query in chosen),
        "queries_with_alternatives": sum(bool(truth.alternatives) for truth in truths.values()),
        "queries_by_document": sum(truth.by_document for truth in truths.values()),
    }
