"""Distance fields against plain fast marching with a heap; interpolation against scipy."""

import heapq
import math

import numpy as np
import scipy.ndimage

from memenvs.houses.navigation.geodesic import SEED_RADIUS, fast_march, interpolate_field


def random_grid(seed: int, blocked: float = 0.2) -> np.ndarray:
    """A grid with a blocked rim of two cells and a share of blocked cells inside."""
    free = np.random.default_rng(seed).random((31, 43)) >= blocked
    free[:2] = free[-2:] = free[:, :2] = free[:, -2:] = False
    return free


def plain_march(free: np.ndarray, goal: tuple[int, int]) -> np.ndarray:
    """Second-order fast marching in the order of a heap; cells, float64, (H, W)."""
    accepted, tentative = np.full(free.shape, np.inf), np.full(free.shape, np.inf)
    for i, j in np.ndindex(free.shape):
        straight = math.dist((i, j), goal)
        line = np.linspace(goal, (i, j), 2 * max(abs(i - goal[0]), abs(j - goal[1])) + 1)
        if straight <= SEED_RADIUS and free[tuple(np.floor(line + 0.5).astype(int).T)].all():
            tentative[i, j] = straight
    heap = [(value, at) for at, value in np.ndenumerate(tentative) if value < np.inf]
    heapq.heapify(heap)
    while heap:
        value, at = heapq.heappop(heap)
        if accepted[at] < np.inf:
            continue
        accepted[at] = value
        for step in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            near = at[0] + step[0], at[1] + step[1]
            if free[near] and accepted[near] == np.inf:
                u = solve(accepted, near)
                if u < tentative[near]:
                    tentative[near] = u
                    heapq.heappush(heap, (u, near))
    return accepted


def solve(accepted: np.ndarray, at: tuple[int, int]) -> float:
    """The u at which the sum of weight * (u - value)^2 over both axes is 1."""
    terms = []
    for step in np.eye(2, dtype=int):
        side = min((1, -1), key=lambda sign: accepted[tuple(at + sign * step)])
        near, beyond = accepted[tuple(at + side * step)], accepted[tuple(at + 2 * side * step)]
        if near < np.inf:
            is_second_order = beyond <= near
            terms.append((2.25, (4 * near - beyond) / 3) if is_second_order else (1.0, near))
    terms.sort(key=lambda term: term[1])
    (weight, low), *others = terms
    if others:
        other, high = others[0]
        if weight * (high - low) ** 2 < 1:  # otherwise the higher value has no part in it
            a, b = weight + other, weight * low + other * high
            return (b + math.sqrt(b * b - a * (weight * low**2 + other * high**2 - 1))) / a
    return low + 1 / math.sqrt(weight)


def test_a_field_is_that_of_a_plain_fast_marching():
    for seed in range(3):
        free = random_grid(seed, blocked=(0.0, 0.1, 0.3)[seed])
        goal = tuple(np.argwhere(free)[seed * 137 % free.sum()])
        field = fast_march(free.ravel(), free.shape[1], np.array([goal[0] * free.shape[1] + goal[1]]), 0.05)
        reference = 0.05 * plain_march(free, goal).ravel()
        assert np.array_equal(np.isfinite(field), np.isfinite(reference))
        reached = np.isfinite(field)
        # Buckets accept cells of nearly the same value in another order than a heap does.
        assert abs(field[reached] - reference[reached]).max() < 0.1 * 0.05
        assert abs(field[reached] - reference[reached]).mean() < 0.01 * 0.05


def test_interpolation_is_bilinear_over_the_finite_neighbours():
    rng = np.random.default_rng(0)
    field = rng.random((12, 17)).astype(np.float32)
    x, y = rng.uniform(1, 16, 300), rng.uniform(1, 11, 300)
    values = [interpolate_field(field.ravel(), 17, *point) for point in zip(x, y, strict=True)]
    reference = scipy.ndimage.map_coordinates(field.astype(float), [y - 0.5, x - 0.5], order=1)
    np.testing.assert_allclose(values, reference, atol=1e-6)
    field[5, 5] = np.inf
    assert interpolate_field(field.ravel(), 17, 5.0, 5.5) == field[5, 4]
    assert interpolate_field(np.full(12, np.inf, np.float32), 4, 1.5, 1.5) == np.inf
    assert interpolate_field(field.ravel(), 17, 0.2, 3.0) == interpolate_field(field.ravel(), 17, 3.0, 12.0) == np.inf
