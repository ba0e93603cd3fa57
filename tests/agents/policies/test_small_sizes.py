"""`size="small"`: every memory has a size that a laptop learns with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from memenvs.agents import MEMORIES, PartialUpdatePPO, PPOConfig
from memenvs.agents.algorithms.checkpoint import Checkpoint
from memenvs.agents.policies.small_sizes import SMALL
from tests.agents.learners import Noise, learner

#: What any memory needs.
SPACE = spaces.Dict(
    {
        "pose": spaces.Box(-1.0, 1.0, (3,), np.float32),
        "place": spaces.Discrete(3),
        "move": spaces.Discrete(4),
        "view": spaces.Box(-1.0, 1.0, (8,), np.float32),
    }
)


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_small_memory_is_small_and_learns(memory: str) -> None:
    env = DummyVecEnv([lambda: Noise(SPACE) for _ in range(2)])
    policy = {"memory": memory, "size": "small"}
    model = PartialUpdatePPO("MemoryPolicy", env, n_steps=8, n_updates=1, seed=0, device="cpu", policy_kwargs=policy)
    assert sum(parameter.numel() for parameter in model.policy.parameters()) < 300_000
    before = [parameter.detach().clone() for parameter in model.policy.memory.parameters()]
    model.learn(16)
    after = list(model.policy.memory.parameters())
    assert memory == "none" or any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_a_size_is_stored_as_its_settings_which_single_ones_overrule(tmp_path: Path) -> None:
    policy = {"memory_kwargs": {"layers": 1}, "size": "small"}
    model = learner("none", policy_kwargs={"memory": "relic", **policy}, config=PPOConfig())
    model.save(tmp_path / "model.zip")
    saved = Checkpoint.read(tmp_path / "model.zip").config["policy_kwargs"]
    assert "size" not in saved and saved["memory_kwargs"] == {**SMALL["relic"], "layers": 1}
    check = PartialUpdatePPO.check_checkpoint
    check(tmp_path / "model.zip", model.config, policy, model.n_envs)  # the default memory is relic
    check(tmp_path / "model.zip", model.config, {"memory_kwargs": saved["memory_kwargs"]}, model.n_envs)
    with pytest.raises(ValueError, match=r"memory_kwargs\.layers must be 2, got 1"):
        check(tmp_path / "model.zip", model.config, {"size": "small"}, model.n_envs)


def test_wrong_sizes_are_named() -> None:
    with pytest.raises(ValueError, match="size must be 'small' or None, got 'tiny'"):
        learner("gru", policy_kwargs={"size": "tiny"})
    assert SMALL.keys() == MEMORIES.keys()
