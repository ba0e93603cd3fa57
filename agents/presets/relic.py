"""Presets of ReLIC, in-context reinforcement learning over the episodes of a trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.policies.small_sizes import SMALL
from memenvs.agents.presets.preset import Preset


def _relic(layers: int, heads: int, dim: int, mlp_dim: int, sink: str, steps: int, **more: Any) -> dict[str, Any]:
    """Policy settings with a ReLIC memory for episodes of at most `steps` steps."""
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
    """Settings of every Darkroom run: learn goals of the training split, evaluate on the held-out ones."""
    return {
        "env": "memenvs/Darkroom-v0",
        "env_kwargs": {"size": size, "max_episode_steps": horizon, "trial_episodes": None},
        "eval_kwargs": {"split": "test"},
        "eval_all_layouts": True,
        "eval_steps": episodes * horizon,
    }


_ENCODER = {"features_extractor_kwargs": {"widths": {"goal": 256, "gps": 32}}, "previous_action_dim": 256}
#: The release sums the gradients of ten micro-batches and clips the sum at 0.2. Here they are averaged. So the clip is
#: 0.02, and Adam's epsilon (`adam_eps` of the policy) a tenth of the release's.
_RELEASE = PPOConfig(learning_rate=2e-4, final_learning_rate=1e-5, max_grad_norm=0.02)
#: For small networks and few steps: a larger learning rate, normalised advantages,
#: and no clip of values. Returns of the Darkroom reach 90. Unscaled advantages of that size would outweigh the entropy,
#: and a value that may change by 0.2 in an update would never reach them.
_LAPTOP = PPOConfig(learning_rate=1e-3, final_learning_rate=1e-4, normalize_advantage=True, clip_range_vf=None)

_DARKROOM = RunConfig(
    **_darkroom(10, 100, 10),
    total_steps=4_000_000,
    threads=1,
    learner=replace(_LAPTOP, n_steps=500, n_updates=5, batch_size=16, prefix_grad="detach", vf_coef=0.005),
    policy={
        "memory": "relic",
        "memory_kwargs": {**SMALL["relic"], "max_episode_steps": 128},
        "features_extractor_kwargs": {"scaled": ["position"]},
    },
    eval_trials=100,
)
_DEMO = RunConfig(
    **_darkroom(5, 25, 10),
    total_steps=400_000,
    threads=1,
    learner=replace(_LAPTOP, n_steps=125, n_updates=5, batch_size=16, prefix_grad="detach", vf_coef=0.02),
    policy={
        "memory": "relic",
        "memory_kwargs": {**SMALL["relic"], "max_episode_steps": 128},
        "features_extractor_kwargs": {"scaled": ["position"]},
    },
    eval_trials=100,
)
_FOUR_BOXES = RunConfig(
    env="memenvs/FourBoxes-v0",
    env_kwargs={"trial_episodes": None},
    total_steps=1_500_000,
    threads=1,
    # few images at once: the outputs of their convolutions then stay in the processor's cache
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
        "memory": "relic",
        "memory_kwargs": {**SMALL["relic"], "max_episode_steps": 64},
        "features_extractor_kwargs": {"image_dim": 64},
    },
    eval_all_layouts=True,
    eval_steps=1000,
    eval_trials=100,
)
_EXTOBJNAV = RunConfig(
    env="memenvs/ExtObjNav-v0",
    env_kwargs={"obs_mode": "symbolic", "split": "train"},
    n_envs=80,
    eval_envs=80,
    total_steps=500_000_000,
    learner=replace(_RELEASE, n_steps=4096, n_updates=16, batch_size=10, warmup_steps=100_000),
    policy={**_relic(4, 8, 256, 1024, "kv0", 511, cache_dtype="bfloat16"), **_ENCODER, "adam_eps": 1e-6},
    eval_kwargs={"split": "test", "trial_steps": None},
    eval_steps=8200,
    eval_trials=80,
    score="success",
    checkpoint_rollouts=1,
)
_EXTOBJNAV_SMALL = RunConfig(
    env="memenvs/ExtObjNav-v0",
    # Apples and oranges are seen from 2 m at most, so that finding them takes longer than the 64 steps of most
    # episodes, and going back does not. With turns of 45 degrees and a compass a network learns to walk within a few
    # hundred thousand steps.
    env_kwargs={
        "obs_mode": "symbolic",
        "split": "train",
        "rooms": [3, 4],
        "num_objects": [2, 2],
        "categories": ["013_apple", "017_orange"],
        "turn_deg": 45.0,
        "compass": True,
        # what the shipped agent and the rows of studies/ext_objnav have learned from
        "gps_frame": "layout",
        "max_episode_steps": 64,
    },
    total_steps=6_000_000,
    threads=1,
    learner=replace(_LAPTOP, n_steps=512, n_updates=4, batch_size=16, prefix_grad="detach", vf_coef=0.25),
    policy={
        # rope_base: with 1e4 agents forget in trials longer than those they learned from
        **_relic(2, 4, 64, 256, "k0v0", 64, depth_dropout=0.0, rope_base=1e16),
        "features_extractor_kwargs": {"widths": {"goal": 32, "gps": 32, "symbolic": 128}},
        "previous_action_dim": 32,
    },
    eval_kwargs={"split": "test", "trial_steps": None},
    eval_steps=1024,
    eval_trials=512,
    score="success",
    milestones=3,
)

RELIC_PRESETS: dict[str, Preset] = {
    "demo": Preset(
        "a 5 x 5 Darkroom in minutes on a laptop: goes straight to the goal from the second episode on",
        _DEMO,
        time="2 to 4 min",
    ),
    "demo-gap": Preset(
        "the same with blank steps before each episode, so that the last frames do not show the goal",
        with_overrides(
            _DEMO,
            [
                ("env", "memenvs/Darkroom-Gap-v0"),
                ("env_kwargs.max_episode_steps", 40),
                ("ppo.n_steps", 5 * 40),
                ("eval_steps", 10 * 40),
            ],
        ),
        time="3 min",
    ),
    "ci-smoke": Preset(
        "a 4 x 4 Darkroom in seconds, which only shows that everything runs",
        RunConfig(
            **_darkroom(4, 16, 6),
            n_envs=8,
            eval_envs=8,
            total_steps=4096,
            threads=1,
            learner=PPOConfig(n_steps=128, n_updates=4, batch_size=8, learning_rate=1e-3),
            policy=_relic(1, 2, 32, 64, "k0v0", 128),
            eval_trials=8,
            checkpoint_rollouts=1,
        ),
        time="seconds",
    ),
    "darkroom": Preset(
        "the 10 x 10 Darkroom for two cores: T = 500, K = 5, prefix detached in partial updates",
        _DARKROOM,
        time="30 min",
    ),
    "fourboxes": Preset(
        "FourBoxes for one core: T = 500, K = 5, prefix detached in partial updates", _FOUR_BOXES, time="15 min"
    ),
    "extobjnav": Preset(
        "ExtObjNav from symbolic observations, far faster than images: T = 4096, K = 16, the paper's network",
        _EXTOBJNAV,
    ),
    "extobjnav-small": Preset(
        "ExtObjNav in homes of 3-4 rooms, two fruits, symbolic observations, compass, for one core: T = 512, K = 4",
        _EXTOBJNAV_SMALL,
        time="60 min",
    ),
}
