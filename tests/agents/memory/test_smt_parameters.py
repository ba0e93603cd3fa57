"""Numbers of parameters of the Scene Memory Transformer's networks, from their sizes."""

from typing import Any

import numpy as np
from gymnasium import spaces
from torch import nn

from memenvs.agents.policies.memory_policy import MemoryPolicy

#: Three images of 64 features each, the pose, and three actions.
OBSERVATIONS = spaces.Dict(
    {"images": spaces.Box(-1.0, 1.0, (3 * 64,), np.float32), "pose": spaces.Box(-9.0, 9.0, (3,), np.float32)}
)
POSE = 5 * 16 + 16  # FC
ACTION = 3 * 16 + 16  # FC of one-hot actions: the bias is the row of "none"
FUSION = (3 * 64 + 16 + 16) * 128 + 128  # FC
ATT_BLOCK = 4 * 128 * 128 + 2 * (128 + 128) + (128 * 128 + 128)  # queries, keys, values, output; two norms; FC
HEAD = (128 * 128 + 128) + (128 * 3 + 3)  # FC 128 and FC of the actions


def count(*modules: nn.Module) -> int:
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def policy(memory: str, **kwargs: Any) -> MemoryPolicy:
    return MemoryPolicy(
        OBSERVATIONS, spaces.Discrete(3), lambda _: 1e-3, memory=memory, memory_kwargs=kwargs, activation="relu",
        net_arch={"pi": [128], "vf": []}, previous_action_dim=16,
    )  # fmt: skip


def test_parameters() -> None:
    for memory, kwargs, expected in [
        ("smt", {}, POSE + FUSION + 2 * ATT_BLOCK),
        ("smt", {"encoder": False}, POSE + FUSION + ATT_BLOCK),
        ("smt", {"tau": [1.0, 10.0, 100.0]}, POSE + 2 * 16 + FUSION + 2 * ATT_BLOCK),
        ("smt-factorized", {}, POSE + FUSION + 3 * ATT_BLOCK),
        ("smt-factorized", {"centres": "static"}, POSE + FUSION + 3 * ATT_BLOCK + 100 * 128),
        ("sm-pooling", {}, POSE + FUSION),
    ]:
        made = policy(memory, **kwargs)
        assert count(made.memory) == expected, (memory, kwargs)
        assert count(made.previous_action) == ACTION
        assert count(made.mlp_extractor, made.actor) == HEAD
    for blocks, published in ((2, 210_979), (3, 293_539)):  # of SMT and of its factorized form, without images
        assert POSE + ACTION + FUSION + blocks * ATT_BLOCK + HEAD == published
