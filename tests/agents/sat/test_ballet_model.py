"""Models of Room Ballet: their sizes, and the whole training step against a straightforward one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from memenvs.agents.memory.place_codes import PlaceCode, sinusoid
from memenvs.agents.memory.reader import MemoryLayer
from memenvs.agents.sat.model import BalletModel, slots_by_place
from memenvs.retention import STRATEGIES, retained
from memenvs.room_ballet.dances import PERFORMANCES
from memenvs.room_ballet.episodes import Episodes
from memenvs.room_ballet.frames import frames
from memenvs.room_ballet.tasks import make_ballet


def model(name: str = "MVFO", seed: int = 0, **settings: Any) -> BalletModel:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return BalletModel(make_ballet(name), **settings)


def episodes(name: str, count: int, seed: int = 0) -> Episodes:
    return make_ballet(name).sample_batch(count, np.random.default_rng(seed))


def plain_queries(own: BalletModel, batch: Episodes, strategies: np.ndarray) -> list[Tensor]:
    """After each layer: every frame through the convolutions, tokens as they are, keys and values projected for each of them."""
    pictures = torch.from_numpy(frames()[batch.frame])
    seen = own.encoder(pictures.flatten(0, 1)).unflatten(0, batch.frame.shape)
    tokens = seen + sinusoid(torch.arange(batch.frame.shape[1]).double(), 128)
    tokens = tokens + sinusoid(torch.arange(own.task.rooms).double(), 128)[batch.place.astype(int)]
    kept = retained(batch.visit_place, strategies, own.capacity)
    there = torch.from_numpy(np.take_along_axis(kept, batch.visit.astype(int), 1))
    found = [own.encoder(torch.from_numpy(frames()[batch.query]))]
    for layer in own.reader.layers:
        found.append(plain_layer(layer, found[-1], tokens, there))
    return found[1:]


def plain_layer(layer: MemoryLayer, query: Tensor, tokens: Tensor, there: Tensor) -> Tensor:
    """Flat reading of one query; each token is a chunk of one, and the chosen ones' answers are averaged."""
    query = query + layer.local_mix(layer.local_value(layer.local_norm(query)))
    asked = layer.relevance_query(layer.read_norm(query))
    scores = (layer.relevance_key(tokens / (1 + 1e-5)) @ asked[:, :, None])[..., 0] / 128**0.5
    weights = scores.masked_fill(~there, -torch.inf).softmax(1)
    heard = layer.mix(layer.value(tokens))
    query = query + (weights[..., None] * heard).sum(1)
    return query + layer.mlp(layer.mlp_norm(query))


@pytest.mark.parametrize(("initialisation", "spread"), [("calibrated", (1.3, 2.0)), ("release", (0.1, 0.3))])
def test_calibrated_attention_is_not_flat_at_the_start(initialisation, spread):
    """Scores of the first layer, checkpointed with every token built: their standard deviation over a memory."""
    own = model("LVFO", strategy="lvfo", initialisation=initialisation)
    batch = episodes("LVFO", 16)
    seen = own.encoder(torch.from_numpy(frames()[batch.frame]).flatten(0, 1)).unflatten(0, batch.frame.shape)
    tokens = seen + sinusoid(torch.arange(576), 128) + sinusoid(torch.arange(8), 128)[batch.place.astype(int)]
    layer, query = own.reader.layers[0], own.encoder(torch.from_numpy(frames()[batch.query]))
    asked = layer.relevance_query(layer.read_norm(query))
    scores = (layer.relevance_key(tokens) @ asked[:, :, None])[..., 0] / 128**0.5
    assert spread[0] < scores.std(1).mean() < spread[1]


@pytest.mark.parametrize(
    ("settings", "share"),
    [({"keys_like_queries": True}, (0.4, 0.9)), ({}, (0.0, 0.3)), ({"initialisation": "release"}, (0.0, 0.3))],
)
def test_keys_like_queries_open_the_room_asked_about_from_the_start(settings, share):
    """Four of 25 rooms are opened: 16 % by chance."""
    batch = make_ballet("ShortStay", size=5).sample_batch(40, np.random.default_rng(0))
    place, asked = (torch.from_numpy(each.astype(int)) for each in (batch.place, batch.query_place))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        own = BalletModel(make_ballet("ShortStay", size=5), memory="sat-pm-ph", **settings)
    query, tokens, chunks = own.reader_inputs(batch)
    read = own.reader.attention(query, tokens, chunks, own.config.top_k)[:, :, 0] > 0
    opened = (read & (place == asked[:, None])).any(-1).float().mean(1)
    assert (share[0] <= opened).all() and (opened <= share[1]).all()


