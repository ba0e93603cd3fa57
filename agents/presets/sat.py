"""Presets of the Spatially-Aware Transformer's tables in Room Ballet; every run is data derived from a few bases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.experiments.config import RunConfig

#: For one core: calibrated weights let larger batches and a higher learning rate pay, which falls to 0.
_LAPTOP = SupervisedConfig(batch_size=64, learning_rate=1e-3, final_learning_rate=0.0, warmup_steps=500)
#: The release's: 101 epochs, a batch of 32 at a time.
RELEASE_EPOCH = 3375
_RELEASE = SupervisedConfig(checkpoint_steps=RELEASE_EPOCH, validation_episodes=12_000)
RELEASE_STEPS = 101 * RELEASE_EPOCH


def _base(
    task: str, steps: int, policy: dict[str, Any], supervised: SupervisedConfig = _LAPTOP, **more: Any
) -> RunConfig:
    """A run in a Room Ballet: evaluated in 12,000 episodes, as many as the release's evaluation set has."""
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


#: Those of `memenvs.retention`, which takes numba's time to import.
_STRATEGIES = ("fifo", "lifo", "lvfo", "mvfo")

#: Batches in which every task is learned with its strategy, about three minutes of a core.
_STEPS = 5000

BALLET_PRESETS: dict[str, tuple[str, RunConfig]] = {}

for _task in _STRATEGIES:
    for _strategy in _STRATEGIES:
        _matching = _task == _strategy
        BALLET_PRESETS[f"ballet-{_task}" if _matching else f"ballet-{_task}-{_strategy}"] = (
            f"Ballet-{_task.upper()} with the strategy {_strategy.upper()}" + ", which solves it" * _matching,
            _base(_task.upper(), _STEPS, {"strategy": _strategy}),
        )
# Without `own_layers` sat-fifo stays at 30 %, the most frequent dance of the episode, in 12,500 batches of Next Ballet.
for _memory in ("t-fifo", "t-fifo+a", "sat-fifo"):
    BALLET_PRESETS[f"ballet-next-{_memory}"] = (
        f"Next Ballet with the memory {_memory}; the dancer's own dance is learned along",
        _base("Next", 10_000, {"memory": _memory, "own_layers": 2}),
    )
#: Without it one of three seeds has not learned to open the dancer's room, or to look at its frames, after as many batches. With the number of the
#: step as clock a reader of all frames learns better without.
_ALIKE = {"keys_like_queries": True}
for _memory in ("sat-fifo", "sat-fifo-th", "sat-pm-ph"):
    for _size in (3, 4, 5):
        BALLET_PRESETS[f"ballet-shortstay-{_size}-{_memory}"] = (
            f"Short Stay in {_size} x {_size} rooms with the memory {_memory}, whose clock is that of the dances (mod 32), as in the release",
            _base("ShortStay", 4000, {"memory": _memory, "time_index": "mod32", **_ALIKE}, env_kwargs={"size": _size}),
        )
        BALLET_PRESETS[f"ballet-shortstay-{_size}-{_memory}-step"] = (
            f"the same with the number of the step as clock, as in the article: Short Stay in {_size} x {_size} rooms, {_memory}",
            _base(
                "ShortStay",
                4000,
                {"memory": _memory, "time_index": "step", **({} if _memory == "sat-fifo" else _ALIKE)},
                env_kwargs={"size": _size},
            ),
        )
for _memory in ("sat-fifo", "sat-pm"):
    BALLET_PRESETS[f"ballet-aba-{_memory}"] = (
        f"Ballet-ABA with the memory {_memory}",
        _base("ABA", 4000, {"memory": _memory}),
    )
