"""Every number has a legend, and every name is one that a store of metrics takes."""

import re
from dataclasses import fields

import numpy as np
import pytest
from fakes import reader
from hypothesis import given
from hypothesis import strategies as st

from ablate.measures import CATALOGUE, HIGHER, LOWER, NEITHER, cohort, describe, family, slug, unslug
from ablate.score import Exposure, Scoring, of_trace, summarise
from ablate.score.abstention import abstention, top_score
from ablate.score.approximation import approximation
from ablate.score.chunking import chunking
from ablate.score.ingestion import ingestion
from ablate.score.latency import latency
from ablate.score.standards import standards
from ablate.types import Candidates, Chunk, Context, Dataset, Document, Query, Trace, Truth, Unit

LEGAL = re.compile(r"[/\w.\- :]{1,250}")


def emitted():
    """Every name that scoring a run can give, by scoring one."""
    document = Document("d", "Срок 14 дней")
    chunk, documents, query = Chunk(document, 0, 4), {"d": document}, Query("q", "?")
    truth = Truth("q", (((Unit("d"),),),), documents={"d": 1})
    scoring = Scoring([1, 10], 1.0, {"context_tokens": 0.1}, 1.0)
    trace = Trace(query, Candidates({}, []), [], [], Context([chunk], 1), 1, 1, {})
    values = of_trace(truth, trace, documents, Exposure(True, frozenset()), scoring, {}, reader())
    queries = [query, Query("u", "?", answerable=False, why="absent")]
    standard = standards(Dataset("", "", (), (), {}, {}, "nobody", {}, {}, {}, ()))
    return {
        *standard(query, truth, [], None, Context([], 0), 10, len),
        *top_score([1.0], True),
        *abstention(queries, {"q": {}, "u": {}}, {}, 1.0, True),
        *summarise([query], {"q": values}),
        *chunking([chunk], np.array([False]), documents, [truth], 1.0),
        *ingestion(1, {"d": document.text}, documents, {"d"}, [truth]),
        *approximation([], []),
        *latency({"total": [1.0], "rerank": [1.0]}),
        "latency/log_ratio",
    }


def test_every_emitted_name_has_a_legend_and_is_legal():
    for name in emitted():
        measure = describe(name)
        assert measure.name == name
        assert "{" not in measure.formula
        assert measure.better in (HIGHER, LOWER, NEITHER)
        assert LEGAL.fullmatch(name)
        assert "//" not in name
        assert describe(f"delta/{name}").unit == measure.unit


def test_no_line_of_the_legend_is_dead():
    described = {family(name).name for name in emitted()}
    lines = [line.name for line in CATALOGUE if line.name.partition("/")[0] not in ("delta", "cohort")]
    patterns = [re.compile(re.sub(r"\\\{\w+\\\}", r"\\w+", re.escape(line))) for line in lines]
    assert [pattern.pattern for pattern in patterns if not any(map(pattern.fullmatch, described))] == []


def test_the_numbers_of_a_name_stand_in_its_formula():
    assert "the first 7 chunks" in describe("retrieval/coverage_at_7").formula
    assert "in rerank" in describe("latency/rerank_p95").formula
    assert family("retrieval/recall_at_10") == family("retrieval/recall_at_3")
    assert family("doc/map") == describe("doc/map")


def test_a_name_that_nothing_has_is_an_error():
    for name in ("recall@5", "retrieval/recall_at_0", "retrieval/recall_at_k", "doc/", ""):
        with pytest.raises(KeyError):
            describe(name)


def test_a_difference_is_shown_with_its_sign_and_what_does_not_apply_is_no_number():
    assert describe("delta/context/sufficient").show(0.0834) == "+0.083"
    assert describe("context/tokens").show(812.4) == "812"
    assert describe("doc/map").show(None) == "n/a"


def test_a_cohort_keeps_the_direction_of_its_measure():
    name = cohort("context/tokens", "язык", "русский язык, 100 %")
    assert LEGAL.fullmatch(name)
    measure = describe(name)
    assert (measure.better, measure.unit) == (LOWER, "tokens")
    assert measure.formula.endswith("язык=русский язык, 100 %")


@given(st.text(min_size=1), st.text(min_size=1))
def test_cohort_names_are_legal_and_can_be_read_back(key, value):
    name = cohort("doc/map", key, value)
    assert re.fullmatch(r"[/\w.-]+", name)
    _, first, second, measure = name.split("/", 3)
    assert (unslug(first), unslug(second), measure) == (key, value, "doc/map")


@given(st.text(), st.text())
def test_different_cohorts_never_share_a_name(one, other):
    assert (slug(one) == slug(other)) == (one == other)


def test_a_legend_line_is_complete():
    for line in CATALOGUE:
        assert all(getattr(line, field.name) for field in fields(line) if field.name != "style")
        assert format(0.5, line.style)
