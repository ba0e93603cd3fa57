"""The studies of ReLIC: equal steps and evaluations; an agent without its memory."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memenvs.agents import PartialUpdatePPO, make_vec_env
from memenvs.agents.experiments.config import CONFIG, with_overrides
from memenvs.agents.experiments.directory import CHECKPOINT, RunDirectory
from memenvs.agents.presets.pretrained import PRETRAINED
from memenvs.agents.study import Played, Rows, find_studies, load_study, play_milestone
from memenvs.json_records import format_json

STUDIES = {name: load_study(find_studies()[name]) for name in ("darkroom", "ext_objnav", "ext_objnav_pictures")}
#: Agents with fewer trials or steps, of which the page says so.
EXCEPTIONS = (("ext_objnav_pictures", "exact"), ("ext_objnav_pictures", "large"))
OBJNAV, PICTURES = STUDIES["ext_objnav"], STUDIES["ext_objnav_pictures"]


@pytest.mark.parametrize("name", STUDIES)
def test_methods_get_the_same_steps_and_evaluation(name: str) -> None:
    same = ("env", "n_envs", "total_steps", "eval_steps", "eval_trials", "eval_all_layouts", "score")
    for methods in STUDIES[name].configs.values():
        first, *others = (methods[method] for method in methods if (name, method) not in EXCEPTIONS)
        for config in others:
            assert all(getattr(config, setting) == getattr(first, setting) for setting in same)


@pytest.mark.slow
def test_every_method_learns() -> None:
    """Two trials of short episodes and a narrow memory; every other setting goes through the learner."""
    for methods in OBJNAV.configs.values():
        for name, config in methods.items():
            small: list[tuple[str, Any]] = [("env_kwargs.max_episode_steps", 4)]
            for key in ("dim", "mlp_dim", "hidden_dim"):
                if key in config.policy["memory_kwargs"]:
                    small.append((f"policy.memory_kwargs.{key}", 16))
            config = with_overrides(OBJNAV.smoke(config), small)
            env = make_vec_env(config.env, 4, seed=0, **config.env_kwargs)
            model = PartialUpdatePPO("MemoryPolicy", env, config.learner, policy_kwargs=config.policy, seed=0)
            before = model.policy.actor.linear.weight.detach().clone()
            model.learn(2 * 4 * 64)
            assert not np.array_equal(before, model.policy.actor.linear.weight.detach()), name
            trials = [info["trial_id"] for info in model.env.reset_infos]
            if name == "transformer-se":  # each episode is a trial
                assert min(trials) >= 2 * 64 // 4
            else:
                assert trials == [1 if config.learner.reset_each_rollout is not False else 2] * 4, name
            env.close()


def row(method: str, seed: int, success: float) -> dict[str, Any]:
    means = {"metrics": {metric: {"mean": [0.1] * 14 + [success]} for metric in ("success", "spl")}}
    return {"task": "half", "method": method, "seed": seed, "evaluations": {"checkpoint_3014656": {"agent": means}}}


def test_how_far_a_method_is_behind_relic_is_of_the_same_seeds() -> None:
    rows = [row("relic", seed, success) for seed, success in enumerate((0.7, 0.6, 0.8))]
    rows += [row("trxl", seed, success) for seed, success in enumerate((0.6, 0.5, 0.7))]
    (half,) = OBJNAV.tables(Rows(rows))
    relic, trxl = half.lines
    assert relic[1:] == ["10.0 +- 0.0", "70.0 +- 24.8", "70.0 / 60.0 / 80.0", "-"]
    assert trxl[-1] == "10.0 +- 0.0"  # each seed is 10 points behind, whatever seeds differ by


def shipped_run(folder: Path) -> Path:
    """A folder of a run of the agent that comes with the package, with few short trials."""
    config = PICTURES.config(("homes", "exact", 0))
    short = {**config.eval_kwargs, "max_episode_steps": 8}
    config = replace(config, eval_envs=4, eval_trials=4, eval_steps=64, eval_kwargs=short)
    (folder / CHECKPOINT).write_bytes(PRETRAINED["extobjnav-small"].read_bytes())
    (folder / CONFIG).write_text(format_json(config.to_json()))
    return folder


@pytest.mark.slow
def test_without_earlier_episodes_only_the_first_episode_stays(tmp_path: Path) -> None:
    """The same weights play the same first episodes; later ones differ."""
    module = sys.modules[PICTURES.tables.__module__]
    with RunDirectory(shipped_run(tmp_path)) as run:
        played = Played("homes", "exact", run.config, run)
        results = [play(played)["agent"]["metrics"]["spl"]["mean"] for play in (module.play, module.play_forgetful)]
        assert PICTURES.evaluations["forgetful"](played) is None  # that is of agents that have learned from pictures
        assert play_milestone(played, 512, "spl") is None  # none was kept
        (tmp_path / "checkpoint_512.zip").write_bytes((tmp_path / CHECKPOINT).read_bytes())
        assert play_milestone(played, 512, "spl")["agent"]["metrics"]["spl"]["mean"] == results[0]
    assert results[0][0] == results[1][0]
    assert results[0] != results[1]
