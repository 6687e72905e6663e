"""The demo data set keeps what its README promises."""

import json
import re
from collections import Counter, defaultdict
from importlib.resources import files
from itertools import combinations

import pytest
import yaml

from ablate.dataset import Folder
from ablate.filter import Declared
from ablate.tokens import terms

DEMO = files("ablate") / "data" / "demo"
STOP = """
    a about after again all am an and any are as at be because been before being but by can could did do does doing
    for from get got had has have he her here him his how i if in into is it its just may me might more most my no nor
    not now of off on once only or other our ours out over own same she should so some still such than that the their
    them then there these they this those to too under until up us very was we were what when where which while who
    whom whose why will with would yes you your yours d ll m re s t ve
    а без более бы был была были было быть в вам вас ведь вот все всё вы где да даже для до его ее её если есть ещё еще
    же за здесь и из или им их к как какая какие какое какой когда кто ли мне мой моя мы на над нам нас наш наша не него
    нее неё нет ни но ну о об он она они от по под при про с сам свой себя со так там то того тоже только том ты у уже
    чего чем что чтобы эта эти это этого этот я
"""
LANGUAGES = ("english", "russian")
TODAY = "2026-02-01"


def stems(text):
    """The stems of a text's words, stop words aside."""
    return set(terms(text, LANGUAGES)) - set(terms(STOP, LANGUAGES))


