"""Presets of ReLIC, in-context reinforcement learning over the episodes of a trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.policies.small_sizes import SMALL
from memenvs.agents.presets.preset import COMPRESSIVE_QUEUES, Preset, Variant


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


#: Settings of every FourBoxes run: trials of 20 episodes, in turn for each of the four boxes.
_FOUR_BOXES: dict[str, Any] = {
    "env": "memenvs/FourBoxes-v0",
    "env_kwargs": {"trial_episodes": None},
    "eval_all_layouts": True,
    "eval_steps": 1000,
    "eval_trials": 100,
}


def _baselines(config: RunConfig, chunk: int, rl2: dict[str, Any] | None = None) -> dict[str, Variant]:
    """Baselines of ReLIC: other memories with the same observations, environment steps and evaluation.

    Args:
        config: Run with a ReLIC memory whose rollouts are whole trials.
        chunk: Steps between two updates of the memories that carry their state from rollout to rollout within a trial;
            divides the trial.
        rl2: Further overrides of RL2.

    Source:
        ReLIC, section on baselines, without the defects of its release: trials advance, the memory is emptied where
        they do, and gradient passes see the memory that acting saw.
    """
    memory = config.policy["memory_kwargs"]
    trial = config.learner.n_steps
    carried = {
        "env_kwargs.trial_steps": trial,
        "eval_kwargs.trial_steps": None,
        "ppo.n_updates": 1,
        "ppo.n_steps": chunk,
        "ppo.reset_each_rollout": False,
        # a run resumes exactly only between trials
        "checkpoint_rollouts": config.checkpoint_rollouts * trial // chunk,
    }
    lstm = {"policy.memory": "lstm", "policy.memory_kwargs": {"hidden_dim": 2 * memory["dim"], "layers": 2}}
    sizes = {key: memory[key] for key in ("layers", "heads", "dim", "mlp_dim")}
    # dropout as strong as the depth dropout of the ReLIC memory, whose default is 0.1
    trxl = {**sizes, "memory_length": chunk, "dropout": memory.get("depth_dropout", 0.1)}
    no_iea = {"policy.memory_kwargs.inter_episode": False}
    return {
        "rl2": Variant(
            "RL2: two LSTM layers over the trial, credit across its episodes",
            {**carried, **lstm, "ppo.credit_across_episodes": True, **(rl2 or {})},
        ),
        "trxl": Variant(
            "Transformer-XL over the trial; its memory is the hidden states of the previous chunk",
            {**carried, "policy.memory": "trxl", "policy.memory_kwargs": trxl},
        ),
        "no-iea": Variant("ReLIC without attention to earlier episodes", no_iea),
        "transformer-se": Variant(
            "a transformer for single episodes, each in a layout of its own; learns from every step once",
            {
                **no_iea,
                "env_kwargs.trial_episodes": 1,
                "eval_kwargs.trial_episodes": None,
                "ppo.full_update": False,
                "ppo.shuffle_episodes": False,
            },
        ),
    }


#: Sinks of `memenvs.agents.memory.relic`, repeated here since that module imports torch, which takes seconds.
_SINKS = ("none", "token", "k0v0", "kv0", "k0v", "kv")


def _ablations(config: RunConfig) -> dict[str, Variant]:
    """Ablations of a run with a ReLIC memory: one part left out, or another sink."""
    own = config.policy["memory_kwargs"]["sink"]
    learner = config.learner
    # epochs for as many optimiser steps as `n_updates` updates make
    as_many = {"ppo.n_updates": 1, "ppo.n_epochs": learner.n_updates * learner.n_epochs}
    rates = {f"ppo.{name}": getattr(learner, name) / 2 for name in ("learning_rate", "final_learning_rate")}
    return {
        "k1": Variant("ReLIC without partial updates", {"ppo.n_updates": 1}),
        "k1-epochs": Variant("ReLIC without partial updates, as many optimiser steps as with them", as_many),
        "k1-epochs-slow": Variant("the same with half the learning rate", {**as_many, **rates}),
        "no-shuffle": Variant("ReLIC with episodes in the order they were played", {"ppo.shuffle_episodes": False}),
        **{
            f"sink-{sink}": Variant(f"ReLIC with sink {sink!r}", {"policy.memory_kwargs.sink": sink})
            for sink in _SINKS
            if sink != own
        },
    }


_ENCODER = {"features_extractor_kwargs": {"widths": {"goal": 256, "gps": 32}}, "previous_action_dim": 256}
_TINY = _relic(2, 8, 64, 256, "k0v0", 128)
#: The release sums the gradients of ten micro-batches and clips the sum at 0.2. Here they are averaged. So the clip is
#: 0.02, and Adam's epsilon (`adam_eps` of the policy) a tenth of the release's.
_RELEASE = PPOConfig(learning_rate=2e-4, final_learning_rate=1e-5, max_grad_norm=0.02)
#: The paper's Darkroom and Miniworld. The release's example of the Darkroom sums the gradients of four micro-batches,
#: so the clip is 0.2 / 4; its warm-up is the same. Environments and batch are our choice.
_SMALL_RELEASE = replace(_RELEASE, n_steps=512, batch_size=16, warmup_steps=10_000, max_grad_norm=0.05)
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
#: The queues hold one episode and a bit.
_COMPRESSIVE: dict[str, Any] = {"dim": 64, "layers": 1, "heads": 2, "mlp_dim": 256, **COMPRESSIVE_QUEUES}
_PAPER_DARKROOM = RunConfig(
    **_darkroom(10, 100, 40),
    total_steps=10_000_000,
    learner=replace(_SMALL_RELEASE, n_updates=4),
    policy=_TINY,
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
_REPLICACAD = with_overrides(_EXTOBJNAV, [("env_kwargs.rooms", [2, 4]), ("ppo.n_updates", 4)])
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
        # what the shipped agent and the rows of results/ext_objnav have learned from
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
#: Images in place of symbolic observations, and the encoder that estimates these from them.
_PICTURES = {"env_kwargs.obs_mode": "rgb", "env_kwargs.image_size": [48, 64], "env_kwargs.encoder": "symbolic"}

RELIC_PRESETS: dict[str, Preset] = {
    "demo": Preset(
        "a 5 x 5 Darkroom in minutes on a laptop: goes straight to the goal from the second episode on",
        _DEMO,
        {
            "gap": Variant(
                "Darkroom-Gap-v0: blank steps before each episode, so that the last frames do not show the goal",
                {
                    "env": "memenvs/Darkroom-Gap-v0",
                    "env_kwargs.max_episode_steps": 40,
                    "ppo.n_steps": 5 * 40,
                    "eval_steps": 10 * 40,
                },
            ),
        }
        | {
            name: Variant(about, {"policy.memory": name, "policy.memory_kwargs": settings})
            for name, about, settings in (
                ("lstm", "an LSTM of 64 numbers in place of ReLIC", SMALL["lstm"]),
                ("ct-lt", "a Compressive Transformer of 20 vectors and a long-term state", _COMPRESSIVE),
                ("ct-log", "a Compressive Transformer of 20 vectors and six that merge", _COMPRESSIVE),
            )
        },
        time="3 to 5 min",
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
        {**_baselines(_DARKROOM, 250), **_ablations(_DARKROOM)},
        time="30 min",
    ),
    "relic-darkroom": Preset(
        "the paper's Darkroom: T = 512, K = 4, fixed zero sink (environments, steps and warm-up are our choice)",
        _PAPER_DARKROOM,
        {
            "example": Variant(
                "the public example: T = 4096, K = 16, learned sink, 8 environments",
                {
                    "n_envs": 8,
                    "eval_envs": 8,
                    "total_steps": 5_000_000,
                    "ppo.n_steps": 4096,
                    "ppo.n_updates": 16,
                    "ppo.batch_size": 4,
                    "policy.memory_kwargs.sink": "kv",
                    "policy.memory_kwargs.depth_dropout": 0.0,
                },
            )
        },
    ),
    "fourboxes": Preset(
        "FourBoxes for one core: T = 500, K = 5, prefix detached in partial updates",
        RunConfig(
            **_FOUR_BOXES,
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
        ),
        {
            "unseen": Variant(
                "learns with twelve arrangements of the colours, is evaluated with six others",
                {"env_kwargs.split": "train", "eval_kwargs.split": "test"},
            )
        },
    ),
    "relic-miniworld": Preset(
        "the paper's Miniworld: T = 512, K = 2, images encoded to 8 features (steps are our choice)",
        RunConfig(
            **_FOUR_BOXES,
            total_steps=10_000_000,
            learner=replace(_SMALL_RELEASE, n_updates=2),
            policy={**_relic(2, 8, 64, 256, "k0v0", 64), "features_extractor_kwargs": {"image_dim": 8}},
        ),
    ),
    "extobjnav": Preset(
        "ExtObjNav from symbolic observations, far faster than images: T = 4096, K = 16, the paper's network",
        _EXTOBJNAV,
        {
            "hssd": Variant("the paper's longest run: 1e9 steps", {"total_steps": 1_000_000_000}),
            "64k": Variant(
                "trials of 65,536 steps, an update every 256; the prefix detached in partial updates",
                {
                    "total_steps": 1_000_000_000,
                    "env_kwargs.trial_steps": 65_536,
                    "ppo.n_steps": 65_536,
                    "ppo.n_updates": 256,
                    "ppo.prefix_grad": "detach",
                    "eval_steps": 65_536,
                },
            ),
            **_baselines(
                _EXTOBJNAV,
                256,
                {
                    "ppo.learning_rate": 2.5e-4,
                    "ppo.batch_size": 40,
                    "ppo.max_grad_norm": 0.2,  # two mini-batches: no gradients are averaged here
                    "policy.adam_eps": 1e-5,
                    "policy.previous_action_dim": 512,
                    "policy.features_extractor_kwargs.widths.goal": 512,
                },
            ),
        },
    ),
    "relic-replicacad": Preset(
        "the paper's ablations in small homes: T = 4096, K = 4", _REPLICACAD, _ablations(_REPLICACAD)
    ),
    "extobjnav-small": Preset(
        "ExtObjNav in homes of 3-4 rooms, two fruits, symbolic observations, compass, for one core: T = 512, K = 4",
        _EXTOBJNAV_SMALL,
        {
            **_baselines(_EXTOBJNAV_SMALL, 128),
            **_ablations(_EXTOBJNAV_SMALL),
            "rgb": Variant(
                "images of 128 x 128 through the frozen encoder, for half an hour of one core",
                {
                    "total_steps": 9 * 64 * 512,
                    "checkpoint_rollouts": 1,  # two minutes each
                    "eval_trials": 128,
                    "env_kwargs.obs_mode": "rgb",
                    "env_kwargs.image_size": [128, 128],
                    "env_kwargs.encoder": "cnn",
                    "policy.features_extractor_kwargs.widths": {"goal": 32, "gps": 32, "visual": 128},
                    "policy.features_extractor_kwargs.rectified": ["visual"],
                },
            ),
            "pictures": Variant(
                "symbolic observations read from images of 48 x 64 by a small frozen encoder, with as many steps",
                _PICTURES,
            ),
            "pictures-no-iea": Variant(
                "the same without attention to earlier episodes",
                {**_PICTURES, "policy.memory_kwargs.inter_episode": False},
            ),
        },
        time="60 min",
    ),
}
