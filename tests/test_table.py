"""Runs side by side: only paired differences, nothing that does not apply shown as 0, and a page that fits."""

from __future__ import annotations

import re

import pytest
import runs
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from ablate import comparison, table
from ablate.errors import NotComparable
from ablate.page import Markdown, Terminal, clean, escaped, milliseconds, signed
from ablate.workspace import Workspace

ONE = {"q1": runs.evidence(1, 1), "q2": runs.evidence(0, 0.5)}


@pytest.fixture
def place(tmp_path):
    return Workspace(tmp_path)


def cells(page, label):
    """The cells of a run's row in the first Markdown table that has one."""
    row = next(line for line in page.splitlines() if line.startswith(f"| {label} "))
    return [cell.strip() for cell in row.strip("|").split("|")]


def headings(page):
    """The headings of the first table."""
    row = next(line for line in page.splitlines() if line.startswith("| run"))
    return [cell.strip() for cell in row.strip("|").split("|")]


def column(page, heading, label):
    """The cell of a run in the first table that has such a heading."""
    tables = [block for block in page.split("\n\n") if block.startswith("| run") and heading in headings(block)]
    return cells(tables[0], label)[headings(tables[0]).index(heading)]


def test_a_variant_is_told_in_one_sentence(place):
    baseline, reranker, broken = runs.study(place)
    found = table.compare([baseline, reranker, broken])
    assert found.sentence(reranker) == (
        "reranker: sufficient 0.350 -> 0.475 (+0.125), better on 6 queries, worse on 1, of 40; +40 tokens; "
        "p50 12 -> 310 ms"
    )
    assert (
        found.sentence(baseline) == "baseline: sufficient 0.350, coverage 0.675, of 40 queries; 600 tokens; p50 12 ms"
    )
    assert found.sentence(broken) == "hybrid: FAILED: ValueError: нет индекса | индекс пуст"


def test_a_difference_is_the_mean_over_the_queries_that_both_sides_have(place):
    baseline = runs.build(place, values={"a": runs.evidence(0, 0), "b": runs.evidence(1, 1)})
    variant = runs.build(
        place, "reranker", {"b": runs.evidence(1, 1), "c": runs.evidence(0, 0)}, baseline=baseline
    )  # fmt: skip
    pair = comparison.paired(baseline, variant, "context/sufficient")
    assert (pair.difference, pair.n, pair.higher, pair.lower) == (0.0, 1, 0, 0)
    assert comparison.paired(baseline, variant, "no/such") is None


def test_an_inert_variant_is_marked_and_differs_by_exactly_nothing(place):
    same = {"q1": "h1", "q2": "h2"}
    baseline = runs.build(place, values=ONE, hashes=same)
    variant = runs.build(place, "reranker", ONE, baseline=baseline, hashes=same)
    found = table.compare([baseline, variant])
    assert found.sentence(variant) == "reranker: identical to its baseline on each of 2 queries (inert)"
    assert column(found.markdown(), "status", "reranker") == "inert"
    assert column(found.markdown(), "sufficient", "reranker") == "0.500 +0.000"
    assert found.data()["runs"][1]["inert"]
    assert all(pair["difference"] == 0 for pair in found.data()["runs"][1]["differences"].values())


def test_equal_values_with_other_rankings_are_not_inert(place):
    baseline = runs.build(place, values=ONE)
    assert not comparison.inert(baseline, runs.build(place, "reranker", ONE, baseline=baseline))


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("corpus", "run both on one version of the dataset"),
        ("ground_truth", "rescore --dataset 'отчёты и база' baseline-0001"),
        ("scoring", "rescore --dataset 'отчёты и база' --score-as reranker-0001 baseline-0001"),
    ],
)
def test_runs_that_measured_different_things_are_refused_with_what_helps(place, name, advice):
    baseline = runs.build(place, values=ONE, fingerprints={name: "aaaa"})
    later = {"fingerprints": {name: "bbbb"}, "started": "2025-06-02T12:00:00+00:00"}
    variant = runs.build(place, "reranker", ONE, baseline=baseline, **later)
    with pytest.raises(NotComparable) as refused:
        table.compare([baseline, variant])
    assert str(refused.value).startswith(f"{name}: found aaaa in run baseline-0001 and bbbb in run reranker-0001, ")
    assert advice in str(refused.value)


