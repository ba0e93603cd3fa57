"""Settings of the questions: the presets `faithful` and `debiased`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from memenvs.checks import as_names, choices_for
from memenvs.verbalization.household_config import check_names, check_preset
from memenvs.verbalization.language.wordings import KINDS, Kind

Paraphrases = Literal["all", "seen", "held_out"]
PARAPHRASES: tuple[Paraphrases, ...] = ("all", "seen", "held_out")


@dataclass(frozen=True, kw_only=True)
class LanguageConfig:
    """Settings of the questions. The defaults are those of the preset "faithful".

    Attributes:
        kinds: Kinds of questions, of `KINDS`.
        weights: Weight of each of `KINDS`; those of kinds that are left out count for nothing.
        paraphrases: "all", "seen" (without the held-out ones) or "held_out" (these alone).
        unique: True: what a question means is unique, its time is named more finely where it has to be. False: the
            answer is about the episode from which the question was made, whatever else it could mean.
        balanced: True: answers are balanced by the tables of `memenvs.verbalization.language.balance`. False: questions
            are about what there is.
        weekdays: Ask for the weekday too.
        false_presupposition: Share of the questions that presuppose what did not happen, of the kinds that can.
        timeless: Share of the questions without a time, of the families that can be.
        exact: Share of the questions about durations that are drawn as exact ones.
        intervals: Share of the questions about problems that are about a period.
        positions: Share of the questions about places that are about the robot, as they are drawn; not all are kept
            where answers are balanced.
        empty_summaries: Share of the summaries for which a period without an episode is drawn.
        never: Share of the questions how often that are about anything, and not about what happened; where answers are
            balanced it has no effect.
        how_often_from: Fewest episodes of a history for questions how often.
        shortest_stay: Seconds that the robot must have been where a question about its position means; 0 allows moves.
        hands: Answers say with which hand an object of a goal was grasped.
        even: Only a question that means the newest candidate anyway can be without a time, so that questions mean each
            about equally often.
    """

    kinds: tuple[Kind, ...] = KINDS
    weights: tuple[float, ...] = (9.0, 45.0, 9.0, 12.0, 4.0, 7.0, 9.0, 4.0, 1.0)
    paraphrases: Paraphrases = "all"
    unique: bool = False
    balanced: bool = False
    weekdays: bool = False
    false_presupposition: float = 0.0
    timeless: float = 0.1
    exact: float = 0.04
    intervals: float = 0.1
    positions: float = 0.5
    empty_summaries: float = 0.24
    never: float = 0.3
    how_often_from: int = 1
    shortest_stay: int = 0
    hands: bool = False
    even: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", as_names("kinds", self.kinds))
        object.__setattr__(self, "weights", tuple(self.weights))
        check_names("kinds", self.kinds, KINDS)
        if len(self.weights) != len(KINDS) or min(self.weights) <= 0:
            raise ValueError(f"weights must be {len(KINDS)} numbers > 0, got {self.weights!r}")
        if self.paraphrases not in PARAPHRASES:
            raise ValueError(f"unknown paraphrases {self.paraphrases!r}; {choices_for(self.paraphrases, PARAPHRASES)}")
        for name in ("false_presupposition", "timeless", "exact", "intervals", "positions", "empty_summaries", "never"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a share of 0 to 1, got {getattr(self, name)!r}")


#: Settings of each preset that differ from the defaults.
PRESETS: dict[str, dict[str, Any]] = {
    "faithful": {},
    "debiased": {
        "weights": (0.2, *[1.0] * 8),
        "unique": True,
        "balanced": True,
        "weekdays": True,
        "false_presupposition": 0.06,
        "timeless": 0.15,
        "exact": 0.3,
        "intervals": 0.5,
        "positions": 0.7,
        "empty_summaries": 0.05,
        "how_often_from": 5,
        "shortest_stay": 120,
        "hands": True,
    },
}


def language(preset: str = "faithful", **changes: Any) -> LanguageConfig:
    """Make the settings of a preset, with changes.

    Args:
        preset: "faithful" (the thesis, with its biases) or "debiased".
        changes: Fields of `LanguageConfig`.

    Raises:
        ValueError: Unknown preset, or a field out of range.
        TypeError: Unknown field.
    """
    check_preset("language", LanguageConfig, PRESETS, preset, changes)
    return replace(LanguageConfig(), **{**PRESETS[preset], **changes})
