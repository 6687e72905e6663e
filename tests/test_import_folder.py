"""A folder becomes a corpus: every file is told of, and what is said about a file is taken whole or refused."""

import csv
import io
import json
import os
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from cli import ablate
from papers import docx, grid, line, paragraph, pdf, picture
from scipy.stats import binomtest

from ablate.dataset import manifest
from ablate.extraction.sheet import interval, marks

NOTE = (
    "---\ntitle: Отпуск\nacl: {allow: ['group:кадры'], deny: [anna]}\nyear: 2024\n---\n# Порядок\n\nПишите заявление.\n"
)


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


def put(folder, **files):
    """Files by name, with __ for a slash and _ for a dot."""
    for key, content in files.items():
        write(folder, key.replace("__", "/").replace("_", "."), content)


def write(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def imported(*flags):
    return ablate("dataset", "import", "folder", "source", "out", *flags)


def corpus(folder="out"):
    return [json.loads(row) for row in Path(folder, "corpus.jsonl").read_text("utf-8").splitlines()]


def report(folder="out"):
    return {
        row["path"]: row for row in csv.DictReader(io.StringIO(Path(folder, "import-report.csv").read_text("utf-8")))
    }


def test_a_text_becomes_a_document_with_what_its_front_matter_says(source):
    put(source, кадры__отпуск_md=NOTE)
    assert imported().code == 0
    assert corpus() == [
        {
            "_id": "кадры/отпуск.md",
            "title": "Отпуск",
            "text": "# Порядок\n\nПишите заявление.\n",
            "metadata": {
                "source_path": "кадры/отпуск.md",
                "source_type": "md",
                "source_bytes": len(NOTE.encode()),
                "year": 2024,
            },
            "acl": {"allow": ["group:кадры"], "deny": ["anna"]},
        }
    ]


def test_the_title_is_that_of_the_front_matter_the_heading_the_page_or_the_file(source):
    pytest.importorskip("mammoth")
    put(source, a_md="---\ntitle: Первый\n---\n# Нет\n", b_md="# **Второй**\n", c_html="<title>Третий</title><p>слово")
    put(
        source,
        d_docx=docx(paragraph("слово"), title="Четвёртый"),
        пятый_txt="слово",
        f_html="<title>Нет</title><h2>Шестой",
    )
    imported()
    assert [row["title"] for row in corpus()] == ["Первый", "Второй", "Третий", "Четвёртый", "Шестой", "пятый"]


def test_every_file_is_told_of_with_its_reason(source, monkeypatch):
    put(source, a_md="# А\n\n| а | б |\n| - | - |\n| 1 | 2 |\n", пусто_txt="  \n", старый_txt="Привет".encode("cp1251"))
    put(source, b_xlsx="x", locked_md="слово", deep__c_MD="слово", metadata_csv="path,allow\na.md,u\n")
    write(source, ".git/config", "x")
    write(source, ".hidden.md", "слово")
    write(source, "~$doc.docx", "x")
    write(source.parent, "outside.md", "тайна")
    (source / "out.md").symlink_to(source.parent / "outside.md")
    (source / "up").symlink_to(source.parent)
    (source / "loop").symlink_to(source / "deep")
    (source / "nowhere.md").symlink_to("none")
    (source / "same.md").symlink_to("deep/c.MD")
    os.mkfifo(source / "pipe.txt")
    locked(monkeypatch, source / "locked.md")
    said = imported()
    assert said.code == 1
    assert {path: row["status"] for path, row in report().items()} == {
        ".git/": "hidden",
        ".hidden.md": "hidden",
        "a.md": "imported",
        "b.xlsx": "unsupported",
        "deep/c.MD": "imported",
        "locked.md": "failed",
        "loop": "link",
        "metadata.csv": "sidecar",
        "nowhere.md": "link",
        "out.md": "link",
        "pipe.txt": "unsupported",
        "same.md": "imported",
        "up": "link",
        "~$doc.docx": "hidden",
        "пусто.txt": "empty",
        "старый.txt": "failed",
    }
    assert all(bool(row["reason"]) == (row["status"] != "imported") for row in report().values())
    row = report()["a.md"]
    assert [row[key] for key in ("characters", "headings", "tables", "pages", "encoding")] == [
        "35",
        "1",
        "1",
        "",
        "utf-8",
    ]
    assert [row["_id"] for row in corpus()] == ["a.md", "deep/c.MD", "same.md", "пусто.txt"]
    assert "тайна" not in Path("out/corpus.jsonl").read_text("utf-8")
    assert "старый.txt: failed: found the byte 0xcf at 0 that is not utf-8" in said.out
    assert "locked.md: failed: found Permission denied, expected a file to read" in said.out
    assert "files that cannot be read, left out: 2 (first locked.md)" in said.out
    assert "16 files: 4 link, 3 hidden, 3 imported, 2 failed, 2 unsupported, 1 empty, 1 sidecar" in said.out


def locked(monkeypatch, locked):
    """A file that may not be read, also where the user may read everything."""
    plain = Path.read_bytes

    def read(path):
        if path == locked or path.resolve() == locked:
            raise PermissionError(13, "Permission denied", str(path))
        return plain(path)

    monkeypatch.setattr(Path, "read_bytes", read)


def test_pages_are_counted_and_those_of_pictures_named(source):
    pytest.importorskip("pdfplumber")
    pytest.importorskip("reportlab")
    put(
        source,
        a_pdf=pdf(
            [line("Глава", 60, size=20), line("Слово.", 90), grid([["а", "б"], ["в", "г"]], 120)], [picture()], []
        ),
    )
    put(source, scan_pdf=pdf([picture()], [picture()]), lock_pdf=pdf([line("слово", 60)], password="secret"))
    said = imported()
    assert said.code == 1
    rows = report()
    names = ("status", "headings", "tables", "pages", "pages_empty", "pages_ocr")
    assert [rows["a.pdf"][name] for name in names] == ["partial", "1", "1", "3", "1", "1"]
    assert rows["a.pdf"]["reason"] == "pages of pictures without text, to be recognised (OCR): 2; empty pages: 3"
    assert [rows["scan.pdf"][name] for name in names] == ["empty", "0", "0", "2", "0", "2"]
    assert rows["scan.pdf"]["reason"] == "no text; pages of pictures without text, to be recognised (OCR): 1, 2"
    assert "with a password" in rows["lock.pdf"]["reason"]
    assert "5 pages, 1 of them empty, 3 to be recognised (OCR)" in said.out
    assert [(row["_id"], row["metadata"]["source_pages"]) for row in corpus()] == [("a.pdf", 3), ("scan.pdf", 2)]


def test_a_strict_import_writes_nothing_unless_every_file_is_imported(source):
    put(source, a_md="слово", b_xlsx="x")
    write(source, ".hidden", "x")
    said = imported("--strict")
    assert said.code == 1
    assert "found files, expected none" in said.err
    assert "b.xlsx: unsupported: expected one of .docx" in said.err
    assert not Path("out").exists()
    (source / "b.xlsx").unlink()
    assert imported("--strict").code == 0


def test_a_folder_of_nothing_is_no_corpus(source):
    put(source, b_doc="x")
    said = imported()
    assert said.code == 2
    assert "source: found no file to import, expected at least one" in said.err
    assert "b.doc: unsupported" in said.err
    assert "save it as DOCX" in said.err
    assert not Path("out").exists()


def test_the_new_folder_may_not_lie_in_the_source(source):
    put(source, a_md="слово")
    said = ablate("dataset", "import", "folder", "source", "source/out")
    assert (said.code, said.err.partition(";")[0]) == (
        2,
        "ablate: source/out: found a folder in SOURCE, expected one elsewhere",
    )


def test_a_sidecar_gives_titles_access_and_metadata(source):
    put(source, a_md="слово", b_md="слово", c_md="слово")
    table = (
        "path;title;allow;deny;год;код;дата;доля\n"
        'a.md;Имя;"group:a; group:b";anna;2024;007;2025-06-01;1\n'
        "b.md;5;;boris;2023;12;2025-07-01;0.5\n\n"
        "c.md;;;;;;;\n"
    )
    put(source, metadata_csv=table.encode("utf-16"))
    assert imported().code == 0
    first, second, third = corpus()
    own = {"source_path", "source_type", "source_bytes"}
    assert (first["title"], second["title"], third["title"]) == ("Имя", "5", "c")
    assert first["acl"] == {"allow": ["group:a", "group:b"], "deny": ["anna"]}
    assert second["acl"] == {"allow": [], "deny": ["boris"]}
    assert "acl" not in third
    rest = [{key: value for key, value in row["metadata"].items() if key not in own} for row in (first, second, third)]
    assert rest == [
        {"год": 2024, "код": "007", "дата": "2025-06-01", "доля": 1.0},
        {"год": 2023, "код": "12", "дата": "2025-07-01", "доля": 0.5},
        {},
    ]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("path,allow\nб.md,u\n", 'metadata.csv:2: found "б.md", expected a file of the folder; '),
        ("path,allow\na.mdd,u\n", 'did you mean "a.md"?'),
        ("path,allow\na.md,u\na.md,v\n", 'metadata.csv:3: found "a.md" a second time (first in line 2)'),
        ("path,allow\na.md,u,v\n", "metadata.csv:2: found 3 cells, expected 2 as in the header"),
        ("file,allow\na.md,u\n", 'metadata.csv: found no column "path"'),
        ("path,x,x\na.md,u,v\n", 'metadata.csv: found the column "x" twice'),
        ("path,,x\na.md,u,v\n", "metadata.csv: found a column without a name"),
        ("path,source_type\na.md,u\n", 'metadata.csv: found the column "source_type", which the import fills itself'),
        ("path,x,allow\na.md,u\n", "metadata.csv:2: found 2 cells, expected 3 as in the header; leave a cell empty"),
        ("path,Allow\na.md,u\n", 'metadata.csv: found the column "Allow", expected allow and deny'),
        ("path,acl\na.md,u\n", 'metadata.csv: found the column "acl", expected allow and deny'),
        ('path;"allow,deny"\na.md;u\n', 'metadata.csv: found the column "allow,deny", expected allow and deny'),
        ('path,deny\na.md,"u, v"\n', 'metadata.csv:2: found "u, v" as deny, expected names with ; between them'),
        ('path,x\na.md,"u\n', "metadata.csv:2: found unexpected end of data, expected CSV"),
        ("path,x\na.md,привет\n".encode("cp1251"), "metadata.csv: found the byte 0xef"),
    ],
)
def test_a_sidecar_that_cannot_be_trusted_stops_the_import(source, table, said):
    put(source, a_md="слово", metadata_csv=table)
    found = imported()
    assert found.code == 2
    assert said in found.err
    assert not Path("out").exists()


