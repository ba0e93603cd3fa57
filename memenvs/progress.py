"""The progress bar of commands that may take long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[float], None]
"""Function to call with the share of the work that is done, 0 to 1."""


def no_progress(share: float) -> None:
    """Show nothing."""


@contextmanager
def progress_bar(description: str, *, quiet: bool = False, refreshes: float = 4.0) -> Iterator[Progress]:
    """Show a bar with the share done, the time spent and the time left, on standard error.

    It disappears at the end. Nothing is shown where standard error is no terminal, so that logs stay short.

    Args:
        description: Text before the bar.
        quiet: Show nothing.
        refreshes: Times a second that the bar is drawn.
    """
    if quiet or not sys.stderr.isatty():
        yield no_progress
        return
    from rich import progress as rich_progress  # here, since few commands need it
    from rich.console import Console

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.TaskProgressColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TextColumn("left"),
        rich_progress.TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with rich_progress.Progress(*columns, console=console, transient=True, refresh_per_second=refreshes) as bar:
        task = bar.add_task(description, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def part_of(progress: Progress, part: int, parts: int) -> Progress:
    """Return the progress of one of several equal parts of the work.

    Args:
        progress: Progress of all of it.
        part: Number of this part, from 0.
        parts: Number of parts.
    """
    return lambda share: progress((part + share) / parts)
