"""The practical algorithm against its pseudocode: who acts, what is stored, what is updated."""

import copy
from collections import Counter
from dataclasses import replace
from itertools import groupby, islice, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rollin import Curriculum, RollinError, SuccessRate
from rollin.deep.options import RollinOptions
from rollin.deep.rollin_sac import RollinStep, train_rollin
from rollin.deep.state import DeepState
from rollin.envs.context_env import ContextEnv
from rollin.runs.engines import engine_for
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.spec import RunSpec, configured
from rollin.sac.config import LearnerName, SACConfig
from rollin.sac.replay import GOES_ON, Replay, RowLayout
from rollin.streams import Streams
from tests.toys import Line

TINY = SACConfig(hidden=(4,), batch=4, gamma=0.8, learning_rate=1e-3)
EASY = -1.0  # a threshold that every window exceeds: an advance after every third episode
ARMS: list[dict[str, Any]] = [
    {"explorer": explorer, "prefix": prefix, "guide": guide}
    for explorer, prefix, guide in product(
        ("fresh", "main"), ("replay", "hidden"), ("current", "frozen")
    )
]
"""Ablations: who continues, whether the roll-in is recorded, who rolls in."""
LEVEL_1 = {"explorer": "main", "prefix": "hidden", "guide": "frozen"}
CONTEXTS = [0.0, 0.4, 0.8, 1.2]


def begin(
    R: float = EASY,
    *,
    seed: int = 0,
    length: int | None = None,
    sac: SACConfig = TINY,
    capacity: int = 100_000,
    curriculum: Curriculum | None = None,
    learner: LearnerName = "cpu",
    env: Line | None = None,
    **options: Any,
) -> DeepState:
    made = ContextEnv(env or Line(length, R))
    walked = curriculum or made.curriculum
    assert walked is not None
    settings = RollinOptions(**{"beta": 0.5, "warmup": 8, **options})
    return DeepState.begin(
        made, walked, settings, sac, seed=seed, capacity=capacity, learner=learner
    )


def take(state: DeepState, steps: int) -> list[RollinStep]:
    return list(islice(train_rollin(state), steps))


def episodes_of(events: list[RollinStep]) -> list[list[RollinStep]]:
    """Steps of each finished episode."""
    groups, current = [], []
    for event in events:
        current.append(event)
        if event.episode is not None:
            groups.append(current)
            current = []
    return groups


# ------------------------------------------------------------------ the trace


def named(options: Any) -> str:
    return "-".join(map(str, options.values())) if isinstance(options, dict) else options


@pytest.mark.parametrize("updates", ["detailed", "short"])
@pytest.mark.parametrize(
    "arm", [*ARMS, *({"method": name} for name in ("fresh", "baseline", "scratch"))], ids=named
)
def test_who_acts_and_learns_and_what_is_recorded_is_as_in_the_pseudocode(arm, updates):
    """The lines of the pseudocode, written down once more over nothing but random numbers."""
    method = arm.get("method", "rollin")
    short = updates == "short"
    fill = 2 * TINY.batch if short else 1
    state = begin(**arm, updates=updates, warmup=30, exp_fill=fill)
    events = take(state, 600)
    draws = Streams(0)["rollin"]
    stop = 1.0 if method == "fresh" else 1 - 0.8
    k = 3 if method == "scratch" else 0
    in_window = explored = 0
    rewards: list[float] = []  # of the rows that D should hold
    for steps in episodes_of(events):
        rolls_in = method in ("rollin", "fresh") and k > 0 and draws.random() < 0.5
        stopped = False
        for event in steps:
            rolling = rolls_in and not stopped
            if rolling:
                stopped = draws.random() < stop
            then = "main" if arm.get("explorer") == "main" or not rolls_in else "exp"
            expected = "rollin" if rolling else then
            recorded = not (rolling and arm.get("prefix") == "hidden")
            if recorded:
                rewards.append(event.reward)
            explored += expected == "exp"
            learning = recorded and event.step > 30
            assert (event.k, event.actor) == (k, expected)
            assert (event.main is not None) == (learning and (short or expected == "main"))
            exp_learns = learning and (short or expected == "exp") and explored >= fill
            assert (event.exp is not None) == exp_learns, event
        episode = steps[-1].episode
        assert episode is not None
        assert episode.rollin == rolls_in
        assert episode.rollin_steps == sum(e.actor == "rollin" for e in steps)
        assert episode.total == pytest.approx(sum(e.reward for e in steps))
        assert episode.length == len(steps)  # those that are not recorded as well
        in_window += 1
        assert (steps[-1].mastered is not None) == (in_window >= 3)
        if in_window == 3 and k < 3:
            k, in_window, explored = k + 1, 0, 0
    assert k == state.progress.k == 3
    assert any(event.actor == "rollin" for event in events) == (method in ("rollin", "fresh"))
    layout = state.D.layout
    stored = state.D.rows[: len(rewards), layout.width - layout.outcome - 2]
    np.testing.assert_array_equal(stored, np.array(rewards, np.float32))
    unfinished = len(events) - sum(len(steps) for steps in episodes_of(events))
    assert len(rewards) <= state.D.total <= len(rewards) + unfinished


