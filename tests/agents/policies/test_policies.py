"""Policies: acting step by step, distributions, encoders, action masks."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from memenvs.agents.encoders import DictEncoder
from memenvs.agents.policies.distributions import ActionHead, Categorical, DiagonalGaussian, MultiCategorical
from memenvs.agents.policies.memory_policy import MemoryPolicy
from tests.agents.learners import MEMORIES

OBSERVATIONS = spaces.Dict(
    {"position": spaces.Box(0.0, 2.0, (2,), np.float32), "reward": spaces.Box(0.0, 1.0, (1,), np.float32)}
)


def policy(
    memory: str = "lstm", observations: spaces.Space = OBSERVATIONS, actions: spaces.Space | None = None, **kwargs: Any
) -> MemoryPolicy:
    torch.manual_seed(0)
    kwargs = {"memory": memory, "memory_kwargs": MEMORIES[memory], **kwargs}
    made = MemoryPolicy(observations, actions or spaces.Discrete(5), lambda _: 1e-3, **kwargs)
    with torch.no_grad():  # the head is nearly uniform at first
        made.actor.linear.weight.normal_()
    return made


def batches(steps: int, n: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [
        {"position": rng.integers(3, size=(n, 2)).astype(np.float32), "reward": rng.random((n, 1), np.float32)}
        for _ in range(steps)
    ]


def run(made: MemoryPolicy, observations: list[dict[str, np.ndarray]]) -> np.ndarray:
    """Most likely actions, (T, N)."""
    state, out = None, []
    for observation in observations:
        action, state = made.predict(observation, state, deterministic=True)
        out.append(action)
    return np.stack(out)


@pytest.mark.parametrize("memory", ["gru", "none"])
def test_one_observation_and_a_batch(memory: str) -> None:
    made, observations = policy(memory), batches(8, 3)
    together = run(made, observations)
    assert together.shape == (8, 3)
    for i in range(3):
        alone = run(made, [{key: value[i] for key, value in batch.items()} for batch in observations])
        assert alone.shape == (8,)
        np.testing.assert_array_equal(alone, together[:, i])


def test_the_previous_action_is_an_input_within_an_episode() -> None:
    made = policy("lstm")
    state = made.initial_state(2)
    no = torch.zeros(2, dtype=torch.bool)
    features = made.features(made.obs_to_tensor(batches(1, 2)[0])[0])
    state = made.update_previous_action(state, np.array([4, 0]))
    _, _, after = made.step(features, state, torch.tensor([False, True]), no)
    assert after["previous_action"].tolist() == [5, 0]


def test_drawn_actions_come_from_the_policy_s_generator() -> None:
    made, observations = policy("none"), batches(1, 64)[0]
    draws = []
    for _ in range(2):
        made.generator.manual_seed(3)
        torch.rand(5)
        draws.append(made.predict(observations)[0])
    np.testing.assert_array_equal(*draws)
    assert not np.array_equal(draws[0], made.predict(observations)[0])


def test_a_new_policy_is_on_the_cpu_whatever_auto_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stable-Baselines3 puts hidden layers on the device "auto": a GPU where there is one."""
    where = {"auto": torch.device("meta")}
    monkeypatch.setattr("stable_baselines3.common.torch_layers.get_device", lambda name: where.get(name, name))
    assert {parameter.device.type for parameter in policy("none").parameters()} == {"cpu"}


def test_broken_weights_are_named() -> None:
    for part in ("actor", "critic"):
        made = policy("none")
        with torch.no_grad():
            for parameter in getattr(made, part).parameters():
                parameter.fill_(float("nan"))
        with pytest.raises(ValueError, match="policy's outputs must be finite, got NaN or infinity"):
            made.predict(batches(1, 2)[0])


def test_settings_are_checked() -> None:
    large = 10**6
    for settings, message in (
        ({"actions": spaces.Box(-1.0, 1.0, (2,)), "previous_action_dim": 8}, "must be 0 for actions in Box"),
        ({"features_extractor_class": "Cnn"}, "unknown features_extractor_class 'Cnn'; choose from"),
        ({"net_arch": [large]}, r"net_arch must be at most 65536, got \[?1000000"),
        ({"net_arch": {"pi": [], "vf": [large]}}, r"net_arch must be at most 65536, got \[?1000000"),
        ({"previous_action_dim": large}, "previous_action_dim must be at most 65536, got 1000000"),
        ({"use_sde": True}, "use_sde must be False"),
        ({"features_extractor_kwargs": {"scaled": ["place"]}}, "unknown key 'place' in scaled; choose from"),
    ):
        with pytest.raises(ValueError, match=message):
            policy(**settings)
    with pytest.raises(RuntimeError, match="acts through predict"):
        policy()._predict(torch.zeros(1))


