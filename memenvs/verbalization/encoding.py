"""Key frames as agents see them: numbers of symbols, scaled signals, dates of a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from memenvs.verbalization.dates import date_fields
from memenvs.verbalization.episodes import Frames, History
from memenvs.verbalization.pool import EpisodePool
from memenvs.verbalization.signals import LATENT_WIDTH, SUB_WIDTH
from memenvs.verbalization.symbols import Dictionary

#: Width and type of each part of a key frame; () is one number.
PARTS: dict[str, tuple[tuple[int, ...], type]] = {
    "dt": ((7,), np.int16),
    "goal": ((5,), np.int16),
    "action": ((), np.int16),
    "args": ((5,), np.int16),
    "objects": ((2,), np.int16),
    "state": ((4,), np.int8),
    "sub": ((SUB_WIDTH,), np.float32),
    "latent": ((LATENT_WIDTH,), np.float32),
}


class Scaling(NamedTuple):
    """Mean and standard deviation of each signal over the training split, float32, (U,) each."""

    mean: np.ndarray
    std: np.ndarray


def measure_scaling(frames: Frames) -> Scaling:
    """Measure the scaling of signals; positions count only where their object slot is filled."""
    filled = np.ones(frames.sub.shape, bool)
    filled[:, :6] = np.repeat(frames.objects > 0, 3, axis=1)
    values = frames.sub.astype(np.float64)
    count = np.maximum(filled.sum(0), 1)
    mean = np.where(filled, values, 0.0).sum(0) / count
    std = np.sqrt(np.where(filled, (values - mean) ** 2, 0.0).sum(0) / count)
    return Scaling(mean.astype(np.float32), np.maximum(std, 1e-6).astype(np.float32))


@dataclass(frozen=True)
class EncodedPool:
    """Key frames of a pool, but for their dates.

    Attributes:
        parts: Part -> array, (T, ...), of all episodes, one after the other: `PARTS` without "dt" and "latent".
        time: int32, (T,); seconds since the start of the episode.
        first: int64, (E + 1,); index of the first key frame of each episode, and at last the number of all.
        pool: The pool.
    """

    parts: dict[str, np.ndarray]
    time: np.ndarray
    first: np.ndarray
    pool: EpisodePool

    def rows(self, history: History) -> np.ndarray:
        """List the indices of a history's key frames in the arrays, int64, (T,)."""
        numbers = [episode.number for episode in history.episodes]
        spans = [np.arange(self.first[number], self.first[number + 1]) for number in numbers]
        return np.concatenate(spans) if spans else np.zeros(0, np.int64)

    def dates(self, history: History) -> np.ndarray:
        """Write the dates of a history's key frames, int16, (T, 7)."""
        spans = [start + episode.frames.time for start, episode in zip(history.starts, history.episodes, strict=True)]
        return date_fields(np.concatenate(spans)) if spans else np.zeros((0, 7), np.int16)

    @cached_property
    def latents(self) -> np.ndarray:
        """Image latents of all key frames, float16, (T, 2048); computed at the first use."""
        return np.concatenate([self.pool.latents(number).astype(np.float16) for number in range(len(self.pool))])

    def frames(self, history: History, parts: Sequence[str]) -> dict[str, np.ndarray]:
        """Assemble the key frames of a history: part -> array, (T, ...).

        Args:
            history: T key frames of this pool.
            parts: Parts of `PARTS`.
        """
        rows = self.rows(history)
        return {
            part: self.dates(history) if part == "dt" else self.array(part)[rows].astype(PARTS[part][1], copy=False)
            for part in parts
        }

    def array(self, part: str) -> np.ndarray:
        """Return a part of all key frames but "dt"; (T, ...)."""
        return self.latents if part == "latent" else self.parts[part]


def encode_pool(pool: EpisodePool, dictionary: Dictionary, scaling: Scaling) -> EncodedPool:
    """Encode the key frames of a pool.

    Args:
        pool: Episodes.
        dictionary: Numbers of symbols; a symbol that it has not becomes "<unk>".
        scaling: Signals become (signal - mean) / std; the positions of empty object slots become 0.
    """
    frames = pool.frames
    number = dictionary.table()
    sub = (frames.sub - scaling.mean) / scaling.std
    sub[:, :6] *= np.repeat(frames.objects > 0, 3, axis=1)
    parts = {name: number[getattr(frames, name)] for name in ("goal", "action", "args", "objects")}
    return EncodedPool({**parts, "state": frames.state, "sub": sub}, frames.time, pool.first, pool)
