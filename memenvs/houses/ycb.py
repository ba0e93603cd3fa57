"""The 20 YCB objects of ExtObjNav: shapes at real size, and placement in a house.

Source:
    Which objects: ReLIC release. Sizes: data sheet of the YCB object and model set (Calli et al., 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.house import Colour, Finish, House, PlacedObject, Receptacle, ShapeBuilder, Shapes
from memenvs.houses.object_model import ObjectModel

TIN = Finish("metal", (196, 198, 202))
_GAP = 0.01  # m; between two objects, and from an object to the edge of its surface
_TRIES = 60  # draws of a surface and a place on it for each object; it is left out if none fits


class SurfaceFootprint(NamedTuple):
    """Place of an object on a surface: middle and half extents along the surface's axes, m."""

    x: float
    y: float
    half_x: float
    half_y: float


def object_footprint(category: int) -> tuple[float, float]:
    """Full extents along the object's own x and y axes, m."""
    model = _model(category)
    return model.width, model.depth


def object_height(category: int) -> float:
    """Height of the object as it stands, m."""
    return _model(category).height


def object_shapes(category: int, position: Sequence[float], yaw: float = 0.0) -> Shapes:
    """Shapes of one object.

    Args:
        category: 0 to 19, index into `memenvs.houses.classes.YCB_CLASSES`.
        position: (x, y, z) of the centre of its underside, m.
        yaw: Rotation of its own x axis, rad.

    Returns:
        Its shapes; all have instance 1 and the class of the object.

    Raises:
        ValueError: There is no such category.
    """
    builder = ShapeBuilder()
    _model(category).build(builder, ["building"], (float(position[0]), float(position[1])), yaw, float(position[2]))
    return builder.build()


def place_objects(
    house: House,
    rng: np.random.Generator,
    count_range: tuple[int, int] = (30, 40),
    categories: Sequence[int] = range(20),
    models: Callable[[int], ObjectModel] | None = None,
) -> tuple[House, tuple[PlacedObject, ...]]:
    """Put random objects on random surfaces of a house, upright and apart from each other.

    Args:
        house: The house; needs receptacles.
        rng: Random generator.
        count_range: Fewest and most objects; uniform. A house without enough room gets fewer.
        categories: Categories to draw from, uniformly.
        models: Makes the model of a category; None for our own.

    Returns:
        The house with the objects in it, and the objects.

    Raises:
        ValueError: The house has no receptacles, the range is empty, or there are no categories.

    Source:
        ReLIC paper, section on ExtObjNav: 30 to 40 instances. Uniform categories and surfaces are inferred.
    """
    if not house.receptacles:
        raise ValueError(f"objects need receptacles, but home {house.name!r} has none")
    if not 0 <= count_range[0] <= count_range[1]:
        raise ValueError(f"count_range must be a range from at least 0, got {count_range}")
    if len(categories) == 0:
        raise ValueError("categories must not be empty")
    occupied: list[list[SurfaceFootprint]] = [[] for _ in house.receptacles]
    stands: list[_Stand] = []
    for _ in range(int(rng.integers(count_range[0], count_range[1] + 1))):
        category = int(categories[int(rng.integers(len(categories)))])
        model = _model(category) if models is None else models(category)
        for _ in range(_TRIES):
            index = int(rng.integers(len(house.receptacles)))
            receptacle = house.receptacles[index]
            yaw = float(rng.uniform(0.0, 2 * np.pi))
            spot = _draw_free_spot(rng, model, receptacle, yaw, occupied[index])
            if spot is None:
                continue
            occupied[index].append(spot)
            stands.append(_Stand(category, *_to_house(receptacle, spot.x, spot.y), yaw + receptacle.yaw, index))
            break
    return _with_objects(house, stands, models)


def move_object(
    house: House,
    placed: Sequence[PlacedObject],
    k: int,
    rng: np.random.Generator,
    models: Callable[[int], ObjectModel] | None = None,
) -> tuple[House, tuple[PlacedObject, ...]]:
    """Put an object of a house onto another surface, apart from those that stand there.

    Args:
        house: The house without the objects.
        placed: The objects in it.
        k: Number of the one that moves. If no place is free for it in many tries, it stays.
        rng: Random generator.
        models: As in `place_objects`.

    Returns:
        As `place_objects`, with the objects in the order of `placed`.

    Raises:
        ValueError: The house has a single receptacle.
    """
    check_two_receptacles(house)
    stands = [_Stand(item.category, *item.position[:2], item.yaw, item.receptacle) for item in placed]
    model = _model(placed[k].category) if models is None else models(placed[k].category)
    for _ in range(_TRIES):
        index = int(rng.integers(len(house.receptacles) - 1))
        index += index >= placed[k].receptacle
        receptacle = house.receptacles[index]
        yaw = float(rng.uniform(0.0, 2 * np.pi))
        occupied = [_footprint(receptacle, stand, models) for stand in stands if stand.receptacle == index]
        spot = _draw_free_spot(rng, model, receptacle, yaw, occupied)
        if spot is not None:
            x, y = _to_house(receptacle, spot.x, spot.y)
            stands[k] = _Stand(placed[k].category, x, y, yaw + receptacle.yaw, index)
            break
    return _with_objects(house, stands, models)


