"""Memory of homes from pictures: with and without attention to earlier episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.evaluate import trained_policy
from memenvs.agents.experiments.report import in_context_figure
from memenvs.agents.experiments.statistics import format_percent, format_runs, mean_and_margin
from memenvs.agents.memory.relic import RelicMemory
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.pretrained import pretrained_config
from memenvs.agents.study import Played, Rows, Study, Table, changed, play_milestone, play_trials

#: The last episode that every trial has, and those that the tables call late.
LAST, LATE = 15, slice(9, 15)
MILESTONES = (1_507_328, 3_014_656, 4_521_984)
#: Line of the table -> method and evaluation.
LINES = {
    "learned from pictures": ("pictures", "evaluation"),
    "the same agents without attention to earlier episodes": ("pictures", "forgetful"),
    "learned from pictures without that attention": ("no-iea", "evaluation"),
    "learned and plays from exact observations": ("exact", "evaluation"),
    "learned from exact observations, plays from pictures": ("exact", "copied"),
    "the same without attention to earlier episodes": ("exact", "copied_forgetful"),
    "learned from pictures of 128 x 128, large encoder": ("large", "evaluation"),
}

_EXACT, _PICTURES = find_preset("extobjnav-small"), pretrained_config("extobjnav-small-pictures")
_METHODS = {
    "pictures": replace(_PICTURES, eval_trials=2048),
    "no-iea": changed(_PICTURES, {"eval_trials": 2048, "policy.memory_kwargs.inter_episode": False}),
    "exact": replace(_EXACT, eval_trials=256),
    # half an hour of one core, a twentieth of the steps of the others
    "large": changed(
        _EXACT,
        {
            "total_steps": 9 * 64 * 512,
            "checkpoint_rollouts": 1,
            "eval_trials": 128,
            "env_kwargs.obs_mode": "rgb",
            "env_kwargs.image_size": [128, 128],
            "env_kwargs.encoder": "cnn",
            "policy.features_extractor_kwargs.widths": {"goal": 32, "gps": 32, "visual": 128},
            "policy.features_extractor_kwargs.rectified": ["visual"],
        },
    ),
}


def play(played: Played, **changes: Any) -> dict[str, Any]:
    """Success and SPL by episode; each seed has trials of its own."""
    return play_trials(played, "success", "spl", seed=1 + played.config.seed, **changes)


def play_earlier(steps: int) -> Callable[[Played], dict[str, Any] | None]:
    """Evaluation of the run as it was after some steps of training."""
    return lambda played: play_milestone(played, steps, "success", "spl", seed=1 + played.config.seed, eval_trials=256)


def play_forgetful(played: Played, **changes: Any) -> dict[str, Any] | None:
    """Success and SPL of the same weights without attention to earlier episodes."""
    if played.run is None or played.method not in ("pictures", "exact"):
        return None
    policy: Any = trained_policy(played.run, 1 + played.config.seed)
    memory = policy.memory
    assert isinstance(memory, RelicMemory)
    memory.config = replace(memory.config, inter_episode=False)
    return play(played, policy=policy, **changes)


def play_copied(played: Played, *, forgetful: bool = False) -> dict[str, Any] | None:
    """Success and SPL from pictures of an agent that has learned from exact observations."""
    if played.method != "exact":
        return None
    seen = {name: _PICTURES.env_kwargs[name] for name in ("obs_mode", "image_size", "encoder")}
    how = play_forgetful if forgetful else play
    return how(played, eval_kwargs={**played.config.eval_kwargs, **seen})


def make_tables(rows: Rows) -> list[Table]:
    """Success and SPL in the first and in late episodes, seed by seed and their mean."""
    lines = []
    for name, (method, evaluation) in LINES.items():
        trials = [result["agent"]["trials"] for result in rows.results("homes", method, evaluation)]
        success, spl = (rows.means("homes", method, metric, evaluation) for metric in ("success", "spl"))
        runs = [[seed] for seed in range(len(trials))] + ([list(range(len(trials)))] if len(trials) > 1 else [])
        for seeds in runs:
            first, late = success[seeds, 0], success[seeds, LATE].mean(1)
            percents = map(format_percent, (first, late, late - first))
            paths = (format_runs(part, ".3f", ".3f") for part in (spl[seeds, 0], spl[seeds, LATE].mean(1)))
            seed = seeds[0] if len(seeds) == 1 else "all"
            lines.append([name, seed, sum(trials[k] for k in seeds), *percents, *paths])
    header = ["agent", "seed", "trials", "success in episode 1, %", "in 10 to 15, %", "gain, points", "SPL in 1"]
    return [Table("First and late episodes in homes that were not trained", [*header, "in 10 to 15"], lines)]


def draw(rows: Rows) -> Figure | None:
    """Success by episode of the trial."""
    curves = {}
    for name, method, evaluation in (
        ("pictures", "pictures", "evaluation"),
        ("the same agent, no earlier episodes", "pictures", "forgetful"),
        ("exact observations", "exact", "evaluation"),
        ("large pictures, few steps", "large", "evaluation"),
    ):
        success = rows.means("homes", method, "success", evaluation)
        if not len(success):
            return None
        mean, margin = mean_and_margin(100 * success[:, :LAST])
        curves[name] = {"mean": mean.tolist(), "margin": margin.tolist()}
    return in_context_figure(curves, "success, %")


def shorten(config: RunConfig) -> RunConfig:
    """A few short trials in four homes."""
    small = {"n_envs": 4, "eval_envs": 4, "total_steps": 256, "eval_steps": 130, "eval_trials": 4}
    short = {"max_episode_steps": 8}
    learner = replace(config.learner, n_steps=64)
    return replace(config, learner=learner, eval_kwargs={**config.eval_kwargs, **short}, **small)


STUDY = Study(
    title="Remembering homes from pictures",
    configs={"homes": _METHODS},
    evaluations={
        "evaluation": play,
        "forgetful": lambda played: play_forgetful(played, eval_trials=256) if played.method == "pictures" else None,
        "copied": play_copied,
        "copied_forgetful": lambda played: play_copied(played, forgetful=True),
        **{f"checkpoint_{steps}": play_earlier(steps) for steps in MILESTONES},
    },
    tables=make_tables,
    figures={"ext_objnav_pictures": draw},
    smoke=shorten,
)
