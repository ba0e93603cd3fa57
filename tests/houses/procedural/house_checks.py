"""Checks that every procedural house must pass, by independent geometry."""

import numpy as np

from memenvs.houses.house import House, points_in_polygon
from tests.houses.solids import intersections, reachable_parts


def class_of(house: House, row: int) -> str:
    """Name of the class of the instance that a shape belongs to."""
    return house.instances[house.shapes.instance[row]].partition("|")[0]


def check_connected(house: House) -> None:
    """All inner doors and all rooms belong to one part of the floor that a disc of 0.30 m can reach.

    Of every room at least 0.3 square metres must belong to it.
    """
    cell = 0.05
    labels, x, y = reachable_parts(house, 0.30, cell)
    part = int(np.bincount(labels[labels > 0]).argmax())
    for door in house.doors:
        i, j = np.searchsorted(x, door.centre[0]), np.searchsorted(y, door.centre[1])
        assert labels[i, j] == part or -1 in door.rooms, (house.name, door)
    points = np.stack(np.meshgrid(x, y, indexing="ij"), -1).reshape(-1, 2)
    for room in house.rooms:
        inside = labels.ravel()[points_in_polygon(points, room.polygon)]
        assert (inside == part).sum() * cell**2 > 0.3, (house.name, room.type)


def check_disjoint(house: House) -> None:
    """No two objects overlap; rugs lie below furniture."""
    for i, j in intersections(house.shapes):
        names = {class_of(house, i), class_of(house, j)}
        assert "rug" in names, (house.name, names, house.shapes.centre[i], house.shapes.centre[j])
