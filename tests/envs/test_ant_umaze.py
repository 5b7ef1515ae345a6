"""antmaze-umaze: the compiled model, D4RL's first states, walls, goals, rewards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rollin.envs.ant_umaze import AntUmaze, MazeAnt, wall_centres
from rollin.envs.point_umaze import goal_reward, reward_at

STILL = np.zeros(8, np.float32)


@pytest.fixture(scope="module")
def env():
    made = AntUmaze()
    yield made
    made.close()


def test_the_compiled_model_is_d4rls(env):
    """Numbers of D4RL's ant.xml and maze: whatever changes upstream shows here."""
    model = env.ant.model
    assert (model.nq, model.nv, model.nu) == (15, 14, 8)
    assert model.ncam == 0  # so that it is seen from above
    assert model.opt.timestep == 0.02
    assert model.opt.integrator == 1  # RK4
    assert env.ant.frame_skip == 5
    assert env.ant.dt == pytest.approx(0.1)
    assert np.array_equal(model.actuator_gear[:, 0], [30.0] * 8)
    assert np.array_equal(model.actuator_ctrlrange, [[-1.0, 1.0]] * 8)
    joints = [model.joint(i).name for i in model.actuator_trnid[:, 0]]
    order = ["hip_4", "ankle_4", "hip_1", "ankle_1", "hip_2", "ankle_2", "hip_3", "ankle_3"]
    assert joints == order
    assert np.array_equal(model.geom_solref, [[0.02, 1]] * model.ngeom)
    assert np.array_equal(model.geom_solimp[:, :3], [[0.8, 0.8, 0.01]] * model.ngeom)
    assert np.array_equal(model.geom_friction, [[1, 0.5, 0.5]] * model.ngeom)
    assert np.array_equal(model.geom_margin, [0.01] * model.ngeom)
    assert np.array_equal(model.dof_armature, [0.0] * 6 + [1.0] * 8)
    assert np.array_equal(model.dof_damping, [0.0] * 6 + [1.0] * 8)
    degrees = np.rad2deg(model.jnt_range[1:])
    bent = [[30, 70], [-70, -30], [-70, -30], [30, 70]]
    assert np.allclose(degrees, [joint for leg in bent for joint in ([-30, 30], leg)])
    assert np.array_equal(model.qpos0, [0, 0, 0.75, 1, 0, 0, 0] + [0] * 8)
    # a sphere of 0.25 m, and capsules of 0.08 m radius, at a density of 5
    round_part = 4 / 3 * np.pi * 0.08**3
    short, long = (np.pi * 0.08**2 * np.hypot(x, x) + round_part for x in (0.2, 0.4))
    mass = 5 * (4 / 3 * np.pi * 0.25**3 + 4 * (2 * short + long))
    assert model.body_mass.sum() == pytest.approx(mass, rel=1e-6)


def test_the_walls_are_d4rls(env):
    model = env.ant.model
    walls = [i for i in range(model.ngeom) if model.geom(i).name.startswith("wall")]
    places = {tuple(model.geom_pos[i]) for i in walls}
    edge = {(x, y, 1.0) for x in range(-4, 13, 4) for y in (-4, 12)}
    edge |= {(x, y, 1.0) for x in (-4, 12) for y in range(-4, 13, 4)}
    assert places == edge | {(0.0, 4.0, 1.0), (4.0, 4.0, 1.0)}
    assert len(walls) == len(wall_centres()) == 18
    assert np.array_equal(model.geom_size[walls], [[2, 2, 1]] * 18)
    assert (model.geom_contype[walls] == 1).all()
    assert (model.geom_conaffinity[walls] == 1).all()


def test_first_states_have_d4rls_noise(env):
    states = np.stack([env.reset(seed=seed)[0]["observation"] for seed in range(300)])
    positions = (states[:, :15] - env.ant.init_qpos) / 0.1
    speeds = states[:, 15:] / 0.1
    assert stats.kstest(positions.ravel(), stats.uniform(-1, 2).cdf).pvalue > 1e-3
    assert stats.kstest(speeds.ravel(), stats.norm.cdf).pvalue > 1e-3


def test_a_step_is_gymnasiums_to_the_bit(env):
    """Its `do_simulation`, which does more than we need, moves the ant alike."""
    theirs = MazeAnt(None, 480, 480)
    generator = np.random.default_rng(1)
    for seed in range(4):
        goal = generator.uniform(-0.5, 0.5, 2)
        observed, _ = env.reset(seed=seed, options={"context": goal})
        assert np.array_equal(theirs.reset(seed=seed)[0], observed["observation"])
        for _ in range(60):
            action = generator.uniform(-1, 1, 8).astype(np.float32)
            observed, reward, *_, info = env.step(action)
            assert np.array_equal(info["outcome"], observed["observation"][:2])
            theirs.do_simulation(action, theirs.frame_skip)
            assert np.array_equal(theirs.state_vector(), observed["observation"])
            assert reward == goal_reward(theirs.data.qpos[:2], goal)
    with pytest.raises(ValueError, match="an action has shape"):
        env.step(np.zeros(1))
    theirs.close()


