"""The certificate of an id: scores, and the verdict that follows from them.

It says what a memory is worth in the id.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

from memenvs.checks import choices_for
from memenvs.files import write_file
from memenvs.json_records import Field, format_json, read_json

Verdict = Literal["long", "short", "none"]
#: How a policy gets along, as `memenvs.rules.Way`, and "oracle" for one that knows the truth.
PolicyWay = Literal["present", "window", "world", "ideal", "oracle"]
How = Literal["played", "trained"]
Zero = Literal["random", "memoryless"]
Channel = Literal["none", "world"]
Ignored = Literal["proved", "none"]

#: Share of the way to the ideal policy at which a window counts as a memory, and a memory as needed.
THRESHOLD = 0.25
#: Most observations of a window that counts as short.
SHORT_WINDOW = 16
#: Standard errors within which a verdict is close.
CLOSE = 2.0
#: Number of this form of record; it grows when older programs can no longer read it.
FORMAT = 1
#: Rows that every certificate has.
REQUIRED = ("random", "ideal", "oracle")
ATTACKS = ("present", "window", "world")
DATA = Path(__file__).with_name("certificates") / "data"

_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_MOST = 2**53


@dataclass(frozen=True, kw_only=True)
class Training:
    """Training of the policy of a row.

    Attributes:
        recipe: Name of the recipe.
        budget: Steps of the environment, for each seed; >= 1.
        seeds: Seeds of the runs; the row has their mean.
        settings: Settings of the recipe and of the agent.
    """

    recipe: str
    budget: int
    seeds: tuple[int, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PolicyRow:
    """Score of one policy in the test trials.

    Attributes:
        name: Its name, such as "memoryless" or "ideal, window 16".
        way: How it gets along.
        window: Observations that it uses, the present one included; None for all of them.
        mean: Mean score over trials.
        stderr: Standard error of the mean over trials, or over seeds if that is larger.
        how: "played" for a rule, "trained" for an agent.
        training: How it was trained; None if it was played.
    """

    name: str
    way: PolicyWay
    window: int | None
    mean: float
    stderr: float
    how: How = "played"
    training: Training | None = None


@dataclass(frozen=True, kw_only=True)
class HorizonPoint:
    """Score of the ideal policy whose memory is wiped every `steps` steps."""

    steps: int
    mean: float
    stderr: float


@dataclass(frozen=True, kw_only=True)
class StepsBack:
    """Number of steps back to the fact that an episode needs.

    Over episodes: median, 10 % and 90 % quantile.
    """

    median: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Measure of what a memory is worth in one id.

    The score shown of a policy is (score - best memoryless) / (ideal - best memoryless).

    Attributes:
        id: Full id.
        settings: Settings with which the trials were played: the defaults of the id, and the split.
        rule_settings: Observation settings that replace those of `settings` in the episodes of all policies, as no rule
            can read what the id observes. The episodes are the same.
        split: Split of the trials; None if the task has none.
        test_set: Name of the test set whose trials were played.
        trials: Number of trials.
        score_key: Key of the score in the `info` of an episode's last step.
        zero: The zero of the task: "random", or "memoryless" where a random answer is a wild guess.
        rows: Policies; those of `REQUIRED` among them.
        horizon: Points of the horizon curve, by steps; the row "ideal" is its end.
        steps_back: How far back the facts lie; None if the ideal rule does not say it.
        bits: Bits to remember over the longest delay; None if they cannot be counted.
        ignored_steps: "proved" if other actions in the steps with `phase` 0 changed no bit of observations and rewards;
            "none" if there are no such steps.
        channel: "none" if all actions before the query are ignored, so that no policy can leave itself a note; else
            "world".
        episode_hash: Hash of 100 episodes of the id (`memenvs.certificates.hash_episodes`).
        command: Command that makes this certificate.
        is_quick: True if it has too few trials to be shipped.
    """

    id: str
    settings: Mapping[str, Any]
    split: str | None
    test_set: str
    trials: int
    score_key: str
    zero: Zero
    rows: tuple[PolicyRow, ...]
    horizon: tuple[HorizonPoint, ...]
    steps_back: StepsBack | None
    bits: float | None
    ignored_steps: Ignored
    channel: Channel
    episode_hash: str
    command: str
    is_quick: bool = False
    rule_settings: Mapping[str, Any] = field(default_factory=dict)

    def row(self, name: str) -> PolicyRow:
        """Return the row of a policy.

        Raises:
            ValueError: There is none of this name.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise ValueError(f"unknown row {name!r} of {self.id}; {choices_for(name, (row.name for row in self.rows))}")

    @property
    def best_memoryless(self) -> PolicyRow:
        """The best policy that sees the present observation alone; the random one is among them."""
        return max((row for row in self.rows if row.way == "present"), key=lambda row: row.mean)

    @property
    def best_attack(self) -> PolicyRow:
        """The best policy with a window of at most `SHORT_WINDOW` observations.

        The memoryless ones are among them.
        """
        attacks = (row for row in self.rows if row.way in ATTACKS and (row.window or math.inf) <= SHORT_WINDOW)
        return max(attacks, key=lambda row: row.mean)

    def share(self, score: float) -> float | None:
        """Return the score shown: 0 for the best memoryless policy, 1 for the ideal one.

        None if the ideal one is no better.
        """
        worth = self.row("ideal").mean - self.best_memoryless.mean
        return (score - self.best_memoryless.mean) / worth if worth > 0 else None

    @property
    def verdict(self) -> Verdict:
        """The verdict: by `THRESHOLD` of the way from the best memoryless policy to the ideal one."""
        need = self._margin_of_need()
        if self.share(0.0) is None or need[0] < 0:
            return "none"
        return "long" if self._margin_of_attack()[0] < 0 else "short"

    @property
    def is_close(self) -> bool:
        """True if a threshold of the verdict lies within two standard errors.

        The rows count as independent. They play the same trials, so this is on the safe side.
        """
        margins = [self._margin_of_need()]
        if self.verdict != "none":
            margins.append(self._margin_of_attack())
        return any(abs(margin) < CLOSE * stderr for margin, stderr in margins)

    def _margin_of_need(self) -> tuple[float, float]:
        """(ideal - memoryless) - a quarter of (oracle - zero), and its standard error."""
        zero = self.row("random") if self.zero == "random" else self.best_memoryless
        return _combine(
            (1.0, self.row("ideal")),
            (-1.0, self.best_memoryless),
            (-THRESHOLD, self.row("oracle")),
            (THRESHOLD, zero),
        )

    def _margin_of_attack(self) -> tuple[float, float]:
        """(attack - memoryless) - a quarter of (ideal - memoryless), and its standard error."""
        return _combine(
            (1.0, self.best_attack), (THRESHOLD - 1.0, self.best_memoryless), (-THRESHOLD, self.row("ideal"))
        )

    def with_rows(self, rows: Iterable[PolicyRow]) -> Certificate:
        """Return a copy with further rows, such as those of trained policies.

        Of two rows of the same name the new one stays.
        """
        added = {row.name: row for row in rows}
        return replace(self, rows=(*(row for row in self.rows if row.name not in added), *added.values()))

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON data."""
        return {
            "format": FORMAT,
            "id": self.id,
            "verdict": self.verdict,
            "is_close": self.is_close,
            "settings": dict(self.settings),
            **({"rule_settings": dict(self.rule_settings)} if self.rule_settings else {}),
            "split": self.split,
            "test_set": self.test_set,
            "trials": self.trials,
            "is_quick": self.is_quick,
            "score_key": self.score_key,
            "zero": self.zero,
            "rows": [_row_to_json(row) | {"share": self.share(row.mean)} for row in self.rows],
            "horizon": [asdict(point) for point in self.horizon],
            "steps_back": None if self.steps_back is None else asdict(self.steps_back),
            "bits": self.bits,
            "ignored_steps": self.ignored_steps,
            "channel": self.channel,
            "episode_hash": self.episode_hash,
            "command": self.command,
        }


