"""Pre-train a visual encoder of this package, named as in `make_vec_env(encoder=...)`.

"cnn" classifies objects in pictures (40 minutes on one core, with `--bfloat16`); "symbolic" estimates symbolic
observations from pictures of 64 x 48 (15 minutes, 1.4 GB of disk). Both are measured in homes of the validation split.

    python studies/ext_objnav_pictures/pretrain_encoder.py cnn [--out runs/encoder] [--epochs 51] [--bfloat16] [--smoke]
    python studies/ext_objnav_pictures/pretrain_encoder.py symbolic --shipped  # the package's weights, in minutes
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import Progress
from safetensors.numpy import load_file, save_file

from memenvs.agents.encoders import load_encoder, load_symbolic_encoder, save_encoder
from memenvs.agents.encoders import presence_dataset as presence
from memenvs.agents.encoders import presence_pretraining as cnn
from memenvs.agents.encoders import symbolic_dataset as symbolic
from memenvs.agents.encoders import symbolic_pretraining as estimates
from memenvs.agents.encoders.symbolic_encoder import pixels_of, save_symbolic_encoder
from memenvs.files import atomic_replace
from memenvs.houses.classes import YCB_CLASSES
from memenvs.houses.worlds import make_house_world
from memenvs.objectnav.symbolic import RAY_RANGE

#: Encoder -> class of its pictures, and the function that draws them.
KINDS: dict[str, tuple[Any, Any]] = {
    "cnn": (presence.PresenceDataset, presence.render_dataset),
    "symbolic": (symbolic.SymbolicDataset, symbolic.draw_symbolic_dataset),
}
#: Encoder -> split -> layouts, those of a smoke test, pictures of each, and the seed.
DATA = {
    "cnn": {"train": (1050, 10, 20, 0), "validation": (120, 2, 20, 1)},
    "symbolic": {"train": (1600, 4, 60, 7), "validation": (120, 4, 40, 7)},
}
#: Bounds of the sizes by which scores are printed, pixels: of 256 x 256 for "cnn", of 64 x 48 for "symbolic".
SIZES = {"cnn": (presence.PRESENCE_PIXELS + 1, 16, 26, 51, 101, 65537), "symbolic": (1, 2, 3, 5, 9, 17, 3073)}


def load_pictures(split: str, options: argparse.Namespace, progress: Progress) -> Any:
    """Load the pictures of a split; draw and write them if need be."""
    path, (kind, draw) = options.out / f"{split}.safetensors", KINDS[options.encoder]
    if path.exists():
        return kind(**load_file(path))
    layouts, few, count, seed = DATA[options.encoder][split]
    layouts = few if options.smoke else layouts
    bar = progress.add_task(f"drawing {split} homes", total=layouts * count)
    world = make_house_world("procedural", split=split)
    data = draw(world, range(layouts), count, seed, lambda n: progress.advance(bar, n))
    with atomic_replace(path) as temporary:
        save_file(data._asdict(), temporary)
    return data


def train(options: argparse.Namespace, data: Any, progress: Progress) -> Any:
    """Train an encoder, write its weights, and read them again."""
    weights, checkpoint = options.out / "weights.safetensors", options.out / "checkpoint.safetensors"
    bar = progress.add_task("training", total=None)
    show: Any = {"on_step": lambda loss: progress.update(bar, advance=1, description=f"training, loss {loss:.2f}")}
    if options.encoder == "cnn":
        epochs = 2 if options.smoke else options.epochs or 51
        data = presence.PresenceDataset(*(part[: round(0.9 * len(data.images))] for part in data))
        config = cnn.PretrainingConfig(epochs=epochs, crop_epochs=max(1, epochs - 6), bfloat16=options.bfloat16)
        save_encoder(cnn.pretrain(data, config, checkpoint, **show), weights)
        return load_encoder(weights)
    settings = estimates.SymbolicPretrainingConfig(epochs=1 if options.smoke else options.epochs or 14)
    save_symbolic_encoder(estimates.pretrain_symbolic(data, settings, checkpoint, **show), weights)
    return load_symbolic_encoder(weights)


def report(name: str, encoder: Any, data: Any) -> None:
    """Print F1 by category, recall and F1 by size, and the error of distances."""
    if name == "cnn":
        predicted, present, size = cnn.predict_presence(encoder, data.images), data.present, data.pixels
    else:
        areas, rays = np.split(estimates.predict(encoder, data.images), [len(YCB_CLASSES)], axis=1)
        predicted, present = areas > 0, data.pixels > 0
        # an object that is not there has the size that the encoder gives it
        size = np.where(present, data.pixels, np.maximum(pixels_of(areas).round(), 1))
        print(f"distances of obstacles: mean error {abs(rays - data.rays).mean() * RAY_RANGE:.2f} m")
    scores = cnn.f1_scores(predicted, present)
    print("\n".join(f"{name:24} F1 {score:.3f}" for name, score in zip(YCB_CLASSES, scores, strict=True)))
    for low, high in pairwise(SIZES[name]):
        chosen = (size >= low) & (size < high)
        hits, objects = (predicted & present & chosen).sum(), (present & chosen).sum()
        f1 = f", F1 {2 * hits / max((predicted & chosen).sum() + objects, 1):.3f}" if name == "symbolic" else ""
        print(f"objects of {low} to {high - 1} pixels: recall {hits / max(objects, 1):.3f} of {objects}{f1}")
    print(f"macro-F1 in {len(present)} pictures of the validation homes: {scores.mean():.3f}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encoder", choices=KINDS)
    parser.add_argument("--out", type=Path, default=Path("runs/encoder"), help="pictures and weights (%(default)s)")
    parser.add_argument("--epochs", type=int, help="passes over the pictures (default 51 and 14)")
    parser.add_argument("--bfloat16", action="store_true", help="faster for cnn on some processors")
    parser.add_argument("--shipped", action="store_true", help="train nothing; measure the weights of the package")
    parser.add_argument("--smoke", action="store_true", help="train for seconds only, to see that everything runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out = options.out / options.encoder
    options.out.mkdir(parents=True, exist_ok=True)
    with Progress() as progress:
        if options.shipped:
            encoder: Any = load_encoder() if options.encoder == "cnn" else load_symbolic_encoder()
        else:
            encoder = train(options, load_pictures("train", options, progress), progress)
        report(options.encoder, encoder, load_pictures("validation", options, progress))


if __name__ == "__main__":
    main()
