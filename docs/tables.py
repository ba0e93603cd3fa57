"""Print the tables of the README (memory, verdicts) and of docs/choosing.md (choices).

python docs/tables.py [memory verdicts choices]     # default: all
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from memenvs.agents.experiments.statistics import format_percent, format_runs
from memenvs.agents.study import ROWS, Rows, Table, read_rows
from memenvs.cli.listing import verdict_cell
from memenvs.registry import ENVIRONMENTS, find_environment

STUDIES = Path(__file__).parents[1] / "studies"
#: Verdict -> what was found, in the words of the table.
VERDICTS = {
    "long": "with the last 16 steps, policies that we tried gain less than a quarter of what a perfect memory gains",
    "short": "with the last 16 steps, or a note left in the world (such as its heading), one gains a quarter or more",
    "none": "the present view is nearly as good as the best play",
}


def verdicts() -> Table:
    """The ids of this package by the verdict of their certificates; one row a verdict."""
    rows = []
    for verdict, text in VERDICTS.items():
        names = [
            f"`{spec.name}`" + "*" * verdict_cell(spec).endswith("*")
            for spec in ENVIRONMENTS
            if verdict_cell(spec).rstrip("*") == verdict
        ]
        rows.append([f"**{verdict}** ({len(names)})", text, ", ".join(names) or "-"])
    return Table("Ids by verdict", ["verdict", "what was found", "ids"], rows)


def memory() -> Table:
    """Score with memory, with a wiped memory, and of a window; one row a task, certified long."""
    gap = "[Darkroom-Gap](studies/needs_memory/page.md) with `max_episode_steps=45`, return in episode 10"
    led = "[VisualMatch-Led](studies/needs_memory/page.md), success, %"
    rows = [
        [
            "the cell that gave reward, over a blank gap",
            gap,
            _study("darkroom-gap-20", "trxl") + ", " + _study("darkroom-gap-20", "relic"),
            _study("darkroom-gap-20", "lstm"),
            _study("darkroom-gap-20", "window of 16"),
        ],
        [
            "the colour of a ball, while the agent is led",
            led,
            _study("visual-match-led", "MVFO of 40", 100),
            _study("visual-match-led", "FIFO of 40", 100),
            _study("visual-match-led", "window of 16", 100),
        ],
        [
            "dances from before a long stay",
            "[Room Ballet](studies/room_ballet/page.md) ABA, right answers, %",
            *(f"{_accuracy('room_ballet', 'aba', memory)} (`{memory}`)" for memory in ("sat-pm", "sat-fifo")),
            "12.5 (chance)",
        ],
        [
            "the colour of a square in the first view",
            "[ColorRecall](studies/pictures/page.md) of 100 steps, right answers, %",
            *(f"{_accuracy('pictures', 'colour', strategy)} ({strategy.upper()})" for strategy in ("mvfo", "fifo")),
            "16.7 (chance)",
        ],
    ]
    header = ["what must be remembered", "measured", "with memory", "has forgotten it", "last 16 steps"]
    return Table("What memory is worth", header, rows)


def _study(task: str, memory: str, factor: float = 1.0) -> str:
    """Score of a memory in the last episode, over the seeds of the study "Does your task need memory?"."""
    metric = "return" if task.startswith("darkroom") else "success"
    scores = _rows("needs_memory").means(task, memory, metric)[:, -1]
    return f"{format_runs(factor * scores, '.1f', '.1f')} (`{memory}`)"


def _accuracy(study: str, task: str, method: str) -> str:
    """Right answers of a method in %, over the seeds of a study."""
    return format_percent(_rows(study).means(task, method, "accuracy"))


def _rows(study: str) -> Rows:
    """Rows of a study."""
    return read_rows(STUDIES / study / ROWS)


#: What is studied, id to start with, how agents learn it, settings of what is observed, a preset and its minutes.
CHOICES = (
    ("a place, over episodes", "Darkroom-Gap-v0", "reinforcement", "", "`demo-gap`, 3 min"),
    ("a colour, over episodes", "FourBoxes-Gap-v0", "reinforcement", "", "none yet (`fourboxes`: without the gap)"),
    ("objects in a home, over episodes", "ExtObjNav-Small-v0", "reinforcement", "", "`extobjnav-small`, 60 min"),
    ("where one has been", "Coverage-Small-v0", "reinforcement", "", "`examples/scene_memory.py`, 6 min"),
    (
        "where one has searched",
        "Search-v0",
        "reinforcement",
        "",
        "none yet (study `scene_memory`: `Search-Small-v0`)",
    ),
    (
        "a colour, over a stay",
        "VisualMatch-Led-v0",
        "reinforcement",
        '`obs="one_hot"`, `place=True`',
        "`examples/visual_match.py`, 2 min",
    ),
    (
        "a colour, over a stay in a room",
        "TwoRooms-Led-v0",
        "reinforcement",
        "",
        "none yet (study `visual_match`: `TwoRooms-v0`)",
    ),
    ("a colour, over a tour", "ColorRecall-v0", "prediction", "", "study `pictures`, 2 min"),
    (
        "dances, by place and time",
        "RoomBallet-MVFO-v0",
        "prediction",
        "",
        "`room-ballet --env memenvs/RoomBallet-MVFO-v0 --policy.strategy mvfo`, 3 to 10 min",
    ),
    ("dances, over a stay", "RoomBallet-ABA-v0", "prediction", "", "study `room_ballet`, 2 min"),
    ("pictures", "FFHQWorld-v0", "prediction of pictures", "", "`sat-pictures`, 3 min of a GPU"),
    ("moving pictures", "Ballet3D-v0", "prediction of pictures", "", "study `pictures`, 14 min"),
    ("a life of weeks", "EpisodicQA-Long-v0", "prediction", "", "none yet (study `episodic_qa`: `EpisodicQA-v0`)"),
    ("progress in a text", "VLN-R2R-Long-v0", "imitation", "", "none yet (`vln-laptop`: one leg)"),
)


def choices() -> Table:
    """For each kind of memory an id to start with, and the scores of its certificate."""
    rows = []
    for subject, name, learning, observation, agent in CHOICES:
        spec = find_environment(name)
        certificate = spec.load_certificate()
        assert certificate is not None
        means = (certificate.best_memoryless.mean, certificate.row("ideal").mean)
        low, high = (f"{round(mean, 4) + 0.0:.3g}" for mean in means)  # + 0.0: not "-0"
        scores = f"{low} → {high} (`{spec.score_key}`)"
        rows.append([subject, f"`{name}`", verdict_cell(spec), learning, observation or "as it is", scores, agent])
    header = [
        "to be remembered",
        "start with",
        "verdict",
        "learned by",
        "observe",
        "without → with memory",
        "agent here",
    ]
    return Table("Environments by what is remembered", header, rows)


TABLES = {"memory": memory, "verdicts": verdicts, "choices": choices}


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TABLES)} (default all)")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in TABLES]
    if unknown:
        parser.error(f"unknown {unknown[0]!r}; choose from {', '.join(TABLES)}")
    for name in options.names or TABLES:
        print(f"\n{TABLES[name]().markdown()}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
