"""Roaming, Coverage, Search: memories on frozen encoders; in Coverage the parts of SMT."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import algorithm_of
from memenvs.agents.policies.acting import ActingPolicy
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.smt import first_stage
from memenvs.agents.study import Played, Study, changed
from memenvs.exploration.config import MODALITIES

from .tables import CAPACITIES, CAUSAL_CAPACITIES, CENTRES, COVERAGE, SLIPS, TASKS, TIMES, draw, make_tables

#: Task -> changes of the preset. Search keeps its rewards as they are: the one of a new class, 100, stays where the
#: Huber loss is linear. Its `min_reward` makes a collision cost a fifth of a cell, as in Coverage.
TASK_CHANGES: dict[str, dict[str, Any]] = {
    "roaming": {"env": "memenvs/Roaming-v0", "score": "distance", "dqn.reward_scale": 1.0, "dqn.temperature": 0.25},
    "coverage": {},
    "search": {"env": "memenvs/Search-v0", "score": "classes", "dqn.reward_scale": 1.0, "dqn.min_reward": -0.2},
}
_SIZE = {"dim": 64, "capacity": 200}


def _memory(memory: str, **settings: Any) -> dict[str, Any]:
    """Changes to a run that learns with another memory."""
    return {"policy.memory": memory, "policy.memory_kwargs": settings}


#: Memory of the second stage -> changes of the preset. The widths are equal. Without a memory Q has one layer more, in
#: place of the memory's projection of the embedding.
METHODS: dict[str, dict[str, Any]] = {
    "reactive": {**_memory("none"), "policy.net_arch": {"pi": [64, 64], "vf": []}},
    "lstm": _memory("lstm", hidden_dim=64, bptt=128),
    "frmqn": _memory("frmqn", **_SIZE, bptt=128),
    "sm-pooling": {
        **_memory("sm-pooling", **_SIZE, rectified=True, tau=[1.0, 10.0, 100.0]),
        "dqn.learning_rate": 3e-3,  # with 1e-3 it learns less
    },
    "smt-factorized": _memory("smt-factorized", **_SIZE, heads=4, n_centres=50),
    "smt": {},
    "smt-4": {"policy.memory_kwargs.capacity": 4},
    "smt-causal": _memory("smt-causal", **_SIZE, heads=4),
}
#: Parts that are left out in both stages.
WITHOUT: dict[str, dict[str, Any]] = {
    **{
        f"no-{modality}": {"env_kwargs.modalities": [name for name in MODALITIES["scan"] if name != modality]}
        for modality in MODALITIES["scan"]
    },
    "no-previous-action": {"policy.previous_action_dim": 0},
}
WITHOUT["no-pose"]["policy.memory_kwargs.poses"] = False
#: Parts of the second stage that are left out or replaced.
PARTS: dict[str, dict[str, Any]] = {
    "smt-no-encoder": {"policy.memory_kwargs.encoder": False},
    "smt-factorized-window": {**METHODS["smt-factorized"], "policy.memory_kwargs.centres": "window"},
    "smt-factorized-static": {**METHODS["smt-factorized"], "policy.memory_kwargs.centres": "static"},
    **{
        f"smt-reckoned-{time}": {
            "env_kwargs.pose_source": "dead_reckoning",
            "env_kwargs.collision_known": True,
            "policy.memory_kwargs.time": time,
        }
        for time in TIMES
    },
}


def configs(task: str) -> dict[str, RunConfig]:
    """Settings of both stages in a task; in Coverage also of the runs with other parts."""
    base = replace(changed(find_preset("coverage-laptop"), TASK_CHANGES[task]), encoder_from=f"{task}-encoder-{{seed}}")
    parts = PARTS if task == COVERAGE else {}
    own = {
        "encoder": first_stage(base),
        **{name: changed(base, changes) for name, changes in {**METHODS, **parts}.items()},
    }
    for name, changes in WITHOUT.items() if task == COVERAGE else ():
        config = changed(base, changes)
        own[f"encoder-{name}"] = first_stage(config)
        own[f"smt-{name}"] = replace(config, encoder_from=f"{task}-encoder-{name}-{{seed}}")
    return own


def by_home(
    played: Played,
    methods: Collection[str],
    memory: Mapping[str, Any] | None = None,
    steps: int | None = None,
    **changes: Any,
) -> dict[str, list[float]] | None:
    """Mean of each metric in each home, of an agent whose memory may be changed.

    Args:
        played: The run.
        methods: Methods that are evaluated; None is returned for others.
        memory: Settings of the memory to change in the trained agent; it keeps its weights. Such an agent, and one in
            episodes of other lengths, plays in Coverage alone.
        steps: Steps of an episode; None for those of training.
        **changes: Fields of the settings to change; those in "eval_kwargs" change single settings of the evaluation.

    Returns:
        Metric -> means in the order of homes. Metrics that an episode does not have, such as a ratio, are left out.
    """
    if played.method not in methods or (memory is not None and played.task != COVERAGE):
        return None
    env = {**played.config.eval_kwargs, **changes.pop("eval_kwargs", {})}
    if steps is not None and not played.smoke:
        env, changes = {**env, "max_episode_steps": steps}, {**changes, "eval_steps": steps}
    policy = None if memory is None or played.run is None else changed_policy(played.run, memory)
    results = played.play(policy=policy, eval_kwargs=env, **changes)
    first = {name: values[:, 0] for name, values in results.metrics.items() if np.isfinite(values[:, 0]).all()}
    homes = np.unique(results.layouts)
    return {name: [float(values[results.layouts == home].mean()) for home in homes] for name, values in first.items()}


def changed_policy(run: RunDirectory, memory: Mapping[str, Any], seed: int = 1) -> ActingPolicy:
    """The trained policy of a run with some settings of its memory changed."""
    kwargs = {"memory_kwargs": {**run.config.policy["memory_kwargs"], **memory}}
    model = algorithm_of(run.config).load(run.checkpoint_path(), device=run.config.device, policy_kwargs=kwargs)
    model.policy.generator.manual_seed(seed)
    return model.policy


def in_procthor(played: Played) -> dict[str, list[float]] | None:
    """Evaluation in the 14 ProcTHOR houses; None without their data."""
    if not os.environ.get("MEMENVS_DATA"):
        return None
    return by_home(played, COMPARED, eval_trials=140, eval_kwargs={"world": "procthor", "split": "all"})


SCRIPTED = ("random", "window4", "oracle")
COMPARED = (*SCRIPTED, "encoder", *METHODS)
FACTORIZED = ("smt-factorized", "smt-factorized-window")
RECKONED = tuple(f"smt-reckoned-{time}" for time in TIMES)
IN_TEST_HOMES = (*COMPARED, *(name for name in PARTS if name not in RECKONED), *(f"smt-{name}" for name in WITHOUT))
EVALUATIONS: dict[str, Callable[[Played], Any]] = {
    "homes": partial(by_home, methods=IN_TEST_HOMES),
    "procthor": in_procthor,
    **{f"homes_capacity_{kept}": partial(by_home, methods=("smt",), memory={"capacity": kept}) for kept in CAPACITIES},
    **{
        f"homes_steps_{steps}_capacity_{kept}": partial(
            by_home, methods=("smt-causal",), memory={"capacity": kept}, steps=steps
        )
        for steps in (200, 500)
        for kept in CAUSAL_CAPACITIES
    },
    **{
        f"homes_centres_{count}": partial(by_home, methods=FACTORIZED, memory={"n_centres": count}) for count in CENTRES
    },
    **{f"homes_slip_{slip}": partial(by_home, methods=RECKONED, eval_kwargs={"wheel_noise": slip}) for slip in SLIPS},
}


def shorten(config: RunConfig) -> RunConfig:
    """Shorten a run to seconds."""
    sizes = {"capacity": 8, "episode_steps": 20, "batch_size": 4, "decisions": 4, "updates_per_collect": 2}
    return replace(
        config,
        n_envs=4,
        total_steps=4 * 20 * 4,
        learner=replace(config.learner, **sizes),
        env_kwargs={**config.env_kwargs, "max_episode_steps": 20},
        eval_steps=20,
        eval_trials=8,
        validation_trials=4,
    )


STUDY = Study(
    title="Explorers: memories in homes that are new to them",
    configs={task: configs(task) for task in TASKS},
    sources=tuple(f"encoder-{name}" for name in WITHOUT),
    evaluations=EVALUATIONS,
    scripted=SCRIPTED,
    tables=make_tables,
    figures={"scene_memory": draw},
    smoke=shorten,
)
