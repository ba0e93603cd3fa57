"""`memenvs warmup` of what learners need beyond the environments."""

from __future__ import annotations

from typing import Any

from memenvs.agents import PartialUpdatePPO, make_vec_env


def learn() -> None:
    """Compile what learners need, by a few steps of learning."""
    env = make_vec_env("memenvs/Darkroom-v0", 2, seed=0, max_episode_steps=4)
    sizes: dict[str, Any] = {"n_steps": 8, "n_updates": 2, "batch_size": 2, "n_epochs": 1}
    PartialUpdatePPO("MemoryPolicy", env, device="cpu", seed=0, **sizes).learn(16)
    env.close()
