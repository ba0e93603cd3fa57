"""Scripted rules: what they score, that they see observations alone, and who is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memenvs.cli import main
from memenvs.core import TrialVectorEnv
from memenvs.registry import ENVIRONMENTS, find_environment
from memenvs.rules import Rule, RuleError, make_rule
from memenvs.task import BatchTask, Observation
from memenvs.vln.tokenizers import split_words
from memenvs.vln.worlds.procedural.texts import read_clauses
from memenvs.vln.worlds.procedural.world import load_routes
from tests.rule_scores import play_each

#: Cheap settings of the ids that have rules, by family.
SETTINGS: dict[str, dict[str, Any]] = {
    "exploration": {"obs_mode": "scan", "max_episode_steps": 40},
    "vln": {"split": "val_unseen"},
}


def make(name: str, num_envs: int, **settings: Any) -> tuple[TrialVectorEnv, Rule]:
    """An environment, and the first rule of its id."""
    spec = find_environment(name)
    assert spec.task is not None
    made = {**spec.defaults, **spec.rule_settings, **SETTINGS.get(spec.family, {}), **settings}
    env = TrialVectorEnv(spec.task, num_envs, autoreset_mode="Disabled", **made)
    return env, make_rule(next(iter(spec.policies.values())), env.task)


@pytest.mark.slow
def test_scores() -> None:
    env, rule = make("Roaming-v0", 3, max_episode_steps=60)
    assert play_each(env, rule, "distance", range(3)).mean() > 7.0  # random actions drive 4 m
    env, rule = make("VLN-R2R-v0", 24, legs=1)
    assert play_each(env, rule, "success", range(0, 2343, 98)).mean() > 0.7


def test_rules_see_the_newest_observations_alone() -> None:
    for spec in [spec for spec in ENVIRONMENTS if spec.policies]:
        env, _ = make(spec.name, 2)
        for path in spec.policies.values():
            rule = make_rule(path, env.task)
            assert not any(isinstance(value, BatchTask) for value in vars(rule).values()), spec.name
            if rule.way not in ("present", "window"):
                continue
            assert rule.window is not None, spec.name
            observation, _ = env.reset(seed=1)
            steps: list[Observation] = []
            for _ in range(6):
                steps.append({key: value.copy() for key, value in observation.items()})
                chosen = rule.actions(observation)
                observation, _, terminated, truncated, _ = env.step(
                    chosen if len(steps) % 2 else env.task.oracle_actions()
                )
                if (terminated | truncated).any() or env.task.info().get("sr", np.zeros(2)).any():  # R2R has arrived
                    break
            fresh = make_rule(path, env.task)
            assert [fresh.actions(step) for step in steps[-rule.window :]][-1].tolist() == chosen.tolist(), spec.name


def test_an_episode_that_begins_is_seen_without_the_one_before() -> None:
    env, rule = make("Roaming-v0", 2)
    first, _ = env.reset(seed=2)
    expected = rule.actions(first)
    for _ in range(5):
        rule.actions({key: value + 1 for key, value in first.items()})
    rule.start(np.array([True, True]), np.array([True, True]))
    assert rule.actions(first).tolist() == expected.tolist()


def test_clauses_are_read_as_they_were_written() -> None:
    for legs in (1, 3):
        world = load_routes("val_unseen", legs)
        for number in range(0, world.num_episodes, 97):
            assert read_clauses(split_words(world.episode(number).text)) == world.clauses(number), number


def test_other_ids_and_settings_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for command, message in (
        (
            ["VisualMatch-v0", "--policy", "window4"],
            "is for memenvs/Roaming-v0, memenvs/Roaming-Small-v0",
        ),
        (
            ["Darkroom-v0", "--policy", "notebook"],
            "argument --policy notebook: is for memenvs/VisualMatch-v0",
        ),
        (
            ["Coverage-v0", "--policy", "window4", "--env_kwargs", '{"modalities": ["rgb"]}'],
            "must have ['depth', 'pose']",
        ),
    ):
        assert main(["rollout", *command]) == 2
        assert message in capsys.readouterr().err
    with pytest.raises(RuleError, match="tokenizer must be 'words' for this rule"):
        spec = find_environment("VLN-R2R-v0")
        assert spec.task is not None
        env = TrialVectorEnv(spec.task, 1, split="val_unseen", features="none")
        env.task.config = type(env.task.config)(split="val_unseen", tokenizer="wordpiece")  # type: ignore[attr-defined]
        make_rule(spec.policies["memoryless"], env.task)


class OfOneMethod(Rule):
    way, window = "window", 2

    def choose(self, observation: Observation) -> np.ndarray:
        return np.zeros(len(observation["position"]), np.int64)


class WithoutChoose(Rule):
    """Defines nothing."""


def test_a_rule_needs_choose_alone() -> None:
    task = make("Darkroom-v0", 3)[0].task
    rule = make_rule(f"{__name__}:OfOneMethod", task)
    rule.start(*np.ones((2, 3), bool))
    assert rule.actions({"position": np.zeros((3, 2))}).tolist() == [0, 0, 0]
    for name, message in (
        ("WithoutChoose", "WithoutChoose must define choose"),
        ("make", "make must be a subclass of memenvs.rules.Rule"),
    ):
        with pytest.raises(RuleError, match=f"^{__name__}:{message}"):
            make_rule(f"{__name__}:{name}", task)


def test_images_and_scans_show_the_same_row() -> None:
    """The rule takes the row of the scan from images of any size."""
    chosen = []
    for settings in ({"obs_mode": "scan"}, {"obs_mode": "frames"}, {"obs_mode": "frames", "image_size": (24, 32)}):
        env, _ = make("Coverage-v0", 3, **settings)
        rule = make_rule(find_environment("Coverage-v0").policies["window4"], env.task)
        observation, _ = env.reset(seed=4)
        chosen.append(rule.actions(observation).tolist())
    assert chosen[0] == chosen[1] == chosen[2]
