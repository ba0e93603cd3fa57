"""Rasteriser: find which primitive is seen in each pixel, and how far away it is.

In: the primitives of `memenvs.houses.rendering.primitive_setup.set_up_primitives`. Out: the z-buffer, one key per pixel
that holds depth and primitive id, see `memenvs.houses.rendering.kernels.zbuffer`. Primitives are drawn in any order;
the nearest one wins in each pixel.

Rows of the z-buffer are padded to whole blocks of pixels, and more follow the last row. So a step that
writes or reads some pixels at once may run over the end of a row.

Flat primitives are drawn in two passes. The first finds the spans of up to `MAX_SPAN_GROUPS` groups of eight rows; the
second writes their pixels. The loop of the second pass has a length that depends on the spans. With all lengths in
memory before it starts, the processor predicts and overlaps these loops instead of waiting for each one.

Everything here is compiled.
"""

from __future__ import annotations

import numpy as np

from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.zbuffer import (
    BLOCK,
    ROWS,
    SPAN_BLOCK,
    SPAN_COUNT,
    SPAN_ID,
    SPAN_LEFT,
    SPAN_RIGHT,
    SPAN_ROW,
    draw_round_block,
    draw_span,
    find_spans,
)
from memenvs.houses.rendering.primitives import (
    CURVED,
    EDGE_GROUPS,
    END_COLUMN,
    END_ROW,
    EYE_U,
    EYE_V,
    EYE_W,
    FACE,
    FIRST_COLUMN,
    FIRST_EDGE,
    FIRST_ROW,
    FLOAT_FIELDS,
    IS_ELLIPSOID,
    PLANE_0,
    PLANE_I,
    PLANE_J,
    RAY_U,
    RAY_U_I,
    RAY_U_J,
    RAY_V,
    RAY_V_I,
    RAY_V_J,
    RAY_W,
    RAY_W_J,
    ImageSize,
    Primitives,
)

#: Groups of rows whose spans are found before they are drawn.
MAX_SPAN_GROUPS = 128


@compiled
def rasterise(
    primitives: Primitives, last_id: int, size: ImageSize, keys: np.ndarray, id_mask: np.uint32, spans: np.ndarray
) -> None:
    """Draw the primitives of ids 1 to `last_id` into an empty z-buffer.

    Args:
        primitives: Filled by `memenvs.houses.rendering.primitive_setup.set_up_primitives`.
        last_id: <= `id_mask`.
        size: Of the image.
        keys: uint32, (>= height * stride + WORD + BLOCK,); filled.
        id_mask: The lower bits of a key that hold the id, all ones.
        spans: int32, (MAX_SPAN_GROUPS, SPAN_FIELDS); working memory.
    """
    keys[:] = 0
    count = np.int64(0)  # a plain 0 has a type of its own, for which numba compiles the functions below once more
    for primitive_id in range(1, last_id + 1):
        if primitives.int_fields[primitive_id, FACE] == CURVED:
            _draw_round(primitives, primitive_id, size, keys, id_mask)
        else:
            count = _find_polygon_spans(primitives, primitive_id, size, keys, id_mask, spans, count)
    _draw_spans(spans, count, primitives.float_fields, size, keys, id_mask)


