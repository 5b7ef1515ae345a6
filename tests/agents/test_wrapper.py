"""RollIn: the start distribution, bits without roll-in, limits, contexts, bad input."""

import json
import re
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import (
    FlattenObservation,
    NormalizeObservation,
    RecordEpisodeStatistics,
    TimeLimit,
)
from scipy.stats import chisquare

import rollin
from rollin import Curriculum, Plan, RollIn, RollinError, SequentialTeacher
from rollin.agents.roll_in import fitted
from rollin.curriculum.teacher import EpisodeEnd
from rollin.envs.point_umaze import PointUmaze
from tests.agents.chain import RHO, Chain, Lengths, P, Stateless, assigned, still
from tests.toys import Line, Target

ANY: Any = lambda value: value  # noqa: E731


def d_of(guide: np.ndarray, gamma: float, limit: int = 0) -> tuple[np.ndarray, float]:
    """d(s) = Σ_h (1-γ) γ^(h-1) P(s_h = s), h ≥ 1, over roll-ins that stop in time; their share."""
    kernel = P[guide, np.arange(5)]
    at, d, weight = RHO.copy(), np.zeros(5), 1 - gamma
    for h in range(1, (limit or 2000)):
        at = at @ kernel
        d += weight * at
        weight *= gamma
        del h
    return d, d.sum()


@pytest.mark.filterwarnings("ignore:.*roll-ins ended")
@pytest.mark.parametrize("limit", [0, 6])
def test_states_after_reset_are_drawn_from_the_mixture_of_d_and_rho(limit):
    guide, gamma, beta, count = np.array([0, 1, 0, 0, 1]), 0.8, 0.4, 6000
    env = RollIn(Chain(limit), guide=lambda s, _: guide[s], beta=beta, gamma=gamma, seed=3)
    first, info = env.reset(seed=5)
    seen = np.zeros(5)
    cut = 0
    for _ in range(count):
        state, info = env.reset()
        seen[state] += 1
        cut += info["rollin_start"]["failed_rollin_steps"] > 0
    d, stopped = d_of(guide, gamma, limit)
    mixture = beta * d + (1 - beta * stopped) * RHO  # what was cut starts from ρ
    assert chisquare(seen, count * mixture).pvalue > 0.01
    assert chisquare(seen, count * RHO + 1e-9).pvalue < 1e-9  # the test can fail
    share = beta * (1 - stopped)
    assert cut == pytest.approx(count * share, abs=4 * np.sqrt(count * share) + 1e-9)
    assert first in range(5)


def test_roll_ins_have_a_step_at_least_and_stop_with_one_minus_gamma():
    env = RollIn(Chain(), guide=lambda s, _: 0, beta=0.999, gamma=0.75, seed=1)
    hidden = [
        env.reset(seed=0 if i == 0 else None)[1]["rollin_start"]["rollin_steps"]
        for i in range(3000)
    ]
    lengths = np.array([h for h in hidden if h])
    counts = np.bincount(np.minimum(lengths, 12), minlength=13)[1:]
    expected = 0.25 * 0.75 ** np.arange(12)
    expected[-1] = 0.75**11
    assert chisquare(counts, len(lengths) * expected).pvalue > 0.01
    assert env.counts() == {"rollin_steps": int(lengths.sum()), "failed_rollin_steps": 0}


class Planned(Stateless):
    """A teacher of one plan, with an id of its own for each episode."""

    def __init__(self, **plan: Any) -> None:
        self.plan = Plan(0, None, 1.0, guide=1, standing=False, **plan)

    def sample(self, env: int = 0) -> Plan:
        self.plans += 1
        return replace(self.plan, plan_id=self.plans)


@pytest.mark.parametrize("length", [0, 1, 5])
def test_a_plan_may_fix_the_length_of_the_roll_in(length):
    env = RollIn(Chain(), Planned(length=length), guide=lambda s, _: 0, gamma=0.5)
    hidden = {env.reset(seed=i)[1]["rollin_start"]["rollin_steps"] for i in range(20)}
    assert hidden == {length}


