"""The table of presets, and one page for each with its settings."""

from __future__ import annotations

from typing import Any

from generate.markdown import code, page, section, table
from generate.results import environment_name, flat_settings, memory_of, memory_page, results_of_preset, results_table
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets import FAMILIES, PRESETS, Preset


def make_pages() -> dict[str, str]:
    """Make the index and a page a preset."""
    return {"index.md": _index(), **{f"{name}.md": _preset(name, preset) for name, preset in PRESETS.items()}}


def _index() -> str:
    intro = (
        "A preset has all settings of a run. `memenvs train NAME` trains it. Any setting can be changed, such "
        "as the memory with `--policy.memory lstm`. Steps are environment steps if nothing else is given. Times are "
        "of learning on one core. Results are means over seeds, with 95 % intervals; studies compare methods."
    )
    columns = ("preset", "environment", "memory", "learner", "steps", "time", "result")
    parts = [section(title, table(columns, map(_row, family, family.values()))) for title, family in FAMILIES.items()]
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *(f"{name}.md" for name in PRESETS), "```"])
    return page("Presets", intro, *parts, toctree)


def _row(name: str, preset: Preset) -> list[str]:
    config, results = preset.config, results_of_preset(name)
    published = f"{config.score} {results[0].score()}".replace("+-", "±") if results else "-"
    return [
        f"[`{name}`]({name}.md)",
        environment_name(config),
        _memory(config),
        f"`{config.kind.name}`",
        _steps(config).removesuffix(" environment steps"),
        _time(name, preset),
        published,
    ]


def _steps(config: RunConfig) -> str:
    return f"{config.total_steps:,} {config.kind.unit}"


def _memory(config: RunConfig) -> str:
    memory = memory_of(config)
    return f"[`{memory}`](../memories/{memory_page(memory)})" if memory else "memory bank (MTVM)"


def _time(name: str, preset: Preset) -> str:
    """Time that was measured for the preset, else that of its runs in a study."""
    seconds = [result.seconds for result in results_of_preset(name) if result.seconds is not None]
    return preset.time or (f"{max(1, round(seconds[0] / 60))} min" if seconds else "-")


def _preset(name: str, preset: Preset) -> str:
    about = table(
        ("", ""),
        [
            ("environment", f"`{preset.config.env}`"),
            ("memory", _memory(preset.config)),
            ("learner", f"`{preset.config.kind.name}`"),
            ("steps", _steps(preset.config)),
            ("time", _time(name, preset)),
        ],
    )
    return page(
        f"`{name}`",
        f"{preset.about[0].upper()}{preset.about[1:]}.",
        about,
        code(f"memenvs train {name}", "bash"),
        section("Results", results_table(results_of_preset(name))),
        section("Settings", f"Those that differ from the defaults.\n\n{_settings(preset.config)}"),
    )


def _settings(config: RunConfig) -> str:
    defaults = flat_settings(RunConfig(learner=type(config.learner)()).to_json())
    rows = [
        (f"`{key}`", f"`{_value(value)}`")
        for key, value in flat_settings(config.to_json()).items()
        if key not in defaults or defaults[key] != value
    ]
    return table(("setting", "value"), rows)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)
