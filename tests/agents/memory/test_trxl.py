"""Transformer-XL against its definition."""

import math

import pytest
import torch
from torch import Tensor

from memenvs.agents.memory import StepInputs, make_memory
from memenvs.agents.memory.trxl import Gate, RelativePositionBlock, TransformerXLConfig, TransformerXLMemory
from tests.agents.memory.comparison import act, randomize, steps

B, T, D = 2, 17, 8
TRIALS = (0, 10)


def make(scale: float = 0.4, **kwargs: object) -> TransformerXLMemory:
    settings = {"layers": 2, "heads": 2, "dim": D, "mlp_dim": 12, "memory_length": 4, **kwargs}
    memory = TransformerXLMemory(D, TransformerXLConfig(**settings)).double().eval()
    randomize(memory, scale)
    return memory


def inputs(trials: tuple[int, ...] = TRIALS) -> StepInputs:
    return steps(T, D, [trials] * B)


def by_definition(memory: TransformerXLMemory, x: StepInputs) -> Tensor:
    """Features (B, T, D), one query, head and key at a time, with scores as in the paper."""
    config = memory.config
    heads, width, reach = config.heads, config.head_dim, config.memory_length

    def norm(z: Tensor, weight: Tensor) -> Tensor:
        return z / (z.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight

    def encode(distance: int) -> Tensor:
        angles = [distance / 10_000 ** (2 * i / D) for i in range(D // 2)]
        return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles], dtype=torch.float64)

    out = []
    for row in range(B):
        begin = 0  # of the running trial
        firsts = []
        for t in range(T):
            begin = t if x.trial_start[row, t] else begin
            firsts.append(max(begin, t - reach))
        h = x.embedding[row]
        for block in memory.blocks:
            wq, wk, wv = block.qkv.weight.view(3, heads, width, D)
            normed = norm(h, block.attention_norm.weight)
            attended = torch.zeros(T, heads, width, dtype=torch.float64)
            for t in range(T):
                for head in range(heads):
                    q = wq[head] @ normed[t]
                    scores, values = [], []
                    for j in range(firsts[t], t + 1):
                        r = block.distance.weight.view(heads, width, D)[head] @ encode(t - j)
                        by_content = (q + block.content_bias[head, 0]) @ (wk[head] @ normed[j])
                        scores.append((by_content + (q + block.distance_bias[head, 0]) @ r) / math.sqrt(width))
                        values.append(wv[head] @ normed[j])
                    attended[t, head] = torch.stack(scores).softmax(0) @ torch.stack(values)
            h = h + attended.flatten(1) @ block.attention_out.weight.T
            gate, up = (norm(h, block.mlp_norm.weight) @ block.gate_up.weight.T).chunk(2, dim=-1)
            curve = 0.5 * gate * (1 + torch.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))
            h = h + (curve * up) @ block.down.weight.T
        out.append(norm(h, memory.norm.weight) @ memory.output.weight.T + memory.output.bias)
    return torch.stack(out)


@pytest.mark.parametrize("memory_length", [1, 4, T])
@torch.no_grad()
def test_features_follow_the_definition(memory_length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, x = make(memory_length=memory_length), inputs()
    expected = by_definition(memory, x)
    torch.testing.assert_close(memory(x)[0], expected, atol=1e-10, rtol=0)
    torch.testing.assert_close(act(memory, x)[0], expected, atol=1e-10, rtol=0)
    monkeypatch.setattr("memenvs.agents.memory.trxl.QUERY_BLOCK", 5)  # some rows of the scores at a time
    torch.testing.assert_close(memory(x)[0], expected, atol=1e-10, rtol=0)
    torch.testing.assert_close(memory(x, last=7)[0], expected[:, -7:], atol=1e-10, rtol=0)


def test_no_gradient_through_the_memory() -> None:
    memory, x = make(memory_length=6), inputs((0,))
    x.embedding.requires_grad_()
    whole = memory(x)[0]
    _, state = memory(x.steps(0, 9))
    assert not state["hidden"].requires_grad
    features, _ = memory(x.steps(9, T), state)
    torch.testing.assert_close(features, whole[:, 9:], atol=1e-12, rtol=0)
    (grad,) = torch.autograd.grad(features.sum(), x.embedding, retain_graph=True)
    touched = grad.abs().sum(-1) > 0
    assert touched[:, 9:].all()
    assert not touched[:, :9].any()
    (key_grad,) = torch.autograd.grad(features[:, 0].sum(), memory.blocks[0].qkv.weight)
    assert key_grad[D : 2 * D].abs().sum() > 0  # keys are made of the memory with the present weights


def test_dropout() -> None:
    memory, x = make(dropout=0.5), inputs()
    memory.train().generator.manual_seed(4)
    kept = memory.generator.get_state()
    first = memory(x)[0]
    assert not torch.equal(first, memory(x)[0])
    memory.generator.set_state(kept)
    torch.testing.assert_close(memory(x)[0], first, atol=0, rtol=0)
    dropped = torch.cat([memory(x)[0].flatten() for _ in range(20)]) == 0  # the last dropout is on the features
    assert 0.45 < float(dropped.double().mean()) < 0.55
    still = make(0.0, dropout=0.5).train()  # all that is left is the bias of the output, which keeps its mean
    with torch.no_grad():
        still.output.bias.fill_(1.0)
    assert set(still(x)[0].unique().tolist()) == {0.0, 2.0}


def test_parameter_count() -> None:
    """As ReLIC's 4 blocks, with a matrix for distances and two biases in each."""
    memory = TransformerXLMemory(800, TransformerXLConfig())
    counts = {name: sum(p.numel() for p in part.parameters()) for name, part in memory.named_children()}
    assert counts == {"input": 205_056, "blocks": 4_196_352 + 4 * (256 * 256 + 2 * 256), "norm": 256, "output": 65_792}


def test_initial_weights() -> None:
    torch.manual_seed(0)
    block = RelativePositionBlock(TransformerXLConfig())
    for name, weight in block.named_parameters():
        if "norm" not in name:
            assert weight.std().item() == pytest.approx(0.02, rel=0.1), name
            assert abs(weight.mean().item()) < 0.003, name


def test_gate():
    """GTrXL's gate is its equations, and keeps most of its input at the start."""
    torch.manual_seed(0)
    gate = Gate(4, bias=2.0).double()
    x, y = (torch.randn(2, 3, 4, dtype=torch.float64) for _ in range(2))
    (w_r, w_z, w_g), (u_r, u_z) = gate.of_y.weight.split(4), gate.of_x.weight.split(4)
    u_g = gate.of_reset_x.weight
    r = torch.sigmoid(y @ w_r.T + x @ u_r.T)
    z = torch.sigmoid(y @ w_z.T + x @ u_z.T - 2.0)
    h = torch.tanh(y @ w_g.T + (r * x) @ u_g.T)
    torch.testing.assert_close(gate(x, y), (1.0 - z) * x + z * h)
    with torch.no_grad():
        gate.bias.fill_(50.0)
    torch.testing.assert_close(gate(x, y), x)


def test_gates_join_every_residual():
    """With gates that let nothing through, features of GTrXL are those of the input alone, at any past."""
    memory = make_memory("gtrxl", 8, layers=2, heads=2, dim=8, mlp_dim=12, memory_length=4, dropout=0.0).double()
    for block in memory.blocks:
        for gate in block.gates:
            torch.nn.init.constant_(gate.bias, 100.0)
    x = steps(6, 8, trials=[(0,)] * 2)
    features, _ = memory(x)
    torch.testing.assert_close(features, memory.output(memory.norm(x.embedding)))
