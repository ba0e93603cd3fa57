"""Scripted policies for EpisodicQA.

One gives the likeliest answer to a question, and one answers from all facts that were observed.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from memenvs.rules import PREVIOUS_ACTION, Rule, RuleError
from memenvs.task import PHASE, BatchTask, Observation
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dates import as_seconds
from memenvs.verbalization.dialogs import load_dialogs
from memenvs.verbalization.env import EpisodicQA
from memenvs.verbalization.episodes import Episode, Frames, History, StartState
from memenvs.verbalization.key_frames import COLUMNS, ROW_WIDTH, ReadHistory, read_history
from memenvs.verbalization.language.facts import MAX_CLAUSES, Clause
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.parser import parse_question
from memenvs.verbalization.language.questions import Question, Referent, Speaker, answer_clauses, plain_time, referents
from memenvs.verbalization.language.sampler import answer_question
from memenvs.verbalization.language.speech import make_answer
from memenvs.verbalization.language.tokenizer import END, TOKENIZER
from memenvs.verbalization.language.tuples import EMIT, NEXT, STOP, clauses_to_tuples
from memenvs.verbalization.likeliest import TextOnly

#: Questions of the training split from which the likeliest answers are learned, and most of them about one history.
_TRAINING_QUESTIONS = 8000
_MOST_QUESTIONS = 16
#: Parts of a key frame without which it does not say what happened.
_NEEDED = ("date", "symbols", "statuses")


class _Query(NamedTuple):
    """A question that was read, and the second since 2020-01-01 00:00:00 at which it is put."""

    question: Question
    now: int


@lru_cache(maxsize=4096)
def _read_query(tokens: bytes) -> _Query:
    """Read the tokens of an observation's `query`, int32."""
    words = TOKENIZER.decode(np.frombuffer(tokens, np.int32).tolist()).split()
    year, month, day, _, hour, minute, second = map(int, words[:7])
    now = as_seconds(datetime(year, month, day, hour, minute, second))
    # A date without its year is the newest one, as for a history that begins in 2020.
    return _Query(parse_question(" ".join(words[7:]), Log(_history_since(0, now))), now)


def _history_since(start: int, now: int) -> History:
    """Make a history of one episode without actions."""
    none = np.zeros((0, 0), np.int16)
    frames = Frames(*[none] * 7)
    return History((Episode((), (), StartState("", {}), (), "success", 0, frames),), (start,), now)


