"""Speed of questions about a robot's life: questions a second of CPU time on one core.

    python benchmarks/questions.py [--preset faithful] [--rounds 5] [--smoke] [--json]

Each line has the number of questions about one history, whose log is made once, then median and range over the rounds.
The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median

from _peer import machine

from memenvs.verbalization.histories import HistorySampler, generate_pool
from memenvs.verbalization.household_config import household
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.presets import PRESETS, language
from memenvs.verbalization.language.sampler import QASampler

HISTORIES = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=tuple(PRESETS), default="debiased")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="one round of few histories, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    arguments = parser.parse_args()
    rounds, number_of_histories = (1, 4) if arguments.smoke else (arguments.rounds, HISTORIES)
    config = household(arguments.preset)
    source = HistorySampler(config, generate_pool(config, 400, (0,)), (1, 2, 3, 5), number_of_histories, (0,))
    histories = [source.history(number) for number in range(number_of_histories)]
    sampler = QASampler(language(arguments.preset))
    rates = {}
    for count in (1, 16):
        speeds = []
        for _ in range(rounds):
            begin = time.process_time()
            for history in histories:
                log = Log(history)
                for number in range(count):
                    sampler.draw(log, number)
            speeds.append(count * number_of_histories / (time.process_time() - begin))
        rates[count] = [round(speed) for speed in (median(speeds), min(speeds), max(speeds))]
        if not arguments.json:
            middle, least, most = rates[count]
            print(f"{count:2} a history: {middle:6} questions/s ({least} to {most})")
    print(json.dumps({"questions_per_second": rates, **machine()}))


if __name__ == "__main__":
    main()
