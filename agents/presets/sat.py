"""Presets of the Spatially-Aware Transformer (SAT) in Room Ballet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.presets.preset import Preset, Variant

#: For one core. Calibrated initial weights let a larger batch and a higher learning rate, which decays to 0, pay off.
_LAPTOP = SupervisedConfig(batch_size=64, learning_rate=1e-3, final_learning_rate=0.0, warmup_steps=500)
#: Batches of 32 in an epoch of the release, which has 101 epochs.
RELEASE_EPOCH = 3375
RELEASE_STEPS = 101 * RELEASE_EPOCH
_RELEASE = SupervisedConfig(checkpoint_steps=RELEASE_EPOCH, validation_episodes=12_000)


def _run(
    task: str, steps: int, policy: dict[str, Any], supervised: SupervisedConfig = _LAPTOP, **more: Any
) -> RunConfig:
    """A run in a Room Ballet, evaluated in 12,000 episodes, the number in the release's evaluation set."""
    return RunConfig(
        env=f"memenvs/RoomBallet-{task}-v0",
        total_steps=steps,
        threads=1,
        learner=supervised,
        policy=policy,
        eval_trials=12_000,
        score="accuracy",
        **more,
    )


#: As in `memenvs.retention`, which is not imported here because it imports numba, which takes time.
_STRATEGIES = ("fifo", "lifo", "lvfo", "mvfo")
#: For Short Stay. Without it, one of three seeds had not learned to attend to the dancer's room, or to its frames,
#: after the same number of batches. The exception is a reader of all frames whose time code encodes the step number:
#: it learns better without.
_KEYS_LIKE_QUERIES = {"keys_like_queries": True}

_PARITY = Variant(
    "as in the release: its initial weights, times by slot, constant learning rate; 40 of its 101 epochs",
    {
        "total_steps": 40 * RELEASE_EPOCH,
        "learner": _RELEASE,
        "policy.initialisation": "release",
        "policy.time_index": "slot",
    },
)
_ROOMS = Variant(
    "8 rooms, read by the best 4 chunks of places; evaluate with --env_kwargs.rooms 4 to 12",
    {"policy.memory": "sat-pm-ph", "policy.keys_like_queries": True},
)


def _strategies(task: str) -> Preset:
    """A task with the strategy that solves it, and with each of the others."""
    others = {
        strategy: Variant(f"the strategy {strategy.upper()}", {"policy.strategy": strategy})
        for strategy in _STRATEGIES
        if strategy != task
    }
    return Preset(
        f"Ballet-{task.upper()} with the strategy {task.upper()}, which solves it",
        _run(
            task.upper(), 5000, {"strategy": task}
        ),  # every task is learned after 5000 batches, three minutes of a core
        {**others, **({"rooms": _ROOMS, "parity": _PARITY} if task == "mvfo" else {})},
    )


def _short_stay() -> dict[str, Variant]:
    """Three sizes, three memories, and two time codes: of the step modulo 32 (release), or of the step (paper)."""
    variants = {}
    for suffix, time_index, source in (
        ("", "mod32", "the step modulo 32, as in the release"),
        ("-step", "step", "the step number"),
    ):
        for size in (3, 4, 5):
            for memory in ("sat-fifo", "sat-fifo-th", "sat-pm-ph"):
                policy: dict[str, Any] = {"memory": memory, "time_index": time_index}
                if memory != "sat-fifo" or suffix == "":
                    policy |= _KEYS_LIKE_QUERIES
                variants[f"{size}-{memory}{suffix}"] = Variant(
                    f"{size} x {size} rooms, memory {memory}, time code of {source}",
                    {"env_kwargs.size": size, "policy": policy},
                )
    return variants


#: Batches for four tasks at once: after 12,000 one seed of three had 98.6 %.
_ALLOCATION_STEPS = 20_000
#: Exploration for one core: it falls within a tenth of the run, and the reader does not learn from memories without the
#: answer.
_ALLOCATION = {"epsilon_end": 0.05, "epsilon_steps": 2000, "rate": 4.0, "only_kept": True}
#: Small enough for a DNC on one core: it reads steps 20, 25 and 30 of each of the 18 visits, 54 in all, and has as
#: many cells.
_SMALL = {"first": 20, "every": 5}
_SMALL_DNC = {"cells": 54, "cell_dim": 64, "read_heads": 1, "links": False, "checkpoint": None}


def _language(split: int) -> Variant:
    """The allocator reads the task in words; most errors then come from new sentences, so 12,000 batches are enough."""
    return Variant(
        f"the allocator reads the task in words; descriptions of split {split} are held out",
        {"total_steps": 12_000, "policy.allocation.task_input": "text", "policy.allocation.split": split},
    )


def _dnc() -> dict[str, Variant]:
    """DNCs that get the task at the first step only or at every step, in two sizes."""
    variants = {}
    for memory, when in (("first", "at the first step"), ("every", "at every step")):
        variants[memory] = Variant(
            f"the task is an input {when}; on one core half a minute for a batch", {"policy.memory": f"dnc-{memory}"}
        )
        variants[f"{memory}-small"] = Variant(
            f"the task is an input {when}; three steps of a visit, 54 cells of 64 numbers, one read head, no links",
            {
                "total_steps": 3500,
                "learner": replace(_LAPTOP, learning_rate=2e-3, warmup_steps=200),
                "policy": {"memory": f"dnc-{memory}", "capacity": None, "dnc": _SMALL_DNC, **_SMALL},
            },
        )
    return variants


