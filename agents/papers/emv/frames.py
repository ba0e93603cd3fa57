"""Embedding of key frames: dates, symbols, statuses, signals, image latents.

Key frames, questions and answers share one vector for each symbol and number. What is learned about copying one value
into an answer, or about finding it in the memory, then holds for all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.papers.emv.slots import ANSWER_SLOTS
from memenvs.verbalization.language.tuples import MOST_UNITS, UNIT_SECONDS
from memenvs.verbalization.symbols import GOALS, HANDS, LOCATIONS, OBJECTS, PAD, SYMBOL_IDS, SYMBOLS

WIDTH = 32
"""Width of a shared vector."""
NAMED: dict[str, Sequence[str]] = {"object": tuple(OBJECTS), "location": tuple(LOCATIONS), "hand": tuple(HANDS)}
"""Slot of questions or answers -> the symbols that are its values, from 1 on."""
COUNTED = ("month", "date", "hour", "minute", "quantity")
"""Slots of answers that are numbers; they have tables of their own."""
PERIODS = (800.0, 365.25, 160.0, 72.0, 32.0, 15.0, 7.0, 3.0, 1.0, 1 / 3, 1 / 8, 1 / 24, 1 / 72, 1 / 288)
"""Periods of the features of a date, days: two years down to five minutes."""
FIELDS = {"month": (1, 0), "date": (2, 0), "hour": (4, 1), "minute": (5, 1)}
"""Part of a date that has shared vectors -> index of its field, and an offset, so that the number 0 means none."""
WIDTHS = {"dt": 160, "state": 16, "sub": 32, "latent": 64}
"""Width of the encoding of each part but symbols, whose vectors are shared."""
SLOTS = {"action": 1, "args": 5, "objects": 2}
"""Symbols of a key frame besides its goal."""
_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


class Codes(nn.Module):
    """One vector for each symbol, and for each value of the slots of answers that are numbers.

    The vector of a goal begins as the sum of those of its parts, each rotated by a matrix of its own. So an
    object in a goal resembles the same object elsewhere from the start.
    """

    def __init__(self) -> None:
        super().__init__()
        self.symbols = nn.Embedding(len(SYMBOLS), WIDTH)
        self.numbers = nn.ModuleDict({name: nn.Embedding(ANSWER_SLOTS[name], WIDTH) for name in COUNTED})
        turns = [nn.init.orthogonal_(torch.empty(WIDTH, WIDTH)) for _ in range(2)]
        weight = self.symbols.weight
        with torch.no_grad():
            for symbol, goal in GOALS.items():
                object, place = weight[SYMBOL_IDS[goal.object]], weight[SYMBOL_IDS[goal.place]]
                weight[SYMBOL_IDS[symbol]] = object @ turns[0] + place @ turns[1]
        for name, names in NAMED.items():
            ids = torch.tensor([PAD, *(SYMBOL_IDS[value] for value in names)])
            self.register_buffer(f"ids_{name}", ids, persistent=False)

    def number(self, name: str, values: Tensor) -> Tensor:
        """Look up values of a slot of `COUNTED`, int (...); float (..., WIDTH)."""
        return F.embedding(values, self.numbers[name].weight)  # type: ignore[arg-type]

    def values(self, name: str) -> Tensor:
        """Return the vectors of all values of a slot, the first one for none; float (values, WIDTH)."""
        if name in NAMED:
            return self.symbols.weight[self.get_buffer(f"ids_{name}")]
        table = self.numbers[name].weight
        assert isinstance(table, Tensor)
        return table


class CodedInput(nn.Module):
    """Slot of a question whose values have shared vectors.

    Args:
        name: The slot.
        dim: Width of the encoding.
    """

    def __init__(self, name: str, dim: int) -> None:
        super().__init__()
        self.name = name
        self.linear = nn.Linear(WIDTH, dim, bias=False)

    def forward(self, codes: Codes, values: Tensor) -> Tensor:
        """Encode values, int64 (...); float (..., dim)."""
        return F.embedding(values, self.linear(codes.values(self.name)))


class CodedOutput(nn.Module):
    """Slot of an answer whose values have shared vectors: scores are products with them.

    Args:
        name: The slot.
        dim: Width of what it is decoded from.
    """

    def __init__(self, name: str, dim: int) -> None:
        super().__init__()
        self.name = name
        self.linear = nn.Linear(dim, WIDTH)
        self.bias = nn.Parameter(torch.zeros(ANSWER_SLOTS[name]))

    def forward(self, codes: Codes, x: Tensor) -> Tensor:
        """Score values, float (..., dim); float (..., values)."""
        return F.linear(self.linear(x), codes.values(self.name), self.bias)


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
    """Linear layer over sines of a date, and over shared vectors of its parts.

    The sines say which dates are near, the vectors make a part easy to copy into an answer.

    Args:
        width: Width of the encoding.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * len(PERIODS) + 1, width)
        nn.init.normal_(self.linear.weight, std=len(PERIODS) ** -0.5)  # unit variance, as symbols have
        self.parts = nn.Linear(len(FIELDS) * WIDTH, width, bias=False)

    def forward(self, codes: Codes, fields: Tensor) -> Tensor:
        """Encode dates, int (..., 7), as in `days_since_2020`; float (..., width)."""
        days = days_since_2020(fields)
        angles = 2 * math.pi * days[..., None] / torch.tensor(PERIODS, dtype=torch.float64, device=days.device)
        features = torch.cat([angles.sin(), angles.cos(), days[..., None] / 1000], -1)
        periodic = self.linear(features.to(self.linear.weight.dtype))
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
        parts: Parts that are given; see `memenvs.verbalization.key_frames.PARTS`.
        sub_width: Number of signals.
        latent_width: Number of image latents.
        dim: Width of an embedded key frame.

    Source:
        Bärmann, KIT 2021, encoding of key frames; widths are ours.
    """

    def __init__(self, parts: Sequence[str], sub_width: int, latent_width: int, dim: int) -> None:
        super().__init__()
        self.parts = tuple(parts)
        self.has_dates, self.has_symbols = "dt" in parts, "goal" in parts
        modules: dict[str, nn.Module] = {"dt": DateEncoder(WIDTHS["dt"])} if self.has_dates else {}
        for part, numbers in (("state", 4), ("sub", sub_width), ("latent", latent_width)):
            if part in parts:
                modules[part] = nn.Linear(numbers, WIDTHS[part])
        self.encoders = nn.ModuleDict(modules)
        shared = self.has_symbols * (sum(SLOTS.values()) + 1) + self.has_dates  # vectors of symbols, and of a duration
        self.join = nn.Sequential(
            nn.Linear(sum(WIDTHS[part] for part in modules) + shared * WIDTH, dim), nn.LayerNorm(dim)
        )

    def forward(self, codes: Codes, frames: Mapping[str, Tensor], mask: Tensor) -> Tensor:
        """Embed key frames; where there is none, the embedding is 0.

        Args:
            codes: Shared vectors.
            frames: Part -> (B, T, ...), as in `memenvs.verbalization.key_frames.PARTS`.
            mask: bool, (B, T); True where there is a key frame. Histories of different lengths are mostly padding,
                which costs nothing.

        Returns:
            float, (B, T, dim).
        """
        parts = {part: values[mask] for part, values in frames.items()}  # (N, ...)
        encoded = []
        if self.has_dates:
            encoded.append(self.encoders["dt"](codes, parts["dt"]))
            encoded.append(codes.number("quantity", elapsed_units(frames["dt"])[mask]))
        if self.has_symbols:
            slots = [parts[name].long().reshape(-1, size) for name, size in SLOTS.items()]
            encoded.append(self._symbols(codes, torch.cat(slots, -1), parts["goal"].long()))
        dtype = next(self.join.parameters()).dtype
        encoded += [
            self.encoders[part](parts[part].to(dtype)) for part in ("state", "sub", "latent") if part in self.parts
        ]
        embedded = self.join(torch.cat(encoded, -1))
        return embedded.new_zeros(*mask.shape, embedded.shape[-1]).index_put((mask,), embedded)

    def _symbols(self, codes: Codes, slots: Tensor, goal: Tensor) -> Tensor:
        """Encode symbols, int (N, 8), and goals, int (N, 5) with 0 for none; float (N, 9 * WIDTH)."""
        is_goal = (goal > 0)[..., None]
        bag = (codes.symbols(goal) * is_goal).sum(-2) / is_goal.sum(-2).clamp(min=1)
        filled = codes.symbols(slots) * (slots > 0)[..., None]
        return torch.cat([filled.flatten(-2), bag], -1)
