"""Detection of classes in images, and the poses from which a class is detected."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from memenvs.caches import RecentlyUsed
from memenvs.exploration.carmine import CAMERA_AHEAD, CAMERA_HEIGHT, HFOV_DEG, IMAGE_SIZE, frame_camera
from memenvs.exploration.nyu40 import LABELS
from memenvs.exploration.planner import CLEARANCE_COSTS
from memenvs.exploration.task_home import TaskHome
from memenvs.houses.rendering.interface import HomeRenderer, MakeRenderer
from memenvs.houses.rendering.renderer import Renderer
from memenvs.houses.rendering.scene import Scene
from memenvs.houses.simulator import head_camera_poses
from memenvs.poses import wrap_angle

#: A class is detected on more than this share of the pixels.
MIN_PIXEL_SHARE = 0.04
#: The pixels must be nearer than this, m.
MAX_DEPTH = 2.0
#: View poses are tried on every sixth row and column of the map.
_STRIDE = 6
#: Smallest and largest distance of a view pose from the object, m.
_MIN_DISTANCE = 0.4
_MAX_DISTANCE = 1.8
#: Cells of at most this cost are clear of obstacles: at least three cells away from them.
_CLEAR_COST = CLEARANCE_COSTS[-1]
#: The class must also be detected from headings this far to the left and right of the object, rad.
_HEADING_MARGIN = 0.35
#: Where that finds none, all poses are tried on every second row and column, with this number of headings. Nothing is
#: detected from further away than the reach, m: the corners of an image are 1.22 times as far as their depth.
_FINE_STRIDE = 2
_NUM_HEADINGS = 16
_REACH = 1.22 * MAX_DEPTH + CAMERA_AHEAD
#: Half the horizontal field of view, rad; seen from the robot's axis, which is behind the camera, it is less.
_HALF_VIEW = math.radians(HFOV_DEG / 2)
#: What is detected from fewer cells cannot be found: a robot whose wheels slip does not come to a single pose.
_MIN_CELLS = 2
#: Number of pairs of home and label whose view poses are kept.
_CACHE_SIZE = 2048


def detect_labels(
    semantic: np.ndarray, depth: np.ndarray, rows: np.ndarray, labels: np.ndarray, detected: np.ndarray
) -> None:
    """Detect labels in images.

    Args:
        semantic: uint8, (N, H, W); labels of NYU40.
        depth: float32, (N, H, W, 1); true depth, m.
        rows: int64, (R,); indices of the images to search.
        labels: uint8, (K,); labels to detect, none of them 0.
        detected: bool, (N, K); written for those images.

    Source:
        SMT, section 4: more than 4 % of the pixels, with depths below 2 m.
    """
    pixels = semantic[0].size
    semantic, depth = semantic.reshape(-1, pixels), depth.reshape(-1, pixels)
    _detect_labels(semantic, depth, rows, labels, MIN_PIXEL_SHARE * pixels, detected)


@njit(nogil=True, cache=True)
def _detect_labels(
    semantic: np.ndarray,
    depth: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    min_pixels: float,
    detected: np.ndarray,
) -> None:
    """See `detect_labels`; images are flat."""
    near = np.zeros(semantic.shape[1], np.uint8)  # the image with label 0 wherever it is too far away
    for i in rows:
        image, image_depth = semantic[i], depth[i]
        for k in range(len(near)):
            near[k] = image[k] if image_depth[k] < np.float32(MAX_DEPTH) else np.uint8(0)
        for t in range(len(labels)):
            detected[i, t] = _count_label(near, labels[t]) > min_pixels


@njit(nogil=True, cache=True)
def _count_label(image: np.ndarray, label: np.uint8) -> int:
    """Count the pixels with a label; the loop has a form that the compiler vectorises."""
    count = np.int32(0)
    for k in range(len(image)):
        count += np.int32(image[k] == label)
    return int(count)


@dataclass(frozen=True, eq=False)
class ViewPoses:
    """Positions from which a robot detects one label, and the points that it must face.

    Attributes:
        cells: int64, (V,); flat indices of cells of the navigation map.
        targets: float64, (V, 2); point to face from there, mostly the middle of an object, m.
    """

    cells: np.ndarray
    targets: np.ndarray


class VisibilityScanner:
    """Finds the poses from which labels are detected, by rendering.

    It takes thousands of images, so our own renderer draws them wherever it can.

    Args:
        make_renderer: Makes the renderer of the homes' world, for homes that ours cannot draw.
    """

    def __init__(self, make_renderer: MakeRenderer = Renderer) -> None:
        self._make_renderer = make_renderer
        self._renderer: HomeRenderer = Renderer(frame_camera(IMAGE_SIZE), 1)
        self._semantic = np.zeros((1, *IMAGE_SIZE), np.uint8)
        self._depth = np.zeros((1, *IMAGE_SIZE, 1), np.float32)
        self._instance = np.zeros((1, *IMAGE_SIZE), np.uint16)
        self._view_poses: RecentlyUsed[tuple[int, int], ViewPoses] = RecentlyUsed(_CACHE_SIZE)
        self._can_be_found: dict[tuple[int, int], bool] = {}

    def can_be_found(self, home: TaskHome, label: int) -> bool:
        """Find out whether a label is detected from two cells of the floor at least."""
        key = home.number, label
        if key not in self._can_be_found:
            self._can_be_found[key] = bool(home.has_label[label]) and (
                self._is_detected_facing_it(home, label) or len(self.view_poses(home, label).cells) > 0
            )
        return self._can_be_found[key]

    def view_poses(self, home: TaskHome, label: int) -> ViewPoses:
        """Find the view poses of a label in a home.

        From each position the label is detected even if the heading is somewhat off. If fewer than two are found, the
        positions with the most headings from which it is detected take their place. There are none if it cannot be
        found.
        """
        return self._view_poses.get((home.number, label), lambda: self._find_view_poses(home, label))

    def first_detections(self, home: TaskHome, path: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Find the step of a path at which each label is first detected.

        Args:
            home: The home.
            path: float, (T, 3); x, y (m) and heading (rad), from the start on. Nothing is detected at the start itself.
            labels: uint8, (K,).

        Returns:
            int64, (K,); rows of `path`, -1 for labels that are never detected.
        """
        self._enter(home)
        steps = np.full(len(labels), -1)
        detected = np.zeros((1, len(labels)), bool)
        for step in range(1, len(path)):
            self._detect(path[step, :2], path[step, 2], labels, detected)
            steps[detected[0] & (steps < 0)] = step
            if (steps >= 0).all():
                break
        return steps

    def detected_object(self, home: TaskHome, pose: np.ndarray, label: int) -> int:
        """Find the object with the most near pixels of a label.

        Args:
            home: The home.
            pose: float, (3,); x, y (m) and heading (rad) of the robot.
            label: Label of NYU40.

        Returns:
            Index into `House.instances`.
        """
        self._enter(home)
        self._render(pose[:2], pose[2])
        is_near = (self._semantic == label) & (self._depth[..., 0] < MAX_DEPTH)
        return int(np.bincount(self._instance[is_near], minlength=1).argmax())

    def _enter(self, home: TaskHome) -> None:
        """Draw this home from now on."""
        scene = home.own_scene
        make = Renderer if isinstance(scene, Scene) else self._make_renderer
        if isinstance(self._renderer, Renderer) != isinstance(scene, Scene):
            self._renderer = make(frame_camera(IMAGE_SIZE), 1)
        self._renderer.set_scene(0, scene)

    def _find_view_poses(self, home: TaskHome, label: int) -> ViewPoses:
        self._enter(home)
        cells, targets = [], []
        for target, _ in _objects(home, label):
            for cell in _cells_around(home, target):
                position = home.navmap.points(np.array([cell]))[0]
                if all(
                    self._is_detected(position, _heading_to(position, target) + offset, label)
                    for offset in (0.0, _HEADING_MARGIN, -_HEADING_MARGIN)
                ):
                    cells.append(cell)
                    targets.append(target)
        if len(set(cells)) < _MIN_CELLS:
            return self._search_all_poses(home, label)
        return ViewPoses(np.array(cells, np.int64), np.array(targets, np.float64).reshape(-1, 2))

    def _is_detected_facing_it(self, home: TaskHome, label: int) -> bool:
        """True if a label is detected from two of the coarse cells; those at a middle distance are tried first."""
        self._enter(home)
        cells: set[int] = set()
        for target, _ in _objects(home, label):
            around = _cells_around(home, target)
            distances = np.hypot(*(home.navmap.points(around) - target).T)
            for cell in around[np.argsort(np.abs(distances - (_MIN_DISTANCE + _MAX_DISTANCE) / 2), kind="stable")]:
                position = home.navmap.points(np.array([cell]))[0]
                if self._is_detected(position, _heading_to(position, target), label):
                    cells.add(int(cell))
                    if len(cells) >= _MIN_CELLS:
                        return True
        return False

    def _search_all_poses(self, home: TaskHome, label: int) -> ViewPoses:
        """Find the poses from which a label is detected that is hard to see.

        Cells clear of obstacles are preferred: where there are any, the others are left out. Cells with less than half
        as many headings from which the label is detected as the best cell are left out too.
        """
        objects = _objects(home, label)
        spacing = 2 * math.pi / _NUM_HEADINGS
        i, j = np.divmod(np.arange(home.navmap.free.size), home.navmap.shape[1])
        on_grid = (i % _FINE_STRIDE == 0) & (j % _FINE_STRIDE == 0)
        cells, headings, widths = [], [], []
        for cell in np.flatnonzero(on_grid & (home.navmap.island.ravel() == 0)):
            position = home.navmap.points(np.array([cell]))[0]
            tried = _headings_to(position, objects)
            detected = np.array([h for h in tried if self._is_detected(position, h, label)])
            if len(detected):
                # The best heading is the one with the most others within one step of `spacing`.
                nearby = (np.abs(wrap_angle(detected[:, None] - detected)) < 1.01 * spacing).sum(1)
                cells.append(cell)
                headings.append(detected[nearby.argmax()])
                widths.append(nearby.max())
        candidates = np.array(cells if len(cells) >= _MIN_CELLS else [], np.int64)
        is_clear = home.costs[candidates] <= _CLEAR_COST
        kept = np.flatnonzero(is_clear if is_clear.any() else np.ones(len(candidates), bool))
        width = np.array(widths)[kept]
        kept = kept[2 * width >= width.max(initial=0)]
        ahead = np.array(headings)[kept]
        kept_cells = candidates[kept]
        return ViewPoses(kept_cells, home.navmap.points(kept_cells) + np.stack([np.cos(ahead), np.sin(ahead)], 1))

    def _is_detected(self, position: np.ndarray, heading: float, label: int) -> bool:
        """True if a label is detected from a pose."""
        detected = np.zeros((1, 1), bool)
        self._detect(position, heading, np.array([label], np.uint8), detected)
        return bool(detected.item())

    def _detect(self, position: np.ndarray, heading: float, labels: np.ndarray, detected: np.ndarray) -> None:
        """Detect labels (K,) from a pose; writes `detected`, bool (1, K)."""
        self._render(position, heading)
        detect_labels(self._semantic, self._depth, np.zeros(1, np.int64), labels, detected)

    def _render(self, position: np.ndarray, heading: float) -> None:
        """Render the view from a pose into the images of this object."""
        poses = head_camera_poses(
            np.asarray(position, np.float64)[None],
            np.array([heading]),
            np.zeros(1),
            ahead=CAMERA_AHEAD,
            height=CAMERA_HEIGHT,
        )
        self._renderer.render(poses, semantic=self._semantic, depth=self._depth, instance=self._instance)


