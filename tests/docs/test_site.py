"""The site builds without a warning, loads nothing from elsewhere, has no dead links."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from rollin.cli import COMMANDS

DOCS = Path(__file__).parents[2] / "docs"
LOADING = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
}
GENERATED = ("genindex.html", "search.html")
SPHINX = """
import gc, sys
from sphinx.cmd.build import main
gc.disable()  # a seventh of the time, in a process that soon ends
sys.exit(main(sys.argv[1:]))
"""
pytestmark = pytest.mark.xdist_group("site")  # which is built once


class Page(HTMLParser):
    """Ids and links of a page, what it loads, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.text = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            elif (tag, name) in LOADING:
                self.loaded.add(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.add(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--nitpicky", "--quiet"]
    folders = ["--doctree-dir", str(out / "doctrees"), str(DOCS), str(out / "html")]
    command = [sys.executable, "-c", SPHINX, *options, *folders]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return out / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_page_of_the_docs_is_there(site: Path, pages: dict[Path, Page]) -> None:
    sources = [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]
    expected = {site / path.relative_to(DOCS).with_suffix(".html") for path in sources}
    assert expected == {path for path in pages if path.name not in GENERATED}


def test_no_page_loads_anything_from_another_host(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for address in page.loaded:
            parts = urlsplit(address)
            assert not parts.netloc, (path.name, address)
            assert parts.scheme in ("", "data"), (path.name, address)


def test_no_style_sheet_loads_anything_from_another_host(site: Path) -> None:
    for path in site.rglob("*.css"):
        text = path.read_text()
        assert "@import" not in text
        assert "url(http" not in text.replace('"', "").replace("'", "")
        assert "url(//" not in text.replace('"', "").replace("'", "")


def test_every_internal_link_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for address in page.links | page.loaded:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), (path.name, address)
            assert target.is_relative_to(site.resolve()), (path.name, address)
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, (path.name, address)


def test_links_out_of_the_docs_are_downloads_or_text(site: Path, pages: dict[Path, Page]) -> None:
    downloads = {path.name for path in (site / "_downloads").rglob("*.*")}
    assert {"own_mdp.py", "own_env.py", "runs.csv"} <= downloads
    page = pages[site / "results" / "four-rooms.html"]
    assert "README.md" in {path.name for path in (site / "_downloads").rglob("*.md")}
    assert not any(link.startswith("../../results/") for link in page.links)


def test_the_notebook_shows_what_it_gave(site: Path, pages: dict[Path, Page]) -> None:
    page = pages[site / "tutorial.html"]
    assert "β = 0.0: context " in page.text
    assert sum(address.startswith("data:image/png") for address in page.loaded) >= 3
    assert "tutorial.ipynb" in {path.name for path in (site / "_downloads").rglob("*.ipynb")}


def test_the_command_line_is_all_there(site: Path, pages: dict[Path, Page]) -> None:
    page = pages[site / "cli.html"]
    for command in COMMANDS:
        assert f"rollin-{command}" in page.ids, f"docs/cli.md lacks the command {command}"
    assert "rollin-train-point-umaze-beta" in page.ids
    assert "Fraction β ∈ [0, 1) of episodes that roll in" in page.text
    assert "--threshold FLOAT" in page.text
