"""open MLflow on the runs of a study, on this machine alone"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import IO
from urllib.request import ProxyHandler, build_opener

from ablate.errors import AblateError
from ablate.records import find, of_study
from ablate.tracking import Mlflow, Store, quiet
from ablate.workspace import workspace

HOST = "127.0.0.1"
PATIENCE = 120.0
"""Seconds that MLflow may take until it answers."""

GRACE = 5.0
"""Seconds that it may take to end."""


def main(argv: list[str]) -> int:
    """Serve the workspace's store until Ctrl-C or SIGTERM; of a store on a server, print the address."""
    parser = argparse.ArgumentParser(prog="python -m ablate ui", description=__doc__)
    parser.add_argument("--port", type=int, default=5000, help="if it is taken, a free one is used (default: 5000)")
    parser.add_argument("--study", metavar="S", help="open this study (default: the one that ran last)")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    args = parser.parse_args(argv)
    place = workspace()
    study = of_study(place, args.study)[0].study if args.study or find(place) else None
    store = Mlflow(uri=None, log_text=False).store(place)
    store.create()
    page = store.page(study)
    if store.uri.startswith("http"):
        print(f"{store.uri.rstrip('/')}/{page}")
        return 0
    signal.signal(signal.SIGTERM, stop)
    with suppress(KeyboardInterrupt), serving(store, free(args.port)) as (server, address):
        print(f"{address}/{page}\nCtrl-C stops it", flush=True)
        if not args.no_browser and (sys.platform != "linux" or os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"}):
            webbrowser.open(f"{address}/{page}")
        server.wait()
    return 0


def stop(number: int, frame: FrameType | None) -> None:
    """End as Ctrl-C does."""
    raise KeyboardInterrupt


def free(wanted: int) -> int:
    """The wanted port, or a free one if another program has it."""
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was just closed is not taken
        try:
            door.bind((HOST, wanted))
            return wanted
        except OSError:
            pass
    with socket.socket() as door:
        door.bind((HOST, 0))
        port: int = door.getsockname()[1]
    print(f"port {wanted} is taken, using {port}")
    return port


@contextmanager
def serving(store: Store, port: int) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """MLflow's server, once it answers, and its address; it and its workers are gone afterwards.

    Raises:
        AblateError: the server ended by itself.

    """
    quiet()
    command = [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", store.uri]
    command += ["--default-artifact-root", store.artifacts] if store.artifacts else []
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    address = f"http://{HOST}:{port}"
    with tempfile.TemporaryFile() as said:
        # A session of its own: Ctrl-C reaches this process alone, which then ends all of them.
        server = subprocess.Popen(command, stdout=said, stderr=said, env=environment, start_new_session=True)
        try:
            answered(server, address, said)
            yield server, address
            if server.returncode is not None:
                raise AblateError(ended(said))
        finally:
            for way in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(server.pid, way)
                    server.wait(GRACE)


def answered(server: subprocess.Popen[bytes], address: str, said: IO[bytes]) -> None:
    """Wait until the server answers."""
    opener = build_opener(ProxyHandler({}))  # a proxy could not reach this machine's own address
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        if server.poll() is not None:
            raise AblateError(ended(said))
        with suppress(OSError), opener.open(f"{address}/health", timeout=5):
            return
        time.sleep(0.2)
    raise AblateError(f"ui: MLflow did not answer at {address} within {PATIENCE:.0f} s, expected its page; try again")


def ended(said: IO[bytes]) -> str:
    """Why the server ended, from the last lines that it wrote."""
    said.seek(0)
    lines = said.read().decode(errors="replace").strip().splitlines()
    return f"ui: MLflow ended by itself, expected it to serve; it said: {' / '.join(lines[-3:])}"
