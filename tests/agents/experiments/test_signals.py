"""Ctrl-C and SIGTERM in a training: a checkpoint at once, to go on with the same bits."""

from __future__ import annotations

import json
import signal
import zipfile
from pathlib import Path

import pytest

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, RunDirectory
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset
from tests.agents.algorithms.supervised_processes import ALLOCATED
from tests.agents.experiments.test_dqn_experiment import SMALL
from tests.processes import Done, run_python

pytestmark = pytest.mark.programs

STOPPED = """
import importlib, math, os, signal, sys
from memenvs.cli import main
from memenvs.agents.experiments import callback
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.train import train_run
folder, module, owner, name, count, signals, long_rollout, *command = sys.argv[1:]
callback.LONG_ROLLOUT = float(long_rollout)
owner = getattr(importlib.import_module(module), owner)
method = getattr(owner, name)
calls = []
def interrupted(self, *arguments, **settings):
    calls.append(name)
    if len(calls) == int(count):
        for number in signals.split():
            os.kill(os.getpid(), int(number))
    return method(self, *arguments, **settings)
setattr(owner, name, interrupted)
signal.signal(signal.SIGINT, signal.default_int_handler)
if command:
    sys.exit(main(["train", *command, "--out", folder]))
with RunDirectory(folder) as run:
    train_run(run, quiet=True)
"""
UPDATE = ("torch.optim", "Adam", "step")
STEP = ("memenvs.agents.experiments.callback", "RunCallback", "_on_step")
#: Rollouts of 64 steps and 16 steps of the optimizer, a checkpoint and a validation after every third.
PPO = with_overrides(
    find_preset("ci-smoke"),
    [
        ("threads", 1),
        ("total_steps", 512),
        ("ppo.n_steps", 8),
        ("checkpoint_rollouts", 3),
        ("milestones", 1),
        ("validation_trials", 4),
        ("eval_steps", 16),
    ],
)
STOP = "the same command goes on, `train` with --resume\n"


def stop(folder: Path, point: tuple[str, str, str], count: int, signals: str, long: float, *command: str) -> Done:
    """Train in a process that sends itself signals at the count-th call of a method."""
    return run_python("-c", STOPPED, str(folder), *point, str(count), signals, str(long), *command)


def steps_of(folder: Path) -> int:
    """Steps of the checkpoint."""
    with zipfile.ZipFile(folder / CHECKPOINT) as file:
        return json.loads(file.read("state.json"))["num_timesteps"]


def content(folder: Path) -> dict[str, object]:
    """Checkpoints by name, and the logged numbers that no clock and no start of a mean changes."""
    with RunDirectory(folder) as run:
        changing = ("time/",) if run.config.kind.acts else ("time/", "train/")
        logged = {name: points for name, points in run.metrics().items() if not name.startswith(changing)}
    return {**logged, **{file.name: file.read_bytes() for file in folder.glob("*.zip")}}


@pytest.mark.filterwarnings("ignore:no episode ended within the first n_steps=8")
@pytest.mark.parametrize(
    ("config", "cases"),
    [
        # in the update of the fifth rollout, which follows 256 steps, with a copy and without; in the first rollout
        (PPO, [(UPDATE, 66, 0.0, 256), (UPDATE, 66, 1e9, 320), (STEP, 3, 0.0, 0)]),
        (SMALL, [(UPDATE, 18, 0.0, 384), (UPDATE, 23, 0.0, 512)]),
        (ALLOCATED, [(UPDATE, 7, 0.0, 7), (UPDATE, 1, 0.0, 0)]),  # in the first batch there is nothing to save
    ],
    ids=["ppo", "dqn", "supervised"],
)
def test_a_run_that_is_stopped_saves_at_once_and_goes_on_with_the_same_bits(
    tmp_path: Path, config: RunConfig, cases: list[tuple[tuple[str, str, str], int, float, int]]
) -> None:
    with RunDirectory(tmp_path / "whole", config) as run:
        train_run(run, quiet=True)
    expected = content(tmp_path / "whole")
    for number, (point, count, long, steps) in enumerate(cases):
        folder = tmp_path / str(number)
        RunDirectory(folder, config).close()
        done = stop(folder, point, count, f"{signal.SIGTERM:d}", long)
        assert done.returncode == -signal.SIGTERM, done.stderr
        kept = "the last checkpoint is kept" if steps else "there is no checkpoint yet"
        assert done.stderr.endswith(f"memenvs: stopped {folder}: {kept}; {STOP}")
        assert (folder / CHECKPOINT).exists() == (steps > 0) and (not steps or steps_of(folder) == steps)
        with RunDirectory(folder) as run:
            train_run(run, quiet=True)
        assert content(folder) == expected


@pytest.mark.filterwarnings("ignore:no episode ended within the first n_steps=8")
@pytest.mark.parametrize(("point", "count"), [(UPDATE, 66), (("memenvs.agents.vec_env", "TrialVecEnv", "reset"), 5)])
def test_ctrl_c_prints_no_traceback_and_a_second_one_stops_at_once(tmp_path: Path, point: tuple, count: int) -> None:
    command = ["ci-smoke", "--threads", "1", "--total_steps", "512", "--ppo.n_steps", "8", "--eval_trials", "2"]
    done = stop(tmp_path / "run", point, count, f"{signal.SIGINT:d} {signal.SIGINT:d}", 1e9, *command)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr and done.stderr.endswith(STOP)
    assert (tmp_path / "run" / CHECKPOINT).exists()
