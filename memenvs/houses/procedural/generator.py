"""Procedural houses: the same seed gives the same house, bit for bit.

A house is sampled in four steps:

1. the floor plan (`wings_plan` or `bsp_plan`);
2. the choice and places of furniture (`furnishing` or `suncg_furnishing`);
3. the models of furniture (`furniture`, `fixtures`);
4. the geometry of walls, floors, doors and furniture (`house_builder`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from memenvs.checks import check_fields, check_int, check_pair
from memenvs.houses.house import House
from memenvs.houses.procedural import furnishing, suncg_furnishing
from memenvs.houses.procedural.bsp_plan import draw_bsp_plan
from memenvs.houses.procedural.finishes import draw_style
from memenvs.houses.procedural.floor_plan import FloorPlan
from memenvs.houses.procedural.house_builder import build_house, open_door_leaves
from memenvs.houses.procedural.placement import DOOR_DEPTH, RoomPlacer
from memenvs.houses.procedural.room_programs import PIECE_CLASSES
from memenvs.houses.procedural.wings_plan import draw_wings_plan

#: Attempts to sample a house. In the second half of them, a room of a house with wings may lack required furniture.
_ATTEMPTS = 40
_MOST_SUNCG_FURNITURE = 90  # pieces


@dataclass(frozen=True, kw_only=True)
class HouseConfig:
    """Settings of `procedural_house`; by default those of ExtObjNav's houses.

    Attributes:
        rooms: Minimum and maximum number of rooms, 2 to 14. From 4 on there are a living room, kitchen, bedroom and
            bathroom.
        area: Minimum and maximum floor area, square metres; the maximum must be at least 10 times that of `rooms`.
        furniture: Minimum and maximum number of pieces of furniture; a house may have fewer if they do not fit.
    """

    rooms: tuple[int, int] = (6, 14)
    area: tuple[float, float] = (60.0, 200.0)
    furniture: tuple[int, int] = (15, 40)

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("rooms", "furniture"):
            check_pair(name, getattr(self, name), "fewest and most")
        if not 2 <= self.rooms[0] <= self.rooms[1] <= 14:
            raise ValueError(f"rooms must be a range within 2 to 14, got {self.rooms}")
        if not 0 < self.area[0] <= self.area[1] or self.area[1] < 10.0 * self.rooms[1]:
            raise ValueError(
                f"area must be a range above 0 that offers 10 square metres for each room, got {self.area}"
            )
        if not 0 <= self.furniture[0] <= self.furniture[1]:
            raise ValueError(f"furniture must be a range from at least 0, got {self.furniture}")


def procedural_house(seed: int, config: HouseConfig = HouseConfig()) -> House:
    """Generate the house of a seed.

    It has wings along hallways, and is furnished by the programs of its rooms.

    Args:
        seed: Number of the house; >= 0.
        config: Settings of the generator.

    Returns:
        A house in which a robot with a radius of 0.30 m gets from each room to each other.

    Raises:
        ValueError: `seed` is no integer or negative.
        RuntimeError: No such house was found, which a very small `config.area` can cause.
    """

    def draw(rng: np.random.Generator, attempt: int) -> House | None:
        must_be_complete = attempt < _ATTEMPTS // 2
        return _draw_wings_house(rng, f"procedural-{seed}", config, must_be_complete=must_be_complete)

    return _draw_house(seed, config.furniture[0], draw)


def suncg_house(seed: int) -> House:
    """Generate the house of a seed in the style of SUNCG's.

    It is for the tasks of the Scene Memory Transformer. Its floor plan is a binary space partition
    (`memenvs.houses.procedural.bsp_plan`); its furniture is drawn with the probabilities of
    `memenvs.houses.procedural.suncg_tables`. Result and errors are those of `procedural_house`.
    """
    return _draw_house(seed, 1, lambda rng, _: _draw_suncg_house(rng, f"suncg_style-{seed}"))


def _draw_house(seed: int, fewest: int, draw: Callable[[np.random.Generator, int], House | None]) -> House:
    """Return the first house with enough furniture; without one, that with the most furniture.

    Args:
        seed: Number of the house; >= 0.
        fewest: Pieces of furniture that are enough.
        draw: Draws a house, by a generator and the number of the attempt; None if it is out of range.
    """
    check_int("seed", seed, 0)
    best: House | None = None
    for attempt in range(_ATTEMPTS):
        house = draw(np.random.default_rng([seed, attempt]), attempt)
        if house is None:
            continue
        if best is None or count_furniture(house) > count_furniture(best):
            best = house
        if count_furniture(best) >= fewest:
            break
    if best is None:
        raise RuntimeError(f"no house was found for seed {seed}")
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
    plan = draw_wings_plan(rng, num_rooms, area)
    if plan is None or not config.area[0] <= sum(room.area for room in plan.rooms) <= config.area[1]:
        return None
    placers = _make_placers(plan, DOOR_DEPTH)
    door_leaves = open_door_leaves(rng, plan, placers)  # before furniture, which must not block them
    if not furnishing.furnish(rng, placers, config.furniture, must_be_complete=must_be_complete):
        return None
    return build_house(rng, name, plan, placers, door_leaves)


def _draw_suncg_house(rng: np.random.Generator, name: str) -> House | None:
    """Sample a SUNCG-style house; None if rooms or furniture are out of range or no target object was placed."""
    plan = draw_bsp_plan(rng)
    if plan is None:
        return None
    placers = _make_placers(plan, suncg_furnishing.DOOR_DEPTH)
    suncg_furnishing.furnish(rng, placers, draw_style(rng))
    if not suncg_furnishing.has_target(placers):
        return None
    house = build_house(rng, name, plan, placers, {})  # doorways are empty
    return house if count_furniture(house) <= _MOST_SUNCG_FURNITURE else None


def _make_placers(plan: FloorPlan, door_depth: float) -> list[RoomPlacer]:
    """Make one placer for each room, with the openings (doors and passages) of its walls."""
    return [
        RoomPlacer(room, [opening for opening in plan.openings if k in opening.rooms], door_depth)
        for k, room in enumerate(plan.rooms)
    ]
