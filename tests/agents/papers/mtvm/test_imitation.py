"""`ImitationA2C` in the house of `tests/vln/toys.py`: losses by hand, batches, updates."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from memenvs.agents import make_vec_env
from memenvs.agents.papers.mtvm.learner import ImitationA2C
from memenvs.agents.papers.mtvm.model import DecisionOutput
from memenvs.agents.papers.mtvm.rollouts import Rollout, RolloutStep, discounted_returns
from tests.agents.interruptions import learn_interrupted
from tests.agents.learners import Hooks, weights
from tests.agents.papers.mtvm.learners import sharpen


def decisions(rows: list[int], rewards: list[float], **values: list[float]) -> RolloutStep:
    zero = [0.0] * len(rows)
    names = ("log_probs", "entropy", "values", "imitation_loss", "teacher_agreement", "inconsistency")
    return RolloutStep(
        rows=torch.tensor(rows),
        rewards=torch.tensor(rewards),
        **{name: torch.tensor(values.get(name, zero)) for name in names},
    )


def test_returns_by_hand() -> None:
    """Row 0 stops after its second decision; row 1 is truncated after its third, with a bootstrap value of 8."""
    steps = [decisions([0, 1], [1.0, 2.0]), decisions([0, 1], [4.0, 0.0]), decisions([1], [6.0])]
    returns = discounted_returns(steps, torch.tensor([0.0, 8.0]), 0.5)
    assert returns.tolist() == [1 + 0.5 * 4, 2 + 0.5 * (0 + 0.5 * 10), 4.0, 0 + 0.5 * 10, 6 + 0.5 * 8]


def test_losses_by_hand(make_learner) -> None:
    model = make_learner(2, gamma=0.5, value_coef=0.5, entropy_coef=0.01, imitation_weight=0.2)
    steps = [
        decisions(
            [0, 1],
            [1.0, 2.0],
            log_probs=[-1.0, -2.0],
            entropy=[0.3, 0.6],
            values=[1.0, 0.0],
            imitation_loss=[1.0, 3.0],
            inconsistency=[0.1, 0.2],
        ),
        decisions([1], [4.0], log_probs=[-0.5], entropy=[0.9], values=[2.0], imitation_loss=[2.0], inconsistency=[0.6]),
    ]
    rollout = Rollout(steps, torch.tensor([0.0, 6.0]), torch.tensor([0.2, 0.4]))
    returns = [1.0, 2 + 0.5 * 7, 7.0]
    advantages = [returns[0] - 1, returns[1], returns[2] - 2]
    sampled = {name: value.item() for name, value in model.losses(rollout, teacher_forcing=False).items()}
    assert sampled == pytest.approx(
        {
            "actor": (1.0 * advantages[0] + 2.0 * advantages[1] + 0.5 * advantages[2]) / 3,
            "critic": 0.5 * sum(advantage**2 for advantage in advantages) / 3,
            "entropy": -0.01 * (0.3 + 0.6 + 0.9) / 3,
            "text_consistency": 6 * 0.3,
            "cross_consistency": 2 * 0.3,
        }
    )
    imitation = {name: value.item() for name, value in model.losses(rollout, teacher_forcing=True).items()}
    assert imitation.keys() == {"error", "text_consistency", "cross_consistency"}
    assert imitation["error"] == pytest.approx(0.2 * (1 + 3 + 2) / 2)
    without = make_learner(2, text_consistency=0.0, cross_consistency=0.0)
    assert without.losses(rollout, teacher_forcing=True).keys() == {"error"}


def test_chosen_episodes(make_learner) -> None:
    """Episodes of two and of four decisions, in any order; the number of the trial does not matter."""
    model = make_learner(4)
    world = model.env.env.task.world
    decisions = {number: len(world.episode(number).path) for number in range(world.num_episodes)}
    assert len(set(decisions.values())) > 1
    for trial, numbers in ((0, [0, 1, 2, 0]), (5, [2, 2, 1, 0])):
        rollout = model.play(model.env, trial, teacher_forcing=True, episodes=numbers)
        lengths = torch.bincount(torch.cat([step.rows for step in rollout.steps]), minlength=4).tolist()
        assert lengths == [decisions[number] for number in numbers]


def test_the_bootstrap_value_has_the_memory_of_the_episode(make_learner) -> None:
    """The bootstrap value is the value of the second decision in an episode with more time."""
    short, long = (sharpen(make_learner(4, env={"max_episode_steps": limit})) for limit in (1, 5))
    truncated, whole = (model.play(model.env, 1, teacher_forcing=False) for model in (short, long))
    second = whole.steps[1]
    stopped = truncated.steps[0].rewards.abs() >= 2
    assert len(second.rows) > 0 and not truncated.bootstrap_value[stopped].any()
    assert not truncated.bootstrap_value.requires_grad
    torch.testing.assert_close(truncated.bootstrap_value[second.rows], second.values.detach().float())


def test_the_actors_loss_does_not_teach_the_critic(make_learner) -> None:
    values, log_probs = (torch.tensor([1.0], requires_grad=True) for _ in range(2))
    step = replace(decisions([0], [3.0]), values=values, log_probs=log_probs)
    make_learner(2).losses(Rollout([step], torch.zeros(1), torch.zeros(1)), teacher_forcing=False)["actor"].backward()
    assert values.grad is None and log_probs.grad is not None and log_probs.grad.item() == -2.0


def test_sampled_rollouts_draw_their_actions(make_learner) -> None:
    model = sharpen(make_learner(3))
    rollouts = [model.play(model.env, 1, teacher_forcing=False) for _ in range(10)]
    assert len({rollout.steps[0].log_probs.sum().item() for rollout in rollouts}) > 1


def test_an_update_decays_weights_and_ends_without_dropout(
    make_learner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = make_learner(2, weight_decay=0.3)
    assert [group["weight_decay"] for group in model.policy.optimizer.param_groups] == [0.3]
    model.save(tmp_path / "model.zip")
    other = ImitationA2C.load(tmp_path / "model.zip", weight_decay=0.2)
    assert (
        [group["weight_decay"] for group in other.policy.optimizer.param_groups] == [other.config.weight_decay] == [0.2]
    )
    model.learn(1)
    assert not model.policy.training
    before = weights(model)
    infinite = {"error": torch.tensor(float("inf"), requires_grad=True)}
    monkeypatch.setattr(model, "losses", lambda rollout, teacher_forcing: infinite)
    with pytest.raises(ValueError, match=r"loss and gradient must be finite, got imitation_error inf, .* in update 2"):
        model.learn(2, reset_num_timesteps=False)
    assert torch.equal(before, weights(model))


@pytest.mark.parametrize("layers", [1, 3])
def test_the_consistency_loss_works_for_any_number_of_layers(make_learner, layers: int) -> None:
    """Its gradient reaches all layers and words. (A bias that all keys share changes no attention.)"""
    model = sharpen(make_learner(2, network={"cross_layers": layers, "text_layers": 0}))
    torch.manual_seed(3)
    rollout = model.play(model.env, 0, teacher_forcing=True)
    torch.cat([step.inconsistency for step in rollout.steps]).mean().backward()
    for name, parameter in model.policy.network.cross_layers.named_parameters():
        if parameter.grad is not None:
            assert (parameter.grad.abs().max() > 1e-9) == (not name.endswith("key.bias")), name
    moved = model.policy.network.words.weight.grad.abs().amax(1) > 1e-9
    observations = model.env.reset()
    tokens = observations["instruction"][observations["instruction_mask"] > 0]
    assert moved[torch.as_tensor(tokens, dtype=torch.int64).unique()].all()


def test_all_gradients_are_clipped_together(make_learner) -> None:
    """The norm is that of all parameters, the critic's too."""
    model = sharpen(make_learner(3, max_grad_norm=0.01))
    model.train()
    gradients = [p.grad for p in model.policy.parameters() if p.grad is not None]
    assert torch.cat([g.flatten() for g in gradients]).norm().item() == pytest.approx(0.01, rel=1e-3)
    assert sum(float(p.grad.abs().sum()) for p in model.policy.network.critic.parameters()) > 0


