"""Settings of the EpisodicQA environments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from memenvs.checks import as_names, check_fields, check_int, is_int, plain_fields
from memenvs.verbalization.household_config import HouseholdConfig, Preset, check_names, household
from memenvs.verbalization.language.presets import LanguageConfig, Paraphrases, language
from memenvs.verbalization.language.questions import OVERWRITABLE_KINDS
from memenvs.verbalization.language.sampler import RECENCIES, Recency
from memenvs.verbalization.language.wordings import KINDS, Kind
from memenvs.verbalization.splits import TRAIN_LENGTHS, ScaleName, Split
from memenvs.verbalization.symbols import LOCATIONS, OBJECTS

#: Parts of a key frame by modality.
MODALITIES = {
    "date": ("dt",),
    "symbols": ("goal", "action", "args", "objects"),
    "statuses": ("state",),
    "signals": ("sub",),
    "images": ("latent",),
}
#: Kinds of questions whose answers a policy can learn by reinforcement.
RL_KINDS: tuple[Kind, ...] = ("action", "problems", "location", "object", "how_often")
_CHAIN = 10


@dataclass(frozen=True, kw_only=True)
class EpisodicQAConfig:
    """Settings of EpisodicQA.

    Attributes:
        preset: "debiased", or "faithful": the thesis with its biases.
        lengths: Lengths of histories, episodes; all have equal shares.
        sampling: "published": as supervised presets have it; of "debiased", 2 % of the histories have no episode, and
            more questions mean the newest episode. "even": every history has one, and questions about one episode mean
            each about equally often.
        frames_per_step: Key frames in one observation (F), 1 to 1024.
        questions_per_history: Questions that are put in one Gym episode.
        put: "end": all questions come after the history. "interleaved": only the last one does, the others come after
            earlier episodes.
        answer_mode: "structured": an action is one fact. "tokens": an action is one token of the answer's words.
        kinds: Kinds of questions, of `KINDS`.
        split: Split of the episodes: "train", "valid", "test", "unseen_pairs" or "shift".
        scale: Size of the splits: "paper", "study", "laptop" or "smoke".
        questions: Number of different questions about each history from which those of an episode are drawn.
        paraphrases: Wordings of questions: "all", "seen" (without the held-out fifth) or "held_out" (that alone).
        overwritten: Only questions whose answer has been overwritten since, the last time this recently: of "newest"
            (in the newest episode), "recent" (one to three before it) and "old" (earlier). Such questions are of kind
            "location" (where an object was put) or "object" (what was brought to a location). (): any questions.
        distractors: Distractor days, 0 to 100: days of two episodes in another house each, between a history and the
            questions, which are about the history.
        pairs: (object, location) pairs of goals: "all", or "seen" (without those of the split "unseen_pairs").
        modalities: Parts of a key frame that are observed, of `MODALITIES`.
        reward: "f1": F1 of the facts of an answer. "correct": 1 if all its facts are right and there is no other.
        key_frames: "events", or "windows": a key frame also every five seconds.
        objects: Symbols of the objects of the household.
        locations: Symbols of its locations; "roomcenter" is among them.
        data_seed: Seed of all episodes, histories and questions.
        histories: Histories of each length, 1 to 1,000,000; the split has houses in proportion to them. None: as many
            as the scale has in this split.
    """

    preset: Preset = "debiased"
    lengths: tuple[int, ...] = TRAIN_LENGTHS
    sampling: Literal["published", "even"] = "published"
    frames_per_step: int = 16
    questions_per_history: int = 1
    put: Literal["end", "interleaved"] = "end"
    answer_mode: Literal["structured", "tokens"] = "structured"
    kinds: tuple[Kind, ...] = RL_KINDS
    split: Split = "train"
    scale: ScaleName = "laptop"
    questions: int = 16
    paraphrases: Paraphrases = "all"
    overwritten: tuple[Recency, ...] = ()
    distractors: int = 0
    pairs: Literal["all", "seen"] = "all"
    modalities: tuple[str, ...] = ("date", "symbols", "statuses", "signals")
    reward: Literal["f1", "correct"] = "f1"
    key_frames: Literal["events", "windows"] = "events"
    objects: tuple[str, ...] = tuple(OBJECTS)
    locations: tuple[str, ...] = tuple(LOCATIONS)
    data_seed: int = 0
    histories: int | None = None

    def __post_init__(self) -> None:
        plain_fields(self)
        for name in ("kinds", "overwritten", "modalities", "objects", "locations"):
            object.__setattr__(self, name, as_names(name, getattr(self, name)))
        lengths = (self.lengths,) if is_int(self.lengths) else self.lengths
        object.__setattr__(self, "lengths", tuple(lengths) if isinstance(lengths, list) else lengths)
        check_fields(self)
        if not self.lengths:
            raise ValueError(f"lengths must be an integer or a list of integers, got {self.lengths!r}")
        for length in self.lengths:
            check_int("lengths", length, 1, 1000)
        check_int("frames_per_step", self.frames_per_step, 1, 1024)
        check_int("questions_per_history", self.questions_per_history, 1, 1000)
        check_int("questions", self.questions, 1, 100_000)
        check_int("data_seed", self.data_seed, 0)
        if self.histories is not None:
            check_int("histories", self.histories, 1, 1_000_000)
        check_names("kinds", self.kinds, KINDS)
        check_names("modalities", self.modalities, MODALITIES)
        if self.overwritten:
            check_names("overwritten", self.overwritten, RECENCIES)
            if not set(self.kinds) & set(OVERWRITABLE_KINDS):
                raise ValueError(
                    f"overwritten must be () without kinds {list(OVERWRITABLE_KINDS)}, the only ones whose answers are "
                    f"overwritten, got {self.overwritten} and kinds {self.kinds}"
                )
        self.household()  # checks the rest
        self.language()

    def household(self) -> HouseholdConfig:
        """Return the settings of the household."""
        changes: dict[str, Any] = {"empty_history": 0.0} if self.sampling == "even" else {}
        if len(self.objects) < len(OBJECTS):  # then scenes are as large as there are objects
            count = len(self.objects)
            changes["scene_objects"] = (
                (min(6, count), min(10, count)) if self.preset == "debiased" else (1, min(6, count))
            )
        return household(
            self.preset,
            objects=self.objects,
            locations=self.locations,
            key_frames=self.key_frames,
            pairs=self.pairs,
            distractors=self.distractors,
            chain_length=max(_CHAIN, *self.lengths),
            **changes,
        )

    def language(self) -> LanguageConfig:
        """Return the settings of the questions."""
        changes: dict[str, Any] = {} if self.is_whole else {"false_presupposition": 0.0, "balanced": False}
        even = self.sampling == "even"
        kinds = tuple(kind for kind in self.kinds if kind in OVERWRITABLE_KINDS) if self.overwritten else self.kinds
        return language(self.preset, kinds=kinds, paraphrases=self.paraphrases, even=even, **changes)

    @property
    def is_whole(self) -> bool:
        """True if the household has all objects and locations.

        Else no question presupposes what did not happen: names of what does not exist would give it away.
        """
        return len(self.objects) == len(OBJECTS) and len(self.locations) == len(LOCATIONS)

    @property
    def parts(self) -> tuple[str, ...]:
        """Observed parts of a key frame, in their order in `memenvs.verbalization.key_frames.PARTS`."""
        return tuple(part for name, parts in MODALITIES.items() if name in self.modalities for part in parts)
