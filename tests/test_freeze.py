"""A frozen version is exact, is never written again, and says where it comes from and what it leaves out."""

import hashlib
import json
import re
import shutil
from datetime import UTC, datetime

import pytest
from cli import ablate, everything, facts, put, quiet, runs, small, workshop

from ablate.dataset import Folder

CONFIRMED = [{"who": "user:мария", "when": "2026-02-01", "action": "confirmed", "alternative": 0}]


@pytest.fixture
def folder(tmp_path):
    return small(tmp_path / "наши данные")


def freeze(folder, *flags):
    return ablate("dataset", "freeze", str(folder), *flags)


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))


def read(folder):
    return Folder(str(folder), "test", "none", 1, "nobody", True, None).read()


def refused(folder, *flags, code=2):
    """What is said; the folder is as it was."""
    before = {name: (folder / name).read_bytes() for name in everything(folder) if (folder / name).is_file()}
    said = freeze(folder, *flags)
    assert (said.code, said.out) == (code, "")
    assert said.err.count("\n") == 1
    assert "found" in said.err
    assert "expected" in said.err
    assert before == {name: (folder / name).read_bytes() for name in everything(folder) if (folder / name).is_file()}
    return said.err


def copy(folder, name):
    """A copy to work on, as the messages advise: without the manifest."""
    made = folder.parent / name
    shutil.copytree(folder, made, ignore=shutil.ignore_patterns("manifest.json"))
    return made


def truths(folder):
    return [json.loads(line) for line in (folder / "ground_truth.jsonl").read_text(encoding="utf-8").splitlines()]


