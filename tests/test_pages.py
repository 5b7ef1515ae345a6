"""Pages that show records: what stands in them is what the records say."""

import pytest
from docs.pages import DOCS, TEXTS, filled_page


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_page_shows_what_its_records_say(name: str) -> None:
    assert filled_page(name) == (DOCS / name).read_text(), "run make pages"
    texts = TEXTS[name]()
    assert texts
    assert all(texts.values())
