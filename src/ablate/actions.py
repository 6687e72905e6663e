"""A command with several actions: its first word names a module, which says what it takes and does it."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType


def run(command: str, argv: Sequence[str]) -> int:
    """Do what the first word says, by the module of that name in the package `command`; its exit code.

    Such a module has a docstring, which is its help, `arguments(parser)`, and `main(args)`.
    """
    package = sys.modules[command]
    parser = argparse.ArgumentParser(prog=f"python -m ablate {command.rpartition('.')[2]}", description=package.__doc__)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for module in modules(package):
        text = (module.__doc__ or "").strip()
        name = module.__name__.rpartition(".")[2].rstrip("_").replace("_", "-")  # `import` is a word of Python
        action = actions.add_parser(
            name, help=text.partition("\n")[0], description=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.arguments(action)
        action.set_defaults(act=module.main)
    args = parser.parse_args(argv)
    return int(args.act(args))


def modules(package: ModuleType) -> list[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]
