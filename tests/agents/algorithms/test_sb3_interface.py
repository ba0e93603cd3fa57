"""Learners as users of Stable-Baselines3 expect them: files, parameters, settings, logs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from safetensors import SafetensorError
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn

from memenvs.agents import EpisodeDQN, PartialUpdatePPO, PPOConfig, make_vec_env
from memenvs.agents.integrations.loggers import TrackerWriter
from memenvs.agents.policies.policy_arguments import ACTIVATIONS
from tests.agents.learners import STEPS, Hooks, N, Noise, darkroom, learner, weights

VECTOR = spaces.Box(-1.0, 1.0, (3,), np.float32)
DICT = spaces.Dict({"vector": VECTOR, "reward": spaces.Box(0.0, 1.0, (1,), np.float32)})
SMALL_IMAGE = spaces.Box(0, 255, (25, 25, 3), np.uint8)


def noise(space: spaces.Space, n: int = 2) -> DummyVecEnv:
    return DummyVecEnv([lambda: Noise(space)] * n)


def replay_learner(env: Any = None, seed: int = 0, **settings: Any) -> EpisodeDQN:
    policy = {"memory": "lstm", "memory_kwargs": {"hidden_dim": 8}}
    base = {"capacity": 4, "batch_size": 2, "episode_steps": 5, "updates_per_collect": 3, "device": "cpu"}
    return EpisodeDQN("MemoryPolicy", env or darkroom(2, seed=1), policy_kwargs=policy, seed=seed, **(base | settings))


def trained_replay_learner(seed: int = 0) -> EpisodeDQN:
    return replay_learner(seed=seed, target_rate=0.01, learning_rate=1e-2).learn(60)


def test_files_have_the_suffix_of_stable_baselines(tmp_path: Path) -> None:
    model = learner("gru").learn(N * STEPS)
    for name, written in (("abc", "abc.zip"), ("abc.zip", "abc.zip"), ("a/b.v1", "a/b.v1")):
        model.save(str(tmp_path / name))
        assert (tmp_path / written).is_file()
        for path in (tmp_path / name, str(tmp_path / written)):
            assert torch.equal(weights(PartialUpdatePPO.load(path, device="cpu")), weights(model))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "abc.zip"]
    (tmp_path / "abc.zip").rename(tmp_path / "earlier")  # earlier versions added no suffix
    PartialUpdatePPO.load(tmp_path / "earlier", device="cpu")
    with pytest.raises(FileNotFoundError, match=r"no checkpoint at .*abc"):
        PartialUpdatePPO.load(tmp_path / "abc", device="cpu")
    callback = EvalCallback(darkroom(N), n_eval_episodes=N, eval_freq=STEPS, best_model_save_path=str(tmp_path))
    learner("gru").learn(N * STEPS, callback)
    assert (tmp_path / "best_model.zip").is_file()
    PartialUpdatePPO.load(tmp_path / "best_model", device="cpu")


def test_arguments_of_save_and_load_that_mean_nothing_here(tmp_path: Path, capsys: Any) -> None:
    model = learner("gru")
    model.save(tmp_path / "model", exclude=[], include=None)
    for name in ("exclude", "include"):
        with pytest.raises(ValueError, match=rf"{name} must be None: .*drop_training_state.*got \['policy'\]"):
            model.save(tmp_path / "other", **{name: ["policy"]})
    assert not (tmp_path / "other.zip").exists()
    with pytest.raises(ValueError, match=r"custom_objects must be None.*such as learning_rate=1e-4"):
        PartialUpdatePPO.load(tmp_path / "model", custom_objects={"clip_range": 0.1})
    with pytest.raises(ValueError, match="force_reset must be True"):
        PartialUpdatePPO.load(tmp_path / "model", force_reset=False)
    PartialUpdatePPO.load(tmp_path / "model", None, "cpu", {}, True)
    assert "Stable-Baselines3" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match=r"saved with its learner: use model\.save"):
        model.policy.save(tmp_path / "policy")
    with pytest.raises(RuntimeError, match=r"loaded with its learner: use PartialUpdatePPO\.load\(path\)\.policy"):
        type(model.policy).load(tmp_path / "policy")


def test_a_full_disk_names_the_file_of_a_replay(tmp_path: Path, monkeypatch: Any) -> None:
    def full(*_: Any) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    replay = replay_learner().learn(30)
    monkeypatch.setattr("memenvs.agents.algorithms.replay_file.save_file", full)
    with pytest.raises(OSError, match=r"replay\.safetensors: cannot be written \(.*No space left"):
        replay.save_replay_buffer(tmp_path / "replay.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_parameters_are_weights_optimizer_and_target(tmp_path: Path) -> None:
    def next_update(model: EpisodeDQN) -> torch.Tensor:
        replay = trained_replay_learner()
        model._replay = replay.replay  # the same episodes
        model.rngs["replay"] = np.random.default_rng(0)
        model._setup_learn(1)  # makes the logger
        model.train()
        return weights(model)

    source = trained_replay_learner()
    assert list(source.get_parameters()) == ["policy", "policy.optimizer", "target"]
    assert list(learner("gru").get_parameters()) == ["policy", "policy.optimizer"]
    source.save(tmp_path / "source")
    for parameters in (source.get_parameters(), tmp_path / "source"):
        model = replay_learner(seed=5, target_rate=0.01, learning_rate=1e-2)
        model.set_parameters(parameters)
        for own, other in zip(model.target.parameters(), source.target.parameters(), strict=True):
            assert torch.equal(own, other)
        assert not torch.equal(weights(model), torch.cat([p.flatten() for p in model.target.parameters()]))
        assert torch.equal(next_update(model), next_update(trained_replay_learner()))
    alone = replay_learner(seed=5)
    alone.set_parameters({"policy": source.policy.state_dict()}, exact_match=False)
    assert torch.equal(torch.cat([p.flatten() for p in alone.target.parameters()]), weights(source))
    before = weights(alone)
    with pytest.raises(ValueError, match=r"\['policy.optimizer', 'target'\] missing"):
        alone.set_parameters({"policy": trained_replay_learner(3).policy.state_dict()})
    with pytest.raises(ValueError, match="unknown parameters 'q_net'; choose from"):
        alone.set_parameters({"q_net": {}}, exact_match=False)
    assert torch.equal(before, weights(alone))


def test_checkpoint_callback_saves_the_replay(tmp_path: Path) -> None:
    model = replay_learner()
    model.learn(40, CheckpointCallback(15, str(tmp_path), save_replay_buffer=True))
    loaded = EpisodeDQN.load(tmp_path / "rl_model_30_steps", darkroom(2, seed=1), device="cpu")
    loaded.load_replay_buffer(tmp_path / "rl_model_replay_buffer_30_steps.pkl")
    assert loaded.replay_buffer.count >= 2
    loaded.learn(60)
    assert loaded._n_updates > 0


def refused(error: type[Exception], message: str, make: Callable[[], Any]) -> None:
    with pytest.raises(error, match=message):
        make()


def test_settings_of_stable_baselines_that_are_others_here() -> None:
    env = noise(VECTOR)

    def ppo(policy: Any = "MemoryPolicy", *args: Any, **settings: Any) -> PartialUpdatePPO:
        kwargs = {"memory": "none", **settings.pop("policy_kwargs", {})}
        return PartialUpdatePPO(policy, env, *args, policy_kwargs=kwargs, device="cpu", **settings)

    refused(TypeError, "clip_range must be a number, as a checkpoint holds no", lambda: ppo(clip_range=lambda _: 0.1))
    refused(TypeError, "unknown setting 'target_kl'; choose from", lambda: ppo(target_kl=0.1))
    refused(TypeError, "config must be a PPOConfig or None, got 0.001; single settings", lambda: ppo(config=1e-3))
    refused(ValueError, r"unknown policy 'MlpPolicy'; choose from \['MemoryPolicy'\] or pass", lambda: ppo("MlpPolicy"))
    refused(TypeError, "policy must be MemoryPolicy or a subclass, got ActorCr", lambda: ppo(ActorCriticPolicy))
    refused(TypeError, "'ortho_init' of MemoryPolicy; choose", lambda: ppo(policy_kwargs={"ortho_init": True}))
    refused(ValueError, "unknown activation .*Hardtanh", lambda: ppo(policy_kwargs={"activation_fn": nn.Hardtanh}))


def test_activations_are_classes_or_names(tmp_path: Path) -> None:
    for name, kind in ACTIVATIONS.items():
        for settings in ({"activation": name}, {"activation": kind}, {"activation_fn": kind}):
            model = learner("none", policy_kwargs={"net_arch": [4], **settings})
            hidden = [type(module) for module in model.policy.mlp_extractor.policy_net]
            assert hidden == [nn.Linear, kind]
            assert model.policy.json_kwargs()["activation"] == name
        model.save(tmp_path / name)
        assert PartialUpdatePPO.load(tmp_path / name, device="cpu").policy.json_kwargs() == model.policy.json_kwargs()


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    config = PPOConfig(n_steps=np.int64(8), gamma=np.float32(0.5), full_update=np.bool_(True))  # type: ignore[arg-type]
    assert [type(value) for value in (config.n_steps, config.gamma, config.full_update)] == [int, float, bool]
    policy = {"memory": "gru", "memory_kwargs": {"hidden_dim": np.int64(4), "layers": np.array(1)}}
    policy |= {"net_arch": [np.int32(4)], "previous_action_dim": np.int8(2)}
    model = PartialUpdatePPO("MemoryPolicy", noise(VECTOR), config, n_updates=np.int16(2), policy_kwargs=policy)
    model.save(tmp_path / "model")
    loaded = PartialUpdatePPO.load(tmp_path / "model").policy.json_kwargs()
    assert (loaded["net_arch"], loaded["memory_kwargs"]) == ([4], {"hidden_dim": 4, "layers": 1})
    refused(TypeError, "n_steps must be a whole number", lambda: PPOConfig(n_steps=np.float64(8.0)))  # type: ignore[arg-type]

    message = "features_extractor_kwargs must be numbers, texts, lists and dicts, .* got .*Iden"
    extractor = {"features_extractor_class": "CombinedExtractor"}
    extractor["features_extractor_kwargs"] = {"normalized_image": nn.Identity()}
    refused(TypeError, message, lambda: learner("none", env=noise(DICT), policy_kwargs=extractor))


@pytest.mark.slow
def test_integer_observations() -> None:
    for space in (
        spaces.Box(0, 100, (3,), np.uint64),
        spaces.Dict({"count": spaces.Box(0, 9, (1,), np.uint16), "kind": spaces.MultiDiscrete([2, 2])}),
    ):
        model = learner("gru", env=noise(space, N), n_epochs=1).learn(N * STEPS)
        assert model._n_updates == 3
        observation = model.env.reset()  # type: ignore[union-attr]
        model.predict(observation)
        replay = replay_learner(noise(space)).learn(40)
        assert replay._n_updates > 0
        assert replay.replay.read(torch.tensor([0]), torch.tensor([[0, 1]])).observations is not None
    large = spaces.Box(0, 2**32 - 1, (1,), np.uint32)
    replay = replay_learner(env := noise(large))
    replay.learn(20)
    values = replay.replay.read(torch.arange(4), torch.arange(5).expand(4, -1)).observations
    assert int(values.max()) > 2**31  # no value has wrapped around
    assert env.observation_space == large


def test_observations_that_do_not_fit_are_named() -> None:
    model = learner("gru", env=noise(DICT, N), policy_kwargs={})
    batch = {key: np.stack([space.sample()] * 2) for key, space in DICT.items()}
    _, state = model.predict(batch)

    def wrong(message: str, observation: Any, *args: Any) -> None:
        refused(ValueError, message, lambda: model.predict(observation, *args))

    wrong(r"must have the keys \['reward', 'vector'\], got \['vector'\]", {"vector": batch["vector"]})
    wrong(r"must have the keys .*got \['more', 'reward', 'vector'\]", {**batch, "more": batch["reward"]})
    wrong("must be a dict with", batch["vector"])
    wrong(r"observation 'vector' must be of shape \(3,\), or .*got \(2, 2\)", {**batch, "vector": np.zeros((2, 2))})
    wrong("as many rows in each key, got {.*'vector': 1}", {**batch, "vector": batch["vector"][:1]})
    fewer = {key: value[:1] for key, value in batch.items()}
    wrong("state must be of as many environments as the observation, 1, got 'hidden' of 2", fewer, state)
    wrong("episode_start must have a value for each of 2 environments, got 3", batch, state, np.ones(3, bool))
    with pytest.raises(ValueError, match="trial_start must have a value for each of 2 environments, got 1"):
        model.predict(batch, state, trial_start=np.ones(1, bool))
    plain = learner("gru", env=noise(VECTOR, N))
    refused(ValueError, "observation must be an array", lambda: plain.predict(batch))
    refused(ValueError, r"of shape \(3,\), or .*got \(0, 3\)", lambda: plain.predict(np.zeros((0, 3), np.float32)))
    image = learner("none", env=noise(SMALL_IMAGE, N), policy_kwargs={"features_extractor_class": "SmallCNN"})
    for shape in ((25, 25, 3), (3, 25, 25)):  # channels last, as the environment has them, or first
        assert image.predict(np.zeros(shape, np.uint8))[0].shape == ()
        assert image.predict(np.zeros((4, *shape), np.uint8))[0].shape == (4,)
    refused(ValueError, r"must be of shape \(3, 25, 25\)", lambda: image.predict(np.zeros((24, 25, 3), np.uint8)))


class Mission(spaces.Space):
    """As MiniGrid's: a text that is no `Text`."""

    def __init__(self) -> None:
        super().__init__(None, str)  # type: ignore[arg-type]

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return "go"


