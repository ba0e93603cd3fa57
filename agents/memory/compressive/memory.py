"""Compressive Transformer: blocks of steps that attend to queues of past vectors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memenvs.agents.memory.base import Memory, State, StepInputs, check_inputs, n_last_steps
from memenvs.agents.memory.compressive.config import CompressiveConfig
from memenvs.agents.memory.compressive.layers import CompressiveLayer
from memenvs.agents.memory.compressive.queues import Queues


class CompressiveMemory(Memory):
    r"""Transformer over blocks of steps, whose layers also attend to queues of past vectors.

    Blocks begin at the start of a trial. The features of a step are the output of the last layer for it; the steps of
    the unfinished block so far are computed again at each step. A block enters the queues when it is full.

    The state holds the unfinished block (`frames`, `count`), the outputs of the newest block (`outputs`) and the
    queues of `Queues`. `vectors` gives the content of the memory for a reader of its own, such as one that answers
    questions. Gradients flow through all steps of a `forward`, through the queues too. A learner must add
    `auxiliary_loss`, from which alone the convolutions learn.

    Idea:
        The newest blocks of steps are kept as they are. The block that leaves them is compressed by a convolution:
        one vector for r steps. So a state of constant size reaches far back, with less and less detail.

    Equations:
        .. math::

            h^k_t &= \operatorname{layer}_k \big( h^{k-1}_t;\; [c^k_{t-1}; m^k_{t-1}; h^{k-1}_t] \big) \\
            m^k_t &= [m^k_{t-1}; h^{k-1}_t]_{\text{newest } K} \\
            c^k_t &= [c^k_{t-1}; \operatorname{conv}^k (m^k_{t-1,\,1:B})]_{\text{newest } C} \\
            L &= \sum_{k,t} \big\| A_k(h^{k-1}_t, \operatorname{conv}^k (m^k_{t-1,\,1:B}))
            - A_k(h^{k-1}_t, m^k_{t-1,\,1:B}) \big\|^2

        t counts blocks of B steps, k layers; A is the attention of layer k without positions. The auxiliary loss L
        trains the convolutions and nothing else; the task trains everything but the convolutions. With several levels,
        c of a level is filled by the oldest vectors of the level before, and L has a term for each.

    State:
        In each layer with a memory, K vectors of steps and C compressed ones, of D numbers; the steps and outputs of
        the newest block, 2 B D numbers.

    Cost:
        With n steps in the block and S vectors in each of L_m layers with a memory, a decision takes about
        n L (4 D^2 + 2 D D_mlp) + L_m (2 S D^2 + 3 n (S + n) D) multiply-adds, however long the past is. Blocks are
        learned one after the other, and the backward pass keeps the activations of all steps.

    When to use:
        Long or endless trials in which the newest tens of steps matter in detail and older ones in outline.

    When not to use:
        Where a single old event decides: after B + L_m (K + C r) steps, with L_m layers that have a memory, exactly
        nothing is left of it. `ct-lt` and `ct-log` keep a trace of everything.

    Difference from the paper:
        Memories are not detached between the blocks of a sequence, as in the thesis; the Compressive Transformer of
        Rae et al. stops gradients there. Steps of a block attend to earlier ones alone, because an agent acts at every
        step. Layers are those of the public code: normalised before, with learned terms by distance. Dropout is left
        out. The target of the auxiliary loss are the vectors that leave, as in the thesis; the public code takes the
        whole queue.

    Args:
        input_dim: Width of the embedding.
        config: Sizes of layers and queues, and what is behind the last queue.

    Source:
        Baermann, "Episodic Memory Verbalization with a Long-Term Compressive Memory Transformer", master's thesis, KIT
        2021. Rae et al., "Compressive Transformers for Long-Range Sequence Modelling", ICLR 2020 (arXiv:1911.05507).
    """

    def __init__(self, input_dim: int, config: CompressiveConfig) -> None:
        super().__init__()
        self.config = config
        self.input_dim, self.output_dim = input_dim, config.dim
        self.input = nn.Linear(input_dim, config.dim)
        self.with_memory = range(min(1, config.layers - 1), config.layers)  # numbers of the layers that have one
        long_term = [state for _ in self.with_memory if (state := config.make_long_term()) is not None]
        self.queues = Queues(
            config.dim,
            config.block_length,
            config.memory_length,
            config.compressed_lengths,
            config.ratios,
            long_term,
            len(self.with_memory),
        )
        self.layers = nn.ModuleList(
            CompressiveLayer(
                config.dim,
                config.heads,
                config.mlp_dim,
                config.block_length,
                self.queues.slots if layer in self.with_memory else 0,
            )
            for layer in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.dim)
        self._losses: list[Tensor] = []

    def initial_state(self, batch_size: int, *, max_steps: int | None = None) -> State:
        """Return empty queues and an empty block; see `Memory.initial_state`."""
        zeros = self.input.weight.new_zeros(batch_size, self.config.block_length, self.config.dim)
        count = torch.zeros(batch_size, dtype=torch.int64, device=zeros.device)
        return {
            "count": count,
            "frames": zeros,
            "outputs": torch.zeros_like(zeros),
        } | self.queues.initial_state(batch_size)

    @torch.no_grad()
    def step(self, x: StepInputs, state: State) -> tuple[Tensor, State]:
        """Advance every sequence by one step, without gradient; see `Memory.step`."""
        check_inputs(x, self.input_dim)
        keep = ~x.trial_start[:, 0]
        one = torch.ones_like(state["count"])
        features, state, _ = self._advance(self._embed(x), one, _kept(state, keep), with_outputs=True, with_loss=False)
        return features[:, 0], state

    def forward(self, x: StepInputs, state: State | None = None, last: int | None = None) -> tuple[Tensor, State]:
        """Learn: T steps at once; see `Memory.forward`. A state is returned in any case.

        Sequences are cut at their resets, and all pieces advance together, a block of each at a time. With B = 2
        sequences of T = 6 steps, blocks of 2, a reset (|) in the second one, and an unfinished block of one step (o)
        from before::

            sequence 0     o 0  1 2  3 4  5             pieces      block 0    1     2     3
            sequence 1     6 7  8 | 9 10  11            A           o 0        1 2   3 4   5
                                                        B           6 7        8
                                                        C           9 10       11

        Block k of the pieces that have one is a single call of `_advance`: of A, B and C for k = 0 and 1, then of A
        alone. Numbers are indices among the B T steps; they put features back in order, and the state of a sequence is
        that of its last piece, here A and C.
        """
        batch, steps = check_inputs(x, self.input_dim)
        n_last = n_last_steps(steps, last)
        if state is None:
            state = self.initial_state(batch)
        with_loss = self.training and torch.is_grad_enabled()
        embedded = self._embed(x).flatten(0, 1)  # (B T, D)
        pieces = _Pieces.cut(x.trial_start, state["count"], self.config.block_length, n_last)
        current = _kept({name: value[pieces.row] for name, value in state.items()}, pieces.is_carried)
        # Zero, but it gives every weight of the queues a gradient: processes average those of the same weights.
        losses = embedded.new_zeros(())
        if with_loss:
            losses = losses + 0.0 * torch.stack([weight.sum() for weight in self.queues.parameters()]).sum()
        features, finished, n_blocks = [], [], 0
        for block in range(int(pieces.blocks[0])):  # the piece with the most blocks is the first one
            going = int((pieces.blocks > block).sum())
            finished.append({name: value[going:] for name, value in current.items()})
            current = {name: value[:going] for name, value in current.items()}
            index, count = pieces.steps_of(block, going)
            at = index % steps
            is_step = torch.arange(index.shape[1], device=index.device) < count[:, None]
            is_returned = is_step & (at >= steps - n_last)
            is_final = pieces.is_final[:going] & (pieces.blocks[:going] == block + 1)
            n_blocks += int((current["count"] + count == self.config.block_length).sum())
            with_outputs = bool(is_returned.any() or is_final.any())
            out, current, loss = self._advance(embedded[index], count, current, with_outputs, with_loss)
            features.append((index[is_returned], out[is_returned]))
            losses = losses + loss
        finished.append(current)
        if with_loss:
            self._losses = [losses / (len(self.with_memory) * max(1, n_blocks))]
        after = {name: torch.cat([state[name] for state in finished[::-1]]) for name in current}
        final = pieces.is_final.nonzero()[:, 0]
        final = final[torch.argsort(pieces.row[final])]  # (B,): the last piece of each sequence
        order, values = (torch.cat(parts) for parts in zip(*features, strict=True))
        features_of_all = values[torch.argsort(order)].view(batch, n_last, -1)
        return features_of_all, {name: value[final] for name, value in after.items()}

    def auxiliary_loss(self) -> Tensor | None:
        """Take the reconstruction loss of the last `forward`; see `Memory.auxiliary_loss`."""
        return self._losses.pop() if self._losses else None

    def vectors(self, state: State) -> tuple[Tensor, Tensor]:
        """Return the content of the memory, for a reader of its own.

        Args:
            state: From `forward` or `step`.

        Returns:
            float, (B, M, D), and bool, (B, M), True where there is a vector. Those of each layer with a memory come
            first, the oldest in front; then the outputs of the newest block. M = block + layers (K + sum of C + S).
        """
        queued, mask = self.queues.join(state)
        block = torch.arange(self.config.block_length, device=mask.device)
        is_between_blocks = (state["count"] == 0) & state["memory_mask"][:, -1]  # all of the newest block are there
        in_block = (block < state["count"][:, None]) | is_between_blocks[:, None]
        vectors = torch.cat([queued.flatten(1, 2), state["outputs"]], 1)
        return vectors, torch.cat([mask.repeat(1, queued.shape[1]), in_block], 1)

    def _layer(self, index: int) -> CompressiveLayer:
        layer = self.layers[index]
        assert isinstance(layer, CompressiveLayer)
        return layer

    def _embed(self, x: StepInputs) -> Tensor:
        return self.input(x.embedding).to(self.input.weight.dtype)  # float32 also under autocast

    def _advance(
        self, new: Tensor, count: Tensor, state: State, with_outputs: bool, with_loss: bool
    ) -> tuple[Tensor, State, Tensor]:
        """Add steps to the unfinished block of each sequence.

        With blocks of 4, a block that has 1 step and gets 3 is full, and one that has 0 and gets 2 is not::

            frames before      new (Q = 3)     frames after          then
            a . . .            b c d           a b c d  (count 4)    its sources enter the queues; frames are emptied
            . . . .            e f -           e f . .  (count 2)    frames stay; outputs of e and f are kept

        The layers read all frames so far, so that features of e and f know each other and what the queues hold.

        Args:
            new: float, (B, Q, D); embedded steps.
            count: int64, (B,); how many of them belong to the block, 1 to Q and no more than it lacks.
            state: State before them.
            with_outputs: Whether features or the state after them are needed, of any sequence.
            with_loss: Whether to compute the reconstruction loss.

        Returns:
            float (B, Q, D) features, the state, and the sum of the reconstruction losses. Features are arbitrary behind
            `count`, and all of them, as the outputs in the state, without `with_outputs`.
        """
        _, n_new, dim = new.shape
        length = self.config.block_length
        before, after = state["count"], state["count"] + count
        step = torch.arange(n_new, device=new.device)
        place = torch.where(step < count[:, None], before[:, None] + step, length)  # one place more for what is padding
        frames = F.pad(state["frames"], (0, 0, 0, 1)).scatter(1, place[..., None].expand(-1, -1, dim), new)[:, :length]
        outputs, sources = self._encode(frames[:, : int(after.max())], after, state, with_outputs)
        at = place.clamp(max=outputs.shape[1] - 1)
        features = outputs.gather(1, at[..., None].expand(-1, -1, dim))
        outputs = F.pad(outputs, (0, 0, 0, length - outputs.shape[1]))
        is_full = after == length
        state = state | {
            "count": after.masked_fill(is_full, 0),
            "frames": frames * ~is_full[:, None, None],
            "outputs": outputs * (torch.arange(length, device=new.device) < after[:, None])[..., None],
        }
        rows = is_full.nonzero()[:, 0]
        loss = new.new_zeros(())
        if len(rows):
            queued = {name: value[rows] for name, value in state.items() if name not in ("count", "frames", "outputs")}
            layers = [self._layer(layer) for layer in self.with_memory]
            pushed, loss = self.queues.push(queued, torch.stack(sources, 1)[rows], layers, with_loss)
            state |= {name: state[name].index_copy(0, rows, value) for name, value in pushed.items()}
        return features, state, loss

    def _encode(self, frames: Tensor, filled: Tensor, state: State, with_outputs: bool) -> tuple[Tensor, list[Tensor]]:
        """Run the layers over the block of each sequence.

        Args:
            frames: float, (B, C, D); embedded steps.
            filled: int64, (B,); how many steps of each there are.
            state: State of the sequences.
            with_outputs: Whether the output of the last layer is needed.

        Returns:
            float, (B, C, D) outputs, and what each layer with a memory stores of the block, the same shape.
        """
        vectors, mask = self.queues.join(state)
        steps = torch.arange(frames.shape[1], device=mask.device)
        in_block = (steps < filled[:, None])[:, None] & (steps <= steps[:, None])  # (B, C, C)
        in_block = in_block | (steps == steps[:, None])  # no step without any key
        visible = torch.cat([mask[:, None].expand(-1, len(steps), -1), in_block], 2)
        h, sources = frames, []
        for i in range(self.config.layers):
            layer = self._layer(i)
            source = layer.source(h)
            has_memory = i in self.with_memory
            if has_memory:
                sources.append(source)
            if i < self.config.layers - 1 or with_outputs:
                if has_memory:
                    h = layer(h, source, vectors[:, len(sources) - 1], visible[:, None])
                else:
                    h = layer(h, source, None, in_block[:, None])
        return self.norm(h), sources


def _kept(state: State, keep: Tensor) -> State:
    """Empty the rows of a state that are not kept."""
    return {name: value * keep.view(-1, *[1] * (value.ndim - 1)) for name, value in state.items()}


@dataclass(frozen=True)
class _Pieces:
    """Sequences cut at their resets; those with the most blocks first.

    Attributes:
        row: int64, (P,); sequence of each piece.
        first: int64, (P,); index of its first step among all B T steps.
        length: int64, (P,); its steps.
        past: int64, (P,); steps that its first block has already.
        is_carried: bool, (P,); whether it goes on from the given state.
        is_final: bool, (P,); whether it is the last one of its sequence.
        blocks: int64, (P,); blocks that it takes part in.
        block: Steps of a block.
    """

    row: Tensor
    first: Tensor
    length: Tensor
    past: Tensor
    is_carried: Tensor
    is_final: Tensor
    blocks: Tensor
    block: int

    @staticmethod
    def cut(resets: Tensor, count: Tensor, block: int, n_last: int) -> _Pieces:
        """Cut sequences, and leave out the pieces that none of the last steps belongs to.

        Args:
            resets: bool, (B, T).
            count: int64, (B,); steps in the unfinished block before the first of them.
            block: Steps of a block.
            n_last: Last steps of each sequence whose features are needed.
        """
        steps = resets.shape[1]
        is_first = resets.clone()
        is_first[:, 0] = True
        row, begin = is_first.nonzero(as_tuple=True)
        first = row * steps + begin
        ends = torch.cat([first[1:], first.new_tensor([resets.numel()])])
        length = ends - first
        is_final = ends % steps == 0
        is_carried = ~resets[row, begin]
        past = count[row] * is_carried
        blocks = -(-(past + length) // block)  # rounded up
        order = torch.argsort(blocks, descending=True, stable=True)
        order = order[(begin + length > steps - n_last)[order]]
        row, first, length, past = row[order], first[order], length[order], past[order]
        return _Pieces(row, first, length, past, is_carried[order], is_final[order], blocks[order], block)

    def steps_of(self, block: int, going: int) -> tuple[Tensor, Tensor]:
        """Find the steps of a block of the first pieces.

        Returns:
            int64, (going, Q); indices among all B T steps, arbitrary behind the last one. And their number, (going,).
        """
        past, length = self.past[:going], self.length[:going]
        begin = (block * self.block - past).clamp(min=0)
        count = torch.minimum(length, (block + 1) * self.block - past) - begin
        step = torch.arange(int(count.max()), device=count.device)
        return self.first[:going, None] + torch.minimum(begin[:, None] + step, length[:, None] - 1), count
