"""The package as a stranger gets it: built, installed without the checkout, run from an empty folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    made = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(made), str(ROOT)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = made.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(made / "site"), str(wheel)], check=True)
    return made / "site"


def run(installed, folder, *words):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-P", "-m", "ablate", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_a_variant_runs_from_the_wheel_in_an_empty_folder(installed, tmp_path):
    assert (installed / "ablate/conf/config.yaml").is_file()
    done = run(installed, tmp_path, "+variant=bm25", "dataset=sample", "latency=off", "tracking=off")
    assert done.returncode == 0, done.stderr
    assert "bm25" in done.stdout
    assert (tmp_path / "experiments/runs").is_dir()


@pytest.mark.slow
def test_the_wheel_shows_its_own_configs(installed, tmp_path):
    assert str(installed / "ablate/conf") in run(installed, tmp_path, "--help").stdout
