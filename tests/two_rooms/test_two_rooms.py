import math

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.two_rooms.config import TwoRoomsConfig
from memenvs.two_rooms.env import TwoRooms, draw_boxes
from memenvs.two_rooms.rooms import FORWARD, LEFT, RIGHT, ROOMS, BoxRooms
from memenvs.two_rooms.scripted_boxes import BoxView, approach


def test_an_episode_by_hand():
    """The boxes to choose from are 3.35 m ahead, 26.6 degrees to the left and right: touched in the fourth step."""
    for side, turn in enumerate((LEFT, RIGHT)):
        for seed in range(4):
            env = TrialEnv(TwoRooms, phases=(1, 1, 9), wrong_reward=0.1, image_size=(8, 8))
            _, info = env.reset(seed=seed)
            order = info["order"].tolist()
            poses = [env.step(action)[4]["pose"].tolist() for action in (LEFT, LEFT)]
            np.testing.assert_allclose(poses[1], (13, -1, 0))
            _, _, _, _, info = env.step(LEFT)
            np.testing.assert_allclose(info["pose"], (1, -4, 0))
            assert (env.task._rooms.colours[0] >= 0).sum() == 2  # the yellow boxes are in another room
            for action in (turn, turn, FORWARD, FORWARD, FORWARD):
                _, reward, terminated, _, info = env.step(action)
                assert (reward, terminated, info["success"], info["choice_id"]) == (0, False, False, -1)
            _, reward, terminated, truncated, info = env.step(FORWARD)
            is_match = order[side] == info["goal"]
            assert terminated
            assert not truncated
            assert (reward, info["success"], info["choice_id"]) == ([0.1, 1.0][is_match], is_match, order[side])
            assert math.dist(info["pose"][:2], (1, -4)) == pytest.approx(2.4, rel=1e-6)  # the fourth step is blocked


def test_without_a_choice_it_is_truncated():
    env = TrialEnv(TwoRooms, image_size=(8, 8))
    env.reset(seed=0)
    steps = [env.step(LEFT) for _ in range(100)]
    assert [step[2:4] for step in steps] == [(False, False)] * 99 + [(False, True)]
    headings = [step[4]["pose"][2] for step in steps]
    assert min(headings) >= 0 and 6 < max(headings) <= np.float32(2 * math.pi)


def test_the_cue_is_solid_and_pays_nothing():
    env = TrialEnv(TwoRooms, phases=(60, 1, 1), image_size=(8, 8))
    env.reset(seed=0)
    for _ in range(8):
        _, reward, terminated, _, info = env.step(FORWARD)
        assert (reward, terminated, info["boxes"]) == (0, False, 0)
    assert 0.4 + 0.566 <= math.dist(info["pose"][:2], (4, -4)) < 0.4 + 0.566 + 0.8


def test_yellow_boxes_vanish():
    env = TrialEnv(TwoRooms, phases=(1, 90, 1), box_reward=0.25)
    env.reset(seed=1)
    images = []
    for _ in range(60):
        observation, reward, _, _, info = env.step(env.oracle_action())
        images.append((observation["rgb"].astype(int)[..., :2].min(-1) - observation["rgb"][..., 2] > 90).sum())
        if reward:
            assert images[-1] < images[-2]  # there are fewer yellow pixels
            assert reward == 0.25
            assert (env.task._rooms.colours[0] >= 0).sum() == 15 - info["boxes"]
    assert info["boxes"] > 4
    assert info["return"] == 0.25 * info["boxes"]


def test_starts_boxes_and_sides():
    rng = np.random.default_rng(0)
    for _ in range(60):
        boxes = draw_boxes(rng)
        assert (boxes >= ROOMS[1, 0] + 0.5656).all()
        assert (boxes <= ROOMS[1, 1] - 0.5656).all()
        gaps = np.hypot(*np.moveaxis(boxes[:, None] - boxes, -1, 0)) + 9 * np.eye(15)
        assert gaps.min() >= 1.131
        assert np.hypot(*(boxes - (13, -1)).T).min() >= 0.9656
    for random_order in (True, False):
        env = TrialVectorEnv(TwoRooms, 200, image_size=(8, 8), random_order=random_order)
        info = env.reset(seed=0)[1]
        assert abs((info["order"][:, 0] == 1).mean() - 0.5 * random_order) < 0.1
        assert (info["order"].sum(1) == 1).all()
        assert len(np.unique(env.task._yellow, axis=0)) == 200  # boxes are drawn for each episode
        assert abs((info["order"][:, 0] == info["goal"]).mean() - 0.5) < 0.1
    low, high = info["pose"].min(0), info["pose"].max(0)
    np.testing.assert_allclose([low, high], [(0.4, -4.4, 0), (1.4, -2.6, 0)], atol=0.05)
    assert (low >= np.float32([0.4, -4.4, 0])).all()
    assert (high <= np.float32([1.4, -2.6, 0])).all()


