"""Losses and scores of SAT's answers, and an allocator that learns a retention strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.algorithms.supervised import PredictionModel, seed_memory
from memenvs.agents.encoders.patch_components import start_with_components
from memenvs.agents.encoders.pictures import PatchDecoder, PatchEncoder, ViewDecoder
from memenvs.agents.encoders.text import HashedEncoder
from memenvs.agents.memory.allocator import AdaptiveAllocator
from memenvs.agents.papers.sat.config import AllocationConfig
from memenvs.agents.papers.sat.model import CALIBRATION_EPISODES, BalletModel, QueryModel
from memenvs.agents.papers.sat.picture_model import PictureModel
from memenvs.checks import choices_for
from memenvs.query_task import Episodes, PictureTask, QueryBatch, Split
from memenvs.retention import strategy_numbers

REWARD_SCALE = 100.0
"""Factor on mean squared errors, so that rewards of the allocator are of the order of 1."""
COMPONENT_EPISODES = 160
"""Episodes that principal components are found with; there are more of them than pictures of 16 episodes."""
CALIBRATION_STRIDE = 8
"""Steps between two of these pictures."""


@dataclass(frozen=True, eq=False)
class StrategyBatch(Episodes):
    """Episodes with the retention strategy of each.

    Attributes:
        episodes: B episodes.
        strategies: int64, (B,); number of each episode's strategy in `memenvs.retention.STRATEGY_NAMES`.
        task_vectors: float32, (B, G); inputs of the allocator; None without one.
        seed: Seed of what the memory draws in learning, such as dropout.
    """

    shared = ("seed",)

    episodes: QueryBatch
    strategies: np.ndarray
    task_vectors: Tensor | None = None
    seed: int = 0


class SATPrediction(PredictionModel):
    """A model to be trained, with one retention strategy or an allocator that chooses it.

    Model and allocator learn at the same time. The allocator is a contextual bandit: its context is a vector of the
    task, one-hot or a description in words, its action a strategy. Its reward is minus the loss of the answer: the
    cross-entropy of a class, or 100 times the mean squared error of pictures. Evaluation takes the best strategy.

    Args:
        model: The model.
        allocation: Settings of the allocator; None for the strategy of the model's config.

    Attributes:
        train_vectors: float32, (tasks, descriptions, G); task vectors of training batches.
        held_out_vectors: As `train_vectors`, for evaluation batches: of the descriptions that are held out.
        encoder: Encoder of the descriptions; None with one-hot task vectors.
        allocator: Network that values each strategy for a task vector; None without one.

    Source:
        SAT, section 3.3 and its release.
    """

    train_vectors: Tensor
    held_out_vectors: Tensor
    encoder: HashedEncoder | None

    def __init__(self, model: QueryModel, allocation: AllocationConfig | None = None) -> None:
        super().__init__()
        self.model = model
        self.allocation = allocation
        self.score = "accuracy" if model.task.classes else "mse"
        self.uses_place = model.config.uses_place or model.config.strategy_name not in ("fifo", "lifo")
        self.encoder = None
        self.allocator: AdaptiveAllocator | None = None
        if allocation is None:
            return
        train_vectors = held_out_vectors = torch.eye(len(model.task.tasks))[:, None]  # (tasks, 1, G), one-hot
        if allocation.task_input == "text":
            self.encoder = HashedEncoder()
            train_texts = model.task.descriptions(allocation.split, "train")
            held_out_texts = model.task.descriptions(allocation.split, "held_out")
            train_vectors, held_out_vectors = (
                torch.from_numpy(np.stack([self.encoder(texts) for texts in tasks]))
                for tasks in (train_texts, held_out_texts)
            )
        self.register_buffer("train_vectors", train_vectors, persistent=False)
        self.register_buffer("held_out_vectors", held_out_vectors, persistent=False)
        self.allocator = AdaptiveAllocator(train_vectors.shape[2], model.task.strategies)

    def sample(self, count: int, rng: np.random.Generator, split: Split = "train", step: int = 0) -> StrategyBatch:
        """Draw episodes, and choose their strategies; see `PredictionModel.sample`."""
        return self._with_strategies(self.model.task.sample_batch(count, rng, split), rng, split, step)

    def _with_strategies(
        self, batch: QueryBatch, rng: np.random.Generator, split: Split = "test", step: int = 0
    ) -> StrategyBatch:
        """Choose the strategies of episodes; args as in `sample`."""
        count = len(batch)
        if self.allocator is None or self.allocation is None:
            seed = int(rng.integers(2**31))
            return StrategyBatch(batch, strategy_numbers(self.model.config.strategy_name, count), seed=seed)
        vectors = self.train_vectors if split == "train" else self.held_out_vectors
        description = rng.integers(vectors.shape[1], size=count)
        task_vectors = vectors[torch.from_numpy(batch.tasks), torch.from_numpy(description)]  # (B, G)
        epsilon = self.allocation.epsilon_at(step) if split == "train" else 0.0
        strategies = self.allocator.choose(task_vectors, epsilon, rng)
        return StrategyBatch(batch, strategies.cpu().numpy(), task_vectors)

    def shard(self, batch: StrategyBatch, rank: int, count: int) -> StrategyBatch:
        """Take every `count`-th episode; see `PredictionModel.shard`."""
        return batch.select(slice(rank, None, count))

    def answer(self, batch: StrategyBatch) -> tuple[Tensor, Tensor]:
        """Answer each query.

        Returns:
            Answers, as `Prediction.answers`, and the loss of each, float32, (B,), with gradient.
        """
        answers = self.model(batch.episodes, batch.strategies)
        return answers, self._losses(answers, batch.episodes)

    def loss(self, batch: StrategyBatch) -> tuple[Tensor, dict[str, float]]:
        """Compute the mean loss of the answers; see `PredictionModel.loss`.

        The error of the picture at the start of a query with moves is added, and the cross-entropy of a second head.
        With an allocator its own loss is added, weighted, and that of a memory that has one.
        """
        episodes = batch.episodes
        memory = self.model.memory
        if memory is not None:
            seed_memory(memory, batch.seed)
        prediction = self.model.predict(episodes, batch.strategies)
        answers, hints = prediction.answers, prediction.hints
        classes = self.model.task.classes
        with torch.autocast(answers.device.type, enabled=False):  # losses, Q values and rewards in float32
            total = torch.zeros((), device=answers.device)
            log = {}
            auxiliary_loss = None if memory is None else memory.auxiliary_loss()
            if auxiliary_loss is not None:
                total = total + auxiliary_loss
                log["auxiliary_loss"] = auxiliary_loss.item()
            if prediction.start is not None:
                truth = torch.from_numpy(episodes.answers[:, 0]).to(answers.device)
                total = total + _squared_errors(prediction.start, truth).mean()
            if hints is not None:
                truths = episodes.query_classes if classes else episodes.query_places
                assert truths is not None
                labels = torch.from_numpy(truths).to(hints.device)
                hint_loss = functional.cross_entropy(hints.float().flatten(0, -2), labels.flatten())
                total = total + self.model.hint_weight * hint_loss
                log[f"{self.model.hint}_accuracy"] = (hints.argmax(-1) == labels).double().mean().item()
            losses = self._losses(answers, episodes)
            learned = losses
            if self.allocation is not None and self.allocation.only_kept:
                # the mean is over all B episodes: those of weight 0 count in its denominator
                learned = losses * torch.from_numpy(self.answers_kept(batch).all(1)).to(losses)
            total = total + learned.mean()
            log[self.score] = self._scores(answers.detach(), losses.detach(), episodes).mean().item()
            if self.allocator is not None and self.allocation is not None:
                assert batch.task_vectors is not None
                strategies = torch.from_numpy(batch.strategies).to(losses.device)
                rewards = -losses if classes else -REWARD_SCALE * losses
                q_loss = self.allocator.loss(batch.task_vectors, strategies, rewards)
                total = total + self.allocation.loss_weight * q_loss
                log["q_loss"] = q_loss.item()
            if self.allocator is not None or auxiliary_loss is not None or (hints is not None and classes):
                log["answer_loss"] = losses.mean().item()
        return total, log

    def _losses(self, answers: Tensor, episodes: QueryBatch) -> Tensor:
        """Cross-entropies or mean squared errors, float32, (B,)."""
        truth = torch.from_numpy(episodes.answers).to(answers.device)
        if self.model.task.classes:
            return functional.cross_entropy(answers.float(), truth, reduction="none")
        return _squared_errors(answers, truth if episodes.query_moves is None else truth[:, 1:])

    def _scores(self, answers: Tensor, losses: Tensor, episodes: QueryBatch) -> Tensor:
        """Values of `score`: float64 of classes, float32 of pictures, (B,)."""
        if self.model.task.classes:
            return (answers.argmax(1) == torch.from_numpy(episodes.answers).to(answers.device)).double()
        return losses

    def scores(self, batch: StrategyBatch) -> dict[str, np.ndarray]:
        """Score each episode; see `PredictionModel.scores`.

        Metrics are "mse", or "accuracy" and "loss" of classes. Where steps show the answers also "kept", the share of
        them in memory, and of classes "accuracy_kept", the accuracy where it is. With several tasks also "mse_TASK" or
        "accuracy_TASK". With an allocator also the softmax of Q over strategies, "q_TASK_STRATEGY".
        """
        answers, losses = self.answer(batch)
        task = self.model.task
        scores = {self.score: self._scores(answers, losses, batch.episodes).cpu().double().numpy()}
        if task.classes:
            scores["loss"] = losses.cpu().double().numpy()
        if batch.episodes.answer_rows is not None:
            kept = self.answers_kept(batch)
            scores["kept"] = kept.mean(1)
            if task.classes:
                scores["accuracy_kept"] = scores["accuracy"][kept.all(1)]
        is_task = batch.episodes.tasks == np.arange(len(task.tasks))[:, None]  # (tasks, B)
        if task.is_mixed:
            scores |= {f"{self.score}_{name}": scores[self.score][is_task[i]] for i, name in enumerate(task.tasks)}
        if self.allocator is not None:
            assert batch.task_vectors is not None
            shares = self.allocator.distribution(batch.task_vectors).cpu().double().numpy()  # (B, strategies)
            for i, name in enumerate(task.tasks):
                for j, strategy in enumerate(self.allocator.strategies):
                    scores[f"q_{name}_{strategy}"] = shares[is_task[i], j]
        return scores

    def ideal(self, batch: StrategyBatch) -> dict[str, np.ndarray]:
        """Compute the score of the best answer from the same memory; see `PredictionModel.ideal`."""
        config = self.model.config
        scores = self.model.task.ideal(
            batch.episodes,
            batch.strategies,
            self.model.capacity,
            uses_places=config.uses_place,
            uses_moves=config.uses_moves,
        )
        return {} if scores is None else {self.score: scores}

    def query_actions(self, episodes: Episodes, rng: np.random.Generator) -> list[np.ndarray]:
        """Answer with the most likely classes; see `PredictionModel.query_actions`."""
        if not self.model.task.classes:
            return super().query_actions(episodes, rng)
        assert isinstance(episodes, QueryBatch)
        answers, _ = self.answer(self._with_strategies(episodes, rng))
        return list(answers.argmax(1).cpu().numpy()[:, None])

    def answers_kept(self, batch: StrategyBatch) -> np.ndarray:
        """Mark the answers that a step in memory shows, bool, (B, A)."""
        episodes = batch.episodes
        assert episodes.answer_rows is not None
        rows = np.where(self.model.retained_steps(episodes, batch.strategies), episodes.rows, -2)  # (B, T)
        return (rows[:, None] == episodes.answer_rows[:, :, None]).any(2)

    def parameter_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """Return the parameters of model and allocator, each with its factor of the learning rate."""
        groups = [([parameter for parameter in self.model.parameters() if parameter.requires_grad], 1.0)]
        if self.allocator is not None and self.allocation is not None:
            groups.append((list(self.allocator.parameters()), self.allocation.rate))
        return groups

    def inputs(self) -> dict[str, Any]:
        """Return width and fingerprint of the text encoder; see `PredictionModel.inputs`."""
        if self.encoder is None:
            return {}
        return {"features_dim": self.encoder.features_dim, "fingerprint": self.encoder.fingerprint}

    def check_inputs(self, saved: dict[str, Any], where: str) -> None:
        """Refuse another text encoder; see `PredictionModel.check_inputs`."""
        if self.encoder is not None and saved:
            fingerprint = self.encoder.fingerprint
            if saved["fingerprint"] != fingerprint:
                raise ValueError(
                    f"{where}: was trained on sentences of the encoder {saved['fingerprint']}, got {fingerprint}"
                )


def make_prediction(task: PictureTask, settings: Mapping[str, Any]) -> SATPrediction:
    """Make the prediction model of a task: a `BalletModel` for frames, else a `PictureModel`.

    Args:
        task: The task.
        settings: Fields of `BalletModelConfig` or `PictureModelConfig`. With `allocation`, a dict of fields of
            `AllocationConfig`, an allocator chooses the strategies.

    Raises:
        ValueError: A setting is not allowed.
        TypeError: A setting has another type.
    """
    model_settings = dict(settings)
    allocation = model_settings.pop("allocation", None)
    model: QueryModel
    if task.pictures == "frames":
        model = BalletModel(task, **model_settings)
    else:
        model = PictureModel(task, **model_settings)
        calibrate(model)
    if model.config.initialisation == "calibrated":
        model.standardize()
    if allocation is None:
        return SATPrediction(model)
    if model_settings.get("strategy") is not None:
        raise ValueError(
            f"strategy must be left out where it is chosen (allocation), got {model_settings['strategy']!r}"
        )
    if not model.config.uses_place:
        raise ValueError(
            f"allocation must be left out with memory {model.config.memory!r}, which knows no places, got {allocation}"
        )
    if model.capacity is None:
        raise ValueError(
            f"allocation must be left out where all is kept, got {allocation} with memory {model.config.memory!r} and "
            f"capacity {model.config.capacity!r}"
        )
    if isinstance(model, BalletModel) and model.own_head is not None:
        raise ValueError(
            f"own_layers must be 0 where strategies are chosen (allocation), got {model_settings['own_layers']}"
        )
    names = [field.name for field in fields(AllocationConfig)]
    for name in allocation:
        if name not in names:
            raise ValueError(f"unknown setting {name!r} of allocation; {choices_for(name, names)}")
    config = AllocationConfig(**allocation)
    if config.only_kept and not (task.classes and task.shows_answers):
        raise ValueError("only_kept must be False in a task whose answers are no classes that a step shows, got True")
    return SATPrediction(model, config)


def calibrate(model: PictureModel) -> None:
    """Fit encoder and decoder to a few pictures, if the initialisation is "calibrated"."""
    if model.config.initialisation != "calibrated":
        return
    has_components = model.config.convolutions == "components"
    count = COMPONENT_EPISODES if has_components else CALIBRATION_EPISODES
    batch = model.task.sample_batch(count, np.random.default_rng(0))
    numbers = np.unique(batch.rows[:, ::CALIBRATION_STRIDE] // model.encoder.rows_per_picture)
    pictures = torch.from_numpy(batch.pictures(numbers))
    if isinstance(model.encoder, PatchEncoder) and isinstance(model.head, PatchDecoder) and has_components:
        start_with_components(model.encoder, model.head, pictures, model.added_moments())
    else:
        model.encoder.calibrate(pictures)
    if isinstance(model.head, ViewDecoder):
        model.head.calibrate(pictures)


def _squared_errors(pictures: Tensor, truth: Tensor) -> Tensor:
    """Mean squared error of pictures, float, (B, ...), 0 to 1, and uint8, (B, ...); float32, (B,)."""
    pictures = pictures.float()
    targets = torch.empty_like(pictures).copy_(truth).div_(255)  # in the order of the decoder's pixels, which is faster
    errors = functional.mse_loss(pictures, targets, reduction="none")
    return errors.mean(tuple(range(1, errors.ndim)))
