"""Metrics of R2R and CVDN.

Environments extend N paths step by step; `score` extends all paths of a file together. Both use `PathMetrics`.

An episode has one or more legs, visited in order. R2R and CVDN have one leg, from the start to the goal. Longer
paths have several; each ends at a node, and the end of the last one is the goal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memenvs.vln.graph import Graphs
from memenvs.vln.worlds.base import VLNEpisode

#: Success radius around the goal, m; also the distance threshold d_th in the exponents of nDTW and CLS.
RADIUS = 3.0
#: Keys of `PathMetrics.metrics`; CVDN adds "gp".
METRICS = ("ne", "sr", "osr", "spl", "tl", "ndtw", "sdtw", "cls")


class TimeWarping:
    """Dynamic time warping between N growing paths and references of up to M nodes.

    The table is c_ij = cost_ij + min(c_i-1,j, c_i,j-1, c_i-1,j-1) with c_00 = 0 and infinity on the rest of the border
    (i = 0 or j = 0). Row i needs row i - 1 only, so only the newest row is stored, with its border in column 0. Columns
    beyond the end of a reference hold values that are never read.

    Args:
        num: N.
        longest: M.
    """

    def __init__(self, num: int, longest: int) -> None:
        self._row = np.full((num, longest + 1), np.inf)

    def begin(self, i: int, cumulative_cost: np.ndarray) -> None:
        """Start path `i` with one node.

        Args:
            i: Index of the path.
            cumulative_cost: float64, (M,); cumulative sum of the distances from the node to the nodes of the reference.
                This is row 1 of the table, in which a cell can only be reached from its left.
        """
        self._row[i] = np.inf
        self._row[i, 1 : len(cumulative_cost) + 1] = cumulative_cost

    def extend(self, cost: np.ndarray, rows: np.ndarray) -> None:
        """Append a node to the paths `rows`.

        Args:
            cost: float64, (R, M); distance from each new node to each node of its reference; ignored beyond its end.
            rows: int64, (R,); indices of the paths.
        """
        old = self._row[rows].T  # (M + 1, R)
        best = np.minimum(old[1:], old[:-1])  # of c_i-1,j and c_i-1,j-1
        new = np.full_like(old, np.inf)
        for j, cost_j in enumerate(cost.T):
            new[j + 1] = cost_j + np.minimum(best[j], new[j])  # `new[j]` is c_i,j-1
        self._row[rows] = new.T

    def widen(self, longest: int) -> None:
        """Make room for references of up to `longest` nodes."""
        if longest >= self._row.shape[1]:
            self._row = _widen(self._row, longest + 1)

    def ndtw(self, lengths: np.ndarray) -> np.ndarray:
        """Compute normalised DTW, exp(-DTW / (d_th * nodes of the reference)).

        Args:
            lengths: int64, (N,); number of nodes of each reference.

        Returns:
            float64, (N,); 1 for the reference itself.
        """
        return np.exp(-self.cost(lengths) / (RADIUS * lengths))

    def cost(self, lengths: np.ndarray) -> np.ndarray:
        """Compute DTW, the cost of the best alignment, float64, (N,), m; see `ndtw`."""
        return self._row[np.arange(len(lengths)), lengths]


@dataclass(frozen=True, eq=False)
class ReferencePath:
    """Reference of an episode: annotated path, legs, goal region and their distances.

    Attributes:
        path: int64, (M,); annotated path, global node numbers.
        leg_ends: int64, (L,); ends of the legs; the last one is the goal.
        length_after_leg: float64, (L,); shortest path length from each leg's end through the later ones to the goal, m.
        region: int64, (R,); nodes of the goal region of a dialogue (CVDN), else the goal.
        cost: float64, (M,); distance from the start to each node of the path, m.
        cumulative_cost: float64, (M,); cumulative sum of `cost`.
        goal_distance: Distance from the start to the goal, m.
        length: Length of the annotated path, m.
        shortest_length: Shortest path length from the start through all legs, m.
        region_distance: Distance from the start to the nearest node of the region, m.
    """

    path: np.ndarray
    leg_ends: np.ndarray
    length_after_leg: np.ndarray
    region: np.ndarray
    cost: np.ndarray
    cumulative_cost: np.ndarray
    goal_distance: float
    length: float
    shortest_length: float
    region_distance: float

    @classmethod
    def from_episode(cls, graphs: Graphs, episode: VLNEpisode) -> ReferencePath:
        """Make the reference of an episode in one of `graphs`.

        Raises:
            ValueError: The goal cannot be reached from the start.
        """
        first = int(graphs.offset[episode.house])
        path = first + np.array(episode.path)
        leg_ends = first + np.array(episode.leg_ends)
        region = first + np.array(episode.region) if episode.region else leg_ends[-1:]
        leg_lengths = graphs.distance(np.concatenate([path[:1], leg_ends[:-1]]), leg_ends)
        cost = graphs.distance(path[0], path)
        if not np.isfinite(leg_lengths).all():
            raise ValueError(f"episode {episode.id!r}: its goal cannot be reached from its start")
        edge_lengths = graphs.distance(path[:-1], path[1:])
        # cumulative sums add in order, while `np.sum` adds pairwise: the same bits as a path that grows step by step
        return cls(
            path=path,
            leg_ends=leg_ends,
            length_after_leg=np.append(np.cumsum(leg_lengths[:0:-1])[::-1], 0.0),  # sums of all later legs
            region=region,
            cost=cost,
            cumulative_cost=np.cumsum(cost),
            goal_distance=float(graphs.distance(path[0], leg_ends[-1])),
            length=float(np.cumsum(np.append(0.0, edge_lengths))[-1]),
            shortest_length=float(np.cumsum(leg_lengths)[-1]),
            region_distance=float(graphs.distance(path[0], region).min()),
        )


class PathMetrics:
    """N paths, each towards the goal of an episode, and their metrics so far.

    Nodes have global numbers, as in `Graphs`. A node that repeats the last one of its path changes nothing, because an
    agent that turns on the spot repeats it.

    Args:
        graphs: The houses.
        num: N.

    Attributes:
        node: int64, (N,); last node of each path.
        reference: int64, (N, M); the annotated path, padded with its last node.
        reference_nodes: int64, (N,); number of nodes of the annotated path.
        leg: int64, (N,); index of the current leg. A leg ends only at its node, though `success` allows 3 m.

    Source:
        R2R's evaluation (NE, SR, OSR, SPL), Ilharco et al. 2019 (nDTW, SDTW), Jain et al. 2019 (CLS), CVDN (goal
        progress). Success is less than 3 m in all of them. SPL compares with the shortest path, not the annotated one.
    """

    def __init__(self, graphs: Graphs, num: int) -> None:
        self.graphs = graphs
        self._all_paths = np.arange(num)
        self.node = np.zeros(num, np.int64)
        self.reference = np.zeros((num, 1), np.int64)
        self.reference_nodes = np.ones(num, np.int64)
        self.leg = np.zeros(num, np.int64)
        self._leg_ends = np.zeros((num, 1), np.int64)  # padded with the goal
        self._length_after_leg = np.zeros((num, 1))  # m
        self._num_legs = np.ones(num, np.int64)
        self._near_legs = np.zeros(num, np.int64)  # leg ends approached to less than 3 m, in order
        self._regions = np.zeros((num, 1), np.int64)
        self._alignment = TimeWarping(num, 1)
        self._nearest = np.zeros((num, 1))  # distance of each reference node to the path, m
        self._reference_length = np.zeros(num)  # m
        self._shortest_length = np.zeros(num)  # from the start through all legs to the goal, m
        self._length = np.zeros(num)  # of the path so far, m
        self._closest = np.zeros(num)  # distance from the goal to the nearest node of the path so far, m
        self._region_distance = np.zeros(num)  # at the start, m

    def begin(self, i: int, reference: ReferencePath) -> None:
        """Start path `i` at the start of an episode."""
        path, leg_ends, region = reference.path, reference.leg_ends, reference.region
        self._make_room(len(path), len(leg_ends), len(region))
        for table, values, padding in (
            (self.reference, path, path[-1]),
            (self._leg_ends, leg_ends, leg_ends[-1]),
            (self._length_after_leg, reference.length_after_leg, 0.0),
            (self._regions, region, region[-1]),
            (self._nearest, reference.cost, np.inf),
        ):
            table[i] = padding
            table[i, : len(values)] = values
        self.reference_nodes[i] = len(path)
        self._num_legs[i] = len(leg_ends)
        self._reference_length[i] = reference.length
        self._shortest_length[i] = reference.shortest_length
        self._region_distance[i] = reference.region_distance
        self.node[i] = path[0]
        self.leg[i] = 0
        self._near_legs[i] = 0
        self._length[i] = 0.0
        self._alignment.begin(i, reference.cumulative_cost)
        self._closest[i] = reference.goal_distance
        if len(leg_ends) > 1:
            self._pass_legs(np.array([i]))  # the start may be near to the first leg's end

    def move(self, node: np.ndarray, path_mask: np.ndarray) -> None:
        """Extend paths by one node of the same house.

        Args:
            node: int64, (N,); next node; ignored where `path_mask` is False.
            path_mask: bool, (N,); paths to extend.
        """
        rows = np.flatnonzero(path_mask & (node != self.node))
        new = node[rows]
        self._length[rows] += self.graphs.distance(self.node[rows], new)
        self.node[rows] = new
        cost = self.graphs.distance(new[:, None], self.reference[rows])  # (R, M)
        self._alignment.extend(cost, rows)
        self._nearest[rows] = np.minimum(self._nearest[rows], cost)
        self._closest[rows] = np.minimum(self._closest[rows], self.graphs.distance(new, self._leg_ends[rows, -1]))
        self._pass_legs(rows)

    @property
    def goal(self) -> np.ndarray:
        """int64, (N,); the goal."""
        return self._leg_ends[:, -1]

    @property
    def target(self) -> np.ndarray:
        """int64, (N,); end of the current leg: the goal, unless the episode has several."""
        return self._leg_ends[self._all_paths, self.leg]

    @property
    def error(self) -> np.ndarray:
        """float64, (N,); distance to the goal, m."""
        return self.graphs.distance(self.node, self.goal)

    @property
    def remaining(self) -> np.ndarray:
        """float64, (N,); shortest path length to the goal through the unvisited leg ends, m."""
        return self.graphs.distance(self.node, self.target) + self._length_after_leg[self._all_paths, self.leg]

    @property
    def success(self) -> np.ndarray:
        """bool, (N,); True if stopping here is a success.

        The goal is less than 3 m away, and every other leg end was, in order.
        """
        return (self.error < RADIUS) & (self._near_legs >= self._num_legs - 1)

    def is_off_reference(self, moves: np.ndarray) -> np.ndarray:
        """Find paths whose newest move has left the annotated path.

        Args:
            moves: int64, (N,); number of moves so far, all but the newest along the annotated path.

        Returns:
            bool, (N,).
        """
        next_node = self.reference[self._all_paths, np.minimum(moves, self.reference_nodes - 1)]
        return (moves >= self.reference_nodes) | (self.node != next_node)

    @property
    def ndtw(self) -> np.ndarray:
        """float64, (N,); normalised dynamic time warping between path and reference."""
        return self._alignment.ndtw(self.reference_nodes)

    @property
    def progress(self) -> np.ndarray:
        """float64, (N,); goal progress (CVDN): decrease of the distance to the region, m."""
        return self._region_distance - self.graphs.distance(self.node[:, None], self._regions).min(1)

    def metrics(self) -> dict[str, np.ndarray]:
        """Compute the metrics of all paths as if the agents stopped now.

        Returns:
            Key of `METRICS` -> float64, (N,). Navigation error "ne" and trajectory length "tl" in m. Success "sr",
            oracle success "osr", "spl", "ndtw", success-weighted "sdtw" and "cls" are 0 to 1.
        """
        error, ndtw = self.error, self.ndtw
        success = self.success.astype(np.float64)
        stayed = np.where(self._length == 0.0, success, 0.0)  # an agent that starts at the goal has to stay
        # at least 0.01 m, to avoid a division by 0
        spl_denominator = np.maximum(np.maximum(self._length, self._shortest_length), 0.01)
        return {
            "ne": error,
            "sr": success,
            "osr": (self._closest < RADIUS).astype(np.float64),
            "spl": np.where(self._shortest_length == 0.0, stayed, success * self._shortest_length / spl_denominator),
            "tl": self._length.copy(),
            "ndtw": ndtw,
            "sdtw": success * ndtw,
            "cls": self._coverage_by_length(),
        }

    def _coverage_by_length(self) -> np.ndarray:
        """Compute CLS: path coverage times length score (Jain et al., 2019)."""
        similarity = np.cumsum(np.exp(-self._nearest / RADIUS), 1)  # a cumulative sum, so that bits do not depend on M
        coverage = similarity[self._all_paths, self.reference_nodes - 1] / self.reference_nodes
        expected_length = coverage * self._reference_length
        total = expected_length + np.abs(expected_length - self._length)
        length_score = np.divide(expected_length, total, out=np.ones_like(total), where=total > 0.0)
        return coverage * length_score

    def _pass_legs(self, rows: np.ndarray) -> None:
        """Advance `leg` and `_near_legs` of the paths `rows` by the leg ends that their last nodes reach."""
        last = self._num_legs[rows] - 1
        for _ in range(self._leg_ends.shape[1] - 1):  # one node may be near to several leg ends in a row
            near = self.graphs.distance(self.node[rows], self._leg_ends[rows, self._near_legs[rows]]) < RADIUS
            self._near_legs[rows] += (self._near_legs[rows] < last) & near
            self.leg[rows] += (self.leg[rows] < last) & (self.node[rows] == self._leg_ends[rows, self.leg[rows]])

    def _make_room(self, path: int, legs: int, region: int) -> None:
        """Widen the tables for a reference of `path` nodes, `legs` legs and `region` nodes of the goal region."""
        if path > self.reference.shape[1]:
            self.reference = _widen(self.reference, path)
            self._nearest = _widen(self._nearest, path)
            self._alignment.widen(path)
        if legs > self._leg_ends.shape[1]:
            self._leg_ends = _widen(self._leg_ends, legs)
            self._length_after_leg = _widen(self._length_after_leg, legs)
        if region > self._regions.shape[1]:
            self._regions = _widen(self._regions, region)


def score(graphs: Graphs, episodes: Sequence[VLNEpisode], paths: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Compute the metrics of complete paths.

    Args:
        graphs: The houses.
        episodes: One for each path.
        paths: Numbers of nodes in the house of the episode, from the start on; a node repeated in a row counts once.

    Returns:
        Key -> float64, (N,): `PathMetrics.metrics`, and goal progress "gp", m.
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


def tour_ndtw(graphs: Graphs, episodes: Sequence[VLNEpisode], paths: Sequence[Sequence[int]]) -> float:
    """Compute t-nDTW, nDTW of a whole tour.

    The paths are put end to end, and the annotated ones too. The end of each path has to be aligned with the end of its
    annotated path alone, and the start of the next with that start alone. So the alignment falls into one for each
    episode, in which only the start of the first path and the end of the last one are free. The ways between episodes
    do not count.

    Args:
        graphs: The houses.
        episodes: Those of the tour, in its order.
        paths: One for each; see `score`.

    Returns:
        0 to 1; 0 if an annotated path is too short for such an alignment.

    Source:
        Krantz et al. 2023, and the release of IR2R (`compute_tour_ndtw`).
    """
    cost, count = 0.0, 0
    for k, (episode, path) in enumerate(zip(episodes, paths, strict=True)):
        nodes = np.array([node for j, node in enumerate(path) if j == 0 or node != path[j - 1]])
        first = graphs.offset[episode.house]
        away = graphs.distance(first + nodes[:, None], first + np.array(episode.path))  # (T, M), m
        if k > 0:
            away[1:, 0] = np.inf
        if k < len(paths) - 1:
            away[:-1, -1] = np.inf
        alignment = TimeWarping(1, away.shape[1])
        alignment.begin(0, np.cumsum(away[0]))
        for row in away[1:]:
            alignment.extend(row[None], np.zeros(1, np.int64))
        count += away.shape[1]
        cost += float(alignment.cost(np.array([away.shape[1]]))[0])
    return math.exp(-cost / (RADIUS * count))


def _widen(table: np.ndarray, width: int) -> np.ndarray:
    """Pad a table to a width with copies of its last column."""
    return np.pad(table, ((0, 0), (0, width - table.shape[1])), mode="edge")
