"""The symbolic observation of ExtObjNav: 52 numbers, for policies without an image encoder."""

from __future__ import annotations

import numpy as np
from numba import njit

from memenvs.houses.classes import CLASS_INDEX, FIRST_YCB_CLASS, YCB_CLASSES
from memenvs.houses.rendering.camera import Camera

#: Camera of the image that the numbers are computed from.
SYMBOLIC_CAMERA = Camera(height=64, width=64, hfov_deg=90.0)
NUM_RAYS = 32
SYMBOLIC_SIZE = len(YCB_CLASSES) + NUM_RAYS
#: Largest distance of a ray, m.
RAY_RANGE = 10.0
_FULL_PIXELS = 256 * 256  # of the image that areas are scaled to, that of the paper's camera
_NON_OBSTACLES = np.array([CLASS_INDEX[name] for name in ("outside", "floor", "ceiling")], np.uint8)


def encode_symbolic(semantic: np.ndarray, depth: np.ndarray, env_mask: np.ndarray, out: np.ndarray) -> None:
    """Compute areas of the 20 categories and distances of obstacles from images of 64 x 64.

    Args:
        semantic: uint8, (N, 64, 64).
        depth: float32, (N, 64, 64, 1); m.
        env_mask: bool, (N,); rows to write.
        out: float32, (N, 52); written. 0 ... 19: log(1 + a) / log(1 + 65536), where a is the number of pixels of the
            category, times 16 so that it counts pixels of a 256 x 256 image. 20 ... 51: depth of the nearest obstacle
            in each strip of two columns, from left to right, divided by 10 m; at most 1. Floor, ceiling and outside are
            no obstacles.
    """
    _encode_symbolic(semantic, depth, env_mask, _NON_OBSTACLES, out)


@njit(nogil=True, cache=True)
def _encode_symbolic(
    semantic: np.ndarray, depth: np.ndarray, env_mask: np.ndarray, non_obstacles: np.ndarray, out: np.ndarray
) -> None:
    """See `encode_symbolic`; `non_obstacles` are the classes that do not stop a ray."""
    rows, columns = semantic.shape[1:]
    first_ray = out.shape[1] - NUM_RAYS
    is_obstacle = np.ones(256, np.bool_)
    is_obstacle[non_obstacles] = False
    scale = _FULL_PIXELS / (rows * columns)
    for n in range(len(env_mask)):
        if not env_mask[n]:
            continue
        out[n, :first_ray] = 0.0
        out[n, first_ray:] = RAY_RANGE
        for i in range(rows):
            for j in range(columns):
                label = semantic[n, i, j]
                if label >= FIRST_YCB_CLASS:
                    out[n, label - FIRST_YCB_CLASS] += 1.0
                ray = first_ray + j * NUM_RAYS // columns
                if is_obstacle[label] and depth[n, i, j, 0] < out[n, ray]:
                    out[n, ray] = depth[n, i, j, 0]
        for k in range(first_ray):
            out[n, k] = np.log(1.0 + out[n, k] * scale) / np.log(1.0 + _FULL_PIXELS)
        for k in range(first_ray, out.shape[1]):
            out[n, k] /= RAY_RANGE
