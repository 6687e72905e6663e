"""`python -m ablate score`: what it reads, what it prints, and what it refuses."""

import json
import subprocess
import sys

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.__main__ import main
from ablate.commands.score import score
from ablate.dataset import Folder
from ablate.score import Scoring
from ablate.score.runfile import read

TEXT = "Возврат возможен 14 дней."
CORPUS = [
    {"_id": "д1", "text": TEXT},
    {"_id": "d2", "title": "Guide", "text": "The whole guide."},
    {"_id": "q1", "text": "x y"},
]
QUERIES = [{"_id": "q1", "text": "?"}, {"_id": "q2", "text": "?"}]
TRUTH = [
    {
        "query_id": "q1",
        "alternatives": [[{"doc_id": "д1", "quote": "14 дней"}, {"doc_id": "q1", "start": 0, "end": 1}]],
    },
    {"query_id": "q2", "alternatives": [[{"doc_id": "d2"}]]},
]


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "отчёты и база"
    folder.mkdir()
    for name, rows in (("corpus", CORPUS), ("queries", QUERIES), ("ground_truth", TRUTH)):
        jsonl(folder / f"{name}.jsonl", rows)
    return folder


def hit(doc, start=None, end=None, score=None):
    fields = {"doc_id": doc, "start": start, "end": end, "score": score}
    return {key: value for key, value in fields.items() if value is not None}


def run(data, rows, *options, name="run.jsonl"):
    path = data.parent / name
    if isinstance(rows, str):
        path.write_text(rows, encoding="utf-8")
    else:
        jsonl(path, [{"query_id": query, "hits": hits} for query, hits in rows.items()])
    return main(["score", "--dataset", str(data), "--run", str(path), *options])


def result(capsys, data, rows, *options, name="run.jsonl"):
    assert run(data, rows, *options, "--json", name=name) == 0
    return json.loads(capsys.readouterr().out)


def order(capsys, data, rows, name="run.jsonl"):
    """The rank of the documents д1, d2, q1 in the ranking of q1, by asking for each in turn."""
    ranks = {}
    for each in ("д1", "d2", "q1"):
        jsonl(data / "ground_truth.jsonl", [{"query_id": "q1", "alternatives": [[{"doc_id": each}]]}])
        ranks[each] = result(capsys, data, rows, name=name)["per_query"]["q1"].get("retrieval/completion_rank")
    return ranks


def test_json_holds_means_values_per_query_and_counts(capsys, data):
    found = result(capsys, data, {"q1": [hit("д1", 17, 24), hit("q1", 0, 1)], "q2": []}, "--k", "1,2")
    assert (
        found["per_query"]["q1"] | {"retrieval/coverage_at_1": 0.5, "retrieval/completion_rank": 2}
        == found["per_query"]["q1"]
    )
    assert found["per_query"]["q2"]["retrieval/completion_rank"] is None
    assert found["metrics"]["retrieval/sufficient_at_2"] == 0.5
    assert found["metrics"]["retrieval/completion_rr"] == 0.25
    assert "retrieval/completion_rank" not in found["metrics"]
    assert found["counts"]["completion_rank"] == {"2": 1, "never": 1}


def test_a_query_that_the_run_lacks_scores_0_and_is_counted(capsys, data):
    found = result(capsys, data, {"q2": [hit("d2")]})
    assert found["metrics"]["retrieval/hit_at_1"] == 0.5
    assert found["per_query"]["q1"]["retrieval/hit_at_1"] == 0.0
    assert (found["counts"]["queries_missing_in_run"], found["counts"]["queries"]) == (1, 2)
    assert result(capsys, data, {})["metrics"]["retrieval/hit_at_1"] == 0.0


def test_a_hit_without_a_span_is_the_whole_document(capsys, data):
    found = result(capsys, data, {"q1": [hit("д1"), hit("д1", 0, len(TEXT)), hit("q1")]})
    assert found["per_query"]["q1"]["retrieval/completion_rank"] == 2
    assert found["counts"]["duplicate_hits"] == 1


def test_scores_decide_the_order_and_equal_ones_keep_that_of_the_file(capsys, data):
    scored = {"q1": [hit("д1", score=1), hit("d2", score=2.5), hit("q1", score=1)]}
    assert order(capsys, data, scored) == {"d2": 1, "д1": 2, "q1": 3}
    plain = {"q1": [hit("д1"), hit("d2"), hit("q1")]}
    assert order(capsys, data, plain) == {"д1": 1, "d2": 2, "q1": 3}


