"""Commands of `memenvs` about agents.

Mistakes that can be found without torch are reported before it is imported, which takes seconds: modules import what
needs it in `run`, after their checks.
"""

from __future__ import annotations

#: As `memenvs.cli.commands.COMMANDS`.
COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("memenvs.agents.cli.train", "train a preset, evaluate it and write its report"),
    "evaluate": ("memenvs.agents.cli.evaluate", "evaluate a run in its evaluation trials, or on a test set"),
    "report": ("memenvs.agents.cli.report", "write report.html of one run, or of several of the same task"),
    "presets": ("memenvs.agents.cli.presets", "list the presets, or show the settings of one"),
    "paths": ("memenvs.agents.cli.paths", "draw the paths of runs' agents, random and oracle, and a metric by step"),
    "trajectories": ("memenvs.agents.cli.trajectories", "write an agent's trajectories on the graphs of R2R or CVDN"),
    "ask": ("memenvs.agents.cli.ask", "type questions about a household robot's life; a trained model answers"),
    "answer": ("memenvs.agents.cli.answer", "fill a model's answers into a file of `memenvs verbalization questions`"),
    "study": ("memenvs.agents.cli.study", "train the runs of a study that have no row yet, and print its tables"),
    "work": ("memenvs.agents.cli.work", "do the next run of a study that nobody works on, in any number of shells"),
    "push": ("memenvs.agents.cli.push", "write the agent of a run, with a model card, into a folder or onto the Hub"),
    "pull": ("memenvs.agents.cli.pull", "make a run folder of a published agent, for evaluate, record and report"),
}
