"""Where evidence was lost: faults planted in data, config or component of a line are found, weighed and verified."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import cli
import counting
import numpy as np
import pytest
import runs
from fakes import HashEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate import evaluate as evaluation
from ablate import records
from ablate.access import Off, Postfilter, Prefilter
from ablate.chunker import Fixed, ParentChild, Sentence, Whole
from ablate.conf import options
from ablate.errors import NotComparable
from ablate.evaluate import audited, evaluate
from ablate.filter import Declared, Open
from ablate.ledger.advice import acts_on, asks_for_loss, next_test, variants
from ablate.ledger.entry import cells, entry, row
from ablate.ledger.flow import flow, of_run
from ablate.ledger.stages import ACTING, DELIVERED, STAGES
from ablate.packer import Mmr, TokenBudget, TopK
from ablate.pipeline import Line, ready
from ablate.reranker import Keep
from ablate.retriever import Bm25, Dense, Hybrid
from ablate.score import Scoring
from ablate.store import stored
from ablate.tokens import Words
from ablate.types import Acl, Candidates, Chunk, Context, Dataset, Document, Hit, Query, Span, Truth, Unit
from ablate.workspace import Workspace

BM25 = Bm25(1.5, 0.75, [])
PUBLIC = Acl(frozenset({"public"}), frozenset())
BOSS = Acl(frozenset({"user:boss"}), frozenset())
SCORING = Scoring([1], 1.0, {}, 1.0)

DOCUMENTS = (
    Document("правило", "Отпуск длится двадцать восемь дней.", metadata={"год": 2024}, acl=PUBLIC),
    Document("исключение", "Отпуск учителя длится дольше: пятьдесят шесть.", metadata={"год": 2025}, acl=PUBLIC),
    Document("полный", "Отпуск: обычно двадцать восемь, у учителя пятьдесят шесть дней.", acl=PUBLIC),
    Document("прочее", "Отпуск отпуск отпуск, и ничего больше.", metadata={"год": 2024}, acl=PUBLIC),
    Document("правление", "Отпуск правления длится сто дней.", metadata={"год": 2024}, acl=BOSS),
)
BY_NAME = {document.id: document for document in DOCUMENTS}


def unit(name, quote=None, documents=BY_NAME):
    """What a document says, all of it or only a quote, as a unit with spans."""
    text = documents[name].text
    start = text.index(quote) if quote else 0
    return Unit(name, (Span(start, start + len(quote or text)),))


RULE, EXCEPTION, FULL = (unit(name) for name in ("правило", "исключение", "полный"))
EITHER = (((FULL,),), ((RULE,), (EXCEPTION,)))
"""The full guide, or rule and exception."""


def dataset(folder, alternatives, documents=DOCUMENTS, written=None, **asked):
    """One question of what the documents say; in the file they may be `written` otherwise."""
    query = Query("в", **{"text": "отпуск", **asked})
    rows = [
        {"_id": each.id, "text": each.text, "acl": each.acl and {"allow": sorted(each.acl.allow)}}
        for each in written or documents
    ]
    cli.put(folder, {"corpus.jsonl": "".join(f"{json.dumps(each)}\n" for each in rows)})
    truths = {"в": Truth("в", tuple(alternatives))}
    return Dataset("d", str(folder), tuple(documents), (query,), truths, {}, "nobody", {}, {}, {}, ())


def line(data, k=2, depth=5, budget=640, **stages):
    plain = Line(Whole(), None, BM25, Open(), Prefilter("global"), Keep(), TopK())
    chosen = replace(plain, **stages)
    embedder = stored(chosen.embedder or Vectors(), indexes(data), [query.text for query in data.queries])
    return ready(replace(chosen, embedder=embedder), data, Words(), k, depth, budget)


def indexes(data):
    return Path(data.folder) / "indexes"


def evaluated(made, scoring=SCORING):
    """What an evaluation says, whose ledger must agree with its coverage to the last bit."""
    found = evaluate(made, audited(made.dataset), scoring)
    masses = cells(found.ledger)
    assert sum(masses.values()) == len(found.ledger)
    if found.ledger:
        covered = [
            Fraction(found.values[each.query]["context/coverage"]).limit_denominator(99) for each in found.ledger
        ]
        assert masses[DELIVERED] == sum(covered, Fraction(0))
        mean = found.measures["context/coverage"]["mean"]
        assert math.isclose(masses[DELIVERED] / len(found.ledger), mean, rel_tol=1e-15)
    return found


def told(made, scoring=SCORING):
    """The stage, the blame and the reason of every fact of the one query's best alternative."""
    (found,) = evaluated(made, scoring).ledger
    return sorted((fate.stage, fate.blame, fate.why) for fate in found.fates)


def stages(made):
    return [stage for stage, _, _ in told(made)]


@dataclass(frozen=True)
class Vectors(HashEmbedder):
    """Vectors by a text's hash, that see the first `sight` characters of a text and say what they are."""

    sight: int = 10_000
    revision = "vectors"

    def read(self, texts, as_queries=False):
        return self.documents(texts), np.array([min(len(text), self.sight) for text in texts])


