"""Access, proved over random groups, denies and principals: for every option that is on disk, and against broken ones.

Who may read what is decided here a second time, and neither by `ablate.access` nor by `ablate.audit`.
"""

import hashlib
import itertools
import json
import re
from dataclasses import fields, replace

import cli
import leaks
import numpy as np
import pytest
from fakes import HashEmbedder
from hydra import compose, initialize_config_dir
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from ablate import table
from ablate.access import Prefilter
from ablate.audit import Audit
from ablate.conf import conf, options
from ablate.config import resolve, settings
from ablate.evaluate import evaluate
from ablate.pipeline import Line, ready
from ablate.records import read
from ablate.reranker import Pairwise
from ablate.score import Scoring
from ablate.tokens import Words
from ablate.types import Acl, Dataset, Document, Query, Truth

STAGES = ("chunker", "retriever", "filter", "access", "reranker", "packer")
OPTIONS = {stage: options()[stage] for stage in STAGES}
UNGUARDED = "off"
"""The one access that is there to be caught."""

GUARDED = [name for name in OPTIONS["access"] if name != UNGUARDED]

proved = examples(derandomize=True, deadline=None, max_examples=20)


class Modelless:
    """What stands for the model of a pairwise reranker: a score drawn with the pair's hash as seed."""

    def read(self, pairs):
        marks = [hashlib.blake2b("\0".join(pair).encode(), digest_size=4).digest() for pair in pairs]
        return np.array([int.from_bytes(mark, "big") / 2**32 for mark in marks]), np.zeros(len(pairs), np.bool_)

    def prepare(self, hits):
        """There is nothing to encode."""


def small(stage, component):
    """An option with settings that fit texts of a few words, and without its model."""
    if stage == "chunker":
        sizes = {each.name: getattr(component, each.name) // 16 for each in fields(component)}
        return replace(component, **sizes)
    if isinstance(component, Pairwise):
        given = {each.name: getattr(component, each.name) for each in fields(component)} | {"first": 3}
        return type(type(component).__name__, (Modelless, type(component)), {})(**given)
    return component


def shipped():
    """Every option of every stage, by its name."""
    found = {stage: {} for stage in STAGES}
    with initialize_config_dir(str(conf()), version_base="1.3"):
        for stage, names in OPTIONS.items():
            for name in names:
                chosen = settings(resolve(compose("config", ["dataset=sample", f"{stage}={name}"])))
                found[stage][name] = small(stage, getattr(chosen, stage))
    return found


@pytest.fixture(scope="module")
def parts():
    return shipped()


# Corpora, groups and questions: every sentence carries the mark of its document, by which a text is told anywhere.

PEOPLE = ["user:анна", "user:boris", "role:дежурный"]
HELD = {
    "group:a": [*PEOPLE, "group:c"],
    "group:b": ["group:a", "user:boris", "public"],
    "group:c": ["group:b", *PEOPLE],
}
"""Who may be in which group: they nest, and may hold each other in a circle."""

SETS = st.frozensets(st.sampled_from(PEOPLE), max_size=2)
ALLOW = st.frozensets(st.sampled_from(["user:анна", *HELD, *HELD, "public"]), min_size=1, max_size=2)
DENY = st.frozensets(st.sampled_from(["user:boris", *HELD, "public"]), max_size=1)
ACLS = st.sampled_from([0, 1, 1, 2, 2]).flatmap(
    lambda kind: [st.none(), st.builds(Acl, ALLOW, st.just(frozenset())), st.builds(Acl, ALLOW, DENY)][kind]
)
GROUPS = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from(held), min_size=1, max_size=2) for name, held in HELD.items()}
)
TEXTS = st.lists(st.lists(st.sampled_from(["отпуск", "дней", "rule", "CX-429"]), max_size=4), min_size=2, max_size=5)
ASKED = st.sampled_from(["отпуск", "rule дней", "CX-429 отпуск дней"])


def marked(number, lines):
    """A text in which every line, headings among them, says whose it is."""
    heads = itertools.cycle(["", "# ", "- "])
    return "\n".join(f"{head}знак{number} {' '.join(line)}." for head, line in zip(heads, lines, strict=False))


