"""Agents: memories, policies and learners that plug into Stable-Baselines3."""

from agents.episode_dqn import DQNConfig, EpisodeDQN
from agents.memory import MEMORIES, Memory, StepInputs, make_memory
from agents.policies import MemoryPolicy
from agents.ppo import PartialUpdatePPO, PPOConfig
from agents.supervised import SupervisedLearner
from agents.supervised_config import SupervisedConfig
from agents.vec_env import TrialVecEnv, make_vec_env

__all__ = [
    "MEMORIES",
    "DQNConfig",
    "EpisodeDQN",
    "Memory",
    "MemoryPolicy",
    "PPOConfig",
    "PartialUpdatePPO",
    "StepInputs",
    "SupervisedConfig",
    "SupervisedLearner",
    "TrialVecEnv",
    "make_memory",
    "make_vec_env",
]
