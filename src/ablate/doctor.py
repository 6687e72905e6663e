"""A machine goes in, what a run would find on it comes out: for each thing what is there, or the command for it.

Nothing heavy is imported and no server but a tracking server is asked: what is slow or broken must not stop the look.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import os
import platform
import re
import shutil
import sqlite3
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from ablate.clash import CURE, OURS
from ablate.conf import conf
from ablate.errors import AblateError, ConfigError, sentence
from ablate.page import clean
from ablate.workspace import Workspace, workspace

OK, MISSING, WRONG = "ok", "missing", "wrong"

EXTRAS = {"models": "the default models as packages", "documents": "reading PDF and DOCX files"}
"""The optional parts that users install, and what they are for."""

ROOM = 10**9
"""Bytes of free disk below which a study may not end."""

SECONDS = 1.0
"""How long a tracking server may take to answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing: its state, `ok`, `missing` or `wrong`, what was found, and the command that would put it right.

    Without what is `needed` a baseline cannot be run.
    """

    name: str
    state: str
    found: str
    advice: str = ""
    needed: bool = True

    @property
    def fatal(self) -> bool:
        return self.needed and self.state != OK


Examiner = Callable[[Workspace], Iterator[Finding]]


def examine() -> list[Finding]:
    """Everything, in the order in which one would put it right."""
    try:
        place = workspace()
    except ConfigError as error:
        said = sentence(str(error))
        return [*looked(ALONE, Workspace(Path.cwd())), Finding("workspace", WRONG, said.found, said.advice)]
    return [*looked(ALONE, place), *looked(PLACED, place)]


def looked(examiners: Mapping[str, Examiner], place: Workspace) -> Iterator[Finding]:
    """What each of them finds; one that cannot look, because a package is not there, says so."""
    for name, examiner in examiners.items():
        try:
            yield from examiner(place)
        except ImportError as error:
            cure = "pip install packaging" if error.name == "packaging" else "install what is missing, then look again"
            yield Finding(name, WRONG, f"cannot be looked at without the package {error.name}", cure)


def python(place: Workspace) -> Iterator[Finding]:
    """The interpreter, against what the distribution asks for."""
    from packaging.specifiers import SpecifierSet

    found, wanted = platform.python_version(), declared()[0]
    good = SpecifierSet(wanted).contains(found, prereleases=True)
    advice = "" if good else f"install Python {wanted} and make an environment with it"
    yield Finding("Python", OK if good else WRONG, f"{found} ({sys.executable})", advice)


def program(place: Workspace) -> Iterator[Finding]:
    """The distribution itself, its configs, and others that write into its folder."""
    from ablate import __version__

    yield Finding(OURS, OK, f"{__version__} ({Path(__file__).parent})")
    options = sum(1 for _ in conf().glob("*/*.yaml"))
    yield Finding("configs", OK if options else MISSING, f"{options} options in {conf()}", "" if options else CURE)
    for other in sharing():
        yield Finding("package ablate", WRONG, f"{other} installs a package of the same name", CURE)


def sharing() -> Iterator[str]:
    """Name and version of every other distribution that installs files of a package `ablate`."""
    for each in importlib.metadata.distributions():
        record = each.read_text("RECORD") or each.read_text("installed-files.txt") or ""
        if re.search(r"^(\.\./)*ablate/", record, re.MULTILINE) and plain(name := each.metadata["Name"]) != plain(OURS):
            yield f"{name} {each.version}"


def plain(name: str) -> str:
    """A distribution's name as an index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> tuple[str, dict[str, list[str]]]:
    """The Python that is asked for, and the requirements: under "" those of every run, then those of each extra.

    In a checkout they are those of its pyproject.toml, elsewhere those of the installed distribution.
    """
    file = Path(__file__).parents[2] / "pyproject.toml"
    if file.is_file():
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        optional = project["optional-dependencies"]
        return project["requires-python"], {"": project["dependencies"], **{name: optional[name] for name in EXTRAS}}
    own = importlib.metadata.distribution(OURS)
    lines = own.requires or []
    split = {name: [line for line in lines if re.search(rf"extra == ['\"]{name}['\"]", line)] for name in EXTRAS}
    return own.metadata["Requires-Python"], {"": [line for line in lines if "extra ==" not in line], **split}


def packages(place: Workspace) -> Iterator[Finding]:
    """Every requirement of a run, and those of the optional parts."""
    for extra, lines in declared()[1].items():
        for line in lines:
            yield from package(line, extra)


