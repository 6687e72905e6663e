"""What is kept in indexes/, listed, verified and pruned."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import counting
import pytest
from cli import ablate, put, runs, small, workshop
from filelock import FileLock

from ablate.commands import index
from ablate.shelf import Shelf

QUIET = ("--config-dir", "conf", "embedder=encoder", "tracking=off", "latency=off")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder in which a baseline and its reranker have run."""
    folder = tmp_path_factory.mktemp("once") / "отчёты и база"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        begun(folder, patch)
        put(folder / "conf", counting.CONF)
        put(
            folder / "conf/variant",
            {"пары.yaml": "# @package _global_\n# ?\ndefaults:\n  - override /reranker: scorer\n"},
        )
        assert study(folder).code == 0
    return folder


@pytest.fixture
def work(made, tmp_path, monkeypatch):
    folder = shutil.copytree(made, tmp_path / made.name)
    return begun(folder, monkeypatch)


def begun(folder, patch):
    patch.setenv("JOURNAL", str(folder.parent / "journal"))
    return workshop(folder, patch)


def study(folder, *words):
    return ablate(*QUIET, f"dataset.dir={small(folder / 'data')}", "+variant=пары", *words)


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob("indexes/*/*"))


def kept(folder, kind):
    (path,) = folder.glob(f"indexes/{kind}/*.sqlite")
    return path


def change(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).rowcount


def test_every_file_is_listed_with_its_model_its_size_and_its_use(work):
    said = ablate("index", "list")
    assert (said.code, said.err) == (0, "")
    lines = [line.strip() for line in said.out.splitlines()]
    name = kept(work, "vectors").relative_to(work).as_posix()
    assert lines[lines.index(name) + 1] == "Encoder наша/модель 16"
    assert lines[lines.index(name) + 2].startswith("наша/модель: 5 rows, ")
    assert lines[lines.index(name) + 2].endswith(" UTC, by 2 recorded runs")
    assert "пары: 4 rows, " in said.out
    assert lines[-1].startswith("indexes: 2 files, ")


def test_the_list_is_there_as_json_too(work):
    vectors = kept(work, "vectors")
    os.utime(vectors, (1_700_000_000, 1_700_000_000))
    scores, listed = sorted(json.loads(ablate("index", "list", "--json").out), key=lambda file: file["kind"])
    assert listed == {
        "file": vectors.relative_to(work).as_posix(),
        "kind": "vectors",
        "model": "наша/модель",
        "revision": "Encoder наша/модель 16",
        "rows": 5,
        "bytes": vectors.stat().st_size,
        "last_used": "2023-11-14T22:13:20+00:00",
        "runs": 2,
    }
    assert (scores["model"], scores["rows"], scores["runs"]) == ("пары", 4, 1)


def test_an_empty_workspace_has_nothing_to_say(tmp_path, monkeypatch):
    workshop(tmp_path, monkeypatch)
    assert ablate("index", "list").out == "indexes: 0 files, 0 bytes\n"
    assert ablate("index", "verify").out == "indexes: 0 files, 0 rows, every row matches its checksum\n"
    assert ablate("index", "prune").out == "0 to remove, 0 bytes\n"
    assert not (tmp_path / "indexes").exists()


def test_what_is_whole_passes(work):
    said = ablate("index", "verify")
    assert (said.code, said.out) == (0, "indexes: 2 files, 9 rows, every row matches its checksum\n")
    assert json.loads(ablate("index", "verify", "--json").out) == {"files": 2, "rows": 9, "problems": []}


def test_a_broken_row_is_named_and_is_the_answer_no(work):
    path = kept(work, "vectors")
    key = change(path, "UPDATE rows SET value = zeroblob(72) WHERE rowid = 2") and key_of(path, 2)
    said = ablate("index", "verify")
    name = path.relative_to(work).as_posix()
    assert said.code == 1
    assert f"{name}: found 1 of 5 rows that do not match their checksum ({key}), expected none; " in said.out
    assert said.out.endswith("indexes: 2 files, 9 rows, 1 broken\n")
    told = ablate("index", "verify", "--json")
    assert told.code == 1
    assert [(problem["file"], problem["rows"]) for problem in json.loads(told.out)["problems"]] == [(name, [key])]


def key_of(path, row):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT hex(key) FROM rows WHERE rowid = ?", (row,)).fetchone()[0].lower()


def test_of_many_broken_rows_the_first_are_named(work):
    change(kept(work, "vectors"), "UPDATE rows SET value = x'00'")
    assert ", ...), expected none" in ablate("index", "verify").out


