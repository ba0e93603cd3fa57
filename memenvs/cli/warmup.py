"""`memenvs warmup`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from memenvs.cli.policies import make_policy
from memenvs.compilation import COMPILATION
from memenvs.core import TrialEnv
from memenvs.episodes import play_episode
from memenvs.progress import progress_bar
from memenvs.registry import ENVIRONMENTS, EnvironmentSpec

#: Settings beside the default ones that run other compiled functions, by name of the environment.
SETTINGS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "ExtObjNav-v0": ({"sensors": ["rgb", "depth", "semantic"]}, {"obs_mode": "symbolic"}),
    "Roaming-v0": ({"obs_mode": "scan"}, {"pose_source": "dead_reckoning"}),
}
#: Steps of each environment, after which all of its functions have run.
NUM_STEPS = 4


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Play each environment for a few steps, so that numba compiles and stores what it needs."""
    start = time.perf_counter()
    skipped: dict[str, str] = {}
    parts = {spec.id: partial(play_settings, spec) for spec in ENVIRONMENTS}
    with progress_bar("compiling", quiet=arguments.json) as progress:
        for i, (name, warm_up) in enumerate(parts.items()):
            begun = time.perf_counter()
            try:
                warm_up()
            except (ImportError, FileNotFoundError) as error:  # an extra or a data set is missing
                skipped[name] = " ".join(str(error).split())
            if not arguments.json:
                reason = skipped.get(name)
                result = f"{time.perf_counter() - begun:.1f} s" if reason is None else f"skipped: {reason}"
                print(f"{name:36} {result}", flush=True)
            progress((i + 1) / len(parts))
    seconds = round(time.perf_counter() - start, 1)
    if not arguments.json:
        print(f"compiled {COMPILATION.num_functions} functions in {seconds} s; the others were compiled before")
    return {"compiled": COMPILATION.num_functions, "seconds": seconds, "skipped": skipped}


def play_settings(spec: EnvironmentSpec) -> None:
    """Play an environment with its default settings and with those of `SETTINGS`."""
    for settings in ({}, *SETTINGS.get(spec.name, ())):
        play(spec, settings)


def play(spec: EnvironmentSpec, settings: Mapping[str, Any]) -> None:
    """Play and draw some steps of the oracle and of a random policy."""
    assert spec.task is not None, "rows of this package have tasks"
    env = TrialEnv(spec.task, render_mode="rgb_array", **{**spec.defaults, **settings})
    for name in ("oracle", "random"):
        env.reset(seed=0)
        policy = make_policy(name, env, spec, np.random.default_rng(0))
        for _ in islice(play_episode(env, policy), NUM_STEPS):
            pass
        env.render()
    env.close()
