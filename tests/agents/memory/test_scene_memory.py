"""Scene memories against a plain loop over decisions."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from memenvs.agents.memory import Memory, StepInputs, make_memory, scene_memory
from memenvs.agents.memory.pooling import PoolingMemory
from memenvs.agents.memory.scene_memory import SceneMemory
from memenvs.agents.memory.smt import AttentionBlock, SMTMemory
from memenvs.agents.memory.smt_factorized import FactorizedMemory, farthest_points
from tests.agents.memory.comparison import act, assert_same, steps

B, T, D = 2, 17, 6
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "smt": [
        {},
        {"capacity": 5, "tau": (1.0, 10.0, 100.0)},
        {"time": "sinusoidal"},
        {"time": "none", "rectified": True},
        {"encoder": False, "capacity": 9},
        {"encoder": False, "rectified": True},
    ],
    "smt-factorized": [
        {"n_centres": 3},
        {"n_centres": 3, "capacity": 7, "rectified": True},
        {"n_centres": T},
        {"n_centres": 3, "centres": "window"},
        {"n_centres": 3, "centres": "static"},
    ],
    "sm-pooling": [{"capacity": 6}],
}


def make(name: str, dtype: torch.dtype = torch.float64, **kwargs: Any) -> Memory:
    torch.manual_seed(0)
    if name in ("smt", "smt-factorized", "smt-causal"):
        kwargs = {"heads": 2, **kwargs}
    return make_memory(name, D, **{"dim": 8, **kwargs}).to(dtype)


def inputs(dtype: torch.dtype = torch.float64) -> StepInputs:
    """Trials of one episode; the second row begins another one at step 11."""
    x = steps(T, D, trials=[(0,), (0, 11)])
    pose = 3.0 * torch.randn(B, T, 3, generator=torch.Generator().manual_seed(2))
    return replace(x, embedding=x.embedding.to(dtype), pose=pose.to(dtype))


def plain_block(block: AttentionBlock, x: Tensor, y: Tensor) -> Tensor:
    """AttentionBlock(X, Y) for X, (T, D), and Y, (L, D), with torch's own attention."""
    dim = x.shape[-1]
    attended, _ = nn.functional.multi_head_attention_forward(
        x[:, None], y[:, None], y[:, None], dim, block.heads, None, None, None, None, False, 0.0,
        block.mix.weight, None,
        use_separate_proj_weight=True, q_proj_weight=block.query.weight, k_proj_weight=block.key.weight,
        v_proj_weight=block.value.weight,
    )  # fmt: skip
    first = block.attention_norm
    h = nn.functional.layer_norm(attended[:, 0] + x, (dim,), first.weight, first.bias)
    return nn.functional.layer_norm(block.fc(h).relu() + h, (dim,), block.norm.weight, block.norm.bias)


def plain_centres(psi: Tensor, config: Any, memory: FactorizedMemory) -> Tensor:
    if config.centres == "static":
        return memory.static_centres
    if len(psi) <= config.n_centres:
        return psi
    if config.centres == "window":
        return psi[-config.n_centres :]
    chosen = [len(psi) - 1]
    while len(chosen) < config.n_centres:
        nearest = [min(math.dist(point, psi[c].tolist()) for c in chosen) for point in psi.tolist()]
        chosen.append(max(range(len(psi)), key=nearest.__getitem__))
    return psi[chosen]


