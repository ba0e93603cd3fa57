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
from memenvs.agents.encoders.text import TextEncoder, check_text_encoder, make_text_encoder
from memenvs.agents.sat.allocator import AdaptiveAllocator, AllocatorConfig
from memenvs.agents.sat.model import BalletModel
from memenvs.checks import check_fields, choices_for
from memenvs.retention import STRATEGIES, strategy_numbers
from memenvs.room_ballet.descriptions import STRATEGY_TASKS, load_descriptions
from memenvs.room_ballet.episodes import Episodes
from memenvs.room_ballet.observer import ideal_observer, ideal_without_places
from memenvs.room_ballet.tasks import BALLET_NAMES, make_ballet


@dataclass(frozen=True)
class BalletBatch:
    """Episodes with the retention strategy of each.

    Attributes:
        episodes: B episodes.
        strategies: int64, (B,); number of the strategy of each.
        tasks: float32, (B, G); task vectors, the inputs of an allocator; None without one.
    """

    episodes: Episodes
    strategies: np.ndarray
    tasks: Tensor | None = None


class BalletPrediction(PredictionModel):
    """A `BalletModel` with one retention strategy for all episodes.

    Args:
        model: The model.
    """

    def __init__(self, model: BalletModel) -> None:
        super().__init__()
        self.model = model

    def sample(self, count: int, rng: np.random.Generator, step: int | None) -> BalletBatch:
        """Draw episodes of the task; see `PredictionModel.sample`."""
        return BalletBatch(
            self.model.task.sample_batch(count, rng), strategy_numbers(self.model.config.strategy_name, count)
        )

    def shard(self, batch: BalletBatch, rank: int, count: int) -> BalletBatch:
        """Every `count`-th episode; see `PredictionModel.shard`."""
        return BalletBatch(select_episodes(batch.episodes, slice(rank, None, count)), batch.strategies[rank::count])

    def loss(self, batch: BalletBatch) -> tuple[Tensor, dict[str, float]]:
        """Compute the mean cross-entropy of the answers; see `PredictionModel.loss`.

        With `own_layers`, that of the queried dancers' own dances is added.
        """
        logits, own = self.model.logits(batch.episodes, batch.strategies)
        losses, right = _grade(logits, batch.episodes.label)
        if own is None:
            return losses.mean(), {"accuracy": float(right.mean())}
        dance = batch.episodes.room_dance[np.arange(len(right)), batch.episodes.query_place]
        own_losses, own_right = _grade(own, dance)
        log = {
            "accuracy": float(right.mean()),
            "answer_loss": losses.mean().item(),
            "own_accuracy": float(own_right.mean()),
        }
        return losses.mean() + own_losses.mean(), log

    def _answer(self, batch: BalletBatch) -> tuple[Tensor, np.ndarray]:
        """Compute the cross-entropy of each answer, float (B,), and whether it is right, bool (B,)."""
        return _grade(self.model(batch.episodes, batch.strategies), batch.episodes.label)

    def scores(self, batch: BalletBatch) -> dict[str, np.ndarray]:
        """Score each episode; see `PredictionModel.scores`.

        Metrics are "accuracy" and "loss"; if questions are about visits, "kept" (the visit is in memory) and
        "accuracy_kept" (accuracy where it is); if there are several tasks, "accuracy_TASK".
        """
        losses, right = self._answer(batch)
        scores = {"accuracy": right.astype(float), "loss": losses.cpu().double().numpy()}
        episodes = batch.episodes
        if (episodes.query_visit >= 0).all():
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

        The ideal observer knows the place of each visit. The exception are memories of all visits without places where
        the question is about the next or the opposite room: there it infers places from the rules of the walk.
        """
        task, capacity, config = self.model.task, self.model.capacity, self.model.config
        if not config.uses_place and task.query_rules[0] in ("next", "opposite") and capacity is None:
            return {"accuracy": ideal_without_places(task, batch.episodes, moves_known=config.uses_action)}
        limit = task.visits if capacity is None else capacity
        return {"accuracy": ideal_observer(task, batch.episodes, batch.strategies, limit).accuracy}


@dataclass(frozen=True, kw_only=True)
class AllocationConfig:
    """Settings of `AllocatedBallet`.

    Attributes:
        task_input: Input of the allocator: "task" is the task's number, one-hot; "text" is one of its descriptions.
        split: Split of the descriptions, 0, 1 or 2; it decides which are held out for evaluation. With "text".
        encoder: Settings of `make_text_encoder`. With "text".
        epsilon_start: See `AllocatorConfig`.
        epsilon_end: See `AllocatorConfig`.
        epsilon_steps: See `AllocatorConfig`; in batches.
        loss_weight: See `AllocatorConfig`.
        rate: Factor on the learning rate for the allocator, > 0.
        only_kept: Whether the model learns only from episodes whose queried visit is in memory; False learns from
            all, as the release does. The allocator always learns from all, and evaluation is not affected. For tasks
            that ask about visits.

    Raises:
        TypeError: A value of another type.
        ValueError: A value out of range.
    """

    task_input: Literal["task", "text"] = "task"
    split: int = 0
    encoder: dict[str, Any] = field(default_factory=dict)
    epsilon_start: float = 1.0
    epsilon_end: float = 0.2
    epsilon_steps: int = 200_000
    loss_weight: float = 0.1
    rate: float = 1.0
    only_kept: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.rate > 0:
            raise ValueError(f"rate must be > 0, got {self.rate}")
        for name in ("split", "encoder"):
            if getattr(self, name) and self.task_input != "text":
                raise ValueError(
                    f"{name} must be left out where task_input is {self.task_input!r}, got {getattr(self, name)}"
                )
        self.allocator  # noqa: B018  (checks its settings)

    @property
    def allocator(self) -> AllocatorConfig:
        """Settings of the allocator."""
        return AllocatorConfig(
            epsilon_start=self.epsilon_start,
            epsilon_end=self.epsilon_end,
            epsilon_steps=self.epsilon_steps,
            loss_weight=self.loss_weight,
        )


class AllocatedBallet(BalletPrediction):
    """A `BalletModel` with an allocator that learns which strategy suits each task.

    Model and allocator learn at the same time. The reward of a strategy is minus the loss of the answer. Evaluation
    takes the best strategy of each task.

    Args:
        model: The model.
        config: Settings of the allocator.

    Source:
        SAT, section 3.3 and its release.
    """

    learned: Tensor
    held_out: Tensor
    encoder: TextEncoder | None

    def __init__(self, model: BalletModel, config: AllocationConfig) -> None:
        super().__init__(model)
        self.config = config
        self.encoder = None
        learned = held_out = torch.eye(len(STRATEGY_TASKS))[:, None]
        if config.task_input == "text":
            self.encoder = make_text_encoder(**config.encoder)
            learned, held_out = (_vectors(self.encoder, config.split, part) for part in ("train", "held_out"))
        self.register_buffer("learned", learned, persistent=False)  # (tasks, descriptions, G)
        self.register_buffer("held_out", held_out, persistent=False)
        self.allocator = AdaptiveAllocator(learned.shape[2], config.allocator)

    def sample(self, count: int, rng: np.random.Generator, step: int | None) -> BalletBatch:
        """Draw episodes and task vectors, and choose strategies; see `PredictionModel.sample`."""
        episodes = self.model.task.sample_batch(count, rng)
        vectors = self.held_out if step is None else self.learned
        which = rng.integers(vectors.shape[1], size=count)
        tasks = vectors[torch.from_numpy(episodes.task_id.astype(np.int64)), torch.from_numpy(which)]
        epsilon = 0.0 if step is None else self.allocator.config.epsilon_at(step)
        return BalletBatch(episodes, self.allocator.choose(tasks, epsilon, rng).cpu().numpy(), tasks)

    def shard(self, batch: BalletBatch, rank: int, count: int) -> BalletBatch:
        """Every `count`-th episode; see `PredictionModel.shard`."""
        assert batch.tasks is not None
        return replace(super().shard(batch, rank, count), tasks=batch.tasks[rank::count])

    def loss(self, batch: BalletBatch) -> tuple[Tensor, dict[str, float]]:
        """Add the loss of the answers and that of the allocator; see `PredictionModel.loss`."""
        assert batch.tasks is not None
        losses, right = self._answer(batch)
        chosen = torch.from_numpy(batch.strategies).to(losses.device)
        with torch.autocast(losses.device.type, enabled=False):
            q_loss = self.allocator.loss(batch.tasks, chosen, -losses)
        weights = torch.ones_like(losses)
        if self.config.only_kept:
            weights = torch.from_numpy(self.query_is_kept(batch)).to(losses)
        total = (weights * losses).mean() + self.config.loss_weight * q_loss
        return total, {"accuracy": float(right.mean()), "answer_loss": losses.mean().item(), "q_loss": q_loss.item()}

    def scores(self, batch: BalletBatch) -> dict[str, np.ndarray]:
        """Add softmax(Q) of each strategy, "q_TASK_STRATEGY"; see `BalletPrediction.scores`."""
        assert batch.tasks is not None
        scores = super().scores(batch)
        shares = self.allocator.distribution(batch.tasks).cpu().double().numpy()
        for number, task in enumerate(STRATEGY_TASKS):
            of_task = batch.episodes.task_id == number
            scores |= {f"q_{task}_{name}": shares[of_task, i] for i, name in enumerate(STRATEGIES)}
        return scores

    def parameter_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """Return the parameters of model and allocator, which has its own learning rate."""
        return [(list(self.model.parameters()), 1.0), (list(self.allocator.parameters()), self.config.rate)]

    def inputs(self) -> dict[str, Any]:
        """Identify the text encoder; see `PredictionModel.inputs`."""
        if self.encoder is None:
            return {}
        return {"features_dim": self.encoder.features_dim, "fingerprint": self.encoder.fingerprint}

    def check_inputs(self, saved: dict[str, Any], where: str) -> None:
        """Refuse another text encoder; see `PredictionModel.check_inputs`."""
        if self.encoder is not None and saved:
            check_text_encoder(self.encoder, saved["features_dim"], saved["fingerprint"], where)


def _vectors(encoder: TextEncoder, split: int, part: Literal["train", "held_out"]) -> Tensor:
    """Encode the descriptions of each task; float32, (tasks, descriptions, G)."""
    texts = load_descriptions().select(split, part)
    return torch.from_numpy(np.stack([encoder(each) for each in texts]))


def make_prediction_model(env: str, env_kwargs: Mapping[str, Any], settings: Mapping[str, Any]) -> PredictionModel:
    """Make the model that learns a Room Ballet.

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
    own = dict(settings)
    allocation = own.pop("allocation", None)
    model = BalletModel(make_ballet(ids[env], **env_kwargs), **own)
    if allocation is None:
        return BalletPrediction(model)
    if own.get("strategy") is not None:
        raise ValueError(f"strategy must be left out where it is chosen (allocation), got {own['strategy']!r}")
    if model.capacity is None:
        raise ValueError(
            f"allocation must be left out where all visits are kept, got {allocation} with memory "
            f"{model.config.memory!r} and capacity {model.config.capacity!r}"
        )
    if model.own_head is not None:
        raise ValueError(f"own_layers must be 0 where strategies are chosen (allocation), got {own['own_layers']}")
    known = [each.name for each in fields(AllocationConfig)]
    for name in allocation:
        if name not in known:
            raise ValueError(f"unknown setting {name!r} of allocation; {choices_for(name, known)}")
    config = AllocationConfig(**allocation)
    if config.only_kept and model.task.queries_rooms:
        raise ValueError("only_kept must be False in a task with questions about rooms, not visits, got True")
    return AllocatedBallet(model, config)


def _grade(logits: Tensor, dances: np.ndarray) -> tuple[Tensor, np.ndarray]:
    """Compare logits, float (B, 8), with dances, (B,): cross-entropies, float (B,), and right answers, bool (B,)."""
    labels = torch.from_numpy(dances.astype(np.int64)).to(logits.device)
    right = (logits.detach().argmax(1) == labels).cpu().numpy()
    return functional.cross_entropy(logits.float(), labels, reduction="none"), right


def select_episodes(episodes: Episodes, index: slice | np.ndarray) -> Episodes:
    """Select some episodes of a batch."""
    return replace(episodes, **{each.name: getattr(episodes, each.name)[index] for each in fields(episodes)})
