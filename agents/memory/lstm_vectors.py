"""LSTM that keeps a vector of each step, all or the newest, and reads them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from memenvs.agents.memory.attention import KeyWindow, attend
from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps
from memenvs.agents.memory.clock import last_reset
from memenvs.agents.memory.recurrent import LSTMConfig, LSTMMemory
from memenvs.agents.sizes import check_sizes

INITIAL_STEPS = 64
"""Initial slots of a memory without a capacity."""


@dataclass(frozen=True, kw_only=True)
class LSTMVectorsConfig:
    r"""Settings of an LSTM that keeps the vectors of all steps.

    Idea:
        An LSTM reads the steps, and its output at each of them is kept as a vector. A decision reads all of them by
        attention. So it has what the recurrent state has lost, at a cost that grows with the past.

    State:
        That of `lstm`, and D numbers for each step.

    When to use:
        As the upper bound for memories of constant size in short trials.

    When not to use:
        Long trials: state and decisions grow with every step.

    Attributes:
        dim: Width D of the hidden state, of the vectors and of the features.
        layers: Recurrent layers on top of each other; >= 1.
        capacity: Newest vectors that are kept, M; >= 1; None keeps all.
    """

    dim: int = 128
    layers: int = 2
    capacity: int | None = None

    def __post_init__(self) -> None:
        check_sizes(self)


@dataclass(frozen=True, kw_only=True)
class NewestVectorsConfig(LSTMVectorsConfig):
    r"""Settings of an LSTM that keeps the vectors of the newest steps.

    Idea:
        As `lstm-on`, with the newest M vectors only: state and decisions have a constant size. With M that of another
        memory it is the baseline of equal size.

    State:
        That of `lstm`, and M D numbers.

    When to use:
        As the recurrent baseline of the memories with compressed vectors; the default M is the size of `ct-lt`.

    When not to use:
        Where old events must be distinguished: what is older than M steps is only in the recurrent state.

    Attributes:
        capacity: Newest vectors that are kept, M; >= 1; None keeps all.
    """

    capacity: int | None = 58


class LSTMVectorsMemory(Memory):
    r"""LSTM whose output at each step is kept, and read by attention.

    The state is that of `lstm`, `vectors`, float (B, slots, D), the newest one last, and `length`, the steps since the
    last reset. Gradients flow through all vectors of a `forward`. The method `vectors` gives them to a reader of its
    own, such as one that answers questions. Without a capacity, slots are added as steps come.

    Equations:
        .. math::

            h_t &= \operatorname{LSTM}(x_t, h_{t-1}), \qquad m_t = W_m h_t \\
            f_t &= h_t + W_o \sum_{j} a_{tj} W_v m_j,
            \quad a_t = \operatorname{softmax}_j ((W_q h_t)^\top W_k m_j / \sqrt{D}), \quad t - M < j \le t

        h is the output of the last layer.

    Cost:
        A decision takes 4 D (I + D) multiply-adds in the first recurrent layer, 8 D^2 in each further one and
        3 D^2 + 2 M D^2 + 2 M D for reading M vectors. Steps are learned one after the other.

    Difference from the paper:
        In the thesis only the decoder of answers reads the vectors. An agent acts at every step, so here each step
        reads them too. The thesis' range of indices has M + 1 vectors; here M are kept.

    Args:
        input_dim: Width of the embedding.
        config: Sizes and capacity.

    Source:
        Baermann, "Episodic Memory Verbalization with a Long-Term Compressive Memory Transformer", master's thesis, KIT
        2021, its baselines.
    """

    def __init__(self, input_dim: int, config: LSTMVectorsConfig) -> None:
        super().__init__()
        self.config = config
        self.bounded = config.capacity is not None
        self.input_dim, self.output_dim = input_dim, config.dim
        recurrent = LSTMConfig(hidden_dim=config.dim, layers=config.layers)
        self.lstm = LSTMMemory(input_dim, recurrent)
        self.write = nn.Linear(config.dim, config.dim)
        self.query = nn.Linear(config.dim, config.dim)
        self.keys_values = nn.Linear(config.dim, 2 * config.dim)
        self.read_out = nn.Linear(config.dim, config.dim)

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Return the state of the LSTM and no vector; see `Memory.initial_state`."""
        return self._initial_state(batch_size, self.config.capacity or max_steps or INITIAL_STEPS)

    def _initial_state(self, batch: int, slots: int) -> State:
        vectors = self.write.weight.new_zeros(batch, slots, self.config.dim)
        length = torch.zeros(batch, dtype=torch.int64, device=vectors.device)
        return self.lstm.initial_state(batch) | {"vectors": vectors, "length": length}

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """Learn: T steps at once; see `Memory.forward`. A state is returned in any case."""
        batch, steps = check_inputs(x, self.input_dim)
        n_last = n_last_steps(steps, last)
        capacity = self.config.capacity
        if state is None:
            state = self._initial_state(batch, capacity or 0)
        h, recurrent = self.lstm(x, {part: state[part] for part in self.lstm.parts})  # (B, T, D)
        h = h.to(self.write.weight.dtype)  # float32 also under autocast
        past = state["vectors"].shape[1]
        vectors = torch.cat([state["vectors"], self.write(h).to(h.dtype)], 1)  # (B, past + T, D)
        reset = last_reset(x.trial_start, state["length"])  # (B, T)
        now = torch.arange(steps, device=h.device)
        first = reset if capacity is None else torch.maximum(reset, now - capacity + 1)
        at = slice(steps - n_last, steps)
        window = KeyWindow(past + first[:, at], (past + now[at]).expand(batch, -1))
        query = self.query(h[:, at])[:, None]
        keys, values = self.keys_values(vectors)[:, None].chunk(2, -1)
        read = attend(query, keys, values, causal=False, mask=window)[:, 0]
        features = h[:, at] + self.read_out(read)
        length = steps - reset[:, -1]
        slots = capacity or max(past, int(length.max()))  # without a capacity they grow
        after = {"vectors": vectors[:, past + steps - slots :], "length": length}
        return features, recurrent | after

    def vectors(self, state: State) -> tuple[Tensor, Tensor]:
        """Return the vectors that are kept, for a reader of its own.

        Args:
            state: From `forward` or `step`.

        Returns:
            float, (B, M, D), and bool, (B, M), True where there is a vector.
        """
        slots = state["vectors"].shape[1]
        age = torch.arange(slots - 1, -1, -1, device=state["length"].device)
        return state["vectors"], age < state["length"][:, None]
