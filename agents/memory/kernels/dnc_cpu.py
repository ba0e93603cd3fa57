"""A whole sequence of a DNC without links on a CPU: compiled passes over the cells forward and backward, and products of matrices between them.

The steps of `DNCMemory` are many small tensors; in autograd nearly all time goes into their bookkeeping. Here a step is two products and two
compiled loops, its backward pass as many, and the gradients of weights are one product for all steps.
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

SMALL = 1e-6
"""Added to the product of two norms, so that the similarity to an empty cell is 0."""


class DNCSequence(torch.autograd.Function):
    """T steps of all sequences; the same numbers and gradients as `DNCMemory` gives step by step."""

    @staticmethod
    def forward(
        ctx: Any,
        embedding: Tensor,
        told: Tensor,
        cell: Tensor,
        memory: Tensor,
        usage: Tensor,
        written: Tensor,
        read: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, ...]:
        """Features and the state after the last step.

        Args:
            ctx: Of autograd.
            embedding: float32, (B, T, E).
            told: float32, (B, H + R W); hidden state and reads before the first step.
            cell: float32, (B, H); of the controller, like the next as in `DNCMemory.initial_state`.
            memory: float32, (B, N, W).
            usage: float32, (B, N).
            written: float32, (B, N).
            read: float32, (B, R, N).
            *weights: Of the controller: (4 H, E + R W), (4 H, H), (4 H,), (4 H,); of the interface: (I, H), (I,).

        Returns:
            Features, float32 (B, T, H + R W), then cell, memory, usage, written and read after the last step.
        """
        of_input, of_hidden, bias, more_bias, of_interface, interface_bias = weights
        (batch, steps, width), hidden = embedding.shape, of_hidden.shape[1]
        recurrent = torch.cat([of_hidden, of_input[:, width:]], 1)
        gates = embedding.transpose(0, 1).flatten(0, 1) @ of_input[:, :width].T
        gates = gates.add_(bias + more_bias).view(steps, batch, -1)
        state = [new_history(each, steps) for each in (told, cell, memory, usage, written, read)]
        (tolds, cells), arrays = state[:2], [each.numpy() for each in state]
        interface = embedding.new_empty(steps, batch, len(of_interface))
        by_content = embedding.new_empty(steps, batch, memory.shape[1])
        lengths = new_history(memory.norm(dim=2), steps)  # of the cells' vectors
        access: Callable[..., None] = _access
        for t in range(steps):
            lstm(gates[t].addmm_(tolds[t], recurrent.T), cells[t], cells[t + 1], tolds[t + 1, :, :hidden])
            torch.addmm(interface_bias, tolds[t + 1, :, :hidden], of_interface.T, out=interface[t])
            access(t, hidden, interface.numpy(), arrays[0], *arrays[2:], by_content.numpy(), lengths.numpy())
        ctx.save_for_backward(embedding, recurrent, gates, interface, by_content, lengths, *weights, *state)
        return (tolds[1:].transpose(0, 1).contiguous(), *(each[-1].clone() for each in state[1:]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, features: Tensor, *after: Tensor) -> tuple[Tensor, ...]:
        """Gradients of the sequence, of the state before it and of the weights."""
        embedding, recurrent, gates, interface, by_content, lengths, *rest = ctx.saved_tensors
        (of_input, _, _, _, of_interface, _), state = rest[:6], rest[6:]
        (batch, steps, width), hidden = embedding.shape, recurrent.shape[0] // 4
        g_tolds = torch.cat([torch.zeros_like(state[0][:1]), features.transpose(0, 1)])
        g_state = [each.contiguous().clone() for each in after]
        g_gates, g_interface = torch.empty_like(gates), torch.empty_like(interface)
        arrays, squashed = [each.numpy() for each in state], state[1][1:].tanh().numpy()
        access_back: Callable[..., None] = _access_back
        for t in range(steps - 1, -1, -1):
            g_told = g_tolds[t + 1]
            access_back(
                t,
                hidden,
                interface.numpy(),
                *arrays[2:],
                by_content.numpy(),
                lengths.numpy(),
                g_interface.numpy(),
                g_told.numpy(),
                *(each.numpy() for each in g_state[1:]),
            )
            g_told[:, :hidden].addmm_(g_interface[t], of_interface)
            lstm_back(t, gates.numpy(), arrays[1], squashed, g_told.numpy(), g_state[0].numpy(), g_gates.numpy())
            g_tolds[t].addmm_(g_gates[t], recurrent)
        flat, told = g_gates.flatten(0, 1), state[0]
        g_recurrent = flat.T @ told[:-1].flatten(0, 1)
        g_seen = flat.T @ embedding.transpose(0, 1).flatten(0, 1)
        g_embedding = (flat @ of_input[:, :width]).view(steps, batch, width).transpose(0, 1)
        g_bias, asked = flat.sum(0), g_interface.flatten(0, 1)
        g_input = torch.cat([g_seen, g_recurrent[:, hidden:]], 1)
        g_asking = asked.T @ told[1:, :, :hidden].flatten(0, 1)
        weights = g_input, g_recurrent[:, :hidden], g_bias, g_bias, g_asking, asked.sum(0)
        return (g_embedding, g_tolds[0], *g_state, *weights)


@njit(nogil=True, cache=True, fastmath=True)
def _sigmoid(x: Any) -> Any:  # pragma: no cover  (compiled)
    return np.float32(1.0 / (1.0 + math.exp(-x)))


@njit(nogil=True, cache=True, fastmath=True)
def _oneplus(x: Any) -> Any:  # pragma: no cover  (compiled)
    return np.float32(1.0 + max(x, np.float32(0.0)) + math.log1p(math.exp(-abs(x))))


@njit(nogil=True, cache=True, fastmath=True)
def _look_up(
    memory: np.ndarray, lengths: np.ndarray, key: np.ndarray, strength: Any, out: np.ndarray
) -> None:  # pragma: no cover  (compiled)
    """Writes the weights of cells (N,) by how much they are like a key (W,): softmax of strength x cosine."""
    norm, most = math.sqrt(dot(key, key)), np.float32(-1e30)
    for n in range(len(memory)):
        out[n] = strength * dot(memory[n], key) / (norm * lengths[n] + SMALL)
        most = max(most, out[n])
    total = np.float32(0.0)
    for n in range(len(memory)):
        out[n] = math.exp(out[n] - most)
        total += out[n]
    for n in range(len(memory)):
        out[n] /= total


@njit(nogil=True, cache=True, fastmath=True)
def _look_up_back(
    memory: np.ndarray,
    lengths: np.ndarray,
    key: np.ndarray,
    strength: Any,
    weights: np.ndarray,
    g_weights: np.ndarray,
    g_memory: np.ndarray,
    g_key: np.ndarray,
) -> Any:  # pragma: no cover  (compiled)
    """Adds the gradients of cells, writes that of the key, and returns that of the strength."""
    norm, mean = np.float32(math.sqrt(dot(key, key))), dot(weights, g_weights)
    g_strength, g_norm = np.float32(0.0), np.float32(0.0)
    g_key[:] = 0.0
    for n in range(len(memory)):
        cell, g_cell = memory[n], g_memory[n]
        length, product = lengths[n], dot(cell, key)
        below = np.float32(norm * length + SMALL)
        g_score = weights[n] * (g_weights[n] - mean)
        g_strength += g_score * product / below
        g_product = g_score * strength / below
        g_below = -g_product * product / below
        g_norm += g_below * length
        own = g_below * norm / length if length > 0.0 else np.float32(0.0)
        for j in range(len(key)):
            g_key[j] += g_product * cell[j]
            g_cell[j] += g_product * key[j] + own * cell[j]
    if norm > 0.0:
        for j in range(len(key)):
            g_key[j] += g_norm / norm * key[j]
    return g_strength


@njit(nogil=True, cache=True)
def _begins(heads: int, width: int) -> tuple[int, int, int, int, int]:  # pragma: no cover  (compiled)
    """Where parts of an interface begin, in the order of `interface_parts`: strengths of reads, key, erase, write vector, free gates."""
    strengths = heads * width
    key = strengths + heads
    erase = key + width + 1
    vector = erase + width
    return strengths, key, erase, vector, vector + width


@njit(nogil=True, cache=True, fastmath=True)
def _access(
    t: int,
    hidden: int,
    interface: np.ndarray,
    told: np.ndarray,
    memory: np.ndarray,
    usage: np.ndarray,
    written: np.ndarray,
    read: np.ndarray,
    by_content: np.ndarray,
    lengths: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Write and reads of step t: what `DNCMemory` does after its controller."""
    (cells, width), heads, one = memory.shape[2:], read.shape[2], np.float32(1.0)
    strengths, key, erase, vector, free = _begins(heads, width)
    for b in range(memory.shape[1]):
        asked, before, after = interface[t, b], memory[t, b], memory[t + 1, b]
        used, write, content = usage[t + 1, b], written[t + 1, b], by_content[t, b]
        for n in range(cells):
            kept = one
            for r in range(heads):
                kept *= one - _sigmoid(asked[free + r]) * read[t, b, r, n]
            u, w = usage[t, b, n], written[t, b, n]
            used[n] = (u + w - u * w) * kept
        _look_up(before, lengths[t, b], asked[key : key + width], _oneplus(asked[key + width]), content)
        to_free, gate = _sigmoid(asked[free + heads]), _sigmoid(asked[free + heads + 1])
        all_used = one
        for n in np.argsort(used, kind="mergesort"):
            write[n] = gate * (to_free * (one - used[n]) * all_used + (one - to_free) * content[n])
            all_used *= used[n]
        gone = np.empty(width, memory.dtype)
        for j in range(width):
            gone[j] = _sigmoid(asked[erase + j])
        for n in range(cells):
            for j in range(width):
                after[n, j] = before[n, j] * (one - write[n] * gone[j]) + write[n] * asked[vector + j]
            lengths[t + 1, b, n] = math.sqrt(dot(after[n], after[n]))
        for r in range(heads):
            weights = read[t + 1, b, r]
            heard = told[t + 1, b, hidden + r * width : hidden + (r + 1) * width]
            _look_up(
                after, lengths[t + 1, b], asked[r * width : (r + 1) * width], _oneplus(asked[strengths + r]), weights
            )
            heard[:] = 0.0
            for n in range(cells):
                for j in range(width):
                    heard[j] += weights[n] * after[n, j]


