"""Policies that play any environment from the command line."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from memenvs.actions import draw_actions
from memenvs.checks import choices_for
from memenvs.cli.common import UserError, as_user_error
from memenvs.cli.extensions import load_extensions
from memenvs.core import TrialEnv
from memenvs.episodes import EnvPolicy
from memenvs.registry import EnvironmentSpec, environments
from memenvs.rules import Rule, RuleError, make_rule

#: Policies of every environment; rows of the registry and families (`memenvs.cli.extensions`) add others.
POLICIES = ("random", "oracle")


def policy_help() -> dict[str, str]:
    """Describe the policies that only some environments have, by name."""
    rules = {name: ", ".join(spec.name for spec in rows) for name, rows in _rule_environments().items()}
    added = {name: policy.help for extension in load_extensions() for name, policy in extension.policies.items()}
    return {name: f"for {ids} only, a fixed rule that sees observations alone" for name, ids in rules.items()} | added


def _rule_environments() -> dict[str, list[EnvironmentSpec]]:
    """Map the name of each rule to the environments that have it."""
    rows: dict[str, list[EnvironmentSpec]] = {}
    for spec in environments():
        for name in spec.policies:
            rows.setdefault(name, []).append(spec)
    return rows


class RandomEnvPolicy:
    """Draws among the actions that are possible now.

    Args:
        env: The environment that it plays.
        rng: Source of its actions.
    """

    def __init__(self, env: gym.Env, rng: np.random.Generator) -> None:
        self._env = env
        self._rng = rng
        if not isinstance(env, TrialEnv):
            env.action_space.seed(int(rng.integers(2**31)))

    def begin(self) -> None:
        """Do nothing: it has no state."""

    def action(self) -> Any:
        """Draw an action."""
        env = self._env
        if not isinstance(env, TrialEnv):
            # `action_masks` is the name that sb3-contrib uses.
            has_masks = isinstance(env.action_space, gym.spaces.Discrete) and env.has_wrapper_attr("action_masks")
            masks = np.asarray(env.get_wrapper_attr("action_masks")(), np.int8) if has_masks else None
            return env.action_space.sample(masks)
        possible = env.task.action_masks()
        if possible is not None:
            return int(draw_possible_actions(possible, self._rng)[0])
        action = draw_actions(env.task.action_space, 1, self._rng)[0]
        return int(action) if action.ndim == 0 else action


class OracleEnvPolicy:
    """Takes the oracle's actions.

    Args:
        env: The environment that it plays.
    """

    def __init__(self, env: TrialEnv) -> None:
        self._env = env

    def begin(self) -> None:
        """Do nothing: it has no state."""

    def action(self) -> Any:
        """Return the action of the oracle."""
        with as_user_error("--policy oracle", NotImplementedError):
            return self._env.oracle_action()


class RuleEnvPolicy:
    """Takes the actions of a scripted rule, which sees the observations alone.

    Args:
        env: The environment that it plays.
        rule: The rule, made for its task.
    """

    def __init__(self, env: TrialEnv, rule: Rule) -> None:
        self._env = env
        self._rule = rule

    def begin(self) -> None:
        """Let the rule know that an episode begins, and whether a trial begins with it."""
        one = np.ones(1, bool)
        self._rule.start(one & self._env.at_trial_start, one)

    def action(self) -> Any:
        """Return the action of the rule."""
        action = self._rule.actions(self._env.observe())[0]
        return int(action) if action.ndim == 0 else action


def make_policy(name: str, env: gym.Env, spec: EnvironmentSpec, rng: np.random.Generator) -> EnvPolicy:
    """Make a policy by name.

    Args:
        name: One of `POLICIES` or of `policy_help`.
        env: The environment that it plays.
        spec: Row of the environment in the registry.
        rng: Source of what the policy draws.

    Raises:
        UserError: There is no such policy, or it belongs to other environments, the settings of this one leave out what
            it has to observe, or there is no oracle.
    """
    if name == "random":
        return RandomEnvPolicy(env, rng)
    if not isinstance(env, TrialEnv):
        raise UserError(f"argument --policy {name}: {spec.id} is no task of memenvs, so it has only random")
    if name == "oracle":
        return OracleEnvPolicy(env)
    if name in spec.policies:
        with as_user_error(f"--policy {name}", RuleError):
            return RuleEnvPolicy(env, make_rule(spec.policies[name], env.task))
    rows = _rule_environments().get(name)
    if rows is not None:
        having = ", ".join(row.id for row in rows)
        raise UserError(f"argument --policy {name}: is for {having} only, got {spec.id}")
    extension = next((family for family in load_extensions() if name in family.policies), None)
    if extension is None:
        raise UserError(f"argument --policy: unknown {name!r}; {choices_for(name, (*POLICIES, *policy_help()))}")
    if extension.family != spec.family:
        raise UserError(
            f"argument --policy {name}: is for environments of family {extension.family} only, got {spec.id}"
        )
    return extension.policies[name].make(env, rng)


def draw_possible_actions(possible: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one possible action for each environment.

    Args:
        possible: bool or int8, (N, A); nonzero where an action is possible.
        rng: Source of randomness.

    Returns:
        int64, (N,).
    """
    # Each of several independent uniform numbers is equally likely to be the largest.
    return (rng.random(possible.shape) * possible).argmax(1)