NEAR = st.floats(-0.6, 0.6)


@given(st.tuples(NEAR, NEAR), st.tuples(st.floats(-2, 10), st.floats(-2, 10)))
def test_the_reward_of_one_place_is_that_of_many(apart, goal):
    place = np.add(goal, apart)
    several = goal_reward(np.stack([place, place + 0.1]), np.array(goal))
    assert reward_at(place, np.array(goal)) == several[0]


def push(env: AntUmaze, place: tuple[float, float], force: tuple[float, float]) -> np.ndarray:
    """Where the torso has come after 100 steps of a push."""
    env.reset(seed=0)
    position = env.ant.init_qpos.copy()
    position[:2] = place
    env.ant.set_state(position, np.zeros(14))
    torso = env.ant.model.body("torso").id
    for _ in range(100):
        env.ant.data.xfrc_applied[torso, :2] = force
        env.step(STILL)
    env.ant.data.xfrc_applied[:] = 0
    return env.ant.data.qpos[:2].copy()


@pytest.mark.parametrize(
    ("place", "force", "axis", "wall"),
    [
        ((0.0, 0.0), (-8.0, 0.0), 0, -2.0),  # the outer walls
        ((0.0, 0.0), (0.0, -8.0), 1, -2.0),
        ((8.0, 4.0), (8.0, 0.0), 0, 10.0),
        ((0.0, 8.0), (0.0, 8.0), 1, 10.0),
        ((4.0, 0.0), (0.0, 8.0), 1, 2.0),  # the block between the arms, from three sides
        ((8.0, 4.0), (-8.0, 0.0), 0, 6.0),
        ((4.0, 8.0), (0.0, -8.0), 1, 6.0),
    ],
)
def test_a_push_is_stopped_by_a_wall(env, place, force, axis, wall):
    there = push(env, place, force)
    towards = np.sign(force[axis])
    gap = towards * (wall - there[axis])
    assert 0.2 < gap < 1.0  # the torso has a radius of 0.25 m, legs keep it off by some more
    assert towards * (there[axis] - place[axis]) > 0.5  # and it was moved


def test_a_push_goes_on_where_the_way_is_free(env):
    assert push(env, (0.0, 0.0), (8.0, 0.0))[0] > 8
    assert push(env, (8.0, 0.0), (0.0, 8.0))[1] > 8


def test_a_random_policy_stays_upright(env):
    generator = np.random.default_rng(0)
    down = 0
    for seed in range(8):
        env.reset(seed=seed)
        for step in range(500):
            observed, _, terminated, truncated, _ = env.step(
                generator.uniform(-1, 1, 8).astype(np.float32)
            )
            w, x, y, z = observed["observation"][3:7]
            up = 1 - 2 * (x**2 + y**2) / (w**2 + x**2 + y**2 + z**2)
            down += up < 0
            assert not terminated
            assert truncated == (step == 499)
    assert down == 0  # less than 2 % would be as D4RL's


def test_lying_on_its_back_does_not_end_an_episode(env):
    env.reset(seed=0)
    position = env.ant.init_qpos.copy()
    position[3:7] = [0, 1, 0, 0]
    env.ant.set_state(position, np.zeros(14))
    ends = {env.step(STILL)[2:4] for _ in range(20)}
    assert ends == {(False, False)}


def test_the_path_is_24_metres_in_steps_of_one(env):
    curriculum = env.curriculum
    assert curriculum.K == 23
    assert curriculum.threshold(7) == 200
    assert np.array_equal(curriculum.contexts[[0, 7, 15, 23]], [[1, 0], [8, 0], [8, 8], [0, 8]])
    assert np.allclose(np.linalg.norm(np.diff(curriculum.contexts, axis=0), axis=1), 1.0)
    assert np.array_equal(env.printed.contexts[1:], curriculum.contexts)
    assert np.array_equal(env.printed.contexts[0], [0, 0])


@pytest.mark.parametrize(("parts", "behind", "place"), [(24, 8, 9.0), (18, 6, 28 / 3), (12, 4, 10)])
def test_the_first_goal_behind_the_corner_is_where_the_papers_rows_wait(env, parts, behind, place):
    """Published plateaus .36, .35 and .37 – .40 are 4/11, 6/17 and 8/23: k of 1/Δ - 1."""
    curriculum = env.curriculum.changed(delta=1 / parts)
    assert len(curriculum.contexts) == parts
    metres = 24 * np.array(curriculum.positions)
    assert (metres > 8 + 1e-9).argmax() == behind
    assert metres[behind] == pytest.approx(place)
    assert curriculum.kappas[behind] == behind / (parts - 1)


def test_the_goal_is_shown_where_it_is(env):
    env.reset(seed=0, options={"context": [8.0, 3.0]})
    assert np.array_equal(env.ant.data.site("goal").xpos[:2], [8.0, 3.0])
