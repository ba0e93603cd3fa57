"""The README's tables: ids by verdict, and what memory is worth in ids that need a long one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from memenvs.agents.experiments.statistics import format_percent
from memenvs.agents.studies.study_results import metric_means
from memenvs.cli.listing import verdict_of
from memenvs.registry import ENVIRONMENTS
from result_pages.room_ballet import ballet
from result_pages.shared import folders, format_fixed, print_table

STUDY = Path(__file__).parents[2] / "studies" / "needs_memory" / "rows.jsonl"
#: Verdict -> what was found, in the words of the table.
VERDICTS = {
    "long": "no policy that we scripted with the last 16 steps gets a quarter of the way from the best memoryless "
    "policy to an ideal memory",
    "short": "a window of at most 16 steps, or a note in the world, gets that far",
    "none": "the present view is nearly enough",
}


def print_verdicts() -> None:
    """List the ids of this package by the verdict of their certificates; one row a verdict."""
    rows = []
    for verdict, text in VERDICTS.items():
        names = [f"`{spec.name}`" for spec in ENVIRONMENTS if verdict_of(spec) == verdict]
        rows.append([f"**{verdict}** ({len(names)})", text, ", ".join(names) or "-"])
    open_ids = [f"`{spec.name}`" for spec in ENVIRONMENTS if verdict_of(spec) is None]
    if open_ids:
        rows.append([f"open ({len(open_ids)})", "not certified yet", ", ".join(open_ids)])
    print_table("Ids by verdict", ["verdict", "what was found", "ids"], rows)


def print_memory() -> None:
    """Score with memory, with a wiped memory, and of a window; one row a task, certified long."""
    gap = "[Darkroom-Gap](studies/needs_memory/page.md), episodes of 25 steps, return in the tenth"
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
            "[Room Ballet](docs/room_ballet.md) ABA, right answers, %",
            *(f"{format_percent(ballet(f'ballet-aba:{run}'))} (`{run}`)" for run in ("sat-pm", "sat-fifo")),
            "12.5 (chance)",
        ],
        [
            "the colour of a square in the first view",
            "[ColorRecall](docs/research_notes/faces.md) of 100 steps, right answers, %",
            *(
                f"{format_percent(metric_means(folders('sat_pictures', f'sat-pictures-colour-{run}'), 'accuracy'))} "
                f"({run.upper()})"
                for run in ("mvfo", "fifo")
            ),
            "16.7 (chance)",
        ],
    ]
    header = ["what must be remembered", "measured", "with memory", "has forgotten it", "last 16 steps"]
    print_table("What memory is worth", header, rows)


def _study(task: str, memory: str, factor: float = 1.0) -> str:
    """Score of a memory in the last episode, over the seeds of the study "Does your task need memory?"."""
    rows = [json.loads(line) for line in STUDY.read_text().splitlines()]
    scores = [row["scores"][-1] for row in rows if (row["task"], row["memory"]) == (task, memory)]
    return f"{format_fixed(factor * np.array(scores), 1)} (`{memory}`)"
