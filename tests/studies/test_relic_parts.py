"""Parts of ReLIC: each method changes one, and runs are kept after whole rollouts."""

import numpy as np

from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.train import train_run
from memenvs.agents.study import Rows, changed


def test_methods_change_the_part_in_their_name(study, module):
    base, *others = study.configs[module.TASK].values()
    for config in others:
        differs = {key for key in vars(base) if getattr(base, key) != getattr(config, key)}
        assert differs in ({"learner"}, {"policy"})
    sinks = {config.policy["memory_kwargs"]["sink"] for config in (base, *others)}
    assert sinks == {"none", "token", "k0v0", "kv0", "k0v", "kv"}


def test_only_the_second_group_cuts_episodes(study, module):
    for group, methods in module.GROUPS.items():
        for method in methods:
            segment = study.configs[module.TASK][method].learner.segment
            assert bool(segment % module.STEPS) == (group == "segments that cut episodes")


def test_runs_are_kept_and_optimizer_steps_counted(study, module, tmp_path):
    """In a run of small rollouts, one for each of twelve."""
    small = {"n_envs": 4, "eval_envs": 4, "ppo.batch_size": 1, "ppo.n_epochs": 1, "env_kwargs.gap": 0}
    short = {"env_kwargs.max_episode_steps": 1, "ppo.n_steps": 10, "total_steps": 12 * 4 * 10, "policy.size": None}
    config = changed(study.configs[module.TASK]["k5"], {**small, **short, "policy.memory": "none"})
    with RunDirectory.open_or_create(tmp_path / "run", config) as run:
        train_run(run, quiet=True)
        kept = {f"checkpoint_{4 * 10 * rollouts}.zip" for rollouts in module.EARLIER}
        assert kept == {file.name for file in run.path.glob("checkpoint_*.zip")}
        updates = run.metrics()["train/n_updates"][-1][1]
    assert module.optimizer_steps(config) == updates * 4
    assert module.optimizer_steps(study.configs[module.TASK]["k1 small batches"]) == 960


def row(method: str, seed: int | None, last: float) -> dict:
    result = {"agent": {"metrics": {"return": {"mean": [1.0] * 9 + [last]}}}}
    evaluations = {"evaluation": result} if seed is None else {"rollouts_4": result, "evaluation": result}
    return {"task": "darkroom-gap", "method": method, "seed": seed, "evaluations": evaluations}


def test_the_figure_waits_for_every_method(study, module):
    draw = study.figures["relic_parts"]
    rows = [row(method, seed, 10.0) for method in study.configs[module.TASK] for seed in range(3)]
    assert draw(Rows(rows)) is None
    axes = draw(Rows([*rows, row("memoryless", None, 9.8)])).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(study.configs[module.TASK])
    assert np.allclose([line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"], 9.8)
