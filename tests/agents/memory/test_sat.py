"""Memories of tokens against a plain loop over decisions, each with its own list of tokens."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from memenvs.agents.memory import StepInputs, make_memory, place_codes, token_memory
from memenvs.agents.memory.chunking import chunks_by_place, chunks_by_time
from memenvs.agents.memory.place_codes import PlaceCode, check_places, sinusoid
from memenvs.agents.memory.sat import ChunkedMemory, MoveMemory, SpatialMemory
from memenvs.agents.memory.token_memory import TokenMemory
from memenvs.agents.memory.tokens import Tokens
from memenvs.retention import retained
from tests.agents.memory.comparison import assert_same, steps

B, T, D = 2, 26, 6
SMALL = {"dim": 8, "layers": 2, "heads": 2, "mlp_dim": 6}


def make(name: str, **kwargs: Any) -> TokenMemory:
    torch.manual_seed(0)
    kwargs = {**SMALL, **({"n_places": 4} if name.startswith("sat") else {}), **kwargs}
    made = make_memory(name, D, **kwargs).double()
    assert isinstance(made, TokenMemory)
    return made


def inputs() -> StepInputs:
    generator = torch.Generator().manual_seed(2)
    x = steps(T, D, trials=[(0,), (0, 9)])
    place, move = (torch.randint(high, (B, T), generator=generator) for high in (4, 5))
    return replace(x, place=place, move=move)


def code(n: int) -> Tensor:
    """[sin, ..., cos, ...] of n, the equation as it is written."""
    angles = [n * 10_000.0 ** (-2 * j / 8) for j in range(4)]
    return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles], dtype=torch.float64)


def plainly(memory: TokenMemory, x: StepInputs) -> Tensor:
    """Features, one decision at a time."""
    config: Any = memory.config
    rows = []
    for row in range(B):
        decisions = []
        for now in range(T):
            begin = max(t for t in range(now + 1) if x.trial_start[row, t])
            places = None if x.place is None else x.place[row, begin : now + 1]
            visited = np.zeros((1, now + 1 - begin), int)
            if isinstance(memory, SpatialMemory):
                assert places is not None
                visited = places.numpy()[None]
            kept = retained(visited, getattr(config, "strategy", "fifo"), config.capacity, n_places=4)[0]
            numbers = np.flatnonzero(kept).tolist()

            def time_code(number: int, numbers: list[int] = numbers, newest: int = now - begin) -> Tensor:
                kinds = {"step": number, "age": newest - number, "mod32": number % place_codes.TIME_MODULUS}
                return code(kinds.get(config.time_index, sum(other > number for other in numbers)))

            def place_code(number: int, places: Tensor | None = places) -> Tensor:
                if not isinstance(memory, SpatialMemory):
                    return torch.zeros(8, dtype=torch.float64)
                assert places is not None
                return memory.place_code.table()[places[number]]

            embedded = memory.embed(x.embedding[row, begin : now + 1])
            tokens = [embedded[number] + time_code(number) + place_code(number) for number in numbers]
            if isinstance(memory, MoveMemory):
                assert x.move is not None
                moves = {number: int(x.move[row, begin + number]) for number in numbers}
                tokens += [memory.move.weight[moves[n]] + time_code(n) for n in numbers if moves[n] < 4]
            query = embedded[-1]
            query = query + (code(0) if config.time_index == "slot" else time_code(now - begin))
            query = query + place_code(now - begin)
            chunks = None
            if isinstance(memory, ChunkedMemory):
                # the chunk of a step is fixed as it arrives: chunks of all steps of the trial, without evicted ones
                everything = torch.ones(1, now + 1 - begin, dtype=torch.bool)
                assert places is not None
                by_place = type(memory).__name__.startswith("Place")
                whole = (
                    chunks_by_place(places[None], everything, config.chunk)
                    if by_place
                    else chunks_by_time(everything, config.chunk)
                )
                tokens = list(embedded + torch.stack([time_code(n) + place_code(n) for n in range(len(embedded))]))
                chunks = whole
            mask = None if chunks is None else torch.as_tensor(kept)[None]
            read = Tokens(torch.stack(tokens)[None], mask=mask)
            decisions.append(memory.reader(query[None, None], read, chunks, getattr(config, "top_k", 1))[0, 0])
        rows.append(torch.stack(decisions))
    return torch.stack(rows)


VARIANTS = [
    ("t-fifo", {}),
    ("t-fifo", {"capacity": 5, "time_index": "age"}),
    ("t-fifo+a", {"capacity": 6}),
    ("sat-fifo", {"time_index": "slot"}),
    ("sat-fifo", {"capacity": 6, "strategy": "mvfo", "place_code": "learned2d", "columns": 2}),
    ("sat-fifo", {"capacity": 6, "strategy": "lifo"}),
    ("sat-fifo-th", {"capacity": 9, "chunk": 3, "top_k": 2, "time_index": "age"}),
    ("sat-pm", {"capacity": 8, "time_index": "mod32"}),
    ("sat-pm-ph", {"capacity": 13, "chunk": 2, "top_k": 3}),
]


@pytest.mark.parametrize(("name", "kwargs"), VARIANTS, ids=str)
@pytest.mark.slow
def test_equals_a_loop_over_decisions(name: str, kwargs: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_codes, "TIME_MODULUS", 7)  # it starts again within the T steps
    memory, x = make(name, **kwargs), inputs()
    memory._time_codes = memory._time_codes[:3]  # more are made as they are needed
    x.embedding.requires_grad_()
    got, expected = memory(x)[0], plainly(memory, x)
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)  # tables of codes are of single precision
    assert_same(got, expected, [x.embedding, *memory.parameters()], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["sat-fifo", "sat-pm-ph"])
def test_decisions_in_many_parts_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, x = make(name, capacity=8), inputs()
    x.embedding.requires_grad_()
    at_once, _ = memory(x)
    monkeypatch.setattr(token_memory, "MAX_ELEMENTS", 300)
    in_parts, _ = memory(x)
    assert_same(in_parts, at_once, [x.embedding, *memory.parameters()], atol=1e-10)


def test_sinusoid_by_hand() -> None:
    got = sinusoid(torch.tensor([0, 3]).double(), 4)
    expected = [[0, 0, 1, 1], [math.sin(3), math.sin(0.03), math.cos(3), math.cos(0.03)]]
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64))
    torch.testing.assert_close(sinusoid(torch.arange(50), 128).norm(dim=1), torch.full((50,), 8.0))
    assert sinusoid(torch.arange(3), 4).dtype == sinusoid(torch.arange(3).half(), 4).dtype == torch.float32
    assert sinusoid(torch.zeros(2, 3, 5), 4).shape == (2, 3, 5, 4)
    with pytest.raises(ValueError, match="dim must be even for a sinusoid, got 7"):
        sinusoid(torch.arange(3), 7)


def test_place_codes() -> None:
    line = PlaceCode("sine1d", 8, 8).table()
    torch.testing.assert_close(line, sinusoid(torch.arange(8), 8))
    torch.testing.assert_close(line, PlaceCode("sine1d", 12, 8).table()[:8])  # more places, the same codes
    grid, entries = PlaceCode("sine2d", 6, 8, columns=3).table(), sinusoid(torch.arange(5), 8)
    torch.testing.assert_close(grid[4], (entries[1] + entries[3 + 1]) / 2)  # column 1, row 1
    torch.testing.assert_close(grid[2], (entries[2] + entries[3 + 0]) / 2)
    counts = {("learned1d", None): 9 * 8, ("learned2d", 3): 6 * 8, ("sine1d", None): 0, ("sine2d", 3): 0}
    for (kind, columns), count in counts.items():
        made = PlaceCode(kind, 9, 8, columns)  # type: ignore[arg-type]
        assert sum(p.numel() for p in made.parameters()) == count
        assert made.table().unique(dim=0).shape == (9, 8)


def test_wrong_places_and_moves_are_named() -> None:
    memory, x = make("sat-fifo"), inputs()
    for place in (4, -1):
        with pytest.raises(ValueError, match=rf"place must be 0 \.\.\. 3, as many as .* \(n_places\), got {place}"):
            memory(replace(x, place=torch.full((B, T), place)))
    check_places(torch.zeros(0, dtype=torch.int64), 4)
    moving = make("t-fifo+a")
    for move in (5, -1):
        with pytest.raises(ValueError, match=rf"move must be 0 \.\.\. 3, or 4 for none, got {move}"):
            moving(replace(x, move=torch.full((B, T), move)))


def test_initial_weights_are_scaled_to_the_inputs_once() -> None:
    """Rare and small inputs then count as much as others, and all as much as the codes."""
    generator = torch.Generator().manual_seed(0)
    steps = torch.randn(4000, 4, generator=generator) * torch.tensor([100.0, 1.0, 20.0, 0.0]) + 7.0
    torch.manual_seed(0)
    memory = make_memory("sat-fifo", 4, dim=32, layers=1, n_places=2)
    before = memory.embed.weight.clone()
    assert memory.standardize(steps)
    values = memory.embed(steps)
    torch.testing.assert_close(values.mean(0), torch.zeros(32), atol=1e-3, rtol=0)
    torch.testing.assert_close(values.std(0, correction=0), torch.ones(32), atol=1e-3, rtol=0)
    share = memory.embed.weight[:, 1:] / memory.embed.weight[:, :1]
    expected = before[:, 1:] / before[:, :1] * torch.tensor([100.0, 25.0, 100.0])  # at most a hundred times the first
    torch.testing.assert_close(share, expected, atol=0, rtol=0.05)
    saved = {name: value.clone() for name, value in memory.state_dict().items()}
    assert not memory.standardize(steps * 3)
    again = make_memory("sat-fifo", 4, dim=32, layers=1, n_places=2)
    again.load_state_dict(saved)
    assert not again.standardize(steps)  # a trained memory stays as it is
    assert all(torch.equal(value, saved[name]) for name, value in again.state_dict().items())
    plain = make_memory("sat-fifo", 4, dim=32, layers=1, n_places=2, standardize=False)
    assert not plain.standardize(steps) and set(saved) - set(plain.state_dict()) == {"is_standardized"}
    still = make_memory("sat-fifo", 4, dim=32, layers=1, n_places=2)
    assert still.standardize(torch.full((5, 4), 2.0)) and torch.isfinite(still.embed(steps)).all()
