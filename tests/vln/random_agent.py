"""The random agent of the R2R baseline: a random heading, then straight on five times."""

from __future__ import annotations

import numpy as np

from memenvs.poses import wrap_angle
from memenvs.vln.graph import COLUMNS, HALF_HFOV, VIEW_STEP, Graphs, nearest_column
from memenvs.vln.metrics import score
from memenvs.vln.worlds.base import GraphWorld

#: It turns right 0 to 11 times, moves ahead this number of times, and stops. Where it cannot move ahead it turns right.
MOVES = 5
#: Largest number of turns and moves together.
MAX_ACTIONS = 30


def nodes_ahead(graphs: Graphs) -> np.ndarray:
    """Of the neighbours within 40 degrees of each heading the one nearest to the centre of the level view.

    Global node numbers, int64, (V, 12); -1 where no neighbour is visible.
    """
    candidates = graphs.candidates
    offset = wrap_angle(candidates.heading[:, None] - np.arange(COLUMNS)[:, None] * VIEW_STEP)  # (V, 12, K)
    is_visible = (np.abs(offset) <= HALF_HFOV) & (candidates.node >= 0)[:, None]
    from_centre = np.where(is_visible, np.hypot(offset, candidates.elevation[:, None]), np.inf)
    nearest = from_centre.argmin(2)
    return np.where(is_visible.any(2), np.take_along_axis(candidates.node, nearest, 1), -1)


def random_path(ahead: list[list[int]], node: int, column: int, turns: int) -> list[int]:
    """Nodes of the agent's path from a node and a column on, after 0 to 11 right turns."""
    path, column = [node], (column + turns) % COLUMNS
    for _ in range(MAX_ACTIONS - turns):
        onward = ahead[path[-1]][column]
        if len(path) > MOVES:
            break
        if onward >= 0:
            path.append(onward)
        else:
            column = (column + 1) % COLUMNS
    return path


def exact_expectation(world: GraphWorld, metric: str) -> tuple[float, float]:
    """Exact mean score of the random agent over its first heading, and the standard deviation of one pass."""
    graphs = Graphs(world.graphs)
    ahead = nodes_ahead(graphs).tolist()
    episodes, paths = [], []
    for number in range(world.num_episodes):
        episode = world.episode(number)
        first = int(graphs.offset[episode.house])
        column = int(nearest_column(np.array(episode.heading)))
        for turns in range(COLUMNS):
            episodes.append(episode)
            path = random_path(ahead, first + episode.path[0], column, turns)
            paths.append([node - first for node in path])
    by_heading = score(graphs, episodes, paths)[metric].reshape(-1, COLUMNS)
    # episodes draw independent headings
    return float(by_heading.mean()), float(np.sqrt(by_heading.var(1).sum()) / len(by_heading))
