"""Learning-rate schedules."""

from __future__ import annotations

import math


def linear_schedule(initial: float, final: float | None, warmup: int, step: int, total: int) -> float:
    """Linear warm-up and linear decay to the end of a run.

    Args:
        initial: Learning rate that the decay starts from, > 0.
        final: Learning rate at the end; None for no decay.
        warmup: Steps of the warm-up, at the first of which the rate is `initial` / (warmup + 1); >= 0.
        step: Number of the step, from 0.
        total: Steps of the run, >= 1.
    """
    progress = min(step / total, 1.0)
    rate = (1 - progress) * initial + progress * (initial if final is None else final)
    return rate * min(1.0, (step + 1) / (warmup + 1))


def cosine_schedule(initial: float, final: float | None, warmup: int, step: int, total: int) -> float:
    """Linear warm-up from a thousandth of the rate, then cosine decay to the end of a run.

    Args:
        initial: Learning rate after the warm-up, > 0.
        final: Learning rate at the end; None for no decay.
        warmup: Steps of the warm-up; >= 0.
        step: Number of the step, from 0.
        total: Steps of the run, >= 1.
    """
    if step < warmup:
        return initial * (0.001 + 0.999 * step / warmup)
    if final is None:
        return initial
    progress = min(1.0, (step - warmup) / max(1, total - warmup))
    span = initial - final
    return final + 0.5 * span * (1.0 + math.cos(math.pi * progress))
