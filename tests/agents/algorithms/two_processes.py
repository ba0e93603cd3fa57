"""Program of each of the two processes of `test_distributed.py`.

Run as `python -m tests.agents.algorithms.two_processes FOLDER`, with the variables of torchrun.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from stable_baselines3.common.logger import Logger

from memenvs.agents.algorithms.distributed import Processes, launched_processes
from memenvs.agents.algorithms.ppo import PartialUpdatePPO
from memenvs.agents.experiments.callback import RunCallback
from memenvs.agents.experiments.config import with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.train import train_run
from memenvs.agents.integrations.loggers import TrackerWriter
from memenvs.agents.presets import find_preset
from memenvs.agents.vec_env import TrialVecEnv
from tests.agents.learners import STEPS, Hooks, act, darkroom, double, gradients, learner, weights

#: Three rollouts of 4 x 32 steps, with a checkpoint after each.
CHANGES: list[tuple[str, Any]] = [
    ("n_envs", 4),
    ("total_steps", 384),
    ("policy.memory_kwargs.dim", 16),
    ("policy.memory_kwargs.mlp_dim", 16),
    ("ppo.n_steps", 32),
    ("ppo.n_updates", 2),
    ("ppo.n_epochs", 2),
    ("ppo.batch_size", 2),
]
RUN = with_overrides(find_preset("ci-smoke"), CHANGES)
STORES = ("actions", "previous_action", "episode_start", "trial_start", "rewards", "values", "log_probs")


def rollout_of(model: PartialUpdatePPO) -> dict[str, torch.Tensor]:
    """Tensors that an update learns from, (N, ...) each, not copied."""
    buffer = model.rollout_buffer
    stores = {name: getattr(buffer, name) for name in STORES} | buffer.observations
    return {**stores, "last_values": model._last_values, "last_start": model._episode_start}


def one_step(n: int, data: dict[str, torch.Tensor] | None, **more: Any) -> PartialUpdatePPO:
    """A learner after one optimizer step, with active clips, on its own or a given rollout."""
    settings = {"batch_size": 4, "n_epochs": 1, "micro_batch_tokens": STEPS, "max_grad_norm": 0.1} | more
    model = act(learner(env=darkroom(n), normalize_advantage=True, **settings), 3)
    if data is not None:
        for name, own in rollout_of(model).items():
            own.copy_(data[name])
    double(model).train()
    return model


def break_rewards_after(steps: int) -> None:
    """Make the rewards of this process NaN after a number of steps."""
    step, left = TrialVecEnv.step_wait, iter(range(steps))

    def broken(self: TrialVecEnv) -> Any:
        observations, rewards, done, infos = step(self)
        return observations, rewards if next(left, None) is not None else rewards * float("nan"), done, infos

    TrialVecEnv.step_wait = broken  # type: ignore[method-assign]


def die_after(steps: int) -> None:
    """Kill this process at the first segment after `steps` environment steps."""
    begin = RunCallback._on_rollout_start

    def die(self: RunCallback) -> None:
        begin(self)
        if self.model.num_timesteps > steps:
            os.kill(os.getpid(), signal.SIGKILL)

    RunCallback._on_rollout_start = die  # type: ignore[method-assign]


def train(folder: Path, processes: Processes, *, new: bool = True) -> str:
    """Train a run; return the error, or nothing."""
    try:
        with RunDirectory(folder, RUN if new else None, processes) as run:
            train_run(run, quiet=True)
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main(folder: Path) -> None:
    """Run all experiments in one launch, as imports take most of the time."""
    torch.set_num_threads(1)
    notes: dict[str, Any] = {}
    processes = launched_processes("cpu")
    rank = processes.rank

    data = {key: value[2 * rank : 2 * rank + 2] for key, value in load_file(folder / "rollout.safetensors").items()}
    model = one_step(2, data, processes=processes)
    save_file({"gradient": gradients(model)}, folder / f"gradient.{rank}.safetensors")
    notes["logged"] = {key: value for key, value in model.logger.name_to_value.items() if key.startswith("train/")}

    model = learner(env=darkroom(2), processes=processes, final_learning_rate=1e-4)
    rows: list[dict[str, float]] = []
    model.set_logger(Logger(None, [TrackerWriter(lambda numbers, step: rows.append(numbers))]))
    model.learn(2 * 4 * STEPS)
    save_file({"weights": weights(model)}, folder / f"weights.{rank}.safetensors")
    notes["steps"], notes["learning_rate"] = model.num_timesteps, model.policy.optimizer.param_groups[0]["lr"]
    notes["episodes"] = [info["r"] for info in model.ep_info_buffer or []]
    notes["mean"] = rows[-1]["rollout/ep_rew_mean"]

    before = weights(model)
    act(model)
    if rank == 1:
        model.rollout_buffer.rewards[:, 0] = float("nan")
    try:
        model.train()
    except ValueError as error:
        notes["loss"], notes["kept"] = str(error), torch.equal(weights(model), before)

    model.learn(10**6, Hooks(step=lambda own: own.n_calls < (10 if rank == 1 else 1000)))
    notes["stopped"] = model.num_timesteps

    notes["whole"] = train(folder / "whole", processes)
    with RunDirectory(folder / "whole", None, processes):
        notes["taken"] = train(folder / "whole", processes, new=False)
    intact = TrialVecEnv.step_wait
    if rank == 1:
        break_rewards_after(70)  # in the third rollout
    notes["broken"] = train(folder / "broken", processes)
    (folder / f"broken.{rank}.zip").write_bytes((folder / "broken" / "checkpoint.zip").read_bytes())
    TrialVecEnv.step_wait = intact  # type: ignore[method-assign]
    notes["mended"] = train(folder / "broken", processes, new=False)

    (folder / f"notes.{rank}.json").write_text(json.dumps(notes))
    if rank == 1:
        die_after(256)  # in the third rollout
    notes["killed"] = train(folder / "killed", processes)
    (folder / f"notes.{rank}.json").write_text(json.dumps(notes))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
