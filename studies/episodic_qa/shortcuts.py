"""Shortcuts of questions: right answers of a model without memory, by kind.

It gives to each question the most frequent answer of its form; see `memenvs.verbalization.likeliest`. The
command prints a row for each kind, and fails if "debiased" gives more away than it promises, or "faithful" does not
have the shortcuts of the thesis.

    python studies/episodic_qa/shortcuts.py [--preset debiased] [--histories 500] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from memenvs.verbalization.histories import HistorySampler, generate_pool
from memenvs.verbalization.household_config import household
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.presets import PRESETS, language
from memenvs.verbalization.language.sampler import QASampler, QuestionAnswer
from memenvs.verbalization.language.wordings import KINDS, Kind
from memenvs.verbalization.likeliest import LEVELS, MajorityAnswers
from memenvs.verbalization.splits import TEST_LENGTHS

#: Highest share of right answers in "debiased"; that of "how_often" holds for histories of 5 episodes and more.
TARGETS: Mapping[Kind, float] = {
    "problems": 0.55,
    "duration": 0.20,
    "how_often": 0.30,
    "summary": 0.12,
    "location": 0.14,
    "object": 0.09,
}
#: Lowest and highest share of the model without memory in the thesis, over all lengths, for "faithful".
BANDS: Mapping[Kind, tuple[float, float]] = {
    "problems": (0.95, 0.98),
    "duration": (0.90, 0.92),
    "action": (0.00, 0.01),
    "object": (0.10, 0.12),
    "location": (0.20, 0.22),
    "past_time": (0.00, 0.03),
    "how_often": (0.45, 0.67),
    "summary": (0.23, 0.27),
}
#: A share may be this far above a target, or this far outside of a band.
TARGET_TOLERANCE, BAND_TOLERANCE = 0.05, 0.06
#: Questions of each kind about one history.
PER_KIND = 2
#: Stream of the keys of the two sets of histories.
STREAM = 31
#: Episodes of the pool for each history of one length: few of them would have a bias of their own.
EPISODES, HOUSE = 5, 10


class Rate(NamedTuple):
    """Share of right answers of the best level, number of questions, and that level."""

    share: float
    questions: int
    level: str


def rates_of(training: Iterable[QuestionAnswer], test: Iterable[QuestionAnswer]) -> dict[Kind, Rate]:
    """Measure the model without memory.

    Args:
        training: Questions from which it takes its answers.
        test: Questions about other histories.

    Returns:
        Rate of each kind that `test` has. "clock" needs no memory: the time of the question is its answer.
    """
    training, test = list(training), list(test)
    rates: dict[Kind, Rate] = {}
    models = [MajorityAnswers(level, training) for level in LEVELS]
    for kind in KINDS:
        questions = [qa for qa in test if qa.kind == kind]
        if questions and kind == "clock":
            rates[kind] = Rate(1.0, len(questions), "the time of the question")
        elif questions:
            shares = [(sum(map(model.is_right, questions)) / len(questions), model.level) for model in models]
            share, level = max(shares, key=lambda pair: pair[0])
            rates[kind] = Rate(share, len(questions), level)
    return rates


def measure(preset: str, histories: int, seed: int = 0) -> dict[Kind, Rate]:
    """Measure the rates of a preset over all lengths of tests.

    Args:
        preset: "faithful" or "debiased".
        histories: Number of histories of each length, for training and as many others for the test.
        seed: Seed of the episodes and histories.
    """
    return rates_of(*(draw_questions(preset, histories, (seed, STREAM, part)) for part in range(2)))


def draw_questions(preset: str, histories: int, key: tuple[int, ...]) -> list[QuestionAnswer]:
    """Draw questions of each kind about new histories."""
    config = household(preset, key_frames="events")  # questions do not depend on the frames between events
    pool = generate_pool(config, max(200, EPISODES * histories // HOUSE * HOUSE), key)
    sampler = QASampler(language(preset))
    source = HistorySampler(config, pool, TEST_LENGTHS, histories * len(TEST_LENGTHS), key)
    questions = []
    for number in range(len(source)):
        log = Log(source.history(number))
        for question in range(PER_KIND * len(KINDS)):
            kind = KINDS[question % len(KINDS)]
            qa = sampler.draw(log, question, kind)
            if qa.kind == kind:
                questions.append(qa)
    return questions


def allowed(kind: Kind, preset: str) -> tuple[float, float]:
    """Return the lowest and the highest share that a preset promises, without tolerance."""
    return BANDS.get(kind, (0.0, 1.0)) if preset == "faithful" else (0.0, TARGETS.get(kind, 1.0))


def broken_promises(rates: Mapping[Kind, Rate], preset: str) -> list[str]:
    """Describe each rate that is outside of what its preset promises."""
    tolerance = BAND_TOLERANCE if preset == "faithful" else TARGET_TOLERANCE
    messages = []
    for kind, rate in rates.items():
        low, high = allowed(kind, preset)
        if not low - tolerance <= rate.share <= high + tolerance:
            messages.append(
                f"{kind}: a model without memory is right in {100 * rate.share:.1f} % ({rate.level}), must be "
                f"{100 * low:.0f} to {100 * high:.0f} % within {100 * tolerance:.0f} points"
            )
    return messages


def main() -> int:
    """Print the rates; return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=tuple(PRESETS), default="debiased")
    parser.add_argument("--histories", type=int, default=500, help="of each length (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rates = measure(options.preset, options.histories, options.seed)
    for kind, rate in rates.items():
        low, high = allowed(kind, options.preset)
        promise = f"{100 * low:.0f} to {100 * high:.0f} %" if high < 1 else ""
        print(f"{kind:10}  {100 * rate.share:5.1f} % of {rate.questions}  {promise:12}  {rate.level}")
    messages = broken_promises(rates, options.preset)
    print(*messages, sep="\n", file=sys.stderr)
    return int(bool(messages))


if __name__ == "__main__":
    sys.exit(main())
