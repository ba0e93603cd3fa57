"""Time, memory and operations of learning over trials of up to 65,536 steps, beside ReLIC.

First, `PartialUpdatePPO` learns from whole rollouts of a trivial environment (random features), each in its own
process. Printed are steps acted per second, seconds of the refills, of a partial update (a mean over the rollout) and
of the full update, and the peak of the resident memory. Seconds are CPU time of one epoch. Two numbers of updates K for
each T show that memory does not depend on K.

Then operations are counted at the size of ReLIC's main network, with an update every 256 steps as in its run of 64k.
Updates at four positions of the rollout go through the same learner, with matrix products and attention counted instead
of computed. Each count is divided by that of a closed form (1.0 if equal). The closed forms then give the sum over all
updates of a rollout. The reference scheme passes gradients through the whole prefix in every layer, in each of 4 epochs
of each update, and refills all of it.

The tiny rollouts take about half an hour on one free core; `--smoke` ends in a few seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.vec_env import DummyVecEnv

from memenvs.agents import PartialUpdatePPO
from memenvs.agents.algorithms.ppo import PREFILL_STEPS
from memenvs.agents.memory import relic
from memenvs.agents.memory.attention import QUERY_BLOCK

if __package__:
    from benchmarks._flops import Flops
    from benchmarks._peer import machine
else:  # run by its path
    from _flops import Flops
    from _peer import machine

ACTIONS, EPISODE = 6, 500  # actions of the environment, steps of an episode
#: Epochs of an update in the closed forms of a rollout. The learner here does one.
EPOCHS = 4
#: Values of `PPOConfig.prefix_grad`.
SCHEMES = ("full", "window", "detach")
#: Steps before the segment that "window" passes gradients through.
WINDOW = 1024
#: Steps between the updates whose operations are counted, at most T / 4.
COUNTED_SEGMENT = 256


@dataclass(frozen=True)
class Size:
    """Sizes of a network with ReLIC's memory.

    Attributes:
        layers, heads, dim, mlp_dim: Of the transformer.
        features: Width of an observation.
        previous: Width of the embedding of the previous action.
    """

    layers: int
    heads: int
    dim: int
    mlp_dim: int
    features: int
    previous: int

    @property
    def block(self) -> int:
        """Operations of the matrices of a block, for a token."""
        # four matrices of attention, three of the gated MLP
        return 2 * (4 * self.dim**2 + 3 * self.dim * self.mlp_dim)

    @property
    def key_value(self) -> int:
        """Operations of the matrices for key and value, for a token; part of `block`."""
        return 4 * self.dim**2

    @property
    def before_blocks(self) -> int:
        """Operations of the matrix before the blocks, for a token."""
        return 2 * (self.features + self.previous) * self.dim

    @property
    def after_blocks(self) -> int:
        """Operations of the matrix after the blocks, actor and critic, for a token."""
        return 2 * self.dim * (self.dim + ACTIONS + 1)


SIZES = {
    "tiny": Size(2, 8, 64, 256, features=64, previous=16),
    "small": Size(4, 8, 256, 1024, features=768, previous=256),
}


def attention_pairs(queries: int, keys: int) -> float:
    """Query-key pairs that causal attention computes on a CPU.

    Queries are computed in blocks with a rectangular mask.
    """
    if queries == 1:
        return keys
    if keys - queries <= 1:  # a dummy query makes it square
        return keys * (keys + 1) / 2
    blocks = [(begin, min(queries, begin + QUERY_BLOCK)) for begin in range(0, queries, QUERY_BLOCK)]
    return sum((end - begin) * (keys - queries + end) for begin, end in blocks)


@dataclass(frozen=True)
class Cost:
    """Closed forms of the operations of the learner's passes for one environment.

    Attributes:
        size: Size of the network.
        sinks: Number of keys besides the steps.
    """

    size: Size
    sinks: int = 1

    def forward(self, steps: int, past: int, last: int) -> tuple[float, float]:
        """Operations of matrices and of attention in a pass over new steps.

        Args:
            steps: New steps.
            past: Steps in the cache before them.
            last: Steps at the end whose features are needed.
        """
        size, keys = self.size, self.sinks + past + steps
        matrices = size.before_blocks * steps + size.block * (size.layers - 1) * steps
        # In the last layer every step gives a key and a value, but only the last steps a query.
        matrices += size.key_value * steps + (size.block - size.key_value) * last + size.after_blocks * last
        pairs = (size.layers - 1) * attention_pairs(steps, keys) + attention_pairs(last, keys)
        return matrices, 2 * 2 * size.dim * pairs  # two products: scores, and weights times values

    def step(self, past: int) -> float:
        """Operations of acting once."""
        return sum(self.forward(1, past, 1))

    def refill(self, end: int, *, rewrite: bool) -> float:
        """Operations of refilling the memory from steps 0 to `end`, `PREFILL_STEPS` at a time.

        Only with `rewrite` is the critic's value of each step computed again: then the last layer, actor and critic
        count for all steps.
        """
        total = 0.0
        for begin in range(0, end, PREFILL_STEPS):
            steps = min(PREFILL_STEPS, end - begin)
            total += sum(self.forward(steps, begin, steps if rewrite else 1))
            total -= 0 if rewrite else 2 * self.size.dim * (ACTIONS + 1)  # actor and critic
        return total

    def update(self, begin: int, end: int, scheme: str) -> tuple[float, float]:
        """Operations of an epoch of an update, and of the pass that measures the divergence.

        Args:
            begin: First step whose loss is taken.
            end: One after the last one.
            scheme: One of `SCHEMES`.
        """
        start = {"full": 0, "window": max(0, begin - WINDOW), "detach": begin}[scheme]
        prefix = 0.0 if scheme != "window" else self.refill(start, rewrite=False)
        matrices, attention = self.forward(end - start, start, end - begin)
        recomputed = self.recomputed(end - start, end - begin) if end - start > relic.LONG_STEPS else 0
        # A backward pass has two products for each of a matrix, and five for the two of attention (`_flops`).
        return 3 * matrices + 3.5 * attention + recomputed + prefix, matrices + attention + prefix

    def recomputed(self, steps: int, last: int) -> float:
        """Operations of the matrices of the blocks, which a long pass does twice (checkpointing)."""
        size = self.size
        return (size.block * (size.layers - 1) + size.key_value) * steps + (size.block - size.key_value) * last

    def rollout(self, steps: int, updates: int, scheme: str) -> dict[str, float]:
        """Operations for each environment step of a rollout, by purpose."""
        segment = steps // updates
        parts = dict.fromkeys(("acting", "refill", "partial", "full", "divergence"), 0.0)
        parts["acting"] = sum(self.step(past) for past in range(steps))
        for n in range(1, updates + 1):
            end, is_full = n * segment, n == updates
            epoch, divergence = self.update(0 if is_full else end - segment, end, "full" if is_full else scheme)
            parts["full" if is_full else "partial"] += EPOCHS * epoch
            parts["divergence"] += divergence
            if not is_full:
                parts["refill"] += self.refill(end, rewrite=n == updates - 1)
        return {name: value / steps for name, value in parts.items()}


def reference(size: Size, steps: int, updates: int, *, matrices: float | None = None) -> dict[str, float]:
    """Operations of a rollout in ReLIC's scheme for one environment, without acting.

    Args:
        size: Size of the network.
        steps: Steps T of a rollout.
        updates: Updates K in a rollout.
        matrices: Operations of the matrices for a token; None for those of `size`.

    Returns:
        `reference`: all updates, with gradients through the whole prefix.
        `detached`: all updates, with gradients through the segment only; each of its steps counts as many keys as the
            last one.
        `full`: one full update.
        The first two include a refill before each update.
    """
    if matrices is None:
        matrices = size.before_blocks + size.layers * size.block + size.after_blocks
    segment = steps // updates
    attention = 2 * size.layers * size.dim  # causal attention of T steps has this times T^2 operations
    ends = segment * np.arange(1, updates + 1, dtype=np.float64)
    refill = (matrices * ends + attention * ends**2).sum()
    whole_prefix = 3 * matrices * ends + 3.5 * attention * ends**2
    segment_only = 3 * matrices * segment + 3.5 * 2 * attention * segment * ends
    return {
        "reference": float(EPOCHS * whole_prefix.sum() + refill),
        "detached": float(EPOCHS * segment_only.sum() + refill),
        "full": float(EPOCHS * whole_prefix[-1]),
    }


class RandomFeatures(gym.Env):
    """Random features and rewards in episodes of `EPISODE` steps; its own cost is negligible."""

    def __init__(self, features: int) -> None:
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (features,), np.float32)
        self.action_space = gym.spaces.Discrete(ACTIONS)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start an episode, in a new trial if option "new_trial" is set."""
        super().reset(seed=seed)
        self.steps = 0
        return self._observe(), {"trial_start": bool(options and options.get("new_trial"))}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Return random features and a random reward."""
        self.steps += 1
        return self._observe(), float(self.np_random.standard_normal()), self.steps == EPISODE, False, {}

    def _observe(self) -> np.ndarray:
        return self.np_random.standard_normal(self.observation_space.shape, np.float32)


def make_learner(size: Size, steps: int, updates: int, scheme: str, device: str, precision: str) -> PartialUpdatePPO:
    """Learner with one environment and one epoch in an update."""
    env = DummyVecEnv([lambda: RandomFeatures(size.features)])
    env.set_options({"new_trial": True})
    memory = {"layers": size.layers, "heads": size.heads, "dim": size.dim, "mlp_dim": size.mlp_dim}
    policy = {"memory_kwargs": memory, "previous_action_dim": size.previous, "freeze_features": True}
    return PartialUpdatePPO(
        "MemoryPolicy",
        env,
        policy_kwargs=policy,
        seed=0,
        device=device,
        n_steps=steps,
        n_updates=updates,
        n_epochs=1,
        prefix_grad=scheme,
        prefix_window=WINDOW,
        precision=precision,
    )


def learn_rollout(size: Size, steps: int, updates: int, scheme: str, device: str, precision: str) -> dict[str, Any]:
    """Learn from a whole rollout and return times and memory."""
    model = make_learner(size, steps, updates, scheme, device, precision)
    spent = dict.fromkeys(("act", "refill", "last_refill", "partial", "full"), 0.0)
    on_gpu = model.device.type == "cuda"

    def now() -> float:
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() if on_gpu else time.process_time()

    refill = model._refill_memory

    def timed_refill(end: int, *, rewrite: bool) -> None:
        began = now()
        refill(end, rewrite=rewrite)
        spent["last_refill"] = now() - began
        spent["refill"] += spent["last_refill"]

    model._refill_memory = timed_refill  # type: ignore[method-assign]
    _, callback = model._setup_learn(steps)
    assert model.env is not None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB on Linux
    for n in range(1, updates + 1):
        began, refilled = now(), spent["refill"]
        model.collect_rollouts(model.env, callback, model.rollout_buffer, steps)
        collected = now()
        model.train()
        spent["act"] += collected - began
        spent["full" if n == updates else "partial"] += now() - collected - (spent["refill"] - refilled)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "act_steps_per_second": round(steps / spent["act"], 1),
        "refill_seconds": round(spent["refill"] / max(1, updates - 1), 3),
        "last_refill_seconds": round(spent["last_refill"], 3),
        "partial_seconds": round(spent["partial"] / max(1, updates - 1), 3),
        "full_seconds": round(spent["full"], 3),
        "rollout_seconds": round(spent["act"] + spent["refill"] + spent["partial"] + spent["full"], 1),
        "peak_mib": round((torch.cuda.max_memory_allocated() if on_gpu else 1024 * peak) / 2**20),
        "before_mib": round(before / 1024),
    }


@contextmanager
def at_update(size: Size, steps: int, updates: int, scheme: str, n: int) -> Iterator[PartialUpdatePPO]:
    """Learner as before its n-th update, with random data in the rollout buffer."""
    model = make_learner(size, steps, updates, scheme, "cpu", "float32")
    model._setup_learn(steps)
    model.num_timesteps = n * (steps // updates)
    segment, buffer = steps // updates, model.rollout_buffer
    generator = torch.Generator().manual_seed(0)
    assert buffer.embeddings is not None
    buffer.embeddings.normal_(generator=generator)
    buffer.episode_start[:, ::EPISODE] = True
    buffer.trial_start[:, 0] = True
    buffer.pos, model._segment_begin = n * segment, (n - 1) * segment
    model._state = model.policy.initial_state(1, max_steps=steps + 1)
    past = model._segment_begin
    counters = {"length": past, "episode_index": -(-past // EPISODE), "episode_step": 1 + (past - 1) % EPISODE}
    for name, value in counters.items():
        model._state[name].fill_(value if past > 0 else 0)
    model._segment_state = model._state
    model._last_values = torch.zeros(1)
    model._episode_start = model._trial_start = torch.zeros(1, dtype=torch.bool)
    yield model
    assert model.env is not None
    model.env.close()


def count_update(size: Size, steps: int, updates: int, scheme: str, n: int) -> dict[str, int]:
    """Operations of the n-th update, with the divergence after it, and of its refill."""
    with at_update(size, steps, updates, scheme, n) as model:
        refill, counted = model._refill_memory, {"refill": 0}
        with Flops(skip=True) as flops:

            def counting_refill(end: int, *, rewrite: bool) -> None:
                before = flops.total
                refill(end, rewrite=rewrite)
                counted["refill"] = flops.total - before

            model._refill_memory = counting_refill  # type: ignore[method-assign]
            model.train()
        return {"update": flops.total - counted["refill"], **counted}


def count_step(size: Size, steps: int, past: int) -> int:
    """Operations of acting once, after `past` steps."""
    with at_update(size, steps, 1, "full", 1) as model:
        assert model._state is not None
        model._state["length"].fill_(past)
        never = torch.zeros(1, dtype=torch.bool)
        with Flops(skip=True) as flops:
            model.policy.act(torch.zeros(1, size.features), model._state, never, never)
        return flops.total


def count_rollout(name: str, steps: int, updates: int, scheme: str) -> dict[str, Any]:
    """Operations of a rollout in closed form, and counts over closed forms of four updates."""
    size = SIZES[name]
    cost = Cost(size)
    segment = steps // updates
    ratios = {}
    for n in sorted({1, updates // 2, updates - 1, updates}):
        counted, end = count_update(size, steps, updates, scheme, n), n * segment
        begin, how = (0, "full") if n == updates else (end - segment, scheme)
        expected = sum(cost.update(begin, end, how))
        if n < updates:
            expected += cost.refill(end, rewrite=n == updates - 1)
        ratios[n] = sum(counted.values()) / expected
    parts = cost.rollout(steps, updates, scheme)
    total = sum(parts.values())
    theirs = reference(size, steps, updates)["reference"] / steps
    return {
        "size": name,
        "steps": steps,
        "updates": updates,
        "scheme": scheme,
        "counted_over_closed_form": {n: round(ratio, 4) for n, ratio in ratios.items()},
        "gflop_per_step": {key: round(value / 1e9, 3) for key, value in parts.items()},
        "total_gflop_per_step": round(total / 1e9, 2),
        "reference_gflop_per_step": round(theirs / 1e9, 2),
        "reference_over_ours": round(theirs / total, 2),
    }


def default_updates(steps: int) -> list[int]:
    """Two numbers of updates for each T: segments of at most 4096 and 8192 steps."""
    most = max(4, steps // 4096)
    return [most, most // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[4096, 16_384, 65_536], help="lengths of a rollout, T")
    parser.add_argument("--size", choices=list(SIZES), default="tiny", help="size of the network that learns")
    parser.add_argument("--updates", type=int, nargs="+", help="updates in a rollout, K; two by default")
    parser.add_argument("--schemes", nargs="+", choices=SCHEMES, default=["detach"], help="how partial updates learn")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--count", choices=["only", "no", "too"], default="too", help="whether operations are counted")
    parser.add_argument("--smoke", action="store_true", help="512 steps, to see that it runs")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.row:
        row = json.loads(args.row)
        print(json.dumps(learn_rollout(SIZES[row.pop("size")], **row)))
        return
    lengths = [512] if args.smoke else args.steps
    rows, counts = [], []
    for steps in lengths if args.count != "only" else []:
        for scheme in args.schemes:
            for updates in args.updates or default_updates(steps):
                row = {
                    "size": args.size,
                    "steps": steps,
                    "updates": updates,
                    "scheme": scheme,
                    "device": args.device,
                    "precision": args.precision,
                }
                command = [sys.executable, __file__, "--row", json.dumps(row)]
                printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                row |= json.loads(printed.splitlines()[-1])
                rows.append(row)
                print(
                    f"{args.size} T {steps} K {updates} {scheme}: acts {row['act_steps_per_second']} steps/s; refill "
                    f"{row['refill_seconds']} s (last {row['last_refill_seconds']}), partial update "
                    f"{row['partial_seconds']} s, full {row['full_seconds']} s an epoch; rollout "
                    f"{row['rollout_seconds']} s; peak {row['peak_mib']} MiB",
                    flush=True,
                )
    for steps in lengths if args.count != "no" else []:
        updates = steps // min(COUNTED_SEGMENT, steps // 4)
        for scheme in args.schemes:
            row = count_rollout("tiny" if args.smoke else "small", steps, updates, scheme)
            counts.append(row)
            print(
                f"{row['size']} T {steps} K {updates} {scheme}: {row['total_gflop_per_step']} GFLOP per step "
                f"{row['gflop_per_step']}, reference {row['reference_gflop_per_step']}: {row['reference_over_ours']}x; "
                f"counted / closed form in updates {row['counted_over_closed_form']}",
                flush=True,
            )
    sizes = {name: asdict(size) for name, size in SIZES.items()}
    record = {"rows": rows, "counts": counts, "sizes": sizes, **machine(), "torch": torch.__version__}
    print(json.dumps(record))


if __name__ == "__main__":
    main()
