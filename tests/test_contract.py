"""The contract of every id. A new row of the registry is tested without further ado."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env as check_gymnasium
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.env_checker import check_env as check_stable_baselines3

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.registry import ENVIRONMENTS, EnvironmentSpec
from memenvs.task import load_task, setting_names
from tests.rollouts import (
    any_action,
    digest,
    info_of,
    observation_of,
    random_actions,
    rollout,
    rollout_digest,
    same,
)

SHORT = {"max_episode_steps": 7, "trial_episodes": 3}  # so that a few steps cross the ends of episodes and trials
Make = Callable[..., gym.Env]


@pytest.fixture(params=ENVIRONMENTS, ids=lambda spec: spec.name)
def spec(request: pytest.FixtureRequest) -> EnvironmentSpec:
    return request.param


@pytest.fixture
def make(spec: EnvironmentSpec) -> Iterator[Make]:
    """Makes the single form, or the vector form where `num_envs` is given."""
    made: list = []

    def _make(**kwargs: object) -> gym.Env:
        kwargs = {**any_action(spec), **kwargs}
        made.append(gym.make_vec(spec.id, **kwargs) if "num_envs" in kwargs else gym.make(spec.id, **kwargs))
        return made[-1]

    yield _make
    for env in made:
        env.close()


# Positions have no bounds, and an image may be too small for the default encoder. Other advice on spaces is an error.
@pytest.mark.filterwarnings("ignore:.*A Box observation space m.*imum value is -?infinity.*")
@pytest.mark.filterwarnings("ignore:The minimal resolution for an image is 36x36 for the default `CnnPolicy`")
# Depth has the shape of an image but is in metres, classes are integers in rows and columns, candidates are features.
@pytest.mark.filterwarnings("ignore:It seems that your observation (space )?depth is an image")
@pytest.mark.filterwarnings("ignore:Your observation (semantic|candidates) has an unconventional shape")
def test_checkers(make):
    env = make(render_mode="rgb_array")
    check_gymnasium(env.unwrapped)
    check_stable_baselines3(env)


def test_observations_and_info_are_as_declared(make):
    env = make(num_envs=4, **SHORT)
    task = env.unwrapped.task
    observation, info = env.reset(seed=0)
    keys = set(info)
    assert {
        "seed",
        "trial_id",
        "trial_start",
        "episode_index",
        "layout_id",
        "num_steps",
    } <= keys
    assert ("success" in keys) == ("is_success" in keys)
    assert set(task.option_names) <= keys
    for actions in random_actions(env, 30, 4):
        assert env.observation_space.contains(observation)
        for i in range(4):
            assert env.single_observation_space.contains(observation_of(observation, i))
        assert set(info) == keys
        if "success" in keys:
            assert info["success"].dtype == bool
            assert (info["success"] == info["is_success"]).all()
        assert (info["layout_id"] < task.num_layouts).all()
        if task.num_places is not None:
            assert (info["place"] >= 0).all()
            assert (info["place"] < task.num_places).all()
        observation, rewards, terminated, truncated, info = env.step(actions)
        assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float64, bool, bool)
        assert np.isfinite(rewards).all()


def test_returned_values_do_not_change_later(make):
    env = make(num_envs=2, autoreset_mode="SameStep", **SHORT)
    results = [env.reset(seed=0)]
    copies = copy.deepcopy(results)
    for actions in random_actions(env, 30, 2):
        results.append(env.step(actions))
        copies.append(copy.deepcopy(results[-1]))
    for result, kept in zip(results, copies, strict=True):
        for left, right in zip(result, kept, strict=True):
            assert pickle.dumps(left) == pickle.dumps(right)


def test_same_seed_same_bits_single_and_vector(make):
    vector = make(num_envs=3, **SHORT)
    actions = random_actions(vector, 30, 3)
    singles = [rollout(make(**SHORT), actions[:, i], seed=5 + i) for i in range(3)]
    again = rollout(make(**SHORT), actions[:, 0], seed=5)
    assert digest(again) == digest(singles[0])
    observation, info = vector.reset(seed=5)
    rewards, terminated, truncated = np.zeros(3), np.zeros(3, bool), np.zeros(3, bool)
    for t in range(31):
        for i in range(3):
            expected = singles[i][t]
            assert same(observation_of(observation, i), expected[0]), f"observation, step {t}, environment {i}"
            assert (rewards[i], terminated[i], truncated[i]) == expected[1:4], f"step {t}, environment {i}"
            assert same(info_of(info, i), expected[4]), f"info, step {t}, environment {i}"
        if t < 30:
            observation, rewards, terminated, truncated, info = vector.step(actions[t])


def test_position_in_the_batch_has_no_effect(make):
    order = np.array([2, 0, 1])
    seeds = np.array([3, 14, 15])
    left, right = make(num_envs=3, **SHORT), make(num_envs=3, **SHORT)
    seen = [left.reset(seed=seeds.tolist())[0], right.reset(seed=seeds[order].tolist())[0]]
    for actions in random_actions(left, 30, 3):
        for i in range(3):
            assert same(observation_of(seen[0], order[i]), observation_of(seen[1], i))
        seen = [left.step(actions)[0], right.step(actions[order])[0]]


@pytest.fixture(scope="module")
def digests() -> dict[str, str]:
    """Hash of a rollout in each id, computed by another process."""
    command = [sys.executable, "-m", "tests.rollouts", *(env.id for env in ENVIRONMENTS)]
    environ = {**os.environ, "PYTHONHASHSEED": "123"}
    return json.loads(subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout)


def test_same_seed_same_bits_in_another_process(spec, digests):
    assert digests[spec.id] == rollout_digest(spec.id)


def test_other_seed_other_world(make):
    env = make(**SHORT)
    actions = random_actions(env, 13, 1)[:, 0]
    worlds = set()
    for seed in range(10):
        rows = rollout(env, actions, seed=seed)
        for each in rows:
            del each[4]["seed"]
        worlds.add(digest(rows))
    assert len(worlds) >= min(8, env.unwrapped.task.num_layouts - 1)  # ten seeds may miss one of few layouts


@pytest.mark.parametrize("num_envs", [None, 2])
def test_pickle_in_mid_episode(make, num_envs):
    env = gym.wrappers.Autoreset(make(**SHORT)) if num_envs is None else make(num_envs=num_envs, **SHORT)
    actions = random_actions(env, 30, 2)
    actions = actions[:, 0] if num_envs is None else actions
    env.reset(seed=1)
    for action in actions[:5]:
        env.step(action)
    twin = pickle.loads(pickle.dumps(env))
    for action in actions[5:]:
        for one, other in zip(env.step(action), twin.step(action), strict=True):
            assert same(one, other)
    twin.close()


def test_spec_goes_through_json(make):
    env = make(**SHORT)
    text = env.spec.to_json()
    json.loads(text)
    again = gym.make(EnvSpec.from_json(text))
    actions = random_actions(env, 30, 1)[:, 0]
    assert digest(rollout(again, actions, seed=2)) == digest(rollout(env, actions, seed=2))
    again.close()


def test_close_twice(make):
    for env, action in ((make(), 0), (make(num_envs=2), np.zeros(2, int))):
        env.reset(seed=0)
        env.close()
        env.close()
        with pytest.raises(RuntimeError, match="step was called after close"):
            env.unwrapped.step(action)
        with pytest.raises(RuntimeError, match="reset was called after close"):
            env.unwrapped.reset()


def _play_episode(env: gym.Env, policy: str, seed: int) -> tuple[list[int], bool, bool]:
    """Actions of an episode, and how it ended."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    actions: list[int] = []
    while True:
        random = int(rng.integers(env.action_space.n))
        actions.append(env.unwrapped.oracle_action() if policy == "oracle" else random)
        _, _, terminated, truncated, info = env.step(actions[-1])
        assert info["num_steps"] == len(actions)
        if terminated or truncated:
            return actions, terminated, truncated


