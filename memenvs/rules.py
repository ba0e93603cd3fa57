"""Scripted policies that see observations alone, to show how much of a task needs a memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Literal, NamedTuple

import numpy as np

from memenvs.plugins import load_class
from memenvs.task import PHASE, BatchTask, Observation

#: How a rule does without a memory, or "ideal" for one with a perfect memory; see `Rule`.
Way = Literal["present", "window", "world", "ideal"]
#: Key of the own previous action in what a rule sees: int64 (N,), 0 for none, else 1 + the action.
PREVIOUS_ACTION = "previous_action"


class RuleError(ValueError):
    """The settings of a task leave out what a rule has to observe, or a class is no whole rule."""


class Rule(ABC):
    """A policy of fixed rules for the N environments of a task.

    It reads the settings of the task and nothing of its state: all that it knows is what it observes. The registry
    names the rules of each id (`EnvironmentSpec.policies`), and certificates play them (`memenvs.certificates`).

    A subclass defines `choose`, and `see` and `forget` if it remembers anything. The folder
    `examples/own_task_and_memory` has two as an example.

    Args:
        task: The task.

    Attributes:
        way: "present": it sees the present observation alone. "window": the last `window` observations and own actions,
            over the boundaries of episodes. "world": as "window", and it writes into the world: by its position, its
            heading, or what it changes there. "ideal": it remembers all that it has observed since `forget`.
        window: Number of observations that it uses, the present one included; None for all since `forget`.
        bits: Bits that it has to keep over the longest delay, for "ideal"; None if they cannot be counted.

    Raises:
        RuleError: The settings of the task leave out what the rule has to observe.
    """

    way: Way = "present"
    window: int | None = 1
    bits: float | None = None
    _previous: np.ndarray | None = None  # own actions at the last step, as `PREVIOUS_ACTION` has them

    def __init__(self, task: BatchTask) -> None:  # noqa: B027  (a rule without memory keeps nothing of the task)
        pass

    def forget(self, env_mask: np.ndarray) -> None:  # noqa: B027  (a rule without memory has nothing to forget)
        """Forget everything: a trial begins, or a certificate wipes the memory.

        Args:
            env_mask: bool, (N,); environments that forget.
        """

    def begin_episode(self, env_mask: np.ndarray) -> None:  # noqa: B027  (most rules need no notice)
        """Take note that an episode begins, after `forget` where a trial begins with it.

        Args:
            env_mask: bool, (N,); environments in which an episode begins.
        """

    def see(self, observation: Observation) -> None:  # noqa: B027  (a rule without memory keeps nothing)
        """Take in what is observed at this step.

        Args:
            observation: Key -> array, (N, ...), with `PREVIOUS_ACTION` for `Discrete` actions.
        """

    @abstractmethod
    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions, after `see`.

        Args:
            observation: As `see` had it.

        Returns:
            int64, (N,), or for a `Box` float32, (N, A).
        """

    def steps_back(self) -> np.ndarray | None:
        """Return how many steps back the fact lies that the last `choose` needed, int64, (N,).

        0 if it is in view. Of a fact that was observed several times the newest time counts; of several facts the
        oldest. None for rules that do not say it.
        """
        return None

    def start(self, trial_start: np.ndarray, episode_start: np.ndarray) -> None:
        """Start trials and episodes, before `actions` is called with their first observation.

        Args:
            trial_start: bool, (N,); environments in which a trial begins.
            episode_start: bool, (N,); environments in which an episode begins.
        """
        if trial_start.any():
            self.forget(trial_start)
        if episode_start.any():
            self.begin_episode(episode_start)
            if self._previous is not None:
                self._previous = np.where(episode_start, 0, self._previous)

    def actions(self, observation: Observation) -> np.ndarray:
        """Take one step: see, and choose the next actions.

        Args:
            observation: Key -> array, (N, ...).

        Returns:
            int64, (N,), or for a `Box` float32, (N, A).
        """
        if self._previous is not None:
            observation = {**observation, PREVIOUS_ACTION: self._previous}
        else:  # the first step
            observation = {**observation, PREVIOUS_ACTION: np.zeros(len(next(iter(observation.values()))), np.int64)}
        self.see(observation)
        chosen = self.choose(observation)
        if chosen.ndim == 1:
            ignored = observation[PHASE] == 0 if PHASE in observation else False
            self._previous = np.where(ignored, 0, 1 + chosen)
        return chosen