def test_the_best_of_duplicates_counts_though_it_comes_last(capsys, data):
    scored = {"q1": [hit("д1", score=1), hit("d2", score=2), hit("q1", score=1.5), hit("д1", score=3)]}
    assert order(capsys, data, scored) == {"д1": 1, "d2": 2, "q1": 3}


def test_a_trec_file_is_ordered_by_score_then_by_id_descending_and_never_by_its_ranks(capsys, data):
    text = "q1 Q0 q1 1 2.0 tag\nq1\tQ0\td2 2 3.0 tag\r\n\nq1 Q0 д1 3 2.0 tag\n"
    assert order(capsys, data, text, "run.trec") == {"d2": 1, "д1": 2, "q1": 3}


def test_scores_that_trec_eval_cannot_tell_apart_are_ties(capsys, data):
    text = "q1 Q0 d2 1 0.876543210981 tag\nq1 Q0 q1 2 0.876543210979 tag\n"
    assert order(capsys, data, text, "run.trec") == {"q1": 1, "d2": 2, "д1": None}


def test_ids_that_were_percent_encoded_are_read_back(capsys, data):
    jsonl(data / "corpus.jsonl", [*CORPUS, {"_id": "100% без\u00a0пробела и с ним", "text": "x"}])
    jsonl(
        data / "ground_truth.jsonl",
        [{"query_id": "q1", "alternatives": [[{"doc_id": "100% без\u00a0пробела и с ним"}]]}],
    )
    text = "q1 Q0 100%25%20без\u00a0пробела%20и%20с%20ним 1 1 ablate-pct\n"
    assert result(capsys, data, text, name="run.trec")["per_query"]["q1"]["retrieval/completion_rank"] == 1


def test_a_forbidden_hit_keeps_its_rank_gives_nothing_and_is_counted(capsys, data):
    secret = {"acl": {"allow": ["public"], "deny": ["user:anna"]}}
    jsonl(data / "corpus.jsonl", [CORPUS[0], CORPUS[1] | secret, CORPUS[2] | {"acl": {"allow": ["public"]}}])
    jsonl(data / "queries.jsonl", [{"_id": "q1", "text": "?", "principals": ["user:anna"]}, {"_id": "q2", "text": "?"}])
    jsonl(data / "ground_truth.jsonl", [{"query_id": "q1", "alternatives": [[{"doc_id": "q1"}]]}, TRUTH[1]])
    found = result(capsys, data, {"q1": [hit("d2"), hit("q1")], "q2": [hit("d2")]})
    assert found["per_query"]["q1"]["retrieval/completion_rank"] == 2
    assert [found["per_query"][query]["acl/candidate_violations"] for query in ("q1", "q2")] == [1.0, 0.0]
    assert found["counts"]["access_checked"] is True


def test_what_is_out_of_date_or_of_little_authority_is_told_where_dates_and_an_order_are(capsys, data):
    old = {"valid_to": "2024-01-01", "kind": "памятка"}
    new = {"valid_from": "2024-01-01", "kind": "правило"}
    jsonl(data / "corpus.jsonl", [{**row, "metadata": kind} for row, kind in zip(CORPUS, (new, old, {}), strict=True)])
    jsonl(data / "queries.jsonl", [{**QUERIES[0], "as_of": "2025-06-01"}, QUERIES[1]])
    contract = "authority: {field: kind, order: [правило, памятка], floor: правило}"
    (data / "contract.yaml").write_text(contract, encoding="utf-8")
    rows = {"q1": [hit("d2"), hit("q1"), hit("д1", 17, 24)], "q2": [hit("d2")]}
    found = result(capsys, data, rows, "--k", "1,2")
    first = {"stale_at_1": 1, "stale_at_2": 1 / 2, "unknown_at_1": 0, "unknown_at_2": 1 / 2, "stale_first": 1}
    told = found["per_query"]
    for name, value in first.items():
        assert told["q1"][f"freshness/{name}"] == value
        assert told["q1"][f"authority/{name.replace('stale', 'below')}"] == value
        assert told["q2"][f"freshness/{name}"] is None
    assert (told["q2"]["authority/below_at_1"], told["q2"]["authority/below_first"]) == (1, 0)
    assert found["counts"]["applicable"]["freshness/stale_at_1"] == 1


def test_an_order_by_a_field_that_no_document_carries_is_warned_of(data):
    (data / "contract.yaml").write_text("authority: {field: вид, order: [правило]}", encoding="utf-8")
    assert any(
        '"вид"' in warning for warning in Folder(str(data), "test", "none", 1, "nobody", True, None).read().warnings
    )