def test_the_first_updates_are_imitation_only(make_learner) -> None:
    played: list[tuple[int, bool]] = []
    model = make_learner(2, imitation_updates=2, warmup_updates=3)
    play = model.play
    model.play = lambda env, number, *, teacher_forcing: (
        played.append((number, teacher_forcing)) or play(env, number, teacher_forcing=teacher_forcing)
    )
    model.learn(3)
    assert played == [(0, True), (2, True), (4, True), (5, False)]
    assert [model.config.learning_rate_at(k, 10) for k in (0, 1, 3, 9)] == pytest.approx([2.5e-3, 5e-3, 1e-2, 1e-2])


def test_an_update_with_a_random_bank_is_that_of_a_network_with_the_drawn_size(make_learner) -> None:
    """Both rollouts have the same size; afterwards the policy has its whole memory again."""
    sizes: list[int | None] = []
    consistency = {"text_consistency": 0.0, "cross_consistency": 0.0}  # it would draw words
    for seed in range(10):
        drawn = make_learner(random_bank=2, **consistency)
        play = drawn.play
        drawn.play = lambda *inputs, play=play, network=drawn.policy.network, **options: (
            sizes.append(network.bank.size) or play(*inputs, **options)
        )
        drawn.policy.generator.manual_seed(seed)
        drawn.learn(1)
        assert sizes[-1] == sizes[-2] and drawn.policy.network.bank.size is None
        fixed = make_learner(network={"bank": sizes[-1]}, **consistency)
        fixed.policy.generator.manual_seed(seed)
        fixed.learn(1)
        assert torch.equal(weights(drawn), weights(fixed))
    assert len(sizes) == 20 and set(sizes) == {0, 1, 2}


