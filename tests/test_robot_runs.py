"""Runs of the paper's robots: presets, figures, pictures and video."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from rollin import RollinError
from rollin.cli import main
from rollin.cli.train import parse_options
from rollin.curriculum import Advance, Progress
from rollin.envs import offscreen
from rollin.envs.registry import make_contextual
from rollin.runs import figures
from rollin.runs.curricula import curriculum_of
from rollin.runs.driver import run
from rollin.runs.figures import figures_at, milestones
from rollin.runs.files import read_json
from rollin.runs.store import read_metrics
from tests.test_rollin_runs import line

ROOT = Path(__file__).parents[1]
ROBOTS = ("antmaze-umaze", "walker", "hopper", "humanoid", "ant")
SMALL = ("--hidden", "8", "8", "--batch", "16", "--warmup", "100", "--eval-episodes", "1")


# ------------------------------------------------------------------ presets


@pytest.mark.parametrize("task", ROBOTS)
def test_presets_are_the_papers_tables(task):
    config = parse_options([task]).config
    assert config.steps == (3_000_000 if task == "antmaze-umaze" else 1_000_000)
    sac, algorithm = config.sac, config.algorithm
    assert (sac.hidden, sac.batch, sac.gamma, sac.tau) == ((256, 256), 256, 0.99, 0.005)
    assert (sac.learning_rate, sac.initial_temperature) == (3e-4, 1.0)
    assert (algorithm.warmup, algorithm.beta, algorithm.p) == (10_000, 0.1, 1e-5)
    assert config.last == 50_000
    env = make_contextual(task)
    walked = curriculum_of(env, config)
    assert walked.episodes == 10
    assert (24 if task == "antmaze-umaze" else 9) == walked.K
    assert env.observation_size + env.context_size == {
        "antmaze-umaze": 31, "walker": 18, "hopper": 12, "humanoid": 349, "ant": 28
    }[task]  # fmt: skip
    env.close()


# ------------------------------------------------------------------ figures


def test_figures_are_those_worked_out_by_hand():
    progress = Progress(2, 2, [Advance(40, 1, ""), Advance(70, 2, "")], kappas=(0.1, 0.5, 1.0))
    episodes = {
        "step": [30, 40, 60, 70, 95],
        "length": [30, 10, 20, 10, 25],
        "return": [1.0, 2.0, 3.0, 5.0, 8.0],
        "speed": [0.0, 1.0, 2.0, 5.0, 9.0],
    }
    found = figures_at(80, progress, episodes, ["speed"], last=50)
    assert found == {
        "kappa": 1.0,
        "kappa_mean_last": pytest.approx((10 * 0.1 + 30 * 0.5 + 10 * 1.0) / 50),
        "return_mean_last": pytest.approx((2 + 3 + 5) / 3),
        "speed_mean_last": pytest.approx((10 * 1 + 20 * 2 + 10 * 5) / 40),
    }
    assert figures_at(69, progress, episodes, [], last=50)["kappa"] == 0.5
    assert figures_at(39, progress, episodes, [], last=5)["kappa"] == 0.1
    nothing = figures_at(20, progress, episodes, ["speed"], last=50)
    assert (nothing["return_mean_last"], nothing["speed_mean_last"]) == (None, None)


def test_milestones_stand_at_every_half_million_steps():
    progress = Progress(1, 1, [Advance(600_000, 1, "")])
    episodes = {"step": [490_000, 1_200_000], "length": [490_000, 710_000], "return": [2.0, 4.0]}
    found = milestones(1_400_000, progress, episodes, [], last=50_000)
    assert list(found) == ["500000", "1000000"]
    assert [at["kappa"] for at in found.values()] == [0.0, 1.0]
    assert found["500000"]["return_mean_last"] == 2.0


def test_a_run_keeps_the_means_of_measures(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "EVERY", 300)
    spec = line(900, last=200)
    run(spec, tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    metrics = read_metrics(tmp_path / "a" / "metrics.csv")
    episodes = {n: np.array(c) for n, c in read_metrics(tmp_path / "a" / "episodes.csv").items()}
    assert list(result["milestones"]) == ["300", "600", "900"]
    last = result["milestones"]["900"]
    assert {name: result[name] for name in last} == last
    inside = episodes["step"] > 700
    weights = episodes["length"][inside]
    for name in ("place", "push"):
        mean = np.average(episodes[name][inside], weights=weights)
        assert result[f"{name}_mean_last"] == pytest.approx(mean)
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


def test_a_measure_that_is_not_there_is_told(tmp_path):
    with pytest.raises(RollinError, match="must give the numbers place, push in the info"):
        run(line(env_options=("breaks=unmeasured",)), tmp_path / "a")


# ------------------------------------------------------------------ as a user runs it


@pytest.mark.parametrize("task", ROBOTS)
def test_every_robot_trains_evaluates_and_is_drawn(task, tmp_path):
    out = tmp_path / "a"
    extra = ["--delta", "1/24", "--geometric"] if task == "antmaze-umaze" else []
    short = ["--steps", "300", "--log-every", "150", "--horizon", "60"]
    assert main(["train", task, *extra, "--beta", "0.1", *short, *SMALL, "--out", str(out)]) == 0
    result = read_json(out / "result.json")
    assert result["env_steps"] == 300
    assert ("x_velocity_mean_last" in result) == (task != "antmaze-umaze")
    picture = tmp_path / "p.png"
    command = ["evaluate", str(out), "--episodes", "2", "--contexts", "current"]
    assert main([*command, "--picture", str(picture), "--json", str(tmp_path / "t.json")]) == 0
    with Image.open(picture) as image:
        assert min(image.size) > 200
    (row,) = read_json(tmp_path / "t.json")["contexts"]
    assert ("x_velocity_mean" in row) == (task != "antmaze-umaze")


def test_a_video_without_a_display_or_a_hint_what_is_missing(tmp_path):
    """Off-screen where EGL or OSMesa is installed; elsewhere one sentence that names packages."""
    environment = {n: v for n, v in os.environ.items() if n not in ("DISPLAY", "MUJOCO_GL")}
    rollin = [sys.executable, "-m", "rollin"]
    short = ["--steps", "120", "--horizon", "5", "--log-every", "120"]
    for task, place in (("hopper", tmp_path / "a"), ("antmaze-umaze", tmp_path / "b")):
        train = [*rollin, "train", task, *short, *SMALL, "--out", place]
        subprocess.run(train, check=True, capture_output=True, env=environment)
        film = tmp_path / f"{task}.gif"
        command = [*rollin, "evaluate", place, "--contexts", "current", "--video", film]
        found = subprocess.run(command, capture_output=True, text=True, env=environment)
        if any(map(offscreen.can_draw, offscreen.BACKENDS)):
            assert found.returncode == 0, found.stderr
            assert found.stderr == ""
            with Image.open(film) as image:
                pictures = [frame.convert("L").tobytes() for frame in ImageSequence.Iterator(image)]
            assert len(pictures) == 6
            assert all(len(set(picture)) > 10 for picture in pictures)
        else:
            assert found.returncode == 2
            assert "apt install libegl1" in found.stderr


def test_renderers_are_tried_in_order(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    for works, chosen in (({"egl", "osmesa"}, "egl"), ({"osmesa"}, "osmesa")):
        monkeypatch.setattr(offscreen, "can_draw", works.__contains__)
        offscreen.choose_renderer()
        assert os.environ.pop("MUJOCO_GL") == chosen
    monkeypatch.setattr(offscreen, "can_draw", lambda name: False)
    with pytest.raises(RollinError, match="apt install libegl1 libgl1-mesa-dri, or apt install"):
        offscreen.choose_renderer()
    monkeypatch.setenv("MUJOCO_GL", "mine")
    offscreen.choose_renderer()
    assert os.environ["MUJOCO_GL"] == "mine"


def test_a_renderer_that_is_not_there_cannot_draw():
    assert not offscreen.can_draw("none")
