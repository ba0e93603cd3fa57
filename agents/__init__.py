"""Agents: memories, policies and learners that plug into Stable-Baselines3.

Each public name is imported on first use: torch takes seconds to import, which `python -m memenvs --help` and
`import memenvs.agents` need not wait for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import memenvs.agents.papers  # noqa: F401  (registers their learners)

if TYPE_CHECKING:
    from memenvs.agents.algorithms.allocator_config import AllocatorConfig
    from memenvs.agents.algorithms.dqn import EpisodeDQN
    from memenvs.agents.algorithms.dqn_config import DQNConfig
    from memenvs.agents.algorithms.ppo import PartialUpdatePPO
    from memenvs.agents.algorithms.ppo_config import PPOConfig
    from memenvs.agents.algorithms.supervised import SupervisedLearner
    from memenvs.agents.algorithms.supervised_config import SupervisedConfig
    from memenvs.agents.experiments.trial_eval_callback import TrialEvalCallback
    from memenvs.agents.experiments.trial_evaluator import TrialEvaluator, TrialResults, evaluate
    from memenvs.agents.memory import MEMORIES, Memory, StepInputs, make_memory, memories, register_memory
    from memenvs.agents.memory.allocator import AdaptiveAllocator
    from memenvs.agents.papers.mtvm.config import ImitationConfig
    from memenvs.agents.papers.mtvm.learner import ImitationA2C
    from memenvs.agents.policies.memory_policy import MemoryPolicy
    from memenvs.agents.policies.policy_arguments import register_features_extractor
    from memenvs.agents.presets import register_preset
    from memenvs.agents.vec_env import TrialVecEnv, make_vec_env

__all__ = [
    "MEMORIES",
    "AdaptiveAllocator",
    "AllocatorConfig",
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
    "TrialEvalCallback",
    "TrialEvaluator",
    "TrialResults",
    "TrialVecEnv",
    "evaluate",
    "make_memory",
    "make_vec_env",
    "memories",
    "register_features_extractor",
    "register_memory",
    "register_preset",
]

#: Public name -> module of this package from which it is imported.
_MODULES = {
    "MEMORIES": "memory",
    "AdaptiveAllocator": "memory.allocator",
    "AllocatorConfig": "algorithms.allocator_config",
    "DQNConfig": "algorithms.dqn_config",
    "EpisodeDQN": "algorithms.dqn",
    "ImitationA2C": "papers.mtvm.learner",
    "ImitationConfig": "papers.mtvm.config",
    "Memory": "memory",
    "MemoryPolicy": "policies.memory_policy",
    "PPOConfig": "algorithms.ppo_config",
    "PartialUpdatePPO": "algorithms.ppo",
    "StepInputs": "memory",
    "SupervisedConfig": "algorithms.supervised_config",
    "SupervisedLearner": "algorithms.supervised",
    "TrialEvalCallback": "experiments.trial_eval_callback",
    "TrialEvaluator": "experiments.trial_evaluator",
    "TrialResults": "experiments.trial_evaluator",
    "TrialVecEnv": "vec_env",
    "evaluate": "experiments.trial_evaluator",
    "make_memory": "memory",
    "make_vec_env": "vec_env",
    "memories": "memory",
    "register_features_extractor": "policies.policy_arguments",
    "register_memory": "memory",
    "register_preset": "presets",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
