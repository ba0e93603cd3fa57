"""Training of runs: full disks, threads, checkpoints of other settings, the bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, LOCK, RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run, trained_policy
from memenvs.agents.experiments.progress import SpeedColumn
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset

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


def task(speed: float | None) -> Any:
    return SimpleNamespace(completed=3, speed=speed)


def test_speed() -> None:
    for speed, text in ((None, ""), (0.8512, "  0.85 updates/s"), (1234.5, "  1,234 updates/s")):
        assert SpeedColumn("updates").render(task(speed)).plain == f"3 updates{text}"
