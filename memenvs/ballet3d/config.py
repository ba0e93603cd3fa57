"""Settings of Ballet3D."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memenvs.ballet3d.world import DanceWorld, StrategyTask, make_room
from memenvs.checks import MAX_THREADS, check_fields, check_int


@dataclass(frozen=True, kw_only=True)
class Ballet3DConfig:
    """Settings of Ballet3D.

    Attributes:
        world: "builtin" (our renderer) or "miniworld" (the package Miniworld, extra `miniworld`; needs a display).
        strategy_task: "fifo", "lifo", "lvfo" or "mvfo": queries are about dancers that a memory of 72 steps with this
            strategy keeps. "multi": each episode is one of these four.
        n_south: Dancers before the back (south) wall, 3 or 4. The paper says both; only with 4 all dancers are seen
            for the same number of steps.
        threads: Rendering threads of world "builtin"; 1 to 1024. Results do not depend on it.
    """

    world: Literal["builtin", "miniworld"] = "builtin"
    strategy_task: StrategyTask = "multi"
    n_south: int = 4
    threads: int = 1

    def __post_init__(self) -> None:
        check_fields(self)
        check_int("n_south", self.n_south, 3, 4)
        check_int("threads", self.threads, at_most=MAX_THREADS)

    def make_world(self) -> DanceWorld:
        """Make the world with these settings.

        Raises:
            ImportError: Miniworld is not installed, or there is no display.
        """
        return DanceWorld(
            strategy_task=self.strategy_task, n_south=self.n_south, room=make_room(self.world, self.threads)
        )
