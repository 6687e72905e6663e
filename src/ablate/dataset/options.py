"""The settings of a dataset as flags of a command, and the folder that they describe."""

from __future__ import annotations

import argparse

from ablate.dataset import Folder


def add(parser: argparse.ArgumentParser) -> None:
    """The flags that every command takes which reads a dataset without a config."""
    parser.add_argument("--split", default="test", help="which file of qrels/ (default test)")
    parser.add_argument("--evidence", default="none", help="none, any or all: what qrels say about evidence")
    parser.add_argument("--sufficient-grade", type=int, default=1, help="grade from which a document is evidence")
    parser.add_argument("--acl-default", default="nobody", help="who reads a document without ACL: nobody or public")


def folder(args: argparse.Namespace, dir: str) -> Folder:
    """The folder `dir`, to be read as the flags say."""
    return Folder(dir, args.split, args.evidence, args.sufficient_grade, args.acl_default, True)
