"""Runs of partial-update PPO."""

from __future__ import annotations

from dataclasses import replace

from stable_baselines3.common.vec_env import VecEnv

from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.ppo import PartialUpdatePPO
from memenvs.agents.experiments.agent_experiment import AgentExperiment, check_segments
from memenvs.agents.experiments.config import RunConfig


class PPOExperiment(AgentExperiment):
    """Runs of `PartialUpdatePPO`."""

    algorithm = PartialUpdatePPO

    def check_settings(self, config: RunConfig, processes: Processes) -> None:
        """Check that at least one whole rollout is played; see `AgentExperiment.check_settings`."""
        ppo = config.learner
        processes.split_evenly("ppo.batch_size", ppo.batch_size)
        rollout = config.n_envs * ppo.n_steps
        if config.total_steps < rollout:
            raise ValueError(
                f"total_steps must be at least {rollout}, one rollout "
                f"(n_envs {config.n_envs} x ppo.n_steps {ppo.n_steps}), got {config.total_steps}"
            )

    def make_for_check(self, config: RunConfig, env: VecEnv, processes: Processes) -> PartialUpdatePPO:
        """Make the learner with two steps per segment; see `AgentExperiment.make_for_check`."""
        smallest = config.learner
        if smallest.allocator is None:  # else a rollout must have room for an episode
            smallest = replace(smallest, n_steps=2 * smallest.n_updates)
        model = self._make(replace(config, learner=smallest), env, config.device)  # alone: env is a single copy
        assert isinstance(model, PartialUpdatePPO)
        if not model.policy.memory.bounded:
            check_segments(config, config.learner.n_steps, "ppo.n_steps")
        return model
