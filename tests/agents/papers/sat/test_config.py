"""Settings of the models and allocators of Room Ballet: defaults, and what goes together."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict
from typing import Any

import pytest

from memenvs.agents.algorithms.allocator_config import AllocatorConfig
from memenvs.agents.papers.sat.config import AllocationConfig, BalletModelConfig, PictureModelConfig

EXPLORATION = {"epsilon_start": 1.0, "epsilon_end": 0.2, "epsilon_steps": 200_000, "loss_weight": 0.1}


def test_defaults_are_those_of_the_published_runs() -> None:
    reader = {"chunk": 32, "top_k": 4, "dim": 128, "layers": 4, "heads": 2, "mlp_dim": 128, "own_layers": 0}
    codes = {"time_index": "step", "place_code": "sine1d", "columns": None}
    memory = {"memory": "sat-fifo", "strategy": None, "capacity": "task", "first": 0, "every": 1, "dnc": {}}
    memory |= {"memory_kwargs": {}, "size": None}
    start = {"initialisation": "calibrated", "keys_like_queries": False}
    assert asdict(BalletModelConfig()) == {**memory, **codes, **start, **reader}
    learner = {"task_input": "task", "split": 0, "rate": 1.0, "only_kept": False}
    assert asdict(AllocationConfig()) == {**EXPLORATION, **learner}
    for config in (BalletModelConfig(), AllocationConfig()):
        with pytest.raises(FrozenInstanceError):
            config.loss_weight = 3  # type: ignore[misc, union-attr]
        with pytest.raises(TypeError, match="positional argument"):  # nothing hangs on the order of settings
            type(config)("sat-fifo")


def test_what_each_memory_encodes_and_keeps() -> None:
    uses = {}
    tokens = ("t-fifo", "t-fifo+a", "sat-fifo", "sat-fifo-th", "sat-pm", "sat-pm-ph")
    for name in (*tokens, "dnc-first", "dnc-every", "lstm"):
        config = BalletModelConfig(memory=name)
        uses[name] = config.reads_in_turn, config.uses_place, config.uses_moves, config.strategy_name
    assert uses == {
        "t-fifo": (False, False, False, "fifo"),
        "t-fifo+a": (False, False, True, "fifo"),
        "sat-fifo": (False, True, False, "fifo"),
        "sat-fifo-th": (False, True, False, "fifo"),
        "sat-pm": (False, True, False, "quota"),
        "sat-pm-ph": (False, True, False, "quota"),
        "dnc-first": (True, True, False, "fifo"),
        "dnc-every": (True, True, False, "fifo"),
        "lstm": (True, True, False, "fifo"),
    }
    with_task = {name: BalletModelConfig(memory=name) for name in ("dnc-first", "lstm-every", "gru")}
    assert {name: (config.sequence_memory, config.task_input) for name, config in with_task.items()} == {
        "dnc-first": ("dnc", "first"),
        "lstm-every": ("lstm", "every"),
        "gru": ("gru", None),
    }
    assert BalletModelConfig(memory="sat-pm", strategy="lifo").strategy_name == "lifo"


def test_the_smallest_and_largest_values_are_allowed() -> None:
    allowed: list[dict[str, Any]] = [
        {name: 1 for name in ("every", "chunk", "top_k", "dim", "layers", "heads", "mlp_dim", "capacity")},
        {"capacity": None},
        {"own_layers": 3},
        {"memory": "dnc-first", "capacity": None, "dnc": {"cells": 3}},
        {"memory": "t-fifo", "time_index": "slot"},
        {"memory": "t-fifo+a", "time_index": "age"},
        {"memory": "sat-fifo", "place_code": "sine2d", "columns": 2},
        {"keys_like_queries": True},
        {"initialisation": "release"},
    ]
    for settings in allowed:
        config = BalletModelConfig(**settings)
        assert {name: getattr(config, name) for name in settings} == settings
    AllocatorConfig(hidden_dim=1, epsilon_start=0.0, epsilon_end=1.0, epsilon_steps=1, learning_rate=0.01)


def test_what_does_not_go_together_is_named() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        *(({name: 0}, f"{name} must be .* at least 1, got 0") for name in ("dim", "layers", "heads", "mlp_dim")),
        *(({name: -1}, f"{name} must be an integer of at least 0, got -1") for name in ("first", "own_layers")),
        *(({"capacity": no}, f"capacity must be an integer of at least 1 or None, got {no!r}") for no in (0, "all")),
        ({"memory": "sat"}, "unknown memory 'sat'; did you mean 'sat-fifo'"),
        ({"strategy": "lru"}, "unknown strategy 'lru'; choose from"),
        ({"every": 0}, "every must be an integer of at least 1, got 0"),
        ({"dnc": {"cells": 3}}, "dnc must be left out with memory 'sat-fifo'"),
        ({"memory": "t-fifo+a", "time_index": "slot"}, "time_index must be .* with memory 't-fifo\\+a', got 'slot'"),
        (
            {"layers": 2, "own_layers": 2},
            r"own_layers must be below layers \(2\), and 0 with a memory .*, got 2",
        ),
        ({"memory": "dnc-every", "own_layers": 1}, "and 0 with a memory that reads one after the other, got 1"),
        ({"memory": "dnc-every", "capacity": 3}, "capacity and strategy must be left out .*, got 3 and None"),
        ({"memory": "dnc-first", "strategy": "fifo"}, "capacity and strategy must be left out .*, got task and 'fifo'"),
        (
            {"memory": "dnc-first", "keys_like_queries": True},
            "must be False with .*'dnc-first' .*'calibrated', got True",
        ),
        (
            {"initialisation": "release", "keys_like_queries": True},
            "must be False with .*'sat-fifo' .*'release', got T",
        ),
        ({"memory": "lstm-last"}, "unknown memory 'lstm-last'; did you mean"),
        ({"memory": "lstm", "dnc": {"cells": 3}}, "dnc must be left out with memory 'lstm'"),
        ({"memory": "lstm", "memory_kwargs": {"cells": 3}}, "unknown setting 'cells' of the memory 'lstm'"),
        ({"memory_kwargs": {"layers": 3}}, "memory_kwargs must be left out with memory 'sat-fifo', whose sizes are"),
        ({"size": 50_000, "dim": 64}, "dim and mlp_dim must be left out with size 50000 .*, got 64 and 128"),
        ({"size": "small", "mlp_dim": 64}, "dim and mlp_dim must be left out with size 'small' .*, got 128 and 64"),
        ({"memory": "t-fifo", "columns": 3}, "place_code and columns must be left out .*, got 'sine1d' and 3"),
        ({"memory": "t-fifo+a", "place_code": "sine2d"}, "columns must be left out .*, got 'sine2d' and None"),
    ]
    for settings, message in refused:
        with pytest.raises(ValueError, match=message):
            BalletModelConfig(**settings)
    for name in ("epsilon_start", "epsilon_end"):
        for value, kind in ((-0.01, AllocatorConfig), (1.01, AllocationConfig)):
            with pytest.raises(ValueError, match=f"{name} must be 0 ... 1, got {value}"):
                kind(**{name: value})
    for more, message in (
        ({"rate": 0.0}, "rate must be > 0, got 0.0"),
        ({"split": 1}, "split must be left out where task_input is 'task', got 1"),
        ({"epsilon_steps": 0}, "epsilon_steps must be an integer of at least 1, got 0"),
        ({"loss_weight": 0.0}, "loss_weight must be above 0, got 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            AllocationConfig(**more)  # type: ignore[arg-type]


def test_settings_of_picture_models() -> None:
    sizes = {"chunk": 8, "top_k": 4, "dim": 128, "layers": 4, "heads": 2, "mlp_dim": 128}
    memory = {"memory": "sat-fifo", "strategy": None, "capacity": "task", "place_code": None}
    memory |= {"memory_kwargs": {}, "size": None}
    layers = {"initialisation": "calibrated", "convolutions": "learned", "place_layers": 0, "flat_layers": 0}
    assert asdict(PictureModelConfig()) == {**memory, "move_query": "displacement", **layers, **sizes}
    allowed: list[dict[str, Any]] = [
        dict.fromkeys((*sizes, "capacity"), 1),
        {"capacity": None},
        {"memory": "t-fifo", "strategy": "lifo"},
        {"strategy": "lvfo", "place_code": "sine2d"},
        {"layers": 2, "place_layers": 1},
        {"memory": "sat-pm-ph", "place_layers": 3, "flat_layers": 3},
    ]
    for settings in allowed:
        config = PictureModelConfig(**settings)
        assert {name: getattr(config, name) for name in settings} == settings
    assert PictureModelConfig(memory="sat-pm").strategy_name == "quota"
    assert PictureModelConfig(memory="sat-pm-ph").strategy_name == "fifo"
    zeros = ("place_layers", "flat_layers")
    refused: list[tuple[dict[str, Any], str]] = [
        *(({name: 0}, f"{name} must be an integer of at least 1( or None)?, got 0") for name in (*sizes, "capacity")),
        *(({name: -1}, f"{name} must be an integer of at least 0, got -1") for name in zeros),
        ({"layers": 2, "place_layers": 2}, r"place_layers must be below layers \(2\), and 0 with .*, got 2"),
        ({"memory": "gru", "place_layers": 1}, "and 0 with a memory that reads one after the other, got 1"),
        ({"memory": "sat-pm-ph", "place_layers": 2, "flat_layers": 3}, r"at most place_layers \(2\) .*, got 3"),
        ({"place_layers": 2, "flat_layers": 1}, "and 0 with others, got 1"),
        ({"memory": "t-fifo+a", "strategy": "lvfo"}, "must be 'fifo' or 'lifo' with memory 't-fifo\\+a'.*got 'lvfo'"),
        ({"dim": 10**9}, "dim must be at most"),
        ({"convolutions": "components", "initialisation": "release"}, "initialisation must be 'calibrated'"),
        ({"strategy": "newest"}, "unknown strategy 'newest'"),
        ({"place_code": "polar"}, "unknown place_code 'polar'"),
        ({"memory": "t-fifo", "place_code": "sine1d"}, "place_code must be left out"),
    ]
    for settings, message in refused:
        with pytest.raises(ValueError, match=message):
            PictureModelConfig(**settings)
    uses = {}
    for name in ("t-fifo", "t-fifo+a", "sat-fifo", "sat-pm-ph"):
        config = PictureModelConfig(memory=name)
        uses[name] = config.uses_place, config.uses_moves, config.is_chunked
    assert uses == {
        "t-fifo": (False, False, False),
        "t-fifo+a": (False, True, False),
        "sat-fifo": (True, False, False),
        "sat-pm-ph": (True, False, True),
    }
