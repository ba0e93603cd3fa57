"""Which of the 20 things are in a picture: what the visual encoder is pre-trained on, and how well it knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from memenvs.agents.encoders.visual import GRID
from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.rendering.renderer import Renderer
from memenvs.houses.simulator import COUNTING_CAMERA, PixelCounter, head_camera_poses
from memenvs.houses.worlds import HouseWorld
from memenvs.objectnav.env import ExtObjNavConfig
from memenvs.objectnav.layout import Layout, make_layout
from memenvs.objectnav.robot import ladder_pitch

#: A category is present if a thing of it has more pixels than this in the 256 x 256 image.
PRESENCE_PIXELS = 10
#: The robot faces its thing up to this angle to the left or right, rad.
MAX_YAW_OFFSET = np.pi / 6
#: States of the camera's tilt: looked up once, at the start of an episode, looked down once, twice and three times; degrees.
TILTS_DEG = np.array([20.0, 36.87, 66.87, 96.87, 100.0])


class PresenceDataset(NamedTuple):
    """Pictures and what is in them.

    Attributes:
        images: uint8, (B, 128, 128, 3); means of 2 x 2 pixels of the 256 x 256 image.
        pixels: int32, (B, 20); of the thing of each category that has most, in the 256 x 256 image.
        cells: uint8, (B, 8, 8, 20); the same for each cell of a grid over the image, at most 255.
    """

    images: np.ndarray
    pixels: np.ndarray
    cells: np.ndarray

    @property
    def present(self) -> np.ndarray:
        """bool, (B, 20); which categories are in the pictures."""
        return self.pixels > PRESENCE_PIXELS


def render_dataset(
    world: HouseWorld,
    layouts: Sequence[int],
    per_layout: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> PresenceDataset:
    """What the robot sees in front of random things.

    It stands on a random viewpoint of a random thing of the layout, faces it up to `MAX_YAW_OFFSET` to the side, and tilts its camera to the
    state that looks at the thing best.

    Args:
        world: Homes.
        layouts: Numbers of layouts of ExtObjNav in it.
        per_layout: Pictures in each layout, one after the other in the result.
        seed: Of things and poses.
        progress: Called with the number of pictures that were drawn since.

    Source:
        ReLIC, appendix D: the robot is placed in front of a random object in the training scenes; a category is present if an instance
        has more than 10 pixels.
    """
    settings = ExtObjNavConfig()
    counter, renderer = PixelCounter(), Renderer(COUNTING_CAMERA, 1)
    side = COUNTING_CAMERA.height
    rgb, instance = np.empty((1, side, side, 3), np.uint8), np.empty((1, side, side), np.uint16)
    column = np.arange(side) * GRID // side
    cell = column[:, None] * GRID + column
    count, kinds = len(layouts) * per_layout, len(YCB_CLASSES)
    pictures = PresenceDataset(
        np.empty((count, side // 2, side // 2, 3), np.uint8),
        np.zeros((count, kinds), np.int32),
        np.zeros((count, GRID, GRID, kinds), np.uint8),
    )
    for n, number in enumerate(layouts):
        layout = make_layout(
            world,
            number,
            count_range=settings.num_objects,
            categories=tuple(range(kinds)),
            tilt_mode=settings.tilt_mode,
            counter=counter,
        )
        renderer.set_scene(0, layout.scene)
        poses = _camera_poses(layout, per_layout, np.random.default_rng([seed, number]))
        for k in range(per_layout):
            renderer.render(poses[k : k + 1], rgb=rgb, instance=instance)
            row = n * per_layout + k
            pictures.images[row] = _downsample(rgb[0])
            number_and_cell = instance[0].astype(np.int64) * GRID**2 + cell
            pixels = np.bincount(number_and_cell.ravel(), minlength=GRID**2 * (int(layout.instance.max()) + 1))
            pixels = pixels.reshape(-1, GRID**2)[layout.instance]  # (M, GRID * GRID)
            np.maximum.at(pictures.pixels[row], layout.category, pixels.sum(1))
            in_cells = pictures.cells[row].reshape(GRID**2, kinds)
            np.maximum.at(in_cells.T, layout.category, np.minimum(pixels, 255).astype(np.uint8))
        if progress is not None:
            progress(per_layout)
    return pictures


def _camera_poses(layout: Layout, count: int, rng: np.random.Generator) -> np.ndarray:
    """Poses of the head camera in front of random things, float64, (count, 5)."""
    things = rng.integers(len(layout.category), size=count)
    cells = np.array([layout.viewpoints[thing][rng.integers(len(layout.viewpoints[thing]))] for thing in things])
    position, target = layout.navmap.points(cells), layout.position[things]
    ahead = target[:, :2] - position
    heading = np.arctan2(ahead[:, 1], ahead[:, 0]) + rng.uniform(-MAX_YAW_OFFSET, MAX_YAW_OFFSET, count)
    poses = head_camera_poses(position, heading, np.zeros(count))
    wanted = np.arctan2(target[:, 2] - poses[:, 2], np.hypot(*(target[:, :2] - poses[:, :2]).T))
    pitches = ladder_pitch(TILTS_DEG)
    poses[:, 4] = pitches[np.abs(pitches - wanted[:, None]).argmin(1)]
    return poses


def _downsample(image: np.ndarray) -> np.ndarray:
    """Means of 2 x 2 pixels, rounded; uint8, (2 H, 2 W, C) -> (H, W, C)."""
    wide = image.astype(np.uint16)
    return ((wide[::2, ::2] + wide[1::2, ::2] + wide[::2, 1::2] + wide[1::2, 1::2] + 2) // 4).astype(np.uint8)


def presence_loss(logits: Tensor, present: Tensor) -> Tensor:
    """Dice loss plus binary cross-entropy, a scalar.

    Args:
        logits: float, (..., 20).
        present: float, (..., 20); 0 or 1.

    Source:
        ReLIC, appendix D, names the Dice loss; per picture it is taken as 1 - (2 sum p y + 1) / (sum p + sum y + 1), p the sigmoid.
    """
    p = torch.sigmoid(logits)
    dice = 1 - (2 * (p * present).sum(-1) + 1) / (p.sum(-1) + present.sum(-1) + 1)
    return dice.mean() + torch.nn.functional.binary_cross_entropy_with_logits(logits, present)


def f1_scores(found: np.ndarray, present: np.ndarray) -> np.ndarray:
    """F1 = 2 TP / (2 TP + FP + FN) of each category, 0 where nothing was there and nothing was found.

    Args:
        found: bool, (B, K); what the encoder says.
        present: bool, (B, K); what is there.

    Returns:
        float64, (K,); its mean is the macro-F1.
    """
    hits, total = (found & present).sum(0), found.sum(0) + present.sum(0)
    return 2 * hits / np.maximum(total, 1)
