"""MTVM's ablation in procedural houses: what it is worth to remember moves, in tours of one, two and three legs, and what the text is worth.

Trains the laptop's MTVM with all of its moves in memory, with the last three or none, and without language, each with several seeds; each learns one
leg, then, from its own weights, two, then three. What it remembers of a move was made while looking at older ones, so that the last three tell of
those too; agents that remember only what the option taken looked like have a memory that ends. Prints and draws success rate (SR) and success
weighted by the likeness of the path (SDTW) on the unseen houses, mean and standard error over seeds; for three legs also by what memory has to
tell, with the likeness of the path alone (nDTW), which does not fall to 0 where hardly anyone arrives, and how often the one decision that memory
has to tell is right where the teacher has walked up to it (TURN), in which no other mistake counts.
Success in a tour asks for the end of each leg, in order. One leg is a shortest path and can be walked without a memory; of two the camera tells
nearly always whence one has come; in three there is a place and view that comes twice and asks for different moves, in half of the ways also with
the last three moves. A stopped command goes on where it was.

    python examples/vln_memory.py [--legs 1 2 3] [--agents all last3 observations last3-observations recurrent none deaf consistency] [--seeds 0 1 2]
        [--jobs 2] [--out runs/vln_memory] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.evaluate import evaluate_run, evaluation_env
from memenvs.agents.experiments.report import Report, add_table, figure_png
from memenvs.agents.experiments.study_results import metric_means, read_result, write_result
from memenvs.agents.experiments.sweep import SweepRun, over_seeds, percent, run_sweep, sweep_options
from memenvs.agents.experiments.train import train_run
from memenvs.agents.experiments.trial_evaluator import TrialResults
from memenvs.agents.mtvm.imitation import ImitationA2C
from memenvs.agents.presets import find_preset
from memenvs.vln.worlds.procedural.world import Tours, load_tours

#: Legs -> variant of an agent that remembers all of its moves.
LEGS = {1: "", 2: "tours2", 3: "tours3"}
#: Agent -> what is added to the variant's name, and what it is.
AGENTS = {
    "all": ("", "remembers all moves"),
    "last3": ("-last3", "remembers the last 3 moves"),
    "observations": ("-observations", "remembers what options looked like at all moves"),
    "last3-observations": ("-last3-observations", "remembers what options looked like at the last 3 moves"),
    "last1": ("-last1", "remembers the last move"),
    "none": ("-no-memory", "remembers nothing"),
    "recurrent": ("-recurrent", "one recurrent state"),
    "deaf": ("-no-language", "remembers all moves, does not read the text"),
    "consistency": ("-consistency", "remembers all moves, with the consistency loss"),
}
#: Those of the table.
TABLE = ["all", "last3", "observations", "last3-observations", "recurrent", "none", "deaf", "consistency"]
METRICS = ("sr", "sdtw")
#: Ways of three legs by how many moves are made again, one after the other, before something else follows -> heading.
AGAIN = {"few": "1 to 3 moves again", "many": "4 or more"}
AGAIN_METRICS = ("turn", "sr", "sdtw", "ndtw")


def preset_of(legs: int, agent: str) -> str:
    """Name of a preset, such as "vln-laptop:tours2-last3"."""
    variant = f"{LEGS[legs]}{AGENTS[agent][0]}".lstrip("-")
    return f"vln-laptop:{variant}" if variant else "vln-laptop"


def folder_of(out: Path, legs: int, agent: str, seed: int) -> Path:
    """Where a run is."""
    return out / f"{agent}-{legs}-{seed}"


def settings(out: Path, legs: int, agent: str, seed: int, smoke: bool) -> RunConfig:
    """The preset with a seed, beginning with the run of one leg less if there are several; for seconds only if it is a smoke test."""
    config = replace(find_preset(preset_of(legs, agent)), seed=seed)
    if config.encoder_from is not None:
        config = replace(config, encoder_from=str(folder_of(out, legs - 1, agent, seed)))
    if not smoke:
        return config
    return with_overrides(config, [("n_envs", 2), ("total_steps", 2), ("eval_trials", 4), ("policy.network.dim", 16)])


def train_and_evaluate(run: RunDirectory, quiet: bool) -> None:
    """One run, to its end and with its evaluation."""
    train_run(run, quiet=quiet)
    played = evaluate_run(run, quiet=quiet)
    results = {"agent": played.to_json()}
    if run.config.env_kwargs["legs"] == 3:
        results["again"] = by_moves_again(run, played)
    write_result(run.path, "evaluation", results)


def by_moves_again(run: RunDirectory, played: TrialResults) -> dict[str, dict[str, float]]:
    """Means over the ways of three legs whose third makes few moves again, and many."""
    world = load_tours(run.config.eval_kwargs["split"], 3)
    numbers = played.layouts.tolist()
    is_few = np.array([world.moves_again(number)[0] <= 3 for number in numbers])
    found = {metric: played.metrics[metric][:, 0] for metric in ("sr", "sdtw", "ndtw")}
    found["turn"] = turns_right(run, world)[numbers]
    return {
        kind: {metric: float(found[metric][chosen].mean()) for metric in AGAIN_METRICS}
        for kind, chosen in zip(AGAIN, (is_few, ~is_few), strict=True)
    }


def turns_right(run: RunDirectory, world: Tours) -> np.ndarray:
    """Whether an agent that the teacher has taken along would turn as told where the moves that are made again end; bool, (episodes,)."""
    count = world.num_episodes // len(world.houses)
    env = evaluation_env(run.config, count, seed=1)
    model = ImitationA2C.load(run.agent(), env, run.config.device)
    model.policy.set_training_mode(False)
    found = np.zeros(world.num_episodes, bool)
    for house in range(len(world.houses)):
        numbers = range(house * count, (house + 1) * count)
        with torch.no_grad():
            steps = model.play(env, 0, teacher_forcing=True, episodes=numbers).steps
        agreed = [dict(zip(step.rows.tolist(), step.teacher_agreement.tolist(), strict=True)) for step in steps]
        found[numbers] = [agreed[world.moves_again(number)[1]][row] > 0 for row, number in enumerate(numbers)]
    env.close()
    return found


def values(folders: list[Path], metric: str) -> np.ndarray:
    """A metric of each run, float64, (seeds,)."""
    return metric_means(folders, metric)[:, 0]


def again(folders: list[Path], kind: str, metric: str) -> np.ndarray:
    """A metric of each run in the ways of three legs of one kind, float64, (seeds,)."""
    return np.array([read_result(folder, "evaluation")["again"][kind][metric] for folder in folders])


def write_results(out: Path, runs: dict[tuple[str, int], list[Path]]) -> Path:
    """The table and a picture for each metric: `report.html`; prints the table."""
    report = Report("MTVM in procedural houses", out)
    agents = list(dict.fromkeys(agent for agent, _ in runs))
    legs = sorted({count for _, count in runs})
    header = ["agent", *(f"{metric.upper()} %, {count} leg{'s' * (count > 1)}" for metric in METRICS for count in legs)]
    rows = []
    for agent in agents:
        cells = [(runs.get((agent, count)), metric) for metric in METRICS for count in legs]
        rows.append([AGENTS[agent][1], *(percent(values(found, metric)) if found else "-" for found, metric in cells)])
    report.table(header, rows)
    print("| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    figure = Figure(figsize=(10, 5), dpi=120, layout="constrained")
    for axes, metric in zip(figure.subplots(1, len(METRICS), sharey=True), METRICS, strict=True):
        for agent in agents:
            trained = [count for count in legs if (agent, count) in runs]
            found = [over_seeds(100 * values(runs[agent, count], metric)) for count in trained]
            means, errors = zip(*found, strict=True)
            axes.errorbar(trained, means, errors, marker="o", capsize=3, label=AGENTS[agent][1])
        axes.set_xticks(legs)
        axes.set_xlabel("legs of the tour")
        axes.set_ylabel(f"{metric.upper()} on unseen houses, %")
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize="small"
    )
    report.picture("memory", figure_png(figure), "mean and standard error over seeds")
    if 3 in legs:
        header = ["agent", *(f"{metric.upper()} %, {what}" for what in AGAIN.values() for metric in AGAIN_METRICS)]
        rows = [
            [AGENTS[agent][1], *(percent(again(found, kind, metric)) for kind in AGAIN for metric in AGAIN_METRICS)]
            for agent in agents
            if (found := runs.get((agent, 3)))
        ]
        add_table(report, "Three legs, by what the third does again", header, rows)
    return report.write(out / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--legs", type=int, nargs="+", default=list(LEGS), choices=list(LEGS))
    parser.add_argument("--agents", nargs="+", default=TABLE, choices=list(AGENTS))
    options = sweep_options(parser, "runs/vln_memory")
    if options.smoke:
        options.agents = options.agents[:1]
    wanted = {
        folder_of(options.out, legs, agent, seed): (legs, agent, seed)
        for seed in options.seeds  # a whole table of the first seed, then of the next
        for last, agent in itertools.product(sorted(options.legs), options.agents)
        for legs in ([last] if options.show else range(1, last + 1))  # first what it begins with
    }
    sweep = {
        folder: SweepRun(settings(options.out, *each, options.smoke), train_and_evaluate, ("evaluation",))
        for folder, each in wanted.items()
    }
    runs: dict[tuple[str, int], list[Path]] = {}
    for folder in run_sweep(parser, options, sweep):
        legs, agent, _ = wanted[folder]
        runs.setdefault((agent, legs), []).append(folder)
    print(f"report: {write_results(options.out, runs).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
