"""Agents: memories, policies and learners that plug into Stable-Baselines3. Each is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents.allocator import AdaptiveAllocator
    from agents.dqn_config import DQNConfig
    from agents.episode_dqn import EpisodeDQN
    from agents.evaluation import TrialEvaluator, TrialResults
    from agents.imitation import ImitationA2C
    from agents.imitation_config import ImitationConfig
    from agents.memory import MEMORIES, Memory, StepInputs, make_memory
    from agents.policies import MemoryPolicy
    from agents.ppo import PartialUpdatePPO
    from agents.ppo_config import PPOConfig
    from agents.supervised import SupervisedLearner
    from agents.supervised_config import SupervisedConfig
    from agents.vec_env import TrialVecEnv, make_vec_env

__all__ = [
    "MEMORIES",
    "AdaptiveAllocator",
    "DQNConfig",
    "EpisodeDQN",
    "ImitationA2C",
    "ImitationConfig",
    "Memory",
    "MemoryPolicy",
    "PPOConfig",
    "PartialUpdatePPO",
    "StepInputs",
    "SupervisedConfig",
    "SupervisedLearner",
    "TrialEvaluator",
    "TrialResults",
    "TrialVecEnv",
    "make_memory",
    "make_vec_env",
]

_MODULES = {
    "allocator": ("AdaptiveAllocator",),
    "dqn_config": ("DQNConfig",),
    "episode_dqn": ("EpisodeDQN",),
    "evaluation": ("TrialEvaluator", "TrialResults"),
    "imitation": ("ImitationA2C",),
    "imitation_config": ("ImitationConfig",),
    "memory": ("MEMORIES", "Memory", "StepInputs", "make_memory"),
    "policies": ("MemoryPolicy",),
    "ppo": ("PartialUpdatePPO",),
    "ppo_config": ("PPOConfig",),
    "supervised": ("SupervisedLearner",),
    "supervised_config": ("SupervisedConfig",),
    "vec_env": ("TrialVecEnv", "make_vec_env"),
}


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, which nobody should wait for who asks the command line for help
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"agents.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
