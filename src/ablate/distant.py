"""A study in an MLflow store goes in, its runs side by side come out: from metrics and tags alone, however many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from ablate.comparison import DOCUMENT_NDCG, P50, SUFFICIENT, TOKENS, VIOLATIONS, short, some
from ablate.errors import ConfigError
from ablate.page import Page, milliseconds, signed
from ablate.records import RunNotFound
from ablate.statistics.words import Word
from ablate.tracking import Store, patient, reason

AT_ONCE = 1000
"""Runs that are asked for at a time."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run as the store has it; what it does not have is None."""

    name: str
    run: str
    variant: str
    baseline: bool
    status: str
    word: str
    measure: str
    value: float | None
    difference: float | None
    tokens: float | None
    p50: float | None
    violations: float | None
    error: str


def rows(store: Store, study: str | None) -> tuple[str, list[Row]]:
    """The runs of a study, or of the one that was written to last: baselines first, then the largest difference.

    Raises:
        ConfigError: the store cannot be asked.
        RunNotFound: it has no such study, or no run.

    """
    try:
        return _rows(store, study)
    except RunNotFound:
        raise
    except Exception as error:  # of MLflow, of the network, of a database
        raise ConfigError(
            f"{store.shown}: found no MLflow store to ask ({reason(error)}), expected one; check the address, the "
            "password and that the server is up"
        ) from error


def _rows(store: Store, study: str | None) -> tuple[str, list[Row]]:
    if store.file is not None and not store.file.exists():
        raise RunNotFound(f"{store.shown}: found no database, expected one with runs")
    client = store.client()
    known = patient(partial(client.search_experiments, order_by=["last_update_time DESC"]))
    named = [each for each in known if (each.name == study if study else each.name != "Default")]
    if not named:
        raise RunNotFound(f"study {study!r}: found none in {store.shown}, expected one of: {names(known)}")
    found: list[Any] = []
    token = None
    while token is not None or not found:
        page = patient(partial(client.search_runs, [named[0].experiment_id], max_results=AT_ONCE, page_token=token))
        found += page
        token = page.token
        if not page:
            break
    if not found:
        raise RunNotFound(f"study {named[0].name!r}: found no run in {store.shown}, expected some")
    made = [row(run) for run in found if "ablate.variant" in run.data.tags]
    made.sort(key=lambda row: (not row.baseline, row.difference is None, -(row.difference or 0.0), row.name))
    return str(named[0].name), made


def names(experiments: Sequence[Any]) -> str:
    return some([each.name for each in experiments if each.name != "Default"]) or "there is none"


def row(run: Any) -> Row:
    metrics, tags = run.data.metrics, run.data.tags
    measure = SUFFICIENT if SUFFICIENT in metrics else DOCUMENT_NDCG
    return Row(
        name=str(run.info.run_name),
        run=tags.get("ablate.run", run.info.run_id),
        variant=tags["ablate.variant"],
        baseline="ablate.component" not in tags,
        status=str(run.info.status),
        word=tags.get("ablate.verdict", ""),
        measure=measure,
        value=metrics.get(measure),
        difference=metrics.get(f"delta/{measure}"),
        tokens=metrics.get(TOKENS),
        p50=metrics.get(P50),
        violations=metrics.get(VIOLATIONS),
        error=tags.get("ablate.error", ""),
    )


def answer(found: Sequence[Row]) -> str:
    """How many variants have which word, and the largest gains."""
    counts = Counter(row.word or row.status.lower() for row in found if not row.baseline)
    order = [*map(str, Word), *sorted(counts)]
    said = [f"{counts[word]} {word}" for word in dict.fromkeys(order) if counts[word]]
    best = [f"{row.variant} {signed(row.difference or 0)}" for row in found if row.word == Word.BETTER]
    gains = f"; better: {some(best)}" if best else ""
    leaking = [row.variant for row in found if row.violations]
    alarm = f"FORBIDDEN documents in {some(leaking)}; " if leaking else ""
    return f"{alarm}{', '.join(said) or 'no variant'}{gains}"


def page(study: str, found: Sequence[Row], page: Page) -> Iterator[str]:
    """The answer, and a line a run."""
    yield page.title(answer(found))
    yield page.title(f"{study}: {len(found)} runs, as MLflow has them; without --uri the records on disk are compared")
    measure = short(found[0].measure) if found else ""
    headings = ["run", "word", measure, "difference", "tokens", "p50 ms", "forbidden", "status"]
    yield page.table(headings, [cells(row) for row in found], words=(0, 1, 7))


def cells(row: Row) -> list[str]:
    return [
        row.variant,
        row.word,
        shown(row.value, "{:.3f}"),
        signed(row.difference) if row.difference is not None else "",
        shown(row.tokens, "{:.0f}"),
        milliseconds(row.p50) if row.p50 is not None else "n/a",
        shown(row.violations, "{:.3g}"),
        "" if row.status == "FINISHED" else row.status,
    ]


def shown(value: float | None, form: str) -> str:
    return "n/a" if value is None else form.format(value)


def data(study: str, found: Sequence[Row]) -> dict[str, Any]:
    """The same for programs."""
    return {"study": study, "answer": answer(found), "runs": [asdict(row) for row in found]}
