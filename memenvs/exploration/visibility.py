"""When a class counts as found in a picture, and from where that happens."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numba import njit

from memenvs.exploration.carmine import CAMERA_AHEAD, CAMERA_HEIGHT, IMAGE_SIZE, frame_camera
from memenvs.exploration.nyu40 import LABELS
from memenvs.exploration.planner import NEAR_COSTS
from memenvs.exploration.task_home import TaskHome
from memenvs.houses.rendering.renderer import Renderer
from memenvs.houses.simulator import head_camera_poses

SEARCH_RULES = ("near_pixels", "share_and_nearest", "share_and_mean")
#: A class is found with more than this share of the pixels, nearer than this, m.
LEAST_SHARE, MOST_DEPTH = 0.04, 2.0
#: ViewPoses are tried on every sixth cell of the map, so near to a thing (m), looking at it and so much past it on both sides (rad).
_STRIDE, _NEAREST, _FARTHEST, _PAST = 6, 0.4, 1.8, 0.35
#: ViewPoses of so many labels in homes are kept.
_KEPT = 2048


def find_labels(
    semantic: np.ndarray, depth: np.ndarray, rows: np.ndarray, labels: np.ndarray, rule: str, found: np.ndarray
) -> None:
    """Which labels count as found in pictures.

    Args:
        semantic: uint8, (N, H, W); labels of NYU40.
        depth: float32, (N, H, W, 1); true depth, m.
        rows: int64, (R,); the pictures to look at.
        labels: uint8, (K,); what is looked for, none of them 0.
        rule: One of `SEARCH_RULES`; see `memenvs.exploration.config.SearchConfig`.
        found: bool, (N, K); written in those rows.

    Source:
        SMT, section 4: more than 4 % of the pixels, with depths below 2 m.
    """
    pixels = semantic[0].size
    semantic, depth = semantic.reshape(-1, pixels), depth.reshape(-1, pixels)
    _find_labels(semantic, depth, rows, labels, LEAST_SHARE * pixels, SEARCH_RULES.index(rule), found)


@njit(nogil=True, cache=True)
def _find_labels(
    semantic: np.ndarray,
    depth: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    least: float,
    rule: int,
    found: np.ndarray,
) -> None:
    near = np.zeros(semantic.shape[1], np.uint8)
    for i in rows:
        picture, far = semantic[i], depth[i]
        for k in range(len(near)):
            near[k] = picture[k] if far[k] < np.float32(MOST_DEPTH) else np.uint8(0)
        for t in range(len(labels)):
            count_near = _count(near, labels[t])
            if rule == 0:
                found[i, t] = count_near > least
                continue
            count = _count(picture, labels[t])
            if rule == 1:
                found[i, t] = count > least and count_near > 0
            else:
                found[i, t] = count > least and _sum_of(picture, labels[t], far) < MOST_DEPTH * count


@njit(nogil=True, cache=True)
def _count(picture: np.ndarray, label: np.uint8) -> int:
    """How many pixels have a label; written so that the compiler compares many at a time."""
    count = np.int32(0)
    for k in range(len(picture)):
        count += np.int32(picture[k] == label)
    return int(count)


@njit(nogil=True, cache=True)
def _sum_of(picture: np.ndarray, label: np.uint8, depth: np.ndarray) -> float:
    total = 0.0
    for k in range(len(picture)):
        if picture[k] == label:
            total += depth[k]
    return total


@dataclass(frozen=True, eq=False)
class ViewPoses:
    """Where a robot finds things of one label.

    Attributes:
        cells: int64, (V,); flat indices of cells of the map.
        things: float64, (V, 2); middle of the thing to look at from there, m.
    """

    cells: np.ndarray
    things: np.ndarray


class VisibilityScanner:
    """Tries out from where classes are found, by drawing.

    Args:
        rule: One of `SEARCH_RULES`.
    """

    def __init__(self, rule: str) -> None:
        self._rule = rule
        self._renderer = Renderer(frame_camera(IMAGE_SIZE), 1)
        self._semantic = np.zeros((1, *IMAGE_SIZE), np.uint8)
        self._depth = np.zeros((1, *IMAGE_SIZE, 1), np.float32)
        self._instance = np.zeros((1, *IMAGE_SIZE), np.uint16)
        self._stands: OrderedDict[tuple[int, int], ViewPoses] = OrderedDict()

    def stands(self, home: TaskHome, label: int) -> ViewPoses:
        """From where a label is found, if the robot looks at its thing within some degrees; no stands if it is not anywhere."""
        key = home.number, label
        if key not in self._stands:
            self._stands[key] = self._try_out(home, label)
            if len(self._stands) > _KEPT:
                self._stands.popitem(last=False)
        return self._stands[key]

    def first_found(self, home: TaskHome, way: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """When a robot finds labels on its way.

        Args:
            home: The home.
            way: float, (T, 3); x, y (m) and heading (rad) from the start on, which itself finds nothing.
            labels: uint8, (K,).

        Returns:
            int64, (K,); rows of `way`, -1 for what is not found.
        """
        self._renderer.set_scene(0, home.scene)
        steps, found = np.full(len(labels), -1), np.zeros((1, len(labels)), bool)
        for step in range(1, len(way)):
            self._find(way[step, :2], way[step, 2], labels, found)
            steps[found[0] & (steps < 0)] = step
            if (steps >= 0).all():
                break
        return steps

    def thing_found(self, home: TaskHome, pose: np.ndarray, label: int) -> int:
        """Index into `House.instances` of the thing that shows most near pixels of a label from a pose, float (3,): x, y (m), heading (rad)."""
        self._renderer.set_scene(0, home.scene)
        self._look(pose[:2], pose[2])
        is_near = (self._semantic == label) & (self._depth[..., 0] < MOST_DEPTH)
        return int(np.bincount(self._instance[is_near], minlength=1).argmax())

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_stands": OrderedDict()}  # soon tried out again

    def _try_out(self, home: TaskHome, label: int) -> ViewPoses:
        self._renderer.set_scene(0, home.scene)
        shapes, navmap = home.house.shapes, home.navmap
        is_one = LABELS[shapes.semantic] == label
        cells, things = [], []
        for instance in np.unique(shapes.instance[is_one]):
            parts = shapes.centre[is_one & (shapes.instance == instance), :2].astype(np.float64)
            thing = (parts.min(0) + parts.max(0)) / 2
            for cell in _around(home, thing):
                if self._sees(navmap.points(np.array([cell]))[0], thing, label):
                    cells.append(cell)
                    things.append(thing)
        return ViewPoses(np.array(cells, np.int64), np.array(things, np.float64).reshape(-1, 2))

    def _sees(self, position: np.ndarray, thing: np.ndarray, label: int) -> bool:
        """Whether a label is found from a position by looking at a thing, and somewhat past it to either side."""
        heading = np.arctan2(*(thing - position)[::-1])
        found, labels = np.zeros((1, 1), bool), np.array([label], np.uint8)
        for past in (0.0, _PAST, -_PAST):
            self._find(position, heading + past, labels, found)
            if not found.item():
                return False
        return True

    def _find(self, position: np.ndarray, heading: float, labels: np.ndarray, found: np.ndarray) -> None:
        """Writes which labels (K,) are found from a pose into `found`, bool, (1, K)."""
        self._look(position, heading)
        find_labels(self._semantic, self._depth, np.zeros(1, np.int64), labels, self._rule, found)

    def _look(self, position: np.ndarray, heading: float) -> None:
        """Draws what is seen from a pose."""
        eye = head_camera_poses(
            np.asarray(position, np.float64)[None], np.array([heading]), np.zeros(1), ahead=CAMERA_AHEAD, height=CAMERA_HEIGHT
        )  # fmt: skip
        self._renderer.render(eye, semantic=self._semantic, depth=self._depth, instance=self._instance)


def _around(home: TaskHome, thing: np.ndarray) -> np.ndarray:
    """Cells of the map around a thing, int64, on a grid, those on the largest island that keep clear of obstacles."""
    i, j = np.divmod(np.arange(home.navmap.free.size), home.navmap.shape[1])
    on_grid = (i % _STRIDE == 0) & (j % _STRIDE == 0)
    cells = np.flatnonzero(on_grid & (home.navmap.island.ravel() == 0) & (home.costs <= NEAR_COSTS[-1]))
    distance = np.hypot(*(home.navmap.points(cells) - thing).T)
    return cells[(distance > _NEAREST) & (distance < _FARTHEST)]
