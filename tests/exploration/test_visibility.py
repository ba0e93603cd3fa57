"""Poses from which classes are detected, against slow references."""

import math

import numpy as np
import pytest

from memenvs.exploration.nyu40 import NYU40_INDEX
from memenvs.exploration.task_home import TaskHome
from memenvs.exploration.visibility import VisibilityScanner
from tests.exploration.toy_world import ToyWorld

SOFA, BED, TABLE = (NYU40_INDEX[name] for name in ("sofa", "bed", "table"))


def angle_between(left: float, right: float) -> float:
    return abs(math.remainder(left - right, 2 * math.pi))


def prepare(world: ToyWorld) -> TaskHome:
    return TaskHome.of(0, world.home(0))


def is_detected(scanner: VisibilityScanner, home: TaskHome, x: float, y: float, heading: float, label: int) -> bool:
    path = np.array([[x, y, heading]] * 2)
    return scanner.first_detections(home, path, np.array([label], np.uint8)).tolist() == [1]


def grid(home: TaskHome, stride: int) -> list[int]:
    """Cells of the largest island on every `stride`-th row and column."""
    rows, columns = home.navmap.shape
    island = home.navmap.island
    return [i * columns + j for i in range(0, rows, stride) for j in range(0, columns, stride) if island[i, j] == 0]


def reference_view_poses(scanner, home, label, centres) -> list[tuple[int, tuple[float, float]]]:
    """View poses that face the middle of an object."""
    view_poses = []
    for x, y in centres:
        for cell in grid(home, 6):
            here = home.navmap.points(np.array([cell]))[0]
            if not 0.4 < math.dist(here, (x, y)) < 1.8 or home.costs[cell] > 4:
                continue
            heading = math.atan2(y - here[1], x - here[0])
            if all(is_detected(scanner, home, *here, heading + offset, label) for offset in (0.0, 0.35, -0.35)):
                view_poses.append((cell, (x, y)))
    return view_poses


def test_view_poses_face_the_objects():
    """Two sofas, of which one stands in a corner."""
    boxes = (("sofa", (3.0, 1.6, 0.4), (0.4, 0.4, 0.4)), ("sofa", (0.5, 2.6, 0.4), (0.4, 0.4, 0.4)))
    home, scanner = prepare(ToyWorld((5.0, 3.1), boxes)), VisibilityScanner()
    views = scanner.view_poses(home, SOFA)
    expected = reference_view_poses(scanner, home, SOFA, [(3.0, 1.6), (0.5, 2.6)])
    assert len(expected) > 10
    assert views.cells.tolist() == [cell for cell, _ in expected]
    assert views.targets == pytest.approx(np.array([target for _, target in expected]), abs=1e-6)
    assert scanner.can_be_found(home, SOFA) and not scanner.can_be_found(home, BED)
    assert len(scanner.view_poses(home, BED).cells) == 0


@pytest.mark.slow
def test_where_none_is_found_all_poses_are_tried():
    """A sofa behind a cupboard: what faces its middle sees the cupboard alone."""
    boxes = (("sofa", (1.5, 2.4, 0.3), (1.3, 0.2, 0.3)), ("wardrobe", (1.5, 1.7, 1.0), (0.8, 0.4, 1.0)))
    home, scanner = prepare(ToyWorld((3.4, 3.2), boxes)), VisibilityScanner()
    assert not reference_view_poses(scanner, home, SOFA, [(1.5, 2.4)])
    around = [math.remainder(2 * math.pi / 16 * k, 2 * math.pi) for k in range(16)]
    best: dict[int, list[tuple[int, float]]] = {}
    for cell in grid(home, 2):
        here = home.navmap.points(np.array([cell]))[0]
        to_middle = math.atan2(2.4 - here[1], 1.5 - here[0])
        seen = [h for h in (to_middle, *around) if is_detected(scanner, home, *here, h, SOFA)]
        for heading in seen:
            beside = sum(angle_between(heading, other) < 1.01 * 2 * math.pi / 16 for other in seen)
            best.setdefault(cell, []).append((beside, heading))
    widest = {cell: max(beside for beside, _ in headings) for cell, headings in best.items()}
    clear = {cell for cell in widest if home.costs[cell] <= 4} or set(widest)
    most = max(widest[cell] for cell in clear)
    expected = sorted(cell for cell in clear if 2 * widest[cell] >= most)
    views = scanner.view_poses(home, SOFA)
    assert len(expected) < len(widest) and len(expected) > 2
    assert views.cells.tolist() == expected
    for cell, target in zip(expected, views.targets, strict=True):
        x, y = target - home.navmap.points(np.array([cell]))[0]
        assert math.hypot(x, y) == pytest.approx(1.0)
        assert any(beside == widest[cell] and angle_between(math.atan2(y, x), h) < 1e-6 for beside, h in best[cell])
    assert scanner.can_be_found(home, SOFA)


def test_one_cell_is_too_few(monkeypatch):
    """A class that is detected from a single cell cannot be found."""
    home = prepare(ToyWorld((3.0, 2.0), (("sofa", (2.6, 1.0, 0.4), (0.3, 0.9, 0.4)),)))
    cells = grid(home, 6)
    for count in (0, 1, 2):
        scanner, chosen = VisibilityScanner(), home.navmap.points(np.array(cells[:count], int))

        def detects(position, heading, label, chosen=chosen):
            return any((position == point).all() for point in chosen)

        monkeypatch.setattr(scanner, "_is_detected", detects)
        assert scanner.can_be_found(home, SOFA) is (count == 2), count
        assert len(scanner.view_poses(home, SOFA).cells) == (count if count == 2 else 0)


def test_first_detections_and_the_object_that_was_detected():
    """Two sofas, 5 m apart, and a bed that is never near."""
    boxes = (
        ("sofa", (3.0, 1.0, 0.4), (0.3, 0.4, 0.4)),
        ("sofa", (8.0, 1.0, 0.4), (0.3, 0.4, 0.4)),
        ("bed", (8.0, 3.2, 0.3), (0.5, 0.5, 0.3)),
    )
    home, scanner = prepare(ToyWorld((9.0, 4.0), boxes)), VisibilityScanner()
    labels = np.array([BED, SOFA, TABLE], np.uint8)
    to_sofa = (1.6, 1.0, 0.0)  # its front is 1.1 m away
    path = np.array([to_sofa, (1.6, 1.0, math.pi), (0.5, 1.0, 0.0), to_sofa, to_sofa])
    assert scanner.first_detections(home, path, labels).tolist() == [-1, 3, -1]  # not at the start
    assert scanner.first_detections(home, path[:3], labels).tolist() == [-1, -1, -1]
    both = np.array([(0, 0, 0), (8.0, 1.9, math.pi / 2), to_sofa], float)
    assert scanner.first_detections(home, both, labels[:2]).tolist() == [1, 2]
    assert scanner.detected_object(home, np.array(to_sofa), SOFA) == 1
    assert scanner.detected_object(home, np.array([6.6, 1.0, 0.0]), SOFA) == 2
    assert scanner.detected_object(home, np.array([5.5, 1.0, math.pi]), SOFA) == 0  # 2.04 m away: none is near
