"""One page for each algorithm, in the shape of Stable-Baselines3's pages."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

import numpy as np
from gymnasium import spaces

from generate.markdown import code, page, section, settings_table, table
from generate.results import Result, all_results, linked, results_table
from memenvs.agents.algorithms.base import MemoryAlgorithm
from memenvs.agents.experiments.registry import find_learner_by_name
from memenvs.agents.vec_env import check_observation_space
from memenvs.docstrings import docstring_sections, items

YES, NO = "✔", "✘"


@dataclass(frozen=True)
class Algorithm:
    """An algorithm with a page.

    Attributes:
        module: Module of the class, below `memenvs.agents`.
        name: Name of the class.
        learner: Name in the registry of learners, which gives settings and results; "" for none.
        example: Code that runs in seconds.
        commands: Shell commands beside those of the studies.
        config: Class of the settings in `memenvs.agents`, without a learner.
        title: Title of the page, if it is not the name.
    """

    module: str
    name: str
    example: str
    learner: str = ""
    commands: tuple[str, ...] = ()
    config: str = ""
    title: str = ""

    @property
    def type(self) -> type[Any]:
        """The class."""
        return getattr(import_module(f"memenvs.agents.{self.module}"), self.name)

    @property
    def config_type(self) -> type[Any] | None:
        """The class of the settings; None where all are arguments of the constructor."""
        if self.learner:
            return find_learner_by_name(self.learner).config_type
        return getattr(import_module("memenvs.agents"), self.config) if self.config else None

    @property
    def page_name(self) -> str:
        """File of the page."""
        return f"{self.name}.md"


ALGORITHMS = (
    Algorithm(
        "algorithms.ppo",
        "PartialUpdatePPO",
        """
from memenvs.agents import PartialUpdatePPO, make_vec_env

env = make_vec_env("memenvs/Darkroom-v0", 8, size=5, max_episode_steps=25, trial_episodes=None, seed=0)
memory = {"layers": 1, "heads": 2, "dim": 32, "mlp_dim": 64, "max_episode_steps": 25}
policy_kwargs = {"memory": "relic", "memory_kwargs": memory}
model = PartialUpdatePPO(
    "MemoryPolicy", env, policy_kwargs=policy_kwargs, n_steps=125, n_updates=5, batch_size=8, seed=0
)
model.learn(2000)
model.save("agent")

model = PartialUpdatePPO.load("agent", env=env)
model.learn(1000, reset_num_timesteps=False)
""",
        "ppo",
    ),
    Algorithm(
        "algorithms.dqn",
        "EpisodeDQN",
        """
from memenvs.agents import EpisodeDQN, make_vec_env

env = make_vec_env("memenvs/Darkroom-v0", 8, size=5, max_episode_steps=25, trial_episodes=1, seed=0)
policy_kwargs = {"memory": "lstm", "memory_kwargs": {"hidden_dim": 32}}
settings = {"capacity": 32, "episode_steps": 25, "updates_per_collect": 10, "batch_size": 8, "decisions": 8}
model = EpisodeDQN("MemoryPolicy", env, policy_kwargs=policy_kwargs, seed=0, **settings)
model.learn(2000)
model.save("agent")
model.save_replay_buffer("replay")
""",
        "dqn",
    ),
    Algorithm(
        "algorithms.supervised",
        "SupervisedLearner",
        """
import numpy as np
import torch

from memenvs.agents import SupervisedConfig, SupervisedLearner
from memenvs.agents.papers.sat.learner import make_prediction
from memenvs.query_task import make_query_task

task = make_query_task("memenvs/RoomBallet-ABA-v0", {})
model = make_prediction(task, {"memory": "sat-pm", "dim": 32, "heads": 1, "layers": 2, "mlp_dim": 32})
learner = SupervisedLearner(model, SupervisedConfig(batch_size=8, learning_rate=1e-3), total_steps=5, seed=0)
learner.learn(5, on_step=lambda log: print(log["loss"], log["accuracy"]))

episodes = model.sample(100, np.random.default_rng(1), None)
with torch.no_grad():
    print(model.scores(episodes)["accuracy"].mean(), model.ideal(episodes)["accuracy"].mean())
