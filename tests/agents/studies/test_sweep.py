"""Sweeps: order of the runs, runs that are done, runs that fail, and Ctrl-C."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory, find_conflict
from memenvs.agents.presets import find_preset
from memenvs.agents.studies.sweep import SweepRun, run_sweep, sweep_options
from tests.processes import SERVER

ROOT = Path(__file__).parents[3]
CONFIG = find_preset("darkroom")


@pytest.fixture(autouse=True)
def forked(monkeypatch):
    """Runs are forked from a server that has imported torch, since each would import it anew."""
    monkeypatch.setattr("multiprocessing.get_context", lambda method=None: SERVER)


def leave(run: RunDirectory, quiet: bool) -> None:
    """Write whether it was quiet; the run whose weights it starts with must have ended."""
    source = run.config.encoder_from
    assert source is None or (Path(source) / "done.json").exists()
    time.sleep(0.2 if source is None else 0)
    with (run.path / "done.json").open("a") as file:
        file.write(str(quiet))


def fail(run: RunDirectory, quiet: bool) -> None:
    raise ValueError(f"no luck with {run.config.seed}")


def starting_with(folder: Path) -> RunConfig:
    return replace(CONFIG, encoder_from=str(folder))


def sweep(runs: dict[Path, SweepRun], *arguments: str) -> list[Path]:
    parser = argparse.ArgumentParser()
    return run_sweep(parser, sweep_options(parser, "runs", list(arguments)), runs)


def test_a_first_stage_without_its_weights_is_trained_again(tmp_path, capsys):
    """It has results, as a row of a table has, but another run needs its checkpoint."""
    first, second = tmp_path / "first", tmp_path / "second"
    runs = {
        folder: SweepRun(config, leave, ("done",))
        for folder, config in ((first, CONFIG), (second, starting_with(first)))
    }
    first.mkdir()
    (first / "done.json").write_text("{}")
    sweep(runs)
    assert (first / "done.json").read_text() == "{}False" and (second / "done.json").read_text() == "False"
    (second / "done.json").unlink()
    (first / "checkpoint.zip").touch()
    sweep(runs)
    assert (first / "done.json").read_text() == "{}False" and (second / "done.json").read_text() == "False"


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_waits_for_the_one_it_starts_with_and_is_not_repeated(tmp_path, capsys, jobs):
    first, second, other = (tmp_path / name for name in ("first", "second", "other"))
    runs = {
        first: SweepRun(CONFIG, leave, ()),  # nothing is shown of it
        second: SweepRun(starting_with(first), leave, ("done",)),
        other: SweepRun(CONFIG, leave, ("done",)),
    }
    assert sweep(runs, "--jobs", str(jobs)) == [second, other]
    printed = capsys.readouterr().out.splitlines()
    assert sorted(printed[:3]) == sorted(f"trained: {folder}" for folder in runs)
    assert printed[3:] == [f"done: {second}", f"done: {other}"]
    assert (other / "done.json").read_text() == str(jobs > 1)  # one alone shows its progress
    assert sweep(runs, "--jobs", str(jobs)) == [second, other]
    assert "trained" not in capsys.readouterr().out  # nor the first, which nobody waits for
    assert (other / "done.json").read_text() == (second / "done.json").read_text() == str(jobs > 1)


def test_show_does_nothing(tmp_path, capsys):
    done, missing = tmp_path / "done", tmp_path / "missing"
    runs = {folder: SweepRun(CONFIG, leave, ("done",)) for folder in (done, missing)}
    with pytest.raises(SystemExit, match="2"):
        sweep(runs, "--show", "--out", "there")
    assert "--show: no run in there is done" in capsys.readouterr().err
    sweep({done: runs[done]})
    assert sweep(runs, "--show") == [done] and not missing.exists()


def test_a_smoke_run_says_that_its_numbers_mean_nothing(tmp_path, capsys):
    for flags, says in ((["--smoke"], True), ([], False)):
        sweep({tmp_path / str(says): SweepRun(CONFIG, leave, ("done",))}, *flags)
        assert ("numbers mean nothing" in capsys.readouterr().out) == says


def test_a_run_that_fails_is_named_and_the_others_go_on(tmp_path, capsys):
    bad, waits, waits_too, good = (tmp_path / name for name in ("bad", "waits", "waits_too", "good"))
    runs = {
        bad: SweepRun(replace(CONFIG, seed=7), fail, ("done",)),
        waits: SweepRun(starting_with(bad), leave, ("done",)),
        waits_too: SweepRun(starting_with(waits), leave, ("done",)),
        good: SweepRun(CONFIG, leave, ("done",)),
    }
    with pytest.raises(RuntimeError) as error:
        sweep(runs)
    assert str(error.value).splitlines() == [
        "3 of 4 runs failed",
        f"{bad}: ValueError: no luck with 7",
        f"{waits}: starts with the weights of {bad}",
        f"{waits_too}: starts with the weights of {waits}",
    ]
    assert "no luck" in str(error.value.__cause__)
    assert capsys.readouterr().out.splitlines() == [f"failed: {bad}", f"trained: {good}"]
    assert not waits.exists() and sweep({good: runs[good]}, "--show") == [good]


def test_wrong_options_and_runs_of_other_settings_are_refused(tmp_path, capsys):
    runs = {tmp_path / "a": SweepRun(CONFIG, leave, ("done",))}
    with pytest.raises(SystemExit, match="2"):
        sweep(runs, "--jobs", "0")
    assert "--jobs: must be >= 1, got 0" in capsys.readouterr().err and not (tmp_path / "a").exists()
    with pytest.raises(SystemExit, match="2"):
        sweep(runs, "--seeds", "3", "-1")
    assert "--seeds: must be >= 0, got -1" in capsys.readouterr().err and not (tmp_path / "a").exists()
    sweep(runs)
    with pytest.raises(SystemExit, match="2"):
        sweep({tmp_path / "a": SweepRun(replace(CONFIG, seed=1), leave, ("done",))})
    assert "holds another run: seed is 0 there" in capsys.readouterr().err


def test_smoke_has_one_seed_in_a_folder_of_its_own():
    options = sweep_options(argparse.ArgumentParser(), "runs/x", ["--smoke", "--seeds", "4", "5"])
    assert options.out == Path("runs/x/smoke") and options.seeds == [4]


STOPPED = """
import argparse, signal, time
from pathlib import Path
from memenvs.agents.presets import find_preset
from memenvs.agents.studies.sweep import SweepRun, run_sweep, sweep_options

