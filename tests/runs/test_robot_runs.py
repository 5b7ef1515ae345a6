"""Runs of the paper's robots: presets, windows, pictures and video."""

import os
import re
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image, ImageSequence

from rollin import Contextual, Policy, RollinError, check_env
from rollin.cli import main
from rollin.cli.train import parse_run
from rollin.curriculum.progress import Advance, Progress
from rollin.deep.evaluate import evaluate_policy
from rollin.envs import context_env
from rollin.envs import robot as robot_env
from rollin.envs.context_env import ContextEnv
from rollin.envs.registry import make_contextual
from rollin.envs.velocity import Velocity
from rollin.runs import driver
from rollin.runs.curricula import curriculum_of
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record, rollin_run, run
from rollin.runs.engines.rollin_options import METRICS
from rollin.runs.engines.rollin_run import EPISODE_COLUMNS, means_at
from rollin.runs.files import read_json
from rollin.runs.metrics import read_metrics
from rollin.runs.records import MetricAt
from rollin.runs.spec import Membership
from tests.killing import stop_at
from tests.runs.test_rollin_runs import line
from tests.toys import Line

ROOT = Path(__file__).parents[2]
ROBOTS = ("antmaze-umaze", "walker", "hopper", "humanoid", "ant")
SMALL = ("--hidden", "8", "8", "--batch", "16", "--warmup", "100", "--eval-episodes", "1")


# ------------------------------------------------------------------ presets


@pytest.mark.parametrize("task", ROBOTS)
def test_presets_are_the_papers_tables(task):
    config = parse_run([task])[0].config
    assert config.steps == (3_000_000 if task == "antmaze-umaze" else 1_000_000)
    sac, algorithm = config.sac, config.algorithm
    assert (sac.hidden, sac.batch, sac.gamma, sac.tau) == ((256, 256), 256, 0.99, 0.005)
    assert (sac.learning_rate, sac.initial_temperature) == (3e-4, 1.0)
    assert (algorithm.warmup, algorithm.beta, algorithm.p) == (10_000, 0.1, 1e-5)
    assert config.last == 50_000
    env = make_contextual(task)
    walked = curriculum_of(env, config)
    assert walked.episodes == 10
    assert (23 if task == "antmaze-umaze" else 9) == walked.K
    assert env.observation_size + env.context_size == {
        "antmaze-umaze": 31, "walker": 18, "hopper": 12, "humanoid": 349, "ant": 28
    }[task]  # fmt: skip
    env.close()


@pytest.mark.parametrize("parts", [24, 18, 12])
def test_even_spacing_begins_at_the_start_and_has_the_published_kappas(parts):
    """1/Δ goals from (0, 0) to (0, 8) along 24 m; by default the first is Δ along."""
    env = make_contextual("antmaze-umaze")
    delta = ["antmaze-umaze", "--delta", f"1/{parts}"]
    default = curriculum_of(env, parse_run(delta)[0].config)
    even = curriculum_of(env, parse_run([*delta, "--spacing", "even"])[0].config)
    assert len(even.contexts) == len(default.contexts) == parts
    assert even.kappas == default.kappas == pytest.approx(np.arange(parts) / (parts - 1))
    assert even.contexts[0].tolist() == [0, 0]
    assert default.contexts[0].tolist() == pytest.approx([24 / parts, 0])
    assert even.contexts[-1].tolist() == default.contexts[-1].tolist() == [0, 8]
    lengths = np.abs(np.diff(even.contexts, axis=0)).sum(1)  # the path has right angles
    assert lengths == pytest.approx(np.full(parts - 1, 24 / (parts - 1)))
    assert even.threshold(0) == 200
    env.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--start", "0"], "--spacing even and --start both say where contexts are"),
        (["--literal"], "--spacing even and --as-printed both"),
        (["--stride", "halving"], "--spacing even and --stride halving both"),
        (["--teacher", "uniform"], "--spacing even and --teacher uniform both"),
        (["--delta", "0.3"], "1/Δ to be a whole number from 2 on, got Δ = 0.3"),
        (["--delta", "1"], "1/Δ to be a whole number from 2 on, got Δ = 1"),
        (["--rule", "gap"], "--spacing even belongs to a curriculum with a path"),
    ],
)
def test_even_spacing_is_refused_where_contexts_are_placed_otherwise(options, words):
    env = make_contextual("point-umaze")
    with pytest.raises(RollinError, match=re.escape(words)):
        curriculum_of(env, parse_run(["point-umaze", "--spacing", "even", *options])[0].config)
    env.close()


# ------------------------------------------------------------------ quantities


