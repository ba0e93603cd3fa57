"""CVDN in procedural houses, with answers that describe one leg after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from memenvs.vln.graph import VIEW_STEP
from memenvs.vln.worlds.base import NAVIGATOR, ORACLE, Dialogue, VLNEpisode
from memenvs.vln.worlds.procedural.houses import ProceduralHouse
from memenvs.vln.worlds.procedural.texts import (
    SubInstruction,
    arrival_column,
    compile_clauses,
    write_answer,
    write_question,
)
from memenvs.vln.worlds.procedural.world import Path, Routes, join_legs


class Errands(Routes):
    """Routes that a dialogue describes, before the agent sets out.

    It has one question and one answer for each leg.

    An id is `HOUSE-PATH`, such as "1003-12". The paths obey the rules of `Routes`: places are passed more than once, so
    that neither the view nor the last answer says which answer comes next. The target is an item at the goal; the
    viewpoints of its room are the goal region.

    Args:
        split: As `ProceduralGraphWorld`.
        history: See `Dialogue.text`.
        legs: Number of exchanges, 2 or 3.
    """

    texts = 1

    def __init__(self, split: str, history: str, legs: int) -> None:
        super().__init__(split, legs)
        self.history = history

    def __reduce__(self) -> tuple[Any, ...]:
        return load_errands, (self.split, self.history, self.legs)

    def _make(self, house: int, slot: int, text: int) -> VLNEpisode:
        content, seed = self.houses[house], self._seeds[house]
        legs, column, _ = self._cached_path(house, slot)
        rng = np.random.default_rng([seed, 2000 + self.legs, slot])
        target, region = _draw_target(content, legs[-1][-1], rng)
        turns: list[tuple[str, str]] = []
        for leg, start in zip(legs, _columns(content, legs, column), strict=True):
            clauses = compile_clauses(content, leg, start)
            assert clauses is not None, "drawn so in `_compile`"
            turns += [
                (NAVIGATOR, write_question(content.landmarks[leg[0]], rng)),
                (ORACLE, write_answer(clauses, target, rng, arrives=leg is legs[-1])),
            ]
        path = join_legs(legs)
        dialogue = Dialogue(
            id=f"{seed}-{slot}",
            house=house,
            target=target,
            turns=tuple(turns),
            heading=column * VIEW_STEP,
            region=region,
            planner_path=path,
            player_path=path,
        )
        return replace(dialogue.episode("mixed", self.history), leg_ends=tuple(leg[-1] for leg in legs))

    def _compile(self, house: ProceduralHouse, legs: Sequence[Path], column: int) -> tuple[SubInstruction, ...] | None:
        """Divide each leg into clauses of its own."""
        parts: list[SubInstruction] = []
        for leg, start in zip(legs, _columns(house, legs, column), strict=True):
            clauses = compile_clauses(house, leg, start)
            if clauses is None:
                return None
            parts += clauses
        return tuple(parts)


def _columns(house: ProceduralHouse, legs: Sequence[Path], column: int) -> Iterator[int]:
    """Heading of the camera at the start of each leg, in steps of 30 degrees."""
    for leg in legs:
        yield column
        column = arrival_column(house, leg, column)


def _draw_target(house: ProceduralHouse, goal: int, rng: np.random.Generator) -> tuple[str, tuple[int, ...]]:
    """Draw an item in the room of the goal, or in one of those that its door joins; its name and its room's nodes."""
    items = [item for item in house.items if item.room in house.room[goal]]
    item = items[int(rng.integers(len(items)))]
    return item.name, tuple(np.flatnonzero((house.room == item.room).all(1)).tolist())


@lru_cache(maxsize=8)
def load_errands(split: str, history: str, legs: int) -> Errands:
    """Errands of a split; see the class."""
    return Errands(split, history, legs)
