"""Settings of the Darkroom, and the goal cells of its splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from memenvs.checks import check_fields, check_int
from memenvs.moves import check_moves


@dataclass(frozen=True, kw_only=True)
class DarkroomConfig:
    """Settings of the Darkroom.

    Attributes:
        split: Goal cells: "train" (the first 80 % of the shuffled cells), "test" (the rest) or "all".
        size: Cells along each side; 2 to 1000.
        moves: Probability that the goal changes to another one of the split between two episodes of a trial; 0 to 1.
        max_episode_steps: Horizon, steps; >= 1.
    """

    split: Literal["train", "test", "all"] = "train"
    size: int = 10
    moves: float = 0.0
    max_episode_steps: int = 100

    def __post_init__(self) -> None:
        check_fields(self)
        check_int("size", self.size, 2, 1000)
        check_moves(self.moves)
        check_int("max_episode_steps", self.max_episode_steps)


def goal_cells(split: str, size: int = 10) -> np.ndarray:
    """List the goal cells of a split, in order.

    Args:
        split: "train", "test" or "all".
        size: Cells along each side.

    Returns:
        int64, (G, 2); (x, y) of each goal.

    Source:
        The Decision-Pretrained-Transformer release: cells listed with the second index fastest, shuffled by a legacy
        `RandomState(0)`; the first 80 % train.
    """
    cells = np.array([(x, y) for x in range(size) for y in range(size)], np.int64)
    np.random.RandomState(0).shuffle(cells)  # the published split; nothing global is touched
    cut = int(0.8 * len(cells))
    return {"train": cells[:cut], "test": cells[cut:], "all": cells}[split]
