"""Packages of the optional dependencies."""

from __future__ import annotations

from collections.abc import Mapping

#: Packages of the optional dependencies (pip install "memenvs[NAME]"): module, and name on PyPI.
EXTRAS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "agents": (
        ("torch", "torch"),
        ("stable_baselines3", "stable-baselines3"),
        ("safetensors", "safetensors"),
        ("huggingface_hub", "huggingface_hub"),
        ("accelerate", "accelerate"),
        ("filelock", "filelock"),
        ("tensorboard", "tensorboard"),
        ("matplotlib", "matplotlib"),
    ),
    "export": (("trimesh", "trimesh"),),
    "hdf5": (("h5py", "h5py"),),
    "minari": (("minari", "minari"),),
    "minigrid": (("minigrid", "minigrid"),),
    "ray": (("ray", "ray"),),
    "slurm": (("submitit", "submitit"),),
    "text": (("transformers", "transformers"),),
    "video": (("imageio", "imageio"), ("imageio_ffmpeg", "imageio-ffmpeg")),
}


def extra_of(module: str) -> str | None:
    """Return the first extra that brings a module; None if there is none.

    Args:
        module: Dotted name, such as "torch.nn".
    """
    package = module.partition(".")[0]
    return next((extra for extra, packages in EXTRAS.items() if package in dict(packages)), None)
