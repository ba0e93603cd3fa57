"""The depth camera of the Fetch robot, a Primesense Carmine 1.09: its rays and its noise.

The robot observes a subset of the sensor's 480 x 640 pixels; an image of 48 x 64 is every tenth pixel of every tenth
row. Only those pixels are rendered.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.houses.rendering.camera import Camera
from memenvs.random import fill_table_normals

#: Rows and columns of the sensor.
SENSOR_SIZE = (480, 640)
#: Focal length in pixels of the sensor (factory calibration).
SENSOR_FOCAL = 574.05
HFOV_DEG = math.degrees(2.0 * math.atan(SENSOR_SIZE[1] / 2 / SENSOR_FOCAL))
#: Position of the camera: ahead of the robot's axis and above the floor, m.
CAMERA_AHEAD = 0.164
CAMERA_HEIGHT = 1.061
#: Rows and columns that the robot observes.
IMAGE_SIZE = (48, 64)
#: Row of the image that a scan observes. It contains most of the targets of Search that the image shows, whereas the
#: level row 24 passes above tables and sofas.
SCAN_ROW = 32
#: Largest depth that is measured, m.
DEPTH_RANGE = 5.0
#: Standard deviation of a measured depth, m.
DEPTH_NOISE = 0.05
#: Smallest depth that is measured, m; a depth that noise makes smaller is raised to it.
MIN_DEPTH = 0.001
#: Random numbers reserved for each step. One number serves four pixels, and the sensor has fewer than
#: 4 x 2**17 pixels.
_NUMBERS_PER_STEP = 2**17
#: Pixels that are measured at a time, few enough for the L1 cache of a processor.
_BLOCK = 512


def frame_camera(size: tuple[int, int]) -> Camera:
    """Make the camera with images of `size` (rows, columns): every k-th pixel of the sensor.

    Raises:
        ValueError: The size of the sensor is no multiple of `size`.
    """
    height, width = size
    if min(size) < 1 or SENSOR_SIZE[0] % height or SENSOR_SIZE[0] * width != SENSOR_SIZE[1] * height:
        raise ValueError(
            f"image_size must be (480, 640) divided by an integer, such as (48, 64) or (24, 32), got {tuple(size)}"
        )
    return Camera(height=height, width=width, hfov_deg=HFOV_DEG, sample_of=SENSOR_SIZE)


def scan_camera() -> Camera:
    """Make the camera of scans: row `SCAN_ROW` of the 48 x 64 image, 8.0 degrees below level."""
    column, row = frame_camera(IMAGE_SIZE).centre
    return Camera(height=1, width=IMAGE_SIZE[1], hfov_deg=HFOV_DEG, principal_point=(column, row - SCAN_ROW))


@njit(nogil=True, cache=True)
def sense_depth(depth: np.ndarray, rows: np.ndarray, keys: np.ndarray, steps: np.ndarray, out: np.ndarray) -> None:
    """Simulate the depths that the sensor measures: noise and a limited range.

    Args:
        depth: float32, (N, P); true depth of the P pixels, m; 0 where nothing is hit.
        rows: int64, (R,); indices of the robots whose images are measured.
        keys: uint64, (N,); streams of random numbers, see `memenvs.random`.
        steps: int64, (N,); number of the step in its episode.
        out: float32, (N, P); written in those rows: depth with noise, m, > 0; 0 where nothing is hit within 5 m.

    Source:
        SMT: values up to 5 m, zero-mean Gaussian noise of 0.05 m for each pixel.
    """
    noise = np.float32(DEPTH_NOISE)
    farthest = np.float32(DEPTH_RANGE)
    nearest = np.float32(MIN_DEPTH)
    for i in rows:
        counter = np.uint64(steps[i]) * np.uint64(_NUMBERS_PER_STEP)
        for first in range(0, depth.shape[1], _BLOCK):
            true, measured = depth[i, first : first + _BLOCK], out[i, first : first + _BLOCK]
            fill_table_normals(keys[i], counter + np.uint64(first // 4), measured)  # four pixels take one number
            for k in range(len(true)):
                noisy = max(true[k] + noise * measured[k], nearest)
                measured[k] = noisy if np.float32(0.0) < true[k] <= farthest else np.float32(0.0)
