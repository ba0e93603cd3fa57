"""Figure of picture tasks: answers beside the truth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.figure import Figure

from memenvs.agents.papers.sat.learner import SATPrediction

GAP = 2
"""Pixels between pictures of a strip."""
STRIPS = 2
"""Strips that are drawn of episodes with several answers."""
PICTURES = 6
"""Episodes in the one strip that is drawn where an episode has one answer."""


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