SAT_PRESETS: dict[str, Preset] = {
    **{f"ballet-{task}": _strategies(task) for task in _STRATEGIES},
    # Without `own_layers` sat-fifo stays at 30 %, the most frequent dance of the episode, in 12,500 batches of Next
    # Ballet.
    "ballet-next": Preset(
        "Next Ballet with sat-fifo; the dancer's own dance is an auxiliary target",
        _run("Next", 10_000, {"memory": "sat-fifo", "own_layers": 2}),
        {
            memory: Variant(f"the memory {memory}", {"policy.memory": memory})
            for memory in ("t-fifo", "t-fifo+a", "sat-fifo")
        },
    ),
    "ballet-opposite": Preset(
        "Opposite Ballet with sat-fifo, whose attention can be drawn; the dancer's own dance is an auxiliary target",
        _run("Opposite", 10_000, {"memory": "sat-fifo", "own_layers": 2}),
    ),
    "ballet-shortstay": Preset(
        "Short Stay in 3 x 3 rooms with sat-fifo, time code of the step modulo 32",
        _run(
            "ShortStay",
            4000,
            {"memory": "sat-fifo", "time_index": "mod32", **_KEYS_LIKE_QUERIES},
            env_kwargs={"size": 3},
        ),
        _short_stay(),
    ),
    "ballet-aba": Preset(
        "Ballet-ABA with sat-pm, which has a quota for each place",
        _run("ABA", 4000, {"memory": "sat-pm"}),
        {memory: Variant(f"the memory {memory}", {"policy.memory": memory}) for memory in ("sat-fifo", "sat-pm")},
    ),
    "ballet-ama": Preset(
        "all four tasks; an allocator, which gets the task as input, chooses the strategy",
        _run("MultiTask", _ALLOCATION_STEPS, {"allocation": _ALLOCATION}),
        {
            "all": Variant(
                "answers are learned from all episodes, also where the memory lacks the answer, as in the paper",
                {"policy.allocation.only_kept": False},
            ),
            **{f"language{f'-split{split}' * (split > 0)}": _language(split) for split in range(3)},
            "parity": Variant(
                "as in the release: its initial weights, times by slot, exploration over 200,000 batches",
                {
                    "total_steps": RELEASE_STEPS,
                    "learner": _RELEASE,
                    "policy": {"initialisation": "release", "time_index": "slot", "allocation": {}},
                },
            ),
            "small": Variant(
                "three steps of a visit: the counterpart of the small DNC",
                {"total_steps": 12_000, "policy.first": _SMALL["first"], "policy.every": _SMALL["every"]},
            ),
        },
    ),
    "ballet-unlimited": Preset(
        "all four tasks with room for all 18 visits", _run("MultiTask", _ALLOCATION_STEPS, {"capacity": None})
    ),
    "ballet-dnc": Preset(
        "all four tasks with a DNC of 288 cells; the task is an input at every step",
        _run(
            "MultiTask",
            4000,
            {"memory": "dnc-every", "capacity": None},
            SupervisedConfig(learning_rate=5e-4, final_learning_rate=0.0),
        ),
        _dnc(),
    ),
    "ballet-smoke": Preset(
        "Ballet-FIFO in seconds, which only shows that everything runs",
        replace(
            _run(
                "FIFO",
                20,
                {"strategy": "fifo", "dim": 32, "layers": 1, "mlp_dim": 32},
                SupervisedConfig(batch_size=8, validation_episodes=50, checkpoint_steps=10),
            ),
            eval_trials=100,
        ),
        time="seconds",
    ),
}

#: Table -> names of its presets and variants.
TABLES: dict[str, list[str]] = {
    "strategies": [
        *(f"ballet-{task}" + f":{strategy}" * (task != strategy) for task in _STRATEGIES for strategy in _STRATEGIES),
        "ballet-ama",
        "ballet-ama:all",
    ],
    "next": [f"ballet-next:{memory}" for memory in ("t-fifo", "t-fifo+a", "sat-fifo")],
    "shortstay": [f"ballet-shortstay:{variant}" for variant in SAT_PRESETS["ballet-shortstay"].variants],
    "language": ["ballet-ama:language", "ballet-ama:language-split1", "ballet-ama:language-split2"],
    "aba": ["ballet-aba:sat-fifo", "ballet-aba:sat-pm"],
    "rooms": ["ballet-mvfo:rooms"],
    "unlimited": ["ballet-ama", "ballet-unlimited"],
    "dnc": ["ballet-ama:small", "ballet-dnc:first-small", "ballet-dnc:every-small"],
    "opposite": ["ballet-opposite"],
    "parity": ["ballet-mvfo:parity"],
}


def smoke_config(config: RunConfig) -> RunConfig:
    """Shrink a run to seconds, for a smoke test."""
    overrides: list[tuple[str, Any]] = [
        ("total_steps", 4),
        ("eval_trials", 40),
        ("policy.dim", 16),
        ("policy.layers", 2),
        ("policy.mlp_dim", 16),
        ("supervised.batch_size", 4),
        ("supervised.validation_episodes", 10),
    ]
    if "own_layers" in config.policy:
        overrides.append(("policy.own_layers", 1))
    return with_overrides(config, overrides)
