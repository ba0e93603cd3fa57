"""Command line of the agents: `python -m agents train | evaluate | probe | walks | report | presets`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym

from agents.distributed import launched
from agents.evaluation import OraclePolicy, Policy, RandomPolicy, TrialResults
from agents.presets import PRESETS, find_preset
from agents.probe import probe_run
from agents.report import (
    Report,
    add_demonstrations,
    add_maps,
    add_predictions,
    add_runs,
    add_settings,
    image_png,
    read_evaluation,
)
from agents.run_config import with_overrides
from agents.runs import (
    RunDirectory,
    check_config,
    evaluate_run,
    evaluation_env,
    make_evaluator,
    read_config,
    train_run,
    trained_policy,
)
from agents.supervised_runs import evaluate_supervised, trained_model
from agents.vec_env import TrialVecEnv
from agents.walks import POLICIES, walk_run
from memenvs.checks import check_whole
from memenvs.files import write_file


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status: 0, 2 after a one-line error, or 130 after Ctrl-C."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command not in ("train", "evaluate"):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        result = options.run(options, rest)
    except (ValueError, TypeError, OSError, RuntimeError, gym.error.Error) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # what was trained up to the last checkpoint is kept
        return 130
    if options.json and result is not None:
        print(json.dumps(result))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m agents", description="Train, evaluate and report agents with memory."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    train = _command(commands, "train", _train, "train a preset, evaluate it and write its report")
    train.add_argument("preset", help="its name; `presets` lists all")
    train.add_argument("--out", type=Path, help="folder of the run; default runs/PRESET-SEED")
    train.add_argument("--resume", action="store_true", help="go on with the run in that folder")
    train.add_argument("--no-evaluate", action="store_true", help="only train")
    train.epilog = (
        "Any setting of the preset can be changed by its dotted name, the value as JSON: "
        "--seed 3  --ppo.n_epochs 2  --policy.memory_kwargs.layers 4  --env_kwargs.size 8. See `presets NAME`."
    )

    evaluate = _command(
        commands,
        "evaluate",
        _evaluate,
        "play the evaluation trials of a run, beside random and oracle; or answer its episodes",
    )
    evaluate.add_argument("folder", type=Path, help="folder of the run")
    evaluate.add_argument("--steps", type=int, help="steps of a trial; default the preset's")
    evaluate.add_argument("--trials", type=int, help="number of trials; default the preset's")
    evaluate.add_argument("--seed", type=int, default=1, help="of the evaluation (default 1)")
    evaluate.add_argument(
        "--checkpoint",
        help="file in the folder, of a run with milestones (default best.zip of a run with validation, else checkpoint.zip)",
    )
    evaluate.add_argument(
        "--name", help="NAME.json is written (default evaluation or demonstrations_N, which the report shows)"
    )
    evaluate.epilog = (
        "Other environments than the preset's by dotted names of eval_kwargs, the value as JSON: "
        "--name procthor --eval_kwargs.world procthor --eval_kwargs.split all --eval_kwargs.rooms null."
    )
    evaluate.add_argument(
        "--demonstrations",
        type=int,
        default=0,
        metavar="N",
        help="the oracle plays the first N episodes of each trial before the steps of the agent; only the agent is evaluated then",
    )

    probe = _command(
        commands, "probe", _probe, "show where the attention of a run's relic memory goes: attention.png and .json"
    )
    probe.add_argument("folder", type=Path, help="folder of the run")
    probe.add_argument("--steps", type=int, help="steps of the trial; default the preset's")
    probe.add_argument("--count", type=int, default=100, help="steps at which attention is recorded (default 100)")
    probe.add_argument("--layout", type=int, help="number of the layout; default drawn")
    probe.add_argument("--seed", type=int, default=1, help="of the trial (default 1)")
    probe.add_argument("--out", type=Path, help="folder of the files; default the run's")

    walks = _command(
        commands, "walks", _walks, "draw the ways of a run's agent, random and oracle, and a metric by step: walks.html"
    )
    walks.add_argument("folder", type=Path, help="folder of the run")
    walks.add_argument("--episodes", type=int, default=20, help="episodes that each policy plays (default 20)")
    walks.add_argument("--maps", type=int, default=4, help="how many of them are drawn (default 4)")
    walks.add_argument("--metric", help="what is shown by step (default the preset's score)")
    walks.add_argument(
        "--policies",
        nargs="+",
        default=list(POLICIES),
        metavar="POLICY",
        help=f"of {', '.join(POLICIES)} (default all)",
    )
    walks.add_argument("--seed", type=int, default=1, help="of the episodes (default 1)")
    walks.add_argument("--out", type=Path, help="folder of the files; default the run's")

    report = _command(commands, "report", _report, "write report.html of one or more runs")
    report.add_argument(
        "folders", type=Path, nargs="+", metavar="folder", help="folders of the runs; curves go into one plot"
    )
    report.add_argument("--out", type=Path, help="folder of the report; default the first run's")

    presets = _command(commands, "presets", _presets, "list the presets, or show the settings of one")
    presets.add_argument("name", nargs="?", help="show this one")
    return parser


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document on standard output and nothing else there"
    )
    parser.set_defaults(run=run)
    return parser


def _train(options: argparse.Namespace, rest: list[str]) -> dict[str, Any] | None:
    config = with_overrides(find_preset(options.preset), _pairs(rest))
    folder = options.out or Path("runs") / f"{options.preset}-{config.seed}"
    if options.resume:
        if rest:
            raise ValueError(f"settings cannot change when a run is resumed, got {' '.join(rest)}")
        config = read_config(folder)
    processes = launched(config.device)
    if not options.resume:
        with processes.agreed():
            check_config(config, processes)  # before there is a folder
    with RunDirectory(folder, None if options.resume else config, processes) as run:
        model = train_run(run, quiet=options.json)
        processes.close()
        if not processes.is_first:
            return None
        result: dict[str, Any] = {"run": str(folder), "steps": model.num_timesteps}
        if not options.no_evaluate:
            predicts = config.supervised is not None
            result["evaluation"] = evaluate_supervised(run) if predicts else evaluate_and_compare(run)
            result["report"] = str(write_report([run], folder))
    if not options.json:
        _print_curves(result.get("evaluation", {}), config.score)
        print(f"run: {folder}" + (f"\nreport: {result['report']}" if "report" in result else ""))
    return result


def _evaluate(options: argparse.Namespace, rest: list[str]) -> dict[str, Any]:
    changes = {"eval_steps": options.steps, "eval_trials": options.trials}
    with RunDirectory(options.folder) as run:
        if run.config.supervised is not None:
            return _evaluate_predictions(run, options, rest)
        given: dict[str, Any] = {key: value for key, value in changes.items() if value is not None}
        if rest:
            given["eval_kwargs"] = with_overrides(run.config, _pairs(rest, "eval_kwargs.")).eval_kwargs
        policy = trained_policy(run, options.seed, options.checkpoint)
        if options.demonstrations == 0:
            result = evaluate_and_compare(run, options.seed, options.name or "evaluation", policy=policy, **given)
        else:
            shown = options.demonstrations
            result = evaluate_demonstrated(run, shown, options.seed, options.name, policy=policy, **given)
        if not options.json:
            _print_curves(result, run.config.score)
    return result


def _evaluate_predictions(run: RunDirectory, options: argparse.Namespace, rest: list[str]) -> dict[str, Any]:
    """The command `evaluate` for a run that learns to predict."""
    for option in ("steps", "checkpoint", "demonstrations"):
        if getattr(options, option):
            raise ValueError(f"--{option} is for agents that act; {run.path} learns to predict")
    changed = with_overrides(run.config, _pairs(rest, "eval_kwargs.")).eval_kwargs if rest else None
    model = trained_model(run, changed)
    name = options.name or "evaluation"
    result = evaluate_supervised(run, model, name=name, seed=options.seed, episodes=options.trials)
    if not options.json:
        _print_curves(result, run.config.score)
    return result


def _probe(options: argparse.Namespace, rest: list[str]) -> dict[str, Any]:
    with RunDirectory(options.folder) as run:
        result = probe_run(
            run,
            options.out or options.folder,
            steps=options.steps,
            count=options.count,
            layout=options.layout,
            seed=options.seed,
        )
    if not options.json:
        for head in [*result["heads"], result["uniform"]]:
            name = "for comparison" if head is result["uniform"] else f"layer {head['layer']} head {head['head']}"
            shares = ", ".join(f"{key} {head[key]:.2f}" for key in ("sink", "own", "earlier", "evenness", "invariance"))
            print(f"{name}: {head['pattern']:17} {shares}")
        print("own + earlier = 1: shares of what is off the sink, on steps of the same episode and of those before it")
        print("\n".join(result["files"]))
    return result


def _walks(options: argparse.Namespace, rest: list[str]) -> dict[str, Any]:
    with RunDirectory(options.folder) as run:
        result = walk_run(
            run,
            options.out or options.folder,
            episodes=options.episodes,
            maps=options.maps,
            metric=options.metric,
            policies=options.policies,
            seed=options.seed,
        )
    if not options.json:
        for name, curve in result["policies"].items():
            steps = range(0, len(curve["mean"]), max(1, (len(curve["mean"]) - 1) // 10))
            print(f"{name:8} {result['metric']}: " + ", ".join(f"{curve['mean'][t]:.3g} ({t})" for t in steps))
        print("mean over the episodes after so many steps\n" + "\n".join(result["files"]))
    return result


def _report(options: argparse.Namespace, rest: list[str]) -> dict[str, Any]:
    runs = [RunDirectory(folder) for folder in options.folders]
    try:
        path = write_report(runs, options.out or options.folders[0])
    finally:
        for run in runs:
            run.close()
    if not options.json:
        print(path)
    return {"report": str(path)}


def _presets(options: argparse.Namespace, rest: list[str]) -> Any:
    if options.name is not None:
        settings = find_preset(options.name).to_json()
        if not options.json:
            print(json.dumps(settings, indent=1))
        return settings
    rows = [{"name": name, "what": what} for name, (what, _) in PRESETS.items()]
    if not options.json:
        width = max(map(len, PRESETS))
        for row in rows:
            print(f"{row['name']:{width}} {row['what']}")
    return rows


def evaluate_and_compare(
    run: RunDirectory, seed: int = 1, name: str = "evaluation", *, policy: Policy | None = None, **changes: Any
) -> dict[str, Any]:
    """Evaluates a run's policy, and random and oracle on the same layouts; writes `NAME.json` and the maps.

    Args:
        run: The folder.
        seed: Of the evaluation.
        name: Of the file; the report shows `evaluation.json`, and the maps are drawn for it only.
        policy: What plays; None: the run's checkpoint.
        **changes: As `evaluate_run`.

    Returns:
        Policy name -> `TrialResults.to_json`.
    """
    agent = evaluate_run(run, policy, pictures=name == "evaluation", seed=seed, **changes)
    results = {"agent": agent.to_json()}
    for other in ("random", "oracle"):
        results[other] = _baseline(run, other, seed, **changes).to_json()
    write_file(run.path / f"{name}.json", json.dumps(results).encode())
    for episode, image in agent.pictures.items():
        write_file(run.path / f"{episode.replace(' ', '_')}.png", image_png(image))
    return results


def evaluate_demonstrated(
    run: RunDirectory,
    demonstrations: int,
    seed: int = 1,
    name: str | None = None,
    *,
    policy: Policy | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Evaluates a run's policy after demonstrations of the oracle; writes `NAME.json`.

    Args:
        run: The folder.
        demonstrations: Episodes of the oracle at the start of each trial, N; >= 1.
        seed: Of the evaluation.
        name: Of the file; None for "demonstrations_N", which the report shows.
        policy: What plays; None: the run's checkpoint.
        **changes: As `evaluate_run`.

    Returns:
        "agent" -> `TrialResults.to_json`.
    """
    check_whole("demonstrations", demonstrations)
    agent = evaluate_run(run, policy, seed=seed, demonstrations=demonstrations, **changes)
    results = {"agent": agent.to_json()}
    write_file(run.path / f"{name or f'demonstrations_{demonstrations}'}.json", json.dumps(results).encode())
    return results


