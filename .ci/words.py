"""Refuse private words where the field has a term, and docstrings that open with a question word.

    python .ci/words.py [PATH ...]     # default: every tracked Python file and page
    python .ci/words.py --count        # a count per word

Prints `file:line: word -> use instead` for each hit and exits with 1 if there is one. docs/glossary.md has the
terms that replace them. A line that has to keep a word ends in `# word: ok`. Pages below docs/research_notes and
CHANGELOG.md are dated and not checked.
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
ALLOWED = re.compile(
    r"(?:random|grid)[ _-]walk\w*|walk(?:ing|able)\w*|word: ok"
    r"|look(?:s|ed|ing)? up|sleep|halving(?= of the)",
    re.IGNORECASE,
)
QUESTIONS = ("What", "How", "Which", "Whether", "Where", "Who", "When", "Why")
LONGEST_SUMMARY = 90
SKIPPED = ("docs/research_notes/", "CHANGELOG.md", "results/", ".ci/words.py", "LICENSE", "docs/glossary.md")

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


def main() -> int:
    """Check the given files, or all tracked ones."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--count"]
    listed = subprocess.run(["git", "ls-files", *arguments], capture_output=True, text=True, check=True).stdout.split()
    counts: Counter[str] = Counter()
    for name in listed:
        if not name.endswith((".py", ".md", ".toml")) or name.startswith(SKIPPED):
            continue
        text = Path(name).read_text(encoding="utf-8")
        found = find_old_words(text) + (find_questions(text) if name.endswith(".py") else [])
        for line, word, term in sorted(found):
            counts[word.lower()] += 1
            if "--count" not in sys.argv:
                print(f"{name}:{line}: {word} -> {term}")
    if "--count" in sys.argv:
        print(*(f"{count:6} {word}" for word, count in counts.most_common()), sep="\n")
    total = sum(counts.values())
    print(f"{total} old words", file=sys.stderr)
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
