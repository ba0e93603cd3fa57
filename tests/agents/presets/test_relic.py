"""Presets of ReLIC against the numbers of its specification; small ones of them learn."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from gymnasium import spaces

from memenvs.agents import PartialUpdatePPO, PPOConfig, make_vec_env
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.memory import make_memory
from memenvs.agents.memory.relic import Sink
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.presets import PRESETS, find_preset, preset_descriptions

#: T, K, sink, layers / heads / width / MLP, environments: ReLIC specification, section 9.7.
PUBLISHED = {
    "extobjnav:hssd": (4096, 16, "kv0", (4, 8, 256, 1024), 80),
    "extobjnav:64k": (65_536, 256, "kv0", (4, 8, 256, 1024), 80),
    "relic-replicacad": (4096, 4, "kv0", (4, 8, 256, 1024), 80),
    "relic-replicacad:k1": (4096, 1, "kv0", (4, 8, 256, 1024), 80),
    "relic-darkroom": (512, 4, "k0v0", (2, 8, 64, 256), 64),
    "relic-darkroom:example": (4096, 16, "kv", (2, 8, 64, 256), 8),
    "relic-miniworld": (512, 2, "k0v0", (2, 8, 64, 256), 64),
    "ci-smoke": (128, 4, "k0v0", (1, 2, 32, 64), 8),
}


def small_learner(config: RunConfig, n_envs: int) -> PartialUpdatePPO:
    env = make_vec_env(config.env, n_envs, seed=0, **config.env_kwargs)
    return PartialUpdatePPO("MemoryPolicy", env, config.learner, policy_kwargs=config.policy, seed=0, device="cpu")


def test_published_sizes() -> None:
    for name, (steps, updates, sink, sizes, envs) in PUBLISHED.items():
        config = find_preset(name)
        memory = config.policy["memory_kwargs"]
        assert (config.learner.n_steps, config.learner.n_updates, config.n_envs) == (steps, updates, envs), name
        assert memory["sink"] == sink, name
        assert tuple(memory[key] for key in ("layers", "heads", "dim", "mlp_dim")) == sizes, name


def test_rollouts_fit_episodes_and_trials() -> None:
    for name in preset_descriptions():
        config = find_preset(name)
        if not isinstance(config.learner, PPOConfig):
            continue
        assert config.learner.n_steps % config.learner.n_updates == 0, name
        env = make_vec_env(config.env, 1, **config.env_kwargs)
        horizon = env.env.max_episode_steps
        env.close()
        trial = config.env_kwargs.get("trial_steps")
        assert config.policy["memory_kwargs"].get("max_episode_steps", horizon) >= horizon, name
        if config.learner.reset_each_rollout is False:  # whole chunks in a trial, whole trials between checkpoints
            assert trial % config.learner.n_steps == 0, name
            assert config.learner.n_steps * config.checkpoint_rollouts % trial == 0, name
            assert config.eval_kwargs["trial_steps"] is None, name
        if config.env_kwargs.get("trial_episodes") == 1:
            assert config.eval_kwargs["trial_episodes"] is None, name


def test_baselines_and_ablations_get_the_same_steps_and_evaluation() -> None:
    for base in ("darkroom", "extobjnav", "extobjnav-small", "relic-replicacad"):
        config = find_preset(base)
        for name, variant in ((each, PRESETS[base].variant(each)) for each in PRESETS[base].variants):
            if name in ("hssd", "64k", "rgb"):  # other budgets, no baselines
                continue
            same = ("env", "n_envs", "total_steps", "eval_steps", "eval_trials", "eval_all_layouts", "score")
            assert all(getattr(variant, key) == getattr(config, key) for key in same), f"{base}:{name}"
    ablations = {name for name in PRESETS["darkroom"].variants if name.startswith("sink-")}
    assert ablations == {f"sink-{sink}" for sink in get_args(Sink)} - {"sink-k0v0"}


def test_parameter_counts() -> None:
    """Section 3.5: 4,675,687 with an inert sink token of 256, and a position table of 512 rows."""
    space = spaces.Dict(
        {key: spaces.Box(-1.0, 1.0, (n,), np.float32) for key, n in (("image", 768), ("goal", 20), ("gps", 2))}
    )
    config = with_overrides(
        find_preset("extobjnav:hssd"),
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


def test_rl2_as_published() -> None:
    config = find_preset("extobjnav:rl2")
    memory = make_memory("lstm", 800, **config.policy["memory_kwargs"])
    assert (memory.config.hidden_dim, memory.config.layers, memory.config.reset_on) == (512, 2, "trial")
    ppo = config.learner
    assert (ppo.n_steps, ppo.n_epochs, config.n_envs // ppo.batch_size, ppo.clip_range) == (256, 4, 2, 0.2)
    assert (ppo.learning_rate, ppo.ent_coef, ppo.max_grad_norm) == (2.5e-4, 0.01, 0.2)
    assert config.env_kwargs["trial_steps"] == 4096
    widths = config.policy["features_extractor_kwargs"]["widths"]
    assert (widths["goal"], config.policy["previous_action_dim"]) == (512, 512)


def test_the_gradient_reaches_the_first_convolution() -> None:
    """Two episodes of 5 steps in FourBoxes."""
    small = [("ppo.n_steps", 10), ("ppo.n_updates", 2), ("env_kwargs.max_episode_steps", 5)]
    for name in ("fourboxes", "relic-miniworld"):
        model = small_learner(with_overrides(find_preset(name), small), 2)
        first = model.policy.features_extractor.parts["rgb"].layers[0]  # type: ignore[index, union-attr]
        before = first.weight.detach().clone()
        model.learn(2 * 10)
        assert not torch.equal(before, first.weight.detach()), name


@pytest.mark.nightly  # tests/agents/presets/test_presets.py makes each learner
def test_every_variant_of_the_darkroom_learns() -> None:
    """Fewer and shorter episodes and a narrow memory; every other setting of the variant goes through the learner."""
    scale = find_preset("darkroom").learner.n_steps // 20  # trials of 20 steps, episodes of 4
    for name in PRESETS["darkroom"].variants:
        config = find_preset(f"darkroom:{name}")
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
        model = small_learner(with_overrides(config, small), 4)
        before = model.policy.actor.linear.weight.detach().clone()
        model.learn(2 * 4 * 20)
        assert not np.array_equal(before, model.policy.actor.linear.weight.detach()), name
        trials = {"transformer-se": 10}.get(name, 1 if config.learner.reset_each_rollout is not False else 2)
        assert [info["trial_id"] for info in model.env.reset_infos] == [trials] * 4, name
