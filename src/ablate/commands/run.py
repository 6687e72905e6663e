"""run the baseline, a variant beside it, or with -m a sweep of them (the default command)"""

from __future__ import annotations

import argparse
import difflib
import gc
import json
import logging
import os
import re
import shlex
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

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
from yaml import YAMLError

from ablate import records, table
from ablate.conf import conf, names, options
from ablate.config import canonical, settings
from ablate.courier import started
from ablate.errors import ConfigError
from ablate.estimate import estimate
from ablate.progress import Handler, erase
from ablate.records import RunRecord
from ablate.study import SWEEP, Outcome, check, run
from ablate.variant import Plan, composition, diff, one_stage, plan
from ablate.workspace import Workspace, workspace

log = logging.getLogger(__name__)

CONFIG = "config"
OUTCOME = "outcome.json"
COMMAND = ("python", "-m", "ablate")


def main(argv: list[str]) -> int:
    """Prove every job of the command, say what they will cost, run them, print the table.

    1 if a job failed, 2 if the command was wrong.
    """
    args, flags = words(argv)
    with told_on_stderr(), stoppable():
        if args.cfg or args.info or args.hydra_help or args.shell_completion:
            launch([*flags, *args.overrides])
            return 0
        gc.set_threshold(100_000)  # a run makes many objects, nearly all of which stay
        with started() as courier:
            plans = proved(args)
            check(plans)
            place, chosen = workspace(), [settings(plan.config) for plan in plans]
            if any(each.dry_run for each in chosen):
                print("\n".join(estimate(plans, place, trying=True).lines()))
                return 0
            courier.expect(next(filter(None, (each.tracking.errand(place) for each in chosen)), None))
            return show(made(plans, place, [*flags, *args.overrides]), len(plans), place, chosen[0].tracking)


def made(plans: Sequence[Plan], place: Workspace, argv: list[str]) -> list[Outcome]:
    """What came of every job, in their order; what they will cost is said before, if it is much."""
    cost = estimate(plans, place, trying=False)
    for line in cost.lines() if cost.large else ():
        log.info("%s", line)
    with named():
        return launched(place, argv) if any(each.launched for each in plans) else [run(each, place) for each in plans]


def launched(place: Workspace, argv: list[str]) -> list[Outcome]:
    """What came of every job that Hydra's launcher ran, wherever that was."""
    place.experiments.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".hydra-", dir=place.experiments) as scratch:
        folder = quoted(scratch)
        launch([*argv, f"hydra.run.dir={folder}", f"hydra.sweep.dir={folder}"])
        found = sorted(Path(scratch).rglob(OUTCOME), key=lambda path: (len(path.parent.name), path.parent.name))
        return [Outcome(**json.loads(path.read_text(encoding="utf-8"))) for path in found]


def job(cfg: DictConfig) -> None:
    """One job of Hydra's launcher, perhaps in a process of its own: what came of it is left on disk for `main`."""
    with told_on_stderr():
        now = HydraConfig.get()
        found = [word for word in now.overrides.hydra if word.startswith("hydra.searchpath=")]
        outcome = run(plan([*found, *now.overrides.task], now.job.config_name or CONFIG), workspace())
        folder = Path(now.runtime.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / OUTCOME).write_text(json.dumps(vars(outcome), ensure_ascii=False), encoding="utf-8")


def show(outcomes: Sequence[Outcome], jobs: int, place: Workspace, tracking: Any) -> int:
    """Print the table of every study that was touched, then what was left out or failed; the command's exit code.

    A variant that was left out spoils no sweep, unless nothing else was asked for.
    """
    found: dict[str, dict[Path, RunRecord]] = {}
    for path in (Path(name) for outcome in outcomes for name in outcome.runs):
        found.setdefault(path.parent.name, {})[path] = records.read(path)
    for study in found.values():
        print(retold(list(study.values()), place, tracking).text())
    skipped = [outcome.skipped for outcome in outcomes if outcome.skipped]
    for line in skipped:
        print(line)
    failures = [outcome for outcome in outcomes if outcome.code]
    if jobs > 1:  # a single job has told its failure already
        for error in dict.fromkeys(failure.error for failure in failures):
            print(f"ablate: {error}", file=sys.stderr)
    if len(outcomes) < jobs:
        print(f"ablate: {jobs - len(outcomes)} of {jobs} jobs left no result; run the command again", file=sys.stderr)
    codes = {failure.code for failure in failures} | ({1} if len(outcomes) < jobs else set())
    return min(codes | {2}) if len(failures) + len(skipped) == jobs else int(bool(codes))


def retold(shown: Sequence[RunRecord], place: Workspace, tracking: Any) -> table.Comparison:
    """What their study makes of these runs is known now, and told beside their records and to the tracker."""
    everything = records.find(place, shown[0].study)
    comparison = table.compare(shown, everything)
    for record in shown:
        records.note(record.folder, "comparison.md", comparison.about(record).markdown(record))
    if warning := tracking.retell(table.compare(records.current(everything), everything), place):
        log.warning("%s", warning)
    return comparison


