"""Paraphrases of every kind of question.

A family is one form of question: its paraphrases have the same meaning and the same slots. Braces are slots:
{object}, {location}, {time} (a moment), {period}, {order} ("first" or "last"), {act} and {acting} (an action in the
infinitive and as a gerund), {see} ("see" or "touch"), {exactly} ("exactly ", or nothing).

"""

from __future__ import annotations

from typing import Literal, NamedTuple

#: Increased with every change of what the grammar can produce; files of questions and answers carry it.
GRAMMAR_VERSION = 1

Kind = Literal["clock", "action", "problems", "past_time", "location", "object", "duration", "summary", "how_often"]
KINDS: tuple[Kind, ...] = (
    "clock",
    "action",
    "problems",
    "past_time",
    "location",
    "object",
    "duration",
    "summary",
    "how_often",
)
#: Share of the paraphrases of each family, the last ones, that a split can hold out.
HELD_OUT_SHARE = 0.2


class Family(NamedTuple):
    """One form of question.

    Attributes:
        name: Kind and form, such as "duration.grasp".
        kind: One of the nine kinds.
        wordings: Its paraphrases.
        timeless: Also without a time; "newest" is meant then.
    """

    name: str
    kind: Kind
    wordings: tuple[str, ...]
    timeless: bool = False

    @property
    def num_held_out(self) -> int:
        """Number of paraphrases that a split can hold out, the last ones."""
        return max(1, round(HELD_OUT_SHARE * len(self.wordings)))


def _family(name: str, *wordings: str, timeless: bool = False) -> Family:
    return Family(name, name.split(".")[0], wordings, timeless)  # type: ignore[arg-type]


_ALL = (
    _family(
        "clock.time",
        "what time is it?",
        "what is the time now?",
        "which time of day do we have?",
        "how late is it?",
        "do you know what time it is?",
        "please give me the current time.",
    ),
    _family(
        "clock.date",
        "what is the date today?",
        "which date do we have today?",
        "what day of the month is it?",
        "do you know the current date?",
        "please give me the date.",
        "today is which date?",
    ),
    _family(
        "clock.weekday",
        "which day of the week is it?",
        "what weekday do we have today?",
        "today is which weekday?",
    ),
    _family(
        "action.open",
        "what did you do {time}?",
        "what have you done {time}?",
        "what were you doing {time}?",
        "what were you up to {time}?",
        "what kept you busy {time}?",
        "what was your work {time}?",
        "what did you work on {time}?",
        "what did you accomplish {time}?",
        "which job did you carry out {time}?",
        "can you say what you did {time}?",
        "do you remember what you did {time}?",
        "could you describe what happened {time}?",
        timeless=True,
    ),
    _family(
        "action.task",
        "describe your task {time}.",
        "explain your task {time}.",
        "please describe what your task was {time}.",
        "explain what you had to do {time}.",
        "describe the job that you did {time}.",
        "please explain your job {time}.",
        "give an account of your task {time}.",
        "report on your task {time}.",
        timeless=True,
    ),
    _family(
        "problems.interval",
        "were there any problems {period}?",
        "was there any problem {period}?",
        "did anything go wrong {period}?",
        "did you have any trouble {period}?",
        "did you fail at something {period}?",
        "have you made any mistakes {period}?",
        "did an action fail {period}?",
        "was there something that did not work {period}?",
    ),
    _family(
        "problems.specific",
        "how did {acting} go {time}?",
        "did {acting} work {time}?",
        "did you succeed in {acting} {time}?",
        "were there problems when {acting} {time}?",
        "was {acting} successful {time}?",
        "did anything go wrong when {acting} {time}?",
        "how well did {acting} work {time}?",
        "did you have trouble {acting} {time}?",
        timeless=True,
    ),
    _family(
        "past_time.action",
        "when did you {act}?",
        "at what time did you {act}?",
        "when was it that you did {act}?",
        "do you know when you did {act}?",
        "can you say when you did {act}?",
        "when was the time that you did {act}?",
        "what was the time when you did {act}?",
        "do you remember when you did {act}?",
    ),
    _family(
        "past_time.see",
        "when did you {order} {see} {object}?",
        "at what time did you {order} {see} {object}?",
        "when was it that you {order} did {see} {object}?",
        "do you know when you {order} did {see} {object}?",
        "when was the {order} time that you did {see} {object}?",
        "do you remember the {order} time you did {see} {object}?",
    ),
    _family(
        "location.robot",
        "where have you been {time}?",
        "where were you {time}?",
        "at which place were you {time}?",
        "what was your position {time}?",
        "in which spot have you been {time}?",
        "do you know where you were {time}?",
        "can you say where you have been {time}?",
        "what place were you in {time}?",
    ),
    _family(
        "location.object",
        "where did you put {object} {time}?",
        "where have you put {object} {time}?",
        "where did you place {object} {time}?",
        "on what did you put {object} {time}?",
        "to which place did you bring {object} {time}?",
        "do you know where you left {object} {time}?",
        timeless=True,
    ),
    _family(
        "object.moved",
        "which object did you move to {location} {time}?",
        "what did you move to {location} {time}?",
        "what did you bring to {location} {time}?",
        "which object have you brought to {location} {time}?",
        "what was the object that you moved to {location} {time}?",
        "what have you carried to {location} {time}?",
        "do you know what you moved to {location} {time}?",
        "which item did you take to {location} {time}?",
    ),
    _family(
        "object.grasped",
        "which object did you grasp {time}?",
        "what did you grasp {time}?",
        "which item have you taken in your hand {time}?",
        "what was the object that you grasped {time}?",
        "do you know what you grasped {time}?",
        "which object have you grasped {time}?",
    ),
    _family(
        "duration.act",
        "how long did it {exactly}take to {act} {time}?",
        "how much time did you {exactly}need to {act} {time}?",
        "how long did you {exactly}need to {act} {time}?",
        "how long were you {exactly}busy {acting} {time}?",
        "what was {exactly}the duration of {acting} {time}?",
        "how much time did {acting} {exactly}take {time}?",
        "how long did {acting} {exactly}last {time}?",
        "for how long {exactly}were you {acting} {time}?",
        timeless=True,
    ),
    _family(
        "summary.period",
        "summarise what you did {period}.",
        "give me a summary of what you did {period}.",
        "explain everything you did {period}.",
        "list everything that you did {period}.",
        "what are all the jobs that you did {period}?",
        "please summarise all your work {period}.",
        "can you sum up what happened {period}?",
        "what happened altogether {period}?",
    ),
    _family(
        "how_often.grasp",
        "how often did you grasp {object}?",
        "how many times did you grasp {object}?",
        "how often have you grasped {object}?",
        "how often was {object} in your hand?",
        "how many times have you taken {object}?",
        "how often did you pick up {object}?",
    ),
    _family(
        "how_often.visit",
        "how often have you been at {location}?",
        "how often did you go to {location}?",
        "how many times have you been at {location}?",
        "how many times did you arrive at {location}?",
        "how often did you arrive at {location}?",
        "how often did you visit {location}?",
    ),
    _family(
        "how_often.moved",
        "how often did you move something to {location}?",
        "how many times did you move something to {location}?",
        "how often have you brought something to {location}?",
        "how many times have you brought something to {location}?",
        "how often did you put something on {location}?",
        "how often did you carry something to {location}?",
    ),
)
FAMILIES = {family.name: family for family in _ALL}
