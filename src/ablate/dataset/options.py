"""The settings of a dataset as flags of a command, and the folder that they describe."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

from ablate.dataset import Folder


def add(parser: argparse.ArgumentParser) -> None:
    """The flags that every command takes which reads a dataset without a config."""
    parser.add_argument("--split", default="test", help="which file of qrels/ (default test)")
    parser.add_argument("--evidence", default="none", help="none, any or all: what qrels say about evidence")
    parser.add_argument("--sufficient-grade", type=int, default=1, help="grade from which a document is evidence")
    parser.add_argument("--acl-default", default="nobody", help="who reads a document without ACL: nobody or public")


def flags(settings: Mapping[str, Any]) -> list[str]:
    """The flags that say what the settings of a config say, but for those that are said by leaving them out."""
    parser = argparse.ArgumentParser()
    add(parser)
    usual = vars(parser.parse_args([]))
    told = {name: settings[name] for name in usual if settings.get(name, usual[name]) != usual[name]}
    return [word for name, value in told.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def command(args: argparse.Namespace, dir: str) -> str:
    """The run that reads `dir` as the flags say."""
    given = flags(vars(args))
    settings = [
        f"dataset.{name.removeprefix('--').replace('-', '_')}={value}"
        for name, value in zip(given[::2], given[1::2], strict=True)
    ]
    return shlex.join(["python", "-m", "ablate", f"dataset.dir={dir}", *settings])


def folder(args: argparse.Namespace, dir: str) -> Folder:
    """The folder `dir`, to be read as the flags say."""
    return Folder(dir, args.split, args.evidence, args.sufficient_grade, args.acl_default, True, None)