def test_quantities_are_those_worked_out_by_hand():
    progress = Progress(2, 2, [Advance(40, 1, ""), Advance(70, 2, "")], kappas=(0.1, 0.5, 1.0))
    episodes = {
        "step": [30, 40, 60, 70, 95],
        "length": [30, 10, 20, 10, 25],
        "return": [1.0, 2.0, 3.0, 5.0, 8.0],
        "speed": [0.0, 1.0, 2.0, 5.0, 9.0],
    }
    assert progress.kappa_at(80) == 1.0
    assert progress.mean_kappa(30, 80) == pytest.approx((10 * 0.1 + 30 * 0.5 + 10 * 1.0) / 50)
    assert means_at(80, episodes, ["speed"], last=50) == {
        "return": pytest.approx((2 + 3 + 5) / 3),
        "speed": pytest.approx((10 * 1 + 20 * 2 + 10 * 5) / 40),
    }
    assert progress.kappa_at(69) == 0.5
    assert progress.kappa_at(39) == 0.1
    assert means_at(20, episodes, ["speed"], last=50) == {"return": None, "speed": None}


@pytest.mark.parametrize(
    ("scale", "steps"), [(1.0, [300, 600, 700]), (0.25, [*range(75, 701, 75)])]
)
def test_a_row_stands_at_every_half_million_steps_of_the_full_length(
    tmp_path, monkeypatch, scale, steps
):
    monkeypatch.setattr(rollin_run, "EVERY", 300)
    run(line(700, log_every=700), tmp_path / "a", of=Membership("f", {}, scale))
    found = read_metrics(tmp_path / "a" / "metrics.csv")["step"]
    assert found == sorted({*steps, 700})


def test_goals_are_evaluated_at_every_milestone_and_change_no_training(tmp_path, monkeypatch):
    """A row for each reading; of a run that goes on, too, and the last is the result's."""
    monkeypatch.setattr(rollin_run, "EVERY", 300)
    spec = line(1000, goals=3, log_every=100)
    run(spec, tmp_path / "a", until=700)
    unfinished = read_record(RunDirectory(tmp_path / "a"))
    run(spec, tmp_path / "a")
    told = read_metrics(tmp_path / "a" / "goals.csv")
    assert told["step"] == [300, 600, 900, 1000]
    record = read_record(RunDirectory(tmp_path / "a"))
    for quantity, prefix in (("goals", ""), ("goals_drawn", "drawn_")):
        for row, step in enumerate((300, 600, 900, 1000)):
            solved = [told[f"{prefix}success_{i + 1}"][row] >= 0.8 for i in range(3)]
            assert record.value(MetricAt(quantity, step)) == pytest.approx(np.mean(solved))
        assert unfinished.value(MetricAt(quantity, 600)) == record.value(MetricAt(quantity, 600))
        assert unfinished.value(MetricAt(quantity)) is None
    run(spec, tmp_path / "b")
    run(line(1000, log_every=100), tmp_path / "without")
    for name in ("metrics.csv", "episodes.csv"):
        assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "a" / name).read_bytes()
        whole = read_metrics(tmp_path / "b" / name)
        for column, values in read_metrics(tmp_path / "without" / name).items():
            np.testing.assert_array_equal(values, whole[column])
    assert (tmp_path / "b" / "goals.csv").read_bytes() == (
        tmp_path / "a" / "goals.csv"
    ).read_bytes()


def test_goals_tell_the_mode_and_drawn_actions_apart(tmp_path):
    """Against an evaluation of the exported policy on each goal."""
    spec = line(600, goals=3)
    run(spec, tmp_path / "a")
    told = read_metrics(tmp_path / "a" / "goals.csv")
    env = make_contextual(spec.task)
    policy = Policy.load(tmp_path / "a")
    assert env.curriculum is not None
    for i, goal in enumerate(env.curriculum.contexts[1:]):
        found = evaluate_policy(policy, env, goal, 5)
        assert told[f"return_{i + 1}"][-1] == pytest.approx(found.mean, rel=1e-5)
    assert any(told[f"drawn_return_{i + 1}"] != told[f"return_{i + 1}"] for i in range(3))


