"""The list of slow tests names tests that there are."""

from pathlib import Path

import pytest

from tests.conftest import SLOW

TESTS = Path(__file__).parent


@pytest.mark.parametrize("name", SLOW)
def test_what_is_called_slow_is_there(name: str) -> None:
    file, _, test = name.partition("::")
    assert (f"\ndef {test}(" if test else "\ndef test_") in (TESTS / file).read_text(
        encoding="utf-8"
    )


def test_no_test_is_called_slow_twice() -> None:
    assert len(set(SLOW)) == len(SLOW)
