"""Sentences made of clauses.

Text is always produced from facts, so scoring has no second truth.
"""

from __future__ import annotations

from collections.abc import Sequence

from memenvs.verbalization.dates import DAY, as_datetime
from memenvs.verbalization.language.facts import SLOTS, Answer, Clause, ClauseVerb, Duration, Later
from memenvs.verbalization.language.names import MONTHS, counted, spell, spell_tens
from memenvs.verbalization.language.times import TimeReference
from memenvs.verbalization.language.wordings import Kind
from memenvs.verbalization.symbols import HANDS, LOCATIONS, OBJECTS

#: Past, infinitive and gerund of each verb.
FORMS: dict[ClauseVerb, tuple[str, str, str]] = {
    "move": ("moved", "move", "moving"),
    "grasp": ("grasped", "grasp", "grasping"),
    "putdown": ("put", "put", "putting"),
    "go": ("went", "go", "going"),
    "arrive": ("arrived", "arrive", "arriving"),
}
PAST, INFINITIVE, GERUND = range(3)
#: Answers that deny a problem: in a period, and of one action.
NO_PROBLEM_TEXTS = ("No.", "No, everything went fine.", "No, nothing went wrong.", "No, there were no problems.")
WENT_WELL_TEXTS = ("It went well.", "Everything was fine.", "It worked.", "There were no problems.")
NOTHING_TEXTS = (
    "I did not do anything.",
    "I did nothing.",
    "I was not doing anything.",
    "I did not have anything to do.",
)
DENIAL_TEXTS = ("I did not do that.", "That did not happen.", "No, i did not do that.")
FAILED = "tried to but failed to "
NO_ANSWER = "I do not know."
"""Words for an answer without any fact."""
#: Kind of question -> facts without which its sentence cannot be made.
_NEEDED = {
    "clock": ("time",),
    "past_time": ("time",),
    "location": ("location",),
    "object": ("object",),
    "duration": ("duration",),
    "how_often": ("number",),
}


def name_object(symbol: str) -> str:
    """Return such as "the green cup"."""
    return f"the {OBJECTS[symbol]}"


def name_location(symbol: str) -> str:
    """Return such as "the round table"."""
    return f"the {LOCATIONS[symbol].spoken}"


def say_action(clause: Clause, tense: int) -> str:
    """Say verb, object, location and hand of a clause.

    Args:
        clause: The clause; with a verb.
        tense: `PAST`, `INFINITIVE` or `GERUND`.
    """
    verb = clause.verb
    assert verb is not None, "only clauses with a verb are phrases of actions"
    words = FORMS[verb][tense]
    if clause.object:
        words += f"{' down' * (verb == 'putdown' and not clause.location)} {name_object(clause.object)}"
    if clause.location:
        words += (
            f" {'on' if verb == 'putdown' else 'at' if verb == 'arrive' else 'to'} {name_location(clause.location)}"
        )
    if clause.hand:
        words += f" with the {HANDS[clause.hand]}"
    return words


def _say_done(clause: Clause) -> str:
    return FAILED + say_action(clause, INFINITIVE) if clause.outcome == "failure" else say_action(clause, PAST)


