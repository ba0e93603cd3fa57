"""Picture tasks as prediction tasks: losses and scores by hand, allocation, figures."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from memenvs.agents.papers.sat import picture_model
from memenvs.agents.papers.sat.figures import picture_strip, sample_answers, strip_figure
from memenvs.agents.papers.sat.learner import COMPONENT_EPISODES, SATPrediction, StrategyBatch, make_prediction
from memenvs.agents.papers.sat.picture_model import PictureModel
from memenvs.ballet3d import queries
from memenvs.ballet3d.config import Ballet3DConfig
from memenvs.query_task import SPLITS, Split
from memenvs.retention import STRATEGY_NAMES
from tests.agents.papers.sat.random_pictures import RandomPictures
from tests.agents.papers.sat.test_picture_model import SMALL, kept_steps


def make(classes: int = 0, **settings: Any) -> SATPrediction:
    torch.manual_seed(0)
    return make_prediction(RandomPictures(classes), {**SMALL, **settings})


def sample(model: SATPrediction, count: int = 6, split: Split = "train", step: int = 0) -> StrategyBatch:
    return model.sample(count, np.random.default_rng(3), split, step)


@pytest.mark.parametrize(
    ("settings", "weight"),
    [({}, 0.01), ({"dim": 64, "convolutions": "components"}, 0.3)],
    ids=["learned", "components"],
)
def test_the_loss_is_that_of_all_patches_and_of_their_places(settings: dict[str, Any], weight: float) -> None:
    model = make(place_layers=1, **settings)
    batch = sample(model)
    answered, start, places = model.model.predict(batch.episodes, batch.strategies)
    assert start is not None
    decoded = torch.cat([start[:, None], answered], 1)
    truth = torch.from_numpy(batch.episodes.answers) / 255
    error = (decoded - truth).square()
    assert places is not None and batch.episodes.query_places is not None
    numbers = torch.from_numpy(batch.episodes.query_places)
    where = functional.cross_entropy(places.flatten(0, 1), numbers.flatten())
    loss, log = model.loss(batch)
    torch.testing.assert_close(loss, error[:, 0].mean() + error[:, 1:].mean() + weight * where)
    assert log["mse"] == pytest.approx(error[:, 1:].mean().item())  # the patch at the start is no answer
    assert log["place_accuracy"] == pytest.approx((places.argmax(2) == numbers).float().mean().item())
    answers, losses = model.answer(batch)
    torch.testing.assert_close(answers, decoded[:, 1:])
    torch.testing.assert_close(losses, error[:, 1:].flatten(1).mean(1))


def test_fixed_codes_start_as_components() -> None:
    model = make(place_layers=1, dim=64, convolutions="components").model
    patches = torch.from_numpy(sample(make()).episodes.pictures(np.arange(2)))[:, 8:24, 16:32]
    error = (model.head(model.encoder(patches)) - patches / 255).square().mean()
    assert error < 0.97 / 12  # of random pixels 1 / 12 is the variance, and 64 of 768 components say a little


@torch.no_grad()
def test_scores_are_by_task_and_count_what_is_kept() -> None:
    model = make(strategy="mvfo")
    for split in SPLITS:
        drawn = model.model.task.sample_batch(6, np.random.default_rng(3), split)
        np.testing.assert_array_equal(sample(model, split=split).episodes.rows, drawn.rows)
    batch = sample(model, split="test")
    episodes = batch.episodes
    assert episodes.answer_rows is not None
    episodes.answer_rows[:, 1] = episodes.rows[:, 2]  # which some of the memories have lost
    episodes.answer_rows[:, 2] = -1  # no step shows it
    scores = model.scores(batch)
    np.testing.assert_allclose(scores["mse"], model.answer(batch)[1].numpy())
    np.testing.assert_array_equal(scores["mse_two"], scores["mse"][1::2])
    by_hand = []
    for rows, regions, answers in zip(episodes.rows, episodes.regions, episodes.answer_rows, strict=True):
        kept = set(rows[kept_steps(regions, "mvfo", 5)].tolist())
        by_hand.append(np.mean([answer in kept for answer in answers.tolist()]))
    assert set(np.round(by_hand, 2)) == {0.33, 0.67}
    np.testing.assert_allclose(scores["kept"], by_hand)
    classes = make(classes=3, strategy="fifo")
    batch = sample(classes)
    logits = classes.model(batch.episodes, batch.strategies)
    right = logits.argmax(1).numpy() == batch.episodes.answers
    entropy = functional.cross_entropy(logits, torch.from_numpy(batch.episodes.answers), reduction="none")
    scores = classes.scores(batch)
    np.testing.assert_array_equal(scores["accuracy"], right.astype(float))
    np.testing.assert_allclose(scores["loss"], entropy.numpy(), rtol=1e-6)
    torch.testing.assert_close(classes.loss(batch)[0], entropy.mean())


def test_an_allocator_learns_from_a_hundred_times_the_error_and_explores_less_and_less() -> None:
    settings = {"epsilon_end": 0.0, "epsilon_steps": 10, "loss_weight": 0.5, "rate": 3.0}
    for classes, scale in ((0, 100.0), (3, 1.0)):
        model = make(classes=classes, allocation=settings)
        assert model.allocator is not None
        batch = sample(model, count=60)
        assert set(batch.strategies.tolist()) == {STRATEGY_NAMES.index(name) for name in ("fifo", "mvfo")}
        tasks = torch.eye(2)[torch.from_numpy(batch.episodes.tasks)]
        with torch.no_grad():
            best = model.allocator.best(tasks).numpy()
            for split, step in zip(SPLITS, (10, 0, 0), strict=True):  # explored enough, or evaluated
                np.testing.assert_array_equal(sample(model, 60, split, step).strategies, best)
            losses = model.answer(batch)[1]
            start = torch.zeros(()) if classes else model.loss(batch)[0]
        q_loss = model.allocator.loss(tasks, torch.from_numpy(batch.strategies), -scale * losses)
        loss, log = model.loss(batch)
        assert log["q_loss"] == pytest.approx(q_loss.item(), rel=1e-5)
        assert log["answer_loss"] == pytest.approx(losses.mean().item(), rel=1e-5)
        if classes:
            torch.testing.assert_close(loss, start + losses.mean() + 0.5 * q_loss)
        with torch.no_grad():
            shares = model.scores(batch)["q_two_mvfo"]
        assert len(shares) == 30
        np.testing.assert_allclose(shares, model.allocator.distribution(tasks)[1, 1].item(), rtol=1e-5)
        assert [factor for _, factor in model.parameter_groups()] == [1.0, 3.0]
    with pytest.raises(ValueError, match="allocation must be left out with memory 't-fifo'"):
        make(allocation={}, memory="t-fifo")


def test_the_encoder_is_calibrated_with_episodes_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []
    draw = RandomPictures.sample_batch
    monkeypatch.setattr(RandomPictures, "sample_batch", lambda *args, **more: calls.append(more) or draw(*args, **more))
    first = next(make(initialisation="release").model.encoder.parameters())
    assert not calls
    assert not torch.equal(first, next(make(initialisation="calibrated").model.encoder.parameters()))
    assert len(calls) == 1 and not calls[0].get("held_out", False)
    model = make(convolutions="fixed")
    (trained, _), *_ = model.parameter_groups()
    assert len(trained) < len(list(model.parameters())) and all(parameter.requires_grad for parameter in trained)


@pytest.mark.slow
def test_components_of_views_are_fitted_to_training_and_kept_with_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "BALLETS", {"train": 12, "validation": 1, "test": 2})
    monkeypatch.setattr(picture_model, "COMPONENTS", 32)
    queries._ballets.cache_clear()
    torch.manual_seed(0)
    task = queries.DanceQueries(Ballet3DConfig())
    settings = {"strategy": "mvfo", "convolutions": "components", "layers": 1}
    model = make_prediction(task, settings)
    codes = model.model.encode(task.sample_batch(6, np.random.default_rng(0)), [np.arange(0, 1080, 3)])[0]
    assert codes.square().mean().item() == pytest.approx(1.0, abs=0.5)
    assert codes.square().mean(0).min() > 0.4
    calibrated = task.sample_batch(COMPONENT_EPISODES, np.random.default_rng(0))
    mean = calibrated.pictures(np.unique(calibrated.rows[:, ::8])).mean(0) / 255  # the decoder starts with that view
    decoded = (torch.tanh(model.model.head.background.detach()).movedim(0, 2) + 1) / 2
    np.testing.assert_allclose(decoded.numpy(), mean.clip(0.0025, 0.9975), atol=1e-4)
    batch = model.sample(2, np.random.default_rng(1))
    loss, _ = model.loss(batch)
    loss.backward()
    encoder = model.model.encoder
    assert encoder.linear.in_features == 32 and encoder.linear.weight.grad is not None
    assert all(parameter.grad is None for parameter in encoder.convolutions.parameters())
    other = PictureModel(task, **settings)
    other.load_state_dict(model.model.state_dict())
    torch.testing.assert_close(other(batch.episodes, batch.strategies), model.answer(batch)[0])
    queries._ballets.cache_clear()


def test_a_figure_shows_the_answers() -> None:
    model = make(allocation={})
    truth, answers = sample_answers(model, 7)
    batch = model.sample(2, np.random.default_rng(7), "test")
    np.testing.assert_array_equal(truth, batch.episodes.answers[:, 1:])
    with torch.no_grad():
        np.testing.assert_allclose(answers / 255, model.answer(batch)[0].numpy(), atol=0.003)
    strip = picture_strip(truth[0])
    assert strip.shape == (16, 3 * 16 + 2 * 2, 3)
    np.testing.assert_array_equal(strip[:, 18:34], truth[0, 1])
    panels = strip_figure(truth, {"model": answers}).axes
    assert [panel.texts[0].get_text() for panel in panels] == ["truth", "model"] * 2
    np.testing.assert_array_equal(panels[3].images[0].get_array(), picture_strip(answers[1]))
    single = truth.reshape(6, 1, 16, 16, 3)  # episodes of one answer are one strip
    panels = strip_figure(single, {"model": single}).axes
    assert len(panels) == 2 and panels[1].images[0].get_array().shape == (16, 6 * 16 + 5 * 2, 3)
