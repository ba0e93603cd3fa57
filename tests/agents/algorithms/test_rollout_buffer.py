"""The rollout buffer: shuffled episodes, advantages, stores."""

import itertools

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from memenvs.agents.algorithms.rollout_buffer import TrialRolloutBuffer, generalized_advantages

N, T = 3, 20
BOX, MOVES = spaces.Box(-1.0, 1.0, (2,), np.float32), spaces.Discrete(5)
#: First steps of the episodes and of the trials of each environment.
EPISODES = [[0, 3, 4, 9, 15], [0, 6, 12, 19], [0, 5, 8, 11, 17]]
TRIALS = [[0], [0], [0, 8]]


def filled(episodes: list[list[int]] = EPISODES, trials: list[list[int]] = TRIALS, seed: int = 0) -> TrialRolloutBuffer:
    """A full buffer; the first entry of an observation is 100 * environment + time."""
    buffer = TrialRolloutBuffer(N, T, BOX, MOVES, torch.device("cpu"))
    g = torch.Generator().manual_seed(seed)
    for t in range(T):
        starts = [torch.tensor([t in begins[i] for i in range(N)]) for begins in (episodes, trials)]
        observations = torch.stack([torch.arange(N) * 100.0 + t, torch.randn(N, generator=g)], 1)
        previous = torch.where(starts[0], 0, torch.randint(1, 6, (N,), generator=g))
        actions = torch.randint(0, 5, (N,), generator=g)
        rewards, values, log_probs = torch.randn(3, N, generator=g)
        buffer.add(observations, observations, previous, *starts, actions, rewards, values, log_probs)
    return buffer


def records(buffer: TrialRolloutBuffer, end: int = T) -> Tensor:
    """Everything that belongs to a step, (N, end, fields)."""
    rows = torch.arange(N)
    s = buffer.sequences(rows, 0, end)
    scalars = [buffer.ordered(x, rows, 0, end) for x in (buffer.rewards, buffer.values, buffer.log_probs)]
    parts = [s.previous_action, s.episode_start.float(), s.actions, *scalars]
    return torch.cat([s.observations, torch.stack(parts, -1)], -1)


def times(buffer: TrialRolloutBuffer, end: int = T) -> list[list[int]]:
    """Time of the step at each position, read from its observation."""
    steps = records(buffer, end)[..., 0] - torch.arange(N)[:, None] * 100
    return steps.long().tolist()


def slow_advantages(
    rewards: list[float], values: list[float], starts: list[bool], last_value: float, gamma: float, lam: float
) -> list[float]:
    """Sums of discounted one-step errors to the end of the episode; `starts` has one entry more."""
    steps = len(rewards)
    out = []
    for t in range(steps):
        total, weight = 0.0, 1.0
        for k in range(t, steps):
            ends = starts[k + 1]
            following = 0.0 if ends else (values[k + 1] if k + 1 < steps else last_value)
            total += weight * (rewards[k] + gamma * following - values[k])
            if ends:
                break
            weight *= gamma * lam
        out.append(total)
    return out


def test_shuffle_moves_whole_episodes_of_the_running_trial() -> None:
    buffer = filled()
    before, start_before = records(buffer), buffer.trial_start.clone()
    buffer.shuffle_episodes(T, np.random.default_rng(3))
    after, order = records(buffer), times(buffer)
    assert order != [list(range(T))] * N
    for i in range(N):
        assert sorted(map(tuple, after[i].tolist())) == sorted(map(tuple, before[i].tolist()))
        first, running = TRIALS[i][-1], EPISODES[i][-1]
        assert order[i][:first] == list(range(first))  # earlier trials stay
        assert order[i][running:] == list(range(running, T))  # so does the running episode
        done = [t for t in EPISODES[i] if t >= first]
        blocks = [list(range(a, b)) for a, b in itertools.pairwise(done)]
        rest = order[i][first:running]
        while rest:  # whole blocks, each in its own order
            block = next(b for b in blocks if b[0] == rest[0])
            assert rest[: len(block)] == block
            blocks.remove(block)
            rest = rest[len(block) :]
        assert not blocks
    assert torch.equal(buffer.trial_start, start_before)
    assert after[:, 0, 3].tolist() == [1.0] * N  # whatever comes first starts an episode


