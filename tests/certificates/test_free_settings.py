"""Settings of what is observed leave episodes, rewards and ends as they are."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memenvs.certificates.test_sets import find_test_set, playable_test_set
from memenvs.core import TrialVectorEnv
from memenvs.registry import ENVIRONMENTS, EnvironmentSpec, find_environment
from memenvs.task import load_task

STEPS = 70
#: Id -> changes of what is observed; all of them together have every such setting of the task.
CHANGES: dict[str, list[dict[str, Any]]] = {
    "VisualMatch-Led-v0": [{"obs": "one_hot"}],
    "Search-v0": [{"obs_mode": "scan"}],  # as Search-Small-v0 has it
    "Search-Small-v0": [
        {"obs_mode": "frames"},
        {"obs_mode": "frames", "image_size": (96, 128), "modalities": ["depth"]},
        {"modalities": ["pose"], "pose_source": "dead_reckoning", "collision_known": True},
    ],
    "ExtObjNav-Small-v0": [
        {"compass": False},
        {"obs_mode": "rgb", "image_size": (24, 32), "sensors": ["depth", "semantic"]},
    ],
    "TwoRooms-v0": [{"image_size": (20, 30)}],
    "FourBoxes-Gap-v0": [{"image_size": (36, 36)}],
    "RoomBallet-FIFO-v0": [{"obs": "symbols"}],
    "RoomBallet-MultiTask-v0": [{"obs": "symbols"}],
    "EpisodicQA-Tiny-v0": [{"modalities": ["symbols"]}],
    "VLN-R2R-v0": [
        {"features": "none", "panorama": True},
        {"feature_size": 5, "max_tokens": 9},
        {"max_tokens": 4000, "too_long": "error"},
        {"tokenizer": "wordpiece", "data_dir": "vocabulary"},
    ],
}


def play(env: TrialVectorEnv, seed: int) -> list[Any]:
    """Rewards, ends and the truth about every step of random possible actions."""
    rng = np.random.default_rng(seed)
    infos = env.reset(seed=seed)[1]
    steps: list[Any] = [infos]
    for _ in range(STEPS):
        masks = env.task.action_masks()
        masks = np.ones((env.num_envs, env.single_action_space.n)) if masks is None else masks  # type: ignore[attr-defined]
        actions = np.argmax(masks * (1.0 + rng.random(masks.shape)), axis=1)
        _, rewards, terminated, truncated, infos = env.step(actions)
        for info in (infos, infos.get("final_info", {})):
            info.pop("final_obs", None)
        steps.append((rewards.copy(), terminated.copy(), truncated.copy(), infos))
    env.close()
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_episodes_rewards_and_ends_stay(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[SEP]\ngo\n.\n")
    monkeypatch.chdir(tmp_path)
    trials = find_test_set(name)
    task = find_environment(name).task
    assert task is not None
    first = play(TrialVectorEnv(task, 3, **trials.settings), 7)
    for change in CHANGES[name]:
        env = TrialVectorEnv(task, 3, **{**trials.settings, **change})
        trials.check_env(env)
        assert playable_test_set(env, "v0").id == trials.id
        np.testing.assert_equal(play(env, 7), first)


@pytest.mark.parametrize("spec", [spec for spec in ENVIRONMENTS if spec.task is not None], ids=lambda spec: spec.name)
def test_every_free_setting_is_tried(spec: EnvironmentSpec) -> None:
    task = load_task(spec.task or "")
    assert task.config_type is None or set(task.observation_settings) <= {
        field.name for field in fields(task.config_type)
    }
    relatives = [name for name in CHANGES if _declares(find_environment(name)) is _declares(spec)]
    assert set(task.observation_settings) <= {
        setting for name in relatives for change in CHANGES[name] for setting in change
    }


def _declares(spec: EnvironmentSpec) -> type:
    """The class that declares what the task of an id observes."""
    return next(base for base in load_task(spec.task or "").__mro__ if "observation_settings" in vars(base))
