"""`memenvs list`."""

from __future__ import annotations

import argparse

from memenvs.cli.common import print_json
from memenvs.registry import ENVIRONMENTS


def run(arguments: argparse.Namespace) -> None:
    """Prints the registry."""
    rows = [
        {"id": row.id, "family": row.family, "remembers": row.remembers, "needs": row.needs} for row in ENVIRONMENTS
    ]
    if arguments.json:
        print_json(rows)
        return
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        needs = f" (needs {row['needs']})" if row["needs"] else ""
        print(f"{row['id']:{width}}  remember {row['remembers']}{needs}")
