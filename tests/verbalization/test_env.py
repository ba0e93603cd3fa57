"""EpisodicQA: phases, answers, rewards, and one data path with supervised training."""

import re
from collections import Counter
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest

from memenvs.core import TrialVectorEnv
from memenvs.query_task import make_query_task
from memenvs.registry import TINY, find_environment
from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dialogs import Dialogs, load_dialogs
from memenvs.verbalization.diary import HEIGHT, WIDTH, draw_timeline
from memenvs.verbalization.env import ANSWER, QUESTION, STREAM, EpisodicQA
from memenvs.verbalization.language.facts import Clause
from memenvs.verbalization.language.tokenizer import TOKENIZER
from memenvs.verbalization.language.tuples import (
    MAX_FACTS,
    NEXT,
    STOP,
    FactActions,
    TupleAnswers,
    clauses_to_tuples,
    describe_tuples,
)
from memenvs.verbalization.language.wordings import FAMILIES, KINDS
from memenvs.verbalization.queries import DialogBatch
from memenvs.verbalization.symbols import LOCATIONS, OBJECTS

SMALL = {"scale": "smoke", "frames_per_step": 4}


def make(num_envs=1, **settings):
    return TrialVectorEnv(EpisodicQA, num_envs, trial_episodes=1, **{**SMALL, **settings})


def play(env, envs=8):
    """Play an episode of the oracle in each copy: its observations, its last info, its return."""
    steps = [[] for _ in range(envs)]
    ends, rewards = [None] * envs, np.zeros(envs)
    obs, info = env.reset(seed=3)
    while any(end is None for end in ends):
        for i in range(envs):
            if ends[i] is None:
                steps[i].append({key: value[i].copy() for key, value in obs.items()})
        obs, reward, terminated, truncated, info = env.step(env.oracle_actions())
        assert not truncated.any()
        for i in range(envs):
            if ends[i] is None:
                rewards[i] += reward[i]
                if terminated[i]:
                    steps[i].append({key: value[i].copy() for key, value in obs.items()})
                    ends[i] = {key: value[i] for key, value in info.items()}
    return steps, ends, rewards


def test_rollout_reassembles_the_supervised_batch():
    for settings in (
        {},
        {"answer_mode": "tokens", "questions_per_history": 3, "kinds": KINDS, "preset": "faithful"},
        {"key_frames": "windows", "frames_per_step": 16, "modalities": ("date", "symbols")},
        {"modalities": ("images",), "lengths": (1,), **{key: TINY[key] for key in ("objects", "locations", "kinds")}},
        {"put": "interleaved", "questions_per_history": 2, "lengths": (3, 5), "split": "test"},
        {"distractors": 2, "lengths": (3,), "sampling": "even"},
    ):
        env = make(8, **settings)
        task = env.task
        steps, ends, rewards = play(env)
        count = task.config.questions_per_history
        numbers = [task.dialogs.usable(int(end["layout_id"])) for end in ends]
        questions = [[(int(end["question"]) + k) % task.config.questions for k in range(count)] for end in ends]
        batch = DialogBatch(task.dialogs, np.array(numbers), np.array(questions))
        frames, mask = batch.frames()
        for i, (walk, questions) in enumerate(zip(steps, batch.encoded(), strict=True)):
            is_frame = np.concatenate([step["frame_mask"] for step in walk]) > 0
            assert is_frame.sum() == mask[i].sum()
            for part, values in frames.items():
                seen = np.concatenate([step[f"frame_{part}"] for step in walk])
                assert np.array_equal(seen[is_frame], values[i, mask[i]]), part
                assert not seen[~is_frame].any() and not values[i, ~mask[i]].any()
            queries = [step["query"] for step in walk if step["phase"] == QUESTION]
            answers = [step["prefix"] for step in walk if step["phase"] == ANSWER]
            if task.config.put == "end":
                assert np.array_equal(queries, [question.query for question in questions])
            last = questions[-1]  # the earlier ones may be put after some of the episodes
            assert np.array_equal(queries[-1], last.query)
            gold = last.tuples if task.config.answer_mode == "structured" else last.tokens
            assert np.array_equal(answers[-1], gold)
            assert ends[i]["kind"] == last.qa.kind and ends[i]["distance"] == (last.qa.distance or 0)
            assert ends[i]["history_length"] == len(task.dialogs.history(numbers[i]))
            assert ends[i]["success"] and ends[i]["category"] == 2 and rewards[i] == count


