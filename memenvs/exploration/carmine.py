"""The Primesense Carmine 1.09 on the Fetch head: its rays, and what it knows of depth.

Of its 640 x 480 pixels only those are drawn that the robot observes: 64 x 48 of them are every tenth pixel of every tenth row.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.houses.rendering.camera import Camera
from memenvs.random import fill_table_normals

#: Rows and columns of the sensor, and its focal length in its own pixels (factory calibration).
SENSOR_SIZE, SENSOR_FOCAL = (480, 640), 574.05
HFOV_DEG = math.degrees(2.0 * math.atan(SENSOR_SIZE[1] / 2 / SENSOR_FOCAL))
#: Where it sits: ahead of the robot's axis and above the floor, m.
CAMERA_AHEAD, CAMERA_HEIGHT = 0.164, 1.061
#: Rows and columns that the robot observes.
IMAGE_SIZE = (48, 64)
#: The row that a scan is of: most of what Search looks for is in it where it is in the image. The level row 24 passes above tables and sofas.
SCAN_ROW = 32
#: What is further has no depth, m.
DEPTH_RANGE = 5.0
#: Standard deviation of a depth, and the least depth that noise leaves, m.
DEPTH_NOISE, LEAST_DEPTH = 0.05, 0.001
#: Random words of one step lie so far apart in the stream: enough for four pixels of the whole sensor each.
_WORDS_PER_STEP = 2**17
#: Pixels that are measured at a time, so that they stay in the nearest cache.
_BLOCK = 512


def frame_camera(size: tuple[int, int]) -> Camera:
    """The camera whose images are `size` (rows, columns): every k-th pixel of the sensor.

    Raises:
        ValueError: The sensor is no whole multiple of it.
    """
    height, width = size
    if min(size) < 1 or SENSOR_SIZE[0] % height or SENSOR_SIZE[0] * width != SENSOR_SIZE[1] * height:
        raise ValueError(
            f"image_size must be (480, 640) over a whole number, such as (48, 64) or (24, 32), got {tuple(size)}"
        )
    return Camera(height=height, width=width, hfov_deg=HFOV_DEG, sample_of=SENSOR_SIZE)


def scan_camera() -> Camera:
    """The camera that draws row `SCAN_ROW` of the 48 x 64 image and nothing else: 64 rays, in the middle 8.0 degrees below level."""
    column, row = frame_camera(IMAGE_SIZE).centre
    return Camera(height=1, width=IMAGE_SIZE[1], hfov_deg=HFOV_DEG, principal_point=(column, row - SCAN_ROW))


@njit(nogil=True, cache=True)
def sense_depth(depth: np.ndarray, rows: np.ndarray, keys: np.ndarray, steps: np.ndarray, out: np.ndarray) -> None:
    """What the sensor says of true depths.

    Args:
        depth: float32, (N, P); m, 0 where nothing is hit.
        rows: int64, (R,); the robots whose images are measured.
        keys: uint64, (N,); streams of random numbers, see `memenvs.random`.
        steps: int64, (N,); number of the step in its episode.
        out: float32, (N, P); written in those rows: 0 (not known) where nothing is hit within 5 m, else depth with noise, > 0.

    Source:
        SMT: values up to 5 m, zero-mean Gaussian noise of 0.05 m for each pixel.
    """
    noise, far, least = np.float32(DEPTH_NOISE), np.float32(DEPTH_RANGE), np.float32(LEAST_DEPTH)
    for i in rows:
        word = np.uint64(steps[i]) * np.uint64(_WORDS_PER_STEP)
        for first in range(0, depth.shape[1], _BLOCK):
            true, measured = depth[i, first : first + _BLOCK], out[i, first : first + _BLOCK]
            fill_table_normals(keys[i], word + np.uint64(first // 4), measured)
            for k in range(len(true)):
                noisy = max(true[k] + noise * measured[k], least)
                measured[k] = noisy if np.float32(0.0) < true[k] <= far else np.float32(0.0)
