"""Walking distances on a grid: second-order fast marching, and looking them up between cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

#: Cells around each goal that get their exact straight distance before the marching starts.
SEED_REACH = 4
#: The front is sorted into a ring of buckets of this many per cell; the ring must be longer than one step of the front.
BUCKETS_PER_CELL, BUCKETS = 16, 128

#: Compiles a part of `fast_march`. References to arrays are not counted (nothing is allocated in here), which halves the time.
_compiled: Any = njit(nogil=True, cache=True, _nrt=False, forceinline=True, error_model="numpy")  # type: ignore[call-overload]


@_compiled
def _upwind(values: np.ndarray, at: int, step: int) -> tuple[float, float]:
    """Value and weight of the upwind difference weight * (u - value)^2 of a cell along one axis; the value is inf if there is none."""
    low, high = values[at - step], values[at + step]
    near, beyond = (low, values[at - 2 * step]) if low <= high else (high, values[at + 2 * step])
    if beyond <= near and near < np.inf:  # second order
        return (4.0 * near - beyond) * (1.0 / 3.0), 2.25
    return near, 1.0


@_compiled
def _eikonal(values: np.ndarray, at: int, width: int) -> float:
    """Smallest u with sum of weight * (u - value)^2 over both axes = 1, from neighbours whose value is not inf; lengths in cells."""
    low, weight = _upwind(values, at, 1)
    high, other = _upwind(values, at, width)
    if low > high:
        low, weight, high, other = high, other, low, weight
    gap = high - low
    if weight * gap * gap >= 1.0:  # u is not above the higher value, which then has no part in it
        return low + (1.0 if weight == 1.0 else 2.0 / 3.0)
    total = weight + other
    return low + (other * gap + math.sqrt(total - weight * other * gap * gap)) / total


@_compiled
def _is_clear(free: np.ndarray, width: int, start: int, rows: int, columns: int) -> bool:
    """Whether the straight way from a cell to the one `rows`, `columns` further meets free cells only."""
    samples = 2 * max(abs(rows), abs(columns))
    for k in range(1, samples + 1):
        i = math.floor(rows * k / samples + 0.5)
        j = math.floor(columns * k / samples + 0.5)
        if not free[start + i * width + j]:
            return False
    return True


def fast_march(free: np.ndarray, width: int, goals: np.ndarray, cell: float) -> np.ndarray:
    """Walking distance from every free cell to the nearest goal.

    Args:
        free: bool, (H * W,); the two outermost rows and columns must be blocked.
        width: W.
        goals: int64, (Q,); flat indices of free cells.
        cell: Side of a cell, m.

    Returns:
        float32, (H * W,); m; 0 at goals, inf where no way leads.

    Source:
        Fast marching with second-order upwind differences (Sethian, "Fast marching methods", 1999, section 3), its front in
        buckets instead of a heap (Yatziv, Bartesaghi and Sapiro, 2006). Cells near a goal start from the exact straight
        distance, where the differences are worst.
    """
    done = np.full(len(free), np.inf, np.float32)
    front = np.where(free, np.float32(np.inf), np.float32(-1))
    _march(free, width, goals, done, front, np.empty(5 * len(free), np.int32), np.full(BUCKETS, -1, np.int32))
    done *= np.float32(cell)
    return done


@_compiled
def _march(
    free: np.ndarray, width: int, goals: np.ndarray, done: np.ndarray, front: np.ndarray, after: np.ndarray, first: np.ndarray
) -> None:  # fmt: skip
    """Lets the front pass over all cells.

    Args:
        free: As in `fast_march`.
        width: As in `fast_march`.
        goals: As in `fast_march`.
        done: float32, (H * W,), inf; written: values that the front has passed, in cells.
        front: float32, (H * W,); smallest values so far: inf, and -1 where blocked; becomes -1 where the front has passed.
        after: int32, (5 * H * W,); working memory. A bucket is a list of nodes: node 5 * c + 4 is cell c as it starts, node 5 * c + k is
            cell c as it is after its neighbour k was passed; of the nodes of a cell the first out counts.
        first: int32, (BUCKETS,), -1; first node of each bucket.
    """
    for goal in goals:
        for i in range(-SEED_REACH, SEED_REACH + 1):
            for j in range(-SEED_REACH, SEED_REACH + 1):
                at = goal + i * width + j
                if i * i + j * j > SEED_REACH * SEED_REACH or at < 0 or at >= len(free):
                    continue
                straight = np.float32(math.sqrt(float(i * i + j * j)))
                if straight < front[at] and _is_clear(free, width, goal, i, j):
                    front[at] = straight
    waiting = 0
    for at in range(len(free)):
        if 0 <= front[at] < np.inf:
            bucket = int(front[at] * BUCKETS_PER_CELL) & (BUCKETS - 1)
            after[5 * at + 4], first[bucket] = first[bucket], 5 * at + 4
            waiting += 1
    turn = 0
    while waiting > 0:
        node = first[turn & (BUCKETS - 1)]
        if node < 0:
            turn += 1
            continue
        first[turn & (BUCKETS - 1)] = after[node]
        waiting -= 1
        at = node // 5
        value = front[at]
        if value < 0:
            continue
        done[at], front[at] = value, -1
        for k in range(4):
            near = at + ((k & 1) * 2 - 1) * (width if k & 2 else 1)
            if front[near] <= value:
                continue
            u = np.float32(_eikonal(done, near, width))
            if u < front[near]:
                front[near] = u
                bucket = max(int(u * BUCKETS_PER_CELL), turn) & (BUCKETS - 1)
                after[5 * near + k], first[bucket] = first[bucket], 5 * near + k
                waiting += 1


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
def _floats_at(typing_context, address):  # type: ignore[no-untyped-def]
    """A pointer to float32 numbers from their address, an int64."""
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
    cell: float,
    positions: np.ndarray,
    out: np.ndarray,
) -> None:
    """Distances of N robots, each in a field of its own, read where it lies (there may be gigabytes of fields).

    Args:
        addresses: int64, (N,); of the first number of each field, float32 in one piece; the caller keeps the fields alive.
        sizes: int64, (N,); numbers in each field.
        widths: int64, (N,); W of each field.
        origins: float64, (N, 2); of the fields' grids, m.
        cell: Side of a cell, m.
        positions: float64, (N, 2); m.
        out: float64, (N,); written, m.
    """
    for i in range(len(positions)):
        field = carray(_floats_at(addresses[i]), sizes[i])  # type: ignore[call-arg]  # numba hides its first argument
        x, y = (positions[i, 0] - origins[i, 0]) / cell, (positions[i, 1] - origins[i, 1]) / cell
        out[i] = interpolate_field(field, widths[i], x, y)
