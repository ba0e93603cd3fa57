"""The rules that every task keeps, one function each, and the check of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from memenvs.task import BatchTask
from memenvs.testing.declared import check_close, check_declared, check_info, check_masks, check_views
from memenvs.testing.determinism import (
    check_autoreset,
    check_batch,
    check_clock,
    check_copies,
    check_drawn_options,
    check_episodes,
    check_layouts,
    check_options,
    check_pickle,
    check_seeds,
)
from memenvs.testing.task_under_test import TaskUnderTest


def check_env(env: str | gym.Env | type[BatchTask], **settings: Any) -> None:
    """Check that an environment of one's own keeps the contract of a task.

    Args:
        env: An id, an environment that `gym.make` has made from one, or a `BatchTask` class.
        **settings: Settings of the environment, such as smaller sizes.

    Raises:
        ContractError: A rule is broken; the message names it, the step and the difference.
        TypeError: `env` is none of these or has no `BatchTask`, or the task lacks an attribute.
        ValueError: No such id, or a setting is not allowed.

    Example:
        >>> check_env("memenvs/Darkroom-v0", size=4)
    """
    subject = TaskUnderTest.of(env, **settings)
    for check in CHECKS:
        check(subject)


#: All rules, those first on which others rest.
CHECKS: tuple[Callable[[TaskUnderTest], None], ...] = (
    check_info,
    check_masks,
    check_declared,
    check_copies,
    check_seeds,
    check_batch,
    check_views,
    check_layouts,
    check_autoreset,
    check_episodes,
    check_options,
    check_drawn_options,
    check_clock,
    check_pickle,
    check_close,
)
