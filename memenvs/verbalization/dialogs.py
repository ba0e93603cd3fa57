"""Histories with their questions as arrays, for environments and supervised training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from memenvs.checks import check_int
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dates import date_fields
from memenvs.verbalization.episodes import History
from memenvs.verbalization.key_frames import PARTS
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.sampler import QASampler, QuestionAnswer
from memenvs.verbalization.language.tokenizer import ANSWER_TOKENS, END, QUERY_TOKENS, TOKENIZER, query_text
from memenvs.verbalization.language.tuples import FactActions, clauses_to_tuples, pad_tokens
from memenvs.verbalization.language.wordings import KINDS
from memenvs.verbalization.splits import Data, load_data

#: Questions and histories that are kept once they were made.
_KEPT_QUESTIONS, _KEPT_HISTORIES = 65_536, 8192
#: Logs that are kept, for several questions about a history one after the other.
_KEPT_LOGS = 16
#: Question numbers that are tried where a question has no answer in the actions.
_TRIES = 8
_INTERLEAVED_STREAM = 102


class EncodedQuestion(NamedTuple):
    """A question with its answer as arrays.

    Attributes:
        qa: The question and its gold answer.
        query: int32, (64,); tokens of its time and its words.
        tuples: int16, (8, 10); the answer as tuples.
        facts: Actions that spell the tuples; the last one is 0, the end.
        tokens: int32, (128,); tokens of the answer's words.
        reference: int16, (7,); date that its time names; 0 if it has none.
        num_facts: Number of facts of the answer.
    """

    qa: QuestionAnswer
    query: np.ndarray
    tuples: np.ndarray
    facts: tuple[int, ...]
    tokens: np.ndarray
    reference: np.ndarray
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


@dataclass(frozen=True)
class DialogBatch:
    """B histories with Q questions each; T is the largest number of key frames.

    Attributes:
        frames: Part of a key frame -> array, (B, T, ...); 0 behind the end of a history.
        frame_mask: bool, (B, T); True where there is a key frame.
        query: int32, (B, Q, 64).
        tuples: int16, (B, Q, 8, 10).
        tokens: int32, (B, Q, 128).
        kind: int64, (B, Q); index into `KINDS`.
        distance: int64, (B, Q); reference distance, 0 for none.
        reference: int16, (B, Q, 7); date that the question's time names.
        reference_mask: bool, (B, Q); False where it names none.
        length: int64, (B,); episodes.
        questions: Q questions for each history.
    """

    frames: dict[str, np.ndarray]
    frame_mask: np.ndarray
    query: np.ndarray
    tuples: np.ndarray
    tokens: np.ndarray
    kind: np.ndarray
    distance: np.ndarray
    reference: np.ndarray
    reference_mask: np.ndarray
    length: np.ndarray
    questions: tuple[tuple[EncodedQuestion, ...], ...]


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
        longest = int(np.diff(frames.first).max()) * max(config.lengths)
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
        raise ValueError(f"kinds: no history of the split {self.config.split!r} has a question of {self.config.kinds}")

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
        )

    def question(self, number: int, question: int, after: int | None = None) -> EncodedQuestion:
        """Return a question about a history that `usable` returns.

        Args:
            number: Number of the history.
            question: Number of the question, 0 ... `questions` - 1.
            after: Number of episodes after which it is put; None: after all.
        """
        found = self._question(number, question, after) or self._question(number, 0, None)
        assert found is not None, "usable histories have question 0"
        return found

    def is_possible(self, number: int, question: int, after: int) -> bool:
        """Return True if a question can be put after some of the episodes."""
        return self._question(number, question, after) is not None

    def _make_log(self, number: int, after: int | None) -> Log:
        return Log(self.history(number) if after is None else self.prefix(number, after))

    def _draw_question(self, number: int, question: int, after: int | None) -> EncodedQuestion | None:
        """Draw a question; None if no try gives one whose answer has actions."""
        log = self._log(number, after)
        for attempt in range(_TRIES):
            qa = self._sampler.draw(log, question + attempt * self.config.questions)
            tuples = clauses_to_tuples(qa.question, qa.answer.clauses, qa.now)
            facts = self.fact_actions.spell(tuples) if qa.kind in self.config.kinds else None
            words = TOKENIZER.encode(qa.answer.text)
            if facts is None or len(words) > ANSWER_TOKENS:
                continue
            reference = np.zeros(7, np.int16) if qa.reference is None else date_fields(np.array(qa.reference))
            return EncodedQuestion(
                qa=qa,
                query=pad_tokens(TOKENIZER.encode(query_text(qa.now, qa.question.text)), QUERY_TOKENS),
                tuples=tuples,
                facts=facts,
                tokens=pad_tokens(words, ANSWER_TOKENS),
                reference=reference,
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

    def collate(self, histories: Sequence[int], questions: Sequence[Sequence[int]]) -> DialogBatch:
        """Assemble a batch.

        Args:
            histories: Numbers of B histories, each one that `usable` returns.
            questions: For each history the numbers of Q questions.

        Raises:
            ValueError: There is no history, or they have different numbers of questions.
        """
        if not histories or len(questions) != len(histories) or len({len(each) for each in questions}) != 1:
            raise ValueError(
                f"questions must be equally many for each of the histories, at least one, got "
                f"{len(histories)} histories and {[len(each) for each in questions]} questions"
            )
        lives = [self.history(number) for number in histories]
        found = tuple(
            tuple(self.question(number, each) for each in row) for number, row in zip(histories, questions, strict=True)
        )
        counts = np.array([life.num_frames for life in lives])
        longest = max(1, int(counts.max()))
        mask = np.arange(longest) < counts[:, None]
        frames: dict[str, np.ndarray] = {
            part: np.zeros((len(lives), longest, *PARTS[part][0]), PARTS[part][1]) for part in self.config.parts
        }
        for b, life in enumerate(lives):
            for part, values in self.data.frames.frames(life, self.config.parts).items():
                frames[part][b, : len(values)] = values
        return DialogBatch(
            frames=frames,
            frame_mask=mask,
            query=np.array([[each.query for each in row] for row in found]),
            tuples=np.array([[each.tuples for each in row] for row in found]),
            tokens=np.array([[each.tokens for each in row] for row in found]),
            kind=np.array([[KINDS.index(each.qa.kind) for each in row] for row in found]),
            distance=np.array([[each.qa.distance or 0 for each in row] for row in found]),
            reference=np.array([[each.reference for each in row] for row in found]),
            reference_mask=np.array([[each.qa.reference is not None for each in row] for row in found]),
            length=np.array([len(life) for life in lives]),
            questions=found,
        )

    def sample_batch(self, rng: np.random.Generator, batch_size: int, questions: int) -> DialogBatch:
        """Draw a batch: histories in equal shares of the lengths, different questions about each.

        Args:
            rng: Source of randomness.
            batch_size: Number of histories (B).
            questions: Number of questions about each (Q), at most the setting `questions`.

        Raises:
            ValueError: A number is out of range.
        """
        check_int("batch_size", batch_size)
        check_int("questions", questions, 1, self.config.questions)
        histories = [self.usable(int(number)) for number in rng.integers(len(self), size=batch_size)]
        chosen = [rng.permutation(self.config.questions)[:questions].tolist() for _ in histories]
        return self.collate(histories, chosen)


def _with_blank(table: np.ndarray) -> np.ndarray:
    """Append an empty row, for steps without a key frame."""
    return np.concatenate([table, np.zeros_like(table[:1])])


@lru_cache(maxsize=4)
def load_dialogs(config: EpisodicQAConfig) -> Dialogs:
    """Generate the histories and questions of some settings; the last ones are kept."""
    return Dialogs(config)


def tokens_to_text(tokens: np.ndarray) -> str:
    """Read the words of a row of token numbers; int, (128,)."""
    numbers = tokens.tolist()
    return TOKENIZER.decode(numbers[: numbers.index(END)] if END in numbers else numbers)
