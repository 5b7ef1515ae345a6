"""Plain SAC as a run: it learns, resumes to the bit, and stops with one sentence when it must."""

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import tests.toys  # noqa: F401  (registers the environments)
from rollin import RollinError
from rollin.cli import main
from rollin.deep.evaluate import evaluate, mode_of
from rollin.deep.plain_sac import train_sac
from rollin.envs.box_env import BoxEnv, make_env
from rollin.runs import driver
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import run, spec_of
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.files import read_json
from rollin.runs.metrics import read_metrics
from rollin.runs.spec import RunSpec
from rollin.sac import make_learner
from rollin.sac.config import SACConfig
from rollin.sac.cpu import learner as cpu
from rollin.sac.learner import SACLearner
from rollin.sac.replay import Replay, RowLayout
from rollin.streams import Streams
from tests.killing import kill_after_a_checkpoint, needs_signals, same_run, stop_at
from tests.toys import Constant, Target

SMALL = SACConfig(hidden=(16, 16), batch=16)


def learn(env: BoxEnv, name: str, steps: int, config: SACConfig, **options) -> SACLearner:
    streams = Streams(0)
    sizes = env.observation_size, env.action_size
    learner = make_learner(name, *sizes, config, streams)  # pyright: ignore[reportArgumentType]
    replay = Replay(RowLayout(*sizes), steps)
    for event in train_sac(env, learner, replay, streams, **options):
        if event.step == steps:
            break
    return learner


# ------------------------------------------------------------------ learning


@pytest.mark.parametrize("name", ["cpu", "jax"])
def test_learns_to_hit_a_target(name):
    config = SACConfig(hidden=(32, 32), batch=64, learning_rate=3e-3, initial_temperature=0.1)
    learner = learn(make_env("Target-v0"), name, 1500, config, warmup=200)
    for state in (-0.7, -0.2, 0.3, 0.6):
        action = learner.act(np.array([state]), deterministic=True)
        assert action[0] == pytest.approx(state, abs=0.12)


@pytest.mark.parametrize("p", [None, 1e-4])
def test_learns_pendulum(p):
    config = SACConfig(hidden=(64, 64), batch=128, learning_rate=2e-3)
    env = make_env("Pendulum-v1")
    learner = learn(env, "cpu", 8000, config, warmup=500, p=p)
    assert evaluate(env, mode_of(learner), 5).mean > -400  # random: about -1200


def test_learns_inverted_pendulum():
    config = SACConfig(hidden=(64, 64), batch=128, learning_rate=1e-3)
    env = make_env("InvertedPendulum-v5")
    learner = learn(env, "cpu", 12_000, config, warmup=500)
    assert evaluate(env, mode_of(learner), 5).mean > 500  # random: about 6; at the most 1000


@pytest.mark.parametrize(("terminates", "low", "high"), [(True, 1.0, 5.2), (False, 7.0, 12.0)])
def test_values_go_on_beyond_a_time_limit_but_not_beyond_a_termination(terminates, low, high):
    """Reward 1 a step, γ = 0.9: worth 10 for ever; at most 4.1 if it ends after 5 steps."""
    config = SACConfig(
        hidden=(32, 32), batch=64, gamma=0.9, learning_rate=3e-3, tau=0.05,
        initial_temperature=1e-3, target_entropy=-3.0,
    )  # fmt: skip
    env = BoxEnv(Constant(terminates))
    streams = Streams(0)
    learner = make_learner("cpu", 1, 1, config, streams)
    replay = Replay(RowLayout(1, 1), 2000)
    q = 0.0
    for event in train_sac(env, learner, replay, streams, warmup=100):
        q = event.update.q_mean if event.update else 0.0
        if event.step == 2000:
            break
    assert low < q < high


def test_actions_are_scaled_to_the_box():
    inner = Target()  # its box is [0, 4]
    env = BoxEnv(inner)
    env.reset(seed=0)
    for action in (-1.0, 0.0, 0.5, 1.0):
        env.step(np.array([action], np.float32))
    np.testing.assert_allclose(inner.actions, [0, 2, 3, 4])


def test_an_env_that_returns_one_array_always_does_not_change_what_was_seen():
    class Shared(Constant):
        shared = np.zeros(1, np.float32)

        def step(self, action):
            self.shared += 1
            return self.shared, *super().step(action)[1:]

    env = BoxEnv(Shared(True))
    env.reset(seed=0)
    first, second = (env.step(np.zeros(1, np.float32)).observation for _ in range(2))
    assert (first[0], second[0]) == (1, 2)


# ------------------------------------------------------------------ runs


def walk(steps: int = 900, **options) -> RunSpec[SACRunConfig]:
    options = {"warmup": 100, "log_every": 150, "eval_episodes": 2, "sac": SMALL} | options
    return RunSpec("tests.toys:Walk-v0", SACRunConfig(steps=steps, keep_replay=True, **options))


