"""Runs of ROLLIN: results, kill and resume, the command line, bad input."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from rollin import Policy, RollinError, SuccessRate
from rollin.cli import main
from rollin.deep.rollin_sac import RollinStep
from rollin.envs import box_env
from rollin.runs import checkpoint, driver, files
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import run, spec_of
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.rollin_run import RollinRun
from rollin.runs.files import read_json
from rollin.runs.metrics import read_metrics
from rollin.runs.spec import RunSpec, configured
from tests.forks import begin
from tests.killing import kill_after_a_checkpoint, needs_signals, same_run, stop_at
from tests.toys import Line

KEYS = {
    "kappa",
    "kappa_mean",
    "return",
    "env_steps",
    "updates_main",
    "updates_exp",
    "rollin_episodes",
    "seconds",
}


def line(steps: int = 900, **options: Any) -> RunSpec[RollinConfig]:
    """A run that passes its switches late, so that some come after a resume."""
    defaults = {
        "warmup": 100, "log_every": 150, "eval_episodes": 2, "hidden": (16, 16), "batch": 16,
        "gamma": 0.9, "beta": 0.4, "keep_replay": True, "window": 18, "threshold": -1.0,
    }  # fmt: skip
    given = {**defaults, "steps": steps, **options}
    return RunSpec("tests.toys:Line", configured(RollinConfig(), given))


# ------------------------------------------------------------------ what a run leaves


def test_a_run_leaves_metrics_episodes_policy_and_result(tmp_path):
    spec = line(last=300)
    assert run(spec, tmp_path / "a", "rollin train …")
    result = read_json(tmp_path / "a" / "result.json")
    metrics = read_metrics(tmp_path / "a" / "metrics.csv")
    episodes = read_metrics(tmp_path / "a" / "episodes.csv")
    assert result.keys() >= KEYS
    assert metrics["step"] == [150, 300, 450, 600, 750, 900]
    assert result["env_steps"] == 900
    switches = [advance["step"] for advance in result["advances"]]
    kappas = [sum(s < step for s in switches) / 3 for step in range(601, 901)]
    assert result["kappa_mean"] == pytest.approx(np.mean(kappas))
    late = np.array(episodes["step"]) > 600
    assert result["return"] == pytest.approx(np.array(episodes["return"])[late].mean())
    assert result["rollin_episodes"] == sum(episodes["rollin"]) > 5
    assert result["rollin_steps"] == sum(episodes["rollin_steps"])
    assert sum(episodes["length"]) == episodes["step"][-1]
    assert result["updates_main"] == metrics["updates_main"][-1]
    assert result["updates_exp"] == metrics["updates_exp"][-1] > 20
    assert result["eval_return"] == metrics["eval_return"][-1]
    assert result["completed"]["step"] > switches[-1]
    assert spec_of(RunDirectory(tmp_path / "a")) == spec
    assert not (tmp_path / "a" / "checkpoint").exists()


def test_detailed_updates_are_counted(tmp_path):
    """π_main learns at every step after the warm-up that is not in an episode with roll-in."""
    run(line(), tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    episodes = read_metrics(tmp_path / "a" / "episodes.csv")
    ends, lengths = np.array(episodes["step"]), np.array(episodes["length"])
    rolled = np.array(episodes["rollin"], bool)
    steps = {s for e, n in zip(ends[rolled], lengths[rolled], strict=True)
             for s in range(int(e - n) + 1, int(e) + 1)}  # fmt: skip
    under_way = range(int(ends[-1]) + 1, 901)
    plain = [s for s in range(101, int(ends[-1]) + 1) if s not in steps]
    assert result["updates_main"] - len(plain) in (0, len(under_way))


@pytest.mark.parametrize("updates", ["detailed", "short"])
def test_updates_are_counted_as_the_options_have_them(tmp_path, updates):
    events: list[RollinStep] = []
    spec = line(updates=updates, update_every=7, updates_per_step=3)
    driver.execute(RollinRun(spec, RunDirectory(tmp_path / "a"), on_event=events.append))
    result = read_json(tmp_path / "a" / "result.json")
    for agent in ("main", "exp"):
        steps = [event.step for event in events if getattr(event, agent) is not None]
        assert result[f"updates_{agent}"] == 3 * len(steps) > 0
        assert {step % 7 for step in steps} == {0}
    assert result["updates"] == result["updates_main"] + result["updates_exp"]
    if updates == "short":
        assert result["updates_main"] == 3 * (900 // 7 - 100 // 7)


def test_a_run_that_ends_before_its_first_update_says_so(tmp_path):
    run(line(200, update_every=500), tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    assert result["updates_main"] == 0
    assert result["warning"] == (
        "Nothing was learned: of 200 steps, none after the first 100 is a multiple of "
        "--update-every (500). Give more --steps, or a smaller --update-every."
    )


def test_the_policy_acts_like_the_learner(tmp_path):
    spec = line(300)
    prepared = RollinRun(spec, RunDirectory(tmp_path / "a"))
    driver.execute(prepared)
    policy = Policy.load(tmp_path / "a")
    generator = np.random.default_rng(0)
    for _ in range(20):
        observation, context = generator.normal(size=2), generator.uniform(-1, 1, 1)
        seen = np.concatenate([observation, context]).astype(np.float32)
        action = prepared.state.main.act(seen, deterministic=True)
        np.testing.assert_allclose(policy.act(observation, context), 2 * action, atol=1e-5)
    many = policy.act(np.zeros((5, 2)), np.zeros((5, 1)))
    assert many.shape == (5, 1)
    last = policy.act(np.zeros(2))  # the last context
    np.testing.assert_array_equal(last, policy.act(np.zeros(2), [1.2]))
    drawn = [policy.act(np.zeros(2), [0.0], np.random.default_rng(i))[0] for i in range(50)]
    assert np.std(drawn) > 0.1
    assert policy.k == prepared.state.progress.k
    with pytest.raises(RollinError, match="an observation of 2 numbers and a context of 1"):
        policy.act(np.zeros(3))


def test_a_policy_loads_without_the_training_code(tmp_path):
    run(line(200, log_every=200), tmp_path / "a")
    code = (
        "import sys, rollin; policy = rollin.Policy.load(sys.argv[1]);"
        "policy.act([0.0, 0.0], [0.4]);"
        "print([name for name in ('numba', 'gymnasium', 'scipy', 'jax') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------ kill and resume


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"relabel": True, "go_explore": 0.3, "sampling": "geometric", "p": 0.01, "capacity": 70},
        {"updates": "short", "counted": "main"},
        {"learner": "jax"},
        {"method": "scratch"},
        {"explorer": "main", "prefix": "hidden", "guide": "frozen"},
        {"update_every": 5, "updates_per_step": 2},
        {"update_every": 5, "updates_per_step": 2, "better": 0.3, "learner": "jax"},
    ],
    ids=["plain", "all options", "short", "jax", "scratch", "ablations", "fewer", "fewer, jax"],
)
def test_stopped_anywhere_a_run_goes_on_bit_for_bit(tmp_path, monkeypatch, options):
    spec = line(600, **options)
    run(spec, tmp_path / "whole")
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)  # ask after every step
    seen = []
    for stop in (30, 101, 222, 570):
        stop_at(spec, tmp_path / "parts", stop)
        seen.append(read_json(tmp_path / "parts" / "status.json")["k"])
    assert run(spec, tmp_path / "parts")
    same_run(tmp_path / "whole", tmp_path / "parts")
    if "method" not in options:
        assert seen[-1] > seen[1]  # the curriculum advanced after a resume


def die_while_saving(out: Path, stage: str, count: int) -> None:
    """Run until a checkpoint of that number, and be killed at a stage of its writing."""
    driver.CHECKPOINT_SECONDS = 0.0
    saved = 0
    write_atomically, write_json = checkpoint.write_atomically, checkpoint.write_json

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def data(path: Path, content: Any, **options: Any) -> None:
        nonlocal saved
        saved += 1
        if saved == count and stage == "half of the data":
            (path.parent / (files.TEMPORARY + path.name)).write_bytes(content[: len(content) // 2])
            die()
        write_atomically(path, content, **options)
        if saved == count and stage == "before the manifest":
            die()

    def manifest(path: Path, value: Any, **options: Any) -> None:
        write_json(path, value, **options)
        if saved == count and stage == "before the old one is deleted":
            die()

    checkpoint.write_atomically, checkpoint.write_json = data, manifest
    run(line(900), out)


@needs_signals
def test_killed_while_a_checkpoint_is_written_a_run_goes_on_bit_for_bit(tmp_path):
    run(line(900), tmp_path / "whole")
    stages = ("half of the data", "before the manifest", "before the old one is deleted")
    reached = []
    for stage, count in zip((*stages, stages[0]), (1, 13, 15, 10), strict=True):
        process = begin(die_while_saving, tmp_path / "parts", stage, count)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        manifest = tmp_path / "parts" / "checkpoint" / "manifest.json"
        if manifest.exists():
            reached.append(read_json(manifest)["values"]["rollin"]["progress"]["k"])
    assert reached[0] < reached[-1]  # switches lie between the kills
    assert run(line(900), tmp_path / "parts")
    same_run(tmp_path / "whole", tmp_path / "parts")


@needs_signals
def test_killed_at_random_moments_a_run_goes_on_bit_for_bit(tmp_path):
    spec = line(5000, log_every=1250)
    run(spec, tmp_path / "whole")
    delays = np.random.default_rng(0).uniform(0, 0.25, 4)
    kills = kill_after_a_checkpoint(spec, tmp_path / "parts", delays)
    assert kills >= 3
    assert run(spec, tmp_path / "parts")
    same_run(tmp_path / "whole", tmp_path / "parts")


def interrupted(path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> RunSpec[Any]:
    spec = line(600, **options)
    with monkeypatch.context() as patch:
        patch.setattr(driver, "STATUS_SECONDS", -1.0)
        run(spec, path, should_stop=lambda: read_json(path / "status.json")["step"] >= 200)
    return spec


@pytest.mark.parametrize(
    "damage", ["cut", "flip", "lost", "other config", "values", "no rows", "other rows"]
)
def test_damaged_checkpoints_are_refused_and_nothing_is_overwritten(
    tmp_path, monkeypatch, capsys, damage
):
    spec = interrupted(tmp_path / "a", monkeypatch)
    folder = tmp_path / "a" / "checkpoint"
    manifest = read_json(folder / "manifest.json")
    data = folder / manifest["file"]
    content = data.read_bytes()
    if damage == "cut":
        data.write_bytes(content[:-100])
    elif damage == "flip":
        data.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    elif damage == "lost":
        data.unlink()
    elif damage == "other config":
        manifest["spec_hash"] = "0" * 16
        files.write_json(folder / "manifest.json", manifest)
    elif damage == "values":
        del manifest["values"]["rollin"]["window"], manifest["checksum"]
        manifest["checksum"] = files.seal(manifest)
        files.write_json(folder / "manifest.json", manifest)
    elif damage == "no rows":
        os.truncate(tmp_path / "a" / "replay.f32", 300)
    else:
        rows = bytearray((tmp_path / "a" / "replay.f32").read_bytes())
        rows[1000] ^= 1
        (tmp_path / "a" / "replay.f32").write_bytes(rows)
    expected = {
        "cut": "does not match its checksum",
        "flip": "does not match its checksum",
        "lost": "cannot be read",
        "other config": "belongs to another configuration",
        "values": "does not hold what this run keeps (KeyError: 'window')",
        "no rows": "the file was cut off",
        "other rows": "replay.f32 does not match its checksum",
    }
    before = {p: p.read_bytes() for p in folder.iterdir()}
    rows = (tmp_path / "a" / "episodes.csv").read_bytes()
    assert main(["resume", str(tmp_path / "a")]) == 2
    err = capsys.readouterr().err
    assert expected[damage] in err
    assert err.count("\n") == 1
    assert {p: p.read_bytes() for p in folder.iterdir()} == before
    assert (tmp_path / "a" / "episodes.csv").read_bytes() == rows
    assert spec.hash == spec_of(RunDirectory(tmp_path / "a")).hash


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        ("raises", r"Episode \d+, step \d+: The environment's step raised ZeroDivisionError"),
        ("nan", r"Episode \d+, step \d+: next observation\[1\] is nan"),
    ],
)
def test_an_env_that_goes_bad_keeps_the_last_checkpoint(tmp_path, monkeypatch, breaks, message):
    monkeypatch.setattr(driver, "CHECKPOINT_SECONDS", 0.0)
    spec = line(2000, log_every=3000, env_options=(f"breaks={breaks}", "after=25"))
    with pytest.raises(RollinError, match=message):
        run(spec, tmp_path / "a")
    assert read_json(tmp_path / "a" / "status.json")["state"] == "failed"
    manifest = read_json(tmp_path / "a" / "checkpoint" / "manifest.json")
    assert manifest["values"]["rollin"]["episode"] == 24
    arrays = load_file(tmp_path / "a" / "checkpoint" / manifest["file"])
    assert all(np.isfinite(a).all() for a in arrays.values() if a.dtype == np.float32)


# ------------------------------------------------------------------ the command line

QUICK = ["--steps", "700", "--warmup", "200", "--log-every", "350", "--eval-episodes", "1"]


def test_train_evaluate_and_list_point_umaze(tmp_path, capsys):
    out = str(tmp_path / "a")
    assert main(["train", "point-umaze", *QUICK, "--horizon", "50", "--out", out]) == 0
    assert "κ = 0.000 (k = 0 of 12)" in capsys.readouterr().out
    config = read_json(tmp_path / "a" / "config.json")["config"]
    assert config["sac"]["hidden"] == [32, 32]
    assert config["sac"]["gamma"] == 0.97
    assert config["algorithm"]["beta"] == 0.1
    video, table = tmp_path / "v.gif", tmp_path / "t.json"
    arguments = ["evaluate", out, "--episodes", "2", "--contexts", "current"]
    assert main([*arguments, "--video", str(video), "--json", str(table)]) == 0
    shown = capsys.readouterr().out
    assert "0 *  0.000     0, 0" in shown
    found = read_json(table)
    assert found["contexts"][0]["return_mean"] == pytest.approx(
        np.mean(found["contexts"][0]["returns"])
    )
    with Image.open(video) as picture:
        assert picture.size == (320, 320)
        assert getattr(picture, "n_frames", 1) > 5
    assert main(["evaluate", out, "--episodes", "1"]) == 0
    assert capsys.readouterr().out.count("%") == 13
    assert main(["list", str(tmp_path)]) == 0
    assert "0/12" in capsys.readouterr().out


def test_evaluate_takes_the_checkpoint_of_an_unfinished_run(tmp_path, monkeypatch, capsys):
    interrupted(tmp_path / "a", monkeypatch)
    step = read_json(tmp_path / "a" / "checkpoint" / "manifest.json")["step"]
    before = {p: p.read_bytes() for p in (tmp_path / "a").rglob("*") if p.is_file()}
    assert main(["evaluate", str(tmp_path / "a"), "--episodes", "1"]) == 0
    assert f"step {step}" in capsys.readouterr().out
    assert {p: p.read_bytes() for p in (tmp_path / "a").rglob("*") if p.is_file()} == before


def at_work(run_: Path, process: int) -> bool:
    """Whether a process has come some way with a run, for which is waited."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(RollinError):
            found = read_json(run_ / "status.json")
            if found["pid"] == process and found["step"] > 300:
                return True
        time.sleep(0.05)
    return False


