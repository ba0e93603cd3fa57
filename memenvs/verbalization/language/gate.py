"""The gate of a build of the data: a model without memory must not be right too often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memenvs.verbalization.histories import HistorySampler
from memenvs.verbalization.household_config import household
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.presets import language
from memenvs.verbalization.language.sampler import QASampler, QuestionAnswer
from memenvs.verbalization.language.text_only import Rate, text_only_rates
from memenvs.verbalization.language.wordings import KINDS, Kind
from memenvs.verbalization.pool import generate_pool
from memenvs.verbalization.splits import TEST_LENGTHS

#: Questions of each kind about one history.
_PER_KIND = 2
#: Streams of the keys of the two sets.
_STREAM = 31
#: Episodes of the pool for each history of one length: few of them would have a bias of their own.
_EPISODES, _HOUSE = 5, 10


def measure(
    preset: str, histories: int, seed: int = 0, progress: Callable[[float], None] = lambda share: None
) -> dict[Kind, Rate]:
    """Measure how often a model without memory is right, over all lengths of tests.

    Args:
        preset: "faithful" or "debiased".
        histories: Number of histories of each length, for training and as many others for the test.
        seed: Seed of the episodes and histories.
        progress: Called with the share that is done.

    Returns:
        Rate of each kind.
    """
    sets = [_questions(preset, histories, (seed, _STREAM, part), progress, part) for part in range(2)]
    return text_only_rates(*sets)


def _questions(
    preset: str, histories: int, key: tuple[int, ...], progress: Callable[[float], None], part: int
) -> list[QuestionAnswer]:
    config = replace(household(preset), key_frames="events")  # questions do not depend on the frames between events
    pool = generate_pool(config, max(200, _EPISODES * histories // _HOUSE * _HOUSE), key)
    sampler = QASampler(language(preset))
    source = HistorySampler(config, pool, TEST_LENGTHS, histories * len(TEST_LENGTHS), key)
    found = []
    for number in range(len(source)):
        log = Log(source.history(number))
        for question in range(_PER_KIND * len(KINDS)):
            kind = KINDS[question % len(KINDS)]
            qa = sampler.draw(log, question, kind)
            if qa.kind == kind:
                found.append(qa)
        progress((part + (number + 1) / len(source)) / 2)
    return found
