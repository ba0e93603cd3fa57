from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest

import memenvs  # noqa: F401  (registers the ids)
from memenvs.wrappers import PoseWrapper, TrialWrapper

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
