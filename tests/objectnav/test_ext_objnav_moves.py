"""Objects of ExtObjNav that move to other receptacles between the episodes of a trial."""

import itertools
from typing import Any

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.houses.simulator import PixelCounter, head_camera_poses
from memenvs.objectnav.env import ExtObjNav
from memenvs.objectnav.layout import MIN_PIXELS, Layout, _tilt_states
from memenvs.objectnav.robot import pitch_of
from tests.objectnav.table_world import TableWorld, make_table_env

SETTINGS: dict[str, Any] = {"rooms": (2, 3), "num_objects": (4, 6), "obs_mode": "symbolic", "max_episode_steps": 4}


def layouts(env: TrialEnv, seed: int, episodes: int) -> list[Layout]:
    """Layouts of the first episodes of trial 0."""
    env.reset(seed=seed)
    played = [env.task.layout(0)]
    for _ in range(episodes - 1):
        moved = env.reset()[1]["moved"]
        played.append(env.task.layout(0))
        assert moved == (played[-1] is not played[-2])
    return played


def receptacles(layout: Layout) -> list[int]:
    return [item.receptacle for item in layout.objects]


@pytest.fixture(scope="module")
def moving() -> list[Layout]:
    """Eight episodes in which every object moves."""
    return layouts(TrialEnv(ExtObjNav, trial_episodes=20, moves=1.0, **SETTINGS), 2, 8)


def test_every_object_moves_with_probability_1(moving: list[Layout]) -> None:
    moved = np.diff([receptacles(layout) for layout in moving], axis=0) != 0
    assert moved.mean() > 0.9  # one stays only if no place is found for it
    for layout in moving:
        assert layout.category.tolist() == moving[0].category.tolist()
        assert layout.house.name == moving[0].house.name and layout.navmap is moving[0].navmap


def test_moved_objects_stand_on_their_receptacles_apart_and_can_be_seen(moving: list[Layout]) -> None:
    """From the truth: inside of the surface, no two objects in the same place, enough pixels from the view cell."""
    counter = PixelCounter(TrialEnv(ExtObjNav, **SETTINGS).task._homes.world.make_renderer)
    for layout in moving[1:]:
        for k, item in enumerate(layout.objects):
            surface = layout.home.house.receptacles[item.receptacle]
            cos, sin = np.cos(surface.yaw), np.sin(surface.yaw)
            x, y = np.subtract(item.position[:2], surface.centre[:2])
            assert abs(cos * x + sin * y) < surface.half[0] and abs(cos * y - sin * x) < surface.half[1]
            assert item.position[2] > surface.centre[2]
            for other in layout.objects[:k]:
                apart = np.hypot(*np.subtract(item.position, other.position)[:2])
                assert apart > 0.02 or item.receptacle != other.receptacle
        assert {*layout.house.shapes.instance.tolist()} >= {*layout.instance.tolist()}
        assert len(layout.house.objects) == len(layout.objects)
        cells = layout.view_cells
        points = layout.navmap.points(cells)
        ahead = layout.position[:, :2] - points
        best = np.zeros(len(cells), int)
        headings = np.arctan2(ahead[:, 1], ahead[:, 0])
        for pitch in pitch_of(_tilt_states()):
            poses = head_camera_poses(points, headings, np.full(len(cells), pitch))
            best = np.maximum(best, counter.count(layout.scene, poses, layout.instance))
        assert (best >= MIN_PIXELS).all()


def test_the_share_of_moves_is_the_setting() -> None:
    env = TrialEnv(ExtObjNav, trial_episodes=30, moves=0.3, **SETTINGS)
    changes: list[bool] = []
    for seed in range(3):
        played = layouts(env, seed, 12)
        changes += (np.diff([receptacles(layout) for layout in played], axis=0) != 0).ravel().tolist()
        for one, other in itertools.pairwise(played):
            assert (one is other) == (one.position.tolist() == other.position.tolist())
    assert abs(np.mean(changes) - 0.3) < 3 * (0.21 / len(changes)) ** 0.5 + 0.02


def test_the_first_episode_is_that_without_moves() -> None:
    moving, still = (TrialEnv(ExtObjNav, moves=moves, **SETTINGS).reset(seed=5)[0] for moves in (0.5, 0.0))
    for key, value in moving.items():
        np.testing.assert_array_equal(value, still[key])


def test_the_oracle_knows_where_objects_have_gone() -> None:
    env = TrialVectorEnv(ExtObjNav, 4, moves=1.0, trial_episodes=6, **{**SETTINGS, "max_episode_steps": 150})
    env.reset(seed=0)
    successes: list[bool] = []
    while len(successes) <= 20:  # episodes have a limit
        _, _, terminated, truncated, info = env.step(env.oracle_actions())
        successes += info["success"][terminated | truncated].tolist()
    assert np.mean(successes) > 0.85


def test_moves_need_two_receptacles() -> None:
    message = "moves must be 0 in a home with fewer than two receptacles, got 0.3 in 'toy', which has 0"
    with pytest.raises(ValueError, match=message):
        make_table_env(TableWorld(), moves=0.3)
    make_table_env(TableWorld()).reset(seed=0)
