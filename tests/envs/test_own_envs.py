"""Environments as people bring them: goal envs of all kinds, shaped rewards, other dynamics."""

import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import rollin
from rollin import Contextual, Curriculum, GoalContext, RollinError, SuccessRate, check_env
from rollin.envs.context_env import ContextEnv
from tests.toys import Line, PointGoal

SMALL: dict[str, Any] = {"warmup": 60, "batch": 16, "hidden": (8, 8)}
BOX = spaces.Box(-5, 5, (1,), np.float64)
EASY = Curriculum.listed([[0.5], [1.0], [1.5]], SuccessRate(0.5), episodes=2)


class Sparse(PointGoal):
    """Rewards of -1 and 0, the goal kept under a name of the test's choice.

    how: "option NAME", "method NAME" or "attribute NAME"; draws: whether reset draws another goal.
    """

    def __init__(self, how: str, *, draws: bool = True, tells: str | None = None) -> None:
        super().__init__()
        del self.goal
        (self.kind, self.name), self.draws, self.tells = how.split(), draws, tells
        self.attribute = f"private_{self.name}" if self.kind != "attribute" else self.name
        setattr(self, self.attribute, np.zeros(1))
        if self.kind == "method":
            setattr(self, self.name, lambda goal: setattr(self, self.attribute, goal))

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        gymnasium.Env.reset(self, seed=seed)
        if self.draws:
            setattr(self, self.attribute, self.np_random.uniform(-5, 5, 1))
        if self.kind == "option" and options and self.name in options:
            setattr(self, self.attribute, options[self.name])
        self.x, self.steps = np.zeros(1), 0
        return self._observed(), {}

    def step(self, action: Any) -> Any:
        self.x = np.clip(self.x + 0.5 * np.asarray(action, np.float64), -5, 5)
        self.steps += 1
        desired = getattr(self, self.attribute)
        reward = float(self.compute_reward(self.x, desired, {}))
        info = {self.tells: np.float32(abs(self.x - desired)[0] < 0.5)} if self.tells else {}
        return self._observed(), reward, False, self.steps >= 10, info

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return super().compute_reward(achieved, desired, info) - 1.0

    def _observed(self) -> dict[str, Any]:
        desired = getattr(self, self.attribute).copy()
        return {"observation": self.x, "achieved_goal": self.x, "desired_goal": desired}


class Dense(Sparse):
    """The negative distance to the goal."""

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return -np.linalg.norm(achieved - desired, axis=-1)


WAYS = [
    "option goal", "option desired_goal", "option target", "method set_goal", "method set_target",
    "attribute goal", "attribute target", "attribute _target", "attribute goal_position",
]  # fmt: skip


def steps_right(env: Any, goal: float, steps: int = 4) -> list[tuple[float, bool]]:
    env.reset(seed=3, options={"context": [goal]})
    results = []
    for _ in range(steps):
        _, reward, _, _, info = env.step(np.ones(1, np.float32))
        results.append((reward, info["is_success"]))
    return results


# ------------------------------------------------------------------ goals


@pytest.mark.parametrize("draws", [True, False])
@pytest.mark.parametrize("how", WAYS)
def test_the_goal_arrives_however_the_env_takes_it(how, draws):
    inner = Sparse(how, draws=draws)
    env = GoalContext(inner, curriculum=EASY)
    for goal in (0.0, 2.0, -1.5):  # 0 is the env's own at first: any way seems to work
        results = steps_right(env, goal)
        assert getattr(inner, inner.attribute) == goal
        near = [abs(0.5 * (t + 1) - goal) < 0.5 for t in range(4)]
        assert results == [(float(hit) - 1, hit) for hit in near]
    check_env(env)


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.lists(st.integers(-50, 50).map(lambda n: n / 10), min_size=1, max_size=4),
    st.sampled_from(WAYS),
    st.booleans(),
)
def test_the_env_s_own_goal_is_the_context_at_every_step(seed, goals, how, draws):
    inner = Sparse(how, draws=draws)
    env = GoalContext(gymnasium.wrappers.TimeLimit(inner, 7))
    for i, goal in enumerate(goals):
        env.reset(seed=seed + i, options={"context": [goal]})
        over = False
        while not over:
            observed, reward, _, over, info = env.step(np.ones(1, np.float32))
            assert observed["context"] == goal == getattr(inner, inner.attribute)
            assert reward == (0.0 if abs(info["outcome"][0] - goal) < 0.5 else -1.0)
            assert info["is_success"] == (reward == 0)


