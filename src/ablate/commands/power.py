"""say before a run what a dataset can tell; with --again, how far a baseline differs from itself"""

from __future__ import annotations

import json

from ablate.commands import run
from ablate.errors import ConfigError
from ablate.page import Terminal, columns_shown, say
from ablate.variant import Plan
from ablate.workspace import workspace

USAGE = """\
usage: python -m ablate power [OVERRIDES] [--again] [--json]

Tells with what chance the queries of a dataset find a difference of the margin, and how many would. It runs nothing:
the dataset decides, and the study's baseline and variants where they are recorded.

With --again the baseline runs once more, everything computed anew, both sides timed in turn. Nothing was changed, so
whatever differs is noise: in rankings, in words, in latency. What came out is kept beside the baseline's record as
again.json. Exit code 0: both are identical, and false words are as rare as promised; 1: they are not; 2: the question
was wrong.
"""


def main(argv: list[str]) -> int:
    """Print what can be told, or what differs although nothing was changed."""
    if {"-h", "--help"} & set(argv):
        print(f"{__doc__}\n\n{USAGE}", end="")
        return 0
    flags = {"--again", "--json"} & set(argv)
    args, _ = run.words([word for word in argv if word not in flags])
    if stray := [word for word in args.overrides if "=" not in word and not word.startswith("~")]:
        raise ConfigError(f"power: found {' '.join(stray)}, expected KEY=VALUE; python -m ablate power --help")
    if args.multirun:
        raise ConfigError("power: found a sweep, expected one baseline and at most one variant; leave -m out")
    with run.told_on_stderr(), run.stoppable():
        (plan,) = run.proved(args)
        return again(plan, "--json" in flags) if "--again" in flags else ahead(plan, "--json" in flags)


def ahead(plan: Plan, as_data: bool) -> int:
    from ablate.sensitivity import sensitivity, told

    found = sensitivity(plan, workspace())
    print(json.dumps(found.data(), ensure_ascii=False, indent=1) if as_data else told(found, page()))
    return 0


def again(plan: Plan, as_data: bool) -> int:
    from ablate.repeat import repeat, told
    from ablate.study import check

    if plan.variant:
        raise ConfigError(
            f"power --again: found +variant={plan.variant}, expected a baseline alone; a variant is compared with it "
            "by python -m ablate"
        )
    check([plan])
    with run.named():
        found = repeat(plan, workspace())
    say(json.dumps(found.data(), ensure_ascii=False, indent=1) if as_data else told(found, page()))
    return 0 if found.holds else 1


def page() -> Terminal:
    return Terminal(columns_shown())
