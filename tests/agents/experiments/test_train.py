"""Training of runs: the same bits after a kill, seeds, checkpoints, wrong settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from memenvs.agents import PartialUpdatePPO, PPOConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, LOCK, RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run, trained_policy
from memenvs.agents.experiments.run_report import write_report
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset
from memenvs.cli import main
from tests.agents.learners import Noise

SMALL = with_overrides(
    find_preset("ci-smoke"),
    [("total_steps", 3072), ("policy.memory_kwargs.dim", 16), ("policy.memory_kwargs.mlp_dim", 16), ("eval_trials", 4)],
)


def test_runs_of_other_seeds_share_no_episode(tmp_path: Path) -> None:
    """Environment i of the eight has the seed 8 * seed + i, which its episodes follow from."""
    for seed in (0, 3):
        config = with_overrides(SMALL, [("seed", seed), ("ppo.n_steps", 16), ("total_steps", 8 * 16)])
        with RunDirectory(tmp_path / str(seed), config) as run:
            env = train_run(run, quiet=True).env
        assert [info["seed"] for info in env.reset_infos] == [8 * seed + i for i in range(8)]


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let the operating system refuse longer files, in place of a disk that is full."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_stops_before_training_or_keeps_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(SMALL, total_steps=1024)
    files = ["config.json", "versions.json"]
    room = r"run must have room for a checkpoint of 0\.1 MB, has .* MB"
    hint = "there is no checkpoint yet, --resume goes on when this is mended$"
    with RunDirectory(tmp_path / "run", config) as run:
        with largest_file(20_000), pytest.raises(OSError, match=rf"{room} \(File too large\); {hint}"):
            train_run(run, quiet=True)
        with monkeypatch.context() as patch:
            patch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=20_000))
            with pytest.raises(OSError, match=rf"{room} \(No space left on device\); {hint}"):
                train_run(run, quiet=True)
        assert sorted(file.name for file in run.path.iterdir() if file.name != LOCK) == files
        train_run(run, quiet=True)
        before = (run.path / CHECKPOINT).read_bytes()
        assert 20_000 < len(before) < 100_000  # the limit and the room above
        run.extend(2048)
        monkeypatch.setattr(RunDirectory, "check_space", lambda *_: None)  # there was room when training began
        with (
            largest_file(20_000),
            pytest.raises(OSError, match=r"checkpoint\.zip'; the last checkpoint is kept, --res"),
        ):
            train_run(run, quiet=True)
        assert (run.path / CHECKPOINT).read_bytes() == before
        assert not [file for file in run.path.iterdir() if file.name.startswith(".checkpoint")]
        assert train_run(run, quiet=True).num_timesteps == 2048


class Fragile(Noise):
    """Episodes of 4 steps; if `breaks_at` is set, the reward of this step of its life is NaN."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    breaks_at: int | None = None
    life = 0

    def __init__(self) -> None:
        super().__init__(gym.spaces.Box(0.0, 1.0, (1,), np.float32), horizon=4)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.life += 1
        observation, reward, *rest = super().step(action)
        return observation, float("nan") if self.life == self.breaks_at else reward, *rest


def test_a_run_that_breaks_resumes_from_its_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = RunConfig(
        env="tests/Fragile-v0",
        n_envs=2,
        total_steps=80,
        threads=1,
        checkpoint_rollouts=1,
        device="cpu",
        learner=PPOConfig(n_steps=8, n_updates=2, n_epochs=1),
        policy={"memory": "none"},
    )
    gym.register("tests/Fragile-v0", Fragile, disable_env_checker=True)
    try:
        with RunDirectory(tmp_path, config) as run:
            monkeypatch.setattr(Fragile, "breaks_at", 21)  # the third rollout, in its second segment
            message = r"rewards must be finite, got \[nan nan\] after 40 env.* and 5 updates"
            with pytest.raises(ValueError, match=message):
                train_run(run, quiet=True)
            good = PartialUpdatePPO.load(run.path / CHECKPOINT, device="cpu")
            assert good.num_timesteps == 32
            assert all(bool(torch.isfinite(parameter).all()) for parameter in good.policy.parameters())
            monkeypatch.setattr(Fragile, "breaks_at", None)
            assert train_run(run, quiet=True).num_timesteps == 80
            assert max(step for points in run.metrics().values() for step, _ in points) == 80
    finally:
        del gym.registry["tests/Fragile-v0"]


def test_an_evaluation_has_the_threads_of_its_run(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    with RunDirectory(tmp_path / "run", replace(SMALL, threads=1, total_steps=SMALL.n_envs)) as run:
        train_run(run, quiet=True)
        try:
            torch.set_num_threads(2)
            trained_policy(run, 0)
            assert torch.get_num_threads() == 1
        finally:
            torch.set_num_threads(before)


def test_a_checkpoint_of_other_settings(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "own", SMALL) as own:
        file = own.path / CHECKPOINT
        other = with_overrides(SMALL, [("policy.memory_kwargs.layers", 2), ("total_steps", 128)])
        with RunDirectory(tmp_path / "other", other) as run:
            train_run(run, quiet=True)
            file.write_bytes((run.path / CHECKPOINT).read_bytes())
        before = {path: path.read_bytes() for path in own.path.iterdir()}
        message = r"checkpoint\.zip: is of another run: memory_kwargs\.layers must be 1, got 2"
        for use in (train_run, evaluate_run):
            with pytest.raises(ValueError, match=message):
                use(own)
        assert {path: path.read_bytes() for path in own.path.iterdir()} == before
        file.write_bytes(file.read_bytes()[:1000])
        with pytest.raises(ValueError, match=r"checkpoint\.zip: not a whole checkpoint .*cut short"):
            train_run(own)


@pytest.mark.slow
def test_milestones_are_kept_and_can_be_evaluated(tmp_path: Path) -> None:
    """Two milestones in four rollouts: the first ends at or after a third, the second at or after two thirds."""
    config = replace(SMALL, total_steps=4096, milestones=2, checkpoint_rollouts=100)
    with RunDirectory(tmp_path / "long", config) as run:
        train_run(run, quiet=True)
        milestones = sorted(file.name for file in run.path.glob("checkpoint_*.zip"))
        assert milestones == ["checkpoint_2048.zip", "checkpoint_3072.zip"]
        last, first = (trained_policy(run, 0, name).state_dict() for name in (CHECKPOINT, milestones[0]))
        assert any((last[name] != first[name]).any() for name in last)
        assert PartialUpdatePPO.load(run.path / milestones[0]).num_timesteps == 2048
    arguments = ["evaluate", str(tmp_path / "long"), "--checkpoint", milestones[0], "--name", "early", "--trials", "2"]
    assert main([*arguments, "--steps", "32"]) == 0
    assert (tmp_path / "long" / "early.json").is_file()


def test_a_report_names_a_score_that_no_evaluation_has(tmp_path: Path) -> None:
    curve = {"mean": [1.0, 2.0], "stderr": [0.1, 0.1], "stderr_clustered": [0.1, 0.1], "count": [4, 4]}
    evaluation = {"agent": {"trials": 4, "layouts": 4, "demonstrations": {}, "metrics": {"return": curve}}}
    with RunDirectory(tmp_path, replace(SMALL, score="retrun")) as run:
        (tmp_path / "evaluation.json").write_text(json.dumps(evaluation))
        message = r"score must be a metric of the evaluation, got 'retrun'.*did you mean 'return'\?"
        with pytest.raises(ValueError, match=message):
            write_report([run], tmp_path)
