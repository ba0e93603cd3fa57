"""Targets and losses of `EpisodeDQN`: optimal values of small tasks, updates by hand."""

import time
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from memenvs.agents import EpisodeDQN
from memenvs.agents.policies.memory_policy import MemoryPolicy
from tests.agents.algorithms.q_worlds import Ring, copies, q_learner
from tests.agents.learners import Noise


def table(model: EpisodeDQN, states: int) -> np.ndarray:
    """Outputs of the actor for one-hot observations, (states, actions)."""
    policy = model.policy
    with torch.no_grad():
        return policy.actor.linear(policy.features(torch.eye(states))).numpy()


def few_episodes(count: int, values: list[list[float]], **settings: Any) -> EpisodeDQN:
    """A learner of two decisions in each of few episodes that keeps its values, (state, action)."""
    sizes = {"capacity": count, "batch_size": count, "decisions": 2, "updates_per_collect": 1, "learning_rate": 1e-12}
    model = q_learner(copies(Ring, count, length=2), **sizes, **settings)
    set_table(model.policy, values)
    return model


def set_table(policy: MemoryPolicy, values: list[list[float]]) -> None:
    with torch.no_grad():
        policy.actor.linear.weight.copy_(torch.tensor(values).T)
        policy.actor.linear.bias.zero_()


@pytest.mark.slow
def test_one_step_targets_reach_the_optimal_values_of_a_task_without_end() -> None:
    """The time limit ends episodes after 8 steps, but their last observation gets a value."""
    optimal = np.zeros((3, 2))
    for _ in range(100):
        optimal = np.array([[Ring.REWARDS[s][a] + 0.5 * optimal[(s + a) % 3].max() for a in (0, 1)] for s in range(3)])
    for temperature in (1.0, 0.25):
        model = q_learner(copies(Ring), temperature=temperature, learning_rate=0.05, target_rate=0.2)
        model.learn(32 * 8 + 256)
        np.testing.assert_allclose(temperature * table(model, 3), optimal, atol=1e-3)


@pytest.mark.parametrize(("n", "scale"), [(1, 1.0), (3, 0.1)])
@pytest.mark.slow
def test_targets_of_several_steps_and_a_true_end(n: int, scale: float) -> None:
    """The buffer has all 16 sequences of four actions, which do not change the steps.

    The expected reward before the bootstrap is then a mean over actions.
    """
    env = copies(Noise, observation_space=spaces.Box(0.0, 1.0, (5,)))  # is not played
    model = q_learner(env, n_step=n, reward_scale=scale, capacity=16, batch_size=16, target_rate=0.5)
    replay, yes = model.replay, torch.ones(16, dtype=torch.bool)
    rows, reward = replay.start_episodes(16), np.array(((1.0, 0.0), (0.0, 2.0), (-1.0, 0.0), (1.0, 3.0)))
    for t in range(4):
        actions = (torch.arange(16) >> t) % 2
        replay.add(rows, yes, t, torch.eye(5)[t].expand(16, -1), {}, actions, torch.as_tensor(reward[t])[actions])
    replay.end_episodes(rows, 4, torch.eye(5)[4].expand(16, -1), {}, yes)
    for _ in range(500):
        model._update()
    value = np.zeros((8, 2))  # 0 from step 4 on: all is over
    for t in reversed(range(4)):
        later = sum(0.5**k * reward[t + k].mean() for k in range(1, n) if t + k < 4)
        value[t] = scale * (reward[t] + later) + 0.5**n * value[t + n].max()
    np.testing.assert_allclose(table(model, 5)[:4], value[:4], atol=1e-3)


@pytest.mark.parametrize("low", [None, -0.5])
def test_lower_rewards_count_as_the_lowest(low: float | None) -> None:
    """Each of the n rewards is raised before it is scaled; the buffer stores the original ones."""
    model = few_episodes(1, [[0.0, 0.0]] * 3, n_step=2, gamma=1.0, reward_scale=0.5, min_reward=low)
    replay, state, yes = model.replay, torch.eye(3), torch.ones(1, dtype=torch.bool)
    rows = replay.start_episodes(1)
    for t, reward in enumerate((1.0, -1.0)):
        replay.add(rows, yes, t, state[[t]], {}, torch.tensor([1]), torch.tensor([reward]))
    replay.end_episodes(rows, 2, state[[2]], {}, yes)
    second = -1.0 if low is None else low
    targets = 0.5 * np.array([1.0 + second, second])
    assert model._update()[0].item() == pytest.approx((0.5 * targets**2).mean())
    assert replay._stores["reward"][0, :2].tolist() == [1.0, -1.0]


