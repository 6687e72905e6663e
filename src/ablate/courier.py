"""Runs go in, a process beside this one sends them to MLflow: it imports that, which takes seconds, meanwhile."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO

log = logging.getLogger(__name__)

COMMAND = ("-P", "-m", "ablate.courier")
GRACE = 5.0
"""Seconds that sending may take to end when a command was interrupted."""


@dataclass(frozen=True)
class Errand:
    """What goes where: the tracker's settings, the workspace, and the folders of a run and of its baseline.

    With a `study` instead of a run it is what the study as a whole makes of its runs.
    """

    uri: str | None
    log_text: bool
    root: str
    run: str = ""
    baseline: str = ""
    study: str = ""


@dataclass
class Courier:
    """A process that waits for runs to send, and what came of them."""

    process: subprocess.Popen[str]
    taken: int = 0
    told: list[str | None] = field(default_factory=list)

    def expect(self, errand: Errand | None) -> None:
        """Make everything ready for errands to where this one goes; for None there will be none."""
        if errand:
            self.say(errand)
            WAITING.set(self)
        else:
            self.process.kill()

    def take(self, errand: Errand) -> bool:
        """Hand a run over; False if there is nobody to hand it to."""
        there = self.say(errand)
        self.taken += there
        return there

    def say(self, errand: Errand) -> bool:
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(vars(errand)) + "\n")
            self.process.stdin.flush()
        except OSError:
            return False
        return True

    def listen(self) -> None:
        """Say at once what could not be sent."""
        assert self.process.stdout
        for line in self.process.stdout:
            self.told.append(json.loads(line))
            if self.told[-1]:
                log.warning("%s", self.told[-1])


WAITING: ContextVar[Courier | None] = ContextVar("waiting", default=None)
"""The courier of this process, if it has one."""


@contextmanager
def waiting(errand: Errand | None) -> Iterator[None]:
    """Within it a courier waits who has made everything ready for errands to where this one goes; for None nobody does.

    At its end everything is sent, or a warning has said what is not.
    """
    with started() as courier:
        courier.expect(errand)
        yield


@contextmanager
def early() -> Iterator[None]:
    """Within it a process imports what sending takes, for the courier who is started later; if nobody is, it ends."""
    EARLY.append(spawned())
    try:
        yield
    finally:
        while EARLY:
            process = EARLY.pop()
            process.kill()
            process.communicate()


EARLY: list[subprocess.Popen[str]] = []
"""The process that was started before anybody asked for a courier."""


def spawned() -> subprocess.Popen[str]:
    source = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))}
    return subprocess.Popen(
        [sys.executable, *COMMAND],  # without the errand: everybody may read a command line, and a password in it
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=environment,
        start_new_session=True,  # Ctrl-C reaches this process alone: what was handed over is sent whole
    )


@contextmanager
def started() -> Iterator[Courier]:
    """A courier who already imports what sending takes, while it is not known yet what there will be to send."""
    courier = Courier(EARLY.pop() if EARLY else spawned())
    listener = Thread(target=courier.listen, daemon=True)
    listener.start()
    token = WAITING.set(None)
    patience: float | None = GRACE
    try:
        yield courier
        patience = None
    finally:
        WAITING.reset(token)
        ended(courier, listener, patience)


def ended(courier: Courier, listener: Thread, patience: float | None) -> None:
    """Wait until everything is sent, at most `patience` seconds."""
    process = courier.process
    assert process.stdin
    if not courier.taken:
        process.terminate()
    with suppress(OSError):
        process.stdin.close()
    listener.join(patience)
    if listener.is_alive():
        return
    process.wait()
    assert process.stdout
    process.stdout.close()
    if missing := courier.taken - len(courier.told):
        log.warning("%d runs were not sent to MLflow: its process was ended; `python -m ablate sync` does it", missing)


def main(errands: Iterable[str], answers: IO[str]) -> None:
    """Make everything ready for an errand without a run; send the others' and answer what went wrong, or null."""
    gc.disable()  # importing makes many objects, all of which stay: looking for others among them takes time
    with suppress(Exception):
        import mlflow  # noqa: F401  # before it is known whether it will be needed: it takes seconds
    gc.enable()
    for line in errands:
        errand = Errand(**json.loads(line))
        if errand.run or errand.study:
            answers.write(json.dumps(send(errand)) + "\n")
            answers.flush()
        else:
            prepare(errand)


def prepare(errand: Errand) -> None:
    """What goes wrong here goes wrong again, and is told, when the first run is sent."""
    from ablate import records, table  # noqa: F401  # for `send`, who is waited for
    from ablate.tracking import Mlflow
    from ablate.workspace import Workspace

    with suppress(Exception):
        store = Mlflow(errand.uri, errand.log_text).store(Workspace(Path(errand.root)))
        store.create()
        store.client()


def send(errand: Errand) -> str | None:
    """What could not be sent, as a sentence."""
    from ablate import records, table
    from ablate.tracking import Mlflow
    from ablate.workspace import Workspace

    try:
        workspace, tracker = Workspace(Path(errand.root)), Mlflow(errand.uri, errand.log_text)
        if errand.study:
            everything = records.find(workspace, errand.study)
            return tracker.rename(table.compare(records.current(everything), everything), workspace)
        run, *baseline = [records.read(Path(folder)) for folder in (errand.run, errand.baseline) if folder]
        return tracker.send(run, table.compare([*baseline, run]), workspace)
    except Exception as error:
        return f"{errand.run or errand.study}: could not be sent to MLflow ({error}); `python -m ablate sync` sends it"


if __name__ == "__main__":
    # What any library prints is no answer.
    answers, sys.stdout = sys.stdout, sys.stderr
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # so that a store that is half made is taken away
    with suppress(SystemExit):
        main(sys.stdin, answers)
    sys.stderr.flush()
    os._exit(0)  # everything is sent, and taking apart what was imported would be waited for
