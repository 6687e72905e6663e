import pytest
from fakes import HashEmbedder, query
from hypothesis import given
from hypothesis import strategies as st

from ablate.access import Off, Postfilter, Prefilter
from ablate.errors import ConfigError
from ablate.retriever import Bm25, Dense, Hybrid
from ablate.types import Acl, Chunk, Document, Hit

BM25 = Bm25(1.5, 0.75, [])
RETRIEVERS = {"dense": Dense(), "bm25": BM25, "hybrid": Hybrid({"dense": Dense(), "bm25": BM25}, 60)}
OPTIONS = {"prefilter": Prefilter("global"), "postfilter": Postfilter(), "off": Off()}


def document(name, allow=(), deny=(), text="отпуск"):
    return Document(name, text, acl=Acl(frozenset(allow), frozenset(deny)))


def readable(documents, principals, groups=None, acl_default="nobody"):
    view = Prefilter("global").over(documents, groups or {}, acl_default)
    mask = view.allowed(query("?", *principals))
    return [document.id for document, read in zip(documents, mask, strict=True) if read]


def test_deny_beats_allow():
    assert readable([document("d", ["user:anna"], ["user:anna"])], ["user:anna"]) == []
    assert readable([document("d", ["public"], ["group:hr"])], ["user:anna"], {"group:hr": ("user:anna",)}) == []


def test_an_acl_without_allow_is_readable_by_nobody():
    assert readable([document("d"), document("e", deny=["user:anna"])], ["user:anna", "user:boris"]) == []


def test_everyone_holds_public_and_a_query_without_principals_nothing_else():
    documents = [document("open", ["public"]), document("own", ["user:anna"])]
    assert readable(documents, []) == ["open"]
    assert readable(documents, ["user:anna"]) == ["open", "own"]


def test_groups_nest_and_may_hold_public_and_each_other():
    groups = {"group:hr": ("user:anna",), "group:staff": ("group:hr",), "group:all": ("public",)}
    groups |= {"group:a": ("group:b", "group:hr"), "group:b": ("group:a",)}
    documents = [document(group, [group]) for group in groups]
    assert readable(documents, ["user:anna"], groups) == list(groups)
    assert readable(documents, ["user:boris"], groups) == ["group:all"]


def test_names_are_taken_as_written():
    assert readable([document("d", ["user:Anna"])], ["user:anna", "user:ann"]) == []


def test_a_corpus_without_acls_is_public():
    documents = [Document("a", "1"), Document("b", "2")]
    assert readable(documents, []) == ["a", "b"]


def test_one_acl_hides_the_documents_that_have_none_unless_they_default_to_public():
    documents = [Document("bare", "1"), document("own", ["user:anna"])]
    assert readable(documents, ["user:anna"]) == ["own"]
    assert readable(documents, [], acl_default="public") == ["bare"]


def test_what_each_option_indexes_returns_and_strikes_out():
    documents = [document("open", ["public"]), document("shut", ["user:anna"])]
    hits = [Hit(Chunk(shut, 0, 6), 1.0) for shut in reversed(documents)]
    masks = {}
    for name, option in {**OPTIONS, "readable": Prefilter("readable")}.items():
        view = option.over(documents, {}, "nobody")
        left = [hit.chunk.document.id for hit in view.after(query(), hits)]
        masks[name] = [
            view.indexed(query()).tolist(),
            view.allowed(query()).tolist(),
            view.readable(query()).tolist(),
            left,
        ]
    both, one = [True, True], [True, False]
    assert masks == {
        "prefilter": [both, one, one, ["shut", "open"]],
        "readable": [one, one, one, ["shut", "open"]],
        "postfilter": [both, both, one, ["open"]],
        "off": [both, both, both, ["shut", "open"]],
    }


@pytest.mark.parametrize("option", OPTIONS)
def test_masks_are_shared_and_cannot_be_written(option):
    view = OPTIONS[option].over([document("d", ["public"])], {}, "nobody")
    with pytest.raises(ValueError, match="read-only"):
        view.allowed(query())[0] = False


@pytest.mark.parametrize("option", OPTIONS)
def test_an_empty_corpus_has_empty_masks(option):
    view = OPTIONS[option].over([], {}, "nobody")
    assert view.allowed(query()).shape == view.indexed(query()).shape == view.readable(query()).shape == (0,)


NAMES = st.sampled_from(["public", "user:a", "user:b", "group:g", "group:h"])
ACLS = st.none() | st.builds(Acl, st.frozensets(NAMES), st.frozensets(NAMES, max_size=1))


@given(st.lists(ACLS), st.frozensets(NAMES), st.dictionaries(NAMES, st.lists(NAMES).map(tuple)))
def test_the_mask_follows_the_rule_document_by_document(acls, principals, groups):
    held = {"public", *principals}
    for _ in groups:
        held |= {group for group, members in groups.items() if held & set(members)}
    documents = [Document(str(number), "", acl=acl) for number, acl in enumerate(acls)]
    expected = [not any(acls) if acl is None else bool(acl.allow & held) and not acl.deny & held for acl in acls]
    assert Prefilter("global").over(documents, groups, "nobody").allowed(query("?", *principals)).tolist() == expected


def ask(retriever, access, documents, text, depth):
    """The ids that a retriever finds under an access option: once over the known documents, and struck out after."""
    view = access.over(documents, {}, "nobody")
    known = [number for number, known in enumerate(view.indexed(query(text))) if known]
    chunks = [Chunk(documents[number], 0, len(documents[number].text)) for number in known]
    search = retriever.index(chunks, HashEmbedder())
    candidates = search(query(text), view.allowed(query(text))[known], depth)
    return [(hit.chunk.document.id, hit.score) for hit in view.after(query(text), candidates.fused)]


CORPUS = [document(f"secret{number}", ["user:boss"], text="премия за отпуск") for number in range(50)]
CORPUS.append(document("open", ["public"], text="отпуск длится долго, премия зависит от стажа"))


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_one_readable_document_is_found_behind_fifty_nearer_secrets(retriever):
    assert [name for name, _ in ask(RETRIEVERS[retriever], Prefilter("global"), CORPUS, "премия за отпуск", 5)] == [
        "open"
    ]


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_filtering_afterwards_loses_it(retriever):
    assert ask(RETRIEVERS[retriever], Postfilter(), CORPUS, "премия за отпуск", 5) == []


@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_without_access_secrets_are_returned(retriever):
    assert {name[:6] for name, _ in ask(RETRIEVERS[retriever], Off(), CORPUS, "премия за отпуск", 5)} == {"secret"}


def test_with_statistics_of_the_readable_deleting_the_rest_changes_no_score():
    for statistics, same in [("readable", True), ("global", False)]:
        access = Prefilter(statistics)
        found = ask(BM25, access, CORPUS, "премия за отпуск", 5)
        assert (found == ask(BM25, access, CORPUS[50:], "премия за отпуск", 5)) is same


def test_other_statistics_are_refused():
    with pytest.raises(ConfigError, match="found 'all', expected global or readable"):
        Prefilter("all")
