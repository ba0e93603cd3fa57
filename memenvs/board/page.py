"""The page of a board: a table for each test set, best entries first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from memenvs.board.entry import OLD, Entry, check_entry, read_entry
from memenvs.certificates.test_sets import find_test_set
from memenvs.files import list_files
from memenvs.registry import find_environment

#: Standard errors within which a score is reproduced.
CLOSE = 2.0
INTRODUCTION = """\
# Board

Scores on [test sets](../docs/choosing.md#which-number-to-report), with the actions that show them: every episode is a
function of id, seed, trial and index, so anyone can replay an entry without its code. Add yours by a
[pull request](../CONTRIBUTING.md#add-an-entry-to-the-board).

- *reported*: the entry has scores alone.
- *replayed*: its actions give its scores. `make test` plays those of all entries (`memenvs board check`).
- *reproduced*: replayed, and so is an entry of another author with the same settings and other actions, within two
  standard errors.

A replay shows that these actions reach these scores. It cannot show who chose them: an agent with this memory, another
one, or a program that knew the truth. Budgets of training differ; the links have them.

± is a standard error over trials, or over runs if larger. *Share* is 0 for the best policy without a memory and 1 for
the ideal one, by the [certificate](../docs/certificates.md). In trials of several episodes those after the first count.
*Pretrained* agents learned, wholly or in part, elsewhere or in other settings. *Privileged* ones observe more than the
id shows.

<!-- made by: memenvs board page -->
"""


def entry_folders(board: Path) -> list[Path]:
    """List the folders of the entries of a board, but for those of `OLD`.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    if not board.is_dir():
        raise FileNotFoundError(f"no board at {board}")
    return [path for path in list_files(board, "*/*") if path.is_dir() and path.parent.name != OLD]


def make_page(board: Path) -> str:
    """Make the page of a board, as Markdown. Nothing is played.

    Raises:
        FileNotFoundError: There is no such folder, or a file of an entry is missing.
        ValueError: An entry cannot be read, or is refused by `check_entry`.
    """
    sections = []
    folders = entry_folders(board)
    for path in folders:
        check_entry(read_entry(path), path)
    for entries in _by_folder(folders).values():
        first = entries[0]
        trials, certificate = find_test_set(first.id, first.test_set), find_environment(first.id).load_certificate()
        text = f"{trials.trials} trials, hash `{trials.hash[:15]}`."
        if certificate is not None:
            best, ideal = certificate.best_memoryless, certificate.row("ideal")
            text += f" The score is `{certificate.score_key}`: {best.mean:.4g} without a memory ({best.name}), "
            text += f"{ideal.mean:.4g} with an ideal one."
        sections += [f"## {find_environment(first.id).name}, test set {trials.name}", text]
        for title, group in (
            ("", [entry for entry in entries if entry.kind != "privileged"]),
            ("Privileged:", [entry for entry in entries if entry.kind == "privileged"]),
        ):
            if group:
                sections += [title, _table(group, entries)] if title else [_table(group, entries)]
    old = _by_folder([path for path in list_files(board / OLD, "*/*") if path.is_dir()])
    if old:
        sections += ["## Old", "Entries of episodes that the ids no longer have. Their scores compare with no other."]
        for folder, entries in old.items():
            sections += [f"{folder}, hash `{entries[0].hash[:15]}`:", _table(entries, entries, is_old=True)]
    return "\n\n".join([INTRODUCTION.rstrip("\n"), *sections]) + "\n"


def mark(entry: Entry, others: Iterable[Entry]) -> str:
    """Mark of an entry: "reported", "replayed" or "reproduced".

    Args:
        entry: The entry; its actions, if it has them, give its scores (`check_replay`).
        others: Entries on the same test set.
    """
    if not entry.has_actions:
        return "reported"
    again = any(
        other.has_actions
        and other.author.casefold() != entry.author.casefold()
        and (other.settings, other.kind) == (entry.settings, entry.kind)
        and not _have_the_same_run(entry, other)
        and abs(other.mean - entry.mean) <= CLOSE * math.hypot(entry.stderr, other.stderr)
        for other in others
    )
    return "reproduced" if again else "replayed"


def _have_the_same_run(entry: Entry, other: Entry) -> bool:
    """Check whether a run of one has the actions of a run of the other, as in a copy."""
    actions, others = ([np.concatenate(run.actions or ()) for run in own.runs] for own in (entry, other))
    return any(np.array_equal(one, two) for one in actions for two in others)


def _by_folder(paths: Sequence[Path]) -> dict[str, list[Entry]]:
    """Name of a test set's folder -> its entries."""
    folders: dict[str, list[Entry]] = {}
    for path in paths:
        folders.setdefault(path.parent.name, []).append(read_entry(path))
    return folders


def _table(entries: Sequence[Entry], others: Sequence[Entry], *, is_old: bool = False) -> str:
    """Table of entries, the best first."""
    head = ["entry", "memory", "class", "score", "share", "first episode", "runs", "mark", "author", "version"]
    lines = [head, ["---"] * len(head)]
    for entry in sorted(entries, key=lambda entry: (-entry.mean, entry.name)):
        certificate = None if is_old else find_environment(entry.id).load_certificate()
        share = None if certificate is None else certificate.share(entry.mean)
        observed = "".join(f", {name}={value}" for name, value in sorted(entry.observed.items()))
        episodes = {len(scores) for run in entry.runs for scores in run.scores}
        firsts = [scores[0] for run in entry.runs for scores in run.scores]
        lines.append(
            [
                f"[{entry.name}]({entry.link})",
                entry.memory,
                entry.kind + observed,
                f"{entry.mean:.4g} ± {entry.stderr:.2g}",
                "-" if share is None else f"{share:.2f}",
                "-" if episodes == {1} else f"{sum(firsts) / len(firsts):.4g}",
                str(len(entry.runs)),
                "old" if is_old else mark(entry, others),
                entry.author,
                entry.version,
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
