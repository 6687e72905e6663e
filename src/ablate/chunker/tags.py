"""Raw HTML in, the borders of its blocks and its headings out."""

from __future__ import annotations

import re
from html import unescape

import regex

from ablate.chunker.outline import SENTENCE, Heading, nested

BLOCKS = """
    address article aside blockquote body caption dd details dialog div dl dt fieldset figcaption figure footer form h1
    h2 h3 h4 h5 h6 head header hgroup hr html li main nav ol p pre section summary table td th tr ul
"""
TAG = regex.compile(
    rf"""
      <!--.*?(?:-->|\Z) | <(?:!doctype|\?)[^>]*(?:>|\Z) | <(script|style)\b.*?(?:</\1\s*>|\Z)
    | <(?P<closing>/?)(?P<name>br|{"|".join(BLOCKS.split())})(?=[\s/>])(?:[^"'<>]|"[^"]*"|'[^']*')*+>
    """,
    regex.VERBOSE | regex.DOTALL | regex.IGNORECASE,
)
HEADING = re.compile("h[1-6]")
# Open blocks that end where another begins; a paragraph ends where any does.
ENDED = {"li": ("li",), "tr": ("td", "th", "tr"), "td": ("td", "th"), "th": ("td", "th"), "dd": ("dd", "dt"),
         "dt": ("dd", "dt")}  # fmt: skip


class Page:
    """A walk along the tags of blocks from `start` to `end`, which lie in `depth` other blocks; all else is words.

    A border stands before the first of the tags that open blocks together, and behind the last of those that close
    them. The standard library's parser would not do: it does not say where a closing tag ends, and raises an error
    on some texts that are no HTML.
    """

    def __init__(self, text: str, start: int, end: int, depth: int = 0) -> None:
        self.text, self.depth = text, depth
        self.borders: list[tuple[int, int]] = []
        self.headings: list[Heading] = []
        self.inside = self.outside = 0  # characters in blocks, and in none
        self.blocks: list[str] = []  # those that are open
        self.title: tuple[int, int, str] | None = None  # where an open heading begins, where its words do, its name
        # What has happened since the last word: where blocks began to open, whether some closed, or a heading did.
        self.opened: int | None = None
        self.closed = self.titled = False
        place = start
        for tag in TAG.finditer(text, start, end):
            self.words(place, tag.start())
            place = tag.end()
            self.tag(tag["name"].lower() if tag["name"] else "", bool(tag["closing"]), tag.start(), place)
        self.words(place, end)
        self.finish(end)

    def words(self, start: int, end: int) -> None:
        """What stands between two tags."""
        if not self.text[start:end].strip():
            return
        if self.closed:
            self.borders.append((start, nested(self.depth + len(self.blocks))))
        self.opened, self.closed, self.titled = None, False, False
        if self.blocks:
            self.inside += end - start
        else:
            self.outside += end - start

    def tag(self, name: str, closing: bool, start: int, end: int) -> None:
        if name == "br":
            self.borders.append((end, SENTENCE))
        elif closing:
            self.close(name, start, end)
        elif name:
            self.open(name, start, end)
        elif self.opened is None:  # a comment, a declaration or a script goes with the block that it stands before
            self.opened = start

    def open(self, name: str, start: int, end: int) -> None:
        self.finish(start)
        while self.blocks and self.blocks[-1] in ("p", *ENDED.get(name, ())):
            self.blocks.pop()
        self.opened = start if self.opened is None else self.opened
        self.borders.append((self.opened, nested(self.depth + len(self.blocks))))
        self.closed = self.titled = False
        if HEADING.fullmatch(name):
            self.title = self.opened, end, name
        if name != "hr":  # a rule holds nothing, and goes with the block that it stands before
            self.blocks.append(name)

    def close(self, name: str, start: int, end: int) -> None:
        if self.title and self.title[2] == name:
            self.finish(start)
        if self.titled:  # no words between a heading and this tag: it goes with the heading
            self.headings[-1] = self.headings[-1]._replace(end=end)
        if name in self.blocks:
            while self.blocks.pop() != name:
                pass
            self.closed = True
        self.opened = None

    def finish(self, end: int) -> None:
        """An open heading ends here."""
        if self.title:
            start, words, name = self.title
            text = " ".join(unescape(re.sub("<[^<>]*>", "", self.text[words:end])).split())
            self.headings.append(Heading(start, end, int(name[1]), text))
            self.title, self.titled = None, True
