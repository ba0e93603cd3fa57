"""MTVM with its memory of actions and without one; about 4 minutes on one core.

Trains a transformer with a token for each past action to imitate a teacher in generated houses (R2R, paths of one leg),
then the same agent without a memory. Prints how often each ends within 3 m of the goal in houses that it has not seen,
and success weighted by how well the path follows the instruction (SDTW). A stopped command goes on where it was.

    python examples/vln.py [--updates 300] [--seed 0] [--out runs/vln_example] [--smoke]

With the default updates and seed 0 it printed:

    all actions: success 42.6 %, SDTW 38.6 %
    no memory: success 9.4 %, SDTW 7.9 %

In paths of one leg a scripted reader without a memory succeeds in 83 %: MTVM needs its memory because of how it has
learned to read. The study `vln_memory` has whole trainings, other memories, paths of three legs, where the task needs a
memory, and three seeds.
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

#: Agent -> number of past actions that it remembers at most; None for all.
AGENTS = {"all actions": None, "no memory": 0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=300, help="updates of training (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/vln_example"), help="(default %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="train for seconds: shows that everything runs")
    options = parser.parse_args()
    updates = 2 if options.smoke else options.updates
    changes: dict[str, Any] = {
        "seed": options.seed,
        "total_steps": updates,
        "imitation.imitation_updates": updates,
        "eval_all_layouts": False,
        "eval_trials": 4 if options.smoke else 500,
    }
    if options.smoke:
        changes |= {"n_envs": 2, "policy.network.dim": 16}
    for name, bank in AGENTS.items():
        config = with_overrides(find_preset("vln-laptop"), [*changes.items(), ("policy.network.bank", bank)])
        with RunDirectory.open_or_create(options.out / name.replace(" ", "-"), config) as run:
            print(f"training in {run.path}")
            train_run(run)
            results = evaluate_run(run)
            success, sdtw = (100 * results.curve(metric).mean[0] for metric in ("sr", "sdtw"))
            print(f"{name}: success {success:.1f} %, SDTW {sdtw:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
