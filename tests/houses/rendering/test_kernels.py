"""The vector kernels of the renderer against the same steps in plain NumPy."""

from __future__ import annotations

import numpy as np

from memenvs.houses.rendering.kernels.edges import EDGE_ENDS, POLYGON_EDGES, find_edges, project_box
from memenvs.houses.rendering.kernels.simd import compiled
from memenvs.houses.rendering.kernels.texels import TINT_ONE, modulate_block
from memenvs.houses.rendering.kernels.zbuffer import (
    BLOCK,
    EDGE_GROUP_FIELDS,
    EDGES,
    ROWS,
    SPAN_BLOCK,
    SPAN_FIELDS,
    SPAN_LEFT,
    SPAN_RIGHT,
    WORD,
    decode_depth,
    decode_depth_block,
    draw_round_block,
    draw_span,
    find_spans,
    lowest_bit,
    run_ends,
)

MASK = np.uint32(255)


@compiled
def project(centre, axis, extent, lens, corners):
    return project_box(centre, axis, extent, lens, corners)


@compiled
def edges_of(corners, first_group, groups, edges):
    horizontal = 0
    for group in range(groups):
        at, to = np.uint64(2 * EDGES * (first_group + group)), np.uint64(EDGE_GROUP_FIELDS * group)
        horizontal += find_edges(corners, EDGE_ENDS, at, edges, to)
    return horizontal


@compiled
def spans_of(edges, groups, row, count, width, plane, spans):
    find_spans(edges, np.uint64(0), np.uint64(groups), float(row), np.int32(count), np.int32(width), plane, spans)


@compiled
def draw(keys, spans, row, left, right, step, primitive_id):
    for column in range(left, right, SPAN_BLOCK):
        offset = np.float32(column - left)
        draw_span(keys, np.uint64(column), spans, np.uint64(row), np.int32(column), offset, step, primitive_id, MASK)


@compiled
def draw_round(keys, ray, eye, slab, count, primitive_id):
    draw_round_block(keys, np.uint64(0), ray, eye, slab, count, primitive_id, MASK)


@compiled
def ends_of_runs(keys):
    return run_ends(keys, np.uint64(0), MASK)


@compiled
def lowest(bits):
    return lowest_bit(bits)


@compiled
def depths(keys, out):
    for first in range(0, len(out), BLOCK):
        decode_depth_block(keys, np.uint64(first), MASK, out, np.uint64(first))


@compiled
def modulate(texels, factors, atlas, out):
    modulate_block(texels, factors, np.uint64(0), atlas, out, np.uint64(0))


def test_corners_of_a_box_are_where_a_pinhole_camera_puts_them():
    centre, axis, extent = (3.0, -0.4), (np.cos(0.5), np.sin(0.5)), (0.6, 0.3, -0.8, 0.5)
    pitch, focal, centre_i, centre_j = -0.2, 50.0, 31.5, 23.5
    corners = np.zeros((5, 8))
    bounds = project(centre, axis, extent, (np.cos(pitch), np.sin(pitch), focal, centre_i, centre_j), corners)
    x = extent[0] * np.array([-1, 1, 1, -1] * 2)
    y = extent[1] * np.array([-1, -1, 1, 1] * 2)
    forward = centre[0] + x * axis[0] + y * axis[1]
    right = centre[1] + x * axis[1] - y * axis[0]
    up = np.repeat(extent[2:], 4)
    depth = forward * np.cos(pitch) + up * np.sin(pitch)
    row = centre_j - focal * (up * np.cos(pitch) - forward * np.sin(pitch)) / depth
    column = centre_i + focal * right / depth
    np.testing.assert_allclose(corners, [column * depth, row * depth, depth, row, column], rtol=1e-12)
    np.testing.assert_allclose(bounds, [depth.min(), row.min(), row.max(), column.min(), column.max()], rtol=1e-12)


def test_spans_are_the_pixels_inside_a_polygon():
    """A hexagon: a pixel is inside if it lies to the right of all edges, which run clockwise in the image."""
    angles = -np.arange(6) * np.pi / 3 + 0.1
    column, row = 20 - 12.3 * np.cos(angles), 3.4 + 9.1 * np.sin(angles)
    corners = np.zeros((5, 8))
    corners[:3, :6] = column * 2, row * 2, np.full(6, 2.0)
    edges, spans, width = np.zeros((2, EDGE_GROUP_FIELDS)), np.zeros(SPAN_FIELDS, np.int32), 30
    assert edges_of(corners, POLYGON_EDGES[6], 2, edges) == 0
    plane = (0.5, 0.01, 0.02)
    spans_of(edges, 2, 0, ROWS, width, plane, spans)
    j, i = np.mgrid[0:ROWS, 0:width]
    to_column, to_row = np.roll(column, -1) - column, np.roll(row, -1) - row
    side = to_column * (j[..., None] - row) - to_row * (i[..., None] - column)
    inside = (side >= 0).all(-1)
    found = (i >= spans[:ROWS, None]) & (i < spans[ROWS : 2 * ROWS, None])
    np.testing.assert_array_equal(found, inside)
    assert (spans[SPAN_LEFT], spans[SPAN_RIGHT]) == (i[inside].min(), i[inside].max() + 1)
    base = spans[2 * ROWS : 3 * ROWS].view(np.float32)
    np.testing.assert_allclose(base, plane[0] + plane[1] * spans[SPAN_LEFT] + plane[2] * np.arange(ROWS), rtol=1e-6)