class AnswerRule(Rule):
    """A rule of a task in which one watches, then answers: it chooses at the query alone."""

    def __init__(self, task: BatchTask) -> None:
        self._space = task.action_space
        self._steps_back = np.zeros(task.num_envs, np.int64)  # of the last answers, which `_answer` sets

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the answers; zeros before the query. See `Rule`."""
        count = len(observation[PHASE])
        answers = np.zeros((count, *(self._space.shape or ())), self._space.dtype)
        self._steps_back = np.zeros(count, np.int64)
        for i in np.flatnonzero(observation[PHASE] == 1).tolist():
            answers[i] = self._answer(i, observation)
        return answers

    @abstractmethod
    def _answer(self, i: int, observation: Observation) -> int | np.ndarray:
        """Return the answer of environment `i`, a class or a picture (A,), -1 to 1."""

    def steps_back(self) -> np.ndarray | None:
        """Return the steps back to what the answers needed; see `Rule`."""
        return self._steps_back if self.way == "ideal" else None


class _Seen(NamedTuple):
    """Entry of a window for one step: the observation, and the environments in which an episode or memory began."""

    observation: Observation
    episode_start: np.ndarray
    memory_start: np.ndarray


class Window(Rule):
    """Another rule with the last `window` observations alone.

    At each step it forgets everything and sees these observations again.

    Args:
        rule: The rule, mostly an ideal one.
        window: Observations, the present one included; >= 1.
    """

    way: Way = "window"

    def __init__(self, rule: Rule, window: int) -> None:
        self._rule = rule
        self.window = window
        self.way = "present" if window == 1 else "window"
        self._seen: deque[_Seen] = deque(maxlen=window)
        self._begins: tuple[np.ndarray, np.ndarray] | None = None
        self._chosen: np.ndarray | None = None

    def forget(self, env_mask: np.ndarray) -> None:
        """Leave out all observations before the next one; see `Rule`."""
        self._note(env_mask, memory=True)

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Take note that an episode begins; see `Rule`."""
        self._note(env_mask, memory=False)

    def _note(self, env_mask: np.ndarray, *, memory: bool) -> None:
        episode, forgotten = self._begins or (np.zeros(len(env_mask), bool), np.zeros(len(env_mask), bool))
        self._begins = (episode, forgotten | env_mask) if memory else (episode | env_mask, forgotten)

    def see(self, observation: Observation) -> None:
        """Keep the observation, and drop the oldest one; see `Rule`."""
        none = np.zeros(len(observation[PREVIOUS_ACTION]), bool)
        copied = {key: value.copy() for key, value in observation.items()}
        self._seen.append(_Seen(copied, *(self._begins or (none, none))))
        self._begins = None

    def choose(self, observation: Observation) -> np.ndarray:
        """Let the rule see the window anew, and choose; see `Rule`."""
        if self._chosen is not None and PHASE in observation and not observation[PHASE].any():
            return self._chosen  # any action is ignored, and to see the window anew is what takes time
        for k, entry in enumerate(self._seen):
            starts = entry.memory_start | (k == 0)
            if starts.any():
                self._rule.forget(starts)
            if entry.episode_start.any():
                self._rule.begin_episode(entry.episode_start)
            self._rule.see(entry.observation)
        self._chosen = self._rule.choose(observation)
        return self._chosen


class Wiped(Rule):
    """Another rule whose memory is wiped every few steps, for a horizon curve.

    Args:
        rule: The rule, mostly an ideal one.
        every: Steps between two wipes, >= 1. The first one of each environment is drawn.
        num_envs: N.
        rng: Draws the first wipes.
    """

    way = "ideal"

    def __init__(self, rule: Rule, every: int, num_envs: int, rng: np.random.Generator) -> None:
        self._rule = rule
        self.window = every
        self._left = rng.integers(every, size=num_envs)  # steps to the next wipe
        self._every = every

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget everything; see `Rule`."""
        self._rule.forget(env_mask)

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Take note that an episode begins; see `Rule`."""
        self._rule.begin_episode(env_mask)

    def see(self, observation: Observation) -> None:
        """Wipe where it is time, and see; see `Rule`."""
        due = self._left == 0
        if due.any():
            self._rule.forget(due)
        self._left = np.where(due, self._every, self._left) - 1
        self._rule.see(observation)

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose as the rule does; see `Rule`."""
        return self._rule.choose(observation)


def make_rule(path: str, task: BatchTask) -> Rule:
    """Make the rule of a "module:Class" string for a task.

    Raises:
        RuleError: The settings of the task leave out what the rule has to observe. Or the class is no `Rule`, or leaves
            out a method that a rule must define.
    """
    rule = load_class(path)
    if not (isinstance(rule, type) and issubclass(rule, Rule)):
        raise RuleError(f"{path} must be a subclass of memenvs.rules.Rule")
    if rule.__abstractmethods__:
        raise RuleError(f"{path} must define {' and '.join(sorted(rule.__abstractmethods__))} (memenvs.rules.Rule)")
    made: Rule = rule(task)
    return made
