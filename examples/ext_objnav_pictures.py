"""Play agents that see homes in pictures alone, and what they remember; nothing is trained.

Plays the agents of the package, or a run (`--agent`), in test homes: from exact symbolic observations, and from
pictures of 64 x 48 that the small encoder reads, by an agent that has learned from exact observations and by one that
has learned from pictures; and both without attention to earlier episodes (the same weights). Prints success in the
first episode of a trial and in episodes 10 to 15, and writes curves and what the robot sees in episodes 1 and 10. 2,048
trials take 12 to 20 minutes of a core for each row from pictures.

    python examples/ext_objnav_pictures.py [--agent runs/ext_objnav/pictures-1] [--trials 2048]
        [--rows exact copied copied-forgetful pictures forgetful] [--out runs/pictures] [--smoke]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

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
from memenvs.agents.studies.in_context_tables import LATE_EPISODES
from memenvs.progress import progress_bar

EXACT, PICTURES = "extobjnav-small", "extobjnav-small:pictures"


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        title: What it says.
        learned_in: Preset of the agent.
        plays_in: Preset whose observations it gets.
        forgets: Whether it attends to no earlier episode.
    """

    title: str
    learned_in: str
    plays_in: str
    forgets: bool = False


ROWS = {
    "exact": Row("exact observations", EXACT, EXACT),
    "copied": Row("pictures, learned from exact observations", EXACT, PICTURES),
    "copied-forgetful": Row("the same, no attention to earlier episodes", EXACT, PICTURES, True),
    "pictures": Row("pictures, learned from pictures", PICTURES, PICTURES),
    "forgetful": Row("the same, no attention to earlier episodes", PICTURES, PICTURES, True),
}


def load(row: str, agent: Path | None) -> ActingPolicy:
    """Load the agent of a row of the table: that of a run's folder, or the package's."""
    if agent is None:
        policy = load_pretrained(ROWS[row].learned_in, seed=1)
    else:
        with RunDirectory(agent) as run:
            policy = trained_policy(run, seed=1)
    if ROWS[row].forgets:
        memory: Any = policy.memory
        assert isinstance(memory, RelicMemory)
        memory.config = replace(memory.config, inter_episode=False)
    return policy


def rows_of(agent: Path) -> list[str]:
    """List the rows that the run of a folder can play; none for a run of another preset."""
    with RunDirectory(agent) as run:
        config = run.config
    fits = [
        name
        for name in (EXACT, PICTURES)
        if (preset := find_preset(name)).policy == config.policy
        and preset.env_kwargs.get("encoder") == config.env_kwargs.get("encoder")
    ]
    return [row for row, each in ROWS.items() if each.learned_in in fits]


def settings(row: str, trials: int, smoke: bool) -> RunConfig:
    """Return the settings of a row of the table; short episodes if `smoke`."""
    config = replace(find_preset(ROWS[row].plays_in), eval_trials=trials)
    short = {"eval_steps": 130, "eval_kwargs": {**config.eval_kwargs, "max_episode_steps": 8}}
    return replace(config, **short) if smoke else config  # type: ignore[arg-type]


def play(row: str, config: RunConfig, agent: Path | None) -> TrialResults:
    """Play the trials of a row of the table."""
    env = evaluation_env(config, min(config.eval_envs, config.eval_trials), seed=1)
    try:
        with progress_bar(f"playing: {row}") as progress:
            return make_evaluator(config, env).run(load(row, agent), progress)
    finally:
        env.close()


def table_row(title: str, results: TrialResults) -> list[str]:
    """Format success and SPL in the first and in late episodes, and the gain.

    ± is 1.96 standard errors over trials.
    """
    success = 100 * results.metrics["success"]
    first, late = success[:, 0], np.nanmean(success[:, LATE_EPISODES], 1)
    spl = results.metrics["spl"]
    error = 1.96 * np.nanstd(late - first) / max(len(first), 1) ** 0.5
    return [
        title,
        str(len(first)),
        f"{np.nanmean(first):.1f}",
        f"{np.nanmean(late):.1f}",
        f"{np.nanmean(late - first):+.1f} ± {error:.1f}",
        f"{np.nanmean(spl[:, 0]):.3f}",
        f"{np.nanmean(spl[:, LATE_EPISODES]):.3f}",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--agent", type=Path, help=f"folder of a run of {EXACT} or {PICTURES} (default: the package's agents)"
    )
    parser.add_argument("--trials", type=int, default=2048, help="of each row (default %(default)s)")
    parser.add_argument("--rows", nargs="+", choices=ROWS, help="(default all, with --agent those of its preset)")
    parser.add_argument("--out", type=Path, default=Path("runs/pictures"), help="folder of the page (%(default)s)")
    parser.add_argument("--smoke", action="store_true", help="play for seconds, to see that everything runs")
    options = parser.parse_args()
    trials = 2 if options.smoke else options.trials
    allowed = list(ROWS)
    if options.agent is not None:
        if not has_checkpoint(options.agent):
            parser.error(f"--agent: must be a folder with a checkpoint, got {options.agent}")
        allowed = rows_of(options.agent)
        if not allowed:
            parser.error(f"--agent: must be a run of {EXACT} or {PICTURES}, got another policy in {options.agent}")
    rows = options.rows or allowed
    for row in rows:
        if row not in allowed:
            parser.error(f"--rows: must be of {' '.join(allowed)} for this agent, got {row}")
    options.out.mkdir(parents=True, exist_ok=True)
    found = {row: play(row, settings(row, trials, options.smoke), options.agent) for row in rows}
    report = Report("Remembering homes from pictures", options.out)
    header = ["observation", "trials", "success in episode 1, %", "in 10 to 15, %", "gain, points", "SPL in 1", "10-15"]
    add_table(
        report, "First and late episodes", header, [table_row(ROWS[row].title, each) for row, each in found.items()]
    )
    curves = {row: each.to_json()["metrics"]["success"] for row, each in found.items()}
    report.picture("success", figure_png(in_context_figure(curves, "success")))
    seen = "pictures" if "pictures" in allowed else "copied"
    frames = first_person_frames(load(seen, options.agent), settings(seen, 1, options.smoke))
    report.picture("first_person", animated_webp(frames), "the robot's view in episode 1 and in episode 10 of a trial")
    print(f"report: {report.write(options.out / 'report.html').resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
