"""Rules of Visual Match: always green, a note in the own motion, and a memory of the cue."""

from __future__ import annotations

import numpy as np

from memenvs.cue_rules import NONE, CueGuess, CueMemory, CueNotebook, CueView
from memenvs.cue_task import GOALS
from memenvs.task import BatchTask, Observation
from memenvs.visual_match.env import KINDS, VisualMatch
from memenvs.visual_match.rooms import FORWARD, LEFT, RIGHT, SYMBOLS, VIEW

#: Column of the view that is straight ahead, and its row with the agent.
_AHEAD, _HERE = VIEW // 2, VIEW - 1


class BallView(CueView):
    """Reads which balls are where."""

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, VisualMatch)
        self._has_planes = task.config.obs == "one_hot"

    def kinds(self, observation: Observation) -> np.ndarray:
        """Kind of each cell in view, int64, (N, 7, 7)."""
        image = observation["image"]
        if self._has_planes:
            return image.argmax(-1)
        # Objects and colours as Minigrid encodes them: the first two of three numbers distinguish the kinds.
        code = image[..., :2].astype(np.int64) @ (16, 1)
        return (code[..., None] == SYMBOLS[:, :2].astype(np.int64) @ (16, 1)).argmax(-1)

    def read(self, observation: Observation) -> tuple[np.ndarray, np.ndarray]:
        """Read the cue, and the number of green, blue and red balls; see `CueView`."""
        kinds = self.kinds(observation)
        count = np.isin(kinds, KINDS).sum((1, 2))
        has_colour = np.stack([(kinds == kind).any((1, 2)) for kind in KINDS[: len(GOALS)]], 1)  # green, blue
        cue = np.where((count == 1) & has_colour.any(1), has_colour.argmax(1), NONE)
        return cue, count

    def go_to(self, observation: Observation, colour: np.ndarray) -> np.ndarray:
        """Go to the ball of a colour; see `CueView`."""
        return approach(*find_ball(self.kinds(observation), colour))

    def go_on(self, observation: Observation) -> np.ndarray:
        """Go to the ball that is straight ahead, or else farthest ahead; see `CueView`."""
        is_ball = np.isin(self.kinds(observation), KINDS)
        is_straight = np.asarray(is_ball[:, _AHEAD].any(1))
        along = np.where(is_straight, is_ball[:, _AHEAD].argmax(1), is_ball.any(1).argmax(1))
        across = np.where(is_straight, _AHEAD, is_ball[np.arange(len(is_ball)), :, along].argmax(1))
        return approach(across - _AHEAD, _HERE - along, np.asarray(is_ball.any((1, 2))))

    def begins_choice(self, observation: Observation) -> np.ndarray:
        """Mark where three balls are side by side; see `CueView`."""
        return np.asarray(np.isin(self.kinds(observation)[:, _AHEAD - 1 : _AHEAD + 2, _HERE - 3], KINDS).all(1))


class GreenBall(CueGuess):
    """Take the green ball, and turn where none is in view.

    The action follows from the present view alone. It is right in half of the episodes.
    """

    def __init__(self, task: BatchTask) -> None:
        super().__init__(BallView(task))


class BallNotebook(CueNotebook):
    """Write the colour into the own motion.

    It turns left all along the stay for green, right for blue. Of the path to a ball each view says where it leads, so
    that only its first step needs the note. Where the agent is led, no action of its own is left to read.
    """

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task, BallView(task))


class BallMemory(CueMemory):
    """Remember the colour of the cue, and take the ball of this colour.

    If it has seen no cue, it takes the green one.
    """

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task, BallView(task))


def find_ball(kinds: np.ndarray, colour: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the ball of a colour in view.

    Args:
        kinds: int64, (N, 7, 7); kind of each cell in view.
        colour: int64, (N,); number of the colour.

    Returns:
        Cells to the right and cells ahead of the agent, int64, (N,), and whether there is one, bool, (N,).
    """
    is_ball = (kinds == KINDS[colour][:, None, None]).reshape(len(kinds), -1)
    across, along = np.divmod(is_ball.argmax(1), VIEW)
    return across - _AHEAD, _HERE - along, is_ball.any(1)


def approach(right: np.ndarray, ahead: np.ndarray, is_ball: np.ndarray) -> np.ndarray:
    """Actions on a short path to a ball; a turn to the left where there is none in view.

    The smaller of the two offsets comes first. So from where the choice begins the path leads along the row of the
    ball, and past no other ball.

    Args:
        right: int64, (N,); cells to the right of the agent.
        ahead: int64, (N,); cells ahead of it.
        is_ball: bool, (N,); whether there is a ball.

    Returns:
        int64, (N,).
    """
    turns = (right != 0) & (np.abs(right) < ahead) | (ahead <= 0)
    towards = np.where(turns, np.where(right < 0, LEFT, RIGHT), FORWARD)
    return np.where(is_ball, towards, LEFT).astype(np.int64)
