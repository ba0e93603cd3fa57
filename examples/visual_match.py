"""A memory that keeps a colour against one that forgets it; two minutes of a core each.

An agent is shown a colour, is led about for 80 steps, and then has to choose that colour (`VisualMatch-Led-v0`). Its
memory, a Spatially-Aware Transformer, has room for 40 steps. With FIFO it evicts the oldest step, so the colour is
gone; with MVFO it evicts from the place with the most steps, so the colour stays. Prints success in 1,000 new
episodes; a guess has 50 %.

Over three seeds MVFO has 98.9 ± 2.2 % and FIFO 50.4 ± 4.2 % (studies/needs_memory). With `--allocator` a third agent
learns from returns which of the two to use, in 1,536,000 steps (93.1 ± 15.0 % in `VisualMatch-v0`,
studies/visual_match). A stopped command resumes.

    python examples/visual_match.py [--allocator] [--seed 0] [--out runs/visual_match] [--smoke]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset
from memenvs.agents.study import changed


def make_configs(seed: int, allocator: bool) -> dict[str, RunConfig]:
    """Settings of each agent."""
    base = replace(find_preset("sat-visual-match"), env="memenvs/VisualMatch-Led-v0", seed=seed)
    configs = {}
    for strategy in ("mvfo", "fifo"):
        fixed = {"ppo.allocator": None, "policy.memory_kwargs.strategy": strategy, "total_steps": 1_024_000}
        configs[strategy] = changed(base, fixed)
    return configs | ({"allocator": base} if allocator else {})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n    python")[0], formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--allocator", action="store_true", help="also train an agent that chooses the strategy")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    parser.add_argument("--out", type=Path, default=Path("runs/visual_match"), help="folder (default %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="train for seconds, to see that everything runs")
    options = parser.parse_args()
    lines = ["| memory of 40 steps | success, % |", "| --- | --- |"]
    for name, config in make_configs(options.seed, options.allocator).items():
        folder = options.out / f"{name}-{options.seed}"
        if options.smoke:
            folder = options.out / "smoke" / folder.name
            config = replace(config, n_envs=4, eval_envs=4, total_steps=1, eval_trials=4)
        with RunDirectory.open_or_create(folder, config) as run:
            train_run(run)
            success = evaluate_run(run).curve("success").mean[0]
        lines.append(f"| {name} | {100 * success:.1f} |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
