"""Settings of SAT's models and of the allocator: defaults, and what goes together.

`tests/agents/test_settings.py` tests the ranges of single settings.
"""

from typing import Any

import pytest

from memenvs.agents.papers.sat.config import AllocationConfig, BalletModelConfig, PictureModelConfig


def test_defaults_are_those_of_the_published_runs() -> None:
    model, views, allocation = BalletModelConfig(), PictureModelConfig(), AllocationConfig()
    assert [(config.chunk, config.top_k, config.heads) for config in (model, views)] == [(32, 4, 2), (8, 4, 2)]
    exploration = allocation.epsilon_start, allocation.epsilon_end, allocation.epsilon_steps
    assert (*exploration, allocation.loss_weight, allocation.rate) == (1.0, 0.2, 200_000, 0.1, 1.0)


def test_what_each_memory_is_and_keeps() -> None:
    with_task = {name: BalletModelConfig(memory=name) for name in ("dnc-first", "lstm-every", "gru")}
    assert {name: (config.sequence_memory, config.task_input) for name, config in with_task.items()} == {
        "dnc-first": ("dnc", "first"),
        "lstm-every": ("lstm", "every"),
        "gru": ("gru", None),
    }
    for memory, strategy in (("sat-fifo", "fifo"), ("sat-pm", "quota"), ("sat-pm-ph", "quota")):
        assert BalletModelConfig(memory=memory).strategy_name == strategy
    assert BalletModelConfig(memory="sat-pm", strategy="lifo").strategy_name == "lifo"
    assert PictureModelConfig(memory="sat-pm").strategy_name == "quota"
    assert PictureModelConfig(memory="sat-pm-ph").strategy_name == "fifo"


def test_what_does_not_go_together_is_named() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        *(({name: 0}, f"{name} must be .* at least 1, got 0") for name in ("dim", "layers", "heads", "mlp_dim")),
        *(({name: -1}, f"{name} must be an integer of at least 0, got -1") for name in ("first", "own_layers")),
        ({"capacity": "all"}, "capacity must be an integer of at least 1 or None, got 'all'"),
        ({"memory": "sat"}, "unknown memory 'sat'; did you mean 'sat-fifo'"),
        ({"strategy": "lru"}, "unknown strategy 'lru'; choose from"),
        ({"memory": "t-fifo+a", "time_index": "slot"}, "time_index must be .* with memory 't-fifo\\+a', got 'slot'"),
        ({"layers": 2, "own_layers": 2}, r"own_layers must be below layers \(2\), .*, got 2"),
        ({"memory": "dnc-every", "own_layers": 1}, "and 0 with a memory that reads one after the other, got 1"),
        ({"memory": "dnc-every", "capacity": 3}, "capacity and strategy must be left out .*, got 3 and None"),
        ({"memory": "dnc-first", "strategy": "fifo"}, "capacity and strategy must be left out .*, got task and 'fifo'"),
        ({"memory": "dnc-first", "keys_like_queries": True}, "must be False with .*'dnc-first' .*'calibrated', got T"),
        ({"initialisation": "release", "keys_like_queries": True}, "must be False .*'sat-fifo' .*'release', got True"),
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
    for more, message in (
        ({"epsilon_end": 1.01}, "epsilon_end must be 0 ... 1, got 1.01"),
        ({"rate": 0.0}, "rate must be > 0, got 0.0"),
        ({"split": 1}, "split must be left out where task_input is 'task', got 1"),
        ({"epsilon_steps": 0}, "epsilon_steps must be an integer of at least 1, got 0"),
        ({"loss_weight": 0.0}, "loss_weight must be above 0, got 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            AllocationConfig(**more)  # type: ignore[arg-type]


def test_settings_of_picture_models_that_do_not_go_together_are_named() -> None:
    zeros = ("place_layers", "flat_layers")
    refused: list[tuple[dict[str, Any], str]] = [
        *(({name: -1}, f"{name} must be an integer of at least 0, got -1") for name in zeros),
        ({"layers": 2, "place_layers": 2}, r"place_layers must be below layers \(2\), and 0 with .*, got 2"),
        ({"memory": "gru", "place_layers": 1}, "and 0 with a memory that reads one after the other, got 1"),
        ({"memory": "sat-pm-ph", "place_layers": 2, "flat_layers": 3}, r"at most place_layers \(2\) .*, got 3"),
        ({"place_layers": 2, "flat_layers": 1}, "and 0 with others, got 1"),
        ({"memory": "t-fifo+a", "strategy": "lvfo"}, "must be 'fifo' or 'lifo' with memory 't-fifo\\+a'.*got 'lvfo'"),
        ({"convolutions": "components", "initialisation": "release"}, "initialisation must be 'calibrated'"),
        ({"strategy": "newest"}, "unknown strategy 'newest'"),
        ({"place_code": "polar"}, "unknown place_code 'polar'"),
        ({"memory": "t-fifo", "place_code": "sine1d"}, "place_code must be left out"),
    ]
    for settings, message in refused:
        with pytest.raises(ValueError, match=message):
            PictureModelConfig(**settings)
