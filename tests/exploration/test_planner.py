"""Path planning of the oracles."""

import itertools
import math

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import dijkstra

from memenvs.exploration.drive import FORWARD, LEFT, RIGHT
from memenvs.exploration.planner import DIAGONAL_COST, STRAIGHT_COST, UNREACHABLE, best_action, cell_costs, costs_to_go
from memenvs.exploration.task_home import TaskHome, enter_cells
from memenvs.houses.navigation.arcs import is_arc_free
from memenvs.houses.worlds import make_house_world
from tests.exploration.toy_world import ToyWorld


def graph_of(costs: np.ndarray, width: int) -> csr_matrix:
    """Graph of the steps from cell to cell; the cost of a cell is that of entering it."""
    free, edges = costs < UNREACHABLE, []
    cells = np.flatnonzero(free)
    for di, dj in itertools.product((-1, 0, 1), repeat=2):
        to = cells + di * width + dj
        goes = free[to] & free[cells + dj] & free[cells + di * width] & (to != cells)
        step = (DIAGONAL_COST if di and dj else STRAIGHT_COST) + costs[to[goes]]
        edges.append(np.stack([cells[goes], to[goes], step]))
    rows, columns, values = np.concatenate(edges, 1)
    return coo_matrix((values, (rows.astype(int), columns.astype(int))), shape=(len(costs), len(costs))).tocsr()


def test_costs_are_those_of_the_cheapest_paths():
    navmap = make_house_world("procedural", rooms=(2, 2), robot_radius=0.28).home(0).navmap
    costs, width = cell_costs(navmap), navmap.shape[1]
    graph = graph_of(costs, width)
    rng = np.random.default_rng(0)
    open_cells = np.flatnonzero(navmap.island.ravel() == 0)
    for count in (1, 3, 400):
        goals = np.zeros(len(costs), bool)
        goals[rng.choice(open_cells, count, replace=False)] = True
        expected = dijkstra(graph, indices=np.flatnonzero(goals), min_only=True)
        for robot in rng.choice(open_cells, 5):
            total = costs_to_go(costs, width, goals, int(robot))
            assert total[robot] == expected[robot]
            near = total < UNREACHABLE
            assert (total[near] >= expected[near]).all()
            if count == 1:  # no other goal that may have been left out
                assert (total[near] == expected[near]).all()
                np.testing.assert_array_equal(near, expected <= expected[robot] + 150)