def check_two_receptacles(house: House, moves: float = 1.0) -> None:
    """Raise a ValueError if objects that move have a single receptacle."""
    if moves and len(house.receptacles) < 2:
        raise ValueError(
            f"moves must be 0 in a home with fewer than two receptacles, got {moves} in {house.name!r}, which has "
            f"{len(house.receptacles)}"
        )


class _Stand(NamedTuple):
    """Place of an object in a house: category, centre (m), rotation (rad), and number of the receptacle."""

    category: int
    x: float
    y: float
    yaw: float
    receptacle: int


def _to_house(receptacle: Receptacle, x: float, y: float) -> tuple[float, float]:
    """Convert a point of a surface, in its frame, to the house."""
    cos, sin = float(np.cos(receptacle.yaw)), float(np.sin(receptacle.yaw))
    return receptacle.centre[0] + cos * x - sin * y, receptacle.centre[1] + sin * x + cos * y


def _footprint(receptacle: Receptacle, stand: _Stand, models: Callable[[int], ObjectModel] | None) -> SurfaceFootprint:
    """Bounds of an object along the axes of the surface that it stands on."""
    model = _model(stand.category) if models is None else models(stand.category)
    cos, sin = np.cos(receptacle.yaw), np.sin(receptacle.yaw)
    x, y = stand.x - receptacle.centre[0], stand.y - receptacle.centre[1]
    return SurfaceFootprint(
        float(cos * x + sin * y), float(cos * y - sin * x), *_half_sizes(model, stand.yaw - receptacle.yaw)
    )


def _half_sizes(model: ObjectModel, yaw: float) -> tuple[float, float]:
    """Half the bounds of an object along the axes of a surface on which it is turned by `yaw` (rad)."""
    cos, sin = abs(np.cos(yaw)), abs(np.sin(yaw))
    return float(cos * model.width + sin * model.depth) / 2, float(sin * model.width + cos * model.depth) / 2


def _with_objects(
    house: House, stands: Sequence[_Stand], models: Callable[[int], ObjectModel] | None
) -> tuple[House, tuple[PlacedObject, ...]]:
    """Put objects into a house; see `place_objects`."""
    builder, names, first = ShapeBuilder(), ["building"], len(house.instances)
    placed: list[PlacedObject] = []
    for stand in stands:
        model = _model(stand.category) if models is None else models(stand.category)
        z = house.receptacles[stand.receptacle].centre[2]
        model.build(builder, names, (stand.x, stand.y), stand.yaw, z)
        position = stand.x, stand.y, z + model.height / 2
        placed.append(PlacedObject(stand.category, position, stand.yaw, first + len(placed), stand.receptacle))
    instances = [f"{YCB_CLASSES[item.category]}|{item.instance}" for item in placed]
    return house.with_objects(builder.build(), instances, tuple(placed)), tuple(placed)


def _draw_free_spot(
    rng: np.random.Generator,
    model: ObjectModel,
    receptacle: Receptacle,
    yaw: float,
    occupied: Sequence[SurfaceFootprint],
) -> SurfaceFootprint | None:
    """Draw a place on a surface, in its frame; None if the object does not fit there."""
    if model.height > receptacle.clearance - _GAP:
        return None
    half_x, half_y = _half_sizes(model, yaw)
    slack_x = receptacle.half[0] - half_x - _GAP
    slack_y = receptacle.half[1] - half_y - _GAP
    if slack_x < 0.0 or slack_y < 0.0:
        return None
    x = float(rng.uniform(-1.0, 1.0)) * slack_x
    y = float(rng.uniform(-1.0, 1.0)) * slack_y
    for other_x, other_y, other_half_x, other_half_y in occupied:
        if abs(x - other_x) < half_x + other_half_x + _GAP and abs(y - other_y) < half_y + other_half_y + _GAP:
            return None
    return SurfaceFootprint(x, y, half_x, half_y)


