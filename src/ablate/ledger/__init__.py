"""Traces and the ground truth go in, the stage at which each needed fact was lost comes out.

The path: `stages` names them, `Course` finds the one of a fact, `entry` weighs the facts of a query's best alternative,
`blame` runs a query again with one stage made perfect, `flow` and `advice` speak about recorded runs.
"""
