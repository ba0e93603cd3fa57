"""Picture tasks as prediction tasks: batches, retention strategies, loss and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.algorithms.supervised import PredictionModel
from memenvs.agents.algorithms.supervised_config import Split
from memenvs.agents.encoders.patch_components import start_with_components
from memenvs.agents.encoders.pictures import PatchDecoder, PatchEncoder, ViewDecoder
from memenvs.agents.memory.allocator import AdaptiveAllocator
from memenvs.agents.papers.sat.allocation import SupervisedAllocation
from memenvs.agents.papers.sat.picture_model import PictureModel
from memenvs.agents.papers.sat.picture_task import PictureBatch, PictureTask
from memenvs.checks import choices_for
from memenvs.retention import strategy_numbers

REWARD_SCALE = 100.0
"""Factor on mean squared errors, so that rewards of the allocator are of the order of 1."""
PLACE_WEIGHT = 0.01
"""Weight of the cross-entropy of places beside squared errors of pixels, which are far smaller.

With 1 the encoder learned what separates places and little of what a picture needs.
"""
FROZEN_PLACE_WEIGHT = 0.3
"""The same where the encoder does not learn, so that places take nothing from what a picture needs."""
CALIBRATION_EPISODES = 16
"""Episodes whose pictures the encoder is calibrated with."""
COMPONENT_EPISODES = 160
"""The same for principal components, of which there are more than pictures of 16 episodes."""
CALIBRATION_STRIDE = 8
"""Steps between two of these pictures."""


@dataclass(frozen=True)
class StrategyBatch:
    """Episodes with the retention strategy of each.

    Attributes:
        episodes: B episodes.
        strategies: int64, (B,); number of each episode's strategy in `memenvs.retention.STRATEGY_NAMES`.
    """

    episodes: PictureBatch
    strategies: np.ndarray


class PicturePrediction(PredictionModel):
    """A `PictureModel` to be trained, with one retention strategy or an allocator.

    The allocator learns which strategy suits a task. Its context is the number of the task, one-hot. Its reward is
    minus the loss of the answer: the cross-entropy of a class, or 100 times the mean squared error of pictures.

    Args:
        model: The model.
        allocation: Settings of the allocator; None for the strategy of the model's config.

    Source:
        SAT, section 3.3.
    """

    def __init__(self, model: PictureModel, allocation: SupervisedAllocation | None = None) -> None:
        super().__init__()
        self.model = model
        self.allocation = allocation
        self.score = "accuracy" if model.task.classes else "mse"
        self.allocator: AdaptiveAllocator | None = None
        if allocation is not None:
            self.allocator = AdaptiveAllocator(len(model.task.tasks), model.task.strategies)

    def sample(self, count: int, rng: np.random.Generator, split: Split = "train", step: int = 0) -> StrategyBatch:
        """Draw episodes and choose their strategies; see `PredictionModel.sample`."""
        episodes = self.model.task.sample(count, rng, split)
        if self.allocator is None:
            return StrategyBatch(episodes, strategy_numbers(self.model.config.strategy, count))
        assert self.allocation is not None
        epsilon = self.allocation.epsilon_at(step) if split == "train" else 0.0
        strategies = self.allocator.choose(self._task_vectors(episodes), epsilon, rng)
        return StrategyBatch(episodes, strategies.cpu().numpy())

    def shard(self, batch: StrategyBatch, rank: int, count: int) -> StrategyBatch:
        """Take every `count`-th episode; see `PredictionModel.shard`."""
        chosen = slice(rank, None, count)
        return replace(batch, episodes=batch.episodes.select(chosen), strategies=batch.strategies[chosen])

    def answer(self, batch: StrategyBatch) -> tuple[Tensor, Tensor]:
        """Answer each query.

        Returns:
            Answers, as `PictureModel.forward`, and the loss of each, float32, (B,), with gradient.
        """
        answers = self.model(batch.episodes, batch.strategies)
        return answers, self._losses(answers, batch.episodes)

    def loss(self, batch: StrategyBatch) -> tuple[Tensor, dict[str, float]]:
        """Compute the mean loss of the answers; see `PredictionModel.loss`.

        In tasks with moves the error at the start is added, and the cross-entropy of places with `place_layers`. With
        an allocator its own loss is added, weighted.
        """
        episodes = batch.episodes
        answers, places = self.model.predict(episodes, batch.strategies)
        with torch.autocast(answers.device.type, enabled=False):
            total = torch.zeros((), device=answers.device)
            log = {}
            if episodes.query_moves is not None:
                truth = torch.from_numpy(episodes.answers[:, 0]).to(answers.device)
                total = total + _squared_errors(answers[:, 0], truth).mean()
                answers = answers[:, 1:]
            if places is not None:
                assert episodes.query_places is not None
                wanted = torch.from_numpy(episodes.query_places).to(places.device)
                place_loss = functional.cross_entropy(places.float().flatten(0, 1), wanted.flatten())
                total = total + (FROZEN_PLACE_WEIGHT if self.model.has_fixed_codes else PLACE_WEIGHT) * place_loss
                log["place_accuracy"] = (places.argmax(2) == wanted).float().mean().item()
            losses = self._losses(answers, episodes)
            total = total + losses.mean()
            log |= {self.score: self._scores(answers.detach(), losses.detach(), episodes).mean().item()}
            if self.allocator is not None and self.allocation is not None:
                strategies = torch.from_numpy(batch.strategies).to(losses.device)
                rewards = -losses if self.model.task.classes else -REWARD_SCALE * losses
                q_loss = self.allocator.loss(self._task_vectors(episodes), strategies, rewards)
                total = total + self.allocation.loss_weight * q_loss
                log |= {"answer_loss": losses.mean().item(), "q_loss": q_loss.item()}
        return total, log

    def _losses(self, answers: Tensor, episodes: PictureBatch) -> Tensor:
        """Cross-entropies or mean squared errors, float32, (B,)."""
        truth = torch.from_numpy(episodes.answers).to(answers.device)
        if self.model.task.classes:
            return functional.cross_entropy(answers.float(), truth, reduction="none")
        return _squared_errors(answers, truth if episodes.query_moves is None else truth[:, 1:])

    def _scores(self, answers: Tensor, losses: Tensor, episodes: PictureBatch) -> Tensor:
        """Values of `score`, float32, (B,)."""
        if self.model.task.classes:
            return (answers.argmax(1) == torch.from_numpy(episodes.answers).to(answers.device)).float()
        return losses

    def scores(self, batch: StrategyBatch) -> dict[str, np.ndarray]:
        """Score each episode; see `PredictionModel.scores`.

        Metrics are "mse", or "accuracy" and "loss" of classes. Where steps show the answers also "kept", the share of
        them in memory. With several tasks also "mse_TASK" or "accuracy_TASK". With an allocator also the softmax of Q
        over strategies, "q_TASK_STRATEGY".
        """
        answers, losses = self.answer(batch)
        scores = {self.score: self._scores(answers, losses, batch.episodes).cpu().double().numpy()}
        if self.model.task.classes:
            scores["loss"] = losses.cpu().double().numpy()
        if batch.episodes.answer_rows is not None:
            scores["kept"] = self.answers_kept(batch).mean(1)
        tasks = self.model.task.tasks
        is_task = batch.episodes.tasks == np.arange(len(tasks))[:, None]  # (tasks, B)
        if len(tasks) > 1:
            scores |= {f"{self.score}_{name}": scores[self.score][is_task[i]] for i, name in enumerate(tasks)}
        if self.allocator is not None:
            shares = self.allocator.distribution(self._task_vectors(batch.episodes)).cpu().double().numpy()
            for i, task in enumerate(tasks):
                for j, name in enumerate(self.allocator.strategies):
                    scores[f"q_{task}_{name}"] = shares[is_task[i], j]
        return scores

    def answers_kept(self, batch: StrategyBatch) -> np.ndarray:
        """Mark the answers that a step in memory shows, bool, (B, A)."""
        episodes = batch.episodes
        assert episodes.answer_rows is not None
        rows = np.where(self.model.retained_steps(episodes, batch.strategies), episodes.rows, -2)  # (B, T)
        return (rows[:, None] == episodes.answer_rows[:, :, None]).any(2)

    def parameter_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """Return the parameters of model and allocator, each with its factor of the learning rate."""
        groups = [([each for each in self.model.parameters() if each.requires_grad], 1.0)]
        if self.allocator is not None and self.allocation is not None:
            groups.append((list(self.allocator.parameters()), self.allocation.rate))
        return groups

    def _task_vectors(self, episodes: PictureBatch) -> Tensor:
        """Task of each episode, one-hot, float, (B, G)."""
        assert self.allocator is not None
        numbers = torch.from_numpy(episodes.tasks).to(self.allocator.numbers.device)
        return functional.one_hot(numbers, len(self.model.task.tasks)).float()


def make_picture_prediction(task: PictureTask, settings: Mapping[str, Any]) -> PicturePrediction:
    """Make the prediction model of a task.

    Args:
        task: The task.
        settings: Fields of `PictureModelConfig`. With `allocation`, a dict of fields of `SupervisedAllocation`, an
            allocator chooses the strategies.

    Raises:
        ValueError: A setting is not allowed.
        TypeError: A setting has another type.
    """
    model_settings = dict(settings)
    allocation = model_settings.pop("allocation", None)
    model = PictureModel(task, **model_settings)
    has_components = model.config.convolutions == "components"
    if model.config.initialisation == "calibrated":
        batch = task.sample(COMPONENT_EPISODES if has_components else CALIBRATION_EPISODES, np.random.default_rng(0))
        numbers = np.unique(batch.rows[:, ::CALIBRATION_STRIDE] // model.encoder.rows_per_picture)
        pictures = torch.from_numpy(batch.pictures(numbers))
        if isinstance(model.encoder, PatchEncoder) and isinstance(model.head, PatchDecoder) and has_components:
            start_with_components(model.encoder, model.head, pictures, model.added_moments())
        else:
            model.encoder.calibrate(pictures)
        if isinstance(model.head, ViewDecoder):
            model.head.calibrate(pictures)
    if allocation is None:
        return PicturePrediction(model)
    if "strategy" in model_settings:
        raise ValueError(
            f"strategy must be left out where it is chosen (allocation), got {model_settings['strategy']!r}"
        )
    if not model.config.uses_place:
        raise ValueError(
            f"allocation must be left out with memory {model.config.memory!r}, which knows no places, got {allocation}"
        )
    if model.capacity is None:
        raise ValueError(f"allocation must be left out where all steps are kept, got {allocation}")
    known = [each.name for each in fields(SupervisedAllocation)]
    for name in allocation:
        if name not in known:
            raise ValueError(f"unknown setting {name!r} of allocation; {choices_for(name, known)}")
    return PicturePrediction(model, SupervisedAllocation(**allocation))


def _squared_errors(pictures: Tensor, truth: Tensor) -> Tensor:
    """Mean squared error of pictures, float, (B, ...), 0 to 1, and uint8, (B, ...); float32, (B,)."""
    pictures = pictures.float()
    wanted = torch.empty_like(pictures).copy_(truth).div_(255)  # in the order of the decoder's pixels, which is faster
    errors = functional.mse_loss(pictures, wanted, reduction="none")
    return errors.mean(tuple(range(1, errors.ndim)))
