"""Settings of TwoRooms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memenvs.box_rooms.worlds import check_image_size
from memenvs.checks import MAX_THREADS, check_fields, check_int, check_phases


@dataclass(frozen=True, kw_only=True)
class TwoRoomsConfig:
    """Settings of TwoRooms.

    Attributes:
        world: "builtin" (our renderer) or "miniworld" (the package Miniworld, extra `miniworld`; needs a display).
        image_size: Rows and columns of the images, from (8, 8) to (512, 512).
        phases: Steps with the cue, in the large room and with the choice; each >= 1. An episode has as many steps as
            all three. The cue is seen once more than it has steps, because the reset shows it too.
        match_reward: Reward for the box of the cue's colour.
        wrong_reward: Reward for the other box.
        box_reward: Reward for each yellow box. The paper's environment pays ten times as much for all three: 10, 0
            and 0.1.
        random_order: If True, the sides of the two boxes are drawn for each episode, so that no fixed sequence of
            actions leads to a colour. If False, the green one is on the left, as in the paper's environment.
        threads: Rendering threads of world "builtin"; 1 to 1024. Results do not depend on it.
    """

    world: Literal["builtin", "miniworld"] = "builtin"
    image_size: tuple[int, int] = (84, 84)
    phases: tuple[int, int, int] = (4, 80, 16)
    match_reward: float = 1.0
    wrong_reward: float = 0.0
    box_reward: float = 0.01
    random_order: bool = True
    threads: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "image_size", check_image_size(self.image_size))
        object.__setattr__(self, "phases", check_phases(self.phases))
        check_fields(self)
        check_int("threads", self.threads, at_most=MAX_THREADS)
