"""A DOCX file in, its words out as Markdown; what is deleted, a comment or a page's head or foot is left out."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable
from xml.etree import ElementTree

from ablate.errors import NotInstalled, first_line
from ablate.extraction import Extraction, Unreadable
from ablate.extraction.html import converted, spaced

PARSED_BYTES = 64 * 2**20
"""The most that the XML of a document may take: that of a book of a thousand pages takes less than a fourth of it."""

BLOWN_UP = 100
"""How many times its size an archive may take beyond that, pictures and all."""

STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='heading {level}'] => h6:fresh" for level in (7, 8, 9)),
        *(f"p[style-name='{name}'] => pre:separator('\\n')" for name in ("Code", "HTML Preformatted", "Source Code")),
    ]
)
TITLE = "{http://purl.org/dc/elements/1.1/}title"
RETURN = re.compile(r'<a href="#(?:foot|end)note-ref-[^"]*">↑</a>')  # from a note to its place in the text
IGNORED = re.compile(r"An unrecognised element was ignored: (?:\{.*\})?(.+)|(A w:sym element.+|Could not find .+)")


def read(data: bytes, encoding: str) -> Extraction:
    try:
        import mammoth
    except ModuleNotFoundError as error:
        raise NotInstalled(
            'found no package that reads DOCX, expected mammoth; run `pip install "ablate-retrieval[documents]"`'
        ) from error
    title = checked(data)
    try:
        found = mammoth.convert_to_html(
            io.BytesIO(data),
            style_map=STYLES,
            include_embedded_style_map=False,
            convert_image=mammoth.images.img_element(lambda image: {"src": ""}),
        )
    except MemoryError:
        raise
    except Exception as error:  # of whatever kind a broken file makes the library meet
        raise broken(error) from error
    words, _ = converted(RETURN.sub("", found.value))
    return Extraction(words, title, remarks=ignored(message.message for message in found.messages))


def checked(data: bytes) -> str:
    """The title that the file states; before anything is unpacked, what it would take is read from its directory.

    Raises:
        Unreadable: the file is no archive, none of Word's, or would fill the memory.

    """
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise Unreadable("found a file with a password or of Word 97, expected a DOCX file; save it as one without")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
            total = sum(info.file_size for info in archive.infolist())
            parsed = sum(size for name, size in sizes.items() if name.lower().endswith((".xml", ".rels")))
            if parsed > PARSED_BYTES or total > PARSED_BYTES + BLOWN_UP * len(data):
                raise Unreadable(
                    f"found an archive of {len(data):,} bytes that unpacks to {total:,}, expected at most "
                    f"{PARSED_BYTES:,} of text; split the document"
                )
            if "word/document.xml" not in sizes and "_rels/.rels" not in sizes:
                raise Unreadable("found an archive without a document, expected a DOCX file; save it as DOCX")
            core = archive.read("docProps/core.xml") if "docProps/core.xml" in sizes else b"<core/>"
        return spaced(ElementTree.fromstring(core).findtext(TITLE) or "")
    except (Unreadable, MemoryError):
        raise
    except Exception as error:  # of whatever kind a broken file makes the libraries meet
        raise broken(error) from error


def broken(error: Exception) -> Unreadable:
    return Unreadable(f"found a broken file ({first_line(error)}), expected a DOCX file; open it and save it again")


def ignored(messages: Iterable[str]) -> tuple[str, ...]:
    """What the library says that it left out; of styles that it does not know, it keeps the words."""
    matches = filter(None, map(IGNORED.match, messages))
    found = sorted({match[2] or f"elements {match[1]}" for match in matches})
    return (f"left out: {', '.join(found)}",) if found else ()