@st.composite
def worlds(draw):
    """A dataset of a few documents in which groups nest, with two questions that may be one text of two people."""
    rows = draw(st.lists(st.tuples(TEXTS, ACLS, st.booleans()), min_size=4, max_size=6))
    documents = [
        Document(f"д{number}", marked(number, lines), f"знак{number}" if titled else "", {"год": number % 2}, acl)
        for number, (lines, acl, titled) in enumerate(rows)
    ]
    filters = st.sampled_from([{}, {}, {"год": 0}])
    asked = draw(st.lists(st.tuples(ASKED, SETS, filters), min_size=2, max_size=3, unique_by=lambda row: row[1]))
    queries = [Query(f"q{number}", text, names, wanted) for number, (text, names, wanted) in enumerate(asked)]
    truths = {query.id: Truth(query.id) for query in queries}
    groups = {group: tuple(members) for group, members in draw(GROUPS).items()}
    default = draw(st.sampled_from(["nobody", "nobody", "public"]))
    return Dataset("мир", "", tuple(documents), tuple(queries), truths, groups, default, {}, {}, {}, ())


SIZES = st.sampled_from([(1, 1, 4), (2, 3, 9), (3, 8, 60)])
"""k, candidate depth and budget."""


# The oracle.


def may_read(dataset, document, principals):
    """The rule, word for word: names grow until no group adds one, `deny` beats `allow`, silence admits nobody."""
    names = ["public", *principals]
    while more := [g for g, members in dataset.groups.items() if g not in names and any(m in names for m in members)]:
        names += more
    if document.acl is None:
        return dataset.acl_default == "public" or not [other for other in dataset.documents if other.acl is not None]
    if any(name in document.acl.deny for name in names):
        return False
    return any(name in document.acl.allow for name in names)


def legible(dataset, query):
    return [document for document in dataset.documents if may_read(dataset, document, query.principals)]


def marks(text):
    """The numbers of the documents that a text is of."""
    return {int(number) for number in re.findall(r"знак(\d+)", text)}


def stages(trace, names):
    """What every stage after access gave out, as chunks."""
    found = {"permitted": trace.permitted, "ranked": trace.ranked}
    if names["access"] not in ("postfilter", UNGUARDED):
        found |= {"fused": trace.candidates.fused, **trace.candidates.sources}
    return {**{stage: [hit.chunk for hit in hits] for stage, hits in found.items()}, "context": trace.context.passages}


def faults(dataset, trace, names):
    """Everything that was given out and must not have been: by stage, text of a document that may not be read."""
    readable = legible(dataset, trace.query)
    for stage, chunks in stages(trace, names).items():
        for chunk in chunks:
            around = (chunk.parent,) if chunk.parent else ()
            said = [chunk.text, chunk.reading, *chunk.headings, *(piece.text for piece in around)]
            own = dataset.documents.index(chunk.document)
            if chunk.document not in readable or not marks(" ".join(said)) <= {own}:
                yield stage, chunk.id


def invented(trace):
    """Where a context has a letter that no ranked chunk of the same document has."""
    given = {(hit.chunk.document.id, place) for hit in trace.ranked for place in range(hit.chunk.start, hit.chunk.end)}
    for passage in trace.context.passages:
        for place, letter in enumerate(passage.text, passage.start):
            if letter.isalnum() and (passage.document.id, place) not in given:
                yield passage.id, place


def line(parts, names, dataset, sizes):
    chosen = {stage: parts[stage][name] for stage, name in names.items()}
    k, depth, budget = sizes
    return ready(Line(embedder=HashEmbedder(), **chosen), dataset, Words(), k, depth, budget)


def readers(dataset):
    """The dataset with those questions whose askers may read something: others stop a run before it begins."""
    return replace(dataset, queries=tuple(query for query in dataset.queries if legible(dataset, query)))


def alone(dataset, query):
    """The same dataset as if what the query's principals may not read had never been written."""
    return replace(dataset, documents=tuple(legible(dataset, query)), queries=(query,))


def placed(hits):
    return [(hit.chunk.id, hit.score) for hit in hits]


def told(trace):
    """Everything that a trace gives out."""
    found = trace.candidates
    passages = [(passage.id, passage.headings) for passage in trace.context.passages]
    lists = {**found.sources, "fused": found.fused, "permitted": trace.permitted, "ranked": trace.ranked}
    return {name: placed(hits) for name, hits in lists.items()} | {"context": passages, "tokens": trace.context.tokens}


def exactly(built, query):
    """How many hits the search that leaves nothing out gives."""
    return len(built.search(built.asked(query)._replace(exact=built.approximate(built.asked(query)))).fused)


