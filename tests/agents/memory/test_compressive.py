"""Compressive Transformers: queues, attention, losses and gradients, against plain Python."""

import numpy as np
import pytest
import torch
from torch import Tensor

from memenvs.agents import EpisodeDQN
from memenvs.agents.memory import Memory, StepInputs, make_memory
from memenvs.agents.memory.compressive.long_term import LongTerm, MergingLevels, RecurrentState
from memenvs.agents.memory.compressive.queues import Queues
from memenvs.agents.testing import make_subject
from tests.agents.learners import MEMORIES, act, darkroom, learner
from tests.agents.memory.comparison import steps as random_steps

SIZES = {"dim": 8, "layers": 3, "heads": 2, "mlp_dim": 6, "block_length": 4, "memory_length": 8}
SIZES |= {"compressed_lengths": (4,), "ratios": (2,)}
MULTI = {"memory_length": 4, "compressed_lengths": (2, 1), "ratios": (2, 2)}
FORMS = {"ct": {}, "ct-lt": {}, "ml-ct-lt": MULTI, "ct-log": {}}
MEMORIES["ct-lt"] = {**SIZES, "block_length": 2, "memory_length": 2, "compressed_lengths": (1,)}


def make(name: str = "ct", **settings: object) -> Memory:
    return make_subject(name, **{**SIZES, **FORMS[name], **settings}).memory


def steps(count: int, batch: int = 1, seed: int = 0) -> StepInputs:
    """Random steps of one trial."""
    x = random_steps(count, 10, trials=[(0,)] * batch, seed=seed)
    x.embedding.requires_grad_()
    return x


class Recorder(LongTerm):
    """Adds up what leaves the last queue."""

    length = 1

    def write(self, state, mask, leaving):
        return state + leaving.sum(1, keepdim=True), torch.ones_like(mask)