def _objects(home: TaskHome, label: int) -> list[tuple[np.ndarray, float]]:
    """Middle (x, y) of each object with a label and radius of the circle around it, m."""
    shapes = home.house.shapes
    has_label = LABELS[shapes.semantic] == label
    objects = []
    for instance in np.unique(shapes.instance[has_label]):
        parts = shapes.take(has_label & (shapes.instance == instance))
        centres = parts.centre[:, :2].astype(np.float64)
        middle = (centres.min(0) + centres.max(0)) / 2
        radius = np.hypot(*(centres - middle).T) + np.hypot(parts.half[:, 0], parts.half[:, 1])
        objects.append((middle, float(radius.max())))
    return objects


def _heading_to(position: np.ndarray, target: np.ndarray) -> float:
    return float(np.arctan2(*(target - position)[::-1]))


def _headings_to(position: np.ndarray, objects: list[tuple[np.ndarray, float]]) -> list[float]:
    """Headings at a position with which an object within reach may be in the image: its middle, and a fixed set."""
    headings: list[float] = []
    around = wrap_angle(2 * math.pi / _NUM_HEADINGS * np.arange(_NUM_HEADINGS))
    may_show = np.zeros(_NUM_HEADINGS, bool)
    for middle, radius in objects:
        distance = float(np.hypot(*(middle - position)))
        if distance - radius < _REACH:
            headings.append(_heading_to(position, middle))
            half_angle = math.pi if distance <= radius else math.asin(radius / distance) + _HALF_VIEW
            may_show |= np.abs(wrap_angle(around - headings[-1])) < half_angle
    return headings + around[may_show].tolist()


def _cells_around(home: TaskHome, target: np.ndarray) -> np.ndarray:
    """Cells around a point, flat indices: on a coarse grid, on the largest island, and clear of obstacles."""
    coarse = (slice(None, None, _STRIDE),) * 2
    shape = home.navmap.shape
    i, j = np.nonzero((home.navmap.island[coarse] == 0) & (home.costs.reshape(shape)[coarse] <= _CLEAR_COST))
    cells = (i * shape[1] + j) * _STRIDE
    distance = np.hypot(*(home.navmap.points(cells) - target).T)
    return cells[(distance > _MIN_DISTANCE) & (distance < _MAX_DISTANCE)]
