"""The one-file PPO with a memory, in CleanRL's manner."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

SCRIPT = Path(__file__).parents[2] / "examples" / "ppo_memory.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("ppo_memory", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass finds its types
    spec.loader.exec_module(module)
    return module


def test_mask_over_episodes(example) -> None:
    episode = torch.tensor([[0, 0, 1]])
    trial = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert example.may_attend(episode, "trial").int().tolist() == [trial]
    assert example.may_attend(episode, "episode").int().tolist() == [[*trial[:2], [0, 0, 1]]]
    with pytest.raises(ValueError, match="memory must be 'trial' or 'episode', got 'room'"):
        example.train(example.Args(memory="room"))


@pytest.mark.parametrize("memory", ["trial", "episode"])
def test_acting_and_learning_see_the_same(example, memory: str) -> None:
    """Step by step from keys and values, and all steps at once; and what each step may depend on."""
    torch.manual_seed(0)
    args = example.Args(memory=memory, size=3, episode_steps=4, episodes=2)
    envs = example.make_env(args, 3, trial_episodes=args.episodes)
    agent = example.Agent(8, 5, args)
    trial = example.Trial(agent, args, 8, 3)
    trial.play(envs, envs.reset(seed=0)[0])
    envs.close()
    assert trial.step.tolist() == [[0, 1, 2, 3] * 2] * 3 and trial.episode.tolist() == [[0] * 4 + [1] * 4] * 3
    assert trial.dones.tolist() == [[0, 0, 0, 1] * 2] * 3
    mask = example.may_attend(trial.episode, memory)
    action, value, _ = agent(trial.inputs, trial.step, mask)
    torch.testing.assert_close(action.log_prob(trial.actions), trial.logprobs)
    torch.testing.assert_close(value, trial.values)
    changed = trial.inputs.clone()
    changed[:, 1] += 1.0  # in the first episode
    differs = (agent(changed, trial.step, mask)[1] != value).all(0).tolist()
    assert differs == [False, True, True, True, *[memory == "trial"] * 4]


@pytest.mark.learning
def test_it_learns_to_remember(example) -> None:
    """In 9 cells and 8 steps an episode. With `memory="episode"` no step sees an earlier episode, as tested above."""
    args = example.Args(size=3, episode_steps=8, episodes=3, total_timesteps=60_000)
    first, *later = example.evaluate(example.train(args), args, episodes=4)
    assert np.mean(later) > first + 1.5


@pytest.mark.slow
def test_the_same_seed_gives_the_same_returns(example) -> None:
    settings = {"size": 3, "episode_steps": 8, "total_timesteps": 2_000}
    runs = [
        example.evaluate(example.train(args), args, episodes=2, trials=5)
        for args in (example.Args(seed=seed, **settings) for seed in (1, 1, 2))
    ]
    assert np.array_equal(runs[0], runs[1]) and not np.array_equal(runs[0], runs[2])
