"""Time of learners by kinds of work: a step of a rollout and an update, on one thread.

    python benchmarks/learner_profile.py [--only relic ...] [--smoke] [--json]

An iteration is a rollout of at most 128 steps of each environment and then one epoch of updates, or five of the replay.
In turn, an iteration is timed, and in another one each operation of PyTorch. All times are CPU times, medians over the
turns. Kinds of work:

- matrix: products of matrices, convolutions and recurrent layers, with their gradients
- attention: fused attention and softmax, with their gradients
- environment: `step` and `reset` of the environments
- optimizer: what PyTorch computes in the step of Adam
- elements: what else PyTorch computes: activations, norms, losses, copies, indexing
- Python: what is left of the time of the whole, with the compiled code that is not PyTorch's and the calls into PyTorch
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from _peer import machine
from torch.utils._python_dispatch import TorchDispatchMode

from memenvs.agents import DQNConfig, EpisodeDQN, PartialUpdatePPO, make_vec_env
from memenvs.agents.presets import find_preset
from memenvs.agents.study import changed

#: Memory -> the preset of laptop size that is profiled, and changes of its settings.
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "relic": ("extobjnav-small", {}),
    "sat-fifo": ("sat-visual-match", {"ppo.allocator": None}),
    "smt": ("coverage-laptop", {}),
    "lstm": (
        "sat-visual-match",
        {"ppo.allocator": None, "policy.memory": "lstm", "policy.memory_kwargs": {"hidden_dim": 64}},
    ),
}
#: Turns of a plain and a timed iteration.
TURNS = 3
#: Steps of a rollout, at most.
MOST_STEPS = 128
KINDS = ("matrix", "attention", "environment", "optimizer", "elements", "Python")
_MATRIX = ("mm", "addmm", "bmm", "baddbmm", "linear", "matmul", "conv", "mkldnn", "lstm", "gru", "dot", "mv", "addmv")


class OperationTimes(TorchDispatchMode):
    """Adds the CPU time of each operation to `spent` of the phase that runs: kind -> seconds.

    Args:
        overhead: Seconds that are taken off each operation.
    """

    def __init__(self, overhead: float) -> None:
        super().__init__()
        self.overhead = overhead
        self.phase, self.is_optimizer = "rollout", False
        self.clear()

    def clear(self) -> None:
        """Forget the times."""
        self.spent = {phase: dict.fromkeys(KINDS, 0.0) for phase in ("rollout", "update")}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.__name__.strip("_")
        kind = "elements"
        if self.is_optimizer:
            kind = "optimizer"
        elif "scaled_dot_product" in name or "softmax" in name:
            kind = "attention"
        elif name.startswith(_MATRIX):
            kind = "matrix"
        began = time.thread_time()
        result = function(*args, **(kwargs or {}))
        self.spent[self.phase][kind] += max(0.0, time.thread_time() - began - self.overhead)
        return result


def overhead_of_timing() -> float:
    """Seconds that an operation takes longer when it is timed."""
    x, calls = torch.zeros(1), 2000
    began = time.thread_time()
    for _ in range(calls):
        x.add(x)
    plain = (time.thread_time() - began) / calls
    with OperationTimes(0.0) as operations:
        for _ in range(calls):
            x.add(x)
    return operations.spent["rollout"]["elements"] / calls - plain


def make_learner(memory: str, is_small: bool) -> tuple[Any, int]:
    """A learner of `PRESETS` with a short iteration, and the environment steps of that."""
    preset, changes = PRESETS[memory]
    config = changed(find_preset(preset), changes)
    settings, count = config.learner, 4 if is_small else config.n_envs
    if isinstance(settings, DQNConfig):
        # a replay that one iteration fills, so that every iteration learns
        small = {"episode_steps": 20, "batch_size": 4} if is_small else {}
        settings = replace(settings, capacity=count, updates_per_collect=5, **small)
        kwargs = {**config.env_kwargs, "max_episode_steps": settings.episode_steps}
        steps = count * settings.episode_steps
    else:
        settings = replace(settings, n_epochs=1, n_steps=min(settings.n_steps, MOST_STEPS))
        if is_small:
            settings = replace(settings, batch_size=4)
        kwargs, steps = config.env_kwargs, count * settings.n_steps
    make = EpisodeDQN if isinstance(settings, DQNConfig) else PartialUpdatePPO
    env = make_vec_env(config.env, count, **kwargs)
    return make("MemoryPolicy", env, settings, policy_kwargs=config.policy, seed=0, device="cpu"), steps


def profile_learner(memory: str, is_small: bool) -> dict[str, Any]:
    """CPU time of a rollout's step and of an update, and shares of the kinds of work."""
    model, steps = make_learner(memory, is_small)
    env, train, optimize = model.env, model.train, model.policy.optimizer.step
    operations = OperationTimes(overhead_of_timing())
    calls: dict[str, list[float]] = defaultdict(list)

    def timed(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            before, operations.is_optimizer = operations.phase, name == "optimizer"
            operations.phase = "update" if name == "update" else before
            began = time.process_time()
            result = function(*args, **kwargs)
            calls[name].append(time.process_time() - began)
            operations.phase, operations.is_optimizer = before, False
            return result

        return call

    env.step, env.reset, model.train = timed(env.step, "step"), timed(env.reset, "reset"), timed(train, "update")
    model.policy.optimizer.step = timed(optimize, "optimizer")
    learn = timed(model.learn, "iteration")

    def iteration() -> None:
        calls.clear()
        learn(steps, reset_num_timesteps=False, log_interval=10**9)

    iteration()  # compiles, allocates
    totals: dict[str, list[float]] = defaultdict(list)
    shares: dict[str, list[dict[str, float]]] = defaultdict(list)
    for _ in range(1 if is_small else TURNS):
        iteration()
        update = sum(calls["update"])
        whole = {"rollout": sum(calls["iteration"]) - update, "update": update}
        played = sum(calls["step"]) + sum(calls["reset"])
        operations.clear()
        with operations:
            iteration()
        operations.spent["rollout"]["environment"] = played
        for phase, kinds in operations.spent.items():
            totals[phase].append(whole[phase])
            kinds["Python"] = max(0.0, whole[phase] - sum(kinds.values()))
            shares[phase].append({kind: seconds / sum(kinds.values()) for kind, seconds in kinds.items()})
    row: dict[str, Any] = {"preset": PRESETS[memory][0], "steps": steps, "updates": len(calls["optimizer"])}
    for phase, count in (("rollout", row["steps"]), ("update", row["updates"])):
        row[phase] = {
            "microseconds": round(1e6 * statistics.median(totals[phase]) / count, 1),
            "shares": {kind: round(statistics.median(share[kind] for share in shares[phase]), 3) for kind in KINDS},
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PRESETS, default=list(PRESETS), metavar="MEMORY")
    parser.add_argument("--smoke", action="store_true", help="small learners, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "The rollout that `learn` did not finish")
    rows = {name: profile_learner(name, args.smoke) for name in args.only}
    if not args.json:
        print(f"| learner | CPU time | {' | '.join(KINDS)} |")
        print(f"|---|---|{'---|' * len(KINDS)}")
        for name, row in rows.items():
            for phase in ("rollout", "update"):
                shares = " | ".join(f"{row[phase]['shares'][kind]:.0%}" for kind in KINDS)
                unit = "a step" if phase == "rollout" else "an update"
                print(f"| `{name}`, {phase} | {row[phase]['microseconds'] / 1000:.3g} ms {unit} | {shares} |")
    print(json.dumps({"rows": rows, "torch": torch.__version__, **machine()}))


if __name__ == "__main__":
    main()
