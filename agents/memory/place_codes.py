"""Codes of time and place: what is added to a memory token so that it is known when and where it was seen."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from memenvs.checks import check_int, choices_for

TimeIndex = Literal["step", "age", "slot", "mod32"]
PlaceCodeKind = Literal["sine1d", "sine2d", "learned1d", "learned2d"]
CLOCK = 32
"""Steps after which "mod32" starts again: the frames of a visit."""


def sinusoid(index: Tensor, dim: int) -> Tensor:
    """Codes of whole numbers: [sin(n w_0), ... sin(n w_{D/2-1}), cos(n w_0), ...] with w_j = 10000^(-2j / D).

    Args:
        index: int or float, (...).
        dim: Width D, even.

    Returns:
        float, (..., D); of norm sqrt(D / 2); float64 if `index` is, else float32.

    Raises:
        ValueError: The width is odd.

    Source:
        Vaswani et al., 2017, in two halves as in the release of the Spatially-Aware Transformer.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even for a sinusoid, got {dim}")
    angle = index if index.dtype == torch.float64 else index.float()
    pairs = torch.arange(0, dim, 2, device=index.device, dtype=angle.dtype)
    angle = angle[..., None] * 10_000.0 ** (-pairs / dim)
    return torch.cat([angle.sin(), angle.cos()], -1)


def time_indices(kind: TimeIndex, held: Tensor, places: Tensor | None = None, by_place: Tensor | None = None) -> Tensor:
    """The number whose code says when a unit was seen, for whole sequences that have come to their end.

    Args:
        kind: "step" (counted from the first), "age" (counted back from the last), "slot" (how many of those in memory lie behind it, which
            forgets true times) or "mod32" (the step modulo 32).
        held: bool, (B, N); which units are in memory. Only the slot depends on it.
        places: int, (B, N); for `by_place`.
        by_place: bool, (B,); where slots go by place, in the order in which places first appear, and by time within one; None: nowhere.

    Returns:
        int64, (B, N); 0 ... N - 1. Slots are 0 for units that are not in memory.

    Raises:
        ValueError: The kind is unknown, or places are missing.

    Source:
        Spatially-Aware Transformer: true steps as in the article, "slot" and "mod32" as its release does in its multi-task and Short Stay
        experiments. The release counts from the end.
    """
    if kind not in get_args(TimeIndex):
        raise ValueError(f"unknown time_index {kind!r}; {choices_for(kind, get_args(TimeIndex))}")
    batch, units = held.shape
    steps = torch.arange(units, device=held.device).expand(batch, -1)
    if kind == "step":
        return steps
    if kind == "age":
        return units - 1 - steps
    if kind == "mod32":
        return steps % CLOCK
    if by_place is None:
        behind = held.flip(1).cumsum(1).flip(1) - 1
        return torch.where(held, behind, 0)
    if places is None:
        raise ValueError("places must be given where slots go by place, got None")
    places = places.long()
    first = torch.full((batch, int(places.max()) + 1), units, device=held.device)
    first = first.scatter_reduce(1, places, steps, "amin")
    key = torch.where(by_place[:, None], first.gather(1, places), 0).masked_fill(~held, units)
    order = key.argsort(dim=1, stable=True)
    rank = torch.empty_like(order).scatter_(1, order, steps)
    return torch.where(held, held.sum(1, keepdim=True) - 1 - rank, 0)


class PlaceCode(nn.Module):
    """One vector for each place.

    Args:
        kind: "sine1d" (a sinusoid of the place's number), "sine2d" (of its row and its column), "learned1d" (a vector for each place) or
            "learned2d" (one for each row and each column). Two codes are averaged.
        n_places: P.
        dim: Width D.
        columns: Columns of the grid that the places make, numbered row by row; divides P; None for one dimension.

    Raises:
        ValueError: The kind is unknown, or the columns do not fit it.

    Source:
        Spatially-Aware Transformer, section 3.1 and appendix on place embeddings; numbers go forward, so that codes stay when P grows.
    """

    def __init__(self, kind: PlaceCodeKind, n_places: int, dim: int, columns: int | None = None) -> None:
        super().__init__()
        check_place_code(kind, n_places, columns)
        self.kind, self.n_places, self.columns = kind, n_places, columns
        entries = n_places if columns is None else columns + n_places // columns
        self.codes: Tensor
        if kind.startswith("learned"):
            self.codes = nn.Parameter(torch.randn(entries, dim))
        else:
            self.register_buffer("codes", sinusoid(torch.arange(entries).double(), dim).float(), persistent=False)

    def table(self) -> Tensor:
        """float, (P, D); the code of each place."""
        if self.columns is None:
            return self.codes
        place = torch.arange(self.n_places, device=self.codes.device)
        return (self.codes[place % self.columns] + self.codes[self.columns + place // self.columns]) / 2


def check_place_code(kind: str, n_places: int, columns: int | None) -> None:
    """Raises a ValueError unless such a code can be made; args as in `PlaceCode`."""
    if kind not in get_args(PlaceCodeKind):
        raise ValueError(f"unknown place_code {kind!r}; {choices_for(kind, get_args(PlaceCodeKind))}")
    check_int("n_places", n_places)
    check_int("columns", columns, or_none=True)
    if kind.endswith("1d") and columns is not None:
        raise ValueError(f"columns must be None with place_code {kind!r}, got {columns}")
    if kind.endswith("2d") and (columns is None or n_places % columns):
        raise ValueError(f"columns must divide n_places ({n_places}) with place_code {kind!r}, got {columns}")


def check_places(places: Tensor, n_places: int) -> None:
    """Raises a ValueError if a place is outside the table of `n_places`."""
    low, high = (int(places.min()), int(places.max())) if places.numel() else (0, 0)
    if low < 0 or high >= n_places:
        wrong = low if low < 0 else high
        raise ValueError(f"place must be 0 ... {n_places - 1}, as many as the table has (n_places), got {wrong}")
