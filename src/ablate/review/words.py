"""What a person wrote as a verdict goes in, the one word that it means comes out: English and Russian, in any case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

RELEVANT, PARTLY, NOT_RELEVANT, CANNOT_TELL = "relevant", "partly", "not relevant", "cannot tell"

_UNCLEAR = ("can't tell", "can not tell", "не могу сказать", "не могу судить", "не знаю", "неясно", "непонятно")

VERDICTS: Mapping[str, Sequence[str]] = {
    RELEVANT: ("релевантно", "релевантен", "релевантный", "релевантна", "подходит", "по делу"),
    PARTLY: ("частично", "отчасти", "частично релевантно", "partly relevant"),
    NOT_RELEVANT: (
        "irrelevant", "не релевантно", "нерелевантно", "не релевантен", "нерелевантен", "нерелевантный",
        "не подходит", "не по делу",
    ),
    CANNOT_TELL: _UNCLEAR,
}  # fmt: skip
"""What may be said of a source."""

GRADES = {RELEVANT: 2, PARTLY: 1, NOT_RELEVANT: 0}
"""The grade that a verdict gives: 2 answers the question or a needed part of it, 1 helps, 0 was judged and is not."""

ENOUGH: Mapping[str, Sequence[str]] = {
    "yes": ("да", "sufficient", "достаточно", "хватает"),
    "no": ("нет", "not sufficient", "insufficient", "недостаточно", "не достаточно", "не хватает"),
    CANNOT_TELL: _UNCLEAR,
}
"""What may be said of a context."""

NEW = ("new", "новая", "новый", "новое")
"""How an alternative is called that does not exist yet; a label may follow."""


def meant(words: Mapping[str, Sequence[str]], text: str) -> str | None:
    """The word among `words` that `text` is, or means; None if there is none."""
    plain = simple(text)
    return next((word for word, others in words.items() if plain in (word, *others)), None)


def simple(text: str) -> str:
    """A text without case, repeated white space, ё and a last full stop."""
    return " ".join(text.casefold().replace("ё", "е").replace("’", "'").split()).rstrip(".")
