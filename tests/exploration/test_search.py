"""Detection of classes in Search, which count as present, and the oracle that finds them."""

import math
import os

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.exploration.drive import FORWARD, LEFT, RIGHT
from memenvs.exploration.nyu40 import NYU40
from memenvs.exploration.search import Search
from memenvs.exploration.visibility import detect_labels
from tests.exploration.toy_world import ToyHomes, ToyWorld

SOFA, TABLE = NYU40.index("sofa"), NYU40.index("table")


def is_detected(pixels: int, depth: float, far: int = 0) -> bool:
    """Detect a sofa with `pixels` of 3072 pixels at a depth and `far` at 4 m, before a table."""
    semantic, depths = np.full((2, 48 * 64), TABLE, np.uint8), np.full((2, 48 * 64), 1.0, np.float32)
    order = np.random.default_rng(pixels).permutation(48 * 64)
    semantic[1, order[: pixels + far]] = SOFA
    depths[1, order[:pixels]], depths[1, order[pixels : pixels + far]] = depth, 4.0
    detected = np.zeros((2, 2), bool)
    labels = np.array([SOFA, NYU40.index("bed")], np.uint8)
    detect_labels(semantic.reshape(2, 48, 64), depths.reshape(2, 48, 64, 1), np.array([1]), labels, detected)
    assert not detected[0].any() and not detected[1, 1]
    return bool(detected[1, 0])


def test_detection_takes_123_pixels_nearer_than_two_metres():
    assert is_detected(123, 1.9) and not is_detected(122, 1.9)
    assert is_detected(500, float(np.nextafter(np.float32(2), np.float32(0)))) and not is_detected(500, 2.0)
    assert is_detected(123, 1.0, far=500) and not is_detected(122, 1.0, far=1000)  # far ones do not count


#: Seen from (3, 2) at heading 0: ahead a sofa with its front, 1.8 x 0.8 m, at x = 5.5; behind a table with its front,
#: 1.6 x 0.7 m, at x = 1.1.
FURNITURE = (("sofa", (6.0, 2.0, 0.4), (0.5, 0.9, 0.4)), ("coffee_table", (1.0, 2.0, 0.35), (0.1, 0.8, 0.35)))


def make_env(**kwargs) -> TrialEnv:
    defaults = {"world": ToyWorld(boxes=FURNITURE), "targets": ["table", "sofa"], "wheel_noise": 0.0}
    return TrialEnv(Search, **{**defaults, **kwargs})


@pytest.mark.parametrize("observed", [{}, {"obs_mode": "scan"}, {"image_size": (24, 32)}, {"modalities": ["pose"]}])
def test_episode_by_hand(observed):
    """The camera, 0.164 m ahead, is 2.09 m from the sofa after one step and 1.84 m after two."""
    env = make_env(**observed)
    _, info = env.reset(seed=0, options={"start": (3.0, 2.0, 0.0)})
    assert info["present"].tolist() == [True, True]
    assert (info["found"].tolist(), info["classes"], info["ratio"], info["success"]) == ([False, False], 0, 0.0, False)
    _, reward, *_, info = env.step(FORWARD)
    assert (reward, info["classes"]) == (0.0, 0)
    _, reward, *_, info = env.step(FORWARD)
    assert (reward, info["found"].tolist(), info["ratio"]) == (101.0, [False, True], 0.5)  # a new cell too
    assert info["reward_terms"].tolist() == [1.0, 1.0, 1.0, 0.0]
    rewards = [env.step(LEFT)[1] for _ in range(4)]  # the sofa is detected again; then the table, from 2.24 m
    assert rewards == [0.0] * 4
    _, reward, terminated, *_, info = env.step(FORWARD)  # from 1.99 m
    assert (info["classes"], info["ratio"], info["success"], terminated) == (2, 1.0, True, False)
    assert reward == 100.0
    _, reward, *_, info = env.step(RIGHT)
    assert (reward, info["classes"]) == (0.0, 2)


def test_target_in_view_at_the_start_is_found_by_the_first_step_if_it_counts_as_present():
    env = make_env()
    _, info = env.reset(seed=0, options={"start": (3.9, 2.0, math.pi / 4)})
    assert info["classes"] == 0
    _, reward, *_, info = env.step(RIGHT)
    assert (reward, info["found"].tolist()) == (100.0, [False, True])
    env.reset(seed=0, options={"start": (3.9, 2.0, -math.pi / 4)})
    assert env.step(LEFT)[1] == 100.0
    env.reset(seed=0, options={"start": (3.9, 2.0, math.pi / 4)})
    env.task._present[:] = [[True, False]]  # as if the sofa could be seen from one cell alone
    _, reward, *_, info = env.step(RIGHT)
    assert (reward, info["found"].tolist()) == (0.0, [False, False])


def test_detection_uses_true_depth():
    """It separates 2.01 m from 1.99 m whatever the noise of the sensor."""
    for x, expected in ((5.5 - 0.164 - 2.01, 0), (5.5 - 0.164 - 1.99, 1)):
        for seed in range(5):
            env = make_env()
            env.reset(seed=seed, options={"start": (x, 2.0, math.pi / 4)})
            assert env.step(RIGHT)[4]["classes"] == expected