def test_networks_by_hand() -> None:
    """Sizes and first weights: heads are orthogonal with gain 0.01 and 1, hidden layers with the root of 2."""
    made = policy("lstm", adam_eps=1e-3)
    assert made.previous_action.weight.shape == (6, 16) and made.net_arch == []
    group = made.optimizer.param_groups[0]
    assert (group["eps"], group["lr"], len(group["params"])) == (1e-3, 1e-3, len(list(made.parameters())))
    assert policy("lstm").optimizer.param_groups[0]["eps"] == 1e-5
    torch.testing.assert_close(made.critic.weight.norm(), torch.tensor(1.0))
    assert not made.critic.bias.any()
    plain = policy("none")
    assert plain.net_arch == {"pi": [64, 64], "vf": [64, 64]} and plain.previous_action_dim == 0
    hidden = [module for module in plain.mlp_extractor.modules() if isinstance(module, torch.nn.Linear)]
    assert [layer.weight.shape for layer in hidden] == [(64, 3), (64, 64)] * 2
    for layer in hidden:
        assert not layer.bias.any()
        torch.testing.assert_close(layer.weight.T @ layer.weight, 2.0 * torch.eye(layer.in_features))
    for actions in (spaces.MultiDiscrete([2, 3]), spaces.Box(-1.0, 1.0, (2,))):
        assert policy("lstm", actions=actions).previous_action_dim == 0
    with_dim = policy("lstm", previous_action_dim=3, freeze_previous_action=True)
    assert with_dim.previous_action.weight.shape == (6, 3)
    assert not with_dim.previous_action.weight.requires_grad
    assert len(with_dim.optimizer.param_groups[0]["params"]) == len(list(with_dim.parameters())) - 1


@pytest.mark.parametrize("value_gradient", [True, False])
def test_the_value_trains_the_memory_unless_its_gradient_ends_there(value_gradient: bool) -> None:
    made = policy("lstm", value_gradient=value_gradient, net_arch=[4])
    latent = torch.randn(2, made.memory.output_dim, requires_grad=True)
    distribution, value = made.heads(latent)
    value.sum().backward()
    assert (latent.grad is not None) == value_gradient
    assert all(weight.grad is not None for weight in made.mlp_extractor.value_net.parameters())
    (gradient,) = torch.autograd.grad(distribution.log_prob(torch.zeros(2)).sum(), latent)
    assert bool(gradient.any())  # the actor's reaches the memory in any case


def test_inputs_of_the_memory() -> None:
    features, flags = torch.randn(2, 3, 3), torch.tensor([[True, False, False], [False, True, False]])
    previous, no = torch.tensor([[0, 2, 1], [1, 0, 5]]), torch.zeros(2, 3, dtype=torch.bool)
    made = policy("gru", previous_action_dim=4)
    x = made.memory_inputs(features, previous, flags, no)
    assert torch.equal(x.embedding[..., :3], features)
    assert torch.equal(x.embedding[..., 3:], made.previous_action.weight[previous])
    assert torch.equal(x.episode_start, flags) and torch.equal(x.trial_start, no)
    single = policy("gru", previous_action_dim=0, single_steps=True)
    x = single.memory_inputs(features, previous, flags, no)
    assert torch.equal(x.embedding, features) and bool(x.episode_start.all()) and bool(x.trial_start.all())
    state = single.initial_state(2)
    assert single.update_previous_action(state, np.array([1, 2])) is state  # no input
    masked_policy = policy("none", observations=MASKED, actions=spaces.Discrete(4))
    observations = {"candidate_mask": torch.tensor([[0.0, 0.5, 2.0, -1.0]])}
    mask = masked_policy.action_mask(observations)
    assert mask is not None and mask.tolist() == [[False, True, True, False]]


def test_a_frozen_extractor_gives_what_the_buffers_store() -> None:
    extractor = {"features_extractor_kwargs": {"widths": {"position": 4}}}
    frozen, trained = policy(freeze_features=True, **extractor), policy(**extractor)
    observations = {key: torch.as_tensor(value) for key, value in batches(1, 3)[0].items()}
    exact = trained.features(observations)
    assert exact.requires_grad and exact.shape == (3, 5)
    rounded = frozen.features(observations)
    assert not rounded.requires_grad and rounded.dtype == torch.float32
    assert torch.equal(rounded, exact.bfloat16().float()) and not torch.equal(rounded, exact)


