"""All studies: rows fit the settings, pages show what is printed, a run works."""

import re
from pathlib import Path

import pytest

from memenvs.agents.study import ROWS, Study, find_studies, load_study, read_rows

ROOT = Path(__file__).parents[2]
STUDIES = find_studies()


@pytest.fixture(params=STUDIES, scope="module")
def study(request) -> tuple[str, Study]:
    return request.param, load_study(STUDIES[request.param])


def words(text: str) -> int:
    """Number of words of a page, without its tables, code and comments."""
    return len(re.sub(r"^\|[^\n]*|^```.*?^```|<!--.*?-->", "", text, flags=re.MULTILINE | re.DOTALL).split())


def test_words_are_counted_without_tables_and_code():
    assert words("Two words\n| a | b |\n```bash\nc d\n```\n<!-- e f -->\nthree\n") == 3


def test_rows_are_of_the_present_settings(study):
    name, own = study
    rows = read_rows(STUDIES[name].with_name(ROWS))
    assert own.stale(rows) == []
    for row in rows:
        config = own.config((row["task"], row["method"], row["seed"]))
        assert row["env"] == config.env and row["evaluations"]
        assert row["steps"] == (config.total_steps if row["seed"] is not None else 0)


def test_a_run_begins_with_another_of_its_study(study):
    _, own = study
    cells = [cell for cell in own.cells((), (), [0]) if cell[2] is not None]
    names = {own.name(cell) for cell in cells}
    sources = [own.config(cell).encoder_from for cell in cells]
    assert {source for source in sources if source is not None} <= names


def test_the_page_shows_what_the_study_prints(study):
    name, own = study
    page = STUDIES[name].with_name("page.md").read_text()
    tables = own.tables(read_rows(STUDIES[name].with_name(ROWS)))
    assert f"<!-- made by: memenvs study {name} --show -->" in page
    on_page = [table.markdown().rpartition("\n\n")[2] in page for table in tables]
    assert any(on_page), f"{name}: the page must have a table of the study"
    for table in re.findall(r"made by: memenvs study.*\n(?:(?!\|).*\n)*((?:\|.*\n)+)", page):
        assert any(table == made.markdown().rpartition("\n\n")[2] for made in tables), table


def test_pages_are_short(study):
    folder = STUDIES[study[0]].parent
    assert words((folder / "page.md").read_text()) <= 600
    assert words((folder / "notes.md").read_text()) <= 1500
    assert f"[{study[0]}]({study[0]}/page.md)" in (ROOT / "studies" / "README.md").read_text()
