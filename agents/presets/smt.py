"""Preset of the Scene Memory Transformer (SMT): Coverage on two cores, in two stages.

The first stage learns an encoder, each decision from its own step alone. The preset is the second: it learns a memory
on that frozen encoder. Train both:

    memenvs train coverage-laptop --encoder_from null --policy.single_steps true --policy.freeze_features false
        --policy.freeze_previous_action false --dqn.updates_per_collect 200 --out runs/coverage-laptop-encoder-0
    memenvs train coverage-laptop

Roaming and Search need, in both stages:

    --env memenvs/Roaming-v0 --score distance --dqn.reward_scale 1 --dqn.temperature 0.25
    --env memenvs/Search-v0 --score classes --dqn.reward_scale 1 --dqn.min_reward -0.2
"""

from __future__ import annotations

from dataclasses import replace

from memenvs.agents.algorithms.dqn_config import DQNConfig
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets.preset import Preset

_ENVS, _STEPS = 16, 200
#: Learning rates are larger than the paper's, for 2,050 updates. The temperature is so low that the reward of a single
#: step changes softmax(Q).
_DQN = DQNConfig(
    capacity=320,
    episode_steps=_STEPS,
    updates_per_collect=50,
    batch_size=16,
    decisions=8,
    learning_rate=1e-3,
    target_rate=0.01,
    gamma=0.97,
    reward_scale=0.2,
    temperature=0.1,
)

SMT_PRESETS: dict[str, Preset] = {
    "coverage-laptop": Preset(
        "Scene Memory Transformer in Coverage for two cores, on the encoder of a first stage (`first_stage`)",
        RunConfig(
            env="memenvs/Coverage-v0",
            # homes of the SUNCG style: 156 to train in, 39 to choose the best checkpoint, 46 for evaluation
            env_kwargs={
                "world": "suncg_style",
                "split": "train",
                "max_episode_steps": _STEPS,
                "obs_mode": "scan",  # a row of 64 rays
            },
            n_envs=_ENVS,
            eval_envs=_ENVS,
            total_steps=(_DQN.capacity // _ENVS + 40) * _ENVS * _STEPS,  # fill the replay, then 40 collections
            threads=1,
            learner=_DQN,
            policy={
                "memory": "smt",
                "memory_kwargs": {"dim": 64, "heads": 4, "capacity": _STEPS},
                "net_arch": {"pi": [64], "vf": []},
                "features_extractor_class": "SceneEncoder",
                "features_extractor_kwargs": {"network": "small", "dim": 64},
                "freeze_features": True,
                "previous_action_dim": 16,
                "freeze_previous_action": True,
                "activation": "relu",
                "adam_eps": 1e-8,
            },
            encoder_from="runs/coverage-laptop-encoder-{seed}",
            eval_kwargs={"split": "test"},
            eval_steps=_STEPS,
            eval_trials=460,
            eval_all_layouts=True,
            score="cells",
            checkpoint_rollouts=10,
            validation_kwargs={"split": "validation"},
            validation_trials=78,
        ),
        time="11 to 22 min, the first stage 7 to 9",
    ),
}


def first_stage(config: RunConfig) -> RunConfig:
    """First stage of a run, which learns the encoder: each decision from its own step alone.

    Args:
        config: Settings of the second stage, as those of the preset.
    """
    policy = {name: value for name, value in config.policy.items() if not name.startswith("freeze_")}
    return replace(
        config,
        encoder_from=None,
        policy={**policy, "single_steps": True},
        learner=replace(config.learner, updates_per_collect=4 * config.learner.updates_per_collect),
    )
