"""Check and score result files in the public format of R2R and NDH.

A file is a JSON list of {"instr_id": ID, "trajectory": [[viewpoint, heading, elevation], ...]}; NDH has "inst_idx" in
place of "instr_id". IR2R has the format of R2R: its tours are in a file of their own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memenvs.checks import choices_for
from memenvs.data import find_vln_folder
from memenvs.json_records import Field, read_json
from memenvs.vln.graph import Graph, Graphs
from memenvs.vln.metrics import METRICS, score, tour_ndtw
from memenvs.vln.tours import Tour, read_tours
from memenvs.vln.worlds.base import GraphWorld, VLNEpisode
from memenvs.vln.worlds.mp3d import CVDN_SPLITS, R2R_SPLITS, load_cvdn, load_r2r

#: By task, the key of an entry's id and the reported metrics.
TASKS = {
    "r2r": ("instr_id", METRICS),
    "ir2r": ("instr_id", (*METRICS, "t_ndtw")),
    "ndh": ("inst_idx", ("gp",)),
}
#: By task, the splits that can be scored.
SPLITS = {"r2r": R2R_SPLITS, "ir2r": R2R_SPLITS[:3], "ndh": CVDN_SPLITS}
#: Metrics in metres; the others are fractions.
LENGTHS = ("ne", "tl", "gp")


def score_file(
    task: str, path: str | os.PathLike[str], split: str, data_dir: str | os.PathLike[str] | None = None
) -> dict[str, float]:
    """Mean metrics over the instructions of a split.

    Args:
        task: "r2r", "ir2r" or "ndh".
        path: The file of results, .json, gzipped or not.
        split: "val_seen", "val_unseen", ...
        data_dir: Folder of graphs, annotations and tours; None for `$MEMENVS_DATA/vln`.

    Returns:
        R2R: "ne" and "tl" in m, "sr", "osr", "spl", "ndtw", "sdtw", "cls" as fractions. IR2R: the same of the
        instructions that are in a tour, and "t_ndtw", the mean over tours, weighted by their episodes. NDH: "gp" in m.

    Raises:
        FileNotFoundError: The file or the data are not there.
        ValueError: Unknown task or split; the file is not JSON; an entry is missing, unknown or given twice, begins
            elsewhere than its instruction, or goes from a viewpoint to one that is no neighbour. The message names the
            entry.
    """
    return score_paths(task, path, *load_world(task, split, data_dir))


def load_world(
    task: str, split: str, data_dir: str | os.PathLike[str] | None = None
) -> tuple[GraphWorld, tuple[Tour, ...]]:
    """Load the world to score against, and the tours of IR2R; arguments as in `score_file`."""
    _check_task(task)
    folder = find_vln_folder(data_dir)
    if task == "ndh":
        return load_cvdn(folder, split, "mixed", "all"), ()
    world = load_r2r(folder, split)
    return world, read_tours(folder, split, world) if task == "ir2r" else ()


def score_paths(
    task: str, path: str | os.PathLike[str], world: GraphWorld, tours: Sequence[Tour] = ()
) -> dict[str, float]:
    """Score a file with the world and the tours of `load_world`; see `score_file`."""
    _check_task(task)
    key, metrics = TASKS[task]
    numbers = sorted(number for tour in tours for number in tour) if tours else range(world.num_episodes)
    paths = read_paths(Path(path), world, key, numbers)
    episodes = {number: world.episode(number) for number in numbers}
    graphs = Graphs(world.graphs)
    scores = score(graphs, list(episodes.values()), list(paths.values()))
    if tours:
        of_tours = [tour_ndtw(graphs, [episodes[k] for k in tour], [paths[k] for k in tour]) for tour in tours]
        scores["t_ndtw"] = np.array([np.average(of_tours, weights=[len(tour) for tour in tours])])
    return {name: float(np.mean(scores[name])) for name in metrics}


def _check_task(task: str) -> None:
    if task not in TASKS:
        raise ValueError(f"unknown task {task!r}; {choices_for(task, TASKS)}")


def read_paths(path: Path, world: GraphWorld, key: str, numbers: Sequence[int]) -> dict[int, list[int]]:
    """Read the paths of a file.

    Args:
        path: The file.
        world: The world of its episodes.
        key: Key of an entry's id.
        numbers: Episodes that have to be there; others of the world do not count.

    Returns:
        Number of the episode -> nodes of its house, in the order of `numbers`.

    Raises:
        FileNotFoundError: The file is not there.
        ValueError: See `score_file`.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r} is no file")
    paths: dict[int, list[int]] = {}
    for entry in read_json(path).items():
        id = entry[key]
        try:
            number = world.episode_number(str(id.value))
        except ValueError as error:
            raise ValueError(f"{entry.source}: {entry.path}: unknown {key}: {error}") from None
        if number in paths:
            raise ValueError(f"{entry.source}: {entry.path}: {key} {id.value!r} is there twice")
        episode = world.episode(number)
        paths[number] = _read_path(entry, f"{key} {id.value!r}", episode, world.graphs[episode.house])
    missing = [number for number in numbers if number not in paths]
    if missing:
        raise ValueError(
            f"{path}: {len(missing)} of {len(numbers)} trajectories are missing, the first is that of "
            f"{key} {world.episode(missing[0]).id!r}"
        )
    return {number: paths[number] for number in numbers}


def _read_path(entry: Field, name: str, episode: VLNEpisode, graph: Graph) -> list[int]:
    steps = entry["trajectory"].items()
    if not steps:
        raise ValueError(f"{entry.source}: {entry.path} ({name}): the trajectory is empty")
    nodes: list[int] = []
    for k, step in enumerate(steps):
        viewpoint, *angles = step.value if isinstance(step.value, list) and len(step.value) == 3 else [None]
        node = graph.node.get(viewpoint) if isinstance(viewpoint, str) and all(map(_is_angle, angles)) else None
        where = f"{entry.source}: {entry.path} ({name}), step {k}"
        if node is None:
            raise ValueError(
                f"{where}: must be [viewpoint of scan {graph.name}, heading, elevation], got {str(step.value)[:80]}"
            )
        if not nodes and node != episode.path[0]:
            raise ValueError(f"{where}: begins at {viewpoint}, the instruction at {graph.viewpoints[episode.path[0]]}")
        if nodes and not np.isfinite(graph.adjacency[nodes[-1], node]):
            raise ValueError(
                f"{where}: goes from {graph.viewpoints[nodes[-1]]} to {viewpoint}, which is no neighbour of it"
            )
        nodes.append(node)
    return nodes


def _is_angle(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
