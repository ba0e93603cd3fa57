"""`memenvs list`."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any

import gymnasium as gym

from memenvs.certificate import Verdict
from memenvs.certificates.test_sets import find_test_set
from memenvs.cli.certify import certificate_lines
from memenvs.cli.common import UserError, environment_spec, settings_as_user_error
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.docstrings import docstring_sections, items, setting_rows, task_sections
from memenvs.itineraries import trial_limits
from memenvs.plugins import load_class
from memenvs.registry import NAMESPACE, EnvironmentSpec, environments
from memenvs.task import PHASE, load_task

ARGUMENTS = """
id ID?: show this one: spaces, settings, scores, certificate
"""

#: What `list` says of ids whose answer is a picture.
PICTURE = "learn by prediction: the answer is a picture"
#: Last line of `list`.
CLOSE = "*: close, a threshold of the verdict lies within two standard errors"
#: Columns of a line of `list ID`.
WIDTH = 110


def run(arguments: argparse.Namespace) -> Any:
    """Print the registry, or the row of an id."""
    if arguments.id is not None:
        spec = environment_spec(arguments.id)
        return _print_environment(spec, _played_as(arguments, spec), arguments.json)
    if arguments.json:
        names = ("id", "family", "remembers", "needs", "answers_picture")
        return [
            {name: getattr(spec, name) for name in names} | {"policies": [*spec.policies], "verdict": verdict_of(spec)}
            for spec in environments()
        ]
    width = max(len(spec.id) for spec in environments())
    for spec in environments():
        needs = f" (needs {spec.needs})" if spec.needs else ""
        needs += f" ({PICTURE})" if spec.answers_picture else ""
        remembers = f"remember {spec.remembers}" if spec.remembers else ""
        print(f"{spec.id:{width}}  {verdict_cell(spec):6}  {remembers}{needs}".rstrip())
    print(CLOSE)
    return None


def verdict_of(spec: EnvironmentSpec) -> Verdict | None:
    """Return the verdict of the certificate of an id; None if it has none."""
    certificate = spec.load_certificate()
    return None if certificate is None else certificate.verdict


def verdict_cell(spec: EnvironmentSpec) -> str:
    """Cell of a table: the verdict of an id, with "*" where it is close; "-" without one."""
    certificate = spec.load_certificate()
    return "-" if certificate is None else certificate.verdict + "*" * certificate.is_close


def environment_facts(spec: EnvironmentSpec, played_as: str = "") -> list[tuple[str, str]]:
    """Facts of the page of an id, name and text, in Markdown.

    Args:
        spec: Row of the id.
        played_as: The id in commands; "" for its name.
    """
    assert spec.task is not None
    sections = task_sections(load_task(spec.task))
    limits = {name: value for name, value in trial_limits(spec.defaults).items() if value is not None}
    changes = "`trial_episodes` and `trial_steps` change"
    if spec.defaults.get("itinerary") is not None:
        changes = "`itinerary` changes"
    own = [f"`{name}={value!r}`" for name, value in spec.defaults.items() if name not in limits]
    trial = " or ".join(_amount(value, name.removeprefix("trial_")) for name, value in limits.items()) or "endless"
    facts = [
        ("To remember", spec.remembers),
        ("A trial", f"{trial}; {changes} it"),
        ("Settings of the id", ", ".join(own)),
        ("Score", f"`{spec.score_key}` in the `info` of the last step of an episode"),
        ("Oracle", f"at least {spec.oracle_at_least:g}; a test checks it" if spec.oracle_at_least is not None else ""),
        ("Random policy", f"below {spec.random_below:g}; a test checks it" if spec.random_below is not None else ""),
        ("To report", _protocol(spec)),
        *((f"Scripted policy `{name}`", _rule(spec, name, played_as or spec.name)) for name in spec.policies),
        ("Agents", f"{PICTURE}, which plain PPO does not learn to draw" if spec.answers_picture else ""),
        ("Speed", " ".join(sections.get("Speed", "").split())),
        ("Needs", spec.needs),
    ]
    return [(name, text) for name, text in facts if text]


def observation_rows(env: TrialEnv) -> list[tuple[str, str, str]]:
    """Key, space ("" if only in other settings) and meaning of each observation."""
    assert isinstance(env.observation_space, gym.spaces.Dict)
    spaces = env.observation_space.spaces
    meanings = items(task_sections(type(env.task))["Observation"])
    if PHASE in spaces:  # of the trial layer, where the task does not write its own
        meanings = {**items(docstring_sections(TrialVectorEnv)["Observation"]), **meanings}
    meanings |= {key: "" for key in spaces if key not in meanings}  # of a task without documentation
    return [(key, str(spaces.get(key, "")), text) for key, text in meanings.items()]


def _played_as(arguments: argparse.Namespace, spec: EnvironmentSpec) -> str:
    """The id as commands take it: with the modules that register it, and the namespace if it is of others."""
    module, colon, _ = arguments.id.rpartition(":")
    id = spec.name if spec.namespace == NAMESPACE else spec.id
    return " ".join([f"{module}{colon}{id}", *(f"--import {name}" for name in arguments.imports)])


def _print_environment(spec: EnvironmentSpec, played_as: str, as_json: bool) -> dict[str, Any] | None:
    """Print what the page of an id says: facts, spaces, settings, certificate."""
    if spec.task is None:
        raise UserError(f"argument ID: must be a task of memenvs, got {spec.id}")
    with settings_as_user_error(spec, {}):
        env = TrialEnv(spec.task, **spec.defaults)
    env.close()
    task = type(env.task)
    observed = {key: (space, text) for key, space, text in observation_rows(env) if space}
    settings = {
        name: (repr(spec.defaults[name]) if name in spec.defaults else default, text)
        for name, default, text in (setting_rows(task.config_type) if task.config_type else ())
    }
    facts = environment_facts(spec, played_as)
    certificate = spec.load_certificate()
    if as_json:
        document: dict[str, Any] = {"id": spec.id, "facts": dict(facts), "verdict": verdict_of(spec)}
        document["observation"] = {key: {"space": space, "meaning": text} for key, (space, text) in observed.items()}
        document["action"] = str(env.action_space)
        document["settings"] = {name: {"value": value, "meaning": text} for name, (value, text) in settings.items()}
        return document
    sections = task_sections(task)
    print(textwrap.fill(f"{spec.id}: {sections['']}", WIDTH))
    _print_rows("", {name: ("", text) for name, text in facts})
    _print_rows("Observation", observed)
    _print_rows("Action", {str(env.action_space): ("", " ".join(sections.get("Action", "").split()))})
    _print_rows("Settings", settings)
    print("\nVerdict: not certified yet" if certificate is None else "\n" + "\n".join(certificate_lines(certificate)))
    return None


def _print_rows(title: str, rows: dict[str, tuple[str, str]]) -> None:
    """Print a name, its value and its meaning a line."""
    print("\n" + title if title else "")
    for name, (value, text) in rows.items():
        line = ": ".join(filter(None, [" = ".join(filter(None, [name, value])), " ".join(text.split())]))
        print(textwrap.fill(line, WIDTH, initial_indent="  " * bool(title), subsequent_indent="    "))


def _protocol(spec: EnvironmentSpec) -> str:
    """Say which trials a score is of; "" where trials never end."""
    try:
        trials = find_test_set(spec.id)
    except ValueError:
        return ""
    split = "" if trials.split is None else f", split `{trials.split}`"
    return f"test set `{trials.name}`: {trials.trials} trials{split}, actions drawn as in training (`evaluate`)"


def _rule(spec: EnvironmentSpec, name: str, played_as: str) -> str:
    """Describe a scripted policy, with the command that plays it."""
    text = docstring_sections(load_class(spec.policies[name]))[""]
    settings = f" --env_kwargs '{json.dumps(dict(spec.rule_settings))}'" if spec.rule_settings else ""
    return f"{' '.join(text.split())} `memenvs rollout {played_as} --policy {name}{settings}` plays it".lstrip()


def _amount(number: int, unit: str) -> str:
    return f"{number} {unit.removesuffix('s') if number == 1 else unit}"
