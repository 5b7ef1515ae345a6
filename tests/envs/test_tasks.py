"""Every task keeps the contract of contextual environments."""

from typing import Any

import numpy as np
import pytest

from rollin import Curriculum, RollinError
from rollin.envs.point_umaze import PointUmaze
from rollin.envs.registry import make_contextual, make_raw
from rollin.tasks import TASKS


@pytest.mark.parametrize("name", TASKS)
def test_the_reward_of_a_batch_is_that_of_the_steps(name: str) -> None:
    """Around contexts where rewards are both paid and not."""
    env: Any = make_raw(name)
    generator = np.random.default_rng(1)
    outcomes, contexts, rewards = [], [], []
    for position in (0.0, 0.1, 0.2):
        context = np.asarray(env.curriculum.path(position), float)
        env.reset(seed=0, options={"context": context})
        for _ in range(100):
            action = generator.uniform(env.action_space.low, env.action_space.high)
            _, reward, terminated, _, info = env.step(action.astype(np.float32))
            outcomes.append(info["outcome"])
            contexts.append(context)
            rewards.append(reward)
            if terminated:
                env.reset()
    outcomes, contexts = np.array(outcomes), np.array(contexts)
    batch = env.context_reward(outcomes, contexts)
    np.testing.assert_allclose(batch, rewards, rtol=1e-12)
    assert len(set(rewards)) > 1
    successes = env.is_success(outcomes, contexts)
    assert 0 < successes.sum() < len(successes)
    if not hasattr(env, "band"):  # the robots are also paid outside of it
        np.testing.assert_array_equal(successes, batch > 0)
    env.close()


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("point-umase", [], "Did you mean point-umaze?"),
        ("no_such_module:make", [], "cannot be loaded"),
        ("tests.toys:Lime", [], "cannot be loaded"),
        ("tests.toys:spaces", [], "must be a function that makes a new environment"),
        ("builtins:dict", [], "builtins:dict is of Python's standard library"),
        ("numpy:errstate", [], "must return a contextual Gymnasium env, got errstate"),
        ("point-umaze", ["max_speed"], "must be name=value, got 'max_speed'"),
        ("point-umaze", ["max_speed=-1"], "max_speed must be a finite number greater than 0"),
        ("point-umaze", ["mass=3"], "point-umaze cannot be made: TypeError"),
    ],
)
def test_tasks_that_cannot_be_made_are_named(task, options, message) -> None:
    with pytest.raises(RollinError, match=message.replace("?", r"\?")):
        make_contextual(task, options)


def test_options_reach_the_environment() -> None:
    env = make_contextual("point-umaze", ["max_speed=0.25", "R=30"], horizon=7)
    inner = env.env.unwrapped
    assert isinstance(inner, PointUmaze)
    assert inner.max_speed == 0.25
    assert isinstance(env.curriculum, Curriculum)
    assert env.curriculum.threshold(0) == 30
    assert TASKS["point-umaze"].defaults["gamma"] == 0.97