def test_a_goal_that_never_arrives_is_an_error_with_all_that_was_tried():
    env = GoalContext(Sparse("option aim"))
    with pytest.raises(RollinError) as caught:
        env.reset(seed=0, options={"context": [1.0]})
    for word in ("'goal': …", "'target': …", "given the goal [1.0]", "set_goal=..."):
        assert word in str(caught.value)
    named = GoalContext(Sparse("option aim"), set_goal="aim")
    assert steps_right(named, 1.0)[0] == (-1.0, False)

    def aim(env, goal):
        return {"aim": goal}

    assert steps_right(GoalContext(Sparse("option aim"), set_goal=aim), 1.0) == steps_right(
        named, 1.0
    )


def test_a_goal_that_goes_away_is_an_error():
    class Wanders(Sparse):
        def step(self, action):
            if self.steps == 2:
                self.private_goal = np.array([4.0])
            return super().step(action)

    env = GoalContext(Wanders("option goal"))
    with pytest.raises(
        RollinError, match=r"goal \[1.0\] and has the desired_goal \[4.0\] after st"
    ):
        steps_right(env, 1.0)
    with pytest.raises(RollinError, match=r"after reset: the goal, given by reset\(options"):
        GoalContext(Sparse("option aim"), set_goal="other").reset(options={"context": [1.0]})


@pytest.mark.parametrize("tells", ["is_success", "success"])
def test_success_is_what_the_step_says(tells):
    env = GoalContext(Dense("attribute target", tells=tells), curriculum=EASY)
    assert [success for _, success in steps_right(env, 1.0)] == [False, True, False, False]
    check_env(env)
    handle = ContextEnv(env)
    handle.reset(np.array([1.0]), seed=0)
    seen = handle.step(np.ones(1, np.float32))
    assert handle.is_success(seen.outcome, np.ones(1, np.float32)) is False
    seen = handle.step(np.ones(1, np.float32))
    assert handle.is_success(seen.outcome, np.ones(1, np.float32)) is True
    with pytest.raises(RollinError, match="Nothing defines when"):  # of another context
        handle.is_success(seen.outcome, np.zeros(1, np.float32))


def test_success_is_the_env_s_own_method_or_the_argument():
    class Method(Dense):
        def _is_success(self, achieved, desired):
            return np.linalg.norm(achieved - desired, axis=-1) < 0.1

    env = GoalContext(Method("attribute goal"))
    assert [success for _, success in steps_right(env, 1.0)] == [False, True, False, False]
    assert env.is_success(np.array([[1.05], [2.0]]), np.array([1.0])).tolist() == [True, False]

    def far(achieved, desired):
        return np.abs(achieved - desired)[..., 0] > 0.7

    env = GoalContext(Sparse("attribute goal", tells="is_success"), is_success=far)
    assert [success for _, success in steps_right(env, 1.0)] == [False, False, False, True]


def test_a_reward_that_only_grows_towards_the_goal_needs_is_success():
    env = GoalContext(Dense("attribute goal"))
    with pytest.raises(RollinError, match=r"falls with every distance .* is_success=lambda achie"):
        check_env(env)

    class NoReward(Dense):
        compute_reward: Any = None

        def step(self, action):
            self.x, self.steps = self.x + 0.5 * np.asarray(action, np.float64), self.steps + 1
            return self._observed(), -1.0, False, self.steps >= 10, {}

    with pytest.raises(RollinError, match="it has no compute_reward to decide by"):
        check_env(GoalContext(NoReward("attribute goal")))
    defined = GoalContext(NoReward("attribute goal"), is_success=lambda a, d: a[..., 0] > d[..., 0])
    check_env(defined)
    assert not defined.can_relabel


def test_minus_one_and_zero_advance_and_are_relabelled():
    """The goal is `target`, rewards are -1 and 0: nothing needs to be said, and all of it works."""
    seen = []

    def make():
        return GoalContext(Sparse("attribute target"), curriculum=EASY)

    trained = rollin.train(make, steps=1500, relabel=True, **SMALL, on_event=seen.append)
    assert trained.k >= 1
    assert "success rate" in trained.advances[0].reason
    ends = [event.episode for event in seen if event.episode is not None]
    for episode in ends:
        assert episode.success == (episode.total > -episode.length)