def test_a_sidecar_with_another_separator_may_hold_commas_and_quotes(source):
    put(source, a_md="слово", metadata_csv='path;note;allow\na.md;так, "эдак" и так;u\n')
    assert imported().code == 0
    assert corpus()[0]["metadata"]["note"] == 'так, "эдак" и так'
    assert corpus()[0]["acl"] == {"allow": ["u"], "deny": []}


def test_wrong_flags_are_refused_before_anything_is_read(source):
    for flag, value in (("--encoding", '"cp12510"'), ("--sample", "-1"), ("--seconds", "0")):
        said = imported(flag, value.strip('"'))
        assert (said.code, said.err.partition(",")[0]) == (2, f"ablate: {flag}: found {value}")


def test_another_sidecar_can_be_named(source):
    put(source, a_md="слово", acl_csv="path\tallow\na.md\tu\n")
    assert imported("--sidecar", "source/acl.csv").code == 0
    assert corpus()[0]["acl"] == {"allow": ["u"], "deny": []}
    assert report()["acl.csv"]["status"] == "sidecar"
    assert ablate("dataset", "import", "folder", "source", "two", "--sidecar", "none.csv").code == 2


@pytest.mark.parametrize(
    ("note", "row", "said"),
    [
        ("title: А", "title,Б", 'found a string ("Б") as "title" in metadata.csv, expected a string ("А") as in the'),
        ("year: 2024", "year,2023", 'found a number (2023) as "year" in metadata.csv'),
        ("acl: {allow: [a]}", "deny,a", 'found an object as "acl" in metadata.csv'),
        ("title: 5", "x,y", 'key "title": found a number (5), expected a string; write it in quotes'),
        ("acl: public", "x,y", 'key "acl": found a string ("public"), expected an object'),
        ("acl: {alow: [a]}", "x,y", 'key "acl.alow": found an unknown key'),
        ("acl: {allow: a}", "x,y", 'key "acl.allow": found a string ("a"), expected a list'),
        ("valid_from: скоро", "x,y", 'key "metadata.valid_from": found'),
        ("source_bytes: 5", "x,y", 'found the key "source_bytes", which the import fills itself'),
        ("x: !!timestamp 2025-06-01", "y,z", "expected text, numbers and lists of them"),
        ("x: !!float .nan", "y,z", "expected text, numbers and lists of them"),
        ('x: "\\ud800"', "y,z", "expected text, numbers and lists of them"),
    ],
)
def test_a_file_about_which_wrong_things_are_said_fails_and_the_others_do_not(source, note, row, said):
    key, value = row.split(",")
    put(source, a_md=f"---\n{note}\n---\nслово", b_md="слово", metadata_csv=f"path,{key}\na.md,{value}\n")
    assert imported().code == 1
    assert [row["_id"] for row in corpus()] == ["b.md"]
    assert said in report()["a.md"]["reason"]


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("a.md", "\n---\nacl: {allow: [a]}\n---\n"),
        ("a.md", " ---\nacl: {allow: [a]}\n---\n"),
        ("a.md", "\ufeff\ufeff---\nacl: {allow: [a]}\n---\n"),
        ("a.md", "---\u00a0\nacl: {allow: [a]}\n---\n"),
        ("a.md", '+++\n[acl]\nallow = ["a"]\n+++\n'),
        ("a.md", '{"title": "x", "acl": {"allow": ["a"]}}\n'),
        ("a.md", "<!--\nacl: {allow: [a]}\n-->\n"),
        ("a.txt", "---\ntitle: x\nacl: {allow: [a]}\n---\n"),
        ("a.html", "---\nacl: {allow: [a]}\n---\n<p>"),
    ],
)
def test_an_acl_that_is_not_read_never_makes_a_document_public(source, name, head):
    write(source, name, f"{head}тайна")
    write(source, "b.md", "слово\n\n---\nacl: в тексте")
    assert imported().code == 1
    assert [row["_id"] for row in corpus()] == ["b.md"]
    assert "found front matter with an ACL in a place or form in which it is not read" in report()[name]["reason"]
    put(source, metadata_csv=f"path,allow\n{name},a\n")
    assert ablate("dataset", "import", "folder", "source", "two").code == 0
    assert {row["_id"]: row.get("acl") for row in corpus("two")} == {name: {"allow": ["a"], "deny": []}, "b.md": None}


