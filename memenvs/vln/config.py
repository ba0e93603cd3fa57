"""Settings of the two tasks."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass

from memenvs.checks import check_int, choices_for, is_int
from memenvs.vln.features.base import FEATURES
from memenvs.vln.features.files import ENDINGS
from memenvs.vln.tokens import TOKENIZERS
from memenvs.vln.worlds.base import HISTORIES, SUPERVISIONS
from memenvs.vln.worlds.make import WORLDS
from memenvs.vln.worlds.procedural.world import MOST_LEGS

INVALID = ("error", "stop")
NDTW_UNITS = ("metres", "hops")
TOO_LONG = ("cut", "error")


@dataclass(frozen=True, kw_only=True)
class VLNConfig(ABC):
    """Settings that both tasks have.

    Attributes:
        world: Where houses and episodes are from: "procedural" (from seeds, nothing to download) or "mp3d" (the real ones, from files of yours).
        split: Which episodes: "train", "val_seen" or "val_unseen"; "val_train_seen" of the real R2R.
        data_dir: Folder of the files of "mp3d" and "wordpiece", or that in which it is called `vln`; None for `vln` in the folder that
            `$MEMENVS_DATA` names. Must be None where nothing is read from it. Files that have changed are read again.
        features: What views look like: "synthetic" (see `memenvs.vln.features.synthetic.SyntheticFeatures`), "none" (zeros), or the path of a file of yours
            (see `memenvs.vln.features.files.FileFeatures`).
        feature_size: Numbers D of an image feature; None for what suits (64, or all that the file has; of a file the first so many).
        panorama: Whether the observation has all 36 views as well.
        tokenizer: "words" (a vocabulary of the training texts) or "wordpiece" (BERT's; needs its vocabulary file in the data folder).
        max_tokens: Length of the instruction, separator included; >= 2; None for what suits the world.
        too_long: What happens to longer texts: "cut" (R2R drops their end, CVDN their beginning) or "error".
        max_candidates: Neighbours that a viewpoint may have; the action of this number is to stop. The real graphs have 13 at most.
        invalid: What happens at an action that has no candidate: "error", or "stop" takes it for stopping.
        reward_ndtw: Unit of the distances in the reward's path likeness: "metres", or "hops" as in MTVM's release.
        max_episode_steps: Decisions in an episode; >= 1; None for the published limit.
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
    max_candidates: int = 16
    invalid: str = "error"
    reward_ndtw: str = "metres"
    max_episode_steps: int | None = None

    def __post_init__(self) -> None:
        for name, choices in (
            ("world", WORLDS),
            ("tokenizer", TOKENIZERS),
            ("too_long", TOO_LONG),
            ("invalid", INVALID),
            ("reward_ndtw", NDTW_UNITS),
        ):
            _check_choice(name, getattr(self, name), choices)
        if self.features not in FEATURES and not str(self.features).endswith(ENDINGS):
            raise ValueError(
                f"unknown features {self.features!r}: a file must end in {', '.join(ENDINGS)}; {choices_for(self.features, FEATURES)}"
            )
        if not isinstance(self.split, str):
            raise TypeError(f"split must be text, got {self.split!r}")
        if self.data_dir is not None and not isinstance(self.data_dir, (str, os.PathLike)):
            raise TypeError(f"data_dir must be a path or None, got {self.data_dir!r}")
        if self.data_dir is not None and self.world == "procedural" and self.tokenizer == "words":
            raise ValueError(
                f"data_dir must be None with world 'procedural' and tokenizer 'words', which read no files, got {str(self.data_dir)!r}; "
                "world='mp3d' reads them"
            )
        if not isinstance(self.panorama, bool):
            raise ValueError(f"panorama must be True or False, got {self.panorama!r}")
        check_int("feature_size", self.feature_size, or_none=True)
        check_int("max_tokens", self.max_tokens, 2, or_none=True)
        check_int("max_candidates", self.max_candidates)
        check_int("max_episode_steps", self.max_episode_steps, or_none=True)

    @property
    @abstractmethod
    def step_limit(self) -> int:
        """Decisions in an episode."""


@dataclass(frozen=True, kw_only=True)
class R2RConfig(VLNConfig):
    """Settings of VLN-R2R: those of `VLNConfig`, and how long tours are. The published limit is 15 decisions; tours have 15 for each leg.

    Attributes:
        legs: World "procedural": shortest paths in a tour, 1 to 3. Each end of a leg has to be visited, in order.
    """

    legs: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        most = MOST_LEGS if self.world == "procedural" else 1
        if not is_int(self.legs) or not 1 <= self.legs <= most:
            raise ValueError(f"legs must be an integer in 1 ... {most} in world {self.world!r}, got {self.legs!r}")

    @property
    def step_limit(self) -> int:
        """Decisions in an episode; 15 for each leg if nothing else is asked for."""
        return 15 * self.legs if self.max_episode_steps is None else self.max_episode_steps


@dataclass(frozen=True, kw_only=True)
class CVDNConfig(VLNConfig):
    """Settings of VLN-CVDN: those of `VLNConfig`, a supervision and a history.

    The vocabulary of "words" in world "mp3d" is of R2R's train and of CVDN's train or, where that file is not there, of CVDN's val_seen, which is in
    the same houses. A trained agent needs the vocabulary that it was trained with.

    Attributes:
        supervision: Which path teaches: "oracle" (the planner's), "navigator" (the human's) or "mixed" (the human's if it comes by the end of the
            planner's, else the planner's). Limits are 20 decisions for "oracle" and 40 for the others, as in PREVALENT.
        history: How much of the dialogue is told: "all", "last_exchange", "last_answer" or "target".
    """

    supervision: str = "mixed"
    history: str = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("supervision", self.supervision, SUPERVISIONS)
        _check_choice("history", self.history, HISTORIES)

    @property
    def step_limit(self) -> int:
        """Decisions in an episode; 20 or 40 if nothing else is asked for."""
        published = 20 if self.supervision == "oracle" else 40
        return published if self.max_episode_steps is None else self.max_episode_steps


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}; {choices_for(value, choices)}")
