"""Episodes of Room Ballet as arrays of integers: frames, rooms, query and answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memenvs.query_task import Episodes

NUM_SHAPES = 15
NUM_COLOURS = 19
#: Cells of the floor of a room, 3 x 3, numbered row by row.
NUM_CELLS = 9
CENTRE_CELL = 4
#: Dancers are numbered shape * 19 + colour.
NUM_DANCERS = NUM_SHAPES * NUM_COLOURS
#: Frames are numbered dancer * 9 + cell.
NUM_FRAMES = NUM_DANCERS * NUM_CELLS
#: A performance: the dancer stands still for 16 steps, then dances for 16.
PERFORMANCE_STEPS = 32
STILL_STEPS = 16
#: Value of `BalletEpisodes.action` at steps without a move to another room.
NO_ACTION = 4


@dataclass(frozen=True, eq=False)
class BalletEpisodes(Episodes):
    """B episodes of T steps in V visits.

    A visit is a stay of `PERFORMANCE_STEPS` steps in one room. In Short Stay each step is a visit (V = T), because the
    agent may move at every step. In all tasks step t shows part t % 32 of a performance.

    Attributes:
        frame: int16, (B, T); row of `memenvs.room_ballet.frames.frame_table()`.
        place: int16, (B, T); the room, 0 ... rooms - 1.
        visit: int16, (B, T); the visit of each step, 0 ... V - 1.
        action: int8, (B, T); at the first step of a visit the move that led to it, 0 ... 3 (their meaning depends on
            the task); `NO_ACTION` at all other steps and where no move leads from room to room.
        query: int16, (B,); row of the frame of the queried dancer at the centre.
        label: int8, (B,); the answer, a dance, 0 ... 7.
        task_id: int8, (B,); index in `memenvs.room_ballet.descriptions.STRATEGY_TASKS`; 0 for other tasks.
        query_place: int16, (B,); room of the queried dancer.
        query_visit: int16, (B,); visit of the queried dancer; -1 where dancers stay in their rooms, which may have
            several visits.
        visit_place: int16, (B, V); room of each visit.
        visit_dancer: int16, (B, V); dancer of each visit, shape * 19 + colour.
        visit_dance: int8, (B, V); dance of each visit.
        room_dancer: int16, (B, rooms); dancer of each room; -1 where every visit has a new dancer.
        room_dance: int8, (B, rooms); dance of each room; -1 where every visit has a new dancer.
        key: int64, (B,); the number that determines the episode.
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
        """Number of episodes, B."""
        return len(self.query)
