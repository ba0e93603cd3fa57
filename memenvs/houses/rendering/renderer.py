"""Renderer: colour, depth, class and instance images of homes, many environments at once.

For each environment:

1. `set_up_primitives` lists the faces that may be seen (`memenvs.houses.rendering.primitives`).
2. `rasterise` finds which one is seen in each pixel (`memenvs.houses.rendering.rasteriser`).
3. `shade` computes colours (`memenvs.houses.rendering.shading`); depths, classes and instances are read from the
z-buffer.

Small images of a few hundred simple shapes are too small for a graphics card to pay off, and a card is not always
there. This renderer runs on one core of any machine and draws the same bits on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from memenvs.houses.house import House
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.culling import WEDGE_LEVELS, WEDGES, View, view_from
from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.texels import IS_READY, SHADING_FIELDS
from memenvs.houses.rendering.kernels.zbuffer import BLOCK, SPAN_FIELDS, decode_depth, decode_depth_block
from memenvs.houses.rendering.materials import atlas, texture_table
from memenvs.houses.rendering.primitives import (
    FLOAT_FIELDS,
    INT_FIELDS,
    SCENE_ROW,
    ImageSize,
    Primitives,
    SetupScratch,
    set_up_primitives,
)
from memenvs.houses.rendering.rasteriser import MAX_SPAN_GROUPS, rasterise
from memenvs.houses.rendering.scene import INSTANCE, MAX_FLOOR_CORNERS, SEMANTIC, Scene, SceneArrays
from memenvs.houses.rendering.shading import LINE, ShadingScratch, shade

__all__ = ["Camera", "Frame", "Renderer", "Scene", "render_frame"]


@dataclass(frozen=True, eq=False)
class Frame:
    """One image.

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


class _SceneBatch(NamedTuple):
    """The scenes of N environments; an array has as many rows as the largest scene needs.

    Attributes:
        geometry: float32, (N, S + 2P, 12).
        attributes: int32, (N, S + 2P, 5).
        floor_polygons: float64, (N, P, 8, 2).
        floor_corners: int32, (N, P).
        occluders: float64, (N, B, 5).
        counts: int64, (N, 3); S, P and B of each environment; S is -1 until a scene is set.
        ceilings: float64, (N,); m.
    """

    geometry: np.ndarray
    attributes: np.ndarray
    floor_polygons: np.ndarray
    floor_corners: np.ndarray
    occluders: np.ndarray
    counts: np.ndarray
    ceilings: np.ndarray


class _Lens(NamedTuple):
    """Image size, focal length and principal point of a camera; pixels."""

    height: int
    width: int
    focal: float
    centre_i: float
    centre_j: float


class _Images(NamedTuple):
    """An entry per sensor: arrays to draw into, or flags that say which ones are wanted."""

    rgb: Any
    depth: Any
    semantic: Any
    instance: Any


class _Scratch(NamedTuple):
    """Working memory of one thread for one camera; F is the largest number of primitives of a scene.

    Attributes:
        primitives: The primitives of the view.
        setup: See `SetupScratch`.
        shading: See `ShadingScratch`.
        semantic: int32, (F,); class of each primitive.
        instance: int32, (F,); instance of each primitive.
        keys: uint32, (H * stride + BLOCK,); the z-buffer.
        spans: int32, (MAX_SPAN_GROUPS, SPAN_FIELDS).
    """

    primitives: Primitives
    setup: SetupScratch
    shading: ShadingScratch
    semantic: np.ndarray
    instance: np.ndarray
    keys: np.ndarray
    spans: np.ndarray


@compiled
def _write_depth(keys: np.ndarray, id_mask: np.uint32, stride: int, out: np.ndarray) -> None:
    """Write the depths of an image.

    Args:
        keys: uint32, (>= H * stride,); the z-buffer.
        id_mask: The lower bits of a key that hold the primitive's id.
        stride: Keys per row of the image.
        out: float32, (H, W); filled, m.
    """
    whole_blocks = out.shape[1] - out.shape[1] % BLOCK
    for row in range(out.shape[0]):
        row_keys, row_out = keys[row * stride : (row + 1) * stride], out[row]
        for first in range(0, whole_blocks, BLOCK):
            decode_depth_block(row_keys, np.uint64(first), id_mask, row_out, np.uint64(first))
        for k in range(whole_blocks, row_out.shape[0]):
            depth = decode_depth(row_keys[k], id_mask)
            row_out[k] = depth if row_keys[k] > 0 else np.float32(0)


