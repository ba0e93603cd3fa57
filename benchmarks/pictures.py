"""Speed of picture tasks: training steps of `PictureModel` against a straightforward model.

The straightforward model encodes the picture of every step in memory, builds all tokens and projects keys and values of
each in every layer; in chunks it gathers the best chunks of each query first. It encodes and decodes by PyTorch's own
convolutions. Both have the same batch and weights, and their gradients are compared in the same run. All on one thread,
in turn; time is CPU time, so other processes do not count. `--smoke` ends in seconds.

    python benchmarks/pictures.py [--smoke] [--json]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from _peer import machine
from ballet import gathered_read, in_turn
from torch import Tensor, nn
from torch.nn import functional

from memenvs.agents.encoders.pictures import PatchDecoder, PatchEncoder, as_channels
from memenvs.agents.memory.chunking import chunks_by_place
from memenvs.agents.memory.reader import MemoryLayer
from memenvs.agents.memory.tokens import SUMMARY_EPS
from memenvs.agents.papers.sat.learner import make_prediction
from memenvs.agents.papers.sat.picture_model import PictureModel
from memenvs.faces.world import cut_patches
from memenvs.query_task import QueryBatch, make_query_task
from memenvs.retention import strategy_numbers

#: Name of a row -> environment, its settings, and settings of the model.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "FFHQ-world, all tokens": ("memenvs/FFHQWorld-v0", {"num_images": 64}, {}),
    "FFHQ-world, chunks of 16 regions": (
        "memenvs/FFHQWorld-v0",
        {"num_images": 64, "places": 16},
        {"memory": "sat-pm-ph"},
    ),
    "FFHQ-world with a long stay": ("memenvs/FFHQWorld-LongStay-v0", {"num_images": 64}, {"strategy": "mvfo"}),
    "Ballet3D": ("memenvs/Ballet3D-v0", {}, {"strategy": "lvfo"}),
    "ViewRecall": ("memenvs/ViewRecall-v0", {}, {"strategy": "mvfo"}),
}


def encode_steps(model: PictureModel, batch: QueryBatch, rows: np.ndarray) -> Tensor:
    """Encode what each step shows, one by one; float, (B, S, D)."""
    encoder = model.encoder
    if isinstance(encoder, PatchEncoder):
        picture, cell = np.divmod(rows, encoder.rows_per_picture)
        numbers, index = np.unique(picture, return_inverse=True)
        pictures = cut_patches(batch.pictures(numbers))[index.ravel(), cell.ravel()]
    else:
        pictures = batch.pictures(rows.ravel())
    features = encoder.convolutions(as_channels(torch.from_numpy(pictures), torch.float32))
    return encoder.linear(features.flatten(1)).unflatten(0, rows.shape)


def decoded(head: nn.Module, vectors: Tensor) -> Tensor:
    """Decode, patches by PyTorch's transposed convolutions; float, (P, ...)."""
    return (head.layers(vectors).movedim(1, 3) + 1) / 2 if isinstance(head, PatchDecoder) else head(vectors)


def plain_answers(model: PictureModel, batch: QueryBatch, strategies: np.ndarray) -> Tensor:
    """Encode every step, build all tokens, and project them in each layer."""
    kept = model.retained_steps(batch, strategies)
    steps = np.argsort(~kept, axis=1, kind="stable")[:, : int(kept.sum(1).max())]
    assert kept.sum(1).min() == steps.shape[1]  # all memories are full
    rows, places, regions = (
        np.take_along_axis(values, steps, 1) for values in (batch.rows, batch.places, batch.regions)
    )
    tokens = encode_steps(model, batch, rows) + model.times[torch.from_numpy(steps)]
    if model.places is not None:
        tokens = tokens + model.places.table()[torch.from_numpy(places)]
    first = None if batch.query_rows is None else encode_steps(model, batch, batch.query_rows[:, None])[:, 0]
    query = model.queries(batch, first)
    for layer in model.reader.layers:
        assert isinstance(layer, MemoryLayer)
        shape = query.shape[:2]
        local = layer.attend_to_queries(layer.local_norm(query).flatten(0, 1), (shape[0], shape[1]), False)
        query = query + local.unflatten(0, shape)
        if model.config.is_chunked:
            chunks = chunks_by_place(
                torch.from_numpy(regions), torch.ones(rows.shape, dtype=torch.bool), model.config.chunk
            )
            query = query + gathered_read(layer, query, tokens, chunks, model.config.top_k)
        else:
            keys = layer.relevance_key(tokens / (1 + SUMMARY_EPS))  # as `MemoryLayer.read_all`
            scores = layer.relevance_query(layer.read_norm(query)) @ keys.transpose(1, 2) / query.shape[-1] ** 0.5
            query = query + scores.softmax(2) @ layer.mix(layer.value(tokens))
        query = query + layer.mlp(layer.mlp_norm(query))
    if batch.query_moves is None:
        return decoded(model.head, query[:, 0])
    return decoded(model.head, query.flatten(0, 1)).unflatten(0, (len(batch), -1))


def training_step(case: str, batch_size: int, turns: int) -> dict[str, object]:
    """Compare training steps: forward, backward, clip and Adam on the same episodes.

    Args:
        case: A name in `CASES`.
        batch_size: B.
        turns: Measured steps of the straightforward model.
    """
    env, env_kwargs, settings = CASES[case]
    torch.manual_seed(0)
    model = make_prediction(make_query_task(env, env_kwargs), settings).model
    batch = model.task.sample_batch(batch_size, np.random.default_rng(0))
    strategies = strategy_numbers(model.config.strategy_name, batch_size)
    truth = torch.from_numpy(batch.answers)

    def loss(answers: Tensor) -> Tensor:
        if model.task.classes:
            return functional.cross_entropy(answers, truth)
        return (answers - truth / 255).square().mean()

    def ours() -> Tensor:
        """Answers, after the picture at the start of a query with moves."""
        answers, start, _ = model.predict(batch, strategies)
        return answers if start is None else torch.cat([start[:, None], answers], 1)

    forward: dict[str, Callable[[], Tensor]] = {
        "ours": ours,
        "plain": lambda: plain_answers(model, batch, strategies),
    }
    gradients = {}
    for name, answers in forward.items():
        model.zero_grad()
        loss(answers()).backward()
        gradients[name] = torch.cat(
            [
                (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).flatten()
                for parameter in model.parameters()
            ]
        )
    distance = float((gradients["ours"] - gradients["plain"]).norm() / gradients["plain"].norm())
    optimizer = torch.optim.Adam(model.parameters(), 1e-6, fused=True)

    def step(answers: Callable[[], Tensor]) -> None:
        loss(answers()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()

    runs = {name: partial(step, answers) for name, answers in forward.items()}
    seconds = in_turn(runs, {"ours": 2 * turns, "plain": turns})
    return {
        "case": case,
        "batch": batch_size,
        "milliseconds": {name: round(1000 * value, 1) for name, value in seconds.items()},
        "ratio": round(seconds["plain"] / seconds["ours"], 1),
        "gradients_apart": distance,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="few turns and small batches, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    args = parser.parse_args()
    torch.set_num_threads(1)
    cases = list(CASES)[:2] if args.smoke else list(CASES)
    results = {
        "training_step": [training_step(case, 2 if args.smoke else 16, 1 if args.smoke else 5) for case in cases],
        **machine(),
        "torch": torch.__version__,
    }
    if not args.json:
        for row in results["training_step"]:
            print(f"training step, one thread: {row}")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
