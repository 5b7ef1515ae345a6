"""Docstrings, comments, help texts and messages avoid the phrases that read as if translated."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import rollin
from tests.docs.test_links import prose_of

ROOT = Path(rollin.__file__).parent
CHECKOUT = Path(__file__).parents[1]
PHRASES = {
    r"\banew\b(?![:=])": "again",  # the argument of a public class has the name
    r"\bchose nothing\b": "held-out seeds",
    r"\bcomes? to the (last|final)\b": "reach the final context",
    r"\bheeds?\b": "follow",
    r"\bhears? of\b": "receives",
    r"\b(ours|(of|module) (yours|theirs))\b(?!:)": "our extension, your environment",
    r"\b(no|every|any|some)body\b": "no method, every method, another process",
    r"\bwhoever\b": "the caller, the owner",
    r", too\b(?! (few|many|much))": "also",
    r"\b(go|goes|going|went) on\b": "continue, resume",
    r"\b(is|are|was|were) told\b|\btells\b": "receives, shows, records, reports",
    r"\bstrangers?'?s?\b": "someone else's",
}
"""What must not be written, and what to write instead."""
SOURCE = {
    **PHRASES,
    r"\bby hand\b": "hand-set",
    r"\bin words\b": "the text of",
    r"\btells?\b|\btold\b": "shows, records, reports",
    r"\b(come|comes|came) to\b": "reach",
}
"""The same for the source, with more of them."""


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every comment and of every string that holds a space."""
    tree = ast.parse(source)
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inner = {id(part) for node in joined for part in node.values}
    texts = [(node.lineno, "".join(map(constant, node.values))) for node in joined]
    texts += [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner
    ]
    yield from ((line, " ".join(text.split())) for line, text in texts if " " in text.strip())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def constant(part: ast.AST) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "…"


def banned(source: str) -> list[str]:
    return [
        f"line {line}: {match[0]!r} in {text[max(match.start() - 40, 0) : match.end() + 40]!r}, "
        f"rather: {better}"
        for line, raw in prose(source)
        for text in [re.sub(r"`[^`]*`", "…", raw)]  # names in code are no prose
        for phrase, better in SOURCE.items()
        for match in re.finditer(phrase, text, re.IGNORECASE)
    ]


@pytest.mark.parametrize(
    "part", sorted({path.relative_to(ROOT).parts[0] for path in ROOT.rglob("*.py")})
)
def test_the_source_is_in_plain_english(part: str) -> None:
    place = ROOT / part
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    found = {str(path.relative_to(ROOT)): banned(path.read_text("utf-8")) for path in files}
    assert not {name: phrases for name, phrases in found.items() if phrases}


def test_banned_phrases_would_be_noticed() -> None:
    assert len(banned('"""Begin anew."""\nx = f"{y} is told"  # by whoever asks\n')) == 4
    assert banned('"""An environment\nof\n  yours."""')
    assert len(banned('"""It goes on, too; a stranger asks."""')) == 3
    assert not banned('ours = "ours"\n"""`ours` is the name of a condition."""\n')


PARTS = "docs", "results", "benchmarks", "policies"
PAGES = [
    *sorted(CHECKOUT.glob("*.md")),
    *(page for part in PARTS for page in sorted((CHECKOUT / part).rglob("*.md"))),
    CHECKOUT / "docs" / "tutorial.ipynb",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_the_pages_and_their_tables_are_in_plain_english(page: Path) -> None:
    text = prose_of(page)
    found = [match[0] for phrase in PHRASES for match in re.finditer(phrase, text, re.IGNORECASE)]
    assert found == []
