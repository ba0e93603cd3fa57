"""Worth of a memory of a robot's days: two models in ten minutes on one core.

Trains two models that answer questions about the days of a household robot: one reads them with a Compressive
Transformer with a long-term state, which keeps 21 vectors, and one has no memory, so that it knows the question alone.
Prints their right answers about new histories of 1 to 10 episodes; up to 5 were in training. A stopped command goes on
where it was.

    python examples/episodic_qa.py [--seed 0] [--out runs/episodic_qa_example] [--smoke]

With seed 0 (PyTorch 2.13; the rows `ct-lt` and `text-only` of studies/episodic_qa have the same settings in 2.11):

    | right answers, % | 1 episode | 2 episodes | 3 episodes | 5 episodes | 10 episodes |
    | memory of 21 vectors | 42.3 | 38.2 | 38.3 | 30.3 | 20.6 |
    | the question alone | 12.5 | 11.6 | 12.5 | 12.1 | 13.2 |

`memenvs study episodic_qa --show` has longer trainings, other memories and three seeds. `memenvs ask` talks with the
model of the package.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset

LENGTHS = (1, 2, 3, 5, 10)
#: Model -> changes of the preset.
MODELS: dict[str, dict[str, Any]] = {
    "memory of 21 vectors": {},
    "the question alone": {"policy.memory": "none", "policy.memory_kwargs": {}},
}


def shorten(config: RunConfig) -> RunConfig:
    """Shorten a run to seconds."""
    small = {"scale": "smoke", "questions": 4}
    return replace(
        config,
        total_steps=4,
        env_kwargs={**config.env_kwargs, **small},
        eval_kwargs={**config.eval_kwargs, **small},
        learner=replace(config.learner, validation_episodes=4, batch_size=4),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="(default %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/episodic_qa_example"), help="(default %(default)s)")
    parser.add_argument("--smoke", action="store_true", help="train for seconds: shows that everything runs")
    options = parser.parse_args()
    lines = [["right answers, %", *(f"{length} episode{'s' * (length > 1)}" for length in LENGTHS)]]
    for name, changes in MODELS.items():
        config = with_overrides(find_preset("episodic-qa"), [*changes.items(), ("seed", options.seed)])
        config = shorten(config) if options.smoke else config
        with RunDirectory.open_or_create(options.out / name.replace(" ", "-"), config) as run:
            train_run(run)
            metrics = config.make_experiment().evaluate(run)["agent"]["metrics"]
        lines.append([name, *(f"{100 * metrics[f'accuracy_length_{length}']['mean']:.1f}" for length in LENGTHS)])
    print("\n".join("| " + " | ".join(line) + " |" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
