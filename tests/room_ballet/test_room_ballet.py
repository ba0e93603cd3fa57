"""Environments of Room Ballet: episodes of their task, options, pictures, commands."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from memenvs.room_ballet.descriptions import STRATEGY_TASKS
from memenvs.room_ballet.frames import empty_room, frame_table
from memenvs.room_ballet.tasks import BALLET_NAMES, make_ballet


def make(name: str, **kwargs: object) -> gym.Env:
    return gym.make(f"memenvs/RoomBallet-{name}-v0", **kwargs)


def test_an_episode_is_the_batch_of_one_of_its_generator():
    for name, settings in (*((name, {}) for name in BALLET_NAMES), ("MultiTask", {"schedule": "grid_walk"})):
        env, task = make(name, obs="symbols", trial_episodes=2, **settings), make_ballet(name, **settings)
        for trial, episode in ((0, 0), (0, 1), (1, 0)):
            _, info = env.reset(seed=7 if trial == episode == 0 else None)
            assert info["key"] == task.sample_batch(1, np.random.default_rng([7, trial, 1 + episode])).key[0]


def test_symbols_of_each_step_and_rewards_of_answers():
    """With images: tests/test_query_task.py."""
    env = gym.make_vec("memenvs/RoomBallet-ABA-v0", num_envs=3, obs="symbols", autoreset_mode="SameStep")
    observation, info = env.reset(seed=4)
    episodes = make_ballet("ABA").make_episodes(info["key"])
    for t in range(576):
        seen = np.stack([observation["frame"], observation["move"], info["place"]])
        np.testing.assert_array_equal(seen, [episodes.frame[:, t], episodes.action[:, t], episodes.place[:, t]])
        assert (observation["query"] == 2565).all() and not observation["phase"].any()
        observation, rewards, _, _, info = env.step(np.zeros(3, int))
        assert not rewards.any()
    assert (observation["frame"] == 2565).all() and (observation["phase"] == 1).all()
    np.testing.assert_array_equal(observation["query"], episodes.query)
    np.testing.assert_array_equal(env.unwrapped.oracle_actions(), episodes.label)
    _, rewards, terminated, truncated, info = env.step((episodes.label + np.array([0, 1, 0])) % 8)
    assert rewards.tolist() == [1.0, 0.0, 1.0] and terminated.all() and not truncated.any()
    assert info["final_info"]["success"].tolist() == [True, False, True]
    assert (info["final_info"]["num_steps"] == 577).all()
    for i, final in enumerate(info["final_obs"]):  # the query, as before the answer
        assert (final["phase"], final["query"]) == (1, observation["query"][i])


def test_info_has_dancers_and_rooms():
    _, info = make("LIFO").reset(seed=0)
    visit = info["query_visit"]
    assert info["visit_place"][visit] == info["query_place"]
    assert info["visit_dance"][visit] == info["label"]
    x, y, heading = info["pose"]
    assert (x, 2 - y, heading) == (info["place"] % 3, info["place"] // 3, 0)
    _, info = make("Opposite").reset(seed=0)
    assert info["room_dance"][7 - info["query_place"]] == info["label"]
    assert info["query_visit"] == -1
    assert info["room_dancer"].shape == (8,)


def test_spaces():
    image, symbol = Box(0, 255, (45, 45, 3), np.uint8), Discrete(2566)
    for name, settings, more in (("MVFO", {"rooms": 4}, {}), ("MultiTask", {}, {"task": Box(0, 1, (4,), np.float32)})):
        others = {"phase": Discrete(2), "move": Discrete(5), **more}
        task = make(name, **settings).unwrapped.task
        assert task.observation_space == Dict({"rgb": image, "query": image, **others})
        assert (task.action_space, task.num_layouts) == (Discrete(8), 1)
        symbols = make(name, obs="symbols", **settings).unwrapped
        assert symbols.observation_space == Dict({"frame": symbol, "query": symbol, **others})
        assert symbols.num_places == make_ballet(name, **settings).rooms


def test_the_task_is_one_hot():
    env = make("MultiTask")
    seen = set()
    for seed in range(20):
        observation, info = env.reset(seed=seed)
        assert observation["task"].tolist() == [float(k == info["task_id"]) for k in range(4)]
        seen.add(info["task_id"])
    assert seen == {0, 1, 2, 3}


def test_another_query_in_the_same_episode():
    env = make("LVFO", obs="symbols")
    _, info = env.reset(seed=1)
    dances = info["visit_dance"]
    for visit in (0, 17):
        _, again = env.reset(options={"key": info["key"], "query": visit})
        assert (again["label"], again["query_visit"], again["query"]) == (dances[visit], visit, visit)
        np.testing.assert_array_equal(again["visit_place"], info["visit_place"])


def test_invalid_options():
    for options, message in (
        ({"key": -1}, r"option 'key' must be an integer in 0 \.\.\. 9223372036854775807, got -1"),
        ({"key": 2**63}, rf"option 'key' must be an integer in .*, got {2**63}"),
        ({"key": "x"}, "option 'key' must be an integer"),
        ({"query": 3}, "option 'query' must come with 'key', .*, got 3 alone"),
        ({"key": 0, "query": 18}, r"query must be the number of a visit, 0 \.\.\. 17"),
    ):
        with pytest.raises(ValueError, match=message):
            make("FIFO").reset(seed=0, options=options)
    assert make("FIFO").reset(seed=0, options={"key": 2**63 - 1})[1]["key"] == 2**63 - 1


def test_pictures_before_and_at_the_query():
    for name in STRATEGY_TASKS:
        env = make(name.upper(), render_mode="rgb_array")
        _, info = env.reset(seed=0)
        before = env.render()
        assert before.shape == (360, 1080, 3)
        assert not before[:, 360:720].any()
        for _ in range(576):
            env.step(0)
        at_query = env.render()
        query = make_ballet(name.upper()).make_episodes(np.array([info["key"]])).query[0]
        np.testing.assert_array_equal(at_query[::8, 360:720:8], frame_table()[query])
        np.testing.assert_array_equal(at_query[::8, :360:8], empty_room())
        rooms = [image[:, 720:].reshape(3, 120, 3, 120, 3) == (60, 170, 90) for image in (before, at_query)]
        before, green = (pixels.all(-1).mean((1, 3)) for pixels in rooms)  # share of green in each room
        assert not before.any() and np.flatnonzero(green) == info["query_place"] and green.max() > 0.3
        middle = env.unwrapped.task.map_pixels(0, np.array([[2.0, 0.0, 0.0]]))
        assert middle.tolist() == [[300, 300]]
