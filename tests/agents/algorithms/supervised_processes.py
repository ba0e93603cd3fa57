"""What each of two processes does in `test_supervised.py`: `python -m tests.agents.algorithms.supervised_processes FOLDER`, with torchrun variables."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from memenvs.agents.algorithms.distributed import launched
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import make_run_learner
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset

#: Twelve batches of 8, with a checkpoint after every five.
SMALL = replace(find_preset("ballet-smoke"), total_steps=12)
SMALL = with_overrides(SMALL, [("supervised.checkpoint_steps", 5), ("supervised.validation_episodes", 40)])
ALLOCATED = replace(
    with_overrides(SMALL, [("env", "memenvs/RoomBallet-MultiTask-v0")]),
    policy={"dim": 32, "layers": 1, "mlp_dim": 32, "allocation": {}},
)


def main(folder: Path) -> None:
    """Everything in one launch, as most of its time goes into imports."""
    torch.set_num_threads(1)
    processes = launched("cpu")
    learner = make_run_learner(ALLOCATED, processes)
    model = learner.model
    batch = model.shard(model.sample(8, np.random.default_rng(0), 0), processes.rank, processes.count)
    loss, _ = model.loss(batch)
    loss.backward()
    gradients = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    processes.average(list(gradients.values()))
    save_file(gradients, folder / f"gradient.{processes.rank}.safetensors")
    with RunDirectory(folder / "run", ALLOCATED, processes) as run:
        train_run(run, quiet=True)
    processes.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
