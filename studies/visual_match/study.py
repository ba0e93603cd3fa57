"""VisualMatch and TwoRooms: what to keep, learned from rewards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from memenvs.agents.experiments.config import RunConfig, with_overrides
from memenvs.agents.experiments.evaluate import evaluation_env, trained_policy
from memenvs.agents.experiments.report import COLOURS
from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.memory.base import STRATEGY
from memenvs.agents.policies.memory_policy import MemoryPolicy
from memenvs.agents.policies.small_sizes import SMALL
from memenvs.agents.presets import find_preset
from memenvs.agents.study import Played, Rows, Study, Table, changed, grid, play_trials
from memenvs.retention import STRATEGY_NAMES

#: Method -> its name in the table.
NAMES = {
    "ama": "an allocator chooses FIFO or MVFO (`ama`)",
    "ama-long": "the same, half as many steps again (`ama-long`)",
    "mvfo": "MVFO (`mvfo`)",
    "fifo": "FIFO (`fifo`)",
    "sat-pm": "a quota for each place (`sat-pm`)",
    "relic": "all steps, ReLIC (`relic`)",
    "lstm": "LSTM (`lstm`)",
    "gru": "GRU (`gru`)",
    "none": "no memory (`none`)",
    "ct-lt": "Compressive Transformer, long-term state (`ct-lt`)",
    "ct-log": "Compressive Transformer, merging vectors (`ct-log`)",
}
#: Tables: task -> its name in the header.
TABLES = ({"visual-match": "VisualMatch", "two-rooms": "TwoRooms"}, {"short-visual-match": "short VisualMatch"})
#: Lines of the figure: method -> label.
LINES = {"mvfo": "MVFO", "ama-long": "AMA", "relic": "ReLIC", "fifo": "FIFO", "none": "no memory"}
#: Strategies whose memory is drawn.
DRAWN = ("fifo", "mvfo")
#: Rollouts between two points of a learning curve.
CURVE_STRIDE = 2
#: Font size, in a figure of 8 inches that is read at 400 pixels.
FONT = 16


def without_allocator(memory: str, **settings: Any) -> dict[str, Any]:
    """Changes of the preset for another memory."""
    return {"ppo.allocator": None, "policy.memory": memory, "policy.memory_kwargs": settings}


def make_configs() -> dict[str, dict[str, RunConfig]]:
    """Settings of each method in each task, with the same steps but for `ama-long`."""
    visual_match = replace(find_preset("sat-visual-match"), device="cpu")
    # views are wide, so that both boxes are in the first one of the choice; with half as much entropy, policies give
    # up one side of the room before they have tried the colour there
    two_rooms = replace(
        changed(visual_match, {"policy.features_extractor_kwargs": {"image_dim": 64}, "ppo.ent_coef": 0.05}),
        env="memenvs/TwoRooms-v0",
        env_kwargs={"image_size": [12, 20], "phases": [4, 24, 16], "place": True},
        total_steps=675_840,
        eval_trials=200,
    )
    # the choice is beyond the 32 steps that `ct-lt` and `ct-log` keep in their queues
    short = changed(visual_match, {"env_kwargs.phases": [4, 30, 6], "total_steps": 512_000})
    tasks = {
        "visual-match": visual_match,
        "two-rooms": changed(two_rooms, {**_lengths(44), "policy.memory_kwargs.capacity": 12}),
        "short-visual-match": changed(short, _lengths(40)),
    }
    fixed = {"ppo.allocator": None}
    others = {memory: without_allocator(memory, **SMALL[memory]) for memory in ("lstm", "gru", "none")}
    others["relic"] = without_allocator("relic", **SMALL["sat-fifo"], max_episode_steps=101)
    methods = {
        "ama": {},
        "mvfo": {**fixed, "policy.memory_kwargs.strategy": "mvfo"},
        "fifo": {**fixed, "policy.memory_kwargs.strategy": "fifo"},
        "sat-pm": {**fixed, "policy.memory": "sat-pm"},
        **others,
    }
    compressive = {
        memory: without_allocator(
            memory, **SMALL["ct-lt"], block_length=8, memory_length=8, compressed_lengths=[4], ratios=[4]
        )
        for memory in ("ct-lt", "ct-log")
    }
    short_methods = {"relic": others["relic"], "lstm": others["lstm"], **compressive}
    configs = grid({name: tasks[name] for name in TABLES[0]}, methods)
    for name, own in configs.items():  # it has the sizes of the others
        own["sat-pm"] = changed(own["sat-pm"], {"policy.memory_kwargs": tasks[name].policy["memory_kwargs"]})
    configs["visual-match"]["ama-long"] = replace(visual_match, total_steps=3 * visual_match.total_steps // 2)
    return configs | grid({"short-visual-match": tasks["short-visual-match"]}, short_methods)


def _lengths(steps: int) -> dict[str, int]:
    """An episode is a rollout, and a trial of the evaluation."""
    return {"ppo.n_steps": steps, "eval_steps": steps}


def success(played: Played) -> dict[str, Any]:
    """Success in new episodes."""
    return play_trials(played, "success")


def learning_curve(played: Played) -> dict[str, Any]:
    """Success, hours and, with an allocator, share and Q of each strategy along a training.

    Every second rollout is kept, and the last one; values have three decimals, as many as figures show.
    """
    assert played.run is not None
    metrics = played.run.metrics()
    rate = metrics["rollout/success_rate"]
    points = slice((len(rate) - 1) % CURVE_STRIDE, None, CURVE_STRIDE)
    curve: dict[str, Any] = {"steps": [step for step, _ in rate[points]]}
    allocator = {name.partition("/")[2]: metrics[name] for name in metrics if name.startswith("allocator/")}
    for name, values in {"success_rate": rate, **allocator}.items():
        curve[name] = [round(value, 3) for _, value in values[points]]
    curve["hours"] = [round(seconds / 3600, 4) for _, seconds in metrics["time/time_elapsed"][points]]
    return curve


@torch.no_grad()
def memory_contents(played: Played) -> dict[str, Any]:
    """Steps that the memory of a run holds at each step of an episode, with each of `DRAWN`.

    Returns:
        For each strategy and each step of the episode its place, and the first and the last step at which memory holds
        it, [place, first, last]. A step that memory has dropped never comes back. Empty for a memory without
        strategies.
    """
    assert played.run is not None
    policy = trained_policy(played.run, seed=1)
    assert isinstance(policy, MemoryPolicy)
    contents: dict[str, Any] = {}
    for strategy in (name for name in DRAWN if name in policy.memory.strategies):
        env = evaluation_env(played.config, 1, seed=1)
        observation: Any = env.reset()
        state = policy.initial_state(1)
        state[STRATEGY] = torch.full_like(state[STRATEGY], STRATEGY_NAMES.index(strategy))
        spans: list[list[int]] = []
        is_done = False
        start = torch.ones(1, dtype=torch.bool, device=policy.device)
        while not is_done:
            now = len(spans)
            spans.append([int(observation["place"][0]), now, now])
            tensors, _ = policy.obs_to_tensor(observation)  # images channels first
            output = policy.act(tensors, state, start, start)
            state, start = output.state, torch.zeros_like(start)
            for step in state["step_index"][0].tolist():
                if step >= 0:
                    assert spans[step][2] >= now - 1, "memory has a step again that it had dropped"
                    spans[step][2] = now
            observation, _, dones, _ = env.step(policy.environment_actions(output.actions))
            is_done = bool(dones[0])
        contents[strategy] = spans
        env.close()
    return contents


def make_tables(rows: Rows) -> list[Table]:
    """Success of each memory: a table of both tasks, and one of the short VisualMatch."""
    tables = []
    for tasks in TABLES:
        lines = []
        methods = (method for task in tasks for method in rows.methods(task))
        for method in dict.fromkeys([*NAMES, *methods]):
            cells: list[str] = []
            for task in tasks:
                rates = rows.means(task, method, "success")
                if len(rates) == 0:
                    cells += ["-"] * 3
                    continue
                seeds = " / ".join(f"{100 * rate:.1f}" for rate in rates[:, 0])
                cells += [format_percent(rates[:, 0]), seeds, f"{rows.of(task, method)[0]['steps']:,}"]
            if set(cells) != {"-"}:
                lines.append([NAMES.get(method, method), *cells])
        header = [f"{task}{what}" for task in tasks.values() for what in (", success %", ", by seed", ", steps")]
        if lines:
            tables.append(Table("", ["memory", *header], lines))
    return tables


def draw(rows: Rows) -> Figure | None:
    """Success and choices of the allocator along the training, and the steps in memory."""
    contents = rows.results("visual-match", "mvfo", "memory")
    if not contents:
        return None
    figure = Figure(figsize=(8, 9), dpi=100, layout="constrained")
    panels = figure.add_gridspec(3, 2, height_ratios=[1.1, 0.8, 1.1])
    rates, share = figure.add_subplot(panels[0, :]), figure.add_subplot(panels[1, :])
    for colour, (method, name) in zip(COLOURS, LINES.items(), strict=False):
        for number, curve in enumerate(rows.results("visual-match", method, "curve")):
            steps = np.array(curve["steps"]) / 1e6
            label = name if number == 0 else None
            rates.plot(steps, 100 * np.array(curve["success_rate"]), color=colour, linewidth=1.5, label=label)
            if "share_mvfo" in curve:
                share.plot(steps, 100 * np.array(curve["share_mvfo"]), color=colour, linewidth=1.5)
    for axes, label in ((rates, "success, %"), (share, "AMA: share\nof MVFO, %")):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.set_ylim(0, 104)
        axes.set_ylabel(label, fontsize=FONT)
    rates.legend(frameon=False, ncols=3, fontsize=FONT - 2, loc="lower right")
    share.set_xlabel("million steps", fontsize=FONT)
    for column, (strategy, spans) in enumerate(contents[0].items()):
        axes = figure.add_subplot(panels[2, column])
        axes.imshow(memory_image(spans), origin="lower", interpolation="none", aspect="auto")
        axes.set_title(f"{strategy.upper()} holds", fontsize=FONT)
        axes.set_xlabel("step of the episode", fontsize=FONT)
        axes.set_ylabel("step in memory" if column == 0 else "", fontsize=FONT)
    for axes in figure.axes:
        axes.tick_params(labelsize=FONT - 2)
    return figure


def memory_image(spans: list[list[int]]) -> np.ndarray:
    """Draw the steps that memory holds along an episode, in the colours of their places.

    Args:
        spans: [place, first, last] of each of T steps; see `memory_contents`.

    Returns:
        float64, (T, T, 3), 0 to 1; a row is a step in memory, a column the memory at a step. White is empty.
    """
    image = np.ones((len(spans), len(spans), 3))
    for step, (place, first, last) in enumerate(spans):
        image[step, first : last + 1] = to_rgb(f"C{place}")
    return image


def smoke(config: RunConfig) -> RunConfig:
    """Shorten a run to a few rollouts of four environments."""
    changes = [("n_envs", 4), ("total_steps", 800), ("eval_trials", 4), ("ppo.batch_size", 2), ("ppo.n_epochs", 1)]
    return with_overrides(config, changes)


STUDY = Study(
    title="What to keep, learned from rewards",
    configs=make_configs(),
    evaluations={"evaluation": success, "curve": learning_curve, "memory": memory_contents},
    tables=make_tables,
    figures={"visual_match": draw},
    smoke=smoke,
)
