"""Training of runs and their folders: who works in them, full disks, settings, the log."""

import errno
import os
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
from memenvs.agents.experiments.callback import RunCallback
from memenvs.agents.experiments.config import CONFIG, RunConfig, with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, LOCK, METRICS, VALIDATION, RunDirectory, find_conflict
from memenvs.agents.experiments.evaluate import evaluate_run, trained_policy
from memenvs.agents.experiments.progress import SpeedColumn
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset
from tests.agents.learners import Noise

SMALL = with_overrides(
    find_preset("ci-smoke"),
    [("total_steps", 3072), ("policy.memory_kwargs.dim", 16), ("policy.memory_kwargs.mlp_dim", 16), ("eval_trials", 4)],
)


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


def test_a_full_disk_stops_before_training_or_keeps_the_last_checkpoint(tmp_path, monkeypatch):
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
        with largest_file(20_000), pytest.raises(OSError, match=r"checkpoint\.zip'; the last checkpoint is kept"):
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


def test_an_evaluation_has_the_threads_of_its_run(tmp_path):
    before = torch.get_num_threads()
    with RunDirectory(tmp_path / "run", replace(SMALL, threads=1, total_steps=SMALL.n_envs)) as run:
        train_run(run, quiet=True)
        try:
            torch.set_num_threads(2)
            trained_policy(run, 0)
            assert torch.get_num_threads() == 1
        finally:
            torch.set_num_threads(before)


def test_a_checkpoint_of_other_settings(tmp_path):
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


def test_speed():
    for speed, text in ((None, ""), (0.8512, "  0.85 updates/s"), (1234.5, "  1,234 updates/s")):
        task: Any = SimpleNamespace(completed=3, speed=speed)
        assert SpeedColumn("updates").render(task).plain == f"3 updates{text}"


@pytest.mark.filterwarnings("default")  # as for users: a warning of the package is no error
def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch):
    run = tmp_path / "run"
    for code in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):

        def refuse(*_: object, code: int = code) -> None:
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patch:
            patch.setattr("fcntl.flock", refuse)
            message = rf"{run} cannot be locked .*({os.strerror(code)}|not supported).*; choose .* a local disk"
            with pytest.raises(OSError, match=message):
                RunDirectory(run, SMALL)
        assert list(run.iterdir()) == []
    RunDirectory(run, SMALL).close()
    monkeypatch.setattr("fcntl.flock", refuse)
    assert "cannot be locked" in (find_conflict({run: SMALL}) or "")
    assert (run / LOCK).exists()  # may be the lock of a process elsewhere


def test_folders_that_cannot_be_written_are_refused(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for name, problem in (
        ("file", "'.*file' is no folder"),
        ("file/run", "'.*file' is no folder"),
        (os.fsdecode(b"bad\xff"), "a path must be UTF-8"),
    ):
        with pytest.raises(ValueError, match=f"^cannot write '.*': {problem}$"):
            RunDirectory(tmp_path / name, SMALL)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(ValueError, match=rf"^cannot write '.*run': the folder '{tmp_path}' is not writable$"):
        RunDirectory(tmp_path / "run", SMALL)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_only_a_run_of_equal_settings_is_opened(tmp_path):
    with RunDirectory.open_or_create(tmp_path, SMALL) as run:
        assert run.config == SMALL and not (run.path / "evaluation.json").exists()
        (tmp_path / "evaluation.json").write_text("{}")
    with RunDirectory.open_or_create(tmp_path, SMALL) as run:
        assert (run.path / "evaluation.json").is_file() and (run.path / CONFIG).is_file()
    other = replace(SMALL, learner=replace(SMALL.learner, gamma=0.5))
    with pytest.raises(ValueError, match=rf"holds another run: ppo.gamma is {SMALL.learner.gamma} there and not 0.5"):
        RunDirectory.open_or_create(tmp_path, other)
    with RunDirectory.open_or_create(tmp_path, SMALL):  # the failed call has released the folder
        pass


def test_the_folder_of_the_encoder_may_move(tmp_path):
    RunDirectory(tmp_path, replace(SMALL, encoder_from="here/first")).close()
    RunDirectory.open_or_create(tmp_path, replace(SMALL, encoder_from="there/first")).close()
    with pytest.raises(ValueError, match="encoder_from is 'first' there and not 'third'"):
        RunDirectory.open_or_create(tmp_path, replace(SMALL, encoder_from="there/third"))


def test_conflicts_are_found_before_any_work(tmp_path):
    existing, new = tmp_path / "existing", tmp_path / "new"
    RunDirectory(existing, SMALL).close()
    assert find_conflict({existing: SMALL, new: SMALL}) is None and not new.exists()
    assert "seed is" in (find_conflict({new: SMALL, existing: replace(SMALL, seed=7)}) or "")
    with RunDirectory(existing):
        assert "in use" in (find_conflict({existing: SMALL}) or "")
    (existing / CONFIG).write_text("{")
    assert CONFIG in (find_conflict({existing: SMALL}) or "")


def test_a_broken_config_is_named(tmp_path):
    for content in ("", "{", "[]", '{"ppo": {}, "nope": 1}', '{"ppo": {"nope": 1}}', "{}"):
        (tmp_path / CONFIG).write_text(content)
        with pytest.raises(ValueError, match=r"config\.json: not the settings of a run"):
            RunDirectory(tmp_path)


def test_a_broken_line_of_the_log_is_named(tmp_path):
    with RunDirectory(tmp_path, SMALL) as run:
        (tmp_path / METRICS).write_text("step,name,value\n1,a,2.0\n2,a\n")
        with pytest.raises(ValueError, match="line 3: must be step,name,value"):
            run.metrics()
        (tmp_path / METRICS).write_text("foo\n1,a,2.0\n")
        with pytest.raises(ValueError, match="line 1: must be step,name,value, got"):
            run.metrics()


def test_a_line_of_the_log_cut_by_a_kill_is_dropped(tmp_path):
    with RunDirectory(tmp_path, SMALL) as run:
        (tmp_path / METRICS).write_text("step,name,value\n1,a,2.0\n2,a,3.0\n2,b,1")
        assert run.metrics() == {"a": [(1, 2.0), (2, 3.0)]}
        run.drop_metrics_after(1)
        assert (tmp_path / METRICS).read_bytes() == b"step,name,value\n1,a,2.0\n"


def test_a_validation_without_an_episode_is_not_the_best(tmp_path):
    with RunDirectory(tmp_path, SMALL) as run:
        (tmp_path / METRICS).write_text(f"step,name,value\n1,{VALIDATION},nan\n2,{VALIDATION},0.5\n")
        assert RunCallback(run, None)._best == 0.5


def test_files_that_a_kill_left_half_written_are_removed(tmp_path):
    RunDirectory(tmp_path, SMALL).close()
    left = [".checkpoint.123.zip", ".replay_64.7.safetensors", ".checkpoint_2048.99.zip"]
    kept = [".gitignore", ".notes.txt", "replay_64.safetensors", "checkpoint.123.zip"]
    for name in (*left, *kept):
        (tmp_path / name).touch()
    with RunDirectory(tmp_path), pytest.raises(RuntimeError, match="in use"):
        (tmp_path / ".config.5.json").touch()  # of the process that works there
        RunDirectory(tmp_path)
    assert (tmp_path / ".config.5.json").exists()
    assert not any((tmp_path / name).exists() for name in left)
    assert all((tmp_path / name).exists() for name in kept)
