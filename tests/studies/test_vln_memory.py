"""Study of MTVM's memory: accuracy of the decision after the repeated actions of a path."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from memenvs.agents.study import find_studies, load_study
from memenvs.vln.worlds.procedural.world import load_routes


@pytest.mark.slow
def test_only_the_decision_after_the_repeated_actions_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that agrees with its teacher in decision 13 alone is right in paths where that decision counts."""

    class Model:
        policy = SimpleNamespace(set_training_mode=lambda mode: None)

        def play(self, env, number, *, teacher_forcing, episodes):
            rows = torch.arange(env.num_envs)
            agreed = [torch.full((len(rows),), float(decision == 12)) for decision in range(30)]
            return SimpleNamespace(
                steps=[SimpleNamespace(rows=rows.flip(0), teacher_agreement=agreement) for agreement in agreed]
            )

    study = load_study(find_studies()["vln_memory"])
    repeats = sys.modules[study.smoke.__module__.replace(".study", ".repeats")]
    monkeypatch.setattr(repeats.ImitationA2C, "load", lambda *_: Model())
    world = load_routes("val_unseen", 3)
    run = SimpleNamespace(config=replace(study.config(("3", "all", 0)), n_envs=2), checkpoint_path=lambda: None)
    right = repeats.agrees_after_repeats(run, world, range(world.num_episodes))
    assert 0.05 < right.mean() < 0.5
    assert right.tolist() == [world.repeated_moves(episode)[1] == 12 for episode in range(world.num_episodes)]
