"""An error goes in, what may be told of it comes out: nothing that quotes a document which not everybody may read."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ablate.evaluate import audited
from ablate.types import Dataset, Document

LENGTH = 24
"""Characters in a row that make a quotation: fewer may stand in a document and in an error by chance."""

STEP = 4
"""Every so many characters of a document one may begin: of LENGTH + STEP - 1 shared characters none is overlooked."""

WHOLE = 8
"""A document shorter than a quotation is one itself, from so many characters on."""

CUT = 2000
"""Characters of an error that are told, and therefore looked through."""

LEFT_OUT = "(its words are left out: they quote a document that not everybody may read)"


class Told(NamedTuple):
    """An error in one line or more, and the same with the way through the code that led to it."""

    reason: str
    trace: str


def told(error: BaseException, dataset: Dataset | None) -> Told:
    """What records and terminals may say of an error, which are read by more people than any one document.

    A component that reads the whole corpus, a chunker, an embedder or an index, may quote any of it when it fails.

    Raises:
        DatasetError: the dataset's own files cannot be read any more, so that nobody knows who may read what.

    """
    texts = list(secrets(dataset)) if dataset else []
    reason = f"{type(error).__name__}: {cut(str(error))}"
    if any(quotes(said, texts) for said in messages(error)):
        frames = "".join(traceback.format_tb(error.__traceback__))
        reason = f"{type(error).__name__}: {LEFT_OUT}" if quotes(str(error), texts) else reason
        return Told(reason, f"Traceback (most recent call last):\n{frames}{reason}")
    return Told(reason, "".join(traceback.format_exception(error)).rstrip("\n"))


def messages(error: BaseException | None) -> Iterator[str]:
    """What an error says, its notes, and what the errors say that it came from; each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield from (str(error), *getattr(error, "__notes__", ()))
        error = error.__cause__ or error.__context__


def cut(text: str) -> str:
    return text if len(text) <= CUT else f"{text[:CUT]} ... (cut)"


def secrets(dataset: Dataset) -> Iterator[str]:
    """The texts of all documents that somebody without a name may not read, as `plain` ones."""
    denied = audited(dataset).denied(())
    for document in dataset.documents:
        if document.id in denied:
            yield from map(plain, texts(document))


def texts(document: Document) -> Iterator[str]:
    """Everything that a document says, in its metadata too."""
    yield document.text
    yield document.title
    yield from strings(document.metadata)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from strings(each)


def plain(text: str) -> str:
    """A text with one blank wherever it has white space, so that how its lines break is of no matter."""
    return " ".join(text.split())


def unescaped(text: str) -> str:
    """A message without the escapes by which Python and JSON show white space and other alphabets."""
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    return plain(re.sub(r"\\[nrt]", " ", text))


def quotes(message: str, texts: Iterable[str]) -> bool:
    """Whether a message holds a piece of one of the texts, which are `plain`."""
    said = unescaped(message)
    pieces = {said[start : start + LENGTH] for start in range(len(said) - LENGTH + 1)}
    return any(quoted(text, said, pieces) for text in texts)


def quoted(text: str, said: str, pieces: set[str]) -> bool:
    if len(text) < LENGTH:
        return len(text) >= WHOLE and text in said
    return any(text[start : start + LENGTH] in pieces for start in range(0, len(text) - LENGTH + 1, STEP))
