"""Text in, tokens out: the counter that measures every length of a study, and the terms of lexical search."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import regex

from ablate.errors import ConfigError

# Scripts written without spaces between words: there, a letter with its marks is what a word is elsewhere. The sign
# that lengthens a kana is such a mark, though Unicode calls it a letter of no script.
UNSPACED = r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]&&[\p{L}\p{N}]]"
LETTER = rf"{UNSPACED}[\p{{M}}ーｰ]*"
WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}]--{UNSPACED}]"


class Tokens(Protocol):
    """What measures length in a study: one for the chunker, the packer, the budget and the cost."""

    def count(self, text: str) -> int:
        """The number of tokens of `text`."""

    def spans(self, text: str) -> npt.NDArray[np.int64]:
        """Start and end of each token in `text` as it is, in code points, `(tokens, 2)`, in order, none overlapping."""


# A soft hyphen, a joiner or another invisible character inside a word does not break it; elsewhere it is nothing.
TOKEN = regex.compile(rf"(?V1){LETTER}|[{WORD}_](?:[{WORD}_\p{{Cf}}]*[{WORD}_])?|[^\s\p{{Cc}}\p{{Cf}}]")


@dataclass(frozen=True)
class Words:
    """Counts Unicode words and single punctuation marks, by no model's vocabulary.

    A word is a run of letters, marks, digits and underscores. A letter of a script that puts no spaces between words
    (Chinese, Japanese, Thai, Lao, Khmer, Burmese) is a token by itself, so that such texts have sizes too.
    """

    def count(self, text: str) -> int:
        return words(text)

    def spans(self, text: str) -> npt.NDArray[np.int64]:
        return found(text) if len(text) <= SHORT else located(text)


@lru_cache(maxsize=2**13)  # the same chunks are found again and again
def words(text: str) -> int:
    """How many tokens of `Words` a text has."""
    return len(TOKEN.findall(text))


def located(text: str) -> npt.NDArray[np.int64]:
    """Where the tokens of `Words` stand in a text, which nobody may write into."""
    spans = np.array([match.span() for match in TOKEN.finditer(text)], dtype=np.int64).reshape(-1, 2)
    spans.setflags(write=False)
    return spans


SHORT = 2000
"""Characters of a text whose tokens are kept: a chunk's are asked for again and again, a document's once."""

found = lru_cache(maxsize=2**13)(located)


def terms(text: str, languages: Sequence[str] = ()) -> list[str]:
    """The terms by which lexical search compares texts: words without case, in the compatibility form NFKC.

    Words joined by signs without a space (`CX-429`, `v2.1.3`, `AB/12`, `user_id`) or carrying one (`C++`, `C#`,
    `.NET`) are kept whole, before their parts. Scripts without spaces give single letters and pairs of neighbours.
    `languages` are Snowball algorithms, one a script: a word is stemmed by the language of the script it is written
    in; what holds a digit or a sign is never stemmed. With `russian`, ё is е.

    Raises:
        ConfigError: an unknown language, or two languages of one script.

    """
    return analyser(tuple(languages))(text)


# NFKC leaves these alone, but an identifier is typed with any of them: hyphens, the en dash of ranges, the minus.
HYPHENS = dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2212), "-")
INVISIBLE = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
LETTERS = regex.compile(rf"(?V1){LETTER}")
PART = regex.compile(rf"(?V1){WORD}+")
COMPOUND = regex.compile(
    rf"(?V1)(?:{LETTER})+|(?:(?<![{WORD}.])\.(?=\p{{L}}))?{WORD}+(?:[-./_:+@&]{WORD}+)*(?:\+\+?|\#)?"
)
NUMBER = regex.compile(r"\p{N}")


@cache
def analyser(languages: tuple[str, ...]) -> Callable[[str], list[str]]:
    """The function from a text to its terms in these languages.

    Raises:
        ConfigError: an unknown language, or two languages of one script.

    """
    stems = stemmers(languages)
    yo = "е" if "russian" in languages else "ё"

    @lru_cache(maxsize=2**16)  # a corpus repeats its words
    def expanded(compound: str) -> list[str]:
        if LETTERS.match(compound):
            letters: list[str] = LETTERS.findall(compound)
            return letters + ["".join(pair) for pair in pairwise(letters)]
        parts = PART.findall(compound)
        whole = [compound] if parts[0] != compound else []
        return whole + [part if NUMBER.search(part) else stems.get(script(part[0]), str)(part) for part in parts]

    def analyse(text: str) -> list[str]:
        compounds: list[str] = COMPOUND.findall(normal(text).replace("ё", yo))
        return list(chain.from_iterable(map(expanded, compounds)))

    return analyse


def normal(text: str) -> str:
    """`text` without case, full-width forms, ligatures, invisible characters and the many kinds of hyphen."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return str(INVISIBLE.sub("", folded)).translate(HYPHENS)


@cache
def script(letter: str) -> str:
    """The script of a letter, as Unicode names it: `LATIN`, `CYRILLIC`, `GREEK`."""
    return unicodedata.name(letter, "").partition(" ")[0]


# Snowball's algorithms for scripts other than Latin; Serbian texts come in both, its stemmer is used for Cyrillic.
SCRIPTS = {
    "arabic": "ARABIC",
    "armenian": "ARMENIAN",
    "greek": "GREEK",
    "hindi": "DEVANAGARI",
    "nepali": "DEVANAGARI",
    "persian": "ARABIC",
    "russian": "CYRILLIC",
    "serbian": "CYRILLIC",
    "tamil": "TAMIL",
    "yiddish": "HEBREW",
}


def stemmers(languages: Sequence[str]) -> dict[str, Callable[[str], str]]:
    """The stemmer of each script that `languages` are written in.

    Raises:
        ConfigError: an unknown language, or two languages of one script.

    """
    import Stemmer

    known = Stemmer.algorithms()
    chosen: dict[str, str] = {}
    for language in languages:
        if language not in known:
            near = difflib.get_close_matches(language, known, 3, 0.5) or known
            raise ConfigError(
                f"languages: found {language!r}, expected Snowball algorithms; did you mean {' or '.join(near)}?"
            )
        other = chosen.setdefault(SCRIPTS.get(language, "LATIN"), language)
        if other != language:
            raise ConfigError(
                f"languages: found {other} and {language}, which share a script, expected one for each; drop one"
            )
    return {writing: Stemmer.Stemmer(language).stemWord for writing, language in chosen.items()}
