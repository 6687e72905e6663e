"""A study in an MLflow store goes in, its runs side by side come out: from metrics and tags alone, however many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ablate.comparison import DOCUMENT_NDCG, P50, RESHAPING, SUFFICIENT, TOKENS, VIOLATIONS, short, some
from ablate.display import legal
from ablate.errors import ConfigError
from ablate.page import Page, milliseconds, signed
from ablate.records import RunNotFound
from ablate.statistics.words import Word
from ablate.tracking import Store, patient, reason

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment

AT_ONCE = 50
"""Runs that are asked for at a time: a server has to answer in time, however many metrics they have."""

ENDS = ("ASC", "DESC")

FRESH = {"Connection": "close"}
"""A connection that is kept leads to one process of a server, two may lead to the same; new ones to who is free."""

HTTP = ("http:", "https:")
DATABASES = ("sqlite", "postgresql", "mysql", "mssql")

OURS = "tags.`ablate.variant` LIKE '%'"
"""Which runs of a store were made by this program."""


@dataclass(frozen=True, slots=True)
class Held:
    """A run as a store tells of it."""

    id: str
    name: str
    status: str
    metrics: Mapping[str, float]
    params: Mapping[str, str]
    tags: Mapping[str, str]


Ask: TypeAlias = Callable[[str, str | None], tuple[list[Held], str | None]]
"""Asks, from one of the ends, for the runs that follow a token, None for the first; with the token of the next."""


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
    name, found = kept(store, study)
    made = [row(run) for run in found]
    made.sort(key=lambda row: (not row.baseline, row.difference is None, -(row.difference or 0.0), row.name, row.run))
    return name, made


def finished(store: Store, study: str) -> list[str]:
    """The MLflow ids of a study's runs that finished: baselines first, and each in the order in which they began.

    Raises:
        ConfigError: as in `rows`.
        RunNotFound: as in `rows`.

    """
    found = [run for run in kept(store, study)[1] if run.status == "FINISHED"]
    found.sort(key=lambda run: ("ablate.component" in run.tags, run.tags.get("ablate.started", ""), run.id))
    return [run.id for run in found]


def kept(store: Store, study: str | None) -> tuple[str, list[Held]]:
    """The name of a study and its runs as the store has them; raises what `rows` does."""
    try:
        return _kept(store, study)
    except RunNotFound:
        raise
    except Exception as error:  # of MLflow, of the network, of a database
        raise ConfigError(
            f"{store.shown}: found no MLflow store to ask ({reason(error)}), expected one; check the address, the "
            "password and that the server is up"
        ) from error


def _kept(store: Store, study: str | None) -> tuple[str, list[Held]]:
    if store.file is not None and not store.file.exists():
        raise RunNotFound(f"{store.shown}: found no database, expected one with runs")
    store.reached()
    if store.uri.startswith(DATABASES) and empty(store.uri):  # MLflow would make its tables there
        raise RunNotFound(f"{store.shown}: found a database without MLflow's tables, expected one with runs")
    client = store.client()
    experiment = named(client, study) if study else latest(client)
    if experiment is None and study is None:
        raise RunNotFound(f"{store.shown}: found no run that ablate has sent, expected some")
    if experiment is None:
        there = some([each.name for each in patient(client.search_experiments) if each.name != "Default"])
        raise RunNotFound(f"study {study!r}: found none in {store.shown}, expected one of: {there or 'there is none'}")
    found = [run for run in held(store, client, experiment.experiment_id) if "ablate.variant" in run.tags]
    if not found:
        raise RunNotFound(f"study {experiment.name!r}: found no run in {store.shown}, expected some")
    return str(experiment.name), found


def empty(address: str) -> bool:
    """Whether a database has no table of MLflow's."""
    from sqlalchemy import create_engine, inspect

    engine = create_engine(address)
    try:
        return not inspect(engine).has_table("experiments")
    finally:
        engine.dispose()


def named(client: MlflowClient, study: str) -> Experiment | None:
    """The experiment of a study, unless it was deleted."""
    found = patient(partial(client.get_experiment_by_name, study))
    return found if found and found.lifecycle_stage == "active" else None


