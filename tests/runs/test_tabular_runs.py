"""Run directories: what they hold, what is refused, and that nothing is lost by a kill."""

import errno
import json
import os
import sys
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from threadpoolctl import threadpool_limits

from rollin.cli import main
from rollin.curriculum.contexts import SuccessRate
from rollin.errors import RollinError
from rollin.runs import driver
from rollin.runs.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import run, spec_from
from rollin.runs.engines.tabular import TabularConfig, load_mdp, mdp_of
from rollin.runs.engines.tabular_run import tabular_learner
from rollin.runs.files import read_json, write_atomically
from rollin.runs.metrics import MetricsWriter, TensorBoardLogger, read_metrics
from rollin.runs.spec import RunSpec
from rollin.tabular import soft
from rollin.tabular.algorithm1 import measure_success_from_rho, rollin
from rollin.tabular.families import Grid, grid_world
from rollin.tabular.learners import ExactPG
from rollin.tabular.mdp import ContextualMDP
from rollin.tabular.start import Start
from tests.conftest import random_mdp
from tests.killing import kill_after_a_checkpoint, needs_signals

TIMES = ("seconds",)


def spec(**options) -> RunSpec:
    defaults = {"steps": 300, "batch": 200, "log_every": 20, "alpha": 0.001, "reward": "easy"}
    return RunSpec("four-rooms", TabularConfig(**{**defaults, **options}))


def timeless(path: Path) -> dict:
    return {k: v for k, v in read_json(path / "result.json").items() if k not in TIMES}


def assert_same_run(one: Path, two: Path) -> None:
    assert timeless(one) == timeless(two)
    assert (one / "metrics.csv").read_bytes() == (two / "metrics.csv").read_bytes()
    left, right = load_file(one / "policy.safetensors"), load_file(two / "policy.safetensors")
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name])


def test_a_run_writes_its_directory(tmp_path) -> None:
    assert run(spec(), tmp_path / "a", "the command")
    result = read_json(tmp_path / "a" / "result.json")
    assert {"kappa", "return", "step", "env_steps", "seconds"} <= result.keys()
    assert result["step"] == 300
    assert result["env_steps"] == 300 * 200 * 50
    assert result["kappa"] == result["k"] / 16
    config = read_json(tmp_path / "a" / "config.json")
    assert config["command"] == "the command"
    assert config["versions"].keys() >= {"rollin", "numpy", "numba"}
    metrics = read_metrics(tmp_path / "a" / "metrics.csv")
    assert metrics["step"] == list(range(20, 301, 20))
    assert metrics["k"][-1] == result["k"]
    assert read_json(tmp_path / "a" / "status.json")["state"] == "finished"
    assert list((tmp_path / "a" / "tensorboard").iterdir())
    assert not (tmp_path / "a" / "checkpoint").exists()


def simulate(mdp: ContextualMDP, log_pi: np.ndarray, horizon: int, n: int) -> np.ndarray:
    """(n, horizon) rewards of trajectories from ρ on the last context, one step at a time."""
    rng = np.random.default_rng(0)
    rewards, states = np.empty((n, horizon)), rng.choice(mdp.n_states, n, p=mdp.rho)
    limits = np.exp(log_pi).cumsum(1)
    for t in range(horizon):
        actions = np.minimum((limits[states] < rng.random((n, 1))).sum(1), mdp.n_actions - 1)
        rewards[:, t] = mdp.rewards[mdp.K, states, actions]
        states = mdp.transitions[states, actions]
    return rewards


