"""Paths of R2R one after another: the toy house by hand, and the published size of R4R."""

import os

import numpy as np
import pytest

from memenvs.data import find_vln_folder
from memenvs.vln.graph import Graphs
from memenvs.vln.metrics import score
from memenvs.vln.worlds.mp3d import load_r2r
from memenvs.vln.worlds.mp3d_joined import load_joined_r2r
from tests.vln.toys import R2R, shortest_path, write_data, write_json

needs_data = pytest.mark.skipif(
    not os.environ.get("MEMENVS_DATA"), reason="needs MEMENVS_DATA set to a folder with vln"
)


def test_paths_of_the_toy_house_by_hand(toy_data):
    """Path 8 (e b) ends 2 m from its own start and from that of path 7 (a b c d), which ends far from both."""
    world = load_joined_r2r(toy_data, "train", 2)
    assert world.num_episodes == 3
    episodes = [world.episode(k) for k in range(3)]
    assert [episode.id for episode in episodes] == ["8_0+7_0", "8_0+7_1", "8_0+8_0"]
    names = world.graphs[0].viewpoints
    assert ["".join(names[node] for node in episode.path) for episode in episodes] == ["ebabcd", "ebabcd", "ebeb"]
    assert ["".join(names[node] for node in episode.leg_ends) for episode in episodes] == ["bad", "bad", "beb"]
    assert [episode.heading for episode in episodes] == [1.6] * 3
    assert episodes[1].text == "Café on the left. Go on, and on!"
    assert world.max_tokens == 2 * load_r2r(toy_data, "train").max_tokens
    three = load_joined_r2r(toy_data, "train", 3)
    assert [three.episode(k).id for k in range(three.num_episodes)] == ["8_0+8_0+7_0", "8_0+8_0+7_1", "8_0+8_0+8_0"]
    for joined in (world, three):
        assert joined.paths(0) == [range(2), range(2, 3)]
        assert [joined.episode_number(joined.episode(k).id) for k in range(3)] == [0, 1, 2]
        for id in ("7_0+8_0", "8_0", "8_1+7_0", ""):
            with pytest.raises(ValueError, match=f"no episode '{id.replace('+', '.')}' .* have the form '8_0.*7_0'"):
                joined.episode_number(id)


def test_a_path_that_starts_where_another_ends_is_joined_without_a_way(tmp_path):
    """Path c d starts at the end of a b c, which is 4 m from its own start; c d ends 0.5 m from its own."""
    records = [
        {**R2R[0], "path_id": 1, "path": list("abc"), "instructions": ["One."]},
        {**R2R[0], "path_id": 2, "path": list("cd"), "instructions": ["Two."]},
    ]
    folder = write_data(tmp_path)
    write_json(folder / "R2R_train.json", records)
    world = load_joined_r2r(folder, "train", 2)
    assert [world.episode(k).id for k in range(world.num_episodes)] == ["1_0+2_0", "2_0+2_0"]
    assert world.episode(0).path == (0, 1, 2, 3) and world.episode(0).leg_ends == (2, 3)
    write_json(folder / "R2R_train.json", records[:1])
    with pytest.raises(ValueError, match=r"no 2 paths of the split follow one another in .*; legs=1 has some"):
        load_joined_r2r(folder, "train", 2)


@needs_data
def test_houses_without_such_paths_are_left_out():
    """So that an itinerary finds an episode in each house."""
    world = load_joined_r2r(find_vln_folder(None), "val_seen", 3)
    names = [graph.name for graph in world.graphs]
    assert len(names) < len(load_r2r(find_vln_folder(None), "val_seen").graphs)
    of_house = [world.paths(house) for house in range(len(names))]
    assert all(of_house) and [numbers for house in of_house for path in house for numbers in path] == [
        *range(world.num_episodes)
    ]
    single = load_r2r(find_vln_folder(None), "val_seen")
    for house, paths in enumerate(of_house):
        for numbers in paths:
            episode = world.episode(numbers[0])
            first = single.episode(single.episode_number(episode.id.split("+")[0]))
            assert episode.house == house and single.graphs[first.house].name == names[house]


@pytest.mark.parametrize("legs", [2, 3])
def test_the_teacher_follows_the_text(make, legs):
    """It goes to the start of a path that it could pass by; the whole text is observed."""
    env = make(legs=legs)
    for number, path in enumerate(["ebabcd", "ebabcd", "ebeb"]):
        observation, info = env.reset(options={"episode_number": number})
        assert observation["instruction_mask"].sum() >= len(info["text"].split())
        is_over = False
        while not is_over:
            *_, is_over, _, info = env.step(env.unwrapped.oracle_action())
        nodes = "".join(viewpoint for viewpoint, *_ in env.unwrapped.task.trajectory(0))
        assert nodes == "eb" * (legs - 2) + path
        assert (info["ne"], info["sr"], info["spl"], info["ndtw"]) == (0, 1, 1, 1)


@needs_data
def test_room_for_room_has_its_published_size():
    """The release has 9 more paths in train and 8 fewer in val_unseen."""
    folder = find_vln_folder(None)
    worlds = {split: load_joined_r2r(folder, split, 2) for split in ("train", "val_seen", "val_unseen")}
    joined = {
        split: [numbers for house in range(len(world.graphs)) for numbers in world.paths(house)]
        for split, world in worlds.items()
    }
    assert {split: len(numbers) for split, numbers in joined.items()} == {
        "train": 25_930 - 9,
        "val_seen": 115,
        "val_unseen": 5_018 + 8,
    }
    assert {split: sum(map(len, numbers)) for split, numbers in joined.items()} == {
        "train": 233_613 - 9 * 9,
        "val_seen": 1_035,
        "val_unseen": 45_162 + 8 * 9,
    }
    world = worlds["val_seen"]
    paths = [world.episode(numbers[0]) for numbers in joined["val_seen"]]
    assert np.mean([len(path.path) for path in paths]) == pytest.approx(12.2173913043)
    lengths = score(Graphs(world.graphs), paths, [path.path for path in paths])["tl"]
    assert lengths.mean() == pytest.approx(20.3605171182, rel=2e-4)  # of R2R's lengths, which are rounded to 1 cm


@needs_data
def test_a_joined_episode_is_made_of_two_of_r2r():
    folder = find_vln_folder(None)
    world, single = load_joined_r2r(folder, "val_unseen", 2), load_r2r(folder, "val_unseen")
    for number in range(0, world.num_episodes, 500):
        episode = world.episode(number)
        assert world.episode_number(episode.id) == number
        first, second = (single.episode(single.episode_number(id)) for id in episode.id.split("+"))
        way = shortest_path(world.graphs[episode.house], first.path[-1], second.path[0])
        assert episode.path == first.path + way[1:-1] + second.path[len(way) == 1 :]
        assert episode.text == f"{first.text.strip()} {second.text.strip()}"
        assert episode.heading == first.heading
