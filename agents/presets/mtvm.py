"""Presets of MTVM, which follows instructions: for two cores, and as published.

Longer paths learn from the weights of shorter ones. Two legs after one, with as many words for each:

    memenvs train vln-laptop --encoder_from runs/vln-laptop-0 --env_kwargs.legs 2 --env_kwargs.max_tokens 224
        --eval_steps 30 --total_steps 1000 --imitation.imitation_updates 1000
"""

from __future__ import annotations

from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.papers.mtvm.config import ImitationConfig
from memenvs.agents.presets.preset import Preset

#: Tokens of an instruction for one leg at most; one for several legs has as many for each.
LEG_TOKENS = 112
_LAPTOP_UPDATES = 2000
#: An evaluation plays each episode of the split once.
_EVALUATION: dict[str, Any] = {
    "eval_kwargs": {"split": "val_unseen", "trial_episodes": 1},
    "eval_all_layouts": True,
    "eval_steps": 15,
    "checkpoint_rollouts": 20,
}

MTVM_PRESETS: dict[str, Preset] = {
    "vln-laptop": Preset(
        "MTVM of laptop size in procedural houses, paths of one leg",
        RunConfig(
            **_EVALUATION,
            env="memenvs/VLN-R2R-v0",
            env_kwargs={
                "world": "procedural",
                "split": "train",
                "legs": 1,
                "max_tokens": LEG_TOKENS,
                "too_long": "error",
            },
            n_envs=32,
            eval_envs=32,
            total_steps=_LAPTOP_UPDATES,
            threads=1,
            # the imitation loss alone, without actor-critic and consistency loss
            learner=ImitationConfig(
                learning_rate=1e-3,
                warmup_updates=100,
                final_learning_rate=0.0,
                imitation_updates=_LAPTOP_UPDATES,
                imitation_weight=1.0,
                text_consistency=0.0,
                cross_consistency=0.0,
                max_grad_norm=10.0,
            ),
            # positions for three legs, so that its weights can begin a run with more legs
            policy={"size": "laptop", "network": {"text_positions": 3 * LEG_TOKENS}},
            eval_trials=2343,
            score="sdtw",
        ),
        time="4 to 39 min",
    ),
    "vln-r2r-paper": Preset(
        "MTVM as published, on the real graphs; needs image features (another file: env_kwargs.features) and, with "
        "encoder_from, PREVALENT's weights",
        RunConfig(
            **_EVALUATION,
            env="memenvs/VLN-R2R-v0",
            env_kwargs={
                "world": "mp3d",
                "split": "train",
                "features": "ResNet-152-places365.tsv",
                "feature_size": 2048,
                "max_tokens": 80,
                "tokenizer": "wordpiece",
            },
            n_envs=16,
            eval_envs=16,
            total_steps=10_000,
            learner=ImitationConfig(),
            policy={"size": "paper"},
            eval_trials=2349,
            score="spl",
        ),
    ),
}
