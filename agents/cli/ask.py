"""`memenvs ask`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memenvs.cli.common import UserError, print_json

if TYPE_CHECKING:
    from memenvs.agents.papers.emv.conversation import Conversation, Reply
    from memenvs.agents.papers.emv.learner import AnsweringModel

ARGUMENTS = """
model MODEL?: folder of a run of the preset episodic-qa, or a checkpoint of one (default: the model of the package)
--life K=2: number of the life, any
--episodes N=3: its episodes
--question TEXT*: a question; may be given several times. Without it, questions are the lines of standard input, or are
    typed, until Ctrl-D
--gold: show the answer by what happened too

Example: memenvs ask --life 7 --question "what did you grasp today at about 03 PM?" --gold
"""

ANSWERER = Path(__file__).parents[1] / "papers" / "emv" / "episodic-qa.zip"
"""Checkpoint of a trained model that answers questions; it comes with the package."""
EXAMPLES = 5
"""Questions that are shown as examples."""
MOST_FRAMES = 3
"""Key frames that are named for each answer."""


def run(arguments: argparse.Namespace) -> None:
    """Answer questions of `--question`, of standard input, or of a conversation."""
    check_model(arguments)
    is_typed = not arguments.question and sys.stdin.isatty()
    if is_typed and arguments.json:
        raise UserError("--json needs --question, or questions on standard input")

    from memenvs.agents.papers.emv.conversation import Conversation

    conversation = Conversation(load_model(arguments), arguments.life, arguments.episodes)
    lines = arguments.question or (_typed() if is_typed else filter(None, map(str.strip, sys.stdin)))
    if arguments.json:
        records = [_answer(conversation, text, arguments) for text in lines]
        life = {"seed": arguments.life, **conversation.describe()}
        print_json({"model": str(arguments.model), "life": life, "answers": records})
        errors = [record.get("error") for record in records]
    else:
        _print_life(conversation, arguments)
        if is_typed:
            _print_hints(conversation, arguments)
        errors = _converse(conversation, arguments, lines, is_echoed=not is_typed)
    failed = [error for error in errors if error]
    if failed and not is_typed:
        raise UserError(f"{len(failed)} of {len(errors)} questions have no answer; the first: {failed[0]}")


def check_model(arguments: argparse.Namespace) -> None:
    """Refuse a model that is not there; without one it is that of the package."""
    arguments.model = arguments.model or ANSWERER
    if not arguments.model.exists():
        raise UserError(f"argument model: no folder of a run and no checkpoint at {arguments.model}")


def load_model(arguments: argparse.Namespace) -> AnsweringModel:
    """Load the model that a command names; it answers with one thread."""
    check_model(arguments)

    import torch

    from memenvs.agents.papers.emv.experiment import load_answering

    torch.set_num_threads(1)  # the models are small: more threads wait for each other
    return load_answering(arguments.model)


def _answer(conversation: Conversation, text: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return an answer, or why there is none, as JSON."""
    try:
        return _record(conversation, text, conversation.ask(text), arguments.gold)
    except ValueError as error:
        return {"question": text, "error": str(error), "unknown_words": list(getattr(error, "words", ()))}


def _typed() -> Iterator[str]:
    """Yield what a person types, until the end of the input."""
    with suppress(ImportError):  # it is not there on Windows
        import_module("readline")  # lines can be edited, and earlier ones called up
    with suppress(EOFError):
        while True:
            if text := input("> ").strip():
                yield text
    print()


def _converse(
    conversation: Conversation, arguments: argparse.Namespace, lines: Iterable[str], *, is_echoed: bool
) -> list[str | None]:
    """Answer questions; return for each why it has no answer, or None."""
    errors: list[str | None] = []
    for text in lines:
        if is_echoed:
            print(text)
        try:
            reply = conversation.ask(text)
        except ValueError as error:
            errors.append(str(error))
            _print_error(conversation, error)
            continue
        errors.append(None)
        print(reply.answer)
        _print_details(conversation, reply, arguments.gold)
    return errors


def _print_error(conversation: Conversation, error: ValueError) -> None:
    from memenvs.verbalization.language.times import FutureTimeError

    words = getattr(error, "words", ())
    is_of_time = isinstance(error, FutureTimeError) or error.__cause__ is not None
    if words:
        print(f"I do not know: {', '.join(words)}.")
    else:
        print(f"{error}{f'; this life is {conversation.dates}' * is_of_time}")


def _print_life(conversation: Conversation, arguments: argparse.Namespace) -> None:
    life, count = conversation.describe(), len(conversation.history)
    print(
        f"Life {arguments.life} of a household robot: {count} episode{'s' * (count != 1)}, {life['key_frames']} key "
        f"frames, {conversation.dates}.\nIt is now {life['now']}."
    )


def _print_hints(conversation: Conversation, arguments: argparse.Namespace) -> None:
    memory = conversation.model.settings.memory
    print(
        f"{_describe(arguments)} has read the key frames once, into its memory ({memory}), and knows nothing else.\n"
        "Type a question, such as:"
    )
    for text in conversation.examples(EXAMPLES):
        print(f"  {text}")


def _describe(arguments: argparse.Namespace) -> str:
    return "The model of the package" if arguments.model == ANSWERER else f"The model {arguments.model}"


def _print_details(conversation: Conversation, reply: Reply, gold: bool) -> None:
    """Print the key frames that count most, and with `gold` the gold answer."""
    from memenvs.verbalization.diary import date_text

    if reply.is_outside:
        print(f"  nothing happened then: this life is {conversation.dates}")
    record = _record(conversation, reply.question, reply, gold)
    if sum(record.get("episodes", ())):
        shares = [(share, number) for number, share in enumerate(record["episodes"], 1)]
        named = [f"{number} ({100 * share:.0f} %)" for share, number in sorted(shares, reverse=True)[:3]]
        print(f"  depends on episode {', '.join(named)}; most on:")
        for frame in record["key_frames"]:
            print(f"    {date_text(frame['time'])}  {frame['text']} ({100 * frame['share']:.0f} %)")
    if gold:
        print(f"  gold: {reply.gold}  (the answer is {reply.category})")


def _record(conversation: Conversation, text: str, reply: Reply, gold: bool) -> dict[str, Any]:
    """Return an answer as JSON."""
    record: dict[str, Any] = {"question": text, "parsed_as": reply.question, "answer": reply.answer}
    if gold:
        record |= {"gold": reply.gold, "category": reply.category, "gold_episodes": [i + 1 for i in reply.episodes]}
    if reply.shares is not None:
        from memenvs.verbalization.diary import describe_key_frames

        frames = describe_key_frames(conversation.history)
        shares = [0.0] * len(conversation.history)
        for frame, share in zip(frames, reply.shares.tolist(), strict=True):
            shares[frame.episode] += share
        most = sorted(zip(reply.shares.tolist(), range(len(frames)), strict=True), reverse=True)[:MOST_FRAMES]
        record |= {
            "episodes": shares,
            "key_frames": [
                {"episode": frames[i].episode + 1, "time": frames[i].time, "text": frames[i].text, "share": share}
                for share, i in most
            ],
        }
    return record
