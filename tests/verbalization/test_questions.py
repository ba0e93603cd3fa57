"""Questions, their answers and their inverse: by hand, and for many that were drawn."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from memenvs.verbalization.episodes import History
from memenvs.verbalization.histories import HistorySampler, generate_pool
from memenvs.verbalization.household_config import household
from memenvs.verbalization.language.facts import DENIAL, slot_matches
from memenvs.verbalization.language.log import Log
from memenvs.verbalization.language.parser import QuestionError, parse_answer, parse_question
from memenvs.verbalization.language.presets import language
from memenvs.verbalization.language.questions import referents
from memenvs.verbalization.language.sampler import PRESUPPOSING, QASampler, answer_question
from memenvs.verbalization.language.times import FutureTimeError
from memenvs.verbalization.language.tokenizer import ANSWER_TOKENS, QUERY_TOKENS, TOKENIZER, UNKNOWN, query_text
from memenvs.verbalization.language.tuples import SLOT_SIZES, clauses_to_tuples, tuples_to_clauses
from memenvs.verbalization.language.wordings import FAMILIES, KINDS
from tests.verbalization.lives import ambiguous_day, second, three_episodes

LENGTHS = (1, 2, 3, 5, 10)


def histories(preset, count, seed=0):
    pool = generate_pool(household(preset, key_frames="events"), 100, (seed,))
    source = HistorySampler(household(preset), pool, LENGTHS, count, (seed, 1))
    return [Log(source.history(number)) for number in range(count)]


def same(clauses, expected, *, exactly=True):
    """True if clauses have the same facts; not `exactly`: if they match as an answer does."""
    if clauses is None or len(clauses) != len(expected):
        return False
    slots = [pair for both in zip(clauses, expected, strict=True) for pair in zip(*both, strict=True)]
    return all(
        a is b if a is None or b is None else slot_matches(a, b) and (not exactly or slot_matches(b, a))
        for a, b in slots
    )


def test_nine_kinds_by_hand():
    log = Log(three_episodes())
    for text, expected in (
        ("What time is it?", "It is 15:00."),
        ("what is the date today?", "It is July 6."),
        ("which day of the week is it?", "It is Tuesday."),
        ("what did you do?", "I grasped the green cup."),
        ("what did you do yesterday in the morning?", "I moved the green cup to the sink."),
        (
            "describe your task yesterday at 16:40.",
            "I moved the corn to the round table and tried to but failed to move the oil to the small table.",
        ),
        ("what did you do yesterday at 09:11?", "I did not do anything."),
        ("what did you do yesterday at 09:12?", "I moved the green cup to the sink."),
        ("what did you do yesterday at 09:13?", "I did not do anything."),
        ("were there any problems today?", "No."),
        ("did anything go wrong this week?", "Yes, i failed to grasp the oil yesterday at 16:43."),
        ("how did grasping the oil go?", "I failed to grasp the oil yesterday at 16:43."),
        ("how did moving the corn go?", "It went well."),
        ("when did you grasp the green cup?", "I did it today at 12:20."),
        ("when did you put the green cup on the sink?", "I did it yesterday at 09:13."),
        ("when did you first see the green cup?", "It was yesterday at 09:12."),
        ("when did you last touch the green cup?", "It was today at 12:20."),
        ("when did you last see the nesquik?", "I did not do that."),
        ("where have you been yesterday at 09:14?", "I was at the sink."),
        ("where were you yesterday at 16:42?", "I was at the round table."),
        ("where did you put the corn?", "I put it on the round table."),
        ("which object did you move to the sink yesterday?", "I moved the green cup."),
        ("which object did you grasp today at noon?", "I grasped the green cup."),
        ("what did you move to the small table?", "I did not do that."),  # it failed
        ("how long did it take to grasp the green cup yesterday?", "It took about thirty seconds."),
        ("how long did it exactly take to grasp the green cup yesterday?", "It took 34 seconds."),
        ("how long did it take to put down the green cup?", "It took about four minutes."),
        ("how long did it take to go to the sink today?", "It took about thirty seconds."),
        (
            "summarise what you did this week.",
            "Yesterday at 09:12 i moved the green cup to the sink. Seven hours later i moved the corn to the round "
            "table and tried to but failed to move the oil to the small table. One day later i grasped the green cup.",
        ),
        ("list everything that you did three days ago.", "I did not do anything."),
        ("how often did you grasp the green cup?", "Two times."),
        ("how often did you grasp the oil?", "Never."),  # it failed
        ("how often have you been at the sink?", "Two times."),
        ("how often did you move something to the round table?", "Only once."),
    ):  # fmt: skip
        answer = answer_question(log, parse_question(text, log))
        assert answer.text == expected, text
        assert same(parse_answer(answer.kind, answer.text, log.now), answer.clauses), text
    hands = answer_question(log, parse_question("what did you do?", log), hands=True)
    assert hands.text == "I grasped the green cup with the left hand."


def test_questions_outside_the_grammar_are_refused():
    log = Log(three_episodes())
    for text, words in (
        ("Where is my dragon?", ("is", "my", "dragon")),
        ("where did you put the purple cup?", ("purple",)),
        ("you did what?", ()),
        ("where were you?", ()),
        ("where were you at 27:99?", ()),
        ("", ()),
        (" ? ", ()),
    ):
        with pytest.raises(QuestionError) as error:
            parse_question(text, log)
        assert set(error.value.words) <= set(words) and (not words or words[-1] in error.value.words), text
        assert text in str(error.value)
        assert ("must have words" in str(error.value)) == (not text.strip(" ?")), text
    for text in ("what did you do tomorrow?", "where were you today at 18:00?", "what did you do next week?"):
        with pytest.raises(FutureTimeError, match="future"):
            parse_question(text, log)


@pytest.mark.slow
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.nightly)])
def test_any_text_is_answered_or_refused(step):
    """Every paraphrase with every form of action and time, whole or with words left out, swapped or replaced."""
    rng = np.random.default_rng(0)
    logs = [Log(three_episodes()), Log(History((), (), second(2021, 1, 1, 9, 0), (1,)))]
    acts = ("grasp the oil", "move the corn", "move the corn to the sink", "put down the oil", "go to the fridge")
    acting = ("grasping the oil", "moving cookies", "putting the corn on the sink", "going to the round table")
    times = ("", "yesterday", "today at noon", "on July 5 at 09 AM", "in the last three days", "at 31 o clock")
    outcomes = Counter()
    for wording in [wording for family in FAMILIES.values() for wording in family.wordings][::step]:
        choices = {"act": acts, "acting": acting, "time": times, "period": times, "exactly": ("exactly ", "")}
        drawn = {key: values[int(rng.integers(len(values)))] for key, values in choices.items()}
        named = {"object": "the red cup", "location": "the sink", "order": "last", "see": "touch"}
        text = wording.format_map(named | drawn)
        words = text.split()
        changed = np.delete(words, rng.integers(len(words)) if len(words) > 1 else [])
        noise = [TOKENIZER.tokens[int(rng.integers(3, len(TOKENIZER)))] if rng.random() < 0.2 else w for w in words]
        for variant in (text, " ".join(changed), " ".join(rng.permutation(words)), " ".join(noise)):
            for log in logs:
                try:
                    answer = answer_question(log, parse_question(variant, log), hands=True)
                except (QuestionError, FutureTimeError):
                    outcomes["refused"] += 1
                else:
                    outcomes["answered"] += 1
                    assert same(parse_answer(answer.kind, answer.text, log.now), answer.clauses), (variant, answer)
    assert min(outcomes["refused"], outcomes["answered"]) > 150 / step


@pytest.mark.parametrize("count", [50, pytest.param(400, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("preset", ["faithful", "debiased"])
def test_texts_tuples_and_tokens_have_the_facts(preset, count):
    sampler = QASampler(language(preset))
    families, rows_of_all = Counter(), []
    for log in histories(preset, count):
        for number in range(12):
            qa = sampler.draw(log, number, KINDS[number % 9])
            families[qa.question.family] += 1
            assert same(parse_answer(qa.kind, qa.answer.text, qa.now), qa.answer.clauses), qa.answer
            rows = clauses_to_tuples(qa.question, qa.answer.clauses, qa.now)
            assert (rows >= 0).all() and (rows < list(SLOT_SIZES.values())).all()
            assert same(tuples_to_clauses(qa.question, rows, qa.now), qa.answer.clauses, exactly=False), qa
            rows_of_all.append(rows)
            parsed = parse_question(qa.question.text, log)
            if parsed.time and qa.question.time:
                assert parsed.time[1:] == qa.question.time[1:]
                parsed = replace(parsed, time=qa.question.time)
            assert parsed == qa.question
            query = query_text(qa.now, qa.question.text)
            for text, most in ((query, QUERY_TOKENS), (qa.answer.text, ANSWER_TOKENS)):
                numbers = TOKENIZER.encode(text)
                assert TOKENIZER.decode(numbers) == text.lower() and len(numbers) <= most and UNKNOWN not in numbers
    missing = set(FAMILIES) - set(families)
    assert missing <= {"clock.weekday"} if preset == "faithful" else not missing
    used = np.concatenate(rows_of_all).max(axis=0)
    assert (used[1:6] > 0).all() or preset == "faithful"  # every slot of names is used


def naive_referents(log, question):
    """Count what a question with a time could mean, without the code under test."""
    low, high = question.time.low, question.time.high
    items = []
    for number, (start, episode) in enumerate(zip(log.history.starts, log.history.episodes, strict=True)):
        if question.kind == "action" or question.family.startswith("object."):
            named = [
                goal
                for goal, reached in zip(episode.goals, episode.outcomes, strict=True)
                if question.kind == "action"
                or (
                    reached
                    and goal.predicate == {"object.moved": "objectAt", "object.grasped": "grasped"}[question.family]
                    and question.location in (None, goal.place)
                )
            ]
            items += [number] if named and low <= start < high else []
            continue
        verb = {"go": "move", "location.object": "putdown"}.get(question.verb or question.family, question.verb)
        for action in episode.actions:
            if (action.verb, action.status) != (verb, "success") or not low <= start + action.start < high:
                continue
            if question.object in (None, action.object) and question.location in (None, action.location):
                items.append((number, action.start))
    return items


def test_referents_are_unique_and_as_counted_by_hand():
    sampler = QASampler(language("debiased"))
    seen = Counter()
    for log in histories("debiased", 60, 5):
        for number in range(12):
            qa = sampler.draw(log, number, ("action", "object", "duration", "location")[number % 4])
            if qa.kind in ("clock", "problems", "summary", "how_often", "past_time"):
                continue
            if qa.question.time and qa.question.family != "location.robot":
                count = len(naive_referents(log, qa.question))
                assert count == (0 if qa.reference is None else 1), qa
                seen[qa.question.family, count] += 1
            assert len(referents(log, qa.question)) < 2
            if qa.reference is not None:
                assert qa.distance == len(log) - qa.episodes[-1] and len(qa.episodes) == 1
    assert len(seen) >= 9 and sum(n for (_, count), n in seen.items() if not count) > 5
    # Where a phrase is ambiguous, `faithful` answers about one episode and says so; `debiased` names the time finely.
    history = ambiguous_day()
    faithful = [QASampler(language("faithful", timeless=0.0)).draw(history, k, "action") for k in range(80)]
    log = Log(history)
    assert {len(referents(log, qa.question)) for qa in faithful} == {1, 2}
    assert all(len(qa.episodes) == 1 for qa in faithful)
    fine = [QASampler(language(timeless=0.0, unique=True)).draw(history, k, "action") for k in range(80)]
    assert {len(referents(log, qa.question)) for qa in fine} == {1}
    assert {qa.question.time.precision for qa in fine} == {"minute"}  # part and hour are those of both
    union = answer_question(history, parse_question("what did you do yesterday in the afternoon?", Log(history)))
    assert union.text == "I grasped the corn and grasped the oil."


def test_shares_of_the_presets():
    logs = histories("debiased", 100, 2)
    sampler = QASampler(language("debiased"))
    drawn = [(len(log), sampler.draw(log, number)) for log in logs for number in range(20)]
    kinds = Counter(qa.kind for _, qa in drawn)
    assert kinds["clock"] < 0.05 * len(drawn) and all(kinds[kind] > 0.03 * len(drawn) for kind in KINDS[1:])
    assert all(length >= 5 for length, qa in drawn if qa.kind == "how_often")
    presupposing = [qa.answer.clauses == DENIAL and length > 0 for length, qa in drawn if qa.kind in PRESUPPOSING]
    assert 0.01 < sum(presupposing) / len(drawn) < 0.07
    problems = [qa.answer.clauses[0].outcome == "failure" for _, qa in drawn if qa.kind == "problems"]
    assert 0.35 < np.mean(problems) < 0.65
    mixed = Counter(QASampler(language()).draw(log, number).kind for log in logs for number in range(10))
    assert 0.38 < mixed["action"] / 1000 < 0.52
    empty = History((), (), second(2021, 1, 1, 9, 0), (1,))
    for kind in KINDS:  # every kind is possible, even where nothing happened
        qa = QASampler(language("debiased", kinds=(kind,))).draw(empty, 0)
        assert qa.kind == kind and len(qa.answer.clauses) == 1


def test_wrong_settings_are_refused():
    for changes, error, message in (
        ({"weights": (1.0,)}, ValueError, "9 numbers"),
        ({"exact": 2.0}, ValueError, "exact must be a share"),
        ({"kind": "action"}, TypeError, "unexpected keyword argument 'kind'"),
        ({"preset": "biased"}, ValueError, "unknown preset 'biased'"),
    ):
        with pytest.raises(error, match=message):
            language(**changes)
