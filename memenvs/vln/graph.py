"""Navigation graphs: viewpoints, edges, distances and candidates.

Headings follow R2R: radians, 0 along +y, clockwise. Elevations are radians, up positive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from memenvs.poses import wrap_angle

#: Views of a panorama: 12 headings (column c at c * 30 degrees) times 3 elevations (rows at -30, 0, +30 degrees).
#: The view number is 12 * row + column.
COLUMNS, ROWS = 12, 3
NUM_VIEWS = COLUMNS * ROWS
#: Angle from one column of views to the next, and from one row to the next, rad.
VIEW_STEP = math.pi / 6
#: Half of the horizontal field of view, rad. A neighbour within it is visible.
HALF_HFOV = math.radians(40.0)
#: Largest coordinate of a viewpoint, m, as of houses; squares of much larger ones are infinite.
MAX_COORDINATE = 10_000.0


def nearest_column(heading: float | np.ndarray) -> np.ndarray:
    """Return the column (0 to 11) of views with the nearest heading; ties go to the lower one.

    Args:
        heading: rad, clockwise from +y; any shape.

    Returns:
        int64, of the same shape.
    """
    return np.ceil(np.asarray(heading) / VIEW_STEP - 0.5).astype(np.int64) % COLUMNS


def nearest_view(heading: np.ndarray, elevation: np.ndarray) -> np.ndarray:
    """Return the view (0 to 35) that is nearest to a direction.

    Args:
        heading: rad, clockwise from +y; any shape.
        elevation: rad, positive up; of the same shape.

    Returns:
        int64, of the same shape; 12 columns of the lowest row first.

    Source:
        MTVM's release: among the views within 40 degrees of the heading, the one with the smallest
        sqrt(dh^2 + de^2), the differences in heading and elevation; ties go to the lower one.
    """
    row = np.clip(np.ceil(elevation / VIEW_STEP - 0.5) + 1, 0, ROWS - 1).astype(np.int64)
    return COLUMNS * row + nearest_column(heading)


@dataclass(frozen=True)
class Candidates:
    """Candidates of V viewpoints: up to K neighbours each, then padding.

    Their order is that of the R2R agents.

    Attributes:
        node: int64, (V, K); the neighbour; -1 beyond the last.
        heading: float64, (V, K); of the straight line to the neighbour, absolute, rad.
        elevation: float64, (V, K); of the same line, rad.
        view: int64, (V, K); the view that is nearest to that direction.
        length: float64, (V, K); of the edge, m; infinite beyond the last.
    """

    node: np.ndarray
    heading: np.ndarray
    elevation: np.ndarray
    view: np.ndarray
    length: np.ndarray

    @classmethod
    def empty(cls, count: int, width: int) -> Candidates:
        """Candidates of viewpoints without neighbours."""
        shape = (count, width)
        return cls(
            np.full(shape, -1), np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64), np.full(shape, np.inf)
        )


@dataclass(frozen=True)
class Graph:
    """Navigation graph of one house, with nodes 0 to V - 1 in the order of `viewpoints`.

    Attributes:
        name: Name of the house (a "scan").
        viewpoints: V ids, all different.
        position: float64, (V, 3); position of the camera, m, z up.
        edges: int64, (E, 2); pairs of neighbours. Each pair is listed once, in any order.

    Raises:
        ValueError: Names are not unique, sizes do not fit, positions are not finite, or an edge is no pair of two
            different nodes.
    """

    name: str
    viewpoints: tuple[str, ...]
    position: np.ndarray
    edges: np.ndarray

    def __post_init__(self) -> None:
        count = len(self.viewpoints)
        if len(set(self.viewpoints)) < count:
            raise ValueError(f"graph {self.name!r}: two viewpoints have the same id")
        if self.position.shape != (count, 3) or not (np.abs(self.position) <= MAX_COORDINATE).all():
            raise ValueError(
                f"graph {self.name!r}: position must be {count} x 3 finite numbers of at most {MAX_COORDINATE:g} m, "
                f"got {self.position.shape}"
            )
        low, high = np.sort(self.edges, 1).T if self.edges.shape[1:] == (2,) else (np.zeros(1), np.zeros(1))
        if (low >= high).any() or (len(low) and (low.min() < 0 or high.max() >= count)):
            raise ValueError(f"graph {self.name!r}: edges must be pairs of different nodes in 0 ... {count - 1}")
        if len(np.unique(low * count + high)) < len(low):
            raise ValueError(f"graph {self.name!r}: an edge is given twice")

    def __len__(self) -> int:
        return len(self.viewpoints)

    @cached_property
    def node(self) -> dict[str, int]:
        """Map from viewpoint id to node."""
        return {viewpoint: k for k, viewpoint in enumerate(self.viewpoints)}

    @cached_property
    def adjacency(self) -> np.ndarray:
        """float64, (V, V); edge lengths, m; 0 on the diagonal, infinite where there is no edge."""
        lengths = np.full((len(self), len(self)), np.inf)
        np.fill_diagonal(lengths, 0.0)
        for u, v in (self.edges.T, self.edges.T[::-1]):
            lengths[u, v] = np.linalg.norm(self.position[u] - self.position[v], axis=1)
        return lengths

    @cached_property
    def distance(self) -> np.ndarray:
        """float64, (V, V); shortest path lengths, m; infinite between unconnected parts."""
        return _all_pairs(self.adjacency)

    @cached_property
    def candidates(self) -> Candidates:
        """Candidates of each node, in the order in which R2R agents list them.

        Source:
            R2R agents go through views 0, 1, ... in turn. In each view they list the visible neighbours that are not
            listed yet, the one nearest to the centre of the view first. Visibility depends on the heading alone, so
            every neighbour is found in the lowest row of views.
        """
        u, v = np.concatenate([self.edges, self.edges[:, ::-1]]).T
        x, y, z = (self.position[v] - self.position[u]).T
        heading, elevation = np.arctan2(x, y), np.arctan2(z, np.hypot(x, y))
        offset = np.abs(wrap_angle(heading[:, None] - np.arange(COLUMNS) * VIEW_STEP))  # (directed edges, 12)
        first_view = (offset <= HALF_HFOV).argmax(1)
        from_centre = np.hypot(offset[np.arange(len(u)), first_view], elevation + VIEW_STEP)
        # per node u: by view, then by distance from its centre, then by node number
        order = np.lexsort((v, from_centre, first_view, u))
        degree = np.bincount(u, minlength=len(self))
        slot = np.arange(len(u)) - np.repeat(np.cumsum(degree) - degree, degree)  # rank of an edge among those of u
        candidates = Candidates.empty(len(self), int(degree.max(initial=0)))
        u, v = u[order], v[order]
        candidates.node[u, slot] = v
        candidates.heading[u, slot], candidates.elevation[u, slot] = heading[order], elevation[order]
        candidates.view[u, slot] = nearest_view(heading, elevation)[order]
        candidates.length[u, slot] = self.adjacency[u, v]
        return candidates


def _all_pairs(lengths: np.ndarray) -> np.ndarray:
    """Shortest path lengths between all pairs of nodes (Floyd-Warshall)."""
    shortest = lengths.copy()
    through = np.empty_like(shortest)  # lengths of paths through node k
    for k in range(len(shortest)):
        np.add(shortest[:, k, None], shortest[k], out=through)
        np.minimum(shortest, through, out=shortest)
    return shortest


class Graphs:
    """Several graphs in one table: agents in different houses move together.

    Nodes are numbered over all graphs: node k of graph g is `offset[g] + k`.

    Args:
        graphs: The houses; at least one.
        max_candidates: Candidates of each viewpoint; None for the largest number of neighbours.

    Attributes:
        offset: int64, (G + 1,).
        position: float64, (V, 3); m.
        candidates: As in one graph, with global node numbers; K is `max_candidates` or the largest number of
            neighbours.

    Raises:
        ValueError: There is no graph, or a viewpoint has more neighbours than `max_candidates`.
    """

    def __init__(self, graphs: Sequence[Graph], max_candidates: int | None = None) -> None:
        if not graphs:
            raise ValueError("graphs must hold at least one graph")
        self.graphs = tuple(graphs)
        widths = [graph.candidates.node.shape[1] for graph in graphs]
        max_candidates = max(widths) if max_candidates is None else max_candidates
        if max(widths) > max_candidates:
            widest = graphs[int(np.argmax(widths))]
            most = widest.viewpoints[int((widest.candidates.node >= 0).sum(1).argmax())]
            raise ValueError(
                f"viewpoint {most} in {widest.name} must have at most {max_candidates} neighbours, got {max(widths)}"
            )
        self.offset = np.concatenate([[0], np.cumsum([len(graph) for graph in graphs])])
        self.position = np.concatenate([graph.position for graph in graphs])
        total = int(self.offset[-1])
        self.candidates = Candidates.empty(total, max_candidates)
        for graph, first in zip(graphs, self.offset, strict=False):
            own = graph.candidates
            width = own.node.shape[1]
            rows = slice(first, first + len(graph))
            self.candidates.node[rows, :width] = np.where(own.node >= 0, own.node + first, -1)
            for name in ("heading", "elevation", "view", "length"):
                getattr(self.candidates, name)[rows, :width] = getattr(own, name)
        sizes = np.diff(self.offset)
        starts = np.concatenate([[0], np.cumsum(sizes**2)])[:-1]
        within = np.arange(total) - np.repeat(self.offset[:-1], sizes)
        #: Row of each node in the flat table `_distance`: entry `_row[u] + v` is that of the nodes u and v of one
        #: house.
        self._row = np.repeat(starts - self.offset[:-1], sizes) + within * np.repeat(sizes, sizes)

    @cached_property
    def _distance(self) -> np.ndarray:
        return np.concatenate([graph.distance.ravel() for graph in self.graphs])

    @cached_property
    def viewpoints(self) -> np.ndarray:
        """object, (V,); ids."""
        return np.array([viewpoint for graph in self.graphs for viewpoint in graph.viewpoints], object)

    def distance(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return shortest path lengths between nodes of the same house.

        Args:
            u: int64; nodes.
            v: int64; nodes, numbered within the house. The shapes broadcast.

        Returns:
            float64, of the broadcast shape; m.
        """
        return self._distance[self._row[u] + v]

    def next_candidate(self, u: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """Candidate of u that a shortest path to the goal begins with; ties go to the lower node.

        Args:
            u: int64, (N,).
            goal: int64, (N,); in the houses of u.

        Returns:
            int64, (N,); undefined where u is the goal or cannot reach it.
        """
        neighbours = self.candidates.node[u]  # (N, K)
        rest = self.distance(np.where(neighbours >= 0, neighbours, u[:, None]), goal[:, None])
        total = self.candidates.length[u] + rest
        is_least = total <= total.min(1, keepdims=True) + 1e-9
        return np.where(is_least, neighbours, np.iinfo(np.int64).max).argmin(1)

    def shortest_path(self, u: int, goal: int) -> list[int]:
        """Nodes of the shortest path from u to a goal that it can reach, with both ends.

        Ties are as in `next_candidate`.
        """
        path = [u]
        while path[-1] != goal:
            here = np.array(path[-1:])
            path.append(int(self.candidates.node[here, self.next_candidate(here, np.array([goal]))][0]))
        return path
