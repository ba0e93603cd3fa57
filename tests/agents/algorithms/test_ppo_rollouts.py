"""Rollouts of partial-update PPO: starts of trials, truncation, an oracle to clone."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecTransposeImage

from memenvs.agents import make_vec_env
from memenvs.agents.algorithms.on_policy import episode_horizon
from memenvs.agents.vec_env import TrialVecEnv
from memenvs.core import TrialVectorEnv
from tests.agents.corridor import ANSWER_STEPS, CUE_STEPS, Corridor
from tests.agents.learners import ROWS, SEGMENT, STEPS, N, Noise, act, check_rollouts, darkroom, learner, positions


def test_every_rollout_starts_a_trial_and_empties_the_memory() -> None:
    model = learner("relic")
    model.learn(3 * N * STEPS)
    assert [info["trial_id"] for info in model.env.reset_infos] == [2] * N
    assert bool(model.rollout_buffer.trial_start[:, 0].all())
    assert not model.rollout_buffer.trial_start[:, 1:].any()
    assert model.rollout_buffer.previous_action[:, 0].tolist() == [0] * N


def test_rollouts_that_never_see_an_end_cause_one_warning() -> None:
    with pytest.warns(UserWarning, match=f"no episode ended within the first n_steps={STEPS}") as caught:
        learner("lstm", env=darkroom(horizon=STEPS + 1)).learn(3 * N * STEPS)
    assert [warning.filename for warning in caught] == [__file__]  # the line that called `learn`
    learner("lstm", env=darkroom(horizon=STEPS)).learn(2 * N * STEPS)  # a warning would be an error
    learner("lstm", env=darkroom(horizon=STEPS + 1), n_updates=1, reset_each_rollout=False).learn(2 * N * STEPS)


def test_a_trial_that_just_began_is_not_thrown_away() -> None:
    env = darkroom(episodes=None, trial_steps=STEPS)
    model = learner("relic", env=env)
    model.learn(3 * N * STEPS)
    assert [info["trial_id"] for info in env.reset_infos] == [3] * N  # ended by themselves; nothing was skipped
    assert model._all_at_trial_start()


def test_the_memory_is_carried_on_where_rollouts_are_not_trials() -> None:
    model = learner("lstm", env=make_vec_env("CartPole-v1", N, seed=0), n_steps=8, n_updates=1)
    check_rollouts(model)
    assert not model.rollout_buffer.trial_start[:, 0].all()


def test_an_unbounded_memory_must_be_reset() -> None:
    with pytest.raises(ValueError, match=r"reset_each_rollout must be True with n_updates 3 .* 'lstm', got False"):
        learner("lstm", reset_each_rollout=False).learn(1)
    with pytest.raises(ValueError, match="reset_each_rollout must be True with n_updates 1 and memory 'relic'"):
        learner("relic", reset_each_rollout=False, n_updates=1).learn(1)
    learner("lstm", reset_each_rollout=False, n_updates=1).learn(2 * N * STEPS)


def test_trials_are_seen_through_wrappers_of_the_environment() -> None:
    class Pictures(Noise):
        """Two episodes a trial, images with their channels last."""

        episode = -1

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            self.episode += 1
            return super().reset(seed=seed)[0], {"trial_start": self.episode % 2 == 0}

    env = DummyVecEnv([lambda: Pictures(spaces.Box(0, 255, (36, 36, 3), np.uint8), horizon=3)])
    small = {"features_extractor_class": "NatureCNN", "features_extractor_kwargs": {"features_dim": 4}}
    model = learner("gru", env=env, n_steps=12, n_updates=1, policy_kwargs=small)
    assert isinstance(model.env, VecTransposeImage)
    model.learn(12)
    assert model._has_trials
    assert model.rollout_buffer.trial_start[0].nonzero()[:, 0].tolist() == [0, 6]
    assert model.rollout_buffer.episode_start[0].nonzero()[:, 0].tolist() == [0, 3, 6, 9]


class Ending(Noise):
    """Episodes that terminate after three steps; no time limit truncates them."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, *_ = super().step(action)
        return observation, reward, self.steps == 3, False, {}


def unequal() -> DummyVecEnv:
    """Episodes of different lengths."""
    vector = spaces.Box(-1.0, 1.0, (3,), np.float32)
    return DummyVecEnv(
        [lambda: Ending(vector), *(lambda steps=steps: Noise(vector, None, steps) for steps in (5, 7, 9))]
    )