""",
        "supervised",
        commands=("memenvs train room-ballet", "memenvs study room_ballet"),
    ),
    Algorithm(
        "papers.emv.learner",
        "SlotAnswering",
        """
import torch

from memenvs.agents import SupervisedLearner
from memenvs.agents.papers.emv.config import QuestionConfig
from memenvs.agents.papers.emv.experiment import make_question_answering

data = {"scale": "smoke", "questions": 2}
memory = {"dim": 16, "layers": 2, "heads": 2, "mlp_dim": 16}
settings = {"memory": "ct-lt", "memory_kwargs": memory, "dim": 16, "head_dim": 16, "questions": 2}
torch.manual_seed(0)
model = make_question_answering("memenvs/EpisodicQA-Tiny-v0", data, settings)
learner = SupervisedLearner(model, QuestionConfig(batch_size=4), total_steps=3, seed=0)
learner.learn(3, on_step=lambda log: print(log["answer_loss"], log["auxiliary_loss"], log["accuracy"]))
""",
        "questions",
        commands=("memenvs train episodic-qa", "memenvs study episodic_qa"),
    ),
    Algorithm(
        "memory.allocator",
        "AdaptiveAllocator",
        """
import numpy as np
import torch

from memenvs.agents import AdaptiveAllocator
from memenvs.retention import STRATEGIES

allocator = AdaptiveAllocator(task_dim=4)
optimizer = torch.optim.Adam(allocator.parameters(), 1e-2)
rng = np.random.default_rng(0)
for step in range(200):
    task = torch.from_numpy(rng.integers(4, size=32))  # strategy k is the right one for task k
    tasks = torch.nn.functional.one_hot(task, 4).float()
    chosen = allocator.choose(tasks, epsilon=0.5, rng=rng)
    loss = allocator.loss(tasks, chosen, rewards=(chosen == task).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print([STRATEGIES[number] for number in allocator.best(torch.eye(4))])

from memenvs.agents import AllocatorConfig, PartialUpdatePPO, make_vec_env  # by reinforcement

env = make_vec_env("memenvs/VisualMatch-v0", 4, obs="one_hot", place=True, seed=0)
policy_kwargs = {"memory": "sat-fifo", "memory_kwargs": {"dim": 16, "layers": 1, "mlp_dim": 16, "capacity": 40}}
settings = {"n_steps": 100, "n_updates": 1, "batch_size": 2}  # a rollout has room for a whole episode
allocator = AllocatorConfig(strategies=("fifo", "mvfo"))
model = PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy_kwargs, allocator=allocator, seed=0, **settings)
model.learn(400)
print(model.policy.allocator.strategies, model.policy.allocator(torch.ones(1, 1)))  # Q of each
""",
        config="AllocatorConfig",
        commands=("memenvs train sat-visual-match", "memenvs study visual_match"),
    ),
    Algorithm(
        "papers.mtvm.learner",
        "ImitationA2C",
        """
from memenvs.agents import ImitationA2C, make_vec_env

env = make_vec_env("memenvs/VLN-R2R-v0", 2, world="procedural", split="train", legs=1, max_tokens=112, seed=0)
network = {"dim": 16, "inner": 32, "heads": 2, "critic_dim": 16, "text_positions": 112}
policy_kwargs = {"size": "tiny", "network": network}
model = ImitationA2C("MTVMPolicy", env, policy_kwargs=policy_kwargs, learning_rate=1e-3, seed=0)
model.learn(2)  # updates: each plays an episode with the teacher, and one with the policy
model.save("follower")
""",
        "imitation",
    ),
    Algorithm(
        "experiments.trial_evaluator",
        "TrialEvaluator",
        """
from memenvs.agents import TrialEvaluator, make_vec_env
from memenvs.agents.experiments.play import OraclePolicy

env = make_vec_env("memenvs/Darkroom-v0", 4, split="test", seed=1)
results = TrialEvaluator(env, n_steps=500, n_trials=8).run(OraclePolicy(env))
curve = results.curve("return")
print(curve.mean, curve.stderr)  # by episode of the trial
""",
        commands=("memenvs evaluate runs/darkroom-0", "memenvs report runs/darkroom-0"),
    ),
    Algorithm(
        "algorithms.distributed",
        "Processes",
        title="Distributed running: `Processes`",
        example="""
