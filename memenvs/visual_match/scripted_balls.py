"""Rules of Visual Match: always green, a note in the own motion, and a memory of the cue."""

from __future__ import annotations

import numpy as np

from memenvs.rules import PREVIOUS_ACTION, Rule
from memenvs.task import BatchTask, Observation
from memenvs.visual_match.env import NUM_GOALS, VisualMatch
from memenvs.visual_match.rooms import BLUE, FORWARD, GREEN, LEFT, RED, RIGHT, SYMBOLS, VIEW

#: Kind of the ball of each colour, by number of the colour.
_KINDS = np.array([GREEN, BLUE, RED])
_GREEN, _BLUE = range(NUM_GOALS)
_NONE = -1
#: Column of the view that is straight ahead, and its row with the agent.
_AHEAD, _HERE = VIEW // 2, VIEW - 1


class _BallRule(Rule):
    """Reads the view: which balls are where."""

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


class GreenBall(_BallRule):
    """Take the green ball, and turn where none is in view.

    The action follows from the present view alone. It is right in half of the episodes.
    """

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        kinds = self.kinds(observation)
        return approach(*find_ball(kinds, np.full(len(kinds), _GREEN)))


class BallNotebook(_BallRule):
    """Write the colour into the own motion.

    It turns left all along the stay for green, right for blue.

    It sees the present and the last view, and its own previous action. After the cue it turns, and goes on as it
    turned. At the choice the direction of the last turn is the colour. Of the path to a ball each view says where it
    leads, so that only its first step needs the note. Where the agent is led, no action of its own is left to read.
    """

    way = "world"
    window = 2

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        self._cues = np.full((task.num_envs, 2), _NONE, np.int64)  # in the last view and in the present one

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the last view; see `Rule`."""
        self._cues[env_mask] = _NONE

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Forget the last view of the episode before; see `Rule`."""
        self.forget(env_mask)

    def see(self, observation: Observation) -> None:
        """Read the cue of the present view; see `Rule`."""
        self._cues[:, 0] = self._cues[:, 1]
        self._cues[:, 1] = _cue(self.kinds(observation))

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        kinds = self.kinds(observation)
        turned = observation[PREVIOUS_ACTION] - 1
        last = self._cues[:, 0]
        spin = np.where(last == _NONE, np.where(turned == RIGHT, RIGHT, LEFT), np.where(last == _BLUE, RIGHT, LEFT))
        across, along, is_ball = _ball_of_path(kinds)
        noted = find_ball(kinds, np.where(turned == RIGHT, _BLUE, _GREEN))
        is_first = np.isin(kinds[:, _AHEAD - 1 : _AHEAD + 2, _HERE - 3], _KINDS).all(1)  # three balls side by side
        steps = np.where(is_first, approach(*noted), approach(across, along, is_ball))
        return np.where(is_ball, steps, spin).astype(np.int64)


class BallMemory(_BallRule):
    """Remember the colour of the cue, and take the ball of this colour.

    If it has seen no cue, it takes the green one.

    It faces the cue as long as it is there, and turns during the stay. What it remembers is one bit.
    """

    way = "ideal"
    window = None
    bits = 1.0

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        self._cue = np.full(task.num_envs, _NONE, np.int64)
        self._age = np.zeros(task.num_envs, np.int64)  # steps since the cue was in view
        self._is_gone = np.zeros(task.num_envs, bool)  # True once there was no ball to choose in view
        self._needed: np.ndarray | None = None

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget the colour; see `Rule`."""
        self._cue[env_mask] = _NONE
        self._is_gone[env_mask] = False

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Forget the colour: every episode has a cue of its own."""
        self.forget(env_mask)

    def see(self, observation: Observation) -> None:
        """Remember the colour of a ball that is alone in view, until it is gone; see `Rule`."""
        kinds = self.kinds(observation)
        cue = np.where(self._is_gone, _NONE, _cue(kinds))
        self._cue = np.where(cue == _NONE, self._cue, cue)
        self._age = np.where(cue == _NONE, self._age + 1, 0)
        self._is_gone |= _num_balls(kinds) != 1

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next actions; see `Rule`."""
        kinds = self.kinds(observation)
        self._needed = np.where((_num_balls(kinds) > 0) & (self._cue != _NONE), self._age, 0)
        return approach(*find_ball(kinds, np.where(self._cue == _NONE, _GREEN, self._cue)))

    def steps_back(self) -> np.ndarray | None:
        """Steps since the cue was in view, where there is a ball to choose; see `Rule`."""
        return self._needed


def find_ball(kinds: np.ndarray, colour: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the ball of a colour in view.

    Args:
        kinds: int64, (N, 7, 7); kind of each cell in view.
        colour: int64, (N,); number of the colour.

    Returns:
        Cells to the right and cells ahead of the agent, int64, (N,), and whether there is one, bool, (N,).
    """
    is_ball = (kinds == _KINDS[colour][:, None, None]).reshape(len(kinds), -1)
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


def _ball_of_path(kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the ball to which the agent is on its way: straight ahead, or else farthest ahead; as `find_ball` has it."""
    is_ball = np.isin(kinds, _KINDS)
    is_straight = np.asarray(is_ball[:, _AHEAD].any(1))
    along = np.where(is_straight, is_ball[:, _AHEAD].argmax(1), is_ball.any(1).argmax(1))
    across = np.where(is_straight, _AHEAD, is_ball[np.arange(len(kinds)), :, along].argmax(1))
    return across - _AHEAD, _HERE - along, np.asarray(is_ball.any((1, 2)))


def _num_balls(kinds: np.ndarray) -> np.ndarray:
    """Number of green, blue and red balls in view, int64, (N,)."""
    return np.isin(kinds, _KINDS).sum((1, 2))


def _cue(kinds: np.ndarray) -> np.ndarray:
    """Colour of a green or blue ball that is alone in view, int64, (N,); -1 for none."""
    is_alone = _num_balls(kinds) == 1
    green, blue = ((kinds == _KINDS[colour]).any((1, 2)) for colour in (_GREEN, _BLUE))
    return np.select([is_alone & green, is_alone & blue], [_GREEN, _BLUE], _NONE)
