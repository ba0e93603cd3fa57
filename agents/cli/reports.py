"""`memenvs-agents probe`, `paths`, `trajectories`, `record` and `report`."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Any

from memenvs.agents.experiments.config import CONFIG, read_config
from memenvs.agents.experiments.seed_groups import check_same_task
from memenvs.cli.common import parse_settings
from memenvs.cli.record import check_video


def probe(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Record and draw the attention of a run's ReLIC memory."""
    read_config(options.folder)

    from memenvs.agents.experiments.attention_probe import probe_run
    from memenvs.agents.experiments.directory import RunDirectory

    with RunDirectory(options.folder) as run:
        result = probe_run(
            run,
            options.out or options.folder,
            steps=options.steps,
            count=options.count,
            layout=options.layout,
            seed=options.seed,
            quiet=options.json,
        )
    if not options.json:
        for head in [*result["heads"], result["uniform"]]:
            name = "for comparison" if head is result["uniform"] else f"layer {head['layer']} head {head['head']}"
            shares = ", ".join(f"{key} {head[key]:.2f}" for key in ("sink", "own", "earlier", "evenness", "invariance"))
            print(f"{name}: {head['pattern']:17} {shares}")
        print("own, earlier: shares of the attention off the sink, to steps of the same episode and of earlier ones")
        print("evenness, invariance: its overlap with uniform attention, and between steps of different episodes")
        print("\n".join(result["files"]))
    return result


def paths(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Draw the paths of runs' agents, random and oracle."""
    for folder in options.folders:
        read_config(folder)
    _check_out(options)

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.paths import POLICIES, compare_paths

    with ExitStack() as opened:
        result = compare_paths(
            [opened.enter_context(RunDirectory(folder)) for folder in options.folders],
            options.out or options.folders[0],
            episodes=options.episodes,
            maps=options.maps,
            metric=options.metric,
            policies=options.policies or POLICIES,
            seed=options.seed,
            quiet=options.json,
        )
    if not options.json:
        width = max(map(len, result["policies"]))
        for name, curve in result["policies"].items():
            steps = range(0, len(curve["mean"]), max(1, (len(curve["mean"]) - 1) // 10))
            print(f"{name:{width}} {result['metric']}: " + ", ".join(f"{curve['mean'][t]:.3g} ({t})" for t in steps))
        print("mean over the episodes (after this number of steps)\n" + "\n".join(result["files"]))
    return result


def trajectories(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Write the trajectories of a run's agent as a result file."""
    config = read_config(options.folder)

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.papers.mtvm.trajectories import check_trajectories, write_trajectories

    check_trajectories(config)
    with RunDirectory(options.folder) as run:
        path = write_trajectories(run, options.out, split=options.split, seed=options.seed, quiet=options.json)
    if not options.json:
        print(f"written: {path}")
    return {"trajectories": str(path)}


def record(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Record a video of a run's agent, or of a model that was saved in Python, over a trial."""
    if not options.folder.exists():
        raise ValueError(f"folder must be that of a run, or the file of a model, got {options.folder}: no such file")
    is_model = options.folder.is_file()
    settings = parse_settings(options.env_kwargs)
    if is_model:
        from memenvs.agents.algorithms.checkpoint import Checkpoint

        Checkpoint.read(options.folder)  # refuses other files before an option that is missing
        if options.env is None:
            raise ValueError(f"{options.folder}: the file of a model needs --env ID, as in --env Darkroom-v0")
        if options.checkpoint is not None:
            raise ValueError(f"--checkpoint must be left out with the file of a model, got {options.checkpoint}")
    else:
        config = read_config(options.folder)
        if options.env:
            raise ValueError(f"--env goes with the file of a model, got {options.env} and the run {options.folder}")
        if not config.kind.acts:
            raise ValueError(f"run must be of an agent that acts, got one that learns to predict in {options.folder}")
        if settings:
            raise ValueError(f"--env_kwargs goes with the file of a model, got the run {options.folder}")
    default = options.folder.with_suffix(".gif") if is_model else options.folder / "video.gif"
    path = check_video(str(options.out or default))

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.video import load_model, record_policy, record_run

    video = {name: getattr(options, name) for name in ("steps", "layout", "seed", "frames", "fps")}
    if is_model:
        policy, config = load_model(options.folder, options.env, settings, options.seed)
        result = record_policy(policy, config, path, quiet=options.json, **video)
    else:
        with RunDirectory(options.folder) as run:
            result = record_run(run, path, checkpoint=options.checkpoint, quiet=options.json, **video)
    if not options.json:
        for number, episode in enumerate(result["episodes"], 1):
            print(f"episode {number}: return {episode['return']:.3g} in {episode['length']} steps")
        print(f"wrote {path}: {result['frames']} frames")
    return result


def report(options: argparse.Namespace, extra_arguments: list[str]) -> dict[str, Any]:
    """Write the report of one or more runs."""
    if len(set(options.folders)) < len(options.folders):
        raise ValueError(f"folders must differ, got one of them twice: {', '.join(map(str, options.folders))}")
    check_same_task({folder: read_config(folder) for folder in options.folders})
    _check_out(options)

    from memenvs.agents.experiments.directory import RunDirectory
    from memenvs.agents.experiments.run_report import write_report

    with ExitStack() as opened:
        runs = [opened.enter_context(RunDirectory(folder)) for folder in options.folders]
        path = write_report(runs, options.out or options.folders[0])
    if not options.json:
        print(path)
    return {"report": str(path)}


def _check_out(options: argparse.Namespace) -> None:
    """Check that pages about several runs have a folder of their own.

    Raises:
        ValueError: They would be written into the folder of a run.
    """
    if len(options.folders) > 1 and (options.out is None or (options.out / CONFIG).exists()):
        raise ValueError(f"--out must be a folder of its own where there are several runs, got {options.out}")