def put_truths(folder, rows):
    put(folder, {"ground_truth.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)})


def unresolved(folder, query="q-отпуск", **changes):
    """Mark the evidence of one query as `dataset diff --fix` does, or break it."""
    rows = truths(folder)
    row = next(row for row in rows if row["query_id"] == query)
    row["alternatives"][0][0] |= changes or {"unresolved": "changed: отпуск 30 дней"}
    put_truths(folder, rows)


# What a manifest says


def test_the_manifest_names_every_file_by_its_sha256_and_the_dataset_by_its_counts(folder):
    put(folder, {"qrels/test.tsv": "q-remote\tremote\t1\n", "GUIDE.md": "как", "notes.txt": "не часть"})
    before = datetime.now(UTC).replace(microsecond=0)
    said = freeze(folder)
    assert (said.code, said.err) == (0, "")
    assert "frozen as version 1, 5 files" in said.out
    found = manifest(folder)
    assert list(found) == ["version", "files", "counts", "created", "parent"]
    names = ["corpus.jsonl", "queries.jsonl", "ground_truth.jsonl", "GUIDE.md", "qrels/test.tsv"]
    assert found["files"] == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    assert found["counts"]["documents"] == 3
    assert found["counts"]["queries"] == 2
    assert (found["version"], found["parent"]) == ("1", None)
    assert before <= datetime.fromisoformat(found["created"]) <= datetime.now(UTC)
    assert read(folder).counts == found["counts"]


def test_freezing_again_says_so_and_changes_nothing(folder):
    freeze(folder)
    before = (folder / "manifest.json").read_bytes()
    said = freeze(folder)
    assert said.code == 0
    assert "already frozen as version 1" in said.out
    assert (folder / "manifest.json").read_bytes() == before


def test_a_frozen_version_cannot_be_frozen_under_another_name(folder):
    freeze(folder, "--version", "весна")
    assert 'found version "весна"' in refused(folder, "--version", "лето")
    assert freeze(folder, "--version", "весна").code == 0


def test_a_frozen_folder_that_changed_is_refused_with_every_file_and_the_way_on(folder):
    put(folder, {"GUIDE.md": "как", "groups.jsonl": ""})
    freeze(folder)
    put(folder, {"GUIDE.md": "иначе", "qrels/dev.tsv": "", "contract.yaml": "use_case: x"})
    (folder / "groups.jsonl").unlink()
    with (folder / "queries.jsonl").open("a") as file:
        file.write("\n")
    message = refused(folder)
    assert "(changed: GUIDE.md, queries.jsonl; missing: groups.jsonl; added: contract.yaml, qrels/dev.tsv)" in message
    assert "a copy of the folder without its manifest.json" in message
    assert "--parent" in message


def test_a_folder_that_is_not_valid_is_not_frozen(folder):
    put(folder, {"queries.jsonl": '{"_id": "q", "text": ""}\n'})
    assert "queries.jsonl:1" in refused(folder)
    assert "found no such folder" in ablate("dataset", "freeze", str(folder / "нет")).err


def test_a_file_that_changes_while_it_is_read_is_not_frozen(folder, monkeypatch):
    def meanwhile(self, *rest):
        with (folder / "corpus.jsonl").open("a") as file:
            file.write("\n")
        return whole(self, *rest)

    whole = Folder.read
    monkeypatch.setattr(Folder, "read", meanwhile)
    said = freeze(folder)
    assert said.code == 2
    assert "changed while they were read" in said.err
    assert "manifest.json" not in everything(folder)


def test_the_flags_of_a_dataset_are_obeyed(folder):
    (folder / "ground_truth.jsonl").unlink()
    put(folder, {"qrels/dev.tsv": "q-remote\tremote\t1\n"})
    assert "qrels/test.tsv" in refused(folder)
    assert freeze(folder, "--split", "dev", "--evidence", "all").code == 0
    assert manifest(folder)["counts"]["queries_with_alternatives"] == 1


def test_what_reading_warns_of_is_told(folder):
    put(folder, {"contract.yaml": "critical: {queries: [q-отпуск]}\n", "group.jsonl": ""})
    unresolved(folder)
    said = freeze(folder, "--exclude-unresolved")
    assert "warning: group.jsonl: this file is not read" in said.out
    assert said.out.count("q-отпуск") == 2  # a critical query that is left out guards nothing


def test_a_manifest_that_cannot_be_written_is_a_sentence(folder, monkeypatch):
    def full(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    assert "manifest.json: found No space left on device, expected a place to write to" in refused(folder)
    assert not [name for name in everything(folder) if name.startswith(".")]


def test_all_that_is_wrong_is_told_and_not_only_the_first(folder):
    put_truths(folder, [row | {"answers": []} for row in truths(folder)])
    assert re.search(r"\(and \d more", refused(folder))


# Versions and parents


def test_a_version_follows_its_parent(folder):
    freeze(folder, "--version", "9")
    child = copy(folder, "десятая")
    said = freeze(child, "--parent", str(folder))
    assert "frozen as version 10, made from 9" in said.out
    assert (manifest(child)["version"], manifest(child)["parent"]) == ("10", "9")
    assert "made from 9" in freeze(child).out


@pytest.mark.parametrize(
    ("parent", "version"), [("7", "8"), ("весна", "1"), ("1.5", "1"), ("²", "1"), ("007", "8"), ("-3", "1")]
)
def test_a_parent_may_be_a_version(folder, parent, version):
    assert freeze(folder, f"--parent={parent}").code == 0
    assert (manifest(folder)["version"], manifest(folder)["parent"]) == (version, parent)


def test_a_parent_that_cannot_be_one_is_refused(folder):
    other = small(folder.parent / "другая")
    assert "expected a frozen folder" in refused(folder, "--parent", str(other))
    assert "found no such folder" in refused(folder, "--parent", str(other / "нет"))
    freeze(other, "--version", "весна")
    assert "the parent's own" in refused(folder, "--parent", str(other), "--version", "весна")
    assert "expected a name" in refused(folder, "--version", " ")
    assert "expected a name" in refused(folder, "--version", "a\nb")
    put(other, {"queries.jsonl": ""})
    assert "(changed: queries.jsonl)" in refused(folder, "--parent", str(other))


# Review


def test_an_alternative_that_no_expert_confirmed_is_the_answer_no(folder):
    message = refused(folder, "--require-review", code=1)
    assert 'of 2 queries ("q-отпуск", "q-remote")' in message
    rows = truths(folder)
    rows[0]["reviewed"] = [*CONFIRMED, {**CONFIRMED[0], "action": "judged"}]
    rows[1]["reviewed"] = [{**CONFIRMED[0], "action": "rejected"}, {**CONFIRMED[0], "action": "judged"}]
    put_truths(folder, rows)
    assert 'of 1 query ("q-remote")' in refused(folder, "--require-review", code=1)
    rows[1]["reviewed"] = CONFIRMED
    rows[1]["alternatives"].append([{"doc_id": "remote", "quote": "Remote work is allowed"}])
    put_truths(folder, rows)
    assert 'of 1 query ("q-remote")' in refused(folder, "--require-review", code=1)
    rows[1]["reviewed"] = [*CONFIRMED, {**CONFIRMED[0], "action": "added", "alternative": 1}]
    put_truths(folder, rows)
    assert freeze(folder, "--require-review").code == 0


def test_a_frozen_folder_is_asked_for_its_review_too(folder):
    freeze(folder)
    assert "no expert has confirmed" in refused(folder, "--require-review", code=1)


def test_many_queries_are_counted_and_the_first_are_named(folder):
    row, queries = (
        truths(folder)[0],
        [{"_id": f"q{n:02}", "text": "отпуск", "principals": ["user:anna"]} for n in range(25)],
    )
    put(folder, {"queries.jsonl": "".join(json.dumps(query) + "\n" for query in queries)})
    put_truths(folder, [row | {"query_id": query["_id"]} for query in queries])
    message = refused(folder, "--require-review", code=1)
    assert "25 queries" in message
    assert '"q19", …)' in message
    assert "q20" not in message


def test_evidence_that_only_qrels_imply_is_confirmed_by_nobody(folder):
    (folder / "ground_truth.jsonl").unlink()
    put(folder, {"qrels/test.tsv": "q-remote\tremote\t1\n"})
    assert '"q-remote"' in refused(folder, "--require-review", "--evidence", "all", code=1)
    assert freeze(folder, "--require-review").code == 0  # no alternatives, so nothing to confirm


# What does not fit


def test_unresolved_evidence_is_refused_or_left_out(folder):
    unresolved(folder)
    message = refused(folder)
    assert 'ground_truth.jsonl:1: key "alternatives[0][0]": found evidence of 1 query ("q-отпуск")' in message
    assert "--exclude-unresolved" in message
    said = freeze(folder, "--exclude-unresolved")
    assert said.code == 0
    assert manifest(folder)["excluded"] == {"q-отпуск": "unresolved, changed: отпуск 30 дней"}
    assert 'left out: query "q-отпуск": unresolved, changed: отпуск 30 дней' in said.out
    found = read(folder)
    assert [query.id for query in found.queries] == ["q-remote"]
    assert list(found.truths) == ["q-remote"]
    assert found.counts["queries_excluded"] == 1
    assert found.counts == manifest(folder)["counts"]
    assert freeze(folder).code == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"doc_id": "нет"}, 'document "нет" is not in the corpus'),
        ({"quote": "30 календарных дней"}, 'the quote "30 календарных дней" occurs 0 times'),
        ({"quote": "н"}, "times in its document"),
        ({"start": 0, "end": 10}, '"28 календарных дней в году" is "Отпуск дли" in its document'),
        ({"start": 30, "end": 99}, "a span reaches beyond the 41 characters"),
    ],
)
def test_evidence_that_does_not_fit_its_document_is_left_out_for_another_reason(folder, changes, words):
    unresolved(folder, **changes)
    assert words in refused(folder).replace("\\", "")
    assert freeze(folder, "--exclude-unresolved").code == 0
    reason = manifest(folder)["excluded"]["q-отпуск"]
    assert reason.startswith("does not fit, ")
    assert words in reason
    assert len(read(folder).queries) == 1


