"""Homes of a world that a task can play.

A home of a file may lack what a task needs: floor for the robot, or furniture on which objects could be seen. Such
homes are left out when an environment is made. Generated homes have all of it and are not checked.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from itertools import chain, islice
from typing import TypeVar

from memenvs.houses.worlds import HouseWorld

#: Homes that are tried for a layout. Where all of them fail, a setting is wrong and not the homes.
MAX_TRIED = 16

#: Raises a ValueError where a task cannot play home `index` of a world. Equal checks have equal results.
HomeCheck = Callable[[HouseWorld, int], None]
T = TypeVar("T")


class PlayableHomes:
    """The homes of a world that a task can play; layout n is home n modulo their number.

    Args:
        world: The world. Homes that are not playable are found among its first `num_checked`, and left out with one
            warning.
        check: Checks a home.
        task: Name of the task, for messages.
        strict: True checks all homes, and raises an error if one is not playable.

    Attributes:
        world: As given.
        numbers: Numbers of the homes in the world, ascending.

    Raises:
        ValueError: No home is playable, or one is not and `strict` is True.
    """

    def __init__(self, world: HouseWorld, check: HomeCheck, *, task: str, strict: bool = False) -> None:
        self.world = world
        self._task = task
        self._strict = strict
        self._warned: set[int] = set()  # homes that `load` has warned of
        unplayable: Mapping[int, str] = {}
        if not world.always_playable:
            unplayable = find_unplayable(world, check, len(world) if strict else world.num_checked)
        self.numbers = [number for number in range(len(world)) if number not in unplayable]
        if unplayable:
            summary = f"{len(unplayable)} of {len(world)} homes cannot be played in {task}"
            reasons = "; ".join(unplayable.values())
            if strict or not self.numbers:
                raise ValueError(f"{summary}: {reasons}")
            warnings.warn(f"{summary} and are left out: {reasons}", stacklevel=2)

    def __len__(self) -> int:
        """Number of homes."""
        return len(self.numbers)

    def load(self, layout: int, make: Callable[[int], T]) -> T:
        """Make what the task needs of the home of a layout.

        Where that fails, which is possible in homes that were not checked and with furniture that has hardly a place to
        put objects on, the next home takes its place. So a layout is the same whatever was played before.

        Args:
            layout: Number of the layout, >= 0.
            make: Makes it for a home, given by its number in the world; raises a ValueError where that fails.

        Raises:
            ValueError: It fails for `MAX_TRIED` homes in a row; or for this one, and `strict` is True or homes are
                generated.
        """
        first = layout % len(self)
        error = None
        for number in islice(chain(self.numbers[first:], self.numbers[:first]), MAX_TRIED):
            try:
                return make(number)
            except ValueError as failure:
                if self._strict or self.world.always_playable:
                    raise
                error = error or failure
                if number not in self._warned:
                    self._warned.add(number)
                    warnings.warn(
                        f"home {number} cannot be played in layout {layout} of {self._task}, where the next one takes "
                        f"its place: {failure}",
                        stacklevel=2,
                    )
        raise ValueError(
            f"none of the homes tried can be played in layout {layout} of {self._task}: {error}"
        ) from error


def find_unplayable(
    world: HouseWorld, check: HomeCheck, count: int, progress: Callable[[float], None] | None = None
) -> Mapping[int, str]:
    """Find the homes that a task cannot play.

    Args:
        world: The world, which remembers the result.
        check: Checks a home.
        count: Number of homes to check, from the first on.
        progress: Called after each home with the share of homes that are checked; None for nothing.

    Returns:
        Number of each of these homes -> why it cannot be played.
    """
    count = min(count, len(world))
    key = check, count
    if key not in world.unplayable:
        reasons = {}
        for number, home in enumerate(islice(world.each_home(), count)):
            try:
                home()  # builds it while its file is open; `check` then takes it from the world's cache
                check(world, number)
            except ValueError as error:
                reasons[number] = str(error)
            if progress is not None:
                progress((number + 1) / count)
        world.unplayable[key] = reasons
    return world.unplayable[key]
