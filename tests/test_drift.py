"""What has become of evidence in a newer corpus is said piece by piece, and only what is certain is written."""

import json
import re
import unicodedata
from importlib.resources import files
from itertools import pairwise

import pytest
from cli import ablate, dataset, put
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ablate.dataset import Folder
from ablate.dataset.anchor import anchored
from ablate.dataset.drift import signposts
from ablate.dataset.form import Text, form
from ablate.dataset.likeness import closest
from ablate.dataset.truth import united
from ablate.types import Span

RULES = (
    "Правила возврата. Билет можно вернуть за 14 дней до концерта. Деньги придут на карту в течение недели, "
    "если покупатель указал её номер. Исключение: билеты на закрытые показы не возвращают."
)
GUIDE = "A guide for the front desk. Refunds need a receipt. The manager signs refunds above 500 EUR by hand."
TITLE = "Деньги придут на карту"
QUOTE = "Билет можно вернуть за 14 дней до концерта."


def unit(document, text, words, /, **rest):
    return {"doc_id": document, "start": text.index(words), "end": text.index(words) + len(words), **rest}


def old(folder, *units, documents=None, **keys):
    """A dataset of one query whose alternative needs all the units."""
    documents = documents or {"правила": RULES, "guide": GUIDE}
    rows = [{"_id": key, "text": text} for key, text in documents.items()]
    alternatives = [list(units or [unit("правила", RULES, QUOTE, quote=QUOTE)])]
    truth = {"query_id": "q1", "alternatives": alternatives, **keys}
    return dataset(folder / "old", rows, [{"_id": "q1", "text": "Когда вернуть?"}], [truth])


def new(folder, documents):
    put(folder / "new", {"corpus.jsonl": lines([{"_id": key, "text": text} for key, text in documents.items()])})
    return folder / "new"


def lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def diff(folder, *flags):
    return ablate("dataset", "diff", str(folder / "old"), str(folder / "new"), *flags)


def found(folder, *flags):
    """Exit code, and the units as JSON says them."""
    said = diff(folder, "--json", *flags)
    assert not said.err
    data = json.loads(said.out)
    return said.code, data["units"]


def truth(folder):
    return [json.loads(line) for line in (folder / "ground_truth.jsonl").read_text(encoding="utf-8").splitlines()]


def state(folder, *flags):
    code, units = found(folder, *flags)
    return code, [unit["state"] for unit in units]


# States


def test_evidence_in_an_unchanged_document_is_unchanged(tmp_path):
    old(tmp_path)
    new(tmp_path, {"guide": "rewritten", "правила": RULES})
    assert state(tmp_path) == (0, ["unchanged"])


def test_evidence_behind_an_insertion_has_moved_and_is_written_at_its_new_place(tmp_path):
    old(tmp_path, facts={"срок": "14 дней"}, reviewed=[{"who": "анна", "when": "2026-01-01", "action": "judged"}])
    text = "Новая редакция. " + RULES
    folder = new(tmp_path, {"правила": text})
    assert found(tmp_path)[1][0]["spans"][0]["new"] == [34, 34 + len(QUOTE)]
    assert not (folder / "ground_truth.jsonl").exists()
    assert state(tmp_path, "--fix") == (0, ["moved"])
    (line,) = truth(folder)
    assert line["alternatives"] == [[unit("правила", text, QUOTE, quote=QUOTE)]]
    assert line["facts"] == {"срок": "14 дней"}
    assert line["reviewed"][0]["who"] == "анна"


def test_an_edit_inside_the_evidence_shows_the_closest_text(tmp_path):
    old(tmp_path)
    now = "Билет можно вернуть за 30 дней до концерта."
    new(tmp_path, {"правила": "Введение. " + RULES.replace(QUOTE, now)})
    code, ((passage,),) = found(tmp_path)[0], [each["spans"] for each in found(tmp_path)[1]]
    assert code == 1
    assert (passage["state"], passage["new_text"], passage["new"]) == ("changed", now, None)
    assert passage["closest"] == [28, 28 + len(now)]
    assert 0.9 < passage["similarity"] < 1
    said = diff(tmp_path)
    assert f'was [18:{18 + len(QUOTE)}] "{QUOTE}"' in said.out
    assert f'closest [28:{28 + len(now)}] 95% alike\n      "{now}"' in said.out
    assert re.search(r"^  changed +1$", said.out, re.MULTILINE)


def test_evidence_of_which_nothing_is_left_is_gone(tmp_path):
    old(tmp_path)
    new(tmp_path, {"правила": "Здесь теперь только адреса касс и часы их работы.", "другой": f"Ещё раз: {QUOTE}"})
    code, (lost,) = found(tmp_path)
    assert (code, lost["state"]) == (1, "gone")
    assert lost["remark"] == 'the same text stands in "другой"'


