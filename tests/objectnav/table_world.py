"""A room with objects on tables, for episodes of ExtObjNav by hand."""

import numpy as np

from memenvs.core import TrialEnv
from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.house import BOX, House, PlacedObject, Room, ShapeBuilder, Shapes
from memenvs.houses.worlds import HouseWorld
from memenvs.houses.ycb import object_height, object_shapes
from memenvs.objectnav.env import ExtObjNav

APPLE, MUG, BOWL = 10, 18, 17


class TableWorld(HouseWorld):
    """A room of 8 x 4 m with tables of 0.7 m height, and objects at given positions on them.

    Args:
        tables: (x, y) of the middle of each table of 1 x 1 m.
        objects: (category, x, y) of each object.
    """

    def __init__(
        self,
        tables: tuple[tuple[float, float], ...] = ((7.0, 2.0),),
        objects: tuple[tuple[int, float, float], ...] = ((APPLE, 6.7, 2.0), (MUG, 7.3, 2.3)),
    ) -> None:
        super().__init__()
        self._tables = tables
        self._objects = objects

    def __len__(self) -> int:
        return 1

    def make_house(self, index: int) -> House:
        builder = ShapeBuilder()
        for x, y in self._tables:
            builder.add(BOX, (x, y, 0.35), (0.5, 0.5, 0.35))
        room = Room("other", np.array([[0, 0], [8, 0], [8, 4], [0, 4]], float), 0, (90, 90, 90))
        return House("toy", builder.build(), (room,), (), (), ("building",))

    def place_objects(self, house, rng, count_range, categories):
        parts, placed = [], []
        for number, (category, x, y) in enumerate(self._objects, start=1):
            shapes = object_shapes(category, (x, y, 0.7))
            shapes.instance[:] = number
            parts.append(shapes)
            middle = (x, y, 0.7 + object_height(category) / 2)
            placed.append(PlacedObject(category, middle, 0.0, number, 0))
        names = [f"{YCB_CLASSES[item.category]}|{item.instance}" for item in placed]
        return house.with_objects(Shapes.concatenate(parts), names), tuple(placed)


def make_table_env(world: HouseWorld | None = None, **kwargs) -> TrialEnv:
    size = {} if kwargs.get("obs_mode") == "symbolic" else {"image_size": (24, 32)}
    return TrialEnv(ExtObjNav, world=world or TableWorld(), **size | kwargs)


def take_actions(env: TrialEnv, *actions: int) -> tuple:
    for action in actions:
        result = env.step(action)
    return result