@compiled
def _write_labels(keys: np.ndarray, id_mask: np.uint32, stride: int, labels: np.ndarray, out: np.ndarray) -> None:
    """Write a label per pixel; arguments as in `_write_depth`.

    `labels` is int32, (F,), one per primitive, and `out` any integers, (H, W).
    """
    for row in range(out.shape[0]):
        row_keys, row_out = keys[row * stride : (row + 1) * stride], out[row]
        for k in range(row_out.shape[0]):
            row_out[k] = labels[np.uint64(row_keys[k] & id_mask)]


@compiled
def _render_one(
    view: View, size: ImageSize, cull: bool, scene: SceneArrays, textures: tuple, wanted: _Images, images: _Images,
    scratch: _Scratch,
) -> None:  # fmt: skip
    """Draw one environment into its images; arguments as in `_render`."""
    primitives, attributes = scratch.primitives, scene.attributes
    last_id = set_up_primitives(view, size, cull, scene, primitives, scratch.setup)
    for primitive_id in range(1, last_id + 1):
        row = primitives.int_fields[primitive_id, SCENE_ROW]
        scratch.semantic[primitive_id] = attributes[row, SEMANTIC]
        scratch.instance[primitive_id] = attributes[row, INSTANCE]
        scratch.shading.coefficients[primitive_id, IS_READY] = 0.0
    # The width of the id within a key depends on this home only, so that images do not depend on other environments.
    max_id = 3 * scene.num_shapes + 2 * len(scene.floor_corners)
    bits = 15
    while bits < max_id:
        bits = 2 * bits + 1
    id_mask = np.uint32(bits)
    keys = scratch.keys
    rasterise(primitives, last_id, size, keys, id_mask, scratch.spans)
    if wanted.rgb:
        table, texture_atlas = textures
        shade(view, size, scene, primitives, keys, id_mask, table, texture_atlas, scratch.shading, images.rgb)
    if wanted.depth:
        _write_depth(keys, id_mask, size.stride, images.depth.reshape(size.height, size.width))
    if wanted.semantic:
        _write_labels(keys, id_mask, size.stride, scratch.semantic, images.semantic)
    if wanted.instance:
        _write_labels(keys, id_mask, size.stride, scratch.instance, images.instance)