def test_a_document_that_is_gone_is_said_with_those_that_hold_the_same_text(tmp_path):
    old(tmp_path, unit("правила", RULES, QUOTE), {"doc_id": "guide"})
    new(tmp_path, {"a": f"!{QUOTE}", "b": QUOTE, "c": "nothing"})
    code, units = found(tmp_path)
    assert (code, [each["state"] for each in units]) == (1, ["document gone", "document gone"])
    assert [each["remark"] for each in units] == ['the same text stands in "a", "b"', ""]


def test_texts_without_a_document_are_looked_for_by_their_rarest_word(tmp_path):
    """So that many texts are not compared with many documents: each is compared with few."""
    sought = [(f"The limit of rule {number} is ten days.",) for number in range(500)]
    posts = signposts([*sought, ("да.",)])
    assert posts[""] == [("да.",)]
    assert sum(map(len, posts.values())) == 501
    assert all(word in text for word, found in posts.items() for texts in found for text in texts)
    assert max(map(len, posts.values())) == 1
    texts = {f"d{number}": f"No {number}. The limit of rule {number} is ten days. Ещё текст." for number in range(40)}
    units = [unit(key, text, text[text.index("e limit") : text.index(" days") + 3]) for key, text in texts.items()]
    old(tmp_path, *units, unit("d0", texts["d0"], "The"), documents=texts)
    new(tmp_path, {f"x{key}": f"Новое. {text}" for key, text in texts.items()})
    _, now = found(tmp_path)
    assert [each["remark"] for each in now[:-1]] == [f'the same text stands in "xd{number}"' for number in range(40)]
    assert now[-1]["remark"] == 'the same text stands in "xd0", "xd1", "xd2", …'


def test_a_renamed_document_is_certain_if_one_new_document_alone_has_its_text(tmp_path):
    whole = {"doc_id": "guide"}
    old(tmp_path, unit("правила", RULES, QUOTE, quote=QUOTE), whole)
    folder = new(tmp_path, {"правила-2026": RULES, "guide v2": GUIDE})
    assert state(tmp_path, "--fix") == (0, ["moved", "moved"])
    assert [each["doc_id"] for each in truth(folder)[0]["alternatives"][0]] == ["правила-2026", "guide v2"]
    new(tmp_path, {"правила-2026": RULES, "ещё": RULES, "guide v2": GUIDE})
    code, units = found(tmp_path)
    assert (code, units[0]["state"], units[1]["state"]) == (1, "document gone", "moved")
    assert units[0]["remark"] == 'the same text stands in "правила-2026", "ещё"'


def test_a_document_that_had_a_double_is_not_taken_for_it(tmp_path):
    documents = {"a": GUIDE, "b": GUIDE}
    old(tmp_path, {"doc_id": "a"}, documents=documents)
    new(tmp_path, {"b": GUIDE})
    assert state(tmp_path) == (1, ["document gone"])


def test_two_documents_that_became_one_are_not_certain(tmp_path):
    old(tmp_path, {"doc_id": "a"}, {"doc_id": "b"}, documents={"a": GUIDE, "b": GUIDE})
    new(tmp_path, {"both": GUIDE})
    assert state(tmp_path) == (1, ["document gone", "document gone"])


def test_a_whole_document_is_unchanged_and_a_new_text_is_said(tmp_path):
    old(tmp_path, {"doc_id": "guide"})
    new(tmp_path, {"guide": GUIDE + " New."})
    code, (whole,) = found(tmp_path)
    assert (code, whole["state"], whole["remark"]) == (0, "unchanged", "the document's text has changed")
    assert "the document's text has changed" in diff(tmp_path).out


def test_every_span_of_a_unit_must_be_found(tmp_path):
    spans = [[0, 17], [RULES.index("Исключение"), len(RULES)]]
    old(tmp_path, {"doc_id": "правила", "spans": spans})
    new(tmp_path, {"правила": RULES.replace("Деньги", "Тогда деньги")})
    code, (moved,) = found(tmp_path)
    assert (code, moved["state"]) == (0, "moved")
    assert [each["state"] for each in moved["spans"]] == ["unchanged", "moved"]
    folder = new(tmp_path, {"правила": RULES.replace("закрытые показы", "открытые показы")})
    assert state(tmp_path, "--fix") == (1, ["changed"])
    (row,) = truth(folder)[0]["alternatives"][0]
    assert row["spans"] == spans
    assert row["quote"] == "Правила возврата. … Исключение: билеты на закрытые показы не возвращают."
    assert row["unresolved"].startswith("changed: Исключение: билеты на открытые показы")


def test_judged_passages_are_looked_for_too(tmp_path):
    old(tmp_path, relevant=[unit("guide", GUIDE, "Refunds need a receipt.", grade=1)])
    folder = new(tmp_path, {"правила": RULES, "guide": "Note. " + GUIDE})
    assert state(tmp_path, "--fix") == (0, ["unchanged", "moved"])
    assert truth(folder)[0]["relevant"] == [unit("guide", "Note. " + GUIDE, "Refunds need a receipt.", grade=1)]


# What counts as the same