def test_the_nearer_primitive_stays_in_the_buffer():
    rng = np.random.default_rng(0)
    width = 32
    keys = np.zeros(width + WORD + BLOCK, np.uint32)
    depth, seen = np.full(width, np.inf), np.zeros(width, int)
    for primitive_id in range(1, 9):
        left = int(rng.integers(0, 12))
        right = int(rng.integers(left + 1, width))
        base, step = rng.uniform(0.2, 0.5), rng.uniform(-0.005, 0.02)
        spans = np.zeros(SPAN_FIELDS, np.int32)
        spans[[0, ROWS]] = left, right
        spans[2 * ROWS : 2 * ROWS + 1] = np.array([base], np.float32).view(np.int32)
        draw(keys, spans, 0, left, right, np.float32(step), np.uint32(primitive_id))
        z = 1 / (base + step * (np.arange(width) - left))
        is_nearer = (np.arange(width) >= left) & (np.arange(width) < right) & (z < depth)
        depth[is_nearer], seen[is_nearer] = z[is_nearer], primitive_id
    np.testing.assert_array_equal(keys[:width] & MASK, seen)
    assert (keys[width:] == 0).all()
    out = np.zeros(width, np.float32)
    depths(keys, out)
    hit = seen > 0
    np.testing.assert_allclose(out[hit], depth[hit], rtol=2e-5)
    assert (out[~hit] == 0).all()
    np.testing.assert_array_equal(out[hit], [decode_depth(key, MASK) for key in keys[:width][hit]])
    ids = keys[: WORD + 1] & MASK
    ends = np.flatnonzero(ids[:-1] != ids[1:])
    bits = ends_of_runs(keys)
    assert [k for k in range(WORD) if bits >> k & 1] == ends.tolist()
    assert lowest(bits) == ends[0] and lowest(np.int64(-(2**63))) == 63


def test_rays_enter_a_cylinder_through_its_side_or_its_end():
    eye = np.array([-3.0, 0.2, 1.5])  # in axes in which it is the unit cylinder
    x, y, z = 1.0 + 0 * np.arange(BLOCK), 0.05 * np.arange(BLOCK) - 0.2, -0.23
    # Along each ray, the depths between which it is inside; dense samples stand for the closed form.
    t = np.linspace(0, 6, 60_001)
    inside = (eye[0] + t * x[:, None]) ** 2 + (eye[1] + t * y[:, None]) ** 2 < 1
    inside &= abs(eye[2] + t * z) < 1
    lower, upper = (-eye[2] - 1) / z, (1 - eye[2]) / z
    slab = (np.float32(min(lower, upper)), np.float32(max(lower, upper)))
    keys = np.zeros(2 * BLOCK, np.uint32)
    ray = tuple(np.float32(each) for each in (x[0], 0.0, y[0], 0.05))
    constants = (eye[0], eye[1], 0.0, 0.0, eye[0] ** 2 + eye[1] ** 2 - 1)
    draw_round(keys, ray, tuple(np.float32(each) for each in constants), slab, np.int32(13), np.uint32(6))
    out = np.zeros(BLOCK, np.float32)
    depths(keys, out)
    is_hit = inside.any(1) & (np.arange(BLOCK) < 13)
    enter = t[inside.argmax(1)]
    assert is_hit[:8].all() and not is_hit[13:].any()
    np.testing.assert_array_equal(out > 0, is_hit)
    np.testing.assert_allclose(out[is_hit], enter[is_hit], atol=3e-4)
    through_end = abs(abs(eye[2] + enter * z) - 1) < 1e-4
    assert 0 < through_end[is_hit].sum() < is_hit.sum()
    np.testing.assert_array_equal(keys[:BLOCK][is_hit] & MASK, np.where(through_end, 7, 6)[is_hit])


def test_texels_are_multiplied_with_their_factors():
    rng = np.random.default_rng(1)
    atlas = rng.integers(0, 256, (50, 3))
    texels = rng.integers(0, 50, BLOCK).astype(np.int32)
    tint = rng.uniform(0, 2.5, (BLOCK, 3))
    factors = ((tint * TINT_ONE).astype(np.int64) << np.array([0, 16, 32])).sum(1)
    out = np.zeros(3 * BLOCK, np.uint8)
    modulate(texels, factors, (atlas << np.array([0, 8, 16])).sum(1).astype(np.int32), out)
    expected = np.minimum(atlas[texels] * tint, 255)
    assert abs(out.reshape(BLOCK, 3) - expected).max() < 1.1  # rounded down
