"""The Spatially-Aware Transformer's tables in Room Ballet: which strategy solves which task, and whether an allocator finds it.

Every run is a preset (`python -m memenvs.agents presets`); accuracies are those in 12,000 fresh episodes, mean and standard error over seeds, beside those
that an ideal observer has from the same memory. Tables, their runs for one seed, and minutes of one core for a run (measured as
milliseconds of a batch on a busy core times batches, with validation and evaluation):

    strategies  18 runs  3 to 10, 15   each task with each of four strategies, and all tasks with an allocator that chooses (AMA), whose answers are
                                       learned from episodes whose memory can tell, or from all
    next         3 runs  8             what places and moves are worth: t-fifo, t-fifo+a, sat-fifo in Next Ballet
    shortstay   18 runs  3 to 13       reading at once, by chunks of time or of places, in 9, 16 and 25 rooms, with the clock of the dances
                                       (as in the release) and with the number of the step (as in the article)
    language     3 runs  9             AMA told the task in words: accuracy with descriptions never heard before, three splits
    aba          2 runs  3             a quota for each place against one queue for all
    rooms        1 run   6             4 to 12 rooms after learning in 8
    unlimited    2 runs  15, 20        AMA with half of the visits against a memory with room for all
    dnc          3 runs  8, 16, 16     a small DNC against AMA, three steps of a visit, all four tasks: accuracy by batches and by wall-clock
    opposite     1 run   8             attention by room and layer
    parity       1 run   60            Ballet-MVFO from the release's weights and learning rate: accuracy along 40 of its 101 epochs

A stopped command goes on where it was, also in the middle of a run.

    python examples/room_ballet.py [--tables strategies next] [--seeds 0 1 2] [--jobs 2] [--out runs/room_ballet] [--show] [--smoke]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.directory import RunDirectory
from memenvs.agents.experiments.prediction_experiment import evaluate_predictions, trained_model
from memenvs.agents.experiments.report import Report, add_table, figure_png
from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.experiments.study_results import has_results, metric_means, read_result, write_result
from memenvs.agents.experiments.sweep import SweepRun, run_sweep, sweep_options
from memenvs.agents.experiments.train import train_run
from memenvs.agents.presets import find_preset, folder_name
from memenvs.agents.sat.prediction import BalletPrediction
from memenvs.retention import STRATEGIES

ROOMS = (4, 6, 8, 10, 12)
#: Preset -> name in the table.
ALLOCATORS = {"ballet-ama": "AMA", "ballet-ama:all": "AMA, all"}
#: Accuracy in validation from which a task counts as learned.
LEARNED = 0.99
SIZES = (3, 4, 5)
#: Table -> presets of its runs.
TABLES: dict[str, list[str]] = {
    "strategies": [
        *(f"ballet-{task}" + f":{strategy}" * (task != strategy) for task in STRATEGIES for strategy in STRATEGIES),
        "ballet-ama",
        "ballet-ama:all",
    ],
    "next": [f"ballet-next:{memory}" for memory in ("t-fifo", "t-fifo+a", "sat-fifo")],
    "shortstay": [
        f"ballet-shortstay:{size}-{memory}{clock}"
        for clock in ("", "-step")
        for size in SIZES
        for memory in ("sat-fifo", "sat-fifo-th", "sat-pm-ph")
    ],
    "language": ["ballet-ama:language", "ballet-ama:language-split1", "ballet-ama:language-split2"],
    "aba": [f"ballet-aba:{memory}" for memory in ("sat-fifo", "sat-pm")],
    "rooms": ["ballet-mvfo:rooms"],
    "unlimited": ["ballet-ama", "ballet-unlimited"],
    "dnc": ["ballet-ama:small", "ballet-dnc:first-small", "ballet-dnc:every-small"],
    "opposite": ["ballet-opposite"],
    "parity": ["ballet-mvfo:parity"],
}
TITLES = {"aba": "ABA", "shortstay": "Short Stay"}
#: Table -> what its runs write besides their evaluation.
MORE = {
    "strategies": ["curve"],
    "rooms": [f"rooms_{rooms}" for rooms in ROOMS],
    "opposite": ["attention"],
    "unlimited": ["curve"],
    "dnc": ["curve"],
    "parity": ["curve"],
}
SMOKE = ["ballet-fifo", "ballet-fifo:lifo", "ballet-ama"]


def settings(preset: str, seed: int, smoke: bool) -> RunConfig:
    """The preset with a seed; for seconds only if it is a smoke test."""
    config = replace(find_preset(preset), seed=seed)
    if not smoke:
        return config
    small = [("total_steps", 4), ("eval_trials", 40), ("policy.dim", 16), ("policy.layers", 2), ("policy.mlp_dim", 16)]
    if "own_layers" in config.policy:
        small.append(("policy.own_layers", 1))
    return with_overrides(
        config, [*small, ("supervised.batch_size", 4), ("supervised.validation_episodes", 10)]
    )  # fmt: skip


def train_and_evaluate(run: RunDirectory, quiet: bool, table: str) -> None:
    """One run, to its end and with all that a table needs of it."""
    train_run(run, quiet=quiet)
    if not has_results(run.path, "curve"):
        write_result(run.path, "curve", curve(run))
    if not has_results(run.path, "evaluation"):
        evaluate_predictions(run)
    for rooms in ROOMS if table == "rooms" else ():
        if not has_results(run.path, f"rooms_{rooms}"):
            evaluate_predictions(run, trained_model(run, {"rooms": rooms}), name=f"rooms_{rooms}")
    if table == "opposite" and not has_results(run.path, "attention"):
        write_result(run.path, "attention", attention(run))


def files_of(table: str) -> tuple[str, ...]:
    """What a table needs of a run."""
    return ("evaluation", *MORE.get(table, ()))


def curve(run: RunDirectory) -> dict[str, list[float]]:
    """Accuracy in validation along a training, after how many batches and hours it was."""
    metrics = run.metrics()
    batches, accuracy = zip(*metrics["validation/accuracy"], strict=True)
    hours = np.cumsum([seconds for _, seconds in metrics["time/seconds"]]) / 3600
    return {"batches": list(batches), "hours": hours.tolist(), "accuracy": list(accuracy)}


@torch.no_grad()
def attention(run: RunDirectory, episodes: int = 500) -> list[list[list[float]]]:
    """Share of each layer's attention on each room for questions about each room: [layer][room asked about][room attended to]."""
    model = trained_model(run)
    assert isinstance(model, BalletPrediction)
    network, rooms = model.model, model.model.task.rooms
    batch = network.task.sample_batch(episodes, np.random.default_rng(1))
    query, tokens, _ = network.reader_inputs(batch)
    weights = network.reader.attention(query, tokens)[:, :, 0].cpu()  # (layers, B, T)
    steps, _ = network.retained_steps(batch)
    place = torch.from_numpy(np.take_along_axis(batch.place, steps, 1).astype(np.int64))
    by_room = torch.zeros(*weights.shape[:2], rooms).scatter_add(2, place.expand(len(weights), -1, -1), weights)
    asked = torch.from_numpy(batch.query_place.astype(np.int64))
    return [[layer[asked == room].mean(0).tolist() for room in range(rooms)] for layer in by_room]