def _baseline(run: RunDirectory, name: str, seed: int, **changes: Any) -> TrialResults:
    """Random or oracle, for fewer trials: they do not learn, so a few are enough."""
    config = replace(run.config, **changes)
    config = replace(config, eval_trials=min(config.eval_trials, 40))
    env = evaluation_env(config, config.eval_trials, seed)
    assert isinstance(env, TrialVecEnv)
    policy = RandomPolicy(env.action_space, seed) if name == "random" else OraclePolicy(env)
    try:
        return make_evaluator(config, env).run(policy)
    finally:
        env.close()


def write_report(runs: Sequence[RunDirectory], folder: Path) -> Path:
    """Writes `report.html` with its pictures and returns its path."""
    report = Report(", ".join(run.path.name for run in runs), folder)
    acting = [run for run in runs if run.config.supervised is None]
    predicting = [run for run in runs if run.config.supervised is not None]
    if predicting:
        add_predictions(report, predicting)
    if acting:
        add_runs(report, acting)
        add_demonstrations(report, acting)
        add_maps(report, acting[0])
    add_settings(report, runs)
    return report.write(folder / "report.html")


def _pairs(rest: list[str], prefix: str = "") -> list[tuple[str, Any]]:
    """("name", value) of `--name value`; a value that is not JSON is text.

    Raises:
        ValueError: Something else is there, or a name does not begin with the prefix.
    """
    pairs = []
    for i in range(0, len(rest), 2):
        if not rest[i].startswith(f"--{prefix}") or i + 1 == len(rest):
            raise ValueError(f"settings must come as --{prefix}name value, got {' '.join(rest[i:])!r}")
        try:
            value = json.loads(rest[i + 1])
        except json.JSONDecodeError:
            value = rest[i + 1]
        pairs.append((rest[i][2:], value))
    return pairs


def _print_curves(evaluation: dict[str, Any], score: str) -> None:
    for name, data in evaluation.items():
        if "episodes" in data:  # of predictions
            for metric, value in data["metrics"].items():
                print(f"{name:8} {metric}: {value['mean']:.4f} +- {value['stderr']:.4f}")
            continue
        curve = data["metrics"].get(score, {"mean": []})["mean"]
        shown = data["demonstrations"].get(score, [])
        if shown:
            print(f"{'oracle':8} {score} by demonstration: " + " ".join(f"{value:.3g}" for value in shown))
        print(f"{name:8} {score} by episode: " + " ".join(f"{value:.3g}" for value in curve))


__all__ = ["evaluate_and_compare", "evaluate_demonstrated", "main", "read_evaluation", "write_report"]

if __name__ == "__main__":
    sys.exit(main())
