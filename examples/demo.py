"""An agent gets better at a place it has never seen; 3 to 5 minutes on 2 cores.

Trains the `demo` preset (a ReLIC memory in a 5 x 5 Darkroom), plays it on held-out goals, then plays the pretrained
ExtObjNav agent of this package in procedural homes that it has never seen, from exact observations and from pictures,
and, with MEMENVS_DATA, in real ProcTHOR houses.

    python examples/demo.py [--out runs/demo] [--smoke]
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.directory import RunDirectory, find_conflict
from memenvs.agents.experiments.evaluate import evaluate_and_compare, evaluation_env
from memenvs.agents.experiments.report import Report, figure_png, image_png, in_context_figure
from memenvs.agents.experiments.run_report import add_maps, add_runs, add_settings
from memenvs.agents.experiments.train import train_run
from memenvs.agents.experiments.trial_evaluator import TrialEvaluator
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.pretrained import load_pretrained, pretrained_config
from memenvs.cli.common import run_command

AGENT = "extobjnav-small"
#: It has learned from pictures, which a small encoder reads.
FROM_PICTURES = "extobjnav-small-pictures"


def play(report: Report, name: str, title: str, trials: int, agent: str = AGENT, **world: Any) -> None:
    """Play a pretrained agent, which searches for fruit again and again in the same home.

    Args:
        report: Page that gets the curve and the paths.
        name: Beginning of the names of the pictures.
        title: Heading on the page.
        trials: Number of trials.
        agent: Name of the agent.
        **world: Settings of the environment that choose the homes.
    """
    config = pretrained_config(agent)
    config = replace(config, eval_kwargs={**config.eval_kwargs, **world})
    env = evaluation_env(config, trials, seed=3)
    results = TrialEvaluator(env, config.eval_steps, trials, maps=True).run(load_pretrained(agent))
    env.close()
    success = results.curve("success").mean
    late = success[-5:].mean()
    means = f"success {success[0]:.2f} in the first, {late:.2f} in the last five"
    caption = f"{trials} trials of {len(success)} episodes: {means}"
    print(f"{title}: {caption}")
    report.heading(title)
    report.text(f"The agent was trained beforehand and sees these homes for the first time. {caption}.")
    curve = results.to_json()["metrics"]["success"]
    report.picture(f"{name}_in_context", figure_png(in_context_figure({"agent": curve}, "success")))
    for episode, house_map in results.maps.items():
        stem = f"{name}_{episode.replace(' ', '_')}"
        report.picture(stem, image_png(house_map), f"the path in {episode} of one trial")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/demo"),
        help="folder of the run; a started one is continued (default %(default)s)",
    )
    parser.add_argument(
        "--smoke", action="store_true", help="train for seconds, in OUT/smoke: shows that everything runs"
    )
    options = parser.parse_args()
    config = find_preset("demo")
    if options.smoke:
        options.out /= "smoke"
        config = replace(config, total_steps=8_000, eval_steps=100, eval_trials=10)
    problem = find_conflict({options.out: config})
    if problem:
        parser.error(problem)
    with RunDirectory.open_or_create(options.out, config) as run:
        print(f"training in {run.path}; stop it at any time, the same command goes on")
        train_run(run)
        results = evaluate_and_compare(run)
        report = Report("memenvs demo: an agent that gets better at a place it has never seen", run.path)
        add_runs(report, [run])
        add_maps(report, [run])
        trials = 4 if options.smoke else 32
        play(report, "procedural", "Procedural homes of the test split", trials)
        play(report, "pictures", "The same homes, from pictures of 64 x 48 alone", trials, FROM_PICTURES)
        if os.environ.get("MEMENVS_DATA"):
            play(report, "procthor", "Real ProcTHOR houses", trials, world="procthor", split="all", rooms=None)
        else:
            report.text("MEMENVS_DATA is not set, so no real ProcTHOR house is shown.")
        add_settings(report, [run])
        path = report.write(run.path / "report.html")
    curve = results["agent"]["metrics"]["return"]["mean"]
    print(f"return in a new place, episode 1 to {len(curve)}: " + " ".join(f"{value:.1f}" for value in curve))
    print(f"report: {path.resolve()}")


if __name__ == "__main__":
    sys.exit(run_command("demo", main))  # Ctrl-C prints no traceback
