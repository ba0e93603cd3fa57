"""Memo: the same as one transformer over steps and summary tokens with a mask."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from memenvs.agents.memory import make_memory
from memenvs.agents.memory.attention import rotate, rotation_factors
from memenvs.agents.memory.memo import MemoMemory
from tests.agents.memory.comparison import assert_same, steps

D, L, K, T = 8, 4, 2, 19
SETTINGS = {"layers": 2, "heads": 2, "dim": D, "mlp_dim": 12, "segment_length": L, "summary_tokens": K}


def make(**settings: object) -> MemoMemory:
    torch.manual_seed(0)
    memory = make_memory("memo", D, **SETTINGS, max_episode_steps=T, **settings).double()
    assert isinstance(memory, MemoMemory)
    return memory


def masked_transformer(memory: MemoMemory, embedding: Tensor, episode_first: list[int]) -> Tensor:
    """Features of one trial, from a sequence with K summary tokens after every L steps.

    Args:
        memory: The memory whose weights are used.
        embedding: (T, D).
        episode_first: First steps of the episodes.
    """
    tokens, owner, is_summary, episodes = [], [], [], []
    hidden = memory.input(embedding)
    for t in range(len(embedding)):
        episode = sum(first <= t for first in episode_first)
        tokens.append(hidden[t] + memory.positions[t - episode_first[episode - 1]])
        owner.append(t // L), is_summary.append(False), episodes.append(episode)
        if t % L == L - 1:
            for k in range(K):
                tokens.append(memory.summary[k])
                owner.append(t // L), is_summary.append(True), episodes.append(episode)
    n = len(tokens)
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        for j in range(i + 1):
            is_past = owner[j] == owner[i] - 1 if memory.config.overwrite else owner[j] < owner[i]
            mask[i, j] = owner[j] == owner[i] or (is_summary[j] and is_past)
    width = D // 2
    exponent = torch.arange(0, width, 2, dtype=torch.float64) / width
    rotation = rotation_factors(torch.tensor(episodes)[None, :, None] * 10_000.0**-exponent)
    x = torch.stack(tokens)[None]
    for block in memory.blocks:
        qkv = block.qkv(block.attention_norm(x)).view(1, n, 3, 2, width)
        q, k = rotate(qkv[:, :, :2], *rotation).transpose(1, 3).unbind(2)
        attended = F.scaled_dot_product_attention(q, k, qkv[:, :, 2].transpose(1, 2), attn_mask=mask)
        x = x + block.attention_out(attended.transpose(1, 2).flatten(2))
        gate, up = block.gate_up(block.mlp_norm(x)).chunk(2, -1)
        x = x + block.down(F.gelu(gate, approximate="tanh") * up)
    return memory.output(memory.norm(x[0, [not summary for summary in is_summary]]))


@pytest.mark.parametrize("overwrite", [False, True])
def test_masked_transformer(overwrite):
    """Features and gradients, with two trials whose segments do not begin at the same steps."""
    memory = make(overwrite=overwrite)
    x = steps(T, D, trials=[(0,), (0, 3)], episodes=[(6,), (11,)])
    one, other = x.embedding.requires_grad_()
    expected = torch.stack(
        [
            masked_transformer(memory, one, [0, 6]),
            torch.cat([masked_transformer(memory, other[:3], [0]), masked_transformer(memory, other[3:], [0, 8])]),
        ]
    )
    assert_same(memory(x)[0], expected, [x.embedding, *memory.parameters()])


def test_state_grows_by_summaries():
    """After n whole segments the state has K tokens of each; with `overwrite` of one."""
    x = steps(T, D, trials=[(0,)])
    for overwrite, segments in ((False, T // L), (True, 1)):
        memory = make(overwrite=overwrite)
        assert memory.bounded is overwrite
        _, state = memory(x)
        assert (state["segment"].shape[4], state["summaries"].shape[4]) == (L, K * segments)


def test_an_episode_that_is_too_long_is_refused():
    memory = make()
    with pytest.raises(ValueError, match=r"max_episode_steps'\] must be at least the steps of an episode, 20 so far"):
        memory(steps(T + 1, D, trials=[()]))
