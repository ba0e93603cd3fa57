"""ReLIC's memory against its definition."""

import math
from dataclasses import replace
from typing import get_args

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory import StepInputs
from memenvs.agents.memory.relic import RelicConfig, RelicMemory, Sink
from tests.agents.memory.comparison import act, assert_same, randomize, steps
from tests.agents.memory.test_long_context import kept_bytes

B, T, D = 2, 19, 8
SINKS = get_args(Sink)
EPISODES = (0, 4, 5, 13)


def make(dtype: torch.dtype = torch.float64, scale: float = 0.4, **kwargs: object) -> RelicMemory:
    settings = {"layers": 2, "heads": 2, "dim": D, "mlp_dim": 12, "max_episode_steps": T}
    settings |= {"cache_dtype": str(dtype).removeprefix("torch."), **kwargs}
    memory = RelicMemory(D, RelicConfig(**settings)).to(dtype).eval()
    randomize(memory, scale)
    return memory


def inputs(episodes: tuple[int, ...] = EPISODES) -> StepInputs:
    return steps(T, D, trials=[(0,)] * B, episodes=[episodes] * B)


def by_definition(memory: RelicMemory, x: StepInputs) -> tuple[Tensor, Tensor]:
    """Features (B, T, D), and keys and values (B, layers, 2, heads, T, width), of one trial."""
    config = memory.config
    width, heads = config.head_dim, config.heads
    caches, features = [], []
    for row in range(len(x.embedding)):
        index, since, run = [], [], 0
        for t in range(x.embedding.shape[1]):
            run = 0 if x.episode_start[row, t] else run + 1
            index.append(int(x.episode_start[row, : t + 1].sum()))
            since.append(run)
        h = torch.stack([x.embedding[row, t] + memory.positions[1 + since[t]] for t in range(len(since))])
        if config.sink == "token":
            h = torch.cat([(memory.sink_token + memory.positions[0])[None], h])
            index = [0, *index]
        cache = []
        for block in memory.blocks:

            def norm(z: Tensor, weight: Tensor) -> Tensor:
                return z / (z.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight

            q, k, v = (
                (norm(h, block.attention_norm.weight) @ block.qkv.weight.T).view(len(h), 3, heads, width).unbind(1)
            )
            if config.inter_episode:
                pairs = torch.arange(width // 2, dtype=h.dtype)
                rotation = torch.polar(
                    torch.ones(1, dtype=h.dtype),
                    torch.tensor(index, dtype=h.dtype)[:, None] * 10_000 ** (-2 * pairs / width),
                )
                for z in (q, k):
                    rotated = torch.complex(z[..., : width // 2], z[..., width // 2 :]) * rotation[:, None]
                    z.data = torch.cat([rotated.real, rotated.imag], dim=-1).data
            attended = torch.zeros_like(q)
            for i in range(len(h)):
                for head in range(heads):
                    visible = [j for j in range(i + 1) if config.inter_episode or index[j] == index[i] or index[j] == 0]
                    weight = (k[visible, head] @ q[i, head] / math.sqrt(width)).exp()
                    total, value = weight.sum(), weight @ v[visible, head]
                    if config.sink not in ("none", "token"):
                        key = block.sink_key[head] if block.sink_key is not None else torch.zeros_like(q[i, head])
                        extra = (key @ q[i, head] / math.sqrt(width)).exp()
                        total = total + extra  # zero key: the 1 of softmax-one
                        value = value + (extra * block.sink_value[head] if block.sink_value is not None else 0)
                    attended[i, head] = value / total
            h = h + attended.flatten(1) @ block.attention_out.weight.T
            gate, up = (norm(h, block.mlp_norm.weight) @ block.gate_up.weight.T).chunk(2, dim=-1)
            curve = 0.5 * gate * (1 + torch.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))
            h = h + (curve * up) @ block.down.weight.T
            cache.append(torch.stack([k, v]).transpose(1, 2))
        out = norm(h, memory.norm.weight) @ memory.output.weight.T + memory.output.bias
        features.append(out[-x.embedding.shape[1] :])
        caches.append(torch.stack(cache))
    return torch.stack(features), torch.stack(caches)


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("inter_episode", [True, False])
@torch.no_grad()
def test_features_and_cache_follow_the_definition(sink: str, inter_episode: bool) -> None:
    memory, x = make(sink=sink, inter_episode=inter_episode), inputs()
    features, cache = by_definition(memory, x)
    torch.testing.assert_close(memory(x, None)[0], features, atol=1e-10, rtol=0)
    acted, state = act(memory, x)
    torch.testing.assert_close(acted, features, atol=1e-10, rtol=0)
    slots = T + (sink == "token")
    torch.testing.assert_close(
        state["cache"][..., memory.sinks + T - slots : memory.sinks + T, :], cache, atol=1e-10, rtol=0
    )
    assert state["length"].tolist() == [T] * B
    assert state["episode_index"].tolist() == [len(EPISODES)] * B
    assert state["episode_step"].tolist() == [T - EPISODES[-1]] * B


@torch.no_grad()
def test_a_trial_starts_an_episode_too() -> None:
    memory, x = make(), inputs()
    x.trial_start[:, 5] = True
    alone = StepInputs(x.embedding, x.episode_start & ~x.trial_start, x.trial_start)
    torch.testing.assert_close(memory(alone)[0], memory(x)[0])


def test_too_long_an_episode_is_refused() -> None:
    memory = make(max_episode_steps=8)
    assert memory(inputs((0, 8, 16)), None)[0].isfinite().all()
    with pytest.raises(ValueError, match=r"memory_kwargs\['max_episode_steps'\] must be at least .* 9 so far, got 8"):
        memory(inputs((0, 9, 17)), None)


@pytest.mark.parametrize("last", [None, 3])
@pytest.mark.parametrize("inter_episode", [True, False])
def test_long_passes_keep_less_and_give_the_same_gradients(
    last: int | None, inter_episode: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = make(sink="kv", depth_dropout=0.3, mlp_dim=64, inter_episode=inter_episode).train()
    x, features, kept = inputs(), [], []
    for long_steps in (T, T - 1):
        monkeypatch.setattr("memenvs.agents.memory.relic.LONG_STEPS", long_steps)
        memory.generator.manual_seed(0)
        kept.append(kept_bytes(lambda: features.append(memory(x, None, last)[0])))
    assert_same(features[1], features[0], memory.parameters(), atol=1e-12)
    assert kept[1] < 0.6 * kept[0]


def test_depth_dropout() -> None:
    memory, x = make(depth_dropout=0.5).train(), inputs()
    memory.generator.manual_seed(4)
    kept = memory.generator.get_state()
    first = memory(x, None)[0]
    assert not torch.equal(first, memory(x, None)[0])
    memory.generator.set_state(kept)
    torch.testing.assert_close(memory(x, None)[0], first, atol=0, rtol=0)
    skipping = make(depth_dropout=1 - 1e-9).train()
    bare = x.embedding + skipping.positions[1 + torch.tensor([0, 1, 2, 3, 0, *range(8), *range(6)])]
    torch.testing.assert_close(skipping(x, None)[0], skipping.output(skipping.norm(bare)), atol=1e-12, rtol=0)


@torch.no_grad()
def test_a_narrow_cache_is_close() -> None:
    memory, x = make(torch.float32, 0.2, cache_dtype="bfloat16"), inputs()
    x = replace(x, embedding=x.embedding.float())
    acted, state = act(memory, x, memory.initial_state(B, max_steps=T))
    assert state["cache"].dtype == torch.bfloat16
    torch.testing.assert_close(acted, memory(x, None)[0], atol=0.05, rtol=0)
