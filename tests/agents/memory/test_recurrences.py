"""Recurrences that learn in parallel: the papers' equations, one step after the other."""

import numpy as np
import pytest
import torch
from torch import Tensor

from memenvs.agents.memory import StepInputs, make_memory
from memenvs.agents.memory.delta_rule import CHUNK, MatrixRecurrence
from memenvs.agents.memory.linear_recurrence import S5, DiagonalRecurrence, MinGRU, hippo_eigenvalues, linear_scan
from memenvs.agents.memory.residual import Recurrence, ResidualMemory
from tests.agents.memory.comparison import assert_same

D, HEADS, WIDTH = 8, 2, 4
B, T = 2, 2 * CHUNK + 7
SETTINGS = {"mingru": {}, "lru": {}, "s5": {}, "gated-deltanet": {"heads": HEADS}, "mlstm": {"heads": HEADS}}


def make(name: str, dtype: torch.dtype = torch.float64) -> ResidualMemory:
    """A memory of one layer with random weights."""
    torch.manual_seed(0)
    memory = make_memory(name, D, layers=1, dim=D, mlp_dim=12, **SETTINGS[name])
    assert isinstance(memory, ResidualMemory)
    return memory.to(dtype)


def steps(seed: int = 1) -> tuple[Tensor, Tensor]:
    """Inputs (B, T, D), and resets, of which the first sequence has none after its first step."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(B, T, D, generator=generator, dtype=torch.float64)
    resets = torch.rand(B, T, generator=generator) < 0.03
    resets[0] = False
    resets[:, 0] = True
    assert resets[1].sum() > 2
    return x, resets


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def plain_mingru(recurrence: MinGRU, x: np.ndarray, resets: np.ndarray) -> np.ndarray:
    """h = (1 - z) h + z c."""
    weight, bias = (value.detach().numpy() for value in recurrence.gate_candidate.parameters())
    h, out = np.zeros(D), []
    for t in range(len(x)):
        z = sigmoid(weight[:D] @ x[t] + bias[:D])
        candidate = weight[D:] @ x[t] + bias[D:]
        h = (1.0 - z) * (0.0 if resets[t] else h) + z * candidate
        out.append(h)
    weight, bias = (value.detach().numpy() for value in recurrence.output.parameters())
    return np.array(out) @ weight.T + bias


def plain_diagonal(recurrence: DiagonalRecurrence, x: np.ndarray, resets: np.ndarray) -> np.ndarray:
    """h = lambda h + s B x, y = 2 Re(C h) + d x."""
    numbers = {name: value.detach().numpy() for name, value in recurrence.named_parameters()}
    to_state = numbers["to_state.weight"][:D] + 1j * numbers["to_state.weight"][D:]
    from_state = numbers["from_state.weight"][:, :D] + 1j * numbers["from_state.weight"][:, D:]
    if isinstance(recurrence, S5):
        mu = -np.exp(numbers["decay"]) + 1j * numbers["frequency"]
        eigenvalues = np.exp(mu * np.exp(numbers["log_dt"]))
        scale = (eigenvalues - 1.0) / mu  # of an input that stays for dt
    else:
        eigenvalues = np.exp(-np.exp(numbers["nu"]) + 1j * np.exp(numbers["theta"]))
        scale = np.sqrt(1.0 - np.abs(eigenvalues) ** 2)
    h, out = np.zeros(D, complex), []
    for t in range(len(x)):
        h = eigenvalues * (0.0 if resets[t] else h) + scale * (to_state @ x[t])
        out.append(2.0 * (from_state @ h).real + numbers["skip"] * x[t])
    return np.array(out)


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


def plain_matrix(recurrence: MatrixRecurrence, x: np.ndarray, resets: np.ndarray, rule: str) -> np.ndarray:
    """One matrix per head, S (key, value), written and read step by step."""
    numbers = {name: value.detach().numpy() for name, value in recurrence.named_parameters()}
    out = np.zeros((len(x), HEADS, WIDTH))
    projected = (x @ numbers["projection.weight"].T).reshape(len(x), 4, HEADS, WIDTH)
    keep, write = np.split(x @ numbers["keep_write.weight"].T + numbers["keep_write.bias"], 2, axis=1)
    for head in range(HEADS):
        matrix, total = np.zeros((WIDTH, WIDTH)), np.zeros(WIDTH)
        for t in range(len(x)):
            q, k, v = projected[t, :3, head]
            if resets[t]:
                matrix, total = np.zeros((WIDTH, WIDTH)), np.zeros(WIDTH)
            if rule == "delta":
                q, k, v = silu(q), silu(k), silu(v)
                q, k = q / np.linalg.norm(q) / np.sqrt(WIDTH), k / np.linalg.norm(k)
                alpha = np.exp(-np.exp(numbers["log_rate"][head]) * np.log1p(np.exp(keep[t, head])))
                matrix = alpha * matrix
                matrix = matrix + sigmoid(write[t, head]) * np.outer(k, v - matrix.T @ k)
                read = matrix.T @ q
            else:
                k = k / np.sqrt(WIDTH)
                f, i = sigmoid(keep[t, head]), np.exp(write[t, head])
                matrix, total = f * matrix + i * np.outer(k, v), f * total + i * k
                read = matrix.T @ q / max(abs(total @ q), 1.0)
            out[t, head] = read
    out = out / np.sqrt((out**2).mean(-1, keepdims=True) + 1e-6) * numbers["norm.weight"]
    return (out * silu(projected[:, 3])).reshape(len(x), D) @ numbers["output.weight"].T


@pytest.mark.parametrize("name", SETTINGS)
def test_equations(name):
    """A layer over several chunks, with resets inside them, is the paper's recurrence step by step."""
    (recurrence,) = make(name).recurrences
    assert isinstance(recurrence, Recurrence)
    x, resets = steps()
    with torch.no_grad():
        got, _ = recurrence(x, resets, recurrence.initial_state(B))
    for row in range(B):
        arrays = x[row].numpy(), resets[row].numpy()
        if isinstance(recurrence, MinGRU):
            expected = plain_mingru(recurrence, *arrays)
        elif isinstance(recurrence, DiagonalRecurrence):
            expected = plain_diagonal(recurrence, *arrays)
        else:
            assert isinstance(recurrence, MatrixRecurrence)
            expected = plain_matrix(recurrence, *arrays, "delta" if name == "gated-deltanet" else "mlstm")
        np.testing.assert_allclose(got[row].numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("length", [1, 2, 16, 17, 40, 300])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_scan(length, dtype):
    """Values and gradients of the scan are those of a loop, also where a is 0 or above 1."""
    generator = torch.Generator().manual_seed(2)
    a, b = (torch.randn(2, length, 3, generator=generator, dtype=dtype) for _ in range(2))
    a[:, ::7] = 0.0
    initial = torch.randn(2, 3, generator=generator, dtype=dtype)
    leaves = [value.requires_grad_() for value in (a, b, initial)]
    h, outs = initial, []
    for t in range(length):
        h = a[:, t] * h + b[:, t]
        outs.append(h)
    got, expected = linear_scan(a, b, initial), torch.stack(outs, 1)
    if dtype.is_complex:
        got, expected = torch.view_as_real(got), torch.view_as_real(expected)
    assert_same(got, expected, leaves, atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("name", SETTINGS)
def test_chunks_and_gradients(name):
    """One pass over several chunks has features, state and gradients of single steps."""
    memory = make(name)
    x, resets = steps()
    leaf = x.requires_grad_()
    inputs = StepInputs(leaf, resets, resets)
    whole, after = memory(inputs)
    state, parts = memory.initial_state(B), []
    for t in range(T):
        part, state = memory(inputs.steps(t, t + 1), state)
        parts.append(part)
    single = torch.cat(parts, 1)
    assert_same(whole, single, [leaf, *memory.parameters()], atol=1e-9, rtol=1e-8)
    for key, value in after.items():
        torch.testing.assert_close(value, state[key], atol=1e-9, rtol=0.0)


def test_large_gates():
    """mLSTM's exponential gate may be far outside of what float32 holds: nothing overflows, and the order is right."""
    memory = make("mlstm", torch.float32)
    (recurrence,) = memory.recurrences
    assert isinstance(recurrence, MatrixRecurrence)
    x, resets = steps()
    with torch.no_grad():
        recurrence.keep_write.bias[HEADS:] = 0.0
        plain = recurrence(x.float(), resets, recurrence.initial_state(B))[0]
        for bias in (-150.0, 150.0):
            recurrence.keep_write.bias[HEADS:] = bias
            got, state = recurrence(x.float(), resets, recurrence.initial_state(B))
            assert got.isfinite().all() and all(value.isfinite().all() for value in state.values())
            # n q is above 1 at every step with a large gate, and what is read is then a weighted mean of values
            assert not torch.allclose(got, plain)
        wide = recurrence.double()
        wide.keep_write.bias[HEADS:] = 150.0
        expected = plain_matrix(wide, x[1].numpy(), resets[1].numpy(), "mlstm")
    np.testing.assert_allclose(got[1].numpy(), expected, atol=2e-3)


def test_hippo_eigenvalues():
    """Eigenvalues are those of HiPPO-LegS plus its matrix of rank 1, half of the pairs."""
    n = np.arange(12)
    root = np.sqrt(2.0 * n + 1.0)
    hippo = -np.tril(root[:, None] * root[None], -1) - np.diag(n + 1.0)  # Gu et al., 2020, theorem 2
    rank_one = np.sqrt(n + 0.5)
    expected = np.linalg.eigvals(hippo + np.outer(rank_one, rank_one))
    got = hippo_eigenvalues(6)
    assert np.allclose(got.real, -0.5)
    np.testing.assert_allclose(np.sort(got.imag), np.sort(expected.imag[expected.imag > 0]), rtol=1e-8)
