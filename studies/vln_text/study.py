"""R2R's texts on the real graphs: MTVM with more or less memory, or other losses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_percent, mean_and_margin
from memenvs.agents.papers.mtvm.policy import MTVMPolicy
from memenvs.agents.study import (
    EVALUATION,
    Played,
    Rows,
    Study,
    Table,
    changed,
    find_studies,
    grid,
    load_study,
    play_trials,
)

R2R, R4R = "r2r", "r4r"
TASKS = {R2R: "R2R", R4R: "R4R"}
UPDATES = 700
LONGEST = 6
"""Moves of R2R's longest path: a bank of this size forgets nothing that the teacher did."""
TASKS_STUDY = load_study(find_studies()["vln_tasks"])
BASE = changed(
    TASKS_STUDY.configs["r2r"]["mtvm"],
    # positions for two texts, so that its weights can begin a run with two paths
    {"total_steps": UPDATES, "imitation.imitation_updates": UPDATES, "policy.network.text_positions": 160},
)
#: Changes of R4R, of which as many episodes are played as R2R has.
LONGER: dict[str, Any] = {
    "env_kwargs.legs": 2,
    "env_kwargs.max_tokens": 160,
    "eval_steps": 30,
    "eval_all_layouts": False,
    "total_steps": UPDATES // 2,
    "imitation.imitation_updates": UPDATES // 2,
}
RANDOM = "random-bank"
THREE = "three_paths"
#: Method -> changes of `BASE`.
METHODS: dict[str, dict[str, Any]] = {
    "all": {},
    "last3": {"policy.network.bank": 3},
    "last1": {"policy.network.bank": 1},
    "none": {"policy.network.bank": 0},
    "observations": {"policy.network.history": "observation"},
    "last3-observations": {"policy.network.bank": 3, "policy.network.history": "observation"},
    "recurrent": {"policy.network.history": "state"},
    "no-language": {"policy.network.language": False},
    # as strong, compared with imitation, as in the paper's study (6 and 2 over 0.2)
    "consistency": {"imitation.text_consistency": 30.0, "imitation.cross_consistency": 10.0},
    # the paper adds the actor-critic from the first update on, to a network that PREVALENT has trained
    "a2c": {"imitation.imitation_updates": UPDATES // 2, "imitation.imitation_weight": 0.2},
    # as many episodes as `a2c`, which plays 700 batches with the teacher and 350 with its own actions
    "longer": {"total_steps": UPDATES * 3 // 2, "imitation.imitation_updates": UPDATES * 3 // 2},
    RANDOM: {"imitation.random_bank": LONGEST},
}
#: Methods of R4R, each of which begins with its own weights of R2R.
LONG_METHODS = ("all", "last3", "none", "observations", "last3-observations", RANDOM)
#: Method -> agent, in the order of the tables.
AGENTS = {
    "all": "all actions (MTVM)",
    "last3": "last 3 actions",
    "last1": "last action",
    "none": "nothing",
    "observations": "all views",
    "last3-observations": "last 3 views",
    "recurrent": "one recurrent state",
    "no-language": "all actions, does not read",
    "consistency": "all actions, with the consistency loss",
    "a2c": "all actions, imitation and A2C",
    "longer": "all actions, 1.5 times the updates",
    RANDOM: "all actions, trained with random sizes",
}
#: Column -> metric; success needs the places where the paths of R4R meet, and SDTW weighs it by nDTW.
COLUMNS = {"success %": "sr", "SDTW %": "sdtw", "nDTW %": "ndtw"}
#: Pairs of methods that are compared seed by seed.
PAIRS = (
    ("all", "last3"),
    ("all", "last1"),
    ("all", "none"),
    ("observations", "last3-observations"),
    ("all", "observations"),
    ("all", "recurrent"),
    ("all", "no-language"),
    ("consistency", "all"),
    ("a2c", "all"),
    ("longer", "all"),
    ("a2c", "longer"),
    (RANDOM, "all"),
)
#: Actions in the bank -> name of this memory, and the network that was trained with it alone.
BANKS = {"0": ("nothing", "none"), "1": ("last action", "last1"), "3": ("last 3 actions", "last3")}


def make_configs() -> dict[str, dict[str, RunConfig]]:
    """Settings of each method in both tasks."""
    configs = grid({R2R: BASE}, METHODS)
    configs[R4R] = {
        method: replace(changed(configs[R2R][method], LONGER), encoder_from=f"{R2R}-{method}-{{seed}}")
        for method in LONG_METHODS
    }
    configs[R4R][RANDOM] = changed(configs[R4R][RANDOM], {"imitation.random_bank": 2 * LONGEST})
    return configs


CONFIGS = make_configs()


def play_banks(played: Played) -> dict[str, Any] | None:
    """Scores of the network with random sizes in training, by the size it plays with."""
    from memenvs.agents.experiments.evaluate import trained_policy  # torch takes seconds

    if played.method != RANDOM or played.run is None:
        return None
    policy = trained_policy(played.run, 1)
    assert isinstance(policy, MTVMPolicy)
    scores = {}
    for size in BANKS:
        policy.network.bank.size = int(size)
        scores[size] = play_trials(played, policy=policy)
    return scores


def play_three_paths(played: Played) -> dict[str, Any] | None:
    """Scores in episodes of three paths, of agents that learned from two."""
    if played.task != R4R:
        return None
    return play_trials(played, eval_kwargs={**played.config.eval_kwargs, "legs": 3}, eval_steps=45)


def scores_of(rows: Rows, task: str, method: str, metric: str, evaluation: str = EVALUATION) -> np.ndarray:
    """Scores, float64, (seeds,)."""
    return rows.means(task, method, metric, evaluation).reshape(-1)


def scores_of_bank(rows: Rows, task: str, size: str, metric: str) -> np.ndarray:
    """Scores of the network with random sizes, played with one; float64, (seeds,)."""
    results = rows.results(task, RANDOM, "banks")
    return np.array([result[size]["agent"]["metrics"][metric]["mean"][0] for result in results], np.float64)


def differences(rows: Rows, task: str, first: str, second: str, metric: str) -> np.ndarray:
    """First score less the second, of the seeds that both have; float64, (seeds,)."""
    ahead, behind = (
        dict(zip([row["seed"] for row in rows.of(task, name)], scores_of(rows, task, name, metric), strict=True))
        for name in (first, second)
    )
    return np.array([ahead[seed] - behind[seed] for seed in ahead if seed in behind], np.float64)


def cells(samples: list[np.ndarray]) -> list[str]:
    """Shares in %, "-" where there are none."""
    return [format_percent(sample) if len(sample) else "-" for sample in samples]


def make_tables(rows: Rows) -> list[Table]:
    """Scores of each agent; differences by seed; one network with several sizes; three paths."""
    columns = [(task, metric) for task in TASKS for metric in COLUMNS.values()]
    lines = []
    for method, name in AGENTS.items():
        scores = [scores_of(rows, task, method, metric) for task, metric in columns]
        if any(map(len, scores)):
            lines.append([name, *cells(scores)])
    header = ["remembers", *(f"{column}, {task}" for task in TASKS.values() for column in COLUMNS)]
    agents = Table("Unseen houses", header, lines)
    columns = [(task, metric) for task in TASKS for metric in ("sr", "sdtw")]
    lines = []
    for first, second in PAIRS:
        points = [differences(rows, task, first, second, metric) for task, metric in columns]
        if any(map(len, points)):
            lines.append([AGENTS[first], AGENTS[second], *cells(points)])
    header = ["remembers", "less", *(f"{score}, {task}" for task in TASKS.values() for score in ("success", "SDTW"))]
    pairs = Table("Differences in points, seed by seed", header, lines)
    lines = []
    if rows.results(R2R, RANDOM, "banks"):
        for size, (name, method) in BANKS.items():
            both = [(scores_of_bank(rows, task, size, "sdtw"), scores_of(rows, task, method, "sdtw")) for task in TASKS]
            lines.append([name, *cells([scores for pair in both for scores in pair])])
        both = [(scores_of(rows, task, RANDOM, "sdtw"), scores_of(rows, task, "all", "sdtw")) for task in TASKS]
        lines.append(["all actions", *cells([scores for pair in both for scores in pair])])
    ways = ("one network for all sizes", "a network for each")
    header = ["plays with", *(f"{way}: SDTW %, {task}" for task in TASKS.values() for way in ways)]
    banks = Table("One network for all sizes of the bank", header, lines)
    lines = []
    for method in LONG_METHODS:
        scores = [scores_of(rows, R4R, method, metric, THREE) for metric in COLUMNS.values()]
        if any(map(len, scores)):
            lines.append([AGENTS[method], *cells(scores)])
    three = Table("Three paths, of agents that learned from two", ["remembers", *COLUMNS], lines)
    return [table for table in (agents, pairs, banks, three) if table.lines]


def draw(rows: Rows) -> Figure | None:
    """SDTW by the number of remembered actions, in R2R and R4R; None where a run is missing."""
    sizes = [name for name, _ in BANKS.values()] + ["all actions"]
    actions = dict(enumerate([method for _, method in BANKS.values()] + ["all"]))
    views = {0: "none", 2: "last3-observations", 3: "observations"}
    figure = Figure(figsize=(8, 4.4), dpi=100, layout="constrained")
    for axes, (task, title) in zip(figure.subplots(1, len(TASKS)), TASKS.items(), strict=True):
        own = {
            f"{what}, a network for each": {
                at: scores_of(rows, task, method, "sdtw") for at, method in methods.items() if method in CONFIGS[task]
            }
            for what, methods in (("actions", actions), ("views", views))
        }
        shared = {at: scores_of_bank(rows, task, size, "sdtw") for at, size in enumerate(BANKS)}
        lines = own | {"actions, one network for all": shared | {3: scores_of(rows, task, RANDOM, "sdtw")}}
        if not all(len(scores) for line in lines.values() for scores in line.values()):
            return None
        for k, (name, line) in enumerate(lines.items()):
            mean, margin = zip(*(mean_and_margin(100 * scores) for scores in line.values()), strict=True)
            at = np.array(list(line)) + 0.05 * (k - 1)  # next to each other
            style = {"color": COLOURS[k], "marker": "osD"[k], "markersize": 8, "capsize": 4, "linewidth": 2.5}
            axes.errorbar(at, mean, margin, label=name, **style)
        axes.set_title(title, fontsize=14)
        axes.set_xticks(range(len(sizes)), [name.replace("actions", "").strip() for name in sizes], rotation=20)
        axes.set_ylim(0)
        axes.tick_params(labelsize=12)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.axes[0].set_ylabel("SDTW, %", fontsize=14)
    figure.axes[0].legend(frameon=False, fontsize=11, loc="lower right")
    figure.supxlabel("what the agent remembers", fontsize=14)
    return figure


def shorten(config: RunConfig) -> RunConfig:
    """Shorten a run to seconds; its second update has both losses."""
    return changed(TASKS_STUDY.smoke(config), {"imitation.imitation_updates": 1})


STUDY = Study(
    title="MTVM's memory and losses on the texts and graphs of R2R and R4R",
    configs=CONFIGS,
    evaluations={EVALUATION: play_trials, "banks": play_banks, THREE: play_three_paths},
    tables=make_tables,
    figures={"vln_text": draw},
    smoke=shorten,
)
