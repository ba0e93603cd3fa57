"""Small pictures of homes with what the symbolic observation says about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from memenvs.agents.encoders.symbolic_encoder import CELLS, NUM_RAYS, PICTURE_SIZE
from memenvs.houses.classes import FIRST_YCB_CLASS, YCB_CLASSES
from memenvs.houses.homes_config import draw_start_pose
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.simulator import PixelCounter, head_camera_poses
from memenvs.houses.worlds import HouseWorld
from memenvs.objectnav.env import ExtObjNavConfig
from memenvs.objectnav.layout import Layout, make_layout
from memenvs.objectnav.robot import pitch_of
from memenvs.objectnav.symbolic import SYMBOLIC_SIZE, encode_symbolic

from .presence_dataset import nearest_pitches, poses_before_objects

#: Share of the pictures in which the robot stands before an object; in the others it stands anywhere.
OBJECT_SHARE = 0.6
#: Largest angle between the robot's heading and its object, rad.
MAX_YAW_OFFSET = np.pi / 5
#: Tilts that a robot reaches, degrees (see `pitch_of`); that of an episode's start twice, as it is the commonest.
TILTS_DEG = np.array([20.0, 36.87, 36.87, 40.0, 50.0, 60.0, 66.87, 70.0, 80.0, 90.0, 96.87, 100.0])


class SymbolicDataset(NamedTuple):
    """Pictures and their labels.

    Attributes:
        images: uint8, (B, 48, 64, 3).
        cells: bool, (B, 12, 16, 20); categories that have a pixel in each cell.
        pixels: uint16, (B, 20); pixels of each category.
        rays: float16, (B, 32); distances of obstacles as in the symbolic observation.
    """

    images: np.ndarray
    cells: np.ndarray
    pixels: np.ndarray
    rays: np.ndarray


def draw_symbolic_dataset(
    world: HouseWorld,
    layouts: Sequence[int],
    per_layout: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> SymbolicDataset:
    """Draw pictures in layouts with 30 to 40 objects of all categories.

    The robot stands at a random viewpoint of a random object and faces it roughly, in half of these cases with the tilt
    that centres it best. In the rest of the pictures it stands anywhere.

    Args:
        world: Homes.
        layouts: Numbers of ExtObjNav's layouts in it.
        per_layout: Pictures of each layout; they are consecutive in the result.
        seed: Seed of objects and poses.
        progress: Called with the number of pictures drawn since the last call.

    Returns:
        len(layouts) * per_layout pictures with their labels.
    """
    config = ExtObjNavConfig()
    counter = PixelCounter(world.make_renderer)
    height, width = PICTURE_SIZE
    renderer = world.make_renderer(Camera(height=height, width=width), per_layout)
    classes = np.zeros((per_layout, height, width), np.uint8)
    depth = np.zeros((per_layout, height, width, 1), np.float32)
    symbolic = np.zeros((per_layout, SYMBOLIC_SIZE), np.float32)
    count = len(layouts) * per_layout
    num_categories = len(YCB_CLASSES)
    data = SymbolicDataset(
        np.zeros((count, height, width, 3), np.uint8),
        np.zeros((count, *CELLS, num_categories), bool),
        np.zeros((count, num_categories), np.uint16),
        np.zeros((count, NUM_RAYS), np.float16),
    )
    for n, number in enumerate(layouts):
        layout = make_layout(
            world,
            number,
            count_range=config.num_objects,
            categories=tuple(range(num_categories)),
            counter=counter,
        )
        for i in range(per_layout):
            renderer.set_scene(i, layout.scene)
        rows = slice(n * per_layout, (n + 1) * per_layout)
        poses = _camera_poses(layout, per_layout, np.random.default_rng([seed, number]))
        renderer.render(poses, rgb=data.images[rows], semantic=classes, depth=depth)
        encode_symbolic(classes, depth, np.ones(per_layout, bool), symbolic)
        data.rays[rows] = symbolic[:, num_categories:]
        by_cell = classes.reshape(per_layout, CELLS[0], height // CELLS[0], CELLS[1], width // CELLS[1])
        for k in range(num_categories):
            mask = by_cell == FIRST_YCB_CLASS + k
            data.cells[rows, ..., k] = mask.any((2, 4))
            data.pixels[rows, k] = mask.sum((1, 2, 3, 4))
        if progress is not None:
            progress(per_layout)
    return data


def _camera_poses(layout: Layout, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw poses of the head camera, float64, (count, 5): x, y, z, heading, pitch."""
    before = round(count * OBJECT_SHARE)
    poses, centre_pitches = poses_before_objects(layout, before, MAX_YAW_OFFSET, rng)
    pitches = pitch_of(TILTS_DEG)
    centring = nearest_pitches(pitches, centre_pitches)
    poses[:, 4] = np.where(rng.random(before) < 0.5, centring, pitches[rng.integers(len(pitches), size=before)])
    starts = np.array([draw_start_pose(layout.navmap, rng) for _ in range(count - before)]).reshape(-1, 3)
    tilts = pitches[rng.integers(len(pitches), size=count - before)]
    return np.concatenate([poses, head_camera_poses(starts[:, :2], starts[:, 2], tilts)])
