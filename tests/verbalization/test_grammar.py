"""Time references and the tokenizer."""

import numpy as np
import pytest

from memenvs.verbalization.dates import DAY
from memenvs.verbalization.language.times import (
    FutureTimeError,
    day_forms,
    draw_form,
    full_hour,
    moment_forms,
    parse_time,
    period_forms,
)
from memenvs.verbalization.language.tokenizer import TOKENIZER, UNKNOWN, query_text
from memenvs.verbalization.language.wordings import FAMILIES, KINDS
from tests.verbalization.lives import second


def test_each_phrase_of_a_moment_is_equally_likely():
    forms = moment_forms(second(2021, 7, 5, 9, 40), second(2021, 7, 6, 15, 0))
    texts = [text for form in forms for text in form.phrases]
    rng = np.random.default_rng(0)
    drawn = [draw_form(forms, rng).text for _ in range(20_000)]
    assert len(set(texts)) == len(texts) > 10
    assert max(abs(drawn.count(text) * len(texts) / 20_000 - 1) for text in texts) < 0.2


def test_hours_of_the_clock():
    assert list(full_hour(14)) == ["at 14 o clock", "at 02 PM", "at about 14 o clock", "at about 02 PM"]
    assert "at 12 AM" in full_hour(0) and "at 12 PM" in full_hour(12)
    assert {"at 09 o clock", "at 9 o clock", "at 09 AM"} < set(full_hour(9))


def test_phrases_by_hand():
    now = second(2021, 7, 6, 15, 0)
    phrases = {text for form in moment_forms(second(2021, 7, 5, 9, 40), now) for text in form.phrases}
    assert {"yesterday at 09:40", "yesterday at about 10 o clock", "yesterday in the morning"} < phrases
    assert {"on July 5 at 09:40", "on Jul 5 at 10 AM"} < phrases
    assert not {"on July 5 in the morning", "yesterday at 09 o clock"} & phrases
    for text, low, high in (
        ("yesterday before noon", (2021, 7, 5, 10, 0), (2021, 7, 5, 12, 0)),
        ("three days ago at 10:36", (2021, 7, 3, 10, 36), (2021, 7, 3, 10, 37)),
        ("on September 23 at 02 PM", (2020, 9, 23, 13, 30), (2020, 9, 23, 14, 30)),
        ("at noon", (2021, 7, 6, 12, 0), (2021, 7, 6, 14, 0)),
        ("Today at 12 am", (2021, 7, 6, 0, 0), (2021, 7, 6, 0, 30)),
        ("about 20 minutes ago", (2021, 7, 6, 14, 38), (2021, 7, 6, 14, 43)),
        ("in the last two hours", (2021, 7, 6, 13, 1), (2021, 7, 6, 15, 0, 1)),
        ("this week", (2021, 7, 5, 0, 0), (2021, 7, 6, 15, 0, 1)),
        ("in the last three days", (2021, 7, 4, 0, 0), (2021, 7, 6, 15, 0, 1)),
        ("on Feb 29", (2020, 2, 29, 0, 0), (2020, 3, 1, 0, 0)),
    ):
        time = parse_time(text, now)
        assert (time.low, time.high) == (second(*low), second(*high)), text
    for text in ("tomorrow at noon", "today at 16:00", "in three days", "next week", "at 04 PM"):
        with pytest.raises(FutureTimeError):
            parse_time(text, now)
    with pytest.raises(FutureTimeError):
        parse_time("on December 24", now, oldest=second(2021, 5, 1, 8, 0))
    assert parse_time("on December 24", now).low == second(2020, 12, 24, 0, 0)
    for text in ("", "at 25:00", "at 13 PM", "on February 31", "once upon a time"):
        with pytest.raises(ValueError, match="is no"):
            parse_time(text, now)


def test_a_later_moment_of_today_is_named_by_the_clock_alone():
    """A guess of a time may be one that has not come yet."""
    now = second(2021, 7, 6, 9, 0)
    forms = moment_forms(now + 6 * 3600, now)
    assert "today at 15:00" in forms[0].phrases and {form.family for form in forms} == {"today"}


def test_every_phrase_denotes_its_moment_and_is_parsed_to_it():
    rng = np.random.default_rng(0)
    for _ in range(400):
        now = int(rng.integers(200 * DAY, 2000 * DAY))
        gap = int(rng.integers([1800, DAY, 20 * DAY, 400 * DAY][int(rng.integers(4))]))
        moment = max(0, now - gap)
        forms = moment_forms(moment, now)
        assert all(form.low <= moment < form.high for form in forms)
        for form in [*forms, *day_forms(moment // DAY, now), *period_forms(now, int(rng.integers(2, 40)))]:
            reference = form.phrase(int(rng.integers(len(form.phrases))))
            assert parse_time(reference.text, now) == reference
        assert draw_form(forms, rng).contains(moment)


def test_wordings_are_distinct_and_some_are_held_out():
    wordings = [wording for family in FAMILIES.values() for wording in family.wordings]
    assert len(set(wordings)) == len(wordings)
    assert {family.kind for family in FAMILIES.values()} == set(KINDS)
    assert all(0 < family.num_held_out < len(family.wordings) / 2 for family in FAMILIES.values())


def test_tokenizer():
    text = query_text(second(2020, 7, 29, 14, 56) + 7, "Where did you put the red cup at 10:36?")
    assert text.startswith("2020 07 29 3 14 56 07 ")
    numbers = TOKENIZER.encode(text)
    assert TOKENIZER.decode(numbers) == text.lower()
    assert UNKNOWN not in numbers and numbers[-1] == 1
    assert TOKENIZER.tokens[:3] == ("<pad>", "</s>", "<unk>") and 250 < len(TOKENIZER) < 800
    assert TOKENIZER.encode("the dragon")[1] == UNKNOWN
    assert TOKENIZER.unknown_words("did the dragon fly, did it?") == ["dragon", "fly"]
    assert TOKENIZER.decode([0, *numbers, 5, 5]) == text.lower()  # padding says nothing, and what follows the end
