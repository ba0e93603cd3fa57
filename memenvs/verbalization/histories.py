"""Pools of episodes from one seed, and the histories of a split.

A history has episodes of a pool, their dates, and the time of the questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from memenvs.checks import check_int
from memenvs.verbalization.dates import BASE_DATE, as_seconds, draw_days_after, draw_question_time, draw_starts
from memenvs.verbalization.episodes import Episode, Frames, History
from memenvs.verbalization.household_config import DISTRACTOR_EPISODES, GOAL_KINDS, HouseholdConfig
from memenvs.verbalization.plans import (
    Execution,
    HouseholdState,
    draw_goal_kind,
    draw_goals,
    draw_house,
    execute,
    make_plan,
    tidy,
)
from memenvs.verbalization.signals import image_latents, record

_TRIES = 100
#: About this many episodes are recorded at once.
_BLOCK = 500
_LATENT_STREAM = 7
_DISTRACTOR_STREAM = 103
#: Streams of random numbers below a key.
_ORDER, _DATES = 1, 2
#: Histories of up to this many episodes are drawn with a failure in the share `failure_histories`.
_SHORT = 2
_MAX_ROUNDS = 1000


@dataclass(frozen=True)
class EpisodePool:
    """Episodes of one split.

    Attributes:
        episodes: E episodes. Those of a house follow each other: episode e belongs to house e // chain.
        chain: Episodes of a house: `chain_length` if `continuous`, else 1.
        frames: Key frames of all episodes, one after the other; `Episode.frames` are slices of it.
        first: int64, (E + 1,); index of the first key frame of each episode, and at last the number of all.
        view: float16, (T, VIEW_WIDTH); what `latents` are made of.
        key: Seed of the pool.
    """

    episodes: tuple[Episode, ...]
    chain: int
    frames: Frames
    first: np.ndarray
    view: np.ndarray
    key: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.episodes)

    def latents(self, episode: int) -> np.ndarray:
        """Compute the image latents of an episode; float32, (T, 2048)."""
        rows = slice(int(self.first[episode]), int(self.first[episode + 1]))
        return image_latents(self.view[rows], np.random.default_rng([*self.key, _LATENT_STREAM, episode]))


def generate_pool(config: HouseholdConfig, count: int, key: Sequence[int]) -> EpisodePool:
    """Generate a pool.

    Args:
        config: Settings of the household.
        count: Number of episodes; a multiple of `chain_length` if `continuous`.
        key: Seed: house number h of the pool depends on `config`, `key` and h alone.

    Raises:
        ValueError: `count` is not such a number, or no goal can be found in the scenes.
    """
    chain = config.chain_length if config.continuous else 1
    if count < 1 or count % chain:
        raise ValueError(f"count must be a multiple of {chain}, the episodes of a house, got {count}")
    executions: list[Execution] = []
    rngs: list[np.random.Generator] = []
    for number in range(count // chain):
        rng = np.random.default_rng([*key, number])
        house: HouseholdState | None = None
        for _ in range(chain):
            execution, house = _one_episode(config, house, rng)
            executions.append(execution)
            rngs.append(rng)
    block = max(1, _BLOCK // chain) * chain  # whole houses, whose episodes share a generator
    recordings = [
        record(config, executions[start : start + block], rngs[start : start + block])
        for start in range(0, len(executions), block)
    ]
    first = np.cumsum(np.concatenate([[0], *(recording.counts for recording in recordings)])).astype(np.int64)
    names = [field.name for field in fields(Frames)]
    packed = Frames(*(np.concatenate([getattr(recording.frames, name) for recording in recordings]) for name in names))
    episodes = []
    for number, execution in enumerate(executions):
        rows = slice(int(first[number]), int(first[number + 1]))
        episodes.append(
            Episode(
                goals=execution.goals,
                outcomes=execution.outcomes,
                scene=execution.scene,
                actions=execution.actions,
                status=execution.status,
                duration=execution.actions[-1].end,
                frames=Frames(*(getattr(packed, name)[rows] for name in names)),
                number=number,
            )
        )
    view = np.concatenate([recording.view for recording in recordings])
    return EpisodePool(tuple(episodes), chain, packed, first, view, tuple(key))


def _one_episode(
    config: HouseholdConfig, house: HouseholdState | None, rng: np.random.Generator
) -> tuple[Execution, HouseholdState]:
    """Draw a goal that the scene allows and carry it out; `house` None draws a scene."""
    if house is not None:
        tidy(config, house, rng)
    for _ in range(_TRIES):
        kind = draw_goal_kind(config, rng, None if house is None else len(house.objects))
        need = sum(GOAL_KINDS[kind])
        scene = draw_house(config, need, rng) if house is None else house
        goals = draw_goals(config, kind, scene, rng)
        if len(goals) == need:
            scene = replace(scene, objects=dict(scene.objects))
            return execute(config, goals, make_plan(goals, scene, rng), scene, rng), scene
    raise ValueError(f"no scene of {config.objects} at {config.locations} allows a goal of {config.goal_mixture}")


class HistorySampler:
    """Histories of several lengths from one pool, by number.

    History number i has length `lengths[i % len(lengths)]`, so that all lengths have equal shares. It follows from the
    pool, `key` and i alone. Episodes are drawn without replacement until too few are left, then from all again. If the
    pool has houses of several episodes, a history is a run of successive episodes in one of them. Then come distractor
    days, if the settings have some.

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
        others = len(pool) // pool.chain - 1 if pool.chain > 1 else (len(pool) - max(lengths)) // DISTRACTOR_EPISODES
        if config.distractors and others < 1:
            raise ValueError(f"distractors must be 0 in a pool without other houses, got {config.distractors}")
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
        time = draw_question_time(starts[-1] + episodes[-1].duration, rng)
        history = History(episodes, tuple(starts), time, key)
        return self._with_distractors(history) if self.config.distractors else history

    def _with_distractors(self, history: History) -> History:
        """Append distractor days, and draw the time of the questions anew; all else stays."""
        rng = np.random.default_rng([*history.key, _DISTRACTOR_STREAM])
        numbers = [number for _ in range(self.config.distractors) for number in self._day_elsewhere(history, rng)]
        days = [self.pool.episodes[number] for number in numbers]
        starts = draw_days_after(history.ends[-1], [episode.duration for episode in days], DISTRACTOR_EPISODES, rng)
        return replace(
            history,
            episodes=(*history.episodes, *days),
            starts=(*history.starts, *starts),
            question_time=draw_question_time(starts[-1] + days[-1].duration, rng),
            distractors=len(days),
        )

    def _day_elsewhere(self, history: History, rng: np.random.Generator) -> list[int]:
        """Draw successive episodes in another house; of scenes of their own any that the history does not have."""
        chain = self.pool.chain
        if chain == 1:
            others = np.setdiff1d(np.arange(len(self.pool)), [episode.number for episode in history.own.episodes])
            return rng.choice(others, DISTRACTOR_EPISODES, replace=False).tolist()
        house = int(rng.integers(len(self.pool) // chain - 1))
        house += house >= history.episodes[0].number // chain
        first = house * chain + int(rng.integers(chain - DISTRACTOR_EPISODES + 1))
        return list(range(first, first + DISTRACTOR_EPISODES))

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
