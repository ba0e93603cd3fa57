"""Points of ablations: runs and evaluations of one name agree, and memories accept changes."""

from __future__ import annotations

import itertools

import pytest

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.memory import Memory, make_memory
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.smt import TASKS
from memenvs.agents.studies.smt_ablations import ABLATIONS


@pytest.mark.parametrize("size", ["laptop", "paper-like"])
def test_points(size: str) -> None:
    runs, evaluations, counts, lengths = {}, {}, {}, {}
    for task, (study, ablation) in itertools.product(TASKS, ABLATIONS.items()):
        points = ablation.points(find_preset(f"{task}-{size}:{ablation.method}"))
        counts[study] = [each.evaluation.memory.get("n_centres") for each in points if each.line == "window"]
        for point in points:
            settings = (point.overrides, point.both_stages)
            assert runs.setdefault((task, point.run), settings) == settings
            key = (task, point.run, point.evaluation.name)
            assert evaluations.setdefault(key, point.evaluation) == point.evaluation
            preset = find_preset(f"{task}-{size}:{point.method}")
            policy = with_overrides(preset, [*point.both_stages.items(), *point.overrides.items()]).policy
            changed = {**policy["memory_kwargs"], **point.evaluation.memory}
            assert isinstance(make_memory(policy["memory"], 8, **changed), Memory)
            played = point.evaluation.apply(preset)
            assert played.eval_steps == played.eval_kwargs.get("max_episode_steps", preset.eval_steps)
            lengths.setdefault(study, set()).add(played.eval_steps / preset.eval_steps)
    assert len(runs) == 3 * (13 if size == "laptop" else 14)  # one modality more in images
    assert lengths == {study: {1.0, 2.5} if study == "causal" else {1.0} for study in ABLATIONS}
    if size == "paper-like":
        assert counts["centres"] == [25, 50, None, 200]  # the paper's; trained with 100
