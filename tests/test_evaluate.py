"""What is said about a run beside its rankings: counts, pools, exposure, truncation and times, each from its source."""

import json
import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from fakes import HashEmbedder, reader

from ablate.access import Off, Postfilter, Prefilter
from ablate.chunker import ParentChild, Whole
from ablate.errors import DatasetError
from ablate.evaluate import (
    Inspector,
    audited,
    corpus_measures,
    counts,
    evaluate,
    marked,
    models,
    pool_tokens,
    spent,
    timed,
    truncated,
)
from ablate.filter import Declared
from ablate.measures import OF_A_RUN
from ablate.packer import TopK
from ablate.pipeline import Line, ready
from ablate.reranker import Keep, Pairwise
from ablate.retriever import Bm25, Dense
from ablate.score import Scoring, of_trace
from ablate.tokens import Words
from ablate.types import Acl, Candidates, Dataset, Document, Hit, Query, Span, Truth, Unit
from ablate.verdict import direction

ANNA = frozenset({"user:anna"})
DOCUMENTS = (
    Document("правила", "Возврат за 14 дней.", metadata={"год": 2025}, acl=Acl(frozenset({"public"}), frozenset())),
    # It stands first for the query, and Anna may not read it.
    Document("boss", "Возврат возврат", metadata={"год": 2024}, acl=Acl(frozenset({"user:boss"}), frozenset())),
    Document("знаки", "… §", metadata={"год": 2025}, acl=Acl(frozenset({"public"}), frozenset())),
)
ASKED, SILENT = Query("q", "возврат", ANNA), Query("…", "…?", ANNA)
TRUTHS = {
    "q": Truth("q", (((Unit("правила", (Span(8, 18),)),),),)),
    "…": Truth("…", (((Unit("правила"),),),)),
}
SCORING = Scoring([1], 1.0, {"rerank_pairs": 1.0}, 1.0)


@dataclass(frozen=True)
class Longest(Pairwise):
    """The longer the text the better, and texts over 15 characters are cut."""

    first: int
    tally: dict = field(default_factory=dict)
    revision: str = "longest"

    def read(self, pairs):
        lengths = np.array([len(text) for _, text in pairs])
        return lengths.astype(float), lengths > 15

    def truncated(self, pairs):
        return self.read(pairs)[1]


@dataclass(frozen=True)
class Cutting(HashEmbedder):
    """An embedder that has been asked, and that reads 10 characters."""

    tally: dict = field(default_factory=lambda: {"computed": 3, "reused": 4})
    revision: str = "cutting"

    def truncated(self, texts):
        return np.array([len(text) > 10 for text in texts], np.bool_)


@dataclass(frozen=True)
class Leaking:
    """It returns what it may, and lists whatever it has found under the name of its source."""

    def index(self, chunks, embedder):
        def search(query, allowed, depth):
            hits = [Hit(chunk, 1.0) for chunk in chunks]
            return Candidates({"leak": hits}, [hit for hit, may in zip(hits, allowed, strict=True) if may])

        return search


