"""Two processes on the CPU, against one with all environments; failures of one of them."""

import json
import os
import signal
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from memenvs.agents import PartialUpdatePPO
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.experiments.directory import CHECKPOINT, METRICS
from memenvs.agents.experiments.train import check_config
from memenvs.cli import main
from tests.agents.algorithms.two_processes import CHANGES, RUN, one_step, rollout_of
from tests.agents.learners import gradients, learner
from tests.processes import Done, Python, free_port, run_python

pytestmark = pytest.mark.programs

RESUME = ["train", "ci-smoke", "--resume", *(word for name, value in CHANGES for word in (f"--{name}", str(value)))]
TWO = Processes(0, 2)  # for checks before the first message
ALONE = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}


def run_two(module: str, folder: Path) -> list[Done]:
    """Run a module on a folder in two processes, with the variables of torchrun."""
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "OMP_NUM_THREADS": "1"}
    environs = [{**ALONE, **shared, "RANK": rank, "LOCAL_RANK": rank} for rank in ("0", "1")]
    started = [Python("-m", module, str(folder), environ=environ) for environ in environs]
    return [process.wait() for process in started]


@pytest.fixture(scope="module")
def one() -> PartialUpdatePPO:
    """One process with four environments, after one optimizer step."""
    return one_step(4, None)


