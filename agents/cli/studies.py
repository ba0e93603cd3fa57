"""`memenvs-agents study`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memenvs.checks import choices_for
from memenvs.cli.common import UserError


def study(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Train what is missing of a study, and print its tables."""
    from memenvs.agents.study import ROWS, draw_figures, find_studies, load_study, read_rows, run_study

    studies = find_studies()
    if options.study is None:
        titles = {name: load_study(file).title for name, file in studies.items()}
        if not options.json:
            width = max(map(len, titles), default=0)
            print("\n".join(f"{name:{width}}  {title}" for name, title in titles.items()) or "no studies here")
        return titles
    file = studies.get(options.study, Path(options.study))
    if not file.is_file():
        raise UserError(f"no study {options.study!r}; {choices_for(options.study, studies)}, or the path of a file")
    own = load_study(file)
    out = options.out or Path("runs") / file.resolve().parent.name
    rows_file = options.rows or file.with_name(ROWS)
    seeds = own.seeds if options.seeds is None else options.seeds
    if options.smoke:
        out, seeds = out / "smoke", seeds[:1]
        rows_file = out / ROWS
    cells = own.cells(options.tasks, options.methods, seeds)
    if not options.show:
        for cell, row in run_study(file, cells, out, rows_file, processes=options.jobs, smoke=options.smoke):
            seconds = "" if row.get("cpu_seconds") is None else f", {row['cpu_seconds']:.0f} CPU seconds"
            if not options.json:
                print(f"done: {own.name(cell)}{seconds}", flush=True)
    rows = read_rows(rows_file)
    chosen = type(rows)(row for row in rows if not options.tasks or row["task"] in options.tasks)
    tables = own.tables(chosen)
    if not list(chosen):
        raise UserError(f"no rows to show in {rows_file}")
    if not options.json:
        for table in tables:
            print(f"\n{table.markdown()}", end="")
        if options.smoke:
            print("\nEverything runs. After so short a training the numbers mean nothing.")
        elif stale := own.stale(rows):
            print(f"\n{len(stale)} rows are of earlier settings: {', '.join(stale)}.")
    if options.draw is not None:
        for picture in draw_figures(own, rows, options.draw):
            if not options.json:
                print(f"figure: {picture}")
    return {"study": str(file), "rows": len(list(rows)), "tables": [table._asdict() for table in tables]}
