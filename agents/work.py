"""Workers of a study: which run is next, and how its row gets into the study.

A worker calls `work` once: it takes the next run that nobody works on, trains or resumes it, evaluates it, and writes
its row into the folder of the run. `run_study` starts workers on an engine and gathers rows. Workers in other shells,
or on other machines that share the folder, may join at any time: `memenvs work FOLDER`.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.agents.engines import Start, open_engine
from memenvs.agents.experiments.config import CONFIG, difference, has_checkpoint, read_config
from memenvs.agents.experiments.directory import InUseError, lock_folder
from memenvs.agents.study import Cell, Rows, Study, load_study, read_rows, settings_hash
from memenvs.files import write_file
from memenvs.json_records import format_json, parse_json

PLAN = "work.json"
"""Name of the file, in the folder with the folders of runs, that says which runs a worker may take."""
ROW, ERROR = "row.json", "error.txt"
"""Names of the files in the folder of a run that has ended, or failed."""
LOCK = ".work"
"""Name of the file that a worker locks in the folder of its run; `RunDirectory` has another."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Runs of a study that workers take.

    Attributes:
        study: File of the study.
        out: Folder with the folders of runs.
        cells: Runs, in the order in which they are taken.
        smoke: Whether they are shortened to seconds.
        imports: Modules that register what the study uses.
        path: Folder of these modules, where they are not installed.
        quiet: Whether no progress bar is shown.
    """

    study: Path
    out: Path
    cells: Sequence[Cell]
    smoke: bool = False
    imports: Sequence[str] = ()
    path: str = field(default_factory=os.getcwd)
    quiet: bool = True

    def write(self) -> None:
        """Write it into its folder, for `read_plan`.

        Raises:
            OSError: The folder cannot be written, or its file system has no locks.
        """
        with suppress(InUseError), lock_folder(self.out, LOCK):
            pass  # before workers find out that there are no locks
        content = {"study": str(self.study), "cells": self.cells, "smoke": self.smoke}
        content |= {"imports": self.imports, "path": self.path}
        write_file(self.out / PLAN, format_json(content).encode())


def read_plan(folder: Path) -> Plan:
    """Read the plan of a folder.

    Raises:
        FileNotFoundError: There is none.
        ValueError: It cannot be read.
    """
    file = folder / PLAN
    if not file.is_file():
        raise FileNotFoundError(
            f"no work in {folder}: {PLAN} is missing; `memenvs study NAME --out {folder} --on none` writes it"
        )
    try:
        content = parse_json(file.read_bytes(), str(file))
        cells = [(task, method, seed) for task, method, seed in content.pop("cells")]
        if not all(isinstance(module, str) for module in content["imports"]):
            raise TypeError(f"imports must be names of modules, got {content['imports']!r}")
        return Plan(study=Path(content.pop("study")), out=folder, cells=cells, quiet=False, **content)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"{file}: not the work of a study ({error!r})") from None


def read_row(study: Study, cell: Cell, out: Path, smoke: bool = False) -> dict[str, Any] | None:
    """Read the row in the folder of a run; None where it has not ended, or with other settings."""
    file = out / study.name(cell) / ROW
    try:
        (row,) = read_rows(file)
    except ValueError:  # no row
        return None
    same = row["settings"] == settings_hash(study.runnable(cell, out, smoke))
    return dict(row) if same else None


def work(plan: Plan) -> tuple[Cell, dict[str, Any]] | None:
    """Train or resume the next run that nobody works on, and evaluate it.

    Its row is written into its folder. Runs that were stopped come last, so that one that ends every process cannot
    keep the others waiting. A run waits for the one whose weights it begins with. One that failed, whose folder has
    `ERROR`, is left out until the study is started again.

    Returns:
        The run and its row; None where no run is free.

    Raises:
        OSError: The file system of the folder has no locks.
        Exception: What the run raised; the traceback is in `ERROR`.
    """
    if plan.imports and plan.path not in sys.path:
        sys.path.append(plan.path)
    for module in plan.imports:
        import_module(module)
    study = load_study(plan.study)
    cells = {study.name(cell): cell for cell in plan.cells}

    def has_ended(name: str) -> bool:
        return read_row(study, cells[name], plan.out, plan.smoke) is not None

    for name in sorted(cells, key=lambda name: _has_begun(plan.out / name)):
        cell, folder = cells[name], plan.out / name
        source = study.config(cell).encoder_from
        if source in cells and not has_ended(source):
            continue
        with suppress(InUseError), lock_folder(folder, LOCK):
            if (folder / ERROR).is_file() or has_ended(name):
                continue
            try:
                row = study.measure(cell, plan.out, smoke=plan.smoke, quiet=plan.quiet)
            except InUseError:  # by `memenvs train --resume`
                continue
            except Exception:
                write_file(folder / ERROR, traceback.format_exc().encode())
                raise
            write_file(folder / ROW, format_json(row).encode() + b"\n")
            return cell, row
    return None


def run_study(
    file: Path,
    cells: Sequence[Cell],
    out: Path,
    rows_file: Path,
    *,
    on: str = "local",
    processes: int | None = None,
    resources: Mapping[str, Any] | None = None,
    smoke: bool = False,
    imports: Sequence[str] = (),
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Train and evaluate the runs that have no row, and append their rows.

    A run whose weights another one begins with is trained again if its checkpoint is gone. Rows of runs that have ended
    since, such as those of workers elsewhere, are appended first.

    Args:
        file: File of the study.
        cells: Runs.
        out: Folder with the folders of runs; those that were stopped are resumed.
        rows_file: File of the rows.
        on: Engine, see `open_engine`; "none" only writes the plan, and workers are started by hand.
        processes: Runs at the same time; None for one on this machine, and for as many as there is room for else.
        resources: What each run gets from the engine.
        smoke: Shorten them to seconds.
        imports: Modules that register what the study uses; each process imports them.

    Yields:
        Each run and its row, as it ends.

    Raises:
        ValueError: A run with a row has other settings now, or a folder holds another run.
        OSError: The folder cannot be written, or its file system has no locks.
        RuntimeError: Runs have no row; the message names them with the reason.
    """
    study, rows, out = load_study(file), read_rows(rows_file), out.absolute()
    stale = set(study.stale(rows)) & {study.name(cell) for cell in cells} if not smoke else set()
    if stale:
        raise ValueError(
            f"{rows_file}: {len(stale)} rows are of other settings than the study has now, such as that of "
            f"{min(stale)}; remove them to train these runs again"
        )

    def append(row: dict[str, Any]) -> None:
        if row["evaluations"] and (row["task"], row["method"], row["seed"]) not in rows:
            rows_file.parent.mkdir(parents=True, exist_ok=True)
            last = rows_file.read_bytes()[-1:] if rows_file.is_file() else b""
            with rows_file.open("ab") as lines:  # an editor may have left the last line without its end
                lines.write(b"\n" * (last not in (b"", b"\n")) + format_json(row).encode() + b"\n")

    ended = _ended_runs(study, cells, rows, out, smoke)
    for row in ended.values():
        append(row)
    yield from ended.items()
    rows = Rows([*rows, *ended.values()])
    missing = missing_runs(study, cells, rows, out)
    for name, cell in missing.items():
        folder = out / name
        differs = difference(read_config(folder), study.runnable(cell, out, smoke)) if _has_begun(folder) else None
        if differs:
            remedy = "choose another folder" if has_checkpoint(folder) else "it has no checkpoint: delete it"
            raise ValueError(f"{folder} holds another run: {differs}; {remedy}")
    if not missing:
        return
    for name in missing:  # it is to end again
        for old in (ROW, ERROR):
            (out / name / old).unlink(missing_ok=True)
    plan = Plan(study=file.resolve(), out=out, cells=list(missing.values()), smoke=smoke, imports=imports)
    plan.write()
    if on == "none":
        return
    plan = replace(plan, quiet=on != "local" or (processes or 1) > 1)
    with open_engine(on, out, processes, resources) as start:
        # SLURM itself keeps to a number of processes
        limit = processes if processes and on != "slurm" else len(missing)
        for name, row in _new_rows(study, missing, plan, start, limit):
            append(row)
            yield missing.pop(name), row


