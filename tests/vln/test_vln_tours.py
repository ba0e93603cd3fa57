"""IR2R: tours by hand and drawn ones, t-nDTW against its definition, and wrong files."""

import json
import math
import shutil
from functools import partial
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest

from memenvs.cli import main
from memenvs.data import find_vln_folder
from memenvs.vln.graph import Graph, Graphs
from memenvs.vln.ir2r import IR2R
from memenvs.vln.metrics import METRICS, tour_ndtw
from memenvs.vln.results import score_file
from memenvs.vln.tours import FILE, draw_tour
from memenvs.vln.worlds.base import VLNEpisode
from memenvs.vln.worlds.mp3d import load_r2r
from memenvs.vln.worlds.procedural.world import load_routes
from tests.vln.test_vln_environments import STOP, candidates, follow
from tests.vln.test_vln_files import needs_data
from tests.vln.test_vln_results import entries
from tests.vln.toys import R2R as TOY_EPISODES
from tests.vln.toys import dijkstra, published_tour_ndtw, write_data, write_json

#: The paths of 7 are a-b-c-d, that of 8 is e-b.
TOURS = [["7_1", "8_0"], ["7_0"]]


@pytest.fixture
def touring(tmp_path):
    """A data folder with the toy house and its tours."""
    write_json(write_data(tmp_path) / FILE, {"train": {"toy": TOURS}, "val_seen": {"toy": TOURS}})
    return tmp_path


@pytest.fixture
def make(make, touring):
    return partial(make, "IR2R", data_dir=str(touring), tours="published")


def test_a_tour_by_hand(make):
    """The agent stops at a. It is put at d, which is the goal, and led over c and b to e, whatever it does."""
    env = make()
    observation, info = env.reset(options={"layout": 0})
    assert (info["instr_id"], info["viewpoint"], info["layout_id"], observation["phase"]) == ("7_1", "a", 0, 1)
    assert observation["instruction"].any()
    assert env.step(STOP)[2]
    observation, info = env.reset()
    way, headings = [(info["viewpoint"], observation["phase"])], [info["heading"]]
    for action in (STOP, 0, 15):  # the last one is masked
        assert not observation["instruction"].any()
        assert not observation["instruction_mask"].any()
        observation, reward, terminated, truncated, info = env.step(action)
        way.append((info["viewpoint"], observation["phase"]))
        headings.append(info["heading"])
        assert (reward, terminated, truncated, info["tl"]) == (0.0, False, False, 0.0)
    assert way == [("d", 0), ("c", 0), ("b", 0), ("e", 1)]
    assert (info["instr_id"], info["ndtw"]) == ("8_0", pytest.approx(math.exp(-2.0 / 6.0)))
    # North as after its path, south as after a step back, and at e that of the episode, 1.6 rad in steps of 30 degrees.
    assert headings == pytest.approx([0.0, math.pi, math.pi, math.pi / 2])
    assert observation["instruction"].any()
    assert follow(env, "b.") == [pytest.approx(1.0 + 1.0 - math.exp(-2.0 / 6.0)), 4.0]
    assert not info["trial_start"]
    assert env.reset()[1]["trial_start"]  # the tour is over


def test_fifteen_decisions_end_an_episode(make):
    env = make()
    env.reset(options={"layout": 0})
    flags = [env.step(candidates(env)[name])[2:4] for name in "bababababababab"]
    assert flags == [(False, False)] * 14 + [(True, False)]


def test_a_led_robot_is_drawn_where_it_is(make):
    env = make(render_mode="rgb_array")
    env.reset(options={"layout": 0})
    env.step(STOP)
    env.reset()
    pictures = []
    for _ in range(4):
        pictures.append(env.render())
        env.step(STOP)
    assert all(not np.array_equal(one[:512], other[:512]) for one, other in pairwise(pictures))
    assert [np.array_equal(picture[512:], pictures[0][512:]) for picture in pictures] == [True, True, True, False]


def test_an_episode_does_not_depend_on_where_the_last_one_ended(make):
    """Alone, after a stop at once, and after 15 decisions, which end an episode."""
    starts = []
    for actions in ("", ".", "babababababababa"[:15]):
        env = make()
        env.reset(seed=3, options={"layout": 0})
        for k, name in enumerate(actions):
            _, _, terminated, truncated, _ = env.step(STOP if name == "." else candidates(env)[name])
            assert (terminated, truncated) == (k == len(actions) - 1, False)
        options = None if actions else {"layout": 0, "trial": 0, "episode_index": 1}
        observation, info = env.reset(options=options) if actions else env.reset(seed=3, options=options)
        starts.append((info["viewpoint"], info["instr_id"], observation["direction"].tolist()))
    assert starts[0] == starts[1] == starts[2]
    assert starts[0][:2] == ("d", "8_0")


