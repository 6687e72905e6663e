"""Every rule that protects a number is checked when a folder is read, and the message says where and what."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.dataset import Folder
from ablate.dataset.manifest import hashed
from ablate.dataset.truth import united
from ablate.errors import ConfigError, DatasetError
from ablate.types import Span, Unit

SHARED = Path(__file__).parents[1] / ".." / "shared"
TEXT = "Возврат оформляют за 14 дней. Исключение: билеты на концерт."
PLAIN = Folder(".", "test", "none", 1, "nobody", True, None)

Row = dict[str, Any]


def write(folder: Path, **files: Any) -> Path:
    """A small valid folder, in which each file is replaced by the given rows (or text, or bytes; None removes it)."""
    rows: dict[str, Any] = {
        "corpus": [
            {"_id": "правила", "title": "Возврат", "text": TEXT},
            {"_id": "d2", "text": "другой текст о доставке"},
        ],
        "queries": [{"_id": "q1", "text": "Когда вернуть?"}],
        "ground_truth": [{"query_id": "q1", "alternatives": [[{"doc_id": "правила", "start": 0, "end": 29}]]}],
    }
    for name, content in (rows | files).items():
        path = folder / {"contract": "contract.yaml", "qrels": "qrels/test.tsv"}.get(name, f"{name}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content)
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def read(folder: Path, **settings: Any) -> Any:
    return replace(PLAIN, dir=str(folder), **settings).read()


def refused(folder: Path, **settings: Any) -> str:
    with pytest.raises(DatasetError) as error:
        read(folder, **settings)
    return str(error.value)


def alternatives(*groups: Any, query: Row | None = None, **rest: Any) -> Row:
    """The files of a data set whose only query has these alternatives."""
    return {
        "queries": [{"_id": "q1", "text": "Когда вернуть?"} | (query or {})],
        "ground_truth": [{"query_id": "q1", "alternatives": list(groups)}],
    } | rest


def span(start: int, end: int, document: str = "правила", **rest: Any) -> Row:
    return {"doc_id": document, "start": start, "end": end} | rest


# What is read


def test_all_keys_of_the_contract_are_read(tmp_path):
    query = {
        "_id": "q1", "text": "Когда?", "principals": ["user:анна"], "filter": {"продукт": "облако"}, "answerable": True,
        "cohorts": {"язык": "ru"}, "intent": "lookup", "as_of": "2025-06-01", "subject": {"продукт": "облако"},
        "compares": ["продукт"], "critical": True, "cluster": "c", "case": "INC-7", "metadata": {"n": 1},
    }  # fmt: skip
    document = {
        "_id": "d", "title": "Т", "text": TEXT, "metadata": {"продукт": "облако", "valid_from": "2025-01-01"},
        "acl": {"allow": ["group:все"], "deny": ["user:пётр"]},
    }  # fmt: skip
    truth = {
        "query_id": "q1", "alternatives": [[{"doc_id": "d", "spans": [[0, 7], [21, 28]], "fact": "f"}]],
        "relevant": [span(0, 7, "d", grade=2)], "complete": True, "facts": {"f": "срок"}, "answer": {"text": "14 дней"},
        "reviewed": [{"who": "user:анна", "when": "2025-06-01", "action": "confirmed", "alternative": 0}],
    }  # fmt: skip
    groups = [{"_id": "group:все", "members": ["group:отдел"]}, {"_id": "group:отдел", "members": ["user:анна"]}]
    dataset = read(write(tmp_path, corpus=[document], queries=[query], ground_truth=[truth], groups=groups))
    found = dataset.queries[0]
    assert found.principals == {"user:анна"}
    assert (found.intent, found.as_of, found.compares, found.critical) == ("lookup", "2025-06-01", ("продукт",), True)
    assert (found.cluster, found.case, found.cohorts, found.metadata) == ("c", "INC-7", {"язык": "ru"}, {"n": 1})
    assert dataset.documents[0].acl.deny == {"user:пётр"}
    truth = dataset.truths["q1"]
    assert truth.alternatives == (((Unit("d", (Span(0, 7), Span(21, 28))),),),)
    assert [(j.unit, j.grade) for j in truth.judged] == [(Unit("d", (Span(0, 7),)), 2)]
    assert truth.complete
    assert truth.confirmed == {0}
    assert dataset.groups == {"group:все": ("group:отдел",), "group:отдел": ("user:анна",)}


def test_a_plain_beir_folder_needs_nothing_more(tmp_path):
    queries = [{"_id": "q1", "text": "a", "metadata": {}}, {"_id": "q2", "text": "b"}]
    qrels = "query-id\tcorpus-id\tscore\nq1\tправила\t2\nq1\td2\t0\n"
    dataset = read(write(tmp_path, queries=queries, ground_truth=None, qrels=qrels))
    assert [query.id for query in dataset.queries] == ["q1"]
    assert dataset.queries[0].answerable
    assert dataset.counts["queries_unjudged"] == 1
    assert dataset.truths["q1"].documents == {"правила": 2, "d2": 0}
    assert dataset.truths["q1"].alternatives == ()
    assert dataset.name == tmp_path.name


def test_with_ground_truth_every_query_stays(tmp_path):
    queries = [{"_id": "q1", "text": "a"}, {"_id": "q2", "text": "b"}]
    dataset = read(write(tmp_path, queries=queries))
    assert list(dataset.truths) == ["q1", "q2"]
    assert dataset.counts["queries_unjudged"] == 0


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("none", ()), ("any", (((Unit("a"),),), ((Unit("b"),),))), ("all", (((Unit("a"),), (Unit("b"),)),))],
)
def test_evidence_says_what_the_graded_documents_of_a_query_mean(tmp_path, mode, expected):
    corpus = [{"_id": i, "text": "текст"} for i in "bca"]
    qrels = "q1\tc\t1\nq1\ta\t2\nq1\tb\t3\n"
    folder = write(tmp_path, corpus=corpus, ground_truth=None, qrels=qrels)
    assert read(folder, evidence=mode, sufficient_grade=2).truths["q1"].alternatives == expected


def test_evidence_fills_only_queries_that_lack_the_key(tmp_path):
    queries = [
        {"_id": "q1", "text": "a"},
        {"_id": "q2", "text": "b"},
        {"_id": "q3", "text": "c", "answerable": False, "why": "absent"},
    ]
    truth = [
        {"query_id": "q1", "alternatives": [[span(0, 29)]]},
        {"query_id": "q2", "relevant": [{"doc_id": "d2", "grade": 1}]},
        {"query_id": "q3", "relevant": [{"doc_id": "d2", "grade": 1}]},
    ]
    found = read(write(tmp_path, queries=queries, ground_truth=truth), evidence="any").truths
    assert found["q1"].alternatives == (((Unit("правила", (Span(0, 29),)),),),)
    assert found["q2"].alternatives == (((Unit("d2"),),),)
    assert found["q3"].alternatives == ()


def test_grades_of_documents_come_from_whole_entries_then_qrels_then_alternatives(tmp_path):
    truth = [{"query_id": "q1", "alternatives": [[span(0, 29)]], "relevant": [span(0, 7, grade=3)]}]
    folder = write(tmp_path, ground_truth=truth)
    assert read(folder).truths["q1"].documents == {"правила": 1}
    write(folder, ground_truth=truth, qrels="q1\td2\t2\n")
    assert read(folder).truths["q1"].documents == {"d2": 2}
    write(folder, ground_truth=truth, qrels="query-id\tcorpus-id\tscore\n")
    assert read(folder).truths["q1"].documents == {}
    truth[0]["relevant"].append({"doc_id": "d2", "grade": 0})
    write(folder, ground_truth=truth)
    assert read(folder).truths["q1"].documents == {"d2": 0}
    assert [judgment.grade for judgment in read(folder).truths["q1"].judged] == [3]


def test_query_and_document_ids_are_separate_namespaces(tmp_path):
    corpus = [{"_id": str(i), "text": f"текст {i}"} for i in range(10)]
    qrels = "".join(f"0\t{i}\t1\n" for i in range(10))
    folder = write(tmp_path, corpus=corpus, queries=[{"_id": "0", "text": "?"}], ground_truth=None, qrels=qrels)
    assert set(read(folder).truths["0"].documents) == set("0123456789")


def test_titles_can_be_left_unread(tmp_path):
    folder = write(tmp_path)
    assert [document.title for document in read(folder).documents] == ["Возврат", ""]
    assert [document.title for document in read(folder, title=False).documents] == ["", ""]


def test_a_folder_is_found_in_the_home_in_a_package_and_beside(tmp_path, monkeypatch):
    folder = write(tmp_path / "отчёты и база")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert replace(PLAIN, dir="~/отчёты и база").read().folder == str(folder)
    monkeypatch.chdir(tmp_path)
    assert replace(PLAIN, dir="отчёты и база").read().folder == str(folder)
    write(tmp_path / "пакет" / "данные")
    (tmp_path / "пакет" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert replace(PLAIN, dir="pkg://пакет/данные").read().name == "данные"


@pytest.mark.parametrize("dir", ["", "нет такой", "~nobody/x", "pkg://нет_пакета/x", "pkg://ablate/нет", "pkg://"])
def test_a_missing_folder_is_named(dir):
    with pytest.raises(DatasetError, match=r"check dataset\.dir"):
        replace(PLAIN, dir=dir).read()


@pytest.mark.parametrize("name", ["corpus", "queries"])
def test_a_missing_file_is_named(tmp_path, name):
    assert f"found no {name}.jsonl" in refused(write(tmp_path, **{name: None}))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"evidence": "al"}, 'did you mean "all"'),
        ({"acl_default": "everybody"}, "nobody, public"),
        ({"sufficient_grade": 0}, "1 or more"),
        ({"split": "a/b"}, "qrels/"),
        ({"split": ""}, "qrels/"),
    ],
)
def test_settings_out_of_range_are_refused(setting, words):
    with pytest.raises(ConfigError, match=words) as error:
        replace(PLAIN, **setting)
    assert str(error.value).startswith(f"{next(iter(setting))}: ")


# Lines


def test_bom_crlf_blank_lines_and_line_separators_inside_a_text_are_no_trouble(tmp_path):
    text = "a\u2028b\x85c"
    line = json.dumps({"_id": "d", "text": text}, ensure_ascii=False).encode()
    folder = write(
        tmp_path,
        corpus=b"\xef\xbb\xbf" + line + b"\r\n\r\n  \n",
        ground_truth=None,
        qrels=b"\xef\xbb\xbfq1\td\t1\r\n\r\n",
    )
    assert read(folder).documents[0].text == text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"_id": "d", "text": "\xff"}', "0xff that is not UTF-8"),
        (b'{"_id": "d", "text": "a"', "no JSON from column 25 (Expecting ',' delimiter)"),
        (b'[{"_id": "d", "text": "a"}]', "a list"),
        (b'{"_id": "d", "text": "a", "metadata": {"n": NaN}}', "no finite number"),
        (b'{"_id": "d", "text": "a", "metadata": {"n": 1e999}}', "no finite number"),
        (b'{"_id": "d", "text": "a", "text": "b"}', 'the key "text" twice'),
        (b'{"_id": "d", "text": "a", "metadata": {"n": 1, "n": 1}}', 'the key "n" twice'),
        (rb'{"_id": "d", "text": "\ud83d"}', "half of a surrogate pair"),
        (b'{"_id": "d", "text": "a"} {"_id": "e", "text": "a"}', "expected one object"),
        (b"[" * 100_000, "expected plain JSON"),
        (b'{"_id": "d", "txt": "a"}', 'key "txt": found an unknown key'),
        (b'{"_id": "d", "text": "a", "titel": "b"}', 'did you mean "title"?'),
        (b'{"_id": "d"}', 'key "text": found nothing, expected a string'),
        (b'{"text": "a"}', 'key "_id": found nothing, expected a string'),
        (b'{"_id": 5, "text": "a"}', 'key "_id": found a number (5), expected a string; write it in quotes'),
        (b'{"_id": "", "text": "a"}', 'key "_id": found an empty string'),
        (b'{"_id": "d", "text": 5}', 'key "text": found a number (5), expected a string'),
        (b'{"_id": "d", "text": null}', 'key "text": found null, expected a string'),
        (b'{"_id": "d", "text": "a", "metadata": []}', 'key "metadata": found a list, expected an object'),
        (b'{"_id": "d", "text": "a", "acl": {"allow": "public"}}', 'acl.allow": found a string ("public")'),
        (b'{"_id": "d", "text": "a", "acl": {"allow": [7]}}', 'key "acl.allow[0]": found a number (7)'),
        (b'{"_id": "d", "text": "a", "acl": {"allowed": []}}', 'key "acl.allowed": found an unknown key'),
        (b'{"_id": "d1", "text": "a"}', 'found "d1" a second time (first in corpus.jsonl:1)'),
        (b'{"_id": "d", "text": "a", "metadata": {"valid_from": "1.6.2025"}}', 'key "metadata.valid_from"'),
        (b'{"_id": "d", "text": "a", "metadata": {"valid_from": 2025}}', 'key "metadata.valid_from"'),
        (b'{"_id": "d", "text": "a", "metadata": {"valid_from": "2025-01-01", "valid_to": "2025-01-01"}}', "valid_to"),
    ],
)  # fmt: skip
def test_a_bad_line_of_the_corpus_is_named(tmp_path, line, words):
    message = refused(write(tmp_path, corpus=b'{"_id": "d1", "text": "a"}\n\n' + line + b"\n"))
    assert message.startswith("corpus.jsonl:3: ")
    assert words in message


def test_a_surrogate_pair_is_a_character(tmp_path):
    folder = write(tmp_path, corpus=rb'{"_id": "d", "text": "\ud83d\ude00"}', ground_truth=None, qrels="q1\td\t1")
    assert read(folder).documents[0].text == "😀"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"_id": 1, "text": "a"}, 'key "_id": found a number (1)'),
        ({"_id": "q", "text": " \n"}, 'key "text": found no words'),
        ({"_id": "q", "text": "a", "principal": ["user:a"]}, 'did you mean "principals"?'),
        ({"_id": "q", "text": "a", "principals": "user:a"}, 'key "principals": found a string'),
        ({"_id": "q", "text": "a", "filter": [1]}, 'key "filter": found a list'),
        ({"_id": "q", "text": "a", "cohorts": {"год": 2025}}, 'key "cohorts.год": found a number (2025)'),
        ({"_id": "q", "text": "a", "answerable": "false"}, 'key "answerable": found a string ("false")'),
        ({"_id": "q", "text": "a", "answerable": 0}, 'key "answerable": found a number (0), expected true or false'),
        ({"_id": "q", "text": "a", "answerable": False}, 'key "why": found null, expected one of absent, access'),
        ({"_id": "q", "text": "a", "answerable": False, "why": "unknown"}, 'key "why"'),
        ({"_id": "q", "text": "a", "why": "absent"}, "on an answerable query"),
        ({"_id": "q", "text": "a", "as_of": "вчера"}, 'key "as_of"'),
        ({"_id": "q", "text": "a", "critical": 1}, 'key "critical"'),
        ({"_id": "q", "text": "a", "subject": {"продукт": "облако"}}, 'the subject field "продукт" that no'),
        ({"_id": "q", "text": "a", "compares": ["продукт"]}, 'the subject field "продукт"'),
        ({"_id": "q1", "text": "a"}, 'found "q1" a second time (first in queries.jsonl:1)'),
    ],
)  # fmt: skip
def test_a_bad_line_of_queries_is_named(tmp_path, query, words):
    message = refused(write(tmp_path, queries=[{"_id": "q1", "text": "a"}, query]))
    assert message.startswith("queries.jsonl:2: ")
    assert words in message


def test_null_is_a_missing_value(tmp_path):
    queries = [{"_id": "q1", "text": "a", "why": None, "cohorts": {"k": None}, "principals": None}]
    corpus = [{"_id": "правила", "text": TEXT, "title": None, "acl": None, "metadata": {"valid_to": None}}]
    dataset = read(write(tmp_path, queries=queries, corpus=corpus))
    assert dataset.queries[0].cohorts == {}
    assert dataset.documents[0].acl is None


@pytest.mark.parametrize("name", ["corpus", "queries"])
def test_an_empty_file_is_refused(tmp_path, name):
    assert refused(write(tmp_path, **{name: b"\n"})).startswith(f"{name}.jsonl: found no ")


# Units and alternatives


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ({"doc_id": "правило"}, 'did you mean "правила"?'),
        ({"doc_id": 5}, 'key "alternatives[0][0].doc_id": found a number (5)'),
        ({"id": "правила"}, 'key "alternatives[0][0].id": found an unknown key'),
        ("правила", 'key "alternatives[0][0]": found a string ("правила"), expected an object'),
        (span(-1, 5), "[-1:5]"),
        (span(5, 5), "[5:5]"),
        (span(0, 61), "end <= 60"),
        (span(True, 5), 'start": found true, expected a whole number'),
        (span(0.0, 5), 'start": found a number (0.0), expected a whole number'),
        ({"doc_id": "правила", "start": 0}, 'end": found nothing'),
        ({"doc_id": "правила", "start": None, "end": None}, 'start": found null'),
        (span(0, 7, quote="возврат"), 'found "возврат" where text[0:7] is "Возврат"'),
        (span(1, 8, quote="Возврат"), "the quote stands at [0:7]"),
        ({"doc_id": "правила", "quote": "обмен"}, 'found a string ("обмен"), expected a part'),
        ({"doc_id": "правила", "quote": TEXT[:20].replace(" ", "\u00a0")}, "as it has other white space or another"),
        (span(0, 20, quote=TEXT[:20].replace(" ", "\n")), "copy it again, as it has other white space or another"),
        ({"doc_id": "правила", "quote": "о"}, "at 1 and at 8 of the document"),
        ({"doc_id": "правила", "quote": ""}, "expected a part"),
        (span(28, 30), 'without any letter or digit (". ")'),
        ({"doc_id": "правила", "spans": []}, 'spans": found an empty list'),
        ({"doc_id": "правила", "spans": [[0, 7, 9]]}, 'spans[0]": found [0, 7, 9]'),
        ({"doc_id": "правила", "spans": [[0, 7], [3, 99]]}, 'spans[1]": found the span [3:99]'),
        ({"doc_id": "правила", "spans": [[0, 7]], "quote": "Возврат"}, '"quote" beside "spans"'),
        (span(0, 7, fact=""), 'fact": found an empty string'),
        (span(0, 7, fact=None), 'fact": found null'),
        (span(0, 7, grade=1), 'grade": found an unknown key'),
    ],
)  # fmt: skip
def test_a_bad_unit_is_named(tmp_path, unit, words):
    message = refused(write(tmp_path, **alternatives([unit])))
    assert message.startswith("ground_truth.jsonl:1: ")
    assert words in message


def test_a_quote_alone_is_found_where_it_stands(tmp_path):
    quote = "билеты на концерт"
    found = read(write(tmp_path, **alternatives([{"doc_id": "правила", "quote": quote}]))).truths["q1"]
    ((unit,),) = found.alternatives[0]
    assert TEXT[slice(*unit.spans[0])] == quote


def test_an_overlapping_second_occurrence_counts(tmp_path):
    corpus = [{"_id": "d", "text": "анана"}]
    assert "at 0 and at 2" in refused(write(tmp_path, corpus=corpus, **alternatives([{"doc_id": "d", "quote": "ана"}])))


def test_spans_are_counted_in_characters_not_bytes_or_utf16_units(tmp_path):
    corpus = [{"_id": "d", "text": "😀é срок 14 дней"}]
    read(write(tmp_path, corpus=corpus, **alternatives([span(3, 15, "d", quote="срок 14 дней")])))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)).map(lambda pair: Span(pair[0], sum(pair)))))
def test_united_spans_cover_the_same_characters_and_stand_apart(spans):
    found = united(spans)
    covered = [at for start, end in found for at in range(start, end)]
    assert covered == sorted({at for start, end in spans for at in range(start, end)})
    assert all(left.end < right.start for left, right in pairwise(found))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([], 'key "alternatives": found an empty list on an answerable query'),
        ([[]], 'key "alternatives[0]": found an empty group'),
        ([span(0, 7)], 'key "alternatives[0]": found an object, expected a list'),
        ([[span(0, 7)], [span(0, 7), span(8, 17)]], 'key "alternatives[1]": found all units of alternatives[0]'),
        ([[span(0, 7), span(8, 17)], [span(8, 17)]], 'key "alternatives[0]": found all units of alternatives[1]'),
        ([[span(0, 7)], [span(0, 7, quote="Возврат")]], 'key "alternatives[1]": found all units of alternatives[0]'),
        ([[{"doc_id": "d2"}], [{"doc_id": "d2"}]], 'key "alternatives[1]"'),
        ([[span(0, 7, fact="a"), span(8, 17, fact="a")], [span(8, 17), span(0, 7)]], 'key "alternatives[1]"'),
        ([[{"doc_id": "правила", "spans": [[0, 4], [4, 7]]}], [span(0, 7)]], 'key "alternatives[1]"'),
    ],
)
def test_alternatives_are_present_and_minimal(tmp_path, groups, words):
    message = refused(write(tmp_path, **alternatives(*groups)))
    assert message.startswith("ground_truth.jsonl:1: ")
    assert words in message


def test_alternatives_may_share_a_unit(tmp_path):
    a, b, c = span(0, 20), span(0, 29), span(30, 60)
    assert len(read(write(tmp_path, **alternatives([a, b], [a, c]))).truths["q1"].alternatives) == 2


@pytest.mark.parametrize(
    ("group", "facts"),
    [
        ([("a", None), ("b", None)], [["a"], ["b"]]),
        ([("a", "f"), ("b", "f"), ("c", None)], [["a", "b"], ["c"]]),
        ([("a", None), ("a", None)], [["a"]]),
        ([("a", "f"), ("a", "f"), ("b", "f")], [["a", "b"]]),
        ([("a", "f"), ("a", None)], [["a"]]),
        ([("a", "f"), ("b", "f"), ("b", "g"), ("c", "g")], [["a", "b"], ["b", "c"]]),
    ],
)
def test_units_of_one_fact_are_interchangeable_and_equal_ones_merged(tmp_path, group, facts):
    corpus = [{"_id": i, "text": "текст"} for i in "abc"]
    units = [{"doc_id": document} | ({"fact": fact} if fact else {}) for document, fact in group]
    (found,) = read(write(tmp_path, corpus=corpus, **alternatives(units))).truths["q1"].alternatives
    assert [[unit.document for unit in fact] for fact in found] == facts


def test_odd_spans_are_one_warning_a_kind(tmp_path):
    queries = [{"_id": f"q{i}", "text": "?"} for i in range(30)]
    truth = [{"query_id": f"q{i}", "alternatives": [[span(0, 7)], [span(0, 29), span(30, 60)]]} for i in range(30)]
    warnings = read(write(tmp_path, queries=queries, ground_truth=truth)).warnings
    first = '(first ground_truth.jsonl:1, query "q0", "правила"[0:7])'
    assert warnings == (
        f"spans under 20 characters: 30 {first}",
        f"spans inside another span of the same query: 30 {first}",
    )


# Judgments


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"doc_id": "d2"}, 'key "relevant[0].grade": found nothing'),
        ({"doc_id": "d2", "grade": -1}, "expected 0 or more"),
        ({"doc_id": "d2", "grade": 1.0}, "expected a whole number"),
        ({"doc_id": "d2", "grade": True}, "expected a whole number"),
        ({"doc_id": "d3", "grade": 1}, 'key "relevant[0].doc_id"'),
    ],
)
def test_a_bad_judgment_is_named(tmp_path, entry, words):
    assert words in refused(write(tmp_path, ground_truth=[{"query_id": "q1", "relevant": [entry]}]))


def test_one_unit_has_one_grade(tmp_path):
    twice = [{"doc_id": "d2", "grade": 1}, {"doc_id": "d2", "grade": 1}]
    folder = write(tmp_path, ground_truth=[{"query_id": "q1", "relevant": twice}])
    assert read(folder).truths["q1"].documents == {"d2": 1}
    twice[1]["grade"] = 2
    write(folder, ground_truth=[{"query_id": "q1", "relevant": twice}])
    assert "expected 1 as before" in refused(folder)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"query_id": "q1"}, {"query_id": "q1"}], 'ground_truth.jsonl:2: key "query_id": found "q1" a second time'),
        ([{"query_id": "q7"}], 'found a string ("q7"), expected an id of queries.jsonl'),
        ([{"query_id": "q1", "alternative": []}], 'did you mean "alternatives"?'),
        ([{"query_id": "q1", "complete": "yes"}], 'key "complete"'),
        ([{"query_id": "q1", "facts": []}], 'key "facts"'),
    ],
)
def test_a_bad_line_of_ground_truth_is_named(tmp_path, rows, words):
    assert words in refused(write(tmp_path, ground_truth=rows))


def test_an_unanswerable_query_has_no_evidence(tmp_path):
    query = {"answerable": False, "why": "absent"}
    assert read(write(tmp_path, **alternatives(query=query))).truths["q1"].alternatives == ()
    assert "evidence for an unanswerable query" in refused(write(tmp_path, **alternatives([span(0, 29)], query=query)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("query-id\tcorpus-id\tscore\nq1\tправила\t1\n", {"правила": 1}),
        ("q1\tправила\t1\n", {"правила": 1}),
        ("q1 0 правила 2\n", {"правила": 2}),
        ("q1\tQ0\tправила\t2\n", {"правила": 2}),
        ("q1\tправила\t-1\n", {"правила": 0}),
        ("q1\tправила\t1\nq1\tправила\t1\n", {"правила": 1}),
    ],
)
def test_qrels_are_read_in_both_forms(tmp_path, text, expected):
    assert read(write(tmp_path, ground_truth=None, qrels=text)).truths["q1"].documents == expected


def test_ids_in_qrels_may_hold_spaces(tmp_path):
    corpus, qrels = [{"_id": "мой файл 1", "text": "a"}], "q1\tмой файл 1\t1\n"
    assert read(write(tmp_path, corpus=corpus, ground_truth=None, qrels=qrels)).truths["q1"].documents == {
        "мой файл 1": 1
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("q1\td2", "found 2 columns"),
        ("q1\td2\thigh", 'the grade "high"'),
        ("q1\td2\t1.0", 'the grade "1.0"'),
        ("q1\td2\t1_0", 'the grade "1_0"'),
        ("q9\td2\t1", 'the query "q9"'),
        ("q1\tправило\t1", 'did you mean "правила"?'),
        ("q1\tправила\t2", "found grade 2"),
        ("query-id\tcorpus-id\tscore", 'the grade "score"'),
    ],
)
def test_a_bad_line_of_qrels_is_named(tmp_path, line, words):
    message = refused(write(tmp_path, ground_truth=None, qrels=f"q1\tправила\t1\n{line}\n"))
    assert message.startswith("qrels/test.tsv:2: ")
    assert words in message


def test_a_split_that_does_not_exist_is_refused_with_those_that_do(tmp_path):
    folder = write(tmp_path, qrels="q1\td2\t1\n")
    assert "no such file but test," in refused(folder, split="tset")
    (folder / "qrels" / "test.tsv").unlink()
    assert read(folder).truths["q1"].documents == {"правила": 1}
    (folder / "ground_truth.jsonl").unlink()
    assert "neither qrels nor ground_truth.jsonl" in refused(folder)


# Access


def acl(allow: list[str] | None = None, deny: list[str] | None = None) -> Row:
    return {"acl": {key: names for key, names in (("allow", allow), ("deny", deny)) if names is not None}}


@pytest.mark.parametrize(
    ("document", "settings", "allowed"),
    [
        (acl(["user:анна"]), {}, True),
        (acl(["public"]), {}, True),
        (acl(["group:все"]), {}, True),
        (acl(["role:мир"]), {}, True),
        (acl(["user:пётр"]), {}, False),
        (acl(["user:анна"], ["user:анна"]), {}, False),
        (acl(["user:анна"], ["group:все"]), {}, False),
        (acl(["public"], ["public"]), {}, False),
        (acl([]), {}, False),
        (acl(), {}, False),
        (acl(deny=["user:пётр"]), {}, False),
        ({}, {}, False),
        ({}, {"acl_default": "public"}, True),
    ],
)
def test_an_answerable_query_has_evidence_that_its_principals_may_read(tmp_path, document, settings, allowed):
    corpus = [{"_id": "d", "text": TEXT} | document, {"_id": "e", "text": "прочее"} | acl(["user:пётр"])]
    groups = [
        {"_id": "group:все", "members": ["group:отдел"]},
        {"_id": "group:отдел", "members": ["user:анна"]},
        {"_id": "role:мир", "members": ["public"]},
    ]
    files = alternatives([{"doc_id": "d"}], query={"principals": ["user:анна"]}, corpus=corpus, groups=groups)
    folder = write(tmp_path, **files)
    if allowed:
        read(folder, **settings)
    else:
        message = refused(folder, **settings)
        assert message.startswith(
            'ground_truth.jsonl:1: query "q1": found no alternative without a document that user:анна'
        )
        assert 'why "access"' in message


def test_one_readable_alternative_is_enough(tmp_path):
    corpus = [{"_id": "a", "text": "x"} | acl(["public"]), {"_id": "b", "text": "y"} | acl([])]
    a, b = {"doc_id": "a"}, {"doc_id": "b"}
    read(write(tmp_path, corpus=corpus, **alternatives([a], [b])))
    read(write(tmp_path, corpus=corpus, **alternatives([a | {"fact": "f"}, b | {"fact": "f"}])))
    assert "public may not read" in refused(write(tmp_path, corpus=corpus, **alternatives([a, b])))


def test_without_any_acl_everything_is_public(tmp_path):
    read(write(tmp_path, **alternatives([{"doc_id": "d2"}], query={"principals": []})))


def test_documents_without_acl_beside_others_are_counted_in_a_warning(tmp_path):
    corpus = [{"_id": "правила", "text": TEXT} | acl(["public"]), {"_id": "d2", "text": "x"}]
    dataset = read(write(tmp_path, corpus=corpus))
    assert any("without ACL, read by nobody" in warning and '"d2"' in warning for warning in dataset.warnings)
    assert dataset.counts["documents_with_acl"] == 1


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([{"_id": "a", "members": ["b"]}, {"_id": "b", "members": ["a"]}], "groups that contain each other"),
        ([{"_id": "a", "members": ["a"]}], "groups that contain each other"),
        ([{"_id": "a", "members": []}, {"_id": "a", "members": []}], "groups.jsonl:2"),
        ([{"_id": "a", "members": "b"}], "groups.jsonl:1"),
        ([{"_id": "a", "member": []}], 'did you mean "members"?'),
    ],
)
def test_bad_groups_are_refused(tmp_path, groups, words):
    assert words in refused(write(tmp_path, groups=groups))


# Validity


def dated(*intervals: tuple[str | None, str | None], **metadata: Any) -> list[Row]:
    return [
        {"_id": f"d{i}", "text": "текст", "metadata": {"valid_from": start, "valid_to": end} | metadata}
        for i, (start, end) in enumerate(intervals)
    ]


@pytest.mark.parametrize(
    ("as_of", "valid"),
    [("2024-12-31", False), ("2025-01-01", True), ("2025-06-30T23:59", True), ("2025-07-01", False)],
)
def test_evidence_is_valid_on_as_of_from_the_first_moment_to_before_the_last(tmp_path, as_of, valid):
    files = alternatives([{"doc_id": "d0"}], query={"as_of": as_of}, corpus=dated(("2025-01-01", "2025-07-01")))
    folder = write(tmp_path, **files)
    if valid:
        read(folder)
    else:
        assert f'"d0" valid in [2025-01-01, 2025-07-01), expected evidence valid on {as_of}' in refused(folder)


@pytest.mark.parametrize(
    ("intervals", "valid"),
    [
        ([(None, "2025-01-01"), ("2024-12-31", None)], True),
        ([(None, "2025-01-01"), ("2025-01-01", None)], False),
        ([(None, None), ("2025-01-01", None)], True),
        ([(None, "2025-01-01T03:00+03:00"), ("2024-12-31T23:59Z", None)], True),
        ([(None, "2025-01-01T03:00+03:00"), ("2025-01-01T00:00Z", None)], False),
    ],
)
def test_without_as_of_all_evidence_shares_one_moment(tmp_path, intervals, valid):
    corpus, query = dated(*intervals), {"compares": ["valid_from"]}
    for groups in ([[{"doc_id": "d0"}, {"doc_id": "d1"}]], [[{"doc_id": "d0"}], [{"doc_id": "d1"}]]):
        folder = write(tmp_path, **alternatives(*groups, corpus=corpus))
        if valid:
            read(folder)
        else:
            assert "evidence that shares one moment" in refused(folder)
        read(write(tmp_path, **alternatives(*groups, corpus=corpus, query=query)))


@pytest.mark.parametrize(
    ("value", "subject", "match"),
    [
        ("облако", "облако", True),
        ("сервер", "облако", False),
        (["сервер", "облако"], "облако", True),
        (["сервер"], "облако", False),
        ("облако", ["облако", "сервер"], True),
        (1, True, False),
        (1, 1.0, True),
        (None, "облако", True),
    ],
)
def test_evidence_is_about_the_subject_of_the_query(tmp_path, value, subject, match):
    corpus = dated((None, None), продукт=value)
    query = {"subject": {"продукт": subject}}
    folder = write(tmp_path, **alternatives([{"doc_id": "d0"}], query=query, corpus=corpus))
    if match:
        read(folder)
    else:
        assert 'document "d0" with продукт' in refused(folder)
    query["compares"] = ["продукт"]
    read(write(tmp_path, **alternatives([{"doc_id": "d0"}], query=query, corpus=corpus)))


# Manifest, contract, strays


def freeze(folder: Path, **changes: str) -> None:
    manifest = {
        "version": "1",
        "files": hashed(folder) | changes,
        "counts": {},
        "created": "x",
        "parent": None,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def test_a_frozen_folder_is_read_and_a_changed_file_is_named(tmp_path):
    folder = write(tmp_path, qrels="q1\td2\t1\n")
    freeze(folder)
    read(folder)
    (folder / "qrels" / "test.tsv").write_text("q1\td2\t2\n")
    assert "(changed: qrels/test.tsv)" in refused(folder)


def test_the_manifest_holds_plain_sha256_of_the_bytes(tmp_path):
    folder = write(tmp_path)
    assert hashed(folder)["corpus.jsonl"] == hashlib.sha256((folder / "corpus.jsonl").read_bytes()).hexdigest()


def test_files_that_left_or_joined_a_frozen_folder_are_named_together_with_what_changed(tmp_path):
    folder = write(tmp_path)
    freeze(folder)
    write(folder, groups=[{"_id": "g", "members": []}])
    assert "(added: groups.jsonl)" in refused(folder)
    freeze(folder)
    (folder / "groups.jsonl").unlink()
    write(folder, queries=[{"_id": "q1", "text": "Иначе?"}], contract="use_case: x")
    message = refused(folder)
    assert 'frozen as version "1" (changed: queries.jsonl; missing: groups.jsonl; added: contract.yaml)' in message


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"files": []}', '{"files": {"corpus.jsonl": 5}}', '{"file": {}}']
)
def test_a_bad_manifest_is_refused(tmp_path, text):
    folder = write(tmp_path)
    (folder / "manifest.json").write_text(text)
    assert refused(folder).startswith("manifest.json: ")


def test_the_contract_is_read_and_its_critical_queries_are_marked(tmp_path):
    text = (
        "use_case: возвраты\nintents: [lookup]\ncritical: {queries: [q1], cohorts: [язык=ru]}\nprices: {tokens: 0.2}\n"
    )
    dataset = read(write(tmp_path, contract=text))
    assert dataset.contract["use_case"] == "возвраты"
    assert dataset.queries[0].critical


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("usecase: x", 'did you mean "use_case"?'),
        ("- a", "a list"),
        ("a: [", "expected a YAML mapping"),
        ("просто слова", "unknown key"),
        ("use_case: a\nuse_case: b", "duplicate"),
        ("critical: {queries: [q7]}", 'found "q7"'),
        ("critical: {query: [q1]}", 'did you mean "queries"?'),
        ("prices: {tokens: .nan}", "correct the file"),
    ],
)
def test_a_bad_contract_is_refused(tmp_path, text, words):
    message = refused(write(tmp_path, contract=text))
    assert message.startswith("contract.yaml")
    assert words in message


def test_a_misspelt_file_is_not_overlooked(tmp_path):
    folder = write(tmp_path)
    (folder / "group.jsonl").touch()
    (folder / "заметки.json").touch()
    assert read(folder).warnings == ('group.jsonl: this file is not read; did you mean "groups.jsonl"?',)


# Fingerprints

CORPUS = [
    {
        "_id": "d",
        "text": TEXT,
        "title": "Т",
        "metadata": {"a": 1, "b": 2},
        "acl": {"allow": ["public", "x"], "deny": []},
    },
    {"_id": "e", "text": "прочее", "acl": {"allow": ["public"]}},
]
QUERIES = [{"_id": "q1", "text": "a", "principals": ["x", "y"]}, {"_id": "q2", "text": "b"}]
A, B = span(0, 7, "d"), span(8, 17, "d")
TRUTH = [{"query_id": "q1", "alternatives": [[A, B], [{"doc_id": "e"}]]}, {"query_id": "q2"}]


def prints(
    folder: Path, corpus: Any = CORPUS, queries: Any = QUERIES, truth: Any = TRUTH, **rest: Any
) -> dict[str, str]:
    settings = {key: rest.pop(key) for key in ("acl_default", "title", "evidence") if key in rest}
    return read(write(folder, corpus=corpus, queries=queries, ground_truth=truth, **rest), **settings).fingerprints


def test_order_and_form_of_a_file_do_not_move_a_fingerprint(tmp_path):
    first = CORPUS[0] | {"metadata": {"b": 2, "a": 1}, "acl": {"deny": [], "allow": ["x", "public"]}}
    queries = [QUERIES[1], {"principals": ["y", "x"], "text": "a", "_id": "q1", "answerable": True}]
    quoted = {"doc_id": "d", "quote": "оформляют"}
    truth = [{"query_id": "q1", "alternatives": [[{"doc_id": "e"}], [quoted, A, A]]}]
    assert prints(tmp_path) == prints(tmp_path, [CORPUS[1], first], queries, truth)


@pytest.mark.parametrize("key", ["text", "title", "metadata", "acl"])
def test_any_content_of_a_document_moves_the_corpus_alone(tmp_path, key):
    other = {"text": TEXT + "!", "title": "Н", "metadata": {"a": 2}, "acl": {"allow": ["public"]}}[key]
    before, after = prints(tmp_path), prints(tmp_path, [CORPUS[0] | {key: other}, CORPUS[1]])
    assert before["corpus"] != after["corpus"]
    assert before["ground_truth"] == after["ground_truth"]


@pytest.mark.parametrize(
    "change",
    [
        {"queries": [QUERIES[0] | {"text": "c"}, QUERIES[1]]},
        {"queries": [QUERIES[0] | {"principals": ["x"]}, QUERIES[1]]},
        {"queries": [QUERIES[0] | {"filter": {"a": 1}}, QUERIES[1]]},
        {"queries": [QUERIES[0] | {"cohorts": {"k": "v"}}, QUERIES[1]]},
        {"truth": [{"query_id": "q1", "alternatives": [[A, B]]}]},
        {"truth": [{"query_id": "q1", "alternatives": [[A | {"fact": "f"}, B | {"fact": "f"}], [{"doc_id": "e"}]]}]},
        {"truth": [*TRUTH[:1], {"query_id": "q2", "complete": True}]},
        {"truth": [*TRUTH[:1], {"query_id": "q2", "relevant": [{"doc_id": "e", "grade": 0}]}]},
        {"truth": [*TRUTH[:1], {"query_id": "q2", "relevant": [A | {"grade": 1}]}]},
        {"groups": [{"_id": "g", "members": ["x"]}]},
        {"contract": "use_case: x"},
        {"acl_default": "public"},
        {"qrels": "q2\te\t1\n"},
    ],
)
def test_whatever_moves_a_number_moves_the_ground_truth_alone(tmp_path, change):
    before = prints(tmp_path)
    after = prints(tmp_path, **change)
    assert before["corpus"] == after["corpus"]
    assert before["ground_truth"] != after["ground_truth"]


def test_the_grade_of_a_judged_span_moves_the_ground_truth(tmp_path):
    judged = [[{"query_id": "q1", "relevant": [A | {"grade": grade}]}] for grade in (1, 2)]
    assert prints(tmp_path, truth=judged[0])["ground_truth"] != prints(tmp_path, truth=judged[1])["ground_truth"]


def test_the_guide_is_hashed_with_the_ground_truth(tmp_path):
    before = prints(tmp_path)
    (tmp_path / "GUIDE.md").write_text("Как размечать", encoding="utf-8")
    assert prints(tmp_path)["ground_truth"] != before["ground_truth"]


def test_titles_that_are_not_read_move_the_corpus(tmp_path):
    assert prints(tmp_path)["corpus"] != prints(tmp_path, title=False)["corpus"]


# Public collections


@pytest.mark.parametrize(
    "folder", sorted([*(SHARED / "data").glob("*/"), *(SHARED / "cases").glob("*/")]), ids=lambda path: path.name
)
def test_public_collections_are_read_in_seconds(folder):
    started = time.perf_counter()
    dataset = read(folder)
    assert time.perf_counter() - started < 10
    assert len(dataset.truths) == len(dataset.queries) > 0
    assert dataset.counts["queries_unjudged"] == 0
