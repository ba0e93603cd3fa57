"""Checkpoints: exact resumption, errors that name the file; spaces and extractors."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor

from memenvs.agents import PartialUpdatePPO, make_vec_env, register_features_extractor
from memenvs.agents.algorithms.checkpoint import MEMBERS
from memenvs.agents.algorithms.spaces import MAX_ELEMENTS, space_from_json, space_to_json
from memenvs.agents.policies.policy_arguments import FEATURES_EXTRACTORS
from memenvs.wrappers import TrialWrapper
from tests.agents.learners import SEGMENT, STEPS, N, Noise, darkroom, learner, weights
from tests.damage import members_of, zipped

ROLLOUT = N * STEPS


def json_of(path: Path, name: str) -> dict[str, Any]:
    """A member that is JSON, such as "config"."""
    return json.loads(members_of(path.read_bytes())[f"{name}.json"])


def tensors_of(path: Path, name: str) -> dict[str, Tensor]:
    """Tensors of a member, such as "policy"."""
    return load_tensors(members_of(path.read_bytes())[f"{name}.safetensors"])


def damaged(path: Path, **members: bytes | None) -> Path:
    """A copy with some members replaced ("config" for config.json, ...), or left out."""
    other = path.with_name("damaged")
    names = {name.split(".")[0]: name for name in MEMBERS}
    content = members_of(path.read_bytes()) | {names[stem]: data for stem, data in members.items()}
    other.write_bytes(zipped({name: data for name, data in content.items() if data is not None}))
    return other


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    learner("lstm").learn(N * SEGMENT).save(tmp_path / "model.zip")
    return tmp_path / "model.zip"


def singles() -> Any:
    """Single environments, one after the other."""
    kwargs: dict[str, Any] = {"size": 3, "max_episode_steps": 5}
    return DummyVecEnv([lambda: gym.make("memenvs/Darkroom-v0", **kwargs)] * N)


def trials_of_another_library() -> Any:
    env = DummyVecEnv([lambda: TrialWrapper(gym.make("CartPole-v1"), trial_steps=STEPS)] * N)
    env.seed(4)
    return env


@pytest.mark.parametrize(
    ("memory", "env"),
    [
        ("relic", darkroom),
        ("relic", partial(darkroom, episodes=None, trial_steps=STEPS)),  # trials end with the rollout
        ("lstm", singles),
        ("lstm", trials_of_another_library),
    ],
)
def test_resuming_in_this_process(memory: str, env: Callable[[], Any], tmp_path: Path) -> None:
    kwargs = {"depth_dropout": 0.3} if memory == "relic" else {}  # so that every generator is in use
    whole = learner(memory, env=env(), memory_kwargs=kwargs).learn(2 * ROLLOUT)
    first = learner(memory, env=env(), memory_kwargs=kwargs).learn(ROLLOUT)
    assert first.at_rollout_boundary
    first.save(tmp_path / "model.zip")
    resumed = PartialUpdatePPO.load(tmp_path / "model.zip", env(), device="cpu")
    assert resumed.num_timesteps == ROLLOUT
    resumed.learn(ROLLOUT, reset_num_timesteps=False)
    assert torch.equal(weights(whole), weights(resumed))
    assert whole.num_timesteps == resumed.num_timesteps
    assert list(whole.ep_info_buffer or []) == list(resumed.ep_info_buffer or [])


def test_settings_can_change_at_load(saved: Path) -> None:
    model = PartialUpdatePPO.load(saved, darkroom(), device="cpu", learning_rate=0.5, ent_coef=0.25)
    assert (model.config.learning_rate, model.config.ent_coef) == (0.5, 0.25)
    assert model.config.n_steps == STEPS
    with pytest.raises(TypeError, match="unknown setting 'learning_rat'"):
        PartialUpdatePPO.load(saved, device="cpu", learning_rat=0.5)


def test_the_file_has_json_and_safetensors_only(saved: Path) -> None:
    members = members_of(saved.read_bytes())
    assert list(members) == list(MEMBERS)
    for name, data in members.items():
        assert isinstance(json.loads(data), dict) if name.endswith(".json") else load_tensors(data)


def test_members_that_do_not_fit(saved: Path) -> None:
    config = json_of(saved, "config")
    partial = {key: value for key, value in config.items() if key != "action_space"}
    huge = {"kind": "Box", "shape": [10**9], "dtype": "int8", "low": 0, "high": 1}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"config": config["config"] | {"n_epochs": 10**400}}, "at most 39 digits"),
        ({"config": config["config"] | {"learning_rate": float("inf")}}, "learning_rate must be"),
        ({"action_space": huge}, "most"),
        ({"observation_space": {}}, "observation_space is no space"),
        ({"processes": "two"}, "processes must be a whole number, got 'two'"),
        ({"config": config["config"] | {"new_setting": 1}}, "has a setting that this version does not know, 'new_se"),
        ({"config": 1}, "the settings must be an object, got 1"),
        ({"policy_kwargs": [2]}, r"policy_kwargs must be an object, got \[2\]"),
        ({"config": config["config"] | {"n_epochs": "2"}}, ": n_epochs must be a whole number, got '2'"),
        ({"policy_kwargs": config["policy_kwargs"] | {"memory_kwargs": {"hidden_dim": 9}}}, r"'memory\..*' must be"),
    ]
    unset = torch.zeros_like(torch.Generator().get_state())
    state = json_of(saved, "state")
    deep = b'{"format": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    members: list[tuple[dict[str, bytes | None], str]] = [
        *(({"config": json.dumps(config | change).encode()}, f".*{message}") for change, message in changes),
        ({"config": deep}, r"config\.json: .*levels deep"),
        *(({"config": text}, "") for text in (b"[]", b"{", b"\xff", b"3")),
        ({"config": json.dumps(partial).encode()}, r"config\.json lacks 'action_space'"),
        ({"optimizer": save_tensors({"99.step": torch.tensor(1.0)})}, r"optimizer\.safetensors: .* has no '99.step'"),
        ({"optimizer": None}, "a checkpoint.* must have .*'optimizer.safetensors' is missing"),
        ({"policy": b"nothing"}, "its tensors cannot be read"),
        ({"state": b"{}"}, "state.json lacks 'num_timesteps'"),
        ({"state": b"["}, "state.json: not JSON"),
        ({"state": json.dumps(state | {"resets_with_episode": 2}).encode()}, "state.json: resets_with_episode must be"),
        ({"state": json.dumps(state | {"recent_episodes": [{"r": 1.0}]}).encode()}, "'l'"),
        ({"generators": save_tensors({})}, r"generators\.safetensors: does not fit .* 'sampling' is missing"),
        ({"generators": save_tensors({"sampling": unset})}, r"generators\.safetensors: 'sampling' is no state of a"),
    ]
    for member in ("policy", "optimizer"):
        tensors = tensors_of(saved, member)
        name = next(name for name, value in tensors.items() if value.is_floating_point() and value.dim() == 2)
        tensors[name][0, 0] = float("nan")
        members.append(({member: save_tensors(tensors)}, f"{member}.safetensors: '{name}' must be finite, got NaN"))
    for change, message in members:
        with pytest.raises(ValueError, match=f"damaged: {message}"):
            PartialUpdatePPO.load(damaged(saved, **change))
    marked = b"\xef\xbb\xbf" + json.dumps(config).encode()  # by an editor
    assert PartialUpdatePPO.load(damaged(saved, config=marked)).num_timesteps == N * SEGMENT


def test_weights_of_another_policy(saved: Path) -> None:
    widths = {"memory_kwargs": {"hidden_dim": 8}, "features_extractor_kwargs": {"widths": {"position": 3}}}
    policy: dict[str, Any]
    for policy, message, changed in (
        ({"memory": "gru"}, r"'memory\.network\.weight_ih_l0' must be .* \(24, \d+\), got .*", "memory"),
        ({"net_arch": [8]}, r"'mlp_extractor\..*' is missing", "net_arch"),
        ({"previous_action_dim": 0}, "", "previous_action_dim"),
        (widths, r"'features_extractor\..*' is missing", "features_extractor_kwargs"),
        ({"memory": "relic"}, r"model\.zip: unknown setting 'hidden_dim' of the memory 'relic'.*", "memory"),
        ({"nets": 3}, r"model\.zip: .*unknown setting 'nets' of MemoryPolicy; .*", "nets"),
    ):
        with pytest.raises(ValueError, match=f"{message}; policy_kwargs changes the saved {changed}"):
            PartialUpdatePPO.load(saved, device="cpu", policy_kwargs=policy)


def test_settings_newer_than_the_file_have_their_defaults(saved: Path) -> None:
    config = json_of(saved, "config")
    assert config["config"].pop("prefix_window") == 256
    older = damaged(saved, config=json.dumps(config).encode())
    model = PartialUpdatePPO.load(older, device="cpu")
    assert model.config.prefix_window == 256
    PartialUpdatePPO.check_checkpoint(older, model.config, {"memory": "lstm"}, N)
    with pytest.raises(ValueError, match="damaged: is of another run: prefix_window must be 8, got 256"):
        PartialUpdatePPO.check_checkpoint(older, replace(model.config, prefix_window=8), {}, N)


def test_broken_weights_do_not_replace_a_good_file(saved: Path) -> None:
    before = saved.read_bytes()
    model = PartialUpdatePPO.load(saved, device="cpu")
    with torch.no_grad():
        model.policy.critic.bias.fill_(float("nan"))
    with pytest.raises(ValueError, match=r"weights must be finite, .* 'critic\.bias' after 32 env.* 1 updates"):
        model.save(saved)
    assert saved.read_bytes() == before


def test_a_file_of_another_kind_of_device_draws_anew(saved: Path) -> None:
    """A generator of a GPU has a state of 16 bytes; the actions then follow from the seed."""
    generators = tensors_of(saved, "generators")
    other = damaged(saved, generators=save_tensors(generators | {"sampling": torch.zeros(16, dtype=torch.uint8)}))
    states = [PartialUpdatePPO.load(other, device="cpu").policy.generator.get_state() for _ in range(2)]
    assert torch.equal(*states)
    assert torch.equal(states[0], learner("lstm").policy.generator.get_state())


def test_an_environment_can_be_set_later(tmp_path: Path) -> None:
    learner("relic").learn(ROLLOUT).save(tmp_path / "model.zip")
    model = PartialUpdatePPO.load(tmp_path / "model.zip", device="cpu")
    model.set_env(darkroom(3, seed=5))
    before = weights(model)
    model.learn(3 * STEPS, reset_num_timesteps=False)
    assert model.num_timesteps == ROLLOUT + 3 * STEPS
    assert model.rollout_buffer.actions.shape == (3, STEPS)
    assert not torch.equal(weights(model), before)
    model.set_env(darkroom(1, seed=6))  # also after it has learned in another environment
    model.learn(STEPS, reset_num_timesteps=False)
    assert model.rollout_buffer.trial_start[:, 0].all()


def test_an_environment_that_does_not_fit_is_refused(saved: Path) -> None:
    for env in (make_vec_env("CartPole-v1", 1), make_vec_env("memenvs/Darkroom-v0", N, size=4)):
        with pytest.raises(ValueError, match=r"model\.zip: observation_space must be that of the file, Dict.*, got "):
            PartialUpdatePPO.load(saved, env)
    model = PartialUpdatePPO.load(saved, device="cpu")
    with pytest.raises(ValueError, match=r"observation_space must be Dict.*, got Box"):
        model.set_env(make_vec_env("CartPole-v1", 2))
    with pytest.raises(ValueError, match="force_reset must be True"):
        model.set_env(darkroom(), force_reset=False)
    assert model.env is None


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
        with pytest.raises(ValueError, match=r"'Tripled' is registered twice: in .*checkpoint and in elsewhere"):
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
