"""Speed of ColorRecall and ViewRecall: episodes drawn anew, and episodes of a pool.

One thread; homes are loaded beforehand. Time is CPU time, so other processes do not count. `--smoke` ends in seconds.

    python benchmarks/recall.py [--smoke] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from _peer import machine

from memenvs.recall.config import ColorRecallConfig, ViewRecallConfig
from memenvs.recall.pools import ColorPool, ViewPool


def rate(count: int, work: Callable[[], object]) -> float:
    """Units of work per second of CPU time."""
    start = time.process_time()
    work()
    return count / (time.process_time() - start)


def measure(count: int) -> dict[str, float]:
    """Episodes a second, by name.

    Args:
        count: Tours and positions of the pools.
    """
    color_config, view_config = ColorRecallConfig(rooms=(6, 6)), ViewRecallConfig(rooms=(6, 6))
    world = color_config.make_world()
    for number in range(min(count, len(world))):
        world.home(number)
    color_config, view_config = ColorRecallConfig(world=world), ViewRecallConfig(world=world)
    pools: list = []
    rates = {}
    for name, make in (
        ("tours drawn", lambda: pools.append(ColorPool(color_config, tours=count))),
        ("positions drawn", lambda: pools.append(ViewPool(view_config, positions=count))),
    ):
        make()  # compiles, and prepares the homes for rendering
        pools.pop()
        rates[name] = rate(count, make)
    color, view = pools
    rng = np.random.default_rng(0)
    batches = [color.sample_batch(32, rng) for _ in range(2)], [view.sample_batch(32, rng) for _ in range(2)]
    for name, work in (
        ("ColorRecall, numbers and first images", lambda: color.first_images(color.sample_batch(32, rng))),
        ("ColorRecall, all images", lambda: color.images[batches[0][0].tour]),
        ("ViewRecall, numbers", lambda: view.sample_batch(32, rng)),
        ("ViewRecall, all images", lambda: view.observed(batches[1][0])),
    ):
        rates[name] = rate(32 * 4, lambda work=work: [work() for _ in range(4)])
    return rates


def main() -> None:
    """Print the speeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="two tours and positions")
    parser.add_argument("--json", action="store_true", help="print the last line alone, one JSON document")
    options = parser.parse_args()
    rates = measure(2 if options.smoke else 37)
    if not options.json:
        for name, value in rates.items():
            print(f"{name}: {value:,.1f} a second")
    print(json.dumps({**rates, **machine()}))


if __name__ == "__main__":
    main()
