"""Speed of Room Ballet: training steps, reads in chunks, queries and episodes.

- Training step: `BalletModel` against a straightforward one, which convolves every frame in memory and projects keys
  and values of every token. Both have the same batch and weights, and their gradients are compared in the same run.
- Read in chunks: ours, which builds no token, against gathering the best chunks of each query and projecting keys and
  values from them, and beside reading all tokens at once ("flat").
- Queries: answered from existing tokens, 32 episodes at a time, without gradient: flat, in chunks, and from the
  tables that tokens are sums of, where no token is built.
- Episodes a second.

All on one thread, in turn. Time is CPU time, so other processes do not count. Memory is the peak allocation of a read.
`--smoke` ends in seconds.

    python benchmarks/ballet.py [--smoke] [--json]
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable

import numpy as np
import torch
from _peer import machine
from torch import Tensor
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from memenvs.agents.memory.chunking import Chunks
from memenvs.agents.memory.reader import MemoryLayer
from memenvs.agents.memory.tokens import SUMMARY_EPS, ChunkedTokens, Tokens
from memenvs.agents.papers.sat.model import BalletModel
from memenvs.query_task import QueryBatch, make_query_task
from memenvs.room_ballet.frames import frame_table
from memenvs.room_ballet.tasks import make_ballet


def plain_logits(model: BalletModel, batch: QueryBatch) -> Tensor:
    """Convolve all frames, build all tokens and project them in each layer; float, (B, 8)."""
    steps, _ = model.steps_read(batch)
    frame, place = (np.take_along_axis(values, steps, 1) for values in (batch.rows, batch.places))
    encoded = model.encoder(torch.from_numpy(frame_table()[frame]).flatten(0, 1)).unflatten(0, frame.shape)
    assert model.places is not None
    tokens = encoded + model.times[steps] + model.places.table()[place]
    query = model.encoder(torch.from_numpy(frame_table()[batch.query_rows]))
    for layer in model.reader.layers:
        assert isinstance(layer, MemoryLayer)
        query = query + layer.local_mix(layer.local_value(layer.local_norm(query)))
        q = layer.relevance_query(layer.read_norm(query))
        means = tokens / (1 + SUMMARY_EPS)  # as `MemoryLayer.read_all`: each token is a chunk of one
        scores = (layer.relevance_key(means) @ q[:, :, None])[..., 0] / q.shape[1] ** 0.5  # (B, N)
        values = layer.mix(layer.value(tokens))
        query = query + (scores.softmax(1)[..., None] * values).sum(1)
        query = query + layer.mlp(layer.mlp_norm(query))
    return model.head(query)


def gathered_read(layer: MemoryLayer, query: Tensor, values: Tensor, chunks: Chunks, top_k: int) -> Tensor:
    """Read in chunks by the equations: summaries, gather of the best chunks, attention.

    Args:
        layer: Layer with the weights.
        query: float, (B, Q, D).
        values: float, (B, N, D); tokens.
        chunks: Tokens of each chunk, C chunks of at most n tokens.
        top_k: Chunks that are read.

    Returns:
        float, (B, Q, D).
    """
    batch, queries, dim = query.shape
    size, heads = chunks.index.shape[2], layer.heads
    normed = layer.read_norm(query)
    rows = torch.arange(batch)[:, None, None]
    inside = values[rows, chunks.index] * chunks.mask[..., None]  # (B, C, n, D)
    summary = inside.sum(2) / (chunks.mask.sum(2, keepdim=True) + SUMMARY_EPS)
    scores = layer.relevance_query(normed) @ layer.relevance_key(summary).transpose(1, 2) / dim**0.5
    scores = scores.masked_fill(~chunks.mask.any(2)[:, None], -torch.inf)
    best = scores.topk(min(top_k, scores.shape[2]), dim=2)
    taken = inside[rows, best.indices]  # (B, Q, k, n, D)
    valid = chunks.mask[rows, best.indices]  # (B, Q, k, n)
    q = layer.query(normed).view(batch, queries, 1, heads, 1, -1)
    k, v = (
        part(taken).view(batch, queries, -1, size, heads, dim // heads).transpose(3, 4)
        for part in (layer.key, layer.value)
    )
    inner = (q * k).sum(-1) * layer.scale
    inner = inner.masked_fill(~valid[:, :, :, None], -torch.inf).softmax(-1)
    attended = (inner[..., None] * v).sum(4).flatten(3)  # (B, Q, k, D)
    return (best.values.softmax(2)[..., None] * layer.mix(attended)).sum(2)


def in_turn(runs: dict[str, Callable[[], object]], turns: dict[str, int]) -> dict[str, float]:
    """Measure the median CPU seconds of each function, in turn, after one warm-up call.

    Args:
        runs: Name -> function.
        turns: Name -> number of measured calls.
    """
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(1 + max(turns.values())):
        for name, run in runs.items():
            if turn > turns[name]:
                continue
            started = time.process_time()
            run()
            if turn > 0:
                spent[name].append(time.process_time() - started)
    return {name: float(np.median(times)) for name, times in spent.items()}


def training_step(batch_size: int, turns: int) -> dict[str, object]:
    """Compare training steps: forward, backward, clip and Adam on the same episodes."""
    task = make_query_task("memenvs/RoomBallet-MVFO-v0", {})
    torch.manual_seed(0)
    model = BalletModel(task, strategy="mvfo")
    batch = task.sample_batch(batch_size, np.random.default_rng(0))
    labels = torch.from_numpy(batch.answers)
    forward: dict[str, Callable[[], Tensor]] = {
        "ours": lambda: model(batch),
        "plain": lambda: plain_logits(model, batch),
    }
    gradients = {}
    for name, logits in forward.items():
        model.zero_grad()
        functional.cross_entropy(logits(), labels).backward()
        gradients[name] = torch.cat(
            [
                (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).flatten()
                for parameter in model.parameters()
            ]
        )
    distance = float((gradients["ours"] - gradients["plain"]).norm() / gradients["plain"].norm())
    optimizer = torch.optim.Adam(model.parameters(), 1e-6, fused=True)

    def step(logits: Callable[[], Tensor]) -> None:
        functional.cross_entropy(logits(), labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()

    seconds = in_turn(
        {name: (lambda logits=logits: step(logits)) for name, logits in forward.items()},  # type: ignore[misc]
        {"ours": 10 * turns, "plain": turns},
    )
    return {
        "batch": batch_size,
        "milliseconds": {name: round(1000 * value, 2) for name, value in seconds.items()},
        "ratio": round(seconds["plain"] / seconds["ours"], 1),
        "gradients_apart": distance,
    }


def peak(run: Callable[[], object]) -> float:
    """Measure the peak allocation of a call, in MiB."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        run()
    now = most = 0
    for event in profiled.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most / 2**20


