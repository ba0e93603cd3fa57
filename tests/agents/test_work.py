"""Workers of a study: which run is next, kills, failures, rows, and what is refused."""

import errno
import json
import os
import signal
import time
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from memenvs.agents.experiments.directory import lock_folder
from memenvs.agents.study import Rows, Study, load_study, read_rows, settings_hash
from memenvs.agents.work import ERROR, LOCK, PLAN, ROW, Plan, list_runs, read_plan, run_study, work
from memenvs.cli import main
from memenvs.json_records import format_json
from tests.agents.small_study import (
    cells_of,
    comparable,
    rows_in_one_process,
    wait_until,
    worker_in_the_middle,
    write_study,
)
from tests.processes import Python

#: A shell that does `while memenvs work FOLDER; do :; done`.
SHELL = """
import sys
from memenvs.cli import main

while main(["work", sys.argv[1]]) == 0:
    pass
"""


@pytest.fixture
def plan(tmp_path) -> Plan:
    """`next` begins with the weights of `relic` of its seed, and stands before it."""
    file = write_study(tmp_path / "own")
    return Plan(study=file, out=tmp_path / "runs", cells=cells_of(file, 3, "next", "relic")[::-1])


@pytest.fixture
def measured(monkeypatch) -> list[str]:
    """Runs in the order in which they are measured. Nothing is trained; the run of seed 1 fails."""
    order = []

    def measure(study, cell, out, **options):
        order.append(f"{cell[1]} {cell[2]}")
        if order[-1] == "relic 1":
            raise ValueError("no luck")
        (out / study.name(cell) / "checkpoint.zip").touch()
        fields = dict(zip(("task", "method", "seed"), cell, strict=True))
        return {**fields, "settings": settings_hash(study.config(cell)), "evaluations": {"count": 1}}

    monkeypatch.setattr(Study, "measure", measure)
    return order


@pytest.fixture
def inline(monkeypatch) -> list[int]:
    """Work is done where it is started; returns how many workers were."""
    counts = []

    @contextmanager
    def open_engine(*_):
        def start(job, count):
            counts.append(count)
            futures = [Future() for _ in range(count)]
            for future in futures:
                try:
                    future.set_result(job())
                except Exception as error:
                    future.set_exception(error)
            return futures

        yield start

    monkeypatch.setattr("memenvs.agents.work.open_engine", open_engine)
    return counts


def names(plan: Plan, count: int) -> list[str]:
    """Runs that the next workers do."""
    done = [work(plan) for _ in range(count)]
    return ["nothing" if result is None else f"{result[0][1]} {result[0][2]}" for result in done]


def test_the_next_run_is_one_that_nobody_works_on(plan, measured):
    """A run waits for the one that it begins with; what was stopped comes last; what failed is left out."""
    (plan.out / "room-relic-1").mkdir(parents=True)
    (plan.out / "room-relic-1" / "config.json").touch()
    with lock_folder(plan.out / "room-relic-2", LOCK):
        assert names(plan, 2) == ["relic 0", "next 0"]
        with pytest.raises(ValueError, match="no luck"):
            work(plan)
        assert names(plan, 1) == ["nothing"]
    assert names(plan, 3) == ["relic 2", "next 2", "nothing"]
    assert measured == ["relic 0", "next 0", "relic 1", "relic 2", "next 2"]
    assert (plan.out / "room-relic-1" / ERROR).read_text().endswith("\nValueError: no luck\n")
    for name in ("room-relic-0", "room-relic-1"):
        with lock_folder(plan.out / name, LOCK):  # the process of a worker goes on; its locks do not
            pass


def test_a_run_that_ends_just_before_its_lock_is_not_done_again(plan, measured, monkeypatch):
    @contextmanager
    def late(folder, name):
        if measured == []:
            monkeypatch.undo()
            monkeypatch.setattr(Study, "measure", lambda *_, **__: pytest.fail("done again"))
            row = {"task": "room", "method": "relic", "seed": 2, "evaluations": {}}
            row["settings"] = settings_hash(load_study(plan.study).config(("room", "relic", 2)))
            folder.mkdir(parents=True)
            (folder / ROW).write_text(json.dumps(row))
        yield

    monkeypatch.setattr("memenvs.agents.work.lock_folder", late)
    assert work(Plan(study=plan.study, out=plan.out, cells=[("room", "relic", 2)])) is None


