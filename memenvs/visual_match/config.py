"""Settings of Visual Match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memenvs.checks import check_fields, check_phases


@dataclass(frozen=True, kw_only=True)
class VisualMatchConfig:
    """Settings of Visual Match.

    Attributes:
        world: "builtin" (our own grid) or "minigrid" (the package Minigrid, extra `minigrid`). Both give the same bits.
        obs: "symbols": the view as Minigrid encodes it. "one_hot": a plane for each kind of cell.
        phases: Steps in the room with the cue, in the field and in the room with the choice; each 1 to 1,000,000. An
            episode has as many steps as all three.
        match_reward: Reward for the ball of the cue's colour.
        wrong_reward: Reward for another ball. The paper's environment pays 0.1.
        fruit_reward: Reward for each fruit in the field.
        random_order: If True, the order of the balls is drawn for each episode, so that no fixed sequence of actions
            leads to a colour. If False, they are green, blue, red from above, as in the paper's environment.
    """

    world: Literal["builtin", "minigrid"] = "builtin"
    obs: Literal["symbols", "one_hot"] = "symbols"
    phases: tuple[int, int, int] = (4, 80, 16)
    match_reward: float = 1.0
    wrong_reward: float = 0.0
    fruit_reward: float = 0.01
    random_order: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "phases", check_phases(self.phases))
        check_fields(self)