def values(folders: list[Path], metric: str = "accuracy", who: str = "agent", name: str = "evaluation") -> np.ndarray:
    """A metric of each run, float64, (seeds,)."""
    return metric_means(folders, metric, who, name)


def strategies_table(report: Report, runs: dict[str, list[Path]]) -> None:
    """Tasks by strategies and allocators, in words and drawn, what the allocators have learned, and how soon."""
    allocated = {name: runs[preset] for preset, name in ALLOCATORS.items() if preset in runs}
    tasks = [task for task in STRATEGIES if f"ballet-{task}" in runs]
    cells = {(task, s): runs.get(f"ballet-{task}" + f":{s}" * (task != s), []) for task in tasks for s in STRATEGIES}
    rows, drawn = [], np.full((len(tasks), len(STRATEGIES) + len(allocated)), np.nan)
    for i, task in enumerate(tasks):
        row: list[Any] = [task.upper()]
        for j, strategy in enumerate(STRATEGIES):
            folders = cells[task, strategy]
            drawn[i, j] = values(folders).mean() if folders else np.nan
            row.append(
                f"{format_percent(values(folders))} ({100 * values(folders, who='ideal').mean():.0f})"
                if folders
                else "-"
            )
        for j, folders in enumerate(allocated.values(), len(STRATEGIES)):
            of_task = values(folders, f"accuracy_{task}")
            drawn[i, j] = of_task.mean()
            row.append(format_percent(of_task))
        rows.append(row)
    header = ["task", *(name.upper() for name in STRATEGIES), *allocated]
    counts = sorted({len(folders) for folders in [*cells.values(), *allocated.values()] if folders})
    seeds = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    add_table(report, f"Accuracy in % over seeds ({seeds}), the ideal observer's in brackets", header, rows)
    figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(drawn, vmin=0, vmax=1, cmap="viridis")
    axes.set_xticks(range(len(header) - 1), header[1:])
    axes.set_yticks(range(len(tasks)), [task.upper() for task in tasks])
    for (i, j), value in np.ndenumerate(drawn):
        if np.isfinite(value):
            axes.text(j, i, f"{100 * value:.0f}", ha="center", va="center", color="white" if value < 0.7 else "black")
    report.picture("strategies", figure_png(figure), "right answers in % by task (rows) and strategy")
    for name, folders in allocated.items():
        shares = [
            [task.upper(), *(f"{values(folders, f'q_{task}_{s}').mean():.3f}" for s in STRATEGIES)]
            for task in STRATEGIES
        ]
        add_table(report, f"softmax(Q) of {name}", ["task", *(s.upper() for s in STRATEGIES)], shares)
    rows = []
    for preset in (*(f"ballet-{task}" for task in tasks), *ALLOCATORS):
        learned = [learned_at(folder) for folder in runs.get(preset, [])]
        if learned:
            batches, minutes = map(" / ".join, zip(*learned, strict=True))
            rows.append([preset, len(learned), batches, minutes])
    title = f"First time that {100 * LEARNED:.0f} % were right in validation, each seed"
    add_table(report, title, ["preset", "seeds", "batches", "minutes"], rows)