def work(run, quiet):
    (run.path / "began").touch()
    time.sleep(600)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored
    parser = argparse.ArgumentParser()
    options = sweep_options(parser, "runs")
    run = SweepRun(find_preset("darkroom"), work, ("x",))
    run_sweep(parser, options, {options.out / f"{k}": run for k in range(3)})
"""


@pytest.mark.parametrize("how", ["Ctrl-C", "many Ctrl-C", "kill"])
@pytest.mark.slow
def test_a_stopped_command_stops_its_runs_and_starts_no_other(tmp_path, how):
    (tmp_path / "script.py").write_text(STOPPED)
    with subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            while not (tmp_path / "runs" / "0" / "began").exists():
                assert process.poll() is None
                time.sleep(0.05)
            if how == "kill":
                process.kill()  # but none of its children
            for _ in range({"Ctrl-C": 1, "many Ctrl-C": 20, "kill": 0}[how]):
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does
                time.sleep(0.001)
            _, printed = process.communicate(timeout=60)
        finally:
            process.kill()
    if how == "kill":
        assert process.returncode == -signal.SIGKILL
    else:
        message = b"stopped; the same command goes on with the runs that are not done\n"
        assert (process.returncode, printed) == (130, message)
    folder = tmp_path / "runs" / "0"
    for _ in range(100):  # a process that is terminated takes its time
        if find_conflict({folder: CONFIG}) is None:
            break
        time.sleep(0.05)
    assert find_conflict({folder: CONFIG}) is None  # released
    assert list((tmp_path / "runs").iterdir()) == [folder]
