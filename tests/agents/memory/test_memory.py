"""The contract that every registered memory meets."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from memenvs.agents.memory import MEMORIES, Memory, make_memory, memory_spec, required_inputs
from memenvs.agents.testing import CHECKS, B, MemoryUnderTest, T, check_extra_inputs, make_subject
from memenvs.agents.testing import INPUT_DIM as D
from memenvs.agents.testing import inputs as step_inputs
from tests.agents.memory.comparison import act

SMALL_READER = {"dim": 8, "layers": 2, "heads": 2, "mlp_dim": 6}
SMALL_RESIDUAL = {"layers": 2, "dim": 8, "mlp_dim": 12}
SMALL_QUEUES = {"dim": 8, "layers": 3, "heads": 2, "mlp_dim": 12, "block_length": 4, "memory_length": 8}
SMALL_QUEUES |= {"compressed_lengths": (4,), "ratios": (2,)}
COMPRESSIVE = ("ct", "ct-lt", "ml-ct-lt", "ct-log")
SMALL = {
    "none": {},
    "window": {"steps": 4, "dim": 6},
    "gru": {"hidden_dim": 6, "layers": 2},
    "lstm": {"hidden_dim": 6, "layers": 2},
    "mingru": SMALL_RESIDUAL,
    "lru": SMALL_RESIDUAL,
    "s5": SMALL_RESIDUAL,
    "gated-deltanet": {**SMALL_RESIDUAL, "heads": 2},
    "mlstm": {**SMALL_RESIDUAL, "heads": 2},
    "relic": {"layers": 3, "heads": 2, "dim": 8, "mlp_dim": 12, "sink": "kv", "max_episode_steps": T}
    | {"cache_dtype": "float64"},
    "memo": {**SMALL_RESIDUAL, "heads": 2, "segment_length": 4, "summary_tokens": 2},
    "trxl": {"layers": 3, "heads": 2, "dim": 8, "mlp_dim": 12, "memory_length": 8},
    "gtrxl": {"layers": 3, "heads": 2, "dim": 8, "mlp_dim": 12, "memory_length": 8},
    "smt": {"dim": 8, "heads": 2, "capacity": 2 * T, "tau": (1.0, 10.0)},
    "smt-factorized": {"dim": 8, "heads": 2, "capacity": T, "n_centres": 4},
    "smt-causal": {"dim": 8, "heads": 2, "capacity": T},
    "sm-pooling": {"dim": 8},
    "frmqn": {"dim": 8, "capacity": T},
    "t-fifo": SMALL_READER,
    "t-fifo+a": SMALL_READER,
    "sat-fifo": {**SMALL_READER, "n_places": 3},
    "sat-fifo-th": {**SMALL_READER, "n_places": 3, "chunk": 4, "top_k": 9},
    "sat-pm": {**SMALL_READER, "n_places": 3},
    "sat-pm-ph": {**SMALL_READER, "n_places": 3, "chunk": 4, "top_k": 9},
    "dnc": {"hidden_dim": 6, "cells": 5, "cell_dim": 4, "read_heads": 2},
    "lstm-on": {"dim": 6},
    "lstm-o1": {"dim": 6, "layers": 1, "capacity": 5},
    **{name: SMALL_QUEUES for name in COMPRESSIVE},
    "ct-log": {**SMALL_QUEUES, "block_length": 2, "memory_length": 2, "compressed_lengths": (1,)},
    "ml-ct-lt": {**SMALL_QUEUES, "memory_length": 4, "compressed_lengths": (2, 1), "ratios": (2, 2)},
}
#: Settings under which each memory meets the contract, besides those of `SMALL`.
VARIANTS: dict[str, list[dict]] = {
    "lstm": [{"bptt": 4}],
    "relic": [{"inter_episode": False}, {"sink": "token"}],
    "trxl": [{"memory_length": 2 * T, "layers": 1}],
    "memo": [{"overwrite": True}, {"segment_length": 1, "summary_tokens": 1}],
    "window": [{"steps": 1}],
    "smt": [
        {"capacity": 1},
        {"capacity": 6, "time": "sinusoidal", "tau": 1.0},
        {"encoder": False, "time": "none", "tau": 1.0},
        {"encoder": False, "capacity": 6, "rectified": True},
    ],
    "smt-factorized": [{"capacity": 6}, {"centres": "window"}, {"centres": "static"}, {"rectified": True}],
    "smt-causal": [{"capacity": 6, "layers": 3}],
    "sm-pooling": [{"capacity": 6}],
    "frmqn": [{"capacity": 1}, {"capacity": 6, "bptt": 4}],
    "t-fifo": [{"capacity": 1}, {"time_index": "age"}, {"time_index": "slot", "capacity": 5}],
    "t-fifo+a": [{"time_index": "mod32", "capacity": 6}],
    "sat-fifo": [
        *({"capacity": 5, "strategy": strategy} for strategy in ("fifo", "lifo", "quota")),
        {"capacity": 6, "strategy": "mvfo", "time_index": "slot", "place_code": "learned1d"},
        {"n_places": 6, "columns": 3, "place_code": "sine2d"},
    ],
    "sat-fifo-th": [
        {"capacity": 9, "strategy": "lvfo", "top_k": 2},
        {"capacity": 7, "strategy": "lifo", "top_k": 2, "time_index": "age"},
    ],
    "sat-pm": [{"capacity": 7, "n_places": 6, "columns": 3, "place_code": "learned2d"}],
    "sat-pm-ph": [{"capacity": 10, "top_k": 2}, {"capacity": 8, "strategy": "mvfo", "chunk": 2, "top_k": 3}],
    "dnc": [{"links": False, "checkpoint": 8}],
    "ct": [{"layers": 1}],
}
#: Memories that differ in one setting from one that every change checks.
SELDOM = {"ml-ct-lt"}
#: Memories whose code is for the most part that of another one: their variants are tested at night.
ALIKE = {"gtrxl", "s5", "t-fifo+a", "sat-fifo-th", "sat-pm-ph", "smt-factorized", "ct-log", "lstm-on"}
#: Checks of a memory's other variants on every change: forms of the same computation, in which settings take part.
OF_VARIANTS = ("check_sequence", "check_chunks", "check_starts", "check_rows", "check_strategies", "check_bounded")


def contract_cases() -> Iterator[Any]:
    """Each memory with the settings of `SMALL`, or with all its variants, and each check."""
    for name, check, others in itertools.product(MEMORIES, CHECKS, (False, True)):
        is_seldom = name in SELDOM or (others and (name in ALIKE or check.__name__ not in OF_VARIANTS))
        mark = pytest.mark.nightly if is_seldom else pytest.mark.slow if others or name in ALIKE else ()
        if not others or name in VARIANTS:
            yield pytest.param(name, check, others, id=f"{name}-{check.__name__}{'-others' * others}", marks=mark)


def make(name: str, seed: int = 0, **kwargs: object) -> Memory:
    """A small memory in float64 with weights large enough that everything matters."""
    return make_subject(name, seed=seed, **{**SMALL[name], **kwargs}).memory


@pytest.mark.parametrize(("name", "check", "others"), list(contract_cases()))
def test_contract(name: str, check: Callable[[MemoryUnderTest], None], others: bool) -> None:
    for settings in VARIANTS[name] if others else [{}]:
        if check is check_extra_inputs and settings.get("capacity") == 1:
            continue  # of one step, seen from itself, the pose says nothing
        check(make_subject(name, **{**SMALL[name], **settings}))


HALF = pytest.param(torch.float16, marks=pytest.mark.nightly)


@pytest.mark.parametrize("dtype", [torch.bfloat16, HALF], ids=str)  # the contract is tested in float64
@pytest.mark.parametrize("name", MEMORIES)
def test_weights_of_another_precision(name: str, dtype: torch.dtype) -> None:
    """Acting and learning work, and features differ from those of float32 by no more than rounding does."""
    for kwargs in [{}, *VARIANTS.get(name, [])]:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            memory = make_memory(name, D, **{**SMALL[name], **kwargs}).eval()
        x = step_inputs("trials", memory)
        features = {}
        for precision in (torch.float32, dtype):
            memory, embedding = memory.to(precision), x.embedding.to(precision, copy=True).requires_grad_()
            own = dataclasses.replace(x, embedding=embedding, pose=x.pose.to(precision))
            features[precision], _ = memory(own, None)
            features[precision].float().sum().backward()
            state = memory.initial_state(B, max_steps=T)
            stepped, state = act(memory, own.steps(0, 5), state)
            refilled, _ = memory.prefill(own.steps(5, T), state)
            assert refilled.dtype == stepped.dtype == features[precision].dtype == precision
            torch.testing.assert_close(stepped, features[precision][:, :5], atol=0.05, rtol=0.05)
        expected = features[torch.float32]
        assert (features[dtype] - expected).norm() < 0.02 * expected.norm(), kwargs


@pytest.mark.parametrize("name", MEMORIES)
def test_a_step_that_is_not_finite_is_seen_in_its_features(name: str) -> None:
    """So that a learner stops at it; nothing else fails before, and other sequences are as they were."""
    for kwargs in [{}, *VARIANTS.get(name, [])]:
        memory = make_memory(name, D, **{**SMALL[name], **kwargs})
        x = step_inputs("trials", memory)
        x = dataclasses.replace(x, embedding=x.embedding.float(), pose=x.pose.float())
        x.embedding[0, 3] = torch.nan
        x.embedding.requires_grad_()
        features, _ = memory(x, None)
        assert features[0, 3].isnan().any() and features[1:].isfinite().all(), kwargs
        features.sum().backward()


def test_registry() -> None:
    assert list(MEMORIES) == list(SMALL)
    assert all(MEMORIES.values())
    with pytest.raises(
        ValueError,
        match=r"unknown memory 'lstn'; did you mean 'lstm'\? Choose from \['none', 'window', .*, 'ct-log'\]",
    ):
        make_memory("lstn", 4)
    choices = r"choose from \['hidden_dim', 'layers', 'bptt'\]"
    with pytest.raises(ValueError, match=f"unknown setting 'heads' of the memory 'gru'; {choices}"):
        make_memory("gru", 4, heads=2)
    with pytest.raises(ValueError, match=r"unknown setting 'heads' of the memory 'none'; it has none"):
        make_memory("none", 4, heads=2)


def test_each_row_of_the_table_is_a_memory_with_its_config() -> None:
    needed = {"smt": ("pose",), "sm": ("pose",), "sat": ("place",), "t": ()}
    for name in MEMORIES:
        memory, spec = make(name), memory_spec(name)
        assert type(memory) is spec.memory and type(memory.config) is spec.config
        assert memory.input_dim == D
        by_hand = ("move",) if name == "t-fifo+a" else needed.get(name.split("-")[0], ())
        assert required_inputs(name) == memory.required_inputs == by_hand
        capacity = {"capacity": 5} if name.startswith(("sat-fifo", "t-")) else {}
        unbounded = name in ("relic", "memo", "lstm-on") or name.startswith("sat-pm")
        assert memory.bounded == (not capacity and not unbounded), name
        assert not capacity or make(name, **capacity).bounded
        if hasattr(memory.config, "poses"):
            assert required_inputs(name, poses=False) == make(name, poses=False).required_inputs == ()
    with pytest.raises(ValueError, match=r"unknown memory 'smtt'; did you mean 'smt'"):
        required_inputs("smtt")


#: Of a memory with the settings of `SMALL`: changes that do not fit, and what the error says.
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("lru", {"r_min": 1.0}, "r_min and r_max must be"),
    ("mlstm", {"dim": 10, "heads": 4}, r"dim must be a multiple of heads \(4\), got 10"),
    ("relic", {"dim": 20, "heads": 4}, r"dim must be an even multiple of heads \(4\), got 20"),
    ("ct", {"memory_length": 6}, r"memory_length must be a multiple of block_length \(4\), got 6"),
    ("ct", {"ratios": (3,)}, r"ratios\[0\] must divide the 4 vectors that leave at once, got 3"),
    ("ct", {"compressed_lengths": (3,)}, r"compressed_lengths\[0\] must be a multiple of the 2 vectors .*, got 3"),
    ("ct", {"compressed_lengths": (4, 2), "ratios": (2, 4)}, r"ratios\[1\] must divide the 2 vectors .*, got 4"),
    ("ct", {"compressed_lengths": (4, 2)}, r"ratios must have a number for each of .*\(4, 2\), got \(2,\)"),
    ("ct", {"compressed_lengths": (), "ratios": ()}, "compressed_lengths must be a list of integers, at least one"),
    ("ct", {"ratios": (0,)}, "each of ratios must be an integer of at least 1"),
    ("smt", {"time": "none", "tau": 1.0, "poses": False}, "time must not be 'none' without poses"),
    ("smt", {"tau": 0.0}, "tau must be one or several numbers above 0, got 0.0"),
    ("smt", {"tau": "long"}, "tau must be one or several numbers above 0, got 'long'"),
    ("smt", {"tau": (1.0, float("nan"))}, r"tau must be one or several numbers above 0, got \(1.0, nan\)"),
    ("smt", {"time": "sinusoidal", "tau": 5.0}, "tau must be 1.0 with time 'sinusoidal', which has no scale, got 5.0"),
    ("smt", {"heads": 3}, r"heads must divide dim \(8\), got 3"),
    ("smt-causal", {"dim": 8, "heads": 8}, r"dim must be an even multiple of heads \(8\), got 8"),
    ("frmqn", {"dim": 7}, "dim must be even, got 7"),
    ("t-fifo", {"dim": 9}, "dim must be even, got 9"),
    ("t-fifo", {"strategy": "lifo"}, "unknown setting 'strategy' of the memory 't-fifo'"),
    ("sat-fifo", {"place_code": "sine2d"}, r"columns must divide n_places \(3\) with place_code 'sine2d', got None"),
    ("sat-fifo", {"columns": 2}, "columns must be None with place_code 'sine1d', got 2"),
    ("sat-pm", {"capacity": 2}, r"capacity must be at least n_places \(3\) with the strategy 'quota', got 2"),
]


def test_wrong_settings_are_named() -> None:
    for name, settings, message in WRONG:
        with pytest.raises(ValueError, match=message):
            make(name, **settings)


def test_sizes_that_would_take_minutes_are_refused() -> None:
    sizes = {"hidden_dim", "layers", "dim", "mlp_dim", "cell_dim", "heads", "read_heads", "cells"}
    sizes |= {"moves", "n_places", "max_episode_steps", "block_length", "memory_length", "slots", "levels"}
    seen = set()
    for name in MEMORIES:
        for setting in sizes & {field.name for field in dataclasses.fields(memory_spec(name).config)}:
            seen.add(setting)
            with pytest.raises(ValueError, match=f"{setting} must be at most [0-9]+, got 1000000"):
                make_memory(name, 4, **{setting: 10**6})
    assert seen == sizes
