import gzip
import json
import os
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from memenvs.data import PROCTHOR_FILE
from memenvs.houses.navigation.navmap import NavigationMap
from memenvs.houses.splits import PROCEDURAL_SPLITS
from memenvs.houses.worlds import make_house_world
from tests.houses.procthor.made_houses import two_rooms, write_houses

DATA = os.environ.get("MEMENVS_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="MEMENVS_DATA is not set")

WHOLE = json.dumps(two_rooms()).encode()


def test_worlds_share_the_houses_that_were_generated_recently():
    one, other = (make_house_world("procedural", rooms=(4, 5)) for _ in range(2))
    assert one.make_house(0) is other.make_house(0) and one.home(0) is other.home(0)
    assert make_house_world("procedural", rooms=(4, 5), robot_radius=0.2).home(0).navmap.area > one.home(0).navmap.area
    assert one.make_house(0) is not make_house_world("procedural", rooms=(4, 6)).make_house(0)
    with pytest.raises(IndexError, match=r"home must be 0 \.\.\. 36, got 37"):
        one.home(37)


def test_wrong_house_files_are_named_by_the_environment(tmp_path):
    write_houses(tmp_path, two_rooms())  # for its sizes of assets
    for name, content, message in (
        ("empty.jsonl", b"", r"empty\.jsonl: holds no house"),
        ("empty.json", b"[]", r"empty\.json: holds no house"),
        ("cut.jsonl.gz", gzip.compress(WHOLE)[:300], r"cut\.jsonl\.gz: not a whole gzip file"),
        ("house.txt", WHOLE, r"house\.txt: a file of records must end in \.jsonl"),
        ("list.jsonl", b"[]", r"list\.jsonl, line 1: the record must be a JSON object"),
    ):
        file = tmp_path / name
        file.write_bytes(content)
        before = sorted(tmp_path.iterdir())
        with pytest.raises(ValueError, match=message):
            gym.make("memenvs/ExtObjNav-v0", world="procthor", split="all", houses=str(file)).reset(seed=0)
        assert sorted(tmp_path.iterdir()) == before


def test_wrong_settings_are_named_by_the_environment():
    worlds, splits = r"\['procedural', 'suncg_style', 'procthor', 'habitat'\]", r"\['train', .*, 'all'\]"
    for settings, message in (
        ({"world": "mars"}, f"unknown world 'mars'; choose from {worlds}"),
        ({"split": "val"}, rf"unknown split 'val'; did you mean 'validation'\? Choose from {splits}"),
        ({"world": "suncg_style", "rooms": (3, 5)}, r"rooms must be None in world 'suncg_style', .*, got \(3, 5\)"),
        ({"world": "procthor", "houses": 3}, "houses must be the path of a file or None, got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            gym.make("memenvs/ExtObjNav-v0", **settings)
    for world, names in (
        ("procedural", ("houses", "asset_sizes", "unknown_assets", "habitat_dataset", "habitat_objects")),
        ("procthor", ("habitat_dataset",)),
        ("habitat", ("houses",)),
    ):
        for name in names:
            with pytest.raises(ValueError, match=f"{name} must be None in world '{world}', got 'x'"):
                make_house_world(world, **{name: "x"})


def test_most_rooms(tmp_path):
    one = two_rooms()
    one["rooms"] = one["rooms"][:1]
    world = make_house_world("procthor", split="all", houses=write_houses(tmp_path, one, two_rooms(), one))
    assert world.max_rooms == 2
    assert make_house_world("procedural", rooms=(3, 5)).max_rooms == 5
    with pytest.warns(UserWarning, match="2 of 3 homes cannot be played"):  # which have walls of a second room
        env = gym.make("memenvs/ExtObjNav-v0", world="procthor", split="all", houses=str(tmp_path / "made.jsonl"))
    assert env.unwrapped.num_places == 2
    (tmp_path / "made.jsonl").write_text('{"rooms": 7}\n')
    with pytest.raises(ValueError, match=r"made\.jsonl, line 1: rooms must be a list, got 7"):
        _ = make_house_world("procthor", split="all", houses=tmp_path / "made.jsonl").max_rooms


def test_maps_are_for_the_robot_of_the_world():
    slim, wide = (make_house_world("procedural", rooms=(2, 4), robot_radius=radius).home(0) for radius in (0.2, 0.28))
    reference = NavigationMap(wide.house, radius=0.28, height=1.5)
    np.testing.assert_array_equal(wide.navmap.free, reference.free)
    assert (slim.navmap.free & ~wide.navmap.free).any() and not (wide.navmap.free & ~slim.navmap.free).any()
    usual = make_house_world("procedural", rooms=(2, 4)).home(0)
    np.testing.assert_array_equal(usual.navmap.free, NavigationMap(usual.house, radius=0.30).free)
    tall = make_house_world("procedural", rooms=(2, 4), robot_radius=0.28, robot_height=2.4).home(0)
    assert tall.navmap.free.sum() < wide.navmap.free.sum()  # lintels and wall cabinets block it


def test_sizes_that_no_robot_has():
    for robot, message in (
        ({"robot_radius": 0.0}, r"robot_radius must be > 0 m, got 0\.0"),
        ({"robot_radius": float("nan")}, r"robot_radius must be > 0 m, got nan"),
        ({"robot_height": 0.2}, r"robot_height must be > 0\.2 m, got 0\.2"),
    ):
        with pytest.raises(ValueError, match=message):
            make_house_world("procedural", **robot)


def test_the_procedural_splits_are_disjoint():
    sizes = {"train": 37, "validation": 100, "test": 100, "all": 237}
    assert {name: len(seeds) for name, seeds in PROCEDURAL_SPLITS.items()} == sizes
    assert len(set(PROCEDURAL_SPLITS["all"])) == 237
    for split, name in ((None, "procedural-3"), ("validation", "procedural-1003"), ("test", "procedural-2003")):
        assert make_house_world("procedural", split=split).make_house(3).name == name
    assert 2 <= len(make_house_world("procedural", rooms=(2, 3)).home(0).house.rooms) <= 3


def test_a_world_of_files_needs_a_file_and_a_split_that_it_has(tmp_path, monkeypatch):
    for folder, settings, error, message in (
        (None, {}, ValueError, r"needs houses=FILE .* or \$MEMENVS_DATA"),
        ("", {}, ValueError, r"needs houses=FILE .* or \$MEMENVS_DATA"),
        (str(tmp_path), {}, FileNotFoundError, "four_room"),
        (None, {"houses": tmp_path / "nowhere.jsonl"}, FileNotFoundError, r"nowhere\.jsonl"),
        (None, {"split": "test"}, ValueError, "unknown split 'test'"),
    ):
        monkeypatch.delenv("MEMENVS_DATA", raising=False)
        if folder is not None:
            monkeypatch.setenv("MEMENVS_DATA", folder)
        with pytest.raises(error, match=message):
            make_house_world("procthor", **settings)
    with pytest.raises(ValueError, match=r"split 'validation' of made\.jsonl is empty: it has 1 houses"):
        make_house_world("procthor", split="validation", houses=write_houses(tmp_path, two_rooms()))


@needs_data
def test_the_procthor_splits_share_the_file():
    train, validation, everything = (
        make_house_world("procthor", split=split) for split in ("train", "validation", "all")
    )
    assert (len(train), len(validation), len(everything)) == (11, 3, 14)
    assert train.home(0).house.name == everything.home(0).house.name
    assert validation.home(0).house.name == everything.home(11).house.name
    explicit = make_house_world("procthor", houses=Path(str(DATA)) / PROCTHOR_FILE)
    assert explicit.home(2).house.name == train.home(2).house.name
