"""An entry of the board: data of which nothing is executed."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

import memenvs
from memenvs.array_files import read_npz
from memenvs.certificates.test_sets import find_test_set
from memenvs.checks import choices_for
from memenvs.files import atomic_folder
from memenvs.json_records import each_record, format_json, read_json

Kind = Literal["plain", "pretrained", "privileged"]
#: Settings of what is observed -> kinds of an entry with them.
OBSERVED_KINDS: Mapping[str, tuple[Kind, ...]] = {"place": ("privileged",), "encoder": ("pretrained", "privileged")}
#: Number of this form of entry; it grows when older programs can no longer read it.
FORMAT = 1
ENTRY, ROWS, ACTIONS = FILES = ("entry.json", "rows.jsonl", "actions.npz")
#: Largest file of an entry, bytes.
MAX_BYTES = 5_000_000
#: Folder of a board with entries whose episodes are no longer those of their id.
OLD = "old"
#: Field -> its form. Nothing of this form changes a table of Markdown.
TEXTS: Mapping[str, str] = {
    "name": r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}",
    "id": r"[\w.-]{1,60}/[\w.-]{1,60}",
    "test_set": r"[\w.-]{1,20}",
    "hash": r"sha256:[0-9a-f]{64}",
    "memory": r"[\w .,()+-]{1,60}",
    "settings": r"[0-9a-f]{16}",
    "author": r"(?=.{1,80}$)[\w.,'&-]+( [\w.,'&-]+)*",  # blanks at an end or two in a row would be another author
    "link": r"https://[\w./:~?=&%#+-]{1,200}",
    "version": r"[\w.+-]{1,40}",
    "processor": r"[\w .,()@+/-]{1,80}",
}
_SETTING = re.compile(r"\w{1,40}=[\w ,.='{}\[\]:-]{1,100}")
_MOST = 2**53


def hash_settings(settings: Mapping[str, Any]) -> str:
    """Hash of the settings of a training, which are JSON data: 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def _processor() -> str:
    """Name of the processor of this machine."""
    info = Path("/proc/cpuinfo")  # of Linux, where `platform` does not know the name
    names = re.findall(r"model name\s*: (.*)", info.read_text()) if info.is_file() else []
    name = names[0] if names else platform.processor() or platform.machine() or "unknown"
    return re.sub(r"[^\w .,()@+/-]", "", name)[:80]


@dataclass(frozen=True, eq=False)
class Run:
    """The trials of a test set, as one trained agent played them.

    Attributes:
        seed: Seed of its training.
        scores: Score of each episode of each trial, without one that the end of the trial cuts.
        steps: Steps of each trial.
        actions: Actions of each trial, (T,) or (T, A); None without them.
    """

    seed: int
    scores: tuple[tuple[float, ...], ...]
    steps: tuple[int, ...]
    actions: tuple[np.ndarray, ...] | None

    def trial_scores(self) -> np.ndarray:
        """Score of each trial, float64, (trials,).

        As in certificates: of several episodes the mean of those after the first.
        """
        first = int(max(map(len, self.scores)) > 1)
        return np.array([np.mean(trial[first:]) for trial in self.scores])


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """Scores of one memory on one test set.

    Attributes:
        name: Name of its folder.
        id: Full id.
        test_set: Name of the test set.
        hash: Hash of the test set.
        episode_hash: Hash of the id's episodes, by its certificate; None where it had none.
        memory: The memory, or another name of the agent.
        settings: Hash of the settings of its training, without the seed (`hash_settings`).
        author: Who trained it.
        link: Address of its code, or of a description.
        runs: Its runs, of different seeds.
        kind: "plain": it learned in this id's training alone, and observes what the id shows. "pretrained": it, or a
            part of it, learned elsewhere or in other settings of the id. "privileged": it observes more.
        observed: Settings of what it observes that are not those of the test set.
        version: Version of memenvs.
        processor: Processor on which it acted.

    Raises:
        ValueError: A text has another form than in `TEXTS`, or the kind does not fit what it observes.
    """

    name: str
    id: str
    test_set: str
    hash: str
    episode_hash: str | None
    memory: str
    settings: str
    author: str
    link: str
    runs: tuple[Run, ...]
    kind: Kind = "plain"
    observed: Mapping[str, Any] = field(default_factory=dict)
    version: str = memenvs.__version__
    processor: str = field(default_factory=_processor)

    def __post_init__(self) -> None:
        for name, form in TEXTS.items():
            if not re.fullmatch(form, getattr(self, name)):
                raise ValueError(f"{name} must be of the form {form}, got {getattr(self, name)!r}")
        if self.kind not in get_args(Kind):
            raise ValueError(f"class must be {' or '.join(get_args(Kind))}, got {self.kind!r}")
        observed = {name: list(value) if isinstance(value, tuple) else value for name, value in self.observed.items()}
        object.__setattr__(self, "observed", observed)  # as JSON has them
        for setting, value in observed.items():
            if not _SETTING.fullmatch(f"{setting}={value}"):
                raise ValueError(f"observed must be settings of an environment, got {setting}={value!r}")
            kinds = OBSERVED_KINDS.get(setting)
            if kinds is not None and value and self.kind not in kinds:
                raise ValueError(f"class must be {' or '.join(kinds)} where {setting} is observed, got {self.kind!r}")

    @property
    def folder(self) -> Path:
        """Its folder below that of the board."""
        return Path(f"{self.id.rpartition('/')[2]}_{self.test_set}") / self.name

    @property
    def has_actions(self) -> bool:
        """True if it can be replayed."""
        return all(run.actions is not None for run in self.runs)

    @property
    def mean(self) -> float:
        """Mean score over trials and runs."""
        return float(np.mean([run.trial_scores() for run in self.runs]))

    @property
    def stderr(self) -> float:
        """Standard error of the mean over trials, or over runs if that is larger."""
        scores = np.array([run.trial_scores() for run in self.runs])  # (runs, trials)
        means = [scores.mean(axis) for axis in range(min(2, len(scores)))]
        return float(max(values.std(ddof=1) / np.sqrt(len(values)) for values in means))