def package(line: str, extra: str) -> Iterator[Finding]:
    """One requirement, unless it is one of other platforms only."""
    from packaging.requirements import Requirement

    wanted = Requirement(line)
    if wanted.marker and not wanted.marker.evaluate({"extra": extra}):
        return
    name, needed = f"package {wanted.name}" + (f" ({extra})" if extra else ""), not extra
    cure = f'pip install "{OURS}[{extra}]"' if extra else f'pip install "{wanted.name}{wanted.specifier}"'
    try:
        found = importlib.metadata.version(wanted.name)
    except importlib.metadata.PackageNotFoundError:
        yield Finding(name, MISSING, f"for {EXTRAS[extra]}" if extra else f"expected {wanted.specifier}", cure, needed)
        return
    if wanted.specifier.contains(found, prereleases=True):
        yield Finding(name, OK, found, needed=needed)
    else:
        yield Finding(name, WRONG, f"{found}, expected {wanted.specifier}", cure, needed)


def models(place: Workspace) -> Iterator[Finding]:
    """The model of every shipped option that has one, found without loading it; the baseline's is needed."""
    import yaml

    chosen = yaml.safe_load((conf() / "config.yaml").read_text(encoding="utf-8"))["defaults"]
    baseline = {group: option for line in chosen if isinstance(line, dict) for group, option in line.items()}
    with offline():
        for group in ("embedder", "reranker"):
            for file in sorted((conf() / group).glob("*.yaml")):
                node = yaml.safe_load(file.read_text(encoding="utf-8"))
                if "model" in node:
                    yield model(f"{group} {file.stem}", node, needed=baseline[group] == file.stem)


def model(name: str, node: Mapping[str, Any], needed: bool) -> Finding:
    """Where a component finds its weights: its own revision tells."""
    module, _, kind = node["_target_"].rpartition(".")
    component = getattr(importlib.import_module(module), kind)
    settings = {key: value for key, value in node.items() if key != "_target_"}
    try:
        revision = component(**settings).revision
    except AblateError as error:
        said = sentence(str(error))
        state = WRONG if "SHA-256" in said.found else MISSING
        return Finding(name, state, f"{node['model']}: {said.found}", said.advice, needed)
    weights = re.search(r"(de-quantised )?(sha256|commit):[0-9a-f]{12}", revision)
    return Finding(name, OK, f"{node['model']}, {weights[0] if weights else revision}", needed=needed)


@contextmanager
def offline() -> Iterator[None]:
    """Within it no hub is asked, which could take long, or bring gigabytes; nor is anything said about that."""
    hub, logger = "huggingface_hub.constants", logging.getLogger("ablate.weights")
    before, level = os.environ.get("HF_HUB_OFFLINE"), logger.level
    os.environ["HF_HUB_OFFLINE"] = "1"
    imported = sys.modules.get(hub)
    known = getattr(imported, "HF_HUB_OFFLINE", None)
    if imported:
        imported.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]  # what it read when it was imported
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
        os.environ.pop("HF_HUB_OFFLINE")
        os.environ |= {} if before is None else {"HF_HUB_OFFLINE": before}
        if hub in sys.modules:
            sys.modules[hub].HF_HUB_OFFLINE = bool(before) if known is None else known  # type: ignore[attr-defined]


def folder(place: Workspace) -> Iterator[Finding]:
    """The workspace: which one, whether it can be written to, and what room there is."""
    name = "workspace"
    try:
        with tempfile.TemporaryFile(dir=place.experiments if place.experiments.is_dir() else place.root):
            yield Finding(name, OK, str(place.root))
    except OSError as error:
        advice = "make it writable, or set ABLATE_WORKSPACE to another folder"
        yield Finding(name, WRONG, f"{place.root}: {error.strerror}", advice)
    free = shutil.disk_usage(place.root).free
    said = f"{free / 1e9:.1f} GB free"
    yield Finding("disk", OK, said) if free >= ROOM else Finding("disk", WRONG, said, "python -m ablate index prune")


def recorded(place: Workspace) -> Iterator[Finding]:
    """The runs, and those that cannot be read any more."""
    from ablate import records
    from ablate.files import BrokenRecord

    read, broken = 0, []
    for run in sorted(place.runs.glob("*/*/")):
        if not run.name.startswith("."):
            try:
                records.read(run)
                read += 1
            except BrokenRecord as error:
                broken.append((run, sentence(str(error))))
    yield Finding("runs", OK, f"{read} in {place.short(place.runs)}")
    for run, said in broken:
        told = f"{Path(said.file).name}: {said.found}"
        yield Finding(f"run {run.name}", WRONG, told, f"rm -r {place.short(run)}", needed=False)


def indexes(place: Workspace) -> Iterator[Finding]:
    """What is kept of models' work."""
    from ablate.shelf import shelves

    found = shelves(place.indexes)
    size = sum(shelf.path.stat().st_size for shelf in found)
    yield Finding("indexes", OK, f"{len(found)} files, {size / 1e6:.1f} MB in {place.short(place.indexes)}")
    for shelf in found:
        if not shelf.revision:
            cure = "python -m ablate index prune"
            yield Finding(f"index {shelf.path.name}", WRONG, "no database that can be read", cure, False)


