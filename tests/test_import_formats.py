"""`python -m ablate dataset import`: what each format becomes, what is said to be left out, and what is refused."""

import csv
import gzip
import json
import re
from pathlib import Path

import pytest

from ablate import importer
from ablate.__main__ import main
from ablate.actions import modules
from ablate.dataset import Folder
from ablate.errors import DatasetError
from ablate.importer import Grade, Imported, Report, Row
from ablate.importer.delivery import deliver

FORMATS = ("beir", "hotpotqa", "ragas", "scifact", "squad", "trec")


def put(path, content):
    """Write text, bytes, or a list of objects as JSON Lines; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list):
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def bring(capsys, format, source, *flags):
    """Import into a folder beside the source; the folder and the report as {what: count}."""
    folder = source.parent / "готово"
    assert main(["dataset", "import", format, str(source), str(folder), "--json", *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    return folder, {row["what"]: row["count"] for row in found["report"]}


def refused(capsys, format, source, *flags):
    """The sentence of a refused import, after which nothing is left."""
    before = sorted(source.parent.rglob("*"))
    folder = source.parent / "готово"
    assert main(["dataset", "import", format, str(source), str(folder), *flags]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sorted(source.parent.rglob("*")) == before
    return err


def perfect(capsys, folder, *flags):
    """The measures of a run that finds exactly what the first alternative of each query needs."""
    dataset = Folder(str(folder), "test", *(("all",) if flags else ("none",)), 1, "nobody", True, None).read()
    ranked = []
    for query in dataset.queries:
        hits = []
        for fact in next(iter(dataset.truths[query.id].alternatives), ()):
            spans = [{"start": span.start, "end": span.end} for span in fact[0].spans] or [{}]
            hits += [{"doc_id": fact[0].document} | span for span in spans]
        ranked.append({"query_id": query.id, "hits": hits})
    run = put(folder.parent / "run.jsonl", ranked)
    assert main(["score", "--dataset", str(folder), "--run", str(run), "--json", *flags]) == 0
    return json.loads(capsys.readouterr().out)["metrics"]


def whole(measures):
    """The values of sufficient and coverage at 10: both 1 where a run found all there is to find."""
    return measures["retrieval/sufficient_at_10"], measures["retrieval/coverage_at_10"]


# beir

BEIR_CORPUS = [
    {"_id": "д1", "title": "Возврат", "text": "Возврат возможен 14 дней.", "url": "http://пример.рф"},
    {"_id": 2, "text": "Warranty lasts two years.", "metadata": {"year": 2024}, "lang": "en"},
]
BEIR_QUERIES = [{"_id": "q1", "text": "Сколько дней на возврат?", "kind": "срок"}, {"_id": "q2", "text": "warranty?"}]
BEIR_QRELS = "query-id\tcorpus-id\tscore\nq1\tд1\t2\nq1\t2\t0\nq2\t2\t1\n"


@pytest.fixture
def beir(tmp_path):
    source = tmp_path / "источник"
    put(source / "corpus.jsonl", BEIR_CORPUS)
    put(source / "queries.jsonl", BEIR_QUERIES)
    put(source / "qrels" / "test.tsv", BEIR_QRELS)
    return source


def test_beir_keeps_ids_and_texts_and_moves_other_keys_to_metadata(capsys, beir):
    folder, report = bring(capsys, "beir", beir)
    assert rows(folder / "corpus.jsonl") == [
        {
            "_id": "д1",
            "text": "Возврат возможен 14 дней.",
            "title": "Возврат",
            "metadata": {"url": "http://пример.рф"},
        },
        {"_id": "2", "text": "Warranty lasts two years.", "metadata": {"year": 2024, "lang": "en"}},
    ]
    assert rows(folder / "queries.jsonl") == [
        {"_id": "q1", "text": "Сколько дней на возврат?", "metadata": {"kind": "срок"}},
        {"_id": "q2", "text": "warranty?"},
    ]
    assert (folder / "qrels" / "test.tsv").read_text(encoding="utf-8") == BEIR_QRELS
    assert not (folder / "ground_truth.jsonl").exists()
    assert report == {}


def test_beir_round_trip_is_perfect(capsys, beir):
    folder, _ = bring(capsys, "beir", beir)
    measures = perfect(capsys, folder, "--evidence", "all")
    assert (*whole(measures), measures["doc/ndcg_at_10"]) == (1.0, 1.0, 1.0)


def test_beir_takes_gzip_byte_order_marks_and_crlf(capsys, beir):
    corpus = (beir / "corpus.jsonl").read_bytes()
    (beir / "corpus.jsonl").unlink()
    put(beir / "corpus.jsonl.gz", gzip.compress(b"\xef\xbb\xbf" + corpus.replace(b"\n", b"\r\n")))
    put(beir / "qrels" / "test.tsv", b"\xef\xbb\xbf" + BEIR_QRELS.replace("\n", "\r\n").encode())
    folder, _ = bring(capsys, "beir", beir)
    assert [row["_id"] for row in rows(folder / "corpus.jsonl")] == ["д1", "2"]
    assert (folder / "qrels" / "test.tsv").read_text(encoding="utf-8") == BEIR_QRELS


def test_beir_brings_every_split_and_checks_each(capsys, beir):
    put(beir / "qrels" / "dev.tsv", "q1\tд1\t1\n")
    folder, _ = bring(capsys, "beir", beir)
    assert (folder / "qrels" / "dev.tsv").read_text(encoding="utf-8") == "query-id\tcorpus-id\tscore\nq1\tд1\t1\n"


def test_beir_names_the_line_of_a_split_that_knows_another_document(capsys, beir):
    put(beir / "qrels" / "train.tsv", "query-id\tcorpus-id\tscore\n\nq1\tнет\t1\n")
    error = refused(capsys, "beir", beir)
    assert f'{beir}/qrels/train.tsv:3: found the document "нет", expected an id of corpus.jsonl' in error


def test_beir_leaves_missing_ids_out_only_when_asked(capsys, beir):
    put(beir / "qrels" / "test.tsv", BEIR_QRELS + "q1\tnone\t1\nq9\tд1\t1\n")
    assert 'found the document "none"' in refused(capsys, "beir", beir)
    folder, report = bring(capsys, "beir", beir, "--leave-out-missing")
    assert (folder / "qrels" / "test.tsv").read_text(encoding="utf-8") == BEIR_QRELS
    assert report == {
        "judgments of documents that the source lacks, left out": 1,
        "judgments of queries that the source lacks, left out": 1,
    }


def test_beir_says_that_a_document_is_its_own_query(capsys, beir):
    put(beir / "corpus.jsonl", [*BEIR_CORPUS, {"_id": "q2", "text": "warranty?"}, {"_id": "q1", "text": "another"}])
    _, report = bring(capsys, "beir", beir)
    assert report == {"documents that are a query themselves (same id and text), kept": 1}


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("corpus.jsonl", [BEIR_CORPUS[0], {"_id": "x"}], 'corpus.jsonl:2: key "text": found nothing'),
        (
            "corpus.jsonl",
            [{"_id": "x", "text": 5}],
            'corpus.jsonl:1: key "text": found a number (5), expected a string',
        ),
        ("corpus.jsonl", [{"_id": True, "text": ""}], 'corpus.jsonl:1: key "_id": found true'),
        ("corpus.jsonl", '{"_id": "1", "text": "a"}\n\n{"_id": "2" "text"}\n', "corpus.jsonl:3: found no JSON"),
        ("corpus.jsonl", b'{"_id": "1", "text": "\xe4"}\n', "corpus.jsonl:1: found the byte 0xe4 that is not UTF-8"),
        ("corpus.jsonl", b"\x1f\x8bbroken", "corpus.jsonl: found "),
        ("corpus.jsonl", '{"_id": "1", "text": "\\ud800"}\n', "corpus.jsonl:1: found half of a surrogate pair"),
        (
            "corpus.jsonl",
            [{"_id": "1", "text": "a", "url": "x", "metadata": {"url": "y"}}],
            'corpus.jsonl:1: key "url": found a string ("x"), expected a string ("y") as in metadata',
        ),
        ("queries.jsonl", [{"_id": "q1", "text": " "}], 'queries.jsonl:1: key "text": found no words'),
        ("qrels/test.tsv", "q1\tд1\tmuch\n", 'qrels/test.tsv:1: found the grade "much"'),
        ("qrels/test.tsv", "q1\tд1\t1\n" + BEIR_QRELS, 'qrels/test.tsv:2: found the grade "score"'),
        ("qrels/test.tsv", "q1\tд1\n", "qrels/test.tsv:1: found 2 columns"),
    ],
)
def test_beir_refuses_by_file_and_line(capsys, beir, file, content, said):
    put(beir / file, content)
    assert f"{beir}/{said}" in refused(capsys, "beir", beir)


def test_an_id_given_twice_is_told_by_both_lines_of_the_source(capsys, beir):
    put(beir / "corpus.jsonl", "\n\n" + "".join(json.dumps(BEIR_CORPUS[1]) + "\n\n" for _ in range(2)))
    error = refused(capsys, "beir", beir)
    assert f'{beir}/corpus.jsonl:5: key "_id": found "2" a second time (first in {beir}/corpus.jsonl:3)' in error


def test_beir_says_which_file_is_missing(capsys, beir):
    (beir / "qrels" / "test.tsv").unlink()
    assert f"{beir}/qrels: found no .tsv file" in refused(capsys, "beir", beir)
    (beir / "queries.jsonl").unlink()
    assert f"{beir}: found no queries.jsonl" in refused(capsys, "beir", beir)
    assert f"{beir}/corpus.jsonl: found a file, expected a folder" in refused(capsys, "beir", beir / "corpus.jsonl")
    assert "found nothing, expected a folder" in refused(capsys, "beir", beir / "нет")


# trec

TREC_QRELS = "1 0 FT-1 1\n1 0 FT-2 -2\n2 0 FT-2 2\n"
CLASSIC = """
<top>
<num> Number: 1
<title> Topic: Насос & труба
 не качает

