"""The command line: a known word runs that command, everything else is Hydra overrides for a run."""

from __future__ import annotations

import ast
import difflib
import importlib
import io
import os
import sys
from contextlib import nullcontext
from pathlib import Path

from ablate import __version__
from ablate.clash import clash, warning
from ablate.courier import early
from ablate.errors import AblateError, ConfigError, unwritable
from ablate.page import calm

USAGE = """\
usage: python -m ablate [OVERRIDES]              run the baseline, or the baseline and one variant
       python -m ablate -m '+variant=glob(*)'    run all variants, one after another
       python -m ablate COMMAND ...              see below; COMMAND --help says more

examples:
  python -m ablate +variant=reranker
  python -m ablate dataset.dir=path/to/folder +variant=hybrid
  python -m ablate retriever=hybrid +variant=reranker reranker.first=40
"""


def commands() -> dict[str, str]:
    """Every command and its one line of help: the modules of `ablate/commands`, and the first line of each.

    A command with actions is a package, with a module for each action.
    """
    folder = Path(__file__).parent / "commands"
    files = {path.stem: path for path in folder.glob("[a-z]*.py")}
    files |= {path.parent.name: path for path in folder.glob("[a-z]*/__init__.py")}
    return {
        name: first_line(ast.get_docstring(ast.parse(files[name].read_text(encoding="utf-8"))))
        for name in sorted(files)
    }


def first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]


def help_text() -> str:
    """What `--help` prints, read from files alone so that it needs neither Hydra nor a model."""
    from ablate.conf import comment, conf, options

    names = [f"  {name:<12}{text}" for name, text in commands().items() if name != "run"]
    groups = [f"  {group:<12}{', '.join(found)}" for group, found in options().items() if group != "variant"]
    width = max(map(len, options()["variant"]), default=0) + 2
    variants = [f"  {name:<{width}}{comment(conf() / 'variant' / f'{name}.yaml')}" for name in options()["variant"]]
    sections = [
        USAGE,
        "commands:",
        *names,
        "\nvariants (+variant=NAME), each one change to the baseline:",
        *variants,
        f"\ngroups and their options (GROUP=OPTION, GROUP.KEY=VALUE; files in {conf()}):",
        *groups,
        "\n--hydra-help lists the flags that overrides are read with, --cfg job prints the composed config.",
        "exit codes: 0 done, 1 the answer is no, 2 the question was wrong",
    ]
    return "\n".join(sections)


def chosen(argv: list[str]) -> tuple[str, list[str]]:
    """The command that the first word names and what is left for it; overrides belong to `run`.

    Raises:
        ConfigError: the first word is neither a command nor an override.

    """
    word = argv[0] if argv else "-"
    if word in commands():
        return word, argv[1:]
    if word[:1] in "-+~" or "=" in word:
        return "run", argv
    near = difflib.get_close_matches(word, commands(), 1)
    hint = f"did you mean {near[0]}?" if near else "python -m ablate --help lists them"
    raise ConfigError(f"{word}: found neither a command nor KEY=VALUE, expected one of them; {hint}")


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit code: 0 done, 1 the answer is no, 2 the question was wrong."""
    argv = sys.argv[1:] if argv is None else argv
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot write must not lose the table
        sys.stdout.reconfigure(errors="backslashreplace")
    if other := clash():
        sys.stderr.write(f"ablate: {warning(other)}\n")
    try:
        name, rest = chosen(["--help"] if argv[:1] == ["help"] else argv)
        if name == "run" and not {"--help", "-h", "--version"}.isdisjoint(rest):
            sys.stdout.write(f"ablate {__version__}\n" if "--version" in rest else f"{help_text()}\n")
            return 0
        tracked = name == "run" and {"tracking=off", "dry_run=true"}.isdisjoint(rest)
        with early() if tracked else nullcontext():
            return int(importlib.import_module(f"ablate.commands.{name}").main(rest))
    except AblateError as error:
        sys.stderr.write(f"ablate: {calm(str(error))}\n")
        return error.code
    except KeyboardInterrupt:
        sys.stderr.write("ablate: interrupted; what had finished is kept, the same command goes on from there\n")
        return 130
    except BrokenPipeError:
        # The reader of a pipe (head, less) has gone: not a mistake, and there is no one left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        sys.stderr.write(f"ablate: {calm(unwritable(error))}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
