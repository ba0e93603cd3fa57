"""Homes made from a number: floor plan, walls, furniture. The same number gives the same home, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memenvs.checks import check_fields, check_int, check_pair
from memenvs.houses.classes import MATERIAL_INDEX
from memenvs.houses.house import Door, House, Receptacle, Room, ShapeBuilder
from memenvs.houses.procedural import suncg_furnishing
from memenvs.houses.procedural.bsp_plan import ROOM_ORDER, BSPConfig, draw_bsp_plan
from memenvs.houses.procedural.finishes import (
    CARPET_FLOORS,
    DOOR_WOODS,
    DRY_WALLS,
    ENTRANCE_WOOD,
    TILE_FLOORS,
    WET_WALLS,
    WOOD_FLOORS,
    draw_style,
    pick_finish,
)
from memenvs.houses.procedural.floor_plan import FRAME, FloorPlan, Opening
from memenvs.houses.procedural.house_builder import (
    DoorLeaf,
    add_door,
    add_entrance,
    add_walls,
    add_window,
    find_door_leaf,
)
from memenvs.houses.procedural.placement import RoomPlacer
from memenvs.houses.procedural.room_programs import PIECE_CLASSES, RoomProgram
from memenvs.houses.procedural.wings_plan import draw_wings_plan

_ATTEMPTS = 40


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
    bsp: BSPConfig | None = None
    name: str = "procedural"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("rooms", "furniture"):
            check_pair(name, getattr(self, name), "fewest and most")
        fewest, most = (2, 14) if self.bsp is None else (1, len(ROOM_ORDER))
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
    bsp=BSPConfig(),
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
        if config.bsp is None:
            house = _draw_wings_house(rng, name, config, must_be_complete=attempt < _ATTEMPTS // 2)
        else:
            house = _draw_suncg_house(rng, name, config, config.bsp)
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


def _draw_wings_house(
    rng: np.random.Generator, name: str, config: HouseConfig, *, must_be_complete: bool
) -> House | None:
    """One try at a home; None if its area or number of pieces is out of range or a room lacks what it must have."""
    num_rooms = int(rng.integers(config.rooms[0], config.rooms[1] + 1))
    high = min(max(17.0 * num_rooms, config.area[0]), 0.98 * config.area[1])  # rounding may add a little
    wanted = rng.uniform(min(max(13.0 * num_rooms, 1.02 * config.area[0]), high), high)
    plan = draw_wings_plan(rng, num_rooms, wanted, passages=config.passages, extra_doors=config.extra_doors)
    if plan is None or not config.area[0] <= sum(room.area for room in plan.rooms) <= config.area[1]:
        return None
    placers = [
        RoomPlacer(room, [o for o in plan.openings if k in o.rooms], config.wall_thickness)
        for k, room in enumerate(plan.rooms)
    ]
    leaves = _draw_door_leaves(rng, plan, placers)
    has_dining_room = any(room.type == "dining_room" for room in plan.rooms)
    programs = [
        RoomProgram(rng, s, draw_style(rng), has_dining_room=has_dining_room, is_crowded=num_rooms > 10)
        for s in placers
    ]
    for program in programs:
        program.curtains()
    fewest, most = config.furniture
    limit = int(np.clip(round(rng.uniform(3.4, 5.5) * num_rooms), min(fewest + 8, most), most))
    for program in programs:
        for step in program.essentials:
            step()
        if must_be_complete and not program.is_complete:
            return None
    if sum(p.num_pieces for p in programs) > most:
        return None
    for program in programs:
        for step in program.usual:
            if sum(p.num_pieces for p in programs) < limit:
                step()
    extras = [(program, step) for program in programs for step in program.extras]
    for k in rng.permutation(len(extras)):
        if sum(p.num_pieces for p in programs) > limit - 5:
            break
        extras[k][1]()
    for program in programs:
        for step in program.decoration:
            step()
    return _assemble(rng, name, plan, placers, leaves, config)


def _draw_suncg_house(rng: np.random.Generator, name: str, config: HouseConfig, bsp: BSPConfig) -> House | None:
    """One try at a SUNCG-style home; None if its rooms or pieces are out of range or there is nothing to search for."""
    plan = draw_bsp_plan(
        rng, bsp, rooms=config.rooms, area=config.area, passages=config.passages, extra_doors=config.extra_doors
    )
    if plan is None:
        return None
    placers = [
        RoomPlacer(room, [o for o in plan.openings if k in o.rooms], config.wall_thickness, suncg_furnishing.DOOR_DEPTH)
        for k, room in enumerate(plan.rooms)
    ]
    suncg_furnishing.furnish(rng, placers, draw_style(rng))
    if not suncg_furnishing.has_target(placers):
        return None
    house = _assemble(rng, name, plan, placers, {}, config)
    return house if count_furniture(house) <= config.furniture[1] else None


def _draw_door_leaves(rng: np.random.Generator, plan: FloorPlan, placers: Sequence[RoomPlacer]) -> dict[int, DoorLeaf]:
    """Open leaves for some of the doors, by the door's index; their places are taken in `spaces`."""
    leaves: dict[int, DoorLeaf] = {}
    for index, opening in enumerate(plan.openings):
        if opening.kind == "door" and rng.random() < 0.75:
            for k in opening.rooms:
                leaf = find_door_leaf(rng, index, opening, placers[k])
                if leaf is not None:
                    leaves[index] = leaf
                    break
    return leaves


