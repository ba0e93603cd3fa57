"""Room Ballet as a prediction task: shards, losses and scores from the model's answers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from memenvs.agents.algorithms.supervised_config import Split
from memenvs.agents.papers.sat.learner import (
    AllocatedBallet,
    BalletBatch,
    BalletPrediction,
    make_prediction_model,
    select_episodes,
)
from memenvs.retention import STRATEGIES, STRATEGY_NAMES, retained
from memenvs.room_ballet.descriptions import Part, load_descriptions
from memenvs.room_ballet.observer import ideal_observer, ideal_without_places

SMALL = {"layers": 2, "dim": 8, "mlp_dim": 8}


def make(task: str, **settings: Any) -> BalletPrediction:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = make_prediction_model(f"memenvs/RoomBallet-{task}-v0", {}, {**SMALL, **settings})
    assert isinstance(made, BalletPrediction)
    return made


def sample(model: BalletPrediction, count: int, split: Split = "train") -> BalletBatch:
    return model.sample(count, np.random.default_rng(4), split)


def test_shards_are_the_episodes_in_turn() -> None:
    for settings in ({}, {"allocation": {}}):
        model = make("MultiTask", **settings)
        batch = sample(model, 7)
        for rank in range(3):
            shard = model.shard(batch, rank, 3)
            assert np.array_equal(shard.strategies, batch.strategies[rank::3])
            for each in fields(batch.episodes):
                whole = getattr(batch.episodes, each.name)
                assert np.array_equal(getattr(shard.episodes, each.name), whole[rank::3])
            assert (shard.task_vectors is None) == (batch.task_vectors is None)
            if shard.task_vectors is not None and batch.task_vectors is not None:
                assert torch.equal(shard.task_vectors, batch.task_vectors[rank::3])
    chosen = select_episodes(batch.episodes, np.array([3, 3, 0]))
    assert np.array_equal(chosen.key, batch.episodes.key[[3, 3, 0]])


def test_the_loss_is_that_of_the_answers_and_of_the_dancers_own_dance() -> None:
    for task, own_layers in (("LIFO", 0), ("Next", 1)):
        model = make(task, own_layers=own_layers)
        batch = sample(model, 9)
        assert (batch.strategies == STRATEGY_NAMES.index("fifo")).all()
        logits, own = model.model.logits(batch.episodes, batch.strategies)
        labels = torch.from_numpy(batch.episodes.label).long()
        loss, log = model.loss(batch)
        answer = functional.cross_entropy(logits, labels)
        accuracy = (logits.argmax(1) == labels).float().mean().item()
        if not own_layers:
            torch.testing.assert_close(loss, answer)
            assert log == {"accuracy": pytest.approx(accuracy)}
            continue
        rooms = zip(batch.episodes.room_dance, batch.episodes.query_place, strict=True)
        dances = torch.tensor([int(dances[place]) for dances, place in rooms])
        torch.testing.assert_close(loss, answer + functional.cross_entropy(own, dances))
        own_accuracy = (own.argmax(1) == dances).float().mean().item()
        by_hand = {"accuracy": accuracy, "own_accuracy": own_accuracy, "answer_loss": answer.item()}
        assert log == {name: pytest.approx(value) for name, value in by_hand.items()}


@torch.no_grad()
def test_scores_are_counted_where_the_visit_is_kept_and_by_task() -> None:
    model = make("MultiTask", strategy="lifo")
    batch = sample(model, 40)
    episodes = batch.episodes
    logits = model.model(episodes, batch.strategies)
    losses = functional.cross_entropy(logits, torch.from_numpy(episodes.label).long(), reduction="none")
    is_correct = (logits.argmax(1).numpy() == episodes.label).astype(float)
    kept = retained(episodes.visit_place, "lifo", 9)[np.arange(40), episodes.query_visit]
    assert 0 < kept.sum() < 40
    scores = model.scores(batch)
    np.testing.assert_allclose(scores.pop("loss"), losses.double().numpy(), rtol=1e-6)
    expected = {"accuracy": is_correct, "kept": kept, "accuracy_kept": is_correct[kept]}
    expected |= {f"accuracy_{task}": is_correct[episodes.task_id == i] for i, task in enumerate(STRATEGIES)}
    assert scores.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(scores[name], values)
    assert make("FIFO").scores(sample(make("FIFO"), 3)).keys() == {"accuracy", "loss", "kept", "accuracy_kept"}
    assert make("Next").scores(sample(make("Next"), 3)).keys() == {"accuracy", "loss"}


def test_the_ideal_observer_has_the_memory_of_the_model() -> None:
    for task, memory, capacity in (
        ("FIFO", "sat-fifo", 9),
        ("FIFO", "t-fifo", 3),
        ("FIFO", "sat-fifo", None),
        ("Next", "sat-fifo", None),
        ("Opposite", "t-fifo", 9),
        ("ShortStay", "t-fifo", None),
    ):
        model = make(task, memory=memory, capacity=capacity)
        batch = sample(model, 20)
        limit = model.model.task.visits if capacity is None else capacity
        expected = ideal_observer(model.model.task, batch.episodes, batch.strategies, limit).accuracy
        np.testing.assert_array_equal(model.ideal(batch)["accuracy"], expected)
    for task in ("Next", "Opposite"):  # without places they follow from the rules of the walk
        for memory in ("t-fifo", "t-fifo+a"):
            model = make(task, memory=memory, capacity=None)
            batch = sample(model, 20)
            expected = ideal_without_places(model.model.task, batch.episodes, moves_known=memory == "t-fifo+a")
            np.testing.assert_array_equal(model.ideal(batch)["accuracy"], expected)


def test_task_vectors_are_numbers_or_descriptions() -> None:
    model = make("MultiTask", allocation={})
    assert isinstance(model, AllocatedBallet)
    batch = sample(model, 30)
    assert batch.task_vectors is not None
    assert batch.task_vectors.argmax(1).tolist() == batch.episodes.task_id.tolist()
    assert batch.task_vectors.shape == (30, 4) and batch.task_vectors.sum() == 30
    assert model.inputs() == {}
    model.check_inputs({"features_dim": 3, "fingerprint": "x"}, "file")  # no encoder, nothing to check

    texts = load_descriptions()
    model = make("MultiTask", allocation={"task_input": "text", "split": 1})
    assert isinstance(model, AllocatedBallet) and model.encoder is not None
    encoder = model.encoder
    parts: dict[Split, Part] = {"train": "train", "validation": "held_out", "test": "held_out"}
    for split, part in parts.items():
        batch = sample(model, 60, split)
        assert batch.task_vectors is not None
        choices = texts.select(1, part)
        seen = set()
        for vector, task in zip(batch.task_vectors, batch.episodes.task_id, strict=True):
            found = [text for text in choices[task] if np.array_equal(encoder([text])[0], vector.numpy())]
            assert len(found) == 1
            seen.add(found[0])
        assert len(seen) > (40 if split != "train" else 8) // 4
    assert model.inputs() == {"features_dim": encoder.features_dim, "fingerprint": encoder.fingerprint}
    model.check_inputs({}, "file")
    model.check_inputs(model.inputs(), "file")
    with pytest.raises(ValueError, match="file"):
        model.check_inputs({**model.inputs(), "fingerprint": "other"}, "file")


def test_the_allocator_has_a_rate_of_its_own_and_reports_its_preferences() -> None:
    model = make("MultiTask", allocation={"rate": 0.25, "loss_weight": 0.5})
    assert isinstance(model, AllocatedBallet)
    groups = model.parameter_groups()
    assert [rate for _, rate in groups] == [1.0, 0.25]
    own = [list(model.model.parameters()), list(model.allocator.parameters())]
    assert [[id(each) for each in group] for group, _ in groups] == [[id(each) for each in group] for group in own]
    batch = sample(model, 16)
    losses, is_correct = model._losses_and_correct(batch)
    assert batch.task_vectors is not None
    q = model.allocator(batch.task_vectors).gather(1, torch.from_numpy(batch.strategies)[:, None])[:, 0]
    q_loss = (-losses.detach() - q).square().mean()
    loss, log = model.loss(batch)
    torch.testing.assert_close(loss, losses.mean() + 0.5 * q_loss)
    by_hand = {"accuracy": is_correct.mean(), "answer_loss": losses.mean().item(), "q_loss": q_loss.item()}
    assert log == {name: pytest.approx(value, rel=1e-5) for name, value in by_hand.items()}
    with torch.no_grad():
        scores = model.scores(batch)
        shares = model.allocator(torch.eye(4)).softmax(1).double().numpy()
    for i, task in enumerate(STRATEGIES):
        count = (batch.episodes.task_id == i).sum()
        for j, name in enumerate(STRATEGIES):
            np.testing.assert_allclose(scores[f"q_{task}_{name}"], [shares[i, j]] * count, rtol=1e-6)


def test_settings_that_do_not_go_together_are_named() -> None:
    for task, settings, message in (
        ("MultiTask", {"strategy": "fifo", "allocation": {}}, "strategy must be left out .*, got 'fifo'"),
        ("Next", {"capacity": 9, "own_layers": 1, "allocation": {}}, "own_layers must be 0 where .*, got 1"),
        (
            "FIFO",
            {"allocation": {"epsilon": 1}},
            "unknown setting 'epsilon' of allocation; did you mean 'epsilon_start'",
        ),
        ("Next", {"capacity": 9, "allocation": {"only_kept": True}}, "only_kept must be False in a task with"),
        ("FIFO", {"capacity": None, "allocation": {}}, "allocation must be left out where all visits are kept"),
    ):
        with pytest.raises(ValueError, match=message):
            make(task, **settings)
    assert isinstance(make("FIFO", strategy=None, allocation={"only_kept": True}), AllocatedBallet)
    with pytest.raises(
        ValueError, match="env must be one that can be learned by prediction, got 'memenvs/Darkroom-v0'"
    ):
        make_prediction_model("memenvs/Darkroom-v0", {}, {})
