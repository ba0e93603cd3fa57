"""Rules of Room Ballet against hand-worked episodes and slow references."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.registry import find_environment
from memenvs.room_ballet.ballet_task import BalletTask
from memenvs.room_ballet.dances import DANCES, PERFORMANCE_CELLS
from memenvs.room_ballet.episodes import BalletEpisodes
from memenvs.room_ballet.frames import empty_room, frame_rows, frame_table
from memenvs.room_ballet.posterior import dance_posterior, steps_to_dance
from memenvs.room_ballet.rules import BalletObserver
from memenvs.room_ballet.tasks import BALLET_NAMES, make_ballet
from memenvs.rules import Rule, Window, Wiped
from tests.rule_scores import play_episode

RIGHT, LEFT, UP, DOWN = range(4)
#: Outer rooms of 3 x 3 rooms, clockwise.
RING = [0, 1, 2, 5, 8, 7, 6, 3]


def make(name: str, num_envs: int, **settings: Any) -> TrialVectorEnv:
    spec = find_environment(f"RoomBallet-{name}-v0")
    made = {"obs": "symbols", **spec.defaults, **settings}
    return TrialVectorEnv(spec.task, num_envs, autoreset_mode="Disabled", **made)


def answers(env: TrialVectorEnv, rule: Rule, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Answers of the rule in one episode of each environment, and the right ones."""
    chosen, info = play_episode(env, rule, seed=seed)
    return chosen, info["label"]


def frames_of(visits: list[tuple[int, int]]) -> np.ndarray:
    """Frames of visits to (dancer, dance), int16, (1, T)."""
    return np.concatenate([dancer * 9 + PERFORMANCE_CELLS[dance] for dancer, dance in visits]).astype(np.int16)[None]


def test_frames_are_recognised_by_a_few_pixels() -> None:
    np.testing.assert_array_equal(frame_rows(frame_table()), np.arange(2565))
    assert frame_rows(np.stack([empty_room(), np.zeros_like(empty_room())])).tolist() == [-1, -1]


def test_one_room_of_opposite_by_hand() -> None:
    """Another dancer is opposite with the probability 1/7; then and else the dances are those of one visit, or any."""
    task = replace(make_ballet("Opposite"), visits=2)
    frame = frames_of([(0, 3), (1, 5)])
    frame[:, :32] = -1
    moves = np.where(np.arange(64) == 32, UP, 4)[None]
    for dancer, share in ((7, 1 / 7), (1, 0)):
        found = dance_posterior(task, frame, moves, np.array([dancer * 9 + 4]))
        weight = found.weight[0] / found.weight.sum()
        np.testing.assert_allclose(weight, [share * (dance == 5) + (1 - share) / 8 for dance in range(8)])
        assert found.dancer[0] == -1


def paths(task: BalletTask) -> list[tuple[list[int], list[int], float]]:
    """All paths over 3 x 3 rooms: rooms, moves, probability."""
    step = {RIGHT: (0, 1), LEFT: (0, -1), UP: (-1, 0), DOWN: (1, 0)}
    all_paths = [([room], [], 1 / 9) for room in range(9)]
    for _ in range(task.visits - 1):
        longer = []
        for rooms, moves, probability in all_paths:
            row, column = divmod(rooms[-1], 3)
            exits = [
                (move, 3 * (row + down) + column + right)
                for move, (down, right) in step.items()
                if 0 <= row + down < 3 and 0 <= column + right < 3
            ]
            longer += [([*rooms, room], [*moves, move], probability / len(exits)) for move, room in exits]
        all_paths = longer
    return all_paths


def slow_weights(task: BalletTask, all_paths: list, episodes: BalletEpisodes, b: int, kept: int) -> np.ndarray:
    """Weights of the dances in Next with the last visits in memory, by all paths over the rooms."""
    dancers, dances = episodes.visit_dancer[b, -kept:].tolist(), episodes.visit_dance[b, -kept:].tolist()
    newest_moves = episodes.action[b, ::32][task.visits - kept + 1 :].tolist()
    queried = int(episodes.query[b]) // 9
    weight = np.zeros(8)
    for all_rooms, moves, probability in all_paths:
        if moves[task.visits - kept :] != newest_moves:
            continue
        rooms = all_rooms[task.visits - kept :]
        visited = rooms if kept == task.visits else range(9)
        queries = [room for room in RING if room in visited and RING[(RING.index(room) + 1) % 8] in visited]
        for room in queries:
            if (rooms[dancers.index(queried)] != room) if queried in dancers else (room in rooms):
                continue
            answer = RING[(RING.index(room) + 1) % 8]
            if answer in rooms:
                weight[dances[rooms.index(answer)]] += probability / len(queries)
            else:
                weight += probability / len(queries) / 8
    return weight


