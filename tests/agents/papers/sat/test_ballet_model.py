"""Models of Room Ballet: sizes, tokens, and the training step against a straightforward one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from memenvs.agents.experiments.progress import count_weights
from memenvs.agents.memory.place_codes import sinusoid
from memenvs.agents.memory.reader import MemoryLayer
from memenvs.agents.papers.sat.model import BalletModel, slots_by_place
from memenvs.query_task import PictureTask, QueryBatch, make_query_task
from memenvs.retention import retained
from memenvs.room_ballet.dances import PERFORMANCE_CELLS
from memenvs.room_ballet.frames import frame_table


def task(name: str, **settings: Any) -> PictureTask:
    made = make_query_task(f"memenvs/RoomBallet-{name}-v0", settings)
    assert isinstance(made, PictureTask)
    return made


def model(name: str = "MVFO", seed: int = 0, **settings: Any) -> BalletModel:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return BalletModel(task(name), **settings)


def episodes(name: str, count: int, seed: int = 0) -> QueryBatch:
    return task(name).sample_batch(count, np.random.default_rng(seed))


def plain_queries(own: BalletModel, batch: QueryBatch, strategies: np.ndarray) -> list[Tensor]:
    """Queries after each layer, where every frame is convolved and every token projected."""
    images = torch.from_numpy(frame_table()[batch.rows])
    encoded = own.encoder(images.flatten(0, 1)).unflatten(0, batch.rows.shape)
    tokens = encoded + sinusoid(torch.arange(batch.rows.shape[1]).double(), 128)
    tokens = tokens + sinusoid(torch.arange(own.task.n_places).double(), 128)[batch.places]
    kept = retained(batch.episodes.visit_place, strategies, own.capacity)
    in_memory = torch.from_numpy(np.take_along_axis(kept, batch.episodes.visit.astype(int), 1))
    queries = [own.encoder(torch.from_numpy(frame_table()[batch.query_rows]))]
    for layer in own.reader.layers:
        queries.append(plain_layer(layer, queries[-1], tokens, in_memory))
    return queries[1:]


def plain_layer(layer: MemoryLayer, query: Tensor, tokens: Tensor, in_memory: Tensor) -> Tensor:
    """Flat reading of one query: the mean of projected tokens, weighted by relevance."""
    query = query + layer.local_mix(layer.local_value(layer.local_norm(query)))
    q = layer.relevance_query(layer.read_norm(query))
    scores = (layer.relevance_key(tokens / (1 + 1e-5)) @ q[:, :, None])[..., 0] / 128**0.5
    weights = scores.masked_fill(~in_memory, -torch.inf).softmax(1)
    query = query + (weights[..., None] * layer.mix(layer.value(tokens))).sum(1)
    return query + layer.mlp(layer.mlp_norm(query))


def test_calibrated_attention_is_not_uniform_at_the_start():
    """Standard deviation of the first layer's scores over a memory, with every token built."""
    batch = episodes("LVFO", 8)
    for initialisation, low, high in (("calibrated", 1.3, 2.0), ("release", 0.1, 0.3)):
        own = model("LVFO", strategy="lvfo", initialisation=initialisation)
        encoded = own.encoder(torch.from_numpy(frame_table()[batch.rows]).flatten(0, 1)).unflatten(0, batch.rows.shape)
        tokens = encoded + sinusoid(torch.arange(576), 128) + sinusoid(torch.arange(8), 128)[batch.places]
        layer, query = own.reader.layers[0], own.encoder(torch.from_numpy(frame_table()[batch.query_rows]))
        q = layer.relevance_query(layer.read_norm(query))
        scores = (layer.relevance_key(tokens) @ q[:, :, None])[..., 0] / 128**0.5
        assert low < scores.std(1).mean() < high