@pytest.mark.parametrize("policy", ["oracle", "random"])
def test_terminated_by_the_task_and_truncated_by_the_clock(spec, make, policy):
    unlimited = make()
    core = TrialEnv(spec.task, **{**spec.defaults, **any_action(spec), "max_episode_steps": 5})
    for env in (make(max_episode_steps=5), core):
        for seed in range(5):
            actions, terminated, truncated = _play_episode(env, policy, seed)
            assert truncated == (len(actions) == 5)
            unlimited.reset(seed=seed)
            flags = [unlimited.step(action)[2:4] for action in actions]
            assert flags == [(False, False)] * (len(actions) - 1) + [(terminated, False)]
    with pytest.raises(RuntimeError, match="after the end of the episode"):
        core.step(0)
    core.close()


def test_clock_of_the_vector_form(make):
    env = make(num_envs=4, max_episode_steps=3)
    env.reset(seed=0)
    num_ends = 0
    for actions in random_actions(env, 80, 4):
        _, _, _, truncated, info = env.step(actions)
        assert (truncated == (info["num_steps"] == 3)).all()
        num_ends += truncated.sum()
    assert num_ends >= 8


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_autoreset_modes(make, mode):
    """Against single environments played by hand; "NextStep" is `test_same_seed_same_bits_single_and_vector`."""
    vector = make(num_envs=3, autoreset_mode=mode, **SHORT)
    assert vector.metadata["autoreset_mode"] is AutoresetMode(mode)
    actions = random_actions(vector, 32, 3)
    singles = [make(**SHORT) for _ in range(3)]
    observation, info = vector.reset(seed=9)
    for i in range(3):
        assert same(observation_of(observation, i), singles[i].reset(seed=9 + i)[0])
    num_ends = 0
    for each in actions:
        observation, rewards, terminated, truncated, info = vector.step(each)
        expected = [singles[i].step(each[i]) for i in range(3)]
        done = terminated | truncated
        num_ends += done.sum()
        assert ("final_obs" in info) == (mode == "SameStep" and bool(done.any()))
        for i in range(3):
            assert (rewards[i], terminated[i], truncated[i]) == expected[i][1:4]
            now = expected[i]
            if done[i] and mode == "SameStep":
                assert info["_final_obs"][i]
                assert info["_final_info"][i]
                assert same(info["final_obs"][i], now[0])
                assert same(info_of(info["final_info"], i), now[4])
                start, start_info = singles[i].reset()
                now = (start, *now[1:4], start_info)
            assert same(observation_of(observation, i), now[0])
            assert same(info_of(info, i), now[4])
        if mode == "Disabled" and done.any():
            with pytest.raises(RuntimeError, match="after the end of the episode"):
                vector.step(each)
            observation, info = vector.reset(options={"reset_mask": done})
            for i in np.flatnonzero(done):
                start, start_info = singles[i].reset()
                assert same(observation_of(observation, i), start)
                assert same(info_of(info, i), start_info)
    assert num_ends >= 10


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_options_apply_at_autoreset(make, mode):
    env = make(num_envs=2, autoreset_mode=mode, **SHORT)
    names = env.unwrapped.task.option_names
    _, other = env.reset(seed=123)
    options = [
        {"layout": int(other["layout_id"][i]), **{name: info_of(other, i)[name] for name in names}} for i in range(2)
    ]

    def check(info: dict) -> None:
        for i in range(2):
            assert info["layout_id"][i] == options[i]["layout"]
            for name in names:
                assert same(info_of(info, i)[name], options[i][name]), name

    _, info = env.reset(seed=0, options=options)
    assert (info["seed"] == [0, 1]).all()
    check(info)
    trials = set()
    for actions in random_actions(env, 40, 2):
        info = env.step(actions)[4]
        check(info)
        trials.add(int(info["trial_id"][0]))
    assert len(trials) >= 2
    env.reset(seed=0)
    layouts = {int(env.step(actions)[4]["layout_id"][0]) for actions in random_actions(env, 75, 2)}
    assert len(layouts) > 1 or env.unwrapped.task.num_layouts == 1


