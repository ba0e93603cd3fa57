"""Memories of a robot's days: which can answer questions about old episodes (EMV).

A memory reads the key frames of up to five episodes without knowing the question; a head then answers in structured
form, or a T5 in words. Test histories have 1, 2, 3, 5, 10, 20 or 50 episodes; one more test has eight times as many of
five. Tables show right answers by length of the history, by how many episodes back the question is, and by kind.
Memories are compared at nearly equal numbers of vectors: 20 and 21, or 26. A run of `main` takes three to eight minutes
of one core, the last test not counted.

    main       ct-lt, ct, ct-26, ct-slots, ct-log, ml-ct-lt, lstm-o1, lstm-o1-26, lstm-on, text-only
    longer     ct-lt, ct, lstm-o1, ct-26 and ct-log with three times as many batches, a wider head and a lower learning
               rate; 22 to 25 minutes of one core a run
    forms      ct-lt-learned, ml-ct-lt, layers of the thesis, blocks whose steps see each other
    inputs     symbols, signals or images alone
    wide       ct-lt, ct and lstm-o1 with vectors of 128 numbers in place of 64, and more long histories; 16 to 23
               minutes of one core a run
    wide-head  as `wide`, with a head of 384 numbers in place of 192, and 3,200 batches in place of 5,000; 22 to 26
               minutes of one core a run
    wide-words   answers in words by a T5 with new weights; the runs of `wide` are trained first, and their heads read
               the memory for it; ten minutes of one core more
    words      the same T5 alone, with new memories; seven minutes of a GPU a run, hours of a core
    auto-encoder   an episode auto-encoder beside the answers, before them, or with a memory frozen after it
    thesis     histories and questions as in the thesis, with its shortcuts: ct-lt and text-only

If the command is stopped, the same command resumes, also in the middle of a run.

    python examples/episodic_qa.py [--tables main] [--seeds 0 1 2] [--jobs 2] [--hide] [--device cpu] [--out DIR]
        [--show]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import replace
from pathlib import Path

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.experiments.report import Report
from memenvs.agents.presets import find_preset, folder_name
from memenvs.agents.studies.question_answering import (
    EVALUATIONS,
    HIDDEN,
    add_tables,
    train_and_evaluate,
    train_and_hide,
)
from memenvs.agents.studies.sweep import SweepRun, run_sweep, sweep_options

TABLES = {
    "main": ["", "ct", "ct-26", "ct-slots", "ct-log", "ml-ct-lt", "lstm-o1", "lstm-o1-26", "lstm-on", "text-only"],
    "longer": ["longer", "longer-ct", "longer-lstm-o1", "longer-ct-26", "longer-ct-log"],
    "forms": ["", "ct-lt-learned", "ml-ct-lt", "bidirectional", "faithful-layers"],
    "inputs": [
        "",
        "only-symbols",
        "only-signals",
        "only-images",
        "only-signals-images",
    ],
    "wide": ["wide", "wide-ct", "wide-lstm-o1"],
    "wide-head": ["wide-head", "wide-head-ct", "wide-head-lstm-o1"],
    "wide-words": ["wide-text", "wide-text-ct", "wide-text-lstm-o1"],
    "words": ["longer-text", "longer-text-ct", "longer-text-lstm-o1"],
    "auto-encoder": ["", "auto-encoder", "auto-encoder-first", "auto-encoder-frozen"],
    "thesis": ["thesis-data", "thesis-data-text-only"],
}
#: Preset -> the one whose memory it starts with.
FIRST_STAGES = {
    "episodic-qa:wide-text": "episodic-qa:wide",
    "episodic-qa:wide-text-ct": "episodic-qa:wide-ct",
    "episodic-qa:wide-text-lstm-o1": "episodic-qa:wide-lstm-o1",
}


def smoke_config(config: RunConfig) -> RunConfig:
    """Shorten a run to seconds."""
    small = {"scale": "smoke", "questions": 4}
    return replace(
        config,
        total_steps=4,
        env_kwargs={**config.env_kwargs, **small},
        eval_kwargs={**config.eval_kwargs, **small},
        eval_trials=4,
        learner=replace(config.learner, validation_episodes=4, batch_size=4),
        policy={**config.policy, "questions": 4},
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tables", nargs="+", default=["main"], choices=list(TABLES), metavar="TABLE", help="(default main)"
    )
    parser.add_argument(
        "--hide", action="store_true", help="also hide the long-term vectors of a trained ct-lt and ct-log"
    )
    parser.add_argument("--device", default="cpu", help="device of each run (default cpu)")
    options = sweep_options(parser, "runs/episodic_qa")

    def config_of(preset: str, seed: int) -> RunConfig:
        config = replace(find_preset(preset), seed=seed, device=options.device)
        return smoke_config(config) if options.smoke else config

    def folder_of(preset: str, seed: int) -> Path:
        return options.out / folder_name(preset, seed)

    runs: dict[Path, SweepRun] = {}
    names = {table: ["episodic-qa" + f":{each}" * bool(each) for each in TABLES[table]] for table in options.tables}
    for seed, presets in itertools.product(options.seeds, names.values()):
        for preset in presets:
            config = config_of(preset, seed)
            if config.encoder_from is not None:
                first = FIRST_STAGES[preset]
                config = replace(config, encoder_from=str(folder_of(first, seed)))
                runs.setdefault(folder_of(first, seed), SweepRun(config_of(first, seed), train_and_evaluate, ()))
            is_hidden = options.hide and config.policy["memory"] in ("ct-lt", "ct-log")
            work, results = (train_and_hide, (*EVALUATIONS, HIDDEN)) if is_hidden else (train_and_evaluate, EVALUATIONS)
            runs[folder_of(preset, seed)] = SweepRun(config, work, results)
    done = run_sweep(parser, options, runs)
    report = Report("Episodic memory verbalization: structured answers", options.out)
    for presets in names.values():
        folders = {preset: [folder_of(preset, seed) for seed in options.seeds] for preset in presets}
        found = {preset: [each for each in of_preset if each in done] for preset, of_preset in folders.items()}
        found = {preset: of_preset for preset, of_preset in found.items() if of_preset}
        if found:
            add_tables(report, found)
    print(f"report: {report.write(options.out / 'report.html').resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
