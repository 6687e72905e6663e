"""Files of every kind become text: nothing of it is lost or guessed, and headings, lists and tables stay."""

import io
import sys
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from papers import BULLET, DECIMAL, docx, form, grid, line, lines, paragraph, pdf, picture, table

from ablate.chunker.structure import outline
from ablate.errors import ConfigError, NotInstalled
from ablate.extraction import Unreadable, extracted
from ablate.extraction.encoding import known
from ablate.extraction.html import converted
from ablate.extraction.parts import headings, parts, tables, title

TEXT = "Доставка: 3 дня — «ё»\nвторая строка"


def read(name, data, encoding=""):
    return extracted(data, name, encoding)


@pytest.mark.parametrize("name", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_says_what_the_encoding_is(name):
    for ending in (".txt", ".md"):
        found = read(ending, TEXT.encode(name))
        assert found.text == TEXT
        assert found.encoding == {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(name, name)
    assert read(".txt", b"\xfe\xff" + TEXT.encode("utf-16-be")).text == TEXT


def test_another_encoding_is_never_guessed():
    with pytest.raises(
        Unreadable, match=r"found the byte 0xc4 at 0 that is not utf-8, .* name its encoding with --enc"
    ):
        read(".txt", TEXT.encode("cp1251"))
    found = read(".txt", TEXT.encode("cp1251"), "cp1251")
    assert (found.text, found.encoding) == (TEXT, "cp1251")


def test_a_named_encoding_leaves_files_in_utf_8_alone():
    found = read(".txt", TEXT.encode(), "cp1251")
    assert (found.text, found.encoding) == (TEXT, "utf-8")


@pytest.mark.parametrize("name", ["punycode", "idna", "undefined", "mbcs", "rot13"])
def test_a_page_that_declares_a_strange_encoding_is_refused_and_stops_nothing(name):
    with pytest.raises(Unreadable):
        read(".html", f"<meta charset={name}><p>{'слово' * 20}".encode())


def test_text_of_two_bytes_a_letter_without_a_mark_is_refused_unless_it_is_named():
    data = "слово и слово".encode("utf-16-le")
    with pytest.raises(Unreadable, match="found a NUL at character"):
        read(".txt", data)
    assert read(".txt", data, "utf-16-le").text == "слово и слово"


def test_line_ends_become_line_feeds():
    assert read(".txt", b"a\r\nb\rc\n").text == "a\nb\nc\n"


def test_an_encoding_that_does_not_exist_is_refused():
    for name in ("cp12510", "hex"):
        with pytest.raises(ConfigError, match=f'--encoding: found "{name}", expected the name of an encoding'):
            known(name)


def test_front_matter_is_taken_out_and_its_values_are_plain():
    source = (
        "---\ntitle: Отпуск\nvalid_from: 2025-06-01\ncountry: no\ncode: 007\nyear: 2024\nshare: 0.5\n"
        "draft: true\ntags: [а, б]\nnothing:\n---\n\n# Глава\n"
    )
    found = read(".md", source.encode())
    assert found.text == "# Глава\n"
    assert found.front == {
        "title": "Отпуск",
        "valid_from": "2025-06-01",
        "country": "no",
        "code": "007",
        "year": 2024,
        "share": 0.5,
        "draft": True,
        "tags": ["а", "б"],
    }


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("title: x\n", "found no line --- that ends it"),
        ("a: [1\n---\n", "line 3 of the file, expected YAML"),
        ("a: 1\na: 2\n---\n", 'found the key "a" twice in line 3'),
        ("a: &x [1]\nb: *x\n---\n", "found an alias in line 3"),
        ("- a\n---\n", "found no mapping with text for keys"),
        ("1: a\n---\n", "found no mapping with text for keys"),
        ("Просто черта\n---\n", "begin the file with an empty line if it has none"),
        ("a: !!python/object:os.system x\n---\n", "could not determine a constructor"),
        ("a: " + "[" * 5000 + "\n---\n", "expected YAML"),
        ("acl:\n---\n", "found nothing as acl"),
        ("acl: ~\n---\n", "found nothing as acl"),
        ("ACL: {allow: [кадры]}\n---\n", 'found the key "ACL"'),
        ("allow: [кадры]\n---\n", 'found the key "allow"'),
        ("Deny: [кадры]\n---\n", 'found the key "Deny"'),
        ("metadata: {acl: {allow: [кадры]}}\n---\n", 'found the key "acl", expected acl: {allow: [names], deny: '),
        ("<<: {acl: {allow: [кадры]}}\n---\n", 'found the key "acl"'),
        ("a: [{Acl: x}]\n---\n", 'found the key "Acl"'),
    ],
)
def test_front_matter_that_cannot_be_trusted_is_never_passed_over(front, said):
    with pytest.raises(Unreadable) as error:
        read(".md", f"---\n{front}Текст".encode())
    assert str(error.value).startswith("front matter: found ")
    assert said in str(error.value)


