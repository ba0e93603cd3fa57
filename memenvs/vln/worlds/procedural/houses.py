"""Houses of the procedural world: floor plan, items, viewpoints and edges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from memenvs.houses.procedural.bsp_plan import draw_doorways, snap_to_grid, split_rectangle
from memenvs.houses.procedural.floor_plan import Opening, PlanRoom, Rectangle, find_wall_segments
from memenvs.vln.graph import Graph

#: Types of rooms. The room with the most doors is the hallway instead.
ROOM_TYPES = (
    "attic", "bathroom", "bedroom", "closet", "conservatory", "den", "dining room", "dressing room", "gym", "kitchen",
    "laundry", "library", "living room", "lounge", "music room", "nursery", "office", "pantry", "playroom", "sauna",
    "studio", "study", "workshop",
)  # fmt: skip
HALLWAY = "hallway"
ITEMS = (
    "aquarium", "armchair", "basket", "bench", "bicycle", "bookshelf", "bust", "cabinet", "candle", "carpet", "chair",
    "chest", "clock", "crib", "curtain", "cushion", "desk", "dresser", "drum", "easel", "fan", "fireplace", "flag",
    "globe", "guitar", "harp", "heater", "kettle", "ladder", "lamp", "map", "mirror", "painting", "piano", "plant",
    "printer", "radio", "rug", "safe", "scooter", "screen", "sculpture", "shelf", "sink", "sofa", "statue", "stool",
    "stove", "suitcase", "table", "telescope", "toy", "trophy", "trunk", "tub", "umbrella", "vase", "wardrobe",
)  # fmt: skip
COLOURS = ("black", "blue", "brown", "green", "grey", "orange", "pink", "purple", "red", "silver", "white", "yellow")

_SIDES = (18.0, 30.0), (14.0, 24.0)  # m; ranges of the width and the depth of a house
_ROOM_AREA = 24.0  # m^2; larger rooms are divided
_EXTRA_DOORS = 0.35  # probability of a door between neighbours that are connected already
_PLAN_TRIES = 40  # floor plans of a house
_POSITION_TRIES = 400  # positions for the viewpoints of a room
_ITEMS_IN_A_ROOM = 2, 4  # fewest and most
_CAMERA_HEIGHT = 1.5  # m
# Smallest distances of viewpoints in a room, m: to each other, to doors and to walls.
_SPACING = 2.1
_FROM_DOOR = 0.7
_FROM_WALL = 0.3
_AREA_PER_VIEWPOINT = 5.0  # m^2
_MAX_VIEWPOINTS = 8  # of a room
_LONGEST_EDGE = 6.0  # m; only edges of the spanning tree may be longer
_CLEARANCE = 0.7  # no third viewpoint is nearer to the centre of an edge than this fraction of half its length


@dataclass(frozen=True)
class Landmark:
    """Description of a viewpoint, as instructions name it.

    Attributes:
        rooms: Type of its room; in a door the types of both rooms, sorted.
        item: Colour and name of the nearest item in its room; None in a door.
    """

    rooms: tuple[str, ...]
    item: tuple[str, str] | None = None


@dataclass(frozen=True)
class RoomItem:
    """An item in a room.

    Attributes:
        name: One of `ITEMS`.
        colour: One of `COLOURS`.
        room: Index of its room.
        position: x and y, m.
    """

    name: str
    colour: str
    room: int
    position: tuple[float, float]


@dataclass(frozen=True, eq=False)
class ProceduralHouse:
    """A procedural house.

    Attributes:
        graph: Viewpoints and edges.
        room: int64, (V, 2); the room of each viewpoint twice, or the two rooms that its door joins.
        landmarks: V descriptions, one of each viewpoint.
        items: Items of all rooms.
    """

    graph: Graph
    room: np.ndarray
    landmarks: tuple[Landmark, ...]
    items: tuple[RoomItem, ...]

    @cached_property
    def is_visible(self) -> np.ndarray:
        """bool, (V, V); True for viewpoints that share a room; those in its doors belong to it."""
        return (self.room[:, None, :, None] == self.room[None, :, None, :]).any((2, 3))

    @cached_property
    def next_node(self) -> np.ndarray:
        """int64, (V, V); [u, v]: next node on the shortest path from u to v; u where v is u."""
        candidates = self.graph.candidates
        exists = candidates.node[:, :, None] >= 0
        lengths = candidates.length[:, :, None] + self.graph.distance[candidates.node]  # (V, K, V)
        total = np.where(exists, lengths, np.inf)
        least = total <= total.min(1, keepdims=True) + 1e-9
        nodes = np.where(least, candidates.node[:, :, None], len(self.graph)).min(1)
        np.fill_diagonal(nodes, np.arange(len(nodes)))
        return nodes

    @cached_property
    def num_edges(self) -> np.ndarray:
        """int64, (V, V); number of edges of the shortest path, 7 for 7 or more."""
        goal = np.arange(len(self.graph))
        node, edges = np.repeat(goal[:, None], len(goal), 1), np.zeros((len(goal), len(goal)), np.int64)
        for _ in range(7):  # legs have at most 6
            edges += node != goal
            node = self.next_node[node, goal]
        return edges

    def path(self, start: int, goal: int, max_edges: int | None = None) -> tuple[int, ...]:
        """Shortest path as nodes, both ends included; at most its first `max_edges` edges."""
        path = [start]
        while path[-1] != goal and (max_edges is None or len(path) <= max_edges):
            path.append(int(self.next_node[path[-1], goal]))
        return tuple(path)


@lru_cache(maxsize=256)
def make_house(seed: int) -> ProceduralHouse:
    """Make the house with this seed; the same seed gives the same bits.

    Source:
        The plan is divided as in `memenvs.houses.procedural.bsp_plan`. Doors are on a random spanning tree of the walls
        and on 35 % of the others. Each door has a viewpoint, each room up to 8.

    Raises:
        RuntimeError: No floor plan was found.
    """
    for attempt in range(_PLAN_TRIES):
        rng = np.random.default_rng([seed, attempt])
        width, depth = (snap_to_grid(rng.uniform(*sides)) for sides in _SIDES)
        rooms = [
            PlanRoom(part.low, part.high, "other")
            for part in split_rectangle(rng, Rectangle((0.0, 0.0), (width, depth)), _ROOM_AREA)
        ]
        doors = draw_doorways(rng, find_wall_segments(rooms)[0], len(rooms), 0.0, _EXTRA_DOORS)
        if doors is not None:
            return _furnish(seed, rooms, doors, rng)
    raise RuntimeError(f"no house was found for seed {seed}")


def _furnish(seed: int, rooms: list[PlanRoom], doors: list[Opening], rng: np.random.Generator) -> ProceduralHouse:
    """Draw types, items, viewpoints and edges for a floor plan."""
    num_doors = np.bincount([room for door in doors for room in door.rooms], minlength=len(rooms))
    # In random order; no type comes again before all have.
    types = [ROOM_TYPES[k] for _ in range(0, len(rooms), len(ROOM_TYPES)) for k in rng.permutation(len(ROOM_TYPES))][
        : len(rooms)
    ]
    types[int(num_doors.argmax())] = HALLWAY
    # One entry per viewpoint, those of the doors first.
    positions = [np.array([door.centre, door.line] if door.axis == 0 else [door.line, door.centre]) for door in doors]
    viewpoint_rooms = [door.rooms for door in doors]
    landmarks = [Landmark(tuple(sorted(types[room] for room in door.rooms))) for door in doors]
    edges: list[tuple[int, int]] = []
    items: list[RoomItem] = []
    for number, room in enumerate(rooms):
        room_items = [
            _draw_item(rng, number, room) for _ in range(rng.integers(_ITEMS_IN_A_ROOM[0], _ITEMS_IN_A_ROOM[1] + 1))
        ]
        members = [k for k, door in enumerate(doors) if number in door.rooms]  # viewpoints of the room, its doors first
        for position in _draw_viewpoints(rng, room, [positions[k] for k in members]):
            distances = np.hypot(*(np.array([item.position for item in room_items]) - position).T)
            nearest = room_items[int((distances <= distances.min() + 1e-9).argmax())]  # the first of equal ones
            members.append(len(positions))
            positions.append(position)
            viewpoint_rooms.append((number, number))
            landmarks.append(Landmark((types[number],), (nearest.colour, nearest.name)))
        edges += [(members[i], members[j]) for i, j in _connect_viewpoints(np.array([positions[k] for k in members]))]
        items += room_items
    graph = Graph(
        f"procedural-{seed}",
        tuple(f"{seed}-{k}" for k in range(len(positions))),
        np.column_stack([np.array(positions), np.full(len(positions), _CAMERA_HEIGHT)]),
        np.array(sorted(set(edges)), np.int64),
    )
    return ProceduralHouse(graph, np.array(viewpoint_rooms), tuple(landmarks), tuple(items))


def _draw_item(rng: np.random.Generator, number: int, room: PlanRoom) -> RoomItem:
    name, colour = ITEMS[int(rng.integers(len(ITEMS)))], COLOURS[int(rng.integers(len(COLOURS)))]
    x, y = (float(rng.uniform(low, high)) for low, high in zip(room.low, room.high, strict=True))
    return RoomItem(name, colour, number, (x, y))


def _draw_viewpoints(rng: np.random.Generator, room: PlanRoom, doors: list[np.ndarray]) -> list[np.ndarray]:
    """Draw viewpoints of a room, apart from each other and from its doors; at least one."""
    count = int(np.clip(room.area / _AREA_PER_VIEWPOINT, 1, _MAX_VIEWPOINTS))
    low, high = np.array(room.low) + _FROM_WALL, np.array(room.high) - _FROM_WALL
    drawn = rng.uniform(low, high, (_POSITION_TRIES, 2))
    is_free = (_distances(drawn, np.array(doors)) >= _FROM_DOOR).all(1)
    viewpoints: list[np.ndarray] = []
    while is_free.any() and len(viewpoints) < count:
        viewpoints.append(drawn[is_free.argmax()])  # the first that is still free
        is_free &= _distances(drawn, viewpoints[-1][None])[:, 0] >= _SPACING
    return viewpoints or [(low + high) / 2]


def _connect_viewpoints(positions: np.ndarray) -> list[tuple[int, int]]:
    """Choose edges between the viewpoints of a room.

    They are the minimum spanning tree, so that the room is connected, and all unobstructed pairs: those nearer than 6 m
    with no third viewpoint near the middle.

    Args:
        positions: float64, (K, 2); m.
    """
    count = len(positions)
    distance = _distances(positions, positions)
    middle = (positions[:, None] + positions) / 2
    from_middle = _distances(middle.reshape(-1, 2), positions).reshape(count, count, count)  # [i, j, third]
    from_middle[np.arange(count), :, np.arange(count)] = np.inf
    from_middle[:, np.arange(count), np.arange(count)] = np.inf
    is_open = (distance < _LONGEST_EDGE) & (from_middle.min(2) >= _CLEARANCE * distance / 2)
    first, second = np.triu_indices(count, 1)
    group = list(range(count))  # Kruskal's algorithm: pairs by distance; an edge between two groups joins them
    edges = []
    for k in np.argsort(distance[first, second], kind="stable"):
        i, j = int(first[k]), int(second[k])
        if group[i] != group[j] or is_open[i, j]:
            edges.append((i, j))
            group = [group[i] if number == group[j] else number for number in group]
    return edges


def _distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Distances between points (P, 2) and (Q, 2), m; (P, Q)."""
    return np.hypot(*(one[:, None] - other).transpose(2, 0, 1))