@dataclass(frozen=True)
class Listing:
    """A retriever that lists documents by name, under `sources`, and gives out those that `fusion` names."""

    sources: Mapping[str, Sequence[str]]
    fusion: Sequence[str] | None = None

    def index(self, chunks, embedder):
        def search(query, allowed, depth):
            may = {chunk.document.id: chunk for chunk, ok in zip(chunks, allowed, strict=True) if ok}

            def hits(names):
                return [Hit(may[name], 1 / place) for place, name in enumerate(names, 1) if name in may][:depth]

            lists = {name: hits(names) for name, names in self.sources.items()}
            return Candidates(lists, hits(next(iter(self.sources.values())) if self.fusion is None else self.fusion))

        return search


def listing(*names, fusion=None):
    return Listing({"list": names}, fusion)


@dataclass(frozen=True)
class Turning:
    """A reranker that knows no better than to turn the ranking round."""

    def __call__(self, query, hits):
        return [Hit(hit.chunk, -hit.score) for hit in reversed(hits)]


@dataclass(frozen=True)
class Sparing:
    """A packer that never hands over some documents."""

    names: frozenset

    def __call__(self, query, hits, k, budget, tokens):
        passages = [hit.chunk for hit in hits if hit.chunk.document.id not in self.names][:k]
        return Context(passages, sum(tokens.count(passage.text) for passage in passages))


@dataclass(frozen=True)
class Dropping:
    """A chunker that leaves out one character of one document."""

    name: str
    place: int

    def __call__(self, document, tokens):
        edges = [0, self.place, self.place + 1, len(document.text)] if document.id == self.name else []
        spans = [*pairwise(edges)][::2] or [(0, len(document.text))]
        return [Chunk(document, start, end) for start, end in spans if start < end]


@dataclass(frozen=True)
class Hiding:
    """Access that hides a document which anybody may read: before the search, or after it."""

    name: str
    after_search: bool = False

    def over(self, documents, groups, acl_default):
        return _Hidden(self, Prefilter("global").over(documents, groups, acl_default), documents)


@dataclass(frozen=True)
class _Hidden:
    chosen: Hiding
    view: Any
    documents: Sequence[Document]

    def readable(self, query):
        hidden = np.array([document.id == self.chosen.name for document in self.documents])
        return self.view.readable(query) & ~(hidden & (not self.chosen.after_search))

    allowed = readable

    def indexed(self, query):
        return self.view.indexed(query)

    def after(self, query, hits):
        return [hit for hit in hits if not self.chosen.after_search or hit.chunk.document.id != self.chosen.name]


# The contract's own table: alternatives are the full guide, or rule and exception.


@pytest.mark.parametrize(
    ("retrieved", "delivered"),
    [
        (["полный"], 1),
        (["правило", "исключение"], 1),
        (["правило", "прочее"], Fraction(1, 2)),
        (["прочее", "прочее"], 0),
        ([], 0),
    ],
)
def test_the_mass_delivered_is_the_coverage_of_the_reference_table(tmp_path, retrieved, delivered):
    found = evaluated(line(dataset(tmp_path, EITHER), retriever=listing(*retrieved)))
    assert cells(found.ledger)[DELIVERED] == delivered == found.values["в"]["context/coverage"]


@pytest.mark.parametrize(
    ("retrieved", "k", "best", "lost"),
    [
        (["правило", "прочее"], 2, 1, ["candidates", "delivered"]),  # the highest coverage
        (["прочее", "полный"], 1, 0, ["cut-off"]),  # of two that have nothing, the one that got furthest
        (["прочее", "правило"], 1, 0, ["candidates"]),  # one fact of two got further, but the alternative did not
        (["прочее"], 1, 0, ["candidates"]),  # the fewest facts
    ],
)
def test_the_best_alternative_has_most_then_got_furthest_then_has_fewest_facts(tmp_path, retrieved, k, best, lost):
    (found,) = evaluated(line(dataset(tmp_path, EITHER), k=k, retriever=listing(*retrieved))).ledger
    assert (found.alternative, sorted(fate.stage for fate in found.fates)) == (best, lost)


def test_of_equal_alternatives_the_content_decides_and_not_the_order_in_the_file(tmp_path):
    one, other = (((RULE,), (EXCEPTION,)), ((FULL,), (EXCEPTION,)))
    chosen = []
    for alternatives in ([one, other], [other, one], [one[::-1], other[::-1]]):
        (found,) = evaluated(line(dataset(tmp_path, alternatives), retriever=listing("прочее"))).ledger
        chosen.append((found.name, row(found)["facts"], found.alternatives))
    assert chosen[0] == chosen[1] == chosen[2]


def test_a_fact_is_as_far_as_the_furthest_of_its_sources(tmp_path):
    made = line(dataset(tmp_path, [((RULE, FULL),)]), k=1, retriever=listing("прочее", "полный"))
    assert stages(made) == ["cut-off"]


# One fault a layer, planted in the data, the config or a component of a line that runs.

SAYS = [((RULE,),)]


def test_nothing_is_lost_where_nothing_is_wrong(tmp_path):
    assert told(line(dataset(tmp_path, SAYS), k=5)) == [("delivered", None, None)]


@pytest.mark.parametrize("words", ["Отпуск длится двадцать", ""])
def test_text_that_the_reader_lost_is_lost_in_ingestion(tmp_path, words):
    read = (replace(DOCUMENTS[0], text=words), *DOCUMENTS[1:])
    data = dataset(tmp_path, SAYS, read, DOCUMENTS, text="двадцать восемь дней")
    assert told(line(data, k=1)) == [("ingestion", "verified", None)]


