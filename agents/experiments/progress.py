"""Progress bars of training and evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
            shown = f"{task.speed:,.0f}" if task.speed >= 10 else f"{task.speed:.2g}"
            speed = f"  {shown} {self._unit}/s"
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
    """A bar with description, share done, steps/s, score, time spent and time left.

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
        speed_estimate_period=60.0,
    )


@contextmanager
def evaluation_bar(description: str, *, quiet: bool = False) -> Iterator[Callable[[float], None] | None]:
    """A bar with description, share done, time spent and time left.

    Args:
        description: Text before the bar.
        quiet: Show no bar.

    Yields:
        Function to call with the share that is done, 0 to 1; None without a bar.
    """
    if quiet:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()) as bar:
        task = bar.add_task(description, total=1.0)
        yield lambda share: bar.update(task, completed=share)
