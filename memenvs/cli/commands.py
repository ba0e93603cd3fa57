"""The table of commands about environments; adding a command is one row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        name: First word on the command line.
        module: Its module, imported when the command is called. `add_arguments(parser)` declares its arguments;
            `run(arguments)` does the work and returns the document that --json prints, or None for none.
        help: One line for `--help`.
    """

    name: str
    module: str
    help: str


COMMANDS = (
    Command(
        "list", "memenvs.cli.listing", "every id, what must be remembered, and what it needs beyond the core install"
    ),
    Command(
        "rollout", "memenvs.cli.rollout", "play episodes; mean and standard error of every metric in the final info"
    ),
    Command("bench", "memenvs.cli.bench", "speed of the vector environment with random actions, compilation apart"),
    Command(
        "house",
        "memenvs.cli.house",
        "one home: statistics, a map, an export for other simulators; or a check of a file",
    ),
    Command(
        "assets",
        "memenvs.cli.assets",
        "sizes of assets, which files of ProcTHOR houses need, from a database of assets",
    ),
    Command("play", "memenvs.cli.play", "drive an environment by keyboard (needs memenvs[play])"),
    Command(
        "record",
        "memenvs.cli.record",
        "record a policy in an environment, the agent of a run or a model as a video; .mp4 needs memenvs[video]",
    ),
    Command(
        "dataset",
        "memenvs.cli.dataset",
        "write whole trials of a policy or of a run's agent as a Minari dataset (needs memenvs[minari])",
    ),
    Command(
        "score",
        "memenvs.cli.score",
        "score a file of results: trajectories of R2R or NDH, or answers about a robot's life",
    ),
    Command(
        "certify",
        "memenvs.cli.certify",
        "how much of an environment needs a memory: scores of a policy without one, of windows, of an ideal one",
    ),
    Command("test-set", "memenvs.cli.test_sets", "the trials that everyone plays: seeds, settings and their hash"),
    Command(
        "warmup",
        "memenvs.cli.warmup",
        "compile what environments and learners need ahead of their first use; takes a minute or two, once",
    ),
    Command("doctor", "memenvs.cli.doctor", "what works on this machine, and why the rest does not"),
    Command(
        "verbalization",
        "memenvs.verbalization.cli",
        "questions about a robot's life: write them, rate answers, or gate a build of the data",
    ),
)