def test_runs_on_a_subset_and_on_everything_are_not_sent_to_be_scored_again(place):
    data = {"_target_": "ablate.dataset.Folder", "dir": "data"}
    few = runs.build(place, "a", ONE, run="a-1", config={"dataset": {**data, "subset": "pr"}})
    other = {"ground_truth": "0f" * 32}
    everything = runs.build(
        place, "b", ONE, run="b-1", config={"dataset": {**data, "subset": None}}, fingerprints=other
    )
    with pytest.raises(NotComparable, match=r"run both with one dataset\.subset$"):
        table.compare([few, everything])


def test_runs_of_other_code_or_config_may_stand_side_by_side(place):
    baseline = runs.build(place, values=ONE, fingerprints={"code": "1", "config": "1"})
    variant = runs.build(place, "reranker", ONE, baseline=baseline, fingerprints={"code": "2", "config": "2"})
    page = table.compare([baseline, variant]).text()
    assert "+0.000" in page
    assert "reranker: run by other code than its baseline" in page
    again = runs.build(place, "bm25", ONE, baseline=baseline, fingerprints={"code": "1", "config": "3"})
    assert "other code" not in table.compare([baseline, again]).text()


def test_a_variant_without_its_baseline_shows_no_difference(place):
    other = runs.build(place, run="other", values=ONE)
    variant = runs.build(place, "reranker", ONE, baseline="gone")
    page = table.compare([other, variant]).markdown()
    assert column(page, "status", "reranker") == "no run of its baseline"
    assert column(page, "sufficient", "reranker") == "0.500"
    assert "How many queries changed" not in page


def test_a_variant_of_a_failed_baseline_shows_no_difference(place):
    baseline = runs.build(place, error="x")
    variant = runs.build(place, "reranker", ONE, baseline=baseline)
    page = table.compare([baseline, variant]).markdown()
    assert column(page, "status", "baseline") == "FAILED"
    assert column(page, "status", "reranker") == "no run of its baseline"


def test_only_failed_runs_still_make_a_page(place):
    page = table.compare([runs.build(place, error="сломалось")]).text()
    assert "baseline: FAILED: сломалось" in page


def test_what_does_not_apply_is_never_zero_and_the_legend_says_why(place):
    values = {
        "q": {
            "context/sufficient": 1.0,
            "context/coverage": 1.0,
            "context/tokens": 9.0,
            "retrieval/coverage_at_5": None,
        }
    }
    page = table.compare([runs.build(place, values=values)]).markdown()
    assert column(page, "found in 5", "baseline") == "n/a"
    assert column(page, "p50/p95 ms", "baseline") == "n/a"
    legend = {line.split(":")[0]: line for line in page.splitlines() if line.startswith("- ")}
    assert "n/a: applies to no query of this ground truth" in legend["- found in 5"]
    assert "n/a: was not measured" in legend["- p50/p95 ms"]


def test_the_legend_says_over_how_many_queries_a_partial_measure_was_averaged(place):
    values = {"a": runs.evidence(1, 1), "b": {**runs.evidence(1, 1), "context/sufficient": None}}
    page = table.compare([runs.build(place, values=values)]).text(500)
    assert re.search(r"sufficient: context/sufficient = .*; over 1 queries", page)
    assert not re.search(r"tokens: context/tokens = .*; over", page)