@pytest.mark.parametrize(("name", "memory", "count"), [("MVFO", "sat-fifo", 839_144), ("Next", "t-fifo+a", 839_656)])
def test_published_sizes(name, memory, count):
    own = model(name, memory=memory)
    assert sum(each.numel() for each in own.parameters()) == count
    assert sum(each.numel() for each in own.reader.parameters()) == 792_576


@pytest.mark.parametrize(("name", "own_layers"), [("MultiTask", 0), ("Next", 1), ("Opposite", 3)])
def test_training_step_is_that_of_a_straightforward_model(name, own_layers):
    """Loss and the gradient of every weight in double precision; in the multi-task ballet each episode has a strategy of its own."""
    batch, strategies = episodes(name, 4, 3), np.arange(4) if name == "MultiTask" else np.zeros(4, int)
    labels = torch.from_numpy(batch.label).long()
    found = []
    for fast in (True, False):
        own = model(name, own_layers=own_layers).double()
        for buffer in (own.times, own.places.codes):  # kept in single precision
            buffer.copy_(sinusoid(torch.arange(len(buffer)).double(), 128))
        if fast:
            logits, of_dancer = own.logits(batch, strategies)
        else:
            queries = plain_queries(own, batch, strategies)
            logits, of_dancer = own.head(queries[-1]), own_layers and own.own_head(queries[own_layers - 1])
        loss = functional.cross_entropy(logits, labels)
        if own_layers:
            loss = loss + functional.cross_entropy(of_dancer, torch.from_numpy(batch.label.astype(int)))
        loss.backward()
        found.append((loss.item(), {name: each.grad for name, each in own.named_parameters()}))
    (ours, gradients), (plain, expected) = found
    assert ours == pytest.approx(plain, rel=1e-12)
    for name, gradient in expected.items():
        if (
            gradient is not None and float(gradient.abs().max()) > 1e-12
        ):  # of a bias that no softmax notices nothing is left
            torch.testing.assert_close(
                gradients[name], gradient, rtol=1e-8, atol=1e-9 * float(gradient.abs().max()), msg=name
            )


def without(batch: Episodes, visit: int) -> Episodes:
    """The same episodes, but that one visit showed a dancer that does not occur in any of them."""
    changed = batch.frame.copy()
    changed[:, 32 * visit : 32 * visit + 32] = 7
    return Episodes(**{**batch.__dict__, "frame": changed})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_kept_visits_are_read(strategy):
    own, batch = model("MultiTask", strategy=strategy, layers=1), episodes("MultiTask", 6)
    kept = retained(batch.visit_place, strategy, 9)
    before = own(batch).detach()
    for visit in (0, 5, 17):
        changed = (own(without(batch, visit)).detach() - before).abs().amax(1).numpy() > 1e-6
        np.testing.assert_array_equal(changed, kept[:, visit])


def test_moves_are_tokens_of_their_own():
    """Another move changes what "t-fifo+a" answers, and nothing in the others; the move after the last visit does not exist."""
    batch = episodes("Next", 3)
    moved = batch.action.copy()
    moved[:, 64:96] = (moved[:, 64:96] + 1) % 4
    other = Episodes(**{**batch.__dict__, "action": moved})
    for memory in ("t-fifo", "t-fifo+a", "sat-fifo"):
        own = model("Next", memory=memory, layers=1)
        differ = not torch.equal(own(batch), own(other))
        assert differ == (memory == "t-fifo+a")
    _, tokens, _ = model("Next", memory="t-fifo+a").reader_inputs(batch)
    assert tokens.count == 1320
    assert tokens.mask is not None and int((~tokens.mask).sum()) == 3


