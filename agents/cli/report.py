"""`memenvs report`."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from memenvs.agents.experiments.config import CONFIG, read_config
from memenvs.agents.experiments.seed_groups import check_same_task

ARGUMENTS = """
folders RUN+: folders of the runs; those that differ in their seed alone are shown by mean and 95 % interval
--out OUT_FOLDER: folder of the report (default: the run's); needed with several runs
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the report of one or more runs."""
    if len(set(arguments.folders)) < len(arguments.folders):
        raise ValueError(f"folders must differ, got one of them twice: {', '.join(map(str, arguments.folders))}")
    check_same_task({folder: read_config(folder) for folder in arguments.folders})
    check_out(arguments)

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.run_report import write_report

    with ExitStack() as opened:
        runs = [opened.enter_context(RunDirectory(folder)) for folder in arguments.folders]
        path = write_report(runs, arguments.out or arguments.folders[0])
    if not arguments.json:
        print(path)
    return {"report": str(path)}


def check_out(arguments: argparse.Namespace) -> None:
    """Check that pages about several runs have a folder of their own.

    Raises:
        ValueError: They would be written into the folder of a run.
    """
    if len(arguments.folders) > 1 and (arguments.out is None or (arguments.out / CONFIG).exists()):
        raise ValueError(f"--out must be a folder of its own where there are several runs, got {arguments.out}")
