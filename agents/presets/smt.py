"""Presets of the Scene Memory Transformer (SMT): three tasks, two sizes, seven methods.

The first stage (`:encoder`) learns an encoder, each decision from its own step only. The second learns a method on that
frozen encoder.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from memenvs.agents.algorithms.dqn_config import DQNConfig
from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets.preset import Preset, Variant


@dataclass(frozen=True)
class Task:
    """A task of SMT's tables.

    Attributes:
        env: Gymnasium id.
        score: Metric that methods are compared by.
        dqn: Settings of Q-learning, which SMT does not give.
        columns: Metrics of the table.
        rewards: Metric -> reward of one unit; the return of an episode is their sum.
    """

    env: str
    score: str
    dqn: dict[str, Any]
    columns: tuple[str, ...]
    rewards: dict[str, float]


#: Temperatures are so low that the reward of a single step changes softmax(Q). Search has no `reward_scale`: the reward
#: of a new class, 100, stays where the Huber loss is linear. Its `min_reward` makes a collision cost a fifth of a cell,
#: as in Coverage.
TASKS: dict[str, Task] = {
    "roaming": Task(
        env="memenvs/Roaming-v0",
        score="distance",
        dqn={"temperature": 0.25},
        columns=("return", "distance", "collisions"),
        rewards={"forwards_ok": 1, "collisions": -1},
    ),
    "coverage": Task(
        env="memenvs/Coverage-v0",
        score="cells",
        dqn={"reward_scale": 0.2, "temperature": 0.1},
        columns=("return", "cells", "collisions"),
        rewards={"cells": 5, "collisions": -1},
    ),
    "search": Task(
        env="memenvs/Search-v0",
        score="classes",
        dqn={"min_reward": -0.2, "temperature": 0.1},
        columns=("return", "classes", "ratio"),
        rewards={"classes": 100, "cells": 1, "collisions": -1},
    ),
}


@dataclass(frozen=True)
class Method:
    """A memory of SMT's tables.

    Attributes:
        memory: Its registered name.
        about: One line.
        settings: Settings besides width, heads and capacity.
    """

    memory: str
    about: str
    settings: dict[str, Any] = field(default_factory=dict)


METHODS: dict[str, Method] = {
    "reactive": Method("none", "the current step only"),
    "lstm": Method("lstm", "an LSTM", {"bptt": 128}),
    "frmqn": Method("frmqn", "FRMQN", {"bptt": 128}),
    "sm-pooling": Method(
        "sm-pooling",
        "the maximum of each feature over the scene memory",
        {"rectified": True, "tau": [1.0, 10.0, 100.0]},
    ),
    "smt-factorized": Method("smt-factorized", "the factorised Scene Memory Transformer"),
    "smt": Method("smt", "the Scene Memory Transformer"),
    "smt-causal": Method("smt-causal", "our causal Scene Memory Transformer"),
}


#: Method -> other starts of it: name of the variant -> what it is, and its overrides. Choose one in validation homes:
#: `examples/scene_memory.py --choose-starts`.
STARTS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "frmqn": {"frmqn-plain": ("with PyTorch's weights", {"policy.memory_kwargs.lstm_start": False})},
    "sm-pooling": {
        "sm-pooling-linear": (
            "with elements without a ReLU and with one age",
            {"policy.memory_kwargs.rectified": False, "policy.memory_kwargs.tau": 1.0},
        ),
    },
    "smt-causal": {
        "smt-causal-wide": (
            "whose heads start with ten times as wide Gaussians",
            {"policy.memory_kwargs.sigmas": [5.0, 20.0]},
        ),
    },
}


def _memory(method: str, dim: int, heads: int, capacity: int) -> dict[str, Any]:
    """Policy settings of a method: its memory with the width and capacity that all methods share."""
    memory = METHODS[method].memory
    settings: dict[str, Any] = {"dim": dim, "capacity": capacity}
    if memory == "lstm":
        settings = {"hidden_dim": dim}
    if memory.startswith("smt"):
        settings["heads"] = heads
    if memory == "smt-factorized":
        settings["n_centres"] = min(100, capacity // 4)
    # Q has one hidden layer. Without a memory there is one more, in place of the memory's projection of the embedding.
    layers = [dim, dim] if memory == "none" else [dim]
    return {
        "memory": memory,
        "memory_kwargs": {} if memory == "none" else settings | METHODS[method].settings,
        "net_arch": {"pi": layers, "vf": []},
    }


def _total_steps(dqn: DQNConfig, n_envs: int, collections: int) -> int:
    """Environment steps that fill the replay, and then collect `collections` episodes in each environment."""
    fill = -(-dqn.capacity // n_envs)
    return (fill + collections) * n_envs * dqn.episode_steps


@dataclass(frozen=True)
class Size:
    """A size of the experiments: budget of training and width of the networks.

    Attributes:
        about: Words for the list of presets.
        dqn: Settings of Q-learning.
        n_envs: Environments that collect episodes.
        collections: Collections of one episode in each environment, in the second stage.
        first_stage: Overrides of the first stage.
        memory_sizes: dim, heads and capacity of the memory.
        network: Network of the encoder.
        run: Further settings of the run.
        env: Further settings of the environment.
        rates: Method -> learning rate, for methods that learn more with another one than that of `dqn`.
        time: Time that the second stage took on one core, where it was measured.
    """

    about: str
    dqn: DQNConfig
    n_envs: int
    collections: int
    first_stage: dict[str, Any]
    memory_sizes: dict[str, int]
    network: str
    run: dict[str, Any]
    env: dict[str, Any] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    time: str = ""


#: A row of 64 rays, 200 steps, a width of 64, 2050 updates with a larger learning rate than the paper's.
_LAPTOP_DQN = DQNConfig(
    capacity=320,
    episode_steps=200,
    updates_per_collect=50,
    batch_size=16,
    decisions=8,
    learning_rate=1e-3,
    target_rate=0.01,
    gamma=0.97,
)
#: The paper's sizes; 32 new episodes every 500 updates.
_PAPER_DQN = DQNConfig(precision="bfloat16")
_SCAN = {"obs_mode": "scan"}

_LAPTOP = Size(
    about="for two cores",
    dqn=_LAPTOP_DQN,
    n_envs=16,
    collections=40,
    first_stage={"dqn.updates_per_collect": 200},
    memory_sizes={"dim": 64, "heads": 4, "capacity": 200},
    network="small",
    run={"threads": 1, "checkpoint_rollouts": 10, "validation_trials": 78},
    env=_SCAN,
    rates={"sm-pooling": 3e-3},
    time="6 to 22 min",
)
_PAPER_LIKE = Size(
    about="at the paper's sizes",
    dqn=_PAPER_DQN,
    n_envs=32,
    collections=400,  # 200,000 updates; the first stage has half
    first_stage={"dqn.decisions": 8, "total_steps": _total_steps(_PAPER_DQN, 32, 200)},
    memory_sizes={"dim": 128, "heads": 8, "capacity": 500},
    network="resnet",
    run={"checkpoint_rollouts": 20, "validation_trials": 156},
)
_SMOKE = Size(
    about="in a minute, which only shows that everything runs",
    dqn=replace(_LAPTOP_DQN, capacity=16, episode_steps=50, batch_size=8, decisions=4, updates_per_collect=10),
    n_envs=4,
    collections=20,
    first_stage={},
    memory_sizes={"dim": 32, "heads": 2, "capacity": 50},
    network="small",
    run={"threads": 1, "checkpoint_rollouts": 5, "validation_trials": 4, "eval_trials": 8},
    env=_SCAN,
    time="1 min",
)


def _preset(task: str, size_name: str, size: Size, methods: tuple[str, ...] = tuple(METHODS)) -> Preset:
    """SMT's second stage in a task; variants are its first stage and the other methods.

    Homes are of the SUNCG style: training in 156, the best checkpoint chosen in 39 others, evaluation in 46.
    """
    row = TASKS[task]
    policy = {
        **_memory("smt", **size.memory_sizes),
        "features_extractor_class": "SceneEncoder",
        "features_extractor_kwargs": {"network": size.network, "dim": 64},
        "previous_action_dim": 16,
        "activation": "relu",
        "adam_eps": 1e-8,
    }
    config = RunConfig(
        **{
            "env": row.env,
            "env_kwargs": {
                "world": "suncg_style",
                "split": "train",
                "max_episode_steps": size.dqn.episode_steps,
                **size.env,
            },
            "n_envs": size.n_envs,
            "eval_envs": size.n_envs,
            "total_steps": _total_steps(size.dqn, size.n_envs, size.collections),
            "learner": replace(size.dqn, **row.dqn),
            "policy": {**policy, "freeze_features": True, "freeze_previous_action": True},
            "encoder_from": f"runs/{task}-{size_name}-encoder-{{seed}}",
            "validation_kwargs": {"split": "validation"},
            "eval_kwargs": {"split": "test"},
            "eval_steps": size.dqn.episode_steps,
            "eval_trials": 460,
            "eval_all_layouts": True,
            "score": row.score,
            **size.run,
        }
    )
    first = Variant(
        "first stage: everything is learned, each decision from its own step only",
        {"encoder_from": None, "policy": {**policy, "single_steps": True}, **size.first_stage},
    )
    variants = {"encoder": first}
    for method in methods:
        overrides = {f"policy.{key}": value for key, value in _memory(method, **size.memory_sizes).items()}
        if method in size.rates:
            overrides["dqn.learning_rate"] = size.rates[method]
        variants[method] = Variant(f"second stage: {METHODS[method].about}", {} if method == "smt" else overrides)
    return Preset(
        f"{task.capitalize()} {size.about}, second stage: {METHODS['smt'].about}", config, variants, size.time
    )


def _with_variants(preset: Preset, **variants: Variant) -> Preset:
    """A preset with further variants."""
    return replace(preset, variants={**preset.variants, **variants})


SMT_PRESETS: dict[str, Preset] = {
    **{f"{task}-laptop": _preset(task, "laptop", _LAPTOP) for task in TASKS},
    **{f"{task}-paper-like": _preset(task, "paper-like", _PAPER_LIKE) for task in TASKS},
    "coverage-smoke": _preset("coverage", "smoke", _SMOKE, ("smt",)),
}
SMT_PRESETS["coverage-paper-like"] = _with_variants(
    SMT_PRESETS["coverage-paper-like"],
    literal=Variant(
        "as the paper can be read: one new episode every 500 updates, at least 200,000 of them",
        {"n_envs": 1, "eval_envs": 1, "total_steps": (1000 + 400) * 500},
    ),
    fast=Variant(
        "64 new episodes every 200 updates",
        {
            "n_envs": 64,
            "eval_envs": 64,
            "dqn.updates_per_collect": 200,
            "total_steps": (16 + 1000) * 64 * 500,
            "checkpoint_rollouts": 50,
        },
    ),
)
for _task in TASKS:
    _laptop = SMT_PRESETS[f"{_task}-laptop"]
    SMT_PRESETS[f"{_task}-laptop"] = _with_variants(
        _laptop,
        **{
            "smt-4": Variant(
                "second stage: the Scene Memory Transformer with a memory of four scans",
                {"policy.memory_kwargs.capacity": 4},
            )
        },
        **{
            name: Variant(
                f"{_laptop.variants[method].about} {about}", {**_laptop.variants[method].overrides, **changed}
            )
            for method, starts in STARTS.items()
            for name, (about, changed) in starts.items()
        },
    )
SMT_PRESETS["coverage-laptop"] = _with_variants(
    SMT_PRESETS["coverage-laptop"],
    **{
        "smt-ppo": Variant(
            "second stage: the Scene Memory Transformer with PPO",
            {
                "policy.net_arch": {"pi": [64], "vf": [64]},
                "total_steps": 320_000,
                "learner": PPOConfig(
                    gamma=_LAPTOP_DQN.gamma,
                    learning_rate=1e-3,
                    final_learning_rate=1e-4,
                    n_steps=200,
                    n_updates=1,
                    n_epochs=2,
                    batch_size=8,
                    normalize_advantage=True,
                    clip_range_vf=None,
                    vf_coef=0.001,
                    gae_lambda=0.95,
                    bootstrap_truncated=True,
                ),
            },
        )
    },
)


def smoke_config(config: RunConfig) -> RunConfig:
    """Shrink a run to seconds, for a smoke test."""
    sizes = {"capacity": 8, "episode_steps": 20, "batch_size": 4, "decisions": 4, "updates_per_collect": 2}
    return replace(
        config,
        n_envs=4,
        total_steps=4 * 20 * 4,
        learner=replace(config.learner, **sizes),
        env_kwargs={**config.env_kwargs, "max_episode_steps": 20},
        eval_steps=20,
        eval_trials=8,
        validation_trials=4,
    )
