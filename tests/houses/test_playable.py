"""Homes that a task cannot play: left out, refused, or found when a layout needs them."""

from pathlib import Path

import pytest

from memenvs.core import TrialEnv
from memenvs.exploration.coverage import Coverage
from memenvs.exploration.search import Search
from memenvs.houses.house_world import HouseWorld
from memenvs.houses.worlds import ProcthorHouseWorld, make_house_world
from memenvs.objectnav.env import ExtObjNav
from tests.houses.procthor.made_houses import full_of_blocks, two_rooms, without_doors, write_houses

SYMBOLIC = {"obs_mode": "symbolic"}


def bare() -> dict:
    """A home without furniture: the robot has floor, objects have no place."""
    return {**two_rooms(), "objects": []}


def settings(file: Path, **more) -> dict:
    return {"world": "procthor", "split": "all", "houses": str(file), **more}


def scenes(env: TrialEnv, layouts: range) -> list[str]:
    return [env.reset(seed=0, options={"layout": layout})[1]["scene_id"] for layout in layouts]


@pytest.mark.slow
def test_homes_that_cannot_be_played_are_left_out_with_one_warning(tmp_path):
    file = write_houses(tmp_path, two_rooms(), bare(), two_rooms(), full_of_blocks(), without_doors(), two_rooms())
    with pytest.warns(UserWarning) as raised:
        env = TrialEnv(ExtObjNav, **settings(file, **SYMBOLIC))
    (warning,) = raised
    text = str(warning.message)
    assert text.startswith("3 of 6 homes cannot be played in ExtObjNav and are left out: ")
    for name in ("'made-1' has none", "'made-3' has no navigable cell", "line 5: doors must join all 2 rooms"):
        assert name in text
    assert scenes(env, range(7)) == [f"made-{k}" for k in (0, 2, 5, 0, 2, 5, 0)]
    for _ in range(30):
        assert env.reset(options={"new_trial": True})[1]["scene_id"] in ("made-0", "made-2", "made-5")
    with pytest.warns(UserWarning, match="2 of 6 homes cannot be played in Search"):
        env = TrialEnv(Search, **settings(file, modalities=["pose"]))
    assert env.task.num_layouts == 4  # a robot that only drives needs no furniture
    assert scenes(env, range(4)) == [f"made-{k}" for k in (0, 1, 2, 5)]


def test_strict_refuses_them(tmp_path):
    file = write_houses(tmp_path, two_rooms(), bare(), full_of_blocks())
    with pytest.raises(ValueError, match=r"^2 of 3 homes cannot be played in ExtObjNav: .*'made-1'.*'made-2'"):
        TrialEnv(ExtObjNav, **settings(file, strict=True, **SYMBOLIC))
    with pytest.raises(ValueError, match=r"1 of 3 homes cannot be played in Coverage: .*'made-2'"):
        TrialEnv(Coverage, **settings(file, strict=True))
    with pytest.raises(ValueError, match="strict must be True or False, got 1"):
        TrialEnv(Coverage, **settings(file, strict=1))
    TrialEnv(ExtObjNav, **settings(write_houses(tmp_path, two_rooms()), strict=True, **SYMBOLIC))
    with pytest.raises(ValueError, match="2 of 2 homes cannot be played in ExtObjNav"):  # also without it
        TrialEnv(ExtObjNav, **settings(write_houses(tmp_path, bare(), bare()), **SYMBOLIC))


def test_a_home_found_out_later_is_replaced_by_the_next_one(tmp_path, monkeypatch):
    """A layout is the same home in whatever order layouts are played."""
    monkeypatch.setattr(HouseWorld, "num_checked", 1)
    file = write_houses(tmp_path, two_rooms(), bare(), bare(), two_rooms())
    for order in (range(5), range(4, -1, -1)):
        env = TrialEnv(ExtObjNav, **settings(file, **SYMBOLIC))
        with pytest.warns(UserWarning, match="home . cannot be played in layout .*, where the next one takes") as w:
            names = scenes(env, order)
        assert sorted(str(warning.message)[:6] for warning in w) == ["home 1", "home 2"]
        assert dict(zip(order, names, strict=True)) == {0: "made-0", 1: "made-3", 2: "made-3", 3: "made-3", 4: "made-0"}
    with pytest.raises(ValueError, match="2 of 4 homes"):  # which checks all homes
        TrialEnv(ExtObjNav, **settings(file, strict=True, **SYMBOLIC))
    monkeypatch.setattr(HouseWorld, "num_checked", 0)
    env = TrialEnv(ExtObjNav, **settings(write_houses(tmp_path, bare(), bare()), **SYMBOLIC))
    with (
        pytest.warns(UserWarning, match="cannot be played"),
        pytest.raises(ValueError, match=r"none of the homes tried can be played in layout 1 .*'made-1' has none"),
    ):
        env.reset(seed=0, options={"layout": 1})


def test_a_file_is_checked_once_and_generated_homes_are_not_made_before_they_are_used(tmp_path, monkeypatch):
    checked, each_home = [], ProcthorHouseWorld.each_home
    monkeypatch.setattr(ProcthorHouseWorld, "each_home", lambda self: checked.append(1) or each_home(self))
    file = write_houses(tmp_path, two_rooms(), two_rooms(), two_rooms())
    for _ in range(2):
        TrialEnv(ExtObjNav, **settings(file, **SYMBOLIC))
    write_houses(tmp_path, two_rooms(), bare())
    with pytest.warns(UserWarning, match="1 of 2"):
        TrialEnv(ExtObjNav, **settings(file, **SYMBOLIC))
    assert len(checked) == 2
    for world in ("procedural", "suncg_style"):
        made = make_house_world(world)
        monkeypatch.setattr(made, "make_house", lambda index: pytest.fail("a home was made"))
        for task, more in ((ExtObjNav, SYMBOLIC), (Coverage, {})):
            TrialEnv(task, world=made, **more)


def test_homes_of_a_file_are_read_once_and_are_those_of_their_numbers(tmp_path):
    houses = [{**two_rooms(), "windows": []} for _ in range(7)]
    houses[6] = two_rooms()
    world = make_house_world("procthor", split="validation", houses=write_houses(tmp_path, *houses))
    homes = [home() for home in world.each_home()]
    assert [home.house.name for home in homes] == ["made-6"]
    for number, home in enumerate(homes):
        assert home is world.home(number)
        assert home.house.instances == world.make_house(number).instances