def test_any_number_of_visits_of_next_against_all_paths() -> None:
    task = replace(make_ballet("Next"), visits=6)
    all_paths = paths(task)
    episodes = task.sample_batch(12, np.random.default_rng(3))
    for kept in (1, 2, 4, 6):
        is_kept = np.arange(task.steps) >= task.steps - 32 * kept
        frame = np.where(is_kept, episodes.frame, -1)
        found = dance_posterior(task, frame, episodes.action, episodes.query).weight
        for b in range(len(episodes)):
            slow = slow_weights(task, all_paths, episodes, b, kept)
            np.testing.assert_allclose(found[b] / found[b].sum(), slow / slow.sum(), atol=1e-12)


def slow_answer(task: BalletTask, episodes: BalletEpisodes, window: int) -> int:
    """First of the likeliest dances of the queried dancer, from an episode's last frames."""
    steps = [t for t in range(task.steps) if t >= task.steps - window]
    fits: dict[int, set[int]] = {}
    for t in steps:
        dancer, cell = divmod(int(episodes.frame[0, t]), 9)
        here = {dance for dance in range(8) if PERFORMANCE_CELLS[dance, t % 32] == cell}
        fits[dancer] = fits.get(dancer, set(range(8))) & here
    possible = fits.get(int(episodes.query[0]) // 9, set(range(8)))
    if task.queries_rooms:
        return min(possible)
    visits = [sum(1 / len(dances) for dances in fits.values() if dance in dances) for dance in range(8)]
    return min(possible, key=lambda dance: (round(visits[dance], 9), dance))


@pytest.mark.parametrize("name", ["FIFO", "ShortStay"])
def test_windows_against_a_slow_reference(name: str) -> None:
    env = make(name, 12)
    for window in (1, 4, 16, 40):
        found, _ = answers(env, Window(BalletObserver(env.task), window), seed=4)
        task = make_ballet(name)
        for i in range(12):
            episodes = task.sample_batch(1, np.random.default_rng([4 + i, 0, 1]))
            assert found[i] == slow_answer(task, episodes, window - 1), (window, i)


@pytest.mark.slow
@pytest.mark.parametrize("name", BALLET_NAMES)
def test_the_observer_is_always_right_and_no_window_is(name: str) -> None:
    env = make(name, 60)
    found, right = answers(env, BalletObserver(env.task), seed=5)
    assert (found == right).all()
    found, right = answers(env, Window(BalletObserver(env.task), 16), seed=5)
    assert (found == right).mean() < (0.75 if name == "ShortStay" else 0.45)


def test_the_observer_sees_this_episode_alone() -> None:
    """The second episode of a trial, after blank steps whose symbols are those of a frame."""
    env = make("LIFO", 3, trial_episodes=2, gap=40)
    rule = BalletObserver(env.task)
    answers(env, rule, seed=6)
    observation, _ = env.reset()
    rule.start(np.zeros(3, bool), np.ones(3, bool))
    for _ in range(40 + 576):
        rule.actions(observation)
        observation, *_ = env.step(np.zeros(3, int))
    assert rule.actions(observation).tolist() == env.oracle_actions().tolist()


def test_images_and_symbols_have_the_same_answers() -> None:
    chosen = []
    for obs in ("pixels", "symbols"):
        env = make("FIFO", 5, obs=obs)
        chosen.append(answers(env, Wiped(BalletObserver(env.task), 200, 5, np.random.default_rng(0)), seed=7))
    np.testing.assert_array_equal(chosen[0], chosen[1])


def test_steps_back_by_hand() -> None:
    """By hand: all dances end in cell 4, before that in 3, 5, 7, 3, 8, 6, 3, 5, and before that circles in 6 and 8."""
    ages = [3, 3, 2, 4, 2, 2, 4, 3]
    for dance, age in enumerate(ages):
        frame = frames_of([(5, dance), (6, 0), (7, 1)])
        assert steps_to_dance(frame, np.array([5])).tolist() == [64 + age], DANCES[dance]
    assert steps_to_dance(frame, np.array([8])).tolist() == [0]
    env = make("Next", 8)
    rule = BalletObserver(env.task)
    answers(env, rule, seed=9)
    for i in range(8):
        episodes = env.task.ballet.sample_batch(1, np.random.default_rng([9 + i, 0, 1]))  # type: ignore[attr-defined]
        places = episodes.visit_place[0].tolist()
        answer = RING[(RING.index(int(episodes.query_place[0])) + 1) % 8]
        newest = [places[::-1].index(room) for room in (int(episodes.query_place[0]), answer)]
        assert rule.steps_back()[i] == max(32 * newest[0] + 1, 32 * newest[1] + ages[episodes.label[0]])


def test_bits() -> None:
    expected = {"Next": 24, "ShortStay": 27, "MultiTask": 54, "Opposite": 24, "ABA": 21}
    assert {name: BalletObserver(make(name, 1).task).bits for name in expected} == expected
