"""Rules of EpisodicQA: a hand-made history, gold answers, windows, and even sampling."""

from typing import Any

import numpy as np
import pytest

from memenvs.certificates.playing import played_steps
from memenvs.core import TrialVectorEnv
from memenvs.registry import find_environment
from memenvs.rules import PREVIOUS_ACTION, Rule, RuleError, Window, make_rule
from memenvs.task import Observation
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dates import date_fields
from memenvs.verbalization.dialogs import load_dialogs
from memenvs.verbalization.env import QUESTION, EpisodicQA
from memenvs.verbalization.key_frames import COLUMNS, ROW_WIDTH, read_history
from memenvs.verbalization.language.questions import Question
from memenvs.verbalization.language.sampler import answer_question
from memenvs.verbalization.language.times import parse_time
from memenvs.verbalization.language.tokenizer import QUERY_TOKENS, TOKENIZER, query_text
from memenvs.verbalization.language.tuples import NEXT
from memenvs.verbalization.language.wordings import KINDS
from memenvs.verbalization.likeliest import TextOnly
from memenvs.verbalization.rules import FactLog, LikeliestAnswer
from memenvs.verbalization.symbols import SYMBOLS
from tests.verbalization.lives import second

STARTED, DONE, FAILED = 0, 1, 2
NONE = -1
#: The day before the question: at 9:12 the green cup comes to the sink, at 16:40 grasping the corn fails.
MORNING, AFTERNOON, NOW = second(2021, 7, 5, 9, 12), second(2021, 7, 5, 16, 40), second(2021, 7, 6, 15, 0)
LEFT = "handleft3a"
KEY_FRAMES = (
    # second, action, its arguments, status of the task, of the action
    (MORNING, "move", ("Armar3", "roomcenter", "sideboard"), NONE, STARTED),
    (MORNING + 12, "move", ("Armar3", "roomcenter", "sideboard"), NONE, DONE),
    (MORNING + 13, "grasp", ("Armar3", LEFT, "sideboard", "greencup"), NONE, STARTED),
    (MORNING + 47, "grasp", ("Armar3", LEFT, "sideboard", "greencup"), NONE, DONE),
    (MORNING + 48, "move", ("Armar3", "sideboard", "sink"), NONE, STARTED),
    (MORNING + 60, "move", ("Armar3", "sideboard", "sink"), NONE, DONE),
    (MORNING + 61, "putdown", ("Armar3", LEFT, "sink", "greencup"), NONE, STARTED),
    (MORNING + 300, "putdown", ("Armar3", LEFT, "sink", "greencup"), 0, DONE),
    (AFTERNOON, "move", ("Armar3", "roomcenter", "countertop"), NONE, STARTED),
    (AFTERNOON + 20, "move", ("Armar3", "roomcenter", "countertop"), NONE, DONE),
    (AFTERNOON + 21, "grasp", ("Armar3", LEFT, "countertop", "corn"), NONE, STARTED),
    (AFTERNOON + 80, "grasp", ("Armar3", LEFT, "countertop", "corn"), 2, FAILED),
)
GOALS = {MORNING: "objectAt(greencup,sink)", AFTERNOON: "objectAt(corn,roundtable)"}
WHERE = Question("location.object", object="greencup")
PROBLEMS = Question("problems.interval", time=parse_time("yesterday", NOW))
#: The hour of the failure is 16, its minute 41: it ended 80 seconds after 16:40.
PROBLEMS_ANSWER = ("verb grasp", "object corn", "outcome failure", "day 1", "hour 16", "minute 41")


def key_frame_rows(symbols: tuple[str, ...] = SYMBOLS) -> np.ndarray:
    """The key frames as numbers, int16 (12, ROW_WIDTH)."""
    number = {name: k for k, name in enumerate(symbols)}
    rows = np.zeros((len(KEY_FRAMES), ROW_WIDTH), np.int16)
    for row, (time, action, arguments, task_status, status) in zip(rows, KEY_FRAMES, strict=True):
        row[COLUMNS["dt"]] = date_fields(np.array(time))
        goal = GOALS[AFTERNOON if time >= AFTERNOON else MORNING]
        row[COLUMNS["goal"]] = [number.get(goal, 1), 0, 0, 0, 0]
        row[COLUMNS["action"]] = number[action]
        row[COLUMNS["args"]][: len(arguments)] = [number[symbol] for symbol in arguments]
        row[COLUMNS["state"]] = [task_status, status, NONE, NONE]
    return rows


