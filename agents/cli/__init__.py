"""Commands of `memenvs` about agents.

Each is a row of `COMMANDS` and a module. Mistakes that can be found without torch are reported before it is imported,
which takes seconds: modules import what needs it in `run`, after their checks.
"""

from __future__ import annotations

from memenvs.cli.commands import Command

COMMANDS = (
    Command("train", "memenvs.agents.cli.train", "train a preset, evaluate it and write its report"),
    Command(
        "evaluate",
        "memenvs.agents.cli.evaluate",
        "evaluate a run in its evaluation trials, beside random and oracle, or on its prediction task",
    ),
    Command("report", "memenvs.agents.cli.report", "write report.html of one run, or of several of the same task"),
    Command("presets", "memenvs.agents.cli.presets", "list the presets, or show one with its variants"),
    Command(
        "probe", "memenvs.agents.cli.probe", "record the attention of a run's ReLIC memory: attention.png and .json"
    ),
    Command(
        "paths",
        "memenvs.agents.cli.paths",
        "draw the paths of runs' agents, random and oracle, and a metric by step",
    ),
    Command(
        "trajectories",
        "memenvs.agents.cli.trajectories",
        "write the trajectories of a run's agent on R2R's or CVDN's real graphs, for `memenvs score`",
    ),
    Command(
        "ask",
        "memenvs.agents.cli.ask",
        "type questions about the generated life of a household robot; a trained model answers from its memory",
    ),
    Command(
        "answer",
        "memenvs.agents.cli.answer",
        "fill a model's answers into a file of `memenvs verbalization questions`, for `memenvs score emv`",
    ),
    Command(
        "pack",
        "memenvs.agents.cli.pack",
        "write settings and evaluations of finished runs into a table for results/",
    ),
    Command(
        "push",
        "memenvs.agents.cli.push",
        "write the agent of a run, with a model card, into a folder or onto the Hub",
    ),
    Command(
        "pull", "memenvs.agents.cli.pull", "make a run folder of a published agent, for evaluate, record and report"
    ),
)