def test_the_learning_rate_falls_to_the_end_of_the_run(make_learner) -> None:
    model = make_learner(2, imitation_updates=9, warmup_updates=1, learning_rate=1e-2, final_learning_rate=2e-3)
    rates: list[float] = []
    step = model.policy.optimizer.step
    model.policy.optimizer.step = lambda: rates.append(model.policy.optimizer.param_groups[0]["lr"]) or step()
    model.learn(4)
    assert rates == pytest.approx([5e-3, 8e-3, 6e-3, 4e-3])
    model.learn(4, reset_num_timesteps=False)  # the second half of 8
    assert rates[4:] == pytest.approx([6e-3, 5e-3, 4e-3, 3e-3])


def test_callbacks_find_each_update_in_the_logger(make_learner) -> None:
    latest: list[dict[str, Any]] = []
    keep = Hooks(rollout_end=lambda own: latest.append(dict(own.logger.name_to_value)))
    make_learner(2, imitation_updates=3).learn(5, keep, log_interval=2)
    assert len(latest) == 5
    assert all("train/imitation_error" in values and "train/grad_norm" in values for values in latest)
    assert ["train/sampled_actor" in values for values in latest] == [False] * 3 + [True, True]


def test_learning_changes_no_global_generator(make_learner) -> None:
    model, state = make_learner(2, imitation_updates=1), torch.random.get_rng_state()
    model.learn(2)
    assert torch.equal(state, torch.random.get_rng_state())


def test_wrong_losses_leave_the_weights(make_learner) -> None:
    model = make_learner(2)
    with torch.no_grad():
        model.policy.network.critic[-1].bias.fill_(float("nan"))
    before = model.policy.network.see.weight.clone()
    with pytest.raises(ValueError, match="the policy's outputs must be finite, got NaN or infinity after 0"):
        model.train()
    assert torch.equal(before, model.policy.network.see.weight)


