"""The adaptive allocator on bandits with known rewards."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from memenvs.agents.algorithms.allocator_config import AllocatorConfig
from memenvs.agents.encoders import HashedEncoder
from memenvs.agents.memory.allocator import AdaptiveAllocator
from memenvs.agents.papers.sat.config import AllocationConfig
from memenvs.room_ballet.descriptions import load_descriptions

#: Reward of each strategy (columns) in each task: minus the loss of a reader, which is ln 8 for a guess.
REWARDS = torch.tensor(
    [[0.0, -2.1, -1.4, -0.6], [-2.0, 0.0, -0.9, -1.6], [-1.5, -0.7, 0.0, -1.8], [-0.5, -1.7, -1.6, 0.0]]
)


@pytest.fixture(autouse=True)
def _weights() -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def learn(allocator: AdaptiveAllocator, vectors: list[np.ndarray], steps: int, exploration: int) -> None:
    """Batches of 32, 8 of each task, each with a task vector drawn from those of its task."""
    rng = np.random.default_rng(0)
    optimizer = torch.optim.Adam(allocator.parameters(), 2e-3)
    tasks = np.arange(32) % 4
    for step in range(steps):
        drawn = torch.from_numpy(np.stack([vectors[task][rng.integers(len(vectors[task]))] for task in tasks]))
        chosen = allocator.choose(drawn, AllocationConfig(epsilon_steps=exploration).epsilon_at(step), rng)
        rewards = REWARDS[tasks, chosen] + torch.from_numpy(rng.normal(0.0, 0.05, 32)).float()
        optimizer.zero_grad()
        allocator.loss(drawn, chosen, rewards).backward()
        optimizer.step()


def test_published_sizes() -> None:
    assert sum(parameter.numel() for parameter in AdaptiveAllocator(4).parameters()) == 580
    assert AdaptiveAllocator(1024).network[0].weight.shape == (64, 1024)
    assert AdaptiveAllocator(1, strategies=("fifo", "mvfo"))(torch.ones(3, 1)).shape == (3, 2)


@pytest.mark.slow
def test_generalisation_to_held_out_descriptions() -> None:
    encoder, descriptions = HashedEncoder(), load_descriptions()
    for split in range(3):
        allocator = AdaptiveAllocator(encoder.features_dim)
        learn(allocator, [encoder(texts) for texts in descriptions.select(split, "train")], 400, 200)
        held_out = descriptions.select(split, "held_out")
        best = [allocator.best(torch.from_numpy(encoder(texts))).tolist() for texts in held_out]
        right = sum(chosen.count(task) for task, chosen in enumerate(best))
        assert right >= 15, best


def test_exploration_decreases_linearly() -> None:
    """Over batches, over the whole of `learn`, or over some of its steps."""
    for step, expected in ((0, 1.0), (50_000, 0.8), (200_000, 0.2), (10**9, 0.2)):
        assert AllocationConfig().epsilon_at(step) == pytest.approx(expected)
    assert AllocatorConfig().epsilon_at(5, 10) == pytest.approx(0.525)
    assert AllocatorConfig(epsilon_end=0.0, epsilon_steps=10).epsilon_at(5, 1000) == pytest.approx(0.5)


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


def test_wrong_settings_strategies_and_tasks_are_named() -> None:
    with pytest.raises(ValueError, match="hidden_dim must be an integer of at least 1, got 0"):
        AdaptiveAllocator(4, hidden_dim=0)
    with pytest.raises(
        ValueError, match=r"unknown strategy 'lru'; choose from \['fifo', 'lifo', 'lvfo', 'mvfo', 'quota'\]"
    ):
        AdaptiveAllocator(4, strategies=("fifo", "lru"))
    for names in (("fifo",), ("fifo", "fifo")):
        with pytest.raises(ValueError, match="strategies must be two or more different ones, got"):
            AdaptiveAllocator(4, strategies=names)
    with pytest.raises(ValueError, match=r"tasks must be \(B, 4\), got \(2, 1024\)"):
        AdaptiveAllocator(4)(torch.zeros(2, 1024))