def test_what_only_looks_like_front_matter_further_down_is_text():
    for source in ("\n---\na: 1\n---\n", "Текст\n---\na: 1\n---\n", "----\n"):
        assert read(".md", source.encode()).text == source
    assert read(".md", b"---\n---\nx").text == "x"
    assert read(".txt", b"---\na: 1\n---\n").text == "---\na: 1\n---\n"


PAGE = """<!DOCTYPE html><html><head><title>Правила &amp; сроки</title><style>p {}</style><script>"<p>нет</p>"</script>
<body><nav><a href=x>Меню</a></nav><![if !supportLists]><h1>До<b>став</b>ка</h1><p>Первый абзац
  с переносом<br>и строкой.<p>Без конца
<ul><li>один<li>два<ul><li>вложенный</ul><li><p>три</p><p>ещё абзац</p></ul>
<ol start=3><li>третий<li>четвёртый</ol>
<table><caption>Цены</caption><thead><tr><th>А<th>Б<tbody><tr><td rowspan=2>x|y<td>1<tr><td>2<br>3</table>
<table><tr><td colspan=2>Итог</td></tr><tr><td>1<td>2</table>
<table><tr><td><table><tr><td>а<td>б<tr><td>1<td>2</table><td>рядом</table>
<pre>
  код
    ```
</pre><blockquote><p>цитата</p><p>ещё</p></blockquote><dl><dt>термин<dd>объяснение</dl>
<a><div>блок в ссылке</div></a><span hidden>скрыто</span>до<i>ставка</i> те&shy;кст&nbsp;и <img alt="рисунок">
"""
MARKDOWN = """# Доставка

Первый абзац с переносом
и строкой.

Без конца

- один
- два
  - вложенный
- три

  ещё абзац

3. третий
4. четвёртый

Цены

| А | Б |
| --- | --- |
| x\\|y | 1 |
|  | 2 3 |

| Итог |  |
| --- | --- |
| 1 | 2 |

| а | б |
| --- | --- |
| 1 | 2 |

рядом

````
  код
    ```
````

> цитата
>
> ещё

термин

объяснение

блок в ссылке

доставка текст и рисунок
"""


def test_a_page_becomes_markdown():
    found = read(".html", PAGE.encode())
    assert found.text == MARKDOWN
    assert found.title == "Правила & сроки"


def test_a_page_may_say_its_encoding():
    page = '<meta charset="windows-1251"><p>Привет'
    found = read(".html", page.encode("cp1251"))
    assert (found.text, found.encoding) == ("Привет\n", "windows-1251")
    assert read(".html", page.encode("utf-8-sig")).text == "Привет\n"
    with pytest.raises(Unreadable, match="that is not utf-8"):
        read(".html", b"<meta charset=utf-8>" + "Привет".encode("cp1251"))
    with pytest.raises(Unreadable, match='found "x-none" declared'):
        read(".html", b"<meta charset=x-none>")
    assert read(".html", b"<meta charset=iso-8859-1>\x97").text == "—\n"  # as browsers do


TAGS = """
    p div ul ol li table thead tbody tr tr td td th caption h2 blockquote pre b a dl dt dd section br
""".split()  # noqa: SIM905
words = st.text("абвxyz", min_size=1, max_size=5).map(lambda word: f" {word} ")
tags = st.sampled_from(TAGS)
pieces = st.lists(st.one_of(words, words, tags.map("<{}>".format), tags.map("</{}>".format)), min_size=10, max_size=40)
tables_ = st.lists(
    st.one_of(words, st.sampled_from(["<tr>", "<td>", "<th>", "</td>", "</tr>", "<tbody>", "<b>", "<p>"]))
)


@given(st.one_of(pieces, tables_.map(lambda pieces: ["<table>", *pieces])))
@settings(max_examples=400)
def test_no_word_of_a_page_is_lost_whatever_its_tags(pieces):
    expected = sorted(piece.strip() for piece in pieces if not piece.startswith("<"))
    text, _ = converted("".join(pieces))
    assert sorted("".join(c if c.isalpha() else " " for c in text).split()) == expected


@given(st.text("<>!/&-[]=\"' aptdril\n", max_size=60))
def test_any_text_can_be_read_as_a_page(page):
    converted(page)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>раз<![if !supportLists]>два<![endif]>", "раздва\n"),
        ("<p>раз" + "<![" * 20_000, "раз\n"),
        ("<p>раз<<!x>![if y]>", "раз<![if y]>\n"),
        ("<h2>Глава<a>¶</a></h2>", "## Глава\n"),
        ('<div role="navigation">меню</div><p>раз', "раз\n"),
    ],
)
def test_marks_that_are_no_words_are_passed_over(page, text):
    assert converted(page)[0] == text