def test_bfloat16_learns_too(make_learner) -> None:
    model = make_learner(2, precision="bfloat16")
    before = weights(model)
    model.learn(1)
    assert model.policy.network.see.weight.dtype == torch.float32 and not torch.equal(before, weights(model))


def test_wrong_settings(make_learner) -> None:
    for network, message in (
        ({"text_positions": 4}, "text_positions of the network must be at least the 8 tokens of an instruction, got 4"),
        ({"language": False}, r"text_consistency and cross_consistency must be 0 where network\.language is False"),
        ({"history": "state", "memory_angle": "option"}, "must be left out with history 'state'.*, got 'option'"),
        ({"bank": 0, "memory_angle": "option"}, "memory_angle must be left out with bank 0"),
        ({"bank": 0, "history": "observation"}, "history must be left out with bank 0"),
        ({"bank": 0, "detach_memory": True}, "detach_memory must be False with bank 0 and history 'activation'"),
        ({"history": "observation", "detach_memory": True}, "must be False with bank None and history 'observation'"),
    ):
        with pytest.raises(ValueError, match=message):
            make_learner(network=network)
    for network in ({"bank": 3}, {"history": "state"}):
        with pytest.raises(ValueError, match=r"random_bank must be None where the network has one size .*, got 2 with"):
            make_learner(network=network, random_bank=2)
    with pytest.raises(ValueError, match="random_bank must be at least 1 or None, got 0"):
        make_learner(random_bank=0)
    with pytest.raises(TypeError, match="unknown setting 'clip'"):
        make_learner(clip=1)
    with pytest.raises(ValueError, match="an MTVMPolicy needs observations with instruction"):
        ImitationA2C("MTVMPolicy", make_vec_env("memenvs/Darkroom-v0", 1), device="cpu")
    with pytest.raises(ValueError, match=r"is a setting of the learner \(0.01\) .*, got 0.5 in policy_kwargs"):
        ImitationA2C("MTVMPolicy", make_learner().env, policy_kwargs={"weight_decay": 0.5})


@pytest.mark.parametrize(("changes", "needed"), [({}, 32), ({"bank": 3}, 20), ({"history": "state"}, 18)])
def test_positions_for_all_moves_of_an_episode(make_learner, changes: dict[str, Any], needed: int) -> None:
    """15 moves and 17 actions: a truncated episode needs a position for its bootstrap value too."""
    model = make_learner(4, network=changes | {"vision_positions": needed})
    model._setup_learn(1)
    network, decide = model.policy.network, model.policy.network.decide

    def decide_never_to_stop(*inputs: Any) -> DecisionOutput:
        output = decide(*inputs)
        output.logits[:, -1] = -torch.inf
        return output

    network.decide = decide_never_to_stop
    with torch.no_grad():
        assert bool((model.play(model.env, 0, teacher_forcing=False).bootstrap_value != 0).all())
    with pytest.raises(
        ValueError, match=f"vision_positions of the network must be at least {needed}, .* got {needed - 1}"
    ):
        make_learner(network=changes | {"vision_positions": needed - 1})


@pytest.mark.slow
def test_learning_goes_on_or_says_what_it_drops(make_learner) -> None:
    whole = weights(make_learner(2).learn(3))
    points = ("reset", "training_start", "rollout_start", "step_wait", "on_step", "stop", "rollout_end", "optimizer")
    for point in points:
        model = make_learner(2)
        reached, dropped = learn_interrupted(model, 3, point, 2)
        assert reached or point == "training_start", point
        assert dropped == (point in ("reset", "step_wait", "optimizer")), point
        assert model.num_timesteps == 3 and model.at_rollout_boundary, point
        if not dropped:
            assert torch.equal(weights(model), whole), point
