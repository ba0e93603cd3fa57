"""Graphs, candidates and views against slow references."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memenvs.poses import wrap_angle
from memenvs.vln.features.base import angle_features, view_angles
from memenvs.vln.graph import HALF_HFOV, VIEW_STEP, Graph, Graphs, nearest_column, nearest_view
from tests.vln.toys import angle_between, dijkstra

VIEWS = [(view % 12 * VIEW_STEP, (view // 12 - 1) * VIEW_STEP) for view in range(36)]


@st.composite
def graphs(draw: st.DrawFn, *, is_connected: bool = False) -> Graph:
    count = draw(st.integers(2, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    pairs = np.array([(u, v) for u in range(count) for v in range(u + 1, count)])
    is_edge = (rng.random(len(pairs)) < 0.4) | (is_connected & (pairs[:, 1] == pairs[:, 0] + 1))
    return Graph("any", tuple(f"v{k}" for k in range(count)), rng.normal(0, 3, (count, 3)), pairs[is_edge])


def reference_candidates(graph: Graph, u: int) -> tuple[list[int], list[int]]:
    """Neighbours in the order in which views 0 to 35 show them, and the nearest view of each."""
    order: list[int] = []
    views = []
    neighbours = [v if w == u else w for v, w in graph.edges.tolist() if u in (v, w)]
    offset = {v: graph.position[v] - graph.position[u] for v in neighbours}
    heading = {v: math.atan2(x, y) for v, (x, y, _) in offset.items()}
    elevation = {v: math.atan2(z, math.hypot(x, y)) for v, (x, y, z) in offset.items()}
    for ahead, up in VIEWS:
        visible = [v for v in neighbours if angle_between(heading[v], ahead) <= HALF_HFOV]
        visible.sort(key=lambda v: math.hypot(angle_between(heading[v], ahead), elevation[v] - up))
        order += [v for v in visible if v not in order]
    for v in order:
        costs = [math.hypot(angle_between(heading[v], ahead), elevation[v] - up) for ahead, up in VIEWS]
        views.append(costs.index(min(costs)))
    return order, views


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_distances_equal_dijkstra(graph):
    distance = graph.distance
    assert (distance == distance.T).all()
    np.testing.assert_allclose(distance, [dijkstra(graph, u) for u in range(len(graph))], rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_candidates_equal_the_reference(graph):
    candidates = graph.candidates
    for u in range(len(graph)):
        order, views = reference_candidates(graph, u)
        count = len(order)
        assert candidates.node[u, :count].tolist() == order
        assert candidates.view[u, :count].tolist() == views
        assert (candidates.node[u, count:] == -1).all()
        assert np.isinf(candidates.length[u, count:]).all()
        for k, v in enumerate(order):
            assert candidates.length[u, k] == pytest.approx(math.dist(graph.position[u], graph.position[v]))
            x, y, z = graph.position[v] - graph.position[u]
            heading, level = candidates.heading[u, k], math.hypot(x, y)
            np.testing.assert_allclose([level * math.sin(heading), level * math.cos(heading)], [x, y], atol=1e-9)
            assert math.tan(candidates.elevation[u, k]) * level == pytest.approx(z)


@settings(max_examples=60, deadline=None)
@given(graphs(), graphs())
def test_paths_in_a_table_of_several_houses(one, other):
    table = Graphs([one, other], 8)
    for graph, first in ((one, 0), (other, len(one))):
        for u in range(len(graph)):
            for goal in range(len(graph)):
                distance = graph.distance[u, goal]
                assert table.distance(np.array(first + u), np.array(first + goal)) == distance
                if u == goal or not math.isfinite(distance):
                    continue
                k = int(table.next_candidate(np.array([first + u]), np.array([first + goal]))[0])
                step = int(table.candidates.node[first + u, k]) - first
                assert graph.adjacency[u, step] + dijkstra(graph, goal)[step] == pytest.approx(distance)


@given(st.floats(-10, 10), st.floats(-1.5, 1.5))
def test_nearest_view(heading, elevation):
    costs = [math.hypot(angle_between(heading, ahead), elevation - up) for ahead, up in VIEWS]
    view = int(nearest_view(np.array(heading), np.array(elevation)))
    assert costs[view] == pytest.approx(min(costs))
    assert angle_between(heading, VIEWS[view][0]) <= HALF_HFOV


def test_nearest_column_prefers_the_lower_of_two():
    assert nearest_column(VIEW_STEP * np.array([0.0, 0.5, 1.5, 11.4, -0.4])).tolist() == [0, 0, 1, 11, 0]


def test_coincident_viewpoints_have_finite_directions():
    graph = Graph("pair", tuple("ab"), np.array([[0, 0, 0], [1e-4, 0, 0.0]]), np.array([[0, 1]]))
    assert graph.candidates.heading[:, 0] == pytest.approx([math.pi / 2, -math.pi / 2])
    assert np.isfinite(graph.candidates.elevation).all()


def test_angle_features_repeat_and_are_periodic():
    features = angle_features(np.array([0.3, 0.3 + 2 * math.pi]), np.array(-0.2))
    assert features.shape == (2, 128)
    np.testing.assert_allclose(features[0], features[1], atol=1e-6)
    repeated = [math.sin(0.3), math.cos(0.3), math.sin(-0.2), math.cos(-0.2)]
    np.testing.assert_allclose(features[0, 124:], repeated, rtol=1e-6)
    table = view_angles()
    assert table.shape == (12, 36, 128)
    np.testing.assert_allclose(table[3, 12 + 3, :4], [0, 1, 0, 1], atol=1e-7)  # ahead, level
    np.testing.assert_allclose(table[3, 4, :2], [0.5, math.sqrt(0.75)], rtol=1e-6)  # a column to the right
    assert wrap_angle(np.array(4.0)) == pytest.approx(4.0 - 2 * math.pi)


def test_broken_graphs():
    valid = {"name": "g", "viewpoints": ("a", "b", "c"), "position": np.eye(3), "edges": np.array([[0, 1]])}
    for change, message in (
        ({"viewpoints": ("a", "a", "c")}, "two viewpoints have the same id"),
        ({"position": np.zeros((2, 3))}, "position must be 3 x 3 finite numbers"),
        ({"position": np.full((3, 3), -10_001.0)}, "position must be 3 x 3 finite numbers of at most 10000 m"),
        ({"edges": np.array([[0, 1, 2]])}, "pairs of different nodes"),
        ({"edges": np.array([[0, 3]])}, r"pairs of different nodes in 0 \.\.\. 2"),
        ({"edges": np.array([[1, 1]])}, "pairs of different nodes"),
        ({"edges": np.array([[0, 1], [1, 0]])}, "an edge is given twice"),
    ):
        with pytest.raises(ValueError, match=f"graph 'g': .*{message}"):
            Graph(**(valid | change))


def test_graphs_at_the_limits():
    far = np.array([[10_000.0, 0, 0], [-10_000.0, 0, 0], [0, 0, 10_000.0]])
    graph = Graph("far", tuple("abc"), far, np.array([[2, 0], [1, 2], [0, 1]]))
    assert graph.distance[0, 1] == 20_000.0
    assert (len(graph), graph.node) == (3, {"a": 0, "b": 1, "c": 2})
    lonely = Graph("lonely", ("d",), np.zeros((1, 3)), np.zeros((0, 2), int))
    assert (lonely.distance.tolist(), lonely.candidates.node.shape) == ([[0.0]], (1, 0))
    table = Graphs([graph, lonely, graph])
    assert table.offset.tolist() == [0, 3, 4, 7]
    assert table.viewpoints.tolist() == list("abcdabc")
    assert (table.position[[3, 4]] == [[0, 0, 0], [10_000, 0, 0]]).all()
    assert table.candidates.node[3].tolist() == [-1, -1]
    assert set(table.candidates.node[4].tolist()) == {5, 6}
    with pytest.raises(ValueError, match="graphs must hold at least one graph"):
        Graphs([])


def test_of_two_shortest_paths_the_one_over_the_lower_node():
    """A square: its corner 3 is two edges from 0, over 1 or 2. Rounding does not decide."""
    for shift in (0.0, 1e-12, -1e-12):
        corners = np.array([[0, 0, 0], [1.0 + shift, 0, 0], [0, 1.0, 0], [1, 1, 0]])
        graph = Graph("square", tuple("abcd"), corners, np.array([[0, 2], [0, 1], [2, 3], [1, 3]]))
        table = Graphs([graph])
        for start in (0, 3):
            slot = table.next_candidate(np.array([start]), np.array([3 - start]))[0]
            assert table.candidates.node[start, slot] == 1


def test_too_many_candidates():
    star = Graph("star", tuple("abc"), np.eye(3), np.array([[0, 1], [0, 2]]))
    with pytest.raises(ValueError, match="viewpoint a in star must have at most 1 neighbours, got 2"):
        Graphs([star], 1)
    larger = Graph("larger", tuple("defg"), np.eye(4)[:, :3], np.array([[1, 0], [1, 2], [1, 3]]))
    with pytest.raises(ValueError, match="viewpoint e in larger must have at most 1 neighbours, got 3"):
        Graphs([star, larger], 1)  # the message names the largest need of all houses
    Graphs([star, larger], 3)
