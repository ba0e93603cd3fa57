"""Room Ballet as a prediction task: batches, retention strategies, loss and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.algorithms.supervised import PredictionModel
from memenvs.agents.algorithms.supervised_config import Split
from memenvs.agents.encoders.text import TextEncoder, check_text_encoder, make_text_encoder
from memenvs.agents.memory.allocator import AdaptiveAllocator
from memenvs.agents.papers.sat.allocation import SupervisedAllocation
from memenvs.agents.papers.sat.model import BalletModel
from memenvs.checks import choices_for
from memenvs.retention import STRATEGIES, strategy_numbers
from memenvs.room_ballet.descriptions import STRATEGY_TASKS, load_descriptions
from memenvs.room_ballet.episodes import BalletEpisodes
from memenvs.room_ballet.observer import ideal_observer, ideal_without_places
from memenvs.room_ballet.tasks import BALLET_NAMES, make_ballet


@dataclass(frozen=True)
class BalletBatch:
    """Episodes with the retention strategy of each.

    Attributes:
        episodes: B episodes.
        strategies: int64, (B,); number of each episode's strategy in `memenvs.retention.STRATEGY_NAMES`.
        task_vectors: float32, (B, G); inputs of the allocator; None without one.
    """

    episodes: BalletEpisodes
    strategies: np.ndarray
    task_vectors: Tensor | None = None


class BalletPrediction(PredictionModel):
    """A `BalletModel` to be trained, with one retention strategy for all episodes.

    Args:
        model: The model.
    """

    def __init__(self, model: BalletModel) -> None:
        super().__init__()
        self.model = model

    def sample(self, count: int, rng: np.random.Generator, split: Split = "train", step: int = 0) -> BalletBatch:
        """Draw episodes of the task; see `PredictionModel.sample`."""
        return BalletBatch(
            self.model.task.sample_batch(count, rng), strategy_numbers(self.model.config.strategy_name, count)
        )

    def shard(self, batch: BalletBatch, rank: int, count: int) -> BalletBatch:
        """Take every `count`-th episode; see `PredictionModel.shard`."""
        return BalletBatch(select_episodes(batch.episodes, slice(rank, None, count)), batch.strategies[rank::count])

    def loss(self, batch: BalletBatch) -> tuple[Tensor, dict[str, float]]:
        """Compute the mean cross-entropy of the answers; see `PredictionModel.loss`.

        With `own_layers` an auxiliary loss is added: the cross-entropy of a second head. It predicts the dance of the
        queried dancer itself ("own"), not that of the dancer in the next or opposite room.
        """
        logits, own_logits = self.model.logits(batch.episodes, batch.strategies)
        losses, is_correct = _cross_entropy_and_correct(logits, batch.episodes.label)
        if own_logits is None:
            return losses.mean(), {"accuracy": float(is_correct.mean())}
        own_dance = batch.episodes.room_dance[np.arange(len(is_correct)), batch.episodes.query_place]
        own_losses, own_is_correct = _cross_entropy_and_correct(own_logits, own_dance)
        log = {
            "accuracy": float(is_correct.mean()),
            "answer_loss": losses.mean().item(),
            "own_accuracy": float(own_is_correct.mean()),
        }
        return losses.mean() + own_losses.mean(), log

    def _losses_and_correct(self, batch: BalletBatch) -> tuple[Tensor, np.ndarray]:
        """Answer each query; return cross-entropies, float (B,), and a mask of correct answers, bool (B,)."""
        return _cross_entropy_and_correct(self.model(batch.episodes, batch.strategies), batch.episodes.label)

    def scores(self, batch: BalletBatch) -> dict[str, np.ndarray]:
        """Score each episode; see `PredictionModel.scores`.

        Metrics are "accuracy" and "loss". If queries are about visits, also "kept" (1 if the visit is in memory) and
        "accuracy_kept" (accuracy where it is). If there are several tasks, also "accuracy_TASK" for each.
        """
        losses, is_correct = self._losses_and_correct(batch)
        scores = {"accuracy": is_correct.astype(float), "loss": losses.cpu().double().numpy()}
        episodes = batch.episodes
        if (episodes.query_visit >= 0).all():  # queries are about visits, not rooms
            kept = self.query_is_kept(batch)
            scores |= {"kept": kept.astype(float), "accuracy_kept": scores["accuracy"][kept]}
        if len(self.model.task.query_rules) > 1:
            for number, task in enumerate(STRATEGY_TASKS):
                scores[f"accuracy_{task}"] = scores["accuracy"][episodes.task_id == number]
        return scores

    def query_is_kept(self, batch: BalletBatch) -> np.ndarray:
        """Mark episodes whose queried visit is in memory, bool, (B,)."""
        visits = self.model.retained_visits(batch.episodes, batch.strategies)
        return visits[np.arange(len(visits)), batch.episodes.query_visit]

    def ideal(self, batch: BalletBatch) -> dict[str, np.ndarray]:
        """Compute the accuracy of the best answer from the same memory; see `PredictionModel.ideal`.

        The ideal observer knows the place of each visit. There is one exception: if the model has all visits but no
        places, and the query is about the next or the opposite room, it infers places from the rules of the walk.
        """
        task = self.model.task
        capacity = self.model.capacity
        config = self.model.config
        if not config.uses_place and task.query_rules[0] in ("next", "opposite") and capacity is None:
            return {"accuracy": ideal_without_places(task, batch.episodes, moves_known=config.uses_action)}
        limit = task.visits if capacity is None else capacity  # None: all visits
        return {"accuracy": ideal_observer(task, batch.episodes, batch.strategies, limit).accuracy}


@dataclass(frozen=True, kw_only=True)
class AllocationConfig(SupervisedAllocation):
    """Settings of `AllocatedBallet`, beside those of `SupervisedAllocation`.

    Attributes:
        task_input: Input of the allocator: "task" is the task's number, one-hot; "text" is the embedding of one of its
            descriptions.
        split: Split of the descriptions, 0, 1 or 2; it decides which are held out for evaluation. With "text".
        encoder: Settings of `make_text_encoder`. With "text".
        only_kept: If True, the model learns only from episodes whose queried visit is in memory; False learns from
            all, as the release does. The allocator always learns from all, and evaluation is not affected. For tasks
            whose queries are about visits.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.
    """

    task_input: Literal["task", "text"] = "task"
    split: int = 0
    encoder: dict[str, Any] = field(default_factory=dict)
    only_kept: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("split", "encoder"):
            if getattr(self, name) and self.task_input != "text":
                raise ValueError(
                    f"{name} must be left out where task_input is {self.task_input!r}, got {getattr(self, name)}"
                )


class AllocatedBallet(BalletPrediction):
    """A `BalletModel` with an allocator that learns which strategy suits each task.

    Model and allocator learn at the same time. The allocator is a contextual bandit: its context is a task vector, its
    action a strategy, and its reward minus the loss of the answer. Evaluation takes the best strategy of each task.

    Args:
        model: The model.
        config: Settings of the allocator.

    Attributes:
        train_vectors: float32, (tasks, descriptions, G); task vectors of training batches.
        held_out_vectors: As `train_vectors`, for evaluation batches: of the descriptions that are held out.
        encoder: Encoder of the descriptions; None with one-hot task vectors.
        allocator: Network that values each strategy for a task vector.

    Source:
        SAT, section 3.3 and its release.
    """

    train_vectors: Tensor
    held_out_vectors: Tensor
    encoder: TextEncoder | None

    def __init__(self, model: BalletModel, config: AllocationConfig) -> None:
        super().__init__(model)
        self.config = config
        self.encoder = None
        train_vectors = held_out_vectors = torch.eye(len(STRATEGY_TASKS))[:, None]  # (tasks, 1, G), one-hot
        if config.task_input == "text":
            self.encoder = make_text_encoder(**config.encoder)
            train_vectors = _encode_descriptions(self.encoder, config.split, "train")
            held_out_vectors = _encode_descriptions(self.encoder, config.split, "held_out")
        self.register_buffer("train_vectors", train_vectors, persistent=False)
        self.register_buffer("held_out_vectors", held_out_vectors, persistent=False)
        self.allocator = AdaptiveAllocator(train_vectors.shape[2])

    def sample(self, count: int, rng: np.random.Generator, split: Split = "train", step: int = 0) -> BalletBatch:
        """Draw episodes and task vectors, and choose strategies; see `PredictionModel.sample`."""
        episodes = self.model.task.sample_batch(count, rng)
        vectors = self.train_vectors if split == "train" else self.held_out_vectors
        description = rng.integers(vectors.shape[1], size=count)
        task_vectors = vectors[  # (B, G)
            torch.from_numpy(episodes.task_id.astype(np.int64)), torch.from_numpy(description)
        ]
        epsilon = self.config.epsilon_at(step) if split == "train" else 0.0
        strategies = self.allocator.choose(task_vectors, epsilon, rng)
        return BalletBatch(episodes, strategies.cpu().numpy(), task_vectors)

    def shard(self, batch: BalletBatch, rank: int, count: int) -> BalletBatch:
        """Take every `count`-th episode; see `PredictionModel.shard`."""
        assert batch.task_vectors is not None
        return replace(super().shard(batch, rank, count), task_vectors=batch.task_vectors[rank::count])

    def loss(self, batch: BalletBatch) -> tuple[Tensor, dict[str, float]]:
        """Sum the losses of the model and of the allocator; see `PredictionModel.loss`."""
        assert batch.task_vectors is not None
        losses, is_correct = self._losses_and_correct(batch)
        strategies = torch.from_numpy(batch.strategies).to(losses.device)
        with torch.autocast(losses.device.type, enabled=False):  # Q values and rewards in float32
            q_loss = self.allocator.loss(batch.task_vectors, strategies, -losses)
        weights = torch.ones_like(losses)
        if self.config.only_kept:
            weights = torch.from_numpy(self.query_is_kept(batch)).to(losses)
        # The mean is over all B episodes: those of weight 0 count in its denominator.
        total = (weights * losses).mean() + self.config.loss_weight * q_loss
        return total, {
            "accuracy": float(is_correct.mean()),
            "answer_loss": losses.mean().item(),
            "q_loss": q_loss.item(),
        }

    def scores(self, batch: BalletBatch) -> dict[str, np.ndarray]:
        """Add the softmax of Q over strategies, "q_TASK_STRATEGY"; see `BalletPrediction.scores`."""
        assert batch.task_vectors is not None
        scores = super().scores(batch)
        distribution = self.allocator.distribution(batch.task_vectors).cpu().double().numpy()  # (B, strategies)
        for number, task in enumerate(STRATEGY_TASKS):
            is_task = batch.episodes.task_id == number
            scores |= {f"q_{task}_{name}": distribution[is_task, i] for i, name in enumerate(STRATEGIES)}
        return scores

    def parameter_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """Return the parameters of model and allocator, each with its factor of the learning rate."""
        return [(list(self.model.parameters()), 1.0), (list(self.allocator.parameters()), self.config.rate)]

    def inputs(self) -> dict[str, Any]:
        """Return width and fingerprint of the text encoder; see `PredictionModel.inputs`."""
        if self.encoder is None:
            return {}
        return {"features_dim": self.encoder.features_dim, "fingerprint": self.encoder.fingerprint}

    def check_inputs(self, saved: dict[str, Any], where: str) -> None:
        """Refuse another text encoder; see `PredictionModel.check_inputs`."""
        if self.encoder is not None and saved:
            check_text_encoder(self.encoder, saved["features_dim"], saved["fingerprint"], where)


def _encode_descriptions(encoder: TextEncoder, split: int, part: Literal["train", "held_out"]) -> Tensor:
    """Encode the descriptions of each task; float32, (tasks, descriptions, G)."""
    texts = load_descriptions().select(split, part)
    return torch.from_numpy(np.stack([encoder(each) for each in texts]))


def make_prediction_model(env: str, env_kwargs: Mapping[str, Any], settings: Mapping[str, Any]) -> PredictionModel:
    """Make the prediction model of a Room Ballet, with an allocator or a fixed strategy.

    Args:
        env: Id of the environment.
        env_kwargs: Settings of the environment, those of `make_ballet`.
        settings: Fields of `BalletModelConfig`. With `allocation`, a dict of fields of `AllocationConfig`, an allocator
            chooses the strategies.

    Raises:
        ValueError: The environment is not a Room Ballet, or a setting is not allowed.
        TypeError: A setting does not exist.
    """
    ids = {f"memenvs/RoomBallet-{name}-v0": name for name in BALLET_NAMES}
    if env not in ids:
        raise ValueError(f"env must be one that can be learned by prediction, got {env!r}; {choices_for(env, ids)}")
    model_settings = dict(settings)
    allocation = model_settings.pop("allocation", None)
    model = BalletModel(make_ballet(ids[env], **env_kwargs), **model_settings)
    if allocation is None:
        return BalletPrediction(model)
    if model_settings.get("strategy") is not None:
        raise ValueError(
            f"strategy must be left out where it is chosen (allocation), got {model_settings['strategy']!r}"
        )
    if model.capacity is None:
        raise ValueError(
            f"allocation must be left out where all visits are kept, got {allocation} with memory "
            f"{model.config.memory!r} and capacity {model.config.capacity!r}"
        )
    if model.own_head is not None:
        raise ValueError(
            f"own_layers must be 0 where strategies are chosen (allocation), got {model_settings['own_layers']}"
        )
    known = [each.name for each in fields(AllocationConfig)]
    for name in allocation:
        if name not in known:
            raise ValueError(f"unknown setting {name!r} of allocation; {choices_for(name, known)}")
    config = AllocationConfig(**allocation)
    if config.only_kept and model.task.queries_rooms:
        raise ValueError("only_kept must be False in a task with questions about rooms, not visits, got True")
    return AllocatedBallet(model, config)


def _cross_entropy_and_correct(logits: Tensor, dances: np.ndarray) -> tuple[Tensor, np.ndarray]:
    """Compare logits, float (B, 8), with dances, int (B,).

    Returns:
        Cross-entropies, float32 (B,), with gradient; and a mask of correct answers, bool (B,).
    """
    labels = torch.from_numpy(dances.astype(np.int64)).to(logits.device)
    is_correct = (logits.detach().argmax(1) == labels).cpu().numpy()
    return functional.cross_entropy(logits.float(), labels, reduction="none"), is_correct


def select_episodes(episodes: BalletEpisodes, index: slice | np.ndarray) -> BalletEpisodes:
    """Select some of the episodes, by a slice or an index, int or bool (B,)."""
    return replace(episodes, **{each.name: getattr(episodes, each.name)[index] for each in fields(episodes)})
