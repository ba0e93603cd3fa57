"""One step of an LSTM on a CPU, forward and backward, for memories that are one function of a whole sequence there."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor


def new_history(first: Tensor, steps: int) -> Tensor:
    """A tensor for what is before the first step and after each, float32, (T + 1, ...)."""
    room = first.new_empty(steps + 1, *first.shape)
    room[0] = first
    return room


@njit(nogil=True, cache=True, fastmath=True)
def dot(a: np.ndarray, b: np.ndarray) -> Any:  # pragma: no cover  (compiled)
    """Sum of products of two vectors, in float32."""
    total = np.float32(0.0)
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


def lstm(gates: Tensor, before: Tensor, after: Tensor, hidden: Tensor) -> None:
    """Writes the cell state after a step and the hidden state; gates (in, forget, new, out), float32 (B, 4 H), become what they let through."""
    width = before.shape[1]
    gates[:, : 2 * width].sigmoid_()
    gates[:, 2 * width : 3 * width].tanh_()
    gates[:, 3 * width :].sigmoid_()
    enter, forget, new, leave = gates.split(width, 1)
    torch.mul(forget, before, out=after).addcmul_(enter, new)
    torch.mul(after.tanh(), leave, out=hidden)


@njit(nogil=True, cache=True, fastmath=True)
def lstm_back(
    t: int,
    gates: np.ndarray,
    cell: np.ndarray,
    squashed: np.ndarray,
    g_told: np.ndarray,
    g_cell: np.ndarray,
    g_gates: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Gradients of the gates of step t and, in place, of the cell state before it from that after it, whose tanh is `squashed`."""
    width, one = cell.shape[2], np.float32(1.0)
    for b in range(cell.shape[1]):
        g, out = gates[t, b], g_gates[t, b]
        for j in range(width):
            enter, forget, new, leave = g[j], g[width + j], g[2 * width + j], g[3 * width + j]
            shown = squashed[t, b, j]
            of_cell = g_cell[b, j] + g_told[b, j] * leave * (one - shown * shown)
            out[j] = of_cell * new * enter * (one - enter)
            out[width + j] = of_cell * cell[t, b, j] * forget * (one - forget)
            out[2 * width + j] = of_cell * enter * (one - new * new)
            out[3 * width + j] = g_told[b, j] * shown * leave * (one - leave)
            g_cell[b, j] = of_cell * forget
