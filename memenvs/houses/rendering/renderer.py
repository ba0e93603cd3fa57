"""Renderer: colour, depth, class and instance images of homes, many environments at once.

A GPU does not pay off for small images of a few hundred simple shapes, and not every machine has one. This renderer
runs on one CPU core or several, and its images are the same bits on every machine. The steps of rendering are in
`memenvs.houses.rendering.pipeline`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memenvs.houses.house import House
from memenvs.houses.rendering.camera import Camera
from memenvs.houses.rendering.culling import WEDGE_LEVELS, WEDGES
from memenvs.houses.rendering.interface import checked_image
from memenvs.houses.rendering.kernels.texels import SHADING_FIELDS
from memenvs.houses.rendering.kernels.zbuffer import BLOCK, SPAN_FIELDS, WORD
from memenvs.houses.rendering.materials import atlas, texture_table
from memenvs.houses.rendering.pipeline import RenderScratch, SceneBatch, render_envs
from memenvs.houses.rendering.primitive_setup import SetupScratch
from memenvs.houses.rendering.primitives import FLOAT_FIELDS, INT_FIELDS, Primitives
from memenvs.houses.rendering.rasteriser import MAX_SPAN_GROUPS
from memenvs.houses.rendering.scene import MAX_FLOOR_CORNERS, Scene
from memenvs.houses.rendering.shading import BAND_BUFFER, RUN_KINDS, ShadingScratch
from memenvs.threads import ThreadPool

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


class Renderer:
    """Renderer of N environments, each in its own home, into arrays of the caller.

    The results depend on neither the number of threads nor the other environments. It can be pickled.
    """

    def __init__(self, camera: Camera, num_envs: int, *, threads: int = 1, cull: bool = True) -> None:
        """Allocate arrays for `num_envs` scenes; set each with `set_scene`.

        Args:
            camera: The camera of all environments, unless `render` gets another one.
            num_envs: N; >= 1.
            threads: Environments that are rendered at the same time; >= 1.
            cull: Skip shapes that walls hide (occlusion culling). False gives the same images, slower.

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
        self._scenes = SceneBatch(
            geometry=np.zeros((num_envs, 0, 12), np.float32),
            attributes=np.zeros((num_envs, 0, 5), np.int32),
            floor_polygons=np.zeros((num_envs, 0, MAX_FLOOR_CORNERS, 2)),
            floor_corners=np.zeros((num_envs, 0), np.int32),
            occluders=np.zeros((num_envs, 0, 5)),
            counts=np.full((num_envs, 3), -1, np.int64),  # -1: no scene yet
            ceilings=np.zeros(num_envs),
        )
        self._pool = ThreadPool(max(1, threads - 1), "render")  # beside the calling thread
        self._scratch: dict[tuple[Camera, int], tuple] = {}

    def set_scene(self, env: int, scene: Scene) -> None:
        """Give environment `env` another home; the arrays are copied.

        Raises:
            ValueError: There is no such environment.
        """
        if not 0 <= env < self.num_envs:
            raise ValueError(f"env must be 0 to {self.num_envs - 1}, got {env}")
        for name in ("geometry", "attributes", "floor_polygons", "floor_corners", "occluders"):
            rows = getattr(scene, name)
            batch = getattr(self._scenes, name)
            if len(rows) > batch.shape[1]:  # grow by a quarter more than is needed, so that growing is rare
                larger = np.zeros((self.num_envs, len(rows) + len(rows) // 4 + 8, *batch.shape[2:]), batch.dtype)
                larger[:, : batch.shape[1]] = batch
                self._scenes = self._scenes._replace(**{name: larger})
                batch = larger
                self._scratch.clear()  # its size depends on the largest scene
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
        """Render into the arrays that are given; what is not given is not computed.

        Args:
            poses: float64, (N, 5); camera position x, y, z in m, heading and pitch in rad.
            rgb: uint8, (N, H, W, 3); sRGB.
            depth: float32, (N, H, W, 1); m along the optical axis, 0 where nothing is hit.
            semantic: uint8, (N, H, W); index into `memenvs.houses.classes.CLASSES`, 0 where nothing is hit.
            instance: uint16, (N, H, W); index into `House.instances`, 0 for walls, floors and ceilings
                and where nothing is hit.
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
        requested = (rgb is not None, depth is not None, semantic is not None, instance is not None)
        images = (
            _checked("rgb", rgb, np.uint8, (n, h, w, 3)),
            _checked("depth", depth, np.float32, (n, h, w, 1)),
            _checked("semantic", semantic, np.uint8, (n, h, w)),
            _checked("instance", instance, np.uint16, (n, h, w)),
        )
        envs = np.arange(n) if env_mask is None else np.flatnonzero(_checked("env_mask", env_mask, np.bool_, (n,)))
        if not np.isfinite(poses[envs]).all():
            raise ValueError(f"poses must be finite, got {poses[envs].tolist()}")
        has_no_home = self._scenes.counts[envs, 0] < 0
        if has_no_home.any():
            raise RuntimeError(f"environments without a home: {envs[has_no_home].tolist()}; call set_scene")
        lens = (camera.height, camera.width, camera.focal, *camera.centre)
        scenes = tuple(self._scenes)
        textures = (texture_table(), atlas())
        chunks = [chunk for chunk in np.array_split(envs, min(self.threads, len(envs)) or 1) if len(chunk)]
        jobs: list[tuple[Any, ...]] = [
            (chunk, poses, lens, self.cull, scenes, textures, requested, images, self._scratch_of(camera, thread))
            for thread, chunk in enumerate(chunks)
        ]
        others = [self._pool.submit(render_envs, *job) for job in jobs[1:]]
        if jobs:
            render_envs(*jobs[0])  # in this thread, which has nothing else to do
        for other in others:
            other.result()

    def _scratch_of(self, camera: Camera, thread: int) -> tuple:
        """Return the working memory of one thread for one camera: the argument `scratch_fields` of `render_envs`."""
        if (camera, thread) not in self._scratch:
            stride = -(-camera.width // BLOCK) * BLOCK  # width of a row, rounded up to whole blocks
            max_shapes = self._scenes.geometry.shape[1]  # rows of the largest scene: shapes, floors and ceilings
            count = 3 * max_shapes + 1  # a row has at most three primitives
            scratch = RenderScratch(
                primitives=Primitives(np.zeros((count, INT_FIELDS), np.int32), np.zeros((count, FLOAT_FIELDS))),
                setup=SetupScratch(
                    listed=np.zeros(count, np.int32),
                    occlusion=np.zeros((WEDGE_LEVELS, WEDGES)),
                    corners=np.zeros((5, 8)),
                ),
                shading=ShadingScratch(
                    coefficients=np.zeros((count, SHADING_FIELDS), np.float32),
                    tints=np.zeros(count, np.int64),
                    texels=np.zeros(BAND_BUFFER, np.int32),
                    factors=np.zeros(BAND_BUFFER, np.int64),
                    runs=np.zeros((RUN_KINDS, BAND_BUFFER), np.int64),
                    counts=np.zeros(RUN_KINDS, np.int64),
                    blocks=np.zeros(BAND_BUFFER, np.int64),
                    last_block=np.zeros(3 * BLOCK, np.uint8),
                ),
                semantic=np.zeros(count, np.int32),
                instance=np.zeros(count, np.int32),
                keys=np.zeros(camera.height * stride + WORD + BLOCK, np.uint32),
                spans=np.zeros((MAX_SPAN_GROUPS, SPAN_FIELDS), np.int32),
            )
            # plain tuples, because numba takes longer to recognise named ones; see `render_envs`
            self._scratch[camera, thread] = tuple(tuple(part) if isinstance(part, tuple) else part for part in scratch)
        return self._scratch[camera, thread]

    def close(self) -> None:
        """Stop the threads; a later `render` starts them again."""
        self._pool.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_scratch": {}}


def _checked(name: str, array: np.ndarray | None, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Check an array and return it; return a single pixel for None, because compiled code takes no None.

    Raises:
        ValueError: It has another type or shape, or is not contiguous.
    """
    return np.zeros((1,) * len(shape), dtype) if array is None else checked_image(name, array, dtype, shape)


def render_frame(home: House | Scene, camera: Camera, pose: Sequence[float]) -> Frame:
    """Render one image of a home; for more than a few use `Renderer`.

    Args:
        home: A house, or its scene.
        camera: The camera.
        pose: Camera position x, y, z in m, heading and pitch in rad.

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
