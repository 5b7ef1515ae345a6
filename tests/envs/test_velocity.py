"""walker, hopper, humanoid, ant: Gym's v4 robots with the paper's contextual healthy reward."""

import sys
import warnings
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.mujoco.ant_v5 import AntEnv
from gymnasium.envs.mujoco.humanoid_v5 import HumanoidEnv
from gymnasium.envs.mujoco.walker2d_v5 import Walker2dEnv
from hypothesis import assume, given
from hypothesis import strategies as st

from rollin import Curriculum, RollinError
from rollin.cli import main
from rollin.envs.context_env import ContextEnv
from rollin.envs.registry import make_contextual, make_raw
from rollin.envs.velocity import ROBOTS, Velocity

PAID = {"walker": 1.0, "hopper": 1.0, "humanoid": 5.0, "ant": 1.0}  # Gym's own healthy rewards


def v4(robot: str) -> Any:
    name = V5[robot][0].replace("v5", "v4")
    with warnings.catch_warnings():  # Gymnasium calls its v4 out of date
        warnings.simplefilter("ignore")
        try:
            return gymnasium.make(name).unwrapped
        except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv):
            pytest.skip(f"Gymnasium no longer ships {name}")


@cache
def handle(robot: str) -> ContextEnv:
    """One env of a robot for all tests that ask it for rewards alone."""
    return make_contextual(robot)


def as_v5(robot: str, observation: np.ndarray) -> np.ndarray:
    """v4's observation without the numbers of the world's own body and free joint: always zero."""
    if robot != "humanoid":
        return observation
    sizes = [22, 23, 14 * 10, 14 * 6, 23, 14 * 6]
    parts = np.split(observation, np.cumsum(sizes)[:-1])
    for i, zeros in ((2, 10), (3, 6), (4, 6), (5, 6)):
        assert not parts[i][:zeros].any()
        parts[i] = parts[i][zeros:]
    return np.concatenate(parts)


@pytest.mark.parametrize("robot", ROBOTS)
def test_trajectories_and_rewards_are_those_of_v4(robot):
    old: Any = v4(robot)
    new: Any = Velocity(robot)
    generator = np.random.default_rng(0)
    falls = 0
    for seed in range(1, 12):
        before, _ = old.reset(seed=seed)
        after, _ = new.reset(seed=seed, options={"context": [0.1 * (seed % 10 + 1)]})
        assert np.array_equal(as_v5(robot, before), after["observation"])
        for _ in range(60):
            action = generator.uniform(-1, 1, new.action_space.shape) * new.action_space.high
            a = action.astype(np.float32)
            seen, paid, fallen, _, their_info = old.step(a)
            observed, reward, terminated, _, info = new.step(a)
            assert np.array_equal(as_v5(robot, seen), observed["observation"])
            assert info["x_velocity"] == their_info["x_velocity"]
            assert terminated == fallen
            # v4 pays for health on every step, also on the last one of a fall
            assert reward == pytest.approx(paid - PAID[robot] + info["reward_survive"], abs=1e-12)
            if fallen:
                falls += 1
                break
        if robot == "ant":  # which hardly ever falls: throw it up
            for env in (old, new.robot):
                position = env.data.qpos.copy()
                position[2] = 2.0
                env.set_state(position, env.data.qvel.copy())
            _, paid, fallen, _, _ = old.step(np.zeros(8, np.float32))
            _, reward, terminated, _, info = new.step(np.zeros(8, np.float32))
            assert (fallen, terminated) == (True, True)
            assert reward == pytest.approx(paid - 1 + info["reward_survive"], abs=1e-12)
            falls += 1
    assert falls
    old.close()
    new.close()


# Gymnasium's id, and what of its v5 is not its default in our tasks
V5 = {
    "walker": ("Walker2d-v5", {"xml_file": "walker2d.xml"}),
    "hopper": ("Hopper-v5", {}),
    "humanoid": ("Humanoid-v5", {"contact_cost_weight": 0.0}),
    "ant": ("Ant-v5", {"contact_cost_weight": 0.0, "include_cfrc_ext_in_observation": False}),
}
FORCES = "include_cfrc_ext_in_observation"


