"""Settings of FFHQ-world."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from memenvs.checks import check_fields, check_int, plain_fields
from memenvs.faces.pictures import Split, open_pictures
from memenvs.faces.places import Places, check_places
from memenvs.faces.world import OBSERVED_STEPS, STAY_STEPS, FaceWorld, check_steps


@dataclass(frozen=True, kw_only=True)
class FacesConfig:
    """Settings of FFHQ-world.

    Attributes:
        images: None for drawn faces, or a folder of pictures, such as that of FFHQ's thumbnails (`thumbnails128x128`).
            Pictures are RGB and at least 88 pixels wide and high. Their centre square is resized to 88 x 88, bilinear
            and with antialiasing.
        split: Pictures to draw from: "train", "validation", "test" or "all". Drawn faces and FFHQ are split by their
            number, 0 to 61,999, 62,000 to 68,999, and 69,000 to 69,999; other folders in the same proportions, in the
            order of their names.
        num_images: Draw from this many pictures of the split alone, the first ones; None for all.
        places: Places of the memory (`info["place"]`): "cells", or the number of clusters of cells, 2 to 100.

    Raises:
        TypeError: A setting has the wrong type.
        ValueError: A setting is out of range.
    """

    steps: ClassVar[tuple[int, int, int]] = OBSERVED_STEPS

    images: str | None = None
    split: Split = "train"
    num_images: int | None = None
    places: Places = "cells"

    def __post_init__(self) -> None:
        if isinstance(self.images, os.PathLike):
            object.__setattr__(self, "images", os.fspath(self.images))
        check_fields(self)
        check_int("num_images", self.num_images, or_none=True)
        check_places(self.places)

    def make_world(self) -> FaceWorld:
        """Make the world with these settings.

        Raises:
            ValueError: The folder has no pictures, or one that cannot be used; the message names it.
        """
        pictures = open_pictures(self.images, self.split, self.num_images)
        return FaceWorld(pictures=pictures, steps=self.steps, places=self.places)


@dataclass(frozen=True, kw_only=True)
class LongStayConfig(FacesConfig):
    """Settings of FFHQ-world with a long stay.

    Attributes:
        places: As in `FacesConfig`, but the default is 16 clusters.
        steps: Observed steps before, during and after the stay; the first at least 1, the others at least 0.
    """

    places: Places = 16
    steps: tuple[int, int, int] = STAY_STEPS  # type: ignore[misc]  # a setting here

    def __post_init__(self) -> None:
        plain_fields(self)
        if isinstance(self.steps, list):
            object.__setattr__(self, "steps", tuple(self.steps))
        super().__post_init__()
        check_steps(self.steps)