def test_frames_are_gone_once_the_question_comes():
    steps, ends, _ = play(make(8, lengths=(2,)))
    for walk, end in zip(steps, ends, strict=True):
        phases = [int(step["phase"]) for step in walk]
        first = phases.index(QUESTION)
        assert phases == [STREAM] * first + [QUESTION] + [ANSWER] * (len(walk) - first - 1)
        for step in walk[first:]:
            assert not any(step[key].any() for key in step if key.startswith("frame_"))
            assert step["query"].any()
        for step in walk[:first]:
            assert step["frame_mask"].any() and not step["query"].any() and not step["prefix"].any()
        text = TOKENIZER.decode(walk[first]["query"].tolist())
        assert end["query_text"].lower().rstrip("?.") in text and re.match(r"202\d \d\d \d\d [1-7] ", text)


def test_actions_are_ignored_while_key_frames_come():
    env = make(4, lengths=(5,))
    obs, _ = env.reset(seed=1)
    other = make(4, lengths=(5,))
    other.reset(seed=1)
    rng = np.random.default_rng(0)
    while (obs["phase"] == STREAM).all():
        obs, reward, *_ = env.step(rng.integers(env.single_action_space.n, size=4))
        again, *_ = other.step(np.zeros(4, int))
        assert not reward.any() and all(np.array_equal(obs[key], again[key]) for key in obs)


def first_question(env, kind, test=lambda qa: True):
    """Reset until a question of a kind is put, and go to it; the question."""
    for seed in range(300):
        obs, _ = env.reset(seed=seed)
        qa = env.task.state.questions[0][0].qa
        if qa.kind == kind and test(qa):
            while obs["phase"][0] == STREAM:
                obs, *_ = env.step(np.zeros(1, int))
            return qa
    raise AssertionError(f"no question of kind {kind}")


def answer(env, clauses, qa):
    """Spell clauses; the reward and the info at the end."""
    for action in env.task.dialogs.fact_actions.spell(clauses_to_tuples(qa.question, clauses, qa.now)):
        _, reward, terminated, _, info = env.step(np.array([action]))
    assert terminated[0]
    return reward[0], {key: value[0] for key, value in info.items()}


def is_of_one_object(qa):
    return len(qa.answer.clauses) == 1 and qa.answer.clauses[0].object


def test_rewards_by_hand():
    env = make(kinds=("object",))
    qa = first_question(env, "object", is_of_one_object)
    gold = qa.answer.clauses[0]
    wrong = next(symbol for symbol in OBJECTS if symbol != gold.object)
    for clauses, f1, category in (
        ((gold,), 1.0, 2),
        ((Clause(gold.verb),), 2 / 3, 5),  # one of one fact, one of two expected
        ((Clause(gold.verb, wrong),), 0.5, 5),
        ((Clause(None, wrong),), 0.0, 7),
        ((gold, Clause(gold.verb, wrong)), 2 / 3, None),  # two of four facts, two of two expected
    ):
        first_question(env, "object", is_of_one_object)
        reward, info = answer(env, clauses, qa)
        assert reward == pytest.approx(f1) and info["f1"] == pytest.approx(f1)
        assert info["category"] == category or (category is None and info["category"] in (3, 4))
        assert info["success"] == (category == 2) and info["expected"] == 2
    first_question(env, "object")
    _, reward, terminated, _, info = env.step(np.array([STOP]))
    assert reward[0] == 0 and terminated[0] and info["category"][0] == 1
    strict = make(kinds=("object",), reward="correct")
    for clauses, reward in (((Clause(gold.verb),), 0), ((gold,), 1)):
        assert answer(strict, clauses, first_question(strict, "object", is_of_one_object))[0] == reward