def test_a_result_tells_what_the_last_policy_gathers(tmp_path) -> None:
    """Returns and rewarded steps against trajectories that are simulated from the policy file."""
    goals = [(0, 0), (1, 0), (1, 1)]
    reward = lambda d: np.where(d <= 1, 0.5**d, 0.0)  # noqa: E731
    mdp = grid_world(Grid(2, 2), goals, reward, gamma=0.8)
    mdp.save(tmp_path / "small.npz")
    config = TabularConfig(steps=40, batch=50, horizon=12, alpha=0.1, log_every=20)
    run(RunSpec(str(tmp_path / "small.npz"), config), tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    theta = load_file(tmp_path / "a" / "policy.safetensors")["theta"].astype(np.float64)
    rewards = simulate(mdp, soft.log_softmax(theta), 12, 20_000)
    powers = 0.8 ** np.arange(12)
    for name, found in {
        "return": rewards @ powers,
        "return_undiscounted": rewards.sum(1),
        "collects": (rewards > 0).sum(1),
        "collects_discounted": (rewards > 0) @ powers,
    }.items():
        error = found.std() / np.sqrt(len(found))
        assert abs(result[name] - found.mean()) < 4 * error, name
        assert 0 < error < 0.02 * result[name], name  # so that the test can fail


@cache
def tensorboard() -> tuple[Any, Callable[[bytes], int]]:
    """The format of events and their checksum, without PyTorch, which takes a second to load."""
    with mock.patch.dict(sys.modules, {"torch": None}):
        from tensorboardX.proto import event_pb2
        from tensorboardX.record_writer import masked_crc32c

    return event_pb2, masked_crc32c


def read_events(path: Path) -> list:
    """The records of an event file: length, its checksum, data, its checksum."""
    proto, masked_crc32c = tensorboard()
    data, at, events = path.read_bytes(), 0, []
    while at < len(data):
        length = int.from_bytes(data[at : at + 8], "little")
        for begin, end in ((at, at + 8), (at + 12, at + 12 + length)):
            checksum = int.from_bytes(data[end : end + 4], "little")
            assert checksum == masked_crc32c(data[begin:end])
        events.append(proto.Event.FromString(data[at + 12 : at + 12 + length]))
        at += length + 16
    assert events[0].file_version == "brain.Event:2"
    return events


def test_tensorboard_has_the_numbers_of_the_metrics(tmp_path) -> None:
    run(spec(steps=60), tmp_path / "a")
    (path,) = (tmp_path / "a" / "tensorboard").iterdir()
    kappa = {
        event.step: value.simple_value
        for event in read_events(path)
        for value in event.summary.value
        if value.tag == "kappa"
    }
    metrics = read_metrics(tmp_path / "a" / "metrics.csv")
    assert list(kappa) == metrics["step"] == [20, 40, 60]
    np.testing.assert_allclose(list(kappa.values()), metrics["kappa"])


def test_tensorboard_forgets_points_of_a_run_that_was_killed_before_it_saved(tmp_path) -> None:
    TensorBoardLogger(tmp_path, step=0).close()  # as the life after it does, from the beginning
    (path,) = (tmp_path / "tensorboard").iterdir()
    (restart,) = read_events(path)[1:]
    assert (restart.step, restart.session_log.status) == (1, restart.session_log.START)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_tensorboard_after_a_resume_and_on_a_full_disk(tmp_path) -> None:
    logger = TensorBoardLogger(tmp_path, step=40)
    logger.write({"step": 41, "x": 1.0, "not": np.nan, "κ/b": -2.5})
    logger.write({"step": 10**9, "x": 1e300, "not": np.inf})
    events: Any = logger._events
    file = events._file
    file.flush()
    (path,) = (tmp_path / "tensorboard").iterdir()
    assert "tfevents" in path.name  # what TensorBoard looks for
    restart, *points = read_events(path)[1:]
    assert restart.step == 41
    assert restart.session_log.status == restart.session_log.START
    found = [(p.step, {v.tag: v.simple_value for v in p.summary.value}) for p in points]
    assert found == [(41, {"x": 1.0, "κ/b": -2.5}), (10**9, {"x": float(np.finfo("f4").max)})]
    with open("/dev/full", "wb", buffering=0) as full:
        events._file = full
        with pytest.raises(RollinError, match="tensorboard could not be written: no space left"):
            logger.write({"step": 42, "x": 2.0})
    file.close()


def test_the_same_seed_gives_the_same_run_and_another_does_not(tmp_path) -> None:
    run(spec(), tmp_path / "a")
    run(spec(), tmp_path / "b")
    run(spec(seed=1), tmp_path / "c")
    assert_same_run(tmp_path / "a", tmp_path / "b")
    assert timeless(tmp_path / "a") != timeless(tmp_path / "c")


def test_a_finished_run_is_not_run_again(tmp_path) -> None:
    run(spec(steps=20), tmp_path / "a")
    before = (tmp_path / "a" / "result.json").stat().st_mtime_ns
    assert run(spec(steps=20), tmp_path / "a")
    assert (tmp_path / "a" / "result.json").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rollin": "sampled", "mu": "recursive", "beta": 0.5},
        {"algorithm": "spg", "alpha": 0.1},
        {"gradient": "exact"},
        {"reset_adam": False},
        {"rule": "gap", "learning_rate": 0.02, "steps": 240},
        {
            "algorithm": "two-phase-spg",
            "alpha": 0.1,
            "phase1_steps": 9,
            "phase2_batch": 200,
            "t0": 0.1,
        },
    ],
)
def test_stopped_at_any_step_a_run_goes_on_bit_for_bit(tmp_path, monkeypatch, options) -> None:
    whole = spec(**({"steps": 120} | ({} if "rule" in options else {"threshold": 0.3}) | options))
    run(whole, tmp_path / "whole")
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)  # ask after every step
    stops = iter([17, 18, 60, 101])
    for stop in stops:
        finished = run(
            whole,
            tmp_path / "parts",
            should_stop=lambda stop=stop: (
                read_json(tmp_path / "parts" / "status.json")["step"] >= stop
            ),
        )
        assert not finished
        assert read_json(tmp_path / "parts" / "status.json")["state"] == "interrupted"
    assert run(whole, tmp_path / "parts")
    assert_same_run(tmp_path / "whole", tmp_path / "parts")
    assert read_json(tmp_path / "whole" / "result.json")["k"] >= 1


