"""Homes made from a number: floor plan, walls, furniture. The same number gives the same home, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memenvs.checks import check_fields, check_int, check_pair
from memenvs.houses.classes import MATERIAL_INDEX
from memenvs.houses.house import Door, House, Receptacle, Room, ShapeBuilder
from memenvs.houses.procedural import suncg_furnishing
from memenvs.houses.procedural.bsp_plan import ROOM_ORDER, Halving, draw_halved_plan
from memenvs.houses.procedural.floor_plan import FRAME, FloorPlan, Opening
from memenvs.houses.procedural.furniture_model import Colour, Look, draw_style
from memenvs.houses.procedural.house_builder import Leaf, add_door, add_entrance, add_walls, add_window, find_leaf
from memenvs.houses.procedural.placement import RoomSpace
from memenvs.houses.procedural.room_programs import PIECE_CLASSES, RoomProgramme
from memenvs.houses.procedural.wings_plan import draw_plan

#: Homes of ExtObjNav. Source: relation of the splits in the article (37 and 12 scenes); the numbers are this project's.
TRAIN_SEEDS = range(37)
VALIDATION_SEEDS = range(1000, 1012)
SPLITS = {
    "train": tuple(TRAIN_SEEDS), "validation": tuple(VALIDATION_SEEDS), "all": (*TRAIN_SEEDS, *VALIDATION_SEEDS)
}  # fmt: skip
#: Homes of the Scene Memory Transformer's tasks: 195 to learn in, of which every fifth is for validation, and 46 to test in.
#: Source: sizes of the splits in the article; the numbers are this project's.
SUNCG_SPLITS = {
    "train": tuple(seed for seed in range(195) if seed % 5 != 4), "validation": tuple(range(4, 195, 5)),
    "test": tuple(range(1000, 1046)), "all": (*range(195), *range(1000, 1046)),
}  # fmt: skip

_FLOORS: dict[str, tuple[Look, ...]] = {
    "wood": (
        Look("parquet", (176, 128, 82)), Look("planks", (150, 108, 72)), Look("planks", (196, 158, 112)),
        Look("parquet", (120, 84, 58)), Look("planks", (168, 150, 132)),
    ),
    "soft": (Look("carpet", (170, 160, 148)), Look("carpet", (122, 132, 146)), Look("carpet", (184, 168, 136))),
    "tiles": (
        Look("tiles", (206, 206, 200)), Look("checker", (190, 190, 186)), Look("tiles", (150, 164, 170)),
        Look("tiles", (188, 160, 132)), Look("marble", (214, 210, 202)),
    ),
}  # fmt: skip
_WALLS: dict[str, tuple[Look, ...]] = {
    "dry": (
        Look("plaster", (236, 230, 218)), Look("plaster", (214, 222, 224)), Look("plaster", (226, 210, 186)),
        Look("wallpaper", (196, 206, 190)), Look("wallpaper", (206, 190, 196)), Look("plaster", (176, 192, 204)),
        Look("wallpaper", (222, 206, 160)), Look("plaster", (238, 238, 234)), Look("plaster", (204, 178, 158)),
    ),
    "wet": (Look("tiles", (226, 232, 232)), Look("tiles", (176, 206, 212)), Look("tiles", (204, 220, 198))),
}  # fmt: skip
_ATTEMPTS = 40
_DOOR_WOOD: tuple[Colour, ...] = ((236, 234, 228), (160, 116, 76), (112, 76, 50), (206, 196, 178))


@dataclass(frozen=True, kw_only=True)
class HouseConfig:
    """What homes a generator makes; by default those of ExtObjNav.

    Attributes:
        rooms: Fewest and most rooms; 2 to 14. From 4 on there are a living room, kitchen, bedroom and bathroom.
        area: Smallest and largest floor area, square metres; the largest must be at least 10 for each room.
        furniture: Fewest (if they fit) and most pieces of furniture.
        passages: Chance that living areas are joined by a wide passage instead of a door; 0 to 1.
        extra_doors: Chance of a second way between living areas; 0 to 1.
        height: Of the walls, m; 2.4 or more.
        wall_thickness: Of inner walls, m; 0.06 to 0.2. Outer walls show their inner half only.
        halving: Makes SUNCG-style homes: a rectangle cut in two again and again (`memenvs.houses.procedural.bsp_plan`), furnished by tables of chances
            (`memenvs.houses.procedural.suncg_tables`). 1 to 16 rooms; `passages` and `extra_doors` hold between all rooms. None for wings along
            hallways, furnished by programmes.
        name: A home is called "<name>-<seed>".
    """

    rooms: tuple[int, int] = (6, 14)
    area: tuple[float, float] = (60.0, 200.0)
    furniture: tuple[int, int] = (15, 40)
    passages: float = 0.5
    extra_doors: float = 0.3
    height: float = 2.7
    wall_thickness: float = 0.12
    halving: Halving | None = None
    name: str = "procedural"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("rooms", "furniture"):
            check_pair(name, getattr(self, name), "fewest and most")
        fewest, most = (2, 14) if self.halving is None else (1, len(ROOM_ORDER))
        if not fewest <= self.rooms[0] <= self.rooms[1] <= most:
            raise ValueError(f"rooms must be a range within {fewest} to {most}, got {self.rooms}")
        if not 0 < self.area[0] <= self.area[1] or self.area[1] < 10.0 * self.rooms[1]:
            raise ValueError(
                f"area must be a range above 0 that offers 10 square metres for each room, got {self.area}"
            )
        if not 0 <= self.furniture[0] <= self.furniture[1]:
            raise ValueError(f"furniture must be a range from at least 0, got {self.furniture}")
        for name in ("passages", "extra_doors"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be within 0 to 1, got {getattr(self, name)}")
        if self.height < 2.4:
            raise ValueError(f"height must be at least 2.4 m, got {self.height}")
        if not 0.06 <= self.wall_thickness <= 0.2:
            raise ValueError(f"wall_thickness must be within 0.06 to 0.2 m, got {self.wall_thickness}")


#: Homes for the tasks of the Scene Memory Transformer, in place of SUNCG's.
SUNCG_STYLE = HouseConfig(
    rooms=(2, 16),
    area=(50.0, 320.0),
    furniture=(1, 90),
    passages=0.7,
    extra_doors=0.15,
    halving=Halving(),
    name="suncg_style",
)


def procedural_house(seed: int, config: HouseConfig = HouseConfig()) -> House:
    """The home with this number.

    Args:
        seed: The home's number; >= 0.
        config: What homes to make.

    Returns:
        A home in which a robot with a radius of 0.30 m gets from each room to each other.

    Raises:
        ValueError: `seed` is no integer or negative.
        RuntimeError: No such home was found, which a very small `config.area` can cause.
    """
    check_int("seed", seed, 0)
    best: House | None = None
    for attempt in range(_ATTEMPTS):
        rng = np.random.default_rng([seed, attempt])
        name = f"{config.name}-{seed}"
        if config.halving is None:
            house = _draw_house(rng, name, config, must_be_complete=attempt < _ATTEMPTS // 2)
        else:
            house = _draw_halved_house(rng, name, config, config.halving)
        if house is None:
            continue
        if best is None or count_furniture(house) > count_furniture(best):
            best = house
        if count_furniture(best) >= config.furniture[0]:
            break
    if best is None:
        raise RuntimeError(f"no home was found for seed {seed} and {config}")
    return best


def count_furniture(house: House) -> int:
    """Number of pieces of furniture that stand on the floor; what stands on them, lamps, plants and rugs do not count."""
    bottom = np.full(len(house.instances), np.inf)
    np.minimum.at(bottom, house.shapes.instance, house.shapes.centre[:, 2] - house.shapes.half[:, 2])
    return sum(
        name.partition("|")[0] in PIECE_CLASSES and z < 0.2 for name, z in zip(house.instances, bottom, strict=True)
    )


def _draw_house(rng: np.random.Generator, name: str, config: HouseConfig, *, must_be_complete: bool) -> House | None:
    """One try at a home; None if its area or number of pieces is out of range or a room lacks what it must have."""
    num_rooms = int(rng.integers(config.rooms[0], config.rooms[1] + 1))
    high = min(max(17.0 * num_rooms, config.area[0]), 0.98 * config.area[1])  # rounding may add a little
    wanted = rng.uniform(min(max(13.0 * num_rooms, 1.02 * config.area[0]), high), high)
    plan = draw_plan(rng, num_rooms, wanted, passages=config.passages, extra_doors=config.extra_doors)
    if plan is None or not config.area[0] <= sum(room.area for room in plan.rooms) <= config.area[1]:
        return None
    spaces = [
        RoomSpace(room, [o for o in plan.openings if k in o.rooms], config.wall_thickness)
        for k, room in enumerate(plan.rooms)
    ]
    leaves = _draw_leaves(rng, plan, spaces)
    has_dining_room = any(room.type == "dining_room" for room in plan.rooms)
    programmes = [
        RoomProgramme(rng, s, draw_style(rng), has_dining_room=has_dining_room, is_crowded=num_rooms > 10)
        for s in spaces
    ]
    for programme in programmes:
        programme.curtains()
    fewest, most = config.furniture
    limit = int(np.clip(round(rng.uniform(3.4, 5.5) * num_rooms), min(fewest + 8, most), most))
    for programme in programmes:
        for step in programme.essentials:
            step()
        if must_be_complete and not programme.is_complete:
            return None
    if sum(p.num_pieces for p in programmes) > most:
        return None
    for programme in programmes:
        for step in programme.usual:
            if sum(p.num_pieces for p in programmes) < limit:
                step()
    extras = [(programme, step) for programme in programmes for step in programme.extras]
    for k in rng.permutation(len(extras)):
        if sum(p.num_pieces for p in programmes) > limit - 5:
            break
        extras[k][1]()
    for programme in programmes:
        for step in programme.decoration:
            step()
    return _assemble(rng, name, plan, spaces, leaves, config)


def _draw_halved_house(rng: np.random.Generator, name: str, config: HouseConfig, halving: Halving) -> House | None:
    """One try at a SUNCG-style home; None if its rooms or pieces are out of range or there is nothing to search for."""
    plan = draw_halved_plan(
        rng, halving, rooms=config.rooms, area=config.area, passages=config.passages, extra_doors=config.extra_doors
    )
    if plan is None:
        return None
    spaces = [
        RoomSpace(room, [o for o in plan.openings if k in o.rooms], config.wall_thickness, suncg_furnishing.DOOR_DEPTH)
        for k, room in enumerate(plan.rooms)
    ]
    suncg_furnishing.furnish(rng, spaces, draw_style(rng))
    if not suncg_furnishing.has_target(spaces):
        return None
    house = _assemble(rng, name, plan, spaces, {}, config)
    return house if count_furniture(house) <= config.furniture[1] else None


def _draw_leaves(rng: np.random.Generator, plan: FloorPlan, spaces: Sequence[RoomSpace]) -> dict[int, Leaf]:
    """Open leaves for some of the doors, by the door's index; their places are taken in `spaces`."""
    leaves: dict[int, Leaf] = {}
    for index, opening in enumerate(plan.openings):
        if opening.kind == "door" and rng.random() < 0.75:
            for k in opening.rooms:
                leaf = find_leaf(rng, index, opening, spaces[k])
                if leaf is not None:
                    leaves[index] = leaf
                    break
    return leaves


