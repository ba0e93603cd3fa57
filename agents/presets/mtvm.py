"""Presets of agents that follow instructions: MTVM as published, smaller, and ablated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.papers.mtvm.config import ImitationConfig
from memenvs.agents.presets.preset import Preset, Variant

#: Tokens of an instruction for one leg at most; a tour of several legs has as many for each.
_LEG_TOKENS = 112
#: Updates of a run of minutes on one core.
_LAPTOP_UPDATES = 2000
#: From scratch: no pretrained weights, so a larger learning rate, a warm-up, and imitation alone at first.
_SCRATCH = ImitationConfig(learning_rate=1e-4, warmup_updates=1000, imitation_updates=1000)
#: For a run of minutes on one core: the imitation loss alone, without actor-critic and consistency loss.
_LAPTOP_IMITATION = ImitationConfig(
    learning_rate=1e-3,
    warmup_updates=100,
    final_learning_rate=0.0,
    imitation_updates=_LAPTOP_UPDATES,
    imitation_weight=1.0,
    text_consistency=0.0,
    cross_consistency=0.0,
    max_grad_norm=10.0,
)
#: An evaluation plays each episode of the split once.
_EVALUATION: dict[str, Any] = {
    "eval_kwargs": {"split": "val_unseen", "trial_episodes": 1},
    "eval_all_layouts": True,
}
_SCRATCH_RUN: dict[str, Any] = {
    **_EVALUATION,
    "n_envs": 16,
    "eval_envs": 16,
    "total_steps": 10_000,
    "threads": 1,
    "checkpoint_rollouts": 20,
    "learner": _SCRATCH,
}
_LAPTOP_RUN: dict[str, Any] = {
    **_SCRATCH_RUN,
    "n_envs": 32,
    "eval_envs": 32,
    "total_steps": _LAPTOP_UPDATES,
    "learner": _LAPTOP_IMITATION,
}


def _real_graphs(features: str, width: int, **env_kwargs: Any) -> dict[str, Any]:
    """Settings of R2R on the real graphs with image features of a width ("none": directions only)."""
    return {
        "env": "memenvs/VLN-R2R-v0",
        "env_kwargs": {
            "world": "mp3d",
            "split": "train",
            "features": features,
            "feature_size": width,
            "max_tokens": 80,
            **env_kwargs,
        },
        "eval_steps": 15,
        "eval_trials": 2349,
        "score": "spl",
    }


def _procedural(**env_kwargs: Any) -> dict[str, Any]:
    """Settings of paths of one leg in procedural houses, scored by how well the path follows the instruction."""
    return {
        "env": "memenvs/VLN-R2R-v0",
        "env_kwargs": {
            "world": "procedural",
            "split": "train",
            "legs": 1,
            "max_tokens": _LEG_TOKENS,
            "too_long": "error",
            **env_kwargs,
        },
        "eval_steps": 15,
        "eval_trials": 2343,
        "score": "sdtw",
    }


def _dialogues(world: str, **env_kwargs: Any) -> dict[str, Any]:
    """Settings of CVDN as published, with whole dialogues; `supervision` selects the path that teaches."""
    return {
        "env": "memenvs/VLN-CVDN-v0",
        "env_kwargs": {"world": world, "split": "train", "supervision": "mixed", "max_tokens": 300, **env_kwargs},
        "eval_steps": 40,
        "score": "gp",
    }


_HOUSES = RunConfig(
    **_SCRATCH_RUN,
    **_procedural(feature_size=256),
    policy={"size": "small", "network": {"text_positions": _LEG_TOKENS}},
)
_LAPTOP = RunConfig(
    **_LAPTOP_RUN,
    **_procedural(),
    # positions for three legs, so that the network for one leg can start a run with two, and that one with three
    policy={"size": "laptop", "network": {"text_positions": 3 * _LEG_TOKENS}},
)

_NO_CONSISTENCY = {"imitation.text_consistency": 0.0, "imitation.cross_consistency": 0.0}
#: MTVM's studies of history, memory and consistency.
_ABLATIONS: dict[str, Variant] = {
    "last1": Variant("remembers the last action only", {"policy.network.bank": 1}),
    "last3": Variant("remembers the last 3 actions", {"policy.network.bank": 3}),
    "last3-observations": Variant(
        "remembers the views of the options taken in the last 3 actions, and so nothing that is older",
        {"policy.network.bank": 3, "policy.network.history": "observation"},
    ),
    "no-memory": Variant("remembers nothing", {"policy.network.bank": 0}),
    "observations": Variant("remembers the views of the options taken", {"policy.network.history": "observation"}),
    "recurrent": Variant("one recurrent state", {"policy.network.history": "state"}),
    "one-way": Variant("the text does not attend to the views", {"policy.network.two_way": False}),  # word: ok
    "no-language": Variant(
        "does not read the text, and so without the consistency loss",
        {"policy.network.language": False, **_NO_CONSISTENCY},
    ),
    "no-consistency": Variant("without the consistency loss", _NO_CONSISTENCY),
}
#: The same for a laptop, whose agents are one-way and without the consistency loss to begin with.
_LAPTOP_ABLATIONS = {
    **{name: each for name, each in _ABLATIONS.items() if name not in ("one-way", "no-consistency")},
    "two-way": Variant("the text attends to the views too", {"policy.network.two_way": True}),  # word: ok
    "consistency": Variant(
        "with the consistency loss, as strong beside imitation as in the paper's study (6 and 2 over 0.2)",
        {"imitation.text_consistency": 30.0, "imitation.cross_consistency": 10.0},
    ),
}


def _tour(legs: int) -> dict[str, Any]:
    """Overrides of a tour of several legs."""
    return {"env_kwargs.legs": legs, "env_kwargs.max_tokens": _LEG_TOKENS * legs, "eval_steps": 15 * legs}


def _with_tours(
    ablations: Mapping[str, Variant], tours: Mapping[int, Mapping[str, Any]], first: str | None = None
) -> dict[str, Variant]:
    """Ablations in paths of one leg, and again in tours: "last3", "tours2", "tours2-last3" and so on.

    Args:
        ablations: Name -> variant.
        tours: Legs -> overrides.
        first: Preset of one leg; each tour begins with the weights of the same ablation of a tour of one leg less.
            None: with new weights.
    """
    variants = dict(ablations)
    for legs, overrides in tours.items():
        about = f"tours of {legs} legs"
        for name, ablation in {"": Variant(""), **ablations}.items():
            suffix = f"-{name}" * bool(name)
            source = {}
            if first is not None:
                shorter = f"-tours{legs - 1}" * (legs > 2)
                source = {"encoder_from": f"runs/{first}{shorter}{suffix}-{{seed}}"}
            text = f"{about}: {ablation.about}" if name else about
            variants[f"tours{legs}{suffix}"] = Variant(text, {**overrides, **ablation.overrides, **source})
    return variants


MTVM_PRESETS: dict[str, Preset] = {
    "vln-r2r-paper": Preset(
        "MTVM as published, on the real graphs; needs image features (another file: env_kwargs.features) and, with "
        "encoder_from, PREVALENT's weights",
        RunConfig(
            **{**_SCRATCH_RUN, "threads": 0, "learner": ImitationConfig()},
            **_real_graphs("ResNet-152-places365.tsv", 2048, tokenizer="wordpiece"),
            policy={"size": "paper"},
        ),
    ),
    "vln-r2r-small": Preset(
        "small MTVM on the real graphs from scratch, directions only",
        RunConfig(**_SCRATCH_RUN, **_real_graphs("none", 256), policy={"size": "small"}),
        _ABLATIONS,
    ),
    "vln-r2r-laptop": Preset(
        "MTVM of laptop size on the real graphs, with synthetic features from the lists of objects of their houses",
        RunConfig(
            **_LAPTOP_RUN,
            **_real_graphs("synthetic", 64),
            policy={"size": "laptop", "network": {"text_positions": 80}},
        ),
        _LAPTOP_ABLATIONS,
        time="11 to 28 min",
    ),
    "vln-houses": Preset(
        "small MTVM in procedural houses, paths of one leg",
        _HOUSES,
        _with_tours(
            _ABLATIONS,
            {legs: {**_tour(legs), "policy.network.text_positions": _LEG_TOKENS * legs} for legs in (2, 3)},
        ),
    ),
    "vln-laptop": Preset(
        "MTVM of laptop size in procedural houses, paths of one leg",
        _LAPTOP,
        _with_tours(
            _LAPTOP_ABLATIONS,
            {
                legs: {
                    **_tour(legs),
                    # half the updates, since it begins with the weights of one leg less
                    "total_steps": _LAPTOP_UPDATES // 2,
                    "imitation.imitation_updates": _LAPTOP_UPDATES // 2,
                }
                for legs in (2, 3)
            },
            "vln-laptop",
        ),
        time="4 to 39 min",
    ),
    "vln-smoke": Preset(
        "a few seconds of vln-laptop, which only shows that everything runs",
        with_overrides(
            _LAPTOP,
            [
                ("n_envs", 4),
                ("eval_envs", 4),
                ("total_steps", 6),
                ("imitation.imitation_updates", 4),
                ("eval_trials", 12),
            ],
        ),
        time="seconds",
    ),
    "vln-cvdn-laptop": Preset(
        "MTVM of laptop size on dialogues in procedural houses; env_kwargs.supervision is mixed, oracle or navigator",
        RunConfig(
            **_LAPTOP_RUN,
            **_dialogues("procedural", legs=1),
            eval_trials=902,
            policy={"size": "laptop", "network": {"text_positions": 300}},
        ),
        time="11 to 28 min",
    ),
    "vln-cvdn-small": Preset(
        "small MTVM on the dialogues of the real graphs from scratch, directions only; needs CVDN's file of train",
        RunConfig(
            **_SCRATCH_RUN,
            **_dialogues("mp3d", features="none", feature_size=256),
            eval_trials=907,
            policy={"size": "small", "network": {"text_positions": 300}},
        ),
    ),
    "vln-ppo": Preset(
        "PartialUpdatePPO with a GRU in procedural houses: the text as a bag of words, a mask of the valid candidates",
        RunConfig(
            **_EVALUATION,
            env="memenvs/VLN-R2R-v0",
            env_kwargs={
                "world": "procedural",
                "split": "train",
                "legs": 1,
                "max_tokens": _LEG_TOKENS,
                "too_long": "error",
            },
            n_envs=32,
            eval_envs=32,
            total_steps=1_000_000,
            threads=1,
            # the reward of an action says whether it was right, so little of what comes later is credited to it
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
            eval_steps=15,
            eval_trials=2343,
            score="spl",
        ),
    ),
}
