"""A study of runs of seconds, whose workers can be killed in the middle of one."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from memenvs.agents.study import Cell, load_study
from memenvs.agents.work import LOCK, ROW, Plan, work
from memenvs.json_records import format_json

T = TypeVar("T")
STEPS, ROLLOUT = 2048, 256
#: Each process that loads it leaves its number in a file.
STUDY = f'''
"""Cells of {STEPS // ROLLOUT} checkpoints each."""
import os
from dataclasses import replace
from pathlib import Path
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Study, Table, changed, grid

(Path(__file__).parent / f"worker-{{os.getpid()}}").touch()
SMALL = changed(find_preset("ci-smoke"), {{"ppo.n_steps": 64, "ppo.n_updates": 2, "ppo.batch_size": 4}})
STUDY = Study(
    title="Cells",
    configs=grid(
        {{"room": replace(SMALL, n_envs=4, eval_envs=4, total_steps={STEPS}, eval_trials=4)}},
        {{"relic": {{}}, "next": {{"encoder_from": "room-relic-{{seed}}"}}}},
    ),
    tables=lambda rows: [Table("Scores", ["seed"], [[row["seed"]] for row in rows])],
)
'''


def write_study(folder: Path) -> Path:
    """Write the file of the study into a new folder."""
    folder.mkdir(parents=True)
    (folder / "study.py").write_text(STUDY)
    return folder / "study.py"


def cells_of(file: Path, seeds: int, *methods: str) -> list[Cell]:
    return load_study(file).cells((), methods or ("relic",), range(seeds))


def rows_in_one_process(folder: Path, seeds: int, *methods: str) -> dict[Cell, str]:
    """Rows of runs that nothing has stopped."""
    file = write_study(folder / "reference")
    plan = Plan(study=file, out=folder / "reference-runs", cells=cells_of(file, seeds, *methods))
    return comparable(done[1] for _ in plan.cells if (done := work(plan)) is not None)


def comparable(rows: Iterable[Mapping[str, Any]]) -> dict[Cell, str]:
    """Rows by their cell, as JSON without the time that they took."""
    kept = [{name: value for name, value in row.items() if name != "cpu_seconds"} for row in rows]
    return {(row["task"], row["method"], row["seed"]): format_json(row) for row in kept}


def is_in_the_middle(out: Path, name: str = "*") -> bool:
    """True if a run has a checkpoint and no row."""
    return any(not (file.parent / ROW).exists() for file in out.glob(f"{name}/checkpoint.zip"))


def worker_in_the_middle(file: Path, out: Path) -> int | None:
    """Number of another process whose run has a checkpoint and no row; None if there is none."""
    for mark in file.parent.glob("worker-*"):
        number = int(mark.name.partition("-")[2])
        with suppress(OSError):  # it has ended
            for link in () if number == os.getpid() else Path(f"/proc/{number}/fd").iterdir():
                target = link.readlink()
                if target.name == LOCK and is_in_the_middle(target.parent.parent, target.parent.name):
                    return number
    return None


def wait_until(condition: Callable[[], T | None], seconds: float = 240.0) -> T:
    """Wait for what another process does, and return it."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return result
