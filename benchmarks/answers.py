"""Time of answers by the length of the history, and questions that share a memory.

    python benchmarks/answers.py [--episodes 1 10 100] [--turns 9] [--smoke] [--json]

The first table has, for each memory and length of the history, its vectors, the bytes of its state and the milliseconds
of CPU time of a clause of an answer once the history is read, and of reading a key frame. `lstm-on`, which keeps every
step, is there for comparison. The second figure is a training step about 32 histories of five episodes with 16
questions each, over one with one question about each of 512 histories; medians and ranges of turns. The last line is
JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import torch
from _peer import machine

from memenvs.agents.algorithms.supervised import SupervisedLearner
from memenvs.agents.memory import StepInputs
from memenvs.agents.papers.emv.data import QuestionArrays, load_arrays
from memenvs.agents.papers.emv.experiment import make_question_answering
from memenvs.agents.papers.emv.learner import QuestionBatch, SlotAnswering
from memenvs.agents.papers.emv.slots import ANSWER_SLOTS
from memenvs.agents.presets import find_preset
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dialogs import load_dialogs
from memenvs.verbalization.language.facts import MAX_CLAUSES

#: Name -> memory, and changes of the settings that `ct-lt` has in the preset; LSTMs have settings of their own.
MEMORIES: dict[str, tuple[str, dict[str, Any]]] = {
    "ct-lt": ("ct-lt", {}),
    "ct": ("ct", {}),
    "ct-26": ("ct", {"compressed_lengths": [10]}),
    "ct-log": ("ct-log", {}),
    "lstm-o1": ("lstm-o1", {"dim": 64, "layers": 2, "capacity": 21}),
    "lstm-on": ("lstm-on", {"dim": 64, "layers": 2}),
}
HISTORIES, QUESTIONS = 32, 16


def make(name: str) -> tuple[SlotAnswering, Any]:
    """Make the untrained model of `episodic-qa` with a memory; also return its settings."""
    config = find_preset("episodic-qa")
    memory, settings = MEMORIES[name]
    if memory.startswith("ct"):
        settings = {**config.policy["memory_kwargs"], **settings}
    config = replace(config, policy={**config.policy, "memory": memory, "memory_kwargs": settings})
    torch.manual_seed(0)
    model = make_question_answering(config.env, {**config.env_kwargs, "scale": "smoke"}, config.policy)
    assert isinstance(model, SlotAnswering)
    return model, config


def cpu_time(work: Callable[[], object], turns: int) -> float:
    """Median CPU time of some work, seconds; the first turn does not count."""
    seconds = []
    for _ in range(turns + 1):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return median(seconds[1:])


@torch.no_grad()
def answers(name: str, arrays: QuestionArrays, episodes: int, turns: int) -> dict[str, Any]:
    """Measure a memory with histories of a length."""
    model = make(name)[0].eval()
    batch = QuestionBatch(arrays, arrays.dialogs.by_length[episodes][:1], np.array([[0]]))
    frames, mask = model.frames(batch)
    embedded = model.model.frames(model.model.codes, frames, mask)
    start = torch.zeros_like(mask)
    start[:, 0] = True
    memory = model.model.memory
    _, state = memory(StepInputs(embedded, start, start), None, last=1)
    vectors, is_filled = memory.vectors(state)
    slots, times = model.select(arrays.slots, batch), model.select(arrays.times, batch)
    end = torch.zeros(1, 1, MAX_CLAUSES, len(ANSWER_SLOTS), dtype=torch.int64)
    head, codes = model.model.head, model.model.codes
    answer = cpu_time(lambda: head.clause_logits(codes, head.read(codes, vectors, is_filled, slots, times), end), turns)
    reading = cpu_time(lambda: model.encode(batch), max(1, turns // 3)) / mask.shape[1]
    return {
        "memory": name,
        "episodes": episodes,
        "key_frames": mask.shape[1],
        "vectors": vectors.shape[1],
        "state_bytes": sum(tensor.numel() * tensor.element_size() for tensor in state.values()),
        "clause_ms": 1000 * answer,
        "reading_ms": 1000 * reading,
    }


def sharing(arrays: QuestionArrays, turns: int) -> dict[str, list[float]]:
    """Measure the ratio of training steps in turn: median, least, most."""
    model, config = make("ct-lt")
    count = HISTORIES * QUESTIONS
    histories = np.resize(np.concatenate(list(arrays.dialogs.by_length.values())), count)
    batches = {
        "shared": QuestionBatch(arrays, histories[:HISTORIES], np.tile(np.arange(QUESTIONS), (HISTORIES, 1))),
        "alone": QuestionBatch(
            arrays, np.repeat(histories[:HISTORIES], QUESTIONS), np.tile(np.arange(QUESTIONS), HISTORIES)[:, None]
        ),
    }
    learner = SupervisedLearner(model, replace(config.learner, batch_size=count), config.total_steps)
    ratios = []
    for turn in range(turns + 1):
        seconds = {}
        for name, batch in batches.items():
            model.sample = lambda count, rng, split, step, batch=batch: batch  # type: ignore[method-assign, misc]
            begin = time.process_time()
            learner.step()
            seconds[name] = time.process_time() - begin
        if turn:
            ratios.append(seconds["alone"] / seconds["shared"])
    return {"ratio": [median(ratios), min(ratios), max(ratios)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--smoke", action="store_true", help="one turn of short histories, to see that it runs")
    parser.add_argument("--json", action="store_true", help="print one line of JSON only")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lengths, turns = ([1, 2], 1) if arguments.smoke else (arguments.episodes, arguments.turns)
    kinds = tuple(find_preset("episodic-qa").env_kwargs["kinds"])
    data = EpisodicQAConfig(scale="smoke", kinds=kinds)
    arrays = load_arrays(load_dialogs(replace(data, split="test", lengths=tuple(lengths), questions=1)))
    rows = [answers(memory, arrays, episodes, turns) for memory in MEMORIES for episodes in lengths]
    dialogs = load_dialogs(replace(data, split="test", lengths=(5,), questions=QUESTIONS))
    shared = sharing(load_arrays(dialogs), turns)
    if not arguments.json:
        print("memory    episodes  key frames  vectors  state KB  clause ms  key frame ms")
        for row in rows:
            print(
                f"{row['memory']:10}{row['episodes']:8}{row['key_frames']:12}{row['vectors']:9}"
                f"{row['state_bytes'] / 1000:10.1f}{row['clause_ms']:11.2f}{row['reading_ms']:14.2f}"
            )
        middle, least, most = shared["ratio"]
        print(f"16 questions sharing a memory, over one each: {middle:.1f}x ({least:.1f} to {most:.1f})")
    print(json.dumps({"rows": rows, "sharing": shared, **machine()}))


if __name__ == "__main__":
    main()
