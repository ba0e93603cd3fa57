"""Tours of IR2R: the episodes of one house in an order, from a file or drawn."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from memenvs.json_records import Field, read_json
from memenvs.vln.worlds.base import GraphWorld
from memenvs.vln.worlds.mp3d import find_file

#: The published file of tours.
FILE = "tours_iVLN.json"
_HELP = (
    f"IR2R's published tours are in {FILE}, which github.com/Bill1235813/IVLN links; put it into the folder of R2R's "
    "files, gzipped or not."
)

Tour = tuple[int, ...]  # numbers of episodes


def draw_tour(world: GraphWorld, house: int, rng: np.random.Generator) -> Tour:
    """Draw a tour of a house: each path once, with one of its texts.

    It begins with a drawn path. The next one is that whose start is nearest on foot to the goal of the last one; of
    equally near ones the first. What cannot be reached on foot is left out.

    Args:
        world: Has the episodes.
        house: Index of the house in `world.graphs`.
        rng: Draws the texts and the first path.

    Returns:
        Numbers of the episodes, in their order.
    """
    paths = world.paths(house)
    numbers = [texts[int(rng.integers(len(texts)))] for texts in paths]
    away = _ways(world, house).copy()
    tour = [int(rng.integers(len(paths)))]
    away[:, tour[0]] = np.inf
    while np.isfinite(away[tour[-1]]).any():
        tour.append(int(away[tour[-1]].argmin()))
        away[:, tour[-1]] = np.inf
    return tuple(numbers[k] for k in tour)


@lru_cache(maxsize=256)
def _ways(world: GraphWorld, house: int) -> np.ndarray:
    """Lengths of the ways from the goal of each path of a house to the start of each, m; (paths, paths)."""
    paths = [world.episode(texts[0]).path for texts in world.paths(house)]
    start, goal = np.array([(path[0], path[-1]) for path in paths]).T
    return world.graphs[house].distance[goal[:, None], start]


def read_tours(folder: Path, split: str, world: GraphWorld) -> tuple[Tour, ...]:
    """Read the published tours of a split.

    Args:
        folder: Folder of the file, {split: {scan: [[instr_id, ...], ...]}}.
        split: "train", "val_seen" or "val_unseen".
        world: World of R2R with the episodes of the split.

    Returns:
        Numbers of the episodes of each tour, in the order of the file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken, or of other graphs or instructions; the message names it and the record. An
            instruction may be in one tour only, and has to be in the scan of its tour. On foot one has to get from the
            goal of each to the start of the next.
    """
    scans = read_json(find_file(folder, FILE, help_text=_HELP))[split]
    houses = {graph.name: house for house, graph in enumerate(world.graphs)}
    taken: set[int] = set()
    tours: list[Tour] = []
    for scan in scans.names():
        if scan not in houses:
            raise scans[scan].error(f"of a scan with instructions in split {split!r}")
        for entries in scans[scan].items(1):
            tour: list[int] = []
            for entry in entries.items(1):
                tour.append(_number(entry, houses[scan], split, world))
                if tour[-1] in taken:
                    raise entry.error("an instruction that is in no tour yet")
                taken.add(tour[-1])
                if len(tour) > 1:
                    _check_way(entry, tour[-2], tour[-1], world)
            tours.append(tuple(tour))
    if not tours:
        raise scans.error("tours of at least one scan")
    return tuple(tours)


def _number(entry: Field, house: int, split: str, world: GraphWorld) -> int:
    """Number of the episode that an entry of a tour names."""
    try:
        number = world.episode_number(entry.text())
    except ValueError:
        raise entry.error(f"the id of an instruction in split {split!r}") from None
    episode = world.episode(number)
    if episode.house != house:
        scans = world.graphs[house].name, world.graphs[episode.house].name
        raise entry.error(f"an instruction in scan {scans[0]}, not in {scans[1]}")
    return number


def _check_way(entry: Field, before: int, number: int, world: GraphWorld) -> None:
    """Check that one can walk from the goal of an episode to the start of the next one."""
    last, episode = world.episode(before), world.episode(number)
    graph = world.graphs[episode.house]
    if not np.isfinite(graph.distance[last.path[-1], episode.path[0]]):
        raise entry.error(f"an instruction that starts where one can walk to from the goal of {last.id!r}")
