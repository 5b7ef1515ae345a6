"""Contextual environments: point-umaze, the wrappers, the checker, the registry."""

import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rollin import Contextual, GoalContext, RollinError, check_env
from rollin.envs.context_env import ContextEnv
from rollin.envs.point_umaze import PointUmaze
from tests.toys import Line, PointGoal, Walk

DISCRETE: Any = spaces.Discrete(3)

# ------------------------------------------------------------------ point-umaze


def test_the_point_moves_as_its_equation_says():
    env = PointUmaze()
    env.reset(seed=0)
    start, v, x = env._state[:2].copy(), np.zeros(2), env._state[:2].copy()
    observed = {}
    for t in range(8):
        action = np.array([0.3, 0.05 * t])
        v = 0.7 * v + 0.15 * action
        x = x + v
        observed, *_ = env.step(action)
        np.testing.assert_allclose(observed["observation"], [*x, *v], atol=1e-12)
    assert np.linalg.norm(x - start) > 0.5


def test_speed_is_bounded_in_all_directions():
    env = PointUmaze(max_speed=0.3)
    observed, _ = env.reset(seed=0)
    for _ in range(8):
        observed, *_ = env.step(np.array([1.0, 1.0]))
    np.testing.assert_allclose(np.linalg.norm(observed["observation"][2:]), 0.3)


def test_walls_stop_one_axis_and_let_the_other_slide():
    env = PointUmaze()
    observed, _ = env.reset(seed=0)
    for _ in range(10):
        observed, *_ = env.step(np.array([0.5, 1.0]))
    x, y, v_x, v_y = observed["observation"]
    assert (y, v_y) == (2.0, 0.0)
    assert x > 1
    assert v_x > 0.2


@pytest.mark.parametrize(
    ("distance", "reward"), [(0.0, 1.0), (0.2, np.exp(-1)), (0.5, np.exp(-2.5)), (0.5001, 0.0)]
)
def test_the_reward_is_the_paper_s(distance, reward):
    env = PointUmaze()
    assert env.context_reward([8 - distance, 0], [8, 0]) == pytest.approx(reward)
    assert env.is_success(np.array([8 - distance, 0]), np.array([8.0, 0])) == (reward > 0)


# ------------------------------------------------------------------ wrappers


def test_a_goal_env_becomes_contextual():
    env = GoalContext(PointGoal())
    goal = np.array([2.0])
    observed, info = env.reset(seed=1, options={"context": goal})
    assert observed.keys() == {"observation", "context"}
    assert observed["context"] == goal == env.env.unwrapped.goal  # pyright: ignore[reportAttributeAccessIssue]
    rewards = []
    for _ in range(6):
        observed, reward, _, _, info = env.step(np.ones(1))
        rewards.append(reward)
    assert rewards == [0, 0, 0, 1, 0, 0]  # 0.5, 1, 1.5, 2, 2.5, 3 with a strict radius of 0.5
    assert info["outcome"] == 3.0
    assert env.reset()[0]["context"] == goal  # until another is given
    assert env.is_success(np.array([[2.1], [3.0]]), goal).tolist() == [True, False]


def test_any_env_becomes_contextual_with_a_reward_function():
    space = spaces.Box(-1, 1, (1,), np.float64)
    env = Contextual(
        gymnasium.make("Pendulum-v1"),
        space,
        reward=lambda outcome, context: -np.abs(outcome[..., 0] - context[..., 0]),
        outcome=lambda observation, info: observation[2:3],
        is_success=lambda outcome, context: np.abs(outcome - context)[..., 0] < 0.1,
        to_context=lambda outcome: outcome / 8,
    )
    check_env(env)
    env.reset(seed=0, options={"context": [0.5]})
    observed, reward, _, _, info = env.step(np.ones(1, np.float32))
    assert reward == pytest.approx(-abs(observed["observation"][2] - 0.5))
    assert info["outcome"] == observed["observation"][2]
    assert env.to_context(np.array([[4.0]])) == 0.5
    assert env.is_success(np.array([0.45]), np.array([0.5]))


def test_a_wrapped_contextual_env_is_still_one():
    env = ContextEnv(gymnasium.wrappers.TimeLimit(Line(length=100), 4))
    env.reset(np.ones(1, np.float32), seed=0)
    ends = [env.step(np.zeros(1, np.float32)).truncated for _ in range(4)]
    assert ends == [False, False, False, True]
    assert env.curriculum is not None


def test_an_env_that_returns_one_array_always_passes_the_checker():
    class Shared(Line):
        shared = np.zeros(1)

        def step(self, action):
            observed, *rest, info = super().step(action)
            self.shared[:] = info["outcome"]
            return observed, *rest, {**info, "outcome": self.shared}

    check_env(Shared())


def test_contexts_are_copied():
    env, context = Line(), np.array([1.0])
    env.reset(options={"context": context})
    context += 2
    assert env.context == 1.0


