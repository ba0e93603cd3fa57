"""`memenvs assets`."""

from __future__ import annotations

import argparse
from pathlib import Path

from memenvs.cli.common import as_user_error, check_output, print_json
from memenvs.houses.procthor.asset_sizes import convert_databases


def run(arguments: argparse.Namespace) -> None:
    """Write the file of asset sizes that house files need."""
    out = check_output("--out", arguments.out, ".gz", ".json")
    with as_user_error("DATABASE", ValueError, OSError):
        sizes, num_dropped = convert_databases([Path(path) for path in arguments.databases], out)
    num_types = len({asset.type for asset in sizes.assets.values()})
    if arguments.json:
        print_json({"file": str(out), "assets": len(sizes.assets), "types": num_types, "without_size": num_dropped})
        return
    print(f"wrote {out}: {len(sizes.assets)} assets of {num_types} types; {num_dropped} without a size are left out")
