"""One page for each memory, from its class, its settings and the rows of studies."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from generate.markdown import code, page, section, table
from generate.results import all_results, linked, memory_of, memory_page, results_table
from memenvs.agents.memory import MEMORIES, MemorySpec, make_memory, memory_spec, required_inputs
from memenvs.agents.policies.small_sizes import SMALL
from memenvs.agents.presets import PRESETS
from memenvs.agents.sizes import LARGEST
from memenvs.docstrings import attributes, docstring_sections, field_default

#: Section of the docstring of a memory's class, or of its config where several memories share a class -> its title.
SECTIONS = {
    "Idea": "Idea",
    "Equations": "Equations",
    "State": "State",
    "Cost": "Cost",
    "When to use": "When to use",
    "When not to use": "When not to use",
    "Difference from the paper": "Difference from the paper",
    "Source": "Citation",
}
#: Width of the embedding for which states and weights are counted.
WIDTH = 128
#: Steps of a trial after which states without a limit are counted.
STEPS = 1000
#: Upper bound of numbers of steps, which no run reaches.
MOST_STEPS = 2**31 - 1


def make_pages() -> dict[str, str]:
    """Make the index and a page a memory."""
    return {"index.md": _index(), **{memory_page(name): _memory(memory_spec(name)) for name in MEMORIES}}


def memory_sections(spec: MemorySpec) -> dict[str, str]:
    """Text of each section of `SECTIONS`, from the config if that has it, else from the class.

    Raises:
        ValueError: A section is missing or empty.
    """
    own, config = docstring_sections(spec.memory), docstring_sections(spec.config)
    sections = {name: config.get(name) or own.get(name, "") for name in SECTIONS}
    for name, text in sections.items():
        if not text:
            raise ValueError(f"the docstring of {spec.memory.__name__} must have the section {name!r}")
    return sections


def _index() -> str:
    rows = []
    for name, summary in MEMORIES.items():
        memory = make_memory(name, WIDTH)
        inputs = ", ".join(f"`{field}`" for field in required_inputs(name)) or "-"
        rows.append((f"[`{name}`]({memory_page(name)})", summary, inputs, "yes" if memory.bounded else "no"))
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *map(memory_page, MEMORIES), "```"])
    intro = (
        'Every memory fits every learner that acts: `policy_kwargs={"memory": NAME, "memory_kwargs": {...}}`. With '
        '`"size": "small"` it has fewer than 0.3 million weights, for a laptop; its page has its settings then, which '
        "`memory_kwargs` overrule. A memory that is not bounded keeps every step of a trial."
    )
    return page("Memories", intro, table(("memory", "one line", "needs", "bounded"), rows), toctree)


def _memory(spec: MemorySpec) -> str:
    texts = {name: _markdown(text) for name, text in memory_sections(spec).items()}
    texts["State"] += "\n\n" + _state(spec.name)
    source = texts.pop("Source")
    difference = texts.pop("Difference from the paper")
    config = spec.config
    return page(
        f"`{spec.name}`",
        f"`{spec.memory.__name__}`: {spec.summary}.",
        *(section(SECTIONS[name], text) for name, text in texts.items()),
        section("Settings", _settings(spec) if fields(config) else "It has none."),
        section("Small size", _small(spec.name)),
        section("How to use", code(example(spec.name))),
        section("Results", _results(spec.name)),
        section("Implementation", linked(docstring_sections(spec.memory)[""].partition("\n")[2])),
        section(SECTIONS["Difference from the paper"], difference),
        section(SECTIONS["Source"], f"{source}\n\nPlease cite the paper, and [memenvs](../citing.md)."),
    )


def _markdown(text: str) -> str:
    """Turn a section of a docstring into MyST: equations as directives, squares, links to other memories."""
    parts = re.split(r"(^\.\. math::\n\n(?:(?: +.*)?\n)*(?: +.*)?$)", text, flags=re.MULTILINE)
    return "".join(_equation(part) if part.startswith(".. math::") else linked(part) for part in parts)


def _equation(part: str) -> str:
    lines = [line.strip() for line in part.splitlines()[1:] if line.strip()]
    return "\n".join(["$$", *lines, "$$", "", ""])


def _state(name: str) -> str:
    memory = make_memory(name, WIDTH)
    state = memory.initial_state(1, max_steps=STEPS)
    if not state:
        return ""
    rows = [
        (
            f"`{key}`",
            " x ".join(map(str, value.shape[1:])) or "1",
            str(value.dtype).removeprefix("torch."),
            f"{value[0].numel():,}",
        )
        for key, value in state.items()
    ]
    total = state_numbers(name, STEPS)
    growth = state_numbers(name, 2 * STEPS) - total
    limit = f"{total:,} numbers a robot in a trial of {STEPS:,} steps, {growth // STEPS:,} more for each further step"
    size = limit if growth else f"{total:,} numbers a robot, however long the trial is"
    weights = sum(parameter.numel() for parameter in memory.parameters())
    about = (
        f"With default settings and an embedding of {WIDTH} numbers it has {weights:,} weights. The state is {size}."
    )
    return f"{about}\n\n{table(('tensor', 'shape', 'type', 'numbers'), rows)}"


def state_numbers(name: str, steps: int) -> int:
    """Count the numbers in the state of one robot with default settings, for trials of `steps`."""
    state = make_memory(name, WIDTH).initial_state(1, max_steps=steps)
    return sum(value.numel() for value in state.values())


def _small(name: str) -> str:
    """The settings of a small size, as JSON; "" if there are none."""
    weights = sum(parameter.numel() for parameter in make_memory(name, WIDTH, **SMALL[name]).parameters())
    text = f'`"size": "small"` stands for `{json.dumps(SMALL[name])}`, {weights:,} weights.'
    return text if SMALL[name] else ""


def _settings(spec: MemorySpec) -> str:
    meanings = attributes(spec.config)
    hints = get_type_hints(spec.config)
    rows = [
        (
            f"`{field.name}`",
            f"`{field_default(field)}`",
            setting_range(field.name, hints[field.name], meanings[field.name]),
            meanings[field.name],
        )
        for field in fields(spec.config)
    ]
    return table(("setting", "default", "range", "meaning"), rows)


def setting_range(name: str, hint: Any, meaning: str) -> str:
    """Describe the values that a setting may have.

    Args:
        name: Its name.
        hint: Its type.
        meaning: Its description, which gives the range of numbers as ">= 1", "> 0" or "in [0, 1)".

    Raises:
        ValueError: The description of a number gives no range.
    """
    kinds = get_args(hint) or (hint,)
    none = " or `None`" * (NoneType in kinds)
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value!r}`" for value in kinds)
    if hint is bool:
        return "`True`, `False`"
    if name in LARGEST:
        largest = LARGEST[name]
        return ("at least 1" if largest >= MOST_STEPS else f"1 to {largest:,}") + none
    match = re.search(r"(>=? \d+(?:\.\d+)?|in [\[(][^\])]*[\])])", meaning)
    if not match:
        raise ValueError(f"the description of {name} must give its range, got {meaning!r}")
    return match[1] + none


def example(name: str) -> str:
    """Write a few lines that learn with a memory, in an environment that shows what it needs."""
    needs = required_inputs(name)
    env, settings = '"memenvs/Darkroom-v0", 4', {}
    if "pose" in needs:
        env = '"memenvs/Coverage-v0", 2, obs_mode="scan", max_episode_steps=32'
    elif "move" in needs:
        env = '"memenvs/RoomBallet-ABA-v0", 2'
    elif "place" in needs:
        env += ", size=3, place=True"
    hints = get_type_hints(memory_spec(name).config)
    if "capacity" in hints:
        settings["capacity"] = 64
    arguments = f'{{"memory": "{name}"' + (f', "memory_kwargs": {settings!r}' if settings else "") + "}"
    arguments = arguments.replace("'", '"')
    return "\n".join(
        [
            "from memenvs.agents import PartialUpdatePPO, make_vec_env",
            "",
            f"env = make_vec_env({env})",
            f"policy_kwargs = {arguments}",
            'settings = {"n_steps": 32, "n_updates": 1, "batch_size": 2}',
            'model = PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy_kwargs, **settings)',
            "model.learn(64)",
        ]
    )


def _results(name: str) -> str:
    own = [
        result
        for result in all_results()
        if memory_of(result.config) == name and not result.config.policy.get("single_steps")
    ]
    presets = ", ".join(f"`{preset}`" for preset, value in PRESETS.items() if memory_of(value.config) == name)
    trained = f"Presets with this memory: {presets}." if presets else f"In any preset: `--policy.memory {name}`."
    if not own:
        return f"No study of this repository has a result of it yet. {trained}"
    about = "Mean and 95 % interval over seeds. The pages of the studies have all tables and their commands."
    return f"{about}\n\n{results_table(own)}\n\n{trained}"
