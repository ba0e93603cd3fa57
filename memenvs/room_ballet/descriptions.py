"""Descriptions of the strategy tasks in words, 20 per task, and their splits."""

from __future__ import annotations

import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from memenvs.checks import choices_for, is_int
from memenvs.json_records import parse_json

Part = Literal["train", "held_out"]
#: Names of the four strategy tasks in the file, in the order of task ids.
STRATEGY_TASKS = ("fifo", "lifo", "lvfo", "mvfo")
TEXTS_PER_TASK = 20
HELD_OUT_PER_TASK = 4
NUM_SPLITS = 3
#: Characters of a description, and their largest number.
CHARACTERS = string.ascii_letters + string.digits + " .,?'-"
MAX_CHARACTERS = 120
FILE = Path(__file__).with_name("descriptions.json")


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


def load_descriptions(path: str | Path = FILE) -> Descriptions:
    """Load descriptions from a JSON file: task name -> list of 20 texts.

    Args:
        path: The file; by default the package's own.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is no JSON of that form, a task is missing or unknown, a task has another number of texts,
            or a text is too long, has other characters, or is a duplicate (capitals, punctuation and spaces do not
            count). The message names file, task and text.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no descriptions at {path}")
    content = parse_json(path.read_bytes(), str(path))
    if not isinstance(content, dict):
        raise ValueError(
            f"{path}: must be an object with the keys {list(STRATEGY_TASKS)}, got {type(content).__name__}"
        )
    missing = [task for task in STRATEGY_TASKS if task not in content]
    unknown = [task for task in content if task not in STRATEGY_TASKS]
    if missing or unknown:
        raise ValueError(f"{path}: must have the tasks {list(STRATEGY_TASKS)}; missing {missing}, unknown {unknown}")
    seen: dict[str, str] = {}
    for task in STRATEGY_TASKS:
        texts = content[task]
        if not isinstance(texts, list) or len(texts) != TEXTS_PER_TASK:
            got = len(texts) if isinstance(texts, list) else repr(texts)
            raise ValueError(f"{path}: task {task!r} must have {TEXTS_PER_TASK} descriptions, got {got}")
        for number, text in enumerate(texts):
            where = f"{path}: description {number} of task {task!r}"
            _check_text(where, text)
            words = " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
            if words in seen:
                raise ValueError(f"{where} is the same as {seen[words]}: {text!r}")
            seen[words] = f"description {number} of task {task!r}"
    return Descriptions(tuple(tuple(content[task]) for task in STRATEGY_TASKS))


def _check_text(where: str, text: Any) -> None:
    if not isinstance(text, str) or not 0 < len(text) <= MAX_CHARACTERS or not set(text) <= set(CHARACTERS):
        raise ValueError(f"{where} must be 1 to {MAX_CHARACTERS} of the characters {CHARACTERS!r}, got {text!r}")
