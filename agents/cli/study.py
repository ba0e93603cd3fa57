"""`memenvs study`."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from memenvs.checks import choices_for
from memenvs.cli.common import UserError, as_user_error
from memenvs.json_records import parse_json

ARGUMENTS = """
study STUDY?: name of a folder of studies/, or a file with a `Study`; without it, list the names
--show: train nothing: print the tables of the rows that are there
--smoke: train for seconds, in OUT/smoke, to see that everything runs
--tasks TASK+: (default: all)
--methods METHOD+: methods or scripted policies (default: all)
--seeds K+: (default: those of the study)
--dry-run: train nothing: print which runs are done, and what the others will cost by rows that are there
--on ENGINE=local: local, for processes of this machine; slurm, ray or ray:ADDRESS, for a cluster that shares OUT; none,
    to start `memenvs work OUT` in shells of your own
--jobs N: runs at the same time (default: 1 on this machine, on a cluster as many as it has room for)
--resources OBJECT: what each run gets of a cluster, as JSON: parameters of submitit such as '{"timeout_min": 60}', or
    options of ray.remote such as '{"num_gpus": 0.25}'
--out OUT_FOLDER: folder; runs in it are resumed (default: runs/FOLDER of FOLDER/study.py, runs/FOLDER_NAME of
    FOLDER/NAME.py)
--rows FILE: file of the rows (default: rows.jsonl beside study.py, NAME.jsonl beside NAME.py)
--draw OUT_FOLDER: draw the figures into this folder
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Train what is missing of a study, and print its tables."""
    from memenvs.agents.engines import check_engine
    from memenvs.agents.experiments.config import CONFIG
    from memenvs.agents.study import ROWS, STUDY, Rows, draw_figures, find_studies, load_study, read_rows, rows_file_of
    from memenvs.agents.work import ROW, list_runs, run_study

    studies = find_studies()
    if arguments.study is None:
        titles = {name: load_study(file).title for name, file in studies.items()}
        if not arguments.json:
            width = max(map(len, titles), default=0)
            print("\n".join(f"{name:{width}}  {title}" for name, title in titles.items()) or "no studies here")
        return titles
    file = studies.get(arguments.study, Path(arguments.study))
    if not file.is_file():
        raise UserError(f"no study {arguments.study!r}; {choices_for(arguments.study, studies)}, or the path of a file")
    own = load_study(file)
    name = file.resolve().parent.name
    out = arguments.out or Path("runs") / (name if file.name == STUDY else f"{name}_{file.stem}")
    rows_file = Path(arguments.rows) if arguments.rows else rows_file_of(file)
    seeds = own.seeds if arguments.seeds is None else arguments.seeds
    if arguments.smoke:
        out, seeds = out / "smoke", seeds[:1]
        rows_file = out / ROWS
        if not arguments.show and not arguments.dry_run:
            # a study that is being written has smoke runs of other settings; only these are removed
            rows_file.unlink(missing_ok=True)
            for folder in (out / own.name(cell) for cell in own.cells((), (), seeds)):
                if (folder / CONFIG).is_file() or (folder / ROW).is_file():
                    shutil.rmtree(folder)
    cells = own.cells(arguments.tasks or (), arguments.methods or (), seeds)
    resources = _parse_resources(arguments.resources)
    check_engine("local" if arguments.on == "none" else arguments.on, resources)
    if arguments.dry_run:
        rows = read_rows(rows_file)
        recorded = Rows([*read_rows(rows_file_of(file)), *rows])
        runs = list_runs(own, cells, rows, out, recorded, arguments.smoke)
        if not arguments.json:
            _print_runs(runs)
        return {"study": str(file), "runs": runs}
    if not arguments.show:
        measured = run_study(
            file,
            cells,
            out,
            rows_file,
            on=arguments.on,
            processes=arguments.jobs,
            resources=resources,
            smoke=arguments.smoke,
            imports=arguments.imports,
        )
        for cell, row in measured:
            seconds = "" if row.get("cpu_seconds") is None else f", {row['cpu_seconds']:.0f} CPU seconds"
            if not arguments.json:
                print(f"done: {own.name(cell)}{seconds}", flush=True)
        if arguments.on == "none":
            if not arguments.json:
                print(f"memenvs work {out} does the next run that is missing")
            return {"study": str(file), "rows": len(list(read_rows(rows_file)))}
    rows = read_rows(rows_file)
    chosen = Rows(row for row in rows if not arguments.tasks or row["task"] in arguments.tasks)
    tables = own.tables(chosen)
    if not list(chosen):
        raise UserError(f"no rows to show in {rows_file}")
    if not arguments.json:
        for table in tables:
            print(f"\n{table.markdown()}", end="")
        if arguments.smoke:
            print("\nEverything runs. After so short a training the numbers mean nothing.")
        elif stale := own.stale(rows):
            print(f"\n{len(stale)} rows are of no run or of other settings of this study: {', '.join(stale)}.")
    if arguments.draw is not None:
        for picture in draw_figures(own, rows, arguments.draw):
            if not arguments.json:
                print(f"figure: {picture}")
    return {"study": str(file), "rows": len(list(rows)), "tables": [table._asdict() for table in tables]}


def _parse_resources(text: str | None) -> dict[str, Any]:
    """Read --resources.

    Raises:
        UserError: It is no JSON object.
    """
    with as_user_error("--resources", ValueError):
        resources = {} if text is None else parse_json(text, "must be a JSON object")
        if not isinstance(resources, dict):
            raise ValueError(f"must be a JSON object, got {text!r}")
    return resources


def _print_runs(runs: list[dict[str, Any]]) -> None:
    """Print the state of runs, the hours of those that are not done, and their sum."""
    width = max((len(run["name"]) for run in runs), default=0)
    left = [run for run in runs if run["state"] != "done"]
    recorded = [run for run in left if run["core_hours"] is not None]
    for run in runs:
        hours = f"  {run['core_hours']:.2f} core-hours" if run in recorded else ""
        print(f"{run['name']:{width}}  {run['state']:7}{hours}".rstrip())
    print(f"{len(runs) - len(left)} of {len(runs)} runs are done", end="")
    if recorded:
        print(f"; {len(recorded)} others take {sum(run['core_hours'] for run in recorded):.2f} core-hours", end="")
    print(f"; of {len(left) - len(recorded)} no row has the cost" if len(recorded) < len(left) else "")
