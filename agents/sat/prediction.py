"""Room Ballet as a task to learn by prediction: episodes, who decides what is kept of them, and the loss."""

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
from memenvs.room_ballet.descriptions import TASKS, load_descriptions
from memenvs.room_ballet.episodes import Episodes
from memenvs.room_ballet.observer import ideal_observer, ideal_without_places
from memenvs.room_ballet.tasks import NAMES, make_ballet


@dataclass(frozen=True)
class BalletBatch:
    """Episodes with what was decided for them.

    Attributes:
        episodes: B of them.
        strategies: int64, (B,); what chooses what is kept of each.
        tasks: float32, (B, G); what an allocator was told of each; None without one.
    """

    episodes: Episodes
    strategies: np.ndarray
    tasks: Tensor | None = None


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
        return BalletBatch(
            self.model.task.sample_batch(count, rng), strategy_numbers(self.model.config.strategy_name, count)
        )

    def shard(self, batch: BalletBatch, rank: int, count: int) -> BalletBatch:
        """Every `count`-th episode; see `PredictionModel.shard`."""
        return BalletBatch(rows(batch.episodes, slice(rank, None, count)), batch.strategies[rank::count])

    def loss(self, batch: BalletBatch) -> tuple[Tensor, dict[str, float]]:
        """Mean cross-entropy of the answers, and of what is said of the dancers themselves if that is learned too; see `PredictionModel.loss`."""
        logits, own = self.model.logits(batch.episodes, batch.strategies)
        losses, right = _graded(logits, batch.episodes.label)
        if own is None:
            return losses.mean(), {"accuracy": float(right.mean())}
        dance = batch.episodes.room_dance[np.arange(len(right)), batch.episodes.query_place]
        own_losses, own_right = _graded(own, dance)
        log = {
            "accuracy": float(right.mean()),
            "answer_loss": losses.mean().item(),
            "own_accuracy": float(own_right.mean()),
        }
        return losses.mean() + own_losses.mean(), log

    def _answer(self, batch: BalletBatch) -> tuple[Tensor, np.ndarray]:
        """Cross-entropy of each answer, float (B,), and whether it is right, bool (B,)."""
        return _graded(self.model(batch.episodes, batch.strategies), batch.episodes.label)

    def scores(self, batch: BalletBatch) -> dict[str, np.ndarray]:
        """Accuracy, also where the memory holds what is asked about ("kept", where a single visit is); in several tasks by task."""
        losses, right = self._answer(batch)
        found = {"accuracy": right.astype(float), "loss": losses.cpu().double().numpy()}
        episodes = batch.episodes
        if (episodes.query_visit >= 0).all():
            kept = self.kept(batch)
            found |= {"kept": kept.astype(float), "accuracy_kept": found["accuracy"][kept]}
        if len(self.model.task.questions) > 1:
            for number, task in enumerate(TASKS):
                of_task = episodes.task == number
                found[f"accuracy_{task}"] = found["accuracy"][of_task]
        return found

    def kept(self, batch: BalletBatch) -> np.ndarray:
        """Whether the visit that is asked about is in memory at the question, bool (B,); for tasks that ask about visits."""
        visits = self.model.retained_visits(batch.episodes, batch.strategies)
        return visits[np.arange(len(visits)), batch.episodes.query_visit]

    def ideal(self, batch: BalletBatch) -> dict[str, np.ndarray]:
        """The chance that the best answer from the same memory is right; see `PredictionModel.ideal`.

        A memory of all visits that knows no places is asked for the next room or the opposite one by what the walk says of them; otherwise places
        are taken as known.
        """
        task, capacity, memory = self.model.task, self.model.capacity, self.model.config.memory
        if memory in ("t-fifo", "t-fifo+a") and task.questions[0] in ("next", "opposite") and capacity is None:
            return {"accuracy": ideal_without_places(task, batch.episodes, moves=memory == "t-fifo+a")}
        room = task.visits if capacity is None else capacity
        return {"accuracy": ideal_observer(task, batch.episodes, batch.strategies, room).accuracy}


