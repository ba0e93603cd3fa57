"""Ignored actions: no policy and no learner has them as a previous action."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from memenvs.agents import EpisodeDQN, PartialUpdatePPO, make_vec_env
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.wrappers import PreviousActionWrapper

GAP, STEPS = 3, 5
SETTINGS: dict[str, Any] = {"gap": GAP, "size": 3, "max_episode_steps": GAP + STEPS, "trial_episodes": 2}


def no_previous_action(phase: np.ndarray, episode_start: np.ndarray) -> np.ndarray:
    """Steps without a previous action, bool, (N, T).

    They start an episode, or the action before is ignored.
    """
    before = np.concatenate([np.zeros((len(phase), 1), phase.dtype), phase[:, :-1]], 1)
    return episode_start | (before == 0)


def test_ppo_learns_without_ignored_actions() -> None:
    env = make_vec_env("memenvs/Darkroom-v0", 2, seed=0, **SETTINGS)
    policy = {"memory": "lstm", "memory_kwargs": {"hidden_dim": 8}}
    model = PartialUpdatePPO("MemoryPolicy", env, n_steps=16, seed=0, device="cpu", policy_kwargs=policy)
    seen: dict[str, np.ndarray] = {}

    def keep(*_: Any) -> bool:
        buffer = model.rollout_buffer
        if buffer.pos == 15:  # the step before the last of the rollout
            seen["previous"] = buffer.previous_action[:, :15].numpy().copy()
            seen["action"] = buffer.actions[:, :15].numpy().copy()
            seen["phase"] = buffer.observations["phase"][:, :15].numpy().copy()
            seen["start"] = buffer.episode_start[:, :15].numpy().copy()
        return True

    model.learn(32, callback=keep)
    none = no_previous_action(seen["phase"], seen["start"])
    assert none.sum() == 2 * (2 * (GAP + 1))  # two episodes begin in each of two environments
    previous = np.concatenate([np.zeros((2, 1), np.int64), 1 + seen["action"][:, :-1]], 1)
    np.testing.assert_array_equal(seen["previous"], np.where(none, 0, previous))


@pytest.mark.parametrize("freeze", [False, True])
def test_q_learning_replays_without_ignored_actions(freeze: bool) -> None:
    env = make_vec_env("memenvs/Darkroom-v0", 2, seed=0, **{**SETTINGS, "trial_episodes": None})
    policy = {"memory": "frmqn", "freeze_features": freeze}
    settings = {"capacity": 2, "batch_size": 2, "updates_per_collect": 1, "episode_steps": GAP + STEPS}
    model = EpisodeDQN("MemoryPolicy", env, seed=0, device="cpu", policy_kwargs=policy, **settings)
    model.learn(2 * (GAP + STEPS))
    rows, steps = torch.arange(2), torch.arange(GAP + STEPS + 1).repeat(2, 1)
    previous = model.replay.read(rows, steps).previous_action.numpy()
    actions = model.replay.actions(rows, steps[:, :-1]).numpy()
    assert not previous[:, : GAP + 1].any()
    np.testing.assert_array_equal(previous[:, GAP + 1 :], 1 + actions[:, GAP:])


def test_predict_and_demonstrations_carry_no_ignored_action() -> None:
    env = make_vec_env("memenvs/Darkroom-v0", 3, seed=0, **SETTINGS)
    policy = MemoryPolicy(env.observation_space, env.action_space, lambda _: 0.0, memory="lstm")
    observation, state = env.reset(), None
    for t in range(GAP + STEPS):
        actions, state = policy.predict(observation, state)
        expected = np.zeros(3) if t < GAP else 1 + actions
        assert state["previous_action"].tolist() == expected.tolist()
        demonstrated = policy.update_previous_action(state, np.full(3, 4))
        assert demonstrated["previous_action"].tolist() == [0 if t < GAP else 5] * 3
        observation, *_ = env.step(actions)


def test_the_wrapper_shows_no_ignored_action() -> None:
    """In ColorRecall, Room Ballet, EpisodicQA and FFHQWorld an agent watches before it answers, here by a picture."""
    for name, settings in (
        ("ColorRecall-v0", {"rooms": (4, 5), "image_size": (12, 12), "steps": (3, 3)}),
        ("RoomBallet-ABA-v0", {}),
        ("EpisodicQA-v0", {"scale": "smoke"}),
        ("FFHQWorld-v0", {}),
        ("Darkroom-v0", SETTINGS),
    ):
        env = PreviousActionWrapper(gym.make(f"memenvs/{name}", **settings))
        observation, _ = env.reset(seed=1)
        before = observation["phase"]
        for _ in range(8):
            action = env.action_space.high if name == "FFHQWorld-v0" else 2
            observation, _, terminated, truncated, _ = env.step(action)
            assert np.any(observation["previous_action"]) == (before > 0), name
            before = observation["phase"]
            if terminated or truncated:
                break
