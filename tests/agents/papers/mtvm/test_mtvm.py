"""MTVM's network against PyTorch's layers, lists in Python, and the paper's numbers."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from memenvs.agents.papers.mtvm.config import MTVMConfig, mtvm_config
from memenvs.agents.papers.mtvm.consistency import drop_words
from memenvs.agents.papers.mtvm.layers import Dropout
from memenvs.agents.papers.mtvm.memory_bank import MemoryBank
from memenvs.agents.papers.mtvm.model import MTVM, DecisionOutput

ACTIONS, LENGTH, IMAGE = 4, 6, 5


def network(**changes: Any) -> MTVM:
    """A small network in float64 with weights that matter, without dropout."""
    sizes = {"dim": 8, "inner": 12, "heads": 2, "text_layers": 2, "cross_layers": 2}
    sizes |= {"text_positions": LENGTH, "vision_positions": 12}
    off = {"dropout": 0.0, "image_dropout": 0.0, "critic_dropout": 0.0}
    torch.manual_seed(0)
    made = MTVM(MTVMConfig(**{**sizes, **off, **changes}), 11, IMAGE).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return made


def test_positions_begin_as_a_sinusoid() -> None:
    """Products of two positions depend on their distance only; view positions have size 0.3, word positions 0.02."""
    network = MTVM(MTVMConfig(dim=16, heads=2, text_positions=12, vision_positions=12), 11, IMAGE)
    for name, size in (("view_positions", 0.3), ("word_positions", 0.02)):
        positions = network.get_submodule(name).weight.detach()
        products = positions @ positions.T / 16
        for distance in range(12):
            diagonal = products.diagonal(distance)
            torch.testing.assert_close(diagonal, diagonal[:1].expand(len(diagonal)), atol=1e-6, rtol=0)
        assert products[0, 0].item() == pytest.approx(size**2)


def observations(batch: int, seed: int = 0) -> dict[str, Tensor]:
    """Texts and candidates of different lengths; the last action is always available."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.arange(batch) % (LENGTH - 1) + 2
    mask = torch.arange(LENGTH) < lengths[:, None]
    tokens = torch.randint(1, 11, (batch, LENGTH), generator=generator) * mask
    available = torch.arange(ACTIONS) < (torch.arange(batch) % (ACTIONS - 1) + 1)[:, None]
    available[:, -1] = True
    candidates = torch.randn(batch, ACTIONS, IMAGE + 128, generator=generator, dtype=torch.float64)
    candidates[:, -1] = 0.0
    return {
        "instruction": tokens,
        "instruction_mask": mask.long(),
        "candidates": candidates * available[..., None],
        "candidate_mask": available.long(),
        "direction": torch.randn(batch, 4, generator=generator, dtype=torch.float64),
    }


def decision(net: MTVM, seen: dict[str, Tensor], state: dict[str, Tensor]) -> DecisionOutput:
    return net(state["encoded_text"], state["text_mask"], net.encode_views(seen, state))


def started(net: MTVM, seen: dict[str, Tensor]) -> dict[str, Tensor]:
    """State at the first decision of an episode."""
    count = len(seen["instruction"])
    return net.observe(seen, net.initial_state(count), torch.ones(count, dtype=torch.bool))


def test_dropout() -> None:
    """The rate of zeros, within 4 standard deviations; the others, and gradients, are divided by 1 - rate."""
    x = torch.full((3, 7, 999), 2.0, requires_grad=True)
    for rate in (0.1, 0.5):
        layer = Dropout(rate)
        torch.manual_seed(0)
        y = layer(x)
        zeros = (y == 0).float().mean().item()
        assert abs(zeros - rate) < 4 * (rate * (1 - rate) / x.numel()) ** 0.5
        torch.testing.assert_close(y[y != 0], torch.full_like(y[y != 0], 2.0 / (1 - rate)))
        (gradient,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(2.0 * gradient, y)
        assert layer.eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_gradients_are_even_at_the_start() -> None:
    """STOP is a row of zeros; with a zero bias, a vector of length 0 would be normalised."""
    torch.manual_seed(0)
    net, seen = MTVM(mtvm_config("tiny"), 11, IMAGE).eval(), observations(3)
    seen = {key: value.float() if value.is_floating_point() else value for key, value in seen.items()}

    def largest() -> float:
        output = decision(net, seen, started(net, seen))
        chosen = output.logits.log_softmax(1)[:, -1]
        gradients = torch.autograd.grad(chosen.sum(), [net.see.bias, net.see.weight])
        return float(gradients[0].norm() / gradients[1].norm())

    own = largest()
    with torch.no_grad():
        net.see.bias.zero_()
    assert own < 100 < 10_000 < largest()


def test_published_numbers_of_parameters() -> None:
    with torch.device("meta"):
        net = MTVM(mtvm_config("paper"), 30_522, 2048)

    def millions(*prefixes: str) -> float:
        return sum(p.numel() for name, p in net.named_parameters() if name.startswith(prefixes)) / 1e6

    parts = {
        ("words", "word_"): 23.8,
        ("text_layers",): 63.8,
        ("cross_layers",): 66.2,
        ("see",): 1.7,
        ("view_",): 0.4,
        ("pooler",): 0.6,
        ("act", "choose"): 1.6,
        ("critic",): 0.4,
        ("",): 158.4,
        ("cross_layers", "see", "pooler"): 68.4,
    }
    assert {prefixes: round(millions(*prefixes), 1) for prefixes in parts} == parts
    with torch.device("meta"):
        small = MTVM(mtvm_config("small"), 300, 256)
        tiny = MTVM(mtvm_config("tiny"), 300, 64)
    assert [round(sum(p.numel() for p in made.parameters()) / 1e6, 1) for made in (small, tiny)] == [6.5, 0.2]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=8), st.sampled_from([None, 0, 1, 3])
)
def test_bank_is_a_list(starts: list[list[bool]], size: int | None) -> None:
    bank, lists = MemoryBank(2, size), [[], [], []]
    state = bank.initial_state(3, torch.zeros(()))
    for t, now in enumerate(starts):
        token = torch.tensor([[t, i] for i in range(3)], dtype=torch.float32)
        state = bank.step(token, torch.tensor(now), state)
        for i in range(3):
            lists[i] = [] if now[i] else [*lists[i], [float(t), float(i)]]
            if size is not None:
                lists[i] = lists[i][len(lists[i]) - size :] if len(lists[i]) > size else lists[i]
        assert state["count"].tolist() == [len(row) for row in lists]
        longest = max(map(len, lists))
        assert state["tokens"].tolist() == [row + [[0.0, 0.0]] * (longest - len(row)) for row in lists]


