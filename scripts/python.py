#!/usr/bin/env python3
"""Python with everything this project needs: makes .venv once, then runs it with the arguments given.

    python3 scripts/python.py -m ablate +variant=reranker
    python3 scripts/python.py -m pytest

Needs Python 3.11 or newer with venv and pip, and a package index that pip can reach. Versions are those of
requirements.txt. Set ABLATE_TORCH_INDEX to the address of an index of CPU builds to take torch from there.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv"
PYTHON = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = FOLDER / "ablate-setup"
PINS = ROOT / "requirements.txt"


def main():
    if sys.version_info < (3, 11):
        found = "%d.%d" % sys.version_info[:2]
        sys.exit("scripts/python.py: found Python " + found + ", expected 3.11 or newer; run it with a newer python3")
    wanted = hashlib.sha256(PINS.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if not PYTHON.exists() or not STAMP.exists() or STAMP.read_text() != wanted:
        set_up()
        STAMP.write_text(wanted)
    if len(sys.argv) > 1:
        run_and_exit([str(PYTHON), *sys.argv[1:]])


def set_up():
    say(f"setting up {FOLDER.name}/ (once; some minutes and about 2.5 GB of disk)")
    if not PYTHON.exists():
        venv.create(FOLDER, with_pip=True)
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode:
        install_torch()
    pip("install", "-c", PINS, "-e", f"{ROOT}[models,documents,dev]")
    say("ready")


def install_torch():
    """torch first and alone, because its default build on Linux brings gigabytes of CUDA libraries."""
    pin = next(line for line in PINS.read_text(encoding="utf-8").splitlines() if line.startswith("torch=="))
    index = os.environ.get("ABLATE_TORCH_INDEX")
    source = ["--index-url", index] if index else []
    plan = subprocess.run(
        [PYTHON, "-m", "pip", "install", "-q", "--dry-run", "--no-deps", "--report", "-", *source, pin],
        capture_output=True, text=True,
    )  # fmt: skip
    if plan.returncode:
        sys.exit(f"scripts/python.py: pip finds no {pin}:\n{plan.stderr.strip()}")
    needs = json.loads(plan.stdout)["install"][0]["metadata"].get("requires_dist", [])
    if any(need.startswith(("nvidia-", "cuda-")) and applies(need) for need in needs):
        say(
            f"{pin} from this package index is the CUDA build: several gigabytes to download, 5 GB of disk.\n"
            "  ablate needs no GPU. To avoid it stop now (Ctrl-C) and run the same command with ABLATE_TORCH_INDEX\n"
            "  set to the address that pytorch.org shows under Get Started for Pip and CPU. Going on in 15 seconds."
        )
        try:
            time.sleep(15)
        except KeyboardInterrupt:
            sys.exit("set-up: stopped, nothing was downloaded")
    pip("install", *source, pin)


def applies(need):
    """Whether a requirement counts on this platform; the markers of torch's CUDA packages name Linux."""
    return sys.platform == "linux" or "linux" not in need.lower()


def pip(*arguments):
    command = [str(PYTHON), "-m", "pip", *map(str, arguments), "-q", "--disable-pip-version-check"]
    if subprocess.run(command).returncode:
        sys.exit(f"scripts/python.py: this failed: {' '.join(command)}\n  mend what pip says above and run it again")


def say(text):
    print(f"set-up: {text}", file=sys.stderr, flush=True)


def run_and_exit(command):
    if os.name != "nt":
        os.execv(command[0], command)
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
