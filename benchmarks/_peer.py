"""Shared parts of the benchmarks: Miniworld for comparison, the machine, the commit."""

from __future__ import annotations

import multiprocessing
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

#: Plays for some seconds and returns the number of frames or steps.
Play = Callable[[float], int]


def make_miniworld() -> Play:
    """Miniworld FourRooms (80 x 60 colour), without Gymnasium's wrappers, with random actions.

    Raises:
        SystemExit: Miniworld is not installed, or there is no display.
    """
    try:
        import miniworld  # noqa: F401  (registers its ids; needs a display)
    except ModuleNotFoundError as error:
        sys.exit(f"{error}; install it with: pip install memenvs[miniworld]")
    except Exception as error:  # of pyglet: there is no display or no OpenGL
        sys.exit(
            f"{error}; Miniworld needs a display and OpenGL. Run: xvfb-run -a python {sys.argv[0]}, after: "
            "apt-get install -y xvfb libgl1-mesa-dri libglu1-mesa freeglut3-dev"
        )
    env = gym.make("MiniWorld-FourRooms-v0").unwrapped
    env.reset(seed=0)
    rng = np.random.default_rng(0)

    def play(seconds: float) -> int:
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            _, _, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
            steps += 1
            if terminated or truncated:
                env.reset()
        return steps

    return play


class Miniworlds:
    """Miniworld FourRooms in several processes, as `make_miniworld` in each.

    Args:
        count: Number of processes; they end with `close`.

    Attributes:
        cpu: CPU time of all of them while they played, s.
    """

    def __init__(self, count: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.cpu = 0.0
        self._pipes, self._processes = [], []
        for _ in range(count):
            ours, theirs = context.Pipe()
            self._processes.append(context.Process(target=_play_miniworld, args=(theirs,), daemon=True))
            self._processes[-1].start()
            self._pipes.append(ours)

    def play(self, seconds: float) -> int:
        """Play in all processes at once, and return the steps of all."""
        for pipe in self._pipes:
            pipe.send(seconds)
        results = [pipe.recv() for pipe in self._pipes]
        self.cpu += sum(cpu for _, cpu in results)
        return sum(steps for steps, _ in results)

    def close(self) -> None:
        """End the processes."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.send(None)
            process.join()


def _play_miniworld(pipe: Connection) -> None:
    """Play for each number of seconds that comes, until None, and send back steps and CPU time."""
    play = make_miniworld()
    while (seconds := pipe.recv()) is not None:
        cpu = time.process_time()
        steps = play(seconds)
        pipe.send((steps, time.process_time() - cpu))


def compare(
    first: Play, second: Play, turns: int, seconds: float, cpu_time: Callable[[], float] = time.process_time
) -> dict[str, Any]:
    """Run both in turn.

    Args:
        first: Ours.
        second: The other.
        turns: Turns of each.
        seconds: Length of a turn, of the clock.
        cpu_time: Returns the CPU time so far, s; that of this process unless others play too.

    Returns:
        "ours" and "theirs", median numbers a second; "ratio", the median over the turns, with "ratio_low" and
        "ratio_high"; the same with "cpu_" before each, a second of CPU time of all threads.
    """
    speeds = np.zeros((2, turns, 2))  # clock or CPU, turn, whose
    for turn in range(turns):
        for k, play in enumerate((first, second)):
            clock, cpu = time.perf_counter(), cpu_time()
            count = play(seconds)
            speeds[:, turn, k] = count / (time.perf_counter() - clock), count / (cpu_time() - cpu)
    row: dict[str, Any] = {}
    for prefix, table in zip(("", "cpu_"), speeds, strict=True):
        ratios = table[:, 0] / table[:, 1]
        row |= {f"{prefix}ours": float(np.median(table[:, 0])), f"{prefix}theirs": float(np.median(table[:, 1]))}
        row |= {f"{prefix}ratio": float(np.median(ratios))}
        row |= {f"{prefix}ratio_low": float(ratios.min()), f"{prefix}ratio_high": float(ratios.max())}
    return row


def ratios_text(row: dict[str, Any]) -> str:
    """The ratios of a row of `compare`, for people."""
    return "; ".join(
        f"{row[f'{key}ratio']:.1f}x {unit} ({row[f'{key}ratio_low']:.1f} to {row[f'{key}ratio_high']:.1f})"
        for key, unit in (("", "by the clock"), ("cpu_", "by CPU time"))
    )


def machine() -> dict[str, Any]:
    """The processor with its flags, the width of the renderer's vectors, and the versions."""
    import numba

    from memenvs.houses.rendering.kernels.simd import VECTOR_WIDTH, processor

    name, features = processor()
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
        "processor": name,
        "processor_flags": [flag[1:] for flag in features.split(",") if flag.startswith("+")],
        "vector_width": VECTOR_WIDTH,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "gymnasium": gym.__version__,
        "commit": commit(),
    }


def commit() -> str:
    """Short hash of the commit that is measured; "unknown" outside a repository or without Git."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    except FileNotFoundError:
        return "unknown"
