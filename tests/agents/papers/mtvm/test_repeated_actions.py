"""Accuracy of the decision after the repeated actions of a tour."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.papers.mtvm import repeated_actions
from memenvs.agents.presets import find_preset
from memenvs.vln.worlds.procedural.world import load_tours


@pytest.mark.slow
def test_only_the_decision_after_the_repeated_actions_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that agrees with its teacher in decision 13 alone is right in tours where that decision counts."""

    class Model:
        policy = SimpleNamespace(set_training_mode=lambda mode: None)

        def play(self, env, number, *, teacher_forcing, episodes):
            rows = torch.arange(env.num_envs)
            agreed = [torch.full((len(rows),), float(decision == 12)) for decision in range(30)]
            return SimpleNamespace(
                steps=[SimpleNamespace(rows=rows.flip(0), teacher_agreement=each) for each in agreed]
            )

    monkeypatch.setattr(repeated_actions.ImitationA2C, "load", lambda *_: Model())
    world = load_tours("val_unseen", 3)
    config = with_overrides(find_preset("vln-laptop:tours3"), [("n_envs", 2), ("encoder_from", None)])
    run = SimpleNamespace(config=config, checkpoint_path=lambda: None)
    right = repeated_actions.agrees_after_repeats(run, world, range(world.num_episodes))  # type: ignore[arg-type]
    assert 0.05 < right.mean() < 0.5
    assert right.tolist() == [world.repeated_moves(episode)[1] == 12 for episode in range(world.num_episodes)]