@pytest.fixture(scope="module")
def folder(one: PartialUpdatePPO, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that two processes have written; the second killed itself at the end."""
    folder = tmp_path_factory.mktemp("two")
    save_file({key: value.contiguous() for key, value in rollout_of(one).items()}, folder / "rollout.safetensors")
    done = run_two("tests.agents.algorithms.two_processes", folder)
    assert [process.returncode for process in done] == [0, -signal.SIGKILL], "\n".join(
        process.stderr for process in done
    )
    return folder


@pytest.fixture(scope="module")
def notes(folder: Path) -> list[dict[str, Any]]:
    """Notes of each process."""
    return [json.loads((folder / f"notes.{rank}.json").read_text()) for rank in (0, 1)]


def test_gradient_is_that_of_one_process_with_the_same_batch(one, folder, notes):
    expected = gradients(one)
    assert torch.linalg.vector_norm(expected) == pytest.approx(0.1, rel=1e-3)  # the clip is active
    for rank in (0, 1):
        gradient = load_file(folder / f"gradient.{rank}.safetensors")["gradient"]
        torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-6)
    logged = {key: value for key, value in one.logger.name_to_value.items() if key.startswith("train/")}
    assert logged["train/grad_norm"] > 0.5
    for key in set(logged) - {"train/approx_kl_full"}:  # that one is measured after the step
        assert notes[0]["logged"][key] == notes[1]["logged"][key] == pytest.approx(logged[key], rel=1e-4, abs=1e-6), key


def test_weights_are_the_same_bit_for_bit(folder, notes):
    first, second = (load_file(folder / f"weights.{rank}.safetensors")["weights"] for rank in (0, 1))
    assert torch.equal(first, second)
    assert [own["steps"] for own in notes] == [192, 192]
    # the last of 6 updates: the cosine from 1e-2 to 1e-4 after 160 of 192 steps
    expected = 1e-4 + 0.5 * (1e-2 - 1e-4) * (1.0 + np.cos(np.pi * 160 / 192))
    assert [own["learning_rate"] for own in notes] == pytest.approx([expected] * 2)


def test_a_loss_that_is_nan_in_one_process_stops_all_before_weights_change(notes):
    assert notes[0]["loss"] == notes[1]["loss"]
    assert "got policy_gradient_loss nan, value_loss nan, grad_norm nan in update 7," in notes[0]["loss"]
    assert [own["kept"] for own in notes] == [True, True]


def test_a_callback_of_one_process_stops_all(notes):
    # the second one stops in its second segment; the first had finished it: 2 x 8 steps in 4 environments
    assert [own["stopped"] for own in notes] == [64, 64]


def test_logs_are_about_the_episodes_of_all(notes):
    assert notes[0]["episodes"] != notes[1]["episodes"]
    expected = np.mean(notes[0]["episodes"] + notes[1]["episodes"])
    assert [own["mean"] for own in notes] == pytest.approx([expected] * 2)


def test_each_process_has_its_part_of_the_environments(folder, notes):
    assert [own["whole"] for own in notes] == ["", ""]
    with zipfile.ZipFile(folder / "whole" / CHECKPOINT) as archive:
        config = json.loads(archive.read("config.json"))
        states = [json.loads(archive.read(name)) for name in ("state.json", "state.1.json")]
        samplers = [archive.read(name) for name in ("generators.safetensors", "generators.1.safetensors")]
    assert (config["n_envs"], config["processes"]) == (4, 2)
    assert [state["trials"]["seed"] for state in states] == [[0, 1], [2, 3]]
    assert [state["num_timesteps"] for state in states] == [384, 384]
    assert states[0]["order_rng"] != states[1]["order_rng"]
    assert samplers[0] != samplers[1]
    steps = [line.split(",")[0] for line in (folder / "whole" / METRICS).read_text().splitlines() if "ep_len" in line]
    assert steps == ["64", "128", "192", "256", "320", "384"]  # each update once


def test_a_folder_is_for_one_launch_at_a_time(folder, notes):
    message = f"{folder / 'whole'} is in use by another process"
    assert notes[0]["taken"] == f"InUseError: {message}"
    assert notes[1]["taken"] == f"RuntimeError: stopped with process 0 (of 0 ... 1): {message}"


def test_nan_in_one_process_stops_all_and_leaves_the_last_good_checkpoint(folder, notes):
    message = "rewards must be finite, got [nan nan] after 280 environment steps and 4 updates"
    assert notes[1]["broken"] == f"ValueError: {message}"
    assert notes[0]["broken"] == f"RuntimeError: stopped with process 1 (of 0 ... 1): {message}"
    good = PartialUpdatePPO.load(folder / "broken.0.zip", device="cpu")
    assert good.num_timesteps == 256
    assert all(bool(torch.isfinite(parameter).all()) for parameter in good.policy.parameters())


def test_a_run_goes_on_with_the_same_bits(folder, notes):
    assert [own["mended"] for own in notes] == ["", ""]
    assert (folder / "broken" / CHECKPOINT).read_bytes() == (folder / "whole" / CHECKPOINT).read_bytes()


#: `python -m memenvs`, then writes the names of the threads that are left, where /proc lists them.
RUN_AND_LIST_THREADS = """
import os, runpy
from pathlib import Path
try:
    runpy.run_module("memenvs.agents", run_name="__main__", alter_sys=True)
except SystemExit as end:
    assert not end.code
tasks = Path("/proc/self/task")
names = [(task / "comm").read_text().strip() for task in tasks.iterdir()] if tasks.is_dir() else []
Path("threads." + os.environ["RANK"]).write_text(" ".join(names))
"""


def test_when_one_process_is_killed_the_others_end_and_the_run_goes_on(folder, notes, tmp_path):
    assert notes[0]["killed"].startswith(
        "RuntimeError: process 0 (of 0 ... 1) has lost the others: one of them has ended"
    )
    assert "--resume goes on from the last checkpoint" in notes[0]["killed"]
    assert (folder / "killed" / CHECKPOINT).read_bytes() != (folder / "whole" / CHECKPOINT).read_bytes()
    (tmp_path / "script.py").write_text(RUN_AND_LIST_THREADS)
    launcher = ["torch.distributed.run", "--nproc_per_node", "2", "--master_port", free_port(), "script.py"]
    resume = [*RESUME, "--out", str(folder / "killed"), "--no-evaluate", "--json"]
    done = run_python("-m", *launcher, *resume, folder=tmp_path, environ={**ALONE, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)  # printed by the first only
    assert (result["run"], result["steps"]) == (str(folder / "killed"), 384)
    assert (folder / "killed" / CHECKPOINT).read_bytes() == (folder / "whole" / CHECKPOINT).read_bytes()
    for rank in (0, 1):  # a thread of the process group aborts the process if it needs the interpreter while that ends
        file = tmp_path / f"threads.{rank}"
        assert not Path("/proc/self/task").is_dir() or (file.stat().st_size > 0 and "gloo" not in file.read_text())


def test_another_number_of_processes_is_refused_but_evaluates(folder, capsys):
    assert main([*RESUME, "--out", str(folder / "whole")]) == 2
    assert "number of processes must be that of the file, 2, to go on learning, got 1" in capsys.readouterr().err
    assert main(["evaluate", str(folder / "whole"), "--steps", "32", "--trials", "2", "--name", "two", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["agent"]["metrics"]["return"]["mean"]) == 2


def test_numbers_that_cannot_be_split_are_named():
    with pytest.raises(ValueError, match="n_envs must be divisible by the number of processes, 2, got 7"):
        check_config(replace(RUN, n_envs=7), TWO)
    with pytest.raises(ValueError, match="batch_size must be divisible by the number of processes, 2, got 3"):
        check_config(replace(RUN, learner=replace(RUN.learner, batch_size=3)), TWO)
    with pytest.raises(ValueError, match="batch_size must be divisible by the number of processes, 2, got 3"):
        learner(batch_size=3, processes=TWO)
