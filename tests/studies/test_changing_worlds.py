"""Worlds that change: what differs between the runs, and where they are evaluated."""

from types import SimpleNamespace

import pytest

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.presets.pretrained import unpack_pretrained
from memenvs.agents.study import ROWS, Played, read_rows, settings_hash


def test_tasks_differ_in_the_trials_and_methods_in_the_memory(study, module):
    for name in ("darkroom", "homes"):
        kinds = {kind: study.configs[f"{name}-{kind}"] for kind in module.TRIALS if f"{name}-{kind}" in study.configs}
        first = next(iter(kinds["fixed"].values()))
        for kind, configs in kinds.items():
            for config in configs.values():
                differs = {key for key in vars(first) if getattr(first, key) != getattr(config, key)}
                assert differs <= {"policy", "env_kwargs"}
                changed = {key for key in config.env_kwargs if config.env_kwargs[key] != first.env_kwargs.get(key)}
                assert changed <= set(module.TRIALS[kind])


@pytest.mark.parametrize("task", ["darkroom-itinerary", "homes-fixed"])
def test_evaluations_are_in_new_places(study, module, monkeypatch, task):
    monkeypatch.setattr(module, "play_trials", lambda played, *metrics, **changes: changes)
    for kind in module.TRIALS:
        changes = study.evaluations[kind](SimpleNamespace(config=study.configs[task]["relic"]))
        assert changes["eval_kwargs"]["split"] == "test"
        assert changes["eval_kwargs"].items() >= module.TRIALS[kind].items()
        assert changes["eval_steps"] >= 15 * study.configs[task]["relic"].env_kwargs["max_episode_steps"]


@pytest.mark.nightly
def test_the_shipped_agent_pays_for_a_change_what_its_row_says(study, module, file, tmp_path):
    """To the last bit; the README rounds the mean of its three seeds to 10 points."""
    row = read_rows(file.with_name(ROWS)).of("homes-fixed", "relic")[0]
    with RunDirectory(unpack_pretrained("extobjnav-small", tmp_path / "run")) as run:
        assert settings_hash(run.config) == row["settings"]
        results = study.evaluations["itinerary"](Played("homes-fixed", "relic", run.config, run))
    played, expected = (
        evaluation["agent"]["itinerary"]["metrics"]["success"]
        for evaluation in (results, row["evaluations"]["itinerary"])
    )
    assert {name: played[name] for name in module.MEANINGS} == {name: expected[name] for name in module.MEANINGS}