NAMED = {"filter": "declared", "access": "prefilter", "reranker": "keep", "packer": "top_k"}
ENDS = st.lists(
    st.sampled_from([*itertools.product(OPTIONS["reranker"], OPTIONS["packer"])]), min_size=3, max_size=3, unique=True
)
"""Three of the ways in which a line may end: over all retrievers, chunkers and examples, each hundreds of times."""


@pytest.mark.parametrize("retriever", OPTIONS["retriever"])
def test_no_option_gives_out_what_may_not_be_read_and_none_starves_whoever_may_read(parts, retriever):
    @proved
    @given(worlds(), SIZES, ENDS, st.sampled_from(GUARDED), st.sampled_from(OPTIONS["filter"]))
    def holds(world, sizes, ends, access, filter):
        world = readers(world)
        for chunker in OPTIONS["chunker"]:
            names = {**NAMED, "chunker": chunker, "retriever": retriever, "access": access, "filter": filter}
            built = line(parts, names, world, sizes)
            for (reranker, packer), query in itertools.product(ends, world.queries):
                ending = replace(built.line, reranker=parts["reranker"][reranker], packer=parts["packer"][packer])
                trace = replace(built, line=ending)(query)
                assert [*faults(world, trace, names)] == [], (chunker, reranker, packer)
                assert {hit.chunk.id for hit in trace.ranked} == {hit.chunk.id for hit in trace.permitted}
                assert [*invented(trace)] == [], (chunker, reranker, packer)
            for query in world.queries if access != "postfilter" else ():
                unlimited = line(parts, {**names, "access": UNGUARDED}, alone(world, query), sizes)
                expected, given = exactly(unlimited, query), len(built(query).permitted)
                assert exactly(built, query) == expected, chunker
                assert given == expected or (given < expected and built.approximate(built.asked(query))), chunker

    holds()


@pytest.mark.parametrize("retriever", OPTIONS["retriever"])
def test_with_statistics_of_the_readable_deleting_the_rest_moves_nothing(parts, retriever):
    @proved
    @given(worlds(), SIZES, ENDS)
    def holds(world, sizes, ends):
        world = readers(world)
        guarded = {**parts, "access": {**parts["access"], "prefilter": Prefilter("readable")}}
        for chunker in OPTIONS["chunker"]:
            names = {**NAMED, "chunker": chunker, "retriever": retriever}
            built = line(guarded, names, world, sizes)
            for query in world.queries:
                pruned = line(guarded, names, alone(world, query), sizes)
                for reranker, packer in ends:
                    ending = {"reranker": parts["reranker"][reranker], "packer": parts["packer"][packer]}
                    both = (replace(each, line=replace(each.line, **ending)) for each in (built, pruned))
                    one, other = (told(each(query)) for each in both)
                    assert one == other, (chunker, reranker, packer)

    holds()


# The checker, against the oracle.


def audited(folder, dataset):
    """The audit of a dataset, from files."""
    rows = [
        {"_id": each.id, "text": each.text, "acl": each.acl and {"allow": [*each.acl.allow], "deny": [*each.acl.deny]}}
        for each in dataset.documents
    ]
    groups = [{"_id": group, "members": [*members]} for group, members in dataset.groups.items()]
    for name, lines in {"corpus.jsonl": rows, "groups.jsonl": groups}.items():
        (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in lines), encoding="utf-8")
    return Audit.read(folder, dataset.acl_default)


SCORING = Scoring([1], 1.0, {}, 1.0)


def checked(folder, built):
    """The evaluation of a line."""
    return evaluate(built, audited(folder, built.dataset), SCORING)


@pytest.mark.parametrize("retriever", OPTIONS["retriever"])
def test_the_checker_counts_what_the_oracle_counts(parts, retriever, tmp_path_factory):
    folder = tmp_path_factory.mktemp("мир")
    rest = [st.sampled_from(OPTIONS[stage]) for stage in ("chunker", "access", "reranker", "packer")]

    @proved
    @given(worlds(), SIZES, st.tuples(*rest))
    def holds(world, sizes, chosen):
        names = dict(zip(("chunker", "access", "reranker", "packer"), chosen, strict=True))
        names, world = {**NAMED, **names, "retriever": retriever}, readers(world)
        built = line(parts, names, world, sizes)
        evaluation = checked(folder, built)
        for trace in evaluation.traces:
            values, shown = evaluation.values[trace.query.id], stages(trace, names)
            readable = legible(world, trace.query)
            denied = {
                stage: {chunk.document.id for chunk in chunks if chunk.document not in readable}
                for stage, chunks in shown.items()
            }
            if not any(document.acl for document in world.documents):
                assert values["acl/violations"] is None
                continue
            assert values["acl/violations"] == len(denied["context"])
            assert values["acl/candidate_violations"] == len(set().union(*denied.values()))
            assert values["acl/candidate_violations"] == 0 or names["access"] == UNGUARDED
            unlimited = line(parts, {**names, "access": UNGUARDED}, world, sizes)(trace.query)
            assert values["acl/exposure"] == any(
                hit.chunk.document not in readable for hit in unlimited.candidates.fused
            )
            apart = line(parts, {**names, "access": UNGUARDED}, alone(world, trace.query), sizes)
            assert values["acl/starved"] == (len(trace.permitted) < exactly(apart, trace.query))
            assert ("retrieval/ann_recall" in values) == built.approximate(built.asked(trace.query))

    holds()


