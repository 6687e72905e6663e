"""What a run leaves on disk: who it was, its config, values, rankings and a TREC run that others can read."""

import json
import math
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ablate import archive, records
from ablate.archive import escaped, failed, fingerprint, finished, outputs, ranked, trec
from ablate.evaluate import Evaluation
from ablate.types import Candidates, Chunk, Context, Document, Hit, Query, Trace
from ablate.workspace import Workspace

ONE, TWO = Document("отпуск 50%", "Отпуск длится 28 дней."), Document("b", "Remote work.")
A, B, C = Chunk(ONE, 0, 6), Chunk(ONE, 7, 22), Chunk(TWO, 0, 12)


def trace(*chunks, context=None, query="вопрос 1"):
    hits = [Hit(chunk, 10.0 - place / 3) for place, chunk in enumerate(chunks)]
    packed = Context(tuple(chunks[:2] if context is None else context), 5)
    asked = Query(query, "сколько?", frozenset({"user:b", "user:a"}), {"год": 2024}, {"язык": "ru"}, intent="rule")
    return Trace(asked, Candidates({"bm25": hits}, hits), hits, hits, packed, 3, 2, {"search": 1.5})


def evaluation(*traces, values=None):
    asked = [each.query.id for each in traces]
    return Evaluation(
        [A.id, B.id, C.id],
        {"embedder": "weights 1"},
        {query: {"tokens_at_depth": 9, "tokens_at_k": 5} for query in asked},
        list(traces),
        {query: values or {"context/sufficient": 1.0, "retrieval/completion_rank": math.inf} for query in asked},
        {"context/sufficient": {"mean": 1.0, "n": 1, "not_applicable": 0}},
        {"queries": len(traces)},
        dict.fromkeys(asked, "a5ced"),
        {query: {"queries": 1.0, "rerank_pairs": 20.0} for query in asked},
        {query: query for query in asked},
        {query: [B] for query in asked},
    )


SIDE = SimpleNamespace(
    config={"retriever": {"_target_": "ablate.retriever.Dense"}, "note": "off", "путь": "~/отчёты: и база", "k": 5},
    overrides=["+variant=bm25", "dataset.dir='отчёты и база'"],
    changes={"retriever._target_": ("ablate.retriever.Dense", "ablate.retriever.Bm25"), "retriever.b": (None, 0.75)},
    component="retriever",
)


def begun():
    """Two seconds ago."""
    return records.Start(datetime.now(UTC) - timedelta(seconds=2), time.monotonic() - 2)


def facts():
    return {
        "run": "bm25-1", "study": "d-1", "variant": "bm25", "component": "retriever",
        "fingerprints": {"corpus": "c"}, "latency": False,
    }  # fmt: skip


def test_a_finished_run_can_be_read_back_as_it_was(tmp_path):
    timings = [{"query_id": "вопрос 1", "baseline": {"search": 1.0}, "variant": {"search": 2.0}}]
    files = finished(SIDE, facts(), begun(), evaluation(trace(A, C)), timings, tmp_path)
    record = records.write(Workspace(tmp_path).runs / "d-1/bm25-1", files)
    assert (record.finished, record.error, record.component) == (True, None, "retriever")
    assert 2 <= record.seconds < 60
    assert record.config == SIDE.config
    assert list(record.config) == list(SIDE.config), "in the order in which data flows"
    assert list(record.overrides) == SIDE.overrides
    assert record.changes == SIDE.changes
    assert record.facts["models"] == {"embedder": "weights 1"}
    assert record.values("context/sufficient") == {"вопрос 1": 1.0}
    assert set(record.fingerprints) == {"corpus", "ranking"}
    assert record.mean("latency/total_p50") == 2.0
    assert {path.name for path in record.folder.iterdir()} >= {
        "environment.json",
        "latency.jsonl",
        "metrics.json",
        "queries.jsonl",
        "ranking.jsonl",
        "ranking.trec",
    }


def test_a_failed_run_says_who_it_was_and_why(tmp_path):
    record = records.write(tmp_path / "d-1/bm25-1", failed(SIDE, facts(), begun(), "ValueError: сломано"))
    assert (record.finished, record.error) == (False, "ValueError: сломано")
    assert record.config == SIDE.config
    assert list(record.overrides) == SIDE.overrides


@pytest.mark.parametrize(
    "value", ["off", "null", "1", "1e3", "~", "а: б", "# нет", "- x", "\u2028", "'", "{a}", "", "0x1"]
)
def test_text_in_a_config_stays_text(tmp_path, value):
    side = SimpleNamespace(**{**vars(SIDE), "config": {"значение": value}, "overrides": [value]})
    record = records.write(tmp_path / "d-1/bm25-1", failed(side, facts(), begun(), "x"))
    assert yaml.safe_load((record.folder / "config.yaml").read_text(encoding="utf-8")) == {"значение": value}
    assert yaml.safe_load((record.folder / "overrides.yaml").read_text(encoding="utf-8")) == [value]


