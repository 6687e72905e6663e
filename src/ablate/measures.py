"""The name of a measure goes in, its formula in words, unit, better direction and number format come out."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

HIGHER, LOWER, NEITHER = "higher", "lower", "neither"


OF_A_RUN = (
    *("abstention/", "chunking/", "cohort/", "delta/", "ingestion/", "latency/"),
    *("context/evidence_per_1k_tokens", "cost/per_sufficient_query"),
)
"""How the names of measures begin that a whole run has, and no query by itself."""

OPEN = ("retrieval/completion_rank",)
"""Measures that a query may be without because of what was found: those that never get there would leave the mean."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the legend: `better` is higher, lower or neither, `style` is what `format(value, style)` takes."""

    name: str
    formula: str
    unit: str
    better: str
    style: str

    def show(self, value: float | None) -> str:
        """The value as it is printed; None is not applicable."""
        return "n/a" if value is None else format(value, self.style)


def _share(name: str, formula: str, better: str = HIGHER) -> Measure:
    return Measure(name, formula, "share", better, ".3f")


def _count(name: str, formula: str, better: str = NEITHER, unit: str = "count", style: str = ".0f") -> Measure:
    return Measure(name, formula, unit, better, style)


CATALOGUE = (
    _share(
        "retrieval/coverage_at_{k}",
        "the most, over the alternatives, of the share of their facts that the first {k} chunks support",
    ),
    _share(
        "retrieval/coverage_at_{tokens}_tokens",
        "the most, over the alternatives, of the share of their facts that the first {tokens} tokens read support, the "
        "last passage cut at a token; read are the passages of the context and then the rest of the ranking",
    ),
    _share(
        "retrieval/coverage_area_{tokens}_tokens",
        "mean of the coverage at 1, 2, ... {tokens} tokens read: the area under its curve, divided by {tokens}",
    ),
    _share("retrieval/sufficient_at_{k}", "1 if the first {k} chunks support every fact of some alternative"),
    _count(
        "retrieval/completion_rank",
        "the least number of first chunks that support every fact of some alternative, or never",
        LOWER,
        "rank",
    ),
    _share("retrieval/completion_rr", "1 / the rank that completes the evidence, 0 if none does"),
    _share(
        "retrieval/recall_at_{k}",
        "share of the judged spans of grade >= 1 that the first {k} chunks support; without any, coverage_at_{k}",
    ),
    _share(
        "retrieval/hit_at_{k}",
        "1 if the first {k} chunks support a judged span of grade >= 1; without any, a fact of some alternative",
    ),
    _share(
        "retrieval/precision_at_{k}",
        "chunks among the first {k} that add new letters of a judged span of grade >= 1 complete by then, divided by "
        "{k}; without any, the most over the alternatives of the same with their facts",
    ),
    _share(
        "retrieval/ndcg_at_{k}",
        "discounted gain of the judged spans of grade >= 1 that each chunk completes over the ideal one, linear gain, "
        "first {k} places; without any, the most over the alternatives of the same with their facts, grade 1 each; "
        "comparable between runs with the same chunks",
    ),
    _share(
        "retrieval/mrr",
        "1 / the least rank at which a judged span of grade >= 1 is supported, 0 if none; without any, the most over "
        "the alternatives of the same with their facts; it does not tell whether an alternative of several facts is "
        "complete",
    ),
    _share(
        "retrieval/ann_recall",
        "share of the candidates of an exact search, to the same depth, that the approximate one found",
    ),
    _share(
        "retrieval/judged_at_{k}",
        "share of the first {k} chunks found about which the ground truth says something, grade 0 too, 1 if none was "
        "found; the others count as useless without anybody's word",
        NEITHER,
    ),
    _share("doc/recall_at_{k}", "relevant documents among the first {k} over all relevant documents"),
    _share("doc/precision_at_{k}", "relevant documents among the first {k}, divided by {k}"),
    _share("doc/ndcg_at_{k}", "discounted gain of the first {k} documents over the ideal one, linear gain"),
    _share("doc/mrr", "1 / rank of the first relevant document, 0 if none"),
    _share("doc/map", "sum of the precision at each relevant document found, over all relevant documents"),
    _share("context/sufficient", "1 if the context holds every fact of some alternative"),
    _share("context/coverage", "the most, over the alternatives, of the share of their facts that the context holds"),
    _share("context/nothing", "1 if the context holds no fact of any alternative", LOWER),
    _share("context/part", "1 if the context holds some facts but no whole alternative", NEITHER),
    _share(
        "context/part_one_fact_missing",
        "1 if the context holds some facts and the best alternative lacks one",
        NEITHER,
    ),
    _count("context/facts", "supported facts of the best alternative", HIGHER, style=".2f"),
    _share("context/density", "distinct letters of evidence over all letters handed over"),
    _count("context/tokens", "tokens handed over", LOWER, "tokens"),
    _count(
        "context/evidence_per_1k_tokens",
        "supported facts of the best alternatives / tokens of these queries x 1000",
        HIGHER,
        "facts",
        ".2f",
    ),
    _count("acl/violations", "documents in the context that the frozen ACL denies", LOWER, "documents", ".3f"),
    _count(
        "acl/candidate_violations",
        "documents that any stage after access lets through and the frozen ACL denies",
        LOWER,
        "documents",
        ".3f",
    ),
    _share("acl/exposure", "1 if a search without access puts a forbidden chunk within depth", NEITHER),
    _share("acl/starved", "1 if fewer hits are left than the exact search over the readable set gives", LOWER),
    _share("freshness/stale_at_{k}", "of the first {k} chunks, those of documents that are not valid on as_of", LOWER),
    _share("freshness/unknown_at_{k}", "of the first {k} chunks, those of documents without dates", LOWER),
    _share("freshness/stale_tokens", "of the tokens handed over, those of documents not valid on as_of", LOWER),
    _share("freshness/unknown_tokens", "of the tokens handed over, those of documents without dates", LOWER),
    _share("freshness/stale_first", "1 if a chunk that is not valid on as_of stands before the evidence", LOWER),
    _share("authority/below_at_{k}", "of the first {k} chunks, those below the contract's floor of authority", LOWER),
    _share(
        "authority/unknown_at_{k}", "of the first {k} chunks, those of sources that the contract does not name", LOWER
    ),
    _share("authority/below_tokens", "of the tokens handed over, those below the contract's floor of authority", LOWER),
    _share("authority/unknown_tokens", "of the tokens handed over, those of sources the contract does not name", LOWER),
    _share("authority/below_first", "1 if a chunk below the floor of authority stands before the evidence", LOWER),
    _count("abstention/top_score", "score of the best hit, on the scale of what gave it", style=".3f", unit="score"),
    _share(
        "abstention/false_answer",
        "of the queries without an answer, those whose best score reaches the threshold that costs least on the others",
        LOWER,
    ),
    _share("abstention/false_answer_{why}", "the same of the queries that have none because of {why}", LOWER),
    _share(
        "abstention/false_abstention",
        "of the queries that have an answer, those whose best score lies below that threshold, or that found nothing",
        LOWER,
    ),
    _share("abstention/auroc", "chance that a query with an answer has a higher best score than one without"),
    _share(
        "abstention/risk_coverage",
        "mean, over all shares of queries answered, the surest first, of the share that has no answer or no evidence",
        LOWER,
    ),
    _count("ingestion/documents_expected", "lines of the corpus", unit="documents"),
    _count("ingestion/documents_indexed", "documents that have a chunk", HIGHER, "documents"),
    _share("ingestion/coverage", "documents indexed over documents expected"),
    _count("ingestion/empty_documents", "documents without text", LOWER, "documents"),
    _share("ingestion/units_verbatim", "share of units that stand verbatim in the ingested text"),
    _count("chunking/chunks", "chunks of the corpus; parents, where chunks have some", unit="chunks"),
    _share("chunking/units_whole", "share of units that one chunk alone supports"),
    _share("chunking/alternatives_whole", "share of alternatives whose facts one chunk alone supports"),
    _count("chunking/truncated", "indexed chunks cut off by the encoder's limit", LOWER, "chunks"),
    _share("chunking/truncated_share", "share of the indexed chunks cut off by the encoder's limit", LOWER),
    _count("latency/{stage}_p{percent}", "{percent} % of the queries take no longer in {stage}", LOWER, "ms", ".1f"),
    _count(
        "latency/log_ratio",
        "median over queries of log(time of the variant / time of the baseline), measured in one session",
        LOWER,
        "log ratio",
        "+.3f",
    ),
    _count("cost/query", "what a query uses times its prices", LOWER, "price", ".6g"),
    _count(
        "cost/per_sufficient_query",
        "cost of the queries with alternatives over the number of sufficient ones",
        LOWER,
        "price",
        ".6g",
    ),
    _count(
        "delta/{measure}",
        "mean over queries of the difference to the baseline in {measure}",
        style="+.3f",
    ),
    _count("cohort/{key}/{value}/{measure}", "{measure} of the queries with {key}={value}", style=""),
)
"""Every measure, by the pattern of its name; the first that matches describes it."""

