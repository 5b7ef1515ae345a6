"""Options that change one line of the practical algorithm each: who rolls in, who goes on from
there, and whether the roll-in is recorded."""

from itertools import islice, product
from typing import Any

import numpy as np
import pytest

from rollin import RollinError, Streams
from rollin.deep.options import RollinOptions
from rollin.deep.practical import train_rollin
from rollin.deep.state import DeepState
from rollin.runs.engines import engine_for
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.options import configured
from rollin.runs.spec import RunSpec
from rollin.sac.replay import Replay, RowLayout
from tests.deep.test_practical import EASY, begin, episodes_of, take
from tests.toys import Line

ARMS: list[dict[str, Any]] = [
    {"explorer": explorer, "prefix": prefix, "guide": guide}
    for explorer, prefix, guide in product(
        ("fresh", "main"), ("replay", "hidden"), ("current", "frozen")
    )
]
LEVEL_1 = {"explorer": "main", "prefix": "hidden", "guide": "frozen"}
CONTEXTS = [0.0, 0.4, 0.8, 1.2]


def named(options: Any) -> str:
    return "-".join(options.values()) if isinstance(options, dict) else options


# ------------------------------------------------------------------ who acts, learns, is recorded


@pytest.mark.parametrize("updates", ["detailed", "short"])
@pytest.mark.parametrize("arm", ARMS, ids=named)
def test_who_acts_and_learns_and_what_is_recorded_follow_from_the_random_numbers(arm, updates):
    """Every step of a run, worked out once more from the coins of the stream `rollin` alone."""
    state = begin(**arm, updates=updates, warmup=30)
    events = take(state, 500)
    coins, short = Streams(0)["rollin"], updates == "short"
    k, in_window, collected = 0, 0, 0
    rewards: list[float] = []  # of the rows that D should hold
    for steps in episodes_of(events):
        rolls_in, stopped = k > 0 and coins.random() < 0.5, False
        for event in steps:
            rolling = rolls_in and not stopped
            if rolling:
                stopped = coins.random() < 1 - 0.8
            after = "exp" if arm["explorer"] == "fresh" else "main"
            acts = "rollin" if rolling else after if rolls_in else "main"
            shown = not (rolling and arm["prefix"] == "hidden")
            collected += acts == "exp"
            learning = shown and event.step > 30
            assert (event.k, event.actor) == (k, acts)
            assert (event.main is not None) == (learning and (short or acts == "main"))
            wants = learning and (short or acts == "exp")
            assert (event.exp is not None) == (wants and collected > 0)
            if shown:
                rewards.append(event.reward)
        episode, in_window = steps[-1].episode, in_window + 1
        assert episode is not None
        assert episode.total == pytest.approx(sum(event.reward for event in steps))
        assert episode.length == len(steps)  # hidden steps count in full
        if in_window == 3 and k < 3:
            k, in_window, collected = k + 1, 0, 0
    assert k == 3
    assert any(event.actor == "rollin" for event in events)
    layout = state.D.layout
    stored = state.D.rows[: len(rewards), layout.width - layout.outcome - 2]
    np.testing.assert_array_equal(stored, np.array(rewards, np.float32))
    under_way = len(events) - sum(len(steps) for steps in episodes_of(events))
    assert len(rewards) <= state.D.total <= len(rewards) + under_way


@pytest.mark.parametrize("arm", ARMS, ids=named)
def test_whoever_acts_is_told_the_context_of_its_own(arm):
    state = begin(length=6, warmup=4, **arm)
    told: list[tuple[str, float]] = []
    for name, learner in state.agents.items():

        def act(seen: Any, *, act: Any = learner.act, name: str = name, **kw: Any) -> Any:
            told.append((name, round(float(seen[2]), 3)))
            return act(seen, **kw)

        learner.act = act  # pyright: ignore[reportAttributeAccessIssue]
    rolls_in = "guide" if arm["guide"] == "frozen" else "main"
    who = {"main": "main", "rollin": rolls_in, "exp": "exp"}
    events = take(state, 300)[4:]
    assert told == [
        (who[event.actor], CONTEXTS[event.k - (event.actor == "rollin")]) for event in events
    ]


def test_updates_per_step_are_one_outside_the_prefix_and_none_within():
    """In every arm whoever acts under ω_k makes one update, and the guide none."""
    for arm in ARMS:
        events = take(begin(**arm, warmup=8), 400)[8:]
        for event in events:
            made = (event.main is not None) + (event.exp is not None)
            assert made == (event.actor != "rollin")


# ------------------------------------------------------------------ the guide


def test_a_frozen_guide_is_the_main_agent_of_the_last_switch_to_the_bit():
    state = begin(length=40, beta=0.5, guide="frozen", warmup=8)
    at_switch, count, most = state.main.get_state()["theta"], 0, 0
    for event in islice(train_rollin(state), 1000):
        if event.mastered and event.k < 3:
            at_switch, count = state.main.get_state()["theta"], state.main.count
        elif event.k > 0:
            most = max(most, state.main.count - count)
        np.testing.assert_array_equal(state.guide.get_state()["theta"], at_switch)
    assert most >= 100
    assert not np.array_equal(state.main.get_state()["theta"], at_switch)


