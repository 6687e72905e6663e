"""Blind sheets, verdicts and incidents, through the command line: nothing is believed because a system returned it."""

import csv
import io
import json
import shlex
from itertools import chain, combinations

import pytest
import runs
from cli import Said, ablate, dataset, quiet, workshop
from cli import runs as run_folders
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.dataset import Folder
from ablate.dataset.options import flags
from ablate.evaluate import audited
from ablate.review.bounds import Held, bounds, extremes, holds
from ablate.review.contexts import kappa
from ablate.review.known import known
from ablate.review.sheet import SOURCES, bare, beside, guarded, hashed, table
from ablate.score import Scoring, of_ranking
from ablate.score.context import context
from ablate.score.judged import judged
from ablate.types import Chunk, Context, Document, Judgment, Span, Truth, Unit
from ablate.workspace import Workspace

FEE = "За просрочку берут 300 рублей в час."
CAP = "Больше суточной цены не возьмут."
GUIDE = f"Опоздание. {FEE} {CAP} Звоните диспетчеру."
COPY = "=Памятка: опоздали на час - платите 300 рублей, но не больше цены за сутки."
SECRET = "Скидка для своих: 300 рублей не берут."
NOISE = "Велосипеды моют по средам. Замки смазывают маслом."

DOCUMENTS = [
    {"_id": "правила", "title": "Правила", "text": GUIDE, "acl": {"allow": ["public"]}},
    {"_id": "памятка", "title": "Памятка", "text": COPY, "acl": {"allow": ["public"]}},
    {"_id": "свои", "title": "Для своих", "text": SECRET, "acl": {"allow": ["group:staff"]}},
    {"_id": "уход", "title": "Уход", "text": NOISE, "acl": {"allow": ["public"]}},
    {"_id": "пусто", "text": "--- !", "acl": {"allow": ["public"]}},
    {"_id": "2025-06-01", "title": "Старое", "text": "В 2025 году брали 200 рублей.", "acl": {"allow": ["public"]}},
]
QUERIES = [
    {"_id": "q-штраф", "text": "Какой штраф за опоздание?", "principals": ["user:anna"], "as_of": "2026-02-01"},
    {"_id": "q-мойка", "text": "Когда моют велосипеды?", "principals": ["user:oleg", "group:staff"]},
    {"_id": "q-нет", "text": "Есть ли самокаты?", "answerable": False, "why": "absent"},
]
TRUTHS = [
    {
        "query_id": "q-штраф",
        "alternatives": [[{"doc_id": "правила", "quote": FEE}, {"doc_id": "правила", "quote": CAP, "fact": "потолок"}]],
    },
    {"query_id": "q-мойка"},
    {"query_id": "q-нет"},
]


def place(document, quote=None):
    text = next(row["text"] for row in DOCUMENTS if row["_id"] == document)
    start = text.index(quote or text)
    return {"doc_id": document, "start": start, "end": start + len(quote or text)}


LEFT = {
    "q-штраф": [place("правила", FEE), place("памятка"), place("свои"), place("пусто")],
    "q-мойка": [place("уход", "Велосипеды моют по средам."), place("свои")],
    "q-нет": [place("уход")],
}
RIGHT = {
    "q-штраф": [place("памятка"), place("2025-06-01"), place("правила")],
    "q-мойка": [place("уход"), place("правила", "Звоните диспетчеру.")],
    "q-нет": [],
}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with a dataset and two runs on it, whose rankings and contexts are LEFT and RIGHT."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ABLATE_WORKSPACE", str(tmp_path))
    dataset(tmp_path / "data", DOCUMENTS, QUERIES, TRUTHS)
    recorded(tmp_path, "baseline", LEFT, {"q-штраф": 0.0})
    recorded(tmp_path, "reranker", RIGHT, {"q-штраф": 1.0})
    return tmp_path


def folder(path, **settings):
    options = {
        "split": "test",
        "evidence": "none",
        "sufficient_grade": 1,
        "acl_default": "nobody",
        "title": True,
        "subset": None,
    }
    return Folder(str(path), **{**options, **settings})


def recorded(root, variant, ranking, sufficient, dir="data", **changed):
    read = folder(root / dir).read()
    node = {"_target_": "ablate.dataset.Folder", "dir": str(root / dir), "split": "test", "evidence": "none"}
    node |= {"sufficient_grade": 1, "acl_default": "nobody", "title": True, "subset": None}
    rows = [{"query_id": query, "hits": hits, "context": hits} for query, hits in ranking.items()]
    values = {query: {"context/sufficient": sufficient.get(query)} for query in ranking}
    return runs.build(
        Workspace(root),
        variant,
        values,
        baseline=None if variant == "baseline" else "baseline-0001",
        config={"dataset": node, **changed.pop("config", {})},
        fingerprints={**read.fingerprints, **changed.pop("fingerprints", {})},
        files={"ranking.jsonl": rows},
        **changed,
    )


def export(*argv, out="sheet.csv") -> Said:
    return ablate("review", "export", "baseline", "reranker", "--out", out, *argv)


def cells(path="sheet.csv"):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def undone(row):
    return {column: bare(text) for column, text in row.items()}


def fill(answers, path="sheet.csv", sign=",", ending="\r\n"):
    """Write the answers, by document and query, into a sheet as a spreadsheet would."""
    rows = cells(path)
    for row in rows:
        row.update(answers.get((row["query_id"], bare(row["doc_id"])), answers.get(bare(row["doc_id"]), {})))
    put(rows, path, sign, ending)


def put(rows, path="sheet.csv", sign=",", ending="\r\n"):
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, rows[0], delimiter=sign, lineterminator=ending)
    writer.writeheader()
    writer.writerows(rows)
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        file.write(out.getvalue())


def apply(*argv, sheet="sheet.csv", to="new"):
    return ablate("review", "apply", sheet, "--dataset", "data", "--to", to, "--when", "2026-03-01", *argv)


def lines(path):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row.get("query_id", row.get("_id")): row for row in rows}


# What is unjudged


def chunk(start, end, document="a"):
    return Chunk(Document(document, "x" * 100), start, end)


EVIDENCE = ((Unit("a", (Span(10, 20),)),), (Unit("b"),))


@pytest.mark.parametrize(
    ("truth", "found", "expected"),
    [
        (Truth("q"), chunk(0, 10), True),
        (Truth("q", (EVIDENCE,)), chunk(0, 10), True),
        (Truth("q", (EVIDENCE,)), chunk(0, 11), False),
        (Truth("q", (EVIDENCE,)), chunk(19, 30), False),
        (Truth("q", (EVIDENCE,)), chunk(20, 30), True),
        (Truth("q", (EVIDENCE,)), chunk(50, 60, "b"), False),
        (Truth("q", (EVIDENCE,), documents={"a": 1, "b": 1}), chunk(20, 30), True),
        (Truth("q", documents={"a": 0}), chunk(20, 30), False),
        (Truth("q", documents={"b": 1}), chunk(20, 30), True),
        (Truth("q", judged=(Judgment(Unit("a", (Span(5, 8),)), 0),)), chunk(7, 30), False),
        (Truth("q", judged=(Judgment(Unit("a", (Span(5, 8),)), 0),)), chunk(8, 30), True),
        (Truth("q", complete=True), chunk(0, 10), False),
    ],
)
def test_a_chunk_is_unjudged_where_it_touches_no_span_and_its_document_has_no_grade(truth, found, expected):
    assert (not judged(truth)(found)) is expected


# Export


