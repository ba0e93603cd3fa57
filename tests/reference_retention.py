"""A plain reference for the compiled strategies of `memenvs.retention`, one unit at a time."""

from __future__ import annotations


class ReferenceMemory:
    """A list of the stored units, oldest first.

    Args:
        strategy: A name in `memenvs.retention.STRATEGY_NAMES`.
        capacity: Number of units that it can store.
        n_places: Number of places.
        lifetime: True compares places by all units so far, False by stored units.
    """

    def __init__(self, strategy: str, capacity: int, n_places: int, lifetime: bool = False) -> None:
        self.strategy = strategy
        self.capacity = capacity
        self.quota = capacity // n_places
        self.lifetime = lifetime
        self.stored: list[tuple[int, int]] = []  # (number, place)
        self.arrived: list[int] = []  # place of every unit so far

    def write(self, place: int) -> list[int]:
        """Add the next unit; return the numbers of the units that are stored afterwards."""
        is_full = len(self.stored) == self.capacity
        if self.strategy == "lifo" and is_full:
            self.arrived.append(place)
            return [number for number, _ in self.stored]
        places = [each for _, each in self.stored]
        evicted: int | None = None  # the place whose oldest unit is evicted
        if self.strategy == "quota":
            evicted = place if places.count(place) == self.quota else None
        elif is_full:
            visits = self.arrived if self.lifetime else places
            candidates = sorted(set(places))  # `min` and `max` return the first, lowest, of equal places
            evicted = {
                "fifo": places[0],
                "lvfo": min(candidates, key=visits.count),
                "mvfo": max(candidates, key=visits.count),
            }[self.strategy]
        if evicted is not None:
            del self.stored[places.index(evicted)]
        self.stored.append((len(self.arrived), place))
        self.arrived.append(place)
        return [number for number, _ in self.stored]
