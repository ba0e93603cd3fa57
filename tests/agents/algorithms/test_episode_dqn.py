"""`EpisodeDQN`: collection, learning against acting, checkpoints, refused settings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from memenvs.agents import EpisodeDQN, PartialUpdatePPO, make_vec_env
from memenvs.agents.algorithms.distributed import Processes
from memenvs.agents.policies.acting import PolicyOutput
from tests.agents.algorithms.q_worlds import Cue, Ring, copies, q_learner
from tests.agents.learners import MEMORIES, Hooks, Noise, darkroom, shake, weights
from tests.agents.memory.test_poses import POSES


def test_exploration() -> None:
    """Epsilon is 1 until the buffer is full (4 iterations of 4 x 8 steps), then falls to 0.1."""
    epsilons: dict[int, float] = {}

    def watch(own: Hooks) -> None:
        epsilons[own.num_timesteps] = own.model.epsilon

    model = q_learner(copies(Ring), capacity=16, final_epsilon=0.1, exploration=0.25, updates_per_collect=1)
    model.learn(4 * 32 + 16 * 32, Hooks(rollout_start=watch))
    assert model.filled_at == 4 * 32
    assert model._n_updates == 1 + 16  # the first when it was full
    assert list(epsilons) == [32 * i for i in range(20)]
    expected = [1.0] * 5 + [1.0 - 0.9 * i / 4 for i in (1, 2, 3)] + [0.1] * 12
    assert list(epsilons.values()) == pytest.approx(expected)


def test_uniform_and_softmax_actions() -> None:
    """Action 1 has a Q that is higher by 2: 88 % of the actions drawn from softmax(Q) are 1."""
    for epsilon, share in ((0.0, 1 / (1 + np.exp(-2))), (1.0, 0.5), (0.5, 0.25 + 0.5 / (1 + np.exp(-2)))):
        settings = {"capacity": 64, "batch_size": 1, "updates_per_collect": 1, "learning_rate": 1e-12}
        model = q_learner(copies(Ring, 64), final_epsilon=epsilon, **settings)
        model.learn(64 * 8)
        with torch.no_grad():
            model.policy.actor.linear.weight.zero_()
            model.policy.actor.linear.bias.copy_(torch.tensor([0.0, 2.0]))
        model.num_timesteps = model._total_timesteps = 10**6  # exploration is over
        _, callback = model._setup_learn(1, reset_num_timesteps=False)
        assert model._collect_episodes(model.env, callback)  # type: ignore[arg-type]
        taken = model.replay.actions(torch.arange(64), torch.arange(8).expand(64, -1)).float().mean()
        assert float(taken) == pytest.approx(share, abs=0.08)  # 3.6 standard deviations


def test_an_episode_whose_info_names_no_time_limit_has_terminated(monkeypatch: pytest.MonkeyPatch) -> None:
    model = q_learner(env := copies(Ring), capacity=4, updates_per_collect=1, batch_size=1)
    model.learn(32)
    assert not model.replay.terminated.any()  # a time limit ended them
    step = env.step_wait

    def unnamed() -> Any:
        *rest, infos = step()
        return *rest, [{key: value for key, value in info.items() if key != "TimeLimit.truncated"} for info in infos]

    monkeypatch.setattr(env, "step_wait", unnamed)
    model.learn(32, reset_num_timesteps=False)
    assert model.replay.terminated.all()


def test_the_previous_action_is_the_one_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the actions are uniform instead of the policy's; acting and learning must use these."""
    policy = {"memory": "gru", "memory_kwargs": {"hidden_dim": 8}}
    model = q_learner(copies(Ring), policy, capacity=4, batch_size=1, final_epsilon=0.5, updates_per_collect=1)
    model.learn(4 * 8)
    model.num_timesteps = model._total_timesteps = 10**6  # exploration is over
    _, callback = model._setup_learn(1, reset_num_timesteps=False)
    outputs: list[PolicyOutput] = []
    act = model.policy.act
    monkeypatch.setattr(model.policy, "act", lambda *args: outputs.append(act(*args)) or outputs[-1])
    assert model._collect_episodes(model.env, callback)
    rows, steps = torch.arange(4), torch.arange(8).expand(4, -1)
    actions = model.replay.actions(rows, steps)
    assert not torch.equal(torch.stack([output.actions for output in outputs], 1), actions)
    expected = torch.cat([torch.zeros(4, 1, dtype=torch.int64), 1 + actions[:, :-1]], 1)
    assert torch.equal(torch.stack([output.previous_action for output in outputs], 1), expected)
    assert torch.equal(model.replay.read(rows, steps).previous_action, expected)