def test_the_sheet_holds_what_either_side_found_and_nobody_has_judged_once(shop):
    said = export()
    assert said.code == 0, said.err
    found = {(row["query_id"], bare(row["doc_id"]), row["start"], row["end"]) for row in cells()}
    assert found == {
        ("q-штраф", "памятка", "0", str(len(COPY))),
        ("q-штраф", "2025-06-01", "0", "29"),
        ("q-мойка", "свои", "0", str(len(SECRET))),
        ("q-мойка", "уход", "0", "26"),
        ("q-мойка", "уход", "0", str(len(NOISE))),
        ("q-мойка", "правила", str(GUIDE.index("Звоните")), str(len(GUIDE))),
        ("q-нет", "уход", "0", str(len(NOISE))),
    }
    assert "7 sources of 3 queries" in said.out
    assert "1 forbidden to who asks" in said.out
    assert "1 without a letter" in said.out


def test_texts_are_those_of_the_documents_behind_the_guard(shop):
    export()
    by_document = {bare(row["doc_id"]): undone(row) for row in cells() if row["query_id"] == "q-штраф"}
    assert by_document["памятка"]["text"] == COPY
    assert by_document["памятка"]["question"] == "Какой штраф за опоздание?"
    assert by_document["памятка"]["as_of"] == "2026-02-01"
    assert by_document["памятка"]["title"] == "Памятка"
    told = by_document["памятка"]["known facts"]
    assert told == f'alternative 1\n  #1: "{FEE}" (Правила)\n  потолок: "{CAP}" (Правила)'


def test_no_cell_is_a_formula_and_spreadsheets_find_utf_8(shop):
    export()
    assert (shop / "sheet.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert not [text for row in cells() for text in row.values() if text[:1] in ("=", "+", "-", "@", "\t")]
    assert [row["doc_id"] for row in cells() if "2025" in row["doc_id"]] == ["'2025-06-01"]


@given(st.text(st.sampled_from("=+-@\t\r\n' 1.eЯ\"")))
def test_a_guarded_cell_comes_back_as_it_was(text):
    assert bare(guarded(text)) == text
    assert guarded(text)[:1] not in ("=", "+", "-", "@", "\t", "\r")
    row = dict.fromkeys(SOURCES.columns, text)
    assert next(csv.DictReader(io.StringIO(table(SOURCES, [row]).decode("utf-8-sig"), newline="")))["text"] == guarded(
        text
    )


@pytest.mark.parametrize(
    "text", ["May 2025", "Май 2025", "Jan 5", "SEPT2", "(5)", "$5", "1E5", "3,14", "TRUE", "false", "Истина", "12 мая"]
)
def test_what_a_spreadsheet_takes_for_a_date_a_sum_or_a_truth_value_is_guarded(text):
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["i0001", "0", "512", "Правила", "vp-ru-parking", "Сколько раз? " * 5 + "2"])
def test_what_a_spreadsheet_leaves_alone_is_not_guarded(text):
    assert guarded(text) == text


def test_a_spreadsheet_may_drop_control_characters(shop):
    noise = "Велосипеды\x0c моют\tпо средам.\r\nЗамки\x0b смазывают маслом."
    dataset(shop / "data", [*DOCUMENTS[:3], {**DOCUMENTS[3], "text": noise}, *DOCUMENTS[4:]], QUERIES, TRUTHS)
    whole = {"doc_id": "уход", "start": 0, "end": len(noise)}
    recorded(shop, "one", {"q-мойка": [whole]}, {})
    recorded(shop, "two", {"q-мойка": [place("свои")]}, {})
    assert ablate("review", "export", "one", "two", "--out", "sheet.csv").code == 0
    rows = cells()
    washing = next(row for row in rows if row["doc_id"] == "уход")
    washing |= {"text": "Велосипеды моютпо средам.\nЗамки смазывают маслом.", "verdict": "relevant"}
    put(rows)
    said = apply("--who", "Вера")
    assert said.code == 0, said.err
    assert [entry["quote"] for entry in lines("new/ground_truth.jsonl")["q-мойка"]["relevant"]] == [noise]
    other = {**undone(washing), "text": "Велосипеды моют по пятницам."}
    assert hashed(SOURCES, other) != hashed(SOURCES, undone(washing))


def test_a_byte_order_mark_that_was_taken_for_a_letter_does_no_harm(shop):
    export()
    fill({"памятка": {"verdict": "partly"}})
    text = (shop / "sheet.csv").read_text(encoding="utf-8-sig")
    (shop / "sheet.csv").write_text('"\ufeff""item"""' + text.removeprefix("item"), encoding="utf-8")
    assert text.startswith("item,")
    assert apply("--who", "Вера").code == 0


def test_cells_are_parted_by_semicolons_if_asked(shop):
    assert export("--semicolon").code == 0
    head = (shop / "sheet.csv").read_text(encoding="utf-8-sig").splitlines()[0]
    assert head == ";".join(f'"{column}"' for column in SOURCES.columns)


def test_whichever_run_is_named_first_the_sheet_is_the_same(shop):
    export("--seed", "3")
    other = ablate("review", "export", "reranker", "baseline", "--out", "other.csv", "--seed", "3")
    assert other.code == 0, other.err
    assert (shop / "sheet.csv").read_bytes() == (shop / "other.csv").read_bytes()
    assert (shop / "sheet.csv.key.json").read_bytes() == (shop / "other.csv.key.json").read_bytes()


def test_the_sheet_is_the_same_when_the_two_runs_trade_their_rankings(shop, tmp_path_factory, monkeypatch):
    export()
    twin = tmp_path_factory.mktemp("twin")
    dataset(twin / "data", DOCUMENTS, QUERIES, TRUTHS)
    backwards = {query: hits[::-1] for query, hits in RIGHT.items()}
    recorded(twin, "baseline", backwards, {"q-штраф": 1.0})
    recorded(twin, "reranker", LEFT, {"q-штраф": 0.0})
    monkeypatch.setenv("ABLATE_WORKSPACE", str(twin))
    assert export(out="traded.csv").code == 0
    assert (shop / "sheet.csv").read_bytes() == (shop / "traded.csv").read_bytes()


def test_neither_sheet_nor_key_tells_ranks_scores_or_sides(shop):
    export()
    head = (shop / "sheet.csv").read_text(encoding="utf-8-sig").splitlines()[0]
    assert head == ",".join(f'"{column}"' for column in SOURCES.columns)
    key = json.loads((shop / "sheet.csv.key.json").read_text(encoding="utf-8"))
    assert key.keys() == {
        "kind", "runs", "fingerprints", "seed", "size", "principals", "depth", "left_out", "rows",
    }  # fmt: skip
    assert all(isinstance(value, str) for value in key["rows"].values())


def test_another_seed_gives_another_order_of_the_same_rows(shop):
    export("--seed", "1")
    export("--seed", "2", out="other.csv")

    def plain(path):
        return [tuple(text for column, text in row.items() if column != "item") for row in cells(path)]

    assert plain("sheet.csv") != plain("other.csv")
    assert sorted(plain("sheet.csv")) == sorted(plain("other.csv"))


def test_a_cut_sheet_gives_every_query_its_share_and_says_what_is_missing(shop):
    said = export("--size", "4")
    per_query = [row["query_id"] for row in cells()]
    assert sorted(map(per_query.count, set(per_query))) == [1, 1, 2]
    assert len(set(per_query)) == 3
    assert "3 beyond --size" in said.out
    export(out="all.csv")
    whole = [(row["query_id"], row["text"]) for row in cells("all.csv")]
    assert [pair for pair in whole if pair in {(row["query_id"], row["text"]) for row in cells()}] == [
        (row["query_id"], row["text"]) for row in cells()
    ]


def test_one_depth_holds_for_both_sides(shop):
    export("--depth", "1")
    found = {(row["query_id"], bare(row["doc_id"])) for row in cells()}
    assert found == {("q-штраф", "памятка"), ("q-мойка", "уход"), ("q-нет", "уход")}


