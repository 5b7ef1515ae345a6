"""Runs on a real Ray cluster of several nodes on this machine, one of which is killed."""

import os
import socket
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rollin.errors import RollinError
from rollin.runs.engines import run
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.files import read_json
from rollin.runs.spec import Job, JobEvent, RunSpec, configured
from rollin.sweeps.cluster import RayExecutor, _lost, connect
from rollin.sweeps.cluster_worker import SCRATCH, _tidy_scratch
from rollin.sweeps.queue import run_jobs
from tests.here import hurried
from tests.killing import same_run
from tests.runs.test_rollin_runs import line

# of the clusters here, before Ray is imported. Its workers have a low priority by default: beside
# tests that compute they would hardly come to anything.
os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.xdist_group("ray"),
]


@pytest.fixture(scope="module")
def whole_cluster():
    """A head of one core, for all tests: it takes seconds to start."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROLLIN_CHECKPOINT_SECONDS", "0")
        made = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        try:
            ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


@pytest.fixture
def cluster(whole_cluster, monkeypatch):
    """The head and a node of one core, too; runs save as often as they can."""
    monkeypatch.setenv("ROLLIN_CHECKPOINT_SECONDS", "0")
    if not whole_cluster.worker_nodes:  # none yet, or a test has lost it
        whole_cluster.add_node(num_cpus=1)
    whole_cluster.wait_for_nodes()
    return whole_cluster


def maze(steps: int, seed: int) -> RunSpec:
    """A small run in the point's maze, which saves at the end of every episode."""
    options = {"warmup": 100, "log_every": 500, "eval_episodes": 1, "hidden": (16, 16)}
    more = {"batch": 16, "horizon": 50, "beta": 0.4, "keep_replay": True}
    given = {**options, **more, "steps": steps, "seed": seed}
    return RunSpec("point-umaze", configured(RollinConfig(), given))


def gated(gate: Path, seed: int, **waits: float) -> RunSpec:
    """A run of some 60 episodes that takes minutes as long as there is no file `gate`."""
    given = [f"gate={gate}", *(f"{name}={value}" for name, value in waits.items())]
    options = line(700, seed=seed, env_options=given, log_every=700).config
    return RunSpec("tests.toys:Gated", options)


def saved_step(job: Job) -> int:
    """Where a run would go on."""
    path = job.out / "checkpoint" / "manifest.json"
    return read_json(path)["step"] if path.exists() else 0


def test_a_stopped_sweep_leaves_checkpoints_and_goes_on(cluster, tmp_path) -> None:
    fetched: Any = {"storage": "fetch", "fetch_seconds": 1e9}  # nothing until the end
    out, gate = tmp_path / "sweep", tmp_path / "gate"
    todo = [
        Job(f"seed={i}", gated(gate, i, after=150, pause=0.2), out / f"seed={i}") for i in range(2)
    ]
    ends: dict[str, str] = {}
    at_work: set[str] = set()

    def hear(report: JobEvent) -> None:
        if report.kind == "progress":
            at_work.add(report.job.name)
        if report.is_end:
            ends[report.job.name] = report.kind

    run_jobs(todo, RayExecutor(out, **fetched), on_event=hear,
             should_stop=lambda: len(at_work) == 2)  # fmt: skip
    assert ends == {"seed=0": "stopped", "seed=1": "stopped"}
    gate.touch()
    assert min(map(saved_step, todo)) > 0
    assert run_jobs(todo, RayExecutor(out, **fetched)) == []
    assert all((job.out / "result.json").exists() for job in todo)
    assert not any((job.out / "checkpoint").exists() for job in todo)