@compiled
def _find_polygon_spans(
    primitives: Primitives,
    primitive_id: int,
    size: ImageSize,
    keys: np.ndarray,
    id_mask: np.uint32,
    spans: np.ndarray,
    count: np.int64,
) -> np.int64:
    """Append a polygon's spans to the `count` groups in `spans`; if these are full, draw them first.

    Returns:
        How many groups there are now.
    """
    int_fields, float_fields = primitives
    plane = (
        float_fields[primitive_id, PLANE_0],
        float_fields[primitive_id, PLANE_I],
        float_fields[primitive_id, PLANE_J],
    )
    edges_at = np.uint64(primitive_id * FLOAT_FIELDS + FIRST_EDGE)
    edge_groups = np.uint64(int_fields[primitive_id, EDGE_GROUPS])
    end = int_fields[primitive_id, END_ROW]
    for row in range(int_fields[primitive_id, FIRST_ROW], end, ROWS):
        if count == MAX_SPAN_GROUPS:
            _draw_spans(spans, count, float_fields, size, keys, id_mask)
            count = np.int64(0)
        rows = min(ROWS, end - row)
        group = spans[count]
        group[SPAN_ID], group[SPAN_ROW], group[SPAN_COUNT] = primitive_id, row, rows
        find_spans(float_fields, edges_at, edge_groups, float(row), np.int32(rows), np.int32(size.width), plane, group)
        count += 1
    return count


@compiled
def _draw_spans(
    spans: np.ndarray, count: int, float_fields: np.ndarray, size: ImageSize, keys: np.ndarray, id_mask: np.uint32
) -> None:
    """Draw the first `count` groups of `spans`."""
    stride = size.stride
    for k in range(count):
        group = spans[k]
        primitive_id, row, rows = np.uint32(group[SPAN_ID]), group[SPAN_ROW], group[SPAN_COUNT]
        left, right = group[SPAN_LEFT], group[SPAN_RIGHT]
        step = np.float32(float_fields[primitive_id, PLANE_I])
        for column in range(left, right, SPAN_BLOCK):
            at = np.uint64(row * stride + column)
            offset = np.float32(column - left)
            for j in range(rows):
                draw_span(keys, at, group, np.uint64(j), np.int32(column), offset, step, primitive_id, id_mask)
                at += np.uint64(stride)


@compiled
def _draw_round(
    primitives: Primitives, primitive_id: int, size: ImageSize, keys: np.ndarray, id_mask: np.uint32
) -> None:
    """Draw a cylinder or an ellipsoid ray by ray; the flat end of a cylinder has the next id."""
    int_fields, float_fields = primitives
    fields = float_fields[primitive_id]
    eye_u, eye_v, eye_w = np.float32(fields[EYE_U]), np.float32(fields[EYE_V]), np.float32(fields[EYE_W])
    u_step, v_step = np.float32(fields[RAY_U_I]), np.float32(fields[RAY_V_I])
    zero, one, tiny, infinite = np.float32(0), np.float32(1), np.float32(1e-12), np.float32(1e30)
    w_weight = np.float32(fields[IS_ELLIPSOID])  # 0 leaves the third axis of a cylinder out
    # c of the quadratic equation, see `draw_round_block`
    constant = eye_u * eye_u + eye_v * eye_v - one + w_weight * eye_w * eye_w
    first, end = int(fields[FIRST_COLUMN]), int(fields[END_COLUMN])
    for row in range(int_fields[primitive_id, FIRST_ROW], int_fields[primitive_id, END_ROW]):
        ray_w = np.float32(fields[RAY_W] + fields[RAY_W_J] * row)
        ray_w = ray_w if abs(ray_w) > tiny else tiny
        lower, upper = (-eye_w - one) / ray_w, (one - eye_w) / ray_w  # depths of the planes of a cylinder's ends
        slab = (-infinite, infinite) if w_weight > zero else (min(lower, upper), max(lower, upper))
        eye = (eye_u, eye_v, w_weight * ray_w * ray_w, w_weight * eye_w * ray_w, constant)
        for column in range(first, end, BLOCK):
            ray_u = np.float32(fields[RAY_U] + fields[RAY_U_I] * column + fields[RAY_U_J] * row)
            ray_v = np.float32(fields[RAY_V] + fields[RAY_V_I] * column + fields[RAY_V_J] * row)
            at = np.uint64(row * size.stride + column)
            count = np.int32(end - column)
            ray = (ray_u, u_step, ray_v, v_step)
            draw_round_block(keys, at, ray, eye, slab, count, np.uint32(primitive_id), id_mask)