def test_runs_with_different_k_need_a_depth(shop):
    recorded(shop, "packer", RIGHT, {}, config={"k": 3})
    said = ablate("review", "export", "baseline", "packer", "--out", "x.csv")
    assert said.code == 2
    assert "k: found 3 and 5, expected the same k on both sides; give --depth" in said.err
    assert ablate("review", "export", "baseline", "packer", "--out", "x.csv", "--depth", "3").code == 0


def test_a_depth_beyond_the_record_is_refused(shop):
    said = export("--depth", "51")
    assert said.code == 2
    assert "--depth: found 51, expected 1 to 50" in said.err


@pytest.mark.parametrize(("name", "told"), [("corpus", "corpus"), ("ground_truth", "rescore")])
def test_runs_of_different_datasets_are_refused_by_name(shop, name, told):
    recorded(shop, "other", RIGHT, {}, fingerprints={name: "f00d" * 16})
    said = ablate("review", "export", "baseline", "other", "--out", "x.csv")
    assert said.code == 2
    assert "baseline-0001 and other-0001" in said.err
    assert told in said.err
    assert not (shop / "x.csv").exists()


def test_a_dataset_that_has_changed_since_is_refused_and_another_place_can_be_given(shop):
    (shop / "data").rename(shop / "moved")
    dataset(shop / "data", [*DOCUMENTS, {"_id": "new", "text": "new", "acl": {"allow": []}}], QUERIES, TRUTHS)
    said = export()
    assert said.code == 2
    assert "found the corpus fingerprint" in said.err
    assert export("--dataset", "moved").code == 0


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("baseline", "baseline", "--out", "x.csv"), "found it twice"),
        (("baseline", "nobody", "--out", "x.csv"), "found none"),
        (("baseline", "reranker", "--out", "x.xlsx"), "ends with .csv or .jsonl"),
    ],
)
def test_what_cannot_be_exported_is_told(shop, argv, told):
    said = ablate("review", "export", *argv)
    assert said.code == 2
    assert told in said.err


def test_a_sheet_that_may_be_filled_in_is_not_overwritten(shop):
    export()
    before = (shop / "sheet.csv").read_bytes()
    said = export("--seed", "9")
    assert said.code == 2
    assert "it may be filled in already" in said.err
    assert (shop / "sheet.csv").read_bytes() == before


def test_a_reviewer_gets_only_what_they_may_read(shop):
    said = export("--principals", "user:vera")
    assert "свои" not in {row["doc_id"] for row in cells()}
    assert "1 forbidden to the reviewer" in said.out
    export("--principals", "group:staff", out="staff.csv")
    assert "свои" in {row["doc_id"] for row in cells("staff.csv")}


def test_a_known_fact_is_not_quoted_to_who_may_not_read_its_source(shop):
    secret = [{"query_id": "q-мойка", "alternatives": [[{"doc_id": "свои", "quote": SECRET, "fact": "скидка"}]]}]
    dataset(shop / "data", DOCUMENTS, QUERIES, [TRUTHS[0], *secret])
    recorded(shop, "one", LEFT, {})
    recorded(shop, "two", RIGHT, {})
    assert ablate("review", "export", "one", "two", "--out", "a.csv", "--principals", "user:vera").code == 0
    assert "Скидка" not in (shop / "a.csv").read_text(encoding="utf-8-sig")
    assert "скидка: (a document that the reviewer may not read)" in (shop / "a.csv").read_text(encoding="utf-8-sig")


def test_json_lines_hold_the_same_rows(shop):
    export()
    assert export(out="sheet.jsonl").code == 0
    with open("sheet.jsonl", encoding="utf-8") as file:
        assert [json.loads(line) for line in file] == [undone(row) for row in cells()]


# Apply


def test_verdicts_grade_their_sources_with_who_when_and_why(shop):
    export()
    fill(
        {
            "памятка": {"verdict": " Частично", "who": "Вера", "note": "без исключений"},
            "2025-06-01": {"verdict": "не релевантно"},
            ("q-мойка", "правила"): {"verdict": "Cannot tell", "note": "кто такой диспетчер?"},
        }
    )
    said = apply("--who", "Олег")
    assert said.code == 0, said.err
    assert "frozen as version 1; ground truth " in said.out
    assert "3 verdicts on 2 queries (1 cannot tell, 1 not relevant, 1 partly)" in said.out
    assert "4 rows without a verdict changed nothing" in said.out
    row = lines("new/ground_truth.jsonl")["q-штраф"]
    graded = {(entry["doc_id"], entry.get("quote")): entry["grade"] for entry in row["relevant"]}
    assert graded == {
        ("правила", FEE): 2,
        ("правила", CAP): 2,
        ("памятка", COPY): 1,
        ("2025-06-01", "В 2025 году брали 200 рублей."): 0,
    }
    by_who = {entry["who"]: entry for entry in row["reviewed"]}
    assert by_who["Вера"] == {
        "who": "Вера",
        "when": "2026-03-01",
        "action": "judged",
        "unit": {**place("памятка"), "quote": COPY, "grade": 1},
        "note": "без исключений",
    }
    assert by_who["Олег"]["unit"]["grade"] == 0
    washing = lines("new/ground_truth.jsonl")["q-мойка"]
    assert "relevant" not in washing
    assert washing["reviewed"][0]["note"] == "cannot tell: кто такой диспетчер?"
    assert "grade" not in washing["reviewed"][0]["unit"]


def test_what_nobody_touched_stays_byte_for_byte_and_the_old_version_too(shop):
    before = {path.name: path.read_bytes() for path in (shop / "data").iterdir()}
    export()
    fill({"2025-06-01": {"verdict": "not relevant"}})
    assert apply("--who", "Олег").code == 0
    assert {path.name: path.read_bytes() for path in (shop / "data").iterdir()} == before
    assert (shop / "new/corpus.jsonl").read_bytes() == before["corpus.jsonl"]
    assert (shop / "new/queries.jsonl").read_bytes() == before["queries.jsonl"]
    old, new = (
        data.split(b"\n") for data in (before["ground_truth.jsonl"], (shop / "new/ground_truth.jsonl").read_bytes())
    )
    assert new[1:] == old[1:]
    assert [entry["grade"] for entry in lines("new/ground_truth.jsonl")["q-штраф"]["relevant"]] == [0]


def test_a_source_joins_a_fact_and_then_the_new_version_scores_it(shop):
    export()
    fill(
        {
            "памятка": {
                "verdict": "relevant",
                "fact": "#1",
                "alternative": "1",
                "quote": "опоздали на час - платите 300\nрублей",
            }
        }
    )
    said = apply("--who", "Вера")
    assert said.code == 0, said.err
    assert "1 sources joined a known fact, 0 alternatives are new" in said.out
    assert "whole texts" not in said.out
    old, new = folder(shop / "data").read(), folder(shop / "new").read()
    assert [len(facts) for facts in new.truths["q-штраф"].alternatives] == [2]
    assert sorted(len(fact) for fact in new.truths["q-штраф"].alternatives[0]) == [1, 2]
    entry = lines("new/ground_truth.jsonl")["q-штраф"]["reviewed"][0]
    assert (entry["action"], entry["alternative"], entry["fact"]) == ("judged", 0, "fact 1")

    def coverage(read):
        documents = {document.id: document for document in read.documents}
        ranking = [Chunk(documents["памятка"], 0, len(COPY))]
        scoring = Scoring([1], 1.0, {}, 1.0)
        return of_ranking(read.truths["q-штраф"], ranking, documents, (), scoring)

    assert coverage(old)["retrieval/coverage_at_1"] == 0
    assert coverage(new)["retrieval/coverage_at_1"] == 0.5
    assert coverage(new)["retrieval/hit_at_1"] == 1
    assert judged(new.truths["q-штраф"])(Chunk(new.documents[1], 0, len(COPY)))