BALLET_PRESETS["ballet-opposite"] = (
    "Opposite Ballet with sat-fifo, whose attention can be drawn; the dancer's own dance is learned along",
    _base("Opposite", 10_000, {"memory": "sat-fifo", "own_layers": 2}),
)
#: Batches for four tasks at once: after 12,000 one seed of three had 98.6 %.
_ALLOCATION_STEPS = 20_000
#: Exploration for one core: it falls in a tenth of the run, and the reader does not learn from memories that cannot tell.
_ALLOCATION = {"epsilon_end": 0.05, "epsilon_steps": 2000, "rate": 4.0, "only_kept": True}
BALLET_PRESETS["ballet-ama"] = (
    "all four tasks, the strategy chosen by an allocator that is told the task",
    _base("MultiTask", _ALLOCATION_STEPS, {"allocation": _ALLOCATION}),
)
BALLET_PRESETS["ballet-ama-all"] = (
    "the same, its answers learned from all episodes, also those whose memory cannot tell, as in the article",
    _base("MultiTask", _ALLOCATION_STEPS, {"allocation": {**_ALLOCATION, "only_kept": False}}),
)
for _split in range(3):
    BALLET_PRESETS["ballet-ama-language" + (f"-split{_split}" if _split else "")] = (
        f"all four tasks, the allocator is told them in words; descriptions of split {_split} are held out",
        _base(
            "MultiTask",
            12_000,  # most of what is lost with new sentences is lost by the choice
            {"allocation": {**_ALLOCATION, "task_input": "text", "split": _split}},
        ),
    )
BALLET_PRESETS["ballet-ama-parity"] = (
    "all four tasks with an allocator as in the release: its weights at the start, times by slot, exploration over 200,000 batches",
    _base("MultiTask", RELEASE_STEPS, {"initialisation": "release", "time_index": "slot", "allocation": {}}, _RELEASE),
)
BALLET_PRESETS["ballet-unlimited"] = (
    "all four tasks with room for all 18 visits",
    _base("MultiTask", _ALLOCATION_STEPS, {"capacity": None}),
)
BALLET_PRESETS["ballet-rooms"] = (
    "Ballet-MVFO in 8 rooms, read by the best 4 chunks of places; evaluate with --eval_kwargs.rooms 4 to 12",
    _base("MVFO", 5000, {"memory": "sat-pm-ph", "strategy": "mvfo", **_ALIKE}),
)
BALLET_PRESETS["ballet-parity"] = (
    "Ballet-MVFO with the strategy MVFO as in the release: its weights at the start, times by slot, constant learning rate; 40 of its 101 epochs",
    _base(
        "MVFO", 40 * RELEASE_EPOCH, {"strategy": "mvfo", "initialisation": "release", "time_index": "slot"}, _RELEASE
    ),
)
#: Small enough for a DNC on one core: three steps of a visit, after 5, 10 and 15 moves, 54 in all, and as many cells.
_SMALL = {"first": 20, "every": 5}
_SMALL_DNC = {"cells": 54, "cell_dim": 64, "read_heads": 1, "links": False, "checkpoint": None}
for _on in ("first", "every"):
    _when = "at the beginning" if _on == "first" else "at every step"
    BALLET_PRESETS[f"ballet-dnc-{_on}"] = (
        f"all four tasks with a DNC of 288 cells that is told the task {_when}; on one core half a minute for a batch",
        _base(
            "MultiTask",
            4000,
            {"memory": f"dnc-{_on}", "capacity": None},
            SupervisedConfig(learning_rate=5e-4, final_learning_rate=0.0),
        ),
    )
    BALLET_PRESETS[f"ballet-dnc-{_on}-small"] = (
        f"all four tasks, three steps of a visit, with a DNC of 54 cells of 64 numbers, one read head and no links that is told the task {_when}",
        _base(
            "MultiTask",
            3500,
            {"memory": f"dnc-{_on}", "capacity": None, "dnc": _SMALL_DNC, **_SMALL},
            replace(_LAPTOP, learning_rate=2e-3, warmup_steps=200),
        ),
    )
BALLET_PRESETS["ballet-ama-small"] = (
    "all four tasks, three steps of a visit, with an allocator: what the small DNC is compared with",
    _base("MultiTask", 12_000, {"allocation": _ALLOCATION, **_SMALL}),
)
BALLET_PRESETS["ballet-smoke"] = (
    "Ballet-FIFO for seconds, which only shows that everything runs",
    replace(
        _base(
            "FIFO",
            20,
            {"strategy": "fifo", "dim": 32, "layers": 1, "mlp_dim": 32},
            SupervisedConfig(batch_size=8, validation_episodes=50, checkpoint_steps=10),
        ),
        eval_trials=100,
    ),
)
