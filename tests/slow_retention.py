"""What a memory keeps, written plainly and one unit at a time: the reference for the compiled strategies."""

from __future__ import annotations


class SlowMemory:
    """A list of (number, place) of what is kept, oldest first.

    Args:
        strategy: A name in `memenvs.retention.STRATEGY_NAMES`.
        capacity: Units that there is room for.
        n_places: Places in all.
        lifetime: Whether places are compared by how many units came, or by how many are kept.
    """

    def __init__(self, strategy: str, capacity: int, n_places: int, lifetime: bool = False) -> None:
        self.strategy, self.capacity, self.quota, self.lifetime = strategy, capacity, capacity // n_places, lifetime
        self.kept: list[tuple[int, int]] = []
        self.came: list[int] = []

    def write(self, place: int) -> list[int]:
        """The next unit comes; numbers of those that are kept then."""
        places = [where for _, where in self.kept]
        leaves: int | None = None  # the place whose oldest unit does
        if self.strategy == "quota":
            leaves = place if places.count(place) == self.quota else None
        elif len(self.kept) == self.capacity:
            if self.strategy == "lifo":
                self.came.append(place)
                return [number for number, _ in self.kept]
            counted = self.came if self.lifetime else places
            ranked = sorted(set(places), key=lambda each: (counted.count(each), each))
            most = max(map(counted.count, ranked))
            of_strategy = {
                "fifo": places[0],
                "lvfo": ranked[0],
                "mvfo": min(each for each in ranked if counted.count(each) == most),
            }
            leaves = of_strategy[self.strategy]
        if leaves is not None:
            del self.kept[places.index(leaves)]
        self.kept.append((len(self.came), place))
        self.came.append(place)
        return [number for number, _ in self.kept]
