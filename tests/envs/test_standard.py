"""Adapters of tasks that others made: contexts, goals and rewards are the envs' own."""

import math
import sys
from collections import deque
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium_robotics.envs.maze import maps

import rollin
from rollin.envs import standard
from rollin.envs.registry import make_contextual
from rollin.envs.standard import SparseGoals, stopped
from rollin.runs.curricula import _relabelled

FACTORIES = ("mountain_car", "point_maze_umaze", "point_maze_medium", "fetch_reach", "fetch_push",
             "fetch_pick_and_place", "SparseGoals")  # fmt: skip
MAZES = {"point_maze_umaze": maps.U_MAZE, "point_maze_medium": maps.MEDIUM_MAZE}
FETCH = ("fetch_reach", "fetch_push", "fetch_pick_and_place")


def make(name: str) -> Any:
    return getattr(standard, name)()


@pytest.mark.parametrize("name", FACTORIES)
def test_every_adapter_keeps_the_contract(name: str) -> None:
    env = make(name)
    rollin.check_env(env)
    assert env.curriculum.rule is None  # mastered without a threshold
    env.close()


def test_the_car_succeeds_where_its_own_env_ends_the_episode() -> None:
    env = make("mountain_car")
    for goal in (-0.35, 0.0, 0.45):
        observed, _ = env.reset(seed=1, options={"context": [goal]})
        assert env.unwrapped.goal_position == goal
        terminated = truncated = False
        info: dict[str, Any] = {}
        reward = 0.0
        while not (terminated or truncated):  # push where it moves: this climbs out of any valley
            push = np.sign(observed["observation"][1:]) or np.ones(1)
            observed, reward, terminated, truncated, info = env.step(push.astype(np.float32))
            assert info["is_success"] == terminated
        assert reward == pytest.approx(99.9)
        assert observed["observation"][0] >= np.float32(goal)
    env.close()


@pytest.mark.parametrize("name", MAZES)
def test_no_reset_has_the_goal_of_an_earlier_one(name: str) -> None:
    """Twenty resets under other contexts: the env's own goal, mark and reward follow."""
    env = make(name)
    inner = env.env.unwrapped
    contexts = np.random.default_rng(0).permutation(env.curriculum.contexts)[:20]
    for seed, context in enumerate(contexts):
        env.reset(seed=seed, options={"context": context})
        np.testing.assert_allclose(inner.goal, context)
        np.testing.assert_allclose(inner.model.site_pos[inner.target_site_id][:2], context)
        raw, *_ = env.env.step(np.zeros(2, np.float32))
        np.testing.assert_allclose(raw["desired_goal"], context)
        _, reward, terminated, _, info = env.step(env.action_space.sample())
        near = np.linalg.norm(info["outcome"] - context) <= 0.45
        assert (reward, terminated, info["is_success"]) == (float(near), near, near)
    env.close()


def test_a_recomputed_return_stops_at_the_goal() -> None:
    """An episode that stays where another goal is would have ended there, with a return of 1."""
    env = make_contextual("rollin.envs.standard:point_maze_umaze")
    earned = _relabelled(env)
    assert earned is not None
    stay = np.full((50, 2), 1.0)
    assert earned(stay, [1.0, 1.0]) == 1
    assert earned(stay, [-1.0, -1.0]) == 0
    env.success_ends = False
    assert earned(stay, [1.0, 1.0]) == 50
    env.close()


@pytest.mark.parametrize("name", MAZES)
def test_the_path_is_a_shortest_one_to_the_farthest_cell(name: str) -> None:
    env = make(name)
    maze = MAZES[name]
    start = (1, 1)
    steps: dict[tuple[int, int], int] = {start: 0}
    queue: deque[tuple[int, int]] = deque([start])
    while queue:
        row, column = queue.popleft()
        for cell in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            if maze[cell[0]][cell[1]] != 1 and cell not in steps:
                steps[cell] = steps[row, column] + 1
                queue.append(cell)
    longest = max(steps.values())
    cells = [env.curriculum.path(i / longest) for i in range(longest + 1)]
    found = [tuple(env.env.unwrapped.maze.cell_xy_to_rowcol(cell)) for cell in cells]
    assert [steps[cell] for cell in found] == list(range(longest + 1))
    np.testing.assert_allclose(env.curriculum.contexts[-1], cells[-1])
    env.close()


@pytest.mark.parametrize("name", FETCH)
def test_goals_lie_on_the_way_to_the_goal_that_the_env_draws(name: str) -> None:
    env = make(name)
    own = gymnasium.make(env.spec.id)
    for seed, distance in enumerate((0.2, 1.0, 0.5, 0.2, 0.7)):
        drawn, _ = own.reset(seed=seed)
        env.reset(seed=seed, options={"context": [distance]})
        start, goal = drawn["achieved_goal"], drawn["desired_goal"]
        expected = (1 - distance) * start + distance * goal
        np.testing.assert_allclose(env.unwrapped.goal, expected, atol=1e-12)
        raw, reward, *_, info = env.env.step(env.action_space.sample())
        np.testing.assert_array_equal(raw["desired_goal"], env.unwrapped.goal)
        far = np.linalg.norm(raw["achieved_goal"] - raw["desired_goal"]) > 0.05
        assert (reward, info["is_success"]) == (-float(far), float(not far))
    env.close()
    own.close()