@pytest.mark.parametrize(
    ("time_index", "row"),
    [("step", lambda unit: unit), ("age", lambda unit: 1318 - unit), ("mod32", lambda unit: unit % 32)],
)
def test_moves_have_times_between_those_of_frames(time_index, row):
    """40 visits of 32 frames and the 39 moves between them, in the order in which they were; moves are the last tokens."""
    _, tokens, _ = model("Next", memory="t-fifo+a", time_index=time_index).reader_inputs(episodes("Next", 1))
    frame = [33 * visit + step for visit in range(40) for step in range(32)]
    move = [33 * visit + 32 for visit in range(39)]
    assert tokens.rows[1][0, :-1].tolist() == [row(unit) for unit in frame + move]


@pytest.mark.parametrize(("place_code", "columns"), [("sine2d", 4), ("learned1d", None), ("learned2d", 4)])
def test_codes_of_places(place_code, columns):
    own = model("MVFO", place_code=place_code, columns=columns, layers=1)
    batch = episodes("MVFO", 2)
    _, tokens, _ = own.reader_inputs(batch)
    expected = PlaceCode(place_code, 8, 128, columns)
    assert own.places is not None
    expected.load_state_dict(own.places.state_dict())
    torch.testing.assert_close(tokens.tables[2], expected.table())
    own(batch).sum().backward()
    assert [name for name, _ in own.places.named_parameters()] == ["codes"] * place_code.startswith("learned")
    assert all(each.grad is not None and each.grad.abs().sum() > 0 for each in own.places.parameters())


def test_memory_without_places_does_not_know_them():
    batch = episodes("MultiTask", 3)
    other = Episodes(**{**batch.__dict__, "place": (batch.place + 1) % 8})
    blind, sighted = (model("MultiTask", memory=name, capacity=None, layers=1) for name in ("t-fifo", "sat-fifo"))
    torch.testing.assert_close(blind(batch), blind(other))
    assert not torch.allclose(sighted(batch), sighted(other), atol=1e-6)


@pytest.mark.parametrize("memory", ["sat-fifo-th", "sat-pm-ph"])
def test_chunks_hold_one_stretch_of_time_or_one_place(memory):
    own, batch = model("ShortStay", memory=memory, layers=1), episodes("ShortStay", 2)
    _, tokens, chunks = own.reader_inputs(batch)
    assert chunks is not None and tokens.count == 1280
    for b in range(2):
        assert sorted(chunks.index[b][chunks.mask[b]].tolist()) == list(range(1280))
        for index, mask in zip(chunks.index[b], chunks.mask[b], strict=True):
            steps = index[mask].numpy()
            places = np.unique(batch.place[b][steps])
            assert (np.diff(steps) == 1).all() if memory == "sat-fifo-th" else len(places) <= 1


@pytest.mark.parametrize("memory", ["sat-fifo", "t-fifo+a", "dnc-every"])
@pytest.mark.parametrize(("first", "steps_of_visit"), [(0, [0, 5, 10, 15, 20, 25, 30]), (20, [20, 25, 30])])
def test_only_every_so_manyth_step_of_a_visit_is_seen(memory, first, steps_of_visit):
    assert len({tuple(positions) for positions in PERFORMANCES[:, first::5].tolist()}) == 8  # which tell dances apart
    dnc = {"dnc": {"cells": 4, "cell_dim": 4, "links": False}} if memory == "dnc-every" else {}
    own, batch = model("Next", memory=memory, first=first, every=5, layers=1, **dnc), episodes("Next", 2)
    steps, there = own.retained_steps(batch)
    seen = np.arange(40)[:, None] * 32 + steps_of_visit
    np.testing.assert_array_equal(steps, np.tile(seen.ravel(), (2, 1)))
    assert there.all()
    frame = np.full_like(batch.frame, 7)
    frame[:, seen.ravel()] = batch.frame[:, seen.ravel()]
    unseen = Episodes(**{**batch.__dict__, "frame": frame})
    torch.testing.assert_close(own(unseen), own(batch), rtol=0, atol=0)


def test_time_by_slot_counts_what_is_kept():
    _, tokens, _ = model("MVFO", strategy="fifo", time_index="slot").reader_inputs(episodes("MVFO", 2))
    assert tokens.rows[1].tolist() == [list(range(287, -1, -1))] * 2
    _, tokens, _ = model("MVFO", strategy="fifo").reader_inputs(episodes("MVFO", 2))
    assert tokens.rows[1].tolist() == [list(range(288, 576))] * 2


