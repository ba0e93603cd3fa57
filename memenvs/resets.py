"""Arguments of `reset`, checked: a seed and options for each environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memenvs.checks import choices_for, is_int
from memenvs.task import TRIAL_OPTIONS, BatchTask, Options

#: Options that other libraries pass on through their wrappers; they are left out.
FOREIGN_OPTIONS = ("minari_autoseed",)
#: Seeds from here on stand for one below it, so that `info` holds every seed as int64.
SEED_LIMIT = 2**62
#: Keeps the hash of `stream_seed` apart from other uses of a seed.
_STREAM = 1


def split_seed(seed: int | Sequence[int | None] | None, num_envs: int) -> list[int | None]:
    """Split the argument `seed` into one for each environment.

    Args:
        seed: A number s >= 0, for s + i in environment i; or a sequence of N numbers and None; or None.
        num_envs: N.

    Returns:
        N seeds below `SEED_LIMIT`; None where an environment is not seeded.

    Raises:
        TypeError: Neither a number nor a sequence of numbers and None.
        ValueError: A seed is negative, or there are not as many as environments.
    """
    if seed is None:
        return [None] * num_envs
    if is_int(seed):
        seeds: list[int | None] = [int(seed) + i for i in range(num_envs)]  # type: ignore[arg-type]
    elif isinstance(seed, (list, tuple, np.ndarray)) and all(value is None or is_int(value) for value in seed):
        seeds = [None if value is None else int(value) for value in seed]
    else:
        raise TypeError(f"seed must be an int, a sequence of {num_envs} of them or None, got {seed!r}")
    if len(seeds) != num_envs:
        raise ValueError(f"seed must be an int or {num_envs} of them, got {len(seeds)}")
    if any(value is not None and value < 0 for value in seeds):
        raise ValueError(f"seed must be at least 0, got {seed}")
    return [None if value is None else below_limit(value) for value in seeds]


def below_limit(seed: int) -> int:
    """The seed below `SEED_LIMIT` that a seed stands for: itself, or a hash of it."""
    return seed if seed < SEED_LIMIT else np.random.SeedSequence(seed).generate_state(1, np.uint64).item() % SEED_LIMIT


def stream_seed(seed: int) -> int:
    """Hash a seed to the first of a batch's consecutive ones, so that nearby seeds share none.

    Args:
        seed: Seed of the whole batch, >= 0.

    Returns:
        A seed below 2^31 - 2^20, so that it and those after it are int32, which some environments need. Two batches of
        64 share a seed with a probability of 1 in 16 million.
    """
    return np.random.SeedSequence([seed, _STREAM]).generate_state(1, np.uint64).item() % (2**31 - 2**20)


def split_options(
    options: Options | Sequence[Options] | None, task: BatchTask
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Split the argument `options` into one dict for each environment.

    Args:
        options: A dict for all environments, or a sequence of N dicts, or None.
        task: Decides N and the options that are allowed.

    Returns:
        N dicts without those of `FOREIGN_OPTIONS`, and the mask of environments to reset, bool (N,).

    Raises:
        TypeError: Neither options nor a sequence of them.
        ValueError: An option is unknown or not allowed, or there are not as many as environments.
    """
    num_envs = task.num_envs
    mask: Any = None
    if options is None or isinstance(options, Mapping):
        shared = dict(options or {})
        mask = shared.pop("reset_mask", None)
        per_env = [_own_options(shared, task)] * num_envs
    else:
        if not isinstance(options, (list, tuple)) or not all(isinstance(own, Mapping) for own in options):
            raise TypeError(f"options must be a dict, a sequence of {num_envs} of them or None, got {options!r}")
        if len(options) != num_envs:
            raise ValueError(f"options must be one dict or {num_envs} of them, got {len(options)}")
        per_env = [_own_options(own, task) for own in options]
    mask = np.ones(num_envs, bool) if mask is None else np.asarray(mask)
    if mask.shape != (num_envs,) or mask.dtype != bool or not mask.any():
        raise ValueError(f"reset_mask must be a bool array of shape ({num_envs},) with a True in it, got {mask!r}")
    return per_env, mask


def _own_options(options: Options, task: BatchTask) -> dict[str, Any]:
    """The options without foreign ones, checked."""
    own = {key: value for key, value in options.items() if key not in FOREIGN_OPTIONS}
    allowed = (*task.option_names, *TRIAL_OPTIONS)
    for key, value in own.items():
        if key not in allowed:
            raise ValueError(f"unknown reset option {key!r}; {choices_for(key, allowed)}")
        if key == "new_trial" and not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"option 'new_trial' must be True or False, got {value!r}")
        if key in ("trial", "episode_index", "layout"):
            top = task.num_layouts if key == "layout" else 2**62
            if not is_int(value) or not 0 <= value < top:
                raise ValueError(f"option {key!r} must be an integer in 0 ... {top - 1}, got {value!r}")
    return own
