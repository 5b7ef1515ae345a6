"""The list of slow tests names tests that there are."""

from pathlib import Path

import pytest

from tests.conftest import SLOW, place_of

TESTS = Path(__file__).parent


@pytest.mark.parametrize("name", SLOW)
def test_what_is_called_slow_is_there(name: str) -> None:
    file, _, test = name.partition("::")
    assert (f"\ndef {test}(" if test else "\ndef test_") in (TESTS / file).read_text(
        encoding="utf-8"
    )


def test_no_test_is_called_slow_twice() -> None:
    assert len(set(SLOW)) == len(SLOW)


@pytest.mark.parametrize("more", ["", "[0-a]", "@ray", "[a@b]@ray"])
def test_a_test_is_known_by_its_name_whatever_stands_behind(more: str) -> None:
    places = {"a.py::test_one": 0, "b.py": 1}
    assert place_of(f"tests/a.py::test_one{more}", places) == 0
    assert place_of(f"tests/b.py::test_any{more}", places) == 1
    assert place_of(f"tests/a.py::test_other{more}", places) == len(places)