@pytest.mark.parametrize(("text", "stage"), [("", "ingestion"), ("…", "delivered")])
def test_a_whole_document_is_lost_in_ingestion_only_if_no_text_of_it_is_left(tmp_path, text, stage):
    read = (replace(DOCUMENTS[0], text=text), *DOCUMENTS[1:])
    data = dataset(tmp_path, [((Unit("правило"),),)], read, DOCUMENTS)
    assert stages(line(data, retriever=listing("правило"))) == [stage]


def test_a_document_that_was_not_loaded_is_lost_in_ingestion(tmp_path):
    data = dataset(tmp_path, SAYS, DOCUMENTS[1:], DOCUMENTS)
    ((stage, blame, why),) = told(line(data))
    assert (stage, blame) == ("ingestion", "suspected")
    assert why == "it does not come back by that"


def test_a_letter_that_the_chunker_left_out_is_lost_in_chunking(tmp_path):
    data = dataset(tmp_path, SAYS, text="двадцать восемь дней")
    assert told(line(data, chunker=Dropping("правило", 3))) == [("chunking", "verified", None)]


def test_what_no_encoder_was_asked_for_is_not_encoded_to_verify_a_blame(tmp_path):
    data = dataset(tmp_path, SAYS)
    why = "the encoder was not asked for a text that would be searched"
    assert told(line(data, retriever=Dense(), chunker=Dropping("правило", 3))) == [("chunking", "suspected", why)]
    evaluate(line(data, retriever=Dense()), audited(data), SCORING)  # another run has encoded the very text
    again = told(line(data, k=9, depth=9, retriever=Dense(), chunker=Dropping("правило", 3)))
    assert again == [("chunking", "verified", None)]


@pytest.mark.parametrize("after", [False, True])
def test_what_access_hides_though_anybody_may_read_it_is_lost_in_access(tmp_path, after):
    data = dataset(tmp_path, SAYS, text="двадцать восемь дней")
    assert told(line(data, access=Hiding("правило", after))) == [("access", "verified", None)]


def test_what_a_wrong_filter_takes_away_is_lost_in_the_filter(tmp_path):
    asked = {"text": "двадцать восемь дней", "filter": {"год": 2025}}
    made = line(dataset(tmp_path, SAYS, **asked), filter=Declared())
    assert told(made) == [("filter", "verified", None)]
    assert stages(line(dataset(tmp_path, SAYS, **asked), filter=Open())) == ["delivered"]


def test_what_no_list_holds_at_depth_is_lost_among_the_candidates(tmp_path):
    data = dataset(tmp_path, SAYS, text="ничего больше")
    assert told(line(data)) == [("candidates", "verified", None)]


def test_what_the_encoder_saw_nothing_of_is_lost_by_truncation(tmp_path):
    far = [((unit("полный", "пятьдесят шесть"),),)]
    for sight, stage in ((20, "truncation"), (50, "candidates")):
        data = dataset(tmp_path / str(sight), far)
        made = line(data, k=1, depth=1, retriever=Near("прочее"), embedder=Vectors(16, sight))
        assert told(made) == [(stage, "verified", None)]


@dataclass(frozen=True)
class Near:
    """Dense search that finds one document alone, after everything was encoded."""

    name: str

    def index(self, chunks, embedder):
        embedder.documents([chunk.reading for chunk in chunks])
        return listing(self.name).index(chunks, embedder)


def test_truncation_is_of_the_text_and_not_of_the_title_before_it(tmp_path):
    titled = (replace(DOCUMENTS[0], title="Правила внутреннего распорядка"), *DOCUMENTS[1:])
    data = dataset(tmp_path, SAYS, titled)
    made = line(data, k=1, depth=1, retriever=Near("прочее"), embedder=Vectors(16, 31))
    assert stages(made) == ["truncation"]
    seen = dataset(tmp_path / "2", SAYS, titled)
    assert stages(line(seen, k=1, depth=1, retriever=Near("прочее"), embedder=Vectors(16, 32))) == ["candidates"]


@pytest.mark.parametrize(
    ("chunker", "stage"),
    [(Fixed(6, 0), "truncation"), (Fixed(6, 2), "candidates"), (ParentChild(6, 3, 0), "candidates")],
)
def test_what_one_chunk_hides_from_the_encoder_another_or_a_child_may_show(tmp_path, chunker, stage):
    documents = (Document("длинный", "один два три четыре пять шесть семь восемь", acl=PUBLIC), *DOCUMENTS)
    named = {document.id: document for document in documents}
    data = dataset(tmp_path, [((unit("длинный", "пять", named),),)], documents)
    made = line(data, k=1, depth=1, chunker=chunker, retriever=Near("прочее"), embedder=Vectors(16, 20))
    assert stages(made) == [stage]


def test_an_encoder_that_was_not_asked_has_cut_nothing(tmp_path):
    data = dataset(tmp_path, SAYS, text="ничего больше")
    assert stages(line(data, embedder=Vectors(16, 1))) == ["candidates"]


def test_what_one_list_holds_and_fusion_pushes_beyond_depth_is_lost_in_fusion(tmp_path):
    lists = ("прочее", "полный"), ("прочее", "правило"), ("полный", "прочее")
    hybrid = Hybrid({str(number): listing(*names) for number, names in enumerate(lists)}, 60)
    assert told(line(dataset(tmp_path, SAYS), depth=2, retriever=hybrid)) == [("fusion", "verified", None)]


