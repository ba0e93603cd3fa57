import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.two_rooms.env import TwoRooms, draw_boxes
from memenvs.two_rooms.rooms import ROOMS, BoxRooms


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
