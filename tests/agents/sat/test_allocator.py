"""The adaptive allocator on bandits with known rewards, and the steps that a memory keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from memenvs.agents.encoders import make_text_encoder
from memenvs.agents.memory import StepInputs, make_memory
from memenvs.agents.sat.allocator import AdaptiveAllocator, AllocatorConfig, EpisodeAllocator, retained_steps
from memenvs.retention import STRATEGIES, retained
from memenvs.room_ballet.descriptions import load_descriptions
from tests.reference_retention import ReferenceMemory

#: Reward of each strategy (columns) in each task: minus the loss of a reader, which is ln 8 for a guess.
REWARDS = torch.tensor(
    [[0.0, -2.1, -1.4, -0.6], [-2.0, 0.0, -0.9, -1.6], [-1.5, -0.7, 0.0, -1.8], [-0.5, -1.7, -1.6, 0.0]]
)
NO_STRATEGY_YET = {"strategy": torch.full((2,), -1)}


@pytest.fixture(autouse=True)
def _weights() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def learn(allocator: AdaptiveAllocator, vectors: list[np.ndarray], steps: int, rate: float = 2e-3) -> None:
    """Batches of 32, 8 of each task, each with a task vector drawn from those of its task."""
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(allocator.parameters(), rate)
    tasks = np.arange(32) % 4
    for step in range(steps):
        drawn = torch.from_numpy(np.stack([vectors[task][rng.integers(len(vectors[task]))] for task in tasks]))
        chosen = allocator.choose(drawn, allocator.config.epsilon_at(step), rng)
        rewards = REWARDS[tasks, chosen] + torch.from_numpy(rng.normal(0.0, 0.05, 32)).float()
        optimizer.zero_grad()
        allocator.loss(drawn, chosen, rewards).backward()
        optimizer.step()


def test_published_sizes() -> None:
    assert sum(parameter.numel() for parameter in AdaptiveAllocator(4).parameters()) == 580
    assert AdaptiveAllocator(1024).network[0].weight.shape == (64, 1024)
    assert AdaptiveAllocator(1, strategies=("fifo", "mvfo"))(torch.ones(3, 1)).shape == (3, 2)


def test_rewards_of_strategies_are_learned() -> None:
    allocator = AdaptiveAllocator(4, AllocatorConfig(epsilon_steps=500))
    learn(allocator, [each[None] for each in np.eye(4, dtype=np.float32)], 1000)
    tasks = torch.eye(4)
    torch.testing.assert_close(allocator(tasks), REWARDS, atol=0.1, rtol=0)
    assert allocator.best(tasks).tolist() == [0, 1, 2, 3]
    expected = allocator(tasks).exp() / allocator(tasks).exp().sum(1, keepdim=True)
    torch.testing.assert_close(allocator.distribution(tasks), expected)


def test_generalisation_to_held_out_descriptions() -> None:
    encoder, descriptions = make_text_encoder(), load_descriptions()
    for split in range(3):
        allocator = AdaptiveAllocator(encoder.features_dim, AllocatorConfig(epsilon_steps=200))
        learn(allocator, [encoder(texts) for texts in descriptions.select(split, "train")], 400)
        held_out = descriptions.select(split, "held_out")
        best = [allocator.best(torch.from_numpy(encoder(texts))).tolist() for texts in held_out]
        right = sum(each.count(task) for task, each in enumerate(best))
        assert right >= 15, best


def test_exploration_decreases_linearly() -> None:
    config = AllocatorConfig()
    for step, expected in ((0, 1.0), (50_000, 0.8), (100_000, 0.6), (199_999, 0.200004), (200_000, 0.2), (10**9, 0.2)):
        assert config.epsilon_at(step) == pytest.approx(expected, abs=1e-12)
    assert AllocatorConfig(epsilon_end=0.05, epsilon_steps=10).epsilon_at(5) == pytest.approx(0.525)


def test_shares_of_strategies_when_exploring() -> None:
    allocator, count = AdaptiveAllocator(4), 40_000
    tasks = torch.eye(4)[torch.zeros(count, dtype=torch.int64)]
    best = int(allocator.best(tasks[:1]))
    for epsilon in (0.0, 0.2, 1.0):
        chosen = allocator.choose(tasks, epsilon, np.random.default_rng(1))
        shares = torch.bincount(chosen, minlength=4) / count
        expected = torch.full((4,), epsilon / 4)
        expected[best] += 1.0 - epsilon
        torch.testing.assert_close(shares, expected, atol=0.012, rtol=0)  # 5 standard errors and more
    one, other = (allocator.choose(tasks, 0.5, np.random.default_rng(2)) for _ in range(2))
    assert torch.equal(one, other)


def test_loss_and_its_gradients_by_hand() -> None:
    allocator = AdaptiveAllocator(1, strategies=("mvfo", "fifo"))
    rewards = torch.tensor([1.0, -2.0], requires_grad=True)
    q = allocator(torch.ones(2, 1)).detach()
    loss = allocator.loss(
        torch.ones(2, 1), torch.tensor([0, 3]), rewards
    )  # fifo is its second strategy, mvfo its first
    assert loss.item() == pytest.approx(((1.0 - q[0, 1]) ** 2 + (-2.0 - q[1, 0]) ** 2).item() / 2, rel=1e-6)
    loss.backward()
    assert rewards.grad is None and allocator.network[0].weight.grad is not None
    with pytest.raises(ValueError, match=r"chosen must be numbers of \('mvfo', 'fifo'\), \[3, 0\], got \[1\]"):
        allocator.loss(torch.ones(1, 1), torch.tensor([1]), torch.zeros(1))


def make_episodes(seed: int = 3, **config: Any) -> EpisodeAllocator:
    allocator = AdaptiveAllocator(1, AllocatorConfig(**config), ("fifo", "mvfo"))
    return EpisodeAllocator(allocator, 2, np.random.default_rng(seed), 1e-2)


def test_a_strategy_lasts_an_episode() -> None:
    episodes, task, none = make_episodes(), torch.ones(2, 1), torch.tensor([False, False])
    lengths, seen = (3, 5), []
    for t in range(60):
        starts = torch.tensor([t % length == 0 for length in lengths])
        before = episodes.strategies
        state = episodes.begin(starts, task, {"other": torch.zeros(2), **NO_STRATEGY_YET})
        assert state.keys() == {"other", "strategy"}
        assert torch.equal(state["strategy"][~starts], before[~starts])
        seen.append(state["strategy"])
        episodes.end(torch.zeros(2), none)
    assert set(torch.stack(seen).flatten().tolist()) == {0, 3}
    assert episodes.steps == 120


def test_it_learns_from_returns() -> None:
    episodes, task = make_episodes(epsilon_start=0.0, epsilon_end=0.0), torch.ones(2, 1)
    starts = torch.tensor([True, True])
    episodes.begin(starts, task, NO_STRATEGY_YET)
    q = episodes.allocator(task).detach()
    column = episodes.allocator.strategies.index(STRATEGIES[int(episodes.strategies[0])])
    assert episodes.end(torch.tensor([1.0, 2.0]), torch.tensor([False, False])) == []
    episodes.begin(~starts, task, NO_STRATEGY_YET)
    (loss,) = episodes.end(torch.tensor([0.5, 2.0]), torch.tensor([True, False]))
    assert loss == pytest.approx((1.5 - float(q[0, column])) ** 2, rel=1e-5)  # 1 + 0.5, undiscounted
    after = episodes.allocator(task).detach()
    assert after[0, column] > q[0, column]
    episodes.begin(torch.tensor([True, False]), task, NO_STRATEGY_YET)
    q = after
    losses = episodes.end(torch.tensor([3.0, 0.0]), torch.tensor([True, True]))
    assert len(losses) == 2
    assert losses[0] == pytest.approx(
        (3.0 - float(q[0, column])) ** 2, rel=1e-5
    )  # the first one's return started from 0 again
    assert episodes.optimizer.state_dict()["state"][0]["step"] == 3  # one step of Adam for each episode


def test_the_better_strategy_is_found_by_return() -> None:
    # a strategy that is rarely tried is learned late, at a step that depends on rounding; so exploration stays high
    episodes, task = make_episodes(epsilon_end=0.5, epsilon_steps=400), torch.ones(2, 1)
    ends = torch.tensor([True, True])
    for _ in range(400):
        state = episodes.begin(ends, task, NO_STRATEGY_YET)
        episodes.end((state["strategy"] == 3).float(), ends)  # mvfo has reward 1, fifo 0
    torch.testing.assert_close(episodes.allocator(task[:1]), torch.tensor([[0.0, 1.0]]), atol=0.15, rtol=0)
    assert episodes.allocator.best(task).tolist() == [3, 3]


def test_without_exploring_the_best_is_taken() -> None:
    episodes, task, ends = make_episodes(epsilon_end=1.0), torch.ones(2, 1), torch.tensor([True, True])
    best = episodes.allocator.best(task)
    drawn = [episodes.begin(ends, task, NO_STRATEGY_YET)["strategy"] for _ in range(20)]
    assert any(not torch.equal(each, best) for each in drawn)
    for _ in range(20):
        assert torch.equal(episodes.begin(ends, task, NO_STRATEGY_YET, explore=False)["strategy"], best)


def test_a_memory_without_strategies_is_refused() -> None:
    episodes, start = make_episodes(), torch.tensor([True, True])
    for name in ("sat-fifo", "t-fifo"):
        memory = make_memory(name, 2, capacity=5, **({"n_places": 2} if name == "sat-fifo" else {}))
        assert episodes.begin(start, torch.ones(2, 1), memory.initial_state(2))["strategy"].shape == (2,)
    with pytest.raises(ValueError, match="state must be of a memory with a strategy, as those of SAT have, got one of"):
        episodes.begin(start, torch.ones(2, 1), make_memory("gru", 2).initial_state(2))


def test_two_rooms_from_cue_to_answer() -> None:
    """A cue in the first room, a stay in the second that fills the memory, and the answer back in the first.

    The agent knows the memory's features after either cue. With MVFO they differ and every answer is right; with FIFO
    they are equal and half of the answers are right.
    """
    envs, rooms, rounds = 8, [0, 0, 1, 1, 1, 1, 1, 0], 40
    memory = make_memory("sat-fifo", 2, n_places=2, dim=8, layers=1, heads=1, mlp_dim=8, capacity=5)
    allocator = AdaptiveAllocator(
        1, AllocatorConfig(epsilon_end=0.05, epsilon_steps=rounds * envs * len(rooms) // 5), ("fifo", "mvfo")
    )
    episodes, rng = EpisodeAllocator(allocator, envs, np.random.default_rng(0), 2e-2), np.random.default_rng(1)

    def inputs(cues: Tensor) -> StepInputs:
        embedding = torch.zeros(len(cues), len(rooms), 2)
        embedding[torch.arange(len(cues)), 0, cues] = 1.0
        start = (torch.arange(len(rooms)) == 0).expand(len(cues), -1)
        return StepInputs(embedding, start, start, place=torch.tensor(rooms).expand(len(cues), -1))

    def recomputed(cues: Tensor, strategies: Tensor) -> Tensor:
        """Features of the last step, from stored observations and strategies, with gradients."""
        return memory(inputs(cues), memory.initial_state(len(cues)) | {"strategy": strategies}, last=1)[0][:, 0]

    known = {number: recomputed(torch.tensor([0, 1]), torch.tensor([number] * 2)).detach() for number in (0, 3)}
    for strategy, features in known.items():
        kept = retained_steps(np.array([rooms]), np.array([strategy]), 5)[0, -1]
        assert (0 in kept) == (strategy == 3) == bool((features[0] - features[1]).abs().max() > 1e-3)
    chosen = []
    for _ in range(rounds):
        cues = torch.from_numpy(rng.integers(2, size=envs))
        x, state = inputs(cues), memory.initial_state(envs)
        for t in range(len(rooms)):
            starts, ends = torch.full((envs,), t == 0), torch.full((envs,), t == len(rooms) - 1)
            state = episodes.begin(starts, torch.ones(envs, 1), state)
            features, state = memory.step(x.steps(t, t + 1), state)
            rewards = torch.zeros(envs)
            if t == len(rooms) - 1:
                if len(chosen) < 3:
                    torch.testing.assert_close(
                        recomputed(cues, episodes.strategies).detach(), features, atol=1e-5, rtol=0
                    )
                expected = torch.stack([known[number] for number in episodes.strategies.tolist()])
                distance = (expected - features[:, None]).abs().amax(2)  # (N, cues)
                guess = torch.from_numpy(rng.integers(2, size=envs))
                answers = torch.where((distance[:, 0] - distance[:, 1]).abs() < 1e-4, guess, distance.argmin(1))
                rewards = (answers == cues).float()
            losses = episodes.end(rewards, ends)
        assert len(losses) == envs
        chosen.append(episodes.strategies.clone())
    recomputed(cues, episodes.strategies).sum().backward()
    assert all(
        bool(weight.grad.abs().sum() > 0) for name, weight in memory.named_parameters() if name.endswith("value.weight")
    )
    assert allocator.best(torch.ones(1, 1)).tolist() == [3]
    torch.testing.assert_close(allocator(torch.ones(1, 1)), torch.tensor([[0.5, 1.0]]), atol=0.25, rtol=0)
    assert (torch.cat(chosen[-10:]) == 3).float().mean() > 0.85 > (torch.cat(chosen[:4]) == 3).float().mean()


def test_it_resumes_from_its_tensors() -> None:
    def run(episodes: EpisodeAllocator, begin: int, end: int) -> list[list[int]]:
        for t in range(begin, end):
            state = episodes.begin(torch.tensor([t % 2 == 0, t % 3 == 0]), torch.ones(2, 1), NO_STRATEGY_YET)
            seen.append(state["strategy"].tolist())
            rewards = torch.tensor([float(t % 5), 1.0])
            episodes.end(rewards, torch.tensor([t % 2 == 1, t % 3 == 2]))
        return seen

    seen: list[list[int]] = []
    whole = make_episodes(epsilon_steps=100)
    weights = {name: value.clone() for name, value in whole.allocator.state_dict().items()}
    expected = run(whole, 0, 40)
    seen = []
    first = make_episodes(epsilon_steps=100)
    first.allocator.load_state_dict(weights)
    run(first, 0, 17)
    saved = {name: value.clone() for name, value in first.tensors().items()}
    rng = json.dumps(first.rng.bit_generator.state)
    second = make_episodes(seed=99, epsilon_steps=100)
    second.load_tensors(saved)
    second.rng.bit_generator.state = json.loads(rng)
    assert run(second, 17, 40) == expected
    for name, value in whole.tensors().items():
        assert torch.equal(second.tensors()[name], value)
    wider = EpisodeAllocator(AdaptiveAllocator(8, strategies=("fifo", "mvfo")), 2, np.random.default_rng(0))
    with pytest.raises(
        ValueError, match=r"allocator: .* 'tasks' must be torch.float32 \(2, 8\), got torch.float32 \(2, 1\)"
    ):
        wider.load_tensors(saved)


@settings(max_examples=40, deadline=None)
@given(
    places=st.lists(st.integers(0, 3), min_size=1, max_size=14),
    strategy=st.sampled_from(STRATEGIES),
    capacity=st.integers(1, 6),
)
def test_retained_steps_equal_a_memory_written_step_by_step(places: list[int], strategy: str, capacity: int) -> None:
    """The steps kept at a step depend only on places up to it."""
    kept = retained_steps(np.array([places]), strategy, capacity, n_places=4)[0]
    memory = ReferenceMemory(strategy, capacity, 4)
    for t, place in enumerate(places):
        now = kept[t][kept[t] >= 0]
        whole = retained(np.array([places[: t + 1]]), strategy, capacity, n_places=4)[0]
        np.testing.assert_array_equal(now, np.flatnonzero(whole))
        assert now.tolist() == memory.write(place)


def test_two_rooms_by_hand() -> None:
    """The cue of the first room outlives a long stay in the second under MVFO and not under FIFO."""
    places = np.array([[0, 0] + [1] * 6 + [0]] * 2)
    kept = retained_steps(places, np.array([0, 3]), 5)
    assert kept[0, -1].tolist() == [4, 5, 6, 7, 8]
    assert kept[1, -1].tolist() == [0, 1, 6, 7, 8]
    assert kept[1, 2].tolist() == [0, 1, 2, -1, -1]


def test_wrong_settings_strategies_and_tasks_are_named() -> None:
    for config, message in (
        ({"hidden_dim": 0}, "hidden_dim must be an integer of at least 1, got 0"),
        ({"epsilon_steps": 0}, "epsilon_steps must be an integer of at least 1, got 0"),
        ({"epsilon_end": -0.1}, "epsilon_end must be 0 ... 1, got -0.1"),
        ({"loss_weight": 0.0}, "loss_weight must be above 0, got 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            AllocatorConfig(**config)
    with pytest.raises(
        ValueError, match=r"unknown strategy 'lru'; choose from \['fifo', 'lifo', 'lvfo', 'mvfo', 'quota'\]"
    ):
        AdaptiveAllocator(4, strategies=("fifo", "lru"))
    for names in (("fifo",), ("fifo", "fifo")):
        with pytest.raises(ValueError, match="strategies must be two or more different ones, got"):
            AdaptiveAllocator(4, strategies=names)
    with pytest.raises(ValueError, match=r"tasks must be \(B, 4\), got \(2, 1024\)"):
        AdaptiveAllocator(4)(torch.zeros(2, 1024))
    with pytest.raises(ValueError, match="capacity must be an integer of at least 1"):
        retained_steps(np.zeros((1, 3), int), "fifo", 0)
