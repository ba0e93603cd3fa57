"""Layouts of ExtObjNav: a home with objects, and distances to where these are visible."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.house import House, PlacedObject
from memenvs.houses.rendering.interface import HomeScene
from memenvs.houses.simulator import PixelCounter, head_camera_poses
from memenvs.houses.worlds import Home, HouseWorld
from memenvs.houses.ycb import check_two_receptacles
from memenvs.objectnav.robot import START_TILT_DEG, pitch_of, tilt

#: Success test: an object is visible with at least this number of pixels in the 256 x 256 image.
MIN_PIXELS = 10
#: A category with this number of objects or more is never a goal.
MAX_OBJECTS = 10
#: Attempts to furnish a home until something in it can be a goal.
MAX_ATTEMPTS = 20
#: Number of directions around an object in which the success test is tried, one viewpoint in each.
NUM_DIRECTIONS = 6
#: Preferred distance of these viewpoints from the object, m.
VIEW_DISTANCE = 1.0
#: Different goals in a layout after which the distance fields of all its goals are computed in the background.
PREFETCH_AFTER = 3


class Layout:
    """A home with small objects in it that stay in place.

    Args:
        number: Number of the layout, which decides home and objects.
        home_index: Number of the home in its world.
        home: The home without the objects.
        house: The house with the objects.
        objects: The M objects.
        viewpoints: For each object, int64 (V,), V >= 1: flat indices of the cells from which it is visible.
        view_cells: int64, (M,); for each object, the one of its viewpoints from which it passed the success test.

    Attributes:
        number, home_index, home, house, objects: As given.
        navmap: Map for navigation.
        scene: The house prepared for rendering.
        category: int64, (M,); index into `YCB_CLASSES`.
        position: float64, (M, 3); centre of each object's bounding box, m.
        instance: int64, (M,); instance id in images.
        viewpoints, view_cells: As given.
        goals: int64, (G,), G >= 1; categories that can be goals, ascending.
        targets: Goal category -> positions of its objects, float64 (MAX_OBJECTS, 3), m, and their instance ids, int64
            (MAX_OBJECTS,). Rows beyond the number of objects are inf and -1.
    """

    def __init__(
        self,
        number: int,
        home_index: int,
        home: Home,
        house: House,
        objects: tuple[PlacedObject, ...],
        viewpoints: tuple[np.ndarray, ...],
        view_cells: np.ndarray,
    ) -> None:
        self.number = number
        self.home_index = home_index
        self.home = home
        self.objects = objects
        self.house = house
        self.navmap = home.navmap
        self.scene = home.make_scene(house)
        self.category = np.array([placed.category for placed in objects], np.int64)
        self.position = np.array([placed.position for placed in objects], np.float64).reshape(-1, 3)
        self.instance = np.array([placed.instance for placed in objects], np.int64)
        self.viewpoints = viewpoints
        self.goals = goal_categories(self.category)
        self.targets = {int(goal): self._targets(goal) for goal in self.goals}
        self.view_cells = view_cells
        # Distance fields are computed when first needed.
        self._fields: dict[int, np.ndarray] = {}
        self._goal_points: dict[int, np.ndarray] = {}
        self._view_cell_fields: dict[int, np.ndarray] = {}
        self._is_prefetched = False

    def objects_of(self, category: int) -> np.ndarray:
        """Indices of the objects of a category, int64."""
        return np.flatnonzero(self.category == category)

    def distance_field(self, category: int) -> np.ndarray:
        """Return the distance field of a category: m to its nearest viewpoint, float32 (H * W,)."""
        if category not in self._fields:
            cells = np.unique(np.concatenate([self.viewpoints[k] for k in self.objects_of(category)]))
            self._fields[category] = self.navmap.distance_field(cells)
        return self._fields[category]

    def goal_points(self, category: int) -> np.ndarray:
        """Return the points where the distance field of a category is 0; float64, (G, 2), m."""
        if category not in self._goal_points:
            self._goal_points[category] = self.navmap.goal_points(self.distance_field(category))
        return self._goal_points[category]

    def should_prefetch(self) -> bool:
        """Return True once: at the first call after `PREFETCH_AFTER` different goals."""
        is_due = not self._is_prefetched and len(self._fields) >= PREFETCH_AFTER
        self._is_prefetched |= is_due
        return is_due

    def compute_fields(self) -> None:
        """Compute and store the distance fields of all goals; may run in another thread."""
        for category in self.goals.tolist():
            self.distance_field(category)

    def view_cell_distance_field(self, k: int) -> np.ndarray:
        """Return the distance field of the view cell of object `k`, float32 (H * W,), m."""
        if k not in self._view_cell_fields:
            self._view_cell_fields[k] = self.navmap.distance_field(self.view_cells[k : k + 1])
        return self._view_cell_fields[k]

    def __getstate__(self) -> dict[str, object]:
        # Fields are large, and computed again when needed.
        return {**self.__dict__, "_fields": {}, "_view_cell_fields": {}, "_is_prefetched": False}

    def _targets(self, category: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions and instance ids of the objects of a category, padded to `MAX_OBJECTS` rows."""
        indices = self.objects_of(category)
        positions = np.full((MAX_OBJECTS, 3), np.inf)
        instances = np.full(MAX_OBJECTS, -1, np.int64)
        positions[: len(indices)] = self.position[indices]
        instances[: len(indices)] = self.instance[indices]
        return positions, instances


