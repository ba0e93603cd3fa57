"""An agent of exact observations remembers homes from pictures; nothing is trained.

Plays the package's `extobjnav-small`, or a run of it (`--agent`), in test homes from exact symbolic observations, then
from pictures of 64 x 48 that the small encoder reads, then from pictures without memory of earlier episodes (the same
weights). Prints success in the first episode of a trial and in episodes 10 to 15, and writes curves and what the robot
sees in episodes 1 and 10. 2,048 trials take 20 minutes of a core for each row from pictures.

    python examples/ext_objnav_pictures.py [--agent runs/ext_objnav/relic-1] [--trials 2048]
        [--rows exact pictures forgetful] [--out runs/pictures] [--smoke]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from memenvs.agents.experiments.config import RunConfig, has_checkpoint
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluation_env, make_evaluator, trained_policy
from memenvs.agents.experiments.first_person import animated_webp, first_person_frames
from memenvs.agents.experiments.report import Report, add_table, figure_png, in_context_figure
from memenvs.agents.experiments.trial_evaluator import TrialResults
from memenvs.agents.memory.relic import RelicMemory
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.pretrained import load_pretrained
from memenvs.cli.progress import progress_bar

ROWS = {
    "exact": ("exact symbolic observations", "extobjnav-small"),
    "pictures": ("pictures", "extobjnav-small:pictures"),
    "forgetful": ("pictures, no attention to earlier episodes", "extobjnav-small:pictures"),
}
#: Episodes, from 0, whose mean success is compared with that of the first.
LATE = slice(9, 15)


def load(row: str, agent: Path | None) -> ActingPolicy:
    """Load the agent of a row of the table: that of a run's folder, or the package's."""
    if agent is None:
        policy = load_pretrained(ROWS[row][1])
    else:
        with RunDirectory(agent) as run:
            policy = trained_policy(run, seed=1)
    if row == "forgetful":
        memory: Any = policy.memory
        assert isinstance(memory, RelicMemory)
        memory.config = replace(memory.config, inter_episode=False)
    return policy


def settings(row: str, trials: int, smoke: bool) -> RunConfig:
    """Return the settings of a row of the table; short episodes if `smoke`."""
    config = replace(find_preset(ROWS[row][1]), eval_trials=trials)
    short = {"eval_steps": 130, "eval_kwargs": {**config.eval_kwargs, "max_episode_steps": 8}}
    return replace(config, **short) if smoke else config  # type: ignore[arg-type]


def play(row: str, config: RunConfig, agent: Path | None) -> TrialResults:
    """Play the trials of a row of the table."""
    env = evaluation_env(config, min(config.n_envs, config.eval_trials), seed=1)
    try:
        with progress_bar(f"playing from {ROWS[row][0]}") as progress:
            return make_evaluator(config, env).run(load(row, agent), progress)
    finally:
        env.close()


def table_row(title: str, results: TrialResults) -> list[str]:
    """Format success and SPL in the first and in late episodes, and the gain.

    ± is 1.96 standard errors over trials.
    """
    success = 100 * results.metrics["success"]
    first, late = success[:, 0], np.nanmean(success[:, LATE], 1)
    spl = results.metrics["spl"]
    error = 1.96 * np.nanstd(late - first) / max(len(first), 1) ** 0.5
    return [
        title,
        str(len(first)),
        f"{np.nanmean(first):.1f}",
        f"{np.nanmean(late):.1f}",
        f"{np.nanmean(late - first):+.1f} ± {error:.1f}",
        f"{np.nanmean(spl[:, 0]):.3f}",
        f"{np.nanmean(spl[:, LATE]):.3f}",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agent", type=Path, help="folder of a run of extobjnav-small (default: the package's agent)")
    parser.add_argument("--trials", type=int, default=2048, help="of each row (default %(default)s)")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), help="(default all)")
    parser.add_argument("--out", type=Path, default=Path("runs/pictures"), help="folder of the page (%(default)s)")
    parser.add_argument("--smoke", action="store_true", help="play for seconds, to see that everything runs")
    options = parser.parse_args()
    trials = 2 if options.smoke else options.trials
    if options.agent is not None:
        if not has_checkpoint(options.agent):
            parser.error(f"--agent: must be a folder with a checkpoint, got {options.agent}")
        with RunDirectory(options.agent) as run:
            if run.config.policy != find_preset("extobjnav-small").policy:
                parser.error(f"--agent: must be a run of extobjnav-small, got another policy in {options.agent}")
    options.out.mkdir(parents=True, exist_ok=True)
    found = {row: play(row, settings(row, trials, options.smoke), options.agent) for row in options.rows}
    report = Report("Remembering homes from pictures", options.out)
    header = ["observation", "trials", "success in episode 1, %", "in 10 to 15, %", "gain, points", "SPL in 1", "10-15"]
    add_table(report, "First and late episodes", header, [table_row(ROWS[row][0], each) for row, each in found.items()])
    curves = {ROWS[row][0]: each.to_json()["metrics"]["success"] for row, each in found.items()}
    report.picture("success", figure_png(in_context_figure(curves, "success")))
    frames = first_person_frames(load("pictures", options.agent), settings("pictures", 1, options.smoke))
    report.picture("first_person", animated_webp(frames), "the robot's view in episode 1 and in episode 10 of a trial")
    print(f"report: {report.write(options.out / 'report.html').resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
