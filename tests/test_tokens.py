import numpy as np
import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from ablate import tokens
from ablate.errors import ConfigError
from ablate.tokens import Words, terms

TEXTS = st.text() | st.text(alphabet="aБ中かサーกั़й9_ -.+#/ё\u00ad\u200b\u0301\n\t👍", max_size=40)


def words(text):
    return [text[start:end] for start, end in Words().spans(text)]


def test_words_and_single_punctuation_marks_are_tokens():
    assert words("Срок: 28 дней, см. CX-429!") == ["Срок", ":", "28", "дней", ",", "см", ".", "CX", "-", "429", "!"]
    assert words("user_id=«ёж»") == ["user_id", "=", "«", "ёж", "»"]


def test_a_letter_of_a_script_without_spaces_is_a_token():
    assert words("東京 サーバーです v2版") == ["東", "京", "サー", "バー", "で", "す", "v2", "版"]
    assert words("ที่นี่") == ["ที่", "นี่"]


def test_hangul_and_devanagari_have_words():
    assert words("서울 हिन्दी") == ["서울", "हिन्दी"]


def test_invisible_characters_do_not_break_a_word_and_are_none():
    assert words("инфор\u00adмация \u200b \ufeff") == ["инфор\u00adмация"]


def test_offsets_are_those_of_the_text_as_it_is():
    decomposed = "й ﬁn"  # и with a breve of its own, and a ligature that normalisation would widen
    decomposed = decomposed.replace("й", "и\u0306")
    assert Words().spans(decomposed).tolist() == [[0, 2], [3, 5]]


def test_blank_text_has_no_tokens_and_spans_keep_their_shape():
    assert Words().count("") == Words().count(" \n\u00a0\t") == 0
    assert Words().spans(" ").shape == (0, 2)
    assert Words().spans("да").dtype == np.int64


@given(TEXTS)
def test_spans_are_ordered_apart_and_counted(text):
    spans = Words().spans(text)
    assert Words().count(text) == len(spans)
    assert (spans[:, 0] < spans[:, 1]).all()
    assert (spans[1:, 0] >= spans[:-1, 1]).all()
    assert not any(text[start].isspace() or text[end - 1].isspace() for start, end in spans)


@given(TEXTS)
def test_every_letter_and_digit_is_in_a_token(text):
    held = {place for start, end in Words().spans(text) for place in range(start, end)}
    assert {place for place, letter in enumerate(text) if letter.isalnum()} <= held


@given(TEXTS, TEXTS)
def test_lengths_add_up_over_a_space(left, right):
    assert Words().count(f"{left} {right}") == Words().count(left) + Words().count(right)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CX-429", ["cx-429", "cx", "429"]),
        ("C++,", ["c++", "c"]),
        ("(C#)", ["c#", "c"]),
        ("на .NET.", ["на", ".net", "net"]),
        ("v2.1.3.", ["v2.1.3", "v2", "1", "3"]),
        ("AB/12", ["ab/12", "ab", "12"]),
        ("user_id", ["user_id", "user", "id"]),
        ("ООО «Ромашка»", ["ооо", "ромашка"]),
        ("конец...Начало", ["конец", "начало"]),
        ("правило—исключение", ["правило", "исключение"]),
        ("x y", ["x", "y"]),
    ],
)
def test_identifiers_stay_whole_beside_their_parts(text, expected):
    assert terms(text) == expected


@pytest.mark.parametrize("hyphen", "‐‑‒–−-－")
def test_an_identifier_is_the_same_with_any_hyphen(hyphen):
    assert terms(f"CX{hyphen}429") == ["cx-429", "cx", "429"]


def test_case_width_ligatures_and_composition_do_not_matter():
    assert terms("ОТПУСК") == terms("отпуск")
    assert terms("ＡＢＣ ﬁn Straße") == ["abc", "fin", "strasse"]
    assert terms("и\u0306од инфор\u00adмация") == ["йод", "информация"]
    assert terms("J\u0323\u030c") == terms("ǰ\u0323")


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_short_way_for_plain_text_gives_the_same_terms(text):
    assert terms(text) == terms(text + " é")[:-1]


def test_scripts_without_spaces_give_letters_and_pairs():
    assert terms("東京都") == ["東", "京", "都", "東京", "京都"]


def test_no_letters_no_terms():
    assert terms("") == terms(" \n") == terms("... — !?") == []


def test_each_script_is_stemmed_by_its_own_language():
    assert terms("отпусков running", ["english", "russian"]) == ["отпуск", "run"]
    assert terms("отпусков running", ["english"]) == ["отпусков", "run"]
    assert terms("отпусков running") == ["отпусков", "running"]


def test_devanagari_words_with_vowel_signs_are_stemmed():
    assert terms("लड़कियों", ["hindi"]) != terms("लड़कियों")


def test_what_holds_a_digit_or_a_sign_is_not_stemmed():
    assert terms("iso9001s re-runs", ["english"]) == ["iso9001s", "re-runs", "re", "run"]


def test_yo_is_ye_only_in_russian():
    assert terms("ёлка-2", ["russian"]) == terms("елка-2", ["russian"])
    assert terms("ёлка") != terms("елка")


def test_two_languages_of_one_script_are_refused():
    with pytest.raises(ConfigError, match="found english and french, which share a script"):
        terms("a", ["english", "russian", "french"])


def test_an_unknown_language_is_refused_with_near_names():
    with pytest.raises(ConfigError, match=r"found 'rusian', .* did you mean russian"):
        terms("a", ["rusian"])


def test_every_snowball_language_knows_its_script():
    samples = {
        "arabic": "الكتاب", "armenian": "գիտության", "greek": "ανθρώπους", "hindi": "लड़कियों", "nepali": "केटाहरूले",
        "persian": "کتابها", "russian": "отпусков", "serbian": "књигама", "tamil": "புத்தகங்கள்", "yiddish": "ביכלעך",
    }  # fmt: skip
    assert set(tokens.SCRIPTS) == set(samples)
    for language, sample in samples.items():
        assert terms(sample, [language]) == [Stemmer.Stemmer(language).stemWord(sample)] != [sample]
    for language in set(Stemmer.algorithms()) - set(samples):
        assert not [word for word in samples.values() if Stemmer.Stemmer(language).stemWord(word) != word], language
