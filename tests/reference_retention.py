"""A plain reference for the compiled strategies of `memenvs.retention`, one unit at a time."""


class ReferenceMemory:
    """A list of the stored units, oldest first.

    Args:
        strategy: A name in `memenvs.retention.STRATEGY_NAMES`.
        capacity: Number of units that it can store.
        n_places: Number of places.
    """

    def __init__(self, strategy: str, capacity: int, n_places: int) -> None:
        self.strategy = strategy
        self.capacity = capacity
        self.quota = capacity // n_places
        self.stored: list[tuple[int, int]] = []  # (number, place)
        self.arrived = 0  # units so far

    def write(self, place: int) -> list[int]:
        """Add the next unit; return the numbers of the units that are stored afterwards."""
        is_full = len(self.stored) == self.capacity
        self.arrived += 1
        if self.strategy == "lifo" and is_full:
            return [number for number, _ in self.stored]
        places = [stored for _, stored in self.stored]
        evicted: int | None = None  # the place whose oldest unit is evicted
        if self.strategy == "quota":
            evicted = place if places.count(place) == self.quota else None
        elif is_full:
            candidates = sorted(set(places))  # `min` and `max` return the first, lowest, of equal places
            evicted = {
                "fifo": places[0],
                "lvfo": min(candidates, key=places.count),
                "mvfo": max(candidates, key=places.count),
            }[self.strategy]
        if evicted is not None:
            del self.stored[places.index(evicted)]
        self.stored.append((self.arrived - 1, place))
        return [number for number, _ in self.stored]
