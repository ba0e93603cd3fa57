"""Settings of ColorRecall and ViewRecall."""

from __future__ import annotations

from dataclasses import dataclass

from memenvs.checks import MAX_STEPS, MAX_THREADS, check_int, check_pair
from memenvs.houses.homes_config import HomesConfig
from memenvs.houses.playable import HomeCheck
from memenvs.houses.rendering.camera import Camera
from memenvs.recall.homes import check_home, check_places

#: Capacities of more steps are no limit in any episode.
MAX_CAPACITY = 2 * MAX_STEPS


@dataclass(frozen=True, kw_only=True)
class RecallConfig(HomesConfig):
    """Settings of both tasks, beside those of `HomesConfig`.

    Attributes:
        image_size: Rows and columns of the images; 1 to 4096.
        hfov_deg: Horizontal field of view, degrees; 1 to 170.
        threads: Rendering threads; 1 to 1024. Results do not depend on it.
    """

    image_size: tuple[int, int] = (84, 84)
    hfov_deg: float = 90.0
    threads: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        height, width = check_pair("image_size", self.image_size, "rows and columns")
        object.__setattr__(self, "image_size", (height, width))
        try:
            Camera(height=height, width=width)
        except ValueError as error:
            raise ValueError(f"image_size: {error}") from None
        if isinstance(self.hfov_deg, bool) or not isinstance(self.hfov_deg, (int, float)):
            raise TypeError(f"hfov_deg must be a number of degrees, got {self.hfov_deg!r}")
        Camera(hfov_deg=self.hfov_deg)  # raises where it is out of range
        check_int("threads", self.threads, at_most=MAX_THREADS)

    def home_check(self) -> HomeCheck:
        """Return the check of whether a home can be drawn."""
        return check_home


@dataclass(frozen=True, kw_only=True)
class ColorRecallConfig(RecallConfig):
    """Settings of ColorRecall, beside those of `RecallConfig`.

    Attributes:
        steps: Steps of the path through the home, the first of which shows the square, and of the stay where it ends;
            1 to 1,000,000 each.
        capacity: Steps that a memory can keep, >= 1. Episodes are drawn again until a memory of this capacity with the
            strategy MVFO has the first step when the query is shown.
        square_size: Rows and columns of the square; from 1 to those of the images.
    """

    steps: tuple[int, int] = (200, 200)
    capacity: int = 200
    square_size: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "steps", check_steps(self.steps))
        check_int("capacity", self.capacity, at_most=MAX_CAPACITY)
        check_int("square_size", self.square_size)
        if self.square_size > min(self.image_size):
            raise ValueError(f"square_size must fit into image_size {self.image_size}, got {self.square_size}")

    def home_check(self) -> HomeCheck:
        """Return the check of whether a home can be drawn and has two places."""
        return check_places


@dataclass(frozen=True, kw_only=True)
class ViewRecallConfig(RecallConfig):
    """Settings of ViewRecall, beside those of `RecallConfig`.

    Attributes:
        steps: Steps of turning to headings all around, and to those near the last one; 1 to 1,000,000 each.
    """

    steps: tuple[int, int] = (150, 150)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "steps", check_steps(self.steps))


def check_steps(value: object) -> tuple[int, int]:
    """Return the setting `steps` as two integers.

    Raises:
        ValueError: It is anything else.
    """
    first, second = check_pair("steps", value, "of the first and of the second part")
    for k, steps in enumerate((first, second)):
        check_int(f"steps[{k}]", steps, at_most=MAX_STEPS)
    return first, second
