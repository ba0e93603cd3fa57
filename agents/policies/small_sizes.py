"""Small settings of each memory, with which presets for a laptop learn.

It imports no torch, as presets do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def with_size(memory: str, size: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Add the settings of a size to those of a memory.

    Args:
        memory: Name of the memory.
        size: "small"; None adds nothing.
        settings: Settings of the memory, which stay.

    Raises:
        ValueError: Another size, or the memory is not of this package.
    """
    if size is None:
        return dict(settings)
    if size != "small" or memory not in SMALL:
        sizes = "'small' or None" if memory in SMALL else f"None for the memory {memory!r}; give memory_kwargs"
        raise ValueError(f"size must be {sizes}, got {size!r}")
    return {**SMALL[memory], **settings}