@needs_signals
def test_killed_without_warning_a_run_goes_on_bit_for_bit(tmp_path) -> None:
    run(spec(steps=1500), tmp_path / "whole")
    out = tmp_path / "parts"
    delays = np.random.default_rng(0).uniform(0, 0.2, 3)
    kills = kill_after_a_checkpoint(spec(steps=1500), out, delays)
    assert kills >= 2
    run(spec(steps=1500), out)
    assert_same_run(tmp_path / "whole", out)


def test_a_kill_between_data_and_manifest_leaves_the_previous_checkpoint(tmp_path) -> None:
    arrays = {"x": np.arange(3.0)}
    write_checkpoint(tmp_path / "c", Checkpoint(1, "h", arrays, {"a": 1}))
    write_atomically(tmp_path / "c" / "state-2.safetensors", b"half")  # no manifest yet
    found = read_checkpoint(tmp_path / "c", "h")
    assert found is not None
    assert found.step == 1
    np.testing.assert_array_equal(found.arrays["x"], arrays["x"])


@pytest.mark.parametrize("damage", ["cut", "flip", "gone", "manifest", "format", "other"])
def test_damaged_checkpoints_are_named(tmp_path, damage: str) -> None:
    write_checkpoint(tmp_path, Checkpoint(7, "h", {"x": np.arange(9)}, {}))
    data, manifest = tmp_path / "state-7.safetensors", tmp_path / "manifest.json"
    match damage:
        case "cut":
            data.write_bytes(data.read_bytes()[:-5])
        case "flip":
            data.write_bytes(bytes([data.read_bytes()[-1] ^ 1]).join([data.read_bytes()[:-1], b""]))
        case "gone":
            data.unlink()
        case "manifest":
            manifest.write_text("{")
        case "format":
            manifest.write_text(manifest.read_text().replace('"format": 2', '"format": 99'))
    with pytest.raises(RollinError, match=r"checkpoint|checksum|JSON|format"):
        read_checkpoint(tmp_path, "another" if damage == "other" else "h")


@given(st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=20)
def test_metrics_are_cut_back_to_what_a_checkpoint_counted(tmp_path_factory, kept, more) -> None:
    path = tmp_path_factory.mktemp("m") / "metrics.csv"
    writer = MetricsWriter(path, ("step", "x"))
    for i in range(kept):
        writer.write({"step": i, "x": 0.1 * i})
    writer.flush()
    state = writer.get_state()
    for i in range(more):
        writer.write({"step": kept + i, "x": -1.0})
    writer.flush()
    with path.open("a") as file:
        file.write("12,0.")  # a torn line
    again = MetricsWriter(path, ("step", "x"))
    again.set_state(state)
    again.write({"step": 999, "x": 5.0})
    again.flush()
    assert read_metrics(path)["step"] == [*range(kept), 999]


def test_another_run_in_the_directory_is_refused_and_kept(tmp_path) -> None:
    run(spec(steps=20), tmp_path / "a")
    before = (tmp_path / "a" / "config.json").read_bytes()
    with pytest.raises(RollinError, match=r"holds another run \(steps 20 there, 40 requested\)"):
        run(spec(steps=40), tmp_path / "a")
    assert (tmp_path / "a" / "config.json").read_bytes() == before
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("mine")
    with pytest.raises(RollinError, match="not a run directory"):
        run(spec(), tmp_path / "b")
    assert (tmp_path / "b" / "thesis.txt").read_text() == "mine"


