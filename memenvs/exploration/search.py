"""Search: find a television, a refrigerator, a bookshelf, a table, a sofa and a bed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from memenvs.exploration import carmine
from memenvs.exploration.config import TARGETS, SearchConfig
from memenvs.exploration.drive import LEFT, RIGHT
from memenvs.exploration.env import Exploration, RewardWeights, empty_images
from memenvs.exploration.nyu40 import LABELS, NYU40, NYU40_INDEX
from memenvs.exploration.planner import best_action, turns_to_heading
from memenvs.exploration.viewer import Legend
from memenvs.exploration.visibility import ViewPoses, VisibilityScanner, detect_labels
from memenvs.houses.house import Shapes
from memenvs.houses.rendering.topdown import Marker
from memenvs.houses.rendering.viewer import GOAL_COLOUR
from memenvs.task import Options

#: The oracle has arrived at a view pose at this distance from it, m.
_ARRIVAL_DISTANCE = 0.15
#: After all view poses have been rejected the oracle explores for this number of steps; then it tries them again.
_RETRY_STEPS = 8
_MARKER_RADIUS = 0.2  # m


@dataclass(eq=False)
class SearchState:
    """Targets that N environments have found, of K, and the search of the oracle.

    Attributes:
        found: bool, (N, K).
        found_step: int64, (N, K); step at which a class was found, -1 for not found.
        found_pose: float64, (N, K, 3); pose of the robot at that step.
        view_poses: The oracle's cache: a key of what is missing, and the view poses of the missing classes.
        rejected: Cells of view poses from which the robot has faced the object and has not detected it.
        retry_step: int64, (N,); step at which rejected view poses are tried again.
    """

    found: np.ndarray
    found_step: np.ndarray
    found_pose: np.ndarray
    view_poses: list[tuple[tuple, ViewPoses] | None]
    rejected: list[set[int]]
    retry_step: np.ndarray

    @classmethod
    def of(cls, num_envs: int, num_targets: int) -> SearchState:
        """Make the state of environments that have not begun."""
        return cls(
            found=np.zeros((num_envs, num_targets), bool),
            found_step=np.full((num_envs, num_targets), -1),
            found_pose=np.zeros((num_envs, num_targets, 3)),
            view_poses=[None] * num_envs,
            rejected=[set() for _ in range(num_envs)],
            retry_step=np.zeros(num_envs, np.int64),
        )

    def begin(self, i: int) -> None:
        """Begin an episode of environment `i`, with nothing found."""
        self.found[i], self.found_step[i] = False, -1
        self.view_poses[i], self.rejected[i] = None, set()


class Search(Exploration):
    """Find one object of each of six classes.

    The classes are television, refrigerator, bookshelf, table, sofa and bed. A class is found as soon as it covers more
    than 4 % of the 48 x 64 camera image, with a true depth below 2 m. That image is used whatever the observations are.
    The episode continues after all classes are found.

    Reward:
        100 for each class found, 1 for entering a cell of 0.5 m for the first time, -1 for a collision.

    Termination:
        The 51st collision terminates; 500 steps truncate. Success: all classes that are present have been found. A
        class is present if it can be found, that is if it is detected from at least two cells of 10 cm of the largest
        navigable island. A bed behind a door that is too narrow for the robot is not present.

    Info:
        success: True if all present classes have been found.
        found, present: bool, (K,); for the K `targets` in order.
        classes: Number of classes found.
        ratio: Their share of those present, 1 where none is.

    Source:
        Fang et al., "Scene Memory Transformer for Embodied Agents in Long-Horizon Tasks", CVPR 2019 (arXiv:1903.03878),
        section 4. The paper gives the reward of a cell as 0.2 x 5 and as 0.2; here it is 0.2 x 5.

    See Also:
        `memenvs.exploration.env.Exploration`: observation, action, options and the rest of the info.
    """

    config_type = SearchConfig
    reward_weights = RewardWeights(cell=1.0, target=100.0, collision=-1.0)
    config: SearchConfig

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        super().__init__(num_envs, **kwargs)
        config = self.config
        self._targets = np.array([NYU40_INDEX[name] for name in config.targets or TARGETS], np.uint8)
        self._scanner = VisibilityScanner(self._homes.world.make_renderer)
        if config.targets is not None:
            self._check_targets(config.targets)
        self.search = SearchState.of(num_envs, len(self._targets))
        self._present = np.zeros((num_envs, len(self._targets)), bool)  # of the trial
        self._detected = np.zeros((num_envs, len(self._targets)), bool)
        # Detection needs images of 48 x 64 pixels. If observed images have that size they are used, else separate ones
        # are rendered.
        self._renders_for_detection = config.image_size != carmine.IMAGE_SIZE
        self._detection_camera = carmine.frame_camera(carmine.IMAGE_SIZE)
        self._detection_images = empty_images(num_envs, self._detection_camera, ("semantic", "depth"))
        if not self._renders_for_detection:
            # Share the buffers of the images that are observed, and have the others rendered with them.
            self._images = {**self._detection_images, **self._images}
            self._detection_images = self._images

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Move the robot into a home."""
        super().begin_trial(i, layout, rng)
        self._present[i] = [self._scanner.can_be_found(self.home(i), label) for label in self._targets.tolist()]

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Start with nothing found."""
        super().begin_episode(i, rng, options)
        self.search.begin(i)

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth and metrics; see the class."""
        num_found = self.search.found.sum(1)
        num_present = self._present.sum(1)
        return {
            **super().info(),
            "found": self.search.found,
            "present": self._present,
            "classes": num_found,
            "ratio": np.where(num_present > 0, num_found / np.maximum(num_present, 1), 1.0),
            "success": num_found == num_present,
        }

    def _find_targets(self, active: np.ndarray) -> np.ndarray:
        """Count the classes that each active robot finds for the first time, int64 (N,)."""
        if self._renders_for_detection:
            self._sim.render(active, self._detection_images, camera=self._detection_camera)
        else:
            self._render_stale(active)
        semantic, depth = self._detection_images["semantic"], self._detection_images["depth"]
        rows = np.flatnonzero(active)
        detect_labels(semantic, depth, rows, self._targets, self._detected)
        search = self.search
        new = self._detected & self._present & ~search.found & active[:, None]
        search.found |= new
        rows, columns = np.nonzero(new)
        search.found_step[rows, columns] = self.state.steps[rows]
        search.found_pose[rows, columns] = self._sim.pose[rows]
        return new.sum(1)

    def _check_targets(self, targets: tuple[str, ...]) -> None:
        """Raise a ValueError if a target can be found in no home; load homes until each can be found in one."""
        missing = set(targets)
        for number in range(self.num_layouts):
            home = self._load_home(number)
            missing -= {name for name in missing if self._scanner.can_be_found(home, NYU40_INDEX[name])}
            if not missing:
                return
        raise ValueError(
            f"targets must be classes that can be found in some home; none of the {self.num_layouts} homes has "
            f"{sorted(missing)} where the robot can see it, got {list(targets)}"
        )

    def _oracle_action(self, i: int) -> int:
        """Go to the nearest view pose of a missing class and face the object; without any, visit new cells."""
        navmap = self.home(i).navmap
        pose, step, search = self._sim.pose[i], self.state.steps[i], self.search
        views = self._remaining_view_poses(i)
        if not len(views.cells) and search.rejected[i] and step >= search.retry_step[i]:
            search.rejected[i] = set()
            views = self._remaining_view_poses(i)
        while len(views.cells):
            points = navmap.points(views.cells)
            distances = np.hypot(points[:, 0] - pose[0], points[:, 1] - pose[1])
            nearest = int(distances.argmin())
            if distances[nearest] > _ARRIVAL_DISTANCE:
                return self._action_to_view_pose(i, views)
            x, y = views.targets[nearest]
            turns = turns_to_heading(float(pose[2]), math.atan2(y - pose[1], x - pose[0]))
            if turns != 0:
                return LEFT if turns > 0 else RIGHT
            # The robot faces the object but does not detect it: try another view pose.
            search.rejected[i].add(int(views.cells[nearest]))
            search.retry_step[i] = step + _RETRY_STEPS
            views = self._remaining_view_poses(i)
        return self._action_to_unvisited_cell(i)

    def _action_to_view_pose(self, i: int, views: ViewPoses) -> int:
        """Choose the action towards the nearest view pose."""
        navmap = self.home(i).navmap
        goals = np.zeros(navmap.free.size, bool)
        goals[views.cells] = True
        # The goals change exactly when a class is found or a view pose is rejected, so this pair is the cache key.
        # Rejected view poses are tried again only after steps to unvisited cells, which replace the cached map.
        costs = self._cost_map(i, (len(views.cells), int(self.search.found[i].sum())), lambda: goals)
        return best_action(navmap, self._sim.pose[i], costs)

    def _remaining_view_poses(self, i: int) -> ViewPoses:
        """Return the view poses of the classes that are present and not found, without the rejected ones."""
        search = self.search
        key = search.found[i].tobytes(), len(search.rejected[i])
        cached = search.view_poses[i]
        if cached is None or cached[0] != key:
            home = self.home(i)
            missing = self._targets[self._present[i] & ~search.found[i]].tolist()
            views = [self._scanner.view_poses(home, label) for label in missing]
            cells = np.concatenate([np.zeros(0, np.int64), *(poses.cells for poses in views)])
            targets = np.concatenate([np.zeros((0, 2)), *(poses.targets for poses in views)])
            is_usable = ~np.isin(cells, list(search.rejected[i]))
            search.view_poses[i] = cached = key, ViewPoses(cells[is_usable], targets[is_usable])
        return cached[1]

    def _markers(self, i: int, path: np.ndarray | None = None) -> tuple[Marker, ...]:
        """Mark each class on the map: a disc on the object that was found, rings on all objects if none was."""
        home = self.home(i)
        steps, poses = self.search.found_step[i], self.search.found_pose[i]
        if path is not None:  # a recorded path: find out again when each class was detected
            steps = self._scanner.first_detections(home, path, self._targets)
            poses = path[steps]
        markers = []
        for target, step, pose in zip(self._targets.tolist(), steps.tolist(), poses, strict=True):
            instance_found = self._scanner.detected_object(home, pose, target) if step >= 0 else None
            for instance, centre in _object_centres(home.house.shapes, target).items():
                if instance == instance_found:
                    markers.append(Marker(centre, GOAL_COLOUR, _MARKER_RADIUS, label=f"{NYU40[target]} {step}"))
                elif instance_found is None:
                    markers.append(Marker(centre, GOAL_COLOUR, _MARKER_RADIUS, is_filled=False, label=NYU40[target]))
        return tuple(markers)

    def _legend(self) -> Legend:
        disc = Marker((0.0, 0.0), GOAL_COLOUR, _MARKER_RADIUS)
        ring = Marker((0.0, 0.0), GOAL_COLOUR, _MARKER_RADIUS, is_filled=False)
        return [*super()._legend(), (disc, "class found, at which step"), (ring, "not found")]


def _object_centres(shapes: Shapes, label: int) -> dict[int, tuple[float, float]]:
    """Map each object with a label, by its index into `House.instances`, to its centre (x, y), m."""
    has_label = LABELS[shapes.semantic] == label
    centres = {}
    for instance in np.unique(shapes.instance[has_label]).tolist():
        parts = has_label & (shapes.instance == instance)
        x, y = shapes.centre[parts, :2].mean(0, dtype=np.float64).tolist()
        centres[instance] = x, y
    return centres
