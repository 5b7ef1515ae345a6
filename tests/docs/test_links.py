"""Every relative link of the repository's texts leads to a file, and every anchor to a heading.

Anchors are those that a host of repositories gives to headings; the site's own are in test_site.
"""

import json
import re
from pathlib import Path

import pytest
from docs.pages import ROOT

TEXTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.ipynb")),
    *sorted((ROOT / "results").rglob("*.md")),
    ROOT / "benchmarks" / "README.md",
]
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")


def prose_of(path: Path) -> str:
    """A text without its code, in which brackets mean something else."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    without_blocks = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`(?!\]\()", "", without_blocks)


def anchors_of(path: Path) -> set[str]:
    """Names of a text's headings: small letters, hyphens for blanks, no other signs."""
    blocks = re.compile(r"^(`{3,}).*?^\1$", re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#{1,6} (.+)$", blocks.sub("", path.read_text(encoding="utf-8")), re.M)
    found: set[str] = set()
    for head in heads:
        name = re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-")
        found.add(name if name not in found else f"{name}-1")
    return found


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for address in LINK.findall(prose_of(page)):
        if re.match(r"https?:|mailto:|data:", address):
            continue
        file, _, anchor = address.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), address
        assert target.is_relative_to(ROOT), address
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), address


def test_links_and_anchors_are_found() -> None:
    links = {page.relative_to(ROOT).as_posix(): LINK.findall(prose_of(page)) for page in TEXTS}
    assert len(links["README.md"]) > 20
    assert "docs/images/moving.gif" in links["README.md"]
    assert "../SECURITY.md" in links["docs/sweeps.md"]
    assert any("#" in link and not link.startswith("http") for link in links["docs/choosing.md"])
    assert {"bfloat16", "what-the-paper-costs"} <= anchors_of(
        ROOT / "docs" / "results" / "speed.md"
    )


def test_every_page_can_be_come_to_from_the_readme() -> None:
    seen, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        seen.add(page)
        links = (link.partition("#")[0] for link in LINK.findall(prose_of(page)))
        targets = {(page.parent / link).resolve() for link in links if ":" not in link and link}
        ahead += [target for target in targets if target in TEXTS and target not in seen]
    alone = {
        "docs/changelog.md",  # a page of the site that includes CHANGELOG.md
        "results/paper-numbers/tables.md",  # records
    }
    assert {page.relative_to(ROOT).as_posix() for page in set(TEXTS) - seen} <= alone