@pytest.mark.parametrize("frozen", [False, True])
def test_the_replay_buffer_stores_all_poses_of_an_episode(frozen: bool) -> None:
    """Also the pose of the last observation; of six episodes the last two replace the first two."""
    played: list[list[np.ndarray]] = []

    class Watched(Noise):
        def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
            observation, info = super().reset(**kwargs)
            played.append([observation["pose"]])
            return observation, info

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            observation, *rest = super().step(action)
            played[-1].append(observation["pose"])
            return observation, *rest

    policy = {"memory": "sm-pooling", "memory_kwargs": {"dim": 8, "capacity": 4}, "freeze_features": frozen}
    settings = {"capacity": 4, "episode_steps": 11, "batch_size": 1, "updates_per_collect": 1, "final_epsilon": 0.1}
    model = q_learner(copies(Watched, 1, **POSES), policy, **settings)
    model.learn(6 * 11)
    whole = [torch.as_tensor(np.stack(poses)) for poses in played if len(poses) == 12]
    stored = model.replay.read(torch.arange(4), torch.arange(12).expand(4, -1)).extra_inputs["pose"]
    assert torch.equal(stored, torch.stack([whole[episode] for episode in (4, 5, 2, 3)]))


def darkroom_learner(memory: str, **policy: Any) -> EpisodeDQN:
    """A learner in a small Darkroom, with large weights and a full replay buffer."""
    kwargs = {
        "memory": memory,
        "memory_kwargs": MEMORIES[memory],
        "features_extractor_kwargs": {"widths": {"position": 8}},
    }
    env = darkroom(6, horizon=6, episodes=1)
    model = q_learner(env, kwargs | policy, capacity=12, batch_size=6, updates_per_collect=3, final_epsilon=0.1)
    shake(model)
    return model.learn(6 * 6 * 4)


@pytest.mark.parametrize(
    ("memory", "stage"),
    [*((memory, {}) for memory in MEMORIES), ("gru", {"single_steps": True}), ("relic", {"freeze_features": True})],
)
@pytest.mark.slow
def test_q_values_are_those_of_acting(memory: str, stage: dict[str, Any]) -> None:
    compare_with_acting(darkroom_learner(memory, **stage))


@pytest.mark.parametrize("memory", ["smt", "smt-factorized", "smt-causal", "sm-pooling", "frmqn"])
@pytest.mark.slow
def test_q_values_of_scene_memories_are_those_of_acting(memory: str) -> None:
    kwargs = {"dim": 8, "capacity": 4} | ({"heads": 2} if memory.startswith("smt") else {})
    settings = {"capacity": 12, "episode_steps": 11, "batch_size": 6, "updates_per_collect": 3}
    model = q_learner(copies(Noise, **POSES), {"memory": memory, "memory_kwargs": kwargs}, **settings)
    shake(model)
    model.learn(4 * 11 * 5)
    assert model._n_updates == 9
    compare_with_acting(model)


