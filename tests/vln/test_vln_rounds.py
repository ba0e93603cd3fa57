"""R2R with laps: paths and texts, limits of a window, and the end of episodes off the path."""

from itertools import pairwise

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.vln.config import R2RConfig
from memenvs.vln.graph import VIEW_STEP
from memenvs.vln.r2r import R2R
from memenvs.vln.tokenizers import split_words
from memenvs.vln.worlds.procedural.rounds import Rounds, load_rounds
from memenvs.vln.worlds.procedural.texts import all_words, follow, read_clauses
from memenvs.vln.worlds.procedural.world import load_routes

NUMBERS = range(0, 2343, 97)


def lap_moves(world: Rounds, number: int) -> int:
    """Moves of a lap."""
    episode = world.episode(number)
    return episode.path.index(episode.leg_ends[1], 1)


def test_laps_are_equal_and_the_last_leg_differs_at_once():
    for laps in (2, 5):
        world = load_rounds("val_unseen", laps)
        for number in NUMBERS:
            episode = world.episode(number)
            path, moves = episode.path, lap_moves(world, number)
            assert 8 <= moves <= 12
            assert path[: laps * moves + 1] == path[:1] + path[1 : moves + 1] * laps
            assert path[laps * moves] == path[0] and path[laps * moves + 1] != path[1]
            assert len(episode.leg_ends) == 2 * laps + 1
            for start, end in pairwise((path[0], *episode.leg_ends)):
                assert 4 <= world.houses[episode.house].num_edges[start, end] <= 6


def test_texts_say_how_many_laps_there_are():
    world, words = load_rounds("val_unseen", 5), set(load_rounds("val_unseen", 5).words)
    for number in NUMBERS:
        episode = world.episode(number)
        tokens = split_words(episode.text)
        assert tokens.count("five") == 1 and set(tokens) <= words and len(tokens) < world.max_tokens
        clauses = read_clauses(tokens)
        assert clauses == world.clauses(number)
        house = world.houses[episode.house]
        assert tuple(follow(house, episode.path[0], round(episode.heading / VIEW_STEP), clauses)) == episode.path
    assert set(all_words()) < words  # the tokens of routes are as they were
    assert load_routes("val_unseen", 3).words == all_words()


def test_a_window_of_16_sees_the_same_after_each_lap_from_the_second_on():
    """The same observations and moves ask for another lap and, after the fifth, for the last leg."""
    env = TrialVectorEnv(R2R, 4, split="val_unseen", laps=5)
    observation, _ = env.reset(seed=0, options=[{"layout": layout} for layout in (0, 700, 1400, 2100)])
    moves = [lap_moves(env.task.world, layout) for layout in (0, 700, 1400, 2100)]
    seen: list[dict[str, np.ndarray]] = []
    for _ in range(5 * max(moves) + 1):
        seen.append({key: value.copy() for key, value in observation.items()} | {"done": env.task.oracle_actions()})
        observation, *_ = env.step(seen[-1]["done"])
    for i, lap in enumerate(moves):
        windows = [seen[m * lap - 15 : m * lap + 1] for m in (2, 3, 4, 5)]
        for key in seen[0]:
            rows = [[step[key][i] for step in window] for window in windows]
            same = [[np.array_equal(a, b) for a, b in zip(rows[0], row, strict=True)] for row in rows[1:]]
            expected = np.ones((3, 16), bool)
            expected[2, 15] = key != "done"
            assert np.array_equal(same, expected), key


def test_a_move_that_leaves_the_path_ends_the_episode():
    env = TrialVectorEnv(R2R, 3, split="val_unseen", laps=2, autoreset_mode="Disabled")
    env.reset(seed=0, options=[{"layout": layout} for layout in (0, 700, 1400)])
    lap = lap_moves(env.task.world, 0)
    for _ in range(lap):
        *_, terminated, _, _ = env.step(env.task.oracle_actions())
        assert not terminated.any()
    path = env.task.world.episode(0).path
    leaves = env.task.graphs.candidates.node[env.task.info()["place"][0]].tolist().index(path[2 * lap + 1])
    actions = env.task.oracle_actions()
    actions[0] = leaves  # one lap too early
    *_, terminated, _, info = env.step(actions)
    assert terminated.tolist() == [True, False, False] and not info["success"][0]


def test_settings_with_laps():
    config = R2RConfig(laps=5)
    assert (config.num_legs, config.step_limit, config.ends_off_path) == (11, 165, True)
    assert not R2RConfig().ends_off_path
    for settings, message in (
        ({"laps": 1}, r"laps must be 0 or an integer in 2 \.\.\. 6, got 1"),
        ({"laps": 7}, r"laps must be 0 or an integer in 2 \.\.\. 6, got 7"),
        ({"laps": True}, r"laps must be 0 or an integer in 2 \.\.\. 6, got True"),
        ({"laps": 3, "world": "mp3d"}, "laps must be 0 in world 'mp3d', whose texts have none, got 3"),
        ({"laps": 3, "legs": 1}, "legs must be None with 3 laps, which decide it, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            R2RConfig(**settings)
