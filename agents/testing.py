"""Tests of the contract of a memory, for memories of one's own.

`check_memory(MyMemory)` raises a `ContractError` that names the first broken rule. `CHECKS` are its parts.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from inspect import signature
from typing import Any, get_type_hints

import torch
from torch import Tensor

from memenvs.agents.memory import EXTRA_INPUTS, Memory, State, StepInputs, make_memory
from memenvs.agents.memory.base import STRATEGY
from memenvs.retention import STRATEGY_NAMES
from memenvs.testing.comparison import ContractError, check_true

__all__ = ["CHECKS", "ContractError", "check_memory"]

B, T, INPUT_DIM = 3, 23, 10
#: Name -> first steps of episodes, and those of them that start a trial.
STARTS: dict[str, tuple[set[int], set[int]]] = {
    "one trial": ({0}, {0}),
    "episodes": ({0, 5, 6, 14}, {0}),
    "trials": ({0, 4, 9, 16, 20}, {0, 9, 20}),
    "trials of single steps": ({0, 1, 2, 3, 22}, {0, 1, 2, 22}),
    "goes on": ({7}, set()),
}
#: What the rows of a batch can share.
MIXED = (["one trial", "trials", "goes on"], ["episodes", "trials of single steps", "trials"])
#: Largest differences: between forms of the same computation in float64, and of the same numbers.
CLOSE, EXACT = 1e-6, 1e-9


@dataclass(frozen=True)
class MemoryUnderTest:
    """A memory in float64 with random weights, large enough that everything matters.

    Attributes:
        memory: The memory, in evaluation mode.
        name: Its class and settings, for messages.
    """

    memory: Memory
    name: str

    def step_by_step(self, x: StepInputs, state: State | None = None) -> tuple[Tensor, State]:
        """Features (B, T, D) and final state of T calls of `step`."""
        state = self.memory.initial_state(x.embedding.shape[0]) if state is None else state
        features = []
        for t in range(x.embedding.shape[1]):
            feature, state = self.memory.step(x.steps(t, t + 1), state)
            features.append(feature)
        return torch.stack(features, 1), state


def check_memory(memory: str | type[Memory], config: Any = None, **settings: Any) -> None:
    """Check that a memory of one's own keeps the contract of a memory.

    Args:
        memory: Its registered name, or its class.
        config: Settings of a class; None for the defaults of the class that `__init__` names for `config`, and where
            `memory` is a name.
        **settings: Fields of the config to change, such as smaller sizes.

    Raises:
        ContractError: A rule is broken; the message names it, the step and the size of the difference.
        TypeError: It is no `Memory`.
        ValueError: The name or a setting is unknown, or a `config` is given beside a name.

    Example:
        >>> check_memory("gru", hidden_dim=8)
    """
    subject = make_subject(memory, config, **settings)
    for check in CHECKS:
        with _named(subject):
            check(subject)


def make_subject(memory: str | type[Memory], config: Any = None, seed: int = 0, **settings: Any) -> MemoryUnderTest:
    """Make the memory that `check_memory` checks; its weights are drawn from `seed`."""
    if isinstance(memory, str):
        if config is not None:
            raise ValueError(
                f"config must be None beside the name {memory!r}, whose settings are keywords, got {config!r}"
            )
        made = make_memory(memory, INPUT_DIM, **settings)
    else:
        if not (isinstance(memory, type) and issubclass(memory, Memory)):
            raise TypeError(f"memory must be a name or a subclass of Memory, got {memory!r}")
        config = _config_type(memory)() if config is None else config
        made = memory(INPUT_DIM, replace(config, **settings) if settings else config)
    name = f"{memory if isinstance(memory, str) else memory.__name__}{settings or ''}"
    generator = torch.Generator().manual_seed(seed)
    made = made.double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.4)
    return MemoryUnderTest(made, name)


def _config_type(memory: type[Memory]) -> type:
    """The config class that `__init__` of a memory declares."""
    parameters = list(signature(memory.__init__).parameters)
    hint = get_type_hints(memory.__init__).get(parameters[2]) if len(parameters) > 2 else None
    if not isinstance(hint, type) or not is_dataclass(hint):
        raise TypeError(f"{memory.__name__} must be made as (input_dim, config: CONFIG), a dataclass, or give `config`")
    return hint


def inputs(starts: str | Sequence[str], memory: Memory, seed: int = 1) -> StepInputs:
    """T random steps of B sequences; the starts of all, or of each, are keys of `STARTS`."""
    generator = torch.Generator().manual_seed(seed)
    episode, trial = torch.zeros(B, T, dtype=torch.bool), torch.zeros(B, T, dtype=torch.bool)
    for row, name in enumerate([starts] * B if isinstance(starts, str) else starts):
        for flags, steps in zip((episode, trial), STARTS[name], strict=True):
            flags[row, list(steps)] = True
    config = getattr(memory, "config", None)
    n_places, moves = (getattr(config, name, default) or default for name, default in (("n_places", 3), ("moves", 5)))
    embedding, pose = (torch.randn(B, T, width, generator=generator, dtype=torch.float64) for width in (INPUT_DIM, 3))
    place = torch.randint(n_places, (B, T), generator=generator)
    move = torch.randint(moves, (B, T), generator=generator)
    return StepInputs(embedding, episode, trial, 3.0 * pose, place, move)


@contextmanager
def _named(subject: MemoryUnderTest) -> Iterator[None]:
    """Put the name of the memory before the message of a `ContractError`."""
    try:
        yield
    except ContractError as error:
        raise ContractError(f"{subject.name}: {error}") from error


def check_close(what: str, features: Tensor, expected: Tensor, at_most: float) -> None:
    """Raise a `ContractError` that names the first step in which two features (B, T, D) differ."""
    check_true(
        features.shape == expected.shape and features.dtype == expected.dtype,
        f"{what}: {features.dtype} {tuple(features.shape)} and not {expected.dtype} {tuple(expected.shape)}",
    )
    off = (features - expected).abs().nan_to_num(torch.inf) > at_most
    off &= ~(features == expected)  # two infinities
    if off.any():
        at = off.nonzero()[off.nonzero()[:, 1].argmin()] if off.ndim > 1 else off.nonzero()[0]
        row, step = at[0].item(), at[1].item() if off.ndim > 1 else 0
        largest = (features - expected).abs().max().item()
        raise ContractError(f"{what}: differs first in step {step} of sequence {row}, by up to {largest:.3g}")


def check_declared(subject: MemoryUnderTest) -> None:
    """Attributes, shapes and types are as declared; settings are plain."""
    memory = subject.memory
    for name in ("input_dim", "output_dim"):
        value = getattr(memory, name, None)
        check_true(isinstance(value, int) and value >= 1, f"{name} must be an integer of at least 1, got {value!r}")
    check_true(memory.input_dim == INPUT_DIM, f"input_dim must be {INPUT_DIM}, as it was made, got {memory.input_dim}")
    config = getattr(memory, "config", None)
    check_true(is_dataclass(config), f"the attribute `config` must be its settings, a dataclass, got {config!r}")
    try:
        json.dumps(asdict(config))  # type: ignore[arg-type]
    except TypeError as error:
        raise ContractError(f"settings must be numbers, texts, lists and dicts, got {config!r} ({error})") from None
    state = memory.initial_state(2)
    _check_state("initial_state(2)", state, 2)
    x = inputs("trials", memory)
    features, state = memory.step(x.steps(0, 1), memory.initial_state(B))
    expected = (B, memory.output_dim)
    check_true(tuple(features.shape) == expected, f"step must give (B, D) = {expected}, got {tuple(features.shape)}")
    check_true(features.dtype == torch.float64, f"step must give the dtype of the weights, got {features.dtype}")
    _check_state("step", state, B)


def _check_state(what: str, state: Any, batch: int) -> None:
    check_true(isinstance(state, dict), f"the state of {what} must be a dict of tensors, got {type(state).__name__}")
    for key, value in state.items():
        has_rows = isinstance(value, Tensor) and value.ndim >= 1 and len(value) == batch
        got = tuple(value.shape) if isinstance(value, Tensor) else repr(value)
        check_true(has_rows, f"{key!r} in the state of {what} must be a tensor with B = {batch} rows, got {got}")


def check_sequence(subject: MemoryUnderTest) -> None:
    """T calls of `step` give the features of one `forward`, of all steps or of the last ones."""
    # Rows do not see each other, so the batches are stepped as one, and read alone.
    batches = {str(starts): inputs(starts, subject.memory) for starts in (*MIXED, *STARTS)}
    with torch.no_grad():
        state = subject.memory.initial_state(B * len(batches), max_steps=T)
        stepped, _ = subject.step_by_step(_joined([*batches.values()]), state)
        for (starts, x), expected in zip(batches.items(), stepped.split(B), strict=True):
            for last in (None, 1, 7, T):
                got, _ = subject.memory(x, None, last=last)
                what = f"forward(last={last}) must equal {T} calls of step, starts {starts}"
                check_close(what, got, expected[:, T - (last or T) :], CLOSE)


def check_chunks(subject: MemoryUnderTest) -> None:
    """`forward` after a state goes on from it, and acting goes on after learning."""
    memory = subject.memory
    for starts in MIXED:
        x = inputs(starts, memory)
        with torch.no_grad():
            expected, _ = subject.step_by_step(x, memory.initial_state(B, max_steps=T))
        for gradient in (False, True):
            with torch.set_grad_enabled(gradient):
                state: State | None = memory.initial_state(B, max_steps=3)
                parts = []
                for begin, end in ((0, 4), (4, 5), (5, 15), (15, 20)):
                    part, state = memory(x.steps(begin, end), state)
                    check_true(state is not None, "forward must return a state where it was given one, got None")
                    parts.append(part)
                part, state = memory(x.steps(20, 22), state, last=1)
                tail, _ = subject.step_by_step(x.steps(22, T), state)
            got = torch.cat([*parts, part, tail], 1)
            kept = torch.cat([expected[:, :20], expected[:, 21:]], 1)
            check_close(f"forward in pieces must equal {T} calls of step, starts {starts}", got, kept, CLOSE)


def check_prefill(subject: MemoryUnderTest) -> None:
    """Acting and refilling do not depend on the training mode; refilling has no gradient."""
    memory = subject.memory
    x = inputs("trials", memory)
    with torch.no_grad():
        expected, _ = subject.step_by_step(x, memory.initial_state(B, max_steps=T))
    memory.train()
    try:
        acting, _ = subject.step_by_step(x, memory.initial_state(B, max_steps=T))
        features, state = memory.prefill(x, memory.initial_state(B, max_steps=T))
        stays = memory.training
    finally:
        memory.eval()
    check_close("step must not depend on the training mode", acting.detach(), expected, EXACT)
    check_close("prefill must not depend on the training mode", features.detach(), expected, CLOSE)
    check_true(stays, "prefill must leave the training mode on")
    attached = [name for name, value in (("features", features), *state.items()) if value.requires_grad]
    check_true(not attached, f"prefill must be without gradient, but {attached} have one: detach them")


def check_no_future(subject: MemoryUnderTest) -> None:
    """No feature depends on later steps, and each on its own step."""
    memory = subject.memory
    generator = getattr(memory, "generator", None)
    for starts in ("one trial", *MIXED):
        x = inputs(starts, memory)
        for training in (False, True):
            memory.train(training)
            seen = []
            for changed in (None, 1, 9, 22):
                if generator is not None:
                    generator.manual_seed(3)
                other = copy.deepcopy(x)
                if changed is not None:
                    other.embedding[:, changed] += 1
                with torch.no_grad():
                    seen.append((changed, memory(other, None)[0]))
            memory.eval()
            whole = seen[0][1]
            for changed, features in seen[1:]:
                assert changed is not None
                what = f"features must not depend on the future: a change of step {changed}, starts {starts}"
                check_close(what, features[:, :changed], whole[:, :changed], 0.0)
                if not training:  # dropout may leave the step out
                    moved = not torch.equal(features[:, changed], whole[:, changed])
                    check_true(moved, f"features of step {changed} must depend on the embedding of that step")


def check_starts(subject: MemoryUnderTest) -> None:
    """`trial_start` empties the memory: what follows equals a fresh one."""
    memory = subject.memory
    x = inputs("trials", memory)
    with torch.no_grad():
        whole, _ = memory(x, None)
        for begin, end in ((9, 20), (20, T)):
            fresh, _ = memory(x.steps(begin, end), None)
            check_close(
                f"forward must empty the memory at trial_start, here step {begin}", whole[:, begin:end], fresh, EXACT
            )
            _, used = subject.step_by_step(x.steps(0, begin))
            again, _ = subject.step_by_step(x.steps(begin, end), used)
            check_close(f"step must empty the memory at trial_start, here step {begin}", again, fresh, EXACT)


def check_rows(subject: MemoryUnderTest) -> None:
    """Rows of a state are independent: they can be chosen, reordered and joined."""
    memory = subject.memory
    x, order = inputs(["one trial", "trials", "goes on"], memory), torch.tensor([2, 0])
    with torch.no_grad():
        expected, _ = subject.step_by_step(x)
        _, state = subject.step_by_step(x.steps(0, 11))
        chosen = {key: value[order] for key, value in state.items()}
        got, _ = subject.step_by_step(_rows(x.steps(11, T), order), chosen)
        check_close("two rows of a state must go on as in the batch", got, expected[order, 11:], EXACT)
        x = inputs(["one trial", "trials", "episodes"], memory)
        states, after = [], []
        for b, length in enumerate((8, 10, 2)):
            own = _rows(x, torch.tensor([b]))
            _, state = subject.step_by_step(own.steps(0, length), memory.initial_state(1, max_steps=T))
            states.append({key: value.clone() for key, value in state.items()})
            after.append((own.steps(length, length + 3), subject.step_by_step(own.steps(length, length + 3), state)[0]))
        if any(len({tuple(state[key].shape[1:]) for state in states}) > 1 for key in states[0]):
            return  # states that grow with the steps cannot be joined
        together = {key: torch.cat([state[key] for state in states]) for key in states[0]}
        got, _ = subject.step_by_step(_joined([steps for steps, _ in after]), together)
        expected = torch.cat([features for _, features in after])
        check_close("rows of different states must make a state", got, expected, EXACT)


def _given(x: StepInputs) -> list[str]:
    """Names of the inputs that are not None."""
    return [field.name for field in fields(x) if getattr(x, field.name) is not None]


def _rows(x: StepInputs, order: Tensor) -> StepInputs:
    return StepInputs(**{name: getattr(x, name)[order] for name in _given(x)})


def _joined(parts: list[StepInputs]) -> StepInputs:
    return StepInputs(**{name: torch.cat([getattr(part, name) for part in parts]) for name in _given(parts[0])})


def check_decisions(subject: MemoryUnderTest) -> None:
    """`features_at` gives features and gradients of `forward` at some steps."""
    memory = subject.memory
    x = inputs(["one trial", "trials", "episodes"], memory)
    x.embedding.requires_grad_()
    at = torch.tensor([[22, 0, 7, 7], [8, 9, 22, 1], [14, 13, 5, 2]])
    whole, _ = memory(x, None)
    check_true(whole.requires_grad, "forward must compute gradients, its features have none")
    got = memory.features_at(x, at)
    expected = torch.stack([whole[row, at[row]] for row in range(B)])
    check_close("features_at must equal forward at these steps", got, expected, EXACT)
    weight = torch.linspace(-1.0, 1.0, got.numel(), dtype=got.dtype).view_as(got)
    leaves = [x.embedding, *memory.parameters()]
    gradients = [
        torch.autograd.grad((features * weight).sum(), leaves, allow_unused=True, materialize_grads=True)
        for features in (got, expected)
    ]
    for name, one, other in zip(
        ["the embedding", *(name for name, _ in memory.named_parameters())], *gradients, strict=True
    ):
        differs = (one - other).abs().max().item()
        check_true(differs <= EXACT, f"features_at must have the gradients of forward: {name} differs by {differs:.3g}")


def check_gradient(subject: MemoryUnderTest) -> None:
    """Gradients reach every step that the last features depend on.

    A config with `bptt` may cut them.
    """
    memory = subject.memory
    if getattr(getattr(memory, "config", None), "bptt", None) is not None:
        return
    x = inputs("one trial", memory)
    x.embedding.requires_grad_()
    features, _ = memory(x, None, last=1)
    check_true(features.requires_grad, "features of forward must have a gradient: they are detached")
    (gradient,) = torch.autograd.grad(features.sum(), x.embedding)
    for step in (T - 1, 20, 12, 5, 0):
        other = copy.deepcopy(x)
        with torch.no_grad():
            other.embedding[:, step] += 1e-6  # so small that no choice of a step changes
            moved = (memory(other, None, last=1)[0] - features).abs().amax((1, 2)) > 1e-13
        cut = moved & (gradient[:, step] == 0).all(1)
        check_true(
            not cut.any(), f"the last features depend on step {step}, but no gradient reaches it: something is detached"
        )


def check_extra_inputs(subject: MemoryUnderTest) -> None:
    """An input that the memory requires changes its features; the others do not."""
    memory = subject.memory
    x = inputs("one trial", memory)
    with torch.no_grad():
        before, _ = memory(x, None)
        for name in EXTRA_INPUTS:
            value = getattr(x, name)
            changed = replace(x, **{name: value + 1.0 if name == "pose" else value.roll(1, 1)})
            if name == "pose":
                changed.pose[:, ::2] *= -1.0  # type: ignore[index]  # relative poses change too
            differs = not torch.equal(memory(changed, None)[0], before)
            required = name in memory.required_inputs
            check_true(
                differs == required,
                f"uses_{name} is {required}, but {name} changes {'the' if differs else 'no'} features",
            )


def check_strategies(subject: MemoryUnderTest) -> None:
    """A memory with `strategies` follows that of its state, or of its inputs."""
    memory = subject.memory
    if not memory.strategies:
        return
    numbers = torch.tensor([STRATEGY_NAMES.index(name) for name in memory.strategies])
    for starts in MIXED:
        x = inputs(starts, memory)
        generator = torch.Generator().manual_seed(2)
        drawn = numbers[torch.randint(len(numbers), (B, T), generator=generator)]
        resets = x.trial_start
        strategy = drawn[:, 0]  # of rows that go on with an empty memory
        state, features, strategies = memory.initial_state(B, max_steps=T), [], []
        with torch.no_grad():
            for t in range(T):
                strategy = torch.where(resets[:, t], drawn[:, t], strategy)
                feature, state = memory.step(x.steps(t, t + 1), state | {STRATEGY: strategy})
                check_true(STRATEGY in state, f"a state of a memory with `strategies` must have {STRATEGY!r}")
                features.append(feature)
                strategies.append(strategy)
            whole = replace(x, strategy=torch.stack(strategies, 1))
            got, _ = memory(whole, None)
            check_close(
                f"forward must follow the strategies of its inputs, starts {starts}",
                got,
                torch.stack(features, 1),
                CLOSE,
            )
            first, state = memory(whole.steps(0, 11), memory.initial_state(B, max_steps=T))
            check_true(
                torch.equal(state[STRATEGY], strategies[10]),
                "forward must return a state with the strategy of the last step",
            )
            rest, _ = memory(whole.steps(11, T), state)
            check_close(
                f"forward must go on with the strategy of its state, starts {starts}",
                torch.cat([first, rest], 1),
                got,
                CLOSE,
            )


def check_bounded(subject: MemoryUnderTest) -> None:
    """The state of a bounded memory does not grow with the steps."""
    memory = subject.memory
    if not memory.bounded:
        return
    x = inputs("goes on", memory)
    with torch.no_grad():
        state = memory.initial_state(B)
        for _ in range(4):
            _, state = memory.prefill(x, state)
        before = sum(value.numel() for value in state.values())
        for _ in range(4):
            _, state = subject.step_by_step(x, state)
    after = sum(value.numel() for value in state.values())
    counts = f"{before} numbers after {4 * T} steps, {after} after {8 * T}"
    check_true(after <= 1.5 * before, f"bounded is True, but the state grows: {counts}")


#: All rules, those first on which others rest.
CHECKS: tuple[Callable[[MemoryUnderTest], None], ...] = (
    check_declared,
    check_sequence,
    check_chunks,
    check_starts,
    check_no_future,
    check_extra_inputs,
    check_prefill,
    check_rows,
    check_decisions,
    check_gradient,
    check_strategies,
    check_bounded,
)
