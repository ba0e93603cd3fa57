"""`memenvs pack`."""

from __future__ import annotations

import argparse
from typing import Any

ARGUMENTS = """
folders RUN+: folders of the runs
--out OUT_FILE!: the table, FOLDER/NAME.jsonl; rows of the same runs are replaced
--metrics METRIC+: metrics to keep (default: all)
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write finished runs into a table that examples show without checkpoints."""
    from memenvs.agents.studies.study_results import pack_runs

    rows = pack_runs(arguments.folders, arguments.out, arguments.metrics or [])
    if not arguments.json:
        print(f"{arguments.out}: {rows} rows")
    return {"table": str(arguments.out), "rows": rows}
