"""Train the small encoder of this package, which estimates symbolic observations.

Learns from pictures of 64 x 48 of the training homes; F1 and distances are measured in the validation homes. A training
that was killed resumes when called again. Takes about 15 minutes of one core and 1.4 GB of memory and of disk.

    python examples/pretrain_symbolic_encoder.py [--out runs/symbolic_encoder] [--epochs 14] [--smoke]
    python examples/pretrain_symbolic_encoder.py --shipped      # the weights of the package alone, in a minute
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from rich.progress import Progress
from safetensors.numpy import load_file, save_file

from memenvs.agents.encoders.presence_pretraining import f1_scores
from memenvs.agents.encoders.symbolic_dataset import SymbolicDataset, draw_symbolic_dataset
from memenvs.agents.encoders.symbolic_encoder import (
    SymbolicEncoder,
    load_symbolic_encoder,
    pixels_of,
    save_symbolic_encoder,
)
from memenvs.agents.encoders.symbolic_pretraining import (
    SymbolicPretrainingConfig,
    predict,
    pretrain_symbolic,
    symbolic_f1,
)
from memenvs.files import atomic_replace
from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.worlds import make_house_world
from memenvs.objectnav.symbolic import RAY_RANGE

#: Split -> number of layouts, and pictures of each.
SPLITS = {"train": (1600, 60), "validation": (120, 40)}
DRAWING_SEED = 7
#: Bounds of the sizes by which F1 is printed, pixels of the picture.
SIZES = (1, 2, 3, 5, 9, 17, 3073)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("runs/symbolic_encoder"), help="pictures and weights (default %(default)s)"
    )
    default = SymbolicPretrainingConfig()
    parser.add_argument("--epochs", type=int, default=default.epochs, help="passes over the pictures (%(default)s)")
    parser.add_argument("--seed", type=int, default=default.seed, help="of the training (default %(default)s)")
    parser.add_argument("--shipped", action="store_true", help="train nothing; measure the weights of the package")
    parser.add_argument("--smoke", action="store_true", help="train for seconds only, to see that everything runs")
    options = parser.parse_args()
    config = replace(default, epochs=1 if options.smoke else options.epochs, seed=options.seed)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        validation = dataset(options.out, "validation", options.smoke, progress)
        if options.shipped:
            report(load_symbolic_encoder(), validation)
            return 0
        train = dataset(options.out, "train", options.smoke, progress)
        steps = len(train.images) // config.batch_size
        bar = progress.add_task("training", total=config.epochs * steps)

        def after_epoch(epoch: int, encoder: SymbolicEncoder) -> None:
            progress.update(bar, completed=epoch * steps)
            print(f"epoch {epoch}: macro-F1 {symbolic_f1(encoder, validation):.3f}", flush=True)

        encoder = pretrain_symbolic(
            train,
            config,
            options.out / "checkpoint.safetensors",
            on_step=lambda loss: progress.update(bar, advance=1, description=f"training, loss {loss:.2f}"),
            on_epoch=after_epoch,
        )
    weights = options.out / "symbolic.safetensors"
    save_symbolic_encoder(encoder, weights)
    report(load_symbolic_encoder(weights), validation)
    print(f"weights: {weights}")
    return 0


def dataset(out: Path, split: str, smoke: bool, progress: Progress) -> SymbolicDataset:
    """Load the pictures of a split from a file, or draw them and write the file."""
    path = out / f"{split}.safetensors"
    if path.exists():
        return SymbolicDataset(**load_file(path))
    layouts, per_layout = (4, SPLITS[split][1]) if smoke else SPLITS[split]
    bar = progress.add_task(f"drawing {split} homes", total=layouts * per_layout)
    world = make_house_world("procedural", split=split)
    data = draw_symbolic_dataset(world, range(layouts), per_layout, DRAWING_SEED, lambda n: progress.advance(bar, n))
    with atomic_replace(path) as temporary:
        save_file(data._asdict(), temporary)
    return data


def report(encoder: SymbolicEncoder, data: SymbolicDataset) -> None:
    """Print F1 by category and by size, and the error of distances."""
    seen = predict(encoder, data.images)
    areas, rays = seen[:, : len(YCB_CLASSES)], seen[:, len(YCB_CLASSES) :]
    predicted, present = areas > 0, data.pixels > 0
    scores = f1_scores(predicted, present)
    for name, score in zip(YCB_CLASSES, scores, strict=True):
        print(f"{name:24} F1 {score:.3f}")
    # an object that is not there has the size that the encoder gives it
    size = np.where(present, data.pixels, np.maximum(pixels_of(areas).round(), 1))
    for low, high in pairwise(SIZES):
        of_size = (size >= low) & (size < high)
        hits, shown = (predicted & present & of_size).sum(), (present & of_size).sum()
        f1 = 2 * hits / max((predicted & of_size).sum() + shown, 1)
        name = f"{low} to {high - 1} pixels" if high > low + 1 else f"{low} pixels"
        print(f"objects of {name}: F1 {f1:.3f}, recall {hits / max(shown, 1):.3f} of {shown}")
    print(f"categories without a pixel: seen in {predicted[~present].mean():.4f} of {(~present).sum()}")
    print(f"distances of obstacles: mean error {abs(rays - data.rays).mean() * RAY_RANGE:.2f} m")
    print(f"macro-F1 in {len(present)} pictures of the validation homes: {scores.mean():.3f}")


if __name__ == "__main__":
    sys.exit(main())
