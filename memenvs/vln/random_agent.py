"""The random agent of the R2R baseline: a random heading, then straight on five times."""

from __future__ import annotations

import numpy as np

from memenvs.vln.env import GraphNavigation
from memenvs.vln.graph import COLUMNS, HALF_FIELD, STEP, Graphs, nearest_column, wrap_angle
from memenvs.vln.metrics import PathMetrics, ReferencePath

#: It turns right 0 ... 11 times, walks on five times, and stops; with the turns where there is no way on it acts 30
#: times at most.
MOVES, ACTIONS = 5, 30


def nodes_ahead(graphs: Graphs) -> np.ndarray:
    """Which neighbour is straight ahead by heading: int64, (V, 12), nodes numbered through, -1 where none is in sight.

    Of the neighbours within 40 degrees of the heading it is the one that is nearest to the middle of the level view.
    """
    found = graphs.candidates
    off = wrap_angle(found.heading[:, None] - np.arange(COLUMNS)[:, None] * STEP)  # (V, 12, K)
    in_sight = (np.abs(off) <= HALF_FIELD) & (found.node >= 0)[:, None]
    from_middle = np.where(in_sight, np.hypot(off, found.elevation[:, None]), np.inf)
    nearest = from_middle.argmin(2)
    return np.where(in_sight.any(2), np.take_along_axis(found.node, nearest, 1), -1)


def random_paths(ahead: np.ndarray, node: np.ndarray, column: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """PathMetrics of the random agent.

    Args:
        ahead: As `nodes_ahead` gives it.
        node: int64, (Q,); starts.
        column: int64, (Q,); headings at the start in steps of 30 degrees.
        turns: int64, (Q,); how often it turns right before it walks, 0 ... 11.

    Returns:
        int64, (Q, 6); nodes, the start first; a walk that could not make five moves stays where it is.
    """
    column = (column + turns) % COLUMNS
    walks = np.repeat(node[:, None], MOVES + 1, 1)
    moves = np.zeros(len(node), np.int64)
    for action in range(ACTIONS):
        acts = (action >= turns) & (moves < MOVES)
        onward = ahead[node, column]
        walked = acts & (onward >= 0)
        node = np.where(walked, onward, node)
        moves += walked
        column = (column + (acts & ~walked)) % COLUMNS
        walks = np.where(np.arange(MOVES + 1) >= moves[:, None], node[:, None], walks)
    return walks


def exact_expectation(task: GraphNavigation) -> dict[str, dict[str, float]]:
    """What the random agent scores in expectation over its first heading, each episode of the split once, cut at the
    limit of the environment.

    Returns:
        By metric, `mean`, which is exact, and `stderr`, by how much one pass over the split scatters (standard
        deviation).
    """
    graphs, world = task.graphs, task.world
    episodes = [world.episode(number) for number in range(world.num_episodes)]
    same: dict[tuple[object, ...], list[int]] = {}  # instructions of one path are one walk
    for number, episode in enumerate(episodes):
        key = (episode.house, episode.path, episode.leg_ends, episode.region, float(episode.heading))
        same.setdefault(key, []).append(number)
    firsts = [episodes[numbers[0]] for numbers in same.values()]
    weights = np.array([len(numbers) for numbers in same.values()])
    plans = [ReferencePath.from_episode(graphs, episode) for episode in firsts]
    start = np.repeat([plan.path[0] for plan in plans], COLUMNS)
    column = np.repeat(nearest_column(np.array([episode.heading for episode in firsts])), COLUMNS)
    walks = random_paths(nodes_ahead(graphs), start, column, np.tile(np.arange(COLUMNS), len(plans)))
    tally = PathMetrics(graphs, len(walks))
    for i, plan in enumerate(np.repeat(np.array(plans, object), COLUMNS)):
        tally.begin(i, plan)
    for nodes in walks.T[1 : 1 + task.max_episode_steps]:
        tally.move(nodes, np.ones(len(walks), bool))
    found = {}
    metrics = tally.metrics()
    metrics |= {"success": metrics["sr"]} | ({"gp": tally.progress} if "gp" in task.info() else {})
    for name, values in metrics.items():
        by_heading = values.reshape(-1, COLUMNS)
        spread = np.sqrt((weights * by_heading.var(1)).sum()) / weights.sum()
        found[name] = {"mean": float(np.average(by_heading.mean(1), weights=weights)), "stderr": float(spread)}
    return found


class RandomAgent:
    """The random agent as a policy of one environment.

    Args:
        task: The environment's task.
        rng: Draws the first heading of each episode.
    """

    def __init__(self, task: GraphNavigation, rng: np.random.Generator) -> None:
        self._task, self._rng = task, rng
        self._ahead = nodes_ahead(task.graphs)
        self._to_come: list[int] = []

    def begin(self) -> None:
        """After each reset."""
        info = self._task.info()
        column = nearest_column(info["heading"][:1])
        walk = random_paths(self._ahead, info["place"][:1], column, self._rng.integers(COLUMNS, size=1))[0].tolist()
        self._to_come = [node for node, before in zip(walk[1:], walk, strict=False) if node != before]

    def action(self) -> int:
        """The candidate that it walks to, or to stop."""
        if not self._to_come:
            return self._task.stop
        here = int(self._task.info()["place"][0])
        return self._task.graphs.candidates.node[here].tolist().index(self._to_come.pop(0))
