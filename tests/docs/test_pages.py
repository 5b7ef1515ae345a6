"""Pages that show records: what stands in them is what the records say."""

import re
from pathlib import Path

import pytest
from docs.pages import (
    ELSEWHERE,
    IMAGES,
    PICTURES,
    ROOT,
    filled_page,
    marked_pages,
    picture_path,
    recorded_digest,
    texts,
)

MARKED = marked_pages()
SHOWING = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "results").rglob("*.md")]


@pytest.mark.parametrize("page", MARKED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_shows_what_its_records_say(page: Path) -> None:
    assert filled_page(page, MARKED[page]) == page.read_text(), "run make pages"


def test_every_table_is_shown_and_is_not_empty() -> None:
    assert all(texts().values())
    assert {name for names in MARKED.values() for name in names} == set(texts())


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_is_of_the_records_as_they_are(name: str) -> None:
    assert recorded_digest(picture_path(name)) == PICTURES[name].digest(), "run make pages"


def test_every_picture_is_made_here_or_says_why_not_and_is_shown() -> None:
    committed = {path.name for path in IMAGES.iterdir()}
    made = {picture_path(name).name for name in PICTURES}
    elsewhere = {name for name in committed if name.partition(".")[0] in ELSEWHERE}
    assert committed == made | elsewhere
    assert not made & elsewhere
    assert len(elsewhere) == len(ELSEWHERE)
    assert all(ELSEWHERE.values())
    shown = {
        name for page in SHOWING for name in re.findall(r"images/([\w-]+\.\w+)", page.read_text())
    }
    assert shown == committed
