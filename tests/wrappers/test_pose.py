import math

import gymnasium as gym
import numpy as np
import pytest

from memenvs.poses import wrap_angle
from memenvs.wrappers import PoseWrapper, TrialWrapper


class Walker(gym.Env):
    """Goes through given poses, by any action."""

    observation_space = gym.spaces.Box(0, 1, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, poses, episode_steps=100):
        self.poses, self.episode_steps, self.t = np.array(poses, np.float64), episode_steps, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {"pose": self.poses[0]}

    def step(self, action):
        self.t += 1
        return np.zeros(1, np.float32), 0.0, self.t >= self.episode_steps, False, {"pose": self.poses[self.t]}


def walk(env, steps, seed=0):
    observation, _ = env.reset(seed=seed)
    poses = [observation["pose"]]
    poses += [env.step(0)[0]["pose"] for _ in range(steps)]
    return np.array(poses)


# The path of a square: 2 m along +y, turns left, 1 m along -x.
SQUARE = [(3.0, 4.0, np.pi / 2), (3.0, 6.0, np.pi / 2), (3.0, 6.0, np.pi), (2.0, 6.0, np.pi)]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("world", [(3, 4, np.pi / 2), (3, 6, np.pi / 2), (3, 6, -np.pi), (2, 6, -np.pi)]),
        ("start", [(0, 0, 0), (2, 0, 0), (2, 0, np.pi / 2), (2, 1, np.pi / 2)]),
        ("camera", [(0, 0, 0), (2, 0, 0), (0, 0, np.pi / 2), (1, 0, 0)]),
    ],
)
def test_frames_by_hand(frame, expected):
    env = PoseWrapper(Walker(SQUARE), frame=frame)
    space = env.observation_space["pose"]
    assert (-space.low).tolist() == space.high.tolist() == pytest.approx([np.inf, np.inf, np.pi])
    poses = walk(env, 3)
    assert poses.dtype == np.float32
    np.testing.assert_allclose(poses, expected, atol=1e-6)


def test_origin_trial_or_episode(make):
    for origin, second in (("episode", [0, 0, 0]), ("trial", [5, 5, 0])):
        env = PoseWrapper(make("darkroom"), frame="start", origin=origin)
        env.reset(seed=0, options={"start": (1, 2)})
        observation, info = env.reset(options={"start": (6, 7)})
        assert info["episode_index"] == 1
        np.testing.assert_array_equal(observation["pose"], second)


def test_origins_around_a_trial_wrapper():
    for origin, frame, second in (
        ("episode", "start", 0.0),
        ("trial", "start", 0.0),
        ("episode", "camera", 0.0),
        ("episode", "world", 3.0),
    ):
        env = PoseWrapper(TrialWrapper(Walker(SQUARE, 2), trial_episodes=2), frame=frame, origin=origin)
        poses = walk(env, 2)
        np.testing.assert_allclose(poses[2][0], second)  # the first pose of the second episode


def test_minigrid_forward_is_ahead(make):
    left, _, forward = range(3)
    env = PoseWrapper(make("minigrid", max_steps=100), frame="world")
    for _ in range(4):
        before = env.reset(seed=0)[0]["pose"]
    seen = set()
    for _ in range(4):
        after = env.step(forward)[0]["pose"]
        step = after[:2] - before[:2]
        if np.any(step):
            np.testing.assert_allclose(step, [np.cos(before[2]), np.sin(before[2])], atol=1e-6)
            seen.add(round(float(before[2]), 3))
        turned = env.step(left)[0]["pose"]
        np.testing.assert_allclose(wrap_angle(turned[2] - after[2]), np.pi / 2, atol=1e-6)
        before = turned
    assert len(seen) >= 2


def test_miniworld_forward_is_ahead(make):
    left, right, forward = range(3)
    env = PoseWrapper(make("miniworld", max_episode_steps=500), frame="world")
    before = env.reset(seed=1)[0]["pose"]
    moved = 0
    for action in [left, forward, left, forward, forward, right, right, right, forward] * 4:
        after = env.step(action)[0]["pose"]
        step = after[:2] - before[:2]
        if action == forward and np.hypot(*step) > 0.01:
            moved += 1
            heading = np.array([np.cos(before[2]), np.sin(before[2])])
            assert np.dot(step, heading) / np.hypot(*step) > 0.99
        elif action != forward:
            assert (wrap_angle(after[2] - before[2]) > 0) == (action == left)
        before = after
    assert moved > 5


