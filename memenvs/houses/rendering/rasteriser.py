"""Which surface is seen in each pixel, and how far away: surfaces are drawn one by one into a z-buffer.

The z-buffer holds one key for each pixel, see `memenvs.houses.rendering.kernels.zbuffer.read_depth`; rows are padded to whole blocks of pixels, and one
more block follows the last, so that what is done in blocks may look beyond the end. Everything here is compiled.
"""

from __future__ import annotations

import numpy as np

from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.zbuffer import (
    BLOCK,
    ROWS,
    SPAN,
    SPAN_COUNT,
    SPAN_NUMBER,
    SPAN_ROW,
    SPAN_START,
    SPAN_STOP,
    raise_ball,
    raise_span,
    span_rows,
)
from memenvs.houses.rendering.primitives import (  # fmt: skip
    EYE_U,
    EYE_V,
    EYE_W,
    FIRST,
    FIRST_EDGE,
    FIRST_I,
    GROUPS,
    IS_BALL,
    LAST,
    LAST_I,
    NEAR_0,
    NEAR_I,
    NEAR_J,
    PART,
    RAY_U,
    RAY_U_I,
    RAY_U_J,
    RAY_V,
    RAY_V_I,
    RAY_V_J,
    RAY_W,
    RAY_W_J,
    REALS,
    ROUND,
    Primitives,
    Size,
)

#: How many groups of rows are found before they are drawn.
SPANS_ROOM = 128


@compiled
def _list_spans(
    wholes: np.ndarray, reals: np.ndarray, number: int, size: Size, keys: np.ndarray, mask: np.uint32, spans: np.ndarray, count: int
) -> int:  # fmt: skip
    """Adds a polygon to the `count` entries of `spans`, which are drawn when there is no room; returns how many there are then."""
    near = (reals[number, NEAR_0], reals[number, NEAR_I], reals[number, NEAR_J])
    at_edges, groups = np.uint64(number * REALS + FIRST_EDGE), np.uint64(wholes[number, GROUPS])
    last = wholes[number, LAST]
    for row in range(wholes[number, FIRST], last, ROWS):
        if count == SPANS_ROOM:
            _raise_spans(spans, count, reals, size, keys, mask)
            count = 0
        rows, entry = min(ROWS, last - row), spans[count]
        entry[SPAN_NUMBER], entry[SPAN_ROW], entry[SPAN_COUNT] = number, row, rows
        span_rows(reals, at_edges, groups, float(row), np.int32(rows), np.int32(size[1]), near, entry)
        count += 1
    return count


@compiled
def _raise_spans(
    spans: np.ndarray, count: int, reals: np.ndarray, size: Size, keys: np.ndarray, mask: np.uint32
) -> None:  # fmt: skip
    """Draws the first `count` entries of `spans`. Their ends are long known by then: a loop of unknown length over them waits for nothing."""
    stride = size[2]
    for place in range(count):
        entry = spans[place]
        number, row, rows = np.uint32(entry[SPAN_NUMBER]), entry[SPAN_ROW], entry[SPAN_COUNT]
        start, stop, step = entry[SPAN_START], entry[SPAN_STOP], np.float32(reals[number, NEAR_I])
        for column in range(start, stop, SPAN):
            at, ahead = np.uint64(row * stride + column), np.float32(column - start)
            for k in range(rows):
                raise_span(keys, at, entry, np.uint64(k), np.int32(column), ahead, step, number, mask)
                at += np.uint64(stride)


@compiled
def _fill_round(
    wholes: np.ndarray, reals: np.ndarray, number: int, size: Size, keys: np.ndarray, mask: np.uint32
) -> None:
    """Draws a cylinder or an ellipsoid, ray by ray; the flat part of a cylinder has the next number."""
    entries = reals[number]
    ex, ey, ez = np.float32(entries[EYE_U]), np.float32(entries[EYE_V]), np.float32(entries[EYE_W])
    px, py = np.float32(entries[RAY_U_I]), np.float32(entries[RAY_V_I])
    zero, one, tiny, far = np.float32(0), np.float32(1), np.float32(1e-12), np.float32(1e30)
    ball = np.float32(entries[IS_BALL])
    rest = ex * ex + ey * ey - one + ball * ez * ez
    first, last = int(entries[FIRST_I]), int(entries[LAST_I])
    for row in range(wholes[number, FIRST], wholes[number, LAST]):
        dz = np.float32(entries[RAY_W] + entries[RAY_W_J] * row)
        dz = dz if abs(dz) > tiny else tiny
        p, q = (-ez - one) / dz, (one - ez) / dz  # where it meets the planes of a cylinder's ends
        slab = (-far, far) if ball > zero else (min(p, q), max(p, q))
        eye = (ex, ey, ball * dz * dz, ball * ez * dz, rest)
        for column in range(first, last, BLOCK):
            dx = np.float32(entries[RAY_U] + entries[RAY_U_I] * column + entries[RAY_U_J] * row)
            dy = np.float32(entries[RAY_V] + entries[RAY_V_I] * column + entries[RAY_V_J] * row)
            at, count = np.uint64(row * size[2] + column), np.int32(last - column)
            raise_ball(keys, at, (dx, px, dy, py), eye, slab, count, np.uint32(number), mask)


@compiled
def fill(surfaces: Primitives, last: int, size: Size, keys: np.ndarray, mask: np.uint32, spans: np.ndarray) -> None:
    """Draws surfaces 1 to `last`.

    Args:
        surfaces: As `set_up` fills them.
        last: <= `mask`.
        size: Of the picture.
        keys: uint32, (>= H * stride + BLOCK,); filled.
        mask: The bits of a key that hold the number of a surface.
        spans: int32, (SPANS_ROOM, SPANS_SIZE); room for the pixels of some rows of some surfaces, see
            `memenvs.houses.rendering.kernels.zbuffer.span_rows`.
    """
    keys[:] = 0
    wholes, reals = surfaces
    count = 0
    for number in range(1, last + 1):
        if wholes[number, PART] == ROUND:
            _fill_round(wholes, reals, number, size, keys, mask)
        else:
            count = _list_spans(wholes, reals, number, size, keys, mask, spans, count)
    _raise_spans(spans, count, reals, size, keys, mask)