def test_a_plan_may_name_the_state_to_begin_in():
    asked: list[Any] = []

    class Asked(Chain):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            asked.append(options)
            return super().reset(seed=seed)

    RollIn(Asked(), Planned(length=0, start=[3.0, 4.0])).reset(seed=0)
    RollIn(Asked(), Planned(length=0)).reset(seed=0)
    assert asked == [{"start": [3.0, 4.0]}, None]


@pytest.mark.parametrize("how", ["no guide", "beta 0", "walk 0", "reports"])
def test_without_roll_in_the_env_behaves_to_the_bit_as_without_the_wrapper(how):
    walk = SequentialTeacher(Curriculum.listed([[1.0], [1.2]], -1e9, episodes=1000), beta=0.0)
    made: dict[str, Any] = {
        "no guide": lambda env: RollIn(env),
        "beta 0": lambda env: RollIn(env, guide=lambda o, c: np.ones(1), beta=0.0),
        "walk 0": lambda env: RollIn(env, walk, guide=lambda o, c: np.ones(1)),
        "reports": lambda env: RollIn(env, guide=lambda o, c: np.ones(1), beta=0.9, reports=False),
    }
    bare, wrapped = Line(), made[how](Line())
    bare.context = wrapped.unwrapped.context = np.ones(1)
    draws = np.random.default_rng(0)
    for episode in range(20):
        seed = 4 if episode == 0 else None
        one, other = bare.reset(seed=seed)[0], wrapped.reset(seed=seed)[0]
        over = False
        while not over:
            assert one["observation"].tobytes() == other["observation"].tobytes()
            action = draws.uniform(-2, 2, 1).astype(np.float32)
            one, reward, _, over, _ = bare.step(action)
            other, same, _, also, _ = wrapped.step(action)
            assert (reward, over) == (same, also)


def test_the_end_tells_all_and_the_teacher_hears_of_it_once():
    walk = SequentialTeacher(Curriculum.listed([[0.0], [7.0]], -1.0, episodes=2), beta=0.5)
    env = RollIn(Lengths(1), walk, guide=still, gamma=0.5)
    info: dict[str, Any] = {}
    for _ in range(2):
        env.reset(seed=0)
        *_, info = env.step(np.zeros(1, np.float32))
    assert walk.k == 1
    end = EpisodeEnd.of_info(info["rollin_end"])
    assert (end.plan_id, end.serial, end.length, end.total, end.abandoned) == (2, 1, 1, 0.0, False)
    assert end.context.tolist() == [0.0]
    observed, info = env.reset()
    assert observed["context"].tolist() == [7.0]
    assert walk.steps == 2


def test_the_guide_is_shown_the_context_before_and_the_env_keeps_its_own():
    shown = []

    def guide(observation: Any, context: Any) -> Any:
        shown.append((observation["context"].tolist(), context.tolist()))
        return np.zeros(1, np.float32)

    env = RollIn(Lengths(1000))
    env.attach_env(0, 0)
    env.load_guide(1, guide)
    env.assign(Plan(5, np.array([7.0]), 0.999, 0.1, guide=1, guide_context=np.array([3.0])))
    observed, info = env.reset(seed=0)
    hidden = info["rollin_start"]["rollin_steps"]
    assert shown == [([3.0], [3.0])] * hidden
    assert hidden > 0
    assert observed["context"].tolist() == [7.0]
    while True:
        _, reward, terminated, truncated, info = env.step(np.zeros(1, np.float32))
        assert reward == 7.0
        if terminated or truncated:
            break
    end = EpisodeEnd.of_info(info["rollin_end"])
    assert end.prefix_return == 7.0 * hidden
    assert (end.rolled_in, end.rollin_steps, end.failed_rollin_steps, end.total) == (
        True,
        hidden,
        0,
        7.0 * end.length,
    )
    assert env.playing == 0