def goal_categories(category: np.ndarray) -> np.ndarray:
    """Find the categories that can be goals: present, but fewer than `MAX_OBJECTS` times.

    Args:
        category: int64, (M,); category of each object.

    Returns:
        int64, (G,); ascending.
    """
    counts = np.bincount(category, minlength=len(YCB_CLASSES))
    return np.flatnonzero((counts > 0) & (counts < MAX_OBJECTS))


def make_layout(
    world: HouseWorld,
    number: int,
    *,
    count_range: tuple[int, int],
    categories: tuple[int, ...],
    counter: PixelCounter,
    home_index: int | None = None,
    moves: float = 0.0,
) -> Layout:
    """Place objects in a home, and keep those that are visible.

    Placement is repeated until at least one category can be a goal.

    Args:
        world: The homes.
        number: Number of the layout, >= 0; seeds the placement.
        count_range: Fewest and most objects before invisible ones are removed.
        categories: Categories to place, indices into `YCB_CLASSES`.
        counter: Counts the pixels of objects, for the success test.
        home_index: Number of the home in its world; None for `number` modulo the number of homes.
        moves: Probability with which its objects will move; see `move_objects`.

    Raises:
        ValueError: The home cannot be made or has no receptacles, or a single one for objects that move, or in no
            attempt a category can be a goal.

    Source:
        ReLIC, building a layout: 30 to 40 objects on random surfaces; an object stays if a robot in front of it passes
        the success test.
    """
    home_index = number % len(world) if home_index is None else home_index
    home = world.home(home_index)
    check_two_receptacles(home.house, moves)
    for house, placed in _placements(world, home, number, count_range, categories):
        viewpoints = [home.find_viewpoints(house, item) for item in placed]
        view_cells = _find_view_cells(home, home.make_scene(house), placed, viewpoints, counter)
        visible = np.flatnonzero(view_cells >= 0)
        objects = tuple(placed[k] for k in visible)
        if len(goal_categories(np.array([item.category for item in objects], np.int64))):
            removed = np.array([placed[k].instance for k in np.flatnonzero(view_cells < 0)], np.int64)
            house = house.without(removed)
            visible_from = tuple(viewpoints[k] for k in visible)
            return Layout(number, home_index, home, house, objects, visible_from, view_cells[visible])
    raise ValueError(
        f"no category can be a goal in house {home.house.name!r}: in each of {MAX_ATTEMPTS} attempts all had no "
        f"visible object or at least {MAX_OBJECTS}; if there are too many, lower num_objects or add categories"
    )


def move_objects(
    layout: Layout, rng: np.random.Generator, *, world: HouseWorld, moves: float, counter: PixelCounter
) -> Layout:
    """Move objects of a layout to other receptacles of the home, each with a probability.

    As in a new layout, an object stands only where it passes the success test and lets those beside it pass. One for
    which no such place is drawn in `MAX_ATTEMPTS` attempts stays.

    Args:
        layout: The layout.
        rng: Generator of the trial.
        world: The homes.
        moves: Probability, 0 to 1.
        counter: As in `make_layout`.
    """
    home, house, objects = layout.home, layout.house, layout.objects
    viewpoints, view_cells = [*layout.viewpoints], layout.view_cells.copy()
    for k in np.flatnonzero(rng.random(len(objects)) < moves).tolist():
        for _ in range(MAX_ATTEMPTS):
            moved_house, moved = world.move_object(home.house, objects, k, rng)
            if moved[k].receptacle == objects[k].receptacle:
                continue
            beside = [j for j, item in enumerate(moved) if item.receptacle == moved[k].receptacle]  # and itself
            points = [home.find_viewpoints(moved_house, moved[j]) for j in beside]
            scene = home.make_scene(moved_house)
            cells = _find_view_cells(home, scene, tuple(moved[j] for j in beside), points, counter)
            if (cells >= 0).all():
                house, objects = moved_house, moved
                view_cells[beside] = cells
                for j, seen_from in zip(beside, points, strict=True):
                    viewpoints[j] = seen_from
                break
    if house is layout.house:
        return layout
    return Layout(layout.number, layout.home_index, home, house, objects, tuple(viewpoints), view_cells)


