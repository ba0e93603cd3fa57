"""Memories of pictures: patches of faces along a path, views of dancers, colours and rooms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.statistics import format_digits
from memenvs.agents.presets import find_preset
from memenvs.agents.study import EVALUATION, Played, Rows, Study, Table, changed, grid
from memenvs.retention import STRATEGIES

#: Method that chooses among the strategies of its task.
AMA = "ama"
#: Task -> question of the table, and method -> what its memory is.
QUESTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "faces": (
        "Are places worth more than time? (FFHQWorld)",
        {
            "t-fifo": "time of each patch",
            "t-fifo+a": "time and moves",
            "sat-fifo": "place of each patch",
            **{f"pm{count}": f"place, read in chunks of {count} regions" for count in (8, 16, 32)},
        },
    ),
    "codes": (
        "Which code of a place? (FFHQWorld, 128 dimensions)",
        {
            "learned2d": "learned, of row and column",
            "sine2d": "sinusoids of row and column",
            "learned1d": "learned, of the cell",
            "sine1d": "sinusoid of the cell's number",
        },
    ),
    **{
        task: (question, {"fifo": "FIFO", "mvfo": "MVFO", AMA: "a learned allocator (AMA)"})
        for task, question in (
            ("longstay", "What to keep in a long stay? (FFHQWorld-LongStay)"),
            ("colour", "What to keep of a tour? (ColorRecall, a quarter of its steps)"),
            ("colour-default", "The same at its default sizes"),
            ("view", "What to keep of a path? (ViewRecall)"),
        )
    },
}
#: Task -> its name in the metrics of an allocator.
Q_NAMES = {"longstay": "faces", "colour": "colour", "colour-default": "colour", "view": "view"}
#: Columns of Ballet3D.
BALLET_METHODS = (*STRATEGIES, AMA)
#: Font size, in a figure of 8 inches that is read at 400 pixels.
FONT = 16


def make_configs() -> dict[str, dict[str, RunConfig]]:
    """Settings of each memory, code of places or strategy in each task."""
    preset = find_preset("sat-pictures")
    half = changed(preset, {"supervised.precision": "bfloat16"})
    gpu = replace(half, device="cuda")
    no_places = {"policy.place_code": None}
    chunks = {  # learned codes of cells, since the mean of a chunk's codes differs then from that of any other
        "policy.memory": "sat-pm-ph",
        "policy.flat_layers": 2,
        "policy.place_code": "learned1d",
    }
    faces: dict[str, dict[str, Any]] = {
        "t-fifo": {"policy.memory": "t-fifo", **no_places},
        "t-fifo+a": {"policy.memory": "t-fifo+a", **no_places},
        "sat-fifo": {},
        **{f"pm{count}": {**chunks, "env_kwargs.places": count} for count in (8, 16, 32)},
    }
    codes = {code: {"policy.place_code": code} for code in QUESTIONS["codes"][1]}
    narrow = changed(half, {"policy.dim": 128, "policy.mlp_dim": 128, "total_steps": 1250})
    configs = grid({"faces": gpu}, faces) | grid({"codes": narrow}, codes)
    configs["longstay"] = strategies(replace(gpu, env="memenvs/FFHQWorld-LongStay-v0"), ("fifo", "mvfo"))
    views = replace(preset, env_kwargs={}, policy={"convolutions": "components"})
    slower = {"supervised.learning_rate": 1e-3}
    ballet = replace(views, env="memenvs/Ballet3D-v0", total_steps=6000, eval_trials=400)
    configs["ballet3d"] = strategies(changed(ballet, slower), ("fifo", "lifo", "lvfo", "mvfo"))
    recall = replace(views, device="cpu", policy={"memory": "sat-fifo", "convolutions": "fixed"})
    colour = replace(
        recall,
        env="memenvs/ColorRecall-v0",
        # a quarter of the steps, so that four times as many tours can be drawn, and a square that convolutions which do
        # not learn can see
        env_kwargs={"steps": [50, 50], "capacity": 50, "square_size": 32},
        total_steps=2400,
        score="accuracy",
    )
    # its square has 8 x 8 pixels, which are seen in what differs from the first view without the square
    seen = {"memory": "sat-fifo", "convolutions": "components", "compares": True}
    default = changed(replace(colour, env_kwargs={}, policy=seen, total_steps=3600), {"supervised.learning_rate": 5e-4})
    view = changed(
        replace(recall, env="memenvs/ViewRecall-v0", total_steps=500),
        {**slower, "supervised.batch_size": 16, "supervised.validation_episodes": 200},
    )
    return configs | {
        name: strategies(config, ("fifo", "mvfo"))
        for name, config in (("colour", colour), ("colour-default", default), ("view", view))
    }


def strategies(config: RunConfig, names: tuple[str, ...]) -> dict[str, RunConfig]:
    """Settings of each strategy of a task, and of an allocator.

    Exploration of the allocator falls over half of the run.
    """
    allocation = {"epsilon_end": 0.05, "epsilon_steps": config.total_steps // 2, "rate": 4.0}
    methods = {name: {"policy.strategy": name} for name in names}
    return grid({"": config}, {**methods, AMA: {"policy.allocation": allocation}})[""]


def answers(played: Played) -> dict[str, Any]:
    """Errors or right answers in new episodes.

    Answers and memory are drawn into the folder of the run.
    """
    assert played.run is not None
    result: dict[str, Any] = played.config.make_experiment().evaluate(played.run, quiet=played.quiet)
    return result


def make_tables(rows: Rows) -> list[Table]:
    """Errors of each memory, and errors of Ballet3D by task and by seed."""
    lines = []
    for task, (question, methods) in QUESTIONS.items():
        metric, name = ("accuracy", "accuracy") if task.startswith("colour") else ("mse", "MSE")
        for method, memory in methods.items():
            if rows.results(task, method):
                kept = f"{100 * rows.means(task, method, 'kept').mean():.1f}"
                share = rows.means(task, method, f"q_{Q_NAMES[task]}_mvfo") if method == AMA else None
                score = f"{name} {format_digits(rows.means(task, method, metric))}"
                first = question if method == next(iter(methods)) else ""
                chosen = "-" if share is None else format_digits(share)
                lines.append([first, memory, f"`{task} {method}`", score, kept, chosen])
    header = ["question", "memory", "run", "score", "answers in memory, %", "softmax(Q) of MVFO"]
    tables = [Table("", header, lines)] if lines else []
    columns = [method for method in BALLET_METHODS if rows.results("ballet3d", method)]
    if columns:
        errors = [[rows.means("ballet3d", method, f"mse_{task}") for method in columns] for task in STRATEGIES]
        lines = [[task.upper(), *map(format_digits, line)] for task, line in zip(STRATEGIES, errors, strict=True)]
        tables.append(Table("Ballet3D, MSE", ["task", *map(str.upper, columns)], lines))
    if len(columns) == len(BALLET_METHODS) and len({len(seeds) for line in errors for seeds in line}) == 1:
        # seed by seed, since an order holds only if it holds with each
        own = np.mean([line[columns.index(task)] for task, line in zip(STRATEGIES, errors, strict=True)], 0)  # (seeds,)
        means = [np.mean([line[column] for line in errors], 0) for column in range(len(columns))]
        by_seed = zip((row["seed"] for row in rows.of("ballet3d", AMA)), own, *means, strict=True)
        lines = [[seed, *(f"{error:.3g}" for error in mean)] for seed, *mean in by_seed]
        header = ["seed", "own strategy of each task", *map(str.upper, columns)]
        tables.append(Table("Ballet3D, mean MSE over tasks", header, lines))
    return tables


def draw(rows: Rows) -> Figure | None:
    """Mean squared error of Ballet3D by task and retention strategy, and with an allocator."""
    if not all(rows.results("ballet3d", method) for method in BALLET_METHODS):
        return None
    errors = np.array(
        [[rows.means("ballet3d", method, f"mse_{task}").mean() for method in BALLET_METHODS] for task in STRATEGIES]
    )
    figure = Figure(figsize=(8, 5.2), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(errors, cmap="cividis_r", aspect="auto")
    middle = (errors.min() + errors.max()) / 2
    for (i, j), error in np.ndenumerate(errors):
        colour = "white" if error > middle else "black"
        axes.text(j, i, f"{1000 * error:.2f}", ha="center", va="center", color=colour, fontsize=FONT + 2)
    axes.set_xticks(range(len(BALLET_METHODS)), [*map(str.upper, STRATEGIES), "learned\n(AMA)"], fontsize=FONT)
    axes.set_yticks(range(len(STRATEGIES)), map(str.upper, STRATEGIES), fontsize=FONT)
    axes.set_title("Ballet3D: mean squared error, thousandths", fontsize=FONT)
    axes.set_xlabel("strategy of the memory", fontsize=FONT)
    axes.set_ylabel("task", fontsize=FONT)
    return figure


def smoke(config: RunConfig) -> RunConfig:
    """Shorten a run to two batches of a small model, on the CPU or the GPU that is there."""
    changes: list[tuple[str, Any]] = [("total_steps", 2), ("eval_trials", 4), ("device", "auto")]
    changes += [(f"policy.{name}", size) for name, size in (("dim", 16), ("layers", 3), ("mlp_dim", 16))]
    changes += [("supervised.batch_size", 2), ("supervised.validation_episodes", 2)]
    if "num_images" in config.env_kwargs:
        changes.append(("env_kwargs.num_images", 4))
    else:  # other convolutions are of all views, which have to be drawn first
        changes.append(("policy.convolutions", "learned"))
    if config.score == "accuracy":  # ColorRecall: the pool of tours is drawn first, too
        changes.append(("env_kwargs.steps", [10, 10]))
    return with_overrides(config, changes)


STUDY = Study(
    title="Memories of pictures",
    configs=make_configs(),
    evaluations={EVALUATION: answers},
    tables=make_tables,
    figures={"pictures": draw},
    smoke=smoke,
)
