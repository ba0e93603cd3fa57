"""`SupervisedLearner` on a line through points, step by step against a version by hand."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from memenvs.agents.algorithms import archive
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.algorithms.supervised import PredictionModel, SupervisedLearner, evaluate_model, load_model
from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.query_task import Split

CONFIG = SupervisedConfig(batch_size=6, learning_rate=0.1, final_learning_rate=0.02, warmup_steps=1, max_grad_norm=0.5)


class Line(PredictionModel):
    """Predicts y = 3 x - 2 from x; the bias learns at half the rate."""

    def __init__(self, source: str = "points") -> None:
        super().__init__()
        self.slope, self.bias = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.ones(1))
        self.source = source
        self.requests: list[tuple[int, Split, int]] = []

    def sample(self, count: int, rng: np.random.Generator, split: Split = "train", step: int = 0) -> Tensor:
        self.requests.append((count, split, step))
        return torch.as_tensor(rng.normal(size=count), dtype=torch.float32)

    def shard(self, batch: Tensor, rank: int, count: int) -> Tensor:
        return batch[rank::count]

    def loss(self, batch: Tensor) -> tuple[Tensor, dict[str, float]]:
        error = self.slope * batch + self.bias - (3 * batch - 2)
        return error.square().mean(), {"largest": error.abs().max().item()}

    def scores(self, batch: Tensor) -> dict[str, np.ndarray]:
        assert not self.training and not torch.is_grad_enabled()
        return {"accuracy": (self.slope * batch).numpy(), "positive": batch[batch > 0].numpy()}

    def ideal(self, batch: Tensor) -> dict[str, np.ndarray]:
        return {"accuracy": 3 * batch.numpy()}

    def inputs(self) -> dict[str, Any]:
        return {"source": self.source}

    def check_inputs(self, saved: dict[str, Any], where: str) -> None:
        if saved != self.inputs():
            raise ValueError(f"{where}: other inputs, {saved}")

    def parameter_groups(self) -> list[tuple[list[nn.Parameter], float]]:
        return [([self.slope], 1.0), ([self.bias], 0.5)]


def points(part: int, seed: int, number: int, count: int) -> np.ndarray:
    """Points of a batch, from the seed sequence (part, seed, number)."""
    return np.random.default_rng([part, seed, number]).normal(size=count).astype(np.float32)


def test_steps_by_hand() -> None:
    model = Line()
    learner = SupervisedLearner(model, CONFIG, 8, seed=4)
    logs: list[dict[str, float]] = []
    learner.learn(4, logs.append)
    learner.learn(1)
    assert learner.num_timesteps == 5 and len(logs) == 4 and model.training
    assert model.requests == [(6, "train", step) for step in range(5)]
    weight, first, second = np.array([0.0, 1.0]), np.zeros(2), np.zeros(2)
    for step in range(5):
        x = points(0, 4, step, 6).astype(float)
        error = weight[0] * x + weight[1] - (3 * x - 2)
        gradient = 2 * np.array([(error * x).mean(), error.mean()])
        norm = np.hypot(*gradient)
        rate = CONFIG.learning_rate_at(step, 8)
        if step < 4:
            expected = {
                "loss": (error**2).mean(),
                "grad_norm": norm,
                "learning_rate": rate,
                "largest": abs(error).max(),
            }
            assert logs[step] == pytest.approx(expected, rel=1e-4)
        gradient *= min(1.0, 0.5 / norm)
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        corrected = first / (1 - 0.9 ** (step + 1)) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8)
        weight -= rate * np.array([1.0, 0.5]) * corrected
    assert [model.slope.item(), model.bias.item()] == pytest.approx(weight.tolist(), rel=1e-4)


class Second(Processes):
    """The second of two processes."""

    def __init__(self) -> None:
        super().__init__(1, 2)
        self.averaged: list[list[float]] = []

    def gather(self, value: Any) -> list[Any]:
        return [value, value]

    def average(self, tensors: Any) -> None:
        self.averaged.append([float(tensor) for tensor in tensors])

    def broadcast(self, tensors: Any) -> None:
        for tensor in tensors:
            tensor.data.fill_(0.25)


def test_a_process_learns_from_its_part_of_the_batch() -> None:
    model, processes = Line(), Second()
    learner = SupervisedLearner(model, CONFIG, 8, processes=processes)
    assert model.slope == model.bias == 0.25  # the weights of the first
    learner.step()
    x = points(0, 0, 0, 6)[1::2]
    error = 0.25 * x + 0.25 - (3 * x - 2)
    assert processes.averaged == [pytest.approx([2 * (error * x).mean(), 2 * error.mean()], rel=1e-4)]
    file = io.BytesIO()
    learner.save(file, {})
    assert file.getvalue() == b""  # the first writes
    with pytest.raises(ValueError, match=r"supervised\.batch_size must be divisible by .* 2, got 7"):
        SupervisedLearner(Line(), replace(CONFIG, batch_size=7), 8, processes=Second())


def test_evaluation_by_hand() -> None:
    model = Line()
    with torch.no_grad():
        model.slope.fill_(2.0)
    expected = np.concatenate([points(1, 7, begin, count) for begin, count in ((0, 250), (250, 250), (500, 100))])
    scores = evaluate_model(model, 600, seed=7)
    np.testing.assert_allclose(scores["accuracy"], 2 * expected)
    np.testing.assert_allclose(scores["positive"], expected[expected > 0])
    assert model.requests == [(count, "test", 0) for count in (250, 250, 100)]
    ideal = evaluate_model(model, 600, seed=7, ideal=True)
    assert list(ideal) == ["accuracy"]
    np.testing.assert_allclose(ideal["accuracy"], 3 * expected)
    assert len(evaluate_model(model, 1, split="validation")["accuracy"]) == 1
    assert model.requests[-1] == (1, "validation", 0)
    np.testing.assert_allclose(evaluate_model(model, 3)["accuracy"], 2 * points(1, 0, 0, 3))


def saved(settings: dict[str, Any]) -> io.BytesIO:
    learner = SupervisedLearner(Line(), CONFIG, 8)
    learner.learn(3)
    file = io.BytesIO()
    learner.save(file, settings)
    return file


def test_a_file_goes_on_with_the_same_bits() -> None:
    settings = {"task": {"rooms": 3, "kind": "walk"}}
    whole = SupervisedLearner(Line(), CONFIG, 8)
    whole.learn(5)
    again = SupervisedLearner(Line(), CONFIG, 8)
    again.load(saved(settings), settings)
    assert again.num_timesteps == 3
    again.learn(2)
    for one, other in zip(whole.parameters, again.parameters, strict=True):
        assert torch.equal(one, other)
    for change, config, message in (
        ({"task": {"rooms": 4, "kind": "walk"}}, CONFIG, r"task\.rooms must be 4, got 3"),
        ({"task": None}, CONFIG, r"task must be None, got \{'rooms': 3"),
        (settings, replace(CONFIG, batch_size=12), r"config\.batch_size must be 12, got 6"),
    ):
        with pytest.raises(ValueError, match=f"is of another run: {message}"):
            SupervisedLearner(Line(), config, 8).load(saved(settings), change)
    with pytest.raises(ValueError, match=r"config\.json lacks 'more'"):
        again.load(saved(settings), {"more": 1})


def test_files_that_do_not_fit() -> None:
    members = archive.read(saved({}), ("config.json",), lambda _: True)

    def changed(**contents: bytes) -> io.BytesIO:
        file = io.BytesIO()
        names = {name.partition(".")[0]: name for name in members}
        archive.write(file, members | {names[stem]: content for stem, content in contents.items()})
        return file

    without_model = io.BytesIO()
    archive.write(without_model, {"config.json": b'{"format": 1}', "state.json": b"{}"})
    learner = SupervisedLearner(Line(), CONFIG, 8)
    for file, message in (
        (without_model, r"must have .*'model\.safetensors' is missing"),
        (changed(state=b"{}"), r"state\.json lacks 'num_timesteps'"),
        (changed(model=b"nothing"), "BytesIO"),
        (changed(optimizer=b"nothing"), "BytesIO"),
        (changed(optimizer=members["model.safetensors"]), r"optimizer\.safetensors: does not fit"),
        (changed(model=members["optimizer.safetensors"]), r"model\.safetensors: does not fit the policy, 'slope'"),
    ):
        with pytest.raises(ValueError, match=message):
            learner.load(file, {})
    other = Line("sentences")
    with pytest.raises(ValueError, match="other inputs"):
        load_model(other, saved({}))
    model = Line()
    load_model(model, saved({}))
    assert model.slope.item() != 0.0
