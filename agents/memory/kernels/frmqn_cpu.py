"""A whole sequence of FRMQN on a CPU: compiled reads forward and backward, and products of matrices between them.

The steps of `FRMQNMemory` are many small tensors; in autograd nearly all time goes into their bookkeeping. Here the gradients of weights are one
product for all steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from memenvs.agents.memory.kernels.lstm_cpu import dot, lstm, lstm_back, new_history


class FRMQNSequence(torch.autograd.Function):
    """T steps of all sequences; the same numbers and gradients as `FRMQNMemory` gives step by step."""

    @staticmethod
    def forward(
        ctx: Any,
        psi: Tensor,
        keys: Tensor,
        values: Tensor,
        told: Tensor,
        cell: Tensor,
        first: Tensor,
        resets: Tensor,
        cuts: frozenset[int],
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Hidden states and reads, and the cell state after the last step.

        Args:
            ctx: Of autograd.
            psi: float32, (B, T, D).
            keys: float32, (B, M, D); of what was before, then of the T steps.
            values: float32, (B, M, D).
            told: float32, (B, 2 D); hidden state and read before the first step.
            cell: float32, (B, D); before the first step.
            first: int64, (B, T); the first slot that a step reads; it reads up to the slot before its own.
            resets: bool, (B, T); the recurrent network begins anew with this step.
            cuts: Steps before which gradients through the recurrent network stop.
            *weights: (4 D, 2 D), (4 D, D), (4 D,), (4 D,); as in `torch.nn.LSTMCell`.

        Returns:
            float32, (B, T, 2 D) and (B, D).
        """
        of_input, of_hidden, bias, more_bias = weights
        (batch, steps, dim), slots = psi.shape, keys.shape[1]
        recurrent = torch.cat([of_hidden, of_input[:, dim:]], 1)
        gates = psi.transpose(0, 1).flatten(0, 1) @ of_input[:, :dim].T
        gates = gates.add_(bias + more_bias).view(steps, batch, -1)
        keep = (~resets).T.to(psi.dtype)[..., None]  # (T, B, 1)
        is_new = resets.any(0).tolist()
        tolds, cells = new_history(told, steps), new_history(cell, steps)
        looked = psi.new_empty(steps, batch, slots)
        bank = [each.detach().contiguous().numpy() for each in (keys, values)]
        begins = first.numpy()
        read: Callable[..., None] = _read
        for t in range(steps):
            now, was = (tolds[t] * keep[t], cells[t] * keep[t]) if is_new[t] else (tolds[t], cells[t])
            lstm(gates[t].addmm_(now, recurrent.T), was, cells[t + 1], tolds[t + 1, :, :dim])
            read(begins[:, t], slots - steps + t, *bank, tolds[t + 1].numpy(), looked[t].numpy())
        ctx.save_for_backward(psi, keys, values, first, keep, recurrent, gates, tolds, cells, looked, of_input)
        ctx.is_new, ctx.cuts = is_new, cuts
        return tolds[1:].transpose(0, 1).contiguous(), cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_heard: Tensor, g_cell: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the sequence, of the bank, of the state before it and of the weights."""
        psi, keys, values, first, keep, recurrent, gates, tolds, cells, looked, of_input = ctx.saved_tensors
        (_, steps, dim), slots = psi.shape, keys.shape[1]
        g_tolds = torch.cat([torch.zeros_like(tolds[:1]), g_heard.transpose(0, 1)])
        g_gates, g_cell = torch.empty_like(gates), g_cell.contiguous().clone()
        g_keys, g_values = (torch.zeros_like(each, memory_format=torch.contiguous_format) for each in (keys, values))
        bank = [each.contiguous().numpy() for each in (keys, values)]
        banked = [each.numpy() for each in (g_keys, g_values)]
        now, was = tolds[:-1] * keep, cells[:-1] * keep
        squashed, begins = cells[1:].tanh().numpy(), first.numpy()
        read_back: Callable[..., None] = _read_back
        for t in range(steps - 1, -1, -1):
            g_told = g_tolds[t + 1].numpy()
            read_back(begins[:, t], slots - steps + t, *bank, tolds[t + 1].numpy(), looked[t].numpy(), g_told, *banked)
            lstm_back(t, gates.numpy(), was.numpy(), squashed, g_told, g_cell.numpy(), g_gates.numpy())
            if t in ctx.cuts:
                g_cell.zero_()
            elif ctx.is_new[t]:
                g_tolds[t] += (g_gates[t] @ recurrent) * keep[t]
                g_cell *= keep[t]
            else:
                g_tolds[t].addmm_(g_gates[t], recurrent)
        flat = g_gates.flatten(0, 1)
        g_psi = (flat @ of_input[:, :dim]).view(steps, -1, dim).transpose(0, 1)
        g_recurrent = flat.T @ now.flatten(0, 1)
        g_input = torch.cat([flat.T @ psi.transpose(0, 1).flatten(0, 1), g_recurrent[:, dim:]], 1)
        g_bias = flat.sum(0)
        weights = g_input, g_recurrent[:, :dim], g_bias, g_bias
        return g_psi, g_keys, g_values, g_tolds[0], g_cell, None, None, None, *weights


@njit(nogil=True, cache=True, fastmath=True)
def _read(
    first: np.ndarray, end: int, keys: np.ndarray, values: np.ndarray, told: np.ndarray, looked: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """Writes what the hidden states, the first half of `told`, read from the slots before `end` into its second half, and its weights."""
    dim = keys.shape[2]
    for b in range(len(keys)):
        hidden, read, weights = told[b, :dim], told[b, dim:], looked[b]
        read[:] = 0.0
        most, total = np.float32(-1e30), np.float32(0.0)
        for i in range(first[b], end):
            weights[i] = dot(keys[b, i], hidden)
            most = max(most, weights[i])
        for i in range(first[b], end):
            weights[i] = math.exp(weights[i] - most)
            total += weights[i]
        for i in range(first[b], end):
            weights[i] /= total
            for j in range(dim):
                read[j] += weights[i] * values[b, i, j]


@njit(nogil=True, cache=True, fastmath=True)
def _read_back(
    first: np.ndarray,
    end: int,
    keys: np.ndarray,
    values: np.ndarray,
    told: np.ndarray,
    looked: np.ndarray,
    g_told: np.ndarray,
    g_keys: np.ndarray,
    g_values: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Adds the gradients of hidden states (first half of `g_told`), keys and values, given those of reads (second half)."""
    dim = keys.shape[2]
    for b in range(len(keys)):
        hidden, weights, g_hidden, g_read = told[b, :dim], looked[b], g_told[b, :dim], g_told[b, dim:]
        mean = dot(told[b, dim:], g_read)  # of the weights' gradients
        for i in range(first[b], end):
            g_score = weights[i] * (dot(values[b, i], g_read) - mean)
            for j in range(dim):
                g_values[b, i, j] += weights[i] * g_read[j]
                g_hidden[j] += g_score * keys[b, i, j]
                g_keys[b, i, j] += g_score * hidden[j]
