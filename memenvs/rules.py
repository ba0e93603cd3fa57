"""Scripted policies that see observations alone, to show how much of a task needs a memory."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from memenvs.plugins import load_class
from memenvs.task import BatchTask, Observation


class RuleError(ValueError):
    """The settings of a task leave out what a rule has to observe."""


class Rule(ABC):
    """A policy of fixed rules for the N environments of a task.

    It reads the settings of the task and nothing of its state: all that it knows is what it observes. The registry
    names the rules of each id (`EnvironmentSpec.policies`).

    Args:
        task: The task.

    Raises:
        RuleError: The settings of the task leave out what the rule has to observe.
    """

    @abstractmethod
    def __init__(self, task: BatchTask) -> None: ...

    def begin(self, env_mask: np.ndarray) -> None:  # noqa: B027  (a rule without memory has nothing to forget)
        """Forget all steps before an episode.

        Args:
            env_mask: bool, (N,); environments in which an episode begins.
        """

    @abstractmethod
    def actions(self, observation: Observation) -> np.ndarray:
        """Choose the next actions.

        Args:
            observation: Key -> array, (N, ...).

        Returns:
            int64, (N,).
        """


def make_rule(path: str, task: BatchTask) -> Rule:
    """Make the rule of a "module:Class" string for a task.

    Raises:
        RuleError: The settings of the task leave out what the rule has to observe.
    """
    made = load_class(path)(task)
    assert isinstance(made, Rule), "rows of the registry name rules"
    return made