@pytest.mark.parametrize("damage", ["text", "cut", "foreign", "empty"])
def test_a_broken_file_is_named_and_is_the_answer_no_and_can_go(work, damage):
    path = kept(work, "vectors")
    if damage == "text":
        path.write_bytes(b"no database" * 100)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:1000])
    elif damage == "foreign":
        shutil.copy(kept(work, "scores"), path)
    else:
        path.write_bytes(b"")
    listed = ablate("index", "list")
    assert listed.code == 0
    said = ablate("index", "verify")
    assert said.code == 1
    assert f"{path}: found '" in said.out
    assert said.out.endswith("indexes: 2 files, 4 rows, 1 broken\n")
    pruned = ablate("index", "prune")
    assert f"{path.relative_to(work).as_posix()}: broken, " in pruned.out
    assert ablate("index", "verify").code == 0
    assert kept(work, "scores").exists()
    counting.forget()
    assert study(work, "rerun=true").code == 0
    assert (len(counting.noted("document")), counting.noted("pair")) == (3, []), "what was removed is computed again"


def test_what_recorded_runs_used_stays(work):
    before = files(work)
    said = ablate("index", "prune")
    assert (said.code, said.out) == (0, "0 to remove, 0 bytes\n")
    assert files(work) == before


def test_what_no_recorded_run_used_goes_and_is_said_first(work):
    shutil.rmtree(runs()["пары"])
    path = kept(work, "scores")
    before, size = files(work), path.stat().st_size
    line = f"{path.relative_to(work).as_posix()}: no recorded run used it, {index.size(size)}\n"
    dry = ablate("index", "prune", "--dry-run")
    assert (dry.code, dry.out) == (0, f"{line}1 to remove, {index.size(size)}\n")
    assert files(work) == before
    said = ablate("index", "prune")
    assert (said.code, said.out) == (0, dry.out)
    assert files(work) == [name for name in before if "scores" not in name], "its lock goes with it"


def test_what_was_set_aside_and_what_was_left_behind_goes(work):
    vectors = kept(work, "vectors")
    for name in (f"{vectors.name}.broken", "gone.sqlite.lock", "gone.sqlite-journal", "gone.sqlite.broken"):
        (vectors.parent / name).write_bytes(b"12345")
    before = files(work)
    (vectors.parent / "notes.txt").write_text("чужое")
    said = ablate("index", "prune")
    assert said.code == 0
    assert said.out.endswith("4 to remove, 20 bytes\n")
    assert set(before) - set(files(work)) == {
        f"indexes/vectors/{name}"
        for name in (f"{vectors.name}.broken", "gone.sqlite.lock", "gone.sqlite-journal", "gone.sqlite.broken")
    }
    assert (vectors.parent / "notes.txt").exists()
    assert Path(f"{vectors}.lock").exists()


def test_broken_rows_go_and_the_others_stay(work):
    change(kept(work, "vectors"), "UPDATE rows SET value = x'00' WHERE rowid = 2")
    assert "1 broken rows" in ablate("index", "prune").out
    assert ablate("index", "verify").out == "indexes: 2 files, 8 rows, every row matches its checksum\n"


def test_what_another_process_computes_for_stays(work):
    shutil.rmtree(runs()["пары"])
    path = kept(work, "scores")
    with FileLock(f"{path}.lock"):
        said = ablate("index", "prune")
    assert said.code == 1
    assert said.out.endswith(f"{path.relative_to(work).as_posix()}: in use, so it stays\n")
    assert path.exists()


def test_while_a_run_is_being_made_only_what_is_broken_goes(work):
    lock = next(work.glob("experiments/runs/*/.пары-*.making"))
    shutil.rmtree(runs()["пары"])
    Path(f"{kept(work, 'vectors')}.broken").touch()
    with FileLock(lock):
        said = ablate("index", "prune")
    assert said.code == 0
    assert said.out.startswith("a run is being made")
    assert "1 to remove" in said.out
    assert kept(work, "scores").exists()
    assert "no recorded run used it" in ablate("index", "prune").out


def test_a_file_that_cannot_be_removed_is_said(work, monkeypatch):
    shutil.rmtree(runs()["пары"])

    def refuse(path, missing_ok=False):
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refuse)
    said = ablate("index", "prune")
    assert said.code == 1
    assert said.out.endswith("in use, so it stays\n")


def test_hashes_are_shown_short_and_names_whole():
    assert index.readable(f"Model sha256:{'0123456789abcdef' * 4} code={'ab' * 10} torch==2.13.0 deadbeef") == (
        "Model sha256:0123456789ab code=abababababab torch==2.13.0 deadbeef"
    )


@pytest.mark.parametrize(("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1400, "1.4 kB"), (2.5e10, "25.0 GB")])
def test_sizes_are_told_as_people_read_them(count, text):
    assert index.size(count) == text


def test_help_says_what_each_word_does(capsys):
    with pytest.raises(SystemExit) as end:
        index.main(["--help"])
    assert end.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    for word, text in index.SAYS.items():
        assert word in told
        assert text in told
    with pytest.raises(SystemExit) as end:
        index.main([])
    assert end.value.code == 2


def test_a_file_of_a_model_without_name_or_revision_is_listed(tmp_path, monkeypatch):
    workshop(tmp_path, monkeypatch)
    Shelf.of(tmp_path / "indexes", "vectors", "", "").write({b"k" * 16: b"value"})
    assert "a model without a name: 1 rows" in ablate("index", "list").out