def test_noise_has_the_stated_size_and_is_seeded():
    poses = np.zeros((4001, 3))
    env = PoseWrapper(Walker(poses, 10_000), frame="world", noise="gaussian", position_sd=0.3, heading_sd=0.1)
    first = walk(env, 4000, seed=7)
    np.testing.assert_allclose(first.std(0), [0.3, 0.3, 0.1], rtol=0.05)
    np.testing.assert_allclose(first.mean(0), 0, atol=0.02)
    np.testing.assert_array_equal(walk(env, 4000, seed=7), first)
    assert (walk(env, 10, seed=8) != first[:11]).all()
    rng = np.random.default_rng([7, 0, 0, 0x9053])  # seed, trial, episode, and a number for this generator
    expected = rng.standard_normal((4001, 3)) * [0.3, 0.3, 0.1]
    np.testing.assert_allclose(first, expected, atol=1e-6)
    expected = np.random.default_rng([7, 0, 1, 0x9053]).standard_normal(3) * [0.3, 0.3, 0.1]
    walk(env, 1, seed=7)
    np.testing.assert_allclose(env.reset()[0]["pose"], expected, atol=1e-6)
    drawn = [PoseWrapper(Walker(poses), noise="gaussian", position_sd=1.0) for _ in range(2)]
    assert (walk(drawn[0], 3, seed=None) != walk(drawn[1], 3, seed=None)).any()


def test_origin_of_an_environment_that_is_wrapped_within_a_trial(make):
    """The start of that trial is unknown: poses are those of the world until the next trial."""
    inner = make("darkroom")
    inner.reset(seed=0, options={"start": (1, 2)})
    env = PoseWrapper(inner, origin="trial")
    np.testing.assert_array_equal(env.reset(options={"start": (6, 7)})[0]["pose"], [6, 7, 0])