def test_a_page_of_very_deep_tags_is_read():
    text, _ = converted("<div>" * 20_000 + "слово" + "<ul><li>" * 20_000 + "дно")
    assert text.split() == ["слово", *["-"] * text.count("- "), "дно"]


def test_a_document_of_word_becomes_markdown():
    pytest.importorskip("mammoth")
    body = (
        paragraph("Руководство", "a1"),
        paragraph("Установка", "1"),
        paragraph("Обычный\u00a0абзац."),
        paragraph("один", list=BULLET),
        paragraph("внутри", list=BULLET, level=1),
        paragraph("два", list=BULLET),
        paragraph("шаг", list=DECIMAL),
        paragraph("Цены", "2"),
        table(("Товар", "Цена"), ("Чай | лист", "10")),
        "<w:p><m:oMath xmlns:m='http://math'/></w:p>",
    )
    found = read(".docx", docx(*body, title="Название"))
    assert found.text == (
        "# Руководство\n\n# Установка\n\nОбычный абзац.\n\n- один\n  - внутри\n- два\n\n1. шаг\n\n## Цены\n\n"
        "| Товар | Цена |\n| --- | --- |\n| Чай \\| лист | 10 |\n"
    )
    assert found.title == "Название"
    assert found.remarks == ("left out: elements oMath",)


@pytest.mark.slow
def test_an_archive_that_would_fill_the_memory_is_not_unpacked(monkeypatch):
    pytest.importorskip("mammoth")
    zeros = "0" * (300 * 2**20)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("was unpacked"))
    for name in ("word/document.xml", "word/media/image1.png"):
        data = docx(more={name: zeros}.items())
        assert len(data) < 2**20
        with pytest.raises(Unreadable, match=r"found an archive of [\d,]+ bytes that unpacks to 31\d,\d{3},\d{3}"):
            read(".docx", data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "found a file with a password or of Word 97"),
        (b"", "found a broken file"),
        (b"<html>", "found a broken file"),
        (docx(paragraph("слово"))[:-30], "found a broken file"),
        (docx(more={"word/document.xml": "<w:document"}.items()), "found a broken file"),
        (docx(more={"docProps/core.xml": "<"}.items()), "found a broken file"),
    ],
)
def test_what_is_no_document_of_word_is_refused(data, said):
    pytest.importorskip("mammoth")
    with pytest.raises(Unreadable, match=said):
        read(".docx", data)


def test_an_archive_of_something_else_is_no_document():
    pytest.importorskip("mammoth")
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(Unreadable, match="found an archive without a document"):
        read(".docx", found.getvalue())


@pytest.fixture
def paper():
    pytest.importorskip("pdfplumber")
    pytest.importorskip("reportlab")


BODY = [
    "Доставка занимает три дня по Москве и пять дней по",
    "России. Возврат принимается в течение недели, если то-",
    "вар не был в употреблении.",
]


@pytest.mark.usefixtures("paper")
def test_pages_become_paragraphs_headings_and_tables():
    first = [
        line("Правила магазина", 60, size=20),
        *lines(BODY, 90),
        *lines(["Второй абзац.", "• один", "• два"], 150),
        line("Цены", 220, size=14),
        grid([["Товар", "Цена"], ["Чай | лист", "10"], ["Кофе", ""]], 230),
        line("После таблицы.", 310),
    ]
    found = read(".pdf", pdf(first, [line("Глава вторая", 60, size=20), line("Конец.", 90)], title="Свод"))
    assert found.text == (
        "# Правила магазина\n\n"
        "Доставка занимает три дня по Москве и пять дней по России. Возврат принимается в течение недели, если товар "
        "не был в употреблении.\n\n"
        "Второй абзац.\n- один\n- два\n\n"
        "## Цены\n\n"
        "| Товар | Цена |\n| --- | --- |\n| Чай \\| лист | 10 |\n| Кофе |  |\n\n"
        "После таблицы.\n\n"
        "# Глава вторая\n\nКонец.\n"
    )
    assert found.text[found.pages[1] :].startswith("# Глава вторая")
    assert (found.title, found.blank, found.scanned) == ("Свод", (), ())


@pytest.mark.usefixtures("paper")
def test_pages_without_text_are_told_apart():
    pages = (
        [picture()],
        [],
        [picture(), line("стр. 3", 800)],
        [picture(), *lines(BODY * 3, 60)],
        [picture(width=100, height=100), line("Титул", 400)],
        [],
    )
    found = read(".pdf", pdf(*pages))
    assert found.scanned == (1, 3)
    assert found.blank == (2, 6)
    assert len(found.pages) == 6
    assert found.text[found.pages[4] : found.pages[5]].split()[-1] == "Титул"
    assert list(found.pages) == sorted(found.pages)


