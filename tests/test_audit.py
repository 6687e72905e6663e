"""The second opinion on access: its rules, that it shares no code with access, and that its checks would catch it."""

import ast
import importlib.util
import json
import sys
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.access import Prefilter
from ablate.audit import Audit, AuditError
from ablate.types import Acl, Document, Query

SOURCE = Path(__file__).parent.parent / "src"
GROUPS = {"group:support": ["user:anna", "role:дежурный"], "group:all": ["group:support"], "group:guests": ["public"]}

CASES = [
    (None, [], True),
    ({"allow": ["public"]}, [], False),
    ({"allow": ["user:anna"]}, ["user:anna"], False),
    ({"allow": ["user:anna"]}, ["user:boris"], True),
    ({"allow": ["user:anna"]}, [], True),
    ({"allow": []}, ["user:anna"], True),
    ({"deny": ["user:boris"]}, ["user:anna"], True),
    ({}, ["user:anna"], True),
    ({"allow": ["user:anna"], "deny": ["user:anna"]}, ["user:anna"], True),
    ({"allow": ["public"], "deny": ["group:support"]}, ["user:anna"], True),
    ({"allow": ["user:anna"], "deny": ["public"]}, ["user:anna"], True),
    ({"allow": ["group:support"]}, ["user:anna"], False),
    ({"allow": ["group:support"]}, ["role:дежурный"], False),
    ({"allow": ["group:all"]}, ["user:anna"], False),
    ({"allow": ["group:all"]}, ["group:support"], False),
    ({"allow": ["group:support"]}, ["group:all"], True),
    ({"allow": ["group:guests"]}, [], False),
    ({"allow": ["user:anna"]}, ["USER:ANNA"], True),
]


def folder(path, acls, groups=GROUPS):
    rows = [
        {"_id": f"д{number}", "text": "текст", **({} if acl is None else {"acl": acl})}
        for number, acl in enumerate(acls)
    ]
    lines = {"corpus.jsonl": rows, "groups.jsonl": [{"_id": name, "members": each} for name, each in groups.items()]}
    for name, records in lines.items():
        (path / name).write_text("".join(f"{json.dumps(row)}\n" for row in records), encoding="utf-8")
    return path


def wrong(path, audit):
    """The cases that a checker of this kind gets wrong."""
    acls = [acl for acl, _, _ in CASES]
    read = audit.read(folder(path, acls), "nobody")
    return [case for number, case in enumerate(CASES) if (f"д{number}" in read.denied(case[1])) != case[2]]


def test_the_rules_of_the_contract_hold(tmp_path):
    assert wrong(tmp_path, Audit) == []


@pytest.mark.parametrize(
    ("rule", "without"),
    [
        ("if names & self.deny:\n            return False\n", ""),
        ("bool(names & self.allow)", "True"),
        ("pending |= self.memberships.get(name, frozenset()) - names", "pass"),
        ("{EVERYONE, *principals}", "{*principals}"),
        ("NOBODY if checked and", "ANYBODY if checked and"),
    ],
    ids=["deny", "allow", "groups", "public", "silence"],
)
def test_a_checker_without_one_of_its_rules_fails_these_cases(tmp_path, rule, without):
    text = (SOURCE / "ablate" / "audit.py").read_text(encoding="utf-8")
    assert text.count(rule) == 1
    mutant = types.ModuleType("mutant")
    sys.modules["mutant"] = mutant
    try:
        exec(compile(text.replace(rule, without), "mutant", "exec"), vars(mutant))
        assert wrong(tmp_path, mutant.Audit)
    finally:
        del sys.modules["mutant"]


def test_without_any_acl_the_corpus_is_public_and_nothing_is_checked(tmp_path):
    audit = Audit.read(folder(tmp_path, [None, None]), "nobody")
    assert (audit.checked, audit.denied([])) == (False, frozenset())
    assert audit.documents == 2


def test_one_acl_hides_every_document_without_unless_the_default_is_public(tmp_path):
    read = [Audit.read(folder(tmp_path, [None, {"allow": ["user:anna"]}]), default) for default in ("nobody", "public")]
    assert [audit.denied(["user:anna"]) for audit in read] == [{"д0"}, frozenset()]
    assert all(audit.checked for audit in read)


