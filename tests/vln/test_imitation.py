"""Imitation and actor-critic in the house of `toys.py`: losses by hand, rows alone and together, runs that go on bit by bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents import checkpoint, make_vec_env
from agents.__main__ import main
from agents.imitation import ImitationA2C
from agents.imitation_config import ImitationConfig
from agents.presets import find_preset
from agents.report import AGREEMENT, learning_figure
from agents.run_config import RunConfig, with_overrides
from agents.run_directory import RunDirectory
from agents.runs import evaluate_run, train_run, trained_policy
from agents.vln.rollout import Decisions, Rollout, discounted_returns
from agents.vln.words import heed

SIZES = {"dim": 8, "inner": 16, "heads": 2, "critic_dim": 8}
DRY = {"dropout": 0.0, "image_dropout": 0.0, "critic_dropout": 0.0}
ENV = "memenvs/VLN-R2R-v0"


def kwargs(folder: Path, **changes: Any) -> dict[str, Any]:
    same = {
        "world": "mp3d",
        "split": "train",
        "data_dir": str(folder),
        "features": "none",
        "feature_size": 4,
        "max_tokens": 8,
    }
    return same | changes


@pytest.fixture
def make(toy_data):
    def _make(
        n: int = 3,
        *,
        network: dict[str, Any] | None = None,
        env: dict[str, Any] | None = None,
        **settings: Any,
    ) -> ImitationA2C:
        policy = {"size": "tiny", "network": SIZES | DRY | (network or {})}
        base = {"learning_rate": 1e-2, "word_drop": 0.5}
        venv = make_vec_env(ENV, n, **kwargs(toy_data, **(env or {})))
        return ImitationA2C("MTVMPolicy", venv, policy_kwargs=policy, seed=7, device="cpu", **(base | settings))

    return _make


def weights(model: ImitationA2C) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.policy.parameters()])


def sharpen(model: ImitationA2C) -> ImitationA2C:
    """Ready to play, with weights in float64, large enough that everything matters."""
    generator = torch.Generator().manual_seed(1)
    model.policy.double()
    model._setup_learn(1)
    with torch.no_grad():
        for each in model.policy.parameters():
            each.add_(0.3 * torch.randn(each.shape, generator=generator, dtype=torch.float64))
    return model


def decisions(rows: list[int], rewards: list[float], **values: list[float]) -> Decisions:
    zero = [0.0] * len(rows)
    names = ("log_probs", "entropy", "values", "error", "agreed", "apart")
    return Decisions(
        rows=torch.tensor(rows),
        rewards=torch.tensor(rewards),
        **{name: torch.tensor(values.get(name, zero)) for name in names},
    )


# ---------------------------------------------------------------------- losses by hand


def test_returns_by_hand() -> None:
    """Row 0 stops after its second decision, row 1 is cut after its third, where the value of what follows is 8."""
    steps = [decisions([0, 1], [1.0, 2.0]), decisions([0, 1], [4.0, 0.0]), decisions([1], [6.0])]
    found = discounted_returns(steps, torch.tensor([0.0, 8.0]), 0.5)
    assert found.tolist() == [1 + 0.5 * 4, 2 + 0.5 * (0 + 0.5 * 10), 4.0, 0 + 0.5 * 10, 6 + 0.5 * 8]


def test_losses_by_hand(make) -> None:
    model = make(2, gamma=0.5, value_coef=0.5, entropy_coef=0.01, imitation_weight=0.2)
    steps = [
        decisions(
            [0, 1],
            [1.0, 2.0],
            log_probs=[-1.0, -2.0],
            entropy=[0.3, 0.6],
            values=[1.0, 0.0],
            error=[1.0, 3.0],
            apart=[0.1, 0.2],
        ),
        decisions([1], [4.0], log_probs=[-0.5], entropy=[0.9], values=[2.0], error=[2.0], apart=[0.6]),
    ]
    rollout = Rollout(steps, torch.tensor([0.0, 6.0]), torch.tensor([0.2, 0.4]))
    returns = [1.0, 2 + 0.5 * 7, 7.0]
    ahead = [returns[0] - 1, returns[1], returns[2] - 2]
    sampled = {name: value.item() for name, value in model.losses(rollout, taught=False).items()}
    assert sampled == pytest.approx(
        {
            "actor": (1.0 * ahead[0] + 2.0 * ahead[1] + 0.5 * ahead[2]) / 3,
            "critic": 0.5 * sum(each**2 for each in ahead) / 3,
            "entropy": -0.01 * (0.3 + 0.6 + 0.9) / 3,
            "text_consistency": 6 * 0.3,
            "cross_consistency": 2 * 0.3,
        }
    )
    taught = {name: value.item() for name, value in model.losses(rollout, taught=True).items()}
    assert taught["error"] == pytest.approx(0.2 * (1 + 3 + 2) / 2) and set(taught) == {
        "error",
        "text_consistency",
        "cross_consistency",
    }
    assert set(make(2, text_consistency=0.0, cross_consistency=0.0).losses(rollout, taught=True)) == {"error"}


# ---------------------------------------------------------------------- rollouts


def test_a_taught_rollout_is_the_teachers(make) -> None:
    """The way a-b-c-d and a stop, or e-b and a stop; who has finished has no more decisions."""
    model = make(4, env={"max_episode_steps": 5})
    rollout = model.play(model.env, 0, taught=True)
    played = [model.env.reset_infos[i]["trial_id"] for i in range(4)]
    assert min(played) > 0  # those that finished first have gone on
    lengths = torch.bincount(torch.cat([step.rows for step in rollout.steps]), minlength=4).tolist()
    assert set(lengths) <= {2, 4} and rollout.decisions == sum(lengths)
    ends = {i: next(s.rewards[s.rows == i].item() for s in reversed(rollout.steps) if i in s.rows) for i in range(4)}
    assert all(reward == pytest.approx(4.0) for reward in ends.values())  # 2 + 2 nDTW of the annotated way
    assert not rollout.last.any()


def test_rows_learn_as_if_they_were_alone(make) -> None:
    """Losses of each episode, in a batch with longer and shorter ones and by itself."""
    model = sharpen(make(4))
    rollout = model.play(model.env, 3, taught=True)
    lengths = []
    for i in range(4):
        single = sharpen(make(1))
        single.env.seed(7 + i)
        alone = single.play(single.env, 3, taught=True)
        lengths.append(len(alone.steps))
        own = [step for step in rollout.steps if i in step.rows]
        assert len(own) == len(alone.steps)
        for step, expected in zip(own, alone.steps, strict=True):
            for name in ("error", "values", "log_probs", "entropy", "rewards"):
                torch.testing.assert_close(
                    getattr(step, name)[step.rows == i], getattr(expected, name), atol=1e-9, rtol=1e-7
                )
    assert len(set(lengths)) > 1


def test_a_cut_episode_goes_on_with_the_critics_value(make) -> None:
    model = sharpen(make(3, env={"max_episode_steps": 1}))
    rollout = model.play(model.env, 1, taught=False)
    stopped = rollout.steps[0].rewards.abs() >= 2
    values = rollout.last
    assert bool((values[~stopped] != 0).all()) and not bool(values[stopped].any()) and not values.requires_grad


def test_the_critic_remembers_what_was_before_the_cut(make) -> None:
    """The value of what follows is that of the second decision where the clock goes on."""
    cut, whole = (sharpen(make(4, env={"max_episode_steps": limit})) for limit in (1, 5))
    ended, goes_on = (model.play(model.env, 1, taught=False) for model in (cut, whole))
    second = goes_on.steps[1]
    assert len(second.rows) > 0
    torch.testing.assert_close(ended.last[second.rows], second.values.detach().float())


def test_the_actors_loss_does_not_teach_the_critic(make) -> None:
    values, log_probs = (torch.tensor([1.0], requires_grad=True) for _ in range(2))
    step = replace(decisions([0], [3.0]), values=values, log_probs=log_probs)
    make(2).losses(Rollout([step], torch.zeros(1), torch.zeros(1)), taught=False)["actor"].backward()
    assert values.grad is None and log_probs.grad is not None and log_probs.grad.item() == -2.0


def test_sampled_rollouts_draw_their_actions(make) -> None:
    model = sharpen(make(3))
    rollouts = [model.play(model.env, 1, taught=False) for _ in range(10)]
    assert len({rollout.steps[0].log_probs.sum().item() for rollout in rollouts}) > 1


def test_an_update_decays_weights_and_ends_without_dropout(make, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(2, weight_decay=0.3)
    assert [group["weight_decay"] for group in model.policy.optimizer.param_groups] == [0.3]
    model.learn(1)
    assert not model.policy.training
    before = weights(model)
    endless = {"error": torch.tensor(float("inf"), requires_grad=True)}
    monkeypatch.setattr(model, "losses", lambda rollout, taught: endless)
    with pytest.raises(ValueError, match=r"loss and gradient must be finite, got imitation_error inf, .* in update 2"):
        model.learn(2, reset_num_timesteps=False)
    assert torch.equal(before, weights(model))


def test_nothing_is_inconsistent_where_nothing_is_dropped(make) -> None:
    for rate, is_zero in ((0.0, True), (0.9, False)):
        model = sharpen(make(3, word_drop=rate))
        torch.manual_seed(1)
        rollout = model.play(model.env, 0, taught=True)
        apart = torch.cat([step.apart for step in rollout.steps])
        assert bool((rollout.text_apart.abs().max() < 1e-6) == is_zero) and bool((apart.abs().max() < 1e-6) == is_zero)


@pytest.mark.parametrize("layers", [1, 3])
def test_consistency_works_for_any_number_of_layers(make, layers: int) -> None:
    """And compares the two passes: its gradient reaches the word that is dropped and those that are kept."""
    model = sharpen(make(2, network={"cross_layers": layers, "text_layers": 0}))
    torch.manual_seed(3)
    rollout = model.play(model.env, 0, taught=True)
    torch.cat([step.apart for step in rollout.steps]).mean().backward()
    assert all(
        bool(each.grad.abs().sum() > 0)
        for each in model.policy.network.cross_layers.parameters()
        if each.grad is not None
    )
    assert model.policy.network.words.weight.grad.abs().sum() > 0


def test_the_text_is_read_once_an_episode(make) -> None:
    for drops, times in ((0.0, 1), (2.0, 2)):
        model = make(3, text_consistency=drops, cross_consistency=drops)
        read, encode = [], model.policy.network.encode
        model.policy.network.encode = lambda tokens, keys, read=read, encode=encode: (
            read.append(len(tokens)) or encode(tokens, keys)
        )
        assert len(model.play(model.env, 0, taught=True).steps) > 1
        assert read == [3] * times


def test_dropped_words_are_not_looked_at_in_acting(make) -> None:
    model = make(2)
    model.policy.set_training_mode(False)
    before = torch.random.get_rng_state()
    model.predict(model.env.reset(), deterministic=True)
    assert torch.equal(before, torch.random.get_rng_state())


# ---------------------------------------------------------------------- updates


def test_gradients_are_clipped_as_they_are(make) -> None:
    """Of all parameters together, the critic's too."""
    model = sharpen(make(3, max_grad_norm=0.01))
    model.train()
    gradients = [p.grad for p in model.policy.parameters() if p.grad is not None]
    assert torch.cat([g.flatten() for g in gradients]).norm().item() == pytest.approx(0.01, rel=1e-3)
    assert sum(float(p.grad.abs().sum()) for p in model.policy.network.critic.parameters()) > 0


