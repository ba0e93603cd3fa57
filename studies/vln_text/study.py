"""R2R's texts on the real graphs: MTVM with more or less memory, or other losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_mean, format_percent, mean_and_margin
from memenvs.agents.papers.mtvm.policy import MTVMPolicy
from memenvs.agents.study import Played, Rows, Study, Table, changed, find_studies, grid, load_study, play_trials

TASK = "r2r"
UPDATES = 700
LONGEST = 6
"""Moves of the longest path: a bank of this size forgets nothing that the teacher did."""
TASKS_STUDY = load_study(find_studies()["vln_tasks"])
BASE = changed(TASKS_STUDY.configs["r2r"]["mtvm"], {"total_steps": UPDATES, "imitation.imitation_updates": UPDATES})
RANDOM = "random-bank"
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
    RANDOM: {"imitation.random_bank": LONGEST},
}
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
    RANDOM: "all actions, trained with random sizes",
}
#: Column -> metric; the navigation error (NE) is in metres, the others are shares.
COLUMNS = {"success %": "sr", "SPL %": "spl", "nDTW %": "ndtw", "NE, m": "ne"}
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
    (RANDOM, "all"),
)
#: Actions in the bank -> name of this memory, and the network that was trained with it alone.
BANKS = {"0": ("nothing", "none"), "1": ("last action", "last1"), "3": ("last 3 actions", "last3")}


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


def scores_by_seed(rows: Rows, method: str, metric: str) -> dict[int, float]:
    """Seed -> score of a method."""
    return {
        row["seed"]: row["evaluations"]["evaluation"]["agent"]["metrics"][metric]["mean"][0]
        for row in rows.of(TASK, method)
    }


def scores_of(rows: Rows, method: str, metric: str) -> np.ndarray:
    """Scores, float64, (seeds,)."""
    return np.array(list(scores_by_seed(rows, method, metric).values()), np.float64)


def scores_of_bank(rows: Rows, size: str, metric: str) -> np.ndarray:
    """Scores of the network with random sizes, played with one; float64, (seeds,)."""
    results = rows.results(TASK, RANDOM, "banks")
    return np.array([result[size]["agent"]["metrics"][metric]["mean"][0] for result in results], np.float64)


def differences(rows: Rows, first: str, second: str, metric: str) -> np.ndarray:
    """First score less the second, of the seeds that both have; float64, (seeds,)."""
    ahead, behind = (scores_by_seed(rows, method, metric) for method in (first, second))
    return np.array([ahead[seed] - behind[seed] for seed in ahead if seed in behind], np.float64)


def make_tables(rows: Rows) -> list[Table]:
    """Scores of each agent; differences by seed; one network with several sizes."""
    lines = []
    for method, name in AGENTS.items():
        scores = {metric: scores_of(rows, method, metric) for metric in COLUMNS.values()}
        if len(scores["sr"]):
            cells = [(format_mean if metric == "ne" else format_percent)(s) for metric, s in scores.items()]
            lines.append([name, len(scores["sr"]), *cells])
    agents = Table("Unseen houses", ["remembers", "seeds", *COLUMNS], lines)
    lines = []
    for first, second in PAIRS:
        points = [differences(rows, first, second, metric) for metric in ("sr", "spl")]
        if len(points[0]):
            lines.append([AGENTS[first], AGENTS[second], len(points[0]), *map(format_percent, points)])
    header = ["remembers", "less", "seeds", "success, points", "SPL, points"]
    pairs = Table("Differences, seed by seed", header, lines)
    lines = []
    if rows.results(TASK, RANDOM, "banks"):
        for size, (name, method) in BANKS.items():
            lines.append([name, scores_of_bank(rows, size, "sr"), scores_of(rows, method, "sr")])
        lines.append(["all actions", scores_of(rows, RANDOM, "sr"), scores_of(rows, "all", "sr")])
    lines = [[name, *(format_percent(s) if len(s) else "-" for s in scores)] for name, *scores in lines]
    header = ["plays with", "one network, trained with random sizes: success %", "trained with this size: success %"]
    banks = Table("One network for all sizes of the bank", header, lines)
    return [table for table in (agents, pairs, banks) if table.lines]


def draw(rows: Rows) -> Figure | None:
    """Success by the number of remembered actions; None where a run is missing."""
    sizes = [name for name, _ in BANKS.values()] + ["all actions"]
    views = {0: "none", 2: "last3-observations", 3: "observations"}
    alone = dict(enumerate([method for _, method in BANKS.values()] + ["all"]))
    lines = {
        "actions, a network for each": {at: scores_of(rows, method, "sr") for at, method in alone.items()},
        "views, a network for each": {at: scores_of(rows, method, "sr") for at, method in views.items()},
        "actions, one network for all": {at: scores_of_bank(rows, size, "sr") for at, size in enumerate(BANKS)}
        | {3: scores_of(rows, RANDOM, "sr")},
    }
    if not all(len(scores) for line in lines.values() for scores in line.values()):
        return None
    figure = Figure(figsize=(8, 4.4), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    for k, (name, line) in enumerate(lines.items()):
        mean, margin = zip(*(mean_and_margin(100 * scores) for scores in line.values()), strict=True)
        at = np.array(list(line)) + 0.05 * (k - 1)  # beside each other
        style = {"color": COLOURS[k], "marker": "osD"[k], "markersize": 9, "capsize": 4, "linewidth": 2.5}
        axes.errorbar(at, mean, margin, label=name, **style)
    axes.set_xticks(range(len(sizes)), [name.replace("actions", "").strip() for name in sizes])
    axes.set_ylim(0)
    axes.set_xlabel("what the agent remembers of its actions", fontsize=14)
    axes.set_ylabel("success, %", fontsize=14)
    axes.tick_params(labelsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=12, loc="lower right")
    return figure


def shorten(config: RunConfig) -> RunConfig:
    """Shorten a run to seconds; its second update has both losses."""
    return changed(TASKS_STUDY.smoke(config), {"imitation.imitation_updates": 1})


STUDY = Study(
    title="MTVM's memory and losses on R2R's texts and graphs",
    configs=grid({TASK: BASE}, METHODS),
    evaluations={"evaluation": play_trials, "banks": play_banks},
    tables=make_tables,
    figures={"vln_text": draw},
    smoke=shorten,
)
