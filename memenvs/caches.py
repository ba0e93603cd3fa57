"""A cache that forgets what was not used for the longest time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RecentlyUsed(Generic[Key, Value]):
    """Values that were used last, by key.

    A pickle or copy has none of them, as they can be made again.

    Args:
        size: Number of values to keep at most, >= 1.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        """Number of values that are kept."""
        return len(self._values)

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key, which `make` makes where it is not kept."""
        if key not in self._values:
            value = make()
            self._values[key] = value
            if len(self._values) > self.size:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_values": OrderedDict()}
