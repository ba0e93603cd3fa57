"""Upper bounds of the sizes of memories."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from memenvs.agents.sizes import LARGEST, check_largest, check_sizes


@dataclass(frozen=True)
class Sizes:
    layers: int = 1
    capacity: int | None = None
    name: str = "x"


#: Largest value -> settings.
BY_HAND = {
    64: "levels",
    1_000: "layers text_layers cross_layers head_layers num_layers",
    65_536: "hidden_dim dim mlp_dim pose_dim cell_dim heads read_heads cells moves n_places columns chunk top_k "
    "memory_length block_length slots previous_action_dim net_arch inner critic_dim head_dim head_heads d_model "
    "d_ff d_kv num_heads "
    "every first questions text_positions vision_positions",
    524_288: "max_episode_steps",
    1_048_576: "n_centres",
    2_147_483_647: "capacity bptt checkpoint",
}


def test_the_largest_size_passes_and_one_more_is_named() -> None:
    by_hand = {name: largest for largest, names in BY_HAND.items() for name in names.split()}
    assert by_hand == LARGEST
    for name, largest in by_hand.items():
        check_largest({name: largest})
        check_largest({name: [1, largest], "other": largest + 1})
        for given in (largest + 1, [1, largest + 1]):
            with pytest.raises(ValueError) as refused:
                check_largest({name: given})
            assert str(refused.value) == f"{name} must be at most {largest}, got {given}"
    check_largest({"layers": None, "capacity": "many", "unknown": 10**9})


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