def test_updates_per_step_are_one_outside_the_roll_in_and_none_within():
    for arm in ARMS:
        for event in take(begin(**arm, warmup=8), 400)[8:]:
            made = (event.main is not None) + (event.exp is not None)
            assert made == (event.actor != "rollin")


def test_the_share_of_episodes_that_roll_in_is_beta():
    state = begin(beta=0.3, length=3, warmup=10**6)
    events = take(state, 15_000)
    rolled = [e.episode.rollin for e in events if e.episode and e.k > 0]
    assert not any(e.episode.rollin for e in events if e.episode and e.k == 0)
    assert stats.binomtest(sum(rolled), len(rolled), 0.3).pvalue > 0.01
    runs = [len(list(group)) for _, group in groupby(rolled)]  # independent of each other
    expected = 2 * len(rolled) * 0.3 * 0.7
    assert abs(len(runs) - expected) < 3 * np.sqrt(expected)


@pytest.mark.parametrize("horizon", [6, 200])
def test_the_roll_in_length_is_geometric_from_one_and_truncated_at_the_horizon(horizon):
    state = begin(beta=0.9, length=horizon, warmup=10**6)
    events = take(state, 40_000 if horizon == 200 else 12_000)
    lengths = [e.episode.rollin_steps for e in events if e.episode and e.episode.rollin]
    top = min(horizon, 12)
    law = [0.2 * 0.8 ** (h - 1) for h in range(1, top)] + [0.8 ** (top - 1)]
    seen = Counter(min(length, top) for length in lengths)
    counts = np.array([seen[h] for h in range(1, top + 1)])
    assert seen[0] == 0
    assert stats.chisquare(counts, len(lengths) * np.array(law)).pvalue > 0.01


@pytest.mark.parametrize("arm", ARMS, ids=named)
def test_the_guide_acts_under_the_previous_context_and_the_current_one_is_stored(arm):
    state = begin(length=6, warmup=4, **arm)
    shown: list[tuple[str, float]] = []
    for name, learner in state.agents.items():

        def act(seen: Any, *, act: Any = learner.act, name: str = name, **kw: Any) -> Any:
            shown.append((name, round(float(seen[2]), 3)))
            return act(seen, **kw)

        learner.act = act  # pyright: ignore[reportAttributeAccessIssue]
    agents = {"main": "main", "rollin": "main", "exp": "exp"}
    if arm["guide"] == "frozen":
        agents["rollin"] = "guide"
    events = take(state, 300)
    assert shown == [
        (agents[event.actor], CONTEXTS[event.k - (event.actor == "rollin")]) for event in events[4:]
    ]
    assert {event.actor for event in events} >= {"main", "rollin"}
    recorded = [e for e in events if arm["prefix"] == "replay" or e.actor != "rollin"]
    column = state.D.layout.action + state.D.layout.observation
    stored = state.D.rows[: state.D.total, column]
    np.testing.assert_allclose(stored, [CONTEXTS[event.k] for event in recorded], rtol=1e-6)


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


# ------------------------------------------------------------------ switches


