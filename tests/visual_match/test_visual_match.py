"""Visual Match: by hand, against the package Minigrid, and without memory."""

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.visual_match import rooms
from memenvs.visual_match.env import VisualMatch
from memenvs.visual_match.rooms import FORWARD, LEFT, RIGHT, SYMBOLS, VIEW
from memenvs.visual_match.scripted_balls import approach, find_ball

EMPTY, WALL, _, _, BLUE, YELLOW = SYMBOLS.tolist()
FIXED = {"random_order": False}


def test_the_room_and_the_field_by_hand():
    env = TrialEnv(VisualMatch, phases=(3, 2, 7))
    observation, info = env.reset(seed=0, options={"goal": "blue"})
    view = observation["image"].tolist()  # from (1, 4) to the right: column by column from row 1 to row 7
    assert [column[0] for column in view] == view[6] == [WALL] * 7  # the right wall ahead, the lower wall at the right
    assert view[3][3] == BLUE and view[3][6] == EMPTY  # three cells ahead; its own cell
    assert sum(cell == EMPTY for column in view for cell in column) == 6 * 6 - 1
    assert (info["goal"], info["place"], info["phase_id"], info["choice_id"]) == (1, 0, 0, -1)
    assert info["pose"].tolist() == [1, 11 + 3, 0]
    for turn, heading in ((LEFT, np.pi / 2), (RIGHT, -np.pi / 2)):
        twin = TrialEnv(VisualMatch)
        twin.reset(seed=0)
        np.testing.assert_allclose(np.exp(1j * twin.step(turn)[4]["pose"][2]), np.exp(1j * heading), atol=1e-6)
    for x in (2, 3):
        assert env.step(FORWARD)[4]["pose"].tolist() == [x, 14, 0]
    observation, reward, terminated, _, info = env.step(FORWARD)  # the cue blocks; the third step ends the phase
    assert (info["place"], info["phase_id"], reward, terminated) == (1, 1, 0.0, False)
    column, row, heading = env.task._field_pose[0].tolist()
    np.testing.assert_allclose(info["pose"], [9 + column, 29 - row, [0, 1.5, 1, 0.5][heading] * np.pi], rtol=1e-6)
    assert {*map(tuple, observation["image"].reshape(-1, 3).tolist())} <= {*map(tuple, (EMPTY, WALL, YELLOW))}


def test_phases_places_and_rewards_by_hand():
    env = TrialEnv(VisualMatch, phases=(2, 1, 9), wrong_reward=0.1, **FIXED)
    for goal, moves, reward in (
        ("green", [LEFT, FORWARD, RIGHT, FORWARD, FORWARD, FORWARD], 1.0),  # up a row, then three to the right
        ("blue", [FORWARD, FORWARD, FORWARD], 1.0),
        ("green", [FORWARD, FORWARD, FORWARD], 0.1),  # blue
        ("blue", [RIGHT, FORWARD, LEFT, FORWARD, FORWARD, FORWARD], 0.1),  # red
    ):
        _, info = env.reset(seed=1, options={"goal": goal})
        seen = [(info["phase_id"], info["place"])]
        for action in [LEFT, LEFT, LEFT, *moves]:
            observation, last, terminated, truncated, info = env.step(action)
            seen.append((info["phase_id"], info["place"]))
        assert seen[:4] == [(0, 0), (0, 0), (1, 1), (2, 0)] and set(seen[4:]) == {(2, 0)}
        assert (last, terminated, truncated) == (reward, True, False)
        assert info["success"] == (reward == 1.0) and info["return"] == reward
        other = {"green": "blue", "blue": "red"}[goal]
        assert ["green", "blue", "red"][info["choice_id"]] == (goal if reward == 1.0 else other)
        assert observation["image"][3, 6].tolist() == EMPTY


