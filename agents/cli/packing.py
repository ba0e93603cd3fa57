"""`memenvs-agents pack`."""

from __future__ import annotations

import argparse
from typing import Any


def pack(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Write finished runs into a table that examples show without checkpoints."""
    from memenvs.agents.studies.study_results import pack_runs

    rows = pack_runs(options.folders, options.out, options.metrics)
    if not options.json:
        print(f"{options.out}: {rows} rows")
    return {"table": str(options.out), "rows": rows}
