"""A study as an MLflow store tells it: which measure a run is about, in which order, and the answer."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.distant import ENDS, Held, answer, cells, gather, page, primary, row, told
from ablate.page import Terminal

METRICS = {"context/sufficient": 0.5, "context/tokens": 600.0, "delta/context/sufficient": 0.1, "acl/violations": 0.0}
FAIR = "retrieval/coverage_at_640_tokens"


def held(variant="words", metrics=(), params=(), status="FINISHED", **tags):
    own = {"ablate.variant": variant, "ablate.run": f"{variant}-1", "ablate.component": "retriever"}
    marks = own | {f"ablate.{key}": value for key, value in tags.items()}
    return Held("abc", variant, status, METRICS | dict(metrics), {"budget": "640", **dict(params)}, marks)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (held(), "context/sufficient"),
        (held(params={"verdict.primary": "null"}), "context/sufficient"),
        (held(params={"verdict.primary": "doc/mrr"}), "doc/mrr"),
        (held(component="chunker", metrics={FAIR: 0.4}), FAIR),
        (held(component="chunker"), "context/sufficient"),
        (held(metrics={FAIR: 0.4}), "context/sufficient"),
        (Held("a", "a", "FINISHED", {"doc/ndcg_at_10": 0.2}, {}, {"ablate.variant": "a"}), "doc/ndcg_at_10"),
    ],
    ids=["evidence", "nothing declared", "declared", "fair", "no budget", "not reshaping", "documents"],
)
def test_a_run_is_told_by_the_measure_that_its_word_is_about(run, expected):
    assert primary(run) == row(run).measure == expected


def test_a_row_has_what_the_store_has_and_nothing_else():
    found = row(held(component="packer", metrics={FAIR: 0.4, f"delta/{FAIR}": -0.2}, verdict="worse"))
    assert (found.value, found.difference, found.word, found.baseline) == (0.4, -0.2, "worse", False)
    assert cells(found) == ["words", "worse", "0.400", "-0.200", "600", "n/a", "0", ""]
    killed = row(Held("a", "a", "KILLED", {}, {}, {"ablate.variant": "a"}))
    assert killed.baseline
    assert cells(killed) == ["a", "", "n/a", "", "n/a", "n/a", "n/a", "KILLED"]


def test_the_answer_counts_words_and_names_what_is_better_and_what_leaks():
    runs = [
        row(held("base", component="")),
        row(held("слова", verdict="better")),
        row(held("b", verdict="cannot tell")),
        row(held("c", verdict="cannot tell", metrics={"acl/violations": 0.5})),
        row(held("d", status="FAILED")),
    ]
    assert answer(runs[1:]) == "FORBIDDEN documents in c; 1 better, 2 cannot tell, 1 failed; better: слова +0.100"
    assert answer([]) == "no variant"
    said = list(page("учёба", runs[1:], Terminal(100)))
    assert said[0].startswith("FORBIDDEN documents in c")
    assert "слова" in said[-1]


def paged(runs, size):
    """Pages of a store that sorts runs by their ids, as MLflow does."""

    def ask(end, token):
        ordered = sorted(runs, key=lambda run: run.id, reverse=end == "DESC")
        start = int(token or 0)
        return ordered[start : start + size], str(start + size) if start + size < len(ordered) else None

    return ask


@given(st.integers(0, 60), st.integers(1, 9), st.booleans())
def test_runs_that_are_asked_for_from_both_ends_are_all_found(number, size, together):
    runs = [Held(f"{place:02}", "имя", "FINISHED", {}, {}, {}) for place in range(number)]
    found = {}
    with ThreadPoolExecutor(2 if together else 1) as ends:
        list(ends.map(partial(gather, paged(runs, size), found), ENDS))
    assert sorted(found.values(), key=lambda run: run.id) == runs


def test_who_asks_from_one_end_stops_at_what_came_from_the_other():
    runs = [Held(f"{place:02}", "", "FINISHED", {}, {}, {}) for place in range(40)]
    found, asked, ask = {run.id: run for run in runs[20:]}, [], paged(runs, 5)
    gather(lambda end, token: asked.append(token) or ask(end, token), found, "ASC")
    assert (len(found), asked) == (40, [None, "5", "10", "15", "20"])


def test_json_of_a_server_is_read_with_whatever_it_leaves_out():
    info = {"run_id": "a", "status": "RUNNING"}
    assert told(info, {}) == Held("a", "", "RUNNING", {}, {}, {})
    data = {
        "metrics": [{"key": "x", "value": 1}, {"key": "y", "value": "NaN"}, {"key": "zero"}],
        "tags": [{"key": "t", "value": "ё"}, {"key": "empty"}],
        "params": [{"key": "p", "value": "null"}],
    }
    found = told({**info, "run_name": "имя"}, data)
    assert found.metrics["x"] == 1.0
    assert found.metrics["y"] != found.metrics["y"]
    assert found.metrics["zero"] == 0.0
    assert (found.name, found.tags, found.params) == ("имя", {"t": "ё", "empty": ""}, {"p": "null"})
