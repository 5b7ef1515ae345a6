"""`rollin.Policy`: what it takes, what it refuses, and how Stable-Baselines3 evaluates it."""

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest

import rollin
from rollin import RollinError
from rollin.envs.point_umaze import PointUmaze
from tests.toys import Line

SMALL: dict[str, Any] = {"warmup": 60, "hidden": (8, 8), "batch": 16, "steps": 100}


@pytest.fixture(scope="module")
def policy() -> rollin.Policy:
    return rollin.train("point-umaze", **SMALL).policy


def test_predict_is_act_with_the_signature_of_stable_baselines3(policy):
    rng = np.random.default_rng(0)
    batch = {"observation": rng.normal(size=(3, 4)), "context": rng.uniform(0, 8, (3, 2))}
    action, state = policy.predict(batch, None, np.ones(3, bool), True)
    np.testing.assert_array_equal(action, policy.act(batch["observation"], batch["context"]))
    assert state is None
    np.testing.assert_array_equal(policy.predict(np.zeros(4))[0], policy.act(np.zeros(4), "last"))
    goal = {"observation": np.zeros(4), "achieved_goal": np.zeros(2), "desired_goal": np.ones(2)}
    np.testing.assert_array_equal(policy.predict(goal)[0], policy.act(np.zeros(4), np.ones(2)))


def test_predict_draws_if_asked_to(policy):
    draws = [policy.predict(np.zeros(4), deterministic=False)[0] for _ in range(2)]
    assert not np.array_equal(*draws)
    seeded = [
        policy.predict(np.zeros(4), deterministic=False, generator=np.random.default_rng(1))[0]
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*seeded)


@pytest.mark.parametrize("goals", [False, True], ids=["contextual", "goal"])
def test_stable_baselines3_evaluates_a_policy_as_we_do(policy, goals):
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    common = pytest.importorskip("stable_baselines3.common.env_util")
    context = [1.0, 0.0]
    wrap = rollin.GoalView if goals else lambda env: env
    envs = common.make_vec_env(lambda: wrap(PointUmaze(horizon=20)), n_envs=2, seed=0)
    envs.env_method("set_context", context)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        returns, lengths = evaluation.evaluate_policy(
            policy, envs, n_eval_episodes=4, return_episode_rewards=True
        )
    assert lengths == [20] * 4
    env = PointUmaze(horizon=20)
    observed, _ = env.reset(seed=0, options={"context": context})  # as make_vec_env seeds its first
    total = 0.0
    for _ in range(20):
        observed, reward, *_ = env.step(policy.act(observed))
        total += reward
    assert returns[0] == pytest.approx(total)


@pytest.mark.parametrize(
    ("observation", "context", "message"),
    [
        ([0, np.nan, 0, 0], "last", "observation must hold finite numbers, got [0.0, nan, 0.0"),
        (np.zeros(4), [np.inf, 0], "context must hold finite numbers, got [inf, 0.0]"),
        (np.zeros(3), "last", "got shapes (3,) and (2,): pass the observation as"),
        (np.zeros(4), [0.0], "got shapes (4,) and (1,)"),
        (3.0, "last", "got shapes () and (2,)"),
        ("left", "last", "observation must hold real numbers, got 'left'"),
        (None, "last", "observation must hold"),
        (np.zeros(4), "first", "context must hold real numbers, got 'first'"),
        ({"obs": np.zeros(4)}, "last", "a dict with the entries observation and context, got obs"),
        ({"observation": np.zeros(4)}, "last", "entries observation and context, got observation"),
        (np.zeros(4), [99.0, 0.0], "context must lie between"),
        ({"observation": np.zeros(4), "context": [99.0, 0.0]}, "last", "got [99.0, 0.0]: choose"),
    ],
)  # fmt: skip
def test_what_a_policy_cannot_take_is_refused(policy, observation, context, message):
    with pytest.raises(RollinError) as caught:
        policy.act(observation, context)
    assert message in str(caught.value)


def test_the_context_space_is_kept_in_the_file(policy, tmp_path):
    policy.save(tmp_path / "policy.safetensors")
    again = rollin.Policy.load(tmp_path / "policy.safetensors")
    space = PointUmaze().context_space
    np.testing.assert_array_equal(again.context_space, [space.low, space.high])
    tensors = policy.tensors()
    older = rollin.Policy.of({n: t for n, t in tensors.items() if n != "context_space"})
    assert older.act(np.zeros(4), [99.0, 0.0]).shape == (2,)
    with pytest.raises(RollinError, match="context_space must be lower and upper bounds"):
        rollin.Policy.of(tensors | {"context_space": np.array([[1, 1], [0, 0]], np.float32)})


def test_contexts_without_bounds_are_all_inside():
    env = Line()
    env.context_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    env.observation_space = gymnasium.spaces.Dict(
        observation=gymnasium.spaces.Box(-9.0, 9.0, (2,)), context=env.context_space
    )
    policy = rollin.train(env, **SMALL).policy
    assert policy.act(np.zeros(policy.observation_size), [1e9]).shape == (1,)
