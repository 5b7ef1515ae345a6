"""Sampling laws, rows, files and relabelling of the replay."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rollin import RollinError
from rollin.checks import MOST
from rollin.sac.cpu.rng import geometric_ages, uniform_ages
from rollin.sac.relabel import relabel
from rollin.sac.replay import HEADER, WAITING_ROWS, Replay, RowLayout, Selection
from rollin.streams import Streams, pack_generator

GOALS = RowLayout(observation=3, action=2, context=2, outcome=2)
SMALL = RowLayout(observation=1, action=1)


def fill(replay: Replay, rows: int, seed: int = 0, longest: int = 9) -> None:
    """Random episodes; observation[0] is the row's number, outcome its position."""
    rng = np.random.default_rng(seed)
    layout, left = replay.layout, 0
    while replay.total < rows:
        left = left or int(rng.integers(1, longest + 1))
        left -= 1
        number = float(replay.total)
        replay.append(
            [number, *rng.standard_normal(layout.observation - 1)],
            rng.uniform(-1, 1, layout.action),
            float(rng.standard_normal()),
            [number + 1, *rng.standard_normal(layout.observation - 1)],
            terminated=left == 0 and rng.random() < 0.5,
            truncated=left == 0,
            context=rng.standard_normal(layout.context) if layout.context else None,
            outcome=[number] * layout.outcome if layout.outcome else None,
        )


def add(replay: Replay, i: int, *, terminated: bool = False) -> None:
    """Append a row of the layout `SMALL`."""
    replay.append([i], [0.0], 0.0, [i], terminated=terminated, truncated=False)


# ------------------------------------------------------------------ laws of sampling


def test_uniform_ages_by_chi_square():
    ages = uniform_ages(200_000, 50, np.random.default_rng(0))
    assert stats.chisquare(np.bincount(ages, minlength=50)).pvalue > 1e-3


@pytest.mark.parametrize(("held", "p"), [(50, 0.05), (7, 0.9), (1000, 1e-5), (300, 0.01)])
def test_geometric_ages_by_chi_square(held, p):
    ages = geometric_ages(200_000, held, p, np.random.default_rng(1))
    law = p * (1 - p) ** np.arange(held)
    expected = 200_000 * law / law.sum()
    counts = np.bincount(ages, minlength=held)
    assert len(counts) == held
    likely = expected > 5
    if not likely.all():  # what is rare counts together
        counts = np.append(counts[likely], counts[~likely].sum())
        expected = np.append(expected[likely], expected[~likely].sum())
    assert stats.chisquare(counts, expected).pvalue > 1e-3


def test_geometric_ages_of_a_long_run_have_the_paper_s_law():
    """p = 1e-5 over 3 million rows: the mean age is 1/p up to truncation."""
    ages = geometric_ages(400_000, 3_000_000, 1e-5, np.random.default_rng(2))
    assert ages.mean() == pytest.approx(1e5, rel=0.01)
    assert ages.max() < 3_000_000
    assert stats.kstest(ages, stats.expon(scale=1e5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("p", [None, 0.02])
def test_drawn_rows_are_held_rows(p):
    replay = Replay(RowLayout(2, 1), 30)
    fill(replay, 100)
    picked = replay.draw(30, np.random.default_rng(0), p)
    for _ in range(200):
        picked = np.concatenate([picked, replay.draw(30, np.random.default_rng(len(picked)), p)])
    assert picked.min() == 70
    assert picked.max() == 99
    batch = replay.gather(picked[:30], np.empty((30, 7), np.float32))
    np.testing.assert_array_equal(batch[:, 1], picked[:30])  # observation[0] is the row's number
    np.testing.assert_array_equal(batch[:, 3], picked[:30] + 1)


# ------------------------------------------------------------------ rows


def test_a_batch_has_what_was_appended():
    replay = Replay(GOALS, 10)
    ends = [(False, False), (False, True), (True, False)]
    for i, (terminated, truncated) in enumerate(ends):
        given = {"context": [6, 7], "outcome": [8, 9], "terminated": terminated}
        replay.append([i, 1, 2], [0.5, -1], 10.0 + i, [i, 4, 5], truncated=truncated, **given)
    batch = replay.gather(np.arange(3), np.empty((3, GOALS.batch_width), np.float32))
    for i, mask in enumerate((1, 1, 0)):  # only termination stops the bootstrap
        wanted = [0.5, -1, i, 1, 2, 6, 7, i, 4, 5, 6, 7, 10 + i, mask]
        np.testing.assert_array_equal(batch[i], np.array(wanted, np.float32))
    np.testing.assert_array_equal(replay.outcomes(np.arange(3)), [[8, 9]] * 3)


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 150), st.integers(0, 9))
def test_rows_left_of_an_episode(capacity, rows, seed):
    replay = Replay(GOALS, capacity)
    fill(replay, rows, seed)
    flags = np.full(rows, np.nan)
    numbers = np.arange(max(0, rows - capacity), rows)
    flags[numbers] = replay.rows[numbers % capacity, replay.layout.width - 3]
    for number in numbers:
        end = number
        while end < rows - 1 and flags[end] == 1:
            end += 1
        assert replay.rows_left(np.array([number]))[0] == end - number


