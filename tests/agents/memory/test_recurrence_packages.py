"""Recurrences against other packages, on the same weights.

A package that is not there is skipped by name.

pip install --no-deps mlstm_kernels LRU-pytorch
"""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from memenvs.agents.memory.delta_rule import CHUNK, MLSTM, Decay, GatedDelta, GatedDeltaConfig, MLSTMConfig
from memenvs.agents.memory.linear_recurrence import LRU, LRUConfig

pytestmark = pytest.mark.nightly
B, HEADS, N, WIDTH = 2, 3, 3, 8  # N chunks
T = N * CHUNK


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def run(recurrence: GatedDelta | MLSTM, parts: list[Tensor], keep: Tensor, write: Tensor) -> tuple[Tensor, Tensor]:
    """Run chunks: values read, (B, HEADS, T, WIDTH), and the last matrix.

    Parts are (B, T, HEADS, WIDTH), gates (B, HEADS, T).
    """
    q, k, v = (part.transpose(1, 2).unflatten(2, (N, CHUNK)) for part in parts)
    decay = Decay.of(keep.unflatten(2, (N, CHUNK)), torch.zeros(B, N, CHUNK, dtype=torch.bool))
    read, state = recurrence.run(q, k, v, write.unflatten(2, (N, CHUNK)), decay, recurrence.initial_state(B))
    return read.flatten(2, 3), state["matrix"]


def test_gated_delta_rule() -> None:
    """The gated delta rule of Qwen3-Next in transformers."""
    package = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")
    recurrence = GatedDelta(GatedDeltaConfig(dim=HEADS * WIDTH, heads=HEADS))
    parts = [draw(B, T, HEADS, WIDTH, seed=seed) for seed in range(3)]
    with torch.no_grad():
        log_keep, write = recurrence.gates(draw(B, T, HEADS, seed=3), draw(B, T, HEADS, seed=4))
        expected, matrix = package.torch_recurrent_gated_delta_rule(
            F.silu(parts[0]),
            F.silu(parts[1]),
            F.silu(parts[2]),
            log_keep,
            write,
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )
        got, last = run(recurrence, list(recurrence.vectors(*parts)), log_keep.transpose(1, 2), write.transpose(1, 2))
    torch.testing.assert_close(got.transpose(1, 2), expected, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(last, matrix, atol=1e-4, rtol=1e-3)


def test_mlstm() -> None:
    """The parallel mLSTM of its authors."""
    package = pytest.importorskip("mlstm_kernels.torch.parallel.native_stablef.fw")
    recurrence = MLSTM(MLSTMConfig(dim=HEADS * WIDTH, heads=HEADS))
    parts = [draw(B, T, HEADS, WIDTH, seed=seed) for seed in range(3)]
    keep, write = 3.0 + draw(B, HEADS, T, seed=3), 4.0 * draw(B, HEADS, T, seed=4)
    with torch.no_grad():
        q, k, v = (part.transpose(1, 2) for part in parts)
        expected = package.mlstm_parallel_fw(q, k, v, write, keep, eps=0.0)[0]
        got, _ = run(recurrence, list(recurrence.vectors(*parts)), F.logsigmoid(keep), write)
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-3)


def test_lru() -> None:
    """The LRU of the package LRU-pytorch, whose output lacks the factor 2."""
    package = pytest.importorskip("LRU_pytorch")
    other, ours = package.LRU(WIDTH, WIDTH, WIDTH, rmin=0.5, rmax=0.99), LRU(LRUConfig(dim=WIDTH))
    x = draw(B, 40, WIDTH, seed=0)
    with torch.no_grad():
        ours.nu.copy_(other.nu_log)
        ours.theta.copy_(other.theta_log)
        ours.to_state.weight.copy_(torch.cat([other.B.real, other.B.imag]))
        ours.from_state.weight.copy_(torch.cat([other.C.real, other.C.imag], 1) / 2.0)
        other.D.copy_(torch.diag(ours.skip))
        other.gamma_log.copy_((1.0 - torch.exp(-2.0 * other.nu_log.exp())).sqrt().log())
        expected = other(x)
        got, _ = ours(x, torch.zeros(B, 40, dtype=torch.bool), ours.initial_state(B))
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-3)