def test_walls_are_solid_and_hide_boxes():
    """A robot stops 0.4 to 1.2 m before a wall; what it meets at the same time as a wall it does not touch."""
    rooms = BoxRooms(48, (8, 8))
    for i in range(48):
        low, high = ROOMS[i % 2]
        pose = np.array([*(low + high) / 2, i * math.radians(7.5)])
        rooms.enter(i, i % 2, pose, np.zeros((0, 2)), np.zeros(0, int))
    forward = np.full(48, FORWARD)
    for _ in range(20):
        assert (rooms.move(forward, np.ones(48, bool)) == -1).all()
    low, high = np.moveaxis(ROOMS[np.arange(48) % 2], 1, 0)
    gap = np.minimum(rooms.pose[:, :2] - low, high - rooms.pose[:, :2]).min(1)
    assert gap.min() >= 0.4
    assert gap.max() < 1.2
    alone = BoxRooms(1, (8, 8))
    for x, touched in ((6.9, -1), (6.7, 0)):  # 0.8 m on it is 0.3 or 0.5 m from the wall
        alone.enter(0, 0, np.array([x, -4.0, 0.0]), np.array([(7.4, -4.9)]), np.array([0]))
        assert alone.move(np.array([FORWARD]), np.ones(1, bool)).tolist() == [touched]
        assert alone.pose[0].tolist() == [x, -4.0, 0.0]


def test_a_box_that_was_removed_blocks_no_longer():
    """The step ahead ends 0.4 m from the first box and 0.86 m from the second."""
    rooms, forward, active = BoxRooms(1, (8, 8)), np.array([FORWARD]), np.ones(1, bool)
    rooms.enter(0, 1, np.array([16.0, -5.0, 0.0]), np.array([(17.2, -5.0), (17.5, -5.5)]), np.array([2, 2]))
    for box in (0, 1):
        assert rooms.move(forward, active).tolist() == [box]
        assert rooms.pose[0].tolist() == [16, -5, 0]
        rooms.remove(0, box)
    assert rooms.move(forward, active).tolist() == [-1]
    np.testing.assert_allclose(rooms.pose[0], [16.8, -5, 0])


def test_colours_and_sides_are_seen():
    """Green lights the second channel, blue the third; the left box is on the left, also in pictures for people."""
    rooms = BoxRooms(3, (84, 84))
    for i, colours in enumerate(([0, 1], [1, 0])):
        rooms.enter(i, 0, np.array([1.0, -4.0, 0.0]), np.array([(4.0, -2.5), (4.0, -5.5)]), np.array(colours))
    yellow = np.array([(17.0, -5.0), (19.0, -4.0), (20.0, -9.0)])
    rooms.enter(2, 1, np.array([14.0, -3.0, -0.5]), yellow, np.full(3, 2))
    views = np.zeros((3, 84, 84, 3), np.uint8)
    rooms.render(views, np.ones(3, bool))
    nearest = ((np.arange(84) + 0.5) * 384 / 84).astype(int)
    for i, view in enumerate(views.astype(int)):
        assert np.abs(rooms.render_large(i)[nearest][:, nearest] - view).mean() < 6  # 18 and more between two robots
    for view, left, right in zip(views[:2].astype(int), (1, 2), (2, 1), strict=True):
        for columns, channel in ((slice(0, 42), left), (slice(42, 84), right)):
            others = np.delete(view[:, columns], channel, -1).max(-1)
            assert ((view[:, columns, channel] > 120) & (others < 10)).sum() > 150


