"""Upper bounds of the sizes of memories, policies and other networks."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args, get_type_hints

from memenvs.checks import check_fields, check_int, is_int

LARGEST = {
    **dict.fromkeys(("layers", "text_layers", "cross_layers", "head_layers", "num_layers"), 1000),
    **dict.fromkeys(("steps", "segment_length", "summary_tokens"), 2**16),
    "max_episode_steps": 2**19,  # rows of ReLIC's table of positions
    **dict.fromkeys(
        ("hidden_dim", "dim", "mlp_dim", "cell_dim", "heads", "read_heads", "cells", "moves", "n_places"),
        2**16,
    ),
    **dict.fromkeys(("columns", "chunk", "top_k", "memory_length", "block_length", "slots"), 2**16),
    **dict.fromkeys(("inner", "critic_dim", "head_dim", "head_heads", "d_model", "d_ff", "d_kv", "num_heads"), 2**16),
    **dict.fromkeys(("every", "first", "questions", "text_positions", "vision_positions"), 2**16),
    "levels": 64,
    "n_centres": 2**20,
    **dict.fromkeys(("capacity", "bptt", "checkpoint"), 2**31 - 1),  # steps; no size of a weight
    "previous_action_dim": 2**16,
    "net_arch": 2**16,
}
"""Setting -> its largest value. Weights of larger sizes take minutes to make, or more memory than a computer has."""


def check_largest(settings: Mapping[str, Any]) -> None:
    """Raise a ValueError if a network would be too large to make.

    Args:
        settings: Name -> value; a list of sizes is checked one by one. Names that `LARGEST` lacks are ignored.
    """
    for name, largest in LARGEST.items():
        value = settings.get(name)
        sizes: list[Any] = value if isinstance(value, list) else [value]
        if any(is_int(size) and size > largest for size in sizes):
            raise ValueError(f"{name} must be at most {largest}, got {value}")


def check_sizes(settings: Any) -> None:
    """Check the types of all settings of a memory, and the range of its sizes.

    Args:
        settings: Config of a memory, a frozen dataclass.

    Raises:
        TypeError: A setting has another type than is declared.
        ValueError: A size is below 1 or above the largest one.
    """
    check_fields(settings)
    hints = get_type_hints(type(settings))
    for name in (name for name in LARGEST if name in hints):
        check_int(name, getattr(settings, name), or_none=NoneType in get_args(hints[name]))
    check_largest(vars(settings))