@pytest.mark.slow
@pytest.mark.skipif(find_spec("minigrid") is None, reason="needs minigrid: pip install 'memenvs[minigrid]'")
def test_same_bits_as_in_minigrid():
    """Observations are also compared with what Minigrid's own environments return."""
    settings = {"trial_episodes": 1, "autoreset_mode": "SameStep", "phases": (6, 30, 14), "wrong_reward": 0.1}
    ours, theirs = (TrialVectorEnv(VisualMatch, 8, world=world, **settings) for world in ("builtin", "minigrid"))
    rng = np.random.default_rng(0)
    for env in (ours, theirs):
        env.reset(seed=5)
    counts = {"ends": 0, "fruits": 0.0, "blocked": 0}
    pose = ours.task.info()["pose"].copy()
    for _ in range(300):
        actions = np.where(rng.random(8) < 0.5, ours.oracle_actions(), rng.choice(3, 8, p=[0.2, 0.2, 0.6]))
        left, right = ours.step(actions), theirs.step(actions)
        for mine, other in zip(left[:4], right[:4], strict=True):
            mine, other = (part["image"] if isinstance(part, dict) else part for part in (mine, other))
            np.testing.assert_array_equal(mine, other)
        raw = [env.gen_obs()["image"] for env in theirs.task._rooms._envs]
        np.testing.assert_array_equal(left[0]["image"], raw)
        for key in ours.task.info():
            np.testing.assert_array_equal(left[4][key], right[4][key])
        counts["ends"] += (left[2] | left[3]).sum()
        counts["fruits"] += (left[1] == 0.01).sum()
        counts["blocked"] += ((actions == FORWARD) & (left[4]["pose"] == pose).all(1)).sum()
        pose = left[4]["pose"]
    assert counts["ends"] > 30 and counts["fruits"] > 50 and counts["blocked"] > 50
    for env in (ours, theirs):
        env.close()


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "memenvs.visual_match.minigrid_rooms", None)  # cannot be imported
    with pytest.raises(ImportError, match=r"world 'minigrid' needs the package minigrid; .*'memenvs\[minigrid\]'"):
        TrialEnv(VisualMatch, world="minigrid")


def test_draws_are_uniform():
    n = 600
    env = TrialVectorEnv(VisualMatch, n)
    info = env.reset(seed=0)[1]
    assert 250 < info["goal"].sum() < 350
    orders = {tuple(order): int((info["order"] == order).all(1).sum()) for order in info["order"]}
    assert len(orders) == 6 and min(orders.values()) > 60
    task = env.task
    cells = np.concatenate([task._fruits, task._field_pose[:, None, :2]], 1)
    assert cells.min() == 1 and cells.max() == 28
    assert all(len({tuple(cell) for cell in row}) == 31 for row in cells.tolist())
    assert np.bincount(task._field_pose[:, 2], minlength=4).min() > 100


def test_the_oracle_takes_fruits_and_chooses_right_from_anywhere():
    """Its ball after random steps in front of the balls, unless one of these chose a ball."""
    env = TrialVectorEnv(VisualMatch, 400, phases=(1, 60, 60))
    assert env.task.num_places == 2
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    over = np.zeros(400, bool)
    for t in range(100):
        is_random = 61 <= t < 80
        actions = rng.choice(3, 400, p=[0.2, 0.2, 0.6]) if is_random else env.oracle_actions()
        _, _, terminated, _, info = env.step(actions)
        ended = terminated & ~over
        assert is_random or info["success"][ended].all()
        np.testing.assert_allclose(info["return"][ended], (info["success"] + 0.01 * info["fruits"])[ended], atol=1e-6)
        over |= terminated
        if t == 60:
            assert info["fruits"].mean() > 5 and not over.any()
    assert over.all()


def test_planes_are_the_symbols():
    plain, planes = (TrialVectorEnv(VisualMatch, 20, obs=obs) for obs in ("symbols", "one_hot"))
    one, other = plain.reset(seed=0)[0]["image"], planes.reset(seed=0)[0]["image"]
    for t in range(30):
        assert (other.sum(-1) == 1).all()
        np.testing.assert_array_equal(SYMBOLS[other.argmax(-1)], one)
        one, other = (env.step(np.full(20, t % 3))[0]["image"] for env in (plain, planes))


def test_bad_settings():
    for settings, message in (
        ({"phases": (4, 80.5, 16)}, r"phases\[1\] must be an integer of at least 1 .*, got 80.5"),
        ({"wrong_reward": float("nan")}, "wrong_reward must be finite, got nan"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            TrialEnv(VisualMatch, **settings)


def test_steps_towards_a_ball_by_hand():
    for right, ahead, action in ((0, 3, FORWARD), (-1, 3, LEFT), (2, 3, RIGHT), (3, 1, FORWARD), (3, 0, RIGHT)):
        kinds = np.full((1, VIEW, VIEW), rooms.EMPTY)
        kinds[0, 3 + right, 6 - ahead] = rooms.BLUE
        kinds[0, 3 + right, 5 - ahead] = rooms.RED
        found = find_ball(kinds, np.array([1]))
        assert [part.tolist() for part in found] == [[right], [ahead], [True]]
        assert approach(*found).tolist() == [action]
    nothing = np.full((1, VIEW, VIEW), rooms.EMPTY)
    nothing[0, 0, 0] = rooms.GREEN
    assert approach(*find_ball(nothing, np.array([1]))).tolist() == [LEFT]