def make_entry(name: str, id: str, runs: Iterable[Run], *, test_set: str = "v0", **fields: Any) -> Entry:
    """Make an entry of runs on a test set of today.

    Args:
        name: Name of its folder.
        id: The id; the namespace may be left out.
        runs: Its runs (`memenvs.board.replay.replay`).
        test_set: Name of the test set.
        **fields: Others of `Entry`: memory, settings, author, link, and those that have a default.
    """
    trials = find_test_set(id, test_set)
    return Entry(
        name=name,
        id=trials.id,
        test_set=trials.name,
        hash=trials.hash,
        episode_hash=trials.episode_hash,
        runs=tuple(runs),
        **fields,
    )


def write_entry(board: Path, entry: Entry) -> Path:
    """Write an entry into a board, and return its folder.

    Raises:
        FileExistsError: The board has an entry of this name on this test set.
        ValueError: The entry is refused by `check_entry`, or a file is too large.
    """
    target = board / entry.folder
    check_entry(entry, target, is_new=True)
    record = {"format": FORMAT, **{name: getattr(entry, name) for name in TEXTS if name != "name"}}
    record |= {"episode_hash": entry.episode_hash, "class": entry.kind, "observed": dict(entry.observed)}
    rows = [
        {"seed": run.seed, "trial": k, "steps": run.steps[k], "scores": scores}
        for run in entry.runs
        for k, scores in enumerate(run.scores)
    ]
    actions: dict[str, Any] = {
        f"seed_{run.seed}": _smallest(np.concatenate(run.actions)) for run in entry.runs if run.actions is not None
    }
    with atomic_folder(target) as folder:
        folder.mkdir()
        (folder / ENTRY).write_text(format_json(record, indent=1) + "\n")
        (folder / ROWS).write_text("".join(f"{format_json(row)}\n" for row in rows))
        if actions:
            np.savez_compressed(folder / ACTIONS, **actions)
        _check_files(folder)
    return target


def _smallest(actions: np.ndarray) -> np.ndarray:
    """Store actions in few bytes: int8 or int16, or float32."""
    if actions.dtype.kind == "f":
        return actions.astype(np.float32)
    return actions.astype(np.min_scalar_type(-1 - int(actions.max())))


def _check_files(folder: Path) -> None:
    """Raise a ValueError where a file is a link, none of an entry, or too large."""
    inside = list(folder.glob("*"))
    for path in (folder.parent, folder, *inside):
        if path.is_symlink():
            raise ValueError(f"{path}: must be in the board itself, got a link to {path.readlink()}")
    for path in inside:
        if path.name not in FILES or not path.is_file():
            raise ValueError(f"{path}: an entry has the files {', '.join(FILES)} alone")
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"{path}: must have at most {MAX_BYTES:,} bytes, got {path.stat().st_size:,}")


