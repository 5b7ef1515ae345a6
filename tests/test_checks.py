"""Checks of values that come from users."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from rollin import RollinError
from rollin.checks import check_literal, check_literals, flag

Colour = Literal["red", "green"]


@dataclass
class Options:
    steps: int = 1
    colour: Colour = "red"
    fill_up: Literal["full"] | None = None
    start: float | Literal["delta"] = "delta"


@pytest.mark.parametrize("values", [{}, {"fill_up": "full"}, {"start": 0.5}, {"steps": "red"}])
def test_words_of_a_literal_are_taken_and_other_types_are_not_checked(values: Any) -> None:
    check_literals(Options(**values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"colour": "blue"}, "--colour must be one of red, green, got 'blue'."),
        ({"colour": None}, "--colour must be one of red, green, got None."),
        ({"fill_up": "half"}, "--fill-up must be one of full, got 'half'."),
    ],
)
def test_another_word_is_an_error_with_all_words(values: Any, message: str) -> None:
    with pytest.raises(RollinError) as caught:
        check_literals(Options(**values), flag)
    assert str(caught.value) == message


def test_an_argument_is_checked_by_its_annotation() -> None:
    check_literal("colour", "green", Colour)
    with pytest.raises(RollinError, match="colour must be one of red, green, got 3"):
        check_literal("colour", 3, Colour)
