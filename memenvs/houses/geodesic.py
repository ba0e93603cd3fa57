"""Walking distances on a grid: second-order fast marching, and looking them up between cells."""

from __future__ import annotations

import math

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

#: Cells around each goal that get their exact straight distance before the marching starts.
SEED_REACH = 4
#: The front is sorted into a ring of buckets of this many per cell; the ring must be longer than one step of the front.
BUCKETS_PER_CELL, BUCKETS = 16, 128


@njit(nogil=True, cache=True)
def _eikonal(values: np.ndarray, is_done: np.ndarray, at: int, width: int) -> float:
    """Smallest u with sum of weight * (u - value)^2 over both axes = 1, from the neighbours that are done; lengths in cells."""
    total = mean = square = 0.0
    single = np.inf
    highest = 0.0
    for axis in range(2):
        step = width if axis else 1
        low = values[at - step] if is_done[at - step] else np.inf
        high = values[at + step] if is_done[at + step] else np.inf
        near = min(low, high)
        if near == np.inf:
            continue
        weight = 1.0
        beyond = at - 2 * step if low <= high else at + 2 * step
        if is_done[beyond] and values[beyond] <= near:  # second-order difference
            near = (4.0 * near - values[beyond]) / 3.0
            weight = 2.25
        total += weight
        mean += weight * near
        square += weight * near * near
        single = min(single, near + (1.0 if weight == 1.0 else 2.0 / 3.0))
        highest = max(highest, near)
    mean /= total
    root = mean * mean - (square - 1.0) / total
    if root >= 0.0:
        u = mean + math.sqrt(root)
        if u >= highest:
            return u
    return single


@njit(nogil=True, cache=True)
def _is_clear(free: np.ndarray, width: int, start: int, rows: int, columns: int) -> bool:
    """Whether the straight way from a cell to the one `rows`, `columns` further meets free cells only."""
    samples = 2 * max(abs(rows), abs(columns))
    for k in range(1, samples + 1):
        i = math.floor(rows * k / samples + 0.5)
        j = math.floor(columns * k / samples + 0.5)
        if not free[start + i * width + j]:
            return False
    return True


@njit(nogil=True, cache=True)
def march(free: np.ndarray, width: int, goals: np.ndarray, cell: float) -> np.ndarray:
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
    values = np.full(len(free), np.inf, np.float32)
    is_done = np.zeros(len(free), np.bool_)
    # Each bucket is a list of nodes; a cell has a node for each value it ever had, of which the first out counts.
    first = np.full(BUCKETS, -1, np.int32)
    after = np.empty(1024, np.int32)
    cells = np.empty(1024, np.int32)
    used = 0
    spare = -1
    waiting = 0
    for goal in goals:
        for i in range(-SEED_REACH, SEED_REACH + 1):
            for j in range(-SEED_REACH, SEED_REACH + 1):
                at = goal + i * width + j
                if i * i + j * j > SEED_REACH * SEED_REACH or at < 0 or at >= len(free):
                    continue
                straight = np.float32(math.sqrt(float(i * i + j * j)))
                if straight < values[at] and _is_clear(free, width, goal, i, j):
                    values[at] = straight
    for at in range(len(free)):
        if values[at] < np.inf:
            if used == len(cells):
                after, cells = _grown(after), _grown(cells)
            bucket = int(values[at] * BUCKETS_PER_CELL) % BUCKETS
            cells[used], after[used], first[bucket] = at, first[bucket], used
            used += 1
            waiting += 1
    turn = 0
    while waiting > 0:
        node = first[turn % BUCKETS]
        if node < 0:
            turn += 1
            continue
        first[turn % BUCKETS] = after[node]
        after[node], spare = spare, node
        waiting -= 1
        at = cells[node]
        if is_done[at]:
            continue
        is_done[at] = True
        for step in (-1, 1, -width, width):
            near = at + step
            if not free[near] or is_done[near] or values[near] <= values[at]:
                continue
            u = np.float32(_eikonal(values, is_done, near, width))
            if u < values[near]:
                values[near] = u
                node = spare
                if node >= 0:
                    spare = after[node]
                else:
                    if used == len(cells):
                        after, cells = _grown(after), _grown(cells)
                    node = used
                    used += 1
                bucket = max(int(u * BUCKETS_PER_CELL), turn) % BUCKETS
                cells[node], after[node], first[bucket] = near, first[bucket], node
                waiting += 1
    for at in range(len(values)):
        values[at] *= cell
    return values


@njit(nogil=True, cache=True)
def _grown(array: np.ndarray) -> np.ndarray:
    """A copy with room for twice as many."""
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@njit(nogil=True, cache=True)
def look_up(field: np.ndarray, width: int, x: float, y: float) -> float:
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
def look_up_many(
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
        out[i] = look_up(field, widths[i], x, y)
