"""What each of two processes does in `test_supervised.py`: `python -m tests.agents.supervised_processes FOLDER`, with torchrun's variables set."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from agents.distributed import launched
from agents.presets import find_preset
from agents.run_config import with_overrides
from agents.run_directory import RunDirectory
from agents.runs import train_run
from agents.supervised_runs import make_learner

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
    learner = make_learner(ALLOCATED, processes)
    model = learner.model
    batch = model.share(model.sample(8, np.random.default_rng(0), 0), processes.rank, processes.count)
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
