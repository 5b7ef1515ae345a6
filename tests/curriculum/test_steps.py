"""Steps along the path that adapt themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollin.curriculum.steps import Halving
from rollin.errors import RollinError

AT = [j / 96 for j in range(97)]
LOST, SEEN = [False] * 10, [True] * 5


def test_a_step_halves_down_to_the_next_context_and_stays():
    steps = Halving()
    k = steps.forward(AT, 0, [])
    assert k == 8
    found = []
    for _ in range(5):
        k = steps.back(AT, k, LOST)
        found.append(k)
    assert found == [4, 2, 1, 1, 1]


def test_a_step_doubles_after_success_at_once_up_to_the_largest():
    steps = Halving()
    k = steps.forward(AT, 0, [])
    k = steps.back(AT, steps.back(AT, k, LOST), LOST)
    found = [k]
    for _ in range(3):
        k = steps.forward(AT, k, SEEN)
        found.append(k)
    assert found == [2, 6, 14, 22]  # steps of 4, 8 and 8


def test_one_reward_or_too_few_episodes_keep_the_context():
    steps = Halving(patience=3)
    k = steps.forward(AT, 0, [])
    assert steps.back(AT, k, [False, False]) == k
    assert steps.back(AT, k, [False, True, False]) == k
    assert steps.back(AT, k, [True, False, False, False]) == 4


def test_the_first_context_is_never_left_backwards():
    assert Halving().back(AT, 0, LOST) == 0


@pytest.mark.parametrize("first", [0, 2, 0.2])
def test_a_first_step_that_cannot_be_is_refused(first):
    with pytest.raises(RollinError, match="The first step must lie in"):
        Halving(first, most=0.1)


@given(
    st.lists(st.floats(0.001, 0.5), min_size=1, max_size=40),
    st.lists(st.booleans(), max_size=200),
    st.floats(0.01, 1.0),
)
def test_it_stays_on_the_path_and_ends_at_its_end(gaps, luck, first):
    """Whatever is seen: contexts lie between the mastered one and a step beyond it."""
    at = [0.0]
    for gap in gaps:
        at.append(at[-1] + gap)
    at = [position / at[-1] for position in at]
    steps = Halving(first, first)
    k = mastered = 0
    for good in luck:
        if k == len(at) - 1 and good:
            break
        if good or k == 0:
            mastered, k = k, steps.forward(at, k, SEEN)
        else:
            k = steps.back(at, k, LOST)
        assert steps.previous == mastered < k < len(at)
        assert at[k] - at[mastered] <= first + 1e-9 or k == mastered + 1
        again = Halving(first, first)
        again.set_state(steps.get_state())
        assert again.back(at, k, LOST) == back_without_trace(steps, at, k)


def back_without_trace(steps, at, k):
    kept = steps.get_state()
    found = steps.back(at, k, LOST)
    steps.set_state(kept)
    return found
