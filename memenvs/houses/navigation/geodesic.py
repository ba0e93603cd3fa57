"""Geodesic distances: lengths of the shortest paths from all cells to the nearest goal.

In: a grid of free cells and some goal cells. Out: a distance field, one float32 per cell in metres.

Dijkstra's algorithm on a grid measures along its links, which overestimates oblique distances by up to 8 %. Fast
marching solves the eikonal equation |gradient of u| = 1 instead and is within about 1 % of the true distance. Like
Dijkstra, it accepts the cell with the smallest tentative value and then updates the neighbours of that cell. Two
additions make it fast and exact: a ring of buckets replaces the heap, and cells around a goal start from their straight
distance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

from memenvs.compilation import need_compiler

need_compiler()

#: Radius around each goal, in cells, within which cells get their exact straight distance before the marching starts.
SEED_RADIUS = 4
#: Tentative cells are sorted into a ring of BUCKETS buckets, BUCKETS_PER_CELL for each cell of distance. The ring must
#: cover a wider range than the distances in it: SEED_RADIUS cells at first, later the one cell that an update adds.
BUCKETS_PER_CELL, BUCKETS = 16, 128

#: Compiles a part of `fast_march`. Without reference counts (nothing is allocated in here) it takes half the time.
_compiled: Any = njit(  # type: ignore[call-overload]
    nogil=True, cache=True, _nrt=False, forceinline=True, error_model="numpy"
)


def fast_march(free: np.ndarray, width: int, goals: np.ndarray, cell_size: float) -> np.ndarray:
    """Walking distance from every free cell to the nearest goal.

    Args:
        free: bool, (H * W,); the two outermost rows and columns must be blocked.
        width: W.
        goals: int64, (Q,); flat indices of free cells.
        cell_size: Side of a cell, m.

    Returns:
        float32, (H * W,); m; 0 at goals, inf where no path leads.

    Source:
        Fast marching with second-order upwind differences (Sethian, "Fast marching methods", 1999, section 3). Buckets
        instead of a heap: Yatziv, Bartesaghi and Sapiro, 2006. Cells near a goal start from the exact straight
        distance, because the differences are worst there.
    """
    accepted = np.full(len(free), np.inf, np.float32)
    tentative = np.where(free, np.float32(np.inf), np.float32(-1))
    next_node = np.empty(5 * len(free), np.int32)
    bucket_head = np.full(BUCKETS, -1, np.int32)
    _march(free, width, goals, accepted, tentative, next_node, bucket_head)
    accepted *= np.float32(cell_size)
    return accepted


@_compiled
def _march(
    free: np.ndarray,
    width: int,
    goals: np.ndarray,
    accepted: np.ndarray,
    tentative: np.ndarray,
    next_node: np.ndarray,
    bucket_head: np.ndarray,
) -> None:
    """Accept all cells in the order of their distance; lengths are in cells.

    A bucket is a linked list of nodes. Node 5 * c + 4 stands for cell c as it is seeded, node 5 * c + k for cell c as
    it is after its neighbour k was accepted. A cell may be in several buckets; the first of its nodes to come out
    counts.

    Args:
        free: As in `fast_march`.
        width: As in `fast_march`.
        goals: As in `fast_march`.
        accepted: float32, (H * W,), inf; filled with final values.
        tentative: float32, (H * W,); smallest values so far: inf, and -1 where blocked. Becomes -1 where accepted.
        next_node: int32, (5 * H * W,); working memory: the node after each node in its bucket.
        bucket_head: int32, (BUCKETS,), -1; first node of each bucket, -1 for none.
    """
    _seed_goals(free, width, goals, tentative)
    num_queued = 0  # nodes in all buckets
    for index in range(len(free)):
        if 0 <= tentative[index] < np.inf:
            bucket = int(tentative[index] * BUCKETS_PER_CELL) & (BUCKETS - 1)
            next_node[5 * index + 4], bucket_head[bucket] = bucket_head[bucket], 5 * index + 4
            num_queued += 1
    current = 0  # bucket, counted without wrapping around
    while num_queued > 0:
        node = bucket_head[current & (BUCKETS - 1)]
        if node < 0:
            current += 1
            continue
        bucket_head[current & (BUCKETS - 1)] = next_node[node]
        num_queued -= 1
        index = node // 5
        value = tentative[index]
        if value < 0:  # accepted before, through another node
            continue
        accepted[index], tentative[index] = value, -1
        for k in range(4):
            neighbour = index + ((k & 1) * 2 - 1) * (width if k & 2 else 1)
            if tentative[neighbour] <= value:
                continue
            u = np.float32(_solve_eikonal(accepted, neighbour, width))
            if u < tentative[neighbour]:
                tentative[neighbour] = u
                bucket = max(int(u * BUCKETS_PER_CELL), current) & (BUCKETS - 1)
                next_node[5 * neighbour + k], bucket_head[bucket] = bucket_head[bucket], 5 * neighbour + k
                num_queued += 1


@_compiled
def _seed_goals(free: np.ndarray, width: int, goals: np.ndarray, tentative: np.ndarray) -> None:
    """Give cells within SEED_RADIUS of a goal their straight distance if nothing is between; arguments: `_march`."""
    for goal in goals:
        for i in range(-SEED_RADIUS, SEED_RADIUS + 1):
            for j in range(-SEED_RADIUS, SEED_RADIUS + 1):
                index = goal + i * width + j
                if i * i + j * j > SEED_RADIUS * SEED_RADIUS or index < 0 or index >= len(free):
                    continue
                straight = np.float32(math.sqrt(float(i * i + j * j)))
                if straight < tentative[index] and _is_straight_free(free, width, goal, i, j):
                    tentative[index] = straight


@_compiled
def _is_straight_free(free: np.ndarray, width: int, start: int, rows: int, columns: int) -> bool:
    """True if the straight path from cell `start` to the one `rows`, `columns` further meets free cells only."""
    samples = 2 * max(abs(rows), abs(columns))
    for k in range(1, samples + 1):
        i = math.floor(rows * k / samples + 0.5)
        j = math.floor(columns * k / samples + 0.5)
        if not free[start + i * width + j]:
            return False
    return True


@_compiled
def _solve_eikonal(values: np.ndarray, index: int, width: int) -> float:
    """Smallest u with the sum of weight * (u - value)^2 over both axes equal to 1; lengths in cells.

    Args:
        values: float32, (H * W,); accepted values, inf elsewhere.
        index: Flat index of the cell.
        width: W.
    """
    low, weight = _upwind_difference(values, index, 1)
    high, other_weight = _upwind_difference(values, index, width)
    if low > high:
        low, weight, high, other_weight = high, other_weight, low, weight
    gap = high - low
    if weight * gap * gap >= 1.0:  # u is at most the higher value, so only the axis with the lower value counts
        return low + (1.0 if weight == 1.0 else 2.0 / 3.0)  # 1 / sqrt(weight); the weight is 1 or 2.25
    total = weight + other_weight  # below: the larger root of the quadratic equation
    return low + (other_weight * gap + math.sqrt(total - weight * other_weight * gap * gap)) / total


@_compiled
def _upwind_difference(values: np.ndarray, index: int, step: int) -> tuple[float, float]:
    """Value and weight of the upwind difference weight * (u - value)^2 of a cell along one axis.

    Args:
        values: As in `_solve_eikonal`.
        index: Flat index of the cell.
        step: Difference of flat indices along the axis.

    Returns:
        The value, inf if no neighbour is accepted, and the weight.
    """
    low, high = values[index - step], values[index + step]
    near, beyond = (low, values[index - 2 * step]) if low <= high else (high, values[index + 2 * step])
    if beyond <= near and near < np.inf:  # second order: (3 u - 4 near + beyond) / 2
        return (4.0 * near - beyond) * (1.0 / 3.0), 2.25
    return near, 1.0


@njit(nogil=True, cache=True)
def interpolate_field(field: np.ndarray, width: int, x: float, y: float) -> float:
    """Distance at a point between cells, bilinear over those neighbours that have a finite one.

    Args:
        field: float32, (H * W,); m.
        width: W.
        x: Column coordinate in cells from the grid's corner; `j + 0.5` is the middle of column j.
        y: Row coordinate in cells.

    Returns:
        Metres; inf if the point is off the grid or no neighbour is finite.
    """
    j, i = math.floor(x - 0.5), math.floor(y - 0.5)
    if j < 0 or i < 0 or j + 1 >= width or (i + 2) * width > len(field):
        return np.inf
    right, up = x - 0.5 - j, y - 0.5 - i
    total = weight = 0.0
    for row in range(2):
        for column in range(2):
            value = field[(i + row) * width + j + column]
            if value < np.inf:
                share = (up if row else 1.0 - up) * (right if column else 1.0 - right)
                total += share * value
                weight += share
    return total / weight if weight > 0.0 else np.inf


@intrinsic
def _float32_pointer(typing_context, address):  # type: ignore[no-untyped-def]
    """Turn an address, int64, into a pointer to float32 numbers."""
    pointer = types.CPointer(types.float32)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64), generate


@njit(nogil=True, cache=True)
def interpolate_fields(
    addresses: np.ndarray,
    sizes: np.ndarray,
    widths: np.ndarray,
    origins: np.ndarray,
    cell_size: float,
    positions: np.ndarray,
    out: np.ndarray,
) -> None:
    """Distances of N robots, each in a field of its own.

    Fields are read through their addresses: all of them together may take gigabytes, and copying one costs more time
    than a step of the environment.

    Args:
        addresses: int64, (N,); of the first number of each field, contiguous float32; the caller keeps the fields
            alive.
        sizes: int64, (N,); numbers in each field.
        widths: int64, (N,); W of each field.
        origins: float64, (N, 2); of the fields' grids, m.
        cell_size: Side of a cell, m.
        positions: float64, (N, 2); m.
        out: float64, (N,); filled, m.
    """
    for i in range(len(positions)):
        # numba hides the first argument of an intrinsic
        field = carray(_float32_pointer(addresses[i]), sizes[i])  # type: ignore[call-arg]
        x, y = (positions[i, 0] - origins[i, 0]) / cell_size, (positions[i, 1] - origins[i, 1]) / cell_size
        out[i] = interpolate_field(field, widths[i], x, y)


@njit(nogil=True, cache=True)
def raise_to_straight(goals: np.ndarray, spans: np.ndarray, positions: np.ndarray, distances: np.ndarray) -> None:
    """Raise distances, in place, to at least the straight line to the nearest goal.

    Fast marching is up to 2 cm below it where the fronts of several goals meet, and interpolation beside obstacles.

    Args:
        goals: float64, (G, 2); m.
        spans: int64, (N, 2); first and last + 1 of each robot's goals; without goals nothing is raised.
        positions: float64, (N, 2); m.
        distances: float64, (N,); changed, m.
    """
    for i in range(len(distances)):
        limit = distances[i] * distances[i]
        nearest = np.inf
        for k in range(spans[i, 0], spans[i, 1]):
            x, y = goals[k, 0] - positions[i, 0], goals[k, 1] - positions[i, 1]
            nearest = min(nearest, x * x + y * y)
            if nearest <= limit:
                break
        if limit < nearest < np.inf:
            distances[i] = math.sqrt(nearest)