@compiled
def _render(
    envs: np.ndarray, poses: np.ndarray, lens: _Lens, cull: bool, scenes: _SceneBatch, textures: tuple, wanted: _Images,
    images: _Images, scratch: _Scratch,
) -> None:  # fmt: skip
    """Draw environments one after the other, each into its rows of the images.

    Args:
        envs: int64, (K,); the environments.
        poses: float64, (N, 5); x, y, z (m), heading and pitch (rad).
        lens: The camera.
        cull: Leave out early what walls hide.
        scenes: The scenes.
        textures: `texture_table()` and `atlas()` of `memenvs.houses.rendering.materials`.
        wanted: Flags.
        images: Arrays (N, H, W, ...); of one pixel where the sensor is not wanted.
        scratch: Working memory.
    """
    size = ImageSize(lens.height, lens.width, -(-lens.width // BLOCK) * BLOCK)
    for k in range(len(envs)):
        env = envs[k]
        num_shapes, num_floors, num_occluders = scenes.counts[env]
        view = view_from(poses[env], lens.focal, lens.centre_i, lens.centre_j)
        scene = SceneArrays(
            scenes.geometry[env], scenes.attributes[env], scenes.floor_polygons[env, :num_floors],
            scenes.floor_corners[env, :num_floors], scenes.occluders[env, :num_occluders], num_shapes,
            scenes.ceilings[env],
        )  # fmt: skip
        env_images = _Images(
            images.rgb[env if wanted.rgb else 0], images.depth[env if wanted.depth else 0],
            images.semantic[env if wanted.semantic else 0], images.instance[env if wanted.instance else 0],
        )  # fmt: skip
        _render_one(view, size, cull, scene, textures, wanted, env_images, scratch)


class Renderer:
    """Draw N environments, each from its own home, straight into the caller's arrays.

    The results depend on neither the number of threads nor the other environments. It can be pickled.
    """

    def __init__(self, camera: Camera, num_envs: int, *, threads: int = 1, cull: bool = True) -> None:
        """Make room for `num_envs` scenes; none is set yet.

        Args:
            camera: The camera of all environments, unless `render` gets another one.
            num_envs: N; >= 1.
            threads: How many environments are drawn at a time; >= 1.
            cull: Leave out early what walls hide. False gives the same images, slower.

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
        self._scenes = _SceneBatch(
            geometry=np.zeros((num_envs, 0, 12), np.float32),
            attributes=np.zeros((num_envs, 0, 5), np.int32),
            floor_polygons=np.zeros((num_envs, 0, MAX_FLOOR_CORNERS, 2)),
            floor_corners=np.zeros((num_envs, 0), np.int32),
            occluders=np.zeros((num_envs, 0, 5)),
            counts=np.full((num_envs, 3), -1, np.int64),
            ceilings=np.zeros(num_envs),
        )
        self._pool: ThreadPoolExecutor | None = None
        self._scratch: dict[tuple[Camera, int], _Scratch] = {}

    def set_scene(self, env: int, scene: Scene) -> None:
        """Give environment `env` another home; the arrays are copied.

        Raises:
            ValueError: There is no such environment.
        """
        if not 0 <= env < self.num_envs:
            raise ValueError(f"env must be 0 to {self.num_envs - 1}, got {env}")
        for name in ("geometry", "attributes", "floor_polygons", "floor_corners", "occluders"):
            rows, batch = getattr(scene, name), getattr(self._scenes, name)
            if len(rows) > batch.shape[1]:  # grow by a quarter more than is needed
                larger = np.zeros((self.num_envs, len(rows) + len(rows) // 4 + 8, *batch.shape[2:]), batch.dtype)
                larger[:, : batch.shape[1]] = batch
                self._scenes = self._scenes._replace(**{name: larger})
                batch = larger
                self._scratch.clear()
            batch[env, : len(rows)] = rows
        self._scenes.counts[env] = scene.num_shapes, len(scene.floor_polygons), len(scene.occluders)
        self._scenes.ceilings[env] = scene.height

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
        """Draw into the arrays that are given; what is not given is not computed.

        Args:
            poses: (N, 5); x, y, z of the eye in m, heading and pitch in rad.
            rgb: uint8, (N, H, W, 3); sRGB.
            depth: float32, (N, H, W, 1); m along the optical axis, 0 where nothing is hit.
            semantic: uint8, (N, H, W); index into `memenvs.houses.classes.CLASSES`, 0 where nothing is hit.
            instance: uint16, (N, H, W); index into `House.instances`, 0 for the building and where nothing is hit.
            env_mask: bool, (N,); the environments to draw, None for all. The rows of others are left as they are.
            camera: Used in place of the renderer's own.

        Raises:
            ValueError: An array has the wrong shape or type or is not contiguous, or a pose is not finite.
            RuntimeError: An environment to be drawn has no home.
        """
        camera = self.camera if camera is None else camera
        n, h, w = self.num_envs, camera.height, camera.width
        poses = np.ascontiguousarray(poses, np.float64)
        if poses.shape != (n, 5):
            raise ValueError(f"poses must have shape {(n, 5)}, got {poses.shape}")
        wanted = _Images(rgb is not None, depth is not None, semantic is not None, instance is not None)
        images = _Images(
            rgb=_checked("rgb", rgb, np.uint8, (n, h, w, 3)),
            depth=_checked("depth", depth, np.float32, (n, h, w, 1)),
            semantic=_checked("semantic", semantic, np.uint8, (n, h, w)),
            instance=_checked("instance", instance, np.uint16, (n, h, w)),
        )
        envs = np.arange(n) if env_mask is None else np.flatnonzero(_checked("env_mask", env_mask, np.bool_, (n,)))
        if not np.isfinite(poses[envs]).all():
            raise ValueError(f"poses must be finite, got {poses[envs].tolist()}")
        has_no_home = self._scenes.counts[envs, 0] < 0
        if has_no_home.any():
            raise RuntimeError(f"environments without a home: {envs[has_no_home].tolist()}; call set_scene")
        lens = _Lens(camera.height, camera.width, camera.focal, *camera.centre)
        textures = (texture_table(), atlas())
        shares = [share for share in np.array_split(envs, min(self.threads, len(envs)) or 1) if len(share)]
        jobs: list[tuple[Any, ...]] = [
            (share, poses, lens, self.cull, self._scenes, textures, wanted, images, self._scratch_of(camera, thread))
            for thread, share in enumerate(shares)
        ]
        if len(jobs) > 1 and self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="render")
        others = [self._pool.submit(_render, *job) for job in jobs[1:]] if self._pool is not None else []
        if jobs:
            _render(*jobs[0])  # in this thread, which has nothing else to do
        for other in others:
            other.result()

    def _scratch_of(self, camera: Camera, thread: int) -> _Scratch:
        """Working memory of one thread for one camera, allocated once."""
        if (camera, thread) not in self._scratch:
            stride = -(-camera.width // BLOCK) * BLOCK
            max_shapes = self._scenes.geometry.shape[1]  # S + 2 P rows; a shape has at most three primitives
            count = 3 * max_shapes + 1
            self._scratch[camera, thread] = _Scratch(
                primitives=Primitives(np.zeros((count, INT_FIELDS), np.int32), np.zeros((count, FLOAT_FIELDS))),
                setup=SetupScratch(
                    listed=np.zeros(count, np.int32),
                    occlusion=np.zeros((WEDGE_LEVELS, WEDGES)),
                    corners=np.zeros((5, 8)),
                ),
                shading=ShadingScratch(
                    coefficients=np.zeros((count, SHADING_FIELDS), np.float32),
                    tints=np.zeros(count, np.int64),
                    texels=np.zeros(2 * LINE, np.int32),
                    factors=np.zeros(2 * LINE, np.int64),
                    last_block=np.zeros(3 * BLOCK, np.uint8),
                ),
                semantic=np.zeros(count, np.int32),
                instance=np.zeros(count, np.int32),
                keys=np.zeros(camera.height * stride + BLOCK, np.uint32),
                spans=np.zeros((MAX_SPAN_GROUPS, SPAN_FIELDS), np.int32),
            )
        return self._scratch[camera, thread]

    def close(self) -> None:
        """Stop the threads; a later `render` starts them again."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None, "_scratch": {}}


def _checked(name: str, array: np.ndarray | None, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The array itself; in place of None one of a single pixel, which is not written to.

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
    """Draw one image of a home; for more than a few use `Renderer`.

    Args:
        home: A house, or its scene.
        camera: The camera.
        pose: x, y, z of the eye in m, heading and pitch in rad.

    Raises:
        ValueError: The home cannot be drawn, or the pose has not five finite numbers.
    """
    renderer = Renderer(camera, 1)
    renderer.set_scene(0, home if isinstance(home, Scene) else Scene.from_house(home))
    h, w = camera.height, camera.width
    rgb = np.empty((1, h, w, 3), np.uint8)
    depth = np.empty((1, h, w, 1), np.float32)
    semantic = np.empty((1, h, w), np.uint8)
    instance = np.empty((1, h, w), np.uint16)
    renderer.render(np.asarray([pose], np.float64), rgb=rgb, depth=depth, semantic=semantic, instance=instance)
    return Frame(rgb[0], depth[0], semantic[0], instance[0])