def test_an_episode_can_be_broken_off():
    replay = Replay(GOALS, 50)
    fill(replay, 5, longest=100)
    replay.end_episode()
    assert list(replay.rows_left(np.arange(5))) == [4, 3, 2, 1, 0]
    fill(replay, 8, longest=100)
    assert list(replay.rows_left(np.arange(3, 8))) == [1, 0, 2, 1, 0]


def test_three_million_hopper_transitions_fit_in_350_megabytes():
    assert Replay(RowLayout(11, 3), 3_000_000).bytes < 350e6
    assert Replay(RowLayout(11, 3, context=1), 3_000_000).bytes < 350e6


# ------------------------------------------------------------------ state and file


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(0, 90), st.integers(1, 30), st.booleans())
def test_a_restored_replay_goes_on_to_the_bit(tmp_path_factory, capacity, before, after, filed):
    folder = tmp_path_factory.mktemp("replay") if filed else None
    path = folder / "rows" if folder else None
    one, streams = Replay(GOALS, capacity, path), Streams(3)
    fill(one, before)
    state = one.get_state()
    fill(one, before + after, seed=1)
    one.flush()
    content = path.read_bytes() if path else None
    other = Replay(GOALS, capacity, path)
    other.set_state(state)
    fill(other, before + after, seed=1)
    other.flush()
    held = len(one)
    np.testing.assert_array_equal(one.rows[:held], other.rows[:held])
    picked = one.draw(min(held, 5), streams["replay"])
    np.testing.assert_array_equal(one.rows_left(picked), other.rows_left(picked))
    if path:
        assert path.read_bytes() == content


def test_a_file_holds_every_row_even_beyond_the_capacity(tmp_path):
    path = tmp_path / "rows"
    replay = Replay(RowLayout(2, 1), 10, path)
    fill(replay, 2 * WAITING_ROWS // 100 + 37)
    replay.flush()
    rows = np.fromfile(path, np.float32, offset=HEADER).reshape(-1, replay.layout.width)
    np.testing.assert_array_equal(rows[:, 1], np.arange(replay.total))


def test_an_end_that_was_said_after_the_row_was_filed_is_filed_too(tmp_path):
    replay = Replay(GOALS, 50, tmp_path / "rows")
    fill(replay, 5, longest=100)
    replay.flush()
    replay.end_episode()
    state = replay.get_state()
    other = Replay(GOALS, 50, tmp_path / "rows")
    other.set_state(state)
    np.testing.assert_array_equal(other.rows[:5], replay.rows[:5])
    np.testing.assert_array_equal(other.rows_left(np.arange(5)), [4, 3, 2, 1, 0])


def test_a_full_disk_loses_nothing_that_was_counted(tmp_path, monkeypatch):
    replay = Replay(GOALS, 50, tmp_path / "rows")
    fill(replay, 20)
    state = replay.get_state()
    kept = replay.rows[:20].copy()
    fill(replay, 30, seed=1)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(RollinError, match="could not be written: no space left on device"):
            replay.flush()
    other = Replay(GOALS, 50, tmp_path / "rows")
    other.set_state(state)
    np.testing.assert_array_equal(other.rows[:20], kept)
    fill(other, 30, seed=1)
    other.flush()
    np.testing.assert_array_equal(other.rows[:30], replay.rows[:30])


def test_a_cut_off_or_foreign_file_is_refused(tmp_path):
    path = tmp_path / "rows"
    replay = Replay(GOALS, 50, path)
    fill(replay, 20)
    state = replay.get_state()
    with pytest.raises(RollinError, match="belongs to another run"):
        Replay(RowLayout(2, 1), 50, path).set_state(state)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RollinError, match="holds 19 rows, its checkpoint counts 20"):
        Replay(GOALS, 50, path).set_state(state)
    path.unlink()
    with pytest.raises(RollinError, match="is missing, but a checkpoint counts 20 rows"):
        Replay(GOALS, 50, path).set_state(state)


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path):
    replay = Replay(GOALS, 50, tmp_path / "nowhere" / "rows")
    fill(replay, 5)
    with pytest.raises(RollinError, match="rows could not be written: no such file or directory"):
        replay.flush()


