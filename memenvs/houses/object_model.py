"""Models of objects: a few boxes, cylinders and ellipsoids in the object's own frame.

The procedural furniture (`memenvs.houses.procedural.furniture`, `fixtures`) and the small objects of ExtObjNav
(`memenvs.houses.ycb`) are made of them. Frame of a model, in metres: the origin is on the floor in the centre of the
outline (a rectangle seen from above), x points to the object's own right, y from the back to the front, z up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from memenvs.houses.classes import CLASS_INDEX, MATERIAL_INDEX
from memenvs.houses.house import BOX, CYLINDER, ELLIPSOID, Finish, Receptacle, ShapeBuilder, Span, SupportSurface


class ModelPart(NamedTuple):
    """One shape of a model; `instance` is an index into `ObjectModel.classes`."""

    instance: int
    kind: int
    centre: tuple[float, float, float]
    half: tuple[float, float, float]
    finish: Finish


class ObjectModel:
    """An object, such as a piece of furniture, and what stands on it.

    Args:
        name: Semantic class of the object.
        width: Outline along x, m.
        depth: Outline along y, m.

    Attributes:
        width: Outline along x, m.
        depth: Outline along y, m.
        classes: Semantic class of each instance; entry 0 is the object itself.
        parts: The shapes.
        surfaces: Where small objects may be put.
    """

    def __init__(self, name: str, width: float, depth: float) -> None:
        self.width = width
        self.depth = depth
        self.classes = [name]
        self.parts: list[ModelPart] = []
        self.surfaces: list[SupportSurface] = []

    @property
    def name(self) -> str:
        """Semantic class of the object."""
        return self.classes[0]

    @property
    def height(self) -> float:
        """Top of the highest part, m."""
        return max(part.centre[2] + part.half[2] for part in self.parts)

    @property
    def x_span(self) -> Span:
        """Extents of the whole width, m."""
        return self.x_inside(0.0)

    @property
    def y_span(self) -> Span:
        """Extents of the whole depth, m."""
        return self.y_inside(0.0)

    def x_inside(self, rim: float) -> Span:
        """Extents of the width without a rim at both sides, m."""
        return -self.width / 2 + rim, self.width / 2 - rim

    def y_inside(self, rim: float) -> Span:
        """Extents of the depth without a rim at both ends, m."""
        return -self.depth / 2 + rim, self.depth / 2 - rim

    def begin_instance(self, name: str) -> None:
        """Start another instance, such as a pillow on a bed; shapes added from now on belong to it."""
        self.classes.append(name)

    def box(self, x: Span, y: Span, z: Span, finish: Finish) -> None:
        """Add a box with these extents."""
        centre = ((x[0] + x[1]) / 2, (y[0] + y[1]) / 2, (z[0] + z[1]) / 2)
        self._add(BOX, centre, (x[1] - x[0], y[1] - y[0], z[1] - z[0]), finish)

    def cylinder(self, x: float, y: float, z: Span, radius: float, finish: Finish) -> None:
        """Add an upright cylinder."""
        self._add(CYLINDER, (x, y, (z[0] + z[1]) / 2), (2 * radius, 2 * radius, z[1] - z[0]), finish)

    def ellipsoid(self, centre: tuple[float, float, float], half: tuple[float, float, float], finish: Finish) -> None:
        """Add an ellipsoid."""
        self._add(ELLIPSOID, centre, (2 * half[0], 2 * half[1], 2 * half[2]), finish)

    def surface(self, x: Span, y: Span, z: float, clearance: float = 1.0) -> None:
        """Allow small objects to stand within these extents."""
        self.surfaces.append(SupportSurface(x, y, z, clearance))

    def legs(self, z: Span, radius: float, finish: Finish, inset: float = 0.05) -> None:
        """Add four legs near the corners of the outline."""
        x = self.width / 2 - inset
        y = self.depth / 2 - inset
        for sign_x, sign_y in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            self.cylinder(sign_x * x, sign_y * y, z, radius, finish)

    def drawers(self, x: Span, z: Span, columns: int, rows: int, front: Finish, knob: Finish) -> None:
        """Add drawer or door fronts with knobs to a body.

        Args:
            x: Extents of all fronts, m. They fill the last 2.5 cm of the outline's depth.
            z: Extents of all fronts, m.
            columns: Fronts side by side.
            rows: Fronts above each other.
            front: Finish of the fronts.
            knob: Finish of the knobs.
        """
        y = self.depth / 2
        front_width = (x[1] - x[0]) / columns
        front_height = (z[1] - z[0]) / rows
        for column in range(columns):
            for row in range(rows):
                x0 = x[0] + column * front_width
                z0 = z[0] + row * front_height
                self.box(
                    (x0 + 0.01, x0 + front_width - 0.01),
                    (y - 0.025, y - 0.012),
                    (z0 + 0.01, z0 + front_height - 0.01),
                    front,
                )
                x_knob = x0 + front_width / 2
                z_knob = z0 + front_height / 2
                self.box((x_knob - 0.04, x_knob + 0.04), (y - 0.012, y), (z_knob - 0.008, z_knob + 0.008), knob)

    def merge_instances(self, *names: str) -> ObjectModel:
        """Make the instances of these classes part of the object itself; returns the model."""
        kept = [k for k, name in enumerate(self.classes) if k == 0 or name not in names]
        self.parts = [
            part._replace(instance=kept.index(part.instance) if part.instance in kept else 0) for part in self.parts
        ]
        self.classes = [self.classes[k] for k in kept]
        return self

    def stretched(self, width: float, depth: float) -> ObjectModel:
        """The same object with another outline (m); heights stay, and round parts stay round."""
        scale_x = width / self.width
        scale_y = depth / self.depth
        smaller = min(scale_x, scale_y)
        other = ObjectModel(self.name, width, depth)
        other.classes = list(self.classes)
        for part in self.parts:
            (x, y, z), (half_x, half_y, half_z) = part.centre, part.half
            if part.kind == BOX:
                half = (scale_x * half_x, scale_y * half_y, half_z)
            else:
                half = (smaller * half_x, smaller * half_y, half_z)
            other.parts.append(part._replace(centre=(scale_x * x, scale_y * y, z), half=half))
        for (x0, x1), (y0, y1), z, clearance in self.surfaces:
            other.surface((scale_x * x0, scale_x * x1), (scale_y * y0, scale_y * y1), z, clearance)
        return other

    def build(
        self, builder: ShapeBuilder, names: list[str], position: tuple[float, float], yaw: float, height: float = 0.0
    ) -> list[Receptacle]:
        """Add the model to a house.

        Args:
            builder: Gets the shapes.
            names: Names of the house's instances; those of this model are appended.
            position: (x, y) of the outline's middle, m.
            yaw: Rotation of the model's own x axis, rad.
            height: Height of the model's z = 0 above the floor, m.

        Returns:
            The model's surfaces in the frame of the house.
        """
        cos = float(np.cos(yaw))
        sin = float(np.sin(yaw))
        first = len(names)
        names.extend(f"{name}|{first + k}" for k, name in enumerate(self.classes))
        for instance, kind, (x, y, z), half, finish in self.parts:
            builder.add(
                kind,
                (position[0] + cos * x - sin * y, position[1] + sin * x + cos * y, z + height),
                half,
                yaw=yaw,
                material=MATERIAL_INDEX[finish.material],
                colour=finish.colour,
                semantic=CLASS_INDEX[self.classes[instance]],
                instance=first + instance,
            )
        receptacles = []
        for (x0, x1), (y0, y1), z, clearance in self.surfaces:
            x = (x0 + x1) / 2
            y = (y0 + y1) / 2
            centre = (float(position[0] + cos * x - sin * y), float(position[1] + sin * x + cos * y), float(z + height))
            half_sizes = (float(x1 - x0) / 2, float(y1 - y0) / 2)
            receptacles.append(Receptacle(first, centre, half_sizes, float(yaw), float(clearance)))
        return receptacles

    def _add(
        self, kind: int, centre: tuple[float, float, float], size: tuple[float, float, float], finish: Finish
    ) -> None:
        half = (size[0] / 2, size[1] / 2, size[2] / 2)
        self.parts.append(ModelPart(len(self.classes) - 1, kind, centre, half, finish))
