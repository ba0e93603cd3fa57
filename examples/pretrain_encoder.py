"""Pre-train the visual encoder of this package to classify objects: 40 minutes on one core.

The time is that with `--bfloat16`. The encoder learns from layouts of the training homes; macro-F1 is measured in
layouts of the validation homes. A training that was killed resumes when called again.

    python examples/pretrain_encoder.py [--out runs/encoder] [--crop-epochs 45] [--whole-epochs 6] [--bfloat16]
        [--smoke]
    python examples/pretrain_encoder.py --shipped      # the weights of the package alone, in minutes
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from rich.progress import Progress
from safetensors.numpy import load_file, save_file

from memenvs.agents.encoders import VisualEncoder, load_encoder, save_encoder
from memenvs.agents.encoders.presence_dataset import PRESENCE_PIXELS, PresenceDataset, render_dataset
from memenvs.agents.encoders.presence_pretraining import (
    PretrainingConfig,
    f1_scores,
    macro_f1,
    predict_presence,
    pretrain,
)
from memenvs.files import atomic_replace
from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.worlds import make_house_world

#: Images of each layout.
PER_LAYOUT = 20
#: Share of the layouts, the last ones, that are held out.
HELD_OUT = 0.1
#: Bounds of the sizes of objects by which recall is printed; pixels of 256 x 256.
SIZES = (PRESENCE_PIXELS, 15, 25, 50, 100, 65536)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("runs/encoder"), help="images, checkpoint and weights (default %(default)s)"
    )
    parser.add_argument(
        "--crop-epochs", type=int, default=45, help="passes over quarters of the images (default %(default)s)"
    )
    parser.add_argument(
        "--whole-epochs", type=int, default=6, help="passes over whole images after them (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    parser.add_argument("--bfloat16", action="store_true", help="faster on processors that support it")
    parser.add_argument("--shipped", action="store_true", help="train nothing; measure the weights of the package")
    parser.add_argument("--smoke", action="store_true", help="train for seconds only, to see that everything runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    n_train, n_validation, crop_epochs, whole_epochs = 1050, 120, options.crop_epochs, options.whole_epochs
    if options.smoke:
        n_train, n_validation, crop_epochs, whole_epochs = 10, 2, 1, 1
    options.out.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        path = options.out / "validation.safetensors"
        validation = dataset(path, "validation", n_validation, options.seed + 1, progress)
        if options.shipped:
            report(predict_presence(load_encoder(), validation.images), validation)
            return 0
        train = dataset(options.out / "train.safetensors", "train", n_train, options.seed, progress)
        num_learned = round(len(train.images) * (1 - HELD_OUT))
        learned = PresenceDataset(*(each[:num_learned] for each in train))
        held_out = PresenceDataset(*(each[num_learned:] for each in train))
        epochs = {"epochs": crop_epochs + whole_epochs, "crop_epochs": crop_epochs}
        config = PretrainingConfig(**epochs, bfloat16=options.bfloat16, seed=options.seed)
        steps = num_learned // config.batch_size
        bar = progress.add_task("training", total=config.epochs * steps)

        def after_epoch(epoch: int, encoder: VisualEncoder) -> None:
            progress.update(bar, completed=epoch * steps)
            if epoch > crop_epochs:
                print(f"epoch {epoch}: macro-F1 {macro_f1(encoder, held_out):.3f} in held-out layouts", flush=True)

        encoder = pretrain(
            learned,
            config,
            options.out / "checkpoint.safetensors",
            on_step=lambda loss: progress.update(bar, advance=1, description=f"training, loss {loss:.2f}"),
            on_epoch=after_epoch,
        )
    save_encoder(encoder, options.out / "visual.safetensors")
    report(predict_presence(load_encoder(options.out / "visual.safetensors"), validation.images), validation)
    print(f"weights: {options.out / 'visual.safetensors'}")
    return 0


def dataset(path: Path, split: str, layouts: int, seed: int, progress: Progress) -> PresenceDataset:
    """Load the images of a split from a file, or render them and write the file."""
    if path.exists():
        return PresenceDataset(**load_file(path))
    bar = progress.add_task(f"rendering {split} homes", total=layouts * PER_LAYOUT)
    world = make_house_world("procedural", split=split)
    data = render_dataset(world, range(layouts), PER_LAYOUT, seed, lambda n: progress.advance(bar, n))
    with atomic_replace(path) as temporary:
        save_file(data._asdict(), temporary)
    return data


def report(predicted: np.ndarray, data: PresenceDataset) -> None:
    """Print F1 scores by category and recall by size.

    Args:
        predicted: bool, (K, categories); True for the categories that an image is predicted to show.
        data: The K images.
    """
    scores = f1_scores(predicted, data.present)
    for name, score in zip(YCB_CLASSES, scores, strict=True):
        print(f"{name:24} F1 {score:.3f}")
    for low, high in pairwise(SIZES):
        of_size = (data.pixels > low) & (data.pixels <= high)
        print(f"objects of {low + 1} to {high} pixels: recall {predicted[of_size].mean():.3f} of {of_size.sum()}")
    absent = data.pixels == 0
    print(f"categories without a pixel: predicted in {predicted[absent].mean():.4f} of {absent.sum()}")
    print(f"macro-F1 in layouts of the validation homes: {scores.mean():.3f}")


if __name__ == "__main__":
    sys.exit(main())
