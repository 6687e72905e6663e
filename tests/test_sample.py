"""The sample data set keeps what its README promises."""

import json
import re
from collections import Counter, defaultdict
from importlib.resources import files

import pytest
from rank_bm25 import BM25Okapi

from ablate.dataset import Folder

SAMPLE = files("ablate") / "data" / "sample"
WHY = {"absent", "access", "out_of_scope", "conflict"}


def lines(name):
    return [json.loads(line) for line in (SAMPLE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def sample():
    return Folder(
        dir="pkg://ablate/data/sample",
        split="test",
        evidence="none",
        sufficient_grade=1,
        acl_default="nobody",
        title=True,
        subset=None,
    ).read()


@pytest.fixture(scope="module")
def texts():
    return {row["_id"]: row["text"] for row in lines("corpus")}


@pytest.fixture(scope="module")
def queries():
    return {row["_id"]: row for row in lines("queries")}


@pytest.fixture(scope="module")
def truths():
    return {row["query_id"]: row for row in lines("ground_truth")}


def units(truth):
    return [unit for alternative in truth.get("alternatives", []) for unit in alternative]


def sources(truth):
    return {unit["doc_id"] for unit in units(truth)}


def of_kind(queries, kind):
    return {id: query for id, query in queries.items() if query["cohorts"]["kind"] == kind}


def readable(principals):
    """The documents these principals may read, worked out here from the two files."""
    names = {"public", *principals}
    for _ in lines("groups"):
        names |= {group["_id"] for group in lines("groups") if names & set(group["members"])}
    return {
        row["_id"]
        for row in lines("corpus")
        if names & set(row["acl"]["allow"]) and not names & set(row["acl"].get("deny", []))
    }


def words(text):
    return re.findall(r"[\w-]+", text.lower())


def test_it_is_read_whole_and_without_a_warning(sample):
    assert len(sample.documents) == len(lines("corpus")) == 20
    assert len(sample.queries) == len(lines("queries")) == 43
    assert {truth.query for truth in sample.truths.values() if truth.alternatives} == {
        query.id for query in sample.queries if query.answerable
    }
    assert sample.warnings == ()


def test_every_cohort_value_is_large_enough_to_be_averaged(sample):
    kinds = Counter(query.cohorts["kind"] for query in sample.queries)
    languages = Counter(query.cohorts["lang"] for query in sample.queries)

    assert set(kinds) == {
        "single", "several", "alternatives", "identifier", "paraphrase", "filter", "access", "unanswerable"
    }  # fmt: skip
    assert kinds.total() / len(kinds) >= 5
    assert min(languages.values()) >= 5


def test_a_quarter_is_russian(sample):
    assert sum(document.metadata["lang"] == "ru" for document in sample.documents) >= 5
    assert sum(query.cohorts["lang"] == "ru" for query in sample.queries) / len(sample.queries) >= 0.25


def test_every_quote_stands_where_its_offsets_say(texts, truths):
    given = [unit for truth in truths.values() for unit in units(truth) + truth.get("relevant", []) if "start" in unit]

    assert len(given) > 40
    for unit in given:
        assert texts[unit["doc_id"]][unit["start"] : unit["end"]] == unit["quote"]
        assert len(unit["quote"]) >= 20


def test_every_document_has_an_acl_and_all_sorts_of_readers_occur():
    acls = [row["acl"] for row in lines("corpus")]

    assert {name for acl in acls for name in acl["allow"]} == {
        "public", "group:support", "group:finance", "group:staff", "user:anna"
    }  # fmt: skip
    assert [acl["deny"] for acl in acls if "deny" in acl] == [["user:vera"]]


def test_every_reason_for_having_no_answer_occurs(sample):
    silent = [query for query in sample.queries if not query.answerable]

    assert {query.why for query in silent} == WHY
    assert not any(sample.truths[query.id].alternatives for query in silent if query.id in sample.truths)


def test_an_answerable_question_can_be_answered_from_what_its_principals_may_read(queries, truths):
    for id, query in queries.items():
        if query["answerable"]:
            may_read = readable(query["principals"])
            sets = [{unit["doc_id"] for unit in alternative} for alternative in truths[id]["alternatives"]]
            assert any(documents <= may_read for documents in sets), id


def test_the_same_question_is_answerable_for_one_principal_and_hidden_from_another(queries, truths):
    by_text = defaultdict(list)
    for id, query in of_kind(queries, "access").items():
        by_text[query["text"]].append((id, query))

    assert len(by_text) >= 3
    for pair in by_text.values():
        (allowed, _), (_, hidden) = sorted(pair, key=lambda item: not item[1]["answerable"])
        assert hidden["why"] == "access"
        assert not sources(truths[allowed]) & readable(hidden["principals"])


def test_one_is_hidden_by_a_deny_that_beats_the_allow_of_a_group(queries, truths):
    hidden = queries["access-goodwill-trainee"]["principals"]

    assert "goodwill-refunds" not in readable(hidden)
    assert "counter-handbook" in readable(hidden)


def test_an_unrestricted_search_would_show_forbidden_documents(texts, queries):
    titles = {row["_id"]: row["title"] for row in lines("corpus")}
    ids = list(texts)
    bm25 = BM25Okapi([words(f"{titles[id]}\n{texts[id]}") for id in ids])

    exposed = set()
    for id, query in queries.items():
        scores = bm25.get_scores(words(query["text"]))
        first = sorted(range(len(ids)), key=lambda at: -scores[at])[:5]
        if {ids[at] for at in first if scores[at] > 0} - readable(query["principals"]):
            exposed.add(id)

    assert {id for id, query in queries.items() if query.get("why") == "access"} <= exposed
    assert len(exposed) >= 15


def test_a_question_that_the_filter_settles_is_asked_word_for_word_of_another_source(queries, truths):
    asked = of_kind(queries, "filter")
    by_text = defaultdict(list)
    for id, query in asked.items():
        assert query["filter"]
        by_text[query["text"]].append(sources(truths[id]))

    for evidence in by_text.values():
        assert len(evidence) > 1
        assert not set.intersection(*evidence)


def test_documents_told_apart_by_their_metadata_differ_only_in_numbers(texts):
    number = r"\d+(\.\d+)?|three|four|five|[BC]X"
    for one, other in (("deposit-north", "deposit-south"), ("brakes-city", "brakes-cargo")):
        assert texts[one] != texts[other]
        assert re.sub(number, "#", texts[one]) == re.sub(number, "#", texts[other])


@pytest.mark.parametrize(
    ("identifier", "holder"),
    [
        ("E-417", "error-codes"),
        ("E-471", "battery-care"),
        ("CX-429", "parts-and-labour"),
        ("CX-492", "brakes-cargo"),
        ("R-08", "спорные-списания"),
    ],
)
def test_an_identifier_stands_in_one_document_and_is_asked_for(identifier, holder, texts, queries, truths):
    assert [id for id, text in texts.items() if identifier in text] == [holder]
    asked = [id for id, query in of_kind(queries, "identifier").items() if identifier in query["text"]]
    assert [sources(truths[id]) for id in asked] == [{holder}]


def test_the_old_rule_and_the_new_one_meet_and_do_not_overlap(sample):
    dates = {document.id: document.metadata for document in sample.documents}

    assert dates["cancellation-2023"]["valid_to"] == dates["cancellation-2025"]["valid_from"]
    asked = {query.as_of: query.id for query in sample.queries if query.cohorts["kind"] == "filter" and query.as_of}
    held = {
        day: unit.document for day, id in asked.items() for fact in sample.truths[id].alternatives[0] for unit in fact
    }
    assert held == {"2024-09-15": "cancellation-2023", "2025-09-15": "cancellation-2025"}


def test_the_full_guide_or_rule_and_exception(sample):
    for id in ("alternatives-broken-chain", "alternatives-own-chain"):
        alternatives = sample.truths[id].alternatives
        documents = sorted(sorted(unit.document for fact in facts for unit in fact) for facts in alternatives)
        assert documents == [["counter-handbook"], ["late-return-exception", "late-return-rule"]]


def test_one_fact_has_interchangeable_sources_in_two_languages(sample):
    ((fact,),) = sample.truths["alternatives-warranty-ru"].alternatives

    assert {unit.document for unit in fact} == {"гарантия-на-ремонт", "parts-and-labour"}


def test_two_facts_come_from_one_document_and_from_two(sample):
    several = [sample.truths[query.id] for query in sample.queries if query.cohorts["kind"] == "several"]

    assert all(len(truth.alternatives) == 1 and len(truth.alternatives[0]) == 2 for truth in several)
    assert {len({unit.document for fact in truth.alternatives[0] for unit in fact}) for truth in several} >= {1, 2}


def test_a_paraphrase_shares_few_words_with_its_evidence(queries, truths):
    for id, query in of_kind(queries, "paraphrase").items():
        evidence = {word for unit in units(truths[id]) for word in words(unit["quote"])}
        asked = set(words(query["text"]))
        assert len(asked & evidence) / len(asked) < 0.4, id


def test_graded_judgments_reach_from_not_relevant_to_best(sample):
    graded = [truth for truth in sample.truths.values() if truth.judged]

    assert len(graded) >= 4
    assert {judgment.grade for truth in graded for judgment in truth.judged} == {0, 1, 2, 3}
    assert any(truth.complete for truth in graded)
