"""Values per query of two sides go in, words with intervals come out: pure functions, whole numbers as far as they go.

The path: `clusters` says which queries stand or fall together, `differences` pairs two sides, `sign_flip` is the one
test behind every p-value and `interval`, `verdicts` names what a family of variants did to one measure.
"""

from ablate.statistics.bounds import interval
from ablate.statistics.clusters import clustered, clusters, shared
from ablate.statistics.differences import Differences, differences, interaction
from ablate.statistics.holm import Step, holm
from ablate.statistics.interplay import Interplay, interplay
from ablate.statistics.not_worse import NotWorse, not_worse
from ablate.statistics.placebo import Placebo, placebo
from ablate.statistics.power import Plan, Spread, detectable, needed, plan, spread, spread_of_share, spread_of_values
from ablate.statistics.signflip import SignFlip, sign_flip
from ablate.statistics.verdict import Verdict, verdict, verdicts
from ablate.statistics.words import Word

__all__ = [
    "Differences",
    "Interplay",
    "NotWorse",
    "Placebo",
    "Plan",
    "SignFlip",
    "Spread",
    "Step",
    "Verdict",
    "Word",
    "clustered",
    "clusters",
    "detectable",
    "differences",
    "holm",
    "interaction",
    "interplay",
    "interval",
    "needed",
    "not_worse",
    "placebo",
    "plan",
    "shared",
    "sign_flip",
    "spread",
    "spread_of_share",
    "spread_of_values",
    "verdict",
    "verdicts",
]
