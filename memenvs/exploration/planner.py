"""Path planning of the exploration oracles, which know the map but not the wheel noise."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from memenvs.exploration.drive import FORWARD, FORWARD_DISTANCE, LEFT, RIGHT, TURN
from memenvs.houses.navigation.arcs import arc_end, is_arc_free
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.poses import wrap_angle

#: Cost of a step to a neighbour beside the cell or diagonal to it, in tenths of a cell.
STRAIGHT_COST = 10
DIAGONAL_COST = 14
#: Additional cost of cells 1, 2 and 3 cells away from an obstacle.
CLEARANCE_COSTS = (30, 12, 4)
#: Cost of cells where the robot cannot be, from which no path leads to a goal, or for which the search ended before it
#: found one.
UNREACHABLE = 2**30
#: `costs_to_go` stops at this much above the cost at the robot. So the costs are still known where the robot drifts up
#: to half a metre off its path.
_COST_MARGIN = 150
#: For speed, `costs_to_go` first uses only goals within this number of rows and columns of the robot.
_WINDOW = 50
#: Buckets of the queue of `costs_to_go`. The costs in the queue never differ by more than the largest cost of a step
#: (14 + 30), so that a cost modulo this larger number is unambiguous.
_BUCKETS = 64
#: Largest number of forward steps in a plan of `best_action`.
_HORIZON = 12
#: A step should be free even if it is longer by this length (m) and turns by this angle (rad) because of wheel noise.
_LENGTH_MARGIN = 0.04
_TURN_MARGIN = 0.16


def cell_costs(navmap: NavigationMap) -> np.ndarray:
    """Compute the additional cost of each cell, which keeps paths away from obstacles.

    Returns:
        int32, (H * W,); `UNREACHABLE` where the robot cannot be.
    """
    inner = navmap.free.copy()
    costs = np.where(inner, 0, UNREACHABLE).astype(np.int32)
    # Each erosion peels off the cells that are one cell further away from an obstacle.
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
        costs: int32, (H * W,); result of `cell_costs`.
        width: W.
        goals: bool, (H * W,); goal cells; those that are not free are ignored.
        robot: Index of the robot's cell, row * W + column.

    Returns:
        int32, (H * W,). Exact in the robot's cell. Elsewhere an upper bound, since a goal outside the window may be
        nearer. `UNREACHABLE` where no path leads to a goal, or only one that costs over 150 more than the robot's.

    Source:
        Dijkstra's algorithm over eight neighbours with a queue of buckets (Dial, 1969). Paths do not cut corners of
        blocked cells.
    """
    to_go = costs_to_goals(costs, width, goals, robot, _WINDOW)
    # A goal outside the window is more than `_WINDOW` steps away, so that no path to it is as cheap as this.
    if to_go[robot] <= STRAIGHT_COST * _WINDOW:
        return to_go
    return costs_to_goals(costs, width, goals, robot, len(costs))


