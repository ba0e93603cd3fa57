"""FFHQ-world: what is left to predict without memory, and episodes a second.

Linear predictions are fitted to pictures of the training split; episodes are of the validation split. Time is CPU time
of one core. `--smoke` ends in seconds.

    python benchmarks/faces.py [--images FOLDER] [--pictures 2000] [--episodes 2000] [--smoke] [--json]
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from _observers import observer_errors
from _peer import machine

from memenvs.faces.config import FacesConfig, LongStayConfig
from memenvs.faces.observer import LinearPrediction


def episodes_per_second(batch: int, seconds: float) -> float:
    """Measure sampling of integer-coded episodes, as a median over calls."""
    world, rng, spent = FacesConfig().make_world(), np.random.default_rng(0), []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not spent:
        started = time.process_time()
        world.sample_batch(batch, rng)
        spent.append(time.process_time() - started)
    return batch / float(np.median(spent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", metavar="FOLDER", help="pictures in place of drawn faces")
    parser.add_argument("--pictures", type=int, default=2000, help="pictures of the fit")
    parser.add_argument("--episodes", type=int, default=2000, help="episodes of each world")
    parser.add_argument("--smoke", action="store_true", help="few pictures and episodes, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    args = parser.parse_args()
    pictures, episodes = (30, 5) if args.smoke else (args.pictures, args.episodes)
    train = FacesConfig(images=args.images, num_images=pictures).make_world().pictures
    stack = np.stack([train.read(int(number)) for number in train.numbers])
    linear = {knows_map: LinearPrediction.fit(stack, knows_map=knows_map) for knows_map in (False, True)}
    errors = {}
    for name, config in (("FFHQWorld", FacesConfig), ("FFHQWorld-LongStay", LongStayConfig)):
        world = config(images=args.images, split="validation").make_world()
        errors[name] = observer_errors(world, world.sample_batch(episodes, np.random.default_rng(0)), linear)
    rates = {batch: round(episodes_per_second(batch, 0.1 if args.smoke else 5.0)) for batch in (32, 256)}
    if not args.json:
        print(f"mean squared error of observers, {episodes} episodes:")
        for observer in errors["FFHQWorld"]:
            print(f"  {observer:16}" + "".join(f"  {name} {mse[observer]:.5f}" for name, mse in errors.items()))
        print("episodes a second of one core: " + ", ".join(f"{rate:,} in batches of {n}" for n, rate in rates.items()))
    print(json.dumps({"mse": errors, "episodes_per_second": rates, **machine()}))


if __name__ == "__main__":
    main()
