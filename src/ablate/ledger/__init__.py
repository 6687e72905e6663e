"""Traces and the ground truth go in, the stage at which each needed fact was lost comes out.

The path: `stages` names them, `Course` finds the one of a fact, `entry` weighs the facts of a query's best alternative,
`blame` runs a query again with one stage made perfect, `flow` and `advice` speak about recorded runs.
"""

from ablate.ledger.advice import next_test
from ablate.ledger.book import ledger
from ablate.ledger.corpus import Corpus
from ablate.ledger.entry import Entry, Fate, cells, row
from ablate.ledger.flow import Flow, flow, of_run
from ablate.ledger.stages import STAGES

__all__ = ["STAGES", "Corpus", "Entry", "Fate", "Flow", "cells", "flow", "ledger", "next_test", "of_run", "row"]
