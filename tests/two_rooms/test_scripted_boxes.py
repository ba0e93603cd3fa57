"""The view of the rules of TwoRooms."""

from __future__ import annotations

import numpy as np
import pytest

from memenvs.two_rooms.env import TwoRooms
from memenvs.two_rooms.rooms import FORWARD, LEFT, RIGHT, BoxRooms
from memenvs.two_rooms.scripted_boxes import BoxView, approach


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


def test_approach_by_hand():
    directions = np.array([0.0, 7.5, 7.6, -7.6, np.nan])
    assert approach(directions).tolist() == [FORWARD, FORWARD, LEFT, RIGHT, LEFT]
