"""Runs of episode Q-learning."""

from __future__ import annotations

from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.dqn import EpisodeDQN
from memenvs.agents.experiments.agent_experiment import AgentExperiment, check_segments
from memenvs.agents.experiments.config import RunConfig


class DQNExperiment(AgentExperiment):
    """Runs of `EpisodeDQN`."""

    algorithm = EpisodeDQN

    def check_settings(self, config: RunConfig, processes: Processes) -> None:
        """Check that steps are left after the replay is full; see `AgentExperiment.check_settings`."""
        dqn = config.learner
        check_segments(config, dqn.episode_steps, "dqn.episode_steps")
        if config.n_envs > dqn.capacity:
            raise ValueError(f"dqn.capacity must be at least n_envs, {config.n_envs}, got {dqn.capacity}")
        episodes = -(-dqn.capacity // config.n_envs) * config.n_envs
        filling = episodes * dqn.episode_steps
        if config.total_steps <= filling:
            raise ValueError(
                f"total_steps must be above {filling}, which filling the replay can take "
                f"({episodes} episodes of dqn.episode_steps {dqn.episode_steps}), got {config.total_steps}"
            )
