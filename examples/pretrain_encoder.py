"""Pre-trains the visual encoder that comes with this package to say which of the 20 things are in a picture; with `--bfloat16` 40 minutes on a core.

Layouts of the training homes; macro-F1 is measured in layouts of the validation homes. A training that was killed goes on when called again.

    python examples/pretrain_encoder.py [--out runs/encoder] [--cut-out-epochs 45] [--whole-epochs 6] [--bfloat16] [--smoke]
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
from memenvs.agents.encoders.presence_dataset import PRESENCE_PIXELS, PresenceDataset, f1_scores, render_dataset
from memenvs.agents.encoders.presence_pretraining import PretrainingConfig, macro_f1, predict_presence, pretrain
from memenvs.files import atomic_replace
from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.worlds import make_house_world

#: Of each layout; those of the last tenth of the layouts are held out.
PER_LAYOUT, HELD_OUT = 20, 0.1
#: Things that are larger than each, and not larger than the next, are looked at on their own; pixels of 256 x 256.
SIZES = (PRESENCE_PIXELS, 15, 25, 50, 100, 65536)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("runs/encoder"), help="pictures, checkpoint and weights (default %(default)s)"
    )
    parser.add_argument(
        "--cut-out-epochs", type=int, default=45, help="passes over quarters of the pictures (default %(default)s)"
    )
    parser.add_argument(
        "--whole-epochs", type=int, default=6, help="passes over whole pictures after them (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--bfloat16", action="store_true", help="faster on processors that compute in it")
    parser.add_argument("--smoke", action="store_true", help="train for seconds only: shows that everything runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    layouts, cut_outs, whole = (1050, 120), options.cut_out_epochs, options.whole_epochs
    if options.smoke:
        layouts, cut_outs, whole = (10, 2), 1, 1
    options.out.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        train, validation = (
            pictures(options.out / f"{split}.safetensors", split, count, seed, progress)
            for split, count, seed in (
                ("train", layouts[0], options.seed),
                ("validation", layouts[1], options.seed + 1),
            )
        )
        cut = round(len(train.images) * (1 - HELD_OUT))
        kept, held_out = (PresenceDataset(*(each[part] for each in train)) for part in (slice(cut), slice(cut, None)))
        config = PretrainingConfig(
            epochs=cut_outs + whole, cut_out_epochs=cut_outs, bfloat16=options.bfloat16, seed=options.seed
        )
        bar = progress.add_task("training", total=config.epochs * (cut // config.batch_size))

        def after_epoch(epoch: int, encoder: VisualEncoder) -> None:
            progress.update(bar, completed=epoch * (cut // config.batch_size))
            if epoch > cut_outs:
                print(f"epoch {epoch}: macro-F1 {macro_f1(encoder, held_out):.3f} in layouts held out", flush=True)

        encoder = pretrain(
            kept,
            config,
            options.out / "checkpoint.safetensors",
            on_step=lambda loss: progress.update(bar, advance=1, description=f"training, loss {loss:.2f}"),
            on_epoch=after_epoch,
        )
    save_encoder(encoder, options.out / "visual.safetensors")
    report(predict_presence(load_encoder(options.out / "visual.safetensors"), validation.images), validation)
    print(f"weights: {options.out / 'visual.safetensors'}")
    return 0


def pictures(path: Path, split: str, layouts: int, seed: int, progress: Progress) -> PresenceDataset:
    """Pictures of a file, or drawn and kept there."""
    if path.exists():
        return PresenceDataset(**load_file(path))
    bar = progress.add_task(f"drawing, {split} homes", total=layouts * PER_LAYOUT)
    drawn = render_dataset(
        make_house_world("procedural", split=split),
        range(layouts),
        PER_LAYOUT,
        seed,
        lambda n: progress.advance(bar, n),
    )
    with atomic_replace(path) as temporary:
        save_file(drawn._asdict(), temporary)
    return drawn


def report(found: np.ndarray, pictures: PresenceDataset) -> None:
    scores = f1_scores(found, pictures.present)
    for name, score in zip(YCB_CLASSES, scores, strict=True):
        print(f"{name:24} F1 {score:.3f}")
    for low, high in pairwise(SIZES):
        those = (pictures.pixels > low) & (pictures.pixels <= high)
        print(f"things of {low + 1} to {high} pixels: {found[those].mean():.3f} of {those.sum()} found")
    absent = pictures.pixels == 0
    print(f"categories without a pixel: {found[absent].mean():.4f} of {absent.sum()} found all the same")
    print(f"macro-F1 in layouts of the validation homes: {scores.mean():.3f}")


if __name__ == "__main__":
    sys.exit(main())