def test_queues_equal_lists():
    """Random sizes: contents, order and masks of every queue, and what leaves the last one."""
    rng = np.random.default_rng(0)
    for _ in range(12):
        ratios = [int(rng.integers(1, 4)) for _ in range(rng.integers(1, 4))]
        block = int(np.prod(ratios)) * int(rng.integers(1, 3))
        moving = [block // int(np.prod(ratios[: level + 1])) for level in range(len(ratios))]
        memory_length = block * int(rng.integers(1, 4))
        lengths = [count * int(rng.integers(1, 4)) for count in moving]
        queues = Queues(1, block, memory_length, lengths, ratios, [Recorder()], 1).double()
        for conv in queues.compress[0].values():
            torch.nn.init.constant_(conv.weight, 1 / conv.kernel_size[0])  # the mean of r vectors
            torch.nn.init.zeros_(conv.bias)
        state = queues.initial_state(1)
        lists: list[list[float]] = [[] for _ in [memory_length, *lengths]]
        left = 0.0
        for first in range(0, 12 * block, block):
            entering = [float(value) for value in range(first + 1, first + 1 + block)]
            sources = torch.tensor(entering, dtype=torch.float64).view(1, 1, block, 1)
            state, _ = queues.push(state, sources, [], False)
            for level, (queue, length) in enumerate(zip(lists, [memory_length, *lengths], strict=True)):
                leaving = queue[: len(queue) + len(entering) - length]
                queue[:] = [*queue[len(leaving) :], *entering]
                if level == len(ratios):
                    left += sum(leaving)
                    break
                if not leaving:
                    break
                entering = [float(np.mean(part)) for part in np.split(np.array(leaving), len(leaving) // ratios[level])]
            oldest_first = [value for queue in lists[::-1] for value in queue]
            vectors, mask = queues.join(state)
            assert vectors[0, 0, mask[0], 0].tolist() == pytest.approx([left] * (left > 0) + oldest_first)
            assert mask.sum() == len(oldest_first) + (left > 0)


def attend(h: Tensor, context: Tensor, layer: torch.nn.Module) -> Tensor:
    """One layer over a block, written out head by head; `context` comes before the block."""
    source = torch.stack([layer.source(row) for row in h])
    keys = torch.cat([context, source])
    q, (k, v) = layer.query(source), layer.keys_values(keys).chunk(2, -1)
    out = []
    for t in range(len(h)):
        now = len(context) + t
        heads = []
        for head in range(layer.heads):
            part = slice(head * 4, head * 4 + 4)
            scores = [q[t, part] @ (k[j, part] + layer.by_distance[head, now - j]) / 2 for j in range(now + 1)]
            weights = torch.stack(scores).softmax(0)
            heads.append(sum(w * v[j, part] for j, w in enumerate(weights)))
        y = h[t] + layer.attention_out(torch.cat(heads))
        out.append(y + layer.mlp(layer.mlp_norm(y)))
    return torch.stack(out)


def test_features_and_loss_equal_loops_over_lists():
    """Queues as lists, attention head by head, the loss of each level against the vectors that it replaces."""
    memory = make("ml-ct-lt", memory_length=8).train()
    x = steps(28)
    # the form without empty slots: distances count slots, so the queues are compared once they are full
    features, state = memory(x, last=1)
    loss = memory.auxiliary_loss()
    queue = [{"m": [], "c1": [], "c2": [], "l": None} for _ in range(2)]
    expected_loss = torch.zeros((), dtype=torch.float64)
    for first in range(0, 28, 4):
        h = memory.input(x.embedding[0, first : first + 4])
        h = attend(h, h[:0], memory.layers[0])  # the first layer has no memory
        for layer, q, long_term, convs in zip(
            memory.layers[1:], queue, memory.queues.long_term, memory.queues.compress, strict=True
        ):
            old = [*([] if q["l"] is None else [q["l"]]), *q["c2"], *q["c1"], *q["m"]]
            source = layer.source(h)
            out = attend(h, torch.stack(old) if old else h[:0], layer)
            leaving: dict[str, list[Tensor]] = {"m": q["m"][: len(q["m"]) - 4]}
            q["m"] = [*q["m"][-4:], *source]
            for into, out_of, length in (("c1", "m", 2), ("c2", "c1", 1)):
                if not leaving.get(out_of):
                    break
                replaced = torch.stack(leaving[out_of])
                new = convs[{"c1": "compressed1", "c2": "compressed2"}[into]](replaced.T[None])[0].T
                reads = []
                for z in (new, replaced):
                    k, v = layer.keys_values(z).chunk(2, -1)
                    split = [
                        part.unflatten(1, (layer.heads, -1)).transpose(0, 1) for part in (layer.query(source), k, v)
                    ]
                    scores = split[0] @ split[1].transpose(1, 2) / split[0].shape[-1] ** 0.5
                    reads.append(scores.softmax(-1) @ split[2])
                expected_loss = expected_loss + (reads[0] - reads[1]).square().mean()
                room = q[into][len(new) :] if len(q[into]) == length else q[into]
                leaving[into] = q[into][: len(q[into]) - len(room)]
                q[into] = [*room, *new]
            if leaving.get("c2"):
                gamma = torch.stack(leaving["c2"])
                before = torch.zeros(1, 1, 8).double() if q["l"] is None else q["l"][None, None]
                mask = torch.tensor([[q["l"] is not None]])
                q["l"] = long_term.write(before, mask, gamma[None])[0][0, 0]
            h = out
    torch.testing.assert_close(features[0, 0], memory.norm(h[-1]), atol=1e-9, rtol=0)
    assert queue[0]["l"] is not None and loss is not None
    torch.testing.assert_close(loss, expected_loss / (2 * 7), atol=1e-9, rtol=0)
    vectors, mask = memory.vectors(state)
    assert mask.all()
    by_layer = [torch.stack([q["l"], *q["c2"], *q["c1"], *q["m"]]) for q in queue]
    torch.testing.assert_close(vectors[0], torch.cat([*by_layer, memory.norm(h)]), atol=1e-9, rtol=0)


def test_recurrent_state_is_written_as_in_the_equations():
    torch.manual_seed(0)
    leaving, before = torch.randn(2, 3, 4), torch.randn(2, 1, 4)
    new, old = torch.zeros(2, 1, dtype=torch.bool), torch.ones(2, 1, dtype=torch.bool)
    state = RecurrentState(4)
    values = state.values(leaving)
    first, mask = state.write(torch.zeros(2, 1, 4), new, leaving)
    torch.testing.assert_close(first[:, 0], values.mean(1))
    assert mask.all()
    weights = torch.einsum("bd,bnd->bn", before[:, 0], state.keys(leaving)).div(2.0).softmax(-1)
    candidate = torch.einsum("bn,bnd->bd", weights, values)
    written, _ = state.write(before, old, leaving)
    torch.testing.assert_close(written[:, 0], state.cell(candidate, before[:, 0]))


def test_merging_levels_equal_lists():
    """A full level merges its two oldest; the last level keeps what it merges; a merge follows the equations."""
    for levels, slots in ((3, 2), (2, 3), (1, 2), (4, 4)):
        log = MergingLevels(1, levels, slots).double()
        state, mask = torch.zeros(2, log.length, 1).double(), torch.zeros(2, log.length, dtype=torch.bool)
        lists: list[list[Tensor]] = [[] for _ in range(levels)]
        for i in range(24):
            leaving = torch.full((2, 1, 1), float(i + 1)).double()
            state, mask = log.write(state, mask, leaving)
            moving = leaving[0, 0]
            for level, content in enumerate(lists):
                if len(content) < slots:
                    content.append(moving)
                    break
                merged = log.merge(content[0], content[1])
                rest = [*content[2:], moving]
                content[:] = [merged, *rest] if level == levels - 1 else rest
                moving = merged
            expected = torch.stack([vector for content in lists[::-1] for vector in content])
            assert torch.equal(mask[0], mask[1]) and torch.allclose(state[0, mask[0]], expected)
    log = MergingLevels(2, 1, 2)
    older, newer = torch.randn(2), torch.randn(2)
    both = torch.cat([older, newer])
    gate = log.gate(both).sigmoid()
    torch.testing.assert_close(log.merge(older, newer), gate * older + (1 - gate) * newer + log.change(both))


def test_the_two_losses_have_weights_of_their_own():
    """The task reaches everything but the convolutions, the auxiliary loss those alone; keys and values still learn."""
    for name in FORMS:
        levels = {"block_length": 8, "memory_length": 8, "compressed_lengths": (4, 2)} if name == "ml-ct-lt" else {}
        memory = make(name, **levels).train()
        features, _ = memory(steps(60), last=1)
        auxiliary = memory.auxiliary_loss()
        assert auxiliary is not None and memory.auxiliary_loss() is None
        weights = dict(memory.named_parameters())
        task = torch.autograd.grad(features.square().sum(), list(weights.values()), allow_unused=True)
        own = torch.autograd.grad(auxiliary, list(weights.values()), allow_unused=True)
        for (weight, value), of_task, of_auxiliary in zip(weights.items(), task, own, strict=True):
            is_convolution = "compress." in weight
            assert value.requires_grad
            assert (of_task is not None and bool(of_task.any())) != is_convolution, weight
            assert (of_auxiliary is not None and bool(of_auxiliary.any())) == is_convolution, weight
    memory.eval()(steps(60))
    assert memory.auxiliary_loss() is None
    with torch.no_grad():
        memory.train()(steps(60))
    assert memory.auxiliary_loss() is None


def test_number_of_vectors():
    """An LSTM keeps as many as a Compressive Transformer with its defaults, or all."""
    for name, kept in (("lstm-o1", 12), ("lstm-on", 61)):
        memory = make_subject(name, dim=8, **({"capacity": 12} if name == "lstm-o1" else {})).memory
        x = steps(61)
        h, _ = memory.lstm(x)
        vectors, mask = memory.vectors(memory(x)[1])
        torch.testing.assert_close(vectors[mask], memory.write(h[0])[-kept:])
    defaults = make_memory("ct-lt", 4)
    assert defaults.vectors(defaults.initial_state(1))[0].shape[1] == make_memory("lstm-o1", 4).config.capacity


def test_learners_train_the_convolutions():
    """PPO and Q-learning add the auxiliary loss."""
    model = act(learner("ct-lt"), train=False)
    weight = model.policy.memory.queues.compress[0]["compressed1"].weight
    before = weight.clone()
    model.train()
    assert not torch.equal(weight, before)
    assert model.logger.name_to_value["train/auxiliary_loss"] > 0
    policy = {"memory": "ct-lt", "memory_kwargs": MEMORIES["ct-lt"]}
    settings = {"capacity": 4, "episode_steps": 12, "updates_per_collect": 1, "batch_size": 2, "decisions": 2}
    dqn = EpisodeDQN("MemoryPolicy", darkroom(2, horizon=12), policy_kwargs=policy, device="cpu", **settings)
    weight = dqn.policy.memory.queues.compress[0]["compressed1"].weight
    before = weight.clone()
    dqn.learn(120)
    assert not torch.equal(weight, before)


def test_the_loss_is_that_of_full_memories_alone():
    """Two sequences fill a block together, but one has just begun: it compresses nothing and adds no loss."""
    memory = make("ct").train()
    x = steps(28, 2)
    x.trial_start[1, 20] = True
    _, state = memory(x.steps(0, 24), last=1)
    losses = []
    for some in (slice(0, 2), slice(0, 1), slice(1, 2)):
        memory.auxiliary_loss()
        last = StepInputs(*(values[some, 24:] for values in (x.embedding, x.episode_start, x.trial_start)))
        memory(last, {name: value[some] for name, value in state.items()})
        losses.append(memory.auxiliary_loss().item())
    assert losses[1] > 0 == losses[2]
    assert 2 * losses[0] == pytest.approx(losses[1])  # it is a mean over blocks