def test_what_front_matter_and_sidecar_say_alike_is_no_contradiction(source):
    put(source, a_md="---\nacl: {allow: [b, a]}\nyear: 2024\n---\nслово")
    put(source, metadata_csv="path,allow,year\na.md,a;b,2024\n")
    assert imported().code == 0
    assert sorted(corpus()[0]["acl"]["allow"]) == ["a", "b"]


def test_names_are_the_same_on_every_system(source):
    name = "й.md"
    write(source, unicodedata.normalize("NFD", name), "слово")
    write(source, "metadata.csv", f"path,x\n{name},1\n")
    assert imported().code == 0
    assert [row["_id"] for row in corpus()] == [name]
    write(source, unicodedata.normalize("NFC", name), "другое")
    found = ablate("dataset", "import", "folder", "source", "two")
    assert found.code == 1
    assert "found another file of this name, in other Unicode" in found.out


def test_a_file_that_never_ends_fails_and_the_others_are_read(source):
    put(source, a_md="слово", b_html="<!--" * 100_000, c_md="слово")
    assert imported("--seconds", "1").code == 1
    assert [row["_id"] for row in corpus()] == ["a.md", "c.md"]
    assert report()["b.html"]["reason"].startswith("found no end of it in 1 seconds, expected a file that can be read")


