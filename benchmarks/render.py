"""Frames/s of the renderer on one core, as a multiple of Miniworld in the same run.

FourRooms is stepped with random actions as it comes (80 x 60 colour, drawn by OpenGL). Ours draws furnished houses from
random positions where a robot fits. Both alternate; printed are medians over the turns and their range, once by the
clock and once by CPU time. Without a GPU, Miniworld's OpenGL draws in threads of its own, on all cores: CPU time
compares one core with one core, and other programs on the machine disturb it less. Rows:

1. frames/s of 64 x 48 colour + depth + class in a procedural house of about 400 shapes, on one core
2. the same for 256 x 256 colour
3. instance ids alone, 64 x 48
4. frames/s of row 1 with two threads, over those with one
5. seconds a frame of 64 x 48 colour + depth + class in four-room ProcTHOR houses, divided by that in a procedural house
   with the same number of shapes

Needs `pip install memenvs[miniworld]` and a display; without one: `xvfb-run -a python benchmarks/render.py` (`apt-get
install -y xvfb libgl1-mesa-dri libglu1-mesa freeglut3-dev`). Row 5 needs $MEMENVS_DATA/procthor/four_room.jsonl.gz;
where that is not set, the row is left out and a line says so. Takes about two minutes; `--smoke` ends in a few seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _peer import Play, compare, machine, make_miniworld, ratios_text

from memenvs.houses.house import House
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.procedural.generator import HouseConfig, procedural_house
from memenvs.houses.procthor.loader import count_procthor, load_procthor
from memenvs.houses.rendering.renderer import Camera, Renderer, Scene

NUM_ENVS = 64
SMALL = Camera(height=48, width=64)
LARGE = Camera(height=256, width=256)


def random_poses(house: House, count: int, seed: int) -> np.ndarray:
    """Draw level camera poses 1.2 m above positions where a robot fits.

    Returns:
        float64, (count, 5); x, y, z (m), heading and pitch (rad).
    """
    rng = np.random.default_rng(seed)
    navmap = NavigationMap(house)
    rows, columns = np.nonzero(navmap.free)
    chosen = rng.integers(len(rows), size=count)
    poses = np.zeros((count, 5))
    poses[:, 0] = navmap.origin[0] + (columns[chosen] + 0.5) * navmap.cell_size
    poses[:, 1] = navmap.origin[1] + (rows[chosen] + 0.5) * navmap.cell_size
    poses[:, 2], poses[:, 3] = 1.2, rng.uniform(0, 2 * np.pi, count)
    return poses


def make_ours(
    houses: Sequence[House], camera: Camera, sensors: Sequence[str], *, batches: int = 8, threads: int = 1
) -> Play:
    """Return a function that draws for some seconds and returns the number of frames."""
    renderer = Renderer(camera, NUM_ENVS, threads=threads)
    envs_per_house = -(-NUM_ENVS // len(houses))
    for env in range(NUM_ENVS):
        renderer.set_scene(env, Scene.from_house(houses[env // envs_per_house]))
    poses = np.empty((batches, NUM_ENVS, 5))
    for k, house in enumerate(houses):
        envs = range(k * envs_per_house, min((k + 1) * envs_per_house, NUM_ENVS))
        poses[:, envs] = random_poses(house, batches * len(envs), k).reshape(batches, len(envs), 5)
    size = (NUM_ENVS, camera.height, camera.width)
    every = {
        "rgb": np.zeros((*size, 3), np.uint8),
        "depth": np.zeros((*size, 1), np.float32),
        "semantic": np.zeros(size, np.uint8),
        "instance": np.zeros(size, np.uint16),
    }
    images = {name: every[name] for name in sensors}

    def play(seconds: float) -> int:
        frames, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            renderer.render(poses[frames // NUM_ENVS % batches], **images)
            frames += NUM_ENVS
        return frames

    play(0.1)  # compiles, fills caches
    return play


def house_with_shapes(count: int, tries: int = 40) -> House:
    """Make procedural houses, and return the one whose number of shapes is nearest to `count`."""
    houses = [procedural_house(seed, HouseConfig(rooms=(4, 14))) for seed in range(tries)]
    return min(houses, key=lambda house: abs(len(house.shapes) - count))


def compare_procthor(path: Path, turns: int, seconds: float) -> dict[str, Any]:
    """Row 5: time of a frame of ProcTHOR houses over that of a procedural house as large."""
    theirs = [load_procthor(path, index) for index in range(count_procthor(path))]
    mean = round(np.mean([len(house.shapes) for house in theirs]))
    ours = house_with_shapes(mean)
    sensors = ("rgb", "depth", "semantic")
    row = compare(make_ours([ours], SMALL, sensors), make_ours(theirs, SMALL, sensors), turns, seconds)
    return {**row, "procthor_shapes_mean": mean, "procedural_shapes": len(ours.shapes)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=int, default=400, help="of the procedural house, about (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one turn")
    parser.add_argument("--json", action="store_true", help="print the JSON document alone")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.turns, args.seconds = 2, 0.1
    with contextlib.redirect_stdout(sys.stderr):  # it prints what the display cannot do; first, as it may be missing
        miniworld_ = make_miniworld()
        miniworld_(args.seconds / 4)
    house = house_with_shapes(args.shapes, tries=5 if args.smoke else 40)
    rows: dict[str, dict[str, Any]] = {}
    for name, camera, sensors in (
        ("64x48 colour+depth+class", SMALL, ("rgb", "depth", "semantic")),
        ("256x256 colour", LARGE, ("rgb",)),
        ("64x48 instance", SMALL, ("instance",)),
    ):
        rows[name] = compare(make_ours([house], camera, sensors), miniworld_, args.turns, args.seconds)
    two, one = (make_ours([house], SMALL, ("rgb", "depth", "semantic"), threads=threads) for threads in (2, 1))
    rows["two threads over one"] = compare(two, one, args.turns, args.seconds)
    data = os.environ.get("MEMENVS_DATA")
    path = Path(data or "") / "procthor" / "four_room.jsonl.gz"
    if data is not None and path.exists():
        rows["procedural over ProcTHOR"] = compare_procthor(path, args.turns, args.seconds)
    result = {
        "shapes": len(house.shapes),
        "house": house.name,
        "rows": rows,
        "turns": args.turns,
        "seconds": args.seconds,
        **machine(),
    }
    if not args.json:
        print(f"{house.name}: {len(house.shapes)} shapes, {len(house.rooms)} rooms; one core")
        for name, row in rows.items():
            print(f"{name:26} {row['ours']:8.0f} frames/s against {row['theirs']:8.0f}: {ratios_text(row)}")
        if "procedural over ProcTHOR" not in rows:
            print("ProcTHOR left out: set MEMENVS_DATA to the folder that holds procthor/four_room.jsonl.gz")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
