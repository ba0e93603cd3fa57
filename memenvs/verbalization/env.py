"""EpisodicQA: live through the days of a robot, then answer questions about them."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from memenvs.checks import is_int
from memenvs.task import BatchTask, Observation, Options
from memenvs.verbalization.answer_actions import MAX_FACTS, SLOTS, STOP, TupleAnswers, describe_tuples
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dialogs import EncodedQuestion, load_dialogs, read_answer
from memenvs.verbalization.encoding import PARTS
from memenvs.verbalization.language.facts import MAX_CLAUSES
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.score import CORRECT, TMI_CORRECT, TMI_WRONG, Score, score_answer, score_clauses
from memenvs.verbalization.language.structured import SLOT_SIZES, decode_answer
from memenvs.verbalization.language.tokenizer import ANSWER_TOKENS, END, QUERY_TOKENS, TOKENIZER
from memenvs.verbalization.timeline import draw_timeline

#: Phases: key frames come, a question comes, and the further steps of its answer.
STREAM, QUESTION, ANSWER = 0, 1, 2
#: Numbers in `info`: the fields of a `Score`, then two of the question.
_NUMBERS = (*Score._fields, "distance", "history_length")


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
        history_length: Number of episodes.
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
        `lengths`, `kinds`, `preset`, `split` and `scale` make others: the thesis tests on `lengths=10, split="test"`,
        and its own data has `preset="faithful"`. All three have `sampling="even"`: no history is empty, and questions
        mean each episode about equally often. Supervised presets have `sampling="published"` and one to five episodes.

    Batches:
        Supervised training reads the same histories and questions: `task.dialogs.sample_batch(rng, 32, 16)` has key
        frames, questions and answers as arrays, and a rollout shows exactly these, bit for bit.

    Source:
        Bärmann, "Episodic Memory Verbalization Using a Long-Term Compressive Memory", KIT, 2021, after Bärmann et al.,
        "Deep Episodic Memory for Verbalization of Robot Experience", IEEE RA-L 6(3), 2021. The original recordings and
        grammar are not public: all numbers of the household that they do not state are calibrated to those that they
        do.
    """

    option_names = ("question",)
    config_type = EpisodicQAConfig
    observation_settings = ("modalities",)

    def __init__(self, num_envs: int, **kwargs: object) -> None:
        self.config = EpisodicQAConfig(**kwargs)  # type: ignore[arg-type]
        self.num_envs = num_envs
        self.dialogs = load_dialogs(self.config)
        self.num_layouts = len(self.dialogs)
        structured = self.config.answer_mode == "structured"
        actions = self.dialogs.fact_actions
        self.action_names = actions.names if structured else ()
        self.action_space = gym.spaces.Discrete(len(actions) if structured else len(TOKENIZER))
        self._blank = self.dialogs.blank
        size = self.config.frames_per_step
        self._max_chunks = self.dialogs.max_chunks
        answer_steps = MAX_FACTS if structured else ANSWER_TOKENS
        self.max_episode_steps = self._max_chunks + self.config.questions_per_history * answer_steps
        self.observation_space = gym.spaces.Dict(self._spaces(structured))
        self._index = np.full((num_envs, self._max_chunks, size), self._blank, np.int32)
        self._dates = np.zeros((num_envs, self._max_chunks, size, 7), np.int16)
        self._chunk = np.zeros(num_envs, np.int64)
        self._phase = np.zeros(num_envs, np.int64)
        self._next_stop = np.zeros(num_envs, np.int64)  # chunk before which the next question comes
        self._stops: list[list[int]] = [[] for _ in range(num_envs)]
        self._answered = np.zeros(num_envs, np.int64)  # questions that have been answered
        self._history = np.zeros(num_envs, np.int64)
        self._question = np.zeros(num_envs, np.int64)
        self._questions: list[list[EncodedQuestion]] = [[] for _ in range(num_envs)]
        self._query = np.zeros((num_envs, QUERY_TOKENS), np.int32)
        self._tuples = TupleAnswers(num_envs, actions)
        self._tokens = np.zeros((num_envs, ANSWER_TOKENS), np.int32)
        self._spelled = np.zeros(num_envs, np.int64)  # actions of the present answer
        self._f1 = np.zeros(num_envs)
        self._all_correct = np.ones(num_envs, bool)
        self._kind, self._gold_answer, self._query_text = (np.full(num_envs, "", object) for _ in range(3))
        self._gold = np.zeros((num_envs, MAX_CLAUSES, len(SLOTS)), np.int16)
        self._numbers = np.zeros((num_envs, len(_NUMBERS)), np.int64)

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
        self._history[i] = self.dialogs.usable(layout)

    def begin_episode(self, i: int, rng: np.random.Generator, options: Options) -> None:
        """Put the first key frames, and draw the questions."""
        number, count, known = int(self._history[i]), self.config.questions_per_history, self.config.questions
        question = options.get("question", int(rng.integers(known)))
        if not is_int(question) or not 0 <= question < known:
            raise ValueError(f"option 'question' must be an integer in 0 ... {known - 1}, got {question!r}")
        self._question[i] = question
        history = self.dialogs.history(number)
        episodes = len(history)
        after = [episodes] * count
        if self.config.put == "interleaved" and episodes > 1:
            after = [*sorted(rng.integers(1, episodes, count - 1).tolist()), episodes]
        self._questions[i] = []
        for k, place in enumerate(after):
            which = (question + k) % known
            if place < episodes and not self.dialogs.is_possible(number, which, place):
                after[k] = place = after[k - 1] if k else 1
            self._questions[i].append(self.dialogs.question(number, which, None if place == episodes else place))
        chunks = self.dialogs.chunks(number, tuple(after))
        self._index[i, : len(chunks.rows)], self._dates[i, : len(chunks.rows)] = chunks.rows, chunks.dates
        self._stops[i], self._next_stop[i] = chunks.stops, chunks.stops[0]
        self._chunk[i] = self._answered[i] = 0
        self._f1[i] = 0.0
        self._all_correct[i] = True
        self._numbers[i] = (0, 0, 0, 0, 0, episodes)
        self._show(i)
        self._phase[i] = QUESTION if self._next_stop[i] == 0 else STREAM

    def _show(self, i: int) -> None:
        """Prepare the next question of an environment."""
        encoded = self._questions[i][self._answered[i]]
        self._query[i] = encoded.query
        self._gold[i] = encoded.tuples
        self._kind[i], self._query_text[i] = encoded.qa.kind, encoded.qa.question.text
        self._gold_answer[i] = encoded.qa.answer.text
        self._numbers[i, _NUMBERS.index("distance")] = encoded.qa.distance or 0
        self._tuples.clear(i)
        self._tokens[i] = 0
        self._spelled[i] = 0

    def step(self, actions: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Show the next key frames, or add an action to the answer and score it at its end."""
        rewards, terminated = np.zeros(self.num_envs), np.zeros(self.num_envs, bool)
        streams = active & (self._phase == STREAM)
        self._chunk[streams] += 1
        self._phase[streams & (self._chunk == self._next_stop)] = QUESTION
        answers = np.flatnonzero(active & ~streams)
        if len(answers):
            self._phase[answers] = ANSWER
            for i in answers[self._add(actions[answers], answers)].tolist():
                rewards[i], terminated[i] = self._end_answer(i)
        return rewards, terminated

    def _add(self, actions: np.ndarray, envs: np.ndarray) -> np.ndarray:
        """Add actions to answers; True where an answer has ended."""
        place = self._spelled[envs]
        self._spelled[envs] += 1
        if self.config.answer_mode == "structured":
            return self._tuples.add(actions, envs)
        self._tokens[envs, place] = actions
        return (actions == END) | (place + 1 >= ANSWER_TOKENS)

    def _end_answer(self, i: int) -> tuple[float, bool]:
        """Score an answer, and put the next question, stream on or end; reward and True at the end."""
        score = self._score(i)
        self._numbers[i, : len(score)] = score
        is_correct = score.category == CORRECT
        self._answered[i] += 1
        self._f1[i] += (score.f1 - self._f1[i]) / self._answered[i]
        self._all_correct[i] &= is_correct
        is_last = bool(self._answered[i] == len(self._questions[i]))
        if not is_last:
            self._next_stop[i] = self._stops[i][self._answered[i]]
            self._phase[i] = QUESTION if self._chunk[i] == self._next_stop[i] else STREAM
            self._show(i)
        return float(is_correct) if self.config.reward == "correct" else score.f1, is_last

    def _score(self, i: int) -> Score:
        encoded = self._questions[i][self._answered[i]]
        qa = encoded.qa
        if self.config.answer_mode == "structured" and np.array_equal(self._tuples.rows[i], self._gold[i]):
            return Score(CORRECT, encoded.num_facts, 0, encoded.num_facts)

        def score(log: Log | None) -> Score:
            if self.config.answer_mode == "tokens":
                return score_answer(read_answer(self._tokens[i]), qa, log)
            given = decode_answer(qa.question, self._tuples.rows[i], qa.now)
            return score_clauses(given, qa.answer.clauses, log)

        found = score(None)
        if found.category not in (TMI_CORRECT, TMI_WRONG):
            return found
        return score(self._log(i))  # only what was given too much needs the whole history

    def _log(self, i: int) -> Log:
        number, place = int(self._history[i]), self._questions[i][self._answered[i]].qa.now
        history = self.dialogs.history(number)
        lived = sum(end < place for end in history.ends)
        return Log(history if lived == len(history) else self.dialogs.prefix(number, lived))

    def observe(self, out: Observation, env_mask: np.ndarray) -> None:
        """Write the phase, the key frames of the step, the question and the answer so far."""
        envs = np.flatnonzero(env_mask)
        out["phase"][envs] = self._phase[envs]
        streams = np.flatnonzero(env_mask & (self._phase == STREAM))
        others = np.flatnonzero(env_mask & (self._phase != STREAM))
        chunk = self._chunk[streams]
        index = self._index[streams, chunk]
        for part in self.config.parts:
            values = self._dates[streams, chunk] if part == "dt" else self.dialogs.tables[part][index]
            out[f"frame_{part}"][streams] = values
            out[f"frame_{part}"][others] = 0
        out["frame_mask"][streams], out["frame_mask"][others] = index != self._blank, 0
        out["query"][streams], out["query"][others] = 0, self._query[others]
        if self.config.answer_mode == "structured":
            out["prefix"][envs] = self._tuples.rows[envs]
        else:
            out["prefix"][envs] = self._tokens[envs]

    def info(self) -> dict[str, np.ndarray]:
        """Return the truth; see the class."""
        return {
            "question": self._question,
            "kind": self._kind,
            **dict(zip(_NUMBERS, self._numbers.T, strict=True)),
            "gold": self._gold,
            "gold_answer": self._gold_answer,
            "query_text": self._query_text,
            "f1": self._f1,
            "success": self._all_correct & (self._answered > 0),
        }

    def oracle_actions(self) -> np.ndarray:
        """Spell the gold answer; 0 where there is nothing to say."""
        actions = np.full(self.num_envs, STOP, np.int64)
        for i in np.flatnonzero(self._phase != STREAM).tolist():
            encoded = self._questions[i][min(self._answered[i], len(self._questions[i]) - 1)]
            spelled = self._spelled[i]
            if self.config.answer_mode == "tokens":
                actions[i] = encoded.tokens[spelled] or END if spelled < ANSWER_TOKENS else END
            elif spelled < len(encoded.facts):
                actions[i] = encoded.facts[spelled]
        return actions

    def render(self, i: int) -> np.ndarray:
        """Draw the history as a timeline, with what was seen so far, the question and the answers."""
        encoded = self._questions[i][min(self._answered[i], len(self._questions[i]) - 1)]
        given = ""
        if self._phase[i] != STREAM:
            if self.config.answer_mode == "tokens":
                given = read_answer(self._tokens[i])
            else:
                given = describe_tuples(self._tuples.rows[i])
        seen = self._index[i, : self._chunk[i] + (self._phase[i] == STREAM)]
        return draw_timeline(
            self.dialogs.history(int(self._history[i])),
            frames_seen=int((seen != self._blank).sum()),
            query=encoded.qa if self._phase[i] != STREAM else None,
            given=given,
        )
