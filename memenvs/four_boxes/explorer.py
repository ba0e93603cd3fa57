"""A robot that tours the four boxes once, and remembers the rewarded one."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from memenvs.four_boxes.arrangements import Arrangement, arrangements
from memenvs.four_boxes.env import FourBoxes
from memenvs.four_boxes.room import COLOURS, LEFT, STAY
from memenvs.four_boxes.tour import make_tour
from memenvs.rules import Rule
from memenvs.task import BatchTask, Observation, empty_observation

#: What is not known of a view: no box, or no action; and steps to a corner.
_NONE, _FAR = -1, 1000


class BoxExplorer(Rule):
    """Make the tour of `BoxTour` until there is reward, then go back to that box.

    In every later episode it goes straight there. Where that box gives no reward any more, as with `moves`, it goes on
    to the others, the nearest one first.

    It finds out where it is from what it sees: the image and the heading say at which pose of the tour or of a shortest
    path it is, in each arrangement of the colours. It remembers the corner of the rewarded box. While it does not know
    it, it makes the tour, or goes on along the path on which it finds itself.

    Views of a task of its own are its map; of the task that it plays it knows the settings.
    """

    way = "ideal"
    window = None
    bits = float(np.log2(len(COLOURS)))

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, FourBoxes)
        self._views: dict[bytes, int] = {}  # number of each view
        self._corner_of: list[int] = []  # nearest corner, by number of the view
        self._tour: list[int] = []  # action of the tour, or of the path that leads through here
        self._paths: list[list[int]] = []  # action of the shortest path to each corner
        self._lengths: list[list[int]] = []  # steps to each corner
        self._map(FourBoxes(1, **asdict(task.config)))
        self._corner = np.full(task.num_envs, _NONE, np.int64)  # of the rewarded box
        self._is_empty = np.zeros((task.num_envs, len(COLOURS)), bool)  # it went there in vain in this episode
        self._age = np.zeros(task.num_envs, np.int64)  # steps since the newest reward
        self._needed: np.ndarray | None = None

    def _map(self, own: FourBoxes) -> None:
        """Record the views on the tour and on the shortest paths, in all arrangements."""
        rng = np.random.default_rng(0)  # nothing is drawn from it
        for number, arrangement in enumerate(arrangements(own.config.split)):
            for action in make_tour(own, number):
                self._tour[self._number(own)] = action
            self._number(own)
            own.begin_trial(0, len(COLOURS) * number, rng)
            for colour in range(len(COLOURS)):
                self._map_path(own, arrangement, (colour,), [])
        own.close()

    def _map_path(self, own: FourBoxes, arrangement: Arrangement, colours: tuple[int, ...], taken: list[int]) -> None:
        """Record the views on the way to the last of some boxes, and with `moves` on the ways from it to other boxes.

        Args:
            own: The task.
            arrangement: Corner of each colour.
            colours: Boxes in the order of the visits.
            taken: Actions that lead to the box before the last.
        """
        corner = arrangement[colours[-1]]
        own.begin_episode(0, np.random.default_rng(0), {"goal": colours[-1]})
        for action in taken:
            own.step(np.array([action]), np.ones(1, bool))
        views, actions = [], [LEFT]
        while actions[-1] != STAY:  # the oracle arrives from anywhere
            view = self._number(own)
            action = int(own.oracle_actions()[0])
            self._paths[view][corner] = action
            if self._tour[view] == _NONE:
                self._tour[view] = action
            views.append(view)
            actions.append(action)
            own.step(np.array([action]), np.ones(1, bool))
        for steps, view in enumerate(reversed(views)):
            self._lengths[view][corner] = steps
        if own.config.moves:
            for colour in set(range(len(COLOURS))) - {*colours}:
                self._map_path(own, arrangement, (*colours, colour), [*taken, *actions[1:-1]])

    def _number(self, own: FourBoxes) -> int:
        """The number of the present view of the robot of `own`, a new one for a new view."""
        seen = empty_observation(own.observation_space, 1)
        own.observe(seen, np.ones(1, bool))
        view = self._views.setdefault(_key(seen["rgb"][0], seen["heading"][0]), len(self._views))
        if view == len(self._corner_of):
            self._corner_of.append(int(own.info()["place"][0]))
            self._tour.append(_NONE)
            self._paths.append([_NONE] * len(COLOURS))
            self._lengths.append([_FAR] * len(COLOURS))
        return view

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the rewarded corner; see `Rule`."""
        self._corner[env_mask] = _NONE
        self._is_empty[env_mask] = False

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Take note that the reward may be at any box again; see `Rule`."""
        self._is_empty[env_mask] = False

    def see(self, observation: Observation) -> None:
        """Remember the corner of a box that gives reward; see `Rule`."""
        rewarded = observation["previous_reward"][:, 0] > 0
        self._age = np.where(rewarded, 0, self._age + 1)
        self._is_empty[rewarded] = False
        for i in np.flatnonzero(rewarded | (self._corner != _NONE) | self._is_empty.any(1)).tolist():
            view = self._views.get(_key(observation["rgb"][i], observation["heading"][i]))
            if view is None:
                continue
            if rewarded[i]:
                self._corner[i] = self._corner_of[view]
            elif self._paths[view][self._corner_of[view]] == STAY:
                self._is_empty[i, self._corner_of[view]] = True
                self._corner[i] = _NONE

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        rewarded = observation["previous_reward"][:, 0] > 0
        chosen = np.full(len(rewarded), STAY, np.int64)
        for i in np.flatnonzero(~rewarded).tolist():
            chosen[i] = self._next_move(i, _key(observation["rgb"][i], observation["heading"][i]))
        self._needed = np.where(self._corner >= 0, self._age, 0)
        return chosen

    def _next_move(self, i: int, key: bytes) -> int:
        """The action of robot `i` without a reward; it turns left where it has not been on its map."""
        view, corner = self._views.get(key), int(self._corner[i])
        if view is None:
            return LEFT
        if self._is_empty[i].any():  # to the nearest of the other boxes
            corner = int(np.where(self._is_empty[i], _FAR, self._lengths[view]).argmin())
        straight = _NONE if corner == _NONE else self._paths[view][corner]
        action = self._tour[view] if straight == _NONE else straight
        return LEFT if action == _NONE else action

    def steps_back(self) -> np.ndarray | None:
        """Steps since the newest rewarded observation, 0 before the first one; see `Rule`."""
        return self._needed


def _key(image: np.ndarray, heading: np.ndarray) -> bytes:
    """Key of a view: the image, and the heading in degrees."""
    degrees = round(float(np.degrees(np.arctan2(heading[1], heading[0])))) % 360
    return image.tobytes() + degrees.to_bytes(2, "little")