def compare_with_acting(model: EpisodeDQN) -> None:
    """Compare Q values of a batch with those of acting through one episode after the other."""
    policy, replay = model.policy, model.replay
    length = int(replay.lengths[0])
    rows = torch.arange(12)
    chosen = torch.stack([torch.randperm(length + 1)[:4] for _ in range(12)])
    with torch.no_grad():
        learned = model.q_values(policy, rows, chosen)
        for row in range(12):
            here = torch.tensor([row])
            steps = replay.read(here, torch.arange(length + 1)[None])
            state, acted = policy.initial_state(1, max_steps=length + 2), []
            for t in range(length + 1):
                if steps.embeddings is not None:
                    features = steps.embeddings[:, t].float()
                else:
                    features = policy.features({key: value[:, t] for key, value in steps.observations.items()})
                start = torch.tensor([t == 0])
                extra_inputs = {key: value[:, t] for key, value in steps.extra_inputs.items()}
                distribution, _, state = policy.step(features, state, start, start, extra_inputs)
                acted.append(distribution.log_probs[0])  # type: ignore[attr-defined]
                if t < length:
                    state = policy.update_previous_action(
                        state, replay.actions(here, torch.tensor([[t]]))[:, 0].numpy()
                    )
            torch.testing.assert_close(
                learned[row].log_softmax(-1), torch.stack(acted)[chosen[row]], atol=1e-5, rtol=1e-4
            )


@pytest.mark.parametrize("single", [True, False])
def test_single_steps_depend_on_no_other_step(single: bool) -> None:
    model = darkroom_learner("gru", single_steps=single)
    rows, steps = torch.arange(12), torch.full((12, 1), 3)
    with torch.no_grad():
        before = model.q_values(model.policy, rows, steps)
        model.replay._stores["observation.position"][:, :3] += 1
        same = torch.equal(model.q_values(model.policy, rows, steps), before)
    assert same == single
    observation = model.env.reset()  # type: ignore[union-attr]
    _, state = model.predict(observation)
    noisy = {key: value + torch.randn(value.shape) if key == "hidden" else value for key, value in state.items()}
    no_start = np.zeros(6, bool)
    first, second = (
        model.predict(observation, before, no_start, deterministic=True)[1]["hidden"] for before in (state, noisy)
    )
    assert torch.equal(first, second) == single


def test_every_environment_plays_one_whole_episode() -> None:
    """Episodes of 5 to 7 steps side by side; steps played while waiting for the longest are not stored."""
    model = q_learner(copies(Cue, 8), capacity=24, updates_per_collect=1)
    model.learn(8 * 7 * 20)
    replay = model.replay
    assert set(replay.lengths.tolist()) == {5, 6, 7}
    assert replay.terminated.all()
    for row, length in enumerate(replay.lengths.tolist()):
        steps = replay.read(torch.tensor([row]), torch.arange(length + 1)[None]).observations[0]  # type: ignore[index]
        assert steps[:, 1].tolist() == [0.0] * (length - 1) + [1.0, 0.0]
        assert abs(float(steps[0, 0])) == 1.0
        assert not steps[1:, 0].any()
        right = (int(steps[0, 0]) + 1) // 2
        done = int(replay.actions(torch.tensor([row]), torch.tensor([[length - 1]])))
        assert replay._stores["reward"][row].tolist() == [0.0] * (length - 1) + [1.0 if done == right else -1.0] + [
            0.0
        ] * (8 - length + 1)


def test_stopping_in_the_middle_keeps_whole_episodes_and_epsilon() -> None:
    model = q_learner(copies(Ring), capacity=12, batch_size=4, updates_per_collect=1, final_epsilon=0.1)
    model.learn(400, Hooks(step=lambda own: own.num_timesteps % 140 != 0))
    assert model.num_timesteps == 140  # in the fifth iteration of 32
    assert model.at_rollout_boundary is False
    assert (model.replay.lengths > 0).sum() == 8  # four were to be replaced
    with pytest.warns(UserWarning, match="stopped in the middle of a rollout .* dropped: .* after 140 env") as caught:
        model.learn(32, reset_num_timesteps=False)
    assert caught[0].filename == __file__  # where `learn` is called
    assert model.is_between_rollouts
    assert model.replay.is_full and set(model.replay.lengths.tolist()) == {8}
    assert (model.filled_at, model._n_updates) == (96, 3) and model.epsilon < 1.0