def test_a_named_fact_takes_a_source_by_its_name(shop):
    export()
    fill(
        {
            "памятка": {
                "verdict": "relevant",
                "fact": "потолок",
                "alternative": "1",
                "quote": "но не больше цены за сутки",
            }
        }
    )
    assert apply("--who", "Вера").code == 0
    units = lines("new/ground_truth.jsonl")["q-штраф"]["alternatives"][0]
    assert [unit.get("fact") for unit in units] == [None, "потолок", "потолок"]


def test_rows_with_one_label_form_one_new_alternative(shop):
    export()
    fill(
        {
            "памятка": {"verdict": "релевантно", "alternative": "новая А", "fact": "штраф"},
            "2025-06-01": {"verdict": "relevant", "alternative": "new а", "fact": "год"},
        }
    )
    said = apply("--who", "Вера")
    assert said.code == 0, said.err
    assert "0 sources joined a known fact, 1 alternatives are new" in said.out
    assert "2 of them are whole texts" in said.out
    row = lines("new/ground_truth.jsonl")["q-штраф"]
    assert sorted(unit["fact"] for unit in row["alternatives"][1]) == ["год", "штраф"]
    assert {(entry["action"], entry["alternative"]) for entry in row["reviewed"]} == {("added", 1)}


def test_a_query_without_evidence_gets_its_first_alternative(shop):
    export()
    fill(
        {("q-мойка", "уход"): {"verdict": "relevant", "alternative": "new", "fact": "день", "quote": "моют по средам"}}
    )
    assert apply("--who", "Вера").code == 0
    new = folder(shop / "new").read()
    assert len(new.truths["q-мойка"].alternatives) == 1
    assert len(new.truths["q-мойка"].alternatives[0]) == 1
    assert [judgment.grade for judgment in new.truths["q-мойка"].judged] == [2]


