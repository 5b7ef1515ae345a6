"""Seeds on a lattice against brute force, and sheets laid out."""

import itertools
import math
import statistics
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollin.analysis.sheets import Sheet, filled, marks, sheet, sheet_csv, sheet_markdown, texts_of
from rollin.errors import RollinError
from rollin.paper.lattice import Error, Lattice, count, fastest, mixture, rounded, seed_sets


def prints_as(value_squared: Fraction, text: str) -> bool:
    """Whether the root of a number rounds to a text, half-way cases either way."""
    half = Fraction(1, 2 * 10 ** -int(Decimal(text).as_tuple().exponent))
    low, high = Fraction(text) - half, Fraction(text) + half
    return max(low, Fraction(0)) ** 2 <= value_squared <= high**2


def by_hand(lattice: Lattice, n: int, mean: str, error: str, kind: Error) -> list[tuple[int, ...]]:
    """All multisets, one after another, with exact fractions."""
    kept = []
    ks = range(lattice.first, lattice.last + 1)
    for one in itertools.combinations_with_replacement(ks, n):
        values = [Fraction(k, lattice.parts) for k in one]
        middle = sum(values, Fraction(0)) / n
        square = sum(((x - middle) ** 2 for x in values), Fraction(0)) / (n - kind.ddof)
        if prints_as(middle**2, mean) and prints_as(square / kind.divisor, error):
            kept.append(one)
    return kept


@given(
    parts=st.integers(1, 7),
    first=st.integers(0, 2),
    more=st.integers(0, 5),
    n=st.integers(2, 5),
    digits=st.integers(1, 3),
    ddof=st.integers(0, 1),
    divisor=st.sampled_from([2, 5, 500]),
    data=st.data(),
)
def test_the_enumeration_is_that_of_all_multisets(
    parts, first, more, n, digits, ddof, divisor, data
) -> None:
    lattice, kind = Lattice(parts, first, first + more), Error(divisor, ddof)
    seeds = data.draw(st.lists(st.integers(first, first + more), min_size=n, max_size=n))
    values = [k / parts for k in seeds]
    spread = statistics.stdev(values) if ddof else statistics.pstdev(values)
    off = data.draw(st.sampled_from([0.0, 0.0, 0.03]))  # of what no seeds may give, too
    mean, error = (
        f"{x:.{digits}f}" for x in (statistics.mean(values) + off, spread / math.sqrt(divisor))
    )
    expected = by_hand(lattice, n, mean, error, kind)
    assert seed_sets(lattice, n, mean, error, kind) == expected
    assert count(lattice, n, mean, error, kind) == len(expected)
    if off == 0:
        assert tuple(sorted(seeds)) in expected  # what was printed is possible


def test_known_cells() -> None:
    se = Error(8)
    assert seed_sets(Lattice(11, 0, 11), 8, "0.36", "0.00", se) == [(4,) * 8]
    assert count(Lattice(12, 0, 12), 8, "0.36", "0.00", se) == 0
    assert count(Lattice(1, 0, 1), 3, "0.5", "0.3", Error(3)) == 0  # 1/3 and 2/3 are all there is
    assert seed_sets(Lattice(1, 0, 1), 3, "0.3", "0.3", Error(3)) == [(0, 0, 1)]  # 0.333 ± 0.272


def test_half_way_cases_may_go_either_way() -> None:
    rooms = Lattice(16, 0, 16)  # 9/16 = 0.5625
    for mean in ("0.562", "0.563"):
        assert seed_sets(rooms, 10, mean, "0.000", Error(10)) == [(9,) * 10]
    assert count(rooms, 10, "0.561", "0.000", Error(10)) == 0
    assert rounded("0.0014") == (27, 29, 20_000)
    assert rounded("0.00").least == 0.0


@given(st.integers(1, 9), st.floats(0.5, 20), st.sampled_from([10, 500]))
def test_a_mixture_is_found_again(seeds: int, value: float, divisor: int) -> None:
    values = [value] * seeds + [0.0] * (10 - seeds)
    error = statistics.pstdev(values) / math.sqrt(divisor)
    back = mixture(f"{statistics.mean(values):.6f}", f"{error:.6f}", divisor)
    assert back.share_low <= seeds / 10 <= back.share_high
    assert back.value == pytest.approx(value, rel=1e-3)


def test_two_fast_seeds_reach_the_bound_and_no_more() -> None:
    values = [3.0, 3.0] + [2.0] * 6
    error = statistics.pstdev(values) / math.sqrt(8)
    bound = fastest(2, 8, f"{statistics.mean(values):.6f}", f"{error:.6f}")
    assert bound == pytest.approx(3.0, abs=1e-4)
    uneven = [3.0, 3.0, 2.5, 2.2, 2.0, 1.9, 1.8, 1.6]
    error = statistics.pstdev(uneven) / math.sqrt(8)
    assert fastest(2, 8, f"{statistics.mean(uneven):.6f}", f"{error:.6f}") > 3.1


# ------------------------------------------------------------------ sheets


def test_sheets_laid_out() -> None:
    one = sheet("s", "A title", "a | b", [[1, "x, y"], ["**2**", ""]])
    assert one == Sheet("s", "A title", ("a", "b"), (("1", "x, y"), ("**2**", "")))
    assert sheet_markdown(one) == "| a | b |\n| --- | --- |\n| 1 | x, y |\n| **2** |  |"
    assert sheet_csv(one) == 'a,b\n1,"x, y"\n**2**,\n'
    begin, end = marks("s")
    page = filled(f"before\n{begin}\nold\n{end}\nbehind", texts_of([one]))
    assert page == f"before\n{begin}\n{sheet_markdown(one)}\n{end}\nbehind"
    with pytest.raises(RollinError, match="begin: s"):
        filled("nothing", {"s": ""})
    with pytest.raises(ValueError, match="must have 2 entries"):
        sheet("s", "", "a|b", [[1]])
