"""Episodes of Ballet3D as arrays of integers: headings, dancers, dances and the query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.query_task import Episodes

SHAPES = ("box", "ball")
COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")
#: Dancers are numbered shape * 6 + colour.
NUM_DANCERS = len(SHAPES) * len(COLOURS)
#: Moves of each dance, from where the dancer rests: up (u), down (d), left (l), right (r) by 1 m as seen from the
#: centre of the room, or two of these at once.
DANCE_MOVES = {
    "circle_cw": "l u r r d l",
    "circle_ccw": "r u l l d r",
    "up_and_down": "u d u d u d",
    "left_and_right": "l r r l l r",
    "diagonals": "ul dr ur dl ul dr",
}
DANCES = tuple(DANCE_MOVES)
LOOP = 6
"""Moves of a dance, after which it begins again."""

#: Walls in the order in which the robot faces them; a place is the sector of 90 degrees around one of them.
WALLS = ("front", "right", "back", "left")
FRONT, RIGHT, BACK, LEFT = range(4)
#: Directions of the walls from the centre of the room, degrees.
WALL_HEADINGS_DEG = np.array([180.0, 90.0, 0.0, 270.0])
#: Steps that turn to the right, that stand still before the back wall, and that turn again.
TURNING, WATCHING, LEAVING = 45, 54, 27
NUM_STEPS = TURNING + WATCHING + LEAVING
#: Heading before the first turn, and bounds of each turn, degrees.
START_HEADING_DEG = 225.0
TURN_DEG = (3.0, 7.0)
#: Steps that a memory keeps in the published comparison of strategies: those of four dancers.
CAPACITY = 72


def _make_positions() -> np.ndarray:
    unit = {"u": (1, 0), "d": (-1, 0), "l": (0, -1), "r": (0, 1)}
    moves = [[np.sum([unit[letter] for letter in move], 0) for move in text.split()] for text in DANCE_MOVES.values()]
    positions = np.cumsum(moves, 1)
    positions.flags.writeable = False
    return positions


#: int64, (5, 6, 2); height and shift to the right (m) of the dancer after 1 ... 6 moves of each dance; after the sixth
#: it is at rest again.
DANCE_POSITIONS = _make_positions()
#: int64, (6, 2); all positions that occur: height (0 or 1 m), shift to the right (-1, 0 or 1 m).
POSITIONS = np.array([(up, side) for up in (0, 1) for side in (-1, 0, 1)])
REST = 1
"""Number of the position at rest."""
NUM_VIEWS = NUM_DANCERS * len(POSITIONS)


def position_numbers(positions: np.ndarray) -> np.ndarray:
    """Convert heights and shifts, int (..., 2), to rows of `POSITIONS`, int (...)."""
    return 3 * positions[..., 0] + positions[..., 1] + 1


@dataclass(frozen=True, eq=False)
class DanceEpisodes(Episodes):
    """B episodes of T = 126 steps with S dancers, one of whom is queried.

    `DanceWorld.draw` draws what the steps show. Rows of `DanceWorld.front_views` show one dancer from the front, in one
    of 6 positions: row = dancer * 6 + position.

    Attributes:
        heading: float64, (B, T); of the robot, rad, 0 to 2 pi.
        place: int16, (B, T); index in `WALLS` of the sector that the heading is in.
        dancer: int8, (B, S); the dancers in the order in which the robot faces them, shape * 6 + colour. The first is
            before the front wall, the second before the right wall, the last before the left wall, and the others,
            one after the other, before the back wall.
        dance: int8, (B, S); dance of each.
        task_id: int8, (B,); index in `memenvs.retention.STRATEGIES` of the strategy that keeps the answer.
        query_dancer: int8, (B,); number of the queried dancer in `dancer`, 0 ... S - 1.
        query: int16, (B,); row of `front_views`: the queried dancer at rest.
        answer: int16, (B, 6); rows of `front_views`: the queried dancer after each move of its dance.
        key: int64, (B,); the number that determines the episode.
    """

    heading: np.ndarray
    place: np.ndarray
    dancer: np.ndarray
    dance: np.ndarray
    task_id: np.ndarray
    query_dancer: np.ndarray
    query: np.ndarray
    answer: np.ndarray
    key: np.ndarray

    def __len__(self) -> int:
        """Number of episodes, B."""
        return len(self.key)
