"""A house small enough to work out by hand, as files in the public formats; and slow, plain versions of what is to be tested.

The house "toy", seen from above (m), all at height 1.5; x is not included:

    d (0, 4.5)
    c (0, 4)        x (4, 4)
    b (0, 2) ------ e (2, 2)      edges a-b, b-c, c-d, b-e, a-e (and c-x, which does not count)
    a (0, 0)
"""

from __future__ import annotations

import gzip
import heapq
import json
import math
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from memenvs.vln.graph import Graph
from memenvs.vln.worlds.base import Episode

PLACES = {"a": (0.0, 0.0), "b": (0.0, 2.0), "c": (0.0, 4.0), "d": (0.0, 4.5), "e": (2.0, 2.0), "x": (4.0, 4.0)}
EDGES = ("ab", "bc", "cd", "be", "ae", "cx")
R2R = [
    {"scan": "toy", "path_id": 7, "path": list("abcd"), "heading": 0.3, "distance": 4.5, "instructions": ["Go on.", "Go on, and on!"]},
    {"scan": "toy", "path_id": 8, "path": list("eb"), "heading": 1.6, "distance": 2.0, "instructions": ["Café on the left."]},
]  # fmt: skip
NDH = [
    {
        "scan": "toy", "inst_idx": 3, "target": "lamp", "start_pano": {"pano": "a", "heading": 0.0, "elevation": 17.0},
        "dialog_history": [
            {"nav_idx": 0, "role": "navigator", "message": "Where now?"},
            {"nav_idx": 0, "role": "oracle", "message": "Go north."},
            {"nav_idx": 1, "role": "navigator", "message": "And here?"},
            {"nav_idx": 1, "role": "oracle", "message": "Straight on."},
        ],
        "end_panos": ["c", "d"], "planner_path": ["a", "b", "c"], "player_path": ["a", "e", "b", "c", "d"],
    },
    {
        "scan": "toy", "inst_idx": 4, "target": "bed", "start_pano": {"pano": "c", "heading": 3.1, "elevation": 0.0}, "dialog_history": [],
        "end_panos": ["e"], "planner_path": ["c", "b", "e"], "player_path": ["c", "b", "b", "a"],
    },
]  # fmt: skip


def write_json(path: Path, document: Any, *, zipped: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = json.dumps(document).encode()
    path.write_bytes(gzip.compress(data) if zipped else data)
    return path


def connectivity() -> list[dict[str, Any]]:
    """The house in the format of the Matterport3D Simulator."""
    names = list(PLACES)
    return [
        {
            "image_id": name,
            "pose": [1, 0, 0, PLACES[name][0], 0, 1, 0, PLACES[name][1], 0, 0, 1, 1.5, 0, 0, 0, 1],
            "included": name != "x",
            "visible": [name != other for other in names],
            "unobstructed": [name + other in EDGES or other + name in EDGES for other in names],
            "height": 1.5,
        }
        for name in names
    ]


def write_data(folder: Path) -> Path:
    """A data folder with the house, in which no region is known, and its episodes; every split has the same."""
    write_json(folder / "regions.json", {})
    write_json(folder / "connectivity" / "toy_connectivity.json", connectivity())
    for split in ("train", "val_seen"):
        write_json(folder / f"R2R_{split}.json", R2R)
        write_json(folder / f"ndh_{split}.json.gz", NDH, zipped=True)
    return folder


# ---------------------------------------------------------------------- plain versions


def turn(left: float, right: float) -> float:
    """The angle between two headings, rad."""
    return abs(math.remainder(left - right, 2 * math.pi))


def dijkstra(graph: Graph, start: int) -> list[float]:
    """Lengths of shortest paths from a node."""
    near: list[list[tuple[int, float]]] = [[] for _ in range(len(graph))]
    for u, v in graph.edges.tolist():
        length = math.dist(graph.position[u], graph.position[v])
        near[u].append((v, length))
        near[v].append((u, length))
    best = [math.inf] * len(graph)
    best[start] = 0.0
    queue = [(0.0, start)]
    while queue:
        far, u = heapq.heappop(queue)
        for v, length in near[u]:
            if far + length < best[v]:
                best[v] = far + length
                heapq.heappush(queue, (best[v], v))
    return best


def plain_metrics(graph: Graph, episode: Episode, walk: list[int]) -> dict[str, float]:
    """All metrics, straight from their definitions."""
    d = [dijkstra(graph, node) for node in range(len(graph))]
    walk = [node for k, node in enumerate(walk) if k == 0 or node != walk[k - 1]]
    reference, goal = list(episode.path), episode.leg_ends[-1]
    region = episode.region or (goal,)
    shortest = sum(d[u][v] for u, v in zip([episode.path[0], *episode.leg_ends], episode.leg_ends, strict=False))
    walked = sum(d[u][v] for u, v in pairwise(walk))
    full = sum(d[u][v] for u, v in pairwise(reference))
    waiting = list(episode.leg_ends[:-1])
    for node in walk:
        while waiting and d[node][waiting[0]] < 3.0:
            waiting.pop(0)
    success = float(d[walk[-1]][goal] < 3.0 and not waiting)

    @cache
    def warp(i: int, j: int) -> float:
        if i == 0 or j == 0:
            return 0.0 if i == j else math.inf
        return d[walk[i - 1]][reference[j - 1]] + min(warp(i - 1, j), warp(i, j - 1), warp(i - 1, j - 1))

    ndtw = math.exp(-warp(len(walk), len(reference)) / (3.0 * len(reference)))
    coverage = sum(math.exp(-min(d[p][r] for p in walk) / 3.0) for r in reference) / len(reference)
    expected = coverage * full
    total = expected + abs(expected - walked)
    stayed = success if walked == 0.0 else 0.0
    spl = success * shortest / max(walked, shortest, 0.01) if shortest > 0.0 else stayed
    return {
        "ne": d[walk[-1]][goal],
        "sr": success,
        "osr": float(min(d[p][goal] for p in walk) < 3.0),
        "spl": spl,
        "tl": walked,
        "ndtw": ndtw,
        "sdtw": success * ndtw,
        "cls": coverage * (expected / total if total else 1.0),
        "gp": min(d[episode.path[0]][e] for e in region) - min(d[walk[-1]][e] for e in region),
    }