def test_cells_near_obstacles_cost_more():
    navmap = ToyWorld((4.0, 4.0)).home(0).navmap
    costs = cell_costs(navmap).reshape(navmap.shape)
    row = costs[navmap.shape[0] // 2]
    inside = row[row < UNREACHABLE]
    assert inside[:4].tolist() == [30, 12, 4, 0] and inside[-4:].tolist() == [0, 4, 12, 30]


def test_no_path_leads_to_another_island():
    wall = ("wall", (4.0, 2.0, 1.35), (0.1, 2.0, 1.35))
    navmap = ToyWorld(boxes=(wall,)).home(0).navmap
    goals = np.zeros(navmap.free.size, bool)
    goals[navmap.cells(np.array([[2.0, 2.0]]))] = True
    for x, expected in ((1.0, True), (6.0, False)):
        robot = int(navmap.cells(np.array([[x, 2.0]]))[0])
        costs = costs_to_go(cell_costs(navmap), navmap.shape[1], goals, robot)
        assert bool(costs[robot] < UNREACHABLE) is expected


def reference_action(navmap, pose, costs) -> int:
    """The first action of the best plan: a careful one if it gains something, else any."""
    arguments = navmap.free.ravel(), navmap.shape[1], navmap.origin, navmap.cell_size

    def is_free(start, length, turn):
        return is_arc_free(*arguments, start, length, turn)

    def cost_at(x, y):
        return int(costs[navmap.cells(np.array([[x, y]]))[0]])

    best = (-math.inf, 4)
    for is_careful in (True, False):
        for turns in (0, 1, -1, 2, -2, 3, -3, 4):
            heading = pose[2] + turns * math.pi / 4
            x, y = pose[:2]
            for step in range(1, 13):
                start = (x, y, heading)
                slips = all(is_free(start, 0.29, turn) for turn in (0.16, -0.16))
                if not is_free(start, 0.25, 0.0) or (is_careful and not slips):
                    break
                x, y = x + 0.25 * math.cos(heading), y + 0.25 * math.sin(heading)
                gain = step if costs is None else cost_at(*pose[:2]) - cost_at(x, y)
                rate = gain / (abs(turns) + step)
                if rate > best[0]:
                    best = rate, turns
        if best[0] > 0:
            break
    return FORWARD if best[1] == 0 else LEFT if best[1] > 0 else RIGHT


def test_actions_equal_the_reference():
    """With and without a goal, in the open and in narrow places."""
    boxes = tuple(("box", (0.9 + 1.1 * k, 0.9 + 0.7 * (k % 3), 0.5), (0.15, 0.2, 0.5)) for k in range(6))
    task_home = TaskHome.of(0, ToyWorld((8.0, 3.0), boxes).home(0))
    navmap, rng, actions = task_home.navmap, np.random.default_rng(0), []
    goals = np.zeros(navmap.free.size, bool)
    goals[navmap.cells(np.array([[7.0, 2.5]]))] = True
    for cell in rng.choice(np.flatnonzero(navmap.island.ravel() == 0), 150, replace=False):
        pose = np.array([*navmap.points(np.array([cell]))[0], rng.uniform(-7, 7)])
        for costs in (None, costs_to_go(task_home.costs, navmap.shape[1], goals, int(cell))):
            actions.append(best_action(navmap, pose, costs))
            assert actions[-1] == reference_action(navmap, pose, costs), (pose, costs is None)
    assert min(np.bincount(actions)) > 30


def test_a_robot_without_a_free_step_turns_around():
    """A room of 0.65 m, in which the robot can only turn."""
    navmap = ToyWorld((0.75, 0.75)).home(0).navmap
    assert {best_action(navmap, np.array([0.375, 0.375, heading]), None) for heading in range(6)} == {LEFT}


def test_coverage_cells_that_count_by_hand():
    """A room of 8 x 4 m for a robot of 0.28 m; the map gives a wall up to a cell of 5 cm.

    The centres of the outer coverage cells are 0.25 m from the walls. The map rounds in favour of the low sides.
    """
    task_home = TaskHome.of(3, ToyWorld((8.0, 4.0)).home(0))
    expected = np.zeros((64, 64), bool)
    expected[:7, :15] = True
    np.testing.assert_array_equal(task_home.counted_cells, expected)
    assert (task_home.number, task_home.corner.tolist()) == (3, [0.0, 0.0])
    sizes = {(32.0, 3.0): 64, (3.0, 32.1): 65}
    assert {size: len(TaskHome.of(0, ToyWorld(size).home(0)).counted_cells) for size in sizes} == sizes
    # Cells of the map of 5 cm: the middle 0.4 m of each coverage cell.
    cell_of = task_home.coverage_cell.reshape(task_home.navmap.shape)
    points = task_home.navmap.points(np.arange(cell_of.size)).reshape(*cell_of.shape, 2)
    is_open = task_home.navmap.island.ravel() == 0
    for (x, y), reached, counted_cell in zip(points.reshape(-1, 2), is_open, cell_of.ravel(), strict=True):
        column, row = int(x // 0.5), int(y // 0.5)
        is_inside = 0.05 < x % 0.5 < 0.45 and 0.05 < y % 0.5 < 0.45
        counts = 0 <= row < 64 and 0 <= column < 64 and expected[row, column]
        assert counted_cell == (row * 64 + column if is_inside and counts and reached else -1), (x, y)
    visited = np.zeros((64, 64), bool)
    visited[4, 6] = True
    remaining = (cell_of >= 0) & (cell_of != 4 * 64 + 6)
    np.testing.assert_array_equal(task_home.unvisited(visited), remaining.ravel())


def test_cells_are_entered_by_the_robots_of_the_mask():
    corners = np.array([[0.0, 0.0], [-1.0, 2.0], [0.0, 0.0]])
    positions = np.array([[0.6, 1.2], [-0.4, 3.9], [0.1, 0.1]])  # cells [2, 1], [3, 1] and [0, 0]
    counted, visited, is_new = np.ones((3, 4, 4), bool), np.zeros((3, 4, 4), bool), np.ones(3, bool)
    counted[1, 3, 1] = False
    for expected in ([True, False, False], [False] * 3):  # new, does not count, not in the mask; then nothing is new
        enter_cells(positions, corners, counted, np.array([True, True, False]), visited, is_new)
        assert is_new.tolist() == expected
        assert np.argwhere(visited).tolist() == [[0, 2, 1], [1, 3, 1]]


def test_in_a_corridor_too_narrow_for_slips_any_free_step_is_taken():
    """The robot fits into one row of the map; a step that slips leaves it."""
    task_home = TaskHome.of(0, ToyWorld((4.0, 0.55)).home(0))
    navmap = task_home.navmap
    assert navmap.free.any(1).sum() == 1
    goals = np.zeros(navmap.free.size, bool)
    robot, goal = navmap.cells(np.array([[1.575, 0.275], [3.0, 0.275]])).tolist()
    goals[goal] = True
    costs = costs_to_go(task_home.costs, navmap.shape[1], goals, robot)
    for heading, totals in ((0.0, None), (math.pi, None), (0.0, costs)):
        assert best_action(navmap, np.array([1.575, 0.275, heading]), totals) == FORWARD


def test_goals_beyond_the_window_are_left_out_until_no_other_is_near():
    """The window is 50 cells of 5 cm to each side."""
    task_home = TaskHome.of(0, ToyWorld((8.0, 8.0)).home(0))
    navmap = task_home.navmap
    for x, y in ((7.025, 1.025), (1.025, 7.025)):
        robot, near, far, beside = navmap.cells(np.array([[1.025, 1.025], [1.3, 1.3], [x, y], [x + 0.05, y]])).tolist()
        goals = np.zeros(navmap.free.size, bool)
        goals[[near, far]] = True
        costs = costs_to_go(task_home.costs, navmap.shape[1], goals, robot)
        assert (costs[far], costs[beside]) == (0, UNREACHABLE)  # goals cost nothing; nothing was found from the far one
        goals[near] = False
        costs = costs_to_go(task_home.costs, navmap.shape[1], goals, robot)
        assert costs[robot] == 1200 and costs[beside] == 10