def test_more_than_what_was_expected_is_checked_against_the_history():
    env = make(kinds=("action",), preset="faithful", lengths=(2,))
    categories = Counter()
    for _ in range(2):
        qa = first_question(env, "action", lambda qa: qa.answer.clauses[0].outcome is None)
        gold = qa.answer.clauses
        history = env.task.dialogs.history(int(env.task.state.history[0]))
        goals = [goal for episode in history.episodes for goal in episode.goals]
        true = [Clause("move", g.object, g.place) for g in goals if g.predicate == "objectAt"]
        extra = next((clause for clause in true if clause not in gold), None)
        place = next(p for p in LOCATIONS if Clause("move", "oil", p) not in [*true, *gold])
        clause = Clause("move", "oil", place) if not categories else extra
        if clause is not None:
            _, info = answer(env, (*gold, clause), qa)
            categories[info["category"]] += 1
    assert categories[4] == 1 and categories[3] + categories[4] == sum(categories.values())


def test_text_answers():
    env = make(kinds=("location",), answer_mode="tokens")
    qa = first_question(env, "location", lambda qa: qa.answer.clauses[0].location)
    place = LOCATIONS[qa.answer.clauses[0].location].spoken
    for text, f1 in ((qa.answer.text, 1.0), (f"hello {place} how", 0.0), ("", 0.0)):
        first_question(env, "location", lambda qa: qa.answer.clauses[0].location)
        for token in TOKENIZER.encode(text):
            obs, reward, terminated, _, info = env.step(np.array([token]))
        assert terminated[0] and reward[0] == f1 and info["success"][0] == (f1 == 1)
        assert TOKENIZER.decode(obs["prefix"][0].tolist()) == TOKENIZER.decode(TOKENIZER.encode(text))
    # An answer without an end ends after 128 tokens.
    first_question(env, "location")
    ends = [env.step(np.array([TOKENIZER.encode("sink")[0]]))[2:4] for _ in range(128)]
    assert [bool(terminated[0]) for terminated, _ in ends] == [False] * 127 + [True] and not ends[-1][1][0]


def test_interleaved_questions_are_about_the_episodes_so_far():
    env = make(8, put="interleaved", questions_per_history=3, lengths=(5,), frames_per_step=2)
    steps, ends, _ = play(env)
    places = set()
    for walk, end in zip(steps, ends, strict=True):
        history = env.task.dialogs.history(env.task.dialogs.usable(int(end["layout_id"])))
        counts = np.cumsum([len(episode.frames) for episode in history.episodes])
        seen = np.cumsum([step["frame_mask"].sum() for step in walk])
        put = [t for t, step in enumerate(walk) if step["phase"] == QUESTION]
        assert len(put) == 3
        for t in put:
            lived = int(np.searchsorted(counts, seen[t])) + 1 if seen[t] else 0
            places.add(lived)
            assert not len(history) or counts[lived - 1] == seen[t]  # a question comes between two episodes
        assert seen[-1] == history.num_frames
    assert len(places) >= 3
    dialogs = env.task.dialogs
    number = next(n for n in range(50) if len(dialogs.history(n)) == 5)
    prefix, whole = dialogs.prefix(number, 2), dialogs.history(number)
    assert prefix.episodes == whole.episodes[:2] and whole.ends[1] < prefix.question_time < whole.starts[2]


