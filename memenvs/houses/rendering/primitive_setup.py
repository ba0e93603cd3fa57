"""Primitive setup: list the faces of shapes, floors and ceilings that an image may show.

In: a scene and a view. Out: `Primitives`, numbered from 1 on. Shapes that cannot be seen are left out by
`memenvs.houses.rendering.culling`, and so are faces that point away from the eye: a box has at most three primitives.

Everything here is compiled.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from memenvs.houses.house import BOX, CYLINDER
from memenvs.houses.rendering.culling import (
    NEAR,
    View,
    find_occlusion,
    is_occluded,
    list_shapes_in_frustum,
    list_visible_shapes,
    max_ray_slope,
)
from memenvs.houses.rendering.kernels.edges import (
    COLUMN_DEPTH,
    DEPTH,
    EDGE_ENDS,
    EDGE_TOLERANCE,
    IMAGE_COLUMN,
    IMAGE_ROW,
    POLYGON_EDGES,
    ROW_DEPTH,
    project_box,
)
from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.zbuffer import EDGES
from memenvs.houses.rendering.primitives import (
    BOTTOM,
    CURVED,
    END_ROW,
    FACE,
    FIRST_ROW,
    FRONT_X,
    FRONT_Y,
    MAX_PIXEL,
    SCENE_ROW,
    TOP,
    ImageSize,
    Primitives,
    set_plane,
    set_polygon,
    set_round,
)
from memenvs.houses.rendering.scene import COS, HALF_X, HALF_Y, KIND, SIN, Z0, Z1, SceneArrays, X, Y

_MIN_FACE_DISTANCE = 1e-6  # m; a face is visible only if the eye is farther than this in front of its plane


class SetupScratch(NamedTuple):
    """Working memory of `set_up_primitives`.

    Attributes:
        listed: int32, (>= S,); rows of the shapes that may be seen.
        occlusion: float64, (WEDGE_LEVELS, WEDGES); see `memenvs.houses.rendering.culling.find_occlusion`.
        corners: float64, (5, 8); projected corners, see `memenvs.houses.rendering.kernels.edges.project_box`.
    """

    listed: np.ndarray
    occlusion: np.ndarray
    corners: np.ndarray


@compiled
def set_up_primitives(
    view: View, size: ImageSize, cull: bool, scene: SceneArrays, primitives: Primitives, scratch: SetupScratch
) -> int:
    """List the primitives of a scene that may appear in an image.

    Args:
        view: The view.
        size: Of the image.
        cull: Leave out early what walls hide; the image is the same.
        scene: The scene.
        primitives: Filled from id 1 on; 3 S + 2 P + 1 rows are enough.
        scratch: Working memory.

    Returns:
        The largest id.
    """
    max_slope = max_ray_slope(view, size.height, size.width) if cull else 0.0
    listed = scratch.listed
    occlusion = scratch.occlusion
    num_shapes = scene.num_shapes
    if max_slope > 0:
        is_inside = 0.0 <= view.eye_z <= scene.ceiling  # from outside, one can see over the walls
        find_occlusion(view, max_slope, scene.occluders if is_inside else scene.occluders[:0], occlusion)
        count = list_visible_shapes(scene.geometry, num_shapes, view, max_slope, scene.ceiling, occlusion, listed)
    elif cull:
        count = list_shapes_in_frustum(scene.geometry, num_shapes, view, size.height, size.width, listed)
    else:
        count = num_shapes
        for row in range(num_shapes):
            listed[row] = row
    last_id: Any = np.int64(0)  # a plain 0 has a type of its own, for which numba compiles `_add_shape` once more
    for k in range(count):
        last_id = _add_shape(listed[k], scene, view, size, last_id, primitives, scratch.corners)
    num_floors = len(scene.floor_corners)
    for level in range(2):  # floors, then ceilings
        z = 0.0 if level == 0 else scene.ceiling
        for k in range(num_floors):
            polygon = scene.floor_polygons[k, : scene.floor_corners[k]]
            row = num_shapes + level * num_floors + k
            last_id = _add_floor(
                polygon, row, z, view, size, max_slope, occlusion, last_id, primitives, scratch.corners
            )
    return last_id


@compiled
def _add_shape(
    row: int, scene: SceneArrays, view: View, size: ImageSize, last_id: int, primitives: Primitives, corners: np.ndarray
) -> int:
    """Add the primitives of one shape that face the eye and may be in the image.

    Args:
        row: Row of the shape in the scene.
        scene: The scene.
        view: The view.
        size: Of the image.
        last_id: The largest id so far.
        primitives: Filled.
        corners: Working memory; see `SetupScratch`.

    Returns:
        The largest id now.
    """
    shape, kind = scene.geometry[row], scene.attributes[row, KIND]
    ch, sh = view.cos_heading, view.sin_heading
    dx, dy = shape[X] - view.eye_x, shape[Y] - view.eye_y
    centre = (dx * ch + dy * sh, dx * sh - dy * ch)  # forward, right
    # The shape's x axis, forward and right; its y axis is (right, -forward).
    axis = (shape[COS] * ch + shape[SIN] * sh, shape[COS] * sh - shape[SIN] * ch)
    half_x, half_y = float(shape[HALF_X]), float(shape[HALF_Y])
    low, high = shape[Z0] - view.eye_z, shape[Z1] - view.eye_z
    extent = (half_x, half_y, low, high)
    lens = (view.cos_pitch, view.sin_pitch, view.focal, view.centre_i, view.centre_j)
    bounds = project_box(centre, axis, extent, lens, corners)
    is_in_front = bounds[0] > NEAR
    window = _clip_to_image(bounds[1:], size) if is_in_front else (0, size.height, 0, size.width)
    if window[0] >= window[1] or window[2] >= window[3]:
        return last_id
    if kind == BOX:
        eye = (-(centre[0] * axis[0] + centre[1] * axis[1]), -(centre[0] * axis[1] - centre[1] * axis[0]))
        return _add_box(row, eye, axis, extent, window, is_in_front, view, last_id, primitives, corners)
    int_fields, float_fields = primitives
    curved = last_id + 1
    set_round(
        kind != CYLINDER,
        (centre[0], centre[1], (low + high) / 2),
        axis,
        (half_x, half_y, (high - low) / 2),
        (window[2], window[3]),
        view,
        float_fields[curved],
    )
    int_fields[curved, SCENE_ROW], int_fields[curved, FACE] = row, CURVED
    int_fields[curved, FIRST_ROW], int_fields[curved, END_ROW] = window[0], window[1]
    if kind != CYLINDER:
        return curved
    # The flat end of a cylinder that faces the eye has the next id and no rows: it is drawn with the curved part.
    end = curved + 1
    int_fields[end, SCENE_ROW], int_fields[end, FACE] = row, TOP if high < 0 else BOTTOM
    int_fields[end, FIRST_ROW], int_fields[end, END_ROW] = 0, 0
    set_plane((0.0, 0.0, 1.0), high if high < 0 else low, view, float_fields, end)
    return end


@compiled
def _add_box(
    row: int,
    eye: tuple[float, float],
    axis: tuple[float, float],
    extent: tuple[float, float, float, float],
    window: tuple[int, int, int, int],
    is_in_front: bool,
    view: View,
    last_id: int,
    primitives: Primitives,
    corners: np.ndarray,
) -> int:
    """Add the faces of a box that face the eye.

    Args:
        row: Row of the box in the scene.
        eye: Position of the eye along the box's own x and y axes, from the box's centre, m.
        axis: The box's x axis (forward, right).
        extent: Half sizes along x and y, then bottom and top above the eye, m.
        window: Image rows and columns that the box spans, see `_clip_to_image`.
        is_in_front: True if all corners are in front of the eye.
        view: The view.
        last_id: The largest id so far.
        primitives: Filled.
        corners: float64, (5, 8); filled by `project_box`.

    Returns:
        The largest id now.
    """
    int_fields, float_fields = primitives
    half_x, half_y, low, high = extent
    for front in range(FRONT_X, CURVED, 2):  # of two opposite faces, the eye sees one at most
        # Normal of the front face (forward, right, up); how far the eye is in front of each of the two faces, m.
        normal, front_distance, back_distance = (0.0, 0.0, 1.0), -high, low
        if front == FRONT_X:
            normal, front_distance, back_distance = (axis[0], axis[1], 0.0), eye[0] - half_x, -eye[0] - half_x
        elif front == FRONT_Y:
            normal, front_distance, back_distance = (axis[1], -axis[0], 0.0), eye[1] - half_y, -eye[1] - half_y
        is_back = front_distance <= _MIN_FACE_DISTANCE
        face, sign, distance = (front + 1, -1.0, back_distance) if is_back else (front, 1.0, front_distance)
        if distance <= _MIN_FACE_DISTANCE:
            continue
        first, end = window[0], window[1]
        if is_in_front:
            first, end = _face_rows(corners, face, first, end, window[3])
        if first < end:
            last_id += 1
            int_fields[last_id, SCENE_ROW], int_fields[last_id, FACE] = row, face
            outward = (sign * normal[0], sign * normal[1], sign * normal[2])
            set_plane(outward, -distance, view, float_fields, last_id)
            set_polygon(corners, face, np.int64(1), first, end, last_id, primitives)
    return last_id


@compiled
def _face_rows(corners: np.ndarray, face: int, first: int, end: int, end_column: int) -> tuple[int, int]:
    """Narrow the image rows of a box to those of one of its faces.

    Args:
        corners: float64, (5, 8); filled by `project_box`.
        face: Row of `EDGE_ENDS`.
        first: First image row of the box.
        end: Image row to stop before, at first that of the box.
        end_column: Image column to stop before.

    Returns:
        First image row and row to stop before; an empty range if the face lies between two columns of pixels.
    """
    p, q, r, s = EDGE_ENDS[face, 0], EDGE_ENDS[face, 1], EDGE_ENDS[face, 2], EDGE_ENDS[face, 3]
    a, b, c, d = corners[IMAGE_ROW, p], corners[IMAGE_ROW, q], corners[IMAGE_ROW, r], corners[IMAGE_ROW, s]
    first = max(first, math.ceil(min(min(a, b), min(c, d), MAX_PIXEL) - EDGE_TOLERANCE))
    end = min(end, math.floor(max(max(a, b), max(c, d), -2.0) + EDGE_TOLERANCE) + 1)
    a, b, c, d = corners[IMAGE_COLUMN, p], corners[IMAGE_COLUMN, q], corners[IMAGE_COLUMN, r], corners[IMAGE_COLUMN, s]
    left, right = max(min(min(a, b), min(c, d)), -0.5), min(max(max(a, b), max(c, d)), MAX_PIXEL)
    if math.ceil(left - EDGE_TOLERANCE) > min(math.floor(right + EDGE_TOLERANCE), end_column - 1):
        return 0, 0
    return first, end


@compiled
def _add_floor(
    polygon: np.ndarray,
    row: int,
    z: float,
    view: View,
    size: ImageSize,
    max_slope: float,
    occlusion: np.ndarray,
    last_id: int,
    primitives: Primitives,
    corners: np.ndarray,
) -> int:
    """Add a convex polygon of a floor (below the eye) or a ceiling (above).

    Args:
        polygon: float64, (K, 2); its corners, counter-clockwise, m.
        row: Row of the polygon in the scene.
        z: Its height, m.
        view: The view.
        size: Of the image.
        max_slope: See `memenvs.houses.rendering.culling.max_ray_slope`; 0 for no culling.
        occlusion: See `memenvs.houses.rendering.culling.find_occlusion`.
        last_id: The largest id so far.
        primitives: Filled.
        corners: Working memory; see `SetupScratch`.

    Returns:
        The largest id now.
    """
    up = z - view.eye_z
    count = polygon.shape[0]
    if abs(up) < 1e-6:  # seen edge-on
        return last_id
    ch, sh = view.cos_heading, view.sin_heading
    low_slope, high_slope = 1e30, -1e30  # right / forward
    nearest, farthest = 1e30, -1e30  # forward, m
    top, bottom = 1e30, -1e30  # image rows
    least_depth = 1e30  # m
    for k in range(count):
        dx, dy = polygon[k, 0] - view.eye_x, polygon[k, 1] - view.eye_y
        forward, right = dx * ch + dy * sh, dx * sh - dy * ch
        nearest, farthest = min(nearest, forward), max(farthest, forward)
        slope = right / forward if forward > NEAR else 0.0
        low_slope, high_slope = min(low_slope, slope), max(high_slope, slope)
        to = k if up > 0 else count - 1 - k  # clockwise in the image, seen from above or from below
        depth = _project(forward, right, up, view, corners, to)
        least_depth = min(least_depth, depth)
        image_row = corners[ROW_DEPTH, to] / depth
        top, bottom = min(top, image_row), max(bottom, image_row)
    if max_slope > 0:
        is_behind = farthest <= 0
        if is_behind or (nearest > NEAR and is_occluded(low_slope, high_slope, nearest, max_slope, occlusion)):
            return last_id
    first, end = 0, size.height
    if least_depth > NEAR:
        first, end, _, _ = _clip_to_image((top, bottom, 0.0, 0.0), size)
    if first >= end:
        return last_id
    last_id += 1
    int_fields = primitives.int_fields
    int_fields[last_id, SCENE_ROW], int_fields[last_id, FACE] = row, BOTTOM if up > 0 else TOP
    set_plane((0.0, 0.0, 1.0), up, view, primitives.float_fields, last_id)
    set_polygon(corners, POLYGON_EDGES[count], -(-count // EDGES), first, end, last_id, primitives)
    return last_id


@compiled
def _project(forward: float, right: float, up: float, view: View, corners: np.ndarray, k: int) -> float:
    """Fill the first three rows of column k of `corners`, as `project_box` does. Returns the depth, m."""
    depth = forward * view.cos_pitch + up * view.sin_pitch
    rise = up * view.cos_pitch - forward * view.sin_pitch
    corners[COLUMN_DEPTH, k] = right * view.focal + view.centre_i * depth
    corners[ROW_DEPTH, k], corners[DEPTH, k] = view.centre_j * depth - rise * view.focal, depth
    return depth


@compiled
def _clip_to_image(bounds: tuple[float, float, float, float], size: ImageSize) -> tuple[int, int, int, int]:
    """Pixels of the image within some bounds.

    Args:
        bounds: Smallest and largest row, smallest and largest column; pixels.
        size: Of the image.

    Returns:
        First row, row to stop before, first column, column to stop before.
    """
    top, bottom, left, right = bounds
    top, left = min(max(top, -1.0), MAX_PIXEL), min(max(left, -1.0), MAX_PIXEL)
    bottom, right = min(max(bottom, -2.0), MAX_PIXEL), min(max(right, -2.0), MAX_PIXEL)
    return (
        max(0, math.ceil(top - EDGE_TOLERANCE)),
        min(size.height, math.floor(bottom + EDGE_TOLERANCE) + 1),
        max(0, math.ceil(left - EDGE_TOLERANCE)),
        min(size.width, math.floor(right + EDGE_TOLERANCE) + 1),
    )
