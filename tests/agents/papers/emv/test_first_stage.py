"""Runs that start with the memory of another run, and which histories are drawn."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, RunDirectory
from memenvs.agents.experiments.train import check_config, train_run
from memenvs.agents.papers.emv.experiment import load_answering, make_question_answering
from memenvs.agents.presets import find_preset
from tests.agents.papers.emv.small_runs import DATA, POLICY, QUEUES, T5_SIZES, save_untrained, words_from

TEXT = {"answers": "text", "text": {"sizes": T5_SIZES}, "dim": 8, "questions": 4, "memory_kwargs": QUEUES}
SHARED = ("codes.", "frames.", "memory.")


def second_stage(source: Path | None, **policy) -> RunConfig:
    return words_from(source, {**TEXT, **policy})


def weights(path: Path) -> dict[str, torch.Tensor]:
    return load_answering(path).model.state_dict()


def test_words_are_learned_with_the_memory_of_a_run_of_slots(tmp_path):
    """A checkpoint does not need the source."""
    source = tmp_path / CHECKPOINT
    save_untrained(source)
    before = weights(source)
    with RunDirectory(tmp_path / "run", replace(second_stage(source), total_steps=1)) as run:
        train_run(run, quiet=True)
        first = weights(run.path)
        source.unlink()
        run.extend(2)
        train_run(run, quiet=True)
        second, metrics = weights(run.path), run.metrics()
    shared = [name for name in first if name.startswith(SHARED)]
    assert {name for name in before if name.startswith(SHARED)} == set(shared) and len(shared) > 20
    moved = [float((first[name] - before[name]).abs().max()) for name in shared]
    # one step of Adam moves each weight by at most the learning rate of the warm-up, 1e-5
    assert 0 < max(moved) < 1e-4
    changed = {name.split(".")[0] for name in first if not torch.equal(first[name], second[name])}
    assert {"t5", "memory"} <= changed and "train/auxiliary_loss" in metrics


def test_a_new_head_learns_with_a_frozen_memory(tmp_path):
    source = tmp_path / CHECKPOINT
    save_untrained(source)
    policy = {"answers": "structured", "text": {}, **POLICY, "freeze_memory": True}
    with RunDirectory(tmp_path / "run", second_stage(source, **policy)) as run:
        train_run(run, quiet=True)
        after, before = weights(run.path), weights(source)
    changed = {name.split(".")[0] for name in after if not torch.equal(after[name], before[name])}
    assert changed == {"head"}


def test_bad_sources(tmp_path):
    source = tmp_path / CHECKPOINT
    save_untrained(source)
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.zip").write_bytes(b"PK")
    wrong = {"dim": 16, "memory_kwargs": {**QUEUES, "memory_length": 8}, "memory": "ct"}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=f"checkpoint.zip must have the {name} .* of this run, got "):
            check_config(second_stage(source, **{name: value}))
    for name, value in (("modalities", ["date", "symbols"]), ("data_seed", 1), ("preset", "faithful")):
        other = replace(second_stage(source), env_kwargs={**DATA, name: value})
        with pytest.raises(ValueError, match=f"checkpoint.zip must have the {name} .* of this run, got "):
            check_config(other)
    for name in ("nowhere", "empty"):
        with pytest.raises(FileNotFoundError, match="encoder_from must be the run or checkpoint whose memory"):
            check_config(second_stage(tmp_path / name))
    with pytest.raises(ValueError, match=r"encoder_from: .*broken\.zip"):
        check_config(second_stage(tmp_path / "broken.zip"))
    with pytest.raises(ValueError, match=r"policy\.freeze_memory needs encoder_from, .* got None"):
        check_config(second_stage(None, freeze_memory=True))
    with pytest.raises(ValueError, match="freeze_memory must be False without a memory"):
        check_config(second_stage(source, freeze_memory=True, memory="none", memory_kwargs={}))
    ballet = with_overrides(find_preset("room-ballet"), [("encoder_from", str(source))])
    with pytest.raises(ValueError, match="encoder_from must be left out of a run that learns with 'supervised', "):
        check_config(ballet)


def test_long_histories_are_drawn_more_often():
    """In training, histories of n episodes come n times as often; validation draws each length alike."""
    shares = {}
    for weighted in (True, False):
        policy = {**POLICY, "weight_by_length": weighted, "curriculum": [10, 20]}
        model = make_question_answering("memenvs/EpisodicQA-v0", DATA, policy)
        for split, step in (("train", 0), ("train", 15), ("train", 30), ("validation", 0)):
            batch = model.sample(6000, np.random.default_rng(0), split, step)
            drawn, count = np.unique(
                [len(batch.arrays.dialogs.history(n)) for n in batch.histories], return_counts=True
            )
            shares[weighted, split, step] = dict(zip(drawn.tolist(), (count / 6000).tolist(), strict=True))
    for weighted, step, lengths in ((True, 30, (1, 2, 3)), (True, 15, (1, 2)), (False, 30, (1, 2, 3)), (True, 0, (1,))):
        total = sum(lengths) if weighted else len(lengths)
        expected = {length: (length if weighted else 1) / total for length in lengths}
        assert shares[weighted, "train", step] == pytest.approx(expected, abs=0.03)
    assert (
        shares[True, "validation", 0]
        == shares[False, "validation", 0]
        == pytest.approx(dict.fromkeys((1, 2, 3, 5), 0.25), abs=0.03)
    )