def test_what_the_reranker_takes_from_the_first_k_is_lost_by_it(tmp_path):
    made = line(dataset(tmp_path, SAYS), k=1, retriever=listing("правило", "полный"), reranker=Turning())
    assert told(made) == [("rerank", "verified", None)]


def test_what_stands_below_k_before_and_after_is_lost_by_the_cut_off(tmp_path):
    names = ("прочее", "правило", "полный")
    assert told(line(dataset(tmp_path, SAYS), k=1, retriever=listing(*names))) == [("cut-off", "verified", None)]
    made = line(dataset(tmp_path, SAYS), k=1, retriever=listing(*names), reranker=Turning())
    assert told(made) == [("cut-off", "verified", None)]


def test_what_the_packer_leaves_out_of_the_first_k_is_lost_in_packing(tmp_path):
    packer = TokenBudget("score", "\n\n", False)
    made = line(dataset(tmp_path, SAYS), budget=3, retriever=listing("правило"), packer=packer)
    assert told(made) == [("packing", "verified", None)]


def test_what_the_packer_fetches_from_below_k_is_delivered(tmp_path):
    packer = TokenBudget("score", "\n\n", False)
    made = line(dataset(tmp_path, SAYS), k=1, retriever=listing("прочее", "правило"), packer=packer)
    assert told(made) == [("delivered", None, None)]


def test_two_faults_at_once_are_told_apart(tmp_path):
    data = dataset(tmp_path, [((RULE,), (EXCEPTION,))], text="двадцать восемь пятьдесят шесть", filter={"год": 2024})
    made = line(data, k=2, filter=Declared(), packer=Sparing(frozenset({"правило"})))
    assert told(made) == [("filter", "verified", None), ("packing", "verified", None)]
    assert sum(map(Fraction, (1, 1)), Fraction(0)) / 2 == sum(cells(evaluated(made).ledger).values())


def test_of_two_faults_on_one_fact_the_first_is_blamed_and_is_only_suspected(tmp_path):
    data = dataset(tmp_path, SAYS, text="двадцать восемь дней", filter={"год": 2025})
    made = line(data, filter=Declared(), packer=Sparing(frozenset({"правило"})))
    assert told(made) == [("filter", "suspected", "it does not come back by that")]


# What the access list denies supports nothing, and nobody has lost it.

SECRET = [((unit("правление"),),), ((RULE,),)]


def test_what_the_asker_may_not_read_is_not_the_evidence_that_was_lost(tmp_path):
    for access in (Prefilter("global"), Postfilter(), Off()):
        data = dataset(tmp_path, SECRET)
        (found,) = evaluated(line(data, k=1, access=access, retriever=listing("правление", "прочее"))).ledger
        assert (found.alternative, [fate.stage for fate in found.fates]) == (1, ["candidates"])
        assert set(found.alternatives.values()) == {("denied",), ("candidates",)}


def test_a_fact_that_the_access_list_denies_is_no_fault_of_the_access_component(tmp_path):
    both = [((RULE,), (unit("правление"),)), ((EXCEPTION,),)]
    made = line(dataset(tmp_path, both), k=5, retriever=listing("правило", "правление"), access=Off())
    why = "the access list lets the asker read no document that holds it"
    assert told(made) == [("delivered", None, None), ("denied", "suspected", why)]
    boss = dataset(tmp_path, both[:1], principals=frozenset({"user:boss"}))
    assert stages(line(boss, k=5)) == ["delivered", "delivered"]


# Verified or suspected.


def test_a_fact_that_needs_more_chunks_than_k_does_not_come_back_by_a_better_order(tmp_path):
    made = line(dataset(tmp_path, SAYS, text="дней"), k=1, depth=9, chunker=Fixed(3, 0))
    assert told(made) == [("candidates", "suspected", "it does not come back by that")]


@pytest.mark.parametrize(("depth", "blame"), [(2, "verified"), (1, "suspected")])
def test_a_fact_of_two_chunks_comes_back_by_both_and_not_beyond_depth(tmp_path, depth, blame):
    made = line(dataset(tmp_path, SAYS, text="больше"), k=2, depth=depth, chunker=Fixed(3, 0))
    ((stage, found, _),) = told(made)
    assert (stage, found) == ("candidates", blame)


def test_what_filter_and_depth_both_lose_does_not_come_back_by_the_filter(tmp_path):
    data = dataset(tmp_path, SAYS, text="отпуск", filter={"год": 2025})
    made = line(data, k=1, depth=1, filter=Declared(), retriever=listing("исключение", "правило"))
    assert told(made) == [("filter", "suspected", "it does not come back by that")]


@dataclass(frozen=True)
class Pairs:
    """Scores a pair by the letters of the text, and says what it is, so that its scores are kept."""

    first: int
    asked: list = field(default_factory=list)
    revision = "pairs"

    def read(self, pairs):
        self.asked.extend(pairs)
        return np.array([float(len(text)) for _, text in pairs]), np.zeros(len(pairs), bool)


