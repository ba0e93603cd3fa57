"""Room Ballet: what to keep, and where it was."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.prediction_experiment import evaluate_predictions, trained_model
from memenvs.agents.memory.reader import MemoryReader
from memenvs.agents.papers.sat.learner import SATPrediction
from memenvs.agents.papers.sat.model import BalletModel
from memenvs.agents.presets import find_preset
from memenvs.agents.study import EVALUATION, Played, Study, changed, grid
from memenvs.retention import STRATEGIES

from .tables import ROOMS, draw, make_tables

#: Batches of 32 in an epoch of the release, which has 101 epochs.
RELEASE_EPOCH = 3375
#: Steps 20, 25 and 30 of each of the 18 visits, 54 in all, so that a DNC can be trained on one core.
THREE_STEPS = {"first": 20, "every": 5}


def make_configs() -> dict[str, dict[str, RunConfig]]:
    """Settings of each memory or strategy in each task."""
    preset = find_preset("room-ballet")
    configs = {
        task: {
            strategy: ballet(preset, task.upper(), 5000, {"strategy": strategy})
            for strategy in (task, *(name for name in STRATEGIES if name != task))
        }
        for task in STRATEGIES
    }
    # keys that equal queries first attend to frames that resemble the dancer, without which one seed of three had not
    # learned to attend to the dancer's room, or to its frames, after as many batches
    similar = {"keys_like_queries": True}
    chunks = {"policy.memory": "sat-pm-ph", "policy.keys_like_queries": True}
    configs["mvfo"]["rooms"] = changed(configs["mvfo"]["mvfo"], chunks)
    configs["mvfo"]["parity"] = changed(
        configs["mvfo"]["mvfo"],
        {
            "total_steps": 40 * RELEASE_EPOCH,
            "learner": SupervisedConfig(checkpoint_steps=RELEASE_EPOCH, validation_episodes=12_000),
            "policy": {"strategy": "mvfo", "initialisation": "release", "time_index": "slot"},
        },
    )
    configs["mvfo"]["mvfo-small"] = changed(
        configs["mvfo"]["mvfo"], {f"policy.{name}": step for name, step in THREE_STEPS.items()}
    )
    configs["mvfo"]["dnc-every-small"] = changed(configs["mvfo"]["mvfo"], small_dnc(preset, "every"))
    configs["four-tasks"] = allocations(ballet(preset, "MultiTask", 20_000, {}))
    # without the auxiliary target, the dancer's own dance, `sat-fifo` stays at the most frequent dance of the episode
    own = ballet(preset, "Next", 10_000, {"own_layers": 2})
    configs["next"] = {name: changed(own, {"policy.memory": name}) for name in ("t-fifo", "t-fifo+a", "sat-fifo")}
    # two layers for each of three reads: the dancer, the moves around that visit, the frames where they lead
    configs["next"]["t-fifo+a-deep"] = changed(configs["next"]["t-fifo+a"], {"policy.layers": 6})
    configs["opposite"] = {
        "sat-fifo": replace(configs["next"]["sat-fifo"], env="memenvs/RoomBallet-Opposite-v0"),
    }
    for size in (3, 4, 5):
        short = replace(ballet(preset, "ShortStay", 4000, {}), env_kwargs={"size": size})
        methods = {}
        for suffix, clock in (("", "mod32"), ("-step", "step")):  # as in the release; as in the paper
            for memory in ("sat-fifo", "sat-fifo-th", "sat-pm-ph"):
                # all frames with the step number: attention learns better without
                start = {} if (memory, clock) == ("sat-fifo", "step") else similar
                methods[memory + suffix] = {"policy": {"memory": memory, "time_index": clock, **start}}
        configs |= grid({f"shortstay-{size}": short}, methods)
    aba = ballet(preset, "ABA", 4000, {})
    configs["aba"] = {name: changed(aba, {"policy.memory": name}) for name in ("sat-fifo", "sat-pm")}
    return configs


def ballet(preset: RunConfig, task: str, steps: int, policy: dict[str, Any]) -> RunConfig:
    """A run in a Room Ballet."""
    return replace(preset, env=f"memenvs/RoomBallet-{task}-v0", total_steps=steps, policy=policy)


def allocations(config: RunConfig) -> dict[str, RunConfig]:
    """Settings of all four tasks at once: an allocator, room for all visits, small DNCs."""
    # exploration falls within a tenth of the run, and the reader does not learn from memories without the answer
    allocation = {"epsilon_end": 0.05, "epsilon_steps": 2000, "rate": 4.0, "only_kept": True}
    words = {"total_steps": 12_000, "policy.allocation.task_input": "text"}
    methods: dict[str, dict[str, Any]] = {
        "ama": {},
        "ama-all": {"policy.allocation.only_kept": False},  # as in the paper
        "ama-language": {**words, "policy.allocation.split": 0},
        "ama-language-split1": {**words, "policy.allocation.split": 1},
        "ama-language-split2": {**words, "policy.allocation.split": 2},
        "ama-small": {"total_steps": 12_000, **{f"policy.{name}": step for name, step in THREE_STEPS.items()}},
        "unlimited": {"policy": {"capacity": None}},
        **{f"dnc-{when}-small": small_dnc(config, when) for when in ("first", "every")},
    }
    return grid({"": changed(config, {"policy": {"allocation": allocation}})}, methods)[""]


def small_dnc(config: RunConfig, when: str) -> dict[str, Any]:
    """Changes to a run that learns with a DNC for one core: a cell for each step."""
    dnc = {"cells": 54, "cell_dim": 64, "read_heads": 1, "links": False, "checkpoint": None}
    return {
        "total_steps": 3500,
        "learner": replace(config.learner, learning_rate=2e-3, warmup_steps=200),
        "policy": {"memory": f"dnc-{when}", "capacity": None, "dnc": dnc, **THREE_STEPS},
    }


def answers(played: Played) -> dict[str, Any]:
    """Right answers in new episodes, and those of the ideal observer of the same memory."""
    assert played.run is not None
    result: dict[str, Any] = played.config.make_experiment().evaluate(played.run, quiet=played.quiet)
    return result


def answers_in_rooms(rooms: int, played: Played) -> dict[str, Any] | None:
    """Right answers of `mvfo rooms` in another number of rooms."""
    if played.method != "rooms":
        return None
    assert played.run is not None
    model = trained_model(played.run, {"rooms": rooms})
    return evaluate_predictions(played.run, model, name=None, quiet=played.quiet)


def learning_curve(played: Played) -> dict[str, list[Any]]:
    """Accuracy in validation along a training, after batches and hours of training."""
    assert played.run is not None
    metrics = played.run.metrics()
    batches, accuracy = zip(*metrics["validation/accuracy"], strict=True)
    hours = np.cumsum([seconds for _, seconds in metrics["time/seconds"]]) / 3600
    return {"batches": list(batches), "hours": hours.tolist(), "accuracy": list(accuracy)}


@torch.no_grad()
def attention_by_room(played: Played, episodes: int = 500) -> list[Any] | None:
    """Attention of each layer to each room, for questions about each room of Opposite Ballet.

    Args:
        played: The run.
        episodes: Number of episodes.

    Returns:
        (layers, queried rooms, attended rooms); rows sum to 1.
    """
    if played.task != "opposite":
        return None
    assert played.run is not None
    prediction = trained_model(played.run)
    assert isinstance(prediction, SATPrediction)
    model = prediction.model
    assert isinstance(model, BalletModel) and isinstance(model.reader, MemoryReader)
    batch = model.task.sample_batch(episodes, np.random.default_rng(1))
    query, tokens, _ = model.reader_inputs(batch)
    weights = model.reader.attention(query, tokens)[:, :, 0].cpu()  # (layers, B, T)
    steps, _ = model.steps_read(batch)
    places = torch.from_numpy(np.take_along_axis(batch.places, steps, 1))  # (B, T)
    by_room = torch.zeros(*weights.shape[:2], model.task.n_places)
    by_room.scatter_add_(2, places.expand(len(weights), -1, -1), weights)  # (layers, B, rooms)
    queried = torch.from_numpy(batch.episodes.query_place.astype(np.int64))  # (B,)
    return [[layer[queried == room].mean(0).tolist() for room in range(model.task.n_places)] for layer in by_room]


def smoke(config: RunConfig) -> RunConfig:
    """Shorten a run to four batches of a small model."""
    changes = [("total_steps", 4), ("eval_trials", 40), ("policy.dim", 16), ("policy.layers", 2)]
    changes += [("policy.mlp_dim", 16), ("supervised.batch_size", 4), ("supervised.validation_episodes", 10)]
    return with_overrides(config, changes + [("policy.own_layers", 1)] * ("own_layers" in config.policy))


STUDY = Study(
    title="What to keep, and where it was",
    configs=make_configs(),
    evaluations={
        EVALUATION: answers,
        "curve": learning_curve,
        **{f"rooms_{rooms}": partial(answers_in_rooms, rooms) for rooms in ROOMS},
        "attention": attention_by_room,
    },
    tables=make_tables,
    figures={"room_ballet": draw},
    smoke=smoke,
)