@dataclass(frozen=True, kw_only=True)
class AllocationConfig:
    """Settings of `AllocatedBallet`.

    Attributes:
        task_input: What the allocator gets of a task: its number ("task") or one of its descriptions ("text").
        split: Which descriptions are held out for evaluation where it is in words; 0, 1 or 2.
        encoder: Settings of `make_text_encoder`.
        epsilon_start: As in `AllocatorConfig`, like the next two.
        epsilon_end: See there.
        epsilon_steps: See there; in batches.
        loss_weight: See there.
        rate: What the learning rate is multiplied with for the allocator, > 0.
        only_kept: Whether answers are learned only from episodes in whose memory the visit that is asked about is left; False learns from all, as the
            release does. The allocator learns from all in any case, and evaluation knows of nothing. For tasks that ask about visits.

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
        """Those of the allocator."""
        return AllocatorConfig(
            epsilon_start=self.epsilon_start,
            epsilon_end=self.epsilon_end,
            epsilon_steps=self.epsilon_steps,
            loss_weight=self.loss_weight,
        )


class AllocatedBallet(BalletPrediction):
    """A model with an allocator that learns, while the model does, which strategy each task is best answered with.

    The reward of a strategy is minus the loss of the answer. Evaluation takes the best strategy of each task.

    Args:
        model: What answers.
        config: Settings.

    Source:
        SAT, section 3.3 and its release.
    """

    def __init__(self, model: BalletModel, config: AllocationConfig) -> None:
        super().__init__(model)
        self.config, self.encoder = config, None
        learned = held_out = torch.eye(len(TASKS))[:, None]
        if config.task_input == "text":
            self.encoder = make_text_encoder(**config.encoder)
            learned, held_out = (_vectors(self.encoder, config.split, part) for part in ("train", "held_out"))
        self.register_buffer("learned", learned, persistent=False)  # (tasks, descriptions, G)
        self.register_buffer("held_out", held_out, persistent=False)
        self.allocator = AdaptiveAllocator(learned.shape[2], config.allocator)

    learned: Tensor
    held_out: Tensor
    encoder: TextEncoder | None

    def sample(self, count: int, rng: np.random.Generator, step: int | None) -> BalletBatch:
        """Episodes, what is told of each, and the strategies that are chosen; see `PredictionModel.sample`."""
        episodes = self.model.task.sample_batch(count, rng)
        vectors = self.held_out if step is None else self.learned
        which = rng.integers(vectors.shape[1], size=count)
        tasks = vectors[torch.from_numpy(episodes.task.astype(np.int64)), torch.from_numpy(which)]
        epsilon = 0.0 if step is None else self.allocator.config.epsilon_at(step)
        return BalletBatch(episodes, self.allocator.choose(tasks, epsilon, rng).cpu().numpy(), tasks)

    def shard(self, batch: BalletBatch, rank: int, count: int) -> BalletBatch:
        """Every `count`-th episode; see `PredictionModel.shard`."""
        assert batch.tasks is not None
        return replace(super().shard(batch, rank, count), tasks=batch.tasks[rank::count])

    def loss(self, batch: BalletBatch) -> tuple[Tensor, dict[str, float]]:
        """The loss of the answers and that of the allocator; see `PredictionModel.loss`."""
        assert batch.tasks is not None
        losses, right = self._answer(batch)
        chosen = torch.from_numpy(batch.strategies).to(losses.device)
        with torch.autocast(losses.device.type, enabled=False):
            wrong = self.allocator.loss(batch.tasks, chosen, -losses)
        learned = torch.ones_like(losses)
        if self.config.only_kept:
            learned = torch.from_numpy(self.kept(batch)).to(losses)
        total = (learned * losses).mean() + self.config.loss_weight * wrong
        return total, {"accuracy": float(right.mean()), "answer_loss": losses.mean().item(), "q_loss": wrong.item()}

    def scores(self, batch: BalletBatch) -> dict[str, np.ndarray]:
        """Accuracies, and for each task softmax(Q) of each strategy ("q_TASK_STRATEGY"); see `PredictionModel.scores`."""
        assert batch.tasks is not None
        found = super().scores(batch)
        shares = self.allocator.distribution(batch.tasks).cpu().double().numpy()
        for number, task in enumerate(TASKS):
            of_task = batch.episodes.task == number
            found |= {f"q_{task}_{name}": shares[of_task, i] for i, name in enumerate(STRATEGIES)}
        return found

    def parameter_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """The allocator has a learning rate of its own."""
        return [(list(self.model.parameters()), 1.0), (list(self.allocator.parameters()), self.config.rate)]

    def inputs(self) -> dict[str, Any]:
        """The encoder of sentences; see `PredictionModel.inputs`."""
        if self.encoder is None:
            return {}
        return {"features_dim": self.encoder.features_dim, "fingerprint": self.encoder.fingerprint}

    def check_inputs(self, saved: dict[str, Any], where: str) -> None:
        """Refuses another encoder of sentences; see `PredictionModel.check_inputs`."""
        if self.encoder is not None and saved:
            check_text_encoder(self.encoder, saved["features_dim"], saved["fingerprint"], where)


def _vectors(encoder: TextEncoder, split: int, part: Literal["train", "held_out"]) -> Tensor:
    """Vectors of the descriptions of each task, float32, (tasks, descriptions, G)."""
    texts = load_descriptions().part(split, part)
    return torch.from_numpy(np.stack([encoder(each) for each in texts]))


def make_prediction_model(env: str, env_kwargs: Mapping[str, Any], settings: Mapping[str, Any]) -> PredictionModel:
    """What is learned in a Room Ballet.

    Args:
        env: Id of the environment.
        env_kwargs: Its settings, those of `make_ballet`.
        settings: Fields of `BalletModelConfig`; with `allocation`, fields of `AllocationConfig`, strategies are chosen and learned about.

    Raises:
        ValueError: The environment is no Room Ballet, or a setting is not allowed.
        TypeError: A setting does not exist.
    """
    ids = {f"memenvs/RoomBallet-{name}-v0": name for name in NAMES}
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
            f"allocation must be left out where all visits are kept, got {allocation} with memory {model.config.memory!r} and capacity "
            f"{model.config.capacity!r}"
        )
    if model.own_head is not None:
        raise ValueError(f"own_layers must be 0 where strategies are chosen (allocation), got {own['own_layers']}")
    known = [each.name for each in fields(AllocationConfig)]
    for name in allocation:
        if name not in known:
            raise ValueError(f"unknown setting {name!r} of allocation; {choices_for(name, known)}")
    config = AllocationConfig(**allocation)
    if config.only_kept and model.task.asks_of_rooms:
        raise ValueError("only_kept must be False in a task that asks about rooms and not about a visit, got True")
    return AllocatedBallet(model, config)


def _graded(logits: Tensor, dances: np.ndarray) -> tuple[Tensor, np.ndarray]:
    """Cross-entropy of each answer, (B, 8) for (B,) dances, and whether it is right, bool (B,)."""
    labels = torch.from_numpy(dances.astype(np.int64)).to(logits.device)
    right = (logits.detach().argmax(1) == labels).cpu().numpy()
    return functional.cross_entropy(logits.float(), labels, reduction="none"), right


def rows(episodes: Episodes, index: slice | np.ndarray) -> Episodes:
    """Some of the episodes of a batch."""
    return replace(episodes, **{each.name: getattr(episodes, each.name)[index] for each in fields(episodes)})