def test_a_file_that_fills_the_memory_fails_and_the_others_are_read(source, monkeypatch):
    write(source.parent, "greedy/pdfplumber.py", "found = bytearray(2**33)")
    write(source.parent, "greedy/mammoth.py", "import os\nos._exit(1)")
    monkeypatch.setenv("PYTHONPATH", str(source.parent / "greedy"))
    put(source, a_pdf=b"%PDF-1.4", b_docx=b"PK", c_md="слово")
    assert imported().code == 1
    assert [row["_id"] for row in corpus()] == ["c.md"]
    assert report()["b.docx"]["reason"].startswith("found a file that ends the program which reads it")
    if sys.platform == "linux":
        assert "bytes of memory that it takes to read" in report()["a.pdf"]["reason"]


def test_links_that_lead_back_to_themselves_are_told(source):
    put(source, a_md="слово")
    (source / "loop").symlink_to("loop")
    (source / "self.md").symlink_to("self.md")
    write(source, "metadata.csv", "path,x\na.md,1\n")
    assert imported().code == 0
    reason = "a link that leads back to itself; remove it"
    assert [(report()[name]["status"], report()[name]["reason"]) for name in ("loop", "self.md")] == [
        ("link", reason)
    ] * 2


def test_no_cell_of_the_report_is_a_formula(source):
    write(source, "=1+1.md", "слово")
    write(source, "@x.md", b"\xff")
    assert imported().code == 1
    assert sorted(report()) == ["'=1+1.md", "'@x.md"]