def test_the_line_of_a_query_says_who_asked_among_what_and_what_came_of_it(tmp_path):
    files = finished(SIDE, facts(), begun(), evaluation(trace(A, C)), [], tmp_path)
    (line,) = files["queries.jsonl"]
    assert line["principals"] == ["user:a", "user:b"]
    assert (line["filter"], line["cohorts"], line["intent"]) == ({"год": 2024}, {"язык": "ru"}, "rule")
    assert line["pool"] == {"chunks": 3, "documents": 2, "tokens_at_depth": 9, "tokens_at_k": 5}
    assert line["values"] == {"context/sufficient": 1.0, "retrieval/completion_rank": None}
    assert "сколько?" not in json.dumps(files["queries.jsonl"], ensure_ascii=False), "texts stay in the data set"


def test_a_ranking_is_kept_with_its_places_and_whole_scores():
    line = ranked(trace(B, A, C))
    assert [hit["score"] for hit in line["hits"]] == [10.0, 10.0 - 1 / 3, 10.0 - 2 / 3]
    assert line["hits"][0] | {"score": None} == {"doc_id": "отпуск 50%", "start": 7, "end": 22, "score": None}
    assert line["context"] == [
        {"doc_id": "отпуск 50%", "start": 7, "end": 22},
        {"doc_id": "отпуск 50%", "start": 0, "end": 6},
    ]


def test_the_fingerprint_of_a_query_is_that_of_its_order_and_its_context_alone():
    same = trace(A, B, C)
    other = same.ranked[0]._replace(score=99.0)
    assert fingerprint(trace(A, B, C)) == fingerprint(same)
    assert fingerprint(archive.Trace(**{**slots(same), "ranked": [other, *same.ranked[1:]]})) == fingerprint(same)
    assert fingerprint(trace(B, A, C, context=[A, B])) != fingerprint(same)
    assert fingerprint(trace(A, B, C, context=[A])) != fingerprint(same)
    assert fingerprint(trace(A, B, C, context=[B, A])) != fingerprint(same)


def slots(record):
    return {name: getattr(record, name) for name in record.__slots__}


def test_scores_of_two_scales_are_left_out_so_that_the_order_of_the_file_holds():
    mixed = trace(A, B)
    hits = [mixed.ranked[0]._replace(score=-4.0), mixed.ranked[1]._replace(score=0.3)]
    line = ranked(archive.Trace(**{**slots(mixed), "ranked": hits}))
    assert [set(hit) for hit in line["hits"]] == [{"doc_id", "start", "end"}] * 2


def test_the_ranking_of_a_run_is_that_of_every_query_whatever_the_order_of_the_file(tmp_path):
    def print_of(*traces):
        return finished(SIDE, facts(), begun(), evaluation(*traces), [], tmp_path)["run.json"]["fingerprints"][
            "ranking"
        ]

    one, two = trace(A, query="1"), trace(C, query="2")
    assert print_of(one, two) == print_of(one, two)
    assert len({print_of(one, two), print_of(two, one), print_of(one)}) == 2


def test_every_stage_has_an_output_of_its_own():
    before, after = (evaluation(each) for each in (trace(A, B, C), trace(A, B, C, context=[A])))
    moved = [name for name in outputs(before) if list(outputs(before)[name]) != list(outputs(after)[name])]
    assert list(outputs(before)) == ["chunker", "retriever", "access", "reranker", "packer"]
    assert moved == ["packer"]


def test_the_trec_run_ranks_each_document_once_by_its_first_chunk():
    lines = [line.split(" ") for line in trec(trace(B, C, A))]
    assert [line[2] for line in lines] == ["отпуск%2050%25", "b"]
    assert [line[3] for line in lines] == ["1", "2"]
    assert [float(line[4]) for line in lines] == [2.0, 1.0], "no two scores are equal, whatever the tie rule"
    assert {(line[0], line[1], line[5]) for line in lines} == {("вопрос%201", "Q0", "ablate-pct\n")}


names = st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1)


@given(names)
def test_an_escaped_id_is_one_column_and_can_be_undone(name):
    assert len(escaped(name).split()) == 1
    assert unquote(escaped(name)) == name


@given(names, names)
def test_no_two_ids_share_an_escape(one, other):
    assert (escaped(one) == escaped(other)) == (one == other)


def test_a_query_without_hits_leaves_empty_places_and_no_line(tmp_path):
    files = finished(SIDE, facts(), begun(), evaluation(trace()), [], tmp_path)
    assert files["ranking.jsonl"] == [{"query_id": "вопрос 1", "hits": [], "context": []}]
    assert files["ranking.trec"] == ""


def test_comparisons_of_many_runs_find_every_column_in_the_compact_file():
    config = {"k": 5, "depth": 50, "budget": 640, "verdict": {"primary": "doc/mrr", "margin": 0.1}}
    single = ["context/sufficient", "retrieval/coverage_at_50", "retrieval/coverage_at_5", "doc/mrr", "doc/map"]
    measures = {name: {"mean": 0.5, "n": 1, "cohorts": {"a=b": {}}} for name in [*single, "latency/total_p50"]}
    rows = [
        {"query_id": query, "pool": {"chunks": 3, "documents": 2}, "values": dict.fromkeys(single, value)}
        for query, value in (("ж", 1.0), ("a", None))
    ]
    names, *lines = archive.compact({"measures": measures, "counts": {"queries": 2}}, rows, config)
    found = dict(zip(names, lines, strict=True))
    values = {name: value for name, value in found.items() if "/" in name}
    assert values == {name: [1.0, None] for name in single if name != "doc/map"}
    assert found["overall"] == ["latency/total_p50"]
    assert found["means"]["doc/map"] == {"mean": 0.5, "n": 1}
