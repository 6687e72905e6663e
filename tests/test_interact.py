"""Two variants together: four cells that differ in exactly two stages, and a word for what they do to each other."""

import json

import pytest
import runs
from cli import QUIET, ablate, workshop

from ablate.interact import Square, data, told
from ablate.page import Terminal
from ablate.workspace import Workspace

DECLARED = {"verdict": {"_target_": "ablate.verdict.Declared", "primary": None, "margin": 0.1}}
PAIR = ("context_packing", "chunking_small")


@pytest.fixture
def work(tmp_path, monkeypatch):
    return workshop(tmp_path, monkeypatch)


def square(place, base, first, second, both, of=80):
    """Four runs in which so many of the questions have all their evidence, the same ones first."""

    def values(good):
        return {f"вопрос-{n:02}": runs.evidence(n < good, float(n < good)) for n in range(of)}

    baseline = runs.build(place, values=values(base), config=DECLARED)
    stages = {"a": (first, "retriever"), "б": (second, "reranker"), "a+б": (both, "retriever+reranker")}
    made = [
        runs.build(place, name, values(good), baseline=baseline, config=DECLARED, component=stage)
        for name, (good, stage) in stages.items()
    ]
    return Square(baseline, *made)


@pytest.mark.parametrize(
    ("cells", "word"),
    [
        ((5, 5, 5, 45), "reinforcing"),  # only both help
        ((5, 45, 45, 45), "overlapping"),  # either helps, both no more
        ((0, 0, 40, 40), "additive"),  # one does nothing, alone or together
        ((5, 8, 9, 11), "cannot tell"),
    ],
)
def test_the_word_says_what_both_do_beyond_what_each_does(tmp_path, cells, word):
    found = square(Workspace(tmp_path), *cells)
    assert found.interplay().word == word
    base, first, second, both = (cell / 80 for cell in cells)
    assert found.means() == [base, first, second, both]
    assert data(found)["interaction"]["difference"] == pytest.approx(both - first - second + base)


def test_the_answer_comes_first_and_fits_the_page(tmp_path):
    said = told(square(Workspace(tmp_path), 5, 45, 45, 45), Terminal(100)).splitlines()
    assert said[0].startswith("a and б overlap: together +0.500, alone +0.500 and +0.500; interaction -0.500")
    assert max(map(len, said)) <= 100


@pytest.mark.slow
def test_four_lines_are_run_once_and_differ_in_two_stages(work):
    first = ablate("interact", *PAIR, *QUIET, "retriever=bm25", "--json")
    assert first.code == 0, first.err
    found = json.loads(first.out)
    made = {path.parent.name: json.loads(path.read_text()) for path in work.glob("experiments/runs/*/*/run.json")}
    assert len(made) == 4
    both = made[found["runs"]["both"]]
    assert (both["variant"], both["component"]) == ("chunking_small+context_packing", "chunker+packer")
    assert found["measure"] == "retrieval/coverage_at_640_tokens"
    cells = found["cells"]
    added = cells["both"] - cells["first"] - cells["second"] + cells["baseline"]
    assert found["interaction"]["difference"] == pytest.approx(added)
    assert ablate("interact", *reversed(PAIR), *QUIET, "retriever=bm25").code == 0  # the other way round
    assert len(list(work.glob("experiments/runs/*/*/run.json"))) == 4
    table = ablate("compare", "--json")
    families = {row["label"]: row["verdict"] and row["verdict"]["family"] for row in json.loads(table.out)["runs"]}
    assert families == {
        "baseline": None, "context_packing": 2, "chunking_small": 2, "chunking_small+context_packing": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hybrid", "bm25"), "found two variants of the stage retriever"),
        (("hybrid", "rerankr"), "did you mean variant/reranker?"),
        (("hybrid",), "found 1 variants (hybrid), expected two"),
        (("hybrid", "reranker", "mmr"), "found 3 variants"),
        (("hybrid", "reranker", "reranker.frist=3"), "frist"),
        (("hybrid", "reranker", "hydra.job.chdir=true"), "found a launcher or a callback of Hydra's"),
    ],
)
def test_a_wrong_question_is_one_sentence_and_runs_nothing(work, words, said):
    found = ablate("interact", *QUIET, *words)
    assert found.code == 2
    assert said in found.err
    assert not (work / "experiments" / "runs").exists()