def test_a_name_that_breaks_lines_or_cells_fails(source):
    put(source, a_md="слово")
    write(source, "b\nc.md", "слово")
    write(source, "d\te/f.md", "слово")
    said = imported()
    assert said.code == 1
    assert "b c.md: failed: found a name with a line break" in said.out
    assert [row["_id"] for row in corpus()] == ["a.md"]
    assert {report()[name]["reason"] for name in ("b\nc.md", "d\te/f.md")} == {
        "found a name with a line break or a tab, expected one without; rename the file or folder"
    }


def test_each_step_names_the_next(source):
    put(source, a_md="Отпуск длится 28 дней.")
    assert "next: `python -m ablate dataset init out` says how" in imported().out
    said = ablate("dataset", "init", "out").out
    assert "a question is a line of queries.jsonl" in said
    assert "write your questions into out, then `python -m ablate dataset validate out`" in said
    truth = {"query_id": "q", "alternatives": [[{"doc_id": "a.md", "quote": "28 дней"}]]}
    write(Path("out"), "queries.jsonl", json.dumps({"_id": "q", "text": "сколько длится отпуск"}))
    write(Path("out"), "ground_truth.jsonl", json.dumps(truth))
    assert "next: `python -m ablate dataset.dir=out` runs a search on it" in ablate("dataset", "validate", "out").out
    said = ablate("dataset", "freeze", "out", "--acl-default", "public").out
    assert "next: `python -m ablate dataset.dir=out dataset.acl_default=public` runs a search on it" in said


