"""When Search finds a class, and in which homes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.exploration.config import TARGETS
from memenvs.exploration.drive import FORWARD, LEFT, RIGHT
from memenvs.exploration.nyu40 import LABELS, NYU40
from memenvs.exploration.search import Search
from memenvs.exploration.task_home import TaskHome
from memenvs.exploration.visibility import SEARCH_RULES, VisibilityScanner, detect_labels
from memenvs.houses.worlds import make_house_world
from tests.exploration.toys import ToyWorld

SOFA, TABLE = NYU40.index("sofa"), NYU40.index("table")


def found_with(pixels: int, depth: float, rule: str = "near_pixels", far: int = 0) -> bool:
    """Whether a sofa is found of which so many of 3072 pixels are at a depth, and `far` more at 4 m; the rest is a table at 1 m."""
    semantic, depths = np.full((2, 48 * 64), TABLE, np.uint8), np.full((2, 48 * 64), 1.0, np.float32)
    order = np.random.default_rng(pixels).permutation(48 * 64)
    semantic[1, order[: pixels + far]] = SOFA
    depths[1, order[:pixels]], depths[1, order[pixels : pixels + far]] = depth, 4.0
    found = np.zeros((2, 2), bool)
    labels = np.array([SOFA, NYU40.index("bed")], np.uint8)
    detect_labels(semantic.reshape(2, 48, 64), depths.reshape(2, 48, 64, 1), np.array([1]), labels, rule, found)
    assert not found[0].any() and not found[1, 1]
    return bool(found[1, 0])


def test_it_takes_123_pixels_and_not_122():
    for rule in SEARCH_RULES:
        assert found_with(123, 1.9, rule)
        assert not found_with(122, 1.9, rule)


def test_it_takes_less_than_two_metres():
    for rule in SEARCH_RULES:
        assert found_with(500, float(np.nextafter(np.float32(2), np.float32(0))), rule)
        assert not found_with(500, 2.0, rule)


@pytest.mark.parametrize(
    ("near", "far", "expected"),
    [
        (122, 1000, (False, True, False)),  # mean depth 3.7 m
        (1, 122, (False, True, False)),
        (0, 500, (False, False, False)),
        (123, 500, (True, True, False)),  # mean depth 3.4 m
        (600, 100, (True, True, True)),  # mean depth 1.4 m
        (100, 30, (False, True, True)),  # mean depth 1.7 m
    ],
)
def test_the_three_readings(near, far, expected):
    assert tuple(found_with(near, 1.0, rule, far) for rule in SEARCH_RULES) == expected


#: Ahead of (3, 2) at heading 0 a sofa, its front, 1.8 x 0.8 m, at x = 5.5; behind a table, its front, 1.6 x 0.7 m, at x = 1.1.
WORLD = ToyWorld(
    things=(
        ("sofa", (6.0, 2.0, 0.4), (0.5, 0.9, 0.4)),
        ("coffee_table", (1.0, 2.0, 0.35), (0.1, 0.8, 0.35)),
    )
)


def make(**kwargs) -> TrialEnv:
    defaults = {"world": WORLD, "targets": ["table", "sofa"], "wheel_noise": 0.0}
    return TrialEnv(Search, **{**defaults, **kwargs})


def test_a_scan_shows_what_is_looked_for():
    """Where an image shows a class on 20 pixels, its row 32 mostly does; the level row never shows a table or a sofa."""
    homes = 23
    env = TrialVectorEnv(Search, homes, world="suncg_style", split="test", modalities=["semantic"], copy=False)
    image, _ = env.reset(seed=0, options=[{"layout": 2 * home} for home in range(homes)])
    rng, frames = np.random.default_rng(0), []
    for _ in range(50):
        image, *_ = env.step(rng.integers(3, size=homes))
        frames.append(image["semantic"].copy())
    labels = np.concatenate(frames)
    for name in TARGETS:
        shown = labels == NYU40.index(name)
        in_image = shown.sum((1, 2)) > 20
        assert shown[in_image, 32].any(1).mean() > 0.35, name
        if name in ("table", "sofa"):
            assert not shown[:, 24].any()
    env.close()


@pytest.mark.parametrize("sees", [{}, {"obs_mode": "scan"}, {"image_size": (24, 32)}, {"modalities": ["pose"]}])
def test_an_episode_by_hand(sees):
    """Whatever is observed: the camera, 0.164 m ahead, is 1.84 m from the sofa after two steps; before, it is 2.09 m."""
    env = make(**sees)
    _, info = env.reset(seed=0, options={"start": (3.0, 2.0, 0.0)})
    assert info["present"].tolist() == [True, True]
    assert (info["found"].tolist(), info["classes"], info["ratio"], info["success"]) == ([False, False], 0, 0.0, False)
    _, reward, *_, info = env.step(FORWARD)
    assert (reward, info["classes"]) == (0.0, 0)
    _, reward, *_, info = env.step(FORWARD)
    assert (reward, info["found"].tolist(), info["ratio"]) == (101.0, [False, True], 0.5)  # a new cell too
    assert info["reward_terms"].tolist() == [1.0, 1.0, 1.0, 0.0]
    rewards = [env.step(LEFT)[1] for _ in range(4)]  # the sofa is seen again; then the table, from 2.24 m
    assert rewards == [0.0] * 4
    _, reward, terminated, *_, info = env.step(FORWARD)  # from 1.99 m
    assert (info["classes"], info["ratio"], info["success"], terminated) == (2, 1.0, True, False)
    assert reward == 100.0
    _, reward, *_, info = env.step(RIGHT)
    assert (reward, info["classes"]) == (0.0, 2)


def test_a_target_in_view_at_the_start_is_found_by_the_first_step():
    env = make()
    _, info = env.reset(seed=0, options={"start": (3.9, 2.0, math.pi / 4)})
    assert info["classes"] == 0
    _, reward, *_, info = env.step(RIGHT)
    assert (reward, info["found"].tolist()) == (100.0, [False, True])
    env.reset(seed=0, options={"start": (3.9, 2.0, -math.pi / 4)})
    assert env.step(LEFT)[1] == 100.0


def test_it_is_looked_for_on_true_depth():
    """2.01 m and 1.99 m are told apart whatever the noise of the sensor."""
    for x, expected in ((5.5 - 0.164 - 2.01, 0), (5.5 - 0.164 - 1.99, 1)):
        for seed in range(5):
            env = make()
            env.reset(seed=seed, options={"start": (x, 2.0, math.pi / 4)})
            assert env.step(RIGHT)[4]["classes"] == expected


def test_observed_images_do_not_change_what_is_found():
    """The same seeds: sets of found classes are equal with full images, small ones, scans and none."""
    results = []
    for kwargs in ({}, {"image_size": (24, 32), "modalities": ["rgb"]}, {"obs_mode": "scan"}, {"modalities": ["pose"]}):
        env = TrialVectorEnv(Search, 6, world="procedural", max_episode_steps=80, copy=False, **kwargs)
        env.reset(seed=3)
        rng = np.random.default_rng(1)
        results.append([env.step(rng.integers(3, size=6))[4]["found"].copy() for _ in range(80)])
        env.close()
    assert np.any(results[0][-2])
    for other in results[1:]:
        assert all((left == right).all() for left, right in zip(results[0], other, strict=True))


def test_homes_say_which_classes_they_have():
    home = make_house_world("suncg_style", robot_radius=0.28).home(5)
    site = TaskHome.of(5, home)
    expected = {int(LABELS[value]) for value in home.house.shapes.semantic}
    assert set(np.flatnonzero(site.has_label)) == expected
    env = TrialEnv(Search, modalities=["pose"])
    _, info = env.reset(seed=0, options={"layout": 5})
    names = ("television", "refrigerator", "bookshelf", "table", "sofa", "bed")
    assert info["present"].tolist() == [NYU40.index(name) in expected for name in names]


def test_stands_are_where_things_are_found():
    home = make_house_world("suncg_style", robot_radius=0.28).home(2)
    site, scout = TaskHome.of(2, home), VisibilityScanner("near_pixels")
    label = next(NYU40.index(name) for name in ("table", "sofa") if site.has_label[NYU40.index(name)])
    views = scout.view_poses(site, label)
    assert len(views.cells) > 5
    world = make_house_world("suncg_style", robot_radius=0.28)
    env = TrialEnv(Search, world=world, wheel_noise=0.0, modalities=["pose"], targets=[NYU40[label]])
    for k in range(0, len(views.cells), max(1, len(views.cells) // 6)):
        (x, y), thing = site.navmap.points(views.cells[k : k + 1])[0], views.targets[k]
        heading = math.atan2(thing[1] - y, thing[0] - x)
        env.reset(seed=0, options={"layout": 2, "start": (x, y, heading + math.pi / 4)})
        assert env.step(RIGHT)[4]["found"].tolist() == [True]


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        (
            {"targets": ["sofa", "refridgerator"]},
            ValueError,
            "unknown class 'refridgerator' in targets.*Did you mean 'refrigerator'",
        ),
        ({"targets": ["none"]}, ValueError, "unknown class 'none' in targets"),
        ({"targets": []}, ValueError, "targets must be at least one class"),
        ({"targets": ["sofa", "sofa"]}, ValueError, "targets must be at least one class, each once"),
        (
            {"targets": "sofa"},
            TypeError,
            r"targets must be a list of names, got .sofa.; for this one alone: \[.sofa.\]",
        ),
        ({"targets": ["sofa", "bathtub"]}, ValueError, r"none of the 1 homes has \['bathtub'\]"),
        ({"search_rule": "near"}, ValueError, "unknown search_rule 'near'; choose from"),
    ],
)
def test_bad_settings(kwargs, error, message):
    with pytest.raises(error, match=message):
        make(**kwargs)