FIELDS = {
    "k": r"[1-9]\d*",
    "tokens": r"[1-9]\d*",
    "percent": r"\d\d",
    "stage": r"\w+",
    "why": r"[a-z_]+",
    "key": r"[\w.-]+",
    "value": r"[\w.-]+",
    "measure": r".+",
}


def describe(name: str) -> Measure:
    """The legend of one measure, with the numbers of its name filled in.

    Raises:
        KeyError: no measure has such a name.

    """
    measure, fields = _matched(name)
    return _filled(measure, fields)


def family(name: str) -> Measure:
    """The legend of a measure at every cut-off: `recall_at_5` and `recall_at_10` are both `recall_at_k`.

    Raises:
        KeyError: no measure has such a name.

    """
    measure, fields = _matched(name)
    return _filled(measure, {**fields, **{name: name for name in ("k", "tokens") if name in fields}})


def cohort(measure: str, key: str, value: str) -> str:
    """The name of a measure over one cohort, in characters that every store of metrics takes."""
    return f"cohort/{slug(key)}/{slug(value)}/{measure}"


def slug(text: str) -> str:
    """Letters, digits, `_` and `-` stay, every other character is its code point in hex between two dots."""
    return "".join(c if c.isalnum() or c in "_-" else f".{ord(c):x}." for c in text)


def unslug(text: str) -> str:
    """The inverse of `slug`."""
    return re.sub(r"\.([0-9a-f]+)\.", lambda found: chr(int(found[1], 16)), text)


def _matched(name: str) -> tuple[Measure, dict[str, str]]:
    for measure in CATALOGUE:
        found = re.fullmatch(_expression(measure.name), name)
        if found:
            return measure, found.groupdict()
    raise KeyError(name)


@cache
def _expression(pattern: str) -> str:
    return re.sub(r"\\\{(\w+)\\\}", lambda found: f"(?P<{found[1]}>{FIELDS[found[1]]})", re.escape(pattern))


def _filled(measure: Measure, fields: dict[str, str]) -> Measure:
    """A pattern with its fields; one that speaks of another measure takes over its unit and direction."""
    filled = replace(measure, name=measure.name.format(**fields))
    words = {field: unslug(text) for field, text in fields.items() if field in ("key", "value")}
    if "measure" not in fields:
        return replace(filled, formula=measure.formula.format(**fields))
    inner = describe(fields["measure"])
    return replace(
        inner,
        name=filled.name,
        formula=measure.formula.format(**{**fields, **words}),
        style=measure.style or inner.style,
    )
