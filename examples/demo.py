"""From nothing to an agent that gets better at a place it has never seen, in one report; about 5 minutes on 2 cores.

Trains the `demo` preset (a ReLIC memory in a 5 x 5 Darkroom), plays it on goals that it was not trained on, walks a random agent and the oracle
through a procedural home and, if `MEMENVS_DATA` is set, through a real ProcTHOR house.

    python examples/demo.py [--out runs/demo] [--smoke]
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import memenvs  # noqa: F401  (registers the ids)
from agents.__main__ import evaluate_and_compare
from agents.presets import find_preset
from agents.report import Report, add_maps, add_runs, add_settings, image_png
from agents.runs import RunDirectory, train_run


def walk(report: Report, name: str, title: str, seed: int, **kwargs: Any) -> None:
    """Adds to the report how a random agent and the oracle look for a thing in a home."""
    env = gym.make(
        "memenvs/ExtObjNav-v0", obs_mode="symbolic", render_mode="rgb_array", max_episode_steps=200, **kwargs
    )
    report.heading(title)
    rng = np.random.default_rng(seed)
    for policy in ("random", "oracle"):
        _, info = env.reset(seed=seed)
        task = env.unwrapped.task
        way, done = [info["pose"]], False
        while not done:
            # The random agent never says stop, so that it can be seen walking.
            action = env.unwrapped.oracle_action() if policy == "oracle" else int(rng.integers(1, 6))
            _, _, terminated, truncated, info = env.step(action)
            way.append(info["pose"])
            done = terminated or truncated
        caption = f"{policy}: {len(way) - 1} steps, success {info['success']}, SPL {info['spl']:.2f}"
        print(f"{title}: {caption}")
        report.picture(f"{name}_{policy}_map", image_png(task.draw_map(0, np.stack(way))), caption)
        report.picture(f"{name}_{policy}_view", image_png(env.render()), f"{policy}: the last view")
    env.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("runs/demo"), help="folder of the run; a started one is continued"
    )
    parser.add_argument("--smoke", action="store_true", help="train for seconds only: shows that everything runs")
    options = parser.parse_args()
    config = find_preset("demo")
    if options.smoke:
        config = replace(config, total_steps=8_000, eval_steps=100, eval_trials=10)
    is_new = not (options.out / "config.json").exists()
    with RunDirectory(options.out, config if is_new else None) as run:
        print(f"training in {run.path}; stop it at any time, the same command goes on")
        train_run(run)
        results = evaluate_and_compare(run)
        report = Report("memenvs demo: an agent that gets better at a place it has never seen", run.path)
        add_runs(report, [run])
        add_maps(report, run)
        walk(report, "procedural", "A procedural home that no seed of the training split makes", 3, split="validation")
        if os.environ.get("MEMENVS_DATA"):
            walk(report, "procthor", "A real ProcTHOR house", 1, world="procthor", split="all")
        else:
            report.text("MEMENVS_DATA is not set, so no real ProcTHOR house is shown.")
        add_settings(report, [run])
        path = report.write(run.path / "report.html")
    curve = results["agent"]["metrics"]["return"]["mean"]
    print(f"return in a new place, episode 1 to {len(curve)}: " + " ".join(f"{value:.1f}" for value in curve))
    print(f"report: {path.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