def test_options_choose_an_episode_of_the_house(make):
    env = make()
    _, info = env.reset(options={"layout": 0, "instr_id": "8_0"})
    assert (info["instr_id"], info["viewpoint"], info["layout_id"]) == ("8_0", "e", 0)
    procedural = gym.make("memenvs/VLN-IR2R-v0", split="val_unseen", features="none")
    message = r"option 'instr_id' must choose an episode in procedural-1000, .* got '1003-12_2' in procedural-1003"
    with pytest.raises(ValueError, match=message):
        procedural.reset(options={"layout": 0, "instr_id": "1003-12_2"})


def test_a_drawn_tour_goes_to_the_nearest_start():
    """Each path of the house once, with texts of all three kinds; other seeds give other tours."""
    world = load_routes("val_unseen", 1)
    tours = [draw_tour(world, 2, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert tours[0] == tours[1] != tours[2]
    for tour in tours:
        assert sorted(number // 3 for number in tour) == list(range(2 * 71, 3 * 71))
        assert {number % 3 for number in tour} == {0, 1, 2}
    away = [dijkstra(world.graphs[2], node) for node in range(len(world.graphs[2]))]
    path = {number: world.episode(number).path for number in tours[0]}
    for k, (one, other) in enumerate(pairwise(tours[0])):
        lengths = [away[path[one][-1]][path[number][0]] for number in tours[0][k + 1 :]]
        assert away[path[one][-1]][path[other][0]] == pytest.approx(min(lengths))


def test_what_cannot_be_reached_is_not_in_a_drawn_tour():
    """Two parts of a graph, u-v and w-x: a tour stays in one."""
    graph = Graph("apart", tuple("uvwx"), np.arange(12.0).reshape(4, 3), np.array([[0, 1], [2, 3]]))
    ends = [(0, 1), (1, 0), (2, 3), (3, 2)]

    class Apart:
        graphs = (graph,)

        def paths(self, house: int) -> list[tuple[int]]:
            return [(number,) for number in range(4)]

        def episode(self, number: int) -> VLNEpisode:
            return VLNEpisode(id="", house=0, text="", path=ends[number], heading=0.0, leg_ends=ends[number][1:])

    tours = {draw_tour(Apart(), 0, np.random.default_rng(seed)) for seed in range(30)}  # type: ignore[arg-type]
    assert {tuple(sorted(tour)) for tour in tours} == {(0, 1), (2, 3)}


def test_a_file_is_scored_by_hand(touring, tmp_path, capsys):
    """The first tour as above, with two episodes; the second, with one, is perfect."""
    file = write_json(tmp_path / "paths.json", entries({"7_0": "abcd", "7_1": "abcdc", "8_0": "eb"}))
    scores = score_file("ir2r", file, "train", touring)
    assert tuple(scores) == (*METRICS, "t_ndtw")
    assert scores.pop("t_ndtw") == pytest.approx((2.0 * math.exp(-1.0 / 18.0) + 1.0) / 3.0)
    assert scores == score_file("r2r", file, "train", touring)
    arguments = ["score", "ir2r", str(file), "--split", "train", "--data", str(touring)]
    assert main(arguments) == 0
    assert "t_ndtw  0.9640\n" in capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == score_file("ir2r", file, "train", touring)


def test_instructions_of_no_tour_do_not_count(touring, tmp_path):
    """Of 7_0 alone; 7_1 may be left out, and 8_0 is bad."""
    write_json(touring / FILE, {"train": {"toy": [["7_0"]]}})
    for paths in ({"7_0": "abc"}, {"8_0": "e", "7_0": "abc"}):
        file = write_json(tmp_path / "paths.json", entries(paths))
        scores = score_file("ir2r", file, "train", touring)
        assert scores["ne"] == 0.5
        assert scores["t_ndtw"] == scores["ndtw"] == pytest.approx(math.exp(-0.5 / 12.0))
    with pytest.raises(ValueError, match=r"1 of 1 trajectories are missing, the first is that of instr_id '7_0'"):
        score_file("ir2r", write_json(tmp_path / "paths.json", entries({"8_0": "e"})), "train", touring)


def test_refused_files_of_tours(touring, make):
    for document, message in (
        ({"test": {}}, "train is missing"),
        ({"train": {}}, r"train must be tours of at least one scan, got \{\}"),
        ({"train": {"moon": [["7_0"]]}}, r"train.moon must be of a scan with instructions in split 'train'"),
        ({"train": {"toy": []}}, r"train.toy must be a list of at least 1"),
        ({"train": {"toy": [["7_0", "9_0"]]}}, r"train.toy\[0\]\[1\] must be the id of an instruction in split 'train"),
        ({"train": {"toy": [["7_0"], [8]]}}, r"train.toy\[1\]\[0\] must be the id of an instruction .*, got 8"),
        ({"train": {"toy": [["7_0"], ["7_0"]]}}, r"train.toy\[1\]\[0\] must be an instruction that is in no tour yet"),
    ):
        write_json(touring / FILE, document)
        with pytest.raises(ValueError, match=f"{FILE}: {message}"):
            make()
    (touring / FILE).unlink()
    with pytest.raises(FileNotFoundError, match=f"no file {FILE} in .* github.com/Bill1235813/IVLN links"):
        make()
    with pytest.raises(ValueError, match="tours must be 'seeded' in world 'procedural'"):
        IR2R(1, tours="published")


@pytest.mark.slow
@needs_data
def test_real_tours(tmp_path):
    """Three tours of each unseen house hold all instructions; the annotated paths have a t-nDTW of 1."""
    world = load_r2r(find_vln_folder(None), "val_unseen")
    rng = np.random.default_rng(0)
    for house, graph in enumerate(world.graphs):
        tour = draw_tour(world, house, rng)
        paths = [list(world.episode(number).path) for number in tour]
        assert len(tour) == len(world.paths(house)), graph.name
        own = [world.episode(number) for number in tour]
        assert tour_ndtw(Graphs(world.graphs), own, paths) == 1.0
        detours = [[*path, *path[-2::-1], path[1]] for path in paths]
        expected = published_tour_ndtw(graph, own[:5], detours[:5])
        assert tour_ndtw(Graphs(world.graphs), own[:5], detours[:5]) == pytest.approx(expected)


def test_an_itinerary_leads_through_different_houses() -> None:
    """A tour goes on while the agent is in the other house; in R2R a letter is an episode."""
    settings = {"features": "none", "split": "val_unseen"}
    env = gym.make("memenvs/VLN-IR2R-v0", itinerary="AABBAA", **settings)
    plain = gym.make("memenvs/VLN-IR2R-v0", **settings)
    infos = [env.reset(seed=5)[1], *(env.reset()[1] for _ in range(6))]
    alone = [plain.reset(seed=5)[1], *(plain.reset()[1] for _ in range(5))]
    scans = [info["scan"] for info in infos[:6]]
    assert scans == [scans[0]] * 2 + [scans[2]] * 2 + [scans[0]] * 2
    assert scans[0] != scans[2]
    assert [info["leg"] for info in infos] == [0, 0, 1, 1, 2, 2, 0]
    assert [infos[k]["instr_id"] for k in (0, 1, 4, 5)] == [alone[k]["instr_id"] for k in (0, 1, 4, 5)]
    assert len({info["instr_id"] for info in infos[:6]}) == 6

    env = gym.make("memenvs/VLN-R2R-v0", itinerary="AABBAA", **settings)
    infos = [env.reset(seed=5)[1], *(env.reset()[1] for _ in range(5))]
    assert len({info["instr_id"] for info in infos}) == 2
    task = env.unwrapped.task
    scans_by_home: dict[int, set[str]] = {}
    for layout in range(0, task.num_layouts, task.num_layouts // 300):
        scan = env.reset(options={"layout": layout, "new_trial": True})[1]["scan"]
        scans_by_home.setdefault(task.home_of(layout), set()).add(scan)
    assert 2 < len(scans_by_home) <= task.num_homes
    assert all(len(scans) == 1 for scans in scans_by_home.values())
    assert len(set.union(*scans_by_home.values())) == len(scans_by_home)  # a home for each house, not for each layout


def test_a_tour_that_is_over_begins_again_and_ends_the_trial(touring, make) -> None:
    """The tour of A has three episodes, that of B one; then there must be two homes."""
    with pytest.raises(ValueError, match="itinerary must have letters A alone, as there is one home or layout, got"):
        make(itinerary="AB")
    folder = touring / "connectivity"
    shutil.copy(folder / "toy_connectivity.json", folder / "other_connectivity.json")
    write_json(touring / "R2R_train.json", [*TOY_EPISODES, {**TOY_EPISODES[1], "scan": "other", "path_id": 9}])
    write_json(touring / FILE, {"train": {"toy": [["7_1", "8_0", "7_0"]], "other": [["9_0"]]}})
    for itinerary, played in (
        ("ABA", [("7_1", True), ("9_0", False), ("7_1", True)]),
        ("AABA", [("7_1", True), ("8_0", False), ("9_0", False), ("7_1", True)]),
    ):
        env = make(itinerary=itinerary)
        env.reset(seed=0, options={"layout": 1})
        infos = [env.reset(options={"layout": 0})[1] for _ in played]
        assert [(info["instr_id"], info["trial_start"]) for info in infos] == played
