"""A history for people: its episodes and key frames in words, and a picture of its timeline."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from memenvs.verbalization.dates import as_datetime
from memenvs.verbalization.episodes import Episode, History
from memenvs.verbalization.language.sampler import QuestionAnswer
from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECTS, SYMBOLS

_STATUSES = ("begins", "done", "fails")
#: Size of the picture, pixels.
WIDTH, HEIGHT = 720, 480
_TEXT_HEIGHT = 112
_LEFT, _BARS, _GOALS, _MARGIN = 8, 118, 400, 8
_ROW, _LEAST_ROW_FOR_TEXT = 34, 15
# Colours, sRGB.
_PAPER, _INK, _FAINT, _LINE = (250, 249, 246), (52, 52, 58), (190, 189, 185), (222, 221, 217)
_VERBS = {"move": (160, 190, 224), "grasp": (240, 190, 110), "putdown": (150, 205, 160)}
_FAILED, _REFERENT, _SEEN = (214, 48, 49), (255, 240, 200), (66, 133, 214)


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


def draw_timeline(
    history: History, frames_seen: int | None = None, query: QuestionAnswer | None = None, answer: str = ""
) -> np.ndarray:
    """Draw a history, with a question and its answers below.

    Blue is a move, orange a grasp, green a putdown; a failed action is red. The widths of actions are durations. The
    episodes that a question means have a yellow row.

    Args:
        history: The history.
        frames_seen: Number of its key frames that were seen; later ones are pale. None for all.
        query: The question.
        answer: What the agent answers so far.

    Returns:
        uint8, (480, 720, 3).
    """
    image = Image.new("RGB", (WIDTH, HEIGHT), _PAPER)
    draw = ImageDraw.Draw(image)
    space = HEIGHT - _TEXT_HEIGHT - 2 * _MARGIN
    row = min(_ROW, space / max(1, len(history)))
    font = ImageFont.load_default(11)
    longest = max((episode.duration for episode in history.episodes), default=1)
    seen = history.num_frames if frames_seen is None else frames_seen
    next_text = 0.0
    meant = set() if query is None else set(query.episodes)
    for number, (start, episode) in enumerate(zip(history.starts, history.episodes, strict=True)):
        top = _MARGIN + number * row
        if number in meant:
            draw.rectangle((0, top, WIDTH, top + row - 1), _REFERENT)
        num_seen = int(np.clip(seen, 0, len(episode.frames)))
        seen -= len(episode.frames)
        until = int(episode.frames.time[num_seen - 1]) if num_seen else -1
        _draw_bar(draw, episode, top, row, until, (_GOALS - _BARS - 12) / longest)
        if top + row >= next_text:  # the next row with room for text
            next_text = top + row + _LEAST_ROW_FOR_TEXT
            ink = _INK if num_seen else _FAINT
            middle = top + row / 2
            draw.text((_LEFT, middle), f"{as_datetime(start):%a %d %b %H:%M}", ink, font, anchor="lm")
            draw.text((_GOALS, middle), _shorten(_describe(episode), font, WIDTH - _GOALS - 8), ink, font, anchor="lm")
    if not len(history):
        draw.text((_LEFT, _MARGIN), "no episode", _FAINT, font)
    _draw_texts(draw, history, query, answer)
    x: float = WIDTH - _MARGIN
    for name, colour in (("failed", _FAILED), *reversed(_VERBS.items())):
        x -= font.getlength(name)
        draw.text((x, HEIGHT - _TEXT_HEIGHT + 6), name, _INK, font)
        draw.rectangle((x - 14, HEIGHT - _TEXT_HEIGHT + 8, x - 5, HEIGHT - _TEXT_HEIGHT + 17), colour)
        x -= 24
    return np.asarray(image)


def _draw_bar(draw: ImageDraw.ImageDraw, episode: Episode, top: float, row: float, until: int, scale: float) -> None:
    """Draw the actions of an episode, pale where they end after second `until`."""
    low, high = top + 0.2 * row, top + 0.8 * row
    for action in episode.actions:
        colour = _FAILED if action.status == "failure" else _VERBS[action.verb]
        if action.end > until:
            colour = tuple((2 * paper + part) // 3 for paper, part in zip(_PAPER, colour, strict=True))  # type: ignore[assignment]
        left, right = _BARS + action.start * scale, _BARS + action.end * scale
        draw.rectangle((left, low, max(left + 1, right - 1), high), colour)
    if until >= 0 and until < episode.duration:
        x = _BARS + until * scale
        draw.line((x, top, x, top + row), _SEEN, 2)


def _describe(episode: Episode) -> str:
    """Describe the goals of an episode; a cross is before those that were not reached."""
    texts = []
    for goal, reached in zip(episode.goals, episode.outcomes, strict=True):
        place = f" to {LOCATIONS[goal.place].spoken}" if goal.predicate == "objectAt" else " in hand"
        texts.append(f"{'' if reached else 'x '}{OBJECTS[goal.object]}{place}")
    return ", ".join(texts)


def _draw_texts(draw: ImageDraw.ImageDraw, history: History, query: QuestionAnswer | None, answer: str) -> None:
    font = ImageFont.load_default(12)
    top = HEIGHT - _TEXT_HEIGHT
    draw.line((0, top, WIDTH, top), _LINE, 1)
    if query is None:
        draw.text((_LEFT, top + 6), f"{history.num_frames} key frames of {len(history)} episodes", _FAINT, font)
        return
    lines = (
        ("asked", f"{as_datetime(query.now):%a %d %b %H:%M}"),  # word: ok
        ("question", query.question.text),
        ("gold", query.answer.text),
        ("answer", answer or "..."),
    )
    y = top + 6
    for name, text in lines:
        draw.text((_LEFT, y), name, _FAINT, font)
        room = WIDTH - 84
        while text:
            line = _shorten(text, font, room, "")
            draw.text((76, y), line, _INK, font)
            text = text[len(line) :].lstrip()
            y += 15
        y += 3


def _shorten(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, room: float, end: str = " ...") -> str:
    """Cut a text at a word, so that it fits."""
    if font.getlength(text) <= room:
        return text
    words = text.split(" ")
    while len(words) > 1 and font.getlength(" ".join(words) + end) > room:
        words.pop()
    return " ".join(words) + end
