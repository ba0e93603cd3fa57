"""`memenvs pack`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memenvs.cli.common import output_file, plain_name


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("folders", type=Path, nargs="+", metavar="folder", help="folders of the runs")
    command.add_argument(
        "--out",
        type=output_file,
        required=True,
        help="the table, FOLDER/NAME.jsonl; rows of the same runs are replaced",
    )
    command.add_argument(
        "--metrics", type=plain_name, nargs="+", default=[], metavar="METRIC", help="metrics to keep (default all)"
    )


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write finished runs into a table that examples show without checkpoints."""
    from memenvs.agents.studies.study_results import pack_runs

    rows = pack_runs(arguments.folders, arguments.out, arguments.metrics)
    if not arguments.json:
        print(f"{arguments.out}: {rows} rows")
    return {"table": str(arguments.out), "rows": rows}
