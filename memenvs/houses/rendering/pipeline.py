"""The compiled render pipeline: from scenes and poses of environments to their images.

For each environment:

1. `set_up_primitives` lists the faces that may be seen (`memenvs.houses.rendering.primitive_setup`).
2. `rasterise` finds which one is seen in each pixel (`memenvs.houses.rendering.rasteriser`).
3. `shade` computes colours (`memenvs.houses.rendering.shading`); depths, classes and instances are read from the
z-buffer.

`memenvs.houses.rendering.renderer.Renderer` checks arguments, holds the memory and calls `render_envs` from its
threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from memenvs.houses.rendering.culling import View, view_from
from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.texels import IS_READY
from memenvs.houses.rendering.kernels.zbuffer import BLOCK, decode_depth, decode_depth_block
from memenvs.houses.rendering.primitive_setup import SetupScratch, set_up_primitives
from memenvs.houses.rendering.primitives import SCENE_ROW, ImageSize, Primitives
from memenvs.houses.rendering.rasteriser import rasterise
from memenvs.houses.rendering.scene import INSTANCE, SEMANTIC, SceneArrays
from memenvs.houses.rendering.shading import ShadingScratch, shade


class SceneBatch(NamedTuple):
    """The scenes of N environments; an array has as many rows as the largest scene needs.

    For S, P and B see `Scene`.

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


class Lens(NamedTuple):
    """Image size, focal length and principal point of a camera; pixels."""

    height: int
    width: int
    focal: float
    centre_i: float
    centre_j: float


class Images(NamedTuple):
    """An entry per sensor: arrays to draw into, or flags that say which ones are wanted."""

    rgb: Any
    depth: Any
    semantic: Any
    instance: Any


class RenderScratch(NamedTuple):
    """Working memory of one thread for one camera.

    F is the largest number of primitives of a scene.

    Attributes:
        primitives: The primitives of the view.
        setup: See `SetupScratch`.
        shading: See `ShadingScratch`.
        semantic: int32, (F,); class of each primitive.
        instance: int32, (F,); instance of each primitive.
        keys: uint32, (H * stride + WORD + BLOCK,); the z-buffer.
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
def render_envs(
    envs: np.ndarray,
    poses: np.ndarray,
    lens_fields: tuple,
    cull: bool,
    scene_fields: tuple,
    textures: tuple,
    requested_fields: tuple,
    image_fields: tuple,
    scratch_fields: tuple,
) -> None:
    """Draw environments one after the other, each into its rows of the images.

    The fields of named tuples come as plain tuples: numba needs 3 microseconds a call longer to recognise named ones.

    Args:
        envs: int64, (K,); the environments.
        poses: float64, (N, 5); x, y, z (m), heading and pitch (rad).
        lens_fields: Of `Lens`; the camera.
        cull: Leave out early what walls hide.
        scene_fields: Of `SceneBatch`; the scenes.
        textures: `texture_table()` and `atlas()` of `memenvs.houses.rendering.materials`.
        requested_fields: Of `Images`; flags.
        image_fields: Of `Images`; arrays (N, H, W, ...), of one pixel where the sensor is not requested.
        scratch_fields: Of `RenderScratch`, its first three fields as plain tuples too; working memory.
    """
    lens = Lens(*lens_fields)
    scenes = SceneBatch(*scene_fields)
    requested, images = Images(*requested_fields), Images(*image_fields)
    primitives, setup, shading, semantic, instance, keys, spans = scratch_fields
    scratch = RenderScratch(
        Primitives(*primitives), SetupScratch(*setup), ShadingScratch(*shading), semantic, instance, keys, spans
    )
    size = ImageSize(lens.height, lens.width, -(-lens.width // BLOCK) * BLOCK)
    for k in range(len(envs)):
        env = envs[k]
        num_shapes, num_floors, num_occluders = scenes.counts[env]
        view = view_from(poses[env], lens.focal, lens.centre_i, lens.centre_j)
        scene = SceneArrays(
            scenes.geometry[env],
            scenes.attributes[env],
            scenes.floor_polygons[env, :num_floors],
            scenes.floor_corners[env, :num_floors],
            scenes.occluders[env, :num_occluders],
            num_shapes,
            scenes.ceilings[env],
        )
        env_images = Images(
            images.rgb[env if requested.rgb else 0],
            images.depth[env if requested.depth else 0],
            images.semantic[env if requested.semantic else 0],
            images.instance[env if requested.instance else 0],
        )
        _render_one(view, size, cull, scene, textures, requested, env_images, scratch)


@compiled
def _render_one(
    view: View,
    size: ImageSize,
    cull: bool,
    scene: SceneArrays,
    textures: tuple,
    requested: Images,
    images: Images,
    scratch: RenderScratch,
) -> None:
    """Draw one environment into its images; arguments as in `render_envs`."""
    primitives = scratch.primitives
    attributes = scene.attributes
    last_id = set_up_primitives(view, size, cull, scene, primitives, scratch.setup)
    for primitive_id in range(1, last_id + 1):
        row = primitives.int_fields[primitive_id, SCENE_ROW]
        scratch.semantic[primitive_id] = attributes[row, SEMANTIC]
        scratch.instance[primitive_id] = attributes[row, INSTANCE]
        scratch.shading.coefficients[primitive_id, IS_READY] = 0.0
    # The width of the id within a key depends on this home only, so that images do not depend on other environments.
    max_id = 3 * scene.num_shapes + 2 * len(scene.floor_corners)
    mask = 15  # all ones, as many as the largest id needs
    while mask < max_id:
        mask = 2 * mask + 1
    id_mask = np.uint32(mask)
    keys = scratch.keys
    rasterise(primitives, last_id, size, keys, id_mask, scratch.spans)
    if requested.rgb:
        table, texture_atlas = textures
        shade(view, size, scene, primitives, keys, id_mask, table, texture_atlas, scratch.shading, images.rgb)
    if requested.depth:
        _write_depth(keys, id_mask, size.stride, images.depth.reshape(size.height, size.width))
    if requested.semantic:
        _write_labels(keys, id_mask, size.stride, scratch.semantic, images.semantic)
    if requested.instance:
        _write_labels(keys, id_mask, size.stride, scratch.instance, images.instance)


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
        row_keys = keys[row * stride : (row + 1) * stride]
        row_out = out[row]
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
        row_keys = keys[row * stride : (row + 1) * stride]
        row_out = out[row]
        for k in range(row_out.shape[0]):
            row_out[k] = labels[np.uint64(row_keys[k] & id_mask)]