from memenvs.agents import PartialUpdatePPO, make_vec_env
from memenvs.agents.algorithms.distributed import launched_processes

processes = launched_processes()  # of torchrun or accelerate; this process alone without them
env = make_vec_env("memenvs/Darkroom-v0", processes.split_evenly("n_envs", 8), size=5)
policy_kwargs = {"memory": "gru", "memory_kwargs": {"hidden_dim": 32}}
settings = {"n_steps": 32, "n_updates": 1, "batch_size": 8, "seed": 0}
model = PartialUpdatePPO("MemoryPolicy", env, policy_kwargs=policy_kwargs, processes=processes, **settings)
model.learn(256)
""",
        commands=(
            "torchrun --nproc_per_node 4 -m memenvs train extobjnav --out runs/nav",
            "accelerate launch --multi_gpu --num_processes 4 -m memenvs train extobjnav --out runs/nav",
        ),
    ),
)

#: A space of each kind, as actions and as observations.
SPACES: dict[str, spaces.Space] = {
    "Discrete": spaces.Discrete(3),
    "Box": spaces.Box(-1.0, 1.0, (2,), np.float32),
    "MultiDiscrete": spaces.MultiDiscrete([2, 3]),
    "MultiBinary": spaces.MultiBinary(2),
    "Dict": spaces.Dict({"position": spaces.Box(-1.0, 1.0, (2,), np.float32), "room": spaces.Discrete(3)}),
    "Text": spaces.Text(8),
}


def make_pages() -> dict[str, str]:
    """Make the index and a page an algorithm."""
    rows = [(f"[`{algorithm.name}`]({algorithm.page_name})", first_line(algorithm.type)) for algorithm in ALGORITHMS]
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *(algorithm.page_name for algorithm in ALGORITHMS), "```"])
    index = page("Algorithms", table(("algorithm", "one line"), rows), toctree)
    return {"index.md": index, **{algorithm.page_name: _algorithm(algorithm) for algorithm in ALGORITHMS}}


def first_line(of: type[Any]) -> str:
    """First line of a docstring."""
    return (inspect.getdoc(of) or "").partition("\n")[0]


def takes_actions(algorithm: type[MemoryAlgorithm], space: spaces.Space) -> bool:
    """True if the algorithm learns with actions of this space."""
    return isinstance(space, algorithm.action_spaces)


def takes_observations(space: spaces.Space) -> bool:
    """True if a `MemoryPolicy` reads observations of this space."""
    try:
        check_observation_space(space)
    except ValueError:
        return False
    return True


def _algorithm(algorithm: Algorithm) -> str:
    sections = docstring_sections(algorithm.type)
    for name in ("Difference from the paper", "Source"):
        if not sections.get(name):
            raise ValueError(f"the docstring of {algorithm.name} must have the section {name!r}")
    notes = (
        f"- Paper: {linked(sections['Source'])}\n"
        f"- Difference from the paper: {linked(sections['Difference from the paper'])}"
    )
    results = _results(algorithm)
    without = "No study of this repository has a result of it yet."
    if not algorithm.learner:
        without = "It trains nothing: see the results of the other algorithms."
    return page(
        algorithm.title or f"`{algorithm.name}`",
        sections[""],
        section("Notes", notes),
        section("Can I use?", _can_i_use(algorithm)),
        section("Example", code(algorithm.example)),
        section("Results", results_table(results) or without),
        section("How to replicate", _commands(algorithm, results)),
        section("Parameters", _parameters(algorithm)),
    )


def _can_i_use(algorithm: Algorithm) -> str:
    of = algorithm.type
    if not issubclass(of, MemoryAlgorithm):
        return table(("", ""), _uses(algorithm))
    follows = algorithm.learner == "imitation"
    rows = [
        (f"`{name}`", _mark(takes_actions(of, space)), *([] if follows else [_mark(takes_observations(space))]))
        for name, space in SPACES.items()
    ]
    if follows:
        about = "Observations must be those of `VLN-R2R-v0` or `VLN-CVDN-v0`, whose oracle is the teacher."
    else:
        about = "Keys of a `Dict` may be of any of the other spaces that are marked."
    columns = ("space", "actions", "observations")[: len(rows[0])]
    return f"{table(columns, rows)}\n\n{about}\n\n{table(('', ''), _uses(algorithm))}"


def _uses(algorithm: Algorithm) -> list[tuple[str, str]]:
    of, config = algorithm.type, algorithm.config_type
    rows = []
    if issubclass(of, MemoryAlgorithm):
        follows = algorithm.learner == "imitation"
        rows = [
            ("any [memory](../memories/index.md)", f"{NO} `MTVMPolicy` has its own" if follows else YES),
            ("several environments at once", YES),
            (
                "trials of several episodes",
                f"{NO} the memory starts empty in each episode" if algorithm.learner != "ppo" else YES,
            ),
            ("action mask, observation `candidate_mask`", YES),
            ("several processes", _mark(of.learns_in_processes)),
        ]
    elif algorithm.name == "Processes":
        processes = [learner for learner in ALGORITHMS if _learns_in_processes(learner.type)]
        rows = [(f"[`{learner.name}`]({learner.page_name})", YES) for learner in processes]
        rows += [("without a GPU (Gloo)", YES), ("resume with another number of processes", NO)]
    elif algorithm.name == "SupervisedLearner":
        rows = [
            ("tasks that ask about what was watched (`PictureTask`), with SAT's models", YES),
            ("an own task, as a subclass of `PredictionModel`", YES),
            ("several processes", _mark(_learns_in_processes(of))),
        ]
    elif algorithm.name == "SlotAnswering":
        rows = [
            ("`EpisodicQA-v0`, `-Tiny`, `-Long`", YES),
            ("memories that give their vectors: `ct` and its relatives, `lstm-on`, `lstm-o1`; `none`", YES),
            ("other memories", NO),
            ("several processes", YES),
        ]
    elif algorithm.name == "AdaptiveAllocator":
        rows = [
            ("supervised, as `AllocatedBallet`", YES),
            ("reinforcement learning, `PartialUpdatePPO(allocator=...)`", YES),
            ("memories with a capacity and `strategies`: `t-fifo`, `sat-...`", YES),
            ("other memories", NO),
            ("copies of an environment whose time limits or trials differ", NO),
        ]
    elif algorithm.name == "TrialEvaluator":
        rows = [
            ("policies of this package, oracle and random policy", YES),
            ("any object with Stable-Baselines3's `predict`", YES),
            ("environments without trials", f"{YES} each episode is a trial"),
        ]
    if config is not None and "precision" in {field.name for field in fields(config)}:
        rows.append(("bfloat16 (`precision`)", YES))
    return rows


def _learns_in_processes(of: type[Any]) -> bool:
    if issubclass(of, MemoryAlgorithm):
        return of.learns_in_processes
    return "processes" in inspect.signature(of).parameters


def _mark(yes: bool) -> str:
    return YES if yes else NO


def _results(algorithm: Algorithm) -> list[Result]:
    if algorithm.name == "AdaptiveAllocator":
        return [
            result
            for result in all_results()
            if "allocation" in result.config.policy or getattr(result.config.learner, "allocator", None) is not None
        ]
    return [result for result in all_results() if result.config.kind.name == algorithm.learner]


def _commands(algorithm: Algorithm, results: list[Result]) -> str:
    studies = dict.fromkeys(result.command for result in results)
    return code("\n".join([*studies, *algorithm.commands]), "bash") if results or algorithm.commands else ""


def _parameters(algorithm: Algorithm) -> str:
    of, config = algorithm.type, algorithm.config_type
    arguments = items(docstring_sections(of)["Args"])
    arguments.pop("**kwargs", None)
    if issubclass(of, MemoryAlgorithm):
        arguments = items(docstring_sections(MemoryAlgorithm)["Args"]) | arguments
        arguments.pop("**overrides")
    parts = [table(("argument", "meaning"), [(f"`{name}`", linked(text)) for name, text in arguments.items()])]
    if config is not None:
        parts.append(f"Settings, fields of `{config.__name__}`:\n\n{settings_table(config)}")
    return "\n\n".join(parts)
