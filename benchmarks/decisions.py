"""Time of a decision over 500 memory elements, and of an update, for each memory.

The baseline of decisions is the Scene Memory Transformer as its paper writes it. At every step it embeds all poses
anew, fuses them with the embeddings of the observations, projects and encodes them; the present element attends to all
of them. `smt` gives the same numbers, which is checked here. The other memories give different ones.

An update computes the features of some decisions of whole episodes, and their gradients. "packed" computes decisions
with about equally many elements together. "padded" computes all decisions at once, each padded to the longest.
"one by one" computes each decision alone. The baseline of these three is "packed"; that of updates of different
memories is `smt`.

All rows of a table are timed in turn, in one process and on one thread. The ratio to the baseline is taken within a
turn; medians over turns are printed. Times are CPU time on a CPU, so that other processes do not count, and wall-clock
time on a GPU. Takes about three minutes; `--smoke` ends in a few seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _peer import machine
from torch import Tensor

from memenvs.agents.memory import Memory, StepInputs, make_memory, scene_memory
from memenvs.agents.memory.scene_memory import embed_age, embed_relative_poses
from memenvs.agents.memory.smt import SMTMemory

#: Width of an embedding: three images of 64 and the previous action of 16.
FEATURES = 208
DECISIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "smt": ("smt", {}),
    "smt, no encoder": ("smt", {"encoder": False}),
    "smt-factorized, fps 100": ("smt-factorized", {}),
    "smt-factorized, fps 25": ("smt-factorized", {"n_centres": 25}),
    "smt-factorized, window 100": ("smt-factorized", {"centres": "window"}),
    "smt-factorized, static 100": ("smt-factorized", {"centres": "static"}),
    "smt-causal": ("smt-causal", {}),
    "sm-pooling": ("sm-pooling", {}),
    "frmqn": ("frmqn", {}),
    "lstm": ("lstm", {"hidden_dim": 128}),
}
#: Number of memory elements of an update that are computed together.
PACKINGS = {
    "packed": scene_memory.ELEMENTS_AT_ONCE,
    "padded": dict.fromkeys(("cpu", "cuda"), 1 << 62),
    "one by one": dict.fromkeys(("cpu", "cuda"), 1),
}


def direct(memory: SMTMemory, x: StepInputs) -> Tensor:
    """Features of the last step as the paper writes them, float (B, D)."""
    assert x.pose is not None
    steps = x.pose.shape[1]
    age = embed_age(torch.arange(steps - 1, -1, -1, device=x.pose.device).float(), memory.config)
    view = torch.cat([embed_relative_poses(x.pose, x.pose[:, -1:]), age.expand(len(x.pose), -1, -1)], -1)
    psi = memory.fusion(torch.cat([x.embedding, memory.pose(view)], -1))
    encoded = psi if memory.encoder is None else memory.encoder(psi, psi, None)
    return memory.decoder(psi[:, -1:], encoded, None)[:, 0]


def episodes(count: int, steps: int, device: torch.device) -> StepInputs:
    """Random embeddings, and poses of a random walk."""
    start = torch.zeros(count, steps, dtype=torch.bool, device=device)
    start[:, 0] = True
    embedding = torch.randn(count, steps, FEATURES, device=device)
    return StepInputs(embedding, start, start.clone(), torch.randn(count, steps, 3, device=device).cumsum(1) * 0.1)


def in_turn(runs: dict[str, Callable[[], object]], turns: int, device: torch.device) -> dict[str, list[float]]:
    """Seconds of each run in each turn. A first turn warms up and does not count."""

    def now() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            return time.perf_counter()
        return time.process_time()

    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(turns + 1):
        for name, run in runs.items():
            began = now()
            run()
            if turn > 0:
                seconds[name].append(now() - began)
    return seconds


def table(seconds: dict[str, list[float]], baseline: str) -> list[dict[str, Any]]:
    """Row of each run: milliseconds, and speed over the baseline with quartiles over turns."""
    rows = []
    for name, times in seconds.items():
        ratio = np.array(seconds[baseline]) / np.array(times)
        quartiles = [round(float(value), 2) for value in np.percentile(ratio, [25, 75])]
        milliseconds = round(1000 * float(np.median(times)), 3)
        rows.append(
            {
                "name": name,
                "ms": milliseconds,
                "times_faster": round(float(np.median(ratio)), 2),
                "quartiles": quartiles,
            }
        )
    return rows


@torch.no_grad()
def decision_times(elements: int, robots: int, turns: int, device: torch.device) -> list[dict[str, Any]]:
    """Times of one decision of each robot over its memory elements."""
    x = episodes(robots, elements, device)
    runs: dict[str, Callable[[], object]] = {}
    for name, (memory_name, settings) in DECISIONS.items():
        memory = make_memory(memory_name, FEATURES, **settings).to(device).eval()
        _, state = memory.prefill(x.steps(0, elements - 1), memory.initial_state(robots), last=1)
        if isinstance(memory, SMTMemory):
            features, _ = memory.step(x.steps(elements - 1, elements), state)
            torch.testing.assert_close(features, direct(memory, x), atol=1e-4, rtol=0)
            runs["direct" + name.removeprefix("smt")] = lambda memory=memory: direct(memory, x)
        runs[name] = lambda memory=memory, state=state: memory.step(x.steps(elements - 1, elements), state)
    return table(in_turn(runs, turns, device), "direct")


def memory_times(shape: tuple[int, int, int], dim: int, turns: int, device: torch.device) -> list[dict[str, Any]]:
    """Times of an update of each memory; arguments as in `update_times`."""
    count, decisions, steps = shape
    heads = {"heads": dim // 16}
    every: dict[str, tuple[str, dict[str, Any]]] = {
        "smt": ("smt", heads),
        "smt, no encoder": ("smt", heads | {"encoder": False}),
        "smt-factorized, fps 50": ("smt-factorized", heads | {"n_centres": 50}),
        "smt-causal": ("smt-causal", heads),
        "sm-pooling": ("sm-pooling", {}),
        "frmqn": ("frmqn", {}),
        "frmqn, bptt 32": ("frmqn", {"bptt": 32}),
    }
    x = episodes(count, steps, device)
    at = torch.randint(steps, (count, decisions), device=device)

    def update(memory: Memory) -> None:
        memory.zero_grad()
        memory.features_at(x, at).square().sum().backward()

    made = {name: make_memory(memory, FEATURES, dim=dim, **settings) for name, (memory, settings) in every.items()}
    made["lstm"] = make_memory("lstm", FEATURES, hidden_dim=dim)
    runs = {name: lambda memory=memory: update(memory.to(device)) for name, memory in made.items()}
    return table(in_turn(runs, turns, device), "smt")


def update_times(
    name: str, settings: dict[str, Any], shape: tuple[int, int, int], turns: int, device: torch.device
) -> list[dict[str, Any]]:
    """Times of an update over (episodes, decisions of each, steps of each)."""
    count, decisions, steps = shape
    memory = make_memory(name, FEATURES, **settings).to(device)
    x = episodes(count, steps, device)
    at = torch.randint(steps, (count, decisions), device=device)

    def update(memory: Memory, at_once: dict[str, int]) -> None:
        scene_memory.ELEMENTS_AT_ONCE = at_once
        memory.zero_grad()
        memory.features_at(x, at).square().sum().backward()

    runs = {packing: lambda at_once=at_once: update(memory, at_once) for packing, at_once in PACKINGS.items()}
    return table(in_turn(runs, turns, device), "packed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="few elements and turns, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    parser.add_argument("--elements", type=int, default=500, help="memory elements of a decision")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    device = torch.device(args.device)
    elements, turns = (20, 2) if args.smoke else (args.elements, args.turns)
    tables = {}
    for robots in (1, 16):
        tables[f"a decision of {robots} over {elements} elements"] = decision_times(elements, robots, turns, device)
    shape = (2, 3, 20) if args.smoke else (16, 8, 200)
    title = f"an update of each memory, 64 wide, {shape[0]} episodes of {shape[2]} steps, {shape[1]} decisions of each"
    tables[title] = memory_times(shape, 64, min(turns, 5), device)
    sizes = {"dim": 64, "heads": 4}
    for name, settings, shape in (
        ("smt", sizes, (16, 8, 200)),
        ("smt-factorized", sizes | {"n_centres": 50}, (16, 8, 200)),
        ("smt", {}, (8, 32, 500)),
    ):
        shape = (2, 3, 20) if args.smoke else shape
        count, decisions, steps = shape
        width = settings.get("dim", 128)
        title = f"an update of {name}, {width} wide, {count} episodes of {steps} steps, {decisions} decisions of each"
        tables[title] = update_times(name, settings, shape, min(turns, 5), device)
    if not args.json:
        for title, rows in tables.items():
            print(title)
            for row in rows:
                print(f"  {row['name']:30s} {row['ms']:9.3f} ms  {row['times_faster']:6.2f}x  {row['quartiles']}")
    record = {"tables": tables, **machine(), "torch": torch.__version__, "device": args.device}
    print(json.dumps(record))


if __name__ == "__main__":
    main()
