"""Adapters around users' envs: observations in parts, misspelt options, the order of errors."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import rollin
from rollin.cli import main
from rollin.envs.point_umaze import PointUmaze
from rollin.errors import RollinError
from rollin.untrusted import factory_here
from tests.toys import Line, PointGoal

BOX = spaces.Box(-1.0, 1.0, (1,), np.float64)
COURSE = rollin.Curriculum.along([[0.0], [1.0]], 0.5, 3.0)
FEW = {"steps": 120, "warmup": 40, "batch": 16, "hidden": (8, 8)}


def near(outcome: Any, context: Any) -> Any:
    return -np.abs(outcome[..., 0] - context[..., 0])


def in_parts(**options: Any) -> rollin.Contextual:
    """A goal env as a contextual one by its reward."""
    limited = gymnasium.wrappers.TimeLimit(PointGoal(), 10)
    return rollin.Contextual(limited, BOX, near, curriculum=COURSE, **options)


# ---------------------------------------------------------------------- observations in parts


def test_observations_in_a_dict_are_those_of_gymnasium_s_flattening() -> None:
    env, other = in_parts(), gymnasium.wrappers.FlattenObservation(PointGoal())
    seen: Any = env.observation_space
    assert seen["observation"] == other.observation_space
    observed, info = env.reset(seed=0, options={"context": [0.5]})
    flat, _ = other.reset(seed=0)
    np.testing.assert_array_equal(observed["observation"], flat)
    np.testing.assert_array_equal(info["outcome"], flat)
    action = np.array([0.3], np.float32)
    np.testing.assert_array_equal(env.step(action)[0]["observation"], other.step(action)[0])
    assert observed in env.observation_space


def test_the_outcome_is_taken_from_the_parts() -> None:
    env = in_parts(outcome=lambda observation, info: observation["achieved_goal"])
    _, info = env.reset(seed=0)
    assert info["outcome"].shape == (1,)
    rollin.check_env(env)


def test_a_dict_of_observations_trains() -> None:
    rollin.check_env(in_parts())
    assert len(rollin.train(in_parts, **FEW).returns) == 12


def test_parts_that_have_no_flat_box_are_left_and_refused() -> None:
    inner = PointGoal()
    parts: dict[str, spaces.Space[Any]] = {"a": spaces.Sequence(BOX)}
    inner.observation_space = spaces.Dict(parts)
    env = rollin.Contextual(inner, BOX, near, outcome=lambda o, i: [0.0], curriculum=COURSE)
    with pytest.raises(RollinError, match=r"in a Box of real numbers.*FlattenObservation"):
        rollin.train(env, **FEW)


# ---------------------------------------------------------------------- options of a reset


@pytest.mark.parametrize("key", ["contxt", "Context", "contexts"])
@pytest.mark.parametrize("make", [in_parts, PointUmaze, lambda: rollin.GoalContext(PointGoal())])
def test_a_misspelt_context_is_refused_by_name(make, key) -> None:
    with pytest.raises(RollinError, match=f"reset has no option '{key}': expected 'context'"):
        make().reset(options={key: [0.5]})


def test_our_own_envs_refuse_all_that_they_do_not_take() -> None:
    with pytest.raises(RollinError, match="no option 'goal': expected 'context' or 'start'"):
        PointUmaze().reset(options={"context": [1.0, 0.0], "goal": 1})


def test_options_of_the_env_inside_still_reach_it() -> None:
    env = rollin.Contextual(gymnasium.make("Pendulum-v1"), BOX, near)
    observed, _ = env.reset(seed=0, options={"x_init": 0.0, "y_init": 0.0})
    np.testing.assert_allclose(observed["observation"], [1.0, 0.0, 0.0])


# ---------------------------------------------------------------------- rewards


class Poor(Line):
    """Some reward is no number; relabels: whether rewards follow from outcomes."""

    def __init__(self, value: float, relabels: bool) -> None:
        super().__init__()
        self.value, self.can_relabel = value, relabels

    def step(self, action: Any) -> Any:
        observed, _, *rest = super().step(action)
        return observed, self.value, *rest

    def context_reward(self, outcome: Any, context: Any) -> Any:
        return np.full(np.shape(outcome)[:-1], self.value)


@pytest.mark.parametrize("relabels", [True, False])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_reward_that_is_no_number_is_named(value, relabels) -> None:
    with pytest.raises(RollinError, match=rf"step gave the reward {value} .* finite number"):
        rollin.check_env(Poor(float(value), relabels))


class Batched(Line):
    """Rewards of a batch alone are not numbers."""

    def compute_reward(self, outcome: Any, context: Any) -> Any:
        found = super().compute_reward(outcome, context)
        return found if np.ndim(found) == 0 else found * np.nan


def test_a_nan_in_a_batch_is_named() -> None:
    with pytest.raises(RollinError, match="gives nan in a batch"):
        rollin.check_env(Batched())


# ---------------------------------------------------------------------- what comes first


class Choice(Line):
    """Discrete actions, and measures that are wrong as well."""

    measures = ("step",)

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(2)


@pytest.mark.parametrize("options", [{}, {"warmup": 1}, {"steps": -3}, {"beta": 2.0}])
@pytest.mark.parametrize("env", [Choice, Choice(), "tests.envs.test_adapters:Choice"])
def test_discrete_actions_come_before_options_and_details(env, options) -> None:
    with pytest.raises(RollinError, match=r"got Discrete\(2\).*put rollin.RollIn around"):
        rollin.train(env, **options)


@pytest.mark.parametrize("task", ["CartPole-v1", "tests.envs.test_adapters:Choice"])
def test_on_the_command_line_too(task, tmp_path, capsys) -> None:
    out = tmp_path / "a"
    assert main(["train", task, "--steps", "500", "--warmup", "1", "--out", str(out)]) == 2
    assert "got Discrete(2)" in capsys.readouterr().err
    assert not out.exists()


def test_of_a_usable_env_the_option_is_what_is_wrong(tmp_path, capsys) -> None:
    with pytest.raises(RollinError, match="warmup must be at least one batch"):
        rollin.train(Line, warmup=1)
    arguments = ["train", "tests.toys:Line", "--warmup", "1", "--out", str(tmp_path / "a")]
    assert main(arguments) == 2
    assert "warmup must be at least one batch" in capsys.readouterr().err


# ---------------------------------------------------------------------- the name of a factory

REWARD = "def rew(outcome, context):\n    return 0\n\n\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (REWARD, " own.py has no function without arguments, which could make an environment."),
        (REWARD + "def build(size=3):\n    ...\n", " Did you mean own:build?"),
        (
            REWARD + "def other():\n    ...\n\ndef make_env():\n    ...\n",
            " Did you mean own:make_env?",
        ),
        (REWARD + "class Maze(gymnasium.Env):\n    ...\n", " Did you mean own:Maze?"),
        ("def main():\n    ...\n\ndef go(*, far):\n    ...\n", " own.py has no function without"),
        (
            "class Maze(gymnasium.Env):\n    def __init__(self, size):\n        ...\n",
            " own.py has no function without",
        ),
    ],
)
def test_only_what_takes_no_arguments_is_suggested(text, said, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(text)
    assert factory_here("own").startswith(said)
    assert factory_here("own.py").startswith(said)
