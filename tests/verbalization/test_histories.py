"""Histories: episodes without replacement, dates, splits, and key frames as arrays."""

import re
from collections import Counter
from datetime import datetime

import numpy as np
import pytest

from memenvs.verbalization.dates import DAY, as_datetime, as_seconds, date_fields, draw_question_time, draw_starts
from memenvs.verbalization.histories import HistorySampler, generate_pool
from memenvs.verbalization.household_config import household
from memenvs.verbalization.key_frames import PARTS, encode_pool, measure_scaling
from memenvs.verbalization.plans import is_held_out
from memenvs.verbalization.splits import SCALES, load_data, split_size
from memenvs.verbalization.symbols import SYMBOLS, Dictionary

FAITHFUL = household("faithful", key_frames="events")
DEBIASED = household("debiased", key_frames="events")


def sample(config, count, length, number, key=(5,)):
    return HistorySampler(config, generate_pool(config, count, (0,)), (length,), number, key)


def test_date_fields():
    edges = [as_seconds(date) for date in (datetime(2021, 12, 31, 23, 59, 59), datetime(2020, 2, 29))]
    assert date_fields(np.array(edges)).tolist() == [[1, 12, 31, 5, 23, 59, 59], [0, 2, 29, 6, 0, 0, 0]]
    seconds = np.random.default_rng(0).integers(0, 29 * 365 * DAY, 1000)
    for row, second in zip(date_fields(seconds).tolist(), seconds.tolist(), strict=True):
        date = as_datetime(second)
        expected = [date.year - 2020, date.month, date.day, date.isoweekday(), date.hour, date.minute, date.second]
        assert row == expected and as_seconds(date) == second