def write_certificate(certificate: Certificate, path: Path) -> None:
    """Write a certificate as a JSON file.

    Raises:
        ValueError: It is a quick one and `path` is among the shipped ones.
    """
    if certificate.is_quick and path.absolute().parent == DATA:
        raise ValueError(f"{path}: a certificate of {certificate.trials} trials (quick) is not shipped")
    write_file(path, f"{format_json(certificate.to_json(), indent=1)}\n".encode())


@lru_cache(maxsize=128)
def read_certificate(path: Path) -> Certificate:
    """Read a certificate of a JSON file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken; the message names the file and the field. Or its verdict is not that of its
            scores.
    """
    return certificate_from_json(read_json(path))


def certificate_from_json(record: Field) -> Certificate:
    """Parse the JSON data of a certificate; errors are those of `read_certificate`."""
    record["format"].integer(FORMAT + 1, FORMAT)
    settings, rule_settings = record["settings"], record.get("rule_settings")
    for values in (settings, rule_settings):
        if values is not None and not isinstance(values.value, dict):
            raise values.error("a JSON object")
    back, bits, split = record.get("steps_back"), record.get("bits"), record.get("split")
    episode_hash = record["episode_hash"]
    if not _HASH.fullmatch(episode_hash.text()):
        raise episode_hash.error("'sha256:' and 64 hexadecimal digits")
    certificate = Certificate(
        id=record["id"].text(),
        settings=settings.value,
        split=None if split is None else split.text(),
        test_set=record["test_set"].text(),
        trials=record["trials"].integer(_MOST, 2),
        score_key=record["score_key"].text(),
        zero=_choice(record["zero"], get_args(Zero)),
        rows=rows_from_json(record["rows"]),
        horizon=tuple(
            HorizonPoint(steps=point["steps"].integer(_MOST, 1), mean=point["mean"].number(), stderr=_stderr(point))
            for point in record["horizon"].items()
        ),
        steps_back=None if back is None else StepsBack(**{name: back[name].number() for name in _QUANTILES}),
        bits=None if bits is None else bits.number(),
        ignored_steps=_choice(record["ignored_steps"], get_args(Ignored)),
        channel=_choice(record["channel"], get_args(Channel)),
        episode_hash=episode_hash.text(),
        command=record["command"].text(),
        is_quick=_choice(record["is_quick"], (False, True)),
        rule_settings={} if rule_settings is None else rule_settings.value,
    )
    missing = [name for name in REQUIRED if name not in {row.name for row in certificate.rows}]
    if missing:
        raise ValueError(f"{record.source}: rows must have {', '.join(REQUIRED)}, got none of {', '.join(missing)}")
    if record["verdict"].value != certificate.verdict:
        raise record["verdict"].error(f"{certificate.verdict!r}, by the scores of the rows")
    return certificate