def test_a_switch_empties_d_exp_and_begins_the_explorer_anew_but_keeps_d():
    state = begin(length=5, beta=0.9)
    events = train_rollin(state)
    explored: list[int] = []  # rows of D that π_exp collected since the switch
    switches, before = 0, state.exp.get_state()
    for event in islice(events, 400):
        if event.actor == "exp":
            explored.append(event.step - 1)
        if event.mastered and event.k < 3:
            switches += 1
            assert len(state.D_exp) == 0
            fresh = state.exp.get_state()
            assert fresh["count"] == 0
            assert not fresh["m"].any()
            assert not np.array_equal(fresh["theta"], before["theta"])
            assert state.main.count > 0
            assert state.window.values == []
            explored = []
        else:
            assert state.D_exp.rows.tolist() == explored
        before = state.exp.get_state()
        assert state.D.total == event.step
    assert switches == 3
    first_rows = state.D.rows[:400, state.D.layout.action + 2]  # contexts
    assert (
        np.unique(first_rows.round(3)).tolist() == np.array([0, 0.4, 0.8, 1.2], np.float32).tolist()
    )
    flags = state.D.rows[4:400:5, -2]
    assert (flags != GOES_ON).all()


def test_the_two_agents_begin_with_other_weights_and_learn_from_their_own_rows():
    state = begin(beta=0.9, length=8)
    assert not np.array_equal(state.main.get_state()["theta"], state.exp.get_state()["theta"])
    drawn: list[np.ndarray] = []
    draw = state.D_exp.draw
    state.D_exp.draw = lambda *a: drawn.append(draw(*a)) or drawn[-1]  # pyright: ignore
    for event in islice(train_rollin(state), 300):
        if event.exp is not None and not event.mastered:
            assert np.isin(drawn[-1], state.D_exp.rows).all()
    assert len(drawn) > 50


def test_the_window_restarts_at_a_switch_and_counts_what_it_is_told():
    for counted in ("all", "main"):
        state = begin(beta=0.7, length=4, counted=counted)
        kinds: list[bool] = []
        for event in islice(train_rollin(state), 800):
            if event.episode is None:
                continue
            kinds.append(event.episode.rollin)
            usable = len(kinds) if counted == "all" else kinds.count(False)
            if event.mastered and event.k < 3:
                assert usable == 3
                kinds = []
            elif event.k < 3:
                assert len(state.window.values) == min(usable, 3)
        assert state.progress.finished


def test_every_advance_has_its_reason_and_the_last_mastery_is_noted():
    state = begin()
    take(state, 300)
    assert [advance.k for advance in state.progress.advances] == [1, 2, 3]
    assert all("of the last 3 episodes > -1" in a.reason for a in state.progress.advances)
    assert state.progress.completed is not None


def test_a_threshold_that_is_not_met_keeps_the_context():
    state = begin(R=1e6)
    events = take(state, 300)
    assert {event.k for event in events} == {0}
    assert state.window.seen == sum(event.episode is not None for event in events)


def test_success_rates_advance_too():
    curriculum = Curriculum.listed([[0.0], [3.9]], SuccessRate(0.5), episodes=3)
    state = begin(curriculum=curriculum, length=6)
    events = take(state, 200)
    assert events[-1].k == 1
    assert state.progress.advances[0].reason == "success rate 1 of the last 3 episodes > 0.5"
    assert not any(e.episode.success for e in events if e.episode and e.k == 1)


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


# ------------------------------------------------------------------ options


def test_noise_comes_once_the_previous_goal_is_reached():
    """Go-Explore, with a scale so large that a noisy action lies at the bounds.

    Of the contexts 0, 3 and 3.5, the first is fulfilled at the start, the second never.
    """
    quiet = replace(TINY, log_std_max=-4.0, log_std_min=-5.0)
    curriculum = Curriculum.listed([[0.0], [3.0], [3.5]], EASY, episodes=10)
    options: dict[str, Any] = {"length": 12, "beta": 0.0, "sac": quiet, "warmup": 4}
    state = begin(curriculum=curriculum, go_explore=50.0, **options)
    events = take(state, 360)
    at_bound = np.abs(state.D.rows[:360, 0]) == 1
    for k, low, high in ((0, 0.0, 0.0), (1, 0.95, 1.0), (2, 0.0, 0.0)):
        share = at_bound[[event.k == k for event in events]].mean()
        assert low <= share <= high


