"""Lexical search: the formula, what a term is, and both libraries to the last bit."""

import json
import logging
import math
from pathlib import Path

import numpy as np
import pytest
import rank_bm25
from fakes import HashEmbedder, chunks, everything, query
from hypothesis import given, settings
from hypothesis import strategies as st
from searching import BM25, RETRIEVERS, TEXTS, WORDS, found, named, placed

import ablate
from ablate.errors import ConfigError
from ablate.retriever import Bm25, Dense, RankBm25
from ablate.tokens import terms
from ablate.types import Chunk, Document, Hit, Query, ranking


class PositiveIdf(rank_bm25.BM25Okapi):
    def _calc_idf(self, nd):
        for word, n in nd.items():
            self.idf[word] = math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5))


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (0.1, 0.0), (2.0, 1.0)])
def test_scores_are_those_of_rank_bm25_to_the_last_bit(k1, b):
    @given(TEXTS.filter(any), st.lists(st.sampled_from(WORDS)).map(" ".join))
    @settings(deadline=None, max_examples=60)
    def check(texts, asked):
        with np.errstate(invalid="ignore"):  # the reference divides by zero where a text is empty
            expected = PositiveIdf([terms(text) for text in texts], k1=k1, b=b).get_scores(terms(asked)).tolist()
        hits = [Hit(chunk, score) for chunk, score in zip(chunks(*texts), expected, strict=True) if score > 0]
        assert placed(found(Bm25(k1, b, []), chunks(*texts), asked, 10)) == placed(ranking(hits)[:10])

    check()


def test_a_term_in_half_of_the_documents_still_counts():
    hits = found(BM25, chunks("отпуск", "премия"), "отпуск")
    assert named(hits) == ["d0"]
    assert hits[0].score > 0


def test_a_term_in_every_document_still_counts():
    assert len(found(BM25, chunks("отпуск и", "премия и"), "и")) == 2


def test_a_repeated_word_of_the_query_counts_as_often():
    once, twice = (found(BM25, chunks("отпуск"), asked)[0].score for asked in ("отпуск", "отпуск отпуск"))
    assert twice == 2 * once


@pytest.mark.parametrize("texts", [(), ("", " "), ("...",)])
def test_a_corpus_without_a_term_is_indexed_and_finds_nothing(texts):
    assert found(BM25, chunks(*texts), "отпуск") == []


@pytest.mark.parametrize("asked", ["zzz", "", " ", "?!"])
def test_a_query_that_shares_no_term_finds_nothing(asked):
    assert found(BM25, chunks("отпуск", "премия"), asked) == []


def test_silence_of_chunks_and_queries_is_told_but_not_of_blanks():
    items = chunks("отпуск", "!?", " ", "")
    search = BM25.index(items, None)
    assert search.silent_chunks == 1
    assert [search.silent(query(text)) for text in ("?!", " ", "", "zzz", "отпуск")] == [
        True,
        False,
        False,
        False,
        False,
    ]
    both = RETRIEVERS["hybrid"].index(items, HashEmbedder())
    assert both.silent_chunks == 1
    assert both.silent(query("?!"))
    assert Dense().index(items, HashEmbedder()).silent_chunks == 0


def test_cyrillic_and_ideographs_are_found():
    items = chunks("vacation lasts long", "Отпуск длится 28 дней", "東京の休暇")
    assert named(found(BM25, items, "сколько ДНЕЙ отпуска")) == ["d1"]
    assert named(found(BM25, items, "休暇")) == ["d2"]


def test_languages_find_other_forms_of_a_word():
    items = chunks("Отпуск предоставляется", "holidays")
    assert found(BM25, items, "отпуска") == found(BM25, items, "holiday") == []
    stemmed = Bm25(1.5, 0.75, ["russian", "english"])
    assert named(found(stemmed, items, "отпуска")) == ["d0"]
    assert named(found(stemmed, items, "holiday")) == ["d1"]


@pytest.mark.parametrize("identifier", ["CX-429", "C++", ".NET", "v2.1.3", "AB/12"])
def test_an_identifier_beats_its_parts(identifier):
    part = terms(identifier)[-1]
    items = chunks(f"{part} есть", f"{identifier} есть", f"есть {part} {part}")
    assert named(found(BM25, items, identifier))[0] == "d1"


