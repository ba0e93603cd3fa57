"""Check and score result files in the public format of R2R and NDH.

A file is a JSON list of {"instr_id": ID, "trajectory": [[viewpoint, heading, elevation], ...]}; NDH has "inst_idx" in
place of "instr_id".
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np

from memenvs.checks import choices_for
from memenvs.data import find_vln_folder
from memenvs.json_records import Field, read_json
from memenvs.vln.graph import Graph, Graphs
from memenvs.vln.metrics import METRICS, score
from memenvs.vln.worlds.base import GraphWorld, VLNEpisode
from memenvs.vln.worlds.mp3d import CVDN_SPLITS, R2R_SPLITS, load_cvdn, load_r2r

#: By task, the key of an entry's id and the reported metrics.
TASKS = {"r2r": ("instr_id", METRICS), "ndh": ("inst_idx", ("gp",))}
#: By task, the splits that can be scored.
SPLITS = {"r2r": R2R_SPLITS, "ndh": CVDN_SPLITS}
#: Aliases of tasks.
ALIASES = {"cvdn": "ndh"}
#: Metrics in metres; the others are fractions.
LENGTHS = ("ne", "tl", "gp")


def score_file(
    task: str, path: str | os.PathLike[str], split: str, data_dir: str | os.PathLike[str] | None = None
) -> dict[str, float]:
    """Mean metrics over the instructions of a split.

    Args:
        task: "r2r" or "ndh"; "cvdn" is another name of "ndh".
        path: The file of results, .json, gzipped or not.
        split: "val_seen", "val_unseen", ...
        data_dir: Folder of graphs and annotations; None for `$MEMENVS_DATA/vln`.

    Returns:
        R2R: "ne" and "tl" in m, "sr", "osr", "spl", "ndtw", "sdtw", "cls" as fractions. NDH: "gp" in m.

    Raises:
        FileNotFoundError: The file or the data are not there.
        ValueError: Unknown task or split; the file is not JSON; an entry is missing, unknown or given twice, begins
            elsewhere than its instruction, or goes from a viewpoint to one that is no neighbour. The message names the
            entry.
    """
    return score_paths(task, path, load_world(task, split, data_dir))


def load_world(task: str, split: str, data_dir: str | os.PathLike[str] | None = None) -> GraphWorld:
    """Load the world to score against; arguments and errors as in `score_file`."""
    folder = find_vln_folder(data_dir)
    return load_r2r(folder, split) if _task_name(task) == "r2r" else load_cvdn(folder, split, "mixed", "all")


def score_paths(task: str, path: str | os.PathLike[str], world: GraphWorld) -> dict[str, float]:
    """Score a file with a world of `load_world`; see `score_file`."""
    key, metrics = TASKS[_task_name(task)]
    paths = read_paths(Path(path), world, key)
    episodes = [world.episode(number) for number in range(world.num_episodes)]
    scores = score(Graphs(world.graphs), episodes, paths)
    return {name: float(np.mean(scores[name])) for name in metrics}


def _task_name(task: str) -> str:
    task = ALIASES.get(task, task)
    if task not in TASKS:
        raise ValueError(f"unknown task {task!r}; {choices_for(task, TASKS)}")
    return task


def read_paths(path: Path, world: GraphWorld, key: str) -> list[list[int]]:
    """Read the path of each episode of a world, as nodes of its house.

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
    missing = [number for number in range(world.num_episodes) if number not in paths]
    if missing:
        raise ValueError(
            f"{path}: {len(missing)} of {world.num_episodes} trajectories are missing, the first is that of "
            f"{key} {world.episode(missing[0]).id!r}"
        )
    return [paths[number] for number in range(world.num_episodes)]


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