def test_keys_like_queries_open_the_queried_room_from_the_start():
    """Four of 25 rooms are opened: 16 % by chance."""
    batch = task("ShortStay", size=5).sample_batch(40, np.random.default_rng(0))
    place, queried = (torch.from_numpy(places.astype(int)) for places in (batch.places, batch.episodes.query_place))
    for settings, low, high in (
        ({"keys_like_queries": True}, 0.4, 0.9),
        ({}, 0.0, 0.3),
        ({"initialisation": "release"}, 0.0, 0.3),
    ):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            own = BalletModel(task("ShortStay", size=5), memory="sat-pm-ph", **settings)
        query, tokens, chunks = own.reader_inputs(batch)
        read = own.reader.attention(query, tokens, chunks, own.config.top_k)[:, :, 0] > 0
        opened = (read & (place == queried[:, None])).any(-1).float().mean(1)
        assert (low <= opened).all() and (opened <= high).all()


@pytest.mark.parametrize(
    ("name", "settings", "weights"),
    [
        ("MVFO", {"memory": "sat-fifo"}, {"all": 839_144, "memory": 792_576}),  # published
        ("Next", {"memory": "t-fifo+a"}, {"all": 839_656, "memory": 792_576}),
        ("MVFO", {"memory": "sat-pm", "size": 100_000}, {"all": 135_704, "memory": 112_896}),  # width 48
        ("Next", {"memory": "t-fifo+a", "size": "small", "layers": 1}, {"all": 77_736, "memory": 49_920}),
    ],
)
def test_weights_of_sizes(name: str, settings: dict[str, Any], weights: dict[str, int]) -> None:
    assert count_weights(model(name, **settings)) == weights


@pytest.mark.parametrize(("name", "own_layers"), [("MultiTask", 0), ("Next", 1)])
@pytest.mark.slow
def test_training_step_is_that_of_a_straightforward_model(name, own_layers):
    """Loss and the gradient of every weight in double precision; with several tasks, each episode has a strategy."""
    batch, strategies = episodes(name, 4, 3), np.arange(4) if name == "MultiTask" else np.zeros(4, int)
    labels = torch.from_numpy(batch.answers)
    steps = []
    for fast in (True, False):
        own = model(name, own_layers=own_layers).double()
        for buffer in (own.times, own.places.codes):  # kept in single precision
            buffer.copy_(sinusoid(torch.arange(len(buffer)).double(), 128))
        if fast:
            logits, _, of_dancer = own.predict(batch, strategies)
        else:
            queries = plain_queries(own, batch, strategies)
            logits, of_dancer = own.head(queries[-1]), own_layers and own.own_head(queries[own_layers - 1])
        loss = functional.cross_entropy(logits, labels)
        if own_layers:
            loss = loss + functional.cross_entropy(of_dancer, torch.from_numpy(batch.answers))
        loss.backward()
        steps.append((loss.item(), {name: parameter.grad for name, parameter in own.named_parameters()}))
    (ours, gradients), (plain, expected) = steps
    assert ours == pytest.approx(plain, rel=1e-12)
    for name, gradient in expected.items():
        if gradient is not None and float(gradient.abs().max()) > 1e-12:  # else a bias that cancels in the softmax
            torch.testing.assert_close(
                gradients[name], gradient, rtol=1e-8, atol=1e-9 * float(gradient.abs().max()), msg=name
            )


def test_actions_are_tokens_of_their_own():
    """Another action changes the answers of "t-fifo+a" only; no action follows the last visit."""
    batch = episodes("Next", 3)
    moved = batch.moves.copy()
    moved[:, 64:96] = (moved[:, 64:96] + 1) % 4
    other = replace(batch, moves=moved)
    for memory in ("t-fifo", "t-fifo+a", "sat-fifo"):
        own = model("Next", memory=memory, layers=1)
        differ = not torch.equal(own(batch), own(other))
        assert differ == (memory == "t-fifo+a")
    _, tokens, _ = model("Next", memory="t-fifo+a").reader_inputs(batch)
    assert tokens.count == 1320
    assert tokens.mask is not None and int((~tokens.mask).sum()) == 3