@cache
def _model(category: int) -> ObjectModel:
    """The model of an object; shared, so it must not be changed."""
    if not 0 <= category < len(_MAKERS):
        raise ValueError(f"category must be within 0 to {len(_MAKERS) - 1}, got {category}")
    return _MAKERS[category](YCB_CLASSES[category])


def _can(
    diameter: float, height: float, label: Colour, band: Colour, lid: Finish = TIN
) -> Callable[[str], ObjectModel]:
    """A tin can: a label around it, and a band of another colour on the label."""

    def make(name: str) -> ObjectModel:
        model = ObjectModel(name, diameter, diameter)
        r = diameter / 2
        rim = min(0.008, 0.15 * height)
        model.cylinder(0.0, 0.0, (0.0, rim), r, TIN)
        model.cylinder(0.0, 0.0, (rim, 0.55 * height), r - 0.001, Finish("label", label))
        model.cylinder(0.0, 0.0, (0.55 * height, height - rim), r - 0.001, Finish("label", band))
        model.cylinder(0.0, 0.0, (height - rim, height), r, lid)
        return model

    return make


def _carton(width: float, depth: float, height: float, colour: Colour, label: Colour) -> Callable[[str], ObjectModel]:
    """A cardboard box with a label on both large faces."""

    def make(name: str) -> ObjectModel:
        model = ObjectModel(name, width, depth)
        x = width / 2
        y = depth / 2
        model.box((-x, x), (-y + 0.001, y - 0.001), (0.0, height), Finish("paper", colour))
        for front in ((-y, -y + 0.001), (y - 0.001, y)):
            model.box((-0.72 * x, 0.72 * x), front, (0.45 * height, 0.85 * height), Finish("label", label))
            model.box((-0.5 * x, 0.5 * x), front, (0.12 * height, 0.32 * height), Finish("label", (238, 222, 170)))
        return model

    return make


def _ball(diameter: float, colour: Colour, blush: Colour, *, has_stem: bool) -> Callable[[str], ObjectModel]:
    """A round fruit with a cheek of another colour."""

    def make(name: str) -> ObjectModel:
        model = ObjectModel(name, diameter, diameter)
        r = diameter / 2
        top = diameter - (0.004 if has_stem else 0.0)
        model.ellipsoid((0.0, 0.0, top / 2), (r, r, top / 2), Finish("plain", colour))
        model.ellipsoid((0.18 * r, 0.12 * r, 0.52 * top), (0.8 * r, 0.84 * r, 0.46 * top), Finish("plain", blush))
        if has_stem:
            model.cylinder(0.0, 0.0, (top - 0.006, diameter), 0.0025, Finish("wood", (92, 66, 40)))
        return model

    return make


def _banana(name: str) -> ObjectModel:
    model = ObjectModel(name, 0.19, 0.036)
    yellow = Finish("plain", (244, 208, 48))
    tip = Finish("plain", (92, 74, 34))
    model.ellipsoid((0.0, -0.002, 0.018), (0.062, 0.016, 0.018), yellow)
    for side in (-1, 1):
        model.ellipsoid((side * 0.05, 0.003, 0.017), (0.04, 0.015, 0.015), yellow)
        model.box((side * 0.0875 - 0.0075, side * 0.0875 + 0.0075), (0.001, 0.009), (0.012, 0.02), tip)
    return model


def _strawberry(name: str) -> ObjectModel:
    model = ObjectModel(name, 0.044, 0.044)
    model.ellipsoid((0.0, 0.0, 0.024), (0.019, 0.019, 0.024), Finish("plain", (206, 32, 40)))
    model.ellipsoid((0.0, 0.0, 0.032), (0.022, 0.022, 0.018), Finish("plain", (214, 40, 46)))
    model.cylinder(0.0, 0.0, (0.047, 0.051), 0.015, Finish("leaves", (70, 140, 56)))
    model.cylinder(0.0, 0.0, (0.051, 0.055), 0.003, Finish("leaves", (70, 140, 56)))
    return model


def _lemon(name: str) -> ObjectModel:
    model = ObjectModel(name, 0.068, 0.054)
    model.ellipsoid((0.0, 0.0, 0.027), (0.031, 0.027, 0.027), Finish("plain", (246, 222, 52)))
    model.ellipsoid((0.0, 0.0, 0.027), (0.034, 0.009, 0.009), Finish("plain", (232, 202, 50)))
    return model


