"""Runs in MLflow: from a run directory on disk to a run on a tracking store, sent once and never left running."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from ablate.courier import WAITING, Errand
from ablate.display import figures, name, parameters, source, tags, told
from ablate.errors import ConfigError
from ablate.page import clean, public
from ablate.records import RunRecord, note
from ablate.workspace import Workspace

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from ablate.table import Comparison

T = TypeVar("T")

SQLITE = "sqlite:///"

SCHEMES = ("http", "https", "sqlite", "postgresql", "mysql", "mssql", "databricks")
"""What the address of an MLflow store may begin with."""

BATCH = 100
PATIENCE = 60.0
"""Seconds for which a locked database is tried again."""

WITHOUT_TEXT = frozenset(
    {
        "changes.json",
        "compact.jsonl",
        "comparison.md",
        "config.yaml",
        "inputs.json",
        "latency.jsonl",
        "ledger.jsonl",
        "metrics.json",
        "overrides.yaml",
        "queries.jsonl",
        "ranking.jsonl",
        "ranking.trec",
        "run.json",
    }
)
"""Files that hold ids, offsets, digests and numbers. Only these leave the machine unasked: a new file is held back."""

ERRORS = frozenset({"comparison.md", "run.json"})
"""Files that quote the error of a failed run, and with it perhaps a document."""


@dataclass(frozen=True)
class Off:
    """Keeps runs on disk alone."""

    def log(self, record: RunRecord, comparison: Comparison, workspace: Workspace) -> str | None:
        """Nothing is sent and nothing is wrong."""

    def retell(self, comparison: Comparison, workspace: Workspace) -> str | None:
        """Nothing was told."""

    def errand(self, workspace: Workspace) -> None:
        """A courier has nothing to do."""


@dataclass(frozen=True)
class Mlflow:
    """Sends runs to the MLflow store at `uri` (null: `MLFLOW_TRACKING_URI`, or else the workspace's own).

    With `log_text` a server gets the files that hold texts of documents and queries too; a local store always does.
    """

    uri: str | None
    log_text: bool

    def __post_init__(self) -> None:
        uri = self.uri or os.environ.get("MLFLOW_TRACKING_URI") or SQLITE
        scheme = uri.partition(":")[0].partition("+")[0]
        if ":" in uri and scheme != "file" and scheme not in SCHEMES:
            raise ConfigError(
                f"uri: found {public(uri)!r}, expected an address that begins with one of {', '.join(SCHEMES)}; "
                "correct it, or leave it empty for experiments/mlflow.db"
            )
        if (":" not in uri and uri != "databricks") or uri.startswith("file:"):
            raise ConfigError(
                f"uri: found {uri!r}, a folder of files, which MLflow no longer writes, expected a database or a "
                "server; leave it and MLFLOW_TRACKING_URI empty for experiments/mlflow.db, and bring older runs along "
                "with `mlflow migrate-filestore --source ./mlruns --target sqlite:///experiments/mlflow.db`"
            )

    def store(self, workspace: Workspace) -> Store:
        """The store that is meant."""
        uri = self.uri or os.environ.get("MLFLOW_TRACKING_URI") or f"{SQLITE}{workspace.experiments / 'mlflow.db'}"
        if uri.startswith(SQLITE):
            uri = f"{SQLITE}{Path(uri.removeprefix(SQLITE)).expanduser().absolute()}"
        return Store(uri, workspace)

    def has(self, record: RunRecord, workspace: Workspace) -> bool:
        """Whether the store holds the run already; False if the store is away."""
        with suppress(Exception):  # what is wrong with the store is said by the sending that follows
            return self.store(workspace).has(record)
        return False

    def log(self, record: RunRecord, comparison: Comparison, workspace: Workspace) -> str | None:
        """Send a run, unless its directory notes that this store has it: the store itself is not asked. As `send`.

        Where a courier waits, it takes the run, and says itself what goes wrong.
        """
        if self.store(workspace).noted(record):
            return None
        courier, baseline = WAITING.get(), comparison.baseline(record)
        errand = replace(
            self.errand(workspace), run=str(record.folder), baseline=str(baseline.folder) if baseline else ""
        )
        return None if courier and courier.take(errand) else self.send(record, comparison, workspace)

    def errand(self, workspace: Workspace) -> Errand:
        """What a courier has to know to send the runs of a workspace."""
        return Errand(self.uri, self.log_text, str(workspace.root))

    def send(self, record: RunRecord, comparison: Comparison, workspace: Workspace) -> str | None:
        """Send a run, unless the store has it. What goes wrong comes back as a sentence: the run on disk is kept.

        `comparison` holds the run and, for a variant, its baseline.
        """
        from filelock import FileLock

        store = self.store(workspace)
        try:
            with FileLock(record.folder.parent / f".{record.folder.name}.sending"):
                if not store.has(record):
                    sent = store.log(record, comparison, self.log_text)
                    name = told(record, comparison)["mlflow.runName"]
                    note(record.folder, "tracking.json", {"uri": public(store.uri), **sent, "name": name})
        except Exception as error:  # of MLflow, of the network, of a database: the result on disk outlives them all
            where = workspace.short(record.folder)
            return (
                f"{record.label}: could not be sent to MLflow at {store.shown} ({reason(error)}), "
                f"kept in {where}; `python -m ablate sync` sends it"
            )
        return None

    def retell(self, comparison: Comparison, workspace: Workspace) -> str | None:
        """Rename the runs of a study that are sent, where what is told of them has changed. What goes wrong is said.

        `comparison` holds the whole study, and its words. Where a courier waits, it does it after what it has to send.
        """
        courier = WAITING.get()
        errand = replace(self.errand(workspace), study=comparison.records[0].study)
        return None if courier and courier.take(errand) else self.rename(comparison, workspace)

    def rename(self, comparison: Comparison, workspace: Workspace) -> str | None:
        """As `retell`, here and now."""
        store = self.store(workspace)
        try:
            for record in comparison.records:
                if store.noted(record) and record.tracking.get("name") != name(
                    record, comparison.baseline(record), comparison.findings.get(record.id)
                ):
                    store.retell(record, comparison)
        except Exception as error:  # as in `send`
            return f"what is told of {comparison.records[0].study} could not be sent to MLflow ({reason(error)})"
        return None


@dataclass(frozen=True)
class Store:
    """One MLflow tracking store."""

    uri: str
    workspace: Workspace

    @property
    def file(self) -> Path | None:
        """The database file of a local store; None for a server."""
        return Path(self.uri.removeprefix(SQLITE)) if self.uri.startswith(SQLITE) else None

    @property
    def shown(self) -> str:
        """The store as a message names it."""
        return self.workspace.short(self.file) if self.file else public(self.uri)

    @property
    def artifacts(self) -> str | None:
        """Beside the database of a local store; a server decides for itself."""
        return (self.file.absolute().parent / "artifacts").as_uri() if self.file else None

    def client(self) -> MlflowClient:
        quiet()
        self.reached()
        from mlflow import MlflowClient

        return MlflowClient(tracking_uri=self.uri)

    def reached(self) -> None:
        """Ask a server, or its database, one thing: MLflow itself tries for minutes before it says what is wrong."""
        if self.uri.startswith(("http:", "https:")):
            from mlflow.utils.credentials import get_default_host_creds
            from mlflow.utils.rest_utils import http_request

            who, where = get_default_host_creds(self.uri), "/api/2.0/mlflow/experiments/search"  # type: ignore[no-untyped-call]
            http_request(who, where, "POST", json={"max_results": 1}, max_retries=1, timeout=8)  # type: ignore[no-untyped-call]
        if self.uri.startswith(("postgresql", "mysql")):
            from sqlalchemy import create_engine

            engine = create_engine(self.uri, connect_args={"connect_timeout": 5})
            with engine.connect():
                engine.dispose()

    def create(self) -> None:
        """Make the database of a local store, if there is none: under a lock, beside its place and renamed."""
        if self.file is None or self.file.exists():
            return
        from filelock import FileLock

        self.file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.file.with_name(f".{self.file.name}.lock")):
            if self.file.exists():
                return
            for left in self.file.parent.glob(f".{self.file.name}.{'[0-9a-f]' * 32}*"):
                left.unlink()  # by a process that was killed meanwhile
            sys.stderr.write(f"creating {self.shown} (takes a few seconds, once)\n")
            quiet()
            from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

            fresh = self.file.with_name(f".{self.file.name}.{uuid.uuid4().hex}")
            try:
                SqlAlchemyStore(f"{SQLITE}{fresh}", self.artifacts).engine.dispose()  # type: ignore[no-untyped-call]
                os.replace(fresh, self.file)
            finally:
                for left in fresh.parent.glob(f"{fresh.name}*"):
                    left.unlink()

    def noted(self, record: RunRecord) -> bool:
        """Whether the note in the run's directory names this store; one whose file was deleted holds nothing."""
        return record.tracking.get("uri") == public(self.uri) and (self.file is None or self.file.exists())

    def has(self, record: RunRecord) -> bool:
        """Whether this store holds the run that is noted to be there."""
        if not self.noted(record):
            return False
        client = self.client()
        from mlflow.exceptions import MlflowException

        try:
            return bool(patient(partial(client.get_run, record.tracking["run_id"])))
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return False
            raise

    def page(self, study: str | None) -> str:
        """Where MLflow shows the runs of a study, as the end of its address: the bare experiment opens elsewhere."""
        found = patient(partial(self.client().get_experiment_by_name, study)) if study else None
        if found is None:
            return "#/experiments"
        return f"#/experiments/{found.experiment_id}/runs?workflowType=machine_learning"

    def log(self, record: RunRecord, comparison: Comparison, log_text: bool) -> dict[str, str]:
        """Write the run whole and end it, whatever happens on the way.

        A run of the same directory that an interrupted sending left behind is completed instead of made again.
        """
        held = frozenset() if log_text or self.file else ERRORS
        if held:
            record, comparison = silenced(record, comparison)
        self.create()
        client = self.client()
        experiment = self.experiment(client, record.study)
        run, ended = self.begun(client, experiment, record)
        if ended:
            return {"experiment_id": experiment, "run_id": run}
        status = "KILLED"
        try:
            self.fill(client, run, record, comparison)
            for file in record.files:
                inside = file.relative_to(record.folder)
                if not held or inside.as_posix() in WITHOUT_TEXT - (frozenset() if record.finished else held):
                    folder = None if inside.parent == Path() else inside.parent.as_posix()
                    patient(partial(client.log_artifact, run, str(file), folder))
            status = "FINISHED" if record.finished else "FAILED"
        finally:
            end = round((record.started.timestamp() + record.seconds) * 1000)
            patient(partial(client.set_terminated, run, status, end))
        return {"experiment_id": experiment, "run_id": run}

    def experiment(self, client: MlflowClient, study: str) -> str:
        """The id of the study's experiment, which is made if it is new, whoever else makes it at this moment."""
        from mlflow.exceptions import MlflowException

        found = patient(partial(client.get_experiment_by_name, study))
        if found is None:
            where = f"{self.artifacts}/{quote(study, safe='')}" if self.artifacts else None
            try:
                return str(patient(partial(client.create_experiment, study, where)))
            except MlflowException:
                found = patient(partial(client.get_experiment_by_name, study))
                if found is None:
                    raise
        if found.lifecycle_stage == "deleted":
            patient(partial(client.restore_experiment, found.experiment_id))
        return str(found.experiment_id)

    def begun(self, client: MlflowClient, experiment: str, record: RunRecord) -> tuple[str, bool]:
        """The run of this very directory, and whether it is whole; a new one if there is none."""
        from mlflow.entities import ViewType

        identity = {"ablate.run": record.id, "ablate.started": record.started.isoformat()}
        query = " and ".join(f"tags.`{name}` = '{value}'" for name, value in identity.items())
        found = patient(partial(client.search_runs, [experiment], query, ViewType.ALL, 1))
        if found:
            return found[0].info.run_id, found[0].info.status in ("FINISHED", "FAILED")
        started = round(record.started.timestamp() * 1000)
        run = patient(partial(client.create_run, experiment, started, identity, record.label))
        return run.info.run_id, False

    def retell(self, record: RunRecord, comparison: Comparison) -> None:
        """Tell anew what came of a run that the store holds: its name, its description, the comparison beside it."""
        from mlflow.entities import RunTag

        subject = comparison.about(record)
        client, run, texts = self.client(), record.tracking["run_id"], told(record, subject)
        patient(partial(client.log_batch, run, tags=[RunTag(key, value) for key, value in texts.items()]))
        patient(partial(client.log_text, run, subject.markdown(record), "comparison.md"))
        note(record.folder, "comparison.md", subject.markdown(record))
        note(record.folder, "tracking.json", {**record.tracking, "name": texts["mlflow.runName"]})

    def fill(self, client: MlflowClient, run: str, record: RunRecord, comparison: Comparison) -> None:
        """Parameters, metrics, tags, data sets."""
        from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

        baseline = comparison.baseline(record)
        texts = {**tags(record), **told(record, comparison)}
        moment = round(record.started.timestamp() * 1000)
        metrics = [Metric(key, value, moment, 0) for key, value in figures(record, baseline).items()]
        patient(partial(client.log_batch, run, metrics))
        for params in batched([Param(key, value) for key, value in parameters(record.config).items()]):
            patient(partial(client.log_batch, run, params=params))
        for marks in batched([RunTag(key, value) for key, value in texts.items()]):
            patient(partial(client.log_batch, run, tags=marks))
        for what in ("corpus", "ground_truth"):
            data = Dataset(f"{record.dataset} {what}", record.fingerprints.get(what, "")[:32], "local", source(record))
            inputs = [DatasetInput(data, [InputTag("mlflow.data.context", what)])]
            patient(partial(client.log_inputs, run, datasets=inputs))


def reason(error: Exception) -> str:
    """The first line of an error, without a password; of a connection that failed, why it did."""
    said = clean((str(error) or repr(error)).splitlines()[0])
    _, found, cause = said.rpartition("(Caused by ")
    cause = re.sub(r"^\w+\(\W?HTTPS?Connection(?:Pool)?\([^)]*\): ", "", cause) if found else ""
    return public(cause.rstrip("\"')") or said.partition(" NOTE:")[0]).rstrip(".")[:300]


def silenced(record: RunRecord, comparison: Comparison) -> tuple[RunRecord, Comparison]:
    """Both with the kind of an error alone: its words may quote a document."""
    kind = (record.error or "").partition(":")[0] or None
    quiet = replace(record, facts={**record.facts, "error": kind})
    return quiet, replace(
        comparison, records=tuple(quiet if one.id == record.id else one for one in comparison.records)
    )


def batched(entries: list[T]) -> Iterator[list[T]]:
    """`entries` in pieces that MLflow takes at once."""
    for start in range(0, len(entries), BATCH):
        yield entries[start : start + BATCH]


def patient(call: Callable[[], T]) -> T:
    """The result of `call`, tried again while another process holds the database."""
    give_up, pause = time.monotonic() + PATIENCE, 0.05
    while True:
        try:
            return call()
        except Exception as error:
            if "database is locked" not in str(error) or time.monotonic() > give_up:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 2.0)


def quiet() -> None:
    """Keep MLflow from talking: to the terminal about its tables, to its makers about us. What a user has set stays."""
    for key, value in {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "MLFLOW_LOGGING_LEVEL": "ERROR",
        "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
        "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
        "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",  # a server that is away is told of in seconds: sync sends the rest
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
        "GIT_PYTHON_REFRESH": "quiet",
    }.items():
        os.environ.setdefault(key, value)
    for logger in ("alembic", "mlflow"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # it prints what it raises, SQL and all
