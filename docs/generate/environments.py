"""One page for each registered environment, from registry and docstrings."""

from __future__ import annotations

from pathlib import Path

from generate.markdown import code, page, section, settings_table, table
from memenvs.cli.certify import facts, horizon_cells, table_cells, verdict_text
from memenvs.cli.listing import environment_facts, observation_rows, verdict_cell
from memenvs.core import TrialEnv, TrialVectorEnv
from memenvs.docstrings import docstring_sections, items, task_sections
from memenvs.registry import ENVIRONMENTS, EnvironmentSpec
from memenvs.task import load_task
from pictures import PICTURES, Picture, make_picture

#: Steps at the end of an episode of Room Ballet or FFHQ-world that its picture shows: three visits, or a query.
LAST_STEPS = 98
#: Pages about the environments of a family.
FURTHER_PAGES = {
    "objectnav": "[Results](../studies/ext_objnav.md). [Houses of your own](../houses.md).",
    "ballet3d": "[Results](../studies/pictures.md).",
    "exploration": "[Results](../studies/scene_memory.md). [Houses of your own](../houses.md).",
    "faces": "[Results](../studies/pictures.md).",
    "room_ballet": "[Results](../studies/room_ballet.md).",
    "two_rooms": "[Results](../studies/visual_match.md).",
    "verbalization": "[Results](../studies/episodic_qa.md). [Questions and shortcuts](../guides/episodic_qa.md).",
    "visual_match": "[Results](../studies/visual_match.md).",
    "vln": "[Results](../studies/vln_memory.md). [Data](../guides/vln_data.md).",
}
_EXAMPLE = """
import gymnasium as gym

import memenvs  # registers the ids

env = gym.make("{id}")
observation, info = env.reset(seed=0)
"""
#: Reset options that only vector environments have.
VECTOR_OPTIONS = ("reset_mask",)


def make_pages() -> dict[str, str]:
    """Make the index and a page an id."""
    return {"index.md": _index(), **{page_name(spec): _environment(spec) for spec in ENVIRONMENTS}}


def page_name(spec: EnvironmentSpec) -> str:
    """File of an environment's page, such as darkroom.md."""
    return _title(spec).lower().replace("-", "_") + ".md"


def draw_pictures(folder: Path) -> None:
    """Draw the pictures that are not those of the README, unless they are there already.

    Args:
        folder: Folder of the pages.
    """
    for spec in ENVIRONMENTS:
        if spec.name in PICTURES or (folder / f"{spec.name}.webp").exists():
            continue
        env = TrialEnv(spec.task, **spec.defaults)
        # These paths are long; their ends show whole dances or most of a picture, and the query.
        skip = env.task.max_episode_steps - LAST_STEPS if spec.family in ("room_ballet", "faces") else 0
        env.close()
        make_picture(Picture(spec.name, frames=LAST_STEPS, skip=skip), folder)


def _index() -> str:
    rows = [
        (
            f"[{_title(spec)}]({page_name(spec)}): remember {spec.remembers}",
            verdict_cell(spec),
            f"![{spec.name}]({_picture(spec)})",
        )
        for spec in ENVIRONMENTS
    ]
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *(page_name(spec) for spec in ENVIRONMENTS), "```"])
    text = (
        f"How much of an environment needs a memory is measured in its [certificate](../certificates.md). Its verdict "
        f"is long, short or none; * where it is close. The id is `{ENVIRONMENTS[0].id}` and so on. All of them have "
        f"trials: sequences of episodes in one layout. `reset()` goes on with the trial until it is over; its options "
        f"choose trial, episode and layout."
    )
    return page("Environments", text, table(("environment", "verdict", "the oracle plays"), rows), toctree)


def _picture(spec: EnvironmentSpec) -> str:
    return f"{'../images/' if spec.name in PICTURES else ''}{spec.name}.webp"


def _title(spec: EnvironmentSpec) -> str:
    return spec.name.rpartition("-v")[0]


def _environment(spec: EnvironmentSpec) -> str:
    task = load_task(spec.task)
    sections = task_sections(task)
    env = TrialEnv(spec.task, **spec.defaults)
    env.close()
    common = docstring_sections(TrialVectorEnv)
    options = items(sections["Options"]) | {
        name: text for name, text in items(common["Options"]).items() if name not in VECTOR_OPTIONS
    }
    info = items(sections["Info"]) | items(common["Info"])
    if "success" not in info:
        del info["is_success"]
    return page(
        _title(spec),
        f"![The oracle in {spec.name}]({_picture(spec)})",
        sections[""],
        "\n".join(f"- **{name}:** {value}" for name, value in environment_facts(spec)),
        code(_EXAMPLE.format(id=spec.id)),
        section("Observation", _observation_table(env)),
        section("Action", sections["Action"]),
        section("Reward", sections["Reward"]),
        section("Termination", sections["Termination"]),
        section("Layout", sections["Layout"]),
        section("Options of reset", _list_table("option", options)),
        section("Info", _list_table("key", info)),
        section("Settings", settings_table(task.config_type) if task.config_type else ""),
        section("Without memory", sections.get("Without memory", "")),
        section("Certificate", _certificate(spec)),
        section("Variants", sections.get("Variants", "")),
        section("Batches", sections.get("Batches", "")),
        section("Further pages", FURTHER_PAGES.get(spec.family, "")),
        section("Citation", sections.get("Source", "")),
    )


def _certificate(spec: EnvironmentSpec) -> str:
    """The certificate of an id: verdict, scores, horizon curve and facts; "" without one."""
    made = spec.load_certificate()
    if made is None:
        return ""
    split = "" if made.split is None else f", split `{made.split}`"
    horizon = horizon_cells(made)
    return "\n\n".join(
        [
            f"Verdict: **{verdict_text(made)}**. `{made.command}` makes this [certificate](../certificates.md) of "
            f"{made.trials} trials of the test set {made.test_set}{split}.",
            table(("policy", "way", "window", f"`{made.score_key}`", "score shown"), table_cells(made)),
            "Score shown of the ideal policy, whose memory is wiped every k steps:",
            table(("k", *(steps for steps, _ in horizon)), [("score", *(score for _, score in horizon))]),
            "\n".join(f"- {fact[0].upper()}{fact[1:]}." for fact in facts(made)),
        ]
    )


def _observation_table(env: TrialEnv) -> str:
    rows = [(f"`{key}`", f"`{space}`" if space else "-", text) for key, space, text in observation_rows(env)]
    return table(("key", "space by default", "meaning"), rows)


def _list_table(what: str, meanings: dict[str, str]) -> str:
    return table((what, "meaning"), [(f"`{name}`", text) for name, text in meanings.items()])
