"""What is kept from earlier runs is what the models give, or the answer is no; and a run may keep nothing at all."""

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import counting
import pytest
from cli import ablate, facts, put, runs, small, workshop

from ablate import cache, shelf, study
from ablate.errors import ConfigError

QUIET = ("--config-dir", "conf", "embedder=encoder", "tracking=off", "latency=off")


@pytest.fixture
def work(tmp_path, monkeypatch):
    folder = tmp_path / "отчёты и база"
    folder.mkdir()
    monkeypatch.setenv("JOURNAL", str(tmp_path / "journal"))
    workshop(folder, monkeypatch)
    put(folder / "conf", counting.CONF)
    put(
        folder / "conf/variant", {"pairs.yaml": "# @package _global_\n# ?\ndefaults:\n  - override /reranker: scorer\n"}
    )
    return folder


def run(*words):
    """One command as in a process of its own."""
    study.LINES.clear()
    cache.scratch.cache_clear()
    return ablate(*QUIET, f"dataset.dir={small(Path('data'))}", *words)


def poison(kind, key):
    """Another value with a checksum of its own: whole, and wrong."""
    (path,) = Path().glob(f"indexes/{kind}/*.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        (row,) = connection.execute("SELECT value FROM rows WHERE key = ?", (key,)).fetchone()
        value = row[:-1] + bytes([row[-1] ^ 1])
        line = value, shelf._checksum(key, value), key
        connection.execute("UPDATE rows SET value = ?, checksum = ? WHERE key = ?", line)
    return path


def keys(kind):
    (path,) = Path().glob(f"indexes/{kind}/*.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        return [key for (key,) in connection.execute("SELECT key FROM rows")]


def test_what_is_kept_is_computed_again_and_the_run_says_how_much(work):
    assert run("+variant=pairs").code == 0
    counting.forget()
    said = run("+variant=pairs", "cache.audit=true", "rerun=true")
    assert said.code == 0
    assert "ablate: baseline: 5 kept texts and 0 kept pairs computed again, equal bit for bit\n" in said.err
    assert "ablate: pairs: 5 kept texts and 2 kept pairs computed again, equal bit for bit\n" in said.err
    assert len(counting.noted("pair")) == 2


def test_the_first_run_has_nothing_to_compare(work):
    said = run("+variant=pairs", "cache.audit=true")
    assert said.code == 0
    assert "baseline: 0 kept texts and 0 kept pairs computed again" in said.err
    assert "pairs: 5 kept texts and 0 kept pairs computed again" in said.err


def test_one_command_compares_a_run_once(work):
    put(work / "conf/variant", {"words.yaml": "# @package _global_\n# ?\ndefaults:\n  - override /retriever: bm25\n"})
    said = run("-m", "+variant=pairs,words", "cache.audit=true")
    assert (said.code, said.err.count("baseline: 0 kept texts")) == (0, 1)
    again = run("-m", "+variant=pairs,words", "cache.audit=true")
    assert (again.code, again.err.count("baseline: 5 kept texts")) == (0, 1)


@pytest.mark.parametrize(("which", "recorded"), [(0, True), *((which, False) for which in range(5))])
def test_any_poisoned_vector_is_found_and_is_the_answer_no(work, which, recorded):
    assert run().code == 0
    path = poison("vectors", keys("vectors")[which])
    if not recorded:
        shutil.rmtree("experiments")
    said = run("cache.audit=true")
    assert (said.code, said.out) == (1, "")
    assert f"ablate: baseline: {path.absolute()}: found the vector of " in said.err
    assert "to differ from what the model gives now, expected equal bits" in said.err
    assert bool(runs()) == recorded, "no run is made of what is wrong"
    path.unlink()
    assert run("cache.audit=true").code == 0


def test_the_text_is_named_by_its_chunk_or_query_and_never_quoted(work):
    assert run().code == 0
    for key in keys("vectors"):
        poison("vectors", key)
    said = run("cache.audit=true").err
    assert "vector of chunk " in said
    assert "(and of 2 more of 3)" in said
    for text in ("Отпуск длится", "Remote work", "KANARIENVOGEL"):
        assert text not in said
    (path,) = Path().glob("indexes/vectors/*.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany("DELETE FROM rows WHERE key = ?", [(key,) for key in document_keys()])
    assert "vector of query q-" in run("cache.audit=true").err


def document_keys():
    from ablate.store import _key

    return [_key("document", text) for text in counting.noted("document")]


def test_a_poisoned_score_is_found_and_is_the_answer_no(work):
    assert run("+variant=pairs").code == 0
    (path,) = {poison("scores", key) for key in keys("scores")}
    said = run("+variant=pairs", "cache.audit=true")
    assert said.code == 1
    assert f"ablate: pairs: {path.absolute()}: found the score of query q-" in said.err
    assert " with chunk " in said.err
    assert facts(runs()["baseline"])["status"] == "finished"


def test_a_sweep_tells_which_variant_is_wrong_and_goes_on(work):
    put(work / "conf/variant", {"words.yaml": "# @package _global_\n# ?\ndefaults:\n  - override /retriever: bm25\n"})
    assert run("+variant=pairs").code == 0
    for key in keys("scores"):
        poison("scores", key)
    said = run("-m", "+variant=pairs,words", "cache.audit=true", "rerun=true")
    assert said.code == 1
    assert "found the score of" in said.err
    assert facts(runs()["words"])["status"] == "finished"


def test_a_broken_row_is_no_difference_because_it_is_never_used(work):
    assert run().code == 0
    (path,) = Path().glob("indexes/vectors/*.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE rows SET value = x'00' WHERE rowid = 1")
    shelf._warn_of_rows.cache_clear()
    said = run("cache.audit=true", "rerun=true")
    assert said.code == 0
    assert said.err.count("holds rows that do not match their checksum, they are computed again") == 1


def test_the_sample_is_as_large_as_wished_and_the_same_again(work):
    assert run().code == 0
    counting.forget()
    for _ in range(2):
        assert "2 kept texts and 0 kept pairs" in run("cache.audit=true", "cache.sample=2").err
    first, second = counting.noted()[:2], counting.noted()[2:]
    assert first == second
    assert len(first) == 2


def test_a_sample_of_nothing_is_refused(work):
    assert "cache.sample: found 0, expected at least 1" in run("cache.sample=0").err
    with pytest.raises(ConfigError):
        cache.Kept(True, 0)


def test_comparing_is_no_part_of_who_a_run_is(work):
    assert run("cache.audit=true").code == 0
    assert "baseline: already recorded" in run("cache.sample=7").err
    assert "baseline: already recorded" in run("cache=off").err


def test_without_a_cache_nothing_is_taken_and_nothing_is_left(work):
    assert run("+variant=pairs").code == 0
    first = runs()
    before = sorted(path.name for path in work.glob("indexes/*/*"))
    stamps = [path.stat().st_mtime_ns for path in sorted(work.glob("indexes/*/*"))]
    counting.forget()
    assert run("+variant=pairs", "cache=off", "rerun=true").code == 0
    assert len(counting.noted()) == len(set(map(str, counting.noted()))) == 5 + 4, "once, even so"
    assert sorted(path.name for path in work.glob("indexes/*/*")) == before
    assert [path.stat().st_mtime_ns for path in sorted(work.glob("indexes/*/*"))] == stamps
    for variant, record in runs().items():
        assert record.name != first[variant].name
        assert facts(record)["fingerprints"]["ranking"] == facts(first[variant])["fingerprints"]["ranking"]
        assert facts(record)["models"] == facts(first[variant])["models"]


def test_the_folder_of_no_cache_is_gone_with_the_process():
    code = "from ablate.cache import Off; from pathlib import Path\nprint(Off().folder(Path('indexes')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    folder = Path(done.stdout.strip())
    assert folder.parent == Path(tempfile.gettempdir())
    assert not folder.exists()


def test_a_model_that_is_not_kept_is_not_compared(work):
    said = ablate("--config-dir", "conf", "embedder=hash", "tracking=off", "latency=off", "cache.audit=true",
                  f"dataset.dir={small(work / 'data')}")  # fmt: skip
    assert said.code == 0
    assert "baseline: 0 kept texts and 0 kept pairs" in said.err