def test_a_flattened_dict_is_shown_the_context_as_well():
    seen: list[Any] = []
    plan = Plan(1, np.array([7.0]), 0.999, 0.5, guide=1, guide_context=np.array([3.0]))
    flat = FlattenObservation(Lengths(1000))
    assigned(flat, plan, guide=lambda o, c: seen.append(o) or still(o, c)).reset(seed=0)
    parts = spaces.unflatten(Lengths().observation_space, seen[0])
    assert (parts["context"].tolist(), parts["observation"][0] > 1) == ([3.0], True)


@pytest.mark.parametrize("inside", [True, False])
def test_time_limits_inside_count_hidden_steps_and_outside_abandon(inside):
    walk = SequentialTeacher(Curriculum.listed([[0.0], [1.0]], -1e9, episodes=1), beta=0.0)
    lengths = Lengths(1_000_000)
    env = RollIn(TimeLimit(lengths, 5), walk) if inside else TimeLimit(RollIn(lengths, walk), 5)
    env.reset(seed=0)
    truncated, info = False, {}
    for _ in range(5):
        *_, truncated, info = env.step(np.zeros(1, np.float32))
    assert truncated
    assert ("rollin_end" in info) == inside
    _, info = env.reset()
    assert ("rollin_end" in info) == (not inside)
    assert (walk.abandoned, walk.k) == ((0, 1) if inside else (1, 0))
    if not inside:
        assert info["rollin_end"]["abandoned"]
        assert info["rollin_end"]["length"] == 5


def test_a_time_limit_inside_leaves_the_rest_of_the_horizon():
    env = RollIn(TimeLimit(Lengths(10**6), 20), guide=still, beta=0.999, gamma=0.8, seed=2)
    for i in range(40):
        _, info = env.reset(seed=i)
        hidden, steps, over = info["rollin_start"]["rollin_steps"], 0, False
        while not over:
            *_, over, info = env.step(np.zeros(1, np.float32))
            steps += 1
        assert hidden + steps == 20
        assert info["rollin_end"]["rollin_steps"] == hidden


def test_many_cut_roll_ins_are_warned_of_once():
    env = RollIn(Lengths(2), guide=still, beta=0.9, gamma=0.99)
    with pytest.warns(UserWarning, match=r"\d+ of 50 roll-ins ended.*smaller gamma") as caught:
        [env.reset(seed=i) for i in range(200)]
    assert len(caught) == 1
    assert "keep the learner's own discount" in str(caught[0].message)


def test_a_cut_roll_in_leaves_no_trace_in_the_episode():
    env = RollIn(Lengths(1), guide=still, beta=0.999)
    env.set_context([3.0])
    _, info = env.reset(seed=0)
    assert info["rollin_start"] == {
        "plan_id": 1,
        "serial": 1,
        "rollin_steps": 0,
        "failed_rollin_steps": 1,
    }
    *_, info = env.step(np.zeros(1, np.float32))
    end = EpisodeEnd.of_info(info["rollin_end"])
    assert (
        end.failed_rollin_steps,
        end.rollin_steps,
        end.rolled_in,
        end.prefix_return,
        end.total,
    ) == (1, 0, False, 0, 3)
    assert end.steps == 2


def test_the_wrapper_draws_from_a_stream_of_its_own_that_can_be_kept():
    def starts(env: RollIn, count: int) -> list[Any]:
        return [env.reset()[1]["rollin_start"]["rollin_steps"] for _ in range(count)]

    env = RollIn(Chain(), guide=lambda s, _: 0, beta=0.5, seed=7)
    env.reset(seed=1)
    starts(env, 5)
    kept = json.loads(json.dumps(env.get_state()))
    went_on = starts(env, 20)
    again = RollIn(Chain(), guide=lambda s, _: 0, beta=0.5, seed=0)
    again.reset(seed=1)
    again.set_state(kept)
    assert starts(again, 20) == went_on
    assert again.counts() == env.counts()
    other = RollIn(Chain(), guide=lambda s, _: 0, beta=0.5, seed=8)
    assert starts(other, 20) != went_on


