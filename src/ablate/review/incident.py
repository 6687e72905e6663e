"""What went wrong in production goes in, a question that asks for it again comes out in a new version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.dataset import Folder
from ablate.dataset.lines import Entry, described, near, parsed, quoted
from ablate.dataset.queries import WHY
from ablate.dataset.truth import located
from ablate.dataset.write import absent
from ablate.errors import DatasetError
from ablate.review.version import Published, version
from ablate.types import Document

LAYERS = (
    "ingestion", "chunking", "access", "filter", "candidates", "fusion", "rerank", "cut-off", "packing",
)  # fmt: skip
"""Where evidence can be lost on its way to the reader, in the order of the way."""

_KEYS = ("query", "case", "id", "critical", "layer", "owner", "principals", "as_of", "why", "alternatives", "note")
_ALSO = ("intent", "filter", "subject", "compares", "cohorts", "cluster")
"""Keys of a query that are taken over as they are."""


@dataclass(frozen=True)
class Incident:
    """A failure as it was reported; `value` is the object that tells it, `where` the file that it came from."""

    where: str
    value: Mapping[str, Any]

    @property
    def entry(self) -> Entry:
        return Entry(self.where, self.value)

    @property
    def id(self) -> str:
        return self.entry.maybe("id") or f"incident-{self.entry.name('case')}"

    def query(self) -> dict[str, Any]:
        """The line of queries.jsonl.

        Raises:
            DatasetError: an unknown key, a wrong type, or a layer that does not exist.

        """
        entry = self.entry
        entry.only((*_KEYS, *_ALSO))
        layer, owner, why = entry.maybe("layer"), entry.maybe("owner"), entry.maybe("why")
        for key, found, known in (("layer", layer, LAYERS), ("why", why, WHY)):
            if found is not None and found not in known:
                entry.fault(key, quoted(found), f"one of {', '.join(known)}", near(found, known) or "choose one")
        row = {
            "_id": self.id,
            "text": entry.string("query"),
            "principals": list(entry.names("principals")),
            "answerable": why is None,
            "why": why,
            "as_of": entry.maybe("as_of"),
            "critical": entry.flag("critical", False),
            "case": entry.name("case"),
            "metadata": {key: name for key, name in (("layer", layer), ("owner", owner)) if name},
            **{key: entry.value[key] for key in _ALSO if entry.has(key)},
        }
        return {key: value for key, value in row.items() if value not in (None, [], {})}

    def truth(self, documents: Mapping[str, Document], who: str, when: str) -> dict[str, Any]:
        """The line of ground_truth.jsonl: each alternative's units, and who added them.

        Raises:
            DatasetError: evidence for what is called unanswerable, none for what is not, or a unit nobody can find.

        """
        entry = self.entry
        groups, why = entry.items("alternatives"), entry.maybe("why")
        if bool(groups) == bool(why):
            found = "evidence and a reason why there is none" if groups else "no evidence and no reason why"
            entry.fault("alternatives", found, "one of the two", "give --unit, or --why with " + ", ".join(WHY))
        for group in groups:
            if not isinstance(group, list):
                entry.fault("alternatives", described(group), "a list of units", "write it in square brackets")
        alternatives = [[self.unit(documents, value) for value in group] for group in groups]
        note = {"note": entry.string("note")} if entry.has("note") else {}
        said: list[dict[str, Any]] = [{"who": who, "when": when, "action": "incident", **note}]
        said += [{"who": who, "when": when, "action": "added", "alternative": n} for n in range(len(alternatives))]
        evidence = {"alternatives": alternatives} if alternatives else {}
        return {"query_id": self.id, **evidence, "reviewed": said}

    def unit(self, documents: Mapping[str, Document], value: Any) -> dict[str, Any]:
        """A unit as a file writes it, or of `document id:quote`; an id may hold colons itself."""
        if not isinstance(value, str):
            return dict(self.entry.inner("alternatives", value).value)
        cuts = [place for place, sign in enumerate(value) if sign == ":" and value[:place] in documents]
        if not cuts:
            first = value.partition(":")[0]
            self.entry.fault(
                "unit",
                quoted(value),
                "the id of a document, a colon and a quote from its text",
                near(first, documents) or "write it as guide:the words of the guide",
            )
        cut = next((cut for cut in cuts if value[cut + 1 :] in documents[value[:cut]].text), cuts[0])
        document, quote = value[:cut], value[cut + 1 :]
        if not quote:
            return {"doc_id": document}
        span = located(Entry(self.where, {"quote": quote}, "unit."), documents[document].text)[0]
        return {"doc_id": document, "start": span.start, "end": span.end, "quote": quote}


def read(path: Path) -> Incident:
    """An incident that a JSON file tells.

    Raises:
        DatasetError: the file cannot be read, or is no JSON object.

    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path}: found {error}, expected a JSON file in UTF-8; check --file") from error
    return Incident(path.name, parsed(path.name, text))


def told(flags: Mapping[str, Any], evidence: Sequence[str | None]) -> Incident:
    """An incident that the flags of a command tell; None among the evidence starts the next alternative."""
    groups: list[list[str]] = [[]]
    for unit in evidence:
        if unit is None:
            groups.append([])
        else:
            groups[-1].append(unit)
    value = {key: flag for key, flag in flags.items() if flag not in (None, [], False)}
    return Incident("incident", {**value, "alternatives": [group for group in groups if group]})


def add(incident: Incident, folder: Folder, to: Path, name: str | None, who: str, when: str) -> Published:
    """Write the next version of a dataset, called `name`, which asks the incident's question too.

    Raises:
        DatasetError: the dataset or the incident cannot be read, or its query is there already.

    """
    absent(to)
    if not who.strip():
        incident.entry.fault("who", "nothing", "the name of who adds it", "give --who")
    old = version(folder)
    row = incident.query()
    if incident.id in old.asked:
        incident.entry.fault("id", f'"{incident.id}", which queries.jsonl has already', "a new id", "give --id")
    truth = incident.truth(old.documents, who.strip(), when)
    return old.publish(to, name, {incident.id: truth}, {incident.id: row})
