"""FFHQ-world environments: see a picture in patches, then produce those of another path."""

from __future__ import annotations

from typing import ClassVar

import gymnasium as gym
import numpy as np

from memenvs.checks import is_int
from memenvs.faces.config import FacesConfig, LongStayConfig
from memenvs.faces.episodes import GRID, NO_ACTION, NUM_CELLS, PATCH_PIXELS
from memenvs.faces.places import cell_positions
from memenvs.faces.viewer import draw_path, draw_scene, path_pixels
from memenvs.faces.world import cut_patches
from memenvs.task import Observation, Options
from memenvs.watch_task import WatchTask

_PATCH_SHAPE = (PATCH_PIXELS, PATCH_PIXELS, 3)


class FFHQWorld(WatchTask):
    """Produce the patches of a picture that another path over it would show.

    A picture of 88 x 88 pixels has 10 x 10 cells; the agent sees the patch of 16 x 16 pixels of its cell. First it is
    led along a path of 256 steps, which shows nearly all cells: each step leads to one of the neighbours that were
    visited least often. Then a query names a second path: the patch where it begins, in any cell, and its 32 moves. At
    each of these the action is the patch to which the move leads. The agent does not choose where to go.

    Pictures are drawn faces, or files: `images=FOLDER`.

    Observation:
        rgb: uint8, (16, 16, 3); the patch of the current cell; black in the query phase.
        query: As `rgb`; in the query phase the patch where the path of the query begins; before, black.
        phase: `Discrete(2)`; 1 in the query phase, else 0.
        move: `Discrete(5)`; the move that led to the current cell, in the query phase to that of the patch to produce:
            0 right, 1 left, 2 up, 3 down; 4 at the first step.
        moves: int64, (32,); all moves of the query; before, 4.

    Action:
        `Box`, float32, (768,), -1 to 1; a patch, flattened: -1 is 0 and 1 is 255. Actions before the query
        phase have no effect.

    Reward:
        In the query phase, minus the mean squared error of the patch, with colours from 0 to 1.

    Termination:
        After the last patch, 288 steps after the reset.

    Layout:
        There is one.

    Options:
        key: int; number of the episode, as in `FaceEpisodes.key`.
        picture: int; number of the picture, one of the split.

    Info:
        key, picture: As in the options.
        pose: Column, row from below, and 0, of the current cell; in the query phase of the last one that was observed.
        place: Place of this cell: its number, or that of its cluster (`places`). `PlaceWrapper` adds it to
            observations.
        query_cell: (33,); where the query begins, then the cell of each patch to produce.
        mse: Mean squared error of the patches that were produced so far; 0 before.
        return: Sum of rewards in this episode.

    Without memory:
        Mean squared errors of observers, 2,000 episodes of drawn faces (`python benchmarks/faces.py`). The mean of all
        patches has 0.056. The best linear prediction from the patch where the query begins has 0.046, and 0.045 with
        the map, which gives the cells. With a memory of 256 steps and the map it is 0.00000. With the same memory
        and no map it is 0.0003 for an observer that joins patches at the pixels that they share, so that a map can be
        made of the patches alone. After the long stay it is 0.024 for FIFO and 0.00002 for MVFO.
        The present view does not say how many moves of the query are done. The best answer from it alone (rule
        `memoryless`) is the mean prediction for the moves that may be the present one. Compare errors with its 0.052,
        which is 0.63 of the way from random actions, 0.143, to the oracle (200 episodes of the split "test"). The rule
        `ideal` lays all patches side by side and has 0.00002. With the last 16 observations it is 0.09 of the way from
        `memoryless` to that, after the long stay 0.10, mostly because it can infer the moves that are done.

    Batches:
        `make_query_task("memenvs/FFHQWorld-v0", {}).sample_batch(32, np.random.default_rng(0))` of `memenvs.query_task`
        has the same episodes in integers, for supervised learning, and the pictures that they show.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160), section 4.3
        and appendix D.8; paths as in its release. FFHQ: Karras, Laine and Aila, "A Style-Based Generator Architecture
        for Generative Adversarial Networks", CVPR 2019.
    """

    config: FacesConfig
    option_names = ("key", "picture")
    config_type: ClassVar[type[FacesConfig]] = FacesConfig
    query_task = "memenvs.faces.queries:FaceQueries"

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = self.config_type(**kwargs)  # type: ignore[arg-type]
        self.world = self.config.make_world()
        queries = self.world.query_moves
        episodes = self.world.make_episodes(np.zeros(num_envs, np.int64))
        super().__init__(num_envs, self.world.num_steps, queries, episodes)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (int(np.prod(_PATCH_SHAPE)),), np.float32)
        patch = gym.spaces.Box(0, 255, _PATCH_SHAPE, np.uint8)
        self.observation_space = gym.spaces.Dict(
            {
                "rgb": patch,
                "query": patch,
                "phase": gym.spaces.Discrete(2),
                "move": gym.spaces.Discrete(NO_ACTION + 1),
                "moves": gym.spaces.Box(0, NO_ACTION, (queries,), np.int64),
            }
        )
        self._patches = np.zeros((num_envs, NUM_CELLS, *_PATCH_SHAPE), np.uint8)  # those of each picture
        self._produced = np.zeros((num_envs, queries, *_PATCH_SHAPE), np.uint8)
        self._return = np.zeros(num_envs)

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draw the picture and both paths."""
        episode, picture = self.world.draw_episode(rng, options), options.get("picture")
        if picture is not None:
            numbers = self.world.pictures.numbers
            if not is_int(picture) or picture not in numbers:
                raise ValueError(
                    f"option 'picture' must be one of the {len(numbers)} numbers of split {self.config.split!r}, "
                    f"{numbers[0]} ... {numbers[-1]}, got {picture!r}"
                )
            episode.picture[:] = picture
        self._patches[i] = cut_patches(self.world.pictures.read(int(episode.picture[0]))[None])[0]
        self._begin(i, episode)
        self._return[i] = 0.0

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Go to the next step; in the query phase, compare the patch with the true one."""
        at = np.flatnonzero(active & self._in_query())
        rewards = np.zeros(self.num_envs)
        if len(at):
            produced = (actions[at].astype(np.float64) + 1.0) / 2.0
            number = self._query_step()[at]
            target = self._patches[at, self._episodes.query_cell[at, number + 1]].reshape(len(at), -1) / 255.0
            rewards[at] = -((produced - target) ** 2).mean(1)
            self._produced[at, number] = np.rint(255.0 * produced).reshape(-1, *_PATCH_SHAPE)
        self._return += rewards
        terminated = active & (self._step == self.world.num_steps + self.world.query_moves - 1)
        self._step += active
        return rewards, terminated

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write patch, query, phase and moves."""
        episodes, in_query = self._episodes, self._in_query()
        step = self._path_step()
        query_move = episodes.query_action[self._rows, self._query_step()]
        out["phase"][env_mask] = in_query[env_mask]
        out["move"][env_mask] = np.where(in_query, query_move, episodes.action[self._rows, step])[env_mask]
        out["moves"][env_mask] = np.where(in_query[:, None], episodes.query_action, NO_ACTION)[env_mask]
        rows = np.flatnonzero(env_mask)
        is_answering = in_query[rows][:, None, None, None]
        out["rgb"][rows] = np.where(is_answering, 0, self._patches[rows, episodes.cell[rows, step[rows]]])
        out["query"][rows] = np.where(is_answering, self._patches[rows, episodes.query_cell[rows, 0]], 0)

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        episodes, step = self._episodes, self._path_step()
        produced = np.clip(self._step - self.world.num_steps, 0, None)
        return {
            "pose": np.column_stack(
                [self._poses(episodes.cell[self._rows, step]), np.zeros(self.num_envs, np.float32)]
            ),
            "place": episodes.place[self._rows, step].astype(np.int64),
            "key": episodes.key,
            "picture": episodes.picture.astype(np.int64),
            "query_cell": episodes.query_cell,
            "mse": -self._return / np.maximum(produced, 1),
            "return": self._return,
        }

    @property
    def num_places(self) -> int:
        """Number of cells, or of clusters."""
        return self.world.num_places

    def oracle_actions(self) -> np.ndarray:
        """Return the true patches; before the query phase the first of them."""
        cell = self._episodes.query_cell[self._rows, self._query_step() + 1]
        patches = self._patches[self._rows, cell].reshape(self.num_envs, -1)
        return np.clip(patches / 127.5 - 1.0, -1.0, 1.0).astype(np.float32)

    def render(self, i: int) -> np.ndarray:
        """Render picture, current cell and patches of the query; uint8, (352, 782, 3).

        What was not observed yet is dark. Beside it are the current patch or that of the query, then rows
        of the true patches, each above the produced ones.
        """
        episodes, step, produced = self._episodes, self._path_step()[i], self._step[i] - self.world.num_steps
        in_query = bool(self._in_query()[i])
        cell = episodes.query_cell[i, self._query_step()[i] + 1] if in_query else episodes.cell[i, step]
        return draw_scene(
            self.world.pictures.read(int(episodes.picture[i])),
            seen=episodes.cell[i, : step + 1],
            cell=int(cell),
            observed=self._patches[i, episodes.query_cell[i, 0] if in_query else cell],
            targets=self._patches[i, episodes.query_cell[i, 1:]],
            produced=self._produced[i, : max(0, int(produced))],
        )

    def draw_map(self, i: int, path: np.ndarray) -> np.ndarray:
        """Draw the picture with a path through the centres of the cells; 352 x 352."""
        return draw_path(self.world.pictures.read(int(self._episodes.picture[i])), path)

    def map_pixels(self, i: int, poses: np.ndarray) -> np.ndarray:
        """Convert poses to pixels of the map, the centres of the patches."""
        return path_pixels(poses)

    def _query_step(self) -> np.ndarray:
        """Move of the query, int64, (N,); the first one before it, the last one after it."""
        return np.clip(self._step - self.world.num_steps, 0, self.world.query_moves - 1)

    @staticmethod
    def _poses(cells: np.ndarray) -> np.ndarray:
        """Column, and row from below, of cells (K,); float32, (K, 2)."""
        return (cell_positions(cells) * (1, -1) + (0, GRID - 1)).astype(np.float32)


class FFHQWorldLongStay(FFHQWorld):
    """Produce the patches of a picture of which one region was seen far longer than the rest.

    The path has 512 steps. After 224 of them it stays for 256 steps in the region where it is, one of 16 clusters
    of cells, moving at random; then it goes on for 32 steps. A memory of 256 steps that evicts the oldest has only a
    third of the cells at the end; one that evicts the oldest of the most visited place has 99 of 100.

    Termination:
        After the last patch, 544 steps after the reset.

    See Also:
        `FFHQWorld`: observation, action, reward and the rest.
    """

    config: LongStayConfig
    config_type = LongStayConfig
