"""Splits and their sizes: the source of data for environments and supervised training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from memenvs.checks import check_int, choices_for
from memenvs.verbalization.histories import EpisodePool, HistorySampler, generate_pool
from memenvs.verbalization.household_config import HouseholdConfig
from memenvs.verbalization.key_frames import EncodedPool, Scaling, encode_pool, measure_scaling
from memenvs.verbalization.symbols import Dictionary

Split = Literal["train", "valid", "test", "unseen_pairs", "shift"]
ScaleName = Literal["paper", "study", "laptop", "smoke"]
SPLITS: tuple[Split, ...] = get_args(Split)
#: Lengths of histories: of training and validation, and of tests.
TRAIN_LENGTHS, TEST_LENGTHS = (1, 2, 3, 5), (1, 2, 3, 5, 10)
#: Houses are sized by histories of this many episodes.
_HOUSE = 10
#: Changes of the household in the split "shift".
SHIFT: dict[str, Any] = {"episode_speed": (2.0, 4.0), "joint_offset": 0.2, "missed_detections": 0.1}


class SplitSize(NamedTuple):
    """Size of a split.

    Attributes:
        episodes: Episodes, where each has a scene of its own.
        houses: Houses of ten episodes, where histories are continuous.
        histories: Histories of each length.
        questions: Questions about each history; None: any number.
    """

    episodes: int
    houses: int
    histories: int
    questions: int | None


#: Sizes of training, validation and tests by scale; that of tests is that of the two generalisation splits too.
SCALES: Mapping[ScaleName, tuple[SplitSize, SplitSize, SplitSize]] = {
    "paper": (SplitSize(3350, 1000, 6700, None), SplitSize(419, 100, 8380, 10), SplitSize(418, 100, 100, None)),
    "study": (SplitSize(3350, 600, 5000, None), SplitSize(80, 40, 300, 10), SplitSize(80, 40, 50, 60)),
    "laptop": (SplitSize(600, 200, 1200, None), SplitSize(80, 40, 300, 10), SplitSize(80, 40, 40, 60)),
    "smoke": (SplitSize(40, 8, 80, None), SplitSize(10, 4, 20, 10), SplitSize(50, 4, 10, 60)),
}


def split_size(scale: ScaleName, split: Split) -> SplitSize:
    """Return the size of a split.

    Raises:
        ValueError: Unknown scale or split.
    """
    if scale not in SCALES:
        raise ValueError(f"unknown scale {scale!r}; {choices_for(scale, SCALES)}")
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}; {choices_for(split, SPLITS)}")
    return SCALES[scale][min(SPLITS.index(split), 2)]


@dataclass(frozen=True)
class Data:
    """Episodes of one split as agents see them, and the histories of it.

    Attributes:
        histories: Histories by number; `histories.pool` has the episodes.
        frames: Key frames of the pool as agents see them.
        dictionary: Numbers of symbols, from the training split.
        scaling: Mean and standard deviation of signals, from the training split.
    """

    histories: HistorySampler
    frames: EncodedPool
    dictionary: Dictionary
    scaling: Scaling


def load_data(
    config: HouseholdConfig,
    split: Split = "train",
    lengths: tuple[int, ...] = TRAIN_LENGTHS,
    scale: ScaleName = "laptop",
    data_seed: int = 0,
    histories: int | None = None,
) -> Data:
    """Generate the data of a split, or return what was generated before.

    Splits have no episode in common. Symbols are numbered and signals scaled by the training split.

    Args:
        config: Settings of the household. In the split "unseen_pairs" goals have only pairs of object and location that
            are held out, and in "shift" actions take 2 to 4 times as long, joints are offset and detections missed.
        split: "train", "valid", "test", "unseen_pairs" or "shift".
        lengths: Lengths of histories, episodes.
        scale: Size of the splits: "paper", "study", "laptop" or "smoke".
        data_seed: Seed of all episodes and histories.
        histories: Histories of each length, >= 1, with as many episodes and houses for each as the scale has; None: as
            many as the scale has in this split.

    Raises:
        ValueError: An argument is out of range.
    """
    size = split_size(scale, split)
    check_int("data_seed", data_seed, 0)
    if histories is not None:
        check_int("histories", histories)
        share = histories / size.histories
        size = SplitSize(ceil(share * size.episodes), ceil(share * size.houses), histories, size.questions)
    household = replace(config, distractors=0)  # whose episodes are the same, and were perhaps made before
    pool = _pool(household, split, size, data_seed)
    dictionary, scaling = _from_training(household, scale, data_seed)
    key = (data_seed, 1 + SPLITS.index(split))
    sampler = HistorySampler(config, pool, lengths, size.histories * len(lengths), key)
    return Data(sampler, _encoded(household, split, size, scale, data_seed), dictionary, scaling)


def life_data(
    config: HouseholdConfig, episodes: int, seed: int, scale: ScaleName = "laptop", data_seed: int = 0
) -> Data:
    """Generate one history that is in no split, as `Data` with this history alone.

    It has no distractor days.

    Args:
        config: Settings of the household.
        episodes: Length of the history, 1 to 1000.
        seed: Seed of the history; >= 0.
        scale: Scale of the training split, by which symbols are numbered and signals scaled.
        data_seed: Seed of that.

    Raises:
        ValueError: An argument is out of range.
    """
    check_int("episodes", episodes, 1, 1000)
    check_int("seed", seed, 0)
    dictionary, scaling = _from_training(config, scale, data_seed)
    length = max(_HOUSE, episodes)
    own = replace(config, chain_length=length, empty_history=0.0, failure_histories=None, distractors=0)
    key = (data_seed, 1 + len(SPLITS), seed)
    pool = generate_pool(own, length, key)
    histories = HistorySampler(own, pool, (episodes,), 1, key)
    return Data(histories, encode_pool(pool, dictionary, scaling), dictionary, scaling)


@lru_cache(maxsize=8)
def _pool(config: HouseholdConfig, split: Split, size: SplitSize, data_seed: int) -> EpisodePool:
    count = size.episodes
    if config.continuous:
        houses = max(4, round(size.houses * _HOUSE / config.chain_length))
        count = houses * config.chain_length
    if split == "unseen_pairs":
        config = replace(config, pairs="unseen")
    elif split == "shift":
        config = replace(config, **SHIFT)
    return generate_pool(config, count, (data_seed, 1 + SPLITS.index(split)))


@lru_cache(maxsize=8)
def _from_training(config: HouseholdConfig, scale: ScaleName, data_seed: int) -> tuple[Dictionary, Scaling]:
    frames = _pool(config, "train", split_size(scale, "train"), data_seed).frames
    used = np.unique(np.concatenate([frames.goal.ravel(), frames.action, frames.args.ravel(), frames.objects.ravel()]))
    return Dictionary.of(used.tolist()), measure_scaling(frames)


@lru_cache(maxsize=8)
def _encoded(config: HouseholdConfig, split: Split, size: SplitSize, scale: ScaleName, data_seed: int) -> EncodedPool:
    return encode_pool(_pool(config, split, size, data_seed), *_from_training(config, scale, data_seed))
