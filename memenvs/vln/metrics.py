"""The metrics of R2R and CVDN, computed once: environments extend walks step by step, scorers extend all walks of a file together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memenvs.vln.graph import Graphs
from memenvs.vln.worlds.base import Episode

#: An agent that stops nearer than this to the goal has succeeded, m.
RADIUS = 3.0
#: What `PathMetrics.metrics` gives; CVDN adds "gp".
METRICS = ("ne", "sr", "osr", "spl", "tl", "ndtw", "sdtw", "cls")


class TimeWarping:
    """Dynamic time warping of N walks that grow with a reference of up to M nodes each.

    Row i of the table c_ij = cost_ij + min(c_i-1,j, c_i,j-1, c_i-1,j-1), c_00 = 0, is made of row i - 1: only the newest one is kept.
    """

    def __init__(self, num: int, longest: int) -> None:
        self._row = np.full((num, longest + 1), np.inf)

    def begin(self, i: int, cost: np.ndarray) -> None:
        """A walk of one node; `cost` float64, (M,), from it to each node of its reference, added up from the first on."""
        self._row[i] = np.inf
        self._row[i, 1 : len(cost) + 1] = cost

    def extend(self, cost: np.ndarray, rows: np.ndarray) -> None:
        """Adds a node to the walks `rows`.

        Args:
            cost: float64, (R, M); from each new node to each node of its reference; anything beyond its last one.
            rows: int64, (R,).
        """
        old = self._row[rows].T
        best = np.minimum(old[1:], old[:-1])
        new = np.full_like(old, np.inf)
        for j, each in enumerate(cost.T):
            new[j + 1] = each + np.minimum(best[j], new[j])
        self._row[rows] = new.T

    def widen(self, longest: int) -> None:
        """Makes room for references of up to `longest` nodes."""
        if longest >= self._row.shape[1]:
            self._row = _widen(self._row, longest + 1)

    def ndtw(self, lengths: np.ndarray) -> np.ndarray:
        """exp(-DTW / (3 * nodes of the reference)), float64, (N,); 1 for the reference itself."""
        return np.exp(-self._row[np.arange(len(lengths)), lengths] / (RADIUS * lengths))


@dataclass(frozen=True, eq=False)
class ReferencePath:
    """What of an episode is measured against; nodes are numbered through. See `PathMetrics` for the fields it fills."""

    path: np.ndarray
    legs: np.ndarray
    rest: np.ndarray
    region: np.ndarray
    cost: np.ndarray  # from the start to each node of the path, m
    cost_so_far: np.ndarray  # the same, added up from the first on
    error: float  # from the start to the goal, m
    length: float
    shortest: float
    gap: float

    @classmethod
    def from_episode(cls, graphs: Graphs, episode: Episode) -> ReferencePath:
        """Of an episode in one of `graphs`.

        Raises:
            ValueError: The goal cannot be reached from the start.
        """
        first = int(graphs.offset[episode.house])
        path = first + np.array(episode.path)
        legs = first + np.array(episode.leg_ends)
        region = first + np.array(episode.region) if episode.region else legs[-1:]
        ways = graphs.distance(np.concatenate([path[:1], legs[:-1]]), legs)
        cost = graphs.distance(path[0], path)
        if not np.isfinite(ways).all():
            raise ValueError(f"episode {episode.id!r}: its goal cannot be reached from its start")
        return cls(
            path=path,
            legs=legs,
            rest=np.append(np.cumsum(ways[:0:-1])[::-1], 0.0),
            region=region,
            cost=cost,
            cost_so_far=np.cumsum(cost),
            error=float(graphs.distance(path[0], legs[-1])),
            length=float(np.cumsum(np.append(0.0, graphs.distance(path[:-1], path[1:])))[-1]),
            shortest=float(np.cumsum(ways)[-1]),
            gap=float(graphs.distance(path[0], region).min()),
        )


class PathMetrics:
    """N walks, each towards the goal of an episode, and how good they are so far.

    Nodes are numbered through, as in `Graphs`. A node that is the same as the one before adds nothing: agents that turn on the spot repeat it.

    Args:
        graphs: The houses.
        num: N.

    Attributes:
        node: int64, (N,); where each walk has come to.
        reference: int64, (N, M); the annotated path, then its last node again.
        reference_nodes: int64, (N,); nodes of the annotated path.
        leg: int64, (N,); how many leg ends were stepped on in order; never counts the goal.

    Source:
        Definitions: R2R's evaluation (NE, SR, OSR, SPL), Ilharco et al. 2019 (nDTW, SDTW), Jain et al. 2019 (CLS), CVDN (goal progress). Success is
        nearer than 3 m in all of them. SPL divides by the shortest path, not by the annotated one.
    """

    def __init__(self, graphs: Graphs, num: int) -> None:
        self.graphs = graphs
        self._everyone = np.arange(num)
        self.node = np.zeros(num, np.int64)
        self.reference = np.zeros((num, 1), np.int64)
        self.reference_nodes = np.ones(num, np.int64)
        self.leg = np.zeros(num, np.int64)
        self._legs = np.zeros((num, 1), np.int64)  # their ends, then the goal again
        self._rest = np.zeros((num, 1))  # from each leg's end on to the goal, m
        self._num_legs = np.ones(num, np.int64)
        self._near_legs = np.zeros(num, np.int64)  # leg ends that were come near to in order
        self._regions = np.zeros((num, 1), np.int64)
        self._alignment = TimeWarping(num, 1)
        self._nearest = np.zeros((num, 1))  # from each node of the reference to the walk, m
        self._reference_length = np.zeros(num)
        self._shortest = np.zeros(num)
        self._walked = np.zeros(num)
        self._closest = np.zeros(num)
        self._gap = np.zeros(num)  # from the region at the start, m

    def begin(self, i: int, plan: ReferencePath) -> None:
        """Starts walk `i` at the beginning of an episode."""
        path, legs, region = plan.path, plan.legs, plan.region
        self._make_room(len(path), len(legs), len(region))
        self.reference[i], self.reference[i, : len(path)] = path[-1], path
        self._legs[i], self._legs[i, : len(legs)] = legs[-1], legs
        self._rest[i], self._rest[i, : len(legs)] = 0.0, plan.rest
        self._regions[i], self._regions[i, : len(region)] = region[-1], region
        self._num_legs[i], self.reference_nodes[i] = len(legs), len(path)
        self._reference_length[i], self._shortest[i], self._gap[i] = plan.length, plan.shortest, plan.gap
        self.node[i] = path[0]
        self.leg[i] = self._near_legs[i] = 0
        self._walked[i] = 0.0
        self._alignment.begin(i, plan.cost_so_far)
        self._nearest[i] = np.inf
        self._nearest[i, : len(path)] = plan.cost
        self._closest[i] = plan.error
        if len(legs) > 1:
            self._pass_legs(np.array([i]))

    def move(self, node: np.ndarray, which: np.ndarray) -> None:
        """Walks on to nodes of the same houses.

        Args:
            node: int64, (N,); anything where not in `which`.
            which: bool, (N,); the walks that go on.
        """
        rows = np.flatnonzero(which & (node != self.node))
        new = node[rows]
        self._walked[rows] += self.graphs.distance(self.node[rows], new)
        self.node[rows] = new
        cost = self.graphs.distance(new[:, None], self.reference[rows])
        self._alignment.extend(cost, rows)
        self._nearest[rows] = np.minimum(self._nearest[rows], cost)
        self._closest[rows] = np.minimum(self._closest[rows], self.graphs.distance(new, self._legs[rows, -1]))
        self._pass_legs(rows)

    @property
    def goal(self) -> np.ndarray:
        """int64, (N,); where to stop."""
        return self._legs[:, -1]

    @property
    def target(self) -> np.ndarray:
        """int64, (N,); the end of the present leg: the goal, unless the episode is a tour."""
        return self._legs[self._everyone, self.leg]

    @property
    def error(self) -> np.ndarray:
        """float64, (N,); distance to the goal, m."""
        return self.graphs.distance(self.node, self.goal)

    @property
    def remaining(self) -> np.ndarray:
        """float64, (N,); the shortest way to the goal by way of the leg ends that were not stepped on yet, m."""
        return self.graphs.distance(self.node, self.target) + self._rest[self._everyone, self.leg]

    @property
    def success(self) -> np.ndarray:
        """bool, (N,); whether to stop here is a success: nearer than 3 m to the goal, after as near to every other leg end in order."""
        return (self.error < RADIUS) & (self._near_legs >= self._num_legs - 1)

    @property
    def ndtw(self) -> np.ndarray:
        """float64, (N,); likeness of path and reference."""
        return self._alignment.ndtw(self.reference_nodes)

    @property
    def progress(self) -> np.ndarray:
        """float64, (N,); how much nearer to the region than at the start, m: CVDN's goal progress."""
        return self._gap - self.graphs.distance(self.node[:, None], self._regions).min(1)

    def metrics(self) -> dict[str, np.ndarray]:
        """`METRICS` as if all stopped now: float64, (N,) each; lengths in m, the others 0 to 1."""
        error, ndtw = self.error, self.ndtw
        success = self.success.astype(np.float64)
        stayed = np.where(self._walked == 0.0, success, 0.0)  # who starts at the goal has to stay there
        longest = np.maximum(np.maximum(self._walked, self._shortest), 0.01)
        return {
            "ne": error,
            "sr": success,
            "osr": (self._closest < RADIUS).astype(np.float64),
            "spl": np.where(self._shortest == 0.0, stayed, success * self._shortest / longest),
            "tl": self._walked.copy(),
            "ndtw": ndtw,
            "sdtw": success * ndtw,
            "cls": self._coverage_by_length(),
        }

    def _coverage_by_length(self) -> np.ndarray:
        likeness = np.cumsum(np.exp(-self._nearest / RADIUS), 1)  # summed in order: bits do not depend on M
        coverage = likeness[self._everyone, self.reference_nodes - 1] / self.reference_nodes
        expected = coverage * self._reference_length
        total = expected + np.abs(expected - self._walked)
        return coverage * np.divide(expected, total, out=np.ones_like(total), where=total > 0.0)

    def _pass_legs(self, rows: np.ndarray) -> None:
        """Counts the leg ends that the walks `rows` have come to now; one place may be near to several."""
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


def score(graphs: Graphs, episodes: Sequence[Episode], walks: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Metrics of whole walks.

    Args:
        graphs: The houses.
        episodes: One for each walk.
        walks: Nodes within the house, the start first; repetitions count once.

    Returns:
        `METRICS` and "gp", float64, (N,) each.
    """
    tally = PathMetrics(graphs, len(episodes))
    for i, episode in enumerate(episodes):
        tally.begin(i, ReferencePath.from_episode(graphs, episode))
    lengths = np.array([len(walk) for walk in walks])
    nodes = np.zeros((len(walks), int(lengths.max(initial=1))), np.int64)
    for i, (episode, walk) in enumerate(zip(episodes, walks, strict=True)):
        nodes[i, : len(walk)] = graphs.offset[episode.house] + np.array(walk)
    for t in range(1, nodes.shape[1]):
        tally.move(nodes[:, t], t < lengths)
    return tally.metrics() | {"gp": tally.progress}


def _widen(table: np.ndarray, width: int) -> np.ndarray:
    """More columns, each a copy of the last one."""
    return np.pad(table, ((0, 0), (0, width - table.shape[1])), mode="edge")
