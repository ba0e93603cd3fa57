"""`memenvs assets`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from memenvs.cli.common import as_user_error, check_output
from memenvs.houses.procthor.asset_sizes import convert_databases

ARGUMENTS = """
databases DATABASE+: ProcTHOR's asset-database.json, what ai2thor's GetAssetDatabase returns, or Objathor's
    annotations.json
--out FILE!: file to write, asset_sizes.json.gz beside the house file
"""


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the file of asset sizes that house files need."""
    out = check_output("--out", arguments.out, ".gz", ".json")
    with as_user_error("DATABASE", ValueError, OSError):
        sizes, num_dropped = convert_databases([Path(path) for path in arguments.databases], out)
    num_types = len({asset.type for asset in sizes.assets.values()})
    if not arguments.json:
        print(
            f"wrote {out}: {len(sizes.assets)} assets of {num_types} types; {num_dropped} without a size are left out"
        )
    return {"file": str(out), "assets": len(sizes.assets), "types": num_types, "without_size": num_dropped}
