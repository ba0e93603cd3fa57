"""Partial-update PPO against the acceptance tests of the method: each against something written by hand here."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback, EvalCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.torch_layers import CombinedExtractor, NatureCNN
from stable_baselines3.common.vec_env import DummyVecEnv, VecTransposeImage
from torch import Tensor

from agents import PartialUpdatePPO, PPOConfig, make_vec_env
from agents.policies import PREVIOUS_ACTION
from tests.agents.learners import (
    MEMORIES,
    SEGMENT,
    STEPS,
    N,
    act,
    darkroom,
    double,
    gradients,
    learner,
    weights,
)

ROWS = torch.arange(N)


def positions(model: PartialUpdatePPO, begin: int, end: int) -> dict[str, Tensor]:
    """What the buffer holds at positions `begin` to `end`, in their present order."""
    buffer = model.rollout_buffer
    names = ("log_probs", "values", "rewards", "actions", "episode_start")
    return {name: buffer.ordered(getattr(buffer, name), ROWS, begin, end) for name in names}


def outputs(model: PartialUpdatePPO, rows: Tensor, begin: int, end: int) -> tuple[Tensor, Tensor, Tensor]:
    """Log probabilities of the actions taken, values and entropies, from the memory's own step, one by one.

    The memory goes from an empty state over all steps; nothing of `evaluate` is used.
    """
    policy, buffer = model.policy, model.rollout_buffer
    s = buffer.sequences(rows, 0, end)
    assert isinstance(s.observations, dict)
    features = torch.stack([policy.features({k: v[:, t] for k, v in s.observations.items()}) for t in range(end)], 1)
    x = policy.inputs(features, s.previous, s.episode_start, s.trial_start)
    latent, _ = policy.memory(x, None)
    distribution, values = policy.heads(latent[:, begin:])
    return distribution.log_prob(s.actions[:, begin:]), values, distribution.entropy()


def loss_by_hand(model: PartialUpdatePPO, rows: Tensor, begin: int, end: int) -> Tensor:
    """The loss of one optimiser step, element by element."""
    config, held = model.config, positions(model, begin, end)
    advantages, returns = model.rollout_buffer.advantages(
        begin, end, model._last_values, model._episode_start, config.gamma, config.gae_lambda
    )
    log_probs, values, entropy = outputs(model, rows, begin, end)
    total = torch.zeros(())
    for j, i in enumerate(rows.tolist()):
        for t in range(end - begin):
            ratio = torch.exp(log_probs[j, t] - held["log_probs"][i, t])
            gain = ratio * advantages[i, t]
            if advantages[i, t] > 0 and ratio.item() > 1 + config.clip_range:
                gain = (1 + config.clip_range) * advantages[i, t]
            if advantages[i, t] < 0 and ratio.item() < 1 - config.clip_range:
                gain = (1 - config.clip_range) * advantages[i, t]
            change = values[j, t] - held["values"][i, t]
            value = values[j, t]
            if config.clip_range_vf is not None and abs(change.item()) > config.clip_range_vf:
                value = held["values"][i, t] + math.copysign(config.clip_range_vf, change.item())  # B12: no gradient
            error = (value - returns[i, t]) ** 2
            total = total - gain + config.vf_coef * error - config.ent_coef * entropy[j, t]
    return total / (len(rows) * (end - begin))


def unclipped(model: PartialUpdatePPO) -> None:
    """Makes the next optimiser step leave its gradients as they are and the weights unchanged."""
    model.config = PPOConfig(**{**vars(model.config), "max_grad_norm": 1e9})
    for group in model.policy.optimizer.param_groups:
        group["lr"] = 0.0


def optimise(model: PartialUpdatePPO, rows: Tensor, begin: int, end: int) -> Tensor:
    """Gradients of one optimiser step."""
    config, held = model.config, positions(model, begin, end)
    advantages, returns = model.rollout_buffer.advantages(
        begin, end, model._last_values, model._episode_start, config.gamma, config.gae_lambda
    )
    targets = torch.stack([held["log_probs"], held["values"], advantages, returns], -1)
    model._optimise(rows, begin, end, targets)
    return gradients(model)


# ------------------------------------------------------------------ the loss


@pytest.mark.parametrize("memory", MEMORIES)
def test_ratio_is_one_before_the_first_step(memory: str) -> None:
    model = learner(memory)
    for begin in (0, SEGMENT, 2 * SEGMENT):
        act(model) if begin == 0 else model.collect_rollouts(model.env, _quiet(model), model.rollout_buffer, STEPS)
        end = begin + SEGMENT
        held = positions(model, begin, end)
        distribution, values, actions = model.evaluate(ROWS, begin, end)
        assert torch.equal(actions, held["actions"])
        torch.testing.assert_close(distribution.log_prob(actions), held["log_probs"], atol=1e-5, rtol=0)
        torch.testing.assert_close(values, held["values"], atol=1e-5, rtol=1e-5)
        model.train()


def _quiet(model: PartialUpdatePPO) -> BaseCallback:
    return model._init_callback(None)


@pytest.mark.parametrize("clip_range_vf", [0.2, None])
@pytest.mark.parametrize("memory", MEMORIES)
def test_gradient_of_a_partial_update(memory: str, clip_range_vf: float | None) -> None:
    model = double(act(learner(memory, clip_range_vf=clip_range_vf), 2, train=True))
    unclipped(model)
    rows = torch.tensor([3, 1, 0])
    model.policy.set_training_mode(True)
    got = optimise(model, rows, SEGMENT, 2 * SEGMENT)
    model.policy.zero_grad()
    loss_by_hand(model, rows, SEGMENT, 2 * SEGMENT).backward()
    expected = gradients(model)
    assert float(expected.abs().max()) > 1e-3
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("memory", ["lstm", "relic"])
def test_one_update_is_ordinary_sequence_ppo(memory: str) -> None:
    """K = 1: two epochs of Adam by hand, on whole sequences, give the same weights."""
    settings = {"n_updates": 1, "batch_size": N, "n_epochs": 2, "max_grad_norm": 0.5}
    model, other = (double(act(learner(memory, **settings))) for _ in range(2))
    model.train()
    optimiser = torch.optim.Adam(other.policy.parameters(), lr=1e-2, eps=1e-5)
    for _ in range(2):
        optimiser.zero_grad()
        loss_by_hand(other, ROWS, 0, STEPS).backward()
        norm = float(gradients(other).norm())
        for parameter in other.policy.parameters():
            if parameter.grad is not None and norm > 0.5:
                parameter.grad *= 0.5 / (norm + 1e-6)
        optimiser.step()
    torch.testing.assert_close(weights(model), weights(other), atol=1e-7, rtol=1e-6)


def test_value_loss_without_clipping_pulls_from_anywhere() -> None:
    """B12: with the clip, a value that moved too far gets no gradient; without, it does."""
    for clip, pulls in ((0.2, False), (None, True)):
        model = act(learner("none", clip_range_vf=clip, ent_coef=0.0, vf_coef=1.0))
        with torch.no_grad():
            model.policy.critic.bias += 1.0
        unclipped(model)
        optimise(model, ROWS, 0, SEGMENT)
        assert model.policy.critic.bias.grad is not None
        assert bool(model.policy.critic.bias.grad.abs() > 0) is pulls


@pytest.mark.parametrize("memory", MEMORIES)
def test_micro_batches_add_up(memory: str) -> None:
    model = double(act(learner(memory), 2, train=True))
    unclipped(model)
    whole = optimise(model, ROWS, SEGMENT, 2 * SEGMENT)
    for tokens in (1, 2 * SEGMENT, 3 * 2 * SEGMENT):  # 4 x 1, 4 x 1, 3 + 1
        model.config = PPOConfig(**{**vars(model.config), "micro_batch_tokens": tokens})
        torch.testing.assert_close(optimise(model, ROWS, SEGMENT, 2 * SEGMENT), whole, atol=1e-9, rtol=1e-7)


def test_sums_with_a_larger_clip_are_means_with_a_smaller_one() -> None:
    """B5: the release adds up 10 gradients and clips at 0.2; here they are averaged and clipped at 0.02, with a smaller epsilon."""
    generator = torch.Generator().manual_seed(0)
    gradient = (
        torch.randn(4, 10, 5, generator=generator, dtype=torch.float64)
        * torch.tensor([1.0, 1e-3, 0.1, 10.0])[:, None, None]
    )
    results = []
    for reduce, clip, eps in ((torch.sum, 0.2, 1e-5), (torch.mean, 0.02, 1e-6)):
        weight = torch.nn.Parameter(torch.zeros(5, dtype=torch.float64))
        optimiser = torch.optim.Adam([weight], lr=0.1, eps=eps)
        for step in gradient:
            weight.grad = reduce(step, 0)
            norm = weight.grad.norm()
            weight.grad *= min(1.0, float(clip / norm))
            optimiser.step()
        results.append(weight.detach())
    torch.testing.assert_close(results[0], results[1], atol=1e-12, rtol=1e-9)


def test_the_critic_is_clipped_too() -> None:
    """B5: the norm is that of all gradients, and is logged."""
    model = act(learner("lstm", max_grad_norm=1e-3))
    held = optimise(model, ROWS, 0, SEGMENT)
    assert float(held.norm()) == pytest.approx(1e-3, rel=1e-2)
    model.train()
    assert model.logger.name_to_value["train/grad_norm"] > 1e-3  # before clipping


def test_normalized_advantages() -> None:
    model = act(learner("none", normalize_advantage=True, n_updates=1))
    seen: list[Tensor] = []
    original = model._optimise
    model._optimise = lambda rows, begin, end, targets: seen.append(targets) or original(rows, begin, end, targets)  # type: ignore[method-assign]
    model.train()
    assert float(seen[0][..., 2].mean()) == pytest.approx(0.0, abs=1e-5)
    assert float(seen[0][..., 2].std(correction=0)) == pytest.approx(1.0, abs=1e-4)


# ------------------------------------------------------------------ prefix, shuffle, refresh


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("prefix_grad", ["detach", "window"])
def test_the_prefix_changes_gradients_but_not_outputs(memory: str, prefix_grad: str) -> None:
    models = []
    for settings in ({}, {"prefix_grad": prefix_grad, "prefix_window": 3}):
        model = act(learner(memory), 2, train=True)
        model.config = PPOConfig(**{**vars(model.config), **settings})
        unclipped(model)
        models.append(model)
    for model in models:
        model.policy.set_training_mode(True)
    (full, full_values, _), (other, other_values, _) = (model.evaluate(ROWS, SEGMENT, 2 * SEGMENT) for model in models)
    torch.testing.assert_close(full.log_probs, other.log_probs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(full_values, other_values, atol=1e-5, rtol=1e-5)
    first, second = (optimise(model, ROWS, SEGMENT, 2 * SEGMENT) for model in models)
    if memory == "none":
        torch.testing.assert_close(first, second, atol=1e-7, rtol=1e-5)
    else:
        assert float((first - second).norm() / first.norm()) > 1e-3


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_wide_window_is_the_full_prefix(memory: str) -> None:
    gradient = []
    for settings in ({}, {"prefix_grad": "window", "prefix_window": SEGMENT}):
        model = act(learner(memory), 2, train=True)
        model.config = PPOConfig(**{**vars(model.config), **settings})
        unclipped(model)
        gradient.append(optimise(model, ROWS, SEGMENT, 2 * SEGMENT))
    assert torch.equal(*gradient)


@pytest.mark.parametrize("memory", MEMORIES)
def test_detach_where_a_trial_ends_inside_the_segment(memory: str) -> None:
    """Acting on in a new trial must not spoil the past that the segment began with."""
    env = darkroom(episodes=2)  # trials of 10 steps: one ends at step 10, within the segment 8 ... 16
    model = act(learner(memory, env=env, prefix_grad="detach"), 2, train=True)
    held = positions(model, SEGMENT, 2 * SEGMENT)
    distribution, values, actions = model.evaluate(ROWS, SEGMENT, 2 * SEGMENT)
    torch.testing.assert_close(distribution.log_prob(actions), held["log_probs"], atol=1e-5, rtol=0)
    torch.testing.assert_close(values, held["values"], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("memory", MEMORIES)
def test_refresh_with_the_same_weights_changes_nothing(memory: str) -> None:
    model = act(learner(memory, shuffle_episodes=False))
    assert model._state is not None
    before = {key: value.clone() for key, value in model._state.items()}
    values = model.rollout_buffer.values.clone()
    model._refresh(SEGMENT, last_of_rollout=True)
    assert model._state.keys() == before.keys()
    seen = slice(None)
    for key, value in model._state.items():
        if key == "cache":
            seen = slice(0, SEGMENT + 1)  # slots beyond have not been reached
            torch.testing.assert_close(value[:, :, :, :, seen], before[key][:, :, :, :, seen], atol=1e-6, rtol=1e-5)
        else:
            torch.testing.assert_close(value, before[key], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(model.rollout_buffer.values, values, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("memory", MEMORIES)
def test_after_an_update_the_next_step_is_that_of_a_forward_pass(memory: str) -> None:
    """B9: the refreshed memory is the valid prefix, in its new order, with the new weights."""
    env = darkroom(horizon=2)  # 4 episodes in a segment of 8, so that 3 of them are shuffled
    model = act(learner(memory, env=env))
    old = weights(model)
    model.train()
    assert not torch.equal(old, weights(model))
    assert model.rollout_buffer.shuffled
    assert not torch.equal(model.rollout_buffer.order, torch.arange(STEPS).expand(N, -1))
    model.collect_rollouts(model.env, _quiet(model), model.rollout_buffer, STEPS)
    held = positions(model, SEGMENT, 2 * SEGMENT)
    log_probs, values, _ = outputs(model, ROWS, SEGMENT, 2 * SEGMENT)
    torch.testing.assert_close(log_probs, held["log_probs"], atol=1e-5, rtol=0)
    torch.testing.assert_close(values, held["values"], atol=1e-5, rtol=1e-5)


def test_values_are_refreshed_before_the_full_update_and_log_probs_are_not() -> None:
    """B6: by default the full update compares with what was recorded when acting; an option refreshes it."""
    for refreshes in (False, True):
        model = learner("relic", refresh_log_probs=refreshes)
        act(model, 2, train=True)
        recorded = positions(model, 0, 2 * SEGMENT)
        slots = model.rollout_buffer.log_probs.clone()
        model.train()  # the last refresh of the rollout
        held = positions(model, 0, 2 * SEGMENT)
        log_probs, values, _ = outputs(model, ROWS, 0, 2 * SEGMENT)
        torch.testing.assert_close(held["values"], values, atol=1e-5, rtol=1e-5)
        assert not torch.allclose(held["values"], recorded["values"])
        assert torch.equal(model.rollout_buffer.log_probs, slots) is not refreshes
        assert torch.allclose(held["log_probs"], log_probs, atol=1e-5) is refreshes


@pytest.mark.parametrize("last", [False, True])
def test_a_refresh_writes_into_the_memory_that_is_there(last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts of sequences, and for some environments at a time."""
    states, values = [], []
    for steps, tokens in ((1024, 1 << 20), (3, 1 << 20), (3, 3), (5, 10)):
        monkeypatch.setattr("agents.ppo.PREFILL_STEPS", steps)
        model = act(learner("relic", micro_batch_tokens=tokens), 1)
        assert model._state is not None
        generator = torch.Generator().manual_seed(2)
        with torch.no_grad():
            for parameter in model.policy.parameters():
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
        model.rollout_buffer.shuffle_episodes(SEGMENT, np.random.default_rng(0))
        held = dict(model._state)
        model._refresh(SEGMENT, last_of_rollout=last)
        assert all(model._state[key] is value for key, value in held.items())
        states.append({key: value.clone() for key, value in held.items()})
        values.append(model.rollout_buffer.values.clone())
    for state, value in zip(states[1:], values[1:], strict=True):
        for key in state:
            torch.testing.assert_close(state[key], states[0][key], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(value, values[0], atol=1e-5, rtol=1e-5)


DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use")
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("memory", MEMORIES)
def test_bfloat16_is_close_to_float32(memory: str, device: str) -> None:
    """Values to 0.05, log probabilities to 0.02, the gradient's norm to 5 %, its direction to a cosine of 0.99."""
    found = []
    for precision in ("float32", "bfloat16"):
        model = act(learner(memory, precision=precision, device=device), 2, train=False)
        unclipped(model)
        rows = ROWS.to(model.device)
        distribution, values, actions = model.evaluate(rows, SEGMENT, 2 * SEGMENT)
        log_probs = distribution.log_prob(actions)
        assert values.dtype == log_probs.dtype == torch.float32
        found.append((values.detach(), log_probs.detach(), optimise(model, rows, SEGMENT, 2 * SEGMENT)))
        assert all(parameter.dtype == torch.float32 for parameter in model.policy.parameters())
    (values, log_probs, gradient), (narrow_values, narrow_log_probs, narrow_gradient) = found
    torch.testing.assert_close(narrow_values, values, atol=0.05, rtol=0)
    torch.testing.assert_close(narrow_log_probs, log_probs, atol=0.02, rtol=0)
    assert memory == "none" or not torch.equal(narrow_values, values)
    assert float(narrow_gradient.norm()) == pytest.approx(float(gradient.norm()), rel=0.05)
    assert float(torch.nn.functional.cosine_similarity(narrow_gradient, gradient, dim=0)) > 0.99


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("prefix_grad", ["full", "detach", "window"])
@pytest.mark.parametrize("memory", MEMORIES)
def test_bfloat16_learns_through_whole_rollouts(memory: str, prefix_grad: str, device: str) -> None:
    model = learner(memory, precision="bfloat16", prefix_grad=prefix_grad, prefix_window=3, device=device)
    before = weights(model).clone()
    model.learn(2 * N * STEPS)
    assert not torch.equal(weights(model), before)
    assert bool(torch.isfinite(weights(model)).all())


def test_kl_is_logged_for_each_kind_of_update_without_dropout() -> None:
    """B6, B7: after an update that cannot move, the divergence is 0 although blocks are dropped while training."""
    model = learner("relic", memory_kwargs={"depth_dropout": 0.5}, learning_rate=1e-30, shuffle_episodes=False)
    model.learn(N * STEPS, log_interval=None)  # nothing is written out, so that it can be looked at
    logged = dict(model.logger.name_to_value)
    assert logged["train/approx_kl_full"] == pytest.approx(0.0, abs=1e-6)
    moved = learner("relic", memory_kwargs={"depth_dropout": 0.5})
    moved.learn(N * STEPS, log_interval=None)
    assert moved.logger.name_to_value["train/approx_kl_full"] > 1e-6
    act(moved)
    moved.train()
    assert "train/approx_kl_partial" in moved.logger.name_to_value


def test_dropout_is_on_in_the_update_only() -> None:
    """B7, B13: acting never drops a block; learning does, by a factor of 0 or 1."""
    model = act(learner("relic", memory_kwargs={"depth_dropout": 0.9}))
    held = positions(model, 0, SEGMENT)
    model.policy.set_training_mode(True)
    dropped, _, actions = model.evaluate(ROWS, 0, SEGMENT)
    model.policy.set_training_mode(False)
    kept, _, _ = model.evaluate(ROWS, 0, SEGMENT)
    torch.testing.assert_close(kept.log_prob(actions), held["log_probs"], atol=1e-5, rtol=0)
    assert not torch.allclose(dropped.log_prob(actions), held["log_probs"], atol=1e-5)
    unclipped(model)
    optimise(model, ROWS, 0, SEGMENT)
    assert all(parameter.grad is not None for parameter in model.policy.parameters())


# ------------------------------------------------------------------ rollouts


def test_every_rollout_starts_a_trial_and_empties_the_memory() -> None:
    model = learner("relic")
    model.learn(3 * N * STEPS)
    assert [info["trial_id"] for info in model.env.reset_infos] == [2] * N
    assert bool(model.rollout_buffer.trial_start[:, 0].all())
    assert not model.rollout_buffer.trial_start[:, 1:].any()
    assert model.rollout_buffer.previous[:, 0].tolist() == [0] * N


def test_a_trial_that_just_began_is_not_thrown_away() -> None:
    env = make_vec_env("memenvs/Darkroom-v0", N, size=3, max_episode_steps=5, trial_steps=STEPS)
    model = learner("relic", env=env)
    model.learn(3 * N * STEPS)
    assert [info["trial_id"] for info in env.reset_infos] == [3] * N  # ended by themselves; nothing was skipped
    assert model._trials_are_fresh()


def test_the_memory_is_carried_on_where_rollouts_are_not_trials() -> None:
    env = make_vec_env("CartPole-v1", N, seed=0)
    model = PartialUpdatePPO(
        "MemoryPolicy", env, n_steps=8, n_updates=1, batch_size=2, seed=0, device="cpu",
        policy_kwargs={"memory": "lstm", "memory_kwargs": {"hidden_dim": 8}},
    )  # fmt: skip
    _, callback = model._setup_learn(10**6)
    for _ in range(4):
        assert model.collect_rollouts(env, callback, model.rollout_buffer, 8)
        distribution, values, actions = model.evaluate(ROWS, 0, 8)
        held = positions(model, 0, 8)
        torch.testing.assert_close(distribution.log_prob(actions), held["log_probs"], atol=1e-5, rtol=0)
        torch.testing.assert_close(values, held["values"], atol=1e-5, rtol=1e-5)
    assert not model.rollout_buffer.trial_start[:, 0].all()


def test_what_cannot_go_on_for_ever_must_be_reset() -> None:
    with pytest.raises(
        ValueError, match="reset_each_rollout must be True with n_updates 3 and memory 'lstm', got False"
    ):
        learner("lstm", reset_each_rollout=False).learn(1)
    with pytest.raises(ValueError, match="reset_each_rollout must be True with n_updates 1 and memory 'relic'"):
        learner("relic", reset_each_rollout=False, n_updates=1).learn(1)
    learner("lstm", reset_each_rollout=False, n_updates=1).learn(2 * N * STEPS)


def test_trials_are_seen_through_wrappers_of_the_environment() -> None:
    class Pictures(gym.Env):
        """Two episodes a trial, images with their channels last."""

        observation_space = spaces.Box(0, 255, (36, 36, 3), np.uint8)
        action_space = spaces.Discrete(2)
        episode = -1

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
            self.episode, self.steps = self.episode + 1, 0
            return self.observation_space.low, {"trial_start": self.episode % 2 == 0}

        def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
            self.steps += 1
            return self.observation_space.low, 0.0, self.steps == 3, False, {}

    env = DummyVecEnv([Pictures])
    small = {"features_extractor_class": "NatureCNN", "features_extractor_kwargs": {"features_dim": 4}}
    model = PartialUpdatePPO(
        "MemoryPolicy", env, n_steps=12, n_updates=1, device="cpu", seed=0,
        policy_kwargs={"memory": "gru", "memory_kwargs": {"hidden_dim": 4}, **small},
    )  # fmt: skip
    assert isinstance(model.env, VecTransposeImage)
    model.learn(12)
    assert model._has_trials
    assert model.rollout_buffer.trial_start[0].nonzero()[:, 0].tolist() == [0, 6]
    assert model.rollout_buffer.episode_start[0].nonzero()[:, 0].tolist() == [0, 3, 6, 9]


def test_truncated_episodes_are_credited_by_hand() -> None:
    """B8: by default the clock is an end like any other; with the option, gamma times the value of the last observation is added."""
    plain, model = (learner("lstm", bootstrap_truncated=flag) for flag in (False, True))
    act(plain)
    seen: list[float] = []
    original = model._truncated_values

    def watch(dones: np.ndarray, infos: list[dict[str, Any]]) -> np.ndarray:
        state = {key: value.clone() for key, value in model._state.items()}
        values = original(dones, infos)
        for i in np.flatnonzero(dones).tolist():
            last = {key: torch.as_tensor(value)[None] for key, value in infos[i]["terminal_observation"].items()}
            row = {key: value[i : i + 1] for key, value in state.items()}
            never = torch.zeros(1, dtype=torch.bool)
            with torch.no_grad():
                seen.append(float(model.policy.step(model.policy.features(last), row, never, never)[1]))
            assert values[i] == pytest.approx(seen[-1], abs=1e-6)
        assert not values[~dones].any()
        return values

    model._truncated_values = watch  # type: ignore[method-assign]
    act(model)
    assert len(seen) == N  # one episode of 5 steps each in a segment of 8
    extra = model.rollout_buffer.rewards - plain.rollout_buffer.rewards
    np.testing.assert_allclose(extra[:, 4], 0.99 * np.array(seen), atol=1e-6)
    assert not extra[:, [t for t in range(STEPS) if t != 4]].any()
    held, expected = (positions(each, 0, SEGMENT)["log_probs"] for each in (model, plain))
    assert torch.equal(held, expected)  # looking at the last observation leaves no trace in the memory


def test_learning_rate_by_hand() -> None:
    config = PPOConfig(learning_rate=2.0, warmup_steps=100, final_learning_rate=0.5)
    assert config.learning_rate_at(0, 1100) == pytest.approx(0.002)
    assert config.learning_rate_at(50, 1100) == pytest.approx(2.0 * (0.001 + 0.999 * 0.5))
    assert config.learning_rate_at(100, 1100) == pytest.approx(2.0)
    assert config.learning_rate_at(600, 1100) == pytest.approx(1.25)
    assert config.learning_rate_at(350, 1100) == pytest.approx(0.5 + 0.75 * (1 + math.cos(math.pi / 4)))
    assert config.learning_rate_at(1100, 1100) == pytest.approx(0.5)
    assert config.learning_rate_at(5000, 1100) == pytest.approx(0.5)
    assert PPOConfig(learning_rate=2.0, warmup_steps=10).learning_rate_at(10**6, 100) == 2.0


def test_learning_rate_lags_by_one_update() -> None:
    model = act(learner("none", learning_rate=1.0, warmup_steps=1000))
    for k in range(3):
        model.train()
        rate = model.policy.optimizer.param_groups[0]["lr"]
        assert rate == pytest.approx(0.001 + 0.999 * k * N * SEGMENT / 1000)
        if k < 2:
            model.collect_rollouts(model.env, _quiet(model), model.rollout_buffer, STEPS)


# ------------------------------------------------------------------ determinism


@pytest.mark.parametrize("memory", MEMORIES)
def test_same_seed_same_bits(memory: str) -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    kwargs = {"memory_kwargs": {"depth_dropout": 0.3}} if memory == "relic" else {}
    first, second, other = (learner(memory, seed=seed, **kwargs).learn(2 * N * STEPS) for seed in (3, 3, 4))
    assert torch.equal(weights(first), weights(second))
    assert not torch.equal(weights(first), weights(other))
    assert torch.equal(before[0], torch.get_rng_state())  # nothing global was read or seeded
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_without_a_seed_the_environment_keeps_its_own() -> None:
    env = darkroom(seed=17)
    learner("none", env=env, seed=None).learn(N * SEGMENT)
    assert [info["seed"] for info in env.reset_infos] == [17, 18, 19, 20]
    learner("none", env=env, seed=5).learn(N * SEGMENT)
    assert [info["seed"] for info in env.reset_infos] == [5, 6, 7, 8]


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_steps": 1}, "n_steps must be at least 2"),
        ({"n_steps": 10, "n_updates": 3}, r"n_updates must divide n_steps \(10\), got 3"),
        ({"n_epochs": 0}, "n_epochs must be at least 1"),
        ({"gamma": 1.5}, r"gamma must be in \[0, 1\], got 1.5"),
        ({"clip_range": 0.0}, "clip_range must be > 0"),
        ({"warmup_steps": -1}, "warmup_steps must be at least 0"),
        ({"prefix_grad": "some"}, "unknown prefix_grad 'some'; choose from .*'full', 'detach', 'window'"),
        ({"prefix_grad": 3}, "unknown prefix_grad 3; choose from"),
        ({"gamma": math.nan}, "gamma must be finite, got nan"),
        ({"final_learning_rate": math.inf}, "final_learning_rate must be finite, got inf"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PPOConfig(**settings)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_steps", "128", "n_steps must be a whole number, got '128'"),
        ("n_steps", 128.0, "n_steps must be a whole number, got 128.0"),
        ("n_epochs", True, "n_epochs must be a whole number, got True"),
        (
            "n_epochs",
            np.int64(4),
            r"n_epochs must be a whole number, got np\.int64\(4\)",
        ),  # could not be written as JSON
        ("gamma", True, "gamma must be a number, got True"),
        ("clip_range", None, "clip_range must be a number, got None"),
        ("clip_range_vf", "0.2", "clip_range_vf must be a number or None, got '0.2'"),
        ("normalize_advantage", 1, "normalize_advantage must be true or false, got 1"),
        ("reset_each_rollout", 0, "reset_each_rollout must be true or false or None, got 0"),
    ],
)
def test_settings_of_wrong_types(name: str, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        PPOConfig(**{name: value})


def test_whole_numbers_are_numbers() -> None:
    assert PPOConfig(gamma=1, clip_range_vf=None) == PPOConfig(gamma=1.0, clip_range_vf=None)


def test_unknown_settings_list_the_choices() -> None:
    with pytest.raises(TypeError, match=r"unknown setting 'n_step'; choose from .*'n_steps'"):
        learner("none", n_step=3)
    with pytest.raises(ValueError, match=r"unknown memory 'lstmm'; choose from .*'lstm'"):
        PartialUpdatePPO("MemoryPolicy", darkroom(), policy_kwargs={"memory": "lstmm"}, device="cpu")


def test_broken_weights_are_named() -> None:
    model = act(learner("none"))
    with torch.no_grad():
        model.policy.critic.bias.fill_(float("nan"))
    with pytest.raises(
        ValueError, match=r"policy's outputs must be finite.*after 32 environment steps and 0 upd.*learning_rate"
    ):
        model.collect_rollouts(model.env, _quiet(model), model.rollout_buffer, STEPS)


def test_rewards_must_be_finite() -> None:
    env = darkroom()
    model = learner("none", env=env)
    step = env.step_wait
    env.step_wait = lambda: (lambda o, r, d, i: (o, r + np.float32("nan"), d, i))(*step())
    with pytest.raises(ValueError, match=r"rewards must be finite, got .* after 0 environment steps and 0 updates"):
        model.learn(1)


def test_loss_and_gradient_must_be_finite() -> None:
    """Returns whose squares are beyond float32: the update stops before it touches the weights, and says when."""
    model = act(learner("lstm"), 2, train=True)
    before = weights(model)
    model.rollout_buffer.rewards[:, SEGMENT] = 1e30
    with pytest.raises(
        ValueError, match=r"must be finite, got value_loss inf.* in update 2, after 64 environment steps; lower"
    ):
        model.train()
    assert torch.equal(weights(model), before)


@pytest.mark.parametrize("memory", ["lstm", "relic"])
def test_the_observation_after_the_last_step_needs_a_position(memory: str) -> None:
    """Episodes have 5 steps; the value of what the clock cut off is asked at a sixth."""
    tight = {"memory_kwargs": {"max_episode_steps": 5}} if memory == "relic" else {}
    learner(memory, **tight).learn(N * STEPS)
    if memory == "relic":
        message = (
            "max_episode_steps of the memory must be above the 5 of the environment with bootstrap_truncated .*, got 5"
        )
        with pytest.raises(ValueError, match=message):
            learner(memory, bootstrap_truncated=True, **tight)
        with pytest.raises(ValueError, match=r"must be above the 500 of the environment .*, got 5"):
            learner(memory, env=make_vec_env("CartPole-v1", 1), bootstrap_truncated=True, **tight)
        model = learner(memory, bootstrap_truncated=True, memory_kwargs={"max_episode_steps": 6})
        with pytest.raises(ValueError, match=r"must be above the 6 of the environment .*, got 6"):
            model.set_env(darkroom(horizon=6))
        tight = {"memory_kwargs": {"max_episode_steps": 6}}
    learner(memory, bootstrap_truncated=True, **tight).learn(N * STEPS)


# ------------------------------------------------------------------ spaces


class Noise(gym.Env):
    """Random observations, rewards for large actions; episodes of 6 steps."""

    def __init__(self, observation_space: spaces.Space, action_space: spaces.Space) -> None:
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.steps += 1
        return self.observation_space.sample(), float(np.sum(action)), False, self.steps >= 6, {}


VECTOR = spaces.Box(-1.0, 1.0, (3,), np.float32)
IMAGE = spaces.Box(0, 255, (36, 36, 3), np.uint8)
DICT = spaces.Dict({"image": IMAGE, "vector": VECTOR, "kind": spaces.Discrete(4), "flags": spaces.MultiBinary(2)})
COMBINED = {"features_extractor_class": CombinedExtractor, "features_extractor_kwargs": {"cnn_output_dim": 8}}
SPACES = {
    "vector, Box": (VECTOR, spaces.Box(-0.1, 0.1, (2,), np.float32), {}),
    "vector, MultiDiscrete": (VECTOR, spaces.MultiDiscrete([2, 3]), {}),
    "vector, Discrete from 5": (VECTOR, spaces.Discrete(3, start=5), {}),
    "float64": (spaces.Box(-1.0, 1.0, (3,), np.float64), spaces.Discrete(2), {}),
    "number": (spaces.Discrete(5), spaces.Discrete(2), {}),
    "image": (IMAGE, spaces.Discrete(2), {"features_extractor_class": NatureCNN, "features_extractor_kwargs": {"features_dim": 8}}),
    "dict": (DICT, spaces.Discrete(2), {"features_extractor_kwargs": {"image_dim": 8, "widths": {"vector": 4}}}),
    "dict, CombinedExtractor": (DICT, spaces.MultiDiscrete([2, 2]), COMBINED),
    "dict, frozen": (DICT, spaces.Discrete(2), {"freeze_features": True, "features_extractor_kwargs": {"image_dim": 8}}),
}  # fmt: skip


@pytest.mark.parametrize("name", SPACES)
def test_spaces(name: str) -> None:
    observations, actions, policy = SPACES[name]
    env = DummyVecEnv([lambda: Noise(observations, actions)] * 2)
    model = learner(
        "relic", env=env, n_steps=16, n_updates=2, policy_kwargs=policy, learning_rate=1e-3
    )  # fmt: skip
    act(model)
    distribution, values, taken = model.evaluate(torch.arange(2), 0, 8)
    held = model.rollout_buffer
    torch.testing.assert_close(distribution.log_prob(taken), held.log_probs[:, :8], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(values, held.values[:, :8], atol=1e-4, rtol=1e-4)
    before = weights(model)
    model.learn(2 * 2 * 16)
    assert not torch.equal(before, weights(model))
    action, _ = model.predict(env.reset(), deterministic=True)
    assert all(actions.contains(a) for a in (action.astype(actions.dtype)))
    if policy.get("freeze_features"):
        frozen = model.policy.features_extractor
        assert held.embeddings is not None
        assert held.embeddings.dtype == torch.bfloat16
        assert held.observations is None
        assert not any(parameter.requires_grad for parameter in frozen.parameters())


@pytest.mark.parametrize(
    "space", [spaces.MultiBinary(3), spaces.Box(-1.0, 1.0, (2, 2), np.float32), spaces.MultiDiscrete([[2, 2]])]
)
def test_spaces_that_are_not_supported(space: spaces.Space) -> None:
    with pytest.raises((ValueError, AssertionError), match="action space"):
        learner("none", env=DummyVecEnv([lambda: Noise(VECTOR, space)]))


# ------------------------------------------------------------------ Stable-Baselines3 around it


class StopAt(BaseCallback):
    """Stops after some calls."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.left = calls

    def _on_step(self) -> bool:
        assert len(self.locals["infos"]) == self.training_env.num_envs
        self.left -= 1
        return self.left >= 0


def test_a_callback_can_stop_and_learning_can_go_on() -> None:
    model = learner("relic")
    model.learn(10**6, StopAt(SEGMENT + 3))  # in the middle of the second segment
    assert model.num_timesteps == N * (SEGMENT + 4)
    assert model.at_rollout_boundary
    model.learn(2 * N * STEPS, reset_num_timesteps=False)
    assert model.num_timesteps == N * (SEGMENT + 4) + 2 * N * STEPS
    assert model.at_rollout_boundary
    assert [info["trial_id"] for info in model.env.reset_infos] == [2] * N


def test_learning_in_pieces_is_learning_at_once() -> None:
    whole, pieces = learner("relic"), learner("relic")
    whole.learn(2 * N * STEPS)
    for i in range(2 * STEPS // SEGMENT):
        pieces.learn(N * SEGMENT, reset_num_timesteps=i == 0)
    assert torch.equal(weights(whole), weights(pieces))


def test_callbacks_of_stable_baselines(tmp_path: Any) -> None:
    model = learner("relic", n_epochs=1)
    callbacks = [
        EvalCallback(darkroom(2), n_eval_episodes=4, eval_freq=STEPS, best_model_save_path=str(tmp_path / "best"), verbose=0),
        CheckpointCallback(STEPS, str(tmp_path / "kept")),
    ]  # fmt: skip
    model.learn(2 * N * STEPS, callbacks)
    assert np.isfinite(callbacks[0].last_mean_reward)  # type: ignore[attr-defined]
    PartialUpdatePPO.load(tmp_path / "best" / "best_model", device="cpu")
    PartialUpdatePPO.load(tmp_path / "kept" / f"rl_model_{N * STEPS}_steps.zip", device="cpu")


@pytest.mark.parametrize("memory", MEMORIES)
def test_evaluate_policy_runs(memory: str) -> None:
    model = learner(memory)
    returns, lengths = evaluate_policy(model, darkroom(2, seed=0), n_eval_episodes=4, return_episode_rewards=True)
    assert lengths == [5] * 4
    assert all(0 <= value <= 5 for value in returns)


def test_advantages_equal_those_of_stable_baselines() -> None:
    env = make_vec_env("CartPole-v1", 2, seed=0)
    ours = PartialUpdatePPO(
        "MemoryPolicy", env, n_steps=64, n_updates=1, policy_kwargs={"memory": "none"}, seed=0, device="cpu"
    )
    act(ours)
    peer = PPO("MlpPolicy", env, n_steps=64, seed=0, device="cpu").rollout_buffer
    held = ours.rollout_buffer
    for t in range(64):
        peer.add(
            np.zeros((2, 4)), np.zeros((2, 1)), held.rewards[:, t].numpy(), held.episode_start[:, t].numpy(),
            held.values[:, t], held.log_probs[:, t],
        )  # fmt: skip
    peer.compute_returns_and_advantage(ours._last_values, ours._episode_start.numpy())
    advantages, returns = held.advantages(0, 64, ours._last_values, ours._episode_start, 0.99, 0.95)
    np.testing.assert_allclose(advantages, peer.advantages.T, atol=1e-4)
    np.testing.assert_allclose(returns, peer.returns.T, atol=1e-4)


def test_learn_needs_an_environment(tmp_path: Any) -> None:
    learner("none").save(tmp_path / "model")
    with pytest.raises(RuntimeError, match="learn was called without an environment"):
        PartialUpdatePPO.load(tmp_path / "model", device="cpu").learn(1)


def test_the_state_knows_the_action_taken() -> None:
    model = act(learner("lstm"))
    assert model._state is not None
    assert torch.equal(model._state[PREVIOUS_ACTION], model.rollout_buffer.actions[:, SEGMENT - 1] + 1)
    assert torch.equal(model.rollout_buffer.previous[:, 1:5], model.rollout_buffer.actions[:, :4] + 1)
    assert not model.rollout_buffer.previous[:, 5].any()  # an episode of 5 steps is over