# ------------------------------------------------------------------ what is refused

GOOD = {
    "observation": [0.0, 0, 0],
    "action": [0.0, 0],
    "reward": 1.0,
    "next_observation": [0.0, 0, 0],
    "context": [0.0, 0],
    "outcome": [0.0, 0],
}


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("observation", [0, np.nan, 0], r"Step 4: observation\[1\] is nan"),
        ("next_observation", [0, 0, -np.inf], r"Step 4: next observation\[2\] is -inf"),
        ("reward", np.nan, "Step 4: reward is nan"),
        ("reward", 1e300, "Step 4: reward is 1e[+]300"),
        ("context", [np.inf, 0], r"context\[0\] is inf"),
        ("outcome", [0, np.nan], r"outcome\[1\] is nan"),
        ("action", [0, np.nan], r"action\[1\] is nan"),
        ("action", [0, 1.5], r"Step 4: action\[1\] is 1.5, outside \[-1, 1\]"),
        ("observation", [0, 0], r"observation must hold 3 real numbers.*got int64 of shape \(2,\)"),
        ("action", [[0, 0]], r"action must hold 2 real numbers.*shape \(1, 2\)"),
        ("observation", ["a", "b", "c"], "observation must hold 3 real numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_bad_transitions_are_named_and_leave_the_replay_as_it_was(part, value, message):
    replay = Replay(GOALS, 10)
    fill(replay, 3)
    with pytest.raises(RollinError, match=message):
        replay.append(**{**GOOD, part: value}, terminated=False, truncated=False)
    assert replay.total == 3
    replay.append(**GOOD, terminated=False, truncated=False)
    assert replay.total == 4


def test_a_refused_row_does_not_touch_the_oldest_of_a_full_replay():
    replay = Replay(GOALS, 10)
    fill(replay, 25)
    before = replay.rows.copy()
    for part, value in (("reward", np.inf), ("outcome", [0, np.nan]), ("action", [0.0, 2.0])):
        with pytest.raises(RollinError):
            replay.append(**{**GOOD, part: value}, terminated=False, truncated=False)
    np.testing.assert_array_equal(replay.rows, before)


@pytest.mark.parametrize("part", ["context", "outcome"])
def test_parts_that_the_layout_has_must_be_given(part):
    given = {name: value for name, value in GOOD.items() if name != part}
    with pytest.raises(RollinError, match=f"{part} must hold 2 real numbers"):
        Replay(GOALS, 5).append(**given, terminated=False, truncated=False)


def test_rewards_that_are_no_numbers_and_batches_that_do_not_fit_are_refused():
    replay = Replay(GOALS, 10)
    with pytest.raises(RollinError, match="Step 1: reward must be a real number, got None"):
        replay.append(**{**GOOD, "reward": None}, terminated=False, truncated=False)
    fill(replay, 5)
    for out in (np.empty((2, 3), np.float32), np.empty((2, GOALS.batch_width))):
        with pytest.raises(RollinError, match=r"needs a float32 array of shape \(2, 14\)"):
            replay.gather(np.arange(2), out)  # pyright: ignore[reportArgumentType]


def test_draws_that_cannot_be_made_are_refused():
    replay = Replay(GOALS, 10)
    generator = np.random.default_rng(0)
    with pytest.raises(RollinError, match="The replay is empty"):
        replay.draw(1, generator)
    fill(replay, 3)
    with pytest.raises(RollinError, match="holds 3 transitions, fewer than a batch of 4"):
        replay.draw(4, generator)
    with pytest.raises(RollinError, match=r"must lie in \(0, 1\), got 1"):
        replay.draw(2, generator, 1.0)
    with pytest.raises(RollinError, match="keeps no outcomes"):
        Replay(RowLayout(2, 1), 5).rows_left(np.arange(1))


# ------------------------------------------------------------------ relabelling


def distance(outcome, context):
    return -np.abs(outcome - context).sum(-1)


@pytest.mark.parametrize("size", [3, 10, 256])
def test_relabelling_in_thirds(size):
    replay = Replay(GOALS, 500)
    fill(replay, 400)
    generator = np.random.default_rng(0)
    picked = replay.draw(size, generator)
    plain = replay.gather(picked, np.empty((size, GOALS.batch_width), np.float32))
    batch = relabel(replay, picked, plain.copy(), generator, distance)
    third = size // 3
    kept = size - 2 * third
    np.testing.assert_array_equal(batch[:kept], plain[:kept])
    contexts = batch[:, 5:7]
    np.testing.assert_array_equal(contexts, batch[:, 10:12])
    untouched = [0, 1, 2, 3, 4, 7, 8, 9, 13]
    np.testing.assert_array_equal(batch[:, untouched], plain[:, untouched])
    np.testing.assert_array_equal(contexts[-third:, 0], picked[-third:])  # the next state's outcome
    np.testing.assert_array_equal(batch[-third:, 12], 0)
    future, rows = contexts[kept : kept + third, 0], picked[kept : kept + third]
    assert (future >= rows).all()
    assert (future <= rows + replay.rows_left(rows)).all()
    expected = distance(replay.outcomes(picked[kept:]), contexts[kept:])
    np.testing.assert_array_equal(batch[kept:, 12], expected)


def test_a_drawn_goal_is_relabelled_in_the_observation():
    """Observations hold place, drawn goal and a constant; the context is the goal's range."""
    layout = RowLayout(observation=3, action=1, context=1, outcome=2)
    replay = Replay(layout, 100)
    for t in range(60):
        goal, last = 1000.0 + t // 20, t % 20 == 19
        replay.append(
            [t, goal, 7], [0.5], -1.0, [t + 1, goal, 7], terminated=False, truncated=last,
            context=[0.3], outcome=[t + 1, goal],
        )  # fmt: skip
    picked = replay.draw(30, np.random.default_rng(1))
    plain = replay.gather(picked, np.empty((30, layout.batch_width), np.float32))

    def reward(outcome, context):
        assert (context == np.float32(0.3)).all()
        return (outcome[:, 0] == outcome[:, 1]) - 1.0

    batch = relabel(
        replay, picked, plain.copy(), np.random.default_rng(0), reward, drawn_goal=slice(1, 2)
    )
    np.testing.assert_array_equal(batch[:10], plain[:10])
    untouched = [0, 1, 3, 4, 5, 7, 8, 10]  # all but the goal of s, that of s' and the reward
    np.testing.assert_array_equal(batch[:, untouched], plain[:, untouched])
    np.testing.assert_array_equal(batch[:, 2], batch[:, 6])
    np.testing.assert_array_equal(batch[20:, 2], picked[20:] + 1)  # the next state's place
    assert (batch[20:, 9] == 0).all()
    future = batch[10:20, 2]
    assert (future > picked[10:20]).all()
    assert (future <= 20 * (picked[10:20] // 20) + 20).all()  # of the same episode
    np.testing.assert_array_equal(batch[10:20, 9], (future == picked[10:20] + 1) - 1.0)


def test_relabelled_transitions_end_where_their_goal_ends_the_episode():
    replay = Replay(RowLayout(observation=1, action=1, context=1, outcome=1), 100)
    for t in range(90):  # an end under the original context says nothing of another
        replay.append(
            [t], [0.5], 0.0, [t + 1], terminated=t % 10 == 9, truncated=False, context=[99.0],
            outcome=[t + 1],
        )  # fmt: skip
    picked = replay.draw(60, np.random.default_rng(1))
    plain = replay.gather(picked, np.empty((60, replay.layout.batch_width), np.float32))
    at_goal = lambda outcome, context: (outcome == context)[:, 0]  # noqa: E731
    batch = relabel(
        replay, picked, plain.copy(), np.random.default_rng(0), lambda o, c: at_goal(o, c) * 1.0,
        ends=at_goal,
    )  # fmt: skip
    np.testing.assert_array_equal(batch[:20], plain[:20])
    assert (batch[40:, -1] == 0).all()
    np.testing.assert_array_equal(batch[20:40, -1], batch[20:40, 2] != picked[20:40] + 1)
    assert set(batch[20:40, -1]) == {0.0, 1.0}


def test_future_states_are_uniform_over_the_rest_of_the_episode():
    replay = Replay(GOALS, 100)
    fill(replay, 20, longest=200)
    replay.end_episode()
    picked = np.full(30_000, 8)
    batch = replay.gather(picked, np.empty((30_000, GOALS.batch_width), np.float32))
    relabel(replay, picked, batch, np.random.default_rng(0), distance)
    counts = np.bincount(batch[10_000:20_000, 5].astype(int), minlength=20)
    assert counts[:8].sum() == 0
    assert stats.chisquare(counts[8:]).pvalue > 1e-3


def test_relabelled_rewards_are_those_of_the_environment():
    """Every relabelled transition, played again under its new context, gives that reward."""

    class Line:
        """x ← x + 0.3 a; the reward of a goal is exp(-5 D) within 0.5, as in the ant's maze."""

        def compute_reward(self, outcome, context):
            far = np.linalg.norm(outcome - context, axis=-1)
            return np.where(far <= 0.5, np.exp(-5 * far), 0.0)

        def step(self, x, action, goal):
            x = x + np.float32(0.3) * action
            return x, float(self.compute_reward(x, goal))

    env, rng = Line(), np.random.default_rng(0)
    replay = Replay(RowLayout(2, 2, 2, 2), 300)
    for _ in range(10):
        x, goal = rng.uniform(-1, 1, 2).astype(np.float32), rng.uniform(-1, 1, 2).astype("f")
        for t in range(25):
            action = rng.uniform(-1, 1, 2).astype(np.float32)
            following, reward = env.step(x, action, goal)
            replay.append(
                x, action, reward, following,
                terminated=False, truncated=t == 24, context=goal, outcome=following,
            )  # fmt: skip
            x = following
    picked = replay.draw(240, rng)
    batch = replay.gather(picked, np.empty((240, 12), np.float32))
    relabel(replay, picked, batch, rng, env.compute_reward)
    rewards = [env.step(row[2:4], row[:2], row[4:6])[1] for row in batch]
    np.testing.assert_allclose(batch[:, 10], rewards, rtol=1e-5, atol=1e-6)
    assert (batch[80:160, 10] > 0).sum() > (batch[:80, 10] > 0).sum()


def test_relabelling_names_what_does_not_fit():
    replay = Replay(RowLayout(3, 2, context=1, outcome=2), 50)
    fill(replay, 30)
    generator = np.random.default_rng(0)
    picked = replay.draw(9, generator)
    batch = replay.gather(picked, np.empty((9, replay.layout.batch_width), np.float32))
    with pytest.raises(RollinError, match=r"contexts of shape \(6, 1\).*got \(6, 2\)"):
        relabel(replay, picked, batch, generator, distance)
    first = lambda outcome: outcome[:, :1]  # noqa: E731
    with pytest.raises(RollinError, match="must give 6 rewards"):
        relabel(replay, picked, batch, generator, lambda o, c: np.zeros(2), first)
    with pytest.raises(RollinError, match="not a finite number"):
        relabel(replay, picked, batch, generator, lambda o, c: np.full(6, np.nan), first)


# ------------------------------------------------------------------ streams


def test_streams_are_independent_of_each_other_and_of_their_order():
    one, other = Streams(5), Streams(5)
    first = one["act"].random(4), one["env"].random(4)
    second = other["env"].random(4), other["act"].random(4)
    np.testing.assert_array_equal(first[0], second[1])
    np.testing.assert_array_equal(first[1], second[0])
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(Streams(6)["act"].random(4), first[0])


@given(st.integers(0, MOST), st.integers(0, 20))
def test_streams_go_on_where_they_were(seed, draws):
    one = Streams(seed)
    one["act"].standard_normal(draws, dtype=np.float32)
    one["act"].integers(0, 10, draws, dtype=np.uint32)  # may leave half a draw behind
    state = one.get_state()
    other = Streams(seed)
    other["act"].random(3)
    other.set_state(state)
    np.testing.assert_array_equal(one["act"].random(5), other["act"].random(5))
    np.testing.assert_array_equal(pack_generator(one["act"]), pack_generator(other["act"]))


def test_bad_streams_are_refused():
    with pytest.raises(RollinError, match="seed must be at least 0, got -1"):
        Streams(-1)
    with pytest.raises(RollinError, match="6 numbers, got shape"):
        Streams(0).set_state({"act": np.zeros(3, np.uint64)})


def test_a_replay_that_never_got_a_row_resumes_without_a_file(tmp_path: Path):
    path = tmp_path / "rows"
    again = Replay(GOALS, 5, path)
    again.set_state(Replay(GOALS, 5).get_state())
    assert len(again) == 0
    assert not path.exists()
    one = np.zeros(2, np.float32)
    ends = {"terminated": False, "truncated": False}
    again.append(np.zeros(3), one, 1.0, np.zeros(3), context=one, outcome=one, **ends)
    again.flush()
    assert path.exists()
    assert len(again) == 1


# ------------------------------------------------------------------ selections


@given(st.integers(1, 40), st.lists(st.booleans(), min_size=1, max_size=120), st.integers(0, 99))
def test_a_selection_is_the_rows_it_took_as_far_as_the_replay_holds_them(capacity, taken, seed):
    replay = Replay(SMALL, capacity)
    selection, expected = Selection(replay), []
    for i, take in enumerate(taken):
        add(replay, i)
        if take:
            selection.take_newest()
            expected.append(i)
        expected = [row for row in expected if row >= replay.total - capacity]
        assert selection.rows.tolist() == expected
        assert len(selection) == len(expected)
    if expected:
        size = (len(expected) + 1) // 2
        picked = selection.draw(size, np.random.default_rng(seed))
        assert np.isin(picked, expected).all()
        restored = Selection(replay)
        restored.set_state(selection.get_state())
        again = restored.draw(size, np.random.default_rng(seed))
        np.testing.assert_array_equal(picked, again)
        restored.take_newest()
        assert restored.rows[-1] == len(taken) - 1
    selection.clear()
    assert len(selection) == 0


def test_a_selection_draws_by_its_own_ages():
    replay = Replay(SMALL, 5000)
    selection = Selection(replay)
    for i in range(3000):  # beyond the room it begins with
        add(replay, i)
        if i % 2:
            selection.take_newest()
    picked = selection.draw(1500, np.random.default_rng(0), 0.01)
    assert (picked % 2 == 1).all()
    ages = (2999 - picked) / 2
    assert ages.mean() == pytest.approx(99, rel=0.1)
    uniform = selection.draw(1500, np.random.default_rng(0))
    assert uniform.mean() == pytest.approx(1500, rel=0.05)


@pytest.mark.parametrize(
    ("rows", "message"),
    [([3, 2], "rising whole numbers"), ([0, 9], "names row 9 of a replay with 5")],
)
def test_a_selection_refuses_the_state_of_another(rows, message):
    replay = Replay(SMALL, 10)
    for i in range(5):
        add(replay, i)
    with pytest.raises(RollinError, match=message):
        Selection(replay).set_state({"rows": np.array(rows, np.int64)})


def test_streams_of_a_part_are_streams_of_the_whole():
    whole = Streams(7)
    part = whole.under("exp")
    first = part["act"].random()
    assert first == Streams(7)["exp.act"].random()
    assert first != Streams(7)["act"].random()
    kept = whole.get_state()
    assert list(kept) == ["exp.act"]
    following = part["act"].random()
    whole.set_state(kept)
    assert part["act"].random() == following
    other = whole["act"].random()
    state = part.get_state()
    assert list(state) == ["act"]
    following = part["act"].random()
    part.set_state(state)  # the whole's own stream stays where it is
    assert part["act"].random() == following
    assert whole["act"].random() not in (other, following)


@pytest.mark.parametrize("broken_off", [False, True])
def test_changed_rows_of_a_file_are_noticed(tmp_path, broken_off):
    """Unless a row was written twice, which only a loop that breaks episodes off does."""
    path = tmp_path / "replay.f32"
    replay = Replay(SMALL, 5, path)
    for i in range(9):
        add(replay, i)
        replay.flush()
        if broken_off and i == 4:
            replay.end_episode()
    state = replay.get_state()
    again = Replay(SMALL, 5, path)
    again.set_state(state)
    add(again, 9, terminated=True)
    Replay(SMALL, 5, path).set_state(again.get_state())
    data = bytearray(path.read_bytes())
    data[HEADER] ^= 1  # of a row that memory no longer holds
    path.write_bytes(data)
    if broken_off:
        Replay(SMALL, 5, path).set_state(state)
    else:
        with pytest.raises(RollinError, match="does not match its checksum"):
            Replay(SMALL, 5, path).set_state(state)
