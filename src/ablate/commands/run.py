"""run the baseline, a variant beside it, or with -m a sweep of them (the default command)"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import shlex
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path, get_args_parser
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from ablate.conf import conf, options
from ablate.config import settings
from ablate.errors import ConfigError
from ablate.study import SWEEP, Outcome, check, run, show
from ablate.variant import Plan, plan
from ablate.workspace import workspace

CONFIG = "config"
OUTCOME = "outcome.json"


def main(argv: list[str]) -> int:
    """Prove every job of the command, run them, print the table: 1 if a job failed, 2 if the command was wrong."""
    told_on_stderr()
    argv = [as_typed(word) for word in argv]
    args = get_args_parser().parse_args(argv)
    if args.cfg or args.info or args.hydra_help or args.shell_completion:
        with sentences():
            launch(argv)
        return 0
    with sentences():
        plans = proved(args)
    os.environ[SWEEP] = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    place = workspace()
    place.experiments.mkdir(parents=True, exist_ok=True)
    check(plans)
    with tempfile.TemporaryDirectory(prefix=".hydra-", dir=place.experiments) as scratch:
        with sentences():
            launch([*argv, f"hydra.run.dir={quoted(scratch)}", f"hydra.sweep.dir={quoted(scratch)}"])
        found = sorted(Path(scratch).rglob(OUTCOME), key=lambda path: (len(path.parent.name), path.parent.name))
        outcomes = [Outcome(**json.loads(path.read_text(encoding="utf-8"))) for path in found]
    return show(outcomes, len(plans), place)


def job(cfg: DictConfig) -> None:
    """One job of Hydra's launcher, perhaps in a process of its own: what came of it is left on disk for `main`."""
    told_on_stderr()
    now = HydraConfig.get()
    outcome = run(plan(now.overrides.task, now.job.config_name or CONFIG), workspace())
    folder = Path(now.runtime.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OUTCOME).write_text(json.dumps(vars(outcome), ensure_ascii=False), encoding="utf-8")


def told_on_stderr() -> None:
    """Progress and warnings of this program go to stderr, so that stdout holds the table alone."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("ablate: %(message)s"))
    logger = logging.getLogger("ablate")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)


def launch(argv: list[str]) -> None:
    sys.argv = ["ablate", *argv]
    hydra.main(version_base="1.3", config_path=str(conf()), config_name=CONFIG)(job)()


def proved(args: argparse.Namespace) -> list[Plan]:
    """Every job of the command, composed, checked and proved before the first one starts.

    Raises:
        ConfigError: a job does not compose, a setting is wrong, or a sweep is empty.
        NotOneChange: a variant changes something else than one stage.

    """
    for word in args.overrides:
        if word.startswith("variant="):
            command = shlex.join(["python", "-m", "ablate", *("-m" for _ in [1] if args.multirun)])
            others = [quoted_for_shell(other) for other in args.overrides if other != word]
            raise ConfigError(
                f"{word}: found a replacement, expected an addition to the baseline; "
                f"type: {' '.join([command, quoted_for_shell('+' + word), *others])}"
            )
    with composing(args.config_dir):
        jobs = expanded(args.overrides) if args.multirun else [args.overrides]
        plans = [plan(overrides, args.config_name or CONFIG) for overrides in jobs]
    for side in plans:
        settings(side.baseline)
        settings(side.config)
    return plans


def expanded(overrides: list[str]) -> list[list[str]]:
    """The overrides of each job of a sweep.

    Raises:
        ConfigError: the sweep has no job, as when a glob matches nothing.

    """
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    jobs = BasicSweeper.split_arguments(parser.parse_overrides(overrides), None)[0]
    if not jobs:
        raise ConfigError(
            f"{' '.join(overrides)}: found no match, expected at least one job; "
            f"the variants are {', '.join(options()['variant'])}"
        )
    return jobs


@contextmanager
def composing(config_dir: str | None) -> Iterator[None]:
    """A Hydra that composes from the shipped configs, and before them from the user's own folder."""
    path = create_config_search_path(str(conf()))
    if config_dir is not None:
        if not Path(config_dir).is_dir():
            raise ConfigError(f"--config-dir: no folder {config_dir!r}, expected one with configs; check it")
        path.prepend("command-line", f"file://{os.path.abspath(config_dir)}", SearchPathQuery(provider="schema"))
    GlobalHydra.instance().clear()
    Hydra.create_main_hydra2(task_name="ablate", config_search_path=path)
    try:
        yield
    finally:
        GlobalHydra.instance().clear()


@contextmanager
def sentences() -> Iterator[None]:
    """Hydra's own errors as one sentence.

    Raises:
        ConfigError: instead of what Hydra or OmegaConf raised.

    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # otherwise Hydra prints the error itself and exits with 1
    try:
        yield
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        cause = f"; {error.__cause__}" if isinstance(error.__cause__, OmegaConfBaseException) else ""
        raise ConfigError(re.sub(r"\s*\n\s*", "; ", f"command line: {str(error).strip()}{cause}")) from error


def as_typed(word: str) -> str:
    """An override whose value Hydra's grammar would refuse, or read as something else than the path it is, quoted."""
    key, equals, value = word.partition("=")
    if not equals or word.startswith("-"):
        return word
    try:
        read = OverridesParser.create().parse_override(word).value()
    except HydraException:
        return f"{key}={quoted(value)}" if re.fullmatch(r"[+~]*[\w./@:-]+", key) else word
    return f"{key}={quoted(value)}" if read != value and Path(value).expanduser().exists() else word


def quoted(value: str) -> str:
    """A value in Hydra's single quotes."""
    escaped = re.sub(r"(\\*)'", r"\1\1\\'", value)
    return "'" + re.sub(r"(\\+)$", r"\1\1", escaped) + "'"


def quoted_for_shell(word: str) -> str:
    return shlex.quote(word)