def test_gradients_flow_through_the_memory() -> None:
    for detach in (False, True):
        net = network(detach_memory=detach)
        seen = observations(2)
        first = seen | {"candidates": seen["candidates"].clone().requires_grad_()}
        state = started(net, first)
        state = net.record_action(first, decision(net, first, state), torch.tensor([0, 0]), state)
        state = net.observe(observations(2, 1), state, torch.zeros(2, dtype=torch.bool))
        later = decision(net, observations(2, 1), state)
        if detach:
            assert torch.autograd.grad(later.value.sum(), first["candidates"], allow_unused=True)[0] is None
        else:
            assert bool(torch.autograd.grad(later.value.sum(), first["candidates"])[0].abs().max() > 1e-9)


def test_memory_matters_and_none_does_not() -> None:
    """Decisions on equal observations depend on earlier actions, unless the bank is empty."""
    for changes, differs in (({}, True), ({"bank": 1}, True), ({"history": "state"}, True), ({"bank": 0}, False)):
        net, seen = network(**changes), observations(1)
        values = []
        state, start = net.initial_state(1), torch.ones(1, dtype=torch.bool)
        for _ in range(2):
            state = net.observe(seen, state, start)
            output = decision(net, seen, state)
            values.append(output.value.item())
            state, start = net.record_action(seen, output, torch.tensor([0]), state), torch.zeros(1, dtype=torch.bool)
        assert (abs(values[0] - values[1]) > 1e-6) == differs


def test_without_language_the_text_counts_as_one_word_that_is_always_the_same() -> None:
    net, seen = network(language=False), observations(3)
    other = seen | {"instruction": seen["instruction"].flip(0), "instruction_mask": seen["instruction_mask"].flip(0)}
    own, changed = (started(net, texts) for texts in (seen, other))
    assert torch.equal(own["encoded_text"], changed["encoded_text"])
    assert own["text_mask"].sum(1).tolist() == [1, 1, 1]


def test_directions_are_never_dropped() -> None:
    net = network(image_dropout=0.9)
    views = torch.cat([torch.zeros(2, 3, net.image_dim), torch.randn(2, 3, 128)], 2).to(net.see.weight)
    expected = net.eval()._embed(views)
    torch.testing.assert_close(net.train()._embed(views), expected)
    ones = torch.ones_like(views)
    assert not torch.equal(net._embed(ones), net.eval()._embed(ones))


def test_a_recurrent_state_begins_with_the_text() -> None:
    net = network(history="state")
    seen = observations(3)
    state = started(net, seen)
    means = [text[words].mean(0) for text, words in zip(state["encoded_text"], state["text_mask"], strict=True)]
    torch.testing.assert_close(state["recurrent_state"], torch.stack(means))


def test_too_long_a_memory_is_refused() -> None:
    net, seen = network(vision_positions=5), observations(1)
    state = started(net, seen)
    with pytest.raises(ValueError, match=r"vision_positions must be at least 6, .* the memory bank .*, got 5"):
        for _ in range(3):
            state = net.record_action(seen, decision(net, seen, state), torch.tensor([0]), state)
            state = net.observe(seen, state, torch.zeros(1, dtype=torch.bool))


def test_dropping_words() -> None:
    torch.manual_seed(0)
    words = torch.arange(50) < torch.arange(1, 41)[:, None]
    assert torch.equal(drop_words(words, 0.0), words)
    assert torch.equal(drop_words(words, 1.0), words)  # nothing would be left
    kept = drop_words(words.repeat(50, 1), 0.3)
    assert not bool((kept & ~words.repeat(50, 1)).any()) and bool(kept.any(1).all())
    assert float(kept[39::40].sum() / (50 * 40)) == pytest.approx(0.7, abs=0.03)  # 0.3 are dropped


def test_settings_are_checked() -> None:
    for changes, message in (
        ({"bank": -1}, "bank must be at least 0 or None, got -1"),
        ({"dim": 9, "heads": 3}, r"dim must be even and a multiple of heads \(3\), got 9"),
        ({"history": "state", "bank": 2}, "bank must be None with history 'state'"),
        ({"layers": 2}, "unknown setting 'layers'"),
    ):
        with pytest.raises(ValueError, match=message):
            mtvm_config("small", **changes)
    with pytest.raises(ValueError, match="unknown size 'huge'"):
        mtvm_config("huge")