def test_bad_settings():
    for targets, message in (
        (["sofa", "refridgerator"], "unknown class 'refridgerator' in targets.*mean 'refrigerator'"),
        (["none"], r"unknown class 'none' in targets; choose from \['wall', 'floor'"),
        ([], "targets must be at least one class"),
        (["sofa", "sofa"], "targets must be at least one class, each once"),
        ("sofa", r"targets must be a list of names, got .sofa.; for this one alone: \[.sofa.\]"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            make_env(targets=targets)


def test_ratio_and_success_where_no_class_is_present():
    env = TrialEnv(Search, world=ToyWorld(), obs_mode="scan", wheel_noise=0.0)
    _, info = env.reset(seed=0)
    assert (info["classes"], info["ratio"], info["success"]) == (0, 1.0, True)
    assert env.step(FORWARD)[4]["ratio"] == 1.0
    assert env.oracle_action() in (FORWARD, LEFT, RIGHT)  # it visits cells


def test_targets_may_be_in_different_homes():
    """Each in some home, not all in one."""
    homes = ToyHomes(*(ToyWorld(boxes=((name, (6.0, 2.0, 0.4), (0.5, 0.9, 0.4)),)) for name in ("sofa", "bed")))
    env = make_env(world=homes, targets=["bed", "sofa"])
    present = [env.reset(seed=0, options={"layout": k})[1]["present"].tolist() for k in range(2)]
    assert present == [[False, True], [True, False]]
    with pytest.raises(ValueError, match=r"none of the 2 homes has \['table'\] where .* got \['bed', 'table'\]"):
        make_env(world=homes, targets=["bed", "table"])


DATA = os.environ.get("MEMENVS_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="MEMENVS_DATA is not set")
EPISODES = 4  # in each home


def make_envs(**kwargs) -> TrialVectorEnv:
    return TrialVectorEnv(Search, EPISODES, modalities=["pose"], autoreset_mode="Disabled", **kwargs)


def play_oracle(env: TrialVectorEnv, layout: int) -> np.ndarray:
    """Play until all that is present is found; return the ratios, float64 (EPISODES,)."""
    _, info = env.reset(seed=1000 * layout, options={"layout": layout})
    ratio = info["ratio"].copy()
    for _ in range(env.max_episode_steps):
        if (ratio == 1.0).all():
            break
        _, _, terminated, _, info = env.step(env.oracle_actions())
        assert not terminated.any()
        ratio = np.maximum(ratio, info["ratio"])
    return ratio


def test_what_is_behind_a_door_that_is_too_narrow_is_not_present():
    """A wall at x = 8 has a gap of 0.4 m; the bed is 3 m behind it. The table is on the robot's side."""
    walls = (("wall", (8.0, 0.9, 1.2), (0.05, 0.9, 1.2)), ("wall", (8.0, 3.1, 1.2), (0.05, 0.9, 1.2)))
    furniture = (("coffee_table", (1.0, 2.0, 0.35), (0.1, 0.8, 0.35)), ("bed", (11.5, 2.0, 0.3), (0.5, 0.9, 0.3)))
    for boxes, expected in (((*walls, *furniture), [True, False]), (furniture, [True, True])):
        world = ToyWorld((13.0, 4.0), boxes)
        env = TrialEnv(Search, world=world, obs_mode="scan", wheel_noise=0.0)
        _, info = env.reset(seed=0, options={"start": (3.0, 2.0, np.pi)})
        table, _, bed = info["present"][3:]  # of television, refrigerator, bookshelf, table, sofa and bed
        assert [table, bed] == expected and info["present"].sum() == sum(expected)
        while not info["found"].any():
            info = env.step(env.oracle_action())[4]
        assert (info["ratio"], info["success"]) == ((0.5, False) if expected[1] else (1.0, True))
    with pytest.raises(ValueError, match=r"none of the 1 homes has \['bed'\] where the robot can see it"):
        TrialEnv(Search, world=ToyWorld((13.0, 4.0), (*walls, *furniture)), targets=["bed", "table"])


@pytest.mark.parametrize(
    ("settings", "layouts"),
    [
        # a table that is detected only when the robot does not face it, and one that is from three cells of 10 cm
        ({"world": "procedural"}, (3, 25)),
        ({"split": "test"}, (30,)),  # home 1030
        pytest.param({"houses": f"{DATA}/procthor/four_room.jsonl.gz"}, (13,), marks=needs_data),
        pytest.param({"houses": f"{DATA}/procthor/one_room_val.jsonl.gz"}, (92, 97), marks=needs_data),
    ],
)
@pytest.mark.slow
def test_the_oracle_finds_what_is_hard_to_see(settings, layouts):
    env = make_envs(**({"world": "procthor", "split": "all"} if "houses" in settings else {}), **settings)
    for layout in layouts:
        assert play_oracle(env, layout).tolist() == [1.0] * EPISODES, layout
    env.close()


@pytest.mark.slow
def test_the_oracle_of_an_episode_does_not_depend_on_those_before():
    """The same seed in other homes, which have other maps; nothing is found yet."""
    env = TrialEnv(Search, modalities=["pose"])
    for layout in range(3):
        alone = TrialEnv(Search, modalities=["pose"])
        for player in (env, alone):
            player.reset(seed=0, options={"layout": layout})
        for _ in range(3):
            action = env.oracle_action()
            assert action == alone.oracle_action()
            env.step(action)
            alone.step(action)