def make(num_envs: int = 1, **settings: Any) -> TrialVectorEnv:
    made = {**find_environment("EpisodicQA-v0").defaults, "scale": "smoke", "split": "test", **settings}
    return TrialVectorEnv(EpisodicQA, num_envs, autoreset_mode="Disabled", **made)


@pytest.fixture(scope="module")
def task() -> EpisodicQA:
    """A task that shows four key frames in a step, with questions of all kinds."""
    return make(frames_per_step=4, kinds=KINDS).task


def play(env: TrialVectorEnv, rule: Rule, seeds: range) -> list[dict[str, Any]]:
    """Last info of the trial of each seed, with the largest `steps_back` as "back"."""
    ends: list[dict[str, Any]] = [{} for _ in seeds]
    back = np.zeros(env.num_envs, int)
    for step in played_steps(env, rule, list(seeds)):
        needed = rule.steps_back()
        back = np.where(step.first, 0, back)
        back = back if needed is None else np.maximum(back, needed)
        for i in np.flatnonzero(step.terminated & (step.trial >= 0)).tolist():
            ends[step.trial[i]] = {key: value[i] for key, value in step.info.items()} | {"back": int(back[i])}
    return ends


def test_key_frames_are_read_as_what_happened() -> None:
    read = read_history(key_frame_rows(), SYMBOLS, NOW)
    history = read.history
    assert history.starts == (MORNING, AFTERNOON) and history.ends == (MORNING + 300, AFTERNOON + 80)
    assert [len(episode.actions) for episode in history.episodes] == [4, 2] and read.last_row == (7, 11)
    assert [episode.outcomes for episode in history.episodes] == [(True,), (False,)]
    grasp = history.episodes[0].actions[1]
    assert (grasp.object, grasp.location, grasp.hand, grasp.start, grasp.end) == ("greencup", "sideboard", LEFT, 13, 47)
    assert answer_question(history, WHERE).text == "I put it on the sink."
    assert answer_question(history, PROBLEMS).text == "Yes, i failed to grasp the corn yesterday at 16:41."
    rows = key_frame_rows()[6:]  # of the first episode the last two key frames; its other goal was reached before
    rows[:2, COLUMNS["goal"].start + 1] = SYMBOLS.index("grasped(handright3a,oil)")
    end = read_history(rows, SYMBOLS, NOW).history
    assert end.starts == (MORNING + 61, AFTERNOON)
    assert [episode.outcomes for episode in end.episodes] == [(True, True), (False,)]


def hand_made(task: EpisodicQA, question: Question, spelled: list[str], step: int) -> Observation:
    """Observation of one environment at a step: 3 steps of 4 key frames, then a question."""
    spaces = task.observation_space.spaces
    observation = {key: np.zeros((1, *space.shape), space.dtype) for key, space in spaces.items()}
    observation[PREVIOUS_ACTION] = np.zeros(1, np.int64)
    if step < 3:
        rows = key_frame_rows(task.dialogs.data.dictionary.symbols)[4 * step : 4 * step + 4]
        observation["frame_mask"][:] = 1
        for part, columns in COLUMNS.items():
            observation[f"frame_{part}"][0] = rows[:, columns].reshape(observation[f"frame_{part}"][0].shape)
        return observation
    observation["phase"][:] = QUESTION + (step > 3)
    tokens = TOKENIZER.encode(query_text(NOW, question.text))
    observation["query"][0, : len(tokens)] = tokens
    assert len(tokens) <= QUERY_TOKENS
    actions, clause = task.dialogs.fact_actions, 0
    for name in spelled:
        action = actions.names.index(name)
        clause += action == NEXT
        if action > NEXT:
            observation["prefix"][0, clause, [0, actions.slot[action]]] = 1, actions.value[action]
        observation[PREVIOUS_ACTION][:] = 1 + action
    return observation


def spell(rule: Rule, task: EpisodicQA, question: Question) -> tuple[tuple[str, ...], list[int]]:
    """Names of a rule's answering actions about the two episodes, and its `steps_back`."""
    rule.forget(np.ones(1, bool))
    rule.begin_episode(np.ones(1, bool))
    spelled, back = [], []
    for step in range(20):
        observation = hand_made(task, question, spelled, step)
        rule.see(observation)
        action = task.action_names[int(rule.choose(observation)[0])]
        if step < 3:
            continue
        needed = rule.steps_back()
        back += [] if needed is None else [int(needed[0])]
        if action == "stop":
            return tuple(spelled), back
        spelled.append(action)
    raise AssertionError(spelled)


