"""Partial-update PPO: each step of the method against a version written by hand."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from memenvs.agents import PartialUpdatePPO, PPOConfig
from tests.agents.learners import (
    MEMORIES,
    ROWS,
    SEGMENT,
    STEPS,
    N,
    act,
    act_next,
    check_values,
    darkroom,
    double,
    gradients,
    learner,
    positions,
    shake,
    weights,
)


def outputs(model: PartialUpdatePPO, rows: Tensor, begin: int, end: int) -> tuple[Tensor, Tensor, Tensor]:
    """Log probabilities of the actions taken, values and entropies, without `evaluate`.

    The memory runs from an empty state over all steps.
    """
    policy, buffer = model.policy, model.rollout_buffer
    s = buffer.sequences(rows, 0, end)
    features = torch.stack([policy.features({k: v[:, t] for k, v in s.observations.items()}) for t in range(end)], 1)
    x = policy.memory_inputs(features, s.previous_action, s.episode_start, s.trial_start)
    latent, _ = policy.memory(x, None)
    distribution, values = policy.heads(latent[:, begin:])
    return distribution.log_prob(s.actions[:, begin:]), values, distribution.entropy()


def loss_by_hand(model: PartialUpdatePPO, rows: Tensor, begin: int, end: int) -> Tensor:
    """The loss of one optimizer step, element by element."""
    config, stored = model.config, positions(model, begin, end)
    advantages, returns = model.rollout_buffer.advantages(
        begin, end, model._last_values, model._episode_start, config.gamma, config.gae_lambda
    )
    log_probs, values, entropy = outputs(model, rows, begin, end)
    total = torch.zeros(())
    for j, i in enumerate(rows.tolist()):
        for t in range(end - begin):
            ratio = torch.exp(log_probs[j, t] - stored["log_probs"][i, t])
            gain = ratio * advantages[i, t]
            if advantages[i, t] > 0 and ratio.item() > 1 + config.clip_range:
                gain = (1 + config.clip_range) * advantages[i, t]
            if advantages[i, t] < 0 and ratio.item() < 1 - config.clip_range:
                gain = (1 - config.clip_range) * advantages[i, t]
            change = values[j, t] - stored["values"][i, t]
            value = values[j, t]
            if config.clip_range_vf is not None and abs(change.item()) > config.clip_range_vf:
                value = stored["values"][i, t] + math.copysign(config.clip_range_vf, change.item())  # B12: no gradient
            error = (value - returns[i, t]) ** 2
            total = total - gain + config.vf_coef * error - config.ent_coef * entropy[j, t]
    return total / (len(rows) * (end - begin))


def disable_clip_and_step(model: PartialUpdatePPO) -> None:
    """Make the next optimizer step leave its gradients unclipped and the weights unchanged."""
    model.config = PPOConfig(**{**vars(model.config), "max_grad_norm": 1e9})
    for group in model.policy.optimizer.param_groups:
        group["lr"] = 0.0


def step_gradients(model: PartialUpdatePPO, rows: Tensor, begin: int, end: int) -> Tensor:
    """Gradients of one optimizer step."""
    stored = positions(model, begin, end)
    advantages, returns = model._advantages(begin, end)
    targets = torch.stack([stored["log_probs"], stored["values"], advantages, returns], -1)
    model.policy.set_training_mode(True)  # recurrent networks of cuDNN have no gradients without it
    model._optimizer_step(rows, begin, end, targets)
    model.policy.set_training_mode(False)
    return gradients(model)


def test_a_ratio_beyond_float32_leaves_gradients_finite() -> None:
    """As between two steps of the optimizer with an action of thousands of numbers; `train` refuses NaN."""
    model = act(learner("gru"))
    before = weights(model)
    model.rollout_buffer.log_probs -= 100.0
    model.train()
    assert not torch.equal(weights(model), before)
    assert all(math.isfinite(value) for value in model.logger.name_to_value.values())


@pytest.mark.parametrize("memory", MEMORIES)
def test_gradient_of_a_partial_update(memory: str) -> None:
    for clip_range_vf in (0.05, None):
        model = double(act(learner(memory, clip_range_vf=clip_range_vf), 2, train=True))
        disable_clip_and_step(model)
        rows = torch.tensor([3, 1, 0])
        model.policy.set_training_mode(True)
        got = step_gradients(model, rows, SEGMENT, 2 * SEGMENT)
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
    optimizer = torch.optim.Adam(other.policy.parameters(), lr=1e-2, eps=1e-5)
    for _ in range(2):
        optimizer.zero_grad()
        loss_by_hand(other, ROWS, 0, STEPS).backward()
        norm = float(gradients(other).norm())
        for parameter in other.policy.parameters():
            if parameter.grad is not None and norm > 0.5:
                parameter.grad *= 0.5 / (norm + 1e-6)
        optimizer.step()
    torch.testing.assert_close(weights(model), weights(other), atol=1e-7, rtol=1e-6)


def test_the_last_update_of_a_rollout_learns_from_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each other one learns from its segment; so does the last one without `full_update`."""
    for full_update in (True, False):
        model = learner("lstm", full_update=full_update)
        spans: list[tuple[int, int, tuple[int, ...]]] = []
        optimizer_step = model._optimizer_step

        def record(rows: torch.Tensor, begin: int, end: int, targets: torch.Tensor) -> torch.Tensor:
            spans.append((begin, end, tuple(targets.shape)))  # noqa: B023  (called in this turn of the loop)
            return optimizer_step(rows, begin, end, targets)  # noqa: B023

        monkeypatch.setattr(model, "_optimizer_step", record)
        model.learn(N * STEPS)
        begins = (0, SEGMENT, 0 if full_update else 2 * SEGMENT)
        ends = (SEGMENT, 2 * SEGMENT, STEPS)
        expected = [(begin, end, (N, end - begin, 4)) for begin, end in zip(begins, ends, strict=True)]
        assert list(dict.fromkeys(spans)) == expected


