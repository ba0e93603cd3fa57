"""ReLIC in the 10 x 10 Darkroom, goals held out: return by episode of the trial over three seeds; about half an hour a seed on one core.

Compare with the article: 32 in episode 1, 89 in episode 10; an agent that knows the goal gets 90.9, a blind sweep 47.9. With another preset, such as
`darkroom-k1` (no partial updates), for as many steps; with fewer steps, what partial updates give first.

    python examples/darkroom.py [--preset darkroom] [--steps 4000000] [--out runs/darkroom] [--seeds 0 1 2] [--smoke]
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from agents.presets import PRESETS, find_preset
from agents.report import figure_png, in_context_figure, write_report
from agents.run_directory import RunDirectory, refusal
from agents.runs import evaluate_and_compare, train_run
from memenvs.files import write_file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [name for name in PRESETS if name.startswith("darkroom")]
    parser.add_argument(
        "--preset",
        default="darkroom",
        choices=names,
        metavar="PRESET",
        help=f"of {', '.join(names)} (default darkroom)",
    )
    parser.add_argument("--steps", type=int, help="environment steps of a run (default the preset's)")
    parser.add_argument(
        "--out", type=Path, help="started runs in it are continued (default runs/PRESET, or runs/PRESET-STEPS)"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the runs (default 0 1 2)")
    parser.add_argument(
        "--smoke", action="store_true", help="train one seed for seconds, in OUT/smoke: shows that everything runs"
    )
    options = parser.parse_args()
    config, name = find_preset(options.preset), options.preset
    if options.steps is not None:
        config, name = replace(config, total_steps=options.steps), f"{name}-{options.steps}"
    out = options.out or Path("runs") / name
    if options.smoke:
        out /= "smoke"
        config = replace(config, n_envs=4, total_steps=min(2_000, config.total_steps), eval_steps=200, eval_trials=4)
        options.seeds = options.seeds[:1]
    runs = {out / f"seed-{seed}": replace(config, seed=seed) for seed in options.seeds}
    problem = refusal(runs)
    if problem:
        parser.error(problem)
    curves = {}
    for folder, settings in runs.items():
        with RunDirectory.continued(folder, settings) as run:
            train_run(run)
            curves[f"seed {settings.seed}"] = evaluate_and_compare(run)["agent"]["metrics"]["return"]
            write_report([run], folder)
        print(
            f"seed {settings.seed}: " + " ".join(f"{value:.1f}" for value in curves[f"seed {settings.seed}"]["mean"]),
            flush=True,
        )
    means = np.array([curve["mean"] for curve in curves.values()])
    spread = means.std(0, ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.zeros(means.shape[1])
    curves["mean of seeds"] = {"mean": means.mean(0).tolist(), "stderr": spread.tolist()}
    for episode in (0, means.shape[1] - 1):
        print(f"episode {episode + 1}: {means[:, episode].mean():.1f} +- {spread[episode]:.1f} over {len(means)} seeds")
    write_file(out / "in_context.png", figure_png(in_context_figure(curves, "return")))
    write_file(out / "in_context.json", json.dumps(curves).encode())
    print(f"curves: {out / 'in_context.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
