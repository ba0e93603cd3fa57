"""Patterns of the attention of heads: to the sink, within an episode, across episodes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from memenvs.agents.experiments.attention_recording import Recording

ON_SINK = 0.9
"""Mass on the sink from which a head is "all-on-sink"."""
OFF_SINK = 0.5
"""Mass on the sink in later episodes below which `sink_at_first` may hold."""
MOSTLY = 0.8
"""Share of the mass off the sink from which a head is "intra-episode" or "inter-episode"."""
UNIFORM = 0.9
"""Overlap with uniform attention from which a head is "uniform", as one that has not been trained is."""
INVARIANT = 0.5
"""Overlap of the attention of different episodes from which a head is "episode-invariant"."""
MIN_MASS = 0.1
"""Mass off the sink that a step must have to be compared with another one."""


@dataclass(frozen=True)
class Head:
    """Attention of one head over the recorded steps of a trial.

    Attributes:
        layer: From 0.
        head: From 0.
        sink: Mean mass on the sink.
        sink_first: Mean mass on the sink over the first episode; NaN if no step of it was recorded.
        sink_later: Mean mass on the sink over later episodes; `sink_first` if there are none.
        own: Of the mass off the sink in later episodes, the share on steps of the same episode; 1 if there is
            no such mass.
        earlier: Of the mass off the sink in later episodes, the share on steps of earlier episodes; 1 - `own`.
        evenness: Overlap (sum of minima) with uniform attention to all steps of the trial, both scaled to 1 off the
            sink. Mean over the recorded steps of later episodes with at least `MIN_MASS` off the sink; 0 if there are
            none.
        invariance: Overlap (sum of minima) of the attention of two steps of different episodes, each scaled to 1 off
            the sink. Mean over all pairs of recorded steps with at least `MIN_MASS` off the sink; 0 if there are none.
        pattern: "all-on-sink" if `sink` >= 0.9; else "uniform" if `evenness` >= 0.9; else "episode-invariant" if
            `invariance` >= 0.5; else "intra-episode" if `own` >= 0.8; else "inter-episode" if `earlier` >= 0.8; else
            "mixed".
        sink_at_first: True if the head is on the sink in the first episode only: `sink_first` >= 0.9 and
            `sink_later` < 0.5.

    Source:
        ReLIC, appendix on attention patterns; the paper shows the patterns, the thresholds are ours.
    """

    layer: int
    head: int
    sink: float
    sink_first: float
    sink_later: float
    own: float
    earlier: float
    evenness: float
    invariance: float
    pattern: str
    sink_at_first: bool


def describe_heads(recording: Recording) -> list[Head]:
    """Classify the attention of each head, layer by layer.

    Raises:
        ValueError: No step was recorded.
    """
    if not recording.weights:
        raise ValueError("the recording must have at least one step, got none")
    layers, heads, _ = next(iter(recording.weights.values())).shape
    return [_describe(recording, layer, head) for layer in range(layers) for head in range(heads)]


def describe_uniform(recording: Recording) -> Head:
    """Numbers of a head that attends equally to the sink and every step, for comparison."""
    weights = {t: np.full((1, 1, row.shape[-1]), 1.0 / row.shape[-1]) for t, row in recording.weights.items()}
    return _describe(replace(recording, weights=weights), 0, 0)


def _describe(recording: Recording, layer: int, head: int) -> Head:
    """Classify the attention of one head."""
    episodes = recording.episodes
    sinks = recording.sinks
    rows = {t: weights[layer, head].astype(np.float64) for t, weights in sorted(recording.weights.items())}
    on_sink = {t: float(row[:sinks].sum()) for t, row in rows.items()}
    sink = float(np.mean(list(on_sink.values())))
    first = [mass for t, mass in on_sink.items() if episodes[t] == 0]
    later = [mass for t, mass in on_sink.items() if episodes[t] > 0]
    sink_first = float(np.mean(first)) if first else float("nan")
    sink_later = float(np.mean(later)) if later else sink_first
    inside = sum(row[sinks:][episodes[: t + 1] == episodes[t]].sum() for t, row in rows.items() if episodes[t] > 0)
    outside = sum(row[sinks:][episodes[: t + 1] < episodes[t]].sum() for t, row in rows.items() if episodes[t] > 0)
    total = inside + outside
    own = float(inside / total) if total > 0 else 1.0
    earlier = float(outside / total) if total > 0 else 0.0
    scaled = {t: row[sinks:] / row[sinks:].sum() for t, row in rows.items() if row[sinks:].sum() >= MIN_MASS}
    overlaps = [np.minimum(row, 1.0 / len(row)).sum() for t, row in scaled.items() if episodes[t] > 0]
    evenness = float(np.mean(overlaps)) if overlaps else 0.0
    invariance = _invariance(scaled, episodes)
    if sink >= ON_SINK:
        pattern = "all-on-sink"
    elif evenness >= UNIFORM:
        pattern = "uniform"
    elif invariance >= INVARIANT:
        pattern = "episode-invariant"
    elif own >= MOSTLY:
        pattern = "intra-episode"
    elif earlier >= MOSTLY:
        pattern = "inter-episode"
    else:
        pattern = "mixed"
    sink_at_first = sink_first >= ON_SINK and sink_later < OFF_SINK
    return Head(layer, head, sink, sink_first, sink_later, own, earlier, evenness, invariance, pattern, sink_at_first)


def _invariance(scaled: dict[int, np.ndarray], episodes: np.ndarray) -> float:
    """Mean overlap of the attention of steps of different episodes; `scaled` has the mass off the sink, scaled to 1."""
    overlaps = [
        np.minimum(scaled[early], scaled[late][: early + 1]).sum()
        for early, late in itertools.combinations(scaled, 2)
        if episodes[early] != episodes[late]
    ]
    return float(np.mean(overlaps)) if overlaps else 0.0
