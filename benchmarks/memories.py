"""Speed of memories of about as many weights, acting and learning, over that of the LSTM.

Learning is a forward and a backward pass over T steps of B sequences, with trials of 200 steps on average that start
anywhere; B T is the same for every T. Acting is one step of 64 sequences after T steps. All memories take turns, on one
thread; times are CPU seconds, and a figure is the median of the turns with their range.

    python benchmarks/memories.py [--weights 300000] [--turns 5] [--only NAME ...] [--json] [--smoke]

Takes about fifteen minutes; `--smoke` ends in seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import fields
from functools import partial

import torch
from _peer import machine

from memenvs.agents.memory import Memory, StepInputs, make_memory, memory_spec
from memenvs.agents.policies.small_sizes import with_size

BASE = "lstm"
MEMORIES = (
    BASE, "gru", "window", "mingru", "lru", "s5", "gated-deltanet", "mlstm", "relic", "memo", "trxl", "gtrxl", "ct-lt"
)  # fmt: skip
LENGTHS = (512, 4096, 16_384)
#: Width of the embedding, steps of all sequences of a learning pass, steps of a trial on average, acting sequences.
WIDTH, STEPS, TRIAL, ACTORS = 64, 16_384, 200, 64


def make(name: str, weights: int) -> Memory:
    """A memory of about as many weights that can learn from episodes of any length."""
    settings = with_size(name, weights, {}, WIDTH)
    if "max_episode_steps" in {field.name for field in fields(memory_spec(name).config)}:
        settings["max_episode_steps"] = STEPS  # rows of a table of positions, which are not counted as weights
    return make_memory(name, WIDTH, **settings)


def draw(batch: int, steps: int) -> StepInputs:
    """Random steps."""
    generator = torch.Generator().manual_seed(0)
    starts = torch.rand(batch, steps, generator=generator) < 1 / TRIAL
    starts[:, 0] = True
    return StepInputs(torch.randn(batch, steps, WIDTH, generator=generator), starts, starts)


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of a call."""
    began = time.process_time()
    run()
    return time.process_time() - began


def learn(memory: Memory, x: StepInputs) -> None:
    """One forward and one backward pass."""
    features, _ = memory.train()(x)
    features.square().mean().backward()


def act(memory: Memory, length: int, count: int) -> Callable[[], None]:
    """Steps of `ACTORS` sequences, after `length` steps of one trial."""
    start = torch.zeros(ACTORS, length, dtype=torch.bool)
    start[:, 0] = True
    memory.eval()
    _, state = memory.prefill(
        StepInputs(torch.randn(ACTORS, length, WIDTH), start, start), memory.initial_state(ACTORS, max_steps=2 * length)
    )
    one = torch.zeros(ACTORS, 1, dtype=torch.bool)
    x = StepInputs(torch.randn(ACTORS, 1, WIDTH), one, one)

    def run() -> None:
        nonlocal state
        with torch.no_grad():
            for _ in range(count):
                _, state = memory.step(x, state)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=int, default=300_000, help="of each memory, about (default %(default)s)")
    parser.add_argument("--turns", type=int, default=5, help="(default %(default)s)")
    parser.add_argument("--only", nargs="+", choices=MEMORIES[1:], default=list(MEMORIES[1:]), metavar="NAME")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    parser.add_argument("--smoke", action="store_true", help="short sequences, one turn")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lengths, turns, steps = ((16, 32), 1, 32) if options.smoke else (LENGTHS, options.turns, STEPS)
    memories = {name: make(name, options.weights) for name in (BASE, *options.only)}
    rows = []
    for length in lengths:
        x = draw(steps // length, length)
        times: dict[str, list[float]] = {name: [] for name in memories}
        for _ in range(turns + 1):  # the first warms up
            for name, memory in memories.items():
                times[name].append(seconds(partial(learn, memory, x)))
        rows += _rows("learning", length, times)
    for length in lengths[:1]:
        times = {name: [] for name in memories}
        for name, memory in memories.items():
            run = act(memory, length, 2 if options.smoke else 50)
            times[name] = [seconds(run) for _ in range(turns + 1)]
        rows += _rows("acting", length, times)
    weights = {name: sum(part.numel() for part in memory.parameters()) for name, memory in memories.items()}
    if not options.json:
        print(f"weights: {', '.join(f'{name} {count:,}' for name, count in weights.items())}")
        for row in rows:
            speed = f"{row['speed']:6.2f} ({row['least']:.2f} to {row['most']:.2f})"
            print(f"{row['what']:8} T={row['length']:<6} {row['memory']:15} {speed}")
    print(json.dumps({"weights": weights, "rows": rows, **machine(), "torch": torch.__version__}))


def _rows(what: str, length: int, times: dict[str, list[float]]) -> list[dict[str, object]]:
    """Speeds over that of `BASE`, turn by turn, without the first."""
    rows = []
    for name, own in times.items():
        ratios = [base / other for base, other in zip(times[BASE][1:], own[1:], strict=True)]
        middle = statistics.median(ratios)
        rows.append(
            {"what": what, "length": length, "memory": name, "speed": middle, "least": min(ratios), "most": max(ratios)}
        )
    return rows


if __name__ == "__main__":
    main()
