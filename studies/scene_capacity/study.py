"""Coverage and Search in episodes of 500 steps: memories of 4 to 500 steps."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets.smt import first_stage
from memenvs.agents.study import Study, changed, find_studies, load_study

from .tables import CAPACITIES, COVERAGE, IMAGES, RULES, STEPS, TASKS, WITHOUT, draw, make_tables

#: The study of episodes of 200 steps, whose settings these are but for those of `LONG`.
SHORT = load_study(find_studies()["scene_memory"])
by_home = sys.modules[SHORT.smoke.__module__].by_home
ENVS, REPLAY, COLLECTIONS = 8, 96, 40
#: Changes of those settings. As many updates, with as many decisions, from half as many episodes.
LONG: dict[str, Any] = {
    "env_kwargs.max_episode_steps": STEPS,
    "eval_steps": STEPS,
    "eval_envs": 46,
    "eval_trials": 92,  # two in each home
    "validation_trials": 39,  # one in each home
    "n_envs": ENVS,
    "total_steps": (REPLAY // ENVS + COLLECTIONS) * ENVS * STEPS,  # fill the replay, then collect
    "dqn.episode_steps": STEPS,
    "dqn.capacity": REPLAY,
}
#: Changes for images of colour, depth and classes.
PICTURES: dict[str, Any] = {"env_kwargs.obs_mode": "frames", "env_kwargs.image_size": [24, 32]}


def configs(task: str) -> dict[str, RunConfig]:
    """Settings of both stages in a task; in Coverage also of the runs without an input."""
    short = SHORT.configs[COVERAGE if task == IMAGES else task]
    pictures = {**PICTURES, "encoder_from": f"{task}-encoder-{{seed}}"} if task == IMAGES else {}

    def long(method: str, **memory: Any) -> RunConfig:
        kept = {f"policy.memory_kwargs.{name}": value for name, value in memory.items()}
        return changed(short[method], {**LONG, **pictures, **kept})

    own = {"encoder": first_stage(long("smt", capacity=STEPS))}
    if task != IMAGES:
        own["reactive"] = long("reactive")
    own |= {f"smt-{kept}": long("smt", capacity=kept) for kept in (CAPACITIES if task != IMAGES else (4, STEPS))}
    if task != IMAGES:
        own |= {name: long(name, capacity=STEPS) for name in ("smt-causal", "smt-factorized")}
    for part in WITHOUT if task == COVERAGE else ():
        config = long(f"smt-{part}", capacity=STEPS)
        own |= {f"encoder-{part}": first_stage(config), f"smt-{part}": config}
    return own


CONFIGS = {task: configs(task) for task in TASKS}
SOURCES = ("encoder", *(f"encoder-{part}" for part in WITHOUT))
PLAYED = {*RULES, *(method for own in CONFIGS.values() for method in own)} - {*SOURCES}

STUDY = Study(
    title="Explorers: how many steps a memory must hold in episodes of 500",
    configs=CONFIGS,
    sources=SOURCES,
    evaluations={"homes": partial(by_home, methods=PLAYED)},
    scripted=tuple(RULES),
    tables=make_tables,
    figures={"scene_capacity": draw},
    smoke=SHORT.smoke,
)
