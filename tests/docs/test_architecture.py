"""The page of the architecture names files that exist, and every package."""

import re

from docs.pages import ROOT

SOURCE = ROOT / "src" / "rollin"
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_page_names_files_that_exist() -> None:
    names = re.findall(r"`([\w/]+\.py)`", PAGE)
    assert len(names) > 20
    assert [n for n in names if not (SOURCE / n).exists() and not (ROOT / n).exists()] == []


def test_the_page_names_every_package() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages == {name for name in packages if f"`{name}`" in PAGE}
