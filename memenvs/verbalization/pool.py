"""Pools of episodes from one seed, with their key frames packed into arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from memenvs.verbalization.episodes import Episode, Frames
from memenvs.verbalization.execution import Execution, execute, tidy
from memenvs.verbalization.household_config import GOAL_KINDS, HouseholdConfig
from memenvs.verbalization.signals import image_latents, record
from memenvs.verbalization.task_planner import HouseholdState, draw_goal_kind, draw_goals, draw_house, make_plan

_TRIES = 100
#: About this many episodes are recorded at once.
_BLOCK = 500
_LATENT_STREAM = 7


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
    first = np.cumsum(np.concatenate([[0], *(each.counts for each in recordings)])).astype(np.int64)
    names = [field.name for field in fields(Frames)]
    packed = Frames(*(np.concatenate([getattr(each.frames, name) for each in recordings]) for name in names))
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
    view = np.concatenate([each.view for each in recordings])
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