def test_a_pair_that_nobody_scored_is_not_scored_to_verify_a_blame(tmp_path):
    data = dataset(tmp_path, SAYS)
    scorer = Pairs(2)
    kept = stored(scorer, indexes(data))
    names = ("прочее", "полный")
    made = line(data, k=1, retriever=listing(*names), reranker=kept)
    why = "the reranker was not asked for a chunk that would come before it"
    assert told(made) == [("candidates", "suspected", why)]
    assert len(scorer.asked) == 2
    kept.scores([("отпуск", RULE_TEXT)])  # another run asks for it
    assert told(made) == [("candidates", "suspected", "it does not come back by that")]  # for the longer text wins
    assert len(scorer.asked) == 3


RULE_TEXT = DOCUMENTS[0].text


def test_a_reranker_that_keeps_no_scores_is_not_asked_again(tmp_path):
    made = line(dataset(tmp_path, SAYS), k=1, retriever=listing("прочее"), reranker=cli.Reverse(20))
    assert told(made) == [("candidates", "suspected", "the scores of the reranker are not kept")]


@dataclass(frozen=True)
class Once:
    """A packer that breaks when it is asked a second time about a query."""

    asked: list = field(default_factory=list)

    def __call__(self, query, hits, k, budget, tokens):
        self.asked.append(query.id)
        if len(self.asked) > 1:
            raise ValueError("второй раз")
        return Context([], 0)


def test_a_component_that_breaks_when_it_is_asked_again_does_not_end_the_run(tmp_path):
    made = line(dataset(tmp_path, SAYS), k=1, retriever=listing("прочее", "правило"), packer=Once())
    assert told(made) == [("cut-off", "suspected", "running it again broke off with ValueError")]


def test_an_index_that_was_never_built_is_not_built_to_verify_a_blame(tmp_path):
    @dataclass(frozen=True)
    class Narrow(_Hidden):
        def indexed(self, query):
            return self.readable(query)

    class Knowing(Hiding):
        def over(self, documents, groups, acl_default):
            return Narrow(self, Prefilter("global").over(documents, groups, acl_default), documents)

    made = line(dataset(tmp_path, SAYS), access=Knowing("правило"))
    assert told(made) == [("access", "suspected", "there is no index of the documents that would be searched")]


@pytest.mark.parametrize("retriever", [Dense(), Hybrid({"dense": Dense(), "bm25": BM25}, 60)])
def test_the_ledger_encodes_no_text_and_scores_no_pair(tmp_path, monkeypatch, retriever):
    def computed(name, ledger):
        folder = tmp_path / name
        monkeypatch.setenv("JOURNAL", str(folder / "journal"))
        monkeypatch.setattr(evaluation, "ledger", ledger)
        data = dataset(folder, [((RULE,), (EXCEPTION,)), ((FULL,), (unit("прочее"),))], filter={"год": 2024})
        scorer = stored(counting.Scorer("пары", 2), indexes(data))
        made = line(
            data, k=1, depth=2, embedder=counting.Encoder(16, "наша"), retriever=retriever, reranker=scorer,
            filter=Declared(), chunker=Fixed(4, 0),
        )  # fmt: skip
        found = evaluate(made, audited(data), SCORING)
        return counting.noted(), made.line.embedder.tally, made.line.reranker.tally, found

    with_it, without = computed("с", evaluation.ledger), computed("без", lambda *_: ())
    assert with_it[:3] == without[:3]
    assert any(fate.blame for each in with_it[3].ledger for fate in each.fates)


# Properties over random corpora: the sums are exact, and another way to find the stage agrees.

TEXT = st.text("абв .", min_size=1, max_size=24).filter(lambda text: any(map(str.isalnum, text)))


@st.composite
def worlds(draw):
    """Documents, some for the boss alone, and questions with alternatives in them."""
    texts = draw(st.lists(TEXT, min_size=1, max_size=5))
    documents = tuple(
        Document(f"д{n}", text, acl=draw(st.sampled_from([PUBLIC, PUBLIC, BOSS]))) for n, text in enumerate(texts)
    )
    open_to_all = (*documents, Document("общий", "а б в", acl=PUBLIC))

    @st.composite
    def units(draw):
        document = draw(st.sampled_from(open_to_all))
        places = [place for place, letter in enumerate(document.text) if letter.isalnum()]
        first, last = sorted(draw(st.tuples(st.sampled_from(places), st.sampled_from(places))))
        return draw(st.sampled_from([Unit(document.id), *[Unit(document.id, (Span(first, last + 1),))] * 3]))

    fact = st.lists(units(), min_size=1, max_size=2).map(tuple)
    alternative = st.lists(fact, min_size=1, max_size=3).map(tuple)
    truths = draw(st.lists(st.lists(alternative, max_size=3), min_size=1, max_size=4))
    return open_to_all, truths


LINES = st.fixed_dictionaries(
    {
        "chunker": st.sampled_from([Whole(), Fixed(2, 1), Sentence(2, 0), ParentChild(4, 2, 0), Dropping("д0", 0)]),
        "retriever": st.sampled_from([BM25, Dense(), Hybrid({"dense": Dense(), "bm25": BM25}, 60)]),
        "access": st.sampled_from([Prefilter("global"), Prefilter("readable"), Postfilter(), Off()]),
        "reranker": st.sampled_from([Keep(), Turning()]),
        "packer": st.sampled_from([TopK(), TokenBudget("ends", "\n\n", False), Mmr(0.5, [])]),
    }
)