def test_a_run_leaves_metrics_policy_and_result(tmp_path):
    assert run(walk(), tmp_path / "a", "rollin train …")
    metrics = read_metrics(tmp_path / "a" / "metrics.csv")
    assert metrics["step"] == [150, 300, 450, 600, 750, 900]
    assert metrics["updates"] == [50, 200, 350, 500, 650, 800]
    result = read_json(tmp_path / "a" / "result.json")
    assert result["updates"] == 800
    assert result["return"] == metrics["return"][-1]
    assert not (tmp_path / "a" / "checkpoint").exists()
    assert (tmp_path / "a" / "replay.f32").stat().st_size == 256 + 900 * 10 * 4
    assert spec_of(RunDirectory(tmp_path / "a")).hash == walk().hash


def test_updates_are_counted_as_the_options_have_them(tmp_path):
    run(walk(sac=replace(SMALL, update_every=7, updates_per_step=3)), tmp_path / "a")
    metrics = read_metrics(tmp_path / "a" / "metrics.csv")
    made = [3 * (int(step) // 7 - 100 // 7) for step in metrics["step"]]
    assert metrics["updates"] == made == [21, 84, 150, 213, 279, 342]
    result = read_json(tmp_path / "a" / "result.json")
    assert result["updates"] == 342
    assert result["critic_loss"] == metrics["critic_loss"][-1] > 0


def test_the_replay_file_goes_when_the_run_is_done(tmp_path):
    spec = walk(200)
    plain = RunSpec(spec.task, SACRunConfig(steps=200, warmup=100, eval_episodes=1, sac=SMALL))
    assert run(plain, tmp_path / "a")
    assert not (tmp_path / "a" / "replay.f32").exists()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sampling": "geometric", "p": 0.01, "capacity": 64},
        {"learner": "jax"},
        {"sac": SACConfig(hidden=(16, 16), batch=32, threads=2)},
        {"sac": replace(SMALL, threads=2, update_every=5, updates_per_step=2)},
        {"sac": replace(SMALL, update_every=5, updates_per_step=2), "learner": "jax"},
    ],
)
def test_stopped_anywhere_a_run_goes_on_bit_for_bit(tmp_path, monkeypatch, options):
    monkeypatch.setattr(cpu, "GRAIN", 1e-9)  # threads even where they are not worth it
    spec = walk(600, **options)
    run(spec, tmp_path / "whole")
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)  # ask after every step
    for stop in (30, 101, 333, 590):
        stop_at(spec, tmp_path / "parts", stop)
    assert run(spec, tmp_path / "parts")
    same_run(tmp_path / "whole", tmp_path / "parts")


@needs_signals
def test_killed_without_warning_a_run_goes_on_bit_for_bit(tmp_path):
    spec = walk(6000, log_every=2000)
    run(spec, tmp_path / "whole")
    kills = kill_after_a_checkpoint(spec, tmp_path / "parts", (0.0, 0.03, 0.1))
    assert kills == 3
    assert run(spec, tmp_path / "parts")
    same_run(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("observation", r"Step \d+: next observation\[1\] is nan"),
        ("reward", r"Step \d+: reward is inf"),
        ("shape", r"gave an observation of shape \(2,\), its space has 3"),
        ("scale", "the learner diverged"),
    ],
)
def test_a_run_that_goes_bad_stops_and_keeps_its_last_good_checkpoint(
    tmp_path, monkeypatch, what, message
):
    monkeypatch.setattr(driver, "CHECKPOINT_SECONDS", 0.0)
    config = SACRunConfig(steps=2000, warmup=50, log_every=5000, eval_episodes=1, sac=SMALL)
    with pytest.raises(RollinError, match=message):
        run(RunSpec(f"tests.toys:Breaks-{what}-v0", config), tmp_path / "a")
    status = read_json(tmp_path / "a" / "status.json")
    assert status["state"] == "failed"
    manifest = read_json(tmp_path / "a" / "checkpoint" / "manifest.json")
    assert manifest["values"]["counters"]["episodes"] == 20  # all that was good
    from safetensors.numpy import load_file

    arrays = load_file(tmp_path / "a" / "checkpoint" / manifest["file"])
    assert all(np.isfinite(a).all() for a in arrays.values() if a.dtype == np.float32)


# ------------------------------------------------------------------ the command line


