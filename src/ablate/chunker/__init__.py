"""A document in, its chunks out: spans of its text that are searched, ranked and handed over as one."""

from ablate.chunker.fixed import Fixed
from ablate.chunker.parent_child import ParentChild
from ablate.chunker.sentence import Sentence
from ablate.chunker.structure import Structure
from ablate.chunker.whole import Whole

__all__ = ["Fixed", "ParentChild", "Sentence", "Structure", "Whole"]
