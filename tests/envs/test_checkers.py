"""Every env and wrapper that we ship or show passes our checker, Gymnasium's and SB3's."""

import importlib.util
import runpy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check
from gymnasium.wrappers import FlattenObservation, TimeLimit

import rollin
from rollin import Contextual, GoalContext, GoalView, RollIn
from rollin.envs.box_env import name_of
from rollin.envs.point_umaze import PointUmaze
from rollin.tasks import TASKS, gymnasium_id
from tests.corridor import Corridor
from tests.envs.test_own_envs import GRAVITY, Sparse
from tests.toys import PointGoal, Walk

EXAMPLES = Path(__file__).parents[2] / "examples"


def from_example(example: str, name: str) -> Callable[[], Any]:
    """An env of an example script."""
    return lambda: runpy.run_path(str(EXAMPLES / f"{example}.py"))[name]()


def rolling_in(env: Any) -> RollIn:
    """A wrapper that does roll in, and moves."""
    draws = np.random.default_rng(0)
    if isinstance(env.action_space, gymnasium.spaces.Discrete):
        return RollIn(env, guide=lambda o, c: 1, beta=0.5, gamma=0.5)
    low, high = env.action_space.low, env.action_space.high
    fixed = draws.uniform(low, high).astype(env.action_space.dtype)
    return RollIn(env, guide=lambda o, c: fixed, beta=0.5, gamma=0.8)


def pendulum() -> Any:
    return gymnasium.make("Pendulum-v1")


def distance_to(outcome: Any, context: Any) -> Any:
    return outcome[..., 0] - context[..., 0]


MADE: dict[str, Callable[[], Any]] = {
    **{name: (lambda name=name: gymnasium.make(name)) for name in map(gymnasium_id, TASKS)},
    "reward": lambda: Contextual(pendulum(), GRAVITY, distance_to),
    "gravity": lambda: Contextual(pendulum(), GRAVITY, context="g"),
    "start": lambda: Contextual(
        pendulum(), GRAVITY, context=lambda env, c: {"x_init": float(c[0]) + 1}
    ),
    "walk": lambda: Contextual(
        Walk(), gymnasium.spaces.Box(-1, 1, (3,)), lambda o, c: -np.abs(o - c).sum(-1)
    ),
    "goal": lambda: GoalContext(PointGoal()),
    "goal of -1 and 0": lambda: GoalContext(Sparse("attribute target")),
    "goal in a limit": lambda: TimeLimit(GoalContext(PointGoal()), 5),
    "own_env": from_example("own_env", "Cart"),
    "own agent": Corridor,
}
OTHERS: dict[str, Callable[[], Any]] = {  # that are no contextual envs by our contract
    "view": lambda: GoalView(PointUmaze()),
    "grid": from_example("grid_rollin", "Corridor"),
    "roll-in": lambda: rolling_in(PointUmaze()),
    "roll-in, view": lambda: rolling_in(GoalView(PointUmaze())),
    "roll-in, goal": lambda: rolling_in(GoalContext(PointGoal())),
    "roll-in, contextual": lambda: rolling_in(Contextual(pendulum(), GRAVITY, context="g")),
    "roll-in, flat": lambda: rolling_in(FlattenObservation(PointUmaze())),
    "roll-in, limit": lambda: rolling_in(TimeLimit(PointUmaze(), 20)),
    "roll-in, cart": lambda: rolling_in(gymnasium.make("CartPole-v1")),
    "roll-in, grid": lambda: rolling_in(from_example("grid_rollin", "Corridor")()),
}
NEEDS_TORCH = {"grid", "roll-in, grid"}  # its script imports Stable-Baselines3


@pytest.mark.parametrize("name", [*MADE, *OTHERS])
def test_all_checkers_pass_on_what_we_ship_and_show(name):
    installed = importlib.util.find_spec("stable_baselines3") is not None
    if name in NEEDS_TORCH and not installed:
        pytest.skip("its script imports Stable-Baselines3")
    make = {**MADE, **OTHERS}[name]
    if name in MADE:
        rollin.check_env(make())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on unbounded boxes, float64, wrapped envs
        gymnasium_check(make(), skip_render_check=True)
        if installed:
            from stable_baselines3.common.env_checker import check_env as sb3_check

            sb3_check(make(), warn=False)


def test_the_maze_of_gymnasium_robotics_passes_as_a_context():
    pytest.importorskip("gymnasium_robotics")
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    make = from_example("point_maze", "make_env")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checker.check_env(make(), warn=False)
        checker.check_env(RollIn(make()), warn=False)
        gymnasium_check(make(), skip_render_check=True)


def test_a_goal_context_can_be_registered_and_is_made_again_from_its_spec():
    gymnasium.register("tests/Goal-v0", lambda **_: GoalContext(PointGoal()))
    try:
        env = gymnasium.make("tests/Goal-v0", max_episode_steps=4)
        assert env.spec is not None
        assert (env.spec.id, env.spec.max_episode_steps) == ("tests/Goal-v0", 4)
        assert isinstance(env.unwrapped, GoalContext)
        assert isinstance(env.unwrapped.env.unwrapped, PointGoal)
        env.reset(seed=1)
        assert env.unwrapped.np_random is env.unwrapped.env.unwrapped.np_random
        assert name_of(env) == "tests/Goal-v0"
        assert name_of(GoalContext(PointGoal())) == "PointGoal"
    finally:
        del gymnasium.registry["tests/Goal-v0"]