def test_a_current_guide_is_the_main_agent():
    state = begin(length=6)
    take(state, 100)
    assert state.guide is state.main
    assert set(state.agents) == {"main", "exp"}
    assert "guide" not in state.get_state()


# ------------------------------------------------------------------ the replay


def test_rows_that_are_not_recorded_are_checked_and_leave_no_trace():
    replay = Replay(RowLayout(observation=1, action=1), capacity=2)
    for t in range(3):
        replay.append([t], [0.0], 1.0, [t + 1], terminated=False, truncated=t == 1)
    rows = replay.rows.copy()
    replay.append([7], [0.5], 3.0, [8], terminated=True, truncated=False, recorded=False)
    nan = float("nan")
    with pytest.raises(RollinError, match="reward is nan"):
        replay.append([7], [0.5], nan, [8], terminated=True, truncated=False, recorded=False)
    assert replay.total == 3
    np.testing.assert_array_equal(replay.rows, rows)
    assert replay.get_state()["episode"] == 2


def test_an_agent_with_a_hidden_prefix_relabels_within_what_it_saw():
    """Of an episode whose prefix is hidden, D holds one unbroken piece that ends with it."""
    state = begin(length=9, beta=0.9, relabel=True, prefix="hidden", warmup=8)
    events = take(state, 450)  # whole episodes
    pieces = [sum(e.actor != "rollin" for e in steps) for steps in episodes_of(events)]
    ends = np.cumsum([piece for piece in pieces if piece]) - 1
    flags = state.D.rows[: state.D.total, state.D.layout.width - state.D.layout.outcome - 1]
    assert np.flatnonzero(flags != 1).tolist() == ends.tolist()
    assert 0 in pieces  # a prefix as long as its episode leaves no row


# ------------------------------------------------------------------ resume


@pytest.mark.parametrize(
    ("arm", "learner"), [*((arm, "cpu") for arm in ARMS[1:]), (LEVEL_1, "jax")], ids=named
)
def test_a_restored_state_goes_on_to_the_bit(arm, learner):
    def fresh() -> DeepState:
        return begin(**arm, seed=3, capacity=60, relabel=True, learner=learner)

    one, other = fresh(), fresh()
    for event in train_rollin(one):
        if event.episode is not None and event.step > 90:
            break
    other.set_state(one.get_state())
    there, here = take(one, 120), take(other, 120)
    assert there == here
    assert any(event.actor == "rollin" for event in here)
    for name, agent in one.agents.items():
        mine, its = agent.get_state(), other.agents[name].get_state()
        for array in ("theta", "m", "v", "target"):
            np.testing.assert_array_equal(mine[array], its[array])


# ------------------------------------------------------------------ names and refusals


def spec(**options: Any) -> RunSpec[RollinConfig]:
    return RunSpec("point-umaze", configured(RollinConfig(), options))


def test_the_paper_s_values_leave_every_hash_as_it_was():
    paper = {"explorer": "fresh", "prefix": "replay", "guide": "current"}
    assert spec(**paper).hash == spec().hash
    assert not paper.keys() & spec(**paper).to_json()["config"]["algorithm"].keys()
    assert len({spec(**arm).hash for arm in ARMS}) == len(ARMS)


def test_without_a_roll_in_the_options_make_no_other_condition():
    engine = engine_for("point-umaze")
    for method in ("baseline", "scratch"):
        plain, changed = spec(method=method), spec(method=method, **LEVEL_1)
        canonical = engine.canonical("point-umaze", changed.config)
        assert canonical == engine.canonical("point-umaze", plain.config)
    rolled = engine.canonical("point-umaze", spec(**LEVEL_1).config)
    assert rolled != engine.canonical("point-umaze", spec().config)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"explorer": "new"}, "explorer must be one of fresh, main, got 'new'"),
        ({"prefix": "shown"}, "prefix must be one of replay, hidden, got 'shown'"),
        ({"guide": "old"}, "guide must be one of current, frozen, got 'old'"),
        ({"method": "fresh", "explorer": "main"}, "leaves no fresh explorer: use one of them"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(RollinError, match=message):
        RollinOptions(**options)


def test_an_env_that_goes_bad_in_a_hidden_prefix_is_told_with_its_step():
    class Bad(Line):
        def step(self, action: Any) -> Any:
            *seen, info = super().step(action)
            if self.context[0] > 0 and self.episodes > 12:
                seen[1] = np.nan
            return *seen, info

    state = begin(beta=0.999, prefix="hidden", env=Bad(5, R=EASY))
    with pytest.raises(RollinError, match=r"^Episode 12, step 56: reward is nan"):
        take(state, 1000)
    assert state.D.total < state.step == 55
