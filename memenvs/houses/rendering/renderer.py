"""Pictures of homes for many environments at once: colour, depth, semantic class and instance from one pass."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from memenvs.houses.house import House
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.culling import WEDGE_LEVELS, WEDGES, View, view_from
from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.texels import LOOK_SIZE, READY
from memenvs.houses.rendering.kernels.zbuffer import BLOCK, SPANS_SIZE, depth_block, read_depth
from memenvs.houses.rendering.materials import atlas, texture_table
from memenvs.houses.rendering.primitives import REALS, ROW, Size, set_up
from memenvs.houses.rendering.rasteriser import SPANS_ROOM, fill
from memenvs.houses.rendering.scene import INSTANCE, PIECE_CORNERS, SEMANTIC, Scene
from memenvs.houses.rendering.shading import LINE, colour

__all__ = ["Camera", "Frame", "Renderer", "Scene", "render_frame"]


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture.

    Attributes:
        rgb: uint8, (H, W, 3).
        depth: float32, (H, W, 1); m along the optical axis, 0 where nothing is hit.
        semantic: uint8, (H, W); index into `memenvs.houses.classes.CLASSES`.
        instance: uint16, (H, W); index into `House.instances`.
    """

    rgb: np.ndarray
    depth: np.ndarray
    semantic: np.ndarray
    instance: np.ndarray


@compiled
def _write_depth(keys: np.ndarray, mask: np.uint32, stride: int, out: np.ndarray) -> None:
    """Depth of a picture; `keys` uint32, (>= H * stride,), `out` float32, (H, W)."""
    whole = out.shape[1] - out.shape[1] % BLOCK
    for row in range(out.shape[0]):
        line, to = keys[row * stride : (row + 1) * stride], out[row]
        for first in range(0, whole, BLOCK):
            depth_block(line, np.uint64(first), mask, to, np.uint64(first))
        for k in range(whole, to.shape[0]):
            depth = read_depth(line[k], mask)
            to[k] = depth if line[k] > 0 else np.float32(0)


@compiled
def _write_numbers(keys: np.ndarray, mask: np.uint32, stride: int, values: np.ndarray, out: np.ndarray) -> None:
    """Whole numbers that belong to surfaces; `keys` as in `_write_depth`, `values` int32, (F,), `out` (H, W)."""
    for row in range(out.shape[0]):
        line, to = keys[row * stride : (row + 1) * stride], out[row]
        for k in range(to.shape[0]):
            to[k] = values[np.uint64(line[k] & mask)]


@compiled
def _render_one(
    view: View, size: Size, cull: bool, scene: tuple, pictures: tuple, wanted: tuple, images: tuple, work: tuple
) -> None:
    """Draws one environment into its images."""
    rgb, depth, semantic, instance = images
    surfaces, listed, hidden, corners, desk, classes, instances, keys, spans = work
    height, width, stride = size
    last = set_up(view, size, cull, scene, surfaces, listed, hidden, corners)
    for number in range(1, last + 1):
        classes[number] = scene[1][surfaces[0][number, ROW], SEMANTIC]
        instances[number] = scene[1][surfaces[0][number, ROW], INSTANCE]
        desk[0][number, READY] = 0.0
    possible, bits = 3 * scene[5] + 2 * len(scene[3]), 15  # of this home, so that pictures do not depend on other ones
    while bits < possible:
        bits = 2 * bits + 1
    mask = np.uint32(bits)
    fill(surfaces, last, size, keys, mask, spans)
    if wanted[0]:
        colour(view, size, scene, surfaces, keys, mask, pictures[0], pictures[1], desk, rgb)
    if wanted[1]:
        _write_depth(keys, mask, stride, depth.reshape(height, width))
    if wanted[2]:
        _write_numbers(keys, mask, stride, classes, semantic)
    if wanted[3]:
        _write_numbers(keys, mask, stride, instances, instance)