_QUANTILES = ("median", "low", "high")


def rows_from_json(record: Field) -> tuple[PolicyRow, ...]:
    """Parse a list of rows, with different names; errors are those of `read_certificate`."""
    rows = tuple(_row_from_json(row) for row in record.items(1))
    names = [row.name for row in rows]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise record.items()[k]["name"].error("another name than those of the other rows")
    return rows


def _row_from_json(record: Field) -> PolicyRow:
    window, training = record.get("window"), record.get("training")
    how: How = _choice(record["how"], get_args(How))
    if (how == "trained") != (training is not None):
        raise record["how"].error("'trained' with the field training, and 'played' without it")
    return PolicyRow(
        name=record["name"].text(),
        way=_choice(record["way"], get_args(PolicyWay)),
        window=None if window is None else window.integer(_MOST, 1),
        mean=record["mean"].number(),
        stderr=_stderr(record),
        how=how,
        training=None if training is None else _training_from_json(training),
    )


def _training_from_json(record: Field) -> Training:
    settings = record.get("settings")
    if settings is not None and not isinstance(settings.value, dict):
        raise settings.error("a JSON object")
    return Training(
        recipe=record["recipe"].text(),
        budget=record["budget"].integer(_MOST, 1),
        seeds=tuple(seed.integer(_MOST) for seed in record["seeds"].items(1)),
        settings={} if settings is None else settings.value,
    )


def _row_to_json(row: PolicyRow) -> dict[str, Any]:
    record = asdict(row)
    if row.training is None:
        del record["training"]
    else:
        record["training"]["seeds"] = list(row.training.seeds)
    return record


def _stderr(record: Field) -> float:
    value = record["stderr"].number()
    if value < 0:
        raise record["stderr"].error("a number of at least 0")
    return value


def _choice(record: Field, choices: tuple[Any, ...]) -> Any:
    if not isinstance(record.value, type(choices[0])) or record.value not in choices:
        raise record.error(" or ".join(map(repr, choices)))
    return record.value


def _combine(*parts: tuple[float, PolicyRow]) -> tuple[float, float]:
    """Weighted sum of the scores of rows, and its standard error; a row may come several times."""
    weights: dict[str, float] = {}
    rows = {row.name: row for _, row in parts}
    for weight, row in parts:
        weights[row.name] = weights.get(row.name, 0.0) + weight
    value = sum(weight * rows[name].mean for name, weight in weights.items())
    return value, math.hypot(*(weight * rows[name].stderr for name, weight in weights.items()))
