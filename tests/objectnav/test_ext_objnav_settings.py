import math

import gymnasium as gym
import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.objectnav.config import ExtObjNavConfig, category_number
from memenvs.objectnav.env import ExtObjNav
from memenvs.objectnav.robot import LEFT
from memenvs.objectnav.symbolic import encode_symbolic
from tests.objectnav.table_world import APPLE, BOWL, MUG, TableWorld, make_table_env, take_actions


def test_fixed_goal_stays_over_the_trial():
    env = make_table_env(fixed_goal_per_trial=True)
    goals = [env.reset(seed=4)[1]["goal"]] + [env.reset()[1]["goal"] for _ in range(6)]
    assert len(set(goals)) == 1
    trials = {env.reset(options={"new_trial": True})[1]["goal"] for _ in range(20)}
    assert trials == {APPLE, MUG}


def test_compass_turns_with_the_robot():
    drawn = make_table_env().reset(seed=0)[1]["start"][2]
    for frame, heading in (("trial", 0.5 - drawn), ("layout", 0.5)):
        env = make_table_env(compass=True, gps_frame=frame)
        observation, _ = env.reset(seed=0, options={"start": (1.0, 2.0, 0.5)})
        assert env.observation_space["compass"] == gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        assert observation["compass"] == pytest.approx([math.cos(heading), math.sin(heading)])
        turned = heading + 2 * math.pi / 6
        assert take_actions(env, LEFT, LEFT)[0]["compass"] == pytest.approx([math.cos(turned), math.sin(turned)])


def test_gps_from_the_start_of_the_trial():
    env = make_table_env()
    frames = set()
    for trial in range(3):
        observation, info = env.reset(seed=0, options={"trial": trial})
        x, y, heading = frame = info["start"]
        frames.add(tuple(frame))
        assert observation["gps"].tolist() == [0.0, 0.0]
        for _ in range(2):  # later episodes start elsewhere, in the same frame
            observation, info = env.reset()
            dx, dy = info["start"][0] - x, info["start"][1] - y
            cos, sin = math.cos(heading), math.sin(heading)
            ahead, left = cos * dx + sin * dy, cos * dy - sin * dx
            assert observation["gps"] == pytest.approx([ahead, left], abs=1e-5)
            assert abs(ahead) + abs(left) > 0
        alone, _ = env.reset(seed=0, options={"trial": trial, "episode_index": 2})
        assert alone["gps"].tolist() == observation["gps"].tolist()
        moved, _ = env.reset(seed=0, options={"trial": trial, "start": info["start"]})  # moves the robot alone
        assert moved["gps"].tolist() == observation["gps"].tolist()
    assert len(frames) == 3


def test_the_frame_of_gps_changes_nothing_else_but_the_first_start():
    infos = {}
    for frame in ("trial", "layout"):
        env = make_table_env(gps_frame=frame)
        infos[frame] = [env.reset(seed=5)[1], env.reset()[1], env.reset(options={"new_trial": True})[1]]
    for k, (one, other) in enumerate(zip(*infos.values(), strict=True)):
        assert one["goal"] == other["goal"] and one["layout_id"] == other["layout_id"]
        assert (one["start"] == other["start"]).all() == (k == 1)


def test_symbolic_numbers_are_those_of_the_image():
    options = {"start": (4.775, 2.0, 0.0), "goal": APPLE}
    symbolic = make_table_env(obs_mode="symbolic").reset(seed=0, options=options)[0]["symbolic"]
    images = make_table_env(sensors=("depth", "semantic"), image_size=(64, 64)).reset(seed=0, options=options)[0]
    assert set(images) == {"depth", "semantic", "goal", "gps"}
    encoded = np.zeros((1, len(symbolic)), np.float32)
    encode_symbolic(images["semantic"][None], images["depth"][None], np.array([True]), encoded)
    np.testing.assert_array_equal(symbolic, encoded[0])
    assert symbolic[APPLE] > 0 and symbolic[MUG] > 0 and (symbolic[20:] < 1).any()