def _assemble(
    rng: np.random.Generator,
    name: str,
    plan: FloorPlan,
    spaces: Sequence[RoomSpace],
    leaves: dict[int, Leaf],
    config: HouseConfig,
) -> House:
    """Makes shapes of walls, doors, windows and all that was placed."""
    builder = ShapeBuilder()
    names = ["building"]
    wood = _pick(rng, _FLOORS["wood"])
    wall_look, door_wood = _pick(rng, _WALLS["dry"]), _DOOR_WOOD[int(rng.integers(len(_DOOR_WOOD)))]
    rooms = []
    for room, space in zip(plan.rooms, spaces, strict=True):
        is_wet = room.type in ("bathroom", "laundry", "kitchen")
        floor = _pick(rng, _FLOORS["tiles"]) if is_wet else wood
        if room.type == "bedroom" and rng.random() < 0.4:
            floor = _pick(rng, _FLOORS["soft"])
        look = wall_look if rng.random() < 0.4 else _pick(rng, _WALLS["dry"])
        add_walls(builder, room, space, _pick(rng, _WALLS["wet"]) if room.type == "bathroom" else look, config.height)
        (x0, y0), (x1, y1) = room.low, room.high
        polygon = np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
        rooms.append(Room(room.type, polygon, MATERIAL_INDEX[floor.material], floor.colour))
    for index, opening in enumerate(plan.openings):
        if opening.kind == "passage":
            continue
        names.append(f"{'window' if opening.kind == 'window' else 'door'}|{len(names)}")
        space, instance = spaces[opening.rooms[0]], len(names) - 1
        if opening.kind == "door":
            add_door(builder, opening, door_wood, config.wall_thickness, leaves.get(index), instance)
        elif opening.kind == "entrance":
            add_entrance(builder, opening, space, (104, 60, 44), instance)
        else:
            add_window(builder, opening, space, instance)
    receptacles: list[Receptacle] = []
    for space in spaces:
        for model, x, y, yaw, z in space.placements:
            receptacles += model.build(builder, names, (x, y), yaw, z)
    doors = tuple(_door(opening) for opening in plan.openings if opening.is_walkable)
    return House(name, builder.build(), tuple(rooms), doors, tuple(receptacles), tuple(names), config.height)


def _pick(rng: np.random.Generator, looks: tuple[Look, ...]) -> Look:
    return looks[int(rng.integers(len(looks)))]


def _door(opening: Opening) -> Door:
    """The opening as others see it: with its clear size."""
    centre = (opening.centre, opening.line) if opening.axis == 0 else (opening.line, opening.centre)
    frame = FRAME if opening.kind == "door" else 0.0
    return Door(opening.rooms, centre, opening.width - 2 * frame, opening.top - frame, opening.axis * np.pi / 2)
