"""An explorer with a memory of scenes and without one; about 5 minutes on one core.

Trains an encoder in Coverage. On it learn three agents that enter as many cells of a home as they can: without a
memory, with the Scene Memory Transformer (SMT) over the last four scans, and over the whole episode. Prints the cells
that they enter in 46 homes that none of them has seen: mean and standard error over homes. A stopped command goes on
where it was.

    python examples/scene_memory.py [--steps 96000] [--seed 0] [--out runs/scene_memory_example] [--smoke]

With the default steps and seed 0 it printed:

    no memory: 39.0 ± 2.1 cells
    SMT, four scans: 44.0 ± 1.9 cells
    SMT, whole episode: 44.2 ± 1.9 cells

The study `scene_memory` has whole trainings of seven memories with three seeds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.smt import first_stage

#: Agent -> changes of the preset. Without a memory Q has one layer more, in place of the memory's own.
AGENTS: dict[str, dict[str, Any]] = {
    "no memory": {
        "policy.memory": "none",
        "policy.memory_kwargs": {},
        "policy.net_arch": {"pi": [64, 64], "vf": []},
    },
    "SMT, four scans": {"policy.memory_kwargs.capacity": 4},
    "SMT, whole episode": {},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=96_000, help="environment steps of a stage (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/scene_memory_example"), help="(default %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="train for seconds: shows that everything runs")
    options = parser.parse_args()
    changes = {"total_steps": options.steps, "seed": options.seed, "validation_trials": 0, "eval_trials": 92}
    if options.smoke:
        changes |= {"n_envs": 4, "total_steps": 3_200, "dqn.capacity": 8, "dqn.batch_size": 4, "eval_trials": 4}
        changes |= {"dqn.updates_per_collect": 2}
    encoder = options.out / "encoder"
    config = with_overrides(find_preset("coverage-laptop"), [*changes.items(), ("encoder_from", str(encoder))])
    with RunDirectory.open_or_create(encoder, first_stage(config)) as run:
        print(f"training the encoder in {run.path}")
        train_run(run)
    for name, agent in AGENTS.items():
        folder = options.out / name.replace(", ", "-").replace(" ", "-").lower()
        with RunDirectory.open_or_create(folder, with_overrides(config, list(agent.items()))) as run:
            train_run(run)
            cells = evaluate_run(run).curve("cells")
            print(f"{name}: {cells.mean[0]:.1f} ± {cells.stderr_clustered[0]:.1f} cells")
    return 0


if __name__ == "__main__":
    sys.exit(main())