def join(parts: Sequence[str]) -> str:
    """Join with commas and "and": "a, b and c"."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def say_duration(duration: Duration) -> str:
    """Return such as "34 seconds", "about thirty seconds" or "about one minute"."""
    if duration.exact:
        return f"{duration.seconds} second{'s' * (duration.seconds != 1)}"
    seconds = duration.rounded
    return f"about {counted(seconds // 60, 'minute') if seconds >= 60 else f'{spell_tens(seconds)} seconds'}"


def say_count(count: int) -> str:
    """Return "never", "only once" or such as "three times"."""
    return ("never", "only once")[count] if count < 2 else f"{spell(count)} times"


def _say_summary(clauses: Sequence[Clause]) -> str:
    episodes: list[list[Clause]] = []
    for clause in clauses:
        if clause.time or clause.later or not episodes:
            episodes.append([])
        episodes[-1].append(clause)
    sentences = []
    for episode in episodes:
        begin = _opening(episode[0])
        sentences.append(f"{begin[0].upper()}{begin[1:]} i {join([_say_done(clause) for clause in episode])}.")
    return " ".join(sentences)


def _opening(clause: Clause) -> str:
    """Begin a sentence about an episode. "Then" says hours 0: it is neither hours nor days later."""
    if clause.time:
        return clause.time.text
    assert clause.later is not None, "only the first episode has a time"
    if clause.later.number == 0:
        return "then"
    return f"{counted(clause.later.number, clause.later.unit[:-1])} later"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def say(family: str, clauses: Sequence[Clause], variant: int) -> str:
    """Say an answer.

    Args:
        family: Name of the question's family.
        clauses: Its facts.
        variant: Number that chooses among wordings with the same facts.

    Returns:
        One or more sentences.
    """
    kind, _, form = family.partition(".")
    first = clauses[0]
    if first.outcome == "denial":
        texts = NOTHING_TEXTS if kind in ("action", "summary") else DENIAL_TEXTS
        return texts[variant % len(texts)]
    if kind == "problems":
        if first.outcome == "success":
            return (NO_PROBLEM_TEXTS if form == "interval" else WENT_WELL_TEXTS)[variant % 4]
        failures = [f"failed to {say_action(clause, INFINITIVE)}{_when(clause)}" for clause in clauses]
        return f"{'Yes, i' if form == 'interval' else 'I'} {join(failures)}."
    if kind == "action":
        return f"I {join([_say_done(clause) for clause in clauses])}."
    if kind == "summary":
        return _say_summary(clauses)
    if kind == "location":
        return _say_location(clauses)
    if kind == "object":
        verb = FORMS[first.verb or "move"][PAST]
        named = join([name_object(clause.object or "") for clause in clauses])
        return (f"I {verb} {named}.", f"I think you are talking about {named} that i {verb}.")[variant % 2]
    if kind == "duration":
        return f"It took {say_duration(first.duration or Duration(0, False))}."
    if kind == "how_often":
        return f"{_capital(say_count(first.number or 0))}."
    assert first.time is not None, "clocks and past times are times"
    return f"{'I did it' if form == 'action' else 'It is' if kind == 'clock' else 'It was'} {first.time.text}."


def _when(clause: Clause) -> str:
    return f" {clause.time.text}" if clause.time else ""


def _say_location(clauses: Sequence[Clause]) -> str:
    starts = {"putdown": "put it on", "arrive": "just arrived at", "go": "was on the way to"}  # word: ok
    places = [f"{starts.get(clause.verb or '', 'was at')} {name_location(clause.location or '')}" for clause in clauses]
    return f"I {join(places)}."


def make_answer(kind: Kind, family: str, clauses: Sequence[Clause], variant: int) -> Answer:
    """Make the answer that says these clauses; see `say`."""
    return Answer(kind, tuple(clauses), say(family, clauses, variant))


def later_than(seconds: int, days: int) -> Later:
    """Return how much later an episode took place, in words of a summary.

    Args:
        seconds: From the start of the episode before.
        days: Calendar days from that.
    """
    return Later("days", days) if days else Later("hours", round(seconds / 3600))


def spoken_answer(family: str, clauses: Sequence[Clause] | None, now: int) -> str:
    """Put the answer of a model into words, also where facts are missing.

    Args:
        family: Name of the question's family.
        clauses: What the answer states; None if it states nothing.
        now: Second since 2020-01-01 00:00:00 at which the question is put.

    Returns:
        A sentence of the grammar; where facts for it are missing, a list of those that are there.
    """
    if not clauses:
        return NO_ANSWER
    named = [clause._replace(time=_name_time(family, clause.time, now)) for clause in clauses]
    if _makes_a_sentence(family, named):
        return say(family, named, 0)
    return f"{'; '.join(filter(None, map(_list_facts, named)))}."


def _name_time(family: str, time: TimeReference | None, now: int) -> TimeReference | None:
    """Give a time without words its words, and a date its capital letter."""
    if time is None or (time.text and family != "clock.date"):
        return time
    date = as_datetime(time.low)
    if family == "clock.date":
        return time._replace(text=f"{MONTHS[date.month - 1]} {date.day}")
    if family == "clock.time":
        return time._replace(text=f"{date:%H:%M}")
    if time.precision == "day":
        return time._replace(text=f"on {MONTHS[date.month - 1]} {date.day}")
    days = now // DAY - time.low // DAY
    day = ("today", "yesterday")[days] if 0 <= days < 2 else f"{spell(days)} days ago"
    clock = f"at {date:%H:%M}" if time.precision == "minute" else f"at about {date.hour} o clock"
    return time._replace(text=f"{day} {clock}")


def _makes_a_sentence(family: str, clauses: Sequence[Clause]) -> bool:
    kind = family.partition(".")[0]
    if clauses[0].outcome == "denial" or (kind == "problems" and clauses[0].outcome == "success"):
        return True
    if kind in _NEEDED:
        counted = clauses[:1] if kind in ("clock", "past_time", "duration", "how_often") else clauses
        return all(getattr(clause, name) is not None for clause in counted for name in _NEEDED[kind])
    if kind == "summary" and clauses[0].time is None:
        return False
    return all(clause.verb is not None for clause in clauses)


def _list_facts(clause: Clause) -> str:
    facts = [f"{slot} {_fact(value)}" for slot, value in zip(SLOTS, clause, strict=True) if value is not None]
    return ", ".join(facts)


def _fact(value: object) -> str:
    if isinstance(value, TimeReference):
        return value.text
    if isinstance(value, Duration):
        return say_duration(value)
    if isinstance(value, Later):
        return f"{value.number} {value.unit}"
    name = str(value)
    place = LOCATIONS[name].spoken if name in LOCATIONS else None
    return place or OBJECTS.get(name) or HANDS.get(name) or name
