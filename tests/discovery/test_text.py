"""Text in any script: what it is indexed under, and what breaks nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery._text import fold, terms, tokenize, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cats were running", ["cat", "run"]),
        ("Who is he?", []),
        ("", []),
        ("RedMug_2", ["redmug", "red", "mug", "2"]),
        ("Reykjavík", ["reykjavik"]),
        ("東京都", ["東京", "京都", "東", "京", "都"]),
        ("猫", ["猫"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("مرحبا بالعالم", ["مرحبا", "بالعالم"]),
        ("ひらがな", ["ひら", "らが", "がな"]),
        ("party 🎂🎂!", ["parti", "🎂", "🎂"]),
    ],
)
def test_terms(text, expected):
    assert terms(text) == expected


def test_words_keep_their_place_in_the_text():
    assert [(token.word, token.raw, token.start) for token in tokenize("It's Ann")] == [
        ("it", "It", 0),
        ("s", "s", 3),
        ("ann", "Ann", 5),
    ]


def test_spellings_of_one_word_fold_together():
    assert fold("\uff21nn") == fold("ANN") == "ann"
    assert words("Zoë") == words("zoe")
    # With vowel points and without, stretched and not.
    assert words("كِتَابٌ") == words("كتاب") == words("كتـــاب")
    assert words("שָׁלוֹם") == words("שלום")


@given(st.text())
def test_any_text_is_read_and_tokens_say_where_they_stand(text):
    terms(text)
    for token in tokenize(text):
        assert text[token.start : token.end] == token.raw
