"""The contract of every id. A new row of the registry is tested without further ado."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env as check_gymnasium
from stable_baselines3.common.env_checker import check_env as check_stable_baselines3

from memenvs.registry import EnvironmentSpec
from memenvs.task import load_task, setting_names
from memenvs.testing import CHECKS, TaskUnderTest
from tests.ids import each_id
from tests.rollouts import any_action, digest, random_actions, rollout, rollout_digest
from tests.rule_scores import scores

SHORT = {"max_episode_steps": 7, "trial_episodes": 3}  # so that a few steps cross the ends of episodes and trials
Make = Callable[..., gym.Env]
#: Checks on every change of ids that are not the first of their family: those in which settings take part.
OF_SETTINGS = ("check_declared", "check_seeds", "check_episodes")
EVERY_ID = each_id(others=pytest.mark.slow, loads=pytest.mark.slow)


def contract_cases() -> Iterator[Any]:
    """Each id and each check.

    Of ids that are not the first of their family, checks of code that they share with it are nightly.
    """
    seldom = each_id(others=pytest.mark.nightly, loads=pytest.mark.slow)
    for check in CHECKS:
        for case in EVERY_ID if check.__name__ in OF_SETTINGS else seldom:
            yield pytest.param(*case.values, check, id=f"{case.id}-{check.__name__}", marks=case.marks)


@pytest.fixture(params=each_id(others=pytest.mark.nightly, loads=pytest.mark.slow))
def spec(request: pytest.FixtureRequest) -> EnvironmentSpec:
    return request.param


@pytest.fixture
def make(spec: EnvironmentSpec) -> Iterator[Make]:
    """Makes the single form; what was made is closed at the end."""
    made: list[gym.Env] = []

    def _make(**kwargs: object) -> gym.Env:
        made.append(gym.make(spec.id, **any_action(spec), **kwargs))
        return made[-1]

    yield _make
    for env in made:
        env.close()


# Positions have no bounds, and an image may be too small for the default encoder. Other advice on spaces is an error.
@pytest.mark.filterwarnings("ignore:.*A Box observation space m.*imum value is -?infinity.*")
@pytest.mark.filterwarnings("ignore:The minimal resolution for an image is 36x36 for the default `CnnPolicy`")
# Depth has the shape of an image but is in metres, classes and Minigrid's code are integers, candidates are features;
# key frames and tuples are rows of numbers.
@pytest.mark.filterwarnings("ignore:It seems that your observation (space )?(depth|image) is an image")
@pytest.mark.filterwarnings("ignore:Your observation (semantic|candidates|image) has an unconventional shape")
@pytest.mark.filterwarnings("ignore:Your observation (frame_[a-z]+|prefix) has an unconventional shape")
def test_checkers(make):
    env = make(render_mode="rgb_array")
    check_gymnasium(env.unwrapped)
    check_stable_baselines3(env)


@pytest.mark.parametrize(("spec", "check"), list(contract_cases()))
def test_contract(spec, check):
    check(TaskUnderTest.of(spec.id, **any_action(spec)))


@pytest.fixture(scope="module")
def digests(request: pytest.FixtureRequest) -> dict[str, str]:
    """Hash of a rollout in each id that is tested, computed by another process."""
    ids = {item.callspec.params["spec"].id for item in request.session.items if "digests" in item.fixturenames}
    command = [sys.executable, "-m", "tests.rollouts", *sorted(ids)]
    environ = {**os.environ, "PYTHONHASHSEED": "123"}
    return json.loads(subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout)


def test_same_seed_same_bits_in_another_process(spec, digests):
    assert digests[spec.id] == rollout_digest(spec.id)


def test_spec_goes_through_json(make):
    env = make(**SHORT)
    text = env.spec.to_json()
    json.loads(text)
    again = gym.make(EnvSpec.from_json(text))
    actions = random_actions(env, 30, 1)[:, 0]
    assert digest(rollout(again, actions, seed=2)) == digest(rollout(env, actions, seed=2))
    again.close()


@pytest.mark.parametrize("spec", EVERY_ID)
def test_oracle_reaches_its_score(spec):
    """In at most 3 episodes of a trial of several environments; images are left out.

    Where robots explore or recall, each episode is in another home, and fewer are needed.
    """
    explores = spec.family == "exploration"
    # Homes are dear to load, and six pictures of Ballet3D are 127,008 numbers.
    most_episodes = 1 if explores or spec.family in ("ballet3d", "recall") else 3  # of an environment
    settings = {**spec.defaults, **any_action(spec)}
    if explores:
        settings["modalities"] = ("pose",)
    elif "image_size" in setting_names(spec.task) and settings.get("obs_mode") != "symbolic":
        settings["image_size"] = (8, 8)
    elif spec.family == "room_ballet":
        settings["obs"] = "symbols"
    settings |= {"trial_episodes": most_episodes, "trial_steps": None}
    num_envs = {"exploration": 6, "ballet3d": 2}.get(spec.family, 8)
    assert np.nanmean(scores(spec.id, "oracle", num_envs, seed=1000, **settings)) >= spec.oracle_at_least


@pytest.mark.parametrize("spec", EVERY_ID)
def test_row_is_complete(spec, make):
    task = load_task(spec.task)
    assert task.__module__.startswith(f"memenvs.{spec.family}.")
    assert spec.remembers and task.config_type.__doc__
    env = make()
    assert len(env.unwrapped.task.action_names) == getattr(env.action_space, "n", 0)
    assert spec.answers_picture == isinstance(env.action_space, gym.spaces.Box)
