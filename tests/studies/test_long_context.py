"""The study of long contexts: equal rollouts and batches, tables from rows by hand."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from memenvs.agents.presets import find_preset
from memenvs.agents.study import Played, Rows, Study


def test_both_agents_learn_from_equally_many_steps_at_a_time(study: Study) -> None:
    short, long = find_preset("extobjnav-small"), study.configs["homes"]["4096"]
    assert long.env_kwargs["trial_steps"] == long.learner.n_steps == 8 * short.learner.n_steps == 4096
    for config in (short, long):
        segment = config.learner.n_steps // config.learner.n_updates
        batches = config.n_envs // config.learner.batch_size  # in an epoch
        assert config.n_envs * config.learner.n_steps == 32_768
        assert config.learner.batch_size * segment == 2048  # steps in a batch of a partial update
        assert config.learner.n_updates * batches == 16  # optimiser steps of an epoch, over a rollout


def rows_of(**offsets: float) -> Rows:
    """Make a row with curves that rise by 1 / 500 an episode; short trials have 16 episodes."""
    evaluations = {}
    for name, offset in offsets.items():
        curve = offset + np.arange(16 if "short" in name else 520) / 500
        means = {"success": {"mean": curve.tolist()}, "spl": {"mean": (curve / 2).tolist()}}
        evaluations[name] = {"agent": {"metrics": means}}
    return Rows([{"task": "homes", "method": "4096", "seed": 0, "evaluations": evaluations}])


ROWS = rows_of(short=0.1, evaluation=0.2, shipped_short=0.3, shipped_evaluation=0.4)


def test_parts_of_each_agent_and_kind_of_trial(study: Study) -> None:
    """Episode k has 0.2 (k - 1) % above the offset, so that a part has that of its middle."""
    success, spl = study.tables(ROWS)
    assert success.header[2:] == [
        *("episode 1", "2 to 4", "5 to 16", "17 to 64", "65 to 256", "257 to 512", "513 to the end"),
    ]
    above = (0, 0.4, 1.9, 7.9, 31.9, 76.7, 103.1)  # centres 1, 3, 10.5, 40.5, 160.5, 384.5 and 516.5
    assert success.lines == [
        ["trained with 512 steps", 256, "30.0", "30.4", "31.9", "-", "-", "-", "-"],
        ["trained with 512 steps", 8, *(f"{40 + more:.1f}" for more in above)],
        ["trained with 4,096 steps", 256, "10.0", "10.4", "11.9", "-", "-", "-", "-"],
        ["trained with 4,096 steps", 8, *(f"{20 + more:.1f}" for more in above)],
    ]
    assert [line[2] for line in spl.lines] == ["0.150", "0.200", "0.050", "0.100"]
    assert study.tables(Rows([])) == []


def test_the_figure_has_a_line_for_each_agent_and_kind_of_trial(study: Study) -> None:
    draw = study.figures["long_context"]
    assert draw(rows_of(short=0.1, evaluation=0.2)) is None
    figure = draw(ROWS)
    assert figure is not None
    first = [np.asarray(line.get_ydata())[0] for line in figure.axes[0].lines]
    np.testing.assert_allclose(first, [30, 40, 10, 20])


def test_both_agents_play_the_same_trials(study: Study, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(module, "play_trials", lambda played, *metrics, **changes: calls.append(changes))
    played = Played("homes", "4096", study.config(("homes", "4096", 0)), None)
    for evaluation in study.evaluations.values():
        evaluation(played)
    trials = [(call["eval_steps"], call["eval_trials"]) for call in calls]
    assert trials == [(1024, 256), (32_768, 8)] * 2
    assert ["policy" in call for call in calls] == [False, False, True, True]