def words(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Hydra's flags and the overrides, in any order, parsed; and the flags as they were typed.

    Raises:
        ConfigError: an unknown flag, one of Hydra's that would go round the proof, or a variant without its plus.

    """
    parser = get_args_parser()
    parser.error = refused  # type: ignore[method-assign]
    args = parser.parse_intermixed_args(argv)
    if args.config_path or args.experimental_rerun:
        refused("--config-path and --experimental-rerun would run what was not proved; --config-dir adds configs")
    for word in args.overrides:
        if word.startswith("variant="):
            command = shlex.join([*COMMAND, *(f"+{word}" if other == word else other for other in argv)])
            raise ConfigError(f"{word}: found a replacement, expected an addition to the baseline; type: {command}")
    flags = [word for word in argv if word not in args.overrides]
    args.overrides = [as_typed(word) for word in args.overrides]
    return args, flags


def refused(message: str) -> NoReturn:
    raise ConfigError(f"command line: {message}, expected KEY=VALUE and flags; python -m ablate --help lists them")


@contextmanager
def told_on_stderr() -> Iterator[None]:
    """Progress and warnings of this program go to stderr, so that stdout holds the table alone."""
    logger = logging.getLogger("ablate")
    before = logger.handlers, logger.propagate, logger.level
    handler = Handler()
    handler.setFormatter(logging.Formatter("ablate: %(message)s"))
    logger.handlers, logger.propagate, logger.level = [handler], False, logging.INFO
    try:
        yield
    finally:
        erase()
        logger.handlers, logger.propagate, logger.level = before


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: what is half-made is removed.

    A library that is interrupted may raise an error of its own, which is then no error.
    """
    asked: list[int] = []

    def stop(number: int, frame: object) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except Exception as error:
        if asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def named() -> Iterator[None]:
    """Within it every job knows by which command it was started, whatever process it runs in."""
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    with environment({SWEEP: name}):
        yield


@contextmanager
def environment(wanted: dict[str, str]) -> Iterator[None]:
    """Environment variables that are put back afterwards."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ |= wanted
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ |= {name: value} if value is not None else {}


def launch(argv: list[str]) -> None:
    """Hydra's own main, which reads `sys.argv`."""
    words, sys.argv = sys.argv, ["ablate", *argv]
    try:
        # Otherwise Hydra prints an error itself and exits with 1.
        with sentences("command line"), environment({"HYDRA_FULL_ERROR": "1"}):
            hydra.main(version_base="1.3", config_path=str(conf()), config_name=CONFIG)(job)()
    finally:
        sys.argv = words


def proved(args: argparse.Namespace) -> list[Plan]:
    """Every job of the command, composed, checked and proved before the first one starts.

    Raises:
        ConfigError: a job does not compose, a setting is wrong, or a sweep is empty.
        NotOneChange: a variant changes something else than one stage.

    """
    with composing(args.config_dir):
        with sentences("command line"):
            jobs = expanded(args.overrides) if args.multirun else [args.overrides]
        plans = []
        for overrides in jobs:
            with sentences(next((word for word in overrides if word.startswith("+variant=")), "command line")):
                plans.append(plan(overrides, args.config_name or CONFIG))
    for side in plans:
        settings(side.baseline)
        try:
            settings(side.config)
            if side.variant:  # once more on values of their own types: "128" is no change from 128
                one_stage(side.variant, diff(canonical(side.baseline), canonical(side.config)))
        except ConfigError as error:
            raise ConfigError(f"variant {side.variant}: {error}") from error
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
    composition.cache_clear()
    Hydra.create_main_hydra2(task_name="ablate", config_search_path=path)
    try:
        yield
    finally:
        GlobalHydra.instance().clear()


@contextmanager
def sentences(where: str) -> Iterator[None]:
    """Hydra's own errors as one sentence.

    Raises:
        ConfigError: instead of what Hydra, OmegaConf or the YAML parser raised.

    """
    try:
        yield
    except (HydraException, OmegaConfBaseException, YAMLError, ValueError) as error:
        cause = f"\n{error.__cause__}" if isinstance(error.__cause__, OmegaConfBaseException) else ""
        raise ConfigError(f"{where}: {sentence(str(error) + cause)}") from error


NOISE = ("To append to your config use", "Config search path:", "provider=", "See https:", "full_key:", "object_type=")


def sentence(text: str) -> str:
    """Hydra's lines as one, without advice that would not help here, and with the name that may have been meant."""
    lines = [line.strip(" .\t^") for line in text.splitlines() if not line.strip().startswith(NOISE)]
    named = re.search(r"Could not (?:find|override) '([^']+)'", text)
    near = difflib.get_close_matches(named[1], names(), 1) if named else []
    hint = f"; did you mean {near[0]}?" if near and named and near[0] != named[1] else ""
    return re.sub(r"([:;,]);", r"\1", "; ".join(filter(None, lines))) + hint


def as_typed(word: str) -> str:
    """An override whose value Hydra's grammar would refuse, or read as something else than the path it is, quoted."""
    key, equals, value = word.partition("=")
    if not equals or word.startswith("-"):
        return word
    try:
        read = OverridesParser.create().parse_override(word).value()
    except HydraException:
        return f"{key}={quoted(value)}" if re.fullmatch(r"[+~]*[\w./@:-]+", key, re.ASCII) else word
    return f"{key}={quoted(value)}" if str(read) != value and Path(value).expanduser().exists() else word


def quoted(value: str) -> str:
    """A value in Hydra's single quotes."""
    escaped = re.sub(r"(\\*)'", r"\1\1\\'", value)
    return "'" + re.sub(r"(\\+)$", r"\1\1", escaped) + "'"
