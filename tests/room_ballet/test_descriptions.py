"""Descriptions of the strategy tasks: families, overlaps, splits, and invalid files."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from memenvs.retention import STRATEGIES
from memenvs.room_ballet.descriptions import CHARACTERS, MAX_CHARACTERS, STRATEGY_TASKS, load_descriptions

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


def test_tasks_are_in_the_order_of_strategies() -> None:
    assert STRATEGY_TASKS == STRATEGIES


def test_eighty_in_all() -> None:
    assert [len(each) for each in load_descriptions().texts] == [20] * 4
    words = {re.sub(r"\W+", " ", text.lower()).strip() for each in load_descriptions().texts for text in each}
    assert len(words) == 80
    assert all(
        len(text) <= MAX_CHARACTERS and set(text) <= set(CHARACTERS) for each in texts().values() for text in each
    )


def test_families() -> None:
    assert len(having(EARLY, "lifo")) == len(having("eighteen", "lifo")) == len(having("nine|half|group", "lifo")) == 20
    assert all(
        having(word, "lifo") for word in ("nine", "half", "group", "first", "opening", "initial", "leading", "earliest")
    )
    assert all(text.startswith(IMPERATIVES) for text in texts()["lifo"])
    assert len(having(LATE, "fifo")) == len(having(LATE, "mvfo")) == 20
    assert 3 <= len(having(r"^(Who|Which)\b", "fifo")) <= 6
    assert 0 < len(having("nine|half|group", "fifo")) < 20  # quantities are sometimes left out
    assert len(having(r"\broom\b", "lvfo")) == 20 and not having(r"\b(rooms|each|every)\b", "lvfo")
    for phrase in ("favourite", "kept coming back", "time", "drawn", "most often", "most frequently"):
        assert having(phrase, "lvfo")
    assert having("one for (every room|each)", "mvfo") and len(having(f"{ROOMS}|one for each", "mvfo")) == 20


def test_overlaps_that_make_it_hard() -> None:
    for marker in ("last", "closing", "final", "latest", "most recent", "finished", "tail end", "last stretch"):
        assert having(marker, "fifo") and having(marker, "mvfo")
    assert len(having(r"\bmost\b", "lvfo")) >= 5 and len(having(r"\bmost\b", "mvfo")) >= 3
    assert len(having(r"\broom\b", "lvfo")) >= 5 and len(having(r"\broom\b", "mvfo")) >= 5
    assert not having(EARLY, "fifo") and not having(LATE, "lifo")
    assert not having("room|space|chamber", "fifo") and not having("room|space|chamber", "lifo")
    for word in ("eighteen", "nine", "half", "group"):
        assert having(word, "fifo") and having(word, "lifo")
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


def content() -> dict[str, Any]:
    return {task: list(each) for task, each in texts().items()}


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_other_files(tmp_path: Path) -> None:
    changed = content()
    changed["lifo"][3:5] = "Begin with the nine that began.", "x" * 120
    loaded = load_descriptions(write(tmp_path / "mine.json", changed))
    assert loaded.texts[1][3:5] == ("Begin with the nine that began.", "x" * 120)


def with_text(task: str, number: int, text: Any) -> dict[str, Any]:
    changed = content()
    changed[task][number] = text
    return changed


def test_invalid_files_are_named(tmp_path: Path) -> None:
    for changed, message in (
        ({k: v for k, v in content().items() if k != "lvfo"}, r"missing \['lvfo'\], unknown \[\]"),
        (content() | {"lru": []}, r"missing \[\], unknown \['lru'\]"),
        (content() | {"mvfo": content()["mvfo"][:19]}, "task 'mvfo' must have 20 descriptions, got 19"),
        (content() | {"fifo": "Remember."}, "task 'fifo' must have 20 descriptions, got 'Remember.'"),
        ([], r"must be an object with the keys \['fifo', 'lifo', 'lvfo', 'mvfo'\], got list"),
        (
            with_text("mvfo", 2, "who FINISHED the show"),
            "description 2 of task 'mvfo' is the same as description 3 of task 'fifo': 'who FINISHED the show'",
        ),
        (with_text("lifo", 0, ""), "description 0 of task 'lifo' must be 1 to 120 of the characters"),
        (with_text("lifo", 0, "x" * 121), "description 0 of task 'lifo' must be 1 to 120 of the characters"),
        (with_text("lvfo", 19, "Caf\u00e9"), "description 19 of task 'lvfo' must be 1 to 120 of the characters"),
        (with_text("lvfo", 19, 3), "description 19 of task 'lvfo' must be 1 to 120 of the characters .* got 3"),
    ):
        with pytest.raises(ValueError, match=f"wrong.json: .*{message}"):
            load_descriptions(write(tmp_path / "wrong.json", changed))


def test_missing_file_and_invalid_json(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no descriptions at"):
        load_descriptions(tmp_path / "none.json")
    (tmp_path / "broken.json").write_text('{"fifo": [')
    with pytest.raises(ValueError, match=r"broken\.json: not JSON: "):
        load_descriptions(tmp_path / "broken.json")
