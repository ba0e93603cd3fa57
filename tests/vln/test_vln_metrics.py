"""Metrics and rewards: by hand in the toy house, and against references on random graphs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memenvs.vln.graph import Graph, Graphs
from memenvs.vln.metrics import PathMetrics, ReferencePath, score, tour_ndtw
from memenvs.vln.rewards import step_rewards
from memenvs.vln.worlds.base import VLNEpisode
from tests.vln.test_vln_graph import graphs
from tests.vln.toys import EDGES, POSITIONS, published_tour_ndtw, reference_metrics

NAMES = "abcde"
TOY = Graph(
    "toy",
    tuple(NAMES),
    np.array([[*POSITIONS[name], 1.5] for name in NAMES]),
    np.array([[NAMES.index(u), NAMES.index(v)] for u, v in EDGES if "x" not in u + v]),
)
AE = math.sqrt(8)  # m, the diagonal edge


def nodes(text: str) -> tuple[int, ...]:
    return tuple(NAMES.index(name) for name in text)


def episode(path: str, *, legs: str = "", region: str = "") -> VLNEpisode:
    ends = {"leg_ends": nodes(legs or path[-1]), "region": nodes(region)}
    return VLNEpisode(id=path, house=0, text="", path=nodes(path), heading=0.0, **ends)


def metrics_of(path: str, reference: str, **kwargs: str) -> dict[str, float]:
    """Metrics of a path in the toy house against an annotated path."""
    metrics = score(Graphs([TOY]), [episode(reference, **kwargs)], [nodes(path)])
    return {name: float(value[0]) for name, value in metrics.items()}


def test_the_annotated_path_is_perfect():
    metrics = metrics_of("abcd", "abcd")
    assert metrics == {"ne": 0, "sr": 1, "osr": 1, "spl": 1, "tl": 4.5, "ndtw": 1, "sdtw": 1, "cls": 1, "gp": 4.5}


def test_a_detour_by_hand():
    """a-e-b-c against a-b-c. The alignment costs d(e, b) = 2 m only; the path is sqrt(8) m too long."""
    metrics = metrics_of("aebc", "abc")
    length = AE + 4.0
    assert metrics["tl"] == pytest.approx(length)
    assert metrics["spl"] == pytest.approx(4.0 / length)
    assert metrics["ndtw"] == pytest.approx(math.exp(-2.0 / 9.0))
    assert metrics["sdtw"] == metrics["ndtw"]
    assert metrics["cls"] == pytest.approx(4.0 / (4.0 + AE))  # every node of the path was visited


def test_stopping_too_early_by_hand():
    """a alone against a-b-c-d: 0 + 2 + 4 + 4.5 m."""
    metrics = metrics_of("a", "abcd")
    assert metrics["ne"] == 4.5
    assert metrics["ndtw"] == pytest.approx(math.exp(-10.5 / 12.0))
    coverage = (1 + math.exp(-2 / 3) + math.exp(-4 / 3) + math.exp(-1.5)) / 4
    assert metrics["cls"] == pytest.approx(coverage / 2)  # the expected length is c * 4.5 m, the path's is 0
    assert [metrics[name] for name in ("sr", "osr", "spl", "tl", "sdtw", "gp")] == [0, 0, 0, 0, 0, 0]


def test_three_metres_are_a_failure():
    for distance, success in ((3.0, 0.0), (2.999, 1.0)):
        pair = Graph("pair", ("u", "v"), np.array([[0.0, 0, 0], [0, distance, 0]]), np.array([[0, 1]]))
        there = VLNEpisode(id="", house=0, text="", path=(0, 1), heading=0.0, leg_ends=(1,))
        metrics = score(Graphs([pair]), [there], [[0]])
        assert (metrics["sr"][0], metrics["osr"][0]) == (success, success)


def test_remaining_length_and_target_on_a_route():
    """From d to a, on to c and to e; in a batch with an episode of one leg, from b to e."""
    graphs = Graphs([TOY])
    metrics = PathMetrics(graphs, 2)
    metrics.begin(0, ReferencePath.from_episode(graphs, episode("dcbabcbe", legs="ace")))
    metrics.begin(1, ReferencePath.from_episode(graphs, episode("be")))
    stages = [(metrics.remaining[0], NAMES[metrics.target[0]])]
    for name in "cbabcbe":
        metrics.move(np.array(nodes(f"{name}a")), np.array([True, False]))
        stages.append((metrics.remaining[0], NAMES[metrics.target[0]]))
        assert (metrics.remaining[1], NAMES[metrics.target[1]], metrics.success[1]) == (2.0, "e", True)
    lengths, targets = zip(*stages, strict=True)
    assert lengths == (12.5, 12.0, 10.0, 8.0, 6.0, 4.0, 2.0, 0.0)
    assert "".join(targets) == "aaacceee"
    assert [NAMES[node] for node in metrics.goal] == ["e", "e"]


@st.composite
def paths_on_graphs(draw: st.DrawFn) -> tuple[Graph, list[VLNEpisode], list[list[int]]]:
    """A random graph, random episodes in it, and a random path from the start of each."""
    graph = draw(graphs(is_connected=True))
    count, rng = len(graph), np.random.default_rng(draw(st.integers(0, 2**32)))

    def random_path(start: int, most: int) -> list[int]:
        path = [start]
        for _ in range(int(rng.integers(most + 1))):
            neighbours = graph.candidates.node[path[-1]]
            path.append(int(rng.choice([*neighbours[neighbours >= 0], path[-1]])))
        return path

    episodes, paths = [], []
    for k in range(draw(st.integers(1, 5))):
        raw = random_path(int(rng.integers(count)), 9)
        reference = [node for j, node in enumerate(raw) if j == 0 or node != raw[j - 1]]
        cuts = sorted(rng.integers(len(reference), size=int(rng.integers(3))).tolist())
        region = tuple(rng.integers(count, size=int(rng.integers(4))).tolist())
        legs = (*(reference[cut] for cut in cuts), reference[-1])
        episodes.append(
            VLNEpisode(id=str(k), house=0, text="", path=tuple(reference), heading=0.0, leg_ends=legs, region=region)
        )
        paths.append(random_path(reference[0], 12))
    return graph, episodes, paths


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(paths_on_graphs())
def test_metrics_equal_the_reference(case):
    graph, episodes, paths = case
    metrics = score(Graphs([graph]), episodes, paths)
    for i, (one, path) in enumerate(zip(episodes, paths, strict=True)):
        for name, value in reference_metrics(graph, one, path).items():
            assert metrics[name][i] == pytest.approx(value, abs=1e-9), name
    tour = [pair for pair in zip(episodes, paths, strict=True) if len(pair[0].path) > 1]
    if tour:
        own, walked = (list(part) for part in zip(*tour, strict=True))
        expected = published_tour_ndtw(graph, own, walked)
        assert tour_ndtw(Graphs([graph]), own, walked) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(paths_on_graphs())
def test_other_paths_of_a_batch_change_no_bit(case):
    graph, episodes, paths = case
    together = score(Graphs([graph]), episodes, paths)
    for i, (one, path) in enumerate(zip(episodes, paths, strict=True)):
        alone = score(Graphs([graph]), [one], [path])
        assert all(alone[name][0] == together[name][i] for name in together)
    assert (together["spl"] <= together["sr"]).all()
    assert (together["sdtw"] <= together["ndtw"]).all()
    assert (together["osr"] >= (together["ne"] < 3)).all()


def test_tour_ndtw_by_hand():
    """Of a-b-c-d-c against a-b-c-d the last c is 0.5 m from d. Within a tour the node before may not be aligned with
    the end d, so its best partner is c, another 0.5 m."""
    toy, paths = Graphs([TOY]), [list(nodes("abcdc")), list(nodes("eb"))]
    before = [episode("abcd"), episode("eb")]
    assert tour_ndtw(toy, before, paths) == pytest.approx(math.exp(-1.0 / 18.0))
    assert tour_ndtw(toy, before[::-1], paths[::-1]) == pytest.approx(math.exp(-0.5 / 18.0))
    assert tour_ndtw(toy, before[:1], paths[:1]) == pytest.approx(math.exp(-0.5 / 12.0))  # nDTW itself
    wandering = [list(nodes("abcd")), list(nodes("eabeb")), list(nodes("abcd"))]
    assert tour_ndtw(toy, [*before, before[0]], wandering) == 0.0  # e-b has no node between its ends for a, b and e


def test_a_goal_that_cannot_be_reached():
    apart = Graph("apart", ("u", "v"), np.eye(3)[:2], np.zeros((0, 2), int))
    with pytest.raises(ValueError, match="episode '5': its goal cannot be reached"):
        score(Graphs([apart]), [VLNEpisode(id="5", house=0, text="", path=(0,), heading=0.0, leg_ends=(1,))], [[0]])


def test_step_rewards():
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