@pytest.mark.usefixtures("paper")
def test_columns_are_read_one_after_the_other():
    left, right = ([f"{side} строка {n} текст" for n in range(8)] for side in ("левая", "правая"))
    text = read(".pdf", pdf([*lines(left, 60), *lines(right, 60, x=320)])).text
    assert text.split("\n\n") == [" ".join(left), " ".join(right) + "\n"]


@pytest.mark.usefixtures("paper")
def test_what_a_page_only_refers_to_is_read():
    assert read(".pdf", pdf([form(line("Слово.", 60))])).text == "Слово.\n"


@pytest.mark.usefixtures("paper")
def test_words_that_stand_sideways_are_told():
    def sideways(canvas):
        canvas.rotate(90)
        line("на полях страницы", 800, x=100)(canvas)

    said = "pages with words that stand sideways, of which every letter is a line: 2"
    assert read(".pdf", pdf([line("Слово.", 60)], [sideways])).remarks == (said,)
    assert read(".pdf", pdf([line("Слово.", 60)])).remarks == ()


def test_lines_of_code_stay_together_where_word_has_a_style_for_them():
    page = docx(paragraph("Код:"), paragraph("for x in y:", "3"), paragraph("pass", "3"))
    assert read(".docx", page).text == "Код:\n\n```\nfor x in y:\npass\n```\n"


@pytest.mark.usefixtures("paper")
def test_a_bullet_drawn_by_itself_stands_before_its_item():
    page = [line("Список:", 60), line("•", 75, size=8), line("первый пункт", 90)]
    assert read(".pdf", pdf(page)).text == "Список:\n- первый пункт\n"


@pytest.mark.usefixtures("paper")
def test_a_hyphen_stays_where_the_word_has_one_elsewhere():
    rows = ["Купили чёрно-белый экран и ещё один чёрно-", "белый экран."]
    assert read(".pdf", pdf(lines(rows, 60))).text == "Купили чёрно-белый экран и ещё один чёрно-белый экран.\n"


@pytest.mark.usefixtures("paper")
def test_an_indented_line_begins_a_paragraph_and_a_short_line_ends_one():
    page = [line("Первый абзац идёт до края страницы и кончается", 60), line("здесь.", 73), line("Второй.", 86, x=80)]
    assert read(".pdf", pdf(page)).text == "Первый абзац идёт до края страницы и кончается здесь.\n\nВторой.\n"


@pytest.mark.usefixtures("paper")
def test_a_grid_that_would_lose_letters_is_no_table():
    page = [grid([["а", "б"], ["в", "г"]], 60), line("длинная надпись поверх всех линеек таблицы", 86, x=20)]
    text = read(".pdf", pdf(page)).text
    assert sorted("".join(text.split())) == sorted("абвгдлиннаянадписьповерхвсехлинеектаблицы")


@pytest.mark.usefixtures("paper")
def test_a_locked_or_broken_pdf_says_so():
    whole = pdf([line("слово", 60)])
    with pytest.raises(Unreadable, match="found a file with a password"):
        read(".pdf", pdf([line("слово", 60)], password="secret"))
    for data in (b"", b"%PDF-1.4", whole[:200], TEXT.encode()):
        with pytest.raises(Unreadable, match=r"found (a broken file|no page)"):
            read(".pdf", data)


@pytest.mark.usefixtures("paper")
def test_a_pdf_is_read_alike_every_time():
    data = pdf([line("Глава", 60, size=20), *lines(BODY, 90), grid([["а", "б"], ["в", "г"]], 200)], [picture()])
    assert read(".pdf", data) == read(".pdf", data)


@pytest.mark.parametrize(("ending", "package"), [(".pdf", "pdfplumber"), (".docx", "mammoth")])
def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(ending, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotInstalled, match=rf'expected {package}; run `pip install "ablate-retrieval\[documents\]"`'):
        read(ending, docx())


def test_headings_and_tables_are_those_that_the_chunker_finds():
    found = headings(MARKDOWN)
    assert found == outline(MARKDOWN).headings
    assert [heading.text for heading in found] == ["Доставка"]
    assert tables(MARKDOWN) == 3
    assert tables("Текст\n---\nещё | не\n") == 0
    assert title(headings("# \n## **Мой** [дом](x)\n")) == "Мой дом"


def test_parts_are_sections_and_cover_the_text():
    text = "вступление\n\n# А\n\nодин\n\n## Б\n\nдва\n"
    found = read(".md", text.encode())
    sections = parts(found)
    assert [part.place for part in sections] == ["beginning", "section 1: А", "section 2: Б"]
    assert "".join(text[part.start : part.end] for part in sections) == text
    assert [part.place for part in parts(read(".txt", b"x"))] == ["whole text"]
