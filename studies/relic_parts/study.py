"""ReLIC's parts in Darkroom-Gap: sinks, shuffle, updates of a rollout, scale of advantages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.statistics import format_mean, mean_and_margin
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Played, Rows, Study, Table, changed, grid, play_milestone, play_trials

TASK = "darkroom-gap"
STEPS = 25 + 20  # of an episode of the Darkroom, with its gap
EPISODES = 10  # of a trial and of a rollout, so that each K of the first group has segments of whole episodes
ENVS = 64
ROLLOUTS = 12
#: Rollouts after which a run is kept and played later.
EARLIER = (4, 8)
LEARNING_RATE = 3e-3  # chosen for ReLIC in this task by `studies/matrix`, with K = 5
#: Group -> method -> what differs from `k5`, the first.
GROUPS: dict[str, dict[str, dict[str, Any]]] = {
    "updates of a rollout": {
        "k5": {},
        "k1": {"ppo.n_updates": 1},
        # as many optimizer steps as k5
        "k1 small batches": {"ppo.n_updates": 1, "ppo.n_epochs": 5, "ppo.batch_size": 4},
        "k2": {"ppo.n_updates": 2},
        "k10": {"ppo.n_updates": 10},
    },
    "segments that cut episodes": {"k9": {"ppo.n_updates": 9}},
    "sink": {
        f"sink {sink}": {"policy.memory_kwargs.sink": sink} for sink in ("none", "token", "kv0", "k0v", "kv")
    },
    "order of episodes": {"no shuffle": {"ppo.shuffle_episodes": False}},
    "advantages": {
        "k5 by rollout": {"ppo.normalize_advantage": "rollout"},
        "k10 by rollout": {"ppo.normalize_advantage": "rollout", "ppo.n_updates": 10},
    },
}  # fmt: skip
SCRIPTED = ("memoryless", "oracle")


def make_base() -> RunConfig:
    """Settings of `k5`: the task of `studies/matrix`, with trials and rollouts of ten episodes."""
    demo = find_preset("demo-gap")
    config = changed(
        demo,
        {
            "policy.memory_kwargs": {"sink": "k0v0"},
            "policy.size": 100_000,
            "ppo.n_steps": EPISODES * STEPS,
            "ppo.n_updates": 5,
            "ppo.learning_rate": LEARNING_RATE,
            "ppo.final_learning_rate": LEARNING_RATE / 10,
        },
    )
    return replace(
        config,
        device="cpu",
        n_envs=ENVS,
        env_kwargs={**demo.env_kwargs, "max_episode_steps": STEPS, "gap": 20},
        total_steps=steps_after(ROLLOUTS),
        milestones=len(EARLIER),
        eval_steps=EPISODES * STEPS,
    )


def steps_after(rollouts: int) -> int:
    """Environment steps of some rollouts."""
    return rollouts * ENVS * EPISODES * STEPS


def optimizer_steps(config: RunConfig) -> int:
    """Steps of the optimizer in a run."""
    ppo = config.learner
    return ROLLOUTS * ppo.n_updates * ppo.n_epochs * (config.n_envs // ppo.batch_size)


def play_after(rollouts: int) -> Callable[[Played], dict[str, Any] | None]:
    """Evaluation of a run as it was after some rollouts."""
    return lambda played: play_milestone(played, steps_after(rollouts), "return")


def make_tables(rows: Rows) -> list[Table]:
    """Return in episode 10 after parts of training, and in episode 1 at the end."""
    lines = []
    for method in (*STUDY.configs[TASK], *SCRIPTED):
        returns = [rows.means(TASK, method, "return", name) for name in STUDY.evaluations]
        if not len(returns[-1]):
            continue
        steps = "-" if method in SCRIPTED else f"{optimizer_steps(STUDY.configs[TASK][method]):,}"
        episodes = [*(values[:, -1] if len(values) else values for values in returns), returns[-1][:, 0]]
        lines.append([method, steps, *(format_mean(values) or "-" for values in episodes)])
    parts = [f"after {rollouts} rollouts" for rollouts in (*EARLIER, ROLLOUTS)]
    return [Table("", ["method", "optimizer steps", *parts, "its episode 1"], lines)]


def draw(rows: Rows) -> Figure | None:
    """Return in episode 10: 95 % intervals and seeds; grey: of `k5`; dashed: `memoryless`."""
    returns = {method: rows.means(TASK, method, "return") for methods in GROUPS.values() for method in methods}
    memoryless = rows.means(TASK, "memoryless", "return")
    if not len(memoryless) or not all(map(len, returns.values())):
        return None
    figure = Figure(figsize=(5, 5.2), layout="constrained")
    axes = figure.subplots()
    mean, margin = mean_and_margin(returns["k5"][:, -1])
    axes.axvspan(mean - margin, mean + margin, color="0.9", zorder=0)
    for line, (method, values) in enumerate(returns.items()):
        group = next(number for number, methods in enumerate(GROUPS.values()) if method in methods)
        mean, margin = mean_and_margin(values[:, -1])
        axes.errorbar(mean, line, xerr=margin, fmt="o", color=f"C{group}", capsize=3)
        axes.plot(values[:, -1], [line] * len(values), "|", color="k", markersize=8)
    axes.set_yticks(range(len(returns)), list(returns))
    axes.invert_yaxis()
    axes.set(xlabel="return in episode 10", xlim=(0, 25))
    axes.axvline(memoryless[0, -1], color="0.5", linestyle="--", zorder=0)
    return figure


STUDY = Study(
    title="ReLIC's parts in Darkroom-Gap",
    configs=grid({TASK: make_base()}, {name: own for methods in GROUPS.values() for name, own in methods.items()}),
    scripted=SCRIPTED,
    evaluations={
        **{f"rollouts_{rollouts}": play_after(rollouts) for rollouts in EARLIER},
        "evaluation": lambda played: play_trials(played, "return"),
    },
    tables=make_tables,
    figures={"relic_parts": draw},
)
