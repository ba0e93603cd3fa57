"""Actions that spell an answer: one fact, or one token of its words, each."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from memenvs.verbalization.language.facts import MAX_CLAUSES, OUTCOMES, VERBS
from memenvs.verbalization.language.structured import SLOT_SIZES
from memenvs.verbalization.language.wordings import Kind
from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECTS

STOP, NEXT = 0, 1
SLOTS = tuple(SLOT_SIZES)
EMIT = SLOTS.index("emit")
#: Kinds of questions whose answers have a slot; the other slots are in answers of every kind.
_KINDS_OF_SLOT: dict[str, tuple[Kind, ...]] = {
    "hand": ("action", "summary"),
    "day": ("clock", "problems", "past_time", "summary"),
    "hour": ("clock", "problems", "past_time", "summary"),
    "minute": ("clock", "problems", "past_time", "summary"),
    "quantity": ("clock", "duration", "how_often"),
}
#: Values of the slots that have names.
_NAMED: dict[str, tuple[str, ...]] = {
    "verb": VERBS,
    "object": tuple(OBJECTS),
    "location": tuple(LOCATIONS),
    "hand": tuple(HANDS),
    "outcome": OUTCOMES,
}


class FactActions:
    """Actions that set the slots of an answer's tuples one by one.

    Action 0 ends the answer, action 1 starts its next clause. Every other action sets one slot of the present clause to
    one value; a slot that is set again has the new value.

    Args:
        kinds: Kinds of questions; slots that their answers never have get no action.
        objects: Symbols of the objects that get an action.
        locations: The same of locations.
        denials: There is an action for "I did not do that".

    Attributes:
        names: Name of each action.
        slot: int64, (A,); index of the slot that it sets, in the order of `SLOT_SIZES`.
        value: int16, (A,); number that it sets.
    """

    def __init__(
        self, kinds: Collection[Kind], objects: Collection[str], locations: Collection[str], *, denials: bool = True
    ) -> None:
        outcomes = [name for name in OUTCOMES if denials or name != "denial"]
        allowed: dict[str, Collection[str]] = {"object": objects, "location": locations, "outcome": outcomes}
        rows: list[tuple[str, int, int]] = [("stop", EMIT, 0), ("next clause", EMIT, 0)]
        for number, (slot, size) in enumerate(SLOT_SIZES.items()):
            if slot == "emit" or (slot in _KINDS_OF_SLOT and not set(kinds) & set(_KINDS_OF_SLOT[slot])):
                continue
            values: Sequence[object] = _NAMED.get(slot, range(size - 1))
            for value, name in enumerate(values, 1):
                if name in allowed.get(slot, values):
                    rows.append((f"{slot} {name}", number, value))
        self.names = tuple(name for name, _, _ in rows)
        self.slot = np.array([slot for _, slot, _ in rows], np.int64)
        self.value = np.array([value for _, _, value in rows], np.int16)
        self._numbers = {(slot, value): number for number, (_, slot, value) in enumerate(rows) if number > NEXT}

    def __len__(self) -> int:
        return len(self.names)

    def spell(self, tuples: np.ndarray) -> tuple[int, ...] | None:
        """List the actions that give an answer; None if a fact of it has no action.

        Args:
            tuples: int16, (8, 10); see `memenvs.verbalization.language.structured`.
        """
        actions: list[int] = []
        for number, row in enumerate(tuples[tuples[:, EMIT] > 0].tolist()):
            facts = [self._numbers.get((slot, value)) for slot, value in enumerate(row) if slot != EMIT and value]
            if None in facts:
                return None
            actions += [NEXT] * (number > 0) + facts  # type: ignore[operator]
        return (*actions, STOP)


#: Most actions of an answer: every slot of every clause, the steps between them and the end.
MAX_FACTS = MAX_CLAUSES * len(SLOTS)


class TupleAnswers:
    """Structured answers of N environments, as they are spelled.

    Args:
        num_envs: N.
        actions: The actions.

    Attributes:
        rows: int16, (N, 8, 10); tuples so far.
    """

    def __init__(self, num_envs: int, actions: FactActions) -> None:
        self._actions = actions
        self.rows = np.zeros((num_envs, MAX_CLAUSES, len(SLOTS)), np.int16)
        self._clause = np.zeros(num_envs, np.int64)
        self._count = np.zeros(num_envs, np.int64)

    def clear(self, envs: int | np.ndarray) -> None:
        """Empty the answers of some environments."""
        self.rows[envs] = 0
        self._clause[envs] = 0
        self._count[envs] = 0

    def add(self, actions: np.ndarray, envs: np.ndarray) -> np.ndarray:
        """Add an action to some answers.

        Args:
            actions: int64, (E,).
            envs: int64, (E,); indices of the environments.

        Returns:
            bool, (E,); True where the answer has ended.
        """
        self._count[envs] += 1
        sets = actions > NEXT
        chosen, which = actions[sets], envs[sets]
        clause = self._clause[which]
        self.rows[which, clause, self._actions.slot[chosen]] = self._actions.value[chosen]
        self.rows[which, clause, EMIT] = 1
        has_fact = self.rows[envs, self._clause[envs], EMIT] > 0  # an empty clause would end the answer
        self._clause[envs] += (actions == NEXT) & has_fact
        full = self._clause[envs] >= MAX_CLAUSES
        self._clause[envs] = np.minimum(self._clause[envs], MAX_CLAUSES - 1)
        return (actions == STOP) | full | (self._count[envs] >= MAX_FACTS)


def describe_tuples(rows: np.ndarray) -> str:
    """Describe tuples for people, such as "verb move, object corn; verb grasp, object oil".

    Args:
        rows: int, (8, slots); one row a clause, unused ones with 0 in the slot `EMIT`.
    """
    clauses = []
    for row in rows[rows[:, EMIT] > 0].tolist():
        facts = [
            f"{slot} {_NAMED[slot][value - 1] if slot in _NAMED else value - 1}"
            for slot, value in zip(SLOTS, row, strict=True)
            if value and slot != "emit"
        ]
        clauses.append(", ".join(facts))
    return "; ".join(clauses)


def spelled_tokens(tokens: Sequence[int], length: int) -> np.ndarray:
    """Fill a row of token numbers with 0 to a length; int32, (length,).

    Raises:
        ValueError: There are more tokens.
    """
    if len(tokens) > length:
        raise ValueError(f"a text must have at most {length} tokens, got {len(tokens)}")
    row = np.zeros(length, np.int32)
    row[: len(tokens)] = tokens
    return row
