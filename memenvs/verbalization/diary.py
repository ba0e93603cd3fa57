"""A history in words: its episodes and its key frames, for people."""

from __future__ import annotations

from typing import NamedTuple

from memenvs.verbalization.dates import as_datetime
from memenvs.verbalization.episodes import Episode, History
from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECTS, SYMBOLS

_STATUSES = ("begins", "done", "fails")


class KeyFrameText(NamedTuple):
    """A key frame in words.

    Attributes:
        episode: Index of its episode.
        time: Second since 2020-01-01 00:00:00.
        text: Such as "grasp the red cup at the sink: done".
    """

    episode: int
    time: int
    text: str


def date_text(time: int) -> str:
    """Write a second since 2020-01-01 00:00:00 as "Wed 25 Nov 2020 14:48"."""
    return f"{as_datetime(time):%a %d %b %Y %H:%M}"


def describe_episode(episode: Episode) -> str:
    """Describe the goals of an episode and what became of them."""
    texts = []
    for goal, reached in zip(episode.goals, episode.outcomes, strict=True):
        object = f"the {OBJECTS[goal.object]}"
        if goal.predicate == "objectAt":
            text = f"move {object} to the {LOCATIONS[goal.place].spoken}"
        else:
            text = f"grasp {object} with the {HANDS[goal.place]}"
        texts.append(text if reached else f"{text} (failed)")
    return ", ".join(texts)


def describe_key_frames(history: History) -> list[KeyFrameText]:
    """Describe every key frame of a history, in the order of time."""
    return [
        KeyFrameText(number, start + int(episode.frames.time[row]), _frame_text(episode, row))
        for number, (start, episode) in enumerate(zip(history.starts, history.episodes, strict=True))
        for row in range(len(episode.frames))
    ]


def _frame_text(episode: Episode, row: int) -> str:
    frames = episode.frames
    seen = [OBJECTS.get(SYMBOLS[number]) for number in frames.objects[row].tolist() if number]
    sees = ", ".join(f"the {name}" for name in seen if name)
    if not frames.action[row]:
        return f"sees {sees}" if sees else "nothing new"
    verb = SYMBOLS[frames.action[row]]
    places = [SYMBOLS[number] for number in frames.args[row].tolist() if number]
    status = _STATUSES[frames.state[row, 1]]
    if verb == "move":
        return f"go to the {LOCATIONS[places[2]].spoken}: {status}"
    what, where = f"the {OBJECTS[places[3]]}", f"the {LOCATIONS[places[2]].spoken}"
    return f"grasp {what} at {where}: {status}" if verb == "grasp" else f"put {what} on {where}: {status}"