SPACED = "Срок\u00a0— 14\u00a0дней, её\r\nномер: йод. 10\u00a0000 EUR"
PLAIN = "Срок — 14 дней, её\nномер: йод. 10 000 EUR"


@pytest.mark.parametrize("form_of", ["NFC", "NFD"])
def test_a_new_export_of_the_same_letters_has_moved_with_a_remark(tmp_path, form_of):
    before, after = unicodedata.normalize("NFC", PLAIN), unicodedata.normalize(form_of, SPACED)
    text = f"Начало.\n{before}\nКонец."
    old(tmp_path, unit("d", text, before, quote=before), documents={"d": text})
    folder = new(tmp_path, {"d": f"Начало.\r\n\r\n{after}\r\nКонец."})
    code, (moved,) = found(tmp_path, "--fix")
    assert (code, moved["state"]) == (0, "moved")
    assert moved["spans"][0]["remark"] == "other white space or Unicode form, the same letters and digits"
    (row,) = truth(folder)[0]["alternatives"][0]
    assert row["quote"] == after
    assert ablate("dataset", "diff", str(folder), str(tmp_path / "old")).code == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("вернуть за 30 дней", "вернуть за 130 дней"),
        ("сумма 1.5 EUR", "сумма 1.50 EUR"),
        ("до 10 000 EUR", "до 10000 EUR"),
        ("можно вернуть", "можно вернуть".upper()),
        ("можно, вернуть", "можно вернуть"),
        ("поймали", unicodedata.normalize("NFD", "поимали").replace("и", "и\u0306\u0302", 1)),
        ("ﬁrst", "first"),
        ("표가", "표각"),
        ("H2O и CO2", "H₂O и CO₂"),
        ("пункт 1. 5 дней", "пункт 1.5 дней"),
        ("до - 5 °C", "до -5 °C"),
    ],
)
def test_other_letters_digits_or_signs_are_a_change(tmp_path, before, after):
    text = f"Итак: {before}. Всё."
    old(tmp_path, unit("d", text, before), documents={"d": text})
    new(tmp_path, {"d": text.replace(before, after)})
    assert state(tmp_path)[1][0] in ("changed", "gone")


@pytest.mark.parametrize(
    ("quote", "now"),
    [
        ("30 дней", "за 130 дней нельзя"),
        ("30", "за 30,5 дней нельзя"),
        ("30 дней", "за 1,30 дней нельзя"),
        ("за 30", "за 300 дней нельзя"),
        ("дней", "за 30 дней\u0301 нельзя"),
        ("за 30 дне", "за 30 дней нельзя"),
        ("30 дней", "за -30 дней нельзя"),
        ("30 дней", "за 1 30 дней нельзя"),
        ("30 дней", "за 1\u00a030 дней нельзя"),
        ("30 дней", "за 1/30 дней нельзя"),
        ("30 дней", "за 1\u201930 дней нельзя"),
        ("за 30", "за 30% дней нельзя"),
    ],
)
def test_a_passage_that_has_become_part_of_a_word_or_number_is_a_change(tmp_path, quote, now):
    text = "Вернуть за 30 дней нельзя"
    old(tmp_path, unit("d", text, quote), documents={"d": text})
    new(tmp_path, {"d": "Вернуть " + now})
    cut = quote == "за 30 дне"  # it was part of a word before
    assert state(tmp_path)[1] == ["unchanged" if cut else "changed"]


def test_a_word_or_number_grown_at_the_same_offset_is_a_change():
    assert anchored(Text("цена 30"), Span(0, 7), Text("цена 300")).span is None
    assert anchored(Text("цена 30"), Span(0, 7), Text("цена 30.")).span == Span(0, 7)


# Doubles

ROW = "Срок: 14 дней. "


def rows(*names):
    return "".join(f"Раздел {name} о правилах возврата билетов и иных покупок.\n{ROW}\n" for name in names)


def test_surroundings_tell_a_passage_from_its_doubles():
    before, after = rows("первый", "второй", "третий"), rows("новый", "первый", "второй", "третий")
    second = before.index(ROW, before.index("второй"))
    span, place = Span(second, second + 14), after.index(ROW, after.index("второй"))
    assert anchored(Text(before), span, Text(after)).span == Span(place, place + 14)


def test_the_double_of_a_passage_that_is_gone_is_not_taken_for_it():
    before, after = rows("первый", "второй"), rows("второй")
    first = before.index(ROW)
    found = anchored(Text("!" + before), Span(first + 1, first + 15), Text(after))
    assert found.span is None
    assert len(found.doubles) == 1


def test_doubles_that_nothing_tells_apart_are_left_to_a_person(tmp_path):
    text = "Кратко о сроках возврата. " + ROW * 2
    old(tmp_path, unit("d", text, ROW.strip()), documents={"d": text})
    folder = new(tmp_path, {"d": "Иначе: " + ROW * 3 + "Вот и всё."})
    code, (each,) = found(tmp_path, "--fix")
    assert (code, each["state"], each["spans"][0]["similarity"]) == (1, "changed", 1.0)
    assert "the same text at 3 places" in truth(folder)[0]["alternatives"][0][0]["unresolved"]


