"""How a step size changes along a run."""

from __future__ import annotations


def linear_rate(first: float, final: float | None, warmup: int, step: int, total: int) -> float:
    """A step size that rises linearly at first and falls linearly to the end of a run.

    Args:
        first: What it falls from, > 0.
        final: What it has fallen to at the end; None for a constant one.
        warmup: Steps over which it first rises; >= 0.
        step: Steps learned from before this one.
        total: Those of the whole run, >= 1.
    """
    share = min(step / total, 1.0)
    rate = (1 - share) * first + share * (first if final is None else final)
    return rate * min(1.0, (step + 1) / (warmup + 1))