def test_episode_is_rebuilt_alone_from_its_info(make):
    env, alone = make(**SHORT), make(**SHORT)
    actions = random_actions(env, 45, 1)[:, 0]
    rows = rollout(env, actions, seed=21)
    starts = [t for t, each in enumerate(rows) if each[4]["num_steps"] == 0]
    assert len(starts) >= 5
    for t in starts[::-1]:
        info = rows[t][4]
        options = {"trial": info["trial_id"], "episode_index": info["episode_index"]}
        observation, rebuilt = alone.reset(seed=info["seed"], options=options)
        assert same(observation, rows[t][0])
        assert same({**rebuilt, "trial_start": None}, {**info, "trial_start": None})
        while t + 1 < len(rows) and rows[t + 1][4]["num_steps"] > 0:
            assert same(alone.step(actions[t])[0], rows[t + 1][0])
            t += 1


def _play(env: gym.Env, start: tuple, actions: np.ndarray, oracle: bool = False) -> list[tuple]:
    """Everything that an episode returns until it ends or the actions are used up; the oracle takes none of them."""
    rows = [(start[0], 0.0, False, False, start[1])]
    for action in actions:
        rows.append(env.step(env.unwrapped.oracle_action() if oracle else action))
        if rows[-1][2] or rows[-1][3]:
            break
    return rows