def test_a_changed_mdp_under_the_same_name_is_refused(tmp_path) -> None:
    from tests.conftest import random_mdp

    task = tmp_path / "mine.npz"
    random_mdp(0).save(task)
    own = RunSpec(str(task), TabularConfig(steps=10, batch=20))
    run(own, tmp_path / "out")
    assert run(own, tmp_path / "out")
    random_mdp(1).save(task)
    with pytest.raises(RollinError, match="no longer the task"):
        run(own, tmp_path / "out")


def test_two_processes_cannot_run_the_same_directory(tmp_path) -> None:
    run(spec(steps=5), tmp_path / "a")
    with (
        RunDirectory(tmp_path / "a").lock(),
        pytest.raises(RollinError, match=f"is being run by process {os.getpid()}"),
    ):
        run(spec(steps=5), tmp_path / "a")
    assert run(spec(steps=5), tmp_path / "a")  # free again


def test_leftovers_of_a_kill_in_the_first_write_do_no_harm(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".rollin-config.json.x1").write_text("{")
    run(spec(steps=5), tmp_path / "a")
    names = {path.name for path in (tmp_path / "a").iterdir()}
    assert not any(name.startswith(".rollin-") for name in names)
    assert "checkpoint" not in names


def test_expected_roll_in_steps_count_every_level_and_only_sampled_trajectories(tmp_path) -> None:
    options = {"beta": 0.5, "threshold": 0.3, "steps": 200}
    run(spec(rollin="sampled", mu="recursive", **options), tmp_path / "recursive")
    result = read_json(tmp_path / "recursive" / "result.json")
    assert result["k"] > 2
    assert result["rollin_steps"] == pytest.approx(result["rollin_steps_expected"], rel=0.05)
    run(spec(gradient="exact", **options), tmp_path / "exact")
    assert read_json(tmp_path / "exact" / "result.json")["rollin_steps_expected"] == 0


def tracked(own: RunSpec[TabularConfig]) -> list[float]:
    """ln of the smallest probability on each context, from every θ of the algorithm itself."""
    mdp, config = mdp_of(own), own.config
    learner = tabular_learner(mdp, config)
    found = [float(soft.log_softmax(learner.theta).min())]
    rule, recursive = SuccessRate(config.threshold), config.mu == "recursive"
    for step in islice(rollin(mdp, learner, config.beta, rule, recursive=recursive), config.steps):
        least = float(soft.log_softmax(learner.theta).min())
        found[step.k] = min(found[step.k], least)
        if step.advance is not None:
            found.append(least)
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"algorithm": "pg", "learning_rate": 20.0, "mu": "recursive"},
        {"algorithm": "npg", "alpha": 0.1},
        {"algorithm": "spg", "alpha": 0.1},
    ],
)
def test_a_run_tracks_its_smallest_probability_on_each_context(tmp_path, options) -> None:
    own = spec(steps=40, threshold=0.1, **options)
    run(own, tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    assert result["k"] >= 1
    assert len(result["log_min_pi"]) == result["k"] + 1
    with threadpool_limits(1):  # as in the run
        assert result["log_min_pi"] == pytest.approx(tracked(own), abs=1e-5)
    assert min(result["log_min_pi"]) < -np.log(105) - 0.01  # it has gone down


def test_the_default_step_size_of_two_phases_is_the_theorems(tmp_path) -> None:
    two_phase: dict[str, Any] = {"algorithm": "two-phase-spg", "steps": 5, "phase1_steps": 50}
    run(spec(**two_phase, alpha=0.01), tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    L = (8 + 0.01 * (4 + 8 * np.log(105))) / 0.05**3
    assert result["learning_rate"] == pytest.approx(np.log(50) / (50 * L))
    assert result["warning"] is None
    run(spec(**two_phase, alpha=0.01, learning_rate=0.1), tmp_path / "b")
    result = read_json(tmp_path / "b" / "result.json")
    assert result["learning_rate"] == 0.1
    assert "--learning-rate 0.1 is above what the theorem allows" in result["warning"]
    run(spec(**two_phase, alpha=0.01, learning_rate=1e-9), tmp_path / "c")
    assert read_json(tmp_path / "c" / "result.json")["warning"] is None
    with pytest.raises(RollinError, match="--phase1-steps of at least 2"):
        run(spec(**{**two_phase, "phase1_steps": 1}), tmp_path / "d")
    assert not (tmp_path / "d").exists()


def stop_at(monkeypatch, own: RunSpec, out: Path, step: int) -> None:
    """Begin a run and stop it with a checkpoint."""
    monkeypatch.setattr(driver, "STATUS_SECONDS", -1.0)  # ask after every step
    assert not run(own, out, should_stop=lambda: read_json(out / "status.json")["step"] >= step)


def test_a_half_written_config_is_named(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "config.json").write_text('{"task": "four-')
    with pytest.raises(RollinError, match=r"config\.json is not valid JSON"):
        run(spec(), tmp_path / "a")


def test_a_full_disk_is_one_sentence_and_earlier_results_stay(tmp_path, monkeypatch) -> None:
    target = tmp_path / "result.json"
    target.write_text("old")

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RollinError, match="could not be written: no space left on device"):
        write_atomically(target, b"new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]  # no temporary file left


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beta": 1.0}, "beta"),
        ({"alpha": 0.0}, "alpha"),
        ({"gamma": 1.0}, "--gamma"),
        ({"steps": 0}, "--steps"),
        ({"seed": -1}, "--seed"),
        ({"learning_rate": 0.0}, "--learning-rate"),
        ({"threshold": 1.0}, "threshold"),
        ({"threshold": 0.3, "rule": "gap"}, "--threshold belongs to --rule success"),
        ({"epsilon": 0.1, "success_from": "rho"}, "--success-from is about the success rate"),
        ({"algorithm": "pg", "gradient": "exact"}, "batch-spg"),
    ],
)
def test_bad_options_are_named(options, words: str) -> None:
    with pytest.raises(RollinError, match=words):
        spec(**options)


