"""`size="small"`: every memory has a size that a laptop learns with."""

import json
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from memenvs.agents import MEMORIES, PartialUpdatePPO, PPOConfig
from memenvs.agents.algorithms import archive
from memenvs.agents.algorithms.checkpoint import Checkpoint
from memenvs.agents.algorithms.supervised import SupervisedLearner
from memenvs.agents.experiments.config import read_config
from memenvs.agents.memory import make_memory
from memenvs.agents.policies.small_sizes import SMALL, count_weights, with_size
from memenvs.cli import main
from tests.agents.learners import Noise, learner
from tests.agents.small_ballet import ARGUMENTS

#: Width of an embedding.
WIDTH = 64


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
    size = 50_000  # `studies/matrix` has larger ones
    settings = with_size(memory, size, {}, WIDTH)
    weights = sum(parameter.numel() for parameter in make_memory(memory, WIDTH, **settings).parameters())
    assert 0.7 * size < weights < 1.4 * size
    assert count_weights(memory, settings, WIDTH) == weights


def test_single_settings_overrule_a_number_of_weights() -> None:
    settings = with_size("relic", 200_000, {"layers": 4}, WIDTH)
    assert settings["layers"] == 4 and settings["dim"] < with_size("relic", 200_000, {}, WIDTH)["dim"]
    heads = with_size("relic", 200_000, {"heads": 6}, WIDTH)  # an even multiple of which no small width is
    assert heads["heads"] == 6 and heads["dim"] % 12 == 0
    assert 100_000 < count_weights("relic", heads, WIDTH) < 400_000
    with pytest.raises(ValueError, match=r"unknown setting 'head' of the memory 'relic'; did you mean 'heads'"):
        with_size("relic", 200_000, {"head": 6}, WIDTH)


@pytest.mark.parametrize("memory", ["gru", "relic", "smt-causal", "dnc"])
def test_weights_are_counted_for_the_embedding_of_the_encoder(memory: str) -> None:
    counts = {}
    for width in (2, 600):
        pose = {"pose": spaces.Box(-1.0, 1.0, (3,), np.float32)} if memory == "smt-causal" else {}
        space = spaces.Dict({**pose, "view": spaces.Box(-1.0, 1.0, (width,), np.float32)})
        env = DummyVecEnv([lambda space=space: Noise(space)])
        policy = {"memory": memory, "size": 150_000, "features_extractor_class": "CombinedExtractor"}
        model = PartialUpdatePPO(
            "MemoryPolicy", env, n_steps=4, n_updates=1, seed=0, device="cpu", policy_kwargs=policy
        )
        counts[model.policy.memory.input_dim] = sum(weight.numel() for weight in model.policy.memory.parameters())
    assert list(counts) == [2 + 16, 600 + 16]
    assert all(0.75 * 150_000 < count < 1.3 * 150_000 for count in counts.values()), counts


def test_a_number_of_weights_is_stored_with_the_settings_that_it_stands_for(tmp_path: Path) -> None:
    file, policy = tmp_path / "model.zip", {"memory": "gru", "size": 50_000, "memory_kwargs": {"layers": 2}}
    model = learner("none", policy_kwargs=policy, config=PPOConfig())
    model.save(file)
    saved = Checkpoint.read(file).config["policy_kwargs"]
    settings = saved["memory_kwargs"]
    assert saved["size"] == 50_000
    assert settings == with_size("gru", 50_000, {"layers": 2}, model.policy.memory.input_dim)
    assert PartialUpdatePPO.load(file, device="cpu").policy.memory.config == model.policy.memory.config

    def check(**changes: object) -> None:
        PartialUpdatePPO.check_checkpoint(file, model.config, {**policy, **changes}, model.n_envs)

    check()
    check(size=None, memory_kwargs=settings)
    with pytest.raises(ValueError, match="size must be 60000, got 50000"):
        check(size=60_000)
    with pytest.raises(ValueError, match=r"memory_kwargs\.layers must be 1, got 2"):
        check(memory_kwargs={"layers": 1})
    content = archive.read(file, (), lambda name: True)  # as earlier versions wrote it
    config = json.loads(content["config.json"])
    del config["policy_kwargs"]["size"]
    archive.write(file, {**content, "config.json": json.dumps(config).encode()})
    check()


@pytest.mark.parametrize("size", ["tiny", 0, -5, 1.5, True])
def test_wrong_sizes_are_named(size: object) -> None:
    with pytest.raises(ValueError, match="size must be 'small', a whole number of weights of at least 1, or None, got"):
        learner("gru", policy_kwargs={"size": size})
    assert SMALL.keys() == MEMORIES.keys()


@pytest.mark.parametrize(
    ("size", "settings", "nearest"),
    [
        (10, {}, "at least about 1776"),  # width 8: 3 * (8 * 64 + 8 * 8 + 2 * 8) weights
        (10**12, {}, r"at most about \d+"),
        (10**6, {"hidden_dim": 8}, "at most about 1776"),
    ],
)
def test_a_size_that_no_width_has_is_refused(size: int, settings: dict[str, int], nearest: str) -> None:
    with pytest.raises(ValueError, match=rf"size must be {nearest} weights for .* 'gru' with .* of 64 .*, got {size}"):
        with_size("gru", size, settings, WIDTH)


def test_the_command_prints_the_weights_of_a_size_before_it_learns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sized = ["--policy.memory", "mlstm", "--policy.size", "50000"]
    command = ["train", "ci-smoke", *sized, "--total_steps", "1024", "--no-evaluate"]
    assert main([*command, "--json", "--out", str(tmp_path / "run")]) == 0
    weights = json.loads(capsys.readouterr().out)["weights"]
    assert read_config(tmp_path / "run").policy["size"] == 50_000
    assert 25_000 < weights["memory"] < 100_000 and weights["memory"] < weights["all"]

    def fail(*_: object, **__: object) -> None:
        raise ValueError("it learns now")

    monkeypatch.setattr(PartialUpdatePPO, "learn", fail)
    monkeypatch.setattr(SupervisedLearner, "learn", fail)
    for name, arguments, line in (
        ("agent", command, f"weights: all {weights['all']:,}, memory {weights['memory']:,}"),
        ("answers", ["train", *ARGUMENTS], "weights: all "),
    ):
        assert main([*arguments, "--out", str(tmp_path / name)]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert lines[0].startswith(line) and "it learns now" in lines[-1]
