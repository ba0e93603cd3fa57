"""`python -m memenvs.agents presets`."""

from __future__ import annotations

import argparse
import json
from fnmatch import fnmatchcase
from typing import Any

from memenvs.agents.presets import PRESETS, find_preset


def presets(options: argparse.Namespace, rest: list[str]) -> Any:
    """Lists presets, all or those of a pattern, or shows the settings of one."""
    pattern = options.name or "*"
    wanted = pattern if set(pattern) & set("*?") else f"*{pattern}*"
    rows = [{"name": name, "what": what} for name, (what, _) in PRESETS.items() if fnmatchcase(name, wanted)]
    if pattern in PRESETS or not rows:
        settings = find_preset(pattern).to_json()
        if not options.json:
            print(json.dumps(settings, indent=1))
        return settings
    if not options.json:
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            print(f"{row['name']:{width}} {row['what']}")
    return rows
