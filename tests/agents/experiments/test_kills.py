"""Runs that `kill -9`, Ctrl-C or SIGTERM end: what stays, what resuming makes of it."""

import json
import shutil
import signal
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from memenvs.agents import DQNConfig
from memenvs.agents.experiments.config import CONFIG, RunConfig, with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, RunDirectory
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset
from tests.agents.algorithms.supervised_processes import ALLOCATED
from tests.agents.experiments.test_dqn_experiment import SMALL
from tests.agents.experiments.test_video import make_run
from tests.processes import Done, run_python

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
def test_a_kill_around_a_checkpoint_loses_and_leaves_nothing(tmp_path):
    """A checkpoint after every second of eight rollouts of 64 steps; a milestone at or after each sixth of the run."""
    config = with_overrides(
        find_preset("ci-smoke"),
        [("threads", 1), ("total_steps", 512), ("ppo.n_steps", 8), ("milestones", 5), ("checkpoint_rollouts", 2)],
    )
    whole = make_run(tmp_path / "whole", config)
    milestones = {file.name for file in whole.glob("checkpoint_*.zip")}
    assert milestones == {f"checkpoint_{steps}.zip" for steps in (128, 192, 256, 384, 448)}
    for moment in ("before", "after"):
        check_kill(config, whole, tmp_path / moment, CHECKPOINT, 2, moment)


def test_a_kill_around_a_replay_leaves_nothing(tmp_path):
    """Checkpoints after 48, 96 and 144 of 160 steps, each with its replay."""
    config = replace(
        SMALL,
        env_kwargs={"size": 4, "max_episode_steps": 4, "trial_episodes": 1},
        n_envs=4,
        total_steps=160,
        learner=DQNConfig(capacity=8, episode_steps=4, updates_per_collect=2, batch_size=4, decisions=4),
        eval_steps=4,
        validation_trials=0,
    )
    whole = make_run(tmp_path / "whole", config)
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
def test_a_run_that_is_stopped_saves_at_once_and_goes_on_with_the_same_bits(tmp_path, config, cases):
    expected = content(make_run(tmp_path / "whole", config))
    assert any(name.startswith("validation") for name in expected)
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
def test_ctrl_c_prints_no_traceback_and_a_second_one_stops_at_once(tmp_path, point, count):
    command = ["ci-smoke", "--threads", "1", "--total_steps", "512", "--ppo.n_steps", "8", "--eval_trials", "2"]
    done = stop(tmp_path / "run", point, count, f"{signal.SIGINT:d} {signal.SIGINT:d}", 1e9, *command)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr and done.stderr.endswith(STOP)
    assert (tmp_path / "run" / CHECKPOINT).exists()
