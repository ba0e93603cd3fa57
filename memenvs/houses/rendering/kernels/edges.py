"""Projection and edges: all corners of a box at once, then four edges of a polygon at once.

`project_box` gives the image positions of a box's eight corners. `find_edges` turns pairs of projected corners into
lines of the image, which `memenvs.houses.rendering.kernels.zbuffer.find_spans` then intersects with rows of pixels.

Edges are computed in homogeneous coordinates: a corner is (column * depth, row * depth, depth), and the line through
two corners is their cross product. This needs no division by the depth, so an edge may have an end behind the eye and
no polygon has to be clipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from memenvs.houses.rendering.culling import NEAR
from memenvs.houses.rendering.kernels.simd import F64, I64, SimdVector, entry_pointer, gather, intrinsic
from memenvs.houses.rendering.kernels.zbuffer import EDGES
from memenvs.houses.rendering.scene import MAX_FLOOR_CORNERS

#: Rows of an array of projected corners, float64, (5, 8): column times depth, row times depth, depth, row, column. The
#: last two are valid for corners in front of the eye only.
COLUMN_DEPTH, ROW_DEPTH, DEPTH, IMAGE_ROW, IMAGE_COLUMN = range(5)

#: Pixels; polygons reach this far over their edges, so that no gap opens between neighbours.
EDGE_TOLERANCE = 1e-3

_UNBOUNDED = 1e30  # pixels; beyond any edge that matters


def _edge_groups(corners: tuple[int, ...]) -> list[list[int]]:
    """Rows of `EDGE_ENDS` for a polygon; the last group is filled up with edges of length 0.

    Args:
        corners: Indices of the polygon's corners, in order.
    """
    padding = -len(corners) % EDGES
    starts = [*corners, *[corners[0]] * padding]
    stops = [*corners[1:], *[corners[0]] * (padding + 1)]
    return [starts[k : k + EDGES] + stops[k : k + EDGES] for k in range(0, len(starts), EDGES)]


# The corners of each face of a box, clockwise as seen from outside. Corners 0 to 3 are the lower ones,
# counter-clockwise from the one at -x, -y; corners 4 to 7 lie above them.
_BOX_FACES = ((5, 6, 2, 1), (7, 4, 0, 3), (6, 7, 3, 2), (4, 5, 1, 0), (7, 6, 5, 4), (0, 1, 2, 3))
_polygons = [_edge_groups(face) for face in _BOX_FACES]
_polygons += [_edge_groups(tuple(range(count))) for count in range(1, MAX_FLOOR_CORNERS + 1)]
#: Indices of the first and last corners of groups of edges, int64, (rows, 2 * EDGES). The first six rows are the faces
#: of a box; then come polygons of 1, 2, ... corners in order.
EDGE_ENDS = np.array([group for groups in _polygons for group in groups])
#: First row of `EDGE_ENDS` of a polygon, by the number of its corners; entry 0 is unused.
POLYGON_EDGES = np.array([0, *np.cumsum([len(groups) for groups in _polygons])[len(_BOX_FACES) - 1 : -1]])


@intrinsic
def project_box(typingctx: Any, centre: Any, axis: Any, extent: Any, lens: Any, corners: Any) -> Any:
    """Project the eight corners of a box into the image.

    Args:
        typingctx: Given by numba.
        centre: Two float64; position of the box, forward and right of the eye, m.
        axis: Two float64; the box's x axis as a unit vector (forward, right). Its y axis is (right, -forward).
        extent: Four float64; half sizes along x and y, then bottom and top above the eye, m.
        lens: Five float64; cosine and sine of the pitch, focal length, column and row of the principal point, pixels.
        corners: float64, (5, 8); filled. Rows as `COLUMN_DEPTH` to `IMAGE_COLUMN`.

    Returns:
        Five float64; smallest depth, smallest and largest image row, smallest and largest image column.
    """
    two, four, five = (types.UniTuple(types.float64, count) for count in (2, 4, 5))
    signature = five(two, two, four, five, corners)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        unpacked = [cgutils.unpack_tuple(builder, arguments[k]) for k in range(4)]
        (centre_forward, centre_right), (axis_forward, axis_right), (half_x, half_y, low, high), lens = unpacked
        cos, sin, focal, centre_i, centre_j = lens
        sign_x = SimdVector.constant(builder, F64, (-1, 1, 1, -1) * 2)
        sign_y = SimdVector.constant(builder, F64, (-1, -1, 1, 1) * 2)
        is_upper = SimdVector.constant(builder, F64, (0, 0, 0, 0, 1, 1, 1, 1)) > 0.0
        # From the box's axes to the frame of the eye: forward, right, up.
        x, y = sign_x * half_x, sign_y * half_y
        forward = x * axis_forward + y * axis_right + centre_forward
        right = x * axis_right - y * axis_forward + centre_right
        up = is_upper.select(SimdVector.broadcast(builder, high, 8), low)
        # Pitch, then the pinhole camera in homogeneous coordinates.
        depth, rise = forward * cos + up * sin, up * cos - forward * sin
        column_depth, row_depth = right * focal + depth * centre_i, depth * centre_j - rise * focal
        scale = (depth > NEAR).select(1.0 / depth, 0.0)
        row, column = row_depth * scale, column_depth * scale
        for k, values in enumerate((column_depth, row_depth, depth, row, column)):
            values.store(entry_pointer(context, builder, signature.args[4], arguments[4], 8 * k))
        bounds = [depth.reduce("minimum")]
        bounds += [position.reduce(name) for position in (row, column) for name in ("minimum", "maximum")]
        return context.make_tuple(builder, five, bounds)

    return signature, generate


@intrinsic
def find_edges(typingctx: Any, corners: Any, ends: Any, at: Any, edges: Any, to: Any) -> Any:
    """Turn `EDGES` pairs of projected corners into lines of the image.

    A line is `column = slope * row + start`. The line through two homogeneous corners p and q is e = p x q: a pixel
    (i, j) lies on it if e . (i, j, 1) = 0.

    Args:
        typingctx: Given by numba.
        corners: float64, (5, 8); see `project_box`. Corners may lie behind the eye.
        ends: int64, (rows, 2 * EDGES); `EDGE_ENDS`.
        at: uint64; index of the group's first corner, counted through all rows of `ends`.
        edges: float64, two axes; filled with slopes, left starts and right starts, as
            `memenvs.houses.rendering.kernels.zbuffer.find_spans` reads them.
        to: uint64; index of the first entry to fill, counted through all rows of `edges`.

    Returns:
        int64; bit k is set if edge k is horizontal. Such an edge bounds rows and not columns.
    """
    signature = types.int64(corners, ends, types.uint64, edges, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Emit the vector code."""
        corners, ends, at, edges, to = arguments
        ends = entry_pointer(context, builder, signature.args[1], ends, at)
        table = entry_pointer(context, builder, signature.args[0], corners)

        def homogeneous(side: int) -> list[SimdVector]:
            """Homogeneous coordinates of the edges' first (side 0) or last (side 1) corners."""
            indices = builder.gep(ends, [ir.Constant(I64, side * EDGES)])
            rows = (builder.gep(table, [ir.Constant(I64, 8 * row)]) for row in (COLUMN_DEPTH, ROW_DEPTH, DEPTH))
            return [gather(builder, row, indices, EDGES) for row in rows]

        p, q = homogeneous(0), homogeneous(1)
        edge_i, edge_j, edge_1 = (p[m] * q[n] - p[n] * q[m] for m, n in ((1, 2), (2, 0), (0, 1)))  # p x q
        steepness = edge_j.call("fabs")
        is_horizontal = edge_i.call("fabs") <= steepness * 1e-9
        scale = is_horizontal.select(SimdVector.constant(builder, F64, [0] * EDGES), -1.0 / edge_i)
        start = edge_1 * scale
        fields = (
            edge_j * scale,  # slope
            (scale < 0.0).select(start - EDGE_TOLERANCE, -_UNBOUNDED),  # left edges
            (scale > 0.0).select(start + EDGE_TOLERANCE, _UNBOUNDED),  # right edges
        )
        for field, values in enumerate(fields):
            index = builder.add(to, ir.Constant(I64, field * EDGES))
            values.store(entry_pointer(context, builder, signature.args[3], edges, index))
        return builder.zext((is_horizontal & (steepness > 0.0)).bitmask(), I64)

    return signature, generate