def test_doubles_in_surroundings_that_are_the_same_far_and_wide_are_left_to_a_person():
    page = f"Раздел о правилах возврата билетов и иных покупок.\n{ROW}\n"
    before, after = page * 60, "Новое начало. " + page * 61
    start = before.index(ROW, len(before) // 2)
    found = anchored(Text(before), Span(start, start + 14), Text(after))
    assert (found.span, len(found.doubles)) == (None, 61)


def test_two_passages_never_end_up_in_one_place(tmp_path):
    text = f"Начало истории о возврате. {ROW}Середина. {ROW}Конец истории о возврате билетов."
    first, second = text.index(ROW), text.rindex(ROW)
    spans = [[first, first + 14], [second, second + 14]]
    old(tmp_path, {"doc_id": "d", "spans": spans}, documents={"d": text})
    new(tmp_path, {"d": f"Начало истории о возврате. {ROW}Конец истории о возврате билетов."})
    code, (each,) = found(tmp_path)
    assert (code, each["state"]) == (1, "changed")


def test_a_quote_that_is_no_longer_the_only_one_gets_offsets(tmp_path):
    old(tmp_path, {"doc_id": "правила", "quote": QUOTE})
    text = RULES + "\n\nЧастые вопросы.\n" + QUOTE
    folder = new(tmp_path, {"правила": text})
    assert state(tmp_path, "--fix") == (0, ["unchanged"])
    assert truth(folder)[0]["alternatives"][0] == [{"doc_id": "правила", "quote": QUOTE, "start": 18, "end": 61}]


# Properties

searched = settings(deadline=None)

WORDS = st.sampled_from(["срок", "возврат", "билет", "14", "дней", "EUR", "её", "йод", "the", "rule", "—", "\n", "10"])
PROSE = st.lists(WORDS, max_size=30).map(" ".join)
EVIDENCE = st.lists(WORDS, min_size=3, max_size=12).map(" ".join).map(str.strip)


def placed(before, quote, after):
    text = f"{before} {quote} {after}"
    return text, Span(len(before) + 1, len(before) + 1 + len(quote))


NUMBERED = st.integers(0, 999).map("пункт номер {0} о деле {0}".format)
OTHER = st.lists(NUMBERED, max_size=8, unique=True).map(". ".join)
"""Prose that does not repeat itself, nor the evidence."""


@searched
@given(OTHER, EVIDENCE, OTHER, OTHER, OTHER)
def test_evidence_is_found_whatever_else_is_written_or_deleted_around_it(before, quote, after, left, right):
    marked = f"Пункт {quote} конец этого пункта"  # occurs once
    text, span = placed(before, marked, after)
    now, place = placed(left, marked, right)
    assert anchored(Text(text), span, Text(now)).span == place
    assert anchored(Text(now), place, Text(text)).span == span


@searched
@given(PROSE, EVIDENCE, PROSE, PROSE, PROSE)
def test_where_its_own_words_are_written_around_it_evidence_is_found_or_left_to_a_person(
    before, quote, after, left, right
):
    marked = f"Пункт {quote} конец этого пункта"
    text, span = placed(before, marked, after)
    now, place = placed(left, marked, right)
    assert anchored(Text(text), span, Text(now)).span in (place, None)
    assert anchored(Text(now), place, Text(text)).span in (span, None)


@searched
@given(PROSE, EVIDENCE, PROSE, st.data())
def test_a_place_that_is_called_certain_holds_the_same_signs(before, quote, after, data):
    text, span = placed(before, quote, after)
    at = data.draw(st.integers(span.start, span.end - 1))
    letter = data.draw(st.sampled_from("хy7.—"))
    edited = text[:at] + letter + text[at + data.draw(st.integers(0, 3)) :]
    assume(form(edited).text != form(text).text)
    found = anchored(Text(text), span, Text(edited)).span
    if found is not None:  # a double of the evidence
        assert form(edited[found.start : found.end]).text == form(quote).text


@searched
@given(PROSE, EVIDENCE, PROSE, st.data())
def test_an_edit_inside_evidence_that_occurs_once_never_counts_as_moved(before, quote, after, data):
    marked = f"Пункт {quote} конец"
    text, span = placed(before, marked, after)
    at = data.draw(st.integers(span.start, span.end - 1))
    edited = text[:at] + data.draw(st.sampled_from("хy7")) + text[at + data.draw(st.integers(0, 3)) :]
    assume(marked not in edited)
    assert anchored(Text(text), span, Text(edited)).span is None


CLAUSE = "The customer may return the goods within {} days of delivery."


@pytest.mark.parametrize(
    ("before", "after", "quote"),
    [
        (
            "Refund within 14 days. Exchange within 30 days.",
            "Refund within 15 days. Exchange within 14 days.",
            "14 days",
        ),
        ("Fee: 14 days to pay, as said.", "Fee: two weeks to pay, as said. Appeal: 14 days.", "14 days"),
        (  # the edited passage has the other one's old words, and stands between headings that stayed
            f"Plan A. {CLAUSE.format(14)} Plan B. {CLAUSE.format(30)}",
            f"Plan A. {CLAUSE.format(15)} Plan B. {CLAUSE.format(14)}",
            CLAUSE.format(14),
        ),
        (
            f"Тариф А. {CLAUSE.format(14)} Тариф Б. {CLAUSE.format(30)}",
            f"Тариф А. {CLAUSE.format(30)} Тариф Б. {CLAUSE.format(14)}",
            CLAUSE.format(30),
        ),
        ("|A|14 days|\n|B|30 days|\n|C|14 days|\n", "|C|14 days|\n|B|30 days|\n|A|14 days|\n", "14 days"),
        ("|A|14 days|\n|B|30 days|\n|C|21 days|\n", "|A|15 days|\n|B|30 days|\n|C|14 days|\n", "14 days"),
    ],
)
def test_a_text_that_was_edited_is_not_found_where_another_passage_has_its_old_words(before, after, quote):
    start = before.index(quote)
    assert anchored(Text(before), Span(start, start + len(quote)), Text(after)).span is None


@searched
@given(st.lists(st.integers(10, 14), min_size=2, max_size=6), st.data())
def test_one_digit_in_one_of_many_clauses_that_are_alike_never_counts_as_moved(days, data):
    """Clauses under headings, of which one gets another number, and others too."""
    quoted = data.draw(st.sampled_from(["{} days", "within {} days of", CLAUSE]))
    which = data.draw(st.integers(0, len(days) - 1))
    now = [data.draw(st.sampled_from([number, 14])) for number in days]
    now[which] = data.draw(st.integers(10, 15).filter(lambda number: number != days[which]))

    def written(numbers):
        return "\n".join(f"Section {place}. {CLAUSE.format(number)}" for place, number in enumerate(numbers))

    quote, text = quoted.format(days[which]), written(days)
    start = text.index(quote, text.index(f"Section {which}. "))
    assert anchored(Text(text), Span(start, start + len(quote)), Text(written(now))).span is None


def test_a_passage_that_got_a_neighbour_has_not_lost_its_place_to_it():
    rule, like = "The late fee never exceeds the price of one day.", "The late fee never exceeds it."
    text = f"Section one is this. {rule} Section two is that, old."
    for both in (f"{like} {rule}", f"{rule} {like}"):
        now = f"Head. Section one is this. {both} Section two is that, new."
        found, place = (Span(each.index(rule), each.index(rule) + len(rule)) for each in (text, now))
        assert anchored(Text(text), found, Text(now)).span == place


def test_paragraphs_and_rows_in_another_order_have_moved():
    parts = [
        "Travel is paid up to 300 euros a day, and the manager signs the form in advance.",
        "Ключи от офиса выдаёт ресепшен под роспись в журнале, по одному на отдел.",
        "The late fee of one rental never exceeds the price of one rental day.",
    ]
    text, now = "\n\n".join(parts), "\n\n".join(parts[::-1])
    for part in parts:
        place = anchored(Text(text), Span(text.index(part), text.index(part) + len(part)), Text(now)).span
        assert place == Span(now.index(part), now.index(part) + len(part))
    oak, elm, ash = (f"|{name} and its kind|{days} days|\n" for name, days in (("Oak", 14), ("Elm", 30), ("Ash", 21)))
    table, other, row = oak + elm + ash, oak + ash + elm, elm.strip()
    place = anchored(Text(table), Span(table.index(row), table.index(row) + len(row)), Text(other)).span
    assert place == Span(other.index(row), other.index(row) + len(row))


@searched
@given(st.lists(PROSE, min_size=2, max_size=5), st.integers(0, 4), PROSE)
def test_with_doubles_the_right_one_is_taken_or_none(parts, which, inserted):
    """Doubles of one quote, and a text written somewhere between them."""
    text, spans = "", []
    for part in parts:
        text += part + " "
        spans.append(Span(len(text), len(text) + len(ROW)))
        text += ROW
    cut = spans[min(which, len(spans) - 1)].start
    now, shift = text[:cut] + inserted + " " + text[cut:], len(inserted) + 1
    for span in spans:
        right = Span(span.start + shift, span.end + shift) if span.start >= cut else span
        found = anchored(Text(text), span, Text(now)).span
        assert found in (None, right, span)  # the same text at the same offsets is unchanged by definition


@searched
@given(st.text(alphabet="аейёи\u0306\u0308\u0301 \u00a0\r\n\u200b1,.가각\u1100\u1161\u11a8e\u0323", max_size=20))
def test_the_form_of_a_text_is_that_of_its_composed_and_its_decomposed_text(text):
    assert form(text).text == form(unicodedata.normalize("NFC", text)).text
    assert form(text).text == form(unicodedata.normalize("NFD", text)).text
    assert len(form(text).offsets) == len(form(text).text) + 1
    assert list(form(text).offsets) == sorted(form(text).offsets)


def test_white_space_counts_only_between_two_words():
    assert (
        form("( 14 часов ) , итого :\n5 %\tEUR").text
        == form("(14\u00a0часов), итого: 5% EUR").text
        == "(14 часов),итого:5%EUR"
    )
    assert form("не верно").text != form("неверно").text


def test_the_closest_text_is_found_in_a_long_document():
    filler = " ".join(f"Пункт {number} о хранении и выдаче вещей." for number in range(20_000))
    text = filler[:400_000] + " Билет можно сдать за 30 дней до спектакля. " + filler[400_000:]
    span, similarity = closest(QUOTE, text)
    assert text[span.start : span.end] == "Билет можно сдать за 30 дней до спектакля."
    assert similarity > 0.7


def test_nothing_is_closest_to_what_has_no_like():
    assert closest(QUOTE, "Кассы открыты с девяти до шести.") is None
    assert closest("日本語の文章です", "英語だけ") is None


# --fix


def test_what_is_not_certain_keeps_its_old_values_and_is_marked(tmp_path):
    old(tmp_path, unit("правила", RULES, QUOTE, fact="срок"), {"doc_id": "guide"})
    now = "Билет можно вернуть за 30 дней до концерта."
    folder = new(tmp_path, {"правила": RULES.replace(QUOTE, now)})
    assert state(tmp_path, "--fix") == (1, ["changed", "document gone"])
    first, second = truth(folder)[0]["alternatives"][0]
    assert first == unit("правила", RULES, QUOTE, fact="срок", quote=QUOTE, unresolved=f"changed: {now}")
    assert second == {"doc_id": "guide", "unresolved": "document gone: no document has the same text"}


def test_lines_in_which_nothing_moved_stay_byte_for_byte(tmp_path):
    folder = old(tmp_path)
    raw = folder / "ground_truth.jsonl"
    spaced = raw.read_text(encoding="utf-8").replace('{"query_id"', '{  "query_id"').replace("14", "\\u0031\\u0034")
    raw.write_text(spaced + "\n", encoding="utf-8")
    made = new(tmp_path, {"правила": RULES + " Добавлено."})
    assert state(tmp_path, "--fix") == (0, ["unchanged"])
    assert (made / "ground_truth.jsonl").read_bytes() == raw.read_bytes()


def test_the_rest_of_the_dataset_is_copied_where_it_is_lacking(tmp_path):
    folder = old(tmp_path)
    put(folder, {"contract.yaml": "use_case: old\n", "GUIDE.md": "old", "qrels/test.tsv": "q1\tguide\t1\n"})
    made = new(tmp_path, {"правила": "! " + RULES})
    put(made, {"GUIDE.md": "new"})
    said = diff(tmp_path, "--fix")
    assert said.code == 0
    assert (made / "contract.yaml").read_text(encoding="utf-8") == "use_case: old\n"
    assert (made / "GUIDE.md").read_text(encoding="utf-8") == "new"
    assert (made / "queries.jsonl").read_bytes() == (folder / "queries.jsonl").read_bytes()
    assert 'qrels/test.tsv: 1 judgments of documents that the new corpus lacks (first "guide")' in said.out
    assert "written to" in said.out


def test_a_person_s_corrections_are_never_lost(tmp_path):
    old(tmp_path)
    made = new(tmp_path, {"правила": RULES.replace("14", "30")})
    assert diff(tmp_path, "--fix").code == 1
    written = (made / "ground_truth.jsonl").read_bytes()
    assert "nothing, it is all there already" in diff(tmp_path, "--fix").out
    corrected = written.replace(b"changed", "проверено".encode())
    (made / "ground_truth.jsonl").write_bytes(corrected)
    said = diff(tmp_path, "--fix")
    assert said.code == 2
    assert "somebody's work" in said.err
    assert (made / "ground_truth.jsonl").read_bytes() == corrected


def test_a_copy_of_the_old_folder_with_a_new_corpus_is_fixed(tmp_path):
    folder = old(tmp_path)
    made = new(tmp_path, {"правила": "! " + RULES})
    put(made, {"ground_truth.jsonl": (folder / "ground_truth.jsonl").read_text(encoding="utf-8")})
    assert state(tmp_path, "--fix") == (0, ["moved"])
    assert truth(made)[0]["alternatives"][0][0]["start"] == 20


def test_there_and_back_gives_the_old_ground_truth(tmp_path):
    folder = old(
        tmp_path,
        unit("правила", RULES, QUOTE, quote=QUOTE),
        {"doc_id": "guide", "spans": [[0, 27], [52, 60]]},
        {"doc_id": "guide", "quote": "Refunds need a receipt."},
    )
    new(tmp_path, {"правила": RULES.replace("Правила", "Новые правила"), "desk": "On paper. " + GUIDE, "guide": GUIDE})
    assert diff(tmp_path, "--fix").code == 0
    back = tmp_path / "back"
    put(back, {"corpus.jsonl": (folder / "corpus.jsonl").read_text(encoding="utf-8")})
    assert ablate("dataset", "diff", str(tmp_path / "new"), str(back), "--fix").code == 0
    assert (back / "ground_truth.jsonl").read_bytes() == (folder / "ground_truth.jsonl").read_bytes()


def test_what_was_lost_once_is_found_again_when_its_text_returns(tmp_path):
    folder = old(tmp_path, unit("правила", RULES, QUOTE, quote=QUOTE))
    new(tmp_path, {"правила": RULES.replace("14", "30")})
    assert diff(tmp_path, "--fix").code == 1
    back = tmp_path / "back"
    put(back, {"corpus.jsonl": (folder / "corpus.jsonl").read_text(encoding="utf-8")})
    assert ablate("dataset", "diff", str(tmp_path / "new"), str(back), "--fix").code == 0
    assert (back / "ground_truth.jsonl").read_bytes() == (folder / "ground_truth.jsonl").read_bytes()


# Refusals


def refused(*argv):
    said = ablate("dataset", "diff", *map(str, argv))
    assert (said.code, said.out) == (2, "")
    assert "expected" in said.err
    return said.err


def test_a_wrong_question_is_a_sentence(tmp_path):
    folder = old(tmp_path)
    made = new(tmp_path, {"правила": RULES})
    assert "found the old folder again" in refused(folder, folder)
    assert "found no ground_truth.jsonl" in refused(made, folder)
    assert "found no such folder" in refused(folder, tmp_path / "nowhere")
    put(made, {"corpus.jsonl": '{"_id": "a", "text": "b"}\n{"_id": "a", "text": "c"}\n'})
    assert "corpus.jsonl:2" in refused(folder, made)
    (made / "corpus.jsonl").unlink()
    assert "found no corpus.jsonl" in refused(folder, made)


def test_an_old_dataset_that_does_not_fit_its_own_corpus_is_refused(tmp_path):
    old(tmp_path, {"doc_id": "правила", "start": 0, "end": 7, "quote": "Правило"})
    new(tmp_path, {"правила": RULES})
    assert "ground_truth.jsonl:1" in refused(tmp_path / "old", tmp_path / "new")
    old(tmp_path, {"doc_id": "нет"})
    assert "an id of corpus.jsonl" in refused(tmp_path / "old", tmp_path / "new")


def test_what_cannot_be_written_is_a_sentence(tmp_path):
    put(old(tmp_path), {"qrels/test.tsv": ""})
    made = new(tmp_path, {"правила": RULES})
    put(made, {"qrels": "a file"})
    assert "qrels/test.tsv: found File exists, expected a place to write to" in refused(tmp_path / "old", made, "--fix")
    assert not (made / "ground_truth.jsonl").exists()


def test_a_frozen_new_folder_is_not_written_to(tmp_path):
    old(tmp_path)
    made = new(tmp_path, {"правила": RULES})
    put(made, {"queries.jsonl": '{"_id": "q1", "text": "x"}\n', "ground_truth.jsonl": '{"query_id": "q1"}\n'})
    assert ablate("dataset", "freeze", str(made)).code == 0
    assert "found a frozen folder" in refused(tmp_path / "old", made, "--fix")
    assert (made / "ground_truth.jsonl").read_text(encoding="utf-8") == '{"query_id": "q1"}\n'
    assert diff(tmp_path).code == 0


# A whole dataset

SAMPLE = files("ablate") / "data" / "sample"


def evidence(folder):
    """The text of every unit, query by query, as reading the folder gives it."""
    found = Folder(str(folder), "test", "none", 1, "nobody", True, None).read()
    texts = {document.id: document.text for document in found.documents}
    return {
        key: [
            [[[texts[unit.document][a:b] for a, b in unit.spans] for unit in fact] for fact in group]
            for group in truth.alternatives
        ]
        for key, truth in found.truths.items()
    }


def rewritten(text, spans, random):
    """The text with paragraphs written, and others put in the place of what stood there, outside of the spans."""
    free = [0, *sorted(bound for span in united(spans) for bound in span), len(text)]
    pieces = []
    for number, (start, end) in enumerate(pairwise(free)):
        piece = text[start:end]
        if number % 2 == 0 and random.random() < 0.7:
            cut = random.randint(0, len(piece))
            kept = piece[cut:] if random.random() < 0.5 else piece[random.randint(cut, len(piece)) :]
            piece = f"{piece[:cut]}\n\nВставка {random.randint(0, 99)}. An inserted paragraph.\n\n{kept}\n"
        pieces.append(piece)
    return "".join(pieces)


@settings(max_examples=8, deadline=None)
@given(st.randoms(use_true_random=False))
def test_whatever_is_rewritten_around_it_all_evidence_of_a_dataset_stays(tmp_path_factory, random):
    place = tmp_path_factory.mktemp("drift")
    documents = [json.loads(line) for line in (SAMPLE / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    found = Folder("pkg://ablate/data/sample", "test", "none", 1, "nobody", True, None).read()
    units = [unit for truth in found.truths.values() for group in truth.alternatives for fact in group for unit in fact]
    units += [judged.unit for truth in found.truths.values() for judged in truth.judged]
    for row in documents:
        spans = [span for unit in units if unit.document == row["_id"] for span in unit.spans]
        row["text"] = rewritten(row["text"], spans, random)
    put(place / "new", {"corpus.jsonl": lines(documents)})
    said = ablate("dataset", "diff", str(SAMPLE), str(place / "new"), "--fix", "--json")
    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out)["counts"]["moved"] > 10
    assert evidence(place / "new") == evidence(SAMPLE)
    put(place / "back", {"corpus.jsonl": (SAMPLE / "corpus.jsonl").read_text(encoding="utf-8")})
    assert ablate("dataset", "diff", str(place / "new"), str(place / "back"), "--fix").code == 0
    assert truth(place / "back") == truth(SAMPLE)


# Evidence that had been lost before


def lost(folder, *units, excluded=True):
    """A frozen old dataset that leaves out a query with these units, beside one that it keeps."""
    made = old(folder, *units)
    for name, row in (("queries", {"_id": "q2", "text": "?"}), ("ground_truth", {"query_id": "q2"})):
        with (made / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    assert ablate("dataset", "freeze", str(made), "--exclude-unresolved").code == 0
    return made


def test_evidence_that_was_left_out_is_looked_for_by_its_quote(tmp_path):
    known = {"doc_id": "guide", "start": 1, "end": 5, "quote": "Refunds need a receipt."}
    spans = {"doc_id": "правила", "spans": [[0, 1], [1, 2]], "quote": f"{QUOTE} … {TITLE}", "unresolved": "gone: ?"}
    lost(tmp_path, known, spans, {"doc_id": "desk", "unresolved": "document gone: ?"})
    folder = new(tmp_path, {"правила": RULES, "guide": GUIDE, "desk": "New."})
    assert state(tmp_path, "--fix") == (0, ["moved", "moved", "unchanged"])
    assert truth(folder)[0]["alternatives"][0] == [
        unit("guide", GUIDE, "Refunds need a receipt.", quote="Refunds need a receipt."),
        {"doc_id": "правила", "spans": [[18, 61], [62, 84]]},
        {"doc_id": "desk"},
    ]


def test_a_few_words_that_were_left_out_are_not_found_by_themselves(tmp_path):
    """What stood around them is not known any more, and another rule may have the same."""
    lost(tmp_path, {"doc_id": "guide", "quote": "14 days", "unresolved": "changed: 15 days"})
    new(tmp_path, {"правила": RULES, "guide": GUIDE + " Exchange in 14 days."})
    assert state(tmp_path) == (1, ["changed"])


def test_evidence_of_which_not_even_a_quote_is_left_stays_marked(tmp_path):
    bare = {"doc_id": "guide", "start": 1, "end": 5, "unresolved": "gone: ?"}
    beyond = {"doc_id": "guide", "start": 1, "end": 5000}
    twice = {"doc_id": "правила", "quote": "на"}
    lost(tmp_path, bare, beyond, twice)
    folder = new(tmp_path, {"guide": GUIDE, "правила": RULES})
    assert state(tmp_path, "--fix") == (1, ["gone", "gone", "changed"])
    first, second, third = truth(folder)[0]["alternatives"][0]
    assert first == bare | {"unresolved": "gone: nothing like it was found"}
    assert second == beyond | {"unresolved": "gone: nothing like it was found"}
    assert third["unresolved"].startswith("changed: на; the same text at 2 places")


def test_evidence_that_was_left_out_is_found_in_a_renamed_document(tmp_path):
    lost(tmp_path, {"doc_id": "guide", "quote": "Refunds need a receipt.", "unresolved": "changed: ?"})
    folder = new(tmp_path, {"desk": GUIDE})
    assert state(tmp_path, "--fix") == (0, ["moved"])
    assert truth(folder)[0]["alternatives"] == [[{"doc_id": "desk", "quote": "Refunds need a receipt."}]]


def test_an_empty_document_is_not_taken_for_another(tmp_path):
    old(tmp_path, {"doc_id": "a"}, documents={"a": "", "b": RULES})
    new(tmp_path, {"c": ""})
    assert state(tmp_path) == (1, ["document gone"])


def test_two_lines_of_one_query_are_refused(tmp_path):
    folder = old(tmp_path)
    new(tmp_path, {"правила": RULES})
    raw = (folder / "ground_truth.jsonl").read_bytes()
    (folder / "ground_truth.jsonl").write_bytes(raw * 2)
    assert '"q1" a second time' in refused(folder, tmp_path / "new")


def test_frozen_folders_that_changed_are_refused(tmp_path):
    folder = old(tmp_path)
    new(tmp_path, {"правила": RULES})
    assert ablate("dataset", "freeze", str(folder)).code == 0
    assert diff(tmp_path).code == 0
    put(folder, {"GUIDE.md": "new"})
    assert "(added: GUIDE.md)" in refused(folder, tmp_path / "new")
