"""Ratings by a person: the seven categories, in a file beside the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memenvs.checks import is_int
from memenvs.files import write_file
from memenvs.json_records import format_json, read_json
from memenvs.verbalization.language.question_sets import Item, answered_items
from memenvs.verbalization.language.score import CATEGORIES, score_answer
from memenvs.verbalization.language.wordings import GRAMMAR_VERSION

HELP = (
    "Rate each answer: 1 ... 7, first that fits. b: back to the one before. q: stop; the next call goes on from here.\n"
    + "\n".join(f"  {number}  {name}" for number, name in enumerate(CATEGORIES, 1))
)


class Agreement(NamedTuple):
    """A person's ratings beside the categories of the scorer.

    Attributes:
        rated: Number of answers that were rated.
        equal: Number of those with the same category.
        by_category: Number of ratings of each category, 1 ... 7.
    """

    rated: int
    equal: int
    by_category: tuple[int, ...]


def ratings_path(path: Path) -> Path:
    """Return the file of ratings of a file of answers: "model.json" has "model.ratings.json"."""
    return path.with_suffix(".ratings.json")


def read_ratings(path: Path) -> dict[str, int]:
    """Read ratings; none if there is no file.

    Raises:
        ValueError: It is of another grammar version, or a rating is no category.
    """
    if not path.is_file():
        return {}
    record = read_json(path)
    if record["grammar"].value != GRAMMAR_VERSION:
        raise record["grammar"].error(f"{GRAMMAR_VERSION}, the version of the grammar of this program")
    ratings = record["ratings"]
    if not isinstance(ratings.value, dict):
        raise ratings.error("an object of ratings by id")
    for id in ratings.value:
        category = ratings[id]
        if not is_int(category.value) or not 1 <= category.value <= len(CATEGORIES):
            raise category.error(f"a category, 1 to {len(CATEGORIES)}")
    return dict(ratings.value)


def write_ratings(path: Path, ratings: Mapping[str, int]) -> None:
    """Write ratings, whole or not at all."""
    write_file(path, format_json({"grammar": GRAMMAR_VERSION, "ratings": dict(ratings)}).encode())


def rate(
    path: Path,
    count: int,
    read: Callable[[str], str] = input,
    show: Callable[[str], None] = print,
    seed: int = 0,
) -> Agreement:
    """Let a person rate answers, in random order.

    Args:
        path: File of answers.
        count: Number of answers to rate, those of earlier calls included.
        read: Shows a prompt and returns what the person types; EOFError ends the ratings.
        show: Shows a text.
        seed: Seed of the order.

    Returns:
        The ratings beside the categories of the scorer.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The answers or their ratings are wrong; see `answered_items` and `read_ratings`.
    """
    answered = dict((item.id, (item, text)) for item, text in answered_items(path))
    target = ratings_path(path)
    ratings = read_ratings(target)
    unknown = sorted(set(ratings) - set(answered))
    if unknown:
        raise ValueError(f"{target}: {len(unknown)} ids are not those of {path}, the first is {unknown[0]!r}")
    ids = sorted(answered)
    order = [ids[k] for k in np.random.default_rng(seed).permutation(len(ids))][:count]
    show(HELP)
    place = next((k for k, id in enumerate(order) if id not in ratings), len(order))
    while place < len(order):
        item, text = answered[order[place]]
        show(_describe(item, text, place, len(order)))
        choice = _choose(read)
        if choice is None:
            break
        if choice == 0:
            place = max(0, place - 1)
            continue
        ratings[item.id] = choice
        write_ratings(target, ratings)
        place += 1
    return compare(ratings, answered)


def _describe(item: Item, text: str, place: int, count: int) -> str:
    question = item.gold.question
    return f"\n{place + 1} of {count}\nquestion  {question.text}\ngold      {item.gold.answer.text}\nanswer    {text}"


def _choose(read: Callable[[str], str]) -> int | None:
    """Read a category; 0 is back, None the end."""
    while True:
        try:
            typed = read("category: ").strip().lower()
        except EOFError:
            return None
        if typed in ("q", "b"):
            return None if typed == "q" else 0
        if typed.isdecimal() and 1 <= int(typed) <= len(CATEGORIES):
            return int(typed)


def compare(ratings: Mapping[str, int], answered: Mapping[str, tuple[Item, str]]) -> Agreement:
    """Compare ratings with the categories of the scorer."""
    equal = 0
    for id, category in ratings.items():
        item, text = answered[id]
        equal += score_answer(text, item.gold, item.log).category == category
    counts = tuple(sum(each == number for each in ratings.values()) for number in range(1, len(CATEGORIES) + 1))
    return Agreement(len(ratings), equal, counts)
