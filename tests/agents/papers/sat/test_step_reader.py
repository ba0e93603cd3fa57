"""Memories that read tokens in turn, against the steps that they should take."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from memenvs.agents.algorithms.supervised import SupervisedLearner
from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.memory import StepInputs
from memenvs.agents.memory.recurrent import GRUMemory
from memenvs.agents.memory.tokens import Tokens
from memenvs.agents.papers.sat.learner import make_prediction
from memenvs.agents.papers.sat.picture_model import PictureModel
from memenvs.agents.papers.sat.step_reader import StepReader
from tests.agents.papers.sat.random_pictures import RandomPictures

B, T, Q, D, G = 2, 9, 2, 4, 3
NO_DROPOUT = {"dim": 8, "heads": 2, "mlp_dim": 8}


def draw() -> tuple[Tokens, Tensor, Tensor, Tensor]:
    """Tokens, each a vector and a row of a table; queries, tasks, places."""
    generator = torch.Generator().manual_seed(5)
    values, table, queries, task = (
        torch.randn(*shape, generator=generator) for shape in ((B, T, D), (7, D), (B, Q, D), (B, G))
    )
    rows = torch.randint(7, (B, T), generator=generator)
    return Tokens(values, (table,), (rows,)), queries, task, torch.arange(T).expand(B, -1) % 6


def read(reader: StepReader) -> Tensor:
    return reader(reader.steps(*draw()), Q)


@torch.no_grad()
def one_by_one(reader: StepReader, steps: list[Tensor]) -> Tensor:
    """Features of the last Q steps, float (B, D) each, by the memory's form for acting."""
    state, features = reader.memory.initial_state(B), []
    for number, step in enumerate(steps):
        start = torch.full((B, 1), number == 0)
        feature, state = reader.memory.step(StepInputs(step[:, None], start, start), state)
        features.append(feature)
    return torch.stack(features[-Q:], 1)


@pytest.mark.parametrize("memory", ["dnc", "lstm", "mingru", "memo"])
def test_the_task_is_a_first_step_or_part_of_every_step(memory: str) -> None:
    settings = {"dnc": {"hidden_dim": 4, "cells": 5, "cell_dim": 3, "read_heads": 2}, "memo": NO_DROPOUT}.get(
        memory, {}
    )
    tokens, queries, task, _ = draw()
    assert tokens.values is not None
    plain = [tokens.values[:, t] + tokens.tables[0][tokens.rows[0][:, t]] for t in range(T)]
    plain += [queries[:, q] for q in range(Q)]
    for steps_of_task in (None, "first", "every"):
        reader = StepReader(D, memory, settings, T + Q, task=steps_of_task, task_dim=G)  # type: ignore[arg-type]
        steps = plain
        if reader.project is not None:
            steps = [reader.project(task), *plain]
        elif steps_of_task == "every":
            steps = [torch.cat([step, task], 1) for step in plain]
        features = read(reader)
        assert features.shape == (B, Q, reader.output_dim)
        torch.testing.assert_close(features, one_by_one(reader, steps), atol=1e-5, rtol=1e-4)


def test_places_are_rooms_on_a_grid_and_queries_are_at_the_last_one() -> None:
    reader = StepReader(D, "smt", {"dim": 8}, T + Q, n_places=6, columns=3, task="first", task_dim=G)
    x = reader.steps(*draw())
    assert x.pose is not None
    expected = [[0, 0], [0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1], [0, 0], [1, 0], [2, 0], [2, 0], [2, 0]]
    assert x.pose[0].tolist() == [[*place, 0] for place in expected]
    in_a_row = StepReader(D, "smt", {"dim": 8}, T + Q, n_places=6).steps(*draw()).pose
    assert in_a_row is not None and in_a_row[0, :, 0].tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 2, 2]
    assert not in_a_row[..., 1:].any()


def test_what_a_memory_cannot_read_is_named() -> None:
    with pytest.raises(ValueError, match=r"'max_episode_steps'\] must be at least the 12 steps .* take, got 11"):
        StepReader(D, "relic", {"max_episode_steps": T + Q}, T + Q, task="first", task_dim=G)
    assert StepReader(D, "relic", {}, T + Q).memory.config.max_episode_steps == T + Q  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"memory must be one that needs no moves, .*, got 't-fifo\+a'"):
        StepReader(D, "t-fifo+a", {}, T + Q)
    with pytest.raises(ValueError, match=r"'relic' .*dim must be an even multiple of heads \(3\), got 64"):
        StepReader(D, "relic", {"heads": 3, "dim": 64}, T + Q)
    with pytest.raises(ValueError, match="with a memory that reads one after the other, got 'components'"):
        PictureModel(RandomPictures(), memory="gru", convolutions="components", dim=8)


def learner(memory: str, classes: int = 0, **settings: Any) -> SupervisedLearner:
    """A learner of random pictures."""
    torch.manual_seed(0)
    model = make_prediction(RandomPictures(classes), {"memory": memory, "dim": 8, **settings})
    return SupervisedLearner(model, SupervisedConfig(batch_size=4, learning_rate=3e-3), 100)


@pytest.mark.parametrize("classes", [0, 3])
def test_pictures_and_classes_are_learned(classes: int) -> None:
    """Of one batch, again and again."""
    own = learner("gru-every", classes, size=5000)
    batch = own.model.sample(4, np.random.default_rng(0), "train", 0)
    own.model.sample = lambda *arguments: batch  # type: ignore[method-assign]
    losses = [own.step()["loss"] for _ in range(80)]
    assert losses[-1] < (0.5 if classes else 0.95) * losses[0]


@pytest.mark.parametrize("memory", ["trxl", "relic"])
def test_dropout_is_drawn_by_the_number_of_the_batch(memory: str) -> None:
    """So that a run that goes on from a checkpoint learns the same."""
    settings = {"memory_kwargs": NO_DROPOUT | {"trxl": {"dropout": 0.5}, "relic": {"depth_dropout": 0.5}}[memory]}
    whole, resumed = learner(memory, **settings), learner(memory, **settings)
    first = whole.step()["loss"]
    resumed.model.load_state_dict(whole.model.state_dict())
    resumed.num_timesteps = 1
    torch.rand(3)
    second = whole.step()["loss"]
    assert resumed.step()["loss"] == second != first
    batch = whole.model.sample(4, np.random.default_rng(0), "train", 0)
    losses = [whole.model.loss(batch)[0].item() for _ in range(2)]
    assert losses[0] == losses[1]
    whole.model.eval()
    assert whole.model.loss(batch)[0].item() != losses[0]  # without dropout


def test_a_loss_of_the_memory_is_added() -> None:
    queues = {"block_length": 2, "memory_length": 2, "compressed_lengths": (2,), "ratios": (2,)}
    own = learner("ct", 3, memory_kwargs=NO_DROPOUT | queues)
    log = own.step()
    assert log["auxiliary_loss"] > 0
    assert log["loss"] == pytest.approx(log["answer_loss"] + log["auxiliary_loss"])


def test_initial_weights_are_scaled_to_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []
    monkeypatch.setattr(GRUMemory, "standardize", lambda memory, embedding: bool(seen.append(embedding)))
    learner("gru", initialisation="release")
    assert not seen
    learner("gru-every")
    assert [tuple(embedding.shape) for embedding in seen] == [(16 * (9 + 4), 8 + 2)]
