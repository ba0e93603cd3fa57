"""Refuse private words where the field has a term, docstrings that open with a question word, and more of weak words.

    python .ci/words.py [PATH ...]     # default: every tracked Python file and page
    python .ci/words.py --count        # a count per word, of the weak ones too

Prints `file:line: word -> use instead` for each hit and exits with 1 if there is one. docs/glossary.md has the
terms that replace them. A line that has to keep a word ends in `# word: ok`. Of the words of `MOST` there may be no
more than stand there; who removes some lowers the number.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

#: Old word, as a regular expression of whole words -> the field's term. Underscores separate words, so identifiers
#: count too.
OLD_WORDS = {
    r"told|tells?|telling": "recurrent input; given, indicates, states",
    r"hear|hears|heard|hearing": "attend, attended, read vector",
    r"asked|asks|asking": "query; requests, needs",
    r"said": "given, encoded, printed",
    r"squashed": "tanh",
    r"heed|heeds|heeded": "attend, word attention",
    r"likeness": "similarity, ndtw",
    r"wholes|reals": "int_fields, float_fields",
    r"lanes?": "SIMD vector, vector width",
    r"halv\w+": "bsp (binary space partition)",
    r"programmes?": "room program",
    r"things?": "object, item, element",
    r"walks": "paths; moves",
    r"articles?": "paper",
    r"so many": "N",
    r"held(?![ _-]out)": "checked against, kept",
    r"looks?(?![ _]?(?:up|down))|looked|looking": "observe, view, render, appear",
    r"blame": "as_user_error",
    r"middles": "centres",
    r"remember_(?:action|moves)": "update_previous_action",
    r"TrialModel|TrialAlgorithm|EpisodeAlgorithm": "MemoryAlgorithm, OnPolicyMemoryAlgorithm, OffPolicyMemoryAlgorithm",
}
#: Word -> most uses in all files: as a name in code, where a noun of the field says more, and in the prose of pages.
MOST = {
    "code": {
        "each": 136,
        "found": 72,
        "given": 29,
        "is_there": 4,
        "known": 0,
        "of_a": 0,
        "shown": 15,
        "wanted": 0,
    },
    "prose": {"anew": 0, "beside": 0, "hardly": 0},
}
ALLOWED = re.compile(
    r"(?:random|grid)[ _-]walk\w*|walk(?:ing|able)\w*|word: ok"
    r"|look(?:s|ed|ing)? up|sleep|halving(?= of the)",
    re.IGNORECASE,
)
QUESTIONS = ("What", "How", "Which", "Whether", "Where", "Who", "When", "Why")
LONGEST_SUMMARY = 90
SKIPPED = (".ci/words.py", "LICENSE", "docs/glossary.md")

_PATTERN = re.compile(
    "|".join(f"(?P<w{k}>(?<![A-Za-z-])(?:{word})(?![a-z]))" for k, word in enumerate(OLD_WORDS)), re.IGNORECASE
)
_TERMS = list(OLD_WORDS.values())


def find_old_words(text: str) -> list[tuple[int, str, str]]:
    """Line number, old word and its replacement, in the order of the text."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if "word: ok" in line:
            continue
        if re.match(r"\s*# ?[-=]{8,}", line):
            found.append((number, "banner", "a module of its own, or nothing"))
        for hit in _PATTERN.finditer(ALLOWED.sub("", line)):
            found.append((number, hit[0], _TERMS[int(hit.lastgroup[1:])]))
    return found


def find_questions(text: str) -> list[tuple[int, str, str]]:
    """Line number, opening and rule of each docstring that does not open with one short imperative or noun line."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = ast.get_docstring(node)
            if not docstring:
                continue
            line = getattr(node, "lineno", 1)
            summary = docstring.splitlines()[0]
            if summary.split()[0].rstrip(",:") in QUESTIONS:
                found.append((line, summary.split()[0], "open with an imperative or a noun"))
            if len(summary) > LONGEST_SUMMARY and not getattr(node, "name", "").startswith(("_", "test_")):
                found.append((line, "docstring", f"open with one line of at most {LONGEST_SUMMARY} characters"))
    return found


def count_weak_words(name: str, text: str) -> Counter[tuple[str, str]]:
    """Count the words of `MOST` in a file, by kind and word."""
    kind = "code" if name.endswith(".py") else "prose"
    if kind == "code":
        words = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    else:
        words = re.findall(r"[a-z_]+", text.lower())
    return Counter((kind, word) for word in words if word in MOST[kind])


def main() -> int:
    """Check the named files, or all tracked ones."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--count"]
    weak: Counter[tuple[str, str]] = Counter()
    listed = subprocess.run(["git", "ls-files", *arguments], capture_output=True, text=True, check=True).stdout.split()
    counts: Counter[str] = Counter()
    for name in listed:
        if not name.endswith((".py", ".md", ".toml")) or name.startswith(SKIPPED):
            continue
        text = Path(name).read_text(encoding="utf-8")
        weak += count_weak_words(name, text)
        found = find_old_words(text) + (find_questions(text) if name.endswith(".py") else [])
        for line, word, term in sorted(found):
            counts[word.lower()] += 1
            if "--count" not in sys.argv:
                print(f"{name}:{line}: {word} -> {term}")
    if "--count" in sys.argv:
        print(*(f"{count:6} {word}" for word, count in counts.most_common()), sep="\n")
        print(*(f"{count:6} {word} in {kind}" for (kind, word), count in weak.most_common()), sep="\n")
    more = {key: count for key, count in weak.items() if count > MOST[key[0]][key[1]]}
    for (kind, word), count in more.items():
        print(f"{word}: {count} uses in {kind}, at most {MOST[kind][word]}: use a noun that says what it is")
    total = sum(counts.values())
    print(f"{total} old words", file=sys.stderr)
    return int(total > 0 or bool(more))


if __name__ == "__main__":
    sys.exit(main())
