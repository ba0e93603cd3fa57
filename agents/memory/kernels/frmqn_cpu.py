"""A whole sequence of FRMQN on a CPU as one autograd function with compiled reads.

Step by step in plain PyTorch (`FRMQNMemory._run_steps`), most of the time goes into the bookkeeping of many small
tensors. Here the gradients of weights are one product for all steps. `benchmarks/kernels.py` measures the gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Saved(NamedTuple):
    """Tensors of the forward pass that the backward pass needs, float32 unless stated.

    Attributes:
        psi: (B, T, D).
        keys: (B, M, D).
        values: (B, M, D).
        first: int64, (B, T); as in `FRMQNSequence.forward`.
        keep: (T, B, 1); 0 where the recurrent network is reset.
        recurrent_weight: (4 D, 2 D); of [h; o].
        gates: (T, B, 4 D); after their activations.
        recurrent_inputs: (T + 1, B, 2 D); [h; o] before the first step and after each.
        cells: (T + 1, B, D).
        attention: (T, B, M).
        weight_ih: (4 D, 2 D).
    """

    psi: Tensor
    keys: Tensor
    values: Tensor
    first: Tensor
    keep: Tensor
    recurrent_weight: Tensor
    gates: Tensor
    recurrent_inputs: Tensor
    cells: Tensor
    attention: Tensor
    weight_ih: Tensor


class FRMQNSequence(torch.autograd.Function):
    """T steps of all sequences; the numbers and gradients of `FRMQNMemory._run_steps`.

    The recurrent input of a step is [h_{t-1}; o_{t-1}], hidden state and read vector of the step before.
    """

    @staticmethod
    def forward(
        ctx: Any,
        psi: Tensor,
        keys: Tensor,
        values: Tensor,
        recurrent_input: Tensor,
        cell: Tensor,
        first: Tensor,
        resets: Tensor,
        detached: frozenset[int],
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return hidden states and read vectors of all steps, and the cell state after the last one.

        Args:
            ctx: Context of autograd.
            psi: float32, (B, T, D); projected embeddings, see `FRMQNMemory`.
            keys: float32, (B, M, D); of earlier steps, then of the T steps.
            values: float32, (B, M, D).
            recurrent_input: float32, (B, 2 D); before the first step.
            cell: float32, (B, D); before the first step.
            first: int64, (B, T); first slot that a step reads; it reads up to the slot before its own.
            resets: bool, (B, T); True where the recurrent network is reset.
            detached: Steps before which gradients through the recurrent network stop.
            *weights: (4 D, 2 D), (4 D, D), (4 D,), (4 D,); as in `torch.nn.LSTMCell`.

        Returns:
            float32, (B, T, 2 D) and (B, D).
        """
        weight_ih, weight_hh, bias_ih, bias_hh = weights
        batch, steps, dim = psi.shape
        slots = keys.shape[1]
        recurrent_weight = torch.cat([weight_hh, weight_ih[:, dim:]], 1)  # (4 D, 2 D), of [h; o]
        gates = psi.transpose(0, 1).flatten(0, 1) @ weight_ih[:, :dim].T  # all steps in one product
        gates = gates.add_(bias_ih + bias_hh).view(steps, batch, -1)  # (T, B, 4 D)
        keep = (~resets).T.to(psi.dtype)[..., None]  # (T, B, 1)
        has_reset = resets.any(0).tolist()
        recurrent_inputs = _allocate_steps(recurrent_input, steps)  # (T + 1, B, 2 D)
        cells = _allocate_steps(cell, steps)  # (T + 1, B, D)
        attention = psi.new_empty(steps, batch, slots)
        bank = [x.detach().contiguous().numpy() for x in (keys, values)]
        first_slots = first.numpy()
        read: Callable[..., None] = _read
        for t in range(steps):
            before, cell_before = recurrent_inputs[t], cells[t]
            if has_reset[t]:
                before, cell_before = before * keep[t], cell_before * keep[t]
            gates[t].addmm_(before, recurrent_weight.T)
            _lstm(gates[t], cell_before, cells[t + 1], recurrent_inputs[t + 1, :, :dim])
            own_slot = slots - steps + t
            read(first_slots[:, t], own_slot, *bank, recurrent_inputs[t + 1].numpy(), attention[t].numpy())
        ctx.save_for_backward(
            *_Saved(
                psi, keys, values, first, keep, recurrent_weight, gates, recurrent_inputs, cells, attention, weight_ih
            )
        )
        ctx.has_reset = has_reset
        ctx.detached = detached
        return recurrent_inputs[1:].transpose(0, 1).contiguous(), cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor, grad_cell: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of psi, keys, values, the initial state and the weights."""
        saved = _Saved(*ctx.saved_tensors)
        steps, dim = saved.psi.shape[1:]
        slots = saved.keys.shape[1]
        grad_inputs = torch.cat([torch.zeros_like(saved.recurrent_inputs[:1]), grad_output.transpose(0, 1)])
        grad_gates = torch.empty_like(saved.gates)
        grad_cell = grad_cell.contiguous().clone()
        grad_keys = torch.zeros_like(saved.keys, memory_format=torch.contiguous_format)
        grad_values = torch.zeros_like(saved.values, memory_format=torch.contiguous_format)
        bank = [x.contiguous().numpy() for x in (saved.keys, saved.values)]
        grad_bank = [x.numpy() for x in (grad_keys, grad_values)]
        inputs_before = saved.recurrent_inputs[:-1] * saved.keep  # (T, B, 2 D)
        cells_before = saved.cells[:-1] * saved.keep  # (T, B, D)
        tanh_cell = saved.cells[1:].tanh().numpy()
        first_slots = saved.first.numpy()
        read_backward: Callable[..., None] = _read_backward
        for t in range(steps - 1, -1, -1):
            grad_input = grad_inputs[t + 1].numpy()
            own_slot = slots - steps + t
            attended = saved.recurrent_inputs[t + 1].numpy(), saved.attention[t].numpy()
            read_backward(first_slots[:, t], own_slot, *bank, *attended, grad_input, *grad_bank)
            _lstm_backward(
                saved.gates[t].numpy(), cells_before[t].numpy(), tanh_cell[t], grad_input, grad_cell.numpy(),
                grad_gates[t].numpy(),
            )  # fmt: skip
            if t in ctx.detached:
                grad_cell.zero_()
            elif ctx.has_reset[t]:
                grad_inputs[t] += (grad_gates[t] @ saved.recurrent_weight) * saved.keep[t]
                grad_cell *= saved.keep[t]
            else:
                grad_inputs[t].addmm_(grad_gates[t], saved.recurrent_weight)
        flat = grad_gates.flatten(0, 1)  # (T B, 4 D)
        grad_psi = (flat @ saved.weight_ih[:, :dim]).view(steps, -1, dim).transpose(0, 1)
        grad_recurrent = flat.T @ inputs_before.flatten(0, 1)  # (4 D, 2 D), of [h; o]
        grad_weight_ih = torch.cat([flat.T @ saved.psi.transpose(0, 1).flatten(0, 1), grad_recurrent[:, dim:]], 1)
        grad_bias = flat.sum(0)
        grad_weights = grad_weight_ih, grad_recurrent[:, :dim], grad_bias, grad_bias
        return grad_psi, grad_keys, grad_values, grad_inputs[0], grad_cell, None, None, None, *grad_weights


def _allocate_steps(initial: Tensor, steps: int) -> Tensor:
    """A tensor for the value before the first step and after each, float32, (T + 1, ...)."""
    history = initial.new_empty(steps + 1, *initial.shape)
    history[0] = initial
    return history


def _lstm(gates: Tensor, cell: Tensor, new_cell: Tensor, hidden: Tensor) -> None:
    """One LSTM step after its matrix products: c' = f c + i g, h' = o tanh(c').

    Args:
        gates: float32, (B, 4 D), of input, forget, cell and output; activated in place.
        cell: float32, (B, D); c.
        new_cell: float32, (B, D); c' is written here.
        hidden: float32, (B, D); h' is written here.
    """
    width = cell.shape[1]
    gates[:, : 2 * width].sigmoid_()
    gates[:, 2 * width : 3 * width].tanh_()
    gates[:, 3 * width :].sigmoid_()
    input_gate, forget_gate, candidate, output_gate = gates.split(width, 1)
    torch.mul(forget_gate, cell, out=new_cell).addcmul_(input_gate, candidate)
    torch.mul(new_cell.tanh(), output_gate, out=hidden)


@njit(nogil=True, cache=True, fastmath=True)
def _lstm_backward(
    gates: np.ndarray,
    cell: np.ndarray,
    tanh_cell: np.ndarray,
    grad_hidden: np.ndarray,
    grad_cell: np.ndarray,
    grad_gates: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Backward pass of `_lstm`.

    Args:
        gates: float32, (B, 4 D); after their activations.
        cell: float32, (B, D); c.
        tanh_cell: float32, (B, D); tanh(c').
        grad_hidden: float32, (B, D or more); of h'.
        grad_cell: float32, (B, D); of c'; becomes that of c.
        grad_gates: float32, (B, 4 D); of the gates before their activations; is written.
    """
    width, one = cell.shape[1], np.float32(1.0)
    for b in range(len(cell)):
        g, out = gates[b], grad_gates[b]
        for j in range(width):
            i, f, candidate, o = g[j], g[width + j], g[2 * width + j], g[3 * width + j]
            tanh = tanh_cell[b, j]
            grad = grad_cell[b, j] + grad_hidden[b, j] * o * (one - tanh * tanh)
            out[j] = grad * candidate * i * (one - i)
            out[width + j] = grad * cell[b, j] * f * (one - f)
            out[2 * width + j] = grad * i * (one - candidate * candidate)
            out[3 * width + j] = grad_hidden[b, j] * tanh * o * (one - o)
            grad_cell[b, j] = grad * f


@njit(nogil=True, cache=True, fastmath=True)
def _dot(a: np.ndarray, b: np.ndarray) -> Any:  # pragma: no cover  (compiled)
    """Dot product in float32."""
    total = np.float32(0.0)
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@njit(nogil=True, cache=True, fastmath=True, error_model="numpy")  # NaN is no ZeroDivisionError
def _read(
    first: np.ndarray,
    end: int,
    keys: np.ndarray,
    values: np.ndarray,
    hidden_and_read: np.ndarray,
    attention: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Read o = softmax(h K^T) V over the slots from `first` up to `end`; zero where there are none.

    Args:
        first: int64, (B,).
        end: Slot after the last one that is read.
        keys: float32, (B, M, D).
        values: float32, (B, M, D).
        hidden_and_read: float32, (B, 2 D); h, and room for o, which is written.
        attention: float32, (B, M); weights of these slots are written.
    """
    dim = keys.shape[2]
    for b in range(len(keys)):
        hidden, read, weights = hidden_and_read[b, :dim], hidden_and_read[b, dim:], attention[b]
        read[:] = 0.0
        largest, total = np.float32(-1e30), np.float32(0.0)
        for i in range(first[b], end):
            weights[i] = _dot(keys[b, i], hidden)
            largest = max(largest, weights[i])
        for i in range(first[b], end):
            weights[i] = math.exp(weights[i] - largest)
            total += weights[i]
        for i in range(first[b], end):
            weights[i] /= total
            for j in range(dim):
                read[j] += weights[i] * values[b, i, j]


@njit(nogil=True, cache=True, fastmath=True)
def _read_backward(
    first: np.ndarray,
    end: int,
    keys: np.ndarray,
    values: np.ndarray,
    hidden_and_read: np.ndarray,
    attention: np.ndarray,
    grad_hidden_and_read: np.ndarray,
    grad_keys: np.ndarray,
    grad_values: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Backward pass of `_read`: add to the gradients of hidden states, keys and values, given those of read vectors."""
    dim = keys.shape[2]
    for b in range(len(keys)):
        hidden, weights = hidden_and_read[b, :dim], attention[b]
        grad_hidden, grad_read = grad_hidden_and_read[b, :dim], grad_hidden_and_read[b, dim:]
        mean = _dot(hidden_and_read[b, dim:], grad_read)  # weighted mean of the gradients of the weights
        for i in range(first[b], end):
            grad_score = weights[i] * (_dot(values[b, i], grad_read) - mean)
            for j in range(dim):
                grad_values[b, i, j] += weights[i] * grad_read[j]
                grad_hidden[j] += grad_score * keys[b, i, j]
                grad_keys[b, i, j] += grad_score * hidden[j]