def test_a_failed_run_and_a_run_without_room_are_told_and_the_others_go_on(
    cluster, tmp_path
) -> None:
    out = tmp_path / "s"
    bad = Job("bad", RunSpec("no_such:task", TabularConfig(steps=10)), out / "bad")
    huge = Job("huge", maze(10**11, 0), out / "huge")
    good = Job("good", RunSpec("four-rooms", TabularConfig(steps=10)), out / "good")
    seen: list[JobEvent] = []
    failed = run_jobs([bad, huge, good], RayExecutor(out), retries=0, on_event=seen.append)
    assert {job.name for job in failed} == {"bad", "huge"}
    errors = {r.job.name: r.status["error"] for r in seen if r.kind == "failed"}
    assert "no_such:task cannot be loaded" in errors["bad"]
    assert "no machine of the Ray cluster has room for a run of point-umaze" in errors["huge"]
    assert (good.out / "result.json").exists()


def test_files_that_cannot_be_written_here_cost_only_their_run(cluster, tmp_path) -> None:
    out = tmp_path / "s"
    todo = [Job(f"seed={i}", maze(300, i), out / f"seed={i}") for i in range(2)]
    (todo[0].out / "policy.safetensors").mkdir(parents=True)  # where a file is to be
    seen: list[JobEvent] = []
    executor = RayExecutor(out, storage="fetch", fetch_seconds=0.0)
    assert run_jobs(todo, executor, retries=0, on_event=seen.append) == [todo[0]]
    (failed,) = [report for report in seen if report.kind == "failed"]
    assert "policy.safetensors could not be written" in failed.status["error"]
    assert (todo[1].out / "result.json").exists()


def test_a_directory_that_all_machines_see_is_found_and_nothing_sent(
    cluster, tmp_path, monkeypatch
) -> None:
    out = tmp_path / "s"
    sent: list[object] = []
    monkeypatch.setattr("rollin.sweeps.cluster.Sender", lambda *_: sent.append(_))
    (job,) = [Job("seed=0", maze(400, 0), out / "seed=0")]
    assert run_jobs([job], RayExecutor(out)) == []
    assert (job.out / "result.json").exists()
    assert sent == []


def test_a_machine_that_does_not_see_the_directory_is_sent_its_files(cluster, tmp_path) -> None:
    out, gate = tmp_path / "s", tmp_path / "gate"
    job = Job("seed=0", gated(gate, 0, after=150, pause=0.2), out / "seed=0")
    seen: list[JobEvent] = []
    run_jobs(
        [job], RayExecutor(out, storage="shared"), on_event=seen.append,
        should_stop=lambda: any(r.kind == "progress" for r in seen),
    )  # fmt: skip
    saved = saved_step(job)
    assert saved > 0
    gate.touch()
    seen.clear()
    executor = RayExecutor(out)
    executor._mark.write_text("what another machine has there")
    assert run_jobs([job], executor, on_event=seen.append) == []
    steps = [r.status["step"] for r in seen if r.kind == "progress"]
    assert steps[0] >= saved  # it did not begin anew
    assert (job.out / "result.json").exists()
    assert not (job.out / "checkpoint").exists()


def test_runs_that_wait_for_a_machine_do_not_hold_up_a_stop(cluster, tmp_path, monkeypatch) -> None:
    huge = Job("huge", maze(10**11, 0), tmp_path / "s" / "huge")
    seen: list[JobEvent] = []
    executor, looks = RayExecutor(tmp_path / "s", limit=1), count()

    def stop() -> bool:
        if next(looks) < 3:
            return False
        monkeypatch.setattr(executor, "wait", None)  # there is nothing to be waited for
        return True

    run_jobs([huge], executor, on_event=seen.append, should_stop=stop)
    assert [report.kind for report in seen] == ["started", "stopped"]


