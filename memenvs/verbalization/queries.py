"""EpisodicQA in batches: histories of key frames, and questions about each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memenvs.query_task import Episodes, QueryTask, Split
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dialogs import Dialogs, EncodedQuestion, load_dialogs


@dataclass(frozen=True, eq=False)
class DialogBatch(Episodes):
    """B histories with Q questions each.

    Attributes:
        dialogs: Histories and questions of which these are some.
        histories: int64, (B,); numbers of the histories.
        questions: int64, (B, Q); numbers of the questions about each.
    """

    shared = ("dialogs",)

    dialogs: Dialogs
    histories: np.ndarray
    questions: np.ndarray

    def frames(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Assemble the key frames, as a rollout of the environment shows them.

        Returns:
            Part of a key frame -> array, (B, T, ...), where each history ends with the last step and is filled up with
            0 in front; and a mask of the key frames, bool, (B, T).
        """
        dialogs = self.dialogs
        pool = dialogs.data.frames
        histories = [dialogs.history(number) for number in self.histories.tolist()]
        counts = np.array([history.num_frames for history in histories])
        longest = max(1, int(counts.max()))
        mask = np.arange(longest) >= longest - counts[:, None]
        rows, dates = np.full(mask.shape, dialogs.blank), np.zeros((*mask.shape, 7), np.int16)
        rows[mask] = np.concatenate([pool.rows(history) for history in histories])
        dates[mask] = np.concatenate([pool.dates(history) for history in histories])
        frames = {part: dates if part == "dt" else dialogs.tables[part][rows] for part in dialogs.config.parts}
        return frames, mask

    def encoded(self) -> list[list[EncodedQuestion]]:
        """Return the questions with their answers: B lists of Q."""
        return [
            [self.dialogs.question(history, number) for number in numbers]
            for history, numbers in zip(self.histories.tolist(), self.questions.tolist(), strict=True)
        ]


class DialogQueries(QueryTask):
    """Key frames of a history, then questions about it.

    Episodes of training are from the split of the settings, others from "valid" where that is "train".

    Args:
        config: Settings of histories and questions.
    """

    def __init__(self, config: EpisodicQAConfig) -> None:
        self.config = config

    def dialogs(self, split: Split) -> Dialogs:
        """Return the histories and questions from which batches are drawn."""
        is_held_out = split != "train" and self.config.split == "train"
        return load_dialogs(replace(self.config, split="valid") if is_held_out else self.config)

    def sample_batch(
        self,
        batch: int,
        rng: np.random.Generator,
        split: Split = "train",
        *,
        questions: int | None = None,
        num_lengths: int | None = None,
        weight_by_length: bool = False,
    ) -> DialogBatch:
        """Draw histories, each length alike, and different questions about each.

        Args:
            batch: B, >= 1.
            rng: Generator of everything random.
            split: What the histories are for.
            questions: Q, >= 1; None, or more than the setting `questions`: as many as that.
            num_lengths: Only histories of that many lengths, the shortest ones; None for all.
            weight_by_length: If True, histories of n episodes are drawn n times as often as those of one.
        """
        dialogs = self.dialogs(split)
        groups = list(dialogs.by_length.items())[:num_lengths]
        lengths = np.array([length for length, _ in groups])
        if weight_by_length:
            chosen = rng.choice(len(groups), size=batch, p=lengths / lengths.sum())
        else:
            chosen = rng.integers(len(groups), size=batch)
        numbers = [groups[group][1] for group in chosen.tolist()]
        histories = np.array([of_length[rng.integers(len(of_length))] for of_length in numbers])
        shuffled = np.argsort(rng.random((batch, self.config.questions)), axis=1)
        return DialogBatch(dialogs, histories, shuffled[:, :questions])

    def episodes_of(self, task: Any) -> DialogBatch:
        """Return the episodes of environments; see `QueryTask.episodes_of`.

        Raises:
            NotImplementedError: There are several questions in an episode.
        """
        if task.config.questions_per_history != 1:
            raise NotImplementedError(f"questions_per_history must be 1, got {task.config.questions_per_history}")
        return DialogBatch(task.dialogs, task.state.history.copy(), task.state.question[:, None].copy())