<desc> Description:
Почему насос не качает?

<narr> Narrative:
Нужна причина.
</top>
<top>
<num> Number: 002
<title> boiler
</top>
"""
XML = """<?xml version="1.0"?>
<topics>
  <!-- <topic number="9"> -->
  <topic number="1" type="faceted"><query>Насос &amp; труба не качает</query>
    <description>Почему насос
    не качает?</description><subtopic number="1">a</subtopic></topic>
  <topic number="2">boiler</topic>
</topics>
"""
DOCS = """<DOC>
<DOCNO> FT-1 </DOCNO>
<HEADLINE>О
насосе</HEADLINE>
<DATE>1</DATE>
<TEXT>
<P>Насос сух &amp; пуст &hyph; да.</P>
x < 5
</TEXT>
</DOC>
<DOC><DOCNO>FT-2</DOCNO>The boiler is cold.
</DOC>
"""
DOCUMENTS = [
    {"_id": "FT-1", "text": "Насос сух & пуст &hyph; да.\nx < 5", "title": "О насосе"},
    {"_id": "FT-2", "text": "The boiler is cold."},
]


@pytest.fixture
def trec(tmp_path):
    source = tmp_path / "trec"
    put(source / "topics.txt", CLASSIC)
    put(source / "qrels.txt", TREC_QRELS)
    put(source / "docs" / "a.sgml", DOCS)
    return source


def test_trec_reads_classic_topics_and_text(capsys, trec):
    folder, report = bring(capsys, "trec", trec)
    assert rows(folder / "corpus.jsonl") == DOCUMENTS
    assert rows(folder / "queries.jsonl") == [
        {
            "_id": "1",
            "text": "Насос & труба не качает",
            "metadata": {"description": "Почему насос не качает?", "narrative": "Нужна причина."},
        },
        {"_id": "2", "text": "boiler"},
    ]
    assert report == {
        "topic numbers without the zeros that the qrels lack too": 1,
        "documents with tags in their text, taken out": 1,
        "documents with <DATE>, left out": 1,
    }


def test_trec_keeps_negative_grades_and_they_score_as_nothing(capsys, trec):
    folder, _ = bring(capsys, "trec", trec)
    assert (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:] == [
        "1\tFT-1\t1",
        "1\tFT-2\t-2",
        "2\tFT-2\t2",
    ]
    measures = perfect(capsys, folder, "--evidence", "all")
    assert (*whole(measures), measures["doc/ndcg_at_10"]) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("description", "Почему насос не качает?"),
        ("both", "Насос & труба не качает Почему насос не качает?"),
        ("narrative", "Нужна причина."),
    ],
)
def test_trec_asks_with_another_field(capsys, trec, field, text):
    put(trec / "topics.txt", CLASSIC.partition("</top>")[0] + "</top>")
    put(trec / "qrels.txt", "1 0 FT-1 1\n")
    folder, _ = bring(capsys, "trec", trec, "--field", field)
    assert [row["text"] for row in rows(folder / "queries.jsonl")] == [text]


def test_trec_says_which_topic_lacks_the_field(capsys, trec):
    error = refused(capsys, "trec", trec, "--field", "description")
    assert f'{trec}/topics.txt:13: found no description of topic "002" (it has: title)' in error


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("topics.xml", XML),
        ("before.txt", f"Topics of a track\n{CLASSIC}"),
        ("fields.xml", '<topic number="1"><a>Насос & труба</a><b>не качает</b></topic><topic id="2">boiler</topic>'),
        ("topics.tsv", "1\tНасос & труба не качает\r\n2\tboiler\r\n"),
        ("queries.jsonl", [{"qid": 1, "query": "Насос & труба не качает"}, {"_id": "2", "text": "boiler"}]),
    ],
)
def test_trec_reads_topics_in_other_forms(capsys, trec, name, content):
    (trec / "topics.txt").unlink()
    put(trec / name, content)
    folder, _ = bring(capsys, "trec", trec)
    assert [(row["_id"], row["text"]) for row in rows(folder / "queries.jsonl")] == [
        ("1", "Насос & труба не качает"),
        ("2", "boiler"),
    ]


def test_trec_joins_files_of_text_plain_or_gzip(capsys, trec):
    first, second = DOCS.split("</DOC>\n")[:2]
    put(trec / "docs" / "a.sgml", first + "</DOC>\n")
    put(trec / "docs" / "b", gzip.compress((second + "</DOC>\n").encode()))
    folder, _ = bring(capsys, "trec", trec)
    assert rows(folder / "corpus.jsonl") == DOCUMENTS


@pytest.mark.parametrize("keys", [("docid", "contents"), ("id", "text"), ("_id", "body"), ("docno", "contents")])
def test_trec_reads_documents_of_json_lines(capsys, trec, keys):
    (trec / "docs" / "a.sgml").unlink()
    found = [{keys[0]: row["_id"], keys[1]: row["text"], "url": "u"} for row in DOCUMENTS]
    put(trec / "docs.jsonl", found)
    folder, _ = bring(capsys, "trec", trec)
    assert rows(folder / "corpus.jsonl") == [
        {"_id": row["_id"], "text": row["text"], "metadata": {"url": "u"}} for row in DOCUMENTS
    ]


def test_trec_knows_documents_of_json_lines_by_the_start_of_a_long_line(capsys, trec):
    (trec / "docs" / "a.sgml").unlink()
    put(trec / "docs.jsonl", [{"id": row["_id"], "text": "слово " * 20_000} for row in DOCUMENTS])
    folder, _ = bring(capsys, "trec", trec)
    assert [len(row["text"]) for row in rows(folder / "corpus.jsonl")] == [120_000, 120_000]


def test_trec_reads_another_encoding_when_told(capsys, trec):
    put(trec / "docs" / "a.sgml", DOCS.encode("koi8-r"))
    put(trec / "topics.txt", CLASSIC.encode("koi8-r"))
    assert "save the file in UTF-8, or name its encoding with --encoding" in refused(capsys, "trec", trec)
    assert 'found "нет", expected the name of an encoding' in refused(capsys, "trec", trec, "--encoding", "нет")
    folder, _ = bring(capsys, "trec", trec, "--encoding", "koi8-r")
    assert rows(folder / "corpus.jsonl") == DOCUMENTS


def test_trec_lists_what_it_found_when_two_files_fit(capsys, trec):
    put(trec / "old.tsv", "1\tнасос\n")
    put(trec / "README", "not a file of the collection\n")
    assert f"{trec}: found old.tsv, topics.txt, expected one file of topics; name it with --topics" in refused(
        capsys, "trec", trec
    )
    _, report = bring(capsys, "trec", trec, "--topics", "topics.txt")
    assert report["files not read"] == 2


def test_trec_takes_every_file_from_a_flag(capsys, trec, monkeypatch):
    put(trec / "second.qrels", TREC_QRELS)
    put(trec / "more.jsonl", [{"id": "x", "text": "y"}])
    assert "found qrels.txt, second.qrels, expected one file of qrels" in refused(capsys, "trec", trec)
    assert "нет: found no such file here or in" in refused(capsys, "trec", trec, "--qrels", "нет")
    error = refused(capsys, "trec", trec, "--qrels", "qrels.txt")
    assert "expected TREC text or JSON Lines, one of the two; name the file or folder with --corpus" in error
    monkeypatch.chdir(trec.parent)
    folder, report = bring(capsys, "trec", Path("trec"), "--qrels", str(trec / "qrels.txt"), "--corpus", "docs")
    assert rows(folder / "corpus.jsonl") == DOCUMENTS
    assert report["files not read"] == 2


def test_trec_leaves_missing_ids_out_only_when_asked(capsys, trec):
    put(trec / "qrels.txt", TREC_QRELS + "2 0 FT-3 1\n7 0 FT-1 1\n")
    assert f'{trec}/qrels.txt:4: found the document "FT-3"' in refused(capsys, "trec", trec)
    _, report = bring(capsys, "trec", trec, "--leave-out-missing")
    assert report["judgments of documents that the source lacks, left out"] == 1
    assert report["judgments of queries that the source lacks, left out"] == 1


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("docs/a.sgml", "<DOC>\n<TEXT>a</TEXT>\n</DOC>\n", "docs/a.sgml:1: found a document without <DOCNO>"),
        ("docs/a.sgml", f"{DOCS}<DOC>\n<DOCNO>3</DOCNO>\n", "docs/a.sgml:13: found a document that does not end"),
        ("docs/a.sgml", f"<DOC>\n<DOCNO>3</DOCNO>\n{DOCS}", "docs/a.sgml:1: found a document that does not end"),
        ("docs/a.sgml", DOCS + DOCS, 'docs/a.sgml:13: key "_id": found "FT-1" a second time'),
        ("topics.txt", "<top>\n<num>1\n<title>a\n</top>\n<top>\n", "topics.txt:5: found a topic that does not end"),
        ("topics.txt", "<top>\n<top>\n<num>1\n</top>\n", "topics.txt:1: found a topic that does not end"),
        ("topics.txt", "<top>\n<title>a\n</top>\n", "topics.txt:1: found a topic without a number"),
        ("topics.txt", "<top>\n<num>1\n</top>\n", 'topics.txt:1: found no title of topic "1" (it has: none)'),
        ("topics.txt", '{"_id": "1", "id": "2", "text": "a"}\n', 'topics.txt:1: found "_id" and "id" as an id'),
        ("docs/a.sgml", '{"id": "1", "text": "a", "body": "b"}\n', 'docs/a.sgml:1: found "text" and "body" as a text'),
        ("docs/a.sgml", '{"id": "1"}\n', "docs/a.sgml:1: found nothing as a text"),
    ],
)
def test_trec_refuses_by_file_and_line(capsys, trec, file, content, said):
    put(trec / file, content)
    assert f"{trec}/{said}" in refused(capsys, "trec", trec)


def test_trec_names_a_line_of_topics_without_a_text(capsys, trec):
    put(trec / "topics.txt", "1\tнасос\n2\t \n")
    assert f"{trec}/topics.txt:2: found 2 columns, expected 2 that are not empty" in refused(capsys, "trec", trec)


def test_trec_says_that_a_kind_is_missing(capsys, trec):
    (trec / "qrels.txt").unlink()
    assert f"{trec}: found none, expected one file of qrels; name it with --qrels" in refused(capsys, "trec", trec)


# hotpotqa

RIVER = ["The Ob is a river.", " It is long.", " ", " It ends in a gulf."]
TOWN = ["Сургут стоит на Оби.", " Он велик."]
HOTPOT = [
    {
        "_id": "a1",
        "question": "How long is the river of Сургут?",
        "answer": "long",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Сургут", 0], ["Ob", 1]],
        "context": [["Ob", RIVER], ["Сургут", TOWN], ["Empty", []]],
    },
    {
        "_id": "a2",
        "question": "Where does it end?",
        "answer": "in a gulf",
        "supporting_facts": [["Ob", 9], ["Ob", 0], ["Ob", 0], ["Ob", 2]],
        "context": [["Ob", ["Another text."]], ["Ob (2)", ["A third."]]],
    },
]
HOTPOT_TRUTH = [
    {
        "query_id": "a1",
        "alternatives": [
            [
                {"doc_id": "Сургут", "start": 0, "end": 20, "quote": "Сургут стоит на Оби."},
                {"doc_id": "Ob", "start": 19, "end": 30, "quote": "It is long."},
            ]
        ],
        "answer": {"text": "long"},
    },
    {
        "query_id": "a2",
        "alternatives": [[{"doc_id": "Ob (2)", "start": 0, "end": 13, "quote": "Another text."}]],
        "answer": {"text": "in a gulf"},
    },
]


def hugging_face(record):
    """The same record as the datasets library writes it."""
    facts, context = record["supporting_facts"], record["context"]
    return {
        **{key: value for key, value in record.items() if key != "_id"},
        "id": record["_id"],
        "supporting_facts": {"title": [title for title, _ in facts], "sent_id": [number for _, number in facts]},
        "context": {"title": [title for title, _ in context], "sentences": [found for _, found in context]},
    }


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(HOTPOT, ensure_ascii=False),
        "\ufeff" + json.dumps(HOTPOT, indent=1).replace("\n", "\r\n"),
        [hugging_face(record) for record in HOTPOT],
        json.dumps([hugging_face(record) for record in HOTPOT]),
    ],
    ids=["official", "indented", "hugging face lines", "hugging face list"],
)
def test_hotpotqa_makes_supporting_sentences_facts(capsys, tmp_path, content):
    source = put(tmp_path / "dev.json", content)
    folder, report = bring(capsys, "hotpotqa", source)
    assert rows(folder / "corpus.jsonl") == [
        {"_id": "Ob", "title": "Ob", "text": "The Ob is a river. It is long.  It ends in a gulf."},
        {"_id": "Сургут", "title": "Сургут", "text": "Сургут стоит на Оби. Он велик."},
        {"_id": "Empty", "title": "Empty", "text": ""},
        {"_id": "Ob (2)", "title": "Ob", "text": "Another text."},
        {"_id": "Ob (2) (2)", "title": "Ob (2)", "text": "A third."},
    ]
    assert rows(folder / "queries.jsonl") == [
        {"_id": "a1", "text": "How long is the river of Сургут?", "cohorts": {"type": "bridge", "level": "hard"}},
        {"_id": "a2", "text": "Where does it end?"},
    ]
    assert rows(folder / "ground_truth.jsonl") == HOTPOT_TRUTH
    assert report == {"supporting sentences that the paragraph does not have, left out": 2}
    assert whole(perfect(capsys, folder)) == (1.0, 1.0)


def test_hotpotqa_names_the_query_of_a_sentence_that_is_not_there(capsys, tmp_path):
    source = put(tmp_path / "dev.json", json.dumps(HOTPOT))
    assert main(["dataset", "import", "hotpotqa", str(source), str(tmp_path / "out")]) == 0
    assert (
        "  supporting sentences that the paragraph does not have, left out: 2 "
        f'(first {source}[1], query "a2", "Ob" sentence 9)' in capsys.readouterr().out
    )


def test_hotpotqa_puts_blanks_where_sentences_bring_none(capsys, tmp_path):
    record = HOTPOT[0] | {"context": [["Ob", ["One.", "Два."]]], "supporting_facts": [["Ob", 1]]}
    folder, _ = bring(capsys, "hotpotqa", put(tmp_path / "dev.json", [record]))
    assert rows(folder / "corpus.jsonl")[0]["text"] == "One. Два."
    assert rows(folder / "ground_truth.jsonl")[0]["alternatives"] == [
        [{"doc_id": "Ob", "start": 5, "end": 9, "quote": "Два."}]
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"supporting_facts": [["Нет", 0]]}, "questions with a supporting paragraph that is not there, left out"),
        (
            {"context": [["Ob", RIVER], ["Ob", TOWN]], "supporting_facts": [["Ob", 0]]},
            "questions with a supporting paragraph that stands there with several texts, left out",
        ),
        ({"supporting_facts": []}, "questions without any supporting sentence, left out"),
    ],
)
def test_hotpotqa_leaves_out_questions_that_nobody_can_judge(capsys, tmp_path, change, said):
    source = put(tmp_path / "dev.jsonl", [HOTPOT[0], HOTPOT[0] | {"_id": "a3"} | change])
    folder, report = bring(capsys, "hotpotqa", source)
    assert [row["_id"] for row in rows(folder / "queries.jsonl")] == ["a1"]
    assert report == {said: 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"question": None}, '[1]: key "question": found null'),
        ({"supporting_facts": None}, '[1]: key "supporting_facts": found null, expected a list of [title, sent_id]'),
        ({"supporting_facts": [["Ob"]]}, '[1]: key "supporting_facts[0]": found a list, expected [title, sent_id]'),
        ({"supporting_facts": [["Ob", "1"]]}, '[1]: key "supporting_facts": found a string ("1"), expected a whole'),
        ({"context": [["", []]]}, '[1]: key "context[0]": found a string (""), expected a title'),
        ({"context": [["Ob", "text"]]}, '[1]: key "context[0]": found a string ("text"), expected a list of sentences'),
        ({"context": {"title": ["a"], "sentences": []}}, '[1]: key "context.sentences": found 0 of them, expected 1'),
        ({"id": "b"}, '[1]: found "_id" and "id" as an id'),
    ],
)
def test_hotpotqa_refuses_by_record_and_key(capsys, tmp_path, change, said):
    source = put(tmp_path / "dev.json", json.dumps([HOTPOT[0], HOTPOT[0] | {"_id": "a2"} | change]))
    assert f"{source}{said}" in refused(capsys, "hotpotqa", source)


def test_hotpotqa_names_the_line_of_broken_json(capsys, tmp_path):
    source = put(tmp_path / "dev.json", '[{"_id": "a"},\n {"_id" "b"}]\n')
    assert f"{source}:2: found no JSON from column 9" in refused(capsys, "hotpotqa", source)
    put(source, "[[]]")
    assert f"{source}[0]: found a list, expected an object" in refused(capsys, "hotpotqa", source)
    put(source, '[{"_id": "a", "_id": "b"}]')
    assert f'{source}: found the key "_id" twice' in refused(capsys, "hotpotqa", source)


def test_a_question_given_twice_is_told_by_both_records(capsys, tmp_path):
    source = put(tmp_path / "dev.json", json.dumps([HOTPOT[0], HOTPOT[0]]))
    error = refused(capsys, "hotpotqa", source)
    assert f'{source}[1]: key "_id": found "a1" a second time (first in {source}[0])' in error


# scifact

ABSTRACTS = [
    {"doc_id": 10, "title": "Яблоки", "abstract": ["Apples float. ", "Груши тонут.", "Nobody knows why."]},
    {"doc_id": 11, "title": "Plums", "abstract": ["Plums sink."], "structured": False},
]


def rationale(*sentences, label="SUPPORT"):
    return {"sentences": list(sentences), "label": label}


CLAIMS = [
    {
        "id": 1,
        "claim": "Яблоки плавают.",
        "evidence": {"10": [rationale(0, 2), rationale(1), rationale(2, 0)], "11": [rationale(0, label="CONTRADICT")]},
        "cited_doc_ids": [11],
    },
    {"id": 2, "claim": "Plums float.", "evidence": {}, "cited_doc_ids": [11, 10]},
    {"id": 3, "claim": "Cited by nobody.", "evidence": {}, "cited_doc_ids": []},
    {"id": 5, "claim": "Wrong.", "evidence": {"11": [rationale(7)]}},
    {"id": 4, "claim": "Pears.", "evidence": {"10": [rationale(0, 1), rationale(1), rationale(3)]}},
]


@pytest.fixture
def scifact(tmp_path):
    put(tmp_path / "data" / "corpus.jsonl", ABSTRACTS)
    put(tmp_path / "data" / "claims_dev.jsonl", CLAIMS)
    return tmp_path / "data"


def test_scifact_makes_every_rationale_an_alternative_of_one_unit(capsys, scifact):
    folder, report = bring(capsys, "scifact", scifact)
    assert rows(folder / "corpus.jsonl") == [
        {"_id": "10", "title": "Яблоки", "text": "Apples float.  Груши тонут. Nobody knows why."},
        {"_id": "11", "title": "Plums", "text": "Plums sink."},
    ]
    pears = {"doc_id": "10", "start": 15, "end": 27, "quote": "Груши тонут."}
    assert rows(folder / "ground_truth.jsonl") == [
        {
            "query_id": "1",
            "alternatives": [
                [{"doc_id": "10", "spans": [[0, 13], [28, 45]]}],
                [pears],
                [{"doc_id": "11", "start": 0, "end": 11, "quote": "Plums sink."}],
            ],
            "relevant": [{"doc_id": "11", "grade": 1}, {"doc_id": "10", "grade": 1}],
        },
        {"query_id": "2", "relevant": [{"doc_id": "11", "grade": 1}, {"doc_id": "10", "grade": 1}]},
        {"query_id": "3"},
        {"query_id": "5", "relevant": [{"doc_id": "11", "grade": 1}]},
        {"query_id": "4", "alternatives": [[pears]], "relevant": [{"doc_id": "10", "grade": 1}]},
    ]
    assert report == {
        "rationales with a sentence that the abstract does not have, left out": 2,
        "rationales that hold all sentences of another, left out": 1,
    }


def test_scifact_keeps_labels_as_cohorts_and_claims_without_evidence_as_unanswerable(capsys, scifact):
    folder, _ = bring(capsys, "scifact", scifact)
    assert rows(folder / "queries.jsonl") == [
        {"_id": "1", "text": "Яблоки плавают.", "cohorts": {"label": "CONTRADICT and SUPPORT"}},
        {
            "_id": "2",
            "text": "Plums float.",
            "cohorts": {"label": "NOT_ENOUGH_INFO"},
            "answerable": False,
            "why": "absent",
        },
        {
            "_id": "3",
            "text": "Cited by nobody.",
            "cohorts": {"label": "NOT_ENOUGH_INFO"},
            "answerable": False,
            "why": "absent",
        },
        {"_id": "5", "text": "Wrong.", "cohorts": {"label": "SUPPORT"}},
        {"_id": "4", "text": "Pears.", "cohorts": {"label": "SUPPORT"}},
    ]


def test_scifact_round_trip_is_perfect(capsys, scifact):
    folder, _ = bring(capsys, "scifact", scifact)
    assert whole(perfect(capsys, folder)) == (1.0, 1.0)


def test_scifact_asks_which_claims(capsys, scifact):
    put(scifact / "claims_train.jsonl", CLAIMS[:1])
    error = refused(capsys, "scifact", scifact)
    assert "found claims_dev.jsonl, claims_train.jsonl, expected one file of claims; name it with --claims" in error
    folder, _ = bring(capsys, "scifact", scifact, "--claims", "claims_train.jsonl")
    assert len(rows(folder / "queries.jsonl")) == 1


@pytest.mark.parametrize(
    ("file", "row", "said"),
    [
        ("claims_dev.jsonl", {"id": 1, "claim": "a"}, 'key "evidence": found nothing'),
        ("claims_dev.jsonl", {"id": 1, "claim": "a", "evidence": {"12": []}}, 'key "evidence": found a string ("12")'),
        (
            "claims_dev.jsonl",
            {"id": 1, "claim": "a", "evidence": {"10": [{"sentences": [0]}]}},
            'key "evidence.10[0].label": found nothing',
        ),
        (
            "claims_dev.jsonl",
            {"id": 1, "claim": "a", "evidence": {"10": [rationale("0")]}},
            "key \"evidence.10[0].sentences\": found ['0'], expected a list of sentence numbers",
        ),
        (
            "claims_dev.jsonl",
            {"id": 1, "claim": "a", "evidence": {"10": [rationale()]}},
            'key "evidence.10[0].sentences": found a list',
        ),
        ("claims_dev.jsonl", {"id": 1, "evidence": {}}, 'key "claim": found nothing'),
        ("claims_dev.jsonl", {"claim": "a", "evidence": {}}, 'key "id": found nothing'),
        (
            "claims_dev.jsonl",
            {"id": 1, "claim": "a", "evidence": {}, "cited_doc_ids": [99]},
            'key "relevant[0].doc_id": found a string ("99"), expected an id of corpus.jsonl',
        ),
        ("corpus.jsonl", {"doc_id": 10, "title": "a", "abstract": "b"}, 'key "abstract": found a string ("b")'),
        ("corpus.jsonl", {"doc_id": 10, "title": "a", "abstract": [1]}, 'key "abstract": found something else'),
        ("corpus.jsonl", {"doc_id": 10, "abstract": []}, 'key "title": found nothing'),
    ],
)
def test_scifact_refuses_by_file_line_and_key(capsys, scifact, file, row, said):
    put(scifact / file, [row])
    assert f"{scifact}/{file}:1: {said}" in refused(capsys, "scifact", scifact)


# squad

CONTEXT = "Река Обь длинна: 3650 км 🚣. Она впадает в губу."


def answer(text, start=None):
    return {"text": text, "answer_start": CONTEXT.find(text) if start is None else start}


def question(key, *answers, **rest):
    return {"id": key, "question": f"Вопрос {key}?", "answers": list(answers), **rest}


SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "Обь",
            "paragraphs": [
                {"context": "First.", "qas": [question("q1", {"text": "First", "answer_start": 0})]},
                {
                    "context": CONTEXT,
                    "qas": [
                        question("q2", answer("3650 км"), answer("3650"), answer("3650"), answer("Обь")),
                        question("q3", is_impossible=True, plausible_answers=[answer("3650")]),
                        question("q4", answer("в губу"), answer("губу", 40)),
                        question("q5", answer("губу", -5), answer("🚣")),
                    ],
                },
                {"context": "First.", "qas": []},
            ],
        }
    ],
}


def test_squad_makes_every_smallest_answer_an_alternative(capsys, tmp_path):
    source = put(tmp_path / "dev.json", json.dumps(SQUAD))
    folder, report = bring(capsys, "squad", source)
    assert rows(folder / "corpus.jsonl") == [
        {"_id": "Обь-0", "title": "Обь", "text": "First."},
        {"_id": "Обь-1", "title": "Обь", "text": CONTEXT},
    ]
    assert rows(folder / "queries.jsonl") == [
        {"_id": "q1", "text": "Вопрос q1?"},
        {"_id": "q2", "text": "Вопрос q2?"},
        {"_id": "q3", "text": "Вопрос q3?", "answerable": False, "why": "absent"},
        {"_id": "q4", "text": "Вопрос q4?"},
        {"_id": "q5", "text": "Вопрос q5?"},
    ]
    assert rows(folder / "ground_truth.jsonl") == [
        {
            "query_id": "q1",
            "alternatives": [[{"doc_id": "Обь-0", "start": 0, "end": 5, "quote": "First"}]],
            "answer": {"text": "First"},
        },
        {
            "query_id": "q2",
            "alternatives": [
                [{"doc_id": "Обь-1", "start": 17, "end": 21, "quote": "3650"}],
                [{"doc_id": "Обь-1", "start": 5, "end": 8, "quote": "Обь"}],
            ],
            "answer": {"text": "3650"},
        },
        {"query_id": "q3"},
        {
            "query_id": "q4",
            "alternatives": [[{"doc_id": "Обь-1", "start": 40, "end": 46, "quote": "в губу"}]],
            "answer": {"text": "в губу"},
        },
        {"query_id": "q5", "relevant": [{"doc_id": "Обь-1", "grade": 1}]},
    ]
    assert report == {
        "answers that hold a smaller answer, left out": 1,
        "plausible answers to unanswerable questions, left out": 1,
        "answers that do not stand at their offset, left out": 2,
        "answers without any letter or digit, left out": 1,
        "questions without an answer in the paragraph, kept with its document alone": 1,
        "paragraphs that their article holds twice, taken as one": 1,
    }
    assert whole(perfect(capsys, folder)) == (1.0, 1.0)


def test_squad_numbers_paragraphs_through_articles_of_one_title(capsys, tmp_path):
    other, again = ({"title": title, "paragraphs": [{"context": "Another.", "qas": []}]} for title in ("Енисей", "Обь"))
    source = put(tmp_path / "dev.json", json.dumps({"data": [*SQUAD["data"], other, again]}))
    folder, _ = bring(capsys, "squad", source)
    assert [row["_id"] for row in rows(folder / "corpus.jsonl")] == ["Обь-0", "Обь-1", "Енисей-0", "Обь-2"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", ": found a list, expected one JSON object"),
        ('{"data":\n [}', ":2: found no JSON from column 3"),
        ("{}", ': key "data": found nothing, expected a list'),
        ('{"data": [{"title": "a"}]}', ': key "data[0].paragraphs": found nothing'),
        ('{"data": [{"paragraphs": [{"context": "a", "qas": []}]}]}', ': key "data[0].title": found nothing'),
        (
            '{"data": [{"title": "a", "paragraphs": [{"context": "a", "qas": [{"id": "1", "question": "a"}]}]}]}',
            ': key "data[0].paragraphs[0].qas[0].answers": found nothing',
        ),
        (
            json.dumps(
                {"data": [{"title": "a", "paragraphs": [{"context": "a", "qas": [question("1", {"text": "a"})]}]}]}
            ),
            ': key "data[0].paragraphs[0].qas[0].answers[0].answer_start": found nothing',
        ),
    ],
)
def test_squad_refuses_by_path_of_keys(capsys, tmp_path, content, said):
    source = put(tmp_path / "dev.json", content)
    assert f"{source}{said}" in refused(capsys, "squad", source)


def test_squad_names_the_place_of_a_question_given_twice(capsys, tmp_path):
    paragraph = {"context": CONTEXT, "qas": [question("q1", answer("Обь")), question("q1", answer("Обь"))]}
    source = put(tmp_path / "dev.json", json.dumps({"data": [{"title": "a", "paragraphs": [paragraph]}]}))
    place = f"{source} data[0].paragraphs[0].qas"
    assert f'{place}[1]: key "_id": found "q1" a second time (first in {place}[0])' in refused(capsys, "squad", source)


# ragas

LIBRARY = [
    {"_id": "л1", "text": "Котёл греет воду? Греет. Насос гонит воду. Насос гонит воду.", "author": "я"},
    {"_id": 2, "text": "The valve is open. The pipe is cold. Греет?", "title": "Pipes"},
]
SAMPLES = [
    {
        "user_input": "Что греет?",
        "reference": "Котёл",
        "reference_context_ids": ["л1", 2],
        "reference_contexts": ["Котёл греет воду?", "The pipe is hot."],
        "retrieved_contexts": ["x"],
        "synthesizer_name": "multi_hop",
    },
    {"user_input": "Is it cold?", "reference_contexts": ["<1-hop>\n\nThe pipe is cold.", "<2-hop>\n\nКотёл"]},
    {"user_input": "Что гонит?", "reference_contexts": ["Насос гонит воду.", "Котёл"]},
    {"user_input": "Оба?", "reference_contexts": ["Греет"]},
    {"user_input": [{"content": "hi", "type": "human"}]},
    {"user_input": "Both?", "id": "свой", "reference_context_ids": [2, "2"], "reference_contexts": ["The valve"]},
]
RAGAS_TRUTH = [
    {
        "query_id": "q1",
        "alternatives": [[{"doc_id": "л1", "start": 0, "end": 17, "quote": "Котёл греет воду?"}, {"doc_id": "2"}]],
        "answer": {"text": "Котёл"},
    },
    {
        "query_id": "q2",
        "alternatives": [
            [
                {"doc_id": "2", "start": 19, "end": 36, "quote": "The pipe is cold."},
                {"doc_id": "л1", "start": 0, "end": 5, "quote": "Котёл"},
            ]
        ],
    },
    {"query_id": "q3"},
    {"query_id": "q4"},
    {"query_id": "свой", "alternatives": [[{"doc_id": "2"}]]},
]


@pytest.fixture
def library(tmp_path):
    return put(tmp_path / "docs.jsonl", LIBRARY)


def test_ragas_finds_contexts_in_the_corpus(capsys, tmp_path, library):
    source = put(tmp_path / "samples.jsonl", SAMPLES)
    folder, report = bring(capsys, "ragas", source, "--corpus", str(library))
    assert rows(folder / "corpus.jsonl") == [
        {"_id": "л1", "text": LIBRARY[0]["text"], "metadata": {"author": "я"}},
        {"_id": "2", "text": LIBRARY[1]["text"], "title": "Pipes"},
    ]
    assert rows(folder / "queries.jsonl") == [
        {"_id": "q1", "text": "Что греет?", "cohorts": {"synthesizer_name": "multi_hop"}},
        {"_id": "q2", "text": "Is it cold?"},
        {"_id": "q3", "text": "Что гонит?"},
        {"_id": "q4", "text": "Оба?"},
        {"_id": "свой", "text": "Both?"},
    ]
    assert rows(folder / "ground_truth.jsonl") == RAGAS_TRUTH
    assert report == {
        "samples with retrieved_contexts, which is not kept": 1,
        "contexts that their document does not hold exactly once, evidence is the whole document": 1,
        "contexts with <1-hop> or the like before them, taken off": 2,
        "contexts that the corpus does not hold exactly once, their samples have no alternatives": 2,
        "samples without evidence, kept without alternatives": 2,
        "conversations of several turns, left out": 1,
        "samples with more or fewer contexts than ids, evidence is whole documents": 1,
    }
    assert whole(perfect(capsys, folder)) == (1.0, 1.0)


def test_ragas_takes_any_document_when_told(capsys, tmp_path, library):
    source = put(tmp_path / "samples.json", json.dumps(SAMPLES[:1]))
    folder, _ = bring(capsys, "ragas", source, "--corpus", str(library), "--any")
    first, second = RAGAS_TRUTH[0]["alternatives"][0]
    assert rows(folder / "ground_truth.jsonl")[0]["alternatives"] == [[first], [second]]


@pytest.mark.parametrize("written", [repr, json.dumps], ids=["as Python", "as JSON"])
def test_ragas_reads_lists_in_cells_of_csv(capsys, tmp_path, library, written):
    source = tmp_path / "samples.csv"
    with source.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, ["user_input", "reference", "reference_context_ids", "reference_contexts"])
        table.writeheader()
        for sample in SAMPLES[:2]:
            cells = {key: sample.get(key, "") for key in table.fieldnames}
            table.writerow({key: written(cell) if isinstance(cell, list) else cell for key, cell in cells.items()})
    folder, _ = bring(capsys, "ragas", source, "--corpus", str(library))
    assert rows(folder / "ground_truth.jsonl") == RAGAS_TRUTH[:2]


@pytest.mark.parametrize("between", [",", ";", "\t"])
def test_ragas_reads_csv_as_office_programs_of_each_country_write_it(capsys, tmp_path, between):
    library = put(tmp_path / "docs.jsonl", [{"_id": "a", "text": "один, два; три"}])
    cells = [["user_input", "reference_contexts"], ["Что?", '"[""один, два; три""]"']]
    source = put(tmp_path / "samples.csv", "".join(between.join(row) + "\n" for row in cells))
    folder, _ = bring(capsys, "ragas", source, "--corpus", str(library))
    assert rows(folder / "ground_truth.jsonl")[0]["alternatives"][0][0]["quote"] == "один, два; три"


def test_ragas_reads_long_cells_of_csv_and_leaves_the_limit_as_it_was(capsys, tmp_path):
    long = "вода " * 40_000
    library = put(tmp_path / "docs.jsonl", [{"_id": "л1", "text": long}])
    source = put(tmp_path / "samples.csv", f'user_input,reference_contexts\nЧто?,"[""{long}""]"\n')
    limit = 131_072
    csv.field_size_limit(limit)
    folder, _ = bring(capsys, "ragas", source, "--corpus", str(library))
    assert rows(folder / "ground_truth.jsonl")[0]["alternatives"][0][0]["end"] == len(long)
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([{"reference": "a"}], ':1: key "user_input": found nothing'),
        (
            [{"user_input": "a", "reference_context_ids": ["л11"]}],
            ':1: key "reference_context_ids[0]": found a string ("л11"), expected an id of the corpus; '
            'did you mean "л1"?',
        ),
        ([{"user_input": "a", "reference_context_ids": [1.5]}], ':1: key "reference_context_ids[0]": found a number'),
        ([{"user_input": "a", "reference_contexts": "b"}], ':1: key "reference_contexts": found a string ("b")'),
        ("user_input,reference\na,b\na,b,c\n", ":3: found 3 cells, expected 2 as in the header"),
        ("user_input,id,id\na,1,2\n", ':1: found the column "id" twice'),
        ("user_input\n", ", as queries.jsonl: found no query, expected at least one"),
        ("user_input,reference\na\n", ":2: found 1 cells, expected 2 as in the header"),
        ('user_input\n"a" b\n', ":2: found "),
        ("user_input,reference_contexts\na,['\\ud800']\n", ":2: found half of a surrogate pair"),
        ('{"user_input": "a"}\n{"user_input" "a"}\n', ":2: found no JSON"),
    ],
)
def test_ragas_refuses_by_file_line_and_key(capsys, tmp_path, library, content, said):
    source = put(tmp_path / "samples.x", content)
    assert f"{source}{said}" in refused(capsys, "ragas", source, "--corpus", str(library))


def test_ragas_needs_a_corpus(capsys, tmp_path):
    source = put(tmp_path / "samples.jsonl", SAMPLES)
    assert f"{source}: found no corpus, expected one" in refused(capsys, "ragas", source)
    assert "нет.jsonl: found no such file here or in" in refused(capsys, "ragas", source, "--corpus", "нет.jsonl")


# all formats


def test_the_formats_are_those_that_read_a_source(capsys):
    with pytest.raises(SystemExit):
        main(["dataset", "import", "none", "x", "y"])
    assert re.findall(r"'(\w+)'", capsys.readouterr().err)[1:] == [
        "beir", "folder", "hotpotqa", "ragas", "scifact", "squad", "trec",
    ]  # fmt: skip


def test_a_folder_that_holds_something_is_refused_before_anything_is_read(capsys, tmp_path):
    put(tmp_path / "out" / "notes.txt", "mine")
    assert main(["dataset", "import", "squad", str(tmp_path / "none"), str(tmp_path / "out")]) == 2
    assert f"{tmp_path}/out: found something there, expected no such folder yet" in capsys.readouterr().err
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_an_empty_folder_may_become_the_dataset(capsys, beir):
    (beir.parent / "готово").mkdir()
    folder, _ = bring(capsys, "beir", beir)
    assert (folder / "corpus.jsonl").is_file()


@pytest.mark.parametrize("format", FORMATS)
def test_a_source_that_is_not_there_is_a_sentence(capsys, tmp_path, format):
    flags = ["--corpus", str(put(tmp_path / "docs.jsonl", LIBRARY))] if format == "ragas" else []
    error = refused(capsys, format, tmp_path / "нет", *flags)
    assert f"{tmp_path}/нет: found " in error
    assert "Traceback" not in error


def test_help_shows_every_format_with_its_line(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["dataset", "import", "--help"])
    assert stopped.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    found = {module.__name__.rpartition(".")[2]: module for module in modules(importer) if hasattr(module, "read")}
    assert set(FORMATS) <= set(found)
    for name, module in found.items():
        assert f"{name} {module.__doc__.strip().splitlines()[0]}" in shown


@pytest.mark.parametrize("format", FORMATS)
def test_help_of_a_format_says_what_the_source_must_look_like(capsys, format):
    with pytest.raises(SystemExit) as stopped:
        main(["dataset", "import", format, "--help"])
    assert stopped.value.code == 0
    assert "SOURCE is a " in capsys.readouterr().out


def test_the_report_is_sentences_unless_json_is_asked_for(capsys, trec):
    assert main(["dataset", "import", "trec", str(trec), str(trec.parent / "out")]) == 0
    assert capsys.readouterr().out == (
        f"{trec.parent}/out: 2 documents, 2 queries\n"
        "left out or changed:\n"
        f"  topic numbers without the zeros that the qrels lack too: 1 (first {trec}/topics.txt:13)\n"
        f'  documents with tags in their text, taken out: 1 (first {trec}/docs/a.sgml:1, "FT-1")\n'
        f'  documents with <DATE>, left out: 1 (first {trec}/docs/a.sgml:1, "FT-1")\n'
        f"next: `python -m ablate dataset validate {trec.parent}/out`\n"
    )


def test_rows_are_taken_one_after_another(tmp_path):
    """A corpus streams: the second document is not asked for before the first is written."""
    written = []

    def corpus():
        for number in range(3):
            yield Row(f"s:{number}", {"_id": str(number), "text": "x" * 100_000})
            written.append(sum(path.stat().st_size for path in tmp_path.rglob("corpus.jsonl")))

    asked = [Row("s", {"_id": "q", "text": "?"})]
    deliver(Imported(corpus(), Report(), asked, ground_truth=[]), tmp_path, tmp_path / "d")
    assert 0 < written[0] < written[1] < written[2]


def test_a_corpus_alone_is_written_and_checked(tmp_path):
    report = Report()
    found = deliver(Imported([Row("a.md", {"_id": "a", "text": " "})], report), tmp_path, tmp_path / "d")
    assert found.counts == {"documents": 1, "documents_empty": 1}
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["corpus.jsonl"]
    with pytest.raises(DatasetError, match=r'^b\.md: key "_id": found "a" a second time \(first in a\.md\)'):
        deliver(
            Imported([Row("a.md", {"_id": "a", "text": ""}), Row("b.md", {"_id": "a", "text": ""})], report),
            tmp_path,
            tmp_path / "e",
        )
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize("key", ["a\tb", "a\nb", " "])
def test_an_id_that_qrels_cannot_hold_is_refused(tmp_path, key):
    grades = {"test": [Grade("q.tsv:7", "q", key, 1)]}
    asked = [Row("s", {"_id": "q", "text": "?"})]
    with pytest.raises(DatasetError, match=r"^q\.tsv:7: found the id "):
        deliver(Imported([Row("s", {"_id": key, "text": ""})], Report(), asked, qrels=grades), tmp_path, tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_a_sentence(capsys, beir):
    put(beir.parent / "file", "mine")
    assert main(["dataset", "import", "beir", str(beir), str(beir.parent / "file" / "out")]) == 2
    error = capsys.readouterr().err
    assert f"{beir.parent}/file/out: found " in error
    assert "expected a place to write to; choose another" in error


def test_the_current_folder_may_become_the_dataset(capsys, beir, monkeypatch):
    (beir.parent / "empty").mkdir()
    monkeypatch.chdir(beir.parent / "empty")
    assert main(["dataset", "import", "beir", str(beir), "."]) == 0
    assert (beir.parent / "empty" / "queries.jsonl").is_file()


def test_several_problems_are_told_a_line_each(capsys, beir):
    put(beir / "corpus.jsonl", BEIR_CORPUS * 8)
    error = refused(capsys, "beir", beir).splitlines()
    assert error[0].startswith(f'ablate: {beir}/corpus.jsonl:3: key "_id": found "д1" a second time')
    assert error[9].startswith(f'{beir}/corpus.jsonl:12: key "_id": found "2" a second time')
    assert error[10:] == ["and 4 more"]


def test_a_failure_half_way_leaves_nothing(tmp_path):
    def corpus():
        yield Row("s:1", {"_id": "1", "text": "a"})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deliver(Imported(corpus(), Report()), tmp_path, tmp_path / "d")
    assert list(tmp_path.iterdir()) == []
