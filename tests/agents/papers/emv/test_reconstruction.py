"""Episode auto-encoder, its loss and phases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.papers.emv.config import AnswererConfig
from memenvs.agents.papers.emv.data import load_arrays
from memenvs.agents.papers.emv.experiment import make_question_answering
from memenvs.agents.papers.emv.learner import QuestionBatch
from memenvs.agents.papers.emv.reconstruction import EpisodeDecoder
from memenvs.agents.presets import find_preset
from memenvs.verbalization.config import EpisodicQAConfig
from tests.agents.papers.emv.small_runs import DATA, QUEUES

LSTM = {"dim": 8, "layers": 1}
SIZES = {"d_model": 16, "d_ff": 24, "d_kv": 8, "num_layers": 1, "num_heads": 2}
TEXT = {"answers": "text", "text": {"sizes": SIZES}, "dim": 8, "questions": 4}
STRUCTURED = {"dim": 8, "head_dim": 16, "head_heads": 2, "head_layers": 1, "questions": 4}
FRAMES = {"goal": 5, "action": 0, "args": 5, "objects": 2, "state": 4, "sub": 129, "dt": 7}


@pytest.fixture(scope="module")
def arrays():
    return load_arrays(EpisodicQAConfig(**DATA))


def make(settings, memory: str = "ct-lt", **changes):
    kwargs = {"ct-lt": QUEUES, "lstm-on": LSTM}.get(memory, {})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make_question_answering(
            "memenvs/EpisodicQA-v0", DATA, {**settings, "memory": memory, "memory_kwargs": kwargs, **changes}
        ).train()


def random_frames(batch: int, steps: int, seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    frames = {
        part: torch.randint(0, 3, (batch, steps, *([width] if width else [])), generator=generator)
        for part, width in FRAMES.items()
    }
    return frames | {"sub": torch.randn(batch, steps, 129, generator=generator)}


def test_key_frames_are_decoded_from_the_memory() -> None:
    """No key frame sees itself or a later one; half of the earlier ones are hidden; padding does not count."""
    for per_vector in (False, True):
        torch.manual_seed(0)
        decoder = EpisodeDecoder(6, 8, tuple(FRAMES), 5, per_vector).double()
        frames, mask = random_frames(2, 5), torch.tensor([[True] * 5, [False, False, True, True, True]])
        embedded = torch.randn(2, 5, 6).double().requires_grad_()
        vectors = torch.randn(2, 5, 8).double().requires_grad_()

        def loss(vectors, embedded, mask, frames, seed=0):
            there = mask if per_vector else torch.tensor([[True] * 5, [True, False, True, True, False]])  # noqa: B023
            return decoder.loss(vectors, there, embedded, frames, mask, torch.Generator().manual_seed(seed))  # noqa: B023

        first = loss(vectors, embedded, mask, frames)
        grads = torch.autograd.grad(first, (vectors, embedded), allow_unused=True, retain_graph=True)
        assert grads[0].abs().sum() > 0
        hidden = vectors.detach().clone()
        hidden[1, 0 if per_vector else 1] = 7.0
        changed = {part: values.clone() for part, values in frames.items()}
        for values in changed.values():
            values[1, :2] = 1
        torch.testing.assert_close(loss(hidden, embedded, mask, changed), first)
        assert loss(vectors, embedded, torch.zeros_like(mask), frames) == 0
        if per_vector:
            assert grads[1] is None
            continue
        assert not grads[1][:, -1].any() and not grads[1][1, :2].any()  # the last one is decoded, and seen by none
        seen = [
            torch.autograd.grad(loss(vectors, embedded, mask, frames, seed), embedded)[0][0].any(1).tolist()
            for seed in range(20)
        ]
        assert 0.3 < np.mean(np.array(seen)[:, :4]) < 0.7  # half of the earlier ones are dropped
        # The loss of key frame t depends on those before t alone.
        for t in range(4):
            only = {part: values.clone() for part, values in frames.items()}
            for values in only.values():
                values[0, t] = 2
            difference = loss(vectors, embedded, mask, only) - first
            (grad,) = torch.autograd.grad(difference, embedded, retain_graph=True)
            assert not grad[0, t:].any(), t
    # images count too where they are given
    with_images = EpisodeDecoder(6, 8, ("latent",), 5, True)
    there = torch.ones(2, 5, dtype=torch.bool)
    zeros, ones = ({"latent": value * torch.ones(2, 5, 2048)} for value in (0, 1))
    losses = [with_images.loss(torch.zeros(2, 5, 8), there, None, each, there, None).item() for each in (zeros, ones)]
    assert losses[0] < 0.3 < losses[1]


@pytest.mark.slow
def test_losses_and_what_learns_from_them(arrays):
    """Weights have the sum 1; phases leave out what they say; the convolutions learn from the memory's loss alone."""
    batch = QuestionBatch(arrays, np.argsort(-arrays.count)[:3], np.tile(np.arange(4), (3, 1)))
    for settings in (STRUCTURED, TEXT):
        model = make(settings, reconstruction_weight=0.2, pretraining_steps=2, frozen_steps=3)
        learned = {}
        for phase in ("all", "answers", "reconstruction"):
            model.zero_grad(set_to_none=True)
            loss, log = model.loss(replace(batch, phase=phase))
            loss.backward()
            learned[phase] = {
                name.split(".")[1]
                for name, each in model.named_parameters()
                if each.grad is not None and each.grad.any()
            }
            parts = {
                "all": {"answer_loss": 0.8, "reconstruction_loss": 0.2, "auxiliary_loss": 1},
                "answers": {"answer_loss": 0.8},
                "reconstruction": {"reconstruction_loss": 1, "auxiliary_loss": 1},
            }[phase]
            assert log.keys() - {"accuracy"} == parts.keys()
            assert loss.item() == pytest.approx(sum(weight * log[name] for name, weight in parts.items()), rel=1e-5)
        assert {"memory", "frames", "episodes"} <= learned["all"] and not {"memory", "frames"} & learned["answers"]
        head = {"t5"} if settings is TEXT else {"head"}
        assert head <= learned["answers"] and not head & learned["reconstruction"]
        assert {"memory", "frames", "episodes"} <= learned["reconstruction"]
        assert [model.sample(1, np.random.default_rng(0), "train", step).phase for step in (0, 1, 2, 4, 5)] == [
            "reconstruction", "reconstruction", "answers", "answers", "all",
        ]  # fmt: skip
        model.model.memory.auxiliary_loss = lambda: None
        model.zero_grad(set_to_none=True)
        model.loss(batch)[0].backward()
        compress = [each.grad for name, each in model.named_parameters() if "compress." in name]
        assert compress and all(each is None or not each.any() for each in compress)
    each_step = make(STRUCTURED, "lstm-on", reconstruction_weight=0.5)
    assert each_step.model.episodes.per_vector and each_step.loss(batch)[1]["reconstruction_loss"] > 0
    curriculum = make(STRUCTURED, curriculum=[2], pretraining_steps=3, reconstruction_weight=0.1)
    batches = [curriculum.sample(40, np.random.default_rng(0), "train", step) for step in (4, 5)]
    lengths = [set(arrays.length[batch.histories]) for batch in batches]
    assert lengths == [{1}, {1, 2}]


def test_wrong_settings() -> None:
    for settings, message in (
        ({"reconstruction_weight": 1.0}, r"reconstruction_weight must be 0 to below 1, got 1\.0"),
        ({"memory": "none", "pretraining_steps": 1}, "needs a memory, got 'none'"),
        ({"frozen_steps": 2}, "frozen_steps must be 0 without pretraining_steps, got 2"),
        ({"pretraining_steps": -1}, "pretraining_steps must be an integer of at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            AnswererConfig(**settings)


def test_a_run_is_longer_than_its_pretraining() -> None:
    changes = [("policy.reconstruction_weight", 0.2), ("policy.pretraining_steps", 300), ("total_steps", 300)]
    config = with_overrides(find_preset("episodic-qa"), changes)
    with pytest.raises(ValueError, match=r"policy.pretraining_steps must be below total_steps \(300\), got 300"):
        config.make_experiment().check(config, Processes())
