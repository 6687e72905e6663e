"""A run, what it is measured against and a policy go in; whether it may ship, and why, comes out.

The path: `Policy` is read from YAML, every rule of `rules` gives an `Outcome`, `decided` makes one `Decision` of them,
`record` keeps it for good.
"""

from ablate.gate.decision import Decided, Decision, decided
from ablate.gate.outcome import Outcome, State
from ablate.gate.policy import Policy, policy
from ablate.gate.record import kept, tagged
from ablate.gate.report import junit, lines, markdown
from ablate.gate.rules import outcomes

__all__ = [
    "Decided",
    "Decision",
    "Outcome",
    "Policy",
    "State",
    "decided",
    "junit",
    "kept",
    "lines",
    "markdown",
    "outcomes",
    "policy",
    "tagged",
]
