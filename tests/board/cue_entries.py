"""Entries on the test set of the toy task of one bit."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.board.entry import Entry, make_entry, write_entry
from memenvs.board.replay import record_actions, replay
from tests.certificates.cue import registered

CUE = "toy/Cue-v0"
ABOUT: dict[str, Any] = {
    "memory": "bit",
    "settings": "0123456789abcdef",
    "author": "Ada",
    "link": "https://example.org/bit",
}


def remembers(observation: Any, state: Any, trial_start: np.ndarray, episode_start: np.ndarray) -> Any:
    """Answer with the cue of the episode."""
    bit = np.zeros(len(trial_start), np.int64) if state is None else state
    bit = np.where(observation["cue"] > 0, observation["cue"] - 1, bit)
    return bit, bit


def forgets(observation: Any, state: Any, trial_start: np.ndarray, episode_start: np.ndarray) -> Any:
    """Answer 1."""
    return np.ones(len(trial_start), np.int64), state


def made(name: str, agent: Any = remembers, seeds: tuple[int, ...] = (0,), **about: Any) -> Entry:
    """Entry of an agent that plays the test set once for each seed."""
    return make_entry(
        name, CUE, [replay(CUE, record_actions(CUE, agent), seed=seed) for seed in seeds], **ABOUT | about
    )


@contextmanager
def cue_board(folder: Path, *names: str, **registration: Any) -> Iterator[Path]:
    """A board with an entry of each name, while the id is registered."""
    with registered(**{"defaults": {"trial_episodes": 3, "delay": 2}, **registration}):
        for name in names:
            write_entry(folder / "board", made(name))
        yield folder / "board"
