"""Rules about bits: an episode is a function of its numbers and of its actions alone.

Its numbers are (settings, seed, trial, episode index). So neither earlier episodes, nor the other environments of a
batch, nor the form (single or vector), nor a limit of steps change a bit of it.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np

from memenvs.core import TrialVectorEnv
from memenvs.task import TRIAL_OPTIONS, defines
from memenvs.testing.comparison import ContractError, check_same, check_true
from memenvs.testing.task_under_test import (
    PARTS,
    Row,
    TaskUnderTest,
    draws,
    info_of,
    play_single,
    play_vector,
    row_of,
    single_action,
    vector_actions,
)


def check_copies(subject: TaskUnderTest) -> None:
    """Values that a step has returned do not change later."""
    env = subject.vector(2, autoreset_mode="SameStep", **subject.short)
    kept: list[tuple[Row, Row]] = []
    for row in play_vector(env, env.reset(seed=0), draws(30, 2)):
        kept.append((row, copy.deepcopy(row)))
    for t, (row, before) in enumerate(kept):
        for part, played, expected in zip(PARTS, row, before, strict=True):
            check_true(_equal(played, expected), f"{part} of step {t} was changed by a later step")
    env.close()


def _equal(played: Any, expected: Any) -> bool:
    """As `same`, also for the object arrays of final observations and nested infos."""
    return pickle.dumps(played) == pickle.dumps(expected)


def check_seeds(subject: TaskUnderTest) -> None:
    """The same seed gives the same bits, again and in a batch; other seeds give other worlds."""
    numbers = draws(30, 3)
    singles = [_rollout(subject, numbers[:, i], seed=5 + i) for i in range(3)]
    _check_rows("the same seed again", _rollout(subject, numbers[:, 0], seed=5), singles[0])
    env = subject.vector(3, **subject.short)
    for t, row in enumerate(play_vector(env, env.reset(seed=5), numbers)):
        for i in range(3):
            _check_row(
                f"environment {i} of a batch differs from a single one with its seed", t, row_of(row, i), singles[i][t]
            )
    env.close()
    worlds = set()
    env = subject.vector(1, **subject.short)
    for seed in range(10):
        rows = [copy.deepcopy(row) for row in play_vector(env, env.reset(seed=seed), draws(13, 1))]
        for row in rows:
            del row[4]["seed"]
        worlds.add(pickle.dumps(rows))
    env.close()
    count = env.task.num_layouts
    expected = int(0.6 * count * (1.0 - (1.0 - 1.0 / count) ** 10))  # most of the layouts that ten draws hit
    check_true(len(worlds) >= expected, f"ten seeds must give {expected} worlds or more, got {len(worlds)}")


def _rollout(subject: TaskUnderTest, numbers: np.ndarray, seed: int) -> list[Row]:
    env = subject.single(**subject.short)
    rows = play_single(env, env.reset(seed=seed), numbers)
    env.close()
    return rows


def _check_rows(what: str, played: list[Row], expected: list[Row]) -> None:
    check_true(len(played) == len(expected), f"{what}: {len(played) - 1} steps and not {len(expected) - 1}")
    for t, (one, other) in enumerate(zip(played, expected, strict=True)):
        _check_row(what, t, one, other)


def _check_row(what: str, t: int, played: Row, expected: Row) -> None:
    for part, one, other in zip(PARTS, played, expected, strict=True):
        check_same(f"{what}: {part} of step {t}", one, other)


def check_layouts(subject: TaskUnderTest) -> None:
    """The layout changes an episode of the oracle, where there are several."""
    if not defines(subject.task, "oracle_actions"):
        return  # random actions may not reach what differs
    env = subject.single()
    count = env.task.num_layouts
    seen = []
    for layout in range(min(count, 6)):
        rows: list[Any] = [env.reset(seed=0, options={"layout": layout})]
        while len(rows) < 100 and (len(rows) == 1 or not (rows[-1][2] or rows[-1][3])):
            rows.append(env.step(env.oracle_action()))
        seen.append([{**row[-1], "layout_id": 0, "row": row[:-1]} for row in copy.deepcopy(rows)])
    env.close()
    check_true(
        count == 1 or any(not _equal(other, seen[0]) for other in seen[1:]),
        f"num_layouts is {count}, but layouts 0 to {len(seen) - 1} are the same; without layouts it must be 1",
    )


def check_batch(subject: TaskUnderTest) -> None:
    """The environments of a batch share no state: neither order nor a step of others counts."""
    order = np.array([2, 0, 1])
    seeds = np.array([3, 14, 15])
    numbers = draws(30, 3)
    left, right = subject.vector(3, **subject.short), subject.vector(3, **subject.short)
    ordered = play_vector(right, right.reset(seed=seeds[order].tolist()), numbers[:, order])
    for t, (one, other) in enumerate(
        zip(play_vector(left, left.reset(seed=seeds.tolist()), numbers), ordered, strict=True)
    ):
        for i in range(3):
            what = "the position in the batch changes an environment"
            _check_row(what, t, row_of(other, i), row_of(one, int(order[i])))
    left.reset(seed=0)
    task, active = left.task, np.array([True, False, False])
    for t in range(5):
        before, info = _observe(left), copy.deepcopy(task.info())
        rewards, terminated = task.step(vector_actions(left, numbers[t]), active)
        what = f"a step with active {active.tolist()} changed an environment that is not active"
        for i in np.flatnonzero(~active).tolist():
            check_same(f"{what}: observation of step {t}", info_of(_observe(left), i), info_of(before, i))
            check_same(f"{what}: info of step {t}", info_of(task.info(), i), info_of(info, i))
        idle = not np.asarray(rewards)[~active].any() and not np.asarray(terminated)[~active].any()
        check_true(idle, f"rewards must be 0 and terminated False where not active, got {rewards} and {terminated}")
        if np.asarray(terminated).any():
            break
    before = {key: _observe(left)[key] for key in task.observation_space.spaces}  # without those of the trial layer
    left.reset(seed=[90, 91, 92])
    out = copy.deepcopy(before)
    task.observe(out, active)
    for i in (1, 2):
        check_same(f"observe wrote row {i}, which env_mask leaves out", info_of(out, i), info_of(before, i))
    for t in range(4):
        new = {name: np.zeros_like(value) for name, value in out.items()}
        for buffer in (new, out):
            task.observe(buffer, left._all_envs)
        check_same(f"observe left a number of an earlier step in its buffer: observation of step {t}", out, new)
        left.step(vector_actions(left, numbers[t]))
    left.close()
    right.close()


def _observe(env: TrialVectorEnv) -> dict[str, np.ndarray]:
    """Fresh observations of all environments."""
    return copy.deepcopy(env._observe(env._all_envs))


def check_episodes(subject: TaskUnderTest) -> None:
    """An episode does not depend on those before it, and is rebuilt from its numbers alone.

    Before each, the oracle plays where there is one: it leaves rewards, found objects and visited places behind.
    """
    limits = {"max_episode_steps": 40, "trial_episodes": 3}
    policies = ("random", "oracle") if defines(subject.task, "oracle_actions") else ("random",)
    for policy, seed in zip(policies, (4, 5), strict=False):
        env = subject.single(**limits)
        start = env.reset(seed=seed)
        for number in range(1, 6):
            _play_episode(env, policy, draws(40, 1, number)[:, 0])
            start = env.reset()
            numbers = draws(12, 1, number)[:, 0]
            options = {"trial": number // 3, "episode_index": number % 3}
            alone = subject.single(**limits)
            expected = _one_episode(play_single(alone, alone.reset(seed=seed, options=options), numbers))
            played = _one_episode(play_single(env, start, numbers))
            alone.close()
            check_true(played[0][4]["trial_start"] == (number % 3 == 0), f"trial_start of episode {number} is wrong")
            played[0][4]["trial_start"] = expected[0][4]["trial_start"]
            what = f"episode {options} after others (of the {policy} policy) differs from the same one alone"
            _check_rows(what, played, expected)
            env.reset(seed=seed, options=options)
        env.close()


def _play_episode(env: Any, policy: str, numbers: np.ndarray) -> None:
    """Play until the episode ends or the numbers are used up."""
    for number in numbers:
        action = env.oracle_action() if policy == "oracle" else single_action(env, number)
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            return


def _one_episode(rows: list[Row]) -> list[Row]:
    """Rows up to the end of the first episode."""
    ends = [t for t, row in enumerate(rows) if row[2] or row[3]]
    return rows[: ends[0] + 1] if ends else rows


def check_options(subject: TaskUnderTest) -> None:
    """Options hold at autoresets in the same place, until the next explicit reset ends them."""
    for mode in ("NextStep", "SameStep"):
        env = subject.vector(2, autoreset_mode=mode, **subject.short)
        names = env.task.option_names
        _, other = env.reset(seed=123)
        options = [
            {"layout": int(other["layout_id"][i]), **{name: info_of(other, i)[name] for name in names}}
            for i in range(2)
        ]
        start = env.reset(seed=0, options=options)
        place = info_of(start[1], 0).get("letter")  # where there is an itinerary
        for t, row in enumerate(play_vector(env, start, draws(40, 2))):
            for i in range(2):
                info = info_of(row[4], i)
                check_same(f"option 'layout', mode {mode}, step {t}", info["layout_id"], options[i]["layout"])
                for name in names if info.get("letter") == place else ():
                    check_same(f"option {name!r}, mode {mode}, step {t}", info[name], options[i][name])
        env.close()
    alone, fresh = subject.single(**subject.short), subject.single(**subject.short)
    _, elsewhere = alone.reset(seed=123)
    _, later = alone.reset(seed=0, options={"episode_index": 2})  # in the layout of the trial that goes on
    for seed, source in ((0, elsewhere), (None, later)):
        alone.reset(seed=0, options={"layout": source["layout_id"], **{name: source[name] for name in names}})
        fresh.reset(seed=0)
        for part, one, two in zip(("observation", "info"), alone.reset(seed=seed), fresh.reset(seed=seed), strict=True):
            check_same(f"options go on after the next reset: {part}", one, two)
    try:
        alone.reset(options={"no_such_option": 1})
    except ValueError:
        pass
    else:
        raise ContractError(f"an unknown reset option must be refused; known are {(*names, *TRIAL_OPTIONS)}")
    alone.close()
    fresh.close()


def check_drawn_options(subject: TaskUnderTest) -> None:
    """Options given as they were drawn change no bit: they change no other draw."""
    seeds, numbers = list(range(20, 24)), draws(20, 4)
    policies = ("random", "oracle") if defines(subject.task, "oracle_actions") else ("random",)
    for policy in policies:
        env = subject.vector(4, max_episode_steps=20)
        expected = _first_episodes(env, env.reset(seed=seeds), policy, numbers)
        every = env.task.option_names
        for names in (*((name,) for name in every), every):
            drawn = [{name: rows[0][4][name] for name in names} for rows in expected]
            try:
                start = env.reset(seed=seeds, options=drawn)
            except ValueError:
                if names != every:  # one that must come with others
                    continue
                raise
            played = _first_episodes(env, start, policy, numbers)
            for seed, options, one, two in zip(seeds, drawn, played, expected, strict=True):
                what = f"options {options}, as seed {seed} draws them, change what else it draws ({policy} policy)"
                _check_rows(what, one, two)
        env.close()


def _first_episodes(env: TrialVectorEnv, start: tuple[Any, dict], policy: str, numbers: np.ndarray) -> list[list[Row]]:
    """Play the first episode of each environment, at most as many steps as numbers."""
    count = env.num_envs
    nothing = np.zeros(count, bool)
    batch: list[Row] = [copy.deepcopy((start[0], np.zeros(count), nothing, nothing, start[1]))]
    for drawn in numbers:
        actions = env.task.oracle_actions() if policy == "oracle" else vector_actions(env, drawn)
        batch.append(copy.deepcopy(env.step(actions)))
    return [_one_episode([row_of(row, i) for row in batch]) for i in range(count)]


def check_clock(subject: TaskUnderTest) -> None:
    """Time limits truncate and tasks terminate: a limit changes no `terminated`."""
    policies = ("random", "oracle") if defines(subject.task, "oracle_actions") else ("random",)
    env, unlimited = subject.single(max_episode_steps=5), subject.single()
    for policy in policies:
        for seed in range(5):
            env.reset(seed=seed)
            unlimited.reset(seed=seed)
            for t, number in enumerate(draws(5, 1, seed)[:, 0], 1):
                action = env.oracle_action() if policy == "oracle" else single_action(env, number)
                _, _, terminated, truncated, info = env.step(action)
                there = unlimited.step(action)
                check_true(
                    truncated == (t == 5), f"truncated must be True at step 5 alone, the limit, got it at step {t}"
                )
                check_true(terminated == there[2], f"a limit of 5 steps changes terminated of step {t}")
                check_true(info["num_steps"] == t, f"info['num_steps'] is {info['num_steps']} after {t} steps")
                if terminated or truncated or there[3]:
                    break
    env.close()
    unlimited.close()


def check_autoreset(subject: TaskUnderTest) -> None:
    """In every autoreset mode, each environment equals a single one that is reset by hand."""
    numbers = draws(32, 3)
    for mode in ("SameStep", "Disabled"):
        vector = subject.vector(3, autoreset_mode=mode, **subject.short)
        singles = [subject.single(**subject.short) for _ in range(3)]
        observation, _ = vector.reset(seed=9)
        for i, single in enumerate(singles):
            check_same(f"mode {mode}, reset", info_of(observation, i), single.reset(seed=9 + i)[0])
        for t, drawn in enumerate(numbers, 1):
            row = vector.step(vector_actions(vector, drawn))
            expected = [single.step(single_action(single, drawn[i])) for i, single in enumerate(singles)]
            done = row[2] | row[3]
            for i in range(3):
                now = expected[i]
                what = f"mode {mode}, environment {i}"
                if done[i] and mode == "SameStep":
                    check_same(f"{what}: final observation of step {t}", row[4]["final_obs"][i], now[0])
                    check_same(f"{what}: final info of step {t}", info_of(row[4]["final_info"], i), now[4])
                    start, info = singles[i].reset()
                    now = (start, *now[1:4], info)
                _check_row(what, t, row_of(row, i), now)
            if mode == "Disabled" and done.any():
                observation, info = vector.reset(options={"reset_mask": done})
                for i in np.flatnonzero(done).tolist():
                    start, single_info = singles[i].reset()
                    check_same(f"mode {mode}, reset of environment {i} after step {t}", info_of(observation, i), start)
                    check_same(f"mode {mode}, reset of environment {i} after step {t}", info_of(info, i), single_info)
        vector.close()
        for single in singles:
            single.close()


def check_pickle(subject: TaskUnderTest) -> None:
    """A copy by pickle goes on with the same bits, as in other processes."""
    env = subject.vector(2, **subject.short)
    numbers = draws(30, 2)
    env.reset(seed=1)
    for drawn in numbers[:5]:
        env.step(vector_actions(env, drawn))
    try:
        twin = pickle.loads(pickle.dumps(env))
    except Exception as error:  # whatever an attribute raises
        raise ContractError(f"{subject.name} cannot be pickled, as other processes need: {error!r}") from error
    for t, drawn in enumerate(numbers[5:], 6):
        actions = vector_actions(env, drawn)
        for part, one, other in zip(PARTS, twin.step(actions), env.step(actions), strict=True):
            check_same(f"a pickled copy differs: {part} of step {t}", one, other)
    twin.close()
    env.close()
