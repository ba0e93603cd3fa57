"""R2R and CVDN in the toy house: rewards, observations, metrics, settings and pictures."""

import math
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.vln.metrics import METRICS
from memenvs.vln.r2r import R2R
from memenvs.vln.viewer import draw_text
from tests.vln.toys import connectivity, reference_metrics, write_data, write_json

STOP = 16


def candidates(env: gym.Env | TrialVectorEnv, i: int = 0) -> dict[str, int]:
    """Action by name of the neighbour, for agent i."""
    task = env.unwrapped.task
    here = task.info()["place"][i]
    return {
        str(task.graphs.viewpoints[node]): k for k, node in enumerate(task.graphs.candidates.node[here]) if node >= 0
    }


def follow(env: gym.Env, path: str) -> list[float]:
    """Rewards of moving to these viewpoints; "." stops."""
    return [float(env.step(STOP if name == "." else candidates(env)[name])[1]) for name in path]


def reference_ndtw(env: gym.Env, path: str) -> float:
    """nDTW of a path in the current episode, from its definition."""
    task = env.unwrapped.task
    episode = task.world.episode(int(task.info()["episode_number"][0]))
    return reference_metrics(task.world.graphs[0], episode, [task.world.graphs[0].node[name] for name in path])["ndtw"]


def test_rewards_along_a_path(make):
    """The annotated path is a-b-c-d. d is 4.5, 2.5, 0.5 m away from a, b, c, and 4.5 m from e."""
    env = make()
    env.reset(options={"episode_number": 0})
    ndtw = [reference_ndtw(env, "aebcb"[: k + 1]) for k in range(5)]
    gain = [after - before for before, after in pairwise(ndtw)]
    expected = [gain[0], 1 + gain[1], 1 + gain[2], -1 + gain[3] - 2 * (1 - 0.5), 2 + 2 * ndtw[-1]]
    assert follow(env, "ebcb.") == pytest.approx(expected)
    env.reset(options={"episode_number": 0})
    assert follow(env, ".") == [-2.0]


def sines(heading: float, elevation: float) -> list[float]:
    return [math.sin(heading), math.cos(heading), math.sin(elevation), math.cos(elevation)]


def test_camera_faces_the_view_of_the_chosen_candidate(make):
    env = make(panorama=True, feature_size=3)
    observation, info = env.reset(options={"instr_id": "7_1"})
    assert info["heading"] == pytest.approx(math.pi / 6)
    assert (info["elevation"], info["viewpoint"], info["text"]) == (0.0, "a", "Go on, and on!")
    np.testing.assert_allclose(observation["direction"], [0.5, math.sqrt(0.75), 0, 1], atol=1e-6)
    assert info["pose"] == pytest.approx([0, 0, math.pi / 3])  # from +x, counter-clockwise
    assert info["action_mask"].tolist() == [1, 1] + [0] * 14 + [1]
    assert (observation["candidate_mask"] == info["action_mask"]).all()
    # b lies at 0 degrees, e at 45. View 0 shows b alone, view 1 shows e too.
    order = candidates(env)
    assert order == {"b": 0, "e": 1}
    angles = observation["candidates"][:, 3:7]
    np.testing.assert_allclose(angles[:2], [sines(math.radians(-30), 0), sines(math.radians(15), 0)], atol=1e-6)
    assert not observation["candidates"][2:].any() and not observation["candidates"][:, :3].any()
    assert observation["panorama"].shape == (36, 131)
    observation, *_, info = env.step(order["e"])
    assert info["heading"] == pytest.approx(math.pi / 6)  # 45 degrees are as near to 30 as to 60: the lower view wins
    assert not observation["candidates"][2:].any()


def test_camera_faces_up_and_down(tmp_path):
    """e is 2 m above a, 35 degrees up; b is as high as a."""
    house = connectivity()
    house["abcdex".index("e")]["pose"][11] += 2.0
    write_json(write_data(tmp_path) / "connectivity" / "toy_connectivity.json", house)
    env = TrialVectorEnv(R2R, 2, world="mp3d", features="none", feature_size=1, data_dir=str(tmp_path))
    observation, _ = env.reset(seed=0, options={"episode_number": 0})
    up = math.atan2(2.0, math.sqrt(8.0))
    order = candidates(env)
    angles = observation["candidates"][0][order["e"], 1:5]
    np.testing.assert_allclose(angles, sines(math.radians(45 - 30), up), atol=1e-6)  # from the camera's heading
    observation, *_, info = env.step(np.array([order["e"], order["b"]]))
    assert info["viewpoint"].tolist() == ["e", "b"]
    assert info["elevation"] == pytest.approx([math.pi / 6, 0.0])
    np.testing.assert_allclose(observation["direction"], [sines(math.pi / 6, math.pi / 6), sines(0, 0)], atol=1e-6)
    back = candidates(env)["a"]
    np.testing.assert_allclose(observation["candidates"][0][back, 1:5], sines(math.radians(225 - 30), -up), atol=1e-6)
    info = env.step(np.array([back, STOP]))[4]
    assert info["elevation"] == pytest.approx([-math.pi / 6, 0.0])
    names, headings, elevations = zip(*env.task.trajectory(0), strict=True)
    assert names == ("a", "e", "a")
    assert headings == pytest.approx([math.pi / 6, math.pi / 6, math.radians(210)])  # 225 is as near: the lower view
    assert elevations == pytest.approx([0.0, math.pi / 6, -math.pi / 6])


