"""Episodes of Room Ballet as whole numbers: what every step shows and where, what is asked, and what is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NUM_SHAPES = 15
NUM_COLOURS = 19
NUM_CELLS = 9
#: Looks of dancers, numbered shape * 19 + colour.
NUM_DANCERS = NUM_SHAPES * NUM_COLOURS
#: Rows of the table of frames, numbered dancer * 9 + cell.
NUM_FRAMES = NUM_DANCERS * NUM_CELLS
#: The middle one of the 3 x 3 cells, counted row by row.
CENTRE_CELL = 4
#: Steps of a performance: 16 still ones, then 16 of the dance.
PERFORMANCE_STEPS = 32
STILL_STEPS = 16
#: Value of `Episodes.action` where no move of the walk led to a step.
NO_ACTION = 4


@dataclass(frozen=True, eq=False)
class Episodes:
    """B episodes of T steps in V visits.

    A visit is a stay of `PERFORMANCE_STEPS` steps in one room, except in Short Stay, where the walker may move at every step and each step is a
    visit (V = T). Step t shows part t % 32 of a performance in all tasks.

    Attributes:
        frame: int16, (B, T); row of `memenvs.room_ballet.frames.frame_table()`.
        place: int16, (B, T); the room, 0 ... rooms - 1.
        visit: int16, (B, T); the visit that the step belongs to, 0 ... V - 1.
        action: int8, (B, T); at the first step of a visit the move of the walk that led to it, 0 ... 3 (the task says which is which);
            `NO_ACTION` for none and at all other steps.
        query: int16, (B,); row of the still image of the dancer that is asked about, at the centre.
        label: int8, (B,); the dance that is the answer, 0 ... 7.
        task_id: int8, (B,); number in `memenvs.room_ballet.descriptions.STRATEGY_TASKS` where the task is one of the four, else 0.
        query_place: int16, (B,); room of the dancer that is asked about.
        query_visit: int16, (B,); its visit; -1 where a dancer stays in its room, so that no single visit is meant.
        visit_place: int16, (B, V); room of each visit.
        visit_dancer: int16, (B, V); look of the dancer of each visit, shape * 19 + colour.
        visit_dance: int8, (B, V); its dance.
        room_dancer: int16, (B, rooms); look of the dancer who lives in each room; -1 where every visit finds a new one.
        room_dance: int8, (B, rooms); its dance.
        key: int64, (B,); the number that each episode is made from.
    """

    frame: np.ndarray
    place: np.ndarray
    visit: np.ndarray
    action: np.ndarray
    query: np.ndarray
    label: np.ndarray
    task_id: np.ndarray
    query_place: np.ndarray
    query_visit: np.ndarray
    visit_place: np.ndarray
    visit_dancer: np.ndarray
    visit_dance: np.ndarray
    room_dancer: np.ndarray
    room_dance: np.ndarray
    key: np.ndarray

    def __len__(self) -> int:
        """B."""
        return len(self.query)
