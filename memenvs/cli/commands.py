"""The table of commands about environments; adding a command is one row."""

from __future__ import annotations

#: Name -> its module, and one line for `--help`. The module is imported when the command is called. Its text
#: `ARGUMENTS` declares the arguments (`Parser.add_text`). `run` gets them parsed, does the work and returns the
#: document that --json prints, or None for none.
COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("memenvs.cli.listing", "every id, what must be remembered, and what it needs beyond the core install"),
    "rollout": ("memenvs.cli.rollout", "play episodes; mean and standard error of every metric in the final info"),
    "bench": ("memenvs.cli.bench", "speed of the vector environment with random actions, compilation apart"),
    "house": ("memenvs.cli.house", "one home: statistics, a map, an export for other simulators; or check a file"),
    "assets": ("memenvs.cli.assets", "sizes of assets, which files of ProcTHOR houses need, from their databases"),
    "play": ("memenvs.cli.play", "drive an environment by keyboard (needs memenvs[play])"),
    "record": ("memenvs.cli.record", "record a policy or a trained agent as a video; .mp4 needs memenvs[video]"),
    "dataset": ("memenvs.cli.dataset", "write whole trials as a Minari dataset (needs memenvs[minari])"),
    "score": ("memenvs.cli.score", "score a file of trajectories of R2R or NDH, or of answers about a robot's life"),
    "certify": ("memenvs.cli.certify", "how much of an environment needs a memory: scores without one and with one"),
    "test-set": ("memenvs.cli.test_sets", "the trials that everyone plays: seeds, settings and their hash"),
    "board": ("memenvs.cli.board", "add an entry to the board, replay its entries, or write its page"),
    "warmup": ("memenvs.cli.warmup", "compile what everything needs ahead of its first use; a minute or two, once"),
    "doctor": ("memenvs.cli.doctor", "what works on this machine, and why the rest does not"),
    "verbalization": ("memenvs.verbalization.cli", "questions about a robot's life: write a file of them"),
}
