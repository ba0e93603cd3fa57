"""Coverage and Search in episodes of 500 steps: memories of 4 to 500 steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets.smt import first_stage
from memenvs.agents.study import Study, changed, find_studies, load_study

from .tables import CAPACITIES, COVERAGE, IMAGES, LONGER, PART, RULES, STEPS, TASKS, WITHOUT, draw, make_tables

#: The study of episodes of 200 steps, whose settings these are but for those of `LONG`.
SHORT = load_study(find_studies()["scene_memory"])
ENVS, REPLAY, COLLECTIONS = 8, 96, 40


def steps_of(collections: int) -> int:
    """Environment steps that fill the replay and then of N collections, each with 50 updates."""
    return (REPLAY // ENVS + collections) * ENVS * STEPS


#: Changes of those settings. As many updates, with as many decisions, from half as many episodes of agents.
LONG: dict[str, Any] = {
    "env_kwargs.max_episode_steps": STEPS,
    "eval_steps": STEPS,
    "eval_envs": 46,
    "eval_trials": 92,  # two in each home
    "validation_trials": 39,  # one in each home
    "n_envs": ENVS,
    "total_steps": steps_of(COLLECTIONS),
    "dqn.episode_steps": STEPS,
    "dqn.capacity": REPLAY,
}
#: Changes for images of colour, depth and classes.
PICTURES: dict[str, Any] = {"env_kwargs.obs_mode": "frames", "env_kwargs.image_size": [24, 32]}


def configs(task: str) -> dict[str, RunConfig]:
    """Settings of both stages in a task; in Coverage also of longer runs and ablations."""
    short = SHORT.configs[COVERAGE if task == IMAGES else task]
    pictures = {**PICTURES, "encoder_from": f"{task}-encoder-{{seed}}"} if task == IMAGES else {}

    def long(method: str, **memory: Any) -> RunConfig:
        kept = {f"policy.memory_kwargs.{name}": value for name, value in memory.items()}
        return changed(short[method], {**LONG, **pictures, **kept})

    own = {"encoder": first_stage(long("smt", capacity=STEPS)), "reactive": long("reactive")}
    own |= {f"smt-{kept}": long("smt", capacity=kept) for kept in (CAPACITIES if task != IMAGES else (4, PART))}
    if task != IMAGES:
        own |= {name: long(name, capacity=STEPS) for name in ("smt-causal", "smt-factorized")}
    if task == COVERAGE:
        own |= {
            f"{method}-longer": changed(own[method], {"total_steps": steps_of(2 * COLLECTIONS)}) for method in LONGER
        }
        for part in WITHOUT:
            config = long(f"smt-{part}", capacity=PART)
            own |= {f"encoder-{part}": first_stage(config), f"smt-{part}": config}
    return own


CONFIGS = {task: configs(task) for task in TASKS}
SOURCES = ("encoder", *(f"encoder-{part}" for part in WITHOUT))
PLAYED = {*RULES, *(method for own in CONFIGS.values() for method in own)} - {*SOURCES}


def shorten(config: RunConfig) -> RunConfig:
    """Shorten a run to seconds."""
    return replace(SHORT.smoke(config), eval_envs=8)


STUDY = Study(
    title="Explorers: how many steps a memory must hold in episodes of 500",
    configs=CONFIGS,
    sources=SOURCES,
    evaluations={"homes": partial(SHORT.evaluations["homes"], methods=PLAYED)},
    scripted=tuple(RULES),
    tables=make_tables,
    figures={"scene_capacity": draw},
    smoke=shorten,
)