def _new_rows(
    study: Study, missing: Mapping[str, Cell], plan: Plan, start: Start, limit: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Start a worker for each run as soon as the run whose weights it begins with has ended.

    Args:
        study: The study.
        missing: Runs; the caller drops those that have ended.
        plan: What workers may take.
        start: Starts workers.
        limit: Workers at the same time.

    Yields:
        Name and row of each run as it ends, those of workers elsewhere too.

    Raises:
        RuntimeError: Runs have not ended.
    """
    waiting, total = set(missing), len(missing)
    running: set[Future[Any]] = set()
    errors: list[BaseException] = []
    while not any(isinstance(error, BrokenExecutor) for error in errors):
        sources = {name: study.config(cell).encoder_from for name, cell in missing.items()}
        free = [name for name, source in sources.items() if name in waiting and source not in missing]
        free = sorted(free, key=lambda name: _has_begun(plan.out / name))[: limit - len(running)]  # as workers do
        if free:
            waiting -= set(free)
            running |= set(start(partial(work, replace(plan, cells=list(missing.values()))), len(free)))
        if not running:
            break
        ended, running = wait(running, return_when=FIRST_COMPLETED)
        errors += [error for future in ended if (error := future.exception()) is not None]
        rows = dict(future.result() for future in ended if future.exception() is None and future.result() is not None)
        for name, cell in list(missing.items()):
            row = rows.get(cell) or read_row(study, cell, plan.out, plan.smoke)
            if row is not None:
                yield name, row
    if missing:
        reasons: dict[str, list[str]] = {}
        for name, cell in missing.items():  # without its data every run of a study has the same reason
            reasons.setdefault(_reason(study, cell, missing, plan.out), []).append(name)
        others = {reason: f" and {len(names) - 1} more" * (len(names) > 1) for reason, names in reasons.items()}
        lines = [f"{names[0]}{others[reason]}: {reason}" for reason, names in reasons.items()]
        cause = errors[0] if errors else None
        raise RuntimeError("\n".join([f"{len(missing)} of {total} runs have not ended", *lines])) from cause


def missing_runs(study: Study, cells: Sequence[Cell], rows: Rows, out: Path) -> dict[str, Cell]:
    """Runs to train or evaluate, by their names.

    Args:
        study: The study.
        cells: Runs that should have a row.
        rows: Rows that are there.
        out: Folder with the folders of runs.

    Returns:
        Those without a row, and those whose weights they begin with, which may have a row and no checkpoint.
    """
    missing = {study.name(cell): cell for cell in cells if cell not in rows and cell[1] not in study.sources}
    for cell in list(missing.values()):
        source = study.source(cell)
        while source is not None and not (source in rows and has_checkpoint(out / study.name(source))):
            missing.setdefault(study.name(source), source)
            source = study.source(source)
    return missing


def _ended_runs(study: Study, cells: Sequence[Cell], rows: Rows, out: Path, smoke: bool) -> dict[Cell, dict[str, Any]]:
    """Runs whose row is in their folder alone, with these rows."""
    own = {cell: read_row(study, cell, out, smoke) for cell in cells if cell not in rows}
    return {cell: row for cell, row in own.items() if row is not None and row["evaluations"]}


def _has_begun(folder: Path) -> bool:
    """True if a folder holds a run, such as one that was stopped."""
    return (folder / CONFIG).is_file()


def _reason(study: Study, cell: Cell, missing: Mapping[str, Cell], out: Path) -> str:
    """Say why a run has not ended."""
    folder, source = out / study.name(cell), study.config(cell).encoder_from
    if (folder / ERROR).is_file():
        return (folder / ERROR).read_text().strip().rpartition("\n")[2]
    if source in missing:
        return f"begins with the weights of {source}"
    try:
        with lock_folder(folder, LOCK):
            pass
    except InUseError:
        return "in use by another process; the same command takes its row when it has ended"
    return "stopped; the same command goes on"


def list_runs(
    study: Study, cells: Sequence[Cell], rows: Rows, out: Path, recorded: Rows, smoke: bool = False
) -> list[dict[str, Any]]:
    """State and cost of runs, of which none is begun.

    Args:
        study: The study.
        cells: Runs.
        rows: Rows that are there.
        out: Folder with the folders of runs.
        recorded: Rows with the CPU seconds of runs.
        smoke: Whether they are shortened to seconds.

    Returns:
        Of each run, and of those whose weights they need, its "name", "state" ("done", "failed", "stopped" or "to do")
        and "core_hours": the mean of recorded runs of its method in its task, else of its task; None where no row has
        the cost, and for scripted policies.
    """
    missing = missing_runs(study, cells, Rows([*rows, *_ended_runs(study, cells, rows, out, smoke).values()]), out)
    listed = {study.name(cell): cell for cell in cells if cell[1] not in study.sources} | missing
    runs = []
    for name, cell in listed.items():
        state = "to do"
        if name not in missing or read_row(study, cell, out, smoke) is not None:
            state = "done"
        elif (out / name / ERROR).is_file():
            state = "failed"
        elif _has_begun(out / name):
            state = "stopped"
        runs.append({"name": name, "state": state, "core_hours": _core_hours(recorded, cell)})
    return runs


def _core_hours(rows: Rows, cell: Cell) -> float | None:
    """Mean CPU hours of rows like that of a run; None where no row has them, and of a scripted policy."""
    if cell[2] is None:
        return None
    same_task = [row for row in rows if row["task"] == cell[0] and row.get("cpu_seconds") is not None]
    same_method = [row for row in same_task if row["method"] == cell[1]]
    seconds = [row["cpu_seconds"] for row in same_method or same_task]
    return float(np.mean(seconds)) / 3600 if seconds else None