@pytest.mark.parametrize(
    ("violations", "exposure", "cell", "note"),
    [
        (0.0, 1.0, "0 of 2", None),
        (2.0, 1.0, "4, 2 exposed", None),
        (0.0, 0.0, "0, none exposed", "no query was exposed"),
        (None, None, "not checked", "access was not checked: no document carries an ACL"),
    ],
)
def test_access_is_told_with_what_was_at_stake(place, violations, exposure, cell, note):
    values = {q: {**runs.evidence(1, 1), "acl/violations": violations, "acl/exposure": exposure} for q in "ab"}
    page = table.compare([runs.build(place, values=values)]).markdown()
    assert column(page, "forbidden", "baseline") == cell
    assert ("exposed: without" in page or "not checked: no" in page) == (note is not None)
    assert note is None or note in page


def test_a_plain_folder_of_documents_leads_with_document_measures(place):
    row = {"context/sufficient": None, "context/coverage": None, "context/tokens": 100.0, "retrieval/ndcg_at_5": None}
    before = {q: {**row, "doc/ndcg_at_10": 0.5, "doc/recall_at_10": 0.25, "doc/mrr": 1.0} for q in "ab"}
    after = {q: {**row, "doc/ndcg_at_10": 0.75, "doc/recall_at_10": 0.25, "doc/mrr": 1.0} for q in "ab"}
    baseline = runs.build(place, values=before)
    variant = runs.build(place, "reranker", after, baseline=baseline)
    found = table.compare([baseline, variant])
    page = found.markdown()
    assert found.sentence(variant).startswith("reranker: doc/ndcg_at_10 0.500 -> 0.750 (+0.250), better on 2 queries")
    assert headings(page)[1:3] == ["doc ndcg at 10", "doc recall at 10"]
    assert column(page, "doc ndcg at 10", "reranker") == "0.750 +0.250"
    assert "sufficient" not in page
    assert "| reranker | a" in page


def test_evidence_of_whole_documents_is_called_an_upper_bound(place):
    cohorts = {query: {"granularity": "document"} for query in ONE}
    page = table.compare([runs.build(place, values=ONE, cohorts=cohorts)]).markdown()
    assert f"{len(ONE)} queries rest on whole documents" in page


def test_the_funnel_follows_the_studys_own_depth_and_k(place):
    values = {"q": {**runs.evidence(1, 1), "retrieval/coverage_at_30": 0.9, "retrieval/coverage_at_3": 0.8}}
    page = table.compare([runs.build(place, values=values, config={"k": 3, "depth": 30})]).markdown()
    assert headings(page)[1:5] == ["sufficient", "found in 30", "found in 3", "found in context"]
    assert headings(page)[5:7] == ["found in 640 tokens", "tokens"]
    assert column(page, "found in 30", "baseline") == "0.900"


PACKING = "retrieval/coverage_at_640_tokens"


def packing(place, component="packer", cohorts=None, **config):
    """A baseline and a variant that covers more at equal tokens in one query of two, and that hands over more."""
    before = {"а": {**runs.evidence(0, 0.5, 300), PACKING: 0.5}, "б": {**runs.evidence(1, 1, 300), PACKING: 1.0}}
    after = {"а": {**runs.evidence(1, 1, 640), PACKING: 0.75}, "б": {**runs.evidence(1, 1, 640), PACKING: 1.0}}
    baseline = runs.build(place, values=before, config=config, cohorts=cohorts)
    variant = runs.build(place, "new", after, baseline=baseline, component=component, config=config, cohorts=cohorts)
    return table.compare([baseline, variant])


@pytest.mark.parametrize("component", ["chunker", "packer"])
def test_what_moves_the_length_of_a_context_is_compared_at_equal_tokens(place, component):
    found = packing(place, component)
    assert found.sentence(found.records[1]) == (
        "new: sufficient 0.500 -> 1.000 (+0.500), better on 1 queries, worse on 0, of 2; +340 tokens; "
        "coverage_at_640_tokens 0.750 -> 0.875 (+0.125), better on 1 queries, worse on 0, of 2"
    )
    page = found.markdown()
    assert column(page, "found in 640 tokens", "new") == "0.875"
    assert re.search(r"\| new +\| coverage_at_640_tokens \| +1 \| +0 \| +1 \| +2 \|", page)
    assert "the last passage cut at a token; read are the passages of the context" in page


