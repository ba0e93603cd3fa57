"""Rules of ids: what they do follows from the observations of their own environment alone.

Those of ids in homes and of questions have such tests in their folders.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.registry import ENVIRONMENTS, EnvironmentSpec
from memenvs.rules import make_rule
from memenvs.task import load_task
from tests.rule_scores import recorded

IN_HOMES = {"rooms": (4, 5), "image_size": (12, 16), "steps": (20, 20)}
#: Settings of short episodes by family, or by name where a family has several tasks.
SHORT: dict[str, dict[str, Any]] = {
    "darkroom": {"size": 4, "split": "all", "max_episode_steps": 19, "trial_episodes": 3, "gap": 3},
    "four_boxes": {"split": "test", "trial_episodes": 2, "gap": 2, "max_episode_steps": 52},
    "visual_match": {"phases": (3, 6, 9), "trial_episodes": 2},
    "two_rooms": {"phases": (3, 6, 9), "image_size": (12, 20), "trial_episodes": 2},
    "ColorRecall-v0": {**IN_HOMES, "square_size": 3, "capacity": 20},
    "ViewRecall-v0": IN_HOMES,
    "faces": {},
    "ballet3d": {},
    "room_ballet": {"obs": "symbols"},
}


def cases() -> list[Any]:
    """The first id of each task, those that are led, and each of their rules."""
    specs = {(spec.task.rpartition(":")[0], *spec.policies): spec for spec in reversed(ENVIRONMENTS)}
    led = [spec for spec in ENVIRONMENTS if "led" in spec.defaults]
    return [
        pytest.param(spec, name, id=f"{spec.name}-{name}")
        for spec in (*reversed(specs.values()), *led)
        for name in spec.policies
        if spec.family in SHORT or spec.name in SHORT
    ]


@pytest.mark.parametrize(("spec", "name"), cases())
def test_actions_follow_from_the_own_observations(spec: EnvironmentSpec, name: str) -> None:
    settings = {**spec.defaults, **SHORT.get(spec.family, {}), **SHORT.get(spec.name, {})}
    env = TrialVectorEnv(spec.task, 3, autoreset_mode="Disabled", **settings)
    rows = recorded(env, make_rule(spec.policies[name], env.task), max(150, env.max_episode_steps))
    own = {key: value for key, value in settings.items() if key not in ("trial_episodes", "gap", "led")}
    other = make_rule(spec.policies[name], load_task(spec.task)(3, **own))  # of a task that is never reset or stepped
    alone = [make_rule(spec.policies[name], load_task(spec.task)(1, **own)) for _ in range(3)]
    for starts, observation, actions in rows:
        other.start(*starts)
        np.testing.assert_array_equal(other.actions(observation), actions)
        for i, rule in enumerate(alone):
            rule.start(*starts[:, i : i + 1])
            one = rule.actions({key: value[i : i + 1] for key, value in observation.items()})
            np.testing.assert_array_equal(one[0], actions[i])
    env.close()
