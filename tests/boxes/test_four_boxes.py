from __future__ import annotations

import json
import math
import os
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

from memenvs.boxes.four_boxes import FourBoxes
from memenvs.boxes.room import BOX_POSITIONS, BoxRoom, make_house
from memenvs.core import TrialEnv, TrialVectorEnv

LEFT, RIGHT, FORWARD, STAY = range(4)
CEILINGS = [39, 45, 45, 39]  # ReLIC's analytic optimum: blue, red, green, yellow


def one_for_each_goal(**settings) -> TrialVectorEnv:
    env = TrialVectorEnv(FourBoxes, 4, autoreset_mode="SameStep", **settings)
    env.reset(seed=0, options=[{"layout": goal} for goal in range(4)])
    return env


def returns(env: TrialVectorEnv, policy) -> list[float]:
    for _ in range(50):
        _, _, _, truncated, info = env.step(policy(env))
    assert truncated.all()
    return info["final_info"]["return"].tolist()


# ---------------------------------------------------------------- rules


def first_paid_step(goal: int, slack: float) -> int:
    """Fewest steps from the start to a paid one, by breadth-first search over all ways; written apart from the task, in Miniworld's (x, z)."""
    low, high = math.sqrt(0.32), 6 - math.sqrt(0.32)
    box = [(low, low), (high, low), (high, high), (low, high)][goal]

    def after(state, action):
        x, z, k = state
        if action != FORWARD:
            return x, z, (k + (1 if action == LEFT else -1)) % 24
        x, z = x + 0.7 * math.cos(k * math.pi / 12), z - 0.7 * math.sin(k * math.pi / 12)
        inside = 0.4 <= x <= 5.6 and 0.4 <= z <= 5.6
        return (round(x, 9), round(z, 9), k) if inside and math.dist((x, z), box) >= 0.4 + low else state

    def paid(state):
        x, z, k = state
        away = (math.degrees(math.atan2(z - box[1], box[0] - x)) - 15 * k + 180) % 360 - 180
        return math.dist((x, z), box) < low + 0.4 + 1.05 and abs(away) <= 30 + slack

    front = seen = {(3.0, 3.0, 0)}
    for step in range(1, 50):
        front = {after(state, action) for state in front for action in (LEFT, RIGHT, FORWARD)} - seen
        seen = seen | front
        if any(paid(state) for state in front):
            return step
    raise AssertionError("no way leads there")


@pytest.mark.parametrize("slack", [1e-6, -1e-6])  # whichever way ties at 30 degrees are decided
def test_ceilings_by_search(slack):
    assert [50 - first_paid_step(goal, slack) + 1 for goal in range(4)] == CEILINGS


def test_the_oracle_reaches_the_ceilings():
    env = one_for_each_goal()
    for _ in range(2):
        assert returns(env, lambda env: env.oracle_actions()) == CEILINGS


def test_the_oracle_gets_there_from_anywhere():
    """Also from beside a wall, where the heading that is nearest to the box's direction may be blocked."""
    rng = np.random.default_rng(0)
    n = 300
    goals = rng.integers(4, size=n)
    starts = np.column_stack([rng.uniform([0.4, -5.6], [5.6, -0.4], (n, 2)), rng.uniform(0, 2 * np.pi, n)])
    starts[::3, 0] = np.where(rng.random(100) < 0.5, 0.4, 5.6)
    free = np.hypot(*(starts[:, :2] - BOX_POSITIONS[goals]).T) > 1.0
    env = TrialVectorEnv(FourBoxes, int(free.sum()))
    options = [{"goal": int(goal), "start": start} for goal, start in zip(goals[free], starts[free], strict=True)]
    env.reset(seed=0, options=options)
    for _ in range(30):
        _, rewards, *_ = env.step(env.oracle_actions())
    assert rewards.all()
    assert (env.oracle_actions() == STAY).all()


