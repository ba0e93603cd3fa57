"""Layouts of ExtObjNav: a home with small things in it, from where each can be seen, and how far it is to walk there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.house import House
from memenvs.houses.navigation.viewpoints import find_viewpoints
from memenvs.houses.rendering.scene import Scene
from memenvs.houses.simulator import PixelCounter, head_camera_poses
from memenvs.houses.worlds import Home, HouseWorld
from memenvs.houses.ycb import PlacedObject
from memenvs.objectnav.robot import pitch_of, start_tilt, tilt

#: Pixels of one thing in the 256 x 256 image that count as seeing it.
ENOUGH_PIXELS = 10
#: A category with so many things or more is never a goal.
TOO_MANY = 10
#: A home is furnished anew so often if nothing in it can be a goal.
TRIES = 20
#: The robot is tried around a thing in so many directions, at the viewpoint nearest to this distance, m.
DIRECTIONS, TRY_DISTANCE = 6, 1.0

#: From so many different goals on, a layout is taken to be in use for long.
FEW_FIELDS = 3


class Layout:
    """A home with small things in it that stay where they are.

    Args:
        number: Decides home and things.
        home_index: Number of the home in its world.
        home: The home without them.
        house: With them.
        objects: The things.
        viewpoints: For each thing, int64 (V,): flat indices of cells it is seen from, V >= 1.
        stands: int64, (M,); for each thing a cell from which the success test was met.

    Attributes:
        number, home_index, house: As given.
        navmap: Where one can go.
        scene: The house made ready for drawing.
        category: int64, (M,); index into `YCB_CLASSES`.
        position: float64, (M, 3); m.
        instance: int64, (M,); instance id in images.
        viewpoints: As given.
        goals: int64, (G,); categories that can be goals, rising; G >= 1.
        targets: For each of these, float64 (TOO_MANY, 3) places, m, and int64 (TOO_MANY,) instances of its things; the
            rest is infinitely far and -1.
    """

    def __init__(
        self,
        number: int,
        home_index: int,
        home: Home,
        house: House,
        objects: tuple[PlacedObject, ...],
        viewpoints: tuple[np.ndarray, ...],
        stands: np.ndarray,
    ) -> None:
        self.number, self.home_index, self.house = number, home_index, house
        self.navmap = home.navmap
        self.scene = Scene.from_house(house)
        self.category = np.array([thing.category for thing in objects], np.int64)
        self.position = np.array([thing.position for thing in objects], np.float64).reshape(-1, 3)
        self.instance = np.array([thing.instance for thing in objects], np.int64)
        self.viewpoints = viewpoints
        self.goals = goal_categories(self.category)
        self.targets = {int(goal): self._targets(goal) for goal in self.goals}
        self._stands = stands
        self._fields: dict[int, np.ndarray] = {}
        self._is_long = False
        self._stand_fields: dict[int, np.ndarray] = {}

    def things(self, category: int) -> np.ndarray:
        """Rows of the things of a category, int64."""
        return np.flatnonzero(self.category == category)

    def field(self, category: int) -> np.ndarray:
        """Walking distance from every cell to the nearest viewpoint of any thing of a category, float32, (H * W,), m."""
        if category not in self._fields:
            cells = np.unique(np.concatenate([self.viewpoints[k] for k in self.things(category)]))
            self._fields[category] = self.navmap.field(cells)
        return self._fields[category]

    def is_used_for_long(self) -> bool:
        """True once, when fields of `FEW_FIELDS` goals have been asked for: the others will be too."""
        is_first = not self._is_long and len(self._fields) >= FEW_FIELDS
        self._is_long |= is_first
        return is_first

    def make_fields(self) -> None:
        """Makes the fields of all goals; may run in another thread."""
        for category in self.goals.tolist():
            self.field(category)

    def stand_field(self, thing: int) -> np.ndarray:
        """Walking distance from every cell to one from which a thing is known to be seen well, float32, (H * W,), m."""
        if thing not in self._stand_fields:
            self._stand_fields[thing] = self.navmap.field(self._stands[thing : thing + 1])
        return self._stand_fields[thing]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_fields": {}, "_stand_fields": {}, "_is_long": False}  # large, and soon made again

    def _targets(self, category: int) -> tuple[np.ndarray, np.ndarray]:
        things = self.things(category)
        places, instances = np.full((TOO_MANY, 3), np.inf), np.full(TOO_MANY, -1, np.int64)
        places[: len(things)], instances[: len(things)] = self.position[things], self.instance[things]
        return places, instances


def goal_categories(category: np.ndarray) -> np.ndarray:
    """Categories that can be goals: present, but fewer than `TOO_MANY` times. int64, rising."""
    counts = np.bincount(category, minlength=len(YCB_CLASSES))
    return np.flatnonzero((counts > 0) & (counts < TOO_MANY))


def make_layout(
    world: HouseWorld,
    number: int,
    *,
    count_range: tuple[int, int],
    categories: tuple[int, ...],
    tilt_mode: str,
    counter: PixelCounter,
) -> Layout:
    """The layout of a number.

    Args:
        world: Homes; layout n is in home n modulo their number.
        number: Number of the layout, >= 0.
        count_range: Fewest and most things before those that cannot be seen are taken out.
        categories: Which kinds of things, indices into `YCB_CLASSES`.
        tilt_mode: How the camera tilts; see `memenvs.objectnav.robot`.
        counter: Draws the success test.

    Raises:
        RuntimeError: Nothing that can be seen could be placed in the home.

    Source:
        ReLIC, building a layout: 30 to 40 things on random surfaces; a thing stays if a robot placed in front of it passes the success test.
    """
    home_index = number % len(world)
    home = world.home(home_index)
    rng = np.random.default_rng(number)
    for _ in range(TRIES):
        house, placed = world.place_objects(home.house, rng, count_range, categories)
        seen = [
            find_viewpoints(home.navmap, house.shapes, np.array(thing.position), thing.instance) for thing in placed
        ]
        stands = _find_stands(home, house, placed, seen, tilt_mode, counter)
        kept = np.flatnonzero(stands >= 0)
        objects = tuple(placed[k] for k in kept)
        if len(goal_categories(np.array([thing.category for thing in objects], np.int64))):
            gone = np.array([placed[k].instance for k in np.flatnonzero(stands < 0)], np.int64)
            left = replace(house, shapes=house.shapes.take(~np.isin(house.shapes.instance, gone)))
            return Layout(number, home_index, home, left, objects, tuple(seen[k] for k in kept), stands[kept])
    raise RuntimeError(f"nothing that can be seen could be placed in house {home.house.name!r} in {TRIES} tries")


def _find_stands(
    home: Home,
    house: House,
    placed: tuple[PlacedObject, ...],
    viewpoints: list[np.ndarray],
    tilt_mode: str,
    counter: PixelCounter,
) -> np.ndarray:
    """For each thing a viewpoint from which facing it shows enough pixels, int64 (M,); -1 if none was found."""
    stands = np.full(len(placed), -1, np.int64)
    candidates = [
        _around(home, np.array(thing.position), cells) for thing, cells in zip(placed, viewpoints, strict=True)
    ]
    scene = Scene.from_house(house)
    pitches = pitch_of(tilt_mode, _tilt_states(tilt_mode))
    for turn in range(DIRECTIONS):
        open_things = [k for k in range(len(placed)) if stands[k] < 0 and turn < len(candidates[k])]
        if not open_things:
            break
        cells = np.array([candidates[k][turn] for k in open_things])
        targets = np.array([placed[k].position for k in open_things], np.float64)
        points = home.navmap.points(cells)
        ahead = targets[:, :2] - points
        headings = np.arctan2(ahead[:, 1], ahead[:, 0])
        poses = head_camera_poses(points, headings, np.zeros(len(points)))
        wanted = np.arctan2(targets[:, 2] - poses[:, 2], np.hypot(*(targets[:, :2] - poses[:, :2]).T))
        poses[:, 4] = pitches[np.abs(pitches - wanted[:, None]).argmin(1)]
        pixels = counter.count(scene, poses, np.array([placed[k].instance for k in open_things]))
        for k, cell, count in zip(open_things, cells, pixels, strict=True):
            if count >= ENOUGH_PIXELS:
                stands[k] = cell
    return stands


def _around(home: Home, target: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Of the viewpoints of a thing the one nearest to `TRY_DISTANCE` in each direction, the nearest to it first."""
    offsets = home.navmap.points(cells) - target[:2]
    off = np.abs(np.hypot(offsets[:, 0], offsets[:, 1]) - TRY_DISTANCE)
    sector = ((np.arctan2(offsets[:, 1], offsets[:, 0]) / (2 * math.pi) % 1.0) * DIRECTIONS).astype(np.int64)
    order = np.lexsort([cells, off])
    _, first = np.unique(sector[order], return_index=True)
    return cells[order[np.sort(first)]]


def _tilt_states(mode: str) -> np.ndarray:
    """States of the tilt that looking only up or only down from the start leads to, float64."""
    states = [np.array([start_tilt(mode)])]
    for up in (1, -1):
        state = states[0]
        while tilt(mode, state, np.array([up])) != state:
            state = tilt(mode, state, np.array([up]))
            states.append(state)
    return np.concatenate(states)
