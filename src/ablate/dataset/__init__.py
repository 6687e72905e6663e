"""A folder of documents, queries and ground truth in, one checked `Dataset` out; nothing is half loaded."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from os.path import expanduser
from pathlib import Path
from typing import Any

from ablate.dataset import fingerprint, manifest, rules
from ablate.dataset.content import Content
from ablate.dataset.contract import contract, critical
from ablate.dataset.corpus import Corpus, Keep, read
from ablate.dataset.documents import Readers, groups
from ablate.dataset.known import Known
from ablate.dataset.lines import contained, entries, near
from ablate.dataset.manifest import NAME, Manifest
from ablate.dataset.problems import Problems, unknowable
from ablate.dataset.qrels import Grades, named, qrels
from ablate.dataset.queries import Rows, queries
from ablate.dataset.subset import SUBSETS, cut
from ablate.dataset.truth import Reader, Remarks, evidence
from ablate.errors import ConfigError, DatasetError, Problem, problem
from ablate.types import Dataset, Document, Query, Truth

__all__ = ["Folder"]

Truths = dict[str, tuple[Truth, str]]


@dataclass(frozen=True)
class Folder:
    """A folder in the layout of BEIR, or with this project's own ground truth beside it.

    `dir` is a path or `pkg://package/path`; `split` picks `qrels/<split>.tsv`; `evidence` says whether `any` or `all`
    of the documents graded `sufficient_grade` or more are enough where a query names no alternatives (`none`: unknown);
    `acl_default` says who reads a document without ACL where others have one: `nobody` or `public`; with `title` false
    titles are not read. `subset` names the few queries that are asked (`pr`); None asks all.

    `counts` of the data set: documents, documents_empty, documents_with_acl, queries, queries_unanswerable,
    queries_with_alternatives, queries_by_document (evidence without spans), queries_unjudged and queries_excluded (both
    left out).
    """

    dir: str
    split: str
    evidence: str
    sufficient_grade: int
    acl_default: str
    title: bool
    subset: str | None

    def __post_init__(self) -> None:
        choice("evidence", self.evidence, ("none", "any", "all"))
        choice("acl_default", self.acl_default, ("nobody", "public"))
        if self.sufficient_grade < 1:
            raise ConfigError(f"sufficient_grade: found {self.sufficient_grade}, expected 1 or more; 0 is not relevant")
        if self.subset is not None:
            choice("subset", self.subset, tuple(SUBSETS))
        if not self.split or "/" in self.split or "\\" in self.split:
            raise ConfigError(f'split: found "{self.split}", expected the name of a file in qrels/; leave .tsv out')

    def read(self, excluded: Mapping[str, str] | None = None) -> Dataset:
        """The dataset, checked as a whole; queries that are `excluded` here or in the manifest are left out.

        Raises:
            DatasetError: every broken rule, with file, line, key, what was found and what was expected; the message is
                that of the first.

        """
        found = self.checked(excluded=excluded)
        if found.dataset is None:
            more = f"; `python -m ablate dataset validate {shlex.quote(self.dir)}` lists them"
            raise DatasetError(found.problems, more)
        return cut(found.dataset, self.subset)

    def checked(self, sparing: bool = False, excluded: Mapping[str, str] | None = None) -> Checked:
        """What is wrong with the folder, or the dataset; if `sparing`, without what only a study needs of its corpus.

        Raises:
            DatasetError: there is no such folder.

        """
        content = Content(path(self.dir), Problems()).open()
        problems, remarks = content.problems, Remarks()
        frozen = problems.tried(None, manifest.read, content.files[NAME]) if NAME in content.files else None
        left_out = {**(frozen.excluded if frozen else {}), **(excluded or {})}
        known, told = Known("queries.jsonl", "_id", left_out), Known("ground_truth.jsonl", "query_id", left_out)
        rows = problems.tried({}, self.asked, content, known)
        keep = referred(content.files, self.qrels if self.evidence != "none" else "") if sparing else whole
        corpus = problems.tried(None, read, content.lines(), self.title, keep, problems) or Corpus(True, keep, problems)
        if frozen:
            problems.tried(None, manifest.same, frozen, content.digests)
        members = groups(entries("groups.jsonl", content.files.get("groups.jsonl", b""), problems), problems)
        agreed = problems.tried({}, contract, content.files.get("contract.yaml", b""))
        grades = problems.tried(None, self.grades, content, known, corpus)
        lines = entries("ground_truth.jsonl", content.files.get("ground_truth.jsonl", b""), problems, told)
        written = Reader(corpus, known, rows, remarks, problems).truths(lines, told, grades)
        kept = rows if "ground_truth.jsonl" in content.files else judged(rows, grades, self.qrels, problems)
        truths = self.completed(kept, written, told, grades)
        check(kept, truths, corpus, Readers(members, self.acl_default), problems)
        marked = problems.tried(frozenset(), critical, agreed, known, rows.keys() - kept.keys())
        warnings = (
            *problems.tried([], content.misspelt),
            *remarks.sentences,
            *silent(corpus, self.acl_default),
            *undefined(members, corpus, rows),
            *unguarded(marked & left_out.keys()),
            *unplaced(agreed, corpus),
        )
        if problems.found:
            return Checked(problems.ordered, warnings, None, frozen)
        unjudged = {"queries_unjudged": len(rows) - len(kept), "queries_excluded": known.skipped}
        chosen = tuple(replace(query, critical=query.critical or query.id in marked) for query, _ in kept.values())
        dataset = self.dataset(content, corpus, chosen, truths, members, agreed)
        version = frozen.version if frozen else None
        dataset = replace(dataset, counts={**dataset.counts, **unjudged}, warnings=warnings, version=version)
        return Checked((), warnings, dataset, frozen)

    def dataset(
        self,
        content: Content,
        corpus: Corpus,
        queries: tuple[Query, ...],
        truths: Truths,
        members: Mapping[str, tuple[str, ...]],
        agreed: Mapping[str, Any],
    ) -> Dataset:
        """What was read as one record, named by its content."""
        known = {key: truth for key, (truth, _) in truths.items()}
        rest = {
            "groups": {group: sorted(names) for group, names in members.items()},
            "contract": agreed,
            "guide": content.digests.get("GUIDE.md"),
            "acl_default": self.acl_default,
        }
        return Dataset(
            name=content.folder.name,
            folder=str(content.folder),
            documents=tuple(corpus.documents.values()),
            queries=queries,
            truths=known,
            groups=members,
            acl_default=self.acl_default,
            contract=agreed,
            fingerprints={
                "corpus": corpus.fingerprint,
                "ground_truth": fingerprint.ground_truth(queries, known, rest),
            },
            counts=corpus.counts | counts(queries, known),
            warnings=(),
        )

    @property
    def qrels(self) -> str:
        return f"qrels/{self.split}.tsv"

    def asked(self, content: Content, known: Known) -> Rows:
        if known.file not in content.files:
            raise content.missing(known.file) if not refused(content, known.file) else unknowable()
        return queries(entries(known.file, content.files[known.file], content.problems, known), known, content.problems)

    def grades(self, content: Content, known: Known, corpus: Corpus) -> Grades | None:
        """Document grades of the split, or None where the folder has no qrels at all."""
        if self.qrels in content.files:
            return qrels(self.qrels, content.files[self.qrels], known, corpus.known, content.problems)
        splits = [key.removeprefix("qrels/").removesuffix(".tsv") for key in content.files if key.startswith("qrels/")]
        if refused(content, "ground_truth.jsonl", self.qrels):
            raise unknowable()
        if splits or "ground_truth.jsonl" not in content.files:
            found = f"no such file but {', '.join(splits) or 'neither qrels nor ground_truth.jsonl'}"
            advice = "set it to one that exists"
            raise DatasetError([problem(self.qrels, None, found, "the file of dataset.split", advice)])
        return None

    def completed(self, kept: Rows, written: Truths, told: Known, grades: Grades | None) -> Truths:
        """A truth for every kept query: the written one or what the qrels say, with evidence as `evidence` declares.

        Queries whose line of ground truth is broken have none.
        """
        found: Truths = {}
        for key, (query, _) in kept.items():
            if key not in written and (key in told.lines or key in told.mentioned):
                continue
            fallback = Truth(key, documents=(grades or {}).get(key, {})), self.qrels
            truth, where = written.get(key, fallback)
            if query.answerable and not truth.alternatives:
                truth = replace(truth, alternatives=evidence(truth, self.evidence, self.sufficient_grade))
            found[key] = truth, where
        return found


@dataclass(frozen=True)
class Checked:
    """What reading a folder found: the problems in order, or the dataset; the manifest if the folder is frozen."""

    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    dataset: Dataset | None
    frozen: Manifest | None


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


def refused(content: Content, *names: str) -> bool:
    """Whether one of the files is there but could not be read, which is told already."""
    return any(found.file in names or found.file == "qrels" for found in content.problems.found if found.line is None)


def whole(document: Document) -> Document:
    return document


def referred(files: Mapping[str, bytes], qrels: str) -> Keep:
    """Keeps texts that ground truth speaks of, dates, fields and rights of documents that the qrels make evidence."""
    texts: set[str] = set()
    for entry in entries("ground_truth.jsonl", files.get("ground_truth.jsonl", b""), Problems()):
        level: list[Any] = [*entry.value.values()]
        while level:
            texts.update(value for value in level if isinstance(value, str))
            level = [inner for value in level if isinstance(value, (dict, list)) for inner in contained(value)]
    judged = named(qrels, files.get(qrels, b""))

    def keep(document: Document) -> Document | None:
        if document.id in texts:
            return document
        return replace(document, text="", title="") if document.id in judged else None

    return keep


def judged(rows: Rows, grades: Grades | None, name: str, problems: Problems) -> Rows:
    """The queries that the qrels judge; without a single judgment the folder is of no use."""
    if grades == {} and not problems.found:
        with problems:
            advice = "fill the file or add ground_truth.jsonl"
            raise DatasetError([problem(name, None, "no judgment", "at least one", advice)])
    return {key: row for key, row in rows.items() if key in (grades or {})}


def check(kept: Rows, truths: Truths, corpus: Corpus, readers: Readers, problems: Problems) -> None:
    """Evidence must be readable by who asks, valid when it is asked for, and about the subject of the query."""
    checked = corpus.with_acl and all(found.file != "groups.jsonl" for found in problems.found)
    for key, (query, line) in kept.items():
        with problems:
            rules.known(query, line, corpus)
        truth, where = truths.get(key, (Truth(key), line))
        if not truth.alternatives:
            continue
        with problems:
            needed = rules.Evidence(query, where, rules.needed(truth, corpus))
            if checked:
                problems.tried(None, rules.readable, needed, truth, readers)
            problems.tried(None, rules.valid, needed)
            problems.tried(None, rules.match, needed)


def silent(corpus: Corpus, acl_default: str) -> tuple[str, ...]:
    """A warning where only some documents carry an ACL."""
    bare = len(corpus.digests) - corpus.with_acl
    if not (bare and corpus.with_acl):
        return ()
    return (f'documents without ACL, read by {acl_default} (dataset.acl_default): {bare} (first "{corpus.bare}")',)


def undefined(members: Mapping[str, Sequence[str]], corpus: Corpus, rows: Rows) -> tuple[str, ...]:
    """A warning where groups.jsonl defines groups, but not all that are named."""
    places = dict(corpus.groups)
    for query, where in rows.values():
        places |= {name: where for name in sorted(query.principals) if name not in places}
    places |= {name: "groups.jsonl" for names in members.values() for name in names if name not in places}
    missing = [name for name in places if name.startswith("group:") and name not in members] if members else []
    if not missing:
        return ()
    return (f'groups that groups.jsonl does not define: {len(missing)} (first "{missing[0]}", {places[missing[0]]})',)


def unguarded(critical: Collection[str]) -> tuple[str, ...]:
    """A warning where critical queries are excluded."""
    if not critical:
        return ()
    return (f'critical queries that are excluded, and guard nothing: {len(critical)} (first "{min(critical)}")',)


def unplaced(agreed: Mapping[str, Any], corpus: Corpus) -> tuple[str, ...]:
    """A warning where sources are ordered by a field that no document carries."""
    field = (agreed.get("authority") or {}).get("field")
    if field is None or field in corpus.fields:
        return ()
    return (f'contract.yaml orders sources by a field that no document carries: "{field}"; all count as unknown',)


def counts(chosen: tuple[Query, ...], truths: Mapping[str, Truth]) -> dict[str, int]:
    return {
        "queries": len(chosen),
        "queries_unanswerable": sum(not query.answerable for query in chosen),
        "queries_with_alternatives": sum(bool(truth.alternatives) for truth in truths.values()),
        "queries_by_document": sum(truth.by_document for truth in truths.values()),
    }