def asked_of(folder, world):
    documents, truths = world
    data = dataset(folder, [], documents)
    queries = tuple(Query(f"в{n}", "а б") for n in range(len(truths)))
    known = {query.id: Truth(query.id, tuple(truth)) for query, truth in zip(queries, truths, strict=True)}
    return replace(data, queries=queries, truths=known)


@settings(max_examples=100, deadline=None)
@given(worlds(), LINES, st.integers(1, 3), st.integers(1, 6), st.integers(1, 8), st.sampled_from([1.0, 0.5]))
def test_cells_sum_to_the_queries_and_what_is_delivered_to_their_coverage(
    tmp_path_factory, world, stages, k, depth, budget, threshold
):
    folder = tmp_path_factory.mktemp("w")
    made = line(asked_of(folder, world), k=k, depth=depth, budget=budget, embedder=HashEmbedder(), **stages)
    found = evaluated(made, replace(SCORING, span_threshold=threshold))
    truths = made.dataset.truths
    assert [each.query for each in found.ledger] == [name for name in truths if truths[name].alternatives]
    traces = {trace.query.id: trace for trace in found.traces}
    for each in found.ledger:
        coverage = sum(fate.stage == DELIVERED for fate in each.fates) * each.mass
        assert float(coverage) == found.values[each.query]["context/coverage"]
        chosen = truths[each.query].alternatives[each.alternative]
        assert Counter(fate.fact for fate in each.fates) == Counter(chosen)
        assert all((fate.blame is None) == (fate.stage == DELIVERED) for fate in each.fates)
        for fate in each.fates:
            assert fate.stage == by_hand(made, traces[each.query], fate.fact, threshold)


def by_hand(made, trace, fact, threshold):
    """The stage by sets of characters, of faults that these lines can have."""
    texts = {document.id: document for document in made.dataset.documents}
    denied = {name for name, document in texts.items() if document.acl is BOSS}

    def supports(chunks, k=None):
        firsts = list({(c.document.id, c.start, c.end): c for c in chunks}.values())[:k]
        held = {
            (c.document.id, place) for c in firsts if c.document.id not in denied for place in range(c.start, c.end)
        }

        def whole(unit):
            spans = unit.spans
            letters = [
                (unit.document, p) for span in spans for p in range(*span) if texts[unit.document].text[p].isalnum()
            ]
            return any(name == unit.document for name, _ in held) if not spans else (
                len(held.intersection(letters)) >= Fraction(str(threshold)) * len(letters)
            )  # fmt: skip

        return any(whole(unit) for unit in fact)

    ranked, before = ([hit.chunk for hit in hits] for hits in (trace.ranked, trace.permitted))
    lists = [hit.chunk for hits in trace.candidates.sources.values() for hit in hits]
    outputs = {
        "chunking": [chunk.handed for chunk in made.chunks],
        "candidates": lists,
        "fusion": [hit.chunk for hit in trace.candidates.fused],
    }
    if supports(trace.context.passages):
        return "delivered"
    if all(unit.document in denied for unit in fact):
        return "denied"
    for stage, chunks in outputs.items():
        if not supports(chunks):
            return stage
    if supports(ranked, made.k):
        return "packing"
    return "rerank" if supports(before, made.k) else "cut-off"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["а", "б", "в", "г"]), min_size=1, max_size=6), min_size=2, max_size=6),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([TopK(), TokenBudget("score", "\n\n", False), Sparing(frozenset({"д1"}))]),
    st.booleans(),
)
def test_a_blame_is_verified_exactly_where_mending_the_fault_itself_brings_the_fact_back(
    tmp_path_factory, words, k, depth, packer, hidden
):
    def run(fault):
        documents = tuple(
            Document(f"д{n}", " ".join(each), metadata={"год": 2 if n == 0 and fault and not hidden else 1}, acl=PUBLIC)
            for n, each in enumerate(words)
        )
        more = (*documents, Document("всегда", "д е ж", metadata={"год": 2}, acl=PUBLIC))
        needed = [((Unit("д0", (Span(0, len(documents[0].text)),)),),)]
        data = dataset(tmp_path_factory.mktemp("w"), needed, more, text="а б", filter={"год": 1})
        access = Hiding("д0") if fault and hidden else Prefilter("global")
        return told(line(data, k=k, depth=depth, budget=5, packer=packer, filter=Declared(), access=access))

    ((stage, blame, _),), ((mended, _, _),) = run(True), run(False)
    assert stage == ("access" if hidden else "filter")
    assert (blame == "verified") == (mended == "delivered")


def test_a_query_without_evidence_has_no_line(tmp_path):
    assert evaluated(line(dataset(tmp_path, []))).ledger == []
    silent = dataset(tmp_path, SAYS, answerable=False, why="absent")
    assert evaluate(line(silent), audited(silent), SCORING).ledger == []


# What recorded ledgers say.


def record(folder, variant, stages_of, baseline=None):
    """A run whose ledger has, for every query, the stages of its alternatives by name; the first is the best."""
    lines = [
        {
            "query_id": query,
            "alternative": 0,
            "name": next(iter(known)),
            "facts": [{"stage": stage} for stage in next(iter(known.values()))],
            "alternatives": known,
        }
        for query, known in stages_of.items()
    ]
    files = {"ledger.jsonl": lines} if lines else {}
    return runs.build(Workspace(folder), variant, {"q": {}}, baseline=baseline, files=files)


