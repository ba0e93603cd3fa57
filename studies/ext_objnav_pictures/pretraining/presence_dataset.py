"""Images of homes with labels of the object categories that they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from memenvs.agents.encoders.visual import GRID
from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.simulator import COUNTING_CAMERA, PixelCounter, head_camera_poses
from memenvs.houses.worlds import HouseWorld
from memenvs.objectnav.env import ExtObjNavConfig
from memenvs.objectnav.layout import Layout, make_layout
from memenvs.objectnav.robot import pitch_of

#: A category is present if one of its objects covers more pixels than this in the 256 x 256 image.
PRESENCE_PIXELS = 10
#: Largest angle between the robot's heading and its object, rad.
MAX_YAW_OFFSET = np.pi / 6
#: Tilts of the camera, degrees: angles from the vertical to the point it is aimed at (see `pitch_of`), after one
#: LOOK_UP, at the start of an episode, and after one to three LOOK_DOWNs.
TILTS_DEG = np.array([20.0, 36.87, 66.87, 96.87, 100.0])


class PresenceDataset(NamedTuple):
    """Images and, for each category, the size of its largest object.

    Attributes:
        images: uint8, (B, 128, 128, 3); the 256 x 256 image averaged over 2 x 2 pixels.
        pixels: int32, (B, 20); pixels of each category's largest object in the 256 x 256 image.
        cells: uint8, (B, 8, 8, 20); for each cell of an 8 x 8 grid over the image, the pixels of each category's
            largest object in the cell, at most 255.
    """

    images: np.ndarray
    pixels: np.ndarray
    cells: np.ndarray

    @property
    def present(self) -> np.ndarray:
        """bool, (B, 20); categories that are present in each image."""
        return self.pixels > PRESENCE_PIXELS


def render_dataset(
    world: HouseWorld,
    layouts: Sequence[int],
    per_layout: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> PresenceDataset:
    """Render the robot's view of random objects.

    The robot stands at a random viewpoint of a random object of the layout. It faces the object with a random offset of
    at most `MAX_YAW_OFFSET`. Its camera has the tilt of `TILTS_DEG` that centres the object best.

    Args:
        world: Homes.
        layouts: Numbers of ExtObjNav's layouts in it.
        per_layout: Images of each layout; they are consecutive in the result.
        seed: Seed of objects and poses.
        progress: Called with the number of images rendered since the last call.

    Returns:
        len(layouts) * per_layout images with their labels.

    Source:
        ReLIC, appendix D: the robot is placed in front of a random object in the training scenes. A category is present
        if an instance has more than 10 pixels.
    """
    config = ExtObjNavConfig()
    counter = PixelCounter(world.make_renderer)
    renderer = world.make_renderer(COUNTING_CAMERA, 1)
    side = COUNTING_CAMERA.height
    rgb = np.empty((1, side, side, 3), np.uint8)
    instance = np.empty((1, side, side), np.uint16)
    column = np.arange(side) * GRID // side
    cell = column[:, None] * GRID + column  # (side, side): number of each pixel's cell
    count = len(layouts) * per_layout
    n_classes = len(YCB_CLASSES)
    data = PresenceDataset(
        np.empty((count, side // 2, side // 2, 3), np.uint8),
        np.zeros((count, n_classes), np.int32),
        np.zeros((count, GRID, GRID, n_classes), np.uint8),
    )
    for n, number in enumerate(layouts):
        layout = make_layout(
            world,
            number,
            count_range=config.num_objects,
            categories=tuple(range(n_classes)),
            counter=counter,
        )
        renderer.set_scene(0, layout.scene)
        poses = _camera_poses(layout, per_layout, np.random.default_rng([seed, number]))
        for k in range(per_layout):
            renderer.render(poses[k : k + 1], rgb=rgb, instance=instance)
            row = n * per_layout + k
            data.images[row] = _downsample(rgb[0])
            # one histogram over (instance, cell) pairs counts every object in every cell
            pairs = instance[0].astype(np.int64) * GRID**2 + cell
            pixels = np.bincount(pairs.ravel(), minlength=GRID**2 * (int(layout.instance.max()) + 1))
            pixels = pixels.reshape(-1, GRID**2)[layout.instance]  # (objects, GRID * GRID)
            np.maximum.at(data.pixels[row], layout.category, pixels.sum(1))
            in_cells = data.cells[row].reshape(GRID**2, n_classes)
            np.maximum.at(in_cells.T, layout.category, np.minimum(pixels, 255).astype(np.uint8))
        if progress is not None:
            progress(per_layout)
    return data


def _camera_poses(layout: Layout, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw poses of the head camera in front of random objects; float64, (count, 5): x, y, z, heading, pitch."""
    poses, centre_pitches = poses_before_objects(layout, count, MAX_YAW_OFFSET, rng)
    poses[:, 4] = nearest_pitches(pitch_of(TILTS_DEG), centre_pitches)
    return poses


def poses_before_objects(
    layout: Layout, count: int, max_yaw_offset: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw level poses of the head camera, each at a random viewpoint of a random object.

    Args:
        layout: The objects.
        count: Number of poses.
        max_yaw_offset: Largest angle between heading and object, rad.
        rng: Random generator.

    Returns:
        float64, (count, 5); x, y, z, heading, pitch (0).
        float64, (count,); pitch at which the object would be in the centre, rad.
    """
    objects = rng.integers(len(layout.category), size=count)
    cells = np.array([layout.viewpoints[number][rng.integers(len(layout.viewpoints[number]))] for number in objects])
    position = layout.navmap.points(cells)  # (count, 2)
    target = layout.position[objects]  # (count, 3)
    ahead = target[:, :2] - position
    heading = np.arctan2(ahead[:, 1], ahead[:, 0]) + rng.uniform(-max_yaw_offset, max_yaw_offset, count)
    poses = head_camera_poses(position, heading, np.zeros(count))
    return poses, np.arctan2(target[:, 2] - poses[:, 2], np.hypot(*(target[:, :2] - poses[:, :2]).T))


def nearest_pitches(pitches: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the pitch, of those that a robot reaches, (P,), nearest to each target; rad."""
    return pitches[np.abs(pitches - targets[:, None]).argmin(1)]


def _downsample(image: np.ndarray) -> np.ndarray:
    """Average over 2 x 2 pixels, rounded; uint8, (2 H, 2 W, C) -> (H, W, C)."""
    wide = image.astype(np.uint16)
    return ((wide[::2, ::2] + wide[1::2, ::2] + wide[::2, 1::2] + wide[1::2, 1::2] + 2) // 4).astype(np.uint8)