def test_a_run_keeps_the_means_of_measures(tmp_path):
    spec = line(900, last=200)
    run(spec, tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    metrics = read_metrics(tmp_path / "a" / "metrics.csv")
    episodes = {n: np.array(c) for n, c in read_metrics(tmp_path / "a" / "episodes.csv").items()}
    inside = episodes["step"] > 700
    weights = episodes["length"][inside]
    for name in ("place", "push"):
        mean = np.average(episodes[name][inside], weights=weights)
        assert result[name] == metrics[name][-1] == pytest.approx(mean)
        between = (episodes["step"] > 150) & (episodes["step"] <= 300)
        row = metrics["step"].index(300)
        mean = np.average(episodes[name][between], weights=episodes["length"][between])
        assert metrics[f"train_{name}"][row] == pytest.approx(mean)
    assert 0 < np.abs(episodes["push"]).max() <= 2


def test_measures_of_one_step_episodes_are_the_steps_own(tmp_path):
    spec = line(200, log_every=200, env_options=("length=1",))
    run(spec, tmp_path / "a")
    episodes = read_metrics(tmp_path / "a" / "episodes.csv")
    rewards = [max(0.0, 1 - abs(x)) if abs(x) <= 0.5 else 0.0 for x in episodes["place"]]
    first = [i for i, k in enumerate(episodes["k"]) if k == 0]  # under the goal 0
    assert np.allclose(np.array(episodes["return"])[first], np.array(rewards)[first])


def test_a_measure_that_is_not_there_is_told_before_anything_is_written(tmp_path):
    with pytest.raises(RollinError, match="must give the numbers place, push in the info"):
        run(line(env_options=("breaks=unmeasured",)), tmp_path / "a")
    assert not (tmp_path / "a").exists()
    with pytest.raises(RollinError, match="must give the numbers place, push in the info"):
        check_env(Line(breaks="unmeasured"))


def test_a_run_does_not_go_on_with_other_measures(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)
    stop_at(line(600), tmp_path / "a", 200)
    for other in (("push",), ("push", "place")):
        monkeypatch.setattr(Line, "measures", other)
        with pytest.raises(RollinError, match="is no longer the task that"):
            run(line(600), tmp_path / "a")


def test_the_names_of_measures_are_not_those_of_columns():
    assert {*EPISODE_COLUMNS, "kappa"} <= set(context_env.RESERVED)
    assert {m.name.removeprefix("train_") for m in METRICS if m.name.startswith("train_")} <= set(
        context_env.RESERVED
    )


class Painter(gymnasium.Env):
    """A plain env that has a `draw` and a `measures` of its own, with other meanings."""

    def __init__(self) -> None:
        self.observation_space = self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, True, {"power": 2.0}

    def draw(self):
        raise AssertionError

    def measures(self):
        raise AssertionError


def test_attributes_of_a_wrapped_env_are_not_taken_for_ours():
    box = gymnasium.spaces.Box(-1, 1, (1,), np.float64)

    def reward(outcome, context):
        return outcome[..., 0] - context[..., 0]

    env = ContextEnv(gymnasium.wrappers.TimeLimit(Contextual(Painter(), box, reward), 5))
    assert env.measures == ()
    axes: Any = Figure().subplots()
    env.draw(axes, np.zeros(1), [np.array([[0.0], [3.0]])])
    assert [list(drawn.get_ydata()) for drawn in axes.lines] == [[0.0, 3.0]]
    measured = ContextEnv(Contextual(Painter(), box, reward, measures=("power",)))
    measured.reset(np.zeros(1))
    assert measured.step(np.zeros(1, np.float32)).measured == (2.0,)


def test_a_wrapper_outside_may_name_measures():
    class Doubled(gymnasium.Wrapper):
        measures = ("double",)

        def step(self, action: Any) -> Any:
            *rest, info = self.env.step(action)
            return *rest, {**info, "double": 2 * info["place"]}

    env = ContextEnv(Doubled(Line()))
    env.reset(np.zeros(1))
    seen = env.step(np.zeros(1, np.float32))
    assert seen.measured == (pytest.approx(2 * seen.outcome[0]),)


# ------------------------------------------------------------------ as a user runs it


@pytest.mark.parametrize("task", ROBOTS)
def test_every_robot_trains_evaluates_and_is_drawn(task, tmp_path):
    out = tmp_path / "a"
    extra = ["--delta", "1/24", "--geometric"] if task == "antmaze-umaze" else []
    short = ["--steps", "300", "--log-every", "150", "--horizon", "60"]
    assert main(["train", task, *extra, "--beta", "0.1", *short, *SMALL, "--out", str(out)]) == 0
    result = read_json(out / "result.json")
    assert result["env_steps"] == 300
    assert ("x_velocity" in result) == (task != "antmaze-umaze")
    picture = tmp_path / "p.png"
    command = ["evaluate", str(out), "--episodes", "2", "--contexts", "current"]
    assert main([*command, "--picture", str(picture), "--json", str(tmp_path / "t.json")]) == 0
    with Image.open(picture) as image:
        assert min(image.size) > 200
    (row,) = read_json(tmp_path / "t.json")["contexts"]
    assert ("x_velocity_mean" in row) == (task != "antmaze-umaze")


def test_evaluations_are_of_other_episodes_and_measured_over_steps(tmp_path):
    run(line(300), tmp_path / "a")
    command = ["evaluate", str(tmp_path / "a"), "--episodes", "4"]
    assert main([*command, "--seed", "5", "--json", str(tmp_path / "t.json")]) == 0
    row = read_json(tmp_path / "t.json")["contexts"][0]
    env, policy = make_contextual("tests.toys:Line"), Policy.load(tmp_path / "a")
    goal = np.array([0.0])
    returns, pushes = [], []
    for seed in range(5, 9):
        seen, _ = env.reset(goal, seed)
        total, done = 0.0, False
        while not done:
            step = env.step(policy.squashed(seen, goal))
            seen, total = step.observation, total + step.reward
            pushes.append(step.measured[1])
            done = step.truncated
        returns.append(total)
    assert row["returns"] == pytest.approx(returns)
    assert len(set(row["returns"])) == 4
    assert row["push_mean"] == pytest.approx(np.mean(pushes))


def test_the_picture_of_a_velocity_shows_the_band_and_the_velocity():
    env = make_contextual("hopper")
    axes: Any = Figure().subplots()
    velocities = np.linspace(0, 2, 101)
    outcomes = np.stack([np.concatenate([[0], velocities]), np.zeros(102)], axis=1)
    env.draw(axes, np.array([0.5]), [outcomes])
    (band,) = axes.patches
    assert band.get_bbox().y0 == pytest.approx(1.5)
    assert band.get_bbox().y1 == pytest.approx(1.8)
    raw, mean = axes.lines
    assert np.array_equal(raw.get_xdata(), np.arange(1, 102))
    assert np.array_equal(raw.get_ydata(), velocities)
    steps, smooth = mean.get_data()
    assert np.allclose(smooth, np.interp(steps, np.arange(1, 102), velocities))
    assert axes.get_xlim() == (0, 101)
    env.close()


@pytest.mark.parametrize("task", ["antmaze-umaze", "point-umaze"])
def test_the_picture_of_the_maze_shows_walls_path_goal_and_places(task):
    env = make_contextual(task)
    axes: Any = Figure().subplots()
    visited = np.array([[0.0, 0.0], [1.0, 0.5], [7.0, 8.0]])
    env.draw(axes, np.array([8.0, 3.0]), [visited])
    floor, block, places = axes.collections
    assert np.array_equal(floor.get_datalim(axes.transData).extents, [-2, -2, 10, 10])
    assert np.array_equal(block.get_datalim(axes.transData).extents, [-2, 2, 6, 6])
    assert np.array_equal(places.get_offsets(), visited)
    path, goal = axes.lines
    assert np.array_equal(np.transpose(path.get_data()), [[0, 0], [8, 0], [8, 8], [0, 8]])
    apart = np.transpose(goal.get_data()) - [8.0, 3.0]
    assert np.allclose(np.linalg.norm(apart, axis=1), 0.5)
    env.close()


@pytest.mark.parametrize(
    ("breaks", "told"), [("raises", "KeyError: 'x'"), ("words", "The picture cannot be drawn")]
)
def test_a_drawing_that_fails_leaves_table_and_json(breaks, told, tmp_path, capsys, monkeypatch):
    def draw(self, axes, context, outcomes):
        if breaks == "raises":
            raise KeyError("x")
        axes.set_xlabel("$x_{$")

    monkeypatch.setattr(Line, "draw", draw)
    run(line(200), tmp_path / "a")
    out = ["--picture", str(tmp_path / "p.png"), "--json", str(tmp_path / "t.json")]
    assert main(["evaluate", str(tmp_path / "a"), *out]) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.err.count("\n") == 1
    assert "threshold" in said.out
    assert (tmp_path / "t.json").exists()
    assert not (tmp_path / "p.png").exists()


DRAWS = any(map(find_library, ("EGL", "OSMesa")))


FILMED = """
import sys
from rollin.cli import main
for run in sys.argv[1:]:
    assert main(["evaluate", run, "--video", run + ".gif"]) == 0
"""


@pytest.mark.skipif(not DRAWS, reason="neither EGL nor OSMesa is installed")
def test_a_video_without_a_display(tmp_path):
    """Of five steps and the reset, as fast as life; hopper's 125 a second are thinned to 25."""
    short = ["--steps", "120", "--horizon", "5", "--log-every", "120"]
    tasks = {"hopper": (2, 40), "antmaze-umaze": (6, 100)}
    for task in tasks:
        assert main(["train", task, *short, *SMALL, "--out", str(tmp_path / task)]) == 0
    environment = {n: v for n, v in os.environ.items() if n not in ("DISPLAY", "MUJOCO_GL")}
    command = [sys.executable, "-c", FILMED, *(str(tmp_path / task) for task in tasks)]
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stderr
    assert found.stderr == ""
    for task, (pictures, milliseconds) in tasks.items():
        assert f", {pictures} frames" in found.stdout  # of the current context alone
        with Image.open(tmp_path / f"{task}.gif") as image:
            assert image.info["duration"] == milliseconds
            shown = [frame.convert("L").tobytes() for frame in ImageSequence.Iterator(image)]
        assert len(shown) == pictures
        assert all(len(set(picture)) > 10 for picture in shown)


SEEN = """
import numpy as np, sys
from rollin.envs.velocity import Velocity
for robot in sys.argv[1:]:
    env = Velocity(robot, render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render().astype(float)
    changes = []
    for way in (12.0, 600.0):  # whole numbers of the floor's tiles; no floor is drawn 600 m wide
        env.reset(seed=0)
        position = env.robot.data.qpos.copy()
        position[0] += way
        env.robot.set_state(position, env.robot.data.qvel.copy())
        changes.append(np.abs(env.render() - before).mean())
    states = []
    for filmed in (False, True):
        env.reset(seed=1)
        for step in range(20):
            env.step(env.action_space.high)
            if filmed and step % 4 == 0:
                env.render()
        states.append(env.robot.state_vector())
    env.close()
    print(*changes, (states[0] == states[1]).all())
"""


@pytest.mark.skipif(not DRAWS, reason="neither EGL nor OSMesa is installed")
def test_camera_and_floor_run_with_the_robot_and_change_nothing():
    robots = ("walker", "hopper", "humanoid", "ant")
    environment = {**os.environ, "MUJOCO_GL": "egl" if find_library("EGL") else "osmesa"}
    command = [sys.executable, "-c", SEEN, *robots]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    for robot, line_ in zip(robots, found.stdout.splitlines(), strict=True):
        near, far, same = line_.split()
        # of 255; out of sight the robots change it by 1.5, 3, 2 and 13
        assert float(near) < (8 if robot == "ant" else 1), robot
        assert float(far) < 8, robot  # without a floor there it would be 29 to 36
        assert same == "True", robot


def test_what_is_missing_for_a_video_is_told_after_the_table(tmp_path, monkeypatch, capsys):
    short = ["--steps", "120", "--horizon", "5", "--log-every", "120"]
    assert main(["train", "hopper", *short, *SMALL, "--out", str(tmp_path / "a")]) == 0
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(robot_env, "can_draw", lambda name: False)

    def render(self):
        raise RuntimeError("no window")

    monkeypatch.setattr(Velocity, "render", render)
    capsys.readouterr()
    out = ["--video", str(tmp_path / "v.gif"), "--json", str(tmp_path / "t.json")]
    assert main(["evaluate", str(tmp_path / "a"), *out]) == 2
    said = capsys.readouterr()
    assert "no window (" in said.err
    assert "). MuJoCo can draw here neither by EGL nor by OSMesa" in said.err
    assert "apt install libegl1 libgl1-mesa-dri, or apt install libosmesa6." in said.err
    assert said.err.count("\n") == 1
    assert "threshold" in said.out
    assert (tmp_path / "t.json").exists()
    assert not (tmp_path / "v.gif").exists()


def test_renderers_are_tried_in_order(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    for works, chosen in (({"egl", "osmesa"}, "egl"), ({"osmesa"}, "osmesa")):
        monkeypatch.setattr(robot_env, "can_draw", works.__contains__)
        assert robot_env.choose_renderer() == ""
        assert os.environ.pop("MUJOCO_GL") == chosen
    monkeypatch.setenv("MUJOCO_GL", "")
    assert robot_env.choose_renderer() == ""
    assert os.environ["MUJOCO_GL"] == "osmesa"
    monkeypatch.setenv("MUJOCO_GL", "mine")
    assert robot_env.choose_renderer() == ""
    assert os.environ["MUJOCO_GL"] == "mine"


def test_a_renderer_that_is_not_there_or_hangs_cannot_draw(monkeypatch):
    assert not robot_env.can_draw("none")
    monkeypatch.setattr(robot_env, "PROBE", "import time; time.sleep(60)")
    monkeypatch.setattr(robot_env, "SECONDS", 0.2)
    assert not robot_env.can_draw("egl")
