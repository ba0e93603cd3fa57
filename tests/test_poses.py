"""Relative poses."""

from __future__ import annotations

import numpy as np

from memenvs.poses import relative_poses


def test_relative_pose_by_hand():
    pose, origin = np.array([[2.0, 3.0, np.pi]]), np.array([[2.0, 1.0, np.pi / 2]])
    np.testing.assert_allclose(relative_poses(pose, origin), [[2.0, 0.0, np.pi / 2]], atol=1e-12)


def test_relative_pose_ignores_a_move_of_the_world():
    rng = np.random.default_rng(1)
    poses, origin = rng.normal(size=(2, 20, 3))
    turn, shift = 0.7, np.array([5.0, -3.0])
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])

    def moved(pose):
        return np.column_stack([pose[:, :2] @ rotation.T + shift, pose[:, 2] + turn])

    np.testing.assert_allclose(relative_poses(moved(poses), moved(origin)), relative_poses(poses, origin), atol=1e-12)
