"""Spaces, images and features extractors of users in checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor

from memenvs.agents import PartialUpdatePPO, make_vec_env, register_features_extractor
from memenvs.agents.algorithms.spaces import MAX_ELEMENTS, space_from_json, space_to_json
from memenvs.agents.policies.policy_arguments import FEATURES_EXTRACTORS
from tests.agents.learners import Noise

SPACES = [
    spaces.Discrete(4),
    spaces.Discrete(4, start=2),
    spaces.MultiDiscrete([2, 3], start=[1, 0]),
    spaces.MultiBinary(3),
    spaces.Box(0, 255, (4, 5, 3), np.uint8),
    spaces.Box(np.array([-1.0, -np.inf, 0.1], np.float32), np.array([1.0, np.inf, 0.3], np.float32)),
    spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
    spaces.Dict({"b": spaces.Discrete(3), "a": spaces.Box(-1.0, 1.0, (2,), np.float32)}),
]


def test_spaces_are_rebuilt() -> None:
    for space in SPACES:
        assert space_from_json(json.loads(json.dumps(space_to_json(space)))) == space


def test_spaces_that_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="space must be a Box, Discrete"):
        space_to_json(spaces.Text(5))
    with pytest.raises(ValueError, match="unknown kind of space 'Text'"):
        space_from_json({"kind": "Text"})


def test_bounds_are_one_number_where_they_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    image = space_to_json(spaces.Box(0, 255, (4, 5, 3), np.uint8))
    assert image == {"kind": "Box", "shape": [4, 5, 3], "dtype": "uint8", "low": 0.0, "high": 255.0}
    uneven = space_to_json(spaces.Box(np.array([[0, 1]]), np.array([[7, 9]]), dtype=np.int16))
    assert uneven == {"kind": "Box", "shape": [1, 2], "dtype": "int16", "low": [[0.0, 1.0]], "high": [[7.0, 9.0]]}
    empty = spaces.Box(np.zeros((0,), np.float32), np.ones((0,), np.float32))
    assert space_from_json(space_to_json(empty)) == empty
    assert MAX_ELEMENTS == 2**28
    monkeypatch.setattr("memenvs.agents.algorithms.spaces.MAX_ELEMENTS", 6)
    data = {"kind": "Box", "dtype": "float32", "low": 0, "high": 1}
    assert space_from_json(data | {"shape": [2, 3]}).shape == (2, 3)
    with pytest.raises(ValueError, match=r"a Box must have at most 6 elements, got the shape \(7, 1\)"):
        space_from_json(data | {"shape": [7, 1]})


class Tripled(BaseFeaturesExtractor):
    """A features extractor of a user."""

    def __init__(self, observation_space: spaces.Space) -> None:
        super().__init__(observation_space, features_dim=12)

    def forward(self, observations: Tensor) -> Tensor:
        return observations.repeat(1, 3)


def test_features_extractors_of_users_are_registered(tmp_path: Path) -> None:
    env = make_vec_env("CartPole-v1", 1)
    policy = {"memory": "none", "features_extractor_class": Tripled}
    name = "memenvs.agents.register_features_extractor"
    with pytest.raises(ValueError, match=f"features_extractor_class Tripled must be registered by {name}, so that"):
        PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, device="cpu")
    assert register_features_extractor(Tripled) is register_features_extractor(Tripled) is Tripled
    try:
        PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy, device="cpu").save(tmp_path / "model")
        assert PartialUpdatePPO.load(tmp_path / "model", device="cpu").policy.features_dim == 12
        twin = type("Tripled", (Tripled,), {"__module__": "elsewhere"})
        with pytest.raises(ValueError, match=r"'Tripled' is registered twice: in .*spaces and in elsewhere"):
            register_features_extractor(twin)
    finally:
        del FEATURES_EXTRACTORS["Tripled"]
    with pytest.raises(ValueError, match=rf"unknown features_extractor_class 'Tripled'; .* yours by {name}"):
        PartialUpdatePPO.load(tmp_path / "model", device="cpu")
    with pytest.raises(TypeError, match="extractor must be a subclass of BaseFeaturesExtractor, got 3"):
        register_features_extractor(3)  # type: ignore[type-var]


def test_images_are_transposed_at_load(tmp_path: Path) -> None:
    policy = {
        "memory": "none",
        "features_extractor_class": "NatureCNN",
        "features_extractor_kwargs": {"features_dim": 8},
    }
    env = Noise(spaces.Box(0, 255, (36, 36, 3), np.uint8), horizon=1)
    model = PartialUpdatePPO("MemoryPolicy", env, n_steps=4, policy_kwargs=policy, device="cpu").learn(4)
    model.save(tmp_path / "model")
    loaded = PartialUpdatePPO.load(tmp_path / "model", env, device="cpu")
    loaded.learn(4, reset_num_timesteps=False)
    action, _ = loaded.predict(env.observation_space.low)
    assert action in (0, 1)
