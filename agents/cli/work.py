"""`memenvs work`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

ARGUMENTS = """
folder FOLDER: folder with the runs of a study, in which `memenvs study` has written what there is to do

Takes the next run that nobody works on, trains or resumes it, evaluates it, writes its row into its folder, and ends.
Any number of shells, on all machines that share the folder, may do so at the same time. The exit status is 1 where no
run is free. `memenvs study` gathers the rows.
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Do the next run of a study.

    Raises:
        SystemExit: With status 1, where no run is free.
    """
    from memenvs.agents.study import Rows, load_study
    from memenvs.agents.work import list_runs, read_plan, work

    plan = read_plan(Path(arguments.folder))
    done = work(plan)
    study = load_study(plan.study)
    if done is None:
        runs = list_runs(study, plan.cells, Rows([]), plan.out, Rows([]), plan.smoke)
        names = {state: [run["name"] for run in runs if run["state"] == state] for state in ("done", "failed")}
        failed = f"; failed: {', '.join(names['failed'])}" if names["failed"] else ""
        if not arguments.json:
            print(f"no run of {plan.out} is free; {len(names['done'])} of {len(runs)} have ended{failed}")
        raise SystemExit(1)
    cell, row = done
    if not arguments.json:
        print(f"done: {study.name(cell)}")
    return row
