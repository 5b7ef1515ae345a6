"""Every public name is in the reference, with an example that does what it shows."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import rollin

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
HOMES = {name: getattr(rollin, name).__module__ for name in rollin.__all__ if name != "__version__"}
# an exception, and what `solve` and `train` give back
WITHOUT_EXAMPLE = {"RollinError", "Solution", "Trained"}


@pytest.mark.parametrize("home", sorted(set(HOMES.values())))
def test_examples_do_what_they_show(home: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(home))
    assert failed == 0


def test_every_public_name_has_an_example() -> None:
    finder = doctest.DocTestFinder()
    found = {
        name: any(test.examples for test in finder.find(getattr(rollin, name), name))
        for name in HOMES
    }
    assert {name for name, has_example in found.items() if not has_example} == WITHOUT_EXAMPLE


def test_every_public_name_is_in_the_reference() -> None:
    listed = re.findall(r"^\.\. auto(?:class|function|exception):: (\w+)$", PAGE.read_text(), re.M)
    assert sorted(listed) == sorted(HOMES)
