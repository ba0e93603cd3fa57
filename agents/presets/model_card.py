"""Model cards of trained agents: metadata of the Hugging Face Hub, then Markdown."""

from __future__ import annotations

from typing import Any

from memenvs.agents.experiments.config import RunConfig
from memenvs.agents.presets.training_command import training_command

PLACEHOLDER = "PATH_OF_THIS_FOLDER"
"""Stands in a model card for the name by which the agent is loaded."""

Curve = dict[str, list[float]]
"""Mean and standard error of a score by episode of the trial, as in `TrialResults.to_json`."""


def model_card(config: RunConfig, evaluation: dict[str, dict[str, Any]], name: str) -> str:
    """Write the model card of an agent.

    Args:
        config: Settings of its run.
        evaluation: As `read_evaluation` returns it; empty if it was not evaluated.
        name: Name of the agent.
    """
    from huggingface_hub import EvalResult, ModelCardData  # takes a second to import

    curves: dict[str, tuple[int, Curve]] = {
        policy: (data["trials"], data["metrics"][config.score])
        for policy, data in evaluation.items()
        if data["metrics"].get(config.score, {"mean": []})["mean"]
    }
    results = []
    if "agent" in curves:
        means = curves["agent"][1]["mean"]
        for episode, value in {"first": means[0], "last": means[-1]}.items():
            results.append(
                EvalResult(
                    task_type="reinforcement-learning",
                    dataset_type=config.env,
                    dataset_name=config.env,
                    metric_type=config.score,
                    metric_name=f"{config.score}, {episode} episode of a trial",
                    metric_value=value,
                )
            )
    data = ModelCardData(
        model_name=name,
        library_name="memenvs",
        tags=["reinforcement-learning", "memenvs", config.env.replace("/", "-")],
        eval_results=results or None,
    )
    return f"---\n{data.to_yaml()}\n---\n\n{_text(config, curves, name)}"


def _text(config: RunConfig, curves: dict[str, tuple[int, Curve]], name: str) -> str:
    """Text of the card below its metadata."""
    memory = config.policy.get("memory")
    learner = config.kind.name if memory is None else f"{config.kind.name}, memory `{memory}`"
    command = training_command(config)
    training = "" if command is None else f"```bash\n{command}\n```\n\n"
    return f"""# {name}

An agent for `{config.env}`, trained with memenvs ({learner}).

{_score_table(curves, config.score)}

## Use

```python
from memenvs.agents.presets.pretrained import load_pretrained

policy = load_pretrained("{PLACEHOLDER}")
```

`policy.predict(observation, state, episode_start, trial_start=trial_start)` returns actions and the next state.
Loading executes nothing of this folder: `checkpoint.zip` holds safetensors and JSON.

```bash
memenvs pull {PLACEHOLDER} --out runs/{name}
memenvs evaluate runs/{name}
```

## Training

{training}`config.json` has all settings.
"""


def _score_table(curves: dict[str, tuple[int, Curve]], score: str) -> str:
    """Scores of each policy as a Markdown table."""
    if not curves:
        return "It was not evaluated."

    def cell(curve: Curve, i: int) -> str:
        return f"{curve['mean'][i]:.3g} +- {curve['stderr'][i]:.2g}"

    lines = [
        f"| policy | trials | {score}, first episode of a trial | {score}, last episode |",
        "|---|---|---|---|",
        *(
            f"| {policy} | {trials} | {cell(curve, 0)} | {cell(curve, -1)} |"
            for policy, (trials, curve) in curves.items()
        ),
        "",
        "Mean +- standard error over the trials of an evaluation.",
    ]
    return "\n".join(lines)
