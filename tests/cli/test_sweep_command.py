"""`rollin sweep` and `Study.run`: a grid over one's own environment, gone on with, reported."""

import csv
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rollin
from rollin.cli import main
from rollin.cli.options import option_groups, read
from rollin.cli.sweep import SweepOptions, make_study, run_options, with_own_names
from rollin.errors import RollinError
from rollin.runs.files import read_json
from rollin.runs.records import MetricAt
from rollin.sweeps.study import study_from
from tests.here import HereExecutor
from tests.killing import needs_signals, same_run
from tests.undrawn import undrawn

SMALL = [
    "--steps", "300", "--warmup", "100", "--batch", "16", "--hidden", "8", "8", "--log-every",
    "150", "--eval-episodes", "1", "--threshold", "-1",
]  # fmt: skip
OPTIONS = {
    "steps": 300, "warmup": 100, "batch": 16, "hidden": (8, 8), "log_every": 150,
    "eval_episodes": 1, "threshold": -1.0,
}  # fmt: skip
ROOT = Path(__file__).parents[2]
GRID = ["--grid", "beta=0,0.4"]


def sweep(out: Path, *more: str, what: str = "tests.toys:Line") -> int:
    return main(["sweep", what, "--out", str(out), "--jobs", "1", *more])


def results(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in out.rglob("result.json")}


@pytest.mark.usefixtures("jobs_here")
def test_a_grid_is_run_compared_and_reported(tmp_path, capsys) -> None:
    arguments = [*GRID, *SMALL, "--seeds", "2", "--baseline", "beta=0", "--name", "mine"]
    assert sweep(tmp_path / "s", *arguments, "--metrics", "kappa", "return_final@150") == 0
    said = capsys.readouterr().out
    assert said.count("finished ") == 4
    assert "Note:" not in said  # the command line is the study: nothing differs from it
    assert f"Report: {(tmp_path / 's' / 'report.html').resolve()}" in said
    places = {str(path.parent.relative_to(tmp_path / "s")) for path in results(tmp_path / "s")}
    assert places == {f"beta={beta}/seed={seed}" for beta in ("0", "0.4") for seed in (0, 1)}
    described = read_json(tmp_path / "s" / "beta=0.4" / "seed=1" / "config.json")
    assert described["labels"] == {"beta": "0.4"}
    assert (described["family"], described["scale"]) == ("mine", 1.0)
    assert described["config"]["algorithm"]["beta"] == 0.4
    assert described["command"].startswith("rollin sweep tests.toys:Line --out")
    kept = read_json(tmp_path / "s" / "sweep.json")
    (entry,) = kept["studies"]
    assert (entry["name"], entry["baseline"]) == ("mine", "beta=0")
    assert entry["readings"] == [["kappa", None], ["return_final", 150]]
    assert len(kept["runs"]) == 4
    with (tmp_path / "s" / "runs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["condition"], row["seed"]) for row in rows} == {
        (f"beta={beta}", seed) for beta in ("0", "0.4") for seed in ("0", "1")
    }
    page = (tmp_path / "s" / "report.html").read_text(encoding="utf-8")
    assert "β = 0" in page
    assert re.search(r"against|compared|baseline", page, re.IGNORECASE)


@pytest.mark.parametrize(
    ("task", "readings"),
    [
        ("point-umaze", ["kappa", "success_final"]),
        ("tests.toys:Line", ["kappa", "success_final"]),
        ("four-rooms", ["kappa"]),
        ("Pendulum-v1", ["return"]),
    ],
)
def test_a_sweep_reads_how_far_its_runs_came_and_whether_they_solve_the_task(
    tmp_path, task, readings
) -> None:
    made = make_study(SweepOptions(task, grid=("steps=20000,30000",)), {})
    assert [reading.quantity for reading in made.readings] == readings
    file = tmp_path / "study.toml"
    file.write_text(f'task = "{task}"\ngrid.steps = [20000, 30000]\n')
    assert study_from(file, trust=True).readings == made.readings
    chosen = make_study(SweepOptions(task, grid=("steps=20000,30000",), metrics=("return@1",)), {})
    assert chosen.readings == (MetricAt("return", 1),)


