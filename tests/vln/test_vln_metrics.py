"""Metrics and rewards: worked by hand on the house of `toys.py`, and against plain versions on random graphs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memenvs.vln.graph import Graph, Graphs
from memenvs.vln.metrics import PathMetrics, ReferencePath, score
from memenvs.vln.rewards import step_rewards
from memenvs.vln.worlds.base import Episode
from tests.vln.toys import EDGES, PLACES, plain_metrics

NAMES = "abcde"
TOY = Graph(
    "toy",
    tuple(NAMES),
    np.array([[*PLACES[name], 1.5] for name in NAMES]),
    np.array([[NAMES.index(u), NAMES.index(v)] for u, v in EDGES if "x" not in u + v]),
)
AE = math.sqrt(8)  # m, the slanting edge


def nodes(text: str) -> tuple[int, ...]:
    return tuple(NAMES.index(name) for name in text)


def episode(path: str, *, legs: str = "", region: str = "", graph: int = 0) -> Episode:
    return Episode(
        id=path, house=graph, text="", path=nodes(path), heading=0.0, leg_ends=nodes(legs or path[-1]), region=nodes(region)
    )  # fmt: skip


def of(walk: str, path: str, **kwargs: str) -> dict[str, float]:
    found = score(Graphs([TOY]), [episode(path, **kwargs)], [nodes(walk)])
    return {name: float(value[0]) for name, value in found.items()}


def test_the_annotated_path_is_perfect():
    found = of("abcd", "abcd")
    assert found == {"ne": 0, "sr": 1, "osr": 1, "spl": 1, "tl": 4.5, "ndtw": 1, "sdtw": 1, "cls": 1, "gp": 4.5}


def test_a_detour_by_hand():
    """a-e-b-c against a-b-c: d(e, b) = 2 is all that the alignment costs, one half of the walk is too long."""
    found = of("aebc", "abc")
    walked = AE + 4.0
    assert found["tl"] == pytest.approx(walked)
    assert found["spl"] == pytest.approx(4.0 / walked)
    assert found["ndtw"] == pytest.approx(math.exp(-2.0 / 9.0))
    assert found["sdtw"] == found["ndtw"]
    assert found["cls"] == pytest.approx(4.0 / (4.0 + AE))  # every node of the path was visited


def test_stopping_too_early_by_hand():
    """a alone against a-b-c-d: 0 + 2 + 4 + 4.5 m."""
    found = of("a", "abcd")
    assert found["ne"] == 4.5
    assert found["ndtw"] == pytest.approx(math.exp(-10.5 / 12.0))
    coverage = (1 + math.exp(-2 / 3) + math.exp(-4 / 3) + math.exp(-1.5)) / 4
    assert found["cls"] == pytest.approx(coverage / 2)  # an expected length of c * 4.5, and none was walked
    assert [found[name] for name in ("sr", "osr", "spl", "tl", "sdtw", "gp")] == [0, 0, 0, 0, 0, 0]


def test_passing_the_goal_counts_for_the_oracle_stop_only():
    found = of("abcdcba", "abcd")
    assert (found["osr"], found["sr"], found["spl"]) == (1, 0, 0)


def test_three_metres_are_a_failure():
    for far, success in ((3.0, 0.0), (2.999, 1.0)):
        pair = Graph("pair", ("u", "v"), np.array([[0.0, 0, 0], [0, far, 0]]), np.array([[0, 1]]))
        way = Episode(id="", house=0, text="", path=(0, 1), heading=0.0, leg_ends=(1,))
        found = score(Graphs([pair]), [way], [[0]])
        assert (found["sr"][0], found["osr"][0]) == (success, success)


def test_a_path_of_one_node():
    stayed, left, returned = of("a", "a"), of("ab", "a"), of("aba", "a")
    assert (stayed["spl"], stayed["ndtw"], stayed["cls"], stayed["tl"]) == (1, 1, 1, 0)
    assert (left["sr"], left["spl"], left["cls"]) == (1, 0, 0)  # 2 m away is near enough, but it was not needed
    assert (returned["sr"], returned["spl"]) == (1, 0)


def test_goal_progress_is_about_the_nearest_of_the_region():
    assert of("aeb", "abcd", region="ce")["gp"] == pytest.approx(AE - 2.0)
    assert of("abc", "abcd", region="ce")["gp"] == pytest.approx(AE)
    assert of("ea", "eb", region="e")["gp"] == pytest.approx(-AE)


def test_a_tour_needs_its_leg_ends_in_order():
    """From d down to a and back to c: a is nearer than 3 m from b and from e, but not from c."""
    tour = {"path": "dcbabc", "legs": "ac"}
    assert of("dcbabc", **tour)["sr"] == 1
    assert of("dcbabc", **tour)["spl"] == 1
    assert of("dcbc", **tour)["sr"] == 1  # near enough
    assert of("dc", **tour)["sr"] == 0
    assert of("dc", **tour)["osr"] == 1
    assert of("dcba", **tour)["sr"] == 0


def test_the_way_that_remains_on_a_tour():
    graphs = Graphs([TOY])
    walks = PathMetrics(graphs, 1)
    walks.begin(0, ReferencePath.from_episode(graphs, episode("dcbabc", legs="ac")))
    seen = [(walks.remaining[0], NAMES[walks.target[0]])]
    for name in "cbabc":
        walks.move(np.array(nodes(name)), np.ones(1, bool))
        seen.append((walks.remaining[0], NAMES[walks.target[0]]))
    assert seen == [(8.5, "a"), (8.0, "a"), (6.0, "a"), (4.0, "c"), (2.0, "c"), (0.0, "c")]


@st.composite
def walks_on_graphs(draw: st.DrawFn) -> tuple[Graph, list[Episode], list[list[int]]]:
    count = draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    pairs = np.array([(u, v) for u in range(count) for v in range(u + 1, count)])
    is_edge = (rng.random(len(pairs)) < 0.4) | (pairs[:, 1] == pairs[:, 0] + 1)  # connected
    graph = Graph("any", tuple(f"v{k}" for k in range(count)), rng.normal(0, 2, (count, 3)), pairs[is_edge])

    def wander(start: int, most: int) -> list[int]:
        walk = [start]
        for _ in range(int(rng.integers(most + 1))):
            near = graph.candidates.node[walk[-1]]
            walk.append(int(rng.choice([*near[near >= 0], walk[-1]])))
        return walk

    episodes, walks = [], []
    for k in range(draw(st.integers(1, 5))):
        raw = wander(int(rng.integers(count)), 9)
        path = [node for j, node in enumerate(raw) if j == 0 or node != raw[j - 1]]
        cuts = sorted(rng.integers(len(path), size=int(rng.integers(3))).tolist())
        region = tuple(rng.integers(count, size=int(rng.integers(4))).tolist())
        legs = (*(path[cut] for cut in cuts), path[-1])
        episodes.append(
            Episode(id=str(k), house=0, text="", path=tuple(path), heading=0.0, leg_ends=legs, region=region)
        )
        walks.append(wander(path[0], 12))
    return graph, episodes, walks


@settings(max_examples=150, deadline=None)
@given(walks_on_graphs())
def test_metrics_are_those_of_the_plain_version(case):
    graph, episodes, walks = case
    found = score(Graphs([graph]), episodes, walks)
    for i, (way, walk) in enumerate(zip(episodes, walks, strict=True)):
        for name, value in plain_metrics(graph, way, walk).items():
            assert found[name][i] == pytest.approx(value, abs=1e-9), name


@settings(max_examples=40, deadline=None)
@given(walks_on_graphs())
def test_batch_mates_change_no_bit(case):
    graph, episodes, walks = case
    together = score(Graphs([graph]), episodes, walks)
    for i, (way, walk) in enumerate(zip(episodes, walks, strict=True)):
        alone = score(Graphs([graph]), [way], [walk])
        assert all(alone[name][0] == together[name][i] for name in together)
    assert (together["spl"] <= together["sr"]).all()
    assert (together["sdtw"] <= together["ndtw"]).all()
    assert (together["osr"] >= (together["ne"] < 3)).all()


def test_a_goal_that_cannot_be_reached():
    apart = Graph("apart", ("u", "v"), np.eye(3)[:2], np.zeros((0, 2), int))
    with pytest.raises(ValueError, match="episode '5': its goal cannot be reached"):
        score(Graphs([apart]), [Episode(id="5", house=0, text="", path=(0,), heading=0.0, leg_ends=(1,))], [[0]])


def test_every_row_of_the_table_of_rewards():
    cases = [  # stopped, success, before, after, nDTW before, nDTW after, reward
        (True, True, 2.0, 2.0, 0.5, 0.5, 2 + 2 * 0.5),
        (True, False, 3.0, 3.0, 0.5, 0.5, -2.0),
        (False, False, 5.0, 4.0, 0.3, 0.4, 1 + 0.1),
        (False, False, 4.0, 5.0, 0.4, 0.3, -1 - 0.1),
        (False, False, 4.0, 4.0 + 1e-15, 0.4, 0.35, -0.05),
        (False, False, 1.0, 1.5, 0.4, 0.4, -1.0 - 0.0),
        (False, False, 0.25, 1.5, 0.4, 0.4, -1.0 - 2 * 0.75),
        (False, True, 0.25, 0.0, 0.4, 0.5, 1 + 0.1),
        (False, False, 1.25, 2.0, 0.4, 0.4, -1.0),
    ]
    *columns, rewards = (np.array(column) for column in zip(*cases, strict=True))
    np.testing.assert_allclose(step_rewards(*columns), rewards, atol=1e-12)
