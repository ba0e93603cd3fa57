"""The progress bar of training."""

from __future__ import annotations

import math

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class SpeedColumn(ProgressColumn):
    """Steps so far and per second.

    Args:
        unit: Name of the steps.
    """

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """The text of the column."""
        speed = ""
        if task.speed is not None:
            rate = f"{task.speed:,.0f}" if task.speed >= 10 else f"{task.speed:.2g}"
            speed = f"  {rate} {self._unit}/s"
        return Text(f"{task.completed:,.0f} {self._unit}{speed}")


class ScoreColumn(ProgressColumn):
    """The task's field `score`; nothing while it is NaN.

    Args:
        name: Name of the score.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def render(self, task: Task) -> Text:
        """The text of the column."""
        score = task.fields["score"]
        return Text("" if math.isnan(score) else f"{self._name} {score:.2f}")


def training_bar(unit: str = "steps", score: str = "return") -> Progress:
    """A bar on standard error: share done, steps/s, score, time spent and time left.

    Args:
        unit: Name of the steps.
        score: Name of the task's field `score`.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        SpeedColumn(unit),
        ScoreColumn(score),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        speed_estimate_period=60.0,
    )
