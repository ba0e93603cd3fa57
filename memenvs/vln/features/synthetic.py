"""Synthetic image features: sums of random codes, one for the name of each visible object."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from memenvs.vln.features.base import Features
from memenvs.vln.graph import COLUMNS, HALF_HFOV, NUM_VIEWS, VIEW_STEP, Graph, Graphs
from memenvs.vln.worlds.base import GraphWorld, ViewpointContent

#: Part of every hash. It changes with the features, so that codes of two versions are independent.
_VERSION = "1"
_DECAY_LENGTH = 4.0  # m; weights decay by 1/e over this distance
_SHARPNESS = 8  # power of the cosine between a view and its content
_VIEWPOINT_WEIGHT = 0.3  # of the code of the viewpoint itself
_NOISE_WEIGHT = 0.1
_GEOMETRY_SCALE = 5.0  # m, or viewpoints; geometry channels are divided by it


class SyntheticFeatures(Features):
    """Features of 36 views per viewpoint, made from `GraphWorld.viewpoint_content`.

    The view from v in direction b is

        sum over visible u of max(0, cos(b, u))^8 exp(-distance / 4 m) code(content of u)
        + 0.3 code(v) + 0.1 noise(v, b),

    scaled to root mean square 1. v itself has weight 1 in the sum. Where the content gives heights, a code for each
    number of `_geometry`, times this number, is added before the scaling. Codes are normal numbers from a counter-based
    generator whose key is a hash of the name. Object names have the same code in all houses, so that what is learned
    about them generalises. The code of a viewpoint is unique, so it does not.

    Features of a house are computed when first needed, rounded to float16 and kept: 72 D bytes per viewpoint.

    Args:
        world: The world of the houses.
        graphs: Its houses in one table.
        size: Size D of a feature.
    """

    def __init__(self, world: GraphWorld, graphs: Graphs, size: int) -> None:
        self.size = size
        self._world = world
        self._graphs = graphs
        self._house = np.repeat(np.arange(len(graphs.graphs)), np.diff(graphs.offset))
        self._is_made = np.zeros(len(graphs.graphs), bool)
        self._table = np.zeros((len(self._house), NUM_VIEWS, size), np.float16)

    def __reduce__(self) -> tuple[Any, ...]:
        return SyntheticFeatures, (self._world, self._graphs, self.size)  # a copy computes its own table

    def view_features(self, node: np.ndarray, view: np.ndarray) -> np.ndarray:
        """Features of views; see `Features`."""
        houses = self._house[node]
        for house in np.unique(houses[~self._is_made[houses]]).tolist():
            rows = slice(self._graphs.offset[house], self._graphs.offset[house + 1])
            self._table[rows] = compute_view_features(
                self._world.graphs[house], self._world.viewpoint_content(house), self.size
            )
            self._is_made[house] = True
        return self._table[node, view].astype(np.float32)


def compute_view_features(graph: Graph, content: ViewpointContent, size: int) -> np.ndarray:
    """Features of all views of a house, float64, (V, 36, D); see `SyntheticFeatures`."""
    offset = graph.position - graph.position[:, None]  # [v, u]: from v to u
    distance = np.linalg.norm(offset, axis=2)
    direction = np.divide(offset, distance[:, :, None], out=np.zeros_like(offset), where=distance[:, :, None] > 0)
    cosine = np.einsum("vuk,bk->vbu", direction, _view_directions())
    decay = np.where(content.is_visible, np.exp(-distance / _DECAY_LENGTH), 0.0)
    weight = decay[:, None] * np.maximum(cosine, 0.0) ** _SHARPNESS  # (V, 36, V)
    here = np.arange(len(graph))
    weight[here, :, here] = 1.0
    codes = np.stack([_sum_of_codes(names, size) for names in content.names])
    views = weight @ codes
    if content.height is not None:
        views += _geometry(cosine, distance, content.is_visible, content.height) @ np.stack(
            [_code(f"geometry {name}", size) for name in ("count", "mean", "least", "height")]
        )
    own_codes = np.stack([_code(f"viewpoint {graph.name} {name}", size) for name in graph.viewpoints])
    views += _VIEWPOINT_WEIGHT * own_codes[:, None]
    views += _NOISE_WEIGHT * _generator(f"noise {graph.name}").standard_normal(views.shape)
    return views / np.sqrt((views**2).mean(2, keepdims=True))


def _view_directions() -> np.ndarray:
    """Unit vectors along the 36 views, float64, (36, 3)."""
    heading, elevation = np.arange(NUM_VIEWS) % COLUMNS * VIEW_STEP, (np.arange(NUM_VIEWS) // COLUMNS - 1) * VIEW_STEP
    return np.stack([np.sin(heading) * np.cos(elevation), np.cos(heading) * np.cos(elevation), np.sin(elevation)], 1)


def _geometry(cosine: np.ndarray, distance: np.ndarray, is_visible: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Geometry channels of each view, divided by 5.

    Args:
        cosine: float64, (V, 36, V); of the angle between a view's direction and that to a viewpoint.
        distance: float64, (V, V); m.
        is_visible: bool, (V, V).
        height: float64, (V,); of the camera above the floor, m.

    Returns:
        float64, (V, 36, 4); number of viewpoints in the view, their mean and smallest distance (m), height of the
        camera (m).
    """
    is_in_view = (cosine > np.cos(HALF_HFOV)) & is_visible[:, None]
    count = is_in_view.sum(2)
    distances = np.broadcast_to(distance[:, None], cosine.shape)
    mean = np.where(is_in_view, distances, 0.0).sum(2) / np.maximum(count, 1)
    least = np.where(count > 0, np.where(is_in_view, distances, np.inf).min(2), 0.0)
    camera_height = np.broadcast_to(height[:, None], count.shape)
    return np.stack([count, mean, least, camera_height], 2) / _GEOMETRY_SCALE


def name_codes(names: Sequence[str], size: int) -> np.ndarray:
    """Codes of names of objects, the same in all houses; float64, (K, D)."""
    return np.stack([_code(f"name {name}", size) for name in names])


def _sum_of_codes(names: Sequence[str], size: int) -> np.ndarray:
    return sum((_code(f"name {name}", size) for name in names), np.zeros(size))


@lru_cache(maxsize=4096)
def _code(name: str, size: int) -> np.ndarray:
    return _generator(name).standard_normal(size)


def _generator(name: str) -> np.random.Generator:
    key = hashlib.sha256(f"memenvs vln {_VERSION} {name}".encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key[:16], "little")))
