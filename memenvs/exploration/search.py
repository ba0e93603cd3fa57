"""Search: see a television, a refrigerator, a bookshelf, a table, a sofa and a bed."""

from __future__ import annotations

import math

import numpy as np

from memenvs.core import Options
from memenvs.exploration import carmine
from memenvs.exploration.config import TARGETS, SearchConfig
from memenvs.exploration.drive import LEFT, RIGHT
from memenvs.exploration.env import Exploration, empty_images
from memenvs.exploration.nyu40 import LABELS, NYU40, NYU40_INDEX
from memenvs.exploration.planner import turns_to, walk
from memenvs.exploration.visibility import ViewPoses, VisibilityScanner, find_labels
from memenvs.houses.house import Shapes
from memenvs.houses.rendering.topdown import Marker
from memenvs.houses.rendering.viewer import GOAL_COLOUR

#: The oracle takes itself to be at a stand so far from it, m.
_AT_STAND = 0.15


class Search(Exploration):
    """Find one thing of each of six classes.

    A class is found by the first action after which the 48 x 64 image of the camera shows it on more than 4 % of the pixels with a true depth
    below 2 m (`search_rule`), whatever is observed. The search goes on after all are found.

    Observation (`Dict`): as `Roaming`.
    Action (`Discrete(3)`): forward 0.25 m, turn left, turn right by 45 degrees, with noise; as `Roaming`.
    Reward: 100 for each class found, 1 for entering a cell of 0.5 m that was not visited before, -1 for a collision.
    Ends: the 51st collision terminates; 500 steps truncate. Success: all classes that are in the home have been found.
    Layout: number of the home in its world. Options: `start` (x, y, heading) on the largest navigable island.
    Info: as `Roaming`, and `found` and `present`, bool (K,), for the K `targets` in order; `classes`, how many are found; `ratio`, their share of
    those present (1 where none is).

    Source:
        Scene Memory Transformer (Fang et al., 2019), section 4. The paper's two statements on what a cell is worth differ (0.2 x 5 or 0.2);
        it is 0.2 x 5 here.
    """

    config_type = SearchConfig
    weights = (0.0, 1.0, 100.0, -1.0)
    config: SearchConfig

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        super().__init__(num_envs, **kwargs)
        config = self.config
        self._targets = np.array([NYU40_INDEX[name] for name in config.targets or TARGETS], np.uint8)
        if config.targets is not None:
            self._check_targets(config.targets)
        self._found = np.zeros((num_envs, len(self._targets)), bool)
        self._present = np.zeros((num_envs, len(self._targets)), bool)
        self._sees = np.zeros((num_envs, len(self._targets)), bool)
        # Of pictures: at which step each class was found, -1 for not yet, and from which pose.
        self._found_at = np.full((num_envs, len(self._targets)), -1)
        self._found_from = np.zeros((num_envs, len(self._targets), 3))
        # The test is on 48 x 64 pixels: those that are observed, if they are as many, else others drawn for it.
        self._looks_apart = config.image_size != carmine.IMAGE_SIZE
        self._test_camera = carmine.frame_camera(carmine.IMAGE_SIZE)
        images = empty_images(num_envs, self._test_camera, ("semantic", "depth"))
        if not self._looks_apart:
            images = self._images = {**images, **self._images}
        self._test_images = images
        self._scanner = VisibilityScanner(config.search_rule)
        # Of the oracle: where it may go to find something, and cells of those places that did not do.
        self._stands: list[tuple[tuple, ViewPoses] | None] = [None] * num_envs
        self._tried: list[set[int]] = [set() for _ in range(num_envs)]

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Moves into a home."""
        super().begin_trial(i, layout, rng)
        self._present[i] = self.home(i).has_label[self._targets]

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Nothing is found yet."""
        super().begin_episode(i, rng, options)
        self._found[i], self._found_at[i] = False, -1
        self._tried[i] = set()

    def info(self) -> dict[str, np.ndarray]:
        """Truth and metrics; see the class."""
        classes, present = self._found.sum(1), self._present.sum(1)
        return {
            **super().info(),
            "found": self._found,
            "present": self._present,
            "classes": classes,
            "ratio": np.where(present > 0, classes / np.maximum(present, 1), 1.0),
            "success": classes == present,
        }

    # ------------------------------------------------------------------ private

    def _find_targets(self, active: np.ndarray) -> np.ndarray:
        if self._looks_apart:
            self._sim.render(active, self._test_images, camera=self._test_camera)
        else:
            self._draw(active)
        images, rule = self._test_images, self.config.search_rule
        find_labels(images["semantic"], images["depth"], np.flatnonzero(active), self._targets, rule, self._sees)
        new = self._sees & ~self._found & active[:, None]
        self._found |= new
        rows, which = np.nonzero(new)
        self._found_at[rows, which], self._found_from[rows, which] = self._steps[rows], self._sim.pose[rows]
        return new.sum(1)

    def _check_targets(self, targets: tuple[str, ...]) -> None:
        """Raises ValueError if some target is in no home of the world; looks at homes until all have been seen."""
        missing = set(targets)
        for number in range(self.num_layouts):
            has_label = self._load_home(number).has_label
            missing -= {name for name in missing if has_label[NYU40_INDEX[name]]}
            if not missing:
                return
        raise ValueError(
            f"targets must be classes that some home has; none of the {self.num_layouts} homes has {sorted(missing)}, "
            f"got {list(targets)}"
        )

    def _plan(self, i: int) -> int:
        """To the nearest stand from which a class is found that is not yet, facing it; when all are found, on to the nearest new cell."""
        home, pose = self.home(i), self._sim.pose[i]
        stands = self._stands_left(i)
        if not len(stands.cells):
            return self._plan_to_cover(i)
        navmap = home.navmap
        points = navmap.points(stands.cells)
        gaps = np.hypot(points[:, 0] - pose[0], points[:, 1] - pose[1])
        nearest = int(gaps.argmin())
        if gaps[nearest] > _AT_STAND:
            goals = np.zeros(navmap.free.size, bool)
            goals[stands.cells] = True
            costs = self._costs_to(i, (len(stands.cells), int(self._found[i].sum())), lambda: goals)
            return walk(navmap, pose, costs)
        x, y = stands.things[nearest]
        turns = turns_to(float(pose[2]), math.atan2(y - pose[1], x - pose[0]))
        if turns == 0:  # it looks there and finds nothing: not a good stand after all
            self._tried[i].add(int(stands.cells[nearest]))
            return self._plan(i)
        return LEFT if turns > 0 else RIGHT

    def _stands_left(self, i: int) -> ViewPoses:
        """ViewPoses for what is present and not found, without those that did not do."""
        key = int(self._keys[0, i]), self._found[i].tobytes(), len(self._tried[i])
        kept = self._stands[i]
        if kept is None or kept[0] != key:
            home = self.home(i)
            wanted = self._targets[self._present[i] & ~self._found[i]].tolist()
            each = [self._scanner.stands(home, label) for label in wanted]
            cells = np.concatenate([np.zeros(0, np.int64), *(stands.cells for stands in each)])
            things = np.concatenate([np.zeros((0, 2)), *(stands.things for stands in each)])
            left = ~np.isin(cells, list(self._tried[i]))
            self._stands[i] = kept = key, ViewPoses(cells[left], things[left])
        return kept[1]

    def _marks(self, i: int, way: np.ndarray | None = None) -> tuple[Marker, ...]:
        """A disc for what a class was found by, rings for all things of a class that was not."""
        home = self.home(i)
        steps, poses = self._found_at[i], self._found_from[i]
        if way is not None:
            steps = self._scanner.first_found(home, way, self._targets)
            poses = way[steps]
        marks = []
        for target, step, pose in zip(self._targets.tolist(), steps.tolist(), poses, strict=True):
            found = self._scanner.thing_found(home, pose, target) if step >= 0 else None
            for thing, (x, y) in _middles(home.house.shapes, target).items():
                if thing == found:
                    marks.append(Marker((x, y), GOAL_COLOUR, 0.2, label=f"{NYU40[target]} {step}"))
                elif found is None:
                    marks.append(Marker((x, y), GOAL_COLOUR, 0.2, is_filled=False, label=NYU40[target]))
        return tuple(marks)

    def _legend(self) -> list[tuple[str | Marker, str]]:
        found, missed = Marker((0.0, 0.0), GOAL_COLOUR, 0.2), Marker((0.0, 0.0), GOAL_COLOUR, 0.2, is_filled=False)
        return [*super()._legend(), (found, "class found, at which step"), (missed, "not found")]


def _middles(shapes: Shapes, label: int) -> dict[int, tuple[float, float]]:
    """Index into `House.instances` -> x and y of the middle, m, of the things of a label."""
    is_one = LABELS[shapes.semantic] == label
    middles = {}
    for thing in np.unique(shapes.instance[is_one]).tolist():
        x, y = shapes.centre[is_one & (shapes.instance == thing), :2].mean(0, dtype=np.float64).tolist()
        middles[thing] = x, y
    return middles