def test_indexing_neither_prints_nor_logs(capsys, caplog):
    with caplog.at_level(logging.DEBUG):
        found(BM25, chunks("отпуск"), "отпуск")
    assert capsys.readouterr() == ("", "")
    assert [record for record in caplog.records if record.name.startswith("bm25s")] == []


@pytest.mark.parametrize(
    ("k1", "b", "key"),
    [(-0.1, 0.5, "k1"), (math.nan, 0.5, "k1"), (math.inf, 0.5, "k1"), (1, 1.1, "b"), (1, math.nan, "b")],
)
def test_settings_out_of_range_are_refused(k1, b, key):
    with pytest.raises(ConfigError, match=f"^{key}: found"):
        Bm25(k1, b, [])


def test_an_unknown_language_is_refused_before_anything_is_indexed():
    with pytest.raises(ConfigError, match="found 'klingon'"):
        Bm25(1.5, 0.75, ["klingon"])


# The package rank_bm25

DATA = Path(__file__).parents[2] / "shared" / "data"
DEMO = Path(ablate.__file__).parent / "data" / "demo"
COLLECTIONS = [
    DEMO,
    *(
        pytest.param(DATA / name, marks=[pytest.mark.slow, pytest.mark.skipif(not DATA.is_dir(), reason="not here")])
        for name in ("hotpot200", "cran", "xquad")
    ),
]


def read(path):
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("folder", COLLECTIONS, ids=lambda folder: folder.name)
@pytest.mark.parametrize(("k1", "b", "languages"), [(1.5, 0.75, []), (0.9, 0.4, ["english", "russian"])])
def test_both_packages_rank_real_texts_alike_to_the_last_bit(folder, k1, b, languages):
    documents = [Document(row["_id"], row["text"], row.get("title", "")) for row in read(folder / "corpus.jsonl")]
    items = [Chunk(document, 0, len(document.text)) for document in documents if document.text]
    asked = [Query(row["_id"], row["text"]) for row in read(folder / "queries.jsonl")][:200]
    one, other = (kind(k1, b, languages).index(items, None) for kind in (Bm25, RankBm25))
    found = [one(query, everything(items), 50).fused for query in asked]
    assert [other(query, everything(items), 50).fused for query in asked] == found
    assert sum(map(bool, found)) > len(asked) / 2


@given(TEXTS, st.lists(st.sampled_from([*WORDS, "zzz"])).map(" ".join), st.integers(1, 9), st.data())
@settings(deadline=None, max_examples=60)
def test_both_packages_rank_any_texts_alike(texts, asked, depth, data):
    k1, b = data.draw(st.floats(0.01, 5)), data.draw(st.floats(0, 1))
    allowed = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    items = chunks(*texts)
    one, other = (found(kind(k1, b, []), items, asked, depth, None, allowed) for kind in (Bm25, RankBm25))
    assert one == other


@pytest.mark.parametrize("kind", [Bm25, RankBm25])
def test_a_text_without_terms_is_not_found_by_full_length_normalisation(kind):
    assert named(found(kind(1.5, 1.0, []), chunks("отпуск", "", "!?"), "отпуск")) == ["d0"]


def test_the_packages_own_idf_would_find_less():
    items = [terms(text) for text in ("отпуск", "отпуск", "премия")]
    assert rank_bm25.BM25Okapi(items).get_scores(["отпуск"])[0] <= 0
    assert len(found(RankBm25(1.5, 0.75, []), chunks("отпуск", "отпуск", "премия"), "отпуск")) == 2


def test_the_packages_are_silent_about_the_same():
    items = chunks("отпуск", "!?", " ", "")
    search = RankBm25(1.5, 0.75, []).index(items, None)
    assert search.silent_chunks == 1
    assert search.silent(query("?!"))
    assert search(query("отпуск"), everything(items), 5).sources.keys() == {"rank_bm25"}


@pytest.mark.parametrize(("k1", "b"), [(-1, 0.5), (1, 2)])
def test_settings_of_either_package_are_checked(k1, b):
    with pytest.raises(ConfigError):
        RankBm25(k1, b, [])


def test_a_k1_that_the_package_divides_by_is_refused():
    with pytest.raises(ConfigError, match=r"^k1: found 0, expected a number above 0 .* use retriever=bm25"):
        RankBm25(0.0, 0.5, [])
    assert Bm25(0.0, 0.5, []).k1 == 0