def test_groups_that_hold_each_other_do_not_hang(tmp_path):
    groups = {"group:a": ["group:b", "user:anna"], "group:b": ["group:a"]}
    audit = Audit.read(folder(tmp_path, [{"allow": ["group:b"]}], groups), "nobody")
    assert audit.denied(["user:anna"]) == frozenset()


def test_a_folder_without_groups_or_with_blank_lines_and_a_mark_is_read(tmp_path):
    text = '\ufeff{"_id": "a", "text": "x", "acl": {"allow": null}}\r\n\r\n{"_id": "b", "text": "\u2028", "acl": null}'
    (tmp_path / "corpus.jsonl").write_bytes(text.encode())
    audit = Audit.read(tmp_path, "public")
    assert (audit.documents, audit.denied([])) == (2, {"a"})
    assert audit.texts == {"a": "x", "b": "\u2028"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "found no JSON"),
        ("[]", "found no _id"),
        ('{"_id": 7}', "found no _id"),
        ('{"_id": "a", "text": 7}', "found text 7"),
        ('{"_id": "a", "acl": []}', r"found acl \[\]"),
        ('{"_id": "a", "acl": {"allow": "public"}}', "found allow 'public'"),
        ('{"_id": "a", "acl": {"deny": [1]}}', r"found deny \[1\]"),
    ],
)
def test_an_acl_that_cannot_be_read_is_an_error_that_names_the_line(tmp_path, line, words):
    (tmp_path / "corpus.jsonl").write_text(f'{{"_id": "ok", "text": ""}}\n{line}\n', encoding="utf-8")
    with pytest.raises(AuditError, match=rf"^corpus\.jsonl:2: {words}"):
        Audit.read(tmp_path, "nobody")


def imported(name):
    """Every module of this package that importing `name` would run, found by reading and not by importing."""
    found, pending = set(), [name]
    while pending:
        name = pending.pop()
        if name not in found and name.partition(".")[0] == "ablate":
            found.add(name)
            origin = importlib.util.find_spec(name).origin
            for node in ast.walk(ast.parse(Path(origin).read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    pending += [alias.name for alias in node.names]
                if isinstance(node, ast.ImportFrom):
                    assert not node.level, "relative imports are not followed here"
                    pending += [
                        node.module,
                        *(f"{node.module}.{a.name}" for a in node.names if is_module(node.module, a.name)),
                    ]
    return found


def is_module(package, name):
    try:
        return package.startswith("ablate") and importlib.util.find_spec(f"{package}.{name}") is not None
    except ModuleNotFoundError:
        return False


def test_the_audit_shares_no_code_with_access():
    assert "ablate.types" in imported("ablate.access")
    assert imported("ablate.audit") == {"ablate.audit"}
    assert "ablate.audit" not in imported("ablate.access")


def test_whoever_reads_the_dataset_for_the_line_is_not_the_audit():
    assert "ablate.audit" not in imported("ablate.dataset") | imported("ablate.pipeline")


NAMES = st.sampled_from(["public", "user:anna", "user:boris", "group:a", "group:b", "group:c"])
SETS = st.frozensets(NAMES, max_size=3)
ACLS = st.none() | st.builds(Acl, SETS, SETS)
MEMBERS = st.dictionaries(st.sampled_from(["group:a", "group:b", "group:c"]), SETS, max_size=3)


@given(st.lists(ACLS, min_size=1, max_size=5), MEMBERS, SETS, st.sampled_from(["nobody", "public"]))
def test_access_and_the_audit_agree_on_every_corpus(tmp_path_factory, acls, groups, principals, default):
    documents = [Document(f"д{number}", "текст", acl=acl) for number, acl in enumerate(acls)]
    written = [acl and {"allow": sorted(acl.allow), "deny": sorted(acl.deny)} for acl in acls]
    members = {group: sorted(names) for group, names in groups.items()}
    audit = Audit.read(folder(tmp_path_factory.getbasetemp(), written, members), default)
    view = Prefilter("global").over(documents, {group: tuple(names) for group, names in members.items()}, default)
    allowed = view.allowed(Query("q", "?", principals))
    assert audit.denied(principals) == {each.id for each, may in zip(documents, allowed, strict=True) if not may}
