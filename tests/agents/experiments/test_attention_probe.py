"""Attention of a ReLIC memory: weights against whole sequences, maps."""

from __future__ import annotations

import json
from typing import Any, get_args

import numpy as np
import pytest
import torch
from PIL import Image

from memenvs.agents import PartialUpdatePPO, make_vec_env
from memenvs.agents.experiments.attention_figures import goals_figure
from memenvs.agents.experiments.attention_probe import probe_run
from memenvs.agents.experiments.attention_recording import attention_weights, record_attention
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.train import train_run
from memenvs.agents.memory import StepInputs
from memenvs.agents.memory.relic import Sink
from memenvs.agents.presets import find_preset
from memenvs.cli import main
from tests.agents.learners import darkroom, learner
from tests.agents.memory.test_relic import T, by_definition, inputs, make


def first_row() -> StepInputs:
    x = inputs()
    return StepInputs(x.embedding[:1], x.episode_start[:1], x.trial_start[:1])


def test_weights_are_those_of_the_whole_sequence() -> None:
    for sink in get_args(Sink):
        for inter_episode in (True, False):
            check_weights(sink, inter_episode)


@torch.no_grad()
def check_weights(sink: str, inter_episode: bool) -> None:
    memory, x = make(sink=sink, inter_episode=inter_episode), first_row()
    expected = by_definition(memory, x)[2][0]
    state = memory.initial_state(1)
    for t in range(T):
        step = x.steps(t, t + 1)
        before = {key: value.clone() for key, value in state.items()}
        got = attention_weights(memory, step, state)
        assert all(torch.equal(state[key], value) for key, value in before.items())
        torch.testing.assert_close(got, expected[:, :, t, : memory.sinks + t + 1], atol=1e-12, rtol=0)
        _, state = memory.step(step, state)


@torch.no_grad()
def test_a_trial_that_begins_has_no_past() -> None:
    memory, x = make(), first_row()
    state = memory.initial_state(1)
    for t in range(5):
        _, state = memory.step(x.steps(t, t + 1), state)
    again = StepInputs(x.embedding[:, :1], x.episode_start[:, :1], x.trial_start[:, :1])
    fresh = attention_weights(memory, again, memory.initial_state(1))
    assert fresh.shape == (2, 2, 2)
    torch.testing.assert_close(attention_weights(memory, again, state), fresh, atol=1e-15, rtol=0)


def test_figures_name_what_they_show() -> None:
    map_image, pixels, episodes = np.zeros((8, 8, 3), np.uint8), np.zeros((3, 2)), np.array([0, 0, 1])
    # the first head does not depend on the goal, the second does with a quarter of its attention
    goals = {
        "a": np.array([[[1 / 3, 1 / 3, 1 / 3], [0.5, 0.25, 0.25]]]),
        "b": np.array([[[1 / 3, 1 / 3, 1 / 3], [0.0, 0.75, 0.25]]]),
    }
    figure = goals_figure(map_image, pixels, episodes, goals)
    assert "layer 0, head 1;\n25.0% of its attention moves" in figure.get_suptitle()
    assert [axes.get_title() for axes in figure.axes[:2]] == ["goal a", "goal b"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["attention to steps of earlier episodes", "to steps of this episode"]


def test_recording_does_not_change_the_actions() -> None:
    poses = []
    for at in ((), range(17)):
        policy = learner("relic", seed=3).policy
        policy.resets_with_episode = False
        made = record_attention(policy, darkroom(1, seed=4), 17, at, layout=2)
        assert list(made.weights) == list(at)
        assert made.episodes.tolist() == [t // 5 for t in range(17)]
        for t, weights in made.weights.items():
            assert weights.shape == (2, 2, 1 + t + 1)
            np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
        poses.append(made.poses)
    np.testing.assert_array_equal(*poses)
    assert len(np.unique(poses[0], axis=0)) > 2


def house() -> Any:
    settings = {"rooms": (2, 2), "num_objects": (3, 4), "obs_mode": "symbolic", "trial_episodes": None}
    settings |= {"categories": [14, "013_apple", 3]}
    return make_vec_env("memenvs/ExtObjNav-v0", 1, seed=3, max_episode_steps=8, **settings)


def test_each_goal_is_shown_after_the_trial() -> None:
    policy = learner("relic", env=house()).policy
    policy.resets_with_episode = False
    made = record_attention(policy, house(), 6, [5])
    assert list(made.goals) == ["005_tomato_soup_can", "013_apple", "017_orange"]
    assert all(goal.shape == (2, 2, 1 + 7) for goal in made.goals.values())
    assert not np.allclose(made.goals["013_apple"], made.goals["017_orange"], atol=1e-6)


@pytest.mark.parametrize("make", [lambda: darkroom(1, seed=0), house])
def test_poses_lie_where_the_map_shows_them(make: Any) -> None:
    """The centre of the red disc of the last pose is there."""
    env = make()
    env.reset()
    for _ in range(6):
        env.step(env.oracle_actions())
        pose = env.env.task.info()["pose"]
        picture = env.env.task.draw_map(0, pose).astype(int)
        column, row = env.env.task.map_pixels(0, pose)[0].round().astype(int)
        red, green, blue = picture[row, column]
        assert red > 200 and max(green, blue) < 90, (red, green, blue)


def test_wrong_memories_and_environments() -> None:
    with pytest.raises(ValueError, match="memory must be 'relic' to have its attention recorded, got 'lstm'"):
        record_attention(learner("lstm").policy, darkroom(1), 3, [0])
    policy = learner("relic").policy
    with pytest.raises(ValueError, match="env must be one environment, got 2"):
        record_attention(policy, darkroom(2), 3, [0])
    with pytest.raises(ValueError, match="the trial must go on for 12 steps, it ended after 10"):
        record_attention(policy, darkroom(1, episodes=2), 12, [0])


@pytest.mark.slow
def test_command_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    config = with_overrides(find_preset("ci-smoke"), [("total_steps", 128), ("n_envs", 1), ("eval_trials", 1)])
    with RunDirectory(tmp_path / "run", config) as run:
        assert isinstance(train_run(run, quiet=True), PartialUpdatePPO)
    arguments = [
        "probe",
        str(tmp_path / "run"),
        "--steps",
        "40",
        "--count",
        "9",
        "--layout",
        "1",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads((tmp_path / "out" / "attention.json").read_text())
    assert result["steps"] == [0, 5, 10, 15, 20, 24, 29, 34, 39]
    assert result["episodes"] == [0, 0, 0, 0, 1, 1, 1, 2, 2]
    with Image.open(tmp_path / "out" / "attention.png") as picture:
        assert picture.size[0] > 400
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("attention.png")
    with (
        RunDirectory(tmp_path / "run") as run,
        pytest.raises(ValueError, match="count must be an integer of at least 1, got 0"),
    ):
        probe_run(run, tmp_path / "out", count=0)