def test_without_any_acl_access_is_said_to_be_unchecked(capsys, data):
    assert result(capsys, data, {})["metrics"]["acl/candidate_violations"] is None
    assert run(data, {}) == 0
    assert "access was not checked" in capsys.readouterr().out


def test_null_is_not_applicable_and_the_completion_rank_that_does_not_apply_is_left_out(capsys, data):
    (data / "ground_truth.jsonl").unlink()
    (data / "qrels").mkdir()
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\n", encoding="utf-8")
    found = result(capsys, data, {"q1": [hit("d2")], "q2": [hit("d2")]})
    assert found["per_query"] == {"q1": found["per_query"]["q1"]}
    assert found["per_query"]["q1"]["retrieval/coverage_at_1"] is None
    assert "retrieval/completion_rank" not in found["per_query"]["q1"]
    assert (found["metrics"]["retrieval/mrr"], found["metrics"]["doc/mrr"]) == (None, 1.0)
    assert found["counts"]["queries_unjudged_in_run"] == 1
    declared = result(capsys, data, {"q1": [hit("d2")]}, "--evidence", "any")
    assert declared["per_query"]["q1"]["retrieval/sufficient_at_1"] == 1.0


def test_an_own_ranking_file_can_be_scored_as_it_is(capsys, data):
    row = {"query_id": "q2", "hits": [hit("d2", 0, 3, -0.5)], "context": [{"doc_id": "d2", "start": 0, "end": 3}]}
    assert result(capsys, data, json.dumps(row))["per_query"]["q2"]["retrieval/hit_at_1"] == 1.0


def test_the_table_shows_every_measure_its_formula_and_its_n(capsys, data):
    assert run(data, {"q2": [hit("d2")]}, "--k", "3,1") == 0
    out = capsys.readouterr().out
    line = next(line for line in out.splitlines() if line.startswith("retrieval/coverage_at_k  "))
    assert line.split() == ["retrieval/coverage_at_k", "0.500", "0.500", "2"]
    assert "k=1" in out
    assert "doc/mrr: 1 / rank of the first relevant document, 0 if none" in out
    assert "completion rank: 1 in 1, never in 1" in out
    assert "1 queries missing in run" in out


ONE = '{"query_id": "q1", "hits": []}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"query_id": "q9", "hits": []}', "1: found the query 'q9' that queries.jsonl does not have"),
        (
            ONE + '{"query_id": "q2", "hits": [{"doc_id": "d9"}]}',
            "2: found the document 'd9' that corpus.jsonl does not have",
        ),
        (ONE + ONE, '2: key "query_id": found "q1" a second time'),
        ('{"hits": []}', '1: key "query_id": found nothing'),
        ('{"query_id": "q1"}', '1: key "hits": found nothing'),
        ('{"query_id": "q1", "hits": {}}', '1: key "hits": found'),
        ('{"query_id": "q1", "hits": [7]}', '1: key "hits[0]": found'),
        ('{"query_id": "q1", "hits": [], "k": 5}', '1: key "k": found an unknown key'),
        ('{"query_id": "q1", "hits": [{"doc_id": "d2", "begin": 0}]}', '1: key "hits[0].begin": found an unknown key'),
        ('{"query_id": "q1", "hits": [{"doc_id": "d2", "start": 0}]}', "found one of them, expected both or neither"),
        ('{"query_id": "q1", "hits": [{"doc_id": "d2", "end": 5}]}', "found one of them, expected both or neither"),
        (
            '{"query_id": "q1", "hits": [{"doc_id": "d2", "start": 0, "end": 17}]}',
            "found [0, 17), expected a part of [0, 16)",
        ),
        ('{"query_id": "q1", "hits": [{"doc_id": "d2", "start": -1, "end": 5}]}', "found [-1, 5)"),
        ('{"query_id": "q1", "hits": [{"doc_id": "d2", "start": 5, "end": 5}]}', "found [5, 5)"),
        ('{"query_id": "q1", "hits": [{"doc_id": "d2", "start": 0, "end": 5.0}]}', 'key "hits[0].end": found'),
        ('{"query_id": "q1", "hits": [{"doc_id": "d2", "score": "1"}]}', "hits[0].score"),
        ('{"query_id": "q1", "hits": [{"doc_id": "d2", "score": true}]}', "hits[0].score"),
        ('{"query_id": "q1", "hits": [{"doc_id": "d2", "score": NaN}]}', "NaN"),
        ('{"query_id": "q1", "hits": [{"doc_id": "d2", "score": 1e999}]}', "run.jsonl:1: found"),
        (f'{{"query_id": "q1", "hits": [{{"doc_id": "d2", "score": 1{"0" * 400}}}]}}', "expected a finite number"),
        (
            '{"query_id": "q1", "hits": [{"doc_id": "d2", "score": 1}, {"doc_id": "q1"}]}',
            "found a score for 1 of 2 hits",
        ),
        ("{", "run.jsonl:1: found"),
        ("[1]", "run.jsonl:1: found"),
    ],
)
def test_a_run_that_cannot_be_read_is_refused_by_file_and_line(capsys, data, text, words):
    assert run(data, text) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert "run.jsonl:" in captured.err
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("q1 Q0 d2 1 0.5\n", "run.trec:1: found 5 columns, expected 6"),
        ("q1 Q0 d2 1 0.5 my tag\n", "run.trec:1: found 7 columns, expected 6"),
        ("q1 Q0 d2 1 0.5 t\nq1 Q0 d9 2 0.4 t\n", "run.trec:2: found the document 'd9'"),
        ("q9 Q0 d2 1 0.5 t\n", "run.trec:1: found the query 'q9'"),
        ("q1 Q0 d2 1 high t\n", "run.trec:1: found the score high, expected a finite number"),
        ("q1 Q0 d2 1 nan t\n", "run.trec:1: found the score nan"),
    ],
)
def test_a_trec_line_that_cannot_be_read_is_refused(capsys, data, text, words):
    assert run(data, text, name="run.trec") == 2
    assert words in capsys.readouterr().err


