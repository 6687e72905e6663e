"""Two runs go in, the contexts of both as rows of a blind sheet out; how far a measure agrees with an expert, back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ablate.comparison import SUFFICIENT
from ablate.dataset.lines import quoted
from ablate.records import RunRecord
from ablate.review.sheet import CONTEXTS, BadSheet, Cells, Key, Row, hashed
from ablate.review.sides import Sides
from ablate.review.sources import Blind, asked, drawn, reader
from ablate.review.words import CANNOT_TELL, ENOUGH, meant
from ablate.types import Chunk, Query

Context = tuple[Chunk, ...]

RULE = "\n\n* * *\n\n"
"""What stands between two passages of a cell."""


def blind(sides: Sides, size: int | None, seed: int, principals: Sequence[str]) -> Blind:
    """The whole contexts of both sides, equal ones once; left out are empty ones and those with a text that the
    reviewer may not read.

    Passages that who asks may not read are not shown: they support nothing, whatever they say.
    """
    chosen, left_out = _chosen(sides, size, seed, principals)
    return Blind([_row(number, sides, query, context) for number, (query, context) in enumerate(chosen, 1)], left_out)


def _chosen(
    sides: Sides, size: int | None, seed: int, principals: Sequence[str]
) -> tuple[list[tuple[str, Context]], dict[str, int]]:
    readable = reader(sides.audit, principals)
    found: dict[str, list[Context]] = {}
    empty, unread = 0, 0
    for query in sides.dataset.queries:
        handed = dict.fromkeys(_handed(sides, record, query) for record in sides.runs)
        written = [context for context in handed if context]
        found[query.id] = [c for c in written if all(readable(passage.document.id) for passage in c)]
        empty += len(handed) - len(written)
        unread += len(written) - len(found[query.id])
    chosen, cut = drawn(found, size, seed)
    return chosen, {"without a passage": empty, "forbidden to the reviewer": unread, "beyond --size": cut}


def _handed(sides: Sides, record: RunRecord, query: Query) -> Context:
    denied = sides.audit.denied(query.principals)
    return tuple(passage for passage in sides.context(record, query.id) if passage.document.id not in denied)


def _row(number: int, sides: Sides, query: str, context: Context) -> Cells:
    words = dict.fromkeys(CONTEXTS.filled, "")
    return {**asked(number, sides.queries[query]), "context": shown(context), **words}


def shown(context: Context) -> str:
    """The passages in reading order, each under the title of its document."""
    return RULE.join(f"{passage.document.title or passage.document.id}\n{passage.text}" for passage in context)


@dataclass(frozen=True)
class Pair:
    """One context of one query: whether the expert and the measure say that it is enough."""

    query: str
    expert: bool
    measure: bool
    who: str
    note: str


@dataclass(frozen=True)
class Agreement:
    """How far `context/sufficient` says what an expert says.

    `undecided` counts rows where the expert cannot tell, `silent` those without a verdict, `unmeasured` those whose
    query has no alternatives, so that the measure does not apply.
    """

    pairs: Sequence[Pair]
    undecided: int
    silent: int
    unmeasured: int

    @property
    def apart(self) -> list[Pair]:
        """The contexts on which the two disagree."""
        return [pair for pair in self.pairs if pair.expert != pair.measure]

    @property
    def raw(self) -> float | None:
        """The share of contexts on which they agree; None without any."""
        return 1 - len(self.apart) / len(self.pairs) if self.pairs else None

    @property
    def kappa(self) -> float | None:
        return kappa([pair.expert for pair in self.pairs], [pair.measure for pair in self.pairs])


def kappa(left: Sequence[bool], right: Sequence[bool]) -> float | None:
    """Cohen's kappa of two raters: (observed - expected) / (1 - expected), from the share of equal verdicts.

    Expected is the share that would be equal if each gave its own yes and no at random. None without a verdict, and
    where both give one and the same throughout: then 1 - expected is 0. J. Cohen, A coefficient of agreement for
    nominal scales, Educational and Psychological Measurement 20 (1960), 37-46.
    """
    n, yes, also = len(left), sum(left), sum(right)
    expected = yes * also + (n - yes) * (n - also)  # times n squared, as whole numbers
    observed = n * sum(a == b for a, b in zip(left, right, strict=True))
    return (observed - expected) / (n * n - expected) if n * n > expected else None


def agreement(rows: Sequence[Row], key: Key, sides: Sides) -> Agreement:
    """Compare filled rows with the runs that they came from.

    Raises:
        BadSheet: a verdict that is no such word, a verdict without a name, or a sheet that these runs do not give.

    """
    values = measured(key, sides)
    filled = [(row, meant(ENOUGH, row.said("sufficient"))) for row in rows if row.said("sufficient")]
    problems = [problem for row, verdict in filled for problem in wrong(row, verdict)]
    if problems:
        raise BadSheet("\n".join(problems))
    decided = [(row, verdict == "yes", values[row["item"]]) for row, verdict in filled if verdict != CANNOT_TELL]
    return Agreement(
        [Pair(row["query_id"], yes, v, row.said("who"), row.said("note")) for row, yes, v in decided if v is not None],
        undecided=len(filled) - len(decided),
        silent=len(key.rows) - len(filled),
        unmeasured=sum(value is None for _, _, value in decided),
    )


def wrong(row: Row, verdict: str | None) -> Iterator[str]:
    """What is wrong with a verdict on a context."""
    if verdict is None:
        words = ", ".join(ENOUGH)
        yield row.problem("sufficient", quoted(row.said("sufficient")), f"one of {words}", "correct the verdict")
    if not row.said("who"):
        yield row.problem("who", "nothing", "the name of who judged", "write it beside the verdict")


def measured(key: Key, sides: Sides) -> Mapping[str, bool | None]:
    """Item -> whether the measure calls its context sufficient; None where it does not apply to the query.

    The items are drawn again as they were for the sheet, which therefore need not tell whose they are.
    """
    made = key.made
    chosen, _ = _chosen(sides, made.get("size"), made.get("seed", 0), made.get("principals", ()))
    found: dict[str, bool | None] = {}
    for number, (query, context) in enumerate(chosen, 1):
        row = _row(number, sides, query, context)
        if key.rows.get(row["item"]) != hashed(CONTEXTS, row):
            raise BadSheet(
                f"{row['item']}: found another context in the runs, expected the one that was sent out; "
                "the runs or the dataset have changed: export the sheet again"
            )
        side = next(record for record in sides.runs if _handed(sides, record, sides.queries[query]) == context)
        value = side.values(SUFFICIENT).get(query)
        found[row["item"]] = None if value is None else value == 1
    return found
