"""Descriptions of the strategy tasks in words, 20 per task, and their splits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from memenvs.checks import choices_for, is_int
from memenvs.json_records import read_json

Part = Literal["train", "held_out"]
#: Names of the four strategy tasks in the file, in the order of task ids.
STRATEGY_TASKS = ("fifo", "lifo", "lvfo", "mvfo")
TEXTS_PER_TASK = 20
HELD_OUT_PER_TASK = 4
NUM_SPLITS = 3


@dataclass(frozen=True)
class Descriptions:
    """Descriptions of the four strategy tasks.

    Attributes:
        texts: 20 per task; tasks in the order of `STRATEGY_TASKS`.

    Source:
        Spatially-Aware Transformer for Embodied Agents, 2024, E4: 64 of the 80 descriptions are for training, the
        others are for tests, and accuracy is the mean over three splits.
    """

    texts: tuple[tuple[str, ...], ...]

    def select(self, split: int, part: Part) -> tuple[tuple[str, ...], ...]:
        """Select the descriptions of each task in one part of a split.

        Split s holds out descriptions s, s + 5, s + 10 and s + 15 of each task. So no description is held out twice.

        Args:
            split: 0, 1 or 2.
            part: "train" (16 per task) or "held_out" (4).

        Raises:
            ValueError: Unknown split or part.
        """
        if not is_int(split) or not 0 <= split < NUM_SPLITS:
            raise ValueError(f"split must be an integer of 0 to {NUM_SPLITS - 1}, got {split!r}")
        if part not in get_args(Part):
            raise ValueError(f"unknown part {part!r}; {choices_for(part, get_args(Part))}")
        stride = TEXTS_PER_TASK // HELD_OUT_PER_TASK
        chosen = [k for k in range(TEXTS_PER_TASK) if (k % stride == split) == (part == "held_out")]
        return tuple(tuple(texts[k] for k in chosen) for texts in self.texts)


def load_descriptions() -> Descriptions:
    """Load the descriptions of the package."""
    texts = read_json(Path(__file__).with_name("descriptions.json"))
    return Descriptions(tuple(tuple(text.text() for text in texts[task].items()) for task in STRATEGY_TASKS))