def test_a_history_without_episodes_begins_with_its_question():
    env = make(1, lengths=(1,), kinds=("action",))
    layout = next(k for k in range(80) if not len(env.task.dialogs.history(env.task.dialogs.usable(k))))
    obs, info = env.reset(seed=0, options={"layout": layout})
    assert info["history_length"][0] == 0  # as 2 % of the histories
    assert obs["phase"][0] == QUESTION and not obs["frame_mask"].any()
    assert env.task.state.questions[0][0].qa.answer.clauses == (Clause(outcome="denial"),)
    for _ in range(2):
        _, reward, terminated, *_ = env.step(env.oracle_actions())
    assert reward[0] == 1 and terminated[0]


def test_fact_actions_spell_every_answer():
    for kinds in (KINDS, ("object",), ("duration", "how_often")):
        dialogs = Dialogs(EpisodicQAConfig(kinds=kinds, scale="smoke"))
        actions = dialogs.fact_actions
        assert actions.names[:2] == ("stop", "next clause") and len(set(actions.names)) == len(actions)
        for number in range(60):
            encoded = dialogs.question(dialogs.usable(number), number % 16)
            assert encoded.qa.kind in kinds and encoded.facts[-1] == STOP
            answers = TupleAnswers(2, actions)
            for k, action in enumerate(encoded.facts):
                ended = answers.add(np.array([action]), np.array([1]))
                assert ended[0] == (k == len(encoded.facts) - 1)
            assert np.array_equal(answers.rows[1], encoded.tuples) and not answers.rows[0].any()
    tiny = load_dialogs(EpisodicQAConfig(**TINY, scale="smoke")).fact_actions
    assert len(tiny) == 2 + 5 + 3 + 4 + 2 and "object corn" in tiny.names and "object oil" not in tiny.names
    question = load_dialogs(EpisodicQAConfig(**SMALL)).question(0, 0).qa.question
    assert tiny.spell(clauses_to_tuples(question, [Clause("move", "oil")], 0)) is None
    rows = np.zeros((8, 10), np.int16)
    rows[0, [0, 1, 2]] = 1, 1, 2
    assert describe_tuples(rows) == "verb move, object redcup"


def test_an_answer_ends_after_its_last_clause_or_too_many_facts():
    actions = FactActions(("object",), tuple(OBJECTS), tuple(LOCATIONS))
    answers, envs = TupleAnswers(1, actions), np.array([0])
    fact = actions.names.index("object corn")
    assert not answers.add(np.array([NEXT]), envs)[0]  # an empty clause is no clause
    for clause in range(8):
        assert not answers.add(np.array([fact]), envs)[0]
        assert answers.rows[0, clause, 0] == 1
        assert answers.add(np.array([NEXT]), envs)[0] == (clause == 7)
    answers.clear(0)
    ended = [bool(answers.add(np.array([fact]), envs)[0]) for _ in range(MAX_FACTS)]
    assert ended == [False] * (MAX_FACTS - 1) + [True] and not answers.rows[0, 1:].any()


def test_batches_are_drawn_in_equal_shares_of_the_lengths():
    task = make_query_task("memenvs/EpisodicQA-v0", {"scale": "smoke", "preset": "faithful"})
    batch, again = (task.sample_batch(200, np.random.default_rng(0), questions=3) for _ in range(2))
    assert batch.questions.shape == (200, 3) and all(len(set(row)) == 3 for row in batch.questions.tolist())
    shares = Counter(len(batch.dialogs.history(number)) for number in batch.histories)
    assert set(shares) == {1, 2, 3, 5} and min(shares.values()) > 30
    assert (batch.histories == again.histories).all() and (batch.questions == again.questions).all()
    assert batch.select(slice(0, 2)).frames()[0]["sub"].shape[2] == 129
    assert task.sample_batch(2, np.random.default_rng(0), "test").dialogs.config.split == "valid"
    assert task.sample_batch(2, np.random.default_rng(0)).questions.shape == (2, 16)


