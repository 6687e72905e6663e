"""Components that break access, each in a way of its own: the checker has to catch every one of them."""

from dataclasses import dataclass, replace

import numpy as np

from ablate.access import Postfilter, Prefilter
from ablate.chunker import Whole
from ablate.retriever import Bm25, Dense
from ablate.types import Candidates, Chunk, Context, Document, Hit

CORPUS: list[Chunk] = []
"""What `Noting` has cut, whoever may read it."""

ANSWERS: dict[str, list[Hit]] = {}
"""What `Remembering` has answered, by the text of the question alone."""


class Noting(Whole):
    """A chunker that leaves every chunk where others reach it."""

    def __call__(self, document, tokens):
        chunks = list(super().__call__(document, tokens))
        CORPUS.extend(chunks)
        return chunks


@dataclass(frozen=True)
class Porous(Postfilter):
    """Filters after the cut, and lets everything through."""

    def over(self, documents, groups, acl_default):
        return Sieve(super().over(documents, groups, acl_default))


@dataclass(frozen=True)
class Sieve:
    view: object

    def __getattr__(self, name):
        return getattr(self.view, name)

    def after(self, query, hits):
        return hits


@dataclass(frozen=True)
class Forgiving(Prefilter):
    """Does not read what an ACL denies."""

    def over(self, documents, groups, acl_default):
        mild = [replace(each, acl=each.acl and replace(each.acl, deny=frozenset())) for each in documents]
        return super().over(mild, groups, acl_default)


@dataclass(frozen=True)
class Unguarded:
    """A search that looks at everything, whatever is allowed."""

    search: object

    def __call__(self, query, allowed, depth):
        return self.search(query, np.ones_like(allowed), depth)


@dataclass(frozen=True)
class OpenDense(Dense):
    def index(self, chunks, embedder):
        return Unguarded(super().index(chunks, embedder))


@dataclass(frozen=True)
class OpenBm25(Bm25):
    def index(self, chunks, embedder):
        return Unguarded(super().index(chunks, embedder))


@dataclass(frozen=True)
class Listing(Dense):
    """Gives out what it may, and everything else in the list of one of its sources."""

    def index(self, chunks, embedder):
        search = super().index(chunks, embedder)

        def found(query, allowed, depth):
            return Candidates(
                {"all": search(query, np.ones_like(allowed), depth).fused}, search(query, allowed, depth).fused
            )

        return found


@dataclass(frozen=True)
class Adding:
    """A reranker that returns hits which it was not given."""

    def __call__(self, query, hits):
        return [*(Hit(chunk, 2.0) for chunk in CORPUS), *hits]


@dataclass(frozen=True)
class Remembering:
    """A reranker that keeps its answers by the question, whoever asks."""

    def __call__(self, query, hits):
        return ANSWERS.setdefault(query.text, list(hits))


@dataclass(frozen=True)
class Neighbours:
    """A packer that adds the chunk which stands next in the corpus, whatever document it is of."""

    def __call__(self, query, hits, k, budget, tokens):
        places = [CORPUS.index(hit.chunk) for hit in hits[:k]]
        return Context([CORPUS[(place + step) % len(CORPUS)] for place in places for step in (0, 1)], 0)


@dataclass(frozen=True)
class Gluing:
    """A packer that hands over the whole corpus as the text of a document that may be read."""

    def __call__(self, query, hits, k, budget, tokens):
        text = "\n".join(chunk.text for chunk in CORPUS)
        return Context([Chunk(Document(hit.chunk.document.id, text), 0, len(text)) for hit in hits[:1]], 0)


@dataclass(frozen=True)
class Merging:
    """A packer that makes one passage of a hit and of the chunk which stands next in the corpus."""

    def __call__(self, query, hits, k, budget, tokens):
        pairs = [(hit.chunk, CORPUS[(CORPUS.index(hit.chunk) + 1) % len(CORPUS)]) for hit in hits[:k]]
        texts = [(chunk.document.id, f"{chunk.text}\n{after.text}") for chunk, after in pairs]
        return Context([Chunk(Document(name, text), 0, len(text)) for name, text in texts], 0)


class Spilling(Noting):
    """A chunker whose parents reach into the text of whatever document it cut before."""

    def __call__(self, document, tokens):
        (chunk,) = super().__call__(document, tokens)
        text = "\n".join([document.text, *(before.text for before in CORPUS[:-1])])
        wide = Document(document.id, text, document.title, document.metadata, document.acl)
        return [replace(chunk, document=wide, parent=Chunk(wide, 0, len(text)))]


@dataclass(frozen=True)
class Raising:
    """A reranker that hands over a whole of its own making in the place of what it was given."""

    def __call__(self, query, hits):
        text = "\n".join(chunk.text for chunk in CORPUS)
        wide = [Document(hit.chunk.document.id, text) for hit in hits]
        return [Hit(Chunk(each, 0, len(text)), hit.score) for each, hit in zip(wide, hits, strict=True)]


CONF = {
    "chunker/noting.yaml": "_target_: leaks.Noting\n",
    "access/porous.yaml": "_target_: leaks.Porous\n",
    "access/forgiving.yaml": "_target_: leaks.Forgiving\nstatistics: global\n",
    "retriever/open.yaml": "_target_: leaks.OpenDense\n",
    "retriever/listing.yaml": "_target_: leaks.Listing\n",
    "retriever/half.yaml": "_target_: ablate.retriever.Hybrid\nrrf_k: 60\nparts:\n"
    "  dense: {_target_: ablate.retriever.Dense}\n"
    "  bm25: {_target_: leaks.OpenBm25, k1: 1.5, b: 0.75, languages: []}\n",
    "reranker/adding.yaml": "_target_: leaks.Adding\n",
    "reranker/remembering.yaml": "_target_: leaks.Remembering\n",
    "chunker/spilling.yaml": "_target_: leaks.Spilling\n",
    "reranker/raising.yaml": "_target_: leaks.Raising\n",
    "packer/merging.yaml": "_target_: leaks.Merging\n",
    "packer/neighbours.yaml": "_target_: leaks.Neighbours\n",
    "packer/gluing.yaml": "_target_: leaks.Gluing\n",
}