def test_a_file_that_vanishes_before_the_sample_is_told(source, monkeypatch):
    put(source, a_md="слово")
    plain = Path.read_bytes

    def once(path):
        data = plain(path)
        path.unlink()
        return data

    monkeypatch.setattr(Path, "read_bytes", once)
    said = imported("--sample", "1")
    assert (said.code, Path("out").exists()) == (2, False)
    assert "a.md: found No such file or directory on reading it again for the sample" in said.err


def test_a_name_that_is_no_text_fails(source):
    put(source, a_md="слово")
    try:
        (source / os.fsdecode(b"\xef.md")).write_text("слово")
    except OSError:
        pytest.skip("this file system takes no such name")
    assert imported().code == 1
    assert report()["\\udcef.md"]["reason"] == "found a name that is not UTF-8, expected one; rename the file or folder"


def test_the_corpus_does_not_depend_on_the_order_in_which_files_were_made(source):
    files = {"б.md": "один", "a/c.txt": "два", "a.html": "<p>три", "A.md": "четыре"}
    for name, content in files.items():
        write(source, name, content)
    for name, content in reversed(files.items()):
        write(source.parent / "other", name, content)
    imported("--sample", "3")
    ablate("dataset", "import", "folder", "other", "two", "--sample", "3")
    names = sorted(path.relative_to("out") for path in Path("out").rglob("*") if path.is_file())
    assert names == sorted(path.relative_to("two") for path in Path("two").rglob("*") if path.is_file())
    for name in names:
        assert ("out" / name).read_bytes() == ("two" / name).read_bytes()


def test_what_the_import_writes_beside_the_corpus_is_no_part_of_the_dataset(source):
    put(source, a_md="слово")
    imported("--sample", "1")
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "corpus.jsonl",
        "import-report.csv",
        "sample",
        "sample.csv",
    ]
    assert list(manifest.contents(Path("out"))) == ["corpus.jsonl"]
    assert manifest.misspelt(Path("out")) == []


def test_a_package_that_is_missing_stops_the_import_only_where_it_is_needed(source, monkeypatch):
    write(source.parent, "lacking/pdfplumber.py", "raise ModuleNotFoundError('pdfplumber')")
    monkeypatch.setenv("PYTHONPATH", str(source.parent / "lacking"))
    put(source, a_md="слово", b_html="<p>слово", c_txt="слово")
    assert imported().code == 0
    put(source, d_pdf=b"%PDF-1.4")
    found = ablate("dataset", "import", "folder", "source", "two")
    assert found.code == 2
    assert "d.pdf: found no package that reads PDF" in found.err


def test_json_says_the_same(source):
    put(source, a_md="слово", b_txt=b"\xff")
    said = imported("--json")
    assert said.code == 1
    found = json.loads(said.out)
    assert found["counts"]["documents"] == 1
    assert {row["what"]: row["first"] for row in found["report"]} == {"files that cannot be read, left out": "b.txt"}


def rows(path="out/sample.csv"):
    return list(csv.DictReader(io.StringIO(Path(path).read_text("utf-8-sig"))))