@pytest.mark.parametrize(("env", "ends"), [(darkroom, [(4, 0), (4, 1), (4, 2), (4, 3)]), (unequal, [(4, 1), (6, 2)])])
def test_truncated_episodes_are_credited_by_hand(env: Callable[[], Any], ends: list[tuple[int, int]]) -> None:
    """B8: `bootstrap_truncated` adds gamma times the value of the last observation; by default nothing is added."""
    plain, model = (learner("lstm", env=env(), bootstrap_truncated=flag) for flag in (False, True))
    act(plain)
    values_of_last: dict[tuple[int, int], float] = {}
    original = model._truncated_values

    def watch(dones: np.ndarray, infos: list[dict[str, Any]]) -> np.ndarray:
        state = {key: value.clone() for key, value in model._state.items()}
        for i in np.flatnonzero(dones).tolist():
            last, _ = model.policy.obs_to_tensor(infos[i]["terminal_observation"])
            row = {key: value[i : i + 1] for key, value in state.items()}
            no_start = torch.zeros(1, dtype=torch.bool)
            with torch.no_grad():
                value = model.policy.step(model.policy.features(last), row, no_start, no_start)[1]
            if infos[i]["TimeLimit.truncated"]:
                values_of_last[model.rollout_buffer.pos, i] = float(value)
        return original(dones, infos)

    model._truncated_values = watch  # type: ignore[method-assign]
    act(model)
    assert sorted(values_of_last) == ends
    expected = np.zeros((N, STEPS))
    for (t, i), value in values_of_last.items():
        expected[i, t] = 0.99 * value
    extra = model.rollout_buffer.rewards - plain.rollout_buffer.rewards
    np.testing.assert_allclose(extra, expected, atol=1e-6)
    stored, others = (positions(acted, 0, SEGMENT)["log_probs"] for acted in (model, plain))
    assert torch.equal(stored, others)  # evaluating the last observation does not change the memory


def test_horizon_of_an_environment() -> None:
    limits = [lambda: gym.make("CartPole-v1", max_episode_steps=20), lambda: gym.make("CartPole-v1")]
    assert episode_horizon(DummyVecEnv(limits)) == 500
    plain, endless = (Noise(spaces.Box(-1.0, 1.0, (4,), np.float32)) for _ in range(2))
    endless.spec = EnvSpec("Endless-v0")  # registered without a limit
    assert episode_horizon(DummyVecEnv([lambda: plain, lambda: endless])) is None
    assert episode_horizon(DummyVecEnv([lambda: endless, limits[0], lambda: plain])) == 20


DELAY = 5
LENGTH = CUE_STEPS + DELAY + ANSWER_STEPS  # 8 steps, so that a rollout of 24 is three episodes


class KnownCorridor(Corridor):
    """A corridor with an oracle, which says the cue all along."""

    def oracle_actions(self) -> np.ndarray:
        return self.cue.copy()


def corridor(task: type[Corridor], count: int = N) -> VecEnv:
    return TrialVecEnv(TrialVectorEnv(task, count, trial_episodes=1, autoreset_mode="SameStep", delay=DELAY))


def test_the_oracle_acts_and_its_actions_are_learned() -> None:
    """Its actions fill the rollout, with the policy's probabilities; the loss is their log likelihood."""
    model = act(learner("lstm", env=corridor(KnownCorridor), cloning_steps=1, n_updates=1, vf_coef=0.0, ent_coef=0.0))
    stored = positions(model, 0, STEPS)
    cues = model.rollout_buffer.ordered(model.rollout_buffer.observations["cue"], ROWS, 0, STEPS).argmax(-1)
    assert torch.equal(stored["actions"].view(N, -1, LENGTH), cues.view(N, -1, LENGTH)[..., :1].expand(-1, -1, LENGTH))
    assert stored["rewards"].sum() == N * STEPS / LENGTH
    distribution, _, actions = model.evaluate(ROWS, 0, STEPS)
    log_probs = distribution.log_prob(actions)
    torch.testing.assert_close(log_probs, stored["log_probs"], atol=1e-5, rtol=0)
    targets = torch.zeros(N, STEPS, 4)  # without advantages PPO would learn nothing
    loss = model._optimizer_step(ROWS, 0, STEPS, targets)[0]
    torch.testing.assert_close(loss, -log_probs.mean().detach(), atol=1e-5, rtol=0)


def test_a_delayed_answer_is_cloned_and_then_kept() -> None:
    """After the last rollout of the oracle the policy acts itself, and is paid for it."""
    cloned, own = 20, 2
    rollout = 16 * STEPS
    model = learner(
        "lstm",
        env=corridor(KnownCorridor, 16),
        cloning_steps=cloned * rollout - 1,  # rounded up
        n_updates=1,
        batch_size=16,
        n_epochs=4,
        max_grad_norm=1.0,
        policy_kwargs={"previous_action_dim": 0},  # the oracle's says the cue
        memory_kwargs={"hidden_dim": 16},
    )
    model.learn(cloned * rollout)
    assert model._is_cloning
    model.learn(own * rollout, reset_num_timesteps=False)
    assert not model._is_cloning
    paid = model.rollout_buffer.rewards.sum() * LENGTH / rollout
    assert 0.8 < paid <= 1.0, paid


def test_wrong_settings_are_named() -> None:
    cases: tuple[tuple[Any, str], ...] = (
        (corridor(Corridor), "cloning_steps must be None for an environment that has no oracle, got 5"),
        (make_vec_env("CartPole-v1", N), "cloning_steps must be None for an environment that has no oracle, got 5"),
        (make_vec_env("Pendulum-v1", N), r"cloning_steps must be None unless actions are Discrete, got Box"),
    )
    for env, message in cases:
        with pytest.raises(ValueError, match=message):
            learner("none", env=env, cloning_steps=5)
    learner("none", env=darkroom(), cloning_steps=5)
