"""`memenvs house`."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from memenvs.cli.common import (
    UserError,
    as_user_error,
    check_output,
    refuse_options,
)
from memenvs.cli.parser import non_negative_int
from memenvs.files import write_file
from memenvs.houses.home_file import describe_home
from memenvs.houses.homes_config import HomesConfig
from memenvs.houses.house import House
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.playable import find_unplayable
from memenvs.houses.procedural.generator import count_furniture, procedural_house, suncg_house
from memenvs.houses.procthor.loader import count_procthor, load_procthor
from memenvs.json_records import format_json
from memenvs.progress import progress_bar
from memenvs.registry import find_environment
from memenvs.task import load_task

ARGUMENTS = """
--world procedural|suncg_style: which kind of home --seed makes (default: procedural)
--index K: which house of the file, from 0 (default: 0)
--asset-sizes FILE: sizes of the file's assets (default: asset_sizes.json.gz beside it)
--check ID: list the homes of --file that this task in homes cannot play, and why
--out MAP.png: draw the map seen from above into this file
--json-out HOUSE.json: write rooms, doors and shapes of the home into this file, which --file reads without sizes of
    assets
--habitat OUT_FOLDER: add the home to a scene dataset of habitat-sim in this folder: stage, semantic ids, and, if the
    package is installed, navigation mesh (needs memenvs[export])
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the two sources of a home."""
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--seed", type=non_negative_int, metavar="K", help="the home with this number")
    source.add_argument("--file", metavar="FILE", help="a file of ProcTHOR houses (.jsonl, .json, either with .gz)")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Print statistics of a home, or the homes of a file that a task cannot play."""
    if arguments.check is not None:
        return _check_homes(arguments)
    out = None if arguments.out is None else check_output("--out", arguments.out, ".png")
    document = None if arguments.json_out is None else check_output("--json-out", arguments.json_out, ".json")
    if arguments.habitat is not None:  # refuse before anything is written
        from memenvs.houses.gltf import import_trimesh

        with as_user_error("--habitat", ImportError):
            import_trimesh()
    house = _load_house(arguments)
    with as_user_error("--seed" if arguments.file is None else "--file", ValueError):
        navigation = NavigationMap(house)
    if out is not None:
        from memenvs.houses.rendering.topdown import HOUSE_LEGEND, draw_legend, draw_topdown, save_png

        plan = draw_topdown(house, navigation=navigation)
        with as_user_error("--out", OSError):
            save_png(np.concatenate([plan, draw_legend(HOUSE_LEGEND, plan.shape[1])]), out)
    if document is not None:
        with as_user_error("--json-out", OSError):
            write_file(document, format_json(describe_home(house)).encode())
    written = [path for path in (out, document) if path is not None]
    if arguments.habitat is not None:
        from memenvs.houses.habitat.export import export_habitat

        with as_user_error("--habitat", OSError, ValueError):
            written += export_habitat(house, arguments.habitat)
    facts = describe(house, navigation)
    if not arguments.json:
        print(house.name)
        for name, value in facts.items():
            print(f"{name:15}  {value}")
        for path in written:
            print(f"wrote {path}")
    return facts


def describe(house: House, navigation: NavigationMap) -> dict[str, float]:
    """Count rooms, doors and furniture of a home, and measure its areas.

    Returns:
        `rooms`; `reachable_rooms`: those that the largest navigable island reaches into; `doors`: between rooms or to
        the outside; `furniture`: pieces on the floor; `objects`: everything else but the building, doors and windows;
        `shapes`; `area_m2`: the floor; `navigable_m2`: the largest island.
    """
    rooms = np.unique(navigation.room[navigation.island == 0])
    fixed = sum(name.partition("|")[0] in ("building", "door", "window") for name in house.instances)
    furniture = int(count_furniture(house))
    return {
        "rooms": len(house.rooms),
        "reachable_rooms": int((rooms >= 0).sum()),
        "doors": len(house.doors),
        "furniture": furniture,
        "objects": len(house.instances) - fixed - furniture,
        "shapes": len(house.shapes),
        "area_m2": round(house.area, 2),
        "navigable_m2": round(navigation.area, 2),
    }


def _check_homes(arguments: argparse.Namespace) -> dict[str, Any]:
    """Print the homes of --file that the task --check cannot play, and why."""
    if arguments.file is None:
        raise UserError(f"argument --check: goes with --file and not with --seed, got {arguments.check}")
    names = ("world", "index", "out", "json_out", "habitat")
    refuse_options(arguments, names, "must not be given with --check")
    with as_user_error("--check", ValueError):
        spec = find_environment(arguments.check)
    config_type = None if spec.task is None else load_task(spec.task).config_type
    if config_type is None or not issubclass(config_type, HomesConfig):
        raise UserError(f"argument --check: must be a task in homes, got {arguments.check}")
    with as_user_error("--file", ValueError, OSError):
        config = config_type(
            world="procthor",
            split="all",
            houses=arguments.file,
            asset_sizes=arguments.asset_sizes,
        )
        world = config.make_world()
        with progress_bar("checking homes", quiet=arguments.json) as progress:
            unplayable = find_unplayable(world, config.home_check(), len(world), progress)
    if not arguments.json:
        print(f"{len(unplayable)} of {len(world)} homes cannot be played in {spec.id}")
        for number, reason in unplayable.items():
            print(f"{number:6}  {reason}")
    return {"id": spec.id, "homes": len(world), "unplayable": dict(unplayable)}


def _load_house(arguments: argparse.Namespace) -> House:
    """Generate the home of --seed, or load that of --file and --index."""
    if arguments.file is not None:
        refuse_options(arguments, ("world",), "goes with --seed and not with --file")
        index = arguments.index or 0
        with as_user_error("--file", ValueError, OSError):
            count = count_procthor(arguments.file)
        if index >= count > 0:
            raise UserError(f"argument --index: {arguments.file} has the houses 0 to {count - 1}, got {index}")
        with as_user_error("--file", ValueError, OSError):
            return load_procthor(arguments.file, index, asset_sizes=arguments.asset_sizes)
    refuse_options(arguments, ("index", "asset_sizes"), "goes with --file and not with --seed")
    return (suncg_house if arguments.world == "suncg_style" else procedural_house)(arguments.seed)
