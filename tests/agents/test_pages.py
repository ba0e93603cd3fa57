"""Pages of memories, algorithms and presets are whole, and true of the code."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from gymnasium import spaces
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from generate import algorithms, make_folder, memories
from generate.algorithms import ALGORITHMS, SPACES
from generate.memories import setting_range
from generate.results import all_results, memory_page, results_of_preset
from memenvs.agents import EpisodeDQN, PartialUpdatePPO
from memenvs.agents.experiments.registry import learners
from memenvs.agents.memory import MEMORIES, StepInputs, make_memory, memory_spec
from memenvs.agents.memory.smt import SMTMemory
from memenvs.agents.presets import PRESETS
from tests.agents.learners import Noise

ROOT = Path(__file__).parents[2]
MEMORY_TITLES = [
    "Idea", "Equations", "State", "Cost", "When to use", "When not to use", "Settings", "Small size", "How to use",
    "Results", "Difference from the paper", "Citation",
]  # fmt: skip
ALGORITHM_TITLES = ["Notes", "Can I use?", "Example", "Results", "How to replicate", "Parameters"]


@pytest.fixture(scope="module")
def pages() -> dict[str, dict[str, str]]:
    """Folder -> file name -> text."""
    return {folder: make_folder(folder) for folder in ("memories", "algorithms", "presets")}


def sections(page: str) -> dict[str, str]:
    """Title -> text below it; comments in code are no titles."""
    prose = re.sub(r"^```.*?^```", lambda found: found[0].replace("\n#", "\n "), page, flags=re.DOTALL | re.MULTILINE)
    parts = re.split(r"^## (.+)$", prose, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))


@pytest.mark.slow
def test_every_memory_has_a_page_with_every_section(pages):
    assert set(pages["memories"]) == {"index.md", *map(memory_page, MEMORIES)}
    for name in MEMORIES:
        found = sections(pages["memories"][memory_page(name)])
        found.pop("Implementation", None)  # what is special about the code, where there is something
        assert list(found) == [title for title in MEMORY_TITLES if (title, name) != ("Small size", "none")]
        assert all(found.values()), f"{name}: an empty section"
        assert found["Equations"].startswith("$$\n")
        assert name == "none" or found["Settings"].startswith("| setting |")
        assert f"({memory_page(name)})" in pages["memories"]["index.md"]


def test_every_learner_has_a_page_with_every_section(pages):
    assert {each.learner for each in ALGORITHMS} - {""} == {learner.name for learner in learners()}
    assert set(pages["algorithms"]) == {"index.md", *(each.page_name for each in ALGORITHMS)}
    for each in ALGORITHMS:
        found = sections(pages["algorithms"][each.page_name])
        assert list(found) == ALGORITHM_TITLES
        assert all(found.values()), f"{each.name}: an empty section"


def test_every_preset_has_a_page_and_a_row(pages):
    assert set(pages["presets"]) == {"index.md", *(f"{name}.md" for name in PRESETS)}
    for name in PRESETS:
        page = pages["presets"][f"{name}.md"]
        assert f"| [`{name}`]({name}.md) |" in pages["presets"]["index.md"]
        assert f"memenvs train {name}\n" in page and sections(page)["Settings"]


def test_a_docstring_without_a_section_is_refused_by_name(monkeypatch):
    doc = SMTMemory.__doc__
    for changed in (doc.replace("    Cost:\n", "    Price:\n"), re.sub(r"(    Cost:\n)(?:        .*\n)+", r"\1", doc)):
        assert changed != doc
        monkeypatch.setattr(SMTMemory, "__doc__", changed)
        with pytest.raises(ValueError, match="docstring of SMTMemory must have the section 'Cost'"):
            memories.memory_sections(memory_spec("smt"))


def test_ranges_are_those_of_the_descriptions():
    assert setting_range("dim", int, "Width.") == "1 to 65,536"
    assert setting_range("bptt", int | None, "Length.") == "at least 1 or `None`"
    assert setting_range("dropout", float, "Rate of it; in [0, 1).") == "in [0, 1)"
    assert setting_range("rope_base", float, "Base; > 1.") == "> 1"
    with pytest.raises(ValueError, match="description of rate must give its range"):
        setting_range("rate", float, "A rate.")


def test_results_are_those_of_the_rows_of_studies(pages):
    """The page of ExtObjNav has shares in %; runs of a preset are found by its settings."""
    (relic,) = (
        result
        for result in all_results()
        if (result.study, result.task, result.method) == ("ext_objnav", "whole", "relic")
    )
    first, last = 100 * relic.scores.mean(0)[[0, 14]]
    assert f"| {first:.1f} ± " in (ROOT / "studies" / "ext_objnav" / "page.md").read_text() and last > first
    assert f"| {relic.score().replace('+-', '±')} |" in pages["memories"]["relic.md"]
    assert {result.study for result in results_of_preset("sat-visual-match")} == {"visual_match"}
    assert results_of_preset("ci-smoke") == []


@pytest.mark.parametrize("learner", [PartialUpdatePPO, EpisodeDQN])
def test_check_marks_of_spaces_are_true(learner):
    small = {PartialUpdatePPO: {"n_steps": 8, "n_updates": 1, "batch_size": 1}}.get(
        learner, {"capacity": 4, "episode_steps": 5, "updates_per_collect": 1, "batch_size": 2, "decisions": 2}
    )

    def learns(observation: spaces.Space, action: spaces.Space) -> bool:
        try:
            env = Noise(observation, action)
            model = learner("MemoryPolicy", env, policy_kwargs={"memory": "none"}, device="cpu", **small)
        except (AssertionError, ValueError):
            return False
        model.learn(40)
        return True

    box, discrete = SPACES["Box"], SPACES["Discrete"]
    for name, space in SPACES.items():
        assert learns(box, space) == algorithms.takes_actions(learner, space), f"actions {name}"
        assert learns(space, discrete) == algorithms.takes_observations(space), f"observations {name}"


def multiply_adds(name: str, steps: int, width: int, settings: dict[str, Any]) -> float:
    """Count the multiply-adds of a decision that has `steps` steps in memory, itself included."""
    memory = make_memory(name, width, **settings).eval()
    state = memory.initial_state(1, max_steps=steps)

    def inputs(count: int) -> StepInputs:
        numbers, starts = torch.zeros(1, count, dtype=torch.int64), torch.zeros(1, count, dtype=torch.bool)
        poses = torch.zeros(1, count, 3)
        return StepInputs(torch.zeros(1, count, width), starts, starts, poses, numbers, numbers)

    _, state = memory.prefill(inputs(steps - 1), state)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        memory.step(inputs(1), state)
    return counter.get_total_flops() / 2


def test_the_cost_of_a_decision_is_as_the_pages_say():
    I, M, D, L, F, h, R, C = 32, 200, 64, 3, 96, 4, 5, 25  # as in the docstrings; F is D_mlp  # noqa: E741
    n, S = 8, 24
    scene = {"dim": D, "heads": h, "capacity": M}
    transformer = {"layers": L, "heads": h, "dim": D, "mlp_dim": F}
    residual = {"layers": L, "dim": D, "mlp_dim": F}
    tokens = {**transformer, "capacity": M}
    chunks = {"chunk": 10, "top_k": 3}
    costs: dict[str, tuple[dict[str, Any], int]] = {
        "relic": (transformer, L * (4 * D**2 + 3 * D * F + 2 * M * D)),
        "trxl": ({**transformer, "memory_length": M}, L * (4 * D**2 + 3 * D * F + (2 * h + 1) * M * D + M * D**2)),
        "memo": (
            {**transformer, "segment_length": 16, "summary_tokens": 2},  # after 199 steps: 12 segments, and 8 steps
            I * D + L * (4 * D**2 + 3 * D * F + 2 * (12 * 2 + 8) * D) + D**2,
        ),
        "window": ({"steps": M, "dim": D}, M * I * D),
        "mingru": (residual, I * D + L * (3 * D**2 + 3 * D * F)),
        "lru": (residual, I * D + L * (4 * D**2 + 3 * D * F)),
        "gated-deltanet": ({**residual, "heads": h}, I * D + L * (5 * D**2 + 3 * D**2 / h + 3 * D * F)),
        "smt": (scene, 2 * M**2 * D + 2 * M * D**2 + 2 * h * M * D + 4 * M * R * D),
        "smt-factorized": (
            {**scene, "centres": "window", "n_centres": C},
            4 * M * C * D + (2 * M + 5 * C) * D**2 + 2 * h * M * D + 4 * M * R * D,
        ),
        "smt-causal": ({**scene, "layers": L}, L * (5 * D**2 + 2 * M * (D + 8 * h))),
        "sm-pooling": ({"dim": D, "capacity": M}, M * R * D),
        "frmqn": ({"dim": D, "capacity": M}, I * D + 15 * D**2 + 2 * M * D),
        "t-fifo": (tokens, I * D + L * (6 * D**2 + 2 * D * F + 2 * M * D + 2 * M * D)),
        "t-fifo+a": (tokens, I * D + L * (6 * D**2 + 2 * D * F + 2 * 2 * M * D + 2 * M * D)),
        "sat-fifo": (tokens, I * D + L * (6 * D**2 + 2 * D * F + 2 * M * D + 2 * (M + 9) * D)),
        "sat-fifo-th": (
            {**tokens, **chunks},
            I * D + L * (8 * D**2 + 2 * D * F + M * D + 2 * h * 30 * D + (2 * h + 1) * (M + 9) * D),
        ),
        "ct": (  # with half a block
            {**transformer, "block_length": 16, "memory_length": 16},
            n * L * (4 * D**2 + 2 * D * F) + (L - 1) * (2 * S * D**2 + 3 * n * (S + n) * D),
        ),
    }
    for name, (settings, cost) in costs.items():
        assert multiply_adds(name, M, I, settings) == pytest.approx(cost, rel=0.12), name
    bare = 2 * M * (D + h * R) + (2 * R + 5) * D**2
    assert multiply_adds("smt", M, I, {**scene, "encoder": False}) == pytest.approx(bare, rel=0.12)


def test_states_are_counted():
    assert memories.state_numbers("lstm", 10) == 2 * 256
    assert memories.state_numbers("relic", 11) - memories.state_numbers("relic", 10) == 2 * 4 * 256
    assert memories.state_numbers("smt", 10) == memories.state_numbers("smt", 20) == 1000 * (4 * 128 + 3) + 2
