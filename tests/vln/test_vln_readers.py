"""The scripted readers in a corridor by hand, and what they score in procedural houses."""

import math

import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.rules import PREVIOUS_ACTION, Rule, Window
from memenvs.task import Observation
from memenvs.vln.cvdn import CVDN
from memenvs.vln.env import GraphNavigation
from memenvs.vln.ideal_reader import IdealReader
from memenvs.vln.r2r import R2R
from memenvs.vln.scripted_reader import NAMES, Reader, ReaderView
from memenvs.vln.worlds.procedural.houses import Landmark
from memenvs.vln.worlds.procedural.texts import AHEAD, BACK, LEFT, RIGHT, SubInstruction
from tests.rule_scores import play_each

DEN = Landmark(("den",), ("red", "drum"))
GYM = Landmark(("gym",), ("blue", "vase"))
ATTIC = Landmark(("attic",), ("pink", "safe"))
#: From the den ahead to the gym, back to the den, again to the gym, back, and from the den to the attic on the right.
CLAUSES = (
    SubInstruction(AHEAD, GYM, GYM),
    SubInstruction(BACK, DEN, DEN),
    SubInstruction(BACK, GYM, GYM),
    SubInstruction(BACK, DEN, DEN),
    SubInstruction(RIGHT, ATTIC, ATTIC),
)
HERE, THERE = 1.0, 0.2  # weights of the names of a viewpoint in its own views, and of a neighbour in that towards it


def make_view(here: Landmark, *neighbours: tuple[Landmark, float], clauses=CLAUSES) -> ReaderView:
    """A clear view of neighbours in these directions, degrees to the right."""
    weights = np.zeros((len(neighbours), len(NAMES)))
    for row, (there, _) in zip(weights, neighbours, strict=True):
        for landmark, weight in ((here, HERE), (there, THERE)):
            row[[NAMES.index(name) for name in (*landmark.rooms, *(landmark.item or ()))]] += weight
    angles = np.radians([angle for _, angle in neighbours])
    return ReaderView(np.arange(len(neighbours)), angles, weights, clauses, None)


class ReaderOfViews(IdealReader):
    """An ideal reader whose one observation is a view."""

    def views(self, observation: Observation) -> list[ReaderView]:
        return list(observation["view"])


@pytest.fixture(scope="module")
def task() -> GraphNavigation:
    return R2R(1, split="val_unseen")


def walk(rule: Rule, views: list[ReaderView], moves: list[int]) -> list[int]:
    """Actions that the rule chooses on a given path, from the start of an episode on."""
    rule.forget(np.array([True]))
    rule.begin_episode(np.array([True]))
    chosen = []
    for view, move in zip(views, [-1, *moves], strict=True):
        observation = {"view": [view], PREVIOUS_ACTION: np.array([1 + move])}
        rule.see(observation)
        chosen.append(int(rule.choose(observation)[0]))
    return chosen


#: The walk that the clauses describe. In the den after the start the gym is behind, the attic on the right.
IN_GYM = make_view(GYM, (DEN, 180.0))
IN_DEN = make_view(DEN, (GYM, 180.0), (ATTIC, 90.0))
VIEWS = [make_view(DEN, (GYM, 0.0), (ATTIC, -90.0)), IN_GYM, IN_DEN, IN_GYM, IN_DEN, make_view(ATTIC, (DEN, 180.0))]
MOVES = [0, 0, 0, 0, 1]


def test_the_ideal_reader_counts_the_clauses_that_the_view_does_not(task):
    """At the den it goes back the first time and to the right the second time, though it sees the same."""
    stop = task.stop
    assert walk(ReaderOfViews(task), VIEWS, MOVES) == [0, 0, 0, 0, 1, stop]
    short = walk(Window(ReaderOfViews(task), 2), VIEWS, MOVES)
    assert short[2] == short[4]  # two views, the gym and the den, are the same both times
    assert walk(Window(ReaderOfViews(task), 5), VIEWS, MOVES) == [0, 0, 0, 0, 1, stop]


def test_going_straight_on_ends_where_the_clause_says(task):
    """One clause, den to attic over the gym: straight on in the gym, stop in the attic."""
    clauses = (SubInstruction(LEFT, GYM, ATTIC),)
    views = [
        make_view(DEN, (GYM, -90.0), (ATTIC, 90.0), clauses=clauses),
        make_view(GYM, (DEN, 180.0), (ATTIC, 0.0), clauses=clauses),
        make_view(ATTIC, (GYM, 180.0), (DEN, 0.0), clauses=clauses),
    ]
    rule = ReaderOfViews(task)
    assert walk(rule, views, [0, 1]) == [0, 1, task.stop]
    assert rule.bits == pytest.approx(math.log2(10))


def test_steps_back_since_the_view_alone_was_enough(task):
    rule = ReaderOfViews(task)
    steps = []
    for count in range(1, 5):
        walk(rule, VIEWS[:count], MOVES[: count - 1])
        steps.append(rule.steps_back().tolist())
    assert steps == [[0], [1], [2], [3]]  # the gym and the den come twice
    walk(rule, VIEWS, MOVES)
    assert rule.steps_back().tolist() == [0]  # the attic comes once


@pytest.mark.slow
def test_three_legs_need_a_memory():
    """Bands around what 240 episodes have: memoryless .05, a window of 4 .39, ideal .88."""
    env = TrialVectorEnv(R2R, 24, split="val_unseen", trial_episodes=1, autoreset_mode="Disabled")
    layouts = range(0, env.task.num_layouts, env.task.num_layouts // 23)[:24]
    rules = Reader(env.task), Window(IdealReader(env.task), 4), IdealReader(env.task)
    memoryless, window, ideal = (play_each(env, rule, "success", layouts).mean() for rule in rules)
    assert memoryless < 0.2 < 0.75 < ideal and 0.15 < window < 0.6


def test_of_a_dialogue_the_answers_about_the_legs_are_read():
    """All answers are about what lies ahead with several legs, the last one alone with one leg."""
    for legs in (1, 2, 3):
        task = CVDN(1, split="val_unseen", legs=legs)
        world = task.world
        for number in range(0, world.num_episodes, 211):
            task.begin_episode(0, np.random.default_rng(0), {"layout": number})
            tokens = task.tokenizer.encode(world.episode(number).text, world.max_tokens, too_long="error")
            clauses, target = Reader(task)._read(np.asarray(tokens, np.int64).tobytes())
            assert target is not None and f"[TAR] {NAMES[target]}" in world.episode(number).text
            if legs > 1:
                assert clauses == world.clauses(number)