@compiled
def _render(
    envs: np.ndarray, poses: np.ndarray, camera: tuple, cull: bool, scenes: tuple, pictures: tuple, wanted: tuple,
    outputs: tuple, work: tuple,
) -> None:  # fmt: skip
    """Draws the environments `envs`, one after the other, into their rows of the output arrays."""
    height, width, focal, centre_i, centre_j = camera
    geometry, attributes, pieces, corners, occluders, counts, ceilings = scenes
    rgb, depth, semantic, instance = outputs
    size = (height, width, -(-width // BLOCK) * BLOCK)
    for k in range(len(envs)):
        env = envs[k]
        shapes, floors, walls = counts[env]
        view = view_from(poses[env], focal, centre_i, centre_j)
        scene = (
            geometry[env], attributes[env], pieces[env, :floors], corners[env, :floors], occluders[env, :walls], shapes,
            ceilings[env],
        )  # fmt: skip
        images = (
            rgb[env if wanted[0] else 0], depth[env if wanted[1] else 0], semantic[env if wanted[2] else 0],
            instance[env if wanted[3] else 0],
        )  # fmt: skip
        _render_one(view, size, cull, scene, pictures, wanted, images, work)


class Renderer:
    """Draws N environments, each from its own home, straight into the caller's arrays.

    The results depend on neither the number of threads nor the other environments. It can be pickled.
    """

    def __init__(self, camera: Camera, num_envs: int, *, threads: int = 1, cull: bool = True) -> None:
        """Makes room for `num_envs` homes; none is set yet.

        Args:
            camera: What all environments see with, unless `render` gets another one.
            num_envs: N; >= 1.
            threads: How many environments are drawn at a time; >= 1.
            cull: Leave out early what walls hide. False gives the same pictures, slower.

        Raises:
            ValueError: A number is too small.
        """
        for name, value in (("num_envs", num_envs), ("threads", threads)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.camera = camera
        self.num_envs = num_envs
        self.threads = threads
        self.cull = cull
        self._geometry = np.zeros((num_envs, 0, 12), np.float32)
        self._attributes = np.zeros((num_envs, 0, 5), np.int32)
        self._pieces = np.zeros((num_envs, 0, PIECE_CORNERS, 2))
        self._corners = np.zeros((num_envs, 0), np.int32)
        self._occluders = np.zeros((num_envs, 0, 5))
        self._counts = np.full((num_envs, 3), -1, np.int64)  # shapes, pieces, occluders; -1: no home yet
        self._ceilings = np.zeros(num_envs)
        self._pool: ThreadPoolExecutor | None = None
        self._scratch: dict[tuple[Camera, int], tuple] = {}

    def set_scene(self, env: int, scene: Scene) -> None:
        """Gives environment `env` another home; the arrays are copied.

        Raises:
            ValueError: There is no such environment.
        """
        if not 0 <= env < self.num_envs:
            raise ValueError(f"env must be 0 to {self.num_envs - 1}, got {env}")
        for name in ("geometry", "attributes", "pieces", "corners", "occluders"):
            new, held = getattr(scene, name), getattr(self, f"_{name}")
            if len(new) > held.shape[1]:
                larger = np.zeros((self.num_envs, len(new) + len(new) // 4 + 8, *held.shape[2:]), held.dtype)
                larger[:, : held.shape[1]] = held
                setattr(self, f"_{name}", larger)
                held = larger
                self._scratch.clear()
            held[env, : len(new)] = new
        self._counts[env] = scene.shapes, len(scene.pieces), len(scene.occluders)
        self._ceilings[env] = scene.height

    def render(
        self,
        poses: np.ndarray,
        *,
        rgb: np.ndarray | None = None,
        depth: np.ndarray | None = None,
        semantic: np.ndarray | None = None,
        instance: np.ndarray | None = None,
        env_mask: np.ndarray | None = None,
        camera: Camera | None = None,
    ) -> None:
        """Draws into the arrays that are given; what is not given is not computed.

        Args:
            poses: (N, 5); x, y, z of the eye in m, heading and pitch in rad.
            rgb: uint8, (N, H, W, 3); sRGB.
            depth: float32, (N, H, W, 1); m along the optical axis, 0 where nothing is hit.
            semantic: uint8, (N, H, W); index into `memenvs.houses.classes.CLASSES`, 0 where nothing is hit.
            instance: uint16, (N, H, W); index into `House.instances`, 0 for the building and where nothing is hit.
            env_mask: bool, (N,); the environments to draw, None for all. The rows of others are left as they are.
            camera: In place of the renderer's own.

        Raises:
            ValueError: An array has the wrong shape or type or is not contiguous, or a pose is not finite.
            RuntimeError: An environment to be drawn has no home.
        """
        camera = self.camera if camera is None else camera
        n, h, w = self.num_envs, camera.height, camera.width
        poses = np.ascontiguousarray(poses, np.float64)
        if poses.shape != (n, 5):
            raise ValueError(f"poses must have shape {(n, 5)}, got {poses.shape}")
        outputs = (
            _checked("rgb", rgb, np.uint8, (n, h, w, 3)),
            _checked("depth", depth, np.float32, (n, h, w, 1)),
            _checked("semantic", semantic, np.uint8, (n, h, w)),
            _checked("instance", instance, np.uint16, (n, h, w)),
        )
        wanted = (rgb is not None, depth is not None, semantic is not None, instance is not None)
        envs = np.arange(n) if env_mask is None else np.flatnonzero(_checked("env_mask", env_mask, np.bool_, (n,)))
        if not np.isfinite(poses[envs]).all():
            raise ValueError(f"poses must be finite, got {poses[envs].tolist()}")
        if (self._counts[envs, 0] < 0).any():
            raise RuntimeError(
                f"environments without a home: {envs[self._counts[envs, 0] < 0].tolist()}; call set_scene"
            )
        parts = [part for part in np.array_split(envs, min(self.threads, len(envs)) or 1) if len(part)]
        jobs = [self._arguments(camera, part, place, poses, wanted, outputs) for place, part in enumerate(parts)]
        if len(jobs) > 1 and self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="render")
        others = [self._pool.submit(_render, *job) for job in jobs[1:]] if self._pool is not None else []
        if jobs:
            _render(*jobs[0])  # in this thread, which has nothing else to do
        for other in others:
            other.result()

    def _arguments(
        self, camera: Camera, envs: np.ndarray, place: int, poses: np.ndarray, wanted: tuple, outputs: tuple
    ) -> tuple[Any, ...]:
        """Arguments of `_render` for the environments of one thread."""
        scenes = (
            self._geometry, self._attributes, self._pieces, self._corners, self._occluders, self._counts, self._ceilings,
        )  # fmt: skip
        rays = (camera.height, camera.width, camera.focal, *camera.centre)
        pictures = (texture_table(), atlas())
        return envs, poses, rays, self.cull, scenes, pictures, wanted, outputs, self._room(camera, place)

    def _room(self, camera: Camera, place: int) -> tuple[Any, ...]:
        """Working memory of one thread for one camera, made once."""
        if (camera, place) not in self._scratch:
            stride = -(-camera.width // BLOCK) * BLOCK
            count = (
                3 * self._geometry.shape[1] + 1
            )  # S + 2 P rows are in the arrays; a shape has at most three surfaces
            whole = np.int32
            surfaces = (np.zeros((count, 5), whole), np.zeros((count, REALS)))
            desk = (
                np.zeros((count, LOOK_SIZE), np.float32), np.zeros(count, np.int64), np.zeros(2 * LINE, whole),
                np.zeros(2 * LINE, np.int64), np.zeros(3 * BLOCK, np.uint8),
            )  # fmt: skip
            self._scratch[camera, place] = (
                surfaces, np.zeros(count, whole), np.zeros((WEDGE_LEVELS, WEDGES)), np.zeros((5, 8)),
                desk, np.zeros(count, whole), np.zeros(count, whole), np.zeros(camera.height * stride + BLOCK, np.uint32),
                np.zeros((SPANS_ROOM, SPANS_SIZE), whole),
            )  # fmt: skip
        return self._scratch[camera, place]

    def close(self) -> None:
        """Stops the threads; a later `render` starts them again."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None, "_scratch": {}}


def _checked(name: str, array: np.ndarray | None, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The array itself, or one that is not written to in place of None.

    Raises:
        ValueError: It has another type or shape, or is not contiguous.
    """
    if array is None:
        return np.zeros((1,) * len(shape), dtype)
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
        got = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name} must be an array of {np.dtype(dtype)} {shape}, got {got}")
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise ValueError(f"{name} must be C-contiguous and writeable")
    return array


def render_frame(home: House | Scene, camera: Camera, pose: Sequence[float]) -> Frame:
    """One picture of a home; for more than a few use `Renderer`.

    Args:
        home: A home, or its scene.
        camera: The camera.
        pose: x, y, z of the eye in m, heading and pitch in rad.

    Raises:
        ValueError: The home cannot be drawn, or the pose has not five finite numbers.
    """
    renderer = Renderer(camera, 1)
    renderer.set_scene(0, home if isinstance(home, Scene) else Scene.from_house(home))
    h, w = camera.height, camera.width
    rgb, depth = np.empty((1, h, w, 3), np.uint8), np.empty((1, h, w, 1), np.float32)
    semantic, instance = np.empty((1, h, w), np.uint8), np.empty((1, h, w), np.uint16)
    renderer.render(np.asarray([pose], np.float64), rgb=rgb, depth=depth, semantic=semantic, instance=instance)
    return Frame(rgb[0], depth[0], semantic[0], instance[0])