def test_a_double_q_target_worked_by_hand() -> None:
    """One episode of the ring, whose two networks disagree on which action is best."""
    model = few_episodes(1, [[0.0, 0.5], [3.0, 2.0], [1.0, 4.0]])
    model.learn(2)  # one episode of uniform actions, one update
    model.replay._stores["action"][0, :2] = torch.tensor([1, 1])
    model.replay._stores["reward"][0, :2] = torch.tensor([1.0, -1.0])
    model.replay._stores["observation"][0, :3] = torch.eye(3)  # states 0, 1 and 2
    set_table(model.target, [[9.0, 9.0], [5.0, 6.0], [7.0, 8.0]])
    loss, q, norm = model._update().tolist()
    # Of state 1 the policy likes action 0, which the target network gives 5; of state 2 action 1, 8.
    errors = np.array([0.5 - (1.0 + 0.5 * 5.0), 2.0 - (-1.0 + 0.5 * 8.0)])  # -3, -1
    assert loss == pytest.approx(((abs(errors[0]) - 0.5) + 0.5 * errors[1] ** 2) / 2)
    assert q == pytest.approx((0.5 + 2.0) / 2)
    # Huber's slope is at most 1: two gradients of -1 / 2, each on a weight of its own, both on the bias of action 1
    assert norm == pytest.approx(np.sqrt(0.5**2 + 0.5**2 + 1.0))


def test_padding_gets_no_loss() -> None:
    """Episodes of one and two steps with two decisions each: the padding of the short one must not count."""
    model = few_episodes(2, [[0.0, 0.5], [0.0, 0.25], [0.0, 0.75]], gamma=0.0)
    replay, state, yes = model.replay, torch.eye(3), torch.ones(2, dtype=torch.bool)
    rows, action = replay.start_episodes(2), torch.tensor([1, 1])
    replay.add(rows, yes, 0, state[[0, 1]], {}, action, torch.tensor([1.5, 0.75]))
    replay.end_episodes(rows[:1], 1, state[[0]], {}, yes[:1])
    replay.add(rows[1:], yes[1:], 1, state[[2]], {}, action[1:], torch.tensor([1.0]))
    replay.end_episodes(rows[1:], 2, state[[0]], {}, yes[1:])
    loss, q, _ = model._update().tolist()
    errors = np.array([0.5 - 1.5, 0.25 - 0.75, 0.75 - 1.0])  # each at most 1: the loss is half its square
    assert loss == pytest.approx((0.5 * errors**2).mean())
    assert q == pytest.approx((0.5 + 0.25 + 0.75) / 3)


def test_logs_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means over two updates, and the speed, with a clock of ours."""
    model = q_learner(copies(Ring), updates_per_collect=2)
    model._setup_learn(1)
    updates = iter([torch.tensor([1.0, 2.0, 3.0]), torch.tensor([3.0, 6.0, 9.0])])
    monkeypatch.setattr(model, "_update", lambda: next(updates))
    clock = iter([10.0, 10.5])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    model._n_updates = 7
    model.train()
    monkeypatch.undo()
    logged = model.logger.name_to_value
    names = ("train/loss", "train/q", "train/grad_norm", "train/n_updates", "time/updates_per_second")
    assert [logged[name] for name in names] == [2, 4, 6, 7, 4]
    assert not model.policy.training


def test_every_second_iteration_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    model = q_learner(copies(Ring), capacity=4, batch_size=4, updates_per_collect=1)
    dumped: list[int] = []
    monkeypatch.setattr(model, "dump_logs", lambda iteration: dumped.append(iteration))
    model.learn(5 * 32, log_interval=2)
    assert dumped == [2, 4] and model._n_updates == 5


def test_a_frozen_network_follows_only_where_it_is_trained() -> None:
    policy = {"memory": "gru", "memory_kwargs": {"hidden_dim": 4}, "freeze_previous_action": True}
    model = q_learner(copies(Ring), policy, target_rate=0.25)
    for one, other in zip(model.policy.parameters(), model.target.parameters(), strict=True):
        assert torch.equal(one, other) and not other.requires_grad
    before = [parameter.clone() for parameter in model.target.parameters()]
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(1.0)
    model._polyak_update(0.25)
    for (name, own), old in zip(model.target.named_parameters(), before, strict=True):
        torch.testing.assert_close(own, old if name.startswith("previous_action") else old + 0.25, msg=name)
    model._polyak_update(1.0)
    for one, other in zip(model.policy.parameters(), model.target.parameters(), strict=True):
        assert torch.equal(one, other)
    assert not any(parameter is model.policy.critic.weight for parameter in model._trained)
    assert len(model._trained) == len(list(model.policy.parameters())) - 3  # the critic and the embedding