@needs_signals
@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_an_interrupted_sweep_goes_on_and_leaves_finished_runs_alone(tmp_path, capsys) -> None:
    out = tmp_path / "s"
    arguments = [*GRID, *SMALL, "--steps", "4000", "--seeds", "2"]
    command = [sys.executable, "-m", "rollin", "sweep", "tests.toys:Line", "--out", str(out)]
    process = subprocess.Popen(
        [*command, "--jobs", "1", *arguments], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not results(out) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130, text
    first = results(out)
    assert 0 < len(first) < 4
    assert f"Stopped at {len(first)} of 4 runs. Resume with: rollin sweep tests.toys:Line" in text
    assert not (out / "report.html").exists()
    assert sweep(out, *arguments) == 0
    assert len(results(out)) == 4
    assert {path: results(out)[path] for path in first} == first
    assert capsys.readouterr().out.count("finished ") == 4 - len(first)
    assert (out / "report.html").exists()


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_a_larger_grid_adds_to_what_is_there(tmp_path, capsys) -> None:
    assert sweep(tmp_path / "s", "--grid", "beta=0,0.4", *SMALL, "--seeds", "1") == 0
    first = results(tmp_path / "s")
    capsys.readouterr()
    assert sweep(tmp_path / "s", "--grid", "beta=0.4,0.2", *SMALL, "--seeds", "1") == 0
    assert capsys.readouterr().out.count("finished ") == 1
    assert {path: results(tmp_path / "s")[path] for path in first} == first
    (entry,) = read_json(tmp_path / "s" / "sweep.json")["studies"]
    labels = [condition["labels"] for condition in entry["conditions"]]
    assert labels == [{"beta": "0"}, {"beta": "0.4"}, {"beta": "0.2"}]


STUDY_FILE = """
task = "tests.toys:Line"
seeds = 1
baseline = "beta=0"
[options]
steps = 300
warmup = 100
batch = 16
hidden = [8, 8]
log_every = 150
eval_episodes = 1
threshold = -1
[grid]
beta = [0, 0.4]
"""


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_a_file_a_module_the_command_and_python_do_the_same_runs(
    tmp_path, monkeypatch, capsys
) -> None:
    (tmp_path / "mine.toml").write_text(STUDY_FILE)
    (tmp_path / "my_studies.py").write_text(
        f"import rollin\nSTUDY = rollin.Study.grid('mine', 'tests.toys:Line', {OPTIONS!r}, "
        "seeds=1, baseline='beta=0', beta=[0, 0.4])\n"
    )
    monkeypatch.chdir(tmp_path)
    assert sweep(tmp_path / "line", *GRID, *SMALL, "--seeds", "1") == 0
    assert sweep(tmp_path / "toml", "--trust", what="mine.toml") == 0
    assert sweep(tmp_path / "module", what="my_studies:STUDY") == 0
    hashes = [
        read_json(tmp_path / name / "sweep.json")["runs"] for name in ("line", "toml", "module")
    ]
    assert hashes[0] == hashes[1] == hashes[2]
    for name in ("toml", "module"):
        same_run(tmp_path / "line" / "beta=0.4" / "seed=0", tmp_path / name / "beta=0.4" / "seed=0")
    assert read_json(tmp_path / "toml" / "sweep.json")["family"] == "mine"


def test_a_study_runs_from_python_and_goes_on(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        "rollin.sweeps.local.LocalExecutor", lambda jobs, command: HereExecutor(command)
    )
    study = rollin.Study.grid(
        "mine", "tests.toys:Line", OPTIONS, beta=[0, 0.4], readings=["kappa", "return@150"]
    )
    records = study.run(tmp_path / "s", seeds=2, jobs=1)
    assert [(r.labels["beta"], r.seed) for r in records] == [
        ("0", 0), ("0.4", 0), ("0", 1), ("0.4", 1),
    ]  # fmt: skip
    for record in records:
        assert record.finished
        assert record.family == "mine"
        assert record.key == study.conditions[record.labels["beta"] == "0.4"].key()
        assert record.value(MetricAt("kappa")) is not None
        assert record.value(MetricAt("return", 150)) is not None
    before = results(tmp_path / "s")
    again = study.run(tmp_path / "s", seeds=2, jobs=1)
    assert results(tmp_path / "s") == before
    assert [r.spec_hash for r in again] == [r.spec_hash for r in records]
    half = study.run(tmp_path / "half", seeds=1, scale=0.5, jobs=1)
    assert [r.steps for r in half] == [150, 150]
    assert [r.scale for r in half] == [0.5, 0.5]


def test_runs_that_fail_are_told_from_python(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        "rollin.sweeps.local.LocalExecutor", lambda jobs, command: HereExecutor(command)
    )
    bad = {**OPTIONS, "env_options": ("breaks=nan", "after=3")}
    study = rollin.Study.grid("mine", "tests.toys:Line", bad, beta=[0, 0.4])
    with pytest.raises(
        RollinError, match=r"^2 of 2 runs could not be done, the first being beta=0"
    ):
        study.run(tmp_path / "s", seeds=1, jobs=1, retries=0)
    with pytest.raises(RollinError, match="backend must be one of local, ray, got 'moon'"):
        study.run(tmp_path / "t", backend="moon")
    with pytest.raises(RollinError, match="address belong to the backend ray"):
        study.run(tmp_path / "t", address="auto")
    with pytest.raises(RollinError, match="seeds must be at least 1, got 0"):
        study.run(tmp_path / "t", seeds=0)
    assert not (tmp_path / "t").exists()


def test_plain_sac_is_swept_by_its_return(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(
        "rollin.cli.study_runs.executor_of", lambda place, out, command: lambda: HereExecutor()
    )
    small = ["--steps", "200", "--warmup", "64", "--batch", "16", "--log-every", "100"]
    more = ["--hidden", "8", "8", "--eval-episodes", "1", "--seeds", "1"]
    assert sweep(tmp_path, "--grid", "tau=0.01,0.1", *small, *more, what="tests.toys:Walk-v0") == 0
    said = capsys.readouterr().out
    assert said.count("finished ") == 2
    (entry,) = read_json(tmp_path / "sweep.json")["studies"]
    assert entry["readings"] == [["return", None]]


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_the_directory_of_another_study_or_length_is_refused(tmp_path, capsys) -> None:
    assert sweep(tmp_path / "s", *GRID, *SMALL, "--seeds", "1", "--name", "mine") == 0
    first = results(tmp_path / "s")
    for more, sentence in (
        (["--name", "yours"], "holds the sweep of another study (mine), not of yours"),
        (["--name", "mine", "--scale", "0.9"], "holds runs at 1 of their full length, not"),
    ):
        capsys.readouterr()
        assert sweep(tmp_path / "s", *GRID, *SMALL, "--seeds", "1", *more) == 2
        said = capsys.readouterr().err
        assert sentence in said
        assert said.count("\n") == 1
    assert results(tmp_path / "s") == first


@pytest.mark.usefixtures("jobs_here")
@undrawn()
def test_a_run_with_other_options_in_a_condition_s_place_is_named_and_kept(
    tmp_path, capsys
) -> None:
    """The same labels, but other options beside them: nothing is overwritten."""
    assert sweep(tmp_path / "s", *GRID, *SMALL, "--seeds", "1") == 0
    first = results(tmp_path / "s")
    capsys.readouterr()
    assert sweep(tmp_path / "s", *GRID, *SMALL, "--gamma", "0.5", "--seeds", "1") == 2
    said = capsys.readouterr()
    assert "Skipped run directories: 2" in said.err
    assert "gamma 0.99 there, 0.5 requested" in said.err
    assert results(tmp_path / "s") == first


def test_options_of_train_are_told_from_those_of_the_sweep() -> None:
    of_runs: dict[str, list[str] | bool] = {}
    words = [
        "point-umaze", "--grid", "beta=0,0.1", "--steps=2e4", "--relabel", "--no-reset-adam",
        "--hidden-sizes", "8", "8", "--geometric", "--delta", "1/24", "--threshold", "-1",
        "--seeds", "3", "--log-every", "5", "--jobs=2", "--batch", "9",
    ]  # fmt: skip
    values = read(option_groups(SweepOptions), words, "sweep", "", of_runs)
    assert values == {"what": "point-umaze", "grid": ("beta=0,0.1",), "seeds": 3, "jobs": 2}
    assert run_options(of_runs) == {
        "steps": 20_000, "relabel": True, "reset_adam": False, "hidden": [8, 8],
        "geometric": True, "delta": 1 / 24, "threshold": -1, "log_every": 5, "batch": 9,
    }  # fmt: skip
    assert with_own_names("batch-size=8,9") == "batch=8,9"
