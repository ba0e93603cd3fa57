"""Files of questions and of a model's answers to them.

A file is one JSON object: the settings from which histories and questions follow, and a list of {"id", "query",
"answer"}. `write_questions` writes it with answers that are null; a model fills them in; `score_file` makes the gold
answers anew from the settings and scores them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from memenvs.checks import check_int, choices_for, is_int
from memenvs.files import write_file
from memenvs.json_records import MAX_SHOWN, Field, format_json, read_json
from memenvs.verbalization.household_config import household
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.presets import PARAPHRASES, PRESETS, Paraphrases, language
from memenvs.verbalization.language.sampler import RECENCIES, QASampler, QuestionAnswer
from memenvs.verbalization.language.score import CATEGORIES, CORRECT, Score, pool, score_answer
from memenvs.verbalization.language.tokenizer import query_text
from memenvs.verbalization.language.wordings import GRAMMAR_VERSION, KINDS
from memenvs.verbalization.splits import SCALES, SPLITS, TEST_LENGTHS, ScaleName, Split, load_data


class Item(NamedTuple):
    """A question of a set.

    Attributes:
        id: "HISTORY-QUESTION", two numbers.
        log: Its history.
        gold: The question with its gold answer.
    """

    id: str
    log: Log
    gold: QuestionAnswer


@dataclass(frozen=True, kw_only=True)
class QuestionSet:
    """Questions of a split; as many of each kind as the histories allow.

    Attributes:
        preset: "faithful" or "debiased".
        split: Split of the episodes.
        scale: Scale of the data.
        data_seed: Seed of the data.
        lengths: Lengths of the histories, episodes.
        questions: Number of questions about each history.
        paraphrases: "all", "seen" or "held_out".
    """

    preset: str = "debiased"
    split: Split = "test"
    scale: ScaleName = "laptop"
    data_seed: int = 0
    lengths: tuple[int, ...] = TEST_LENGTHS
    questions: int = 60
    paraphrases: Paraphrases = "all"

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(self.lengths))
        allowed: dict[str, Any] = {"preset": PRESETS, "split": SPLITS, "scale": SCALES, "paraphrases": PARAPHRASES}
        for name, choices in allowed.items():
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(f"unknown {name} {value!r}; {choices_for(value, choices)}")
        check_int("data_seed", self.data_seed, 0)
        check_int("questions", self.questions)
        if not self.lengths:
            raise ValueError("lengths must have at least one length, got none")

    def items(self) -> Iterator[Item]:
        """Yield all questions with their gold answers.

        Raises:
            ValueError: The data has no histories of such a length.
        """
        data = load_data(household(self.preset), self.split, self.lengths, self.scale, self.data_seed)
        config = language(self.preset, paraphrases=self.paraphrases)
        sampler = QASampler(config)
        for history in range(len(data.histories)):
            log = Log(data.histories.history(history))
            for number in range(self.questions):
                kind = config.kinds[number % len(config.kinds)]
                yield Item(f"{history}-{number}", log, sampler.draw(log, number, kind))


def write_questions(path: Path, questions: QuestionSet, answers: Mapping[str, str] = MappingProxyType({})) -> int:
    """Write a file of questions with the answers to some; return the number of questions."""
    items = [
        {"id": item.id, "query": query_text(item.gold.now, item.gold.question.text), "answer": answers.get(item.id)}
        for item in questions.items()
    ]
    document = {"grammar": GRAMMAR_VERSION, **asdict(questions), "answers": items}
    write_file(path, format_json(document).encode())
    return len(items)


def read_questions(path: Path) -> QuestionSet:
    """Read the settings of a file, from which its questions follow.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is of another grammar version, or a setting is wrong; the message names it.
    """
    return _read_settings(_read(path))


def read_answers(path: Path) -> tuple[QuestionSet, dict[str, str]]:
    """Read a file of answers.

    Returns:
        The settings of its questions, and the answer to each id.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is of another grammar version, a setting or an answer is wrong, or an id is there twice. The
            message names it.
    """
    record = _read(path)
    questions = _read_settings(record)
    answers: dict[str, str] = {}
    for entry in record["answers"].items():
        id = entry["id"]
        if not isinstance(id.value, str):
            raise id.error("a text")
        if id.value in answers:
            raise ValueError(f"{entry.source}: {entry.path}: id {id.value!r} is there twice")
        answer = entry.get("answer")
        if answer is None or not isinstance(answer.value, str):
            raise ValueError(f"{entry.source}: {entry.path}: the answer to id {id.value!r} is missing, or no text")
        answers[id.value] = answer.value
    return questions, answers


def _read(path: Path) -> Field:
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r} is no file")
    record = read_json(path)
    version = record["grammar"]
    if version.value != GRAMMAR_VERSION:
        raise version.error(f"{GRAMMAR_VERSION}, the version of the grammar of this program")
    return record


def _read_settings(record: Field) -> QuestionSet:
    names = ("preset", "split", "scale", "data_seed", "lengths", "questions", "paraphrases")
    values = {name: record[name].value for name in names}
    lengths = values["lengths"]
    if not isinstance(lengths, list) or not all(map(is_int, lengths)):
        raise record["lengths"].error("a list of integers")
    for name in ("preset", "split", "scale", "paraphrases"):
        if not isinstance(values[name], str):
            raise record[name].error("a text")
    try:
        return QuestionSet(**values)
    except ValueError as error:
        raise ValueError(f"{record.source}: {error}") from error


def answered_items(path: Path) -> Iterator[tuple[Item, str]]:
    """Yield each question of a file with its gold answer, and the answer of the model.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: See `read_answers`; or an id is missing or unknown.
    """
    questions, answers = read_answers(path)
    items = list(questions.items())
    ids = {item.id for item in items}
    for wrong, what in ((sorted(ids - set(answers)), "missing"), (sorted(set(answers) - ids), "unknown")):
        if wrong:
            raise ValueError(f"{path}: {len(wrong)} ids are {what}, the first is {wrong[0][:MAX_SHOWN]!r}")
    for item in items:
        yield item, answers[item.id]


class ScoredAnswer(NamedTuple):
    """A scored answer.

    Attributes:
        gold: Its question, with the gold answer.
        length: Number of episodes of the history.
        score: Its score.
    """

    gold: QuestionAnswer
    length: int
    score: Score


def score_file(path: Path) -> list[ScoredAnswer]:
    """Score the answers of a file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: See `answered_items`.
    """
    return [
        ScoredAnswer(item.gold, len(item.log), score_answer(text, item.gold, item.log))
        for item, text in answered_items(path)
    ]


def summarise(answers: Sequence[ScoredAnswer]) -> dict[str, Any]:
    """Summarise scored answers.

    Returns:
        "correct": row -> length of the history, or "all" -> share of right answers. Rows are the kinds of questions,
        "all questions", "mean over kinds" without the clock, which needs no memory, and "overwritten, newest" and so
        on: answers that have been overwritten since, by `RECENCIES`. "facts": precision, recall and F1 over all facts,
        None without a fact. "categories": category -> number of answers.
    """
    lengths: list[int | None] = [*sorted({answer.length for answer in answers}), None]
    rows: dict[str, dict[str, float]] = {}
    for length in lengths:
        column = "all" if length is None else str(length)
        of_length = [answer for answer in answers if length in (None, answer.length)]
        shares = {}
        for kind in KINDS:
            right = [answer.score.category == CORRECT for answer in of_length if answer.gold.kind == kind]
            if right:
                shares[kind] = sum(right) / len(right)
        for kind, share in shares.items():
            rows.setdefault(kind, {})[column] = share
        memory = [share for kind, share in shares.items() if kind != "clock"]
        if memory:
            rows.setdefault("mean over kinds", {})[column] = sum(memory) / len(memory)
        right = [answer.score.category == CORRECT for answer in of_length]
        if right:
            rows.setdefault("all questions", {})[column] = sum(right) / len(right)
        for recency in RECENCIES:
            right = [answer.score.category == CORRECT for answer in of_length if answer.gold.recency == recency]
            if right:
                rows.setdefault(f"overwritten, {recency}", {})[column] = sum(right) / len(right)
    counts = Counter(CATEGORIES[answer.score.category - 1] for answer in answers)
    facts = pool(answer.score for answer in answers)
    return {"correct": rows, "facts": facts._asdict(), "categories": {name: counts[name] for name in CATEGORIES}}
