"""The differentiable neural computer against the published equations, cell by cell."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from memenvs.agents.memory import StepInputs
from memenvs.agents.memory.dnc import DNCConfig, DNCMemory
from tests.agents.memory.comparison import assert_same, randomize, steps

B, T, D = 2, 9, 3
SMALL: dict[str, Any] = {"hidden_dim": 4, "cells": 5, "cell_dim": 3, "read_heads": 2}


def make(**kwargs: Any) -> DNCMemory:
    memory = DNCMemory(D, DNCConfig(**{**SMALL, **kwargs})).double()
    randomize(memory, 0.8)
    return memory


def inputs() -> StepInputs:
    return steps(T, D, trials=[(0,), (0, 5)])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def oneplus(x: Any) -> Any:
    return 1 + np.log(1 + np.exp(x))


class Computer:
    """One sequence of Graves et al. (2016), Methods, with an LSTM as controller; names as there."""

    def __init__(self, module: DNCMemory) -> None:
        self.c = module.config
        self.weights = {name: value.detach().numpy() for name, value in module.named_parameters()}
        n, w, r = self.c.cells, self.c.cell_dim, self.c.read_heads
        self.h, self.s = np.zeros(self.c.hidden_dim), np.zeros(self.c.hidden_dim)
        self.M, self.L = np.zeros((n, w)), np.zeros((n, n))
        self.u, self.w_w, self.p = np.zeros(n), np.zeros(n), np.zeros(n)
        self.w_r, self.r = np.zeros((r, n)), np.zeros((r, w))

    def content(self, key: np.ndarray, strength: float) -> np.ndarray:
        def cosine(a: np.ndarray, b: np.ndarray) -> float:
            product = math.sqrt((a**2).sum()) * math.sqrt((b**2).sum())
            return float(a @ b) / (product + 1e-6)

        return softmax(np.array([strength * cosine(key, row) for row in self.M]))

    def step(self, x: np.ndarray) -> np.ndarray:
        weights, n, w, r = self.weights, self.c.cells, self.c.cell_dim, self.c.read_heads
        chi = np.concatenate([x, *self.r])
        gates = weights["controller.weight_ih"] @ chi + weights["controller.bias_ih"]
        gates = gates + weights["controller.weight_hh"] @ self.h + weights["controller.bias_hh"]
        i, f, g, o = np.split(gates, 4)
        self.s = sigmoid(f) * self.s + sigmoid(i) * np.tanh(g)
        self.h = sigmoid(o) * np.tanh(self.s)
        xi = list(weights["interface.weight"] @ self.h + weights["interface.bias"])

        def take(count: int) -> np.ndarray:
            taken, xi[:] = np.array(xi[:count]), xi[count:]
            return taken

        read_keys = [take(w) for _ in range(r)]
        read_strengths = [oneplus(x) for x in take(r)]
        write_key, write_strength = take(w), oneplus(take(1)[0])
        erase, vector = sigmoid(take(w)), take(w)
        free = sigmoid(take(r))
        g_a, g_w = sigmoid(take(1)[0]), sigmoid(take(1)[0])
        modes = [softmax(take(3)) for _ in range(r)] if self.c.links else [np.array([0, 1, 0])] * r
        assert xi == []

        psi = np.ones(n)
        for head in range(r):
            psi = psi * (1 - free[head] * self.w_r[head])
        self.u = (self.u + self.w_w - self.u * self.w_w) * psi
        order = sorted(range(n), key=lambda cell: self.u[cell])
        a = np.zeros(n)
        for j in range(n):
            a[order[j]] = (1 - self.u[order[j]]) * math.prod(self.u[order[i]] for i in range(j))
        c_w = self.content(write_key, write_strength)
        self.w_w = g_w * (g_a * a + (1 - g_a) * c_w)
        self.M = self.M * (1 - np.outer(self.w_w, erase)) + np.outer(self.w_w, vector)

        L = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                if i != j:
                    L[i, j] = (1 - self.w_w[i] - self.w_w[j]) * self.L[i, j] + self.w_w[i] * self.p[j]
        self.L, self.p = L, (1 - self.w_w.sum()) * self.p + self.w_w
        for head in range(r):
            f, b = self.L @ self.w_r[head], self.L.T @ self.w_r[head]
            c_r = self.content(read_keys[head], read_strengths[head])
            self.w_r[head] = modes[head][0] * b + modes[head][1] * c_r + modes[head][2] * f
        self.r = self.w_r @ self.M
        return np.concatenate([self.h, *self.r])


@pytest.mark.parametrize(("links", "checkpoint"), [(True, None), (True, 4), (False, None), (False, 4)])
def test_dnc_by_its_equations(links: bool, checkpoint: int | None) -> None:
    memory, x = make(links=links, checkpoint=checkpoint), inputs()
    features, state = memory(x)
    for row in range(B):
        for t in range(T):
            if x.trial_start[row, t]:
                plain = Computer(memory)
            expected = plain.step(x.embedding[row, t].numpy())
            np.testing.assert_allclose(features[row, t].detach(), expected, atol=1e-9)
        for name, value in {
            "memory": plain.M,
            "usage": plain.u,
            "write_weights": plain.w_w,
            "read_weights": plain.w_r,
        }.items():
            np.testing.assert_allclose(state[name][row].detach(), value, atol=1e-9)
        if links:
            np.testing.assert_allclose(state["link"][row].detach(), plain.L, atol=1e-9)
            np.testing.assert_allclose(state["precedence"][row].detach(), plain.p, atol=1e-9)
    assert ("link" in state) == links


@pytest.mark.parametrize("links", [True, False])
def test_recomputing_changes_no_gradient(links: bool) -> None:
    x = inputs()
    x.embedding.requires_grad_()
    memory = make(links=links)
    expected, _ = memory(x)
    for checkpoint in (1, 4, T):
        memory.config = replace(memory.config, checkpoint=checkpoint)
        assert_same(memory(x)[0], expected, [x.embedding, *memory.parameters()], atol=1e-12)


def test_sizes_of_the_paper() -> None:
    config = DNCConfig()
    memory = DNCMemory(128, config)
    assert memory.interface.out_features == 4 * 128 + 3 * 128 + 5 * 4 + 3 == 919
    assert memory.output_dim == 128 + 4 * 128
    state = memory.initial_state(2)
    assert state["memory"].shape == (2, 288, 128) and state["link"].shape == (2, 288, 288)
    assert sum(p.numel() for p in memory.controller.parameters()) == 4 * 128 * (128 + 4 * 128 + 128 + 2)
    assert DNCMemory(128, DNCConfig(links=False)).interface.out_features == 919 - 3 * 4


def test_autocast_leaves_the_precision_of_the_cells() -> None:
    memory, x = make().float(), inputs()
    x = StepInputs(x.embedding.float(), x.episode_start, x.trial_start)
    expected, _ = memory(x)
    with torch.autocast("cpu", torch.bfloat16):
        features, state = memory(x)
    torch.testing.assert_close(features, expected, rtol=0, atol=0)
    assert {value.dtype for value in state.values()} == {torch.float32}


@pytest.mark.parametrize("links", [True, False])
def test_a_calibrated_dnc_writes_to_one_cell_and_reads_it_from_the_start(links: bool) -> None:
    for is_calibrated, least, most in [(False, 0.0, 0.3), (True, 0.8, 1.0)]:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            memory = DNCMemory(64, DNCConfig(hidden_dim=64, cells=12, cell_dim=32, read_heads=2, links=links))
            if is_calibrated:
                memory.calibrate()
            with torch.no_grad():
                _, state = memory.double()(steps(10, 64, trials=[()] * 48))
        share, cell = state["write_weights"].max(1)
        assert least <= share.mean() <= most
        is_read = state["read_weights"].argmax(2) == cell[:, None]
        assert (is_read.float().mean() > 0.9) == is_calibrated
