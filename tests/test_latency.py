"""Latency is measured one query at a time, both sides of a comparison in turn, after a warm-up that does not count."""

import re
from types import SimpleNamespace

import pytest

from ablate.errors import ConfigError
from ablate.latency import Off, Sample
from ablate.types import Query

QUERIES = [Query(f"вопрос-{number}", "") for number in range(7)]


class Sides:
    """Two lines that note who was asked what, and whose every answer takes longer than the one before."""

    def __init__(self, *names):
        self.asked = []
        self.lines = {name: lambda query, name=name: self.answer(name, query) for name in names}

    def answer(self, name, query):
        self.asked.append((name, query.id))
        return SimpleNamespace(milliseconds={"search": float(len(self.asked)), "pack": 0.5})


def test_every_query_is_asked_of_both_sides_before_the_next_one():
    sides = Sides("baseline", "variant")
    timings = Sample(5, 0)(sides.lines, QUERIES, 0)
    pairs = [sides.asked[place : place + 2] for place in range(0, len(sides.asked), 2)]
    assert [{name for name, _ in pair} for pair in pairs] == [{"baseline", "variant"}] * 5
    assert [query for _, query in sides.asked[::2]] == [query for _, query in sides.asked[1::2]]
    assert [timing["query_id"] for timing in timings] == [query for _, query in sides.asked[::2]]


def test_who_goes_first_alternates():
    sides = Sides("baseline", "variant")
    Sample(4, 0)(sides.lines, QUERIES, 0)
    assert [name for name, _ in sides.asked[::2]] == ["baseline", "variant", "baseline", "variant"]


def test_a_time_stands_beside_the_query_and_the_side_it_was_measured_on():
    sides = Sides("baseline", "variant")
    timings = Sample(2, 0)(sides.lines, QUERIES, 0)
    assert [{name: timing[name]["search"] for name in sides.lines} for timing in timings] == [
        {"baseline": 1.0, "variant": 2.0},
        {"baseline": 4.0, "variant": 3.0},
    ]
    assert [list(timing) for timing in timings] == [["query_id", "baseline", "variant"]] * 2


def test_the_warm_up_is_asked_of_every_side_and_not_counted():
    sides = Sides("baseline", "variant")
    timings = Sample(2, 3)(sides.lines, QUERIES, 0)
    assert len(timings) == 2
    assert len(sides.asked) == 2 * (3 + 2)
    assert timings[0]["baseline"]["search"] == 7.0


def test_a_warm_up_longer_than_the_sample_goes_round():
    sides = Sides("baseline")
    assert len(Sample(1, 5)(sides.lines, QUERIES, 0)) == 1
    assert len(sides.asked) == 6


def test_a_baseline_is_timed_alone():
    assert [list(timing) for timing in Sample(2, 0)(Sides("baseline").lines, QUERIES, 0)] == [
        ["query_id", "baseline"]
    ] * 2


def test_no_query_is_asked_twice_and_no_more_than_there_are():
    for queries in (3, 7, 100):
        asked = [timing["query_id"] for timing in Sample(queries, 0)(Sides("baseline").lines, QUERIES, 0)]
        assert len(asked) == len(set(asked)) == min(queries, 7)


def test_the_sample_is_drawn_by_the_seed_whatever_the_order_of_the_file():
    def drawn(queries, seed):
        return [timing["query_id"] for timing in Sample(3, 0)(Sides("baseline").lines, queries, seed)]

    assert drawn(QUERIES, 1) == drawn(QUERIES[::-1], 1)
    assert len({tuple(drawn(QUERIES, seed)) for seed in range(9)}) > 1


def test_nothing_to_ask_is_nothing_to_time():
    assert Sample(3, 2)(Sides("baseline").lines, [], 0) == []


def test_off_asks_nobody():
    sides = Sides("baseline", "variant")
    assert Off()(sides.lines, QUERIES, 0) == []
    assert sides.asked == []
    assert (Off().measured, Sample(1, 0).measured) == (False, True)


@pytest.mark.parametrize(("queries", "warmup"), [(0, 3), (-1, 0), (1, -1)])
def test_no_queries_or_less_than_no_warm_up_is_refused(queries, warmup):
    with pytest.raises(
        ConfigError, match=re.escape(f"queries, warmup: found {queries}, {warmup}, expected at least 1")
    ):
        Sample(queries, warmup)