def test_imitation_alone_at_first(make) -> None:
    played: list[tuple[int, bool]] = []
    model = make(2, imitation_updates=2, warmup_updates=3)
    play = model.play
    model.play = lambda env, number, *, taught: played.append((number, taught)) or play(env, number, taught=taught)
    model.learn(3)
    assert played == [(0, True), (2, True), (4, True), (5, False)]
    assert [model.config.learning_rate_at(k, 10) for k in (0, 1, 3, 9)] == pytest.approx([2.5e-3, 5e-3, 1e-2, 1e-2])


def test_the_step_size_falls_to_the_end_of_the_run(make) -> None:
    model = make(2, imitation_updates=9, warmup_updates=1, learning_rate=1e-2, final_learning_rate=2e-3)
    rates: list[float] = []
    step = model.policy.optimizer.step
    model.policy.optimizer.step = lambda: rates.append(model.policy.optimizer.param_groups[0]["lr"]) or step()
    model.learn(4)
    assert rates == pytest.approx([5e-3, 8e-3, 6e-3, 4e-3])
    model.learn(4, reset_num_timesteps=False)  # the second half of 8
    assert rates[4:] == pytest.approx([6e-3, 5e-3, 4e-3, 3e-3])


def test_it_learns_the_way_and_no_global_generator_is_touched(make) -> None:
    state = torch.random.get_rng_state()
    model = make(
        6,
        learning_rate=3e-3,
        imitation_weight=1.0,
        text_consistency=0.1,
        cross_consistency=0.1,
        imitation_updates=10**6,
    )
    first = model.play(model.env, 1000, taught=True)
    torch.random.set_rng_state(state)
    model.learn(40)
    assert torch.equal(state, torch.random.get_rng_state())
    last = model.play(model.env, 1000, taught=True)
    errors = [float(torch.cat([step.error for step in each.steps]).mean().detach()) for each in (first, last)]
    assert errors[1] < 0.5 * errors[0]


