"""Recurrent memories: the whole past in one vector per layer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps, step_ranges
from memenvs.agents.sizes import check_sizes

SATURATED = 1e4
"""Gate input that closes (negative) or opens (positive) a gate exactly: its sigmoid is 0 or 1 in any precision."""


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Settings of a recurrent memory.

    Attributes:
        hidden_dim: Width H of the hidden state, and of the features; >= 1.
        layers: Recurrent layers on top of each other; >= 1.
        bptt: Length of truncated backpropagation through time, steps; >= 1; None does not truncate. Segments are
            counted from the first step of each `forward`.
    """

    hidden_dim: int = 256
    layers: int = 1
    bptt: int | None = None

    def __post_init__(self) -> None:
        check_sizes(self)


@dataclass(frozen=True, kw_only=True)
class LSTMConfig(RecurrentConfig):
    """Settings of an LSTM.

    Attributes:
        hidden_dim, layers, bptt: See `RecurrentConfig`.
        forget_bias: Bias of the forget gates at the start; in [-10, 10]. With 1 gradients reach far back from the first
            update on; with 0, as in PyTorch, a millionth of the cell is left after 20 steps.
    """

    forget_bias: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not -10 <= self.forget_bias <= 10:
            raise ValueError(f"forget_bias must be in [-10, 10], got {self.forget_bias}")