def chunked_read(batch_size: int, queries: int, turns: int) -> dict[str, object]:
    """Compare reads of 1280 frames by one layer, in the best four chunks.

    A chunk holds frames of one place. The time includes the gradients of weights, queries and tables.
    """
    task = make_query_task("memenvs/RoomBallet-ShortStay-v0", {})
    torch.manual_seed(0)
    model = BalletModel(task, memory="sat-pm-ph")
    with torch.no_grad():
        _, tokens, chunks = model.reader_inputs(task.sample_batch(batch_size, np.random.default_rng(0)))
    assert chunks is not None
    layer = model.reader.layers[0]
    assert isinstance(layer, MemoryLayer)
    tokens = Tokens(tables=tuple(table.requires_grad_() for table in tokens.tables), rows=tokens.rows)
    query = torch.randn(batch_size, queries, 128, requires_grad=True)

    def ours() -> Tensor:
        return layer.read_chunks(layer.read_norm(query), tokens, ChunkedTokens.of(tokens, chunks), 4)[0]

    def gather() -> Tensor:
        values = tokens.as_vectors().values
        assert values is not None
        return gathered_read(layer, query, values, chunks, 4)

    torch.testing.assert_close(ours(), gather(), rtol=1e-3, atol=1e-4)
    runs: dict[str, Callable[[], object]] = {
        "ours": lambda: ours().sum().backward(),
        "gather": lambda: gather().sum().backward(),
        "flat": lambda: layer.read_all(layer.read_norm(query).flatten(0, 1), tokens)[0].sum().backward(),
    }
    seconds = in_turn(runs, dict.fromkeys(runs, turns))
    return {
        "batch": batch_size,
        "queries": queries,
        "milliseconds": {name: round(1000 * value, 2) for name, value in seconds.items()},
        "peak_mib": {name: round(peak(run), 1) for name, run in runs.items()},
    }


@torch.no_grad()
def query_times(size: int, batch_size: int, turns: int) -> dict[str, object]:
    """Measure milliseconds of a query, and the speed-up over flat reading of tokens.

    Args:
        size: Rooms along each side of the grid.
        batch_size: Episodes that are answered together, one query each.
        turns: Measurements.
    """
    task, rng = make_query_task("memenvs/RoomBallet-ShortStay-v0", {"size": size}), np.random.default_rng(0)
    batch, runs = task.sample_batch(batch_size, rng), {}
    for name, memory in (("flat", "sat-fifo"), ("by time", "sat-fifo-th"), ("by place", "sat-pm-ph")):
        torch.manual_seed(0)
        model = BalletModel(task, memory=memory)
        query, tokens, chunks = model.reader_inputs(batch)
        for kind, form in ((name, tokens.as_vectors()), (f"{name}, of tables", tokens)):
            runs[kind] = functools.partial(model.reader, query, form, chunks)
    seconds = in_turn(runs, dict.fromkeys(runs, turns))
    return {
        "rooms": size**2,
        "batch": batch_size,
        "milliseconds": {name: round(1000 * value / batch_size, 3) for name, value in seconds.items()},
        "flat_over": {name: round(seconds["flat"] / value, 2) for name, value in seconds.items()},
    }


def sampling(turns: int) -> dict[str, int]:
    """Measure episodes a second of each task, in batches of 32."""
    rates = {}
    for name in ("MultiTask", "MVFO", "Next", "ShortStay"):
        task, rng = make_ballet(name), np.random.default_rng(0)
        seconds = in_turn({name: functools.partial(task.sample_batch, 32, rng)}, {name: turns})[name]
        rates[name] = round(32 / seconds)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="few turns and small batches, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = {
        "training_step": training_step(2 if args.smoke else 32, 1 if args.smoke else 5),
        "chunked_read": [
            chunked_read(*sizes, 2 if args.smoke else 20) for sizes in ([(2, 1)] if args.smoke else [(32, 1), (8, 33)])
        ],
        "queries": [query_times(size, 2 if args.smoke else 32, 2 if args.smoke else 50) for size in (3, 4, 5)],
        "episodes_per_second": sampling(3 if args.smoke else 100),
        **machine(),
        "torch": torch.__version__,
    }
    if not args.json:
        step = results["training_step"]
        print(f"training step of Ballet-MVFO, one thread: {step}")
        for row in results["chunked_read"]:  # type: ignore[union-attr]
            print(f"read of 1280 frames in chunks of 32, forward and backward: {row}")
        for row in results["queries"]:  # type: ignore[union-attr]
            print(f"queries about 1280 frames: {row}")
        print(f"episodes a second: {results['episodes_per_second']}")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