def dataset(tmp_path, documents=DOCUMENTS, queries=(ASKED, SILENT)):
    """The documents in a folder too, where the audit reads them."""
    rows = [
        {"_id": each.id, "text": each.text, "acl": each.acl and {"allow": [*each.acl.allow], "deny": [*each.acl.deny]}}
        for each in documents
    ]
    (tmp_path / "corpus.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return Dataset("d", str(tmp_path), documents, queries, TRUTHS, {}, "nobody", {}, {}, {"left_out": 7}, ())


def made(data, access=Prefilter("global"), depth=2, **stages):  # noqa: B008  # frozen
    plain = Line(Whole(), HashEmbedder(), Bm25(1.5, 0.75, []), Declared(), access, Keep(), TopK())
    return ready(replace(plain, **stages), data, Words(), 1, depth, 640)


def inspected(line, query=ASKED):
    """The `acl/` values of one query."""
    trace = line(query)
    exposure = Inspector(line, audited(line.dataset))(trace)
    documents = {document.id: document for document in line.dataset.documents}
    values = of_trace(TRUTHS[query.id], trace, documents, exposure, SCORING, {"rerank_pairs": 0.0}, reader())
    return {name.removeprefix("acl/"): value for name, value in values.items() if name.startswith("acl/")}


@pytest.mark.parametrize(("reranker", "pairs"), [(Longest(1), 1), (Longest(9), 2), (Keep(), 0)])
def test_the_pairs_of_a_query_are_the_hits_that_its_reranker_scored(tmp_path, reranker, pairs):
    line = made(dataset(tmp_path), Off(), reranker=reranker)
    traces = [line(ASKED), line(SILENT), line(ASKED)]
    assert [spent(line, trace) for trace in traces[:2]] == [
        {"queries": 1, "rerank_pairs": pairs},
        {"queries": 1, "rerank_pairs": 0},
    ]
    assert counts(line, traces)["rerank_pairs"] == 2 * pairs


@pytest.mark.parametrize(("reranker", "cut"), [(Longest(1), 0), (Longest(9), 1), (Keep(), 0)])
def test_pairs_beyond_the_rerankers_limit_are_counted(tmp_path, reranker, cut):
    line = made(dataset(tmp_path), Off(), reranker=reranker)
    assert counts(line, [line(ASKED), line(SILENT)])["reranker_truncated"] == cut


@pytest.mark.parametrize("silence", [0, 1, 2])
def test_queries_and_chunks_without_a_word_are_counted(tmp_path, silence):
    documents = DOCUMENTS[:2] + tuple(replace(DOCUMENTS[2], id=f"знаки {number}") for number in range(silence))
    line = made(dataset(tmp_path, documents))
    found = counts(line, [line(ASKED), *[line(SILENT)] * silence])
    names = ("queries", "queries_without_hits", "silent_queries", "silent_chunks", "left_out")
    assert [found[name] for name in names] == [1 + silence, silence, silence, silence, 7]


def test_a_query_without_hits_is_not_always_a_silent_one(tmp_path):
    line = made(dataset(tmp_path))
    found = counts(line, [line(replace(ASKED, text="отпуск"))])
    assert (found["queries_without_hits"], found["silent_queries"]) == (1, 0)


def test_work_done_and_work_found_in_the_store_are_counted_by_stage(tmp_path):
    line = made(dataset(tmp_path), embedder=Cutting(), reranker=Longest(1, {"computed": 5, "reused": 6}))
    found = counts(line, [])
    names = ("embedder_computed", "embedder_reused", "reranker_computed", "reranker_reused")
    assert [found[name] for name in names] == [3, 4, 5, 6]


def test_only_models_that_were_asked_are_named(tmp_path):
    data = dataset(tmp_path)
    assert models(made(data, embedder=Cutting(), reranker=Longest(1))) == {"embedder": "cutting"}
    assert models(made(data, reranker=Longest(1, {"computed": 1}))) == {"reranker": "longest"}


def test_a_pool_is_weighed_to_depth_and_to_k_in_the_order_of_the_ranking(tmp_path):
    line = made(dataset(tmp_path), Off(), reranker=Longest(2))
    boss, rule = 2, 5  # the full stop is a token
    assert pool_tokens(line, line(ASKED)) == {"tokens_at_depth": rule + boss, "tokens_at_k": rule}
    assert pool_tokens(line, line(SILENT)) == {"tokens_at_depth": 0, "tokens_at_k": 0}


def test_chunks_beyond_the_encoders_limit_are_counted_if_it_was_asked(tmp_path):
    data = dataset(tmp_path)
    asked, idle = made(data, embedder=Cutting()), made(data, embedder=Cutting(tally={}))
    assert truncated(asked).tolist() == [True, True, False]
    assert truncated(idle).tolist() == truncated(made(data)).tolist() == [False] * 3
    documents = {document.id: document for document in DOCUMENTS}
    measured = corpus_measures(asked, audited(data), documents, SCORING)
    assert measured["chunking/truncated"]["mean"] == 2


def test_chunking_speaks_of_what_is_handed_over_and_truncation_of_what_was_encoded(tmp_path):
    line = made(dataset(tmp_path), embedder=Cutting(), chunker=ParentChild(9, 2, 0))
    found = corpus_measures(line, audited(line.dataset), {each.id: each for each in DOCUMENTS}, SCORING)
    assert [chunk.text for chunk in line.chunks] == ["Возврат за", "14 дней", ".", "Возврат возврат", "… §"]
    assert found["chunking/chunks"]["mean"] == 3
    assert found["chunking/units_whole"]["mean"] == 1  # no child holds all of "за 14 дней", its parent does
    assert found["chunking/truncated"]["mean"] == 1
    assert found["chunking/truncated_share"]["mean"] == 1 / 5
    assert counts(line, [])["indexed_chunks"] == 5


def test_evidence_is_verbatim_only_where_the_line_got_the_text_of_the_file(tmp_path):
    audit = audited(dataset(tmp_path))
    for text, share in ((DOCUMENTS[0].text, 1.0), ("Возврат за 15 дней.", 0.5)):
        ingested = (replace(DOCUMENTS[0], text=text), *DOCUMENTS[1:])
        line = made(replace(dataset(tmp_path), documents=ingested))
        found = corpus_measures(line, audit, {document.id: document for document in ingested}, SCORING)
        assert found["ingestion/units_verbatim"]["mean"] == share


def test_documents_are_expected_by_the_file_and_not_by_the_line(tmp_path):
    audit = audited(dataset(tmp_path))
    line = made(dataset(tmp_path, DOCUMENTS[:1]))
    found = corpus_measures(line, audit, {DOCUMENTS[0].id: DOCUMENTS[0]}, SCORING)
    assert found["ingestion/documents_expected"]["mean"] == 3
    assert found["ingestion/coverage"]["mean"] == 1 / 3


@pytest.mark.parametrize(
    ("access", "shown", "passed", "starved"),
    [(Prefilter("global"), 0, 0, 0), (Prefilter("readable"), 0, 0, 0), (Postfilter(), 0, 0, 1), (Off(), 1, 1, 0)],
)
def test_the_frozen_acl_judges_what_access_let_through(tmp_path, access, shown, passed, starved):
    assert inspected(made(dataset(tmp_path), access, depth=1)) == {
        "violations": shown,
        "candidate_violations": passed,
        "exposure": 1,
        "starved": starved,
    }


def test_what_a_stage_let_through_counts_though_no_reader_gets_it(tmp_path):
    found = inspected(made(dataset(tmp_path), Off(), reranker=Longest(2)))
    assert (found["violations"], found["candidate_violations"]) == (0, 1)


def test_with_room_for_both_nothing_is_starved_after_the_search(tmp_path):
    assert inspected(made(dataset(tmp_path), Postfilter(), depth=2))["starved"] == 0


def test_a_source_that_lists_what_it_may_not_return_is_a_violation(tmp_path):
    found = inspected(made(dataset(tmp_path), retriever=Leaking()))
    assert (found["violations"], found["candidate_violations"]) == (0, 1)


def test_what_the_querys_own_filter_leaves_out_exposes_nothing(tmp_path):
    line = made(dataset(tmp_path))
    assert inspected(line, replace(ASKED, filter={"год": 2025}))["exposure"] == 0
    assert inspected(line, replace(ASKED, principals=frozenset({"user:boss"})))["exposure"] == 0


def test_without_any_acl_nothing_is_checked(tmp_path):
    line = made(dataset(tmp_path, tuple(replace(document, acl=None) for document in DOCUMENTS)))
    assert set(inspected(line).values()) == {None}


def test_who_may_read_what_is_found_once_for_all_queries_of_the_same_principals(tmp_path):
    line = made(dataset(tmp_path))
    inspect = Inspector(line, audited(line.dataset))
    for principals in (ANNA, ANNA, frozenset({"user:boss"})):
        inspect(line(replace(ASKED, principals=principals)))
    assert {names: mask.tolist() for names, mask in inspect.masks.items()} == {
        ANNA: [True, False, True],
        frozenset({"user:boss"}): [True, True, True],
    }


def test_a_query_that_rests_on_a_whole_document_is_marked():
    assert marked(replace(SILENT, cohorts={"язык": "ru"}), TRUTHS["…"]).cohorts == {
        "язык": "ru",
        "granularity": "document",
    }
    assert marked(ASKED, TRUTHS["q"]) is ASKED


TIMES = [{"baseline": {"search": 1.0, "pack": 1.0}, "variant": {"search": 6.0, "pack": 2.0}}] * 3


def test_the_variant_is_slower_where_its_log_ratio_is_above_zero():
    found = timed(TIMES, "variant")
    assert found["latency/log_ratio"]["mean"] == pytest.approx(math.log(4))
    stages = ("search", "pack", "total", "baseline")
    assert [found[f"latency/{stage}_p50"]["mean"] for stage in stages] == [6, 2, 8, 2]


def test_a_baseline_is_timed_against_nothing():
    found = timed(TIMES, "baseline")
    assert [found[f"latency/{stage}_p95"]["mean"] for stage in ("search", "pack", "total")] == [1, 1, 2]
    assert not {"latency/log_ratio", "latency/baseline_p50"} & found.keys()
    assert timed([], "variant") == {}


def test_a_run_has_values_of_every_query_at_k_at_depth_and_at_the_cutoffs(tmp_path):
    data = dataset(tmp_path)
    line = made(data, depth=3, reranker=Longest(2))
    found = evaluate(line, audited(data), replace(SCORING, cutoffs=[2]))
    assert found.chunks == [f"{chunk.id} {chunk.id}" for chunk in line.chunks]
    assert [trace.query.id for trace in found.traces] == [*found.values] == [*found.pools] == ["q", "…"]
    assert {f"retrieval/sufficient_at_{k}" for k in (1, 2, 3)} <= found.values["q"].keys()
    assert [found.values[query]["context/sufficient"] for query in ("q", "…")] == [1, 0]
    assert [found.values[query]["cost/query"] for query in ("q", "…")] == [1, 0]
    assert found.measures["context/sufficient"]["mean"] == 0.5
    assert found.measures["ingestion/coverage"]["mean"] == 1
    assert found.traces[1].query.cohorts == {"granularity": "document"}


def test_what_only_a_whole_run_has_is_known_by_its_name(tmp_path):
    data = dataset(tmp_path)
    found = evaluate(made(data), audited(data), SCORING)
    single = set().union(*found.values.values())
    judged = {name for name in found.measures if direction(name)}
    assert {name for name in judged if name.startswith(OF_A_RUN)} == judged - single


@dataclass(frozen=True)
class Losing:
    """Finds every second of what an exact search finds, which it has beside it."""

    def index(self, chunks, embedder):
        exact = Bm25(1.5, 0.75, []).index(chunks, embedder)

        def search(query, allowed, depth):
            hits = exact(query, allowed, depth).fused[1::2]
            return Candidates({"losing": hits}, hits)

        search.exact = exact
        return search


def test_an_approximate_search_is_measured_against_exact_search(tmp_path):
    data = dataset(tmp_path)
    found = evaluate(made(data, Off(), retriever=Losing()), audited(data), SCORING)
    assert found.values["q"]["retrieval/ann_recall"] == 0.5
    assert found.values["…"]["retrieval/ann_recall"] is None  # there was nothing to find
    assert found.measures["retrieval/ann_recall"]["mean"] == 0.5
    assert found.measures["retrieval/ann_recall"]["not_applicable"] == 1


def test_an_exact_search_is_measured_against_nothing(tmp_path):
    data = dataset(tmp_path)
    found = evaluate(made(data), audited(data), SCORING)
    assert "retrieval/ann_recall" not in found.measures.keys() | found.values["q"].keys()


def test_what_an_approximate_search_misses_among_the_readable_is_starved(tmp_path):
    assert inspected(made(dataset(tmp_path), retriever=Losing()))["starved"] == 1


@pytest.mark.parametrize("retriever", [Bm25(1.5, 0.75, []), Dense(), Losing()])
@pytest.mark.parametrize("access", [Prefilter("global"), Prefilter("readable"), Postfilter(), Off()])
def test_values_are_those_of_each_query_asked_by_itself(tmp_path, access, retriever):
    data = dataset(tmp_path)
    found = evaluate(made(data, access, retriever=retriever), audited(data), SCORING)
    for trace in found.traces:
        line = made(data, access, retriever=retriever)
        alone = line(trace.query)
        assert [[hit.chunk.id for hit in hits] for hits in (trace.candidates.fused, trace.ranked)] == [
            [hit.chunk.id for hit in hits] for hits in (alone.candidates.fused, alone.ranked)
        ]
        for name, value in inspected(line, trace.query).items():
            assert found.values[trace.query.id][f"acl/{name}"] == value


def test_a_file_that_the_audit_cannot_read_is_a_mistake_in_the_dataset(tmp_path):
    data = dataset(tmp_path)
    with (tmp_path / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"_id": "я", "text": "", "acl": "public"}\n')
    with pytest.raises(DatasetError, match=r"^corpus\.jsonl:4: found acl 'public', expected"):
        audited(data)
