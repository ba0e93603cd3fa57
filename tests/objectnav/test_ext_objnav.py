import math
import os

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.objectnav import env as objectnav_env
from memenvs.objectnav.env import ExtObjNav
from memenvs.objectnav.robot import DOWN, FORWARD, LEFT, RIGHT, START_TILT_DEG, STOP, UP, pitch_of, tilt
from tests.objectnav.table_world import APPLE, BOWL, TableWorld, make_table_env, take_actions

DATA = os.environ.get("MEMENVS_DATA")


def test_episode_by_hand():
    env = make_table_env(gps_frame="layout")
    observation, info = env.reset(seed=0, options={"start": (1.0, 2.0, 0.0), "goal": "013_apple"})
    assert observation["rgb"].shape == (24, 32, 3)
    assert observation["goal"].tolist() == np.eye(20)[APPLE].tolist()
    assert observation["gps"].tolist() == [1.0, 2.0]
    # Viewpoints lie at -0.125 + 0.1 k and within sqrt(3.9) m of the apple: the nearest is (4.775, 1.975).
    d_start = math.hypot(3.775, 0.025)
    assert info["geodesic"] == pytest.approx(d_start, rel=0.01)
    assert (info["goal"], info["goal_id"], info["place"], info["scene_id"]) == (APPLE, APPLE, 0, "toy")
    assert info["pose"].tolist() == [1.0, 2.0, 0.0]
    d = first = info["geodesic"]
    for step in range(1, 16):
        observation, reward, terminated, truncated, info = env.step(FORWARD)
        assert observation["gps"] == pytest.approx([1.0 + 0.25 * step, 2.0])
        assert reward == pytest.approx(-0.001 + d - info["geodesic"])
        assert not terminated and not truncated
        d = info["geodesic"]
    assert d == pytest.approx(math.hypot(0.025, 0.025), abs=0.02)  # at (4.75, 2.0)
    assert info["path_length"] == pytest.approx(3.75)
    _, reward, terminated, truncated, info = env.step(STOP)
    assert reward == pytest.approx(-0.001 + 2.0)
    assert terminated and not truncated and info["success"]
    assert info["spl"] == pytest.approx(first / max(first, 3.75))
    assert info["spl_fixed"] == info["spl"]
    assert info["soft_spl"] == pytest.approx(1.0, abs=0.03)
    assert (info["num_steps"], info["collisions"], info["path_failures"]) == (16, 0, 0)


def test_success_needs_pixels_within_two_metres_of_the_robot_and_no_heading():
    """From x = 5 it is 1.7 m to the apple, which is in the image at 30 degrees, and not at 90."""
    env = make_table_env()
    for x, heading, success in ((5.0, 30, True), (5.0, 90, False), (4.71, 0, True), (4.69, 0, False), (1.0, 0, False)):
        env.reset(seed=0, options={"start": (x, 2.0, math.radians(heading)), "goal": APPLE})
        _, reward, terminated, _, info = env.step(STOP)
        assert info["success"] is success, (x, heading)
        assert terminated and (success or (reward, info["spl"]) == (pytest.approx(-0.001), 0.0))


def test_success_needs_distance_and_pixels_of_the_same_object():
    # One bowl 1.5 m behind the robot, one 2.5 m before it: near and seen, but not the same.
    world = TableWorld(tables=((1.0, 2.0), (6.0, 2.0)), objects=((BOWL, 1.45, 2.0), (BOWL, 5.55, 2.0)))
    env = make_table_env(world)
    env.reset(seed=0, options={"start": (3.0, 2.0, 0.0), "goal": BOWL})
    behind, before = env.task._sim.count_pixels(np.array([True]), np.array([[1, 2]]))[0]
    assert behind == 0 and before >= 10
    assert not env.step(STOP)[4]["success"]
    env.reset(options={"start": (3.75, 2.0, 0.0), "goal": BOWL})
    assert env.step(STOP)[4]["success"]


def test_start_on_a_viewpoint_has_no_spl_but_a_fixed_one_and_detours_lower_both():
    env = make_table_env()
    _, info = env.reset(seed=0, options={"start": (5.075, 2.075, 0.0), "goal": APPLE})
    assert info["geodesic"] == pytest.approx(0.0, abs=1e-6)
    info = env.step(STOP)[4]
    assert info["success"]
    assert info["spl"] == pytest.approx(0.0, abs=1e-3)
    assert info["spl_fixed"] == 1.0
    _, info = env.reset(options={"start": (4.0, 2.0, math.pi), "goal": APPLE})
    shortest = info["geodesic"]  # the path leads 0.25 m away from the apple and 1 m towards it
    info = take_actions(env, FORWARD, *[LEFT] * 6, *[FORWARD] * 4, STOP)[4]
    assert info["success"] and info["spl"] == info["spl_fixed"] == pytest.approx(shortest / 1.25, abs=1e-6)


def test_turns_and_tilts_by_hand():
    env = make_table_env()
    env.reset(seed=0, options={"start": (1.0, 2.0, 0.0)})
    assert env.step(LEFT)[4]["pose"][2] == pytest.approx(math.radians(30))
    assert take_actions(env, RIGHT, RIGHT)[4]["pose"][2] == pytest.approx(math.radians(330))
    env = make_table_env(turn_deg=14.3239)
    env.reset(seed=0, options={"start": (1.0, 2.0, 0.0)})
    assert env.step(LEFT)[4]["pose"][2] == pytest.approx(0.25, abs=1e-6)


