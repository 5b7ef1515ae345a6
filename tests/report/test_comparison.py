"""What a comparison shows: the tests behind it, the decision, and its words."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollin.analysis.comparison import (
    RETURN,
    SUCCESS,
    Comparison,
    Difference,
    comparison,
    counts,
    first_solved,
    ranks,
)
from rollin.analysis.results import StudyResults
from rollin.report.comparison import WORDS
from rollin.report.sections import verdict
from rollin.runs.records import Costs, Curve, MetricAt, Record
from rollin.sweeps.condition import Condition
from rollin.sweeps.study import Study

LENGTH = 1000
ROWS = 10  # evaluations of a run
NEVER = LENGTH + 1


def run(seed: int, values: Sequence[float], quantity: str = SUCCESS.quantity) -> Record:
    """A finished run with these evaluations of the final context."""
    steps = np.linspace(0, LENGTH, len(values) + 1)[1:]
    return Record(
        task="mine", engine="rollin", seed=seed, steps=LENGTH, step=LENGTH, finished=True,
        costs=Costs(1.0), curve=Curve(steps, {quantity: np.array(values)}),
        spec_hash="", key="",
    )  # fmt: skip


def rising(at: int, end: float = 1.0) -> list[float]:
    """Evaluations that are 0 before a step, and `end` from it on."""
    return [end if (i + 1) * LENGTH / ROWS >= at else 0.0 for i in range(ROWS)]


def results(
    ours: Sequence[Sequence[float]],
    control: Sequence[Sequence[float]],
    reading: MetricAt = SUCCESS,
    against: str = "scratch",
) -> StudyResults:
    """A comparison of hand-made runs: evaluations of each seed of each side."""
    sides = [Condition({"method": name}, "mine", {}) for name in ("curriculum", against)]
    study = Study(
        "mine", tuple(sides), (reading,), columns=("method",), baseline=f"method={against}",
        kind="comparison",
    )  # fmt: skip
    runs = {
        side: [run(seed, values, reading.quantity) for seed, values in enumerate(some)]
        for side, some in zip(sides, (ours, control), strict=True)
    }
    return StudyResults(study, 1.0, {side: some for side, some in runs.items() if some})


def found(made: StudyResults) -> Comparison:
    compared = comparison(made)
    assert compared is not None
    return compared


def ends(*values: float) -> list[list[float]]:
    return [[value] for value in values]


# ------------------------------------------------------------------ the tests


def splits(ours: Sequence[Fraction], control: Sequence[Fraction]) -> Fraction:
    """Of all ways to deal the values to two sides, those with means at least so far apart."""
    values = [*ours, *control]

    def apart(chosen: Sequence[int]) -> Fraction:
        inside = Fraction(sum(values[i] for i in chosen))
        return abs(inside / len(ours) - (sum(values) - inside) / len(control))

    ways = [apart(chosen) for chosen in itertools.combinations(range(len(values)), len(ours))]
    return Fraction(sum(way >= apart(range(len(ours))) for way in ways), len(ways))


@settings(max_examples=25)
@given(
    st.sampled_from([1, 3, 5, 7]).flatmap(
        lambda episodes: st.tuples(
            *2 * [st.lists(st.integers(0, episodes), min_size=1, max_size=5)], st.just(episodes)
        )
    )
)
def test_p_of_success_is_that_of_every_split_of_the_seeds(case) -> None:
    ours, control, episodes = case
    sides = [tuple(value / episodes for value in side) for side in (ours, control)]
    exact = [[Fraction(value, episodes) for value in side] for side in (ours, control)]
    assert Difference(*sides, ranked=False).p == float(splits(*exact))


@settings(max_examples=25)
@given(*2 * [st.lists(st.sampled_from([1.5, 2.0, 7.25, math.inf]), min_size=1, max_size=5)])
def test_p_of_steps_is_that_of_every_split_of_their_ranks(ours, control) -> None:
    values = [*ours, *control]
    order = sorted(values)
    # the middle of the places that a value takes in order
    places = [Fraction(2 * order.index(v) + order.count(v) + 1, 2) for v in values]
    expected = splits(places[: len(ours)], places[len(ours) :])
    assert Difference(tuple(ours), tuple(control), ranked=True).p == float(expected)


def test_scores_are_whole_numbers_of_one_unit() -> None:
    assert counts([1 / 3, 2 / 3, 1.0, 0.2]) == [5, 10, 15, 3]
    assert counts([1 / 9, 1 / 11, 1 / 13]) == [11, 9, 8]  # in hundredths
    assert ranks([30.0, -2.0, math.inf, 30.0]) == [3, 0, 6, 3]


def test_many_seeds_are_tested_at_once() -> None:
    few = Difference((1.0,) * 30, (0.0,) * 30, ranked=False)
    many = Difference(tuple(map(float, range(300))), tuple(map(float, range(50, 350))), ranked=True)
    assert few.exact
    assert few.p == 2 / math.comb(60, 30)
    assert not many.exact
    assert many.p < 1e-10
    assert many.more_seeds() == {}
    made = results(ends(*[1.0] * 40), ends(*[0.0] * 40))
    assert "over 40 seeds (permutation test, p < 0.001)" in verdict(made)


def test_the_seeds_ahead_are_multiples_up_to_the_first_that_decides() -> None:
    near = Difference((1.0, 1.0, 1.0, 0.0, 0.0), (0.0,) * 5, ranked=False)
    assert near.p == pytest.approx(2 * math.comb(7, 2) / math.comb(10, 5))  # all three on one side
    assert near.more_seeds() == {10: True}
    same = Difference((0.4,) * 5, (0.4,) * 5, ranked=False)
    assert same.more_seeds() == dict.fromkeys((10, 15, 20, 25, 30), False)
    assert Difference((0.4,) * 16, (0.4,) * 16, ranked=False).more_seeds() == {}


# ------------------------------------------------------------------ the decision


@pytest.mark.parametrize(
    ("ours", "control", "outcome"),
    [
        ([1.0] * 4, [0.0] * 4, "few"),
        ([1.0] * 5, [0.0] * 4, "few"),
        ([1.0] * 5, [0.0] * 5, "helps"),
        ([0.0] * 5, [1.0] * 5, "hurts"),
        ([1.0, 1.0, 1.0, 0.0, 0.0], [0.0] * 5, "open"),
        ([0.0] * 5, [0.0] * 5, "nothing"),
        ([1.0] * 5, [0.8] * 5, "helps"),  # though both solve it
        ([1.0] * 5, [1.0, 1.0, 1.0, 1.0, 0.8], "as fast"),
    ],
)
def test_success_at_the_end_decides(ours, control, outcome) -> None:
    assert found(results(ends(*ours), ends(*control))).outcome == outcome


@pytest.mark.parametrize(
    ("ours", "control", "outcome"),
    [
        ([200, 200, 300, 300, 400], [500, 600, 600, 700, 800], "faster"),
        ([500, 600, 600, 700, 800], [200, 200, 300, 300, 400], "slower"),
        ([200, 300, 400, 500, 600], [300, 300, 400, 500, 600], "as fast"),
        # one seed that never solves it counts as the latest; with two the side does not solve it
        ([200, 200, 300, 300, 400], [500, 600, 600, 700, NEVER], "faster"),
        ([200, 200, 300, 300, 400], [500, 600, 600, NEVER, NEVER], "open"),
    ],
)
def test_where_both_solve_it_steps_decide(ours, control, outcome) -> None:
    compared = found(results([rising(at) for at in ours], [rising(at) for at in control]))
    assert compared.outcome == outcome
    assert (compared.steps is None) == (outcome == "open")


def test_the_first_evaluation_with_four_of_five_successes_solves() -> None:
    assert first_solved(run(0, [0.6, 0.8, 0.2, 1.0])) == 500
    assert first_solved(run(0, [0.6] * 4)) == math.inf
    assert first_solved(run(0, [1.0], RETURN.quantity)) == math.inf


def test_unfinished_seeds_do_not_count_and_a_side_may_have_none() -> None:
    made = results(ends(*[1.0] * 6), ends(*[0.0] * 6))
    ours, control = made.study.conditions
    half = [replace(r, finished=r.seed > 1) for r in made.runs[ours]]
    part = replace(made, runs={ours: half, control: made.runs[control]})
    assert found(part).seeds == (4, 6)
    assert found(part).outcome == "few"
    assert comparison(results(ends(1.0), [])) is None
    assert verdict(results(ends(1.0), [])).startswith("success on the last context = 1.000")


# ------------------------------------------------------------------ the words


def test_the_words_of_a_gain_and_of_a_loss() -> None:
    good, bad = ends(1.0, 1.0, 1.0, 1.0, 0.8), ends(0.4, 0.0, 0.0, 0.0, 0.0)
    numbers = "success on the last context {} against {} {} over 5 seeds (exact permutation test, "
    assert verdict(results(good, bad)) == (
        f"The curriculum helps: {numbers.format('0.96', '0.08', 'from scratch')}p = 0.008)."
    )
    assert verdict(results(bad, good)) == (
        f"The curriculum hurts: {numbers.format('0.08', '0.96', 'from scratch')}p = 0.008). Leave "
        "the curriculum out."
    )
    assert verdict(results(bad, good, against="baseline")) == (
        f"Roll-in hurts: {numbers.format('0.08', '0.96', 'without roll-in')}p = 0.008). Leave "
        "roll-in out (--method baseline)."
    )
    uniform = verdict(results(good, bad, against="uniform"))
    assert uniform.startswith("The order of contexts helps: ")
    assert "against 0.08 with contexts drawn uniformly over 5 seeds" in uniform


def test_the_words_where_nothing_is_shown() -> None:
    few = verdict(results(ends(1.0, 1.0), ends(0.0, 0.0)))
    assert few == (
        "2 seeds decide nothing: compare at least 5 of each condition. So far: success on the last "
        "context 1.00 against 0.00 from scratch."
    )
    assert verdict(results(ends(1.0), ends(0.0))).startswith("One seed decides nothing: ")
    some = ends(1.0, 1.0, 1.0, 0.0, 0.0)
    assert verdict(results(some, ends(*[0.0] * 5))) == (
        "No difference shown: success on the last context 0.60 against 0.00 from scratch over 5 "
        "seeds (exact permutation test, p = 0.167, not below 0.05). If further seeds come out like "
        "these, 10 of each decide."
    )
    assert verdict(results(some, some)).endswith(
        "p = 1.000, not below 0.05). If further seeds come out like these, 30 of each do not "
        "decide either."
    )
    assert verdict(results(ends(*[0.0] * 5), ends(*[0.0] * 6))) == (
        "No difference shown: success on the last context 0.00 against 0.00 from scratch over 5 "
        "and 6 seeds. No seed succeeds on either side: give more --steps rather than more seeds."
    )


def test_the_words_where_both_solve_it() -> None:
    early = [rising(at) for at in (200, 200, 300, 300, 400)]
    late = [rising(at) for at in (500, 600, 600, 700, NEVER)]
    assert verdict(results(late, early)) == (
        "The curriculum costs steps: both solve the final context (4 of 5 and 5 of 5 seeds), in a "
        "median of 600 steps against 300 from scratch (exact permutation test of ranks, "
        "p = 0.008). Leave the curriculum out."
    )
    assert verdict(results(early, late)) == (
        "The curriculum helps: both solve the final context (5 of 5 and 4 of 5 seeds), in a median "
        "of 300 steps against 600 from scratch (exact permutation test of ranks, p = 0.008)."
    )
    assert verdict(results(early, early)).startswith(
        "No difference shown: both solve the final context (5 of 5 and 5 of 5 seeds), in a median "
        "of 300 steps against 300 from scratch (exact permutation test of ranks, p = 1.000, not"
    )


def test_without_successes_returns_are_compared_by_rank() -> None:
    ours, control = ends(9.0, 9.5, 1e6, 10.0, 11.0), ends(-5.0, 2.0, 3.0, 8.0, 1.0)
    assert verdict(results(ours, control, RETURN)) == (
        "The curriculum helps: median return on the last context 10.000 against 2.000 from scratch "
        "over 5 seeds (exact permutation test of ranks, p = 0.008)."
    )
    assert found(results(ends(*[0.0] * 5), ends(*[0.0] * 5), RETURN)).outcome == "open"


def test_labels_of_another_file_have_words() -> None:
    """A sweep.json may have been written by someone else."""
    made = results(ends(*[1.0] * 5), ends(*[0.0] * 5), against="moon")
    assert "moon" not in WORDS
    assert verdict(made).startswith("The first condition helps: ")