def tracking(place: Workspace) -> Iterator[Finding]:
    """MLflow's store: whether it can be opened, and by the MLflow that is installed."""
    from ablate.tracking import Mlflow

    try:
        store = Mlflow(uri=None, log_text=False).store(place)
    except ConfigError as error:
        said = sentence(str(error))
        yield Finding("MLflow store", WRONG, said.found, said.advice)
        return
    if store.file is None:
        yield answering(store.uri, store.shown)
    elif not store.file.exists():
        yield Finding("MLflow store", OK, f"{store.shown}: not there yet, the first run makes it")
    else:
        yield opened(store.file, store.shown)


def answering(uri: str, shown: str) -> Finding:
    """A server. Results are kept while it is away, so that it is not needed."""
    if not uri.startswith("http"):
        return Finding("MLflow store", OK, f"{shown}: a database server, not looked at", needed=False)
    try:
        with urlopen(f"{uri.rstrip('/')}/health", timeout=SECONDS):
            return Finding("MLflow store", OK, f"{shown} answers", needed=False)
    except (OSError, ValueError) as error:
        said = f"{shown}: {getattr(error, 'reason', error)}; results are kept on disk meanwhile"
        return Finding("MLflow store", WRONG, said, "start it, then python -m ablate sync", False)


def opened(file: Path, shown: str) -> Finding:
    """A database file, and whether its tables are those of the installed MLflow."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=SECONDS)) as connection:
            schema = str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])
            runs = connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    except (sqlite3.Error, TypeError) as error:
        cure = f"mv {file} {file}.broken && python -m ablate sync"
        return Finding("MLflow store", WRONG, f"{shown}: {error}", cure)
    steps = migrations()
    newest = set(steps) - set(steps.values())
    if schema in newest or not steps:
        return Finding("MLflow store", OK, f"{shown}: {runs} runs, schema {schema}")
    if schema in steps:
        said = f"{shown}: schema {schema} of an older MLflow, expected {', '.join(sorted(newest))}"
        return Finding("MLflow store", WRONG, said, f"mlflow db upgrade sqlite:///{file}")
    said = f"{shown}: schema {schema}, which the installed MLflow does not know"
    return Finding("MLflow store", WRONG, said, "pip install --upgrade mlflow")


def migrations() -> dict[str, str]:
    """Each schema that the installed MLflow knows, and the one before it; read from its files, not imported."""
    spec = find_spec("mlflow")
    found = {}
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for file in Path(root, "store/db_migrations/versions").glob("*.py"):
            text = file.read_text(encoding="utf-8")
            names = dict(re.findall(r'^(\w*revision) *= *["\'](\w+)["\']', text, re.MULTILINE))
            if "revision" in names:
                found[names["revision"]] = names.get("down_revision", "")
    return found


def machine(place: Workspace) -> Iterator[Finding]:
    """What the processor gives, and what git tells of the code."""
    from ablate.environment import git, processor
    from ablate.models import processors

    threads = os.environ.get("OMP_NUM_THREADS")
    limit = f", OMP_NUM_THREADS={threads}" if threads else ""
    yield Finding("cores", OK, f"{processors()} of {os.cpu_count()} in use, {processor()}{limit}")
    if shutil.which("git") is None:
        said = "runs will not tell the commit of the code that made them"
        yield Finding("git", MISSING, said, "install git", False)
        return
    commit = git(place.root, "rev-parse", "--short", "HEAD")
    yield Finding("git", OK, f"commit {commit.strip()}" if commit else f"{place.root} is in no checkout", needed=False)


ALONE: Mapping[str, Examiner] = {"Python": python, "program": program, "packages": packages, "models": models}
"""What is looked at wherever the command runs."""

PLACED: Mapping[str, Examiner] = {
    "workspace": folder,
    "runs": recorded,
    "indexes": indexes,
    "MLflow store": tracking,
    "machine": machine,
}
"""What a workspace is asked for."""


def lines(findings: Sequence[Finding]) -> Iterator[str]:
    """A line a finding, and under one that is not right the command that brings it."""
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        yield f"{finding.state:<8} {clean(finding.name):<{width}}  {clean(finding.found)}".rstrip()
        if finding.advice:
            yield f"{'':<8} {'':<{width}}  -> {clean(finding.advice)}"
    fatal = [finding.name for finding in findings if finding.fatal]
    optional = sum(finding.state != OK and not finding.needed for finding in findings)
    more = f"; {optional} optional things are missing or wrong" if optional else ""
    yield (f"not ready: {', '.join(fatal)}" if fatal else "all that is needed is there") + more