def test_times_of_actions_are_between_those_of_frames():
    """40 visits of 32 frames and the 39 actions between them, in order of time; actions are the last tokens."""
    frame = [33 * visit + step for visit in range(40) for step in range(32)]
    action = [33 * visit + 32 for visit in range(39)]
    units = np.array(frame + action)
    for time_index, expected in (("step", units), ("age", 1318 - units), ("mod32", units % 32)):
        own = model("Next", memory="t-fifo+a", time_index=time_index)
        _, tokens, _ = own.reader_inputs(episodes("Next", 1))
        assert tokens.rows[1][0, :-1].tolist() == expected.tolist()


def test_memory_without_places_does_not_know_them():
    batch = episodes("MultiTask", 3)
    other = replace(batch, places=(batch.places + 1) % 8)
    blind, sighted = (model("MultiTask", memory=name, capacity=None, layers=1) for name in ("t-fifo", "sat-fifo"))
    torch.testing.assert_close(blind(batch), blind(other))
    assert not torch.allclose(sighted(batch), sighted(other), atol=1e-6)


@pytest.mark.parametrize("memory", ["sat-fifo", "t-fifo+a"])
@pytest.mark.slow
def test_stride_within_visits(memory):
    """Frames that are skipped change nothing; those that are read are enough to identify the dance."""
    batch = episodes("Next", 2)
    for first, steps_of_visit in ((0, [0, 5, 10, 15, 20, 25, 30]), (20, [20, 25, 30])):
        assert len({tuple(positions) for positions in PERFORMANCE_CELLS[:, first::5].tolist()}) == 8
        own = model("Next", memory=memory, first=first, every=5, layers=1)
        steps, is_kept = own.steps_read(batch)
        read = (np.arange(40)[:, None] * 32 + steps_of_visit).ravel()
        np.testing.assert_array_equal(steps, np.tile(read, (2, 1)))
        assert is_kept.all()
        frame = np.full_like(batch.rows, 7)
        frame[:, read] = batch.rows[:, read]
        skipped = replace(batch, rows=frame)
        torch.testing.assert_close(own(skipped), own(batch), rtol=0, atol=0)


def test_slots_count_kept_steps():
    _, tokens, _ = model("MVFO", memory="t-fifo", time_index="slot").reader_inputs(episodes("MVFO", 2))
    assert tokens.rows[1].tolist() == [list(range(287, -1, -1))] * 2
    _, tokens, _ = model("MVFO", strategy="fifo").reader_inputs(episodes("MVFO", 2))
    assert tokens.rows[1].tolist() == [list(range(288, 576))] * 2


def test_slots_by_place():
    """Tokens 0 and 3 of place 2, which came first, then 2 and 4 of place 0; token 1 is not in memory."""
    in_memory = torch.tensor([[True, False, True, True, True]])
    assert slots_by_place(in_memory, torch.tensor([[2, 2, 0, 2, 0]])).tolist() == [[3, 0, 1, 2, 0]]


def test_settings_that_do_not_fit_the_task_are_named():
    for settings, message in (
        ({"chunks": 3}, "unknown setting 'chunks' of a ballet model; did you mean 'chunk'"),
        ({"strategy": "quota", "capacity": 7}, r"capacity must be at least n_places \(8\)"),
        ({"place_code": "sine2d", "columns": 3}, r"columns must divide n_places \(8\)"),
        ({"first": 32}, r"first must be below the steps of a visit \(32\), got 32"),
        ({"every": 33}, r"every must be at most the steps of a visit \(32\), got 33"),
        ({"own_layers": 1}, "own_layers must be 0 in tasks that ask about visits, got 1"),
        ({"size": 10}, "size must be at least about 3472 weights for the memory 'sat-fifo' with .*, got 10"),
    ):
        with pytest.raises(ValueError, match=message):
            model(**settings)
