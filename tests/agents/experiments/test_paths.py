"""Paths in single episodes: metrics by step, maps, and the command that draws them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.paths import EpisodePath, compare_paths, curve_by_step, draw_path, play_paths
from memenvs.agents.experiments.play import OraclePolicy
from memenvs.agents.presets import find_preset
from memenvs.agents.vec_env import TrialVecEnv, make_vec_env
from memenvs.cli import main
from memenvs.resets import stream_seed
from tests.agents.experiments.test_video import make_run

COVERAGE = {"split": "test", "modalities": ["pose"], "max_episode_steps": 12}
ACTIONS = (0, 0, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0)


class Script:
    """Take the same actions in all environments; the state counts the steps."""

    def __init__(self) -> None:
        self.received: set[bool] = set()

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        self.received.add(deterministic)
        step = 0 if state is None else state
        return np.full(len(episode_start), ACTIONS[step % len(ACTIONS)]), step + 1


def envs(id: str, count: int, seed: int = 5, **kwargs: Any) -> TrialVecEnv:
    return make_vec_env(id, count, seed=seed, **kwargs)


@pytest.mark.parametrize("metric", ["cells", "distance", "return"])
def test_values_are_those_of_stepping_by_hand(metric: str) -> None:
    """Five episodes in three environments: the first of trial 0 in each, then of trial 1 in two."""
    paths = play_paths(Script(), envs("memenvs/Coverage-v0", 3, **COVERAGE), 5, metric)
    played = [(path.seed - stream_seed(5), path.trial) for path in paths]
    assert played == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]
    env = gym.make("memenvs/Coverage-v0", **COVERAGE).unwrapped
    assert sum(path.values[-1] for path in paths) != 0
    for path in paths:
        _, info = env.reset(seed=path.seed, options={"trial": path.trial})
        poses, values, total = [info["pose"]], [0.0], 0.0
        for action in ACTIONS:
            _, reward, _, _, info = env.step(action)
            total += float(reward)
            poses.append(info["pose"])
            values.append(total if metric == "return" else info[metric])
        np.testing.assert_array_equal(path.values, values)
        np.testing.assert_array_equal(path.poses, poses)
        assert path.layout == info["layout_id"]


def test_episodes_do_not_depend_on_the_policy_and_layouts_can_be_given() -> None:
    first = play_paths(Script(), envs("memenvs/Darkroom-v0", 2), 5, "success", layouts=[3, 1, 2])
    env = envs("memenvs/Darkroom-v0", 2)
    second = play_paths(OraclePolicy(env), env, 5, "success", layouts=[3, 1, 2])
    assert [path.layout for path in first] == [3, 1, 2, 3, 1]
    for one, other in zip(first, second, strict=True):
        assert (one.seed, one.trial, one.layout) == (other.seed, other.trial, other.layout)
        np.testing.assert_array_equal(one.poses[0], other.poses[0])


def test_actions_are_drawn_or_most_likely() -> None:
    for deterministic in (False, True):
        script = Script()
        play_paths(script, envs("memenvs/Darkroom-v0", 2), 2, "success", deterministic=deterministic)
        assert script.received == {deterministic}


def test_an_episode_that_is_over_keeps_its_value() -> None:
    paths = [EpisodePath(0, 0, 0, np.zeros((len(line), 3)), np.array(line)) for line in ([0.0, 1.0, 2.0], [0.0, 3.0])]
    curve = curve_by_step(paths, 3)
    assert curve["mean"] == [0.0, 2.0, 2.5, 2.5]
    np.testing.assert_allclose(np.array(curve["stderr"], float), [0.0, 1.0, 0.5, 0.5])  # |a - b| / 2 of two
    assert curve_by_step(paths[:1], 2) == {"mean": [0.0, 1.0, 2.0], "stderr": [None] * 3}


def test_the_map_is_that_of_the_episode() -> None:
    """Also after later trials were played."""
    path = play_paths(Script(), envs("memenvs/Coverage-v0", 2, **COVERAGE), 3, "cells")[2]
    drawn = draw_path(envs("memenvs/Coverage-v0", 1, seed=99, **COVERAGE), path)
    env = gym.make("memenvs/Coverage-v0", **COVERAGE).unwrapped
    env.reset(seed=path.seed, options={"trial": path.trial})
    np.testing.assert_array_equal(drawn, env.task.draw_map(0, path.poses))


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = with_overrides(find_preset("ci-smoke"), [("total_steps", 128), ("n_envs", 1), ("eval_trials", 1)])
    make_run(tmp_path / "run", config)
    assert main(["paths", str(tmp_path / "run"), "--episodes", "3", "--out", str(tmp_path / "out")]) == 0
    output = capsys.readouterr().out
    assert "agent " in output and "oracle " in output and "paths.html" in output
    result = json.loads((tmp_path / "out" / "paths.json").read_text())
    assert result["metric"] == config.score and len(result["episodes"]) == 3
    names = {"paths.html", "paths.json", "paths.png"}
    names |= {f"path_{number}_{policy}.png" for number in (1, 2, 3) for policy in ("agent", "random", "oracle")}
    assert {file.name for file in (tmp_path / "out").iterdir()} == names
    assert {Path(file).name for file in result["files"]} == names
    for curve in result["policies"].values():
        assert len(curve["lengths"]) == len(curve["last"]) == 3
        longest = max(max(c["lengths"]) for c in result["policies"].values())
        assert len(curve["mean"]) == len(curve["stderr"]) == 1 + longest
        assert curve["mean"][-1] == pytest.approx(np.mean(curve["last"]))
    page = (tmp_path / "out" / "paths.html").read_text()
    assert page.count("<img") == 1 + 9
    with Image.open(tmp_path / "out" / "path_1_oracle.png") as picture:
        assert min(picture.size) > 50


@pytest.mark.slow
def test_agents_of_several_runs_play_the_same_episodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = with_overrides(find_preset("ci-smoke"), [("total_steps", 128), ("n_envs", 2), ("eval_trials", 1)])
    others = {
        "a": config,
        "b": replace(config, seed=1, n_envs=1),
        "c": with_overrides(config, [("eval_kwargs.size", 5)]),
    }
    a, b, c = (str(make_run(tmp_path / name, own)) for name, own in others.items())
    out = ["--out", str(tmp_path / "out")]
    alone = ["--episodes", "3", "--json", *out]
    results = []
    for command in ([a, b], [a], [b, a]):
        assert main(["paths", *command, *alone]) == 0
        results.append(json.loads(capsys.readouterr().out))
    both, one, reverse = results
    assert list(both["policies"]) == ["a", "b", "random", "oracle"]
    assert both["policies"]["a"]["last"] == one["policies"]["agent"]["last"] and both["episodes"] == one["episodes"]
    assert reverse["episodes"] == both["episodes"]  # whatever the number of environments in training
    assert (tmp_path / "out" / "path_1_b.png").is_file()
    assert main(["paths", a, c, *alone]) == 2
    assert "c is evaluated in other episodes than a" in capsys.readouterr().err
    RunDirectory(tmp_path / "other" / "a", config).close()
    assert main(["paths", a, str(tmp_path / "other" / "a"), *alone]) == 2
    assert "folders of runs must have different names" in capsys.readouterr().err


def test_wrong_names_and_numbers(tmp_path: Path) -> None:
    for metric in ("cels", "seed"):
        with pytest.raises(ValueError, match=f"unknown metric '{metric}'"):
            play_paths(Script(), envs("memenvs/Coverage-v0", 1, **COVERAGE), 1, metric)
    with RunDirectory(tmp_path, find_preset("ci-smoke")) as run:
        with pytest.raises(ValueError, match="episodes must be an integer of at least 1, got 0"):
            compare_paths([run], tmp_path, episodes=0)
        assert not (tmp_path / "paths.json").exists()


def test_other_environments_have_no_maps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunDirectory(tmp_path, RunConfig(env="CartPole-v1", n_envs=1)).close()
    assert main(["paths", str(tmp_path)]) == 2
    assert "env must be a task of memenvs to have its paths drawn, got 'CartPole-v1'" in capsys.readouterr().err
