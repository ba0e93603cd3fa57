"""CleanRL: the loop of its `ppo.py` learns, and runs on every id."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memenvs.registry import ENVIRONMENTS
from tests.rollouts import any_action

SCRIPT = Path(__file__).parents[2] / "examples" / "cleanrl_ppo.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("cleanrl_ppo", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass finds its types
    spec.loader.exec_module(module)
    return module


@pytest.mark.learning
@pytest.mark.nightly  # the same loop trains below
def test_the_loop_learns(example) -> None:
    """A random policy gets one reward a step in 16 cells, 1 in an episode of 16 steps."""
    history = example.train(example.Args(total_timesteps=15 * 1024))
    assert len(history) == 15
    assert history[0] < 2.0
    assert history[-1] > 4.0


def specs() -> list[Any]:
    """All ids; those of homes and of more than one of a kind are nightly."""
    usual = ("Darkroom-v0", "VLN-R2R-v0", "RoomBallet-FIFO-v0")
    return [
        pytest.param(spec, id=spec.name, marks=[] if spec.name in usual else [pytest.mark.nightly])
        for spec in ENVIRONMENTS
    ]


@pytest.mark.parametrize("spec", specs())
@pytest.mark.slow
def test_the_loop_on_every_id(example, monkeypatch: pytest.MonkeyPatch, spec) -> None:
    images = {"image_size": (12, 16)} if spec.name == "ExtObjNav-v0" else {}
    settings = {"max_episode_steps": 3, "trial_episodes": 2, **any_action(spec), **images}
    monkeypatch.setitem(example.SETTINGS, spec.id, settings)
    args = {"num_envs": 2, "num_steps": 8, "num_minibatches": 2, "update_epochs": 1}
    history = example.train(example.Args(env_id=spec.id, total_timesteps=32, **args))
    assert len(history) == 2 and all(math.isfinite(value) for value in history)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_curve(example) -> None:
    curves = [example.train(example.Args(total_timesteps=2048, seed=seed)) for seed in (1, 1, 2)]
    assert curves[0] == curves[1] != curves[2]
    assert np.isfinite(curves).all()
