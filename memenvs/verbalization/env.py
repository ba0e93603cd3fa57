"""EpisodicQA: live through the days of a robot, then answer questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import gymnasium as gym
import numpy as np

from memenvs.checks import is_int
from memenvs.task import BatchTask, Observation, Options
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dialogs import Dialogs, EncodedQuestion, FrameChunks, load_dialogs
from memenvs.verbalization.diary import draw_timeline
from memenvs.verbalization.key_frames import PARTS
from memenvs.verbalization.language.facts import MAX_CLAUSES
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.score import CORRECT, TMI_CORRECT, TMI_WRONG, Score, score_answer, score_clauses
from memenvs.verbalization.language.tokenizer import ANSWER_TOKENS, END, QUERY_TOKENS, TOKENIZER
from memenvs.verbalization.language.tuples import (
    MAX_FACTS,
    SLOT_SIZES,
    SLOTS,
    STOP,
    TupleAnswers,
    describe_tuples,
    tuples_to_clauses,
)

#: Phases: key frames come, a question comes, and the further steps of its answer.
STREAM, QUESTION, ANSWER = 0, 1, 2
#: Numbers in `info`: the fields of a `Score`, then three of the question.
NUMBERS = (*Score._fields, "distance", "last_change", "history_length")


@dataclass(frozen=True)
class DialogState:
    """State of N environments: their histories, questions and answers so far.

    Attributes:
        history: int64, (N,); number of the history, which stays over the episodes of a trial.
        question: int64, (N,); number of the first question.
        questions: Questions of each environment, in the order in which they are put.
        stops: For each question of each environment the number of steps with key frames before it.
        frames: int32, (N, C, F); rows of `Dialogs.tables` of each of C steps.
        dates: int16, (N, C, F, 7); their dates.
        chunk: int64, (N,); step with key frames that is shown, or comes next.
        next_stop: int64, (N,); step before which the next question comes.
        phase: int64, (N,); `STREAM`, `QUESTION` or `ANSWER`.
        answered: int64, (N,); questions that have been answered.
        query: int32, (N, 64); tokens of the present question, or of the last one.
        tuples: Structured answers so far.
        tokens: int32, (N, 128); answers in words so far.
        spelled: int64, (N,); actions of the present answer.
        f1: float64, (N,); mean F1 of the answers so far.
        all_correct: bool, (N,); no answer was wrong.
        kind: object, (N,); kind of the present question, or of the last one.
        gold: int16, (N, 8, 10); its gold answer as tuples.
        gold_answer: object, (N,); its gold answer in words.
        query_text: object, (N,); its words.
        numbers: int64, (N, 7); see `NUMBERS`.
    """

    history: np.ndarray
    question: np.ndarray
    questions: list[tuple[EncodedQuestion, ...]]
    stops: list[list[int]]
    frames: np.ndarray
    dates: np.ndarray
    chunk: np.ndarray
    next_stop: np.ndarray
    phase: np.ndarray
    answered: np.ndarray
    query: np.ndarray
    tuples: TupleAnswers
    tokens: np.ndarray
    spelled: np.ndarray
    f1: np.ndarray
    all_correct: np.ndarray
    kind: np.ndarray
    gold: np.ndarray
    gold_answer: np.ndarray
    query_text: np.ndarray
    numbers: np.ndarray

    @classmethod
    def of(cls, num_envs: int, dialogs: Dialogs) -> DialogState:
        """Make the state of environments that have not begun."""
        count = partial(np.zeros, num_envs, np.int64)
        text = partial(np.full, num_envs, "", object)
        frames = np.full((num_envs, dialogs.max_chunks, dialogs.config.frames_per_step), dialogs.blank, np.int32)
        return cls(
            history=count(),
            question=count(),
            questions=[() for _ in range(num_envs)],
            stops=[[] for _ in range(num_envs)],
            frames=frames,
            dates=np.zeros((*frames.shape, 7), np.int16),
            chunk=count(),
            next_stop=count(),
            phase=count(),
            answered=count(),
            query=np.zeros((num_envs, QUERY_TOKENS), np.int32),
            tuples=TupleAnswers(num_envs, dialogs.fact_actions),
            tokens=np.zeros((num_envs, ANSWER_TOKENS), np.int32),
            spelled=count(),
            f1=np.zeros(num_envs),
            all_correct=np.ones(num_envs, bool),
            kind=text(),
            gold=np.zeros((num_envs, MAX_CLAUSES, len(SLOTS)), np.int16),
            gold_answer=text(),
            query_text=text(),
            numbers=np.zeros((num_envs, len(NUMBERS)), np.int64),
        )

    def begin(
        self, i: int, question: int, questions: Sequence[EncodedQuestion], chunks: FrameChunks, episodes: int
    ) -> None:
        """Begin an episode of an environment about its history.

        Args:
            i: Index of the environment.
            question: Number of the first question.
            questions: Its questions.
            chunks: Its key frames.
            episodes: Episodes of the history.
        """
        self.question[i] = question
        self.questions[i], self.stops[i] = tuple(questions), chunks.stops
        self.frames[i, : len(chunks.rows)], self.dates[i, : len(chunks.rows)] = chunks.rows, chunks.dates
        self.chunk[i] = self.answered[i] = 0
        self.f1[i], self.all_correct[i] = 0.0, True
        self.numbers[i] = 0
        self.numbers[i, NUMBERS.index("history_length")] = episodes
        self.put_question(i)

    def put_question(self, i: int) -> None:
        """Prepare the next question of an environment; key frames may come before it."""
        encoded = self.questions[i][self.answered[i]]
        self.next_stop[i] = self.stops[i][self.answered[i]]
        self.phase[i] = QUESTION if self.chunk[i] == self.next_stop[i] else STREAM
        self.query[i], self.gold[i] = encoded.query, encoded.tuples
        self.kind[i], self.query_text[i] = encoded.qa.kind, encoded.qa.question.text
        self.gold_answer[i] = encoded.qa.answer.text
        self.numbers[i, NUMBERS.index("distance")] = encoded.qa.distance or 0
        self.numbers[i, NUMBERS.index("last_change")] = encoded.qa.last_change or 0
        self.tuples.clear(i)
        self.tokens[i] = 0
        self.spelled[i] = 0

    def present_question(self, i: int) -> EncodedQuestion:
        """Return the question that is put, or comes next; after the last answer the last one."""
        return self.questions[i][min(self.answered[i], len(self.questions[i]) - 1)]


class EpisodicQA(BatchTask):
    """See the key frames of a history of episodes once, then answer questions about it.

    Key frames come in order, some at each step, with their dates. Then comes a question, and no key frame is seen
    again: what is not in memory is lost. The question is not known before. The answer is spelled by actions: one fact
    each (`answer_mode="structured"`), or one token of its words each ("tokens").

    Observation:
        phase: int; 0 while key frames come, 1 at a question, 2 at the further steps of its answer.
        frame_dt: int16, (F, 7); year - 2020, month, day, weekday (Monday 1), hour, minute, second.
        frame_goal: int16, (F, 5); predicates of the planner's goal, numbers of the dictionary, 0 for none.
        frame_action: int16, (F,); action that starts or ends in the frame.
        frame_args: int16, (F, 5); its arguments.
        frame_objects: int16, (F, 2); objects or hands that are newly seen or updated.
        frame_state: int8, (F, 4); statuses of the task, the action and the two objects; -1 for none.
        frame_sub: float32, (F, 129); signals: positions of the two objects, pose of the platform, joints; scaled by the
            training split.
        frame_latent: float32, (F, 2048); with the modality "images" alone.
        frame_mask: int8, (F,); 1 where there is a key frame. All `frame_` arrays are 0 elsewhere and in phases 1, 2.
        query: int32, (64,); tokens of the question's time and words; 0 in phase 0.
        prefix: What the answer says so far: int16, (8, 10), tuples, or with "tokens" int32, (128,).

    Action:
        "structured": `Discrete`; 0 ends the answer, 1 starts its next clause, each other one sets a slot of the clause,
        such as its verb, object or day; `action_names` has their names. "tokens": a token of the vocabulary; 1 ends the
        answer. Actions in phase 0 are ignored.

    Reward:
        At the end of an answer the F1 of its facts, 0 to 1 ("f1"), or 1 if it is entirely right ("correct"); else 0.

    Termination:
        After the last answer. An answer ends after 8 clauses, 80 facts or 128 tokens at the latest. Nothing truncates.

    Layout:
        Number of the history in its split. If a history allows no question of the kinds, the next one that does.

    Options:
        question: Number of the first question about the history; the others follow it. Drawn by default.

    Info:
        question: As in the options.
        kind: Kind of the present question, or of the last one.
        category: Category of the last answer, 1 to 7; 2 is correct, 0 before the first answer.
        correct, incorrect, expected: Number of its facts that were right, that were wrong, and that were expected.
        distance: Reference distance of the question: 1 if it means the newest episode; 0 if it means none.
        last_change: The same of the newest episode that has overwritten the answer, without counting distractor days; 0
            if none has.
        history_length: Number of episodes, with those of distractor days.
        gold: int16, (8, 10); facts of the gold answer.
        gold_answer: Gold answer in words.
        query_text: The question in words.
        f1: Mean F1 of the answers so far.
        success: True if every answer so far is correct.

    Without memory:
        The most frequent answer to each question, learned from the training split with the question's names and the
        kind of its time (`rules.LikeliestAnswer`), is entirely right in 22 % of the test questions of EpisodicQA-v0
        (action 2, problems 57, location 18, object 6, how often 32), 21 % of Long and 37 % of Tiny. Its mean F1 is
        0.34, 0.33 and 0.64, as the question gives the verb away. So `success` is the score, and `reward="correct"` pays
        for it alone. A random policy has 0 % (F1 0.03, 0.04, 0.14). Key frames say all that answers need:
        `rules.FactLog`, which reads them as a log, is always right. With the last 16 steps alone it is right in 95 % of
        -v0, since five episodes take three or four steps, in 100 % of Tiny, and in 32 % of Long.

    Variants:
        EpisodicQA-v0 has five episodes, and EpisodicQA-Long-v0 has 20, 50 or 100 with 4 key frames a step.
        EpisodicQA-Tiny-v0 has 3 objects, 4 locations, one or two episodes and questions about locations and objects.
        `overwritten=("newest", "recent", "old")` puts only questions whose answer has changed since, such as where the
        cup was put on Monday, if it was put elsewhere later; with one of the names, those whose last change was so long
        ago. `distractors=5` adds five days in other houses before the questions, which are about the days before.
        `lengths`, `kinds`, `preset`, `split` and `scale` make others: the thesis tests on `lengths=10, split="test"`,
        and its own data has `preset="faithful"`. All three have `sampling="even"`: no history is empty, and questions
        mean each episode about equally often. Supervised presets have `sampling="published"` and one to five episodes.

    Batches:
        `make_query_task("memenvs/EpisodicQA-v0", {}).sample_batch(32, np.random.default_rng(0))` of
        `memenvs.query_task` draws the same histories and questions, for supervised training; a rollout shows exactly
        the key frames of its `frames()`, bit for bit.

    Source:
        Bärmann, "Episodic Memory Verbalization Using a Long-Term Compressive Memory", KIT, 2021, after Bärmann et al.,
        "Deep Episodic Memory for Verbalization of Robot Experience", IEEE RA-L 6(3), 2021. The original recordings and
        grammar are not public: all numbers of the household that they do not state are calibrated to those that they
        do.
    """

    option_names = ("question",)
    config_type = EpisodicQAConfig
    observation_settings = ("modalities",)
    query_task = "memenvs.verbalization.queries:DialogQueries"

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = EpisodicQAConfig(**kwargs)  # type: ignore[arg-type]
        self.num_envs = num_envs
        self.dialogs = load_dialogs(self.config)
        self.num_layouts = len(self.dialogs)
        structured = self.config.answer_mode == "structured"
        actions = self.dialogs.fact_actions
        self.action_names = actions.names if structured else ()
        self.action_space = gym.spaces.Discrete(len(actions) if structured else len(TOKENIZER))
        answer_steps = MAX_FACTS if structured else ANSWER_TOKENS
        self.max_episode_steps = self.dialogs.max_chunks + self.config.questions_per_history * answer_steps
        self.observation_space = gym.spaces.Dict(self._spaces(structured))
        self.state = DialogState.of(num_envs, self.dialogs)

    def _spaces(self, structured: bool) -> dict[str, gym.Space]:
        size = self.config.frames_per_step
        symbols = len(self.dialogs.data.dictionary)
        bounds: dict[str, tuple[float, float]] = {"dt": (-1, 59), "state": (-1, 2)}
        spaces: dict[str, gym.Space] = {"phase": gym.spaces.Discrete(3)}
        for part in self.config.parts:
            shape, kind = PARTS[part]
            is_real = np.issubdtype(kind, np.floating)
            low, high = bounds.get(part, (-np.inf, np.inf) if is_real else (0, symbols - 1))
            spaces[f"frame_{part}"] = gym.spaces.Box(low, high, (size, *shape), kind)
        spaces["frame_mask"] = gym.spaces.Box(0, 1, (size,), np.int8)
        spaces["query"] = gym.spaces.Box(0, len(TOKENIZER) - 1, (QUERY_TOKENS,), np.int32)
        if structured:
            most = np.broadcast_to(np.array(list(SLOT_SIZES.values()), np.int16) - 1, (MAX_CLAUSES, len(SLOTS)))
            spaces["prefix"] = gym.spaces.Box(np.zeros_like(most), most.copy(), dtype=np.int16)
        else:
            spaces["prefix"] = gym.spaces.Box(0, len(TOKENIZER) - 1, (ANSWER_TOKENS,), np.int32)
        return spaces

    def begin_trial(self, i: int, layout: int, rng: np.random.Generator) -> None:
        """Choose the history."""
        self.state.history[i] = self.dialogs.usable(layout)

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Put the first key frames, and draw the questions."""
        number, count, available = int(self.state.history[i]), self.config.questions_per_history, self.config.questions
        question = options.get("question", int(rng.integers(available)))
        if not is_int(question) or not 0 <= question < available:
            raise ValueError(f"option 'question' must be an integer in 0 ... {available - 1}, got {question!r}")
        episodes = len(self.dialogs.history(number))
        after = [episodes] * count
        if self.config.put == "interleaved" and episodes > 1:
            after = [*sorted(rng.integers(1, episodes, count - 1).tolist()), episodes]
        questions = []
        for k, place in enumerate(after):
            which = (question + k) % available
            if place < episodes and not self.dialogs.is_possible(number, which, place):
                after[k] = place = after[k - 1] if k else 1
            questions.append(self.dialogs.question(number, which, None if place == episodes else place))
        self.state.begin(i, question, questions, self.dialogs.chunks(number, tuple(after)), episodes)

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Show the next key frames, or add an action to the answer and score it at its end."""
        state = self.state
        rewards, terminated = np.zeros(self.num_envs), np.zeros(self.num_envs, bool)
        streams = active & (state.phase == STREAM)
        state.chunk[streams] += 1
        state.phase[streams & (state.chunk == state.next_stop)] = QUESTION
        answers = np.flatnonzero(active & ~streams)
        if len(answers):
            state.phase[answers] = ANSWER
            for i in answers[self._add(actions[answers], answers)].tolist():
                rewards[i], terminated[i] = self._end_answer(i)
        return rewards, terminated

    def _add(self, actions: np.ndarray, envs: np.ndarray) -> np.ndarray:
        """Add actions to answers; True where an answer has ended."""
        place = self.state.spelled[envs]
        self.state.spelled[envs] += 1
        if self.config.answer_mode == "structured":
            return self.state.tuples.add(actions, envs)
        self.state.tokens[envs, place] = actions
        return (actions == END) | (place + 1 >= ANSWER_TOKENS)

    def _end_answer(self, i: int) -> tuple[float, bool]:
        """Score an answer, and put the next question, stream on or end; reward and True at the end."""
        state = self.state
        score = self._score(i)
        state.numbers[i, : len(score)] = score
        is_correct = score.category == CORRECT
        state.answered[i] += 1
        state.f1[i] += (score.f1 - state.f1[i]) / state.answered[i]
        state.all_correct[i] &= is_correct
        is_last = bool(state.answered[i] == len(state.questions[i]))
        if not is_last:
            state.put_question(i)
        return float(is_correct) if self.config.reward == "correct" else score.f1, is_last

    def _score(self, i: int) -> Score:
        """Score the present answer of an environment."""
        encoded = self.state.present_question(i)
        qa, rows = encoded.qa, self.state.tuples.rows[i]
        if self.config.answer_mode == "structured" and np.array_equal(rows, encoded.tuples):
            return Score(CORRECT, encoded.num_facts, 0, encoded.num_facts)

        def score(log: Log | None) -> Score:
            if self.config.answer_mode == "tokens":
                return score_answer(TOKENIZER.decode(self.state.tokens[i].tolist()), qa, log)
            return score_clauses(tuples_to_clauses(qa.question, rows, qa.now), qa.answer.clauses, log)

        first = score(None)
        if first.category not in (TMI_CORRECT, TMI_WRONG):
            return first
        return score(self._log(i, qa.now))  # only what is too much needs the whole history

    def _log(self, i: int, now: int) -> Log:
        """Make the log of what an environment has shown before a question."""
        number = int(self.state.history[i])
        history = self.dialogs.history(number)
        lived = sum(end < now for end in history.ends)
        return Log(history if lived == len(history) else self.dialogs.prefix(number, lived))

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write the phase, the key frames of the step, the question and the answer so far."""
        state = self.state
        envs = np.flatnonzero(env_mask)
        out["phase"][envs] = state.phase[envs]
        streams = np.flatnonzero(env_mask & (state.phase == STREAM))
        others = np.flatnonzero(env_mask & (state.phase != STREAM))
        chunk = state.chunk[streams]
        frames = state.frames[streams, chunk]
        for part in self.config.parts:
            values = state.dates[streams, chunk] if part == "dt" else self.dialogs.tables[part][frames]
            out[f"frame_{part}"][streams] = values
            out[f"frame_{part}"][others] = 0
        out["frame_mask"][streams], out["frame_mask"][others] = frames != self.dialogs.blank, 0
        out["query"][streams], out["query"][others] = 0, state.query[others]
        structured = self.config.answer_mode == "structured"
        out["prefix"][envs] = state.tuples.rows[envs] if structured else state.tokens[envs]

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        state = self.state
        return {
            "question": state.question,
            "kind": state.kind,
            **dict(zip(NUMBERS, state.numbers.T, strict=True)),
            "gold": state.gold,
            "gold_answer": state.gold_answer,
            "query_text": state.query_text,
            "f1": state.f1,
            "success": state.all_correct & (state.answered > 0),
        }

    def oracle_actions(self) -> np.ndarray:
        """Spell the gold answer; 0 where there is nothing to say."""
        actions = np.full(self.num_envs, STOP, np.int64)
        for i in np.flatnonzero(self.state.phase != STREAM).tolist():
            encoded, spelled = self.state.present_question(i), self.state.spelled[i]
            if self.config.answer_mode == "tokens":
                actions[i] = encoded.tokens[spelled] or END if spelled < ANSWER_TOKENS else END
            elif spelled < len(encoded.facts):
                actions[i] = encoded.facts[spelled]
        return actions

    def render(self, i: int) -> np.ndarray:
        """Draw the history as a timeline, with what was seen so far, the question and the answers."""
        state, structured = self.state, self.config.answer_mode == "structured"
        is_answering = state.phase[i] != STREAM
        answer = describe_tuples(state.tuples.rows[i]) if structured else TOKENIZER.decode(state.tokens[i].tolist())
        seen = state.frames[i, : state.chunk[i] + (not is_answering)]
        return draw_timeline(
            self.dialogs.history(int(state.history[i])),
            frames_seen=int((seen != self.dialogs.blank).sum()),
            query=state.present_question(i).qa if is_answering else None,
            answer=answer if is_answering else "",
        )
