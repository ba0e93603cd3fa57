"""VLN on the command line: `score`.

The command imports this module to name its tasks. The function therefore imports what it needs when it is called.
"""

from __future__ import annotations

import argparse

from memenvs.cli.score import Scorer


def run_score(arguments: argparse.Namespace) -> dict[str, float]:
    """Score a file of trajectories and print the means."""
    from memenvs.checks import choices_for
    from memenvs.cli.common import UserError, as_user_error
    from memenvs.vln.results import LENGTHS, SPLITS, load_world, score_paths

    task = arguments.task
    splits = SPLITS[task]
    if arguments.split not in splits:
        raise UserError(f"argument --split: unknown split {arguments.split!r}; {choices_for(arguments.split, splits)}")
    data = arguments.data or "$MEMENVS_DATA/vln"
    with as_user_error(f"--split {arguments.split}, --data {data}", ValueError, OSError):
        world, tours = load_world(task, arguments.split, arguments.data)
    with as_user_error("FILE", ValueError, OSError):
        metrics = score_paths(task, arguments.file, world, tours)
    if not arguments.json:
        print(f"{task} {arguments.split}")
        width = max(4, *map(len, metrics))
        for name, value in metrics.items():
            print(f"{name:{width}}  {value:.4f}{' m' * (name in LENGTHS)}")
    return metrics


SCORERS = {
    "r2r": Scorer(
        help="JSON list of {instr_id, trajectory: [[viewpoint, heading, elevation], ...]}",
        run=run_score,
        needs_split=True,
    ),
    "ir2r": Scorer(help="the same; the tours are tours_iVLN.json among the data", run=run_score, needs_split=True),
    "ndh": Scorer(help="the same with inst_idx in place of instr_id", run=run_score, needs_split=True),
}
