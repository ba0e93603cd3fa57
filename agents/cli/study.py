"""`memenvs study`."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from memenvs.checks import choices_for
from memenvs.cli.common import UserError

ARGUMENTS = """
study STUDY?: name of a folder of studies/, or a file with a `Study`; without it, list the names
--show: train nothing: print the tables of the rows that are there
--smoke: train for seconds, in OUT/smoke, to see that everything runs
--tasks TASK+: (default: all)
--methods METHOD+: methods or scripted policies (default: all)
--seeds K+: (default: those of the study)
--jobs N=1: runs at the same time
--out OUT_FOLDER: folder; runs in it are resumed (default: runs/NAME)
--rows FILE: file of the rows (default: rows.jsonl beside the study)
--draw OUT_FOLDER: draw the figures into this folder
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Train what is missing of a study, and print its tables."""
    from memenvs.agents.experiments.config import CONFIG
    from memenvs.agents.study import ROWS, draw_figures, find_studies, load_study, read_rows, run_study

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
    out = arguments.out or Path("runs") / file.resolve().parent.name
    rows_file = Path(arguments.rows) if arguments.rows else file.with_name(ROWS)
    seeds = own.seeds if arguments.seeds is None else arguments.seeds
    if arguments.smoke:
        out, seeds = out / "smoke", seeds[:1]
        rows_file = out / ROWS
        if not arguments.show:  # a study that is being written has smoke runs of other settings; only these are removed
            rows_file.unlink(missing_ok=True)
            for folder in (out / own.name(cell) for cell in own.cells((), (), seeds)):
                if (folder / CONFIG).is_file():
                    shutil.rmtree(folder)
    cells = own.cells(arguments.tasks or (), arguments.methods or (), seeds)
    if not arguments.show:
        measured = run_study(
            file, cells, out, rows_file, processes=arguments.jobs, smoke=arguments.smoke, imports=arguments.imports
        )
        for cell, row in measured:
            seconds = "" if row.get("cpu_seconds") is None else f", {row['cpu_seconds']:.0f} CPU seconds"
            if not arguments.json:
                print(f"done: {own.name(cell)}{seconds}", flush=True)
    rows = read_rows(rows_file)
    chosen = type(rows)(row for row in rows if not arguments.tasks or row["task"] in arguments.tasks)
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