def test_wrong_losses_leave_the_weights(make) -> None:
    model = make(2)
    with torch.no_grad():
        model.policy.network.critic[-1].bias.fill_(float("nan"))
    before = model.policy.network.see.weight.clone()
    with pytest.raises(ValueError, match="the policy's outputs must be finite, got NaN or infinity after 0"):
        model.train()
    assert torch.equal(before, model.policy.network.see.weight)


def test_bfloat16_learns_too(make) -> None:
    model = make(2, precision="bfloat16")
    before = weights(model)
    model.learn(1)
    assert model.policy.network.see.weight.dtype == torch.float32 and not torch.equal(before, weights(model))


def test_wrong_settings(make) -> None:
    with pytest.raises(TypeError, match="unknown setting 'clip'"):
        make(clip=1)
    with pytest.raises(ValueError, match="an MTVMPolicy needs observations with instruction"):
        ImitationA2C("MTVMPolicy", make_vec_env("memenvs/Darkroom-v0", 1), device="cpu")
    with pytest.raises(
        ValueError, match="text_positions of the network must be at least the 8 tokens of an instruction, got 4"
    ):
        make(network={"text_positions": 4})
    with pytest.raises(
        ValueError, match=r"text_consistency and cross_consistency must be 0 where network\.language is False"
    ):
        make(network={"language": False})
    with pytest.raises(ValueError, match=r"memory_angle must be left out with history 'state'.*, got 'option'"):
        make(network={"history": "state", "memory_angle": "option"})