def _pear(name: str) -> ObjectModel:
    model = ObjectModel(name, 0.066, 0.066)
    green = Finish("plain", (176, 190, 62))
    model.ellipsoid((0.0, 0.0, 0.033), (0.033, 0.033, 0.033), green)
    model.ellipsoid((0.0, 0.0, 0.062), (0.02, 0.02, 0.03), green)
    model.cylinder(0.0, 0.0, (0.088, 0.1), 0.003, Finish("wood", (92, 66, 40)))
    return model


def _bleach(name: str) -> ObjectModel:
    model = ObjectModel(name, 0.098, 0.065)
    white = Finish("plain", (238, 238, 234))
    model.box((-0.049, 0.049), (-0.0315, 0.0315), (0.0, 0.17), white)
    for front in ((-0.0325, -0.0315), (0.0315, 0.0325)):
        model.box((-0.042, 0.042), front, (0.03, 0.14), Finish("label", (40, 84, 170)))
    model.box((-0.036, 0.036), (-0.026, 0.026), (0.17, 0.195), white)
    model.cylinder(0.0, 0.0, (0.195, 0.215), 0.02, white)
    model.cylinder(0.0, 0.0, (0.215, 0.25), 0.022, Finish("plain", (40, 84, 170)))
    return model


def _bowl(name: str) -> ObjectModel:
    model = ObjectModel(name, 0.159, 0.159)
    red = Finish("ceramic", (196, 44, 40))
    for z0, z1, radius in ((0.0, 0.01, 0.042), (0.01, 0.022, 0.058), (0.022, 0.036, 0.07), (0.036, 0.052, 0.0795)):
        model.cylinder(0.0, 0.0, (z0, z1), radius, red)
    model.cylinder(0.0, 0.0, (0.052, 0.053), 0.072, Finish("plain", (110, 22, 22)))
    return model


def _mug(name: str) -> ObjectModel:
    model = ObjectModel(name, 0.11, 0.08)  # the data sheet's 8 cm are the body; its handle sticks out by 3 cm
    red = Finish("ceramic", (210, 52, 44))
    x = -0.015
    model.cylinder(x, 0.0, (0.0, 0.081), 0.04, red)
    model.cylinder(x, 0.0, (0.081, 0.082), 0.035, Finish("plain", (70, 36, 26)))
    for z in ((0.016, 0.026), (0.058, 0.068)):
        model.box((x + 0.036, 0.045), (-0.006, 0.006), z, red)
    model.box((0.045, 0.055), (-0.006, 0.006), (0.016, 0.068), red)
    return model


def _sponge(name: str) -> ObjectModel:
    model = ObjectModel(name, 0.114, 0.072)
    model.box((-0.057, 0.057), (-0.036, 0.036), (0.0, 0.01), Finish("fabric", (240, 206, 70)))
    model.box((-0.057, 0.057), (-0.036, 0.036), (0.01, 0.014), Finish("fabric", (58, 128, 72)))
    return model


#: In the order of `YCB_CLASSES`.
_MAKERS: tuple[Callable[[str], ObjectModel], ...] = (
    _can(0.102, 0.139, (34, 60, 140), (44, 78, 170), Finish("plain", (230, 228, 222))),  # master chef can
    _carton(0.158, 0.06, 0.21, (200, 40, 34), (244, 196, 60)),  # cracker box
    _carton(0.089, 0.038, 0.175, (246, 214, 66), (40, 70, 150)),  # sugar box
    _can(0.066, 0.101, (238, 234, 226), (204, 34, 36)),  # tomato soup can
    _can(0.085, 0.033, (40, 92, 160), (90, 170, 200)),  # tuna fish can
    _carton(0.11, 0.035, 0.089, (96, 56, 36), (224, 196, 150)),  # pudding box
    _carton(0.085, 0.028, 0.073, (226, 70, 110), (250, 240, 240)),  # gelatin box
    _carton(0.097, 0.05, 0.082, (30, 52, 120), (246, 206, 60)),  # potted meat can
    _banana,
    _strawberry,
    _ball(0.075, (192, 32, 36), (214, 70, 50), has_stem=True),  # apple
    _lemon,
    _ball(0.059, (240, 160, 96), (226, 104, 84), has_stem=False),  # peach
    _pear,
    _ball(0.073, (240, 136, 26), (246, 150, 40), has_stem=False),  # orange
    _ball(0.052, (84, 34, 78), (112, 44, 86), has_stem=False),  # plum
    _bleach,
    _bowl,
    _mug,
    _sponge,
)
