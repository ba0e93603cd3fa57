"""Classes that count as present in Search; the oracle finds all of them."""

import os
from pathlib import Path

import numpy as np
import pytest

from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.exploration.search import Search
from tests.exploration.toy_world import ToyWorld

DATA = os.environ.get("MEMENVS_DATA")
EPISODES = 6  # in each home


def make_env(**kwargs) -> TrialVectorEnv:
    return TrialVectorEnv(Search, EPISODES, modalities=["pose"], autoreset_mode="Disabled", **kwargs)


def play_oracle(env: TrialVectorEnv, layout: int) -> np.ndarray:
    """Play until all that is present is found; return the ratios, float64 (EPISODES,)."""
    _, info = env.reset(seed=1000 * layout, options={"layout": layout})
    ratio = info["ratio"].copy()
    for _ in range(env.max_episode_steps):
        if (ratio == 1.0).all():
            break
        _, _, terminated, _, info = env.step(env.oracle_actions())
        assert not terminated.any()
        ratio = np.maximum(ratio, info["ratio"])
    return ratio


def test_what_is_behind_a_door_that_is_too_narrow_is_not_present():
    """A wall at x = 8 has a gap of 0.4 m; the bed is 3 m behind it. The table is on the robot's side."""
    walls = (("wall", (8.0, 0.9, 1.2), (0.05, 0.9, 1.2)), ("wall", (8.0, 3.1, 1.2), (0.05, 0.9, 1.2)))
    furniture = (("coffee_table", (1.0, 2.0, 0.35), (0.1, 0.8, 0.35)), ("bed", (11.5, 2.0, 0.3), (0.5, 0.9, 0.3)))
    for boxes, expected in (((*walls, *furniture), [True, False]), (furniture, [True, True])):
        world = ToyWorld((13.0, 4.0), boxes)
        env = TrialEnv(Search, world=world, obs_mode="scan", wheel_noise=0.0)
        _, info = env.reset(seed=0, options={"start": (3.0, 2.0, np.pi)})
        table, _, bed = info["present"][3:]  # of television, refrigerator, bookshelf, table, sofa and bed
        assert [table, bed] == expected and info["present"].sum() == sum(expected)
        while not info["found"].any():
            info = env.step(env.oracle_action())[4]
        assert (info["ratio"], info["success"]) == ((0.5, False) if expected[1] else (1.0, True))
    with pytest.raises(ValueError, match=r"none of the 1 homes has \['bed'\] where the robot can see it"):
        TrialEnv(Search, world=ToyWorld((13.0, 4.0), (*walls, *furniture)), targets=["bed", "table"])


@pytest.mark.parametrize(
    ("settings", "layout"),
    [
        ({"world": "procedural"}, 3),  # a table that is detected only when the robot does not face it
        ({"world": "procedural"}, 25),  # a table that is detected from three cells of 10 cm
        ({"split": "test"}, 30),  # home 1030
    ],
)
@pytest.mark.slow
def test_the_oracle_finds_what_is_hard_to_see(settings, layout):
    env = make_env(**settings)
    assert play_oracle(env, layout).tolist() == [1.0] * EPISODES
    env.close()


@pytest.mark.skipif(not DATA, reason="MEMENVS_DATA is not set")
@pytest.mark.slow
def test_the_oracle_finds_what_is_hard_to_see_in_procthor_homes():
    folder = Path(str(DATA)) / "procthor"
    for file, layouts in (("four_room", (13,)), ("one_room_val", (92, 97))):
        env = make_env(world="procthor", split="all", houses=str(folder / f"{file}.jsonl.gz"))
        for layout in layouts:
            assert play_oracle(env, layout).tolist() == [1.0] * EPISODES, (file, layout)
        env.close()


@pytest.mark.slow
def test_the_oracle_of_an_episode_does_not_depend_on_those_before():
    """The same seed in other homes, which have other maps; nothing is found yet."""
    env = TrialEnv(Search, modalities=["pose"])
    for layout in range(3):
        alone = TrialEnv(Search, modalities=["pose"])
        for player in (env, alone):
            player.reset(seed=0, options={"layout": layout})
        for _ in range(3):
            action = env.oracle_action()
            assert action == alone.oracle_action()
            env.step(action)
            alone.step(action)