def assert_steps_alike(own: Any, theirs: Any, action: np.ndarray) -> bool:
    """One step of both, to the bit; returns whether the robot fell."""
    seen, _, fallen, _, their_info = theirs.step(action)
    observed, reward, terminated, _, info = own.step(action)
    assert np.array_equal(seen, observed["observation"], equal_nan=True)
    assert terminated == fallen
    assert info.keys() == {*their_info, "outcome"}
    for name in their_info.keys() - {"reward_survive"}:
        assert np.array_equal(their_info[name], info[name], equal_nan=True), name
    velocity, cost = float(their_info["x_velocity"]), -float(their_info["reward_ctrl"])
    low, high = own.band(own.context)
    healthy = own.high if low <= velocity < high else own.low
    assert reward == float(their_info["reward_forward"]) + healthy - cost
    assert info["outcome"].tolist() == [velocity, cost]
    return terminated


@pytest.mark.parametrize(
    ("robot", "own_options", "options"),
    [
        *((robot, {}, {}) for robot in V5),
        ("ant", {"contact_forces": True, "forward": 3}, {FORCES: True, "forward_reward_weight": 3}),
        ("humanoid", {"contact_forces": False}, {FORCES: False}),
        ("hopper", {"high": 2.0, "low": 1.0}, {}),
    ],
)
def test_a_step_is_gymnasiums_to_the_bit(robot, own_options, options):
    name, other = V5[robot]
    theirs: Any = gymnasium.make(name, **{**other, **options}).unwrapped
    own: Any = Velocity(robot, **own_options)
    generator = np.random.default_rng(3)
    falls = 0
    for seed in range(8):
        first, _ = theirs.reset(seed=seed)
        observed, _ = own.reset(seed=seed, options={"context": [generator.uniform()]})
        assert np.array_equal(first, observed["observation"])
        for t in range(60):
            action = generator.uniform(-1, 1, own.action_space.shape) * own.action_space.high
            if t == 20:  # somebody else moves the robot, and makes it spin
                for env in (theirs, own.robot):
                    place = env.data.qpos.copy()
                    place[0] += 1.0
                    env.set_state(place, env.data.qvel + 3.0 * seed)
            falls += assert_steps_alike(own, theirs, action.astype(np.float32 if seed else None))
    assert 0 < falls < 8 * 60
    theirs.close()
    own.close()


@pytest.mark.parametrize(
    ("robot", "place", "speed"),
    [
        ("hopper", {}, {5: 99.0}),  # healthy below 100, whatever the others add to it
        ("hopper", {}, {3: 70.0, 4: 75.0, 5: -80.0}),
        ("hopper", {}, {5: 500.0}),
        ("hopper", {}, {4: -500.0}),
        ("hopper", {3: 101.0}, {}),
        ("hopper", {1: 150.0}, {}),  # its height has no bound
        ("walker", {}, {8: 99.0, 7: -99.0}),
        ("ant", {2: 0.9}, {13: 1e5}),
        ("ant", {2: 1.01}, {}),
        ("ant", {2: 1.0}, {2: 0.0}),
        ("ant", {2: 0.2}, {2: 0.0}),
        ("ant", {2: 0.19}, {}),
        ("humanoid", {2: 0.99}, {}),
        ("humanoid", {2: 2.01}, {}),
    ],
)
def test_a_robot_is_healthy_where_gymnasium_says_so(robot, place, speed):
    """At the edges of health, also where a step has to look twice."""
    name, options = V5[robot]
    theirs: Any = gymnasium.make(name, **options).unwrapped
    own: Any = Velocity(robot)
    theirs.reset(seed=0)
    own.reset(seed=0)
    for env in (theirs, own.robot):
        env.model.opt.timestep = 1e-12  # so that it stays there
        position, velocity = env.data.qpos.copy(), env.data.qvel.copy()
        for values, changes in ((position, place), (velocity, speed)):
            values[list(changes)] = list(changes.values())
        env.set_state(position, velocity)
    still = np.zeros(own.action_space.shape, np.float32)
    observed, _, terminated, _, _ = own.step(still)
    seen, _, fallen, _, _ = theirs.step(still)
    assert terminated == fallen
    assert np.array_equal(seen, observed["observation"])