def test_a_study_starts_workers_and_takes_their_rows(plan, measured, inline, tmp_path):
    rows_file = tmp_path / "rows.jsonl"
    options = {"cells": plan.cells, "out": plan.out, "rows_file": rows_file}
    with lock_folder(plan.out / "room-relic-2", LOCK), pytest.raises(RuntimeError) as error:
        list(run_study(plan.study, **options))
    assert sorted(str(error.value).splitlines()) == [
        "4 of 6 runs have not ended",
        "room-next-1: begins with the weights of room-relic-1",
        "room-next-2: begins with the weights of room-relic-2",
        "room-relic-1: ValueError: no luck",
        "room-relic-2: in use by another process; the same command takes its row when it has ended",
    ]
    assert "no luck" in str(error.value.__cause__) and inline == [3]  # the third did what it found
    assert {(row["method"], row["seed"]) for row in read_rows(rows_file)} == {("relic", 0), ("next", 0)}
    assert names(plan, 3) == ["relic 2", "next 2", "nothing"]  # a worker elsewhere
    assert [cell[1:] for cell, _ in run_study(plan.study, **options, on="none")] == [("next", 2), ("relic", 2)]
    assert list(run_study(plan.study, **options, on="none")) == [] and inline == [3]
    assert len(rows_file.read_text().splitlines()) == 4
    measured.clear()
    with pytest.raises(RuntimeError, match="2 of 2 runs"):  # the run that failed is tried again
        list(run_study(plan.study, **options))
    assert measured == ["relic 1"]


def test_a_reason_of_several_runs_is_given_once(plan, measured, inline, tmp_path, monkeypatch):
    def measure(*_, **__):
        raise FileNotFoundError("no data")

    monkeypatch.setattr(Study, "measure", measure)
    cells = [("room", "relic", seed) for seed in (0, 1, 2)]
    with pytest.raises(RuntimeError) as error:
        list(run_study(plan.study, cells, plan.out, tmp_path / "rows.jsonl"))
    assert str(error.value).splitlines() == [
        "3 of 3 runs have not ended",
        "room-relic-0 and 2 more: FileNotFoundError: no data",
    ]


def test_a_run_that_was_stopped_ends_too_and_a_limit_of_workers_is_kept(plan, measured, inline, tmp_path):
    """Workers take it last, although it stands before the others."""
    config = load_study(plan.study).runnable(("room", "relic", 0), plan.out)
    (plan.out / "room-relic-0").mkdir(parents=True)
    (plan.out / "room-relic-0" / "config.json").write_text(format_json(config.to_json()))
    cells = [("room", "relic", seed) for seed in (0, 2, 3)]
    list(run_study(plan.study, cells, plan.out, tmp_path / "rows.jsonl", processes=1))
    assert measured == ["relic 2", "relic 3", "relic 0"] and inline == [1, 1, 1]


def test_a_row_gets_a_line_of_its_own(plan, measured, inline, tmp_path):
    """Also after an editor that leaves out the end of the last line."""
    rows_file = tmp_path / "rows.jsonl"
    for seed, end in ((0, ""), (2, "\n"), (3, "")):
        list(run_study(plan.study, [("room", "relic", seed)], plan.out, rows_file))
        rows_file.write_text(rows_file.read_text().rstrip("\n") + end)
    assert [row["seed"] for row in read_rows(rows_file)] == [0, 2, 3]
    assert len(rows_file.read_text().splitlines()) == 3


def test_states_and_costs_of_runs(plan, measured):
    study, out = load_study(plan.study), plan.out
    for name, file in (("relic-0", ROW), ("relic-1", ERROR), ("next-1", "config.json")):
        (out / f"room-{name}").mkdir(parents=True)
        (out / f"room-{name}" / file).write_text("{}")
    names(Plan(study=plan.study, out=out, cells=[("room", "relic", 2)]), 1)
    other = {**json.loads((out / "room-relic-2" / ROW).read_text()), "method": "next", "settings": "0"}
    (out / "room-next-2").mkdir()
    (out / "room-next-2" / ROW).write_text(json.dumps(other))
    recorded = [("relic", 5, 7200.0), ("relic", 6, 3600.0), ("other", 5, 1800.0), ("relic", 7, None)]
    rows = Rows({"task": "room", "method": m, "seed": s, "cpu_seconds": cost} for m, s, cost in recorded)
    in_rows = Rows([{"task": "room", "method": "next", "seed": 0, "cpu_seconds": None}])
    runs = list_runs(study, plan.cells, in_rows, out, rows)
    assert {(run["name"][5:], run["state"]) for run in runs} == {
        ("relic-0", "to do"),  # its row is broken
        ("relic-1", "failed"),
        ("relic-2", "done"),
        ("next-0", "done"),
        ("next-1", "stopped"),
        ("next-2", "to do"),  # its row is of other settings
    }
    hours = {run["name"]: run["core_hours"] for run in runs}
    assert hours["room-relic-0"] == pytest.approx(1.5) and hours["room-next-2"] == pytest.approx(3.5 / 3)
    assert list_runs(study, plan.cells, in_rows, out, Rows([]))[0]["core_hours"] is None
    assert list_runs(study, [("room", "oracle", None)], in_rows, out, rows)[0]["core_hours"] is None
    assert [path.name for path in (out / "room-relic-0").iterdir()] == [ROW]  # nothing is begun