def test_other_variants_show_coverage_at_equal_tokens_and_are_not_told_by_it(place):
    found = packing(place, "reranker")
    assert found.sentence(found.records[1]).endswith("of 2; +340 tokens")
    assert column(found.markdown(), "found in 640 tokens", "new") == "0.875"
    assert "| coverage_at_640_tokens" not in found.markdown()


def test_evidence_of_whole_documents_says_nothing_about_how_text_is_cut_and_packed(place):
    found = packing(place, cohorts={"а": {"granularity": "document"}})
    assert found.sentence(found.records[1]).endswith("1.000 -> 1.000 (+0.000), better on 0 queries, worse on 0, of 1")
    found = packing(Workspace(place.root / "b"), cohorts={q: {"granularity": "document"} for q in "аб"})
    assert found.sentence(found.records[1]).endswith("+340 tokens")


def test_runs_recorded_without_a_budget_have_no_column_for_it(place):
    found = packing(place, budget=None)
    assert "found in 640 tokens" not in found.markdown()
    assert found.sentence(found.records[1]).endswith("+340 tokens")


def test_cohorts_show_paired_differences_of_averaged_cohorts_only(place):
    cohorts = {"a": {"язык": "ru=1"}, "b": {"язык": "中文"}}
    baseline = runs.build(place, values={"a": runs.evidence(0, 0), "b": runs.evidence(1, 1)}, cohorts=cohorts)
    variant = runs.build(
        place, "reranker", {"a": runs.evidence(1, 1), "b": runs.evidence(1, 1)}, baseline=baseline, cohorts=cohorts
    )  # fmt: skip
    assert {name: pair.difference for name, pair in comparison.by_cohort(baseline, variant).items()} == {
        "язык=ru=1": 1.0,
        "язык=中文": 0.0,
    }
    page = table.compare([baseline, variant]).markdown()
    assert cells(page, "язык=ru=1") == ["язык=ru=1", "1", "0.000", "+1.000"]
    assert comparison.by_cohort(runs.build(place, run="no-cohorts", values=ONE), variant) == {}


def test_the_queries_that_moved_most_come_first_with_both_values(place):
    before = {
        q: runs.evidence(0, c, rr=r) for q, c, r in (("a", 0.5, 0.5), ("b", 0.5, 0.5), ("в", 0.5, 0.5), ("d", 0.5, 0.5))
    }
    after = {
        q: runs.evidence(0, c, rr=r) for q, c, r in (("a", 0.5, 0.4), ("b", 0.0, 0.5), ("в", 1.0, 1.0), ("d", 0.5, 0.5))
    }
    baseline = runs.build(place, values=before)
    variant = runs.build(place, "reranker", after, baseline=baseline)
    moved = comparison.moved(baseline, variant)
    assert [query for query, _ in moved] == ["в", "b", "a"]
    assert moved[0][1] == {"context/coverage": (0.5, 1.0), "retrieval/completion_rr": (0.5, 1.0)}
    page = table.compare([baseline, variant]).markdown()
    assert re.search(r"\| reranker \| в +\| +0\.500 -> 1\.000 \| +0\.500 -> 1\.000 \|", page)


def test_a_first_variant_that_moves_nothing_takes_no_value_from_the_others(place):
    baseline = runs.build(place, values={"вопрос": runs.evidence(0, 0.25)}, hashes={"вопрос": "h"})
    still = runs.build(place, "bm25", {"вопрос": runs.evidence(0, 0.25)}, baseline=baseline, hashes={"вопрос": "h"})
    variant = runs.build(place, "reranker", {"вопрос": runs.evidence(1, 1, rr=1.0)}, baseline=baseline)
    found = table.compare([baseline, still, variant])
    text = re.sub(" +", " ", found.text())
    assert "run query coverage completion_rr\n" in text
    assert "reranker вопрос 0.250 -> 1.000 0.500 -> 1.000\n" in text
    markdown = re.sub(" +", " ", found.markdown())
    assert "| run | query | coverage | completion_rr |\n" in markdown
    assert "| reranker | вопрос | 0.250 -> 1.000 | 0.500 -> 1.000 |\n" in markdown