@pytest.mark.parametrize("robot", ROBOTS)
def test_actions_of_a_wrong_shape_are_refused(robot):
    env = Velocity(robot)
    env.reset(seed=0)
    for action in (np.zeros(1), np.zeros(2), 0.5):
        with pytest.raises(ValueError, match="an action has shape"):
            env.step(np.asarray(action))


def test_v5_itself_would_not_do():
    """What is undone of v5 is really there: if Gymnasium changes it, the options can go."""
    walker: Any = ROBOTS["walker"].make()
    today: Any = Walker2dEnv()
    frictions = [env.model.geom("foot_geom").friction[0] for env in (walker, today)]
    assert frictions == [0.9, 1.9]
    assert AntEnv().observation_space.shape == (105,)
    humanoid = HumanoidEnv()
    humanoid.reset(seed=0)
    costs = [humanoid.step(np.zeros(17, np.float32))[4]["reward_contact"] for _ in range(30)]
    assert min(costs) < 0


# robot, level, x-velocity, control cost, reward: by hand from the paper's table
REWARDS = [
    ("walker", 0.5, 2.5, 0.0, 2.5 + 1.5),  # the band is [2.5, 3)
    ("walker", 0.5, 2.999, 0.006, 2.999 + 1.5 - 0.006),
    ("walker", 0.5, 3.0, 0.006, 3.0 + 0.5 - 0.006),
    ("walker", 1.0, 5.2, 0.0, 5.2 + 1.5),
    ("hopper", 0.1, 0.3, 0.002, 0.3 + 1.5 - 0.002),  # [0.3, 0.6)
    ("hopper", 0.1, 0.29, 0.002, 0.29 + 0.5 - 0.002),
    ("hopper", 1.0, 3.29, 0.0, 3.29 + 1.5),
    ("hopper", 1.0, -1.0, 0.003, -1.0 + 0.5 - 0.003),
    ("humanoid", 0.3, 0.35, 0.7, 1.25 * 0.35 + 7.5 - 0.7),  # [0.3, 0.4)
    ("humanoid", 0.3, 0.41, 0.7, 1.25 * 0.41 + 2.5 - 0.7),
    ("ant", 0.2, 1.2, 1.0, 1.2 + 1.5 - 1.0),  # [1.2, 1.8)
    ("ant", 0.2, 1.8, 1.0, 1.8 + 0.25 - 1.0),
    ("ant", 1.0, 6.59, 0.0, 6.59 + 1.5),
]


@pytest.mark.parametrize(("robot", "level", "velocity", "cost", "reward"), REWARDS)
def test_rewards_are_those_worked_out_by_hand(robot, level, velocity, cost, reward):
    env = handle(robot)
    found = env.compute_reward(np.array([velocity, cost]), np.array([level]))
    assert float(found) == pytest.approx(reward)
    inside = reward + cost - velocity > PAID[robot]  # more for health than Gym pays
    assert env.is_success(np.array([velocity, cost]), np.array([level])) == inside


def curricula(robot: str) -> tuple[Curriculum, Curriculum]:
    env = Velocity(robot)
    assert env.curriculum is not None
    assert env.printed is not None
    return env.curriculum, env.printed


