"""Presets of the Scene Memory Transformer's tables: three tasks, seven methods, two stages; every run is data derived from a few bases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memenvs.agents.algorithms.dqn_config import DQNConfig
from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides

#: Task -> environment, metric of the table, and settings of learning, which SMT does not give. Temperatures are so low that softmax(Q) follows what
#: a single step earns. In Search a find is far above what the Huber loss takes at its word, and a collision counts as a fifth of a cell, as it does
#: in Coverage.
TASKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "roaming": ("memenvs/Roaming-v0", "distance", {"temperature": 0.25}),
    "coverage": ("memenvs/Coverage-v0", "cells", {"reward_scale": 0.2, "temperature": 0.1}),
    "search": ("memenvs/Search-v0", "classes", {"min_reward": -0.2, "temperature": 0.1}),
}
#: Method -> its memory, what it is, and settings besides width, heads and reach.
METHODS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "reactive": ("none", "the present only", {}),
    "lstm": ("lstm", "an LSTM", {"bptt": 128}),
    "frmqn": ("frmqn", "FRMQN", {"bptt": 128}),
    "sm-pooling": (
        "sm-pooling",
        "the largest of each feature over the scene memory",
        {"rectified": True, "tau": [1.0, 10.0, 100.0]},
    ),
    "smt-factorized": ("smt-factorized", "the factorised Scene Memory Transformer", {}),
    "smt": ("smt", "the Scene Memory Transformer", {}),
    "smt-causal": ("smt-causal", "our causal Scene Memory Transformer", {}),
}
FROZEN = {"freeze_features": True, "freeze_previous_action": True}


def _memory(method: str, dim: int, heads: int, capacity: int) -> dict[str, Any]:
    """Settings of the policy that depend on the method: widths and reach as those of the others."""
    name, _, more = METHODS[method]
    settings: dict[str, Any] = {"dim": dim, "capacity": capacity}
    if name == "lstm":
        settings = {"hidden_dim": dim}
    if name.startswith("smt"):
        settings["heads"] = heads
    if name == "smt-factorized":
        settings["n_centres"] = min(100, capacity // 4)
    # Q = FC(3) o ReLU FC(width); without a memory also the layer that makes its input from the embeddings
    layers = [dim, dim] if name == "none" else [dim]
    return {
        "memory": name,
        "memory_kwargs": {} if name == "none" else settings | more,
        "net_arch": {"pi": layers, "vf": []},
    }


def _policy(method: str, dim: int, heads: int, capacity: int, network: str) -> dict[str, Any]:
    """Settings of a policy: encoder of 64 for each kind of sight, the action before embedded in 16, ReLU."""
    return {
        **_memory(method, dim, heads, capacity),
        "features_extractor_class": "SceneEncoder",
        "features_extractor_kwargs": {"network": network, "dim": 64},
        "previous_action_dim": 16,
        "activation": "relu",
        "adam_eps": 1e-8,
    }


def _steps(dqn: DQNConfig, n_envs: int, collections: int) -> int:
    """Environment steps of a run: filling the replay, and as many collections of one episode in each environment."""
    fill = -(-dqn.capacity // n_envs)
    return (fill + collections) * n_envs * dqn.episode_steps


def _base(task: str, dqn: DQNConfig, n_envs: int, collections: int, policy: dict[str, Any], **more: Any) -> RunConfig:
    """A run in homes of the SUNCG style: trained in 156 homes, the best checkpoint chosen in 39 others, evaluated in 46."""
    env, score, learning = TASKS[task]
    horizon = {"max_episode_steps": dqn.episode_steps}
    return RunConfig(
        env=env,
        env_kwargs={"world": "suncg_style", "split": "train", **horizon, **more.pop("env_kwargs", {})},
        n_envs=n_envs,
        total_steps=_steps(dqn, n_envs, collections),
        learner=replace(dqn, **learning),
        policy=policy,
        validation_kwargs={"split": "validation"},
        eval_kwargs={"split": "test"},
        eval_steps=dqn.episode_steps,
        eval_trials=460,
        eval_all_layouts=True,
        score=score,
        **more,
    )


#: For two cores: a row of 64 rays, 200 steps, a width of 64, 2050 updates that are larger than the article's.
_LAPTOP = DQNConfig(
    capacity=320,
    episode_steps=200,
    updates_per_collect=50,
    batch_size=16,
    decisions=8,
    learning_rate=1e-3,
    target_rate=0.01,
    gamma=0.97,
)
#: Methods that learn more in as many updates with another step size.
_LAPTOP_RATES = {"sm-pooling": 3e-3}
#: The article's sizes; 32 new episodes every 500 updates.
_PAPER = DQNConfig(precision="bfloat16")


def _laptop(task: str, method: str, **changes: Any) -> RunConfig:
    policy = _policy(method, dim=64, heads=4, capacity=200, network="small")
    dqn = replace(_LAPTOP, learning_rate=_LAPTOP_RATES.get(method, _LAPTOP.learning_rate), **changes)
    scan = {"obs_mode": "scan"}
    return _base(task, dqn, 16, 40, policy, threads=1, env_kwargs=scan, checkpoint_rollouts=10, validation_trials=78)


def _paper(task: str, method: str, collections: int, **changes: Any) -> RunConfig:
    policy = _policy(method, dim=128, heads=8, capacity=500, network="resnet")
    dqn = replace(_PAPER, **changes)
    return _base(task, dqn, 32, collections, policy, checkpoint_rollouts=20, validation_trials=156)


def _smoke(task: str, method: str) -> RunConfig:
    policy = _policy(method, dim=32, heads=2, capacity=50, network="small")
    sizes: dict[str, Any] = {
        "capacity": 16,
        "episode_steps": 50,
        "batch_size": 8,
        "decisions": 4,
        "updates_per_collect": 10,
    }
    scan = {"obs_mode": "scan"}
    config = _base(
        task, replace(_LAPTOP, **sizes), 4, 20, policy, threads=1, env_kwargs=scan, checkpoint_rollouts=5, validation_trials=4
    )  # fmt: skip
    return replace(config, eval_trials=8)


def _stages(name: str, about: str, first: RunConfig, second: dict[str, RunConfig]) -> dict[str, tuple[str, RunConfig]]:
    """The first stage, and those methods of the second that start with its encoder."""
    policy = {**first.policy, "single_steps": True}
    what = f"{about}, first stage: everything is learned, each decision from its own step only"
    presets = {f"{name}-encoder": (what, replace(first, policy=policy))}
    for method, config in second.items():
        frozen = replace(config, policy={**config.policy, **FROZEN}, encoder_from=f"runs/{name}-encoder-{{seed}}")
        presets[f"{name}-{method}"] = (f"{about}, second stage: {METHODS[method][1]}", frozen)
    return presets


SMT_PRESETS: dict[str, tuple[str, RunConfig]] = {}
for _task in TASKS:
    SMT_PRESETS |= _stages(
        f"{_task}-laptop",
        f"{_task.capitalize()} for two cores",
        _laptop(_task, "smt", updates_per_collect=200),
        {method: _laptop(_task, method) for method in METHODS},
    )
    SMT_PRESETS |= _stages(  # 100 K updates and 200 K
        f"{_task}-paper-like",
        f"{_task.capitalize()} at the article's sizes",
        _paper(_task, "smt", 200, decisions=8),
        {method: _paper(_task, method, 400) for method in METHODS},
    )
SMT_PRESETS |= _stages(
    "coverage-smoke",
    "Coverage in a minute, which only shows that everything runs",
    _smoke("coverage", "smt"),
    {"smt": _smoke("coverage", "smt")},
)


def _add(name: str, base: str, what: str, changes: list[tuple[str, Any]], **more: Any) -> None:
    SMT_PRESETS[name] = (what, replace(with_overrides(SMT_PRESETS[base][1], changes), **more))


_add(
    "coverage-literal-smt",
    "coverage-paper-like-smt",
    "Coverage at the article's sizes and as it can be read: one new episode every 500 updates, at least 200,000 of them",
    [("n_envs", 1), ("total_steps", (1000 + 400) * 500)],
)
_add(
    "coverage-fast-smt",
    "coverage-paper-like-smt",
    "Coverage at the article's sizes with 64 new episodes every 200 updates",
    [("n_envs", 64), ("dqn.updates_per_collect", 200), ("total_steps", (16 + 1000) * 64 * 500), ("checkpoint_rollouts", 50)],
)  # fmt: skip
_add(
    "coverage-laptop-smt-ppo",
    "coverage-laptop-smt",
    "Coverage for two cores, second stage: the Scene Memory Transformer with PPO",
    [("policy.net_arch", {"pi": [64], "vf": [64]}), ("total_steps", 320_000)],
    learner=PPOConfig(
        gamma=_LAPTOP.gamma, learning_rate=1e-3, final_learning_rate=1e-4, n_steps=200, n_updates=1, n_epochs=2, batch_size=8,
        normalize_advantage=True, clip_range_vf=None, vf_coef=0.001, gae_lambda=0.95, bootstrap_truncated=True,
    ),
)  # fmt: skip
