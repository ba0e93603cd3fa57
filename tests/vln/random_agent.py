"""The random agent of the R2R baseline: a random heading, then straight on five times."""

from __future__ import annotations

import numpy as np

from memenvs.poses import wrap_angle
from memenvs.vln.env import GraphNavigation
from memenvs.vln.graph import COLUMNS, HALF_HFOV, VIEW_STEP, Graphs, nearest_column
from memenvs.vln.metrics import PathMetrics, ReferencePath
from memenvs.vln.worlds.base import VLNEpisode

#: It turns right 0 to 11 times, moves ahead this number of times, and stops. Where it cannot move ahead it turns right.
MOVES = 5
#: Largest number of turns and moves together.
MAX_ACTIONS = 30


def nodes_ahead(graphs: Graphs) -> np.ndarray:
    """Neighbour straight ahead of each node for each heading.

    Among the neighbours within 40 degrees of the heading, the one nearest to the centre of the level view.

    Returns:
        int64, (V, 12); global node numbers, -1 where no neighbour is visible.
    """
    candidates = graphs.candidates
    offset = wrap_angle(candidates.heading[:, None] - np.arange(COLUMNS)[:, None] * VIEW_STEP)  # (V, 12, K)
    is_visible = (np.abs(offset) <= HALF_HFOV) & (candidates.node >= 0)[:, None]
    from_centre = np.where(is_visible, np.hypot(offset, candidates.elevation[:, None]), np.inf)
    nearest = from_centre.argmin(2)
    return np.where(is_visible.any(2), np.take_along_axis(candidates.node, nearest, 1), -1)


def random_paths(ahead: np.ndarray, node: np.ndarray, column: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Paths of the random agent.

    Args:
        ahead: int64, (V, 12); from `nodes_ahead`.
        node: int64, (Q,); starts.
        column: int64, (Q,); headings at the start in steps of 30 degrees.
        turns: int64, (Q,); number of right turns before the first move, 0 to 11.

    Returns:
        int64, (Q, 6); nodes from the start on. A path with fewer than five moves repeats its last node.
    """
    column = (column + turns) % COLUMNS
    paths = np.repeat(node[:, None], MOVES + 1, 1)
    moves = np.zeros(len(node), np.int64)
    for action in range(MAX_ACTIONS):
        acts = (action >= turns) & (moves < MOVES)
        onward = ahead[node, column]
        moved = acts & (onward >= 0)
        node = np.where(moved, onward, node)
        moves += moved
        column = (column + (acts & ~moved)) % COLUMNS
        paths = np.where(np.arange(MOVES + 1) >= moves[:, None], node[:, None], paths)
    return paths


def exact_expectation(task: GraphNavigation) -> dict[str, dict[str, float]]:
    """Expected score of the random agent over its first heading.

    Each episode of the split counts once and ends at the limit of the environment.

    Returns:
        By metric: `mean`, which is exact, and `stderr`, the standard deviation of the mean of one pass over the split.
    """
    graphs, world = task.graphs, task.world
    episodes = [world.episode(number) for number in range(world.num_episodes)]
    by_path: dict[tuple[object, ...], list[VLNEpisode]] = {}  # instructions with the same path are computed once
    for episode in episodes:
        key = (episode.house, episode.path, episode.leg_ends, episode.region, float(episode.heading))
        by_path.setdefault(key, []).append(episode)
    distinct = [same_path[0] for same_path in by_path.values()]
    weights = np.array([len(same_path) for same_path in by_path.values()])
    references = [ReferencePath.from_episode(graphs, episode) for episode in distinct]
    start = np.repeat([reference.path[0] for reference in references], COLUMNS)
    column = np.repeat(nearest_column(np.array([episode.heading for episode in distinct])), COLUMNS)
    paths = random_paths(nodes_ahead(graphs), start, column, np.tile(np.arange(COLUMNS), len(references)))
    path_metrics = PathMetrics(graphs, len(paths))
    for i, reference in enumerate(np.repeat(np.array(references, object), COLUMNS)):
        path_metrics.begin(i, reference)
    is_over, moves = np.zeros(len(paths), bool), np.zeros(len(paths), np.int64)
    for nodes in paths.T[1 : 1 + task.max_episode_steps]:
        moved = ~is_over & (nodes != path_metrics.node)
        path_metrics.move(nodes, moved)
        moves += moved
        if task.config.ends_off_path:
            is_over |= moved & path_metrics.is_off_reference(moves)
    results = {}
    metrics = path_metrics.metrics()
    metrics |= {"success": metrics["sr"]} | ({"gp": path_metrics.progress} if "gp" in task.info() else {})
    for name, values in metrics.items():
        by_heading = values.reshape(-1, COLUMNS)
        stderr = np.sqrt((weights * by_heading.var(1)).sum()) / weights.sum()  # episodes draw independent headings
        results[name] = {"mean": float(np.average(by_heading.mean(1), weights=weights)), "stderr": float(stderr)}
    return results
