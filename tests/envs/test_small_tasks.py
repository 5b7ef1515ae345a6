"""Tasks with a point mass: their motion, rewards, solvability and drawings."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import rollin
from rollin import RollinError
from rollin.envs.key_door import KEY, KeyDoor
from rollin.envs.point_speed import PointSpeed
from rollin.envs.point_umaze import DeadEnd, PointMaze, PointUmaze
from rollin.tasks import TASKS

MAZES = (PointUmaze, DeadEnd, KeyDoor)
MADE = (*MAZES, PointSpeed)
POINT = [0x7C, 0x3A, 0xED]


def played(env: Any, act: Any, context: Any = None, seed: int = 3) -> tuple[float, list[Any]]:
    """Return of an episode, and the infos of its steps."""
    options = None if context is None else {"context": np.array(context, float)}
    observed, _ = env.reset(seed=seed, options=options)
    total, infos, over = 0.0, [], False
    while not over:
        observed, reward, terminated, over, info = env.step(act(observed["observation"]))
        assert not terminated
        total += reward
        infos.append(info)
    return total, infos


def along(corners: Any) -> Any:
    """A controller that passes the corners in turn and stays at the last."""
    left = [np.array(corner) for corner in corners]

    def act(observed: Any) -> Any:
        x, v = observed[:2], observed[2:4]
        if len(left) > 1 and np.linalg.norm(left[0] - x) < 0.45:
            left.pop(0)
        return np.clip(2 * (left[0] - x) - 4 * v, -1, 1)

    return act


# ------------------------------------------------------------------ all of them


@pytest.mark.parametrize("make", MADE)
def test_a_seed_repeats_an_episode_and_another_does_not(make) -> None:
    def places(seed: int) -> Any:
        env, generator = make(), np.random.default_rng(5)
        size = env.action_space.shape
        _, infos = played(env, lambda _: generator.uniform(-1, 1, size), seed=seed)
        return np.array([info["outcome"] for info in infos])

    np.testing.assert_array_equal(places(1), places(1))
    assert (places(1) != places(2)).any()


@pytest.mark.parametrize("task", ["dead-end", "key-door", "point-speed"])
def test_their_presets_are_point_umaze_s(task) -> None:
    assert TASKS[task].defaults == TASKS["point-umaze"].defaults
    state = rollin.prepare(task, hidden=(8, 8), batch=16)
    assert (state.progress.K, state.curriculum.delta) == (12, TASKS[task].delta)
    assert rollin.prepare(task, delta=1 / 48, hidden=(8, 8)).progress.K == 48
    state.close()


@pytest.mark.parametrize("make", MADE)
def test_pictures_and_drawings_show_what_happens(make) -> None:
    env = make(render_mode="rgb_array")
    _, infos = played(env, lambda _: env.action_space.sample())
    picture = env.render()
    assert picture.shape == (320, 320, 3)
    assert (picture == POINT).all(-1).sum() > 50
    assert make().render() is None
    ax = Figure().subplots()
    env.draw(ax, env.context, [np.array([info["outcome"] for info in infos])])
    assert len(ax.lines) + len(ax.collections) + len(ax.patches) >= 2  # more than the way


@pytest.mark.parametrize("make", MADE)
def test_bad_options_are_one_sentence(make) -> None:
    with pytest.raises(RollinError, match="horizon must be at least 1, got 0"):
        make(horizon=0)
    env = make()
    far = np.full(env.context_space.shape, 99.0)
    with pytest.raises(RollinError, match="lies outside the env's context_space"):
        env.reset(options={"context": far})


# ------------------------------------------------------------------ mazes


@given(st.sampled_from(MAZES), st.integers(0, 10_000), st.floats(0.05, 1.5))
def test_the_point_never_enters_a_wall_nor_passes_one(make: Any, seed: int, speed: float) -> None:
    env: PointMaze = make(max_speed=speed)
    env.reset(seed=seed)
    left, right, bottom, top = env.maze.bounds
    generator = np.random.default_rng(seed)
    env._state[:2] = generator.uniform([left, bottom], [right, top])
    if any(x0 < env._state[0] < x1 and y0 < env._state[1] < y1 for x0, x1, y0, y1 in env._blocks):
        return
    push = generator.uniform(-1, 1, 2)
    for _ in range(60):
        if generator.random() < 0.1:
            push = generator.uniform(-2, 2, 2)
        before = env._state[:2].copy()
        observed, reward, _, _, info = env.step(push)
        after = observed["observation"][:2]
        assert env.observation_space.contains(observed)
        assert reward == pytest.approx(float(env.context_reward(info["outcome"], env.context)))
        # it moves along x, then along y: neither leg may cross a wall
        for x0, x1, y0, y1 in env._blocks:  # those of now: a door is one until the key is taken
            low, high = sorted((before[0], after[0]))
            assert not (y0 < before[1] < y1 and low < x1 and high > x0)
            low, high = sorted((before[1], after[1]))
            assert not (x0 < after[0] < x1 and low < y1 and high > y0)


def test_the_straight_way_ends_at_the_wall_of_the_dead_end() -> None:
    _, infos = played(DeadEnd(), along([(8.0, 4.5)]))
    assert infos[-1]["outcome"][0] == 5.0
    _, infos = played(DeadEnd(), along([(4.0, -1.0), (4.0, -5.0)]))
    assert infos[-1]["outcome"].tolist() == pytest.approx([4.0, -2.0], abs=1e-3)


@pytest.mark.parametrize("make", MAZES)
def test_the_way_of_the_path_solves_the_last_context(make) -> None:
    total, infos = played(make(), along(make.maze.path[1:]))
    assert total > 80
    assert make().is_success(infos[-1]["outcome"], np.array(make.maze.path[-1]))


def test_the_door_opens_to_the_key_alone() -> None:
    """Straight to the door it stays shut, by the key it lets through, and the next time is shut."""
    env = KeyDoor()
    for _ in range(2):
        _, infos = played(env, along([(2.0, 4.0), (8.0, 4.0)]), (8.0, 4.0))
        assert infos[-1]["outcome"].tolist() == pytest.approx([4.0, 4.0, 0.0], abs=1e-3)
        _, infos = played(env, along([KEY, (2.0, 4.0), (8.0, 4.0)]), (8.0, 4.0))
        assert infos[-1]["outcome"].tolist() == pytest.approx([8.0, 4.0, 1.0], abs=1e-3)


def test_goals_on_the_way_to_the_door_pay_with_the_key_alone() -> None:
    """(2, 6) lies in the first room: without the key it can be reached, and pays nothing."""
    env, goal = KeyDoor(), (2.0, 6.0)
    assert played(env, along([goal]), goal)[0] == 0
    assert played(env, along([KEY, goal]), goal)[0] > 80
    assert played(env, along([(0.0, 4.0)]), (0.0, 4.0))[0] > 80
    has, not_has = np.array([2.0, 6.0, 1.0]), np.array([2.0, 6.0, 0.0])
    assert env.context_reward([has, not_has], np.array(goal)).tolist() == [1.0, 0.0]


def test_the_key_is_taken_from_half_a_metre() -> None:
    env = KeyDoor()
    for y, has in ((7.49, 0.0), (7.51, 1.0)):
        env.reset(seed=0)
        env._state[:2] = 0.0, y
        observed, _, _, _, info = env.step(np.zeros(2))
        assert (observed["observation"][4], info["outcome"][2]) == (has, has)


def test_the_key_cannot_be_relabelled() -> None:
    with pytest.raises(RollinError, match=r"Relabelling needs contexts of shape .* to_context"):
        rollin.train("key-door", relabel=True, steps=300)


# ------------------------------------------------------------------ point-speed


def test_the_runner_moves_as_its_equation_says() -> None:
    """A constant force f along y: v = f (1 - 0.95^t), from rest."""
    env = PointSpeed()
    env.reset(seed=0)
    env._state[:] = 5.0, 0.0, 0.0, 0.0
    y = 0.0
    for t in range(1, 9):
        observed, _, _, _, info = env.step(np.array([0.0, 0.5]))
        v = 0.5 * (1 - 0.95**t)
        y += v
        np.testing.assert_allclose(observed["observation"], [5.0, y, 0.0, v], atol=1e-12)
        radius = np.hypot(5.0, y)
        np.testing.assert_allclose(info["outcome"], [5 * v / radius, radius - 5], atol=1e-12)


@pytest.mark.parametrize(
    ("outcome", "wanted", "reward"),
    [
        ((0.2, 0.0), 0.2, 1.0),
        ((0.2299, 0.4999), 0.2, 1.0),
        ((0.2301, 0.0), 0.2, 0.0),
        ((0.1699, 0.0), 0.2, 0.0),
        ((0.2, 0.5001), 0.2, 0.0),
        ((-0.2, 0.0), 0.2, 0.0),  # the wrong way round
    ],
)
def test_only_the_band_on_the_track_pays(outcome, wanted, reward) -> None:
    assert PointSpeed().context_reward(np.array(outcome), np.array([wanted])) == reward


def runner(wanted: float) -> Any:
    """A controller: centripetal force, then speed and place with what is left."""

    def act(observed: Any) -> Any:
        x, v = observed[:2], observed[2:]
        radius = np.linalg.norm(x)
        out = x / radius
        ahead = np.array([-out[1], out[0]])
        speed, drift = v @ ahead, v @ out
        inward = speed**2 / radius + 0.15 * drift + 0.03 * (radius - 5)
        forward = 0.05 * speed + 0.5 * (wanted - speed)
        return np.clip((forward * ahead - inward * out) / 0.05, -1, 1)

    return act


def test_every_speed_can_be_held_and_the_faster_pay_less() -> None:
    returns = [played(PointSpeed(), runner(v), [v])[0] for v in (0.0, 0.1, 0.2, 0.3, 0.4)]
    assert returns == sorted(returns, reverse=True)
    assert returns[0] == 200
    assert 100 < returns[-1] < 195
