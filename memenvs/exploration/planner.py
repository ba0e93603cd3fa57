"""How the oracles of Roaming, Coverage and Search walk: they know the map, and that their wheels slip."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.exploration.drive import FORWARD, FORWARD_DISTANCE, LEFT, RIGHT, TURN
from memenvs.houses.navigation.arcs import arc_end, is_arc_free
from memenvs.houses.navigation.navmap import NavigationMap

#: What a step to the next cell costs, straight and diagonal; and what cells so near to obstacles (1, 2, 3 cells) cost more.
STRAIGHT, DIAGONAL = 10, 14
NEAR_COSTS = (30, 12, 4)
#: No way leads there, or none that is short enough to matter.
UNREACHABLE = 2**30
#: `spread_costs` goes on for so much beyond where the robot is, so that it may go astray for half a metre.
_BEYOND = 150
#: Goals so many cells around the robot are tried first.
_WINDOW = 50
#: Buckets of the front of `spread_costs`: more than the dearest step.
_BUCKETS = 64
#: So many steps straight on are looked ahead.
_AHEAD = 12
#: A step must be free although it is so much longer (m) or more bent (rad) than commanded.
_LONGER, _MORE_BENT = 0.04, 0.16


def cell_costs(navmap: NavigationMap) -> np.ndarray:
    """What it costs beyond its length to be in a cell, int32, (H * W,); `UNREACHABLE` where one cannot be."""
    inner = navmap.free.copy()
    costs = np.where(inner, 0, UNREACHABLE).astype(np.int32)
    for near in NEAR_COSTS:
        smaller = inner.copy()
        smaller[1:] &= inner[:-1]
        smaller[:-1] &= inner[1:]
        smaller[:, 1:] &= inner[:, :-1]
        smaller[:, :-1] &= inner[:, 1:]
        costs[inner & ~smaller] = near
        inner = smaller
    return costs.ravel()


def spread_costs(costs: np.ndarray, width: int, goals: np.ndarray, robot: int) -> np.ndarray:
    """What the cheapest way to the nearest goal costs, from where that is not much more than from where the robot is.

    Args:
        costs: int32, (H * W,); of `cell_costs`.
        width: W.
        goals: bool, (H * W,); cells to go to; those that are not free are left out.
        robot: Cell that it is in.

    Returns:
        int32, (H * W,); exact where the robot is; elsewhere there may be cheaper ways. `UNREACHABLE` where no way leads, or only
            ways that cost more than the robot's and 150.

    Source:
        Dijkstra's algorithm over eight neighbours, its front in buckets (Dial, 1969). Corners of blocked cells are not cut.
    """
    total = _spread(costs, width, goals, robot, _WINDOW)
    if total[robot] <= STRAIGHT * _WINDOW:  # no goal outside the window is as near
        return total
    return _spread(costs, width, goals, robot, len(costs))


@njit(nogil=True, cache=True)
def _spread(costs: np.ndarray, width: int, goals: np.ndarray, robot: int, reach: int) -> np.ndarray:
    """See `spread_costs`; ways from goals more than `reach` rows or columns away from the robot are left out."""
    total = np.full(len(costs), UNREACHABLE, np.int32)
    first = np.full(
        _BUCKETS, -1, np.int32
    )  # newest node of each bucket; a cell has one for each side it was reached from
    after = np.empty(9 * len(costs), np.int32)
    waiting = 0
    steps = np.array([1, -1, width, -width, width + 1, width - 1, 1 - width, -width - 1])
    for cell in range(len(costs)):
        if not goals[cell] or costs[cell] == UNREACHABLE:
            continue
        total[cell] = 0
        if abs(cell // width - robot // width) > reach or abs(cell % width - robot % width) > reach:
            continue
        is_inner = True
        for k in range(4):
            is_inner &= goals[cell + steps[k]]
        if not is_inner:  # ways from within go over the rim
            after[9 * cell + 8], first[0] = first[0], 9 * cell + 8
            waiting += 1
    done = np.zeros(len(costs), np.bool_)
    now = 0
    while waiting > 0 and now <= total[robot] + _BEYOND:
        node = first[now % _BUCKETS]
        if node < 0:
            now += 1
            continue
        first[now % _BUCKETS] = after[node]
        waiting -= 1
        cell = node // 9
        if done[cell]:
            continue
        done[cell] = True
        for k in range(8):
            to = cell + steps[k]
            if costs[to] == UNREACHABLE or done[to]:
                continue
            length = STRAIGHT
            if k >= 4:
                length = DIAGONAL
                along = 1 if k == 4 or k == 6 else -1
                if costs[cell + along] == UNREACHABLE or costs[to - along] == UNREACHABLE:
                    continue
            cost = total[cell] + length + costs[to]
            if cost < total[to]:
                total[to] = cost
                after[9 * to + k], first[cost % _BUCKETS] = first[cost % _BUCKETS], 9 * to + k
                waiting += 1
    for cell in range(len(costs)):  # what the front has not passed is not known
        if total[cell] > 0 and not done[cell]:
            total[cell] = UNREACHABLE
    return total


def walk(navmap: NavigationMap, pose: np.ndarray, costs: np.ndarray | None) -> int:
    """The action that brings most, on average, of turning to one of eight directions and then going straight on for some steps.

    Args:
        navmap: Where one can go.
        pose: float64, (3,); x, y (m) and heading (rad).
        costs: int32, (H * W,); of `spread_costs`: what is wanted is to lower them. None: to go forward.

    Returns:
        `FORWARD`, `LEFT` or `RIGHT`.
    """
    wanted = np.zeros(0, np.int32) if costs is None else costs
    return _walk(navmap.free.ravel(), navmap.shape[1], navmap.origin, navmap.cell, pose, wanted)


@njit(nogil=True, cache=True)
def _walk(free: np.ndarray, width: int, origin: np.ndarray, cell: float, pose: np.ndarray, costs: np.ndarray) -> int:
    """See `walk`; `costs` has no entries where going forward is all that is wanted."""
    best, best_turns = -np.inf, 4
    for is_careful in (True, False):
        for number in range(8):
            turns = (number + 1) // 2 if number % 2 else -(number // 2)
            heading = pose[2] + turns * TURN
            x, y = pose[0], pose[1]
            for step in range(1, _AHEAD + 1):
                here = (x, y, heading)
                if not is_arc_free(free, width, origin, cell, here, FORWARD_DISTANCE, 0.0):
                    break
                if is_careful and not (
                    is_arc_free(free, width, origin, cell, here, FORWARD_DISTANCE + _LONGER, _MORE_BENT)
                    and is_arc_free(free, width, origin, cell, here, FORWARD_DISTANCE + _LONGER, -_MORE_BENT)
                ):
                    break
                x, y, _ = arc_end(x, y, heading, FORWARD_DISTANCE, 0.0)
                gain = float(step)
                if len(costs) > 0:
                    gain = float(_cost_at(costs, width, origin, cell, pose[0], pose[1])) - _cost_at(
                        costs, width, origin, cell, x, y
                    )
                if gain / (abs(turns) + step) > best:
                    best, best_turns = gain / (abs(turns) + step), turns
        if best > 0.0:
            break
    if best_turns == 0:
        return FORWARD
    return LEFT if best_turns > 0 else RIGHT


@njit(nogil=True, cache=True)
def _cost_at(costs: np.ndarray, width: int, origin: np.ndarray, cell: float, x: float, y: float) -> int:
    return costs[int((y - origin[1]) / cell) * width + int((x - origin[0]) / cell)]


def turns_to(heading: float, wanted: float) -> int:
    """Turns to the left (negative: to the right) that bring a heading nearest to a wanted one, both rad."""
    return round(((wanted - heading + math.pi) % (2.0 * math.pi) - math.pi) / TURN)
