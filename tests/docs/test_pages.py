"""Pages that show records: what stands in them is what the records say."""

import re

import pytest
from docs.pages import ELSEWHERE, IMAGES, PICTURES, ROOT, TEXTS, filled_page, recorded_digest


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_page_shows_what_its_records_say(name: str) -> None:
    assert filled_page(name) == (ROOT / name).read_text(), "run make pages"
    texts = TEXTS[name]()
    assert texts
    assert all(texts.values())


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_is_of_the_records_as_they_are(name: str) -> None:
    assert recorded_digest(IMAGES / f"{name}.png") == PICTURES[name].digest(), "run make pages"


def test_every_picture_has_its_maker() -> None:
    committed = {path.stem for path in IMAGES.glob("*.png")}
    assert committed == PICTURES.keys() | (ELSEWHERE.keys() & committed)
    assert not PICTURES.keys() & ELSEWHERE.keys()
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name for page in pages for name in re.findall(r"images/([\w-]+)\.png", page.read_text())
    }
    assert PICTURES.keys() <= shown
    assert shown <= committed


def test_every_marker_has_its_table() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        names = re.findall(r"^<!-- begin: (.+) -->$", page.read_text(), re.MULTILINE)
        known = TEXTS.get(page.relative_to(ROOT).as_posix(), dict)()
        assert sorted(names) == sorted(known), page
