"""Room Ballet as a task to learn by prediction: episodes, who decides what is kept of them, and the loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from agents.ballet_model import BalletModel
from agents.supervised import PredictionModel
from memenvs.ballet.descriptions import TASKS
from memenvs.ballet.episodes import Episodes
from memenvs.ballet.tasks import NAMES, make_ballet
from memenvs.checks import choices_for
from memenvs.retention import strategy_numbers


@dataclass(frozen=True)
class BalletBatch:
    """Episodes with what was decided for them.

    Attributes:
        episodes: B of them.
        strategies: int64, (B,); what chooses what is kept of each.
    """

    episodes: Episodes
    strategies: np.ndarray


class BalletPrediction(PredictionModel):
    """A model with one strategy for all episodes.

    Args:
        model: What answers.
    """

    def __init__(self, model: BalletModel) -> None:
        super().__init__()
        self.model = model

    def sample(self, count: int, rng: np.random.Generator, step: int | None) -> BalletBatch:
        """Episodes of the task; see `PredictionModel.sample`."""
        return BalletBatch(self.model.task.sample_batch(count, rng), strategy_numbers(self.model.config.kept, count))

    def share(self, batch: BalletBatch, rank: int, count: int) -> BalletBatch:
        """Every `count`-th episode; see `PredictionModel.share`."""
        return BalletBatch(rows(batch.episodes, slice(rank, None, count)), batch.strategies[rank::count])

    def loss(self, batch: BalletBatch) -> tuple[Tensor, dict[str, float]]:
        """Mean cross-entropy of the answers; see `PredictionModel.loss`."""
        losses, right = self._answer(batch)
        return losses.mean(), {"accuracy": float(right.mean())}

    def _answer(self, batch: BalletBatch) -> tuple[Tensor, np.ndarray]:
        """Cross-entropy of each answer, float (B,), and whether it is right, bool (B,)."""
        logits = self.model(batch.episodes, batch.strategies).float()
        labels = torch.from_numpy(batch.episodes.label.astype(np.int64)).to(logits.device)
        right = (logits.detach().argmax(1) == labels).cpu().numpy()
        return functional.cross_entropy(logits, labels, reduction="none"), right

    def scores(self, batch: BalletBatch) -> dict[str, np.ndarray]:
        """Accuracy, also where the memory holds what is asked about ("kept", where a single visit is); in several tasks by task."""
        losses, right = self._answer(batch)
        found = {"accuracy": right.astype(float), "loss": losses.cpu().double().numpy()}
        episodes = batch.episodes
        if (episodes.query_visit >= 0).all():
            kept = self.model.kept_visits(episodes, batch.strategies)[np.arange(len(episodes)), episodes.query_visit]
            found |= {"kept": kept.astype(float), "accuracy_kept": found["accuracy"][kept]}
        if len(self.model.task.questions) > 1:
            for number, task in enumerate(TASKS):
                of_task = episodes.task == number
                found[f"accuracy_{task}"] = found["accuracy"][of_task]
        return found


def ballet_prediction(env: str, env_kwargs: Mapping[str, Any], settings: Mapping[str, Any]) -> PredictionModel:
    """What is learned in a Room Ballet.

    Args:
        env: Id of the environment.
        env_kwargs: Its settings, those of `make_ballet`.
        settings: Fields of `BalletModelConfig`.

    Raises:
        ValueError: The environment is no Room Ballet, or a setting is not allowed.
        TypeError: A setting does not exist.
    """
    ids = {f"memenvs/RoomBallet-{name}-v0": name for name in NAMES}
    if env not in ids:
        raise ValueError(f"env must be one that can be learned by prediction, got {env!r}; {choices_for(env, ids)}")
    return BalletPrediction(BalletModel(make_ballet(ids[env], **env_kwargs), **settings))


def rows(episodes: Episodes, index: slice | np.ndarray) -> Episodes:
    """Some of the episodes of a batch."""
    return replace(episodes, **{each.name: getattr(episodes, each.name)[index] for each in fields(episodes)})
