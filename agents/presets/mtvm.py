"""Presets of agents that follow instructions: MTVM as published, smaller ones in procedural houses, and its ablations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.mtvm.imitation_config import ImitationConfig

#: From scratch: no pretrained weights, so a larger step, a warm-up, and imitation alone at first.
_SCRATCH = ImitationConfig(learning_rate=1e-4, warmup_updates=1000, imitation_updates=1000)
#: All episodes of a split are played once in an evaluation.
_SHARED: dict[str, Any] = {
    "n_envs": 16,
    "total_steps": 10_000,
    "threads": 1,
    "eval_all_layouts": True,
    "checkpoint_rollouts": 20,
}
#: Settings of an evaluation: each episode of the split once.
_PLAYED: dict[str, Any] = {"split": "val_unseen", "trial_episodes": 1}


def _real(width: int, **more: Any) -> dict[str, Any]:
    """R2R on the real graphs with so wide features, directions only if `more` names no others."""
    env = {
        "world": "mp3d",
        "split": "train",
        "features": "none",
        "feature_size": width,
        "max_tokens": 80,
        **more,
    }
    return {
        **_SHARED,
        "env": "memenvs/VLN-R2R-v0",
        "env_kwargs": env,
        "eval_kwargs": _PLAYED,
        "eval_steps": 15,
        "eval_trials": 2349,
        "score": "spl",
    }


def _tours(legs: int) -> RunConfig:
    """Tours of procedural houses; the score knows whether the way was the one that was asked for."""
    return RunConfig(
        **_SHARED,
        env="memenvs/VLN-R2R-v0",
        env_kwargs={
            "world": "procedural",
            "split": "train",
            "legs": legs,
            "feature_size": 256,
            "max_tokens": 112 * legs,
            "too_long": "error",
        },
        learner=_SCRATCH,
        policy={"size": "small", "network": {"text_positions": 112 * legs}},
        eval_kwargs=_PLAYED,
        eval_steps=15 * legs,
        eval_trials=2343,
        score="sdtw",
    )


#: For minutes on one core: imitation alone.
_LAPTOP_UPDATES = 2000
_TAUGHT = ImitationConfig(
    learning_rate=1e-3,
    warmup_updates=100,
    final_learning_rate=0.0,
    imitation_updates=_LAPTOP_UPDATES,
    imitation_weight=1.0,
    text_consistency=0.0,
    cross_consistency=0.0,
    max_grad_norm=10.0,
)


#: Tokens of three legs: networks for one and more have the same weights.
_LONGEST = 3 * 112
#: Minutes on one core: imitation alone, a text that does not hear the views, no dropped words.
_MINUTES: dict[str, Any] = {**_SHARED, "n_envs": 32, "total_steps": _LAPTOP_UPDATES, "learner": _TAUGHT}


def _laptop(legs: int) -> RunConfig:
    """Tours for an agent that is taught in minutes on one core; each begins with its own weights of one leg less, with half the updates."""
    updates = _LAPTOP_UPDATES if legs == 1 else _LAPTOP_UPDATES // 2
    return RunConfig(
        **{**_MINUTES, "total_steps": updates, "learner": replace(_TAUGHT, imitation_updates=updates)},
        env="memenvs/VLN-R2R-v0",
        env_kwargs={
            "world": "procedural",
            "split": "train",
            "legs": legs,
            "max_tokens": 112 * legs,
            "too_long": "error",
        },
        policy={"size": "laptop", "network": {"text_positions": _LONGEST}},
        eval_kwargs=_PLAYED,
        eval_steps=15 * legs,
        eval_trials=2343,
        score="sdtw",
    )


def _dialogues(world: str, **more: Any) -> RunConfig:
    """CVDN, each instance with its whole dialogue; how it is taught is `env_kwargs.supervision`, and for evaluation `eval_kwargs.supervision`."""
    env = {"world": world, "split": "train", "supervision": "mixed", "max_tokens": 300}
    base: dict[str, Any] = {
        **_SHARED,
        "env": "memenvs/VLN-CVDN-v0",
        "env_kwargs": env,
        "eval_kwargs": _PLAYED,
        "eval_steps": 40,
        "eval_trials": 902,
        "score": "gp",
    }
    return RunConfig(**{**base, **more, "env_kwargs": env | more.get("env_kwargs", {})})


#: What is changed -> what the agent then is, and how: MTVM's studies of history, memory and consistency.
ABLATIONS: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "last1": ("looks at the last move only", [("policy.network.bank", 1)]),
    "last3": ("looks at the last 3 moves", [("policy.network.bank", 3)]),
    "last3-observations": (
        "remembers what the options looked like at the last 3 moves, and so nothing that is older",
        [("policy.network.bank", 3), ("policy.network.history", "observation")],
    ),
    "no-memory": ("remembers nothing", [("policy.network.bank", 0)]),
    "observations": ("remembers what the options looked like", [("policy.network.history", "observation")]),
    "recurrent": ("one recurrent state", [("policy.network.history", "state")]),
    "one-way": ("the text does not hear the views", [("policy.network.two_way", False)]),
    "no-language": (
        "does not read the text, and so without the consistency loss",
        [
            ("policy.network.language", False),
            ("imitation.text_consistency", 0.0),
            ("imitation.cross_consistency", 0.0),
        ],
    ),
    "no-consistency": (
        "without the consistency loss",
        [("imitation.text_consistency", 0.0), ("imitation.cross_consistency", 0.0)],
    ),
}


#: The same of what a laptop learns, which is one-way and without the consistency loss.
_LAPTOP = {name: found for name, found in ABLATIONS.items() if name not in ("one-way", "no-consistency")} | {
    "two-way": ("the text hears the views too", [("policy.network.two_way", True)]),
    "consistency": (
        "with the consistency loss, beside imitation as strong as in the article's study (6 and 2 over 0.2)",
        [("imitation.text_consistency", 30.0), ("imitation.cross_consistency", 10.0)],
    ),
}


def _family(
    base: str,
    what: str,
    config: RunConfig,
    ablations: Mapping[str, tuple[str, list[tuple[str, Any]]]] = ABLATIONS,
    first: str | None = None,
) -> dict[str, tuple[str, RunConfig]]:
    """A preset and its ablations, each beginning with the weights of the same ablation of another family, if there is one."""
    changed = {"": (what, config)} | {
        f"-{name}": (f"{base}: {line}", with_overrides(config, changes)) for name, (line, changes) in ablations.items()
    }
    return {
        f"{base}{name}": (line, each if first is None else replace(each, encoder_from=f"runs/{first}{name}-{{seed}}"))
        for name, (line, each) in changed.items()
    }


VLN_PRESETS: dict[str, tuple[str, RunConfig]] = {
    "vln-r2r-paper": (
        "MTVM as published, on the real graphs; needs image features (another file: env_kwargs.features) and, with encoder_from, PREVALENT's weights",
        RunConfig(
            **{**_real(2048, tokenizer="wordpiece", features="ResNet-152-places365.tsv"), "threads": 0},
            learner=ImitationConfig(),
            policy={"size": "paper"},
        ),
    ),
    **_family(
        "vln-r2r-small",
        "small MTVM on the real graphs from scratch, directions only",
        RunConfig(**_real(256), learner=_SCRATCH, policy={"size": "small"}),
    ),
    **_family(
        "vln-r2r-laptop",
        "laptop's MTVM on the real graphs with features made up from what their houses list",
        RunConfig(
            **{**_real(64, features="synthetic"), **_MINUTES},
            policy={"size": "laptop", "network": {"text_positions": 80}},
        ),
        _LAPTOP,
    ),
    **_family("vln-houses", "small MTVM in procedural houses, a way of one leg", _tours(1)),
    **_family("vln-tours2", "small MTVM in procedural houses, tours of two legs", _tours(2)),
    **_family("vln-tours3", "small MTVM in procedural houses, tours of three legs", _tours(3)),
    **_family("vln-laptop", "laptop's MTVM in procedural houses, a way of one leg", _laptop(1), _LAPTOP),
    **_family(
        "vln-laptop-tours2", "laptop's MTVM in procedural houses, tours of two legs", _laptop(2), _LAPTOP, "vln-laptop"
    ),
    **_family(
        "vln-laptop-tours3",
        "laptop's MTVM in procedural houses, tours of three legs",
        _laptop(3),
        _LAPTOP,
        "vln-laptop-tours2",
    ),
    "vln-smoke": (
        "a few seconds of vln-laptop, to see that everything runs",
        with_overrides(
            _laptop(1), [("n_envs", 4), ("total_steps", 6), ("imitation.imitation_updates", 4), ("eval_trials", 12)]
        ),
    ),
    "vln-cvdn-laptop": (
        "laptop's MTVM on dialogues in procedural houses; env_kwargs.supervision is mixed, oracle or navigator",
        _dialogues(
            "procedural",
            n_envs=32,
            total_steps=_LAPTOP_UPDATES,
            learner=_TAUGHT,
            policy={"size": "laptop", "network": {"text_positions": 300}},
        ),
    ),
    "vln-cvdn-small": (
        "small MTVM on the dialogues of the real graphs from scratch, directions only; its CVDN train split is a file of yours",
        _dialogues(
            "mp3d",
            env_kwargs={"features": "none", "feature_size": 256},
            eval_trials=907,
            learner=_SCRATCH,
            policy={"size": "small", "network": {"text_positions": 300}},
        ),
    ),
    "vln-ppo": (
        "PartialUpdatePPO with a GRU in procedural houses: the text as a bag of words, and only candidates that there are",
        RunConfig(
            env="memenvs/VLN-R2R-v0",
            env_kwargs={"world": "procedural", "split": "train", "max_tokens": 112, "too_long": "error"},
            n_envs=32,
            total_steps=1_000_000,
            threads=1,
            # a reward says whether the move before it was right, so little of what comes later is credited to it
            learner=PPOConfig(
                learning_rate=1e-3,
                final_learning_rate=1e-4,
                n_steps=32,
                n_updates=1,
                batch_size=8,
                gamma=0.3,
                gae_lambda=0.5,
                normalize_advantage=True,
                clip_range_vf=None,
                vf_coef=0.5,
                max_grad_norm=1.0,
            ),
            policy={
                "memory": "gru",
                "memory_kwargs": {"hidden_dim": 128},
                "features_extractor_class": "OptionsEncoder",
            },
            eval_kwargs=_PLAYED,
            eval_steps=15,
            eval_trials=2343,
            eval_all_layouts=True,
            score="spl",
        ),
    ),
}
