"""Upper bounds of the sizes of memories."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from memenvs.agents.sizes import check_sizes


@dataclass(frozen=True)
class Sizes:
    layers: int = 1
    capacity: int | None = None
    name: str = "x"


def test_types_and_ranges_of_declared_sizes() -> None:
    check_sizes(Sizes(1000, 2**31 - 1))
    with pytest.raises(ValueError, match=r"^layers must be an integer of at least 1, got 0$"):
        check_sizes(Sizes(0))
    with pytest.raises(ValueError, match=r"^capacity must be an integer of at least 1 or None, got 0$"):
        check_sizes(Sizes(1, 0))
    with pytest.raises(ValueError, match=r"^layers must be at most 1000, got 1001$"):
        check_sizes(Sizes(1001))
    with pytest.raises(TypeError, match="layers"):
        check_sizes(Sizes(None))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name"):
        check_sizes(Sizes(name=3))  # type: ignore[arg-type]
