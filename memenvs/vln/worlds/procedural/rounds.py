"""R2R in procedural houses with laps: there and back several times, then somewhere else."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from memenvs.vln.graph import VIEW_STEP
from memenvs.vln.worlds.base import VLNEpisode
from memenvs.vln.worlds.procedural.texts import (
    SubInstruction,
    all_words,
    arrival_column,
    compile_clauses,
    round_words,
    write_rounds,
)
from memenvs.vln.worlds.procedural.world import (
    MAX_LEG_EDGES,
    MAX_LEG_TOKENS,
    MIN_LEG_EDGES,
    Path,
    Routes,
    join_legs,
    possible_legs,
)

#: Fewest and most laps.
LAPS = (2, 6)
_MAX_TOKENS = 3 * MAX_LEG_TOKENS + 16  # of a lap, the last leg and how many laps there are


class Rounds(Routes):
    """The way to a place and back again, several times, then one more leg.

    At the start of each lap, and of the last leg, the agent has come the same way, sees the same and has the camera in
    the same direction. A lap has 8 to 12 moves, so at the end of the second and of each later lap the last 16 views and
    moves are the same too; only a count shows whether to go on. The last leg begins with another move than a lap.

    Args:
        split: As `ProceduralGraphWorld`.
        laps: Number of laps, 2 to 6. The text says it in a word.
    """

    def __init__(self, split: str, laps: int) -> None:
        super().__init__(split, 2 * laps + 1)
        self.laps = laps
        self.max_tokens = _MAX_TOKENS

    def __reduce__(self) -> tuple[Any, ...]:
        return load_rounds, (self.split, self.laps)

    @property
    def words(self) -> tuple[str, ...]:
        """All words of the grammar, and those that say how many laps."""
        return tuple(sorted({*all_words(), *round_words()}))

    def _make(self, house: int, slot: int, text: int) -> VLNEpisode:
        legs, column, clauses = self._cached_path(house, slot)
        seed = self._seeds[house]
        last = len(compile_clauses(self.houses[house], legs[-1], column) or ())
        lap = clauses[: (len(clauses) - last) // self.laps]
        rng = np.random.default_rng([seed, self.legs, slot, 1 + text])
        return VLNEpisode(
            id=f"{seed}-{slot}_{text}",
            house=house,
            text=write_rounds(lap, self.laps, clauses[len(clauses) - last :], rng),
            path=join_legs(legs),
            heading=column * VIEW_STEP,
            leg_ends=tuple(leg[-1] for leg in legs),
        )

    def _draw_path(self, index: int, slot: int) -> tuple[tuple[Path, ...], int, tuple[SubInstruction, ...]]:
        """Draw the path of a slot; see `Routes`. The camera faces as after a lap."""
        house, seed = self.houses[index], self._seeds[index]
        ends = possible_legs(seed)
        rng = np.random.default_rng([seed, self.legs, slot, 0])
        for start, goal in ends[slot :: self._num_slots].tolist():
            out, back = house.path(start, goal), house.path(goal, start)
            if not MIN_LEG_EDGES <= len(back) - 1 <= MAX_LEG_EDGES:
                continue
            lap = join_legs((out, back))
            column = arrival_column(house, lap, 0)
            first = compile_clauses(house, lap, column)
            if first is None:
                continue
            for end in rng.permutation(ends[ends[:, 0] == start, 1]).tolist():
                leg = house.path(start, end)
                last = compile_clauses(house, leg, column) if leg[1] != out[1] else None
                if last is not None:
                    return (*(out, back) * self.laps, leg), column, first * self.laps + last
        raise RuntimeError(f"house {seed} has no path {slot} of {self.laps} laps")


@lru_cache(maxsize=8)
def load_rounds(split: str, laps: int) -> Rounds:
    """Rounds of a split; see the class."""
    return Rounds(split, laps)
