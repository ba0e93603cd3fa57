"""`size="small"`: every memory has a size that a laptop learns with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from memenvs.agents import MEMORIES, PartialUpdatePPO, PPOConfig
from memenvs.agents.algorithms.checkpoint import Checkpoint
from memenvs.agents.experiments.config import read_config
from memenvs.agents.memory import make_memory
from memenvs.agents.policies.small_sizes import INPUT_DIM, SMALL, count_weights, with_size
from memenvs.cli import main
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


@pytest.mark.parametrize("memory", [name for name in MEMORIES if name != "none"])
def test_memories_of_one_size_have_about_as_many_weights(memory: str) -> None:
    for size in (50_000, 200_000):
        made = make_memory(memory, INPUT_DIM, **with_size(memory, size, {}))
        weights = sum(parameter.numel() for parameter in made.parameters())
        assert 0.7 * size < weights < 1.4 * size
        assert count_weights(memory, with_size(memory, size, {})) == weights


def test_single_settings_overrule_a_number_of_weights() -> None:
    settings = with_size("relic", 200_000, {"layers": 4})
    assert settings["layers"] == 4 and settings["dim"] < with_size("relic", 200_000, {})["dim"]
    model = learner("none", policy_kwargs={"memory": "gru", "size": 50_000})
    assert model.policy.memory.config.hidden_dim == with_size("gru", 50_000, {})["hidden_dim"]


@pytest.mark.parametrize("size", ["tiny", 0, -5, 1.5, True])
def test_wrong_sizes_are_named(size: object) -> None:
    with pytest.raises(ValueError, match="size must be 'small', a number of weights or None, got"):
        learner("gru", policy_kwargs={"size": size})
    assert SMALL.keys() == MEMORIES.keys()


def test_a_size_that_no_width_has_is_refused() -> None:
    with pytest.raises(ValueError, match=r"size must be about 1776 weights for the memory 'gru' with \{\}, got 10"):
        with_size("gru", 10, {})  # width 8: 3 * (8 * 64 + 8 * 8 + 2 * 8) weights


def test_the_command_prints_the_weights_of_a_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--total_steps", "1024", "--no-evaluate", "--json", "--out", str(tmp_path / "run")]
    assert main(["train", "ci-smoke", "--policy.memory", "mlstm", "--policy.size", "50000", *small]) == 0
    weights = json.loads(capsys.readouterr().out)["weights"]
    assert read_config(tmp_path / "run").policy["size"] == 50_000
    assert 25_000 < weights["memory"] < 100_000 and weights["memory"] < weights["all"]
