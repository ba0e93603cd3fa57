import math
import re
from itertools import permutations

import numpy as np
import pytest
from scipy import ndimage

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.four_boxes.arrangements import SPLITS
from memenvs.four_boxes.config import FourBoxesConfig
from memenvs.four_boxes.env import FourBoxes
from memenvs.four_boxes.resize import Resize
from memenvs.four_boxes.room import BOX_POSITIONS, BoxRoom

LEFT, RIGHT, FORWARD, STAY = range(4)
CEILINGS = [39, 45, 45, 39]  # ReLIC's analytic optimum: blue, red, green, yellow


def one_for_each_goal(**settings) -> TrialVectorEnv:
    env = TrialVectorEnv(FourBoxes, 4, autoreset_mode="SameStep", **settings)
    env.reset(seed=0, options=[{"layout": goal} for goal in range(4)])
    return env


def first_rewarded_step(goal: int, slack: float) -> int:
    """Fewest steps to a rewarded one, by breadth-first search, in Miniworld's (x, z)."""
    low, high = math.sqrt(0.32), 6 - math.sqrt(0.32)
    box = [(low, low), (high, low), (high, high), (low, high)][goal]

    def after(state, action):
        x, z, k = state
        if action != FORWARD:
            return x, z, (k + (1 if action == LEFT else -1)) % 24
        x, z = x + 0.7 * math.cos(k * math.pi / 12), z - 0.7 * math.sin(k * math.pi / 12)
        inside = 0.4 <= x <= 5.6 and 0.4 <= z <= 5.6
        return (round(x, 9), round(z, 9), k) if inside and math.dist((x, z), box) >= 0.4 + low else state

    def is_rewarded(state):
        x, z, k = state
        error = (math.degrees(math.atan2(z - box[1], box[0] - x)) - 15 * k + 180) % 360 - 180
        return math.dist((x, z), box) < low + 0.4 + 1.05 and abs(error) <= 30 + slack

    front = {(3.0, 3.0, 0)}
    visited = front
    for step in range(1, 50):
        front = {after(state, action) for state in front for action in (LEFT, RIGHT, FORWARD)} - visited
        visited = visited | front
        if any(is_rewarded(state) for state in front):
            return step
    raise AssertionError("no path leads there")


def test_ceilings_by_search():
    for slack in (1e-6, -1e-6):  # however ties at 30 degrees are decided
        assert [50 - first_rewarded_step(goal, slack) + 1 for goal in range(4)] == CEILINGS


def test_oracle_arrives_from_anywhere():
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