def test_observations_that_are_no_numbers_are_named() -> None:
    message = r"'mission' is of .*Mission.*FilterObservation\(env, \['image'\]\)"
    space = spaces.Dict({"image": SMALL_IMAGE, "mission": Mission()})
    gym.register("Mission-v0", lambda: Noise(space))
    try:
        refused(ValueError, message, lambda: make_vec_env("Mission-v0", 2))
        refused(ValueError, message, lambda: learner("none", env=Noise(space)))
        refused(ValueError, message, lambda: learner("none", env="Mission-v0"))
    finally:
        gym.registry.pop("Mission-v0")


def test_images_that_are_too_small_for_nature_cnn() -> None:
    def make(env: Any, extractor: str) -> None:
        learner("none", env=env, policy_kwargs={"features_extractor_class": extractor})

    message = r"for {} must have at least 36 x 36 pixels, got '{}' of 25 x 25; use features_extractor_class='{}'"
    boxes = make_vec_env("memenvs/FourBoxes-v0", 2, seed=0)
    for extractor, env, key, use in (
        ("NatureCNN", noise(SMALL_IMAGE), "observation", "SmallCNN"),
        ("CombinedExtractor", boxes, "rgb", "DictEncoder"),
    ):
        refused(ValueError, message.format(extractor, key, use), lambda e=env, x=extractor: make(e, x))
        make(env, use)