def test_curricula_are_those_that_the_papers_tables_fit():
    """Ten levels, κ = k/9, and R(k/10) at index k; as printed, both are the level itself."""
    for robot, (first, last) in {"walker": (500, 4550), "humanoid": (2500, 4750)}.items():
        fitted, printed = curricula(robot)
        for curriculum in (fitted, printed):
            assert np.array_equal(curriculum.contexts.ravel(), [n / 10 for n in range(1, 11)])
            assert curriculum.episodes == 10
        assert fitted.kappas == pytest.approx(np.arange(10) / 9)
        assert printed.kappas == pytest.approx(np.arange(1, 11) / 10)
        assert (fitted.threshold(0), fitted.threshold(9)) == pytest.approx((first, last))
        assert printed.threshold(9) == 5000
        below = [fitted.threshold(k + 1) for k in range(9)]
        assert below == pytest.approx([printed.threshold(k) for k in range(9)])
    assert [ROBOTS["hopper"].curriculum.threshold(k) for k in (7, 8)] == pytest.approx([3650, 4100])
    assert [ROBOTS["ant"].curriculum.threshold(k) for k in (0, 3)] == pytest.approx([500, 1850])
    # a threshold belongs to its level, whatever else is changed
    for start, delta in ((0.5, 0.1), (0.1, 0.2), (0.0, 0.3)):
        other = ROBOTS["hopper"].curriculum.changed(start=start, delta=delta)
        for k, level in enumerate(other.positions):
            assert other.threshold(k) == pytest.approx(500 + 4500 * (level - 0.1))


def test_hopper_cannot_pass_the_last_printed_thresholds_inside_the_band():
    """The largest return in the band lies below R(level) at 0.9 and 1, and above R(k/10) always."""
    hopper, (fitted, printed) = ROBOTS["hopper"], curricula("hopper")
    for k, level in enumerate(fitted.positions):
        most = 1000 * (hopper.lam * (level + 0.1) + hopper.high)
        assert (most > printed.threshold(k)) == (level < 0.85)
        assert most > fitted.threshold(k)


@given(
    robot=st.sampled_from(sorted(ROBOTS)),
    velocity=st.one_of(st.floats(-2, 8), st.integers(-5, 80).map(lambda n: n / 10)),
)
def test_a_relabelled_context_is_fulfilled_where_one_is(robot, velocity):
    env = handle(robot)
    lam = ROBOTS[robot].lam
    edge = round(10 * velocity / lam) * lam / 10
    assume(abs(velocity - edge) > 1e-5)  # float32 cannot tell more
    outcome = np.array([[velocity, 0.0]])
    context = env.to_context(outcome)
    assert np.isin(np.round(context, 9), np.round(np.arange(1, 11) / 10, 9)).all()
    assert env.are_successes(outcome, context) == env.are_successes(
        outcome.astype(np.float32), context.astype(np.float32)
    )  # as the replay keeps them
    fulfilled = bool(env.are_successes(outcome, context)[0])
    assert fulfilled == (round(lam * 0.1, 9) <= velocity < round(lam * 1.1, 9))


def test_episodes_end_by_time_or_by_a_fall():
    env = Velocity("ant", horizon=7)
    env.reset(seed=0)
    ends = [env.step(np.zeros(8, np.float32))[2:4] for _ in range(7)]
    assert ends == [(False, False)] * 6 + [(False, True)]
    assert Velocity("hopper").horizon == 1000


def test_an_unknown_robot_is_one_sentence():
    with pytest.raises(RollinError, match=r"one of walker, hopper.*'hoper'.*hopper"):
        Velocity("hoper")


@pytest.fixture
def without_mujoco(monkeypatch) -> None:
    """MuJoCo as if it were not installed, and nothing that has imported it before."""
    for name in list(sys.modules):
        if name.startswith(("gymnasium.envs.mujoco", "rollin.envs.ant_umaze")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mujoco", None)


@pytest.mark.usefixtures("without_mujoco")
@pytest.mark.parametrize("task", ["hopper", "antmaze-umaze", "Hopper-v5"])
def test_without_mujoco_one_sentence_says_what_to_install(task, tmp_path, capsys) -> None:
    assert main(["train", task, "--out", str(tmp_path / "run")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    how = "run pip install '.[mujoco]' in a clone of rollin"
    assert said == f"rollin: {task} needs MuJoCo, which is not installed: {how}."
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("without_mujoco")
@pytest.mark.parametrize("task", ["ant", "rollin/AntmazeUmaze-v0"])
def test_without_mujoco_python_is_told_the_same(task) -> None:
    with pytest.raises(RollinError, match=r"needs MuJoCo.*pip install '\.\[mujoco\]'"):
        make_raw(task)
    make_raw("point-umaze").close()
