"""Presets of the Spatially-Aware Transformer (SAT): answers, actions and pictures.

What was learned with other tasks, memories and strategies is in `studies/room_ballet`, `studies/visual_match` and
`studies/pictures`.
"""

from __future__ import annotations

from memenvs.agents.algorithms.allocator_config import AllocatorConfig
from memenvs.agents.algorithms.ppo_config import PPOConfig
from memenvs.agents.algorithms.supervised_config import SupervisedConfig
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.policies.small_sizes import SMALL
from memenvs.agents.presets.preset import Preset

ROOM_BALLET = RunConfig(
    env="memenvs/RoomBallet-FIFO-v0",
    total_steps=5000,
    threads=1,
    # calibrated initial weights let a larger batch and a higher learning rate, which decays to 0, pay off
    learner=SupervisedConfig(batch_size=64, learning_rate=1e-3, final_learning_rate=0.0, warmup_steps=500),
    policy={"strategy": "fifo"},
    eval_trials=12_000,  # as many as in the release's evaluation set
    score="accuracy",
)
"""Ballet-FIFO with the strategy FIFO, which solves it.

Other tasks and memories by overrides of `memenvs train room-ballet`:
    `--env memenvs/RoomBallet-MVFO-v0 --policy.strategy mvfo`: another task with the strategy that solves it.
    `--env memenvs/RoomBallet-ABA-v0 --policy '{"memory": "sat-pm"}' --total_steps 4000`: a quota for each place.
    `--env memenvs/RoomBallet-Next-v0 --policy '{"memory": "sat-fifo", "own_layers": 2}' --total_steps 10000`: the
    dancer's own dance is an auxiliary target, without which the task is not learned.
    `--env memenvs/RoomBallet-MultiTask-v0 --total_steps 20000 --policy '{"allocation": {"epsilon_end": 0.05,
    "epsilon_steps": 2000, "rate": 4.0, "only_kept": true}}'`: all four tasks; an allocator chooses the strategy.
    `--policy.initialisation release --policy.time_index slot --supervised.batch_size 32 --supervised.learning_rate 2e-4
    --supervised.final_learning_rate null --supervised.warmup_steps 0 --total_steps 340875`: the release's recipe.
"""

VISUAL_MATCH = RunConfig(
    env="memenvs/VisualMatch-v0",
    env_kwargs={"obs": "one_hot", "place": True},
    n_envs=128,
    eval_envs=128,
    total_steps=1_536_000,
    threads=1,
    learner=PPOConfig(  # whole episodes of 128 environments, one update for each rollout
        learning_rate=1e-3,
        final_learning_rate=1e-4,
        n_steps=100,
        n_updates=1,
        n_epochs=4,
        batch_size=16,
        clip_range_vf=None,
        normalize_advantage=True,
        ent_coef=0.02,
        vf_coef=0.5,
        max_grad_norm=0.5,
        allocator=AllocatorConfig(strategies=("fifo", "mvfo")),
    ),
    # room for half of the stay in the second place, as in the paper
    policy={
        "memory": "sat-fifo",
        "memory_kwargs": {**SMALL["sat-fifo"], "capacity": 40},
        "previous_action_dim": 0,
    },
    eval_steps=100,
    eval_trials=1000,
    score="success",
)
"""VisualMatch by PPO; an allocator learns from returns that MVFO keeps the cue.

Others by overrides of `memenvs train sat-visual-match`:
    `--ppo.allocator null --policy.memory_kwargs.strategy mvfo`: a fixed strategy, which needs half of the steps.
    `--ppo.allocator null --policy.memory lstm --policy.memory_kwargs '{"hidden_dim": 64}'`: another memory.
    `--env memenvs/VisualMatch-Led-v0`: the form that no policy without a memory solves.
    `--env_kwargs.random_order false --env_kwargs.wrong_reward 0.1`: rewards of the paper's environment.
"""

PICTURES = RunConfig(
    env="memenvs/FFHQWorld-v0",
    env_kwargs={"num_images": 2000},  # drawn faces; a face takes 10 ms to draw, then it is kept
    total_steps=2500,
    threads=1,
    learner=SupervisedConfig(
        batch_size=32,
        learning_rate=1.5e-3,
        final_learning_rate=0.0,
        warmup_steps=200,
        validation_episodes=64,
        checkpoint_steps=500,
    ),
    policy={
        "memory": "sat-fifo",
        "convolutions": "components",
        "place_code": "learned2d",
        "place_layers": 2,
        "dim": 320,
        "mlp_dim": 320,
    },
    eval_trials=500,
    score="mse",
)
"""Patches of a face along a path, from a memory that knows places (FFHQ-world).

Others by overrides of `memenvs train sat-pictures`:
    `--env memenvs/FFHQWorld-LongStay-v0 --policy.strategy mvfo`: a memory of half of the steps, and a long stay.
    `--env memenvs/Ballet3D-v0 --env_kwargs '{}' --policy '{"convolutions": "components", "strategy": "mvfo"}'
    --total_steps 6000 --supervised.learning_rate 1e-3`: views of dancers.
    `--env memenvs/ViewRecall-v0 --env_kwargs '{}' --policy '{"convolutions": "fixed", "strategy": "mvfo"}'
    --total_steps 500 --supervised.learning_rate 1e-3 --supervised.batch_size 16`: views of a room.
    `--policy.move_query moves --policy.place_layers 0`: a query is one move, as in the paper.
"""

SAT_PRESETS: dict[str, Preset] = {
    "room-ballet": Preset("Ballet-FIFO with the strategy FIFO, which solves it", ROOM_BALLET, time="3 to 10 min"),
    "sat-visual-match": Preset(
        "VisualMatch by PPO; an allocator learns from returns that MVFO keeps the cue", VISUAL_MATCH, time="3 min"
    ),
    "sat-pictures": Preset(
        "answer with pictures: patches of a face along a path, from a memory that knows places (FFHQ-world)",
        PICTURES,
        time="3 min of a GPU",
    ),
}
