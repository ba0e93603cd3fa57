"""The README's table of what memory is worth."""

from __future__ import annotations

from memenvs.agents.experiments.statistics import format_mean, format_percent
from memenvs.agents.studies.study_results import metric_means
from result_pages.explorers import EXPLORED, format_explored
from result_pages.in_context import in_context_scores
from result_pages.room_ballet import ballet
from result_pages.shared import folders, format_fixed, print_table
from result_pages.vln import reader_scores, vln_scores


def print_memory() -> None:
    """Score with memory, without, and of a scripted policy almost without; one row a task."""
    rows = [
        [
            "where objects were in earlier episodes",
            "[ExtObjNav](docs/in_context.md), success in the 15th episode, %",
            format_percent(in_context_scores("relic", "success")[:, -1]) + " (`relic`)",
            format_percent(in_context_scores("no-iea", "success")[:, -1]) + " (`no-iea`)",
            "-",
        ]
    ]
    boxes = folders("darkroom", "fourboxes-unseen")
    third, rule = (metric_means(boxes, "return", policy)[:, 2] for policy in ("agent", "memoryless"))
    measured = "[FourBoxes](docs/research_notes/results_darkroom.md), return in the third episode"
    cells = [f"{format_fixed(third, 1)} (`relic`)", "-", f"{rule.mean():.2f} (`memoryless`)"]
    rows.append(["the colour that gave reward in earlier episodes", measured, *cells])
    remembered = {"roaming": "where there is room to move", "coverage": "where it has been"}
    remembered["search"] = "where it has searched"
    for task, (_, unit) in EXPLORED.items():
        with_memory = ", ".join(f"{format_explored(task, run)} (`{run}`)" for run in ("smt-causal", "smt"))
        cells = [with_memory, f"{format_explored(task, 'reactive')} (`reactive`)"]
        rule = f"{format_explored(task, 'window4')} (`window4`)"
        rows.append([remembered[task], f"[{task.capitalize()}](docs/explorers.md), {unit} in 200 steps", *cells, rule])
    cells = [f"{format_percent(ballet(f'ballet-aba:{run}'))} (`{run}`)" for run in ("sat-pm", "sat-fifo")]
    measured = "[Room Ballet](docs/room_ballet.md) ABA, right answers, %"
    rows.append(["dances from before a long stay", measured, *cells, "12.5 (chance)"])
    names = {"last3": "MTVM, last 3 actions", "none": "`no-memory`"}  # run -> MTVM, and its variant
    for legs in (3, 2):
        cells = [f"{format_mean(vln_scores(run, legs))} ({name})" for run, name in names.items()]
        rule = f"{format_percent(reader_scores('vln_memory', f'memoryless-{legs}', 'sr'))} (`memoryless`)"
        measured = f"[R2R](docs/vln.md) of {'three' if legs == 3 else 'two'} legs, success, %"
        rows.append(["how much of a text is done", measured, *cells, rule])
    header = ["what must be remembered", "measured", "with memory", "without", "scripted"]
    print_table("What memory is worth", header, rows)
