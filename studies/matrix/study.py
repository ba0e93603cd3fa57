"""The memory matrix: memories on certified tasks, at equal steps and about equal sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.evaluate import trained_policy
from memenvs.agents.experiments.prediction_experiment import trained_model
from memenvs.agents.experiments.progress import count_weights
from memenvs.agents.experiments.statistics import (
    format_mean,
    format_runs,
    interquartile_mean,
    probability_of_improvement,
    stratified_interval,
)
from memenvs.agents.presets import find_preset
from memenvs.agents.presets.preset import COMPRESSIVE_QUEUES
from memenvs.agents.study import Played, Rows, Study, Table, changed, compact, play_trials, read_rows, shorten

#: Weights of each memory, about.
SIZE = 100_000
#: Learning rates, of which each memory has the better one in each task; it falls to a tenth.
RATES = ("0.001", "0.003")
RATE_ROWS = Path(__file__).with_name("rates.jsonl")
#: Batches of a task that is learned from answers.
BATCHES = 2_000
#: Points of a learning curve.
POINTS = 25
#: Task -> its title in tables.
TITLES = {
    "darkroom-gap": "Darkroom-Gap: return in episode 10",
    "darkroom": "Darkroom: return in episode 10",
    "visual-match-led": "VisualMatch-Led: success, %",
    "two-rooms-led": "TwoRooms-Led: success, %",
    "ballet-aba": "Room Ballet ABA: right answers, %",
    "ballet-mvfo": "Room Ballet MVFO: right answers, %",
    "colour-recall": "ColorRecall: right answers, %",
    "episodic-qa": "EpisodicQA: right answers, %",
}
#: The same of tasks whose runs take too long for all memories.
LONG_TITLES = {
    "ext-objnav": "ExtObjNav in small homes: success in episode 8, %",
    "ext-objnav-moves": "Learned where objects move",
}
#: The memory that others are compared with.
PEER = "lstm"
SCRIPTED = ("memoryless", "window4", "window16", "ideal", "oracle")
#: Method -> changes of the settings of a task.
MEMORIES: dict[str, dict[str, Any]] = {
    "none": {"policy.memory": "none"},
    "window of 16": {"policy.memory": "window", "policy.memory_kwargs": {"steps": 16}},
    **{
        memory: {"policy.memory": memory}
        for memory in (
            "gru", "lstm", "mingru", "gated-deltanet", "trxl", "gtrxl", "relic", "memo", "ct-lt", "sat-fifo", "sat-pm",
            "lstm-o1",
        )
    },
    # RL2: an episode is also rewarded for what later episodes of the trial gain from it
    "lstm, rl2": {
        "policy.memory": "lstm",
        "ppo.credit_across_episodes": True,
        "ppo.bootstrap_truncated": False,
        "ppo.shuffle_episodes": False,
    },
}  # fmt: skip
#: Settings in EpisodicQA of the memories that show more than one vector there: 21, for some 50 key frames.
VECTORS: dict[str, dict[str, Any]] = {"ct-lt": COMPRESSIVE_QUEUES, "lstm-o1": {"capacity": 21}}
#: Probability that an object moves between two episodes.
MOVES = 0.3
#: Task of `LONG_TITLES` -> its memories. A run of Transformer-XL takes 20 minutes.
FEW = {
    "ext-objnav": ("none", "lstm", "mingru", "trxl", "relic"),
    "ext-objnav-moves": ("none", "lstm", "mingru", "relic"),
}
#: Steps of earlier episodes that ReLIC is also played with in tasks of `LONG_TITLES`, as it gains most.
LAST_STEPS = 16
#: Evaluations in tasks of `LONG_TITLES`.
LONG_EVALUATIONS = ("evaluation", "changed", "last_steps")
#: Tasks of the memories that are not for all: RL2 needs trials of several episodes, SAT needs places, and the newest
#: outputs of an LSTM are the peer of a compressive memory.
DARKROOMS = ("darkroom-gap", "darkroom")
TASKS_OF = {
    "lstm, rl2": DARKROOMS,
    "lstm-o1": ("episodic-qa",),
    **dict.fromkeys(("sat-fifo", "sat-pm"), tuple(task for task in TITLES if task not in (*DARKROOMS, "episodic-qa"))),
}


def make_tasks() -> dict[str, RunConfig]:
    """Settings of a run in each task, without those of its memory."""
    names = ("demo-gap", "sat-visual-match", "room-ballet", "sat-pictures", "episodic-qa")
    demo, visual_match, ballet, pictures, questions = map(find_preset, names)
    tasks = {}
    for task, env, gap in (("darkroom-gap", "memenvs/Darkroom-Gap-v0", 20), ("darkroom", "memenvs/Darkroom-v0", 0)):
        steps = 25 + gap  # of an episode
        tasks[task] = replace(
            changed(demo, {"ppo.n_steps": 5 * steps, "policy.memory_kwargs": {}, "policy.size": SIZE}),
            env=env,
            env_kwargs={**demo.env_kwargs, "max_episode_steps": steps, **({"gap": gap} if gap else {})},
            device="cpu",
            total_steps=8_000 * steps,
            eval_steps=10 * steps,
        )
    phases = [4, 30, 6]  # steps before the cue, in the field, and before the balls
    settings = {"ppo.allocator": None, "ppo.n_steps": sum(phases), "policy.memory_kwargs": {}, "policy.size": SIZE}
    tasks["visual-match-led"] = replace(
        changed(visual_match, settings),
        env="memenvs/VisualMatch-Led-v0",
        env_kwargs={**visual_match.env_kwargs, "phases": phases},
        device="cpu",
        total_steps=1_024_000,
        eval_steps=sum(phases),
    )
    phases = [4, 24, 16]
    settings = {"ppo.n_steps": sum(phases), "policy.features_extractor_kwargs": {"image_dim": 64}, "ppo.ent_coef": 0.05}
    tasks["two-rooms-led"] = replace(
        changed(tasks["visual-match-led"], settings),
        env="memenvs/TwoRooms-Led-v0",
        env_kwargs={"image_size": [12, 20], "phases": phases, "place": True},
        total_steps=450_560,
        eval_steps=sum(phases),
    )
    # steps 20, 25 and 30 of a visit, in which all dances differ
    tasks["ballet-aba"] = replace(
        changed(ballet, {"supervised.batch_size": 32, "supervised.checkpoint_steps": BATCHES // POINTS}),
        env="memenvs/RoomBallet-ABA-v0",
        device="cpu",
        total_steps=BATCHES,
        eval_trials=2_000,
        policy={"first": 20, "every": 5, "size": SIZE},
    )
    tasks["ballet-mvfo"] = replace(tasks["ballet-aba"], env="memenvs/RoomBallet-MVFO-v0")
    tasks["colour-recall"] = replace(
        changed(pictures, {"supervised.checkpoint_steps": BATCHES // POINTS}),
        env="memenvs/ColorRecall-v0",
        env_kwargs={"steps": [50, 50], "capacity": 50, "square_size": 32},
        device="cpu",
        total_steps=BATCHES,
        policy={"convolutions": "fixed", "size": SIZE},
        score="accuracy",
    )
    # learned from histories of 1, 2, 3 and 5 episodes, the longer ones later; a window of rules counts key frames
    tasks["episodic-qa"] = replace(
        changed(questions, {"questions.checkpoint_steps": 1_200 // POINTS}),
        env_kwargs={"kinds": ["location", "object"], "scale": "study", "frames_per_step": 1},
        total_steps=1_200,
        eval_kwargs={"split": "test", "lengths": [5]},
        eval_trials=1_000,
        policy={"curriculum": [120, 240, 420], "size": SIZE},
    )
    objnav = find_preset("extobjnav-small")
    tasks["ext-objnav"] = replace(
        changed(objnav, {"policy.memory_kwargs": {}, "policy.size": SIZE}),
        device="cpu",
        total_steps=46 * objnav.n_envs * objnav.learner.n_steps,  # 1.5 million
        eval_kwargs={**objnav.eval_kwargs, "trial_episodes": 8},  # a trial is as long as in training
        eval_steps=8 * objnav.env_kwargs["max_episode_steps"],
        validation_kwargs={"split": "validation"},
        milestones=0,
    )
    tasks["ext-objnav-moves"] = changed(tasks["ext-objnav"], {"env_kwargs.moves": MOVES})
    return tasks


def tasks_of(memory: str) -> Iterable[str]:
    """Tasks in which a memory is compared with all others."""
    return TASKS_OF.get(memory, TITLES)


def memories_of(task: str) -> list[str]:
    """Memories that are trained in a task."""
    return [memory for memory in MEMORIES if task in tasks_of(memory) or memory in FEW.get(task, ())]


def at_rate(config: RunConfig, memory: str, rate: str) -> RunConfig:
    """Settings of a task with a memory and a learning rate."""
    learner = config.kind.name
    changes = {f"{learner}.learning_rate": float(rate), f"{learner}.final_learning_rate": float(rate) / 10}
    if memory.startswith("sat") and config.kind.acts:  # elsewhere the task has a capacity
        changes["policy.memory_kwargs"] = {"capacity": config.env_kwargs["phases"][1] // 2}
    if learner == "questions" and memory in VECTORS:
        changes["policy.memory_kwargs"] = VECTORS[memory]
    return changed(config, {**MEMORIES[memory], **changes})


def score_of(rows: Rows, task: str, method: str) -> np.ndarray:
    """Score in the last episode of a trial, one per seed; a success or accuracy in %."""
    config = make_tasks()[task]
    is_success = method in SCRIPTED and not config.kind.acts  # of an environment whose actions are answers
    score = "success" if is_success else config.score
    scores = rows.means(task, method, score) * (1 if score == "return" else 100)
    return scores if scores.ndim == 1 else scores[:, -1]


def best_rate(rates: Rows, task: str, memory: str) -> str:
    """The better learning rate of a memory; the first one until both have been tried."""
    scores = [score_of(rates, task, f"{memory}, {rate}") for rate in RATES]
    return RATES[int(np.argmax(scores))] if all(map(len, scores)) else RATES[0]


def make_configs(rates: Rows) -> dict[str, dict[str, RunConfig]]:
    """Settings of each memory in each task, with its learning rate."""
    return {
        task: {memory: at_rate(config, memory, best_rate(rates, task, memory)) for memory in memories_of(task)}
        for task, config in make_tasks().items()
    }


def play(played: Played, seed: int = 1) -> dict[str, Any]:
    """Scores in new trials, or of answers in new episodes."""
    config = played.config
    if played.run is None or config.kind.acts:
        return play_trials(played, config.score if config.kind.acts else "success", seed=seed)
    scores = config.make_experiment().evaluate(played.run, seed=seed, quiet=played.quiet)
    return {"agent": compact(scores["agent"], (config.score,))}


def play_changed(played: Played) -> dict[str, Any] | None:
    """Scores where objects move, of agents that learned where they stay; and the reverse."""
    config = played.config
    if played.task not in LONG_TITLES:
        return None
    moves = MOVES - config.env_kwargs.get("moves", 0.0)
    return play_trials(played, config.score, seed=1, eval_kwargs={**config.eval_kwargs, "moves": moves})


def play_last_steps(played: Played) -> dict[str, Any] | None:
    """Scores of ReLIC that remembers the last steps alone of earlier episodes."""
    if played.task not in LONG_TITLES or played.method != "relic":
        return None
    return play_trials(played, played.config.score, seed=1, last_steps=LAST_STEPS)


def smoke(config: RunConfig) -> RunConfig:
    """Shorten a run to a rollout, or to four batches."""
    if config.kind.acts:
        return shorten(config)
    learner = config.kind.name
    short = {"total_steps": 4, "eval_trials": 4, f"{learner}.batch_size": 4, f"{learner}.validation_episodes": 4}
    small = {"scale": "smoke", "questions": 4} if learner == "questions" else {}  # fewer histories to make
    return changed(replace(config, env_kwargs={**config.env_kwargs, **small}), short)


def memory_weights(played: Played) -> int | None:
    """Weights of the memory alone; None for a scripted policy."""
    if played.run is None:
        return None
    network = trained_policy(played.run, 0) if played.config.kind.acts else trained_model(played.run)
    return count_weights(network)["memory"]


def learning_curve(played: Played) -> list[float] | None:
    """Mean return or accuracy in equal parts of training; None for a scripted policy."""
    if played.run is None:
        return None
    metrics = played.run.metrics()
    steps, returns = np.array(metrics.get("rollout/ep_rew_mean") or metrics["validation/accuracy"]).T
    part = np.minimum((steps - 1) * POINTS // played.config.total_steps, POINTS - 1)
    return [round(float(returns[part == k].mean()), 3) for k in range(POINTS) if (part == k).any()]


def shares_of(rows: Rows, task: str, method: str) -> np.ndarray:
    """Scores, one per seed, where 0 is `memoryless` and 1 `ideal`; (0,) without their rows."""
    low, high = (score_of(rows, task, rule) for rule in ("memoryless", "ideal"))
    scores = score_of(rows, task, method)
    return (scores - low) / (high - low) if len(low) and len(high) else scores[:0]


def ranked(rows: Rows) -> list[str]:
    """Memories with runs in all of their tasks, the best first; those of fewer tasks last."""
    shares = {memory: [shares_of(rows, task, memory) for task in tasks_of(memory)] for memory in MEMORIES}
    complete = [memory for memory in shares if all(map(len, shares[memory]))]
    return sorted(complete, key=lambda memory: (-len(shares[memory]), -pooled_mean(shares[memory])))


def pooled_mean(samples: list[np.ndarray]) -> float:
    """Interquartile mean over the runs of all tasks, each of which counts as much."""
    count = np.lcm.reduce([len(sample) for sample in samples])
    return interquartile_mean(np.concatenate([np.repeat(sample, count // len(sample)) for sample in samples]))


def improvement(samples: list[np.ndarray]) -> float:
    """`probability_of_improvement` of the first half of the samples over the second."""
    half = len(samples) // 2
    return probability_of_improvement(samples[:half], samples[half:])


def make_tables(rows: Rows) -> list[Table]:
    """The order of memories over all tasks, then the scores in each task."""
    titles = {**TITLES, **LONG_TITLES}
    tables = [order_table(rows), *(task_table(rows, task, title) for task, title in titles.items())]
    return [table for table in tables if table.lines]


def order_table(rows: Rows) -> Table:
    """Shares of each memory, the best one first."""
    lines = []
    for memory in ranked(rows):
        samples, peers = ([shares_of(rows, task, name) for task in tasks_of(memory)] for name in (memory, PEER))
        intervals = stratified_interval(samples, pooled_mean), stratified_interval([*samples, *peers], improvement)
        texts = ["{:z.2f} ({:z.2f} to {:z.2f})".format(*interval) for interval in intervals]
        shares = [format_share(shares_of(rows, task, memory)) or "-" for task in TITLES]
        lines.append([memory, texts[0], "-" if memory == PEER else texts[1], *shares])
    header = ["memory", "interquartile mean", f"probability that it is better than {PEER}", *TITLES]
    return Table("Share of the way from a rule without a memory (0) to a perfect memory (1)", header, lines)


def task_table(rows: Rows, task: str, title: str) -> Table:
    """Score, learning rate, size and speed of each memory and rule in a task.

    In ExtObjNav also the score in the first episode; and in the last one of the other kind of trials, and with the last
    steps alone.
    """
    rates = read_rows(RATE_ROWS)
    is_long = task in LONG_TITLES
    lines = []
    for method in [*MEMORIES, *SCRIPTED]:
        runs = rows.of(task, method)
        if not runs:
            continue
        line = [method, format_mean(score_of(rows, task, method))]
        if is_long:
            first, *last = (100 * rows.means(task, method, "success", name) for name in LONG_EVALUATIONS)
            line += [format_mean(first[:, 0]), *(format_mean(curves[:, -1]) if len(curves) else "-" for curves in last)]
        if method in MEMORIES:
            speeds = [row["steps"] / row["cpu_seconds"] for row in runs if row["cpu_seconds"]]
            weights = rows.results(task, method, "weights")[0]
            line += [best_rate(rates, task, method), f"{weights:,}", f"{np.median(speeds):,.0f}" if speeds else "-"]
        else:
            line += ["-", "-", "-"]
        lines.append(line)
    kind = "where objects stay" if "moves" in task else "where objects move"
    own = ["in episode 1", kind, f"with the last {LAST_STEPS} steps"] if is_long else []
    header = ["memory or rule", "score", *own, "learning rate", "weights", "steps per CPU second"]
    return Table(title, header, lines)


def format_share(sample: np.ndarray) -> str:
    """Mean and margin with two decimals; see `format_runs`."""
    return format_runs(sample, ".2f", ".2f")


def draw(rows: Rows) -> Figure | None:
    """Heat map of shares, means over seeds: a row for each memory, a column for each task."""
    memories = ranked(rows)
    if not memories:
        return None
    samples = [[shares_of(rows, task, memory) for task in TITLES] for memory in memories]
    shares = np.array([[sample.mean() if len(sample) else np.nan for sample in line] for line in samples])
    figure = Figure(figsize=(2.5 + len(TITLES), 1.6 + 0.35 * len(memories)), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(shares, vmin=0, vmax=1, aspect="auto", cmap="viridis")
    for (row, column), share in np.ndenumerate(shares):
        if np.isfinite(share):
            axes.text(column, row, f"{share:z.2f}", ha="center", va="center", color="w" if share < 0.6 else "k")
    axes.set_xticks(range(len(TITLES)), list(TITLES), rotation=30, ha="right")
    axes.set_yticks(range(len(memories)), memories)
    figure.colorbar(image, label="0 no memory, 1 perfect memory")
    return figure


def draw_curves(rows: Rows) -> Figure | None:
    """Return along training, a panel for each task: mean over seeds."""
    columns = (len(TITLES) + 1) // 2
    figure = Figure(figsize=(4 * columns, 7), layout="constrained")
    panels = figure.subplots(2, columns).flat
    for (task, title), axes in zip(TITLES.items(), panels, strict=False):
        config = make_tasks()[task]
        for number, memory in enumerate(ranked(rows)):
            curves = rows.results(task, memory, "curve")
            if curves:
                steps = (np.arange(POINTS) + 0.5) * config.total_steps / POINTS
                style = "-" if number < 10 else "--"  # there are ten colours
                axes.plot(steps, np.mean(curves, axis=0), style, color=f"C{number % 10}", label=memory)
        labels = ("steps", "return in training") if config.kind.acts else ("batches", "right answers")
        axes.set(title=title.partition(":")[0], xlabel=labels[0], ylabel=labels[1])
    for axes in panels:  # without a task
        axes.set_axis_off()
    lines = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    if not lines:
        return None
    figure.legend(lines.values(), lines.keys(), frameon=False, fontsize="small", loc="outside right")
    return figure


STUDY = Study(
    title="The memory matrix",
    configs=make_configs(read_rows(RATE_ROWS)),
    scripted=SCRIPTED,
    evaluations={
        "evaluation": play,
        "changed": play_changed,
        "last_steps": play_last_steps,
        "weights": memory_weights,
        "curve": learning_curve,
    },
    tables=make_tables,
    figures={"matrix": draw, "matrix_curves": draw_curves},
    smoke=smoke,
)