def test_a_sample_shows_each_part_beside_its_source(source):
    pytest.importorskip("pdfplumber")
    pytest.importorskip("reportlab")
    put(source, a_md="вступление\n\n# А\n\nодин <b>\n\n# Б\n\n=1+1\n", b_html="<h1>Дом</h1><img src=http://x/y.png>")
    put(source, c_pdf=pdf([line("Слово", 60)], [picture()]), d_txt="=cmd|' /C calc'!A0")
    said = imported("--sample", "50")
    assert "dataset parse-check out/sample.csv" in said.out
    found = rows()
    assert [(row["path"], row["place"]) for row in found] == [
        ("a.md", "beginning"),
        ("a.md", "section 1: А"),
        ("a.md", "section 2: Б"),
        ("b.html", "section 1: Дом"),
        ("c.pdf", "page 1"),
        ("c.pdf", "page 2"),
        ("d.txt", "whole text"),
    ]
    assert [row["extracted"] for row in found[1:]] == [
        "# А один <b>",
        "# Б =1+1",
        "# Дом",
        "Слово",
        "",
        "'=cmd|' /C calc'!A0",
    ]
    assert {(row["ok"], row["note"]) for row in found} == {("", "")}
    assert found[4]["where"] == "sample/005.html; page 1 of c.pdf"
    pages = [Path("out", row["where"].partition(";")[0]).read_text("utf-8") for row in found]
    assert all("default-src 'none'" in page for page in pages)
    assert "один &lt;b&gt;" in pages[1]
    assert 'srcdoc="&lt;meta http-equiv=&quot;Content-Security-Policy&quot;' in pages[3]
    assert 'src="data:image/png;base64,iVBOR' in pages[5]
    assert not re.search(r"<(?:img|script|link)[^>]*http", "".join(pages))


def test_a_sample_is_drawn_by_its_seed_and_a_new_file_moves_few_out(source):
    for number in range(40):
        write(source, f"{number}.txt", f"текст {number}")
    imported("--sample", "10")
    first = [row["path"] for row in rows()]
    assert len(first) == 10
    ablate("dataset", "import", "folder", "source", "two", "--sample", "10", "--seed", "1")
    assert [row["path"] for row in rows("two/sample.csv")] != first
    write(source, "new.txt", "новый")
    ablate("dataset", "import", "folder", "source", "three", "--sample", "10")
    assert len(set(first) & {row["path"] for row in rows("three/sample.csv")}) >= 9


def filled(marks, separator=","):
    rows = [
        ["number", "path", "extracted", "ok", "note"],
        *([str(n), "a.md", "текст", mark, ""] for n, mark in enumerate(marks)),
    ]
    text = "".join(separator.join(row) + "\r\n" for row in rows)
    Path("sample.csv").write_bytes(text.encode("utf-8-sig"))
    return ablate("dataset", "parse-check", "sample.csv")


def test_marks_become_a_share_with_its_interval(source):
    said = filled(["y", "Y ", "да", "yes", "n", "нет", "no", "y"], ";")
    assert (said.code, said.out) == (0, "ingestion/parse_ok 0.625 (5 of 8), 95 % interval 0.306 to 0.863\n")
    found = json.loads(ablate("dataset", "parse-check", "sample.csv", "--json").out)
    assert (found["ok"], found["rows"], found["ingestion/parse_ok"]) == (5, 8, 0.625)


@pytest.mark.parametrize(
    ("filling", "said"),
    [
        (["y", "", "n"], "sample.csv:3: found nothing as ok, expected y or n; look at the place and fill it in"),
        (["y", "yess"], 'sample.csv:3: found "yess" as ok, expected y or n; did you mean "yes"?'),
        ([], "sample.csv: found no row"),
    ],
)
def test_a_sheet_that_is_half_filled_is_refused_with_its_line(source, filling, said):
    found = filled(filling)
    assert found.code == 2
    assert said in found.err


def test_a_sheet_as_it_was_written_can_be_marked(source):
    put(source, a_md='# А\n\n«один», "два"\n\n# Б\n\nтри\n')
    imported("--sample", "9")
    text = Path("out/sample.csv").read_text("utf-8-sig").replace(",,\r\n", ",y,\r\n").replace(",,\n", ",y,\n")
    assert marks("sample.csv", text.encode()) == [True, True]
    assert "found nothing as ok" in ablate("dataset", "parse-check", "out/sample.csv").err


def test_the_interval_is_that_of_wilson():
    for of in (1, 2, 7, 50, 1000):
        for good in {0, 1, of // 3, of - 1, of}:
            expected = binomtest(good, of).proportion_ci(0.95, "wilson")
            assert interval(good, of) == pytest.approx((expected.low, expected.high), abs=1e-12)
