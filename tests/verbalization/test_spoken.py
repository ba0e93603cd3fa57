"""Answers of a model in words, and a life in words."""

from memenvs.verbalization.config import EpisodicQAConfig
from memenvs.verbalization.dialogs import Dialogs
from memenvs.verbalization.diary import describe_episode, describe_key_frames
from memenvs.verbalization.language.facts import Clause, Later
from memenvs.verbalization.language.parser import parse_answer
from memenvs.verbalization.language.score import CORRECT, score_answer, score_clauses
from memenvs.verbalization.language.speech import NO_ANSWER, spoken_answer
from memenvs.verbalization.language.tuples import clauses_to_tuples, tuples_to_clauses
from memenvs.verbalization.language.wordings import KINDS
from memenvs.verbalization.splits import life_data


def test_decoded_answers_in_words_are_as_right_as_they_were() -> None:
    """Gold answers as tuples, which have no words, are right again as texts wherever the tuples are."""
    config = EpisodicQAConfig(kinds=KINDS, scale="smoke", questions=4)
    dialogs, kinds = Dialogs(config), set()
    for number in range(0, len(dialogs), 7):
        for question in range(4):
            qa = dialogs.question(dialogs.usable(number), question).qa
            decoded = tuples_to_clauses(qa.question, clauses_to_tuples(qa.question, qa.answer.clauses, qa.now), qa.now)
            if score_clauses(decoded, qa.answer.clauses, None).category != CORRECT:
                continue
            text = spoken_answer(qa.question.family, decoded, qa.now)
            assert score_answer(text, qa, None).category == CORRECT, (qa, text)
            kinds.add(qa.kind)
    assert kinds == set(KINDS)


def test_incomplete_answers_are_listed() -> None:
    assert spoken_answer("action.open", None, 0) == NO_ANSWER
    for family, clause, text in (
        ("action.open", Clause(object="redcup"), "object red cup."),
        ("location.object", Clause("putdown", "redcup"), "verb putdown, object red cup."),
        ("duration.act", Clause(number=3), "number 3."),
        ("summary.period", Clause("move", "corn", "sink", later=Later("days", 2)), "location sink, later 2 days."),
        ("past_time.see", Clause(hand="handleft3a"), "hand left hand."),
    ):
        assert spoken_answer(family, (clause,), 86400).endswith(text), family


def test_months_have_a_capital_letter() -> None:
    """Also in answers that were parsed, whose words are lower case."""
    now = 250 * 86400
    clauses = parse_answer("clock", "it is september 7.", now)
    assert spoken_answer("clock.date", clauses, now) == "It is September 7."


def test_a_life_in_words() -> None:
    """Each key frame has its line, in the order of time; what is named is in the life; lives follow from their seed."""
    config = EpisodicQAConfig(scale="smoke").household()
    data = life_data(config, 12, 3, "smoke")
    history = data.histories.history(0)
    lines = describe_key_frames(history)
    assert len(history) == 12 and len(lines) == history.num_frames
    assert [line.time for line in lines] == sorted(line.time for line in lines)
    for number, episode in enumerate(history.episodes):
        texts = [line.text for line in lines if line.episode == number]
        assert sum(text.endswith(": fails") for text in texts) == sum(e.status == "failure" for e in episode.actions)
        assert describe_episode(episode).count("(failed)") == episode.outcomes.count(False)
    same, other = (life_data(config, 12, seed, "smoke").histories.history(0) for seed in (3, 4))
    assert same.starts == history.starts != other.starts
    assert life_data(config, 2, 3, "smoke").histories.history(0).num_frames < history.num_frames
