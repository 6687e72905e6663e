"""The scored cases that are shared with other implementations, where they lie beside the checkout."""

import json
from pathlib import Path

import pytest

from ablate.commands.score import score
from ablate.dataset import Folder
from ablate.score import Scoring
from ablate.score.runfile import read

CASES = Path(__file__).parents[2] / "shared" / "cases" / "scores"
TREC = {
    "map": "doc/map",
    "recip_rank": "doc/mrr",
    "recall": "doc/recall_at",
    "P": "doc/precision_at",
    "ndcg_cut": "doc/ndcg_at",
}

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not beside this checkout")


def ours(name):
    """The name of this program for one of trec_eval's, which end in their cut-off."""
    stem, _, cutoff = name.rpartition("_")
    return name if "/" in name else TREC.get(name) or f"{TREC[stem]}_{cutoff}"


@pytest.mark.parametrize(
    ("run", "expected"), [("spans.run.jsonl", "spans.expected.json"), ("docs.run.trec", "docs.expected.json")]
)
def test_every_value_of_every_query_is_the_expected_one(run, expected):
    wanted = json.loads((CASES / expected).read_text(encoding="utf-8"))
    dataset = Folder(str(CASES), "test", "none", 1, "nobody", True, None).read()
    found = score(dataset, read(CASES / run, dataset), Scoring(wanted["k"], 1.0, {}, 1.0))["per_query"]
    assert set(found) == set(wanted["per_query"])
    for query, values in wanted["per_query"].items():
        named = {ours(name): value for name, value in values.items()}
        assert {name: found[query][name] for name in named} == pytest.approx(named, abs=1e-12), query