class _Answerer(Rule):
    """Spells an answer, fact by fact, or token by token.

    Where the answer changes while it is spelled, because a window lost what it was about, facts that were given stay,
    and the others are those of the new answer.
    """

    def __init__(self, task: BatchTask) -> None:
        assert isinstance(task, EpisodicQA), "the registry names it for EpisodicQA only"
        self._is_structured = task.config.answer_mode == "structured"
        actions = task.dialogs.fact_actions
        pairs = zip(actions.slot.tolist(), actions.value.tolist(), strict=True)
        self._numbers = {pair: number for number, pair in enumerate(pairs) if number > NEXT}

    @abstractmethod
    def _clauses(self, i: int, query: bytes) -> tuple[Clause, ...] | None:
        """Return the answer of an environment to its question; None to say nothing."""

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next fact or token of the answer; see `Rule`."""
        chosen = np.full(len(observation[PHASE]), STOP, np.int64)
        for i in np.flatnonzero(observation[PHASE]).tolist():
            query = observation["query"][i].tobytes()
            parsed = _read_query(query)
            clauses = (self._clauses(i, query) or ())[:MAX_CLAUSES]
            if not self._is_structured:
                chosen[i] = _next_token(parsed.question, clauses, observation["prefix"][i])
            else:
                rows = clauses_to_tuples(parsed.question, clauses, parsed.now)
                began_clause = bool(observation[PREVIOUS_ACTION][i] == 1 + NEXT)
                chosen[i] = self._next_fact(rows, observation["prefix"][i], began_clause)
        return chosen

    def _next_fact(self, rows: np.ndarray, prefix: np.ndarray, began_clause: bool) -> int:
        """Choose the action that adds the next fact of `rows` to `prefix`, int16 (8, 10) each."""
        count, spelled = int(rows[:, EMIT].sum()), int(prefix[:, EMIT].sum())
        clause = spelled if began_clause else max(0, spelled - 1)
        if clause >= count:
            return STOP
        for slot, (value, before) in enumerate(zip(rows[clause].tolist(), prefix[clause].tolist(), strict=True)):
            if value and not before and (slot, value) in self._numbers:
                return self._numbers[slot, value]
        return NEXT if clause + 1 < count and prefix[clause, EMIT] else STOP


def _next_token(question: Question, clauses: tuple[Clause, ...], prefix: np.ndarray) -> int:
    """Choose the token after `prefix`, int32 (128,), in a text that says the clauses."""
    if not clauses:
        return END
    tokens = TOKENIZER.encode(make_answer(question.kind, question.family, clauses, 0).text)
    spelled = int(np.count_nonzero(prefix))
    return tokens[spelled] if spelled < len(tokens) else END


class LikeliestAnswer(_Answerer):
    """The most frequent answer to the question in the training split.

    It is the best answer without a memory. See `memenvs.verbalization.likeliest`: it may copy names of
    the question and knows the kind of its time.
    """

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        assert isinstance(task, EpisodicQA), "checked above"
        self._model = likeliest_answers(task.config)

    def _clauses(self, i: int, query: bytes) -> tuple[Clause, ...] | None:
        return _likeliest(self._model, query)


@lru_cache(maxsize=4)
def likeliest_answers(config: EpisodicQAConfig) -> TextOnly:
    """Learn the likeliest answers to the questions of the training split."""
    dialogs = load_dialogs(replace(config, split="train"))
    questions = min(_MOST_QUESTIONS, config.questions)
    count = min(len(dialogs), _TRAINING_QUESTIONS // questions)
    numbers = np.linspace(0, len(dialogs), count, endpoint=False).astype(int).tolist()
    return TextOnly([dialogs.question(dialogs.usable(number), k).qa for number in numbers for k in range(questions)])


def _likeliest(model: TextOnly, query: bytes) -> tuple[Clause, ...] | None:
    parsed = _read_query(query)
    if parsed.question.kind == "clock":  # the question says when it is put
        return answer_question(_history_since(0, parsed.now), parsed.question).clauses
    return model.answer(parsed.question, parsed.now)


class FactLog(_Answerer):
    """All facts observed, read off key frames as a log of what happened.

    It answers as the gold answer is computed.

    If a part of the history was forgotten, and what is left does not answer the question, its answer is that of
    `LikeliestAnswer`.

    `steps_back` counts to the newest key frame of the oldest episode that the answer is about. If nothing is there that
    the question means, that is the oldest episode of the time that it names, or of all if it names none.

    Raises:
        RuleError: Key frames do not show their date, symbols and statuses.
    """

    way = "ideal"
    window = None

    def __init__(self, task: BatchTask) -> None:
        super().__init__(task)
        assert isinstance(task, EpisodicQA), "checked above"
        missing = [name for name in _NEEDED if name not in task.config.modalities]
        if missing:
            raise RuleError(f"modalities must have {list(_NEEDED)} for a log of what happened, got no {missing}")
        self._symbols = task.dialogs.data.dictionary.symbols
        self._hands = task.config.language().hands
        self._config = task.config
        self._rows: list[np.ndarray | None] = []  # (N, F, 1 + ROW_WIDTH) of each step; None without one
        self._first = np.zeros(task.num_envs, np.int64)  # index in `_rows` of the first step that is remembered
        self._is_whole = np.zeros(task.num_envs, bool)  # nothing of the present history was forgotten
        self._steps_back = np.zeros(task.num_envs, np.int64)
        self._answer = lru_cache(1024)(self._find_answer)

    def forget(self, env_mask: np.ndarray) -> None:
        """Forget all key frames; see `Rule`."""
        self._first[env_mask] = len(self._rows)
        self._is_whole[env_mask] = False

    def begin_episode(self, env_mask: np.ndarray) -> None:
        """Begin anew, as key frames of a history come from its beginning; see `Rule`."""
        self._first[env_mask] = len(self._rows)
        self._is_whole[env_mask] = True

    def see(self, observation: Observation) -> None:
        """Keep the key frames of the step; see `Rule`."""
        stale = int(self._first.min())
        if stale > 2 * len(self._rows) // 3:
            del self._rows[:stale]
            self._first -= stale
        mask = observation["frame_mask"]
        if not mask.any():
            self._rows.append(None)
            return
        rows = np.empty((*mask.shape, 1 + ROW_WIDTH), np.int16)
        rows[..., 0] = mask
        for part, columns in COLUMNS.items():
            values = observation[f"frame_{part}"]
            rows[..., 1:][..., columns] = values[..., None] if values.ndim == 2 else values
        self._rows.append(rows)

    def choose(self, observation: Observation) -> np.ndarray:
        """Choose the next fact of the answer by the log; see `Rule`."""
        self._steps_back = np.zeros(len(self._first), np.int64)
        return super().choose(observation)

    def steps_back(self) -> np.ndarray:
        """Return the steps back to the oldest episode of the answer, int64, (N,).

        They count to the last time at which it was seen.
        """
        return self._steps_back

    def _clauses(self, i: int, query: bytes) -> tuple[Clause, ...] | None:
        first, newest = int(self._first[i]), len(self._rows) - 1
        steps = [(newest - k, rows[i]) for k, rows in enumerate(self._rows[first:], first) if rows is not None]
        seen = [rows[rows[:, 0] > 0, 1:] for _, rows in steps]
        frames = np.concatenate(seen) if seen else np.zeros((0, ROW_WIDTH), np.int16)
        clauses, row = self._answer(query, frames.tobytes(), bool(self._is_whole[i]))
        if row is not None:
            self._steps_back[i] = np.repeat([back for back, _ in steps], [len(rows) for rows in seen])[row]
        return clauses

    def _find_answer(self, query: bytes, frames: bytes, is_whole: bool) -> tuple[tuple[Clause, ...] | None, int | None]:
        """Answer by key frames, int16 (T, ROW_WIDTH): clauses, and the row of the newest key frame that is needed."""
        question, now = _read_query(query)
        rows = np.frombuffer(frames, np.int16).reshape(-1, ROW_WIDTH)
        read = read_history(rows, self._symbols, now)
        log = Log(read.history)
        meant = referents(log, question)
        if not is_whole:
            guess = _likeliest(likeliest_answers(self._config), query)
            if not _is_answered(log, question, meant, guess):
                return guess, None
        row = None if question.kind == "clock" else _needed_row(read, question, meant)
        return answer_clauses(log, question, meant, Speaker(plain_time, self._hands)), row


def _is_answered(log: Log, question: Question, meant: list[Referent], guess: tuple[Clause, ...] | None) -> bool:
    """Return True if the end of a history answers a question at least as well as a guess does."""
    if question.kind == "clock":
        return True
    if question.kind == "how_often":
        return not guess or len(meant) >= (guess[0].number or 0)
    is_covered = len(log) > 0 and question.time is not None and question.time.low >= log.oldest
    return is_covered or (bool(meant) and question.order != "first")


def _needed_row(read: ReadHistory, question: Question, meant: list[Referent]) -> int | None:
    """Row of the newest key frame of the oldest episode on which the answer depends; None for none."""
    episodes = [referent.episode for referent in meant]
    if not episodes:
        low, high = (question.time.low, question.time.high) if question.time else (0, read.history.question_time)
        spans = zip(read.history.starts, read.history.ends, strict=True)
        episodes = [number for number, (start, end) in enumerate(spans) if start < high and low <= end]
    return read.last_row[min(episodes)] if episodes else None
