"""Homes of one room, for episodes that can be computed by hand."""

import numpy as np

from memenvs.houses.classes import CLASS_INDEX
from memenvs.houses.house import BOX, House, Room, ShapeBuilder
from memenvs.houses.worlds import HouseWorld

#: Class, (x, y, z) of the middle and half sizes of a box, m.
ToyBox = tuple[str, tuple[float, float, float], tuple[float, float, float]]


class ToyWorld(HouseWorld):
    """One home, a room without walls around it, for a robot of 0.28 m.

    Args:
        size: (x, y) of the room, whose corner is at (0, 0), m.
        boxes: Furniture.
    """

    def __init__(self, size: tuple[float, float] = (8.0, 4.0), boxes: tuple[ToyBox, ...] = ()) -> None:
        super().__init__(robot_radius=0.28)
        self._size = size
        self._boxes = boxes

    def __len__(self) -> int:
        return 1

    @property
    def max_rooms(self) -> int:
        return 1

    def make_house(self, index: int) -> House:
        builder = ShapeBuilder()
        for number, (name, centre, half) in enumerate(self._boxes, start=1):
            builder.add(BOX, centre, half, semantic=CLASS_INDEX[name], instance=number)
        x, y = self._size
        room = Room("other", np.array([[0, 0], [x, 0], [x, y], [0, y]], float), 0, (90, 90, 90))
        names = ("building", *(f"{name}|{k}" for k, (name, _, _) in enumerate(self._boxes, start=1)))
        return House("toy", builder.build(), (room,), (), (), names)


class ToyHomes(ToyWorld):
    """The homes of several such worlds."""

    def __init__(self, *worlds: ToyWorld) -> None:
        super().__init__()
        self._worlds = worlds

    def __len__(self) -> int:
        return len(self._worlds)

    def make_house(self, index: int) -> House:
        return self._worlds[index].make_house(0)
