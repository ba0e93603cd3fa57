"""`memenvs list`."""

from __future__ import annotations

import argparse

from memenvs.cli.common import UserError, print_json
from memenvs.registry import ENVIRONMENTS


def run(arguments: argparse.Namespace) -> None:
    """Prints the registry."""
    if arguments.json and arguments.markdown:
        raise UserError("argument --markdown: not allowed with argument --json")
    rows = [
        {"id": row.id, "family": row.family, "remembers": row.remembers, "needs": row.needs} for row in ENVIRONMENTS
    ]
    if arguments.json:
        print_json(rows)
        return
    if arguments.markdown:
        print(markdown_table())
        return
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        needs = f" (needs {row['needs']})" if row["needs"] else ""
        print(f"{row['id']:{width}}  remember {row['remembers']}{needs}")


def markdown_table() -> str:
    """The registry as the table of the README."""
    lines = ["| id | asks to remember | score | oracle at least | random below | needs |", "|---|---|---|---|---|---|"]
    for row in ENVIRONMENTS:
        cells = (
            f"`{row.id}`", row.remembers, f"`{row.score_key}`", f"{row.oracle_at_least:g}", f"{row.random_below:g}", row.needs or "-"
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