def test_an_episode_of_an_environment_is_the_one_that_it_shows():
    """Of a batch: `test_rollout_reassembles_the_supervised_batch` compares its arrays with the observations."""
    row = find_environment("EpisodicQA-Tiny-v0")
    settings = {**row.defaults, "scale": "smoke"}
    env, task = TrialVectorEnv(row.task, 4, **settings), make_query_task(row.id, {"scale": "smoke"})
    env.reset(seed=0)
    batch = task.episodes_of(env.task)
    expected = [(question.query.tolist(), question.qa) for (question,) in env.task.state.questions]
    assert [(question.query.tolist(), question.qa) for (question,) in batch.encoded()] == expected
    assert batch.histories.tolist() == env.task.state.history.tolist()
    several = TrialVectorEnv(row.task, 1, **settings, questions_per_history=2)
    with pytest.raises(NotImplementedError, match="questions_per_history must be 1, got 2"):
        task.episodes_of(several.task)


def test_pictures():
    env = gym.make("memenvs/EpisodicQA-v0", render_mode="rgb_array", **SMALL, lengths=(5,))
    env.reset(seed=4)
    pictures = []
    terminated = False
    while not terminated:
        pictures.append(env.render())
        terminated = env.step(env.unwrapped.oracle_action())[2]
    pictures.append(env.render())
    assert all(picture.shape == (HEIGHT, WIDTH, 3) and picture.dtype == np.uint8 for picture in pictures)
    assert all((a != b).any() for a, b in pairwise(pictures[:-1]))  # the end of an answer shows nothing new
    dialogs = load_dialogs(EpisodicQAConfig(scale="smoke", lengths=(10,), kinds=("summary",)))
    assert draw_timeline(dialogs.history(0)).std() > 10


def test_bad_settings_are_named():
    for settings, error, message in (
        ({"kinds": ("why",)}, ValueError, "kinds: unknown 'why'"),
        ({"kinds": ()}, ValueError, "kinds must have at least one"),
        ({"kinds": "object"}, TypeError, "kinds must be a list of names"),
        ({"modalities": ("sound",)}, ValueError, "modalities: unknown 'sound'"),
        ({"lengths": ()}, ValueError, "lengths must be an integer or a list"),
        ({"lengths": (0,)}, ValueError, "lengths must be an integer of at least 1"),
        ({"questions_per_history": 0}, ValueError, "questions_per_history must be an integer"),
    ):
        with pytest.raises(error, match=message):
            make(**settings)
    env = make()
    with pytest.raises(ValueError, match=r"option 'question' must be an integer in 0 \.\.\. 15, got 16"):
        env.reset(seed=0, options={"question": 16})
    _, info = env.reset(seed=0, options={"question": 5, "layout": 7})
    assert info["question"][0] == 5 and info["layout_id"][0] == 7


def test_success_and_f1_are_those_of_all_answers():
    """Of two answers the first or the last says nothing: success is false, F1 is the mean of the answers so far."""
    for wrong, means in ((0, [0.0, 0.5]), (1, [1.0, 0.5])):
        env = make(questions_per_history=2, lengths=(2,))
        env.reset(seed=0)
        results, terminated = [], np.zeros(1, bool)
        while not terminated[0]:
            answered = int(env.task.state.answered[0])
            is_silent = env.task.state.phase[0] != STREAM and answered == wrong
            _, _, terminated, _, info = env.step(np.array([STOP]) if is_silent else env.oracle_actions())
            if env.task.state.answered[0] > answered:
                results.append((info["f1"][0], bool(info["success"][0])))
        assert results == [(means[0], wrong == 1), (means[1], False)]


def test_wordings_of_questions_are_those_of_the_setting():
    for paraphrases in ("seen", "held_out"):
        dialogs = load_dialogs(EpisodicQAConfig(scale="smoke", paraphrases=paraphrases))
        for number in range(40):
            for which in range(4):
                question = dialogs.question(dialogs.usable(number), which).qa.question
                family = FAMILIES[question.family]
                is_held_out = question.wording >= len(family.wordings) - family.num_held_out
                assert is_held_out == (paraphrases == "held_out"), question
