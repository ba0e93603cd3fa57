"""Scripted policies for Room Ballet: one answer for all queries, and the ideal observer."""

from __future__ import annotations

import math

import numpy as np

from memenvs.room_ballet.ballet_task import BalletTask
from memenvs.room_ballet.dances import DANCES
from memenvs.room_ballet.env import EMPTY_FRAME, RoomBallet
from memenvs.room_ballet.episodes import NO_ACTION, NUM_CELLS
from memenvs.room_ballet.frames import frame_rows
from memenvs.room_ballet.posterior import dance_posterior, steps_to_dance, steps_to_dancer
from memenvs.rules import AnswerRule, Rule
from memenvs.task import PHASE, BatchTask, Observation


class OneDance(AnswerRule):
    """Always the first dance, as good as any other without a memory.

    It is right in one of eight episodes.
    """

    def _answer(self, i: int, observation: Observation) -> int:
        return 0


class BalletObserver(Rule):
    """The likeliest dance by all frames and moves since `forget`.

    `posterior.dance_posterior` computes it. The query comes after a fixed number of steps, so the rule knows
    of each frame which step of a performance it shows. Where nothing is known, it answers the first of the likeliest
    dances.

    Its `bits` are 3 for each dance that can be queried; to know whose dance it is needs more. These dances are those
    of 8 rooms in Next and Opposite, of all rooms in Short Stay, of 9 of 18 visits in FIFO and LIFO, and of 7 in ABA.
    MVFO and LVFO ask for fewer than 18 visits, but rooms are not seen, so that it has to keep all 18. Multi-task needs
    what the largest of its tasks needs.

    `steps_back` counts to the oldest of the newest frames that single out the answer; in Next and Opposite to the
    newest frame of the queried dancer, if that is older.
    """

    way = "ideal"
    window = None

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, RoomBallet), "the registry names it for Room Ballet only"
        self._ballet = task.ballet
        self._sees_images = task.config.obs == "pixels"
        self.bits = math.log2(len(DANCES)) * _askable_dances(task.ballet)
        # Rings of the last T steps of each environment, at a query those of its episode alone. The next step is
        # written at `_count` modulo T.
        self._frame = np.full((task.num_envs, task.ballet.steps), -1, np.int16)
        self._move = np.full(self._frame.shape, NO_ACTION, np.int8)
        self._count = np.zeros(task.num_envs, np.int64)  # steps since `forget`
        self._steps_back = np.zeros(task.num_envs, np.int64)

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget all frames; see `Rule`."""
        self._count[env_mask] = 0

    def see(self, observation: Observation) -> None:
        """Keep the frame and the move of each step before the query; see `Rule`."""
        watches = np.flatnonzero(observation[PHASE] == 0)
        index = self._count[watches] % self._ballet.steps
        self._frame[watches, index] = self._rows("rgb" if self._sees_images else "frame", observation, watches)
        self._move[watches, index] = observation["move"][watches]
        self._count[watches] += 1

    def choose(self, observation: Observation) -> np.ndarray:
        """Answer the query with the likeliest dance; see `Rule`."""
        answer = np.zeros(len(observation[PHASE]), np.int64)
        self._steps_back = np.zeros(len(answer), np.int64)
        at_query = np.flatnonzero(observation[PHASE] == 1)
        if not len(at_query):
            return answer
        steps = self._ballet.steps
        since_query = np.arange(-steps, 0)  # of steps 0 ... T - 1
        index = (self._count[at_query, None] + since_query) % steps
        is_kept = since_query >= -self._count[at_query, None]
        frame = np.where(is_kept, self._frame[at_query[:, None], index], np.int16(-1))
        query = self._rows("query", observation, at_query)
        posterior = dance_posterior(self._ballet, frame, self._move[at_query[:, None], index], query)
        answer[at_query] = posterior.weight.argmax(1)
        self._steps_back[at_query] = np.maximum(
            steps_to_dance(frame, posterior.dancer), steps_to_dancer(frame, query // NUM_CELLS)
        )
        return answer

    def steps_back(self) -> np.ndarray:
        """Steps back to the frames that give the answer, int64, (N,); see the class."""
        return self._steps_back

    def _rows(self, key: str, observation: Observation, envs: np.ndarray) -> np.ndarray:
        """Rows of the frame table that environments observe under a key, int64, (K,); -1 for no dancer."""
        value = observation[key][envs]
        if self._sees_images:
            return frame_rows(value)
        return np.where(value == EMPTY_FRAME, -1, value)


def _askable_dances(ballet: BalletTask) -> int:
    """Number of dances that the query can be about, as far as the observer knows; see `BalletObserver`."""
    if ballet.queries_rooms:
        return int((ballet.answer_room >= 0).sum())
    half = ballet.visits // 2
    dances = {"fifo": ballet.visits - half, "lifo": half, "initial": ballet.rooms - 1}
    return max(dances.get(rule, ballet.visits) for rule in ballet.query_rules)