def test_without_a_threshold_a_run_says_what_it_saw(tmp_path) -> None:
    """Where nothing ever changes there is nothing to decide by, which is told."""
    run(spec(rule="gap", learning_rate=0.02, steps=400), tmp_path / "rises")
    result = read_json(tmp_path / "rises" / "result.json")
    reasons = [switch["reason"] for switch in result["advances"]]
    assert reasons[0].endswith(", settled")
    assert "which mastered the context before" in reasons[1]
    assert result["warning"] is None
    hopeless = {"rule": "gap", "learning_rate": 1e-12, "gradient": "exact", "steps": 60}
    run(spec(**hopeless), tmp_path / "flat")
    result = read_json(tmp_path / "flat" / "result.json")
    assert result["k"] == 0
    assert "--rule gap saw the same success rate in all 60 steps" in result["warning"]


def test_a_threshold_that_no_policy_exceeds_is_told(tmp_path) -> None:
    """Context 8 is the first whose rewards begin more than three steps from the start."""
    options = {"gradient": "exact", "beta": 0.0, "learning_rate": 0.3, "horizon": 3}
    run(spec(**options, threshold=0.2, steps=60), tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    assert result["k"] == 8
    assert result["warning"] == (
        "--threshold 0.2 cannot be exceeded under context 8: within 3 steps no policy succeeds "
        "there with a probability above 0. Give a smaller --threshold or a longer --horizon."
    )


def far() -> ContextualMDP:
    """A first context that takes three moves and the collect."""
    return grid_world(Grid(4, 1), [(3, 0), (1, 0)], lambda d: (d == 0) * 1.0)


def test_a_first_context_without_any_success_is_refused_at_once(tmp_path, capsys) -> None:
    words = ["train", "tests.runs.test_tabular_runs:far", "--steps", "3", "--batch", "20"]
    words += ["--out", str(tmp_path / "a"), "--horizon"]
    assert main([*words, "3"]) == 2
    assert "no trajectory of 3 steps from ρ can have one" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
    assert main([*words, "4"]) == 0


def test_a_gap_that_does_not_open_is_told(tmp_path) -> None:
    run(spec(rule="gap", learning_rate=1e-9, steps=240, batch=50), tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    assert result["k"] == 0
    assert "--rule gap was not met in 240 steps under context 0: the success" in result["warning"]


@pytest.mark.parametrize("success_from", ["mu", "rho"])
def test_success_may_be_measured_from_rho(tmp_path, success_from) -> None:
    """Each reason beside the exact probability from ρ, by the policy of that switch."""
    options = {"success_from": success_from, "beta": 0.9, "learning_rate": 0.02, "threshold": 0.4}
    run(spec(**options, reward="hard", steps=600, log_every=600), tmp_path)
    mdp = load_mdp("four-rooms", reward="hard")
    policies = load_file(tmp_path / "policy.safetensors")["log_policies"].astype(np.float64)
    switches = read_json(tmp_path / "result.json")["advances"]
    assert len(switches) > 5
    exact = [
        soft.success_probability(mdp.task(s["k"] - 1), policies[s["k"] - 1], mdp.rho, 50)
        for s in switches
    ]
    reasons = [f"success rate {rate:.3f} > 0.4" for rate in exact]
    measured = [switch["reason"] for switch in switches]
    assert (measured == reasons) == (success_from == "rho")


@pytest.mark.parametrize("deterministic", [True, False])
def test_success_from_rho_is_exact_for_every_kind_of_mdp(deterministic) -> None:
    mdp = random_mdp(3, S=5, A=3, deterministic=deterministic)
    rare = np.zeros_like(mdp.success)
    rare[:, 4, 1] = True
    mdp = mdp.replace(success=rare)
    learner = ExactPG(mdp, 0.1, horizon=7)
    learner.begin(mdp.task(1), Start(np.full(5, 0.2)))
    info = learner.step()
    wanted = soft.success_probability(mdp.task(1), learner.log_pi, mdp.rho, 7)
    assert 0 < wanted < 1
    assert measure_success_from_rho(mdp)(learner, info) == pytest.approx(wanted, rel=1e-12)
    assert info.success != pytest.approx(wanted, rel=1e-3)


def test_literal_takes_the_printed_reading() -> None:
    config = TabularConfig(literal=True)
    assert (config.success, config.mu, config.rollin) == ("goal", "recursive", "sampled")
    assert config.estimator == "printed"


def test_specs_round_trip_and_hash_stably() -> None:
    one = spec(beta=0.3)
    assert spec_from(*json.loads(json.dumps(one.to_json())).values()) == one
    assert one.hash == spec(beta=0.3).hash != spec(beta=0.4).hash
    with pytest.raises(RollinError, match="unknown options: colour"):
        spec_from("tabular", "four-rooms", {"colour": 1})
    with pytest.raises(RollinError, match=r"There is no engine 'quantum': this version has tab"):
        spec_from("quantum", "four-rooms", {})


def test_a_sampled_roll_in_counts_its_steps(tmp_path) -> None:
    run(spec(rollin="sampled", beta=0.5, threshold=0.3), tmp_path / "a")
    result = read_json(tmp_path / "a" / "result.json")
    assert result["k"] > 0
    assert result["rollin_steps"] == pytest.approx(result["rollin_steps_expected"], rel=0.1)
    assert result["env_steps"] == 300 * 200 * 50 + result["rollin_steps"]


def test_tasks_come_from_files_and_factories(tmp_path, monkeypatch) -> None:
    from tests.conftest import random_mdp

    random_mdp(0).save(tmp_path / "mine.npz")
    assert load_mdp(str(tmp_path / "mine.npz")).n_states == 4
    (tmp_path / "my_tasks.py").write_text(
        "from tests.conftest import random_mdp\nmake = lambda: random_mdp(1)\nwrong = lambda: 3\n"
    )
    monkeypatch.chdir(tmp_path)
    assert load_mdp("my_tasks:make", gamma=0.5).gamma == 0.5
    for task, words in (
        ("my_tasks:wrong", "must return a ContextualMDP, got int"),
        ("my_tasks:missing", "cannot be loaded"),
        ("no_such_module:make", "cannot be loaded"),
        ("four-room", "Did you mean four-rooms"),
    ):
        with pytest.raises(RollinError, match=words):
            load_mdp(task)


def test_a_run_on_an_mdp_of_ones_own(tmp_path) -> None:
    from tests.conftest import random_mdp

    random_mdp(0).save(tmp_path / "mine.npz")
    own = RunSpec(str(tmp_path / "mine.npz"), TabularConfig(steps=30, batch=50, log_every=10))
    assert run(own, tmp_path / "out")
    assert RunDirectory.open(tmp_path / "out").result()["K"] == 2
