"""`memenvs presets`."""

from __future__ import annotations

import argparse
import json
from fnmatch import fnmatchcase
from typing import Any

from memenvs.agents.presets import FAMILIES, PRESETS, find_preset
from memenvs.cli.common import UserError

ARGUMENTS = """
name NAME?: show this one; or list presets whose names contain it or, with * or ?, match it, such as 'sat-*'
--memories: list the memories instead, names for `--policy.memory` of any preset, and what each observes besides
"""


def run(arguments: argparse.Namespace) -> Any:
    """List presets or memories, or show the settings of a preset."""
    if arguments.memories:
        if arguments.name is not None:
            raise UserError("argument --memories: not allowed with argument NAME")
        return _list_memories(arguments.json)
    if arguments.name is None:
        return _list_families(arguments.json)
    pattern = arguments.name if set(arguments.name) & set("*?") else f"*{arguments.name}*"
    matches = {name: preset.about for name, preset in PRESETS.items() if fnmatchcase(name, pattern)}
    if arguments.name in PRESETS or not matches:
        return _show_preset(arguments.name, arguments.json)  # an unknown name raises, with the nearest ones
    if not arguments.json:
        width = max(map(len, matches))
        for name, about in matches.items():
            print(f"{name:{width}} {about}")
    return [{"name": name, "about": about} for name, about in matches.items()]


def _list_families(as_json: bool) -> list[dict[str, Any]]:
    """Presets of each paper."""
    if not as_json:
        width = max(map(len, PRESETS))
        for title, family in FAMILIES.items():
            print(title)
            for name, preset in family.items():
                print(f"  {name:{width}} {preset.about}")
        print("`presets NAME` shows the settings of one, `train NAME` trains it, `presets --memories` lists memories.")
    return [
        {"family": title, "name": name, "about": preset.about}
        for title, family in FAMILIES.items()
        for name, preset in family.items()
    ]


def _list_memories(as_json: bool) -> list[dict[str, Any]]:
    """Memories with what they need in observations."""
    from memenvs.agents.memory import memories, required_inputs  # not above: it imports torch

    rows = [{"name": name, "about": about, "needs": list(required_inputs(name))} for name, about in memories().items()]
    if not as_json:
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            needs = f" (needs {', '.join(row['needs'])})" if row["needs"] else ""
            print(f"{row['name']:{width}} {row['about']}{needs}")
    return rows


def _show_preset(name: str, as_json: bool) -> dict[str, Any]:
    """Return the settings of a preset, and print them."""
    settings = find_preset(name).to_json()
    if not as_json:
        print(f"{name}: {PRESETS[name].about}")
        print(json.dumps(settings, indent=1))
    return settings