def latest(client: MlflowClient) -> Experiment | None:
    """The experiment of the run that began last: an experiment itself does not know when it was written to."""
    known = [each.experiment_id for each in patient(client.search_experiments)]
    (*runs,) = patient(partial(client.search_runs, known, OURS, max_results=1)) if known else ()
    return patient(partial(client.get_experiment, runs[0].info.experiment_id)) if runs else None


def held(store: Store, client: MlflowClient, experiment: str) -> Iterable[Held]:
    """All runs of an experiment, page by page; those of a server, which can do two things at once, from both ends."""
    found: dict[str, Held] = {}
    if store.uri.startswith(HTTP):
        with ThreadPoolExecutor(len(ENDS)) as both:
            list(both.map(partial(gather, over_http(store.uri, experiment), found), ENDS))
    else:
        gather(in_database(client, experiment), found, ENDS[0])
    return found.values()


def gather(ask: Ask, found: dict[str, Held], end: str) -> None:
    """Add to what was found page after page, up to the last one or to one that was reached from the other end."""
    token = None
    while True:
        runs, token = ask(end, token)
        met = any(run.id in found for run in runs)
        found.update((run.id, run) for run in runs)
        if met or not token:
            return


def over_http(address: str, experiment: str) -> Ask:
    """Pages of a server, asked by MLflow's means but read as JSON: its client takes seconds for a thousand runs."""
    from mlflow.utils.credentials import get_default_host_creds
    from mlflow.utils.rest_utils import http_request, verify_rest_response

    who, where = get_default_host_creds(address), "/api/2.0/mlflow/runs/search"  # type: ignore[no-untyped-call]

    def ask(end: str, token: str | None) -> tuple[list[Held], str | None]:
        order = [f"attributes.run_id {end}"]
        wanted = {"experiment_ids": [experiment], "max_results": AT_ONCE, "order_by": order, "page_token": token}
        answer = http_request(who, where, "POST", extra_headers=FRESH, json=wanted)  # type: ignore[no-untyped-call]
        if not answer.ok:
            verify_rest_response(answer, where)  # raises what the server said
        page = answer.json()
        return [told(run["info"], run["data"]) for run in page.get("runs", ())], page.get("next_page_token")

    return ask


def told(info: Mapping[str, Any], data: Mapping[str, Any]) -> Held:
    """A run from JSON, where what is not a finite number is text."""
    metrics, params, tags = (
        {each["key"]: each.get("value", "") for each in data.get(kind, ())} for kind in ("metrics", "params", "tags")
    )
    numbers = {key: float(value or 0) for key, value in metrics.items()}
    return Held(info["run_id"], info.get("run_name", ""), info["status"], numbers, params, tags)


def in_database(client: MlflowClient, experiment: str) -> Ask:
    """Pages of a database that is asked without a server."""

    def ask(end: str, token: str | None) -> tuple[list[Held], str | None]:
        order = [f"attributes.run_id {end}"]
        page = patient(partial(client.search_runs, [experiment], max_results=AT_ONCE, order_by=order, page_token=token))
        return [
            Held(run.info.run_id, run.info.run_name or "", run.info.status, *(
                getattr(run.data, kind) for kind in ("metrics", "params", "tags")
            ))
            for run in page
        ], page.token  # fmt: skip

    return ask


def row(run: Held) -> Row:
    metrics, tags = run.metrics, run.tags
    measure = primary(run)
    return Row(
        name=run.name,
        run=tags.get("ablate.run", run.id),
        variant=tags["ablate.variant"],
        baseline="ablate.component" not in tags,
        status=run.status,
        word=tags.get("ablate.verdict", ""),
        measure=measure,
        value=metrics.get(legal(measure)),
        difference=metrics.get(f"delta/{legal(measure)}"),
        tokens=metrics.get(TOKENS),
        p50=metrics.get(P50),
        violations=metrics.get(VIOLATIONS),
        error=tags.get("ablate.error", ""),
    )


def primary(run: Held) -> str:
    """The measure that the word of a run is about, as `ablate.verdict.primary` chooses it."""
    chosen = run.params.get("verdict.primary", "null")
    if chosen != "null":
        return chosen
    fair = f"retrieval/coverage_at_{run.params.get('budget')}_tokens"
    if run.tags.get("ablate.component") in RESHAPING and fair in run.metrics:
        return fair
    return SUFFICIENT if SUFFICIENT in run.metrics else DOCUMENT_NDCG


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