def test_what_killed_runs_left_beside_them_is_deleted(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone, own = tmp_path / f"{SCRATCH}{2**22 + 1}-x", tmp_path / f"{SCRATCH}{os.getpid()}-y"
    for path in (gone, own):
        path.mkdir()
    _tidy_scratch()
    assert not gone.exists()
    assert own.exists()


def test_the_reason_why_an_actor_did_not_start_is_told() -> None:
    text = (
        "The actor died because of an error raised in its creation task, "
        "\x1b[36mray::RunWorker.__init__()\x1b[39m (pid=1)\n  File x\n"
        "ModuleNotFoundError: No module named 'rollin'"
    )
    assert _lost(RuntimeError(text)) == (
        "its machine or process was lost: The actor died because of an error raised in its "
        "creation task; ModuleNotFoundError: No module named 'rollin'"
    )


def test_the_command_runs_a_table_on_a_cluster_of_its_own(tmp_path) -> None:
    command = [
        sys.executable, "-m", "rollin", "reproduce", "four-rooms", "--cells",
        "reward=hard,alpha=0.001,beta=0", "--seeds", "1", "--scale", "0.0004", "--backend", "ray",
        "--jobs", "1", "--out", str(tmp_path / "s"),
    ]  # fmt: skip
    own = {name: value for name, value in os.environ.items() if name != "RAY_AUTH_MODE"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=own)
    assert done.returncode == 0, done.stderr
    assert "shortened to 0.0004 of the paper's (20 steps, not 50,000)" in done.stdout
    (result,) = (tmp_path / "s").rglob("result.json")
    assert read_json(result)["step"] == 20


# ------------------------------------------------------------------ addresses


@pytest.fixture
def mute():
    """A port where something listens that is not Ray."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        answer = threading.Thread(
            target=lambda: server.accept()[0].sendall(b"hello there"), daemon=True
        )
        answer.start()
        yield server.getsockname()[1]
        answer.join(10)


def test_an_address_that_does_not_answer_is_named(mute, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # other tests' cluster may be there
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RollinError, match=f"127.0.0.1:{port} does not answer .connection refused"):
        connect(ray, f"127.0.0.1:{port}", None)
    with pytest.raises(RollinError, match="something else than Ray listens there"):
        connect(ray, f"127.0.0.1:{mute}", None)
    with pytest.raises(RollinError, match="must be auto, host:port or ray://host:port, got 'head'"):
        connect(ray, "head", None)
    with pytest.raises(RollinError, match="does not answer"):
        RayExecutor(tmp_path / "s", address=f"127.0.0.1:{port}")
    assert list(Path(tmp_path).iterdir()) == []


# ------------------------------------------------------------------ last, because it costs a node


@pytest.mark.parametrize("storage", ["shared", "fetch"])
def test_a_lost_node_costs_no_run(cluster, tmp_path, storage) -> None:
    """Its run goes on elsewhere from its checkpoint, and ends as if nothing had happened."""
    out, gate = tmp_path / "sweep", tmp_path / "gate"
    long = [
        Job(f"seed={i}", gated(gate, i, after=250, pause=0.5), out / f"seed={i}") for i in range(2)
    ]
    todo = [*long, Job("short", maze(300, 2), out / "seed=2")]
    seen: list[JobEvent] = []
    killed: list[int] = []

    def kill_a_node() -> bool:
        if not killed and min(saved_step(job) for job in long) > 150:
            killed.append(len(seen))
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
        return False

    def hear(event: JobEvent) -> None:
        seen.append(event)
        if event.kind == "again" and event.job in long:  # not before: what is left of a killed node
            gate.touch()  # would come to the end of its run

    executor = RayExecutor(out, "rollin test", storage=storage, fetch_seconds=0.0)
    heard: Any = {"on_event": hear, "should_stop": kill_a_node, "clock": hurried}
    assert run_jobs(todo, executor, **heard) == []
    assert killed
    # the short run may be on its way to that node, too, and is then heard of first
    again = next(r for r in seen if r.kind == "again" and r.job in long)
    assert "was lost" in again.status["error"]
    steps = [
        report.status["step"]
        for report in seen[seen.index(again) :]
        if report.kind == "progress" and report.job is again.job
    ]
    assert steps[0] > 150  # it did not begin anew
    assert ray.is_initialized()  # a cluster that was there before stays
    assert sorted(r.job.name for r in seen if r.kind == "finished") == ["seed=0", "seed=1", "short"]
    assert run(again.job.spec, tmp_path / "alone")
    same_run(tmp_path / "alone", again.job.out)
    assert not list(out.glob(".rollin-storage-*"))
