"""Rules about form: what a task returns has the spaces, types and keys that it declares."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.core import TrialVectorEnv
from memenvs.task import defines
from memenvs.testing.comparison import ContractError, check_same, check_true
from memenvs.testing.task_under_test import (
    PARTS,
    TaskUnderTest,
    draws,
    play_vector,
    vector_actions,
)

#: Keys of `info` that `memenvs.core` sets; a task may replace its `layout_id`.
CORE_KEYS = ("seed", "trial_id", "trial_start", "episode_index", "num_steps", "leg", "letter")
#: Keys of `info` that Gymnasium, Stable-Baselines3 or TorchRL set.
TAKEN_KEYS = ("episode", "reward", "is_success", "final_obs", "final_info", "TimeLimit.truncated")


def check_info(subject: TaskUnderTest) -> None:
    """`info` is a dict of arrays over N, with the reset options and without the keys of others."""
    task = subject.vector(4).task
    rng = np.random.default_rng(0)
    for i in range(4):  # without `reset`, which takes the arrays for granted
        task.begin_trial(i, 0, rng)
        task.begin_episode(i, rng, {})
    info = task.info()
    for key, value in info.items():
        is_array = isinstance(value, np.ndarray) and value.shape[:1] == (4,)
        check_true(is_array, f"info[{key!r}] must be an array (N, ...), got {_form(value)}")
    for key in (*CORE_KEYS, *TAKEN_KEYS):
        check_true(key not in info, f"{subject.name}.info must not set {key!r}, which others set")
    missing = sorted(set(task.option_names) - {*info})
    check_true(not missing, f"{subject.name}.info lacks the reset options {missing}")
    task.close()


def check_declared(subject: TaskUnderTest) -> None:
    """Observations, rewards, flags and info have the spaces, types and keys that are declared."""
    env = subject.vector(4, **subject.short)
    task = env.task
    start = env.reset(seed=0)
    keys = {*task.info()} - {"layout_id"}
    for t, row in enumerate(play_vector(env, start, draws(30, 4))):
        observation, rewards, terminated, _, info = row
        for key, space in task.observation_space.spaces.items():
            for i in range(4):
                value = observation[key][i]
                check_true(space.contains(_as_observed(value)), _outside(key, value, space, t, i))
        for name, value, dtype in (("rewards", rewards, np.float64), ("terminated", terminated, np.bool_)):
            check_true(
                isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == (4,),
                f"{name} of step {t} must be {dtype.__name__} (N,), got {_form(value)}",
            )
        check_true(np.isfinite(rewards).all(), f"rewards of step {t} must be finite, got {rewards.tolist()}")
        own = {key for key in info if not key.startswith(("_", "final_"))} - {*CORE_KEYS, "is_success", "layout_id"}
        check_true(own == keys, f"info of step {t} has other keys than before: {sorted(own ^ keys)}")
        if "success" in keys:
            check_true(info["success"].dtype == bool, f"info['success'] must be bool, got {_form(info['success'])}")
        layouts = info["layout_id"]
        check_true((layouts < task.num_layouts).all(), f"info['layout_id'] must be below num_layouts, got {layouts}")
        if task.num_places is not None:
            places = info["place"]
            inside = (places >= 0).all() and (places < task.num_places).all()
            check_true(inside, f"info['place'] of step {t} must be below num_places {task.num_places}, got {places}")
    env.close()


def _as_observed(value: Any) -> Any:
    """Convert NumPy's single numbers to arrays, which spaces ask for."""
    return np.asarray(value) if isinstance(value, np.generic) and value.dtype.kind != "U" else value


def _form(value: Any) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)


def _outside(key: str, value: Any, space: gym.Space, t: int, i: int) -> str:
    text = "" if np.size(value) > 16 else f": {np.asarray(value).tolist()}"
    return f"observation {key!r} of step {t}, environment {i}, is not in {space}: {_form(np.asarray(value))}{text}"


def check_masks(subject: TaskUnderTest) -> None:
    """Action masks are (N, A) and leave an action wherever an episode goes on."""
    env = subject.vector(3, autoreset_mode="SameStep", **subject.short)
    if not isinstance(env.task.action_space, gym.spaces.Discrete):
        check_true(env.task.action_masks() is None, f"action_masks must be None for {env.task.action_space}")
        env.close()
        return
    count = int(env.task.action_space.n)
    for t, _ in enumerate(play_vector(env, env.reset(seed=0), draws(20, 3))):
        masks = env.task.action_masks()
        if masks is None:
            break
        is_mask = isinstance(masks, np.ndarray) and masks.dtype in (bool, np.int8) and masks.shape == (3, count)
        check_true(is_mask, f"action_masks of step {t} must be bool or int8 (3, {count}), got {_form(masks)}")
        check_true(masks.any(1).all(), f"action_masks of step {t} leave no action: {masks.tolist()}")
    env.close()


def check_views(subject: TaskUnderTest) -> None:
    """Oracle, pictures and `info` have the declared form and change nothing."""
    env, twin = subject.vector(2, render_mode="rgb_array", **subject.short), subject.vector(2, **subject.short)
    env.reset(seed=2)
    twin.reset(seed=2)
    task = env.task
    for t, numbers in enumerate(draws(5, 2), 1):
        if defines(subject.task, "oracle_actions"):
            _check_oracle(env, f"oracle_actions of step {t}")
        if defines(subject.task, "render"):
            for i in range(2):
                _check_image(f"render of step {t}", task.render(i))
        if defines(subject.task, "draw_map") and "pose" in task.info():
            path = np.asarray(task.info()["pose"][:1], np.float64)
            _check_image(f"draw_map of step {t}", task.draw_map(0, path))
        task.info()
        actions = vector_actions(twin, numbers)
        for part, one, other in zip(PARTS, env.step(actions), twin.step(actions), strict=True):
            check_same(f"oracle_actions, render, draw_map or info change the episode: {part} of step {t}", one, other)
    env.close()
    twin.close()


def _check_oracle(env: TrialVectorEnv, what: str) -> None:
    """Check form and range of the oracle's actions in two environments."""
    space, oracle = env.task.action_space, env.task.oracle_actions()
    is_discrete = isinstance(space, gym.spaces.Discrete)
    axes = space.shape or ()
    dtype, shape = (np.int64 if is_discrete else np.float32), (2, *axes)
    is_form = isinstance(oracle, np.ndarray) and oracle.dtype == dtype and oracle.shape == shape
    expected = "int64 (N,)" if is_discrete else f"float32 (N, {axes[0]})"
    check_true(is_form, f"oracle_actions must be {expected}, got {_form(oracle)}")
    possible = all(space.contains(action) for action in oracle)
    if is_discrete and possible:
        possible = env.action_masks()[np.arange(2), oracle].all()
    text = oracle.tolist() if is_discrete else f"not in {space}"
    check_true(possible, f"{what} are not possible: {text}")


def _check_image(what: str, image: Any) -> None:
    is_image = isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3
    check_true(is_image, f"{what} must be uint8 (H, W, 3), got {_form(image)}")


def check_close(subject: TaskUnderTest) -> None:
    """An environment can be closed twice."""
    for env in (subject.single(), subject.vector(2)):
        env.reset(seed=0)
        env.close()
        env.close()
        try:
            env.reset()
        except RuntimeError:
            continue
        raise ContractError("reset after close must raise a RuntimeError")
