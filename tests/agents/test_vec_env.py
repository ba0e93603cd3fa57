"""Vector environments for Stable-Baselines3: final observations, buffers, trials, seeds."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import memenvs
from memenvs import registry
from memenvs.agents import TrialVecEnv, make_vec_env
from memenvs.agents.vec_env import (
    check_encoder,
    check_vocabulary,
    encoder_fingerprint,
    episode_is_trial,
    vocabulary_fingerprint,
)
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.darkroom.env import Darkroom
from memenvs.registry import full_id
from memenvs.resets import stream_seed
from memenvs.wrappers import PlaceWrapper, TrialWrapper
from tests.agents.learners import Noise, darkroom
from tests.rollouts import same

KWARGS: dict[str, Any] = {"size": 3, "max_episode_steps": 5, "trial_episodes": 3}


def singles(n: int) -> list[gym.Env]:
    return [gym.make("memenvs/Darkroom-v0", **KWARGS) for _ in range(n)]


def test_batches_of_nearby_seeds_share_no_seed() -> None:
    seeds: set[int] = set()
    for seed in range(64):
        for id in ("memenvs/Darkroom-v0", "CartPole-v1"):
            env = make_vec_env(id, 4, seed=seed)
            first = [*env.unwrapped._seeds]  # of Stable-Baselines3: those of the next reset
            assert first == [stream_seed(seed) + i for i in range(4)], (id, seed)
            seeds |= {*first}
            env.close()
    assert len(seeds) == 64 * 4


def test_equals_single_environments_played_in_parallel() -> None:
    n, seed = 3, 11
    env, others = darkroom(n, episodes=3, seed=seed), singles(n)
    rng = np.random.default_rng(0)
    observations = env.reset()
    returns = np.zeros(n)
    for i, other in enumerate(others):
        expected, info = other.reset(seed=stream_seed(seed) + i)
        assert same({key: value[i] for key, value in observations.items()}, expected)
        assert same(env.reset_infos[i], info)
    for _ in range(23):
        actions = rng.integers(5, size=n)
        observations, rewards, dones, infos = env.step(actions)
        assert rewards.dtype == np.float32
        for i, other in enumerate(others):
            expected, reward, terminated, truncated, info = other.step(actions[i])
            returns[i] += reward
            assert rewards[i] == reward
            assert dones[i] == (terminated or truncated)
            if not dones[i]:
                assert infos[i] == {}
            else:
                own = dict(infos[i])
                assert same(own.pop("terminal_observation"), expected)
                assert own.pop("TimeLimit.truncated") == (truncated and not terminated)
                assert own.pop("episode") == {"r": returns[i], "l": 5}
                assert same(own, info)
                returns[i] = 0.0
                expected, info = other.reset()
                assert same(env.reset_infos[i], info)
            assert same({key: value[i] for key, value in observations.items()}, expected)


def test_observations_are_not_copied_and_stay_valid_for_a_step() -> None:
    env = darkroom(2, seed=0)
    observations = [env.reset()]
    copies = [{key: value.copy() for key, value in observations[0].items()}]
    rng = np.random.default_rng(1)
    for _ in range(12):
        observations.append(env.step(rng.integers(5, size=2))[0])
        copies.append({key: value.copy() for key, value in observations[-1].items()})
        assert same(observations[-2], copies[-2])  # the previous one is unchanged
    assert observations[0]["position"] is observations[2]["position"]


def test_seed_and_options_hold_for_one_reset() -> None:
    env = darkroom(2, episodes=4, seed=5)
    env.reset()
    assert [info["seed"] - stream_seed(5) for info in env.reset_infos] == [0, 1]
    assert [info["trial_id"] for info in env.reset_infos] == [0, 0]
    env.set_options({"new_trial": True})
    env.reset()
    assert [info["trial_id"] for info in env.reset_infos] == [1, 1]
    env.reset()
    assert [(info["trial_id"], info["episode_index"]) for info in env.reset_infos] == [(1, 1)] * 2
    env.set_options([{"trial": 7}, {"goal": (2, 2)}])
    env.reset()
    assert [info["trial_id"] for info in env.reset_infos] == [7, 1]
    assert env.reset_infos[1]["goal"].tolist() == [2, 2]
    env.env_method("new_trial", indices=[0])
    for _ in range(5):
        env.step(np.zeros(2, np.int64))
    assert [(info["trial_id"], info["trial_start"]) for info in env.reset_infos] == [(8, True), (1, False)]


def test_attributes_belong_to_the_batch() -> None:
    env = darkroom(3)
    assert env.get_attr("trial_episodes") == [10, 10, 10]
    assert env.get_attr("trial_episodes", indices=[1]) == [10]
    env.set_attr("trial_episodes", 4)
    assert env.get_attr("trial_episodes", 0) == [4]
    with pytest.raises(AttributeError, match="no_such_attribute"):
        env.get_attr("no_such_attribute")
    with pytest.raises(ValueError, match="indices must be None"):
        env.set_attr("trial_episodes", 4, indices=[0])
    env.seed(0)
    env.reset()
    with pytest.raises(ValueError, match="indices must be None for 'oracle_actions'"):
        env.env_method("oracle_actions", indices=[0])
    assert len(env.env_method("oracle_actions")) == 3
    assert env.env_is_wrapped(Monitor) == [True] * 3  # the record of a Monitor is in the info
    assert env.env_is_wrapped(gym.wrappers.TimeLimit, indices=0) == [False]
    with pytest.raises(RuntimeError, match="step_wait was called before step_async"):
        env.step_wait()
    for _ in range(2):
        env.close()


def test_a_batch_that_resets_later_is_refused() -> None:
    batch = gym.make_vec("memenvs/Darkroom-v0", 2, vectorization_mode="vector_entry_point")
    with pytest.raises(ValueError, match="autoreset_mode must be 'SameStep', got 'NextStep'"):
        TrialVecEnv(batch)


def test_pictures() -> None:
    env = make_vec_env("memenvs/Darkroom-v0", 2, seed=0, render_mode="rgb_array", **KWARGS)
    env.reset()
    assert [image.shape for image in env.get_images()] == [(320, 320, 3)] * 2
    assert darkroom(2).get_images() == [None, None]


@pytest.mark.filterwarnings("ignore:.*Using the latest versioned environment")  # Gymnasium says which one it takes
def test_ids_without_version_or_with_their_module_are_the_same_environments() -> None:
    for id in ("memenvs/Darkroom", "memenvs:memenvs/Darkroom-v0", "memenvs:memenvs/Darkroom"):
        assert full_id(id) == "memenvs/Darkroom-v0"
        env = make_vec_env(id, 2)
        assert isinstance(env, TrialVecEnv), id
        env.close()
    assert full_id("CartPole-v0") == "CartPole-v0"
    env = make_vec_env("Darkroom-v0", 2)  # as `evaluate` and the commands
    assert isinstance(env, TrialVecEnv) and env.env.trial_episodes == 10
    env.close()


class Subclass(TrialEnv):
    """A single form of a user."""


def test_own_ids_are_stepped_together_however_they_are_registered() -> None:
    """Warnings are errors: ids that are stepped together, and those without render modes, have none."""
    single: Any = "memenvs.core:TrialEnv"
    silent = partial(Noise, spaces.Discrete(2))
    task = {"task": Darkroom, **KWARGS}
    forms: dict[str, dict[str, Any]] = {
        "both": {"entry_point": single, "vector_entry_point": "memenvs.core:TrialVectorEnv", "kwargs": task},
        "single": {"entry_point": single, "kwargs": task},
        "class": {"entry_point": TrialEnv, "kwargs": task},
        "function": {"entry_point": lambda **more: TrialEnv(Darkroom, **KWARGS, **more)}
        | {"vector_entry_point": lambda **more: TrialVectorEnv(Darkroom, **KWARGS, **more)},
        "partial": {"entry_point": single, "vector_entry_point": partial(TrialVectorEnv, Darkroom, **KWARGS)}
        | {"kwargs": {}},
    }
    slow: dict[str, dict[str, Any]] = {
        "subclass": {"entry_point": Subclass, "kwargs": task},
        "wrapped": {"entry_point": single, "kwargs": task}
        | {"additional_wrappers": (gym.wrappers.RecordEpisodeStatistics.wrapper_spec(),)},
        "other": {"entry_point": silent, "vector_entry_point": lambda num_envs: None},
        "broken": {"entry_point": silent, "vector_entry_point": "no_such_module:Nothing"},
    }
    expected = make_vec_env("memenvs/Darkroom-v0", 3, seed=5, **KWARGS).reset()
    try:
        memenvs.register("mine/registered-v0", Darkroom, defaults=KWARGS)
        for name, form in {**forms, **slow}.items():
            gym.register(f"mine/{name}-v0", **form)
        for name in ("registered", *forms):
            env = make_vec_env(f"mine/{name}-v0", 3, seed=5)
            assert isinstance(env, TrialVecEnv), name
            assert env.env.max_episode_steps == 5 and env.env.trial_episodes == 3, name
            assert same(env.reset(), expected), name
        for name in ("subclass", "wrapped"):
            with pytest.warns(UserWarning, match=f"{name}-v0 steps its copies one by one: only a TrialEnv without"):
                assert isinstance(make_vec_env(f"mine/{name}-v0", 3, seed=5), DummyVecEnv), name
        for name in ("other", "broken"):
            assert isinstance(make_vec_env(f"mine/{name}-v0", 3), DummyVecEnv), name
        gym.register("mine/limit-v0", single, kwargs=task, max_episode_steps=4)
        assert make_vec_env("mine/limit-v0", 2, trial_episodes=None).env.max_episode_steps == 5  # its own setting wins
        with pytest.raises(TypeError, match="unexpected keyword argument 'flavour'"):
            make_vec_env("mine/partial-v0", 2, flavour="sweet")
    finally:
        registry._ROWS.pop("mine/registered-v0", None)
        for id in [id for id in gym.registry if id.startswith("mine/")]:
            del gym.registry[id]


def test_without_a_seed_no_global_generator_is_read() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002  (the state that must not change)
    make_vec_env("memenvs/Darkroom-v0", 2).reset()
    make_vec_env("CartPole-v1", 2).reset()
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


class Doubled:
    """A stand-in for a frozen encoder: twice the position."""

    fingerprint, estimates = "abc", False

    def encoded_space(self, space: spaces.Dict) -> spaces.Dict:
        rest = {key: value for key, value in space.spaces.items() if key != "position"}
        return spaces.Dict({**rest, "visual": spaces.Box(0, 20, (2,), np.float32)})

    def encode_observations(self, observations: list[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        others = [
            {key: value for key, value in observation.items() if key != "position"} for observation in observations
        ]
        return [rest | {"visual": 2 * of["position"]} for rest, of in zip(others, observations, strict=True)]


def batch(**kwargs: Any) -> Any:
    settings = {**KWARGS, **kwargs}
    return gym.make_vec(
        "memenvs/Darkroom-v0", 2, vectorization_mode="vector_entry_point", autoreset_mode="SameStep", **settings
    )


def test_places_and_features_come_with_the_observations() -> None:
    """Also with the last one of an episode."""
    plain = darkroom(2, episodes=3, seed=3)
    placed = make_vec_env("memenvs/Darkroom-v0", 2, seed=3, place=True, **KWARGS)
    encoded = TrialVecEnv(batch(), Doubled(), place=True)  # type: ignore[arg-type]
    encoded.seed(3)
    single = PlaceWrapper(singles(1)[0])
    assert placed.observation_space["place"] == single.observation_space["place"]  # type: ignore[index]
    assert list(encoded.observation_space.spaces) == ["place", "previous_reward", "visual"]  # type: ignore[attr-defined]

    def compare(plain_observation: Any, place: Any, features: Any) -> None:
        position = plain_observation["position"]
        number = (position[..., 0] * 3 + position[..., 1]).astype(np.int64)
        assert same(place, {**plain_observation, "place": number if number.ndim else np.int64(number)})
        assert same(features["visual"], 2 * position) and "position" not in features
        assert same(features["place"], place["place"])

    compare(plain.reset(), placed.reset(), encoded.reset())
    rng = np.random.default_rng(0)
    for _ in range(11):
        actions = rng.integers(5, size=2)
        steps = [env.step(actions) for env in (plain, placed, encoded)]
        compare(*(observations for observations, *_ in steps))
        for i in np.flatnonzero(steps[0][2]):
            compare(*(infos[i]["terminal_observation"] for *_, infos in steps))
    cart = make_vec_env("CartPole-v1", 1)
    assert encoder_fingerprint(encoded) == "abc" and encoder_fingerprint(plain) is None
    assert encoder_fingerprint(cart) is None
    check_encoder("abc", encoded)
    check_encoder(None, cart)
    for expected, env in (("abc", plain), ("x", encoded), (None, encoded)):
        with pytest.raises(ValueError, match=f"encoder must be the one .* of weights {expected}, got one of weights"):
            check_encoder(expected, env)


def test_places_and_encoders_that_there_are_not() -> None:
    env = batch()
    assert "place" not in TrialVecEnv(env).observation_space.spaces  # type: ignore[attr-defined]
    for change in ({"num_places": None}, {"num_places": 9, "space": spaces.Discrete(3)}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(env.task), "num_places", change["num_places"])
            if "space" in change:
                patch.setattr(env, "single_observation_space", change["space"])
            with pytest.raises(ValueError, match=rf"place must be False where there are {change['num_places']} places"):
                TrialVecEnv(env, place=True)
    with pytest.raises(ValueError, match=r"encoder must be None for 'CartPole-v1', .* got 'cnn'"):
        make_vec_env("CartPole-v1", 1, encoder="cnn")
    with pytest.raises(ValueError, match="an encoder needs observations with 'rgb'"):
        make_vec_env("memenvs/Darkroom-v0", 1, encoder="cnn", encoder_kwargs={"device": "cpu"})
    for id in ("memenvs/Darkroom-v0", "CartPole-v1"):
        with pytest.raises(ValueError, match="num_envs must be an integer of at least 1, got 0"):
            make_vec_env(id, 0)
    with pytest.raises(ValueError, match=r"the number of places of .* is unknown"):
        make_vec_env("CartPole-v1", 1, place=True)


def test_the_vocabulary_is_that_of_the_task() -> None:
    env, cart = darkroom(1), make_vec_env("CartPole-v1", 1)
    for own in (env, cart):
        assert vocabulary_fingerprint(own) is None
        check_vocabulary(None, own)
        with pytest.raises(ValueError, match="vocabulary must be the one that was learned with, words, got None"):
            check_vocabulary("words", own)
    env.env.task.tokenizer = SimpleNamespace(fingerprint="words")
    assert vocabulary_fingerprint(env) == "words"
    check_vocabulary("words", env)
    check_vocabulary(None, env)  # of an early version


def test_an_episode_is_a_trial() -> None:
    assert episode_is_trial(darkroom(2, episodes=1))
    assert not episode_is_trial(darkroom(2, episodes=2))
    assert not episode_is_trial(make_vec_env("CartPole-v1", 2))
    fused = [lambda: TrialWrapper(gym.make("CartPole-v1"), trial_episodes=2)] * 2
    assert episode_is_trial(DummyVecEnv(fused))
    assert not episode_is_trial(DummyVecEnv([*fused, lambda: gym.make("CartPole-v1")]))


def test_masks_and_methods_of_some() -> None:
    env = darkroom(3, seed=0)
    env.reset()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(env.env), "action_masks", lambda _: np.eye(3, dtype=bool), raising=False)
        assert [mask.tolist() for mask in env.env_method("action_masks", indices=[2, 0])] == np.eye(3)[[2, 0]].tolist()
        patch.setattr(env.env, "added", lambda a, b=0: a + b, raising=False)
        assert env.env_method("added", 2, b=3) == [5] * 3
    np.testing.assert_array_equal(env.oracle_actions(), env.env.oracle_actions())
