"""Settings of FourBoxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memenvs.checks import MAX_THREADS, check_fields, check_int, check_pair, choices_for
from memenvs.four_boxes.arrangements import SPLITS
from memenvs.four_boxes.room import VIEW_SIZE
from memenvs.moves import check_moves


@dataclass(frozen=True, kw_only=True)
class FourBoxesConfig:
    """Settings of FourBoxes.

    Attributes:
        split: Arrangements of the four colours in the four corners: "train" (12), "validation" (6), "test" (6) or "all"
            (24); None for the paper's alone, which is one of "train".
        world: "builtin" (our renderer) or "miniworld" (the package Miniworld, extra `miniworld`; needs a display).
        image_size: Rows and columns of the images, at most 60 x 80. They are rendered with 60 x 80 pixels and
            downsampled. Encoders for larger images, such as that of Stable-Baselines3, need at least (36, 36).
        moves: Probability that another box is rewarded from one episode of a trial to the next; 0 to 1.
        max_episode_steps: Horizon, steps; >= 1.
        threads: Rendering threads of world "builtin"; 1 to 1024. Results do not depend on it.
    """

    split: str | None = None
    world: Literal["builtin", "miniworld"] = "builtin"
    image_size: tuple[int, int] = (25, 25)
    moves: float = 0.0
    max_episode_steps: int = 50
    threads: int = 1

    def __post_init__(self) -> None:
        height, width = check_pair("image_size", self.image_size, "rows and columns")
        object.__setattr__(self, "image_size", (height, width))
        check_fields(self)
        if self.split is not None and not (isinstance(self.split, str) and self.split in SPLITS):
            raise ValueError(f"unknown split {self.split!r}; {choices_for(self.split, SPLITS)}; or None")
        if not (1 <= height <= VIEW_SIZE[0] and 1 <= width <= VIEW_SIZE[1]):
            raise ValueError(f"image_size must be from (1, 1) to {VIEW_SIZE}, got {(height, width)}")
        check_moves(self.moves)
        check_int("max_episode_steps", self.max_episode_steps)
        check_int("threads", self.threads, at_most=MAX_THREADS)