def test_slots_by_place():
    """Tokens 0 and 3 of place 2, which came first, then 2 and 4 of place 0; token 1 is not in memory."""
    in_memory = torch.tensor([[True, False, True, True, True]])
    assert slots_by_place(in_memory, torch.tensor([[2, 2, 0, 2, 0]])).tolist() == [[3, 0, 1, 2, 0]]


def test_dnc_answers():
    own = model("MVFO", memory="dnc-every", dim=8, dnc={"hidden_dim": 8, "cells": 4, "cell_dim": 4, "read_heads": 1})
    logits = own(episodes("MVFO", 2))
    logits.sum().backward()
    assert logits.shape == (2, 8)
    assert own.retained_visits(episodes("MVFO", 2)).all()  # whatever a strategy would have left
    assert own.encoder.conv1.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"memory": "sat"}, ValueError, "unknown memory 'sat'; choose from .*'sat-fifo'"),
        ({"strategy": "lru"}, ValueError, "unknown strategy 'lru'; choose from"),
        ({"capacity": 0}, ValueError, "capacity must be an integer of at least 1 or None, got 0"),
        ({"capacity": "all"}, ValueError, "capacity must be an integer of at least 1 or None, got 'all'"),
        ({"strategy": "quota", "capacity": 7}, ValueError, r"capacity must be at least n_places \(8\)"),
        ({"time_index": "hour"}, ValueError, "unknown time_index 'hour'"),
        ({"initialisation": "zero"}, ValueError, "unknown initialisation 'zero'"),
        (
            {"initialisation": "release", "keys_like_queries": True},
            ValueError,
            "keys_like_queries must be False with .* 'release', got True",
        ),
        (
            {"memory": "dnc-first", "keys_like_queries": True},
            ValueError,
            "keys_like_queries must be False with memory 'dnc-first'",
        ),
        ({"chunks": 3}, ValueError, "unknown setting 'chunks' of a ballet model; choose from .*Did you mean 'chunk'"),
        ({"first": -1}, ValueError, "first must be an integer of at least 0, got -1"),
        ({"first": 32}, ValueError, r"first must be below the steps of a visit \(32\), got 32"),
        ({"every": 0}, ValueError, "every must be an integer of at least 1, got 0"),
        ({"every": 33}, ValueError, r"every must be at most the steps of a visit \(32\), got 33"),
        ({"dim": "wide"}, TypeError, "dim must be a whole number, got 'wide'"),
        ({"own_layers": -1}, ValueError, "own_layers must be an integer of at least 0, got -1"),
        ({"own_layers": 4}, ValueError, r"own_layers must be below layers \(4\), and 0 with a DNC, got 4"),
        ({"own_layers": 1, "memory": "dnc-first"}, ValueError, r"own_layers must be .* 0 with a DNC, got 1"),
        ({"own_layers": 1}, ValueError, "own_layers must be 0 in tasks that ask about visits, got 1"),
        (
            {"memory": "dnc-first", "capacity": 9},
            ValueError,
            "must be left out with memory 'dnc-first', .* got 9 and None",
        ),
        ({"memory": "dnc-every", "strategy": "lifo"}, ValueError, "must be left out with .* got task and 'lifo'"),
        (
            {"memory": "t-fifo+a", "time_index": "slot"},
            ValueError,
            "time_index must be .* with memory 't-fifo\\+a', got 'slot'",
        ),
        ({"memory": "t-fifo", "place_code": "learned1d"}, ValueError, "place_code .* left out with memory 't-fifo'"),
        ({"place_code": "sine2d", "columns": 3}, ValueError, r"columns must divide n_places \(8\)"),
        ({"place_code": "sine"}, ValueError, "unknown place_code 'sine'"),
        ({"dnc": {"cells": 3}}, ValueError, "dnc must be left out with memory 'sat-fifo'"),
    ],
)
def test_wrong_settings_are_named(settings, error, message):
    with pytest.raises(error, match=message):
        model(**settings)