def test_every_order_of_episodes_comes_up_equally_often() -> None:
    counts: dict[tuple[int, ...], int] = {}
    rng = np.random.default_rng(0)
    buffer = filled([[0, 5, 8, 11]] * N, [[0]] * N)
    for _ in range(600):
        buffer.reset()
        buffer.shuffle_episodes(T, rng)
        key = tuple(t for t in times(buffer)[0] if t in (0, 5, 8))
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 6
    assert min(counts.values()) > 65  # 100 each expected, standard deviation 9


def test_shuffling_again_and_going_on() -> None:
    buffer = filled([[0, 2, 4, 6, 12, 14, 18]] * N, [[0]] * N)
    before = records(buffer)
    rng = np.random.default_rng(1)
    for end in (10, 16, T):  # what comes after `end` has not happened yet
        before_shuffle = times(buffer)
        buffer.shuffle_episodes(end, rng)
        assert [row[end:] for row in times(buffer)] == [row[end:] for row in before_shuffle]
    assert torch.equal(records(buffer).sort(1).values, before.sort(1).values)


def test_an_episode_that_begins_with_the_next_step_is_not_known_yet() -> None:
    buffer = filled([[0, 5, 10, 15]] * N, [[0]] * N)
    buffer.shuffle_episodes(15, np.random.default_rng(2))
    assert [row[10:15] for row in times(buffer)] == [
        list(range(10, 15))
    ] * N  # it ended at the boundary and counts as running


def test_shuffle_needs_a_trial_from_the_start() -> None:
    buffer = filled(trials=[[0], [8], [0]])
    with pytest.raises(RuntimeError, match="begin with the start of a trial"):
        buffer.shuffle_episodes(T, np.random.default_rng(0))


def test_advantages_equal_a_slow_reference() -> None:
    buffer = filled()
    last, last_start = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([False, True, False])
    for begin, gamma, lam in ((0, 0.99, 0.95), (13, 0.99, 0.95), (0, 1.0, 1.0), (0, 0.9, 0.0), (0, 0.0, 0.5)):
        advantages, returns = buffer.advantages(begin, T, last, last_start, gamma, lam)
        for i in range(N):
            starts = [*buffer.episode_start[i].tolist(), bool(last_start[i])]
            expected = slow_advantages(
                buffer.rewards[i].tolist(), buffer.values[i].tolist(), starts, float(last[i]), gamma, lam
            )
            np.testing.assert_allclose(advantages[i], expected[begin:], atol=1e-5)
        torch.testing.assert_close(returns, advantages + buffer.values[:, begin:])
        assert advantages.dtype == returns.dtype == torch.float32  # B3: not in half precision


def test_advantages_go_along_with_shuffled_episodes() -> None:
    buffer = filled()
    last, never = torch.tensor([0.5, -1.0, 2.0]), torch.zeros(N, dtype=torch.bool)
    before, _ = buffer.advantages(0, T, last, never, 0.99, 0.95)
    buffer.shuffle_episodes(T, np.random.default_rng(3))
    after, _ = buffer.advantages(0, T, last, never, 0.99, 0.95)
    torch.testing.assert_close(after, before.gather(1, buffer.order), atol=1e-6, rtol=0)


def test_long_sequences_stay_exact() -> None:
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(2, 1, 5000)).astype(np.float32)
    starts = np.zeros((1, 5000), bool)
    got = generalized_advantages(rewards, values, starts, np.ones(1, np.float32), 1.0, 1.0)
    expected = rewards[0, ::-1].astype(float).cumsum()[::-1] + 1.0 - values[0]
    np.testing.assert_allclose(got[0], expected, rtol=1e-4, atol=1e-3)


def test_stores_follow_the_spaces() -> None:
    space = spaces.Dict({"image": spaces.Box(0, 255, (3, 4, 4), np.uint8), "number": spaces.Discrete(7)})
    buffer = TrialRolloutBuffer(2, 3, space, spaces.Box(-1.0, 1.0, (2,), np.float32), torch.device("cpu"))
    assert buffer.observations["image"].shape == (2, 3, 3, 4, 4)
    assert buffer.observations["image"].dtype == torch.uint8
    assert buffer.observations["number"].dtype == torch.int64
    assert buffer.actions.shape == (2, 3, 2)
    assert {x.dtype for x in (buffer.rewards, buffer.values, buffer.log_probs)} == {torch.float32}  # B3
    frozen = TrialRolloutBuffer(2, 3, space, MOVES, torch.device("cpu"), embedding_dim=5)
    assert frozen.observations is None
    assert frozen.embeddings.dtype == torch.bfloat16
