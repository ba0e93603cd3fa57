"""Scores of scripted rules, over whole trials."""

from collections.abc import Callable
from typing import Any

import numpy as np

from memenvs.core import TrialVectorEnv
from memenvs.registry import find_environment
from memenvs.rules import Rule, Window, make_rule
from memenvs.task import BatchTask, Observation

#: "random", "oracle", the name of a rule in the registry, or a function that makes a rule for a task.
Player = str | Callable[[BatchTask], Rule]


def windowed(id: str, window: int, name: str = "ideal") -> Callable[[BatchTask], Rule]:
    """A rule of an id with the last `window` observations alone."""
    return lambda task: Window(make_rule(find_environment(id).policies[name], task), window)


def scores(id: str, player: Player, trials: int, *, seed: int = 0, **settings: Any) -> np.ndarray:
    """Scores of a player in the first trial of each of N environments.

    Args:
        id: The id.
        player: Who plays.
        trials: N.
        seed: Of the first environment, and of random actions.
        **settings: Of the environment, beside those of the id.

    Returns:
        float64, (episodes, N).
    """
    spec = find_environment(id)
    env = TrialVectorEnv(spec.task, trials, autoreset_mode="Disabled", **{**spec.defaults, **settings})
    rule = make_player(id, player, env.task)
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    start = np.ones(trials, bool)
    played = np.full((env.trial_episodes, trials), np.nan)
    is_over, episode_start, trial_start = ~start, start, start
    while True:
        if rule is not None:
            rule.start(trial_start & ~is_over, episode_start & ~is_over)
            actions = rule.actions(observation)
        else:
            actions = (
                env.oracle_actions() if player == "oracle" else rng.integers(env.single_action_space.n, size=trials)
            )
        observation, _, terminated, truncated, info = env.step(actions)
        done = terminated | truncated
        for i in np.flatnonzero(done & ~is_over).tolist():
            played[info["episode_index"][i], i] = info[spec.score_key][i]
        is_over |= done & env.trial_over
        if is_over.all():
            env.close()
            return played
        episode_start, trial_start = done, done & env.trial_over
        if done.any():
            observation, info = env.reset(options={"reset_mask": done})


def make_player(id: str, player: Player, task: BatchTask) -> Rule | None:
    """Make the rule of a player; None for "random" and "oracle"."""
    if player in ("random", "oracle"):
        return None
    return make_rule(find_environment(id).policies[player], task) if isinstance(player, str) else player(task)


def returns_by_goal(env: TrialVectorEnv, rule: Rule, options: list[dict[str, Any]]) -> np.ndarray:
    """Returns of the episodes of a trial, (episodes, N), in "Disabled" mode.

    Each environment has its reset options.
    """
    episodes = env.trial_episodes
    assert episodes is not None
    played = np.zeros((episodes, env.num_envs))
    everywhere = np.ones(env.num_envs, bool)
    for episode in range(episodes):
        observation, _ = env.reset(seed=0 if episode == 0 else None, options=options)
        rule.start(everywhere & (episode == 0), everywhere)
        truncated = ~everywhere
        while not truncated.any():
            observation, _, _, truncated, info = env.step(rule.actions(observation))
        played[episode] = info["return"]
    return played


def play_episode(
    env: TrialVectorEnv, rule: Rule, options: dict[str, Any] | None = None, *, seed: int = 0
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Play an episode in which all environments end together; the last actions and infos."""
    observation, _ = env.reset(seed=seed, options=options)
    rule.start(*np.ones((2, env.num_envs), bool))
    terminated = np.zeros(env.num_envs, bool)
    while not terminated.all():
        actions = rule.actions(observation)
        observation, _, terminated, _, info = env.step(actions)
    return actions, info


def recorded(env: TrialVectorEnv, rule: Rule, steps: int = 150) -> list[tuple[np.ndarray, Observation, np.ndarray]]:
    """Play a rule: starts of trials and episodes (2, N), observation and actions of each step."""
    observation, _ = env.reset(seed=3)
    starts = np.ones((2, env.num_envs), bool)
    rows = []
    for _ in range(steps):
        seen = {key: value.copy() for key, value in observation.items()}
        rule.start(*starts)
        actions = rule.actions(observation)
        rows.append((starts, seen, actions.copy()))
        observation, _, terminated, truncated, _ = env.step(actions)
        done = terminated | truncated
        starts = np.stack([done & env.trial_over, done])
        if done.any():
            observation, _ = env.reset(options={"reset_mask": done})
    return rows


def actions_alone(env: TrialVectorEnv, make: Callable[[BatchTask], Rule], alone: list[TrialVectorEnv]) -> None:
    """Assert that a rule does in each environment of a batch as it does there alone."""
    rows = recorded(env, make(env.task))
    for i, one in enumerate(alone):
        rule = make(one.task)
        for starts, seen, actions in rows:
            rule.start(*starts[:, i : i + 1])
            assert rule.actions({key: value[i : i + 1] for key, value in seen.items()}).tolist() == [actions[i]]


def actions_on_a_copy(env: TrialVectorEnv, make: Callable[[BatchTask], Rule], other: BatchTask) -> None:
    """Assert that recorded observations lead to the same actions with another task.

    That task is never reset or stepped.
    """
    rule = make(other)
    for starts, seen, actions in recorded(env, make(env.task)):
        rule.start(*starts)
        assert rule.actions(seen).tolist() == actions.tolist()


def play_each(env: TrialVectorEnv, rule: Rule, metric: str, layouts: range | None = None) -> np.ndarray:
    """Metric of one episode of the rule in each environment, float64, (N,).

    Layouts may be given.
    """
    options = None if layouts is None else [{"layout": layout} for layout in layouts]
    observation, _ = env.reset(seed=0, options=options)
    rule.start(*np.ones((2, env.num_envs), bool))
    scores, is_over = np.zeros(env.num_envs), np.zeros(env.num_envs, bool)
    while True:
        observation, _, terminated, truncated, info = env.step(rule.actions(observation))
        done = terminated | truncated
        scores = np.where(done & ~is_over, info[metric], scores)
        is_over |= done
        if is_over.all():
            return scores
        if done.any():
            observation, _ = env.reset(options={"reset_mask": done})
            rule.start(done, done)