@pytest.mark.parametrize("first", ["oracle", "random"])
def test_an_episode_does_not_depend_on_those_before_it(make, first):
    """Play A, then B, in one trial and in the next; play B alone in a new environment: all that is returned is equal.

    The oracle leaves rewards, found objects and visited places behind, random actions collisions.
    """
    limits = {"max_episode_steps": 40, "trial_episodes": 2}
    env = make(**limits)
    start = env.reset(seed=4)
    for number in range(1, 5):
        _play(env, start, random_actions(env, 40, 1, number)[:, 0], oracle=first == "oracle")
        start = env.reset()
        actions = random_actions(env, 12, 1, number)[:, 0]
        alone = make(**limits)
        options = {"trial": number // 2, "episode_index": number % 2}
        expected = _play(alone, alone.reset(seed=4, options=options), actions)
        found = _play(env, start, actions)
        assert found[0][4]["trial_start"] == (number % 2 == 0)
        found[0][4]["trial_start"] = expected[0][4]["trial_start"]
        assert len(found) == len(expected)
        for t, (one, other) in enumerate(zip(found, expected, strict=True)):
            for k, name in enumerate(("observation", "reward", "terminated", "truncated", "info")):
                assert same(one[k], other[k]), f"{name}, episode {number}, step {t}"
        start = env.reset(seed=4, options=options)


def test_options_end_with_the_next_reset(make):
    """The episode after one with options is that of an environment that never had options."""
    env, fresh = make(**SHORT), make(**SHORT)
    names = env.unwrapped.task.option_names
    _, elsewhere = env.reset(seed=123)
    _, later = env.reset(seed=0, options={"episode_index": 2})  # in the layout of the trial that goes on
    for seed, other in ((0, elsewhere), (None, later)):
        env.reset(seed=0, options={"layout": other["layout_id"], **{name: other[name] for name in names}})
        fresh.reset(seed=0)
        for one, two in zip(env.reset(seed=seed), fresh.reset(seed=seed), strict=True):
            assert same(one, two)


def _mean_score(spec: EnvironmentSpec, policy: str, episodes: int) -> float:
    """Mean score of about this number of episodes, of 16 environments and at most 3 of a trial.

    Where robots explore, each episode is in another home, and fewer environments are needed. Images are left out.
    """
    explores = "modalities" in setting_names(spec.task)
    without_images = {"modalities": ("pose",)} if explores else {}
    if spec.family == "room_ballet":
        without_images = {"obs": "symbols"}
    num_envs = 6 if explores and policy == "oracle" else 16
    env = TrialVectorEnv(
        spec.task, num_envs, autoreset_mode="SameStep", **spec.defaults, **any_action(spec), **without_images
    )
    rng = np.random.default_rng(0)
    scores: list[float] = []
    seed = 1000
    while len(scores) < episodes:
        env.reset(seed=seed)
        seed += num_envs
        played = np.zeros(num_envs, int)
        while played.min() < (1 if explores else 3):
            random = rng.integers(env.single_action_space.n, size=num_envs)
            _, _, terminated, truncated, info = env.step(env.oracle_actions() if policy == "oracle" else random)
            done = terminated | truncated
            for i in np.flatnonzero(done & (played < (1 if explores else 3))):
                scores.append(float(info["final_info"][spec.score_key][i]))
            played += done
    env.close()
    return float(np.mean(scores))


def test_oracle_reaches_its_score(spec):
    assert _mean_score(spec, "oracle", 1) >= spec.oracle_at_least


def test_random_stays_below_its_score(spec):
    assert _mean_score(spec, "random", 1) < spec.random_below


@pytest.mark.nightly
def test_oracle_reaches_its_score_in_1000_episodes(spec):
    assert _mean_score(spec, "oracle", 1000) >= spec.oracle_at_least


def test_bad_input(spec, make):
    with pytest.raises(
        TypeError,
        match=r"got an unexpected keyword argument 'flavour'; choose from .*'max_episode_steps'.*'trial_steps'",
    ):
        make(flavour="sweet")
    env = make().unwrapped
    vector = make(num_envs=2).unwrapped
    with pytest.raises(RuntimeError, match="step was called before reset"):
        env.step(0)
    with pytest.raises(RuntimeError, match="step was called before reset"):
        vector.step(np.zeros(2, int))
    with pytest.raises(ValueError, match=r"unknown reset option 'colour'; choose from .*new_trial"):
        env.reset(options={"colour": 1})
    with pytest.raises(ValueError, match="option 'layout' must be an integer in 0 "):
        env.reset(options={"layout": env.task.num_layouts})
    env.reset(seed=0)
    vector.reset(seed=0)
    n = env.action_space.n
    for action, error, message in (
        (n, ValueError, rf"actions must be in 0 \.\.\. {n - 1}, got \[{n}\]"),
        (-1, ValueError, "actions must be in 0 "),
        (float("nan"), TypeError, "actions must be integers, got float64"),
        ("up", TypeError, "actions must be integers"),
        ([0, 0], ValueError, r"action must be one number, got an array of shape \(2,\)"),
    ):
        with pytest.raises(error, match=message):
            env.step(action)
    twin = make(num_envs=2).unwrapped
    twin.reset(seed=0)
    for actions, error, message in (
        (np.zeros(3, int), ValueError, r"actions must have the shape \(2,\), got \(3,\)"),
        (np.array([0.0, np.nan]), TypeError, "actions must be integers, got float64"),
        (np.array([0, n]), ValueError, rf"actions must be in 0 \.\.\. {n - 1}, got \[{n}\]"),
        (None, ValueError, r"actions must have the shape \(2,\), got \(\)"),
    ):
        with pytest.raises(error, match=message):
            vector.step(actions)
    action = np.zeros(2, int)
    for one, other in zip(vector.step(action), twin.step(action), strict=True):
        assert same(one, other)  # a refused step changes nothing


def test_render_is_an_image(make):
    env = make(render_mode="rgb_array")
    env.reset(seed=0)
    image = env.render()
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.shape[2] == 3
    assert make().unwrapped.render() is None


def test_row_is_complete(spec, make):
    task = load_task(spec.task)
    assert task.__module__.startswith(f"memenvs.{spec.family}.")
    assert task.__doc__  # tests/test_docs.py checks what it describes
    assert spec.remembers
    assert task.config_type is not None
    assert task.config_type.__doc__
    env = make()
    assert len(env.unwrapped.task.action_names) == env.action_space.n
