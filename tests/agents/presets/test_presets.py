"""Presets against the numbers of the specification, and families of them against the preset that they are derived from."""

from __future__ import annotations

import json
from typing import Any, get_args

import numpy as np
import pytest
import torch
from gymnasium import spaces

from memenvs.agents import PartialUpdatePPO, PPOConfig, make_vec_env
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.memory import make_memory
from memenvs.agents.memory.relic import Sink
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.presets import PRESETS, find_preset
from memenvs.retention import STRATEGIES

#: T, K, sink, layers / heads / width / MLP, environments: ReLIC specification, section 9.7.
PUBLISHED = {
    "relic-hssd": (4096, 16, "kv0", (4, 8, 256, 1024), 80),
    "relic-64k": (65_536, 256, "kv0", (4, 8, 256, 1024), 80),
    "relic-replicacad": (4096, 4, "kv0", (4, 8, 256, 1024), 80),
    "relic-replicacad-k1": (4096, 1, "kv0", (4, 8, 256, 1024), 80),
    "relic-darkroom": (512, 4, "k0v0", (2, 8, 64, 256), 64),
    "relic-darkroom-example": (4096, 16, "kv", (2, 8, 64, 256), 8),
    "relic-miniworld": (512, 2, "k0v0", (2, 8, 64, 256), 64),
    "ci-smoke": (128, 4, "k0v0", (1, 2, 32, 64), 8),
}
SINKS = get_args(Sink)


def flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted name."""
    out: dict[str, Any] = {}
    for key, value in data.items():
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {prefix + key: value}
    return out


def difference(name: str, base: str) -> dict[str, Any]:
    """Settings of a preset that its base has otherwise; "absent" where it has none of that name."""
    own, other = (flat(find_preset(each).to_json()) for each in (name, base))
    return {
        key: own.get(key, "absent") for key in sorted(own | other) if own.get(key, "absent") != other.get(key, "absent")
    }


def test_each_strategy_solves_a_task_and_meets_the_others() -> None:
    for task in STRATEGIES:
        for strategy in STRATEGIES:
            config = find_preset(f"ballet-{task}" + f"-{strategy}" * (task != strategy))
            assert (config.env, config.policy["strategy"]) == (f"memenvs/RoomBallet-{task.upper()}-v0", strategy)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes(name: str) -> None:
    steps, updates, sink, sizes, envs = PUBLISHED[name]
    config = find_preset(name)
    memory = config.policy["memory_kwargs"]
    assert (config.learner.n_steps, config.learner.n_updates, config.n_envs) == (steps, updates, envs)
    assert memory["sink"] == sink
    assert tuple(memory[key] for key in ("layers", "heads", "dim", "mlp_dim")) == sizes


@pytest.mark.parametrize("name", [name for name in PRESETS if isinstance(find_preset(name).learner, PPOConfig)])
def test_every_preset_fits_its_environment(name: str) -> None:
    config = find_preset(name)
    assert config.learner.n_steps % config.learner.n_updates == 0
    env = make_vec_env(config.env, 1, **config.env_kwargs)
    horizon, trial = env.env.max_episode_steps, config.env_kwargs.get("trial_steps")
    env.close()
    assert config.policy["memory_kwargs"].get("max_episode_steps", horizon) >= horizon
    if config.learner.reset_each_rollout is False:  # whole chunks in a trial, whole trials between checkpoints
        assert trial % config.learner.n_steps == 0
        assert config.learner.n_steps * config.checkpoint_rollouts % trial == 0
        assert config.eval_kwargs["trial_steps"] is None
    if config.env_kwargs.get("trial_episodes") == 1:
        assert config.eval_kwargs["trial_episodes"] is None


def test_parameter_counts() -> None:
    """Section 3.5: 4,675,687 with an inert sink token of 256, and a position table of 512 rows."""
    space = spaces.Dict(
        {key: spaces.Box(-1.0, 1.0, (n,), np.float32) for key, n in (("image", 768), ("goal", 20), ("gps", 2))}
    )
    config = with_overrides(
        find_preset("relic-hssd"),
        [("policy.memory_kwargs.sink", "kv"), ("policy.features_extractor_kwargs.widths.image", 256)],
    )
    policy = MemoryPolicy(space, spaces.Discrete(6), lambda _: 1e-3, **config.policy)
    positions = policy.memory.positions.numel()
    assert positions == 512 * 256
    assert sum(p.numel() for p in policy.parameters()) - positions == 4_675_687 - 256
    state = policy.memory.initial_state(1, max_steps=100)
    assert state["cache"].nbytes == 101 * 4096  # section 8.1: 4096 bytes for a step, and the sink
    counts = {part: sum(p.numel() for p in getattr(policy.memory, part).parameters()) for part in ("input", "output")}
    assert counts == {"input": 205_056, "output": 65_792}


def test_baselines_of_the_darkroom() -> None:
    carried = {
        "checkpoint_rollouts": 20,
        "env_kwargs.trial_steps": 500,
        "eval_kwargs.trial_steps": None,
        "ppo.n_steps": 250,
        "ppo.n_updates": 1,
        "ppo.reset_each_rollout": False,
    }
    relic = flat(find_preset("darkroom").policy)
    gone = {f"policy.{key}": "absent" for key in relic if key.startswith("memory_kwargs.")}
    rl2 = {"policy.memory": "lstm", "policy.memory_kwargs.hidden_dim": 128, "policy.memory_kwargs.layers": 2}
    trxl = {"policy.memory": "trxl", "policy.memory_kwargs.memory_length": 250, "policy.memory_kwargs.dropout": 0.0}
    sizes = {f"policy.memory_kwargs.{key}" for key in ("layers", "heads", "dim", "mlp_dim")}
    expected = {
        "rl2": carried | gone | rl2 | {"ppo.credit_across_episodes": True},
        "trxl": {key: value for key, value in (carried | gone | trxl).items() if key not in sizes},
        "no-iea": {"policy.memory_kwargs.inter_episode": False},
        "transformer-se": {
            "policy.memory_kwargs.inter_episode": False,
            "env_kwargs.trial_episodes": 1,
            "eval_kwargs.trial_episodes": None,
            "ppo.full_update": False,
            "ppo.shuffle_episodes": False,
        },
        "k1": {"ppo.n_updates": 1},
        "no-shuffle": {"ppo.shuffle_episodes": False},
        **{f"sink-{sink}": {"policy.memory_kwargs.sink": sink} for sink in SINKS if sink != "k0v0"},
    }
    for name, wanted in expected.items():
        got = difference(f"darkroom-{name}", "darkroom")
        same = {
            key for key, value in wanted.items() if flat(find_preset("darkroom").to_json()).get(key, "new") == value
        }
        assert got == {key: value for key, value in wanted.items() if key not in same}, name


def test_families_are_complete() -> None:
    baselines = {"rl2", "trxl", "no-iea", "transformer-se"}
    ablations = {"k1", "no-shuffle"} | {f"sink-{sink}" for sink in SINKS}
    for base, family in (
        ("darkroom", baselines | ablations),
        ("extobjnav", baselines),
        ("extobjnav-small", baselines | ablations | {"rgb"}),
        ("relic-replicacad", ablations),
    ):
        own = f"sink-{find_preset(base).policy['memory_kwargs']['sink']}"
        names = [name for name in PRESETS if name.startswith(f"{base}-")]
        if base == "extobjnav":  # "small" is a family of its own
            names = [name for name in names if not name.startswith("extobjnav-small")]
        got = {name.removeprefix(f"{base}-") for name in names}
        assert got == family - {own}
        total = find_preset(base).total_steps
        assert all(find_preset(f"{base}-{name}").total_steps == total for name in got - {"rgb"})


def test_rl2_as_published() -> None:
    config = find_preset("extobjnav-rl2")
    memory = make_memory("lstm", 800, **config.policy["memory_kwargs"])
    assert (memory.config.hidden_dim, memory.config.layers, memory.config.reset_on) == (512, 2, "trial")
    ppo = config.learner
    assert (ppo.n_steps, ppo.n_epochs, config.n_envs // ppo.batch_size, ppo.clip_range) == (256, 4, 2, 0.2)
    assert (ppo.learning_rate, ppo.ent_coef, ppo.max_grad_norm, config.env_kwargs["trial_steps"]) == (
        2.5e-4,
        0.01,
        0.2,
        4096,
    )
    widths = config.policy["features_extractor_kwargs"]["widths"]
    assert (widths["goal"], config.policy["previous_action_dim"]) == (512, 512)


def test_a_derived_preset_leaves_its_base_alone() -> None:
    before = json.dumps(find_preset("darkroom").to_json())
    changed = with_overrides(find_preset("darkroom"), [("policy.memory_kwargs.sink", "kv"), ("env_kwargs.size", 3)])
    assert changed.policy["memory_kwargs"]["sink"] == "kv"
    assert json.dumps(find_preset("darkroom").to_json()) == before


@pytest.mark.parametrize("name", ["fourboxes", "relic-miniworld"])
def test_a_small_one_learns_from_images(name: str) -> None:
    """Two episodes of 5 steps: the gradient reaches the first convolution."""
    small = [("ppo.n_steps", 10), ("ppo.n_updates", 2), ("env_kwargs.max_episode_steps", 5)]
    config = with_overrides(find_preset(name), small)
    env = make_vec_env(config.env, 2, seed=0, **config.env_kwargs)
    model = PartialUpdatePPO("MemoryPolicy", env, config.learner, policy_kwargs=config.policy, seed=0, device="cpu")
    first = model.policy.features_extractor.parts["rgb"].layers[0]  # type: ignore[index, union-attr]
    before = first.weight.detach().clone()
    model.learn(2 * 10)
    assert not torch.equal(before, first.weight.detach())


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("darkroom-")])
def test_a_small_one_of_each_learns(name: str) -> None:
    """The preset with fewer and shorter episodes and a narrow memory: every setting of it goes through the learner."""
    config = find_preset(name)
    scale = find_preset("darkroom").learner.n_steps // 20  # trials of 20 steps, episodes of 4
    small = [
        ("ppo.n_steps", config.learner.n_steps // scale),
        ("env_kwargs.max_episode_steps", 4),
        ("env_kwargs.size", 3),
    ]
    if "trial_steps" in config.env_kwargs:
        small.append(("env_kwargs.trial_steps", 20))
    for key, value in (("dim", 16), ("mlp_dim", 16), ("hidden_dim", 16), ("memory_length", 6)):
        if key in config.policy["memory_kwargs"]:
            small.append((f"policy.memory_kwargs.{key}", value))
    config = with_overrides(config, small)
    env = make_vec_env(config.env, 4, seed=0, **config.env_kwargs)
    model = PartialUpdatePPO("MemoryPolicy", env, config.learner, policy_kwargs=config.policy, seed=0, device="cpu")
    before = model.policy.actor.linear.weight.detach().clone()
    model.learn(2 * 4 * 20)
    assert not np.array_equal(before, model.policy.actor.linear.weight.detach())
    trials = {"darkroom-transformer-se": 10}.get(name, 1 if config.learner.reset_each_rollout is not False else 2)
    assert [info["trial_id"] for info in env.reset_infos] == [trials] * 4
