"""Model cards of trained agents: metadata of the Hugging Face Hub, then Markdown."""

from __future__ import annotations

from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets.training_command import training_command

PLACEHOLDER = "PATH_OF_THIS_FOLDER"
"""Stands in a model card for the name by which the agent is loaded."""

_PAGE = "https://github.com/memenvs/memenvs/blob/main/docs/integrations/hugging_face.md#use"

Curve = dict[str, list[float]]
"""Mean and standard error of a score by episode of the trial; of answers in a list of one."""


def model_card(config: RunConfig, evaluation: dict[str, dict[str, Any]], name: str) -> str:
    """Write the model card of an agent.

    Args:
        config: Settings of its run.
        evaluation: As `read_evaluation` returns it; empty if it was not evaluated.
        name: Name of the agent.
    """
    from huggingface_hub import EvalResult, ModelCardData  # takes a second to import

    curves = _curves(config, evaluation)
    learning = "reinforcement-learning" if config.kind.acts else "supervised-learning"
    results = [
        EvalResult(
            task_type=learning,
            dataset_type=config.env,
            dataset_name=config.env,
            metric_type=config.score,
            metric_name=title,
            metric_value=curves["agent"][1]["mean"][episode],
        )
        for title, episode in (_columns(config) if "agent" in curves else {}).items()
    ]
    data = ModelCardData(
        model_name=name,
        library_name="memenvs",
        tags=[learning, "memenvs", config.env.replace("/", "-")],
        eval_results=results or None,
    )
    return f"---\n{data.to_yaml()}\n---\n\n{_text(config, curves, name)}"


def _curves(config: RunConfig, evaluation: dict[str, dict[str, Any]]) -> dict[str, tuple[int, Curve]]:
    """Policies that have the score -> their number of trials or answered episodes, and the score."""
    curves: dict[str, tuple[int, Curve]] = {}
    for policy, data in evaluation.items():
        score = data["metrics"].get(config.score)
        if score and not config.kind.acts:
            score = {name: [value] for name, value in score.items()}
        if score and score["mean"]:
            curves[policy] = data[_unit(config)], score
    return curves


def _unit(config: RunConfig) -> str:
    """Name of what an evaluation has many of."""
    return "trials" if config.kind.acts else "episodes"


def _columns(config: RunConfig) -> dict[str, int]:
    """Title of each score in table and metadata -> its episode."""
    if not config.kind.acts:
        return {config.score: 0}
    return {f"{config.score}, {episode} episode of a trial": i for episode, i in (("first", 0), ("last", -1))}


def _text(config: RunConfig, curves: dict[str, tuple[int, Curve]], name: str) -> str:
    """Text of the card below its metadata."""
    memory = config.policy.get("memory")
    learner = config.kind.name if memory is None else f"{config.kind.name}, memory `{memory}`"
    command = training_command(config)
    kind = "An agent" if config.kind.acts else "A model that answers"
    training = "" if command is None else f"# trained by\n{command}\n"
    return f"""# {name}

{kind} for `{config.env}`, trained with [memenvs]({_PAGE}) ({learner}).

{_score_table(config, curves)}

```bash
memenvs pull {PLACEHOLDER} --out runs/{name}
memenvs evaluate runs/{name}
{training}```
"""


def _score_table(config: RunConfig, curves: dict[str, tuple[int, Curve]]) -> str:
    """Scores of each policy as a Markdown table."""
    if not curves:
        return "It was not evaluated."

    def cell(curve: Curve, i: int) -> str:
        return f"{curve['mean'][i]:.3g} +- {curve['stderr'][i]:.2g}"

    columns, unit = _columns(config), _unit(config)
    lines = [["policy", unit, *columns], ["---"] * (2 + len(columns))]
    lines += [
        [policy, str(count), *(cell(curve, episode) for episode in columns.values())]
        for policy, (count, curve) in curves.items()
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{table}\n\n+- is a standard error."
