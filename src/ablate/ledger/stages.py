"""The names of the places where a fact can be lost, in the order in which evidence passes them."""

from __future__ import annotations

DENIED = "denied"
INGESTION = "ingestion"
CHUNKING = "chunking"
ACCESS = "access"
FILTER = "filter"
TRUNCATION = "truncation"
CANDIDATES = "candidates"
FUSION = "fusion"
RERANK = "rerank"
CUT_OFF = "cut-off"
PACKING = "packing"
DELIVERED = "delivered"

STAGES = (
    DENIED,
    INGESTION,
    CHUNKING,
    ACCESS,
    FILTER,
    TRUNCATION,
    CANDIDATES,
    FUSION,
    RERANK,
    CUT_OFF,
    PACKING,
    DELIVERED,
)
"""What becomes of a fact, the furthest last.

`denied`: the frozen ACL lets the asker read no document that holds the fact, so no stage has lost it. `access`: the
component hides what the ACL allows. `truncation`: the search did not list it, and the encoder saw none of what is
missing. `rerank`: it stood among the first k before the reranker and not after; `cut-off`: neither.
"""

ORDER = {stage: place for place, stage in enumerate(STAGES)}

ACTING = {
    CHUNKING: ("chunker",),
    ACCESS: ("access",),
    FILTER: ("filter",),
    TRUNCATION: ("chunker", "embedder"),
    CANDIDATES: ("retriever", "embedder", "chunker"),
    FUSION: ("retriever",),
    RERANK: ("reranker",),
    CUT_OFF: ("reranker", "retriever", "packer"),
    PACKING: ("packer",),
}
"""Which components of the line act on what is lost at a stage, the likeliest first; nothing there acts on the rest."""