def read_entry(folder: Path) -> Entry:
    """Read an entry.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is too large, a link, broken, or not of an entry; the message names it.
    """
    _check_files(folder)
    record = read_json(folder / ENTRY)
    record["format"].integer(FORMAT + 1, FORMAT)
    texts = [name for name in TEXTS if name != "name"]
    names = [*texts, "format", "class", "observed", "episode_hash"]
    for name in record.value:
        if name not in names:
            raise ValueError(f"{record.source}: unknown field {name!r}; {choices_for(name, names)}")
    if not isinstance(record["observed"].value, dict):
        raise record["observed"].error("a JSON object")
    episode_hash, runs = record.get("episode_hash"), _read_runs(folder)
    try:
        return Entry(
            name=folder.resolve().name,
            episode_hash=None if episode_hash is None else episode_hash.text(),
            kind=record["class"].value,
            observed=record["observed"].value,
            runs=runs,
            **{name: record[name].text() for name in texts},
        )
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None


def _read_runs(folder: Path) -> tuple[Run, ...]:
    """Read rows and actions."""
    rows: dict[int, list[tuple[int, tuple[float, ...]]]] = {}
    for parse in each_record(folder / ROWS):
        row = parse()
        trials = rows.setdefault(row["seed"].integer(_MOST), [])
        row["trial"].integer(len(trials) + 1, len(trials))  # in order
        trials.append((row["steps"].integer(_MOST, 1), tuple(score.number() for score in row["scores"].items(1))))
    if not rows:
        raise ValueError(f"{folder / ROWS}: has no row")
    actions = read_npz(folder / ACTIONS) if (folder / ACTIONS).exists() else {}
    if actions and set(actions) != {f"seed_{seed}" for seed in rows}:
        raise ValueError(f"{folder / ACTIONS}: must have seed_{', seed_'.join(map(str, rows))}, got {sorted(actions)}")
    runs = []
    for seed, trials in rows.items():
        steps, scores = zip(*trials, strict=True)
        taken = actions.get(f"seed_{seed}")
        if taken is not None and (taken.ndim == 0 or len(taken) != sum(steps)):
            raise ValueError(
                f"{folder / ACTIONS}: seed_{seed} must have {sum(steps)} actions, the steps of the rows, "
                f"got the shape {taken.shape}"
            )
        split = None if taken is None else tuple(np.split(taken, np.cumsum(steps)[:-1]))
        runs.append(Run(seed, scores, steps, split))
    return tuple(runs)


def check_entry(entry: Entry, folder: Path, *, is_new: bool = False) -> None:
    """Check that an entry is of today's episodes, whole, and in its place. Nothing is played.

    Args:
        entry: The entry.
        folder: Its folder, in that of its test set.
        is_new: The folder must not be there yet.

    Raises:
        FileExistsError: There is another entry of this name, but for upper and lower case.
        ValueError: It is of other episodes, does not have all trials, is not where it belongs, or names a setting that
            changes more than what is observed.
    """
    trials = find_test_set(entry.id, entry.test_set)
    today = {"hash": trials.hash} | ({"episode_hash": trials.episode_hash} if entry.episode_hash else {})
    for name, expected in today.items():
        if getattr(entry, name) != expected:
            raise ValueError(
                f"{folder}: {name} must be {expected}, that of {entry.id} now, got {getattr(entry, name)}; results of "
                f"other episodes stay in the folder {OLD!r} of the board"
            )
    allowed = sorted({*trials.free_settings, *OBSERVED_KINDS} - {"threads"})
    for name in entry.observed:
        if name not in allowed:
            raise ValueError(
                f"{folder}: observed must be settings that change what is observed of {entry.id} alone, got {name!r}; "
                f"choose from {allowed}"
            )
    if folder.parts[-2:] != entry.folder.parts:
        raise ValueError(f"{folder}: must be {entry.folder} in a board, by its test set and name")
    for path in folder.parent.glob("*"):
        if path.name.lower() == folder.name.lower() and (is_new or path.name != folder.name):
            raise FileExistsError(f"{folder}: there is an entry {path.name!r} already; choose another name")
    for run in entry.runs:
        if len(run.scores) != trials.trials:
            raise ValueError(f"{folder}: seed {run.seed} must have {trials.trials} trials, got {len(run.scores)}")
        for k, scores in enumerate(run.scores):
            if len(scores) != trials.episodes if trials.episodes else len(scores) < 2:
                count = trials.episodes or "at least 2"
                raise ValueError(f"{folder}: trial {k} of seed {run.seed} must have {count} scores, got {len(scores)}")
