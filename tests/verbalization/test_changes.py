"""Overwritten answers and distractor days."""

import re

import numpy as np
import pytest

from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dates import DAY
from memenvs.verbalization.dialogs import load_dialogs
from memenvs.verbalization.episodes import History
from memenvs.verbalization.histories import HistorySampler, generate_pool
from memenvs.verbalization.household_config import household
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.questions import Question, candidates, last_change
from memenvs.verbalization.language.sampler import answer_question
from memenvs.verbalization.splits import life_data
from tests.rule_scores import scores, windowed
from tests.verbalization.lives import make_episode, second
from tests.verbalization.test_env import make


def carry(symbol: str, place: str):
    """An episode in which an object is brought from the sideboard to a place."""
    steps = [
        ("grasp", "sideboard", symbol, 0, 10, True),
        ("move", place, None, 11, 20, True),
        ("putdown", place, symbol, 21, 30, True),
    ]
    return make_episode([("objectAt", symbol, place)], [True], steps, start="sideboard")


def life(*carried: tuple[str, str]) -> Log:
    """Days on each of which one object is brought somewhere."""
    episodes = tuple(carry(*one) for one in carried)
    starts = tuple(second(2021, 7, 5 + day, 9, 0) for day in range(len(episodes)))
    return Log(History(episodes, starts, second(2021, 7, 20, 15, 0)))


def changes(log: Log, question: Question) -> list[int | None]:
    return [last_change(log, question, item) for item in candidates(log, question)]


def test_what_is_overwritten_by_hand():
    """The cup comes to the sink, to the round table and to the small table; the corn to the sink."""
    log = life(("greencup", "sink"), ("greencup", "roundtable"), ("corn", "sink"), ("greencup", "smalltable"))
    assert changes(log, Question("location.object", object="greencup")) == [3, 3, None]
    assert changes(log, Question("location.object", object="corn")) == [None]
    assert changes(log, Question("object.moved", location="sink")) == [2, None]
    assert changes(log, Question("action.open")) == [None] * 4
    assert changes(log, Question("duration.act", verb="putdown", object="greencup")) == [None] * 3
    back = life(("greencup", "sink"), ("greencup", "roundtable"), ("greencup", "sink"))
    assert changes(back, Question("location.object", object="greencup")) == [None, 2, None]  # the first is true again


def dialogs_of(**settings):
    return load_dialogs(EpisodicQAConfig(**{"scale": "smoke", "split": "test", "sampling": "even", **settings}))


@pytest.mark.slow
def test_drawn_questions_are_about_what_was_overwritten():
    """By a walk over the actions: the object was put elsewhere later, or another one was brought to the location."""
    seen = set()
    for recency, lengths in (("newest", (5,)), ("recent", (5,)), ("old", (10,))):
        dialogs = dialogs_of(overwritten=(recency,), lengths=lengths)
        for number in map(dialogs.usable, range(6)):
            history = dialogs.history(number)
            for k in range(8):
                qa = dialogs.question(number, k).qa
                question, (episode,) = qa.question, qa.episodes
                if question.family == "location.object":
                    put = ("putdown", question.object, "success")
                    values = [
                        (n, action.location)
                        for n, one in enumerate(history.episodes)
                        for action in one.actions
                        if (action.verb, action.object, action.status) == put
                    ]
                else:
                    values = [
                        (n, goal.object)
                        for n, one in enumerate(history.episodes)
                        for goal, is_reached in zip(one.goals, one.outcomes, strict=True)
                        if is_reached and goal.place == question.location
                    ]
                newest = values[-1][0]
                then, now = ({value for n, value in values if n == at} for at in (episode, newest))
                assert then != now and qa.last_change == len(history) - newest
                assert qa.recency == recency
                seen.add((recency, question.family))
    assert len(seen) == 6


def test_distractor_days_follow_the_same_history():
    """Two episodes a day in another house, one day after the other; the history before stays."""
    for preset, chain in (("debiased", 10), ("faithful", 1)):
        config, more = (household(preset, key_frames="events", distractors=days) for days in (0, 4))
        pool = generate_pool(config, 60, (0,))
        alone, with_days = (HistorySampler(one, pool, (5,), 12, (5,)) for one in (config, more))
        for number in range(12):
            own, history = alone.history(number), with_days.history(number)
            if not len(own):
                assert history == own
                continue
            assert (history.own.episodes, history.own.starts) == (own.episodes, own.starts)
            assert (len(history), history.distractors) == (13, 8)
            days = [start // DAY for start in history.starts[5:]]
            assert days[::2] == days[1::2]
            assert [*np.diff([own.ends[-1] // DAY, *days[::2]])] == [1, 1, 1, 1]
            assert all(start % DAY >= 8 * 3600 for start in history.starts)
            ends = history.ends
            assert all(end < start for end, start in zip(ends, history.starts[1:], strict=False))
            assert history.question_time > ends[-1]
            numbers = [episode.number for episode in history.episodes]
            assert not {k // chain for k in numbers[:5]} & {k // chain for k in numbers[5:]}
            if chain > 1:
                assert all(second_ == first + 1 for first, second_ in zip(numbers[5::2], numbers[6::2], strict=True))
    assert life_data(more, 3, 0, "smoke").histories.history(0).distractors == 0


def test_questions_are_about_the_days_before_the_distractors():
    """The answer is that of all days, and of the own days alone."""
    dialogs = dialogs_of(distractors=4, lengths=(5,))
    kinds = set()
    for number in map(dialogs.usable, range(8)):
        history = dialogs.history(number)
        for k in range(12):
            qa = dialogs.question(number, k).qa
            assert all(episode < 5 for episode in qa.episodes)
            assert qa.distance is None or 8 < qa.distance <= 13
            for days in (history, history.own):
                again = answer_question(days, qa.question, hands=True)
                assert {clause._replace(time=None) for clause in again.clauses} == {
                    clause._replace(time=None) for clause in qa.answer.clauses
                }
            kinds.add(qa.kind)
    assert len(kinds) == 5


@pytest.mark.slow
def test_an_ideal_memory_holds_against_distractor_days():
    """A window of eight steps holds the own days of five episodes, but not with ten days after them."""
    id = "EpisodicQA-v0"
    for days, bounds in ((0, (0.8, 1.0)), (10, (0.0, 0.5))):
        settings = {"split": "test", "scale": "smoke", "distractors": days}
        assert scores(id, "ideal", 30, **settings).mean() == 1.0
        assert bounds[0] <= scores(id, windowed(id, 8), 30, **settings).mean() <= bounds[1]


def test_bad_settings_are_named():
    for settings, error, message in (
        ({"overwritten": ("never",)}, ValueError, "overwritten: unknown 'never'; choose from"),
        ({"overwritten": ("old", "old")}, ValueError, "overwritten must have at least one of"),
        ({"overwritten": ("old",), "kinds": ("action",)}, ValueError, "overwritten must be () without kinds ['loc"),
        ({"overwritten": ("old",), "lengths": (2,)}, ValueError, "was overwritten as in ('old',)"),
        ({"overwritten": "old"}, TypeError, "overwritten must be a list of names"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            make(**settings).reset(seed=0)
    with pytest.raises(ValueError, match="distractors must be 0 in houses of 1 episodes"):
        household("debiased", chain_length=1, distractors=1)
    alone = household("debiased", distractors=1)
    with pytest.raises(ValueError, match="distractors must be 0 in a pool without other houses, got 1"):
        HistorySampler(alone, generate_pool(alone, 10, (0,)), (5,), 1, (0,))
