"""Scripted rules: they see the observations of their own environment alone; who is refused."""

from typing import Any

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.registry import ENVIRONMENTS, EnvironmentSpec, find_environment
from memenvs.rules import Rule, RuleError, make_rule
from memenvs.task import BatchTask, Observation, load_task
from tests.rule_scores import recorded
from tests.test_cli import refuse

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


def test_rules_see_the_newest_observations_alone() -> None:
    for spec in {(spec.task, *spec.policies.values()): spec for spec in ENVIRONMENTS}.values():
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


def test_other_ids_and_settings_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for command, message in (
        (["VisualMatch-v0", "--policy", "window4"], "--policy window4: is for memenvs/Roaming-v0, memenvs/Roaming-S"),
        (["Coverage-v0", "--policy", "window4", "--env_kwargs.modalities", '["rgb"]'], "must have ['depth', 'pose']"),
    ):
        assert message in refuse(capsys, "rollout", *command)
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