def test_an_episode_by_hand():
    """The red box is at (5.434, -0.566), 3.44 m from the start at 45 degrees: paid from 2.016 m on, solid at 0.966 m."""
    env = TrialEnv(FourBoxes)
    observation, info = env.reset(seed=0, options={"goal": "red"})
    assert info["goal"] == 1
    assert info["pose"].tolist() == [3, -3, 0]
    assert observation["heading"].tolist() == [1, 0]
    distances, rewards = [], []
    for action in (*3 * [LEFT], *4 * [FORWARD], LEFT, LEFT, LEFT, STAY, RIGHT, STAY):
        observation, reward, terminated, truncated, info = env.step(action)
        distances.append(round(math.dist(info["pose"][:2], BOX_POSITIONS[1]), 2))
        rewards.append(reward)
        assert observation["reward"].tolist() == [reward]
        assert not terminated
        assert not truncated
    assert distances == [3.44] * 3 + [2.74, 2.04] + [1.34] * 8
    # The fourth step forward does nothing. Then it turns by 15, 30 and 45 degrees away from the box, and back.
    assert rewards == [0] * 5 + [1, 1, 1, 1, 0, 0, 1, 1]
    assert info["success"]
    assert info["return"] == 6
    np.testing.assert_allclose(
        observation["heading"], [math.cos(5 * math.pi / 12), math.sin(5 * math.pi / 12)], atol=1e-6
    )


def test_only_the_box_that_pays_and_the_walls_are_solid():
    env = TrialEnv(FourBoxes)
    for goal, steps in (("red", 3), ("green", 5)):  # towards the red box
        env.reset(seed=0, options={"goal": goal, "start": (3.0, -3.0, math.pi / 4)})
        for _ in range(8):
            pose = env.step(FORWARD)[4]["pose"]
        walked = math.dist(pose[:2], (3, -3))
        # Past the middle of a red box that does not pay; after a sixth step it would stand less than 0.4 m from both walls.
        np.testing.assert_allclose(walked, 0.7 * steps, rtol=1e-6)


def test_rewards_as_defined_by_the_angle_between_two_vectors():
    """The original's way to say it: the angle from an arccosine. Ties at 30 degrees, which rounding decides there, are left out."""
    env = one_for_each_goal(max_episode_steps=400)
    rng = np.random.default_rng(0)
    num_paid = 0
    for _ in range(399):
        _, rewards, _, _, info = env.step(rng.choice(4, 4, p=[0.2, 0.2, 0.5, 0.1]))
        for i in range(4):
            x, y, heading = info["pose"][i].astype(float)
            gap = BOX_POSITIONS[i] - (x, y)
            cosine = float(np.dot(gap, (math.cos(heading), math.sin(heading))) / np.linalg.norm(gap))
            angle = math.degrees(math.acos(min(1.0, cosine)))
            if abs(angle - 30) > 1e-3:
                assert rewards[i] == (np.linalg.norm(gap) < 0.8 / math.sqrt(2) + 0.4 + 1.5 * 0.7 and angle < 30)
            num_paid += rewards[i]
    assert num_paid > 50


def test_the_goal_stays_over_the_trial_and_all_four_come_up():
    env = TrialEnv(FourBoxes, trial_episodes=3)
    goals = [env.reset(seed=4 if k == 0 else None)[1]["goal"] for k in range(60)]
    trials = [set(goals[k : k + 3]) for k in range(0, 60, 3)]
    assert all(len(trial) == 1 for trial in trials)
    assert set.union(*trials) == {0, 1, 2, 3}


def test_the_observation_tells_the_goal_by_its_reward_only():
    env = one_for_each_goal()
    for action in (LEFT, LEFT, LEFT, FORWARD, FORWARD, FORWARD):
        observation, rewards, *_ = env.step(np.full(4, action))
        for i in range(1, 4):
            for key in ("rgb", "heading"):
                np.testing.assert_array_equal(observation[key][i], observation[key][0])
    assert rewards.tolist() == [0, 1, 0, 0]


def test_episodes_last_50_steps_whatever_happens():
    env = TrialEnv(FourBoxes)
    env.reset(seed=0)
    assert [env.step(env.oracle_action())[2:4] for _ in range(50)] == [(False, False)] * 49 + [(False, True)]