@needs_signals
def test_ctrl_c_writes_a_checkpoint_and_names_the_command_that_goes_on(
    tmp_path, monkeypatch, capsys
):
    """And so does the wish to terminate of a process that goes on, which is this one."""
    command = ["train", "point-umaze", "--steps", "200000", "--out", "a b"]
    script = Path(sys.executable).with_name("rollin")
    process = subprocess.Popen(
        [script, *command], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    at_work(tmp_path / "a b", process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, err
    assert "Resume with: rollin resume 'a b'" in out
    manifest = tmp_path / "a b" / "checkpoint" / "manifest.json"
    saved = read_json(manifest)["step"]

    def terminate() -> None:
        if at_work(tmp_path / "a b", os.getpid()):
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(driver, "STATUS_SECONDS", 0.05)
    other = threading.Thread(target=terminate, daemon=True)
    other.start()
    assert main(command) == 128 + signal.SIGTERM
    other.join()
    assert "Resume with: rollin resume 'a b'" in capsys.readouterr().out
    assert read_json(manifest)["step"] > saved


def test_a_factory_from_where_the_user_stands(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_factory.py").write_text(
        "import gymnasium, numpy as np, rollin\n"
        "def reward(outcome, context):\n"
        "    return np.exp(-np.abs(outcome[..., 2] - context[..., 0]))\n"
        "def make(length=20):\n"
        "    env = gymnasium.make('Pendulum-v1', max_episode_steps=length)\n"
        "    return rollin.Contextual(env, gymnasium.spaces.Box(-8, 8, (1,)), reward)\n"
    )
    monkeypatch.chdir(tmp_path)
    options = ["--steps", "300", "--warmup", "60", "--batch", "16", "--hidden", "8", "8"]
    options += ["--contexts", "[[0], [1], [2]]", "--threshold", "0", "--env-options", "length=10"]
    assert main(["train", "my_factory:make", *options, "--eval-episodes", "1", "--out", "out"]) == 0
    result = read_json(tmp_path / "out" / "result.json")
    assert result["kappa"] == 1
    assert result["episodes"] == 30
    capsys.readouterr()
    assert main(["resume", "out"]) == 0
    assert "already finished" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["point-umaze", "--beta", "1"], "beta must lie in [0, 1), got 1.0"),
        (["point-umaze", "--delta", "0"], "Δ must lie in (0, 1], got 0.0"),
        (["point-umaze", "--literal"], "as the paper prints it, and PointUmaze has none"),
        (["hopper", "--literal", "--path", "[[0], [1]]"], "three ways to give a curriculum"),
        (["hopper", "--contexts", "[[0.1], [1]]"], "with --path or --contexts, give --threshold"),
        (["point-umaze", "--contexts", "[[0, 0]]", "--threshold", "1"], "at least two contexts"),
        (["point-umaze", "--contexts", "[[0, 0], [99, 0]]", "--threshold", "1"], "lies outside"),
        (
            ["tests.toys:no_curriculum", "--contexts", "[[0], [1]]", "--rule", "return"],
            "give --threshold, the R",
        ),
        (["point-umaze", "--path", "0,0 8,0", "--threshold", "1"], "--path must be JSON"),
        (["point-umaze", "--threshold-slope", "1"], "it needs --threshold, the R at"),
        (["point-umaze", "--delta", "1e-9"], "gives 999,999,999 contexts"),
        (["point-umaze", "--delta", "1/0"], "--delta must be a number or a fraction such as 1/24"),
        (["point-umaze", "--start=a/b"], "--start must be a number or a fraction such as 1/24"),
        (["hopper", "--delta", "3/2"], "The step Δ must lie in (0, 1], got 1.5"),
        (["hopper", "--env-options", "horizon=0"], "horizon must be at least 1, got 0"),
        (["walkr"], "Did you mean walker?"),
        (["point-umaze", "--path", "[[0], [1, 2]]"], "real vectors of one length"),
        (["point-umaze", "--path", '{"a": 1}'], "Corners of a path must be real vectors"),
        (["point-umaze", "--path", "[[1e308, 0], [-1e308, 0]]"], "needs finite corners"),
        (
            ["point-umaze", "--rule", "return", "--threshold-slope", "nan"],
            "--threshold-slope must be a number",
        ),
        (["point-umaze", "--rule", "success", "--threshold", "1"], "can never be greater than 1"),
        (["point-umaze", "--env-options", "speed=1"], "point-umaze cannot be made: TypeError"),
        (["tests.toys:no_curriculum"], "has no curriculum of its own"),
        (["tests.toys:Walk"], "is not a contextual env: it needs a context_space"),
        (["tests.toys:Absent"], "tests.toys:Absent cannot be loaded"),
        (["tests.toys:ONE_LINE"], "must be a function that makes a new environment"),
        (["tests.toys:same_line"], "gives the same environment at every call"),
        (["tests.toys:listed_line"], "its curriculum must be a rollin.Curriculum, got list"),
        (["tests.toys:Line", "--env-options", "breaks=disagrees"], "compute_reward gives"),
        (
            ["tests.toys:measuring", "--env-options", 'names="x velocity"'],
            "measures must be names",
        ),
        (
            ["tests.toys:measuring", "--env-options", 'names=["x velocity"]'],
            "each once and none of",
        ),
        (["tests.toys:measuring", "--env-options", 'names=["return"]'], "got ['return']"),
        (["tests.toys:measuring", "--env-options", 'names=["place", "place"]'], "each once"),
        (["tests.toys:measuring", "--env-options", "names=5"], "measures must be names"),
        (
            ["tests.toys:measuring", "--env-options", 'names=["other"]'],
            "the numbers other in the",
        ),
        (
            ["tests.toys:measuring", "--env-options", 'names=["nothing"]'],
            "info['nothing'] = nan",
        ),
        (["ant", "--env-options", "width=0"], "width must be at least 1, got 0"),
        (["antmaze-umaze", "--env-options", "height=-3"], "height must be at least 1, got -3"),
        (["hopper", "--env-options", "contact_forces=true"], "only the ant and the humanoid"),
        (["hopper", "--delta", f"1{'0' * 400}/1"], "--delta must be a number or a fraction"),
        (["tests.toys:Line", "--env-options", "breaks=forgets"], "a context must stay until"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message, tmp_path, capsys):
    assert main(["train", *arguments, "--out", str(tmp_path / "a")]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--video", "v.avi"], "--video must end in .gif or .mp4, got v.avi"),
        (["--video", "no/such/v.gif"], "the directory no/such does not exist"),
        (["--episodes", "0"], "--episodes must be at least 1, got 0"),
        (["--json", "no/such/t.json"], "--json: the directory no/such does not exist"),
        (["--picture", "p.pdf"], "--picture must end in .png or .svg, got p.pdf"),
        (["--picture", "no/such/p.png"], "--picture: the directory no/such does not exist"),
    ],
)
def test_bad_evaluations_are_one_sentence(arguments, message, tmp_path, monkeypatch, capsys):
    run(line(200, log_every=200), tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "a", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_runs_of_other_engines_are_not_evaluated(tmp_path, capsys):
    main(["train", "four-rooms", "--steps", "5", "--batch", "20", "--out", str(tmp_path / "a")])
    assert main(["evaluate", str(tmp_path / "a")]) == 2
    assert "is a run of the engine tabular" in capsys.readouterr().err


def test_a_threshold_that_cannot_be_met_is_told_with_the_largest_return(tmp_path, capsys):
    arguments = ["train", "tests.toys:Line", *QUICK, "--threshold", "1000", "--window", "3"]
    options = ["--batch", "16", "--hidden", "8", "8", "--out", str(tmp_path / "a")]
    assert main([*arguments, *options]) == 0
    err = capsys.readouterr().err
    assert "Context 0 of 3 was not mastered in" in err
    largest = max(read_metrics(tmp_path / "a" / "episodes.csv")["return"])
    assert f"the largest return seen is {largest:.4g}" in err
    assert read_json(tmp_path / "a" / "result.json")["warning"] in err


def test_a_threshold_keeps_the_kind_of_rule_that_the_environment_has(tmp_path):
    for name, options, reason in (
        ("a", {"threshold": 0.2}, "success rate"),
        ("b", {"rule": "return", "threshold": 0.5}, "mean return"),
        ("c", {"threshold": None}, "success rate 1 of the last 3 episodes > 0.9"),
    ):
        spec = line(900, window=3, **options)
        run(RunSpec("tests.toys:rated_line", spec.config), tmp_path / name)
        advances = read_json(tmp_path / name / "result.json")["advances"]
        assert reason in advances[0]["reason"]


def test_rows_without_an_episode_say_nothing(tmp_path):
    spec = line(300, log_every=3)
    run(spec, tmp_path / "a")
    metrics = read_metrics(tmp_path / "a" / "metrics.csv")
    assert np.isnan(metrics["train_return"][0])
    assert np.isnan(metrics["window_mean"][0])
    ended = [row for row in metrics["train_length"] if not np.isnan(row)]
    assert min(ended) >= 5


def test_an_episode_without_an_end_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(box_env, "LONGEST", 500)
    with pytest.raises(RollinError, match=r"no time limit.* in 5,000 steps.* use --horizon"):
        run(line(900, env_options=("length=100000",)), tmp_path / "a")
    assert not (tmp_path / "a").exists()
    late = {"env_options": ("length=100000",), "horizon": 4000}
    with pytest.raises(RollinError, match=r"has not ended in 500 steps.* use --horizon"):
        run(line(900, **late, log_every=5000), tmp_path / "a")
    with pytest.raises(RollinError, match="has not ended in 500 steps"):  # in an evaluation
        run(line(900, **late), tmp_path / "b")
    assert run(line(900, env_options=("length=100000",), horizon=20), tmp_path / "c")


def test_the_replay_file_goes_when_the_run_is_done(tmp_path):
    spec = line(200, log_every=200, keep_replay=False)
    assert run(spec, tmp_path / "a")
    assert not (tmp_path / "a" / "replay.f32").exists()


def test_metrics_are_means_of_the_episodes_since_the_last_row(tmp_path):
    run(line(), tmp_path / "a")
    metrics = read_metrics(tmp_path / "a" / "metrics.csv")
    episodes = read_metrics(tmp_path / "a" / "episodes.csv")
    ends = np.array(episodes["step"])
    for i, step in enumerate(metrics["step"]):
        here = (ends > step - 150) & (ends <= step)
        rolled = here & np.array(episodes["rollin"], bool)
        column = {name: np.array(values) for name, values in episodes.items()}
        assert metrics["train_return"][i] == pytest.approx(column["return"][here].mean())
        assert metrics["train_length"][i] == pytest.approx(column["length"][here].mean())
        assert metrics["train_success"][i] == pytest.approx(column["success"][here].mean())
        assert metrics["rollin_fraction"][i] == pytest.approx(rolled.sum() / here.sum())
        if rolled.any():
            mean = column["rollin_steps"][rolled].mean()
            assert metrics["rollin_length"][i] == pytest.approx(mean)
    assert metrics["exp_critic_loss"][-1] not in (0.0, metrics["critic_loss"][-1])


def test_evaluations_are_of_the_contexts_they_name(tmp_path, capsys):
    """The last context lies where a beginner does not come; the first one is at the start."""
    contexts = "[[0.0], [3.9]]"
    spec = line(300, log_every=300, window=100, contexts=contexts)
    run(spec, tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    assert result["eval_return"] > 1
    assert result["return_final"] == 0
    for which, ks in (("all", [0, 1]), ("reached", [0]), ("current", [0]), ("last", [1])):
        table = tmp_path / f"{which}.json"
        arguments = ["--contexts", which, "--episodes", "2", "--json", str(table)]
        assert main(["evaluate", str(tmp_path / "a"), *arguments]) == 0
        assert [row["k"] for row in read_json(table)["contexts"]] == ks


def test_options_shape_the_curriculum(tmp_path):
    def walked(**options: Any) -> dict[str, Any]:
        defaults = {"steps": 200, "warmup": 100, "batch": 16, "hidden": (8,), "eval_episodes": 1}
        spec = RunSpec("point-umaze", configured(RollinConfig(), {**defaults, **options}))
        out = tmp_path / spec.hash
        run(spec, out)
        return read_json(out / "result.json")["curriculum"]

    half = {"start": 0.5, "delta": 0.25}
    assert walked(**half)["positions"] == [0.5, 0.75, 1.0]
    assert walked(**half)["kappas"] == [0, 0.5, 1.0]
    assert walked(**half, kappa="position")["kappas"] == [0.5, 0.75, 1.0]
    rising = {"threshold": 10.0, "threshold_slope": 4.0, **half}
    for argument, thresholds in (
        (None, [10, 12, 14]), ("kappa", [10, 12, 14]), ("position", [12, 13, 14])
    ):  # fmt: skip
        assert walked(**rising, threshold_at=argument)["thresholds"] == thresholds
    path = walked(path="[[0, 0], [5, 0]]")
    assert len(path["kappas"]) == 11  # steps of 0.1
    assert path["thresholds"] == [80] * 11  # the environment's own


def test_a_run_of_random_steps_alone_says_so(tmp_path, capsys):
    out = tmp_path / "a"
    arguments = ["--steps", "400", "--horizon", "50", "--delta", "1/4", "--out", str(out)]
    assert main(["train", "point-umaze", *arguments]) == 0
    assert "400 steps were random, because --learning-starts is 2,000" in capsys.readouterr().err
    assert read_json(out / "result.json")["updates_main"] == 0
    assert len(read_json(out / "config.json")["curriculum"]["contexts"]) == 5


def test_no_warning_while_there_is_hope(tmp_path):
    """Few episodes, or one above the threshold: nothing to tell."""
    for name, options in (("a", {"window": 60}), ("b", {"window": 3, "threshold": 5.0})):
        run(line(600, **{"threshold": 1000.0, **options}), tmp_path / name)
        result = read_json(tmp_path / name / "result.json")
        assert result["warning"] is None
    assert max(read_metrics(tmp_path / "b" / "episodes.csv")["return"]) > 5


@pytest.mark.parametrize("changed", ["episodes", "rule", "kappa", "reward"])
def test_a_run_does_not_go_on_under_another_curriculum_or_reward(tmp_path, monkeypatch, changed):
    spec = RunSpec("tests.toys:Line", replace(line(600).config, threshold=None, window=None))
    run(spec, tmp_path / "a", should_stop=lambda: True)
    make, reward = Line.__init__, Line.compute_reward

    def other(self, *arguments, **options):
        make(self, *arguments, **options)
        curriculum = self.curriculum
        self.curriculum = {
            "episodes": replace(curriculum, episodes=2),
            "rule": replace(curriculum, rule=SuccessRate(0.999)),
            "kappa": replace(curriculum, positions=(0.0, 0.1, 0.2, 1.0), kappa="position"),
            "reward": curriculum,
        }[changed]

    with monkeypatch.context() as patch:
        patch.setattr(Line, "__init__", other)
        if changed == "reward":
            patch.setattr(Line, "compute_reward", lambda s, o, c: reward(s, o, c) + 7)
        with pytest.raises(RollinError, match="is no longer the task"):
            run(spec, tmp_path / "a")
    assert run(spec, tmp_path / "a")


def test_another_configuration_is_refused_with_the_difference(tmp_path, capsys):
    run(line(200, log_every=200), tmp_path / "a")
    other = line(200, log_every=200)
    changed = replace(other.config, algorithm=replace(other.config.algorithm, beta=0.2))
    with pytest.raises(RollinError, match=r"beta 0.4 there, 0.2 requested"):
        run(RunSpec(other.task, changed), tmp_path / "a")


def test_the_tests_kill_what_they_mean_to():
    """The killer replaces names that the checkpoint's writer looks up."""
    assert checkpoint.write_atomically is files.write_atomically
    assert checkpoint.write_json is files.write_json
