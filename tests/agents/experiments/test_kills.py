"""Runs that `kill -9` ends while they write: what stays, and what resuming makes of it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from memenvs.agents import DQNConfig
from memenvs.agents.experiments.config import CONFIG, RunConfig, with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, RunDirectory
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset
from tests.processes import run_python

pytestmark = pytest.mark.programs

KILLED = """
import os, sys
from pathlib import Path
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.train import train_run
folder, name, count, moment, *extended = sys.argv[1:]
replace = Path.replace
written = []
def kill(self, target):
    written.append(target.name)
    is_last = written.count(name) == int(count)
    if is_last and moment == "before":
        os.kill(os.getpid(), 9)
    replace(self, target)
    if is_last:
        os.kill(os.getpid(), 9)
Path.replace = kill
with RunDirectory(folder) as run:
    for steps in extended:
        run.extend(int(steps))
    train_run(run, quiet=True)
"""


def tensorboard_points(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """Tag -> (step, value) of every point that TensorBoard shows of a run."""
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def check_kill(config: RunConfig, whole: Path, folder: Path, name: str, count: int, moment: str) -> None:
    """Kill a run around the count-th time that a file gets its name; resume and compare it."""
    RunDirectory(folder, config).close()
    done = run_python("-c", KILLED, str(folder), name, str(count), moment)
    assert done.returncode == -9, done.stderr
    hidden = [file for file in folder.glob(".*") if file.name != ".lock"]
    assert bool(hidden) == (moment == "before")
    time.sleep(1.0)  # TensorBoard orders files by the second in which they begin
    with RunDirectory(folder) as run:
        assert not any(file.exists() for file in hidden)
        train_run(run, quiet=True)
    files = {file.name for file in whole.iterdir()}
    assert {file.name for file in folder.iterdir()} == files
    for file in files:
        if file.endswith(".zip"):
            assert (folder / file).read_bytes() == (whole / file).read_bytes(), file
    expected = tensorboard_points(whole)
    for tag, points in tensorboard_points(folder).items():
        if not tag.startswith("time/"):
            assert points == expected[tag], tag


@pytest.mark.filterwarnings("ignore:no episode ended within the first n_steps=8")
def test_a_kill_around_a_checkpoint_loses_and_leaves_nothing(tmp_path: Path) -> None:
    """A checkpoint after every second of eight rollouts of 64 steps, and a milestone beside each."""
    config = with_overrides(
        find_preset("ci-smoke"),
        [("threads", 1), ("total_steps", 512), ("ppo.n_steps", 8), ("milestones", 3), ("checkpoint_rollouts", 2)],
    )
    whole = tmp_path / "whole"
    with RunDirectory(whole, config) as run:
        train_run(run, quiet=True)
    assert (whole / "checkpoint_256.zip").is_file()
    for moment in ("before", "after"):
        check_kill(config, whole, tmp_path / moment, CHECKPOINT, 2, moment)


def test_a_kill_around_a_replay_leaves_nothing(tmp_path: Path) -> None:
    """Checkpoints after 48, 96 and 144 of 160 steps, each with its replay."""
    config = RunConfig(
        env="memenvs/Darkroom-v0",
        env_kwargs={"size": 4, "max_episode_steps": 4, "trial_episodes": 1},
        n_envs=4,
        total_steps=160,
        threads=1,
        device="cpu",
        learner=DQNConfig(capacity=8, episode_steps=4, updates_per_collect=2, batch_size=4, decisions=4),
        policy={"memory": "lstm", "memory_kwargs": {"hidden_dim": 8}},
        eval_steps=4,
        checkpoint_rollouts=3,
    )
    whole = tmp_path / "whole"
    with RunDirectory(whole, config) as run:
        train_run(run, quiet=True)
    for moment in ("before", "after"):
        check_kill(config, whole, tmp_path / moment, "replay_96.safetensors", 1, moment)
    for moment in ("before", "after"):  # around the config of the extension, with the first checkpoint after it
        folder = shutil.copytree(whole, tmp_path / f"extended-{moment}")
        done = run_python("-c", KILLED, str(folder), CONFIG, "1", moment, "320")
        assert done.returncode == -9, done.stderr
        with RunDirectory(folder) as run:
            assert run.config.total_steps == (160 if moment == "before" else 320)
            run.extend(320)
            assert train_run(run, quiet=True).num_timesteps == 320
            assert run.written_steps == 320 and not list(folder.glob("replay_*"))
