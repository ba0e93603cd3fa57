"""The causal Scene Memory Transformer against its equations."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory import StepInputs, make_memory
from memenvs.agents.memory.scene_memory import relative_poses
from memenvs.agents.memory.smt_causal import CausalMemory, RelativePoseBlock, pose_features, query_frames

T, D, DIM, HEADS, BASE = 13, 5, 8, 2, 50.0


def turned(x: Tensor, step: int) -> Tensor:
    """Pairs (x[i], x[i + width / 2]) turned by step * base^(-2 i / width)."""
    half = len(x) // 2
    out = x.clone()
    for i in range(half):
        angle = step * BASE ** (-2 * i / len(x))
        out[i] = math.cos(angle) * x[i] - math.sin(angle) * x[i + half]
        out[i + half] = math.sin(angle) * x[i] + math.cos(angle) * x[i + half]
    return out


def plain_block(block: RelativePoseBlock, h: Tensor, pose: Tensor, capacity: int) -> Tensor:
    """Keys k + K r and values v + V r, where r is the pose of the key in the query's frame; k and q are turned by their step.

    A head's score falls by b |r - c|^2.
    """
    width = DIM // HEADS
    out = []
    for t in range(len(h)):
        seen = range(max(0, t - capacity + 1), t + 1)
        r = relative_poses(pose[list(seen)], pose[t])
        heard = []
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            q = block.query.weight[part] @ h[t]
            k_place, v_place = block.key_place.weight[part], block.value_place.weight[part]
            scores, values = [], []
            for i, where in zip(seen, r, strict=True):
                away = block.log_sharpness[head].exp() * (where[:2] - block.centre[head]).square().sum()
                content = turned(q, t) @ turned(block.key.weight[part] @ h[i], i)
                scores.append((content + q @ (k_place @ where)) / math.sqrt(width) - away)
                values.append(block.value.weight[part] @ h[i] + v_place @ where)
            heard.append(torch.stack(scores).softmax(0) @ torch.stack(values))
        out.append(block.finish(h[t], torch.cat(heard)))
    return torch.stack(out)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-9), (torch.float32, 1e-5)], ids=str)
@pytest.mark.parametrize("capacity", [1, 4, T])
def test_features_equal_the_equations(capacity: int, dtype: torch.dtype, atol: float) -> None:
    torch.manual_seed(0)
    memory = make_memory("smt-causal", D, dim=DIM, heads=HEADS, capacity=capacity, rope_base=BASE).to(dtype)
    assert isinstance(memory, CausalMemory)
    start = torch.zeros(1, T, dtype=torch.bool)
    start[0, 0] = True
    pose = torch.randn(1, T, 3, dtype=dtype) * torch.tensor([4.0, 4.0, 2.0], dtype=dtype)
    x = StepInputs(torch.randn(1, T, D, dtype=dtype), start, start, pose)
    with torch.no_grad():
        h = memory.input(x.embedding[0])
        for block in memory.blocks:
            assert isinstance(block, RelativePoseBlock)
            h = plain_block(block, h, pose[0], capacity)
        torch.testing.assert_close(memory(x)[0][0], h, atol=atol, rtol=0)


def test_a_frame_sees_a_place_as_the_relative_pose() -> None:
    generator = torch.Generator().manual_seed(0)
    pose, now = 5.0 * torch.randn(2, 6, 3, generator=generator, dtype=torch.float64)
    seen = (query_frames(now) @ pose_features(pose)[..., None])[..., 0]
    torch.testing.assert_close(seen[..., :4], relative_poses(pose, now), atol=1e-12, rtol=0)
    distance = (pose - now)[..., :2].square().sum(-1) / 25.0
    torch.testing.assert_close(seen[..., 4], distance, atol=1e-12, rtol=0)


def test_a_head_hears_what_was_near_its_point() -> None:
    """With nothing else to go by, a sharp head that looks 2 m ahead hears the step that was there, and one that looks to the right that one."""
    block = RelativePoseBlock(DIM, HEADS)
    with torch.no_grad():
        for layer in (block.query, block.key, block.key_place, block.value_place):
            layer.weight.zero_()
        block.value.weight.copy_(torch.eye(DIM))
        block.mix.weight.copy_(torch.eye(DIM))
        block.log_sharpness.fill_(math.log(500.0))
        block.centre.copy_(torch.tensor([[0.4, 0.0], [0.0, -0.4]]))  # 2 m ahead, 2 m to the right
    pose = torch.tensor(
        [[[3.0, 3.0, 0.0], [3.0, 7.0, 0.0], [5.0, 5.0, 0.0], [3.0, 5.0, math.pi / 2]]]
    )  # the last looks along y
    x = torch.eye(4).repeat(1, 2)[None]  # each head hears which step it was
    turn = torch.ones(1, 4, DIM // HEADS // 2), torch.zeros(1, 4, DIM // HEADS // 2)
    heard: list[Tensor] = []
    block.finish = lambda x, each: heard.append(each) or x  # type: ignore[method-assign, func-returns-value]
    block.attend_relative(x, block.project(x, pose_features(pose), turn), query_frames(pose), turn, None)
    first, second = heard[0][0, 3].chunk(2)
    torch.testing.assert_close(first, torch.tensor([0.0, 1.0, 0.0, 0.0]), atol=1e-5, rtol=0)
    torch.testing.assert_close(second, torch.tensor([0.0, 0.0, 1.0, 0.0]), atol=1e-5, rtol=0)


def test_places_are_as_exact_under_autocast() -> None:
    torch.manual_seed(0)
    memory = make_memory("smt-causal", D, dim=DIM, heads=HEADS, capacity=T)
    start = torch.zeros(1, T, dtype=torch.bool)
    pose = torch.randn(1, T, 3) * torch.tensor([20.0, 20.0, 2.0])
    x = StepInputs(torch.randn(1, T, D), start, start, pose)
    expected, _ = memory(x)
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = memory(x)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("shift", [0, 1000])
def test_only_the_age_of_steps_counts(shift: int) -> None:
    """In a trial that goes on for long, features depend on the newest steps of the reach and not on how long it has gone on."""
    torch.manual_seed(0)
    memory = make_memory("smt-causal", D, dim=DIM, heads=HEADS, capacity=3, layers=2).double()
    start = torch.zeros(1, 8, dtype=torch.bool)
    x = StepInputs(torch.randn(1, 8, D).double(), start, start, torch.randn(1, 8, 3).double())
    state = memory.initial_state(1)
    expected, _ = memory(x, state)
    state = memory.initial_state(1)
    _, state = memory(StepInputs(x.embedding[:, :1], start[:, :1], start[:, :1], x.pose[:, :1]), state)  # type: ignore[index]
    assert state is not None
    state["length"] += shift
    for t in range(1, 8):
        features, state = memory.step(x.steps(t, t + 1), state)
    torch.testing.assert_close(features, expected[:, -1], atol=1e-10, rtol=0)