def learned_at(folder: Path) -> tuple[str, str]:
    """Batches and minutes after which a run was first as good as `LEARNED` in validation, or "never"."""
    points = read_curve(folder)
    for batches, hours, accuracy in zip(points["batches"], points["hours"], points["accuracy"], strict=True):
        if accuracy >= LEARNED:
            return f"{batches:,.0f}", f"{60 * hours:.1f}"
    return "never", "never"


def plain_table(report: Report, title: str, runs: dict[str, list[Path]], more: Sequence[list[Any]] = ()) -> None:
    """Accuracy of each preset, and more rows."""
    rows = [[preset, len(folders), *map(format_percent, _agent_and_ideal(folders))] for preset, folders in runs.items()]
    add_table(report, title, ["preset", "seeds", "accuracy %", "ideal %"], [*rows, *more])


def language_table(report: Report, runs: dict[str, list[Path]]) -> None:
    """Accuracy of each split of the descriptions, and the mean of splits over the seeds that all of them have."""
    seeds = [{folder.name.rpartition("-")[2]: folder for folder in folders} for folders in runs.values()]
    common = sorted(set.intersection(*(set(each) for each in seeds)))
    means = np.mean([_agent_and_ideal([each[seed] for seed in common]) for each in seeds], axis=0)
    extra = [[f"mean of {len(runs)}", len(common), *map(format_percent, means)]] if len(runs) > 1 and common else []
    plain_table(report, "AMA told in words, asked in others", runs, extra)


