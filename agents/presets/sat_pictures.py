"""Preset of the Spatially-Aware Transformer (SAT) with memories of pictures."""

from __future__ import annotations

from typing import Any

from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.presets.preset import SEPARATOR, Preset, Variant

NAME = "sat-pictures"
_LEARNER = SupervisedConfig(
    batch_size=32,
    learning_rate=1.5e-3,
    final_learning_rate=0.0,
    warmup_steps=200,
    validation_episodes=64,
    checkpoint_steps=500,
)
#: Drawn faces; a face takes 10 ms to draw, then it is kept.
_FACES = {"num_images": 2000}
#: Batches of a run, by table or task.
_STEPS = {"faces": 2500, "codes": 1250, "ballet3d": 6000, "colour": 2400, "view": 500}
#: Model of runs in FFHQ-world.
_FACE_MODEL: dict[str, Any] = {
    "memory": "sat-fifo",
    "convolutions": "components",
    "place_code": "learned2d",
    "place_layers": 2,
    "dim": 320,
    "mlp_dim": 320,
}


def _allocation(steps: int) -> dict[str, Any]:
    # exploration falls over half of a run
    return {"epsilon_end": 0.05, "epsilon_steps": steps // 2, "rate": 4.0}


def _places() -> dict[str, Variant]:
    """Memories without and with places, chunks of regions, and codes of places, in FFHQ-world."""
    no_places = {"policy.place_code": None}
    variants = {
        "t-fifo": Variant("FFHQ-world, memory without places", {"policy.memory": "t-fifo", **no_places}),
        "t-fifo+a": Variant("FFHQ-world, moves in place of places", {"policy.memory": "t-fifo+a", **no_places}),
        "sat-fifo": Variant("FFHQ-world, a place for each cell"),
    }
    for count in (8, 16, 32):
        variants[f"pm{count}"] = Variant(
            f"FFHQ-world, read in the best 4 chunks of 8 steps of {count} regions",
            {
                "policy.memory": "sat-pm-ph",
                "policy.flat_layers": 2,
                "policy.place_code": "learned1d",  # the mean of a chunk's codes differs from that of any other
                "env_kwargs.places": count,
            },
        )
    for code, what in (
        ("learned2d", "learned vectors of row and column"),
        ("sine2d", "sinusoids of row and column"),
        ("learned1d", "a learned vector for each cell"),
        ("sine1d", "a sinusoid of the number of the cell"),
    ):
        variants[code] = Variant(
            f"FFHQ-world, the published width of 128, code of places: {what}",
            {
                "policy.place_code": code,
                "policy.dim": 128,
                "policy.mlp_dim": 128,
                "total_steps": _STEPS["codes"],
            },
        )
    variants["moves"] = Variant(
        "FFHQ-world, queries are single moves as in the paper, and places are no auxiliary target",
        {"policy.move_query": "moves", "policy.place_layers": 0},
    )
    return variants


def _strategies(prefix: str, env: str, names: tuple[str, ...], overrides: dict[str, Any]) -> dict[str, Variant]:
    """Each strategy of a task, and an allocator that chooses."""
    steps = overrides["total_steps"]
    shared = {"env": f"memenvs/{env}-v0", **overrides}
    policy = shared.pop("policy", {})
    variants = {
        f"{prefix}-{name}": Variant(
            f"{env} with the strategy {name.upper()}", {**shared, "policy": {**policy, "strategy": name}}
        )
        for name in names
    }
    variants[f"{prefix}-ama"] = Variant(
        f"{env}, an allocator chooses the strategy", {**shared, "policy": {**policy, "allocation": _allocation(steps)}}
    )
    return variants


#: Of tasks with views, which draw pictures of their own.
_VIEWS: dict[str, Any] = {"env_kwargs": {}}
#: A quarter of ColorRecall's steps, so that four times as many tours can be drawn, and a square that convolutions which
#: do not learn can see.
_COLOUR = {"steps": [50, 50], "capacity": 50, "square_size": 32}
_FIXED = {"memory": "sat-fifo", "convolutions": "fixed"}
PICTURE_PRESETS: dict[str, Preset] = {
    NAME: Preset(
        "answer with pictures: patches of a face along a walk, from a memory that knows places (FFHQ-world)",
        RunConfig(
            env="memenvs/FFHQWorld-v0",
            env_kwargs=_FACES,
            total_steps=_STEPS["faces"],
            threads=1,
            learner=_LEARNER,
            policy=_FACE_MODEL,
            eval_trials=500,
            score="mse",
        ),
        {
            **_places(),
            **_strategies(
                "longstay",
                "FFHQWorld-LongStay",
                ("fifo", "mvfo"),
                {"total_steps": _STEPS["faces"], "policy": _FACE_MODEL},
            ),
            **_strategies(
                "ballet3d",
                "Ballet3D",
                ("fifo", "lifo", "lvfo", "mvfo"),
                {
                    **_VIEWS,
                    "policy": {"convolutions": "components"},
                    "total_steps": _STEPS["ballet3d"],
                    "eval_trials": 400,
                    "supervised.learning_rate": 1e-3,
                },
            ),
            **_strategies(
                "colour",
                "ColorRecall",
                ("fifo", "mvfo"),
                {
                    **_VIEWS,
                    "env_kwargs": _COLOUR,
                    "policy": _FIXED,
                    "total_steps": _STEPS["colour"],
                    "score": "accuracy",
                },
            ),
            **_strategies(
                "view",
                "ViewRecall",
                ("fifo", "mvfo"),
                {
                    **_VIEWS,
                    "policy": _FIXED,
                    "total_steps": _STEPS["view"],
                    "supervised.learning_rate": 1e-3,
                    "supervised.batch_size": 16,
                    "supervised.validation_episodes": 200,  # as the runs of results
                },
            ),
        },
    ),
}


def _of(*variants: str) -> list[str]:
    return [f"{NAME}{SEPARATOR}{variant}" for variant in variants]


#: Table -> names of its variants.
PICTURE_TABLES: dict[str, list[str]] = {
    "faces": _of("t-fifo", "t-fifo+a", "sat-fifo", "pm8", "pm16", "pm32"),
    "codes": _of("learned2d", "sine2d", "learned1d", "sine1d"),
    "longstay": _of("longstay-fifo", "longstay-mvfo", "longstay-ama"),
    "ballet3d": _of("ballet3d-fifo", "ballet3d-lifo", "ballet3d-lvfo", "ballet3d-mvfo", "ballet3d-ama"),
    "recall": _of("colour-fifo", "colour-mvfo", "colour-ama", "view-fifo", "view-mvfo", "view-ama"),
}


def smoke_config(config: RunConfig) -> RunConfig:
    """Shrink a run to seconds, for a smoke test."""
    overrides: list[tuple[str, Any]] = [
        ("total_steps", 2),
        ("eval_trials", 4),
        ("policy.dim", 16),
        ("policy.layers", 3),
        ("policy.mlp_dim", 16),
        ("supervised.batch_size", 2),
        ("supervised.validation_episodes", 2),
    ]
    if config.env.startswith("memenvs/FFHQWorld"):
        overrides.append(("env_kwargs.num_images", 4))
    if config.env.startswith("memenvs/Ballet3D"):  # others first see all views
        overrides.append(("policy.convolutions", "learned"))
    return with_overrides(config, overrides)
