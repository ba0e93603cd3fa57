"""Embedding of key frames: dates, symbols, statuses, signals, image latents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.verbalization.codes import WIDTH, Codes
from memenvs.agents.verbalization.config import Dates, SymbolEncoding
from memenvs.verbalization.language.structured import MOST_UNITS, UNIT_SECONDS

PERIODS = (800.0, 365.25, 160.0, 72.0, 32.0, 15.0, 7.0, 3.0, 1.0, 1 / 3, 1 / 8, 1 / 24, 1 / 72, 1 / 288)
"""Periods of the features of a date, days: two years down to five minutes."""
FIELDS = {"month": (1, 0), "date": (2, 0), "hour": (4, 1), "minute": (5, 1)}
"""Part of a date that has shared vectors -> index of its field, and an offset, so that the number 0 means none."""
WIDTHS = {"dt": 160, "state": 16, "sub": 32, "latent": 64}
"""Width of the encoding of each part but symbols, whose vectors are shared."""
SLOTS = {"action": 1, "args": 5, "objects": 2}
"""Symbols of a key frame besides its goal."""
GOALS = 5
_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def days_since_2020(fields: Tensor) -> Tensor:
    """Compute the days since 2020-01-01 00:00:00 of dates, with the time of day as fraction.

    Args:
        fields: int, (..., 7); year - 2020, month, day, weekday, hour, minute, second; before 2100.

    Returns:
        float64, (...).
    """
    year, month, day, _, hour, minute, second = fields.long().unbind(-1)
    before = torch.tensor(_DAYS_BEFORE_MONTH, device=fields.device)[(month - 1).clamp(min=0)]
    leap_day = (year % 4 == 0) & (month > 2)
    days = 365 * year + (year + 3).div(4, rounding_mode="floor") + before + leap_day + day - 1
    return days.double() + (3600 * hour + 60 * minute + second).double() / 86400


class DateEncoder(nn.Module):
    """Linear layer over the fields of a date, or over sines and shared vectors of its parts.

    The sines say which dates are near, the vectors make a part easy to copy into an answer.

    Args:
        width: Width of the encoding.
        dates: "periodic" or "integers".
    """

    def __init__(self, width: int, dates: Dates) -> None:
        super().__init__()
        self.is_periodic = dates == "periodic"
        self.linear = nn.Linear(2 * len(PERIODS) + 1 if self.is_periodic else 7, width)
        if self.is_periodic:
            nn.init.normal_(self.linear.weight, std=len(PERIODS) ** -0.5)  # unit variance, as symbols have
            self.parts = nn.Linear(len(FIELDS) * WIDTH, width, bias=False)

    def forward(self, codes: Codes, fields: Tensor) -> Tensor:
        """Encode dates, int (..., 7), as in `days_since_2020`; float (..., width)."""
        dtype = self.linear.weight.dtype
        if not self.is_periodic:
            return self.linear(fields.to(dtype))
        days = days_since_2020(fields)
        angles = 2 * math.pi * days[..., None] / torch.tensor(PERIODS, dtype=torch.float64, device=days.device)
        periodic = self.linear(torch.cat([angles.sin(), angles.cos(), days[..., None] / 1000], -1).to(dtype))
        parts = [codes.number(name, fields[..., index].long() + one) for name, (index, one) in FIELDS.items()]
        return periodic + self.parts(torch.cat(parts, -1))


def elapsed_units(fields: Tensor) -> Tensor:
    """Compute the time since the key frame before, as a value of the slot "quantity".

    Args:
        fields: int, (B, T, 7); dates of key frames, zeros where there is none.

    Returns:
        int64, (B, T); one more than its units of five seconds; 0 if it is unknown or longer than an answer can say.
    """
    seconds = (days_since_2020(fields) * 86400).round().long()
    units = (seconds[:, 1:] - seconds[:, :-1] + UNIT_SECONDS // 2) // UNIT_SECONDS
    is_known = (fields[:, :-1, 1] > 0) & (units <= MOST_UNITS)
    return F.pad((units + 1) * is_known, (1, 0))


class FrameEmbedding(nn.Module):
    """Embed key frames, each part by itself, then all of them together.

    Args:
        parts: Parts that are given; see `memenvs.verbalization.encoding.PARTS`.
        sub_width: Number of signals.
        latent_width: Number of image latents.
        dim: Width of an embedded key frame.
        symbol_encoding: See `AnswererConfig`.
        dates: "periodic" or "integers".

    Source:
        Bärmann, KIT 2021, encoding of key frames; widths are ours.
    """

    def __init__(
        self,
        parts: Sequence[str],
        sub_width: int,
        latent_width: int,
        dim: int,
        symbol_encoding: SymbolEncoding,
        dates: Dates,
    ) -> None:
        super().__init__()
        self.parts = tuple(parts)
        modules: dict[str, nn.Module] = {}
        if "dt" in parts:
            modules["dt"] = DateEncoder(WIDTHS["dt"], dates)
        self.has_elapsed = "dt" in parts and dates == "periodic"
        n_slots = sum(SLOTS.values())
        self.has_symbols, self.embeds_symbols = "goal" in parts, symbol_encoding == "embedding"
        self.has_whole_goals = symbol_encoding == "whole_goals"
        if self.has_symbols and not self.embeds_symbols:
            goals = 1 if self.has_whole_goals else GOALS
            modules["symbol"] = nn.Linear(n_slots + goals, (n_slots + 1) * WIDTH)
        for part, numbers in (("state", 4), ("sub", sub_width), ("latent", latent_width)):
            if part in parts:
                modules[part] = nn.Linear(numbers, WIDTHS[part])
        self.encoders = nn.ModuleDict(modules)
        total = sum(WIDTHS[part] for part in modules if part != "symbol")
        total += (self.has_symbols * (n_slots + 1) + self.has_elapsed) * WIDTH
        self.join = nn.Sequential(nn.Linear(total, dim), nn.LayerNorm(dim))

    def forward(self, codes: Codes, frames: Mapping[str, Tensor], mask: Tensor) -> Tensor:
        """Embed key frames; where there is none, the embedding is 0.

        Args:
            codes: Shared vectors.
            frames: Part -> (B, T, ...), as in `memenvs.verbalization.encoding.PARTS`. With "whole_goals" also
                "whole_goal", int64 (B, T); see `memenvs.agents.verbalization.whole_goals`.
            mask: bool, (B, T); True where there is a key frame. Histories of different lengths are mostly padding,
                which costs nothing.

        Returns:
            float, (B, T, dim).
        """
        there = {part: values[mask] for part, values in frames.items()}  # (N, ...)
        encoded = [self.encoders["dt"](codes, there["dt"])] if "dt" in self.parts else []
        if self.has_elapsed:
            encoded.append(codes.number("quantity", elapsed_units(frames["dt"])[mask]))
        if self.has_symbols:
            slots = [there[name].long().reshape(-1, size) for name, size in SLOTS.items()]
            goal = there["whole_goal"][..., None] if self.has_whole_goals else there["goal"].long()
            encoded.append(self._symbols(codes, torch.cat(slots, -1), goal))
        for part in ("state", "sub", "latent"):
            if part in self.parts:
                linear = self.encoders[part]
                encoded.append(linear(there[part].to(self._dtype())))
        embedded = self.join(torch.cat(encoded, -1))
        return embedded.new_zeros(*mask.shape, embedded.shape[-1]).index_put((mask,), embedded)

    def _dtype(self) -> torch.dtype:
        """Type of the weights."""
        return next(self.join.parameters()).dtype

    def _symbols(self, codes: Codes, slots: Tensor, goal: Tensor) -> Tensor:
        """Encode symbols, int (N, 8), and goals, int (N, G) with 0 for none; float (N, 9 * WIDTH)."""
        if not self.embeds_symbols:
            return self.encoders["symbol"](torch.cat([slots, goal], -1).to(self._dtype()))
        is_goal = (goal > 0)[..., None]
        bag = (codes.symbols(goal) * is_goal).sum(-2) / is_goal.sum(-2).clamp(min=1)
        filled = codes.symbols(slots) * (slots > 0)[..., None]
        return torch.cat([filled.flatten(-2), bag], -1)
