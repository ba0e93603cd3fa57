"""`EpisodicQAEncoder`: what counts and what does not; answers of the oracle are learned."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.preprocessing import preprocess_obs
from torch import Tensor

from memenvs.agents import make_vec_env
from memenvs.agents.encoders import EpisodicQAEncoder

SMALL: dict[str, Any] = {"scale": "smoke", "frames_per_step": 4}


def observed(steps: int = 1, **settings: Any) -> tuple[spaces.Dict, list[dict[str, Tensor]]]:
    """Space of EpisodicQA-Tiny, and what eight environments see while the oracle answers."""
    env = make_vec_env("memenvs/EpisodicQA-Tiny-v0", 8, seed=0, **SMALL, **settings)
    latest, seen = env.reset(), []
    for _ in range(steps):
        tensors = {key: torch.as_tensor(np.array(value)) for key, value in latest.items()}
        seen.append(preprocess_obs(tensors, env.observation_space, normalize_images=False))
        latest = env.step(env.oracle_actions())[0]
    return env.observation_space, seen  # type: ignore[return-value]


@pytest.mark.parametrize("settings", [{}, {"answer_mode": "tokens"}, {"modalities": ("date", "signals")}])
def test_every_part_counts_and_padding_does_not(settings: dict[str, Any]) -> None:
    space, seen = observed(12, **settings)
    encoder = EpisodicQAEncoder(space, width=8, frame_dim=16)
    streaming = next(observation for observation in seen if (observation["frame_mask"].sum(1) > 0).any())
    answering = next(observation for observation in seen[::-1] if (observation["prefix"].flatten(1).sum(1) > 0).any())
    for observations, keys in (
        (streaming, [key for key in space.spaces if key.startswith("frame_")]),
        (answering, ["query", "prefix", "phase"]),
    ):
        before = encoder(observations)
        assert before.shape == (8, encoder.features_dim) and before.isfinite().all()
        for key in keys:
            if observations[key].any():
                changed = encoder(observations | {key: torch.zeros_like(observations[key])})
                assert not torch.allclose(changed, before), key
    mask = streaming["frame_mask"][..., None] > 0
    noise = {  # where there is no key frame
        key: torch.where(mask.view(*mask.shape[:2], *[1] * (value.ndim - 2)), value, torch.ones_like(value))
        for key, value in streaming.items()
        if key.startswith("frame_") and key != "frame_mask"
    }
    torch.testing.assert_close(encoder(streaming | noise), encoder(streaming))
    words = answering["query"].flip(1)  # the order of words counts
    assert not torch.allclose(encoder(answering | {"query": words}), encoder(answering))


def test_wrong_settings_are_named() -> None:
    space = observed()[0]
    for name in ("width", "frame_dim"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            EpisodicQAEncoder(space, **{name: 0})
    for other in (spaces.Box(0.0, 1.0, (3,)), spaces.Dict({"query": spaces.Box(0, 1, (3,))})):
        with pytest.raises(ValueError, match="observation_space must be that of EpisodicQA"):
            EpisodicQAEncoder(other)  # type: ignore[arg-type]
