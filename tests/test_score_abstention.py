"""Whether a score tells what can be answered: thresholds found on other queries, areas equal to the references'."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.score.abstention import Table, abstention, fold, threshold, top_score
from ablate.statistics.proportions import newcombe, wilson
from ablate.types import Query

SCORES = st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.booleans()), min_size=2, max_size=30)


def table(rows, clusters=None):
    scores, answerable, right = (list(column) for column in zip(*rows, strict=True))
    names = clusters or [str(n) for n in range(len(rows))]
    good = np.array([a and r for a, r in zip(answerable, right, strict=True)])
    return Table(np.array(scores, float), np.array(answerable), good, names)


def ones(rows):
    return np.ones((1, len(rows)))


@given(SCORES)
def test_the_area_is_that_of_scikit_learn(rows):
    from sklearn.metrics import roc_auc_score

    answerable = [row[1] for row in rows]
    if len(set(answerable)) == 2:
        expected = roc_auc_score(answerable, [row[0] for row in rows])
        assert table(rows).auroc(ones(rows))[0] == pytest.approx(expected)


@given(SCORES)
def test_no_change_that_keeps_the_order_changes_an_area(rows):
    bent = [(math.exp(score) - 40, *rest) for score, *rest in rows]
    for area in (Table.auroc, Table.risk_coverage):
        np.testing.assert_array_equal(area(table(rows), ones(rows)), area(table(bent), ones(bent)))


@given(SCORES)
def test_risk_over_coverage_is_the_mean_of_the_share_answered_wrongly(rows):
    """By its definition, query by query; equal scores are answered together."""
    areas = []
    for score, _, _ in rows:
        answered = [a and r for s, a, r in rows if s >= score]
        areas.append(1 - sum(answered) / len(answered))
    assert table(rows).risk_coverage(ones(rows))[0] == pytest.approx(sum(areas) / len(rows))


def test_by_hand():
    rows = [(3, True, True), (2, False, False), (1, True, False), (0, True, True)]
    found = table(rows)
    # answerable 3, 1, 0 against 2: one of three is higher
    assert found.auroc(ones(rows))[0] == pytest.approx(1 / 3)
    # wrong of the first 1, 2, 3, 4: 0, 1, 2, 2
    assert found.risk_coverage(ones(rows))[0] == pytest.approx((0 + 1 / 2 + 2 / 3 + 2 / 4) / 4)


@pytest.mark.parametrize(
    ("scores", "answerable", "cost", "expected"),
    [
        ([1, 2, 3, 4], [False, False, True, True], 1.0, 3),
        ([1, 2, 3, 4], [False, True, False, True], 1.0, 2),  # answering 3 costs as much as not answering 2
        ([1, 2, 3, 4], [False, True, False, True], 5.0, 4),
        ([1, 2], [True, True], 9.0, -math.inf),  # nothing to be wrong about: abstain never
        ([1, 2, 3], [True, False, True], 0.1, -math.inf),  # a lower score than any seen is answered too
        ([1, 2], [False, False], 1.0, math.inf),
        ([-math.inf], [True], 1.0, math.inf),
    ],
)
def test_the_threshold_costs_least_and_of_several_abstains_least(scores, answerable, cost, expected):
    assert threshold(np.array(scores, float), np.array(answerable), cost) == expected


@given(SCORES, st.sampled_from([0.5, 1.0, 3.0]))
def test_no_threshold_costs_less(rows, cost):
    scores, answerable = np.array([row[0] for row in rows], float), np.array([row[1] for row in rows])

    def price(level):
        answered = scores >= level
        return cost * (answered & ~answerable).sum() + (~answered & answerable).sum()

    chosen = price(threshold(scores, answerable, cost))
    assert all(chosen <= price(level) for level in [*scores, math.inf])


def asked(answerable, why=None, **scores):
    known = {name: answerable(name) for name in scores}
    queries = [Query(name, "сколько?", answerable=has, why=None if has else why) for name, has in known.items()]
    values = {name: {"abstention/top_score": score, "context/sufficient": 1.0} for name, score in scores.items()}
    return queries, values


def test_two_with_an_answer_and_two_without_one_abstention_each():
    queries, values = asked(lambda name: name.startswith("да"), why="absent", да1=None, да2=9.0, нет1=None, нет2=9.0)
    found = abstention(queries, values, {}, 1.0, True)
    means = {name: row["mean"] for name, row in found.items()}
    assert means["abstention/false_abstention"] >= 0.5  # what found nothing abstains, whatever the threshold
    assert means["abstention/auroc"] == 0.5
    assert found["abstention/false_answer"]["n"] == found["abstention/false_answer_absent"]["n"] == 2
    assert found["abstention/false_abstention"]["n"] == 2


def test_one_abstention_of_two_on_either_side_is_half_of_each():
    """The same many times over, so that other folds can tell that answering pays."""
    one = {"да": None, "Да": 9.0, "нет": None, "Нет": 9.0}
    scores = {f"{name}{n}": score for n in range(20) for name, score in one.items()}
    queries, values = asked(lambda name: name.lower().startswith("да"), why="absent", **scores)
    found = abstention(queries, values, {}, 0.5, True)
    shares = {name: (row["mean"], row["n"], row["not_applicable"]) for name, row in found.items()}
    assert shares["abstention/false_answer"] == shares["abstention/false_answer_absent"] == (0.5, 40, 40)
    assert shares["abstention/false_abstention"] == (0.5, 40, 40)


def test_a_score_that_tells_them_apart_makes_no_mistake():
    scores = {f"да{n}": 5.0 + n % 3 for n in range(20)} | {f"нет{n}": 1.0 + n % 3 for n in range(20)}
    queries, values = asked(lambda name: name.startswith("да"), why="access", **scores)
    found = abstention(queries, values, {}, 1.0, True)
    for name in ("false_answer", "false_answer_access", "false_abstention"):
        assert found[f"abstention/{name}"]["mean"] == 0
    assert found["abstention/auroc"]["mean"] == 1
    low, high = found["abstention/auroc"]["interval"]
    assert (low, high) == (pytest.approx(0.8987, abs=1e-4), 1), "40 queries do not make it certain"


def test_a_query_has_no_say_in_its_own_threshold():
    scores = {f"да{n}": 5.0 for n in range(10)} | {f"нет{n}": 1.0 for n in range(10)}
    queries, values = asked(lambda name: name.startswith("да"), why="absent", **scores)
    alone = next(name for name in scores if name.startswith("нет"))
    clusters = {name: alone if fold(name) == fold(alone) else name for name in scores}
    values[alone]["abstention/top_score"] = 9.0  # a mistake that no threshold of the others avoids
    found = abstention(queries, values, clusters, 1.0, True)
    assert found["abstention/false_answer"]["mean"] == pytest.approx(1 / 10)
    assert found["abstention/false_abstention"]["mean"] == 0


@pytest.mark.parametrize("comparable", [True, False])
def test_what_does_not_apply_is_no_number(comparable):
    queries, values = asked(lambda name: comparable or name == "да", why="absent", да=1.0, нет=2.0)
    found = abstention(queries, values, {}, 1.0, comparable)
    assert found.keys() >= {"abstention/auroc", "abstention/false_answer", "abstention/risk_coverage"}
    assert {row["mean"] for row in found.values()} == {None}


@given(SCORES)
def test_the_order_of_the_queries_decides_nothing(rows):
    queries = [Query(f"в{n}", "?", answerable=row[1], why=None if row[1] else "absent") for n, row in enumerate(rows)]
    told = [{"abstention/top_score": float(row[0]), "context/sufficient": float(row[2])} for row in rows]
    values = {query.id: row for query, row in zip(queries, told, strict=True)}
    found = abstention(queries, values, {}, 2.0, True)
    assert found == abstention(queries[::-1], values, {}, 2.0, True)
    for row in found.values():
        assert row["mean"] is None or 0 <= row["mean"] <= 1
        low, high = row["interval"]
        assert low is None or 0 <= low <= high <= 1


def test_queries_of_one_fold_have_no_threshold_but_areas():
    queries, values = asked(lambda name: name == "да", why="absent", да=2.0, нет=1.0)
    found = abstention(queries, values, {"да": "вместе", "нет": "вместе"}, 1.0, True)
    names = ("false_answer", "false_answer_absent", "false_abstention")
    assert {found[f"abstention/{name}"]["mean"] for name in names} == {None}
    assert found["abstention/auroc"] == {"mean": 1.0, "n": 2, "not_applicable": 0, "interval": [None, None]}


def test_five_of_five_are_not_all():
    scores = {f"да{n}": n % 7 for n in range(200)} | {f"нет{n}": 9.0 for n in range(5)}
    queries, values = asked(lambda name: name.startswith("да"), why="conflict", **scores)
    found = abstention(queries, values, {}, 0.001, True)["abstention/false_answer_conflict"]
    assert (found["mean"], found["n"]) == (1, 5)
    # Wilson by hand: 1 / (1 + 1.96^2 / 5)
    assert found["interval"] == [pytest.approx(1 / (1 + 1.959964**2 / 5)), 1]


def test_queries_of_a_cluster_count_as_one():
    rows = [(3, True, True), (2, False, False)] * 6
    alone = table(rows).share(np.ones(12, np.bool_), table(rows).answerable)["interval"]
    pairs = table(rows, [f"{n // 4}" for n in range(12)])  # each cluster has two of either kind
    assert pairs.weight(pairs.answerable) == 2
    assert pairs.share(np.ones(12, np.bool_), pairs.answerable)["interval"][0] < alone[0]


@given(st.integers(1, 60), st.integers(1, 60))
def test_the_interval_of_a_share_is_that_of_scipy(good, more):
    from scipy.stats import binomtest

    n = good + more - 1
    expected = binomtest(good, n).proportion_ci(method="wilson")
    assert wilson(good / n, n) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert wilson(0.0, n)[0] == 0 < wilson(0.0, n)[1]


@given(st.integers(0, 100), st.integers(1, 50), st.integers(1, 50))
def test_the_interval_of_an_area_ends_where_areas_no_longer_fit(percent, m, n):
    """By the variance of Hanley and McNeil (1982), the mean of both numbers in place of either less one."""
    area = percent / 100
    low, high = newcombe(area, m, n)
    assert 0 <= low <= area <= high <= 1
    assert low < high
    assert newcombe(1 - area, n, m) == (pytest.approx(1 - high, abs=1e-9), pytest.approx(1 - low, abs=1e-9))
    for end in {low, high} - {0.0, 1.0}:
        first, second, more = end / (2 - end), 2 * end**2 / (1 + end), (m + n) / 2 - 1
        variance = (end * (1 - end) + more * (first - end**2) + more * (second - end**2)) / (m * n)
        assert abs(area - end) == pytest.approx(1.959964 * math.sqrt(variance), rel=1e-3)


def test_batches_change_nothing(monkeypatch):
    rows = [(n % 5, n % 3 > 0, n % 2 > 0) for n in range(30)]
    whole = table(rows).areas()
    monkeypatch.setattr("ablate.score.abstention.BATCH", 100)
    assert table(rows).areas() == whole


@given(SCORES)
def test_drawing_each_query_as_often_as_it_says_is_repeating_it(rows):
    counts = [n % 3 for n in range(len(rows))]
    repeated = [row for row, count in zip(rows, counts, strict=True) for _ in range(count)]
    for area in (Table.auroc, Table.risk_coverage):
        if {row[1] for row in repeated} == {True, False}:
            expected = area(table(repeated), ones(repeated))[0]
            assert area(table(rows), np.array([counts], float))[0] == pytest.approx(expected)


def test_scores_that_only_order_one_ranking_are_no_score():
    assert top_score([0.03, 0.02], comparable=False) == {"abstention/top_score": None}
    assert top_score([], comparable=True) == {"abstention/top_score": None}
    assert top_score([3.5, 2.0], comparable=True) == {"abstention/top_score": 3.5}