def test_noise_comes_whoever_acts_but_not_from_scratch():
    quiet = replace(TINY, log_std_max=-4.0, log_std_min=-5.0)
    curriculum = Curriculum.listed([[0.0], [0.1]], EASY, episodes=2)
    options: dict[str, Any] = {"length": 12, "beta": 0.5, "sac": quiet, "warmup": 4}
    state = begin(curriculum=curriculum, go_explore=50.0, **options)
    events = take(state, 400)
    at_bound = np.abs(state.D.rows[:400, 0]) == 1
    for actor in ("main", "rollin", "exp"):
        acted = [event.k == 1 and event.actor == actor for event in events]
        assert sum(acted) > 20
        assert at_bound[acted].mean() > 0.95
    scratch = begin(curriculum=curriculum, go_explore=50.0, method="scratch", **options)
    take(scratch, 200)
    assert (np.abs(scratch.D.rows[:200, 0]) < 1).all()


def test_a_state_put_back_under_a_running_loop_goes_on_to_the_bit():
    state = begin(go_explore=0.3, relabel=True)
    events = train_rollin(state)
    while next(events).episode is None or state.step < 150:
        pass
    kept = copy.deepcopy(state.get_state())
    first = list(islice(events, 100))
    again = begin(go_explore=0.3, relabel=True)
    again.set_state(kept)
    assert take(again, 100) == first


def test_geometric_sampling_draws_recent_rows_for_both_agents():
    state = begin(sampling="geometric", p=0.2, beta=0.6)
    ages: dict[str, list[float]] = {"D": [], "D_exp": []}
    for name, source in (("D", state.D), ("D_exp", state.D_exp)):

        def draw(
            size: int,
            g: Any,
            p: Any,
            draw: Any = source.draw,
            kept: Any = ages[name],
            **coming: Any,
        ) -> Any:
            assert p == 0.2
            picked = draw(size, g, p, **coming)
            kept.append(float(state.D.total - 1 - picked.mean()))
            return picked

        source.draw = draw  # pyright: ignore[reportAttributeAccessIssue]
    take(state, 1500)
    assert np.mean(ages["D"][-500:]) == pytest.approx(4, abs=0.5)  # (1 - p) / p
    assert ages["D_exp"]


def test_relabelling_reaches_both_agents_with_rewards_of_the_env():
    state = begin(relabel=True, sac=replace(TINY, batch=6), beta=0.6)
    seen: dict[str, list[np.ndarray]] = {"main": [], "exp": []}
    for name, learner in (("main", state.main), ("exp", state.exp)):

        def update(batch: Any, update: Any = learner.update, kept: Any = seen[name]) -> Any:
            kept.append(batch.copy())
            return update(batch)

        learner.update = update  # pyright: ignore[reportAttributeAccessIssue]
    take(state, 400)
    env = Line()
    for batches in seen.values():
        rows = np.concatenate(batches)
        # action, (x, time, context), (x', time', context'), reward, mask
        x_after, context, reward = rows[:, 4:5], rows[:, 6:7], rows[:, 7]
        np.testing.assert_allclose(rows[:, 3:4], context)
        np.testing.assert_allclose(env.compute_reward(x_after, context), reward, atol=1e-5)
        third = np.concatenate([batch[-2:] for batch in batches])
        np.testing.assert_allclose(third[:, 4], third[:, 6])  # next state: its goal is itself
        originals = np.concatenate([batch[:2, 6] for batch in batches]).round(3)
        assert np.isin(originals, np.array([0, 0.4, 0.8, 1.2], np.float32).round(3)).all()


@pytest.mark.parametrize("relabel", [False, True])
@pytest.mark.parametrize("go_explore", [0.0, 0.5])
@pytest.mark.parametrize("sampling", ["uniform", "geometric"])
@pytest.mark.parametrize("updates", ["detailed", "short"])
def test_options_combine_freely(relabel, go_explore, sampling, updates):
    state = begin(
        relabel=relabel, go_explore=go_explore, sampling=sampling, updates=updates, capacity=50
    )
    events = take(state, 300)
    assert events[-1].step == 300
    assert np.isfinite(state.main.get_state()["theta"]).all()