# Components that break access, each by a way of its own.

BROKEN = {
    "a filter after the cut that lets through": ("access=porous", "acl/violations"),
    "an access that forgets who is denied": ("access=forgiving", "acl/violations"),
    "a retriever that ignores what is allowed": ("retriever=open", "acl/violations"),
    "a lexical path without access": ("retriever=half", "acl/violations"),
    "a source that lists what was ruled out": ("retriever=listing", "acl/candidate_violations"),
    "a reranker that returns what it was not given": ("reranker=adding", "acl/violations"),
    "a cache that is shared by all who ask": ("reranker=remembering", "acl/violations"),
    "a packer that adds neighbours of other documents": ("packer=neighbours", "acl/violations"),
    "a packer that hands over other text under a readable name": ("packer=gluing", "acl/violations"),
    "a packer that merges a passage with its neighbour of another document": ("packer=merging", "acl/violations"),
    "a chunker whose parents reach into another document": ("chunker=spilling", "acl/violations"),
    "a reranker that hands over a whole of its own making": ("reranker=raising", "acl/violations"),
    "no access": ("access=off", "acl/violations"),
}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A workshop with the broken components, and a corpus in which each could do harm: the boss asks first."""
    leaks.CORPUS.clear()
    leaks.ANSWERS.clear()
    cli.workshop(tmp_path, monkeypatch)
    cli.put(tmp_path / "conf", leaks.CONF)
    cli.dataset(
        tmp_path / "data",
        [
            {"_id": "правила", "text": "премия: правила для всех", "acl": {"allow": ["public"]}},
            {"_id": "секрет", "text": "премия: размер для совета", "acl": {"allow": ["user:boss"]}},
            {
                "_id": "черновик",
                "text": "премия: черновик",
                "acl": {"allow": ["user:boss", "public"], "deny": ["user:anna"]},
            },
        ],
        [{"_id": f"q-{name}", "text": "премия", "principals": [f"user:{name}"]} for name in ("boss", "anna")],
        [
            {"query_id": f"q-{name}", "alternatives": [[{"doc_id": "правила", "quote": "правила для всех"}]]}
            for name in ("boss", "anna")
        ],
    )
    return tmp_path


def asked(*words):
    """A run on that corpus, and the values of Anna's question."""
    said = cli.quiet("dataset.dir=data", "chunker=noting", *words)
    assert said.code == 0, said
    rows = (cli.runs()["baseline"] / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    values = {row["query_id"]: row["values"] for row in map(json.loads, rows)}
    return said, values["q-anna"]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_component_is_counted_and_the_first_line_says_so(shop, broken):
    word, measure = BROKEN[broken]
    said, values = asked(word)
    assert values[measure] > 0
    assert values["acl/candidate_violations"] >= values["acl/violations"]
    heading, _, sentence = said.out.splitlines()[:3]
    assert heading.endswith("; FORBIDDEN documents in baseline")
    assert re.match(r"-  baseline: \d+ FORBIDDEN documents (handed over|among the candidates); ", sentence)


@pytest.mark.parametrize("word", ["access=prefilter", "access=postfilter", "retriever=hybrid", "packer=token_budget"])
def test_without_a_broken_component_nothing_is_counted_though_there_was_something_to_find(shop, word):
    said, values = asked(word)
    assert (values["acl/violations"], values["acl/candidate_violations"], values["acl/exposure"]) == (0, 0, 1)
    assert "FORBIDDEN" not in said.out


def test_candidates_that_are_forbidden_look_safe_in_no_column(shop):
    asked("retriever=listing")
    text = table.compare([read(cli.runs()["baseline"])]).text(200)
    assert "among candidates" in text
    assert "0 of 1 exposed" not in text
