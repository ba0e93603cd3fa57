"""Tables of a model's answers: by length, kind and distance, as data and as text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memenvs.verbalization.language.sampler import QuestionAnswer
from memenvs.verbalization.language.score import CATEGORIES, CORRECT, TMI_CORRECT, Score, pool
from memenvs.verbalization.language.speech import say_count
from memenvs.verbalization.language.wordings import KINDS, Kind

#: Share of each kind behind the totals of the thesis, solved from its table: the long-term dialogs. Its three easy
#: kinds, of which only the sum is known, have equal parts.
THESIS_MIX: Mapping[Kind, float] = {
    "clock": 0.09,
    "action": 0.45,
    "problems": 0.09,
    "past_time": 0.12,
    "location": 0.04,
    "object": 0.07,
    "duration": 0.09,
    "summary": 0.04,
    "how_often": 0.01,
}

#: Share of right answers of the thesis' model without memory, over all lengths of the long-term dialogs.
THESIS_TEXT_ONLY: Mapping[Kind, float] = {
    "clock": 0.91,
    "action": 0.00,
    "problems": 0.97,
    "past_time": 0.01,
    "location": 0.20,
    "object": 0.11,
    "duration": 0.91,
    "summary": 0.25,
    "how_often": 0.58,
}


class Scored(NamedTuple):
    """A scored answer.

    Attributes:
        gold: Its question, with the gold answer.
        length: Number of episodes of the history.
        score: Its score.
        given_count: Number that it names, of a question "how often"; None for none.
    """

    gold: QuestionAnswer
    length: int
    score: Score
    given_count: int | None = None


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: Its title.
        columns: Names of its columns.
        rows: Rows; the first entry is the name of the row. None where there is nothing to count.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def text(self) -> str:
        """Format it as text: shares in percent."""
        cells = [self.columns, *(tuple(map(_cell, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in cells
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])

    def data(self) -> dict[str, Any]:
        """Return it as lists and dicts, for JSON."""
        return {"title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.1f}" if isinstance(value, float) else str(value)


def share_correct(scored: Iterable[Scored]) -> float | None:
    """Compute the share of answers in the category "correct"; None without an answer."""
    found = [each.score.category == CORRECT for each in scored]
    return sum(found) / len(found) if found else None


def macro_average(scored: Iterable[Scored]) -> float | None:
    """Mean over the kinds of the share of correct answers; "clock" is left out."""
    shares = [
        share_correct(found) for kind, found in _by(scored, lambda each: each.gold.kind).items() if kind != "clock"
    ]
    return sum(share for share in shares if share is not None) / len(shares) if shares else None


def mixed_total(scored: Iterable[Scored]) -> float | None:
    """Compute the share of correct answers with kinds weighted by `THESIS_MIX`."""
    groups = _by(scored, lambda each: each.gold.kind)
    weight = sum(THESIS_MIX[kind] for kind in groups)
    return (
        sum(THESIS_MIX[kind] * (share_correct(found) or 0.0) for kind, found in groups.items()) / weight
        if groups
        else None
    )


def _by(scored: Iterable[Scored], key: Callable[[Scored], Any]) -> dict[Any, list[Scored]]:
    groups: dict[Hashable, list[Scored]] = defaultdict(list)
    for each in scored:
        groups[key(each)].append(each)
    return groups


def make_tables(scored: Sequence[Scored]) -> dict[str, Table]:
    """Make the tables of a model.

    Args:
        scored: All its answers.

    Returns:
        By name: "total", "kind", "information", "distance", "category", "how_often", "mix".
    """
    lengths = sorted({each.length for each in scored})
    by_length = _by(scored, lambda each: each.length)
    columns = [by_length[length] for length in lengths]
    heads = tuple(f"length {length}" for length in lengths)
    return {
        "total": Table(
            "Correct answers, %",
            ("over", *heads, "all"),
            tuple(
                (name, *map(measure, columns), measure(scored))
                for name, measure in (
                    ("all questions", share_correct),
                    ("with true additions", _share_true),
                    ("mean over kinds", macro_average),
                    ("mix of the thesis", mixed_total),
                )
            ),
        ),
        "kind": Table("Correct answers by kind, %", ("kind", *heads, "all"), _kind_rows(scored, columns)),
        "information": Table(
            "Facts, %",
            ("length", "precision", "recall", "F1"),
            tuple(
                (name, *pool(each.score for each in found))
                for name, found in zip((*heads, "all"), (*columns, scored), strict=True)
            ),
        ),
        "distance": _distance_table(scored),
        "category": Table(
            "Answers by category, %",
            ("category", *heads, "all"),
            tuple(
                (name, *(_share_of(found, number) for found in columns), _share_of(scored, number))
                for number, name in enumerate(CATEGORIES, 1)
            ),
        ),
        "how_often": _count_table(scored),
        "mix": _mix_table(scored),
    }


def _share_true(scored: Iterable[Scored]) -> float | None:
    found = [each.score.category in (CORRECT, TMI_CORRECT) for each in scored]
    return sum(found) / len(found) if found else None


def _share_of(scored: Sequence[Scored], category: int) -> float | None:
    return sum(each.score.category == category for each in scored) / len(scored) if scored else None


def _kind_rows(scored: Sequence[Scored], columns: Sequence[Sequence[Scored]]) -> tuple[tuple[Any, ...], ...]:
    names = [*KINDS, "location.robot", "location.object"]

    def select(found: Iterable[Scored], name: str) -> list[Scored]:
        return [each for each in found if name in (each.gold.kind, each.gold.question.family)]

    return tuple(
        (name, *(share_correct(select(found, name)) for found in columns), share_correct(select(scored, name)))
        for name in names
        if select(scored, name)
    )


def _distance_table(scored: Sequence[Scored]) -> Table:
    """Correct answers by reference distance in the longest histories."""
    longest = max((each.length for each in scored), default=0)
    found = [each for each in scored if each.length == longest and each.gold.distance is not None]
    distances = sorted({each.gold.distance for each in found if each.gold.distance})
    rows = []
    for name, kinds in (("all kinds", KINDS), ("action", ("action",))):
        rows.append(
            (
                name,
                *(
                    share_correct(each for each in found if each.gold.distance == d and each.gold.kind in kinds)
                    for d in distances
                ),
            )
        )
    title = f"Correct answers by episodes back from the newest, histories of {longest}, %"
    return Table(title, ("kind", *map(str, distances)), tuple(rows))


def _count_table(scored: Sequence[Scored]) -> Table:
    """Answers to questions how often: the gold ones and those of the model."""
    found = [each for each in scored if each.gold.kind == "how_often"]
    gold = Counter(each.gold.answer.clauses[0].number or 0 for each in found)
    given = Counter(each.given_count for each in found if each.given_count is not None)
    rows = tuple((say_count(count), gold[count], given[count]) for count in sorted({*gold, *given}))
    return Table("Answers to how often", ("answer", "gold", "model"), rows)


def _mix_table(scored: Sequence[Scored]) -> Table:
    """Share of each kind, here and in the thesis, and its class there."""
    counts = Counter(each.gold.kind for each in scored)
    classes = difficulty(THESIS_TEXT_ONLY)
    rows = tuple((kind, counts[kind] / len(scored), THESIS_MIX[kind], classes[kind]) for kind in KINDS if counts[kind])
    return Table("Mix of kinds, %", ("kind", "here", "thesis", "class in the thesis"), rows)


def difficulty(text_only: Mapping[Kind, float]) -> dict[Kind, str]:
    """Class of each kind: easy where a model without memory reaches 80 %, hard below 20 %.

    Args:
        text_only: Share of right answers of the model without memory.
    """
    return {kind: "easy" if share > 0.8 else "hard" if share < 0.2 else "medium" for kind, share in text_only.items()}
