"""A text given as a list of sentences in, one text and the span of each sentence out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ablate.types import Span


@dataclass(frozen=True)
class Sentences:
    """A document's text; `spans[n]` is where sentence n stands in it, without the white space around it."""

    text: str
    spans: tuple[Span, ...]

    def readable(self, number: int) -> bool:
        """Whether there is such a sentence, and it holds a letter or a digit."""
        return 0 <= number < len(self.spans) and any(map(str.isalnum, self.quote(self.spans[number])))

    def quote(self, span: Span) -> str:
        return self.text[span.start : span.end]

    def unit(self, document: str, numbers: Sequence[int]) -> dict[str, Any]:
        """The unit of these sentences, needed together, as ground_truth.jsonl writes it."""
        spans = [self.spans[number] for number in sorted(set(numbers))]
        if len(spans) > 1:
            return {"doc_id": document, "spans": [list(span) for span in spans]}
        return {"doc_id": document, "start": spans[0].start, "end": spans[0].end, "quote": self.quote(spans[0])}


def joined(sentences: Sequence[str], separator: str) -> Sentences:
    """The sentences with `separator` between them."""
    spans = []
    start = 0
    for sentence in sentences:
        before = len(sentence) - len(sentence.lstrip())
        spans.append(Span(start + min(before, len(sentence.rstrip())), start + len(sentence.rstrip())))
        start += len(sentence) + len(separator)
    return Sentences(separator.join(sentences), tuple(spans))
