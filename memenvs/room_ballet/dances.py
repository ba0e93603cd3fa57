"""The eight dances, as cells of the floor."""

from __future__ import annotations

import numpy as np

from memenvs.room_ballet.episodes import CENTRE_CELL, PERFORMANCE_STEPS, STILL_STEPS

#: Moves of each dance on the 3 x 3 floor, from the centre, by compass; N is one row up. Their order is that of the
#: labels.
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
#: Change of the cell's number by compass letter; cells are numbered row by row.
_CELL_STEP = {"N": -3, "S": 3, "E": 1, "W": -1}


def _make_performances() -> np.ndarray:
    cells = np.full((len(DANCES), PERFORMANCE_STEPS), CENTRE_CELL, np.int8)
    for dance, moves in enumerate(DANCE_MOVES.values()):
        steps = [sum(_CELL_STEP[letter] for letter in move) for move in moves.split()]
        cells[dance, STILL_STEPS:] = CENTRE_CELL + np.cumsum(steps)
    cells.flags.writeable = False
    return cells


#: int8, (8, 32); cell of the dancer at each step of a performance, read-only: 16 times the centre, then the cell after
#: each move of the dance.
PERFORMANCE_CELLS = _make_performances()
