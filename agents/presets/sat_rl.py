"""Presets of the Spatially-Aware Transformer (SAT) in reinforcement learning."""

from __future__ import annotations

from typing import Any

from memenvs.agents.algorithms.allocator_config import AllocatorConfig
from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.policies.small_sizes import SMALL
from memenvs.agents.presets.preset import COMPRESSIVE_QUEUES, Preset, Variant

#: Whole episodes of 128 environments, one update for each rollout.
_PPO = PPOConfig(
    learning_rate=1e-3,
    final_learning_rate=1e-4,
    n_steps=100,
    n_updates=1,
    n_epochs=4,
    batch_size=16,
    clip_range_vf=None,
    normalize_advantage=True,
    ent_coef=0.02,
    vf_coef=0.5,
    max_grad_norm=0.5,
    allocator=AllocatorConfig(strategies=("fifo", "mvfo")),
)
#: Half of the stay in the second place, as in the paper.
_CAPACITY = 40
_SAT = {**SMALL["sat-fifo"], "capacity": _CAPACITY}

_VISUAL_MATCH = RunConfig(
    env="memenvs/VisualMatch-v0",
    env_kwargs={"obs": "one_hot", "place": True},
    n_envs=128,
    eval_envs=128,
    total_steps=1_536_000,
    threads=1,
    learner=_PPO,
    policy={"memory": "sat-fifo", "memory_kwargs": _SAT, "previous_action_dim": 0},
    eval_steps=100,
    eval_trials=1000,
    score="success",
)
#: As small as `_SAT`.
_COMPRESSIVE: dict[str, Any] = {**SMALL["ct-lt"], **COMPRESSIVE_QUEUES}


def _other(memory: str, **settings: Any) -> dict[str, Any]:
    """Overrides for another memory, without an allocator."""
    return {"ppo.allocator": None, "policy.memory": memory, "policy.memory_kwargs": settings}


#: Method -> what it is, and its overrides.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "ama": ("an allocator chooses FIFO or MVFO", {}),
    "ama-long": ("the same with half as many steps again", {}),
    **{
        strategy: (
            f"the strategy {strategy.upper()}",
            {"ppo.allocator": None, "policy.memory_kwargs.strategy": strategy},
        )
        for strategy in ("mvfo", "fifo")
    },
    "sat-pm": ("sat-pm, which has a quota for each place", _other("sat-pm", **_SAT)),
    "none": ("no memory", _other("none")),
    "gru": ("a GRU of 64 numbers", _other("gru", **SMALL["gru"])),
    "lstm": ("an LSTM of 64 numbers", _other("lstm", **SMALL["lstm"])),
    "relic": (
        "ReLIC over all steps of the episode",
        _other("relic", layers=1, heads=2, dim=64, mlp_dim=64, max_episode_steps=101),
    ),
    "ct-lt": ("a Compressive Transformer of 20 vectors and a long-term state", _other("ct-lt", **_COMPRESSIVE)),
    "ct-log": ("a Compressive Transformer of 20 vectors and six that merge", _other("ct-log", **_COMPRESSIVE)),
}
#: Task of the study -> beginning of the names of its variants, and the overrides of all. In TwoRooms views are wide, so
#: that both boxes are in the first one of the choice. Stay and memory have 0.3 of their sizes by default.
#: With half as much entropy, policies give up one side of the room before they have tried the colour there.
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "visual-match": ("", {}),
    "two-rooms": (
        "two-rooms-",
        {
            "env": "memenvs/TwoRooms-v0",
            "env_kwargs": {"image_size": [12, 20], "phases": [4, 24, 16], "place": True},
            "policy.features_extractor_kwargs": {"image_dim": 64},
            "total_steps": 675_840,
            "ppo.n_steps": 44,
            "ppo.ent_coef": 0.05,
            "eval_steps": 44,
            "eval_trials": 200,
        },
    ),
    "short-visual-match": (  # the choice is beyond the 32 steps that `ct-lt` and `ct-log` keep in their queues
        "short-",
        {
            "env_kwargs": {**_VISUAL_MATCH.env_kwargs, "phases": [4, 30, 6]},
            "total_steps": 512_000,
            "ppo.n_steps": 40,
            "eval_steps": 40,
        },
    ),
}
_CAPACITIES = {"visual-match": _CAPACITY, "two-rooms": 12, "short-visual-match": 15}


def variant_name(task: str, method: str) -> str:
    """Return the name of the preset or variant of a method in a task."""
    return f"sat-visual-match:{TASKS[task][0]}{method}"


def _overrides(task: str, method: str) -> dict[str, Any]:
    """Overrides of the preset for a method in a task."""
    overrides = {**TASKS[task][1], **METHODS[method][1]}
    if method == "ama-long":
        overrides["total_steps"] = 3 * overrides.get("total_steps", _VISUAL_MATCH.total_steps) // 2
    if "capacity" in overrides.get("policy.memory_kwargs", _SAT):
        overrides["policy.memory_kwargs.capacity"] = _CAPACITIES[task]
    return overrides


SAT_RL_PRESETS: dict[str, Preset] = {
    "sat-visual-match": Preset(
        "VisualMatch by PPO; an allocator learns from returns that MVFO keeps the cue",
        _VISUAL_MATCH,
        {
            **{
                f"{prefix}{method}": Variant(f"{task}: {about}", _overrides(task, method))
                for task, (prefix, _) in TASKS.items()
                for method, (about, _) in METHODS.items()
            },
            "fixed-order": Variant(
                "balls in a fixed order, and 0.1 for a wrong one, as in the paper's environment",
                {"env_kwargs.random_order": False, "env_kwargs.wrong_reward": 0.1},
            ),
        },
    ),
}


def smoke_config(config: RunConfig) -> RunConfig:
    """Shrink a run to seconds, for a smoke test."""
    return with_overrides(
        config, [("n_envs", 4), ("total_steps", 800), ("eval_trials", 4), ("ppo.batch_size", 2), ("ppo.n_epochs", 1)]
    )
