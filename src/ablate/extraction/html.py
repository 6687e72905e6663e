"""An HTML page in, its words out as Markdown: headings, lists, tables and code; no other markup."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

from ablate.extraction import Extraction
from ablate.extraction.encoding import decoded
from ablate.extraction.markdown import table

_BLOCKS = """
    address article aside blockquote caption center dd details dialog dir div dl dt fieldset figcaption figure footer
    form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu ol p pre search section summary table tbody td tfoot th
    thead tr ul
"""
BLOCKS = frozenset(_BLOCKS.split())
VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
UNSEEN = frozenset(("datalist", "nav", "noscript", "object", "script", "style", "svg", "template", "title"))
"""What holds no words of the page itself. A navigation repeats on every page of a site."""

UNSTRUCTURED = frozenset(("html", "head", "body"))  # their tags may be left out, so they mean nothing
HEADING = re.compile("h[1-6]")
CELLS, SECTIONS = ("td", "th"), ("thead", "tbody", "tfoot")
# What a tag ends that is still open, if it stands in none of the second.
ENDS = {
    "li": (("li",), ("ul", "ol", "menu", "dir")),
    "dt": (("dt", "dd"), ("dl",)),
    "dd": (("dt", "dd"), ("dl",)),
    "tr": (("tr",), ("table",)),
    "td": (CELLS, ("tr", "table")),
    "th": (CELLS, ("tr", "table")),
    **dict.fromkeys(SECTIONS, (SECTIONS, ("table",))),
}
DEEPEST, WIDEST = 100, 100
"""Elements in one another that are told apart, and columns that a cell may span: nothing a person writes has more."""

DECLARED = re.compile(
    rb"""<\?xml[^>]*\bencoding\s*=\s*["']([\w.:-]+) | <meta\b[^>]*\bcharset\s*=\s*["']?\s*([\w.:-]+)""",
    re.VERBOSE | re.IGNORECASE,
)
SPACE = re.compile("[ \t\n\r\f\u00a0\u2007\u202f]+")
INVISIBLE = re.compile("[\u00ad\u200b\ufeff]")  # soft hyphens and the like, which would tear words


def read(data: bytes, encoding: str) -> Extraction:
    text, found = page_text(data, encoding)
    words, title = converted(text)
    return Extraction(words, title, encoding=found)


def page_text(data: bytes, encoding: str) -> tuple[str, str]:
    """The page as it is written, and its encoding."""
    declared = DECLARED.search(data, 0, 4096)
    named = next(name for name in declared.groups() if name).decode() if declared else ""
    return decoded(data, encoding, browsers(named))


def browsers(name: str) -> str:
    """The encoding that browsers take a name for (https://encoding.spec.whatwg.org): Latin 1 is that of Windows."""
    try:
        return "cp1252" if codecs.lookup(name).name in ("ascii", "iso8859-1") else name
    except LookupError:
        return name


def converted(page: str) -> tuple[str, str]:
    """The words of a page as Markdown, and its title."""
    tree = Tree()
    tree.feed(page)
    tree.close()
    words = "\n\n".join(block.text for block in blocks(tree.root.children))
    return words + "\n" * bool(words), spaced("".join(tree.title))


@dataclass
class Element:
    """An element with what stands in it; `block` if it is one or holds one."""

    name: str
    attributes: dict[str, str]
    block: bool
    children: list[Element | str] = field(default_factory=list)


@dataclass
class Block:
    """Lines of Markdown; a list may follow the paragraph that leads to it at once."""

    text: str
    list: bool = False


class Tree(HTMLParser):
    """The elements of a page; what is left open ends where its parent does, or with a tag that cannot stand in it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {}, True)
        self.open = [self.root]
        self.title: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNSTRUCTURED:
            return
        if tag in BLOCKS:
            self.end(("p",), BLOCKS - {"p"})
        if tag in ENDS:
            self.end(*ENDS[tag])
        element = Element(tag, {name: value or "" for name, value in attrs}, tag in BLOCKS)
        self.open[-1].children.append(element)
        if element.block:
            for parent in reversed(self.open):
                if parent.block:
                    break
                parent.block = True
        if tag not in VOID and len(self.open) < DEEPEST:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in UNSTRUCTURED:
            self.end((tag,), ())

    def parse_marked_section(self, start: int, report: int = 1) -> int:
        """Pass over `<![if !supportLists]>` and the like, as browsers do; the parser would stop at some of them."""
        return self.rawdata.find(">", start) + 1 or len(self.rawdata)

    def handle_data(self, data: str) -> None:
        if self.open[-1].name == "title" and not any(element.name == "svg" for element in self.open):
            self.title.append(data)
        self.open[-1].children.append(data)

    def end(self, names: Iterable[str], within: Iterable[str]) -> None:
        """Close the innermost open element of one of these names, unless one of `within` is further in."""
        for number in range(len(self.open) - 1, 0, -1):
            if self.open[number].name in names:
                del self.open[number:]
                return
            if self.open[number].name in within:
                return


def blocks(children: Iterable[Element | str]) -> list[Block]:
    """Elements and words as blocks; words between two of them are a paragraph."""
    found: list[Block] = []
    run: list[Element | str] = []
    for child in children:
        if isinstance(child, str) or not child.block:
            run.append(child)
        else:
            found += [*paragraph(run), *inner(child)]
            run = []
    return found + paragraph(run)


def paragraph(run: list[Element | str]) -> list[Block]:
    words = spaced(inline(run))
    return [Block(words)] if words else []


def inner(element: Element) -> list[Block]:
    """A block as Markdown."""
    if unseen(element):
        return []
    if HEADING.fullmatch(element.name):
        words = " ".join(flat(element).split()).removesuffix("¶").rstrip()  # the link to itself that Sphinx puts there
        return [Block(f"{'#' * int(element.name[1])} {words}")] if words else []
    if element.name in ("ul", "ol", "menu", "dir"):
        return listing(element)
    if element.name == "table":
        return tabular(element)
    if element.name == "pre":
        return code(element)
    if element.name == "blockquote":
        quoted = "\n\n".join(block.text for block in blocks(element.children))
        return [Block("\n".join(f"> {line}".rstrip() for line in quoted.split("\n")))] if quoted else []
    return blocks(element.children)


def listing(element: Element) -> list[Block]:
    """A list; what stands in it outside of its items, as a list within a list may, is an item's too."""
    ordered, start = element.name == "ol", element.attributes.get("start", "")
    number = int(start) if re.fullmatch("[0-9]{1,9}", start) else 1
    items = []
    for child in element.children:
        held = blocks(child.children if isinstance(child, Element) and child.name == "li" else [child])
        if held:
            marker = f"{number}. " if ordered else "- "
            text = held[0].text + "".join(("\n" if block.list else "\n\n") + block.text for block in held[1:])
            items.append(marker + text.replace("\n", "\n" + " " * len(marker)).replace(" " * len(marker) + "\n", "\n"))
            number += 1
    return [Block("\n".join(items), list=True)] if items else []


