"""Metrics of R2R and CVDN.

Environments extend N paths step by step; the scorer extends all paths of a file together. Both use `PathMetrics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memenvs.vln.graph import Graphs
from memenvs.vln.worlds.base import Episode

#: Success radius around the goal, m.
RADIUS = 3.0
#: Keys of `PathMetrics.metrics`; CVDN adds "gp".
METRICS = ("ne", "sr", "osr", "spl", "tl", "ndtw", "sdtw", "cls")


class TimeWarping:
    """Dynamic time warping between N growing paths and references of up to M nodes.

    The table is c_ij = cost_ij + min(c_i-1,j, c_i,j-1, c_i-1,j-1) with c_00 = 0. Row i needs row i - 1 only, so only
    the newest row is stored.
    """

    def __init__(self, num: int, longest: int) -> None:
        self._row = np.full((num, longest + 1), np.inf)

    def begin(self, i: int, cost: np.ndarray) -> None:
        """Start path `i` with one node.

        Args:
            i: Index of the path.
            cost: float64, (M,); cumulative distance from the node to the nodes of the reference.
        """
        self._row[i] = np.inf
        self._row[i, 1 : len(cost) + 1] = cost

    def extend(self, cost: np.ndarray, rows: np.ndarray) -> None:
        """Append a node to the paths `rows`.

        Args:
            cost: float64, (R, M); distance from each new node to each node of its reference; ignored beyond its end.
            rows: int64, (R,).
        """
        old = self._row[rows].T
        best = np.minimum(old[1:], old[:-1])
        new = np.full_like(old, np.inf)
        for j, cost_j in enumerate(cost.T):
            new[j + 1] = cost_j + np.minimum(best[j], new[j])  # the three predecessors of cell (i, j)
        self._row[rows] = new.T

    def widen(self, longest: int) -> None:
        """Make room for references of up to `longest` nodes."""
        if longest >= self._row.shape[1]:
            self._row = _widen(self._row, longest + 1)

    def ndtw(self, lengths: np.ndarray) -> np.ndarray:
        """exp(-DTW / (3 m * nodes of the reference)); float64, (N,); 1 for the reference itself."""
        return np.exp(-self._row[np.arange(len(lengths)), lengths] / (RADIUS * lengths))


@dataclass(frozen=True, eq=False)
class ReferencePath:
    """Reference of an episode: annotated path, legs, goal region and their distances.

    Attributes:
        path: int64, (M,); annotated path, global node numbers.
        legs: int64, (L,); ends of the legs; the last one is the goal.
        rest: float64, (L,); shortest path length from each leg's end through the later ones to the goal, m.
        region: int64, (R,); goal region of a dialogue, else the goal.
        cost: float64, (M,); distance from the start to each node of the path, m.
        cumulative_cost: float64, (M,); cumulative sum of `cost`.
        error: Distance from the start to the goal, m.
        length: Length of the annotated path, m.
        shortest: Shortest path length from the start through all legs, m.
        gap: Distance from the start to the region, m.
    """

    path: np.ndarray
    legs: np.ndarray
    rest: np.ndarray
    region: np.ndarray
    cost: np.ndarray
    cumulative_cost: np.ndarray
    error: float
    length: float
    shortest: float
    gap: float

    @classmethod
    def from_episode(cls, graphs: Graphs, episode: Episode) -> ReferencePath:
        """Reference of an episode in one of `graphs`.

        Raises:
            ValueError: The goal cannot be reached from the start.
        """
        first = int(graphs.offset[episode.house])
        path = first + np.array(episode.path)
        legs = first + np.array(episode.leg_ends)
        region = first + np.array(episode.region) if episode.region else legs[-1:]
        leg_lengths = graphs.distance(np.concatenate([path[:1], legs[:-1]]), legs)
        cost = graphs.distance(path[0], path)
        if not np.isfinite(leg_lengths).all():
            raise ValueError(f"episode {episode.id!r}: its goal cannot be reached from its start")
        return cls(
            path=path,
            legs=legs,
            rest=np.append(np.cumsum(leg_lengths[:0:-1])[::-1], 0.0),
            region=region,
            cost=cost,
            cumulative_cost=np.cumsum(cost),
            error=float(graphs.distance(path[0], legs[-1])),
            length=float(np.cumsum(np.append(0.0, graphs.distance(path[:-1], path[1:])))[-1]),
            shortest=float(np.cumsum(leg_lengths)[-1]),
            gap=float(graphs.distance(path[0], region).min()),
        )


class PathMetrics:
    """N paths, each towards the goal of an episode, and their metrics so far.

    Nodes have global numbers, as in `Graphs`. A repeated node adds nothing: agents that turn on the spot repeat it.

    Args:
        graphs: The houses.
        num: N.

    Attributes:
        node: int64, (N,); last node of each path.
        reference: int64, (N, M); the annotated path, then its last node again.
        reference_nodes: int64, (N,); nodes of the annotated path.
        leg: int64, (N,); number of leg ends visited in order, without the goal.

    Source:
        R2R's evaluation (NE, SR, OSR, SPL), Ilharco et al. 2019 (nDTW, SDTW), Jain et al. 2019 (CLS), CVDN (goal
        progress). Success is less than 3 m in all of them. SPL divides by the shortest path, not by the annotated one.
    """

    def __init__(self, graphs: Graphs, num: int) -> None:
        self.graphs = graphs
        self._all_paths = np.arange(num)
        self.node = np.zeros(num, np.int64)
        self.reference = np.zeros((num, 1), np.int64)
        self.reference_nodes = np.ones(num, np.int64)
        self.leg = np.zeros(num, np.int64)
        self._legs = np.zeros((num, 1), np.int64)  # ends of the legs, padded with the goal
        self._rest = np.zeros((num, 1))  # from each leg's end to the goal, m
        self._num_legs = np.ones(num, np.int64)
        self._near_legs = np.zeros(num, np.int64)  # leg ends approached to less than 3 m, in order
        self._regions = np.zeros((num, 1), np.int64)
        self._alignment = TimeWarping(num, 1)
        self._nearest = np.zeros((num, 1))  # distance of each reference node to the path, m
        self._reference_length = np.zeros(num)
        self._shortest = np.zeros(num)
        self._length = np.zeros(num)
        self._closest = np.zeros(num)
        self._gap = np.zeros(num)  # distance to the region at the start, m

    def begin(self, i: int, reference: ReferencePath) -> None:
        """Start path `i` at the start of an episode."""
        path, legs, region = reference.path, reference.legs, reference.region
        self._make_room(len(path), len(legs), len(region))
        self.reference[i], self.reference[i, : len(path)] = path[-1], path
        self._legs[i], self._legs[i, : len(legs)] = legs[-1], legs
        self._rest[i], self._rest[i, : len(legs)] = 0.0, reference.rest
        self._regions[i], self._regions[i, : len(region)] = region[-1], region
        self._num_legs[i], self.reference_nodes[i] = len(legs), len(path)
        self._reference_length[i], self._shortest[i], self._gap[i] = reference.length, reference.shortest, reference.gap
        self.node[i] = path[0]
        self.leg[i] = self._near_legs[i] = 0
        self._length[i] = 0.0
        self._alignment.begin(i, reference.cumulative_cost)
        self._nearest[i] = np.inf
        self._nearest[i, : len(path)] = reference.cost
        self._closest[i] = reference.error
        if len(legs) > 1:
            self._pass_legs(np.array([i]))

    def move(self, node: np.ndarray, which: np.ndarray) -> None:
        """Extend paths by one node of the same house.

        Args:
            node: int64, (N,); next node; ignored where not in `which`.
            which: bool, (N,); paths to extend.
        """
        rows = np.flatnonzero(which & (node != self.node))
        new = node[rows]
        self._length[rows] += self.graphs.distance(self.node[rows], new)
        self.node[rows] = new
        cost = self.graphs.distance(new[:, None], self.reference[rows])
        self._alignment.extend(cost, rows)
        self._nearest[rows] = np.minimum(self._nearest[rows], cost)
        self._closest[rows] = np.minimum(self._closest[rows], self.graphs.distance(new, self._legs[rows, -1]))
        self._pass_legs(rows)

    @property
    def goal(self) -> np.ndarray:
        """int64, (N,); the goal."""
        return self._legs[:, -1]

    @property
    def target(self) -> np.ndarray:
        """int64, (N,); end of the current leg: the goal, unless the episode is a tour."""
        return self._legs[self._all_paths, self.leg]

    @property
    def error(self) -> np.ndarray:
        """float64, (N,); distance to the goal, m."""
        return self.graphs.distance(self.node, self.goal)

    @property
    def remaining(self) -> np.ndarray:
        """float64, (N,); shortest path length to the goal through the unvisited leg ends, m."""
        return self.graphs.distance(self.node, self.target) + self._rest[self._all_paths, self.leg]

    @property
    def success(self) -> np.ndarray:
        """bool, (N,); True if stopping here is a success.

        The goal is less than 3 m away, and every other leg end was, in order.
        """
        return (self.error < RADIUS) & (self._near_legs >= self._num_legs - 1)

    @property
    def ndtw(self) -> np.ndarray:
        """float64, (N,); normalised dynamic time warping between path and reference."""
        return self._alignment.ndtw(self.reference_nodes)

    @property
    def progress(self) -> np.ndarray:
        """float64, (N,); goal progress (CVDN): distance to the region at the start minus now, m."""
        return self._gap - self.graphs.distance(self.node[:, None], self._regions).min(1)

    def metrics(self) -> dict[str, np.ndarray]:
        """`METRICS` if all agents stopped now; float64, (N,) each; lengths in m, others 0 to 1."""
        error, ndtw = self.error, self.ndtw
        success = self.success.astype(np.float64)
        stayed = np.where(self._length == 0.0, success, 0.0)  # an agent that starts at the goal has to stay
        longest = np.maximum(np.maximum(self._length, self._shortest), 0.01)
        return {
            "ne": error,
            "sr": success,
            "osr": (self._closest < RADIUS).astype(np.float64),
            "spl": np.where(self._shortest == 0.0, stayed, success * self._shortest / longest),
            "tl": self._length.copy(),
            "ndtw": ndtw,
            "sdtw": success * ndtw,
            "cls": self._coverage_by_length(),
        }

    def _coverage_by_length(self) -> np.ndarray:
        similarity = np.cumsum(np.exp(-self._nearest / RADIUS), 1)  # a cumulative sum, so that bits do not depend on M
        coverage = similarity[self._all_paths, self.reference_nodes - 1] / self.reference_nodes
        expected = coverage * self._reference_length
        total = expected + np.abs(expected - self._length)
        return coverage * np.divide(expected, total, out=np.ones_like(total), where=total > 0.0)

    def _pass_legs(self, rows: np.ndarray) -> None:
        """Count the leg ends that the paths `rows` have reached; one node may be near to several."""
        last = self._num_legs[rows] - 1
        for _ in range(self._legs.shape[1] - 1):
            near = self.graphs.distance(self.node[rows], self._legs[rows, self._near_legs[rows]]) < RADIUS
            self._near_legs[rows] += (self._near_legs[rows] < last) & near
            self.leg[rows] += (self.leg[rows] < last) & (self.node[rows] == self._legs[rows, self.leg[rows]])

    def _make_room(self, path: int, legs: int, region: int) -> None:
        if path > self.reference.shape[1]:
            self.reference = _widen(self.reference, path)
            self._nearest = _widen(self._nearest, path)
            self._alignment.widen(path)
        if legs > self._legs.shape[1]:
            self._legs, self._rest = _widen(self._legs, legs), _widen(self._rest, legs)
        if region > self._regions.shape[1]:
            self._regions = _widen(self._regions, region)


def score(graphs: Graphs, episodes: Sequence[Episode], paths: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Metrics of complete paths.

    Args:
        graphs: The houses.
        episodes: One for each path.
        paths: Nodes within the house, from the start on; repetitions count once.

    Returns:
        `METRICS` and "gp", float64, (N,) each.
    """
    metrics = PathMetrics(graphs, len(episodes))
    for i, episode in enumerate(episodes):
        metrics.begin(i, ReferencePath.from_episode(graphs, episode))
    lengths = np.array([len(path) for path in paths])
    nodes = np.zeros((len(paths), int(lengths.max(initial=1))), np.int64)
    for i, (episode, path) in enumerate(zip(episodes, paths, strict=True)):
        nodes[i, : len(path)] = graphs.offset[episode.house] + np.array(path)
    for t in range(1, nodes.shape[1]):
        metrics.move(nodes[:, t], t < lengths)
    return metrics.metrics() | {"gp": metrics.progress}


def _widen(table: np.ndarray, width: int) -> np.ndarray:
    """Pad a table to a width with copies of its last column."""
    return np.pad(table, ((0, 0), (0, width - table.shape[1])), mode="edge")
