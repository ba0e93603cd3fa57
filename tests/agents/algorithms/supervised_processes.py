"""Program of each of the two processes of `test_supervised.py`.

Run as `python -m tests.agents.algorithms.supervised_processes FOLDER`, with the variables of torchrun.
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch

from memenvs.agents.algorithms.distributed import launched_processes
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.train import train_run
from tests.agents.small_ballet import SMALL_BALLET

#: Twelve batches of 8, with a checkpoint after every five.
SMALL = replace(SMALL_BALLET, total_steps=12)
SMALL = with_overrides(SMALL, [("supervised.checkpoint_steps", 5), ("supervised.validation_episodes", 40)])
ALLOCATED = replace(
    with_overrides(SMALL, [("env", "memenvs/RoomBallet-MultiTask-v0")]),
    policy={"dim": 32, "layers": 1, "mlp_dim": 32, "allocation": {}},
)


def main(folder: Path) -> None:
    """Train a run."""
    torch.set_num_threads(1)
    processes = launched_processes("cpu")
    with RunDirectory(folder / "run", ALLOCATED, processes) as run:
        train_run(run, quiet=True)
    processes.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
