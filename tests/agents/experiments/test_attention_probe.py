"""Attention of a ReLIC memory: weights against whole sequences, patterns by hand, maps."""

from __future__ import annotations

import json
from typing import Any, get_args

import numpy as np
import pytest
import torch
from PIL import Image

from memenvs.agents import PartialUpdatePPO, make_vec_env
from memenvs.agents.experiments.attention_figures import goals_figure
from memenvs.agents.experiments.attention_patterns import describe_heads, describe_uniform
from memenvs.agents.experiments.attention_probe import probe_run
from memenvs.agents.experiments.attention_recording import Recording, attention_weights, record_attention
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


EPISODES = np.repeat([0, 1, 2], 4)


def recording(*heads: Any, sinks: int = 1) -> Recording:
    """One layer; each head maps a step to its attention. The rest goes to the sink."""
    weights = {}
    for t in range(12):
        rows = np.stack([head(t) for head in heads])
        weights[t] = np.concatenate([1.0 - rows.sum(1, keepdims=True), rows], 1)[None]
    return Recording(sinks, EPISODES, np.zeros((12, 3)), weights, {})


def on(t: int, **places: float) -> np.ndarray:
    """Attention of step t; "s3" is step 3, and later steps than t get nothing."""
    row = np.zeros(t + 1)
    for place, mass in places.items():
        if int(place[1:]) <= t:
            row[int(place[1:])] = mass
    return row


def own(t: int) -> np.ndarray:
    inside = EPISODES[: t + 1] == EPISODES[t]
    return 0.9 * inside / inside.sum()


def back(t: int) -> np.ndarray:
    return on(t, **{f"s{t - 4}": 0.8}) if t >= 4 else on(t, **{f"s{t}": 0.3})


def test_each_pattern_by_hand() -> None:
    heads = describe_heads(
        recording(
            lambda t: on(t, s0=0.05),
            own,
            back,
            lambda t: on(t, s1=0.6, s2=0.2),
            lambda t: 0.5 * own(t) + 0.5 * back(t),
            lambda t: back(t) if t >= 4 else on(t, s0=0.05),
            lambda t: np.full(t + 1, 0.6 / (t + 1)),
        )
    )
    patterns = [
        "all-on-sink",
        "intra-episode",
        "inter-episode",
        "episode-invariant",
        "mixed",
        "inter-episode",
        "uniform",
    ]
    assert [head.pattern for head in heads] == patterns
    assert [(head.layer, head.head) for head in heads] == [(0, i) for i in range(7)]
    assert [head.sink_at_first for head in heads] == [False] * 5 + [True, False]
    sink, inside, earlier, same, half, late, even = heads
    assert (sink.sink, sink.sink_first, sink.sink_later) == pytest.approx((0.95,) * 3)
    assert (inside.own, inside.earlier, inside.sink) == pytest.approx((1.0, 0.0, 0.1))
    assert (earlier.own, earlier.earlier, earlier.sink_later) == pytest.approx((0.0, 1.0, 0.2))
    assert earlier.sink_first == pytest.approx(0.7)
    # Of 40 pairs, the 8 with step 1 overlap by 0.75 (it does not see step 2 yet), the others by 1; step 0 sees neither.
    assert same.invariance == pytest.approx((8 * 0.75 + 32) / 40)
    assert earlier.invariance == pytest.approx(4 / 48)  # step t of the first episode and step t + 4
    assert (half.own, half.earlier) == pytest.approx((0.45 / 0.85, 0.4 / 0.85))
    assert (late.sink_first, late.sink_later) == pytest.approx((0.95, 0.2))
    # Step t of the later episodes has t + 1 steps: "back" is on one of them, "own" on those of its episode.
    assert earlier.evenness == pytest.approx(np.mean([1 / (t + 1) for t in range(4, 12)]))
    assert inside.evenness == pytest.approx(np.mean([(t % 4 + 1) / (t + 1) for t in range(4, 12)]))
    assert even.evenness == pytest.approx(1.0)
    assert even.earlier == pytest.approx(np.mean([4 * (t // 4) / (t + 1) for t in range(4, 12)]))


def test_uniform_attention_by_hand() -> None:
    weights = {t: np.eye(t + 2)[:1][None].repeat(2, 1) for t in (1, 3, 5)}  # all on the sink: only the shape counts
    found = describe_uniform(Recording(1, np.array([0, 0, 0, 1, 1, 1]), np.zeros((6, 3)), weights, {}))
    assert found.pattern == "uniform"
    assert found.sink == pytest.approx((1 / 3 + 1 / 5 + 1 / 7) / 3)
    assert found.sink_later == pytest.approx((1 / 5 + 1 / 7) / 2)
    inside, outside = 1 / 5 + 3 / 7, 3 / 5 + 3 / 7
    assert (found.own, found.earlier) == pytest.approx((inside / (inside + outside), outside / (inside + outside)))
    assert found.invariance == pytest.approx((2 / 4 + 2 / 6) / 2)  # steps 1 and 3, 1 and 5


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


def test_invariance_by_hand() -> None:
    def of(early: list[float], late: list[float], episodes: list[int]) -> float:
        rows = {1: np.array([[[0.0, *early]]]), 3: np.array([[[0.0, *late]]])}
        return describe_heads(Recording(1, np.array(episodes), np.zeros((4, 3)), rows, {}))[0].invariance

    assert of([0.5, 0.5], [0.3, 0.5, 0.1, 0.1], [0, 0, 1, 1]) == pytest.approx(0.3 + 0.5)
    assert of([0.2, 0.2], [0.1, 0.2, 0.1, 0.1], [0, 0, 1, 1]) == pytest.approx(
        0.2 + 0.4
    )  # scaled: 0.5, 0.5 and 0.2, 0.4, 0.2, 0.2
    assert of([1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0, 0, 1, 1]) == 0.0
    assert of([0.5, 0.5], [0.3, 0.5, 0.1, 0.1], [0, 0, 0, 0]) == 0.0  # of one episode
    assert of([0.04, 0.04], [0.5, 0.5, 0.0, 0.0], [0, 0, 1, 1]) == 0.0  # nearly everything is on the sink
    with pytest.raises(ValueError, match="at least one step"):
        describe_heads(Recording(1, np.array([0]), np.zeros((1, 3)), {}, {}))


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
    assert [(head["layer"], head["head"]) for head in result["heads"]] == [(0, 0), (0, 1)]
    with Image.open(tmp_path / "out" / "attention.png") as picture:
        assert picture.size[0] > 400
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("layer 0 head 0: ")
    assert lines[2].startswith("for comparison: uniform ")
    assert lines[-1].endswith("attention.png")
    with (
        RunDirectory(tmp_path / "run") as run,
        pytest.raises(ValueError, match="count must be an integer of at least 1, got 0"),
    ):
        probe_run(run, tmp_path / "out", count=0)
