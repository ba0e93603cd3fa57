"""`memenvs presets`."""

from __future__ import annotations

import argparse
import json
from fnmatch import fnmatchcase
from typing import Any

from memenvs.agents.presets import FAMILIES, PRESETS, find_preset, preset_descriptions
from memenvs.agents.presets.preset import SEPARATOR

ARGUMENTS = """
name NAME?: show this one; or list presets and variants whose names contain it or, with * or ?, match it, such as
    'darkroom:*'
"""


def run(arguments: argparse.Namespace) -> Any:
    """List the presets by family, those that match a pattern, or show one with its variants."""
    if arguments.name is None:
        return _list_families(arguments.json)
    names = preset_descriptions()
    pattern = arguments.name if set(arguments.name) & set("*?") else f"*{arguments.name}*"
    matches = {name: about for name, about in names.items() if fnmatchcase(name, pattern)}
    if arguments.name in names or not matches:
        return _show_preset(arguments.name, arguments.json)  # an unknown name raises, with the nearest ones
    if not arguments.json:
        _print_names(matches)
    return [{"name": name, "about": about} for name, about in matches.items()]


def _list_families(as_json: bool) -> list[dict[str, Any]]:
    """Presets of each paper, with the number of their variants."""
    if not as_json:
        width = max(map(len, PRESETS))
        for title, family in FAMILIES.items():
            print(title)
            for name, preset in family.items():
                count = len(preset.variants)
                more = f" [{count} variant{'s' * (count > 1)}]" * (count > 0)
                print(f"  {name:{width}} {preset.about}{more}")
        print("`presets NAME` shows one with its variants; `train NAME` or `train NAME:VARIANT` trains it.")
    return [
        {"family": title, "name": name, "about": preset.about, "variants": list(preset.variants)}
        for title, family in FAMILIES.items()
        for name, preset in family.items()
    ]


def _show_preset(name: str, as_json: bool) -> dict[str, Any]:
    """Return the settings of a preset or a variant; print them, below the list of the preset's variants."""
    settings = find_preset(name).to_json()
    if not as_json:
        base, _, variant = name.partition(SEPARATOR)
        about = PRESETS[base].variants[variant].about if variant else PRESETS[base].about
        print(f"{name}: {about}")
        if not variant:
            _print_names({f"{base}{SEPARATOR}{key}": row.about for key, row in PRESETS[base].variants.items()})
        print(json.dumps(settings, indent=1))
    return settings


def _print_names(names: dict[str, str]) -> None:
    width = max(map(len, names), default=0)
    for name, about in names.items():
        print(f"{name:{width}} {about}")