@pytest.mark.parametrize("memory", MEMORIES)
def test_micro_batches_add_up(memory: str) -> None:
    model = double(act(learner(memory), 2, train=True))
    disable_clip_and_step(model)
    whole = step_gradients(model, ROWS, SEGMENT, 2 * SEGMENT)
    evaluate, seen = model.evaluate, []
    model.evaluate = lambda rows, *args: seen.append(len(rows)) or evaluate(rows, *args)  # type: ignore[method-assign]
    for tokens, sizes in ((1, [1] * 4), (2 * SEGMENT, [1] * 4), (3 * 2 * SEGMENT, [3, 1]), (1 << 15, [4])):
        model.config = PPOConfig(**{**vars(model.config), "micro_batch_tokens": tokens})
        seen.clear()
        torch.testing.assert_close(step_gradients(model, ROWS, SEGMENT, 2 * SEGMENT), whole, atol=1e-9, rtol=1e-7)
        assert seen == sizes


def test_nothing_is_credited_after_an_episode_that_ends_with_the_segment() -> None:
    model = act(learner("lstm", env=darkroom(horizon=SEGMENT)))
    stored = positions(model, 0, SEGMENT)
    assert bool(model._episode_start.all()) and float(model._last_values.abs().min()) > 0
    _, returns = model._advantages(0, SEGMENT)
    torch.testing.assert_close(returns[:, -1], stored["rewards"][:, -1])


@pytest.mark.parametrize(("normalize", "first"), [(True, SEGMENT), ("rollout", 0)])
def test_advantages_are_scaled_by_those_of_the_segment_or_rollout(normalize: bool | str, first: int) -> None:
    model = act(learner("lstm", normalize_advantage=False), 2, train=True)
    seen, returns = model._advantages(first, 2 * SEGMENT)
    model.config = PPOConfig(**{**vars(model.config), "normalize_advantage": normalize})
    advantages, own_returns = model._advantages(SEGMENT, 2 * SEGMENT)
    torch.testing.assert_close(advantages, ((seen - seen.mean()) / seen.std(correction=0))[:, -SEGMENT:])
    torch.testing.assert_close(own_returns, returns[:, -SEGMENT:])