@njit(nogil=True, cache=True, fastmath=True)
def _access_back(
    t: int,
    hidden: int,
    interface: np.ndarray,
    memory: np.ndarray,
    usage: np.ndarray,
    written: np.ndarray,
    read: np.ndarray,
    by_content: np.ndarray,
    lengths: np.ndarray,
    g_interface: np.ndarray,
    g_told: np.ndarray,
    g_memory: np.ndarray,
    g_usage: np.ndarray,
    g_written: np.ndarray,
    g_read: np.ndarray,
) -> None:  # pragma: no cover  (compiled)
    """Gradients of the interface of step t and, in place, of the state before it from those after it; see `_access`."""
    (cells, width), heads, one = memory.shape[2:], read.shape[2], np.float32(1.0)
    strengths, key, erase, vector, free = _begins(heads, width)
    gone, g_gone = np.empty((2, width), memory.dtype)
    g_write, g_content, before_it = np.empty((3, cells), memory.dtype)
    for b in range(memory.shape[1]):
        asked, out, before, after = interface[t, b], g_interface[t, b], memory[t, b], memory[t + 1, b]
        used, write, content, of_memory = usage[t + 1, b], written[t + 1, b], by_content[t, b], g_memory[b]
        for r in range(heads):  # reads
            weights, of_weights = read[t + 1, b, r], g_read[b, r]
            of_heard = g_told[b, hidden + r * width : hidden + (r + 1) * width]
            for n in range(cells):
                of_weights[n] += dot(of_heard, after[n])
                for j in range(width):
                    of_memory[n, j] += weights[n] * of_heard[j]
            here = slice(r * width, (r + 1) * width)
            pre = asked[strengths + r]
            of_strength = _look_up_back(
                after, lengths[t + 1, b], asked[here], _oneplus(pre), weights, of_weights, of_memory, out[here]
            )
            out[strengths + r] = of_strength * _sigmoid(pre)

        for j in range(width):  # the write
            gone[j], g_gone[j], out[vector + j] = _sigmoid(asked[erase + j]), 0.0, 0.0
        for n in range(cells):
            total = g_written[b, n]
            for j in range(width):
                of_new, of_old = of_memory[n, j], of_memory[n, j] * before[n, j]
                total += of_new * asked[vector + j] - of_old * gone[j]
                g_gone[j] -= write[n] * of_old
                out[vector + j] += write[n] * of_new
                of_memory[n, j] = of_new * (one - write[n] * gone[j])
            g_write[n] = total
        for j in range(width):
            out[erase + j] = g_gone[j] * gone[j] * (one - gone[j])

        to_free, gate = _sigmoid(asked[free + heads]), _sigmoid(asked[free + heads + 1])  # where it goes
        order = np.argsort(used, kind="mergesort")
        all_used, of_gate, of_to_free = one, np.float32(0.0), np.float32(0.0)
        for n in order:
            before_it[n] = all_used
            room = (one - used[n]) * all_used
            of_gate += g_write[n] * (to_free * room + (one - to_free) * content[n])
            of_to_free += g_write[n] * gate * (room - content[n])
            g_content[n] = g_write[n] * gate * (one - to_free)
            all_used *= used[n]
        out[free + heads] = of_to_free * to_free * (one - to_free)
        out[free + heads + 1] = of_gate * gate * (one - gate)
        behind = np.float32(0.0)  # what the cells after it would get if all before were used
        for i in range(cells - 1, -1, -1):
            n = order[i]
            of_room = g_write[n] * gate * to_free
            g_usage[b, n] += before_it[n] * (behind - of_room)
            behind = of_room * (one - used[n]) + used[n] * behind
        pre = asked[key + width]
        of_key = out[key : key + width]
        of_strength = _look_up_back(
            before, lengths[t, b], asked[key : key + width], _oneplus(pre), content, g_content, of_memory, of_key
        )
        out[key + width] = of_strength * _sigmoid(pre)

        for r in range(heads):  # what is used
            out[free + r] = 0.0
        for n in range(cells):
            u, w, of_used, kept = usage[t, b, n], written[t, b, n], g_usage[b, n], one
            for r in range(heads):
                kept *= one - _sigmoid(asked[free + r]) * read[t, b, r, n]
            of_kept = of_used * (u + w - u * w)
            g_usage[b, n], g_written[b, n] = of_used * kept * (one - w), of_used * kept * (one - u)
            for r in range(heads):
                others = one
                for s in range(heads):
                    if s != r:
                        others *= one - _sigmoid(asked[free + s]) * read[t, b, s, n]
                out[free + r] -= of_kept * others * read[t, b, r, n]
                g_read[b, r, n] = -of_kept * others * _sigmoid(asked[free + r])
        for r in range(heads):
            f = _sigmoid(asked[free + r])
            out[free + r] *= f * (one - f)