def logged(model: Any, steps: int, at_end: list[dict[str, Any]] | None = None, **settings: Any) -> list[dict[str, Any]]:
    """Learn; rows that the logger writes.

    `at_end` gets what the logger has at the end of each rollout.
    """
    rows: list[dict[str, Any]] = []
    writer = TrackerWriter(lambda numbers, step: rows.append(numbers))
    hooks = Hooks(
        training_start=lambda own: own.logger.output_formats.append(writer),
        rollout_end=lambda own: None if at_end is None else at_end.append(dict(own.logger.name_to_value)),
    )
    model.learn(steps, hooks, **settings)
    return rows


def test_callbacks_find_the_latest_update_in_the_logger() -> None:
    peer: list[dict[str, Any]] = []
    logged(PPO("MlpPolicy", noise(VECTOR), n_steps=8, batch_size=8, device="cpu"), 48, peer)
    assert [bool(values) for values in peer] == [False, True, True]  # nothing was learned before the first
    for model, steps in ((learner("gru"), 2 * N * STEPS), (replay_learner(), 50)):
        latest: list[dict[str, Any]] = []
        rows = logged(model, steps, latest)
        updates = [{k: v for k, v in row.items() if k.startswith("train/")} for row in rows]
        assert sum(bool(update) for update in updates) >= 3
        for before, at_end in zip(updates, latest[1:], strict=False):
            assert {k: v for k, v in at_end.items() if k.startswith("train/")} == before
        if isinstance(model, PartialUpdatePPO):  # a row has the statistics of its own update only
            kinds = ["partial", "partial", "full"] * 2
            for kind, row in zip(kinds, rows, strict=True):
                assert [name for name in row if "approx_kl" in name] == [f"train/approx_kl_{kind}"]


def test_no_log() -> None:
    for model in (learner("gru"), replay_learner()):
        assert logged(model, N * STEPS, log_interval=None) == [] and model._n_updates > 0