def test_image_follows_the_tilt():
    env = make_table_env()
    first, _ = env.reset(seed=0, options={"start": (4.0, 2.0, 0.0)})
    down = env.step(DOWN)[0]
    assert not np.array_equal(first["rgb"], down["rgb"])
    assert np.array_equal(env.step(UP)[0]["rgb"], first["rgb"])


def test_walls_deflect_and_are_counted():
    env = make_table_env()
    env.reset(seed=0, options={"start": (0.5, 2.0, math.radians(135))})
    info = take_actions(env, *[FORWARD] * 4)[4]
    assert info["collisions"] == 3
    assert info["pose"][0] == pytest.approx(0.3, abs=0.03)
    assert info["pose"][1] == pytest.approx(2.0 + 4 * 0.25 * math.sqrt(0.5), abs=1e-3)


def test_the_camera_has_the_published_pitches():
    angles = np.array([20, START_TILT_DEG, 40, 50, 66.87, 70, 80, 96.87, 100])
    expected = [-8.1, -21.8, -23.7, -29.3, -38.2, -39.9, -45.1, -53.7, -55.3]
    assert np.degrees(pitch_of(angles)).round(1).tolist() == expected
    state, tilts = np.array([START_TILT_DEG]), []
    for steps in (1, 1, -1, -1, -1, -1, 1):
        state = tilt(state, np.array([steps]))
        tilts.append(state[0])
    assert tilts == [20, 20, 50, 80, 100, 100, 70]


def play_oracle(env: TrialVectorEnv, episodes: int) -> np.ndarray:
    """Success, spl and steps of the first episodes of all environments, float64 (E, 3)."""
    counts, rows = np.zeros(env.num_envs, int), []
    while (counts < episodes).any():
        _, _, terminated, truncated, info = env.step(env.oracle_actions())
        for i in np.flatnonzero((terminated | truncated) & (counts < episodes)):
            counts[i] += 1
            rows.append([info[key][i] for key in ("success", "spl", "num_steps")])
    return np.array(rows, float)


@pytest.mark.slow
def test_the_oracle_succeeds_with_turns_of_another_angle():
    env = TrialVectorEnv(ExtObjNav, 4, obs_mode="symbolic", turn_deg=14.3239)
    env.reset(seed=0)
    success, spl, _ = play_oracle(env, 5).mean(0)
    assert success >= 0.95
    assert spl >= 0.8


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="MEMENVS_DATA is not set")
def test_the_oracle_succeeds_in_procthor_homes():
    env = TrialVectorEnv(ExtObjNav, 7, obs_mode="symbolic", world="procthor", split="all")
    env.reset(seed=0)
    assert play_oracle(env, 3)[:, 0].mean() >= 0.95


def test_oracle_stops_where_an_object_is_hard_to_see():
    env = make_table_env(TableWorld(objects=((9, 7.0, 2.0),)))  # a strawberry in the middle of the table
    env.reset(seed=0, options={"start": (1.0, 3.5, 2.0)})
    for _ in range(100):
        _, _, terminated, _, info = env.step(env.oracle_action())
        if terminated:
            break
    assert info["success"]


def test_render_shows_view_and_path():
    env = make_table_env(render_mode="rgb_array")
    env.reset(seed=0, options={"start": (1.0, 2.0, 0.0), "goal": APPLE})
    first = env.render()
    env.step(FORWARD)
    second = env.render()
    assert first.dtype == np.uint8
    assert not np.array_equal(first[:, :384], second[:, :384])
    assert not np.array_equal(first[:, 384:], second[:, 384:])
    plan = env.task.draw_map(0, np.array([[1.0, 2.0, 0.0], [1.25, 2.0, 0.0]]))
    assert plan.shape == (40 * 4.6, 40 * 8.6, 3)


def test_render_shows_the_path_of_this_episode_only(monkeypatch):
    paths = []
    monkeypatch.setattr(objectnav_env, "draw_view_and_map", lambda view, house, path, goals: paths.append(path.copy()))
    settings = {"image_size": (24, 32), "max_episode_steps": 4, "render_mode": "rgb_array"}
    env = TrialVectorEnv(ExtObjNav, 2, world=TableWorld(), **settings)
    _, info = env.reset(seed=0)
    poses = [[pose] for pose in info["pose"]]
    for step in range(23):
        _, _, _, _, info = env.step(np.array([STOP if step % 4 == 2 else FORWARD, LEFT]))
        for own, pose, steps in zip(poses, info["pose"], info["num_steps"], strict=True):
            own[:] = [*own, pose] if steps else [pose]
        paths.clear()
        env.render()
        for path, own in zip(paths, poses, strict=True):
            np.testing.assert_allclose(path, own, atol=1e-5)
    for _ in range(9):  # robot 0 waits for its reset, longer than an episode lasts: no old pose shows up again
        env.task.step(np.array([FORWARD, LEFT]), np.array([False, True]))
    paths.clear()
    env.task.render(0)
    np.testing.assert_allclose(paths[0], [poses[0][-1]] * 5, atol=1e-5)