def test_categorical() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, -1e9]])
    made = Categorical(logits)
    expected = torch.distributions.Categorical(logits=logits)
    actions = torch.tensor([2, 0])
    torch.testing.assert_close(made.log_prob(actions), expected.log_prob(actions))
    torch.testing.assert_close(made.entropy(), expected.entropy())
    assert made.mode()[0] == 2
    generator = torch.Generator().manual_seed(0)
    many = Categorical(logits[:, None].expand(2, 20_000, 3)).sample(generator)
    shares = torch.stack([(many == a).float().mean(1) for a in range(3)], 1)
    torch.testing.assert_close(shares, logits.softmax(-1), atol=0.015, rtol=0)


def test_multi_categorical() -> None:
    logits = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    made = MultiCategorical(logits, (2, 3))
    first, second = (torch.distributions.Categorical(logits=part) for part in logits.split((2, 3), -1))
    actions = torch.tensor([[0, 2], [1, 1], [1, 0], [0, 0]])
    torch.testing.assert_close(made.log_prob(actions), first.log_prob(actions[:, 0]) + second.log_prob(actions[:, 1]))
    torch.testing.assert_close(made.entropy(), first.entropy() + second.entropy())
    best = [[int(row[:2].argmax()), int(row[2:].argmax())] for row in logits]
    assert made.mode().tolist() == best
    generator = torch.Generator().manual_seed(0)
    drawn = MultiCategorical(logits[:1].expand(20_000, 5), (2, 3)).sample(generator)
    for choice, distribution in enumerate((first, second)):
        shares = torch.bincount(drawn[:, choice]) / 20_000
        torch.testing.assert_close(shares, distribution.probs[0], atol=0.015, rtol=0)


