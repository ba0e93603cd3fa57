"""Speed of questions about a robot's life: questions a second of CPU time on one core.

    python benchmarks/questions.py [--preset faithful] [--rounds 5]

Each line has the number of questions about one history, whose log is made once, then median and range over the rounds.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

from memenvs.verbalization.histories import HistorySampler
from memenvs.verbalization.household_config import household
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.presets import PRESETS, language
from memenvs.verbalization.language.sampler import QASampler
from memenvs.verbalization.pool import generate_pool

HISTORIES = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=tuple(PRESETS), default="debiased")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    config = household(arguments.preset)
    source = HistorySampler(config, generate_pool(config, 400, (0,)), (1, 2, 3, 5), HISTORIES, (0,))
    histories = [source.history(number) for number in range(HISTORIES)]
    sampler = QASampler(language(arguments.preset))
    for each in (1, 16):
        speeds = []
        for _ in range(arguments.rounds):
            begin = time.process_time()
            for history in histories:
                log = Log(history)
                for number in range(each):
                    sampler.draw(log, number)
            speeds.append(each * HISTORIES / (time.process_time() - begin))
        print(f"{each:2} a history: {median(speeds):6.0f} questions/s ({min(speeds):.0f} to {max(speeds):.0f})")


if __name__ == "__main__":
    main()