def test_actions_are_scaled_and_vectors_are_float32_copies():
    env = ContextEnv(Line())
    first, outcome = env.reset(np.zeros(1, np.float32), seed=0)
    step = env.step(np.ones(1, np.float32))  # to 2 in the env's box: 0.2 on the line
    assert step.observation[0] - first[0] == pytest.approx(0.2, abs=0.05)
    assert {step.observation.dtype, step.outcome.dtype, outcome.dtype} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    "form",
    [
        np.asarray,
        np.ndarray.tolist,
        lambda values: values.reshape(1, -1),
        lambda values: values.astype(">f8"),
        lambda values: values.view(np.ma.MaskedArray),
    ],
    ids=["vector", "list", "row", "big-endian", "masked"],
)
@pytest.mark.parametrize("truth", [bool, np.bool_, int])
def test_steps_may_come_in_other_forms(form, truth):
    """A step looks twice at what is not in the usual form, and finds the same numbers."""

    class Formed(Line):
        def step(self, action):
            observed, reward, terminated, truncated, info = super().step(action)
            observed["observation"] = form(observed["observation"])
            info["outcome"] = form(info["outcome"])
            return observed, np.float64(reward), truth(terminated), truth(truncated), info

    plain, formed = ContextEnv(Line(length=3)), ContextEnv(Formed(length=3))
    for env in (plain, formed):
        env.reset(np.zeros(1), seed=0)
    for push in (0.5, -0.25, 1.0):
        one, other = (env.step(np.array([push], np.float32)) for env in (plain, formed))
        assert type(other.observation) is type(other.outcome) is np.ndarray
        assert {other.observation.dtype, other.outcome.dtype} == {np.dtype(np.float32)}
        assert np.array_equal(one.observation, other.observation)
        assert np.array_equal(one.outcome, other.outcome)
        assert (one.reward, one.measured) == (other.reward, other.measured)
        assert other.terminated is False
        assert other.truncated is one.truncated


# ------------------------------------------------------------------ what goes wrong


def broken(**changes):
    """A Line whose step gives something else."""

    class Broken(Line):
        def step(self, action):
            names = ("observed", "reward", "terminated", "truncated", "info")
            parts = dict(zip(names, super().step(action), strict=True)) | changes
            return changes.get("all", tuple(parts[name] for name in names))

        def compute_reward(self, outcome, context):
            if "forgets" in changes and sys._getframe(1).f_code.co_name != "step":
                return None
            if "float32" in changes and np.asarray(outcome).dtype == np.float32:
                raise ValueError("no float32, please")
            return super().compute_reward(outcome, context)

        def is_success(self, outcome, context):
            if "success" in changes:
                return np.asarray(outcome).max(axis=1) > 0
            return super().is_success(outcome, context)

    return Broken()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": None}, "a reward that is not a number"),
        ({"reward": np.ones(2)}, "a reward that is not a number"),
        ({"all": (1, 2.0, False, {})}, "step must give observation, reward, .* a tuple of int"),
        ({"info": None}, "step must give observation"),
        ({"info": {"outcome": {"a": 1}}}, r"info\['outcome'\] as real numbers, got dict"),
        ({"observed": np.zeros(3)}, "as a dict of observation and context"),
        ({"success": True}, "is_success raised AxisError"),
        ({"observed": {"observation": np.zeros(5), "context": np.zeros(1)}}, r"shape \(5,\)"),
        ({"observed": {"observation": ["a", "b"], "context": np.zeros(1)}}, "real numbers"),
        ({"observed": {"observation": [[1], [2, 3]], "context": 0}}, "of no shape"),
        ({"observed": {"observation": [0, np.inf], "context": np.zeros(1)}}, "is not finite"),
        ({"info": {"outcome": np.zeros(3)}}, r"an outcome of shape \(3,\)"),
        ({"info": {"outcome": [[1], [2, 3]]}}, "raised ValueError"),
        ({"forgets": True}, "compute_reward must give numbers, got NoneType: does it return?"),
        ({"float32": True}, "raised ValueError: no float32, please"),
    ],
)
def test_broken_environments_are_told_in_a_sentence(changes, message):
    with pytest.raises(RollinError, match=message):
        check_env(broken(**changes))


@pytest.mark.parametrize("env", [Line, 5])
def test_only_an_env_can_be_checked(env):
    with pytest.raises(RollinError, match="A contextual Gymnasium env is needed"):
        check_env(env)


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        ("forgets", r"was given the context \[0.8\] and shows \[0.0\] after a later reset"),
        ("seedless", "two episodes with the same seed and actions differ"),
        ("disagrees", r"step gave the reward 1.\d+, but compute_reward gives 0.\d+"),
        ("no outcome", r"must give info\['outcome'\] at reset and at every step"),
        ("unbatched", r"one number for one outcome, got shape \(1,\): reduce over the last axis"),
    ],
)
def test_the_checker_teaches(breaks, message):
    with pytest.raises(RollinError, match=message):
        check_env(Line(breaks=breaks))
    if breaks == "seedless":
        check_env(Line(breaks=breaks), deterministic=False)


def whole_numbers() -> Line:
    env = Line()
    env.context_space = spaces.Box(-4, 4, (1,), np.int64)
    return env


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Walk, r"is not a contextual env: it needs a context_space .* rollin.Contextual"),
        (lambda: GoalContext(Walk()), "is not a goal env"),
        (lambda: Contextual(Walk(), DISCRETE, lambda o, c: 0.0), "must be a Box"),
        (whole_numbers, "contexts of real numbers, got a context_space of int64"),
    ],
)
def test_other_environments_are_refused(make, message):
    with pytest.raises(RollinError, match=message):
        ContextEnv(make())


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ([9.0], r"The context \[9.0\] lies outside the env's context_space \(from \[-4.0\] to"),
        ([1.0, 2.0], r"must have shape \(1,\), .* got \(2,\)"),
        (["far"], "must hold real numbers"),
        ([np.nan], "lies outside"),
    ],
)
def test_contexts_outside_are_refused(context, message):
    with pytest.raises(RollinError, match=message):
        Line().reset(options={"context": context})