def test_how_the_rows_are_sorted_changes_nothing(shop):
    export()
    answers = {"памятка": {"verdict": "relevant", "alternative": "new"}, "уход": {"verdict": "not relevant"}}
    fill(answers)
    assert apply("--who", "Вера").code == 0
    text = (shop / "sheet.csv").read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    with open("sheet.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=";")
        writer.writeheader()
        writer.writerows(row for row in rows[::-1] if row["verdict"])
    assert apply("--who", "Вера", to="again").code == 0
    assert (shop / "again/ground_truth.jsonl").read_bytes() == (shop / "new/ground_truth.jsonl").read_bytes()


@pytest.mark.parametrize(("sign", "ending"), [(",", "\n"), (";", "\r\n"), ("\t", "\r\n")])
def test_sheets_come_back_from_any_spreadsheet(shop, sign, ending):
    export()
    fill({"памятка": {"verdict": "PARTLY."}}, sign=sign, ending=ending)
    assert apply("--who", "Вера").code == 0


def test_a_spreadsheet_may_end_lines_in_its_own_way(shop):
    text = "Штраф:\r\n300 рублей\rв час."
    dataset(shop / "data", [*DOCUMENTS, {"_id": "строки", "text": text, "acl": {"allow": ["public"]}}], QUERIES, TRUTHS)
    recorded(shop, "one", LEFT, {})
    recorded(shop, "two", {"q-штраф": [{"doc_id": "строки", "start": 0, "end": len(text)}]}, {})
    assert ablate("review", "export", "one", "two", "--out", "sheet.csv").code == 0
    rows = [{column: cell.replace("\r\n", "\n").replace("\r", "\n") for column, cell in row.items()} for row in cells()]
    next(row for row in rows if row["doc_id"] == "строки").update(verdict="partly", quote="300 рублей\nв час")
    put(rows)
    said = apply("--who", "Вера")
    assert said.code == 0, said.err
    assert lines("new/ground_truth.jsonl")["q-штраф"]["relevant"][-1]["quote"] == "300 рублей\rв час"


def test_a_filled_json_lines_sheet_is_applied(shop):
    export(out="sheet.jsonl")
    rows = [json.loads(line) for line in (shop / "sheet.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["verdict"] = "partly" if row["doc_id"] == "памятка" else None
    (shop / "sheet.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert apply("--who", "Вера", sheet="sheet.jsonl").code == 0


PROBLEMS = [
    ({"verdict": "maybe"}, 'verdict: found "maybe", expected one of relevant, partly, not relevant, cannot tell'),
    ({"note": "хм"}, "verdict: found nothing in a row that is filled in otherwise"),
    ({"verdict": "relevant", "who": ""}, "who: found nothing, expected the name of who judged"),
    ({"verdict": "relevant", "alternative": "7"}, "alternative: found '7', expected a number from 1 to 1, or new"),
    ({"verdict": "relevant", "alternative": "0"}, "alternative: found '0', expected a number from 1 to 1, or new"),
    ({"verdict": "relevant", "alternative": "1"}, "fact: found nothing, expected one of #1, потолок"),
    ({"verdict": "relevant", "alternative": "1", "fact": "х"}, "fact: found 'х', expected one of #1, потолок"),
    ({"verdict": "relevant", "fact": "#1"}, "alternative: found nothing beside a fact"),
    ({"verdict": "partly", "alternative": "new"}, "alternative: found 'new' beside 'partly'"),
    ({"verdict": "not relevant", "quote": "300"}, "quote: found a text beside 'not relevant'"),
    ({"verdict": "relevant", "quote": "трёхсот"}, "which the text does not have"),
    ({"verdict": "relevant", "quote": "о"}, "more than once in the text"),
    ({"text": "Другой текст."}, "found columns that were changed"),
    ({"start": "1"}, "found columns that were changed"),
    ({"item": "i0999"}, 'item: found "i0999", expected an item of the key'),
]


@pytest.mark.parametrize(("answer", "told"), PROBLEMS)
def test_a_row_that_cannot_be_used_is_told_with_its_number_and_nothing_is_written(shop, answer, told):
    export()
    fill({("q-штраф", "памятка"): {"who": "Вера", **answer}})
    number = next(n for n, row in enumerate(cells(), 2) if row["title"] == "Памятка")
    said = apply()
    assert said.code == 2
    assert f"sheet.csv, row {number}: " in said.err
    assert told in said.err
    assert not (shop / "new").exists()


def test_all_problems_are_told_at_once(shop):
    export()
    fill({"памятка": {"verdict": "maybe"}, "2025-06-01": {"verdict": "relevant", "alternative": "9", "who": "Вера"}})
    said = apply()
    assert said.code == 2
    assert len(said.err.strip().splitlines()) == 3
    assert said.err.count("sheet.csv, row ") == 3


def test_rows_without_a_verdict_change_nothing_even_with_a_name(shop):
    export()
    fill({row["_id"]: {"who": "Вера"} for row in DOCUMENTS})
    said = apply()
    assert said.code == 2
    assert "found no verdict" in said.err


def test_an_alternative_that_contains_another_is_refused_with_its_row(shop):
    export()
    rows = cells()
    for row in rows:
        if row["query_id"] == "q-мойка" and row["doc_id"] in ("уход", "правила"):
            short = row["end"] == "26"
            row |= {"verdict": "relevant", "alternative": "new A" if short else "new B"}
            row["quote"] = "моют по средам" if row["doc_id"] == "уход" else ""
    put(rows)
    said = apply("--who", "Вера")
    number = next(n for n, row in enumerate(rows, 2) if row["alternative"] == "new B")
    assert said.code == 2
    assert f"sheet.csv, row {number}: alternative: found all units of alternative" in said.err
    assert "A or (A and B) is A" in said.err


def test_the_same_new_alternative_is_not_added_twice(shop):
    export()
    fill({"памятка": {"verdict": "relevant", "alternative": "new"}})
    assert apply("--who", "Вера").code == 0
    said = ablate("review", "apply", "sheet.csv", "--dataset", "new", "--to", "next", "--who", "Вера")
    assert said.code == 2
    assert "found all units of alternative 2 in alternative 3 as it would be" in said.err


def test_the_next_command_is_told(shop):
    said = export(out="лист 1.csv")
    assert "when it is filled in: python -m ablate review apply 'лист 1.csv' --dataset " in said.out
    told = shlex.split(said.out.partition("python -m ablate ")[2])
    fill({"памятка": {"verdict": "partly"}}, "лист 1.csv")
    assert told[-1] == "NEWDIR"
    said = ablate(*told, "--who", "Вера")
    assert said.code == 0, said.err
    assert "python -m ablate rescore --dataset NEWDIR baseline-0001 reranker-0001" in said.out
    assert "python -m ablate review agreement opinions.csv\n" in export("--expert", out="opinions.csv").out


def test_the_flags_of_a_dataset_are_those_that_differ():
    settings = {"_target_": "ablate.dataset.Folder", "dir": "x", "split": "dev", "evidence": "any"}
    settings |= {"sufficient_grade": 2, "acl_default": "nobody", "title": True, "subset": None}
    assert flags(settings) == ["--split", "dev", "--evidence", "any", "--sufficient-grade", "2"]
    assert flags({}) == []


def test_a_new_alternative_of_two_people_needs_a_label(shop):
    export()
    answers = {
        ("q-мойка", "уход"): {"verdict": "relevant", "alternative": "new", "who": "Вера"},
        ("q-мойка", "правила"): {"verdict": "relevant", "alternative": "new", "who": "Олег"},
    }
    fill(answers)
    said = apply()
    assert said.code == 2
    assert "alternative: found a new one without a label by Вера and by Олег" in said.err
    answers["q-мойка", "правила"]["alternative"] = "new B"
    fill(answers)
    rows = cells()
    next(row for row in rows if row["doc_id"] == "уход" and row["end"] == "26").update(verdict="", alternative="")
    put(rows)
    said = apply()
    assert said.code == 0, said.err
    assert len(folder("new").read().truths["q-мойка"].alternatives) == 2


@pytest.mark.parametrize("useful", ["relevant", "partly"])
def test_a_text_that_holds_a_relevant_passage_is_not_called_irrelevant(shop, useful):
    export()
    rows = cells()
    for row in rows:
        if row["query_id"] == "q-мойка" and row["doc_id"] == "уход":
            row["verdict"] = useful if row["end"] == "26" else "not relevant"
    put(rows)
    said = apply("--who", "Вера")
    number = next(n for n, row in enumerate(rows, 2) if row["verdict"] == "not relevant")
    assert said.code == 2
    assert f"row {number}: verdict: found 'not relevant', where \"Велосипеды моют по средам.\" is relevant" in said.err
    for row in rows:
        row["verdict"] = "не релевантно" if row["verdict"] == useful else useful if row["verdict"] else ""
    put(rows)
    said = apply("--who", "Вера")
    assert said.code == 0, said.err  # a part of a relevant text need not be


def test_evidence_of_a_later_version_contradicts_a_verdict_on_the_text_around_it(shop):
    export()
    fill({("q-мойка", "уход"): {"verdict": "not relevant"}})
    dataset(shop / "data", DOCUMENTS, QUERIES, [TRUTHS[0], {**TRUTHS[1], "alternatives": [[place("уход", "Замки")]]}])
    said = apply("--who", "Вера")
    assert said.code == 2
    assert 'where "Замки" is relevant and a text that holds it is not' in said.err


def test_an_alternative_that_the_sheet_did_not_show_takes_no_source(shop):
    export()
    fill({("q-мойка", "правила"): {"verdict": "relevant", "alternative": "1"}})
    dataset(shop / "data", DOCUMENTS, QUERIES, [TRUTHS[0], {**TRUTHS[1], "alternatives": [[place("уход", "Замки")]]}])
    said = apply("--who", "Вера")
    assert said.code == 2
    assert "found alternatives that have changed since" in said.err


def test_a_fact_without_a_name_is_never_called_as_another_one_is():
    row = {"alternatives": [[{"doc_id": "a", "fact": "#2"}, {"doc_id": "b"}, {"doc_id": "c"}, {"doc_id": "d"}]]}
    assert known(row).alternatives == [{"#2": [0], "#3": [1], "#4": [2], "#5": [3]}]
    row["alternatives"][0][0]["fact"] = "#3"
    assert known(row).alternatives == [{"#3": [0], "#2": [1], "#4": [2], "#5": [3]}]
    row["alternatives"][0].reverse()
    assert known(row).alternatives == [{"#1": [0], "#2": [1], "#4": [2], "#3": [3]}]


@pytest.mark.parametrize("to", ["data/corpus.jsonl/new", "sheet.csv/new"])
def test_a_place_that_cannot_be_written_to_is_told(shop, to):
    export()
    fill({"памятка": {"verdict": "partly"}})
    said = apply("--who", "Вера", to=to)
    assert said.code == 2
    assert "expected a place to write to; check --to" in said.err
    assert "expected a place to write to" in export(out=f"{to}.csv").err


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda key: b"\xff", "found bytes that are not UTF-8, expected the key"),
        (lambda key: key.replace(b'"baseline-0001",', b""), 'key "runs": found 1 names, expected those of two runs'),
        (lambda key: key.replace(b'"principals": []', b'"principals": 5'), 'key "principals": found a number'),
    ],
)
def test_a_key_that_was_changed_is_told(shop, change, told):
    export()
    fill({"памятка": {"verdict": "partly"}})
    key = beside(shop / "sheet.csv")
    assert change(key.read_bytes()) != key.read_bytes()
    key.write_bytes(change(key.read_bytes()))
    said = apply("--who", "Вера")
    assert said.code == 2
    assert told in said.err


def test_a_place_in_a_document_that_there_is_not_is_told(shop):
    recorded(shop, "one", {"q-нет": [{**place("уход"), "doc_id": "ушло"}]}, {})
    said = ablate("review", "export", "one", "reranker", "--out", "sheet.csv")
    assert said.code == 2
    assert "ranking.jsonl: found no 'ушло', expected places in documents of the dataset" in said.err


def test_a_second_opinion_that_contradicts_the_first_is_refused(shop):
    export()
    fill({"памятка": {"verdict": "partly"}})
    assert apply("--who", "Вера").code == 0
    fill({"памятка": {"verdict": "not relevant"}})
    said = ablate("review", "apply", "sheet.csv", "--dataset", "new", "--to", "next", "--who", "Олег")
    assert said.code == 2
    assert "where this source has grade 1" in said.err


def test_the_same_opinion_again_is_only_noted(shop):
    export()
    fill({"памятка": {"verdict": "partly"}})
    assert apply("--who", "Вера").code == 0
    said = ablate("review", "apply", "sheet.csv", "--dataset", "new", "--to", "next", "--who", "Олег")
    assert said.code == 0, said.err
    row = lines("next/ground_truth.jsonl")["q-штраф"]
    assert row["relevant"] == lines("new/ground_truth.jsonl")["q-штраф"]["relevant"]
    assert [entry["who"] for entry in row["reviewed"]] == ["Вера", "Олег"]


def test_evidence_for_an_unanswerable_query_is_refused(shop):
    export()
    fill({("q-нет", "уход"): {"verdict": "relevant", "alternative": "new"}})
    said = apply("--who", "Вера")
    assert said.code == 2
    assert "evidence for a query that is called unanswerable (absent)" in said.err


def test_evidence_that_the_dataset_refuses_is_told_with_its_row(shop):
    old = {**DOCUMENTS[5], "metadata": {"valid_to": "2026-01-01"}}
    dataset(shop / "data", [*DOCUMENTS[:5], old], QUERIES, TRUTHS)
    recorded(shop, "one", LEFT, {})
    recorded(shop, "two", RIGHT, {})
    assert ablate("review", "export", "one", "two", "--out", "sheet.csv").code == 0
    fill({"2025-06-01": {"verdict": "relevant", "alternative": "new"}})
    said = apply("--who", "Вера")
    assert said.code == 2
    assert "sheet.csv, row" in said.err
    assert "evidence valid on 2026-02-01" in said.err
    assert not (shop / "new").exists()
    assert not [path for path in shop.iterdir() if path.name.startswith(".")]


def test_each_version_is_frozen_with_the_one_before_as_its_parent(shop):
    export()
    fill({"памятка": {"verdict": "partly"}})
    assert apply("--who", "Вера", "--version", "7").code == 0
    fill({"2025-06-01": {"verdict": "partly"}})
    said = ablate("review", "apply", "sheet.csv", "--dataset", "new", "--to", "next", "--who", "Вера")
    assert said.code == 0, said.err
    assert "frozen as version 8, made from version 7" in said.out
    frozen = json.loads((shop / "next/manifest.json").read_text(encoding="utf-8"))
    assert (frozen["version"], frozen["parent"]) == ("8", "7")
    assert (shop / "new/manifest.json").exists()
    (shop / "new/queries.jsonl").write_bytes(b"")
    assert ablate("review", "apply", "sheet.csv", "--dataset", "new", "--to", "third", "--who", "Вера").code == 2
    assert not (shop / "third").exists()


def test_rows_keep_their_numbers_after_an_empty_one(shop):
    export()
    fill({"памятка": {"verdict": "maybe"}})
    number = next(n for n, row in enumerate(cells(), 2) if row["title"] == "Памятка")
    data = (shop / "sheet.csv").read_bytes()
    head, _, rest = data.partition(b"\r\n")
    (shop / "sheet.csv").write_bytes(head + b"\r\n\r\n" + rest)
    assert f"sheet.csv, row {number + 1}: verdict" in apply("--who", "Вера").err


def test_a_text_longer_than_a_cell_is_told(shop):
    dataset(
        shop / "data",
        [*DOCUMENTS, {"_id": "том", "text": "слово " * 6000, "acl": {"allow": ["public"]}}],
        QUERIES,
        TRUTHS,
    )
    recorded(shop, "one", LEFT, {})
    recorded(shop, "two", {"q-штраф": [{"doc_id": "том", "start": 0, "end": 36000}]}, {})
    said = ablate("review", "export", "one", "two", "--out", "long.csv")
    assert "1 rows hold a text that a spreadsheet cuts off" in said.out
    assert len(next(bare(row["text"]) for row in cells("long.csv") if row["doc_id"] == "том")) == 36000


def test_evidence_that_is_graded_already_is_not_graded_again(shop):
    truth = {**TRUTHS[0], "relevant": [{"doc_id": "правила", "quote": FEE, "grade": 3}]}
    dataset(shop / "data", DOCUMENTS, QUERIES, [truth, *TRUTHS[1:]])
    recorded(shop, "one", LEFT, {})
    recorded(shop, "two", RIGHT, {})
    assert ablate("review", "export", "one", "two", "--out", "sheet.csv").code == 0
    fill({"памятка": {"verdict": "partly"}})
    said = apply("--who", "Вера")
    assert "was graded 2" not in said.out
    assert [entry["grade"] for entry in lines("new/ground_truth.jsonl")["q-штраф"]["relevant"]] == [3, 1]


def test_a_sheet_of_another_dataset_is_refused(shop):
    export()
    fill({"памятка": {"verdict": "partly"}})
    other = [{**DOCUMENTS[1], "text": COPY.replace("300", "400")}]
    dataset(shop / "data", [DOCUMENTS[0], *other, *DOCUMENTS[2:]], QUERIES, TRUTHS)
    said = apply("--who", "Вера")
    assert said.code == 2
    assert "found a text that this dataset does not have there" in said.err


def test_alternatives_that_changed_since_take_no_source_by_number(shop):
    export()
    fill({"памятка": {"verdict": "relevant", "alternative": "1", "fact": "потолок"}})
    swapped = {**TRUTHS[0], "alternatives": [[{"doc_id": "правила", "quote": CAP, "fact": "потолок"}]]}
    dataset(shop / "data", DOCUMENTS, QUERIES, [swapped, *TRUTHS[1:]])
    said = apply("--who", "Вера")
    assert said.code == 2
    assert "found alternatives that have changed since" in said.err


def test_a_sheet_without_its_key_or_in_another_encoding_is_refused(shop):
    export()
    text = (shop / "sheet.csv").read_text(encoding="utf-8-sig")
    (shop / "sheet.csv").write_bytes(text.encode("cp1251", errors="replace"))
    assert "found bytes that are not UTF-8" in apply("--who", "Вера").err
    beside(shop / "sheet.csv").unlink()
    assert "expected the key that was written beside the sheet" in apply("--who", "Вера").err


def test_a_new_version_is_never_written_over_something(shop):
    export()
    fill({"памятка": {"verdict": "partly"}})
    said = apply("--who", "Вера", to="data")
    assert said.code == 2
    assert "found something there" in said.err


def test_grades_of_documents_take_a_verdict_as_a_grade(tmp_path, monkeypatch):
    """A folder that has only qrels becomes one with a ground truth; its judged queries and grades stay."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ABLATE_WORKSPACE", str(tmp_path))
    plain = [{key: value for key, value in row.items() if key != "acl"} for row in DOCUMENTS]
    dataset(tmp_path / "data", plain, [{"_id": row["_id"], "text": row["text"]} for row in QUERIES])
    (tmp_path / "data/ground_truth.jsonl").unlink()
    (tmp_path / "data/qrels").mkdir()
    qrels = "query-id\tcorpus-id\tscore\nq-штраф\tправила\t1\nq-мойка\tуход\t1\n"
    (tmp_path / "data/qrels/test.tsv").write_text(qrels, encoding="utf-8")
    recorded(tmp_path, "baseline", LEFT, {})
    recorded(tmp_path, "reranker", RIGHT, {})
    assert export().code == 0
    assert {bare(row["doc_id"]) for row in cells() if row["query_id"] == "q-штраф"} == {"памятка", "свои", "2025-06-01"}
    fill({"памятка": {"verdict": "relevant", "alternative": "new"}})
    said = apply("--who", "Вера", "--evidence", "any")
    assert "found a new one beside evidence that follows from grades (--evidence)" in said.err
    fill({"памятка": {"verdict": "relevant", "alternative": ""}, "2025-06-01": {"verdict": "not relevant"}})
    said = apply("--who", "Вера", "--evidence", "any")
    assert said.code == 0, said.err
    assert "the ground truth was made of the qrels" in said.out
    old, new = folder("data", evidence="any").read(), folder("new", evidence="any").read()
    assert [query.id for query in new.queries] == [query.id for query in old.queries]
    assert new.truths["q-штраф"].documents == {"правила": 1, "памятка": 2}
    assert new.truths["q-мойка"].documents == old.truths["q-мойка"].documents
    assert len(new.truths["q-штраф"].alternatives) == 2
    assert [judgment.grade for judgment in new.truths["q-штраф"].judged] == [0]


def test_a_reviewed_source_of_the_sample_makes_its_context_sufficient(tmp_path, monkeypatch):
    workshop(tmp_path, monkeypatch)
    assert quiet("+variant=bm25").code == 0
    found = run_folders()
    ids = [found[variant].name for variant in ("baseline", "bm25")]
    assert ablate("review", "export", *ids, "--out", "sheet.csv").code == 0
    records = {variant: runs.records.read(found[variant]) for variant in ("baseline", "bm25")}
    lacking = {
        q for record in records.values() for q, value in record.values("context/sufficient").items() if not value
    }
    rows = cells()
    row = next(row for row in rows if row["query_id"] in lacking and row["known facts"].count("\n") == 1)
    row |= {"verdict": "relevant", "alternative": "1", "who": "Вера"}
    put(rows)
    said = ablate("review", "apply", "sheet.csv", "--dataset", "pkg://ablate/data/sample", "--to", "next")
    assert said.code == 0, said.err
    assert "frozen as version 1" in said.out
    place = (bare(row["doc_id"]), int(row["start"]), int(row["end"]))
    query = row["query_id"]

    def held(record):
        return place in {(p["doc_id"], p["start"], p["end"]) for p in record.ranking[query]["context"]}

    variants = [variant for variant in records if held(records[variant])]
    assert variants
    assert quiet("+variant=bm25", "dataset.dir=next").code == 0
    again = run_folders()
    for variant in variants:
        assert runs.records.read(again[variant]).values("context/sufficient")[query] == 1


def test_grades_of_a_qrels_file_stay_in_force_beside_a_verdict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ABLATE_WORKSPACE", str(tmp_path))
    plain = [{key: value for key, value in row.items() if key != "acl"} for row in DOCUMENTS]
    dataset(tmp_path / "data", plain, [{"_id": "q-штраф", "text": "Какой штраф?"}], [{"query_id": "q-штраф"}])
    (tmp_path / "data/qrels").mkdir()
    qrels = "query-id\tcorpus-id\tscore\nq-штраф\tправила\t3\n"
    (tmp_path / "data/qrels/test.tsv").write_text(qrels, encoding="utf-8")
    recorded(tmp_path, "baseline", LEFT, {})
    recorded(tmp_path, "reranker", {"q-штраф": [place("памятка", "опоздали"), place("памятка")]}, {})
    assert export().code == 0
    fill({"памятка": {"verdict": "partly"}})
    rows = cells()
    next(row for row in rows if row["text"] == "опоздали")["verdict"] = "relevant"
    put(rows)
    said = apply("--who", "Вера")
    assert said.code == 0, said.err
    assert "made of the qrels" not in said.out
    truth = folder("new").read().truths["q-штраф"]
    assert truth.documents == {"правила": 3, "памятка": 2}
    assert truth.judged == ()


# Experts


def experts(answers, **settings):
    """Export contexts, answer by text, and compare."""
    assert export("--expert", **settings).code == 0
    rows = cells()
    for row in rows:
        row.update(next((said for part, said in answers.items() if part in row["context"]), {}))
    put(rows)
    return ablate("review", "agreement", "sheet.csv")


def test_an_expert_sees_whole_contexts_of_both_sides(shop):
    said = export("--expert")
    assert said.code == 0, said.err
    shown = [row["context"] for row in cells() if row["query_id"] == "q-штраф"]
    assert len(shown) == 2
    assert any(text.startswith("Памятка\n=Памятка: опоздали") and text.count("* * *") == 2 for text in map(bare, shown))
    assert "1 without a passage" in said.out


def test_an_expert_sees_of_a_context_what_who_asks_may_read(shop):
    assert export("--expert").code == 0
    shown = {query: [row["context"] for row in cells() if row["query_id"] == query] for query in LEFT}
    assert len(shown["q-штраф"]) == 2
    assert not [text for text in shown["q-штраф"] if SECRET in text]
    assert [text for text in shown["q-мойка"] if SECRET in text]


def test_where_expert_and_measure_disagree_comes_first(shop):
    said = experts(
        {
            "2025": {"sufficient": "нет", "who": "Вера", "note": "старое"},
            "--- !": {"sufficient": "No", "who": "Вера"},
            SECRET: {"sufficient": "No", "who": "Вера"},
        }
    )
    assert said.code == 0, said.err
    told = said.out.splitlines()
    assert told[0] == "q-штраф: Вера says not sufficient, the measure sufficient: старое"
    assert told[1] == "agreement 0.500 on 2 contexts, Cohen's kappa 0.000, as always where the expert never varies"
    assert "not counted: 1 of queries without alternatives, to which the measure does not apply" in told
    assert "not counted: 2 without a verdict" in told


def test_agreement_without_variety_has_no_kappa(shop):
    said = experts({"2025": {"sufficient": "достаточно", "who": "Вера"}})
    assert "agreement 1.000 on 1 contexts, Cohen's kappa n/a: both say sufficient of every context" in said.out


def test_agreement_as_json(shop):
    experts({"2025": {"sufficient": "yes", "who": "Вера"}, "--- !": {"sufficient": "no", "who": "Вера"}})
    said = json.loads(ablate("review", "agreement", "sheet.csv", "--json").out)
    assert (said["n"], said["agreement"], said["kappa"], said["disagreements"]) == (2, 1.0, 1.0, [])


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"sufficient": "perhaps", "who": "Вера"}, "expected one of yes, no, cannot tell"),
        ({"sufficient": "yes"}, "who:"),
    ],
)
def test_a_verdict_on_a_context_that_cannot_be_used_is_told(shop, answer, told):
    said = experts({"2025": answer})
    assert said.code == 2
    assert told in said.err


def test_a_sheet_of_the_other_kind_is_refused(shop):
    export("--expert")
    assert "found a sheet of contexts, expected one of sources" in apply("--who", "Вера").err
    export(out="sources.csv")
    assert "found a sheet of sources" in ablate("review", "agreement", "sources.csv").err


def test_kappa_by_hand():
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed 0.7, expected 0.5 * 0.6 + 0.5 * 0.4 = 0.5
    left = [True] * 25 + [False] * 25
    right = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    assert kappa(left, right) == pytest.approx(0.4)
    assert kappa([], []) is None
    assert kappa([True], [True]) is None
    assert kappa([True, False], [False, True]) == -1


@settings(deadline=None)  # the first call loads a library
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_kappa_equals_that_of_scikit_learn(pairs):
    metrics = pytest.importorskip("sklearn.metrics")
    left, right = zip(*pairs, strict=True)
    if len({*left, *right}) == 1:
        assert kappa(left, right) is None
    else:
        assert kappa(left, right) == pytest.approx(metrics.cohen_kappa_score(left, right))


# Bounds


@pytest.mark.parametrize(
    ("before", "after", "held", "expected"),
    [
        (0, 0, [], (0, 0)),
        (1, 0, [], (-1, -1)),
        (0, 1, [], (1, 1)),
        (1, 1, [], (0, 0)),
        (0, 0, [Held(False, True)], (0, 1)),
        (0, 0, [Held(True, False)], (-1, 0)),
        (0, 0, [Held(True, True)], (0, 0)),
        (1, 0, [Held(True, True)], (-1, 0)),
        (0, 1, [Held(True, True)], (0, 1)),
        (0, 1, [Held(False, True)], (1, 1)),
        (1, 0, [Held(True, False)], (-1, -1)),
        (0, 0, [Held(True, False), Held(False, True)], (-1, 1)),
    ],
)
def test_bounds_of_one_query_by_hand(before, after, held, expected):
    assert extremes(bool(before), bool(after), held) == expected


@given(st.booleans(), st.booleans(), st.lists(st.builds(Held, st.booleans(), st.booleans()), max_size=6))
def test_bounds_of_one_query_are_the_extremes_over_all_sets_of_sources(before, after, held):
    subsets = chain.from_iterable(combinations(held, size) for size in range(len(held) + 1))
    found = [
        int(after or any(source.variant for source in chosen))
        - int(before or any(source.baseline for source in chosen))
        for chosen in subsets
    ]
    assert extremes(before, after, held) == (min(found), max(found))


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], False),
        ([("a", 0, 10)], True),
        ([("a", 0, 9)], False),
        ([("a", 0, 5), ("a", 3, 12)], True),
        ([("a", 0, 4), ("a", 5, 12)], True),
        ([("a", 0, 4), ("a", 6, 12)], False),
        ([("b", 0, 12)], False),
    ],
)
def test_a_context_holds_a_source_whose_letters_it_covers(spans, expected):
    documents = {name: Document(name, "один два три") for name in "ab"}
    assert documents["a"].text[4] == " "
    context = [Chunk(documents[name], start, end) for name, start, end in spans]
    assert holds(context, Chunk(documents["a"], 0, 10)) is expected


def test_bounds_of_two_runs(shop):
    truths = [TRUTHS[0], {"query_id": "q-мойка", "alternatives": [[{"doc_id": "правила", "quote": "Опоздание."}]]}]
    dataset(shop / "data", DOCUMENTS, QUERIES, truths)
    left = recorded(shop, "left", LEFT, {"q-штраф": 0.0, "q-мойка": 0.0})
    right = recorded(shop, "right", RIGHT, {"q-штраф": 0.0, "q-мойка": 0.0})
    found = bounds(left, right, folder(shop / "data").read())
    # q-штраф: both hold the note, only the right the old rule, nobody may read "свои" -> 0 to 1.
    # q-мойка: the right holds all that the left's first sentence says, the left "свои" alone -> -1 to 1.
    assert (found.low, found.high, found.n) == (-0.5, 1.0, 2)
    shown = [(query, chunk.document.id) for query, chunk in found.unjudged]
    assert shown == [
        ("q-штраф", "памятка"),
        ("q-штраф", "2025-06-01"),
        ("q-мойка", "уход"),
        ("q-мойка", "свои"),
        ("q-мойка", "уход"),
        ("q-мойка", "правила"),
    ]


def test_bounds_hold_what_the_measure_gives_for_any_new_truth(shop):
    """Whichever unjudged source becomes an alternative, the difference then measured is within the bounds."""
    left = recorded(shop, "left", LEFT, {"q-штраф": 0.0})
    right = recorded(shop, "right", RIGHT, {"q-штраф": 1.0})
    read = folder(shop / "data").read()
    documents, audit = {document.id: document for document in read.documents}, audited(read)
    found = bounds(left, right, read)
    denied = audit.denied(read.queries[0].principals)
    for query, source in found.unjudged:
        truth = Truth(query, (((Unit(source.document.id, (Span(source.start, source.end),)),),),))
        sides = []
        for record, was in ((left, 0.0), (right, 1.0)):
            passages = [
                Chunk(documents[row["doc_id"]], row["start"], row["end"]) for row in record.ranking[query]["context"]
            ]
            value = context(truth, Context(passages, 0), documents, denied, Scoring([1], 1.0, {}, 1.0))[
                "context/sufficient"
            ]
            sides.append(max(was, value))
        assert found.low <= sides[1] - sides[0] <= found.high


def test_bounds_apply_where_both_have_the_measure(shop):
    left, right = recorded(shop, "left", LEFT, {}), recorded(shop, "right", RIGHT, {})
    assert bounds(left, right, folder(shop / "data").read()) is None


# Incidents


def incident(*argv, to="new"):
    fixed = ("--dataset", "data", "--to", to, "--who", "Вера", "--when", "2026-03-01")
    return ablate("review", "incident", *fixed, *argv)


def test_an_incident_becomes_a_question_with_its_evidence(shop):
    said = incident(
        "--query", "Сколько возьмут за час опоздания?", "--case", "ИНЦ-17", "--layer", "cut-off", "--owner", "поиск",
        "--principals", "user:anna", "--as-of", "2026-02-20", "--critical", "--note", "ответили 500",
        "--unit", f"правила:{FEE}", "--unit", f"правила:{CAP}", "--alternative", "--unit", f"памятка:{COPY}",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "4 queries, new: incident-ИНЦ-17, with evidence" in said.out
    assert "a run on this version: python -m ablate dataset.dir=new" in said.out
    query = folder(shop / "new").read().queries[-1]
    assert (query.id, query.case, query.critical) == ("incident-ИНЦ-17", "ИНЦ-17", True)
    assert (query.principals, query.as_of) == ({"user:anna"}, "2026-02-20")
    assert query.metadata == {"layer": "cut-off", "owner": "поиск"}
    row = lines("new/ground_truth.jsonl")["incident-ИНЦ-17"]
    assert [len(units) for units in row["alternatives"]] == [2, 1]
    assert row["reviewed"][0] == {"who": "Вера", "when": "2026-03-01", "action": "incident", "note": "ответили 500"}
    assert [entry["alternative"] for entry in row["reviewed"][1:]] == [0, 1]
    assert (shop / "new/corpus.jsonl").read_bytes() == (shop / "data/corpus.jsonl").read_bytes()
    assert (shop / "new/queries.jsonl").read_bytes().startswith((shop / "data/queries.jsonl").read_bytes())


def test_an_incident_that_nobody_could_answer_says_why(shop):
    said = incident("--query", "А самокаты?", "--case", "18", "--why", "absent", "--id", "q-самокат")
    assert said.code == 0, said.err
    assert "new: q-самокат, unanswerable (absent)" in said.out
    assert folder(shop / "new").read().queries[-1].why == "absent"


def test_an_incident_from_a_file(shop):
    told = {
        "query": "Сколько?",
        "case": "19",
        "layer": "access",
        "alternatives": [[f"правила:{FEE}", {"doc_id": "уход"}]],
    }
    (shop / "incident.json").write_text(json.dumps(told | {"intent": "price"}), encoding="utf-8")
    said = incident("--file", "incident.json")
    assert said.code == 0, said.err
    new = folder(shop / "new").read()
    assert new.queries[-1].intent == "price"
    assert [fact[0].document for fact in new.truths["incident-19"].alternatives[0]] == ["правила", "уход"]


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("--query", "Что?"), '"case": found nothing'),
        (("--query", "Что?", "--case", "1"), "no evidence and no reason why"),
        (
            ("--query", "Что?", "--case", "1", "--why", "absent", "--unit", f"правила:{FEE}"),
            "found evidence and a reason",
        ),
        (("--query", "Что?", "--case", "1", "--unit", "правило:300"), 'did you mean "правила"?'),
        (("--query", "Что?", "--case", "1", "--unit", "правила:нет такого"), "expected a part of the document's text"),
        (("--query", "Что?", "--case", "1", "--why", "absent", "--id", "q-штраф"), "which queries.jsonl has already"),
        (("--query", "Что?", "--case", "1", "--why", "absent", "--as-of", "вчера"), "expected an ISO date"),
        (("--query", "Что?", "--case", "1", "--unit", f"свои:{SECRET}"), "may not read"),
        (("--query", "Что?", "--case", "1", "--why", "absent", "--who", " "), "the name of who adds it"),
        (("--file", "flat.json"), '"alternatives": found a string ("правила: Опоздание."), expected a list of units'),
        (("--file", "none.json"), "check --file"),
        (("--file", "none.json", "--case", "1"), "--case: found it beside --file"),
    ],
)
def test_an_incident_that_cannot_be_used_is_told_and_nothing_is_written(shop, argv, told):
    flat = {"query": "Что?", "case": "1", "alternatives": ["правила: Опоздание."]}
    (shop / "flat.json").write_text(json.dumps(flat), encoding="utf-8")
    said = incident(*argv)
    assert said.code == 2
    assert told in said.err
    assert not (shop / "new").exists()


def test_a_document_id_may_hold_colons(shop):
    dataset(shop / "data", [{"_id": "кб:правила:1", "text": GUIDE}], QUERIES[:1], [{"query_id": "q-штраф"}])
    assert incident("--query", "Что?", "--case", "1", "--unit", f"кб:правила:1:{FEE}").code == 0
    unit = {**place("правила", FEE), "doc_id": "кб:правила:1", "quote": FEE}
    assert lines("new/ground_truth.jsonl")["incident-1"]["alternatives"] == [[unit]]