def test_episodes_end(make):
    env = make()
    env.reset(options={"episode_number": 0})
    flags = [env.step(candidates(env)[name])[2:4] for name in "baba" * 3 + "bab"]
    assert flags == [(False, False)] * 14 + [(False, True)]
    env.reset(options={"episode_number": 0})
    assert env.step(STOP)[2:4] == (True, False)


def test_metrics_equal_the_reference(make):
    for task, extra in (("R2R", ()), ("CVDN", ("gp",))):
        env = make(task)
        for number, path in ((0, "aebcbc"), (1, "cbab" if task == "CVDN" else "abab")):
            _, info = env.reset(options={"episode_number": number})
            assert info["success"] is False and info["sr"] == 0.0  # 4.5 and 4 m away
            graph = env.unwrapped.task.world.graphs[0]
            for name in path[1:]:
                info = env.step(candidates(env)[name])[4]
            episode = env.unwrapped.task.world.episode(number)
            expected = reference_metrics(graph, episode, [graph.node[name] for name in path])
            for name in (*METRICS, *extra):
                assert info[name] == pytest.approx(expected[name]), (task, name)
            assert info["success"] is bool(expected["sr"])
            assert [viewpoint for viewpoint, *_ in env.unwrapped.task.trajectory(0)] == list(path)
    assert "gp" not in make().reset()[1]


def test_oracle_follows_the_shortest_path_and_stops(make):
    for task, number, path in (("R2R", 0, "abcd"), ("R2R", 2, "eb"), ("CVDN", 0, "abcd"), ("CVDN", 1, "cbe")):
        env = make(task)
        _, info = env.reset(options={"episode_number": number})
        is_over = False
        while not is_over:
            action = env.unwrapped.oracle_action()
            assert info["teacher_action"] == action
            _, _, is_over, _, info = env.step(action)
        assert "".join(name for name, *_ in env.unwrapped.task.trajectory(0)) == path
        assert (info["ne"], info["sr"], info["spl"]) == (0, 1, 1)


def test_a_limited_number_of_episodes_is_kept_prepared(make, monkeypatch):
    """An episode that is no longer kept is prepared anew, here to draw its map."""
    monkeypatch.setattr("memenvs.vln.env.MAX_PREPARED", 2)
    env = make(render_mode="rgb_array")
    task = env.unwrapped.task
    for number, kept in ((0, [0]), (2, [0, 2]), (0, [0, 2]), (1, [2, 1])):
        env.reset(options={"episode_number": number})
        assert list(task._prepared) == kept
    frame = env.render()
    task._prepared.clear()
    assert (env.render() == frame).all()


def test_history_selects_the_part_of_the_dialogue(make):
    for settings, text in (
        ({}, "[NAV] Where now? [ORA] Go north. [NAV] And here? [ORA] Straight on. [TAR] lamp"),
        ({"history": "last_exchange"}, "[NAV] And here? [ORA] Straight on. [TAR] lamp"),
        ({"history": "last_answer"}, "[ORA] Straight on. [TAR] lamp"),
        ({"history": "target"}, "[TAR] lamp"),
    ):
        env = make("CVDN", **settings)
        assert env.reset(options={"instr_id": "3"})[1]["text"] == text, settings
        assert env.reset(options={"instr_id": "4"})[1]["text"] == "[TAR] bed", settings


def test_supervisions(make):
    """The human of the first dialogue passes the end of the planner's path, that of the second does not."""
    expected = {"oracle": ["abc", "cbe"], "navigator": ["aebcd", "cba"], "mixed": ["aebcd", "cbe"]}
    for supervision, paths in expected.items():
        world = make("CVDN", supervision=supervision).unwrapped.task.world
        read = ["".join("abcde"[node] for node in world.episode(number).path) for number in range(2)]
        assert read == paths, supervision


def test_one_pass_by_number_visits_every_instruction(make):
    env = make()
    ids = [env.reset(options={"episode_number": k})[1]["instr_id"] for k in range(env.unwrapped.task.num_layouts)]
    assert ids == ["7_0", "7_1", "8_0"]
    assert [env.reset(options={"layout": k})[1]["instr_id"] for k in range(3)] == ids
    for option in (
        {"episode_number": 1},
        {"instr_id": "7_1"},
    ):  # the episode that is played, not the one that was drawn
        assert env.reset(options=option)[1]["layout_id"] == 1
        assert env.step(env.action_space.n - 1)[4]["layout_id"] == 1