def test_a_query_that_lacks_one_measure_keeps_the_other_in_its_column(place):
    baseline = runs.build(place, values={"q": {**runs.evidence(0, 0), "context/coverage": None}})
    variant = runs.build(place, "reranker", {"q": runs.evidence(1, 1, rr=1.0)}, baseline=baseline)
    page = re.sub(" +", " ", table.compare([baseline, variant]).markdown())
    assert "| reranker | q | n/a | 0.500 -> 1.000 |\n" in page


def test_at_most_five_queries_a_variant_are_listed(place):
    baseline = runs.build(place, values={f"q{n}": runs.evidence(0, 0) for n in range(9)})
    variant = runs.build(place, "reranker", {f"q{n}": runs.evidence(1, 1) for n in range(9)}, baseline=baseline)
    assert len(table.compare([baseline, variant]).data()["runs"][1]["moved"]) == 5


def test_a_regression_on_one_rank_is_listed_even_if_coverage_stands_still(place):
    baseline = runs.build(place, values={"q": runs.evidence(1, 1, rr=1.0)})
    variant = runs.build(place, "reranker", {"q": runs.evidence(1, 1, rr=0.5)}, baseline=baseline)
    assert "1.000 -> 0.500" in table.compare([baseline, variant]).text()


def test_another_candidate_pool_is_remarked(place):
    baseline = runs.build(place, values=ONE)
    variant = runs.build(
        place, "whole", ONE, baseline=baseline, component="chunker", pool={"chunks": 9, "documents": 10}
    )
    page = table.compare([baseline, variant]).text(500)
    assert "whole: different candidate pool on 2 queries" in page
    assert "baseline: different candidate pool" not in page


def test_a_gain_by_a_declared_filter_is_labelled(place):
    baseline = runs.build(place, values=ONE)
    variant = runs.build(place, "metadata_filters", ONE, baseline=baseline, component="filter")
    assert "metadata_filters: declared filter" in table.compare([baseline, variant]).text()


def test_what_an_approximate_index_missed_is_told(place):
    baseline = runs.build(place, values=ONE)
    shares = iter((1.0, 0.6))
    found = {query: {**row, "retrieval/ann_recall": next(shares)} for query, row in ONE.items()}
    variant = runs.build(place, "ann", found, baseline=baseline, component="retriever")
    page = table.compare([baseline, variant]).text(500)
    assert "ann: its index is approximate: it found 0.800 of what exact search finds, at worst 0.600" in page
    assert "baseline: its index" not in page


def test_runs_of_one_name_are_told_apart(place):
    one, two = (
        runs.build(place, run="baseline-aaaaaa", values=ONE),
        runs.build(place, run="baseline-bbbbbb", values=ONE),
    )
    found = table.compare([one, two])
    assert found.labels == {one.id: "baseline aaaaaa", two.id: "baseline bbbbbb"}


def test_each_variant_is_compared_with_its_own_baseline(place):
    one = runs.build(place, run="one", values={"q": runs.evidence(0, 0)})
    two = runs.build(place, run="two", values={"q": runs.evidence(1, 1)})
    variant = runs.build(place, "reranker", {"q": runs.evidence(1, 1)}, baseline=two)
    assert column(table.compare([one, two, variant]).markdown(), "sufficient", "reranker") == "1.000 +0.000"


