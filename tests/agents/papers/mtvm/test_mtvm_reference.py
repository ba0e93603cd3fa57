"""Rollouts of MTVM against its equations, written out.

The reference computes one episode at a time, head by head, without padding, states or batches.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from memenvs.agents import make_vec_env
from memenvs.agents.papers.mtvm.layers import Attention, FeedForward, TextLayer
from memenvs.agents.papers.mtvm.learner import ImitationA2C
from memenvs.agents.papers.mtvm.model import MTVM
from tests.agents.papers.mtvm.learners import DRY, SIZES, sharpen

NETWORK = SIZES | DRY | {"cross_layers": 2, "text_positions": 112}
IMAGE, DROP = 4, 0.4


def learner(folder: Path | None, count: int, axis: str = "token", **network: Any) -> ImitationA2C:
    """A learner that is ready to play in the house of `toys.py`, or (None) in procedural ones.

    Its weights are large, in float64, and do not depend on `count`.
    """
    own = (
        {"world": "procedural", "legs": 1, "max_tokens": 112}
        if folder is None
        else {"world": "mp3d", "data_dir": str(folder), "max_tokens": 8}
    )
    env = make_vec_env("memenvs/VLN-R2R-v0", count, split="train", features="none", feature_size=IMAGE, **own)
    policy = {"size": "tiny", "network": NETWORK | network}
    model = ImitationA2C(
        "MTVMPolicy", env, policy_kwargs=policy, seed=7, device="cpu", word_drop=DROP, consistency_axis=axis
    )
    env.seed(7)  # environment i has the same episodes among few and many, some longer and some shorter
    return sharpen(model)


def normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    x = x - x.mean(-1, keepdim=True)
    return x / (x.square().mean(-1, keepdim=True) + 1e-12).sqrt() * norm.weight + norm.bias


def attended(layer: Attention, x: Tensor, context: Tensor) -> Tensor:
    q, k, v = layer.query(x), layer.key(context), layer.value(context)
    width = x.shape[1] // layer.heads
    heads = [slice(h * width, (h + 1) * width) for h in range(layer.heads)]
    by_head = [(q[:, h] @ k[:, h].T / math.sqrt(width)).softmax(1) @ v[:, h] for h in heads]
    return normed(layer.norm, x + layer.output(torch.cat(by_head, 1)))


def feed_forward(layer: FeedForward, x: Tensor) -> Tensor:
    inner = layer.inner(x)
    gelu = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
    return normed(layer.norm, x + layer.outer(gelu))


def text_layer(layer: TextLayer, x: Tensor, kept: Tensor) -> Tensor:
    """Dropped tokens attend, and are not attended to."""
    return feed_forward(layer.feed, attended(layer.attention, x, x[kept]))


def encode_text(net: MTVM, tokens: Tensor, kept: Tensor) -> Tensor:
    x = net.words.weight[tokens] + net.word_positions.weight[: len(tokens)] + net.word_types.weight[0]
    x = normed(net.word_norm, x)
    for layer in net.text_layers:
        x = text_layer(layer, x, kept)
    return x


def cross_attend(net: MTVM, text: Tensor, kept: Tensor, vision: Tensor) -> tuple[Tensor, Tensor]:
    everything = torch.ones(len(vision), dtype=torch.bool)
    for layer in net.cross_layers:
        new_vision = text_layer(layer.vision, attended(layer.cross, vision, text[kept]), everything)
        if layer.text is not None:
            text = text_layer(layer.text, attended(layer.cross, text, vision), kept)
        vision = new_vision
    return text, vision


def inconsistency(x: Tensor, y: Tensor, dim: int) -> Tensor:
    """Mean over tokens and channels of KL in both directions, of softmaxes over `dim`."""
    p, q = x.softmax(dim), y.softmax(dim)
    return ((p * (p / q).log()).mean() + (q * (q / p).log()).mean()).detach()


def episode(
    net: MTVM, seen: list[dict[str, np.ndarray]], actions: list[int], kept: Tensor, dim: int
) -> dict[str, list[Tensor]]:
    """Expected logits, values and inconsistencies of an episode, decision by decision."""
    words = torch.as_tensor(seen[0]["instruction"])[torch.as_tensor(seen[0]["instruction_mask"]) > 0]
    every = torch.ones(len(words), dtype=torch.bool)
    text, dropped = encode_text(net, words, every), encode_text(net, words, kept)
    outputs: dict[str, list[Tensor]] = {
        "logits": [],
        "values": [],
        "inconsistency": [],
        "text_inconsistency": [inconsistency(text, dropped, dim)],
    }
    bank: list[Tensor] = []
    moved = angle = torch.zeros(0)
    for observation, action in zip(seen, actions, strict=True):
        there = np.flatnonzero(observation["candidate_mask"]).tolist()
        options = torch.as_tensor(observation["candidates"]).double()
        if outputs["logits"]:  # direction of the camera after the action
            pose = torch.as_tensor(observation["direction"]).double().repeat(32)
            bank.append(torch.cat([moved, pose if net.config.memory_angle == "pose" else angle]))
        if net.config.bank is not None:
            bank = bank[-net.config.bank :] if net.config.bank else []
        vision = torch.stack([normed(net.see_norm, net.see(view)) for view in [*bank, *options[there]]])
        position = list(range(len(bank) + len(there)))
        kind = [1] * len(bank) + [0] * len(there)
        vision = normed(net.view_norm, vision + net.view_positions.weight[position] + net.view_types.weight[kind])
        read, views = cross_attend(net, text, every, vision)
        other_read, other_views = cross_attend(net, dropped, kept, vision)
        activations = (views[len(bank) :] @ net.act.weight.T + net.act.bias).tanh()
        outputs["logits"].append(activations @ net.choose.weight[0] + net.choose.bias)
        pooled = (net.pooler.weight @ (read.mean(0) + views.mean(0)) + net.pooler.bias).tanh()
        hidden, _, _, value = net.critic
        outputs["values"].append((value.weight @ (hidden.weight @ pooled + hidden.bias).relu() + value.bias)[0])
        distance = inconsistency(views, other_views, dim)
        if net.config.two_way:
            distance = distance + inconsistency(read, other_read, dim)
        outputs["inconsistency"].append(distance)
        image, angle = options[action].split((IMAGE, 128))
        moved = image if net.config.history == "observation" else activations[there.index(action)]
    return outputs


@pytest.mark.slow
def test_rollouts_by_their_equations(toy_data: Path) -> None:
    for network in (
        {"two_way": False, "text_layers": 2},
        {"bank": 1, "memory_angle": "option"},
        {"bank": 0},
        {"history": "observation", "axis": "channel"},
    ):
        compare(toy_data, network)


def test_rollouts_in_which_some_have_fewer_candidates() -> None:
    """In the toy house all have the same number."""
    assert compare(None, {})


def compare(folder: Path | None, network: dict[str, Any]) -> bool:
    """Compare four episodes of different lengths, with words dropped in the second pass.

    Returns whether some had fewer candidates than others.
    """
    count, number, dim = 4, 3, int(network.get("axis") == "channel")
    model, twin = (learner(folder, count, **network) for _ in range(2))
    torch.manual_seed(2)
    rollout = model.play(model.env, number, teacher_forcing=True)

    seen: list[list[dict[str, np.ndarray]]] = [[] for _ in range(count)]
    actions: list[list[int]] = [[] for _ in range(count)]
    twin.env.set_options([{"trial": number}] * count)
    observations, running, padded = twin.env.reset(), np.ones(count, bool), False
    masks = torch.as_tensor(observations["instruction_mask"]) > 0
    longest = int(masks.sum(1).max())
    torch.manual_seed(2)
    kept = masks[:, :longest] & (torch.rand(count, longest) >= DROP)
    while running.any():
        oracle = twin.env.oracle_actions()
        padded |= len(np.unique(observations["candidate_mask"][running], axis=0)) > 1
        for i in np.flatnonzero(running):
            seen[i].append({key: value[i].copy() for key, value in observations.items()})
            actions[i].append(int(oracle[i]))
        observations, _, done, _ = twin.env.step(oracle)
        running &= ~done
    assert len({len(decisions) for decisions in seen}) > 1
    assert kept.any(1).all() and (kept != masks[:, :longest]).any()

    for i in range(count):
        expected = episode(twin.policy.network, seen[i], actions[i], kept[i][masks[i, :longest]], dim)
        own = [(step, int((step.rows == i).nonzero())) for step in rollout.steps if i in step.rows]
        assert len(own) == len(seen[i])
        same(rollout.text_inconsistency[i], expected["text_inconsistency"][0])
        for k, (step, row) in enumerate(own):
            there = np.flatnonzero(seen[i][k]["candidate_mask"]).tolist()
            log_probs = expected["logits"][k].log_softmax(0)
            taken = log_probs[there.index(actions[i][k])]
            same(step.imitation_loss[row], -taken)
            same(step.log_probs[row], taken)
            same(step.entropy[row], -(log_probs.exp() * log_probs).sum())
            same(step.values[row], expected["values"][k])
            same(step.inconsistency[row], expected["inconsistency"][k])
    return padded


def same(value: Tensor, expected: Tensor) -> None:
    """Equal up to float32, in which losses are computed."""
    torch.testing.assert_close(value, expected, check_dtype=False, atol=1e-5, rtol=1e-4)