def test_splits_hold_arrangements_of_the_colours_out():
    assert {name: len(SPLITS[name]) for name in SPLITS} == {"train": 12, "validation": 6, "test": 6, "all": 24}
    assert len({*SPLITS["train"], *SPLITS["validation"], *SPLITS["test"]}) == 24
    assert set(SPLITS["all"]) == set(permutations(range(4))) and SPLITS["train"][0] == (0, 1, 2, 3)
    env = TrialVectorEnv(FourBoxes, 24, split="validation")
    observation, info = env.reset(seed=0, options=[{"layout": layout} for layout in range(24)])
    assert info["goal"].tolist() == 6 * [0, 1, 2, 3]
    assert len({image.tobytes() for image in observation["rgb"]}) > 1
    corners = np.array([SPLITS["validation"][layout // 4][layout % 4] for layout in range(24)])
    total = np.zeros(24)
    for _ in range(50):
        _, reward, *_ = env.step(env.oracle_actions())
        total += reward
    assert total.tolist() == [CEILINGS[corner] for corner in corners]
    assert env.task.info()["place"].tolist() == corners.tolist()
    with pytest.raises(ValueError, match=r"option 'start' must be .* the centre of the green box"):
        middle = BOX_POSITIONS[SPLITS["validation"][0][2]]
        env.reset(options=[{"layout": 2, "start": (*middle.tolist(), 0.0)}] + 23 * [{}])


def test_each_colour_stands_in_its_corner():
    """Seen from above, on the map of a layout."""
    arrangement = SPLITS["test"][3]
    env = TrialVectorEnv(FourBoxes, 1, split="test")
    env.reset(seed=0, options={"layout": 12})
    image = env.task.draw_map(0, np.array([[3.0, -3.0, 0.0]]))
    for channel, corner in zip((2, 0, 1), arrangement[:3], strict=True):  # blue, red, green
        column, row = env.task.map_pixels(0, np.array([[*BOX_POSITIONS[corner], 0.0]]))[0].round().astype(int)
        seen = image[row - 14, column - 14].astype(int)  # beside the sign of the goal
        assert seen.argmax() == channel and seen.max() > 2 * np.sort(seen)[1], (arrangement, corner)


def test_episode_by_hand():
    """The red box is 3.44 m from the start at 45 degrees; rewarded within 2.016 m, solid at 0.966 m."""
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
        assert observation["previous_reward"].tolist() == [reward]
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
    for distance, off, expected in ((2.01, 0, 1), (2.02, 0, 0), (1.5, 29.9, 1), (1.5, 30.1, 0), (1.5, -30.1, 0)):
        place = BOX_POSITIONS[1] - distance * math.sqrt(0.5)
        heading = math.pi / 4 + math.radians(off)
        env.reset(options={"goal": "red", "start": (*place, heading)})
        assert env.step(STAY)[1] == expected, (distance, off)


def test_only_the_goal_box_and_the_walls_are_solid():
    env = TrialEnv(FourBoxes)
    for goal, steps in (("red", 3), ("green", 5)):  # towards the red box
        env.reset(seed=0, options={"goal": goal, "start": (3.0, -3.0, math.pi / 4)})
        for _ in range(8):
            pose = env.step(FORWARD)[4]["pose"]
        walked = math.dist(pose[:2], (3, -3))
        # Past the middle of a red box that is no goal; a sixth step would end less than 0.4 m from both walls.
        np.testing.assert_allclose(walked, 0.7 * steps, rtol=1e-6)


def test_observations_depend_on_the_goal_by_reward_only():
    env = one_for_each_goal()
    for action in (LEFT, LEFT, LEFT, FORWARD, FORWARD, FORWARD):
        observation, rewards, *_ = env.step(np.full(4, action))
        for i in range(1, 4):
            for key in ("rgb", "heading"):
                np.testing.assert_array_equal(observation[key][i], observation[key][0])
    assert rewards.tolist() == [0, 1, 0, 0]


def test_starts_up_to_the_walls():
    """Headings go from 0 to 2 pi, also those of options and after turns; places are the quarters of the room."""
    env = TrialEnv(FourBoxes)
    for x, y in ((0.4, -3), (5.6, -3), (3, -0.4), (3, -5.6)):
        info = env.reset(seed=0, options={"start": (x, y, -1.0), "goal": np.int64(3)})[1]
        np.testing.assert_allclose(info["start"], (x, y, 2 * math.pi - 1))
        np.testing.assert_allclose(info["pose"], info["start"], rtol=1e-6)
        assert (info["goal"], info["goal_id"]) == (3, 3)
        outside = 3 + (x - 3) * 1.001, -3 + (y + 3) * 1.001
        with pytest.raises(ValueError, match=r"option 'start' must be at least 0\.4 m from the walls"):
            env.reset(options={"start": (*outside, 0.0)})
    starts = [(2.0, -2.0, 0.0), (4.0, -2.0, 0.0), (4.0, -4.0, 0.0), (2.0, -4.0, 0.0)]
    assert [env.reset(options={"start": start})[1]["place"] for start in starts] == list(range(4))
    assert env.num_places == 4
    env.reset(seed=0)
    headings = [env.step(RIGHT)[4]["pose"][2] for _ in range(24)]
    np.testing.assert_allclose(headings, np.radians(360 - 15 * np.arange(1, 25)), atol=1e-6)
    distance = 0.4 + 0.8 / math.sqrt(2)  # of the robot from the middle of a solid box
    for slack in (1e-9, -1e-9):
        start = (*(BOX_POSITIONS[2] + (-distance - slack, 0)), 0.0)
        if slack > 0:
            env.reset(options={"goal": "green", "start": start})
        else:
            with pytest.raises(ValueError, match=r"0\.966 m from the centre of the green box"):
                env.reset(options={"goal": "green", "start": start})


def test_bad_settings():
    for size in ((61, 25), (25, 81), (0, 25), (25, 0)):
        message = f"image_size must be from (1, 1) to (60, 80), got {size}"
        with pytest.raises(ValueError, match=re.escape(message)):
            FourBoxesConfig(image_size=size)
    for size in (25, np.array(25)):
        with pytest.raises(ValueError, match=r"image_size must be two integers, rows and columns, got .*25"):
            FourBoxesConfig(image_size=size)


def test_bad_options():
    for options, message in (
        ({"goal": 4}, r"option 'goal' must be 0 \.\.\. 3 or one of \['blue', .*\], got 4"),
        ({"goal": "purple"}, "option 'goal' must be .*, got 'purple'"),
        ({"start": (3.0, -3.0)}, "option 'start' must be three finite numbers"),
        ({"start": "middle"}, "option 'start' must be three finite numbers .*, got 'middle'"),
    ):
        with pytest.raises(ValueError, match=message):
            TrialEnv(FourBoxes).reset(seed=0, options=options)


def test_box_is_where_a_pinhole_camera_projects_it():
    """Middle of the red box from the start: 3.44 m ahead when heading 45 degrees, 1.1 m below the eye."""
    room = BoxRoom(1)
    room.place(0, (3.0, -3.0, math.pi / 4), 1)
    view = np.zeros((1, 60, 80, 3), np.uint8)
    room.render(view, np.ones(1, bool))
    focal = 30 / math.tan(math.radians(30))
    row = 30 + focal * 1.1 / (math.dist((3, -3), BOX_POSITIONS[1]) - 0.4)
    red = view[0, int(row), 40].astype(int)
    assert red[0] > 100
    assert red[1:].max() < 10
    rows, columns = np.nonzero((view[0, ..., 0] > 100) & (view[0, ..., 1] < 10))
    assert abs(columns.mean() - 39.5) < 1
    distance, radius = math.dist((3, -3), BOX_POSITIONS[1]), 0.8 / math.sqrt(2)
    assert abs(rows.max() + 1 - (30 + focal * 1.5 / (distance - radius))) <= 1  # the foot of its nearest edge
    assert abs(rows.min() - (30 + focal * 0.7 / (distance + radius))) <= 1  # the farthest corner of its top


def views_from_the_middle() -> np.ndarray:
    """Images along +x, +y, -x, -y, then towards the four boxes; int, (8, 60, 80, 3)."""
    room = BoxRoom(8)
    for i in range(8):
        room.place(i, (3.0, -3.0, i * math.pi / 2 + (i >= 4) * math.pi / 4), 0)
    views = np.zeros((8, 60, 80, 3), np.uint8)
    room.render(views, np.ones(8, bool))
    return views.astype(int)


def test_colours_of_walls_ceiling_and_boxes():
    views = views_from_the_middle()
    np.testing.assert_allclose(views[:4, 20:40, 30:50].mean((1, 2, 3)), [99.1, 127.1, 127.0, 98.7], atol=0.5)
    np.testing.assert_allclose(views[:4, :6, 10:70].mean((1, 2, 3)), [103.4, 103.9, 102.8, 103.2], atol=0.5)
    for view, colour, left, right in (
        (views[4], (1, 0, 0), 178.5, 206.9),
        (views[5], (0, 0, 1), 206.8, 199.4),
        (views[6], (1, 1, 0), 199.3, 171.1),
        (views[7], (0, 1, 0), 171.0, 178.7),
    ):
        for part, brightness in ((view[44:54, 33:39], left), (view[44:54, 41:47], right), (view[40:41, 38:42], 242)):
            np.testing.assert_allclose(part.mean((0, 1)), brightness * np.array(colour), atol=0.3)  # 242 is the top


def test_walls_are_where_a_pinhole_camera_projects_them():
    """From 3 m before each wall and 1.5 m above the floor; the ceiling is at 2.74 m."""
    views = views_from_the_middle()[:4, ..., 0]
    focal = 30 / math.tan(math.radians(30))
    top, foot = 30 - focal * 1.24 / 3, 30 + focal * 1.5 / 3
    for i in (1, 2):  # walls that are brighter than the ceiling
        assert np.flatnonzero(views[i, :30, 40] > 115)[0] == round(top)
    for i in (1, 3):  # walls before which a white square lies in the middle
        assert np.flatnonzero(views[i, :, 40] > 150)[0] == round(foot)
    floor = views[:, 59]
    assert (floor[floor > 130].mean(), floor[floor <= 130].mean()) == pytest.approx((182.1, 82.7), abs=0.4)


def test_map_and_render_show_the_goal():
    env = TrialEnv(FourBoxes, render_mode="rgb_array")
    frames = []
    for goal in ("red", "green"):
        env.reset(seed=0, options={"goal": goal})
        frames.append(env.render())
        assert frames[-1].shape == (384, 768, 3)
    view = frames[0][:, :384]
    assert (view == frames[1][:, :384]).all()
    assert not view[:48].any() and not view[336:].any()
    small = np.zeros((1, 60, 80, 3), np.uint8)
    BoxRoom(1).render(small, np.ones(1, bool))  # the same view; blocks of 4.8 x 4.8 pixels
    blocks = view[48:336].reshape(12, 24, 16, 24, 3).mean((1, 3)) - small[0].reshape(12, 5, 16, 5, 3).mean((1, 3))
    assert np.abs(blocks).max() < 12
    assert (frames[0][:, 384:] != frames[1][:, 384:]).any()  # the map
    env.step(FORWARD)
    assert (env.render()[:, 384:] != frames[1][:, 384:]).any()  # the path
    corners = env.task.map_pixels(0, np.array([[0.0, 0.0, 0.0], [6.0, -6.0, 0.0]]))
    np.testing.assert_allclose(corners, [[12, 12], [252, 252]])  # 40 pixels per metre, a margin of 0.3 m


@pytest.mark.parametrize("target", [(25, 25), (7, 40), (60, 33)])
def test_images_are_resized_as_by_scikit_image(target):
    """Its `resize(..., anti_aliasing=True)` makes these two calls of SciPy."""
    images = np.random.default_rng(0).integers(0, 256, (3, 60, 80, 3), dtype=np.uint8)
    out = np.zeros((3, *target, 3), np.uint8)
    Resize((60, 80), target)(images, np.array([True, False, True]), out)
    factors = np.array([60 / target[0], 80 / target[1], 1.0])
    for k in (0, 2):
        smooth = ndimage.gaussian_filter(images[k].astype(float), (factors - 1) / 2, mode="mirror")
        expected = ndimage.zoom(smooth, 1 / factors, order=1, mode="mirror", grid_mode=True)
        assert np.abs(out[k] - expected).max() < 0.501  # it is rounded
    assert not out[1].any()