def test_a_guide_that_draws_gets_a_seed_from_the_wrapper_s_stream():
    class Draws:
        def begin(self, seed: int) -> None:
            self.draws = np.random.default_rng(seed)

        def __call__(self, observation: Any, context: Any) -> Any:
            return self.draws.uniform(-1, 1, 1).astype(np.float32)

    def pushes(seed: int) -> list[float]:
        env = RollIn(Line(10_000), guide=Draws(), beta=0.9, seed=seed)
        return [float(env.reset(seed=i)[0]["observation"][0]) for i in range(10)]

    assert pushes(1) == pushes(1) != pushes(2)


def test_success_comes_from_info_or_from_the_contextual_env():
    class Says(gymnasium.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            *rest, info = super().step(action)
            return *rest, {**info, "is_success": True}

    for env, success in ((RollIn(Line(3)), False), (RollIn(Says(Line(3))), True)):
        env.set_context([4.0])  # too far
        info: dict[str, Any] = env.reset(seed=0)[1]
        for _ in range(3):
            *_, info = env.step(np.zeros(1, np.float32))
        assert info["rollin_end"]["success"] == success
    near = RollIn(Line(1))
    near.reset(seed=0, options={"context": [0.0]})
    assert near.step(np.zeros(1, np.float32))[-1]["rollin_end"]["success"]


def test_outcomes_are_kept_when_the_plan_asks_for_them():
    env = assigned(Line(4), Plan(1, np.zeros(1), trace=True))
    info: dict[str, Any] = env.reset(seed=0)[1]
    for _ in range(4):
        *_, info = env.step(np.ones(1, np.float32))
    end = EpisodeEnd.of_info(info["rollin_end"])
    assert np.shape(end.trace) == (4, 1)
    assert np.all(np.diff(np.ravel(end.trace)) > 0)


def test_the_arguments_of_the_constructor_are_recorded():
    env = RollIn(PointUmaze(), guide=lambda o, c: np.zeros(2, np.float32), beta=0.5)
    assert isinstance(env, RecordConstructorArgs)
    assert env._saved_kwargs["beta"] == 0.5


def test_a_reset_with_a_seed_repeats_its_roll_in():
    env = RollIn(Chain(), guide=lambda s, _: 1, beta=0.5, gamma=0.8)

    def starts(seed: int) -> list[Any]:
        first = env.reset(seed=seed)
        return [first, *(env.reset() for _ in range(10))]

    def told(found: list[Any]) -> list[Any]:
        return [(state, info["rollin_start"]["rollin_steps"]) for state, info in found]

    assert told(starts(3)) == told(starts(3)) != told(starts(4))


def test_an_evaluation_env_leaves_a_teacher_as_it_was():
    walk = SequentialTeacher(Curriculum.listed([[0.0], [1.0]], -1.0, episodes=1))
    before = walk.get_state()
    env = RollIn(Lengths(3), walk, guide=still, reports=False)
    for i in range(5):
        env.reset(seed=i, options={"context": [5.0]})
        over = False
        while not over:
            _, reward, terminated, truncated, _ = env.step(np.zeros(1, np.float32))
            over = terminated or truncated
            assert reward == 5.0
    assert walk.get_state() == before


# ------------------------------------------------------------------ bad input


def test_a_guide_of_other_spaces_is_refused():
    class Guide:
        action_space = spaces.Discrete(3)

        def __call__(self, observation: Any, context: Any) -> Any:
            return 0

    with pytest.raises(
        RollinError, match=r"guide's action_space is Discrete\(3\), the env's is Box"
    ):
        RollIn(Line(), guide=Guide())
    wrong = RollIn(Line(), guide=lambda o, c: np.zeros(4), beta=0.999)
    with pytest.raises(RollinError, match=r"gave an action that is none of Box.*same spaces"):
        wrong.reset(seed=0)
    raises = RollIn(Line(), guide=lambda o, c: o["velocity"], beta=0.999)
    with pytest.raises(RollinError, match=r"The guide raised KeyError.*same spaces"):
        raises.reset(seed=0)
    with pytest.raises(RollinError, match=r"A guide must be a function.*got str"):
        RollIn(Line(), guide=ANY("policy"))


def test_actions_of_a_guide_are_fitted_to_the_space():
    env = RollIn(Target(), guide=lambda o, c: np.array([9.0]), beta=0.999, gamma=0.0)
    env.reset(seed=0)
    with pytest.raises(RollinError, match="none of Discrete"):
        RollIn(Chain(), guide=lambda o, c: 7, beta=0.999).reset(seed=0)
    RollIn(Chain(), guide=lambda o, c: np.array([[1]]).reshape(()), beta=0.999).reset(seed=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_actions_that_are_not_finite_are_refused(bad):
    env = RollIn(Target(), guide=lambda o, c: np.array([bad], np.float32), beta=0.999)
    with pytest.raises(RollinError, match=r"that is not finite, \[(nan|inf)\]: freeze it from"):
        env.reset(seed=0)
    with pytest.raises(RollinError, match="none of Discrete"):
        RollIn(Chain(), guide=lambda o, c: bad, beta=0.999).reset(seed=0)


def test_actions_between_whole_numbers_are_refused():
    with pytest.raises(RollinError, match=r"none of Discrete\(2\): float 1.7"):
        RollIn(Chain(), guide=lambda o, c: 1.7, beta=0.999).reset(seed=0)
    RollIn(Chain(), guide=lambda o, c: np.float32(1.0), beta=0.999).reset(seed=0)
    whole = spaces.Box(0, 4, (1,), np.int64)
    assert fitted(np.array([9.0]), whole).tolist() == [4]
    with pytest.raises(RollinError, match=r"the action \[1.7\], and those of Box.*whole numbers"):
        fitted(np.array([1.7]), whole)


def test_a_guide_that_was_loaded_goes_before_the_one_of_the_constructor():
    used: list[str] = []
    env = RollIn(Lengths(1000), guide=lambda o, c: used.append("own") or still(o, c))
    env.attach_env(0, 0)
    env.load_guide(2, lambda o, c: used.append("loaded") or still(o, c))
    for version, whose in ((1, "own"), (2, "loaded")):
        used.clear()
        env.assign(Plan(version, np.zeros(1), 1.0, guide=version, length=3))
        env.reset(seed=0)
        assert set(used) == {whose}


def test_a_plan_that_wants_outcomes_of_an_env_without_them_is_told():
    env = assigned(Chain(), Plan(1, None, trace=True))
    env.reset(seed=0)
    with pytest.raises(RollinError, match=r'had none in its info, only nothing.*info\["outcome"\]'):
        env.step(0)


def test_a_missing_guide_is_an_error_and_never_an_older_one():
    env = assigned(Lengths(), Plan(1, np.zeros(1), 0.5, guide=2))
    env.load_guide(1, still)
    with pytest.raises(RollinError, match=r"Plan 1 rolls in with guide 2, which was not loaded"):
        env.reset(seed=0)


def test_contexts_outside_the_space_and_plans_without_ids_are_refused():
    env = RollIn(Lengths())
    with pytest.raises(RollinError, match=r"context \[101.0\] lies outside"):
        env.set_context([101.0])
    env.attach_env(0, 0)
    with pytest.raises(RollinError, match=r"context \[-1.0\] lies outside"):
        env.assign(Plan(1, np.array([-1.0])))
    with pytest.raises(RollinError, match="from 1 on, got 0"):
        env.assign(Plan(0, np.zeros(1)))
    with pytest.raises(RollinError, match="Env 0 has no plan for its next episode"):
        env.reset(seed=0)


def test_observations_without_a_place_for_the_context_are_refused_when_it_must_be_shown():
    plan = Plan(1, None, 0.999, guide=1, guide_context=np.zeros(1))
    with pytest.raises(RollinError, match=r"no place for it: use a Dict.*show=False"):
        assigned(Target(), plan, guide=still).reset(seed=0)
    assigned(Target(), plan, guide=still, show=False).reset(seed=0)
    misfit = Plan(1, np.zeros(1), 0.999, guide=1, guide_context=np.zeros(3))
    with pytest.raises(RollinError, match=r"does not fit the entry context of shape \(1,\)"):
        assigned(Lengths(), misfit, guide=still).reset(seed=0)


class Monitor(gymnasium.Wrapper[Any, Any, Any, Any]):
    """By name as Stable-Baselines3's."""


@pytest.mark.parametrize("inside", [Monitor, NormalizeObservation])
def test_wrappers_in_the_wrong_order_are_refused(inside):
    name = inside.__name__
    env = gymnasium.make("Pendulum-v1")
    with pytest.raises(
        RollinError, match=rf"{name} lies inside RollIn.*use {name}\(RollIn\(env\)\)"
    ):
        RollIn(inside(env))
    with pytest.raises(RollinError, match=r"RollIn lies inside RollIn.*one RollIn"):
        RollIn(RollIn(env))
    RollIn(RecordEpisodeStatistics(env))


def test_a_copy_of_a_teacher_in_another_process_is_refused():
    walk = SequentialTeacher(Curriculum.listed([[0.0], [1.0]], 1.0))
    walk.home -= 1  # as if it had been made elsewhere
    env = RollIn(Lengths(), walk)
    with pytest.raises(RollinError, match=r"copy in another process.*rollin.attach.*reports=False"):
        env.reset(seed=0)


@pytest.mark.parametrize("gamma", [1.0, -0.1])
def test_gamma_must_let_roll_ins_stop(gamma):
    with pytest.raises(RollinError, match=r"gamma must lie in \[0, 1\)"):
        RollIn(Line(), gamma=gamma)


def test_the_paper_s_maze_rolls_in_with_a_policy_of_ours():
    few: dict[str, Any] = {"steps": 300, "warmup": 200, "hidden": (8, 8), "batch": 16}
    policy = rollin.train("point-umaze", **few).policy
    env = RollIn(PointUmaze(), guide=policy.act, beta=0.999, gamma=0.9)
    observed, info = env.reset(seed=0)
    assert info["rollin_start"]["rollin_steps"] > 0
    assert env.observation_space.contains(observed)


class Wrong(Line):
    """Its steps give something else than Gymnasium asks for."""

    def __init__(self, terminated: Any = False, info: Any = None) -> None:
        super().__init__()
        self.terminated, self.info = terminated, info

    def step(self, action):
        observed, reward, _, truncated, info = super().step(action)
        return (
            observed,
            reward,
            self.terminated,
            truncated,
            info if self.info is None else self.info,
        )


@pytest.mark.parametrize("beta", [0.0, 0.9])
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"terminated": "no"}, "step must give terminated as True or False, got 'no' (str)"),
        ({"terminated": 2}, "step must give terminated as True or False, got 2 (int)"),
        ({"info": ["a"]}, "step must give observation, reward, terminated, truncated and info"),
    ],
)
def test_a_step_of_another_form_is_refused_in_the_roll_in_and_after_it(beta, wrong, why):
    env = RollIn(Wrong(**wrong), guide=lambda s, _: np.zeros(1, np.float32), beta=beta, seed=1)
    with pytest.raises(RollinError, match=re.escape(why)):
        play(env)


def play(env: RollIn, episodes: int = 20) -> None:
    for _ in range(episodes):
        env.reset()
        env.step(np.zeros(1, np.float32))
