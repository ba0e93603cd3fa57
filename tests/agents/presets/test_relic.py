"""Presets of ReLIC against the numbers of its specification."""

import numpy as np
from gymnasium import spaces

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.presets import find_preset

#: T, K, sink, layers / heads / width / MLP, environments: ReLIC specification, section 9.7.
PUBLISHED = {"extobjnav": (4096, 16, "kv0", (4, 8, 256, 1024), 80), "ci-smoke": (128, 4, "k0v0", (1, 2, 32, 64), 8)}


def test_published_sizes() -> None:
    for name, (steps, updates, sink, sizes, envs) in PUBLISHED.items():
        config = find_preset(name)
        memory = config.policy["memory_kwargs"]
        assert (config.learner.n_steps, config.learner.n_updates, config.n_envs) == (steps, updates, envs), name
        assert memory["sink"] == sink, name
        assert tuple(memory[key] for key in ("layers", "heads", "dim", "mlp_dim")) == sizes, name


def test_parameter_counts() -> None:
    """Section 3.5: 4,675,687 with an inert sink token of 256, and a position table of 512 rows."""
    space = spaces.Dict(
        {key: spaces.Box(-1.0, 1.0, (n,), np.float32) for key, n in (("image", 768), ("goal", 20), ("gps", 2))}
    )
    config = with_overrides(
        find_preset("extobjnav"),
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
