"""Sources of an answer: the key frames and the vectors of the memory that a model used."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from memenvs.agents.verbalization.prediction import AnsweringModel, QuestionAnswering, QuestionBatch


class AnswerSources(NamedTuple):
    """Sources of the answer to one question about a history of T key frames.

    Attributes:
        frames: float64, (T,); share of each key frame, of sum 1: how much the model's answer would change with it,
            the norm of the gradient of its log-likelihood.
        vectors: float64, (M,); attention to each vector of the memory, the mean over heads, layers and clauses. What is
            missing to a sum of 1 is attention to none of them. Empty where the answer is in words.
    """

    frames: np.ndarray
    vectors: np.ndarray


def answer_sources(model: AnsweringModel, batch: QuestionBatch) -> AnswerSources | None:
    """Compute from what a model takes its answer to one question.

    Args:
        model: The model.
        batch: One history with one question.

    Returns:
        The shares; None if the model has no memory.

    Raises:
        ValueError: There are several questions.
    """
    if batch.questions.shape != (1, 1):
        raise ValueError(f"batch must be of one question about one history, got {batch.questions.shape}")
    if model.model.is_text_only:
        return None
    embedded: list[Tensor] = []

    def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())  # there is no gradient of its own in a frozen model
        return embedded[-1]

    hook = model.model.frames.register_forward_hook(keep)
    was_training = model.training
    model.eval()
    try:
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(model.own_answer_loss(batch).sum(), embedded[:1])
    finally:
        hook.remove()
        model.train(was_training)
    norm = gradient[0].double().norm(dim=-1).cpu().numpy()
    total = norm.sum()
    vectors = np.zeros(0)
    if isinstance(model, QuestionAnswering):
        with torch.no_grad():
            vectors = model.attention(batch)[0, 0, 1:].double().cpu().numpy()
    return AnswerSources(norm / total if total else norm, vectors)
