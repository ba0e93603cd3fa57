"""Primitives: the faces that the rasteriser draws, described by numbers of the image.

- A flat primitive (a face of a box, a piece of floor) is a plane and a convex polygon. One over the depth of a plane is
  an affine function of the pixel, and the polygon is a set of lines of the image. So its pixels cost one addition and
  one comparison each.
- A round primitive (the curved part of a cylinder, an ellipsoid) is drawn ray by ray, in axes in which it is the unit
  cylinder or the unit ball. Its fields describe these rays.

Ids count from 1; id 0 means "nothing". For the frame (forward, right, up) and for views see
`memenvs.houses.rendering.culling`. The functions are compiled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from memenvs.houses.rendering.culling import View
from memenvs.houses.rendering.kernels.edges import (
    COLUMN_DEPTH,
    DEPTH,
    EDGE_ENDS,
    EDGE_TOLERANCE,
    ROW_DEPTH,
    find_edges,
)
from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.zbuffer import EDGE_GROUP_FIELDS, EDGES
from memenvs.houses.rendering.scene import MAX_FLOOR_CORNERS

#: Faces: +x, -x, +y and -y of a box (its own axes), top, bottom, and the curved part of a round solid. A floor is a TOP
#: and a ceiling a BOTTOM.
FRONT_X, BACK_X, FRONT_Y, BACK_Y, TOP, BOTTOM, CURVED = range(7)

#: Columns of `Primitives.int_fields`: row in the scene, face, first image row, image row to stop before, groups of
#: edges.
SCENE_ROW, FACE, FIRST_ROW, END_ROW, EDGE_GROUPS = range(5)
INT_FIELDS = 5
#: Columns of `Primitives.float_fields` of flat primitives. One over the depth at pixel (i, j) is
#: PLANE_0 + PLANE_I * i + PLANE_J * j. Groups of edges follow from FIRST_EDGE on, see
#: `memenvs.houses.rendering.kernels.zbuffer.find_spans`.
PLANE_0, PLANE_I, PLANE_J, FIRST_EDGE = range(4)
FLOAT_FIELDS = FIRST_EDGE + EDGE_GROUP_FIELDS * -(-MAX_FLOOR_CORNERS // EDGES)
#: Columns of `Primitives.float_fields` of round primitives, in axes (u, v, w) in which the solid is the unit cylinder
#: or ball: the eye; the direction of the ray at pixel (0, 0); its change along i (w does not change) and along j. Then
#: the image columns that the solid spans, and 1 for an ellipsoid or 0 for a cylinder.
EYE_U, EYE_V, EYE_W, RAY_U, RAY_V, RAY_W, RAY_U_I, RAY_V_I, RAY_U_J, RAY_V_J, RAY_W_J = range(11)
FIRST_COLUMN, END_COLUMN, IS_ELLIPSOID = range(11, 14)

#: Pixels; positions beyond the image are clamped to this before they become integers.
MAX_PIXEL = 1e6


class Primitives(NamedTuple):
    """The F primitives of a view; row k describes the primitive of id k and row 0 is unused.

    Attributes:
        int_fields: int32, (F, INT_FIELDS).
        float_fields: float64, (F, FLOAT_FIELDS).
    """

    int_fields: np.ndarray
    float_fields: np.ndarray


class ImageSize(NamedTuple):
    """Height and width of an image, and the width rounded up to whole blocks; pixels.

    The rounded width is the stride of the z-buffer.
    """

    height: int
    width: int
    stride: int


@compiled
def set_plane(
    normal: tuple[float, float, float], distance: float, view: View, float_fields: np.ndarray, primitive_id: int
) -> None:
    """Write a plane: the points p relative to the eye with normal . p = distance.

    A ray d of depth 1 meets it at depth distance / (normal . d), so one over the depth is linear in d and in the pixel.

    Args:
        normal: Forward, right, up.
        distance: m; not 0.
        view: The view.
        float_fields: See `Primitives`; PLANE_0, PLANE_I and PLANE_J are filled.
        primitive_id: Its id.
    """
    normal_forward, normal_right, normal_up = normal
    cp, sp = view.cos_pitch, view.sin_pitch
    # The normal in the frame of the pitched camera: along its optical axis and upward.
    along, upward = normal_forward * cp + normal_up * sp, normal_up * cp - normal_forward * sp
    scale = 1.0 / (distance * view.focal)
    plane_i, plane_j = normal_right * scale, -upward * scale
    float_fields[primitive_id, PLANE_0] = (
        along * (scale * view.focal) - plane_i * view.centre_i - plane_j * view.centre_j
    )
    float_fields[primitive_id, PLANE_I], float_fields[primitive_id, PLANE_J] = plane_i, plane_j


@compiled
def set_polygon(
    corners: np.ndarray, first_group: int, groups: int, first: int, end: int, primitive_id: int, primitives: Primitives
) -> None:
    """Describe a convex polygon by its edges in the image.

    Args:
        corners: float64, (5, 8); projected corners, which may lie behind the eye.
        first_group: Row of `EDGE_ENDS` of the polygon's first group of edges.
        groups: How many groups it has.
        first: First image row that it can reach.
        end: Image row to stop before.
        primitive_id: Its id.
        primitives: Filled at that id.
    """
    int_fields, float_fields = primitives
    for group in range(groups):
        to = np.uint64(primitive_id * FLOAT_FIELDS + FIRST_EDGE + group * EDGE_GROUP_FIELDS)
        at = np.uint64(2 * EDGES * (first_group + group))
        horizontal = find_edges(corners, EDGE_ENDS, at, float_fields, to)
        for edge in range(EDGES if horizontal > 0 else 0):
            if horizontal >> edge & 1:  # it bounds the rows: those above or those below it are outside
                p, q = EDGE_ENDS[first_group + group, edge], EDGE_ENDS[first_group + group, EDGES + edge]
                edge_j = corners[DEPTH, p] * corners[COLUMN_DEPTH, q] - corners[COLUMN_DEPTH, p] * corners[DEPTH, q]
                edge_1 = (
                    corners[COLUMN_DEPTH, p] * corners[ROW_DEPTH, q] - corners[ROW_DEPTH, p] * corners[COLUMN_DEPTH, q]
                )
                if edge_j > 0:
                    first = max(first, math.ceil(min(max(-edge_1 / edge_j - EDGE_TOLERANCE, -1.0), MAX_PIXEL)))
                else:
                    end = min(end, math.floor(min(max(-edge_1 / edge_j + EDGE_TOLERANCE, -1.0), MAX_PIXEL)) + 1)
    int_fields[primitive_id, FIRST_ROW], int_fields[primitive_id, END_ROW] = first, end
    int_fields[primitive_id, EDGE_GROUPS] = groups


@compiled
def set_round(
    is_ellipsoid: bool,
    centre: tuple[float, float, float],
    axis: tuple[float, float],
    half: tuple[float, float, float],
    columns: tuple[int, int],
    view: View,
    fields: np.ndarray,
) -> None:
    """Describe a cylinder or an ellipsoid by rays in its own axes, scaled to unit size.

    Args:
        is_ellipsoid: True for an ellipsoid.
        centre: Forward, right and up of the eye, m.
        axis: Its x axis (forward, right).
        half: Half sizes, m.
        columns: First image column, and image column to stop before.
        view: The view.
        fields: float64, (>= 14,); its row of `Primitives.float_fields`, filled.
    """
    cf, cr, cu = centre
    xf, xr = axis
    step, i, j = 1.0 / view.focal, view.centre_i, view.centre_j
    fields[EYE_U] = -(cf * xf + cr * xr) / half[0]
    fields[EYE_V] = -(cf * xr - cr * xf) / half[1]
    fields[EYE_W] = -cu / half[2]
    # One column to the right moves the ray along `right`, one row down moves it along -up of the pitched camera.
    fields[RAY_U_I], fields[RAY_V_I] = xr * step / half[0], -xf * step / half[1]
    forward_j, up_j = view.sin_pitch * step, -view.cos_pitch * step
    fields[RAY_U_J], fields[RAY_V_J] = forward_j * xf / half[0], forward_j * xr / half[1]
    fields[RAY_W_J] = up_j / half[2]
    fields[RAY_U] = view.cos_pitch * xf / half[0] - fields[RAY_U_I] * i - fields[RAY_U_J] * j
    fields[RAY_V] = view.cos_pitch * xr / half[1] - fields[RAY_V_I] * i - fields[RAY_V_J] * j
    fields[RAY_W] = view.sin_pitch / half[2] - fields[RAY_W_J] * j
    fields[FIRST_COLUMN], fields[END_COLUMN], fields[IS_ELLIPSOID] = (
        columns[0],
        columns[1],
        1.0 if is_ellipsoid else 0.0,
    )