def test_noise_of_an_episode_depends_on_its_number_alone(make):
    def second(env, steps_in_first):
        env.reset(seed=3)
        for _ in range(steps_in_first):
            env.step(0)
        return env.reset()[0]["pose"]

    env = PoseWrapper(make("darkroom"), noise="gaussian", position_sd=1.0)
    once, again = second(env, 1), second(env, 5)
    np.testing.assert_array_equal(once, again)
    rebuilt, _ = env.reset(seed=3, options={"episode_index": 1})
    np.testing.assert_array_equal(rebuilt["pose"], once)
    walker = PoseWrapper(Walker(np.zeros((100, 3))), noise="gaussian", position_sd=1.0)
    np.testing.assert_array_equal(second(walker, 1), second(walker, 5))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"frame": "globl"}, "unknown pose frame 'globl'; choose from 'world', 'start', 'camera'"),
        ({"noise": "dead_reckoning", "position_sd": 0.1}, "position_sd must be 0 with noise 'dead_reckoning', got 0.1"),
        ({"collision_known": True}, "collision_known needs noise 'dead_reckoning', got noise 'none'"),
        ({"noise": "gaussian", "position_sd": -1.0}, "position_sd must be finite and at least 0, got -1.0"),
        ({"noise": "gaussian", "heading_sd": float("nan")}, "heading_sd must be finite and at least 0, got nan"),
        ({"frame": "world", "origin": "trial"}, "origin 'trial' needs frame 'start', got frame 'world'"),
        ({"position_sd": 1.0}, "position_sd must be 0 with noise 'none', got 1.0; pass noise='gaussian'"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        PoseWrapper(Walker(SQUARE), **settings)


def test_bad_environments(make):
    with pytest.raises(ValueError, match=r"the pose of .*CartPole.* is unknown"):
        PoseWrapper(make("cartpole")).reset()
    with pytest.raises(ValueError, match="origin 'trial' needs an environment with trials"):
        PoseWrapper(Walker(SQUARE), origin="trial").reset()
    with pytest.raises(ValueError, match=r"needs an environment whose info has 'command' .* this one has \['pose'\]"):
        PoseWrapper(Walker(SQUARE), noise="dead_reckoning").reset()
    with pytest.raises(ValueError, match="have a key 'pose' already"):
        PoseWrapper(PoseWrapper(Walker(SQUARE)))


FORWARD, LEFT = 0, 1
SCAN = {"world": "procedural", "obs_mode": "scan", "max_episode_steps": 40}


def actions(count: int) -> list[int]:
    return np.random.default_rng(3).integers(3, size=count).tolist()


@pytest.mark.parametrize("collision_known", [False, True])
def test_the_wrapper_believes_what_the_environment_believes(collision_known):
    settings = {**SCAN, "collision_known": collision_known}
    inside = gym.make("memenvs/Coverage-v0", modalities=["scan", "pose"], pose_source="dead_reckoning", **settings)
    plain = gym.make("memenvs/Coverage-v0", modalities=["scan"], **SCAN)
    outside = PoseWrapper(plain, noise="dead_reckoning", collision_known=collision_known)
    collisions = 0
    for seed in range(4):
        left, right = inside.reset(seed=seed)[0], outside.reset(seed=seed)[0]
        for action in [FORWARD] * 20 + actions(19):
            np.testing.assert_allclose(left["pose"], right["pose"], atol=1e-5)
            left, *_, info = inside.step(action)
            right = outside.step(action)[0]
        collisions += info["collisions"]
    assert collisions > 5
    inside.close()
    outside.close()


def test_a_path_by_hand():
    """A square of 1 m in commands ends where it began in belief; in truth the wheels have slipped."""
    env = PoseWrapper(gym.make("memenvs/Roaming-v0", modalities=["scan"], **SCAN), noise="dead_reckoning")
    truth = PoseWrapper(gym.make("memenvs/Roaming-v0", modalities=["scan"], **SCAN))
    believed, true = env.reset(seed=0)[0]["pose"], truth.reset(seed=0)[0]["pose"]
    np.testing.assert_array_equal(believed, [0, 0, 0])
    for side in range(4):
        for _ in range(4):
            believed, true = env.step(FORWARD)[0]["pose"], truth.step(FORWARD)[0]["pose"]
        corner = [(1, 0), (1, 1), (0, 1), (0, 0)][side]
        np.testing.assert_allclose(believed[:2], corner, atol=1e-5)
        for _ in range(2):
            believed, true = env.step(LEFT)[0]["pose"], truth.step(LEFT)[0]["pose"]
    np.testing.assert_allclose([believed[0], believed[1], math.cos(believed[2])], [0, 0, 1], atol=1e-5)
    assert np.hypot(*true[:2]) > 0.02
    env.close()
    truth.close()


@pytest.mark.parametrize("frame", ["start", "camera"])
def test_each_episode_begins_with_the_truth(frame):
    settings = {**SCAN, "max_episode_steps": 3, "trial_episodes": 2}
    plain = gym.make("memenvs/Roaming-v0", modalities=["scan"], **settings)
    env = PoseWrapper(TrialWrapper(plain), frame=frame, noise="dead_reckoning")
    poses = [env.reset(seed=1)[0]["pose"]] + [env.step(FORWARD)[0]["pose"] for _ in range(4)]
    np.testing.assert_array_equal(poses[0], [0, 0, 0])
    np.testing.assert_array_equal(poses[3], [0, 0, 0])  # the second episode
    np.testing.assert_allclose(poses[1], [0.25, 0, 0], atol=1e-6)
    np.testing.assert_allclose(poses[4], [0.25, 0, 0], atol=1e-6)
    env.close()


def test_in_the_world_frame_it_begins_at_the_true_pose():
    env = PoseWrapper(
        gym.make("memenvs/Roaming-v0", modalities=["scan"], **SCAN), frame="world", noise="dead_reckoning"
    )
    observation, info = env.reset(seed=2)
    x, y, heading = info["pose"]
    np.testing.assert_allclose(observation["pose"][:2], [x, y], atol=1e-6)
    pose = env.step(FORWARD)[0]["pose"]
    np.testing.assert_allclose(pose[:2], [x + 0.25 * math.cos(heading), y + 0.25 * math.sin(heading)], atol=1e-5)
    env.close()
