"""How cost grows: exponents and tables."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import records, scaling_page


def test_the_page_of_scaling_follows_from_the_committed_records() -> None:
    assert scaling_page.PAGE.read_text() == scaling_page.page(records.read(scaling_page.RECORDS))


def test_examples_of_docstrings() -> None:
    failed, tried = doctest.testmod(scaling_page)
    assert tried > 0
    assert failed == 0


@given(
    k=st.floats(-1, 3),
    c=st.floats(0.1, 1e4),
    sizes=st.lists(st.integers(1, 4096), min_size=2, max_size=6, unique=True),
)
def test_exponents_of_power_laws_are_found(k, c, sizes) -> None:
    found = scaling_page.exponent({size: c * size**k for size in sizes})
    assert found == pytest.approx(k, abs=1e-6)


def test_no_exponent_from_one_point() -> None:
    assert scaling_page.exponent({4: 1.0}) is None


def test_a_table_of_sizes() -> None:
    row = {"contestant": "rollin cpu", "threads": 1}
    sizes = (100, 10, 1000)  # on one thread CPU time counts, on two the time that passes
    rows = [
        {**row, "value": v, "cpu_microseconds": 3.0 * v * v, "microseconds": 1e9} for v in sizes
    ]
    rows += [{**row, "threads": 2, "value": 10, "microseconds": 200.0, "cpu_microseconds": 1.0}]
    assert scaling_page.table(rows, "width").splitlines() == [
        "| width | 10 | 100 | 1,000 | exponent |",
        "| --- | --- | --- | --- | --- |",
        "| rollin cpu | 300 µs | 30.0 ms | 3000.0 ms | 2.00 |",
        "| rollin cpu, 2 threads | 200 µs | – | – | – |",
    ]
