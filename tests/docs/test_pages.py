"""Pages that show records: what stands in them is what the records say."""

import re
from pathlib import Path

import pytest
from docs.pages import (
    ELSEWHERE,
    IMAGES,
    PICTURES,
    ROOT,
    TEXTS,
    filled_page,
    page_texts,
    picture_path,
    recorded_digest,
)


def markers(page: Path) -> list[str]:
    """Names of the tables that a page has a place for."""
    return re.findall(r"^<!-- begin: (.+) -->$", page.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_page_shows_what_its_records_say(name: str) -> None:
    assert filled_page(name) == (ROOT / name).read_text(), "run make pages"
    texts = page_texts(name)
    assert texts
    assert all(texts.values())
    assert sorted(markers(ROOT / name)) == sorted(texts)


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
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name for page in pages for name in re.findall(r"images/([\w-]+\.\w+)", page.read_text())
    }
    assert shown == committed


def test_every_marker_has_its_table() -> None:
    """Those of pages with tables are compared with them above."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        if page.relative_to(ROOT).as_posix() not in TEXTS:
            assert markers(page) == [], page