def code(element: Element) -> list[Block]:
    text = inline(element.children, raw=True).removeprefix("\n").rstrip()
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return [Block(f"{fence}\n{text}\n{fence}")] if text else []


def tabular(element: Element) -> list[Block]:
    """A table, below its caption and what stands in it outside of cells; one for layout only as what it holds."""
    above = blocks(strays(element))
    rows = [[cell for cell in row.children if named(cell, *CELLS)] for row in lines(element)]
    cells = [cell for row in rows for cell in row if isinstance(cell, Element)]
    if len(rows) < 2 or max(map(len, rows)) < 2 or any(map(holds_table, cells)):
        return above + blocks(cells)
    return [*above, Block(table(list(grid(rows))))] if any(flat(cell).strip() for cell in cells) else above


def strays(element: Element) -> Iterator[Element | str]:
    """What stands in a table outside of its cells."""
    for child in element.children:
        if named(child, "tr", *SECTIONS):
            assert isinstance(child, Element)
            yield from strays(child)
        elif not named(child, *CELLS) or element.name != "tr":
            yield child


def lines(element: Element) -> Iterator[Element]:
    for child in element.children:
        if isinstance(child, Element):
            if child.name == "tr":
                yield child
            elif child.name in SECTIONS:
                yield from lines(child)


def grid(rows: Iterable[Iterable[Element | str]]) -> Iterator[list[str]]:
    """The cells' words, each in its first column and row; the others that it spans are empty."""
    taken: dict[int, int] = {}  # column -> rows, from this one on, that a cell above covers
    for row in rows:
        line: list[str] = []
        for cell in row:
            assert isinstance(cell, Element)
            while taken.get(len(line), 0):
                line.append("")
            first, width = len(line), spanned(cell, "colspan")
            line += [flat(cell), *[""] * (width - 1)]
            taken.update(dict.fromkeys(range(first, first + width), spanned(cell, "rowspan")))
        taken = {column: left - 1 for column, left in taken.items() if left > 1}
        yield line


def spanned(cell: Element, attribute: str) -> int:
    found = cell.attributes.get(attribute, "")
    return min(int(found), WIDEST) or 1 if re.fullmatch("[0-9]{1,9}", found) else 1


def holds_table(element: Element) -> bool:
    return any(
        isinstance(child, Element) and (child.name == "table" or holds_table(child)) for child in element.children
    )


def named(child: Element | str, *names: str) -> bool:
    return isinstance(child, Element) and child.name in names


def unseen(element: Element) -> bool:
    role = element.attributes.get("role", "")
    return element.name in UNSEEN or "hidden" in element.attributes or role.strip().lower() == "navigation"


def flat(element: Element) -> str:
    """All words of an element, a space between its blocks."""
    return spaced(inline([element]))


def inline(children: Iterable[Element | str], raw: bool = False) -> str:
    """Words with white space as it is; a line break is one line feed, and with `raw` white space counts as written."""
    found = []
    for child in children:
        if isinstance(child, str):
            found.append(INVISIBLE.sub("", child if raw else SPACE.sub(" ", child)))
        elif child.name == "br":
            found.append("\n")
        elif child.name == "img":
            found.append(child.attributes.get("alt", ""))
        elif not unseen(child):
            words = inline(child.children, raw)
            found.append(f" {words} " if child.block and not raw else words)
    return "".join(found)


def spaced(text: str) -> str:
    """One space between words, none at the ends of lines, and no empty lines."""
    words = (" ".join(SPACE.sub(" ", line).split(" ")).strip() for line in text.split("\n"))
    return "\n".join(re.sub(" +", " ", line) for line in words if line)
