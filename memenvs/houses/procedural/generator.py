"""Procedural houses: the same seed gives the same house, bit for bit.

A house is sampled in four steps:

1. the floor plan (`wings_plan` or `bsp_plan`);
2. the choice and places of furniture (`furnishing` or `suncg_furnishing`);
3. the models of furniture (`furniture`, `fixtures`);
4. the geometry of walls, floors, doors and furniture (`house_builder`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.checks import check_fields, check_int, check_pair
from memenvs.houses.house import House
from memenvs.houses.procedural import furnishing, suncg_furnishing
from memenvs.houses.procedural.bsp_plan import ROOM_ORDER, BSPConfig, draw_bsp_plan
from memenvs.houses.procedural.finishes import draw_style
from memenvs.houses.procedural.floor_plan import FloorPlan
from memenvs.houses.procedural.house_builder import DoorLeaf, build_house, open_door_leaves
from memenvs.houses.procedural.placement import DOOR_DEPTH, RoomPlacer
from memenvs.houses.procedural.room_programs import PIECE_CLASSES
from memenvs.houses.procedural.wings_plan import draw_wings_plan

#: Attempts to sample a house. In the second half of them, a room of a house with wings may lack required furniture.
_ATTEMPTS = 40


@dataclass(frozen=True, kw_only=True)
class HouseConfig:
    """Settings of the generator; by default those of ExtObjNav's houses.

    Attributes:
        rooms: Minimum and maximum number of rooms, 2 to 14. From 4 on there are a living room, kitchen, bedroom and
            bathroom.
        area: Minimum and maximum floor area, square metres; the maximum must be at least 10 times that of `rooms`.
        furniture: Minimum and maximum number of pieces of furniture; a house may have fewer if they do not fit.
        passages: Probability that living areas are joined by a wide passage instead of a door; 0 to 1.
        extra_doors: Probability of a door between living areas that are connected already; 0 to 1.
        bsp: Settings of SUNCG-style houses: floor plans by binary space partition
            (`memenvs.houses.procedural.bsp_plan`), furnished by tables of probabilities
            (`memenvs.houses.procedural.suncg_tables`), with 1 to 16 rooms; `passages` and `extra_doors` then concern
            all rooms. None for wings along hallways, furnished by room programs.
        name: A house is called "<name>-<seed>".
    """

    rooms: tuple[int, int] = (6, 14)
    area: tuple[float, float] = (60.0, 200.0)
    furniture: tuple[int, int] = (15, 40)
    passages: float = 0.5
    extra_doors: float = 0.3
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


#: Houses for the tasks of the Scene Memory Transformer, in place of SUNCG's.
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
    """Generate the house of a seed.

    Args:
        seed: Number of the house; >= 0.
        config: Settings of the generator.

    Returns:
        A house in which a robot with a radius of 0.30 m gets from each room to each other.

    Raises:
        ValueError: `seed` is no integer or negative.
        RuntimeError: No such house was found, which a very small `config.area` can cause.
    """
    check_int("seed", seed, 0)
    # The first house with enough furniture is returned; without one, that with the most furniture.
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
        raise RuntimeError(f"no house was found for seed {seed} and {config}")
    return best


def count_furniture(house: House) -> int:
    """Count the pieces of furniture on the floor, without lamps, plants and rugs."""
    bottom = np.full(len(house.instances), np.inf)  # lowest point of each instance, m
    np.minimum.at(bottom, house.shapes.instance, house.shapes.centre[:, 2] - house.shapes.half[:, 2])
    classes = [name.partition("|")[0] for name in house.instances]  # an instance is called "class|number"
    # furniture with a bottom above 0.2 m hangs on a wall
    return sum(name in PIECE_CLASSES and z < 0.2 for name, z in zip(classes, bottom, strict=True))


def _draw_wings_house(
    rng: np.random.Generator, name: str, config: HouseConfig, *, must_be_complete: bool
) -> House | None:
    """Sample a house with wings; None if area or furniture are out of range or a room lacks required furniture."""
    num_rooms = int(rng.integers(config.rooms[0], config.rooms[1] + 1))
    # 13 to 17 square metres a room, 2 % within the range: the plan is rounded to a grid, which changes the area
    high = min(max(17.0 * num_rooms, config.area[0]), 0.98 * config.area[1])
    low = min(max(13.0 * num_rooms, 1.02 * config.area[0]), high)
    area = rng.uniform(low, high)
    plan = draw_wings_plan(rng, num_rooms, area, passages=config.passages, extra_doors=config.extra_doors)
    if plan is None or not config.area[0] <= sum(room.area for room in plan.rooms) <= config.area[1]:
        return None
    placers = _make_placers(plan, DOOR_DEPTH)
    door_leaves = open_door_leaves(rng, plan, placers)  # before furniture, which must not block them
    if not furnishing.furnish(rng, placers, config.furniture, must_be_complete=must_be_complete):
        return None
    return build_house(rng, name, plan, placers, door_leaves)


def _draw_suncg_house(rng: np.random.Generator, name: str, config: HouseConfig, bsp: BSPConfig) -> House | None:
    """Sample a SUNCG-style house; None if rooms or furniture are out of range or no target object was placed."""
    plan = draw_bsp_plan(
        rng, bsp, rooms=config.rooms, area=config.area, passages=config.passages, extra_doors=config.extra_doors
    )
    if plan is None:
        return None
    placers = _make_placers(plan, suncg_furnishing.DOOR_DEPTH)
    suncg_furnishing.furnish(rng, placers, draw_style(rng))
    if not suncg_furnishing.has_target(placers):
        return None
    door_leaves: dict[int, DoorLeaf] = {}  # doorways are empty
    house = build_house(rng, name, plan, placers, door_leaves)
    return house if count_furniture(house) <= config.furniture[1] else None


def _make_placers(plan: FloorPlan, door_depth: float) -> list[RoomPlacer]:
    """Make one placer for each room, with the openings (doors and passages) of its walls."""
    return [
        RoomPlacer(room, [opening for opening in plan.openings if k in opening.rooms], door_depth)
        for k, room in enumerate(plan.rooms)
    ]
