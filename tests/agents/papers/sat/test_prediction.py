"""Room Ballet as a prediction task: shards, losses and scores from the model's answers."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from memenvs.agents.papers.sat.learner import SATPrediction, StrategyBatch, make_prediction
from memenvs.query_task import Split, make_query_task
from memenvs.retention import STRATEGIES, STRATEGY_NAMES, retained
from memenvs.room_ballet.descriptions import Part, load_descriptions
from memenvs.room_ballet.observer import ideal_observer, ideal_without_places
from memenvs.room_ballet.tasks import make_ballet

SMALL = {"layers": 2, "dim": 8, "mlp_dim": 8}


def make(task: str, **settings: Any) -> SATPrediction:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make_prediction(make_query_task(f"memenvs/RoomBallet-{task}-v0", {}), {**SMALL, **settings})


def sample(model: SATPrediction, count: int, split: Split = "train") -> StrategyBatch:
    return model.sample(count, np.random.default_rng(4), split)


def test_shards_are_the_episodes_in_turn() -> None:
    for settings in ({}, {"allocation": {}}):
        model = make("MultiTask", **settings)
        batch = sample(model, 7)
        for rank in range(3):
            shard = model.shard(batch, rank, 3)
            assert np.array_equal(shard.strategies, batch.strategies[rank::3])
            for field in fields(batch.episodes.episodes):
                whole = getattr(batch.episodes.episodes, field.name)
                assert np.array_equal(getattr(shard.episodes.episodes, field.name), whole[rank::3])
            assert (shard.task_vectors is None) == (batch.task_vectors is None)
            if shard.task_vectors is not None and batch.task_vectors is not None:
                assert torch.equal(shard.task_vectors, batch.task_vectors[rank::3])


def test_the_loss_is_that_of_the_answers_and_of_the_dancers_own_dance() -> None:
    for task, own_layers in (("LIFO", 0), ("Next", 1)):
        model = make(task, own_layers=own_layers)
        batch = sample(model, 9)
        assert (batch.strategies == STRATEGY_NAMES.index("fifo")).all()
        logits, _, own = model.model.predict(batch.episodes, batch.strategies)
        ballets = batch.episodes.episodes
        labels = torch.from_numpy(ballets.label).long()
        loss, log = model.loss(batch)
        answer = functional.cross_entropy(logits, labels)
        accuracy = (logits.argmax(1) == labels).float().mean().item()
        if not own_layers:
            torch.testing.assert_close(loss, answer)
            assert log == {"accuracy": pytest.approx(accuracy)}
            continue
        assert own is not None
        rooms = zip(ballets.room_dance, ballets.query_place, strict=True)
        dances = torch.tensor([int(dances[place]) for dances, place in rooms])
        torch.testing.assert_close(loss, answer + functional.cross_entropy(own, dances))
        own_accuracy = (own.argmax(1) == dances).float().mean().item()
        by_hand = {"accuracy": accuracy, "own_accuracy": own_accuracy, "answer_loss": answer.item()}
        assert log == {name: pytest.approx(value) for name, value in by_hand.items()}


@torch.no_grad()
def test_scores_are_counted_where_the_visit_is_kept_and_by_task() -> None:
    model = make("MultiTask", strategy="lifo")
    batch = sample(model, 40)
    episodes = batch.episodes.episodes
    logits = model.model(batch.episodes, batch.strategies)
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
        ("FIFO", "t-fifo", 3),
        ("Next", "sat-fifo", None),
        ("Opposite", "t-fifo", 9),
        ("ShortStay", "t-fifo", None),
    ):
        model = make(task, memory=memory, capacity=capacity)
        batch = sample(model, 8)
        ballet = make_ballet(task)
        limit = ballet.visits if capacity is None else capacity
        expected = ideal_observer(ballet, batch.episodes.episodes, batch.strategies, limit).accuracy
        np.testing.assert_array_equal(model.ideal(batch)["accuracy"], expected)
    for task in ("Next", "Opposite"):  # without places they follow from the rules of the walk
        for memory in ("t-fifo", "t-fifo+a"):
            model = make(task, memory=memory, capacity=None)
            batch = sample(model, 8)
            ballets = batch.episodes.episodes
            expected = ideal_without_places(make_ballet(task), ballets, moves_known=memory == "t-fifo+a")
            np.testing.assert_array_equal(model.ideal(batch)["accuracy"], expected)


def test_task_vectors_are_numbers_or_descriptions() -> None:
    model = make("MultiTask", allocation={})
    batch = sample(model, 30)
    assert batch.task_vectors is not None
    assert batch.task_vectors.argmax(1).tolist() == batch.episodes.tasks.tolist()
    assert batch.task_vectors.shape == (30, 4) and batch.task_vectors.sum() == 30
    assert model.inputs() == {}
    model.check_inputs({"features_dim": 3, "fingerprint": "x"}, "file")  # no encoder, nothing to check

    texts = load_descriptions()
    model = make("MultiTask", allocation={"task_input": "text", "split": 1})
    assert model.encoder is not None
    encoder = model.encoder
    parts: dict[Split, Part] = {"train": "train", "validation": "held_out", "test": "held_out"}
    for split, part in parts.items():
        batch = sample(model, 60, split)
        assert batch.task_vectors is not None
        choices = texts.select(1, part)
        seen = set()
        for vector, task in zip(batch.task_vectors, batch.episodes.tasks, strict=True):
            same = [text for text in choices[task] if np.array_equal(encoder([text])[0], vector.numpy())]
            assert len(same) == 1
            seen.add(same[0])
        assert len(seen) > (40 if split != "train" else 8) // 4
    assert model.inputs() == {"features_dim": encoder.features_dim, "fingerprint": encoder.fingerprint}
    model.check_inputs({}, "file")
    model.check_inputs(model.inputs(), "file")
    with pytest.raises(ValueError, match="file"):
        model.check_inputs({**model.inputs(), "fingerprint": "other"}, "file")


def test_the_allocator_has_a_rate_of_its_own_and_reports_its_preferences() -> None:
    model = make("MultiTask", allocation={"rate": 0.25, "loss_weight": 0.5})
    groups = model.parameter_groups()
    assert [rate for _, rate in groups] == [1.0, 0.25]
    assert model.allocator is not None
    own = [list(model.model.parameters()), list(model.allocator.parameters())]
    assert [list(map(id, group)) for group, _ in groups] == [list(map(id, group)) for group in own]
    batch = sample(model, 16)
    answers, losses = model.answer(batch)
    is_correct = answers.argmax(1).numpy() == batch.episodes.answers
    assert batch.task_vectors is not None and model.allocator is not None
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
        count = (batch.episodes.tasks == i).sum()
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
        ("Next", {"capacity": 9, "allocation": {"only_kept": True}}, "only_kept must be False in a task whose"),
        ("FIFO", {"capacity": None, "allocation": {}}, "allocation must be left out where all is kept"),
        ("FIFO", {"memory": "dnc-first", "allocation": {}}, "where all is kept, got {} with memory 'dnc-first'"),
        ("FIFO", {"allocation": {"task_input": "number"}}, "unknown task_input 'number'"),
        ("FIFO", {"allocation": {"task_input": "text", "split": 3}}, "split must be an integer of 0 to 2, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            make(task, **settings)
    assert make("FIFO", strategy=None, allocation={"only_kept": True}).allocator is not None


@torch.no_grad()
def test_actions_are_the_answers_that_are_scored() -> None:
    for settings in ({"memory": "t-fifo"}, {"allocation": {"task_input": "text"}}):
        model = make("MultiTask", **settings).eval()
        rng = np.random.default_rng(4)
        episodes = model.model.task.sample_batch(40, rng, "test")
        actions = model.query_actions(episodes, rng)
        assert len(actions) == 40 and {action.shape for action in actions} == {(1,)}
        is_right = np.concatenate(actions) == episodes.answers
        np.testing.assert_array_equal(is_right, model.scores(sample(model, 40, "test"))["accuracy"])


def test_whether_a_model_reads_places() -> None:
    for settings, uses_place in (
        ({"memory": "t-fifo"}, False),
        ({"memory": "t-fifo+a"}, False),
        ({"memory": "t-fifo", "strategy": "mvfo"}, True),  # what it keeps depends on them
        ({"memory": "sat-fifo"}, True),
        ({"memory": "gru"}, True),  # reads the tokens of sat-fifo
    ):
        assert make("MVFO", **settings).uses_place == uses_place, settings
