"""Settings of every environment: NumPy's numbers, sizes too large, names of any length."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.exploration.coverage import Coverage
from memenvs.houses.worlds import make_house_world
from memenvs.objectnav.env import ExtObjNav
from memenvs.registry import ENVIRONMENTS
from memenvs.task import load_task
from memenvs.verbalization.household_config import HouseholdConfig
from tests.fuzzing import undeclared

TASKS = {spec.id: load_task(spec.task) for spec in ENVIRONMENTS}
CONFIGS = list(dict.fromkeys(task.config_type for task in TASKS.values()))
#: Settings that are integers, or two of them, and their values where the default is None.
NUMBERS = {
    "feature_size": 5,
    "image_size": [24, 32],
    "layout_pool": 2,
    "legs": 1,
    "max_episode_steps": 7,
    "max_tokens": 9,
    "num_objects": [3, 4],
    "rooms": [4, 5],
    "size": 4,
    "threads": 2,
}
#: Those of which a million is as cheap as one.
UNBOUNDED = {"layout_pool", "max_episode_steps"}


@pytest.mark.parametrize("config", [*CONFIGS, HouseholdConfig])
def test_types_and_ranges_are_those_of_the_descriptions(config):
    assert list(undeclared(config)) == []


@pytest.mark.parametrize(
    ("config", "name"),
    [(config, field.name) for config in CONFIGS for field in fields(config) if field.name in NUMBERS],
)
def test_numbers(config, name):
    value = 4 if (config.__name__, name) == ("RoomsConfig", "rooms") else NUMBERS[name]
    expected = tuple(value) if isinstance(value, list) else value
    for numpy in [np.array(value), np.int64(value)] if isinstance(value, int) else [np.array(value)]:
        got = getattr(config(**{name: numpy}), name)
        assert got == expected
        assert {type(number) for number in (got if isinstance(got, tuple) else (got,))} == {int}
    wrong: list[Any] = [np.array([[1, 2], [3, 4]]), np.array(["a"]), np.float64("nan")]
    if name not in UNBOUNDED:
        wrong.append([10**6] * 2 if isinstance(value, list) else 10**6)
    for value in wrong:
        with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
            task = next(task for task in TASKS.values() if task.config_type is config)
            task(1, **{name: value})


def test_configs_are_frozen_and_have_keywords_only():
    for task in TASKS.values():
        first = fields(task.config_type)[0]
        value = getattr(task.config_type(), first.name)
        with pytest.raises(FrozenInstanceError):
            setattr(task.config_type(), first.name, value)
        with pytest.raises(TypeError, match="positional argument"):
            task.config_type(value)
        assert all(field.kw_only for field in fields(task.config_type))


def test_splits_are_texts():
    for text in (np.array(["train", "test"]), np.array("tests")):
        with pytest.raises(ValueError, match=rf"unknown split {re.escape(repr(text.tolist()))}"):
            gym.make("memenvs/Darkroom-v0", split=text)
    assert gym.make("memenvs/Darkroom-v0", split=np.str_("test")).unwrapped.task.num_layouts == 20


@pytest.mark.slow
@pytest.mark.parametrize("task", [ExtObjNav, Coverage])
def test_scene_ids_are_whole(task):
    world = make_house_world("procedural", rooms=(2, 2))
    make_house = world.make_house
    world.make_house = lambda index: replace(make_house(index), name=f"{'x' * 200} {index}")
    env = TrialVectorEnv(task, 2, world=world)
    info = env.reset(seed=0)[1]
    assert len(set(info["scene_id"])) == 2
    assert all(name.startswith("x" * 200) for name in info["scene_id"])
    env.close()