def _assemble(
    rng: np.random.Generator,
    name: str,
    plan: FloorPlan,
    placers: Sequence[RoomPlacer],
    leaves: dict[int, DoorLeaf],
    config: HouseConfig,
) -> House:
    """Makes shapes of walls, doors, windows and all that was placed."""
    builder = ShapeBuilder()
    names = ["building"]
    wood = pick_finish(rng, WOOD_FLOORS)
    wall_look, door_wood = pick_finish(rng, DRY_WALLS), DOOR_WOODS[int(rng.integers(len(DOOR_WOODS)))]
    rooms = []
    for room, placer in zip(plan.rooms, placers, strict=True):
        is_wet = room.type in ("bathroom", "laundry", "kitchen")
        floor = pick_finish(rng, TILE_FLOORS) if is_wet else wood
        if room.type == "bedroom" and rng.random() < 0.4:
            floor = pick_finish(rng, CARPET_FLOORS)
        finish = wall_look if rng.random() < 0.4 else pick_finish(rng, DRY_WALLS)
        add_walls(
            builder, room, placer, pick_finish(rng, WET_WALLS) if room.type == "bathroom" else finish, config.height
        )
        (x0, y0), (x1, y1) = room.low, room.high
        polygon = np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
        rooms.append(Room(room.type, polygon, MATERIAL_INDEX[floor.material], floor.colour))
    for index, opening in enumerate(plan.openings):
        if opening.kind == "passage":
            continue
        names.append(f"{'window' if opening.kind == 'window' else 'door'}|{len(names)}")
        placer, instance = placers[opening.rooms[0]], len(names) - 1
        if opening.kind == "door":
            add_door(builder, opening, door_wood, config.wall_thickness, leaves.get(index), instance)
        elif opening.kind == "entrance":
            add_entrance(builder, opening, placer, ENTRANCE_WOOD, instance)
        else:
            add_window(builder, opening, placer, instance)
    receptacles: list[Receptacle] = []
    for placer in placers:
        for model, x, y, yaw, z in placer.placements:
            receptacles += model.build(builder, names, (x, y), yaw, z)
    doors = tuple(_door(opening) for opening in plan.openings if opening.is_walkable)
    return House(name, builder.build(), tuple(rooms), doors, tuple(receptacles), tuple(names), config.height)


def _door(opening: Opening) -> Door:
    """The opening as others see it: with its clear size."""
    centre = (opening.centre, opening.line) if opening.axis == 0 else (opening.line, opening.centre)
    frame = FRAME if opening.kind == "door" else 0.0
    return Door(opening.rooms, centre, opening.width - 2 * frame, opening.top - frame, opening.axis * np.pi / 2)
