"""From the way docstrings are written here to what autodoc reads.

`name` is code, "alpha: what it is; beta: what that is" describes parameters, and everything else is
plain text: no character of it is markup, but for the dashes of a list and the >>> of an example.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(`[^`]+`)")
MARKUP = re.compile(r"[\\*|_@]")


def rewrite(app: Sphinx, kind: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place, paragraph by paragraph."""
    known = _names(kind, obj)
    paragraphs = "\n".join(lines).strip().split("\n\n")
    rewritten: list[str] = []
    for paragraph in paragraphs:
        rewritten += [*_paragraph(paragraph, known), ""]
    lines[:] = rewritten


def _names(kind: str, obj: Any) -> set[str]:
    """What a docstring may describe: the parameters of a function or a class."""
    described = kind in ("class", "function", "method")
    return set(inspect.signature(obj).parameters) if described else set()


def _paragraph(text: str, known: set[str]) -> Iterator[str]:
    if text.startswith(">>>"):
        yield from text.splitlines()
        return
    if text.startswith("- "):
        yield from (_escaped(line) for line in text.splitlines())
        return
    begins = [
        match
        for match in re.finditer(r"(?:^|(?<=[.;)]\s))(\w+(?:, \w+)*): ", text, re.MULTILINE)
        if set(match[1].split(", ")) <= known
    ]
    head = text[: begins[0].start()] if begins else text
    if head.strip():
        yield from (_escaped(_joined(head)), "")
    ends = [*(match.start() for match in begins[1:]), len(text)]
    for match, end in zip(begins, ends, strict=False):
        names = ", ".join(f"``{name}``" for name in match[1].split(", "))
        yield f"- {names}: {_escaped(_joined(text[match.end() : end]).rstrip(';'))}"


def _joined(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    """Plain text with code in backticks, as reStructuredText."""
    parts = CODE.split(text)
    return "".join(
        f"`{part}`" if CODE.fullmatch(part) else MARKUP.sub(r"\\\g<0>", part) for part in parts
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Have autodoc rewrite every docstring."""
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