def test_ideal_by_hand(task: EpisodicQA) -> None:
    """The cup was seen last two steps before the question, the corn one step."""
    assert spell(FactLog(task), task, WHERE) == (("verb putdown", "location sink"), [2, 3, 4])
    assert spell(FactLog(task), task, PROBLEMS) == (PROBLEMS_ANSWER, [1, 2, 3, 4, 5, 6, 7])
    everything = Question("summary.period", time=parse_time("yesterday", NOW))
    assert spell(FactLog(task), task, everything)[1][0] == 2  # of both episodes the older one counts
    never = Question("location.object", object="oil")
    assert spell(FactLog(task), task, never)[0] == ("outcome denial",)
    assert spell(FactLog(task), task, Question("how_often.visit", location="sink"))[0] == ("quantity 1",)
    assert spell(FactLog(task), task, Question("clock.date"))[0] == ("hour 7", "minute 6")


def test_windows_by_hand(task: EpisodicQA) -> None:
    """With two observations the failure is in view, but the cup is not; ten hold everything."""
    likeliest = spell(LikeliestAnswer(task), task, WHERE)[0]
    assert spell(Window(FactLog(task), 2), task, WHERE)[0] == likeliest != ("verb putdown", "location sink")
    assert spell(Window(FactLog(task), 10), task, WHERE)[0] == ("verb putdown", "location sink")
    assert spell(Window(FactLog(task), 10), task, PROBLEMS)[0] == PROBLEMS_ANSWER
    assert spell(Window(FactLog(task), 2), task, PROBLEMS)[0][0] == PROBLEMS_ANSWER[0]  # then it is out of view


@pytest.mark.parametrize("answer_mode", ["structured", "tokens"])
def test_ideal_has_the_gold_answer_of_every_kind(answer_mode: str) -> None:
    """In the training split, which has a number for each of its symbols."""
    env = make(20, kinds=KINDS, answer_mode=answer_mode, lengths=(1, 2, 5), split="train")
    ends = play(env, FactLog(env.task), range(60))
    assert {end["kind"] for end in ends} >= {"action", "location", "object", "past_time", "duration", "summary"}
    assert [(end["query_text"], end["gold_answer"]) for end in ends if not end["success"]] == []


def test_answers_do_not_depend_on_other_environments() -> None:
    many, one = make(4, frames_per_step=4), make(frames_per_step=4)
    together = play(many, FactLog(many.task), range(8))
    alone = [end for seed in range(8) for end in play(one, FactLog(one.task), range(seed, seed + 1))]
    for a, b in zip(together, alone, strict=True):
        assert (a["gold_answer"], a["num_steps"], a["back"]) == (b["gold_answer"], b["num_steps"], b["back"])


def test_key_frames_without_what_is_needed_are_refused() -> None:
    env = make(modalities=("date", "signals"))
    with pytest.raises(RuleError, match=r"modalities must have .* got no \['symbols', 'statuses'\]"):
        make_rule("memenvs.verbalization.rules:FactLog", env.task)
    assert make_rule("memenvs.verbalization.rules:LikeliestAnswer", env.task).way == "present"


@pytest.mark.parametrize(
    ("count", "tolerance", "settings"),
    [
        (200, 0.055, {"scale": "smoke"}),
        (200, 0.055, {"scale": "smoke", "kinds": ("action",)}),
        pytest.param(1000, 0.03, {"data_seed": 0}, marks=pytest.mark.nightly),
        pytest.param(1000, 0.03, {"data_seed": 1}, marks=pytest.mark.nightly),
    ],
)
def test_histories_and_distances_are_even(count: int, tolerance: float, settings: dict[str, Any]) -> None:
    """Standard error of a share of 500 questions: 1.8 points. Of actions the newest has 32 % in published sampling."""
    dialogs = load_dialogs(EpisodicQAConfig(lengths=(5,), sampling="even", histories=count, **settings))
    assert min(len(dialogs.history(number)) for number in range(count)) >= 5  # none is empty
    distances = [dialogs.question(dialogs.usable(number), k).qa.distance for number in range(count) for k in range(4)]
    shares = np.bincount([distance or 0 for distance in distances], minlength=6)[1:]
    shares = shares / shares.sum()
    assert len(shares) == 5 and np.abs(shares - 1 / 5).max() < tolerance, shares


def test_text_only_says_what_it_has_learned() -> None:
    dialogs = load_dialogs(EpisodicQAConfig(scale="smoke", sampling="even"))
    training = [dialogs.question(dialogs.usable(number), k).qa for number in range(60) for k in range(8)]
    model = TextOnly(training)
    assert model.answer(Question("clock.time"), NOW) is None  # not among the kinds of the environment
    question = Question("problems.specific", verb="go", location="sink")
    answer = model.answer(question, NOW)
    assert answer is not None and answer[0].outcome in ("success", "failure")