@njit(nogil=True, cache=True)
def costs_to_goals(costs: np.ndarray, width: int, goals: np.ndarray, robot: int, window: int) -> np.ndarray:
    """Compute `costs_to_go` to goals near the robot.

    Paths to goals more than `window` rows or columns away from it are left out.
    """
    to_go = np.full(len(costs), UNREACHABLE, np.int32)
    # Each bucket is a linked list of nodes. A cell is queued again when a cheaper path is found, at most once from each
    # neighbour. So it has nine nodes, all allocated in advance: 9 * cell + k for neighbour k, and + 8 for a goal.
    bucket_head = np.full(_BUCKETS, -1, np.int32)
    next_node = np.empty(9 * len(costs), np.int32)
    num_queued = 0
    # Neighbours beside the cell, then diagonal ones. All lie in the map, because its rim is never free.
    offsets = np.array([1, -1, width, -width, width + 1, width - 1, 1 - width, -width - 1])
    for cell in range(len(costs)):
        if not goals[cell] or costs[cell] == UNREACHABLE:
            continue
        to_go[cell] = 0
        if abs(cell // width - robot // width) > window or abs(cell % width - robot % width) > window:
            continue
        is_inner = True
        for k in range(4):
            is_inner &= goals[cell + offsets[k]]
        # The search starts at the border of a goal region: a path from its inside crosses the border at no cost.
        if not is_inner:
            next_node[9 * cell + 8] = bucket_head[0]
            bucket_head[0] = 9 * cell + 8
            num_queued += 1
    is_final = np.zeros(len(costs), np.bool_)
    current = 0  # cost of the bucket that is being emptied
    while num_queued > 0 and current <= to_go[robot] + _COST_MARGIN:
        node = bucket_head[current % _BUCKETS]
        if node < 0:
            current += 1
            continue
        bucket_head[current % _BUCKETS] = next_node[node]
        num_queued -= 1
        cell = node // 9
        if is_final[cell]:  # an older node of a cell that was queued again
            continue
        is_final[cell] = True
        for k in range(8):
            neighbour = cell + offsets[k]
            if costs[neighbour] == UNREACHABLE or is_final[neighbour]:
                continue
            step_cost = STRAIGHT_COST
            if k >= 4:
                step_cost = DIAGONAL_COST
                dx = 1 if k == 4 or k == 6 else -1  # the two cells beside the diagonal must be free
                if costs[cell + dx] == UNREACHABLE or costs[neighbour - dx] == UNREACHABLE:
                    continue
            cost = to_go[cell] + step_cost + costs[neighbour]
            if cost < to_go[neighbour]:
                to_go[neighbour] = cost
                next_node[9 * neighbour + k] = bucket_head[cost % _BUCKETS]
                bucket_head[cost % _BUCKETS] = 9 * neighbour + k
                num_queued += 1
    for cell in range(len(costs)):  # a cell that is still in the queue may have a cheaper path
        if to_go[cell] > 0 and not is_final[cell]:
            to_go[cell] = UNREACHABLE
    return to_go


def best_action(navmap: NavigationMap, pose: np.ndarray, costs: np.ndarray | None) -> int:
    """Choose the first action of the best plan.

    A plan turns to one of eight directions and then drives straight on, for at most 12 steps. The best plan has the
    largest gain per action.

    Args:
        navmap: Map of the home.
        pose: float64, (3,); x, y (m) and heading (rad).
        costs: int32, (H * W,); result of `costs_to_go`; the gain is the decrease of the cost from the first to the last
            cell. None: the gain is the number of steps forward.

    Returns:
        `FORWARD`, `LEFT` or `RIGHT`.
    """
    costs = np.zeros(0, np.int32) if costs is None else costs
    return first_action(navmap.free.ravel(), navmap.shape[1], navmap.origin, navmap.cell_size, pose, costs, TURN)


@njit(nogil=True, cache=True)
def first_action(
    free: np.ndarray, width: int, origin: np.ndarray, cell_size: float, pose: np.ndarray, costs: np.ndarray, turn: float
) -> int:
    """See `best_action`, for a robot that turns by `turn` (rad).

    `costs` is empty where the gain is the number of steps forward.
    """
    best = -np.inf
    num_headings = round(2.0 * math.pi / turn)
    best_turns = num_headings // 2  # turn around if not even one step is free in any direction
    # First only steps that stay free when the wheels slip, then any free step.
    for is_careful in (True, False):
        for number in range(num_headings):
            turns = (number + 1) // 2 if number % 2 else -(number // 2)  # 0, 1, -1, 2, -2, 3, -3, ...
            heading = pose[2] + turns * turn
            x, y = pose[0], pose[1]  # end of the plan so far
            for step in range(1, _HORIZON + 1):
                arc_start = (x, y, heading)
                if not is_arc_free(free, width, origin, cell_size, arc_start, FORWARD_DISTANCE, 0.0):
                    break
                if is_careful and not (
                    is_arc_free(
                        free, width, origin, cell_size, arc_start, FORWARD_DISTANCE + _LENGTH_MARGIN, _TURN_MARGIN
                    )
                    and is_arc_free(
                        free, width, origin, cell_size, arc_start, FORWARD_DISTANCE + _LENGTH_MARGIN, -_TURN_MARGIN
                    )
                ):
                    break
                x, y, _ = arc_end(x, y, heading, FORWARD_DISTANCE, 0.0)
                gain = float(step)
                if len(costs) > 0:
                    gain = float(_cost_at(costs, width, origin, cell_size, pose[0], pose[1])) - _cost_at(
                        costs, width, origin, cell_size, x, y
                    )
                if gain / (abs(turns) + step) > best:
                    best = gain / (abs(turns) + step)
                    best_turns = turns
        if best > 0.0:  # a careful plan has a gain
            break
    if best_turns == 0:
        return FORWARD
    return LEFT if best_turns > 0 else RIGHT


@njit(nogil=True, cache=True)
def _cost_at(costs: np.ndarray, width: int, origin: np.ndarray, cell_size: float, x: float, y: float) -> int:
    return costs[int((y - origin[1]) / cell_size) * width + int((x - origin[0]) / cell_size)]


def turns_to_heading(heading: float, target: float) -> int:
    """Count the left turns (negative: right turns) that bring a heading nearest to a target.

    Args:
        heading: Heading of the robot, rad.
        target: Heading to reach, rad.
    """
    return round(wrap_angle(target - heading) / TURN)
