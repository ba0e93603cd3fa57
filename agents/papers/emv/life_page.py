"""Page about one life, the history of a robot: timeline, questions, sources of answers."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memenvs.agents.experiments.report import Report
from memenvs.agents.memory import Memory
from memenvs.agents.memory.compressive.memory import CompressiveMemory
from memenvs.verbalization.diary import date_text, describe_episode, describe_key_frames
from memenvs.verbalization.episodes import History
from memenvs.verbalization.language.score import CATEGORIES, CORRECT, TMI_CORRECT

if TYPE_CHECKING:
    from memenvs.agents.papers.emv.conversation import Conversation, Reply

_QUEUE_NAMES = {"long_term": "long-term state", "memory": "newest blocks", "outputs": "unfinished block"}
_WIDTH, _BAR, _GAP, _NARROW = 1000, 34, 4, 140
_STYLE = (
    "<style>.ask{background:var(--box);border-radius:8px;padding:.8rem 1rem;margin:1rem 0;"
    "border-left:6px solid var(--strong)}.ask.right{border-left-color:#009e73}.ask.wrong{border-left-color:#d55e00}"
    ".ask p{margin:.15rem 0}.ask .q{font-weight:600}.ask small,.key{color:var(--soft)}.life{display:block;width:100%}"
    ".life rect.cell{fill:#0072b2}.life rect.episode{fill:none;stroke:var(--line)}"
    ".life{height:2rem}.life rect.meant{stroke:var(--text);stroke-width:3;vector-effect:non-scaling-stroke}"
    ".names{display:flex;font-size:.75rem;color:var(--soft);text-align:center}"
    ".shares{display:flex;height:.7rem;border-radius:4px;overflow:hidden;margin:.4rem 0 .2rem}"
    ".days{padding-left:1.9rem}.days li{margin:.3rem 0}</style>"
)
_COLOURS = ("#7f3c8d", "#56b4e9", "#0072b2", "#e69f00", "#8c564b", "#cc79a7")


def vector_names(memory: Memory, count: int) -> list[str]:
    """Name the part of the memory that each of its vectors belongs to.

    Args:
        memory: A memory with the method `vectors`.
        count: Number of vectors.
    """
    if not isinstance(memory, CompressiveMemory):
        return ["outputs"] * count
    return [_QUEUE_NAMES.get(name, name.replace("compressed", "compressed, level ")) for name in memory.vector_parts]


def write_life_page(path: Path, conversation: Conversation, questions: Sequence[str], title: str) -> Path:
    """Ask questions and write the page.

    Args:
        path: The file.
        conversation: The life and the model.
        questions: Questions of the grammar.
        title: Heading.

    Returns:
        The file.

    Raises:
        QuestionError: A question is none of the grammar.
    """
    replies = [conversation.ask(question) for question in questions]
    return make_life_page(conversation, replies, title).write(path)


def make_life_page(conversation: Conversation, replies: Sequence[Reply], title: str) -> Report:
    """Make the page of answers that were given; see `write_life_page`."""
    history = conversation.history
    model = conversation.model
    report = Report(title)
    right = sum(reply.category in (CATEGORIES[CORRECT - 1], CATEGORIES[TMI_CORRECT - 1]) for reply in replies)
    report.cards(
        [
            ("episodes", str(len(history)), f"{history.num_frames} key frames"),
            ("answers", f"{right} of {len(replies)}", "right"),
            ("memory", model.settings.memory, "has read the key frames once, before any question"),
        ]
    )
    report.markup(_STYLE)
    report.heading("What happened")
    items = (
        f"<li><b>{date_text(start)}</b> {html.escape(describe_episode(episode))}</li>"
        for start, episode in zip(history.starts, history.episodes, strict=True)
    )
    report.markup(f'<ol class="days">{"".join(items)}</ol>')
    report.text(f"Now it is {date_text(history.question_time)}.")
    report.heading("Questions")
    report.markup(
        '<p class="key">Each bar is the life: one cell for each key frame, a box for each episode. The darker a cell, '
        "the more the answer depends on it (the gradient of the answer's likelihood). Episodes that the question means "
        "have a thick frame. The line of colours below is the attention to the parts of the memory.</p>"
    )
    memory = model.model.memory
    for reply in replies:
        report.markup(_question_markup(history, reply, memory))
    return report


def _question_markup(history: History, reply: Reply, memory: Memory) -> str:
    """One question with its answer, its bar of key frames and its parts of the memory."""
    is_right = reply.category in (CATEGORIES[CORRECT - 1], CATEGORIES[TMI_CORRECT - 1])
    mark = "&#10003;" if is_right else "&#10007;"
    gold = "" if is_right else f"<p>True answer: {html.escape(reply.gold)}</p>"
    parts = [
        f'<p class="q">{html.escape(reply.question)}</p>',
        f"<p>{mark} {html.escape(reply.answer)} <small>({html.escape(reply.category)})</small></p>",
        gold,
    ]
    if reply.shares is not None:
        parts.append(_bar(history, reply.shares, reply.episodes))
    if reply.vectors is not None and len(reply.vectors):
        parts.append(_memory_line(reply.vectors, vector_names(memory, len(reply.vectors))))
    return f'<div class="ask {"right" if is_right else "wrong"}">{"".join(parts)}</div>'


def _bar(history: History, shares: np.ndarray, meant: Sequence[int]) -> str:
    """Draw the key frames as cells and the episodes as boxes."""
    frames = describe_key_frames(history)
    count, n_gaps = len(frames), len(history) - 1
    cell = (_WIDTH - _GAP * n_gaps) / max(1, count)
    darkest = max(float(shares.max()), 1e-9)
    marks, names = [], []
    for episode, members in groupby(range(count), key=lambda i: frames[i].episode):
        rows = list(members)
        left = rows[0] * cell + episode * _GAP
        for i in rows:
            frame = frames[i]
            about = f"{date_text(frame.time)}: {frame.text} ({100 * shares[i]:.0f} %)"
            marks.append(
                f'<rect class="cell" x="{i * cell + episode * _GAP:.1f}" y="2" width="{cell:.1f}" height="{_BAR}" '
                f'fill-opacity="{shares[i] / darkest:.2f}"><title>{html.escape(about)}</title></rect>'
            )
        kind = "episode meant" if episode in meant else "episode"
        width = len(rows) * cell
        marks.append(f'<rect class="{kind}" x="{left:.1f}" y="2" width="{width:.1f}" height="{_BAR}" />')
        share = f": {100 * shares[rows].sum():.0f}&nbsp;%" if width > _NARROW else ""
        names.append(f'<span style="width:{100 * width / _WIDTH:.1f}%">{episode + 1}{share}</span>')
    return (
        f'<svg class="life" viewBox="-2 0 {_WIDTH + 4} {_BAR + 4}" preserveAspectRatio="none" role="img" '
        f'aria-label="share of each key frame in the answer">{"".join(marks)}</svg>'
        f'<div class="names">{"".join(names)}</div>'
    )


def _memory_line(shares: np.ndarray, names: Sequence[str]) -> str:
    """Draw the attention to each part of the memory, and to none."""
    totals: dict[str, float] = {}
    for name, share in zip(names, shares.tolist(), strict=True):
        totals[name] = totals.get(name, 0.0) + share
    totals["nothing"] = max(0.0, 1.0 - float(shares.sum()))
    colours = dict(zip(totals, (*_COLOURS[: len(totals) - 1], "var(--line)"), strict=False))
    pieces = "".join(
        f'<span style="width:{100 * share:.1f}%;background:{colours[name]}"></span>' for name, share in totals.items()
    )
    key = ", ".join(
        f'<span style="color:{colours[name] if name != "nothing" else "inherit"}">&#9632;</span> {name} '
        f"{100 * share:.0f}&nbsp;%"
        for name, share in totals.items()
    )
    return f'<div class="shares">{pieces}</div><small>{key}</small>'