@pytest.mark.parametrize(("count", "tolerance"), [(600, 0.045), pytest.param(5000, 0.025, marks=pytest.mark.nightly)])
def test_references_to_a_day_and_its_part_are_ambiguous_as_published(count, tolerance):
    """Published shares of episodes that share day and part of the day, or rounded hour."""
    for length, part, hour in ((2, 0.18, 0.06), (3, 0.27, 0.11), (5, 0.38, 0.16), (10, 0.41, 0.17)):
        shared = Counter()
        for number in range(count):
            starts = np.array(draw_starts([190] * length, np.random.default_rng([9, length, number])))
            day, second = np.divmod(starts, DAY)
            parts = np.searchsorted([10, 12, 14, 18], second // 3600, side="right")
            for name, keys in (("part", parts), ("hour", (second + 1800) // 3600)):
                pairs = list(zip(day.tolist(), keys.tolist(), strict=True))
                shared[name] += sum(pairs.count(pair) > 1 for pair in pairs)
        assert abs(shared["part"] / count / length - part) < tolerance
        assert abs(shared["hour"] / count / length - hour) < tolerance


def test_days_between_episodes_and_questions():
    steps, per_day, waits, overlaps = [], Counter(), [], 0
    for number in range(500):
        rng = np.random.default_rng([2, number])
        durations = [200, 40_000] * 5  # some end in the night
        starts = draw_starts(durations, rng)
        ends = np.add(starts, durations)
        overlaps += int((ends[:-1] >= starts[1:]).sum())
        short = draw_starts([190] * 10, rng)
        days = np.array(short) // DAY
        steps += [step for step in np.diff(days).tolist() if step]
        per_day.update(np.unique(days, return_counts=True)[1].tolist())
        time = draw_question_time(short[-1] + 190, rng)
        assert time > short[-1] + 190
        waits.append(time // DAY - short[-1] // DAY)
        assert 8 * 3600 <= short[0] % DAY < 20 * 3600
    assert overlaps == 0 and max(per_day) == 5
    steps = np.array(steps)
    assert abs((steps == 1).mean() - 0.89) < 0.03 and 0.003 < (steps > 5).mean() < 0.02 and steps.max() > 20
    waits = np.array(waits)
    assert 0.7 < (waits == 0).mean() < 0.9 and abs((waits >= 7).mean() - 0.1) < 0.04 and waits.max() <= 201


def test_episodes_are_drawn_without_replacement_until_too_few_are_left():
    sampler = sample(FAITHFUL, 10, 3, 9)
    rounds = [[e.number for i in range(k, k + 3) for e in sampler.history(i).episodes] for k in (0, 3, 6)]
    assert all(len(set(numbers)) == 9 for numbers in rounds) and rounds[0] != rounds[1]
    late = sample(FAITHFUL, 10, 3, 50).history(4)  # a function of its number alone
    assert [e.number for e in late.episodes] == rounds[1][3:6] and late.starts == sampler.history(4).starts
    assert sampler.history(0).key != sampler.history(1).key
    sampler = HistorySampler(FAITHFUL, sampler.pool, (1, 2, 3, 5), 40, (5,))
    assert Counter(len(sampler.history(i)) for i in range(40)) == {1: 10, 2: 10, 3: 10, 5: 10}


def test_continuous_histories_are_runs_in_one_house():
    sampler = sample(DEBIASED, 40, 4, 200)
    starts = Counter()
    for history in filter(len, map(sampler.history, range(200))):
        numbers = [episode.number for episode in history.episodes]
        assert numbers == list(range(numbers[0], numbers[0] + 4)) and numbers[0] // 10 == numbers[-1] // 10
        starts[numbers[0] % 10] += 1
        assert history.ends[-1] < history.question_time
    assert set(starts) == {0, 1, 2, 4, 5, 6} and 0 < 200 - starts.total() < 12  # 2 % are empty
    sampler = sample(DEBIASED, 100, 2, 100)
    failures = [any(e.actions[-1].status == "failure" for e in sampler.history(i).episodes) for i in range(100)]
    assert 44 <= sum(failures) <= 50  # half, but for empty ones


def test_splits_and_scales():
    datas = {split: load_data(FAITHFUL, split, (1, 3), "smoke") for split in ("train", "valid", "test")}
    assert [len(data.histories.pool) for data in datas.values()] == [40, 10, 50]
    assert [len(data.histories) for data in datas.values()] == [160, 40, 20]
    plans = [{str(e.actions) for e in data.histories.pool.episodes} for data in datas.values()]
    assert not plans[0] & plans[1] and not plans[0] & plans[2] and not plans[1] & plans[2]
    assert load_data(FAITHFUL, "train", (1, 3), "smoke").frames is datas["train"].frames
    assert datas["test"].dictionary == datas["train"].dictionary
    assert datas["test"].scaling is datas["train"].scaling
    more = load_data(FAITHFUL, "test", (1, 3), "smoke", histories=25).histories
    assert (len(more), len(more.pool)) == (50, 125)  # 2.5 times as many of both
    assert {str(e.actions) for e in more.pool.episodes[:50]} == plans[2]
    assert SCALES["paper"][0].episodes == 3350 and split_size("laptop", "test").questions == 60
    seen = household("debiased", pairs="seen", key_frames="events")
    for split, expected in (("train", {False}), ("unseen_pairs", {True})):
        episodes = load_data(seen, split, (1,), "smoke").histories.pool.episodes
        goals = [goal for e in episodes for goal in e.goals if goal.predicate == "objectAt"]
        assert {is_held_out(goal.object, goal.place) for goal in goals} == expected
    means = []
    for split in ("test", "shift"):
        episodes = load_data(FAITHFUL, split, (1,), "smoke").histories.pool.episodes
        means.append(np.mean([a.duration for e in episodes for a in e.actions if a.verb == "move"]))
    assert 2 < means[1] / means[0] < 4
    long = household("faithful", continuous=True, chain_length=20, key_frames="events")
    assert load_data(long, "test", (20,), "smoke").histories.history(0).num_frames > 50


def test_key_frames_as_arrays():
    data = load_data(FAITHFUL, "train", (2,), "smoke")
    history = data.histories.history(3)
    rows = data.frames.rows(history)
    frames = {name: data.frames.array(name)[rows] for name in PARTS if name != "dt"}
    frames["dt"] = data.frames.dates(history)
    count = history.num_frames
    assert {name: values.shape for name, values in frames.items()} == {
        name: (count, *shape) for name, (shape, _) in PARTS.items()
    }
    raw = [np.concatenate([getattr(e.frames, name) for e in history.episodes]) for name in ("objects", "args", "sub")]
    names = np.array(data.dictionary.symbols)
    assert (names[frames["objects"]] == np.array(SYMBOLS)[raw[0]]).all()
    assert (names[frames["args"]] == np.array(SYMBOLS)[raw[1]]).all() and (frames["args"] == 0).any()
    assert frames["state"].min() == -1
    first = history.episodes[0]
    times = [start + second for start, e in zip(history.starts, history.episodes) for second in e.frames.time.tolist()]  # noqa: B905
    assert np.array_equal(frames["dt"], date_fields(np.array(times)))
    assert times[0] == history.starts[0] and times[len(first.frames)] == history.starts[1]
    empty = np.repeat(raw[0] == 0, 3, axis=1)
    assert empty.any() and not frames["sub"][:, :6][empty].any()
    expected = (raw[2] - data.scaling.mean) / data.scaling.std
    assert np.array_equal(frames["sub"][:, 6:], expected[:, 6:])
    signals, is_filled = data.frames.parts["sub"], data.frames.parts["objects"][:, 0] > 0
    for scaled in (signals[:, 6:], signals[is_filled, :3]):
        assert np.allclose(scaled.mean(0), 0, atol=1e-3) and np.allclose(scaled.std(0), 1, atol=1e-3)
    # Scaled by the training split, the means of another split are not 0.
    assert np.abs(load_data(FAITHFUL, "test", (2,), "smoke").frames.parts["sub"].mean(0)).max() > 1e-2


def test_symbols_without_a_number_are_unknown_and_an_empty_history_has_no_frames():
    pool = generate_pool(FAITHFUL, 5, (0,))
    encoded = encode_pool(pool, Dictionary.of([]), measure_scaling(pool.frames))
    assert set(np.unique(encoded.parts["args"])) == {0, 1}
    sampler = sample(household("faithful", empty_history=1.0, key_frames="events"), 5, 2, 3)
    history = sampler.history(0)
    assert len(history) == 0 and history.question_time > 0
    assert encoded.rows(history).shape == (0,) and encoded.dates(history).shape == (0, 7)


def test_bad_arguments_are_named():
    for call, message in (
        (lambda: sample(FAITHFUL, 5, 6, 1), "length of a history must be an integer of at least 1 and at most 5"),
        (lambda: sample(DEBIASED, 20, 11, 1), "at most 10"),
        (lambda: sample(FAITHFUL, 5, 2, 3).history(3), "number of a history must be an integer"),
        (lambda: load_data(FAITHFUL, "training"), "unknown split 'training'"),
        (lambda: load_data(FAITHFUL, scale="huge"), "unknown scale 'huge'"),
        (lambda: load_data(FAITHFUL, scale="smoke", histories=0), "histories must be an integer of at least 1"),
        (lambda: sample(household(failure=(0.0,) * 3, failure_histories=0.5), 5, 1, 4).history(1), "no run of 1 of"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()


def test_histories_of_two_splits_have_keys_and_dates_of_their_own():
    """Keys seed the questions; equal ones would ask the same of training and test."""
    datas = [load_data(FAITHFUL, split, (3,), "smoke").histories for split in ("train", "valid", "test")]
    histories = [[data.history(number) for number in range(10)] for data in datas]
    assert len({history.key for each in histories for history in each}) == 30
    for number in range(10):
        assert len({each[number].starts[0] for each in histories}) == 3