def test_what_is_not_there_or_out_of_range_is_exit_2(capsys, data):
    assert run(data, {}, "--k", "0") == 2
    assert run(data, {}, "--span-threshold", "2") == 2
    assert main(["score", "--dataset", str(data / "nowhere"), "--run", str(data)]) == 2
    assert main(["score", "--dataset", str(data), "--run", str(data / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
    with pytest.raises(SystemExit) as error:
        run(data, {}, "--k", "five")
    assert error.value.code == 2


NAMES = st.sampled_from([f"d{number}" for number in range(12)] + ["д", "я", "Ω", "𝔞"])
SCORES = st.floats(-10, 10, width=32) | st.integers(-2, 2).map(float)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(NAMES, st.integers(0, 3), min_size=1), st.dictionaries(NAMES, SCORES, min_size=1))
def test_a_trec_file_with_ties_scores_as_trec_eval_scores_it(tmp_path_factory, grades, scores):
    folder = tmp_path_factory.mktemp("trec")
    if not any(grades.values()):
        return
    jsonl(folder / "corpus.jsonl", [{"_id": name, "text": "x"} for name in {*grades, *scores}])
    jsonl(folder / "queries.jsonl", [{"_id": "d1", "text": "?"}])
    (folder / "qrels").mkdir()
    rows = "".join(f"d1\t{name}\t{grade}\n" for name, grade in grades.items())
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}", encoding="utf-8")
    (folder / "run.trec").write_text(
        "".join(f"d1 Q0 {name} 1 {score!r} t\n" for name, score in scores.items()), encoding="utf-8"
    )
    dataset = Folder(str(folder), "test", "none", 1, "nobody", True, None).read()
    ours = score(dataset, read(folder / "run.trec", dataset), Scoring([5], 1.0, {}, 1.0))["metrics"]
    theirs = pytrec_eval.RelevanceEvaluator({"q": grades}, {"map", "recip_rank", "ndcg_cut.5", "P.5"}).evaluate(
        {"q": scores}
    )["q"]
    named = {"doc/map": "map", "doc/mrr": "recip_rank", "doc/ndcg_at_5": "ndcg_cut_5", "doc/precision_at_5": "P_5"}
    assert {name: ours[name] for name in named} == pytest.approx(
        {name: theirs[each] for name, each in named.items()}, abs=1e-12
    )


def test_neither_torch_nor_mlflow_is_loaded(data):
    path = jsonl(data.parent / "run.jsonl", [{"query_id": "q2", "hits": [hit("d2")]}])
    code = (
        "import sys; from ablate.__main__ import main; "
        f"code = main(['score', '--dataset', {str(data)!r}, '--run', {str(path)!r}]); "
        "sys.exit(code or ' '.join(sys.modules.keys() & {'torch', 'mlflow', 'faiss', 'scipy', 'hydra'}) or 0)"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=False).returncode == 0
    )
