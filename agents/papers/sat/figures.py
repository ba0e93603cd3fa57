"""Figures of picture tasks: answers beside the truth, and what a memory holds at each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from memenvs.agents.papers.sat.learner import SATPrediction
from memenvs.retention import STRATEGY_NAMES, eviction_times

GAP = 2
"""Pixels between pictures of a strip."""
STRIPS = 2
"""Strips that are drawn of episodes with several answers."""
PICTURES = 6
"""Episodes in the one strip that is drawn where an episode has one answer."""
PLACE_COLOURS = "tab20"


def picture_strip(pictures: np.ndarray) -> np.ndarray:
    """Put pictures, uint8, (A, h, w, 3), side by side; uint8, (h, A * (w + 2) - 2, 3)."""
    padded = np.pad(pictures, ((0, 0), (0, 0), (0, GAP), (0, 0)), constant_values=255)
    return np.concatenate(list(padded), axis=1)[:, :-GAP]


def strip_figure(truth: np.ndarray, answers: Mapping[str, np.ndarray]) -> Figure:
    """Draw the right pictures, and below them those of models; a strip is an episode.

    Where an episode has one answer, all episodes are one strip.

    Args:
        truth: uint8, (R, A, h, w, 3); the right pictures in R episodes.
        answers: Name of a model -> its pictures, as `truth`.
    """
    rows = {"truth": truth, **answers}
    if truth.shape[1] == 1:
        rows = {name: pictures.swapaxes(0, 1) for name, pictures in rows.items()}
    strips = len(rows["truth"])
    height, width = picture_strip(rows["truth"][0]).shape[:2]
    inches = 10.0
    figure = Figure(figsize=(inches, 0.4 + strips * len(rows) * (inches * 0.86 * height / width + 0.12)), dpi=150)
    panels = figure.subplots(strips * len(rows), 1, squeeze=False)[:, 0]
    figure.subplots_adjust(left=0.14, right=0.995, top=0.99, bottom=0.01, hspace=0.12)
    for number, axes in enumerate(panels):
        name = list(rows)[number % len(rows)]
        axes.imshow(picture_strip(rows[name][number // len(rows)]), interpolation="nearest")
        axes.set_axis_off()
        axes.text(-0.01, 0.5, name, transform=axes.transAxes, ha="right", va="center", fontsize=11)
    return figure


def memory_figure(regions: np.ndarray, capacity: int, strategies: Sequence[str], n_regions: int) -> Figure:
    """Draw which steps a memory holds at each step of an episode, in the colour of their region.

    Args:
        regions: int, (T,); region of each step.
        capacity: Steps that the memory can hold.
        strategies: Names of retention strategies, one panel each.
        n_regions: Number of regions.
    """
    steps = len(regions)
    figure = Figure(figsize=(4.6 * len(strategies), 4.4), dpi=120, layout="constrained")
    panels = figure.subplots(1, len(strategies), sharey=True, squeeze=False)[0]
    now = np.arange(steps)
    for axes, strategy in zip(panels, strategies, strict=True):
        evicted_at = eviction_times(regions[None], strategy, capacity, n_places=n_regions)[0]
        is_stored = (now[:, None] <= now) & (now < evicted_at[:, None])  # (step in memory, step now)
        shown = np.where(is_stored, regions[:, None].astype(float), np.nan)
        axes.imshow(
            shown, origin="lower", cmap=PLACE_COLOURS, vmin=0, vmax=max(n_regions - 1, 1), interpolation="nearest"
        )
        axes.set_title(strategy.upper())
        axes.set_xlabel("step of the episode")
    panels[0].set_ylabel("steps in memory, coloured by place")
    return figure


@torch.no_grad()
def sample_answers(prediction: SATPrediction, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Answer a few episodes, as many as a figure shows.

    Args:
        prediction: A model that answers with pictures.
        seed: Seed of the episodes.

    Returns:
        The right pictures and those of the model, uint8, (R, A, h, w, 3) each.
    """
    prediction.eval()
    episodes = PICTURES if prediction.model.task.answers == 1 else STRIPS
    batch = prediction.sample(episodes, np.random.default_rng(seed), "test")
    answers = prediction.answer(batch)[0].float().clamp(0, 1).cpu().numpy()
    truth = batch.episodes.answers if batch.episodes.query_moves is None else batch.episodes.answers[:, 1:]
    return truth, (answers * 255).round().astype(np.uint8)


def episode_memory_figure(prediction: SATPrediction, seed: int) -> Figure:
    """Draw what each strategy of the task would hold along one episode; see `memory_figure`.

    Args:
        prediction: A model with a limited capacity.
        seed: Seed of the episode.
    """
    task, capacity = prediction.model.task, prediction.model.capacity
    assert capacity is not None
    regions = task.sample_batch(1, np.random.default_rng(seed), "test").regions[0]
    strategies = task.strategies if prediction.allocator is not None else (prediction.model.config.strategy_name,)
    assert set(strategies) <= set(STRATEGY_NAMES)
    return memory_figure(regions, capacity, strategies, task.n_regions)
