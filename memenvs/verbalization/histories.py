"""Histories of a split: their episodes, the dates of these, the time of the questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memenvs.checks import check_int
from memenvs.verbalization.dates import BASE_DATE, as_seconds, draw_question_time, draw_starts
from memenvs.verbalization.episodes import History
from memenvs.verbalization.household_config import HouseholdConfig
from memenvs.verbalization.pool import EpisodePool

#: Streams of random numbers below a key.
_ORDER, _DATES = 1, 2
#: Histories of up to this many episodes are drawn with a failure in the share `failure_histories`.
_SHORT = 2
_MAX_ROUNDS = 1000


class HistorySampler:
    """Histories of several lengths from one pool, by number.

    History number i has length `lengths[i % len(lengths)]`, so that all lengths have equal shares. It follows from the
    pool, `key` and i alone. Episodes are drawn without replacement until too few are left, then from all again. If the
    pool has houses of several episodes, a history is a run of successive episodes in one of them.

    Args:
        config: Settings of the household.
        pool: Episodes.
        lengths: Lengths of histories, episodes.
        count: Number of histories.
        key: Seed.

    Raises:
        ValueError: A length is longer than the pool or its houses, or another argument is out of range.
    """

    def __init__(
        self, config: HouseholdConfig, pool: EpisodePool, lengths: Sequence[int], count: int, key: Sequence[int]
    ) -> None:
        check_int("count", count)
        if not lengths:
            raise ValueError("lengths must have at least one length, got none")
        for length in lengths:
            check_int("length of a history", length, 1, pool.chain if pool.chain > 1 else len(pool))
        self.config, self.pool, self.lengths, self.count = config, pool, tuple(lengths), count
        self.key = tuple(key)
        self._failed = np.array([episode.actions[-1].status == "failure" for episode in pool.episodes])
        self._rounds: dict[int, int] = {}
        self._runs: dict[tuple[int, bool | None], list[np.ndarray]] = {}

    def __len__(self) -> int:
        return self.count

    def history(self, number: int) -> History:
        """Make history `number`, 0 ... count - 1.

        Raises:
            ValueError: There is no such number.
        """
        check_int("number of a history", number, 0, self.count - 1)
        length = self.lengths[number % len(self.lengths)]
        index = number // len(self.lengths)
        rng = np.random.default_rng([*self.key, _DATES, length, index])
        key = (*self.key, length, index)
        if rng.random() < self.config.empty_history:
            return History((), (), draw_question_time(as_seconds(BASE_DATE), rng), key)
        episodes = tuple(self.pool.episodes[k] for k in self._run(length, index).tolist())
        starts = draw_starts([episode.duration for episode in episodes], rng)
        return History(episodes, tuple(starts), draw_question_time(starts[-1] + episodes[-1].duration, rng), key)

    def _run(self, length: int, index: int) -> np.ndarray:
        """Numbers of the episodes of a history, int64, (length,)."""
        share = self.config.failure_histories
        with_failure: bool | None = None
        if share is not None and length <= _SHORT:
            before, with_failure = int(index * share), int((index + 1) * share) > int(index * share)
            index = before if with_failure else index - before
        runs = self._runs.setdefault((length, with_failure), [])
        while len(runs) <= index:
            self._add_round(length)
        return runs[index]

    def _add_round(self, length: int) -> None:
        """Draw every episode of the pool once more, in runs of a length; sort the runs by what they have."""
        number = self._rounds.get(length, 0)
        self._rounds[length] = number + 1
        rng = np.random.default_rng([*self.key, _ORDER, length, number])
        episodes, chain = len(self.pool), self.pool.chain
        if chain == 1:
            runs = rng.permutation(episodes)[: episodes // length * length].reshape(-1, length)
        else:
            houses = np.arange(0, episodes, chain)[:, None]
            offset = rng.integers(chain % length + 1, size=houses.shape)
            first = (houses + offset + length * np.arange(chain // length)).reshape(-1)
            runs = rng.permutation(first)[:, None] + np.arange(length)
        failed = self._failed[runs].any(1)
        kinds = {None: runs, True: runs[failed], False: runs[~failed]}
        for kind, chosen in kinds.items():
            self._runs.setdefault((length, kind), []).extend(chosen)
        missing = [kind for kind in kinds if not self._runs[length, kind]]
        if self.config.failure_histories is not None and missing and number + 1 >= _MAX_ROUNDS:
            what = "with" if missing[0] else "without"
            raise ValueError(
                f"failure_histories is {self.config.failure_histories}, but no run of {length} of the pool's "
                f"{episodes} episodes is {what} a failure"
            )
