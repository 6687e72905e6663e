"""What `dataset stats` says of a dataset is counted here by hand."""

import json

import pytest
from cli import ablate, dataset, put
from hypothesis import given
from hypothesis import strategies as st

from ablate.dataset.documents import Readers
from ablate.dataset.stats import askers, spread
from ablate.types import Acl, Dataset, Document, Query, Truth, Unit

DOCUMENTS = [
    {"_id": "отпуск", "text": "Отпуск: 28 дней.", "acl": {"allow": ["public"]}},
    {"_id": "remote", "text": "Remote work и дома", "acl": {"allow": ["group:staff"], "deny": ["user:oleg"]}},
    {"_id": "пусто", "text": " ", "acl": {"allow": ["user:boss"]}},
    {"_id": "числа", "text": "14 30", "acl": {"allow": ["user:boss", "group:staff"]}},
]
QUERIES = [
    {"_id": "q1", "text": "сколько дней", "principals": ["user:anna"], "cohorts": {"lang": "ru", "kind": "a"}},
    {"_id": "q2", "text": "remote?", "principals": ["user:anna"], "cohorts": {"lang": "en", "kind": "b"}},
    {"_id": "q3", "text": "числа", "principals": ["user:boss"], "cohorts": {"lang": "ru"}},
    {"_id": "q4", "text": "зарплаты", "answerable": False, "why": "access", "cohorts": {"lang": "ru"}},
    {"_id": "q5", "text": "погода", "answerable": False, "why": "out_of_scope", "cohorts": {"lang": "ru"}},
    *(
        {"_id": f"q{n}", "text": "ещё", "answerable": False, "why": "absent", "cohorts": {"lang": "ru"}}
        for n in (6, 7, 8)
    ),
    *({"_id": f"q{n}", "text": "again", "cohorts": {"lang": "en"}} for n in (9, 10)),
]
REVIEW = {"who": "анна", "when": "2025-06-01"}
TRUTHS = [
    {
        "query_id": "q1",
        "alternatives": [[{"doc_id": "отпуск", "start": 8, "end": 15}], [{"doc_id": "числа"}, {"doc_id": "remote"}]],
        "relevant": [{"doc_id": "отпуск", "start": 0, "end": 6, "grade": 1}, {"doc_id": "числа", "grade": 0}],
        "reviewed": [
            REVIEW | {"action": "confirmed", "alternative": 1},
            REVIEW | {"action": "rejected", "alternative": 0},
        ],
    },
    {
        "query_id": "q2",
        "alternatives": [
            [
                {"doc_id": "remote", "start": 0, "end": 6, "fact": "f"},
                {"doc_id": "отпуск", "start": 0, "end": 6, "fact": "f"},
                {"doc_id": "remote", "start": 7, "end": 11},
            ]
        ],
    },
    {"query_id": "q3", "alternatives": [[{"doc_id": "числа"}]]},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = dataset(tmp_path_factory.mktemp("stats") / "данные", DOCUMENTS, QUERIES, TRUTHS)
    put(path, {"groups.jsonl": '{"_id": "group:staff", "members": ["user:anna", "user:oleg"]}\n'})
    return path


@pytest.fixture(scope="module")
def found(folder):
    said = ablate("dataset", "stats", str(folder), "--json")
    assert (said.code, said.err) == (0, "")
    return json.loads(said.out)


def row(n, least, median, p95, most):
    return {"n": n, "min": least, "median": median, "p95": p95, "max": most}


def test_lengths_are_in_study_tokens(found):
    assert found["tokens"] == row(4, 0, 3, 5, 5)  # Отпуск : 28 дней . | Remote work и дома | nothing | 14 30
    assert found["query_tokens"] == row(10, 1, 1, 2, 2)


def test_languages_are_the_scripts_of_letters(found):
    assert found["scripts"] == {"Cyrillic": 15 / 25, "Latin": 10 / 25}
    assert found["main_scripts"] == {"Cyrillic": 1, "Latin": 1, "none": 2}
    assert found["query_main_scripts"] == {"Cyrillic": 7, "Latin": 3}


def test_evidence_is_counted_per_query_and_per_alternative(found):
    assert found["alternatives"] == row(3, 1, 1, 2, 2)
    assert found["facts"] == row(4, 1, 1.5, 2, 2)
    assert found["units"] == row(3, 1, 3, 3, 3)
    assert found["units_without_span"] == 3
    assert (found["confirmed"], found["alternatives_in_all"], found["judgments"]) == (1, 4, 1)


def test_unanswerable_queries_are_counted_by_reason(found):
    assert found["unanswerable"] == {"absent": 3, "access": 1, "out_of_scope": 1}


def test_a_cohort_key_with_few_queries_a_value_is_not_averaged(found):
    rows = [(cohort["key"], cohort["value"], cohort["queries"], cohort["averaged"]) for cohort in found["cohorts"]]
    assert rows == [("kind", "a", 1, False), ("kind", "b", 1, False), ("lang", "en", 3, True), ("lang", "ru", 7, True)]


def test_each_asker_reads_documents_and_can_answer_queries(found):
    assert found["askers"] == [
        {"principals": [], "asked": 7, "documents": 1, "answerable": 1},
        {"principals": ["user:anna"], "asked": 2, "documents": 3, "answerable": 3},
        {"principals": ["user:boss"], "asked": 1, "documents": 3, "answerable": 2},
    ]


@given(st.data())
def test_who_reads_and_can_answer_what_is_the_same_as_asked_one_by_one(data):
    """Against every asker, document and query looked at by itself."""
    names = st.frozensets(st.sampled_from(["public", "group:все", "user:anna", "user:oleg"]), max_size=3)
    acls = data.draw(st.lists(st.none() | st.builds(Acl, names, names), min_size=1, max_size=6))
    documents = tuple(Document(str(number), "текст", "", {}, acl) for number, acl in enumerate(acls))
    facts = st.lists(st.sampled_from(documents).map(lambda found: Unit(found.id)), min_size=1, max_size=3).map(tuple)
    alternatives = st.lists(st.lists(facts, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple)
    truths = [Truth(str(number), data.draw(alternatives)) for number in range(3)]
    queries = tuple(Query(truth.query, "?", principals=data.draw(names)) for truth in truths)
    groups, default = {"group:все": ("user:oleg",)}, data.draw(st.sampled_from(["nobody", "public"]))
    whole = Dataset("d", "", documents, queries, {}, groups, default, {}, {}, {}, ())
    readers, public = Readers(groups, default), not any(acls)
    for asker in askers(whole, truths):
        held = readers.names(frozenset(asker.principals))
        read = {document.id for document in documents if public or readers.may(held, document.acl)}
        able = [
            any(all(any(unit.document in read for unit in fact) for fact in group) for group in truth.alternatives)
            for truth in truths
        ]
        assert (asker.documents, asker.answerable) == (len(read), sum(able))


def test_many_who_ask_are_not_each_compared_with_all_there_is(monkeypatch):
    """Two thousand people with a document and a question each."""
    people, asked = range(2000), []
    documents = tuple(Document(f"d{n}", "", "", {}, Acl(frozenset({f"user:{n}"}), frozenset())) for n in people)
    queries = tuple(Query(f"q{n}", "?", principals=frozenset({f"user:{n}"})) for n in people)
    truths = [Truth(f"q{n}", (((Unit(f"d{n}"),),),)) for n in people]
    may = Readers.may
    monkeypatch.setattr(Readers, "may", lambda *args: asked.append(args) or may(*args))
    found = askers(Dataset("d", "", documents, queries, {}, {}, "nobody", {}, {}, {}, ()), truths)
    assert {(asker.asked, asker.documents, asker.answerable) for asker in found} == {(1, 1, 1)}
    assert len(asked) == 2000


def test_names_in_acls_are_counted(found):
    names = [(group["name"], group["allows"], group["denies"]) for group in found["groups"]]
    assert names == [("group:staff", 2, 0), ("user:boss", 2, 0), ("public", 1, 0), ("user:oleg", 0, 1)]


def test_it_is_printed_as_tables(folder):
    said = ablate("dataset", "stats", str(folder))
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("4 documents, 1 documents empty, 4 documents with acl, 10 queries")
    assert "alternatives that an expert confirmed: 1 of 4 (25%)" in lines
    assert (
        "letters of documents: Cyrillic 60.0%, Latin 40.0%; documents by script: none 2, Cyrillic 1, Latin 1" in lines
    )
    assert any(line.split() == ["kind=a", "1", "too", "small", "to", "average"] for line in lines)
    assert any(line.split() == ["user:anna", "2", "3", "3"] for line in lines)


def test_without_acl_everybody_reads_everything(tmp_path):
    path = dataset(tmp_path / "данные", [{"_id": "d", "text": "текст"}], QUERIES[:1])
    assert "no document carries an ACL" in ablate("dataset", "stats", str(path)).out
    found = json.loads(ablate("dataset", "stats", str(path), "--json").out)
    assert found["askers"] == [{"principals": ["user:anna"], "asked": 1, "documents": 1, "answerable": 0}]
    assert found["facts"] == row(0, 0, 0, 0, 0)


def test_a_wrong_folder_is_refused_and_flags_are_those_of_a_dataset(folder, tmp_path):
    assert ablate("dataset", "stats", str(tmp_path / "нет")).code == 2
    assert ablate("dataset", "stats", str(folder), "--evidence", "al").code == 2


def test_p95_is_the_least_number_that_95_percent_do_not_exceed():
    assert spread(list(range(1, 101))).p95 == 95
    assert spread(list(range(1, 21))).p95 == 19
    assert spread([7]).p95 == 7
    assert spread([1, 2, 3, 10]).median == 2.5