def crowd(place, count=8, name="вариант", values=None):
    """A baseline and variants with long names, long query ids, many cohorts."""
    values = values or {f"вопрос-о-договоре-аренды-{n}": runs.evidence(n % 2, n % 2) for n in range(40)}
    flipped = {q: runs.evidence(1 - row["context/sufficient"], 0.75, 12345) for q, row in values.items()}
    cohorts = {q: {"отдел": f"отдел номер {n % 4}, 中文部門"} for n, q in enumerate(values)}
    timing = {"total_p50": 1234.0, "total_p95": 12345.0, "baseline_p50": 1.0}
    baseline = runs.build(place, values=values, cohorts=cohorts, latency=timing)
    variants = [
        runs.build(place, f"{name}_{n}", flipped, baseline=baseline, cohorts=cohorts, latency=timing)
        for n in range(1, count)
    ]
    return table.compare([baseline, *variants])


@pytest.mark.parametrize("name", ["reranker", "очень_длинное_имя_варианта", "上下文打包方式比較"])
def test_eight_runs_fit_a_terminal_of_120_columns(place, name):
    text = crowd(place, name=name).text()
    assert max(wcswidth(line) for line in text.splitlines()) <= 120


def test_columns_stand_under_each_other_whatever_the_script(place):
    values = {"q": runs.evidence(1, 1)}
    records = [runs.build(place, variant, values) for variant in ("baseline", "пере", "再排序", "e\u0301")]
    lines = [line for line in table.compare(records).text().splitlines() if re.match(r"\S+ +1\.000  ", line)]
    assert len(lines) == 4
    assert len({wcswidth(line[: line.index("1.000")]) for line in lines}) == 1


def test_a_long_page_is_cut_on_a_line_and_says_so(place):
    values = {f"вопрос-{n}-{'длинный-' * 12}": runs.evidence(n % 2, n % 2) for n in range(40)}
    found = crowd(place, values=values)
    whole, page = found.markdown(), found.markdown(limit=8000)
    assert len(whole) > 8000 >= len(page) > 7000
    kept, cut = page.split("\n\n**Cut here.**")
    assert cut == " All of it: `comparison.md`, or `python -m ablate compare --study 'учёба-1a2b3c4d'`\n"
    assert whole.startswith(kept + "\n")
    assert found.markdown(limit=len(whole)) == whole


def test_the_subject_of_a_page_is_told_first_and_once(place):
    baseline, reranker, _ = runs.study(place)
    found = table.compare([baseline, reranker])
    page = found.markdown(reranker)
    assert page.splitlines()[0] == found.sentence(reranker)
    assert page.count(found.sentence(reranker)) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("recall_at_5", "recall_at_5"),
        ("_q_ *x* `y` <b> [z](w) ~~s~~", r"\_q\_ \*x\* \`y\` \<b> \[z\](w) \~\~s\~\~"),
        ("# not a title", r"\# not a title"),
        ("two\nlines\u202e\x1b[31m", r"two lines  \[31m"),
    ],
)
def test_ids_and_errors_cannot_write_markdown(text, shown):
    assert escaped(text) == shown


@given(st.lists(st.lists(st.text(), min_size=3, max_size=3), min_size=1, max_size=4))
def test_any_text_keeps_its_row_and_column(rows):
    markdown = Markdown().table(["a", "b", "c"], rows).splitlines()
    assert len(markdown) == len(rows) + 2
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in markdown} == {4}
    assert Terminal(120).table(["a", "b", "c"], rows)


@given(st.text())
def test_clean_text_stays_on_its_line(text):
    assert "\n" not in clean(text)
    assert len(clean(text).splitlines()) <= 1
    assert clean(text) == clean(f"{text}\n")  # which goes through it letter by letter


def test_numbers_keep_their_sign_and_never_say_minus_zero():
    assert [signed(x) for x in (0.0834, -0.1, 0.0, -0.0, -0.0001)] == ["+0.083", "-0.100", "+0.000", "+0.000", "+0.000"]
    assert signed(-0.4, 0) == "+0"
    assert [milliseconds(x) for x in (0.123, 4.25, 12.4, 310.6)] == ["0.12", "4.2", "12", "311"]
