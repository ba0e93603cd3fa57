"""`check_memory` names each fault of memories that are broken on purpose."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from memenvs.agents.memory import Memory, State, StepInputs
from memenvs.agents.testing import ContractError, check_memory


@dataclass(frozen=True, kw_only=True)
class LeakyConfig:
    """Settings of the memory."""

    dim: int = 6
    decay: float = 0.9
    n_places: int = 3


class Leaky(Memory):
    """h_t = decay * h_{t-1} + W x_t + place code, and h is emptied at the start of a trial."""

    uses_place = True

    def __init__(self, input_dim: int, config: LeakyConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.encode = nn.Linear(input_dim, config.dim)
        self.places = nn.Embedding(config.n_places, config.dim)

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        return {"h": self.encode.weight.new_zeros(batch_size, self.output_dim)}

    def tokens(self, x: StepInputs) -> Tensor:
        return self.encode(x.embedding) + self.places(x.place)

    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        h = self.config.decay * state["h"] * ~x.trial_start[:, :1] + self.tokens(x)[:, 0]
        return h, {"h": h}

    def forward(
        self, x: StepInputs, state: State | None = None, last: int | None = None
    ) -> tuple[Tensor, State | None]:
        state = self.initial_state(len(x.embedding)) if state is None else state
        features = []
        for t in range(x.embedding.shape[1]):
            feature, state = Leaky.step(self, x.steps(t, t + 1), state)
            features.append(feature)
        return torch.stack(features, 1)[:, -(last or 0) :], state


@pytest.mark.slow
def test_a_memory_that_keeps_the_contract_passes() -> None:
    check_memory(Leaky)
    check_memory(Leaky, LeakyConfig(dim=3), decay=0.5)
    check_memory("gru", hidden_dim=4, layers=2)


class OtherStep(Leaky):
    def step(self, x, state):
        features, state = super().step(x, state)
        return features + 0.001, state


class IgnoresStarts(Leaky):
    def step(self, x, state):
        return super().step(replace(x, trial_start=torch.zeros_like(x.trial_start)), state)


class IgnoresAllStarts(IgnoresStarts):
    def forward(self, x, state=None, last=None):
        return super().forward(replace(x, trial_start=torch.zeros_like(x.trial_start)), state, last)


class IgnoresPlace(Leaky):
    def tokens(self, x):
        return self.encode(x.embedding)


class SecretPlace(Leaky):
    uses_place = False


class CutsGradient(Leaky):
    def forward(self, x, state=None, last=None):
        half = x.embedding.shape[1] // 2
        if half < 5:
            return super().forward(x, state, last)
        first, state = super().forward(x.steps(0, half), state)
        second, state = super().forward(x.steps(half, x.embedding.shape[1]), {"h": state["h"].detach()})
        return torch.cat([first, second], 1)[:, -(last or 0) :], state


class StateHasGradient(Leaky):
    def prefill(self, x, state, last=None):
        return self(x, state, last)


class NoStateAfter(Leaky):
    def forward(self, x, state=None, last=None):
        return super().forward(x, state, last)[0], None


class IgnoresLast(Leaky):
    def forward(self, x, state=None, last=None):
        return super().forward(x, state)


class StateIsAList(Leaky):
    def initial_state(self, batch_size, *, max_steps=None):
        return [torch.zeros(batch_size)]


class BatchIsSecond(Leaky):
    def initial_state(self, batch_size, *, max_steps=None):
        return {"h": torch.zeros(self.output_dim, batch_size)}


class SinglePrecision(Leaky):
    def step(self, x, state):
        features, state = super().step(x, state)
        return features.float(), state


class Grows(Leaky):
    def step(self, x, state):
        features, after = super().step(x, {"h": state["h"]})
        log = state.get("log", features[:, None][:, :0])
        return features, {**after, "log": torch.cat([log, features[:, None]], 1)}


class NoisyStep(Leaky):
    def step(self, x, state):
        features, state = super().step(x, state)
        return nn.functional.dropout(features, 0.5, self.training), state


class WrongDecisions(Leaky):
    def features_at(self, x, at):
        return super().features_at(x, (at + 1).clamp(max=x.embedding.shape[1] - 1))


class WrongWidth(Leaky):
    def __init__(self, input_dim: int, config: LeakyConfig) -> None:
        super().__init__(input_dim, config)
        self.output_dim = 5

    def initial_state(self, batch_size, *, max_steps=None):
        return {"h": torch.zeros(batch_size, self.config.dim, dtype=torch.float64)}


class NoConfig(Leaky):
    def __init__(self, input_dim: int, config: LeakyConfig) -> None:
        super().__init__(input_dim, config)
        self.config = {"decay": 0.9}


class StaysInEvaluation(Leaky):
    def prefill(self, x, state):
        self.eval()
        return super().prefill(x, state)


class ComparesCounts(Leaky):
    def initial_state(self, batch_size, *, max_steps=None):
        return {**super().initial_state(batch_size), "count": torch.zeros(batch_size)}

    def step(self, x, state):
        feature, after = super().step(x, state)
        count = state["count"] + 1
        return feature + (count - count[0])[:, None], {**after, "count": count}

    def forward(self, x, state=None, last=None):
        state = self.initial_state(len(x.embedding)) if state is None else state
        features, after = super().forward(x, state, last)
        return features, {**after, "count": state["count"] + x.embedding.shape[1]}


class NoGradient(Leaky):
    @torch.no_grad()
    def forward(self, x, state=None, last=None):
        return super().forward(x, state, last)


FAULTS = {
    OtherStep: r"OtherStep: forward\(last=None\) must equal 23 calls of step, starts .*: differs first in step 0 of "
    r"sequence 0, by up to 0\.001$",
    IgnoresStarts: r"forward\(last=None\) must equal 23 calls of step, .*: differs first in step \d+ of sequence \d",
    IgnoresAllStarts: r"(forward|step) must empty the memory at trial_start, here step 9: differs first in step 0",
    IgnoresPlace: r"uses_place is True, but place changes no features",
    SecretPlace: r"uses_place is False, but place changes the features",
    NoGradient: r"forward must compute gradients, its features have none",
    CutsGradient: r"the last features depend on step 5, but no gradient reaches it: something is detached",
    StateHasGradient: r"prefill must be without gradient, but \['features', 'h'\] have one: detach them",
    NoStateAfter: r"forward must return a state where it was given one, got None",
    IgnoresLast: r"forward\(last=1\) must equal 23 calls of step, .*: .* \(3, 23, 6\) and not .*\(3, 1, 6\)",
    StaysInEvaluation: r"prefill must leave the training mode on",
    ComparesCounts: r"rows of different states must make a state: differs first in step 0 of sequence 1",
    StateIsAList: r"the state of initial_state\(2\) must be a dict of tensors, got list",
    BatchIsSecond: r"'h' in the state of initial_state\(2\) must be a tensor with B = 2 rows, got \(6, 2\)",
    SinglePrecision: r"step must give the dtype of the weights, got torch\.float32",
    Grows: r"bounded is True, but the state grows: \d+ numbers after 92 steps, \d+ after 184",
    NoisyStep: r"step must not depend on the training mode: differs first in step 0",
    WrongDecisions: r"features_at must equal forward at these steps: differs first",
    WrongWidth: r"step must give \(B, D\) = \(3, 5\), got \(3, 6\)",
    NoConfig: r"the attribute `config` must be its settings, a dataclass, got \{'decay'",
}


@pytest.mark.parametrize("memory", FAULTS, ids=lambda memory: memory.__name__)
@pytest.mark.slow
def test_each_fault_is_named(memory: type[Memory]) -> None:
    with pytest.raises(ContractError, match=FAULTS[memory]) as caught:
        check_memory(memory)
    assert str(caught.value).startswith(memory.__name__)


def test_what_is_no_memory_is_refused() -> None:
    class NoHint(Leaky):
        def __init__(self, input_dim: int, config: Any) -> None:
            super().__init__(input_dim, config)

    with pytest.raises(TypeError, match=r"memory must be a name or a subclass of Memory, got <class 'torch\."):
        check_memory(nn.Linear)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"NoHint must be made as \(input_dim, config: CONFIG\), a dataclass, or give"):
        check_memory(NoHint)
    with pytest.raises(ValueError, match=r"config must be None beside the name 'gru', .* got"):
        check_memory("gru", LeakyConfig())
    check_memory(NoHint, LeakyConfig())
    with pytest.raises(ValueError, match="unknown memory 'grue'"):
        check_memory("grue")
    with pytest.raises(TypeError, match="unexpected keyword argument 'width'"):
        check_memory(Leaky, width=3)
