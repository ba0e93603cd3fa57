"""Names of the task, the memory and the preset.

memenvs calls these functions by the entry points. This module is imported with memenvs, so it imports nothing heavy,
and memenvs inside of the functions only: classes are named by "module:Class".
"""

from __future__ import annotations


def register_environments() -> None:
    """Register the task."""
    from memenvs import register

    register(
        "corridor/Corridor-v0",
        "memenvs_corridor.task:Corridor",
        remembers="the signal at the entrance, until the junction",
        score_key="success",
        defaults={"trial_episodes": 1},
        policies={"ideal": "memenvs_corridor.rules:Ideal", "memoryless": "memenvs_corridor.rules:Blind"},
    )


def register_memories() -> None:
    """Register the memory."""
    from memenvs.agents.memory import register_memory

    register_memory(
        "traces",
        "memenvs_corridor.memory:TraceMemory",
        "memenvs_corridor.memory:TraceConfig",
        "averages of the past, one for each speed of forgetting",
    )


def register_presets() -> None:
    """Register the preset."""
    from memenvs.agents.algorithms.ppo_config import PPOConfig
    from memenvs.agents.experiments.config import RunConfig
    from memenvs.agents.presets import Preset, register_preset

    config = RunConfig(
        env="corridor/Corridor-v0",
        env_kwargs={"length": 4},
        eval_kwargs={"length": 4},
        n_envs=16,
        eval_envs=16,
        total_steps=65_536,
        threads=1,
        learner=PPOConfig(
            n_steps=64,
            n_updates=1,
            n_epochs=4,
            batch_size=16,
            learning_rate=3e-3,
            normalize_advantage=True,
            gamma=0.95,
            ent_coef=0.01,
        ),
        policy={"memory": "traces", "memory_kwargs": {"dim": 32}},
        eval_steps=20,
        eval_trials=100,
        score="success",
    )
    register_preset("corridor", Preset("a corridor of 4 to 6 cells, in a minute", config), "Corridor")
