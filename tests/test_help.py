"""`help()` of public names is about them, not about how they are made."""

import inspect
import pydoc
import re
from collections.abc import Iterator

import pytest

import rollin

NAMES = sorted({*rollin.__all__} - {"__version__"})
INTERNAL = r"see above|see below|older name|pseudocode|docs/|\b(of )?ours\b|help texts? of"
ELSEWHERE = {"Box", "Dict", "Discrete", "TimeLimit", "None", "True", "False"}
"""Names in capitals that help may refer to, besides ours."""


def texts(name: str) -> Iterator[tuple[str, str]]:
    """What help shows of a name and of the members that our classes give it."""
    thing = getattr(rollin, name)
    yield name, inspect.getdoc(thing) or ""
    if not inspect.isclass(thing):
        return
    for base in thing.__mro__:
        for member in vars(base) if base.__module__.startswith("rollin") else ():
            if member == "__init__" or not member.startswith("_"):
                text = inspect.getdoc(getattr(thing, member, None))
                yield f"{name}.{member}", text or ""


@pytest.mark.parametrize("name", NAMES)
def test_help_has_no_internal_notes(name: str) -> None:
    for place, text in texts(name):
        assert not re.search(INTERNAL, text), f"{place}: {text}"


@pytest.mark.parametrize("name", NAMES)
def test_help_refers_to_public_names(name: str) -> None:
    for place, text in texts(name):
        text = text.split(">>>")[0]
        for path in re.findall(r"`rollin\.([\w.]+)", text):
            known = path.split(".")[0] in (*rollin.__all__, "teachers", "sb3")
            assert known, f"{place} refers to rollin.{path}, which is internal"
        for word in re.findall(r"`([A-Z][a-z]\w+)", text):
            known = word in rollin.__all__ or word in ELSEWHERE
            assert known, f"{place} refers to {word}, which rollin does not export"


@pytest.mark.parametrize("name", NAMES)
def test_help_of_a_constructor_is_about_its_arguments(name: str) -> None:
    thing = getattr(rollin, name)
    shown = pydoc.plain(pydoc.render_doc(thing))
    assert " at 0x" not in shown.split("\n\n")[1].splitlines()[0]
    if inspect.isclass(thing) and not issubclass(thing, Exception):
        text = inspect.getdoc(thing.__init__) or ""
        wrong = set(re.findall(r"^(\w+): ", text)) - {*inspect.signature(thing).parameters}
        assert not wrong, text


@pytest.mark.parametrize("field", rollin.Trained.__dataclass_fields__)
def test_help_explains_what_training_returns(field: str) -> None:
    assert re.search(rf"\b{field}\b[\w, ]*:\s", rollin.Trained.__doc__ or "")