@pytest.mark.parametrize(("changes", "needed"), [({}, 31), ({"bank": 3}, 20), ({"history": "state"}, 18)])
def test_room_for_what_an_episode_can_remember(make, changes: dict[str, Any], needed: int) -> None:
    """15 steps remember 14 moves, beside 17 actions; a rollout never fails for that later."""
    make(network=changes | {"vision_positions": needed})
    with pytest.raises(
        ValueError, match=f"vision_positions of the network must be at least {needed}, .* got {needed - 1}"
    ):
        make(network=changes | {"vision_positions": needed - 1})


def test_another_environment_than_was_learned_in_is_refused(make, toy_data: Path, tmp_path: Path) -> None:
    model = make(2)
    model.policy.check_env(make_vec_env(ENV, 1, **kwargs(toy_data, split="val_seen")))
    others = {
        r"observation 'instruction' must be of shape \(8,\), as it was learned with, got \(9,\)": {"max_tokens": 9},
        r"observation 'candidates' must be of shape \(17, 132\), .* got \(17, 133\)": {"feature_size": 5},
        r"vocabulary must be the one that was learned with, [0-9a-f]{16}, got [0-9a-f]{16}": {"world": "procedural", "data_dir": None},
    }  # fmt: skip
    model.save(tmp_path / "model")
    loaded = ImitationA2C.load(tmp_path / "model", device="cpu")
    for message, changes in others.items():
        other = make_vec_env(ENV, 2, **kwargs(toy_data, **changes))
        for policy in (model.policy, loaded.policy):
            with pytest.raises(ValueError, match=message):
                policy.check_env(other)
    other = make_vec_env(ENV, 2, **kwargs(toy_data))
    tokenizer = other.unwrapped.env.task.tokenizer  # as many words, in another order
    tokenizer.tokens = tokenizer.tokens[:-2] + tokenizer.tokens[:-3:-1]
    with pytest.raises(ValueError, match="model: vocabulary must be the one"):
        ImitationA2C.load(tmp_path / "model", other, device="cpu")
    fresh = ImitationA2C("MTVMPolicy", other, policy_kwargs={"size": "tiny", "network": SIZES | DRY}, device="cpu")
    with pytest.raises(ValueError, match=r"model: vocabulary must be [0-9a-f]{16}, got [0-9a-f]{16}"):
        checkpoint.load_policy(fresh.policy, tmp_path / "model")


