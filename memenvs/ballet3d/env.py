"""Ballet3D: watch dancers in a 3D room while turning, then produce the dance of one of them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from memenvs.ballet3d.config import Ballet3DConfig
from memenvs.ballet3d.episodes import LOOP, NUM_STEPS, WALLS
from memenvs.ballet3d.room import VIEW_SIZE, make_house, stage_places
from memenvs.houses.house import House
from memenvs.houses.rendering.viewer import VIEW_SIDE, MapOverlay, draw_house_map, house_map_pixels
from memenvs.retention import STRATEGIES
from memenvs.task import Observation, Options
from memenvs.watch_task import WatchTask

_ANSWER_SHAPE = (*VIEW_SIZE, 3 * LOOP)
_MAP_SCALE = 36.0  # pixels per metre
_CELL = 96  # side of a picture of the answer in images for people, pixels


class Ballet3D(WatchTask):
    """Produce the dance of one of seven dancers that were seen while turning in a room.

    The robot stands in the centre of a room and turns to the right by 3 to 7 degrees a step, 45 times from the corner
    between the front and the left wall. Then it watches the back wall for 54 steps and turns on, 27 times. Before each
    wall a dancer, a box or a ball, repeats a dance of six moves; before the back wall there are four, one after the
    other. So each of seven dancers is seen for about 18 steps. The robot does not choose its turns. At last a query
    shows one dancer at rest, and the action is six pictures: the dancer after each move of its dance.

    Observation:
        rgb: uint8, (84, 84, 3); the view of the robot; black in the query phase.
        query: As `rgb`; in the query phase the queried dancer at rest before the front wall; before, black.
        phase: `Discrete(2)`; 1 in the query phase, else 0.
        task: One-hot float32, (4,), in the order of `memenvs.retention.STRATEGIES`: the strategy that keeps the answer.
            It is for the part of an agent that chooses the memory's strategy, not for the part that answers.

    Action:
        `Box`, float32, (127008,), -1 to 1; six colour images one behind the other, (84, 84, 18), flattened: -1 is 0 and
        1 is 255. Actions before the query phase have no effect.

    Reward:
        In the query phase, minus the mean squared error of the answer, with colours from 0 to 1.

    Termination:
        At the answer, 127 steps after the reset.

    Layout:
        There is one.

    Options:
        key: int; number of the episode, as in `DanceEpisodes.key`.
        query: int, only together with `key`; number of the queried dancer, in the order in which they are seen.

    Info:
        key, query: As in the options.
        pose: (0, 0, heading rad); the room extends from (-5, -5) to (5, 5) m.
        place: The wall that the robot faces: 0 front, 1 right, 2 back, 3 left. In the query phase that of the last
            step. `PlaceWrapper` adds it to observations.
        task_id: Index in `memenvs.retention.STRATEGIES`.
        dancer: (S,); the dancers in the order in which they are seen, numbered shape * 6 + colour.
        dance: (S,); their dances, 0 to 4.
        label: Dance of the queried dancer.
        mse: Mean squared error of the answer; 0 before.
        return: Sum of rewards in this episode.

    Without memory:
        All five dances are equally likely. The best answer without memory is the mean of their pictures; over all
        dancers and dances its mean squared error is 0.0025. That of the query itself, six times, is 0.0059, that of one
        answer to all queries 0.0045, of random actions 0.153, and that of the oracle 0. So compare errors with that of
        the best answer without memory (rule `memoryless`), which is 0.98 of the way from random actions to the oracle.
        The rule `ideal` reads the dance off the heights and shifts of the dancer in all views, and has 0.00000 (200
        episodes). With the last 16 observations it is 0.11 of the way from `memoryless` to that, with 64 it is 0.66.
        A memory of 72 steps with the strategy of the task keeps at least 13 of the 18 steps
        of the queried dancer, so its dance twice (4,000 episodes; places follow from drawn turns).

    Batches:
        `make_query_task("memenvs/Ballet3D-v0", {})` of `memenvs.query_task` draws the views of 1,600 episodes once, for
        supervised learning, with queries about any of their dancers. `Ballet3DConfig().make_world().sample_batch` makes
        new ones in integers, and `draw` of it draws what steps show, each picture once.

    Variants:
        `world="miniworld"` draws with Miniworld; its images differ in details.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160), section 4.4
        and its appendix. Dances, dancers and the room are as in an earlier environment of one of the authors. The paper
        names neither the capacity nor the dancers that each task queries.
    """

    option_names = ("key", "query")
    config_type = Ballet3DConfig
    query_task = "memenvs.ballet3d.queries:DanceQueries"

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = Ballet3DConfig(**kwargs)  # type: ignore[arg-type]
        self.world = self.config.make_world()
        super().__init__(num_envs, NUM_STEPS, episodes=self.world.make_episodes(np.zeros(num_envs, np.int64)))
        self.action_space = gym.spaces.Box(-1.0, 1.0, (int(np.prod(_ANSWER_SHAPE)),), np.float32)
        view = gym.spaces.Box(0, 255, (*VIEW_SIZE, 3), np.uint8)
        self.observation_space = gym.spaces.Dict(
            {
                "rgb": view,
                "query": view,
                "phase": gym.spaces.Discrete(2),
                "task": gym.spaces.Box(0.0, 1.0, (len(STRATEGIES),), np.float32),
            }
        )
        self._return = np.zeros(num_envs)
        self._answer: list[np.ndarray | None] = [None] * num_envs  # uint8, (84, 84, 18), for `render`

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draw turns, dancers, dances and the query."""
        self._begin(i, self.world.draw_episode(rng, options))
        self._return[i] = 0.0
        self._answer[i] = None

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Turn to the next step, or compare the answer with the true pictures."""
        terminated = active & self._in_query()
        rewards = np.zeros(self.num_envs)
        for i in np.flatnonzero(terminated).tolist():
            answer = (actions[i].astype(np.float64) + 1.0) / 2.0
            rewards[i] = -((answer - self._true_answer(i) / 255.0) ** 2).mean()
            self._answer[i] = np.rint(255.0 * answer).astype(np.uint8).reshape(_ANSWER_SHAPE)
        self._return += rewards
        self._step += active & ~terminated
        return rewards, terminated

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write view, query, phase and task."""
        in_query = self._in_query()
        out["phase"][env_mask] = in_query[env_mask]
        out["task"][env_mask] = np.eye(len(STRATEGIES), dtype=np.float32)[self._episodes.task_id[env_mask]]
        queried = np.flatnonzero(env_mask & in_query)
        out["rgb"][queried] = 0
        out["query"][env_mask] = 0
        out["query"][queried] = self.world.front_views[self._episodes.query[queried]]
        watching = np.flatnonzero(env_mask & ~in_query)
        if len(watching):
            t = self._step[watching]
            on_stage = self.world.on_stage(self._episodes, watching, t)
            out["rgb"][watching] = self.world.room.draw(self._episodes.heading[watching, t], *on_stage)

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        episodes, t = self._episodes, self._path_step()
        heading = episodes.heading[self._rows, t]
        return {
            "pose": np.column_stack([np.zeros((self.num_envs, 2)), heading]).astype(np.float32),
            "place": episodes.place[self._rows, t].astype(np.int64),
            "key": episodes.key,
            "query": episodes.query_dancer.astype(np.int64),
            "task_id": episodes.task_id,
            "dancer": episodes.dancer,
            "dance": episodes.dance,
            "label": episodes.dance[self._rows, episodes.query_dancer],
            "mse": -self._return,
            "return": self._return,
        }

    @property
    def num_places(self) -> int:
        """Number of walls."""
        return len(WALLS)

    def oracle_actions(self) -> np.ndarray:
        """Return the true pictures; before the query phase zeros."""
        actions = np.zeros((self.num_envs, int(np.prod(_ANSWER_SHAPE))), np.float32)
        for i in np.flatnonzero(self._in_query()).tolist():
            actions[i] = np.clip(self._true_answer(i) / 127.5 - 1.0, -1.0, 1.0)
        return actions

    def render(self, i: int) -> np.ndarray:
        """Render the view and a map; uint8, (384, 768, 3).

        In the query phase there are the query and the true pictures, and below these those of the answer.
        """
        image = np.full((VIEW_SIDE, 2 * VIEW_SIDE, 3), 250, np.uint8)
        if not self._in_query()[i]:
            t = self._step[i : i + 1]
            dancer, position = self.world.on_stage(self._episodes, np.array([i]), t)
            image[:, :VIEW_SIDE] = self.world.room.draw_large(self._episodes.heading[i, t[0]], dancer[0], position[0])
            plan = self.draw_map(i, self.info()["pose"][i : i + 1])
            image[: plan.shape[0], VIEW_SIDE : VIEW_SIDE + plan.shape[1]] = plan
            return image
        image[:, :VIEW_SIDE] = _enlarge(self.world.front_views[self._episodes.query[i]], VIEW_SIDE)
        answers = [self._true_answer(i), self._answer[i]]
        for k, answer in enumerate(pictures for pictures in answers if pictures is not None):
            for number in range(LOOP):
                row, column = divmod(number, 3)
                top, left = _CELL * (2 * k + row), VIEW_SIDE + (VIEW_SIDE - 3 * _CELL) // 2 + _CELL * column
                picture = answer.reshape(_ANSWER_SHAPE)[..., 3 * number : 3 * number + 3]
                image[top : top + _CELL, left : left + _CELL] = _enlarge(picture, _CELL)
        return image

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw the room from above with the dancers of this step and the robot; 382 x 382."""
        return draw_house_map(self._house(i), path, MapOverlay(), pixels_per_metre=_MAP_SCALE)

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert poses to pixels of the map."""
        return house_map_pixels(self._house(i), poses, pixels_per_metre=_MAP_SCALE)

    def close(self) -> None:
        """Stop the rendering threads, or close the Miniworld environment."""
        self.world.room.close()

    def _house(self, i: int) -> House:
        """Make the room with the dancers of the current step."""
        dancer, position = self.world.on_stage(self._episodes, np.array([i]), self._path_step()[i : i + 1])
        return make_house(dancer[0], stage_places(position[0]))

    def _true_answer(self, i: int) -> np.ndarray:
        """float64, (127008,); the true pictures, 0 to 255."""
        return self.world.answers(self._episodes.select(slice(i, i + 1))).reshape(-1).astype(np.float64)


def _enlarge(picture: np.ndarray, side: int) -> np.ndarray:
    """Repeat pixels of a picture, (84, 84, 3), until it has `side` rows and columns."""
    index = np.arange(side) * VIEW_SIZE[0] // side
    return picture[index][:, index]
