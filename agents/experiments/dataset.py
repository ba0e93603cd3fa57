"""Datasets of a run's agent; see `memenvs.dataset`."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import EVALUATION_SEED, evaluation_env, trained_policy
from memenvs.agents.experiments.play import PlayedStep, play_trials
from memenvs.dataset import Source, make_spec_env
from memenvs.registry import find_environment, full_id

AGENT = "agent"
"""Name of the policy in the card."""
OBSERVATION_SETTINGS = ("encoder", "encoder_kwargs", "place")
"""Settings of `make_vec_env` that change the observations of the agent and not the environment."""


def seed_of(card: Mapping[str, Any]) -> int:
    """Seed of the evaluation of a card.

    Raises:
        ValueError: The dataset is not of an agent.
    """
    if card["policy"].get("name") != AGENT:
        raise ValueError("the dataset of the card is of a scripted policy; use memenvs dataset --rebuild CARD")
    return card["seed"] - EVALUATION_SEED


class AgentPlayer:
    """The actions of an agent, which plays a trial in a copy of the environment.

    Args:
        steps: The agent's steps.
    """

    def __init__(self, steps: Iterator[PlayedStep]) -> None:
        self._steps = steps

    def begin(self) -> None:
        """Do nothing: the steps go on from one episode to the next."""

    def action(self) -> Any:
        """Return the next action."""
        return next(self._steps).actions[0]


def run_source(run: RunDirectory, seed: int, checkpoint: str | None = None) -> Source:
    """Make the source of a dataset: a run's agent in its evaluation trials.

    Where trials of the environment never end, they have as many steps as those of an evaluation. The dataset has the
    observations of the environment. The agent gets those of a copy of it, which may be encoded.

    Args:
        run: The folder.
        seed: Seed of the evaluation.
        checkpoint: File in the folder; None for the one that is evaluated.

    Raises:
        FileNotFoundError: The run has no such checkpoint.
        ValueError: The environment is none of this package, or the checkpoint is broken.
    """
    config = run.config
    all_settings = {**config.env_kwargs, **config.eval_kwargs}
    settings = {name: value for name, value in all_settings.items() if name not in OBSERVATION_SETTINGS}
    id = full_id(config.env)
    row = find_environment(id)
    if all({**row.defaults, **settings}.get(limit) is None for limit in ("trial_episodes", "trial_steps")):
        settings["trial_steps"] = config.eval_steps  # as in an evaluation
    env = make_spec_env(id, settings)
    policy = trained_policy(run, seed, checkpoint)
    agent_env = evaluation_env(config, 1, seed)

    def begin_trial(trial: int) -> AgentPlayer:
        agent_env.seed(EVALUATION_SEED + seed)
        agent_env.set_options({"trial": trial})
        policy.generator.manual_seed(int(np.random.default_rng([seed, trial]).integers(2**62)))
        steps = play_trials(policy, agent_env, agent_env.reset(), deterministic=config.kind.deterministic)
        return AgentPlayer(steps)

    file = run.checkpoint_path(checkpoint)
    command = ["memenvs", "dataset", str(run.path), "--checkpoint", file.name, "--seed", str(seed)]
    return Source(
        env=env,
        settings=settings,
        policy={"name": AGENT, "checkpoint": hashlib.sha256(file.read_bytes()).hexdigest()},
        seed=EVALUATION_SEED + seed,
        begin_trial=begin_trial,
        command=shlex.join(command),
        packages=("torch", "stable-baselines3"),
    )