NOISY = {"go_explore": 0.3, "sampling": "geometric", "p": 0.01}


@pytest.mark.parametrize(
    ("options", "learner"),
    [*((arm, "cpu") for arm in ARMS[1:]), (LEVEL_1, "jax"), (NOISY, "cpu"), (NOISY, "jax")],
    ids=named,
)
def test_a_restored_state_resumes_to_the_bit(options, learner):
    def fresh() -> DeepState:
        return begin(**options, seed=3, capacity=60, relabel=True, learner=learner)

    one, other = fresh(), fresh()
    for event in train_rollin(one):
        if event.episode is not None and event.step > 90:
            break
    other.set_state(one.get_state())
    there, here = take(one, 120), take(other, 120)
    assert there == here
    assert any(event.actor == "rollin" for event in here)
    assert any(event.mastered for event in here)
    for name, agent in one.agents.items():
        own, restored = agent.get_state(), other.agents[name].get_state()
        for array in ("theta", "m", "v", "target"):
            np.testing.assert_array_equal(own[array], restored[array])


# ------------------------------------------------------------------ learning


def test_it_learns_a_short_curriculum():
    """Steps of 0.4 along a line: the baseline learns this too, as it should."""
    sac = SACConfig(
        hidden=(32, 32), batch=64, gamma=0.9, learning_rate=2e-3, initial_temperature=0.1
    )
    for beta in (0.0, 0.3):
        state = begin(R=5.0, length=15, beta=beta, sac=sac, warmup=300)
        take(state, 6000)
        assert state.progress.finished
        assert state.progress.completed is not None


# ------------------------------------------------------------------ conditions


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


# ------------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        ("raises", r"Episode \d+, step \d+: The environment's step raised ZeroDivisionError: no"),
        ("nan", r"Episode \d+, step \d+: next observation\[1\] is nan"),
        ("reward", r"Episode \d+, step \d+: reward is nan"),
    ],
)
def test_an_env_that_goes_bad_is_told_with_episode_and_step(breaks, message):
    env = ContextEnv(Line(5, breaks=breaks, after=9))
    assert env.curriculum is not None
    options = RollinOptions(warmup=8)
    state = DeepState.begin(env, env.curriculum, options, TINY, seed=0, capacity=1000)
    with pytest.raises(RollinError, match=message) as caught:
        take(state, 1000)
    assert str(caught.value).startswith(f"Episode 9, step {8 * 5 + 1}: ")


def test_an_env_that_goes_bad_in_a_hidden_prefix_is_named_with_its_step():
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 1.0}, r"beta must lie in \[0, 1\)"),
        ({"method": "roll"}, "method must be one of rollin, baseline, scratch, fresh, got 'roll'"),
        ({"go_explore": -1.0}, "go_explore must be 0 or more"),
        ({"p": 0.0}, r"p must lie in \(0, 1\)"),
        ({"explorer": "new"}, "explorer must be one of fresh, main, got 'new'"),
        ({"prefix": "shown"}, "prefix must be one of replay, hidden, got 'shown'"),
        ({"guide": "old"}, "guide must be one of current, frozen, got 'old'"),
        ({"method": "fresh", "explorer": "main"}, "leaves no fresh explorer: use one of them"),
        ({"warmup": 3}, "warmup must be at least one batch"),
        ({"curriculum": Curriculum.listed([[0.0], [9.0]], 1.0)}, r"\[9.0\] lies outside"),
        (
            {"curriculum": Curriculum.listed([[0, 0], [1, 1]], 1.0)},
            r"must have shape \(1,\), .* got \(2,\)",
        ),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(RollinError, match=message):
        begin(**options)


def test_relabelling_is_refused_where_outcomes_are_no_contexts():
    class Wide(Line):
        def to_context(self, outcome):
            return np.concatenate([outcome, outcome], -1)

    env = ContextEnv(Wide())
    assert env.curriculum is not None
    with pytest.raises(RollinError, match="say which context an outcome fulfils"):
        DeepState.begin(
            env, env.curriculum, RollinOptions(relabel=True, warmup=8), TINY, seed=0, capacity=9
        )
