"""Walking distances on a grid: second-order fast marching, and looking them up between cells."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

#: Cells around each goal that get their exact straight distance before the marching starts.
SEED_REACH = 4
_FAR, _DONE = -1, -2


@njit(nogil=True, cache=True)
def _sift_up(heap: np.ndarray, place: np.ndarray, values: np.ndarray, at: int) -> None:
    cell = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if values[heap[parent]] <= values[cell]:
            break
        heap[at] = heap[parent]
        place[heap[at]] = at
        at = parent
    heap[at] = cell
    place[cell] = at


@njit(nogil=True, cache=True)
def _sift_down(heap: np.ndarray, place: np.ndarray, values: np.ndarray, size: int) -> None:
    cell, at = heap[0], 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and values[heap[child + 1]] < values[heap[child]]:
            child += 1
        if values[heap[child]] >= values[cell]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = cell
    place[cell] = at


@njit(nogil=True, cache=True)
def _upwind(values: np.ndarray, place: np.ndarray, at: int, step: int) -> tuple[float, float]:
    """(weight, value) of the backward difference along one axis; the weight is 0 if no neighbour is known."""
    low = values[at - step] if place[at - step] == _DONE else np.inf
    high = values[at + step] if place[at + step] == _DONE else np.inf
    near, toward = (low, -step) if low <= high else (high, step)
    if near == np.inf:
        return 0.0, 0.0
    if place[at + 2 * toward] == _DONE and values[at + 2 * toward] <= near:
        return 2.25, (4.0 * near - values[at + 2 * toward]) / 3.0
    return 1.0, near


@njit(nogil=True, cache=True)
def _eikonal(values: np.ndarray, place: np.ndarray, at: int, width: int) -> float:
    """Smallest u with sum of weight * (u - value)^2 over both axes = 1; lengths in cells."""
    weight_x, x = _upwind(values, place, at, 1)
    weight_y, y = _upwind(values, place, at, width)
    if weight_x > 0.0 and weight_y > 0.0:
        total = weight_x + weight_y
        mean = (weight_x * x + weight_y * y) / total
        root = mean * mean - (weight_x * x * x + weight_y * y * y - 1.0) / total
        if root >= 0.0:
            u = mean + math.sqrt(root)
            if u >= x and u >= y:
                return u
    along_x = x + 1.0 / math.sqrt(weight_x) if weight_x > 0.0 else np.inf
    along_y = y + 1.0 / math.sqrt(weight_y) if weight_y > 0.0 else np.inf
    return min(along_x, along_y)


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
        Fast marching with second-order upwind differences (Sethian, "Fast marching methods", 1999, section 3);
        cells near a goal start from the exact straight distance, where the differences are worst.
    """
    values = np.full(len(free), np.inf, np.float64)
    place = np.full(len(free), _FAR, np.int32)
    heap = np.empty(len(free), np.int32)
    size = 0
    for goal in goals:
        for i in range(-SEED_REACH, SEED_REACH + 1):
            for j in range(-SEED_REACH, SEED_REACH + 1):
                at = goal + i * width + j
                if i * i + j * j > SEED_REACH * SEED_REACH or at < 0 or at >= len(free):
                    continue
                straight = math.sqrt(float(i * i + j * j))
                if straight < values[at] and _is_clear(free, width, goal, i, j):
                    values[at] = straight
                    if place[at] == _FAR:
                        heap[size] = at
                        place[at] = size
                        size += 1
                    _sift_up(heap, place, values, place[at])
    while size > 0:
        at = heap[0]
        place[at] = _DONE
        size -= 1
        if size > 0:
            heap[0] = heap[size]
            _sift_down(heap, place, values, size)
        for step in (-1, 1, -width, width):
            near = at + step
            if not free[near] or place[near] == _DONE:
                continue
            u = _eikonal(values, place, near, width)
            if u < values[near]:
                values[near] = u
                if place[near] == _FAR:
                    heap[size] = near
                    place[near] = size
                    size += 1
                _sift_up(heap, place, values, place[near])
    return (values * cell).astype(np.float32)


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
