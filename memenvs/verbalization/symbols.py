"""Symbols of the household, and the dictionary that numbers them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

Verb = Literal["move", "grasp", "putdown"]
Predicate = Literal["objectAt", "grasped"]

#: Spoken name of each object by its symbol.
OBJECTS = {
    "greencup": "green cup",
    "redcup": "red cup",
    "bluecup": "blue cup",
    "vitaminjuice": "multivitamin juice",
    "orangejuice": "orange juice",
    "appletea": "apple tea",
    "cocoa": "cocoa",
    "nesquik": "nesquik",
    "coffeefilters": "coffee filters",
    "vanillacookies": "vanilla cookies",
    "popcorn": "popcorn",
    "vitalis": "vitalis cereal",
    "corn": "corn",
    "oil": "oil",
}
#: Other spoken names that a person may use.
OBJECT_ALIASES = {"vitamin juice": "vitaminjuice", "cookies": "vanillacookies", "vitalis": "vitalis"}
#: Objects that are easily confused, by family.
FAMILIES = (
    ("greencup", "redcup", "bluecup"),
    ("vitaminjuice", "orangejuice", "appletea"),
    ("cocoa", "nesquik", "coffeefilters"),
    ("vanillacookies", "popcorn"),
    ("vitalis", "corn", "oil"),
)


class Location(NamedTuple):
    """A place of the household.

    Attributes:
        spoken: Its name in language.
        x: Where the robot stands, mm in the world frame.
        y: The same.
        yaw: Heading in which the robot stands there, degrees, counter-clockwise from +x.
        pick: True if a scene may have objects there.
        place: True if a goal may bring objects there.
    """

    spoken: str
    x: float
    y: float
    yaw: float
    pick: bool
    place: bool


#: Each location by its symbol.
LOCATIONS = {
    "roomcenter": Location("room center", 3000, 4500, 90, False, False),
    "sideboard": Location("sideboard", 1200, 6800, 135, True, True),
    "countertop": Location("countertop", 3300, 8200, 90, True, True),
    "sink": Location("sink", 2600, 9300, 90, False, True),
    "fridge": Location("fridge", 1500, 9200, 135, True, False),
    "dishwasher": Location("dishwasher", 3900, 9200, 45, True, False),
    "roundtable": Location("round table", 5600, 6200, 0, True, True),
    "smalltable": Location("small table", 5200, 3900, -45, False, True),
    "placesetting1": Location("setting place", 4700, 7300, 0, False, True),
    "placesetting2": Location("second setting place", 5200, 7300, 0, False, True),
}
PICK_LOCATIONS = tuple(name for name, location in LOCATIONS.items() if location.pick)
PLACE_LOCATIONS = tuple(name for name, location in LOCATIONS.items() if location.place)
#: Spoken name of each hand by its symbol.
HANDS = {"handleft3a": "left hand", "handright3a": "right hand"}
VERBS: tuple[Verb, ...] = ("move", "grasp", "putdown")
AGENT = "Armar3"

PAD, UNKNOWN = 0, 1
#: Numbers of statuses in key frames; -1 fills what a frame does not have.
NO_STATUS = -1
TASK_STATUSES = ("success", "abort", "failure")
ACTION_STATUSES = ("started", "success", "failure")
OBJECT_STATUSES = ("updated", "new")


class Goal(NamedTuple):
    """Atomic predicate of a planner's goal.

    Attributes:
        predicate: "objectAt" (an object is at a location) or "grasped" (an object is in a hand).
        object: Symbol of the object.
        place: Symbol of the location, or of the hand.
    """

    predicate: Predicate
    object: str
    place: str

    @property
    def symbol(self) -> str:
        """Its token, such as "objectAt(greencup,sink)"."""
        first, second = (self.object, self.place) if self.predicate == "objectAt" else (self.place, self.object)
        return f"{self.predicate}({first},{second})"


#: Every predicate of a goal by its symbol.
GOALS = {
    goal.symbol: goal
    for goal in (
        *(Goal("objectAt", symbol, place) for symbol in OBJECTS for place in LOCATIONS),
        *(Goal("grasped", symbol, hand) for symbol in OBJECTS for hand in HANDS),
    )
}
#: Every symbol that the household can produce; key frames hold indices into it until a `Dictionary` numbers them anew.
SYMBOLS = ("<pad>", "<unk>", *VERBS, AGENT, *LOCATIONS, *HANDS, *OBJECTS, *GOALS)
SYMBOL_IDS = {symbol: number for number, symbol in enumerate(SYMBOLS)}


@dataclass(frozen=True)
class Dictionary:
    """Numbers of the symbols that the training split has; all others are `UNKNOWN`.

    Attributes:
        symbols: Symbol of each number; "<pad>" is 0 and "<unk>" is 1.
    """

    symbols: tuple[str, ...] = SYMBOLS

    def __len__(self) -> int:
        return len(self.symbols)

    @classmethod
    def of(cls, ids: Iterable[int]) -> Dictionary:
        """Make the dictionary of these indices into `SYMBOLS`, in their order there."""
        return cls(tuple(SYMBOLS[number] for number in sorted({PAD, UNKNOWN, *map(int, ids)})))

    def table(self) -> np.ndarray:
        """Return the number of each of `SYMBOLS`, int16, (len(SYMBOLS),)."""
        numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
        return np.array([numbers.get(symbol, UNKNOWN) for symbol in SYMBOLS], np.int16)