@pytest.mark.parametrize("memory", MEMORIES)
def test_prefix_grad_changes_gradients_but_not_outputs(memory: str) -> None:
    """A window as long as the prefix changes nothing at all."""
    results = []
    for prefix_grad, window in (("full", 1), ("detach", 1), ("window", 3), ("window", SEGMENT)):
        model = act(learner(memory), 2, train=True)
        model.config = PPOConfig(**{**vars(model.config), "prefix_grad": prefix_grad, "prefix_window": window})
        disable_clip_and_step(model)
        model.policy.set_training_mode(True)
        distribution, values, _ = model.evaluate(ROWS, SEGMENT, 2 * SEGMENT)
        results.append((distribution.log_probs, values, step_gradients(model, ROWS, SEGMENT, 2 * SEGMENT)))
    full_log_probs, full_values, full_gradient = results[0]
    for log_probs, values, gradient in results[1:3]:
        torch.testing.assert_close(log_probs, full_log_probs, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(values, full_values, atol=1e-5, rtol=1e-5)
        if memory == "none":
            torch.testing.assert_close(gradient, full_gradient, atol=1e-7, rtol=1e-5)
        else:
            assert float((gradient - full_gradient).norm() / full_gradient.norm()) > 1e-3
    assert torch.equal(results[3][2], full_gradient)


@pytest.mark.parametrize("memory", MEMORIES)
def test_detach_where_a_trial_ends_inside_the_segment(memory: str) -> None:
    """Acting in a new trial must not overwrite the memory that the segment began with."""
    env = darkroom(episodes=2)  # trials of 10 steps: one ends at step 10, within the segment 8 ... 16
    model = act(learner(memory, env=env, prefix_grad="detach"), 2, train=True)
    check_values(model, SEGMENT, 2 * SEGMENT)


@pytest.mark.parametrize("memory", MEMORIES)
def test_after_an_update_the_next_step_is_that_of_a_forward_pass(memory: str) -> None:
    """B9: the refilled memory is the valid prefix, in its new order, with the new weights."""
    env = darkroom(horizon=2)  # 4 episodes in a segment of 8, so that 3 of them are shuffled
    model = act(learner(memory, env=env))
    old = weights(model)
    model.train()
    assert not torch.equal(old, weights(model))
    assert model.rollout_buffer.shuffled
    assert not torch.equal(model.rollout_buffer.order, torch.arange(STEPS).expand(N, -1))
    act_next(model)
    stored = positions(model, SEGMENT, 2 * SEGMENT)
    log_probs, values, _ = outputs(model, ROWS, SEGMENT, 2 * SEGMENT)
    torch.testing.assert_close(log_probs, stored["log_probs"], atol=1e-5, rtol=0)
    torch.testing.assert_close(values, stored["values"], atol=1e-5, rtol=1e-5)


def test_values_are_refreshed_before_the_full_update_and_log_probs_are_not() -> None:
    """B6: the full update compares with log probabilities recorded while acting, unless `refresh_log_probs`."""
    for refreshes in (False, True):
        model = learner("relic", refresh_log_probs=refreshes)
        act(model, 2, train=True)
        recorded = positions(model, 0, 2 * SEGMENT)
        slots = model.rollout_buffer.log_probs.clone()
        model.train()  # the last refill of the rollout
        stored = positions(model, 0, 2 * SEGMENT)
        log_probs, values, _ = outputs(model, ROWS, 0, 2 * SEGMENT)
        torch.testing.assert_close(stored["values"], values, atol=1e-5, rtol=1e-5)
        assert not torch.allclose(stored["values"], recorded["values"])
        assert torch.equal(model.rollout_buffer.log_probs, slots) is not refreshes
        assert torch.allclose(stored["log_probs"], log_probs, atol=1e-5) is refreshes


@pytest.mark.parametrize("last", [False, True])
def test_a_refill_writes_in_place(last: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result does not depend on how many steps and environments are computed at once."""
    states, values = [], []
    for steps, tokens in ((1024, 1 << 20), (3, 1 << 20), (3, 3), (5, 10)):
        monkeypatch.setattr("memenvs.agents.algorithms.ppo.PREFILL_STEPS", steps)
        model = act(learner("relic", micro_batch_tokens=tokens), 1)
        shake(model)
        model.rollout_buffer.shuffle_episodes(SEGMENT, np.random.default_rng(0))
        stored = dict(model._state)
        model._refill_memory(SEGMENT, rewrite=last)
        assert all(model._state[key] is value for key, value in stored.items())
        states.append({key: value.clone() for key, value in stored.items()})
        values.append(model.rollout_buffer.values.clone())
    for state, value in zip(states[1:], values[1:], strict=True):
        for key in state:
            torch.testing.assert_close(state[key], states[0][key], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(value, values[0], atol=1e-5, rtol=1e-5)


has_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU that torch can use, MEMENVS_TEST_GPU=1")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=has_gpu)])
@pytest.mark.parametrize("memory", MEMORIES)
def test_bfloat16_is_close_to_float32(memory: str, device: str) -> None:
    """Values to 0.05, log probabilities to 0.02, the gradient's norm to 5 %, its direction to a cosine of 0.99."""
    results = []
    for precision in ("float32", "bfloat16"):
        model = act(learner(memory, precision=precision, device=device), 2, train=False)
        disable_clip_and_step(model)
        rows = ROWS.to(model.device)
        distribution, values, actions = model.evaluate(rows, SEGMENT, 2 * SEGMENT)
        log_probs = distribution.log_prob(actions)
        assert values.dtype == log_probs.dtype == torch.float32
        results.append((values.detach(), log_probs.detach(), step_gradients(model, rows, SEGMENT, 2 * SEGMENT)))
        assert all(parameter.dtype == torch.float32 for parameter in model.policy.parameters())
    (values, log_probs, gradient), (narrow_values, narrow_log_probs, narrow_gradient) = results
    torch.testing.assert_close(narrow_values, values, atol=0.05, rtol=0)
    torch.testing.assert_close(narrow_log_probs, log_probs, atol=0.02, rtol=0)
    # an LSTM runs in float32 on a CPU
    assert memory == "none" or (memory, device) == ("lstm", "cpu") or not torch.equal(narrow_values, values)
    assert float(narrow_gradient.norm()) == pytest.approx(float(gradient.norm()), rel=0.05)
    assert float(torch.nn.functional.cosine_similarity(narrow_gradient, gradient, dim=0)) > 0.99


def test_logs_by_hand() -> None:
    """Statistics of an update of one step; the divergence is of the rows that go through the network at once."""
    for batch, tokens, kl_rows in ((N, 1 << 15, N), (3, 1 << 15, 3), (N, 2 * SEGMENT + 1, 2), (N, 1, 1)):
        settings = {"n_epochs": 1, "batch_size": batch, "micro_batch_tokens": tokens, "shuffle_episodes": False}
        model = act(learner("lstm", **settings))
        noise = torch.randn(N, SEGMENT, generator=torch.Generator().manual_seed(0))
        model.rollout_buffer.log_probs[:, :SEGMENT] += 0.2 * noise  # some ratios are beyond the clip
        stored = positions(model, 0, SEGMENT)
        advantages, returns = model._advantages(0, SEGMENT)
        log_probs, values, entropy = (output.detach() for output in outputs(model, ROWS, 0, SEGMENT))
        model.train()
        logged = dict(model.logger.name_to_value)
        log_ratio = (outputs(model, ROWS, 0, SEGMENT)[0] - stored["log_probs"]).detach()[:kl_rows]
        ratio = (log_probs - stored["log_probs"]).exp()
        is_clipped = (ratio < 0.8) | (ratio > 1.2)
        assert 0.1 < is_clipped.float().mean() < 0.9
        expected = {
            "approx_kl_partial": (log_ratio.exp() - 1 - log_ratio).mean(),
            "explained_variance": 1 - (returns - stored["values"]).var() / returns.var(),
            "n_updates": 1,
        }
        if batch == N:
            expected |= {
                "policy_gradient_loss": -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean(),
                "value_loss": ((values - returns) ** 2).mean(),
                "entropy": entropy.mean(),
                "clip_fraction": is_clipped.float().mean(),
            }
        for name, value in expected.items():
            assert logged[f"train/{name}"] == pytest.approx(float(value), rel=1e-3), (name, batch, tokens)
    buffer = model.rollout_buffer
    buffer.rewards.zero_()
    buffer.values.zero_()
    model._last_values = torch.zeros(N)
    model.train()  # nothing to explain
    assert math.isnan(model.logger.name_to_value["train/explained_variance"])
    assert model.logger.name_to_value["train/n_updates"] == 2


def test_kl_is_logged_for_each_kind_of_update_without_dropout() -> None:
    """B6, B7: after an update with no step size the divergence is 0, although blocks are dropped in training."""
    model = learner("relic", memory_kwargs={"depth_dropout": 0.5}, learning_rate=1e-30, shuffle_episodes=False)
    model.learn(N * STEPS, log_interval=None)  # nothing is written, so the logger keeps its values
    logged = dict(model.logger.name_to_value)
    assert logged["train/approx_kl_full"] == pytest.approx(0.0, abs=1e-6)
    moved = learner("relic", memory_kwargs={"depth_dropout": 0.5})
    moved.learn(N * STEPS, log_interval=None)
    assert moved.logger.name_to_value["train/approx_kl_full"] > 1e-6
    act(moved)
    moved.train()
    assert "train/approx_kl_partial" in moved.logger.name_to_value


def test_dropout_is_on_in_the_update_only() -> None:
    """B7, B13: acting drops no block; learning does."""
    model = act(learner("relic", memory_kwargs={"depth_dropout": 0.9}))
    stored = positions(model, 0, SEGMENT)
    model.policy.set_training_mode(True)
    dropped, _, actions = model.evaluate(ROWS, 0, SEGMENT)
    model.policy.set_training_mode(False)
    kept, _, _ = model.evaluate(ROWS, 0, SEGMENT)
    torch.testing.assert_close(kept.log_prob(actions), stored["log_probs"], atol=1e-5, rtol=0)
    assert not torch.allclose(dropped.log_prob(actions), stored["log_probs"], atol=1e-5)
    disable_clip_and_step(model)
    step_gradients(model, ROWS, 0, SEGMENT)
    assert all(parameter.grad is not None for parameter in model.policy.parameters())


def test_same_seed_same_bits() -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    dropout = {"depth_dropout": 0.3}
    first, second, other = (learner(memory_kwargs=dropout, seed=seed).learn(N * STEPS) for seed in (3, 3, 4))
    assert torch.equal(weights(first), weights(second))
    assert not torch.equal(weights(first), weights(other))
    assert torch.equal(before[0], torch.get_rng_state())  # nothing global was read or seeded
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
