"""Where a text may be cut, and the longest runs between such borders; both in numbers of its tokens.

A chunker that cuts between tokens and leaves none out leaves out no letter, whatever it takes for a border.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import regex

from ablate.errors import ConfigError

Spans = npt.NDArray[np.int64]
"""Start and end of each token, `(tokens, 2)`, as `ablate.tokens.Tokens.spans` gives them."""

# A border that is missed only makes a sentence longer, a wrong one may tear it: in doubt there is none. These are
# followed by the name or number that they belong to.
ABBREVIATIONS = """
    mr mrs ms dr prof st gen col capt lt sgt gov sen rep rev hon messrs jr sr vs cf viz ca approx no nos fig figs eq
    sec ch vol ed art ref pp tab bzw nr abs str vgl evtl ggf mme mlle sra
    г гг ул им см рис табл стр пп ст руб коп тыс млн млрд обл проф акад др гл разд напр ср
"""
# Single letters are initials or parts of "e.g." and "т. е."; short numbers mark items of lists and German dates.
SHORT = rf"(?<![\p{{L}}\p{{M}}\p{{N}}])(?:\p{{L}}|\p{{N}}{{1,2}}|(?i:{'|'.join(ABBREVIATIONS.split())}))"
CLOSING = r"""[\p{Pe}\p{Pf}"'*_`]*+(?:</[a-zA-Z][^<>]*>)*+"""
BREAK = r"(?>\r\n|[\r\n\v\f\x85\u2028\u2029])"


def ending(goes_on: str) -> regex.Pattern[str]:
    """What ends a sentence, unless it is seen to go on by its next character: one of those that `goes_on` matches."""
    return regex.compile(
        rf"""(?V1)
          [\p{{Sentence_Break=STerm}}--[!?]]+{CLOSING}      # 。！？ and their like in any script
        | (?<![.!?…])(?:[!?…]|\.(?<!{SHORT}\.))++{CLOSING}(?=<|\s(?!\s*{goes_on})|[\p{{Zs}}\t]*{BREAK})
        | (?<=\s)[.!?]+(?=\s)                               # stands apart in tokenised texts
        | {BREAK}(?![\p{{Zs}}\t]*\p{{Ll}})                   # a line that does not go on below
        """,
        regex.VERBOSE,
    )


END = ending(r"[\p{Ll}\p{Pd}\p{So}]")  # in lower case, after a quotation, or with a picture
END_WITHOUT_CAPITALS = ending(r"[\p{Pd}\p{So}]")


def sentences(text: str, spans: Spans) -> list[int]:
    """The tokens with which sentences begin, and the number of all tokens, `(sentences + 1,)`.

    Sentences end at the marks of any script, at blank lines, and at line breaks unless the next line goes on in lower
    case. White space between two sentences belongs to neither.
    """
    end = END_WITHOUT_CAPITALS if text.islower() else END
    ends = [match.end() for match in end.finditer(text)]
    return sorted({0, len(spans), *np.searchsorted(spans[:, 0], ends).tolist()})


def packed(edges: Sequence[int], size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Half-open runs of whole pieces between neighbouring `edges`, as long as `size` allows, until the last edge.

    Each run repeats the last whole pieces of the one before as far as they fit into `overlap` and leave room for the
    next piece. A piece longer than `size` counts as pieces of one token.
    """
    atoms = [at for first, last in pairwise(edges) for at in (range(first, last) if last - first > size else (first,))]
    atoms.append(edges[-1])
    start = edges[0]
    while start < edges[-1]:
        place = bisect_right(atoms, start + size) - 1
        end = atoms[place]
        yield start, end
        if end == edges[-1]:
            return
        start = atoms[bisect_left(atoms, max(end - overlap, atoms[place + 1] - size, start + 1))]


def check(size: int, overlap: int) -> None:
    """Refuse windows that cannot move on.

    Raises:
        ConfigError: `size` is below 1, or `overlap` is not in `[0, size)`.

    """
    if size < 1:
        raise ConfigError(f"size: found {size}, expected at least 1 token; set a larger size")
    if not 0 <= overlap < size:
        raise ConfigError(f"overlap: found {overlap} with size {size}, expected 0 <= overlap < size; set a smaller one")