def test_rates_out_of_range() -> None:
    for name, value, message in (
        ("word_drop", 1.5, r"word_drop must be in \[0, 1\), got 1.5"),
        ("word_drop", 1.0, r"word_drop must be in \[0, 1\), got 1.0"),
        ("learning_rate", 0.0, "learning_rate must be > 0, got 0.0"),
        ("final_learning_rate", -1e-4, "final_learning_rate must be >= 0 or None, got -0.0001"),
        ("cross_consistency", -1.0, "cross_consistency must be at least 0, got -1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            ImitationConfig(**{name: value})


# ---------------------------------------------------------------------- runs


def config(folder: Path, **changes: Any) -> RunConfig:
    base: dict[str, Any] = {
        "env": ENV, "env_kwargs": kwargs(folder), "n_envs": 2, "total_steps": 6, "device": "cpu", "threads": 1,
        "imitation": ImitationConfig(learning_rate=1e-3, imitation_updates=2),
        "policy": {"size": "tiny", "network": SIZES}, "eval_kwargs": {"split": "val_seen"}, "eval_steps": 15, "eval_trials": 3,
        "eval_all_layouts": True, "score": "spl", "checkpoint_rollouts": 2,
    }  # fmt: skip
    return RunConfig(**(base | changes))


def test_a_killed_run_ends_with_the_same_bits(tmp_path: Path, toy_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout, dropped words, drawn actions and episodes included."""
    with RunDirectory(tmp_path / "whole", config(toy_data)) as run:
        whole = train_run(run, quiet=True)
    train, calls = ImitationA2C.train, []

    def killed(self: ImitationA2C) -> None:
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        train(self)

    with RunDirectory(tmp_path / "killed", config(toy_data)) as run:
        monkeypatch.setattr(ImitationA2C, "train", killed)
        with pytest.raises(KeyboardInterrupt):
            train_run(run, quiet=True)
        monkeypatch.setattr(ImitationA2C, "train", train)
        resumed = train_run(run, quiet=True)
    assert resumed.num_timesteps == whole.num_timesteps == 6 and resumed.decisions == whole.decisions
    files = [(tmp_path / name / "checkpoint.zip").read_bytes() for name in ("whole", "killed")]
    assert files[0] == files[1]


def test_evaluation_is_greedy_and_by_the_environments_metrics(tmp_path: Path, toy_data: Path) -> None:
    with RunDirectory(tmp_path / "run", config(toy_data, total_steps=1)) as run:
        train_run(run, quiet=True)
        first, second = (evaluate_run(run, seed=seed) for seed in (1, 2))
        policy = trained_policy(run, 1)
    names = {"ne", "sr", "osr", "spl", "tl", "ndtw", "sdtw", "cls"}
    assert names <= set(first.metrics) and first.layouts.tolist() == [0, 1, 2]
    for name in names:
        assert np.array_equal(first.metrics[name], second.metrics[name])
    with pytest.raises(ValueError, match="cannot be told of moves that others chose"):
        policy.remember_moves({}, np.zeros(1, np.int64))


def test_train_evaluate_and_report_on_the_command_line(tmp_path: Path, toy_data: Path) -> None:
    run, weights_file = tmp_path / "run", tmp_path / "none.bin"
    pairs = {
        "env_kwargs.data_dir": toy_data, "env_kwargs.feature_size": 4, "env_kwargs.max_tokens": 8, "policy.size": "tiny", "n_envs": 2,
        "total_steps": 2, "eval_kwargs.split": "val_seen", "eval_trials": 3, "device": "cpu", "imitation.imitation_updates": 1,
    }  # fmt: skip
    options = [each for name, value in pairs.items() for each in (f"--{name}", str(value))]
    assert main(["train", "vln-r2r-small", "--out", str(run), *options]) == 0
    assert {"checkpoint.zip", "evaluation.json", "report.html", "metrics.csv", "tensorboard"} <= {
        each.name for each in run.iterdir()
    }
    words = sorted(each.name for each in run.glob("words_*.png"))
    assert (
        words == ["words_0.png", "words_1.png", "words_2.png"]
        and "Words that are heeded" in (run / "report.html").read_text()
    )
    with RunDirectory(run) as opened:
        logged = opened.metrics()
        figure = learning_figure({"run": logged}, AGREEMENT, "updates")
    (line,) = figure.axes[0].lines
    assert figure.axes[0].get_xlabel() == "updates" and list(line.get_xdata()) == [2]
    assert {"train/imitation_error", "train/sampled_critic", "train/grad_norm", "rollout/success_rate"} <= set(logged)
    assert (
        main(
            ["train", "vln-r2r-small", "--out", str(tmp_path / "other"), *options, "--encoder_from", str(weights_file)]
        )
        == 2
    )
    assert not (tmp_path / "other").exists()


def test_it_begins_with_what_another_has_learned(make, tmp_path: Path) -> None:
    first, second = make(2, learning_rate=1e-2), make(2, network={"bank": 0})
    first.learn(2)
    first.save(tmp_path / "first.zip")
    assert not torch.equal(weights(first), weights(second))
    second.load_features(tmp_path / "first.zip")
    assert torch.equal(weights(first), weights(second))
    assert second.num_timesteps == 0 and second.policy.network.config.bank == 0
    with pytest.raises(ValueError, match=r"first.zip: weights of another policy: .*network\.critic"):
        make(2, network={"critic_dim": 5}).load_features(tmp_path / "first.zip")
    with pytest.raises(FileNotFoundError, match=r"none.zip"):
        second.load_features(tmp_path / "none.zip")


def test_presets_of_ablations_differ_in_what_they_say() -> None:
    base = find_preset("vln-r2r-small")
    changes = {
        "last1": ("policy.network.bank", 1), "no-memory": ("policy.network.bank", 0), "recurrent": ("policy.network.history", "state"),
    }  # fmt: skip
    for name, pair in changes.items():
        assert find_preset(f"vln-r2r-small-{name}") == with_overrides(base, [pair])
    deaf = [
        ("policy.network.language", False),
        ("imitation.text_consistency", 0.0),
        ("imitation.cross_consistency", 0.0),
    ]
    assert find_preset("vln-r2r-small-no-language") == with_overrides(base, deaf)
    paper = find_preset("vln-r2r-paper")
    assert (
        paper.imitation == ImitationConfig() and paper.env_kwargs["feature_size"] == 2048 and paper.eval_trials == 2349
    )


def test_dialogues_are_learned_too(tmp_path: Path, toy_data: Path) -> None:
    """The preset of the real graphs on the toy house; the supervision of training is a setting of the environment."""
    pairs = {
        "env_kwargs.data_dir": toy_data, "env_kwargs.feature_size": 4, "env_kwargs.supervision": "oracle", "policy.size": "tiny",
        "policy.network": '{"text_positions": 300, "vision_positions": 64}', "n_envs": 2, "total_steps": 2, "eval_kwargs.split": "val_seen",
        "eval_trials": 2, "device": "cpu", "imitation.imitation_updates": 1,
    }  # fmt: skip
    options = [each for name, value in pairs.items() for each in (f"--{name}", str(value))]
    assert main(["train", "vln-cvdn-small", "--out", str(tmp_path / "run"), *options]) == 0
    with RunDirectory(tmp_path / "run") as run:
        assert "gp" in evaluate_run(run, eval_steps=20).metrics and run.config.env_kwargs["supervision"] == "oracle"
    assert find_preset("vln-cvdn-laptop").env_kwargs["world"] == "procedural"


def test_words_are_heeded_by_who_reads(make) -> None:
    """A row of attention for each decision, over the words of the text; who does not read has none."""
    model = make(1)
    found = heed(model.policy, model.env, 2)
    assert found.id == "8_0" and found.words[-1] == "[SEP]" and found.map.shape == (512, 512, 3)
    assert found.attention.shape == (len(found.moves), len(found.words))
    np.testing.assert_allclose(found.attention.sum(1), 1.0, rtol=1e-5)
    assert set(found.moves) <= {"stop", "candidate 0", "candidate 1", "candidate 2"}
    deaf = make(1, network={"language": False}, text_consistency=0.0, cross_consistency=0.0)
    with pytest.raises(ValueError, match="policy must read the text"):
        heed(deaf.policy, deaf.env, 2)
