"""Small settings of each memory, with which presets for a laptop learn.

It imports no torch, as presets do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memenvs.checks import is_int

_RECURRENT = {"hidden_dim": 64}
_SCENE = {"dim": 64}
_READER = {"dim": 64, "layers": 1, "heads": 2, "mlp_dim": 64}
_VECTORS = {"dim": 64, "layers": 2}
_RESIDUAL = {"dim": 64, "mlp_dim": 128, "layers": 2}
_XL = {"layers": 2, "heads": 2, "dim": 64, "mlp_dim": 256, "dropout": 0.0}
#: Memory -> settings with fewer than 0.3 million weights; those left out have their defaults.
SMALL: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    **dict.fromkeys(("gru", "lstm"), _RECURRENT),
    "relic": {"layers": 2, "heads": 2, "dim": 64, "mlp_dim": 256, "sink": "k0v0", "depth_dropout": 0.0},
    **dict.fromkeys(("trxl", "gtrxl"), _XL),
    "memo": {"layers": 2, "heads": 2, "dim": 64, "mlp_dim": 256},
    **dict.fromkeys(("mingru", "lru", "s5"), _RESIDUAL),
    **{name: {**_RESIDUAL, "heads": 2} for name in ("gated-deltanet", "mlstm")},
    "window": {"dim": 64},
    **dict.fromkeys(("smt", "smt-factorized", "smt-causal", "sm-pooling", "frmqn"), _SCENE),
    **dict.fromkeys(("t-fifo", "t-fifo+a", "sat-fifo", "sat-fifo-th", "sat-pm", "sat-pm-ph"), _READER),
    "dnc": {"hidden_dim": 64, "cells": 64, "cell_dim": 32, "read_heads": 2},
    **dict.fromkeys(("lstm-on", "lstm-o1"), _VECTORS),
    **dict.fromkeys(("ct", "ct-lt", "ml-ct-lt", "ct-log"), _READER),
}


#: Settings that grow with the size of a memory; the others stay those of `SMALL`.
WIDTHS = ("dim", "hidden_dim", "mlp_dim", "cell_dim")


def with_size(memory: str, size: str | int | None, settings: Mapping[str, Any], input_dim: int) -> dict[str, Any]:
    """Add the settings of a size to those of a memory.

    Args:
        memory: Name of the memory.
        size: "small"; or a number of weights, >= 1, so that memories can be compared: the widths of "small" are scaled
            until the memory has about as many. None adds nothing.
        settings: Settings of the memory, which stay.
        input_dim: Width of the embedding that the memory reads.

    Raises:
        ValueError: Another size, the memory is not of this package, or none of its widths comes near.
    """
    if size is None:
        return dict(settings)
    if (not is_number(size) and size != "small") or memory not in SMALL:
        sizes = (
            "'small', a whole number of weights of at least 1, or None"
            if memory in SMALL
            else f"None for the memory {memory!r}; give memory_kwargs"
        )
        raise ValueError(f"size must be {sizes}, got {size!r}")
    if size == "small" or memory == "none":
        return {**SMALL[memory], **settings}
    return _scaled(memory, int(size), settings, input_dim)


def is_number(size: Any) -> bool:
    """True for a size that is a number of weights; True itself is none."""
    return is_int(size) and size >= 1


def _scaled(memory: str, size: int, settings: Mapping[str, Any], input_dim: int) -> dict[str, Any]:
    """Scale the widths of a memory to about `size` weights."""

    def scaled(eighths: int) -> dict[str, Any]:
        widths = {name: value * eighths // 8 for name, value in SMALL[memory].items() if name in WIDTHS}
        return {**SMALL[memory], **widths, **settings}

    def weights(units: int) -> int:
        return count_weights(memory, scaled(unit * units), input_dim)

    unit = _unit(lambda eighths: count_weights(memory, scaled(eighths), input_dim))
    low, high = 1, 1  # in units; the number of weights grows with them
    while unit * high < 8 * 2**7 and weights(high) < size:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if weights(middle) < size else (low, middle)
    candidates = {weights(units): units for units in (low, max(1, low - 1))}
    closest = min(candidates, key=lambda weights: abs(weights - size))
    if not size / 2 <= closest <= 2 * size:
        bound = "at most " if weights(low) < size else "at least " if low == 1 else ""
        raise ValueError(
            f"size must be {bound}about {closest} weights for the memory {memory!r} with {dict(settings)} and an "
            f"embedding of {input_dim} numbers, got {size}"
        )
    return scaled(unit * candidates[closest])


def _unit(count: Callable[[int], int]) -> int:
    """Return the least eighths of the small widths that are allowed: the number of heads may have to divide them."""
    for eighths in range(1, 65):
        try:
            count(eighths)
        except ValueError:
            continue
        return eighths
    return 8  # no width is allowed: the error is that of the small ones


def count_weights(memory: str, settings: Mapping[str, Any], input_dim: int) -> int:
    """Weights of a memory for an embedding of `input_dim` numbers."""
    import torch  # not above: presets import this module

    from memenvs.agents.memory import make_memory

    with torch.device("meta"):  # no memory, no random numbers
        return sum(parameter.numel() for parameter in make_memory(memory, input_dim, **settings).parameters())
