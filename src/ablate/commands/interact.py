"""run two variants alone and together, and say whether what they bring adds up"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ablate import records
from ablate.commands import run
from ablate.config import settings
from ablate.courier import started
from ablate.errors import ConfigError
from ablate.interact import Square, data, told
from ablate.page import Terminal, columns_shown
from ablate.study import check
from ablate.variant import Plan, together
from ablate.workspace import workspace

USAGE = """\
usage: python -m ablate interact VARIANT VARIANT [OVERRIDES] [--json]

Runs what is not recorded yet of four lines: the baseline, each variant, and both at once. Both together belong to no
family of verdicts: they are two changes. Exit code 0: done; 1: a run failed; 2: the question was wrong.
"""


def main(argv: list[str]) -> int:
    """Print the four cells and the word for the interaction."""
    if not argv or {"-h", "--help"} & set(argv):
        print(f"{__doc__}\n\n{USAGE}", end="")
        return 0
    as_data = "--json" in argv
    with run.told_on_stderr(), run.stoppable(), started() as courier:
        plans = proved([word for word in argv if word != "--json"])
        check(plans)
        place, tracking = workspace(), settings(plans[0].config).tracking
        courier.expect(tracking.errand(place))
        outcomes = run.made(plans, place, [])
        if failed := [outcome for outcome in outcomes if outcome.code or outcome.skipped]:
            print(f"ablate: {failed[0].error or failed[0].skipped}", file=sys.stderr)
            return failed[0].code or 1
        base, first = (records.read(Path(name)) for name in outcomes[0].runs)
        second, both = (records.read(Path(outcome.runs[-1])) for outcome in outcomes[1:])
        square = Square(base, first, second, both)
        run.retold(square.runs, place, tracking)  # the variants may be new, and the words of all with them
        print(json.dumps(data(square), ensure_ascii=False, indent=1) if as_data else told(square, page()))
    return 0


def page() -> Terminal:
    return Terminal(columns_shown())


def proved(argv: list[str]) -> list[Plan]:
    """The plans of both variants and of the pair.

    Raises:
        ConfigError: not two names were given, or something does not compose.
        NotOneChange: as in `together`.

    """
    args, _ = run.words(argv)
    names = [word for word in args.overrides if "=" not in word and not word.startswith("~")]
    if len(names) != 2 or args.multirun:
        raise ConfigError(
            f"interact: found {len(names)} variants ({', '.join(names) or 'none'}), expected two and no sweep; "
            "python -m ablate --help lists them"
        )
    overrides = [word for word in args.overrides if word not in names]
    with run.composing(args.config_dir), run.sentences(f"interact {' '.join(names)}"):
        plans = together(overrides, names, args.config_name or run.CONFIG)
    for each in plans:
        settings(each.config)
    if plans[-1].launched:
        raise ConfigError(
            "interact: found a launcher or a callback of Hydra's, expected none; four lines run here, one by one"
        )
    return plans
