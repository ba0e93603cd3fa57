"""The table of presets, and one page for each with its settings and variants."""

from __future__ import annotations

from typing import Any

from generate.markdown import code, page, section, table
from generate.results import Result, all_results, environment_name, flat_settings, memory_of, memory_page, results_table
from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets import FAMILIES, PRESETS, Preset
from memenvs.agents.presets.preset import SEPARATOR


def make_pages() -> dict[str, str]:
    """Make the index and a page a preset."""
    return {"index.md": _index(), **{f"{name}.md": _preset(name, preset) for name, preset in PRESETS.items()}}


def _index() -> str:
    intro = (
        "A preset has all settings of a run. `memenvs train NAME` trains it, and `memenvs train "
        "NAME:VARIANT` one of its variants. Steps are environment steps if nothing else is given. Times are of "
        "learning on one core, where they were measured. Results are means over seeds, with 95 % intervals."
    )
    columns = ("preset", "environment", "memory", "learner", "steps", "time", "result")
    parts = [section(title, table(columns, map(_row, family, family.values()))) for title, family in FAMILIES.items()]
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *(f"{name}.md" for name in PRESETS), "```"])
    return page("Presets", intro, *parts, toctree)


def _row(name: str, preset: Preset) -> list[str]:
    config, result = preset.config, _result(name)
    published = f"{config.score} {result.score()}".replace("+-", "±") if result else "-"
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
    result = _result(name)
    hours = None if result is None else result.hours()
    return preset.time or "-" if hours is None else f"{max(1, round(60 * hours))} min"


def _result(name: str) -> Result | None:
    """Runs of the preset itself, or of a variant with the same settings."""
    return next((each for each in all_results() if each.config == PRESETS[name].config), None)


def _preset(name: str, preset: Preset) -> str:
    names = {name, *(f"{name}{SEPARATOR}{variant}" for variant in preset.variants)}
    results = [each for each in all_results() if each.preset in names]
    variants = [
        (
            f"`{SEPARATOR}{variant}`",
            each.about,
            ", ".join(f"`{key}={_value(value)}`" for key, value in each.overrides.items()),
        )
        for variant, each in preset.variants.items()
    ]
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
        section("Results", results_table(results)),
        section("Settings", f"Those that differ from the defaults.\n\n{_settings(preset.config)}"),
        section(
            "Variants",
            table(("variant", "one line", "settings that differ from the preset"), variants) if variants else "",
        ),
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