def test_flow_follows_the_baselines_best_alternative_on_both_sides(tmp_path):
    before = record(
        tmp_path, "baseline", {"1": {"а": ["cut-off", "delivered"], "б": ["fusion"]}, "2": {"а": ["candidates"]}}
    )
    after = record(
        tmp_path, "hybrid", {"1": {"б": ["delivered"], "а": ["delivered", "packing"]}, "2": {"а": ["cut-off"]}}, before
    )
    assert flow(before, after) == {
        ("cut-off", "delivered"): Fraction(1, 2),
        ("delivered", "packing"): Fraction(1, 2),
        ("candidates", "cut-off"): 1,
    }
    assert {stage: mass for stage, mass in of_run(after).items() if mass} == {"delivered": 1, "cut-off": 1}


def test_without_a_ledger_there_is_no_flow_and_no_advice(tmp_path):
    before, after = record(tmp_path, "baseline", {}), record(tmp_path, "hybrid", {"1": {"а": ["fusion"]}})
    assert flow(before, after) == flow(after, before) == of_run(before) == {}
    assert next_test(before) is None


def test_ledgers_of_two_ground_truths_do_not_flow_into_each_other(tmp_path):
    before = record(tmp_path, "baseline", {"1": {"а": ["fusion"]}})
    for other in ({"1": {"б": ["fusion"]}}, {"2": {"а": ["fusion"]}}):
        with pytest.raises(NotComparable, match="found no ledger of the query '1'"):
            flow(
                before,
                replace(before, facts={**before.facts})
                if other is None
                else record(tmp_path / str(other), "hybrid", other),
            )


def test_the_advice_names_the_largest_loss_and_the_variants_that_act_on_it(tmp_path):
    lost = {"1": {"а": ["packing", "delivered"]}, "2": {"а": ["candidates"]}, "3": {"а": ["packing", "packing"]}}
    run = record(tmp_path, "baseline", lost)
    assert next_test(run) == (
        "what to test next: packing loses most (1.5 of 3 queries' evidence); variants that act on that: packer "
        "(context_packing, mmr)"
    )
    assert next_test(run, ["mmr"]).endswith("packer (context_packing)")
    assert next_test(run, acts_on("packer")).endswith(
        "every shipped variant of packer was tried: write one of your own"
    )
    hidden = record(tmp_path / "2", "baseline", {"1": {"а": ["access"]}})
    assert next_test(hidden).endswith("no shipped variant of access gives it back: check its settings")


def test_a_variant_that_asks_what_is_lost_is_no_advice():
    assert [name for name in variants() if asks_for_loss(name)] == ["access_postfilter", "ann", "ann_ivf"]
    assert "hybrid" in acts_on("retriever")
    assert not {"ann", "ann_ivf"} & set(acts_on("retriever"))


@pytest.mark.parametrize(
    ("stage", "end"),
    [("ingestion", "check how the documents are read"), ("delivered", "nothing, all evidence is delivered")],
)
def test_where_no_variant_acts_the_advice_says_what_does(tmp_path, stage, end):
    assert next_test(record(tmp_path, "baseline", {"1": {"а": [stage]}})).endswith(end)


def test_every_stage_has_its_advice_and_every_variant_its_component(tmp_path):
    groups = options()
    assert set(variants()) == set(groups["variant"])
    assert set(variants().values()) <= groups.keys()
    for stage in STAGES:
        said = next_test(record(tmp_path / stage, "baseline", {"1": {"а": [stage]}}))
        assert stage in said or stage == DELIVERED
        assert all(name in said for component in ACTING.get(stage, ()) for name in acts_on(component))


def test_a_line_of_the_ledger_names_units_stages_and_masses_and_no_text(tmp_path):
    (found,) = evaluated(line(dataset(tmp_path, EITHER), retriever=listing("правило"))).ledger
    written = row(found)
    assert json.loads(json.dumps(written)) == written
    assert Counter((fact["stage"], fact["mass"]) for fact in written["facts"]) == {
        ("delivered", 0.5): 1,
        ("candidates", 0.5): 1,
    }
    lost = next(fact for fact in written["facts"] if fact["stage"] == "candidates")
    assert lost["units"] == [{"doc_id": "исключение", "spans": [[0, len(BY_NAME["исключение"].text)]]}]
    assert lost["blame"] == "verified"
    assert sorted(map(tuple, written["alternatives"].values())) == sorted(found.alternatives.values())
    assert "Отпуск" not in json.dumps(written, ensure_ascii=False)


def test_an_alternative_stands_as_far_as_the_first_of_its_facts_to_be_lost():
    one, two = (((RULE,),), ((EXCEPTION,), (FULL,)))
    fates = {(RULE,): "fusion", (EXCEPTION,): "cut-off", (FULL,): "cut-off"}
    assert entry(Truth("в", (one, two)), fates).alternative == 1
    assert entry(Truth("в", (one, two)), {**fates, (FULL,): "filter"}).alternative == 0


# Runs from the command line to the record.


@pytest.fixture
def work(tmp_path, monkeypatch):
    return cli.workshop(tmp_path, monkeypatch)


def kept(variant="baseline"):
    return records.read(cli.runs()[variant])


