"""Known figures on public collections, where these lie beside the project: the whole line against what is known."""

from pathlib import Path

import pytest
from cli import ablate, means, runs, workshop

DATA = Path(__file__).parents[2] / "shared" / "data"
WHOLE = ("chunker=whole", "latency=off", "tracking=off")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not DATA.is_dir(), reason="the public collections are not here")]


@pytest.fixture
def place(tmp_path, monkeypatch):
    return workshop(tmp_path, monkeypatch)


def test_bm25_with_english_stems_reaches_its_known_value_on_scifact(place):
    said = ablate(f"dataset.dir={DATA / 'scifact'}", "retriever=bm25", "retriever.languages=[english]", *WHOLE)
    assert said.code == 0, said.err
    assert 0.66 <= means(runs()["baseline"])["doc/ndcg_at_10"] <= 0.69


def test_the_cross_encoder_lifts_dense_search_on_hotpot(place):
    said = ablate(f"dataset.dir={DATA / 'hotpot200'}", "+variant=reranker", *WHOLE)
    assert said.code == 0, said.err
    dense, reranked = (means(runs()[name])["doc/ndcg_at_10"] for name in ("baseline", "reranker"))
    assert dense == pytest.approx(0.795, abs=0.01)
    assert reranked - dense >= 0.04