def test_a_drawn_goal_elsewhere_than_declared_is_refused() -> None:
    class Wrong(SparseGoals):
        drawn_goal = slice(1, 3)

    with pytest.raises(rollin.RollinError, match="achieved goal, followed by the drawn one"):
        rollin.check_env(Wrong())


def test_relabelled_goals_train(tmp_path) -> None:
    """Both agents learn from batches whose drawn goals were replaced; visited refuses the env."""
    small: dict[str, Any] = {"hidden": (8, 8), "batch": 12, "warmup": 50, "seed": 0}
    trained = rollin.train(SparseGoals, steps=500, adaptive=True, relabel=True, **small)
    assert np.isfinite(trained.kappa)
    with pytest.raises(rollin.RollinError, match="draws its goals itself"):
        rollin.train(SparseGoals, steps=500, teacher="visited", **small)


def test_goals_of_a_distance_fill_their_range() -> None:
    """FetchReach draws within 0.15 m of the gripper on each axis."""
    env = make("fetch_reach")
    offsets = []
    for seed in range(60):
        observed, _ = env.reset(seed=seed, options={"context": [0.5]})
        achieved, goal = observed["observation"][:3], observed["observation"][3:6]
        offsets.append(goal - achieved)
    found = np.abs(offsets)
    assert found.max() <= 0.5 * 0.15 + 1e-3
    assert (found.max(0) > 0.5 * 0.15 * 0.9).all()
    # uniform: the mean of |U(-r, r)| is r / 2, its standard error over 180 numbers 0.0016
    assert found.mean() == pytest.approx(0.5 * 0.15 / 2, abs=0.006)
    env.close()


# ------------------------------------------------------------------ goals drawn in a ring


def placed(place: tuple[float, float], goal: tuple[float, float], tolerance: float) -> SparseGoals:
    env = SparseGoals()
    env.reset(seed=0, options={"context": [tolerance]})
    env._place, env._goal = np.array(place), np.array(goal)
    return env


@pytest.mark.parametrize(
    ("place", "action", "after"),
    [
        ((-6.0, -6.0), (1.0, 0.0), (-5.7, -6.0)),
        ((-6.0, -6.0), (0.5, 0.5), (-5.85, -5.85)),
        ((-6.0, -6.0), (1.0, 1.0), (-6 + 0.3 / math.sqrt(2), -6 + 0.3 / math.sqrt(2))),
        ((-6.9, -6.0), (-1.0, 0.0), (-7.0, -6.0)),  # the wall
        ((-5.1, 0.0), (1.0, 0.0), (-5.0, 0.0)),  # the block, from its left
        ((0.0, 5.1), (0.0, -1.0), (0.0, 5.0)),  # from above
        ((-5.1, 0.0), (0.6, 0.8), (-5.0, 0.24)),  # along its side
    ],
)
def test_a_move_ends_where_walls_and_block_let_it(place, action, after) -> None:
    env = placed(place, (6.0, 6.0), 0.05)
    observed, reward, terminated, truncated, _ = env.step(np.array(action, np.float32))
    np.testing.assert_allclose(observed["observation"], (*after, 6.0, 6.0), atol=1e-6)
    assert (reward, terminated, truncated) == (-1.0, False, False)


def test_a_point_at_the_side_of_the_block_can_leave_it() -> None:
    at_side = np.array([-5.0, 0.0])
    np.testing.assert_array_equal(stopped(at_side, np.array([-5.2, 0.1])), [-5.2, 0.1])
    np.testing.assert_array_equal(stopped(at_side, np.array([-4.8, 0.1])), [-5.0, 0.1])


def test_an_episode_ends_within_the_tolerance_or_after_200_steps() -> None:
    env = placed((-6.0, -6.0), (-5.65, -6.0), 0.1)
    *_, reward, terminated, _, info = env.step(np.array([1.0, 0.0], np.float32))
    assert (reward, terminated, info["is_success"]) == (0.0, True, True)  # 0.05 away
    env = placed((-6.0, -6.0), (6.0, 6.0), 0.1)
    ends = [env.step(np.zeros(2, np.float32))[2:4] for _ in range(200)]
    assert ends == [(False, False)] * 199 + [(False, True)]


def test_starts_goals_and_tolerances_are_the_published_ones() -> None:
    env = SparseGoals()
    drawn = np.array([env.reset(seed=seed)[0]["observation"] for seed in range(2000)])
    starts, goals = drawn[:, :2], drawn[:, 2:]
    assert (starts >= -7).all()
    assert (starts <= -5).all()
    assert (np.abs(goals).max(1) >= 5).all()
    # the ring has four corners of 2 × 2 and four sides of 2 × 10: a corner in 16 of 96 draws
    corners = (np.abs(goals) >= 5).all(1).mean()
    assert corners == pytest.approx(1 / 6, abs=0.03)
    assert np.abs(goals.mean(0)).max() < 0.4
    assert env.curriculum is not None
    tolerances = env.curriculum.contexts[:, 0]
    assert (tolerances[0], tolerances[-1]) == pytest.approx((18.0, 0.05))
    ratios = tolerances[1:] / tolerances[:-1]
    np.testing.assert_allclose(ratios, ratios[0])


def test_without_the_extra_one_sentence_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium_robotics", None)
    with pytest.raises(rollin.RollinError, match=r"FetchReach-v4 needs .*'\.\[robotics\]'"):
        make("fetch_reach")
