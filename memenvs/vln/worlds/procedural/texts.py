"""Instructions of the procedural world: clauses, their follower, their text in English.

A clause gives a turn, a description of the next viewpoint, and a description of the viewpoint where going straight
ends. A path is divided into clauses that the follower can execute; a path that it cannot execute is not used. So every
instruction can be followed by an agent that knows how much of it is done.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from memenvs.poses import wrap_angle
from memenvs.vln.graph import COLUMNS, VIEW_STEP
from memenvs.vln.tokenizers import split_words
from memenvs.vln.worlds.procedural.houses import COLOURS, HALLWAY, ITEMS, ROOM_TYPES, Landmark, ProceduralHouse

AHEAD, RIGHT, BACK, LEFT = "ahead", "right", "back", "left"
#: Largest angle from straight ahead that counts as ahead, and as left or right, rad.
_AHEAD_UP_TO, _SIDE_UP_TO = math.radians(35.0), math.radians(125.0)


@dataclass(frozen=True)
class SubInstruction:
    """One part of an instruction.

    Attributes:
        turn: `AHEAD`, `RIGHT`, `BACK` or `LEFT`, relative to the camera, which points along the last move.
        first: The next viewpoint.
        last: The viewpoint where going straight ends; equal to `first` for one move.
    """

    turn: str
    first: Landmark
    last: Landmark


def follow(house: ProceduralHouse, start: int, column: int, clauses: Sequence[SubInstruction]) -> list[int]:
    """Follow clauses, using only them and the visible viewpoints.

    Args:
        house: The house.
        start: The first node.
        column: The camera's heading there in steps of 30 degrees.
        clauses: The clauses, in order.

    Returns:
        Nodes from the start on. They end early at a clause whose first viewpoint fits no neighbour or more than one, or
        whose last viewpoint is not reached.
    """
    path = [start]
    for clause in clauses:
        part, column = _follow_one(house, path[-1], column, clause)
        path += part[1:]
        if len(part) == 1 or house.landmarks[path[-1]] != clause.last:
            break
    return path


def compile_clauses(house: ProceduralHouse, path: Sequence[int], column: int) -> tuple[SubInstruction, ...] | None:
    """Divide a path into clauses that the follower executes; None if impossible.

    A clause ends where the path turns. The follower then tries the clause; where it leaves the path, the clause is cut.

    Args:
        house: The house.
        path: Nodes from the start to the goal.
        column: The camera's heading at the start in steps of 30 degrees.
    """
    clauses, at, last = [], 0, len(path) - 1
    while at < last:
        turns, end = _turns_of(house, path, at, column), at + 1
        while end < last and turns[end - at] == AHEAD:
            end += 1
        while True:
            clause = SubInstruction(turns[0], house.landmarks[path[at + 1]], house.landmarks[path[end]])
            followed, new_column = _follow_one(house, path[at], column, clause)
            agreed = _common_moves(followed, path[at : end + 1])
            if agreed == end - at:
                break
            if agreed == 0:
                return None
            end = at + agreed
        clauses.append(clause)
        at, column = end, new_column
    return tuple(clauses)


def arrival_column(house: ProceduralHouse, path: Sequence[int], column: int) -> int:
    """Heading of the camera after a path, in steps of 30 degrees; `column` for one node."""
    for here, there in pairwise(path):
        column = _seen_from(house, here, column)[there][1]
    return column


def _follow_one(house: ProceduralHouse, node: int, column: int, clause: SubInstruction) -> tuple[list[int], int]:
    """Path of one clause and the heading at its end; one node if not exactly one candidate fits."""
    seen = _seen_from(house, node, column)
    fits = [
        there
        for there, (offset, _) in seen.items()
        if turn_of(offset) == clause.turn and house.landmarks[there] == clause.first
    ]
    path = [node]
    if len(fits) != 1:
        return path, column
    onward = fits[0]
    while True:
        column = seen[onward][1]
        path.append(onward)
        if house.landmarks[onward] == clause.last:
            return path, column
        seen = _seen_from(house, onward, column)
        ahead = {
            there: abs(offset) for there, (offset, _) in seen.items() if turn_of(offset) == AHEAD and there not in path
        }
        if not ahead:
            return path, column
        onward = min(ahead, key=lambda there: ahead[there])


def _seen_from(house: ProceduralHouse, node: int, column: int) -> dict[int, tuple[float, int]]:
    """Map each neighbour to its direction relative to the camera and the camera's column after a move to it.

    Directions are in rad, positive to the right.
    """
    candidates = house.graph.candidates
    count = int((candidates.node[node] >= 0).sum())
    offsets = wrap_angle(candidates.heading[node, :count] - column * VIEW_STEP)
    columns = candidates.view[node, :count] % COLUMNS
    seen = zip(offsets.tolist(), columns.tolist(), strict=True)
    return dict(zip(candidates.node[node, :count].tolist(), seen, strict=True))


def _turns_of(house: ProceduralHouse, path: Sequence[int], at: int, column: int) -> list[str]:
    """Directions of the moves of a path from its node number `at` on."""
    turns = []
    for here, there in pairwise(path[at:]):
        offset, column_after = _seen_from(house, here, column)[there]
        turns.append(turn_of(offset))
        column = column_after
    return turns


def turn_of(offset: float) -> str:
    """Name a direction relative to the camera, rad, positive to the right."""
    if abs(offset) <= _AHEAD_UP_TO:
        return AHEAD
    if abs(offset) > _SIDE_UP_TO:
        return BACK
    return RIGHT if offset > 0 else LEFT


def _common_moves(one: Sequence[int], other: Sequence[int]) -> int:
    """Number of common moves of two paths from the same node before they differ."""
    same = [left == right for left, right in zip(one, other, strict=False)]
    return (same.index(False) if False in same else len(same)) - 1


_TURNS = {
    AHEAD: (
        "go straight", "walk forward", "head straight ahead", "proceed ahead", "move forward", "advance",
        "keep walking", "stride on",
    ),
    RIGHT: (
        "turn right and go", "go right", "take a right", "make a right turn", "head to your right", "bear right",
        "veer right", "swing right",
    ),
    BACK: (
        "turn around and go", "go back", "turn back", "head back", "double back", "retrace your steps", "return",
        "reverse direction",
    ),
    LEFT: (
        "turn left and go", "go left", "take a left", "make a left turn", "head to your left", "bear left",
        "veer left", "swing left",
    ),
}  # fmt: skip
_TO = ("to", "up to", "towards", "over to")
_ON = (
    "and keep on to", "and continue to", "and carry on until you reach", "and stay on course as far as",
    "and past it to", "and beyond it to", "and follow that line through to", "and do not stop before",
)  # fmt: skip
_LANDMARKS = (
    "the {colour} {item} in the {room}", "the {room} with the {colour} {item}", "the {room} by the {colour} {item}",
    "the {room} near the {colour} {item}", "the {room} beside the {colour} {item}",
    "the {colour} {item} inside the {room}",
)  # fmt: skip
_DOORS = (
    "the door between {one} and {other}", "the doorway from {one} to {other}",
    "the doorway that joins {one} and {other}", "the opening between {one} and {other}",
    "the entrance that connects {one} and {other}", "the passage from {one} to {other}",
)  # fmt: skip
_THEN = (
    "then", "next", "after that", "once there", "from there", "now", "afterwards", "as soon as you arrive",
    "having done so", "when you have passed it", "at this point", "following that",
)  # fmt: skip
_ENDS = (
    "Stop there.", "Wait there.", "That is the place to stop.", "You have arrived.", "Stop.", "Halt here.",
    "This is your goal.", "Remain there.", "Finish here.",
)  # fmt: skip
_QUESTIONS = (
    "Where should I go?",
    "Which way now?",  # word: ok
    "I am at {landmark}. Where to?", "I do not see it. What next?", "Should I leave {landmark}?",
    "I see {landmark}. Is it near?", "Am I close?", "Can you help me?", "I am lost. How do I get there?",
)  # fmt: skip
_FOUND = (
    "It is in that room.",
    "You will find the {target} there.",
    "The {target} is right there.",
    "Look for the {target}.",  # word: ok
)
_MORE = (
    "It is farther on.",
    "Then ask me again.",
    "The {target} is not there yet.",
    "You are getting closer.",
    "Keep looking.",  # word: ok
)

_ROUNDS = ("Do that {count} times in all.", "Walk that round {count} times.", "Make {count} such rounds.")
#: Words of the numbers 2, 3, ...
_COUNTS = ("two", "three", "four", "five", "six")


def write_instruction(clauses: Sequence[SubInstruction], rng: np.random.Generator, *, ends: bool = True) -> str:
    """Write clauses as English.

    Args:
        clauses: The clauses, in order; at least one.
        rng: Chooses among synonyms.
        ends: Whether to close with a sentence such as "Stop there."
    """
    sentences: list[str] = []
    for k, clause in enumerate(clauses):
        words = f"{_pick(rng, _TURNS[clause.turn])} {_pick(rng, _TO)} {describe_landmark(clause.first, rng)}"
        if clause.last != clause.first:
            words += f" {_pick(rng, _ON)} {describe_landmark(clause.last, rng)}"
        if k == 0:
            sentences.append(words)
        elif rng.random() < 0.4:
            sentences[-1] += f", then {words}"
        else:
            sentences.append(f"{_pick(rng, _THEN)}, {words}" if rng.random() < 0.7 else words)
    text = " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences)
    return f"{text} {_pick(rng, _ENDS)}" if ends else text


def write_rounds(
    lap: Sequence[SubInstruction], count: int, last: Sequence[SubInstruction], rng: np.random.Generator
) -> str:
    """Write the text of a path with laps.

    It has the clauses of one lap, the number of laps (2 to 6), and the clauses of the way after them.
    """
    number = _pick(rng, _ROUNDS).format(count=_COUNTS[count - 2])
    return f"{write_instruction(lap, rng, ends=False)} {number} {write_instruction(last, rng)}"


def describe_landmark(landmark: Landmark, rng: np.random.Generator) -> str:
    """Describe a viewpoint in English."""
    if landmark.item is None:
        one, other = landmark.rooms if rng.random() < 0.5 else landmark.rooms[::-1]
        return _pick(rng, _DOORS).format(one=one, other=other)
    colour, name = landmark.item
    return _pick(rng, _LANDMARKS).format(room=landmark.rooms[0], colour=colour, item=name)


def write_question(landmark: Landmark, rng: np.random.Generator) -> str:
    """Write the question of a navigator at a viewpoint."""
    return _pick(rng, _QUESTIONS).format(landmark=describe_landmark(landmark, rng))


def write_answer(clauses: Sequence[SubInstruction], target: str, rng: np.random.Generator, *, arrives: bool) -> str:
    """Write the answer of an oracle: an instruction, and a remark on the target.

    Args:
        clauses: The clauses, in order; at least one.
        target: Name of the item that is sought.
        rng: Chooses among synonyms.
        arrives: Whether the target is at the end of the clauses.
    """
    instruction = write_instruction(clauses, rng, ends=False)
    remark = _pick(rng, _FOUND if arrives else _MORE).format(target=target)
    return f"{instruction} {remark}"


def read_clauses(words: Sequence[str]) -> tuple[SubInstruction, ...]:
    """Read the clauses of an instruction, the inverse of `write_instruction`.

    Args:
        words: The text as `split_words` returns it; what is no clause is passed over. Where it says that what comes
            before is done several times, these clauses are repeated.
    """
    turns, pattern = _clause_pattern()
    text = " ".join(words)
    rounds = re.search("|".join(phrase[:-1].format(count=f"(?:{'|'.join(_COUNTS)})") for phrase in _ROUNDS), text, re.I)
    if rounds is not None:
        count = next(k for k, word in enumerate(_COUNTS, 2) if word in rounds[0].split())
        before, after = (read_clauses(part.split(" ")) for part in (text[: rounds.start()], text[rounds.end() :]))
        return before * count + after
    clauses = []
    for match in pattern.finditer(text):
        first = _read_landmark(match["first"])
        last = first if match["last"] is None else _read_landmark(match["last"])
        clauses.append(SubInstruction(turns[match["turn"]], first, last))
    return tuple(clauses)


@cache
def _clause_pattern() -> tuple[dict[str, str], re.Pattern[str]]:
    """Phrase -> turn, and the pattern of a clause with the groups "turn", "first" and "last"."""
    turns = {phrase: turn for turn, phrases in _TURNS.items() for phrase in phrases}
    room = _any_of((*ROOM_TYPES, HALLWAY))
    fields = {"colour": _any_of(COLOURS), "item": _any_of(ITEMS), "room": room, "one": room, "other": room}
    landmark = "|".join(phrase.format(**fields) for phrase in (*_LANDMARKS, *_DOORS))
    text = rf"\b(?P<turn>{_any_of(turns)}) {_any_of(_TO)} (?P<first>{landmark})"
    return turns, re.compile(rf"{text}(?: {_any_of(_ON)} (?P<last>{landmark}))?")


def _read_landmark(text: str) -> Landmark:
    """Read what `describe_landmark` has written."""
    rooms = re.findall(rf"\b{_any_of((*ROOM_TYPES, HALLWAY))}\b", text)
    item = re.search(rf"\b({_any_of(COLOURS)}) ({_any_of(ITEMS)})\b", text)
    return Landmark(tuple(sorted(rooms)), None if item is None else (item[1], item[2]))


def _any_of(phrases: Iterable[str]) -> str:
    """Pattern of any of these phrases, longer ones first."""
    return f"(?:{'|'.join(sorted(phrases, key=len, reverse=True))})"


def all_words() -> tuple[str, ...]:
    """Every word and punctuation mark of these texts, sorted."""
    phrases = [
        *_TO,
        *_ON,
        *_LANDMARKS,
        *_DOORS,
        *_THEN,
        *_ENDS,
        *_QUESTIONS,
        *_FOUND,
        *_MORE,
        *(turn for turns in _TURNS.values() for turn in turns),
    ]
    fields = dict.fromkeys(("colour", "item", "room", "one", "other", "landmark", "target"), "")
    texts = [phrase.format(**fields) for phrase in phrases]
    return tuple(
        sorted(
            {word for text in (*texts, *ROOM_TYPES, HALLWAY, *ITEMS, *COLOURS, ",", ".") for word in split_words(text)}
        )
    )


def round_words() -> set[str]:
    """Words that only `write_rounds` uses, and words that it shares with other texts."""
    return {word for phrase in (*_ROUNDS, *_COUNTS) for word in split_words(phrase.format(count=""))}


def _pick(rng: np.random.Generator, choices: Sequence[str]) -> str:
    return choices[int(rng.integers(len(choices)))]
