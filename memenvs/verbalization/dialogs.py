"""Histories with their questions as arrays, for environments and supervised training."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.episodes import History
from memenvs.verbalization.household_config import DISTRACTOR_EPISODES
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.sampler import QASampler, QuestionAnswer
from memenvs.verbalization.language.tokenizer import ANSWER_TOKENS, QUERY_TOKENS, TOKENIZER, query_text
from memenvs.verbalization.language.tuples import FactActions, clauses_to_tuples, pad_tokens
from memenvs.verbalization.splits import Data, load_data

#: Questions and histories that are kept once they were made.
_KEPT_QUESTIONS, _KEPT_HISTORIES = 65_536, 8192
#: Logs that are kept, for several questions about a history one after the other.
_KEPT_LOGS = 16
#: Question numbers that are tried where a question has no answer in the actions, or has to be overwritten.
_TRIES, _OVERWRITTEN_TRIES = 8, 64
_INTERLEAVED_STREAM = 102


class EncodedQuestion(NamedTuple):
    """A question with its answer as arrays.

    Attributes:
        qa: The question and its gold answer.
        query: int32, (64,); tokens of its time and its words.
        tuples: int16, (8, 10); the answer as tuples.
        facts: Actions that spell the tuples; the last one is 0, the end.
        tokens: int32, (128,); tokens of the answer's words.
        num_facts: Number of facts of the answer.
    """

    qa: QuestionAnswer
    query: np.ndarray
    tuples: np.ndarray
    facts: tuple[int, ...]
    tokens: np.ndarray
    num_facts: int


class FrameChunks(NamedTuple):
    """Key frames of each step of an environment; F in each of C steps.

    Attributes:
        rows: int32, (C, F); row of each key frame in `Dialogs.tables`.
        dates: int16, (C, F, 7).
        stops: For each question the number of steps before it.
    """

    rows: np.ndarray
    dates: np.ndarray
    stops: list[int]


class Dialogs:
    """Histories of a split, by number, and questions about each, by number.

    Everything is a function of the settings and these numbers.

    Args:
        config: Settings.
        data: Histories and key frames; None: those of the split of the settings.

    Attributes:
        config: Settings.
        data: Histories and key frames.
        fact_actions: Actions of structured answers.
        tables: Part -> key frames of the pool, and at last an empty one.
        blank: Row of the empty one.
        max_chunks: Most steps with key frames of an environment.
    """

    def __init__(self, config: EpisodicQAConfig, data: Data | None = None) -> None:
        self.config = config
        if data is None:
            data = load_data(
                config.household(), config.split, config.lengths, config.scale, config.data_seed, config.histories
            )
        self.data = data
        self.fact_actions = FactActions(config.kinds, config.objects, config.locations, denials=config.is_whole)
        self._sampler = QASampler(config.language())
        self.history = lru_cache(_KEPT_HISTORIES)(self.data.histories.history)
        frames = self.data.frames
        self.tables = {part: _with_blank(frames.array(part)) for part in config.parts if part != "dt"}
        self.blank = len(frames.time)
        most = max(config.lengths) + config.distractors * DISTRACTOR_EPISODES
        longest = int(np.diff(frames.first).max()) * most
        self.max_chunks = -(-longest // config.frames_per_step) + config.questions_per_history
        self.chunks = lru_cache(_KEPT_HISTORIES)(self._cut_into_chunks)
        self._log = lru_cache(_KEPT_LOGS)(self._make_log)
        self._question = lru_cache(_KEPT_QUESTIONS)(self._draw_question)

    def __reduce__(self) -> tuple[object, tuple[EpisodicQAConfig]]:
        return load_dialogs, (self.config,)

    def __len__(self) -> int:
        return len(self.data.histories)

    def usable(self, number: int) -> int:
        """Return the number of the first history, from this one on, about which there is a question.

        Raises:
            ValueError: There is none.
        """
        for step in range(len(self)):
            if self._question((number + step) % len(self), 0, None) is not None:
                return (number + step) % len(self)
        raise ValueError(
            f"kinds: no history of the split {self.config.split!r} has a question of {self.config.kinds}"
            + f" whose answer was overwritten as in {self.config.overwritten}" * bool(self.config.overwritten)
        )

    @cached_property
    def by_length(self) -> dict[int, np.ndarray]:
        """Length, from 1 on -> numbers of the histories that have a question, int64."""
        usable = [number for number in range(len(self)) if self.usable(number) == number]
        lengths = np.array([len(self.history(number)) for number in usable])
        return {length: np.array(usable)[lengths == length] for length in np.unique(lengths).tolist() if length}

    def prefix(self, number: int, episodes: int) -> History:
        """Return the first episodes of a history, with a question before the next one starts."""
        history = self.history(number)
        if episodes >= len(history):
            return history
        low, high = history.ends[episodes - 1] + 1, history.starts[episodes]
        rng = np.random.default_rng([*history.key, _INTERLEAVED_STREAM, episodes])
        time = int(rng.integers(low, max(low, high - 1) + 1))
        return replace(
            history,
            episodes=history.episodes[:episodes],
            starts=history.starts[:episodes],
            question_time=time,
            key=(*history.key, _INTERLEAVED_STREAM, episodes),
            distractors=max(0, episodes - len(history.own)),
        )

    def question(self, number: int, question: int, after: int | None = None) -> EncodedQuestion:
        """Return a question about a history that `usable` returns.

        Args:
            number: Number of the history.
            question: Number of the question, 0 ... `questions` - 1.
            after: Number of episodes after which it is put; None: after all.
        """
        encoded = self._question(number, question, after) or self._question(number, 0, None)
        assert encoded is not None, "usable histories have question 0"
        return encoded

    def is_possible(self, number: int, question: int, after: int) -> bool:
        """Return True if a question can be put after some of the episodes."""
        return self._question(number, question, after) is not None

    def _make_log(self, number: int, after: int | None) -> Log:
        return Log(self.history(number) if after is None else self.prefix(number, after))

    def _draw_question(self, number: int, question: int, after: int | None) -> EncodedQuestion | None:
        """Draw a question; None if no try gives one whose answer has actions."""
        log = self._log(number, after)
        for attempt in range(_OVERWRITTEN_TRIES if self.config.overwritten else _TRIES):
            qa = self._sampler.draw(log, question + attempt * self.config.questions)
            if self.config.overwritten and qa.recency not in self.config.overwritten:
                continue
            tuples = clauses_to_tuples(qa.question, qa.answer.clauses, qa.now)
            facts = self.fact_actions.spell(tuples) if qa.kind in self.config.kinds else None
            words = TOKENIZER.encode(qa.answer.text)
            if facts is None or len(words) > ANSWER_TOKENS:
                continue
            return EncodedQuestion(
                qa=qa,
                query=pad_tokens(TOKENIZER.encode(query_text(qa.now, qa.question.text)), QUERY_TOKENS),
                tuples=tuples,
                facts=facts,
                tokens=pad_tokens(words, ANSWER_TOKENS),
                num_facts=len(qa.answer.facts),
            )
        return None

    def _cut_into_chunks(self, number: int, after: tuple[int, ...]) -> FrameChunks:
        """Cut the key frames of a history into those of each step; a question begins a new chunk.

        Args:
            number: Number of the history.
            after: Number of episodes before each question.
        """
        history = self.history(number)
        size = self.config.frames_per_step
        rows, dates = self.data.frames.rows(history), self.data.frames.dates(history)
        ends = np.cumsum([0, *(len(episode.frames) for episode in history.episodes)])
        starts = [start for a, b in zip((0, *after), after, strict=False) for start in range(ends[a], ends[b], size)]
        stops = np.searchsorted(starts, ends[list(after)]).tolist()
        index = np.full((len(starts), size), self.blank, np.int32)
        when = np.zeros((len(starts), size, 7), np.int16)
        for chunk, start in enumerate(starts):
            stop = min(start + size, *starts[chunk + 1 : chunk + 2], len(rows))
            index[chunk, : stop - start] = rows[start:stop]
            when[chunk, : stop - start] = dates[start:stop]
        return FrameChunks(index, when, stops)


def _with_blank(table: np.ndarray) -> np.ndarray:
    """Append an empty row, for steps without a key frame."""
    return np.concatenate([table, np.zeros_like(table[:1])])


@lru_cache(maxsize=4)
def load_dialogs(config: EpisodicQAConfig) -> Dialogs:
    """Generate the histories and questions of some settings; the last ones are kept."""
    return Dialogs(config)