@dataclass(frozen=True)
class LayoutCheck:
    """Check of a home: some object placed in it, with its number as seed, is visible.

    It ends at the first such object, so that it takes less time than a layout. It does not find out whether there are
    too many objects of every category for one to be a goal; `make_layout` does.

    Attributes:
        count_range: As in `make_layout`.
        categories: As in `make_layout`.
        moves: As in `make_layout`.
    """

    count_range: tuple[int, int]
    categories: tuple[int, ...]
    moves: float = 0.0

    def __call__(self, world: HouseWorld, index: int) -> None:
        """Check home `index` of a world.

        Raises:
            ValueError: It has no receptacles, or too few for objects that move, or no visible object could be placed
                in it.
        """
        home, counter = world.home(index), PixelCounter(world.make_renderer)
        check_two_receptacles(home.house, self.moves)
        for house, placed in _placements(world, home, index, self.count_range, self.categories):
            scene = home.make_scene(house)
            for item in placed:
                cells = home.find_viewpoints(house, item)
                if _find_view_cells(home, scene, (item,), [cells], counter)[0] >= 0:
                    return
        raise ValueError(f"no visible object could be placed in house {home.house.name!r} in {MAX_ATTEMPTS} attempts")


def _placements(
    world: HouseWorld, home: Home, number: int, count_range: tuple[int, int], categories: tuple[int, ...]
) -> Iterator[tuple[House, tuple[PlacedObject, ...]]]:
    """Yield the attempts to place the objects of layout `number` in a home."""
    rng = np.random.default_rng(number)
    for _ in range(MAX_ATTEMPTS):
        yield world.place_objects(home.house, rng, count_range, categories)


def _find_view_cells(
    home: Home,
    scene: HomeScene,
    placed: tuple[PlacedObject, ...],
    viewpoints: list[np.ndarray],
    counter: PixelCounter,
) -> np.ndarray:
    """Find for each object a viewpoint that passes the success test, int64 (M,); -1 where none does."""
    view_cells = np.full(len(placed), -1, np.int64)
    candidates = [
        _candidate_cells(home, np.array(item.position), cells) for item, cells in zip(placed, viewpoints, strict=True)
    ]
    pitches = pitch_of(_tilt_states())
    # Each attempt tries the next candidate of all objects that have no view cell yet.
    for attempt in range(NUM_DIRECTIONS):
        remaining = [k for k in range(len(placed)) if view_cells[k] < 0 and attempt < len(candidates[k])]
        if not remaining:
            break
        cells = np.array([candidates[k][attempt] for k in remaining])
        targets = np.array([placed[k].position for k in remaining], np.float64)
        points = home.navmap.points(cells)
        ahead = targets[:, :2] - points
        headings = np.arctan2(ahead[:, 1], ahead[:, 0])
        poses = head_camera_poses(points, headings, np.zeros(len(points)))
        elevation = np.arctan2(targets[:, 2] - poses[:, 2], np.hypot(*(targets[:, :2] - poses[:, :2]).T))
        # Of the possible pitches take the one that points best at the object.
        poses[:, 4] = pitches[np.abs(pitches - elevation[:, None]).argmin(1)]
        pixels = counter.count(scene, poses, np.array([placed[k].instance for k in remaining]))
        for k, cell, count in zip(remaining, cells, pixels, strict=True):
            if count >= MIN_PIXELS:
                view_cells[k] = cell
    return view_cells


def _candidate_cells(home: Home, target: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Choose a viewpoint in each direction from an object, those with a distance near `VIEW_DISTANCE` first."""
    offsets = home.navmap.points(cells) - target[:2]
    errors = np.abs(np.hypot(offsets[:, 0], offsets[:, 1]) - VIEW_DISTANCE)
    sector = ((np.arctan2(offsets[:, 1], offsets[:, 0]) / (2 * math.pi) % 1.0) * NUM_DIRECTIONS).astype(np.int64)
    order = np.lexsort([cells, errors])  # by error; equal errors by cell number
    _, first = np.unique(sector[order], return_index=True)  # the best viewpoint of each sector
    return cells[order[np.sort(first)]]


def _tilt_states() -> np.ndarray:
    """All states of the tilt that an episode can reach by only tilting up or only down, float64, degrees.

    The ends of the range cut steps short, so tilting to and fro reaches more states. They lie between these, and the
    success test needs only one that shows the object.
    """
    states = [np.array([START_TILT_DEG])]
    for steps in (1, -1):
        state = states[0]
        while tilt(state, np.array([steps])) != state:
            state = tilt(state, np.array([steps]))
            states.append(state)
    return np.concatenate(states)