def test_places_are_the_quarters_of_the_room():
    env = TrialEnv(FourBoxes)
    starts = [(2.0, -2.0, 0.0), (4.0, -2.0, 0.0), (4.0, -4.0, 0.0), (2.0, -4.0, 0.0)]
    assert [env.reset(seed=0, options={"start": start})[1]["place"] for start in starts] == [0, 1, 2, 3]
    assert env.num_places == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"world": "habitat"}, r"unknown world 'habitat'; choose from \['builtin', 'miniworld'\]"),
        ({"image_size": (61, 25)}, r"image_size must be from \(1, 1\) to \(60, 80\), got \(61, 25\)"),
        ({"image_size": 25}, "image_size must be two integers, rows and columns, got 25"),
        ({"threads": 0}, "threads must be an integer of at least 1, got 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        TrialEnv(FourBoxes, **settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal": 4}, r"option 'goal' must be 0 \.\.\. 3 or one of \['blue', .*\], got 4"),
        ({"goal": "purple"}, "option 'goal' must be .*, got 'purple'"),
        ({"goal": True}, "option 'goal' must be .*, got True"),
        ({"start": (3.0, -3.0)}, "option 'start' must be three finite numbers"),
        ({"start": "middle"}, "option 'start' must be three finite numbers .*, got 'middle'"),
        ({"start": (3.0, 3.0, 0.0)}, "option 'start' must be at least 0.4 m from the walls"),
        ({"goal": "blue", "start": (1.0, -1.0, 0.0)}, "0.966 m from the middle of the blue box"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        TrialEnv(FourBoxes).reset(seed=0, options=options)


# ---------------------------------------------------------------- pictures


def test_images_of_another_size_are_of_the_same_view():
    large, small = TrialEnv(FourBoxes, image_size=(60, 80)), TrialEnv(FourBoxes)
    options = {"start": (2.0, -3.5, 1.0)}
    seen, shrunk = large.reset(seed=0, options=options)[0]["rgb"], small.reset(seed=0, options=options)[0]["rgb"]
    assert seen.shape == (60, 80, 3)
    assert shrunk.shape == (25, 25, 3)
    blocks = seen.reshape(5, 12, 5, 16, 3).mean((1, 3)) - shrunk.reshape(5, 5, 5, 5, 3).mean((1, 3))
    assert np.abs(blocks).max() < 8


def test_a_box_is_seen_where_a_pinhole_camera_sees_it():
    """Middle of the red box from the start: 3.44 m ahead when heading 45 degrees, 1.1 m below the eye."""
    room = BoxRoom(1)
    room.place(0, (3.0, -3.0, math.pi / 4), 1)
    view = np.zeros((1, 60, 80, 3), np.uint8)
    room.draw(view, np.ones(1, bool))
    focal = 30 / math.tan(math.radians(30))
    row = 30 + focal * 1.1 / (math.dist((3, -3), BOX_POSITIONS[1]) - 0.4)
    red = view[0, int(row), 40].astype(int)
    assert red[0] > 100
    assert red[1:].max() < 10
    rows, columns = np.nonzero((view[0, ..., 0] > 100) & (view[0, ..., 1] < 10))
    assert abs(columns.mean() - 39.5) < 1
    near, top = (
        math.dist((3, -3), BOX_POSITIONS[1]) - 0.8 / math.sqrt(2),
        math.dist((3, -3), BOX_POSITIONS[1]) + 0.8 / math.sqrt(2),
    )
    assert abs(rows.max() + 1 - (30 + focal * 1.5 / near)) <= 1  # the foot of its nearest edge
    assert abs(rows.min() - (30 + focal * 0.7 / top)) <= 1  # the farthest corner of its top


def test_map_and_render_show_the_goal():
    env = TrialEnv(FourBoxes, render_mode="rgb_array")
    pictures = []
    for goal in ("red", "green"):
        env.reset(seed=0, options={"goal": goal})
        pictures.append(env.render())
        assert pictures[-1].shape == (384, 768, 3)
    assert (pictures[0][:, :384] == pictures[1][:, :384]).all()  # the view
    assert (pictures[0][:, 384:] != pictures[1][:, 384:]).any()  # the map
    plan = env.task.draw_map(0, np.array([[3.0, -3.0, 0.0], [4.0, -3.0, 0.0]]))
    assert plan.shape == (264, 264, 3)
    column, row = round((0.3 + 0.566 - 0.3) * 40), round((0.3 + 0.566 - 0.3) * 40)  # in a corner of the blue box
    assert plan[row, column].argmax() == 2


def test_the_house_says_what_is_in_it():
    house = make_house()
    assert house.instances == ("building", "blue", "red", "green", "yellow")
    np.testing.assert_allclose(house.shapes.centre[-4:, :2], BOX_POSITIONS, atol=1e-6)
    np.testing.assert_allclose(house.bounds, [[0, -6], [6, 0]])
    assert house.area == 36


# ---------------------------------------------------------------- the Miniworld package


@pytest.fixture
def miniworld(request):
    request.getfixturevalue("display")
    return pytest.importorskip("miniworld", reason="needs miniworld: pip install 'memenvs[miniworld]'")


@pytest.mark.usefixtures("miniworld")
def test_the_oracle_reaches_the_ceilings_in_miniworld():
    env = one_for_each_goal(world="miniworld")
    assert returns(env, lambda env: env.oracle_actions()) == CEILINGS
    env.close()


def reference_room(goal: int):
    """A Miniworld environment with a single box, made as its documentation says."""
    from miniworld.entity import Box
    from miniworld.miniworld import MiniWorldEnv
    from miniworld.params import DEFAULT_PARAMS

    class OneBox(MiniWorldEnv):
        def _gen_world(self) -> None:
            self.add_rect_room(min_x=0, max_x=6, min_z=0, max_z=6)
            radius = Box("red").radius
            x, z = [(radius, radius), (6 - radius, radius), (6 - radius, 6 - radius), (radius, 6 - radius)][goal]
            self.box = self.place_entity(Box("red"), pos=np.array([x, 0, z]), dir=0.0)
            self.place_agent(pos=np.array([3.0, 0, 3.0]), dir=0.0)

        def is_paid(self) -> bool:
            gap = (self.box.pos - self.agent.pos)[[0, 2]]
            cosine = np.dot(gap, self.agent.dir_vec[[0, 2]]) / np.linalg.norm(gap)
            near = np.linalg.norm(gap) < self.box.radius + self.agent.radius + 1.5 * self.max_forward_step
            return bool(near and np.degrees(np.arccos(min(1.0, cosine))) <= 30 + 1e-6)

    params = DEFAULT_PARAMS.no_random()
    params.set("forward_step", 0.7)
    params.set("turn_step", 15)
    return OneBox(params=params, max_episode_steps=10_000)


@pytest.mark.usefixtures("miniworld")
def test_same_actions_same_poses_and_rewards_in_both_worlds():
    """And in a third: Miniworld environments with nothing but the box that pays, one for each goal."""
    ours = one_for_each_goal(max_episode_steps=300)
    theirs = one_for_each_goal(max_episode_steps=300, world="miniworld")
    references = [reference_room(goal) for goal in range(4)]
    rng = np.random.default_rng(1)
    num_paid, num_blocked, before = 0.0, 0, np.zeros((4, 3))
    for _ in range(140):
        random = rng.choice(4, 4, p=[0.15, 0.15, 0.65, 0.05])
        actions = np.where(
            rng.random(4) < 0.3, ours.oracle_actions(), random
        )  # so that it is near the box now and then
        rewards, their_rewards = ours.step(actions)[1], theirs.step(actions)[1]
        pose, their_pose = ours.task._room.pose, theirs.task._room.pose
        np.testing.assert_allclose(pose, their_pose, atol=1e-9)
        np.testing.assert_array_equal(rewards, their_rewards)
        for i, reference in enumerate(references):
            if actions[i] != STAY:
                reference.step(int(actions[i]))
            x, _, z = reference.agent.pos
            np.testing.assert_allclose(pose[i, :2], (x, -z), atol=1e-9)
            np.testing.assert_allclose((pose[i, 2] - reference.agent.dir + 1) % (2 * np.pi), 1, atol=1e-9)
            assert rewards[i] == reference.is_paid()
        num_paid += rewards.sum()
        num_blocked += ((actions == FORWARD) & (pose == before).all(1)).sum()
        before = pose.copy()
    assert 50 < num_paid < 500
    assert num_blocked > 30
    theirs.close()


def both_views(count: int, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """What both worlds show from random poses; uint8, (count, *size, 3) each."""
    rng = np.random.default_rng(0)
    starts = np.column_stack(
        [rng.uniform([0.4, -5.6], [5.6, -0.4], (4 * count, 2)), rng.uniform(0, 2 * np.pi, 4 * count)]
    )
    gaps = np.hypot(*np.moveaxis(starts[:, None, :2] - BOX_POSITIONS, -1, 0)).min(1)
    starts = starts[gaps > 1.0][:count]
    pictures = []
    for world in ("builtin", "miniworld"):
        env = TrialVectorEnv(FourBoxes, count, world=world, image_size=size)
        pictures.append(env.reset(seed=0, options=[{"goal": 0, "start": start} for start in starts])[0]["rgb"])
        env.close()
    return pictures[0], pictures[1]


@pytest.mark.usefixtures("miniworld")
def test_both_worlds_look_the_same():
    ours, theirs = both_views(50, (60, 80))
    # Only boxes are coloured; Miniworld's edges are smooth, and 90 of up to 213 is what a box gives that covers half of a pixel.
    masks = [view.max(-1).astype(int) - view.min(-1) > 90 for view in (ours, theirs)]
    both, either = masks[0] & masks[1], masks[0] | masks[1]
    shown = either.any((1, 2))
    assert shown.sum() > 30
    assert (both.sum((1, 2))[shown] / either.sum((1, 2))[shown]).min() > 0.9
    lit = [view[both].astype(int) > 60 for view in (ours, theirs)]  # which of red, green and blue: the colour's name
    assert (lit[0] == lit[1]).all(1).mean() > 0.99
    assert np.abs(ours.astype(int) - theirs).mean() < 8


@pytest.mark.usefixtures("miniworld")
def test_both_worlds_look_the_same_to_an_agent():
    ours, theirs = both_views(50, (25, 25))
    assert np.abs(ours.astype(int) - theirs).mean() < 6
    has_box = (theirs.max(-1).astype(int) - theirs.min(-1) > 60).mean((1, 2)) > 0.01
    assert has_box.sum() > 30
    ours, theirs = ours[has_box].astype(int), theirs[has_box].astype(int)
    closest = np.abs(ours[:, None] - theirs[None]).mean((2, 3, 4)).argmin(1)
    assert (closest == np.arange(len(ours))).all()  # to each picture of ours the one from the same pose is the nearest


@pytest.mark.usefixtures("miniworld")
def test_another_miniworld_environment_does_not_change_the_pictures():
    env = TrialEnv(FourBoxes, world="miniworld")
    before = env.reset(seed=0)[0]["rgb"]
    other = gym.make("MiniWorld-FourRooms-v0")
    other.reset(seed=0)
    np.testing.assert_array_equal(env.reset(seed=0)[0]["rgb"], before)
    other.close()
    env.close()


@pytest.mark.usefixtures("miniworld")
def test_pickled_and_drawn_for_people_in_miniworld():
    env = TrialEnv(FourBoxes, world="miniworld", render_mode="rgb_array")
    env.reset(seed=0, options={"goal": "green"})
    env.step(RIGHT)
    twin = pickle.loads(pickle.dumps(env))
    for action in (FORWARD, FORWARD, RIGHT, FORWARD):
        left, right = env.step(action), twin.step(action)
        np.testing.assert_array_equal(left[0]["rgb"], right[0]["rgb"])
        np.testing.assert_array_equal(left[4]["pose"], right[4]["pose"])
    np.testing.assert_array_equal(env.render(), twin.render())
    assert env.render().shape == (384, 768, 3)
    env.close()
    twin.close()


@pytest.mark.usefixtures("miniworld")
def test_rollout_in_miniworld_prints_nothing_but_its_document():
    command = [
        sys.executable,
        "-m",
        "memenvs",
        "rollout",
        "FourBoxes-v0",
        "--policy",
        "oracle",
        "--episodes",
        "1",
        "--json",
    ]
    done = subprocess.run([*command, "--kwargs", '{"world": "miniworld"}'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["return"]["mean"] in CEILINGS


def test_without_a_display():
    pytest.importorskip("miniworld", reason="needs miniworld: pip install 'memenvs[miniworld]'")
    environ = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    code = "from memenvs.core import TrialEnv; TrialEnv('memenvs.boxes.four_boxes:FourBoxes', world='miniworld')"
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: world 'miniworld' needs a display with OpenGL")
    assert last.endswith("without a screen, start with: xvfb-run -a")


def test_without_the_package():
    code = (
        "import sys; sys.modules['miniworld'] = None; from memenvs.core import TrialEnv; "
        "TrialEnv('memenvs.boxes.four_boxes:FourBoxes', world='miniworld')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    expected = (
        "ImportError: world 'miniworld' needs the package miniworld; install it with: pip install 'memenvs[miniworld]'"
    )
    assert done.stderr.splitlines()[-1] == expected
