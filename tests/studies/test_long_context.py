"""The study of long contexts: equal rollouts and batches, tables from rows by hand."""

from types import ModuleType
from typing import Any

import numpy as np

from memenvs.agents.presets import find_preset
from memenvs.agents.study import Rows, Study


def test_both_agents_learn_from_equally_many_steps_at_a_time(study: Study) -> None:
    short, long = find_preset("extobjnav-small"), study.configs["homes"]["4096"]
    assert long.env_kwargs["trial_steps"] == long.learner.n_steps == 8 * short.learner.n_steps == 4096
    for config in (short, long):
        segment = config.learner.n_steps // config.learner.n_updates
        batches = config.n_envs // config.learner.batch_size  # in an epoch
        assert config.n_envs * config.learner.n_steps == 32_768
        assert config.learner.batch_size * segment == 2048  # steps in a batch of a partial update
        assert config.learner.n_updates * batches == 16  # optimiser steps of an epoch, over a rollout


def test_parts_of_a_trial(module: ModuleType) -> None:
    means = np.zeros(600)
    means[0], means[1:4], means[15:64], means[256:512], means[512:] = 0.5, (0.1, 0.2, 0.6), 0.75, 0.25, 9
    np.testing.assert_allclose(module.parts_of(means), [0.5, 0.3, 0, 0.75, 0, 0.25])


def test_a_line_for_each_agent_and_score(study: Study) -> None:
    def row(**success: float) -> dict[str, Any]:
        evaluations = {
            name: {"agent": {"metrics": {"success": {"mean": [mean] * 512}, "spl": {"mean": [mean / 2] * 512}}}}
            for name, mean in success.items()
        }
        return {"task": "homes", "method": "4096", "seed": 0, "evaluations": evaluations}

    rows = Rows([row(evaluation=0.75, start=0.25, shipped=0.5, shipped_start=0.125)])
    (table,) = study.tables(rows)
    assert table.header == [
        *("agent", "score", "episode 1", "2 to 4", "5 to 15", "16 to 64", "65 to 256", "257 to 512"),
    ]
    assert table.lines == [
        ["trained with 512 steps", "success, %", *["12.5"] * 3, *["50.0"] * 3],
        ["trained with 512 steps", "SPL", *["0.062"] * 3, *["0.250"] * 3],
        ["trained with 4,096 steps", "success, %", *["25.0"] * 3, *["75.0"] * 3],
        ["trained with 4,096 steps", "SPL", *["0.125"] * 3, *["0.375"] * 3],
    ]
    assert study.tables(Rows([])) == []
    draw = study.figures["long_context"]
    assert draw(Rows([row(evaluation=0.75, start=0.25)])) is None
    figure = draw(rows)
    assert figure is not None
    for line, success in zip(figure.axes[0].lines, ((12.5, 50), (25, 75)), strict=True):
        drawn = np.asarray(line.get_ydata())
        np.testing.assert_allclose([drawn[0], drawn[-1]], success)
