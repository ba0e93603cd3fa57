"""ViewRecall: draw the view in a direction between those that were seen long ago."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np

from memenvs.checks import check_int
from memenvs.houses.rendering.topdown import Marker
from memenvs.houses.rendering.viewer import MapOverlay
from memenvs.recall.config import ViewRecallConfig
from memenvs.recall.env import Recall, draw_key
from memenvs.recall.turns import NO_MOVE, NUM_HEADINGS, NUM_PLACES, OBSERVED_HEADINGS, QUERY_HEADINGS, make_turns
from memenvs.task import Observation, Options

#: Pictures of a panorama: the observed headings, then the queried ones.
PANORAMA_HEADINGS = np.concatenate([OBSERVED_HEADINGS, QUERY_HEADINGS])
_QUERY_COLOUR = (236, 170, 20)


class ViewRecall(Recall):
    """Draw the view in a new direction, from those beside it that were seen long ago.

    The environment turns the observer on the spot by 12 degrees a step: for 150 steps to random headings all around,
    for 150 more to headings within 36 degrees of the last one. Then a heading is given, and the answer is the picture
    in this direction. It is one of 10 that lie between observed ones, 6 degrees from the nearest.

    Observation:
        rgb: uint8, (84, 84, 3); black in the query phase.
        heading: float32, (2,); cosine and sine of the heading, 0 at the start; in the query phase of that to draw.
        phase: `Discrete(2)`; 1 in the query phase, else 0.
        move: `Discrete(3)`; the turn that led here: 0 left, 1 right, 2 none.

    Action:
        `Box`, float32, (21168,), -1 to 1; the picture, flattened: -1 is 0 and 1 is 255. Actions before the query phase
        have no effect.

    Reward:
        At the answer, minus the mean squared error, with colours from 0 to 1.

    Termination:
        At the answer, 301 steps after the reset.

    Layout:
        Number of the home among those of its world that can be played. By default every episode is in another home.

    Options:
        start: (x m, y m, heading rad) on the largest navigable island; default drawn.
        key: int; number of the sequence of turns.
        query: int; number of the direction to draw, 0 to 9: 36 degrees each counter-clockwise from the start.

    Info:
        pose: (x m, y m, heading rad); in the query phase that of the last step.
        place: The 36 degrees that the heading is in, 0 to 9, counter-clockwise from the start; in the query phase those
            of the last step. `PlaceWrapper` adds it to observations.
        scene_id: Name of the home.
        start, key, query: As in the options.
        mse: Mean squared error of the answer; 0 before.
        return: Sum of rewards in this episode.

    Without memory:
        Mean squared errors over 200 episodes of the split "test", without any training: a random picture 0.131; the
        mean picture of the training homes, the best answer without memory (rule `memoryless`), 0.031; the view that
        follows from all pictures, and the mean picture where they do not show it (rule `ideal`), 0.002. Compare errors
        with that of the mean picture, which has 0.76 of the way from a random picture to the oracle.
        The pictures of the last 4 steps lead 0.29 of the way from the mean picture to `ideal`, those of 16 steps 0.42
        and those of 64 steps 0.44. The queried direction may be near those of the last steps, as it is drawn from all
        around, and the camera of 90 degrees shows a quarter of the circle at once. A memory of 150 steps has pictures
        of fewer than 4 of the 10 places at the query with the strategy FIFO, and of nearly all with MVFO.

    Batches:
        `make_query_task("memenvs/ViewRecall-v0", {})` of `memenvs.query_task` draws the pictures at 400 positions once,
        for supervised learning; `memenvs.recall.pools.ViewPool` those at any number of them.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160), appendix
        D.11, in Habitat. The first 150 steps turn to random headings, as the text has it: a random walk would see 19 of
        the 30 headings. The directions to draw are this project's.
    """

    config: ViewRecallConfig
    option_names = ("start", "key", "query")
    config_type = ViewRecallConfig
    query_task = "memenvs.recall.queries:ViewQueries"

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = config = ViewRecallConfig(**kwargs)  # type: ignore[arg-type]
        super().__init__(num_envs, sum(config.steps))
        shape = (*config.image_size, 3)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (math.prod(shape),), np.float32)
        self.observation_space = gym.spaces.Dict(
            {
                "rgb": gym.spaces.Box(0, 255, shape, np.uint8),
                "heading": gym.spaces.Box(-1.0, 1.0, (2,), np.float32),
                "phase": gym.spaces.Discrete(2),
                "move": gym.spaces.Discrete(NO_MOVE + 1),
            }
        )
        self._cameras = self._homes.cameras(config, config.threads)
        self._pictures = np.zeros((num_envs, len(PANORAMA_HEADINGS), *shape), np.uint8)
        self._start = np.zeros((num_envs, 3))
        self._heading = np.zeros((num_envs, self._num_steps), np.int64)
        self._query = np.zeros(num_envs, np.int64)
        self._answer = np.zeros((num_envs, *shape), np.uint8)  # for `render`
        self._mse = np.zeros(num_envs)

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draw the position, the turns and the query."""
        home = self.home(i)
        start = home.random_pose(rng)
        key = draw_key(rng, options)
        query = int(rng.integers(NUM_PLACES))
        if options.get("start") is not None:
            start = home.check_pose(options["start"])
        if options.get("query") is not None:
            query = options["query"]
            check_int("option 'query'", query, 0, NUM_PLACES - 1)
        self._cameras.draw_all(home, panorama_poses(start), self._pictures[i])
        turns = make_turns(key, self.config.steps)
        self._start[i], self._key[i], self._query[i] = start, key, query
        self._heading[i], self._move[i], self._place[i] = turns.heading, turns.move, turns.place
        self._pose[i] = start
        self._pose[i, :, 2] = (start[2] + OBSERVED_HEADINGS[turns.heading]) % (2 * math.pi)
        self._answer[i] = 0
        self._mse[i] = 0.0
        self._step[i] = 0

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Go to the next turn, or check the answer."""
        terminated = active & self._in_query()
        for i in np.flatnonzero(terminated).tolist():
            answer = (actions[i].astype(np.float64) + 1) / 2  # 0 to 1
            target = self._target(i)
            self._mse[i] = ((answer - target.ravel() / 255.0) ** 2).mean()
            self._answer[i] = np.rint(255 * answer).reshape(target.shape)
        self._step += active & ~terminated
        return np.where(terminated, -self._mse, 0.0), terminated

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write image, heading, phase and move."""
        in_query_phase = self._in_query()
        t = self._path_step()
        heading = self._heading[self._rows, t]
        angle = np.where(in_query_phase, QUERY_HEADINGS[self._query], OBSERVED_HEADINGS[heading])
        move = np.where(in_query_phase, NO_MOVE, self._move[self._rows, t])
        for i in np.flatnonzero(env_mask).tolist():
            out["rgb"][i] = 0 if in_query_phase[i] else self._pictures[i, heading[i]]
        out["heading"][env_mask] = np.column_stack([np.cos(angle), np.sin(angle)])[env_mask]
        out["phase"][env_mask] = in_query_phase[env_mask]
        out["move"][env_mask] = move[env_mask]

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        t = self._path_step()
        return {
            "pose": self._pose[self._rows, t].astype(np.float32),
            "place": self._place[self._rows, t],
            "scene_id": self._scene_id,
            "start": self._start,
            "key": self._key,
            "query": self._query,
            "mse": self._mse,
            "return": -self._mse,
        }

    @property
    def num_places(self) -> int:
        """Ten: a place is a tenth of the circle."""
        return NUM_PLACES

    def oracle_actions(self) -> np.ndarray:
        """Return the pictures to draw, float32 (N, A)."""
        targets = np.stack([self._target(i).ravel() for i in range(self.num_envs)])
        return (targets / 127.5 - 1).astype(np.float32)

    def close(self) -> None:
        """Stop the rendering threads."""
        self._cameras.close()

    def _target(self, i: int) -> np.ndarray:
        """Picture to draw in environment `i`, uint8, (H, W, 3)."""
        return self._pictures[i, NUM_HEADINGS + self._query[i]]

    def _picture(self, i: int) -> np.ndarray:
        if self._in_query()[i]:
            return np.vstack([self._target(i), self._answer[i]])
        return self._pictures[i, self._heading[i, self._step[i]]]

    def _overlay(self, i: int) -> MapOverlay:
        if not self._in_query()[i]:
            return MapOverlay()
        x, y, heading = self._start[i].tolist()
        heading += QUERY_HEADINGS[self._query[i]]
        ahead = (x + 0.7 * math.cos(heading), y + 0.7 * math.sin(heading))
        return MapOverlay(markers=(Marker(ahead, _QUERY_COLOUR, radius=0.15),))


def panorama_poses(start: np.ndarray) -> np.ndarray:
    """Poses of the pictures at a position: 30 observed headings, then 10 queried ones.

    Args:
        start: float64, (3,); x, y (m) and the first heading (rad).

    Returns:
        float64, (40, 3); m and rad.
    """
    poses = np.tile(start, (len(PANORAMA_HEADINGS), 1))
    poses[:, 2] += PANORAMA_HEADINGS
    return poses
