"""Whole taught rollouts of MTVM against its equations written out: one episode at a time, head by head, without padding, states or batches."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from memenvs.agents import make_vec_env
from memenvs.agents.mtvm.imitation import ImitationA2C
from memenvs.agents.mtvm.layers import Attention, FeedForward, TextLayer
from memenvs.agents.mtvm.network import MTVM
from tests.agents.mtvm.learners import sharpen

NETWORK = {
    "dim": 8, "inner": 16, "heads": 2, "critic_dim": 8, "cross_layers": 2, "text_positions": 112,
    "dropout": 0.0, "image_dropout": 0.0, "critic_dropout": 0.0,
}  # fmt: skip
IMAGE, DROP = 4, 0.4


def learner(folder: Path | None, count: int, axis: str = "token", **network: Any) -> ImitationA2C:
    """Ready to play in the house of `toys.py` or (None) in procedural ones, with large weights in float64 that do not depend on `count`."""
    own = (
        {"world": "procedural", "max_tokens": 112}
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
    heard = torch.cat([(q[:, h] @ k[:, h].T / math.sqrt(width)).softmax(1) @ v[:, h] for h in heads], 1)
    return normed(layer.norm, x + layer.output(heard))


def thought(layer: FeedForward, x: Tensor) -> Tensor:
    inner = layer.inner(x)
    gelu = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
    return normed(layer.norm, x + layer.outer(gelu))


def text_layer(layer: TextLayer, x: Tensor, kept: Tensor) -> Tensor:
    """Dropped tokens hear, and are not heard."""
    return thought(layer.feed, attended(layer.attention, x, x[kept]))


def read(net: MTVM, tokens: Tensor, kept: Tensor) -> Tensor:
    x = net.words.weight[tokens] + net.word_positions.weight[: len(tokens)] + net.word_types.weight[0]
    x = normed(net.word_norm, x)
    for layer in net.text_layers:
        x = text_layer(layer, x, kept)
    return x


def crossed(net: MTVM, text: Tensor, kept: Tensor, vision: Tensor) -> tuple[Tensor, Tensor]:
    everything = torch.ones(len(vision), dtype=torch.bool)
    for layer in net.cross_layers:
        seen = text_layer(layer.vision, attended(layer.cross, vision, text[kept]), everything)
        if layer.text is not None:
            text = text_layer(layer.text, attended(layer.cross, text, vision), kept)
        vision = seen
    return text, vision


def apart(x: Tensor, y: Tensor, dim: int) -> Tensor:
    """Both divergences of two softmaxes over tokens, for each channel, or over channels; means over tokens and channels."""
    p, q = x.softmax(dim), y.softmax(dim)
    return ((p * (p / q).log()).mean() + (q * (q / p).log()).mean()).detach()


def episode(
    net: MTVM, seen: list[dict[str, np.ndarray]], actions: list[int], kept: Tensor, dim: int
) -> dict[str, list[Tensor]]:
    """What an episode should give: logits, values and how far the two passes are apart, decision by decision."""
    words = torch.as_tensor(seen[0]["instruction"])[torch.as_tensor(seen[0]["instruction_mask"]) > 0]
    every = torch.ones(len(words), dtype=torch.bool)
    text, dropped = read(net, words, every), read(net, words, kept)
    found: dict[str, list[Tensor]] = {
        "logits": [],
        "values": [],
        "apart": [],
        "text_apart": [apart(text, dropped, dim)],
    }
    bank: list[Tensor] = []
    moved = torch.zeros(0)
    for observation, action in zip(seen, actions, strict=True):
        there = np.flatnonzero(observation["candidate_mask"]).tolist()
        options = torch.as_tensor(observation["candidates"]).double()
        if found["logits"]:  # where the camera then looks
            pose = torch.as_tensor(observation["direction"]).double().repeat(32)
            bank.append(torch.cat([moved, pose]))
        if net.config.bank is not None:
            bank = bank[-net.config.bank :] if net.config.bank else []
        vision = torch.stack([normed(net.see_norm, net.see(each)) for each in [*bank, *options[there]]])
        position = list(range(len(bank) + len(there)))
        kind = [1] * len(bank) + [0] * len(there)
        vision = normed(net.view_norm, vision + net.view_positions.weight[position] + net.view_types.weight[kind])
        (told, views), (other_told, other_views) = (
            crossed(net, *each, vision) for each in ((text, every), (dropped, kept))
        )
        activations = (views[len(bank) :] @ net.act.weight.T + net.act.bias).tanh()
        found["logits"].append(activations @ net.choose.weight[0] + net.choose.bias)
        pooled = (net.pooler.weight @ (told.mean(0) + views.mean(0)) + net.pooler.bias).tanh()
        hidden, _, _, value = net.critic
        found["values"].append((value.weight @ (hidden.weight @ pooled + hidden.bias).relu() + value.bias)[0])
        far = apart(views, other_views, dim)
        found["apart"].append(far + apart(told, other_told, dim) if net.config.two_way else far)
        moved = activations[there.index(action)]
    return found


@pytest.mark.parametrize(
    "network", [{}, {"two_way": False}, {"bank": 1}, {"bank": 0}, {"text_layers": 2}, {"axis": "channel"}]
)
def test_rollouts_by_their_equations(toy_data: Path, network: dict[str, Any]) -> None:
    compare(toy_data, network)


def test_rollouts_in_which_some_have_fewer_candidates() -> None:
    """Which is not so in the toy house."""
    assert compare(None, {})


def compare(folder: Path | None, network: dict[str, Any]) -> bool:
    """Four episodes with different lengths and texts in a batch, some words dropped in the second pass; whether some had fewer candidates."""
    count, number, dim = 4, 3, int(network.get("axis") == "channel")
    model, twin = (learner(folder, count, **network) for _ in range(2))
    torch.manual_seed(2)
    rollout = model.play(model.env, number, taught=True)

    seen: list[list[dict[str, np.ndarray]]] = [[] for _ in range(count)]
    actions: list[list[int]] = [[] for _ in range(count)]
    twin.env.set_options([{"trial": number}] * count)
    shown, going, padded = twin.env.reset(), np.ones(count, bool), False
    masks = torch.as_tensor(shown["instruction_mask"]) > 0
    longest = int(masks.sum(1).max())
    torch.manual_seed(2)
    kept = masks[:, :longest] & (torch.rand(count, longest) >= DROP)
    while going.any():
        oracle = twin.env.oracle_actions()
        padded |= len(np.unique(shown["candidate_mask"][going], axis=0)) > 1
        for i in np.flatnonzero(going):
            seen[i].append({key: value[i].copy() for key, value in shown.items()})
            actions[i].append(int(oracle[i]))
        shown, _, over, _ = twin.env.step(oracle)
        going &= ~over
    assert len({len(each) for each in seen}) > 1
    assert kept.any(1).all() and (kept != masks[:, :longest]).any()

    for i in range(count):
        expected = episode(twin.policy.network, seen[i], actions[i], kept[i][masks[i, :longest]], dim)
        own = [(step, int((step.rows == i).nonzero())) for step in rollout.steps if i in step.rows]
        assert len(own) == len(seen[i])
        same(rollout.text_inconsistency[i], expected["text_apart"][0])
        for k, (step, row) in enumerate(own):
            there = np.flatnonzero(seen[i][k]["candidate_mask"]).tolist()
            log_probs = expected["logits"][k].log_softmax(0)
            taken = log_probs[there.index(actions[i][k])]
            same(step.imitation_loss[row], -taken)
            same(step.log_probs[row], taken)
            same(step.entropy[row], -(log_probs.exp() * log_probs).sum())
            same(step.values[row], expected["values"][k])
            same(step.inconsistency[row], expected["apart"][k])
    return padded


def same(found: Tensor, expected: Tensor) -> None:
    """As near as float32 allows, in which losses are computed."""
    torch.testing.assert_close(found, expected, check_dtype=False, atol=1e-5, rtol=1e-4)
