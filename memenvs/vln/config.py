"""Settings of the tasks."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass

from memenvs.checks import MAX_STEPS, check_int, choices_for, is_int, plain_fields
from memenvs.vln.features.base import FEATURES
from memenvs.vln.features.file_features import ENDINGS
from memenvs.vln.tokenizers import TOKENIZERS
from memenvs.vln.worlds.base import HISTORIES, SUPERVISIONS
from memenvs.vln.worlds.procedural.rounds import LAPS
from memenvs.vln.worlds.procedural.world import MAX_LEGS

WORLDS = ("procedural", "mp3d")
INVALID = ("error", "stop")
TOO_LONG = ("cut", "error")
TOURS = ("seeded", "published")
#: Largest size of a feature and number of tokens of a text: more would only fill the memory.
MAX_FEATURES = 16384
MAX_TOKENS = 65536
#: Published limit of decisions in R2R.
STEPS_PER_LEG = 15
_PROCEDURAL_LEGS = 3  # fewer need next to no memory


@dataclass(frozen=True, kw_only=True)
class VLNConfig(ABC):
    """Settings of all tasks.

    Attributes:
        world: "procedural" (houses and episodes from seeds, nothing to download) or "mp3d" (Matterport3D, from your
            files).
        split: "train", "val_seen" or "val_unseen"; R2R in "mp3d" has "val_train_seen" too.
        data_dir: Folder with the files of "mp3d" and "wordpiece", or its parent with a subfolder `vln`; None for `vln`
            in `$MEMENVS_DATA`. Must be None if nothing is read from it. Files that have changed are read again.
        features: Image features of views: "synthetic" (`memenvs.vln.features.synthetic`), "none" (zeros), or the path
            of your file (`memenvs.vln.features.file_features`).
        feature_size: Size D of an image feature, 1 to 16384; None for 64, or for all numbers of the file. A smaller D
            takes the first D numbers of the file.
        panorama: True adds all 36 views to the observation.
        tokenizer: "words" (vocabulary of the training texts) or "wordpiece" (BERT's, from its vocabulary file in the
            data folder).
        max_tokens: Length of the instruction with its separator; 2 to 65536; None for the default of the world.
        too_long: Longer texts are "cut" (R2R drops their end, CVDN their beginning) or an "error".
        invalid: An action without a candidate is an "error", or counts as "stop".
        legs: Shortest paths that the text describes one after another, 1 to 3; None for 3 in "procedural" and 1 in
            "mp3d", where R2R alone has others. The end of each leg has to be visited, in order.
        max_episode_steps: Decisions in an episode; 1 to 1,000,000; None for the published limit, and 15 per leg.
    """

    world: str = "procedural"
    split: str = "train"
    data_dir: str | None = None
    features: str = "synthetic"
    feature_size: int | None = None
    panorama: bool = False
    tokenizer: str = "words"
    max_tokens: int | None = None
    too_long: str = "cut"
    invalid: str = "error"
    legs: int | None = None
    max_episode_steps: int | None = None

    def __post_init__(self) -> None:
        plain_fields(self)
        for name, choices in (
            ("world", WORLDS),
            ("tokenizer", TOKENIZERS),
            ("too_long", TOO_LONG),
            ("invalid", INVALID),
        ):
            _check_choice(name, getattr(self, name), choices)
        if self.features not in FEATURES and not str(self.features).endswith(ENDINGS):
            raise ValueError(
                f"unknown features {self.features!r}: a file must end in {', '.join(ENDINGS)}; "
                f"{choices_for(self.features, FEATURES)}"
            )
        if not isinstance(self.split, str):
            raise TypeError(f"split must be text, got {self.split!r}")
        if self.data_dir is not None and not isinstance(self.data_dir, (str, os.PathLike)):
            raise TypeError(f"data_dir must be a path or None, got {self.data_dir!r}")
        if self.data_dir is not None and self.world == "procedural" and self.tokenizer == "words":
            raise ValueError(
                f"data_dir must be None with world 'procedural' and tokenizer 'words', which read no files, "
                f"got {str(self.data_dir)!r}; "
                "world='mp3d' reads them"
            )
        if not isinstance(self.panorama, bool):
            raise ValueError(f"panorama must be True or False, got {self.panorama!r}")
        check_int("feature_size", self.feature_size, at_most=MAX_FEATURES, or_none=True)
        check_int("max_tokens", self.max_tokens, 2, MAX_TOKENS, or_none=True)
        check_int("max_episode_steps", self.max_episode_steps, at_most=MAX_STEPS, or_none=True)
        if self.legs is not None and (not is_int(self.legs) or not 1 <= self.legs <= MAX_LEGS):
            raise ValueError(f"legs must be an integer in 1 ... {MAX_LEGS}, or None, got {self.legs!r}")

    @property
    def num_legs(self) -> int:
        """Legs of a path."""
        default = _PROCEDURAL_LEGS if self.world == "procedural" else 1
        return default if self.legs is None else self.legs

    @property
    def ends_off_path(self) -> bool:
        """True if a move that leaves the path ends the episode."""
        return False

    @property
    @abstractmethod
    def step_limit(self) -> int:
        """Decisions in an episode."""


@dataclass(frozen=True, kw_only=True)
class R2RConfig(VLNConfig):
    """Settings of VLN-R2R.

    The published limit is 15 decisions; routes of several legs have 15 per leg.

    Attributes:
        laps: 0, or 2 to 6 in world "procedural", in place of `legs`: to a place and back as many times, then one more
            leg. A move that leaves the path then ends the episode, because an agent could count its laps by detours.
    """

    laps: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_int(self.laps) or not (self.laps == 0 or LAPS[0] <= self.laps <= LAPS[1]):
            raise ValueError(f"laps must be 0 or an integer in {LAPS[0]} ... {LAPS[1]}, got {self.laps!r}")
        if self.laps and self.world != "procedural":
            raise ValueError(f"laps must be 0 in world {self.world!r}, whose texts have none, got {self.laps}")
        if self.laps and self.legs is not None:
            raise ValueError(f"legs must be None with {self.laps} laps, which decide it, got {self.legs}")

    @property
    def num_legs(self) -> int:
        """Legs of a path; two for each lap, and one."""
        return 2 * self.laps + 1 if self.laps else super().num_legs

    @property
    def ends_off_path(self) -> bool:
        """True if a move that leaves the path ends the episode."""
        return self.laps > 0

    @property
    def step_limit(self) -> int:
        """Decisions in an episode; by default 15 per leg."""
        return STEPS_PER_LEG * self.num_legs if self.max_episode_steps is None else self.max_episode_steps


@dataclass(frozen=True, kw_only=True)
class IR2RConfig(R2RConfig):
    """Settings of VLN-IR2R: those of VLN-R2R, and its tours.

    Attributes:
        tours: "seeded" (drawn anew for each trial) or "published" (from your file; world "mp3d" alone has them).
    """

    tours: str = "seeded"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("tours", self.tours, TOURS)
        if self.tours == "published" and self.world != "mp3d":
            raise ValueError(
                f"tours must be 'seeded' in world {self.world!r}: the published ones are of world 'mp3d', "
                f"got {self.tours!r}"
            )
        if self.world == "mp3d" and self.num_legs > 1:  # some houses have no paths that follow one another
            raise ValueError(f"legs must be 1 or None in tours of world 'mp3d', got {self.legs}")


@dataclass(frozen=True, kw_only=True)
class CVDNConfig(VLNConfig):
    """Settings of VLN-CVDN.

    The vocabulary of "words" in world "mp3d" comes from R2R's train split and CVDN's train split. If the latter file is
    missing, CVDN's val_seen is used, which has the same houses. An agent needs the vocabulary that it was trained with.

    With several legs the dialogue takes place before the agent sets out: each answer describes one leg. With one leg it
    is as published: earlier answers are about what lies behind, the last one about the next five edges at most.

    Attributes:
        supervision: Path of the teacher: "oracle" (the planner's), "navigator" (the human's) or "mixed" (the human's if
            it visits the end of the planner's, else the planner's). Limits are 20 decisions for "oracle" and 40 for the
            others, as in PREVALENT. Must be "mixed" with several legs, where all three are one path; they have 15
            decisions per leg.
        history: Part of the dialogue that is given: "all", "last_exchange", "last_answer" or "target".
    """

    supervision: str = "mixed"
    history: str = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("supervision", self.supervision, SUPERVISIONS)
        _check_choice("history", self.history, HISTORIES)
        if self.world == "mp3d" and self.num_legs > 1:
            raise ValueError(
                f"legs must be 1 or None in world 'mp3d', whose dialogues describe one path, got {self.legs}"
            )
        if self.num_legs > 1 and self.supervision != "mixed":
            raise ValueError(
                f"supervision must be 'mixed' with {self.num_legs} legs, where all supervisions have the same path, "
                f"got {self.supervision!r}; legs=1 has all"
            )

    @property
    def step_limit(self) -> int:
        """Decisions in an episode; by default 20 or 40, with several legs 15 per leg."""
        published = 20 if self.supervision == "oracle" else 40
        default = published if self.num_legs == 1 else STEPS_PER_LEG * self.num_legs
        return default if self.max_episode_steps is None else self.max_episode_steps


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}; {choices_for(value, choices)}")
