"""Videos of trained agents: the frames of a trial and what is written above them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from stable_baselines3 import PPO

from memenvs.agents import make_vec_env
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.train import train_run
from memenvs.agents.experiments.video import Screen, record_run
from memenvs.agents.presets import find_preset
from memenvs.cli import main
from memenvs.cli.caption import BAR
from tests.agents.learners import learner


def make_run(folder: Path, config: RunConfig) -> Path:
    """A run with a checkpoint."""
    with RunDirectory(folder, config) as run:
        train_run(run, quiet=True)
    return folder


@pytest.mark.slow
def test_a_trial_is_recorded_with_goal_episode_and_step(tmp_path, capsys, monkeypatch):
    """Two episodes of 16 steps; the trial goes on, the evaluation ends after 20 steps."""
    folder = make_run(tmp_path / "run", replace(find_preset("ci-smoke"), total_steps=8, eval_steps=20))
    texts: list[str] = []
    render = Screen.render
    monkeypatch.setattr(Screen, "render", lambda self: texts.append(self.text) or render(self))
    assert main(["record", str(folder), "--layout", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [episode["length"] for episode in result["episodes"]] == [16]
    begins = texts[0].removesuffix("episode 1   step 0")
    assert begins.startswith("goal: [") and texts[0] != begins
    ended = f"{begins}episode 1   ended after 16 steps, return {result['episodes'][0]['return']:.3g}"
    second = [f"{begins}episode 2   step {t}" for t in range(5)]
    assert texts == [f"{begins}episode 1   step {t}" for t in range(16)] + [ended] + second
    with Image.open(folder / "video.gif") as video:
        assert getattr(video, "n_frames", 1) == result["frames"] == 22
        assert video.size == (320, 320 + BAR)
    texts.clear()
    assert main(["record", str(folder), "--frames", "5", "--steps", "9", "--out", str(tmp_path / "video.mp4")]) == 0
    assert (tmp_path / "video.mp4").stat().st_size > 1000
    assert texts[-1].endswith("step 9") and len(texts) < 10
    for arguments, message in (
        (["--layout", "99"], "layout must be from 0 to 3, got 99"),
        (["--out", "video.avi"], "argument --out: must end in .gif or .mp4, got 'video.avi'"),
        (["--checkpoint", "other.zip"], "no checkpoint at"),
    ):
        assert main(["record", str(folder), *arguments]) == 2
        assert message in capsys.readouterr().err


def test_an_environment_without_trials_is_recorded_for_an_episode(tmp_path):
    config = replace(
        find_preset("ci-smoke"), env="CartPole-v1", env_kwargs={}, eval_kwargs={}, eval_all_layouts=False,
        eval_steps=500, total_steps=8, policy={"memory": "none"},
    )  # fmt: skip
    with RunDirectory(make_run(tmp_path / "run", config)) as run:
        result = record_run(run, tmp_path / "video.gif")
        assert len(result["episodes"]) == 1 and result["frames"] == result["episodes"][0]["length"] + 1
        with pytest.raises(ValueError, match=r"layout must be None for CartPole-v1, which has no layouts, got 0"):
            record_run(run, tmp_path / "video.gif", layout=0)


def test_a_model_that_was_saved_in_python_is_recorded(tmp_path, capsys):
    env = make_vec_env("memenvs/Darkroom-v0", 4, seed=0, size=3, max_episode_steps=5, trial_episodes=2)
    model, settings = tmp_path / "model.zip", ["--env_kwargs.size", "3", "--env_kwargs.max_episode_steps=5"]
    learner("gru", env=env).save(model)
    game = ["--env", "Darkroom-v0", *settings, "--env_kwargs", '{"trial_episodes": 2}']
    assert main(["record", str(model), *game, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [episode["length"] for episode in result["episodes"]] == [5, 5]
    assert (tmp_path / "model.gif").is_file() and result["file"] == str(tmp_path / "model.gif")
    run = ["record", str(make_run(tmp_path / "run", replace(find_preset("ci-smoke"), total_steps=8)))]
    (tmp_path / "other.zip").write_bytes(b"PK")
    PPO("MlpPolicy", "CartPole-v1", device="cpu").save(tmp_path / "sb3.zip")
    for arguments, message in (
        ([str(model)], "model.zip: the file of a model needs --env ID, as in --env Darkroom-v0"),
        ([str(model), *game, "--checkpoint", "x.zip"], "--checkpoint must be left out with the file of a model"),
        ([str(model), "--env", "FourBoxes-v0"], "the model has learned with 'position', which the environment does"),
        ([str(model), "--env", "Darkrom-v0"], "unknown id 'Darkrom-v0'; did you mean 'memenvs/Darkroom-v0'"),
        ([str(tmp_path / "other.zip")], "other.zip: not a whole checkpoint"),
        ([str(tmp_path / "sb3.zip")], "sb3.zip: is a model of Stable-Baselines3 and must be one of this package"),
        ([*run[1:], "--env", "Darkroom-v0"], "--env goes with the file of a model, got Darkroom-v0 and the run"),
        ([*run[1:], *settings], "--env_kwargs goes with an id or the file of a model"),
        ([str(tmp_path / "none.zip"), *game], "argument TARGET: no such folder or file, and unknown id"),
        ([str(tmp_path / "none.zip")], "argument TARGET: no such folder or file, and unknown id"),
    ):
        assert main(["record", *arguments]) == 2, arguments
        assert message in capsys.readouterr().err


def test_small_frames_are_enlarged_below_the_text():
    screen = Screen()
    screen.frame = np.full((3, 200, 3), 7, np.uint8)
    screen.text = "step 0"
    image = screen.render()
    assert image.shape == (2 * 3 + BAR, 400, 3)
    assert (image[BAR:] == 7).all() and image[:BAR].max() > 200 and image[:BAR].min() == 0