def test_texts_that_are_too_long(make):
    """R2R cuts the end of a text, CVDN the beginning of a dialogue."""
    for task, cuts_end in (("R2R", True), ("CVDN", False)):
        env = make(task, max_tokens=3)
        tokens = env.reset(options={"episode_number": 0})[0]["instruction"]
        text = env.unwrapped.task.tokenizer.decode(tokens)
        assert len(text.split()) == 3
        assert text.startswith("[UNK] [UNK]") if cuts_end else text == "[TAR] [UNK] [SEP]"
    env = make(max_tokens=3, too_long="error")
    with pytest.raises(ValueError, match=r"episode '7_0': the text has 4 tokens .* max_tokens is 3: 'Go on\.'"):
        env.reset(options={"episode_number": 0})


def test_word_pieces(make, toy_data):
    with pytest.raises(FileNotFoundError, match=r"no file .*or vocab.txt in .*Tokenizer 'wordpiece' needs BERT's"):
        make(tokenizer="wordpiece")
    with pytest.raises(FileNotFoundError, match=r"there is no folder 'nowhere'. Tokenizer 'wordpiece' needs BERT's"):
        R2R(1, tokenizer="wordpiece", data_dir="nowhere")
    (toy_data / "vocab.txt").write_text("[PAD]\n[UNK]\n[SEP]\ngo\no\n##n\n.\n")
    tokens = make(tokenizer="wordpiece", max_tokens=7).reset(options={"episode_number": 0})[0]["instruction"]
    assert tokens.tolist() == [3, 4, 5, 6, 2, 0, 0]


def test_masked_actions(make):
    env = make()
    env.reset(options={"episode_number": 0})
    with pytest.raises(ValueError, match=r"action 5 of environment 0 is masked: .* 0 \.\.\. 1, and 16 stops"):
        env.step(5)
    assert env.unwrapped.task.info()["viewpoint"][0] == "a"
    env = make(invalid="stop")
    env.reset(options={"episode_number": 0})
    assert env.step(5)[1:4] == (-2.0, True, False)


def test_wrong_options(make):
    env = make()
    for options, message in (
        ({"episode_number": 3}, r"option 'episode_number' must be an integer in 0 \.\.\. 2, got 3"),
        ({"instr_id": "9_0"}, r"option 'instr_id': no episode '9_0' in this split; ids have the form '7_0'"),
        ({"instr_id": ["7_0"]}, r"option 'instr_id' must be a string, got \['7_0'\]"),
        ({"instr_id": "7_1", "episode_number": 0}, r"'episode_number' 0 .*, 'instr_id' '7_1' .* do not agree"),
        ({"episode_number": 1, "layout": 2}, r"'layout' 2 \(episode 2\), 'episode_number' 1 \(episode 1\) do not"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(options=options)


def test_wrong_settings(make):
    for task, settings, error, message in (
        ("R2R", {"split": "val_unsen"}, ValueError, "unknown split 'val_unsen'; did you mean 'val_unseen'"),
        ("R2R", {"split": ["train"]}, TypeError, r"split must be .*, got \['train'\]"),
        ("R2R", {"data_dir": 3}, TypeError, "data_dir must be .*, got 3"),
        ("R2R", {"world": "mars"}, ValueError, "unknown world 'mars'; choose from "),
        ("R2R", {"features": "some"}, ValueError, r"unknown features 'some': a file must end in \.tsv, .*; choose"),
        ("CVDN", {"split": "test"}, ValueError, "unknown split 'test'; choose from "),
    ):
        with pytest.raises(error, match=message):
            make(task, **settings)


def test_map_by_hand(make):
    """The house is 2 m wide and 4.5 m long, which fills 464 of 512 pixels; d is at the top."""
    env = make(render_mode="rgb_array")
    env.reset(options={"episode_number": 0})
    task, scale = env.unwrapped.task, 464 / 4.5
    corners = task.map_pixels(0, np.array([[0.0, 0.0, 9.9], [2.0, 4.5, 9.9], [1.0, 2.25, 9.9]]))
    np.testing.assert_allclose(corners, [[256 - scale, 488], [256 + scale, 24], [256, 256]])
    picture = task.draw_map(0, np.array([[0.0, 0.0], [2.0, 2.0]])).astype(int)
    for point, radius, colour in (
        ((0.0, 0.0), 5, (34, 160, 84)),  # ring around the start a
        ((0.0, 4.5), 7, (214, 48, 49)),  # ring around the goal d
        ((2.0, 2.0), 0, (240, 150, 20)),  # disc at the end e of the path
    ):
        ((column, row),) = task.map_pixels(0, np.array([point])).round().astype(int)
        assert np.abs(picture[row, column + radius] - colour).max() < 60, point
    assert (picture[4, 4] == (250, 249, 246)).all()
    assert env.render().shape == (640, 512, 3)  # with the text below


@pytest.mark.slow
def test_pictures_show_the_end_of_long_texts():
    """A text of three legs (1,300 letters) fits, so a different last word is visible. Twice its length does not."""
    words = " ".join(["turn around and walk past the lamp"] * 38)
    for text, fits in (("", True), (words, True), (f"{words} {words}", False)):
        table, chair = (draw_text(f"{text} {last}.") for last in ("table", "chair"))
        assert table.shape == (128, 512, 3)
        assert np.array_equal(table, chair) != fits
