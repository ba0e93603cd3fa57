"""What a task is, said in words: 20 descriptions of each of four tasks, and which of them are held out."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from memenvs.checks import choices_for, is_int

Part = Literal["train", "held_out", "all"]
STRATEGY_TASKS = ("fifo", "lifo", "lvfo", "mvfo")
"""Names in the file, in the order of task ids."""
TEXTS_PER_TASK, HELD_OUT_PER_TASK, NUM_SPLITS = 20, 4, 3
CHARACTERS = string.ascii_letters + string.digits + " .,?'-"
MAX_CHARACTERS = 120
"""What a description may be made of, and how many characters it may have: the space of the observation `task`."""
FILE = Path(__file__).with_name("descriptions.json")


@dataclass(frozen=True)
class Descriptions:
    """All descriptions of the four tasks.

    Attributes:
        texts: 20 for each task, tasks in the order of `STRATEGY_TASKS`.

    Source:
        SAT, E4: 64 of the 80 are learned from, 16 are held out, and accuracy is the mean over three splits.
    """

    texts: tuple[tuple[str, ...], ...]

    def select(self, split: int, part: Part) -> tuple[tuple[str, ...], ...]:
        """Descriptions of each task in one part of a split.

        Split s holds out descriptions s, s + 5, s + 10 and s + 15 of each task, so that no description is held out twice.

        Args:
            split: 0, 1 or 2.
            part: "train" (16 for each task), "held_out" (4) or "all" (20, whatever the split).

        Raises:
            ValueError: There is no such split or part.
        """
        if not is_int(split) or not 0 <= split < NUM_SPLITS:
            raise ValueError(f"split must be an integer of 0 to {NUM_SPLITS - 1}, got {split!r}")
        if part not in get_args(Part):
            raise ValueError(f"unknown part {part!r}; {choices_for(part, get_args(Part))}")
        every = TEXTS_PER_TASK // HELD_OUT_PER_TASK
        taken = [part == "all" or (k % every == split) == (part == "held_out") for k in range(TEXTS_PER_TASK)]
        return tuple(tuple(t for t, take in zip(texts, taken, strict=True) if take) for texts in self.texts)


def load_descriptions(path: str | Path = FILE) -> Descriptions:
    """The descriptions in a JSON file: task name -> list of 20 texts.

    Args:
        path: The file; the package's own if none is given.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no JSON of that form, a task is missing or unknown, a task has too few or too many texts, or a text is too long, has
            other characters, or comes twice (capitals, stops and spaces do not count). The message names file, task and text.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no descriptions at {path}")
    try:
        content: Any = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: must be JSON in UTF-8 ({error})") from None
    if not isinstance(content, dict):
        raise ValueError(
            f"{path}: must be an object with the keys {list(STRATEGY_TASKS)}, got {type(content).__name__}"
        )
    missing, unknown = (
        [task for task in STRATEGY_TASKS if task not in content],
        [task for task in content if task not in STRATEGY_TASKS],
    )
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
            if not isinstance(text, str) or not 0 < len(text) <= MAX_CHARACTERS or not set(text) <= set(CHARACTERS):
                raise ValueError(
                    f"{where} must be 1 to {MAX_CHARACTERS} of the characters {CHARACTERS!r}, got {text!r}"
                )
            words = " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
            if words in seen:
                raise ValueError(f"{where} is the same as {seen[words]}: {text!r}")
            seen[words] = f"description {number} of task {task!r}"
    return Descriptions(tuple(tuple(content[task]) for task in STRATEGY_TASKS))
