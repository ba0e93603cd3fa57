"""The contract that every registered memory meets."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from memenvs.agents.memory import MEMORIES, Memory, State, StepInputs, make_memory, memory_spec, required_inputs

B, T, D = 3, 23, 10
SMALL_READER = {"dim": 8, "layers": 2, "heads": 2, "mlp_dim": 6}
SMALL = {
    "none": {},
    "gru": {"hidden_dim": 6, "layers": 2},
    "lstm": {"hidden_dim": 6, "layers": 2},
    "relic": {
        "layers": 3,
        "heads": 2,
        "dim": 8,
        "mlp_dim": 12,
        "sink": "kv",
        "cache_dtype": "float64",
        "max_episode_steps": T,
    },
    "trxl": {"layers": 3, "heads": 2, "dim": 8, "mlp_dim": 12, "memory_length": 8},
    "smt": {"dim": 8, "heads": 2, "capacity": 2 * T, "tau": (1.0, 10.0)},
    "smt-factorized": {"dim": 8, "heads": 2, "capacity": T, "n_centres": 4},
    "smt-causal": {"dim": 8, "heads": 2, "capacity": T},
    "sm-pooling": {"dim": 8},
    "frmqn": {"dim": 8, "capacity": T},
    "t-fifo": SMALL_READER,
    "t-fifo+a": SMALL_READER,
    "sat-fifo": {**SMALL_READER, "n_places": 3},
    "sat-fifo-th": {**SMALL_READER, "n_places": 3, "chunk": 4, "top_k": 9},
    "sat-pm": {**SMALL_READER, "n_places": 3},
    "sat-pm-ph": {**SMALL_READER, "n_places": 3, "chunk": 4, "top_k": 9},
    "dnc": {"hidden_dim": 6, "cells": 5, "cell_dim": 4, "read_heads": 2},
}
#: Settings under which each memory meets the contract, besides those of `SMALL`.
VARIANTS: dict[str, list[dict]] = {
    "none": [{}],
    "gru": [{}],
    "lstm": [{}, {"reset_on": "episode"}, {"bptt": 4}],
    "relic": [{}, {"inter_episode": False}, *({"sink": sink} for sink in ("none", "token", "k0v0", "kv0", "k0v"))],
    "trxl": [{}, {"memory_length": 2 * T, "layers": 1}],
    "smt": [
        {},
        {"capacity": 1},
        {"capacity": 6, "time": "sinusoidal", "tau": 1.0, "reset_on": "episode"},
        {"encoder": False, "time": "none", "tau": 1.0},
        {"encoder": False, "capacity": 6, "rectified": True},
        {"rectified": True},
    ],
    "smt-factorized": [
        {},
        {"capacity": 6},
        {"centres": "window"},
        {"centres": "static"},
        {"rectified": True, "reset_on": "episode"},
    ],
    "smt-causal": [{}, {"capacity": 6, "layers": 3}, {"reset_on": "episode"}],
    "sm-pooling": [{}, {"capacity": 6}],
    "frmqn": [{}, {"capacity": 1, "reset_on": "episode"}, {"capacity": 6, "bptt": 4}],
    "t-fifo": [
        {},
        {"capacity": 1},
        {"time_index": "age", "query_codes": False, "reset_on": "episode"},
        {"time_index": "slot", "capacity": 5},
    ],
    "t-fifo+a": [{}, {"time_index": "mod32", "capacity": 6}],
    "sat-fifo": [
        {},
        *({"capacity": 5, "strategy": strategy} for strategy in ("fifo", "lifo", "lvfo", "mvfo", "quota")),
        {"capacity": 6, "strategy": "mvfo", "time_index": "slot", "place_code": "learned1d"},
        {"n_places": 6, "columns": 3, "place_code": "sine2d", "query_codes": False},
    ],
    "sat-fifo-th": [
        {},
        {"capacity": 9, "strategy": "lvfo", "top_k": 2},
        {"capacity": 7, "strategy": "lifo", "top_k": 2, "time_index": "age"},
    ],
    "sat-pm": [{}, {"capacity": 7, "n_places": 6, "columns": 3, "place_code": "learned2d"}],
    "sat-pm-ph": [
        {},
        {"capacity": 10, "top_k": 2, "reset_on": "episode"},
        {"capacity": 8, "strategy": "mvfo", "chunk": 2, "top_k": 3},
    ],
    "dnc": [{}, {"links": False, "checkpoint": 8, "reset_on": "episode"}],
}
STARTS = {
    "one trial": ({0}, {0}),
    "episodes": ({0, 5, 6, 14}, {0}),
    "trials": ({0, 4, 9, 16, 20}, {0, 9, 20}),
    "trials of single steps": ({0, 1, 2, 3, 22}, {0, 1, 2, 22}),
    "goes on": ({7}, set()),
}


MIXED = (["one trial", "trials", "goes on"], ["episodes", "trials of single steps", "trials"])


def make(name: str, seed: int = 0, **kwargs: object) -> Memory:
    """A small memory in float64 with weights large enough that everything matters."""
    memory = make_memory(name, D, **{**SMALL[name], **kwargs}).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in memory.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.4)
    return memory


def variants(name: str) -> Iterator[tuple[dict, Memory]]:
    """Each variant of a memory, with its settings."""
    for kwargs in VARIANTS[name]:
        yield kwargs, make(name, **kwargs)


def inputs(starts: str | list[str], seed: int = 1) -> StepInputs:
    """T random steps of B sequences; the starts of all, or of each."""
    generator = torch.Generator().manual_seed(seed)
    episode, trial = torch.zeros(B, T, dtype=torch.bool), torch.zeros(B, T, dtype=torch.bool)
    for row, name in enumerate([starts] * B if isinstance(starts, str) else starts):
        for flags, steps in zip((episode, trial), STARTS[name], strict=True):
            flags[row, list(steps)] = True
    embedding, pose = (torch.randn(B, T, width, generator=generator, dtype=torch.float64) for width in (D, 3))
    place, move = (torch.randint(high, (B, T), generator=generator) for high in (3, 5))
    return StepInputs(embedding, episode, trial, 3.0 * pose, place, move)


def one_by_one(memory: Memory, x: StepInputs, state: State) -> tuple[Tensor, State]:
    """Features and final state of T calls of `step`."""
    features = []
    for t in range(x.embedding.shape[1]):
        feature, state = memory.step(x.steps(t, t + 1), state)
        features.append(feature)
    return torch.stack(features, dim=1), state


def assert_close(got: Tensor, expected: Tensor, atol: float, *case: object) -> None:
    """Compare; a failure names the case."""
    torch.testing.assert_close(got, expected, atol=atol, rtol=0, msg=lambda message: f"{case}: {message}")


def check_sequence(memory: Memory, x: StepInputs, expected: Tensor, *case: object) -> None:
    """All steps at once, and the last ones of them, give the features of single steps."""
    with torch.no_grad():
        for last in (None, 1, 7, T):
            got, _ = memory(x, None, last=last)
            assert_close(got, expected[:, T - (last or T) :], 1e-6, *case, last)


def check_chunks(memory: Memory, x: StepInputs, expected: Tensor, *case: object) -> None:
    """Chunks after a state give the features of single steps; acting goes on after learning."""
    state: State | None = memory.initial_state(B, max_steps=3)
    parts = []
    for begin, end in ((0, 4), (4, 5), (5, 15), (15, 20)):
        part, state = memory(x.steps(begin, end), state)
        parts.append(part)
    part, state = memory(x.steps(20, 22), state, last=1)
    assert state is not None
    tail, _ = one_by_one(memory, x.steps(22, T), state)
    got = torch.cat([*parts, part, tail], dim=1)
    assert_close(got, torch.cat([expected[:, :20], expected[:, 21:]], dim=1), 1e-6, *case)


@pytest.mark.parametrize("name", MEMORIES)
def test_steps_chunks_and_the_sequence_are_equal(name: str) -> None:
    for kwargs, memory in variants(name):
        for starts in (*MIXED, *(STARTS if not kwargs else ["trials"])):  # all that rows can share once, then one
            x = inputs(starts)
            with torch.no_grad():
                expected, _ = one_by_one(memory, x, memory.initial_state(B, max_steps=2))
            assert expected.shape == (B, T, memory.output_dim)
            check_sequence(memory, x, expected, kwargs, starts)
            for gradient in (False, True):
                with torch.set_grad_enabled(gradient):
                    check_chunks(memory, x, expected, kwargs, starts, gradient)


@pytest.mark.parametrize("name", MEMORIES)
def test_dropout_is_in_forward_only(name: str) -> None:
    """In training mode too, acting and refilling give the features of evaluation mode, without gradient."""
    dropout = {"relic": "depth_dropout", "trxl": "dropout"}
    memory, x = make(name, **({dropout[name]: 0.9} if name in dropout else {})), inputs("trials")
    with torch.no_grad():
        expected, _ = one_by_one(memory, x, memory.initial_state(B, max_steps=T))
    memory.train()
    acting, _ = one_by_one(memory, x, memory.initial_state(B, max_steps=T))
    refilling, state = memory.prefill(x, memory.initial_state(B, max_steps=T))
    learning, _ = memory(x, None)
    assert_close(acting, expected, 1e-12)
    assert_close(refilling, expected, 1e-6)
    assert memory.training and not any(value.requires_grad for value in (refilling, *state.values()))
    assert not acting.requires_grad or name in ("gru", "lstm")
    assert torch.allclose(learning, expected, atol=1e-6) == (name not in dropout)


@pytest.mark.parametrize("name", MEMORIES)
def test_no_step_depends_on_the_future(name: str) -> None:
    for kwargs, memory in variants(name):

        def features(x: StepInputs, memory: Memory = memory) -> Tensor:
            if hasattr(memory, "generator"):
                memory.generator = torch.Generator().manual_seed(3)
            return memory(x, None)[0]

        for starts in ("one trial", *MIXED):
            x = inputs(starts)
            for training in (False, True):
                memory.train(training)
                whole = features(x)
                for j in (1, 9, 22):
                    changed = copy.deepcopy(x)
                    changed.embedding[:, j] += 1
                    other = features(changed)
                    assert_close(whole[:, :j], other[:, :j], 0, kwargs, starts, training, j)
                    assert name == "relic" or not torch.equal(whole[:, j], other[:, j])


@pytest.mark.parametrize("name", MEMORIES)
def test_a_start_in_mid_sequence_equals_a_fresh_one(name: str) -> None:
    x = inputs("trials")
    for kwargs, memory in variants(name):
        whole, _ = memory(x, None)
        for begin, end in ((9, 20), (20, T)):
            fresh, _ = memory(x.steps(begin, end), None)
            assert_close(whole[:, begin:end], fresh, 1e-12, kwargs, begin)
            used = one_by_one(memory, x.steps(0, begin), memory.initial_state(B))[1]
            again, _ = one_by_one(memory, x.steps(begin, end), used)
            assert_close(again, fresh, 1e-12, kwargs, begin)


@pytest.mark.parametrize("name", [name for name in MEMORIES if name not in ("none", "sm-pooling")])
def test_gradient_reaches_the_oldest_step_that_counts(name: str) -> None:
    for kwargs, memory in variants(name):
        if "capacity" in kwargs or "bptt" in kwargs:
            continue
        x = inputs(["one trial", "trials", "episodes"])
        x.embedding.requires_grad_()
        features, _ = memory(x, None, last=1)
        features.sum().backward()
        reached = (x.embedding.grad.abs().sum(-1) > 0).int().argmax(1).tolist()
        by_episode = kwargs.get("reset_on") == "episode" or kwargs.get("inter_episode") is False
        assert reached == ([0, 20, 14] if by_episode else [0, 20, 0]), kwargs


def test_rows_of_a_state_are_independent() -> None:
    x, order = inputs(["one trial", "trials", "goes on"]), torch.tensor([2, 0])
    later = x.steps(11, T)
    later = StepInputs(**{each.name: getattr(later, each.name)[order] for each in dataclasses.fields(later)})
    for name in MEMORIES:
        memory = make(name)
        expected, _ = one_by_one(memory, x, memory.initial_state(B))
        _, state = one_by_one(memory, x.steps(0, 11), memory.initial_state(B))
        got, _ = one_by_one(memory, later, {key: value[order] for key, value in state.items()})
        assert_close(got, expected[order, 11:], 1e-12, name)


def test_rows_of_different_states_make_a_state() -> None:
    """Also of sequences that have lasted for different numbers of steps."""
    x = inputs(["one trial", "trials", "episodes"])
    lengths, more = (8, 10, 2), 3

    def rows(of: list[StepInputs]) -> StepInputs:
        values = {each.name: torch.cat([getattr(one, each.name) for one in of]) for each in dataclasses.fields(x)}
        return StepInputs(**values)

    own = [
        StepInputs(**{each.name: getattr(x, each.name)[b : b + 1] for each in dataclasses.fields(x)}) for b in range(B)
    ]
    later = rows([one.steps(length, length + more) for one, length in zip(own, lengths, strict=True)])
    for name in MEMORIES:
        capacity = {"capacity": 7} if "capacity" in DEFAULTS[name] else {}
        memory = make(name, **capacity)
        states, expected = [], []
        for one, length in zip(own, lengths, strict=True):
            _, state = one_by_one(memory, one.steps(0, length), memory.initial_state(1, max_steps=T))
            states.append({key: value.clone() for key, value in state.items()})
            expected.append(one_by_one(memory, one.steps(length, length + more), state)[0])
        together = {key: torch.cat([state[key] for state in states]) for key in states[0]}
        got, _ = one_by_one(memory, later, together)
        assert_close(got, torch.cat(expected), 1e-9, name)


@pytest.mark.parametrize("name", MEMORIES)
def test_decisions_equal_the_sequence(name: str) -> None:
    memory, x = make(name), inputs(["one trial", "trials", "episodes"])
    x.embedding.requires_grad_()
    at = torch.tensor([[22, 0, 7, 7], [8, 9, 22, 1], [14, 13, 5, 2]])
    whole, _ = memory(x, None)
    got = memory.features_at(x, at)
    expected = torch.stack([whole[row, at[row]] for row in range(B)])
    assert_close(got, expected, 1e-9)
    weight = torch.linspace(-1.0, 1.0, got.numel(), dtype=got.dtype).view_as(got)
    leaves = [x.embedding, *memory.parameters()]
    gradients = [torch.autograd.grad((each * weight).sum(), leaves, materialize_grads=True) for each in (got, expected)]
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other, 1e-9)


@pytest.mark.parametrize("name", ["gru", "lstm"])
@pytest.mark.parametrize("reset_on", ["trial", "episode"])
def test_packed_recurrence_equals_a_loop_of_cells(name: str, reset_on: str) -> None:
    memory, x = make(name, layers=1, reset_on=reset_on), inputs(["one trial", "trials", "episodes"])
    cell = {"gru": nn.GRUCell, "lstm": nn.LSTMCell}[name](D, 6).double()
    cell.load_state_dict({key.removesuffix("_l0"): value for key, value in memory.network.state_dict().items()})
    resets = x.trial_start if reset_on == "trial" else x.episode_start
    hidden = [torch.zeros(B, 6, dtype=torch.float64) for _ in memory.parts]
    expected = []
    for t in range(T):
        hidden = [value * ~resets[:, t, None] for value in hidden]
        out = cell(x.embedding[:, t], tuple(hidden) if name == "lstm" else hidden[0])
        hidden = list(out) if name == "lstm" else [out]
        expected.append(hidden[0])
    features, state = memory(x, None)
    torch.testing.assert_close(features, torch.stack(expected, 1), atol=1e-12, rtol=0)
    for part, value in zip(memory.parts, hidden, strict=True):
        torch.testing.assert_close(state[part][:, 0], value, atol=1e-12, rtol=0)
    grads = []
    for loss in (features.square().sum(), torch.stack(expected, 1).square().sum()):
        grads.append(torch.autograd.grad(loss, memory.network.weight_hh_l0 if len(grads) == 0 else cell.weight_hh)[0])
    torch.testing.assert_close(grads[0], grads[1], atol=1e-10, rtol=0)


def test_registry() -> None:
    assert list(MEMORIES) == list(SMALL)
    assert all(MEMORIES.values())
    with pytest.raises(
        ValueError,
        match=r"unknown memory 'lstn'; choose from \['none', 'gru', 'lstm', .*, 'dnc'\]\. Did you mean 'lstm'\?",
    ):
        make_memory("lstn", 4)
    choices = r"choose from \['hidden_dim', 'layers', 'reset_on', 'bptt'\]"
    with pytest.raises(ValueError, match=f"unknown setting 'heads' of the memory 'gru'; {choices}"):
        make_memory("gru", 4, heads=2)
    with pytest.raises(ValueError, match=r"unknown setting 'heads' of the memory 'none'; it has none"):
        make_memory("none", 4, heads=2)
    with pytest.raises(ValueError, match=r"unknown reset_on 'never'; choose from \['trial', 'episode'\]"):
        make_memory("gru", 4, reset_on="never")


RECURRENT = {"hidden_dim": 256, "layers": 1, "reset_on": "trial", "bptt": None}
TRANSFORMER = {"layers": 4, "heads": 8, "dim": 256, "mlp_dim": 1024}
SCENE = {"dim": 128, "capacity": 500, "reset_on": "trial"}
POSES = {**SCENE, "poses": True, "pose_dim": 16, "time": "exponential", "tau": 1.0, "rectified": False}
TOKENS = {"dim": 128, "layers": 4, "heads": 2, "mlp_dim": 128, "capacity": None, "reset_on": "trial"}
TOKENS |= {"time_index": "step", "query_codes": True}
PLACES = {**TOKENS, "strategy": "fifo", "n_places": 9, "place_code": "sine1d", "columns": None}
RELIC = {"sink": "kv0", "inter_episode": True, "max_episode_steps": 511, "depth_dropout": 0.1, "rope_base": 10_000.0}
CHUNKS = {"chunk": 32, "top_k": 4}
DEFAULTS = {
    "none": {},
    "gru": RECURRENT,
    "lstm": RECURRENT,
    "relic": {**TRANSFORMER, **RELIC, "cache_dtype": "float32"},
    "trxl": {**TRANSFORMER, "memory_length": 256, "dropout": 0.1},
    "smt": {**POSES, "heads": 8, "encoder": True},
    "smt-factorized": {**POSES, "heads": 8, "centres": "fps", "n_centres": 100},
    "smt-causal": {**SCENE, "layers": 2, "heads": 8, "rope_base": 10_000.0},
    "sm-pooling": POSES,
    "frmqn": {**SCENE, "bptt": None},
    "t-fifo": TOKENS,
    "t-fifo+a": {**TOKENS, "moves": 4},
    "sat-fifo": PLACES,
    "sat-fifo-th": {**PLACES, **CHUNKS},
    "sat-pm": {**PLACES, "strategy": "quota"},
    "sat-pm-ph": {**PLACES, **CHUNKS, "strategy": "quota"},
    "dnc": {"hidden_dim": 128, "cells": 288, "cell_dim": 128, "read_heads": 4, "links": True, "checkpoint": 24}
    | {"reset_on": "trial"},
}


def test_each_row_of_the_table_is_a_memory_with_its_config() -> None:
    needed = {"smt": ("pose",), "sm": ("pose",), "sat": ("place",), "t": ()}
    for name in MEMORIES:
        memory, spec = make(name), memory_spec(name)
        assert type(memory) is spec.memory and type(memory.config) is spec.config
        assert memory.input_dim == D
        by_hand = ("move",) if name == "t-fifo+a" else needed.get(name.split("-")[0], ())
        assert required_inputs(name) == memory.required_inputs == by_hand
        capacity = {"capacity": 5} if name.startswith(("sat-fifo", "t-")) else {}
        assert memory.bounded == (not capacity and name != "relic" and not name.startswith("sat-pm")), name
        assert not capacity or make(name, **capacity).bounded
        if "poses" in DEFAULTS[name]:
            assert required_inputs(name, poses=False) == make(name, poses=False).required_inputs == ()
    with pytest.raises(ValueError, match=r"unknown memory 'smtt'.* Did you mean 'smt'"):
        required_inputs("smtt")


@pytest.mark.parametrize("name", MEMORIES)
def test_defaults(name: str) -> None:
    """Results of runs and papers rest on them; settings do not change once they are checked."""
    config = memory_spec(name).config()
    assert dataclasses.asdict(config) == DEFAULTS[name]
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.dim = 3
    with pytest.raises(TypeError, match="positional argument"):  # nothing hangs on the order of settings
        type(config)(1)


def test_sizes_that_would_take_minutes_are_refused() -> None:
    sizes = {"hidden_dim", "layers", "dim", "mlp_dim", "pose_dim", "cell_dim", "heads", "read_heads", "cells"}
    sizes |= {"moves", "n_places", "max_episode_steps"}
    seen = set()
    for name in MEMORIES:
        for setting in sizes & {field.name for field in dataclasses.fields(memory_spec(name).config)}:
            seen.add(setting)
            with pytest.raises(ValueError, match=f"{setting} must be at most [0-9]+, got 1000000"):
                make_memory(name, 4, **{setting: 10**6})
    assert seen == sizes


def test_wrong_inputs_are_named() -> None:
    memory, x = make("lstm"), inputs("one trial")
    with pytest.raises(ValueError, match=r"embedding must be \(B, T, 10\) with T >= 1, got \(3, 23, 9\)"):
        memory(StepInputs(x.embedding[..., :9], x.episode_start, x.trial_start), None)
    with pytest.raises(ValueError, match=r"trial_start must be bool \(3, 23\), got torch.int64"):
        memory(StepInputs(x.embedding, x.episode_start, x.trial_start.long()), None)
    with pytest.raises(ValueError, match=r"last must be between 1 and the number of steps \(23\), got 24"):
        memory(x, None, last=24)
