"""Presets: complete settings of runs, as data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.presets.mtvm import VLN_PRESETS
from memenvs.agents.presets.sat import BALLET_PRESETS
from memenvs.agents.presets.smt import SMT_PRESETS
from memenvs.checks import choices_for


def _relic(layers: int, heads: int, dim: int, mlp_dim: int, sink: str, steps: int, **more: Any) -> dict[str, Any]:
    """Policy settings of a ReLIC memory."""
    memory = {
        "layers": layers,
        "heads": heads,
        "dim": dim,
        "mlp_dim": mlp_dim,
        "sink": sink,
        "max_episode_steps": steps,
    }
    return {"memory": "relic", "memory_kwargs": {**memory, **more}}


def _darkroom(size: int, horizon: int, episodes: int) -> dict[str, Any]:
    """Fields that all Darkroom runs share: goals of the training split, evaluated on the held-out ones."""
    return {
        "env": "memenvs/Darkroom-v0",
        "env_kwargs": {"size": size, "max_episode_steps": horizon, "trial_episodes": None},
        "eval_kwargs": {"split": "test"},
        "eval_all_layouts": True,
        "eval_steps": episodes * horizon,
    }


#: Fields that all FourBoxes runs share: trials in turn for each of the four boxes, 20 episodes long.
_FOUR_BOXES: dict[str, Any] = {
    "env": "memenvs/FourBoxes-v0",
    "env_kwargs": {"trial_episodes": None},
    "eval_all_layouts": True,
    "eval_steps": 1000,
    "eval_trials": 100,
}

Changes = list[tuple[str, Any]]
"""What a preset has otherwise than another one, as `with_overrides` takes it."""


def _derived(base: str, changes: dict[str, tuple[str, Changes]]) -> dict[str, tuple[str, RunConfig]]:
    """Presets that are another one with some changes."""
    return {name: (what, with_overrides(PRESETS[base][1], pairs)) for name, (what, pairs) in changes.items()}


def _baselines(base: str, chunk: int, rl2: Changes) -> dict[str, tuple[str, RunConfig]]:
    """What ReLIC is compared with: the same observations, environment steps and evaluation, other memories.

    Args:
        base: Preset with a ReLIC memory whose rollouts are whole trials.
        chunk: Steps between two updates of the memories that are carried on from rollout to rollout within a trial; divides the trial.
        rl2: Further changes for RL2.

    Source:
        ReLIC, section on baselines, without the defects of its release: trials advance, the memory is emptied where they do, and
        gradient passes see the memory that acting saw.
    """
    config = PRESETS[base][1]
    memory, trial = config.policy["memory_kwargs"], config.learner.n_steps
    sizes = {key: memory[key] for key in ("layers", "heads", "dim", "mlp_dim")}
    carried: Changes = [
        ("env_kwargs.trial_steps", trial),
        ("eval_kwargs.trial_steps", None),
        ("ppo.n_updates", 1),
        ("ppo.n_steps", chunk),
        ("ppo.reset_each_rollout", False),
        (
            "checkpoint_rollouts",
            config.checkpoint_rollouts * trial // chunk,
        ),  # only between trials a run resumes exactly
    ]
    lstm: Changes = [
        ("policy.memory", "lstm"),
        ("policy.memory_kwargs", {"hidden_dim": 2 * memory["dim"], "layers": 2}),
    ]
    xl = {**sizes, "memory_length": chunk, "dropout": memory.get("depth_dropout", 0.1)}
    alone: Changes = [("policy.memory_kwargs.inter_episode", False)]
    return _derived(
        base,
        {
            f"{base}-rl2": (
                "RL2: two LSTM layers over the trial, credit across its episodes",
                [*carried, *lstm, ("ppo.credit_across_episodes", True), *rl2],
            ),
            f"{base}-trxl": (
                "Transformer-XL over the trial, hidden states of the chunk before as its memory",
                [*carried, ("policy.memory", "trxl"), ("policy.memory_kwargs", xl)],
            ),
            f"{base}-no-iea": ("ReLIC without attention to earlier episodes", alone),
            f"{base}-transformer-se": (
                "a transformer for single episodes, each in a layout of its own; learns from every step once",
                [
                    *alone,
                    ("env_kwargs.trial_episodes", 1),
                    ("eval_kwargs.trial_episodes", None),
                    ("ppo.full_update", False),
                    ("ppo.shuffle_episodes", False),
                ],
            ),
        },
    )


#: Those of `memenvs.agents.memory.relic`, which takes torch's time to import.
_SINKS = ("none", "token", "k0v0", "kv0", "k0v", "kv")


def _ablations(base: str) -> dict[str, tuple[str, RunConfig]]:
    """A preset with a ReLIC memory without one of its parts, or with another sink."""
    own = PRESETS[base][1].policy["memory_kwargs"]["sink"]
    sinks = {
        f"{base}-sink-{sink}": (f"ReLIC with sink {sink!r}", [("policy.memory_kwargs.sink", sink)])
        for sink in _SINKS
        if sink != own
    }
    return _derived(
        base,
        {
            f"{base}-k1": ("ReLIC without partial updates", [("ppo.n_updates", 1)]),
            f"{base}-no-shuffle": (
                "ReLIC with episodes in the order they were played",
                [("ppo.shuffle_episodes", False)],
            ),
            **sinks,
        },
    )


_RELIC_ENCODER = {"features_extractor_kwargs": {"widths": {"goal": 256, "gps": 32}}, "previous_action_dim": 256}
_TINY = _relic(2, 8, 64, 256, "k0v0", 128)
#: Ten micro-batch gradients are averaged here, so the release's clip of 0.2 on their sum is 0.02, and its epsilon a tenth.
_RELEASE = PPOConfig(learning_rate=2e-4, final_learning_rate=1e-5, max_grad_norm=0.02)
#: For small networks and few steps: a larger step, and advantages and values on scales that leave the entropy its part. Returns of the
#: Darkroom reach 90: unscaled advantages drown the entropy, and a value that may move by 0.2 at a time never gets there.
_LAPTOP = PPOConfig(learning_rate=1e-3, final_learning_rate=1e-4, normalize_advantage=True, clip_range_vf=None)

#: Apples and oranges are seen from 2 m at most, so that looking for them takes longer than the 64 steps of most episodes, and going back does
#: not; with turns of 45 degrees and a compass a network learns to walk within a few hundred thousand steps.
_SMALL_HOMES = {
    "obs_mode": "symbolic",
    "split": "train",
    "rooms": [3, 4],
    "num_objects": [2, 2],
    "categories": ["013_apple", "017_orange"],
    "turn_deg": 45.0,
    "compass": True,
    "max_episode_steps": 64,
}

PRESETS: dict[str, tuple[str, RunConfig]] = {
    "demo": (
        "a 5 x 5 Darkroom in minutes on a laptop: goes straight to the goal from the second episode on",
        RunConfig(
            **_darkroom(5, 25, 10),
            total_steps=400_000,
            threads=1,
            learner=replace(_LAPTOP, n_steps=125, n_updates=5, batch_size=16, prefix_grad="detach", vf_coef=0.02),
            policy={
                **_relic(2, 2, 64, 256, "k0v0", 128, depth_dropout=0.0),
                "features_extractor_kwargs": {"scaled": ["position"]},
            },
            eval_trials=100,
        ),
    ),
    "ci-smoke": (
        "a 4 x 4 Darkroom that only shows that everything runs",
        RunConfig(
            **_darkroom(4, 16, 6),
            n_envs=8,
            total_steps=4096,
            threads=1,
            learner=PPOConfig(n_steps=128, n_updates=4, batch_size=8, learning_rate=1e-3),
            policy=_relic(1, 2, 32, 64, "k0v0", 128),
            eval_trials=8,
            checkpoint_rollouts=1,
        ),
    ),
    "darkroom": (
        "the 10 x 10 Darkroom for two cores: T = 500, K = 5, prefix detached in partial updates",
        RunConfig(
            **_darkroom(10, 100, 10),
            total_steps=4_000_000,
            threads=1,
            learner=replace(_LAPTOP, n_steps=500, n_updates=5, batch_size=16, prefix_grad="detach", vf_coef=0.005),
            policy={
                **_relic(2, 2, 64, 256, "k0v0", 128, depth_dropout=0.0),
                "features_extractor_kwargs": {"scaled": ["position"]},
            },
            eval_trials=100,
        ),
    ),
    "relic-darkroom": (
        "the article's Darkroom: T = 512, K = 4, fixed zero sink (environments, steps and warm-up are our choice)",
        RunConfig(
            **_darkroom(10, 100, 40),
            total_steps=10_000_000,
            learner=replace(_RELEASE, n_steps=512, n_updates=4, batch_size=16, warmup_steps=10_000, max_grad_norm=0.05),
            policy=_TINY,
            eval_trials=100,
        ),
    ),
    "relic-darkroom-example": (
        "the public example: T = 4096, K = 16, learned sink, 8 environments",
        RunConfig(
            **_darkroom(10, 100, 40),
            n_envs=8,
            total_steps=5_000_000,
            learner=replace(
                _RELEASE, n_steps=4096, n_updates=16, batch_size=4, warmup_steps=10_000, max_grad_norm=0.05
            ),
            policy=_relic(2, 8, 64, 256, "kv", 128, depth_dropout=0.0),
            eval_trials=100,
        ),
    ),
    "fourboxes": (
        "FourBoxes for one core, T = 500, K = 5, prefix detached in partial updates",
        RunConfig(
            **_FOUR_BOXES,
            total_steps=1_500_000,
            threads=1,
            # Few images at once: the outputs of their convolutions then stay in the processor's cache.
            learner=replace(
                _LAPTOP,
                n_steps=500,
                n_updates=5,
                batch_size=8,
                micro_batch_tokens=2000,
                prefix_grad="detach",
                vf_coef=0.005,
            ),
            policy={
                **_relic(2, 2, 64, 256, "k0v0", 64, depth_dropout=0.0),
                "features_extractor_kwargs": {"image_dim": 64},
            },
        ),
    ),
    "relic-miniworld": (
        "the article's Miniworld: T = 512, K = 2, images encoded to 8 features (steps are our choice)",
        RunConfig(
            **_FOUR_BOXES,
            total_steps=10_000_000,
            learner=replace(_RELEASE, n_steps=512, n_updates=2, batch_size=16, warmup_steps=10_000, max_grad_norm=0.05),
            policy={**_relic(2, 8, 64, 256, "k0v0", 64), "features_extractor_kwargs": {"image_dim": 8}},
        ),
    ),
    "extobjnav": (
        "ExtObjNav with symbolic sight: T = 4096, K = 16, the article's network",
        RunConfig(
            env="memenvs/ExtObjNav-v0",
            env_kwargs={"obs_mode": "symbolic", "split": "train"},
            n_envs=80,
            total_steps=500_000_000,
            learner=replace(_RELEASE, n_steps=4096, n_updates=16, batch_size=10, warmup_steps=100_000),
            policy={**_relic(4, 8, 256, 1024, "kv0", 511, cache_dtype="bfloat16"), **_RELIC_ENCODER, "adam_eps": 1e-6},
            eval_kwargs={"split": "validation", "trial_steps": None},
            eval_steps=8200,
            eval_trials=80,
            score="success",
            checkpoint_rollouts=1,
        ),
    ),
    "extobjnav-small": (
        "ExtObjNav in homes of 3-4 rooms with two fruits, symbolic sight and a compass, for one core: T = 512, K = 4",
        RunConfig(
            env="memenvs/ExtObjNav-v0",
            env_kwargs=_SMALL_HOMES,
            total_steps=6_000_000,
            threads=1,
            learner=replace(_LAPTOP, n_steps=512, n_updates=4, batch_size=16, prefix_grad="detach", vf_coef=0.25),
            policy={
                # rope_base: with 1e4 agents forget in trials longer than those they learned from (see ARCHITECTURE.md)
                **_relic(2, 4, 64, 256, "k0v0", 64, depth_dropout=0.0, rope_base=1e16),
                "features_extractor_kwargs": {"widths": {"goal": 32, "gps": 32, "symbolic": 128}},
                "previous_action_dim": 32,
            },
            eval_kwargs={"split": "validation", "trial_steps": None},
            eval_steps=1024,
            eval_trials=512,
            score="success",
            milestones=3,
        ),
    ),
}

PRESETS |= _derived(
    "extobjnav",
    {
        "relic-hssd": ("the article's longest run: as extobjnav for 1e9 steps", [("total_steps", 1_000_000_000)]),
        "relic-replicacad": (
            "the article's ablations in small homes: T = 4096, K = 4",
            [("env_kwargs.rooms", [2, 4]), ("ppo.n_updates", 4)],
        ),
        "relic-64k": (
            "trials of 65,536 steps, an update every 256; the prefix detached in partial updates",
            [
                ("total_steps", 1_000_000_000),
                ("env_kwargs.trial_steps", 65_536),
                ("ppo.n_steps", 65_536),
                ("ppo.n_updates", 256),
                ("ppo.prefix_grad", "detach"),
                ("eval_steps", 65_536),
            ],
        ),
    },
)
PRESETS |= _baselines("darkroom", 250, []) | _ablations("darkroom")
PRESETS |= _baselines(
    "extobjnav",
    256,
    [
        ("ppo.learning_rate", 2.5e-4),
        ("ppo.batch_size", 40),
        ("ppo.max_grad_norm", 0.2),  # two mini-batches: nothing is added up here
        ("policy.adam_eps", 1e-5),
        ("policy.previous_action_dim", 512),
        ("policy.features_extractor_kwargs.widths.goal", 512),
    ],
)
PRESETS |= _ablations("relic-replicacad")
PRESETS |= _baselines("extobjnav-small", 128, []) | _ablations("extobjnav-small")
PRESETS |= _derived(
    "extobjnav-small",
    {
        "extobjnav-small-rgb": (
            "extobjnav-small with pictures of 128 x 128 through the frozen encoder, for half an hour of one core",
            [
                ("total_steps", 9 * 64 * 512),
                ("checkpoint_rollouts", 1),  # two minutes each
                ("eval_trials", 128),
                ("env_kwargs.obs_mode", "rgb"),
                ("env_kwargs.image_size", [128, 128]),
                ("env_kwargs.encoder", "cnn"),
                ("policy.features_extractor_kwargs.widths", {"goal": 32, "gps": 32, "visual": 128}),
                ("policy.features_extractor_kwargs.rectified", ["visual"]),
            ],
        )
    },
)
PRESETS |= SMT_PRESETS | BALLET_PRESETS | VLN_PRESETS


def find_preset(name: str) -> RunConfig:
    """The settings of a preset.

    Raises:
        ValueError: No such preset; the message has the nearest names.
    """
    if name not in PRESETS:
        raise ValueError(
            f"unknown preset {name!r}; {choices_for(name, PRESETS)}; `python -m memenvs.agents presets` lists all"
        )
    return PRESETS[name][1]
