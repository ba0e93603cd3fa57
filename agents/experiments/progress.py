"""The progress bars of trainings and evaluations."""

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
        steps: What they are called.
    """

    def __init__(self, steps: str) -> None:
        super().__init__()
        self._steps = steps

    def render(self, task: Task) -> Text:
        """The text of the column."""
        speed = ""
        if task.speed is not None:
            shown = f"{task.speed:,.0f}" if task.speed >= 10 else f"{task.speed:.2g}"
            speed = f"  {shown} {self._steps}/s"
        return Text(f"{task.completed:,.0f} {self._steps}{speed}")


class ScoreColumn(ProgressColumn):
    """The task's field `score`; nothing while it is not known.

    Args:
        name: What it is.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def render(self, task: Task) -> Text:
        """The text of the column."""
        score = task.fields["score"]
        return Text("" if math.isnan(score) else f"{self._name} {score:.2f}")


def progress_bar(steps: str = "steps", score: str = "return") -> Progress:
    """A bar with what is being done, share, steps/s, time spent and time left.

    Args:
        steps: What steps are called.
        score: What the task's field `score` is.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        SpeedColumn(steps),
        ScoreColumn(score),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        speed_estimate_period=60.0,
    )


@contextmanager
def share_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[float], None] | None]:
    """A bar with what is being done, share, time spent and time left.

    Args:
        what: Is being done.
        quiet: No bar.

    Yields:
        What takes the share that is done, 0 to 1; None without a bar.
    """
    if quiet:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)
