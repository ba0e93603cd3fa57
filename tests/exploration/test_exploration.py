"""Rewards and ends of Roaming and Coverage, by hand in toy rooms and as identities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.exploration.carmine import sense_depth
from memenvs.exploration.coverage import Coverage
from memenvs.exploration.drive import COMMANDS, FORWARD, LEFT, RIGHT, WHEEL_RADIUS, noisy_motions
from memenvs.exploration.roaming import Roaming
from memenvs.exploration.search import Search
from memenvs.houses.homes_config import draw_start_pose
from memenvs.random import draw_keys
from tests.exploration.toy_world import ToyHomes, ToyWorld
from tests.objectnav.table_world import take_actions

TASKS = (Roaming, Coverage, Search)
#: Sizes of images that the sensor does not have.
NO_SIZES = ((48, 48), (50, 64), (0, 0), (960, 1280), (-48, -64))


def make_toy(task=Roaming, world=None, **kwargs) -> TrialEnv:
    return TrialEnv(task, world=world or ToyWorld(), **{"obs_mode": "scan", "wheel_noise": 0.0} | kwargs)


def test_path_by_hand():
    env = make_toy()
    observation, info = env.reset(seed=0, options={"start": (1.0, 2.0, 0.0)})
    assert observation["pose"].tolist() == [0, 0, 0]
    assert info["start"].tolist() == [1.0, 2.0, 0.0]
    assert (info["scene_id"], info["place"], info["collision"]) == ("toy", 0, False)
    observation, reward, terminated, truncated, info = take_actions(env, FORWARD, FORWARD)
    assert (reward, terminated, truncated) == (1.0, False, False)
    np.testing.assert_allclose(info["pose"], [1.5, 2.0, 0.0], atol=1e-6)
    assert info["command"].tolist() == [0.25, 0.0]
    observation, reward, *_, info = take_actions(env, LEFT)
    assert reward == 0.0
    np.testing.assert_allclose(info["pose"], [1.5, 2.0, math.pi / 4], atol=1e-6)
    observation, *_, info = take_actions(env, FORWARD)
    np.testing.assert_allclose(observation["pose"], [0.5 + 0.25 / 2**0.5, 0.25 / 2**0.5, math.pi / 4], atol=1e-6)
    assert info["command"].tolist() == [0.25, 0.0]
    assert (info["forwards_ok"], info["distance"], info["collisions"], info["return"]) == (3, 0.75, 0, 3.0)
    *_, info = take_actions(env, *[LEFT] * 7)
    np.testing.assert_allclose(info["pose"][2], 0.0, atol=1e-6)


def test_collision_keeps_the_pose_and_counts_once():
    """The wall of the room is 0.28 m ahead of x = 7.72; the grid gives it up to a cell of 5 cm."""
    env = make_toy(wheel_noise=0.5)
    _, before = env.reset(seed=3, options={"start": (7.6, 2.0, 0.0)})
    for count in range(1, 6):
        _, reward, *_, info = env.step(FORWARD)
        assert (reward, info["collision"], info["collisions"]) == (-1.0, True, count)
        assert (info["pose"] == before["pose"]).all()
        assert info["reward_terms"].tolist() == [0.0, 0.0, 0.0, 1.0]
    _, reward, *_, info = env.step(LEFT)
    assert (reward, info["collision"], info["collisions"]) == (0.0, False, 5)


def test_turns_never_collide():
    """In a corner the noise of a turn would move the robot into a wall; it turns on the spot then."""
    env = make_toy(wheel_noise=2.0)
    on_the_spot = 0
    for seed in range(40):
        _, start = env.reset(seed=seed, options={"start": (0.32, 0.32, 3.9)})
        _, reward, *_, info = env.step(RIGHT)
        assert (reward, info["collisions"]) == (0.0, 0)
        assert info["pose"][2] != start["pose"][2]
        on_the_spot += (info["pose"][:2] == start["pose"][:2]).all()
    assert 5 <= on_the_spot <= 30


def test_the_51st_collision_terminates():
    env = make_toy(Coverage)
    env.reset(seed=0, options={"start": (7.6, 2.0, 0.0)})
    for count in range(1, 52):
        _, _, terminated, truncated, info = env.step(FORWARD)
        assert (terminated, truncated, info["collisions"]) == (count == 51, False, count)
    roaming = make_toy()
    roaming.reset(seed=0, options={"start": (7.6, 2.0, 0.0)})
    assert take_actions(roaming, *[FORWARD] * 50)[4]["success"]
    assert not roaming.step(FORWARD)[4]["success"]


#: 2 x 2 m with walls of 0.1 m inside it: 16 cells, of which the 4 in the middle have a middle where the robot fits.
SMALL_ROOM = ToyWorld(
    (2.0, 2.0),
    (
        *(("wall", (x, 1.0, 1.35), (0.05, 1.0, 1.35)) for x in (0.05, 1.95)),
        *(("wall", (1.0, y, 1.35), (1.0, 0.05, 1.35)) for y in (0.05, 1.95)),
    ),
)


def test_cells_by_hand():
    env = make_toy(Coverage, SMALL_ROOM)
    _, info = env.reset(seed=0, options={"start": (0.6, 0.6, 0.0)})
    expected = np.zeros((64, 64), bool)
    expected[1, 1] = True
    assert (info["visited"] == expected).all()
    assert (info["cells"], info["coverage"]) == (0, 0.0)
    rewards = [env.step(FORWARD)[1] for _ in range(3)]  # x = 0.85, 1.1, 1.35
    assert rewards == [0.0, 5.0, 0.0]
    rewards = [env.step(action)[1] for action in (LEFT, LEFT, FORWARD, FORWARD, LEFT, LEFT)]  # y = 0.85, 1.1
    assert rewards == [0.0, 0.0, 0.0, 5.0, 0.0, 0.0]
    _, reward, *_, info = take_actions(env, FORWARD, FORWARD)  # x = 1.1, 0.85
    expected[1, 2] = expected[2, 2] = expected[2, 1] = True
    assert (reward, info["cells"], info["coverage"]) == (5.0, 3, 1.0)
    assert not {"success", "is_success"} & info.keys()  # a home that can be covered in 500 steps is rare
    assert (info["visited"] == expected).all()
    assert info["return"] == 15.0
    env.reset(seed=0, options={"start": (0.7, 0.7, math.pi)})
    _, reward, *_, info = env.step(FORWARD)  # x = 0.45: the middle of that cell, 0.15 m from the wall, is out of reach
    assert (reward, info["cells"], info["collisions"]) == (0.0, 0, 0)
    assert info["visited"][1, 0]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    actions=st.lists(st.integers(0, 2), min_size=1, max_size=60),
    seed=st.integers(0, 2**31),
    noise=st.sampled_from([0.0, 0.5, 2.0]),
)
def test_one_recording_serves_all_tasks(actions, seed, noise):
    """The same actions lead along the same path in all tasks, and each reward is a sum of the terms."""
    boxes = (("sofa", (5.0, 2.0, 0.4), (0.5, 0.9, 0.4)), ("bed", (1.0, 3.2, 0.3), (0.9, 0.8, 0.3)))
    envs = [make_toy(task, ToyWorld(boxes=boxes), wheel_noise=noise) for task in (Roaming, Coverage)]
    envs.append(make_toy(Search, ToyWorld(boxes=boxes), wheel_noise=noise, targets=("sofa", "bed")))
    for env in envs:
        env.reset(seed=seed)
    for action in actions:
        rows = []
        for k, env in enumerate(envs):
            _, reward, terminated, _, info = env.step(action)
            move, cell, target, collision = info["reward_terms"]
            assert reward == (move, 5 * cell, cell + 100 * target)[k] - collision
            rows.append((*info["pose"], move, cell, collision, info["visited"].sum()))
        assert rows[0] == rows[1] == rows[2]
        if terminated:
            break


def test_noise_follows_from_the_seed_of_the_episode():
    """After the start pose each episode draws the key of its wheels, then that of its depths."""
    env = make_toy(wheel_noise=0.5, obs_mode="frames", modalities=["depth"])
    observation, info = env.reset(seed=7, options={"trial": 2, "episode_index": 3})
    rng = np.random.default_rng([7, 2, 1 + 3])
    start = draw_start_pose(env.task.home(0).navmap, rng)
    assert info["start"] == pytest.approx(start)
    keys = draw_keys(rng, 2)
    heading, motion, depth = start[2], np.zeros((1, 2)), np.zeros((1, 48 * 64), np.float32)
    for step in range(4):
        true = env.task._images["depth"].reshape(1, -1)
        sense_depth(true, np.zeros(1, int), keys[1:], np.array([step]), depth)
        np.testing.assert_array_equal(observation["depth"].ravel(), depth[0])
        noisy_motions(COMMANDS[[LEFT]], WHEEL_RADIUS * 0.5, keys[:1], np.array([step]), motion)
        heading += motion[0, 1]
        observation, *_, info = env.step(LEFT)
        assert math.remainder(info["pose"][2] - heading, 2 * math.pi) == pytest.approx(0.0, abs=1e-5)


def test_position_of_the_camera():
    """A wall of boxes 3 m ahead of the camera: 0.164 m ahead of the axis and 1.061 m above the floor."""
    world = ToyWorld((20.0, 20.0), (("wall", (13.264, 10.0, 1.35), (0.1, 9.0, 1.35)),))
    env = make_toy(world=world, obs_mode="frames", modalities=["depth", "semantic"])
    observation, _ = env.reset(seed=0, options={"start": (10.0, 10.0, 0.0)})
    assert np.median(observation["depth"][observation["semantic"] == 1]) == pytest.approx(3.0, abs=0.01)
    # The wall's foot is 1.061 m below the axis: at 3 m that is 20.3 pixels below row 23.95.
    column = observation["semantic"][:, 32]
    assert column[math.floor(23.95 + 57.405 * 1.061 / 3.0)] == 1
    assert column[math.ceil(23.95 + 57.405 * 1.061 / 3.0)] != 1


def test_dead_reckoning_with_and_without_collisions():
    for is_known, x in ((False, 0.5), (True, 0.0)):
        env = make_toy(pose_source="dead_reckoning", collision_known=is_known)
        env.reset(seed=0, options={"start": (7.6, 2.0, 0.0)})
        observation, *_, info = take_actions(env, FORWARD, FORWARD)
        assert info["collisions"] == 2
        np.testing.assert_allclose(observation["pose"], [x, 0.0, 0.0], atol=1e-6)


def test_bad_settings():
    reckoned = {"pose_source": "dead_reckoning", "modalities": ["rgb"]}
    for kwargs, message in (
        ({"modalities": ["rgb", "dept"]}, "unknown modality 'dept' in obs_mode 'frames'.*did you mean 'depth'"),
        ({"modalities": ["rgb"], "obs_mode": "scan"}, "unknown modality 'rgb' in obs_mode 'scan'"),
        ({"modalities": []}, "modalities must be None or some of"),
        ({"modalities": "rgb"}, r"must be a list of names, got 'rgb'; for this one alone: \[\"rgb\"\]"),
        *(({"image_size": size}, r"image_size must be \(480, 640\) divided by an integer.*got") for size in NO_SIZES),
        ({"image_size": (24, 32), "obs_mode": "scan"}, "image_size must be None in obs_mode 'scan'"),
        ({"collision_known": True}, "collision_known must be False with pose_source 'truth'"),
        (reckoned, r"pose_source must be 'truth' .*, got 'dead_reckoning' with \('rgb',\)"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            TrialEnv(Coverage, **kwargs)
    with pytest.raises(RuntimeError, match="home was called before reset"):
        make_toy(Coverage).task.home(0)


@pytest.mark.parametrize("task", TASKS)
def test_homes_longer_than_32_metres(task):
    """Cells beyond 32 m count as all others; robots in shorter homes do not notice."""
    env = make_toy(task, ToyWorld((40.0, 3.0)), modalities=["pose"])
    _, info = env.reset(seed=0, options={"start": (36.0, 1.25, 0.0)})
    assert info["visited"].shape == (80, 80) and np.argwhere(info["visited"]).tolist() == [[2, 72]]
    _, reward, *_, info = take_actions(env, FORWARD, FORWARD)
    assert reward == {Roaming: 1.0, Coverage: 5.0, Search: 1.0}[task]
    assert info["cells"] == 1 and np.argwhere(info["visited"]).tolist() == [[2, 72], [2, 73]]
    for _ in range(30):
        info = env.step(env.oracle_action())[4]
    assert info["cells"] > 3 and info["collisions"] == 0
    assert env.task.draw_map(0, info["pose"][None]).ndim == 3

    homes = ToyHomes(ToyWorld(), ToyWorld((40.0, 3.0)))
    env = TrialVectorEnv(task, 2, world=homes, modalities=["pose"], obs_mode="scan", autoreset_mode="Disabled")
    alone = make_toy(task, modalities=["pose"], wheel_noise=0.5)
    env.reset(seed=[5, 0], options={"layout": 0})
    alone.reset(seed=5)
    for step, action in enumerate(np.random.default_rng(0).integers(3, size=60).tolist()):
        if step == 20:
            mask = np.array([False, True])
            env.reset(options={"reset_mask": mask, "layout": 1})
        info, expected = env.step(np.array([action, action]))[4], alone.step(action)[4]
        for name in ("cells", "return", "coverage"):
            assert info[name][0] == expected[name]
        np.testing.assert_array_equal(info["visited"][0, :64, :64], expected["visited"])
    assert info["visited"].shape == (2, 80, 80)
