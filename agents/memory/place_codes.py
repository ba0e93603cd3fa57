"""Codes of time and place: positional encodings that are added to memory tokens."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from memenvs.checks import check_int, choices_for

TimeIndex = Literal["step", "age", "slot", "mod32"]
PlaceCodeKind = Literal["sine1d", "sine2d", "learned1d", "learned2d"]
TIME_MODULUS = 32
"""Period of "mod32" in steps: a visit of Room Ballet has 32 frames, so that this is the frame within the visit."""


def sinusoid(index: Tensor, dim: int) -> Tensor:
    """Encode numbers by sinusoids: [sin(n w_0), ..., cos(n w_0), ...], w_j = 10000^(-2j / D).

    Args:
        index: int or float, (...); the numbers n.
        dim: Width D, even.

    Returns:
        float, (..., D); of norm sqrt(D / 2); float64 if `index` is, else float32.

    Raises:
        ValueError: The width is odd.

    Source:
        Vaswani et al., 2017, sines before cosines as in the release of the Spatially-Aware Transformer.
    """
    if dim % 2:
        raise ValueError(f"dim must be even for a sinusoid, got {dim}")
    angle = index if index.dtype == torch.float64 else index.float()
    pairs = torch.arange(0, dim, 2, device=index.device, dtype=angle.dtype)
    angle = angle[..., None] * 10_000.0 ** (-pairs / dim)
    return torch.cat([angle.sin(), angle.cos()], -1)


def time_indices(kind: TimeIndex, step: Tensor, newest: Tensor, in_memory: Tensor) -> Tensor:
    """Compute the row of the time table that is added to each memory token.

    Args:
        kind: "step" counts from the last reset, "age" counts back from the newest step, "slot" counts the newer tokens
            in memory (gaps left by evicted tokens vanish), "mod32" is the step modulo 32.
        step: int64, (B, N); step of each token, counted from the last reset, in ascending order; negative for none.
        newest: int64, (B, Q); step at which each query reads.
        in_memory: bool, (B, Q, N); tokens that each query reads. Only "slot" depends on it.

    Returns:
        int64, (B, N) for "step" and "mod32"; (B, Q, N) for "age" and "slot", which depend on the query. Never negative.

    Raises:
        ValueError: The kind is unknown.

    Source:
        Spatially-Aware Transformer: true steps as in the paper; "slot" and "mod32" as in its release's multi-task and
        Short Stay experiments. The release counts from the end.
    """
    step = step.clamp(min=0)
    if kind == "step":
        return step
    if kind == "mod32":
        return step % TIME_MODULUS
    if kind == "age":
        return (newest[..., None] - step[:, None]).clamp(min=0)
    if kind == "slot":
        # A cumulative sum from the newest token back; a token does not count itself.
        return (in_memory.flip(2).cumsum(2).flip(2) - 1).clamp(min=0)
    raise ValueError(f"unknown time_index {kind!r}; {choices_for(kind, get_args(TimeIndex))}")


def query_time_indices(kind: TimeIndex, now: Tensor) -> Tensor:
    """Compute the row of the time table that is added to each query.

    A query is the newest step: its age is 0, and no token is newer.

    Args:
        kind: As in `time_indices`.
        now: int64, (B, Q); step at which each query reads, counted from the last reset.

    Returns:
        int64, (B, Q).
    """
    if kind == "step":
        return now
    return now % TIME_MODULUS if kind == "mod32" else torch.zeros_like(now)


class PlaceCode(nn.Module):
    """Codes of places, one vector for each.

    Args:
        kind: "sine1d" (a sinusoid of the place's number), "sine2d" (of its row and of its column), "learned1d" (a
            vector for each place) or "learned2d" (one for each row and each column). In the 2d kinds, the vectors of
            row and column are averaged.
        n_places: Number of places P.
        dim: Width D.
        columns: Columns of the grid of places, which are numbered row by row; divides P. None for the 1d kinds.

    Raises:
        ValueError: The kind is unknown; `columns` is given for a 1d kind; or it does not divide P for a 2d kind.

    Source:
        Spatially-Aware Transformer, section 3.1 and appendix on place embeddings. Its release fills the table from the
        last place to the first. Here it is filled from the first on, so that a place keeps its code when P grows.
    """

    def __init__(self, kind: PlaceCodeKind, n_places: int, dim: int, columns: int | None = None) -> None:
        super().__init__()
        check_place_code(kind, n_places, columns)
        self.kind = kind
        self.n_places = n_places
        self.columns = columns
        entries = n_places if columns is None else columns + n_places // columns
        self.codes: Tensor  # (P, D); for a 2d kind (columns + rows, D), the columns first
        if kind.startswith("learned"):
            self.codes = nn.Parameter(torch.randn(entries, dim))
        else:
            self.register_buffer("codes", sinusoid(torch.arange(entries).double(), dim).float(), persistent=False)

    def table(self) -> Tensor:
        """Return the code of each place, float (P, D)."""
        if self.columns is None:
            return self.codes
        place = torch.arange(self.n_places, device=self.codes.device)
        return (self.codes[place % self.columns] + self.codes[self.columns + place // self.columns]) / 2


def check_place_code(kind: str, n_places: int, columns: int | None) -> None:
    """Raise a ValueError if an argument of `PlaceCode` is not allowed."""
    if kind not in get_args(PlaceCodeKind):
        raise ValueError(f"unknown place_code {kind!r}; {choices_for(kind, get_args(PlaceCodeKind))}")
    check_int("n_places", n_places)
    check_int("columns", columns, or_none=True)
    if kind.endswith("1d") and columns is not None:
        raise ValueError(f"columns must be None with place_code {kind!r}, got {columns}")
    if kind.endswith("2d") and (columns is None or n_places % columns):
        raise ValueError(f"columns must divide n_places ({n_places}) with place_code {kind!r}, got {columns}")


def check_places(places: Tensor, n_places: int) -> None:
    """Raise a ValueError if one of `places`, int (...), is outside the table of `n_places`."""
    wrong = places[(places < 0) | (places >= n_places)]
    if len(wrong):
        raise ValueError(
            f"place must be 0 ... {n_places - 1}, as many as the table has (n_places), got {int(wrong[0])}"
        )
