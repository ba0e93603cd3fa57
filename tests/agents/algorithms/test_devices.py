"""Learners on a second device: no mixed devices, the weights of the CPU, few waits."""

from dataclasses import replace

import pytest
import torch

from memenvs.agents import EpisodeDQN, PartialUpdatePPO, make_vec_env
from memenvs.agents.algorithms.supervised import SupervisedLearner
from memenvs.agents.encoders import make_encoder
from memenvs.agents.experiments.prediction_experiment import make_run_model
from memenvs.agents.experiments.train import check_config
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.pretrained import load_pretrained
from tests.agents.algorithms.supervised_processes import SMALL
from tests.agents.second_device import SECOND, DeviceTensor, learning_device, settle, to_host

#: Waits of the host for each step of the vector environment, at most; docs/guides/processes.md.
PPO_WAITS, DQN_WAITS = 11, 2
RELIC = {"memory": "relic", "memory_kwargs": {"layers": 1, "heads": 2, "dim": 8, "mlp_dim": 8}}
GRU = {"memory": "gru", "memory_kwargs": {"hidden_dim": 8}}


def ppo(device: torch.device | str) -> PartialUpdatePPO:
    """Rollouts of 10 steps in 2 environments, with a partial and a full update."""
    env = make_vec_env("memenvs/Darkroom-v0", 2, seed=0)
    settings = {"n_steps": 10, "n_updates": 2, "n_epochs": 1, "batch_size": 2}
    return PartialUpdatePPO("MemoryPolicy", env, seed=0, device=device, policy_kwargs=RELIC, **settings)


def dqn(device: torch.device | str) -> EpisodeDQN:
    """Episodes of 20 steps in 2 environments."""
    env = make_vec_env("memenvs/Darkroom-v0", 2, seed=0, max_episode_steps=20, trial_episodes=1)
    settings = {"capacity": 4, "episode_steps": 20, "batch_size": 2, "decisions": 4, "updates_per_collect": 2}
    return EpisodeDQN("MemoryPolicy", env, seed=0, device=device, policy_kwargs=GRU, **settings)


@pytest.mark.filterwarnings("ignore:no episode ended within the first n_steps=10")
@pytest.mark.parametrize(
    ("make", "steps", "most"), [(ppo, 20, PPO_WAITS), pytest.param(dqn, 80, DQN_WAITS, marks=pytest.mark.nightly)]
)
def test_a_learner_on_a_second_device(make, steps, most, monkeypatch):
    here = make("cpu")
    here.learn(steps)
    acting = 0
    with learning_device() as device:
        there = make(SECOND)
        settle(there.policy.optimizer, there.policy)
        there._trained = there.policy.optimizer.param_groups[0]["params"]
        train = there.train

        def learn_apart() -> None:
            nonlocal acting
            before = device.waits.total()
            train()
            acting -= device.waits.total() - before

        monkeypatch.setattr(there, "train", learn_apart)
        device.waits.clear()
        there.learn(steps)
        acting += device.waits.total()
    assert here._n_updates == there._n_updates > 0
    for ours, theirs in zip(there.policy.parameters(), here.policy.parameters(), strict=True):
        assert isinstance(ours.data, DeviceTensor)
        torch.testing.assert_close(to_host(ours.data), theirs.data, atol=1e-6, rtol=1e-5)
    assert 2 * acting / steps <= most


@pytest.mark.nightly
def test_supervised_learning_on_a_second_device():
    """Three batches of Room Ballet."""
    losses = []
    here = SupervisedLearner(make_run_model(SMALL), SMALL.learner, 3)
    losses.append([here.step()["loss"] for _ in range(3)])
    with learning_device():
        model = make_run_model(SMALL)
        there = SupervisedLearner(model, SMALL.learner, 3, device=SECOND)
        settle(there.optimizer, model)
        losses.append([there.step()["loss"] for _ in range(3)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("device", ["cuda:1", torch.device("cuda")])
def test_a_gpu_that_is_not_there_is_refused(device, monkeypatch, tmp_path):
    """Stable-Baselines3 takes the CPU without a word."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    model = PartialUpdatePPO("MemoryPolicy", "memenvs/Darkroom-v0", n_steps=8, n_updates=1, policy_kwargs=GRU)
    model.save(tmp_path / "model.zip")
    prediction = make_run_model(SMALL)
    for make in (
        lambda: ppo(device),
        lambda: dqn(device),
        lambda: PartialUpdatePPO.load(tmp_path / "model.zip", device=device),
        lambda: make_encoder("symbolic", device=device),
        lambda: SupervisedLearner(prediction, SMALL.learner, 1, device=device),
        lambda: load_pretrained("extobjnav-small", device=str(device)),
        lambda: check_config(replace(SMALL, device=str(device))),
        lambda: check_config(replace(find_preset("ci-smoke"), device=str(device))),
    ):
        with pytest.raises(ValueError, match=f"device must be 'auto' or 'cpu' where .* no GPU, got '{device}'"):
            make()
    assert PartialUpdatePPO.load(tmp_path / "model.zip", device="auto").device.type == "cpu"
