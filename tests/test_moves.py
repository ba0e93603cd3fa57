"""Goals that move in a trial, and rules that search on where they are gone."""

import itertools
from typing import Any

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.darkroom.env import Darkroom
from memenvs.darkroom.explorer import DarkroomExplorer
from memenvs.four_boxes.env import FourBoxes
from memenvs.four_boxes.explorer import BoxExplorer
from memenvs.moves import MAX_SKIPPED, Moves, moving_goal
from tests.rule_scores import returns_by_goal

TASKS = (Darkroom, FourBoxes)


def goals(task: Any, seed: int, episodes: int, **settings: Any) -> list[tuple[int, ...]]:
    """Goals of the first episodes of trial 0; `info` says which of them have moved."""
    env = TrialEnv(task, trial_episodes=episodes, max_episode_steps=3, **settings)
    infos = [env.reset(seed=seed)[1]]
    infos += [env.reset()[1] for _ in range(episodes - 1)]
    drawn = [tuple(np.atleast_1d(info["goal"]).tolist()) for info in infos]
    changes = [False, *(one != other for one, other in itertools.pairwise(drawn))]
    assert [info.get("moved") for info in infos] == (changes if settings.get("moves") else [None] * episodes)
    return drawn


@pytest.mark.parametrize("task", TASKS)
def test_the_goal_changes_as_often_as_the_setting_says(task: Any) -> None:
    """Without moves it stays; with probability 1 it is never the same twice; else the share of changes is moves."""
    assert len(set(goals(task, 0, 6))) == 1
    always = goals(task, 0, 200, moves=1.0)
    assert all(one != other for one, other in itertools.pairwise(always))
    assert goals(task, 0, 1) == always[:1]  # the first goal is that of the layout
    changes = [np.diff([*map(hash, goals(task, seed, 41, moves=0.3))]) != 0 for seed in range(25)]
    assert abs(np.mean(changes) - 0.3) < 3 * (0.3 * 0.7 / 1000) ** 0.5


def test_every_other_goal_is_as_likely() -> None:
    moves = moving_goal(2, 4, 1.0, np.random.default_rng(0))
    played = [moves.at(episode) for episode in range(6001)]
    pairs, counts = np.unique(list(itertools.pairwise(played)), axis=0, return_counts=True)
    assert len(pairs) == 12 and (np.abs(counts - 500) < 4 * 500**0.5).all()
    assert [moving_goal(0, 1, 1.0, np.random.default_rng(0)).at(episode) for episode in range(3)] == [0, 0, 0]


def test_a_moves_object_draws_no_more_than_is_needed() -> None:
    moves = Moves(0, lambda state, rng: state + 1, np.random.default_rng(0))
    played = [(moves.at(episode), moves.moved) for episode in (2, 5, 1, 0)]
    assert played == [(2, True), (5, True), (1, True), (0, False)]
    with pytest.raises(ValueError, match=r"option 'episode_index' must be at most 10000 with moves, .* got 10001"):
        moves.at(MAX_SKIPPED + 1)
    assert TrialEnv(Darkroom).reset(seed=0, options={"episode_index": 2**61})[1]["episode_index"] == 2**61


def test_the_explorer_searches_on_where_the_goal_has_gone() -> None:
    """A 3 x 3 room by hand: the goal moves from (0, 1) to (2, 2), then to (0, 0)."""
    env = TrialVectorEnv(
        Darkroom, 1, size=3, split="all", moves=0.5, trial_episodes=3, max_episode_steps=12, autoreset_mode="Disabled"
    )
    rule = DarkroomExplorer(env.task)
    paths = []
    for episode, goal in enumerate(((0, 1), (2, 2), (0, 0))):
        observation, _ = env.reset(seed=0 if episode == 0 else None, options={"goal": goal})
        rule.start(np.array([episode == 0]), np.ones(1, bool))
        path = []
        for _ in range(12):
            observation, reward, *_ = env.step(rule.actions(observation))
            path.append((*observation["position"][0].astype(int).tolist(), int(reward[0])))
        paths.append(path)
    assert paths[0] == [(0, 1, 1)] * 12
    # Not there any more: on in the order of the sweep, as nothing else was searched in this episode.
    in_vain = [(0, 1), (0, 2), (1, 2), (1, 1), (1, 0), (2, 0), (2, 1)]
    assert paths[1] == [(*cell, 0) for cell in in_vain] + [(2, 2, 1)] * 5
    # Along x, then along y to the old place; then cells that it has not passed, the nearest first.
    in_vain = [(1, 0), (2, 0), (2, 1), (2, 2), (1, 2), (1, 1), (0, 1), (0, 2), (0, 1)]
    assert paths[2] == [(*cell, 0) for cell in in_vain] + [(0, 0, 1)] * 3


def test_the_box_explorer_visits_the_other_boxes() -> None:
    """With the goal at another box than before, it finds it within 100 steps, from wherever it was."""
    settings: dict[str, Any] = {"moves": 0.5, "trial_episodes": 2, "autoreset_mode": "Disabled"}
    pairs = [(one, other) for one in range(4) for other in range(4)]
    env = TrialVectorEnv(FourBoxes, len(pairs), max_episode_steps=100, **settings)
    rule = BoxExplorer(env.task)
    returns = []
    for episode in range(2):
        observation, _ = env.reset(
            seed=0 if episode == 0 else None, options=[{"goal": pair[episode]} for pair in pairs]
        )
        rule.start(np.full(len(pairs), episode == 0), np.ones(len(pairs), bool))
        total = np.zeros(len(pairs))
        for _ in range(100):
            observation, reward, *_ = env.step(rule.actions(observation))
            total += reward
        returns.append(total)
    stayed = np.array([one == other for one, other in pairs])
    assert (returns[1] > 0).all() and returns[1][stayed].min() > returns[1][~stayed].max()
    assert (returns[1][stayed] == np.array([39, 45, 45, 39]) + 50).all()  # the published ceilings, and 50 steps more


@pytest.mark.parametrize(("rule", "task", "settings"), [
    (DarkroomExplorer, Darkroom, {"size": 4, "split": "all"}),
    (BoxExplorer, FourBoxes, {}),
])  # fmt: skip
def test_rules_play_as_before_where_nothing_moves(rule: Any, task: Any, settings: dict[str, Any]) -> None:
    """A rule that was made for moves does the same in a task without them."""
    env = TrialVectorEnv(task, 4, trial_episodes=3, autoreset_mode="Disabled", **settings)
    still = task(4, **settings)
    moving = task(4, moves=0.3, **settings)
    options = [{"layout": k} for k in range(4)]
    np.testing.assert_array_equal(
        returns_by_goal(env, rule(still), options), returns_by_goal(env, rule(moving), options)
    )
