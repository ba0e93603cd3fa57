"""The causal Scene Memory Transformer against its equations."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory import make_memory
from memenvs.agents.memory.scene_memory import embed_relative_poses
from memenvs.agents.memory.smt_causal import CausalMemory, RelativePoseBlock
from tests.agents.memory.comparison import steps

T, D, DIM, HEADS, BASE = 13, 5, 8, 2, 50.0


def rotated(x: Tensor, step: int) -> Tensor:
    """Pairs (x[i], x[i + width / 2]) rotated by step * base^(-2 i / width)."""
    half = len(x) // 2
    out = x.clone()
    for i in range(half):
        angle = step * BASE ** (-2 * i / len(x))
        out[i] = math.cos(angle) * x[i] - math.sin(angle) * x[i + half]
        out[i + half] = math.sin(angle) * x[i] + math.cos(angle) * x[i + half]
    return out


def plain_block(block: RelativePoseBlock, h: Tensor, pose: Tensor, capacity: int) -> Tensor:
    """Keys k + K r and values v + V r, with r the pose of the key in the query's frame.

    k and q are rotated by their step, and a head's score falls by b |r - c|^2.
    """
    width = DIM // HEADS
    out = []
    for t in range(len(h)):
        visible = range(max(0, t - capacity + 1), t + 1)
        r = embed_relative_poses(pose[list(visible)], pose[t])
        attended = []
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            q = block.query.weight[part] @ h[t]
            k_place, v_place = block.key_place.weight[part], block.value_place.weight[part]
            scores, values = [], []
            for i, own in zip(visible, r, strict=True):
                away = block.log_sharpness[head].exp() * (own[:2] - block.centre[head]).square().sum()
                content = rotated(q, t) @ rotated(block.key.weight[part] @ h[i], i)
                scores.append((content + q @ (k_place @ own)) / math.sqrt(width) - away)
                values.append(block.value.weight[part] @ h[i] + v_place @ own)
            attended.append(torch.stack(scores).softmax(0) @ torch.stack(values))
        out.append(block.finish(h[t], torch.cat(attended)))
    return torch.stack(out)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-9), (torch.float32, 1e-5)], ids=str)
@pytest.mark.parametrize("capacity", [1, 4, T])
def test_features_equal_the_equations(capacity: int, dtype: torch.dtype, atol: float) -> None:
    torch.manual_seed(0)
    memory = make_memory("smt-causal", D, dim=DIM, heads=HEADS, capacity=capacity, rope_base=BASE).to(dtype)
    assert isinstance(memory, CausalMemory)
    pose = torch.randn(1, T, 3, dtype=dtype) * torch.tensor([4.0, 4.0, 2.0], dtype=dtype)
    x = steps(T, D, trials=[(0,)])
    x = replace(x, embedding=x.embedding.to(dtype), pose=pose)
    with torch.no_grad():
        h = memory.input(x.embedding[0])
        for block in memory.blocks:
            assert isinstance(block, RelativePoseBlock)
            h = plain_block(block, h, pose[0], capacity)
        torch.testing.assert_close(memory(x)[0][0], h, atol=atol, rtol=0)


def test_initial_points_are_around_the_robot() -> None:
    """Heads start with standard deviations of 0.5 m to 2 m, and points at 1.5 times as much; a block turns by 1 rad."""
    memory = make_memory("smt-causal", 5, dim=16, heads=4, layers=2)
    sigma = torch.tensor([0.5, 0.5 * 4 ** (1 / 3), 0.5 * 4 ** (2 / 3), 2.0])
    wide = make_memory("smt-causal", 5, dim=16, heads=4, layers=2, sigmas=[5.0, 20.0])
    for block, ten_times in zip(memory.blocks, wide.blocks, strict=True):
        torch.testing.assert_close(10.0 * block.centre, ten_times.centre)
        torch.testing.assert_close((block.log_sharpness - ten_times.log_sharpness).exp(), torch.full((4,), 100.0))
    for wrong in ([1.0], [0.0, 2.0], [1.0, math.inf]):
        with pytest.raises(ValueError, match=r"sigmas must be two numbers above 0, got "):
            make_memory("smt-causal", 5, sigmas=wrong)
    for number, block in enumerate(memory.blocks):
        deviation = (2.0 * block.log_sharpness.exp()) ** -0.5 * 5.0  # e^(-b |r - c|^2) with r in units of 5 m
        torch.testing.assert_close(deviation, sigma)
        distance = block.centre.norm(dim=1) * 5.0
        torch.testing.assert_close(distance, 1.5 * sigma)
        turns = [k * math.pi / 2 + number for k in range(4)]
        expected = torch.tensor([[math.cos(angle), math.sin(angle)] for angle in turns])
        torch.testing.assert_close(block.centre * 5.0 / distance[:, None], expected)