# ------------------------------------------------------------------ other contexts


class Lander(gymnasium.Env[Any, Any]):
    """Falls from `start` under gravity `g`; its own, shaped reward is -|height|."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Box(-1, 1, (1,), np.float32)
        self.g, self.resets = 1.0, []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.resets.append(options)
        self.z, self.v, self.steps = (options or {}).get("start", 4.0), 0.0, 0
        return np.array([self.z, self.v]), {}

    def set_gravity(self, g: Any) -> None:
        self.g = float(g[0])

    def step(self, action: Any) -> Any:
        self.v += 0.1 * (2 * float(action[0]) - self.g)
        self.z += 0.1 * self.v
        self.steps += 1
        low = abs(self.z) < 0.2
        return (
            np.array([self.z, self.v]),
            -abs(self.z),
            False,
            self.steps >= 20,
            {"is_success": low},
        )


GRAVITY = spaces.Box(0, 4, (1,), np.float64)
HEAVIER = Curriculum.listed([[0.5], [1.0], [2.0]], -1e6, episodes=2)


@pytest.mark.parametrize(
    "how", ["g", "set_gravity", lambda env, c: setattr(env.unwrapped, "g", float(c[0]))]
)
def test_a_context_may_be_gravity_and_the_reward_the_env_s_own(how):
    inner = Lander()
    env = Contextual(inner, GRAVITY, context=how, curriculum=HEAVIER)
    check_env(env)
    env.reset(seed=0, options={"context": [2.0]})
    assert type(inner.g) is float
    observed, reward, *_ = env.step(np.zeros(1, np.float32))
    assert observed["observation"][1] == pytest.approx(-0.2)  # v ← v - 0.1 g
    assert reward == pytest.approx(-(4 - 0.02))
    trained = rollin.train(lambda: env, steps=300, **SMALL)
    assert trained.k == 2
    assert inner.g == 2.0
    with pytest.raises(RollinError, match=r"cannot be relabelled: .* Leave out relabel, or"):
        rollin.train(lambda: env, steps=300, relabel=True, **SMALL)


def test_a_context_may_be_where_to_start():
    inner = Lander()
    starts = Contextual(
        inner, GRAVITY, context=lambda env, c: {"start": float(c[0])}, curriculum=HEAVIER
    )
    observed, _ = starts.reset(seed=0, options={"context": [3.0]})
    assert observed["observation"].tolist() == [3.0, 0.0]
    check_env(starts)
    passed = Contextual(inner, GRAVITY, context="options")
    passed.reset(options={"context": [1.0], "more": 5})
    assert inner.resets[-1].keys() == {"context", "more"}
    Contextual(inner, GRAVITY, reward=lambda o, c: o[..., 0]).reset(options={"context": [1.0]})
    assert inner.resets[-1] is None  # what the env does not know of stays outside


def test_success_of_an_env_s_own_counts_and_a_function_s_reward_overrides_it():
    env = Contextual(Lander(), GRAVITY, context="g")
    env.reset(seed=0, options={"context": [0.0]})
    assert env.step(np.zeros(1, np.float32))[-1]["is_success"] == np.False_
    paid = Contextual(Lander(), GRAVITY, lambda outcome, context: outcome[..., 0])
    paid.reset(seed=0)
    assert paid.step(np.zeros(1, np.float32))[-1]["is_success"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "would change nothing in Lander: give rollin.Contextual a reward"),
        ({"context": "mass"}, "Lander has no attribute or method 'mass'"),
        ({"context": "g", "can_relabel": True}, "can_relabel=True needs a reward"),
    ],
)
def test_contexts_that_cannot_be_told_are_refused(arguments, message):
    with pytest.raises(RollinError, match=re.escape(message)):
        Contextual(Lander(), GRAVITY, **arguments)


def test_a_rule_of_successes_that_can_never_be_met_is_refused():
    rated = HEAVIER.changed(rule=SuccessRate(0.5))

    def away(outcome, context):
        return -np.abs(outcome - context)[..., 0]

    class Silent(Lander):
        def step(self, action):
            return *super().step(action)[:4], {}

    with pytest.raises(RollinError, match=r"no episode can be one: its rewards are its own"):
        check_env(Contextual(Silent(), GRAVITY, context="g", curriculum=rated))
    plain: dict[str, Any] = {"outcome": lambda observation, info: observation[:1]}
    with pytest.raises(RollinError, match="no reward is positive, not even where an outcome"):
        check_env(Contextual(Lander(), GRAVITY, away, curriculum=rated, **plain))
    check_env(Contextual(Lander(), GRAVITY, away, curriculum=HEAVIER, **plain))
    check_env(
        Contextual(
            Lander(), GRAVITY, away, curriculum=rated, **plain,
            is_success=lambda outcome, context: away(outcome, context) > -0.1,
        )
    )  # fmt: skip


def test_rewards_one_by_one_do_without_relabelling():
    def one(outcome, context):
        if outcome[0] > context[0]:  # of a batch: the truth value of a vector
            return 1.0
        return 0.0

    env = Contextual(Lander(), GRAVITY, one, curriculum=HEAVIER)
    with pytest.raises(RollinError, match=r"ValueError.*was called with a batch of 48 outcomes"):
        check_env(env)
    check_env(env, relabel=False)
    assert rollin.train(lambda: env, steps=200, **SMALL).k == 2
    with pytest.raises(RollinError, match="was called with a batch of 48 outcomes"):
        rollin.train(lambda: env, steps=200, relabel=True, **SMALL)


def test_no_time_limit_is_told_at_once():
    with pytest.raises(RollinError, match=r"no time limit: .* in 5,000 steps.* or use horizon\."):
        check_env(Line(length=10**9))
    check_env(gymnasium.wrappers.TimeLimit(Line(length=10**9), 10**6))
    with pytest.raises(RollinError, match=r"TimeLimit\(env, N\), or use horizon\.$"):
        rollin.train(lambda: Line(length=10**9), steps=300, **SMALL)
    assert rollin.train(lambda: Line(length=10**9), horizon=20, steps=100, **SMALL).finished


# ------------------------------------------------------------------ vector envs, other agents


@pytest.mark.parametrize("kind", [gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv])
def test_contexts_are_set_through_vector_envs(kind):
    apart: Any = {"context": "forkserver"} if kind is gymnasium.vector.AsyncVectorEnv else {}
    envs = kind([Line, Line], **apart)
    try:
        envs.call("set_context", [1.5])
        observed, _ = envs.reset(seed=0)
        assert observed["context"].tolist() == [[1.5], [1.5]]
    finally:
        envs.close()


def test_set_context_persists_and_is_checked():
    for env in (Line(), GoalContext(PointGoal()), Contextual(Lander(), GRAVITY, context="g")):
        env.set_context([1.25])
        assert env.reset()[0]["context"] == 1.25
        assert env.reset()[0]["context"] == 1.25
        with pytest.raises(RollinError, match="lies outside"):
            env.set_context([99.0])


class Deaf(Line):
    """Keeps its context elsewhere than set_context puts it."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.own = (options or {}).get("context", getattr(self, "own", np.zeros(1)))
        return super().reset(seed=seed, options={"context": self.own})


def test_the_checker_tries_set_context():
    with pytest.raises(RollinError, match=r"after set_context\(c\) and reset\(\)"):
        check_env(Deaf())


def test_discrete_actions_and_vector_envs_are_shown_the_way():
    class Buttons(Line):
        def __init__(self):
            super().__init__()
            self.action_space: Any = spaces.Discrete(3)

        def step(self, action):
            return super().step([action - 1.0])

    check_env(Buttons())  # there is nothing wrong with it
    for word in ("Discrete", r"agent=\.\.\.", "rollin.RollIn", "docs/own-agent.md"):
        with pytest.raises(RollinError, match=word):
            rollin.train(Buttons, steps=100, **SMALL)
    envs: Any = gymnasium.vector.SyncVectorEnv([Line])
    with pytest.raises(RollinError, match=r"vector env .*SyncVectorEnv.* rollin.RollIn"):
        check_env(envs)
    sources: list[Any] = [envs, lambda: gymnasium.vector.SyncVectorEnv([Line])]
    for source in sources:
        with pytest.raises(RollinError, match=r"got the vector env SyncVectorEnv.*rollin.attach"):
            rollin.train(source, steps=100, **SMALL)