def _agent_and_ideal(folders: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy of each run, and of the ideal observer from what it kept."""
    return values(folders), values(folders, who="ideal")


def rooms_table(report: Report, folders: list[Path]) -> None:
    """Accuracy by number of rooms."""
    row = [format_percent(values(folders, name=f"rooms_{rooms}")) for rooms in ROOMS]
    add_table(report, "Ballet-MVFO learned in 8 rooms, accuracy in %", [f"{rooms} rooms" for rooms in ROOMS], [row])


def curves_table(report: Report, name: str, title: str, runs: dict[str, list[Path]]) -> None:
    """Accuracy of each preset, and drawn by batches and by wall-clock."""
    plain_table(report, title, runs)
    folders = [folder for of_preset in runs.values() for folder in of_preset]
    batches = max((read_curve(folder)["batches"] for folder in folders), key=len)
    doubled = [2**k - 1 for k in range(len(batches).bit_length())]
    along_table(report, "The same in validation, %", folders, [batches[k] for k in doubled])
    draw_curves(report, name, runs)


def parity_table(report: Report, folders: list[Path]) -> None:
    """Accuracy in validation along each training, at ten points, and drawn."""
    batches = read_curve(folders[0])["batches"]
    chosen = sorted({round(k * (len(batches) - 1) / 9) for k in range(9)})
    along_table(report, "The release's recipe, accuracy in % along the training", folders, [batches[k] for k in chosen])
    draw_curves(report, "parity", {"ballet-mvfo:parity": folders})


def along_table(report: Report, title: str, folders: list[Path], batches: list[float]) -> None:
    """Accuracy in validation of each run after so many batches, "-" after its end, and at its end."""
    rows = []
    for folder in folders:
        points = read_curve(folder)
        found = dict(zip(points["batches"], points["accuracy"], strict=True))
        along = (f"{100 * found[at]:.1f}" if at in found else "-" for at in batches)
        rows.append([folder.name, *along, f"{100 * points['accuracy'][-1]:.1f}"])
    add_table(report, title, ["batches", *(f"{at:,.0f}" for at in batches), "end"], rows)


def read_curve(folder: Path) -> dict[str, list[float]]:
    """What `curve` has found of a run."""
    return read_result(folder, "curve")


def draw_curves(report: Report, name: str, runs: dict[str, list[Path]]) -> None:
    """Accuracy in validation of each run, a colour for each preset, by batches and by wall-clock."""
    figure = Figure(figsize=(10, 4), dpi=120, layout="constrained")
    by_batch, by_time = figure.subplots(1, 2, sharey=True)
    for colour, (preset, folders) in enumerate(runs.items()):
        for number, folder in enumerate(folders):
            points = read_curve(folder)
            label, style = preset if number == 0 else None, f"C{colour}"
            by_batch.plot(points["batches"], points["accuracy"], style, label=label)
            by_time.plot(points["hours"], points["accuracy"], style)
    by_batch.xaxis.set_major_formatter(EngFormatter())
    by_batch.set_xlabel("batches")
    by_time.set_xlabel("hours")
    by_batch.set_ylabel("right answers, validation")
    by_batch.legend(frameon=False)
    report.picture(name, figure_png(figure))


def opposite_table(report: Report, folders: list[Path]) -> None:
    """Where each layer looks: a table of shares, and maps for one room asked about."""
    found = np.mean([read_result(folder, "attention") for folder in folders], axis=0)
    rooms = found.shape[1]
    own, opposite = (
        np.array([[layer[r, f(r)] for r in range(rooms)] for layer in found]).mean(1)
        for f in (int, lambda r: rooms - 1 - r)
    )
    rows = [
        [k + 1, *(f"{share:.3f}" for share in (own[k], opposite[k], 1 - own[k] - opposite[k]))]
        for k in range(len(found))
    ]
    add_table(
        report, "Opposite Ballet: attention by layer", ["layer", "room asked about", "room opposite", "6 others"], rows
    )
    figure = Figure(figsize=(10, 3), dpi=120, layout="constrained")
    asked = 1
    for k, axes in enumerate(np.atleast_1d(figure.subplots(1, len(found)))):
        grid = np.insert(found[k, asked], 4, np.nan).reshape(3, 3)
        axes.imshow(grid, vmin=0, vmax=1, cmap="magma")
        axes.set_facecolor("0.6")  # the middle, where nobody lives
        axes.set_title(f"layer {k + 1}")
        axes.set_xticks([])
        axes.set_yticks([])
    report.picture(
        "attention",
        figure_png(figure),
        "share of attention by room where the room at the top in the middle is asked about",
    )


def write_results(out: Path, tables: dict[str, dict[str, list[Path]]]) -> Path:
    """All tables and figures: `report.html`; prints the tables."""
    report = Report("Spatially-Aware Transformer in Room Ballet", out)
    for table, runs in tables.items():
        if table == "strategies":
            strategies_table(report, runs)
        elif table == "rooms":
            rooms_table(report, runs["ballet-mvfo:rooms"])
        elif table == "language":
            language_table(report, runs)
        elif table == "dnc":
            curves_table(report, table, "DNC against a spatial memory with an allocator", runs)
        elif table == "parity":
            parity_table(report, runs["ballet-mvfo:parity"])
        elif table == "unlimited":
            curves_table(report, table, "Half of the visits, chosen by an allocator, against all", runs)
        else:
            plain_table(report, TITLES.get(table, table.capitalize()), runs)
        if table == "opposite":
            opposite_table(report, runs["ballet-opposite"])
    return report.write(out / "report.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tables",
        nargs="+",
        default=["strategies"],
        choices=list(TABLES),
        help="see above (default strategies)",
        metavar="TABLE",
    )
    options = sweep_options(parser, "runs/room_ballet")
    wanted = {
        table: [each for each in TABLES[table] if not options.smoke or table != "strategies" or each in SMOKE]
        for table in options.tables
    }
    runs: dict[Path, SweepRun] = {}  # some presets are in two tables, which want the same of them
    for seed, (table, presets) in itertools.product(options.seeds, wanted.items()):
        for preset in presets:
            work = partial(train_and_evaluate, table=table)
            run = SweepRun(settings(preset, seed, options.smoke), work, files_of(table))
            runs.setdefault(options.out / folder_name(preset, seed), run)
    done = run_sweep(parser, options, runs)
    tables: dict[str, dict[str, list[Path]]] = {}
    for table, presets in wanted.items():
        folders = {preset: [options.out / folder_name(preset, seed) for seed in options.seeds] for preset in presets}
        found = {preset: [each for each in of_preset if each in done] for preset, of_preset in folders.items()}
        if any(found.values()):
            tables[table] = {preset: of_preset for preset, of_preset in found.items() if of_preset}
    print(f"report: {write_results(options.out, tables).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
