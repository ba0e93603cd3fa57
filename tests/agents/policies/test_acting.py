"""`ActingPolicy`: starts of episodes and trials, environments that fit, types."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from memenvs.agents.policies.acting import PolicyOutput, observation_tensors
from memenvs.agents.policies.memory_policy import MemoryPolicy
from tests.agents.learners import MEMORIES, Noise, darkroom
from tests.agents.policies.test_policies import batches, policy

T, F = True, False
#: resets_with_episode, episode_is_trial, whether a state is given, episode_start, trial_start;
#: then the starts of episodes and of trials that the policy gets, and whether it warns.
STARTS: list[tuple[Any, ...]] = [
    (F, F, F, None, None, [T, T], [T, T], F),
    (F, F, F, [F, F], None, [T, T], [T, T], F),
    (F, F, T, None, None, [F, F], [F, F], F),
    (T, F, T, [T, F], None, [T, F], [T, F], F),
    (F, F, T, [T, F], None, [T, F], [F, F], T),
    (F, T, T, [T, F], None, [T, F], [T, F], F),
    (F, F, T, [T, F], [F, T], [T, T], [F, T], F),
    (T, F, T, [T, F], [F, T], [T, T], [T, T], F),
    (F, T, T, [T, F], [F, F], [T, F], [F, F], F),
]


@pytest.mark.parametrize("memory", ["gru", "none"])
def test_starts(memory: str) -> None:
    made, observation = policy(memory), batches(1, 2)[0]
    passed: list[Any] = []
    act = made.act
    made.act = lambda *args: passed.append(args[2:]) or act(*args)  # type: ignore[method-assign]
    for row in STARTS:
        resets, is_trial, has_state, episode, trial, episodes, trials, warns = row
        made.resets_with_episode, made.episode_is_trial = resets, is_trial
        state = made.initial_state(2) if has_state else None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made.predict(
                observation,
                state,
                None if episode is None else np.array(episode),
                True,
                None if trial is None else np.array(trial),
            )
        got_episodes, got_trials, deterministic = passed[-1]
        assert (got_episodes.tolist(), got_trials.tolist(), deterministic) == (episodes, trials, True), row
        assert bool(caught) is (warns and memory != "none"), row  # without a memory there is nothing to keep
    made.predict(observation)
    assert passed[-1][2] is False


def test_episodes_are_trials_where_observations_say_so() -> None:
    keys = {"vector": spaces.Box(-1.0, 1.0, (2,), np.float32), "episode_start": spaces.Discrete(2)}
    assert policy("none", observations=spaces.Dict(keys)).episode_is_trial
    assert not policy("none").episode_is_trial
    assert policy("none").resets_with_episode


def test_outputs_that_are_not_finite() -> None:
    zeros = torch.zeros(2)
    good = PolicyOutput(zeros, {}, zeros, zeros, zeros, zeros, {})
    assert good.is_finite
    for name in ("values", "log_probs"):
        for value in (torch.nan, torch.inf, -torch.inf):
            assert not replace(good, **{name: torch.tensor([0.0, value])}).is_finite


def make(space: spaces.Space, actions: spaces.Space, **kwargs: Any) -> MemoryPolicy:
    return MemoryPolicy(space, actions, lambda _: 1e-3, memory="gru", memory_kwargs=MEMORIES["gru"], **kwargs)


def test_environments_that_fit() -> None:
    vector, image = spaces.Box(-1.0, 1.0, (3,), np.float32), spaces.Box(0, 255, (3, 36, 40), np.uint8)
    two = spaces.Discrete(2)

    def env(space: spaces.Space, actions: spaces.Space = two) -> DummyVecEnv:
        return DummyVecEnv([lambda: Noise(space, actions)])

    plain, pictures = make(vector, two), make(image, two, features_extractor_class="NatureCNN")
    both = make(spaces.Dict({"image": image, "vector": vector}), two)
    plain.check_env(env(spaces.Box(-5.0, 5.0, (3,), np.float32)))
    for shape in ((3, 36, 40), (36, 40, 3)):
        turned = spaces.Box(0, 255, shape, np.uint8)
        pictures.check_env(env(turned))
        both.check_env(env(spaces.Dict({"image": turned, "vector": vector, "more": vector})))
    for made, other, message in (
        (
            plain,
            env(spaces.Box(-1.0, 1.0, (4,), np.float32)),
            r"observation 'observation' must be of shape \(3,\), .*got \(4,\)",
        ),
        (
            plain,
            env(spaces.Dict({"vector": vector})),
            r"has learned with 'observation', .* not observe: it has \['vector'\]",
        ),
        (both, env(spaces.Dict({"image": image})), r"has learned with 'vector', .* not observe: it has \['image'\]"),
        (plain, env(vector, spaces.Discrete(3)), r"action_space must be Discrete\(2\), .*got Discrete\(3\)"),
    ):
        with pytest.raises(ValueError, match=message):
            made.check_env(other)
    plain.encoder_fingerprint = "abc"
    with pytest.raises(ValueError, match="encoder must be the one that was learned with, of weights abc"):
        plain.check_env(env(vector))
    both.vocabulary_fingerprint = "words"
    with pytest.raises(ValueError, match="vocabulary must be the one that was learned with, words"):
        both.check_env(env(spaces.Dict({"image": image, "vector": vector})))


def test_types_that_are_computed_with() -> None:
    observations = {"count": np.array([2**16 - 1], np.uint16), "number": np.array([2**32 - 1], np.uint32)}
    tensors = observation_tensors(observations, torch.device("cpu"))
    assert (tensors["count"].dtype, tensors["count"].tolist()) == (torch.int32, [2**16 - 1])
    assert (tensors["number"].dtype, tensors["number"].tolist()) == (torch.int64, [2**32 - 1])
    assert observation_tensors(observations["count"], torch.device("cpu")).dtype == torch.int32


def test_actions_are_those_of_the_space() -> None:
    """Box is clipped, the others are counted from their start."""
    box = policy("none", actions=spaces.Box(np.float32(-0.5), np.float32(0.25), (2,)))
    clipped = box.environment_actions(torch.tensor([[-2.0, 0.1], [0.3, -0.5]]))
    np.testing.assert_array_equal(clipped, np.float32([[-0.5, 0.1], [0.25, -0.5]]))
    made = make(spaces.Box(-1.0, 1.0, (3,), np.float32), spaces.MultiDiscrete([2, 3], start=[1, -1]))
    assert made.environment_actions(torch.tensor([[0, 2], [1, 0]])).tolist() == [[1, 1], [2, -1]]
    state = made.initial_state(1)
    assert made.update_previous_action(state, np.array([[1, 1]])) is state  # only Discrete actions are an input
    shifted = policy("lstm", actions=spaces.Discrete(3, start=-1))
    after = shifted.update_previous_action(shifted.initial_state(2), np.array([-1, 1]))
    assert after["previous_action"].tolist() == [1, 3]
    env = darkroom(2, seed=0)
    actions, _ = make(env.observation_space, env.action_space).predict(env.reset())
    assert actions.shape == (2,)
