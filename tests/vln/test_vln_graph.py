"""Graphs, candidates and views against plain versions of them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memenvs.vln.features.base import angle_features, view_angles
from memenvs.vln.graph import HALF_FIELD, STEP, Graph, Graphs, nearest_column, nearest_view, wrap_angle
from tests.vln.toys import dijkstra, turn

VIEWS = [(view % 12 * STEP, (view // 12 - 1) * STEP) for view in range(36)]


@st.composite
def graphs(draw: st.DrawFn, most: int = 9) -> Graph:
    count = draw(st.integers(2, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    pairs = np.array([(u, v) for u in range(count) for v in range(u + 1, count)])
    return Graph(
        "any", tuple(f"v{k}" for k in range(count)), rng.normal(0, 3, (count, 3)), pairs[rng.random(len(pairs)) < 0.4]
    )


def plain_order(graph: Graph, u: int) -> tuple[list[int], list[int]]:
    """Neighbours in the order in which an agent that looks at views 0 to 35 finds them, and the view that each belongs to."""
    found: list[int] = []
    views = []
    near = [v if w == u else w for v, w in graph.edges.tolist() if u in (v, w)]
    line = {v: graph.position[v] - graph.position[u] for v in near}
    heading = {v: math.atan2(x, y) for v, (x, y, _) in line.items()}
    elevation = {v: math.atan2(z, math.hypot(x, y)) for v, (x, y, z) in line.items()}
    for ahead, up in VIEWS:
        seen = [v for v in near if turn(heading[v], ahead) <= HALF_FIELD]
        seen.sort(key=lambda v: math.hypot(turn(heading[v], ahead), elevation[v] - up))
        found += [v for v in seen if v not in found]
    for v in found:
        costs = [math.hypot(turn(heading[v], ahead), elevation[v] - up) for ahead, up in VIEWS]
        views.append(costs.index(min(costs)))
    return found, views


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_distances_are_dijkstras(graph):
    distance = graph.distance
    assert (distance == distance.T).all()
    np.testing.assert_allclose(distance, [dijkstra(graph, u) for u in range(len(graph))], rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_candidates_are_what_an_agent_finds_who_looks_around(graph):
    own = graph.candidates
    for u in range(len(graph)):
        found, views = plain_order(graph, u)
        count = len(found)
        assert own.node[u, :count].tolist() == found
        assert own.view[u, :count].tolist() == views
        assert (own.node[u, count:] == -1).all()
        assert np.isinf(own.length[u, count:]).all()
        for k, v in enumerate(found):
            assert own.length[u, k] == pytest.approx(math.dist(graph.position[u], graph.position[v]))
            x, y, z = graph.position[v] - graph.position[u]
            there = np.array([math.sin(own.heading[u, k]), math.cos(own.heading[u, k])]) * math.hypot(x, y)
            np.testing.assert_allclose(there, [x, y], atol=1e-9)
            assert math.tan(own.elevation[u, k]) * math.hypot(x, y) == pytest.approx(z)


@settings(max_examples=60, deadline=None)
@given(graphs(), graphs())
def test_ways_in_a_table_of_several_houses(one, other):
    table = Graphs([one, other], 8)
    for graph, first in ((one, 0), (other, len(one))):
        for u in range(len(graph)):
            for goal in range(len(graph)):
                far = graph.distance[u, goal]
                assert table.distance(np.array(first + u), np.array(first + goal)) == far
                if u == goal or not math.isfinite(far):
                    continue
                k = int(table.next_candidate(np.array([first + u]), np.array([first + goal]))[0])
                step = int(table.candidates.node[first + u, k]) - first
                assert graph.adjacency[u, step] + dijkstra(graph, goal)[step] == pytest.approx(far)
                path = graph.shortest_path(u, goal)
                assert path[1] == step
                assert sum(graph.adjacency[v, w] for v, w in pairwise(path)) == pytest.approx(far)


def test_hops_count_edges():
    graph = Graph(
        "line", tuple("abc"), np.array([[0, 0, 0], [5, 0, 0], [5, 0.1, 0]], float), np.array([[0, 1], [1, 2]])
    )
    assert graph.hops.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


@given(st.floats(-10, 10), st.floats(-1.5, 1.5))
def test_the_view_of_a_direction_is_the_nearest(heading, elevation):
    costs = [math.hypot(turn(heading, ahead), elevation - up) for ahead, up in VIEWS]
    view = int(nearest_view(np.array(heading), np.array(elevation)))
    assert costs[view] == pytest.approx(min(costs))
    assert turn(heading, *VIEWS[view][:1]) <= HALF_FIELD


def test_of_two_columns_the_lower():
    assert nearest_column(np.array([0.0, STEP / 2, 1.5 * STEP, 11.4 * STEP, -0.4 * STEP])).tolist() == [0, 0, 1, 11, 0]


def test_coincident_viewpoints_have_finite_directions():
    graph = Graph("pair", tuple("ab"), np.array([[0, 0, 0], [1e-4, 0, 0.0]]), np.array([[0, 1]]))
    assert graph.candidates.heading[:, 0] == pytest.approx([math.pi / 2, -math.pi / 2])
    assert np.isfinite(graph.candidates.elevation).all()


def test_angle_features_repeat_and_are_periodic():
    one = angle_features(np.array([0.3, 0.3 + 2 * math.pi]), np.array(-0.2))
    assert one.shape == (2, 128)
    np.testing.assert_allclose(one[0], one[1], atol=1e-6)
    np.testing.assert_allclose(one[0, 124:], [math.sin(0.3), math.cos(0.3), math.sin(-0.2), math.cos(-0.2)], rtol=1e-6)
    table = view_angles()
    assert table.shape == (12, 36, 128)
    np.testing.assert_allclose(table[3, 12 + 3, :4], [0, 1, 0, 1], atol=1e-7)  # ahead, level
    np.testing.assert_allclose(table[3, 4, :2], [0.5, math.sqrt(0.75)], rtol=1e-6)  # a column to the right
    assert wrap_angle(np.array(4.0)) == pytest.approx(4.0 - 2 * math.pi)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"viewpoints": ("a", "a", "c")}, "two viewpoints have the same id"),
        ({"position": np.zeros((2, 3))}, "position must be 3 x 3 finite numbers"),
        ({"position": np.full((3, 3), np.nan)}, "position must be 3 x 3 finite numbers"),
        ({"edges": np.array([[0, 3]])}, r"pairs of different nodes in 0 \.\.\. 2"),
        ({"edges": np.array([[1, 1]])}, "pairs of different nodes"),
        ({"edges": np.array([[0, 1], [1, 0]])}, "an edge is given twice"),
    ],
)
def test_broken_graphs(change, message):
    whole = {"name": "g", "viewpoints": ("a", "b", "c"), "position": np.eye(3), "edges": np.array([[0, 1]])}
    with pytest.raises(ValueError, match=f"graph 'g': .*{message}"):
        Graph(**(whole | change))


def test_too_many_candidates():
    star = Graph("star", tuple("abc"), np.eye(3), np.array([[0, 1], [0, 2]]))
    with pytest.raises(ValueError, match="max_candidates must be at least 2, the neighbours of a in star, got 1"):
        Graphs([star], 1)
    larger = Graph("larger", tuple("defg"), np.eye(4)[:, :3], np.array([[1, 0], [1, 2], [1, 3]]))
    with pytest.raises(ValueError, match="max_candidates must be at least 3, the neighbours of e in larger, got 1"):
        Graphs([star, larger], 1)  # of all of them, so that this number is enough
    Graphs([star, larger], 3)
    with pytest.raises(ValueError, match="no path from a to b"):
        Graph("apart", tuple("ab"), np.zeros((2, 3)), np.zeros((0, 2), int)).shortest_path(0, 1)