def test_a_judged_passage_that_does_not_fit_counts_too(folder):
    rows = truths(folder)
    rows[1]["relevant"] = [{"doc_id": "remote", "spans": [[0, 6], [7, 700]], "grade": 1}]
    put_truths(folder, rows)
    assert freeze(folder, "--exclude-unresolved").code == 0
    assert list(manifest(folder)["excluded"]) == ["q-remote"]


@pytest.mark.parametrize("changes", [{"start": "0"}, {"doc": "remote"}, {"quote": 5}, {"start": 5, "end": 2.5}])
def test_what_is_wrong_in_other_ways_is_never_left_out(folder, changes):
    unresolved(folder, **changes)
    assert "ground_truth.jsonl:1" in refused(folder, "--exclude-unresolved")


def test_the_first_reason_of_a_query_is_told(folder):
    unresolved(folder)
    rows = truths(folder)
    rows[0]["relevant"] = [{"doc_id": "нет", "grade": 1}]
    put_truths(folder, rows)
    freeze(folder, "--exclude-unresolved")
    assert manifest(folder)["excluded"] == {"q-отпуск": "unresolved, changed: отпуск 30 дней"}


def test_one_query_must_be_left(folder):
    unresolved(folder)
    unresolved(folder, "q-remote")
    assert "found no query but 2 that are excluded, expected at least one" in refused(folder, "--exclude-unresolved")


def test_without_anything_unresolved_nothing_is_excluded(folder):
    freeze(folder, "--exclude-unresolved")
    assert "excluded" not in manifest(folder)


# Runs


def test_a_run_records_the_version_and_refuses_changed_files_by_name(tmp_path, monkeypatch):
    place = workshop(tmp_path, monkeypatch)
    folder = small(place / "данные")
    own = f"dataset.dir={folder}"
    assert quiet(own).code == 0
    assert facts(runs()["baseline"])["dataset_version"] is None
    freeze(folder, "--version", "весна")
    assert quiet(own, "rerun=true").code == 0
    assert facts(runs()["baseline"])["dataset_version"] == "весна"
    put(folder, {"contract.yaml": "use_case: x", "ground_truth.jsonl": ""})
    said = quiet(own)
    assert said.code == 2
    assert "(changed: ground_truth.jsonl; added: contract.yaml)" in said.err
