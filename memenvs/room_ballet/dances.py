"""The eight dances, as the cells in which a dancer is seen."""

from __future__ import annotations

import numpy as np

from memenvs.room_ballet.episodes import CENTRE_CELL, PERFORMANCE_STEPS, STILL_STEPS

#: Moves on the 3 x 3 floor from the centre, by compass; N is up one row. In the order of labels.
DANCE_MOVES = {
    "circle_cw": "N E S S W W N N E E S S W W N E",
    "circle_ccw": "N W S S E E N N W W S S E E N W",
    "up_and_down": " ".join(["N S S N"] * 4),
    "left_and_right": " ".join(["E W W E"] * 4),
    "diagonal_uldr": " ".join(["NW SE SE NW"] * 4),
    "diagonal_urdl": " ".join(["NE SW SW NE"] * 4),
    "plus_cw": " ".join(["N S E W S N W E"] * 2),
    "plus_ccw": " ".join(["N S W E S N E W"] * 2),
}
DANCES = tuple(DANCE_MOVES)
_STEP = {"N": -3, "S": 3, "E": 1, "W": -1}


def _performances() -> np.ndarray:
    cells = np.full((len(DANCES), PERFORMANCE_STEPS), CENTRE_CELL, np.int8)
    for dance, moves in enumerate(DANCE_MOVES.values()):
        cells[dance, STILL_STEPS:] = CENTRE_CELL + np.cumsum(
            [sum(_STEP[letter] for letter in move) for move in moves.split()]
        )
    cells.flags.writeable = False
    return cells


#: int8, (8, 32); cell of the dancer (row by row) at each step of a performance: 16 times the centre, then the dance, after each move.
PERFORMANCE_CELLS = _performances()
