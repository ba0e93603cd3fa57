import itertools
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from memenvs.clustering import nearest_centre
from memenvs.wrappers import PlaceWrapper, collect_positions, fit_places
from memenvs.wrappers.truth import InfoTruth, MinigridTruth, MiniworldTruth, truth_of


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
    assert cells.observation_space["place"].n == cells.unwrapped.width * cells.unwrapped.height
    rooms = PlaceWrapper(make("minigrid rooms"))
    assert rooms.observation_space["place"].n == 9
    observation, _ = rooms.reset(seed=0)
    env = rooms.unwrapped
    numbers = [room for line in env.room_grid for room in line]
    assert observation["place"] == numbers.index(env.room_from_pos(*env.agent_pos))
    truth = truth_of(env)
    for cell in itertools.product(range(env.width - 1), range(env.height - 1)):
        env.agent_pos = cell
        assert truth.place({}) == numbers.index(env.room_from_pos(*env.agent_pos))


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


class Rooms(gym.Env):
    """Attributes that Miniworld has: an agent and rooms, (x, z) on the floor plan."""

    observation_space = action_space = gym.spaces.Discrete(2)
    rooms = tuple(
        SimpleNamespace(min_x=x, max_x=x + 4.0, min_z=z, max_z=z + 4.0) for x, z in ((0.0, 0.0), (6.0, 0.0), (0.0, 6.0))
    )
    agent = SimpleNamespace(pos=np.zeros(3), dir=0.5)


def test_rooms_of_a_floor_plan_by_hand():
    env = Rooms()
    truth = truth_of(env)
    assert isinstance(truth, MiniworldTruth) and truth.num_places() == 3
    for (x, z), place in (
        ((1.0, 2.0), 0),
        ((9.0, 3.0), 1),
        ((3.0, 9.5), 2),
        ((4.9, 2.0), 0),  # between two rooms: the nearest
        ((5.1, 2.0), 1),
        ((9.0, 4.5), 1),
        ((-3.0, 6.5), 2),
        ((5.5, 5.5), 1),  # 0.5 and 1.5 away from room 1, as from room 2; the first counts
    ):
        env.agent.pos = np.array([x, 1.5, z])
        assert truth.place({}) == place, (x, z)
        np.testing.assert_array_equal(truth.pose({}), [x, -z, 0.5])


def test_truth_is_found_by_what_an_environment_shows(make):
    assert isinstance(truth_of(make("minigrid")), MinigridTruth)
    assert isinstance(truth_of(make("darkroom")), InfoTruth)
    for shown in ("agent", "rooms", "agent_pos", "agent_dir"):  # alone it says nothing
        env = make("cartpole")
        setattr(env.unwrapped, shown, None)
        assert isinstance(truth_of(env), InfoTruth), shown


def test_clusters_are_found_and_numbered_in_order():
    rng = np.random.default_rng(0)
    truth = np.array([[0.0, 0.0], [2.0, 5.0], [4.0, 1.0], [9.0, 9.0]])
    points = np.concatenate([middle + rng.normal(0, 0.2, (50, 2)) for middle in truth])
    centres = fit_places(rng.permutation(points), 4)
    np.testing.assert_allclose(centres, truth, atol=0.15)
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


def test_positions_are_those_of_random_actions(make):
    """Two episodes of 7 steps, with the first position of each."""
    positions = collect_positions(make("darkroom"), 17, seed=3)
    env = make("darkroom")
    env.action_space.seed(3)
    expected = [env.reset(seed=3)[1]["pose"][:2]]
    for t in range(1, 17):
        expected.append(env.step(env.action_space.sample())[4]["pose"][:2])
        if t % 7 == 0:
            env.reset()
    np.testing.assert_array_equal(positions, expected)
    assert collect_positions(make("darkroom"), 1, seed=3).shape == (1, 2)


def test_as_many_places_as_positions():
    points = np.array([[0.0, 0], [1, 0], [1, 0], [2, 0]])
    np.testing.assert_array_equal(fit_places(points, 3), [[0, 0], [1, 0], [2, 0]])
    for positions, count, message in (
        (points, 4, r"num_places must be an integer in 1 \.\.\. 3, .* got 4"),
        (points, 1.5, r"num_places must be an integer in 1 \.\.\. 3, .* got 1.5"),
        (np.zeros((3, 3)), 1, r"shape \(P, 2\), got shape \(3, 3\)"),
        (np.full((3, 2), np.nan), 1, "positions must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_places(positions, count)


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
    fewer = PlaceWrapper(env, num_places=5)
    assert fewer.reset(seed=0, options={"start": (0, 4)})[0]["place"] == 4
    for place in (5, 99):
        with pytest.raises(RuntimeError, match=rf"place {place} is outside 0 \.\.\. 4"):
            fewer.reset(seed=0, options={"start": divmod(place, 10)})
    for value in (0, 2.5):
        with pytest.raises(ValueError, match=f"num_steps must be an integer of at least 1, got {value}"):
            collect_positions(env, value, seed=0)