def test_a_warning_if_the_replay_buffer_was_not_filled(recwarn: pytest.WarningsRecorder) -> None:
    model = q_learner(copies(Ring), updates_per_collect=1)  # 4 environments, 8 steps an episode, room for 32 of them
    with pytest.warns(UserWarning, match=r"nothing was learned: 100 steps .* has 16 of 32 episodes .* up to 256 steps"):
        model.learn(100)
    model.learn(192, reset_num_timesteps=False)
    assert (model.filled_at, recwarn.list) == (256, [])


def test_a_learner_that_is_saved_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"capacity": 12, "batch_size": 6, "updates_per_collect": 3, "final_epsilon": 0.1}
    policy = {"memory": "relic", "memory_kwargs": MEMORIES["relic"]}

    def save(own: Hooks) -> None:
        if own.num_timesteps == 180:
            own.model.save(tmp_path / "model.zip")
            own.model.save_replay_buffer(tmp_path / "replay")

    whole = q_learner(darkroom(6, horizon=6, episodes=1), policy, **settings).learn(360, Hooks(rollout_start=save))
    resumed = EpisodeDQN.load(tmp_path / "model.zip", darkroom(6, horizon=6, episodes=1), device="cpu")
    assert (resumed.num_timesteps, resumed._n_updates, resumed.filled_at) == (180, 12, 72)
    resumed.load_replay_buffer(tmp_path / "replay")
    resumed.learn(180, reset_num_timesteps=False)
    assert torch.equal(weights(whole), weights(resumed))  # type: ignore[arg-type]
    for name, value in whole.saved_tensors().items():
        assert torch.equal(value, resumed.saved_tensors()[name]), name
    for name, store in whole.replay._stores.items():
        assert torch.equal(store, resumed.replay._stores[name]), name
    whole.save(tmp_path / "whole.zip")
    resumed.save(tmp_path / "resumed.zip")
    assert (tmp_path / "whole.zip").read_bytes() == (tmp_path / "resumed.zip").read_bytes()
    with pytest.raises(ValueError, match="must be the replay of environment step 360, got that of 180"):
        resumed.load_replay_buffer(tmp_path / "replay")
    with pytest.raises(ValueError, match="algorithm must be 'PartialUpdatePPO', got 'EpisodeDQN'"):
        PartialUpdatePPO.load(tmp_path / "whole.zip")


@pytest.mark.parametrize("reset_num_timesteps", [True, False])
def test_a_learner_without_its_episodes_collects_them_first(reset_num_timesteps: bool, tmp_path: Path) -> None:
    env = darkroom(6, horizon=6, episodes=1)
    learned = q_learner(env, {"memory": "none"}, capacity=12, batch_size=6, updates_per_collect=3).learn(180)
    assert learned.filled_at == 72 and learned._n_updates > 0
    learned.save(tmp_path / "model.zip")
    loaded = EpisodeDQN.load(tmp_path / "model.zip", darkroom(6, horizon=6, episodes=1), device="cpu")
    with pytest.warns(UserWarning, match="nothing was learned: .* have not filled the replay, .* 6 of 12 episodes"):
        loaded.learn(36, reset_num_timesteps=reset_num_timesteps)
    assert loaded.filled_at == -1 and loaded.epsilon == 1.0
    for name, value in learned.policy.state_dict().items():
        assert torch.equal(value, loaded.policy.state_dict()[name]), name
    loaded.learn(72, reset_num_timesteps=False)
    assert loaded.filled_at == loaded.num_timesteps - 36 and loaded._n_updates == learned._n_updates + 6


def encoder_of(model: EpisodeDQN) -> dict[str, Tensor]:
    parts = ("features_extractor.", "previous_action.")
    return {name: value.clone() for name, value in model.policy.state_dict().items() if name.startswith(parts)}


