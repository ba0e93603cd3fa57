"""Descriptions of the strategy tasks: families, overlaps, splits."""

import re
import string
from itertools import combinations

import pytest

from memenvs.retention import STRATEGIES
from memenvs.room_ballet.descriptions import STRATEGY_TASKS, load_descriptions

EARLY = r"\b(first|opening|initial|leading|earliest)\b"
LATE = r"\b(last|closing|final|latest|most recent|end|finished|tail end|last stretch)\b"
ROOMS = r"\b(every|each|all)( of)?( the)? (room|space|chamber)s?\b"
IMPERATIVES = (
    "Remember", "Recall", "Bear in mind", "Keep in mind", "Picture again", "Call back to mind", "Think back to",
    "Do not forget", "Bring to mind", "Hold on to",
)  # fmt: skip


def texts() -> dict[str, tuple[str, ...]]:
    return dict(zip(STRATEGY_TASKS, load_descriptions().texts, strict=True))


def having(pattern: str, task: str) -> list[str]:
    return [text for text in texts()[task] if re.search(pattern, text)]


def test_eighty_in_all() -> None:
    assert STRATEGY_TASKS == STRATEGIES
    assert [len(each) for each in load_descriptions().texts] == [20] * 4
    words = {re.sub(r"\W+", " ", text.lower()).strip() for each in load_descriptions().texts for text in each}
    assert len(words) == 80
    characters = set(string.ascii_letters + string.digits + " .,?'-")
    assert all(0 < len(text) <= 120 and set(text) <= characters for each in texts().values() for text in each)


def test_families() -> None:
    assert len(having(EARLY, "lifo")) == len(having("eighteen", "lifo")) == len(having("nine|half|group", "lifo")) == 20
    assert all(text.startswith(IMPERATIVES) for text in texts()["lifo"])
    assert len(having(LATE, "fifo")) == len(having(LATE, "mvfo")) == 20
    assert 3 <= len(having(r"^(Who|Which)\b", "fifo")) <= 6
    assert 0 < len(having("nine|half|group", "fifo")) < 20  # quantities are sometimes left out
    assert len(having(r"\broom\b", "lvfo")) == 20 and not having(r"\b(rooms|each|every)\b", "lvfo")
    assert having("one for (every room|each)", "mvfo") and len(having(f"{ROOMS}|one for each", "mvfo")) == 20


def test_overlaps_that_make_it_hard() -> None:
    for word, *tasks in (("last stretch", "fifo", "mvfo"), ("most|room", "lvfo", "mvfo"), ("nine", "fifo", "lifo")):
        assert all(having(rf"\b({word})\b", task) for task in tasks), word
    assert not having(f"{EARLY}|room|space|chamber", "fifo") and not having(f"{LATE}|room|space|chamber", "lifo")
    frames = [{re.sub(f"{EARLY}|{LATE}", "_", text) for text in texts()[task]} for task in ("fifo", "lifo")]
    assert len(frames[0] & frames[1]) >= 5  # the same sentence but for its marker


def test_three_splits() -> None:
    descriptions = load_descriptions()
    held_out_sets = []
    for split in range(3):
        train, held_out = descriptions.select(split, "train"), descriptions.select(split, "held_out")
        assert [len(each) for each in train] == [16] * 4 and [len(each) for each in held_out] == [4] * 4
        for whole, one, other in zip(descriptions.texts, train, held_out, strict=True):
            assert set(one) | set(other) == set(whole) and not set(one) & set(other)
        held_out_sets.append({text for each in held_out for text in each})
    assert all(not one & other for one, other in combinations(held_out_sets, 2))
    assert descriptions.select(1, "held_out")[0] == tuple(descriptions.texts[0][k] for k in (1, 6, 11, 16))


def test_unknown_splits_and_parts() -> None:
    for split in (-1, 3, True, 1.0):
        with pytest.raises(ValueError, match=f"split must be an integer of 0 to 2, got {split}"):
            load_descriptions().select(split, "train")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"unknown part 'test'; choose from \['train', 'held_out'\]"):
        load_descriptions().select(0, "test")  # type: ignore[arg-type]
