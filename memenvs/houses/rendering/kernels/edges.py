"""The innermost steps of setting surfaces up: all corners of a box at a time, all edges of a face at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from memenvs.houses.rendering.culling import NEAR
from memenvs.houses.rendering.kernels.simd import DOUBLE, LONG, Lanes, gather, intrinsic, pointer
from memenvs.houses.rendering.kernels.zbuffer import EDGES
from memenvs.houses.rendering.scene import PIECE_CORNERS

#: Rows of corners: column of the picture times depth, row times depth, depth, row, column. The last two are for what lies in front.
ACROSS, DOWN, DEPTH, LINE, COLUMN = range(5)

#: px; surfaces reach this far over their edges, so that no gap opens between neighbours.
SLACK = 1e-3

_NONE = 1e30  # px; further than any edge that counts


def _ends(order: tuple[int, ...]) -> list[list[int]]:
    """Rows of `EDGE_ENDS` for a polygon with these corners; the rest is filled up with edges without length."""
    starts = [*order, *[order[0]] * (-len(order) % EDGES)]
    stops = [*order[1:], *[order[0]] * (-len(order) % EDGES + 1)]
    return [starts[k : k + EDGES] + stops[k : k + EDGES] for k in range(0, len(starts), EDGES)]


# The corners of each face of a box, clockwise as seen from outside: 0 to 3 are the lower ones, counter-clockwise from the one at
# -x, -y; 4 to 7 lie above them.
_FACES = ((5, 6, 2, 1), (7, 4, 0, 3), (6, 7, 3, 2), (4, 5, 1, 0), (7, 6, 5, 4), (0, 1, 2, 3))
_polygons = [_ends(face) for face in _FACES] + [_ends(tuple(range(count))) for count in range(1, PIECE_CORNERS + 1)]
#: First and last corners of groups of edges, int64, (rows, 2 * EDGES): the faces of a box, then polygons whose corners are in order.
EDGE_ENDS = np.array([row for rows in _polygons for row in rows])
#: First row of a polygon by the number of its corners.
AROUND = np.array([0, *np.cumsum([len(rows) for rows in _polygons])[len(_FACES) - 1 : -1]])


@intrinsic
def project_box(typingctx: Any, centre: Any, turn: Any, extent: Any, lens: Any, corners: Any) -> Any:
    """Finds where the corners of a box are in a picture.

    Args:
        typingctx: Given by numba.
        centre: Two float64: forward and right of the eye, m.
        turn: Two float64: forward and right part of the box's x axis.
        extent: Four float64: half sizes along x and y, then bottom and top above the eye, m.
        lens: Five float64: cosine and sine of the pitch, focal length, column and row of the picture's centre, px.
        corners: float64, (5, 8); filled.

    Returns:
        Five float64: the least depth, least and most row, least and most column.
    """
    two, four, five = (types.UniTuple(types.float64, count) for count in (2, 4, 5))
    signature = five(two, two, four, five, corners)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        (cf, cr), (xf, xr), (hx, hy, low, high), lens = (cgutils.unpack_tuple(builder, arguments[k]) for k in range(4))
        cos, sin, focal, centre_i, centre_j = lens
        along_x, along_y, is_high = (
            Lanes.constant(builder, DOUBLE, numbers)
            for numbers in ((-1, 1, 1, -1) * 2, (-1, -1, 1, 1) * 2, (0, 0, 0, 0, 1, 1, 1, 1))
        )
        x, y = along_x * hx, along_y * hy
        forward, right = x * xf + y * xr + cf, x * xr - y * xf + cr
        up = (is_high > 0.0).choose(Lanes.of(builder, high, 8), low)
        depth, rise = forward * cos + up * sin, up * cos - forward * sin
        across, down = right * focal + depth * centre_i, depth * centre_j - rise * focal
        scale = (depth > NEAR).choose(1.0 / depth, 0.0)
        line, column = down * scale, across * scale
        for row, values in enumerate((across, down, depth, line, column)):
            values.store(pointer(context, builder, signature.args[4], arguments[4], 8 * row))
        found = [depth.fold("least")] + [part.fold(name) for part in (line, column) for name in ("least", "most")]
        return context.make_tuple(builder, five, found)

    return signature, generate


@intrinsic
def find_edges(typingctx: Any, corners: Any, ends: Any, at: Any, reals: Any, to: Any) -> Any:
    """Describes `EDGES` edges of a polygon as lines in the picture.

    Args:
        typingctx: Given by numba.
        corners: See `project_box`; may lie behind the eye.
        ends: `EDGE_ENDS`.
        at: uint64; the entry of `ends`, counted through all rows, where the first corners stand.
        reals: float64, two axes; filled with slopes, starts of left edges and starts of right edges, see
            `memenvs.houses.rendering.kernels.zbuffer.span_rows`.
        to: uint64; the entry, counted through all rows, from which on.

    Returns:
        int64; bit k is set if edge k is level: it bounds rows, not columns.
    """
    signature = types.int64(corners, ends, types.uint64, reals, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """The vector code."""
        corners, ends, at, reals, to = arguments
        ends = pointer(context, builder, signature.args[1], ends, at)
        table = pointer(context, builder, signature.args[0], corners)
        first, second = (
            [
                gather(
                    builder,
                    builder.gep(table, [ir.Constant(LONG, 8 * row)]),
                    builder.gep(ends, [ir.Constant(LONG, side * EDGES)]),
                    EDGES,
                )
                for row in (ACROSS, DOWN, DEPTH)
            ]
            for side in range(2)
        )
        ei, ej, ek = (
            first[k] * second[n] - first[n] * second[k] for k, n in ((DOWN, DEPTH), (DEPTH, ACROSS), (ACROSS, DOWN))
        )
        wide = ej.call("fabs")
        is_level = ei.call("fabs") <= wide * 1e-9
        scale = is_level.choose(Lanes.constant(builder, DOUBLE, [0] * EDGES), -1.0 / ei)
        start = ek * scale
        values = (
            ej * scale,
            (scale < 0.0).choose(start - SLACK, -_NONE),
            (scale > 0.0).choose(start + SLACK, _NONE),
        )
        for number, value in enumerate(values):
            place = builder.add(to, ir.Constant(LONG, number * EDGES))
            value.store(pointer(context, builder, signature.args[3], reals, place))
        return builder.zext((is_level & (wide > 0.0)).mask(), LONG)

    return signature, generate