def test_the_second_stage_leaves_the_encoder_as_it_is(tmp_path: Path) -> None:
    first = darkroom_learner("lstm", single_steps=True)
    first.save(tmp_path / "first.zip")
    second = darkroom_learner("relic", freeze_features=True, freeze_previous_action=True)
    second.load_features(tmp_path / "first.zip")
    encoder = encoder_of(first)
    assert len(encoder) == 3  # a layer, and the embedding of the action before
    others = weights(second).clone()  # type: ignore[arg-type]
    second.learn(6 * 6 * 4)
    for name, value in encoder_of(second).items():
        assert torch.equal(value, encoder[name]), name
        assert torch.equal(second.saved_tensors()[f"target.{name}"], encoder[name]), name
    assert not torch.equal(weights(second), others)  # type: ignore[arg-type]
    assert sorted(second.replay._stores) == ["action", "embedding", "reward"]
    embeddings = second.replay._stores["embedding"]
    assert (embeddings.shape, embeddings.dtype) == ((12, 9, second.policy.features_dim), torch.bfloat16)


def test_settings_that_do_not_fit_are_named() -> None:
    with pytest.raises(TypeError, match=r"unknown setting 'n_steps'; did you mean 'n_step'"):
        q_learner(copies(Ring), n_steps=3)
    with pytest.raises(ValueError, match="capacity must be at least the number of environments, 4, got 3"):
        q_learner(copies(Ring), capacity=3, batch_size=1)
    with pytest.raises(ValueError, match=r"value_gradient must be True for EpisodeDQN, .* got False"):
        EpisodeDQN("MemoryPolicy", copies(Ring), policy_kwargs={"value_gradient": False})
    with pytest.raises(ValueError, match=r"episode_steps must be at least the 6 steps of .* episodes, got 5"):
        q_learner(darkroom(2, horizon=6, episodes=1), episode_steps=5)
    with pytest.raises(ValueError, match=r"episodes must end within episode_steps \(7\) steps, got one that goes on"):
        q_learner(copies(Ring), episode_steps=7).learn(100)
    with pytest.raises(ValueError, match="EpisodeDQN learns in one process, got a launch of 2"):
        EpisodeDQN("MemoryPolicy", copies(Ring), processes=Processes(0, 2), policy_kwargs={"memory": "none"})


def test_rewards_and_weights_that_are_not_finite_stop_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    model = q_learner(copies(Ring), updates_per_collect=1, final_epsilon=0.0)
    model.learn(32 * 8)
    before = model.policy.actor.linear.weight.clone()
    with torch.no_grad():
        model.target.actor.linear.weight.fill_(float("inf"))
    with pytest.raises(ValueError, match=r"loss and gradient must be finite, got loss .* in update 2, after 256 env"):
        model.train()
    assert torch.equal(model.policy.actor.linear.weight, before)
    monkeypatch.setattr(Ring, "REWARDS", ((float("nan"),) * 2,) * 3)
    with pytest.raises(ValueError, match=r"rewards must be finite, got .nan nan nan nan. after 256 environment steps"):
        model.learn(1000, reset_num_timesteps=False)


def test_it_goes_on_in_another_environment() -> None:
    model = q_learner(
        darkroom(4, horizon=5, episodes=1), {"memory": "gru", "memory_kwargs": {"hidden_dim": 8}}, updates_per_collect=1
    )
    model.learn(4 * 5 * 10)
    model.set_env(darkroom(6, horizon=8, episodes=3))  # trials of several episodes: each is one of its own
    model.learn(6 * 8 * 4, reset_num_timesteps=False)
    assert set(model.replay.lengths.tolist()) == {5, 8}
    assert model.policy.resets_with_episode
    with pytest.raises(ValueError, match="episode_steps must be at least the 9"):
        model.set_env(darkroom(4, horizon=9, episodes=1))
    assert model.n_envs == 6


def test_any_gymnasium_environment_by_its_name() -> None:
    policy = {"memory": "lstm", "memory_kwargs": {"hidden_dim": 8}}
    model = q_learner("CartPole-v1", policy, capacity=4, episode_steps=500, batch_size=2, updates_per_collect=2)
    model.learn(200)
    assert model._n_updates > 0
    assert model.predict(model.env.reset())[0].shape == (1,)
    with pytest.raises(ValueError, match="episode_steps must be at least the 500"):
        q_learner(make_vec_env("CartPole-v1", 1, seed=0))
