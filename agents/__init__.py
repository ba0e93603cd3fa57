"""Agents: memories, policies and learners that plug into Stable-Baselines3. Each is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memenvs.agents.algorithms.dqn import EpisodeDQN
    from memenvs.agents.algorithms.dqn_config import DQNConfig
    from memenvs.agents.algorithms.ppo import PartialUpdatePPO
    from memenvs.agents.algorithms.ppo_config import PPOConfig
    from memenvs.agents.algorithms.supervised import SupervisedLearner
    from memenvs.agents.algorithms.supervised_config import SupervisedConfig
    from memenvs.agents.experiments.trial_evaluator import TrialEvaluator, TrialResults
    from memenvs.agents.memory import MEMORIES, Memory, StepInputs, make_memory
    from memenvs.agents.mtvm.imitation import ImitationA2C
    from memenvs.agents.mtvm.imitation_config import ImitationConfig
    from memenvs.agents.policies.memory_policy import MemoryPolicy
    from memenvs.agents.sat.allocator import AdaptiveAllocator
    from memenvs.agents.vec_env import TrialVecEnv, make_vec_env

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
    "sat.allocator": ("AdaptiveAllocator",),
    "algorithms.dqn_config": ("DQNConfig",),
    "algorithms.dqn": ("EpisodeDQN",),
    "experiments.trial_evaluator": ("TrialEvaluator", "TrialResults"),
    "mtvm.imitation": ("ImitationA2C",),
    "mtvm.imitation_config": ("ImitationConfig",),
    "memory": ("MEMORIES", "Memory", "StepInputs", "make_memory"),
    "policies.memory_policy": ("MemoryPolicy",),
    "algorithms.ppo": ("PartialUpdatePPO",),
    "algorithms.ppo_config": ("PPOConfig",),
    "algorithms.supervised": ("SupervisedLearner",),
    "algorithms.supervised_config": ("SupervisedConfig",),
    "vec_env": ("TrialVecEnv", "make_vec_env"),
}


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, which nobody should wait for who asks the command line for help
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"memenvs.agents.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