def test_a_run_leaves_its_ledger_and_its_cells_and_two_of_them_flow(work):
    data = cli.small(work / "data")
    assert cli.quiet(f"dataset.dir={data}", "+variant=bm25", "k=1").code == 0
    before, after = kept(), kept("bm25")
    for run in (before, after):
        assert run.metrics["ledger"] == {stage: float(mass) for stage, mass in of_run(run).items()}
        assert sum(run.metrics["ledger"].values()) == 2 == len(run.ledger)
    assert sum(flow(before, after).values()) == 2


def test_a_run_that_was_scored_again_keeps_no_ledger_for_its_stages_are_gone(work):
    data = cli.small(work / "data")
    assert cli.quiet(f"dataset.dir={data}").code == 0
    truth = (data / "ground_truth.jsonl").read_text(encoding="utf-8")
    cli.put(data, {"ground_truth.jsonl": truth.replace(" в году", "")})
    assert cli.ablate("rescore", "--dataset", str(data), kept().id).code == 0
    again = kept()
    assert again.rescored_from
    assert (again.ledger, "ledger" in again.metrics, next_test(again), flow(again, again)) == ({}, False, None, {})


CHOICES = ["chunker=parent_child", "chunker=sentence", "packer=token_budget", "packer=mmr", "chunker=structure"]


@pytest.mark.slow
@pytest.mark.parametrize("choice", [*CHOICES, "access=postfilter", "filter=declared", "score.span_threshold=0.5"])
def test_the_sums_hold_in_real_runs_of_every_chunker_and_packer(work, choice):
    words = [] if choice.startswith("chunker") else ["chunker.size=20", "chunker.overlap=4"]
    assert cli.quiet(choice, *words, "+variant=hybrid", "k=3", "depth=8", "budget=60").code == 0
    before, after = kept(), kept("hybrid")
    for run in (before, after):
        masses, n = of_run(run), len(run.ledger)
        assert sum(masses.values()) == n == run.measures["context/coverage"]["n"]
        assert float(masses[DELIVERED] / n) == run.mean("context/coverage")
        assert next_test(run)
    moved = flow(before, after)
    for stage, mass in of_run(before).items():
        assert sum((share for (start, _), share in moved.items() if start == stage), Fraction(0)) == mass


FAULTS = {
    "chunking": (4, ["chunker=dropping"]),
    "access": (4, ["access=hiding"]),
    "filter": (4, ["filter=declared"]),
    "truncation": (3, ["embedder=short", "depth=1", "k=1"]),
    "candidates": (3, ["depth=1", "k=1"]),
    "rerank": (4, ["reranker=reverse", "k=1"]),
    "cut-off": (3, ["k=1"]),
    "packing": (4, ["packer=token_budget", "budget=2"]),
}
"""By the stage that loses it: the document that is asked for, where the fourth is needed, and the wrong config."""

WRONG = {
    "chunker/dropping.yaml": "_target_: test_ledger.Dropping\nname: д4\nplace: 8\n",
    "access/hiding.yaml": "_target_: test_ledger.Hiding\nname: д4\nafter_search: false\n",
    "embedder/short.yaml": "_target_: test_ledger.Vectors\ndimension: 16\nsight: 3\n",
    "retriever/asking.yaml": "_target_: test_ledger.Asking\n",
}


@dataclass(frozen=True)
class Asking:
    """Exact words, after everything was encoded."""

    def index(self, chunks, embedder):
        embedder.documents([chunk.reading for chunk in chunks])
        return BM25.index(chunks, embedder)


def asked(folder, *numbers):
    """Six documents; one question a number, whose words are that document's, and which needs the fourth."""
    more = {0: " и ещё дольше, чем все другие"}
    documents = [
        {"_id": f"д{n}", "text": f"Отпуск номер {n} длится дольше{more.get(n, '')}.", "metadata": {"год": n}}
        for n in range(6)
    ]
    queries = [{"_id": f"в{n}", "text": f"отпуск номер {n}", "filter": {"год": 3}} for n in numbers]
    quote = {"doc_id": "д4", "quote": "номер 4 длится дольше"}
    truths = [{"query_id": f"в{n}", "alternatives": [[quote]]} for n in numbers]
    return f"dataset.dir={cli.dataset(folder, documents, queries, truths)}"


@pytest.mark.slow
@pytest.mark.parametrize("stage", FAULTS)
def test_a_fault_in_the_config_of_a_real_run_is_found_and_verified(work, stage):
    cli.put(work / "conf", WRONG)
    number, words = FAULTS[stage]
    data = asked(work / "data", number)
    said = cli.quiet(data, "retriever=asking", "embedder=counted", *words)
    assert said.code == 0, said.err
    (found,) = kept().ledger[f"в{number}"]["facts"]
    verified = "suspected" if stage == "chunking" else "verified"  # nobody has encoded the whole text
    assert (found["stage"], found["blame"]) == (stage, verified)


@pytest.mark.slow
def test_two_faults_in_one_real_run_are_two_cells(work):
    data = asked(work / "data", 3, 4)
    quiet = ("retriever=bm25", "embedder=counted", "reranker=reverse", "k=1")
    assert cli.quiet(data, *quiet).code == 0
    assert {stage: mass for stage, mass in of_run(kept()).items() if mass} == {"cut-off": 1, "rerank": 1}
