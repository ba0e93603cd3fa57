from __future__ import annotations

import numpy as np
import pytest

from memenvs.wrappers import PlaceWrapper, collect_positions, fit_places
from memenvs.wrappers.clustering import nearest_centre
from tests.wrappers.conftest import WITH_POSE


@pytest.mark.parametrize("name", WITH_POSE)
@pytest.mark.parametrize("k", [None, 1, 3])
def test_every_environment(make, name, k):
    env = make(name)
    centres = None if k is None else fit_places(collect_positions(env, 60, seed=0), k)
    env = PlaceWrapper(env, centres=centres)
    assert k is None or env.observation_space["place"].n == k
    env.action_space.seed(1)
    observation, _ = env.reset(seed=5)
    for _ in range(20):
        assert env.observation_space.contains(observation)
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)
        if terminated or truncated:
            observation, _ = env.reset()


def test_darkroom_truth(make):
    env = PlaceWrapper(make("darkroom"))
    assert env.observation_space["place"].n == 100
    observation, info = env.reset(seed=0, options={"start": (3, 4)})
    assert observation["place"] == info["place"] == 34
    assert observation["place"].dtype == np.int64


def test_minigrid_truth(make):
    cells = PlaceWrapper(make("minigrid"))
    observation, _ = cells.reset(seed=0)
    column, row = cells.unwrapped.agent_pos
    assert observation["place"] == column * cells.unwrapped.height + row
    rooms = PlaceWrapper(make("minigrid rooms"))
    assert rooms.observation_space["place"].n == 9
    observation, _ = rooms.reset(seed=0)
    env = rooms.unwrapped
    number = [room for line in env.room_grid for room in line].index(env.room_from_pos(*env.agent_pos))
    assert observation["place"] == number


def test_miniworld_truth(make):
    env = PlaceWrapper(make("miniworld"))
    assert env.observation_space["place"].n == 8  # four rooms and four passages
    seen = set()
    for seed in range(8):
        observation, _ = env.reset(seed=seed)
        seen.add(int(observation["place"]))
        room, (x, _, z) = env.unwrapped.rooms[observation["place"]], env.unwrapped.agent.pos
        assert room.min_x <= x <= room.max_x
        assert room.min_z <= z <= room.max_z
    assert len(seen) >= 3


def test_clusters_are_found_and_numbered_in_order():
    rng = np.random.default_rng(0)
    middles = np.array([[0.0, 0.0], [2.0, 5.0], [4.0, 1.0], [9.0, 9.0]])
    points = np.concatenate([middle + rng.normal(0, 0.2, (50, 2)) for middle in middles])
    centres = fit_places(rng.permutation(points), 4)
    np.testing.assert_allclose(centres, middles, atol=0.15)
    np.testing.assert_array_equal(nearest_centre(points, centres), np.repeat(np.arange(4), 50))
    np.testing.assert_array_equal(fit_places(points, 4, seed=3), fit_places(points, 4, seed=3))


def test_as_good_as_scikit_learn():
    cluster = pytest.importorskip("sklearn.cluster")
    points = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), -1).reshape(-1, 2)
    for k in (8, 16, 32):
        centres = fit_places(points, k)
        ours = ((points - centres[nearest_centre(points, centres)]) ** 2).sum()
        peer = cluster.KMeans(k, n_init=10, random_state=0).fit(points).inertia_
        assert ours <= 1.05 * peer


def test_as_many_places_as_positions():
    points = np.array([[0.0, 0], [1, 0], [1, 0], [2, 0]])
    np.testing.assert_array_equal(fit_places(points, 3), [[0, 0], [1, 0], [2, 0]])
    with pytest.raises(ValueError, match=r"num_places must be an integer in 1 \.\.\. 3, .* got 4"):
        fit_places(points, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((np.zeros((3, 3))), 1), r"shape \(P, 2\), got shape \(3, 3\)"),
        ((np.full((3, 2), np.nan), 1), "positions must be finite"),
        ((np.zeros((3, 2)), 0), r"num_places must be an integer in 1 \.\.\. 1"),
        ((np.eye(2), 1.5), r"num_places must be an integer in 1 \.\.\. 2, .* got 1.5"),
    ],
)
def test_bad_positions(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit_places(*arguments)


def test_bad_settings(make):
    env = make("darkroom")
    for value in (0, 1.5, "3"):
        with pytest.raises(ValueError, match=f"num_places must be an integer of at least 1, got {value!r}"):
            PlaceWrapper(env, num_places=value)
    with pytest.raises(ValueError, match=r"centres must be finite, got \[\[nan, 1.0\]\]"):
        PlaceWrapper(env, centres=[[np.nan, 1.0]])
    with pytest.raises(ValueError, match=r"centres must have the shape \(k, 2\)"):
        PlaceWrapper(env, centres=[1.0, 2.0])
    with pytest.raises(ValueError, match="must be None with them, got 4"):
        PlaceWrapper(env, centres=[[1.0, 2.0]], num_places=4)
    with pytest.raises(ValueError, match=r"the number of places of .* is unknown; pass num_places"):
        PlaceWrapper(make("cartpole"))
    with pytest.raises(ValueError, match=r"the place of .*CartPole.* is unknown"):
        PlaceWrapper(make("cartpole"), num_places=3).reset()
    with pytest.raises(RuntimeError, match=r"place 99 is outside 0 \.\.\. 4"):
        PlaceWrapper(env, num_places=5).reset(seed=0, options={"start": (9, 9)})
    for value in (0, 2.5):
        with pytest.raises(ValueError, match=f"num_steps must be an integer of at least 1, got {value}"):
            collect_positions(env, value, seed=0)