def test_settings_are_checked():
    for kwargs, message in (
        ({"obs_mode": "words"}, r"unknown obs_mode 'words'; choose from \['rgb', 'symbolic'\]"),
        ({"gps_frame": "x"}, "unknown gps_frame 'x'"),
        ({"world": 5}, r"world must be one of \['procedural', .*\] or a HouseWorld, got 5"),
        ({"world": TableWorld(), "houses": "x"}, "houses must be None with a HouseWorld"),
        ({"sensors": ("rgb", "sound")}, r"sensors must be a list of some of \['rgb', 'depth', 'semantic'\]"),
        ({"sensors": "rgb"}, "sensors must be a list of .*, got 'rgb'"),
        ({"sensors": ("rgb", "rgb")}, "sensors must be a list of .*, each once"),
        ({"rooms": (0, 3)}, "rooms must be a range"),
        ({"rooms": 5}, "rooms must be two integers, fewest and most, got 5"),
        ({"num_objects": (5.0, 6)}, r"num_objects must be two integers, fewest and most, got \(5.0, 6\)"),
        ({"categories": ["018_banana"]}, "unknown category '018_banana'; choose from"),
        ({"categories": [20]}, "unknown category 20"),
        ({"categories": []}, "categories must be None or a list of at least one"),
        ({"categories": "025_mug"}, "categories must be None or a list .*, got '025_mug'"),
        ({"categories": ["013_apple", 10]}, "categories must have each category once"),
        ({"turn_deg": math.nan}, "turn_deg must be"),
        ({"world": TableWorld(), "split": "train"}, "split must be None with a HouseWorld, .*, got 'train'"),
        ({"world": TableWorld(), "rooms": (2, 3)}, r"rooms must be None with a HouseWorld, .*, got \(2, 3\)"),
        ({"obs_mode": "symbolic", "sensors": ["rgb"]}, r"sensors must be None in obs_mode 'symbolic', got \['rgb'\]"),
        ({"obs_mode": "symbolic", "image_size": (8, 8)}, r"image_size must be None in obs_mode 'symbolic', got \(8"),
        ({"image_size": (0, 4)}, "height must be"),
        ({"image_size": (4.0, 4.0)}, "image_size must be two integers"),
    ):
        with pytest.raises(ValueError, match=message):
            ExtObjNavConfig(**kwargs)


def test_categories_by_name_or_number():
    assert ExtObjNavConfig(categories=["025_mug", 10]).categories == (APPLE, MUG)
    assert category_number(np.int64(3)) == 3
    with pytest.raises(ValueError, match="unknown category True"):
        category_number(True)


def test_options_are_checked():
    env = make_table_env()
    for options, message in (
        ({"start": (1.0, 2.0)}, "option 'start' must be three finite numbers"),
        ({"start": (1.0, 2.0, np.nan)}, "option 'start' must be three finite numbers"),
        ({"start": "here"}, "option 'start' must be three finite numbers"),
        ({"start": (7.0, 2.0, 0.0)}, r"largest navigable island of 'toy', got \(7.0, 2.0, 0.0\); the nearest point"),
        ({"goal": "013_pineapple"}, "unknown category '013_pineapple'"),
        ({"goal": BOWL}, r"option 'goal' must be a category of this layout, one of \['013_apple', '025_mug'\], got 17"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(seed=0, options=options)


def test_a_start_of_one_home_does_not_go_on_into_the_next():
    """There an autoreset would find no floor at it, or no such goal."""
    settings = {"obs_mode": "symbolic", "trial_episodes": 1, "max_episode_steps": 2, "autoreset_mode": "SameStep"}
    env = TrialVectorEnv(ExtObjNav, 1, **settings)
    _, info = env.reset(seed=0)
    env.reset(seed=0, options={"goal": info["goal"][0], "start": info["start"][0]})
    homes = {int(env.step(np.array([LEFT]))[-1]["layout_id"][0]) for _ in range(20)}
    assert len(homes) == 11
