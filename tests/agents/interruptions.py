"""Learners that are interrupted at a chosen point, by an exception or by a callback."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from stable_baselines3.common.logger import Logger

from memenvs.agents.algorithms.base import MemoryAlgorithm
from tests.agents.learners import Hooks

OF_CALLBACKS = ("training_start", "rollout_start", "on_step", "stop", "rollout_end")
POINTS = (*OF_CALLBACKS, "reset", "act", "step_wait", "optimizer", "dump")
"""Where learning can be interrupted: calls of a callback, of the environment, of the policy, of the logger."""


class Interrupt:
    """Raise Ctrl-C, or stop, at the given call of one kind.

    Args:
        point: One of `POINTS`.
        call: Number of the call, from 1.
    """

    def __init__(self, point: str, call: int) -> None:
        self.point = point
        self.left = call

    def reach(self, point: str) -> bool:
        """Count a call; True or an exception at the chosen one."""
        self.left -= point == self.point
        if self.left or point != self.point:
            return False
        self.point = "over"
        if point == "stop":
            return True
        raise KeyboardInterrupt(point)

    def callback(self) -> Hooks:
        """A callback whose calls are counted."""
        points = ("training_start", "rollout_start", "rollout_end")
        hooks = {point: lambda _, point=point: self.reach(point) for point in points}
        return Hooks(**hooks, step=lambda _: not (self.reach("on_step") or self.reach("stop")))

    @contextmanager
    def watching(self, model: MemoryAlgorithm) -> Iterator[None]:
        """Watch the calls of a learner that are not those of callbacks."""
        with pytest.MonkeyPatch.context() as patch:
            for owner, name, point in (
                (model.env, "reset", "reset"),
                (model.env, "step_wait", "step_wait"),
                (model.policy, "act", "act"),
                (model.policy.optimizer, "step", "optimizer"),
                (Logger, "dump", "dump"),
            ):
                patch.setattr(owner, name, self._watched(getattr(owner, name), point))
            yield

    def _watched(self, method: Any, point: str) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.reach(point)
            return method(*args, **kwargs)

        return watched


def learn_interrupted(model: MemoryAlgorithm, steps: int, point: str, call: int) -> tuple[bool, bool]:
    """Learn for some steps in two calls of `learn`, the first of which ends at the given point.

    Returns:
        Whether the point was reached; whether the second call warned that it drops a rollout.
    """
    interrupt = Interrupt(point, call)
    with interrupt.watching(model), suppress(KeyboardInterrupt):
        model.learn(steps, interrupt.callback())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if model.num_timesteps < steps or model._is_unfinished:
            model.learn(max(1, steps - model.num_timesteps), reset_num_timesteps=False)
    dropped = [str(warning.message) for warning in caught if "which is dropped" in str(warning.message)]
    return interrupt.point == "over", bool(dropped)
