"""Toy house that can be checked by hand, its files in public formats, and slow references.

The house "toy", seen from above (m). All viewpoints are at height 1.5; x is not included:

    d (0, 4.5)
    c (0, 4)        x (4, 4)
    b (0, 2) ------ e (2, 2)      edges a-b, b-c, c-d, b-e, a-e (c-x does not count)
    a (0, 0)
"""

import gzip
import json
import math
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csgraph, csr_matrix

from memenvs.vln.graph import Graph
from memenvs.vln.worlds.base import VLNEpisode

POSITIONS = {"a": (0.0, 0.0), "b": (0.0, 2.0), "c": (0.0, 4.0), "d": (0.0, 4.5), "e": (2.0, 2.0), "x": (4.0, 4.0)}
EDGES = ("ab", "bc", "cd", "be", "ae", "cx")
R2R = [
    {
        "scan": "toy",
        "path_id": 7,
        "path": list("abcd"),
        "heading": 0.3,
        "distance": 4.5,
        "instructions": ["Go on.", "Go on, and on!"],
    },
    {
        "scan": "toy",
        "path_id": 8,
        "path": list("eb"),
        "heading": 1.6,
        "distance": 2.0,
        "instructions": ["Café on the left."],
    },
]
NDH = [
    {
        "scan": "toy",
        "inst_idx": 3,
        "target": "lamp",
        "start_pano": {"pano": "a", "heading": 0.0, "elevation": 17.0},
        "dialog_history": [
            {"nav_idx": 0, "role": "navigator", "message": "Where now?"},
            {"nav_idx": 0, "role": "oracle", "message": "Go north."},
            {"nav_idx": 1, "role": "navigator", "message": "And here?"},
            {"nav_idx": 1, "role": "oracle", "message": "Straight on."},
        ],
        "end_panos": ["c", "d"],
        "planner_path": ["a", "b", "c"],
        "player_path": ["a", "e", "b", "c", "d"],
    },
    {
        "scan": "toy",
        "inst_idx": 4,
        "target": "bed",
        "start_pano": {"pano": "c", "heading": 3.1, "elevation": 0.0},
        "dialog_history": [],
        "end_panos": ["e"],
        "planner_path": ["c", "b", "e"],
        "player_path": ["c", "b", "b", "a"],
    },
]


def shortest_path(graph: Graph, start: int, goal: int) -> tuple[int, ...]:
    """Shortest path as nodes with both ends; of equally long ones that over lower nodes."""
    path = [start]
    while path[-1] != goal:
        total = graph.adjacency[path[-1]] + graph.distance[:, goal]
        total[path[-1]] = math.inf
        path.append(int((total <= total.min() + 1e-9).argmax()))
    return tuple(path)


