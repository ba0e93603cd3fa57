"""Videos and datasets of trained agents: what they show of what an agent saw and did."""

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
from memenvs.agents.experiments.evaluate import EVALUATION_SEED, trained_policy
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


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of datasets."""
    pytest.importorskip("minari", reason="needs minari: pip install 'memenvs[minari]'")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> dict:
    assert main(["dataset", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_the_agent_acts_on_what_is_recorded(tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Trials of 40 steps: episodes of 16, 16 and 8 steps. The agent sees its cell, which is not recorded."""
    config = replace(find_preset("ci-smoke"), total_steps=8, eval_steps=40)
    config = replace(config, env_kwargs={**config.env_kwargs, "place": True})
    folder = make_run(tmp_path / "run", config)
    result = call(capsys, str(folder), "--episodes", "4", "--seed", "5", "--out", "dark/once-v0")
    assert (result["episodes"], result["trials"], result["steps"]) == (6, 2, 80)
    dataset = pytest.importorskip("minari").load_dataset("dark/once-v0")
    assert [len(episode) for episode in dataset] == [16, 16, 8] * 2
    assert set(dataset.observation_space) == {"position", "previous_reward"}
    with RunDirectory(folder) as run:
        policy = trained_policy(run, 0)
    for index, episode in enumerate(dataset):
        if index % 3 == 0:
            state = None
            policy.generator.manual_seed(int(np.random.default_rng([5, index // 3]).integers(2**62)))
        assert set(episode.infos["seed"].tolist()) == {EVALUATION_SEED + 5}
        assert episode.infos["trial_start"].tolist() == [index % 3 == 0] + [False] * len(episode)
        for t, action in enumerate(episode.actions):
            observation = {key: value[t][None] for key, value in episode.observations.items()}
            observation["place"] = episode.infos["place"][t][None]
            start = np.array([t == 0])
            actions, state = policy.predict(observation, state, start, trial_start=start & (index % 3 == 0))
            assert actions.tolist() == [action]
    card = root / "dark/once-v0/card.json"
    call(capsys, str(folder), "--rebuild", str(card), "--out", "dark/again-v0")
    call(capsys, str(folder), "--episodes", "3", "--seed", "5", "--out", "dark/twice-v0")
    call(capsys, str(folder), "--episodes", "1", "--seed", "5", "--out", "dark/twice-v0", "--append")
    for name in ("again", "twice"):
        text = (root / f"dark/{name}-v0/card.json").read_text()
        assert json.loads(text.replace(f"dark/{name}-v0", "dark/once-v0")) == json.loads(card.read_text())
    other = make_run(tmp_path / "other", replace(config, seed=1))
    scripted = root / "scripted.json"
    scripted.write_text(card.read_text().replace('"agent"', '"oracle"'))
    for argv, message in (
        ([str(other), "--rebuild", str(card)], "policy.checkpoint was"),
        ([str(folder), "--rebuild", str(card), "--seed", "5"], "argument --seed: must not be given with --rebuild"),
        ([str(folder), "--rebuild", str(scripted)], "use memenvs dataset --rebuild CARD"),
        ([str(folder), "--checkpoint", "none.zip"], "none.zip"),
    ):
        assert main(["dataset", *argv, "--out", "dark/new-v0"]) == 2
        assert message in capsys.readouterr().err
    assert not (root / "dark/new-v0").exists()


def test_runs_in_other_environments_give_no_dataset(tmp_path, root, capsys):
    preset = find_preset("ci-smoke")
    long = {**preset.policy, "memory_kwargs": {**preset.policy["memory_kwargs"], "max_episode_steps": 500}}
    config = replace(preset, env="CartPole-v1", env_kwargs={}, eval_kwargs={}, policy=long, total_steps=8)
    folder = make_run(tmp_path / "run", replace(config, score="return"))
    assert main(["dataset", str(folder), "--out", "pole/new-v0"]) == 2
    assert "a dataset needs an id whose BatchTask can be imported, got CartPole-v1" in capsys.readouterr().err
