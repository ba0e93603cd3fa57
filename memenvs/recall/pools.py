"""Pictures that are drawn once, and episodes of them, for supervised learning.

Most of the time of an episode is drawing. A pool draws the pictures of some tours or positions once. Its episodes refer
to them, and each is an episode of the environment too, by its layout, key and query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.checks import check_int
from memenvs.episode_keys import KEY_LIMIT
from memenvs.recall.color_recall import ColorRecall, draw_square, paint_square
from memenvs.recall.config import ColorRecallConfig, ViewRecallConfig
from memenvs.recall.env import RecallHomes
from memenvs.recall.tours import make_tour
from memenvs.recall.turns import NUM_HEADINGS, NUM_PLACES, make_turns
from memenvs.recall.view_recall import PANORAMA_HEADINGS, ViewRecall, panorama_poses


@dataclass(frozen=True, eq=False)
class ColorEpisodes:
    """B episodes of ColorRecall in a pool.

    Attributes:
        tour: int64, (B,); number of the tour in the pool.
        colour: int64, (B,); colour of the square, the answer.
        square: int64, (B, 2); row and column of its upper left corner.
    """

    tour: np.ndarray
    colour: np.ndarray
    square: np.ndarray

    def __len__(self) -> int:
        return len(self.tour)


class ColorPool:
    """Tours of ColorRecall with their images.

    Args:
        config: Settings of the task.
        tours: Number of tours; the images of one take T * H * W * 3 bytes, 8.5 MB with the defaults.
        seed: Seed of the tours; >= 0.

    Attributes:
        images: uint8, (tours, T, H, W, 3); without squares.
        pose: float64, (tours, T, 3); m and rad.
        move: int8, (tours, T).
        place: int16, (tours, T).
        layout: int64, (tours,); the homes in turn.
        key: int64, (tours,).

    Raises:
        ValueError: A number is out of range.
    """

    def __init__(self, config: ColorRecallConfig, *, tours: int = 64, seed: int = 0) -> None:
        check_int("tours", tours)
        check_int("seed", seed, 0)
        self.config = config
        homes = RecallHomes(config, ColorRecall.__name__)
        steps = sum(config.steps)
        self.layout = np.arange(tours) % len(homes)
        self.key = np.random.default_rng(seed).integers(KEY_LIMIT, size=tours)
        self.images = np.zeros((tours, steps, *config.image_size, 3), np.uint8)
        self.pose = np.zeros((tours, steps, 3))
        self.move = np.zeros((tours, steps), np.int8)
        self.place = np.zeros((tours, steps), np.int16)
        cameras = homes.cameras(config, config.threads)
        for k in range(tours):
            home = homes.load(int(self.layout[k]))
            tour = make_tour(home, int(self.key[k]), config.steps, config.capacity)
            self.pose[k], self.move[k], self.place[k] = tour.pose, tour.move, tour.place
            cameras.draw_all(home, tour.pose, self.images[k])
        cameras.close()

    def sample_batch(self, batch: int, rng: np.random.Generator) -> ColorEpisodes:
        """Draw episodes: a tour, a colour and a position each."""
        squares = [draw_square(self.config, rng) for _ in range(batch)]
        return ColorEpisodes(
            tour=rng.integers(len(self.key), size=batch),
            colour=np.array([colour for colour, _ in squares], np.int64).reshape(batch),
            square=np.array([square for _, square in squares], np.int64).reshape(batch, 2),
        )

    def first_images(self, episodes: ColorEpisodes) -> np.ndarray:
        """Return the images of the first step, with the squares; uint8, (B, H, W, 3).

        The others are `images[episodes.tour]`. The query is their first, without the square.
        """
        images = self.images[episodes.tour, 0]
        for image, colour, square in zip(images, episodes.colour, episodes.square, strict=True):
            paint_square(image, int(colour), square, self.config.square_size)
        return images


@dataclass(frozen=True, eq=False)
class ViewEpisodes:
    """B episodes of ViewRecall in a pool.

    Attributes:
        position: int64, (B,); number of the position in the pool.
        key: int64, (B,); number of the sequence of turns.
        heading: int64, (B, T); number of the picture at each step, 0 to 29.
        move: int8, (B, T).
        place: int16, (B, T).
        query: int64, (B,); direction to draw, 0 to 9; picture 30 + query is the answer.
    """

    position: np.ndarray
    key: np.ndarray
    heading: np.ndarray
    move: np.ndarray
    place: np.ndarray
    query: np.ndarray

    def __len__(self) -> int:
        return len(self.position)


class ViewPool:
    """Positions of ViewRecall with their pictures.

    Args:
        config: Settings of the task.
        positions: Number of positions; the pictures of one take 40 * H * W * 3 bytes, 0.85 MB with the defaults.
        seed: Seed of the positions; >= 0.

    Attributes:
        pictures: uint8, (positions, 40, H, W, 3); in the 30 observed headings, then in the 10 queried ones.
        start: float64, (positions, 3); x, y (m) and the first heading (rad).
        layout: int64, (positions,); the homes in turn.

    Raises:
        ValueError: A number is out of range.
    """

    def __init__(self, config: ViewRecallConfig, *, positions: int = 1000, seed: int = 0) -> None:
        check_int("positions", positions)
        check_int("seed", seed, 0)
        self.config = config
        homes = RecallHomes(config, ViewRecall.__name__)
        rng = np.random.default_rng(seed)
        self.layout = np.arange(positions) % len(homes)
        self.start = np.zeros((positions, 3))
        self.pictures = np.zeros((positions, len(PANORAMA_HEADINGS), *config.image_size, 3), np.uint8)
        cameras = homes.cameras(config, config.threads)
        for k in range(positions):
            home = homes.load(int(self.layout[k]))
            self.start[k] = home.random_pose(rng)
            cameras.draw_all(home, panorama_poses(self.start[k]), self.pictures[k])
        cameras.close()

    def sample_batch(self, batch: int, rng: np.random.Generator) -> ViewEpisodes:
        """Draw episodes: a position, a sequence of turns and a direction each."""
        key = rng.integers(KEY_LIMIT, size=batch)
        turns = [make_turns(number, self.config.steps) for number in key.tolist()]
        return ViewEpisodes(
            position=rng.integers(len(self.start), size=batch),
            key=key,
            heading=np.stack([part.heading for part in turns]),
            move=np.stack([part.move for part in turns]),
            place=np.stack([part.place for part in turns]),
            query=rng.integers(NUM_PLACES, size=batch),
        )

    def observed(self, episodes: ViewEpisodes) -> np.ndarray:
        """Return the pictures of all steps, uint8, (B, T, H, W, 3)."""
        return self.pictures[episodes.position[:, None], episodes.heading]

    def targets(self, episodes: ViewEpisodes) -> np.ndarray:
        """Return the pictures to draw, uint8, (B, H, W, 3)."""
        return self.pictures[episodes.position, NUM_HEADINGS + episodes.query]