def test_train_on_a_gymnasium_environment(tmp_path, capsys):
    arguments = ["train", "Pendulum-v1", "--steps", "500", "--warmup", "100", "--hidden", "8", "8"]
    arguments += ["--batch", "16", "--log-every", "250", "--eval-episodes", "1", "--threads", "2"]
    assert main([*arguments, "--out", str(tmp_path / "a")]) == 0
    assert "deterministic episodes) after 500 environment steps" in capsys.readouterr().out
    with (tmp_path / "a" / "metrics.csv").open() as file:
        assert len(list(csv.reader(file))) == 3
    assert main(["list", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "finished" in out
    assert "500/500" in out
    assert main(["report", str(tmp_path)]) == 0
    assert "Pendulum-v1" in (tmp_path / "report.html").read_text()
    capsys.readouterr()
    assert main([*arguments[:3], "501", *arguments[4:], "--out", str(tmp_path / "a")]) == 2
    err = capsys.readouterr().err
    assert "holds another run" in err
    assert "steps 500 there, 501 requested" in err
    assert main([*arguments, "--precision", "bfloat16", "--out", str(tmp_path / "a")]) == 2
    assert "precision float32 there, bfloat16 requested" in capsys.readouterr().err
    assert main([*arguments, "--update-every", "5", "--out", str(tmp_path / "a")]) == 2
    assert "update_every 1 there, 5 requested" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Hoper-v5"], "Did you mean Hopper-v5?"),
        (["CartPole-v1"], "must have actions in a one-dimensional Box, got Discrete(2)"),
        (["tests.toys:Unbounded-v0"], "must bound its actions on both sides"),
        (["Hopper-v3"], "Hopper-v3"),  # in other words if gymnasium-robotics is there
        (["tests.toys:Raises-v0"], "cannot be made: AttributeError: no such thing"),
        (
            ["Pendulum-v1", "--steps", "10000"],
            "must be more than --learning-starts (10000)",
        ),
        (
            ["Pendulum-v1", "--steps", "12000", "--update-every", "5000"],
            "--steps must be at least 15000, got 12000: no earlier step after the random ones is a",
        ),
        (["Pendulum-v1", "--update-every", "0"], "update_every must be at least 1, got 0"),
        (["Pendulum-v1", "--update-every", "2.5"], "--update-every must be a whole number"),
        (["Pendulum-v1", "--updates-per-step", "0"], "updates_per_step must be at least 1, got 0"),
        (["Pendulum-v1", "--hidden", "300000", "9000000"], "batch times the sum of hidden must be"),
        (["Pendulum-v1", "--steps", "1000000000000000"], "which is not available"),
        (["Pendulum-v1", "--warmup", "10"], "warmup must be at least one batch (256), got 10"),
        (["Pendulum-v1", "--gamma", "2"], "gamma must lie in [0, 1], got 2.0"),
        (["Pendulum-v1", "--capacity", "5"], "--buffer-size must be at least 256, got 5"),
        (["Pendulum-v1", "--p", "0"], "--geometric-p must lie in (0, 1), got 0.0"),
        (["Pendulum-v1", "--steps", "9000000000000"], "needs 324000.0 GB, which is not available"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, tmp_path, capsys):
    assert main(["train", *arguments, "--out", str(tmp_path / "a")]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_a_directory_named_like_an_environment_does_not_choose_the_engine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["train", "four-rooms", "--steps", "5", "--batch", "20", "--out", "runs-v2"]
    assert main(arguments) == 0
    assert read_json(tmp_path / "runs-v2" / "config.json")["engine"] == "tabular"


@pytest.mark.parametrize("when", ["reset", "evaluation"])
def test_bad_first_observations_and_evaluations_are_named(when, tmp_path):
    task = f"tests.toys:Breaks-{when}-v0"
    episodes = 30 if when == "evaluation" else 1
    config = SACRunConfig(steps=2000, warmup=50, log_every=300, eval_episodes=episodes, sac=SMALL)
    expected = {
        "reset": r"Step \d+: the first of an episode: observation\[1\] is nan",
        "evaluation": r"Evaluation episode 21: the sum of rewards is nan",
    }
    with pytest.raises(RollinError, match=expected[when]):
        run(RunSpec(task, config), tmp_path / "a")


def test_what_a_kill_left_behind_a_finished_run_is_cleared(tmp_path):
    spec = walk(200, log_every=200)
    plain = RunSpec(spec.task, replace(spec.config, keep_replay=False))
    assert run(plain, tmp_path / "a")
    (tmp_path / "a" / "replay.f32").write_bytes(b"left")
    assert run(plain, tmp_path / "a")
    assert not (tmp_path / "a" / "replay.f32").exists()


def test_scaled_actions_stay_in_the_box():
    inner = Target()
    inner.action_space = gymnasium.spaces.Box(-1.8, -0.9, (1,), np.float32)
    env = BoxEnv(inner)
    env.reset(seed=0)
    for action in (-1.0, 1.0):
        env.step(np.array([action], np.float32))
        assert inner.action_space.contains(np.array(inner.actions[-1:], np.float32))


def test_an_environment_with_images_is_refused():
    env = gymnasium.make("Pendulum-v1")
    env.observation_space = gymnasium.spaces.Dict(a=env.observation_space)
    with pytest.raises(RollinError, match="observations in a Box"):
        BoxEnv(env)


def test_an_environment_of_the_user_s_is_found_from_where_they_stand(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_envs.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control.pendulum import PendulumEnv\n"
        "gymnasium.register('Mine-v0', PendulumEnv, max_episode_steps=50)\n"
    )
    script = Path(sys.executable).with_name("rollin")
    options = ["--steps", "120", "--warmup", "60", "--batch", "16", "--hidden", "8"]
    command = [script, "train", "my_envs:Mine-v0", *options, "--eval-episodes", "1", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert read_json(tmp_path / "out" / "result.json")["updates"] == 60
    monkeypatch.chdir(tmp_path)
    assert main(["train", "absent:Mine-v0"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
