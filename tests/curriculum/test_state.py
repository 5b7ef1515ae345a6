"""Declared state: what is saved comes back, whatever its type, and what does not fit is refused."""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from rollin import RollinError
from rollin.curriculum.progress import Advance, Progress, State, Stateful, Window


@dataclass(frozen=True)
class Pair:
    array: NDArray[np.float32]
    note: str


class Base(Stateful):
    count: State[int] = 0
    best: State[float] = -math.inf
    flags: State[tuple[bool, ...]] = ()
    size = 7  # not part of the state


class Whole(Base):
    _table: State[dict[int, list[tuple[int, float]]]]
    array: State[NDArray[np.float64]]
    pair: State[Pair | None] = None
    stream: State[Generator]
    window: State[Window]
    part: State[Window | None] = None

    def __init__(self, seed: int = 0, part: Any = None) -> None:
        self._table = {}
        self.array = np.zeros(2)
        self.stream = np.random.default_rng(seed)
        self.window = Window(3)
        self.part = part


def filled() -> Whole:
    whole = Whole()
    whole.count = 3
    whole.flags = (True, False)
    whole._table = {5: [(1, 2.5)], -2: []}
    whole.array = np.array([0.1, np.pi])
    whole.pair = Pair(np.array([0.25, 0.1], np.float32), "both")
    whole.stream.random(3)
    whole.window.add(2.0, success=True)
    return whole


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(state, allow_nan=False))


def test_everything_comes_back_through_json():
    whole, other = filled(), Whole(seed=1)
    other.best = 5.0
    state = through_json(whole.get_state())
    assert set(state) == {
        "count", "best", "flags", "table", "array", "pair", "stream", "window", "part",
    }  # fmt: skip
    other.set_state(state)
    assert (other.count, other.best, other.flags) == (3, -math.inf, (True, False))
    assert other._table == whole._table
    np.testing.assert_array_equal(other.array, whole.array)
    assert other.pair is not None
    assert (other.pair.array.dtype, other.pair.note) == (np.float32, "both")
    assert other.stream.random() == whole.stream.random()
    assert vars(other.window) == vars(whole.window)


def test_a_state_does_not_change_with_what_it_is_of():
    whole = filled()
    state = whole.get_state()
    before = json.dumps(state)
    whole._table[5].append((2, 3.5))
    whole.array[0] = 9.0
    whole.window.add(1.0)
    assert json.dumps(state) == before


def test_what_an_earlier_version_did_not_have_keeps_its_default():
    whole = filled()
    state = whole.get_state()
    del state["count"], state["window"]["streak"]
    whole.set_state(state)
    assert (whole.count, whole.window.streak) == (0, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 2.5), ("count", True), ("best", "high"), ("flags", [1]), ("table", [[1]]),
        ("table", {}), ("table", [["a", []]]), ("array", ["x"]), ("pair", [[0.5]]), ("stream", []),
        ("stream", None), ("window", None), ("window", [3]), ("part", {"previous": 1}),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_a_sentence(name, value):
    state = {**filled().get_state(), name: value}
    if name == "table" and value == {}:
        state.pop("table")
    with pytest.raises(RollinError) as error:
        Whole().set_state(state)
    assert str(error.value).endswith(".")
    assert "Traceback" not in str(error.value)


def test_a_part_that_the_saved_one_did_not_have_is_refused():
    with pytest.raises(RollinError, match=r"'part' in the saved state of a Whole does not fit"):
        Whole(part=Window(2)).set_state(filled().get_state())


def test_progress_has_the_form_that_records_are_read_from():
    progress, again = Progress(2), Progress(2)
    progress.advance(5, "why")
    progress.advance(7, "why not")
    progress.complete(9, "all")
    state = through_json(progress.get_state())
    assert state == {
        "K": 2, "k": 2, "advances": [[5, 1, "why"], [7, 2, "why not"]], "completed": [9, 2, "all"],
    }  # fmt: skip
    again.set_state(state)
    assert again == progress
    assert again.advances[0] == Advance(5, 1, "why")
