"""Path planning of the oracles, which know the map; their wheels slip."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.exploration.drive import FORWARD, FORWARD_DISTANCE, LEFT, RIGHT, TURN
from memenvs.houses.navigation.arcs import arc_end, is_arc_free
from memenvs.houses.navigation.navmap import NavigationMap

#: Cost of a step to the next cell.
STRAIGHT_COST = 10
DIAGONAL_COST = 14
#: Additional cost of cells 1, 2 and 3 cells away from an obstacle.
CLEARANCE_COSTS = (30, 12, 4)
#: Cost of cells that no path reaches, or none that is short enough to matter.
UNREACHABLE = 2**30
#: `costs_to_go` continues to this cost beyond the robot's, so that the robot may drift off by half a metre.
_COST_MARGIN = 150
#: `costs_to_go` first tries only goals within this number of cells of the robot.
_WINDOW = 50
#: Buckets of the queue of `costs_to_go`, more than the largest cost of a step.
_BUCKETS = 64
#: Number of steps forward that are simulated.
_HORIZON = 12
#: A step should be free even if it is this much longer (m) or more curved (rad) than commanded.
_LENGTH_MARGIN = 0.04
_TURN_MARGIN = 0.16


def cell_costs(navmap: NavigationMap) -> np.ndarray:
    """Compute the additional cost of each cell, which keeps paths away from obstacles.

    Returns:
        int32, (H * W,); `UNREACHABLE` where the robot cannot be.
    """
    inner = navmap.free.copy()
    costs = np.where(inner, 0, UNREACHABLE).astype(np.int32)
    for cost in CLEARANCE_COSTS:
        eroded = inner.copy()
        eroded[1:] &= inner[:-1]
        eroded[:-1] &= inner[1:]
        eroded[:, 1:] &= inner[:, :-1]
        eroded[:, :-1] &= inner[:, 1:]
        costs[inner & ~eroded] = cost
        inner = eroded
    return costs.ravel()


def costs_to_go(costs: np.ndarray, width: int, goals: np.ndarray, robot: int) -> np.ndarray:
    """Compute the cost of the cheapest path to the nearest goal from the cells near the robot.

    Args:
        costs: int32, (H * W,); of `cell_costs`.
        width: W.
        goals: bool, (H * W,); goal cells; those that are not free do not count.
        robot: Cell of the robot.

    Returns:
        int32, (H * W,). Exact in the robot's cell; elsewhere there may be cheaper paths. `UNREACHABLE` where no path
        leads to a goal, or only paths that cost 150 more than the robot's.

    Source:
        Dijkstra's algorithm over eight neighbours with a queue of buckets (Dial, 1969). Paths do not cut corners of
        blocked cells.
    """
    total = _costs_to_go(costs, width, goals, robot, _WINDOW)
    if total[robot] <= STRAIGHT_COST * _WINDOW:  # no goal outside the window is as near
        return total
    return _costs_to_go(costs, width, goals, robot, len(costs))


@njit(nogil=True, cache=True)
def _costs_to_go(costs: np.ndarray, width: int, goals: np.ndarray, robot: int, window: int) -> np.ndarray:
    """See `costs_to_go`; goals more than `window` rows or columns away from the robot are left out."""
    total = np.full(len(costs), UNREACHABLE, np.int32)
    # Each bucket is a linked list. A cell has nine nodes: one for each side from which it is reached, and one as a
    # goal.
    newest = np.full(_BUCKETS, -1, np.int32)
    next_node = np.empty(9 * len(costs), np.int32)
    waiting = 0
    offsets = np.array([1, -1, width, -width, width + 1, width - 1, 1 - width, -width - 1])
    for cell in range(len(costs)):
        if not goals[cell] or costs[cell] == UNREACHABLE:
            continue
        total[cell] = 0
        if abs(cell // width - robot // width) > window or abs(cell % width - robot % width) > window:
            continue
        is_inner = True
        for k in range(4):
            is_inner &= goals[cell + offsets[k]]
        if not is_inner:  # paths from inner goal cells pass a rim cell, which costs nothing
            next_node[9 * cell + 8] = newest[0]
            newest[0] = 9 * cell + 8
            waiting += 1
    done = np.zeros(len(costs), np.bool_)
    current = 0  # cost of the bucket that is emptied now
    while waiting > 0 and current <= total[robot] + _COST_MARGIN:
        node = newest[current % _BUCKETS]
        if node < 0:
            current += 1
            continue
        newest[current % _BUCKETS] = next_node[node]
        waiting -= 1
        cell = node // 9
        if done[cell]:
            continue
        done[cell] = True
        for k in range(8):
            to = cell + offsets[k]
            if costs[to] == UNREACHABLE or done[to]:
                continue
            step_cost = STRAIGHT_COST
            if k >= 4:
                step_cost = DIAGONAL_COST
                along = 1 if k == 4 or k == 6 else -1  # the two cells beside the diagonal must be free
                if costs[cell + along] == UNREACHABLE or costs[to - along] == UNREACHABLE:
                    continue
            cost = total[cell] + step_cost + costs[to]
            if cost < total[to]:
                total[to] = cost
                next_node[9 * to + k] = newest[cost % _BUCKETS]
                newest[cost % _BUCKETS] = 9 * to + k
                waiting += 1
    for cell in range(len(costs)):  # costs of cells that were not taken from the queue are not final
        if total[cell] > 0 and not done[cell]:
            total[cell] = UNREACHABLE
    return total


def best_action(navmap: NavigationMap, pose: np.ndarray, costs: np.ndarray | None) -> int:
    """Choose the first action of the best plan.

    A plan turns to one of eight directions and then drives straight on. The best one has the largest gain per action.

    Args:
        navmap: Map of the home.
        pose: float64, (3,); x, y (m) and heading (rad).
        costs: int32, (H * W,); of `costs_to_go`; the gain is by how much they fall. None: the gain is the number of
            steps forward.

    Returns:
        `FORWARD`, `LEFT` or `RIGHT`.
    """
    to_go = np.zeros(0, np.int32) if costs is None else costs
    return _best_action(navmap.free.ravel(), navmap.shape[1], navmap.origin, navmap.cell, pose, to_go)


@njit(nogil=True, cache=True)
def _best_action(
    free: np.ndarray, width: int, origin: np.ndarray, cell: float, pose: np.ndarray, costs: np.ndarray
) -> int:
    """See `best_action`; `costs` is empty where the gain is the number of steps forward."""
    best = -np.inf
    best_turns = 4
    # First only steps that stay free when the wheels slip, then any free step.
    for is_careful in (True, False):
        for number in range(8):
            turns = (number + 1) // 2 if number % 2 else -(number // 2)  # 0, 1, -1, 2, -2, 3, -3, 4
            heading = pose[2] + turns * TURN
            x, y = pose[0], pose[1]
            for step in range(1, _HORIZON + 1):
                here = (x, y, heading)
                if not is_arc_free(free, width, origin, cell, here, FORWARD_DISTANCE, 0.0):
                    break
                if is_careful and not (
                    is_arc_free(free, width, origin, cell, here, FORWARD_DISTANCE + _LENGTH_MARGIN, _TURN_MARGIN)
                    and is_arc_free(free, width, origin, cell, here, FORWARD_DISTANCE + _LENGTH_MARGIN, -_TURN_MARGIN)
                ):
                    break
                x, y, _ = arc_end(x, y, heading, FORWARD_DISTANCE, 0.0)
                gain = float(step)
                if len(costs) > 0:
                    gain = float(_cost_at(costs, width, origin, cell, pose[0], pose[1])) - _cost_at(
                        costs, width, origin, cell, x, y
                    )
                if gain / (abs(turns) + step) > best:
                    best = gain / (abs(turns) + step)
                    best_turns = turns
        if best > 0.0:
            break
    if best_turns == 0:
        return FORWARD
    return LEFT if best_turns > 0 else RIGHT


@njit(nogil=True, cache=True)
def _cost_at(costs: np.ndarray, width: int, origin: np.ndarray, cell: float, x: float, y: float) -> int:
    return costs[int((y - origin[1]) / cell) * width + int((x - origin[0]) / cell)]


def turns_to_heading(heading: float, target: float) -> int:
    """Number of left turns that bring a heading (rad) nearest to a target; negative: right."""
    return round(((target - heading + math.pi) % (2.0 * math.pi) - math.pi) / TURN)