def plain_decision(memory: SceneMemory, x: StepInputs, row: int, t: int) -> Tensor:
    """Features of one step, each element embedded anew."""
    config = memory.config
    assert x.pose is not None
    begin = max(s for s in range(t + 1) if x.trial_start[row, s] or s == 0)
    views = []
    steps = range(max(begin, t - config.capacity + 1), t + 1)
    for i in steps:
        (x1, y1, h1), (x0, y0, h0) = x.pose[row, i].tolist(), x.pose[row, t].tolist()
        view = [
            (math.cos(h0) * (x1 - x0) + math.sin(h0) * (y1 - y0)) / 5,
            (-math.sin(h0) * (x1 - x0) + math.cos(h0) * (y1 - y0)) / 5,
            math.cos(h1 - h0),
            math.sin(h1 - h0),
        ]
        if config.time == "exponential":
            view += [math.exp(-(t - i) / tau) for tau in config.scales]
        elif config.time == "sinusoidal":
            angles = [(t - i) / 10_000 ** (k / 8) for k in range(8)]
            view += [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
        views.append(view)
    poses = memory.pose(torch.tensor(views, dtype=x.pose.dtype))
    psi = memory.fusion(torch.cat([x.embedding[row, list(steps)], poses], -1))
    if config.rectified:
        psi = psi.relu()
    if isinstance(memory, PoolingMemory):
        return psi.max(0).values
    if isinstance(memory, SMTMemory):
        encoded = psi if memory.encoder is None else plain_block(memory.encoder, psi, psi)
    else:
        assert isinstance(memory, FactorizedMemory)
        centres = plain_block(memory.gather, plain_centres(psi, config, memory), psi)
        encoded = plain_block(memory.spread, psi, centres)
    return plain_block(memory.decoder, psi[-1:], encoded)[0]


@pytest.mark.parametrize("name", VARIANTS)
def test_decisions_equal_a_plain_loop(name: str) -> None:
    """Acting keeps static parts and adds poses; the loop embeds, projects and attends from the start."""
    for kwargs in VARIANTS[name]:
        for dtype, atol in ((torch.float64, 1e-9), (torch.float32, 1e-5)):
            check_decisions(make(name, dtype, **kwargs), inputs(dtype), atol)


@torch.no_grad()
def check_decisions(memory: Memory, x: StepInputs, atol: float) -> None:
    assert isinstance(memory, SceneMemory)
    expected = torch.stack([torch.stack([plain_decision(memory, x, row, t) for t in range(T)]) for row in range(B)])
    torch.testing.assert_close(act(memory, x)[0], expected, atol=atol, rtol=0)
    torch.testing.assert_close(memory(x)[0], expected, atol=atol, rtol=0)
    at = torch.tensor([[3, 16, 9], [11, 0, 10]])
    chosen = torch.stack([expected[row, at[row]] for row in range(B)])
    torch.testing.assert_close(memory.features_at(x, at), chosen, atol=atol, rtol=0)


def test_gradients_equal_those_of_a_plain_loop() -> None:
    x, at = inputs(), torch.tensor([[3, 16], [11, 10]])
    for name, k in (("smt", 1), ("smt", 4), ("smt-factorized", 0)):
        memory = make(name, **VARIANTS[name][k])
        assert isinstance(memory, SceneMemory)
        plain = [torch.stack([plain_decision(memory, x, row, int(t)) for t in at[row]]) for row in range(B)]
        assert_same(memory.features_at(x, at), torch.stack(plain), memory.parameters())


def test_poses_can_be_left_out() -> None:
    """Only ages distinguish elements then, as with poses whose weights are zero."""
    x = inputs()
    blind = StepInputs(x.embedding, x.episode_start, x.trial_start)
    for name in VARIANTS:
        memory, with_poses = make(name, poses=False, tau=(1.0, 9.0)), make(name, tau=(1.0, 9.0))
        no_pose = torch.zeros(16, 4, dtype=torch.float64)
        weights = memory.state_dict() | {"pose.weight": torch.cat([no_pose, memory.pose.weight], 1)}
        with_poses.load_state_dict(weights)
        torch.testing.assert_close(memory(blind)[0], with_poses(x)[0], atol=1e-10, rtol=0)
        features, _ = memory.step(blind.steps(0, 1), memory.initial_state(B))
        torch.testing.assert_close(features, memory(blind)[0][:, 0], atol=1e-10, rtol=0)


@pytest.mark.parametrize("poses", [True, False])
def test_pooling_begins_with_the_present_in_half_of_its_features(poses: bool) -> None:
    """The maximum over 40 equal steps would be the present one's in 1 of 40; that holds in the second half only."""
    torch.manual_seed(0)
    memory = make_memory("sm-pooling", 64, dim=64, poses=poses)
    pose = torch.randn(8, 40, 3) if poses else None
    x = steps(40, 64, trials=[()] * 8)
    x = replace(x, embedding=x.embedding.float(), pose=pose)
    other = replace(x, embedding=x.embedding.clone())
    other.embedding[:, -1] = torch.randn(8, 64)
    with torch.no_grad():
        changed = (memory(x)[0][:, -1] != memory(other)[0][:, -1]).float().mean(0)
    assert changed[:32].mean() > 0.9
    assert changed[32:].mean() < 0.15


def test_farthest_points_equal_a_loop_over_exact_distances() -> None:
    """Also where points are absent, and far from the origin, where a large common part must not blur differences."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(7, 60, 8, generator=generator) + torch.tensor([0.0, 200.0]).repeat(4)[:7, None, None]
    absent = torch.rand(7, 60, generator=generator) < torch.linspace(0, 0.9, 7)[:, None]
    absent[:, -1] = False
    copies = points.clone(), absent.clone()
    for mask in (None, absent):
        got = farthest_points(points, mask, 30)
        for row, own in enumerate(points.double()):
            existing = torch.ones(60, dtype=torch.bool) if mask is None else ~mask[row]
            chosen = [59]
            while len(chosen) < min(30, int(existing.sum())):
                nearest = (own[:, None] - own[chosen]).norm(dim=-1).amin(1).masked_fill(~existing, -1.0)
                chosen.append(int(nearest.argmax()))
            assert got[row, : len(chosen)].tolist() == chosen
    assert torch.equal(points, copies[0]) and torch.equal(absent, copies[1])
    same = torch.zeros(1, 5, 2)  # no point is chosen twice
    assert sorted(farthest_points(same, None, 5)[0].tolist()) == [0, 1, 2, 3, 4]


def test_packed_decisions_equal_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x, at = inputs(), torch.tensor([[3, 16, 9, 3, 1], [11, 0, 10, 16, 5]])
    for name, k in (("smt", 0), ("smt", 4), ("smt-factorized", 0), ("sm-pooling", 0)):
        memory = make(name, **VARIANTS[name][k])
        expected = memory.features_at(x, at)
        for together, kept in ((1, 1 << 18), (12, 1 << 18), (12, 0)):
            monkeypatch.setattr(scene_memory, "ELEMENTS_AT_ONCE", {"cpu": together})
            monkeypatch.setattr(scene_memory, "CHECKPOINTED_ELEMENTS", {"cpu": kept})
            assert_same(memory.features_at(x, at), expected, memory.parameters())
        monkeypatch.undo()