class RecurrentMemory(Memory):
    """An LSTM or GRU over the steps, emptied at each start.

    Sequences with starts inside are cut there, and the pieces run as one packed batch: as many steps in a row as the
    longest piece has, and no step for padding.

    Args:
        input_dim: Width of the embedding.
        config: Sizes, and the start that empties the state.
        network: The recurrent layers.
    """

    parts: tuple[str, ...]
    """Names of the state's tensors, each (B, layers, H)."""

    def __init__(self, input_dim: int, config: RecurrentConfig, network: nn.GRU | nn.LSTM) -> None:
        super().__init__()
        self.config = config
        self.input_dim = input_dim
        self.output_dim = config.hidden_dim
        self.network = network

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Zeros, (B, layers, H) each; see `Memory.initial_state`."""
        weight = next(self.network.parameters())
        return {part: weight.new_zeros(batch_size, self.config.layers, self.config.hidden_dim) for part in self.parts}

    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Act: one step of every sequence; see `Memory.step`."""
        check_inputs(x, self.input_dim)
        keep = ~x.trial_start[:, :1, None]  # (B, 1, 1)
        features, state = self._run(x.embedding, {part: value * keep for part, value in state.items()})
        return features[:, 0], state

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """Learn: T steps at once; see `Memory.forward`. A state is returned in any case."""
        batch, steps = check_inputs(x, self.input_dim)
        n_last = n_last_steps(steps, last)
        if state is None:
            state = self.initial_state(batch)
        segments = []
        for begin, end in step_ranges(steps, self.config.bptt):
            if begin > 0:
                state = {part: value.detach() for part, value in state.items()}
            features, state = self._run_with_resets(x.steps(begin, end), state)
            segments.append(features)
        return torch.cat(segments, 1)[:, steps - n_last :], state

    def _run_with_resets(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Run steps with gradients through all of them; features of all, and the state after them."""
        resets = x.trial_start
        if resets[:, 1:].any():
            return self._run_pieces(x.embedding, resets, state)
        return self._run(x.embedding, {part: value * ~resets[:, :1, None] for part, value in state.items()})

    def _run(self, data: Tensor | PackedSequence, state: State) -> tuple[Tensor, State]:
        """Run the network over equally long sequences, or over a packed batch."""
        hidden = [state[part].transpose(0, 1).contiguous() for part in self.parts]  # (layers, B, H) each
        out, new = self.network(data, tuple(hidden) if len(hidden) > 1 else hidden[0])
        new = new if isinstance(new, tuple) else (new,)
        features = out.data if isinstance(out, PackedSequence) else out
        return features, {part: value.transpose(0, 1) for part, value in zip(self.parts, new, strict=True)}

    def _run_pieces(self, embedding: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the network over sequences that are cut at their resets.

        A reset would stop a sequence in the middle. So each piece between resets becomes a sequence of its own, and
        PyTorch runs all of them as one packed batch, the longest first. With B = 2, T = 4 and resets at (0, 3) and
        (1, 1), steps are numbered 0 to 3 and 4 to 7::

            pieces          A = 0 1 2   B = 3   C = 4   D = 5 6 7
            longest first   A  D  B  C
            packed          0 5 3 4 | 1 6 | 2 7        batch_sizes 4, 2, 2

        Args:
            embedding: float, (B, T, D_in).
            resets: bool, (B, T).
            state: Before the first step.

        Returns:
            float (B, T, H) features, and the state after the last step.
        """
        batch, steps = resets.shape
        is_first = resets.clone()
        is_first[:, 0] = True
        row, begin = is_first.nonzero(as_tuple=True)  # (P,) each: sequence and first step of each piece
        piece = is_first.flatten().cumsum(0) - 1  # (B T,): piece of each step
        length = torch.bincount(piece, minlength=len(row))  # (P,)
        longest_first = torch.argsort(length, descending=True, stable=True)
        rank = torch.argsort(longest_first)  # (P,)
        # (B T,): steps since the piece began
        since = torch.arange(batch * steps, device=piece.device) - (row * steps + begin)[piece]
        packing = torch.argsort(since * len(row) + rank[piece])  # all first steps, then all second steps, ...
        batch_sizes = torch.bincount(since).cpu()
        packed = PackedSequence(embedding.flatten(0, 1).index_select(0, packing), batch_sizes)

        is_carried = (~resets[row, begin])[longest_first, None, None]  # pieces that go on from the given state
        state = {part: value[row[longest_first]] * is_carried for part, value in state.items()}
        features, state = self._run(packed, state)
        features = features.index_select(0, torch.argsort(packing)).view(batch, steps, -1)
        final = rank[piece.view(batch, steps)[:, -1]]  # (B,): last piece of each sequence
        return features, {part: value[final] for part, value in state.items()}


class GRUMemory(RecurrentMemory):
    r"""Gated recurrent unit: one vector, of which a gate replaces a part at each step.

    Idea:
        The past is one vector per layer. An update gate decides for each of its numbers how much the step replaces.
        The size never grows, so a trial may be endless.

    Equations:
        .. math::

            r_t &= \sigma(W_r x_t + U_r h_{t-1} + b_r) \\
            z_t &= \sigma(W_z x_t + U_z h_{t-1} + b_z) \\
            n_t &= \tanh(W_n x_t + b_n + r_t \odot (U_n h_{t-1} + c_n)) \\
            h_t &= (1 - z_t) \odot n_t + z_t \odot h_{t-1}

        The features are h of the last layer. The input of a further layer is h of the layer below.

    State:
        h of each layer, H numbers each.

    Cost:
        A step takes 3 H (I + H) multiply-adds per layer, with I inputs, however long the past is. Steps are learned
        one after the other, and the backward pass keeps H numbers of every step.

    When to use:
        As the first memory to try: it is small and has few settings. It fits long or endless trials in which a few
        facts must be remembered.

    When not to use:
        Where many separate facts must be recalled in detail, such as which object was in which room. One vector then
        has to hold all of them; memories with attention keep the steps apart.

    Difference from the paper:
        The reset gate applies after the product with U, as in cuDNN; in the paper it applies before. Episodes that
        start within a sequence empty the state there.

    Source:
        Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine Translation",
        EMNLP 2014 (arXiv:1406.1078), in the form of `torch.nn.GRU`.
    """

    parts = ("hidden",)

    def __init__(self, input_dim: int, config: RecurrentConfig) -> None:
        super().__init__(input_dim, config, nn.GRU(input_dim, config.hidden_dim, config.layers, batch_first=True))

    def _run(self, data: Tensor | PackedSequence, state: State) -> tuple[Tensor, State]:
        """See `RecurrentMemory._run`."""
        if not isinstance(data, PackedSequence) or data.data.device.type != "cpu":
            return super()._run(data, state)
        # On a CPU, PyTorch's backward pass over a packed batch fills a tensor of all steps with zeros at each step.
        # This one splits the steps once, and takes the product of all inputs in advance.
        sizes = data.batch_sizes.tolist()
        below, after = data.data, []
        for layer in range(self.config.layers):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            weight_in, weight, bias_in, bias = (getattr(self.network, f"{name}_l{layer}") for name in names)
            h = state["hidden"][:, layer]
            gates = nn.functional.linear(below, weight_in, bias_in).split(sizes)
            features, final = [], []
            for size, gate in zip(sizes, gates, strict=True):
                if size < len(h):  # sequences are sorted by length: the last ones have ended
                    final.append(h[size:])
                    h = h[:size]
                x_rz, x_n = gate.split([2 * self.config.hidden_dim, self.config.hidden_dim], -1)
                h_r, h_z, h_n = torch.addmm(bias, h, weight.t()).chunk(3, -1)
                r, z = (x_rz + torch.cat([h_r, h_z], -1)).sigmoid().chunk(2, -1)
                h = torch.lerp(torch.addcmul(x_n, r, h_n).tanh(), h, z)
                features.append(h)
            below = torch.cat(features)
            after.append(torch.cat([h, *reversed(final)]))
        return below, {"hidden": torch.stack(after, 1)}


class LSTMMemory(RecurrentMemory):
    r"""Long short-term memory: a cell that gates write, keep and read.

    On a CPU, sequences are not cut at their starts, because only equally long ones run in one compiled kernel. Instead,
    a step is inserted before each start that closes the input and forget gates, i = f = 0. It leaves exactly nothing of
    the past, neither in values nor in gradients. Sequences with fewer starts are padded by steps with i = 0 and f = 1,
    which keep the state as it is. `benchmarks/lstm.py` measures the gain over a packed batch of pieces.

    On a CPU it also runs in the precision of its weights under autocast: not every CPU has this kernel in bfloat16.

    Idea:
        The past is a cell and a hidden vector per layer. A forget gate keeps numbers of the cell unchanged over many
        steps, so that gradients reach far back. Carried over all episodes of a trial, this is the agent RL2.

    Equations:
        .. math::

            i_t, f_t, o_t &= \sigma(W_{i,f,o} x_t + U_{i,f,o} h_{t-1} + b_{i,f,o}) \\
            g_t &= \tanh(W_g x_t + U_g h_{t-1} + b_g) \\
            c_t &= f_t \odot c_{t-1} + i_t \odot g_t \\
            h_t &= o_t \odot \tanh(c_t)

        The features are h of the last layer. The input of a further layer is h of the layer below.

    State:
        h and c of each layer, H numbers each.

    Cost:
        A step takes 4 H (I + H) multiply-adds per layer, with I inputs, however long the past is. Steps are learned
        one after the other, and the backward pass keeps 2 H numbers of every step.

    When to use:
        As the recurrent baseline of a study, and for long or endless trials. With `credit_across_episodes` of
        `PPOConfig` it is RL2: exploring is rewarded by what later episodes of the trial gain from it.

    When not to use:
        Where many separate facts must be recalled in detail. One vector then has to hold all of them; memories
        with attention keep the steps apart.

    Difference from the paper:
        The cell has a forget gate (Gers et al., 2000), which the paper of 1997 has not; its bias begins at 1, as in
        Jozefowicz et al., 2015. Trials that start within a sequence empty the state there.

    Source:
        Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural Computation 1997 (doi:10.1162/neco.1997.9.8.1735),
        in the form of `torch.nn.LSTM`. RL2: Duan et al., "RL2: Fast Reinforcement Learning via Slow Reinforcement
        Learning", 2016 (arXiv:1611.02779).
    """

    parts = ("hidden", "cell")
    network: nn.LSTM

    def __init__(self, input_dim: int, config: LSTMConfig) -> None:
        super().__init__(input_dim, config, nn.LSTM(input_dim, config.hidden_dim, config.layers, batch_first=True))
        with torch.no_grad():
            for layer in range(config.layers):
                bias = getattr(self.network, f"bias_ih_l{layer}")
                bias[config.hidden_dim : 2 * config.hidden_dim] = config.forget_bias

    def _run_with_resets(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """See `RecurrentMemory._run_with_resets`."""
        if x.embedding.device.type != "cpu":
            return super()._run_with_resets(x, state)
        with torch.autocast("cpu", enabled=False):
            embedding = x.embedding.to(next(self.parameters()).dtype)
            return super()._run_with_resets(replace(x, embedding=embedding), state)

    def _run_pieces(self, embedding: Tensor, resets: Tensor, state: State) -> tuple[Tensor, State]:
        """Run the network over sequences with starts inside; see `RecurrentMemory._run_pieces`."""
        if embedding.device.type != "cpu":
            return super()._run_pieces(embedding, resets, state)
        inserted = resets.clone()  # resets that need a step before them; at the first step the state is emptied instead
        inserted[:, 0] = False
        h, slots = _with_gate_steps(embedding, inserted)
        flags = h[..., -2:]
        # input of the two flags to the gates (input, forget, candidate, output): flag 0 empties, flag 1 keeps
        gates = embedding.new_tensor([[-SATURATED, -SATURATED], [-SATURATED, SATURATED], [0.0, 0.0], [0.0, 0.0]])
        gates = gates.repeat_interleave(self.config.hidden_dim, 0)  # (4 H, 2)
        after: dict[str, list[Tensor]] = {part: [] for part in self.parts}
        for layer in range(self.config.layers):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            weight, *others = (getattr(self.network, f"{name}_l{layer}") for name in names)
            initial = [(state[part][:, layer] * ~resets[:, :1])[None] for part in self.parts]  # (1, B, H) each
            has_biases, num_layers, dropout, bidirectional, batch_first = True, 1, 0.0, False, False
            h, _, cell = torch.lstm(
                h if layer == 0 else torch.cat([h, flags], -1), initial, [torch.cat([weight, gates], 1), *others],
                has_biases, num_layers, dropout, self.training, bidirectional, batch_first,
            )  # fmt: skip
            features = h.flatten(0, 1).index_select(0, slots.flatten()).unflatten(0, slots.shape)  # (B, T, H)
            after["hidden"].append(features[:, -1])
            after["cell"].append(cell[0])
        return features, {part: torch.stack(values, 1) for part, values in after.items()}


def _with_gate_steps(embedding: Tensor, inserted: Tensor) -> tuple[Tensor, Tensor]:
    """Insert steps that empty the memory, and fill up each sequence with steps that keep it.

    With a reset before step c of the first of two sequences, x empties and - keeps, so that L = 5::

        a b c d     ->     a b x c d
        e f g h            e f g h -

    Args:
        embedding: float, (B, T, D_in).
        inserted: bool, (B, T); True where an emptying step goes before this one.

    Returns:
        Padded sequences, float (L, B, D_in + 2): embeddings, zeros at the inserted steps, and two flags. The flags are
        (1, 0) at a step that empties the memory, (0, 1) at one that keeps it, else (0, 0). And the index of each of the
        T steps among all L B steps, int64 (B, T).
    """
    batch, steps, width = embedding.shape
    before = inserted.cumsum(1)  # new steps up to each step
    length = steps + int(before[:, -1].max())
    slots = (torch.arange(steps) + before) * batch + torch.arange(batch)[:, None]
    padded = embedding.new_zeros(length * batch, width + 2)
    padded[:, -1] = 1.0
    padded[:, -1].index_fill_(0, slots.flatten(), 0.0)
    padded[slots[inserted] - batch, -2:] = padded.new_tensor([1.0, 0.0])
    padded[:, :width].index_copy_(0, slots.flatten(), embedding.flatten(0, 1))
    return padded.view(length, batch, width + 2), slots
