"""The compare command: the table again, from the records alone."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import cli
import pytest
import runs

import ablate
from ablate import records, table
from ablate.__main__ import commands
from ablate.commands import compare
from ablate.errors import NotComparable
from ablate.records import RunNotFound
from ablate.workspace import Workspace


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("ABLATE_WORKSPACE", str(tmp_path))
    return Workspace(tmp_path)


def test_the_study_that_ran_last_is_shown_unless_another_is_named(place, capsys):
    runs.study(place)
    runs.build(place, values={"q": runs.evidence(1, 1)}, study="новее-00000000", started="2026-01-01T00:00:00")
    assert compare.main([]) == 0
    assert capsys.readouterr().out.startswith("новее-00000000: 1 queries")
    assert compare.main(["--study", "учёба-1a2b3c4d"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("учёба-1a2b3c4d: 40 queries of учёба\n")
    assert "hybrid: FAILED: ValueError: нет индекса | индекс пуст" in out


def test_a_variant_brings_its_baseline_along(place, capsys):
    baseline, reranker, _ = runs.study(place)
    assert compare.main(["--json", reranker.id]) == 0
    assert [run["run"] for run in json.loads(capsys.readouterr().out)["runs"]] == [baseline.id, reranker.id]


def test_runs_are_named_by_beginnings_and_mlflow_ids(place, capsys):
    baseline, reranker, _ = runs.study(place)
    records.note(baseline.folder, "tracking.json", {"uri": "x", "run_id": "0123456789abcdef"})
    assert compare.main(["--json", "rerank", "0123456789abcdef"]) == 0
    assert [run["run"] for run in json.loads(capsys.readouterr().out)["runs"]] == [baseline.id, reranker.id]


def test_every_run_that_is_named_is_shown_even_an_older_one_of_the_same_config(place, capsys):
    old = runs.build(place, run="old", values={"q": runs.evidence(1, 1)}, started="2025-01-01T00:00:00")
    new = runs.build(place, run="new", values={"q": runs.evidence(1, 1)})
    assert compare.main(["--json", "old", "new"]) == 0
    assert [run["run"] for run in json.loads(capsys.readouterr().out)["runs"]] == [old.id, new.id]


def test_markdown_and_text_hold_the_same_rows(place, capsys):
    runs.study(place)
    compare.main(["--markdown"])
    markdown = capsys.readouterr().out
    compare.main([])
    text = capsys.readouterr().out
    assert "| reranker | 0.475 +0.125 |" in markdown.replace("  ", "")
    for cell in ("0.475 +0.125", "0.625", "0 of 40", "FAILED", "язык=中文"):
        assert cell in markdown
        assert cell in text


def test_json_has_null_for_what_does_not_apply(place, capsys):
    runs.build(place, values={"q": {"context/sufficient": 1.0, "acl/violations": None}})
    compare.main(["--json"])
    values = json.loads(capsys.readouterr().out)["runs"][0]["values"]
    assert values["context/sufficient"] == 1.0
    assert values["acl/violations"] is None


def test_what_cannot_be_compared_is_refused(place):
    runs.build(place, run="one", values={"q": runs.evidence(1, 1)}, fingerprints={"corpus": "a"})
    runs.build(place, run="two", values={"q": runs.evidence(1, 1)}, fingerprints={"corpus": "b"})
    with pytest.raises(
        NotComparable, match="run both on one version of the dataset and with one set of scoring settings"
    ):
        compare.main(["one", "two"])
    with pytest.raises(RunNotFound, match="run 'three'"):
        compare.main(["three"])


def test_a_study_and_runs_together_are_refused(place, capsys):
    with pytest.raises(SystemExit) as stop:
        compare.main(["--study", "s", "run"])
    assert stop.value.code == 2
    assert "give runs or --study, not both" in capsys.readouterr().err


def test_a_fresh_clone_is_told_how_to_make_the_first_run(place):
    with pytest.raises(RunNotFound, match="`python -m ablate` makes the first"):
        compare.main([])


def test_every_command_that_a_message_names_exists():
    sources = [path.read_text(encoding="utf-8") for path in Path(ablate.__file__).parent.rglob("*.py")]
    nodes = (node for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    texts = [node.value for node in nodes if isinstance(node.value, str)]
    named = {word for text in texts for word in re.findall(r"python -m ablate ([a-z_]+)(?![\w.=])", text)}
    assert {"compare", "sync"} <= named <= commands().keys()


def test_a_variant_that_shows_forbidden_documents_says_so_first(place):
    baseline = runs.build(place, values={"q": runs.evidence(0, 0)})
    leaking = runs.build(place, "open", {"q": {**runs.evidence(1, 1), "acl/violations": 3.0}}, baseline=baseline)
    assert (
        compare.compare([baseline, leaking]).sentence(leaking).startswith("open: 3 FORBIDDEN documents handed over; ")
    )


def test_of_very_many_runs_those_that_differ_most_have_a_line_and_whatever_leaks(place, monkeypatch):
    monkeypatch.setattr(table, "MOST", 2)
    verdict = {"verdict": {"primary": None, "margin": 0.05}}
    asked = [f"в{number}" for number in range(8)]

    def run(name, better, **more):
        values = {query: {**runs.evidence(rank < better, 0), **more} for rank, query in enumerate(asked)}
        return runs.build(place, name, values, baseline=baseline, config=verdict)

    baseline = runs.build(place, values=dict.fromkeys(asked, runs.evidence(0, 0)), config=verdict)
    variants = [run("first", 1), run("most", 5), run("open", 0, **{"acl/violations": 1.0}), run("second", 3)]
    told = table.compare([baseline, *variants], [baseline, *variants])
    assert [record.variant for record in told.shown] == ["baseline", "most", "open", "second"]
    assert "of 5 runs 1 that differ less are left out here" in " ".join(told.text().split())
    assert [run["variant"] for run in told.data()["runs"]] == ["baseline", "first", "most", "open", "second"]


def test_where_the_declared_measure_has_no_value_it_is_said_why_there_is_no_word(place):
    declared = {"verdict": {"primary": "retrieval/recall_at_7", "margin": 0.05}}
    baseline = runs.build(place, values={"q": runs.evidence(1, 1)}, config=declared)
    variant = runs.build(place, "reranker", {"q": runs.evidence(0, 0)}, baseline=baseline, config=declared)
    page = table.compare([baseline, variant], [baseline, variant]).text(200)
    assert "no word: retrieval/recall_at_7 (verdict.primary) has no value" in page


def test_a_variant_may_be_named_where_others_begin_alike(place):
    baseline = runs.build(place, values={"q": runs.evidence(1, 1)})
    both = [runs.build(place, name, {"q": {}}, baseline=baseline) for name in ("small", "small+mmr")]
    assert records.named([baseline, *both], "small").variant == "small"
    with pytest.raises(RunNotFound, match="found 2 runs"):
        records.named([baseline, *both], "smal")


def test_the_frontier_is_that_of_the_baseline_with_most_variants_each_of_one_change(place):
    declared = {"verdict": {"primary": None, "margin": 0.05}}

    def run(name, **more):
        return runs.build(place, name, {"q": runs.evidence(1, 1)}, run=f"{name}-{len(made)}", config=declared, **more)

    made = []
    for names in (["old"], ["a", "b"]):
        made.append(run("baseline", fingerprints={"config": str(names)}))
        made += [run(name, baseline=made[-1]) for name in names]
        baseline = made[-1 - len(names)]
    made.append(run("a+b", baseline=baseline, component="reranker+retriever"))
    told = table.compare(made, made)
    assert [point.label.split()[0] for point in told.frontier.points] == ["baseline", "a", "b"]
    assert table.compare([made[0]]).frontier is None


def judged_sides(place, before, after, k=5):
    """Two runs of ten queries, of whose first k chunks so many tenths are judged."""
    sides = [
        {f"q{n}": {**runs.evidence(1, 1), f"retrieval/judged_at_{k}": share} for n in range(10)}
        for share in (before, after)
    ]
    baseline = runs.build(place, values=sides[0])
    return baseline, runs.build(place, "reranker", sides[1], baseline=baseline)


def test_how_much_is_judged_stands_beside_every_variant(place, capsys):
    _, reranker = judged_sides(place, 0.9, 0.85)
    for form in ([], ["--markdown"], ["--json"]):
        assert compare.main([*form, "--study", reranker.study]) == 0
        assert "; judged 0.90 -> 0.85" in re.sub(r"\s+", " ", capsys.readouterr().out).replace("\\", "")
    compare.main(["--json"])
    row = json.loads(capsys.readouterr().out)["runs"][1]
    assert row["values"]["retrieval/judged_at_5"] == pytest.approx(0.85)
    assert row["differences"]["retrieval/judged_at_5"]["difference"] == pytest.approx(-0.05)


@pytest.mark.parametrize(
    ("before", "after", "said"), [(0.9, 0.8, False), (0.4, 0.3, False), (0.9, 0.79, True), (0.2, 0.4, True)]
)
def test_a_result_is_provisional_where_more_of_one_side_is_judged(place, capsys, before, after, said):
    baseline, reranker = judged_sides(place, before, after)
    compare.main([])
    out = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert ("reranker: provisional, for judged_at_5 is" in out) == said
    assert (f"python -m ablate review export {baseline.id} {reranker.id} --out review.csv" in out) == said


def test_excluded_queries_are_said(place, capsys):
    run = runs.build(place, values={"q": runs.evidence(1, 1)})
    known = json.loads((run.folder / "metrics.json").read_text(encoding="utf-8"))
    records.note(run.folder, "metrics.json", {**known, "counts": {"queries_excluded": 3}})
    compare.main([])
    assert "3 queries are excluded (their evidence moved and was not resolved)" in capsys.readouterr().out


def test_bounds_are_left_out_and_said_where_the_dataset_is_gone(place, capsys):
    baseline, reranker = judged_sides(place, 0.9, 0.9)
    compare.main([baseline.id, reranker.id])
    assert (
        "bounds over what nobody has judged are left out: отчёты и база: found no such folder"
        in capsys.readouterr().out
    )
    compare.main(["--json", baseline.id, reranker.id])
    assert json.loads(capsys.readouterr().out)["bounds"] is None


def test_bounds_are_shown_for_two_runs_whose_dataset_is_there(tmp_path, monkeypatch):
    cli.workshop(tmp_path, monkeypatch)
    cli.variant(tmp_path, "turned", "defaults:\n  - override /reranker: reverse")
    assert cli.quiet("+variant=turned", f"dataset.dir={cli.small(tmp_path / 'данные')}", "k=1").code == 0
    names = [run.name for run in cli.runs().values()]
    found = json.loads(cli.ablate("compare", "--json", *names).out)["bounds"]
    assert found.keys() == {"low", "high", "n", "unjudged"}
    assert -1 <= found["low"] <= found["high"] <= 1
    assert found["n"] == 2
    assert "unjudged passages of either context" in cli.ablate("compare", *names).out
    assert "unjudged passages" not in cli.ablate("compare").out