def test_bad_input():
    for settings, message in (
        ({"image_size": (7, 84)}, r"image_size must be from \(8, 8\) to \(512, 512\), got \(7, 84\)"),
        ({"image_size": (84, 513)}, r"image_size must be .*, got \(84, 513\)"),
        ({"phases": (4, 80)}, r"phases must be three numbers of steps, got \(4, 80\)"),
        ({"phases": (4, 0, 16)}, r"phases\[1\] must be an integer of at least 1 .*, got 0"),
        ({"match_reward": math.nan}, "match_reward must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            TwoRoomsConfig(**settings)
    assert TwoRoomsConfig(phases=[4, 80, 16], image_size=[84, 84]) == TwoRoomsConfig()


@pytest.mark.parametrize("size", [(84, 84), (12, 20), (40, 100)])
def test_directions_of_boxes_are_read_from_images(size):
    """The boxes stand 26.6 degrees to the left and right; turned by 15 degrees, one of them 11.6 degrees."""
    task = TwoRooms(3, image_size=size)
    rooms, views = BoxRooms(3, size), np.zeros((3, *size, 3), np.uint8)
    for i, (turn, colours) in enumerate(((0, [0, 1]), (15, [1, 0]), (-15, [2, 2]))):
        pose = np.array([1.0, -4.0, np.radians(turn)])
        rooms.enter(i, 0, pose, np.array([(4.0, -2.5), (4.0, -5.5)]), np.array(colours))
    rooms.render(views, np.ones(3, bool))
    directions = BoxView(task).directions({"rgb": views})
    is_wide = size != (84, 84)  # half of each box is outside of a square view
    np.testing.assert_allclose(directions[0], [26.6, -26.6], atol=2 if is_wide else 4)
    np.testing.assert_allclose(directions[1, 1], 11.6, atol=2)  # the blue one is on the left there
    assert np.isnan(directions[1, 0]) != is_wide
    assert np.isnan(directions[2]).all()  # yellow ones are not taken for green


def test_steps_towards_a_box_by_hand():
    directions = np.array([0.0, 7.5, 7.6, -7.6, np.nan])
    assert approach(directions).tolist() == [FORWARD, FORWARD, LEFT, RIGHT, LEFT]


@pytest.mark.slow
@pytest.mark.usefixtures("miniworld")
@pytest.mark.parametrize("led", [False, True])
def test_same_actions_same_poses_and_rewards_in_both_worlds(led):
    settings = {"image_size": (8, 8), "phases": (3, 20, 14), "trial_episodes": 1, "autoreset_mode": "SameStep"}
    ours, theirs = (TrialVectorEnv(TwoRooms, 4, world=world, led=led, **settings) for world in ("builtin", "miniworld"))
    for env in (ours, theirs):
        env.reset(seed=0)
    rng = np.random.default_rng(0)
    num_ended = num_boxes = num_blocked = 0
    before = np.zeros((4, 3))
    for _ in range(120):
        actions = np.where(np.arange(4) < 2, ours.oracle_actions(), rng.choice(3, 4, p=[0.1, 0.1, 0.8]))
        left, right = ours.step(actions), theirs.step(actions)
        for one, other in zip(left[1:4], right[1:4], strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(ours.task._rooms.pose, theirs.task._rooms.pose, atol=1e-9)
        for key in ("boxes", "choice_id", "success", "phase_id"):
            np.testing.assert_array_equal(left[4][key], right[4][key])
        num_ended += left[2].sum()
        num_boxes += (left[1] == 0.01).sum()
        num_blocked += ((actions == 2) & (ours.task._rooms.pose == before).all(1)).sum()
        before = ours.task._rooms.pose.copy()
    assert num_ended > 2
    assert num_boxes > 5 or led
    assert num_blocked > 20 or led
    theirs.close()


def both_views(room: int, count: int) -> np.ndarray:
    """Images of both worlds from random poses; int, (2, count, 84, 84, 3)."""
    from memenvs.two_rooms.miniworld import MiniworldRooms

    rng = np.random.default_rng(room)
    worlds = BoxRooms(count, (84, 84)), MiniworldRooms(count, (84, 84))
    low, high = ROOMS[room] + [[0.4], [-0.4]]
    for i in range(count):
        boxes = draw_boxes(rng) if room else np.array([(4.0, -2.5), (4.0, -5.5)])
        colours = np.full(15, 2) if room else np.array([i % 2, 1 - i % 2])
        position = rng.uniform(low, high)
        while np.hypot(*(boxes - position).T).min() < 1.0:
            position = rng.uniform(low, high)
        heading = np.arctan2(*(boxes[0] - position)[::-1]) + rng.uniform(-0.4, 0.4)
        for world in worlds:
            world.enter(i, room, np.array([*position, heading]), boxes, colours)
    views = np.zeros((2, count, 84, 84, 3), np.uint8)
    for world, view in zip(worlds, views, strict=True):
        world.render(view, np.ones(count, bool))
        world.close()
    return views.astype(int)


@pytest.mark.usefixtures("miniworld")
@pytest.mark.parametrize(("room", "difference"), [(0, 11), (1, 14)])  # far squares of the floor flicker in ours
@pytest.mark.slow
def test_images_of_both_worlds_agree(room, difference):
    """By the measures of FourBoxes: the same pixels and colours of boxes, the same brightness elsewhere."""
    ours, theirs = both_views(room, 40)
    masks = [view.max(-1) - view.min(-1) > 90 for view in (ours, theirs)]
    both, either = masks[0] & masks[1], masks[0] | masks[1]
    has_boxes = either.sum((1, 2)) > 50
    assert has_boxes.sum() > 30
    assert (both.sum((1, 2))[has_boxes] / either.sum((1, 2))[has_boxes]).min() > 0.9
    assert ((ours[both] > 60) == (theirs[both] > 60)).all(1).mean() > 0.97
    assert np.abs(ours - theirs).mean() < difference
    walls = ~either[..., None].repeat(3, -1)
    assert abs(ours[walls].mean() - theirs[walls].mean()) < 3
    few = [view[has_boxes][:, ::3, ::3] for view in (ours, theirs)]
    closest = np.abs(few[0][:, None] - few[1][None]).mean((2, 3, 4)).argmin(1)
    assert (closest == np.arange(has_boxes.sum())).all()  # of all images theirs from the same pose is the nearest