def test_the_commands(plan, measured, tmp_path, capsys, monkeypatch):
    study = ["study", str(plan.study), "--out", str(plan.out), "--rows", str(tmp_path / "rows.jsonl"), "--seeds", "0"]
    assert main([*study, "--dry-run"]) == 0 and not plan.out.exists()
    assert capsys.readouterr().out.endswith("0 of 2 runs are done; of 2 no row has the cost\n")
    assert main([*study, "--on", "none"]) == 0
    assert f"memenvs work {plan.out} does the next run" in capsys.readouterr().out
    for printed in ("done: room-relic-0", "done: room-next-0"):
        assert main(["work", str(plan.out)]) == 0
        assert capsys.readouterr().out == f"{printed}\n"
    with pytest.raises(SystemExit) as stopped:
        main(["work", str(plan.out)])
    assert stopped.value.code == 1
    assert capsys.readouterr().out == f"no run of {plan.out} is free; 2 of 2 have ended\n"
    assert main([*study, "--dry-run"]) == 0
    assert capsys.readouterr().out.endswith("2 of 2 runs are done\n")
    for arguments, message in (
        (["study", str(plan.study), "--on", "cloud"], "must be local, slurm, ray or ray:ADDRESS, got 'cloud'"),
        (["study", str(plan.study), "--on", "slurm:here"], "or ray:ADDRESS, got 'slurm:here'"),
        (["study", str(plan.study), "--resources", "[1]"], "--resources: must be a JSON object, got '[1]'"),
        (["study", str(plan.study), "--resources", "{"], "--resources: must be a JSON object"),
        (["study", str(plan.study), "--resources", '{"num_gpus": 1}'], "have none, got {'num_gpus"),
        (["work", str(tmp_path)], "`memenvs study NAME --out "),
    ):
        assert main(arguments) == 2 and message in capsys.readouterr().err
        if arguments[0] == "study":
            assert main([*arguments, "--dry-run"]) == 2 and message in capsys.readouterr().err


def test_a_run_of_other_settings_is_kept_if_it_has_a_checkpoint(plan, measured, tmp_path):
    """One that failed before it learned anything blocks the study no more than its folder is worth."""
    folder, config = plan.out / "room-relic-0", load_study(plan.study).runnable(("room", "relic", 0), plan.out)
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(format_json(replace(config, total_steps=9999).to_json()).encode())
    for remedy in ("it has no checkpoint: delete it", "choose another folder"):
        with pytest.raises(ValueError, match=f"room-relic-0 holds another run: total_steps is 9999 .*; {remedy}$"):
            list(run_study(plan.study, [("room", "relic", 0)], plan.out, tmp_path / "rows.jsonl"))
        (folder / "checkpoint.zip").touch()


def test_a_plan_is_read_as_it_was_written(plan, tmp_path):
    plan.write()
    copy = read_plan(plan.out)
    assert (copy.study, copy.out, copy.cells, copy.path) == (plan.study, plan.out, plan.cells, os.getcwd())
    content = json.loads((plan.out / PLAN).read_text())
    for broken in ("", "[]", "{}", {**content, "cells": [1]}, {**content, "nope": 1}, {**content, "imports": [1]}):
        (plan.out / PLAN).write_text(broken if isinstance(broken, str) else json.dumps(broken))
        with pytest.raises(ValueError, match=r"work\.json: not the work of a study"):
            read_plan(plan.out)


@pytest.mark.filterwarnings("default")
def test_a_folder_without_locks_is_refused(plan, measured, inline, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    for folder, call in (
        (plan.out, lambda: list(run_study(plan.study, plan.cells, plan.out, tmp_path / "rows.jsonl"))),
        (plan.out / "room-relic-2", lambda: work(plan)),
    ):
        with pytest.raises(OSError, match=rf"^{folder} cannot be locked .* choose a folder .* mounted with locks$"):
            call()
    assert measured == [] and inline == [] and not list(plan.out.glob(f"*/{ERROR}"))


@pytest.mark.parametrize(
    ("seeds", "methods", "kills"),
    [
        pytest.param(2, ["relic"], 2, marks=pytest.mark.slow),
        pytest.param(25, ["relic", "next"], 20, marks=pytest.mark.nightly),
    ],
)
def test_rows_of_workers_that_are_killed_are_those_of_one_process(tmp_path, seeds, methods, kills):
    """Two shells do `memenvs work` again and again, and are killed in the middle of runs."""
    file, out, rng = write_study(tmp_path / "own"), tmp_path / "runs", np.random.default_rng(0)
    cells = cells_of(file, seeds, *methods)
    Plan(study=file, out=out, cells=cells).write()
    shells = [Python("-c", SHELL, str(out)) for _ in range(2)]
    for _ in range(kills):
        number = wait_until(lambda: worker_in_the_middle(file, out))
        time.sleep(rng.uniform(0.0, 0.1))
        (killed,) = (shell for shell in shells if shell.number == number)
        killed.kill()
        assert killed.wait().returncode == -signal.SIGKILL
        shells[shells.index(killed)] = Python("-c", SHELL, str(out))
    assert [shell.wait(1200.0).returncode for shell in shells] == [1, 1] and not list(out.glob(f"*/{ERROR}"))
    rows = [row for row_file in out.glob(f"*/{ROW}") for row in read_rows(row_file)]
    assert len(rows) == len(cells) and sum(row["cpu_seconds"] is None for row in rows) >= kills // 2
    assert comparable(rows) == rows_in_one_process(tmp_path, seeds, *methods)