def lines(name):
    return [json.loads(line) for line in (DEMO / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def demo():
    return Folder(
        dir="pkg://ablate/data/demo",
        split="test",
        evidence="none",
        sufficient_grade=1,
        acl_default="nobody",
        title=True,
        subset=None,
    ).read()


@pytest.fixture(scope="module")
def corpus():
    return {row["_id"]: row for row in lines("corpus")}


@pytest.fixture(scope="module")
def queries():
    return {row["_id"]: row for row in lines("queries")}


@pytest.fixture(scope="module")
def truths():
    return {row["query_id"]: row for row in lines("ground_truth")}


@pytest.fixture(scope="module")
def agreed():
    return yaml.safe_load((DEMO / "contract.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def readme():
    return (DEMO / "README.md").read_text(encoding="utf-8")


def units(truth):
    return [unit for alternative in truth.get("alternatives", []) for unit in alternative]


def sources(truth):
    return {unit["doc_id"] for unit in units(truth)}


def facts(alternative):
    """The documents that state each fact."""
    found = defaultdict(set)
    for unit in alternative:
        found[unit["fact"]].add(unit["doc_id"])
    return found


def of_kind(queries, kind):
    return {id: query for id, query in queries.items() if query["cohorts"]["kind"] == kind}


def readable(corpus, principals):
    """The documents these principals may read, worked out here from the two files."""
    groups = lines("groups")
    names = {"public", *principals}
    for _ in groups:
        names |= {group["_id"] for group in groups if names & set(group["members"])}
    return {
        key for key, row in corpus.items() if names & set(row["acl"]["allow"]) and not names & set(row["acl"]["deny"])
    }


def test_it_is_read_whole_and_without_a_warning(demo, readme):
    assert demo.warnings == ()
    assert len(demo.documents) == 90
    assert len(demo.queries) >= 180
    assert f"and {len(demo.queries)} questions" in readme
    assert demo.counts["queries_with_alternatives"] == sum(query.answerable for query in demo.queries)
    assert demo.counts["queries_by_document"] == 0


def test_documents_have_200_to_1500_words_and_do_not_repeat_their_title(corpus):
    for key, row in corpus.items():
        assert 200 <= len(re.findall(r"\w+", f"{row['title']} {row['text']}")) <= 1500, key
        assert not row["text"].startswith("# "), key


def test_documents_are_sorted_and_every_one_has_rights_dates_and_a_language(corpus):
    assert list(corpus) == sorted(corpus)
    for key, row in corpus.items():
        assert row["acl"]["allow"], key
        assert {"doc_type", "authority", "lang", "valid_from"} <= row["metadata"].keys(), key
        assert (row["metadata"]["lang"] == "ru") == bool(re.search("[а-яё]{3} [а-яё]{3}", row["text"])), key


def test_documents_repeat_each_other_only_where_they_are_versions_of_one_rule(corpus):
    runs = {}
    for key, row in corpus.items():
        words = re.findall(r"\w+", f"{row['title']} {row['text']}".lower())
        runs[key] = set(zip(*(words[start:] for start in range(8)), strict=False))
    for one, other in combinations(corpus, 2):
        families = {corpus[key]["metadata"].get("family", key) for key in (one, other)}
        share = len(runs[one] & runs[other]) / min(len(runs[one]), len(runs[other]))
        assert share < 0.15 or len(families) == 1, (one, other, share)


def test_every_version_gives_way_to_the_next_on_the_day_that_one_begins(corpus):
    families = defaultdict(list)
    for key, row in corpus.items():
        if "family" in row["metadata"]:
            families[row["metadata"]["family"]].append((row["metadata"]["valid_from"], key))
    assert len(families) == 7
    for versions in families.values():
        (_, old), (begins, new) = sorted(versions)
        assert corpus[old]["metadata"]["valid_to"] == begins
        assert corpus[new]["metadata"]["supersedes"] == old
        assert corpus[old]["title"] == corpus[new]["title"]


@pytest.mark.parametrize(
    ("twins", "field"),
    [
        (("cg-reset", "cp-reset", "vp-reset"), "product"),
        (("late-payment-n", "late-payment-b", "late-payment-a"), "region"),
        (("move-house-n", "move-house-a"), "region"),
    ],
)
def test_only_metadata_tells_twins_apart(corpus, twins, field):
    assert len({corpus[key]["title"] for key in twins}) == 1
    values = {corpus[key]["metadata"][field] for key in twins}
    assert len(values) == len(twins)
    for key in twins:
        assert not values & set(re.findall(r"\w+", corpus[key]["text"].lower())), key


def test_questions_are_of_every_kind_as_the_readme_counts_them(queries, readme):
    kinds = Counter(query["cohorts"]["kind"] for query in queries.values())
    russian = Counter(query["cohorts"]["kind"] for query in queries.values() if query["cohorts"]["lang"] == "ru")
    assert min(kinds.values()) >= 10
    rows = re.findall(r"^\| `([\w-]+)` \| (\d+) \| (\d+) \|", readme, re.MULTILINE)
    assert {kind: (int(all), int(ru)) for kind, all, ru in rows} == {
        kind: (kinds[kind], russian[kind]) for kind in kinds
    }


def test_at_least_a_quarter_of_the_questions_is_russian_and_some_cross_the_languages(queries, truths, corpus, readme):
    for key, query in queries.items():
        assert (query["cohorts"]["lang"] == "ru") == bool(re.search("[а-яё]", query["text"].lower())), key
    assert 0.25 <= sum(query["cohorts"]["lang"] == "ru" for query in queries.values()) / len(queries) <= 0.35
    crossing = Counter()
    for key, truth in truths.items():
        told = {corpus[source]["metadata"]["lang"] for source in sources(truth)}
        if told and queries[key]["cohorts"]["lang"] not in told:
            crossing[queries[key]["cohorts"]["lang"]] += 1
    assert min(crossing["ru"], crossing["en"]) >= 4
    assert (
        f"evidence of {crossing['ru']} Russian questions is English only, that of {crossing['en']} English"
        in re.sub(r"\s+", " ", readme)
    )


def test_nearly_every_document_is_evidence_for_something(truths, corpus):
    assert len(set(corpus) - {source for truth in truths.values() for source in sources(truth)}) <= 3


def test_quotes_are_exact_and_no_longer_than_they_must_be(truths, corpus):
    for key, truth in truths.items():
        for unit in units(truth):
            assert corpus[unit["doc_id"]]["text"][unit["start"] : unit["end"]] == unit["quote"], key
            assert 20 <= len(unit["quote"]) <= 250, (key, unit["quote"])


def test_every_source_can_be_read_by_who_asks(queries, truths, corpus):
    for key, query in queries.items():
        assert sources(truths.get(key, {})) <= readable(corpus, query["principals"]), key


def test_a_paraphrase_shares_no_stem_with_its_evidence_or_its_title(queries, truths, corpus):
    for key, query in of_kind(queries, "paraphrase").items():
        for unit in units(truths[key]):
            assert not stems(query["text"]) & stems(unit["quote"] + " " + corpus[unit["doc_id"]]["title"]), key


def test_kinds_need_as_many_facts_documents_and_alternatives_as_they_say(queries, truths):
    shapes = {
        key: [facts(alternative) for alternative in truths[key]["alternatives"]]
        for key in truths
        if sources(truths[key])
    }
    for key in of_kind(queries, "single"):
        assert len(shapes[key]) == len(shapes[key][0]) == 1, key
    for key in of_kind(queries, "several"):
        assert all(len(shape) >= 2 and set.intersection(*shape.values()) for shape in shapes[key]), key
    for key in of_kind(queries, "across"):
        assert all(len(shape) >= 2 and not set.intersection(*shape.values()) for shape in shapes[key]), key
    for key in of_kind(queries, "alternatives"):
        assert len(shapes[key]) >= 2, key
    for key in of_kind(queries, "interchangeable"):
        assert any(len(docs) >= 2 for shape in shapes[key] for docs in shape.values()), key
    for key, query in of_kind(queries, "identifier").items():
        assert re.search(r"\d", query["text"]), key


def test_a_declared_filter_keeps_the_evidence_and_drops_its_twins(demo, truths, corpus):
    allowed = Declared().over(demo.documents)
    filtered = [query for query in demo.queries if query.filter]
    assert {query.id for query in filtered} >= {q.id for q in demo.queries if q.cohorts["kind"] == "filter"}
    for query in filtered:
        kept = {document.id for document, keep in zip(demo.documents, allowed.allowed(query), strict=True) if keep}
        assert sources(truths[query.id]) <= kept, query.id
        titles = {corpus[source]["title"] for source in sources(truths[query.id])}
        twins = {key for key, row in corpus.items() if row["title"] in titles} - sources(truths[query.id])
        assert not twins & kept, query.id


def test_every_refused_question_is_answered_to_somebody_who_may_know(queries, truths, corpus):
    refused = {key: query for key, query in queries.items() if query.get("why") == "access"}
    assert len(refused) >= 10
    for key, query in refused.items():
        answered = [other for other, twin in queries.items() if twin["text"] == query["text"] and twin["answerable"]]
        assert answered, key
        for other in answered:
            assert not sources(truths[other]) & readable(corpus, query["principals"]), key


def test_every_reason_not_to_answer_is_there_more_than_once(queries, readme):
    reasons = Counter(query["why"] for query in queries.values() if not query["answerable"])
    assert set(reasons) == {"absent", "access", "out_of_scope", "conflict"}
    assert min(reasons.values()) >= 5
    assert ", ".join(f"`{why}` {n}" for why, n in reasons.most_common()) in re.sub(r"\s+", " ", readme)


def test_questions_are_asked_today_unless_they_say_another_day_or_compare(queries):
    days = Counter(query.get("as_of") for query in queries.values())
    assert days[None] == sum("compares" in query for query in queries.values()) >= 2
    for key, query in queries.items():
        assert query.get("as_of", TODAY) == TODAY or query["as_of"] < TODAY, key


def test_the_contract_speaks_of_these_questions_and_documents(queries, truths, corpus, agreed, demo):
    assert set(agreed["critical"]["queries"]) == {key for key, query in queries.items() if query.get("critical")}
    assert {query["intent"] for query in queries.values()} == set(agreed["intents"])
    assert {row["metadata"]["authority"] for row in corpus.values()} == set(agreed["authority"]["order"])
    grades = {str(unit["grade"]) for truth in truths.values() for unit in truth.get("relevant", [])}
    assert grades == set(agreed["grades"])
    for cohort in agreed["critical"]["cohorts"]:
        name, _, value = cohort.partition("=")
        assert sum(query.cohorts.get(name) == value for query in demo.queries) >= 20


def test_all_evidence_of_a_graded_question_has_the_best_grade(truths):
    graded = {key: truth for key, truth in truths.items() if "relevant" in truth}
    assert len(graded) >= 20
    for key, truth in graded.items():
        best = {(u["doc_id"], u["start"]) for u in truth["relevant"] if "start" in u and u["grade"] == 2}
        assert {(unit["doc_id"], unit["start"]) for unit in units(truth)} <= best, key


def test_forty_questions_were_labelled_twice(truths):
    again = [review for truth in truths.values() for review in truth.get("reviewed", [])]
    assert len(again) == 40
    assert [review["note"] for review in again].count("enough") == 39


def test_the_guide_is_part_of_the_ground_truth_and_has_a_russian_summary(demo):
    guide = (DEMO / "GUIDE.md").read_text(encoding="utf-8")
    assert re.search("[а-яё]{5}", guide)
    assert demo.contract["use_case"]
