"""ColorRecall: name the colour of a square seen at the start of a tour through a home."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from memenvs.checks import option_number
from memenvs.houses.rendering.topdown import Marker
from memenvs.houses.rendering.viewer import MapOverlay
from memenvs.recall.config import ColorRecallConfig
from memenvs.recall.env import Recall, draw_key
from memenvs.recall.tours import NO_MOVE, make_tour
from memenvs.task import Observation, Options

COLOURS = ("red", "blue", "green", "cyan", "grey", "yellow")
#: uint8, (6, 3); their sRGB values.
RGB = np.array(
    [(255, 0, 0), (0, 0, 255), (0, 255, 0), (0, 255, 255), (128, 128, 128), (255, 255, 0)],
    np.uint8,
)


class ColorRecall(Recall):
    """Name the colour of a square that was in the first view of a long tour.

    The environment moves the observer. The first image has a coloured square somewhere, which is gone from the second
    on. For 200 steps the observer follows shortest paths to places of a home; for 200 more it stays near the end. Then
    it is shown the first view without the square, and answers with the colour.

    Observation:
        rgb: uint8, (84, 84, 3).
        phase: `Discrete(2)`; 1 in the query phase, else 0.
        move: `Discrete(4)`; the move that led here: 0 forward 0.25 m, 1 left, 2 right by 10 degrees, 3 none.

    Action:
        `Discrete(6)`: a colour. Actions before the query phase have no effect.

    Reward:
        1 for the colour of the square, else 0.

    Termination:
        At the answer, 401 steps after the reset.

    Layout:
        Number of the home among those of its world that can be played: those with two places. By default every episode
        is in another home.

    Options:
        key: int; number of the tour.
        colour: Number or name of the colour: 0 red, 1 blue, 2 green, 3 cyan, 4 grey, 5 yellow.
        square: (row, column) of the square's upper left corner, pixels.

    Info:
        pose: (x m, y m, heading rad); in the query phase that of the last step.
        place: Number of the nearest room centre; in the query phase that of the last step. `PlaceWrapper` adds it to
            observations.
        scene_id: Name of the home.
        key, colour, square: As in the options.
        success: True if the answer was correct.

    Without memory:
        All colours and positions are equally likely, and nothing after the first image depends on them. So no policy
        without memory answers more than 1 of 6 episodes correctly, nor does one whose memory has lost the first image:
        over 1,000 episodes the best fixed answer is correct in 0.174, a random one in 0.183, and the oracle's in all.
        The rule `ideal`, which compares the first image with the query, is always correct, too. A memory of 200 steps
        has the first image in all episodes with the strategy MVFO, and in none with FIFO.
        The previous action reads "none" before the query. A policy that saw its own ignored actions could repeat the
        colour as its action from step to step; it would be always correct without any other memory.

    Batches:
        `make_query_task("memenvs/ColorRecall-v0", {})` of `memenvs.query_task` draws the images of 256 tours once
        (`memenvs.recall.pools.ColorPool`), for supervised learning. They take 2.2 GB, those of
        validation 0.5 GB and of the test 1.1 GB. Any tour goes with any square, so that they make 9 million episodes.

    Source:
        Cho, Yoon and Ahn, "Spatially-Aware Transformer for Embodied Agents", ICLR 2024 (arXiv:2402.15160), appendix
        D.11, in Habitat. The size of square, images, steps and turns is this project's.
    """

    config: ColorRecallConfig
    option_names = ("key", "colour", "square")
    action_names = COLOURS
    config_type = ColorRecallConfig
    query_task = "memenvs.recall.queries:ColorQueries"

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = config = ColorRecallConfig(**kwargs)  # type: ignore[arg-type]
        super().__init__(num_envs, sum(config.steps))
        self.action_space = gym.spaces.Discrete(len(COLOURS))
        self.observation_space = gym.spaces.Dict(
            {
                "rgb": gym.spaces.Box(0, 255, (*config.image_size, 3), np.uint8),
                "phase": gym.spaces.Discrete(2),
                "move": gym.spaces.Discrete(NO_MOVE + 1),
            }
        )
        self._cameras = self._homes.cameras(config, num_envs)
        self._images = np.zeros((num_envs, *config.image_size, 3), np.uint8)
        self._colour = np.zeros(num_envs, np.int64)
        self._square = np.zeros((num_envs, 2), np.int64)

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Move the observer into a home."""
        super().begin_trial(i, layout, rng)
        self._cameras.enter(i, self.home(i))

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Draw the tour and the square."""
        config = self.config
        key = draw_key(rng, options)
        colour, square = draw_square(config, rng)
        tour = make_tour(self.home(i), key, config.steps, config.capacity)
        if options.get("colour") is not None:
            colour = option_number("colour", options["colour"], COLOURS)
        self._colour[i] = colour
        self._square[i] = square if options.get("square") is None else _check_square(options["square"], config)
        self._key[i] = key
        self._pose[i], self._move[i], self._place[i] = tour.pose, tour.move, tour.place
        self._step[i] = 0
        self._success[i] = False

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Go to the next step of the tour, or check the answer."""
        return self._compare(actions, self._colour, active)

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write image, phase and move."""
        self._draw(env_mask)
        in_query_phase = self._in_query()
        out["rgb"][env_mask] = self._images[env_mask]
        out["phase"][env_mask] = in_query_phase[env_mask]
        move = np.where(in_query_phase, NO_MOVE, self._move[self._rows, self._path_step()])
        out["move"][env_mask] = move[env_mask]

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        t = self._path_step()
        return {
            "pose": self._pose[self._rows, t].astype(np.float32),
            "place": self._place[self._rows, t],
            "scene_id": self._scene_id,
            "key": self._key,
            "colour": self._colour,
            "square": self._square,
            "success": self._success,
        }

    def tours(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw all views of the present tours.

        Returns:
            Views without squares, uint8, (N, T, H, W, 3); the first ones with squares, (N, H, W, 3); and the place of
            each step, int64, (N, T).
        """
        views = np.zeros((self.num_envs, self._num_steps, *self.config.image_size, 3), np.uint8)
        cameras = self._homes.cameras(self.config, self.config.threads)  # others, since these go to every home
        for i in range(self.num_envs):
            cameras.draw_all(self.home(i), self._pose[i], views[i])
        cameras.close()
        first = views[:, 0].copy()
        for image, colour, square in zip(first, self._colour, self._square, strict=True):
            paint_square(image, int(colour), square, self.config.square_size)
        return views, first, self._place.copy()

    @property
    def num_places(self) -> int | None:
        """Largest number of rooms in a home of this world; None if the world does not bound it."""
        return self._homes.max_rooms

    def oracle_actions(self) -> np.ndarray:
        """Return the colours of the squares."""
        return self._colour.copy()

    def close(self) -> None:
        """Stop the rendering threads."""
        self._cameras.close()

    def _draw(self, env_mask: np.ndarray) -> None:
        """Draw the images of some environments; in the query phase the first view."""
        step = np.where(self._in_query(), 0, self._step)
        self._cameras.draw(self._pose[self._rows, step], env_mask, self._images)
        for i in np.flatnonzero(env_mask & (self._step == 0)):
            paint_square(self._images[i], self._colour[i], self._square[i], self.config.square_size)

    def _picture(self, i: int) -> np.ndarray:
        self._draw(self._rows == i)
        return self._images[i]

    def _overlay(self, i: int) -> MapOverlay:
        x, y, _ = self._pose[i, 0].tolist()
        red, green, blue = RGB[self._colour[i]].tolist()
        return MapOverlay(markers=(Marker((x, y), (red, green, blue), radius=0.18),))


def draw_square(config: ColorRecallConfig, rng: np.random.Generator) -> tuple[int, np.ndarray]:
    """Draw a square.

    Returns:
        Number of its colour, and its upper left corner: int64, (2,); row and column.
    """
    rows, columns = config.image_size
    room = (rows - config.square_size + 1, columns - config.square_size + 1)
    return int(rng.integers(len(COLOURS))), rng.integers(room)


def paint_square(image: np.ndarray, colour: int, square: np.ndarray, size: int) -> None:
    """Paint a square into an image.

    Args:
        image: uint8, (H, W, 3); written.
        colour: Number of the colour.
        square: int64, (2,); row and column of the upper left corner.
        size: Its side, pixels.
    """
    row, column = square.tolist()
    image[row : row + size, column : column + size] = RGB[colour]


def _check_square(value: object, config: ColorRecallConfig) -> np.ndarray:
    """Check the option `square`."""
    limits = np.array(config.image_size) - config.square_size
    square = np.asarray(value)
    if square.shape != (2,) or square.dtype.kind not in "iu" or (square < 0).any() or (square > limits).any():
        raise ValueError(
            f"option 'square' must be two integers, row 0 ... {limits[0]} and column 0 ... {limits[1]}, got {value!r}"
        )
    return square
