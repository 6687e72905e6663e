#!/usr/bin/env python3
"""An MLflow tracking server on PostgreSQL, for tries and tests: started here, stopped with Ctrl-C.

    python scripts/server.py [FOLDER]

Needs PostgreSQL (Debian: apt-get install postgresql) and psycopg. Database and artifacts lie in FOLDER, or in a
temporary folder that is gone afterwards. Prints the address for MLFLOW_TRACKING_URI.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

USER, PASSWORD, DATABASE = "ablate", "a-local-secret", "mlflow"
PATIENCE = 90.0
"""Seconds that anything may take to be ready."""


class Missing(Exception):
    """PostgreSQL is not installed."""


def program(name: str) -> str:
    """The path of one of PostgreSQL's programs, the newest version's."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")]))
    if found is None:
        raise Missing(f"PostgreSQL: found no {name}, expected it installed; Debian: apt-get install postgresql")
    return str(Path(found).resolve())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def unprivileged() -> dict[str, object]:
    """PostgreSQL refuses to run as root: as whom a program is started instead."""
    if os.geteuid():
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise Missing("PostgreSQL: found root and neither a user postgres nor nobody, expected one; add one")


@dataclass
class Server:
    """PostgreSQL and, before it, MLflow; `folder` holds both."""

    folder: Path
    port: int = field(default_factory=free_port)
    database_port: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> str:
        """The address of the database, with its password."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.database_port}/{DATABASE}"

    def start_database(self) -> None:
        data = self.folder / "database"
        who = unprivileged()
        os.chmod(self.folder, 0o755)
        if not data.exists():
            data.mkdir(mode=0o700)
            if who:
                os.chown(data, int(str(who["user"])), int(str(who["group"])))
            secret = self.folder / "secret"
            secret.write_text(PASSWORD)
            secret.chmod(0o644)
            words = [
                program("initdb"),
                "-D",
                str(data),
                "-U",
                USER,
                "-A",
                "scram-sha-256",
                "--pwfile",
                str(secret),
                "-E",
                "UTF8",
            ]
            made = subprocess.run([*words, "--no-sync"], capture_output=True, text=True, cwd="/", **who)  # type: ignore[call-overload]
            secret.unlink()
            if made.returncode:
                shutil.rmtree(data, ignore_errors=True)
                raise RuntimeError(f"{data}: found that initdb cannot make it, expected it to; {made.stderr.strip()}")
        words = [program("postgres"), "-D", str(data), "-p", str(self.database_port), "-h", "127.0.0.1", "-k", ""]
        self.run("database", [*words, "-c", "fsync=off", "-c", "max_connections=200"], **who)
        self.wait(self.create_database, "database")

    def create_database(self) -> bool:
        import psycopg

        where = {"host": "127.0.0.1", "port": self.database_port, "user": USER, "password": PASSWORD}
        try:
            with psycopg.connect(dbname="postgres", autocommit=True, **where) as connection:  # type: ignore[arg-type]
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone():
                    connection.execute(f"CREATE DATABASE {DATABASE}")
        except psycopg.OperationalError:
            return False
        return True

    def start_mlflow(self) -> None:
        artifacts = (self.folder / "artifacts").as_uri()
        words = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", self.database, "--workers", "2"]
        words += ["--artifacts-destination", artifacts, "--host", "127.0.0.1", "--port", str(self.port)]
        self.run("mlflow", words)
        self.wait(self.healthy, "mlflow")

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def run(self, name: str, words: list[str], **who: object) -> None:
        environment = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
        environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # four more processes, of which nothing is asked
        with (self.folder / f"{name}.log").open("ab") as log:
            options = {"stdout": log, "stderr": log, "env": environment, "start_new_session": True, "cwd": "/", **who}
            self.processes[name] = subprocess.Popen(words, **options)  # type: ignore[call-overload]

    def wait(self, ready: object, name: str) -> None:
        give_up = time.monotonic() + PATIENCE
        while not ready():  # type: ignore[operator]
            if self.processes[name].poll() is not None or time.monotonic() > give_up:
                said = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{name}: found it not ready, expected it within {PATIENCE:.0f} s; it said:\n{said}")
            time.sleep(0.1)

    def stop(self, name: str, hard: bool = False) -> None:
        """End a part with all that it started; `hard` is what a power failure does."""
        process = self.processes.pop(name, None)
        if process is None:
            return
        # PostgreSQL's main process ends its own children, and only it may be asked to
        asked = signal.SIGKILL if hard else signal.SIGINT if name == "database" else signal.SIGTERM
        with contextlib.suppress(ProcessLookupError):
            if name == "database" and not hard:
                process.send_signal(asked)
            else:
                os.killpg(process.pid, asked)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def running(folder: Path | None = None) -> Iterator[Server]:
    """A server that is ready, and stopped afterwards."""
    with contextlib.ExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ablate-server-")))
        place.mkdir(parents=True, exist_ok=True)
        server = Server(place.absolute())
        stack.callback(server.stop, "database")
        stack.callback(server.stop, "mlflow")
        server.start_database()
        server.start_mlflow()
        yield server


def main() -> None:
    for ending in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: what was started is stopped
        signal.signal(ending, signal.default_int_handler)
    try:
        with running(Path(sys.argv[1]) if len(sys.argv) > 1 else None) as server:
            print(f"MLFLOW_TRACKING_URI={server.uri}  (Ctrl-C stops it)", flush=True)
            server.processes["mlflow"].wait()
    except KeyboardInterrupt:
        pass
    except (Missing, RuntimeError) as error:
        sys.exit(f"scripts/server.py: {error}")


if __name__ == "__main__":
    main()