def write_json(path: Path, document: Any, *, zipped: bool = False) -> Path:
    """Write a JSON document, gzipped if `zipped`, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(document).encode()
    path.write_bytes(gzip.compress(data) if zipped else data)
    return path


def connectivity() -> list[dict[str, Any]]:
    """The toy house in the format of the Matterport3D Simulator."""
    names = list(POSITIONS)
    return [
        {
            "image_id": name,
            "pose": [1, 0, 0, POSITIONS[name][0], 0, 1, 0, POSITIONS[name][1], 0, 0, 1, 1.5, 0, 0, 0, 1],
            "included": name != "x",
            "visible": [name != other for other in names],
            "unobstructed": [name + other in EDGES or other + name in EDGES for other in names],
            "height": 1.5,
        }
        for name in names
    ]


def write_data(folder: Path) -> Path:
    """Write the files of the toy house: no regions, and the same episodes in each split."""
    write_json(folder / "regions.json", {})
    write_json(folder / "connectivity" / "toy_connectivity.json", connectivity())
    for split in ("train", "val_seen"):
        write_json(folder / f"R2R_{split}.json", R2R)
        write_json(folder / f"ndh_{split}.json.gz", NDH, zipped=True)
    return folder


def angle_between(left: float, right: float) -> float:
    """Angle between two headings, rad."""
    return abs(math.remainder(left - right, 2 * math.pi))


def dijkstra(graph: Graph, start: int) -> list[float]:
    """Shortest path length from a node to each node, m, by SciPy."""
    lengths = [math.dist(graph.position[u], graph.position[v]) for u, v in graph.edges.tolist()]
    matrix = csr_matrix((lengths, graph.edges.T), (len(graph), len(graph)))
    return csgraph.dijkstra(matrix, directed=False, indices=start).tolist()


def reference_metrics(graph: Graph, episode: VLNEpisode, path: list[int]) -> dict[str, float]:
    """All metrics of a path, computed from their definitions."""
    d = [dijkstra(graph, node) for node in range(len(graph))]
    path = [node for k, node in enumerate(path) if k == 0 or node != path[k - 1]]
    reference = list(episode.path)
    goal = episode.leg_ends[-1]
    region = episode.region or (goal,)
    shortest = sum(d[u][v] for u, v in zip([episode.path[0], *episode.leg_ends], episode.leg_ends, strict=False))
    path_length = sum(d[u][v] for u, v in pairwise(path))
    reference_length = sum(d[u][v] for u, v in pairwise(reference))
    waiting = list(episode.leg_ends[:-1])
    for node in path:
        while waiting and d[node][waiting[0]] < 3.0:
            waiting.pop(0)
    success = float(d[path[-1]][goal] < 3.0 and not waiting)

    @cache
    def warp(i: int, j: int) -> float:
        if i == 0 or j == 0:
            return 0.0 if i == j else math.inf
        return d[path[i - 1]][reference[j - 1]] + min(warp(i - 1, j), warp(i, j - 1), warp(i - 1, j - 1))

    ndtw = math.exp(-warp(len(path), len(reference)) / (3.0 * len(reference)))
    coverage = sum(math.exp(-min(d[p][r] for p in path) / 3.0) for r in reference) / len(reference)
    expected = coverage * reference_length
    total = expected + abs(expected - path_length)
    stayed = success if path_length == 0.0 else 0.0
    spl = success * shortest / max(path_length, shortest, 0.01) if shortest > 0.0 else stayed
    return {
        "ne": d[path[-1]][goal],
        "sr": success,
        "osr": float(min(d[p][goal] for p in path) < 3.0),
        "spl": spl,
        "tl": path_length,
        "ndtw": ndtw,
        "sdtw": success * ndtw,
        "cls": coverage * (expected / total if total else 1.0),
        "gp": min(d[episode.path[0]][e] for e in region) - min(d[path[-1]][e] for e in region),
    }


def published_tour_ndtw(graph: Graph, episodes: list[VLNEpisode], paths: list[list[int]]) -> float:
    """t-nDTW by its definition, in one table for the whole tour.

    Points of alignment are the last node of an episode and the first of the next. In the column of such a node of the
    annotated path only the row of the same node of the agent's path is open.
    """
    distance = [dijkstra(graph, node) for node in range(len(graph))]
    agent = [(k, node) for k, path in enumerate(paths) for node, _ in groupby(path)]
    truth = [(k, node) for k, one in enumerate(episodes) for node in one.path]
    ends = [[i for i in range(1, len(rows)) if rows[i][0] != rows[i - 1][0]] for rows in (agent, truth)]
    is_open = np.ones((len(agent), len(truth)), bool)
    for i, j in zip(*ends, strict=True):
        for row, column in ((i - 1, j - 1), (i, j)):
            is_open[:, column] = False
            is_open[row, column] = True
    table = np.full((len(agent) + 1, len(truth) + 1), np.inf)
    table[0, 0] = 0.0
    for i, j in zip(*np.nonzero(is_open), strict=True):
        best = min(table[i, j], table[i, j + 1], table[i + 1, j])
        table[i + 1, j + 1] = distance[agent[i][1]][truth[j][1]] + best
    return math.exp(-table[-1, -1] / (3.0 * len(truth)))