def test_diagonal_gaussian() -> None:
    mean, log_std = torch.randn(4, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([0.3, -1.0])
    made = DiagonalGaussian(mean, log_std)
    expected = torch.distributions.Independent(torch.distributions.Normal(mean, log_std.exp()), 1)
    actions = mean + 0.5
    torch.testing.assert_close(made.log_prob(actions), expected.log_prob(actions))
    torch.testing.assert_close(made.entropy(), expected.entropy())
    assert torch.equal(made.mode(), mean)
    draws = DiagonalGaussian(mean[:1].expand(20_000, 2), log_std).sample(torch.Generator().manual_seed(0))
    torch.testing.assert_close(draws.mean(0), mean[0], atol=0.05, rtol=0)
    torch.testing.assert_close(draws.std(0), log_std.exp(), atol=0.03, rtol=0)


def test_the_first_policy_is_nearly_uniform() -> None:
    head = ActionHead(8, spaces.Discrete(4))
    torch.testing.assert_close(head(torch.randn(3, 8)).log_probs.exp(), torch.full((3, 4), 0.25), atol=0.02, rtol=0)
    for space, width in ((spaces.Discrete(4), 4), (spaces.MultiDiscrete([2, 3]), 5), (spaces.Box(-1, 1, (3,)), 3)):
        head = ActionHead(8, space)
        torch.testing.assert_close(head.linear.weight @ head.linear.weight.T, 1e-4 * torch.eye(width))
        assert not head.linear.bias.any()
    assert head.log_std.tolist() == [0.0] * 3 and head(torch.zeros(2, 8)).entropy().shape == (2,)
    for space in (spaces.MultiBinary(3), spaces.Box(-1, 1, (2, 2)), spaces.MultiDiscrete([[2, 2]])):
        with pytest.raises(ValueError, match="action space must be Discrete, or a MultiDiscrete or Box with one axis"):
            ActionHead(8, space)


def test_dict_encoder_by_hand() -> None:
    torch.manual_seed(0)
    space = spaces.Dict(
        {
            "cell": spaces.Box(np.float32([0, 2]), np.float32([4, 6]), (2,)),
            "goal": spaces.Box(-1.0, 1.0, (3,), np.float32),
            "reward": spaces.Box(0.0, 1.0, (1,), np.float32),
            "time": spaces.Box(0.0, 1.0, (), np.float32),
        }
    )
    made = DictEncoder(space, widths={"goal": 4, "reward": 3}, scaled=["cell"], rectified=["reward"])
    assert made.features_dim == 2 + 4 + 3 + 1
    goal = torch.tensor([[0.1, 0.2, 0.3]])
    reward, time = torch.tensor([[0.5]]), torch.tensor([0.25])
    out = made({"cell": torch.tensor([[3.0, 2.0]]), "goal": goal, "reward": reward, "time": time})
    assert out[0, :2].tolist() == [0.5, -1.0]
    linear: Any = made.parts["goal"][1]  # type: ignore[index]
    torch.testing.assert_close(out[:, 2:6], goal @ linear.weight.T + linear.bias)
    rectified: Any = made.parts["reward"][1]  # type: ignore[index]
    torch.testing.assert_close(out[:, 6:9], (reward @ rectified.weight.T + rectified.bias).relu())
    assert (out[:, 6:9] == 0).any() and (out[:, 2:6] < 0).any() and out[0, 9] == 0.25
    with pytest.raises(ValueError, match="unknown key 'place' in rectified"):
        DictEncoder(space, rectified=["place"])
    assert not any("cell" in name for name in made.state_dict())  # bounds are known from the space
    unbounded = spaces.Dict({"cell": spaces.Box(-np.inf, 2.0, (2,), np.float32)})
    with pytest.raises(ValueError, match="scaled key 'cell' must be a Box with finite bounds"):
        DictEncoder(unbounded, scaled=["cell"])


def test_small_images_by_hand() -> None:
    """Two convolutions of 3 x 3 with strides of 2 and 1, behind the numbers."""
    space = spaces.Dict({"rgb": spaces.Box(0, 255, (3, 9, 8), np.uint8), "heading": spaces.Box(-1.0, 1.0, (2,))})
    made = DictEncoder(space, image_dim=5)
    assert made.features_dim == 2 + 5  # keys in alphabetical order
    images = torch.rand(2, 3, 9, 8)
    out = made({"rgb": images, "heading": torch.tensor([[0.6, 0.8], [1.0, 0.0]])})
    assert out[:, :2].tolist() == torch.tensor([[0.6, 0.8], [1.0, 0.0]]).tolist()
    first, _, second, _, _, linear, _ = made.parts["rgb"].layers  # type: ignore[union-attr, misc]

    hidden = torch.conv2d(images, first.weight, first.bias, stride=2).relu()
    hidden = torch.conv2d(hidden, second.weight, second.bias).relu()
    assert hidden.shape == (2, 16, 2, 1)
    torch.testing.assert_close(out[:, 2:], (hidden.flatten(1) @ linear.weight.T + linear.bias).relu())
    tiny = spaces.Dict({"rgb": spaces.Box(0, 255, (3, 9, 6), np.uint8)})
    with pytest.raises(ValueError, match="images must have at least 7 x 7 pixels, got 9 x 6"):
        DictEncoder(tiny)
    for size, cnn in ((35, "SmallCNN"), (36, "NatureCNN")):
        image = spaces.Dict({"rgb": spaces.Box(0, 255, (3, 40, size), np.uint8)})
        assert type(DictEncoder(image).parts["rgb"]).__name__ == cnn


MASKED = spaces.Dict({"position": spaces.Box(0.0, 2.0, (2,), np.float32), "candidate_mask": spaces.MultiBinary(4)})


def test_masked_actions_have_no_part_in_the_softmax() -> None:
    """By hand: logits 1, 5, 2, 0 with the actions 0 and 3 are exp(1) / (exp(1) + 1) and 1 / (exp(1) + 1)."""
    head = ActionHead(2, spaces.Discrete(4))
    with torch.no_grad():
        head.linear.weight.zero_()
        head.linear.bias.copy_(torch.tensor([1.0, 5.0, 2.0, 0.0]))
    distribution = head(torch.zeros(2, 2), torch.tensor([[True, False, False, True], [False, False, True, False]]))
    p = np.exp(1) / (np.exp(1) + 1)
    np.testing.assert_allclose(distribution.log_prob(torch.tensor([0, 2])).detach(), [np.log(p), 0.0], rtol=1e-6)
    np.testing.assert_allclose(
        distribution.entropy().detach(), [-p * np.log(p) - (1 - p) * np.log(1 - p), 0.0], rtol=1e-5, atol=1e-7
    )
    assert distribution.mode().tolist() == [0, 2]
    (distribution.log_prob(torch.tensor([3, 2])).sum() + distribution.entropy().sum()).backward()
    assert torch.isfinite(head.linear.weight.grad).all() and torch.isfinite(head.linear.bias.grad).all()
    assert head.linear.bias.grad[1] == 0  # it is masked


def test_observations_that_cannot_be_learned_from() -> None:
    words = spaces.Dict({"say": spaces.Text(5), "position": spaces.Box(0.0, 1.0, (2,), np.float32)})
    frozen = {"actions": spaces.Discrete(4), "freeze_features": True}
    for observations, settings, message in (
        (words, {}, r"be numbers, .*; 'say' is of Text.*FilterObservation\(env, \['position'\]\)"),
        (MASKED, {}, "'candidate_mask' in observations must have a number for each of the Discrete"),
        (MASKED, frozen, "freeze_features must be False with 'candidate_mask'"),
    ):
        with pytest.raises(ValueError, match=message):
            policy(observations=observations, **settings)
