"""Pre-train a visual encoder of this package, named as in `make_vec_env(encoder=...)`.

"cnn" classifies objects: 40 minutes on one core, with `--bfloat16`. "symbolic" estimates symbolic observations from
pictures of 64 x 48: 15 minutes, 1.4 GB of memory and of disk. Both learn from layouts of the training homes and are
measured in layouts of the validation homes. A training that was killed resumes when called again.

    python examples/pretrain_encoder.py cnn [--out runs/encoder] [--crop-epochs 45] [--whole-epochs 6] [--bfloat16]
        [--smoke]
    python examples/pretrain_encoder.py symbolic [--out runs/symbolic_encoder] [--epochs 14] [--smoke]
    python examples/pretrain_encoder.py cnn --shipped      # the weights of the package alone, in minutes
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import Progress
from safetensors.numpy import load_file, save_file

from memenvs.agents.encoders import (
    SymbolicEncoder,
    VisualEncoder,
    load_encoder,
    load_symbolic_encoder,
    save_encoder,
)
from memenvs.agents.encoders.presence_dataset import PRESENCE_PIXELS, PresenceDataset, render_dataset
from memenvs.agents.encoders.presence_pretraining import (
    PretrainingConfig,
    f1_scores,
    macro_f1,
    predict_presence,
    pretrain,
)
from memenvs.agents.encoders.pretraining import EpochsConfig
from memenvs.agents.encoders.symbolic_dataset import SymbolicDataset, draw_symbolic_dataset
from memenvs.agents.encoders.symbolic_encoder import pixels_of, save_symbolic_encoder
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

#: Share of the layouts of "cnn", the last ones, that are held out.
HELD_OUT = 0.1
#: Bounds of the sizes of objects by which scores are printed, pixels: of 256 x 256 for "cnn", of 64 x 48.
CNN_SIZES = (PRESENCE_PIXELS + 1, 16, 26, 51, 101, 65537)
SYMBOLIC_SIZES = (1, 2, 3, 5, 9, 17, 3073)
#: Seed of the pictures of "symbolic".
DRAWING_SEED = 7


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    encoders = parser.add_subparsers(metavar="ENCODER", required=True)
    cnn = encoders.add_parser("cnn", help="classifies which objects an image shows")
    cnn.set_defaults(run=train_cnn)
    cnn.add_argument(
        "--crop-epochs", type=int, default=45, help="passes over quarters of the images (default %(default)s)"
    )
    cnn.add_argument(
        "--whole-epochs", type=int, default=6, help="passes over whole images after them (default %(default)s)"
    )
    cnn.add_argument("--bfloat16", action="store_true", help="faster on processors that support it")
    symbolic = encoders.add_parser("symbolic", help="small; estimates symbolic observations")
    symbolic.set_defaults(run=train_symbolic)
    epochs = SymbolicPretrainingConfig().epochs
    symbolic.add_argument("--epochs", type=int, default=epochs, help="passes over the pictures (default %(default)s)")
    for command, out in ((cnn, "runs/encoder"), (symbolic, "runs/symbolic_encoder")):
        command.add_argument("--out", type=Path, default=Path(out), help="pictures and weights (default %(default)s)")
        command.add_argument("--seed", type=int, default=0, help="seed of the training (default %(default)s)")
        command.add_argument("--shipped", action="store_true", help="train nothing; measure the weights of the package")
        command.add_argument("--smoke", action="store_true", help="train for seconds only, to see that everything runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        options.run(options, progress)
    return 0


def train_cnn(options: argparse.Namespace, progress: Progress) -> None:
    """Train and measure "cnn"."""
    crop_epochs, whole_epochs = (1, 1) if options.smoke else (options.crop_epochs, options.whole_epochs)
    epochs = {"epochs": crop_epochs + whole_epochs, "crop_epochs": crop_epochs}
    config = PretrainingConfig(**epochs, bfloat16=options.bfloat16, seed=options.seed)
    draw = partial(dataset, options.out, progress, PresenceDataset, render_dataset)
    validation = draw("validation", 2 if options.smoke else 120, 20, options.seed + 1)
    if options.shipped:
        report_cnn(load_encoder(), validation)
        return
    train = draw("train", 10 if options.smoke else 1050, 20, options.seed)
    learned = round(len(train.images) * (1 - HELD_OUT))
    held_out = PresenceDataset(*(each[learned:] for each in train))
    train = PresenceDataset(*(each[:learned] for each in train))
    shown = callbacks(progress, config, learned, lambda encoder: macro_f1(encoder, held_out), first=crop_epochs + 1)
    encoder = pretrain(train, config, options.out / "checkpoint.safetensors", **shown)
    weights = options.out / "visual.safetensors"
    save_encoder(encoder, weights)
    report_cnn(load_encoder(weights), validation)
    print(f"weights: {weights}")


def train_symbolic(options: argparse.Namespace, progress: Progress) -> None:
    """Train and measure "symbolic"."""
    config = SymbolicPretrainingConfig(epochs=1 if options.smoke else options.epochs, seed=options.seed)
    draw = partial(dataset, options.out, progress, SymbolicDataset, draw_symbolic_dataset)
    validation = draw("validation", 4 if options.smoke else 120, 40, DRAWING_SEED)
    if options.shipped:
        report_symbolic(load_symbolic_encoder(), validation)
        return
    train = draw("train", 4 if options.smoke else 1600, 60, DRAWING_SEED)
    shown = callbacks(progress, config, len(train.images), lambda encoder: symbolic_f1(encoder, validation))
    encoder = pretrain_symbolic(train, config, options.out / "checkpoint.safetensors", **shown)
    weights = options.out / "symbolic.safetensors"
    save_symbolic_encoder(encoder, weights)
    report_symbolic(load_symbolic_encoder(weights), validation)
    print(f"weights: {weights}")


def dataset(
    out: Path, progress: Progress, kind: Any, draw: Callable[..., Any], split: str, layouts: int, count: int, seed: int
) -> Any:
    """Load the pictures of a split, `count` of each layout; draw and write them if need be."""
    path = out / f"{split}.safetensors"
    if path.exists():
        return kind(**load_file(path))
    bar = progress.add_task(f"drawing {split} homes", total=layouts * count)
    world = make_house_world("procedural", split=split)
    data = draw(world, range(layouts), count, seed, lambda n: progress.advance(bar, n))
    with atomic_replace(path) as temporary:
        save_file(data._asdict(), temporary)
    return data


def callbacks(
    progress: Progress, config: EpochsConfig, count: int, score: Callable[[Any], float], first: int = 1
) -> dict[str, Any]:
    """Make a bar for a training of `count` pictures; print the score from epoch `first` on."""
    steps = count // config.batch_size
    bar = progress.add_task("training", total=config.epochs * steps)

    def after_epoch(epoch: int, encoder: Any) -> None:
        progress.update(bar, completed=epoch * steps)
        if epoch >= first:
            print(f"epoch {epoch}: macro-F1 {score(encoder):.3f}", flush=True)

    return {
        "on_step": lambda loss: progress.update(bar, advance=1, description=f"training, loss {loss:.2f}"),
        "on_epoch": after_epoch,
    }


def report_cnn(encoder: VisualEncoder, data: PresenceDataset) -> None:
    """Print F1 by category and recall by size."""
    predicted = predict_presence(encoder, data.images)
    report_categories(predicted, data.present, data.pixels == 0)
    for low, high in pairwise(CNN_SIZES):
        of_size = (data.pixels >= low) & (data.pixels < high)
        print(f"objects of {low} to {high - 1} pixels: recall {predicted[of_size].mean():.3f} of {of_size.sum()}")


def report_symbolic(encoder: SymbolicEncoder, data: SymbolicDataset) -> None:
    """Print F1 by category and by size, and the error of distances."""
    seen = predict(encoder, data.images)
    areas, rays = seen[:, : len(YCB_CLASSES)], seen[:, len(YCB_CLASSES) :]
    predicted, present = areas > 0, data.pixels > 0
    report_categories(predicted, present, ~present)
    # an object that is not there has the size that the encoder gives it
    size = np.where(present, data.pixels, np.maximum(pixels_of(areas).round(), 1))
    for low, high in pairwise(SYMBOLIC_SIZES):
        of_size = (size >= low) & (size < high)
        hits, shown = (predicted & present & of_size).sum(), (present & of_size).sum()
        f1 = 2 * hits / max((predicted & of_size).sum() + shown, 1)
        name = f"{low} to {high - 1} pixels" if high > low + 1 else f"{low} pixels"
        print(f"objects of {name}: F1 {f1:.3f}, recall {hits / max(shown, 1):.3f} of {shown}")
    print(f"distances of obstacles: mean error {abs(rays - data.rays).mean() * RAY_RANGE:.2f} m")


def report_categories(predicted: np.ndarray, present: np.ndarray, absent: np.ndarray) -> None:
    """Print the F1 score of each category and their mean.

    Args:
        predicted: bool, (K, categories); True for the categories that a picture is predicted to show.
        present: bool, (K, categories); True for those that it shows.
        absent: bool, (K, categories); True for those without a pixel.
    """
    scores = f1_scores(predicted, present)
    for name, score in zip(YCB_CLASSES, scores, strict=True):
        print(f"{name:24} F1 {score:.3f}")
    print(f"categories without a pixel: predicted in {predicted[absent].mean():.4f} of {absent.sum()}")
    print(f"macro-F1 in {len(present)} pictures of the validation homes: {scores.mean():.3f}")


if __name__ == "__main__":
    sys.exit(main())
