from fakes import chunks, query

from ablate.packer import TopK
from ablate.tokens import Words
from ablate.types import Context, Hit

HITS = [Hit(chunk, -rank) for rank, chunk in enumerate(chunks("да", "28 дней.", "нет", title="Кадры"))]


def test_the_first_k_are_handed_over_as_they_are():
    context = TopK()(query(), HITS, 2, 640, Words())
    assert context == Context((HITS[0].chunk, HITS[1].chunk), 4)


def test_fewer_hits_than_k_are_all_handed_over():
    assert len(TopK()(query(), HITS, 9, 640, Words()).passages) == 3


def test_nothing_in_nothing_out():
    assert TopK()(query(), [], 5, 640, Words()) == Context((), 0)
