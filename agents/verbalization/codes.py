"""Vectors of symbols and numbers that key frames, questions and answers share.

What is learned about copying one value into an answer, or about finding it in the memory, then holds for all.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.verbalization.answer_slots import ANSWER_SLOTS
from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECTS, PAD, SYMBOL_IDS, SYMBOLS, Goal

WIDTH = 32
"""Width of a vector."""
NAMED: dict[str, Sequence[str]] = {"object": tuple(OBJECTS), "location": tuple(LOCATIONS), "hand": tuple(HANDS)}
"""Slot of questions or answers -> the symbols that are its values, from 1 on."""
COUNTED = ("month", "date", "hour", "minute", "quantity")
"""Slots of answers that are numbers; they have tables of their own."""
_GOALS = {
    SYMBOL_IDS[goal.symbol]: (SYMBOL_IDS[goal.object], SYMBOL_IDS[goal.place])
    for goal in (
        Goal(predicate, each, place)  # type: ignore[arg-type]
        for predicate, places in (("objectAt", tuple(LOCATIONS)), ("grasped", tuple(HANDS)))
        for each in OBJECTS
        for place in places
    )
}


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
            for number, (item, place) in _GOALS.items():
                weight[number] = weight[item] @ turns[0] + weight[place] @ turns[1]
        for name, names in NAMED.items():
            ids = torch.tensor([PAD, *(SYMBOL_IDS[each] for each in names)])
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
