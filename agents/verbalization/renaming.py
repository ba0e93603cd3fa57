"""Renaming of the objects and places of a history, for training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECTS, SYMBOL_IDS, SYMBOLS, Goal

_OBJECT_IDS = np.array([SYMBOL_IDS[name] for name in OBJECTS])
_LOCATION_IDS = np.array([SYMBOL_IDS[name] for name in LOCATIONS])
_AT_IDS = np.array([[SYMBOL_IDS[Goal("objectAt", each, place).symbol] for place in LOCATIONS] for each in OBJECTS])
_GRASPED_IDS = np.array([[SYMBOL_IDS[Goal("grasped", each, hand).symbol] for hand in HANDS] for each in OBJECTS])


@dataclass(frozen=True)
class Renaming:
    """New names in each of B histories.

    Attributes:
        symbols: int64, (B, len(SYMBOLS)); number of the symbol that takes the place of each.
        objects: int64, (B, len(OBJECTS) + 1); the same for values of the slot "object", where 0 is none.
        locations: int64, (B, len(LOCATIONS) + 1); the same for the slot "location".
    """

    symbols: np.ndarray
    objects: np.ndarray
    locations: np.ndarray

    def shard(self, part: slice) -> Renaming:
        """Select histories."""
        return Renaming(self.symbols[part], self.objects[part], self.locations[part])

    def of_frames(self, values: np.ndarray) -> np.ndarray:
        """Rename numbers of symbols, int (B, ...)."""
        return _look_up(self.symbols, values)

    def of_slots(self, rows: np.ndarray, object_column: int, location_column: int) -> np.ndarray:
        """Rename objects and locations of questions or answers, int (B, ..., slots)."""
        rows = rows.copy()
        rows[..., object_column] = _look_up(self.objects, rows[..., object_column])
        rows[..., location_column] = _look_up(self.locations, rows[..., location_column])
        return rows


def draw_renaming(count: int, rng: np.random.Generator) -> Renaming:
    """Draw new names for objects, and for locations among those with the same role.

    Args:
        count: Number of histories.
        rng: Source of randomness.
    """
    objects = np.argsort(rng.random((count, len(OBJECTS))), axis=1)
    locations = np.tile(np.arange(len(LOCATIONS)), (count, 1))
    roles = [(each.pick, each.place) for each in LOCATIONS.values()]
    for role in sorted(set(roles)):
        members = np.array([number for number, each in enumerate(roles) if each == role])
        locations[:, members] = members[np.argsort(rng.random((count, len(members))), axis=1)]
    symbols = np.tile(np.arange(len(SYMBOLS)), (count, 1))
    symbols[:, _OBJECT_IDS] = _OBJECT_IDS[objects]
    symbols[:, _LOCATION_IDS] = _LOCATION_IDS[locations]
    symbols[:, _AT_IDS] = _AT_IDS[objects[:, :, None], locations[:, None]]
    symbols[:, _GRASPED_IDS] = _GRASPED_IDS[objects]
    none = np.zeros((count, 1), np.int64)
    return Renaming(symbols, np.concatenate([none, objects + 1], 1), np.concatenate([none, locations + 1], 1))


def _look_up(tables: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Look up values, int (B, ...), in one table for each history, (B, entries)."""
    row = np.arange(len(tables)).reshape(-1, *[1] * (values.ndim - 1))
    return tables[row, values].astype(values.dtype)
