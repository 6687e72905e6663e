"""Progress: on a terminal one line that is rewritten and leaves nothing behind, elsewhere hardly a word."""

import logging
import os
import pty
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import cli
import pytest
from cli import put, small, workshop

from ablate import progress
from ablate.progress import Handler, Meter, Pace, clock, counted, followed, stepped

FAKE = """
import time
from dataclasses import dataclass

import numpy as np
from fakes import HashEmbedder

from ablate.models import side_by_side


@dataclass(frozen=True)
class Slow(HashEmbedder):
    revision = "медленно"

    def read(self, texts, as_queries=False):
        return np.array(side_by_side(self.encode, texts)), np.array([len(text) for text in texts])

    def encode(self, text):
        time.sleep(0.2)
        return self.vector(text)
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    folder = tmp_path / "мои опыты"
    folder.mkdir()
    workshop(folder, monkeypatch)
    put(folder, {"own_slow.py": FAKE, "conf/embedder/slow.yaml": "_target_: own_slow.Slow\ndimension: 16\n"})
    small(folder / "данные")
    path = os.pathsep.join(str(Path(__file__).parents[1] / part) for part in ("src", "tests"))
    monkeypatch.setenv("PYTHONPATH", path)
    return folder


WORDS = ["--config-dir", "conf", "embedder=slow", "tracking=off", "dataset.dir=данные"]
COMMAND = [sys.executable, "-m", "ablate", *WORDS]


class Now:
    """A clock that stands still until it is told to go on."""

    def __init__(self, monkeypatch):
        self.seconds = 100.0
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: self.seconds))

    def pass_by(self, seconds):
        self.seconds += seconds


@pytest.fixture
def now(monkeypatch):
    return Now(monkeypatch)


class Screen:
    """A terminal of one colour, as far as carriage returns and line ends go."""

    def __init__(self):
        self.lines, self.column, self.seen = [""], 0, []

    def isatty(self):
        return True

    def flush(self):
        self.seen.append(self.lines[-1].rstrip())

    def write(self, text):
        for character in text:
            if character == "\n":
                self.lines.append("")
                self.column = 0
            elif character == "\r":
                self.column = 0
            else:
                line = self.lines[-1].ljust(self.column)
                self.lines[-1] = line[: self.column] + character + line[self.column + 1 :]
                self.column += 1


@pytest.fixture
def screen(monkeypatch):
    found = Screen()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=found))
    return found


def test_a_terminal_shows_how_far_it_is_and_the_time_left_in_one_line(screen, now):
    with Meter("encoding", "texts") as meter:
        meter.expect(5000)
        for _ in range(1234):
            now.pass_by(0.0345)
            meter.step()
    assert screen.seen[0] == "encoding 0 of 5,000 texts"
    assert "encoding 1,233 of 5,000 texts, 2:10 left" in screen.seen
    assert screen.lines == [screen.lines[0]]
    assert screen.lines[0].strip() == ""


def test_a_line_is_rewritten_ten_times_a_second_at_most(screen, now):
    with Meter("encoding", "texts") as meter:
        meter.expect(1000)
        for _ in range(1000):
            now.pass_by(0.001)
            meter.step()
    assert 8 <= len(screen.seen) <= 13


def test_loading_before_the_first_is_done_does_not_count_as_pace(now):
    meter = Meter("encoding", "texts", total=100)
    now.pass_by(60)
    meter.step()
    assert str(meter) == "encoding 1 of 100 texts"
    now.pass_by(1)
    meter.step()
    assert str(meter) == "encoding 2 of 100 texts, 1:38 left"
    assert meter.pace.measured == (1, 1.0)


def test_what_came_all_at_once_took_the_time_it_took(now):
    pace = Pace()
    assert pace.measured == (0, 0.0)
    now.pass_by(3)
    with counted(8, pace):
        now.pass_by(4)
    assert pace.measured == (8, 7.0)


def test_time_after_the_last_step_belongs_to_the_work(now):
    pace = Pace()
    with counted(3, pace):
        for _ in stepped("абв"):
            now.pass_by(1)
        now.pass_by(5)
    assert pace.measured == (2, 8.0)


@pytest.mark.parametrize("steps", [0, 2, 5, 9])
def test_whatever_is_stepped_the_work_is_done_once(steps):
    pace = Pace()
    with counted(5, pace):
        assert list(stepped(range(steps))) == list(range(steps))
    assert pace.done == 5


def test_steps_of_one_work_do_not_move_another():
    outer, inner = Pace(), Pace()
    with counted(4, outer):
        list(stepped("аб"))
        with counted(1, inner):
            list(stepped("в"))
        list(stepped("г"))
        assert (outer.done, inner.done) == (3, 1)
    list(stepped("дежз"))
    assert (outer.done, inner.done) == (4, 1)


def test_work_that_breaks_is_not_said_to_be_done():
    pace = Pace()

    def work():
        with counted(5, pace):
            list(stepped("аб"))
            raise ValueError("весы сломаны")

    with pytest.raises(ValueError, match="весы"):
        work()
    assert pace.done == 2
    list(stepped("вг"))
    assert pace.done == 2


def test_computing_is_summed_over_all_work(now):
    before = progress.computed()
    for seconds in (2, 3):
        with counted(1, Pace()):
            now.pass_by(seconds)
    assert progress.computed() - before == pytest.approx(5)


def test_a_log_line_has_a_line_of_its_own_and_the_rest_goes_on_below(screen, now):
    logger = logging.getLogger("ablate.test")
    handler = Handler(screen)
    handler.setFormatter(logging.Formatter("ablate: %(message)s"))
    logger.addHandler(handler)
    try:
        with Meter("asking", "queries") as meter:
            meter.expect(3)
            meter.step()
            logger.warning("коротко")
            now.pass_by(1)
            meter.step()
            assert screen.lines[-1].rstrip() == "asking 2 of 3 queries, 0:01 left"
    finally:
        logger.removeHandler(handler)
    assert [line.rstrip() for line in screen.lines] == ["ablate: коротко", ""]


def test_what_others_print_stands_at_the_start_of_the_line(screen):
    with Meter("asking", "queries") as meter:
        meter.expect(3)
        screen.write("warning of a library, which is longer than the line\n")
    assert screen.lines[0] == "warning of a library, which is longer than the line"


def test_a_shorter_line_leaves_nothing_of_a_longer_one(screen):
    progress.draw("a long line about nothing")
    progress.draw("a short one")
    assert screen.lines == ["a short one".ljust(len("a long line about nothing"))]
    progress.erase()
    assert screen.lines[0].strip() == ""


def test_a_line_is_never_longer_than_the_terminal(screen, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    progress.draw("0123456789" * 9)
    assert len(screen.lines[0]) == 19
    progress.erase()


def test_where_there_is_no_terminal_a_plain_line_a_minute(capsys, now, caplog):
    caplog.set_level(logging.INFO, "ablate")
    assert list(followed("asking", range(200), "queries"))[-1] == 199
    assert caplog.messages == []
    with Meter("encoding", "texts") as meter:
        meter.expect(200)
        for _ in range(200):
            now.pass_by(1)
            meter.step()
    assert caplog.messages == [
        "encoding 60 of 200 texts, 2:20 left",
        "encoding 120 of 200 texts, 1:20 left",
        "encoding 180 of 200 texts, 0:20 left",
    ]
    captured = capsys.readouterr()
    assert (captured.out, "\r" in captured.err) == ("", False)


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.2, "0:00"), (59.6, "1:00"), (130, "2:10"), (3599.7, "1:00:00"), (3730, "1:02:10")]
)
def test_the_time_left_reads_like_a_clock(seconds, told):
    assert clock(seconds) == told


def test_items_are_followed_in_order_and_those_who_stop_early_leave_nothing(screen):
    followed_items = followed("asking", ["а", "б", "в"], "queries")
    assert [next(followed_items), next(followed_items)] == ["а", "б"]
    followed_items.close()
    assert screen.lines[0].strip() == ""


def on_terminal(*words):
    """What a command wrote to its terminal, and where that left it."""
    parent, child = pty.openpty()
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=child, stdin=child) as process:
        os.close(child)
        data = b""
        while True:
            try:
                part = os.read(parent, 4096)
            except OSError:  # Linux says so when the last writer has gone
                part = b""
            if not part:
                break
            data += part
        out = process.stdout.read().decode()
    os.close(parent)
    assert process.returncode == 0, data.decode()
    screen, text = Screen(), data.decode().replace("\r\n", "\n")
    screen.write(text)
    return out, text, [line.rstrip() for line in screen.lines]


def test_a_run_on_a_terminal_shows_its_progress_within_a_slice_and_cleans_up(work):
    out, text, lines = on_terminal("latency.queries=2", "latency.warmup=0")
    assert "encoding 0 of 3 texts" in text
    assert "encoding 3 of 3 texts, 0:0" in text
    assert "asking 0 of 2 queries" in text
    assert "timing 0 of 2 queries" in text
    assert lines == ["ablate: baseline: running", ""]
    assert "encoding" not in out
    assert "\r" not in out


def test_a_run_into_a_pipe_is_quiet(work):
    done = subprocess.run([*COMMAND, "latency=off"], capture_output=True, check=True)
    assert done.stderr.decode() == "ablate: baseline: running\n"
    assert b"\r" not in done.stdout


def test_the_same_is_shown_when_nothing_is_left_to_encode_but_no_encoding(work):
    on_terminal("latency=off")
    _, text, lines = on_terminal("latency=off", "rerun=true")
    assert "encoding" not in text
    assert "asking 0 of 2 queries" in text
    assert lines == ["ablate: baseline: running", ""]


def test_every_progress_of_a_command_is_quiet_in_the_process_of_these_tests(work, monkeypatch):
    monkeypatch.syspath_prepend(work)
    said = cli.ablate(*WORDS, "latency=off")
    assert (said.code, said.err) == (0, "ablate: baseline: running\n")
